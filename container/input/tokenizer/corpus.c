/* corpus.c - see corpus.h. */
#include "container/input/tokenizer/corpus.h"

#include "base/json.h"
#include "container/input/convert.h"
#include "container/input/npy.h"
#include "container/input/tokenizer/unicode.h"

#include <stdio.h>

enum { CORPUS_BLOCK = 4096 };

/* ---- tokens that are made ---- */

/* A part that grows, of uint16 or uint32. */
typedef struct corpus_sink {
    ty_corpus_part *part;
    int64_t room;
} corpus_sink;

static int corpus_room(corpus_sink *s, int64_t n, ty_error *err)
{
    ty_corpus_part *p = s->part;
    if (p->n + n <= s->room)
        return 0;
    int64_t room = s->room + s->room / 2 + n + 1024;
    void *grown = realloc(p->owned, (size_t)room * ty_dtype_bytes(p->dtype));
    if (grown == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %lld tokens", (long long)room);
    p->owned = grown;
    s->room = room;
    return 0;
}

static int corpus_put(corpus_sink *s, const int32_t *ids, int64_t n, ty_error *err)
{
    if (corpus_room(s, n, err) < 0)
        return -1;
    ty_convert_scaled(TY_I32, ids, s->part->dtype,
                      (uint8_t *)s->part->owned + (size_t)s->part->n * ty_dtype_bytes(s->part->dtype), n, 1, 0);
    s->part->n += n;
    return 0;
}

/* Where a text of more than TY_WINDOWS_CUT_BYTES is cut: behind the last line end before, or there. */
static size_t corpus_cut(const char *p, size_t n)
{
    size_t at = TY_WINDOWS_CUT_BYTES;
    if (n <= at)
        return n;
    while (at > 1 && !(p[at - 1] == '\n' && p[at] != '\n' && p[at] != ' ' && p[at] != '\t' && p[at] != '\r'))
        at--;
    if (at > 1)
        return at;
    for (at = TY_WINDOWS_CUT_BYTES; at > TY_WINDOWS_CUT_BYTES - 4 && ((uint8_t)p[at] & 0xc0) == 0x80;)
        at--;
    return at;
}

static int corpus_tokenize(const ty_tokenizer *t, const char *p, size_t n, corpus_sink *s, ty_error *err)
{
    int64_t room = 1 << 16;
    int32_t *ids = malloc((size_t)room * sizeof *ids);
    int rc = ids != NULL ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for tokens");
    while (rc == 0 && n > 0) {
        size_t k = corpus_cut(p, n);
        int64_t count = ty_tokenizer_encode(t, p, k, false, ids, room, err);
        if (count > room) {
            int32_t *grown = realloc(ids, (size_t)count * sizeof *ids);
            if (grown != NULL) {
                ids = grown;
                room = count;
            }
            count = grown != NULL ? ty_tokenizer_encode(t, p, k, false, ids, room, err)
                                  : ty_error_set(err, TY_E_LIMIT, "no memory for %lld tokens", (long long)count);
        }
        rc = count < 0 ? -1 : corpus_put(s, ids, count, err);
        p += k;
        n -= k;
    }
    free(ids);
    return rc;
}

/* ---- characters ---- */

/* Marks those of a text; ASCII and repaired bytes alike. */
static void corpus_mark(uint8_t *seen, const tok_text *t)
{
    for (size_t i = 0; i < t->n;) {
        int k;
        seen[tok_char(t->p + i, &k)] = 1;
        i += (size_t)k;
    }
}

/* Characters of a piece as numbers; *at is where one is that has none. */
static int64_t corpus_number(const int32_t *number, const tok_text *t, int32_t *ids, size_t *at)
{
    int64_t n = 0;
    for (*at = 0; *at < t->n;) {
        int k;
        int32_t id = number[tok_char(t->p + *at, &k)];
        if (id < 0)
            return -1;
        ids[n++] = id;
        *at += (size_t)k;
    }
    return n;
}

static int corpus_refuse_character(const tok_text *t, size_t at, ty_error *err)
{
    int k;
    uint32_t c = tok_char(t->p + at, &k);
    ty_error_set(err, TY_E_DATA_VALUE, "the character \"%.*s\" (U+%04X) is not in the training data", k, t->p + at, c);
    return ty_error_help(err, "symbols: bytes takes everything; or take the character out");
}

typedef int corpus_piece_fn(void *context, const tok_text *repaired, ty_error *err);

/* The text in repaired pieces. */
static int corpus_pieces(const uint8_t *p, size_t n, corpus_piece_fn *take, void *context, ty_error *err)
{
    tok_text t = {.n = 0};
    int rc = 0;
    while (rc == 0 && n > 0) {
        size_t k = corpus_cut((const char *)p, n);
        t.n = 0;
        tok_add_repaired(&t, (const char *)p, k);
        rc = t.failed ? ty_error_set(err, TY_E_LIMIT, "no memory for a text") : take(context, &t, err);
        p += k;
        n -= k;
    }
    free(t.p);
    return rc;
}

static int corpus_see_piece(void *context, const tok_text *t, ty_error *err)
{
    (void)err;
    corpus_mark(context, t);
    return 0;
}

typedef struct corpus_numbering {
    const int32_t *number; /* [TOK_CHARACTERS] */
    corpus_sink sink;
    int32_t *ids;
    size_t room;
} corpus_numbering;

static int corpus_number_piece(void *context, const tok_text *t, ty_error *err)
{
    corpus_numbering *c = context;
    size_t at;
    if (t->n > c->room) {
        free(c->ids);
        c->ids = malloc(t->n * sizeof *c->ids);
        c->room = c->ids != NULL ? t->n : 0;
        if (c->ids == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for tokens");
    }
    int64_t n = corpus_number(c->number, t, c->ids, &at);
    return n < 0 ? corpus_refuse_character(t, at, err) : corpus_put(&c->sink, c->ids, n, err);
}

static int corpus_find_symbols(ty_corpus *c, const ty_corpus *like, ty_arena *a, ty_error *err)
{
    if (like != NULL) {
        c->symbol = ty_arena_copy(a, like->symbol, (size_t)like->n_symbols * sizeof *c->symbol);
        c->n_symbols = like->n_symbols;
        return 0;
    }
    uint8_t *seen = calloc(TOK_CHARACTERS, 1);
    int rc = seen != NULL ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for the characters of a text");
    for (int i = 0; rc == 0 && i < c->n_parts; i++)
        rc = corpus_pieces(c->part[i].bytes.data, c->part[i].bytes.n, corpus_see_piece, seen, err);
    for (uint32_t k = 0; rc == 0 && k < TOK_CHARACTERS; k++)
        c->n_symbols += seen[k];
    c->symbol = TY_NEW_ARRAY(a, uint32_t, c->n_symbols + 1);
    int64_t n = 0;
    for (uint32_t k = 0; rc == 0 && k < TOK_CHARACTERS; k++)
        if (seen[k])
            c->symbol[n++] = k;
    free(seen);
    return rc;
}

static int corpus_number_all(ty_corpus *c, ty_error *err)
{
    int32_t *number = malloc(TOK_CHARACTERS * sizeof *number);
    corpus_numbering n = {.number = number};
    if (number == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the characters of a text");
    memset(number, 0xff, TOK_CHARACTERS * sizeof *number);
    for (int64_t i = 0; i < c->n_symbols; i++)
        number[c->symbol[i]] = (int32_t)i;
    int rc = 0;
    for (int i = 0; rc == 0 && i < c->n_parts; i++) {
        ty_corpus_part *p = &c->part[i];
        p->dtype = c->n_symbols < 65536 ? TY_U16 : TY_U32;
        n.sink = (corpus_sink){p, 0};
        rc = corpus_room(&n.sink, (int64_t)p->bytes.n + 1, err);
        if (rc == 0 && corpus_pieces(p->bytes.data, p->bytes.n, corpus_number_piece, &n, err) < 0)
            rc = ty_error_at(err, "%s", p->file->path);
        if (rc == 0 && c->end >= 0)
            rc = corpus_put(&n.sink, &c->end, 1, err);
    }
    free(number);
    free(n.ids);
    return rc;
}

/* ---- opening ---- */

static int corpus_open_files(ty_corpus *c, const ty_bytes_options *options, const ty_data_file *files, int n_files,
                             ty_arena *a, ty_error *err)
{
    *c = (ty_corpus){.end = -1, .min_at = -1, .max_at = -1};
    c->part = TY_NEW_ARRAY(a, ty_corpus_part, n_files);
    for (; c->n_parts < n_files; c->n_parts++) {
        c->part[c->n_parts].file = &files[c->n_parts];
        if (ty_bytes_open(files[c->n_parts].path, options, &c->part[c->n_parts].bytes, err) < 0)
            return -1;
    }
    return 0;
}

/* Numbers of first tokens, the range of ids; files that became tokens are closed. */
static void corpus_settle(ty_corpus *c)
{
    int64_t block[CORPUS_BLOCK];
    for (int i = 0; i < c->n_parts; i++) {
        ty_corpus_part *p = &c->part[i];
        if (p->owned != NULL) {
            ty_bytes_close(&p->bytes);
            p->data = p->owned;
            c->owned_bytes += p->n * (int64_t)ty_dtype_bytes(p->dtype);
        } else if (!p->bytes.mapped) {
            c->owned_bytes += (int64_t)p->bytes.n;
        }
        p->first = c->n;
        for (int64_t at = 0; at < p->n; at += CORPUS_BLOCK) {
            int64_t n = p->n - at < CORPUS_BLOCK ? p->n - at : CORPUS_BLOCK;
            ty_convert_to_i64(p->dtype, p->data + (size_t)at * ty_dtype_bytes(p->dtype), block, n);
            for (int64_t k = 0; k < n; k++) {
                if (c->min_at < 0 || block[k] < c->min)
                    c->min = block[k], c->min_at = c->n + at + k;
                if (c->max_at < 0 || block[k] > c->max)
                    c->max = block[k], c->max_at = c->n + at + k;
            }
        }
        c->n += p->n;
    }
}

static int corpus_bytes(ty_corpus *c, const ty_windows *w, ty_error *err)
{
    c->end = w->end_token != NULL ? 256 : -1;
    c->n_ids = 256 + (c->end >= 0);
    for (int i = 0; i < c->n_parts; i++) {
        ty_corpus_part *p = &c->part[i];
        if (c->end < 0) { /* the file as it is */
            p->dtype = TY_U8;
            p->data = p->bytes.data;
            p->n = (int64_t)p->bytes.n;
            continue;
        }
        corpus_sink s = {p, 0};
        p->dtype = TY_U16;
        if (corpus_room(&s, (int64_t)p->bytes.n + 1, err) < 0)
            return -1;
        ty_convert_scaled(TY_U8, p->bytes.data, TY_U16, p->owned, (int64_t)p->bytes.n, 1, 0);
        p->n = (int64_t)p->bytes.n;
        if (corpus_put(&s, &c->end, 1, err) < 0)
            return -1;
    }
    return 0;
}

static int corpus_by_tokenizer(ty_corpus *c, const ty_windows *w, ty_error *err)
{
    if (ty_tokenizer_load(w->tokenizer, &c->tokenizer, err) < 0)
        return -1;
    c->n_ids = ty_tokenizer_size(c->tokenizer);
    c->end = w->end_token != NULL ? ty_tokenizer_id(c->tokenizer, w->end_token) : -1;
    if (w->end_token != NULL && c->end < 0)
        return ty_error_set(err, TY_E_CONFIG, "end_token: \"%s\" is no token of %s", w->end_token, w->tokenizer);
    for (int i = 0; i < c->n_parts; i++) {
        ty_corpus_part *p = &c->part[i];
        corpus_sink s = {p, 0};
        p->dtype = c->n_ids <= 65536 ? TY_U16 : TY_U32;
        if (corpus_room(&s, 1, err) < 0)
            return -1;
        if (corpus_tokenize(c->tokenizer, (const char *)p->bytes.data, p->bytes.n, &s, err) < 0)
            return ty_error_at(err, "%s", p->file->path);
        if (c->end >= 0 && corpus_put(&s, &c->end, 1, err) < 0)
            return -1;
    }
    return 0;
}

int ty_corpus_open_text(const ty_windows *w, const ty_bytes_options *options, const ty_data_file *files, int n_files,
                        const ty_corpus *like, ty_arena *a, ty_corpus *out, ty_error *err)
{
    if (corpus_open_files(out, options, files, n_files, a, err) < 0)
        return -1;
    int rc;
    if (w->tokenizer != NULL)
        rc = corpus_by_tokenizer(out, w, err);
    else if (w->symbols == TY_SYMBOLS_BYTES)
        rc = corpus_bytes(out, w, err);
    else {
        rc = corpus_find_symbols(out, like, a, err);
        out->end = w->end_token != NULL ? (int32_t)out->n_symbols : -1;
        out->n_ids = out->n_symbols + (out->end >= 0);
        if (rc == 0)
            rc = corpus_number_all(out, err);
    }
    if (rc == 0)
        corpus_settle(out);
    return rc;
}

static int corpus_npy(ty_corpus_part *p, ty_error *err)
{
    ty_array array;
    if (ty_npy_parse(p->bytes.data, p->bytes.n, &array, err) < 0)
        return -1;
    if (array.rank != 1 || !ty_dtype_is_integer(array.dtype) || array.dtype == TY_BOOL)
        return ty_error_set(err, TY_E_DATA, "expected one dimension of integers, found %d dimension%s of %s",
                            array.rank, array.rank == 1 ? "" : "s", ty_dtype_text(array.dtype));
    p->dtype = array.dtype;
    p->n = array.dim[0];
    p->data = array.data;
    if (ty_array_is_native(&array))
        return 0;
    p->owned = malloc(array.n_bytes + 1);
    if (p->owned == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %lld tokens", (long long)p->n);
    ty_array_copy_native(&array, p->owned);
    return 0;
}

static int corpus_tokens(ty_corpus_part *p, bool wide, ty_error *err)
{
    if (p->bytes.n >= 6 && memcmp(p->bytes.data, "\x93NUMPY", 6) == 0)
        return corpus_npy(p, err);
    size_t size = wide ? 4 : 2;
    p->dtype = wide ? TY_U32 : TY_U16;
    p->data = p->bytes.data;
    p->n = (int64_t)(p->bytes.n / size);
    if (p->bytes.n % size == 0)
        return 0;
    ty_error_set(err, TY_E_DATA, "expected a multiple of %zu bytes, a %s a token, found %zu bytes", size,
                 wide ? "uint32" : "uint16", p->bytes.n);
    return ty_error_help(err, "token_type: uint16 or uint32 says how wide tokens are");
}

int ty_corpus_open_tokens(const ty_windows *w, const ty_bytes_options *options, const ty_data_file *files, int n_files,
                          ty_arena *a, ty_corpus *out, ty_error *err)
{
    if (corpus_open_files(out, options, files, n_files, a, err) < 0)
        return -1;
    for (int i = 0; i < n_files; i++)
        if (corpus_tokens(&out->part[i], w->wide, err) < 0)
            return ty_error_at(err, "%s", files[i].path);
    if (w->tokenizer != NULL && ty_tokenizer_load(w->tokenizer, &out->tokenizer, err) < 0)
        return -1;
    corpus_settle(out);
    out->n_ids = out->tokenizer != NULL ? ty_tokenizer_size(out->tokenizer) : 0;
    bool below = out->min_at >= 0 && out->min<0, above = out->n_ids> 0 && out->max_at >= 0 && out->max >= out->n_ids;
    if (!below && !above)
        return 0;
    int64_t at = below ? out->min_at : out->max_at;
    const ty_corpus_part *p = ty_corpus_find(out, at);
    if (below)
        ty_error_set(err, TY_E_DATA_VALUE, "token %lld is %lld, expected 0 or more", (long long)(at - p->first),
                     (long long)out->min);
    else
        ty_error_set(err, TY_E_DATA_VALUE, "token %lld is %lld, but the tokenizer's last one is %lld",
                     (long long)(at - p->first), (long long)out->max, (long long)out->n_ids - 1);
    return ty_error_at(err, "%s", p->file->path);
}

void ty_corpus_close(ty_corpus *c)
{
    for (int i = 0; c != NULL && i < c->n_parts; i++) {
        ty_bytes_close(&c->part[i].bytes);
        free(c->part[i].owned);
    }
    if (c != NULL)
        ty_tokenizer_free(c->tokenizer);
}

/* ---- reading ---- */

const ty_corpus_part *ty_corpus_find(const ty_corpus *c, int64_t at)
{
    int low = 0, high = c->n_parts - 1;
    while (low < high) {
        int mid = (low + high + 1) / 2;
        if (c->part[mid].first <= at)
            low = mid;
        else
            high = mid - 1;
    }
    return &c->part[low];
}

void ty_corpus_read(const ty_corpus *c, int64_t at, int64_t n, ty_dtype to, void *out)
{
    uint8_t *dst = out;
    const ty_corpus_part *p = ty_corpus_find(c, at);
    for (int64_t done = 0; done < n; p++) {
        int64_t from = at + done - p->first, k = p->n - from < n - done ? p->n - from : n - done;
        if (k <= 0)
            continue;
        ty_convert_scaled(p->dtype, p->data + (size_t)from * ty_dtype_bytes(p->dtype), to, dst, k, 1, 0);
        dst += (size_t)k * ty_dtype_bytes(to);
        done += k;
    }
}

int ty_corpus_describe(const ty_corpus *c, ty_buf *out, ty_error *err)
{
    ty_json_writer w;
    ty_json_writer_init(&w, out, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "version", "1.0");
    ty_json_put_null(&w, "truncation");
    ty_json_put_null(&w, "padding");
    ty_json_open_list(&w, "added_tokens");
    ty_json_close(&w);
    ty_json_put_null(&w, "normalizer");
    /* Oniguruma's (?m): the dot takes line ends. */
    ty_json_put_raw(
        &w, "pre_tokenizer",
        "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?m:.)\"},\"behavior\":\"Isolated\",\"invert\":false}");
    ty_json_put_null(&w, "post_processor");
    ty_json_put_raw(&w, "decoder", "{\"type\":\"Fuse\"}");
    ty_json_open_map(&w, "model");
    ty_json_put_string(&w, "type", "WordLevel");
    ty_json_open_map(&w, "vocab");
    for (int64_t i = 0; i < c->n_symbols; i++) {
        char text[8] = {0};
        tok_text t = {.p = text, .room = sizeof text};
        tok_add_char(&t, c->symbol[i]);
        if (c->symbol[i] != 0) /* no key can hold it */
            ty_json_put_int(&w, text, i);
    }
    ty_json_close(&w);
    ty_json_put_string(&w, "unk_token", "");
    ty_json_close(&w);
    ty_json_close(&w);
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "no memory for the list of characters") : 0;
}
