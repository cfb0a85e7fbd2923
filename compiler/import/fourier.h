/* fourier.h - discrete Fourier transforms as products with a matrix, for importers.
 *
 * A spectrum of n numbers costs n^2 multiplications instead of n log n, but they are a product's: at the lengths of
 * audio frames (256 to 1,024) it takes less than the layer behind it, and its gradient is a product again. They are
 * computed in float32 in mixed precision, too: what is quiet beside the loudest would else be lost.
 */
#ifndef TY_COMPILER_IMPORT_FOURIER_H
#define TY_COMPILER_IMPORT_FOURIER_H

#include "compiler/ir/graph.h"

enum { TY_FOURIER_MAX = 1 << 24 }; /* numbers of a matrix */

typedef struct ty_fourier {
    int64_t n;       /* length: what the axis has beyond it is cut off, what is missing is 0 */
    bool is_inverse; /* the sign is turned and the result divided by n */
    bool is_half;    /* of real signals: bins 0 to n / 2, the others being their conjugates */
} ty_fourier;

/* Whether the matrix of such a transform of so many entries of 1 or 2 parts is small enough. */
bool ty_fourier_fits(ty_fourier f, int64_t entries, int parts);

/* y[j] = sum over k of x[k] exp(-2 pi i j k / n) along an axis of x [.., entries, .., parts], a float; the last axis
 * has the real part, or that and the imaginary one. So has the result, with n entries, or n / 2 + 1 where they are
 * half; real numbers, n of them, from half the bins backwards. */
ty_val ty_fourier_transform(ty_graph *g, ty_val x, int axis, ty_fourier f);

/* The same with the parts apart: re and im [.., entries, ..], im TY_NONE where it is 0. A part of the result that
 * nobody reads is not computed. out_im: NULL of half the bins backwards, whose result is real. */
void ty_fourier_parts(ty_graph *g, ty_val re, ty_val im, int axis, ty_fourier f, ty_val *out_re, ty_val *out_im);

/* The transforms of x [batch, samples, parts] at samples 0, step, ...: [batch, frames, bins, 2]. window: [n], or
 * TY_NONE. As many frames as are whole, at least one. */
ty_val ty_fourier_frames(ty_graph *g, ty_val x, ty_val window, int64_t step, ty_fourier f);

#endif
