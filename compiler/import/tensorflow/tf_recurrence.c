/* tf_recurrence.c - loops that are a recurrent layer, as the composite `rnn`.
 *
 * Keras writes LSTM, GRU and SimpleRNN as a While over lists of steps, in version 2 inside of functions that are marked
 * with `api_implements`, in version 3 without a mark; the mark tells neither the direction nor whether there is a mask.
 * So the loop itself is looked at. Its body is imported once with unknown states in place of h and c, then the cell of
 * ops/recurrence.h is written down for the same gates: equal nodes exist once, so that the body is this cell if and
 * only if its results are these values. What is not recognised is unrolled.
 */
#include "compiler/import/tensorflow/tf_recurrence.h"

#include "compiler/ops/recurrence.h"

#include <string.h>

enum { MAX_TERMS = 8, MAX_CARRIED = 2 };

typedef enum role { ROLE_NONE, ROLE_KEPT, ROLE_COUNTER, ROLE_LIST, ROLE_CARRIED } role;

typedef struct loop {
    tf_ctx *c;
    const tf_graph *body;
    const tf_item *state;
    role *role; /* by state */
    tf_item *probe, *next;
    int carried[MAX_CARRIED], n_carried;
    int source;          /* the list that steps are read from */
    bool moves;          /* the other list gets an element each step; else element 0 alone */
    ty_val x, h, cell;   /* of the step that was imported */
    uint32_t first, end; /* nodes that the body made */
    uint8_t *varies;     /* by node: depends on the step */
} loop;

/* What a step is: gates' products. bias TY_NONE: none. */
typedef struct affine {
    ty_val w, r, bias;
} affine;

typedef struct cell {
    int gates;
    uint32_t flags;
    int64_t block[TY_RNN_MAX_GATES];
    ty_val w, r, bias;
    int hidden; /* which of the carried states is h */
} cell;

/* ---- roles of what the loop carries --------------------------------------------------------------------------------
 */

/* Through what only hands on. */
static tf_edge resolve(const tf_graph *b, tf_edge e)
{
    while (e.node >= 0 && strcmp(b->node[e.node].op, "Identity") == 0 && b->node[e.node].n_in == 1)
        e = b->node[e.node].in[0];
    return e;
}

/* The argument that an edge hands on, or -1. */
static int arg_of(const tf_graph *b, tf_edge e)
{
    e = resolve(b, e);
    return e.node < 0 ? -1 : b->node[e.node].arg;
}

static bool is_op(const tf_node *n, const char *op)
{
    return strcmp(n->op, op) == 0;
}

static bool is_add(const tf_node *n)
{
    return n->n_in == 2 && (is_op(n, "AddV2") || is_op(n, "Add"));
}

static bool int_of(const loop *l, const tf_item *item, int64_t *v)
{
    const int64_t *all;
    int64_t n;
    if (item->kind != TF_TENSOR || tf_is_float(l->c, item->val) || !tf_val_ints(l->c, item->val, &all, &n) || n != 1)
        return false;
    *v = all[0];
    return true;
}

static role role_of(const loop *l, int k)
{
    const tf_graph *b = l->body;
    const tf_item *item = &l->state[k];
    tf_edge e = resolve(b, b->result_edge[k]);
    int64_t start;
    if (e.node < 0)
        return ROLE_NONE;
    const tf_node *n = &b->node[e.node];
    if (n->arg == k)
        return ROLE_KEPT;
    if (int_of(l, item, &start) && is_add(n) && (arg_of(b, n->in[0]) == k || arg_of(b, n->in[1]) == k))
        return ROLE_COUNTER;
    if (item->kind == TF_LIST && is_op(n, "TensorListSetItem"))
        return ROLE_LIST;
    bool is_state = item->kind == TF_TENSOR && tf_is_float(l->c, item->val) && tf_rank(l->c, item->val) == 2;
    return is_state ? ROLE_CARRIED : ROLE_NONE;
}

static bool roles_found(loop *l)
{
    for (int k = 0; k < l->body->n_args; k++) {
        l->role[k] = role_of(l, k);
        if (l->role[k] == ROLE_NONE || (l->role[k] == ROLE_CARRIED && l->n_carried == MAX_CARRIED))
            return false;
        if (l->role[k] == ROLE_CARRIED)
            l->carried[l->n_carried++] = k;
    }
    return l->n_carried > 0;
}

static bool is_counter(const loop *l, tf_edge e)
{
    int arg = arg_of(l->body, e);
    return arg >= 0 && l->role[arg] == ROLE_COUNTER;
}

/* The sum that makes a counter's next value. */
static bool is_counted(const loop *l, tf_edge e)
{
    e = resolve(l->body, e);
    const tf_node *n = e.node < 0 ? NULL : &l->body->node[e.node];
    return n && is_add(n) && (is_counter(l, n->in[0]) || is_counter(l, n->in[1]));
}

/* Counters are for the place in a list and for counting, so that one step tells all. */
static bool counters_only_count(const loop *l)
{
    for (int i = 0; i < l->body->n_nodes; i++) {
        const tf_node *n = &l->body->node[i];
        bool is_item = is_op(n, "TensorListGetItem") || is_op(n, "TensorListSetItem");
        for (int k = 0; k < n->n_in; k++) {
            bool is_place = is_item && k == 1, hands_on = is_op(n, "Identity");
            if (is_counter(l, n->in[k]) && !is_place && !hands_on && !is_add(n))
                return false;
            if (is_counted(l, n->in[k]) && !hands_on)
                return false;
        }
    }
    for (int k = 0; k < l->body->n_results; k++)
        if (l->role[k] != ROLE_COUNTER &&
            (is_counter(l, l->body->result_edge[k]) || is_counted(l, l->body->result_edge[k])))
            return false;
    return true;
}

/* One list is read at the counter, one is written; both counters begin with 0. */
static bool lists_found(loop *l)
{
    int n_read = 0, n_written = 0;
    for (int i = 0; i < l->body->n_nodes; i++) {
        const tf_node *n = &l->body->node[i];
        bool reads = is_op(n, "TensorListGetItem"), writes = is_op(n, "TensorListSetItem");
        if (!reads && !writes)
            continue;
        if (n->n_in < 2)
            return false;
        int list = arg_of(l->body, n->in[0]), at = arg_of(l->body, n->in[1]);
        int64_t start = 0;
        if (list < 0 || l->state[list].kind != TF_LIST || l->role[list] != (reads ? ROLE_KEPT : ROLE_LIST))
            return false;
        if (at >= 0 && (!int_of(l, &l->state[at], &start) || start != 0))
            return false;
        bool moves = at >= 0 && l->role[at] == ROLE_COUNTER;
        if (reads && !moves)
            return false;
        if (reads)
            l->source = list;
        else
            l->moves = moves;
        n_read += reads;
        n_written += writes;
    }
    return n_read == 1 && n_written == 1 && l->state[l->source].list->n > 1;
}

/* ---- one step ------------------------------------------------------------------------------------------------------
 */

/* A value of this type of which nothing is known. It is part of no result. */
static ty_val unknown_like(tf_ctx *c, ty_val like, int64_t stream)
{
    const ty_type *t = tf_type(c, like);
    ty_val zero = ty_b_scalar(c->g, TY_I64, 0);
    return ty_b_cast(c->g, ty_b_rng(c->g, zero, zero, stream & UINT32_MAX, t->rank, t->dim), (ty_dtype)t->dtype);
}

/* Marks what depends on the states and the input of the step. False if something is random. */
static bool mark(loop *l)
{
    const ty_graph *g = l->c->g;
    uint32_t n = ty_graph_n_nodes(g), seeds[] = {ty_val_node(l->x), ty_val_node(l->h), ty_val_node(l->cell)};
    l->end = n;
    l->varies = tf_alloc(l->c, n, 1);
    for (int i = 0; i < 3; i++)
        l->varies[seeds[i]] = 1;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < ty_graph_node(g, i)->n_in; k++) {
            ty_val in = ty_graph_in(g, i, (int)k);
            l->varies[i] |= in != TY_NONE && l->varies[ty_val_node(in)];
        }
        if (i >= l->first && ty_graph_op(g, i) == TY_OP_RNG)
            return false;
    }
    return true;
}

/* Has the body assigned to a variable? (A first read gives it its present value.) */
static bool assigns(const tf_importer *imp, const ty_val *now, const bool *assigned)
{
    for (int i = 0; i < tf_n_variables(imp->file); i++)
        if ((now[i] != TY_NONE && now[i] != imp->now[i]) || assigned[i] != imp->assigned[i])
            return true;
    return false;
}

static bool run_step(loop *l, const char *function)
{
    tf_ctx *c = l->c;
    tf_importer *imp = c->imp;
    int n = l->body->n_args;
    size_t n_variables = (size_t)tf_n_variables(imp->file);
    ty_val *now = tf_alloc(c, n_variables, sizeof *now);
    bool *assigned = tf_alloc(c, n_variables, sizeof *assigned);
    l->probe = tf_alloc(c, (size_t)n, sizeof *l->probe);
    l->next = tf_alloc(c, (size_t)n, sizeof *l->next);
    memcpy(l->probe, l->state, (size_t)n * sizeof *l->probe);
    for (int i = 0; i < l->n_carried; i++)
        l->probe[l->carried[i]] =
            tf_tensor_item(unknown_like(c, l->state[l->carried[i]].val, imp->serial * MAX_CARRIED + i));
    memcpy(now, imp->now, n_variables * sizeof *now);
    memcpy(assigned, imp->assigned, n_variables * sizeof *assigned);
    l->first = ty_graph_n_nodes(c->g);
    if (!tf_call(c, function, l->probe, n, l->next, n) || assigns(imp, now, assigned))
        return false;
    l->x = l->state[l->source].list->val[0];
    l->h = l->probe[l->carried[0]].val;
    l->cell = l->probe[l->carried[l->n_carried - 1]].val;
    return l->x != TY_NONE && l->h != TY_NONE && l->cell != TY_NONE && tf_rank(c, l->x) == 2 && mark(l);
}

/* ---- which cell it is ----------------------------------------------------------------------------------------------
 */

/* [.., axis 1] is wide: an input of a slice that the body made; up to max different ones. */
static int sliced(const loop *l, int64_t wide, ty_val *out, int max)
{
    const ty_graph *g = l->c->g;
    int n = 0;
    for (uint32_t i = l->first; i < l->end; i++) {
        ty_val z = ty_graph_op(g, i) == TY_OP_SLICE ? ty_graph_in(g, i, 0) : TY_NONE;
        bool fits = z != TY_NONE && l->varies[i] && ty_b_rank(g, z) == 2 && ty_b_dim(g, z, 1) == wide &&
                    ty_b_dim(g, z, 0) == ty_b_dim(g, l->h, 0) && ty_b_dtype(g, z) == ty_b_dtype(g, l->h);
        for (int k = 0; k < n; k++)
            fits = fits && out[k] != z;
        if (fits && n == max)
            return max + 1;
        if (fits)
            out[n++] = z;
    }
    return n;
}

/* As `rnn` takes a weight: [gates, in]. */
static ty_val weight_of(ty_graph *g, uint32_t dot)
{
    ty_val w = ty_graph_in(g, dot, 1);
    return ty_graph_attr(g, dot)->flags & TY_DOT_TRANS_B ? w : ty_b_transpose(g, w, (int64_t[]){1, 0});
}

static bool take_bias(const loop *l, ty_val v, int64_t wide, affine *a)
{
    ty_graph *g = l->c->g;
    while (ty_graph_op(g, ty_val_node(v)) == TY_OP_BROADCAST || ty_graph_op(g, ty_val_node(v)) == TY_OP_RESHAPE)
        v = ty_graph_in(g, ty_val_node(v), 0);
    if (l->varies[ty_val_node(v)] || ty_type_elems(ty_graph_type(g, v)) != wide)
        return false;
    v = ty_b_reshape(g, v, 1, &wide);
    a->bias = a->bias == TY_NONE ? v : ty_b_add(g, a->bias, v);
    return true;
}

/* Terms of z = W x + R h + b; those that are absent stay TY_NONE. */
static bool take_terms(const loop *l, ty_val h, ty_val z, affine *a, int depth)
{
    ty_graph *g = l->c->g;
    uint32_t n = ty_val_node(z);
    ty_op op = (ty_op)ty_graph_op(g, n);
    if (depth > MAX_TERMS || n >= l->end)
        return false;
    if (op == TY_OP_ADD && l->varies[n])
        return take_terms(l, h, ty_graph_in(g, n, 0), a, depth + 1) &&
               take_terms(l, h, ty_graph_in(g, n, 1), a, depth + 1);
    if (op != TY_OP_DOT || !l->varies[n])
        return take_bias(l, z, ty_b_dim(g, z, ty_b_rank(g, z) - 1), a);
    ty_val from = ty_graph_in(g, n, 0);
    ty_val *w = from == l->x ? &a->w : from == h ? &a->r : NULL;
    bool plain = ty_graph_node(g, n)->n_in == 2 && !(ty_graph_attr(g, n)->flags & (TY_DOT_TRANS_A | TY_DOT_WIDE));
    if (!w || *w != TY_NONE || !plain || l->varies[ty_val_node(ty_graph_in(g, n, 1))])
        return false;
    *w = weight_of(g, n);
    return true;
}

static bool affine_of(const loop *l, ty_val h, ty_val z, affine *a)
{
    *a = (affine){TY_NONE, TY_NONE, TY_NONE};
    return take_terms(l, h, z, a, 0);
}

static ty_val gate(ty_graph *g, ty_val z, int64_t block, int64_t hidden)
{
    return ty_b_slice_axis(g, z, 1, block * hidden, (block + 1) * hidden);
}

static ty_val tanh_of(ty_graph *g, ty_val x)
{
    return ty_b_unary(g, TY_OP_TANH, x);
}

static ty_val bias_or_zeros(const loop *l, ty_val bias, int64_t wide)
{
    return bias != TY_NONE ? bias : ty_b_full(l->c->g, tf_dtype_of(l->c, l->x), 1, &wide, 0);
}

static bool is_lstm(const loop *l, cell *cell)
{
    static const int64_t orders[][TY_RNN_MAX_GATES] = {
        {[TY_RNN_I] = 0, [TY_RNN_F] = 1, [TY_RNN_G] = 2, [TY_RNN_O] = 3},  /* Keras */
        {[TY_RNN_I] = 0, [TY_RNN_G] = 1, [TY_RNN_F] = 2, [TY_RNN_O] = 3}}; /* cells of TensorFlow 1 */
    ty_graph *g = l->c->g;
    int64_t n = tf_dim(l->c, l->h, 1);
    ty_val z;
    affine a;
    if (l->n_carried != 2 || sliced(l, 4 * n, &z, 1) != 1)
        return false;
    for (int i = 0; i < 4; i++) {
        const int64_t *at = orders[i / 2];
        int hidden = i % 2;
        ty_val h = l->probe[l->carried[hidden]].val, c = l->probe[l->carried[1 - hidden]].val;
        ty_val fc = ty_b_mul(g, ty_b_sigmoid(g, gate(g, z, at[TY_RNN_F], n)), c);
        ty_val ig = ty_b_mul(g, ty_b_sigmoid(g, gate(g, z, at[TY_RNN_I], n)), tanh_of(g, gate(g, z, at[TY_RNN_G], n)));
        ty_val next_c = ty_b_add(g, fc, ig);
        ty_val next_h = ty_b_mul(g, ty_b_sigmoid(g, gate(g, z, at[TY_RNN_O], n)), tanh_of(g, next_c));
        if (l->next[l->carried[hidden]].val != next_h || l->next[l->carried[1 - hidden]].val != next_c ||
            !affine_of(l, h, z, &a))
            continue;
        *cell = (struct cell){TY_RNN_LSTM, 0, {0}, a.w, a.r, bias_or_zeros(l, a.bias, 4 * n), hidden};
        memcpy(cell->block, at, sizeof cell->block);
        return true;
    }
    return false;
}

/* One vector: both biases of z and r, that of n's input, that of n's state. */
static ty_val gru_bias(const loop *l, const affine *x, const affine *h, int64_t n)
{
    ty_graph *g = l->c->g;
    ty_val of_x = bias_or_zeros(l, x->bias, 3 * n), of_h = bias_or_zeros(l, h->bias, 3 * n);
    ty_val zr = ty_b_add(g, ty_b_slice_axis(g, of_x, 0, 0, 2 * n), ty_b_slice_axis(g, of_h, 0, 0, 2 * n));
    ty_val part[] = {zr, ty_b_slice_axis(g, of_x, 0, 2 * n, 3 * n), ty_b_slice_axis(g, of_h, 0, 2 * n, 3 * n)};
    return ty_b_concat(g, part, 3, 0);
}

/* With the reset gate on the product, as Keras has it by default. */
static bool is_gru(const loop *l, cell *cell)
{
    ty_graph *g = l->c->g;
    int64_t n = tf_dim(l->c, l->h, 1);
    ty_val m[2];
    affine a[2];
    if (l->n_carried != 1 || sliced(l, 3 * n, m, 2) != 2 || !affine_of(l, l->h, m[0], &a[0]) ||
        !affine_of(l, l->h, m[1], &a[1]))
        return false;
    int x = a[0].w != TY_NONE ? 0 : 1;
    if (a[x].w == TY_NONE || a[x].r != TY_NONE || a[1 - x].r == TY_NONE || a[1 - x].w != TY_NONE)
        return false;
    ty_val gates[2], mx = m[x], mh = m[1 - x];
    for (int k = 0; k < 2; k++)
        gates[k] = ty_b_sigmoid(g, ty_b_add(g, gate(g, mx, k, n), gate(g, mh, k, n)));
    ty_val z = gates[TY_RNN_Z], product = ty_b_mul(g, gates[TY_RNN_R], gate(g, mh, TY_RNN_N, n));
    ty_val new = tanh_of(g, ty_b_add(g, gate(g, mx, TY_RNN_N, n), product));
    ty_val rest = ty_b_sub(g, ty_b_full_like(g, z, 1), z);
    if (l->next[l->carried[0]].val != ty_b_add(g, ty_b_mul(g, z, l->h), ty_b_mul(g, rest, new)))
        return false;
    *cell = (struct cell){TY_RNN_GRU, TY_RNN_RESET_AFTER, {TY_RNN_Z, TY_RNN_R, TY_RNN_N},
                          a[x].w,     a[1 - x].r,         gru_bias(l, &a[x], &a[1 - x], n),
                          0};
    return true;
}

static bool is_vanilla(const loop *l, cell *cell)
{
    const ty_graph *g = l->c->g;
    ty_val next = l->next[l->carried[0]].val;
    affine a;
    if (l->n_carried != 1 || ty_graph_op(g, ty_val_node(next)) != TY_OP_TANH ||
        !affine_of(l, l->h, ty_graph_in(g, ty_val_node(next), 0), &a))
        return false;
    *cell = (struct cell){TY_RNN_VANILLA, 0, {0}, a.w, a.r, bias_or_zeros(l, a.bias, tf_dim(l->c, l->h, 1)), 0};
    return true;
}

/* States of one shape that stays, a row for each row of the input, of a type that `rnn` computes in. */
static bool states_fit(const loop *l)
{
    const ty_type *h = tf_type(l->c, l->h);
    for (int i = 0; i < l->n_carried; i++) {
        const tf_item *next = &l->next[l->carried[i]];
        if (next->kind != TF_TENSOR || !ty_type_same(tf_type(l->c, next->val), h) ||
            !ty_type_same(tf_type(l->c, l->state[l->carried[i]].val), h))
            return false;
    }
    return (h->dtype == TY_F32 || h->dtype == TY_F64) && h->dtype == tf_type(l->c, l->x)->dtype && h->dim[1] > 0 &&
           h->dim[0] == tf_dim(l->c, l->x, 0);
}

static bool cell_found(const loop *l, cell *cell)
{
    if (!states_fit(l) || (!is_lstm(l, cell) && !is_gru(l, cell) && !is_vanilla(l, cell)))
        return false;
    ty_val h = l->next[l->carried[cell->hidden]].val;
    int room = l->moves ? l->state[l->source].list->n : 1;
    for (int k = 0; k < l->body->n_args; k++)
        if (l->role[k] == ROLE_LIST &&
            (l->next[k].kind != TF_LIST || l->next[k].list->val[0] != h || l->state[k].list->n < room))
            return false;
    return cell->w != TY_NONE && cell->r != TY_NONE;
}

/* ---- all steps -----------------------------------------------------------------------------------------------------
 */

/* How often the condition lets the loop run, as many steps as there are inputs. */
static bool runs_through(const loop *l, const char *cond)
{
    int n = l->body->n_args, trips = l->state[l->source].list->n;
    tf_item *at = tf_alloc(l->c, (size_t)n, sizeof *at);
    memcpy(at, l->probe, (size_t)n * sizeof *at);
    for (int t = 0; t <= trips; t++) {
        for (int k = 0; k < n; k++) {
            int64_t start, next;
            if (l->role[k] != ROLE_COUNTER || !int_of(l, &l->state[k], &start))
                continue;
            if (!int_of(l, &l->next[k], &next) || next != start + 1)
                return false;
            at[k] = tf_tensor_item(ty_b_scalar(l->c->g, tf_dtype_of(l->c, l->state[k].val), (double)(start + t)));
        }
        if (tf_loop_goes_on(l->c, cond, at, n) != (t < trips))
            return false;
    }
    return true;
}

static ty_val step_of(ty_graph *g, ty_val series, int64_t t)
{
    return ty_b_squeeze(g, ty_b_slice_axis(g, series, 0, t, t + 1), 0);
}

static const tf_list *written_list(const loop *l, const tf_list *was, ty_val y, int64_t trips)
{
    tf_list *list = tf_alloc(l->c, 1, sizeof *list);
    ty_val *val = tf_alloc(l->c, (size_t)was->n, sizeof *val);
    *list = *was;
    list->val = val;
    list->whole = l->moves && was->n == trips ? y : TY_NONE;
    for (int i = 0; i < was->n; i++)
        val[i] = l->moves && i < trips ? step_of(l->c->g, y, i) : was->val[i];
    if (!l->moves)
        val[0] = step_of(l->c->g, y, trips - 1);
    return list;
}

static void set_results(const loop *l, const cell *cell, ty_val y, int64_t trips)
{
    tf_ctx *c = l->c;
    for (int k = 0; k < l->body->n_args; k++) {
        int64_t start;
        if (l->role[k] == ROLE_COUNTER && int_of(l, &l->state[k], &start))
            tf_set(c, k, ty_b_scalar(c->g, tf_dtype_of(c, l->state[k].val), (double)(start + trips)));
        else if (l->role[k] == ROLE_LIST)
            tf_set_list(c, k, written_list(l, l->state[k].list, y, trips));
        else if (l->role[k] == ROLE_CARRIED)
            tf_set(c, k, k == l->carried[cell->hidden] ? step_of(c->g, y, trips - 1) : ty_val_make(ty_val_node(y), 1));
        else
            tf_set_item(c, k, &l->state[k]);
    }
}

static void emit(const loop *l, const cell *cell)
{
    ty_graph *g = l->c->g;
    const tf_list *source = l->state[l->source].list;
    ty_attr attr = {.n = (uint32_t)cell->gates, .flags = cell->flags};
    memcpy(attr.lo, cell->block, sizeof cell->block);
    ty_val in[] = {tf_list_whole(l->c, source),
                   cell->w,
                   cell->r,
                   cell->bias,
                   l->state[l->carried[cell->hidden]].val,
                   cell->gates == TY_RNN_LSTM ? l->state[l->carried[1 - cell->hidden]].val : TY_NONE};
    ty_val y = ty_graph_emit(g, TY_OP_RNN, &attr, in, cell->gates == TY_RNN_LSTM ? 6 : 5);
    if (y != TY_NONE)
        set_results(l, cell, y, source->n);
}

bool tf_loop_is_layer(tf_ctx *c, const char *cond, const char *body, const tf_item *state)
{
    loop l = {.c = c, .body = tf_body(c, body), .state = state};
    cell cell = {0};
    if (!l.body || l.body->n_args != c->n_in || l.body->n_results != c->n_in || c->imp->own_step)
        return c->failed;
    l.role = tf_alloc(c, (size_t)c->n_in, sizeof *l.role);
    if (!roles_found(&l) || !counters_only_count(&l) || !lists_found(&l) || !run_step(&l, body) ||
        !cell_found(&l, &cell) || !runs_through(&l, cond))
        return c->failed;
    tf_origin(c);
    emit(&l, &cell);
    return true;
}
