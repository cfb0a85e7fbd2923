/* input_streams.h - the same 53 records in every format that streams, and batches of them taken by their order. */
#ifndef TY_TESTS_UNIT_INPUT_STREAMS_H
#define TY_TESTS_UNIT_INPUT_STREAMS_H

#include "base/hash.h"
#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "container/input/prefetch.h"
#include "container/input/stream/stream.h"
#include "container/output/protobuf.h"
#include "input_files.h"

enum { N_RECORDS = 53, N_FILES = 3, ROWS = 4 };

/* Those before ATTRIBUTES are files too; an augmented manifest's attributes come from FIFOs alone. */
typedef enum kind { TFRECORD, RECORDIO, JSON, CSV, LIBSVM, LINES, MXNET, ATTRIBUTES, N_KINDS } kind;
enum { N_FILE_KINDS = ATTRIBUTES };

static const char *const formats[N_KINDS] = {"tfrecord", "recordio", "jsonlines", "csv",
                                             "libsvm",   "lines",    "mxnet",     "jsonlines"};
static const char *const attributes[2] = {"label", "x"};

static inline ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 22);
    return b;
}

static inline ty_buf read_back(const char *name)
{
    ty_buf b = new_buf();
    ty_error err = {0};
    assert_ok(ty_file_read(files_path(name), &b, &err), &err);
    return b;
}

/* ---- records ---- */

/* A message in a message, which is used up. */
static inline void put_nested(ty_buf *out, int number, ty_buf *inner)
{
    ty_proto_put_bytes(out, number, inner->data, inner->len);
    ty_buf_fini(inner);
}

/* An entry of a map: a name, and a message of one field, which is a message of one field, which is bytes. */
static inline void put_entry(ty_buf *out, int number, const char *name, int type, const void *list, size_t n)
{
    ty_buf chunk = new_buf(), value = new_buf(), entry = new_buf();
    ty_proto_put_bytes(&chunk, 1, list, n);
    put_nested(&value, type, &chunk);
    ty_proto_put_bytes(&entry, 1, name, strlen(name));
    put_nested(&entry, 2, &value);
    put_nested(out, number, &entry);
}

static inline void put_example(ty_buf *out, int i, bool has_label)
{
    ty_buf features = new_buf(), example = new_buf();
    float x[2] = {(float)i, (float)-i};
    uint8_t label = (uint8_t)i;
    put_entry(&features, 1, "x", 2, x, sizeof x);
    if (has_label)
        put_entry(&features, 1, "label", 3, &label, 1);
    put_nested(&example, 1, &features);
    uint64_t n = example.len;
    uint32_t head = ty_crc32c_mask(ty_crc32c(0, &n, 8)), tail = ty_crc32c_mask(ty_crc32c(0, example.data, example.len));
    ty_buf_add(out, &n, 8);
    ty_buf_add(out, &head, 4);
    ty_buf_add(out, example.data, example.len);
    ty_buf_add(out, &tail, 4);
    ty_buf_fini(&example);
}

static inline void put_part(ty_buf *out, const void *payload, size_t n)
{
    uint32_t head[2] = {0xced7230a, (uint32_t)n};
    ty_buf_add(out, head, sizeof head);
    ty_buf_add(out, payload, n);
    ty_buf_add(out, "   ", (4 - n % 4) % 4);
}

static inline void put_recordio(ty_buf *out, int i)
{
    ty_buf record = new_buf();
    float x[2] = {(float)i, (float)-i};
    uint8_t label = (uint8_t)i;
    put_entry(&record, 1, "x", 2, x, sizeof x);
    put_entry(&record, 2, "values", 7, &label, 1);
    put_part(out, record.data, record.len);
    ty_buf_fini(&record);
}

/* A picture of two pixels. */
static inline void put_mxnet(ty_buf *out, int i)
{
    uint8_t record[64] = {0}, *p = record + 24;
    float label = (float)i;
    memcpy(record + 4, &label, sizeof label);
    p += sprintf((char *)p, "P5 2 1 255\n");
    *p++ = (uint8_t)i;
    *p++ = (uint8_t)(255 - i);
    put_part(out, record, (size_t)(p - record));
}

static inline void put_record(ty_buf *out, kind k, int i)
{
    switch (k) {
    case TFRECORD:
        put_example(out, i, true);
        break;
    case RECORDIO:
        put_recordio(out, i);
        break;
    case MXNET:
        put_mxnet(out, i);
        break;
    case CSV:
        ty_buf_addf(out, "%d,%d,%d%s\n", i, -i, i, i % 5 ? "" : "\r");
        break;
    case LIBSVM:
        ty_buf_addf(out, "%d 1:%d 2:%d # comment\n%s", i, i, -i, i % 7 ? "" : "# nothing\n\n");
        break;
    case LINES:
        ty_buf_addf(out, "%d%s\n", i, i % 5 ? "" : "\r");
        break;
    default:
        ty_buf_addf(out, "{\"x\": [%d, %d], \"label\": %d}\n", i, -i, i);
    }
}

/* Records 0 .. N_RECORDS - 1 in three files of a folder, as many again as the file's number + 1, roughly. */
static inline void put_files(kind k)
{
    static const int from[N_FILES + 1] = {0, 9, 26, N_RECORDS};
    ty_file_remove_tree(files_path("data"), NULL);
    for (int f = 0; f < N_FILES; f++) {
        ty_buf text = new_buf();
        char name[64];
        for (int i = from[f]; i < from[f + 1]; i++)
            put_record(&text, k, i);
        snprintf(name, sizeof name, "data/part-%d", f);
        files_put(name, text.data, text.len);
        ty_buf_fini(&text);
    }
}

/* ---- streams ---- */

static ty_field fields[2];

/* Of a line the number that it is. */
static inline struct ty_map *line_map(int i, const char *name)
{
    static ty_map *map[2];
    static ty_arena arena;
    ty_map_spec spec = {.field = name, .scale = 1.0};
    ty_error err = {0};
    if (!map[i])
        assert_ok(ty_map_new(&spec, &arena, &map[i], &err), &err);
    return map[i];
}

static inline ty_stream_config config_of(kind k)
{
    static const char *paths[1];
    static ty_image_plan plan;
    paths[0] = files_path("data");
    fields[0] = ty_field_make("x");
    fields[1] = ty_field_make("label");
    fields[1].dtype = TY_I64;
    fields[1].dtype_given = true;
    plan = ty_image_plan_make();
    plan.scale = 1.0;
    plan.scale_given = plan.flip_across = true;
    if (k == LIBSVM) {
        fields[0].member = "features";
        fields[0].shape_given = true;
        fields[0].rank = 1;
        fields[0].dim[0] = 2;
    }
    if (k == CSV) {
        fields[0].columns = "0-1";
        fields[1].columns = "2";
    }
    if (k == MXNET)
        fields[0].image = &plan;
    for (int i = 0; i < 2 && k == LINES; i++) {
        fields[i].member = "text";
        fields[i].map = line_map(i, fields[i].name);
    }
    return (ty_stream_config){.paths = paths,
                              .n_paths = 1,
                              .format = formats[k],
                              .fields = fields,
                              .n_fields = 2,
                              .index_base = TY_INDEX_BASE_ONE,
                              .attributes = attributes,
                              .n_attributes = k == ATTRIBUTES ? 2 : 0,
                              .timeout_ms = 60000};
}

static inline ty_stream *open_stream(const ty_stream_config *c)
{
    ty_stream *s = NULL;
    ty_error err = {0};
    assert_ok(ty_stream_open(c, &s, &err), &err);
    return s;
}

/* ---- batches ---- */

/* What a batch is known by, its bytes by their hash. */
typedef struct run {
    ty_position at;
    int64_t n_valid, label[ROWS];
    uint64_t hash;
    int64_t ends_epoch;
} run_batch;

typedef struct reading {
    ty_stream *stream;
    ty_data_feed *feed;
    ty_prefetch *prefetch;
} reading;

static inline reading start(ty_stream *s, ty_stream_order order, ty_position at, int64_t until, int n_workers)
{
    reading r = {.stream = s};
    ty_error err = {0};
    order.n_rows = ROWS;
    assert_ok(ty_stream_feed(s, &order, &r.feed, &err), &err);
    ty_prefetch_config c = {.feed = r.feed, .start = at, .until_epoch = until, .n_workers = n_workers};
    assert_ok(ty_prefetch_start(&c, &r.prefetch, &err), &err);
    return r;
}

static inline void stop(reading *r)
{
    ty_prefetch_stop(r->prefetch);
    ty_data_feed_close(r->feed);
}

/* A row beside its label: i and -i; of pictures i and 255 - i, which may be flipped; of lines i alone. */
static inline bool row_is(const ty_stream *s, const ty_batch *b, int row, int64_t label)
{
    int n = (int)ty_type_elems(&b->field[0].type) / ROWS;
    const float *x = (const float *)b->field[0].data + n * row;
    if (strcmp(s->format, "mxnet") == 0)
        return (x[0] == (float)label || x[1] == (float)label) && x[0] + x[1] == 255;
    return x[0] == (float)label && (n == 1 || x[1] == -x[0]);
}

/* Takes up to `most` batches; how many there were. Rows are held against what they should be. */
static inline int take(reading *r, run_batch *out, int most)
{
    const ty_batch *b;
    ty_error err = {0};
    int n = 0;
    while (n < most) {
        assert_ok(ty_prefetch_next(r->prefetch, &b, &err), &err);
        if (!b)
            break;
        out[n] = (run_batch){.at = b->at, .n_valid = b->n_valid, .hash = TY_FNV_START, .ends_epoch = b->ends_epoch};
        memcpy(out[n].label, b->field[1].data, sizeof out[n].label);
        for (int i = 0; i < b->n_fields; i++)
            out[n].hash = ty_fnv1a(out[n].hash, b->field[i].data, ty_type_bytes(&b->field[i].type));
        for (int i = 0; i < ROWS && b->n_valid > 0; i++) {
            assert_true(row_is(r->stream, b, i, out[n].label[i]));
            assert_int_equal(b->samples[i], out[n].label[i]);
        }
        if (b->ends_epoch)
            assert_int_equal(b->epoch_records, N_RECORDS);
        ty_prefetch_release(r->prefetch, b);
        n++;
    }
    return n;
}

#endif
