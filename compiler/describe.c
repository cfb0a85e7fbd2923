/* describe.c - what a program consists of: units with their work, buffers with their places. See compiler.h.
 *
 * Reads plans only through their public face (plan.h, fuse.h, kernel.h), so that it stays true when passes change:
 * which values share memory is seen from where they lie and when they live, not from what the planner thought.
 */
#include "compiler/ir/attr.h"
#include "compiler/ops/op.h"
#include "compiler/ops/work.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <stdlib.h>
#include <string.h>

/* ---- where from ---- */

ty_phase ty_origin_phase(const char *origin)
{
    if (ty_origin_is_gradient(origin))
        return TY_PHASE_BACKWARD;
    return strcmp(origin, "update") == 0 ? TY_PHASE_UPDATE : TY_PHASE_FORWARD;
}

const char *ty_origin_of_forward(const char *origin)
{
    size_t n = strlen(TY_ORIGIN_GRADIENT);
    while (strncmp(origin, TY_ORIGIN_GRADIENT, n) == 0)
        origin += n;
    return origin;
}

/* ---- kernels ---- */

/* How often something happens that depends on these loop variables. */
static double kernel_times(const ty_kernel *k, uint64_t vars)
{
    double n = 1;
    for (int i = 0; i < k->n_order; i++)
        if (vars >> k->order[i] & 1)
            n *= (double)k->extent[k->order[i]];
    return n;
}

static double kernel_flop(const ty_kernel *k)
{
    double flop = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (k->instr[i].kop == TY_K_OP && ty_dtype_is_float(k->instr[i].dtype) && ty_op_element_flop(k->instr[i].op))
            flop += kernel_times(k, k->instr[i].vars);
    for (int i = 0; i < k->n_reductions; i++)
        flop += kernel_times(k, UINT64_MAX);
    return flop;
}

static bool kernel_is(const ty_kernel *k, uint32_t i, ty_op op)
{
    return k->instr[i].kop == TY_K_OP && k->instr[i].op == op && ty_dtype_is_float(k->instr[i].dtype);
}

/* For each instruction how many instructions, stores and reductions take its value. */
static const uint32_t *kernel_uses(const ty_kernel *k, ty_arena *a)
{
    uint32_t *uses = TY_NEW_ARRAY(a, uint32_t, k->n_instrs + 1);
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const uint32_t in[4] = {k->instr[i].a, k->instr[i].b, k->instr[i].c, k->instr[i].guard};
        for (int n = 0; n < 4; n++)
            uses[in[n] == TY_NONE ? k->n_instrs : in[n]]++;
    }
    for (int i = 0; i < k->n_stores; i++)
        uses[k->store[i].value]++;
    for (int i = 0; i < k->n_reductions; i++)
        uses[k->reduction[i].value]++;
    return uses;
}

/* A product that is only added to something is a part of a fused multiply-add: the one that instruction i adds, or
 * TY_NONE. It must be computed as often as the sum. */
static uint32_t kernel_product(const ty_kernel *k, const uint32_t *uses, uint32_t i)
{
    const ty_kinstr *sum = &k->instr[i];
    const uint32_t in[2] = {sum->a, sum->b};
    for (int n = 0; n < 2 && (kernel_is(k, i, TY_OP_ADD) || kernel_is(k, i, TY_OP_SUB)); n++)
        if (kernel_is(k, in[n], TY_OP_MUL) && uses[in[n]] == 1 && k->instr[in[n]].vars == sum->vars)
            return in[n];
    return TY_NONE;
}

/* Whether a reduction adds up products that nothing else takes: they are in its multiply-adds, and count with it. */
static bool kernel_is_in_sum(const ty_kernel *k, const uint32_t *uses, uint32_t i)
{
    for (int r = 0; r < k->n_reductions; r++)
        if (k->reduction[r].how == TY_SUM && k->reduction[r].value == i)
            return kernel_is(k, i, TY_OP_MUL) && uses[i] == 1;
    return false;
}

typedef struct kernel_count {
    const char *what; /* an op, "fma", or how a reduction combines: "sum" */
    ty_dtype dtype;
    double n;
} kernel_count;

static int kernel_add_count(kernel_count *all, int n, const char *what, ty_dtype dtype, double times)
{
    int i = 0;
    while (i < n && (strcmp(all[i].what, what) != 0 || all[i].dtype != dtype))
        i++;
    all[i] = (kernel_count){what, dtype, times + (i < n ? all[i].n : 0)};
    return i < n ? n : n + 1;
}

static const char *kernel_counts(const ty_kernel *k, ty_arena *a)
{
    const uint32_t *uses = kernel_uses(k, a);
    kernel_count *all = TY_NEW_ARRAY(a, kernel_count, k->n_instrs + (uint32_t)k->n_reductions + 1);
    const char *text = "";
    int n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        uint32_t product = instr->kop == TY_K_OP ? kernel_product(k, uses, i) : TY_NONE;
        double times = kernel_times(k, instr->vars);
        if (product != TY_NONE)
            n = kernel_add_count(all, n, "mul", instr->dtype, -times);
        if (instr->kop == TY_K_OP && !kernel_is_in_sum(k, uses, i))
            n = kernel_add_count(all, n, product != TY_NONE ? "fma" : ty_op_row_of(instr->op)->text, instr->dtype,
                                 times);
    }
    for (int i = 0; i < k->n_reductions; i++)
        n = kernel_add_count(all, n, ty_combine_text[k->reduction[i].how], k->reduction[i].dtype,
                             kernel_times(k, UINT64_MAX));
    for (int i = 0; i < n; i++)
        if (all[i].n > 0)
            text = ty_arena_printf(a, "%s%s%s.%s %.0f", text, *text ? " " : "", all[i].what,
                                   ty_dtype_text(all[i].dtype), all[i].n);
    return text;
}

static void describe_kernel(const ty_unit *u, ty_arena *a, ty_unit_facts *out)
{
    const ty_kernel *k = u->kernel;
    const char *extents = "";
    int n_ops = k->n_reductions;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        n_ops += k->instr[i].kop == TY_K_OP;
    ty_kernel_traffic(k, &out->read_bytes, &out->written_bytes);
    for (int i = 0; i < k->n_order; i++)
        extents = ty_arena_printf(a, "%s%s%lld", extents, i ? " x " : " over ", (long long)k->extent[k->order[i]]);
    out->text = ty_arena_printf(a, "kernel of %d operation%s%s", n_ops, n_ops == 1 ? "" : "s", extents);
    out->flop = kernel_flop(k);
    out->counts = kernel_counts(k, a);
    out->work = k->n_reductions ? TY_WORK_REDUCTION : TY_WORK_ELEMENTWISE;
}

/* ---- library calls, copies ---- */

static void describe_library(const ty_unit *u, const ty_graph *g, ty_arena *a, ty_unit_facts *out)
{
    const ty_node *n = ty_graph_node(g, u->node);
    char type[160];
    out->text = ty_op_row_of((ty_op)n->op)->text;
    for (int i = 0; i < (int)n->n_in; i++) {
        const ty_type *in = ty_graph_type(g, ty_graph_in(g, u->node, i));
        out->read_bytes += ty_fuse_is_implied(g, u->node, i) ? 0 : ty_type_bytes(in);
        out->text = ty_arena_printf(a, "%s %s", out->text, ty_type_text(in, type, sizeof type));
    }
    for (uint32_t i = 0; i < n->n_res; i++)
        out->written_bytes += ty_type_bytes(ty_graph_type(g, ty_val_make(u->node, i)));
    out->flop = ty_node_flop(g, u->node);
    out->work = ty_op_work((ty_op)n->op);
}

static void describe_copied(size_t bytes, ty_unit_facts *out)
{
    out->work = TY_WORK_COPY;
    out->counts = "";
    out->text = bytes > 0 ? "copy" : "parts in place: nothing to do";
    out->read_bytes = out->written_bytes = bytes;
}

/* The parts of a concatenation that were not written where they belong. */
static void describe_assembly(const ty_plan *plan, const ty_unit *u, ty_unit_facts *out)
{
    const ty_graph *g = plan->f->g;
    size_t bytes = 0;
    for (uint32_t i = 0; i < ty_graph_node(g, u->node)->n_in; i++)
        if (!ty_plan_part_in_place(plan, u->node, (int)i))
            bytes += ty_type_bytes(ty_graph_type(g, ty_graph_in(g, u->node, (int)i)));
    describe_copied(bytes, out);
}

/* ---- units ---- */

static void describe_unit(const ty_plan *plan, const ty_unit *u, ty_arena *a, ty_unit_facts *out)
{
    const ty_graph *g = plan->f->g;
    const char *origin = ty_graph_origin_of(g, u->node);
    *out = (ty_unit_facts){.phase = ty_origin_phase(origin), .origin = ty_origin_of_forward(origin), .counts = ""};
    if (u->kind == TY_UNIT_KERNEL)
        describe_kernel(u, a, out);
    else if (u->kind == TY_UNIT_LIBRARY)
        describe_library(u, g, a, out);
    else
        describe_assembly(plan, u, out);
    if (out->phase == TY_PHASE_UPDATE && out->work != TY_WORK_EXCHANGE)
        out->work = TY_WORK_OPTIMIZER;
}

static void describe_units(const ty_plan *plan, ty_arena *a, ty_tape_facts *out)
{
    const ty_graph *g = plan->f->g;
    out->n_units = plan->n_order + plan->n_copies;
    ty_unit_facts *unit = TY_NEW_ARRAY(a, ty_unit_facts, out->n_units + 1);
    for (int at = 0; at < plan->n_order; at++)
        describe_unit(plan, &plan->f->unit[plan->order[at]], a, &unit[at]);
    for (int i = 0; i < plan->n_copies; i++) {
        ty_unit_facts *copy = &unit[plan->n_order + i];
        *copy = (ty_unit_facts){.phase = TY_PHASE_UPDATE, .origin = ty_graph_state(g, plan->copy[i].state)->name};
        describe_copied(ty_type_bytes(ty_graph_type(g, plan->copy[i].value)), copy);
    }
    out->unit = unit;
}

/* ---- buffers ---- */

/* A value in the slab; those that share memory become one buffer. */
typedef struct slab_value {
    ty_val v;
    int64_t offset, end;
    int first, last;
} slab_value;

static int slab_by_offset(const void *a, const void *b)
{
    const slab_value *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->v > y->v) - (x->v < y->v);
}

static slab_value *slab_values(const ty_plan *plan, ty_arena *a, int *n_values)
{
    const ty_graph *g = plan->f->g;
    ty_val n = (ty_val)ty_graph_n_nodes(g) * TY_MAX_RESULTS;
    slab_value *list = TY_NEW_ARRAY(a, slab_value, n + 1);
    *n_values = 0;
    for (ty_val v = 0; v < n; v++) {
        if (plan->place[v].kind != TY_PLACE_SLAB || plan->first[v] < 0)
            continue;
        int64_t offset = plan->place[v].offset, bytes = (int64_t)ty_type_bytes(ty_graph_type(g, v));
        int last = plan->last[v] < plan->n_order ? plan->last[v] : plan->n_order + plan->n_copies;
        list[(*n_values)++] = (slab_value){v, offset, offset + (bytes ? bytes : 1), plan->first[v], last};
    }
    qsort(list, (size_t)*n_values, sizeof *list, slab_by_offset);
    return list;
}

static int slab_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Two values that overlap in memory and in time can only be one and the same buffer. */
static int *slab_join(const slab_value *list, int n, ty_arena *a)
{
    int *parent = TY_NEW_ARRAY(a, int, n + 1);
    for (int i = 0; i < n; i++)
        parent[i] = i;
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n && list[k].offset < list[i].end; k++)
            if (list[k].first <= list[i].last && list[i].first <= list[k].last)
                parent[slab_root(parent, k)] = slab_root(parent, i);
    return parent;
}

static ty_buffer_use describe_use(const ty_tape_facts *t, const ty_buffer_facts *b, const char *origin)
{
    if (strcmp(origin, "gradient") == 0)
        return TY_USE_WEIGHT_GRADIENT;
    ty_phase made = t->unit[b->first].phase;
    if (made == TY_PHASE_BACKWARD)
        return TY_USE_GRADIENT;
    bool kept = made == TY_PHASE_FORWARD && b->last < t->n_units && t->unit[b->last].phase != TY_PHASE_FORWARD;
    return kept ? TY_USE_ACTIVATION : TY_USE_TEMPORARY;
}

/* Joins the values of root i. The largest one gives the name. */
static ty_buffer_facts describe_buffer(const ty_graph *g, const slab_value *list, const int *members, int n,
                                       const ty_tape_facts *t)
{
    const slab_value *largest = &list[members[0]];
    ty_buffer_facts b = {.first = largest->first, .last = largest->last, .offset = largest->offset};
    int64_t end = largest->end;
    for (int i = 0; i < n; i++) {
        const slab_value *v = &list[members[i]];
        b.first = v->first < b.first ? v->first : b.first;
        b.last = v->last > b.last ? v->last : b.last;
        b.offset = v->offset < b.offset ? v->offset : b.offset;
        end = v->end > end ? v->end : end;
        if (v->end - v->offset > largest->end - largest->offset)
            largest = v;
    }
    const char *origin = ty_graph_origin_of(g, ty_val_node(largest->v));
    b.bytes = (end - b.offset + TY_PLAN_ALIGN - 1) / TY_PLAN_ALIGN * TY_PLAN_ALIGN;
    b.type = *ty_graph_type(g, largest->v);
    b.origin = ty_origin_of_forward(origin);
    b.use = describe_use(t, &b, origin);
    return b;
}

static int buffers_by_offset(const void *a, const void *b)
{
    const ty_buffer_facts *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static void describe_buffers(const ty_plan *plan, ty_arena *a, ty_tape_facts *out)
{
    int n = 0;
    slab_value *list = slab_values(plan, a, &n);
    int *parent = slab_join(list, n, a);
    int *start = TY_NEW_ARRAY(a, int, n + 2), *members = TY_NEW_ARRAY(a, int, n + 1);
    for (int i = 0; i < n; i++)
        start[slab_root(parent, i) + 1]++;
    for (int i = 0; i < n; i++)
        start[i + 1] += start[i];
    int *fill = ty_arena_copy(a, start, sizeof *start * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        members[fill[slab_root(parent, i)]++] = i;
    ty_buffer_facts *buffer = TY_NEW_ARRAY(a, ty_buffer_facts, n + 1);
    for (int i = 0; i < n; i++)
        if (start[i + 1] > start[i])
            buffer[out->n_buffers++] =
                describe_buffer(plan->f->g, list, &members[start[i]], start[i + 1] - start[i], out);
    qsort(buffer, (size_t)out->n_buffers, sizeof *buffer, buffers_by_offset);
    out->buffer = buffer;
}

static void describe_peak(ty_arena *a, ty_tape_facts *out)
{
    int64_t *change = TY_NEW_ARRAY(a, int64_t, out->n_units + 3), live = 0;
    for (int i = 0; i < out->n_buffers; i++) {
        change[out->buffer[i].first] += out->buffer[i].bytes;
        change[out->buffer[i].last + 1] -= out->buffer[i].bytes;
    }
    for (int at = 0; at <= out->n_units; at++) {
        live += change[at];
        if (live > out->peak_bytes)
            out->peak_bytes = live, out->peak = at;
    }
}

/* Leaves and views of other values need no call of their own. */
static bool describe_is_call(const ty_graph *g, uint32_t node)
{
    ty_op_class class_ = ty_op_row_of(ty_graph_op(g, node))->class_;
    ty_val v = ty_val_make(node, 0);
    return class_ != TY_CLASS_LEAF && class_ != TY_CLASS_EFFECT && ty_view_of(g, v).base == v;
}

static void describe_unfused(const ty_plan *plan, ty_tape_facts *out)
{
    const ty_graph *g = plan->f->g;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        if (!plan->f->live[id] || !describe_is_call(g, id))
            continue;
        const ty_node *n = ty_graph_node(g, id);
        out->unfused_calls++;
        for (uint32_t i = 0; i < n->n_in; i++)
            if (ty_graph_in(g, id, (int)i) != TY_NONE)
                out->unfused_bytes += (double)ty_type_bytes(ty_graph_type(g, ty_graph_in(g, id, (int)i)));
        for (uint32_t i = 0; i < n->n_res; i++)
            out->unfused_bytes += (double)ty_type_bytes(ty_graph_type(g, ty_val_make(id, i)));
    }
}

int ty_program_describe(const ty_program *p, ty_run run, ty_arena *a, ty_tape_facts *out, ty_error *err)
{
    *out = (ty_tape_facts){0};
    const ty_plan *plan = p->plan[run];
    if (!plan)
        return ty_error_set(err, TY_E_INTERNAL, "this program has no planned tape number %d", (int)run);
    describe_units(plan, a, out);
    describe_buffers(plan, a, out);
    out->slab_bytes = plan->slab_bytes;
    out->bound_bytes = plan->bound_bytes;
    describe_peak(a, out);
    describe_unfused(plan, out);
    return 0;
}

const char *ty_buffer_use_text(ty_buffer_use use)
{
    static const char *const text[TY_N_BUFFER_USES] = {[TY_USE_ACTIVATION] = "activations",
                                                       [TY_USE_TEMPORARY] = "temporaries",
                                                       [TY_USE_GRADIENT] = "gradients of activations",
                                                       [TY_USE_WEIGHT_GRADIENT] = "gradients of weights"};
    return text[use];
}
