/* keras_attend.h - softmax(scale q k' + mask) v, as Keras' attention layers and operations have it. Private to
 * compiler/import/keras. Written out: passes/raise_attention.c makes composites of it.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_ATTEND_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_ATTEND_H

#include "compiler/import/keras/keras.h"

/* In place of scores that do not count: of dot_product_attention, and of a Softmax layer with a mask. */
#define KERAS_HIDDEN         (-0.7 * 3.38953e38)
#define KERAS_HIDDEN_SOFTMAX (-1e9)

typedef struct keras_attend {
    ty_val q, k, v; /* [B, T, N, H], [B, S, G, H], [B, S, G, E]: N is a multiple of G */
    double scale;
    ty_val bias; /* added to the scores [B, N, T, S], stretched; or TY_NONE */
    ty_val mask; /* bool, dims those of the scores or 1: true, the key counts; or TY_NONE */
    double cap;  /* 0, or scores become cap tanh(score / cap) */
    double hidden;
    bool zero_masked; /* a key that does not count has no weight even where none counts */
    double dropout;   /* rate, of the weights, in training */
    /* results */
    ty_val weights; /* [B, N, T, S], before dropout */
    ty_val y;       /* [B, T, N, E] */
} keras_attend;

/* Zeros for a share `rate` of p, in training, and the rest scaled up. */
ty_val keras_dropped(keras_call *c, ty_val p, double rate);
void keras_attend_emit(keras_call *c, keras_attend *a);
/* bool [T, S]: key j counts for query i where j <= i; with window > 0 only where also abs(i - j) < window. */
ty_val keras_causal(ty_graph *g, int64_t t, int64_t s, bool causal, int64_t window);
/* Of bool masks of which either may be TY_NONE. */
ty_val keras_and(ty_graph *g, ty_val a, ty_val b);
/* A mask with as many axes as the scores [B, N, T, S]: the missing ones stand in front of the last two. */
ty_val keras_mask_to_scores(ty_graph *g, ty_val mask);

#endif
