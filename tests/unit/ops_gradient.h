/* ops_gradient.h - one node under judgement in a graph: its gradient, and a composite's decomposition.
 *
 *     GRADCHECK_NODE("take", TY_OP_TAKE, .attr = {.axis = 1}, FIXED(1, TY_I64, DIMS(2, 1), 0, 2),
 *                    .check = {.n_in = 1, .in = {GRAD_IN(2, 3)}});
 *
 * Include after ops_case.h.
 */
#ifndef TY_TESTS_UNIT_OPS_GRADIENT_H
#define TY_TESTS_UNIT_OPS_GRADIENT_H

#include "tests/unit/gradients.h"
#include "tests/unit/ops_case.h"

typedef struct node_case {
    ty_op op;
    ty_attr attr;
    int n_in; /* operands of the node; 0: check.n_in */
    struct {
        ty_type type;
        const int64_t *data; /* as i64 or i32; NULL: the next of the checked inputs */
    } fixed[6];
    gradcheck_case check;
} node_case;

#define FIXED_I64(at, dims, ...)  .fixed[at] = {.type = node_type(TY_I64, dims), .data = (const int64_t[]){__VA_ARGS__}}
#define GRADCHECK_NODE(text, ...) node_gradcheck(text, (node_case){.op = __VA_ARGS__})

static inline ty_type node_type(ty_dtype dtype, int rank, const int64_t *dim)
{
    return ty_type_make(dtype, rank, dim);
}

/* All float results of the node as one vector; a single one as it is. */
static inline ty_val node_results(ty_graph *g, ty_val v)
{
    ty_val part[TY_MAX_RESULTS];
    int n = 0, n_res = ty_op_row_of(ty_graph_op(g, ty_val_node(v)))->n_res;
    for (int r = 0; r < n_res; r++) {
        ty_val one = ty_val_make(ty_val_node(v), (uint32_t)r);
        if (ty_dtype_is_float(ty_b_dtype(g, one)))
            part[n++] = one;
    }
    if (n == 1)
        return part[0];
    for (int k = 0; k < n; k++)
        part[k] = ty_b_flatten(g, part[k]);
    return ty_b_concat(g, part, n, 0);
}

static inline ty_val node_build(ty_graph *g, const ty_val *x, const void *ctx)
{
    const node_case *c = ctx;
    ty_val in[6];
    int n_in = c->n_in ? c->n_in : c->check.n_in, next = 0;
    for (int k = 0; k < n_in; k++)
        in[k] = c->fixed[k].data ? ty_b_const(g, c->fixed[k].type, c->fixed[k].data) : x[next++];
    ty_val v = ty_graph_emit(g, c->op, &c->attr, in, n_in);
    return v == TY_NONE ? v : node_results(g, v);
}

static inline void node_gradcheck(const char *name, node_case c)
{
    c.check.name = name;
    c.check.build = node_build;
    c.check.ctx = &c;
    gradcheck(&c.check);
}

/* A graph with one node over inputs of these types and its results as outputs. */
static inline ty_graph *node_graph(ty_op op, const ty_attr *attr, const ty_ref *in, int n_in, ty_val *x)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    for (int k = 0; k < n_in; k++)
        x[k] = ty_b_input(g, ty_graph_add_input(g, (char[]){'x', (char)('0' + k), 0}, in[k].type));
    ty_val v = ty_graph_emit(g, op, attr, x, n_in);
    if (ty_graph_failed(g, &err))
        fail_msg("%s", err.message);
    for (int r = 0; r < ty_op_row_of(op)->n_res; r++)
        ty_graph_add_output(g, (char[]){'y', (char)('0' + r), 0}, ty_val_make(ty_val_node(v), (uint32_t)r),
                            TY_TAPE_EVAL);
    return g;
}

static inline void node_run(ty_interp *it, const ty_ref *in, int n_in)
{
    const void *data[8];
    ty_error err = {0};
    for (int k = 0; k < n_in; k++) {
        void *bytes = ty_arena_alloc(&case_arena, ty_type_bytes(&in[k].type));
        ty_ref_store(&in[k], bytes);
        data[k] = bytes;
    }
    if (ty_interp_run(it, TY_TAPE_EVAL, data, false, &err) < 0)
        fail_msg("%s", err.message);
}

/* How far a decomposition may be from the reference: the casts in it round. */
static inline double node_tolerance(ty_dtype dtype)
{
    return dtype == TY_F64 ? 1e-12 : dtype == TY_F32 ? 1e-6 : 0x1p-8;
}

/* The composite's decomposition gives what its reference gives, and is made of no composite. */
static inline void node_lowers(ty_op op, ty_attr attr, const ty_ref *in, int n_in)
{
    ty_ref want[TY_MAX_RESULTS];
    ty_val x[8];
    ty_graph *low, *g = node_graph(op, &attr, in, n_in, x);
    ty_error err = {0};
    case_run(op, attr, in, n_in, want);
    if (ty_pass_lower(g, &low, &err) < 0 || ty_graph_verify(low, &err) < 0)
        fail_msg("%s", err.message);
    for (uint32_t id = 0; id < ty_graph_n_nodes(low); id++)
        assert_int_not_equal(ty_op_row_of(ty_graph_op(low, id))->class_, TY_CLASS_COMPOSITE);
    ty_interp *it;
    assert_int_equal(ty_interp_new(low, &it, &err), 0);
    node_run(it, in, n_in);
    for (int r = 0; r < ty_op_row_of(op)->n_res; r++)
        case_same(ty_op_row_of(op)->text, ty_interp_output(it, r), &want[r], node_tolerance(want[r].type.dtype));
    ty_interp_free(it);
    ty_graph_free(low);
    ty_graph_free(g);
}

/* The gradient of sum(dy * result 0) by operand 0 at given numbers. */
static inline void node_gradient_is(ty_op op, ty_attr attr, const ty_ref *in, int n_in, const double *dy,
                                    const ty_ref *want)
{
    ty_val x[8], grad;
    ty_graph *g = node_graph(op, &attr, in, n_in, x);
    ty_error err = {0};
    ty_val y = ty_graph_output(g, 0)->val;
    ty_val loss = ty_b_sum(g, ty_b_mul(g, y, ty_b_const(g, *ty_graph_type(g, y), dy)), ty_b_all_axes(g, y), false);
    if (ty_pass_autodiff(g, loss, x, 1, &grad, &err) < 0)
        fail_msg("%s", err.message);
    int out = ty_graph_add_output(g, "dx", grad, TY_TAPE_EVAL);
    ty_interp *it;
    assert_int_equal(ty_interp_new(g, &it, &err), 0);
    node_run(it, in, n_in);
    case_same(ty_op_row_of(op)->text, ty_interp_output(it, out), want, 1e-12);
    ty_interp_free(it);
    ty_graph_free(g);
}

/* There is no gradient by operand 0, and the message has `text`. */
static inline void node_no_gradient(ty_op op, ty_attr attr, const ty_ref *in, int n_in, const char *text)
{
    ty_val x[8], grad;
    ty_graph *g = node_graph(op, &attr, in, n_in, x);
    ty_error err = {0};
    ty_val y = ty_graph_output(g, 0)->val;
    int rc = ty_pass_autodiff(g, ty_b_sum(g, y, ty_b_all_axes(g, y), false), x, 1, &grad, &err);
    ty_graph_free(g);
    assert_int_equal(rc, -1);
    assert_int_equal(err.code, TY_E_NO_GRADIENT);
    if (!strstr(err.message, text))
        fail_msg("\"%s\", expected \"%s\"", err.message, text);
}

/* Nodes of an op in what is left when the forward node and its gradient are taken apart together. */
static inline int node_count_lowered(ty_op op, ty_attr attr, const ty_ref *in, int n_in, int n_wrt, ty_op counted,
                                     uint32_t mode)
{
    ty_val x[8], grad[8];
    ty_graph *low, *g = node_graph(op, &attr, in, n_in, x);
    ty_error err = {0};
    ty_val y = ty_graph_output(g, 0)->val;
    ty_val loss = ty_b_sum(g, ty_b_square(g, y), ty_b_all_axes(g, y), false);
    if (ty_pass_autodiff(g, loss, x, n_wrt, grad, &err) < 0)
        fail_msg("%s", err.message);
    for (int k = 0; k < n_wrt; k++)
        ty_graph_add_output(g, (char[]){'d', (char)('0' + k), 0}, grad[k], TY_TAPE_EVAL);
    if (ty_pass_lower(g, &low, &err) < 0)
        fail_msg("%s", err.message);
    int n = 0;
    uint8_t *live = calloc(ty_graph_n_nodes(low), 1);
    assert_non_null(live);
    ty_graph_mark_live(low, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(low); id++)
        n += live[id] && ty_graph_op(low, id) == counted && ty_graph_attr(low, id)->mode == mode;
    free(live);
    ty_graph_free(low);
    ty_graph_free(g);
    return n;
}

#endif
