/* attend_case.h - graphs of attention and its gradient, for the units that compute them on the CPU and on a GPU.
 * Include after cmocka.h.
 */
#ifndef TY_TESTS_UNIT_ATTEND_CASE_H
#define TY_TESTS_UNIT_ATTEND_CASE_H

#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"

enum { MAX_INPUTS = 4, MAX_OUTPUTS = 4 };

typedef struct attend_case {
    ty_dtype dtype;
    int64_t b, heads, groups, t, s, d, e;
    bool causal, inside; /* inside: heads lie within rows */
    bool tiled;          /* what the pass should say */
    bool packed;         /* q, k and v, of the same sizes, are slices of one input: qkv, dy -> y, dqkv */
} attend_case;

static inline ty_val given(ty_graph *g, const attend_case *c, const char *name, int64_t heads, int64_t rows, int64_t n)
{
    int64_t inside[] = {c->b, rows, heads, n}, plain[] = {c->b, heads, rows, n};
    ty_val v = ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(c->dtype, 4, c->inside ? inside : plain)));
    return c->inside ? ty_b_transpose(g, v, (int64_t[]){0, 2, 1, 3}) : v;
}

static inline void taken(ty_graph *g, const attend_case *c, const char *name, ty_val v)
{
    ty_graph_add_output(g, name, c->inside ? ty_b_transpose(g, v, (int64_t[]){0, 2, 1, 3}) : v, TY_TAPE_EVAL);
}

/* The first, second or third part of a row, in heads that are turned outside. */
static inline ty_val part(ty_graph *g, const attend_case *c, ty_val whole, int i)
{
    int64_t n = c->heads * c->d;
    ty_val v =
        ty_b_reshape(g, ty_b_slice_axis(g, whole, 2, i * n, (i + 1) * n), 4, (int64_t[]){c->b, c->t, c->heads, c->d});
    return ty_b_transpose(g, v, (int64_t[]){0, 2, 1, 3});
}

static inline ty_graph *make_packed(const attend_case *c)
{
    ty_graph *g = ty_graph_new();
    const int64_t dims[] = {c->b, c->t, 3 * c->heads * c->d};
    ty_val qkv = ty_b_input(g, ty_graph_add_input(g, "qkv", ty_type_make(c->dtype, 3, dims)));
    ty_val dy = given(g, c, "dy", c->heads, c->t, c->e), d;
    ty_attr attr = {.flags = c->causal, .value = 0.3};
    ty_val in[] = {part(g, c, qkv, 0), part(g, c, qkv, 1), part(g, c, qkv, 2)};
    ty_val y = ty_graph_emit(g, TY_OP_ATTENTION, &attr, in, 3);
    ty_error err = {0};
    if (ty_pass_autodiff(g, ty_b_sum(g, ty_b_mul(g, y, dy), 15, false), &qkv, 1, &d, &err) < 0)
        fail_msg("%s", err.message);
    taken(g, c, "y", y);
    ty_graph_add_output(g, "dqkv", d, TY_TAPE_EVAL);
    return g;
}

/* Attention and the gradient of sum(y dy). */
static inline ty_graph *make(const attend_case *c)
{
    if (c->packed)
        return make_packed(c);
    ty_graph *g = ty_graph_new();
    ty_val q = given(g, c, "q", c->heads, c->t, c->d), k = given(g, c, "k", c->groups, c->s, c->d);
    ty_val v = given(g, c, "v", c->groups, c->s, c->e), dy = given(g, c, "dy", c->heads, c->t, c->e);
    ty_attr attr = {.flags = c->causal, .value = 0.3};
    ty_val y = ty_graph_emit(g, TY_OP_ATTENTION, &attr, (ty_val[]){q, k, v}, 3), d[3];
    ty_error err = {0};
    ty_val loss = ty_b_sum(g, ty_b_mul(g, y, dy), 15, false);
    if (ty_pass_autodiff(g, loss, (ty_val[]){q, k, v}, 3, d, &err) < 0)
        fail_msg("%s", err.message);
    taken(g, c, "y", y);
    taken(g, c, "dq", d[0]);
    taken(g, c, "dk", d[1]);
    taken(g, c, "dv", d[2]);
    return g;
}

/* Inputs of float32, between -1.5 and 1.5; they are the caller's. */
static inline void float_noise(const ty_graph *g, void **in)
{
    for (int i = 0; i < ty_graph_n_inputs(g); i++) {
        int64_t n = ty_type_elems(&ty_graph_input(g, i)->type);
        float *x = in[i] = malloc(sizeof(float) * (size_t)n);
        assert_non_null(x);
        for (int64_t k = 0; k < n; k++)
            x[k] = 3 * ty_rng_uniform(ty_rng_u32(5, (uint32_t)i, 0, (uint64_t)k)) - 1.5f;
    }
}

#endif
