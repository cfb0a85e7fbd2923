/* attend_rows.h - what attention in tiles does to scores between its products (native_attend.c): a block of queries at
 * a time.
 */
#ifndef TY_TARGET_CPU_ATTEND_ROWS_H
#define TY_TARGET_CPU_ATTEND_ROWS_H

#include "compiler/ops/attend.h"

/* Scores are computed in vectors of so many: a row has room for as many behind the last one, which may be written. */
#define TY_ATTEND_LANES 16

/* Rows of scores, `step` floats apart. The first query sees `seen` keys, each next one `more` more. */
typedef struct ty_attend_scores {
    float *x;
    int64_t step, rows, seen, more;
} ty_attend_scores;

/* Rows of n numbers, one a query. */
typedef struct ty_attend_numbers {
    const float *at;
    int64_t step, n;
} ty_attend_numbers;

/* Adds a mask, or puts `hidden` where it says no. From query to query its numbers are query_step apart, which may be 0;
 * key_step is 1, or 0 where there is one number for all keys. */
void ty_attend_add_rows(const ty_attend_scores *s, const float *mask, int64_t query_step, int64_t key_step);
void ty_attend_choose_rows(const ty_attend_scores *s, const uint8_t *mask, int64_t query_step, int64_t key_step,
                           float hidden);
/* Scores become exp(score - the row's maximum), and zero for keys that only others see; inverse: 1 / sum of each. */
void ty_attend_softmax_rows(const ty_attend_scores *s, float *lse, float *inverse);
/* Scores become probabilities, given each row's lse: of a row in which all is hidden, the same for all that is not
 * unseen (compiler/ops/attend.h). */
void ty_attend_probs_rows(const ty_attend_scores *s, const float *lse);
/* dp <- scale p (dp - dy y'), of each row's scale: the gradient of the products q k'. dp lies as p does. */
void ty_attend_back_rows(const ty_attend_scores *p, float *dp, const ty_attend_numbers *dy, const ty_attend_numbers *y,
                         const float *scale);

/* Dropout: the first query's words begin at word `first` of the stream, each next one's row_step further on. */
typedef struct ty_attend_words {
    ty_attend_dropout dropout;
    uint64_t seed, first;
    uint32_t step;
    int64_t row_step;
} ty_attend_words;

/* Puts zeros where keys are dropped. The factor is left to the caller. */
void ty_attend_drop_rows(const ty_attend_scores *s, const ty_attend_words *w);
/* As ty_attend_back_rows, where dp is of what dropout left; and p becomes that, with the factor. */
void ty_attend_back_dropped_rows(const ty_attend_scores *p, float *dp, const ty_attend_numbers *dy,
                                 const ty_attend_numbers *y, const float *scale, const ty_attend_words *w);
/* dmask += by ds, where ds is that gradient, all of whose rows see the same keys; steps as above. */
void ty_attend_learn_rows(const ty_attend_scores *ds, float *dmask, int64_t query_step, int64_t key_step, float by);
/* Rows of n numbers, each times its own. */
void ty_attend_scale_rows(float *x, int64_t step, int64_t rows, int64_t n, const float *by);

#endif
