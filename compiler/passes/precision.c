/* precision.c - see precision.h.
 *
 * Each value of the new graph has the type in which it was computed. The other form, where one is asked for, is a cast
 * of it; equal casts exist once, so that a weight is cast once a step however many products read it.
 */
#include "compiler/passes/precision.h"

#include "base/suggest.h"
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/op.h"
#include "compiler/ops/recurrence.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define PRECISION_OP "op:" /* in front of the name of an operation that is kept */

/* What becomes of an op; 0: float32, and under match_eager rounded if its operands were. */
typedef enum precision_class { PRECISION_FOLLOWS, PRECISION_PRODUCT, PRECISION_MOVES, PRECISION_FULL } precision_class;

/* FULL: the list that autocast computes in float32. */
static const uint8_t precision_classes[TY_N_OPS] = {
    [TY_OP_DOT] = PRECISION_PRODUCT,     [TY_OP_CONV] = PRECISION_PRODUCT,      [TY_OP_CONV_DX] = PRECISION_PRODUCT,
    [TY_OP_CONV_DW] = PRECISION_PRODUCT, [TY_OP_ATTENTION] = PRECISION_PRODUCT, [TY_OP_RNN] = PRECISION_PRODUCT,

    [TY_OP_RESHAPE] = PRECISION_MOVES,   [TY_OP_TRANSPOSE] = PRECISION_MOVES,   [TY_OP_BROADCAST] = PRECISION_MOVES,
    [TY_OP_SLICE] = PRECISION_MOVES,     [TY_OP_PAD] = PRECISION_MOVES,         [TY_OP_CONCAT] = PRECISION_MOVES,
    [TY_OP_REVERSE] = PRECISION_MOVES,   [TY_OP_GATHER] = PRECISION_MOVES,      [TY_OP_TAKE] = PRECISION_MOVES,

    [TY_OP_EXP] = PRECISION_FULL,        [TY_OP_EXPM1] = PRECISION_FULL,        [TY_OP_LOG] = PRECISION_FULL,
    [TY_OP_LOG1P] = PRECISION_FULL,      [TY_OP_POW] = PRECISION_FULL,          [TY_OP_RSQRT] = PRECISION_FULL,
    [TY_OP_SOFTMAX] = PRECISION_FULL,    [TY_OP_NORM] = PRECISION_FULL,         [TY_OP_XENT] = PRECISION_FULL,
    [TY_OP_REDUCE] = PRECISION_FULL,     [TY_OP_SCAN] = PRECISION_FULL,
};

enum { PRECISION_BY_PRODUCT = 1, PRECISION_BY_OTHERS = 2 };

typedef struct precision_pass {
    const ty_graph *in;
    ty_clone clone;
    const ty_precision_rules *rules;
    uint8_t *live;
    uint8_t *read;   /* by value of the old graph: who reads it */
    uint8_t *narrow; /* by value of the old graph: autocast has it in 16 bits */
} precision_pass;

static bool precision_is_float(const ty_graph *g, ty_val v)
{
    return v != TY_NONE && ty_graph_type(g, v)->dtype == TY_F32;
}

static bool precision_is_short(const precision_pass *p, ty_val mapped)
{
    return mapped != TY_NONE && ty_graph_type(p->clone.to, mapped)->dtype == p->rules->dtype;
}

static bool precision_is_kept(const precision_pass *p, uint32_t id)
{
    if (ty_graph_op(p->in, id) == TY_OP_DOT && (ty_graph_attr(p->in, id)->flags & TY_DOT_FULL))
        return true;
    const char *origin = ty_graph_origin_of(p->in, id);
    for (int i = 0; i < p->rules->n_keep; i++)
        if (fnmatch(p->rules->keep[i], origin, 0) == 0)
            return true;
    return false;
}

/* The name of the operations that an entry keeps, or NULL: it is of layers. */
static const char *precision_op_of(const char *keep)
{
    return strncmp(keep, PRECISION_OP, strlen(PRECISION_OP)) == 0 ? keep + strlen(PRECISION_OP) : NULL;
}

static bool precision_op_is_kept(const ty_precision_rules *rules, ty_op op)
{
    for (int i = 0; i < rules->n_keep; i++) {
        const char *name = precision_op_of(rules->keep[i]);
        if (name && fnmatch(name, ty_op_row_of(op)->text, 0) == 0)
            return true;
    }
    return false;
}

static int precision_check(const ty_precision_rules *rules, ty_error *err)
{
    for (int i = 0; i < rules->n_keep; i++) {
        const char *name = precision_op_of(rules->keep[i]);
        ty_suggestion near = {.word = name};
        bool found = !name;
        for (int op = 0; op < TY_N_OPS && !found; op++) {
            found = fnmatch(name, ty_op_row_of((ty_op)op)->text, 0) == 0;
            ty_suggest_offer(&near, ty_op_row_of((ty_op)op)->text);
        }
        if (found)
            continue;
        ty_error_set(err, TY_E_CONFIG, "keep_float32: there is no operation \"%s\"", name);
        return ty_error_help(err, "%s%s%sproducts are op:dot, op:conv, op:conv_dx, op:attention and op:rnn",
                             near.best ? "did you mean \"op:" : "", near.best ? near.best : "",
                             near.best ? "\"? " : "");
    }
    return 0;
}

/* Whether a pattern of layers meets one. *example: the layer of a product, which is what patterns are for; or NULL. */
static bool precision_meets(const ty_graph *g, const char *pattern, const char **example)
{
    *example = NULL;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        const char *origin = ty_graph_origin_of(g, id);
        if (fnmatch(pattern, origin, 0) == 0)
            return true;
        if (!*example && *origin && precision_classes[ty_graph_op(g, id)] == PRECISION_PRODUCT)
            *example = origin;
    }
    return false;
}

static int precision_check_layers(const ty_graph *g, const ty_precision_rules *rules, ty_error *err)
{
    const char *example;
    for (int i = 0; i < rules->n_keep && rules->must_meet; i++) {
        if (precision_op_of(rules->keep[i]) || precision_meets(g, rules->keep[i], &example))
            continue;
        ty_error_set(err, TY_E_CONFIG, "keep_float32: no layer of the model matches \"%s\"", rules->keep[i]);
        return example ? ty_error_help(err, "its layers are called as \"%s\": put * in front and behind", example) : -1;
    }
    return 0;
}

/* v as `dtype`. A reshape is rounded before it: where it tears a permuted operand (layout.c), what is copied is then 16
 * bits wide, in a kernel that sees the operand's own axes. So is what is turned, if it is a weight: a product then
 * takes it as it lies. */
static ty_val precision_cast(ty_graph *g, ty_val v, ty_dtype dtype, bool weight)
{
    ty_op op = v == TY_NONE ? TY_N_OPS : ty_graph_op(g, ty_val_node(v));
    bool moved = op == TY_OP_RESHAPE || (weight && op == TY_OP_TRANSPOSE);
    if (dtype == TY_F32 || !moved || !precision_is_float(g, v))
        return ty_b_cast(g, v, dtype);
    const ty_type t = *ty_graph_type(g, v);
    const ty_attr attr = *ty_graph_attr(g, ty_val_node(v));
    ty_val in = precision_cast(g, ty_graph_in(g, ty_val_node(v), 0), dtype, weight);
    return op == TY_OP_TRANSPOSE ? ty_b_transpose(g, in, attr.lo) : ty_b_reshape(g, in, t.rank, t.dim);
}

/* Operand k of a node, as `dtype` if it was a float32 of the old graph. */
static ty_val precision_operand(precision_pass *p, uint32_t id, int k, ty_dtype dtype)
{
    ty_val old = ty_graph_in(p->in, id, k), v = old == TY_NONE ? TY_NONE : p->clone.map[old];
    if (!precision_is_float(p->in, old))
        return v;
    bool weight = ty_graph_op(p->in, id) == TY_OP_RNN && (k == TY_RNN_W || k == TY_RNN_WEIGHT);
    return precision_cast(p->clone.to, v, dtype, weight);
}

/* How many operands are float32 in the old graph, and how many of these have 16 bits in the new one. Numbers that stand
 * everywhere in a constant count as neither. */
static void precision_count(const precision_pass *p, uint32_t id, int *floats, int *shorts)
{
    double number;
    *floats = *shorts = 0;
    for (uint32_t k = 0; k < ty_graph_node(p->in, id)->n_in; k++) {
        ty_val old = ty_graph_in(p->in, id, (int)k);
        if (!precision_is_float(p->in, old))
            continue;
        bool is_short = precision_is_short(p, p->clone.map[old]);
        *floats += is_short || !ty_graph_splat_value(p->in, old, &number);
        *shorts += is_short;
    }
}

static bool precision_has_floats(const precision_pass *p, uint32_t id)
{
    for (uint32_t k = 0; k < ty_graph_node(p->in, id)->n_in; k++)
        if (precision_is_float(p->in, ty_graph_in(p->in, id, (int)k)))
            return true;
    return false;
}

/* The mask of an attention is added to float32 scores, and a recurrent layer's bias to float32 sums; its states are
 * float32. */
static bool precision_operand_is_wide(ty_op op, int k)
{
    return (op == TY_OP_ATTENTION && k == 3) || (op == TY_OP_RNN && k >= TY_RNN_BIAS);
}

static void precision_emit(precision_pass *p, uint32_t id, ty_dtype dtype, bool round)
{
    const ty_node *n = ty_graph_node(p->in, id);
    ty_attr attr = *ty_graph_attr(p->in, id);
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(p->clone.to), ty_val, n->n_in + 1);
    for (uint32_t k = 0; k < n->n_in; k++)
        in[k] = precision_operand(p, id, (int)k, precision_operand_is_wide(n->op, (int)k) ? TY_F32 : dtype);
    bool typed = precision_classes[n->op] == PRECISION_PRODUCT || precision_classes[n->op] == PRECISION_MOVES;
    if (attr.type.dtype == TY_F32 && typed)
        attr.type.dtype = (uint8_t)dtype;
    ty_graph_origin(p->clone.to, ty_graph_origin_of(p->in, id));
    ty_val first = ty_graph_emit(p->clone.to, n->op, &attr, in, (int)n->n_in);
    for (int r = 0; r < n->n_res && first != TY_NONE; r++) {
        ty_val v = ty_val_make(ty_val_node(first), (uint32_t)r);
        bool rounded = round && precision_is_float(p->in, ty_val_make(id, (uint32_t)r));
        p->clone.map[ty_val_make(id, (uint32_t)r)] = rounded ? ty_b_cast(p->clone.to, v, p->rules->dtype) : v;
    }
}

/* All float32 operands, but for numbers, have 16 bits in autocast. */
static bool precision_is_all_short(const precision_pass *p, uint32_t id)
{
    bool some = false;
    double number;
    for (uint32_t k = 0; k < ty_graph_node(p->in, id)->n_in; k++) {
        ty_val v = ty_graph_in(p->in, id, (int)k);
        if (!precision_is_float(p->in, v) || (!p->narrow[v] && ty_graph_splat_value(p->in, v, &number)))
            continue;
        if (!p->narrow[v])
            return false;
        some = true;
    }
    return some;
}

/* Batch norm has the type of what it normalises, though its weights are float32. */
static void precision_see(precision_pass *p, uint32_t id)
{
    ty_op op = ty_graph_op(p->in, id);
    precision_class what = (precision_class)precision_classes[op];
    bool kept = precision_op_is_kept(p->rules, op) || (what == PRECISION_PRODUCT && precision_is_kept(p, id));
    if (kept || what == PRECISION_FULL || !precision_has_floats(p, id))
        return;
    bool is_short = what == PRECISION_PRODUCT ||
                    (op == TY_OP_BATCHNORM ? p->narrow[ty_graph_in(p->in, id, 0)] : precision_is_all_short(p, id));
    p->narrow[ty_val_make(id, 0)] = is_short && precision_is_float(p->in, ty_val_make(id, 0));
}

/* What a product reads is in memory in 16 bits. Others read that too, if autocast has no more: the sum of a residual
 * network's branches is then written and read once, and so is its gradient. */
static bool precision_is_shared(const precision_pass *p, uint32_t id)
{
    ty_val v = ty_val_make(id, 0);
    return p->narrow[v] && p->read[v] == (PRECISION_BY_PRODUCT | PRECISION_BY_OTHERS);
}

static void precision_node(precision_pass *p, uint32_t id)
{
    ty_op op = ty_graph_op(p->in, id);
    precision_class what = (precision_class)precision_classes[op];
    int floats, shorts;
    precision_count(p, id, &floats, &shorts);
    bool all_short = shorts > 0 && shorts == floats, kept = precision_op_is_kept(p->rules, op);
    bool follows = p->rules->match_eager && what == PRECISION_FOLLOWS && all_short && !kept;
    precision_see(p, id);
    if (!precision_has_floats(p, id))
        ty_clone_node(&p->clone, id);
    else if (what == PRECISION_PRODUCT && !kept && !precision_is_kept(p, id))
        precision_emit(p, id, p->rules->dtype, op == TY_OP_RNN && p->rules->match_eager);
    else if (what == PRECISION_MOVES && !kept && all_short)
        precision_emit(p, id, p->rules->dtype, false);
    else
        precision_emit(p, id, TY_F32, follows || precision_is_shared(p, id));
}

/* What is only moved is read by whom its result is: all of those are marked before, from the end of the graph. */
static void precision_mark_reads(precision_pass *p, uint32_t id)
{
    precision_class what = (precision_class)precision_classes[ty_graph_op(p->in, id)];
    uint8_t by = what == PRECISION_PRODUCT ? PRECISION_BY_PRODUCT
                 : what == PRECISION_MOVES ? p->read[ty_val_make(id, 0)]
                                           : PRECISION_BY_OTHERS;
    for (uint32_t k = 0; k < ty_graph_node(p->in, id)->n_in; k++)
        if (ty_graph_in(p->in, id, (int)k) != TY_NONE)
            p->read[ty_graph_in(p->in, id, (int)k)] |= by;
}

static void precision_mark(precision_pass *p, const ty_val *held, int n_held, uint32_t n)
{
    for (int i = 0; i < n_held; i++)
        if (held[i] != TY_NONE)
            p->live[ty_val_node(held[i])] = 1;
    for (uint32_t id = n; id-- > 0;) {
        for (uint32_t k = 0; p->live[id] && k < ty_graph_node(p->in, id)->n_in; k++)
            if (ty_graph_in(p->in, id, (int)k) != TY_NONE)
                p->live[ty_val_node(ty_graph_in(p->in, id, (int)k))] = 1;
        if (p->live[id])
            precision_mark_reads(p, id);
    }
}

int ty_pass_precision(const ty_graph *in, ty_graph *to, const ty_val *bound, const ty_precision_rules *rules,
                      ty_val *held, int n_held, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(in);
    ty_arena arena;
    if (ty_graph_failed(in, err) || ty_graph_failed(to, err) || precision_check(rules, err) < 0 ||
        precision_check_layers(in, rules, err) < 0)
        return -1;
    ty_arena_init(&arena);
    precision_pass p = {.in = in,
                        .rules = rules,
                        .live = TY_NEW_ARRAY(&arena, uint8_t, n + 1),
                        .read = TY_NEW_ARRAY(&arena, uint8_t, TY_MAX_RESULTS * (size_t)n + 1),
                        .narrow = TY_NEW_ARRAY(&arena, uint8_t, TY_MAX_RESULTS * (size_t)n + 1)};
    p.clone = (ty_clone){.from = in, .to = to, .map = TY_NEW_ARRAY(&arena, ty_val, 4 * (size_t)n + 1)};
    for (size_t i = 0; i < 4 * (size_t)n; i++)
        p.clone.map[i] = TY_NONE;
    precision_mark(&p, held, n_held, n);
    for (uint32_t id = 0; id < n && !ty_graph_failed(to, NULL); id++) {
        if (p.live[id] && ty_graph_op(in, id) == TY_OP_INPUT)
            p.clone.map[ty_val_make(id, 0)] = bound[ty_graph_attr(in, id)->index];
        else if (p.live[id])
            precision_node(&p, id);
    }
    for (int i = 0; i < n_held && !ty_graph_failed(to, NULL); i++)
        if (held[i] != TY_NONE)
            held[i] = ty_b_cast(to, p.clone.map[held[i]], (ty_dtype)ty_graph_type(in, held[i])->dtype);
    ty_graph_origin(to, "");
    ty_arena_fini(&arena);
    return ty_graph_failed(to, err) ? -1 : 0;
}

/* ---- gradients of weights ---- */

/* dot or conv_dw once more, with a float32 result. */
static ty_val precision_widen_product(ty_graph *g, ty_val v)
{
    uint32_t id = ty_val_node(v);
    ty_attr attr = *ty_graph_attr(g, id);
    ty_val in[2] = {ty_graph_in(g, id, 0), ty_graph_in(g, id, 1)};
    if (ty_graph_op(g, id) == TY_OP_DOT)
        return ty_b_dot_wide(g, in[0], in[1], attr.flags & TY_DOT_TRANS_A, attr.flags & TY_DOT_TRANS_B);
    attr.type.dtype = TY_F32;
    return ty_graph_emit(g, TY_OP_CONV_DW, &attr, in, 2);
}

static bool precision_is_narrowed(const ty_graph *g, ty_val v)
{
    ty_dtype dtype = (ty_dtype)ty_graph_type(g, v)->dtype;
    return ty_wide_dtype(dtype) != dtype;
}

/* v as float32: through movement down to products. A recurrent layer has gates whose weights are products apart. */
static ty_val precision_widened(ty_graph *g, ty_val v)
{
    uint32_t id = ty_val_node(v);
    ty_op op = ty_graph_op(g, id);
    if (op == TY_OP_DOT || op == TY_OP_CONV_DW)
        return precision_widen_product(g, v);
    if (op != TY_OP_RESHAPE && op != TY_OP_TRANSPOSE && op != TY_OP_CONCAT)
        return ty_b_cast(g, v, TY_F32);
    ty_attr attr = *ty_graph_attr(g, id);
    int n_in = (int)ty_graph_node(g, id)->n_in;
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, (size_t)n_in);
    for (int k = 0; k < n_in; k++)
        in[k] = ty_graph_in(g, id, k);
    for (int k = 0; k < n_in; k++)
        in[k] = precision_widened(g, in[k]);
    if (op == TY_OP_RESHAPE)
        attr.type.dtype = TY_F32;
    return ty_graph_emit(g, op, &attr, in, n_in);
}

ty_val ty_precision_widen(ty_graph *g, ty_val gradient)
{
    if (gradient == TY_NONE || ty_graph_failed(g, NULL))
        return gradient;
    uint32_t id = ty_val_node(gradient);
    ty_op op = ty_graph_op(g, id);
    if (op == TY_OP_CAST && precision_is_narrowed(g, ty_graph_in(g, id, 0)))
        return precision_widened(g, ty_graph_in(g, id, 0));
    if (op != TY_OP_ADD && op != TY_OP_RESHAPE && op != TY_OP_TRANSPOSE)
        return gradient;
    ty_attr attr = *ty_graph_attr(g, id);
    ty_val in[2] = {TY_NONE, TY_NONE};
    int n_in = (int)ty_graph_node(g, id)->n_in;
    for (int k = 0; k < n_in; k++)
        in[k] = ty_graph_in(g, id, k);
    for (int k = 0; k < n_in; k++)
        in[k] = ty_precision_widen(g, in[k]);
    return ty_graph_emit(g, op, &attr, in, n_in);
}
