/* resample.c - from one sampling rate to another, by libsoxr. */
#include "base/dl.h"
#include "container/input/audio/audio.h"

#include <pthread.h>
#include <soxr.h>
#include <string.h>

static struct resampler {
    soxr_error_t (*oneshot)(double, double, unsigned, soxr_in_t, size_t, size_t *, soxr_out_t, size_t, size_t *,
                            soxr_io_spec_t const *, soxr_quality_spec_t const *, soxr_runtime_spec_t const *);
    soxr_quality_spec_t (*quality)(unsigned long, unsigned long);
} resampler;
static ty_error resampler_error;
static pthread_once_t resampler_once = PTHREAD_ONCE_INIT;

static void resampler_open(void)
{
    static const char *const names[] = {"libsoxr.so.0", NULL};
    static const ty_dl_symbol symbols[] = {
        {"soxr_oneshot", offsetof(struct resampler, oneshot), false},
        {"soxr_quality_spec", offsetof(struct resampler, quality), false},
    };
    void *handle;
    if (ty_dl_open(names, symbols, sizeof symbols / sizeof symbols[0], &resampler, &handle, &resampler_error) == 0)
        return;
    ty_error_wrap(&resampler_error, "sounds cannot be brought to another rate");
    ty_error_help(&resampler_error, "install libsoxr0, or leave sample_rate out");
}

int64_t ty_audio_frames_at(int64_t frames, int from, int to)
{
    return (2 * frames * to + from) / (2 * (int64_t)from);
}

int ty_audio_resample(const float *in, int64_t n, int channels, int from, int to, float *out, ty_error *err)
{
    pthread_once(&resampler_once, resampler_open);
    if (resampler_error.code != TY_E_NONE) {
        if (err != NULL)
            *err = resampler_error;
        return -1;
    }
    size_t taken = 0, made = 0, room = (size_t)ty_audio_frames_at(n, from, to), width = (size_t)channels;
    soxr_quality_spec_t quality = resampler.quality(SOXR_HQ, 0);
    soxr_error_t wrong = n == 0 ? NULL
                                : resampler.oneshot(from, to, (unsigned)channels, in, (size_t)n, &taken, out, room,
                                                    &made, NULL, &quality, NULL);
    if (wrong != NULL)
        return ty_error_set(err, TY_E_LIBRARY, "from %d to %d frames a second: libsoxr: %s", from, to, wrong);
    memset(out + made * width, 0, (room - made) * width * sizeof *out);
    return 0;
}
