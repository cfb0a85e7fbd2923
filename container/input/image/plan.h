/* plan.h - how an encoded picture becomes a row of a batch.
 *
 *     image: {size: [224, 224], channels: 3, resize: 256, crop: random_resized, flip: horizontal,
 *             mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225], layout: chw}
 *
 * Decode, choose a part, resize it (resize.h), flip it, and
 *
 *     value = (sample * scale - mean) / std        sample 0 to 255, scale 1/255 unless given
 *
 * or, for a field of type uint8, the sample itself. Where it is asked for, a row's pixels are turned and their colours
 * changed before that (colour.h), and a rectangle of values becomes 0 behind it. What varies (crop: random and
 * random_resized, flip, rotate, jitter, grayscale, erase, mix) varies in
 * training only and is a function of (seed, epoch, sample) alone. All image fields of a sample are drawn alike, so that
 * a picture and its mask stay together. Evaluation takes the centre.
 */
#ifndef TY_CONTAINER_INPUT_IMAGE_PLAN_H
#define TY_CONTAINER_INPUT_IMAGE_PLAN_H

#include "base/tensor.h"
#include "container/input/agree.h"
#include "container/input/chance.h"
#include "container/input/image/image.h"
#include "container/input/image/resize.h"

/* The picture's size before the crop. */
typedef enum ty_image_fit {
    TY_IMAGE_STRETCH, /* `size` exactly, whatever the shape was */
    TY_IMAGE_COVER,   /* its shape kept, as small as covers `size` */
    TY_IMAGE_CONTAIN, /* its shape kept, as big as lies within `size`; zeros around it */
    TY_IMAGE_SHORTER, /* its shape kept, the shorter side becomes `shorter`; the longer floor(long * shorter / short) */
    TY_IMAGE_AS_IS    /* not resized */
} ty_image_fit;

typedef enum ty_image_crop {
    TY_IMAGE_CROP_CENTRE,
    TY_IMAGE_CROP_RANDOM,        /* anywhere, `pad` zeros around the picture counted in */
    TY_IMAGE_CROP_RANDOM_RESIZED /* a part of area[0..1] of the picture, of a shape between ratio[0..1], stretched to
                                  * `size`: Inception's, as torchvision draws it; evaluation: centre */
} ty_image_crop;

typedef enum ty_image_jitter {
    TY_JITTER_BRIGHTNESS,
    TY_JITTER_CONTRAST,
    TY_JITTER_SATURATION,
    TY_JITTER_HUE,
    TY_N_JITTERS
} ty_image_jitter;

typedef enum ty_image_mix { TY_IMAGE_MIX_NONE, TY_IMAGE_MIXUP, TY_IMAGE_CUTMIX } ty_image_mix;

/* As declared; make one with ty_image_plan_make(). */
typedef struct ty_image_plan {
    int height, width; /* 0: as the first picture, which all others must be like */
    int channels;      /* 0: as the first picture */
    ty_image_fit fit;
    int shorter;
    ty_image_filter filter;
    ty_image_crop crop;
    int pad;
    double area[2], ratio[2];
    bool flip_across, flip_down;
    double jitter[TY_N_JITTERS]; /* factors from 1 - j to 1 + j, hue from -j to j turns, in an order that is drawn */
    double grey, erase;          /* how often: 0 to 1 */
    double rotate;               /* by up to so many degrees, either way */
    bool hwc;                    /* else CHW */
    double scale;
    bool scale_given;
    double mean[4], std[4];
    int n_mean, n_std; /* 0: none; 1: for all channels; else one a channel */
    bool all_alike;    /* no size was declared */
    bool decode_all;   /* when they are opened, so that what is damaged is found then */
    bool mean_of_data; /* and std: computed over the training data (ty_image_sums) */
    ty_image_mix mix;
    double alpha;       /* of Beta(alpha, alpha), from which the share of the mix is drawn */
    double gap;         /* a JPEG is decoded smaller by 2, 4 or 8 where that leaves at least gap times the pixels of a
                         * side that are wanted (as `reducing_gap` of Pillow); 0: never */
    int64_t max_pixels; /* 0: TY_IMAGE_MAX_PIXELS */
} ty_image_plan;

/* Stretched, 1/255, CHW, gap 2, area 0.08 to 1, ratio 3/4 to 4/3. */
ty_image_plan ty_image_plan_make(void);
/* Checks what can be checked without data; dtype: of the batch. */
int ty_image_plan_check(const ty_image_plan *p, ty_dtype dtype, ty_error *err);
/* Size and channels that are not declared become the first picture's; mean and std one a channel. */
int ty_image_plan_settle(ty_image_plan *p, const ty_image_info *first, ty_error *err);
/* Shape of a settled one's row. */
ty_type ty_image_plan_type(const ty_image_plan *p, ty_dtype dtype);
/* Of everything in it. */
uint64_t ty_image_plan_fingerprint(const ty_image_plan *p);

/* The generator's stream, so that it meets no other use of the seed. Each sample has 256 words in each epoch. */
#define TY_STREAM_IMAGE 0x494d4147u

/* Two pictures in one: the other's number (of n), and the share of the first. */
typedef struct ty_image_mixing {
    int64_t other;
    double share;
    int x0, y0, x1, y1; /* cutmix: what is the other's, and 1 - share is its part of the area */
} ty_image_mixing;

void ty_image_plan_mixing(const ty_image_plan *p, const ty_chance *draw, int64_t n, ty_image_mixing *out);
/* row = mixed with other; both f32 of a settled plan's type. */
void ty_image_plan_mix(const ty_image_plan *p, const ty_image_mixing *m, float *row, const float *other);

/* Reads pictures by a settled plan; one thread's. Zeroed but for the plan. */
typedef struct ty_image_reader {
    const ty_image_plan *plan;
    ty_image whole, part, canvas, turned;
    ty_image_scratch scratch;
    float *row;           /* where the type is neither u8 nor f32 */
    size_t decoder_bytes; /* the most that a decoder took beside the pixels */
    float table[4][256];
    bool has_table;
} ty_image_reader;

/* Whether the header is that of a picture that the plan can take. *work is raised to the memory that reading it takes
 * beside its row and the encoded bytes, about. */
int ty_image_look(const ty_image_plan *p, const uint8_t *bytes, size_t n, size_t *work, ty_error *err);
/* One picture to out, a row of `dtype`. The caller names the file. */
int ty_image_read(ty_image_reader *r, const uint8_t *bytes, size_t n, const ty_chance *draw, ty_dtype dtype, void *out,
                  ty_error *err);
/* Memory that it has come to. */
size_t ty_image_reader_bytes(const ty_image_reader *r);
void ty_image_reader_fini(ty_image_reader *r);

/* Mean and deviation in one pass: sums of samples and of their squares, exact and in any order. */
typedef struct ty_image_sums {
    uint64_t sum[4], squares[4], n;
} ty_image_sums;

void ty_image_sums_add(ty_image_sums *to, const ty_image_sums *from);
/* Those of all parts of the data. */
int ty_image_sums_agree(ty_image_sums *sums, const ty_agree *agree, ty_error *err);
int ty_image_see(ty_image_reader *r, const uint8_t *bytes, size_t n, ty_image_sums *sums, ty_error *err);
/* The declaration of one that is settled: it learns no more. */
void ty_image_plan_keep(ty_image_plan *declared, const ty_image_plan *settled);
/* mean = scale E[v], std = scale sqrt(E[v^2] - E[v]^2); a channel that never varies gets 1. */
void ty_image_plan_take(ty_image_plan *p, const ty_image_sums *sums);

#endif
