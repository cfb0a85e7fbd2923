/* file.c - messages of an Arrow file: its schema, and where record batches lie. */
#include "container/input/arrow/reader.h"
#include "container/input/bytes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGE ((size_t)1 << 28)

/* The table Footer, and a Block in it: where a message begins, its bytes before and of the body. */
enum { FOOTER_SCHEMA = 1, FOOTER_DICTIONARIES = 2, FOOTER_BATCHES = 3 };
enum { BLOCK_BYTES = 24, BLOCK_BEFORE = 8, BLOCK_BODY = 16 };

/* The union MessageHeader; fields of the tables Message and RecordBatch. */
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER = 2, MESSAGE_BODY = 3 };
enum { DICTIONARY_ID = 0, DICTIONARY_DATA = 1, DICTIONARY_IS_DELTA = 2 };
enum { BATCH_LENGTH = 0, BATCH_NODES = 1, BATCH_BUFFERS = 2, BATCH_COMPRESSION = 3, BATCH_LOOSE = 4 };

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

static int64_t (*file_new_pairs(const file_walk *w, int64_t n))[2]
{
    return ty_arena_alloc(w->a, (size_t)n * 2 * sizeof(int64_t));
}

/* Pairs of numbers: nodes or buffers. */
static int64_t (*file_pairs(const file_walk *w, const flat *f, flat_vector v))[2]
{
    int64_t(*pair)[2] = file_new_pairs(w, v.n + 1);
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
    for (int64_t i = b->first_loose[c->view]; c->kind == ARROW_VIEW && !c->is_coded && i < b->first_loose[c->view + 1];
         i++)
        out->n_bytes += b->loose[i][1];
    out->n_unpacked = out->n_bytes;
}

/* What a batch has. */
typedef struct file_shape {
    int n_nodes, n_buffers;
    const int *view; /* as arrow_schema's */
    int n_views;
} file_shape;

static int file_check_batch(const file_walk *w, const arrow_batch *b, int64_t n_nodes, const int64_t (*buffer)[2],
                            int64_t n_buffers, int64_t body_bytes, ty_error *err)
{
    for (int64_t i = 0; i < n_nodes; i++)
        if (b->node[i][0] < 0 || b->node[i][1] < 0 || b->node[i][1] > b->node[i][0])
            return file_damaged(w, "a field has fewer rows than none", err);
    for (int64_t i = 0; i < n_buffers; i++)
        if (buffer[i][0] < 0 || buffer[i][1] < 0 || buffer[i][0] > body_bytes ||
            buffer[i][1] > body_bytes - buffer[i][0])
            return file_damaged(w, "a buffer lies outside of it", err);
    return 0;
}

/* Where the buffers that views point to begin among the loose ones. -1: the counts cannot be. */
static int64_t file_count_loose(const file_walk *w, flat *f, flat_vector counts, int n_views, int64_t *first)
{
    if (counts.n != n_views)
        return -1;
    for (int k = 0; k < n_views; k++) {
        int64_t n = flat_long(f, counts.at + 8 * (size_t)k);
        if (n < 0 || n > w->bytes.n || __builtin_add_overflow(first[k], n, &first[k + 1]))
            return -1;
    }
    return first[n_views];
}

/* Of all the buffers of a batch those that views point to, each column's behind its own, go to out->loose. */
static void file_part_buffers(file_walk *w, const file_shape *shape, const int64_t (*all)[2], arrow_batch *out)
{
    out->buffer = file_new_pairs(w, shape->n_buffers + 1);
    out->loose = file_new_pairs(w, out->first_loose[shape->n_views] + 1);
    int k = 0;
    for (int i = 0; i < shape->n_buffers; i++) {
        memcpy(out->buffer[i], *all++, sizeof *all);
        if (k == shape->n_views || shape->view[k] != i)
            continue;
        for (int64_t j = out->first_loose[k]; j < out->first_loose[k + 1]; j++)
            memcpy(out->loose[j], *all++, sizeof *all);
        k++;
    }
}

/* t: the table RecordBatch. */
static int file_take_batch(file_walk *w, flat *f, flat_table t, const file_shape *shape, int64_t body,
                           int64_t body_bytes, arrow_batch *out, ty_error *err)
{
    flat_vector nodes = flat_list(f, t, BATCH_NODES, 16), buffers = flat_list(f, t, BATCH_BUFFERS, 16);
    flat_vector counts = flat_list(f, t, BATCH_LOOSE, 8);
    flat_table compression = flat_sub(f, t, BATCH_COMPRESSION);
    *out = (arrow_batch){.n_rows = flat_int(f, t, BATCH_LENGTH, 8, 0), .body = body, .dictionary = w->dictionary};
    out->codec = compression.at ? (int)flat_int(f, compression, 0, 1, 0) : -1;
    out->first_loose = TY_NEW_ARRAY(w->a, int64_t, shape->n_views + 1);
    int64_t n_loose = f->failed ? -1 : file_count_loose(w, f, counts, shape->n_views, out->first_loose);
    if (n_loose < 0 || nodes.n != shape->n_nodes || buffers.n - shape->n_buffers != n_loose || out->n_rows < 0)
        return file_damaged(w, "it does not have the fields of the schema", err);
    out->node = file_pairs(w, f, nodes);
    const int64_t(*all)[2] = file_pairs(w, f, buffers);
    file_part_buffers(w, shape, all, out);
    return file_check_batch(w, out, shape->n_nodes, all, buffers.n, body_bytes, err);
}

static int file_batch(file_walk *w, flat *f, flat_table t, int64_t body, int64_t body_bytes, ty_error *err)
{
    const arrow_schema *s = &w->file->schema;
    file_add_batch(w);
    int g = w->table->n_groups;
    arrow_batch *b = &w->file->batch[g];
    file_shape shape = {.n_nodes = s->n_nodes, .n_buffers = s->n_buffers, .view = s->view, .n_views = s->n_views};
    if (file_take_batch(w, f, t, &shape, body, body_bytes, b, err) < 0)
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

/* The only field of a batch. */
static int file_take_dictionary(file_walk *w, flat *f, flat_table t, const arrow_column *values, int64_t body,
                                int64_t body_bytes, arrow_batch *out, ty_error *err)
{
    static const int view = 1;
    file_shape shape = {.n_nodes = 1, .n_buffers = arrow_buffers(values), .view = &view};
    shape.n_views = values->kind == ARROW_VIEW;
    return file_take_batch(w, f, flat_sub(f, t, DICTIONARY_DATA), &shape, body, body_bytes, out, err);
}

/* Batches behind it have these values, those before what was there; or, of a delta, these behind what was there. A
 * dictionary that no column is read by is passed over. */
static int file_dictionary(file_walk *w, flat *f, flat_table t, int64_t body, int64_t body_bytes, ty_error *err)
{
    const arrow_schema *s = &w->file->schema;
    int64_t id = flat_int(f, t, DICTIONARY_ID, 8, 0);
    int k = 0;
    while (k < s->n_dictionaries && s->dictionary[k].id != id)
        k++;
    if (k == s->n_dictionaries)
        return 0;
    arrow_batch *b = TY_NEW(w->a, arrow_batch);
    const arrow_batch **all = TY_NEW_ARRAY(w->a, const arrow_batch *, s->n_dictionaries);
    if (file_take_dictionary(w, f, t, &s->dictionary[k].values, body, body_bytes, b, err) < 0)
        return -1;
    if (w->dictionary)
        memcpy(all, w->dictionary, (size_t)s->n_dictionaries * sizeof *all);
    b->before = flat_int(f, t, DICTIONARY_IS_DELTA, 1, 0) ? all[k] : NULL;
    if (__builtin_add_overflow(b->n_rows, b->before ? b->before->n_values : 0, &b->n_values))
        return file_damaged(w, "it has more values than can be", err);
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
    *n = (size_t)arrow_whole(p, 4, false);
    if (is_marked && there < 8)
        return file_damaged(w, "it ends early", err);
    return *n <= MAX_MESSAGE ? 0 : file_damaged(w, "it is longer than any", err);
}

/* The message at w->at; *n: bytes of it, 0: the end. */
static int file_step(file_walk *w, int64_t *n, ty_error *err)
{
    size_t head = 0, length = 0;
    int64_t body_bytes = 0;
    *n = 0;
    if (file_length(w, &head, &length, err) < 0)
        return -1;
    if (length == 0)
        return 0;
    if (w->table->n_groups == INT_MAX / 4)
        return file_damaged(w, "there are too many", err);
    int64_t at = w->at + (int64_t)head;
    if (file_room(w, length, err) < 0 || arrow_get(w->bytes, at, length, w->message, err) < 0 ||
        file_message(w, length, at + (int64_t)length, &body_bytes, err) < 0)
        return -1;
    *n = (int64_t)head + (int64_t)length + body_bytes;
    return 0;
}

static int file_walk_stream(file_walk *w, ty_error *err)
{
    int64_t n;
    do {
        if (file_step(w, &n, err) < 0)
            return -1;
        w->at += n;
    } while (n > 0);
    return w->has_schema ? 0 : file_damaged(w, "there is no schema", err);
}

/* ---- the footer of a file ---- */

static int footer_damaged(ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "the footer of the Arrow file is damaged or missing");
    return ty_error_help(err, "the file was cut short or changed while it was written or copied: make it anew");
}

/* No two messages are in the same place: together they have no more bytes than the file; *left: what of it is not yet
 * told of. */
static int footer_walk_blocks(file_walk *w, const flat *f, flat_vector blocks, int64_t *left, ty_error *err)
{
    for (int64_t i = 0; i < blocks.n; i++) {
        size_t block = blocks.at + (size_t)i * BLOCK_BYTES;
        int64_t before = flat_long(f, block + BLOCK_BEFORE) & INT32_MAX, body = flat_long(f, block + BLOCK_BODY), n;
        w->at = flat_long(f, block);
        if (w->at < 0 || w->at >= w->bytes.n || body < 0 || body > *left || before > *left - body)
            return footer_damaged(err);
        *left -= before + body;
        if (file_step(w, &n, err) < 0)
            return -1;
        if (n == 0 || n > before + body)
            return footer_damaged(err);
    }
    return 0;
}

/* A file's messages need not be in the order in which they are needed, and dictionaries are for all of its batches. */
static int footer_walk(file_walk *w, const uint8_t *p, size_t n, ty_error *err)
{
    flat f = {.p = p, .n = n};
    flat_table footer = flat_root(&f), schema = flat_sub(&f, footer, FOOTER_SCHEMA);
    flat_vector dictionaries = flat_list(&f, footer, FOOTER_DICTIONARIES, BLOCK_BYTES);
    flat_vector batches = flat_list(&f, footer, FOOTER_BATCHES, BLOCK_BYTES);
    if (f.failed || schema.at == 0)
        return footer_damaged(err);
    w->has_schema = true;
    int64_t left = w->bytes.n;
    if (arrow_schema_read(&f, schema, w->a, &w->file->schema, w->table, err) < 0 ||
        footer_walk_blocks(w, &f, dictionaries, &left, err) < 0)
        return -1;
    return footer_walk_blocks(w, &f, batches, &left, err);
}

/* It ends with the footer, its length, and the first six bytes of the magic number. */
static int footer_read(file_walk *w, ty_error *err)
{
    uint8_t end[10] = {0};
    int64_t at = w->bytes.n - (int64_t)sizeof end;
    if (at < (int64_t)sizeof file_magic || arrow_get(w->bytes, at, sizeof end, end, err) < 0)
        return at < (int64_t)sizeof file_magic ? footer_damaged(err) : -1;
    size_t n = (size_t)arrow_whole(end, 4, false);
    if (memcmp(end + 4, file_magic, 6) != 0 || n > MAX_MESSAGE || (int64_t)n > at)
        return footer_damaged(err);
    uint8_t *p = malloc(n + 1);
    if (!p)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a footer of %zu bytes", n);
    int rc = arrow_get(w->bytes, at - (int64_t)n, n, p, err) < 0 ? -1 : footer_walk(w, p, n, err);
    free(p);
    return rc;
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
    bool is_file = memcmp(magic, file_magic, sizeof file_magic) == 0;
    int rc = is_file ? footer_read(&w, err) : file_walk_stream(&w, err);
    free(w.message);
    if (rc == 0 && out->group == NULL)
        out->group = TY_NEW_ARRAY(a, parquet_group, 1);
    return rc;
}
