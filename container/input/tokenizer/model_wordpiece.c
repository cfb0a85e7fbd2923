/* model_wordpiece.c - WordPiece, the longest token first from left to right (Schuster, Nakajima 2012; as BERT has it),
 * and WordLevel, whole words. */
#include "container/input/tokenizer/parts.h"

/* The longest token that begins at p, from a node of the trie on; *n_taken bytes of it. -1: none. */
static int32_t wordpiece_longest(const tok_trie *t, uint32_t node, const char *p, size_t n, size_t *n_taken)
{
    int32_t best = -1;
    for (size_t i = 0; i < n; i++) {
        node = tok_trie_step(t, node, (uint8_t)p[i]);
        if (node == 0)
            break;
        if (t->id[node] >= 0) {
            best = t->id[node];
            *n_taken = i + 1;
        }
    }
    return best;
}

static int wordpiece_encode(const tok_model *m, tok_work *w, const char *word, size_t n, ty_error *err)
{
    (void)err;
    size_t n_chars = 0, before = w->ids.n;
    for (size_t i = 0; i < n; i++)
        n_chars += (word[i] & 0xc0) != 0x80;
    bool is_known = n_chars <= m->max_chars;
    for (size_t at = 0, k = 0; is_known && at < n; at += k) {
        bool none = at > 0 && m->inner == UINT32_MAX;
        int32_t id = none ? -1 : wordpiece_longest(&m->trie, at > 0 ? m->inner : 0, word + at, n - at, &k);
        is_known = id >= 0;
        if (is_known)
            tok_work_add_id(&w->ids, id);
    }
    if (!is_known) {
        w->ids.n = before;
        tok_work_add_id(&w->ids, m->unknown);
    }
    return 0;
}

int tok_wordpiece_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err)
{
    int64_t max_chars;
    m->encode = wordpiece_encode;
    if (tok_vocabulary_read(node, a, &m->vocabulary, err) < 0 || tok_unknown_read(node, m, true, err) < 0 ||
        tok_get_int(node, "max_input_chars_per_word", 100, &max_chars, err) < 0 ||
        tok_get_string(node, "continuing_subword_prefix", "##", &m->prefix, err) < 0)
        return -1;
    m->max_chars = max_chars > 0 ? (size_t)max_chars : 0;
    if (tok_trie_build(&m->trie, &m->vocabulary, a, err) < 0)
        return -1;
    for (const char *p = m->prefix; *p != 0 && m->inner != UINT32_MAX; p++) {
        m->inner = tok_trie_step(&m->trie, m->inner, (uint8_t)*p);
        m->inner = m->inner == 0 ? UINT32_MAX : m->inner; /* no token begins so */
    }
    m->prefix = "";
    return 0;
}

static int wordlevel_encode(const tok_model *m, tok_work *w, const char *word, size_t n, ty_error *err)
{
    int32_t id = tok_vocabulary_find(&m->vocabulary, word, n);
    id = id >= 0 ? id : m->unknown;
    if (id < 0) {
        ty_error_set(err, TY_E_DATA_VALUE, "the word \"%.*s\" is not in the vocabulary", n < 60 ? (int)n : 60, word);
        return ty_error_help(err, "the tokenizer has no unknown token: model.unk_token");
    }
    tok_work_add_id(&w->ids, id);
    return 0;
}

int tok_wordlevel_read(const ty_doc *node, ty_arena *a, tok_model *m, ty_error *err)
{
    const char *unknown;
    m->encode = wordlevel_encode;
    if (tok_vocabulary_read(node, a, &m->vocabulary, err) < 0 ||
        tok_get_string(node, "unk_token", NULL, &unknown, err) < 0)
        return -1;
    m->unknown = unknown != NULL ? tok_vocabulary_find(&m->vocabulary, unknown, strlen(unknown)) : -1;
    return 0;
}
