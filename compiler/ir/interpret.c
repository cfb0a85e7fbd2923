/* interpret.c - a graph in double, node by node. Values are freed after their last use; states are kept between runs.
 */
#include "compiler/ir/interpret.h"

#include "compiler/ops/ref.h"

#include <stdlib.h>
#include <string.h>

struct ty_interp {
    const ty_graph *g;
    ty_ref *state;  /* n_states */
    ty_ref *next;   /* n_states: assigned values until the end of a run */
    ty_ref *value;  /* by ty_val: 4 a node; empty where not live or not needed any more */
    ty_ref *output; /* n_outputs; empty where the last run did not make it */
    uint8_t *live;  /* by node */
    uint32_t *uses; /* by ty_val: uses that are still to come */
    const void *const *inputs;
    bool round;
    const ty_interp_watch *watch;
};

static bool interp_is_empty(const ty_ref *r)
{
    return !r->f && !r->i;
}

static int interp_copy(ty_ref *to, const ty_ref *from, ty_error *err)
{
    if (ty_ref_init(to, &from->type, err) < 0)
        return -1;
    size_t n_bytes = 8 * (size_t)ty_type_elems(&from->type);
    memcpy(to->f ? (void *)to->f : (void *)to->i, from->f ? (void *)from->f : (void *)from->i, n_bytes);
    return 0;
}

/* Initial bytes segment by segment; zeros where there are none. */
static int interp_init_state(ty_ref *r, const ty_state *s, ty_error *err)
{
    if (ty_ref_init(r, &s->type, err) < 0)
        return -1;
    for (int i = 0; s->init && i < s->n_segments; i++) {
        if (!s->init[i])
            continue;
        ty_ref part = {.type = s->segments[i].type,
                       .f = r->f ? r->f + s->segments[i].offset : NULL,
                       .i = r->i ? r->i + s->segments[i].offset : NULL};
        ty_ref_load(&part, s->init[i]);
    }
    return 0;
}

static void *interp_array(int n, size_t elem_bytes)
{
    return calloc(n > 0 ? (size_t)n : 1, elem_bytes);
}

/* Without the states' values. */
static int interp_new_empty(const ty_graph *g, ty_interp **out, ty_error *err)
{
    int n_states = ty_graph_n_states(g), n_nodes = (int)ty_graph_n_nodes(g);
    ty_interp *it = calloc(1, sizeof *it);
    *out = it;
    if (!it)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the interpreter");
    it->g = g;
    it->state = interp_array(n_states, sizeof *it->state);
    it->next = interp_array(n_states, sizeof *it->next);
    it->value = interp_array(4 * n_nodes, sizeof *it->value);
    it->output = interp_array(ty_graph_n_outputs(g), sizeof *it->output);
    it->live = interp_array(n_nodes, 1);
    it->uses = interp_array(4 * n_nodes, sizeof *it->uses);
    if (it->state && it->next && it->value && it->output && it->live && it->uses)
        return 0;
    ty_interp_free(it);
    *out = NULL;
    return ty_error_set(err, TY_E_LIMIT, "no memory for the interpreter");
}

static void interp_clear(ty_ref *r, uint32_t n)
{
    for (uint32_t i = 0; r && i < n; i++)
        ty_ref_fini(&r[i]);
}

void ty_interp_free(ty_interp *it)
{
    if (!it)
        return;
    interp_clear(it->state, (uint32_t)ty_graph_n_states(it->g));
    interp_clear(it->next, (uint32_t)ty_graph_n_states(it->g));
    interp_clear(it->value, 4 * ty_graph_n_nodes(it->g));
    interp_clear(it->output, (uint32_t)ty_graph_n_outputs(it->g));
    free(it->state);
    free(it->next);
    free(it->value);
    free(it->output);
    free(it->live);
    free(it->uses);
    free(it);
}

int ty_interp_new(const ty_graph *g, ty_interp **out, ty_error *err)
{
    if (interp_new_empty(g, out, err) < 0)
        return -1;
    for (int i = 0; i < ty_graph_n_states(g); i++)
        if (interp_init_state(&(*out)->state[i], ty_graph_state(g, i), err) < 0) {
            ty_interp_free(*out);
            *out = NULL;
            return -1;
        }
    return 0;
}

/* Leaves and effects, which have no reference function. */
static int interp_leaf(ty_interp *it, uint32_t id, ty_error *err)
{
    const ty_graph *g = it->g;
    ty_ref *r = &it->value[ty_val_make(id, 0)];
    int64_t index = ty_graph_attr(g, id)->index;
    switch (ty_graph_op(g, id)) {
    case TY_OP_STATE:
        return interp_copy(r, &it->state[index], err);
    case TY_OP_ASSIGN:
        if (interp_copy(r, &it->value[ty_graph_in(g, id, 0)], err) < 0)
            return -1;
        ty_ref_fini(&it->next[index]);
        return interp_copy(&it->next[index], r, err);
    default:
        break;
    }
    const void *data = ty_graph_const_data(g, ty_val_make(id, 0));
    if (ty_graph_op(g, id) == TY_OP_INPUT)
        data = it->inputs ? it->inputs[index] : NULL;
    if (!data)
        return ty_error_set(err, TY_E_DATA, "input \"%s\" is needed and not given",
                            ty_graph_input(g, (int)index)->name);
    if (ty_ref_init(r, ty_graph_type(g, ty_val_make(id, 0)), err) < 0)
        return -1;
    ty_ref_load(r, data);
    return 0;
}

/* Takes what is given of a node's results; *any: nothing is left to compute, since a node is given as a whole. */
static int interp_take_given(ty_interp *it, uint32_t id, bool *any, ty_error *err)
{
    uint32_t n_res = ty_graph_node(it->g, id)->n_res;
    *any = false;
    for (uint32_t i = 0; i < n_res; i++) {
        ty_val v = ty_val_make(id, i);
        const void *data = it->watch && it->watch->given ? it->watch->given(it->watch->ctx, v) : NULL;
        if (!data)
            continue;
        *any = true;
        if (ty_ref_init(&it->value[v], ty_graph_type(it->g, v), err) < 0)
            return -1;
        ty_ref_load(&it->value[v], data);
    }
    return 0;
}

static int interp_compute(ty_interp *it, uint32_t id, ty_error *err)
{
    const ty_graph *g = it->g;
    const ty_node *node = ty_graph_node(g, id);
    const ty_op_row *row = ty_op_row_of((ty_op)node->op);
    ty_ref *res = &it->value[ty_val_make(id, 0)];
    bool given;
    if (interp_take_given(it, id, &given, err) < 0)
        return -1;
    if (given)
        return 0;
    if (!row->ref)
        return interp_leaf(it, id, err);
    ty_ref few[16], *in = node->n_in > 16 ? calloc(node->n_in, sizeof *in) : few;
    if (!in)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %u inputs", node->n_in);
    for (uint32_t i = 0; i < node->n_in; i++) {
        ty_val v = ty_graph_in(g, id, (int)i);
        in[i] = v == TY_NONE ? (ty_ref){.f = NULL} : it->value[v];
    }
    int rc = 0;
    for (int i = 0; i < node->n_res && rc == 0; i++)
        rc = ty_ref_init(&res[i], ty_graph_type(g, ty_val_make(id, (uint32_t)i)), err);
    if (rc == 0)
        rc = row->ref(ty_graph_attr(g, id), in, (int)node->n_in, res, err);
    if (in != few)
        free(in);
    return rc;
}

static int interp_node(ty_interp *it, uint32_t id, ty_error *err)
{
    if (interp_compute(it, id, err) < 0) {
        ty_error_wrap(err, "%%%u = %s", id, ty_op_row_of(ty_graph_op(it->g, id))->text);
        const char *origin = ty_graph_origin_of(it->g, id);
        return *origin ? ty_error_at(err, "%s", origin) : -1;
    }
    const ty_node *node = ty_graph_node(it->g, id);
    for (uint32_t i = 0; it->round && i < node->n_res; i++)
        if (!interp_is_empty(&it->value[ty_val_make(id, i)]))
            ty_ref_round(&it->value[ty_val_make(id, i)]);
    if (it->watch)
        it->watch->see(it->watch->ctx, it, id);
    for (uint32_t i = 0; i < node->n_res; i++)
        if (it->uses[ty_val_make(id, i)] == 0)
            ty_ref_fini(&it->value[ty_val_make(id, i)]);
    for (uint32_t i = 0; i < node->n_in; i++) {
        ty_val v = ty_graph_in(it->g, id, (int)i);
        if (v != TY_NONE && --it->uses[v] == 0)
            ty_ref_fini(&it->value[v]);
    }
    return 0;
}

static void interp_count_operands(ty_interp *it)
{
    const ty_graph *g = it->g;
    uint32_t n_nodes = ty_graph_n_nodes(g);
    memset(it->uses, 0, sizeof *it->uses * 4 * n_nodes);
    for (uint32_t id = 0; id < n_nodes; id++)
        for (uint32_t i = 0; it->live[id] && i < ty_graph_node(g, id)->n_in; i++)
            if (ty_graph_in(g, id, (int)i) != TY_NONE)
                it->uses[ty_graph_in(g, id, (int)i)]++;
}

/* Uses by live nodes, and one by each output of the tape. */
static void interp_count_uses(ty_interp *it, ty_tape tape)
{
    const ty_graph *g = it->g;
    ty_graph_mark_live(g, tape, it->live);
    interp_count_operands(it);
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if (ty_graph_output(g, i)->tapes & tape)
            it->uses[ty_graph_output(g, i)->val]++;
}

/* Hands over outputs and carries out the assigns of the tape. */
static int interp_finish(ty_interp *it, ty_tape tape, ty_error *err)
{
    const ty_graph *g = it->g;
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if ((ty_graph_output(g, i)->tapes & tape) &&
            interp_copy(&it->output[i], &it->value[ty_graph_output(g, i)->val], err) < 0)
            return -1;
    for (int i = 0; i < ty_graph_n_effects(g); i++) {
        if (!(ty_graph_effect(g, i)->tapes & tape))
            continue;
        int64_t s = ty_graph_attr(g, ty_graph_effect(g, i)->node)->index;
        ty_ref old = it->state[s];
        it->state[s] = it->next[s];
        it->next[s] = (ty_ref){0};
        ty_ref_fini(&old);
    }
    return 0;
}

static int interp_live_nodes(ty_interp *it, ty_error *err)
{
    int rc = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(it->g) && rc == 0; id++)
        if (it->live[id])
            rc = interp_node(it, id, err);
    return rc;
}

int ty_interp_run(ty_interp *it, ty_tape tape, const void *const *inputs, bool round, ty_error *err)
{
    uint32_t n_nodes = ty_graph_n_nodes(it->g);
    it->inputs = inputs;
    it->round = round;
    interp_clear(it->output, (uint32_t)ty_graph_n_outputs(it->g));
    interp_count_uses(it, tape);
    int rc = interp_live_nodes(it, err);
    if (rc == 0)
        rc = interp_finish(it, tape, err);
    interp_clear(it->value, 4 * n_nodes);
    interp_clear(it->next, (uint32_t)ty_graph_n_states(it->g));
    return rc;
}

const ty_ref *ty_interp_output(const ty_interp *it, int output)
{
    return interp_is_empty(&it->output[output]) ? NULL : &it->output[output];
}

ty_ref *ty_interp_state(ty_interp *it, int state)
{
    return &it->state[state];
}

/* ---- watched ---- */

void ty_interp_set_watch(ty_interp *it, const ty_interp_watch *watch)
{
    it->watch = watch;
}

const ty_ref *ty_interp_value(const ty_interp *it, ty_val v)
{
    return v == TY_NONE || interp_is_empty(&it->value[v]) ? NULL : &it->value[v];
}

/* A state that is not given is no part of what is traced. */
int ty_interp_trace(const ty_graph *g, const uint8_t *live, const ty_interp_watch *watch, ty_error *err)
{
    ty_interp *it;
    if (interp_new_empty(g, &it, err) < 0)
        return -1;
    it->round = true;
    it->watch = watch;
    memcpy(it->live, live, ty_graph_n_nodes(g));
    interp_count_operands(it);
    int rc = interp_live_nodes(it, err);
    ty_interp_free(it);
    return rc;
}
