/* check.c - a run in which every value is looked at. See compiler.h: "what is not finite".
 *
 * Compiled programs run call by call. Before a call, operands that it may overwrite are copied; after it, what it has
 * written is counted. Only if something is bad are the operands looked at, and only if none of them explains it is the
 * call a find. Then the operations of its kernel run one by one in the interpreter, on the very bytes the kernel read.
 */
#include "compiler/ops/op.h"
#include "compiler/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An operand as it was before the call. */
typedef struct check_copy {
    ty_val v;
    char *bytes;
} check_copy;

enum { CHECK_MAX_COPIES = 64 };

/* Elements of a value up to which the operations of a kernel are computed one by one. */
#define CHECK_TRACE_ELEMS 50000000

typedef struct checker {
    ty_program *p;
    ty_run run;
    const ty_plan *plan; /* NULL: interpreted */
    const void *const *inputs;
    ty_arena *a;
    ty_check *out;
    const ty_tape_facts *facts; /* NULL until they are needed */
    check_copy copy[CHECK_MAX_COPIES];
    int n_copies;
    uint32_t unit; /* that is traced */
} checker;

/* ---- counting ---- */

static double check_number(ty_dtype d, const void *data, int64_t i)
{
    switch (d) {
    case TY_F16:
        return (double)ty_f16_to_f32(((const uint16_t *)data)[i]);
    case TY_BF16:
        return (double)ty_bf16_to_f32(((const uint16_t *)data)[i]);
    case TY_F32:
        return (double)((const float *)data)[i];
    default:
        return ((const double *)data)[i];
    }
}

/* Whether all exponents are below the one of infinities: one pass that vectorises. */
#define CHECK_ALL_FINITE(name, word, mask)            \
    static bool name(const word *x, int64_t n)        \
    {                                                 \
        word bad = 0;                                 \
        for (int64_t i = 0; i < n; i++)               \
            bad |= (word)((x[i] & (mask)) == (mask)); \
        return !bad;                                  \
    }
CHECK_ALL_FINITE(check_finite_f16, uint16_t, 0x7c00u)
CHECK_ALL_FINITE(check_finite_bf16, uint16_t, 0x7f80u)
CHECK_ALL_FINITE(check_finite_f32, uint32_t, 0x7f800000u)
CHECK_ALL_FINITE(check_finite_f64, uint64_t, 0x7ff0000000000000ull)

static bool check_all_finite(ty_dtype d, const void *data, int64_t n)
{
    return !ty_dtype_is_float(d) || (d == TY_F16    ? check_finite_f16(data, n)
                                     : d == TY_BF16 ? check_finite_bf16(data, n)
                                     : d == TY_F32  ? check_finite_f32(data, n)
                                                    : check_finite_f64(data, n));
}

static ty_numbers check_numbers(ty_dtype d, const void *data, int64_t n)
{
    ty_numbers out = {.text = "", .n = n, .lo = INFINITY, .hi = -INFINITY};
    for (int64_t i = 0; i < n && ty_dtype_is_float(d); i++) {
        double x = check_number(d, data, i);
        out.n_nan += isnan(x);
        out.n_inf += isinf(x) != 0;
        out.lo = isfinite(x) && x < out.lo ? x : out.lo;
        out.hi = isfinite(x) && x > out.hi ? x : out.hi;
    }
    return out;
}

/* The first element that is a NaN (or else infinite). */
static int64_t check_first(ty_dtype d, const void *data, int64_t n, bool nan)
{
    for (int64_t i = 0; i < n; i++) {
        double x = check_number(d, data, i);
        if (nan ? isnan(x) : isinf(x) != 0)
            return i;
    }
    return 0;
}

static void check_index(const ty_type *t, int64_t flat, int64_t *index)
{
    for (int k = t->rank - 1; k >= 0; k--) {
        index[k] = flat % t->dim[k];
        flat /= t->dim[k];
    }
}

/* ---- names ---- */

static const char *check_layer(const checker *c, const char *origin)
{
    const char *layer = ty_layer_of_origin(c->a, ty_origin_of_forward(origin));
    return layer[0] ? layer : "(no name)";
}

static const ty_segment *check_segment(const ty_state *s, int64_t flat)
{
    const ty_segment *found = &s->segments[0];
    for (int i = 0; i < s->n_segments && s->segments[i].offset <= flat; i++)
        found = &s->segments[i];
    return found;
}

/* "f32[64,256] dot of fc1" */
static const char *check_text(const checker *c, ty_val v)
{
    char type[160];
    const ty_graph *g = c->p->graph;
    ty_view view = ty_view_of(g, v);
    uint32_t node = ty_val_node(view.base);
    ty_type_text(ty_graph_type(g, v), type, sizeof type);
    int64_t index = ty_graph_attr(g, node)->index;
    switch (ty_graph_op(g, node)) {
    case TY_OP_STATE:
        return ty_arena_printf(c->a, "%s weight %s", type,
                               check_segment(ty_graph_state(g, (int)index), view.offset)->name);
    case TY_OP_INPUT:
        return ty_arena_printf(c->a, "%s input %s", type, ty_graph_input(g, (int)index)->name);
    case TY_OP_CONST:
        return ty_arena_printf(c->a, "%s constant", type);
    default:
        return ty_arena_printf(c->a, "%s %s of %s", type, ty_op_row_of(ty_graph_op(g, node))->text,
                               check_layer(c, ty_graph_origin_of(g, node)));
    }
}

/* ---- finds ---- */

/* What is looked for next: anything, then NaNs alone, then nothing. */
static bool check_wants(const ty_check *out, bool nan)
{
    return out->n_bad == 0 || (out->n_bad == 1 && nan && !isnan(out->bad[0].value));
}

static bool check_is_done(const ty_check *out)
{
    return !check_wants(out, true);
}

/* A value of which `from` does not explain the NaNs or infinities. data: of dtype d, shape of *type. NULL: no find. */
static ty_bad_value *check_find(checker *c, const ty_type *type, ty_dtype d, const void *data, const ty_numbers *from,
                                int n_from)
{
    int64_t n = ty_type_elems(type), n_nan = 0, n_inf = 0;
    ty_numbers result = check_numbers(d, data, n);
    for (int i = 0; i < n_from; i++) {
        n_nan += from[i].n_nan;
        n_inf += from[i].n_inf;
    }
    bool nan = result.n_nan > 0 && n_nan == 0, inf = result.n_inf > 0 && n_inf == 0;
    if (!(nan || inf) || !check_wants(c->out, nan))
        return NULL;
    ty_bad_value *bad = &c->out->bad[c->out->n_bad++];
    int64_t first = check_first(d, data, n, nan);
    *bad = (ty_bad_value){.type = *type, .value = check_number(d, data, first), .result = result};
    check_index(type, first, bad->index);
    bad->n_operands = n_from < TY_CHECK_MAX_OPERANDS ? n_from : TY_CHECK_MAX_OPERANDS;
    for (int i = 0; i < bad->n_operands; i++)
        bad->operand[i] = from[i];
    return bad;
}

/* Elements of a state are known by the tensor they belong to. */
static void check_name_in_state(ty_bad_value *bad, const ty_state *s, int64_t flat)
{
    const ty_segment *part = check_segment(s, flat);
    bad->layer = part->name;
    bad->type = part->type;
    check_index(&part->type, flat - part->offset, bad->index);
}

/* ---- operation by operation ---- */

static ty_numbers check_ref_numbers(const ty_ref *r)
{
    return r->f ? check_numbers(TY_F64, r->f, ty_type_elems(&r->type)) : (ty_numbers){.text = "", .lo = 1};
}

static int check_operands_of(checker *c, const ty_interp *it, uint32_t node, ty_numbers *out, int max)
{
    int n = 0;
    for (uint32_t i = 0; i < ty_graph_node(c->p->graph, node)->n_in && n < max; i++) {
        const ty_ref *in = ty_interp_value(it, ty_graph_in(c->p->graph, node, (int)i));
        if (!in || !in->f)
            continue;
        out[n] = check_ref_numbers(in);
        out[n++].text = check_text(c, ty_graph_in(c->p->graph, node, (int)i));
    }
    return n;
}

/* Leaves have no operands: inputs and states were looked at before, constants may be what they are. */
static void check_see(void *ctx, const ty_interp *it, uint32_t node)
{
    checker *c = ctx;
    const ty_graph *g = c->p->graph;
    const ty_op_row *row = ty_op_row_of(ty_graph_op(g, node));
    for (uint32_t i = 0; row->ref && i < ty_graph_node(g, node)->n_res && !check_is_done(c->out); i++) {
        const ty_ref *r = ty_interp_value(it, ty_val_make(node, i));
        ty_numbers from[64];
        if (!r || !r->f)
            continue;
        c->out->n_values += c->plan == NULL;
        c->out->n_numbers += c->plan == NULL ? ty_type_elems(&r->type) : 0;
        if (check_all_finite(TY_F64, r->f, ty_type_elems(&r->type)))
            continue;
        ty_bad_value *bad = check_find(c, &r->type, TY_F64, r->f, from, check_operands_of(c, it, node, from, 64));
        if (!bad)
            continue;
        bad->op = row->text;
        bad->layer = check_layer(c, ty_graph_origin_of(g, node));
        bad->phase = ty_origin_phase(ty_graph_origin_of(g, node));
        bad->result.text = check_text(c, ty_val_make(node, i));
    }
}

/* ---- call by call ---- */

/* A value where the plan keeps it, as it is now; of a GPU a copy. NULL: nowhere. */
static const void *check_memory(const checker *c, ty_val v)
{
    int plan = c->p->plan_of[c->run];
    return c->p->cuda ? ty_cuda_look(ty_mirror_alone(c->p->cuda), plan, v, c->inputs)
                      : ty_cpu_value(c->p->cpu, plan, v, c->inputs);
}

static const void *check_bytes(const checker *c, ty_val v)
{
    for (int i = 0; i < c->n_copies; i++)
        if (c->copy[i].v == v)
            return c->copy[i].bytes;
    const void *constant = ty_graph_const_data(c->p->graph, v);
    return constant ? constant : check_memory(c, v);
}

static bool check_is_outside(const checker *c, ty_val v)
{
    ty_op op = ty_graph_op(c->p->graph, ty_val_node(v));
    const ty_fusion *f = c->plan->f;
    return op == TY_OP_INPUT || op == TY_OP_STATE || op == TY_OP_CONST ||
           (f->in_memory[v] && f->producer[v] != TY_NONE && f->producer[v] != c->unit);
}

static const void *check_given(void *ctx, ty_val v)
{
    const checker *c = ctx;
    return check_is_outside(c, v) ? check_bytes(c, v) : NULL;
}

/* False: too large. */
static bool check_mark(const checker *c, uint8_t *live)
{
    const ty_graph *g = c->p->graph;
    ty_unit_mark(c->plan->f, c->unit, live);
    for (uint32_t node = 0; node < ty_graph_n_nodes(g); node++)
        if (live[node] && ty_type_elems(ty_graph_type(g, ty_val_make(node, 0))) > CHECK_TRACE_ELEMS)
            return false;
    return true;
}

/* True: the operations were computed one by one, and what was bad among them is found. */
static bool check_trace(checker *c, const ty_unit *u)
{
    const ty_interp_watch watch = {.ctx = c, .see = check_see, .given = check_given};
    uint8_t *live = u->kind == TY_UNIT_KERNEL ? calloc(ty_graph_n_nodes(c->p->graph), 1) : NULL;
    c->unit = (uint32_t)(u - c->plan->f->unit);
    bool traced = live && check_mark(c, live) && ty_interp_trace(c->p->graph, live, &watch, NULL) == 0;
    free(live);
    return traced;
}

static bool check_has_infinite_constant(const ty_unit *u)
{
    for (uint32_t i = 0; u->kind == TY_UNIT_KERNEL && i < u->kernel->n_instrs; i++)
        if (u->kernel->instr[i].kop == TY_K_CONST && isinf(u->kernel->instr[i].imm))
            return true;
    return false;
}

typedef void check_each(checker *c, const ty_unit *u, ty_val v);

static void check_operands(checker *c, const ty_unit *u, check_each *visit)
{
    const ty_graph *g = c->p->graph;
    for (int i = 0; u->kind == TY_UNIT_KERNEL && i < u->kernel->n_buffers; i++)
        if (!u->kernel->buffer[i].written)
            visit(c, u, u->kernel->buffer[i].val);
    for (uint32_t i = 0; u->kind == TY_UNIT_LIBRARY && i < ty_graph_node(g, u->node)->n_in; i++)
        if (ty_graph_in(g, u->node, (int)i) != TY_NONE && !ty_fuse_is_implied(g, u->node, (int)i))
            visit(c, u, ty_graph_in(g, u->node, (int)i));
}

static void check_results(checker *c, const ty_unit *u, check_each *visit)
{
    for (int i = 0; u->kind == TY_UNIT_KERNEL && i < u->n_roots; i++)
        visit(c, u, u->root[i]);
    for (uint32_t i = 0; u->kind == TY_UNIT_LIBRARY && i < ty_graph_node(c->p->graph, u->node)->n_res; i++)
        if (ty_plan_place(c->plan, ty_val_make(u->node, i)).kind != TY_PLACE_NONE)
            visit(c, u, ty_val_make(u->node, i));
}

static bool check_share_memory(const checker *c, ty_val a, ty_val b)
{
    ty_place x = ty_plan_place(c->plan, a), y = ty_plan_place(c->plan, b);
    int64_t x_bytes = (int64_t)ty_type_bytes(ty_graph_type(c->p->graph, a));
    int64_t y_bytes = (int64_t)ty_type_bytes(ty_graph_type(c->p->graph, b));
    return x.kind == y.kind && (x.kind == TY_PLACE_SLAB || (x.kind == TY_PLACE_STATE && x.index == y.index)) &&
           x.offset < y.offset + y_bytes && y.offset < x.offset + x_bytes;
}

static bool check_is_overwritten(const checker *c, const ty_unit *u, ty_val v)
{
    for (int i = 0; u->kind == TY_UNIT_KERNEL && i < u->n_roots; i++)
        if (check_share_memory(c, u->root[i], v))
            return true;
    for (uint32_t i = 0; u->kind == TY_UNIT_LIBRARY && i < ty_graph_node(c->p->graph, u->node)->n_res; i++)
        if (check_share_memory(c, ty_val_make(u->node, i), v))
            return true;
    return false;
}

static void check_save(checker *c, const ty_unit *u, ty_val v)
{
    size_t n = ty_type_bytes(ty_graph_type(c->p->graph, v));
    char *bytes;
    if (c->n_copies == CHECK_MAX_COPIES || !check_is_overwritten(c, u, v) || !(bytes = malloc(n ? n : 1)))
        return;
    memcpy(bytes, check_bytes(c, v), n);
    c->copy[c->n_copies++] = (check_copy){v, bytes};
}

static void check_drop_copies(checker *c)
{
    while (c->n_copies > 0)
        free(c->copy[--c->n_copies].bytes);
}

/* The operands of a call as numbers. */
typedef struct check_list {
    ty_numbers *items;
    int n;
} check_list;

static check_list check_operand_numbers(checker *c, const ty_unit *u)
{
    const ty_graph *g = c->p->graph;
    int max = u->kind == TY_UNIT_KERNEL ? u->kernel->n_buffers : (int)ty_graph_node(g, u->node)->n_in;
    check_list list = {TY_NEW_ARRAY(c->a, ty_numbers, max + 1), 0};
    for (int i = 0; i < max; i++) {
        ty_val v = u->kind == TY_UNIT_KERNEL ? u->kernel->buffer[i].val : ty_graph_in(g, u->node, i);
        bool skipped = u->kind == TY_UNIT_KERNEL ? u->kernel->buffer[i].written
                                                 : v == TY_NONE || ty_fuse_is_implied(g, u->node, i);
        if (skipped || !ty_dtype_is_float((ty_dtype)ty_graph_type(g, v)->dtype))
            continue;
        const ty_type *t = ty_graph_type(g, v);
        list.items[list.n] = check_numbers((ty_dtype)t->dtype, check_bytes(c, v), ty_type_elems(t));
        list.items[list.n++].text = check_text(c, v);
    }
    return list;
}

static const ty_unit_facts *check_facts(checker *c, uint32_t unit)
{
    if (!c->facts) {
        ty_tape_facts *facts = TY_NEW(c->a, ty_tape_facts);
        if (ty_program_describe(c->p, c->run, c->a, facts, NULL) < 0)
            return NULL;
        c->facts = facts;
    }
    for (int at = 0; at < c->plan->n_order; at++)
        if (c->plan->order[at] == unit)
            return &c->facts->unit[at];
    return NULL;
}

/* The call as a whole is named: a library call, or a kernel that cannot be taken apart. */
static void check_name_call(checker *c, const ty_unit *u, ty_val v, ty_bad_value *bad)
{
    const ty_unit_facts *facts = check_facts(c, (uint32_t)(u - c->plan->f->unit));
    const char *op = ty_op_row_of(ty_graph_op(c->p->graph, u->node))->text;
    bad->op = u->kind == TY_UNIT_KERNEL && facts ? facts->text : op;
    bad->layer = check_layer(c, facts ? facts->origin : "");
    bad->phase = facts ? facts->phase : TY_PHASE_FORWARD;
    bad->result.text = check_text(c, v);
}

static void check_judge(checker *c, const ty_unit *u, ty_val v)
{
    const ty_type *t = ty_graph_type(c->p->graph, v);
    const void *data = check_memory(c, v);
    int n_before = c->out->n_bad;
    check_list from = check_operand_numbers(c, u);
    ty_numbers result = check_numbers((ty_dtype)t->dtype, data, ty_type_elems(t));
    int64_t n_nan = 0, n_inf = check_has_infinite_constant(u);
    for (int i = 0; i < from.n; i++)
        n_nan += from.items[i].n_nan, n_inf += from.items[i].n_inf;
    if ((result.n_nan == 0 || n_nan > 0) && (result.n_inf == 0 || n_inf > 0))
        return;
    if (!check_trace(c, u) || c->out->n_bad == n_before) {
        ty_bad_value *bad = check_find(c, t, (ty_dtype)t->dtype, data, from.items, from.n);
        if (bad)
            check_name_call(c, u, v, bad);
    }
    ty_place at = ty_plan_place(c->plan, v);
    for (int i = n_before; i < c->out->n_bad && at.kind == TY_PLACE_STATE; i++) {
        ty_bad_value *bad = &c->out->bad[i];
        const ty_state *s = ty_graph_state(c->p->graph, (int)at.index);
        if (bad->type.rank == 1 && ty_type_same_shape(&bad->type, &s->type) && s->n_segments > 0)
            check_name_in_state(bad, s, bad->index[0]);
    }
}

static void check_result(checker *c, const ty_unit *u, ty_val v)
{
    const ty_type *t = ty_graph_type(c->p->graph, v);
    if (!ty_dtype_is_float((ty_dtype)t->dtype))
        return;
    c->out->n_values++;
    c->out->n_numbers += ty_type_elems(t);
    const void *data = check_memory(c, v);
    if (data && !check_is_done(c->out) && !check_all_finite((ty_dtype)t->dtype, data, ty_type_elems(t)))
        check_judge(c, u, v);
}

static int check_begin(checker *c, ty_error *err)
{
    int plan = c->p->plan_of[c->run];
    if (c->p->cuda)
        return ty_cuda_calls_begin(ty_mirror_alone(c->p->cuda), plan, c->inputs, err);
    ty_cpu_point_inputs(c->p->cpu, plan, c->inputs);
    return 0;
}

static int check_call(checker *c, int call, ty_error *err)
{
    int plan = c->p->plan_of[c->run];
    return c->p->cuda ? ty_cuda_calls_run(ty_mirror_alone(c->p->cuda), plan, call, err)
                      : ty_cpu_run_call(c->p->cpu, plan, call, err);
}

/* States are in the caller's memory afterwards, wherever they live. */
static int check_end(checker *c, ty_error *err)
{
    if (!c->p->cuda) {
        ty_program_ran_whole(c->p, c->run, c->inputs);
        return 0;
    }
    return ty_cuda_calls_end(ty_mirror_alone(c->p->cuda), c->p->plan_of[c->run], err) < 0 ||
                   ty_program_finish(c->p, c->run, err) < 0
               ? -1
               : ty_program_fetch_states(c->p, err);
}

/* The i-th unit that a call computes; NULL if there is nothing to look at: the copies of an assembly make nothing new.
 */
static const ty_unit *check_unit(const checker *c, const ty_call_info *info, int i)
{
    int at = i ? info->also[i - 1] : info->unit;
    const ty_unit *u = at < c->plan->n_order ? &c->plan->f->unit[c->plan->order[at]] : NULL;
    return u && u->kind != TY_UNIT_ASSEMBLY ? u : NULL;
}

/* Calls of a unit follow each other. */
static int check_run_calls(checker *c, ty_error *err)
{
    if (check_begin(c, err) < 0)
        return -1;
    for (int i = 0, n = ty_program_n_calls(c->p, c->run); i < n; i++) {
        ty_call_info info;
        ty_program_call(c->p, c->run, i, &info);
        for (int k = 0; k <= info.n_also && !check_is_done(c->out); k++)
            if (check_unit(c, &info, k))
                check_operands(c, check_unit(c, &info, k), check_save);
        if (check_call(c, i, err) < 0) {
            check_drop_copies(c);
            return -1;
        }
        for (int k = 0; k <= info.n_also; k++)
            if (check_unit(c, &info, k))
                check_results(c, check_unit(c, &info, k), check_result);
        check_drop_copies(c);
    }
    return check_end(c, err);
}

/* ---- from outside, and in the end ---- */

static void check_inputs(checker *c)
{
    for (int i = 0; i < c->p->n_inputs; i++) {
        const ty_type *t = &c->p->input[i].type;
        ty_dtype d = (ty_dtype)t->dtype;
        if (!ty_dtype_is_float(d) || !c->inputs[i] || check_all_finite(d, c->inputs[i], ty_type_elems(t)))
            continue;
        ty_bad_value *bad = check_find(c, t, d, c->inputs[i], NULL, 0);
        if (bad)
            bad->op = "input", bad->layer = bad->result.text = c->p->input[i].name;
    }
}

static bool check_is_finite_state(const checker *c, int i)
{
    const ty_state *s = ty_graph_state(c->p->graph, i);
    return s->role == TY_STATE_COUNTER || /* a plateau's best value begins as an infinity */
           check_all_finite((ty_dtype)s->type.dtype, c->p->state[i], ty_type_elems(&s->type));
}

static void check_states_before(checker *c)
{
    for (int i = 0; i < ty_graph_n_states(c->p->graph); i++) {
        const ty_state *s = ty_graph_state(c->p->graph, i);
        if (check_is_finite_state(c, i))
            continue;
        ty_bad_value *bad = check_find(c, &s->type, (ty_dtype)s->type.dtype, c->p->state[i], NULL, 0);
        if (!bad)
            continue;
        bad->op = "state";
        bad->layer = bad->result.text = s->name;
        if (s->n_segments > 0 && s->type.rank == 1)
            check_name_in_state(bad, s, bad->index[0]);
    }
}

static bool check_reached(const checker *c)
{
    const ty_tensor *loss = ty_program_output(c->p, c->run, "loss");
    if (loss && loss->data && !check_all_finite((ty_dtype)loss->type.dtype, loss->data, ty_type_elems(&loss->type)))
        return true;
    for (int i = 0; i < ty_graph_n_states(c->p->graph); i++)
        if (!check_is_finite_state(c, i))
            return true;
    return false;
}

int ty_program_run_checked(ty_program *p, ty_run run, const void *const *inputs, ty_arena *a, ty_check *check,
                           ty_error *err)
{
    if (ty_program_can_run(p, run, err) < 0)
        return -1;
    if (p->cuda && !ty_mirror_alone(p->cuda))
        return ty_error_set(err, TY_E_UNSUPPORTED, "values are looked at on one GPU, found several");
    if ((p->cuda && ty_program_settle_on_gpu(p, err) < 0) || ty_program_fetch_states(p, err) < 0)
        return -1;
    inputs = ty_program_inputs(p, inputs);
    checker c = {.p = p, .run = run, .plan = p->plan[run], .inputs = inputs, .a = a, .out = check};
    const ty_interp_watch watch = {.ctx = &c, .see = check_see};
    int rc = 0;
    check_inputs(&c);
    check_states_before(&c);
    if (p->backend == TY_BACKEND_INTERPRETER) {
        ty_interp_set_watch(p->interp, &watch);
        rc = ty_program_interpret(p, run, inputs, err);
        ty_interp_set_watch(p->interp, NULL);
    } else {
        rc = check_run_calls(&c, err);
    }
    check->reached |= rc == 0 && check_reached(&c);
    return rc;
}
