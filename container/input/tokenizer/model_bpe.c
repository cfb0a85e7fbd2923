/* model_bpe.c - byte pair encoding: characters, of which the pair that was merged first in training is merged first.
 *
 * Source: Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units", ACL 2016. Short words
 * look for the best pair by walking all of them, long ones keep a heap; both merge the lowest rank, and of equal ones
 * the leftmost.
 */
#include "container/input/tokenizer/parts.h"

enum { BPE_SHORT = 48 };

typedef struct tok_merge {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank; /* from 1; 0: free */
    int32_t id;
} tok_merge;

static const tok_merge *bpe_find(const tok_model *m, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint32_t slot = tok_trie_slot(pair);; slot++) {
        const tok_merge *at = &m->merge[slot & m->merge_mask];
        if (at->rank == 0)
            return NULL;
        if (at->pair == pair)
            return at;
    }
}

/* ---- the symbols of a word ---- */

static int32_t bpe_look_up(const tok_model *m, tok_work *w, const char *p, size_t n, bool is_first, bool is_last)
{
    if (m->chars_known && n < 3) {
        int k;
        return m->char_id[tok_char(p, &k)];
    }
    if ((is_first || m->prefix[0] == 0) && (!is_last || m->suffix[0] == 0))
        return tok_vocabulary_find(&m->vocabulary, p, n);
    tok_text *t = &w->room[3];
    t->n = 0;
    if (!is_first)
        tok_text_add(t, m->prefix, strlen(m->prefix));
    tok_text_add(t, p, n);
    if (is_last)
        tok_text_add(t, m->suffix, strlen(m->suffix));
    return t->failed ? -1 : tok_vocabulary_find(&m->vocabulary, t->p, t->n);
}

/* Characters without a token become bytes or the unknown one. An unknown one that waits is put before the next known
 * character, but behind bytes: as Hugging Face's library does it. */
static void bpe_symbols(const tok_model *m, tok_work *w, const char *p, size_t n)
{
    int n_waiting = 0;
    tok_text *out = &w->symbols;
    for (size_t i = 0; i < n;) {
        size_t k = (size_t)tok_char_bytes(p[i]);
        int32_t id = bpe_look_up(m, w, p + i, k, i == 0, i + k == n);
        bool is_bytes =
            id < 0 && m->byte_fallback && m->prefix[0] == 0 && m->suffix[0] == 0 && tok_bytes_add(m, p + i, k, out);
        if (id < 0 && !is_bytes && m->unknown >= 0) {
            if (n_waiting > 0 && !m->fuse_unknown)
                tok_work_add_id(out, m->unknown);
            n_waiting = 1;
        }
        if (id >= 0) {
            if (n_waiting > 0)
                tok_work_add_id(out, m->unknown);
            n_waiting = 0;
            tok_work_add_id(out, id);
        }
        i += k;
    }
    if (n_waiting > 0)
        tok_work_add_id(out, m->unknown);
}

/* ---- short words ---- */

static void bpe_merge_short(const tok_model *m, const int32_t *from, size_t n, tok_text *ids)
{
    int32_t id[BPE_SHORT];
    const tok_merge *pair[BPE_SHORT];
    memcpy(id, from, n * sizeof *id);
    for (size_t i = 0; i + 1 < n; i++)
        pair[i] = bpe_find(m, id[i], id[i + 1]);
    for (;;) {
        size_t best = n;
        uint32_t rank = UINT32_MAX;
        for (size_t i = 0; i + 1 < n; i++)
            if (pair[i] != NULL && pair[i]->rank < rank) {
                rank = pair[i]->rank;
                best = i;
            }
        if (best == n)
            break;
        id[best] = pair[best]->id;
        n--;
        memmove(id + best + 1, id + best + 2, (n - best - 1) * sizeof *id);
        if (best + 1 < n) {
            memmove(pair + best + 1, pair + best + 2, (n - best - 2) * sizeof *pair);
            pair[best] = bpe_find(m, id[best], id[best + 1]);
        }
        if (best > 0)
            pair[best - 1] = bpe_find(m, id[best - 1], id[best]);
    }
    tok_text_add(ids, id, n * sizeof *id);
}

/* ---- long words ---- */

typedef struct bpe_node {
    int32_t id; /* -1: merged into the one before */
    uint32_t before, next;
} bpe_node;

typedef struct bpe_entry {
    uint32_t rank, at;
    int32_t id;
} bpe_entry;

typedef struct bpe_heap {
    bpe_entry *e;
    size_t n;
} bpe_heap;

static bool bpe_less(bpe_entry a, bpe_entry b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void bpe_push(bpe_heap *h, bpe_entry e)
{
    size_t i = h->n++;
    for (; i > 0 && bpe_less(e, h->e[(i - 1) / 2]); i = (i - 1) / 2)
        h->e[i] = h->e[(i - 1) / 2];
    h->e[i] = e;
}

static bpe_entry bpe_pop(bpe_heap *h)
{
    bpe_entry top = h->e[0], last = h->e[--h->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        child += child + 1 < h->n && bpe_less(h->e[child + 1], h->e[child]);
        if (!bpe_less(h->e[child], last))
            break;
        h->e[i] = h->e[child];
    }
    h->e[i] = last;
    return top;
}

static void bpe_offer(const tok_model *m, bpe_heap *h, const bpe_node *node, uint32_t at, size_t n)
{
    uint32_t next = node[at].next;
    const tok_merge *pair = next < n ? bpe_find(m, node[at].id, node[next].id) : NULL;
    if (pair != NULL)
        bpe_push(h, (bpe_entry){pair->rank, at, pair->id});
}

/* Every merge offers at most two pairs, so that 3 n entries are room enough. */
static void bpe_merge_long(const tok_model *m, tok_work *w, const int32_t *from, size_t n)
{
    tok_text *nodes = &w->room[0], *entries = &w->room[1];
    nodes->n = entries->n = 0;
    if (!tok_text_room(nodes, n * sizeof(bpe_node)) || !tok_text_room(entries, 3 * n * sizeof(bpe_entry))) {
        w->ids.failed = true;
        return;
    }
    bpe_node *node = (bpe_node *)(void *)nodes->p;
    bpe_heap h = {(bpe_entry *)(void *)entries->p, 0};
    for (size_t i = 0; i < n; i++)
        node[i] = (bpe_node){from[i], (uint32_t)i - 1, (uint32_t)i + 1};
    for (size_t i = 0; i + 1 < n; i++)
        bpe_offer(m, &h, node, (uint32_t)i, n);
    while (h.n > 0) {
        bpe_entry e = bpe_pop(&h);
        bpe_node *at = &node[e.at];
        if (at->id < 0 || at->next >= n)
            continue;
        const tok_merge *pair = bpe_find(m, at->id, node[at->next].id);
        if (pair == NULL || pair->id != e.id)
            continue;
        node[at->next].id = -1;
        at->id = pair->id;
        at->next = node[at->next].next;
        if (at->next < n)
            node[at->next].before = e.at;
        bpe_offer(m, &h, node, e.at, n);
        if (e.at > 0)
            bpe_offer(m, &h, node, at->before, n);
    }
    for (size_t i = 0; i < n; i = node[i].next)
        tok_work_add_id(&w->ids, node[i].id);
}

static int bpe_encode(const tok_model *m, tok_work *w, const char *word, size_t n, ty_error *err)
{
    (void)err;
    int32_t whole = m->ignore_merges ? tok_vocabulary_find(&m->vocabulary, word, n) : -1;
    if (whole >= 0) {
        tok_work_add_id(&w->ids, whole);
        return 0;
    }
    w->symbols.n = 0;
    bpe_symbols(m, w, word, n);
    if (w->symbols.failed || w->room[3].failed)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the symbols of a word");
    const int32_t *symbol = (const int32_t *)(const void *)w->symbols.p;
    size_t n_symbols = w->symbols.n / sizeof *symbol;
    if (n_symbols <= BPE_SHORT)
        bpe_merge_short(m, symbol, n_symbols, &w->ids);
    else
        bpe_merge_long(m, w, symbol, n_symbols);
    return 0;
}

/* ---- reading ---- */

/* "a b" or ["a", "b"]. */
static int bpe_read_pair(const ty_doc *d, ty_arena *a, const char **left, const char **right, ty_error *err)
{
    if (d->kind == TY_DOC_LIST && d->n_items == 2)
        return ty_doc_string(&d->items[0], left, err) < 0 ? -1 : ty_doc_string(&d->items[1], right, err);
    const char *text, *space = NULL;
    if (d->kind == TY_DOC_STRING && ty_doc_string(d, &text, err) == 0)
        space = strchr(text, ' ');
    if (space == NULL || strchr(space + 1, ' ') != NULL)
        return ty_doc_error(d, err, TY_E_TYPE, NULL, "a merge is \"left right\" or [\"left\", \"right\"]");
    *left = ty_arena_strndup(a, text, (size_t)(space - text));
    *right = space + 1;
    return 0;
}

static void bpe_put(tok_model *m, uint64_t pair, uint32_t rank, int32_t id)
{
    for (uint32_t slot = tok_trie_slot(pair);; slot++) {
        tok_merge *at = &m->merge[slot & m->merge_mask];
        if (at->rank != 0 && at->pair != pair)
            continue;
        *at = (tok_merge){pair, rank, id};
        return;
    }
}

static int bpe_read_merge(const ty_doc *d, uint32_t rank, ty_arena *a, tok_model *m, tok_work *w, ty_error *err)
{
    const char *left, *right;
    if (bpe_read_pair(d, a, &left, &right, err) < 0)
        return -1;
    size_t n_prefix = strlen(m->prefix), n_right = strlen(right);
    tok_text *t = &w->room[0];
    t->n = 0;
    tok_text_add(t, left, strlen(left));
    if (n_right >= n_prefix)
        tok_text_add(t, right + n_prefix, n_right - n_prefix);
    if (t->failed)
        return ty_error_set(err, TY_E_LIMIT, "no memory for merges");
    int32_t l = tok_vocabulary_find(&m->vocabulary, left, strlen(left)),
            r = tok_vocabulary_find(&m->vocabulary, right, n_right),
            id = n_right >= n_prefix ? tok_vocabulary_find(&m->vocabulary, t->n > 0 ? t->p : "", t->n) : -1;
    if (l < 0 || r < 0 || id < 0)
        return ty_doc_error(d, err, TY_E_RANGE, NULL,
                            "merge %u: \"%.60s\", \"%.60s\" or both joined is not in the vocabulary", rank - 1, left,
                            right);
    bpe_put(m, (uint64_t)(uint32_t)l << 32 | (uint32_t)r, rank, id);
    return 0;
}

static int bpe_read_merges(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err)
{
    const ty_doc *list = ty_doc_find(node, "merges");
    if (list == NULL || list->kind != TY_DOC_LIST)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a list \"merges\"");
    uint32_t slots = 16;
    while (slots < (uint64_t)list->n_items * 2)
        slots *= 2;
    m->merge = TY_NEW_ARRAY(a, tok_merge, slots);
    m->merge_mask = slots - 1;
    tok_work w = {.cache = NULL};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < list->n_items; i++)
        rc = bpe_read_merge(&list->items[i], i + 1, a, m, &w, err);
    free(w.room[0].p);
    return rc;
}

static void bpe_know_chars(tok_model *m)
{
    m->chars_known = m->prefix[0] == 0 && m->suffix[0] == 0;
    for (uint32_t c = 0; m->chars_known && c < 0x800; c++) {
        char bytes[4];
        tok_text t = {.p = bytes, .room = sizeof bytes};
        tok_add_char(&t, c);
        m->char_id[c] = tok_vocabulary_find(&m->vocabulary, t.p, t.n);
    }
}

int tok_bpe_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err)
{
    const ty_doc *dropout = ty_doc_find(node, "dropout");
    if (dropout != NULL && dropout->kind != TY_DOC_NULL && !(dropout->kind == TY_DOC_FLOAT && dropout->number == 0)) {
        ty_doc_error(dropout, err, TY_E_UNSUPPORTED, NULL, "dropout of merges makes tokens a matter of chance");
        return ty_error_help(err, "set model.dropout to null");
    }
    m->encode = bpe_encode;
    if (tok_vocabulary_read(node, a, &m->vocabulary, err) < 0 || tok_unknown_read(node, m, false, err) < 0 ||
        tok_get_bool(node, "fuse_unk", false, &m->fuse_unknown, err) < 0 ||
        tok_get_bool(node, "byte_fallback", false, &m->byte_fallback, err) < 0 ||
        tok_get_bool(node, "ignore_merges", false, &m->ignore_merges, err) < 0 ||
        tok_get_string(node, "continuing_subword_prefix", "", &m->prefix, err) < 0 ||
        tok_get_string(node, "end_of_word_suffix", "", &m->suffix, err) < 0)
        return -1;
    m->prefix = ty_arena_strdup(a, m->prefix);
    m->suffix = ty_arena_strdup(a, m->suffix);
    if (m->byte_fallback && (m->prefix[0] != 0 || m->suffix[0] != 0))
        return ty_doc_error(node, err, TY_E_UNSUPPORTED, NULL,
                            "byte_fallback beside continuing_subword_prefix or end_of_word_suffix");
    tok_bytes_find(m);
    bpe_know_chars(m);
    return bpe_read_merges(node, a, m, err);
}
