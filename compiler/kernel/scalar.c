/* scalar.c - the scalar form of every ELEMENTWISE and LOOP op: one element as a function of elements of the inputs.
 *
 * Elementwise ops evaluate their inputs at the same position and apply the op. Movement ops only change the position:
 * each has a row in the table.
 */
#include "compiler/kernel/build.h"

#include "compiler/ops/op.h"

#include <string.h>

static uint32_t scalar_elementwise(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_graph *g = b->group->g;
    uint32_t n_in = ty_graph_node(g, node)->n_in, in[3] = {TY_NONE, TY_NONE, TY_NONE};
    for (uint32_t i = 0; i < n_in && i < 3; i++)
        in[i] = ty_kb_eval(b, ty_graph_in(g, node, (int)i), pos, guard);
    return ty_kb_op(b, ty_graph_op(g, node), (ty_dtype)ty_graph_type(g, ty_val_make(node, 0))->dtype, in[0], in[1],
                    in[2]);
}

static const ty_type *scalar_type(const ty_kb *b, uint32_t node)
{
    return ty_graph_type(b->group->g, ty_val_make(node, 0));
}

static const ty_type *scalar_in_type(const ty_kb *b, uint32_t node, int i)
{
    return ty_graph_type(b->group->g, ty_graph_in(b->group->g, node, i));
}

static uint32_t scalar_eval_in(ty_kb *b, uint32_t node, int i, const ty_kpos *pos, uint32_t guard)
{
    return ty_kb_eval(b, ty_graph_in(b->group->g, node, i), pos, guard);
}

static uint32_t scalar_index(ty_kb *b, ty_ix addr, ty_dtype dtype)
{
    uint32_t index = ty_kb_push(b, (ty_kinstr){.kop = TY_K_INDEX,
                                               .dtype = TY_I64,
                                               .a = TY_NONE,
                                               .b = TY_NONE,
                                               .c = TY_NONE,
                                               .guard = TY_NONE,
                                               .addr = addr,
                                               .vars = ty_ix_at(&b->k->ix, addr)->vars});
    return dtype == TY_I64 ? index : ty_kb_op(b, TY_OP_CAST, dtype, index, TY_NONE, TY_NONE);
}

static uint32_t scalar_iota(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    (void)guard;
    const ty_type *type = scalar_type(b, node);
    ty_kpos at = ty_kb_vector(b, pos, type);
    return scalar_index(b, at.v[ty_graph_attr(b->group->g, node)->axis], (ty_dtype)type->dtype);
}

static uint32_t scalar_rng(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    ty_kpos zero = ty_kb_flat_pos(ty_ix_const(&b->k->ix, 0));
    uint32_t seed = scalar_eval_in(b, node, 0, &zero, guard), step = scalar_eval_in(b, node, 1, &zero, guard);
    uint32_t word = scalar_index(b, ty_kb_flat(b, pos, scalar_type(b, node)), TY_I64);
    if (b->failed)
        return TY_NONE;
    uint32_t instr = ty_kb_op(b, TY_OP_RNG, TY_U32, seed, step, word);
    if (instr != TY_NONE)
        b->k->instr[instr].imm_int = ty_graph_attr(b->group->g, node)->index;
    return instr;
}

static uint32_t scalar_reshape(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    ty_kpos flat = ty_kb_flat_pos(ty_kb_flat(b, pos, scalar_type(b, node)));
    return scalar_eval_in(b, node, 0, &flat, guard);
}

static uint32_t scalar_again(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    return scalar_eval_in(b, node, 0, pos, guard);
}

static uint32_t scalar_transpose(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_attr *attr = ty_graph_attr(b->group->g, node);
    ty_kpos at = ty_kb_vector(b, pos, scalar_type(b, node)), in = {.flat = false};
    for (uint32_t i = 0; i < attr->n; i++)
        in.v[attr->lo[i]] = at.v[i];
    return scalar_eval_in(b, node, 0, &in, guard);
}

static uint32_t scalar_broadcast(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_type *in_type = scalar_in_type(b, node, 0), *type = scalar_type(b, node);
    if (ty_type_elems(in_type) == 1) { /* no need to take the position apart */
        ty_kpos zero = ty_kb_flat_pos(ty_ix_const(&b->k->ix, 0));
        return scalar_eval_in(b, node, 0, &zero, guard);
    }
    ty_kpos at = ty_kb_vector(b, pos, type);
    for (int i = 0; i < in_type->rank; i++)
        if (in_type->dim[i] == 1)
            at.v[i] = ty_ix_const(&b->k->ix, 0);
    return scalar_eval_in(b, node, 0, &at, guard);
}

static uint32_t scalar_slice(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_attr *attr = ty_graph_attr(b->group->g, node);
    const ty_type *type = scalar_type(b, node);
    if (type->rank == 1 && attr->step[0] == 1) { /* a range of a flat arena: keep flat positions flat */
        ty_kpos shifted = ty_kb_flat_pos(ty_ix_add_const(&b->k->ix, ty_kb_flat(b, pos, type), attr->lo[0]));
        return scalar_eval_in(b, node, 0, &shifted, guard);
    }
    ty_kpos at = ty_kb_vector(b, pos, type);
    for (uint32_t i = 0; i < attr->n; i++)
        at.v[i] = ty_ix_add_const(&b->k->ix, ty_ix_mul(&b->k->ix, at.v[i], attr->step[i]), attr->lo[i]);
    return scalar_eval_in(b, node, 0, &at, guard);
}

static uint32_t scalar_reverse(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_attr *attr = ty_graph_attr(b->group->g, node);
    const ty_type *type = scalar_type(b, node);
    ty_kpos at = ty_kb_vector(b, pos, type);
    for (int i = 0; i < type->rank; i++)
        if (attr->axes >> i & 1)
            at.v[i] = ty_ix_add_const(&b->k->ix, ty_ix_mul(&b->k->ix, at.v[i], -1), type->dim[i] - 1);
    return scalar_eval_in(b, node, 0, &at, guard);
}

/* lo <= index < hi as an instruction; TY_NONE if it always holds. */
static uint32_t scalar_inside(ty_kb *b, ty_ix index, int64_t lo, int64_t hi)
{
    const ty_ix_node *range = ty_ix_at(&b->k->ix, index);
    if (range->lo >= lo && range->hi < hi)
        return TY_NONE;
    return ty_kb_push(b, (ty_kinstr){.kop = TY_K_INSIDE,
                                     .dtype = TY_BOOL,
                                     .a = TY_NONE,
                                     .b = TY_NONE,
                                     .c = TY_NONE,
                                     .guard = TY_NONE,
                                     .addr = index,
                                     .lo = lo,
                                     .hi = hi,
                                     .vars = range->vars});
}

static uint32_t scalar_number(ty_kb *b, ty_dtype dtype, double value)
{
    return ty_kb_push(b, (ty_kinstr){.kop = TY_K_CONST,
                                     .dtype = dtype,
                                     .a = TY_NONE,
                                     .b = TY_NONE,
                                     .c = TY_NONE,
                                     .guard = TY_NONE,
                                     .imm = value,
                                     .imm_int = (int64_t)value});
}

static uint32_t scalar_pad(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_attr *attr = ty_graph_attr(b->group->g, node);
    const ty_type *in_type = scalar_in_type(b, node, 0);
    ty_kpos at = ty_kb_vector(b, pos, scalar_type(b, node));
    uint32_t inside = TY_NONE;
    for (uint32_t i = 0; i < attr->n; i++) {
        uint32_t one = scalar_inside(b, at.v[i], attr->lo[i], attr->lo[i] + in_type->dim[i]);
        if (one != TY_NONE)
            inside = ty_kb_and(b, inside, one);
        /* The operand's range is kept in mind, so that its own reshapes stay simple. */
        at.v[i] = ty_ix_add_const(&b->k->ix, at.v[i], -attr->lo[i]);
        at.v[i] = ty_ix_limit(&b->k->ix, at.v[i], in_type->dim[i]);
    }
    if (inside == TY_NONE)
        return scalar_eval_in(b, node, 0, &at, guard);
    uint32_t in = scalar_eval_in(b, node, 0, &at, ty_kb_and(b, guard, inside));
    ty_dtype dtype = (ty_dtype)in_type->dtype;
    return ty_kb_op(b, TY_OP_SELECT, dtype, inside, in, scalar_number(b, dtype, attr->value));
}

static uint32_t scalar_concat(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_type *type = scalar_type(b, node);
    int64_t axis = ty_graph_attr(b->group->g, node)->axis, off = type->dim[axis];
    ty_kpos at = ty_kb_vector(b, pos, type);
    uint32_t value = TY_NONE;
    for (int i = (int)ty_graph_node(b->group->g, node)->n_in - 1; i >= 0 && !b->failed; i--) {
        int64_t dim = scalar_in_type(b, node, i)->dim[axis];
        off -= dim;
        uint32_t inside = scalar_inside(b, at.v[axis], off, off + dim);
        ty_kpos in_pos = at;
        in_pos.v[axis] = ty_ix_limit(&b->k->ix, ty_ix_add_const(&b->k->ix, at.v[axis], -off), dim);
        uint32_t in = scalar_eval_in(b, node, i, &in_pos, inside == TY_NONE ? guard : ty_kb_and(b, guard, inside));
        value = value == TY_NONE || inside == TY_NONE
                    ? in
                    : ty_kb_op(b, TY_OP_SELECT, (ty_dtype)type->dtype, inside, in, value);
    }
    return value;
}

/* An integer element as an index; its range is the axis it indexes. */
static ty_ix scalar_data(ty_kb *b, uint32_t instr, int64_t dim)
{
    if (b->failed)
        return ty_ix_const(&b->k->ix, 0);
    return ty_ix_data(&b->k->ix, instr, 0, dim - 1, ty_kb_vars(b, instr));
}

static uint32_t scalar_gather(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_type *x = scalar_in_type(b, node, 0), *index = scalar_in_type(b, node, 1);
    int axis = (int)ty_graph_attr(b->group->g, node)->axis;
    ty_kpos at = ty_kb_vector(b, pos, scalar_type(b, node)), index_pos = {.flat = false}, in = {.flat = false};
    for (int i = 0; i < index->rank; i++)
        index_pos.v[i] = at.v[axis + i];
    uint32_t data = scalar_eval_in(b, node, 1, &index_pos, guard);
    for (int i = 0; i < x->rank; i++)
        in.v[i] = i < axis ? at.v[i] : i == axis ? scalar_data(b, data, x->dim[axis]) : at.v[i - 1 + index->rank];
    return scalar_eval_in(b, node, 0, &in, guard);
}

static uint32_t scalar_take(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    int axis = (int)ty_graph_attr(b->group->g, node)->axis;
    ty_kpos at = ty_kb_vector(b, pos, scalar_type(b, node));
    uint32_t data = scalar_eval_in(b, node, 1, &at, guard);
    at.v[axis] = scalar_data(b, data, scalar_in_type(b, node, 0)->dim[axis]);
    return scalar_eval_in(b, node, 0, &at, guard);
}

uint32_t ty_kb_row(ty_kb *b, ty_val rows, ty_ix k, int64_t n, ty_ix *row)
{
    uint32_t data = ty_kb_eval(b, rows, &(ty_kpos){.flat = false, .v = {k}}, TY_NONE);
    *row = b->failed ? k : ty_ix_data(&b->k->ix, data, -1, n - 1, ty_kb_vars(b, data));
    for (uint32_t i = 0; i < b->k->n_instrs; i++) {
        const ty_kinstr *known = &b->k->instr[i];
        if (known->kop == TY_K_INSIDE && known->addr == *row && known->lo == 0 && known->hi == n &&
            known->stage == b->stage)
            return i;
    }
    return scalar_inside(b, *row, 0, n);
}

/* Zeros where there is no row. */
static uint32_t scalar_get_rows(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard)
{
    const ty_type *x = scalar_in_type(b, node, 0);
    ty_kpos at = ty_kb_vector(b, pos, scalar_type(b, node));
    uint32_t inside = ty_kb_row(b, ty_graph_in(b->group->g, node, 1), at.v[0], x->dim[0], &at.v[0]);
    if (b->failed)
        return TY_NONE;
    uint32_t in = scalar_eval_in(b, node, 0, &at, ty_kb_and(b, guard, inside));
    ty_dtype dtype = (ty_dtype)x->dtype;
    return ty_kb_op(b, TY_OP_SELECT, dtype, inside, in, scalar_number(b, dtype, 0));
}

static ty_kscalar_fn *const scalar_table[TY_N_OPS] = {
    [TY_OP_IOTA] = scalar_iota,           [TY_OP_RNG] = scalar_rng,
    [TY_OP_RESHAPE] = scalar_reshape,     [TY_OP_AGAIN] = scalar_again,
    [TY_OP_TRANSPOSE] = scalar_transpose, [TY_OP_BROADCAST] = scalar_broadcast,
    [TY_OP_SLICE] = scalar_slice,         [TY_OP_PAD] = scalar_pad,
    [TY_OP_CONCAT] = scalar_concat,       [TY_OP_REVERSE] = scalar_reverse,
    [TY_OP_GATHER] = scalar_gather,       [TY_OP_TAKE] = scalar_take,
    [TY_OP_GET_ROWS] = scalar_get_rows,
};

ty_kscalar_fn *ty_kscalar_of(ty_op op)
{
    if (op >= TY_N_OPS)
        return NULL;
    return ty_op_is_elementwise(op) ? scalar_elementwise : scalar_table[op];
}

/* ---- elements of constants ---- */

#define READ(NAME, ctype)                                                       \
    static void read_##NAME(const void *data, double *number, int64_t *integer) \
    {                                                                           \
        ctype x;                                                                \
        memcpy(&x, data, sizeof x);                                             \
        *number = (double)x;                                                    \
        *integer = (int64_t)x;                                                  \
    }
READ(BOOL, uint8_t)
READ(I8, int8_t)
READ(U8, uint8_t)
READ(I16, int16_t)
READ(U16, uint16_t)
READ(I32, int32_t)
READ(U32, uint32_t)
READ(I64, int64_t)
READ(U64, uint64_t)
#undef READ

static void read_F16(const void *data, double *number, int64_t *integer)
{
    uint16_t x;
    memcpy(&x, data, sizeof x);
    *number = (double)ty_f16_to_f32(x);
    *integer = 0;
}

static void read_BF16(const void *data, double *number, int64_t *integer)
{
    uint16_t x;
    memcpy(&x, data, sizeof x);
    *number = (double)ty_bf16_to_f32(x);
    *integer = 0;
}

static void read_F32(const void *data, double *number, int64_t *integer)
{
    float x;
    memcpy(&x, data, sizeof x);
    *number = (double)x;
    *integer = 0;
}

static void read_F64(const void *data, double *number, int64_t *integer)
{
    memcpy(number, data, sizeof *number);
    *integer = 0;
}

void ty_scalar_read(ty_dtype dtype, const void *data, double *number, int64_t *integer)
{
    static void (*const read[TY_N_DTYPES])(const void *, double *, int64_t *) = {
#define DTYPE(NAME, text, descr, bytes, is_float, is_signed) [TY_##NAME] = read_##NAME,
#include "base/dtypes.def"
#undef DTYPE
    };
    read[dtype](data, number, integer);
}
