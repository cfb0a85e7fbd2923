/* tally.h - one metric over all batches of an evaluation: what a batch gives is added up, the value is made at the end.
 *
 *     ty_tally t = {.kind = TY_METRIC_F1};
 *     for (each batch) ty_tally_add(&t, parts, &err)      parts[i]: the program's output ty_tally_part(kind, i)
 *     value = ty_tally_value(&t);  ty_tally_fini(&t);
 *
 * So every metric is exact over the whole data. Formulas: compiler/passes/metric.h. The area under the curve needs all
 * scores at once: 8 bytes a row are kept until the end.
 */
#ifndef TY_ENTRYPOINT_TALLY_H
#define TY_ENTRYPOINT_TALLY_H

#include "compiler/compiler.h"

#define TY_TALLY_MAX_PARTS 2

typedef struct ty_tally_score {
    float score;
    bool is_positive;
} ty_tally_score;

typedef struct ty_tally {
    ty_metric_kind kind;
    double sum, count;
    double mean, square; /* of targets: their mean, and the sum of squared distances to it */
    double *counts;      /* [3, n_classes]: hits, said, true */
    int64_t n_classes;
    ty_tally_score *scores; /* [n_scores], room for n_room */
    size_t n_scores, n_room;
} ty_tally;

/* Suffix of the i-th program output of a kind, "sum" in "<metric>.sum"; NULL behind the last. */
const char *ty_tally_part(ty_metric_kind kind, int i);
/* parts: f32 arrays as compiler.h describes them; a missing one (NULL) is an error. */
int ty_tally_add(ty_tally *t, const ty_tensor *const *parts, ty_error *err);
/* NAN where there is nothing to judge by: no rows, or for AUC no positive or no negative ones. */
double ty_tally_value(ty_tally *t);
void ty_tally_fini(ty_tally *t);

/* Whether larger values are better ones; whether people read it as a percentage. */
bool ty_tally_prefers_high(ty_metric_kind kind);
bool ty_tally_is_share(ty_metric_kind kind);
/* Whether its targets are numbers, not classes. */
bool ty_tally_is_of_numbers(ty_metric_kind kind);

#endif
