/* winograd.h - Winograd's transforms for windows of 3 x 3 that move by one, over channels-last tensors of float32 or
 * bfloat16; transformed they are float32.
 *
 * A tile of 4 x 4 results is y = A' [(G w G') . (B' x B)] A, where x are the 6 x 6 numbers below the tile, w are the
 * weights, . multiplies element by element, ' transposes: 36 multiplications where the definition has 144 (Lavin and
 * Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308, F(4x4, 3x3)). Summed over channels the
 * element-wise product becomes 36 products of matrices, [tiles, channels] by [channels, filters]. Transposed, the same
 * is the gradient of the weights: dw = G' [(A dy A') . (B' x B)] G, summed over tiles. The gradient of x is a
 * convolution of dy with the weights turned by half a circle.
 *
 * The points of interpolation are 0, 5/8, -5/8, 3/2, -3/2 and infinity, those of oneDNN: the numbers of A and B are
 * exact, and results are off by half as much as with Lavin and Gray's 0, 1, -1, 2, -2. Off, in units of the root mean
 * square of sums in double, for numbers between -1 and 1 and 64 to 512 channels: y and dx by 5e-7 to 3e-6 (root mean
 * square; at most 2e-5), dw by 1e-7 to 4e-7 (at most 1.3e-6). That is what oneDNN's is off by, at most 1.6 times it but
 * for one shape of dw (4e-7 instead of 1e-7), and 0.7 to 3 times what plain sums are off by, 10 times in one case.
 *
 * A vector holds neighbouring channels, so that nothing is turned around. The 36 numbers of a tile lie `step` floats
 * apart, in the order of rows.
 */
#ifndef TY_TARGET_CPU_WINOGRAD_H
#define TY_TARGET_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

enum { TY_WINOGRAD_TILE = 4, TY_WINOGRAD_PATCH = 6, TY_WINOGRAD_POINTS = 36, TY_WINOGRAD_TAPS = 9 };

/* Where transformed tiles go: channel c of point i to to[i * step + c / strip * strip_step + c % strip], strip as in
 * panel.h. Up to the next whole vector, channels that are not there become zeros. */
typedef struct ty_winograd_place {
    float *to;
    int64_t step, strip_step;
} ty_winograd_place;

/* A tile of the result: rows and columns are 4 but at the borders. Steps are in numbers. */
typedef struct ty_winograd_tile {
    void *to;
    int64_t row_step, column_step;
    int rows, columns;
} ty_winograd_tile;

/* B' x B of 6 x 6, or A dy A' of 4 x 4 positions, each of `channels` numbers that begin at at[i]. */
typedef void ty_winograd_in_fn(const void *const *at, int64_t channels, const ty_winograd_place *place);
/* A' m A of m at from[i * step + c], c < channels. */
typedef void ty_winograd_out_fn(const float *from, int64_t step, int64_t channels, const ty_winograd_tile *tile);
/* G w G' of a strip: from[(r * 9 + tap) * strip + j] for r < rows and j < strip gives to[i * step + r * strip + j].
 * Turned by half a circle: tap 8 - tap. */
typedef void ty_winograd_weights_fn(const float *from, int64_t rows, bool turned, float *to, int64_t step);
/* G' s G of a strip: from[i * step + r * row_step + j] gives to[(r * 9 + tap) * strip + j]. */
typedef void ty_winograd_filter_fn(const float *from, int64_t step, int64_t row_step, int64_t rows, float *to);
/* to[(r * 9 + tap) * strip + j] <- from[r * row_step + j * 9 + tap] for j < n, zeros for the other columns of a strip.
 */
typedef void ty_winograd_taps_fn(const float *from, int64_t row_step, int64_t rows, int64_t n, float *to);

typedef struct ty_winograd_kernels {
    int lanes;                                   /* floats of a vector */
    ty_winograd_in_fn *patch_in[2], *tile_in[2]; /* of float32 and of bfloat16: [dtype == TY_BF16] */
    ty_winograd_out_fn *tile_out[2];
    ty_winograd_weights_fn *weights;
    ty_winograd_filter_fn *filter;
    ty_winograd_taps_fn *taps;
} ty_winograd_kernels;

/* Those for the strips of panel kernels. */
const ty_winograd_kernels *ty_winograd_for(int strip);

#endif
