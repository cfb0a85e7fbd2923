/* audio.h - sounds out of encoded bytes: WAV, FLAC, Ogg (Vorbis, Opus), MP3, AIFF and AU, told by their first bytes.
 *
 * libsndfile decodes, opened when the first sound is (base/dl.h). Bytes are foreign: only what has one of these
 * beginnings is shown to it, what a header says is held against limits before anything is allocated, and a sound that
 * ends before the number of frames in its header is refused.
 *
 *     ty_audio sound;
 *     if (ty_audio_open(&sound, bytes, n, err) < 0) ...
 *     ty_audio_read(&sound, 0, sound.info.frames, samples, err)    samples[frame * sound.info.channels + channel]
 *     ty_audio_close(&sound);
 */
#ifndef TY_CONTAINER_INPUT_AUDIO_AUDIO_H
#define TY_CONTAINER_INPUT_AUDIO_AUDIO_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TY_AUDIO_MAX_RATE = 768000, TY_AUDIO_MAX_CHANNELS = 64 };

/* What the header says. */
typedef struct ty_audio_info {
    const char *format; /* "WAV" */
    int rate, channels; /* frames a second; samples a frame */
    int64_t frames;
} ty_audio_info;

/* An open sound. The bytes are borrowed until it is closed. */
typedef struct ty_audio {
    ty_audio_info info;
    const uint8_t *bytes;
    int64_t n, at; /* bytes, and which is next */
    int64_t frame; /* that is read next */
    void *file;
} ty_audio;

/* Whether these are the first bytes (16 are enough) of a sound in a format that is known here. */
bool ty_audio_has_magic(const uint8_t *p, size_t n);

/* TY_E_DATA_VALUE: the bytes are no such sound. TY_E_LIMIT: more channels or a higher rate than is taken.
 * TY_E_NOT_FOUND: libsndfile is not installed. The caller names the file. On failure there is nothing to close. */
int ty_audio_open(ty_audio *a, const uint8_t *p, size_t n, ty_error *err);
/* n frames from `first` on, each channels samples side by side, full scale -1 to 1. They lie within info.frames. What
 * follows on what was read last is not looked for. */
int ty_audio_read(ty_audio *a, int64_t first, int64_t n, float *out, ty_error *err);
void ty_audio_close(ty_audio *a);

/* Opens, and closes again. */
int ty_audio_probe(const uint8_t *p, size_t n, ty_audio_info *out, ty_error *err);

/* How many frames `frames` become at another rate: frames * to / from, rounded; a half is rounded up. */
int64_t ty_audio_frames_at(int64_t frames, int from, int to);
/* n frames at rate `from` become ty_audio_frames_at(n, from, to) at rate `to`, by libsoxr in its quality "HQ" (20 bits;
 * what librosa.load does unless told otherwise). Needs libsoxr (TY_E_NOT_FOUND). */
int ty_audio_resample(const float *in, int64_t n, int channels, int from, int to, float *out, ty_error *err);

#endif
