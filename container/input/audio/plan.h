/* plan.h - how an encoded sound becomes a row of a batch.
 *
 *     audio: {sample_rate: 16000, length: 16000, channels: 1, crop: random, pad: end, normalize: standard}
 *
 * Decode, mix the channels, resample, take `length` frames, and
 *
 *     value = sample * scale                          sample -1 to 1, scale 1 unless given
 *     standard    (sample - mean) / sqrt(variance + 1e-7) of the sound, as Wav2Vec2FeatureExtractor does
 *     peak        sample / max |sample|, silence as it is
 *
 * Shorter sounds get zeros, behind what is normalized. What varies (crop: random, gain) varies in training only and is
 * a function of (seed, epoch, sample) alone; evaluation takes the centre and leaves the gain at 0 dB.
 */
#ifndef TY_CONTAINER_INPUT_AUDIO_PLAN_H
#define TY_CONTAINER_INPUT_AUDIO_PLAN_H

#include "base/tensor.h"
#include "container/input/audio/audio.h"
#include "container/input/chance.h"

/* Which part of a longer sound is taken; where a shorter one gets its zeros. */
typedef enum ty_audio_crop { TY_AUDIO_CROP_START, TY_AUDIO_CROP_CENTRE, TY_AUDIO_CROP_RANDOM } ty_audio_crop;
typedef enum ty_audio_pad { TY_AUDIO_PAD_END, TY_AUDIO_PAD_BOTH, TY_AUDIO_PAD_START } ty_audio_pad;
typedef enum ty_audio_normalize { TY_AUDIO_AS_IS, TY_AUDIO_STANDARD, TY_AUDIO_PEAK } ty_audio_normalize;
/* [T], [C, T], [T, C]; auto: [T] of one channel, else [C, T]. */
typedef enum ty_audio_layout { TY_AUDIO_AUTO, TY_AUDIO_T, TY_AUDIO_CT, TY_AUDIO_TC } ty_audio_layout;

/* Of a row: samples. */
#define TY_AUDIO_MAX_SAMPLES ((int64_t)1 << 28)
/* Of a sound that is taken without being asked for more. */
#define TY_AUDIO_MAX_SECONDS 7200.0

/* As declared; make one with ty_audio_plan_make(). */
typedef struct ty_audio_plan {
    int rate;       /* 0: as the first sound, which all others must be like */
    int64_t length; /* frames of a row; 0: `seconds`, or as the first sound, which all others must be like */
    double seconds; /* 0: not given */
    int channels;   /* 0: as the first sound */
    ty_audio_crop crop;
    ty_audio_pad pad;
    ty_audio_normalize normalize;
    ty_audio_layout layout;
    double scale;
    double gain[2]; /* decibels, drawn evenly from between them */
    double max_seconds;
    bool rate_alike, length_alike; /* none was declared */
    bool decode_all;               /* when they are opened, so that what is damaged is found then */
} ty_audio_plan;

/* From the start, zeros behind, as it is. */
ty_audio_plan ty_audio_plan_make(void);
/* Checks what can be checked without data; dtype: of the batch. */
int ty_audio_plan_check(const ty_audio_plan *p, ty_dtype dtype, ty_error *err);
/* What is not declared becomes the first sound's. */
int ty_audio_plan_settle(ty_audio_plan *p, const ty_audio_info *first, ty_error *err);
/* Shape of a settled one's row. */
ty_type ty_audio_plan_type(const ty_audio_plan *p, ty_dtype dtype);
/* Of everything in it. */
uint64_t ty_audio_plan_fingerprint(const ty_audio_plan *p);

/* The generator's stream, so that it meets no other use of the seed. Each sample has 4 words in each epoch. */
#define TY_STREAM_AUDIO 0x41554449u

/* Room for floats that is kept from sound to sound. */
typedef struct ty_audio_room {
    float *v;
    size_t n;
} ty_audio_room;

/* Reads sounds by a settled plan; one thread's. Zeroed but for the plan. */
typedef struct ty_audio_reader {
    const ty_audio_plan *plan;
    ty_audio_room decoded, resampled, row;
} ty_audio_reader;

/* Whether the header is that of a sound that the plan can take. *work is raised to the memory that reading it takes
 * beside its row and the encoded bytes, about. */
int ty_audio_look(const ty_audio_plan *p, const uint8_t *bytes, size_t n, size_t *work, ty_error *err);
/* One sound to out, a row of `dtype`. The caller names the file. */
int ty_audio_row(ty_audio_reader *r, const uint8_t *bytes, size_t n, const ty_chance *chance, ty_dtype dtype, void *out,
                 ty_error *err);
/* Decodes all of it, for what may be wrong with it. */
int ty_audio_hear(ty_audio_reader *r, const uint8_t *bytes, size_t n, ty_error *err);
/* Memory that it has come to. */
size_t ty_audio_reader_bytes(const ty_audio_reader *r);
void ty_audio_reader_fini(ty_audio_reader *r);

#endif
