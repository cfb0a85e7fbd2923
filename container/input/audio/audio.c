/* audio.c - see audio.h. */
#include "container/input/audio/audio.h"

#include "base/dl.h"

#include <pthread.h>
#include <sndfile.h>
#include <stdio.h>
#include <string.h>

/* ---- the library ---- */

static struct sndfile {
    SNDFILE *(*open)(SF_VIRTUAL_IO *, int, SF_INFO *, void *);
    int (*close)(SNDFILE *);
    sf_count_t (*seek)(SNDFILE *, sf_count_t, int);
    sf_count_t (*read)(SNDFILE *, float *, sf_count_t);
    const char *(*text)(SNDFILE *);
} sndfile;
static ty_error sndfile_error;
static pthread_once_t sndfile_once = PTHREAD_ONCE_INIT;

static void sndfile_open(void)
{
    static const char *const names[] = {"libsndfile.so.1", NULL};
    static const ty_dl_symbol symbols[] = {
        {"sf_open_virtual", offsetof(struct sndfile, open), false},
        {"sf_close", offsetof(struct sndfile, close), false},
        {"sf_seek", offsetof(struct sndfile, seek), false},
        {"sf_readf_float", offsetof(struct sndfile, read), false},
        {"sf_strerror", offsetof(struct sndfile, text), false},
    };
    void *handle;
    if (ty_dl_open(names, symbols, sizeof symbols / sizeof symbols[0], &sndfile, &handle, &sndfile_error) == 0)
        return;
    ty_error_wrap(&sndfile_error, "sounds cannot be read");
    ty_error_help(&sndfile_error, "install libsndfile1, or bring the samples as arrays (npy)");
}

/* ---- bytes as its file ---- */

static sf_count_t audio_length(void *ctx)
{
    return ((const ty_audio *)ctx)->n;
}

static sf_count_t audio_seek(sf_count_t to, int whence, void *ctx)
{
    ty_audio *a = ctx;
    sf_count_t base = whence == SEEK_CUR ? a->at : whence == SEEK_END ? a->n : 0;
    if (to > a->n - base || to < -base)
        return -1;
    return a->at = base + to;
}

static sf_count_t audio_take(void *out, sf_count_t n, void *ctx)
{
    ty_audio *a = ctx;
    n = n > a->n - a->at ? a->n - a->at : n;
    if (n <= 0)
        return 0;
    memcpy(out, a->bytes + a->at, (size_t)n);
    a->at += n;
    return n;
}

static sf_count_t audio_put(const void *p, sf_count_t n, void *ctx)
{
    (void)p, (void)n, (void)ctx;
    return 0;
}

static sf_count_t audio_tell(void *ctx)
{
    return ((const ty_audio *)ctx)->at;
}

/* ---- formats ---- */

/* A frame of MPEG's layer III with a bit rate and a sampling rate. */
static bool audio_is_mp3(const uint8_t *p, size_t n)
{
    return n >= 4 && p[0] == 0xff && (p[1] & 0xe6) == 0xe2 && (p[1] & 0x18) != 0x08 && (p[2] & 0xf0) != 0xf0 &&
           (p[2] & 0xf0) != 0 && (p[2] & 0x0c) != 0x0c;
}

static const char *audio_format(const uint8_t *p, size_t n)
{
    static const struct {
        const char *name, *head, *form; /* form: at byte 8 */
    } known[] = {
        {"WAV", "RIFF", "WAVE"},  {"WAV", "RIFX", "WAVE"},  {"WAV", "RF64", "WAVE"},  {"AIFF", "FORM", "AIFF"},
        {"AIFF", "FORM", "AIFC"}, {"FLAC", "fLaC", NULL},   {"Ogg", "OggS", NULL},    {"AU", ".snd", NULL},
        {"AU", "dns.", NULL},     {"MP3", "ID3\x02", NULL}, {"MP3", "ID3\x03", NULL}, {"MP3", "ID3\x04", NULL},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (n >= 12 && memcmp(p, known[i].head, 4) == 0 && (!known[i].form || memcmp(p + 8, known[i].form, 4) == 0))
            return known[i].name;
    return audio_is_mp3(p, n) ? "MP3" : NULL;
}

bool ty_audio_has_magic(const uint8_t *p, size_t n)
{
    return audio_format(p, n) != NULL;
}

/* A RIFF says how long it is, unless it was written to a pipe; libsndfile takes what there is. */
static int audio_check_length(const uint8_t *p, size_t n, ty_error *err)
{
    if (memcmp(p, "RIFF", 4) != 0)
        return 0;
    uint32_t said = (uint32_t)p[4] | (uint32_t)p[5] << 8 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 24;
    if (said >= 0x7ffff000u || said <= n - 8)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "the sound ends after %zu of %llu bytes", n,
                        (unsigned long long)said + 8);
}

/* ---- sounds ---- */

static int audio_check_info(const ty_audio_info *info, ty_error *err)
{
    if (info->channels > TY_AUDIO_MAX_CHANNELS || info->rate > TY_AUDIO_MAX_RATE)
        return ty_error_set(err, TY_E_LIMIT,
                            "the sound has %d channels and %d frames a second, expected at most %d and %d",
                            info->channels, info->rate, TY_AUDIO_MAX_CHANNELS, TY_AUDIO_MAX_RATE);
    if (info->channels >= 1 && info->rate >= 1 && info->frames >= 0 && info->frames < (int64_t)1 << 40)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "the sound's header says %d channels, %d frames a second, %lld frames",
                        info->channels, info->rate, (long long)info->frames);
}

int ty_audio_open(ty_audio *a, const uint8_t *p, size_t n, ty_error *err)
{
    SF_VIRTUAL_IO io = {audio_length, audio_seek, audio_take, audio_put, audio_tell};
    SF_INFO info = {0};
    *a = (ty_audio){.bytes = p, .n = (int64_t)n, .info.format = audio_format(p, n)};
    if (a->info.format == NULL)
        return ty_error_set(err, TY_E_DATA_VALUE,
                            "expected a sound (WAV, FLAC, Ogg, MP3, AIFF or AU), the first bytes are another's");
    pthread_once(&sndfile_once, sndfile_open);
    if (sndfile_error.code != TY_E_NONE) {
        if (err != NULL)
            *err = sndfile_error;
        return -1;
    }
    if (audio_check_length(p, n, err) < 0)
        return -1;
    a->file = sndfile.open(&io, SFM_READ, &info, a);
    if (a->file == NULL)
        return ty_error_set(err, TY_E_DATA_VALUE, "the %s sound does not decode: libsndfile: %s", a->info.format,
                            sndfile.text(NULL));
    a->info.rate = info.samplerate;
    a->info.channels = info.channels;
    a->info.frames = info.frames;
    if (audio_check_info(&a->info, err) == 0)
        return 0;
    ty_audio_close(a);
    return -1;
}

int ty_audio_read(ty_audio *a, int64_t first, int64_t n, float *out, ty_error *err)
{
    sf_count_t at = first == a->frame ? first : sndfile.seek(a->file, first, SEEK_SET);
    sf_count_t got = at == first ? sndfile.read(a->file, out, n) : -1;
    a->frame = first + n;
    if (got == n)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "the %s sound ends after %lld of %lld frames", a->info.format,
                        (long long)(first + (got > 0 ? got : 0)), (long long)a->info.frames);
}

void ty_audio_close(ty_audio *a)
{
    if (a->file != NULL)
        sndfile.close(a->file);
    a->file = NULL;
}

int ty_audio_probe(const uint8_t *p, size_t n, ty_audio_info *out, ty_error *err)
{
    ty_audio a;
    if (ty_audio_open(&a, p, n, err) < 0)
        return -1;
    *out = a.info;
    ty_audio_close(&a);
    return 0;
}
