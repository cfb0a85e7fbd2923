/* signature.h - for fuzz targets: imports a signature of a TensorFlow file. What is refused must say why, and what is
 * taken must be a sound graph.
 */
#ifndef TY_TESTS_FUZZ_SIGNATURE_H
#define TY_TESTS_FUZZ_SIGNATURE_H

#include "compiler/import/tensorflow/tf_import.h"
#include "compiler/ir/build.h"
#include "compiler/ir/verify.h"

#include <stdlib.h>

/* Free dims become 2, unknown shapes a vector of 2. */
static inline ty_type signature_type(const tf_port *p)
{
    int64_t dim[TY_MAX_RANK] = {2};
    ty_dtype dtype = tf_dtype(p->data_type);
    for (int i = 0; i < p->rank; i++)
        dim[i] = p->dim[i] < 0 ? 2 : p->dim[i];
    return ty_type_make(dtype == TY_N_DTYPES ? TY_F32 : dtype, p->rank < 0 ? 1 : p->rank, dim);
}

static inline void signature_import(const tf_file *f, const tf_signature *s, bool own_step)
{
    tf_run run = {f, s, own_step};
    ty_graph *g = ty_graph_new();
    ty_val *in = calloc((size_t)s->n_inputs + 1, sizeof *in);
    ty_model_values values;
    ty_error err = {0};
    for (int i = 0; i < s->n_inputs; i++)
        in[i] = ty_b_input(g, ty_graph_add_input(g, s->input[i].name, signature_type(&s->input[i])));
    ty_model_binding b = {
        .mode = TY_MODEL_TRAIN, .inputs = in, .seed = ty_b_scalar(g, TY_I64, 1), .step = ty_b_scalar(g, TY_I64, 2)};
    if (!ty_graph_failed(g, NULL) && tf_import(&run, g, &b, &values, &err) == 0) {
        for (int i = 0; i < s->n_outputs; i++)
            ty_graph_add_output(g, s->output[i].name, values.outputs[i], TY_TAPE_EVAL);
        if (ty_graph_verify(g, &err) < 0)
            abort();
    } else if (err.code != TY_E_NONE && !err.message[0])
        abort();
    ty_graph_free(g);
    free(in);
}

#endif
