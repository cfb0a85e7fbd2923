/* recipe_topic.c - one key of a recipe, explained: `trainyard help KEY`.
 *
 * A key is found by the end of its dotted name: "shuffle", "train.shuffle", "data.train.fields.age.scale", "adamw",
 * "adamw.lr". What the user names (a field) stands as NAME in the tables and matches any word; data.validation has the
 * keys of data.train.
 */
#include "entrypoint/recipe_keys.h"

#include <string.h>

static const recipe_section *const sections[] = {
    &ty_recipe_top_section,        &ty_recipe_data_section,   &ty_recipe_field_section, &ty_recipe_image_section,
    &ty_recipe_audio_section,      &ty_recipe_warmup_section, &ty_recipe_ema_section,   &ty_recipe_checkpoint_section,
    &ty_recipe_jitter_section,     &ty_recipe_lora_section,   &ty_recipe_early_section, &ty_recipe_export_section,
    &ty_recipe_distributed_section};
static const recipe_choice *const choices[] = {&ty_recipe_loss_choice, &ty_recipe_optimizer_choice,
                                               &ty_recipe_schedule_choice, &ty_recipe_clip_choice,
                                               &ty_recipe_metric_choice};

/* ---- does a name end so? ---- */

static bool word_matches(const char *word, size_t n, const char *known, size_t n_known)
{
    static const char any[] = "NAME", train[] = "train", validation[] = "validation";
    if (n_known == strlen(any) && memcmp(known, any, n_known) == 0)
        return n > 0;
    if (n == strlen(validation) && memcmp(word, validation, n) == 0)
        return n_known == strlen(train) && memcmp(known, train, n_known) == 0;
    return n == n_known && memcmp(word, known, n) == 0;
}

/* Where the last word of text[0 .. n) begins. */
static size_t last_word(const char *text, size_t n)
{
    while (n > 0 && text[n - 1] != '.')
        n--;
    return n;
}

static bool ends_so(const char *place, const char *topic)
{
    size_t n = strlen(topic), n_place = strlen(place);
    for (;;) {
        size_t at = last_word(topic, n), at_place = last_word(place, n_place);
        if (!word_matches(topic + at, n - at, place + at_place, n_place - at_place))
            return false;
        if (at == 0 || at_place == 0)
            return at == 0;
        n = at - 1;
        n_place = at_place - 1;
    }
}

static bool names(const char *topic, const char *before, const char *between, const char *key)
{
    ty_buf place;
    ty_buf_init(&place, 1 << 12);
    ty_buf_addf(&place, "%s%s%s%s%s", before, *before ? "." : "", between, *between ? "." : "", key);
    bool does = !place.failed && ends_so(place.data, topic);
    ty_buf_fini(&place);
    return does;
}

/* ---- sections ---- */

/* "data.train, data.validation" are the first of them. */
static const char *first_path(const recipe_section *s, char out[64])
{
    size_t n = strcspn(s->path, ",");
    memcpy(out, s->path, n);
    out[n] = 0;
    return out;
}

/* A map of things that the user names is known by its own name too, "fields", and no bare word is such a thing. */
static bool names_section(const char *topic, const char *path)
{
    static const char things[] = ".NAME";
    size_t n = strlen(path), tail = strlen(things);
    char map[64] = "";
    if (n <= tail || strcmp(path + n - tail, things) != 0)
        return *path && ends_so(path, topic);
    memcpy(map, path, n - tail);
    return ends_so(map, topic) || (strchr(topic, '.') && ends_so(path, topic));
}

static void add_heading(const recipe_section *s, ty_buf *out)
{
    ty_buf_addf(out, "%s%s%s\n", s->path, *s->path ? ": " : "", s->help);
}

static int explain_section(const recipe_section *s, const char *topic, ty_buf *out)
{
    char path[64];
    int n = 0;
    first_path(s, path);
    for (size_t i = 0; i < s->n_rows; i++)
        if (names(topic, path, "", s->rows[i].key)) {
            add_heading(s, out);
            ty_bind_help(&s->rows[i], 1, 2, out);
            n++;
        }
    if (names_section(topic, path)) {
        add_heading(s, out);
        ty_bind_help(s->rows, s->n_rows, 2, out);
        n++;
    }
    return n;
}

/* ---- choices ---- */

static bool has_row(const recipe_choice *c, size_t kind, const char *topic, const char *key)
{
    return names(topic, c->key, c->kinds[kind].name, key);
}

static bool is_same_row(const ty_bind_row *a, const ty_bind_row *b)
{
    ty_buf x, y;
    ty_buf_init(&x, 1 << 12);
    ty_buf_init(&y, 1 << 12);
    bool same = strcmp(a->key, b->key) == 0 && ty_bind_help(a, 1, 0, &x) == 0 && ty_bind_help(b, 1, 0, &y) == 0 &&
                strcmp(x.data, y.data) == 0;
    ty_buf_fini(&x);
    ty_buf_fini(&y);
    return same;
}

/* The kind's row that reads as this one; -1: none does. */
static int same_row_of(const recipe_kind *k, const ty_bind_row *row)
{
    for (size_t i = 0; i < k->n_rows; i++)
        if (is_same_row(&k->rows[i], row))
            return (int)i;
    return -1;
}

static bool was_explained(const recipe_choice *c, size_t kind, const char *topic, const ty_bind_row *row)
{
    for (size_t i = 0; i < kind; i++)
        if (has_row(c, i, topic, row->key) && same_row_of(&c->kinds[i], row) >= 0)
            return true;
    return false;
}

/* "optimizer: sgd, adamw", and the row that they share. */
static void explain_shared(const recipe_choice *c, size_t kind, const char *topic, const ty_bind_row *row, ty_buf *out)
{
    ty_buf_addf(out, "%s: %s", c->key, c->kinds[kind].name);
    for (size_t i = kind + 1; i < c->n_kinds; i++)
        if (has_row(c, i, topic, row->key) && same_row_of(&c->kinds[i], row) >= 0)
            ty_buf_addf(out, ", %s", c->kinds[i].name);
    ty_buf_adds(out, "\n");
    ty_bind_help(row, 1, 2, out);
}

static int explain_kind(const recipe_choice *c, size_t kind, const char *topic, ty_buf *out)
{
    const recipe_kind *k = &c->kinds[kind];
    int n = 0;
    if (names(topic, c->key, "", k->name)) {
        ty_buf_addf(out, "%s: %s: %s\n", c->key, k->name, k->help);
        ty_bind_help(k->rows, k->n_rows, 2, out);
        n++;
    }
    for (size_t i = 0; i < k->n_rows; i++)
        if (has_row(c, kind, topic, k->rows[i].key) && !was_explained(c, kind, topic, &k->rows[i])) {
            explain_shared(c, kind, topic, &k->rows[i], out);
            n++;
        }
    return n;
}

static int explain_choice(const recipe_choice *c, const char *topic, ty_buf *out)
{
    int n = 0;
    if (ends_so(c->key, topic)) {
        ty_buf_addf(out, "%s: %s. One of\n", c->key, c->help);
        for (size_t i = 0; i < c->n_kinds; i++)
            ty_buf_addf(out, "  %-32s %s\n", c->kinds[i].name, c->kinds[i].help);
        n++;
    }
    for (size_t i = 0; i < c->n_kinds; i++)
        n += explain_kind(c, i, topic, out);
    return n;
}

/* ---- all of them ---- */

static const char *alias_of(const char *topic)
{
    for (size_t i = 0; i < ty_recipe_n_aliases; i++)
        if (strcmp(ty_recipe_aliases[i].alias, topic) == 0)
            return ty_recipe_aliases[i].path;
    return NULL;
}

int ty_recipe_explain(const char *topic, ty_buf *out)
{
    static const char recipe[] = "recipe.";
    int n = 0;
    if (strncmp(topic, "--", 2) == 0)
        topic += 2;
    if (strncmp(topic, recipe, strlen(recipe)) == 0)
        topic += strlen(recipe);
    const char *path = alias_of(topic);
    if (path) {
        ty_buf_addf(out, "%s is another name of %s\n\n", topic, path);
        topic = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
    }
    for (size_t i = 0; i < N(sections); i++)
        n += explain_section(sections[i], topic, out);
    for (size_t i = 0; i < N(choices); i++)
        n += explain_choice(choices[i], topic, out);
    if (n > 0)
        ty_buf_adds(out, "\nIn train.yaml, or from outside by its dotted name, as in --data.train.shuffle=false. All "
                         "keys: `trainyard help recipe`\n");
    return out->failed ? -1 : n;
}

void ty_recipe_offer_keys(ty_suggestion *s)
{
    for (size_t i = 0; i < N(sections); i++)
        for (size_t k = 0; k < sections[i]->n_rows; k++)
            ty_suggest_offer(s, sections[i]->rows[k].key);
    for (size_t i = 0; i < N(choices); i++)
        for (size_t k = 0; k < choices[i]->n_kinds; k++)
            ty_suggest_offer(s, choices[i]->kinds[k].name);
    for (size_t i = 0; i < ty_recipe_n_aliases; i++)
        ty_suggest_offer(s, ty_recipe_aliases[i].alias);
}
