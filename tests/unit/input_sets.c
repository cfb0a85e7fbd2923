/* input_sets.c - real data sets, held against what others counted and added up in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/prefetch.h"
#include "container/input/stream/stream.h"
#include "input_files.h"

#include <math.h>

enum { MOST_FIELDS = 8 };

/* A field of a set: how many are missing, and the sum of the others. */
typedef struct sum {
    const char *name, *columns;
    ty_dtype dtype;
    int64_t n_missing;
    double sum;
} sum;

typedef struct set {
    const char *path, *pattern, *format;
    int64_t n_samples;
    sum field[MOST_FIELDS];
} set;

static const set sets[] = {
    {"abalone-csv/abalone.csv",
     NULL,
     NULL,
     4177,
     {{"length", "1", TY_F64, 0, 2188.715},
      {"diameter", "2", TY_F64, 0, 1703.72},
      {"height", "3", TY_F64, 0, 582.76},
      {"whole", "4", TY_F64, 0, 3461.656},
      {"shell", "7", TY_F64, 0, 997.5965},
      {"rings", "8", TY_I64, 0, 41493}}},
    {"higgs-tsv/binary.train",
     NULL,
     NULL,
     7000,
     {{"label", "0", TY_I64, 0, 3716}, {"x", "1-28", TY_F64, 0, 118709.328}}},
    {"higgs-tsv/binary.test", NULL, NULL, 500, {{"label", "0", TY_I64, 0, 272}}},
    {"agaricus-libsvm/agaricus.txt.train",
     NULL,
     NULL,
     6513,
     {{"label", NULL, TY_I64, 0, 3140}, {"features", NULL, TY_F64, 0, 143286}, {"values", NULL, TY_F32, 0, 143286}}},
    {"agaricus-libsvm/agaricus.txt.test",
     NULL,
     NULL,
     1611,
     {{"label", NULL, TY_I64, 0, 776}, {"features", NULL, TY_F64, 0, 35442}}},
    {"chicago-taxi/data.csv",
     NULL,
     NULL,
     10000,
     {{"fare", NULL, TY_F64, 0, 126155.11},
      {"trip_seconds", NULL, TY_F64, 2, 8221064},
      {"tips", NULL, TY_F64, 0, 12045.21},
      {"dropoff_latitude", NULL, TY_F64, 393, 402564.0251008644},
      {"pickup_census_tract", NULL, TY_F64, 10000, 0},
      {"trip_miles", NULL, TY_F64, 0, 33262.62}}},
    {"chicago-taxi",
     "train*",
     NULL,
     4954,
     {{"dropoff_census_tract", NULL, TY_I64, 1383, 60818925752371.0},
      {"pickup_census_tract", NULL, TY_I64, 4953, 17031081401.0},
      {"dropoff_latitude", NULL, TY_F64, 151, 201257.8846321106},
      {"fare", NULL, TY_F64, 0, 57547.71},
      {"tips", NULL, TY_F64, 0, 5137.29},
      {"trip_seconds", NULL, TY_I64, 2, 3769151},
      {"trip_start_timestamp", NULL, TY_I64, 0, 6978151330200.0}}},
    {"chicago-taxi",
     "eval*",
     NULL,
     2546,
     {{"dropoff_longitude", NULL, TY_F64, 87, -215543.9169998169}, {"trip_seconds", NULL, TY_I64, 2, 2044920}}},
    {"penguins/penguins_processed.csv",
     NULL,
     NULL,
     334,
     {{"species", NULL, TY_I64, 0, 308}, {"body_mass_g", NULL, TY_F64, 0, 140.00694444444449}}},
    {"penguins/train.tfrecord.gz",
     NULL,
     NULL,
     234,
     {{"species", NULL, TY_I64, 0, 224}, {"culmen_length_mm", NULL, TY_F64, 0, 103.11999986693263}}},
    {"penguins/eval.tfrecord.gz",
     NULL,
     NULL,
     100,
     {{"species", NULL, TY_I64, 0, 84}, {"flipper_length_mm", NULL, TY_F64, 0, 47.338983088731766}}},
    {"ranking-libsvm/vali.qid.txt",
     NULL,
     NULL,
     36,
     {{"label", NULL, TY_I64, 0, 28}, {"qid", NULL, TY_I64, 0, 159}, {"features", NULL, TY_F64, 0, 22.529126}}},
    {"mnist", "*images*", NULL, 10000, {{"images", NULL, TY_U8, 0, 33.7912242 * 7840000}}},
    {"mnist", "*labels*", NULL, 10000, {{"labels", NULL, TY_U8, 0, 44434}}},
    {"tfrecord-misc/mnist1000.tfrecord", NULL, NULL, 1000, {{"image_class", NULL, TY_I64, 0, 4498}}},
    {"criteo-ctr/criteo_deepfm_10k.tfrecord", NULL, NULL, 10000, {{"label", NULL, TY_I64, 0, 2553}}},
};

static const char *need(const char *name)
{
    const char *path = files_shared(name);
    if (!path) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    return path;
}

static double add_up(const ty_dataset *ds, int field)
{
    const ty_field_info *f = &ds->field[field];
    int64_t n = ty_type_elems(&f->type);
    void *row = malloc(f->row_bytes + 1);
    double total = 0;
    assert_non_null(row);
    for (int64_t s = 0; s < ds->n_samples; s++) {
        ty_error err = {0};
        assert_ok(ty_dataset_read(ds, field, &s, 1, row, &err), &err);
        for (int64_t i = 0; i < n; i++)
            total += f->type.dtype == TY_F64   ? ((double *)row)[i]
                     : f->type.dtype == TY_F32 ? (double)((float *)row)[i]
                     : f->type.dtype == TY_I64 ? (double)((int64_t *)row)[i]
                                               : ((uint8_t *)row)[i];
    }
    free(row);
    return total;
}

/* f: [MOST_FIELDS], filled. */
static ty_data_source source_of(const set *s, const char *const *path, ty_field *f)
{
    int n = 0;
    for (; n < MOST_FIELDS && s->field[n].name; n++) {
        f[n] = ty_field_make(s->field[n].name);
        f[n].columns = s->field[n].columns;
        f[n].dtype = s->field[n].dtype;
        f[n].dtype_given = f[n].missing_given = true;
    }
    return (ty_data_source){.paths = path,
                            .n_paths = 1,
                            .pattern = s->pattern,
                            .format = s->format,
                            .fields = f,
                            .n_fields = n,
                            .lenient = strstr(s->path, "ranking") != NULL};
}

static void check_set(const set *s)
{
    const char *path = need(s->path);
    ty_field f[MOST_FIELDS];
    ty_data_source src = source_of(s, &path, f);
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_int_equal(ds->n_samples, s->n_samples);
    for (int i = 0; i < ds->n_fields; i++) {
        double found = add_up(ds, i), want = s->field[i].sum;
        if (ds->field[i].n_missing != s->field[i].n_missing || !(fabs(found - want) <= 1e-7 * fabs(want) + 1e-6))
            fail_msg("%s, %s: %lld missing, sum %.17g", s->path, s->field[i].name, (long long)ds->field[i].n_missing,
                     found);
    }
    ty_dataset_close(ds);
}

static void sets_add_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        check_set(&sets[i]);
}

/* ---- refusals ---- */

static void damaged_and_strange_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *says;
    } rows[] = {{"recordio-protobuf/corrupted_split_records.pr", "record 3 at byte 264"},
                {"tfrecord-misc/100.tfrecords", "no tf.train.Example"},
                {"ranking-libsvm/vali.qid.txt", "vali.qid.txt:1: the index 2 stands twice"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = need(rows[i].path);
        ty_field f = ty_field_make(i == 1 ? "x" : i == 0 ? "features" : "label");
        ty_data_source src = {.paths = &path, .n_paths = 1, .fields = &f, .n_fields = 1};
        ty_dataset *ds;
        ty_error err = {0};
        assert_int_equal(ty_dataset_open(&src, &ds, &err), -1);
        assert_says(&err, rows[i].says);
        src.skip_bad = i != 1; /* no policy helps where frames are lost */
        assert_true(i == 2 || ty_dataset_open(&src, &ds, &err) < 0);
    }
}

/* ---- sharding ---- */

static void shards_together_have_each_row_once(void **state)
{
    (void)state;
    static const int64_t ranks[] = {1, 2, 3, 7};
    const char *path = need("criteo-ctr/criteo_deepfm_10k.tfrecord");
    ty_field f[2] = {ty_field_make("label"), ty_field_make("ids")};
    ty_data_source src = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2};
    enum { BATCH = 32, IDS = 117566 };
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_int_equal(ds->field[1].max, IDS - 1);
    uint8_t *seen = malloc(IDS), *times = malloc(10000);
    assert_non_null(seen);
    assert_non_null(times);
    for (int r = 0; r < 4; r++) {
        float labels[BATCH];
        int64_t ids[BATCH * 39], samples[BATCH], different = 0;
        double ones = 0;
        memset(seen, 0, IDS);
        memset(times, 0, 10000);
        for (int64_t shard = 0; shard < ranks[r]; shard++) {
            ty_sampler_config config = {.n_samples = 10000,
                                        .batch_size = BATCH,
                                        .shuffle = true,
                                        .seed = 5,
                                        .stream = TY_STREAM_SHUFFLE,
                                        .shard = shard,
                                        .n_shards = ranks[r],
                                        .tail = TY_TAIL_PAD};
            ty_sampler s;
            assert_ok(ty_sampler_init(&s, &config, &err), &err);
            for (int64_t b = 0; b < s.n_batches; b++) {
                int64_t n = ty_sampler_batch(&s, (ty_position){3, b}, samples);
                ty_pick pick = {.sample = samples, .n = n};
                assert_ok(ty_dataset_read_all(ds, &pick, (void *[]){labels, ids}, &err), &err);
                for (int64_t i = 0; i < n; i++) {
                    ones += labels[i];
                    times[samples[i]]++;
                }
                for (int64_t i = 0; i < 39 * n; i++)
                    seen[ids[i]] = 1;
            }
            ty_sampler_fini(&s);
        }
        for (int64_t i = 0; i < IDS; i++)
            different += seen[i];
        for (int64_t i = 0; i < 10000; i++)
            assert_int_equal(times[i], 1);
        assert_true(ones == 2553);
        assert_int_equal(different, 28116);
    }
    free(seen);
    free(times);
    ty_dataset_close(ds);
}

/* One epoch of a shard of a stream: adds up what it has. */
static void add_stream(const char *path, ty_stream_order order, uint8_t *times, double *ones)
{
    enum { ROWS = 32 };
    ty_field f[2] = {ty_field_make("label"), ty_field_make("ids")};
    ty_stream_config c = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_stream *s;
    ty_error err = {0};
    assert_ok(ty_stream_open(&c, &s, &err), &err);
    order.n_rows = ROWS;
    ty_prefetch_config config = {.until_epoch = 1, .n_workers = 2};
    ty_prefetch *p;
    const ty_batch *b;
    assert_ok(ty_stream_feed(s, &order, &config.feed, &err), &err);
    assert_ok(ty_prefetch_start(&config, &p, &err), &err);
    while (ty_prefetch_next(p, &b, &err) == 0 && b) {
        for (int64_t i = 0; i < b->n_valid; i++) {
            *ones += ((const float *)b->field[0].data)[i];
            times[b->samples[i]]++;
        }
        ty_prefetch_release(p, b);
    }
    assert_int_equal(err.code, TY_E_NONE);
    ty_prefetch_stop(p);
    ty_data_feed_close(config.feed);
    ty_stream_close(s);
}

static void shards_of_a_stream_have_each_row_once(void **state)
{
    (void)state;
    static const int64_t ranks[] = {1, 2, 3, 7};
    const char *path = need("criteo-ctr/criteo_deepfm_10k.tfrecord");
    uint8_t *times = malloc(10000);
    assert_non_null(times);
    for (int i = 0; i < 8; i++) {
        ty_stream_order order = {.tail = TY_TAIL_PAD,
                                 .shard_by = i < 4 ? TY_SHARD_ROWS : TY_SHARD_RECORDS,
                                 .n_shards = ranks[i % 4],
                                 .shuffle_rows = 500,
                                 .seed = 7};
        double ones = 0;
        memset(times, 0, 10000);
        for (; order.shard < order.n_shards; order.shard++)
            add_stream(path, order, times, &ones);
        for (int64_t k = 0; k < 10000; k++)
            assert_int_equal(times[k], 1);
        assert_true(ones == 2553);
    }
    free(times);
}

/* ---- every set, by 1, 2, 3 and 7 ranks ---- */

static const int64_t all_ranks[] = {1, 2, 3, 7};

/* What of a set has been met: how often each sample, and the sums of fields. */
typedef struct met {
    uint8_t *times;
    double sum[MOST_FIELDS];
} met;

static void met_row(met *m, const set *s, const ty_field_info *field, int n, const ty_batch *b, int64_t row)
{
    assert_true(b->samples[row] >= 0 && b->samples[row] < s->n_samples);
    m->times[b->samples[row]]++;
    for (int i = 0; i < n; i++) {
        int64_t each = ty_type_elems(&field[i].type);
        const void *data = b->field[i].data;
        for (int64_t k = row * each; k < (row + 1) * each; k++)
            m->sum[i] += field[i].type.dtype == TY_F64   ? ((const double *)data)[k]
                         : field[i].type.dtype == TY_F32 ? (double)((const float *)data)[k]
                         : field[i].type.dtype == TY_I64 ? (double)((const int64_t *)data)[k]
                                                         : ((const uint8_t *)data)[k];
    }
}

static void met_all(met *m, const set *s, const ty_field_info *field, int n, ty_prefetch_config config)
{
    ty_prefetch *p;
    const ty_batch *b;
    ty_error err = {0};
    config.until_epoch = 1;
    config.n_workers = 2;
    assert_ok(ty_prefetch_start(&config, &p, &err), &err);
    while (ty_prefetch_next(p, &b, &err) == 0 && b) {
        for (int64_t row = 0; row < b->n_valid; row++)
            met_row(m, s, field, n, b, row);
        ty_prefetch_release(p, b);
    }
    assert_ok(-(err.code != TY_E_NONE), &err);
    ty_prefetch_stop(p);
}

static void check_met(met *m, const set *s, const char *how, int64_t ranks)
{
    for (int64_t i = 0; i < s->n_samples; i++)
        if (m->times[i] != 1)
            fail_msg("%s, %s, %lld ranks: sample %lld is met %d times", s->path, how, (long long)ranks, (long long)i,
                     m->times[i]);
    for (int i = 0; i < MOST_FIELDS && s->field[i].name; i++)
        if (!(fabs(m->sum[i] - s->field[i].sum) <= 1e-7 * fabs(s->field[i].sum) + 1e-6))
            fail_msg("%s, %s, %lld ranks: %s adds up to %.17g", s->path, how, (long long)ranks, s->field[i].name,
                     m->sum[i]);
    memset(m->times, 0, (size_t)s->n_samples);
    memset(m->sum, 0, sizeof m->sum);
}

static void check_by_number(const set *s, const ty_data_source *src, met *m)
{
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(src, &ds, &err), &err);
    for (int r = 0; r < 4; r++) {
        for (int64_t shard = 0; shard < all_ranks[r]; shard++) {
            ty_sampler_config order = {.batch_size = 33,
                                       .shuffle = true,
                                       .seed = 5,
                                       .stream = TY_STREAM_SHUFFLE,
                                       .shard = shard,
                                       .n_shards = all_ranks[r],
                                       .tail = TY_TAIL_PAD};
            met_all(m, s, ds->field, src->n_fields, (ty_prefetch_config){.dataset = ds, .sampler = order});
        }
        check_met(m, s, "by number", all_ranks[r]);
    }
    ty_dataset_close(ds);
}

static void check_streamed(const set *s, const ty_data_source *src, ty_stream_shard by, met *m)
{
    static const char *const ways[] = {"rows of a stream", "records of a stream", "files of a stream"};
    ty_stream_config c = {.paths = src->paths,
                          .n_paths = 1,
                          .pattern = src->pattern,
                          .fields = src->fields,
                          .n_fields = src->n_fields,
                          .lenient = src->lenient};
    for (int r = 0; r < 4; r++) {
        int64_t first = 0;
        for (int64_t shard = 0; shard < all_ranks[r]; shard++) {
            ty_stream *stream;
            ty_error err = {0};
            ty_prefetch_config config = {0};
            ty_stream_order order = {.n_rows = 33,
                                     .tail = TY_TAIL_PAD,
                                     .shard_by = by,
                                     .shard = shard,
                                     .n_shards = all_ranks[r],
                                     .shuffle_rows = 100,
                                     .seed = 7};
            assert_ok(ty_stream_open(&c, &stream, &err), &err);
            assert_ok(ty_stream_feed(stream, &order, &config.feed, &err), &err);
            met mine = {calloc((size_t)s->n_samples, 1), {0}};
            met_all(&mine, s, stream->field, src->n_fields, config);
            /* Records of files are numbered in the files of a shard. */
            for (int64_t i = 0; i < s->n_samples && by == TY_SHARD_FILES; i++)
                if (mine.times[i])
                    m->times[first++] += mine.times[i];
            for (int64_t i = 0; i < s->n_samples && by != TY_SHARD_FILES; i++)
                m->times[i] += mine.times[i];
            for (int i = 0; i < src->n_fields; i++)
                m->sum[i] += mine.sum[i];
            free(mine.times);
            ty_data_feed_close(config.feed);
            ty_stream_close(stream);
        }
        check_met(m, s, ways[by], all_ranks[r]);
    }
}

/* Tables with headers, and arrays, do not stream. */
static bool streams(const ty_dataset *ds)
{
    return strcmp(ds->format, "tfrecord") == 0 || strcmp(ds->format, "libsvm") == 0;
}

static void shards_of_each_set_have_each_row_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        const set *s = &sets[i];
        const char *path = need(s->path);
        ty_field f[MOST_FIELDS];
        ty_data_source src = source_of(s, &path, f);
        met m = {calloc((size_t)s->n_samples, 1), {0}};
        ty_dataset *ds;
        ty_error err = {0};
        assert_non_null(m.times);
        check_by_number(s, &src, &m);
        assert_ok(ty_dataset_open(&src, &ds, &err), &err);
        for (int k = 0; k < src.n_fields && strcmp(ds->format, "tfrecord") == 0; k++)
            f[k].shape_given = true; /* numbers, of which a stream's first records may have none */
        for (int by = TY_SHARD_ROWS; by <= TY_SHARD_FILES && streams(ds); by++)
            check_streamed(s, &src, (ty_stream_shard)by, &m);
        ty_dataset_close(ds);
        free(m.times);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_add_up),
        cmocka_unit_test(damaged_and_strange_files_are_refused),
        cmocka_unit_test(shards_together_have_each_row_once),
        cmocka_unit_test(shards_of_a_stream_have_each_row_once),
        cmocka_unit_test(shards_of_each_set_have_each_row_once),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
