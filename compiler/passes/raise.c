/* raise.c - see raise.h. */
#include "compiler/passes/raise.h"

#include "compiler/ir/clone.h"

#include <string.h>

#define RAISE_MAX_CONE 64 /* nodes of a pattern */

/* The largest first: an attention holds what others might take for theirs. */
static ty_raise_fn *const raise_patterns[] = {ty_raise_attention, ty_raise_cross_entropy, ty_raise_softmax,
                                              ty_raise_norm,      ty_raise_activation,    ty_raise_rotary,
                                              ty_raise_concat};

/* ---- what patterns share ---- */

ty_val ty_raise_unshaped(const ty_raise *r, ty_val v)
{
    while (ty_raise_is(r, v, TY_OP_RESHAPE))
        v = ty_raise_in(r, v, 0);
    return v;
}

ty_val ty_raise_unscaled(const ty_raise *r, ty_val v, double *factor)
{
    double s;
    for (;;) {
        bool times = ty_raise_is(r, v, TY_OP_MUL);
        if ((!times && !ty_raise_is(r, v, TY_OP_DIV)) || !ty_graph_splat_value(r->g, ty_raise_in(r, v, 1), &s))
            return v;
        *factor = times ? *factor * s : *factor / s;
        v = ty_raise_in(r, v, 0);
    }
}

typedef struct raise_cone {
    uint32_t node[RAISE_MAX_CONE], inside[RAISE_MAX_CONE]; /* uses by nodes of the cone */
    int n;
} raise_cone;

static bool raise_is_stop(ty_val v, const ty_val *stop, int n_stop)
{
    for (int i = 0; i < n_stop; i++)
        if (v == stop[i])
            return true;
    return false;
}

/* Adds a use of v's node; false if the cone is full. */
static bool raise_cone_add(raise_cone *cone, uint32_t node)
{
    for (int i = 0; i < cone->n; i++)
        if (cone->node[i] == node) {
            cone->inside[i]++;
            return true;
        }
    if (cone->n == RAISE_MAX_CONE)
        return false;
    cone->node[cone->n] = node;
    cone->inside[cone->n++] = 1;
    return true;
}

/* Free to have twice: nothing is computed, down to where the pattern ends. */
static bool raise_is_free(const ty_raise *r, ty_val v, const ty_val *stop, int n_stop)
{
    while (!raise_is_stop(v, stop, n_stop) && (ty_raise_is(r, v, TY_OP_RESHAPE) || ty_raise_is(r, v, TY_OP_BROADCAST)))
        v = ty_raise_in(r, v, 0);
    return raise_is_stop(v, stop, n_stop) || ty_raise_is(r, v, TY_OP_CONST) || ty_raise_is(r, v, TY_OP_IOTA);
}

bool ty_raise_closed(const ty_raise *r, uint32_t root, const ty_val *stop, int n_stop)
{
    raise_cone cone = {.node = {root}, .n = 1};
    for (int at = 0; at < cone.n; at++)
        for (uint32_t k = 0; k < ty_graph_node(r->g, cone.node[at])->n_in; k++) {
            ty_val v = ty_graph_in(r->g, cone.node[at], (int)k);
            double s;
            if (v == TY_NONE || raise_is_stop(v, stop, n_stop) || ty_graph_splat_value(r->g, v, &s))
                continue;
            if (!raise_cone_add(&cone, ty_val_node(v)))
                return false;
        }
    for (int i = 1; i < cone.n; i++)
        if (cone.inside[i] != r->uses[cone.node[i]] && !raise_is_free(r, ty_val_make(cone.node[i], 0), stop, n_stop))
            return false;
    return true;
}

/* ---- the pass ---- */

typedef struct raise_pass {
    ty_raise view;
    ty_arena arena;
    ty_clone clone;
    uint8_t *needed;        /* by node */
    uint32_t *uses;         /* by node */
    ty_raise_match **match; /* by node; NULL: as it is */
    uint32_t n;
} raise_pass;

static void raise_need(raise_pass *p, ty_val v)
{
    if (v == TY_NONE)
        return;
    p->needed[ty_val_node(v)] = 1;
    p->uses[ty_val_node(v)]++;
}

static void raise_need_inputs(raise_pass *p, uint32_t id)
{
    for (uint32_t k = 0; k < ty_graph_node(p->view.g, id)->n_in; k++)
        raise_need(p, ty_graph_in(p->view.g, id, (int)k));
}

static void raise_need_roots(raise_pass *p, const ty_val *roots, int n_roots)
{
    for (int i = 0; i < n_roots; i++)
        raise_need(p, roots[i]);
}

/* Uses in the graph as it is. */
static void raise_count_uses(raise_pass *p, const ty_val *roots, int n_roots)
{
    raise_need_roots(p, roots, n_roots);
    for (uint32_t id = p->n; id-- > 0;)
        if (p->needed[id])
            raise_need_inputs(p, id);
}

static bool raise_try(raise_pass *p, uint32_t id)
{
    ty_raise_match m;
    for (size_t i = 0; i < sizeof raise_patterns / sizeof *raise_patterns; i++) {
        memset(&m, 0, sizeof m);
        if (!raise_patterns[i](&p->view, id, &m))
            continue;
        p->match[id] = ty_arena_copy(&p->arena, &m, sizeof m);
        return true;
    }
    return false;
}

/* Needs anew, now with matches: uses stay as they were. */
static void raise_match_all(raise_pass *p, const ty_val *roots, int n_roots)
{
    memset(p->needed, 0, p->n);
    for (int i = 0; i < n_roots; i++)
        if (roots[i] != TY_NONE)
            p->needed[ty_val_node(roots[i])] = 1;
    for (uint32_t id = p->n; id-- > 0;) {
        if (!p->needed[id])
            continue;
        bool raised = raise_try(p, id);
        int n_in = raised ? p->match[id]->n_in : (int)ty_graph_node(p->view.g, id)->n_in;
        for (int k = 0; k < n_in; k++) {
            ty_val v = raised ? p->match[id]->in[k] : ty_graph_in(p->view.g, id, k);
            if (v != TY_NONE)
                p->needed[ty_val_node(v)] = 1;
        }
    }
}

static void raise_build(raise_pass *p, uint32_t id)
{
    const ty_raise_match *m = p->match[id];
    const ty_type *type = ty_graph_type(p->view.g, ty_val_make(id, 0));
    ty_graph *to = p->clone.to;
    ty_val in[TY_RAISE_MAX_IN];
    for (int k = 0; k < m->n_in; k++)
        in[k] = m->in[k] == TY_NONE ? TY_NONE : p->clone.map[m->in[k]];
    ty_graph_origin(to, ty_graph_origin_of(p->view.g, id));
    ty_val v = m->build ? m->build(to, m, type, in) : ty_graph_emit(to, m->op, &m->attr, in, m->n_in);
    if (v != TY_NONE && !ty_type_same(ty_graph_type(to, v), type))
        v = ty_graph_fail(to, TY_E_INTERNAL, "raised to another type: %s", ty_graph_origin_of(p->view.g, id));
    p->clone.map[ty_val_make(id, 0)] = v;
}

/* Inputs stand for values that are there already. */
static int raise_carry_over(raise_pass *p, ty_graph *to, const ty_val *bound, ty_error *err)
{
    const ty_graph *in = p->view.g;
    p->clone = (ty_clone){.from = in, .to = to, .map = TY_NEW_ARRAY(&p->arena, ty_val, 4 * (size_t)p->n + 1)};
    for (size_t i = 0; i < 4 * (size_t)p->n; i++)
        p->clone.map[i] = TY_NONE;
    for (uint32_t id = 0; id < p->n && !ty_graph_failed(to, NULL); id++) {
        if (p->match[id])
            raise_build(p, id);
        else if (p->needed[id] && ty_graph_op(in, id) == TY_OP_INPUT)
            p->clone.map[ty_val_make(id, 0)] = bound[ty_graph_attr(in, id)->index];
        else if (p->needed[id])
            ty_clone_node(&p->clone, id);
    }
    ty_graph_origin(to, "");
    return ty_graph_failed(to, err) ? -1 : 0;
}

static void raise_begin(raise_pass *p, const ty_graph *in)
{
    uint32_t n = ty_graph_n_nodes(in);
    *p = (raise_pass){.n = n};
    ty_arena_init(&p->arena);
    p->needed = TY_NEW_ARRAY(&p->arena, uint8_t, n + 1);
    p->uses = TY_NEW_ARRAY(&p->arena, uint32_t, n + 1);
    p->match = TY_NEW_ARRAY(&p->arena, ty_raise_match *, n + 1);
    p->view = (ty_raise){in, p->uses};
}

int ty_pass_raise(const ty_graph *in, ty_graph *to, const ty_val *bound, ty_val *held, int n_held, ty_error *err)
{
    raise_pass p;
    if (ty_graph_failed(in, err) || ty_graph_failed(to, err))
        return -1;
    raise_begin(&p, in);
    raise_count_uses(&p, held, n_held);
    raise_match_all(&p, held, n_held);
    int rc = raise_carry_over(&p, to, bound, err);
    for (int i = 0; i < n_held && rc == 0; i++)
        held[i] = held[i] == TY_NONE ? TY_NONE : p.clone.map[held[i]];
    ty_arena_fini(&p.arena);
    return rc;
}
