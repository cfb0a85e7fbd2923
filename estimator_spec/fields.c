/* fields.c - rows of fields.def as tables for base/bind.h, and the limits that such a table cannot say. */
#include "estimator_spec/fields.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

const ty_field_row ty_fields[TY_N_FIELDS] = {
#define FIELD(id, section, key, type, fallback, min, max, form, send, body, help) \
    {section, key, TY_FIELD_##type, fallback, min, max, form, TY_SEND_##send, body, help},
#include "fields.def"
#undef FIELD
};

enum { MAX_ROWS = 64, MAX_CHOICES = 8 };

/* One section while it is read: what base/bind.h fills, and which row is whose. */
typedef struct section {
    ty_bind_row rows[MAX_ROWS];
    ty_field_id ids[MAX_ROWS];
    size_t n;
    union {
        bool boolean;
        int64_t integer;
        const char *text;
        int choice;
        const ty_doc *node;
    } out[MAX_ROWS];
    const ty_doc *origin[MAX_ROWS];
} section;

/* ---- forms ---- */

static const struct {
    const char *name, *expression, *words;
} forms[] = {
#define FORM(name, expression, words) {name, expression, words},
#include "forms.def"
#undef FORM
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

static int find_form(const char *name)
{
    int i = 0;
    while (i < N_FORMS && strcmp(forms[i].name, name) != 0)
        i++;
    return i;
}

bool ty_form_fits(const char *name, const char *text)
{
    regex_t expression;
    int i = find_form(name);
    if (i == N_FORMS || regcomp(&expression, forms[i].expression, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    bool fits = regexec(&expression, text, 0, NULL, 0) == 0;
    regfree(&expression);
    return fits;
}

static double count_characters(const char *text)
{
    double n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

int ty_form_check(const char *form, const char *text, double min, double max, const ty_doc *d, const char *what,
                  ty_error *err)
{
    double n = count_characters(text);
    if ((min != 0 || max != 0) && (n < min || n > max)) {
        char from[32] = "";
        if (min != max)
            snprintf(from, sizeof from, "%.0f to ", min);
        return ty_doc_error(d, err, TY_E_RANGE, NULL, "%s: expected %s%.0f characters, found %.0f", what, from, max, n);
    }
    /* libc's expressions take a newline for any character, which no row wants. */
    if (form && (strchr(text, '\n') || !ty_form_fits(form, text)))
        return ty_doc_error(d, err, TY_E_RANGE, NULL, "%s: expected %s, found \"%.200s\"", what,
                            forms[find_form(form)].words, text);
    return 0;
}

/* ---- reading ---- */

static const char *const *split_choices(const char *form, ty_arena *a)
{
    const char **out = TY_NEW_ARRAY(a, const char *, MAX_CHOICES + 1);
    char *words = ty_arena_strdup(a, form), *save;
    int n = 0;
    for (char *word = strtok_r(words, "|", &save); word && n < MAX_CHOICES; word = strtok_r(NULL, "|", &save))
        out[n++] = word;
    return out;
}

static ty_bind_row row_of(const ty_field_row *f, size_t offset, ty_arena *a)
{
    static const ty_bind_type types[] = {
        [TY_FIELD_TEXT] = TY_BIND_STRING, [TY_FIELD_WORD] = TY_BIND_NODE,     [TY_FIELD_INT] = TY_BIND_INT,
        [TY_FIELD_BOOL] = TY_BIND_BOOL,   [TY_FIELD_CHOICE] = TY_BIND_CHOICE, [TY_FIELD_NODE] = TY_BIND_NODE};
    bool is_number = f->type == TY_FIELD_INT;
    return (ty_bind_row){.key = f->key,
                         .type = types[f->type],
                         .offset = offset,
                         .fallback = f->fallback,
                         .min = is_number ? f->min : 0,
                         .max = is_number ? f->max : 0,
                         .choices = f->type == TY_FIELD_CHOICE ? split_choices(f->form, a) : NULL,
                         .form = f->type == TY_FIELD_WORD ? "a word" : NULL,
                         .help = f->help};
}

static void open_section(section *s, const char *name, ty_arena *a)
{
    s->n = 0;
    for (int id = 0; id < TY_N_FIELDS && s->n < MAX_ROWS; id++)
        if (strcmp(ty_fields[id].section, name) == 0) {
            s->ids[s->n] = (ty_field_id)id;
            s->rows[s->n] = row_of(&ty_fields[id], s->n * sizeof s->out[0], a);
            s->n++;
        }
}

/* `output: s3://bucket` stands for `output: {path: s3://bucket}`. */
static const ty_doc *wrap_scalar(const section *s, const ty_doc *node, ty_arena *a)
{
    if (!node || node->kind == TY_DOC_MAP || node->kind == TY_DOC_LIST || node->kind == TY_DOC_NULL)
        return node;
    ty_doc *map = TY_NEW(a, ty_doc), *child = TY_NEW(a, ty_doc);
    *map = *child = *node;
    child->key = s->rows[0].key;
    map->kind = TY_DOC_MAP;
    map->items = child;
    map->n_items = 1;
    return map;
}

static int take_word(const ty_field_row *f, const ty_doc *d, const char **out, ty_error *err)
{
    char found[160];
    if (d && (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP))
        return ty_doc_error(d, err, TY_E_TYPE, NULL, "key \"%s\": expected a word, found %s", f->key,
                            ty_doc_describe(d, found, sizeof found));
    *out = d ? d->raw : f->fallback;
    return 0;
}

static int check_items(const ty_field_row *f, const ty_doc *d, ty_error *err)
{
    size_t n = ty_doc_len(d);
    bool counts = f->max > 0 && (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP);
    if (counts && (double)n > f->max)
        return ty_doc_error(d, err, TY_E_LIMIT, NULL, "\"%s\": expected at most %.0f entries, found %zu", f->key,
                            f->max, n);
    if (counts && (double)n < f->min)
        return ty_doc_error(d, err, TY_E_LIMIT, NULL, "\"%s\": expected an entry at least, found none", f->key);
    return 0;
}

static int store(const section *s, size_t i, ty_field_value *v, ty_arena *a, ty_error *err)
{
    const ty_field_row *f = &ty_fields[s->ids[i]];
    const ty_doc *at = s->origin[i];
    char text[TY_ERROR_PLACE_BYTES], what[160];
    *v = (ty_field_value){.at = at};
    if (at || f->fallback)
        v->origin = at ? ty_arena_strdup(a, ty_bind_origin_text(at, text, sizeof text)) : "default";
    if (f->type == TY_FIELD_BOOL)
        v->boolean = s->out[i].boolean;
    else if (f->type == TY_FIELD_INT)
        v->integer = s->out[i].integer;
    else if (f->type == TY_FIELD_TEXT)
        v->text = s->out[i].text;
    else if (f->type == TY_FIELD_CHOICE)
        v->text = at || f->fallback ? s->rows[i].choices[s->out[i].choice] : NULL;
    else if (f->type == TY_FIELD_NODE)
        v->node = at;
    else if (take_word(f, at, &v->text, err) < 0)
        return -1;
    if (f->type == TY_FIELD_NODE && at)
        return check_items(f, at, err);
    if ((f->type != TY_FIELD_TEXT && f->type != TY_FIELD_WORD) || !at)
        return 0;
    snprintf(what, sizeof what, "key \"%s\"", f->key);
    return ty_form_check(f->form, v->text, f->min, f->max, at, what, err);
}

int ty_fields_read(const char *name, const char *what, const ty_doc *node, ty_field_value *values, ty_arena *a,
                   ty_error *err)
{
    section *s = TY_NEW(a, section);
    open_section(s, name, a);
    if (ty_bind(s->rows, s->n, what, wrap_scalar(s, node, a), s->out, s->origin, err) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        if (store(s, i, &values[s->ids[i]], a, err) < 0)
            return -1;
    return 0;
}

/* ---- text ---- */

bool ty_field_is_said(const ty_field_value *v)
{
    return v->origin && strcmp(v->origin, "default") != 0;
}

const char *ty_field_path(ty_field_id id, ty_arena *a)
{
    const ty_field_row *f = &ty_fields[id];
    return f->section[0] ? ty_arena_printf(a, "%s.%s", f->section, f->key) : f->key;
}

const char *ty_field_text(ty_field_id id, const ty_field_value *v, ty_arena *a)
{
    if (!v->origin)
        return NULL;
    if (ty_fields[id].type == TY_FIELD_INT)
        return ty_arena_printf(a, "%lld", (long long)v->integer);
    if (ty_fields[id].type == TY_FIELD_BOOL)
        return v->boolean ? "true" : "false";
    return v->text;
}

int ty_fields_help(ty_buf *out, ty_error *err)
{
    ty_arena a;
    const char *last = NULL;
    ty_arena_init(&a);
    section *s = TY_NEW(&a, section);
    for (int id = 0; id < TY_N_FIELDS; id++) {
        const char *name = ty_fields[id].section;
        if (last && strcmp(last, name) == 0)
            continue;
        last = name;
        open_section(s, name, &a);
        ty_buf_addf(out, "%s%s%s\n", id ? "\n" : "", name[0] ? name : "the file", name[0] ? ":" : ": keys");
        ty_bind_help(s->rows, s->n, 2, out);
    }
    ty_arena_fini(&a);
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "the help does not fit") : 0;
}
