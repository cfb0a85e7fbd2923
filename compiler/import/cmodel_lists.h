/* cmodel_lists.h - a network that functions build (cmodel_net.h), as a model: what it takes, gives and learns, and the
 * binding of all that to a graph. Models in C and Hugging Face's folders share it.
 *
 * Listing builds twice: for training and for evaluation, with other sizes for free dimensions. Dimensions of outputs
 * that differ are free. Weights are stood in for by inputs, so that nothing is folded that training will change.
 */
#ifndef TY_COMPILER_IMPORT_CMODEL_LISTS_H
#define TY_COMPILER_IMPORT_CMODEL_LISTS_H

#include "compiler/import/cmodel_net.h"

/* What a network declares. */
typedef struct ty_cmodel_lists {
    const char *format; /* "C source", "C source, weights of model.safetensors" */
    ty_model_value *input, *output, *weight;
    bool *running; /* one a weight */
    int n_inputs, n_outputs, n_weights;
    int64_t n_calls;
} ty_cmodel_lists;

typedef struct cmodel_source {
    const char *path; /* for messages */
    /* Builds the network (cmodel_build); a failure leaves net->failed and net->error with the place of the fault. */
    void (*build)(void *ctx, cmodel_net *net);
    void *ctx;
    int64_t free_train, free_eval; /* what free dimensions are while listing, two numbers */
} cmodel_source;

/* Builds for training (or evaluation) with nothing bound, into a graph that is thrown away. Names go to the arena. */
void cmodel_rehearse(const cmodel_source *s, cmodel_net *net, ty_arena *a, ty_model_mode mode);
/* The lists but their format and the weights' data, in the arena. net: of the training, for initial values. */
int cmodel_list_all(const cmodel_source *s, ty_arena *a, cmodel_net *net, ty_cmodel_lists *out, ty_error *err);
/* As ty_model_import(). From one thread at a time. */
int cmodel_import_bound(const cmodel_source *s, const ty_cmodel_lists *lists, ty_graph *g, const ty_model_binding *b,
                        ty_model_values *values, ty_error *err);

#endif
