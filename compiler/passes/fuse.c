/* fuse.c - see fuse.h. */
#include "compiler/passes/fuse.h"

#include "compiler/ops/op.h"
#include "compiler/ops/work.h"

#include <stdlib.h>
#include <string.h>

#define FUSE_MAX_INSTRS 480
#define FUSE_MAX_ROOTS  24
#define FUSE_WIDE       8 /* inputs */
#define FUSE_GUARDS     4 /* of an element, by which it is known what part it is from */

/* Below 16,384 elements waking more threads does not pay. */
static const ty_fuse_limits fuse_host = {
    .instrs = FUSE_MAX_INSTRS, .buffers = 40, .large = 16384, .columns = TY_COLUMN_BLOCK};
/* Below four million elements another launch and another read cost more than idle multiprocessors; above, nearly all
 * 132 of a large GPU are wanted. */
static const ty_fuse_limits fuse_gpu = {
    .instrs = 400, .buffers = 24, .large = 1 << 22, .units = 128, .columns = 32, .bands = 128};

static ty_fuse_limits fuse_limits(int n_threads)
{
    ty_fuse_limits limits = n_threads == TY_FUSE_GPU ? fuse_gpu : fuse_host;
    limits.units = n_threads > 1 ? 2 * n_threads : limits.units;
    return limits;
}

bool ty_unit_is_exchange(const ty_fusion *f, const ty_unit *u)
{
    return u->kind == TY_UNIT_LIBRARY && ty_op_work(ty_graph_op(f->g, u->node)) == TY_WORK_EXCHANGE;
}

static ty_op_class fuse_class(const ty_graph *g, uint32_t node)
{
    return ty_op_row_of(ty_graph_op(g, node))->class_;
}

bool ty_fuse_is_by_element(const ty_graph *g, uint32_t node)
{
    ty_op_class class_ = fuse_class(g, node);
    return class_ == TY_CLASS_LOOP || class_ == TY_CLASS_ELEMENTWISE;
}

bool ty_fuse_is_inline(const ty_fusion *f, uint32_t node)
{
    return ty_fuse_is_by_element(f->g, node) && !f->in_memory[ty_val_make(node, 0)];
}

/* ---- which values need memory ---- */

static void fuse_pin(ty_fusion *f, ty_val v)
{
    ty_val base = ty_view_of(f->g, v).base;
    f->in_memory[base] = f->pinned[base] = 1;
}

/* Blocks of a concatenation along the slowest axis lie one behind the other: they can be written in place. */
static bool fuse_is_assembly(const ty_graph *g, uint32_t node)
{
    if (ty_graph_op(g, node) != TY_OP_CONCAT || ty_graph_node(g, node)->n_in < 2)
        return false;
    const ty_type *type = ty_graph_type(g, ty_val_make(node, 0));
    for (int64_t i = 0; i < ty_graph_attr(g, node)->axis; i++)
        if (type->dim[i] != 1)
            return false;
    return ty_type_elems(type) >= 1024;
}

bool ty_fuse_is_implied(const ty_graph *g, uint32_t node, int in)
{
    ty_op op = ty_graph_op(g, node);
    if (in != 0 || (op != TY_OP_SCATTER && op != TY_OP_PUT))
        return false;
    ty_val v = ty_graph_in(g, node, 0);
    while (ty_graph_op(g, ty_val_node(v)) == TY_OP_BROADCAST || ty_graph_op(g, ty_val_node(v)) == TY_OP_RESHAPE)
        v = ty_graph_in(g, ty_val_node(v), 0);
    if (ty_graph_op(g, ty_val_node(v)) != TY_OP_CONST)
        return false;
    const char *data = ty_graph_const_data(g, v);
    size_t n = ty_type_bytes(ty_graph_type(g, v));
    for (size_t i = 0; i < n && n <= 64; i++)
        if (data[i])
            return false;
    return n <= 64;
}

ty_val ty_fuse_rows_of(const ty_graph *g, ty_val v)
{
    return ty_graph_op(g, ty_val_node(v)) == TY_OP_SET_ROWS ? ty_graph_in(g, ty_val_node(v), 0) : TY_NONE;
}

static void fuse_pin_operands(ty_fusion *f, uint32_t node)
{
    const ty_node *n = ty_graph_node(f->g, node);
    bool all = fuse_class(f->g, node) == TY_CLASS_LIBRARY || fuse_is_assembly(f->g, node);
    for (uint32_t i = 0; all && i < n->n_in; i++)
        if (!ty_fuse_is_implied(f->g, node, (int)i))
            fuse_pin(f, ty_graph_in(f->g, node, (int)i));
    if (fuse_class(f->g, node) == TY_CLASS_EFFECT)
        fuse_pin(f, ty_graph_in(f->g, node, 0));
    if (ty_fuse_rows_of(f->g, ty_val_make(node, 0)) != TY_NONE) {
        fuse_pin(f, ty_graph_in(f->g, node, 0));
        fuse_pin(f, ty_val_make(node, 0));
    }
}

static void fuse_count_uses(const ty_fusion *f, uint32_t *uses)
{
    for (uint32_t node = 0; node < ty_graph_n_nodes(f->g); node++) {
        if (!f->live[node])
            continue;
        const ty_node *n = ty_graph_node(f->g, node);
        for (uint32_t i = 0; i < n->n_in; i++)
            if (ty_graph_in(f->g, node, (int)i) != TY_NONE)
                uses[ty_graph_in(f->g, node, (int)i)]++;
    }
}

static bool fuse_is_widened(const ty_graph *g, ty_val v)
{
    return ty_graph_op(g, ty_val_node(v)) == TY_OP_CAST && ty_dtype_is_float((ty_dtype)ty_graph_type(g, v)->dtype) &&
           ty_type_bytes(ty_graph_type(g, ty_graph_in(g, ty_val_node(v), 0))) < ty_type_bytes(ty_graph_type(g, v));
}

/* What a broadcast repeats or a cast widens: its memory is the smaller one, and repeating and widening cost nothing
 * (the deviation of a row in a normalisation, which backward needs again; the gradient behind a ReLU in 16 bits). */
static ty_val fuse_smallest(const ty_graph *g, ty_val v)
{
    while (ty_graph_op(g, ty_val_node(v)) == TY_OP_BROADCAST || fuse_is_widened(g, v))
        v = ty_view_of(g, ty_graph_in(g, ty_val_node(v), 0)).base;
    return v;
}

/* A concatenation asks for each element which input it is from, and computes all that are not in memory: with many that
 * are not, no kernel holds it. */
static bool fuse_is_wide(const ty_graph *g, uint32_t node, int64_t cost)
{
    int64_t n_in = ty_graph_node(g, node)->n_in;
    return ty_graph_op(g, node) == TY_OP_CONCAT && n_in >= FUSE_WIDE && cost > 2 * n_in &&
           cost + 4 * n_in > FUSE_MAX_INSTRS / 2;
}

int ty_fuse_guards(const ty_fusion *f, uint32_t node, const int *guards)
{
    const ty_node *n = ty_graph_node(f->g, node);
    int64_t sum = n->op == TY_OP_CONCAT ? n->n_in : n->op == TY_OP_PAD;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ty_val in = ty_graph_in(f->g, node, (int)i);
        if (in != TY_NONE && ty_fuse_is_inline(f, ty_val_node(in)))
            sum += guards[ty_val_node(in)];
    }
    return sum < 1000 ? (int)sum : 1000;
}

static void fuse_put_inputs(ty_fusion *f, uint32_t node)
{
    for (uint32_t i = 0; i < ty_graph_node(f->g, node)->n_in; i++) {
        ty_val base = ty_view_of(f->g, ty_graph_in(f->g, node, (int)i)).base;
        if (ty_fuse_is_by_element(f->g, ty_val_node(base)))
            f->in_memory[base] = 1;
    }
}

/* By value. */
typedef struct fuse_uses {
    uint32_t *n;             /* operands that it is */
    const int64_t *repeats;  /* ty_fuse_find_repeats */
    const int64_t *gathered; /* ty_fuse_find_gathered */
} fuse_uses;

/* Whether v, which costs so many scalar operations, gets memory of its own. */
static bool fuse_keep(ty_fusion *f, ty_val v, int64_t cost, const fuse_uses *uses)
{
    ty_val source = fuse_smallest(f->g, v);
    bool scalar = ty_type_elems(ty_graph_type(f->g, source)) == 1;
    if (ty_fuse_is_gathered(f, v, cost, uses->gathered[v])) {
        fuse_pin(f, v);
        f->whole[v] = 1;
    } else if (ty_fuse_is_repeated(cost, uses->repeats[v]) || cost > FUSE_MAX_INSTRS / 4 ||
               (uses->n[v] > 1 && cost > (scalar ? 64 : TY_FUSE_CHEAP)))
        f->in_memory[source] = 1;
    else
        return false;
    return true;
}

/* Scalar operations below v up to memory; decides in id order which shared values are worth memory. */
static void fuse_decide(ty_fusion *f, uint32_t node, const fuse_uses *uses, int *cost, int *guards)
{
    const ty_graph *g = f->g;
    ty_op_class class_ = fuse_class(g, node);
    ty_val v = ty_val_make(node, 0);
    if (class_ == TY_CLASS_REDUCE || fuse_is_assembly(g, node))
        f->in_memory[v] = 1;
    if (class_ == TY_CLASS_LIBRARY)
        for (uint32_t r = 0; r < ty_graph_node(g, node)->n_res; r++)
            f->in_memory[ty_val_make(node, r)] = 1;
    if (!ty_fuse_is_by_element(g, node))
        return;
    int64_t sum = ty_op_row_of(ty_graph_op(g, node))->weight;
    for (uint32_t i = 0; i < ty_graph_node(g, node)->n_in; i++) {
        ty_val in = ty_graph_in(g, node, (int)i);
        sum += in == TY_NONE || f->in_memory[in] ? 1 : cost[ty_val_node(in)];
    }
    guards[node] = ty_fuse_guards(f, node, guards);
    bool nested =
        guards[node] > FUSE_GUARDS && (ty_graph_op(g, node) == TY_OP_CONCAT || ty_graph_op(g, node) == TY_OP_PAD);
    if (nested || fuse_is_wide(g, node, sum)) {
        fuse_put_inputs(f, node);
        sum = ty_graph_node(g, node)->n_in;
        guards[node] = ty_fuse_guards(f, node, guards);
    }
    if (ty_view_of(g, v).base == v && fuse_keep(f, v, sum, uses))
        sum = 1;
    cost[node] = (int)(sum > 100000 ? 100000 : sum);
}

static void fuse_needs(ty_fusion *f)
{
    uint32_t n = ty_graph_n_nodes(f->g);
    size_t n_vals = (size_t)n * TY_MAX_RESULTS + 1;
    fuse_uses uses = {TY_NEW_ARRAY(&f->arena, uint32_t, n_vals), ty_fuse_find_repeats(f), ty_fuse_find_gathered(f)};
    int *cost = TY_NEW_ARRAY(&f->arena, int, n + 1), *guards = TY_NEW_ARRAY(&f->arena, int, n + 1);
    for (uint32_t node = 0; node < n; node++)
        if (f->live[node])
            fuse_pin_operands(f, node);
    for (int i = 0; i < ty_graph_n_outputs(f->g); i++)
        if (ty_graph_output(f->g, i)->tapes & f->tape)
            fuse_pin(f, ty_graph_output(f->g, i)->val);
    fuse_count_uses(f, uses.n);
    ty_fuse_find_turns(f);
    for (uint32_t node = 0; node < n; node++)
        if (f->live[node])
            fuse_decide(f, node, &uses, cost, guards);
}

/* ---- units ---- */

static ty_kernel *fuse_build(const ty_fusion *f, const ty_unit *u)
{
    ty_kgroup group = {.g = f->g,
                       .in_memory = f->in_memory,
                       .root = u->root,
                       .n_roots = u->n_roots,
                       .reduce = u->reduce,
                       .n_reduces = u->n_reduces,
                       .domain = &u->domain,
                       .reduced_axes = u->reduced_axes,
                       .band_axes = u->band_axes,
                       .max_instrs = FUSE_MAX_INSTRS};
    return ty_kernel_build(&group);
}

static ty_val fuse_load_of(const ty_fusion *f, ty_val in)
{
    ty_val base = ty_view_of(f->g, in).base;
    return ty_graph_op(f->g, ty_val_node(base)) == TY_OP_STATE ? in : base;
}

/* Tables of which it writes rows are read too: what it does not write stays. */
static void fuse_loads_of_kernel(ty_fusion *f, ty_unit *u)
{
    u->load = TY_NEW_ARRAY(&f->arena, ty_val, u->kernel->n_buffers + u->n_roots);
    u->n_loads = 0;
    for (int i = 0; i < u->kernel->n_buffers; i++)
        if (!u->kernel->buffer[i].written)
            u->load[u->n_loads++] = u->kernel->buffer[i].val;
    for (int i = 0; i < u->n_roots; i++)
        if (ty_fuse_rows_of(f->g, u->root[i]) != TY_NONE)
            u->load[u->n_loads++] = fuse_load_of(f, ty_fuse_rows_of(f->g, u->root[i]));
}

static void fuse_loads_of_node(ty_fusion *f, ty_unit *u)
{
    const ty_node *n = ty_graph_node(f->g, u->node);
    u->load = TY_NEW_ARRAY(&f->arena, ty_val, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ty_val in = ty_graph_in(f->g, u->node, (int)i);
        if (in == TY_NONE || ty_fuse_is_implied(f->g, u->node, (int)i))
            continue;
        u->load[u->n_loads++] = fuse_load_of(f, in);
    }
}

static uint32_t fuse_add_unit(ty_fusion *f, const ty_unit *u)
{
    if (f->n_units == f->cap_units) {
        uint32_t cap = f->cap_units ? 2 * f->cap_units : 256;
        ty_unit *grown = TY_NEW_ARRAY(&f->arena, ty_unit, cap);
        if (f->n_units)
            memcpy(grown, f->unit, sizeof *grown * f->n_units);
        f->unit = grown;
        f->cap_units = cap;
    }
    f->unit[f->n_units] = *u;
    for (int i = 0; i < u->n_roots; i++)
        f->producer[u->root[i]] = f->n_units;
    return f->n_units++;
}

static int fuse_add_node(ty_fusion *f, uint32_t node, ty_error *err)
{
    const ty_node *n = ty_graph_node(f->g, node);
    ty_val v = ty_val_make(node, 0);
    ty_op_class class_ = fuse_class(f->g, node);
    ty_unit u = {.kind = TY_UNIT_KERNEL, .node = node};
    u.root = TY_NEW_ARRAY(&f->arena, ty_val, n->n_res);
    for (uint32_t r = 0; r < n->n_res; r++)
        u.root[u.n_roots++] = ty_val_make(node, r);
    if (class_ == TY_CLASS_LIBRARY || fuse_is_assembly(f->g, node)) {
        u.kind = class_ == TY_CLASS_LIBRARY ? TY_UNIT_LIBRARY : TY_UNIT_ASSEMBLY;
        fuse_loads_of_node(f, &u);
        fuse_add_unit(f, &u);
        return 0;
    }
    bool rows = ty_fuse_rows_of(f->g, v) != TY_NONE;
    ty_val over = class_ == TY_CLASS_REDUCE ? ty_graph_in(f->g, node, 0) : rows ? ty_graph_in(f->g, node, 2) : v;
    u.domain = *ty_graph_type(f->g, over);
    if (class_ == TY_CLASS_REDUCE) {
        u.reduce = ty_arena_copy(&f->arena, &node, sizeof node);
        u.n_reduces = 1;
        u.reduced_axes = ty_graph_attr(f->g, node)->axes;
    }
    u.kernel = fuse_build(f, &u);
    if (!u.kernel)
        return ty_error_set(err, TY_E_INTERNAL, "fuse: no kernel for node %u (%s, %s)", node,
                            ty_op_row_of(ty_graph_op(f->g, node))->text, ty_graph_origin_of(f->g, node));
    fuse_loads_of_kernel(f, &u);
    fuse_add_unit(f, &u);
    return 0;
}

static int fuse_units(ty_fusion *f, ty_error *err)
{
    for (uint32_t node = 0; node < ty_graph_n_nodes(f->g); node++) {
        ty_op_class class_ = fuse_class(f->g, node);
        if (!f->live[node] || class_ == TY_CLASS_LEAF || class_ == TY_CLASS_EFFECT)
            continue;
        bool needed = class_ == TY_CLASS_LIBRARY || f->in_memory[ty_val_make(node, 0)];
        if (needed && fuse_add_node(f, node, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- joining ---- */

typedef struct fuse_users {
    uint32_t **unit; /* per value index: units that load it */
    int *n, *cap;
} fuse_users;

static void fuse_users_add(ty_fusion *f, fuse_users *users, ty_val v, uint32_t unit)
{
    if (users->n[v] == users->cap[v]) {
        int cap = users->cap[v] ? 2 * users->cap[v] : 4;
        uint32_t *grown = TY_NEW_ARRAY(&f->arena, uint32_t, cap);
        if (users->n[v])
            memcpy(grown, users->unit[v], sizeof *grown * (size_t)users->n[v]);
        users->unit[v] = grown;
        users->cap[v] = cap;
    }
    users->unit[v][users->n[v]++] = unit;
}

static void fuse_users_drop(fuse_users *users, ty_val v, uint32_t unit)
{
    int n = 0;
    for (int i = 0; i < users->n[v]; i++)
        if (users->unit[v][i] != unit)
            users->unit[v][n++] = users->unit[v][i];
    users->n[v] = n;
}

typedef struct fuse_state {
    ty_fusion *f;
    fuse_users users;
    uint32_t *rank;    /* per unit: its place in an order in which producers come first */
    uint32_t *at;      /* unit by place */
    uint32_t *waiting; /* units yet to be looked at by fuse_cycle */
    uint32_t *seen;    /* per unit: mark of the latest search that came through it */
    uint32_t mark;
} fuse_state;

/* Does a path lead from one of the two over a third unit to the other? Only from the one that comes first, and only
 * over what lies between them: the search goes back from the later one and no further than the earlier, so that its
 * cost does not grow with the graph. Marks what it has seen, the ancestors of the later one that lie between. */
static bool fuse_cycle(fuse_state *s, uint32_t a, uint32_t b)
{
    const ty_fusion *f = s->f;
    uint32_t from = s->rank[a] < s->rank[b] ? a : b, to = from == a ? b : a, n = 0;
    s->mark++;
    s->waiting[n++] = to;
    while (n) {
        uint32_t at = s->waiting[--n];
        const ty_unit *u = &f->unit[at];
        for (int i = 0; i < u->n_loads; i++) {
            uint32_t p = f->producer[u->load[i]];
            if (p == from && at != to)
                return true;
            if (p == TY_NONE || p == at || s->seen[p] == s->mark || s->rank[p] <= s->rank[from])
                continue;
            s->seen[p] = s->mark;
            s->waiting[n++] = p;
        }
    }
    return false;
}

/* Units a and b, between which fuse_cycle has just found no path, become unit a: it takes the place of the earlier one,
 * behind what the later one needs. The dead one goes to the end of the stretch. */
static void fuse_reorder(fuse_state *s, uint32_t a, uint32_t b)
{
    uint32_t first = s->rank[a] < s->rank[b] ? s->rank[a] : s->rank[b];
    uint32_t last = s->rank[a] < s->rank[b] ? s->rank[b] : s->rank[a], n_before = 0, n_behind = 0;
    for (uint32_t r = first + 1; r < last; r++) {
        uint32_t u = s->at[r];
        if (s->seen[u] == s->mark)
            s->at[first + n_before++] = u;
        else
            s->waiting[n_behind++] = u;
    }
    s->at[first + n_before] = a;
    memcpy(&s->at[first + n_before + 1], s->waiting, sizeof *s->at * n_behind);
    s->at[last] = b;
    for (uint32_t r = first; r <= last; r++)
        s->rank[s->at[r]] = r;
}

static bool fuse_only_used_by(const fuse_state *s, ty_val v, uint32_t a, uint32_t b)
{
    for (int i = 0; i < s->users.n[v]; i++)
        if (s->users.unit[v][i] != a && s->users.unit[v][i] != b)
            return false;
    return !s->f->pinned[v];
}

static void fuse_union_lists(ty_fusion *f, const ty_unit *a, const ty_unit *b, ty_unit *out)
{
    out->root = TY_NEW_ARRAY(&f->arena, ty_val, a->n_roots + b->n_roots);
    out->reduce = TY_NEW_ARRAY(&f->arena, uint32_t, a->n_reduces + b->n_reduces);
    for (int i = 0, k = 0; i < a->n_roots || k < b->n_roots;)
        out->root[out->n_roots++] =
            k == b->n_roots || (i < a->n_roots && a->root[i] < b->root[k]) ? a->root[i++] : b->root[k++];
    for (int i = 0, k = 0; i < a->n_reduces || k < b->n_reduces;)
        out->reduce[out->n_reduces++] =
            k == b->n_reduces || (i < a->n_reduces && a->reduce[i] < b->reduce[k]) ? a->reduce[i++] : b->reduce[k++];
}

/* Whether the reader gathers what the writer makes: it must be there whole before, in a kernel of its own. */
static bool fuse_waits_for(const ty_fusion *f, const ty_unit *reader, const ty_unit *writer)
{
    for (int i = 0; i < writer->n_roots; i++)
        for (int k = 0; f->whole[writer->root[i]] && k < reader->n_loads; k++)
            if (reader->load[k] == writer->root[i])
                return true;
    return false;
}

/* A table of which rows are written must be there whole before: not in the same kernel. */
static bool fuse_fills_table(const ty_fusion *f, const ty_unit *u)
{
    for (int i = 0; i < u->n_roots; i++) {
        ty_val table = ty_fuse_rows_of(f->g, u->root[i]);
        for (int k = 0; table != TY_NONE && k < u->n_roots; k++)
            if (ty_view_of(f->g, table).base == u->root[k])
                return true;
    }
    return false;
}

static size_t fuse_bytes(const ty_fusion *f, const ty_val *v, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += ty_type_bytes(ty_graph_type(f->g, v[i]));
    return bytes;
}

/* Whether the other kernel reads no more where it computes the loop itself: nobody else wants what the loop would
 * store (gone), and that is as large as what the loop reads. */
static bool fuse_reads_less(const ty_fusion *f, const ty_unit *loop, const ty_val *gone, int n_gone)
{
    int n = 0;
    for (int i = 0; i < loop->n_roots; i++)
        for (int k = 0; k < n_gone; k++)
            n += loop->root[i] == gone[k];
    return n == loop->n_roots && fuse_bytes(f, loop->load, loop->n_loads) <= fuse_bytes(f, loop->root, n);
}

static int64_t fuse_kernel_units(const ty_fusion *f, const ty_kernel *k)
{
    int64_t n = ty_kernel_n_units(k);
    return k->form == TY_FORM_COLUMNS ? n * TY_COLUMN_BLOCK / f->limits.columns : n;
}

/* A kernel of few rows keeps threads idle; fine for small work, and on a GPU where it is spared work. */
static bool fuse_starves(const ty_fusion *f, const ty_unit *a, const ty_unit *b, const ty_kernel *k, const ty_val *gone,
                         int n_gone)
{
    const ty_unit *both[] = {a, b};
    for (int i = 0; i < 2; i++)
        if (!both[i]->n_reduces && ty_type_elems(&both[i]->domain) > f->limits.large &&
            fuse_kernel_units(f, k) < f->limits.units)
            return !f->on_gpu || !fuse_reads_less(f, both[i], gone, n_gone);
    return false;
}

static bool fuse_is_too_large(const ty_fusion *f, const ty_kernel *k)
{
    return (int)k->n_instrs > f->limits.instrs || k->n_buffers > f->limits.buffers;
}

/* Roots that nobody outside reads lose their memory; returns how many values were taken out (into gone). */
static int fuse_internalise(fuse_state *s, uint32_t a, uint32_t b, ty_unit *u, ty_val *gone)
{
    int n_gone = 0, n = 0;
    for (int i = 0; i < u->n_roots; i++) {
        ty_val v = u->root[i];
        if (fuse_only_used_by(s, v, a, b))
            s->f->in_memory[v] = 0, gone[n_gone++] = v;
        else
            u->root[n++] = v;
    }
    u->n_roots = n;
    return n_gone;
}

static void fuse_replace(fuse_state *s, uint32_t a, uint32_t b, ty_unit *u)
{
    ty_fusion *f = s->f;
    for (int i = 0; i < f->unit[a].n_loads; i++)
        fuse_users_drop(&s->users, f->unit[a].load[i], a);
    for (int i = 0; i < f->unit[b].n_loads; i++)
        fuse_users_drop(&s->users, f->unit[b].load[i], b);
    ty_kernel_free(f->unit[a].kernel);
    ty_kernel_free(f->unit[b].kernel);
    f->unit[b] = (ty_unit){.kind = TY_UNIT_DEAD};
    u->kind = TY_UNIT_KERNEL;
    u->node = ty_val_node(u->root[u->n_roots - 1]);
    fuse_loads_of_kernel(f, u);
    f->unit[a] = *u;
    for (int i = 0; i < u->n_loads; i++)
        fuse_users_add(f, &s->users, u->load[i], a);
    for (int i = 0; i < u->n_roots; i++)
        f->producer[u->root[i]] = a;
}

/* What is computed again in backward must not join what ran in forward, nor come before its turn (remat.h). */
static bool fuse_same_era(const ty_fusion *f, const ty_unit *a, const ty_unit *b)
{
    return f->era[ty_val_node(a->root[0])] == f->era[ty_val_node(b->root[0])];
}

static bool fuse_join(fuse_state *s, uint32_t a, uint32_t b)
{
    ty_fusion *f = s->f;
    const ty_unit ua = f->unit[a], ub = f->unit[b];
    ty_unit u = {.kind = TY_UNIT_KERNEL};
    if (a == b || ua.kind != TY_UNIT_KERNEL || ub.kind != TY_UNIT_KERNEL || !fuse_same_era(f, &ua, &ub) ||
        ty_fuse_is_turned(f, &ua) || ty_fuse_is_turned(f, &ub) || fuse_waits_for(f, &ua, &ub) ||
        fuse_waits_for(f, &ub, &ua) || ua.n_roots + ub.n_roots > FUSE_MAX_ROOTS ||
        ua.kernel->n_instrs + ub.kernel->n_instrs > FUSE_MAX_INSTRS || !ty_fuse_domain(f, &ua, &ub, &u) ||
        fuse_cycle(s, a, b))
        return false;
    fuse_union_lists(f, &ua, &ub, &u);
    if (fuse_fills_table(f, &u))
        return false;
    ty_val gone[FUSE_MAX_ROOTS];
    int n_gone = fuse_internalise(s, a, b, &u, gone);
    u.kernel = u.n_roots ? fuse_build(f, &u) : NULL;
    if (u.kernel && (fuse_starves(f, &ua, &ub, u.kernel, gone, n_gone) || fuse_is_too_large(f, u.kernel))) {
        ty_kernel_free(u.kernel);
        u.kernel = NULL;
    }
    if (!u.kernel) {
        for (int i = 0; i < n_gone; i++)
            f->in_memory[gone[i]] = 1;
        return false;
    }
    fuse_reorder(s, a, b);
    fuse_replace(s, a, b, &u);
    return true;
}

/* Joins unit a with units that read what it stores. */
static bool fuse_consumers(fuse_state *s, uint32_t a)
{
    const ty_unit *u = &s->f->unit[a];
    for (int i = 0; i < u->n_roots; i++) {
        ty_val v = u->root[i];
        for (int k = 0; k < s->users.n[v] && k < 16; k++)
            if (fuse_join(s, a, s->users.unit[v][k]))
                return true;
    }
    return false;
}

/* Joins unit a with others that read the same memory. */
static bool fuse_siblings(fuse_state *s, uint32_t a)
{
    const ty_unit *u = &s->f->unit[a];
    for (int i = 0; i < u->n_loads; i++) {
        ty_val v = u->load[i];
        if (ty_type_elems(ty_graph_type(s->f->g, v)) < 64)
            continue; /* nothing to save */
        for (int k = 0; k < s->users.n[v] && k < 16; k++)
            if (fuse_join(s, a, s->users.unit[v][k]))
                return true;
    }
    return false;
}

static void fuse_joining(fuse_state *s, bool (*how)(fuse_state *, uint32_t), bool reductions_only)
{
    for (uint32_t a = 0; a < s->f->n_units; a++)
        while (s->f->unit[a].kind == TY_UNIT_KERNEL && (!reductions_only || s->f->unit[a].n_reduces) && how(s, a))
            ;
}

static void fuse_join_all(ty_fusion *f)
{
    size_t n_vals = (size_t)ty_graph_n_nodes(f->g) * TY_MAX_RESULTS + 1;
    fuse_state s = {.f = f,
                    .users = {TY_NEW_ARRAY(&f->arena, uint32_t *, n_vals), TY_NEW_ARRAY(&f->arena, int, n_vals),
                              TY_NEW_ARRAY(&f->arena, int, n_vals)},
                    .rank = TY_NEW_ARRAY(&f->arena, uint32_t, f->n_units + 1),
                    .at = TY_NEW_ARRAY(&f->arena, uint32_t, f->n_units + 1),
                    .waiting = TY_NEW_ARRAY(&f->arena, uint32_t, f->n_units + 1),
                    .seen = TY_NEW_ARRAY(&f->arena, uint32_t, f->n_units + 1)};
    for (uint32_t u = 0; u < f->n_units; u++)
        s.rank[u] = s.at[u] = u; /* units were made in the order of nodes */
    for (uint32_t a = 0; a < f->n_units; a++)
        for (int i = 0; i < f->unit[a].n_loads; i++)
            fuse_users_add(f, &s.users, f->unit[a].load[i], a);
    fuse_joining(&s, fuse_consumers, true);
    fuse_joining(&s, fuse_consumers, false);
    fuse_joining(&s, fuse_siblings, false);
    fuse_joining(&s, fuse_consumers, false);
}

static void fuse_eras(ty_fusion *f)
{
    f->era = TY_NEW_ARRAY(&f->arena, int, ty_graph_n_nodes(f->g) + 1);
    for (uint32_t id = 0; id < ty_graph_n_nodes(f->g); id++) {
        int era = ty_graph_op(f->g, id) == TY_OP_AGAIN ? (int)ty_graph_attr(f->g, id)->index : 0;
        for (uint32_t i = 0; i < ty_graph_node(f->g, id)->n_in; i++) {
            ty_val in = ty_graph_in(f->g, id, (int)i);
            era = in != TY_NONE && f->era[ty_val_node(in)] > era ? f->era[ty_val_node(in)] : era;
        }
        f->era[id] = era;
    }
}

int ty_pass_fuse(const ty_graph *g, uint32_t tape, int n_threads, ty_fusion **out, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_fusion *f = TY_NEW(&arena, ty_fusion);
    f->arena = arena;
    f->g = g;
    f->tape = tape;
    f->on_gpu = n_threads == TY_FUSE_GPU;
    f->limits = fuse_limits(n_threads);
    size_t n_nodes = ty_graph_n_nodes(g), n_vals = n_nodes * TY_MAX_RESULTS + 1;
    f->live = TY_NEW_ARRAY(&f->arena, uint8_t, n_nodes + 1);
    f->in_memory = TY_NEW_ARRAY(&f->arena, uint8_t, n_vals);
    f->pinned = TY_NEW_ARRAY(&f->arena, uint8_t, n_vals);
    f->whole = TY_NEW_ARRAY(&f->arena, uint8_t, n_vals);
    f->producer = TY_NEW_ARRAY(&f->arena, uint32_t, n_vals);
    memset(f->producer, 0xFF, sizeof *f->producer * n_vals);
    ty_graph_mark_live(g, tape, f->live);
    fuse_eras(f);
    fuse_needs(f);
    ty_fuse_again(f);
    if (fuse_units(f, err) < 0) {
        ty_fusion_free(f);
        return -1;
    }
    fuse_join_all(f);
    *out = f;
    return 0;
}

void ty_fusion_free(ty_fusion *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n_units; i++)
        ty_kernel_free(f->unit[i].kernel);
    ty_arena arena = f->arena;
    ty_arena_fini(&arena);
}
