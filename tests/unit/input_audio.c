/* input_audio.c - sounds decoded as soundfile does it and resampled as soxr (tests/golden/audio), which part becomes a
 * row, what varies, what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/audio/plan.h"
#include "golden_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 22 };

static void sound(const char *name, ty_buf *out)
{
    golden_read("audio", name, out);
}

static void says(const ty_error *err, const char *text)
{
    if (strstr(err->message, text) == NULL)
        fail_msg("expected \"%s\", found \"%s\"", text, err->message);
}

static void near(const char *what, const float *v, const ty_buf *expected, size_t n, double within)
{
    const float *e = (const float *)expected->data;
    if (expected->len != n * sizeof *v)
        fail_msg("%s: %zu samples, expected %zu", what, n, expected->len / sizeof *v);
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)v[i] - (double)e[i]) <= within))
            fail_msg("%s: sample %zu is %.9g, expected %.9g", what, i, (double)v[i], (double)e[i]);
}

/* ---- as soundfile ---- */

static const struct decoded {
    const char *file, *format;
    int rate, channels, frames;
    double within;
} decoded[] = {
    {"s16.wav", "WAV", 8000, 1, 400, 0},         {"u8.wav", "WAV", 8000, 1, 300, 0},
    {"s24.wav", "WAV", 8000, 2, 200, 0},         {"s32.wav", "WAV", 8000, 1, 100, 0},
    {"f32.wav", "WAV", 8000, 1, 100, 0},         {"f64.wav", "WAV", 8000, 1, 100, 0},
    {"ulaw.wav", "WAV", 8000, 1, 400, 0},        {"alaw.wav", "WAV", 8000, 1, 400, 0},
    {"adpcm.wav", "WAV", 8000, 1, 505, 0},       {"s16.flac", "FLAC", 16000, 2, 1200, 0},
    {"vorbis.ogg", "Ogg", 16000, 1, 2400, 1e-5}, {"opus.opus", "Ogg", 16000, 1, 2400, 1e-3},
    {"layer3.mp3", "MP3", 16000, 1, 2400, 1e-5}, {"s16.aiff", "AIFF", 8000, 1, 200, 0},
    {"s16.au", "AU", 8000, 1, 200, 0},
};

static void sounds_decode_as_soundfile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof decoded / sizeof decoded[0]; i++) {
        const struct decoded *d = &decoded[i];
        char name[64];
        ty_buf bytes, expected;
        ty_audio a;
        ty_error err = {0};
        float v[2400];
        snprintf(name, sizeof name, "%s.f32", d->file);
        sound(d->file, &bytes), sound(name, &expected);
        if (ty_audio_open(&a, (const uint8_t *)bytes.data, bytes.len, &err) < 0)
            fail_msg("%s: %s", d->file, err.message);
        assert_string_equal(a.info.format, d->format);
        assert_true(a.info.rate == d->rate && a.info.channels == d->channels && a.info.frames == d->frames);
        if (ty_audio_read(&a, 0, d->frames, v, &err) < 0)
            fail_msg("%s: %s", d->file, err.message);
        near(d->file, v, &expected, (size_t)(d->frames * d->channels), d->within);
        if (ty_audio_read(&a, 50, 40, v, &err) < 0) /* what is read first does not matter */
            fail_msg("%s: %s", d->file, err.message);
        expected.data += 50 * d->channels * 4;
        expected.len = (size_t)(40 * d->channels * 4);
        near(d->file, v, &expected, (size_t)(40 * d->channels), d->within > 0 ? 2e-2 : 0);
        expected.data -= 50 * d->channels * 4;
        ty_audio_close(&a);
        ty_buf_fini(&bytes), ty_buf_fini(&expected);
    }
}

/* ---- rows ---- */

static ty_audio_plan settled(ty_audio_plan p, const ty_buf *first)
{
    ty_audio_info info;
    ty_error err = {0};
    if (ty_audio_plan_check(&p, TY_F32, &err) < 0 ||
        ty_audio_probe((const uint8_t *)first->data, first->len, &info, &err) < 0 ||
        ty_audio_plan_settle(&p, &info, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static void row(const ty_audio_plan *p, const ty_buf *bytes, const ty_chance *chance, float *out)
{
    ty_audio_reader r = {.plan = p};
    ty_error err = {0};
    size_t work = 0;
    if (ty_audio_look(p, (const uint8_t *)bytes->data, bytes->len, &work, &err) < 0 ||
        ty_audio_row(&r, (const uint8_t *)bytes->data, bytes->len, chance, TY_F32, out, &err) < 0)
        fail_msg("%s", err.message);
    if (p->crop == TY_AUDIO_CROP_START) /* which parts of a long sound are within margins differs */
        assert_true(ty_audio_reader_bytes(&r) <= work);
    ty_audio_reader_fini(&r);
}

static const struct made {
    const char *file, *expected;
    int rate, channels;
    ty_audio_layout layout;
    ty_audio_normalize normalize;
    double within;
} made[] = {
    {"s24.wav", "s24.mono.f32", 0, 1, TY_AUDIO_AUTO, TY_AUDIO_AS_IS, 1e-7},
    {"s24.wav", "s24.wav.f32", 0, 0, TY_AUDIO_TC, TY_AUDIO_AS_IS, 0},
    {"fast.wav", "fast.16000.f32", 16000, 1, TY_AUDIO_AUTO, TY_AUDIO_AS_IS, 2e-6},
    {"s16.wav", "s16.22050.f32", 22050, 1, TY_AUDIO_T, TY_AUDIO_AS_IS, 2e-6},
    {"s16.flac", "flac.11025.f32", 11025, 2, TY_AUDIO_TC, TY_AUDIO_AS_IS, 2e-6},
    {"s16.wav", "s16.standard.f32", 0, 0, TY_AUDIO_AUTO, TY_AUDIO_STANDARD, 1e-5},
    {"s16.wav", "s16.peak.f32", 0, 0, TY_AUDIO_AUTO, TY_AUDIO_PEAK, 1e-6},
};

static void rows_are_as_numpy_and_soxr_have_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        const struct made *m = &made[i];
        ty_buf bytes, expected;
        float v[1 << 13];
        sound(m->file, &bytes), sound(m->expected, &expected);
        ty_audio_plan p = ty_audio_plan_make();
        p.rate = m->rate, p.channels = m->channels, p.layout = m->layout, p.normalize = m->normalize;
        p = settled(p, &bytes);
        ty_type type = ty_audio_plan_type(&p, TY_F32);
        row(&p, &bytes, &(ty_chance){0}, v);
        near(m->expected, v, &expected, (size_t)ty_type_elems(&type), m->within);
        ty_buf_fini(&bytes), ty_buf_fini(&expected);
    }
}

static void put_u32(ty_buf *b, uint32_t v)
{
    ty_buf_add(b, (uint8_t[]){(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)}, 4);
}

/* A WAV of floats: a tone that rises from 50 Hz to a fifth of the rate, another in each channel. */
static void rising(int rate, int frames, int channels, ty_buf *out)
{
    ty_buf_init(out, MAX_BYTES);
    uint32_t n = (uint32_t)(frames * channels * 4);
    ty_buf_adds(out, "RIFF");
    put_u32(out, 36 + n);
    ty_buf_adds(out, "WAVEfmt ");
    put_u32(out, 16);
    put_u32(out, 3u | (uint32_t)channels << 16);
    put_u32(out, (uint32_t)rate);
    put_u32(out, (uint32_t)(rate * channels * 4));
    put_u32(out, (uint32_t)(channels * 4) | 32u << 16);
    ty_buf_adds(out, "data");
    put_u32(out, n);
    for (int i = 0; i < frames; i++)
        for (int c = 0; c < channels; c++) {
            double t = (double)i / rate, end = (double)frames / rate;
            float v = (float)(0.5 * sin(2 * 3.14159265358979 * (50 + (rate / 10.0 - 50) * t / end + 3 * c) * t));
            ty_buf_add(out, &v, 4);
        }
}

/* Only the part that is wanted is decoded and resampled. */
static void a_part_is_that_of_the_whole(void **state)
{
    static const int rates[][2] = {{44100, 16000}, {8000, 44100}, {48000, 16000}, {16000, 11127}, {16000, 16000}};
    enum { LENGTH = 3000 };
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        ty_buf bytes;
        int frames = 4 * rates[i][0];
        rising(rates[i][0], frames, 2, &bytes);
        ty_audio_plan p = ty_audio_plan_make(), part = p;
        p.rate = part.rate = rates[i][1];
        part.length = LENGTH;
        part.crop = TY_AUDIO_CROP_RANDOM;
        p = settled(p, &bytes), part = settled(part, &bytes);
        float *whole = malloc((size_t)p.length * 2 * sizeof *whole), v[2 * LENGTH];
        row(&p, &bytes, &(ty_chance){0}, whole);
        for (int k = 0; k < 20; k++) {
            row(&part, &bytes, &(ty_chance){1, 2, k, k > 0}, v);
            int64_t at = k == 0 ? (p.length - LENGTH) / 2 : 0; /* of the others, wherever it is that fits */
            double worst = 1.0;
            for (; k > 0 && at + LENGTH < p.length &&
                   fabsf(v[0] - whole[at]) + fabsf(v[LENGTH / 2] - whole[at + LENGTH / 2]) +
                           fabsf(v[LENGTH - 1] - whole[at + LENGTH - 1]) >
                       1e-5f;)
                at++;
            worst = 0.0;
            for (int c = 0; c < 2; c++)
                for (int t = 0; t < LENGTH; t++)
                    worst = fmax(worst, fabs((double)v[c * LENGTH + t] - (double)whole[c * p.length + at + t]));
            if (!(worst < 3e-6))
                fail_msg("%d to %d: part %d differs by %g", rates[i][0], rates[i][1], k, worst);
        }
        free(whole);
        ty_buf_fini(&bytes);
    }
}

static void short_sounds_are_filled_up(void **state)
{
    static const int zeros[][2] = {{0, 7}, {3, 4}, {7, 0}}; /* in front and behind, by ty_audio_pad */
    (void)state;
    for (int pad = 0; pad < 3; pad++) {
        ty_buf bytes;
        float v[2 * 17], whole[2 * 10];
        rising(8000, 10, 2, &bytes);
        ty_audio_plan p = ty_audio_plan_make(), all = settled(p, &bytes);
        p.length = 17, p.pad = (ty_audio_pad)pad;
        p = settled(p, &bytes);
        row(&p, &bytes, &(ty_chance){0}, v);
        row(&all, &bytes, &(ty_chance){0}, whole);
        for (int c = 0; c < 2; c++)
            for (int t = 0; t < 17; t++) {
                bool is_in = t >= zeros[pad][0] && t < 17 - zeros[pad][1];
                assert_true(v[c * 17 + t] == (is_in ? whole[c * 10 + t - zeros[pad][0]] : 0.0f));
            }
        ty_buf_fini(&bytes);
    }
}

static void channels_axes_and_types_are_as_declared(void **state)
{
    ty_buf one, two;
    float v[3 * 20];
    uint16_t half[20];
    ty_error err = {0};
    (void)state;
    rising(8000, 20, 1, &one), rising(8000, 20, 2, &two);
    ty_audio_plan p = ty_audio_plan_make();
    p.channels = 3;
    p = settled(p, &one);
    ty_type type = ty_audio_plan_type(&p, TY_F32);
    assert_true(type.rank == 2 && type.dim[0] == 3 && type.dim[1] == 20);
    row(&p, &one, &(ty_chance){0}, v);
    for (int t = 0; t < 20; t++)
        assert_true(v[t] == v[20 + t] && v[t] == v[40 + t]);
    p = ty_audio_plan_make(), p.layout = TY_AUDIO_TC;
    p = settled(p, &two);
    type = ty_audio_plan_type(&p, TY_F32);
    assert_true(type.rank == 2 && type.dim[0] == 20 && type.dim[1] == 2);
    p = ty_audio_plan_make(), p.layout = TY_AUDIO_CT, p.scale = 32768;
    p = settled(p, &one);
    type = ty_audio_plan_type(&p, TY_F32);
    assert_true(type.rank == 2 && type.dim[0] == 1 && type.dim[1] == 20);
    row(&p, &one, &(ty_chance){0}, v);
    ty_audio_reader r = {.plan = &p};
    assert_int_equal(ty_audio_row(&r, (const uint8_t *)one.data, one.len, &(ty_chance){0}, TY_BF16, half, &err), 0);
    ty_audio_reader_fini(&r);
    for (int t = 0; t < 20; t++) {
        uint32_t bits = (uint32_t)half[t] << 16;
        float wide;
        memcpy(&wide, &bits, 4);
        assert_true(fabsf(wide - v[t]) <= fabsf(v[t]) / 256);
    }
    ty_buf_fini(&one), ty_buf_fini(&two);
}

static void what_varies_is_of_seed_epoch_and_sample(void **state)
{
    enum { LENGTH = 100 };
    ty_buf bytes;
    float centre[LENGTH], v[LENGTH], again[LENGTH], loud[LENGTH];
    int moved = 0;
    (void)state;
    rising(8000, 4000, 1, &bytes);
    ty_audio_plan p = ty_audio_plan_make();
    p.length = LENGTH, p.crop = TY_AUDIO_CROP_RANDOM;
    ty_audio_plan gain = settled(p, &bytes);
    p = gain;
    gain.gain[0] = -6, gain.gain[1] = 3;
    row(&p, &bytes, &(ty_chance){5, 1, 9, false}, centre);
    for (int i = 0; i < 50; i++) {
        row(&p, &bytes, &(ty_chance){5, 1, i, true}, v);
        row(&p, &bytes, &(ty_chance){5, 1, i, true}, again);
        row(&gain, &bytes, &(ty_chance){5, 1, i, true}, loud);
        assert_memory_equal(v, again, sizeof v);
        moved += memcmp(v, centre, sizeof v) != 0;
        double db = 20 * log10((double)loud[50] / (double)v[50]);
        assert_true(db > -6.001 && db < 3.001 && fabs(db) > 1e-6);
        for (int t = 0; t < LENGTH; t++)
            assert_true(fabsf(loud[t] - v[t] * (loud[50] / v[50])) < 1e-5f);
    }
    assert_true(moved > 45);
    row(&gain, &bytes, &(ty_chance){5, 1, 9, false}, v);
    assert_memory_equal(v, centre, sizeof v);
    row(&p, &bytes, &(ty_chance){5, 2, 7, true}, v);
    row(&p, &bytes, &(ty_chance){5, 1, 7, true}, again);
    assert_true(memcmp(v, again, sizeof v) != 0);
    ty_buf_fini(&bytes);
}

/* ---- refusals ---- */

static void what_cannot_be_a_row_is_refused(void **state)
{
    ty_buf one, other, two;
    ty_error err = {0};
    size_t work;
    (void)state;
    rising(8000, 20, 1, &one), rising(16000, 20, 1, &other), rising(8000, 20, 2, &two);
    ty_audio_plan p = settled(ty_audio_plan_make(), &one);
    const uint8_t *bytes = (const uint8_t *)other.data;
    assert_int_equal(ty_audio_look(&p, bytes, other.len, &work, &err), -1);
    says(&err, "the sound has 16000 frames a second, expected 8000 as the first one");
    p.rate_alike = false; /* 10 frames at 8000 */
    assert_int_equal(ty_audio_look(&p, bytes, other.len, &work, &err), -1);
    says(&err, "the sound has 10 frames, expected 20 as the first one");
    p.channels = 3;
    assert_int_equal(ty_audio_look(&p, (const uint8_t *)two.data, two.len, &work, &err), -1);
    says(&err, "a sound of 2 channels cannot become one of 3");
    p.channels = 1, p.max_seconds = 0.001;
    assert_int_equal(ty_audio_look(&p, (const uint8_t *)one.data, one.len, &work, &err), -1);
    says(&err, "expected at most 0.001 (max_seconds)");
    assert_int_equal(ty_audio_probe((const uint8_t *)one.data, one.len - 1, &(ty_audio_info){0}, &err), -1);
    says(&err, "the sound ends after 123 of 124 bytes");
    assert_int_equal(ty_audio_probe((const uint8_t *)"no sound at all", 15, &(ty_audio_info){0}, &err), -1);
    says(&err, "expected a sound (WAV, FLAC");
    assert_int_equal(ty_audio_probe((const uint8_t *)one.data, 0, &(ty_audio_info){0}, &err), -1);
    ty_buf_fini(&one);
    rising(8000, 0, 1, &one);
    p = ty_audio_plan_make();
    assert_int_equal(ty_audio_plan_settle(&p, &(ty_audio_info){"WAV", 8000, 1, 0}, &err), -1);
    says(&err, "a row would have 0 frames");
    p = ty_audio_plan_make(), p.length = 4;
    p = settled(p, &other);
    p.rate = 8000;
    assert_int_equal(ty_audio_look(&p, (const uint8_t *)one.data, one.len, &work, &err), -1);
    says(&err, p.rate_alike ? "the sound" : "the sound is empty");
    ty_buf_fini(&one), ty_buf_fini(&two), ty_buf_fini(&other);
}

/* Bytes that are missing, or wrong, come out when they are read. */
static void damaged_sounds_are_refused(void **state)
{
    static const char *const files[] = {"s16.flac", "vorbis.ogg", "s16.aiff", "s16.au"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ty_buf bytes;
        ty_error err = {0};
        sound(files[i], &bytes);
        ty_audio_plan p = settled(ty_audio_plan_make(), &bytes);
        ty_audio_reader r = {.plan = &p};
        assert_int_equal(ty_audio_hear(&r, (const uint8_t *)bytes.data, bytes.len, &err), 0);
        if (ty_audio_hear(&r, (const uint8_t *)bytes.data, bytes.len / 2, &err) == 0)
            fail_msg("half of %s is heard", files[i]);
        assert_true(err.code != TY_E_INTERNAL && err.message[0]);
        ty_audio_reader_fini(&r);
        ty_buf_fini(&bytes);
    }
}

static const struct wrong {
    ty_audio_plan plan;
    ty_dtype dtype;
    const char *says;
} wrong[] = {
    {{.scale = 1, .max_seconds = 1}, TY_U8, "sounds become floats, not u8"},
    {{.scale = 0, .max_seconds = 1}, TY_F32, "scale must be a number and not 0"},
    {{.scale = 1, .max_seconds = 0}, TY_F32, "max_seconds: 0"},
    {{.scale = 1, .max_seconds = 1, .rate = -1}, TY_F32, "sample_rate: -1"},
    {{.scale = 1, .max_seconds = 1, .channels = 65}, TY_F32, "channels: 65"},
    {{.scale = 1, .max_seconds = 1, .length = -2}, TY_F32, "length: -2"},
    {{.scale = 1, .max_seconds = 1, .length = 2, .seconds = 1}, TY_F32, "one of them"},
    {{.scale = 1, .max_seconds = 1, .crop = TY_AUDIO_CROP_RANDOM}, TY_F32, "crop and pad need a length"},
    {{.scale = 1, .max_seconds = 1, .pad = TY_AUDIO_PAD_START}, TY_F32, "crop and pad need a length"},
    {{.scale = 1, .max_seconds = 1, .layout = TY_AUDIO_T, .channels = 2}, TY_F32, "layout: t is for one channel"},
    {{.scale = 1, .max_seconds = 1, .gain = {3, -3}}, TY_F32, "gain: [3, -3]"},
    {{.scale = 1, .max_seconds = 1, .gain = {-3, 3}, .normalize = TY_AUDIO_PEAK}, TY_F32, "gain changes nothing"},
};

static void declarations_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ty_error err = {0};
        assert_int_equal(ty_audio_plan_check(&wrong[i].plan, wrong[i].dtype, &err), -1);
        says(&err, wrong[i].says);
    }
    ty_audio_plan p = ty_audio_plan_make(), other = p;
    p.seconds = 1e6, p.rate = TY_AUDIO_MAX_RATE;
    ty_error err = {0};
    assert_int_equal(ty_audio_plan_settle(&p, &(ty_audio_info){"WAV", 8000, 1, 1}, &err), -1);
    says(&err, "a row would have");
    other.gain[1] = 1;
    assert_true(ty_audio_plan_fingerprint(&p) != ty_audio_plan_fingerprint(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sounds_decode_as_soundfile),
        cmocka_unit_test(rows_are_as_numpy_and_soxr_have_them),
        cmocka_unit_test(a_part_is_that_of_the_whole),
        cmocka_unit_test(short_sounds_are_filled_up),
        cmocka_unit_test(channels_axes_and_types_are_as_declared),
        cmocka_unit_test(what_varies_is_of_seed_epoch_and_sample),
        cmocka_unit_test(what_cannot_be_a_row_is_refused),
        cmocka_unit_test(damaged_sounds_are_refused),
        cmocka_unit_test(declarations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
