/* attend_rows.h - what attention in tiles does to a row of scores between its products (native_attend.c). x has n of
 * them, for as many keys.
 */
#ifndef TY_TARGET_CPU_ATTEND_ROWS_H
#define TY_TARGET_CPU_ATTEND_ROWS_H

#include <stdint.h>

/* Adds a row of a mask, or puts `hidden` where it says no. Where there is one number for all keys, step is 0. */
void ty_attend_add_row(float *x, const float *mask, int64_t step, int64_t n);
void ty_attend_choose_row(float *x, const uint8_t *mask, int64_t step, int64_t n, float hidden);
/* Scores become exp(score - maximum), zero from n up to `width`; returns 1 / sum. */
float ty_attend_softmax_row(float *x, int64_t n, int64_t width, float *lse);
/* Scores become probabilities, given the row's lse: of a row in which all is hidden, the same for all that is not
 * unseen (compiler/ops/attend.h). */
void ty_attend_probs_row(float *x, int64_t n, int64_t width, float lse);
/* p <- scale p (dp - dy y'): the gradient of the products q k'. dy and y have e numbers. */
void ty_attend_back_row(float *p, const float *dp, int64_t n, const float *dy, const float *y, int64_t e, float scale);
/* dmask += by ds, where ds is that gradient; step as above. */
void ty_attend_learn_row(float *dmask, const float *ds, int64_t step, int64_t n, float by);
void ty_attend_scale_row(float *x, int64_t n, float by);

#endif
