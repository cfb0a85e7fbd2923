/* keras_recur_whole.c - a sequence through one cell as the composite `rnn`: the kernels that an ONNX LSTM gets.
 *
 * With a mask, the steps that count are moved together, in front of the others (of each row; for a backward run, behind
 * them), and the layer runs over all: the steps that do not count come last and harm nobody. Then each step takes the
 * output of the latest step that counted: a masked step repeats it, and there are zeros before the first.
 */
#include "compiler/import/keras/keras_cells.h"

#include <string.h>

static bool is_named(const char *name, const char *text)
{
    return name && strcmp(name, text) == 0;
}

/* The cell of an LSTM after the last step that counts is nowhere in the results, so with a mask it must not be asked
 * for. */
static bool fits(const keras_run *r)
{
    const keras_cell *cell = r->cell;
    ty_dtype dtype = ty_b_dtype(r->c->g, r->x);
    bool relu = cell->kind == KERAS_CELL_SIMPLE && is_named(cell->name, "relu");
    bool usual =
        is_named(cell->name, "tanh") && (cell->kind == KERAS_CELL_SIMPLE || is_named(cell->gate_name, "sigmoid"));
    bool cell_is_lost = r->mask != TY_NONE && cell->kind == KERAS_CELL_LSTM && r->wants_states;
    return (usual || relu) && (dtype == TY_F32 || dtype == TY_F64) && r->steps > 0 && !cell_is_lost &&
           !(r->c->training && cell->recurrent_dropout > 0);
}

static ty_val swapped(ty_graph *g, ty_val w)
{
    return ty_b_transpose(g, w, (int64_t[]){1, 0});
}

/* As `rnn` takes it: one vector, the state's part for gate n alone behind it. */
static ty_val whole_bias(const keras_run *r)
{
    ty_graph *g = r->c->g;
    const keras_cell *cell = r->cell;
    int64_t h = cell->units, wide = cell->gates * h, dim = wide + (cell->reset_after ? h : 0);
    ty_val bias = keras_var_of(r->c, cell->layer, "bias");
    if (bias == TY_NONE)
        return ty_b_full(g, ty_b_dtype(g, r->x), 1, &dim, 0);
    if (!cell->reset_after)
        return bias;
    ty_val of_x = ty_b_squeeze(g, ty_b_slice_axis(g, bias, 0, 0, 1), 0);
    ty_val of_h = ty_b_squeeze(g, ty_b_slice_axis(g, bias, 0, 1, 2), 0);
    ty_val zr = ty_b_add(g, ty_b_slice_axis(g, of_x, 0, 0, 2 * h), ty_b_slice_axis(g, of_h, 0, 0, 2 * h));
    ty_val part[] = {zr, ty_b_slice_axis(g, of_x, 0, 2 * h, wide), ty_b_slice_axis(g, of_h, 0, 2 * h, wide)};
    return ty_b_concat(g, part, 3, 0);
}

/* The composite over x: [T, B, H] in the order of time. */
static ty_val emit(keras_run *r, ty_val x)
{
    static const int64_t block[][TY_RNN_MAX_GATES] = {
        [KERAS_CELL_SIMPLE] = {0},
        [KERAS_CELL_GRU] = {[TY_RNN_Z] = 0, [TY_RNN_R] = 1, [TY_RNN_N] = 2},
        [KERAS_CELL_LSTM] = {[TY_RNN_I] = 0, [TY_RNN_F] = 1, [TY_RNN_G] = 2, [TY_RNN_O] = 3}};
    ty_graph *g = r->c->g;
    const keras_cell *cell = r->cell;
    bool lstm = cell->kind == KERAS_CELL_LSTM, relu = cell->kind == KERAS_CELL_SIMPLE && is_named(cell->name, "relu");
    ty_attr attr = {.n = (uint32_t)cell->gates,
                    .flags = (r->backward ? TY_RNN_BACKWARD : 0) | (cell->reset_after ? TY_RNN_RESET_AFTER : 0) |
                             (relu ? TY_RNN_RELU : 0)};
    memcpy(attr.lo, block[cell->kind], sizeof block[0]);
    ty_val in[] = {x,
                   swapped(g, keras_var_of(r->c, cell->layer, "kernel")),
                   swapped(g, keras_var_of(r->c, cell->layer, "recurrent_kernel")),
                   whole_bias(r),
                   r->state[0],
                   lstm ? r->state[1] : TY_NONE};
    return ty_graph_emit(g, TY_OP_RNN, &attr, in, lstm ? 6 : 5);
}

/* ---- masks
 * -----------------------------------------------------------------------------------------------------------
 */

typedef struct picks {
    ty_val order; /* i64 [T, B]: the step that stands at a place when they are moved together */
    ty_val place; /* i64 [T, B]: where the latest step that counted stands; anything where there was none */
    ty_val any;   /* bool [T, B]: there was one */
} picks;

static picks picks_of(const keras_run *r)
{
    ty_graph *g = r->c->g;
    ty_val live = ty_b_squeeze(g, r->mask, 2), one = ty_b_cast(g, live, TY_I64);
    ty_val count = ty_b_scan(g, one, TY_SUM, 0, false, r->backward);
    ty_val zero = ty_b_full_like(g, count, 0);
    picks p;
    ty_b_sort(g, one, 0, !r->backward, &p.order);
    p.any = ty_b_lt(g, zero, count);
    if (r->backward)
        p.place =
            ty_b_sub(g, ty_b_full_like(g, count, (double)r->steps), ty_b_max(g, count, ty_b_full_like(g, count, 1)));
    else
        p.place = ty_b_max(g, ty_b_add_s(g, count, -1), zero);
    return p;
}

/* Rows x[at[t, b], b] of x [T, B, N]. */
static ty_val pick(ty_graph *g, ty_val x, ty_val at)
{
    int64_t steps = ty_b_dim(g, x, 0), batch = ty_b_dim(g, x, 1), wide = ty_b_dim(g, x, 2);
    int64_t flat[] = {steps * batch, wide}, n = ty_b_dim(g, at, 0) * batch, dim[] = {ty_b_dim(g, at, 0), batch, wide};
    ty_val column = ty_b_iota(g, *ty_graph_type(g, at), 1);
    ty_val row = ty_b_add(g, ty_b_mul_s(g, at, (double)batch), column);
    return ty_b_reshape(g, ty_b_gather(g, ty_b_reshape(g, x, 2, flat), ty_b_reshape(g, row, 1, &n), 0), 3, dim);
}

/* ---- both --------------------------------------------------------------------------------------------------------
 */

static ty_val end_of(const keras_run *r, ty_val series)
{
    int64_t at = r->backward ? 0 : r->steps - 1;
    return ty_b_squeeze(r->c->g, ty_b_slice_axis(r->c->g, series, 0, at, at + 1), 0);
}

static ty_val drop_input(const keras_run *r)
{
    ty_graph *g = r->c->g;
    int64_t dim[] = {1, r->batch, ty_b_dim(g, r->x, 2)};
    if (!r->c->training || r->cell->dropout == 0)
        return r->x;
    return ty_b_mul(g, r->x, keras_drop_factor(r->c, r->cell->dropout, 3, dim));
}

bool keras_run_whole(keras_run *r)
{
    ty_graph *g = r->c->g;
    if (!fits(r))
        return false;
    ty_val x = drop_input(r), first = r->state[0];
    bool masked = r->mask != TY_NONE;
    picks p = {TY_NONE, TY_NONE, TY_NONE};
    if (masked) {
        p = picks_of(r);
        x = pick(g, x, p.order);
    }
    ty_val y = r->y = emit(r, x);
    if (y == TY_NONE)
        return true;
    if (r->cell->kind == KERAS_CELL_LSTM)
        r->state[1] = ty_val_make(ty_val_node(y), 1);
    if (masked) {
        y = pick(g, y, p.place);
        ty_val any = ty_b_unsqueeze(g, p.any, 2);
        r->state[0] = ty_b_select(g, end_of(r, any), end_of(r, y), first);
        y = ty_b_select(g, any, y, ty_b_full_like(g, y, 0));
    } else
        r->state[0] = end_of(r, y);
    r->y = r->backward ? ty_b_reverse(g, y, 1) : y;
    return true;
}
