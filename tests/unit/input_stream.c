/* input_stream.c - records that stream by: their order, whole and in shards, shuffled; what is wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "input_streams.h"

#include <zlib.h>

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
    for (int k = 0; k < N_FILE_KINDS; k++) {
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

/* What no record has at first that is looked at is taken as it comes later: integers here. */
static void a_rare_feature_is_what_it_is(void **state)
{
    (void)state;
    enum { RARE = 120 };
    ty_buf text = new_buf();
    const char *path = files_path("rare");
    for (int i = 0; i < RARE + 8; i++)
        put_example(&text, i, i >= RARE);
    files_put("rare", text.data, text.len);
    ty_buf_fini(&text);
    for (int whole = 0; whole < 2; whole++) {
        ty_stream_config c = config_of(TFRECORD);
        c.paths = &path;
        fields[1].dtype = whole ? TY_I64 : TY_F32;
        fields[1].missing_given = fields[1].shape_given = true;
        fields[1].missing = -1;
        ty_stream *s = open_stream(&c);
        reading r = start(s, (ty_stream_order){0}, (ty_position){0}, 1, 2);
        const ty_batch *b;
        ty_error err = {0};
        int64_t n = 0;
        for (;;) {
            assert_ok(ty_prefetch_next(r.prefetch, &b, &err), &err);
            if (!b)
                break;
            for (int row = 0; row < ROWS; row++, n++)
                assert_int_equal(whole ? ((const int64_t *)b->field[1].data)[row]
                                       : (int64_t)((const float *)b->field[1].data)[row],
                                 n < RARE ? -1 : n);
            ty_prefetch_release(r.prefetch, b);
        }
        assert_int_equal(n, RARE + 8);
        stop(&r);
        ty_stream_close(s);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_together_are_everything_once),
        cmocka_unit_test(shards_by_files_are_files),
        cmocka_unit_test(orders_do_not_depend_on_the_number_of_shards),
        cmocka_unit_test(filled_batches_do_not_depend_on_the_number_of_shards),
        cmocka_unit_test(the_rest_of_an_epoch_is_skipped),
        cmocka_unit_test(an_epoch_without_a_batch_is_told),
        cmocka_unit_test(damaged_records_are_named_or_left_out),
        cmocka_unit_test(values_are_checked_when_they_are_decoded),
        cmocka_unit_test(what_cannot_stream_is_refused),
        cmocka_unit_test(a_rare_feature_is_what_it_is),
        cmocka_unit_test(gzip_members_are_inflated),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
