/* ctc.c - see ctc.h.
 *
 * Impossible is a large negative number, not -inf: differences of infinities are NaN, and a slope through them too.
 * Lengths are looked up in small tables, not computed with: a lookup tells the range analysis what an input may hold.
 */
#include "compiler/passes/ctc.h"

#include "compiler/ir/build.h"

#include <inttypes.h>
#include <math.h>

enum { CTC_MAX_STEPS = 4096 };

static const double ctc_impossible = -1e30; /* log */

typedef struct ctc {
    ty_graph *g;
    int64_t n, t, c, s, places; /* samples, steps, classes, labels, 2 labels + 1 */
    ty_val places_of;           /* i64[n, places]: extended labels */
    ty_val skips;               /* bool[n, places]: the way from s - 2 is open */
    ty_val emit;                /* f32[t, n, places]: log probability of each place's class at each step */
    ty_val steps;               /* i64[n]: input lengths, or TY_NONE */
    ty_val lengths;             /* i64[n]: label lengths, or TY_NONE */
} ctc;

static bool ctc_refuse(ctc *k, ty_val v, const char *what, const char *expected)
{
    char text[160];
    ty_graph_fail(k->g, TY_E_SHAPE, "%s: expected %s, found %s", what, expected,
                  ty_type_text(ty_graph_type(k->g, v), text, sizeof text));
    return false;
}

static bool ctc_is_integer(ctc *k, ty_val v)
{
    ty_dtype d = ty_b_dtype(k->g, v);
    return !ty_dtype_is_float(d) && d != TY_BOOL;
}

static bool ctc_check_shapes(ctc *k, const ty_loss_term *term, ty_val x, ty_val labels)
{
    ty_graph *g = k->g;
    if (ty_b_rank(g, x) != 3)
        return ctc_refuse(k, x, "output", term->time_axis == 0 ? "[T, batch, classes]" : "[batch, T, classes]");
    k->t = ty_b_dim(g, x, term->time_axis == 0 ? 0 : 1);
    k->n = ty_b_dim(g, x, term->time_axis == 0 ? 1 : 0);
    k->c = ty_b_dim(g, x, 2);
    if (!ctc_is_integer(k, labels) || ty_b_rank(g, labels) != 2 || ty_b_dim(g, labels, 0) != k->n ||
        ty_b_dim(g, labels, 1) < 1)
        return ctc_refuse(k, labels, "target", "integers [batch, labels], the batch as the output's");
    k->s = ty_b_dim(g, labels, 1);
    k->places = 2 * k->s + 1;
    if (term->blank < 0 || term->blank >= k->c) {
        ty_graph_fail(g, TY_E_RANGE, "blank: expected 0 to %" PRId64 ", found %" PRId64, k->c - 1, term->blank);
        return false;
    }
    if (k->t < 1 || k->t > CTC_MAX_STEPS) {
        ty_graph_fail(g, TY_E_LIMIT, "expected 1 to %d time steps, found %" PRId64, CTC_MAX_STEPS, k->t);
        return false;
    }
    return true;
}

/* table[v] with table[i] = max(0, scale i + shift): also says that 0 <= v <= most. */
static ty_val ctc_look_up(ctc *k, ty_val v, int64_t most, int64_t scale, int64_t shift)
{
    int64_t n = most + 1, *table = TY_NEW_ARRAY(ty_graph_arena(k->g), int64_t, n);
    for (int64_t i = 0; i < n; i++)
        table[i] = scale * i + shift > 0 ? scale * i + shift : 0;
    return ty_b_gather(k->g, ty_b_const_copy(k->g, ty_type_make(TY_I64, 1, &n), table), v, 0);
}

static ty_val ctc_lengths(ctc *k, ty_val v, int64_t most, const char *what)
{
    if (v == TY_NONE)
        return TY_NONE;
    if (!ctc_is_integer(k, v) || ty_type_elems(ty_graph_type(k->g, v)) != k->n) {
        ctc_refuse(k, v, what, "integers, one for each row of the batch");
        return TY_NONE;
    }
    ty_val flat = ty_b_flatten(k->g, ty_b_cast(k->g, v, TY_I64));
    return ctc_look_up(k, flat, most, 1, 0);
}

/* (blank, l_1, blank, l_2 ... blank) */
static ty_val ctc_extend(ctc *k, ty_val labels, int64_t blank)
{
    ty_graph *g = k->g;
    ty_val l = ty_b_unsqueeze(g, ty_b_cast(g, labels, TY_I64), 2);
    ty_val pair[2] = {ty_b_full(g, TY_I64, 3, (int64_t[]){k->n, k->s, 1}, (double)blank), l};
    ty_val flat = ty_b_reshape(g, ty_b_concat(g, pair, 2, 2), 2, (int64_t[]){k->n, 2 * k->s});
    ty_val whole[2] = {flat, ty_b_full(g, TY_I64, 2, (int64_t[]){k->n, 1}, (double)blank)};
    return ty_b_concat(g, whole, 2, 1);
}

/* v [n, places] moved `by` places to the right; `fill` comes in from the left. */
static ty_val ctc_shift(ctc *k, ty_val v, int64_t by, double fill)
{
    ty_val kept = ty_b_slice_axis(k->g, v, 1, 0, k->places - by);
    return ty_b_pad(k->g, kept, (int64_t[]){0, by}, (int64_t[]){0, 0}, fill);
}

static ty_val ctc_skips(ctc *k, int64_t blank)
{
    ty_graph *g = k->g;
    ty_val before = ctc_shift(k, k->places_of, 2, (double)blank);
    ty_val is_label = ty_b_ne(g, k->places_of, ty_b_full_like(g, k->places_of, (double)blank));
    return ty_b_binary(g, TY_OP_AND, is_label, ty_b_ne(g, k->places_of, before));
}

static ty_val ctc_emissions(ctc *k, const ty_loss_term *term, ty_val x)
{
    ty_graph *g = k->g;
    if (term->time_axis != 0)
        x = ty_b_transpose(g, x, (int64_t[]){1, 0, 2});
    ty_val p = ty_b_softmax(g, ty_b_cast(g, x, TY_F32), 2, true);
    ty_val index = ty_b_broadcast(g, ty_b_unsqueeze(g, k->places_of, 0), 3, (int64_t[]){k->t, k->n, k->places});
    return ty_b_take(g, p, index, 2);
}

static ty_val ctc_emission(ctc *k, int64_t t)
{
    return ty_b_squeeze(k->g, ty_b_slice_axis(k->g, k->emit, 0, t, t + 1), 0);
}

static ty_val ctc_first(ctc *k)
{
    ty_graph *g = k->g;
    ty_val e = ctc_emission(k, 0);
    ty_val place = ty_b_iota(g, ty_type_make(TY_I64, 2, (int64_t[]){k->n, k->places}), 1);
    return ty_b_select(g, ty_b_lt(g, place, ty_b_full_like(g, place, 2)), e, ty_b_full_like(g, e, ctc_impossible));
}

static ty_val ctc_next(ctc *k, ty_val a, int64_t t)
{
    ty_graph *g = k->g;
    ty_val b = ctc_shift(k, a, 1, ctc_impossible), c = ctc_shift(k, a, 2, ctc_impossible);
    c = ty_b_select(g, k->skips, c, ty_b_full_like(g, c, ctc_impossible));
    ty_val top = ty_b_max(g, ty_b_max(g, a, b), c);
    ty_val sum = ty_b_add(g, ty_b_exp(g, ty_b_sub(g, a, top)), ty_b_exp(g, ty_b_sub(g, b, top)));
    sum = ty_b_add(g, sum, ty_b_exp(g, ty_b_sub(g, c, top)));
    ty_val next = ty_b_add(g, ty_b_add(g, top, ty_b_log(g, sum)), ctc_emission(k, t));
    if (k->steps == TY_NONE)
        return next;
    ty_val runs = ty_b_lt(g, ty_b_full_like(g, k->steps, (double)t), k->steps);
    return ty_b_select(g, ty_b_unsqueeze(g, runs, 1), next, a);
}

/* a[i, place(i)], place = max(0, 2 length - back) */
static ty_val ctc_at_end(ctc *k, ty_val a, int64_t back)
{
    ty_graph *g = k->g;
    int64_t last = 2 * k->s - back;
    if (k->lengths == TY_NONE)
        return ty_b_squeeze(g, ty_b_slice_axis(g, a, 1, last, last + 1), 1);
    ty_val place = ctc_look_up(k, k->lengths, k->s, 2, -back);
    return ty_b_squeeze(g, ty_b_take(g, a, ty_b_unsqueeze(g, place, 1), 1), 1);
}

static ty_val ctc_log_likelihood(ctc *k, ty_val a)
{
    ty_graph *g = k->g;
    ty_val blank = ctc_at_end(k, a, 0), label = ctc_at_end(k, a, 1);
    if (k->lengths != TY_NONE) {
        ty_val none = ty_b_eq(g, k->lengths, ty_b_full_like(g, k->lengths, 0));
        label = ty_b_select(g, none, ty_b_full_like(g, label, ctc_impossible), label);
    }
    ty_val top = ty_b_max(g, blank, label);
    ty_val sum = ty_b_add(g, ty_b_exp(g, ty_b_sub(g, blank, top)), ty_b_exp(g, ty_b_sub(g, label, top)));
    return ty_b_add(g, top, ty_b_log(g, sum));
}

static ty_val ctc_divide(ctc *k, ty_val term)
{
    ty_graph *g = k->g;
    if (k->lengths == TY_NONE)
        return ty_b_mul_s(g, term, 1.0 / (double)k->s);
    ty_val n = ty_b_max(g, k->lengths, ty_b_full_like(g, k->lengths, 1));
    return ty_b_div(g, term, ty_b_cast(g, n, TY_F32));
}

ty_val ty_ctc_terms(ty_graph *g, const ty_loss_term *term, ty_val x, ty_val labels, ty_val input_lengths,
                    ty_val target_lengths)
{
    ctc k = {.g = g};
    if (x == TY_NONE || labels == TY_NONE || !ctc_check_shapes(&k, term, x, labels))
        return TY_NONE;
    k.steps = ctc_lengths(&k, input_lengths, k.t, "input_lengths");
    k.lengths = ctc_lengths(&k, target_lengths, k.s, "target_lengths");
    k.places_of = ctc_extend(&k, labels, term->blank);
    k.skips = ctc_skips(&k, term->blank);
    k.emit = ctc_emissions(&k, term, x);
    ty_val a = ctc_first(&k);
    for (int64_t t = 1; t < k.t; t++)
        a = ctc_next(&k, a, t);
    ty_val likelihood = ctc_log_likelihood(&k, a);
    if (likelihood == TY_NONE)
        return TY_NONE;
    ty_val fits = ty_b_lt(g, ty_b_full_like(g, likelihood, ctc_impossible / 2), likelihood);
    ty_val misfit = ty_b_full_like(g, likelihood, term->zero_infinity ? 0 : (double)INFINITY);
    ty_val safe = ty_b_select(g, fits, likelihood, ty_b_full_like(g, likelihood, 0));
    return ctc_divide(&k, ty_b_select(g, fits, ty_b_neg(g, safe), misfit));
}
