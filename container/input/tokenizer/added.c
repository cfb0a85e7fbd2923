/* added.c - added and special tokens: found in a text before anything else looks at it.
 *
 * The leftmost match counts, and the longest of those. Tokens that are "normalized" are looked for behind the
 * normalizer, and pass through it themselves.
 */
#include "container/input/tokenizer/parts.h"

/* ---- looking ---- */

static bool added_is_word(const tok_unicode *u, const char *p)
{
    int k;
    return u->bits[tok_char(p, &k)] & TOK_WORD;
}

static size_t added_char_before(const char *text, size_t at)
{
    do
        at--;
    while (at > 0 && (text[at] & 0xc0) == 0x80);
    return at;
}

static const tok_added_token *added_match(const tok_added_set *set, const char *p, size_t n)
{
    for (uint32_t i = set->from[(uint8_t)*p]; i < set->from[(uint8_t)*p + 1]; i++)
        if (set->token[i]->n <= n && memcmp(set->token[i]->content, p, set->token[i]->n) == 0)
            return set->token[i];
    return NULL;
}

/* With the blanks that the token takes along; false: it does not stand alone as it should. */
static bool added_widen(const tok_added_token *t, const tok_unicode *u, const char *text, size_t n, size_t done,
                        size_t *start, size_t *end)
{
    int k;
    if (t->single_word && ((*start > 0 && added_is_word(u, text + added_char_before(text, *start))) ||
                           (*end < n && added_is_word(u, text + *end))))
        return false;
    while (t->lstrip && *start > done) {
        size_t before = added_char_before(text, *start);
        if (!(u->bits[tok_char(text + before, &k)] & TOK_SPACE))
            break;
        *start = before;
    }
    while (t->rstrip && *end < n && (u->bits[tok_char(text + *end, &k)] & TOK_SPACE))
        *end += (size_t)k;
    return true;
}

void tok_added_cut(const tok_added_set *set, const tok_unicode *u, size_t at, size_t n, bool first, tok_pieces *out)
{
    const char *text = out->text.p + at;
    size_t done = 0;
    for (size_t i = 0; set->n > 0 && i < n;) {
        uint8_t b = (uint8_t)text[i];
        const tok_added_token *t = set->from[b] < set->from[b + 1] ? added_match(set, text + i, n - i) : NULL;
        if (t == NULL) {
            i++;
            continue;
        }
        size_t start = i, end = i + t->n;
        i = end;
        if (!added_widen(t, u, text, n, done, &start, &end))
            continue;
        if (start > done)
            tok_pieces_add(out, at + done, start - done, -1, first && done == 0);
        tok_pieces_add(out, at + start, end - start, t->id, false);
        done = end;
    }
    if (done < n)
        tok_pieces_add(out, at + done, n - done, -1, first && done == 0);
}

/* ---- reading ---- */

static int added_compare(const void *a, const void *b)
{
    const tok_added_token *x = *(const tok_added_token *const *)a, *y = *(const tok_added_token *const *)b;
    int first = (int)(uint8_t)x->content[0] - (int)(uint8_t)y->content[0];
    if (first != 0)
        return first;
    return x->n != y->n ? (x->n > y->n ? -1 : 1) : x < y ? -1 : 1;
}

static void added_sort(tok_added *all, bool normalized, ty_arena *a, tok_added_set *set)
{
    set->token = TY_NEW_ARRAY(a, const tok_added_token *, all->n + 1);
    for (size_t i = 0; i < all->n; i++)
        if (all->token[i].normalized == normalized && all->token[i].n > 0)
            set->token[set->n++] = &all->token[i];
    qsort(set->token, set->n, sizeof *set->token, added_compare);
    for (size_t b = 0, i = 0; b <= 256; b++) {
        while (i < set->n && (uint8_t)set->token[i]->content[0] < b)
            i++;
        set->from[b] = (uint32_t)i;
    }
}

static int added_read_token(const ty_doc *d, ty_arena *a, tok_added_token *t, ty_error *err)
{
    int64_t id;
    const char *content;
    if (ty_doc_expect(d, TY_DOC_MAP, err) < 0 || tok_get_int(d, "id", -1, &id, err) < 0 ||
        tok_get_string(d, "content", "", &content, err) < 0 ||
        tok_get_bool(d, "single_word", false, &t->single_word, err) < 0 ||
        tok_get_bool(d, "lstrip", false, &t->lstrip, err) < 0 ||
        tok_get_bool(d, "rstrip", false, &t->rstrip, err) < 0 ||
        tok_get_bool(d, "special", false, &t->special, err) < 0 ||
        tok_get_bool(d, "normalized", !t->special, &t->normalized, err) < 0)
        return -1;
    if (id < 0 || id > TOK_MAX_ID)
        return ty_doc_error(d, err, TY_E_RANGE, NULL, "an added token needs an id, 0 to %d", TOK_MAX_ID);
    t->id = (int32_t)id;
    t->content = ty_arena_strdup(a, content);
    t->n = strlen(content);
    return 0;
}

static int added_normalize(tok_added_token *t, const tok_normalizer *n, tok_work *w, ty_arena *a, ty_error *err)
{
    tok_text out = {.n = 0};
    int rc = tok_normalize(n, w, t->content, t->n, &out, err);
    if (rc == 0 && !out.failed) {
        t->content = ty_arena_strndup(a, out.n > 0 ? out.p : "", out.n);
        t->n = out.n;
    }
    free(out.p);
    return rc;
}

int tok_added_read(const ty_doc *node, const tok_model *m, const tok_normalizer *n, tok_work *w, ty_arena *a,
                   tok_added *out, ty_error *err)
{
    *out = (tok_added){.n = 0};
    if (node != NULL && node->kind != TY_DOC_NULL && ty_doc_expect(node, TY_DOC_LIST, err) < 0)
        return ty_error_wrap(err, "added_tokens");
    size_t count = ty_doc_len(node);
    out->token = TY_NEW_ARRAY(a, tok_added_token, count + 1);
    out->given = TY_NEW_ARRAY(a, const char *, count + 1);
    for (; out->n < count; out->n++) {
        const ty_doc *d = &node->items[out->n];
        tok_added_token *t = &out->token[out->n];
        if (added_read_token(d, a, t, err) < 0)
            return ty_error_wrap(err, "added_tokens");
        out->given[out->n] = t->content;
        int32_t known = tok_vocabulary_find(&m->vocabulary, t->content, t->n);
        if (known >= 0 && known != t->id)
            return ty_doc_error(d, err, TY_E_CONFIG, NULL,
                                "the added token \"%.100s\" has the id %d here, %d in the vocabulary", t->content,
                                t->id, known);
        if (t->normalized && added_normalize(t, n, w, a, err) < 0)
            return -1;
    }
    added_sort(out, false, a, &out->raw);
    added_sort(out, true, a, &out->normal);
    return 0;
}
