/* model_unigram.c - the unigram language model: of all ways to cut a word into tokens, the likeliest (Viterbi).
 *
 * Source: Kudo, "Subword regularization", ACL 2018; as SentencePiece and Hugging Face's `tokenizers` do it: a character
 * without a token of its own costs ten more than the unlikeliest token, and such characters in a row become one
 * unknown, or their bytes.
 */
#include "container/input/tokenizer/parts.h"

#include <math.h>

#define UNIGRAM_PENALTY 10.0

/* The best way to get to a byte of the word. */
typedef struct unigram_node {
    double score;
    uint32_t from; /* UINT32_MAX: none yet */
    int32_t id;
} unigram_node;

static void unigram_offer(unigram_node *to, double score, size_t from, int32_t id)
{
    if (to->from == UINT32_MAX || score > to->score)
        *to = (unigram_node){score, (uint32_t)from, id};
}

static int unigram_forward(const tok_model *m, const char *word, size_t n, unigram_node *node, ty_error *err)
{
    for (size_t i = 0; i <= n; i++)
        node[i] = (unigram_node){0, UINT32_MAX, -1};
    for (size_t at = 0; at < n;) {
        size_t k = (size_t)tok_char_bytes(word[at]);
        double here = node[at].score;
        bool has_single = false;
        uint32_t t = 0;
        for (size_t i = at; i < n && (t = tok_trie_step(&m->trie, t, (uint8_t)word[i])) != 0; i++) {
            int32_t id = m->trie.id[t];
            if (id < 0)
                continue;
            unigram_offer(&node[i + 1], m->score[id] + here, at, id);
            has_single |= i + 1 - at == k;
        }
        if (!has_single && m->unknown < 0)
            return ty_error_set(err, TY_E_DATA_VALUE,
                                "the character \"%.*s\" has no token, and there is no unknown one", (int)k, word + at);
        if (!has_single)
            unigram_offer(&node[at + k], m->unknown_score + here, at, m->unknown);
        at += k;
    }
    return 0;
}

/* Ids of an unknown piece: what it is as a whole, its bytes, or the unknown token. */
static void unigram_unknown(const tok_model *m, const char *p, size_t n, tok_text *ids)
{
    int32_t id = tok_vocabulary_find(&m->vocabulary, p, n);
    if (id >= 0)
        tok_work_add_id(ids, id);
    else if (!m->byte_fallback || !tok_bytes_add(m, p, n, ids))
        tok_work_add_id(ids, m->unknown);
}

static int unigram_encode(const tok_model *m, tok_work *w, const char *word, size_t n, ty_error *err)
{
    w->symbols.n = 0;
    if (!tok_text_room(&w->symbols, (n + 1) * sizeof(unigram_node)))
        return ty_error_set(err, TY_E_LIMIT, "no memory for a word of %zu bytes", n);
    unigram_node *node = (unigram_node *)(void *)w->symbols.p;
    if (unigram_forward(m, word, n, node, err) < 0)
        return -1;
    /* The path backwards, turned round: each node on it learns where it leads to. */
    uint32_t to = (uint32_t)n;
    for (uint32_t at = (uint32_t)n; at > 0;) {
        uint32_t from = node[at].from;
        node[at].from = to;
        to = at;
        at = from;
    }
    for (uint32_t from = 0, at = to; from < n; from = at, at = node[at].from) {
        if (node[at].id != m->unknown) {
            tok_work_add_id(&w->ids, node[at].id);
            continue;
        }
        while (at < n && node[node[at].from].id == m->unknown)
            at = node[at].from;
        unigram_unknown(m, word + from, at - from, &w->ids);
    }
    return 0;
}

/* ---- reading ---- */

static int unigram_read_token(const ty_doc *d, int32_t id, ty_arena *a, tok_model *m, ty_error *err)
{
    const char *text;
    if (d->kind != TY_DOC_LIST || d->n_items != 2)
        return ty_doc_error(d, err, TY_E_TYPE, NULL, "expected [\"token\", score]");
    if (ty_doc_string(&d->items[0], &text, err) < 0 || ty_doc_float(&d->items[1], &m->score[id], err) < 0)
        return -1;
    if (!isfinite(m->score[id]))
        return ty_doc_error(&d->items[1], err, TY_E_RANGE, NULL, "the score must be finite");
    if (text[0] != 0)
        tok_vocabulary_add(&m->vocabulary, ty_arena_strdup(a, text), strlen(text), id);
    m->unknown_score = id == 0 || m->score[id] < m->unknown_score ? m->score[id] : m->unknown_score;
    return 0;
}

int tok_unigram_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err)
{
    const ty_doc *list = ty_doc_find(node, "vocab");
    int64_t unknown;
    m->encode = unigram_encode;
    if (list == NULL || list->kind != TY_DOC_LIST || list->n_items > TOK_MAX_ID)
        return ty_doc_error(node, err, TY_E_TYPE, NULL, "expected a list \"vocab\" of [\"token\", score]");
    tok_vocabulary_init(&m->vocabulary, list->n_items, a);
    m->score = TY_NEW_ARRAY(a, double, list->n_items + 1);
    for (uint32_t i = 0; i < list->n_items; i++)
        if (unigram_read_token(&list->items[i], (int32_t)i, a, m, err) < 0)
            return -1;
    m->vocabulary.max_id = (int32_t)list->n_items - 1;
    m->unknown_score -= UNIGRAM_PENALTY;
    if (tok_get_int(node, "unk_id", -1, &unknown, err) < 0 ||
        tok_get_bool(node, "byte_fallback", false, &m->byte_fallback, err) < 0)
        return -1;
    if (unknown >= (int64_t)list->n_items || unknown < -1)
        return ty_doc_error(node, err, TY_E_RANGE, NULL, "unk_id is %lld, but there are %u tokens", (long long)unknown,
                            list->n_items);
    m->unknown = (int32_t)unknown;
    tok_bytes_find(m);
    return tok_trie_build(&m->trie, &m->vocabulary, a, err);
}
