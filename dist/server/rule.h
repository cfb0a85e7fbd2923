/* rule.h - how a gradient changes weights: the optimizers of a shard.
 *
 * A rule keeps `slots` numbers a weight beside it. It is applied to n neighbouring weights at once: a whole dense part,
 * or one row of a table. Everything is float32 in memory and double in between.
 *
 * With w weight, g gradient, lr rate, t how many pushes have changed this shard (1 at the first):
 *     sgd            w -= lr g                         with momentum: b = mu b + g; w -= lr b  (nesterov: g + mu b)
 *                                                      torch.optim.SGD; Keras' is the same while lr is constant
 *     adagrad        n += g^2; w -= lr g / (sqrt(n) + eps)           torch.optim.Adagrad (Duchi et al., 2011)
 *     keras_adagrad  n += g^2; w -= lr g / sqrt(n + eps)             keras.optimizers.Adagrad
 *     adam           m, v; w -= lr m^ / (sqrt(v^) + eps)             Kingma & Ba, 2015; torch.optim.Adam
 *     keras_adam     w -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v)+eps) the paper's short form: keras.optimizers.Adam,
 *                                                      tensorflow_addons LazyAdam, torch.optim.SparseAdam
 *     ftrl           McMahan et al., 2013, as tf.raw_ops.ApplyFtrlV2 with lr_power -1/2
 * Adam is lazy on rows: those that no push names keep their moments, while t counts all pushes.
 */
#ifndef TY_DIST_SERVER_RULE_H
#define TY_DIST_SERVER_RULE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TY_RULE_MAX_SLOTS 2

typedef enum ty_rule_kind {
    TY_RULE_SGD,
    TY_RULE_ADAGRAD,
    TY_RULE_KERAS_ADAGRAD,
    TY_RULE_ADAM,
    TY_RULE_KERAS_ADAM,
    TY_RULE_FTRL,
    TY_N_RULES
} ty_rule_kind;

/* Fields that a kind does not know are 0. Nothing has a default here: who fills it says all. */
typedef struct ty_rule {
    ty_rule_kind kind;
    bool nesterov;
    double rate;
    double momentum;     /* sgd */
    double beta1, beta2; /* adam */
    double eps;
    double initial;      /* what accumulators begin with: adagrad, ftrl */
    double l1, l2, beta; /* ftrl */
} ty_rule;

const char *ty_rule_text(ty_rule_kind kind); /* "keras_adam" */
bool ty_rule_parse(const char *text, ty_rule_kind *kind);
/* Rates and the rest within what their formulas allow; the error names the field. */
int ty_rule_check(const ty_rule *rule, ty_error *err);

int ty_rule_slots(const ty_rule *rule);
/* What slot number k of a weight begins with. */
float ty_rule_initial(const ty_rule *rule, int slot);
/* Changes n weights. slot[k] are n numbers each; scale multiplies the rate (a schedule's), t counts from 1. */
void ty_rule_apply(const ty_rule *rule, float scale, uint64_t t, float *w, float *const slot[TY_RULE_MAX_SLOTS],
                   const float *g, int64_t n);

#endif
