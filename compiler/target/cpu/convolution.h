/* convolution.h - what a convolution convolves, for people and for bench/products. */
#ifndef TY_TARGET_CPU_CONVOLUTION_H
#define TY_TARGET_CPU_CONVOLUTION_H

#include "compiler/ir/graph.h"

#include <stddef.h>

enum { TY_CONVOLUTION_TEXT = 192 }; /* bytes that hold the text of two spatial axes */

/* "brgconv:avx512_core 64x32x26x26 by 64x32x3x3 s1x1 p0x0+0x0 d1x1 g1 last": how (one word); images, channels,
 * positions of x; the weights; stride, padding in front and behind, dilation, groups; whether x and y are
 * channels-last. Of gradients too. */
void ty_convolution_text(const char *how, const ty_attr *attr, const ty_type *x, const ty_type *w, char *out,
                         size_t n_bytes);

#endif
