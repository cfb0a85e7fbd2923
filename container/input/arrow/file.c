/* file.c - messages of an Arrow file: its schema, and where record batches lie. */
#include "container/input/arrow/schema.h"
#include "container/input/bytes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGE ((size_t)1 << 28)

/* The union MessageHeader; fields of the tables Message and RecordBatch. */
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER = 2, MESSAGE_BODY = 3 };
enum { DICTIONARY_ID = 0, DICTIONARY_DATA = 1, DICTIONARY_IS_DELTA = 2 };
enum { BATCH_LENGTH = 0, BATCH_NODES = 1, BATCH_BUFFERS = 2, BATCH_COMPRESSION = 3 };

static const uint8_t file_magic[8] = "ARROW1\0\0";

/* A stream begins with a message, that is with 0xFFFFFFFF and a length that is a multiple of 8. */
bool arrow_has_magic(const uint8_t *p, size_t n)
{
    if (n >= sizeof file_magic && memcmp(p, file_magic, sizeof file_magic) == 0)
        return true;
    return n >= 16 && memcmp(p, "\xff\xff\xff\xff", 4) == 0 && p[4] % 8 == 0 && p[7] == 0 &&
           (p[4] | p[5] | p[6]) != 0 && p[8] < 64 && p[9] == 0 && p[10] == 0 && p[11] == 0;
}

int arrow_get(arrow_bytes b, int64_t at, size_t n, uint8_t *out, ty_error *err)
{
    if (at < 0 || at > b.n || n > (uint64_t)(b.n - at))
        return ty_error_set(err, TY_E_DATA, "the file ends at byte %lld, expected %zu bytes at %lld", (long long)b.n, n,
                            (long long)at);
    if (!b.data)
        return ty_bytes_pread(b.fd, out, n, at, err);
    if (n > 0)
        memcpy(out, b.data + at, n);
    return 0;
}

typedef struct file_walk {
    arrow_bytes bytes;
    int64_t at;
    ty_arena *a;
    arrow_file *file;
    parquet_file *table;
    uint8_t *message;
    size_t room;
    int batch_room;
    bool has_schema;
    const arrow_batch **dictionary; /* [n_dictionaries] those that are there; a new array for each that comes */
} file_walk;

static int file_damaged(const file_walk *w, const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "the Arrow message at byte %lld is damaged: %s", (long long)w->at, what);
    return ty_error_help(err, "the file was cut short or changed while it was written or copied: make it anew");
}

/* ---- batches ---- */

static void file_add_batch(file_walk *w)
{
    parquet_file *t = w->table;
    if (t->n_groups < w->batch_room)
        return;
    int room = 2 * w->batch_room + 16;
    parquet_group *groups = TY_NEW_ARRAY(w->a, parquet_group, room);
    arrow_batch *batches = TY_NEW_ARRAY(w->a, arrow_batch, room);
    if (t->n_groups > 0) {
        memcpy(groups, t->group, (size_t)t->n_groups * sizeof *groups);
        memcpy(batches, w->file->batch, (size_t)t->n_groups * sizeof *batches);
    }
    t->group = groups;
    w->file->batch = batches;
    w->batch_room = room;
}

/* Pairs of numbers: nodes or buffers. */
static int64_t (*file_pairs(file_walk *w, const flat *f, flat_vector v))[2]
{
    int64_t(*pair)[2] = ty_arena_alloc(w->a, ((size_t)v.n + 1) * sizeof *pair);
    for (int64_t i = 0; i < v.n; i++)
        for (int k = 0; k < 2; k++)
            pair[i][k] = flat_long(f, v.at + 16 * (size_t)i + 8 * (size_t)k);
    return pair;
}

/* What a column's values take, for who asks for memory. */
static void file_chunk(const arrow_batch *b, const arrow_column *c, parquet_chunk *out)
{
    int64_t buffers = c->is_coded ? 2 : arrow_buffers(c);
    out->n_values = b->node[c->value.node][0];
    for (int64_t i = 0; i < buffers; i++)
        out->n_bytes += b->buffer[c->value.buffer + i][1];
    out->n_unpacked = out->n_bytes;
}

static int file_check_batch(const file_walk *w, const arrow_batch *b, int64_t n_nodes, int64_t n_buffers,
                            int64_t body_bytes, ty_error *err)
{
    for (int64_t i = 0; i < n_nodes; i++)
        if (b->node[i][0] < 0 || b->node[i][1] < 0 || b->node[i][1] > b->node[i][0])
            return file_damaged(w, "a field has fewer rows than none", err);
    for (int64_t i = 0; i < n_buffers; i++)
        if (b->buffer[i][0] < 0 || b->buffer[i][1] < 0 || b->buffer[i][0] > body_bytes ||
            b->buffer[i][1] > body_bytes - b->buffer[i][0])
            return file_damaged(w, "a buffer lies outside of it", err);
    return 0;
}

/* Of so many nodes and buffers. t: the table RecordBatch. */
static int file_take_batch(file_walk *w, flat *f, flat_table t, int n_nodes, int n_buffers, int64_t body,
                           int64_t body_bytes, arrow_batch *out, ty_error *err)
{
    flat_vector nodes = flat_list(f, t, BATCH_NODES, 16), buffers = flat_list(f, t, BATCH_BUFFERS, 16);
    flat_table compression = flat_sub(f, t, BATCH_COMPRESSION);
    *out = (arrow_batch){.n_rows = flat_int(f, t, BATCH_LENGTH, 8, 0), .body = body, .dictionary = w->dictionary};
    out->codec = compression.at ? (int)flat_int(f, compression, 0, 1, 0) : -1;
    if (f->failed || nodes.n != n_nodes || buffers.n != n_buffers || out->n_rows < 0)
        return file_damaged(w, "it does not have the fields of the schema", err);
    out->node = file_pairs(w, f, nodes);
    out->buffer = file_pairs(w, f, buffers);
    return file_check_batch(w, out, n_nodes, n_buffers, body_bytes, err);
}

static int file_batch(file_walk *w, flat *f, flat_table t, int64_t body, int64_t body_bytes, ty_error *err)
{
    const arrow_schema *s = &w->file->schema;
    file_add_batch(w);
    int g = w->table->n_groups;
    arrow_batch *b = &w->file->batch[g];
    if (file_take_batch(w, f, t, s->n_nodes, s->n_buffers, body, body_bytes, b, err) < 0)
        return -1;
    w->table->group[g] = (parquet_group){.n_rows = b->n_rows};
    w->table->group[g].chunk = TY_NEW_ARRAY(w->a, parquet_chunk, w->table->n_columns + 1);
    for (int c = 0; c < w->table->n_columns; c++)
        if (!w->table->column[c].odd)
            file_chunk(b, &s->column[c], &w->table->group[g].chunk[c]);
    w->table->n_groups++;
    return __builtin_add_overflow(w->table->n_rows, b->n_rows, &w->table->n_rows)
               ? file_damaged(w, "it has more rows than can be", err)
               : 0;
}

/* Batches behind it have these values, those before what was there. A dictionary that no column is read by is passed
 * over. */
static int file_dictionary(file_walk *w, flat *f, flat_table t, int64_t body, int64_t body_bytes, ty_error *err)
{
    const arrow_schema *s = &w->file->schema;
    int64_t id = flat_int(f, t, DICTIONARY_ID, 8, 0);
    int k = 0;
    while (k < s->n_dictionaries && s->dictionary[k].id != id)
        k++;
    if (k == s->n_dictionaries)
        return 0;
    if (flat_int(f, t, DICTIONARY_IS_DELTA, 1, 0)) {
        ty_error_set(err, TY_E_DATA, "a dictionary grows from batch to batch, which is not read");
        return ty_error_help(err, "write the file with dictionaries that are whole, or cast them to their values");
    }
    arrow_batch *b = TY_NEW(w->a, arrow_batch);
    const arrow_batch **all = TY_NEW_ARRAY(w->a, const arrow_batch *, s->n_dictionaries);
    int n_buffers = arrow_buffers(&s->dictionary[k].values);
    if (file_take_batch(w, f, flat_sub(f, t, DICTIONARY_DATA), 1, n_buffers, body, body_bytes, b, err) < 0)
        return -1;
    if (w->dictionary)
        memcpy(all, w->dictionary, (size_t)s->n_dictionaries * sizeof *all);
    all[k] = b;
    w->dictionary = all;
    return 0;
}

/* ---- messages ---- */

static int file_message(file_walk *w, size_t n, int64_t body, int64_t *body_bytes, ty_error *err)
{
    flat f = {.p = w->message, .n = n};
    flat_table message = flat_root(&f);
    int type = (int)flat_int(&f, message, MESSAGE_HEADER_TYPE, 1, 0);
    flat_table header = flat_sub(&f, message, MESSAGE_HEADER);
    *body_bytes = flat_int(&f, message, MESSAGE_BODY, 8, 0);
    if (f.failed || header.at == 0 || *body_bytes < 0 || *body_bytes > w->bytes.n - body)
        return file_damaged(w, "it does not end within the file", err);
    if (type == HEADER_SCHEMA && !w->has_schema) {
        w->has_schema = true;
        return arrow_schema_read(&f, header, w->a, &w->file->schema, w->table, err);
    }
    if (type == HEADER_DICTIONARY && w->has_schema)
        return file_dictionary(w, &f, header, body, *body_bytes, err);
    if (type != HEADER_BATCH || !w->has_schema)
        return file_damaged(w, "it is no record batch", err);
    return file_batch(w, &f, header, body, *body_bytes, err);
}

static int file_room(file_walk *w, size_t n, ty_error *err)
{
    if (n <= w->room)
        return 0;
    free(w->message);
    w->message = malloc(n);
    w->room = w->message ? n : 0;
    return w->message ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a message of %zu bytes", n);
}

/* The length in front of a message, of 4 bytes behind 0xFFFFFFFF, before Arrow 0.15 without these. 0: the end. */
static int file_length(file_walk *w, size_t *head, size_t *n, ty_error *err)
{
    uint8_t word[8] = {0};
    size_t there = (uint64_t)(w->bytes.n - w->at) < sizeof word ? (size_t)(w->bytes.n - w->at) : sizeof word;
    *n = 0;
    if (there == 0)
        return 0;
    if (there < 4 || arrow_get(w->bytes, w->at, there, word, err) < 0)
        return there < 4 ? file_damaged(w, "it ends early", err) : -1;
    bool is_marked = memcmp(word, "\xff\xff\xff\xff", 4) == 0;
    const uint8_t *p = is_marked ? word + 4 : word;
    *head = is_marked ? 8 : 4;
    *n = (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (is_marked && there < 8)
        return file_damaged(w, "it ends early", err);
    return *n <= MAX_MESSAGE ? 0 : file_damaged(w, "it is longer than any", err);
}

static int file_walk_all(file_walk *w, ty_error *err)
{
    size_t head, n;
    int64_t body_bytes = 0;
    for (;;) {
        if (file_length(w, &head, &n, err) < 0)
            return -1;
        if (n == 0)
            return w->has_schema ? 0 : file_damaged(w, "there is no schema", err);
        if (w->table->n_groups == INT_MAX / 4)
            return file_damaged(w, "there are too many", err);
        int64_t at = w->at + (int64_t)head;
        if (file_room(w, n, err) < 0 || arrow_get(w->bytes, at, n, w->message, err) < 0 ||
            file_message(w, n, at + (int64_t)n, &body_bytes, err) < 0)
            return -1;
        w->at = at + (int64_t)n + body_bytes;
    }
}

int arrow_open(arrow_bytes bytes, ty_arena *a, parquet_file *out, arrow_file **file, ty_error *err)
{
    uint8_t magic[16] = {0};
    size_t n = bytes.n < (int64_t)sizeof magic ? (size_t)bytes.n : sizeof magic;
    *out = (parquet_file){.n = (size_t)bytes.n};
    file_walk w = {.bytes = bytes, .a = a, .table = out, .file = TY_NEW(a, arrow_file)};
    *file = w.file;
    if (arrow_get(bytes, 0, n, magic, err) < 0)
        return -1;
    w.at = memcmp(magic, file_magic, sizeof file_magic) == 0 ? (int64_t)sizeof file_magic : 0;
    int rc = file_walk_all(&w, err);
    free(w.message);
    if (rc == 0 && out->group == NULL)
        out->group = TY_NEW_ARRAY(a, parquet_group, 1);
    return rc;
}
