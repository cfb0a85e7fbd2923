/* tokenizer.c - a tokenizer.json read, and texts taken through its parts. */
#include "container/input/tokenizer/tokenizer.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "container/input/tokenizer/parts.h"

#include <pthread.h>

enum { TOKENIZER_MAX_NODES = 16000000, TOKENIZER_MAX_DEPTH = 32 };

/* ---- room to work in ---- */

enum { N_TEXTS = 11 };

/* All texts of the room, to do with each what is done with one. */
static void tokenizer_texts(tok_work *w, tok_text *all[N_TEXTS])
{
    tok_text *const texts[] = {&w->pieces[0].text, &w->pieces[0].list, &w->pieces[1].text,
                               &w->pieces[1].list, &w->room[0],        &w->room[1],
                               &w->room[2],        &w->room[3],        &w->ids,
                               &w->ends,           &w->symbols};
    _Static_assert(sizeof texts / sizeof *texts == N_TEXTS, "each is named once");
    _Static_assert(sizeof w->room / sizeof *w->room == 4, "each is named once");
    memcpy(all, texts, sizeof texts);
}

static void tokenizer_work_free(tok_work *w)
{
    if (w == NULL)
        return;
    tok_text *all[N_TEXTS];
    tokenizer_texts(w, all);
    for (int i = 0; i < N_TEXTS; i++)
        free(all[i]->p);
    for (int i = 0; i < TOK_RECENT; i++) {
        free(w->recent[i].text.p);
        free(w->recent[i].ids.p);
    }
    free(w->cache);
    tok_pattern_work_free(w->pattern);
    free(w);
}

/* Every text has some memory, since steps point into texts, and into NULL, be it for no bytes, nothing may point. */
static bool tokenizer_work_ready(tok_work *w)
{
    tok_text *all[N_TEXTS];
    bool is_ready = true;
    tokenizer_texts(w, all);
    for (int i = 0; i < N_TEXTS; i++)
        is_ready = tok_text_room(all[i], 1) && is_ready;
    return is_ready;
}

static tok_work *tokenizer_work_make(void)
{
    tok_work *w = calloc(1, sizeof *w);
    if (w != NULL) {
        w->cache = calloc(TOK_CACHE_ROWS, sizeof *w->cache);
        w->pattern = tok_pattern_work_make();
    }
    if (w != NULL && w->cache != NULL && w->pattern != NULL)
        return w;
    tokenizer_work_free(w);
    return NULL;
}

/* What one long text needed is not kept for all time. */
void tok_give_back(const ty_tokenizer *t, tok_work *w)
{
    enum { KEEP = 1 << 20 };
    ty_tokenizer *shared = (ty_tokenizer *)t; /* the list is behind the lock */
    tok_text *all[N_TEXTS];
    tokenizer_texts(w, all);
    for (int i = 0; i < N_TEXTS; i++) {
        if (all[i]->room > KEEP) {
            free(all[i]->p);
            *all[i] = (tok_text){.n = 0};
        }
        all[i]->n = 0;
        all[i]->failed = false;
    }
    pthread_mutex_lock(&shared->lock);
    w->next = shared->free_work;
    shared->free_work = w;
    pthread_mutex_unlock(&shared->lock);
}

tok_work *tok_borrow(const ty_tokenizer *t, ty_error *err)
{
    ty_tokenizer *shared = (ty_tokenizer *)t;
    pthread_mutex_lock(&shared->lock);
    tok_work *w = shared->free_work;
    if (w != NULL)
        shared->free_work = w->next;
    pthread_mutex_unlock(&shared->lock);
    if (w == NULL)
        w = tokenizer_work_make();
    if (w != NULL && tokenizer_work_ready(w))
        return w;
    tokenizer_work_free(w);
    ty_error_set(err, TY_E_LIMIT, "no memory for a tokenizer to work in");
    return NULL;
}

/* ---- one text ---- */

/* Cuts added tokens out of the repaired text, then out of each normalised piece of it. */
static int tokenizer_prepare(const ty_tokenizer *t, tok_work *w, const char *text, size_t n, ty_error *err)
{
    tok_pieces *raw = &w->pieces[0], *out = &w->pieces[1];
    raw->text.n = raw->list.n = out->text.n = out->list.n = 0;
    tok_add_repaired(&raw->text, text, n);
    if (!raw->text.failed)
        tok_added_cut(&t->added.raw, t->unicode, 0, raw->text.n, true, raw);
    size_t n_pieces = tok_pieces_n(raw);
    for (size_t i = 0; i < n_pieces && !raw->list.failed; i++) {
        tok_piece piece = tok_pieces_get(raw, i);
        size_t at = out->text.n;
        if (piece.id >= 0)
            tok_pieces_add(out, 0, 0, piece.id, false);
        else if (tok_normalize(t->normalizer, w, raw->text.p + piece.at, piece.n, &out->text, err) < 0)
            return -1;
        else if (!out->text.failed)
            tok_added_cut(&t->added.normal, t->unicode, at, out->text.n - at, piece.first, out);
    }
    if (raw->text.failed || raw->list.failed || out->text.failed || out->list.failed)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a text of %zu bytes, or it becomes too long", n);
    return 0;
}

static int tokenizer_word(const ty_tokenizer *t, tok_work *w, const char *p, size_t n, ty_error *err)
{
    if (n > TOK_CACHE_KEY)
        return t->model.encode(&t->model, w, p, n, err);
    uint32_t hash = tok_hash(p, n);
    tok_cached *row = &w->cache[hash % TOK_CACHE_ROWS];
    if (row->hash == hash && row->n_key == n && memcmp(row->key, p, n) == 0) {
        tok_text_add(&w->ids, row->id, row->n_ids * sizeof row->id[0]);
        return 0;
    }
    size_t before = w->ids.n;
    if (t->model.encode(&t->model, w, p, n, err) < 0)
        return -1;
    size_t n_ids = (w->ids.n - before) / sizeof row->id[0];
    if (n_ids <= TOK_CACHE_IDS && !w->ids.failed) {
        *row = (tok_cached){.hash = hash, .n_key = (uint8_t)n, .n_ids = (uint8_t)n_ids};
        memcpy(row->key, p, n);
        memcpy(row->id, w->ids.p + before, w->ids.n - before);
    }
    return 0;
}

/* Short texts are for the cache of words, and long ones are seldom asked for twice. */
static bool tokenizer_is_kept(size_t n)
{
    return n >= TOK_RECENT_LEAST && n <= TOK_RECENT_MOST;
}

static bool tokenizer_recall(tok_work *w, uint32_t hash, const char *text, size_t n)
{
    for (int i = 0; i < TOK_RECENT; i++) {
        const tok_recent *r = &w->recent[i];
        if (r->hash != hash || r->text.n != n || memcmp(r->text.p, text, n) != 0)
            continue;
        tok_text_add(&w->ids, r->ids.p, r->ids.n);
        return true;
    }
    return false;
}

/* ids: bytes of w->ids from there on. */
static void tokenizer_remember(tok_work *w, uint32_t hash, const char *text, size_t n, size_t ids)
{
    tok_recent *r = &w->recent[w->n_recent++ % TOK_RECENT];
    r->hash = hash;
    r->text.n = r->ids.n = 0;
    tok_text_add(&r->text, text, n);
    tok_text_add(&r->ids, w->ids.p + ids, w->ids.n - ids);
    if (r->text.failed || r->ids.failed) {
        r->text.n = 0; /* which is no text's length here */
        r->text.failed = r->ids.failed = false;
    }
}

static int tokenizer_run(const ty_tokenizer *t, tok_work *w, const char *text, size_t n, ty_error *err)
{
    int which = 1;
    if (tokenizer_prepare(t, w, text, n, err) < 0 || tok_split(t->splitter, w, &which, err) < 0)
        return -1;
    const tok_pieces *pieces = &w->pieces[which];
    size_t n_pieces = tok_pieces_n(pieces);
    for (size_t i = 0; i < n_pieces; i++) {
        tok_piece piece = tok_pieces_get(pieces, i);
        if (piece.id >= 0)
            tok_work_add_id(&w->ids, piece.id);
        else if (tokenizer_word(t, w, pieces->text.p + piece.at, piece.n, err) < 0)
            return -1;
    }
    return 0;
}

int tok_encode(const ty_tokenizer *t, tok_work *w, const char *text, size_t n, ty_error *err)
{
    size_t before = w->ids.n;
    uint32_t hash = tokenizer_is_kept(n) ? tok_hash(text, n) : 0;
    if (n > TY_TOKENIZER_MAX_TEXT_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "a text has %zu bytes, more than %zu", n, TY_TOKENIZER_MAX_TEXT_BYTES);
    bool is_known = tokenizer_is_kept(n) && tokenizer_recall(w, hash, text, n);
    if (!is_known && tokenizer_run(t, w, text, n, err) < 0)
        return -1;
    if (w->ids.failed)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the tokens of a text");
    if (!is_known && tokenizer_is_kept(n))
        tokenizer_remember(w, hash, text, n, before);
    return 0;
}

/* ---- what is known of it ---- */

int32_t ty_tokenizer_id(const ty_tokenizer *t, const char *token)
{
    for (size_t i = 0; i < t->added.n; i++)
        if (strcmp(t->added.given[i], token) == 0)
            return t->added.token[i].id;
    return tok_vocabulary_find(&t->model.vocabulary, token, strlen(token));
}

static int tokenizer_compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

bool ty_tokenizer_is_special(const ty_tokenizer *t, int64_t id)
{
    const int32_t key = (int32_t)id;
    return key == id && t->n_special > 0 &&
           bsearch(&key, t->special, t->n_special, sizeof key, tokenizer_compare_ids) != NULL;
}

int32_t ty_tokenizer_pad(const ty_tokenizer *t)
{
    return t->pad;
}

bool ty_tokenizer_fills_left(const ty_tokenizer *t)
{
    return t->fills_left;
}

uint8_t ty_tokenizer_pad_type(const ty_tokenizer *t)
{
    return t->pad_type;
}

static int template_most_type(const tok_template *t, int most)
{
    for (int i = 0; i < t->n; i++)
        most = t->item[i].type > most ? t->item[i].type : most;
    return most;
}

int ty_tokenizer_n_types(const ty_tokenizer *t, bool of_pairs)
{
    return template_most_type(of_pairs ? &t->pair : &t->single, t->pad_type) + 1;
}

int64_t ty_tokenizer_size(const ty_tokenizer *t)
{
    return (int64_t)t->max_id + 1;
}

uint64_t ty_tokenizer_fingerprint(const ty_tokenizer *t)
{
    return t->fingerprint;
}

const char *ty_tokenizer_model(const ty_tokenizer *t)
{
    return t->model.kind;
}

/* ---- reading ---- */

static int tokenizer_read_side(const ty_doc *node, bool *is_left, ty_error *err)
{
    const char *side;
    if (tok_get_string(node, "direction", "Right", &side, err) < 0)
        return -1;
    *is_left = strcmp(side, "Left") == 0;
    if (!*is_left && strcmp(side, "Right") != 0)
        return ty_doc_error(node, err, TY_E_RANGE, NULL, "direction must be Left or Right");
    return 0;
}

static int tokenizer_read_truncation(ty_tokenizer *t, const ty_doc *node, ty_error *err)
{
    if (node == NULL || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_doc_expect(node, TY_DOC_MAP, err) < 0 || tokenizer_read_side(node, &t->cuts_left, err) < 0 ||
        tok_get_int(node, "max_length", 512, &t->max_length, err) < 0)
        return -1;
    t->truncates = true;
    if (t->max_length < t->single.n_special)
        return ty_doc_error(node, err, TY_E_RANGE, NULL, "max_length is %lld, but there are %lld special tokens",
                            (long long)t->max_length, (long long)t->single.n_special);
    return 0;
}

static int tokenizer_read_padding(ty_tokenizer *t, const ty_doc *node, ty_error *err)
{
    static const char *const usual[] = {"[PAD]", "<pad>", "<|pad|>"};
    int64_t id, type;
    t->pad = -1;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && t->pad < 0; i++)
        t->pad = ty_tokenizer_id(t, usual[i]);
    if (node == NULL || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_doc_expect(node, TY_DOC_MAP, err) < 0 || tokenizer_read_side(node, &t->fills_left, err) < 0 ||
        tok_get_int(node, "pad_id", 0, &id, err) < 0 || tok_get_int(node, "pad_type_id", 0, &type, err) < 0)
        return -1;
    if (id < 0 || id > TOK_MAX_ID || type < 0 || type > 255)
        return ty_doc_error(node, err, TY_E_RANGE, NULL, "pad_id must be 0 to %d, pad_type_id 0 to 255", TOK_MAX_ID);
    t->pad = (int32_t)id;
    t->pad_type = (uint8_t)type;
    return 0;
}

static void tokenizer_find_max(ty_tokenizer *t)
{
    t->max_id = t->model.vocabulary.max_id > t->pad ? t->model.vocabulary.max_id : t->pad;
    for (size_t i = 0; i < t->added.n; i++)
        t->max_id = t->added.token[i].id > t->max_id ? t->added.token[i].id : t->max_id;
    for (int i = 0; i < t->single.n; i++)
        t->max_id = t->single.item[i].id > t->max_id ? t->single.item[i].id : t->max_id;
    for (int i = 0; i < t->pair.n; i++)
        t->max_id = t->pair.item[i].id > t->max_id ? t->pair.item[i].id : t->max_id;
}

static void tokenizer_list_special(ty_tokenizer *t)
{
    t->special = TY_NEW_ARRAY(&t->arena, int32_t, t->added.n + 1);
    for (size_t i = 0; i < t->added.n; i++)
        if (t->added.token[i].special)
            t->special[t->n_special++] = t->added.token[i].id;
    qsort(t->special, t->n_special, sizeof *t->special, tokenizer_compare_ids);
}

static int tokenizer_read(ty_tokenizer *t, const ty_doc *root, ty_error *err)
{
    if (ty_doc_expect(root, TY_DOC_MAP, err) < 0)
        return -1;
    t->unicode = tok_unicode_get();
    tok_work *w = tok_borrow(t, err);
    if (w == NULL)
        return -1;
    int rc = t->unicode != NULL ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for the table of characters");
    if (rc == 0)
        rc = tok_model_read(ty_doc_find(root, "model"), &t->arena, &t->model, err);
    if (rc == 0)
        rc = tok_normalizer_read(ty_doc_find(root, "normalizer"), &t->arena, &t->normalizer, err);
    if (rc == 0)
        rc = tok_splitter_read(ty_doc_find(root, "pre_tokenizer"), &t->arena, &t->splitter, err);
    if (rc == 0)
        rc = tok_template_read(ty_doc_find(root, "post_processor"), &t->arena, &t->single, &t->pair, err);
    if (rc == 0)
        rc = tok_added_read(ty_doc_find(root, "added_tokens"), &t->model, t->normalizer, w, &t->arena, &t->added, err);
    tok_give_back(t, w);
    if (rc < 0 || tokenizer_read_truncation(t, ty_doc_find(root, "truncation"), err) < 0 ||
        tokenizer_read_padding(t, ty_doc_find(root, "padding"), err) < 0)
        return -1;
    tokenizer_find_max(t);
    tokenizer_list_special(t);
    return 0;
}

static int tokenizer_make(const ty_doc *root, uint64_t fingerprint, ty_tokenizer **out, ty_error *err)
{
    ty_tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a tokenizer");
    ty_arena_init(&t->arena);
    pthread_mutex_init(&t->lock, NULL);
    t->fingerprint = fingerprint;
    if (tokenizer_read(t, root, err) < 0) {
        ty_tokenizer_free(t);
        return -1;
    }
    *out = t;
    return 0;
}

int ty_tokenizer_parse(const char *name, const char *json, size_t n, ty_tokenizer **out, ty_error *err)
{
    static const ty_doc_limits limits = {TY_TOKENIZER_MAX_FILE_BYTES, TOKENIZER_MAX_DEPTH, TOKENIZER_MAX_NODES};
    ty_arena arena; /* of the tree, which is many times as large as what is kept */
    ty_doc *root;
    ty_arena_init(&arena);
    int rc = ty_json_parse(&arena, name, json, n, &limits, &root, err);
    if (rc == 0)
        rc = tokenizer_make(root, ty_fnv1a(TY_FNV_START, json, n), out, err);
    ty_arena_fini(&arena);
    if (rc == 0)
        return 0;
    ty_error_at(err, "%s", name);
    return ty_error_wrap(err, "tokenizer");
}

int ty_tokenizer_load(const char *path, ty_tokenizer **out, ty_error *err)
{
    ty_buf json;
    ty_buf_init(&json, TY_TOKENIZER_MAX_FILE_BYTES);
    int rc = ty_file_read(path, &json, err);
    if (rc == 0)
        rc = ty_tokenizer_parse(path, json.data, json.len, out, err);
    ty_buf_fini(&json);
    return rc;
}

void ty_tokenizer_free(ty_tokenizer *t)
{
    if (t == NULL)
        return;
    tok_normalizer_drop(t->normalizer);
    tok_splitter_drop(t->splitter);
    for (tok_work *w = t->free_work; w != NULL;) {
        tok_work *next = w->next;
        tokenizer_work_free(w);
        w = next;
    }
    pthread_mutex_destroy(&t->lock);
    ty_arena_fini(&t->arena);
    free(t);
}
