/* raise_rotary.c - rotary embedding: pairs of numbers turned by angles that depend on the position.
 *
 *     y0 = x0 cos - x1 sin,  y1 = x1 cos + x0 sin          (Su et al., RoFormer, 2021, eq. 34)
 *
 * A pair is a number of the first half of a row and its like in the second (GPT-NeoX, LLaMA), or two neighbours
 * (GPT-J). Exporters write x cos + r sin, where r is put together of the swapped parts of x, one of them negated; or
 * they put together the two lines above. All become one form without parts, along the axis of the two:
 *
 *     p = x as [.., 2, n] or [.., n, 2];   y = p C + reverse(p) S,   S = (-sin, sin)
 *
 * It is a kernel without a choice in it, and so is its gradient, dy C + reverse(dy) reverse(S), which needs no x.
 */
#include "compiler/ir/build.h"
#include "compiler/passes/raise.h"

#include <string.h>

#define ROTARY_ADJACENT 1u /* flags of a match: pairs are neighbours */
#define ROTARY_BY_PAIR  2u /* tables have one number a pair, not one an element */

/* Rows of pairs: the part of base that is turned. */
typedef struct rotary_rows {
    ty_val base;
    ty_attr cut; /* a slice, also where it is all of base */
    int64_t half;
    bool adjacent;
} rotary_rows;

/* y0 = x0 cos + sign x1 sin, y1 = x1 cos - sign x0 sin */
typedef struct rotary {
    rotary_rows x;
    ty_val whole; /* x as one value, or TY_NONE */
    ty_val cos, sin;
    double sign;
    bool by_pair;
} rotary;

/* ---- parts ---- */

/* v without reshapes and negations, which go into *sign. */
static ty_val rotary_bare(const ty_raise *r, ty_val v, double *sign)
{
    for (v = ty_raise_unshaped(r, v); ty_raise_is(r, v, TY_OP_NEG); v = ty_raise_unshaped(r, ty_raise_in(r, v, 0)))
        *sign = -*sign;
    return v;
}

static bool rotary_same_cut(const ty_attr *a, const ty_attr *b, uint32_t n)
{
    size_t bytes = sizeof a->lo[0] * n;
    return a->n == b->n && memcmp(a->lo, b->lo, bytes) == 0 && memcmp(a->hi, b->hi, bytes) == 0 &&
           memcmp(a->step, b->step, bytes) == 0;
}

static bool rotary_is_all(const ty_attr *cut, const ty_type *of)
{
    for (int i = 0; i < of->rank; i++)
        if (cut->lo[i] != 0 || cut->hi[i] != of->dim[i] || cut->step[i] != 1)
            return false;
    return true;
}

/* The two are first and second numbers of the pairs of *x: slices along the last axis, behind each other or each
 * between the other's. */
static bool rotary_pair(const ty_raise *r, ty_val first, ty_val second, rotary_rows *x)
{
    if (!ty_raise_is(r, first, TY_OP_SLICE) || !ty_raise_is(r, second, TY_OP_SLICE))
        return false;
    const ty_attr *a = ty_graph_attr(r->g, ty_val_node(first)), *b = ty_graph_attr(r->g, ty_val_node(second));
    x->base = ty_raise_in(r, first, 0);
    if (ty_raise_in(r, second, 0) != x->base || a->n < 1 || !rotary_same_cut(a, b, a->n - 1))
        return false;
    uint32_t last = a->n - 1;
    x->half = ty_graph_type(r->g, first)->dim[last];
    x->adjacent = a->step[last] == 2 && b->step[last] == 2 && b->lo[last] == a->lo[last] + 1;
    bool behind = a->step[last] == 1 && b->step[last] == 1 && b->lo[last] == a->lo[last] + x->half;
    x->cut = *a;
    x->cut.hi[last] = a->lo[last] + 2 * x->half;
    x->cut.step[last] = 1;
    return (x->adjacent || behind) && ty_graph_type(r->g, second)->dim[last] == x->half;
}

static bool rotary_is_rows(const ty_raise *r, ty_val v, const rotary_rows *x)
{
    if (v == x->base)
        return rotary_is_all(&x->cut, ty_graph_type(r->g, v));
    return ty_raise_is(r, v, TY_OP_SLICE) && ty_raise_in(r, v, 0) == x->base &&
           rotary_same_cut(ty_graph_attr(r->g, ty_val_node(v)), &x->cut, x->cut.n);
}

/* v lays two values side by side, so that the last axis holds pairs as *x does once it is known. */
static bool rotary_is_put_together(const ty_raise *r, ty_val v, ty_val part[2], int64_t *width)
{
    if (!ty_raise_is(r, v, TY_OP_CONCAT) || ty_graph_node(r->g, ty_val_node(v))->n_in != 2)
        return false;
    const ty_type *t = ty_graph_type(r->g, v);
    part[0] = ty_raise_in(r, v, 0);
    part[1] = ty_raise_in(r, v, 1);
    *width = t->dim[t->rank - 1] / 2;
    return ty_graph_attr(r->g, ty_val_node(v))->axis == t->rank - 1 &&
           ty_type_same(ty_graph_type(r->g, part[0]), ty_graph_type(r->g, part[1]));
}

static bool rotary_fits(const rotary_rows *x, int64_t width)
{
    return width == (x->adjacent ? 1 : x->half);
}

/* ---- x cos + r sin ---- */

/* r = (sign x1, -sign x0) */
static bool rotary_is_swapped(const ty_raise *r, ty_val v, rotary *m)
{
    ty_val part[2];
    int64_t width;
    double sign[2] = {1, 1};
    if (!rotary_is_put_together(r, rotary_bare(r, v, &sign[0]), part, &width))
        return false;
    sign[1] = sign[0];
    for (int i = 0; i < 2; i++)
        part[i] = rotary_bare(r, part[i], &sign[i]);
    m->sign = sign[0];
    return sign[0] == -sign[1] && rotary_pair(r, part[1], part[0], &m->x) && rotary_fits(&m->x, width);
}

static bool rotary_is_sum(const ty_raise *r, ty_val root, rotary *m)
{
    if (!ty_raise_is(r, root, TY_OP_ADD))
        return false;
    for (int i = 0; i < 8; i++) { /* which term has x, and which factors of the terms are the tables */
        ty_val straight = ty_raise_in(r, root, i & 1), swapped = ty_raise_in(r, root, !(i & 1));
        if (!ty_raise_is(r, straight, TY_OP_MUL) || !ty_raise_is(r, swapped, TY_OP_MUL))
            return false;
        m->whole = ty_raise_in(r, straight, i >> 1 & 1);
        m->cos = ty_raise_in(r, straight, !(i >> 1 & 1));
        m->sin = ty_raise_in(r, swapped, !(i >> 2));
        if (rotary_is_swapped(r, ty_raise_in(r, swapped, i >> 2), m) && rotary_is_rows(r, m->whole, &m->x))
            return true;
    }
    return false;
}

/* ---- both lines ---- */

/* v = sign[0] a b + sign[1] c d: the factors in order. */
static bool rotary_is_line(const ty_raise *r, ty_val v, ty_val factor[4], double sign[2])
{
    v = ty_raise_unshaped(r, v);
    if (!ty_raise_is(r, v, TY_OP_ADD) && !ty_raise_is(r, v, TY_OP_SUB))
        return false;
    sign[0] = 1;
    sign[1] = ty_raise_is(r, v, TY_OP_SUB) ? -1 : 1;
    for (int i = 0; i < 2; i++) {
        ty_val term = rotary_bare(r, ty_raise_in(r, v, i), &sign[i]);
        if (!ty_raise_is(r, term, TY_OP_MUL))
            return false;
        factor[2 * i] = ty_raise_in(r, term, 0);
        factor[2 * i + 1] = ty_raise_in(r, term, 1);
    }
    return true;
}

/* Alike as tables: exporters fold the same cosine twice. */
static bool rotary_same_table(const ty_raise *r, ty_val a, ty_val b)
{
    if (a == b)
        return true;
    if (ty_graph_op(r->g, ty_val_node(a)) == ty_graph_op(r->g, ty_val_node(b)) &&
        (ty_raise_is(r, a, TY_OP_BROADCAST) || ty_raise_is(r, a, TY_OP_RESHAPE)) &&
        ty_type_same(ty_graph_type(r->g, a), ty_graph_type(r->g, b)))
        return rotary_same_table(r, ty_raise_in(r, a, 0), ty_raise_in(r, b, 0));
    const ty_type *type = ty_graph_type(r->g, a);
    const void *x = ty_graph_const_data(r->g, a), *y = ty_graph_const_data(r->g, b);
    return x && y && ty_type_same(type, ty_graph_type(r->g, b)) && memcmp(x, y, ty_type_bytes(type)) == 0;
}

/* One reading of a line: its terms in the order x0, x1, or the other; which factor of each is the part of x. */
typedef struct rotary_line {
    ty_val part[2], table[2]; /* of x0, of x1 */
    double sign[2];
} rotary_line;

static rotary_line rotary_read(const ty_raise *r, const ty_val factor[4], const double sign[2], int how)
{
    rotary_line line;
    for (int side = 0; side < 2; side++) {
        int term = side ^ (how & 1), which = how >> (1 + side) & 1;
        line.sign[side] = sign[term];
        line.part[side] = rotary_bare(r, factor[2 * term + which], &line.sign[side]);
        line.table[side] = factor[2 * term + !which];
    }
    return line;
}

static bool rotary_are_lines(const ty_raise *r, const rotary_line *y0, const rotary_line *y1, rotary *m)
{
    m->cos = y0->table[0];
    m->sin = y0->table[1];
    m->sign = y0->sign[1];
    return y0->part[0] == y1->part[0] && y0->part[1] == y1->part[1] && y0->sign[0] > 0 && y1->sign[1] > 0 &&
           y0->sign[1] == -y1->sign[0] && rotary_same_table(r, m->cos, y1->table[1]) &&
           rotary_same_table(r, m->sin, y1->table[0]) && rotary_pair(r, y0->part[0], y0->part[1], &m->x);
}

static bool rotary_is_both(const ty_raise *r, ty_val root, rotary *m)
{
    ty_val part[2], factor[2][4];
    double sign[2][2];
    int64_t width;
    if (!rotary_is_put_together(r, root, part, &width))
        return false;
    for (int i = 0; i < 2; i++)
        if (!rotary_is_line(r, part[i], factor[i], sign[i]))
            return false;
    m->whole = TY_NONE;
    m->by_pair = true;
    for (int how = 0; how < 64; how++) {
        rotary_line y0 = rotary_read(r, factor[0], sign[0], how & 7), y1 = rotary_read(r, factor[1], sign[1], how >> 3);
        if (rotary_are_lines(r, &y0, &y1, m) && rotary_fits(&m->x, width))
            return true;
    }
    return false;
}

/* ---- the form that all become ---- */

/* Dims of the pairs: those of the rows, the last one split. */
static ty_type rotary_pairs_type(const ty_type *rows, int64_t half, bool adjacent)
{
    ty_type t = *rows;
    t.rank = (uint8_t)(rows->rank + 1);
    t.dim[rows->rank - 1] = adjacent ? half : 2;
    t.dim[rows->rank] = adjacent ? 2 : half;
    return t;
}

/* A table in the dims of the pairs, or so that it stretches to them: what is the same for many rows is not spread out
 * before it must be. */
static ty_val rotary_table(ty_graph *to, ty_val table, const ty_raise_match *m, const ty_type *pairs)
{
    bool stretched = ty_graph_op(to, ty_val_node(table)) == TY_OP_BROADCAST;
    ty_val v = stretched ? ty_graph_in(to, ty_val_node(table), 0) : table;
    const ty_type have = *ty_graph_type(to, v), *full = ty_graph_type(to, table);
    bool by_pair = m->attr.flags & ROTARY_BY_PAIR, adjacent = m->attr.flags & ROTARY_ADJACENT;
    int64_t half = m->attr.groups;
    ty_type t = *pairs;
    if (by_pair)
        t.dim[t.rank - (adjacent ? 1 : 2)] = 1;
    int same = full->rank == t.rank - 1 && have.rank == full->rank ? full->rank - 1 : 0;
    int64_t last = same ? have.dim[have.rank - 1] : 0;
    if (same && (last == 1 || last == (by_pair ? half : 2 * half))) {
        memcpy(t.dim, have.dim, sizeof t.dim[0] * (size_t)same);
        for (int i = t.rank - 2; i < t.rank && last == 1; i++)
            t.dim[i] = 1;
    } else {
        v = table;
    }
    return ty_b_reshape(to, v, t.rank, t.dim);
}

static ty_val rotary_build(ty_graph *to, const ty_raise_match *m, const ty_type *type, const ty_val *in)
{
    bool adjacent = m->attr.flags & ROTARY_ADJACENT;
    ty_val x = ty_b_slice(to, in[0], m->attr.lo, m->attr.hi, m->attr.step);
    if (x == TY_NONE || in[1] == TY_NONE || in[2] == TY_NONE)
        return TY_NONE;
    ty_type pairs = rotary_pairs_type(ty_graph_type(to, x), m->attr.groups, adjacent);
    int axis = pairs.rank - (adjacent ? 1 : 2);
    int64_t dim[2] = {2, 1};
    ty_val one = ty_b_scalar(to, (ty_dtype)pairs.dtype, m->attr.value), other = ty_b_neg(to, one);
    ty_val signs =
        ty_b_concat(to, (ty_val[]){ty_b_reshape(to, one, 1, dim + 1), ty_b_reshape(to, other, 1, dim + 1)}, 2, 0);
    signs = ty_b_reshape(to, signs, adjacent ? 1 : 2, dim);
    ty_val cos = rotary_table(to, in[1], m, &pairs), sin = ty_b_mul(to, rotary_table(to, in[2], m, &pairs), signs);
    ty_val p = ty_b_reshape(to, x, pairs.rank, pairs.dim);
    ty_val y = ty_b_add(to, ty_b_mul(to, p, cos), ty_b_mul(to, ty_b_reverse(to, p, 1u << axis), sin));
    return ty_b_reshape(to, y, type->rank, type->dim);
}

bool ty_raise_rotary(const ty_raise *r, uint32_t node, ty_raise_match *out)
{
    rotary m = {.whole = TY_NONE};
    ty_val root = ty_val_make(node, 0);
    if (!rotary_is_sum(r, root, &m) && !rotary_is_both(r, root, &m))
        return false;
    ty_val stop[4] = {m.x.base, m.cos, m.sin, m.whole};
    const ty_type *base = ty_graph_type(r->g, m.x.base);
    if (!ty_dtype_is_float((ty_dtype)base->dtype) || base->rank == TY_MAX_RANK || m.x.half < 1 ||
        !ty_raise_closed(r, node, stop, m.whole == TY_NONE ? 3 : 4))
        return false;
    *out = (ty_raise_match){.op = TY_OP_ADD, .in = {m.x.base, m.cos, m.sin}, .n_in = 3, .build = rotary_build};
    out->attr = m.x.cut;
    out->attr.groups = m.x.half;
    out->attr.value = m.sign;
    out->attr.flags = (m.x.adjacent ? ROTARY_ADJACENT : 0) | (m.by_pair ? ROTARY_BY_PAIR : 0);
    return true;
}
