/* build.c - writes a fused group as one kernel.
 *
 * Each stored value and each reduction is evaluated backwards from its position in the loop nest: movement ops turn
 * into arithmetic on the position, elementwise ops into instructions, values in memory into loads. A position is either
 * one index for each axis or one flat index, whichever the ops on the way keep; reshapes keep the flat one.
 *
 * The level of a value counts the reductions of this kernel below it. Level L values over the whole domain live in
 * stage 2 L, scalars of a row that need the reductions of level L - 1 in stage 2 L - 1. Sums of columns are the last
 * stage of all; nothing but their stores needs them.
 */
#include "compiler/kernel/build.h"

#include "compiler/ops/op.h"

#include <string.h>

static bool kb_is_leaf(ty_op op)
{
    return op == TY_OP_INPUT || op == TY_OP_STATE || op == TY_OP_CONST;
}

static bool kb_is_root(const ty_kb *b, ty_val v)
{
    for (int i = 0; i < b->group->n_roots; i++)
        if (b->group->root[i] == v)
            return true;
    return false;
}

static int kb_reduction_of(const ty_kb *b, uint32_t node)
{
    for (int i = 0; i < b->group->n_reduces; i++)
        if (b->group->reduce[i] == node)
            return i;
    return -1;
}

/* A stretch of a flat state is a buffer of its own: who reads which stretch decides when a part of the state may be
 * overwritten (compiler/passes/order.c). */
static bool kb_is_stretch(const ty_graph *g, ty_val v)
{
    uint32_t node = ty_val_node(v);
    return ty_graph_op(g, node) == TY_OP_SLICE && ty_graph_op(g, ty_val_node(ty_graph_in(g, node, 0))) == TY_OP_STATE &&
           ty_graph_type(g, v)->rank == 1 && ty_graph_attr(g, node)->step[0] == 1;
}

/* True if v is loaded, not computed, inside this kernel. */
static bool kb_is_loaded(const ty_kb *b, ty_val v)
{
    ty_op op = ty_graph_op(b->group->g, ty_val_node(v));
    if (kb_is_leaf(op) || kb_is_stretch(b->group->g, v))
        return true;
    if (kb_is_root(b, v) || kb_reduction_of(b, ty_val_node(v)) >= 0)
        return false;
    return b->group->in_memory[ty_val_node(v) * TY_MAX_RESULTS + ty_val_result(v)];
}

uint32_t ty_kb_push(ty_kb *b, ty_kinstr instr)
{
    ty_kernel *k = b->k;
    if ((int)k->n_instrs >= b->group->max_instrs) {
        b->failed = true;
        return TY_NONE;
    }
    if (k->n_instrs == k->cap_instrs) {
        uint32_t cap = k->cap_instrs ? 2 * k->cap_instrs : 64;
        ty_kinstr *grown = TY_NEW_ARRAY(&k->arena, ty_kinstr, cap);
        if (k->n_instrs)
            memcpy(grown, k->instr, sizeof *grown * k->n_instrs);
        k->instr = grown;
        k->cap_instrs = cap;
    }
    instr.stage = b->stage;
    k->instr[k->n_instrs] = instr;
    return k->n_instrs++;
}

uint64_t ty_kb_vars(const ty_kb *b, uint32_t instr)
{
    return instr == TY_NONE ? 0 : b->k->instr[instr].vars;
}

uint32_t ty_kb_op(ty_kb *b, ty_op op, ty_dtype dtype, uint32_t x, uint32_t y, uint32_t z)
{
    if (b->failed)
        return TY_NONE;
    return ty_kb_push(b, (ty_kinstr){.kop = TY_K_OP,
                                     .op = op,
                                     .dtype = dtype,
                                     .a = x,
                                     .b = y,
                                     .c = z,
                                     .guard = TY_NONE,
                                     .vars = ty_kb_vars(b, x) | ty_kb_vars(b, y) | ty_kb_vars(b, z)});
}

uint32_t ty_kb_and(ty_kb *b, uint32_t guard, uint32_t more)
{
    return guard == TY_NONE ? more : ty_kb_op(b, TY_OP_AND, TY_BOOL, guard, more, TY_NONE);
}

static uint32_t kb_buffer(ty_kb *b, ty_val v)
{
    ty_kernel *k = b->k;
    for (int i = 0; i < k->n_buffers; i++)
        if (k->buffer[i].val == v)
            return (uint32_t)i;
    if (k->n_buffers == k->cap_buffers) {
        int cap = k->cap_buffers ? 2 * k->cap_buffers : 16;
        ty_kbuffer *grown = TY_NEW_ARRAY(&k->arena, ty_kbuffer, cap);
        if (k->n_buffers)
            memcpy(grown, k->buffer, sizeof *grown * (size_t)k->n_buffers);
        k->buffer = grown;
        k->cap_buffers = cap;
    }
    const ty_type *type = ty_graph_type(b->group->g, v);
    uintptr_t constant = (uintptr_t)ty_graph_const_data(b->group->g, v);
    k->buffer[k->n_buffers] = (ty_kbuffer){.val = v,
                                           .dtype = (ty_dtype)type->dtype,
                                           .unaligned = constant % ty_dtype_bytes((ty_dtype)type->dtype) != 0,
                                           .span_elems = ty_type_elems(type)};
    return (uint32_t)k->n_buffers++;
}

ty_ix ty_kb_flat(ty_kb *b, const ty_kpos *pos, const ty_type *type)
{
    if (pos->flat)
        return pos->v[0];
    ty_ix sum = ty_ix_const(&b->k->ix, 0);
    int64_t stride = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        sum = ty_ix_add(&b->k->ix, sum, ty_ix_mul(&b->k->ix, pos->v[i], stride));
        stride *= type->dim[i];
    }
    return sum;
}

ty_kpos ty_kb_vector(ty_kb *b, const ty_kpos *pos, const ty_type *type)
{
    if (!pos->flat)
        return *pos;
    ty_kpos vector = {.flat = false};
    int64_t stride = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        vector.v[i] = ty_ix_mod(&b->k->ix, ty_ix_div(&b->k->ix, pos->v[0], stride), type->dim[i] ? type->dim[i] : 1);
        stride *= type->dim[i] ? type->dim[i] : 1;
    }
    return vector;
}

ty_kpos ty_kb_flat_pos(ty_ix flat)
{
    return (ty_kpos){.flat = true, .v = {flat}};
}

static uint32_t kb_const(ty_kb *b, ty_val v)
{
    const ty_type *type = ty_graph_type(b->group->g, v);
    const void *data = ty_graph_const_data(b->group->g, v);
    ty_kinstr instr = {
        .kop = TY_K_CONST, .dtype = (ty_dtype)type->dtype, .a = TY_NONE, .b = TY_NONE, .c = TY_NONE, .guard = TY_NONE};
    ty_scalar_read((ty_dtype)type->dtype, data, &instr.imm, &instr.imm_int);
    return ty_kb_push(b, instr);
}

/* What lies in memory with or without the guard is loaded without it, if that is little more, or what many points
 * share: a row's number for its padded end too, the padded end itself of rows that lie padded. */
static bool kb_needs_guard(ty_kb *b, uint32_t guard, const ty_type *type, ty_ix *addr)
{
    ty_ix plain;
    int64_t hi;
    if (guard == TY_NONE || !ty_ix_unlimited(&b->k->ix, *addr, b->k->extent, &plain, &hi) ||
        hi >= ty_type_elems(type) || (plain == *addr && ty_ix_at(&b->k->ix, plain)->vars & ty_kb_vars(b, guard)))
        return true;
    *addr = plain;
    return false;
}

static uint32_t kb_load(ty_kb *b, ty_val v, const ty_kpos *pos, uint32_t guard)
{
    const ty_type *type = ty_graph_type(b->group->g, v);
    if (ty_graph_op(b->group->g, ty_val_node(v)) == TY_OP_CONST && ty_type_elems(type) == 1)
        return kb_const(b, v);
    ty_ix addr = ty_kb_flat(b, pos, type);
    if (!kb_needs_guard(b, guard, type, &addr))
        guard = TY_NONE;
    return ty_kb_push(b, (ty_kinstr){.kop = TY_K_LOAD,
                                     .dtype = (ty_dtype)type->dtype,
                                     .a = TY_NONE,
                                     .b = TY_NONE,
                                     .c = TY_NONE,
                                     .guard = guard,
                                     .buffer = kb_buffer(b, v),
                                     .addr = addr,
                                     .vars = ty_ix_at(&b->k->ix, addr)->vars | ty_kb_vars(b, guard)});
}

static uint32_t kb_push_result(ty_kb *b, int reduction, ty_dtype dtype, uint64_t vars)
{
    return ty_kb_push(b, (ty_kinstr){.kop = TY_K_RESULT,
                                     .dtype = dtype,
                                     .a = TY_NONE,
                                     .b = TY_NONE,
                                     .c = TY_NONE,
                                     .guard = TY_NONE,
                                     .reduction = (uint32_t)reduction,
                                     .vars = vars});
}

/* Is a position of a reduction's result this very row? Rows of bands have two variables, where the result may have one
 * axis: they are compared by number. */
static bool kb_is_this_row(ty_kb *b, const ty_kpos *pos, const ty_type *type)
{
    const ty_type *d = b->group->domain;
    if (b->k->form == TY_FORM_BANDS) {
        ty_kpos row = {.v = {b->var[0], b->var[1]}};
        const ty_type rows = {.rank = 2, .dim = {d->dim[0], d->dim[1]}};
        return ty_kb_flat(b, pos, type) == ty_kb_flat(b, &row, &rows);
    }
    ty_kpos at = ty_kb_vector(b, pos, type);
    int axis = 0;
    for (int var = 0; var < d->rank; var++)
        if (!(b->group->reduced_axes >> var & 1) && (axis >= type->rank || at.v[axis++] != b->var[var]))
            return false;
    return true;
}

/* The position of a reduction's result must be this very row, and the result be there: else a later row would be
 * needed. */
static uint32_t kb_result(ty_kb *b, int reduction, ty_val v, const ty_kpos *pos)
{
    const ty_type *type = ty_graph_type(b->group->g, v);
    const ty_kreduction *red = &b->k->reduction[reduction];
    if (!kb_is_this_row(b, pos, type) || red->columns || red->stage >= b->stage) {
        b->failed = true;
        return TY_NONE;
    }
    return kb_push_result(b, reduction, (ty_dtype)type->dtype, b->k->outer);
}

/* ---- memory of what was evaluated: (value, position, guard, stage) -> instruction ----
 *
 * Most groups that fusion asks about are small, and it asks thousands of times: both tables begin small and double as
 * they fill, up to b->table_most entries, of which half may be used. */

enum { KB_FIRST_ENTRIES = 64 };

static uint64_t kb_key_hash(ty_val v, const ty_kpos *pos, uint32_t guard, int stage)
{
    uint64_t h = v * 0x9E3779B97F4A7C15ull + guard + ((uint64_t)stage << 40) + pos->flat;
    for (int i = 0; i < TY_MAX_RANK; i++)
        h = (h ^ pos->v[i]) * 0xD6E8FEB86659FD93ull, h ^= h >> 32;
    return h;
}

static ty_kmemo *kb_memo_at(const ty_kb *b, ty_val v, const ty_kpos *pos, uint32_t guard, int stage)
{
    uint32_t at = (uint32_t)kb_key_hash(v, pos, guard, stage) & (b->memo_cap - 1);
    for (;; at = (at + 1) & (b->memo_cap - 1)) {
        ty_kmemo *m = &b->memo[at];
        if (!m->used || (m->v == v && m->guard == guard && m->stage == stage && memcmp(&m->pos, pos, sizeof *pos) == 0))
            return m;
    }
}

static ty_kmemo *kb_memo(const ty_kb *b, ty_val v, const ty_kpos *pos, uint32_t guard)
{
    return kb_memo_at(b, v, pos, guard, b->stage);
}

static void kb_memo_grow(ty_kb *b)
{
    const ty_kmemo *old = b->memo;
    uint32_t n = b->memo_cap;
    b->memo_cap = n ? 2 * n : KB_FIRST_ENTRIES;
    b->memo = TY_NEW_ARRAY(&b->scratch, ty_kmemo, b->memo_cap);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].used)
            *kb_memo_at(b, old[i].v, &old[i].pos, old[i].guard, old[i].stage) = old[i];
}

/* Room for one more; false: there may be no more. */
static bool kb_memo_room(ty_kb *b)
{
    if (++b->n_memo * 2 > b->table_most)
        return false;
    if (b->n_memo * 2 > b->memo_cap)
        kb_memo_grow(b);
    return true;
}

uint32_t ty_kb_eval(ty_kb *b, ty_val v, const ty_kpos *given, uint32_t guard)
{
    if (b->failed || v == TY_NONE)
        return TY_NONE;
    ty_kpos pos = *given;
    const ty_type *type = ty_graph_type(b->group->g, v);
    if (ty_type_elems(type) == 1)
        pos = ty_kb_flat_pos(ty_ix_const(&b->k->ix, 0));
    ty_kmemo *memo = kb_memo(b, v, &pos, guard);
    if (memo->used)
        return memo->instr;
    if (!kb_memo_room(b) || ++b->depth > 400) {
        b->failed = true;
        return TY_NONE;
    }
    uint32_t instr, node = ty_val_node(v);
    int reduction = kb_reduction_of(b, node);
    ty_kscalar_fn *scalar = ty_kscalar_of(ty_graph_op(b->group->g, node));
    if (kb_is_loaded(b, v))
        instr = kb_load(b, v, &pos, guard);
    else if (reduction >= 0)
        instr = kb_result(b, reduction, v, &pos);
    else if (scalar)
        instr = scalar(b, node, &pos, guard);
    else
        instr = TY_NONE, b->failed = true;
    b->depth--;
    memo = kb_memo(b, v, &pos, guard); /* the table may have filled in between */
    *memo = (ty_kmemo){true, v, pos, guard, b->stage, instr};
    return instr;
}

/* ---- levels ---- */

/* Where the node is or belongs. */
static ty_klevel *kb_level_at(const ty_kb *b, uint32_t node)
{
    uint32_t at = (node * 0x9E3779B9u) & (b->level_cap - 1);
    while (b->level[at].node != TY_NONE && b->level[at].node != node)
        at = (at + 1) & (b->level_cap - 1);
    return &b->level[at];
}

static void kb_level_grow(ty_kb *b)
{
    const ty_klevel *old = b->level;
    uint32_t n = b->level_cap;
    b->level_cap = n ? 2 * n : KB_FIRST_ENTRIES;
    b->level = TY_NEW_ARRAY(&b->scratch, ty_klevel, b->level_cap);
    for (uint32_t i = 0; i < b->level_cap; i++)
        b->level[i].node = TY_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].node != TY_NONE)
            *kb_level_at(b, old[i].node) = old[i];
}

static bool kb_level_room(ty_kb *b)
{
    if (++b->n_levels * 2 > b->table_most)
        return false;
    if (b->n_levels * 2 > b->level_cap)
        kb_level_grow(b);
    return true;
}

static int kb_level(ty_kb *b, ty_val v)
{
    uint32_t node = ty_val_node(v);
    if (kb_is_loaded(b, v))
        return 0;
    const ty_klevel *known = kb_level_at(b, node);
    if (known->node == node)
        return known->level;
    if (!kb_level_room(b) || b->depth > 400) {
        b->failed = true;
        return 0;
    }
    int level = 0;
    b->depth++;
    const ty_node *n = ty_graph_node(b->group->g, node);
    for (uint32_t i = 0; i < n->n_in && !b->failed; i++) {
        ty_val in = ty_graph_in(b->group->g, node, (int)i);
        int below = in == TY_NONE ? 0 : kb_level(b, in);
        level = below > level ? below : level;
    }
    b->depth--;
    level += kb_reduction_of(b, node) >= 0;
    *kb_level_at(b, node) = (ty_klevel){node, level};
    return level;
}

/* ---- the parts of the kernel ---- */

static void kb_vars(ty_kb *b)
{
    const ty_type *d = b->group->domain;
    ty_kernel *k = b->k;
    k->n_vars = k->n_order = d->rank;
    for (int i = 0; i < d->rank; i++) {
        k->extent[i] = d->dim[i];
        k->order[i] = i;
        b->var[i] = ty_ix_var(&k->ix, (uint32_t)i, d->dim[i]);
        if (!(b->group->reduced_axes >> i & 1))
            k->outer |= 1ull << i;
    }
    bool keeps_last = d->rank && k->outer >> (d->rank - 1) & 1;
    k->form = b->group->band_axes                    ? TY_FORM_BANDS
              : b->group->reduced_axes && keeps_last ? TY_FORM_COLUMNS
                                                     : TY_FORM_ROWS;
}

/* BANDS: which of both kinds a reduction is. */
static bool kb_sums_columns(const ty_kb *b, uint32_t node)
{
    const ty_graph *g = b->group->g;
    return b->group->band_axes && ty_graph_attr(g, node)->axes == b->group->band_axes &&
           ty_type_same_shape(ty_graph_type(g, ty_graph_in(g, node, 0)), b->group->domain);
}

/* Position over the domain without some axes, in the shape of `type`. */
static ty_kpos kb_position(ty_kb *b, const ty_type *type, uint32_t without)
{
    const ty_type *d = b->group->domain;
    ty_kpos vector = {.flat = false};
    ty_type shape = {.rank = 0};
    for (int i = 0; i < d->rank; i++) {
        if (without >> i & 1)
            continue;
        vector.v[shape.rank] = b->var[i];
        shape.dim[shape.rank++] = d->dim[i];
    }
    if (ty_type_same_shape(&shape, type))
        return vector;
    return ty_kb_flat_pos(ty_kb_flat(b, &vector, &shape));
}

static void kb_reduce(ty_kb *b, int which)
{
    ty_kernel *k = b->k;
    uint32_t node = b->group->reduce[which];
    ty_val in = ty_graph_in(b->group->g, node, 0);
    int level = kb_level(b, in);
    if (b->failed || (k->form == TY_FORM_COLUMNS && level > 0)) {
        b->failed = true;
        return;
    }
    b->stage = 2 * level;
    ty_kpos pos = kb_position(b, ty_graph_type(b->group->g, in), 0);
    uint32_t value = ty_kb_eval(b, in, &pos, TY_NONE);
    const ty_type *type = ty_graph_type(b->group->g, ty_val_make(node, 0));
    k->reduction[which] = (ty_kreduction){.how = (ty_combine)ty_graph_attr(b->group->g, node)->mode,
                                          .dtype = (ty_dtype)type->dtype,
                                          .value = value,
                                          .stage = b->stage,
                                          .columns = kb_sums_columns(b, node)};
    k->n_reductions = which + 1;
}

/* In the stage that is being filled, into the root's memory. */
static void kb_add_store(ty_kb *b, ty_val root, ty_kstore store)
{
    store.buffer = kb_buffer(b, root);
    store.stage = b->stage;
    b->k->buffer[store.buffer].written = true;
    b->k->store[b->k->n_stores++] = store;
}

static void kb_store(ty_kb *b, ty_val root)
{
    ty_kernel *k = b->k;
    const ty_type *type = ty_graph_type(b->group->g, root);
    int64_t domain = ty_type_elems(b->group->domain), rows = 1;
    for (int i = 0; i < b->group->domain->rank; i++)
        rows *= b->group->reduced_axes >> i & 1 ? 1 : b->group->domain->dim[i];
    bool is_reduce = kb_reduction_of(b, ty_val_node(root)) >= 0;
    bool row = is_reduce || (ty_type_elems(type) != domain && ty_type_elems(type) == rows);
    int level = kb_level(b, root);
    if (!row && (ty_type_elems(type) != domain || (k->form == TY_FORM_COLUMNS && level > 0))) {
        b->failed = true;
        return;
    }
    b->stage = row && b->group->reduced_axes ? (level ? 2 * level - 1 : 1) : 2 * level;
    ty_kpos pos = kb_position(b, type, row ? b->group->reduced_axes : 0);
    uint32_t value = ty_kb_eval(b, root, &pos, TY_NONE);
    if (b->failed)
        return;
    kb_add_store(b, root, (ty_kstore){.value = value, .guard = TY_NONE, .addr = ty_kb_flat(b, &pos, type), .row = row});
}

static bool kb_is_column_sum(const ty_kb *b, ty_val root)
{
    int reduction = kb_reduction_of(b, ty_val_node(root));
    return reduction >= 0 && b->k->reduction[reduction].columns;
}

static void kb_store_column_sum(ty_kb *b, ty_val root)
{
    ty_kernel *k = b->k;
    const ty_type *type = ty_graph_type(b->group->g, root);
    ty_kpos pos = kb_position(b, type, b->group->band_axes);
    ty_ix addr = ty_kb_flat(b, &pos, type);
    uint32_t value =
        kb_push_result(b, kb_reduction_of(b, ty_val_node(root)), (ty_dtype)type->dtype, ty_ix_at(&k->ix, addr)->vars);
    kb_add_store(b, root, (ty_kstore){.value = value, .guard = TY_NONE, .addr = addr, .row = true});
}

static int kb_count_stages(const ty_kernel *k)
{
    int n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        n = k->instr[i].stage >= n ? k->instr[i].stage + 1 : n;
    return n;
}

/* Behind all else. */
static void kb_store_column_sums(ty_kb *b)
{
    b->stage = kb_count_stages(b->k) | 1;
    for (int i = 0; i < b->group->n_roots; i++)
        if (kb_is_column_sum(b, b->group->root[i]))
            kb_store_column_sum(b, b->group->root[i]);
}

/* Rows of a table, stored where a list says: the loop nest is over the new rows. The rest of the table is there
 * already, since the result lies over the operand or a copy of it (compiler/passes/order.c, compiler/target/cpu/cpu.c).
 */
static void kb_store_rows(ty_kb *b, ty_val root)
{
    const ty_graph *g = b->group->g;
    uint32_t node = ty_val_node(root);
    const ty_type *type = ty_graph_type(g, root), *update = ty_graph_type(g, ty_graph_in(g, node, 2));
    if (b->group->n_reduces || !ty_type_same_shape(update, b->group->domain)) {
        b->failed = true;
        return;
    }
    b->stage = 0;
    ty_kpos pos = kb_position(b, update, 0), at = pos;
    uint32_t guard = ty_kb_row(b, ty_graph_in(g, node, 1), pos.v[0], type->dim[0], &at.v[0]);
    uint32_t value = ty_kb_eval(b, ty_graph_in(g, node, 2), &pos, TY_NONE);
    if (b->failed)
        return;
    kb_add_store(b, root, (ty_kstore){.value = value, .guard = guard, .addr = ty_kb_flat(b, &at, type)});
}

static void kb_tables(ty_kb *b)
{
    b->table_most = 256;
    while (b->table_most < (uint32_t)(4 * b->group->max_instrs))
        b->table_most *= 2;
    kb_memo_grow(b);
    kb_level_grow(b);
}

static void kb_fill(ty_kb *b)
{
    ty_kernel *k = b->k;
    kb_vars(b);
    k->reduction = TY_NEW_ARRAY(&k->arena, ty_kreduction, b->group->n_reduces);
    k->store = TY_NEW_ARRAY(&k->arena, ty_kstore, b->group->n_roots);
    for (int i = 0; i < b->group->n_reduces && !b->failed; i++)
        kb_reduce(b, i);
    for (int i = 0; i < b->group->n_roots && !b->failed; i++)
        if (ty_graph_op(b->group->g, ty_val_node(b->group->root[i])) == TY_OP_SET_ROWS)
            kb_store_rows(b, b->group->root[i]);
        else if (!kb_is_column_sum(b, b->group->root[i]))
            kb_store(b, b->group->root[i]);
    if (k->form == TY_FORM_BANDS && !b->failed)
        kb_store_column_sums(b);
    k->n_stages = kb_count_stages(k);
    b->failed |= k->ix.overflow || k->n_stages == 0;
}

ty_kernel *ty_kernel_build(const ty_kgroup *group)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_kernel *k = TY_NEW(&arena, ty_kernel);
    k->arena = arena;
    ty_ix_init(&k->ix, &k->arena);
    ty_kb b = {.group = group, .k = k};
    ty_arena_init(&b.scratch);
    kb_tables(&b);
    kb_fill(&b);
    ty_arena_fini(&b.scratch);
    if (b.failed) {
        ty_kernel_free(k);
        return NULL;
    }
    k->origin = ty_graph_origin_of(group->g, ty_val_node(group->root[0]));
    ty_kernel_merge_vars(k);
    return k;
}

void ty_kernel_free(ty_kernel *k)
{
    if (!k)
        return;
    ty_arena arena = k->arena; /* the kernel lies in its own arena */
    ty_arena_fini(&arena);
}
