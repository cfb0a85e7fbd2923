/* autodiff.c - reverse mode on the graph.
 *
 * Two sweeps. Forward, from wrt: which values depend on one of them through floats. Backward, from the loss: each node
 * that matters is asked for the gradients of its inputs, which are added up. A node is reached only after all its users
 * (ids are a topological order), so its gradient is complete by then.
 */
#include "compiler/ir/build.h"
#include "compiler/ops/op.h"
#include "compiler/passes/parts.h"
#include "compiler/passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEEDED = 1, WRT = 2 };

typedef struct autodiff {
    ty_graph *g;
    uint32_t n_nodes; /* of the forward graph: what is appended is above */
    uint8_t *needed;  /* by ty_val: NEEDED: depends on a wrt through floats; WRT: is one */
    ty_val *grad;     /* by ty_val */
} autodiff;

static bool autodiff_is_float(const ty_graph *g, ty_val v)
{
    return ty_dtype_is_float(ty_b_dtype(g, v));
}

bool ty_origin_is_gradient(const char *origin)
{
    return strncmp(origin, "gradient", 8) == 0;
}

static void autodiff_mark_needed(autodiff *a, const ty_val *wrt, int n_wrt)
{
    for (int i = 0; i < n_wrt; i++)
        if (wrt[i] != TY_NONE && autodiff_is_float(a->g, wrt[i]))
            a->needed[wrt[i]] = WRT;
    for (uint32_t id = 0; id < a->n_nodes; id++) {
        const ty_node *node = ty_graph_node(a->g, id);
        bool any = false;
        for (uint32_t k = 0; k < node->n_in && !any; k++) {
            ty_val v = ty_graph_in(a->g, id, (int)k);
            any = v != TY_NONE && a->needed[v];
        }
        for (uint32_t r = 0; any && r < node->n_res; r++)
            if (autodiff_is_float(a->g, ty_val_make(id, r)))
                a->needed[ty_val_make(id, r)] |= NEEDED;
    }
}

/* Adds a contribution to the gradient of v; its type must be v's. */
static void autodiff_add(autodiff *a, uint32_t node, ty_val v, ty_val contribution)
{
    ty_graph *g = a->g;
    if (contribution == TY_NONE || ty_graph_failed(g, NULL))
        return;
    const ty_type *want = ty_graph_type(g, v), *have = ty_graph_type(g, contribution);
    if (!ty_type_same(want, have)) {
        char x[160], y[160];
        ty_graph_fail(g, TY_E_INTERNAL, "gradient of %%%u = %s: an input of type %s got a gradient of type %s", node,
                      ty_op_row_of(ty_graph_op(g, node))->text, ty_type_text(want, x, sizeof x),
                      ty_type_text(have, y, sizeof y));
        return;
    }
    a->grad[v] = a->grad[v] == TY_NONE ? contribution : ty_b_add(g, a->grad[v], contribution);
}

static void autodiff_fail_no_gradient(autodiff *a, uint32_t id)
{
    ty_graph_fail(a->g, TY_E_NO_GRADIENT,
                  "%s has no gradient, and the loss depends on a trained value through it (node %%%u)",
                  ty_op_row_of(ty_graph_op(a->g, id))->text, id);
}

/* Whether the gradient of a step is asked for, of which the sigmoid s is made: 1 + exp(-v), exp(-v), -v. */
static bool autodiff_wants_step(const autodiff *a, ty_val s)
{
    const ty_graph *g = a->g;
    ty_val sum = ty_graph_in(g, ty_val_node(s), 1), power = ty_graph_in(g, ty_val_node(sum), 0);
    if (ty_graph_op(g, ty_val_node(power)) != TY_OP_EXP)
        power = ty_graph_in(g, ty_val_node(sum), 1);
    ty_val minus = ty_graph_in(g, ty_val_node(power), 0);
    return (a->needed[sum] | a->needed[power] | a->needed[minus]) & WRT;
}

/* A sigmoid s of v gives v its gradient at once: dy s (1 - s). Step by step, exp(-v), which overflows where v is far
 * below zero, would be multiplied by a gradient that is zero there. */
static bool autodiff_sigmoid(autodiff *a, uint32_t id)
{
    ty_graph *g = a->g;
    ty_val s = ty_val_make(id, 0), v = ty_b_sigmoid_input(g, s);
    if (v == TY_NONE || autodiff_wants_step(a, s))
        return false;
    ty_val slope = ty_b_mul(g, s, ty_b_sub(g, ty_b_full_like(g, s, 1), s));
    autodiff_add(a, id, v, ty_b_mul(g, a->grad[s], slope));
    return true;
}

/* Asks one node for the gradients of its inputs. */
static void autodiff_node(autodiff *a, uint32_t id)
{
    ty_graph *g = a->g;
    const ty_node node = *ty_graph_node(g, id);
    bool any = false, wanted = false;
    for (uint32_t r = 0; r < node.n_res; r++) {
        ty_val *grad = &a->grad[ty_val_make(id, r)];
        *grad = ty_parts_joined(g, *grad);
        any = any || *grad != TY_NONE;
    }
    for (uint32_t k = 0; k < node.n_in; k++) {
        ty_val v = ty_graph_in(g, id, (int)k);
        wanted = wanted || (v != TY_NONE && a->needed[v]);
    }
    if (!any || !wanted)
        return;
    char origin[512];
    snprintf(origin, sizeof origin, TY_ORIGIN_GRADIENT "%s", ty_graph_origin_of(g, id));
    ty_graph_origin(g, *ty_graph_origin_of(g, id) ? origin : "gradient");
    if (autodiff_sigmoid(a, id))
        return;
    const ty_op_row *row = ty_op_row_of((ty_op)node.op);
    if (!row->grad) {
        autodiff_fail_no_gradient(a, id);
        return;
    }
    ty_val few[16], *din = node.n_in > 16 ? TY_NEW_ARRAY(ty_graph_arena(g), ty_val, node.n_in) : few;
    for (uint32_t k = 0; k < node.n_in; k++)
        din[k] = TY_NONE;
    row->grad(g, id, &a->grad[ty_val_make(id, 0)], din);
    for (uint32_t k = 0; k < node.n_in; k++) {
        ty_val v = ty_graph_in(g, id, (int)k);
        if (v != TY_NONE && a->needed[v])
            autodiff_add(a, id, v, din[k]);
    }
}

static int autodiff_start(autodiff *a, ty_graph *g, ty_val loss, ty_error *err)
{
    *a = (autodiff){.g = g, .n_nodes = ty_graph_n_nodes(g)};
    char type[160];
    if (loss == TY_NONE)
        return ty_error_set(err, TY_E_GRAPH, "there is no loss to differentiate");
    if (ty_b_rank(g, loss) != 0 || !autodiff_is_float(g, loss))
        return ty_error_set(err, TY_E_SHAPE, "a loss is one float, not %s",
                            ty_type_text(ty_graph_type(g, loss), type, sizeof type));
    a->needed = calloc(4 * (size_t)a->n_nodes, 1);
    a->grad = malloc(4 * (size_t)a->n_nodes * sizeof *a->grad);
    if (!a->needed || !a->grad)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the gradients of %u nodes", a->n_nodes);
    for (uint32_t i = 0; i < 4 * a->n_nodes; i++)
        a->grad[i] = TY_NONE;
    return 0;
}

int ty_pass_autodiff(ty_graph *g, ty_val loss, const ty_val *wrt, int n_wrt, ty_val *grad, ty_error *err)
{
    autodiff a;
    if (ty_graph_failed(g, err))
        return -1;
    int rc = autodiff_start(&a, g, loss, err);
    if (rc == 0) {
        autodiff_mark_needed(&a, wrt, n_wrt);
        a.grad[loss] = ty_b_full_like(g, loss, 1);
        for (uint32_t id = a.n_nodes; id-- > 0 && !ty_graph_failed(g, NULL);)
            autodiff_node(&a, id);
        ty_graph_origin(g, "");
        for (int i = 0; i < n_wrt; i++) {
            bool has = wrt[i] != TY_NONE && a.grad[wrt[i]] != TY_NONE;
            grad[i] = has ? a.grad[wrt[i]] : ty_b_full_like(g, wrt[i], 0);
        }
        rc = ty_graph_failed(g, err) ? -1 : 0;
    }
    free(a.needed);
    free(a.grad);
    return rc;
}
