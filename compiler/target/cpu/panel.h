/* panel.h - products of a few rows with a matrix that is used again and again: c [rows, 32] = a [rows, k] b [k, 32].
 *
 * oneDNN packs its operands in every call, which is nothing beside a large product, but as much work as the product
 * itself where the left side has a few dozen rows: a step of a recurrence. Here the matrix is packed once, into panels
 * of 32 columns, each [k, 32], and multiplied panel by panel.
 *
 * Every element is one sum in the order of k, whatever the number of rows: the bits do not depend on how rows and
 * panels are dealt to threads. They do depend on whether the machine has fused multiply-add.
 */
#ifndef TY_TARGET_CPU_PANEL_H
#define TY_TARGET_CPU_PANEL_H

#include <stdint.h>

#define TY_PANEL 32

/* c[r * c_step + j] = sum over i of a[r * a_step + i] panel[i * 32 + j]. panel and c begin at multiples of 64 bytes,
 * and c_step is a multiple of 32. */
typedef void ty_panel_fn(const float *a, int64_t a_step, int64_t rows, int64_t k, const float *panel, float *c,
                         int64_t c_step);

/* The one for this machine. */
ty_panel_fn *ty_panel_best(void);

/* panel[i * 32 + j] <- b[i * k_step + j * n_step] for j < n, zeros for the other columns. */
void ty_panel_pack(float *panel, const float *b, int64_t k, int64_t k_step, int64_t n, int64_t n_step);

#endif
