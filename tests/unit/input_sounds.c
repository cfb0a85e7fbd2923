/* input_sounds.c - sounds as data sets: folders of classes, records, streams; what formats they are told by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/audio/plan.h"
#include "container/input/format.h"
#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "container/input/stream/stream.h"
#include "container/input/survey.h"
#include "container/output/example.h"
#include "input_files.h"

#include <math.h>

enum { FRAMES = 8, WAV_BYTES = 44 + 2 * FRAMES };

/* 8 frames of one 16-bit sample, v / 32768 each, at 8000 a second. */
static const uint8_t *level(int16_t v)
{
    static uint8_t bytes[4][WAV_BYTES];
    static int next;
    static const uint8_t head[44] =
        "RIFF\x34\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\x10\0\0";
    uint8_t *p = memcpy(bytes[next++ % 4], head, sizeof head);
    for (int i = 0; i < FRAMES; i++)
        memcpy(p + 44 + 2 * i, &v, 2);
    return p;
}

static void wav(const char *name, int16_t v)
{
    files_put(name, level(v), WAV_BYTES);
}

static ty_field sound(const char *name, ty_audio_plan *plan)
{
    ty_field f = ty_field_make(name);
    f.audio = plan;
    return f;
}

static ty_audio_plan plain(void)
{
    ty_audio_plan p = ty_audio_plan_make();
    p.scale = 32768.0;
    return p;
}

static void put_examples(const char *name, int n, const int16_t *v, int bad)
{
    ty_example_writer w;
    ty_buf file;
    ty_buf_init(&file, 1 << 20);
    ty_example_writer_init(&w, 1 << 20);
    for (int i = 0; i < n; i++) {
        int64_t label = i % 2;
        ty_example_clear(&w);
        ty_example_add_bytes(&w, "audio", level(v[i]), i == bad ? WAV_BYTES - 6 : WAV_BYTES);
        ty_example_add_ints(&w, "label", &label, 1);
        const ty_buf *record = ty_example_record(&w);
        uint64_t length = record->len;
        uint32_t sums[2] = {ty_crc32c_mask(ty_crc32c(0, &length, 8)),
                            ty_crc32c_mask(ty_crc32c(0, record->data, record->len))};
        ty_buf_add(&file, &length, 8);
        ty_buf_add(&file, &sums[0], 4);
        ty_buf_add(&file, record->data, record->len);
        ty_buf_add(&file, &sums[1], 4);
    }
    files_put(name, file.data, file.len);
    ty_example_writer_fini(&w);
    ty_buf_fini(&file);
}

/* ---- folders ---- */

static void folders_are_classes(void **state)
{
    (void)state;
    wav("d/yes/1.wav", 10), wav("d/no/9.wav", 20), wav("d/no/deep/3.wav", 30), wav("d/yes/0.WAV", 40);
    ty_audio_plan plan = plain();
    ty_field f[2] = {sound("audio", &plan), ty_field_make("label")};
    ty_dataset *ds, *other;
    ty_error err = {0};
    float x[4][FRAMES];
    int64_t y[4], all[4] = {0, 1, 2, 3};
    assert_ok(files_open("d", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_string_equal(ds->format, "audio");
    assert_true(ds->n_samples == 4 && ds->field[0].type.rank == 1 && ds->field[0].type.dim[0] == FRAMES);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 4}, (void *[]){x, y}, &err), &err);
    const int expected[4][2] = {{20, 0}, {30, 1}, {40, 2}, {10, 2}}; /* no, no/deep, yes */
    for (int i = 0; i < 4; i++)
        assert_true(x[i][0] == (float)expected[i][0] && x[i][7] == x[i][0] && y[i] == expected[i][1]);
    assert_true(ty_dataset_work_bytes(ds) > 0);

    wav("v/yes/7.wav", 1);
    assert_ok(files_open("v", f, 2, (ty_data_source){.like = ds}, &other, &err), &err);
    assert_ok(ty_dataset_read(other, 1, all, 1, y, &err), &err);
    assert_int_equal(y[0], 2);
    ty_dataset_close(other);
    ty_dataset_close(ds);
    ty_field nothing[2] = {ty_field_make("audio"), ty_field_make("label")}; /* needs no declaration */
    assert_ok(files_open("d", nothing, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 1, x, &err), &err);
    assert_true(x[0][0] == 20.0f / 32768);
    ty_dataset_close(ds);
    files_puts("v/x.lst", "4\t7\tyes/7.wav\n");
    assert_ok(files_open("v", f, 2, (ty_data_source){.format = "audio"}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, all, 1, y, &err), &err);
    assert_int_equal(y[0], 7);
    ty_dataset_close(ds);
}

/* Of 10, 20 and 30 the second one is cut short. */
static void second_is_bad(const char *data, ty_field *f, const char *place)
{
    ty_dataset *ds;
    ty_error err = {0};
    float x[2][FRAMES];
    int64_t all[2] = {0, 1};
    assert_int_equal(files_open(data, f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, place);
    assert_says(&err, "field \"audio\": the sound ends after 54 of 60 bytes");
    err = (ty_error){0};
    assert_ok(files_open(data, f, 1, (ty_data_source){.skip_bad = true}, &ds, &err), &err);
    assert_true(ds->n_samples == 2 && ds->bad.n == 1);
    assert_ok(ty_dataset_read(ds, 0, all, 2, x, &err), &err);
    assert_true(x[0][0] == 10 && x[1][0] == 30);
    ty_dataset_close(ds);
}

static void bad_sounds_are_refused_or_left_out(void **state)
{
    (void)state;
    wav("d/1.wav", 10), wav("d/3.wav", 30);
    files_put("d/2.wav", level(20), WAV_BYTES - 6);
    ty_audio_plan plan = plain();
    ty_field f = sound("audio", &plan);
    ty_dataset *ds;
    ty_error err = {0};
    second_is_bad("d", &f, "d/2.wav");
    ty_field label[2] = {f, ty_field_make("label")};
    err = (ty_error){0};
    wav("d/2.wav", 20);
    assert_int_equal(files_open("d", label, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "the sound lies in no folder, whose name would be its class");
}

static void the_other_kind_is_refused(void **state)
{
    (void)state;
    wav("d/1.wav", 10);
    files_puts("p/1.pgm", "P5 1 1 255\nx");
    files_puts("t.csv", "1,2\n");
    ty_audio_plan plan = plain();
    ty_image_plan image = ty_image_plan_make();
    ty_field f = sound("audio", &plan), both = f, picture = ty_field_make("image");
    picture.image = both.image = &image;
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("p", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "field \"audio\" has audio:, but images data hold no encoded sounds");
    assert_int_equal(files_open("t.csv", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "field \"audio\" has audio:, but csv data hold no encoded sounds");
    assert_int_equal(files_open("d", &picture, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "field \"image\" has image:, but audio data hold no encoded pictures");
    assert_int_equal(files_open("d", &both, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "has image: and audio:, and can be one of them");
    f.scale = 2;
    assert_int_equal(files_open("d", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "a sound has no shape, scale");
}

/* ---- records ---- */

static void bytes_of_records_are_sounds(void **state)
{
    (void)state;
    put_examples("t.tfrecord", 3, (int16_t[]){10, 20, 30}, -1);
    ty_audio_plan plan = plain();
    ty_field f[2] = {sound("audio", &plan), ty_field_make("label")};
    ty_dataset *ds;
    ty_error err = {0};
    float x[3][FRAMES];
    int64_t y[3], pick[3] = {2, 0, 1};
    assert_ok(files_open("t.tfrecord", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_true(ds->field[0].type.rank == 1 && ds->field[0].audio && !ds->field[0].image);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = pick, .n = 3}, (void *[]){x, y}, &err), &err);
    assert_true(x[0][0] == 30 && x[1][3] == 10 && x[2][1] == 20 && y[0] == 0 && y[2] == 1);
    ty_dataset_close(ds);
    ty_arena a;
    ty_data_survey survey;
    ty_arena_init(&a);
    const char *path = files_path("t.tfrecord");
    assert_ok(ty_data_survey_make(&(ty_data_source){.paths = &path, .n_paths = 1}, &a, &survey, &err), &err);
    assert_true(survey.n_parts == 2 && survey.part[0].is_sound && !survey.part[0].is_text && !survey.part[1].is_sound);
    ty_arena_fini(&a);
}

static void bad_sounds_in_records_have_a_place(void **state)
{
    (void)state;
    put_examples("t.tfrecord", 3, (int16_t[]){10, 20, 30}, 1);
    ty_audio_plan plan = plain();
    ty_field f = sound("audio", &plan);
    second_is_bad("t.tfrecord", &f, "record 1 at byte");
}

/* As they are in folders, wherever in the batch they stand. */
static void streams_draw_as_folders_do(void **state)
{
    enum { N = 12 };
    int16_t v[N];
    char name[32];
    (void)state;
    for (int i = 0; i < N; i++) {
        v[i] = (int16_t)(100 * i + 50);
        snprintf(name, sizeof name, "d/%02d.wav", i);
        wav(name, v[i]);
    }
    put_examples("s/t.tfrecord", N, v, -1);
    ty_audio_plan plan = plain();
    plan.length = 5, plan.crop = TY_AUDIO_CROP_RANDOM, plan.gain[0] = -6, plan.gain[1] = 6;
    ty_field f = sound("audio", &plan);
    ty_dataset *ds;
    ty_stream *s;
    ty_error err = {0};
    float x[N][5], y[N][5];
    int64_t all[N];
    for (int i = 0; i < N; i++)
        all[i] = i;
    assert_ok(files_open("d", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    ty_pick pick = {all, N, .seed = 3, .epoch = 1, .augment = true};
    assert_ok(ty_dataset_read_all(ds, &pick, (void *[]){x}, &err), &err);
    assert_true(x[0][0] != 50 && x[1][0] != 150 && fabsf(x[1][0] / 150 - x[0][0] / 50) > 1e-3f);
    ty_dataset_close(ds);

    const char *path = files_path("s");
    ty_stream_order order = {.n_rows = N, .seed = 3, .augment = true, .n_shards = 1};
    ty_data_feed *feed;
    ty_draft draft = {0};
    int64_t samples[N];
    draft.samples = samples;
    assert_ok(ty_stream_open(&(ty_stream_config){.paths = &path, .n_paths = 1, .fields = &f, .n_fields = 1}, &s, &err),
              &err);
    assert_ok(ty_stream_feed(s, &order, &feed, &err), &err);
    assert_ok(feed->ops->start(feed, (ty_position){.epoch = 1}, 2, &err), &err);
    assert_ok(feed->ops->open_draft(feed, &draft, &err), &err);
    assert_int_equal(feed->ops->take(feed, &draft, &err), 1);
    assert_ok(feed->ops->fill(feed, &draft, (void *[]){y}, &err), &err);
    assert_memory_equal(x, y, sizeof x);
    feed->ops->close_draft(feed, &draft);
    ty_data_feed_close(feed);
    ty_stream_close(s);
}

/* ---- formats ---- */

static void formats_are_told_by_names_and_first_bytes(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t n;
        const char *want; /* "!text": refused with it */
    } rows[] = {
        {"a", "RIFF\x34\0\0\0WAVEfmt ", 16, "audio"},
        {"a", "fLaC\0\0\0\x22\x10\0\x10\0", 12, "audio"},
        {"a", "OggS\0\2\0\0\0\0\0\0", 12, "audio"},
        {"a", "\xff\xfb\x90\x64\0\0\0\0", 8, "audio"},
        {"a", "ID3\4\0\0\0\0\0\0\0\0", 12, "audio"},
        {"a", "FORM\0\0\0\0AIFF", 12, "audio"},
        {"a", ".snd\0\0\0\x18\0\0\0\0", 12, "audio"},
        {"a.mp3", "\0\0\0\0", 4, "audio"},
        {"a.jpg", "RIFF\x34\0\0\0WAVEfmt ", 16, "!called images, but its first bytes are those of audio"},
        {"a",
         "\xff\xfe"
         "a\0b\0",
         6, "!neither the name nor the first bytes"}, /* UTF-16 */
        {"a",
         "\0\0\0\x20"
         "ftypM4A \0\0\0\0",
         16, "!sounds are WAV, FLAC, Ogg"},
        {"a", "\x1a\x45\xdf\xa3\0\0\0\0", 8, "!is a Matroska or WebM file"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        files_put(rows[i].name, rows[i].bytes, rows[i].n);
        ty_data_file file = {.path = files_path(rows[i].name), .name = rows[i].name};
        ty_data_source src = {0};
        const ty_format *format = NULL;
        ty_error err = {0};
        int rc = ty_format_detect(&src, &file, 1, &format, &err);
        if (rows[i].want[0] == '!') {
            assert_int_equal(rc, -1);
            assert_says(&err, rows[i].want + 1);
        } else {
            assert_ok(rc, &err);
            assert_string_equal(format->name, rows[i].want);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folders_are_classes),
        TEST(bad_sounds_are_refused_or_left_out),
        TEST(the_other_kind_is_refused),
        TEST(bytes_of_records_are_sounds),
        TEST(bad_sounds_in_records_have_a_place),
        TEST(streams_draw_as_folders_do),
        TEST(formats_are_told_by_names_and_first_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
