/* input_record_images.c - encoded pictures in records: tf.train.Example, SageMaker's Record, MXNet's .rec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "container/input/stream/stream.h"
#include "container/input/survey.h"
#include "container/output/protobuf.h"
#include "input_files.h"

#include <math.h>

/* ---- writing ---- */

static void put(ty_buf *b, const void *bytes, size_t n)
{
    if (ty_buf_add(b, bytes, n) < 0)
        abort();
}

static ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 20);
    return b;
}

/* `outer` gets inner as field `number`; inner is done with. */
static void nest(ty_buf *outer, int number, ty_buf *inner)
{
    ty_proto_put_bytes(outer, number, inner->data, inner->len);
    ty_buf_fini(inner);
}

/* 2 x 2 pixels of one grey, or the first of them. */
static const char *grey(uint8_t v)
{
    static char bytes[4][16];
    static int next;
    char *p = memcpy(bytes[next++ % 4], "P5 2 2 255\n", 11);
    return memset(p + 11, v, 4), p;
}

enum { GREY = 15 };

static void put_entry(ty_buf *map, int number, const char *name, ty_buf *value)
{
    ty_buf entry = new_buf();
    ty_proto_put_bytes(&entry, 1, name, strlen(name));
    nest(&entry, 2, value);
    nest(map, number, &entry);
}

static void put_example(ty_buf *file, const char *picture, size_t n, int label)
{
    ty_buf list = new_buf(), feature = new_buf(), features = new_buf(), example = new_buf();
    ty_proto_put_bytes(&list, 1, picture, n);
    nest(&feature, 1, &list);
    put_entry(&features, 1, "picture", &feature);
    list = new_buf(), feature = new_buf();
    put(&list, (uint8_t[]){1 << 3, (uint8_t)label}, 2);
    nest(&feature, 3, &list);
    put_entry(&features, 1, "label", &feature);
    nest(&example, 1, &features);
    uint64_t length = example.len;
    uint32_t sums[2] = {ty_crc32c_mask(ty_crc32c(0, &length, 8)),
                        ty_crc32c_mask(ty_crc32c(0, example.data, example.len))};
    put(file, &length, 8);
    put(file, &sums[0], 4);
    put(file, example.data, example.len);
    put(file, &sums[1], 4);
    ty_buf_fini(&example);
}

static void put_part(ty_buf *file, uint32_t kind, const void *payload, size_t n)
{
    put(file, (uint32_t[]){0xced7230a, kind << 29 | (uint32_t)n}, 8);
    put(file, payload, n);
    put(file, "   ", (4 - n % 4) % 4);
}

static void put_record(ty_buf *file, const char *picture, size_t n, float label)
{
    ty_buf bytes = new_buf(), value = new_buf(), floats = new_buf(), record = new_buf();
    ty_proto_put_bytes(&bytes, 1, picture, n);
    nest(&value, 9, &bytes);
    put_entry(&record, 1, "picture", &value);
    value = new_buf();
    ty_proto_put_bytes(&floats, 1, &label, 4);
    nest(&value, 2, &floats);
    put_entry(&record, 2, "values", &value);
    put_part(file, 0, record.data, record.len);
    ty_buf_fini(&record);
}

static ty_buf mxnet(uint32_t flag, const float *labels, const char *picture, size_t n)
{
    ty_buf b = new_buf();
    struct {
        uint32_t flag;
        float label;
        uint64_t id[2];
    } header = {flag, flag ? -1 : labels[0], {7, 0}};
    put(&b, &header, 24);
    put(&b, labels, flag * 4);
    put(&b, picture, n);
    return b;
}

static void put_mxnet(ty_buf *file, uint32_t flag, const float *labels, const char *picture, size_t n)
{
    ty_buf b = mxnet(flag, labels, picture, n);
    put_part(file, 0, b.data, b.len);
    ty_buf_fini(&b);
}

static void save(const char *name, ty_buf *file)
{
    files_put(name, file->data, file->len);
    ty_buf_fini(file);
}

static ty_image_plan plain(void)
{
    ty_image_plan p = ty_image_plan_make();
    p.scale = 1.0, p.scale_given = true;
    return p;
}

static ty_field picture(const char *name, ty_image_plan *plan)
{
    ty_field f = ty_field_make(name);
    f.image = plan;
    return f;
}

static const char *const names[2] = {"t.tfrecord", "t.recordio"};

static void put_both(int n, const uint8_t *v, int bad)
{
    ty_buf example = new_buf(), record = new_buf();
    for (int i = 0; i < n; i++) {
        size_t bytes = i == bad ? GREY - 2 : GREY;
        put_example(&example, grey(v[i]), bytes, i);
        put_record(&record, grey(v[i]), bytes, (float)i);
    }
    save(names[0], &example);
    save(names[1], &record);
}

/* ---- tests ---- */

static void bytes_of_records_are_pictures(void **state)
{
    (void)state;
    put_both(3, (uint8_t[]){10, 20, 30}, -1);
    ty_image_plan plan = plain();
    ty_field f[2] = {picture("picture", &plan), ty_field_make("label")};
    f[1].dtype = TY_I64, f[1].dtype_given = true;
    for (int k = 0; k < 2; k++) {
        ty_dataset *ds;
        ty_error err = {0};
        float x[3][4];
        int64_t y[3], pick[3] = {2, 0, 1};
        assert_ok(files_open(names[k], f, 2, (ty_data_source){0}, &ds, &err), &err);
        assert_true(ds->field[0].type.rank == 3 && ds->field[0].type.dim[1] == 2 && ds->field[0].image);
        assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = pick, .n = 3}, (void *[]){x, y}, &err), &err);
        assert_true(x[0][0] == 30 && x[1][3] == 10 && x[2][1] == 20 && y[0] == 2 && y[2] == 1);
        ty_dataset_close(ds);
        ty_arena a;
        ty_data_survey survey;
        ty_arena_init(&a);
        const char *path = files_path(names[k]);
        assert_ok(ty_data_survey_make(&(ty_data_source){.paths = &path, .n_paths = 1}, &a, &survey, &err), &err);
        assert_true(survey.n_parts == 2 && survey.part[0].is_picture && !survey.part[1].is_picture);
        ty_arena_fini(&a);
    }
}

/* Sides are drawn anew in each epoch, alike whichever samples are read with it. */
static void pictures_in_records_are_augmented(void **state)
{
    (void)state;
    ty_buf file = new_buf();
    for (int i = 0; i < 16; i++)
        put_example(&file, "P5 2 1 255\n\x01\x02", 13, i);
    save("t.tfrecord", &file);
    ty_image_plan plan = plain();
    plan.flip_across = true;
    ty_field f = picture("picture", &plan);
    ty_dataset *ds;
    ty_error err = {0};
    float x[16][2], again[1][2], other[16][2], mine[16][2];
    int64_t all[16];
    int n_flipped = 0, n_changed = 0;
    for (int i = 0; i < 16; i++)
        all[i] = i;
    assert_ok(files_open("t.tfrecord", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    ty_pick one = {all, 16, .seed = 5, .epoch = 1, .augment = true}, next = one, some = one;
    next.epoch = 2, some.sample = all + 9, some.n = 1;
    assert_ok(ty_dataset_read_all(ds, &one, (void *[]){x}, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &next, (void *[]){other}, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &some, (void *[]){again}, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 16, mine, &err), &err);
    for (int i = 0; i < 16; i++) {
        n_flipped += x[i][0] == 2;
        n_changed += x[i][0] != other[i][0];
        assert_true(mine[i][0] == 1 && x[i][0] + x[i][1] == 3);
    }
    assert_true(n_flipped > 0 && n_flipped < 16 && n_changed > 0 && again[0][0] == x[9][0]);
    ty_dataset_close(ds);
}

static void bad_pictures_in_records_have_a_place(void **state)
{
    (void)state;
    put_both(3, (uint8_t[]){10, 20, 30}, 1);
    ty_image_plan plan = plain(), deep = plan;
    deep.decode_all = true;
    for (int k = 0; k < 2; k++) {
        ty_field f = picture("picture", &deep), late = picture("picture", &plan);
        ty_dataset *ds;
        ty_error err = {0};
        float x[3][4];
        int64_t all[3] = {0, 1, 2};
        assert_int_equal(files_open(names[k], &f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_says(&err, "record 1 at byte");
        assert_says(&err, "its pixels take 4 bytes, found 2");
        err = (ty_error){0};
        assert_ok(files_open(names[k], &late, 1, (ty_data_source){0}, &ds, &err), &err);
        assert_int_equal(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 3}, (void *[]){x}, &err), -1);
        assert_says(&err, "record 1 at byte");
        ty_dataset_close(ds);
        err = (ty_error){0};
        assert_ok(files_open(names[k], &late, 1, (ty_data_source){.skip_bad = true}, &ds, &err), &err);
        assert_true(ds->n_samples == 2 && ds->bad.n == 1);
        assert_ok(ty_dataset_read(ds, 0, all, 2, x, &err), &err);
        assert_true(x[0][0] == 10 && x[1][0] == 30);
        ty_dataset_close(ds);
    }
    ty_field f = picture("label", &plan);
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("t.tfrecord", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "a picture or sound is a byte string");
}

static void means_are_of_all_records(void **state)
{
    (void)state;
    put_both(2, (uint8_t[]){10, 30}, -1);
    ty_image_plan plan = plain();
    plan.mean_of_data = true;
    ty_field f = picture("picture", &plan);
    ty_dataset *ds, *other;
    ty_error err = {0};
    float x[2][4];
    int64_t all[2] = {0, 1};
    assert_ok(files_open("t.tfrecord", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 2, x, &err), &err);
    assert_true(x[0][0] == -1 && x[1][0] == 1);
    put_both(2, (uint8_t[]){20, 40}, -1);
    assert_ok(files_open("t.tfrecord", &f, 1, (ty_data_source){.like = ds}, &other, &err), &err);
    assert_ok(ty_dataset_read(other, 0, all, 2, x, &err), &err);
    assert_true(x[0][0] == 0 && x[1][0] == 2);
    ty_dataset_close(other);
    ty_dataset_close(ds);
}

/* ---- mixing, and streams ---- */

enum { N_MIXED = 24 };

/* One grey each, in records and in folders of the same order, two classes in turn. */
static void put_mixed(int bad)
{
    uint8_t v[N_MIXED];
    char name[64];
    ty_buf example = new_buf();
    for (int i = 0; i < N_MIXED; i++) {
        int class = i >= N_MIXED / 2;
        v[i] = (uint8_t)(10 * i + 5);
        snprintf(name, sizeof name, "d/%d/%02d.pgm", class, i);
        files_put(name, grey(v[i]), GREY);
        put_example(&example, grey(v[i]), i == bad ? GREY - 2 : GREY, class);
    }
    files_put("s/all.tfrecord", example.data, example.len);
    ty_buf_fini(&example);
}

static void mixed_fields(ty_arena *a, ty_image_plan *plan, ty_field f[2], const char *name)
{
    ty_map_spec spec = {.field = "label", .way = TY_MAP_CLASSES, .scale = 1.0, .one_hot = -1};
    ty_error err = {0};
    *plan = plain();
    plan->alpha = 1.0;
    f[0] = picture(name, plan);
    f[1] = ty_field_make("label");
    assert_ok(ty_map_new(&spec, a, &f[1].map, &err), &err);
}

static void records_are_mixed_as_folders_are(void **state)
{
    (void)state;
    put_mixed(-1);
    for (int how = TY_IMAGE_MIXUP; how <= TY_IMAGE_CUTMIX; how++) {
        ty_arena a;
        ty_image_plan plans[2];
        ty_field f[2];
        ty_dataset *ds[2];
        ty_error err = {0};
        float x[2][N_MIXED][4], y[2][N_MIXED][2];
        int64_t all[N_MIXED], n_mixed = 0;
        ty_arena_init(&a);
        for (int i = 0; i < N_MIXED; i++)
            all[i] = i * 7 % N_MIXED;
        for (int k = 0; k < 2; k++) {
            mixed_fields(&a, &plans[k], f, k ? "picture" : "image");
            plans[k].mix = (ty_image_mix)how;
            plans[k].mean_of_data = true;
            assert_ok(files_open(k ? "s" : "d", f, 2, (ty_data_source){0}, &ds[k], &err), &err);
            assert_true(!plans[k].mean_of_data && plans[k].n_mean == 1); /* for validation data */
            ty_pick pick = {all, N_MIXED, .seed = 3, .epoch = 2, .augment = true};
            assert_ok(ty_dataset_read_all(ds[k], &pick, (void *[]){x[k], y[k]}, &err), &err);
            ty_dataset_close(ds[k]);
        }
        assert_memory_equal(x[0], x[1], sizeof x[0]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        for (int i = 0; i < N_MIXED; i++)
            n_mixed += y[1][i][0] > 0 && y[1][i][1] > 0;
        assert_true(n_mixed > 0 &&
                    (how == TY_IMAGE_CUTMIX || n_mixed > N_MIXED / 8)); /* a cut of 2 x 2 is often none */
        ty_arena_fini(&a);
    }
}

/* One epoch from a batch on, n_shards' rows of each global batch side by side: greys and labels. Returns the rows. */
static int64_t stream_mixed(ty_stream *s, int64_t n_shards, int64_t from, float (*x)[4], float (*y)[2])
{
    enum { GLOBAL = 8 };
    int64_t n_all = 0;
    for (int64_t shard = 0; shard < n_shards; shard++) {
        ty_stream_order order = {.n_rows = GLOBAL / n_shards, .shuffle_rows = 6, .seed = 9, .augment = true};
        ty_data_feed *feed;
        ty_draft draft = {0};
        ty_error err = {0};
        int64_t samples[GLOBAL];
        order.tail = TY_TAIL_PAD;
        order.shard = shard, order.n_shards = n_shards;
        assert_ok(ty_stream_feed(s, &order, &feed, &err), &err);
        draft.samples = samples;
        assert_ok(feed->ops->start(feed, (ty_position){.epoch = 1, .batch = from}, 2, &err), &err);
        assert_ok(feed->ops->open_draft(feed, &draft, &err), &err);
        for (int64_t batch = from; feed->ops->take(feed, &draft, &err) == 1; batch++) {
            int64_t row = batch * GLOBAL + shard * order.n_rows;
            assert_ok(feed->ops->fill(feed, &draft, (void *[]){x[row], y[row]}, &err), &err);
            n_all += draft.n_valid;
        }
        feed->ops->close_draft(feed, &draft);
        ty_data_feed_close(feed);
    }
    return n_all;
}

static void streams_mix_within_the_global_batch(void **state)
{
    (void)state;
    ty_arena a;
    ty_image_plan plan;
    ty_field f[2];
    ty_stream *s;
    ty_error err = {0};
    float x[N_MIXED + 8][4], y[N_MIXED + 8][2], other_x[N_MIXED + 8][4], other_y[N_MIXED + 8][2];
    int n_mixed = 0;
    put_mixed(-1);
    ty_arena_init(&a);
    mixed_fields(&a, &plan, f, "picture");
    plan.mix = TY_IMAGE_MIXUP;
    const char *path = files_path("s");
    ty_stream_config config = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_field plain_label[2] = {f[0], ty_field_make("label")};
    ty_stream_config wrong = config;
    wrong.fields = plain_label;
    assert_int_equal(ty_stream_open(&wrong, &s, &err), -1);
    assert_says(&err, "is a class's number, of which mixed pictures have two");
    err = (ty_error){0};
    assert_ok(ty_stream_open(&config, &s, &err), &err);
    assert_int_equal(stream_mixed(s, 1, 0, x, y), N_MIXED);
    for (int i = 0; i < N_MIXED; i++) {
        n_mixed += fmodf(x[i][0] - 5, 10) != 0;
        assert_true(y[i][0] + y[i][1] > 0.999f && y[i][0] + y[i][1] < 1.001f);
        assert_true(y[i][1] == 0 ? x[i][0] < 120 : x[i][0] >= 5);
    }
    assert_true(n_mixed > N_MIXED / 2);
    for (int64_t n = 2; n <= 4; n *= 2) {
        assert_int_equal(stream_mixed(s, n, 0, other_x, other_y), N_MIXED);
        assert_memory_equal(x, other_x, N_MIXED * sizeof *x);
        assert_memory_equal(y, other_y, N_MIXED * sizeof *y);
    }
    memset(other_x, 0, sizeof other_x);
    assert_int_equal(stream_mixed(s, 2, 1, other_x, other_y), N_MIXED - 8); /* resumed behind the first batch */
    assert_memory_equal(x[8], other_x[8], (N_MIXED - 8) * sizeof *x);
    ty_stream_close(s);
    ty_arena_fini(&a);
}

/* What is damaged is left out of means and classes as it is of batches. */
static void streams_learn_means(void **state)
{
    (void)state;
    for (int bad = -1; bad < N_MIXED; bad += N_MIXED) {
        ty_arena a;
        ty_image_plan plans[2];
        ty_field f[2];
        ty_dataset *ds;
        ty_stream *s;
        ty_error err = {0};
        put_mixed(bad);
        ty_arena_init(&a);
        mixed_fields(&a, &plans[0], f, "picture");
        plans[0].mean_of_data = true;
        assert_ok(files_open("s", f, 2, (ty_data_source){.skip_bad = bad >= 0}, &ds, &err), &err);
        mixed_fields(&a, &plans[1], f, "picture");
        plans[1].mean_of_data = true;
        const char *path = files_path("s");
        ty_stream_config config = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2, .skip_bad = bad >= 0};
        assert_ok(ty_stream_open(&config, &s, &err), &err);
        const ty_image_plan *one = ds->field[0].image, *two = s->field[0].image;
        assert_true(one->n_mean == 1 && one->mean[0] == two->mean[0] && one->std[0] == two->std[0]);
        double mean = 0;
        for (int i = 0; i < N_MIXED; i++)
            mean += i == bad ? 0 : 10 * i + 5;
        assert_true(fabs(one->mean[0] - mean / (N_MIXED - (bad >= 0))) < 1e-9);
        assert_true(!plans[1].mean_of_data && plans[1].mean[0] == two->mean[0]);
        ty_stream_close(s);
        ty_dataset_close(ds);
        ty_arena_fini(&a);
    }
}

static void damaged_pixels_are_told_where_means_are_computed(void **state)
{
    (void)state;
    put_mixed(17);
    ty_arena a;
    ty_image_plan plan;
    ty_field f[2];
    ty_dataset *ds;
    ty_stream *s;
    ty_error err = {0};
    const char *path = files_path("s");
    ty_stream_config config = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_arena_init(&a);
    mixed_fields(&a, &plan, f, "picture");
    plan.mean_of_data = true;
    assert_int_equal(files_open("s", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "record 17 at byte");
    assert_says(&err, "its pixels take 4 bytes, found 2");
    err = (ty_error){0};
    mixed_fields(&a, &plan, f, "picture");
    plan.mean_of_data = true;
    assert_int_equal(ty_stream_open(&config, &s, &err), -1);
    assert_says(&err, "record 17 at byte");
    ty_arena_fini(&a);
}

static void mxnets_records_are_read(void **state)
{
    (void)state;
    ty_buf file = new_buf(), b = mxnet(1, (float[]){1}, "P5 2 2  255\n\x0a\x23\xd7\xce", 16);
    put_part(&file, 1, b.data, 40); /* what its writer cuts out where it parts */
    put_part(&file, 3, b.data + 44, 0);
    put_mxnet(&file, 0, (float[]){2}, grey(7), GREY);
    ty_buf_fini(&b);
    save("t.rec", &file);
    files_puts("t.idx", "0\t0\n1\t56\n");
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    ty_dataset *ds;
    ty_error err = {0};
    float x[3][4];
    int64_t y[3], all[3] = {0, 1, 2};
    assert_ok(files_open(NULL, f, 2, (ty_data_source){.format = "mxnet"}, &ds, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 2}, (void *[]){x, y}, &err), &err);
    assert_true(x[0][0] == 10.0f / 255 && x[0][3] == 206.0f / 255 && x[1][0] == 7.0f / 255 && y[0] == 1 && y[1] == 2);
    ty_dataset_close(ds);

    file = new_buf();
    put_mxnet(&file, 0, (float[]){3}, grey(7), GREY);
    put_mxnet(&file, 1, (float[]){5}, grey(9), GREY);
    save("t.rec", &file);
    for (int k = 0; k < 2; k++) {
        err = (ty_error){0};
        assert_ok(
            files_open(NULL, f, 2, (ty_data_source){.content_type = k ? "application/x-recordio" : NULL}, &ds, &err),
            &err);
        assert_string_equal(ds->format, "mxnet");
        assert_true(ds->n_samples == 2 && ds->field[1].type.dtype == TY_I64 && ds->field[1].max == 5);
        assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 2}, (void *[]){x, y}, &err), &err);
        assert_true(x[0][0] == 7.0f / 255 && x[1][0] == 9.0f / 255 && y[0] == 3 && y[1] == 5);
        ty_dataset_close(ds);
    }
    file = new_buf();
    put_mxnet(&file, 2, (float[]){0.5f, 2}, grey(7), GREY);
    save("t.rec", &file);
    err = (ty_error){0};
    assert_ok(files_open(NULL, f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_true(ds->field[1].type.dtype == TY_F32 && ds->field[1].type.dim[0] == 2);
    assert_ok(ty_dataset_read(ds, 1, all, 1, x, &err), &err);
    assert_true(x[0][0] == 0.5f && x[0][1] == 2);
    ty_dataset_close(ds);

    file = new_buf();
    put_mxnet(&file, 0, (float[]){1}, grey(7), GREY);
    put_part(&file, 0, "\xff\xff\xff\x7f-------------------------", 29);
    put_part(&file, 0, "short", 5);
    save("t.rec", &file);
    err = (ty_error){0};
    assert_int_equal(files_open(NULL, f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "its header says 2147483647 labels, but there is room for 1");
    err = (ty_error){0};
    assert_ok(files_open(NULL, f, 2, (ty_data_source){.skip_bad = true}, &ds, &err), &err);
    assert_true(ds->n_samples == 1 && ds->bad.n == 2);
    ty_dataset_close(ds);
    f[1].name = "id";
    err = (ty_error){0};
    assert_int_equal(files_open(NULL, f, 2, (ty_data_source){.skip_bad = true}, &ds, &err), -1);
    assert_says(&err, "MXNet's records have");
}

/* What the other parts of the data say: ctx. */
static int other_says(void *ctx, const char *what, ty_agree_how how, int64_t *v, int n, ty_error *err)
{
    int64_t *other = ctx;
    (void)err;
    assert_string_equal(what, "labels of MXNet's records");
    assert_true(how == TY_AGREE_LEAST && n == 1);
    *v = *v < other[0] ? *v : other[0];
    other[1]++;
    return 0;
}

/* Hosts, or ranks with channels of their own, have parts of the data: labels are classes where all parts say so. */
static void labels_are_what_all_parts_say(void **state)
{
    (void)state;
    const char *path = files_path("part.rec");
    for (int skip_bad = 0; skip_bad < 2; skip_bad++)
        for (int classes = 0; classes < 2; classes++) {
            ty_buf file = new_buf();
            if (skip_bad)
                put_part(&file, 0, "short", 5);
            put_mxnet(&file, 0, (float[]){2}, grey(7), GREY);
            if (!classes)
                put_mxnet(&file, 0, (float[]){0.5f}, grey(7), GREY);
            save("part.rec", &file);
            ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
            int64_t others[2] = {classes, 0};
            ty_agree agree = {.ctx = others, .numbers = other_says};
            ty_data_source src = {.paths = &path,
                                  .n_paths = 1,
                                  .fields = f,
                                  .n_fields = 2,
                                  .format = "mxnet",
                                  .skip_bad = skip_bad,
                                  .agree = agree};
            ty_stream_config c = {.paths = &path,
                                  .n_paths = 1,
                                  .fields = f,
                                  .n_fields = 2,
                                  .format = "mxnet",
                                  .skip_bad = skip_bad,
                                  .agree = agree};
            ty_dataset *ds;
            ty_stream *stream;
            ty_error err = {0};
            assert_ok(ty_dataset_open(&src, &ds, &err), &err);
            assert_ok(ty_stream_open(&c, &stream, &err), &err);
            assert_int_equal(ds->field[1].type.dtype, classes ? TY_I64 : TY_F32);
            assert_int_equal(stream->field[1].type.dtype, classes ? TY_I64 : TY_F32);
            assert_int_equal(others[1], 2); /* asked once each */
            ty_stream_close(stream);
            f[1].dtype = TY_F32;
            f[1].dtype_given = true;
            assert_ok(ty_stream_open(&c, &stream, &err), &err);
            assert_int_equal(others[1], 2); /* not at all where it is declared */
            ty_stream_close(stream);
            ty_dataset_close(ds);
        }
}

static void a_record_of_mxnets_own_is_read(void **state)
{
    (void)state;
    const char *path = files_shared("images-misc/test_image_0.rec");
    if (path == NULL) {
        puts("skip: no ../shared");
        skip();
    }
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    ty_data_source src = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_true(ds->n_samples == 1 && ds->field[0].type.dim[0] == 3 && ds->field[1].max == 0);
    ty_dataset_close(ds);
}

static void pictures_are_refused_where_there_are_none(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"a.csv", "1,2\n3,4\n"}, {"a.libsvm", "1 1:2\n"}, {"a.jsonl", "{\"x\": 1}\n"}};
    ty_image_plan plan = plain();
    ty_field f = picture("x", &plan);
    f.columns = "0";
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ty_dataset *ds;
        ty_error err = {0};
        files_puts(files[i][0], files[i][1]);
        assert_int_equal(files_open(files[i][0], &f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_says(&err, "field \"x\" has image:, but");
        assert_int_equal(err.code, TY_E_CONFIG);
    }
}

int main(void)
{
#define FILES(test) cmocka_unit_test_setup_teardown(test, files_setup, files_teardown)
    const struct CMUnitTest tests[] = {
        FILES(bytes_of_records_are_pictures),
        FILES(pictures_in_records_are_augmented),
        FILES(bad_pictures_in_records_have_a_place),
        FILES(means_are_of_all_records),
        FILES(records_are_mixed_as_folders_are),
        FILES(streams_mix_within_the_global_batch),
        FILES(streams_learn_means),
        FILES(damaged_pixels_are_told_where_means_are_computed),
        FILES(mxnets_records_are_read),
        FILES(labels_are_what_all_parts_say),
        FILES(a_record_of_mxnets_own_is_read),
        FILES(pictures_are_refused_where_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
