/* tokenizer.c - a text to the ids of its pieces, by a tokenizer.json; or what goes with them: the attention mask, the
 * token types, the ids to be foretold. */
#include "container/input/tokenizer/tokenizer.h"

#include "container/input/map/kind.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Tokenizers that are in use stay until the process ends: fields, training and validation data share one. */
typedef struct tokenizer_kept {
    ty_tokenizer *tokenizer;
    uint64_t fingerprint;
    struct tokenizer_kept *next;
} tokenizer_kept;

static tokenizer_kept *tokenizer_all;
static pthread_mutex_t tokenizer_lock = PTHREAD_MUTEX_INITIALIZER;

/* The one with this content, which is read each time: paths are used again. */
static int tokenizer_take(const char *path, ty_tokenizer **out, ty_error *err)
{
    ty_tokenizer *t;
    if (ty_tokenizer_load(path, &t, err) < 0)
        return -1;
    pthread_mutex_lock(&tokenizer_lock);
    tokenizer_kept *k = tokenizer_all;
    while (k != NULL && k->fingerprint != ty_tokenizer_fingerprint(t))
        k = k->next;
    tokenizer_kept *made = k == NULL ? calloc(1, sizeof *made) : NULL;
    if (made != NULL) {
        *made = (tokenizer_kept){.tokenizer = t, .fingerprint = ty_tokenizer_fingerprint(t), .next = tokenizer_all};
        tokenizer_all = made;
    }
    pthread_mutex_unlock(&tokenizer_lock);
    *out = k != NULL ? k->tokenizer : t;
    if (made == NULL)
        ty_tokenizer_free(t);
    return k != NULL || made != NULL ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a tokenizer");
}

enum { NOT_COUNTED = -100 }; /* the label that losses pass over, as in PyTorch */

static int pieces_prepare(ty_map *m, ty_error *err)
{
    ty_tokenizer *t;
    if (m->d.tokenizer == NULL || m->d.one_row || m->d.split)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": a tokenizer takes no split and makes no multi_hot",
                            m->d.field);
    if (tokenizer_take(m->d.tokenizer, &t, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", m->d.field);
    m->tokenizer = t;
    m->d.left |= ty_tokenizer_fills_left(t);
    if (m->d.token_part == TY_TOKENS_MASK)
        m->d.pad = 0;
    else if (m->d.token_part == TY_TOKENS_TYPES)
        m->d.pad = ty_tokenizer_pad_type(t);
    else if (m->d.token_part == TY_TOKENS_NEXT)
        m->d.pad = m->d.pad == 0 ? NOT_COUNTED : m->d.pad;
    else if (m->d.pad == 0 && ty_tokenizer_pad(t) > 0)
        m->d.pad = ty_tokenizer_pad(t);
    return 0;
}

static int64_t pieces_n_ids(const ty_map *m)
{
    return m->d.token_part == TY_TOKENS_MASK    ? 2
           : m->d.token_part == TY_TOKENS_TYPES ? ty_tokenizer_n_types(m->tokenizer)
                                                : ty_tokenizer_size(m->tokenizer);
}

/* The row's own room holds the ids while they are narrow. */
static int64_t pieces_ids(const ty_map *m, ty_text text, int64_t *out, int64_t max, ty_error *err)
{
    int32_t *ids = (int32_t *)out;
    bool types = m->d.token_part == TY_TOKENS_TYPES;
    if (max == 0)
        return 0;
    uint8_t *type = types ? malloc((size_t)max) : NULL;
    if (types && type == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for token types");
    int64_t n = ty_tokenizer_encode_within(m->tokenizer, text.p, text.n, max, ids, type, err);
    for (int64_t i = n - 1; i >= 0; i--) {
        int32_t id;
        memcpy(&id, (const char *)out + (size_t)i * sizeof id, sizeof id);
        out[i] = types ? type[i] : m->d.token_part == TY_TOKENS_MASK ? 1 : id;
    }
    for (int64_t i = 0; m->d.token_part == TY_TOKENS_NEXT && i < n; i++)
        out[i] = i + 1 < n ? out[i + 1] : (int64_t)m->d.pad;
    free(type);
    return n < 0 ? ty_error_wrap(err, "field \"%s\"", m->d.field) : n;
}

uint64_t map_tokenizer_fingerprint(const ty_map *m)
{
    return m->tokenizer != NULL ? ty_tokenizer_fingerprint(m->tokenizer) : 0;
}

const map_kind map_tokenizer = {.name = "tokenizer",
                                .wants_text = true,
                                .is_list = true,
                                .prepare = pieces_prepare,
                                .n_ids = pieces_n_ids,
                                .text_ids = pieces_ids};
