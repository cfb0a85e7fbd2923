/* input_stream.c - records that stream by: from files and FIFOs, whole and in shards, shuffled, resumed, in error. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_tryjoin_np */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/prefetch.h"
#include "container/input/serve/serve.h"
#include "container/input/stream/cursor.h"
#include "container/input/stream/stream.h"
#include "container/output/protobuf.h"
#include "input_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <zlib.h>

enum { N_RECORDS = 53, N_FILES = 3, ROWS = 4 };

/* ---- files ---- */

static ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 22);
    return b;
}

static void put_entry(ty_buf *features, const char *name, int kind, const void *list, size_t n)
{
    ty_buf chunk = new_buf(), feature = new_buf(), entry = new_buf();
    ty_proto_put_bytes(&chunk, 1, list, n);
    ty_proto_put_bytes(&feature, kind, chunk.data, chunk.len);
    ty_proto_put_bytes(&entry, 1, name, strlen(name));
    ty_proto_put_bytes(&entry, 2, feature.data, feature.len);
    ty_proto_put_bytes(features, 1, entry.data, entry.len);
    ty_buf_fini(&chunk);
    ty_buf_fini(&feature);
    ty_buf_fini(&entry);
}

static void put_tfrecord(ty_buf *out, int i)
{
    ty_buf features = new_buf(), example = new_buf(), label = new_buf();
    float x[2] = {(float)i, (float)-i};
    ty_proto_put_varint(&label, (uint64_t)i);
    put_entry(&features, "x", 2, x, sizeof x);
    put_entry(&features, "label", 3, label.data, label.len);
    ty_proto_put_bytes(&example, 1, features.data, features.len);
    uint64_t n = example.len;
    uint32_t head = ty_crc32c_mask(ty_crc32c(0, &n, 8)), tail = ty_crc32c_mask(ty_crc32c(0, example.data, example.len));
    ty_buf_add(out, &n, 8);
    ty_buf_add(out, &head, 4);
    ty_buf_add(out, example.data, example.len);
    ty_buf_add(out, &tail, 4);
    ty_buf_fini(&features);
    ty_buf_fini(&example);
    ty_buf_fini(&label);
}

typedef enum kind { TFRECORD, JSON, CSV, LIBSVM, N_KINDS } kind;
static const char *const formats[N_KINDS] = {"tfrecord", "jsonlines", "csv", "libsvm"};

static void put_record(ty_buf *out, kind k, int i)
{
    if (k == TFRECORD)
        put_tfrecord(out, i);
    else if (k == JSON)
        ty_buf_addf(out, "{\"x\": [%d, %d], \"label\": %d}\n", i, -i, i);
    else if (k == CSV)
        ty_buf_addf(out, "%d,%d,%d%s\n", i, -i, i, i % 5 ? "" : "\r");
    else
        ty_buf_addf(out, "%d 1:%d 2:%d # comment\n%s", i, i, -i, i % 7 ? "" : "# nothing\n\n");
}

/* Records 0 .. N_RECORDS - 1 in three files of a folder, as many again as the file's number + 1, roughly. */
static void put_files(kind k)
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

static ty_field fields[2];

static ty_stream_config config_of(kind k)
{
    static const char *paths[1];
    paths[0] = files_path("data");
    fields[0] = ty_field_make("x");
    fields[1] = ty_field_make("label");
    fields[1].dtype = TY_I64;
    fields[1].dtype_given = true;
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
    return (ty_stream_config){.paths = paths,
                              .n_paths = 1,
                              .format = formats[k],
                              .fields = fields,
                              .n_fields = 2,
                              .index_base = TY_INDEX_BASE_ONE,
                              .timeout_ms = 60000};
}

static ty_stream *open_stream(const ty_stream_config *c)
{
    ty_stream *s = NULL;
    ty_error err = {0};
    assert_ok(ty_stream_open(c, &s, &err), &err);
    return s;
}

/* ---- runs ---- */

typedef struct run {
    ty_position at;
    int64_t n_valid, label[ROWS];
    bool ends_epoch;
} run_batch;

typedef struct reading {
    ty_stream *stream;
    ty_data_feed *feed;
    ty_prefetch *prefetch;
} reading;

static reading start(ty_stream *s, ty_stream_order order, ty_position at, int64_t until, int n_workers)
{
    reading r = {.stream = s};
    ty_error err = {0};
    order.n_rows = ROWS;
    assert_ok(ty_stream_feed(s, &order, &r.feed, &err), &err);
    ty_prefetch_config c = {.feed = r.feed, .start = at, .until_epoch = until, .n_workers = n_workers};
    assert_ok(ty_prefetch_start(&c, &r.prefetch, &err), &err);
    return r;
}

static void stop(reading *r)
{
    ty_prefetch_stop(r->prefetch);
    ty_data_feed_close(r->feed);
}

/* Takes up to `most` batches; how many there were. Rows are held against what they should be. */
static int take(reading *r, run_batch *out, int most)
{
    const ty_batch *b;
    ty_error err = {0};
    int n = 0;
    while (n < most) {
        assert_ok(ty_prefetch_next(r->prefetch, &b, &err), &err);
        if (!b)
            break;
        out[n] = (run_batch){.at = b->at, .n_valid = b->n_valid, .ends_epoch = b->ends_epoch};
        memcpy(out[n].label, b->field[1].data, sizeof out[n].label);
        for (int i = 0; i < ROWS && b->n_valid > 0; i++) {
            const float *x = (const float *)b->field[0].data + 2 * i;
            assert_true(x[0] == (float)out[n].label[i] && x[1] == -x[0]);
            assert_int_equal(b->samples[i], out[n].label[i]);
        }
        if (b->ends_epoch)
            assert_int_equal(b->epoch_records, N_RECORDS);
        ty_prefetch_release(r->prefetch, b);
        n++;
    }
    return n;
}

/* Every record once: in an epoch of all shards together. */
static void check_union(ty_stream *s, ty_stream_order order, int64_t n_shards)
{
    run_batch got[64];
    int64_t n_batches = 0;
    bool seen[N_RECORDS] = {false};
    order.n_shards = n_shards;
    for (order.shard = 0; order.shard < n_shards; order.shard++) {
        reading r = start(s, order, (ty_position){0}, 1, 2);
        int n = take(&r, got, 64);
        stop(&r);
        assert_true(n > 0 && got[n - 1].ends_epoch);
        if (order.shard_by == TY_SHARD_ROWS && order.shard > 0)
            assert_int_equal(n, n_batches);
        n_batches = n;
        for (int b = 0; b < n; b++) {
            assert_int_equal(got[b].at.batch, b);
            assert_int_equal(got[b].ends_epoch, b == n - 1);
            for (int i = 0; i < got[b].n_valid; i++) {
                assert_true(got[b].label[i] >= 0 && got[b].label[i] < N_RECORDS && !seen[got[b].label[i]]);
                seen[got[b].label[i]] = true;
            }
        }
    }
    for (int i = 0; i < N_RECORDS; i++)
        assert_true(seen[i]);
}

static void shards_together_are_everything_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 7};
    static const int64_t buffers[] = {0, 1, 10, 1000};
    for (int k = 0; k < N_KINDS; k++) {
        put_files((kind)k);
        for (int block = 0; block < 3; block++) {
            ty_stream_config c = config_of((kind)k);
            c.block_bytes = block == 0 ? 0 : block == 1 ? 61 : 1000;
            ty_stream *s = open_stream(&c);
            assert_string_equal(s->format, formats[k]);
            assert_int_equal(s->n_files, N_FILES);
            for (int n = 0; n < 4; n++)
                for (int by = TY_SHARD_ROWS; by <= TY_SHARD_FILES; by++)
                    for (int b = 0; b < (by == TY_SHARD_FILES ? 1 : 4); b++) {
                        if (by == TY_SHARD_FILES && counts[n] > 1)
                            continue; /* epoch_records are those of its files: looked at below */
                        check_union(s,
                                    (ty_stream_order){.tail = TY_TAIL_PAD,
                                                      .shard_by = (ty_stream_shard)by,
                                                      .shuffle_rows = buffers[b],
                                                      .seed = 5},
                                    counts[n]);
                    }
            ty_stream_close(s);
        }
    }
}

static void shards_by_files_are_files(void **state)
{
    (void)state;
    static const int64_t records[5] = {9, 17, 27, 0, 0};
    put_files(JSON);
    ty_stream_config c = config_of(JSON);
    ty_stream *s = open_stream(&c);
    for (int64_t shard = 0; shard < 5; shard++) {
        ty_stream_order o = {.tail = TY_TAIL_PAD, .shard_by = TY_SHARD_FILES, .shard = shard, .n_shards = 5};
        reading r = start(s, o, (ty_position){0}, 1, 1);
        const ty_batch *b;
        int64_t n = 0;
        for (bool ended = false; !ended;) {
            assert_int_equal(ty_prefetch_next(r.prefetch, &b, NULL), 0);
            n += b->n_valid;
            ended = b->ends_epoch;
            if (ended)
                assert_int_equal(b->epoch_records, records[shard]);
            ty_prefetch_release(r.prefetch, b);
        }
        assert_int_equal(n, records[shard]);
        stop(&r);
    }
    ty_stream_close(s);
}

/* With the same global batch the same rows, however many take part. */
static void orders_do_not_depend_on_the_number_of_shards(void **state)
{
    (void)state;
    run_batch one[32], part[32];
    put_files(TFRECORD);
    ty_stream_config c = config_of(TFRECORD);
    ty_stream *s = open_stream(&c);
    ty_stream_order o = {.shuffle_rows = 20, .seed = 3};
    reading r = start(s, o, (ty_position){0}, 2, 1);
    int n = take(&r, one, 32);
    stop(&r);
    assert_int_equal(n, 2 * (N_RECORDS / ROWS));
    for (int64_t shard = 0; shard < 2; shard++) {
        o.n_shards = 2;
        o.shard = shard;
        r = start(s, o, (ty_position){0}, 1, 1);
        n = take(&r, part, 32);
        stop(&r);
        assert_int_equal(n, N_RECORDS / ROWS / 2);
        for (int i = 0; i < n; i++)
            assert_memory_equal(part[i].label, one[2 * i + shard].label, sizeof part[i].label);
    }
    ty_stream_close(s);
}

/* The free places of the last batch take the rows of that whole batch in turn, on any number of shards, and count. */
static void filled_batches_do_not_depend_on_the_number_of_shards(void **state)
{
    (void)state;
    run_batch got[32];
    int64_t order[N_RECORDS], n_order = 0;
    put_files(TFRECORD);
    ty_stream_config c = config_of(TFRECORD);
    ty_stream *s = open_stream(&c);
    ty_stream_order o = {.tail = TY_TAIL_PAD, .shuffle_rows = 20, .seed = 3};
    reading r = start(s, o, (ty_position){0}, 1, 1);
    for (int i = 0, n = take(&r, got, 32); i < n; i++)
        for (int64_t row = 0; row < got[i].n_valid; row++)
            order[n_order++] = got[i].label[row];
    stop(&r);
    assert_int_equal(n_order, N_RECORDS);
    o.fills = true;
    for (o.n_shards = 1; o.n_shards <= 16; o.n_shards++)
        for (o.shard = 0; o.shard < o.n_shards; o.shard++) {
            int64_t all = o.n_shards * ROWS;
            r = start(s, o, (ty_position){0}, 1, 2);
            int n = take(&r, got, 32);
            stop(&r);
            assert_int_equal(n, (N_RECORDS + all - 1) / all);
            for (int i = 0; i < n; i++) {
                int64_t begin = i * all, there = N_RECORDS - begin < all ? N_RECORDS - begin : all;
                assert_int_equal(got[i].n_valid, ROWS);
                for (int64_t row = 0; row < ROWS; row++)
                    assert_int_equal(got[i].label[row], order[begin + (o.shard * ROWS + row) % there]);
            }
        }
    ty_stream_close(s);
}

/* Order differs from epoch to epoch and by seed; workers do not matter; resumed at any batch the rest is the same. */
static void resumed_anywhere_it_is_the_same(void **state)
{
    (void)state;
    static const ty_stream_order orders[] = {
        {.tail = TY_TAIL_DROP},
        {.tail = TY_TAIL_PAD},
        {.tail = TY_TAIL_DROP, .shuffle_rows = 16, .seed = 1},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 1000, .seed = 1},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 7, .seed = 1, .shard_by = TY_SHARD_ROWS, .shard = 1, .n_shards = 3},
        {.tail = TY_TAIL_DROP, .shuffle_rows = 7, .seed = 1, .shard_by = TY_SHARD_RECORDS, .shard = 1, .n_shards = 3},
        {.tail = TY_TAIL_PAD, .fills = true, .shuffle_rows = 7, .seed = 1, .shard = 2, .n_shards = 3},
    };
    for (int k = 0; k < N_KINDS; k++) {
        put_files((kind)k);
        ty_stream_config c = config_of((kind)k);
        c.block_bytes = k % 2 ? 100 : 0;
        ty_stream *s = open_stream(&c);
        for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
            run_batch all[64], rest[64];
            reading r = start(s, orders[o], (ty_position){0}, 2, 1);
            int n = take(&r, all, 64);
            stop(&r);
            assert_true(n > 4 && n < 64);
            for (int workers = 2; workers <= 5; workers += 3) {
                r = start(s, orders[o], (ty_position){0}, 2, workers);
                assert_int_equal(take(&r, rest, 64), n);
                stop(&r);
                assert_memory_equal(rest, all, (size_t)n * sizeof *all);
            }
            for (int from = 0; from < n; from++) {
                r = start(s, orders[o], all[from].at, 2, 1);
                assert_int_equal(take(&r, rest, 64), n - from);
                stop(&r);
                assert_memory_equal(rest, all + from, (size_t)(n - from) * sizeof *all);
            }
            bool same_again = memcmp(all[0].label, all[n / 2].label, sizeof all[0].label) == 0;
            assert_int_equal(same_again, orders[o].shuffle_rows == 0);
            /* Behind the end of an epoch comes the next one. */
            r = start(s, orders[o], (ty_position){0, 60}, 2, 1);
            assert_int_equal(take(&r, rest, 64), n / 2);
            stop(&r);
            assert_memory_equal(rest, all + n / 2, (size_t)(n / 2) * sizeof *all);
        }
        ty_stream_close(s);
    }
}

static void the_rest_of_an_epoch_is_skipped(void **state)
{
    (void)state;
    run_batch got[32];
    put_files(JSON);
    ty_stream_config c = config_of(JSON);
    ty_stream *s = open_stream(&c);
    for (int taken = 1; taken < 13; taken++) {
        reading r = start(s, (ty_stream_order){0}, (ty_position){0}, 2, 2);
        assert_int_equal(take(&r, got, taken), taken);
        ty_prefetch_skip_epoch(r.prefetch);
        assert_int_equal(take(&r, got, 32), 13);
        assert_int_equal(got[0].at.epoch, 1);
        assert_int_equal(got[0].at.batch, 0);
        stop(&r);
    }
    ty_stream_close(s);
}

/* Fewer records than a batch: one batch without rows ends the epoch. */
static void an_epoch_without_a_batch_is_told(void **state)
{
    (void)state;
    const char *path[1];
    files_puts("few.jsonl", "{\"x\": [1, -1], \"label\": 1}\n");
    path[0] = files_path("few.jsonl");
    ty_stream_config c = config_of(JSON);
    c.paths = path;
    ty_stream *s = open_stream(&c);
    reading r = start(s, (ty_stream_order){0}, (ty_position){0}, 3, 1);
    const ty_batch *b;
    for (int epoch = 0; epoch < 3; epoch++) {
        assert_int_equal(ty_prefetch_next(r.prefetch, &b, NULL), 0);
        assert_int_equal(b->at.epoch, epoch);
        assert_int_equal(b->n_valid, 0);
        assert_true(b->ends_epoch);
        assert_int_equal(b->epoch_records, 1);
        ty_prefetch_release(r.prefetch, b);
    }
    assert_int_equal(ty_prefetch_next(r.prefetch, &b, NULL), 0);
    assert_null(b);
    stop(&r);
    ty_stream_close(s);
}

/* ---- faults ---- */

static void hear_fault(const ty_stream_config *c, const ty_stream_order *order, int good, const char *says)
{
    ty_stream *s = open_stream(c);
    reading r = start(s, *order, (ty_position){0}, 1, 3);
    const ty_batch *b;
    ty_error err = {0};
    for (int i = 0; i < good; i++) {
        assert_ok(ty_prefetch_next(r.prefetch, &b, &err), &err);
        ty_prefetch_release(r.prefetch, b);
    }
    for (int i = 0; i < 2; i++) {
        err = (ty_error){0};
        assert_int_equal(ty_prefetch_next(r.prefetch, &b, &err), -1);
        assert_says(&err, says);
    }
    stop(&r);
    ty_stream_close(s);
}
#define expect_fault(...) (print_message("fault at line %d\n", __LINE__), hear_fault(__VA_ARGS__))

static ty_buf read_back(const char *name)
{
    ty_buf b = new_buf();
    ty_error err = {0};
    assert_ok(ty_file_read(files_path(name), &b, &err), &err);
    return b;
}

/* A wrong byte in a payload is found by who decodes it, with its place; left out, its batch is shorter by a row. */
static void damaged_records_are_named_or_left_out(void **state)
{
    (void)state;
    put_files(TFRECORD);
    ty_buf file = read_back("data/part-1");
    size_t each = file.len / 17;
    file.data[5 * each + 30] ^= 1;
    files_put("data/part-1", file.data, file.len);
    ty_stream_config c = config_of(TFRECORD);
    char says[128];
    snprintf(says, sizeof says, "data/part-1: record 5 at byte %zu", 5 * each);
    expect_fault(&c, &(ty_stream_order){0}, 3, says);
    expect_fault(&c, &(ty_stream_order){0}, 3, "checksum of its payload");

    c.skip_bad = true;
    ty_stream *s = open_stream(&c);
    reading r = start(s, (ty_stream_order){0}, (ty_position){0}, 1, 2);
    run_batch got[32];
    assert_int_equal(take(&r, got, 32), 13);
    assert_int_equal(got[3].n_valid, 3);
    assert_int_equal(got[3].label[2], 15);
    assert_int_equal(got[4].n_valid, 4);
    assert_int_equal(s->bad.n, 1);
    stop(&r);
    ty_stream_close(s);

    file.data[5 * each + 30] ^= 1;
    files_put("data/part-1", file.data, file.len - 3);
    c.skip_bad = false;
    expect_fault(&c, &(ty_stream_order){0}, 6, "the file ends within it");
    expect_fault(&c, &(ty_stream_order){0}, 6, "data/part-1");
    ty_buf_fini(&file);
}

static void values_are_checked_when_they_are_decoded(void **state)
{
    (void)state;
    put_files(CSV);
    ty_stream_config c = config_of(CSV);
    ty_stream_range range = {.field = 1, .min = 0, .max = 29, .what = "label of 30 classes"};
    ty_stream_order o = {.range = &range, .n_ranges = 1};
    expect_fault(&c, &o, 7, "field \"label\": found 30, expected 0 to 29 (label of 30 classes)");
    expect_fault(&c, &o, 7, "data/part-2:5");
    range.has_also = true;
    range.also = 30;
    expect_fault(&c, &o, 7, "found 31");
    files_puts("data/part-1", "1,2,3\n1,2\n");
    expect_fault(&c, &(ty_stream_order){0}, 2, "expected 3 columns as in the first line, found 2");
    files_puts("data/part-1", "1,2,3\n1,\"2\n");
    expect_fault(&c, &(ty_stream_order){0}, 2, "data/part-1:2");
    files_puts("data/part-1", "1,2,3\n1,2,3.5\n");
    expect_fault(&c, &(ty_stream_order){0}, 2, "expected a whole number, found 3.5");

    put_files(LIBSVM);
    files_puts("data/part-1", "1 1:2 2:3\n1 3:2\n");
    c = config_of(LIBSVM);
    expect_fault(&c, &(ty_stream_order){0}, 2, "found the index 3, expected 1 to 2");
    files_puts("data/part-1", "1 2:2 2:3\n");
    expect_fault(&c, &(ty_stream_order){0}, 2, "the index 2 stands twice");
}

static void what_cannot_stream_is_refused(void **state)
{
    (void)state;
    ty_stream *s;
    ty_error err = {0};
    put_files(JSON);
    ty_stream_config c = config_of(JSON);
    c.format = "npy";
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "npy cannot be read as a stream");
    c = config_of(CSV);
    fields[0].columns = "age";
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "has no header");
    c = config_of(JSON);
    c.pattern = "*.json";
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "none of the 3 files matches");
}

static void gzip_members_are_inflated(void **state)
{
    (void)state;
    put_files(JSON);
    for (int f = 0; f < N_FILES; f++) {
        char name[64];
        snprintf(name, sizeof name, "data/part-%d", f);
        ty_buf text = read_back(name);
        size_t half = text.len / 2;
        for (int part = 0; part < 2; part++) {
            gzFile z = gzopen(files_path(name), part ? "ab" : "wb");
            gzwrite(z, text.data + (part ? half : 0), (unsigned)(part ? text.len - half : half));
            gzclose(z);
        }
        ty_buf_fini(&text);
    }
    for (size_t block = 100; block <= 10000; block *= 100) {
        ty_stream_config c = config_of(JSON);
        c.block_bytes = block;
        ty_stream *s = open_stream(&c);
        check_union(s, (ty_stream_order){.tail = TY_TAIL_PAD}, 1);
        ty_stream_close(s);
    }
    ty_buf file = read_back("data/part-2");
    files_put("data/part-2", file.data, file.len - 5);
    ty_buf_fini(&file);
    ty_stream_config c = config_of(JSON);
    expect_fault(&c, &(ty_stream_order){0}, 6, "data/part-2");
}

/* ---- frames over blocks ---- */

typedef struct heard {
    int64_t n;
    uint64_t hash;
    ty_error err;
} heard;

static void hear(heard *h, const uint8_t *data, size_t n, int64_t at)
{
    h->n++;
    h->hash = ty_fnv1a(ty_fnv1a(h->hash, data, n), &at, sizeof at);
}

static heard hear_whole(const ty_buf *b, ty_framing how)
{
    heard h = {.hash = TY_FNV_START};
    ty_frames f = {.bytes = (const uint8_t *)b->data, .n = b->len, .how = how, .unchecked = true};
    ty_frame r;
    while (ty_frames_next(&f, &r, &h.err) == 1)
        hear(&h, r.data, r.n, (int64_t)r.at);
    ty_frames_fini(&f);
    return h;
}

static heard hear_blocks(const char *path, size_t n, ty_framing how, size_t block_bytes)
{
    static const int first = 0;
    heard h = {.hash = TY_FNV_START};
    ty_data_file file = {path, path, (int64_t)n};
    ty_source_config config = {.files = &file, .which = &first, .n_files = 1, .block_bytes = block_bytes};
    ty_source *source;
    ty_cursor cursor = {.how = how};
    ty_cursor_record r;
    assert_ok(ty_source_open(&config, &source, &h.err), &h.err);
    ty_cursor_start(&cursor, source);
    while (ty_cursor_next(&cursor, &r, &h.err) == 1)
        hear(&h, r.data, r.n, r.at);
    ty_cursor_end(&cursor);
    return h;
}

static ty_buf framed(ty_framing how, size_t longest)
{
    static const uint8_t magic[4] = {0x0a, 0x23, 0xd7, 0xce};
    ty_buf b = new_buf();
    for (uint32_t i = 0; i < 40; i++) {
        size_t n = (size_t)(i * 2654435761u >> 8) % longest;
        uint64_t wide = n;
        uint32_t head = ty_crc32c_mask(ty_crc32c(0, &wide, 8)), kind = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 3;
        uint32_t word = kind << 29 | (uint32_t)n;
        if (how == TY_FRAMES_TFRECORD) {
            ty_buf_add(&b, &wide, 8);
            ty_buf_add(&b, &head, 4);
        } else if (how != TY_FRAMES_LINES) {
            ty_buf_add(&b, magic, 4);
            ty_buf_add(&b, &word, 4);
        }
        size_t padded = how == TY_FRAMES_TFRECORD ? n + 4 : how == TY_FRAMES_LINES ? n : (n + 3) / 4 * 4;
        for (size_t k = 0; k < padded; k++)
            ty_buf_addc(&b, (char)('a' + (i + k) % 26));
        if (how == TY_FRAMES_LINES)
            ty_buf_adds(&b, i % 4 ? "\n" : "\r\n");
    }
    return b;
}

/* Whole, damaged anywhere and cut anywhere: blocks of any size give the records and the error that memory gives. */
static void blocks_do_not_matter(void **state)
{
    (void)state;
    static const size_t blocks[] = {1, 7, 700, 5000}, longest[] = {30, 3000, 200000};
    for (int how = TY_FRAMES_TFRECORD; how <= TY_FRAMES_LINES; how++)
        for (int l = 0; l < 3; l++) {
            ty_buf b = framed((ty_framing)how, longest[l]);
            uint32_t random = 12345;
            for (int round = 0; round < 9; round++) {
                ty_buf damaged = new_buf();
                random = random * 1664525 + 1013904223;
                ty_buf_add(&damaged, b.data, round % 2 ? b.len : b.len - random % b.len);
                if (round % 3 == 1)
                    damaged.data[(random >> 4) % damaged.len] ^= 0x10;
                files_put("framed", damaged.data, damaged.len);
                heard whole = hear_whole(&damaged, (ty_framing)how);
                for (int k = 2 * l < 3 ? 2 * l : 3; k < 4; k++) {
                    heard parts = hear_blocks(files_path("framed"), damaged.len, (ty_framing)how, blocks[k]);
                    assert_int_equal(parts.n, whole.n);
                    assert_true(parts.hash == whole.hash);
                    assert_int_equal(parts.err.code, whole.err.code);
                    assert_string_equal(parts.err.message, whole.err.message);
                }
                ty_buf_fini(&damaged);
            }
            ty_buf_fini(&b);
        }
}

/* ---- FIFOs ---- */

typedef struct feeder {
    ty_serve_config config;
    pthread_t thread;
    ty_error err;
    int rc;
    volatile sig_atomic_t stop;
    const char *paths[1];
    char path[512], into[512];
} feeder;

static void *feeder_main(void *arg)
{
    feeder *f = arg;
    ty_serve_told told;
    f->rc = ty_serve_channel(&f->config, &told, &f->err);
    return NULL;
}

/* In the feeder's own thread. */
static volatile sig_atomic_t *feeder_stop;
static void feeder_signal(int sig)
{
    (void)sig;
    *feeder_stop = 1;
}

static void feed(feeder *f, const char *path, int64_t epochs)
{
    struct sigaction a = {.sa_handler = feeder_signal};
    sigaction(SIGUSR1, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
    snprintf(f->path, sizeof f->path, "%s", path);
    f->paths[0] = f->path;
    ty_file_remove_tree(files_path("input"), NULL);
    ty_file_remove_tree(files_path("state"), NULL);
    snprintf(f->into, sizeof f->into, "%s", files_path("input"));
    f->config.paths = f->paths;
    f->config.n_paths = 1;
    f->config.into = f->into;
    f->config.channel = "train";
    f->config.epochs = epochs;
    f->config.stop = &f->stop;
    assert_int_equal(pthread_create(&f->thread, NULL, feeder_main, f), 0);
}

/* It has served all of its epochs. */
static void fed(feeder *f)
{
    pthread_join(f->thread, NULL);
    assert_ok(f->rc, &f->err);
}

/* It is told to stop, whatever it waits for. */
static void unfeed(feeder *f)
{
    feeder_stop = &f->stop;
    while (pthread_tryjoin_np(f->thread, NULL) == EBUSY) {
        pthread_kill(f->thread, SIGUSR1);
        usleep(1000);
    }
}

static ty_stream_config pipe_of(kind k)
{
    static char input[512], state[512];
    ty_stream_config c = config_of(k);
    snprintf(input, sizeof input, "%s", files_path("input"));
    snprintf(state, sizeof state, "%s", files_path("state"));
    c.paths = NULL;
    c.n_paths = 0;
    c.channel = "train";
    c.input_folder = input;
    c.state_folder = state;
    return c;
}

static int64_t next_fifo(void)
{
    ty_buf text = read_back("state/.train-pipe_mode-state");
    int64_t n = atoll(text.data);
    ty_buf_fini(&text);
    return n;
}

/* The same batches as from the files, in every format, whole and in shards, FIFO after FIFO. */
static void fifos_give_what_files_give(void **state)
{
    (void)state;
    static const ty_stream_order orders[] = {
        {.tail = TY_TAIL_PAD},
        {.tail = TY_TAIL_DROP, .shuffle_rows = 16, .seed = 1},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 7, .seed = 1, .shard = 1, .n_shards = 3},
    };
    for (int k = 0; k < N_KINDS; k++) {
        put_files((kind)k);
        for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
            run_batch files[64], fifos[64];
            ty_stream_config c = config_of((kind)k);
            ty_stream *s = open_stream(&c);
            reading r = start(s, orders[o], (ty_position){0}, 3, 1);
            int n = take(&r, files, 64);
            stop(&r);
            uint64_t hash = s->first_hash;
            ty_stream_close(s);

            feeder f = {0};
            feed(&f, files_path("data"), 3);
            c = pipe_of((kind)k);
            s = open_stream(&c);
            assert_int_equal(s->n_files, 0);
            assert_true(s->first_hash == hash);
            r = start(s, orders[o], (ty_position){0}, 3, 2);
            assert_int_equal(take(&r, fifos, 64), n);
            assert_memory_equal(fifos, files, (size_t)n * sizeof *files);
            stop(&r);
            ty_stream_close(s);
            fed(&f);
            assert_int_equal(next_fifo(), 3);
        }
    }
}

/* Another process after a restart: FIFO 0 again is taken as the epoch in which the run stopped. */
static void check_fifos_resumed(kind k, ty_stream_order o)
{
    run_batch all[64], rest[64];
    ty_stream_config c = config_of(k);
    ty_stream *s = open_stream(&c);
    reading r = start(s, o, (ty_position){0}, 2, 1);
    int n = take(&r, all, 64);
    stop(&r);
    ty_stream_close(s);
    for (int from = 0; from < n; from++) {
        feeder f = {0};
        feed(&f, files_path("data"), 2 - all[from].at.epoch);
        c = pipe_of(k);
        s = open_stream(&c);
        r = start(s, o, all[from].at, 2, 2);
        assert_int_equal(take(&r, rest, 64), n - from);
        stop(&r);
        ty_stream_close(s);
        fed(&f);
        assert_memory_equal(rest, all + from, (size_t)(n - from) * sizeof *all);
    }
}

/* Every format, with each way to divide a channel and to end an epoch. */
static void fifos_are_resumed_at_every_batch(void **state)
{
    (void)state;
    static const ty_stream_order orders[] = {
        {.tail = TY_TAIL_DROP, .shuffle_rows = 10, .seed = 8},
        {.tail = TY_TAIL_PAD, .shuffle_rows = 10, .seed = 8, .shard = 1, .n_shards = 2},
        {.tail = TY_TAIL_PAD, .fills = true, .shuffle_rows = 10, .seed = 8, .shard = 1, .n_shards = 2},
        {.tail = TY_TAIL_PAD, .shard_by = TY_SHARD_RECORDS, .shard = 1, .n_shards = 2},
    };
    for (int k = 0; k < N_KINDS; k++) {
        put_files((kind)k);
        for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++)
            check_fifos_resumed((kind)k, orders[o]);
    }
}

/* A feed for each evaluation, each with the next FIFO; one that ends early closes its FIFO. */
static void feeds_of_a_channel_take_turns(void **state)
{
    (void)state;
    run_batch got[64];
    feeder f = {0};
    put_files(JSON);
    feed(&f, files_path("data"), 4);
    ty_stream_config c = pipe_of(JSON);
    ty_stream *s = open_stream(&c), *other;
    ty_error err = {0};
    assert_int_equal(ty_stream_open(&c, &other, &err), -1);
    assert_says(&err, "the channel \"train\" is being read already, by process");
    for (int i = 0; i < 4; i++) {
        reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD}, (ty_position){0}, 1, 1);
        bool early = i == 1;
        assert_int_equal(take(&r, got, early ? 2 : 64), early ? 2 : 14);
        stop(&r);
    }
    ty_stream_close(s);
    fed(&f);
    assert_int_equal(next_fifo(), 4);
}

static void a_fifo_that_lets_wait_is_named(void **state)
{
    (void)state;
    ty_stream *s;
    ty_error err = {0};
    ty_file_remove_tree(files_path("input"), NULL);
    ty_file_remove_tree(files_path("state"), NULL);
    mkdir(files_path("input"), 0777);
    ty_stream_config c = pipe_of(JSON);
    c.timeout_ms = 60;
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "the FIFO of an epoch did not appear within 0.06 s");
    assert_says(&err, "input/train_0");
    assert_int_equal(mkfifo(files_path("input/train_0"), 0666), 0);
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "nobody opened the FIFO for writing within 0.06 s");
    unlink(files_path("input/train_0"));
    files_puts("input/train_0", "no FIFO");
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "expected a FIFO, found something else");
    unlink(files_path("input/train_0"));
    assert_int_equal(mkfifo(files_path("input/train_0"), 0666), 0);
    int fd = open(files_path("input/train_0"), O_RDWR);
    assert_int_equal(write(fd, "{\"x\": [1, -1]", 13), 13);
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "no more bytes came within 0.06 s");
    close(fd);
    assert_int_equal(next_fifo(), 1); /* only the one that was written to is over */
}

/* Objects in RecordIO, several records each; and the attributes of an augmented manifest. */
static void wrapped_objects_are_read(void **state)
{
    (void)state;
    for (int k = TFRECORD; k <= CSV; k++) {
        put_files((kind)k);
        feeder f = {.config.wrap = true};
        feed(&f, files_path("data"), 1);
        ty_stream_config c = pipe_of((kind)k);
        c.wrapped = true;
        c.block_bytes = 97;
        ty_stream *s = open_stream(&c);
        run_batch got[32];
        reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD, .shuffle_rows = 5}, (ty_position){0}, 1, 2);
        assert_int_equal(take(&r, got, 32), 14);
        stop(&r);
        ty_stream_close(s);
        fed(&f);
    }
}

static void attributes_of_a_manifest_are_samples(void **state)
{
    (void)state;
    static const char *const names[] = {"label", "x", "source-ref"};
    ty_buf text = new_buf();
    for (int i = 0; i < N_RECORDS; i++)
        ty_buf_addf(&text, "{\"source-ref\": \"object\", \"x\": [%d, %d], \"other\": \"%d\", \"label\": %d}\n", i, -i,
                    i, i);
    files_put("all.manifest", text.data, text.len);
    files_puts("object", "abc");
    ty_buf_fini(&text);
    for (int block = 0; block < 2; block++) {
        feeder f = {.config = {.attributes = names, .n_attributes = 3}};
        feed(&f, files_path("all.manifest"), 1);
        ty_stream_config c = pipe_of(JSON);
        ty_field three[3] = {fields[0], fields[1], ty_field_make("bytes")};
        three[2].member = "source-ref";
        c.fields = three;
        c.n_fields = 3;
        c.attributes = names;
        c.n_attributes = 3;
        c.block_bytes = block ? 50 : 0;
        ty_stream *s = open_stream(&c);
        run_batch got[32];
        reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD}, (ty_position){0}, 1, 2);
        assert_int_equal(take(&r, got, 1), 1);
        assert_int_equal(take(&r, got, 32), 13);
        stop(&r);
        ty_stream_close(s);
        fed(&f);
    }
    /* One record too many. */
    feeder f = {.config = {.attributes = names, .n_attributes = 1}};
    feed(&f, files_path("all.manifest"), 1);
    ty_stream_config c = pipe_of(JSON);
    c.fields = &fields[1];
    c.n_fields = 1;
    c.attributes = names;
    c.n_attributes = 2;
    ty_stream *s = open_stream(&c);
    reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD}, (ty_position){0}, 1, 1);
    const ty_batch *b;
    ty_error err = {0};
    int rc;
    while ((rc = ty_prefetch_next(r.prefetch, &b, &err)) == 0 && b)
        ty_prefetch_release(r.prefetch, b);
    assert_int_equal(rc, -1);
    assert_says(&err, "the stream ends within a sample: expected 2 records for it, found 1");
    stop(&r);
    ty_stream_close(s);
    fed(&f);
}

/* ---- nothing stays behind ---- */

static int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void a_hundred_starts_and_stops_leave_nothing(void **state)
{
    (void)state;
    run_batch got[32];
    put_files(TFRECORD);
    int n_threads = count_entries("/proc/self/task"), n_descriptors = count_entries("/proc/self/fd");
    ty_stream_config c = config_of(TFRECORD);
    for (int i = 0; i < 50; i++) {
        ty_stream *s = open_stream(&c);
        reading r = start(s, (ty_stream_order){.shuffle_rows = i}, (ty_position){0}, 0, 1 + i % 3);
        take(&r, got, i % 20);
        stop(&r);
        ty_stream_close(s);
    }
    feeder f = {0};
    feed(&f, files_path("data"), 0);
    c = pipe_of(TFRECORD);
    for (int i = 0; i < 50; i++) {
        ty_stream *s = open_stream(&c);
        if (i % 5) {
            reading r = start(s, (ty_stream_order){.shuffle_rows = i}, (ty_position){0}, 0, 1 + i % 3);
            take(&r, got, i % 20);
            stop(&r);
        }
        ty_stream_close(s);
    }
    /* Stopped while it waits for a writer that never comes. */
    unfeed(&f);
    c.timeout_ms = 3600000;
    char fifo[64];
    ty_file_remove_tree(files_path("state"), NULL);
    ty_file_remove_tree(files_path("input"), NULL);
    f = (feeder){0};
    feed(&f, files_path("data"), 1);
    ty_stream *s = open_stream(&c);
    snprintf(fifo, sizeof fifo, "input/train_%lld", (long long)next_fifo());
    reading r = start(s, (ty_stream_order){0}, (ty_position){0}, 0, 2);
    take(&r, got, 13);
    fed(&f);
    stop(&r);
    ty_stream_close(s);
    assert_int_equal(count_entries("/proc/self/task"), n_threads);
    assert_int_equal(count_entries("/proc/self/fd"), n_descriptors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_together_are_everything_once),
        cmocka_unit_test(shards_by_files_are_files),
        cmocka_unit_test(orders_do_not_depend_on_the_number_of_shards),
        cmocka_unit_test(filled_batches_do_not_depend_on_the_number_of_shards),
        cmocka_unit_test(resumed_anywhere_it_is_the_same),
        cmocka_unit_test(the_rest_of_an_epoch_is_skipped),
        cmocka_unit_test(an_epoch_without_a_batch_is_told),
        cmocka_unit_test(damaged_records_are_named_or_left_out),
        cmocka_unit_test(values_are_checked_when_they_are_decoded),
        cmocka_unit_test(what_cannot_stream_is_refused),
        cmocka_unit_test(gzip_members_are_inflated),
        cmocka_unit_test(blocks_do_not_matter),
        cmocka_unit_test(fifos_give_what_files_give),
        cmocka_unit_test(fifos_are_resumed_at_every_batch),
        cmocka_unit_test(feeds_of_a_channel_take_turns),
        cmocka_unit_test(a_fifo_that_lets_wait_is_named),
        cmocka_unit_test(wrapped_objects_are_read),
        cmocka_unit_test(attributes_of_a_manifest_are_samples),
        cmocka_unit_test(a_hundred_starts_and_stops_leave_nothing),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
