/* raise_case.h - for tests of raising: a model in double is imported, raised, compared value by value, and what was
 * found in it is counted.
 */
#ifndef TY_TESTS_RAISE_CASE_H
#define TY_TESTS_RAISE_CASE_H

#include "tests/unit/onnx_model.h"

#include "compiler/composites.h"
#include "compiler/passes/raise.h"

#include <math.h>

#define F64 11 /* ONNX's number of double */

/* ---- models in double ---- */

static inline void constant(model_text *t, const char *name, double v)
{
    model_raw(t, name, F64, 0, NULL, &v, sizeof v);
}

static inline void numbers(model_text *t, const char *name, int rank, const int64_t *dim)
{
    double v[64];
    int n = 1;
    for (int i = 0; i < rank; i++)
        n *= (int)dim[i];
    for (int i = 0; i < n; i++)
        v[i] = 0.3 + 0.125 * ((i * 7) % 11 - 4);
    model_raw(t, name, F64, rank, dim, v, sizeof v[0] * (size_t)n);
}

typedef struct raised {
    ty_graph *before, *after;
} raised;

static inline void run_output(const ty_graph *g, const void *const *data, int output, double **out, int64_t *n)
{
    ty_interp *it;
    ty_error err = {0};
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    if (ty_interp_run(it, TY_TAPE_EVAL, data, false, &err) < 0)
        fail_msg("%s", err.message);
    const ty_ref *r = ty_interp_output(it, output);
    *n = ty_type_elems(&r->type);
    *out = malloc(sizeof(double) * (size_t)(*n + 1));
    assert_non_null(*out);
    memcpy(*out, r->f, sizeof(double) * (size_t)*n);
    ty_interp_free(it);
}

/* Numbers between -1.6 and 1.6; labels 0 to 4; true and false in turn. */
static inline void *input_data(const ty_type *t, int input)
{
    int64_t n = ty_type_elems(t);
    char *bytes = calloc((size_t)n + 1, sizeof(double));
    assert_non_null(bytes);
    for (int64_t k = 0; k < n; k++) {
        double v = (double)((k * 37 + input * 11) % 33) / 10 - 1.6;
        float f = (float)v;
        int64_t label = k * 3 % 5;
        if (t->dtype == TY_F64)
            memcpy(bytes + 8 * k, &v, sizeof v);
        else if (t->dtype == TY_F32)
            memcpy(bytes + 4 * k, &f, sizeof f);
        else if (t->dtype == TY_I64)
            memcpy(bytes + 8 * k, &label, sizeof label);
        else
            bytes[k] = k % 3 != 1;
    }
    return bytes;
}

/* Within `tolerance` of each other; NaN nowhere. */
static inline void expect_same_values(const char *what, const raised *r, double tolerance)
{
    const void *data[8] = {0};
    for (int i = 0; i < ty_graph_n_inputs(r->before); i++)
        data[i] = input_data(&ty_graph_input(r->before, i)->type, i);
    for (int o = 0; o < ty_graph_n_outputs(r->before); o++) {
        double *a, *b;
        int64_t n, m;
        run_output(r->before, data, o, &a, &n);
        run_output(r->after, data, o, &b, &m);
        assert_int_equal(n, m);
        for (int64_t k = 0; k < n; k++)
            if (!(fabs(a[k] - b[k]) <= tolerance * (1 + fabs(a[k]))))
                fail_msg("%s: output %d, element %d: %.17g became %.17g", what, o, (int)k, a[k], b[k]);
        free(a);
        free(b);
    }
    for (int i = 0; i < 8; i++)
        free((void *)data[i]);
}

/* Imports as it is, raises, compares. The model's shapes are static. */
static inline ty_composite_count raise_onnx(const char *what, const ty_onnx *m, double tolerance)
{
    raised r = {ty_graph_new(), ty_graph_new()};
    ty_composite_count count;
    ty_val in[8], bound[8], none[32], held[8];
    ty_error err = {0};
    for (int i = 0; i < ty_onnx_n_inputs(m); i++) {
        const ty_onnx_value *v = ty_onnx_input(m, i);
        in[i] = new_input(r.before, v->dtype, v->rank, v->dim);
        bound[i] = new_input(r.after, v->dtype, v->rank, v->dim);
    }
    for (int i = 0; i < 32; i++)
        none[i] = TY_NONE;
    ty_onnx_binding b = {.mode = TY_ONNX_TRAIN, .inputs = in, .initializers = none};
    b.seed = b.step = ty_b_scalar(r.before, TY_I64, 0);
    ty_onnx_values values;
    if (ty_onnx_import(m, r.before, &b, &values, &err) < 0)
        fail_msg("%s", err.message);
    int n = ty_onnx_n_outputs(m);
    for (int i = 0; i < n; i++) {
        ty_graph_add_output(r.before, (char[]){'y', (char)('0' + i), 0}, values.outputs[i], TY_TAPE_EVAL);
        held[i] = values.outputs[i];
    }
    if (ty_pass_raise(r.before, r.after, bound, held, n, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < n; i++)
        ty_graph_add_output(r.after, (char[]){'y', (char)('0' + i), 0}, held[i], TY_TAPE_EVAL);
    if (ty_graph_verify(r.after, &err) < 0)
        fail_msg("%s", err.message);
    expect_same_values(what, &r, tolerance);
    assert_int_equal(ty_composites_count(r.after, held, n, &count, &err), 0);
    ty_graph_free(r.before);
    ty_graph_free(r.after);
    return count;
}

static inline ty_composite_count raise_model(model_text *t)
{
    ty_onnx *m = model_open(t);
    ty_composite_count count = raise_onnx("model", m, 1e-12);
    ty_onnx_free(m);
    ty_buf_fini(&t->file);
    return count;
}

static inline void expect_found(const char *what, ty_composite_count c, const char *want)
{
    char found[320];
    if (strcmp(ty_composite_count_text(&c, found, sizeof found), want) != 0)
        fail_msg("%s: expected \"%s\", found \"%s\"", what, want, found);
}

static inline void begin(model_text *t, int rank, const int64_t *dim)
{
    model_begin(t, 17);
    model_input(t, "x", F64, rank, dim);
}

#endif
