/* share.c - see share.h. A text is cut at the numbers that may differ; texts whose pieces between these numbers are
 * equal are of one form. */
#include "compiler/target/cpu/share.h"

#include <stdlib.h>
#include <string.h>

enum { SHARE_LEAST = 8, SHARE_MAX_NUMBERS = 512, SHARE_MAX_PARAMETERS = 48, SHARE_WORD = 32, SHARE_TEXTS = 2 };

/* A number of a text: 256l or 0x1.8p-7f. */
typedef struct share_number {
    size_t at, len;
} share_number;

typedef struct share_text {
    const ty_ktexts_one *one;
    share_number *number;
    int n;
    uint64_t form;           /* hash of what is between the numbers */
    struct share_text *next; /* another text of the form */
    bool is_first;
} share_text;

/* ---- numbers ---- */

static bool share_is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

/* Length of a word; the sign in an exponent belongs to it. */
static size_t share_word(const char *at)
{
    size_t n = 0;
    bool hex = at[0] == '0' && at[1] == 'x';
    while (share_is_word(at[n]) || (hex && n > 0 && at[n - 1] == 'p' && (at[n] == '+' || at[n] == '-')))
        n++;
    return n;
}

/* Whether something in an address is divided by the number at `at`. What a unit's number is divided by, q, is divided
 * once for a whole row. */
static bool share_divides(const char *text, size_t at)
{
    size_t i = at;
    while (i > 0 && (text[i - 1] == ' ' || text[i - 1] == '='))
        i--;
    if (i == 0 || (text[i - 1] != '/' && text[i - 1] != '%'))
        return false;
    for (i--; i > 0 && text[i - 1] == ' ';)
        i--;
    return i < 2 || text[i - 1] != 'q' || share_is_word(text[i - 2]);
}

static bool share_may_differ(const char *text, size_t at, size_t len)
{
    const char *word = text + at;
    if (word[0] < '0' || word[0] > '9')
        return false;
    if (word[1] == 'x')
        return word[len - 1] == 'f' && memchr(word, 'p', len);
    char *end;
    long value = strtol(word, &end, 10);
    return end == word + len - 1 && *end == 'l' && value >= SHARE_LEAST && !share_divides(text, at);
}

/* A text of more numbers than fit is of a form of its own. */
static void share_cut(share_text *t, ty_arena *arena)
{
    share_number found[SHARE_MAX_NUMBERS];
    const char *text = t->one->text;
    size_t from = 0, len;
    t->form = TY_FNV_START;
    for (size_t at = 0; at < t->one->len; at += len) {
        len = share_word(text + at);
        if (len > 0 && t->n < SHARE_MAX_NUMBERS && len < SHARE_WORD && share_may_differ(text, at, len)) {
            found[t->n++] = (share_number){at, len};
            t->form = ty_fnv1a(t->form, text + from, at - from) * 3;
            from = at + len;
        }
        len += len == 0;
    }
    t->form = ty_fnv1a(t->form, text + from, t->one->len - from);
    t->number = ty_arena_copy(arena, found, sizeof *found * (size_t)(t->n > 0 ? t->n : 1));
}

/* ---- forms ---- */

static size_t share_end(const share_text *t, int i)
{
    return i < 0 ? 0 : t->number[i].at + t->number[i].len;
}

/* Whether the texts are equal but for their numbers. */
static bool share_is_form(const share_text *a, const share_text *b)
{
    if (a->form != b->form || a->n != b->n || a->n == SHARE_MAX_NUMBERS)
        return false;
    for (int i = 0; i <= a->n; i++) {
        size_t at = share_end(a, i - 1), bt = share_end(b, i - 1);
        size_t n = (i < a->n ? a->number[i].at : a->one->len) - at, m = (i < b->n ? b->number[i].at : b->one->len) - bt;
        if (n != m || memcmp(a->one->text + at, b->one->text + bt, n) != 0)
            return false;
    }
    return true;
}

static bool share_same_word(const share_text *a, int i, const share_text *b, int k)
{
    return a->number[i].len == b->number[k].len &&
           memcmp(a->one->text + a->number[i].at, b->one->text + b->number[k].at, a->number[i].len) == 0;
}

/* Number i of a form: its parameter, or -1 where all texts agree. Numbers that are equal in each text share one. */
static int share_parameters(const share_text *first, int *parameter)
{
    int n = 0, of[SHARE_MAX_NUMBERS]; /* a parameter's first number */
    for (int i = 0; i < first->n; i++) {
        bool agree = true;
        for (const share_text *t = first->next; t; t = t->next)
            agree = agree && share_same_word(first, i, t, i);
        int k = 0;
        for (bool found = false; !agree && k < n && !found; k += !found) {
            found = true;
            for (const share_text *t = first; t; t = t->next)
                found = found && share_same_word(t, i, t, of[k]);
        }
        parameter[i] = agree ? -1 : k;
        if (!agree && k == n)
            of[n++] = i;
    }
    return n;
}

/* ---- writing ---- */

static bool share_is_float(const share_text *t, int i)
{
    return t->one->text[t->number[i].at + t->number[i].len - 1] == 'f';
}

static int share_number_of(const share_text *t, const int *parameter, int k)
{
    int i = 0;
    while (i < t->n && parameter[i] != k)
        i++;
    return i;
}

/* The function that they share; a text begins with its parameters. */
static void share_put_body(const share_text *first, const int *parameter, int n, ty_buf *out)
{
    static const char start[] = "(char *const *b, long lo, long hi)";
    const char *text = first->one->text;
    ty_buf_addf(out, "%s;\nstatic __attribute__((noinline)) void ty_s_%016lx(char *const *b, long lo, long hi", start,
                (unsigned long)first->one->hash);
    for (int k = 0; k < n; k++)
        ty_buf_addf(out, ", const %s ty_n%d",
                    share_is_float(first, share_number_of(first, parameter, k)) ? "float" : "long", k);
    ty_buf_adds(out, ")");
    size_t from = sizeof start - 1;
    for (int i = 0; i < first->n; i++) {
        if (parameter[i] < 0)
            continue;
        ty_buf_add(out, text + from, first->number[i].at - from);
        ty_buf_addf(out, "ty_n%d", parameter[i]);
        from = share_end(first, i);
    }
    ty_buf_add(out, text + from, first->one->len - from);
}

static void share_put_call(const share_text *first, const share_text *t, const int *parameter, int n, const char *lead,
                           ty_buf *out)
{
    ty_buf_addf(out, "%s" TY_KTEXTS_NAME "(char *const *b, long lo, long hi)\n{\n ty_s_%016lx(b, lo, hi", lead,
                (unsigned long)t->one->hash, (unsigned long)first->one->hash);
    for (int k = 0; k < n; k++) {
        const share_number *number = &t->number[share_number_of(t, parameter, k)];
        ty_buf_addf(out, ", %.*s", (int)number->len, t->one->text + number->at);
    }
    ty_buf_adds(out, ");\n}\n");
}

static void share_put_form(const share_text *first, const int *parameter, int n, const char *lead, ty_ktexts *to)
{
    ty_buf out;
    ty_buf_init(&out, 64u << 20);
    share_put_body(first, parameter, n, &out);
    for (const share_text *t = first; t; t = t->next)
        share_put_call(first, t, parameter, n, lead, &out);
    to->one[to->n++] =
        (ty_ktexts_one){first->one->hash, ty_arena_strndup(to->arena, out.data ? out.data : "", out.len), out.len};
    ty_buf_fini(&out);
}

/* ---- all of them ---- */

static int share_texts(const share_text *first)
{
    int n = 0;
    for (; first; first = first->next)
        n++;
    return n;
}

/* Each text is hung behind the first one of its form. */
static void share_group(share_text *all, int n)
{
    for (int i = 0; i < n; i++) {
        share_text *last = NULL;
        for (int k = 0; k < i && !last; k++)
            if (all[k].is_first && share_is_form(&all[k], &all[i]))
                last = &all[k];
        all[i].is_first = !last;
        while (last && last->next)
            last = last->next;
        if (last)
            last->next = &all[i];
    }
}

ty_ktexts ty_share_texts(const ty_ktexts *from, const char *lead)
{
    int parameter[SHARE_MAX_NUMBERS];
    ty_ktexts to = {.arena = from->arena, .cap = from->n};
    to.one = TY_NEW_ARRAY(to.arena, ty_ktexts_one, from->n > 0 ? from->n : 1);
    share_text *all = TY_NEW_ARRAY(to.arena, share_text, from->n > 0 ? from->n : 1);
    for (int i = 0; i < from->n; i++) {
        all[i].one = &from->one[i];
        share_cut(&all[i], to.arena);
    }
    share_group(all, from->n);
    for (int i = 0; i < from->n; i++) {
        int n = all[i].is_first && share_texts(&all[i]) >= SHARE_TEXTS ? share_parameters(&all[i], parameter) : 0;
        if (n > 0 && n <= SHARE_MAX_PARAMETERS)
            share_put_form(&all[i], parameter, n, lead, &to);
        else if (all[i].is_first) {
            for (const share_text *t = &all[i]; t; t = t->next)
                to.one[to.n++] = *t->one;
        }
    }
    return to;
}
