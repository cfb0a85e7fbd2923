/* keras_layers_heads.c - MultiHeadAttention and GroupedQueryAttention.
 *
 * Letters: B batch, T queries, S keys, N heads, G heads of keys and values, H size of a head, E of a value. With
 * several attention axes their positions count as one axis; axes that are neither batch nor attended go with the batch.
 */
#include "compiler/import/keras/keras_attend.h"

#include <math.h>
#include <string.h>

enum { PART_QUERY, PART_KEY, PART_GATE, PART_VALUE, PART_OUT, N_PARTS }; /* in the order of creation */

typedef struct heads {
    keras_layer *part[N_PARTS];
    bool grouped, uses_bias, uses_gate;
    int64_t n, groups, size, value_size, window;
    double dropout;
    int out_rank;
    int64_t out_dim[TY_MAX_RANK];
    int n_axes; /* attended */
    int axis[TY_MAX_RANK];
} heads;

/* ---- reading -------------------------------------------------------------------------------------------------------
 */

typedef struct heads_in {
    const keras_arg *query, *value, *key; /* key: NULL, the value's */
} heads_in;

static bool heads_inputs(keras_call *c, heads_in *in)
{
    in->query = keras_argument(c, 0, "query");
    in->value = keras_argument(c, 1, "value");
    in->key = keras_argument(c, 2, "key");
    if (in->query && in->value && in->query->kind == KERAS_TENSOR && in->value->kind == KERAS_TENSOR &&
        (!in->key || in->key->kind == KERAS_TENSOR))
        return true;
    keras_fail(c, TY_E_SHAPE, "%s: expected a query and a value, and at most a key beside them", c->layer->class_name);
    return false;
}

static int64_t heads_positive(keras_call *c, const char *key, int64_t absent)
{
    int64_t v = keras_int(c, key, absent);
    if (v < 1 && !c->failed)
        keras_fail_key(c, key, "must be at least 1");
    return v;
}

static bool heads_axes(keras_call *c, heads *h, int rank)
{
    int64_t axes[TY_MAX_RANK];
    int n = h->grouped ? -1 : keras_list(c, "attention_axes", TY_MAX_RANK, axes);
    if (n < 0)
        for (n = 0; n < rank - 2; n++)
            axes[n] = n + 1;
    h->n_axes = n;
    for (int i = 0; i < n && !c->failed; i++) {
        if (keras_axis(c, axes[i], rank, &h->axis[i]) && (h->axis[i] == 0 || h->axis[i] == rank - 1))
            keras_fail_key(c, "attention_axes", "must be axes between the batch and the last one");
        for (int k = 0; k < i && !c->failed; k++)
            if (h->axis[k] == h->axis[i])
                keras_fail_key(c, "attention_axes", "must be different axes");
    }
    return !c->failed;
}

static bool heads_read(keras_call *c, heads *h, const ty_type *query)
{
    h->grouped = c->layer->row->arg == 1;
    h->n = heads_positive(c, h->grouped ? "num_query_heads" : "num_heads", 0);
    h->groups = h->grouped ? heads_positive(c, "num_key_value_heads", 0) : h->n;
    h->size = heads_positive(c, h->grouped ? "head_dim" : "key_dim", 0);
    h->value_size = h->grouped ? h->size : heads_positive(c, "value_dim", h->size);
    h->window = keras_int(c, "sliding_window", 0);
    h->dropout = keras_number(c, "dropout", 0);
    h->uses_bias = keras_flag(c, "use_bias", true);
    h->uses_gate = keras_flag(c, "use_gate", false);
    if (!c->failed && h->n % h->groups)
        keras_fail_key(c, "num_key_value_heads", "must divide num_query_heads");
    h->out_rank = h->grouped ? -1 : keras_list(c, "output_shape", TY_MAX_RANK - query->rank + 1, h->out_dim);
    if (h->out_rank < 1) {
        h->out_rank = 1;
        h->out_dim[0] = query->dim[query->rank - 1];
    }
    return !c->failed && heads_axes(c, h, query->rank);
}

/* A projection of x's last axis to the dims given; the output's, of its last two. */
static void heads_part(keras_call *c, heads *h, int which, int n_in, int rank, const int64_t *dim)
{
    static const char *const name[] = {"query", "key", "gate", "value", "attention_output"};
    static const char *const place[] = {"query_dense", "key_dense", "_gate_dense", "value_dense", "output_dense"};
    static const char *const hidden[] = {"_query_dense", "_key_dense", "_gate_dense", "_value_dense", "_output_dense"};
    keras_layer *part = h->part[which] = keras_part(c, (h->grouped ? hidden : place)[which], name[which], NULL);
    keras_spec kernel = {.label = "kernel",
                         .rank = rank,
                         .initializer = "kernel_initializer",
                         .regularizer = "kernel_regularizer",
                         .constraint = "kernel_constraint",
                         .in_axes = (1u << n_in) - 1};
    keras_spec bias = {.label = "bias",
                       .rank = rank - n_in,
                       .initializer = "bias_initializer",
                       .initializer_absent = "zeros",
                       .regularizer = "bias_regularizer",
                       .constraint = "bias_constraint"};
    kernel.out_axes = ((1u << rank) - 1) & ~kernel.in_axes;
    memcpy(kernel.dim, dim, sizeof *dim * (size_t)rank);
    memcpy(bias.dim, dim + n_in, sizeof *dim * (size_t)(rank - n_in));
    if (!part)
        return;
    keras_add_weight_to(c, part, &kernel);
    if (h->uses_bias)
        keras_add_weight_to(c, part, &bias);
}

void keras_create_heads(keras_call *c)
{
    heads_in in;
    if (!heads_inputs(c, &in))
        return;
    const ty_type q = *ty_graph_type(c->g, in.query->val), v = *ty_graph_type(c->g, in.value->val);
    const ty_type k = in.key ? *ty_graph_type(c->g, in.key->val) : v;
    heads *h = keras_keep(c, 1, sizeof *h);
    if (q.rank < 3 || q.rank > TY_MAX_RANK - 1 || v.rank != q.rank || k.rank != q.rank ||
        (c->layer->row->arg && q.rank != 3)) {
        keras_fail(c, TY_E_SHAPE, "%s: expected query, value and key of 3 dimensions, or of one number of more",
                   c->layer->class_name);
        return;
    }
    if (!heads_read(c, h, &q))
        return;
    int64_t of_q = q.dim[q.rank - 1], of_k = k.dim[k.rank - 1], of_v = v.dim[v.rank - 1];
    heads_part(c, h, PART_QUERY, 1, 3, (int64_t[]){of_q, h->n, h->size});
    heads_part(c, h, PART_KEY, 1, 3, (int64_t[]){of_k, h->groups, h->size});
    if (h->uses_gate)
        heads_part(c, h, PART_GATE, 1, 3, (int64_t[]){of_q, h->n, h->value_size});
    heads_part(c, h, PART_VALUE, 1, 3, (int64_t[]){of_v, h->groups, h->value_size});
    int64_t out[TY_MAX_RANK + 2] = {h->n, h->value_size};
    memcpy(out + 2, h->out_dim, sizeof *out * (size_t)h->out_rank);
    heads_part(c, h, PART_OUT, 2, 2 + h->out_rank, out);
    c->layer->note = h;
}

/* ---- projections
 * ------------------------------------------------------------------------------------------------------
 */

/* x [.., n_in axes] times the part's kernel: [.., the kernel's other axes]. */
static ty_val heads_project(keras_call *c, const heads *h, int which, int n_in, ty_val x)
{
    ty_graph *g = c->g;
    x = keras_float(c, x);
    ty_val w = keras_var_of(c, h->part[which], "kernel"), b = keras_var_of(c, h->part[which], "bias");
    const ty_type in = *ty_graph_type(g, x), kernel = *ty_graph_type(g, w);
    int lead = in.rank - n_in, n_out = kernel.rank - n_in;
    int64_t dim[TY_MAX_RANK], inner = 1, outer = 1, rows = 1;
    for (int i = 0; i < kernel.rank; i++)
        *(i < n_in ? &inner : &outer) *= kernel.dim[i];
    for (int i = 0; i < lead; i++)
        rows *= dim[i] = in.dim[i];
    memcpy(dim + lead, kernel.dim + n_in, sizeof *dim * (size_t)n_out);
    ty_val y = ty_b_dot(g, ty_b_reshape(g, x, 2, (int64_t[]){rows, inner}),
                        ty_b_reshape(g, w, 2, (int64_t[]){inner, outer}), false, false);
    if (b != TY_NONE)
        y = ty_b_add(g, y, ty_b_reshape(g, b, 1, &outer));
    return ty_b_reshape(g, y, lead + n_out, dim);
}

/* ---- several attention axes -----------------------------------------------------------------------------------------
 */

typedef struct heads_layout {
    int64_t perm[TY_MAX_RANK]; /* batch axes, attended axes, head, size */
    int n_batch;
} heads_layout;

/* Of a projected value [.., N, H] of this rank. */
static heads_layout heads_layout_of(const heads *h, int rank)
{
    heads_layout l = {.n_batch = 0};
    int n = 0;
    for (int i = 0; i < rank - 2; i++) {
        bool attended = false;
        for (int k = 0; k < h->n_axes; k++)
            attended |= h->axis[k] == i;
        if (!attended)
            l.perm[n++] = i;
    }
    l.n_batch = n;
    for (int k = 0; k < h->n_axes; k++)
        l.perm[n++] = h->axis[k];
    l.perm[n] = n;
    l.perm[n + 1] = n + 1;
    return l;
}

/* [B, T, N, H] of a projected value; dim: its dims in the layout's order. */
static ty_val heads_flat(ty_graph *g, const heads *h, ty_val x, heads_layout *l, int64_t *dim)
{
    if (x == TY_NONE)
        return x;
    const ty_type t = *ty_graph_type(g, x);
    int64_t flat[] = {1, 1, t.dim[t.rank - 2], t.dim[t.rank - 1]};
    *l = heads_layout_of(h, t.rank);
    for (int i = 0; i < t.rank; i++)
        dim[i] = t.dim[l->perm[i]];
    for (int i = 0; i < t.rank - 2; i++)
        flat[i < l->n_batch ? 0 : 1] *= dim[i];
    return ty_b_reshape(g, ty_b_transpose(g, x, l->perm), 4, flat);
}

/* Back: y [B, T, N, E] as the query lay; dim: of the query. */
static ty_val heads_unflat(ty_graph *g, ty_val y, const heads_layout *l, const int64_t *dim, int rank)
{
    int64_t back[TY_MAX_RANK], wide[TY_MAX_RANK];
    memcpy(wide, dim, sizeof *wide * (size_t)rank);
    wide[rank - 1] = ty_b_dim(g, y, 3);
    for (int i = 0; i < rank; i++)
        back[l->perm[i]] = i;
    return ty_b_transpose(g, ty_b_reshape(g, y, rank, wide), back);
}

/* ---- masks
 * -----------------------------------------------------------------------------------------------------------
 */

static ty_val heads_mask_arg(const keras_call *c, const char *name, const keras_arg *of)
{
    ty_val given = keras_argument_tensor(c, -1, name);
    return given != TY_NONE ? given : of ? of->mask : TY_NONE;
}

static bool heads_flag(const keras_call *c, const char *name)
{
    const keras_arg *a = keras_argument(c, -1, name);
    return a && a->kind == KERAS_BOOL && a->flag;
}

static ty_val heads_bool(ty_graph *g, ty_val mask)
{
    return mask == TY_NONE ? mask : ty_b_cast(g, mask, TY_BOOL);
}

/* What all masks of the call say, bool with 2 to 4 axes; TY_NONE: nothing. */
static ty_val heads_masks(keras_call *c, const heads *h, const heads_in *in)
{
    ty_graph *g = c->g;
    ty_val of_query = h->grouped ? heads_mask_arg(c, "query_mask", in->query) : in->query->mask;
    ty_val of_value = heads_bool(g, heads_mask_arg(c, "value_mask", in->value));
    ty_val of_key = heads_bool(g, heads_mask_arg(c, "key_mask", in->key)), all = heads_bool(g, of_query);
    bool causal = heads_flag(c, "use_causal_mask");
    if (all != TY_NONE)
        all = ty_b_unsqueeze(g, all, 2);
    if (of_value != TY_NONE)
        all = keras_and(g, all, ty_b_unsqueeze(g, of_value, 1));
    if (of_key != TY_NONE)
        all = keras_and(g, all, ty_b_unsqueeze(g, of_key, 1));
    if (causal || h->window > 0)
        all = keras_and(
            g, all, keras_causal(g, ty_b_dim(g, in->query->val, 1), ty_b_dim(g, in->value->val, 1), causal, h->window));
    return keras_and(g, heads_bool(g, keras_argument_tensor(c, -1, "attention_mask")), all);
}

/* MultiHeadAttention takes the masks from its inputs: who reads these later finds none. */
static void heads_drop_masks(keras_call *c, const heads *h, const heads_in *in)
{
    if (h->grouped)
        return;
    keras_drop_mask(c, in->query->val);
    keras_drop_mask(c, in->value->val);
    if (in->key)
        keras_drop_mask(c, in->key->val);
}

/* The mask as [B, N, T, S] or 1s: of several attention axes stretched and put together. */
static ty_val heads_score_mask(keras_call *c, const heads *h, ty_val mask, const int64_t *of_q, const int64_t *of_k,
                               int n_batch)
{
    ty_graph *g = c->g;
    int rank = n_batch + 1 + 2 * h->n_axes;
    if (mask == TY_NONE || rank == 4)
        return keras_mask_to_scores(g, mask);
    if (rank > TY_MAX_RANK || heads_flag(c, "use_causal_mask") || h->window > 0) {
        keras_fail(c, TY_E_UNSUPPORTED, "%s: masks with several attention axes: only attention_mask of at most 8 axes",
                   c->layer->class_name);
        return TY_NONE;
    }
    int64_t dim[TY_MAX_RANK], flat[] = {1, of_q[n_batch + h->n_axes], 1, 1};
    for (int i = 0; i < n_batch; i++)
        flat[0] *= dim[i] = of_q[i];
    dim[n_batch] = flat[1];
    for (int i = 0; i < h->n_axes; i++) {
        flat[2] *= dim[n_batch + 1 + i] = of_q[n_batch + i];
        flat[3] *= dim[n_batch + 1 + h->n_axes + i] = of_k[n_batch + i];
    }
    while (ty_b_rank(g, mask) < rank && ty_b_rank(g, mask) >= 2 * h->n_axes)
        mask = ty_b_unsqueeze(g, mask, ty_b_rank(g, mask) - 2 * h->n_axes);
    return ty_b_reshape(g, ty_b_broadcast(g, mask, rank, dim), 4, flat);
}

/* ---- the call
 * --------------------------------------------------------------------------------------------------------
 */

/* Scores of attention axes as Keras returns them: [batch.., N, queries.., keys..]. */
static ty_val heads_scores(ty_graph *g, const heads *h, ty_val weights, const int64_t *of_q, const int64_t *of_k,
                           int n_batch)
{
    int rank = n_batch + 1 + 2 * h->n_axes, n = 0;
    int64_t dim[2 * TY_MAX_RANK + 1];
    if (rank > TY_MAX_RANK)
        return ty_graph_fail(g, TY_E_LIMIT, "attention scores of %d axes; at most %d are possible", rank, TY_MAX_RANK);
    for (int i = 0; i < n_batch; i++)
        dim[n++] = of_q[i];
    dim[n++] = h->n;
    for (int i = 0; i < h->n_axes; i++)
        dim[n++] = of_q[n_batch + i];
    for (int i = 0; i < h->n_axes; i++)
        dim[n++] = of_k[n_batch + i];
    return ty_b_reshape(g, weights, rank, dim);
}

void keras_call_heads(keras_call *c)
{
    ty_graph *g = c->g;
    const heads *h = c->layer->note;
    heads_in in;
    heads_layout l;
    int64_t of_q[TY_MAX_RANK], of_k[TY_MAX_RANK];
    if (!heads_inputs(c, &in))
        return;
    ty_val mask = heads_masks(c, h, &in), query = in.query->val, value = in.value->val;
    bool wants_scores = heads_flag(c, "return_attention_scores");
    heads_drop_masks(c, h, &in);
    ty_val q = heads_project(c, h, PART_QUERY, 1, query);
    ty_val k = heads_project(c, h, PART_KEY, 1, in.key ? in.key->val : value);
    ty_val v = heads_project(c, h, PART_VALUE, 1, value);
    if (q == TY_NONE || k == TY_NONE || v == TY_NONE)
        return;
    bool is_softmax = h->dropout > 0 || wants_scores || ty_b_rank(g, q) != 4;
    keras_attend a = {.scale = 1 / sqrt((double)h->size), .bias = TY_NONE, .dropout = h->dropout};
    a.v = heads_flat(g, h, v, &l, of_k);
    a.k = heads_flat(g, h, k, &l, of_k);
    a.q = heads_flat(g, h, q, &l, of_q);
    a.mask = heads_score_mask(c, h, mask, of_q, of_k, l.n_batch);
    a.zero_masked = is_softmax;
    a.hidden = is_softmax ? KERAS_HIDDEN_SOFTMAX : KERAS_HIDDEN;
    if (c->failed)
        return;
    keras_attend_emit(c, &a);
    if (a.y == TY_NONE)
        return;
    ty_val y = heads_unflat(g, a.y, &l, of_q, ty_b_rank(g, q));
    if (h->uses_gate)
        y = ty_b_mul(g, y, ty_b_sigmoid(g, heads_project(c, h, PART_GATE, 1, query)));
    keras_set(c, 0, heads_project(c, h, PART_OUT, 2, y));
    keras_set_mask(c, 0, in.query->mask);
    if (wants_scores)
        keras_set(c, 1, heads_scores(g, h, a.weights, of_q, of_k, l.n_batch));
}
