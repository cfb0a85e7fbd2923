/* model.h - what the compiler asks of a model file, whatever its format. Internal to compiler/; the public half is in
 * compiler.h.
 *
 * A format is a row of the table in model.c. Weights are numbered as in ty_model_weight().
 */
#ifndef TY_COMPILER_MODEL_H
#define TY_COMPILER_MODEL_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

/* How nodes that act otherwise in training are taken. */
typedef enum ty_model_mode {
    TY_MODEL_EVAL, /* running statistics, no dropout */
    TY_MODEL_TRAIN /* batch statistics, updates of the running ones, dropout */
} ty_model_mode;

/* A low-rank adapter of a weight that is a matrix: passes/adapt.h. */
typedef struct ty_model_adapter {
    int weight;
    ty_val left, right; /* [d0, rank], [rank, d1] */
    double scale;
    bool is_met, is_read_by_others, sums_rows; /* set by the import: as in ty_adapter */
} ty_model_adapter;

typedef struct ty_model_binding {
    ty_model_mode mode;
    const ty_val *inputs;                       /* one a model input; its type is the static shape */
    const ty_val *weights;                      /* one a weight; TY_NONE: a constant. NULL: all constants */
    ty_val seed, step;                          /* i64[] for random numbers */
    const struct ty_precision_rules *precision; /* passes/precision.h; NULL: as in the file */
    ty_model_adapter *adapters;                 /* [n_adapters], of weights that are bound to a value */
    int n_adapters;
    int batch_norm_replicas; /* whose batches share the statistics of a batch norm; 0 or 1: none does */
} ty_model_binding;

/* New value of a running statistic after a training step. */
typedef struct ty_model_update {
    int weight;
    ty_val value;
} ty_model_update;

/* Arrays live in the graph's arena. */
typedef struct ty_model_values {
    const ty_val *outputs; /* one a model output */
    const ty_model_update *updates;
    int n_updates;
    const ty_val *loss;       /* of a model that trains itself, in TY_MODEL_TRAIN: one float; else NULL. Outputs are
                                 TY_NONE then, and every variable that its step assigns is in updates. */
    ty_composite_count found; /* in what was emitted */
    const ty_val *masks;     /* one a model output: bool[batch ...] over its leading axes, what of it counts in loss and
                                metrics; TY_NONE: all. NULL: no output has one */
    const ty_val *penalties; /* f32[] each, added to the loss as they are, in training and evaluation: regularizers of
                                weights and activations */
    int n_penalties;
} ty_model_values;

/* Emits the model into g, raised (compiler/passes/raise.h); may be called again on the same graph. */
int ty_model_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err);

/* Everything that ty_model_import would refuse, found at once: faults[0 .. min(result, max) - 1] are filled. Returns
 * the number found. g: an empty graph but for what b binds. */
int ty_model_faults(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max);

/* Numbers by name, or -1. */
int ty_model_find_input(const ty_model *m, const char *name);
int ty_model_find_output(const ty_model *m, const char *name);
int ty_model_find_weight(const ty_model *m, const char *name);

/* Gives the memory of the mapped file back to the system; it is read again where it is needed again. */
void ty_model_drop_pages(const ty_model *m);
/* Whether weights that a program reads as constants are pages of the file. */
bool ty_model_is_mapped(const ty_model *m);

#endif
