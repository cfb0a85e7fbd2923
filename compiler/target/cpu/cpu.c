/* cpu.c - builds tapes on the CPU. See cpu.h. */
#include "compiler/target/cpu/inside.h"

#include "base/clock.h"
#include "base/pages.h"
#include "compiler/kernel/text.h"
#include "compiler/ops/op.h"
#include "compiler/phases.h"
#include "compiler/target/cpu/late.h"
#include "compiler/target/cpu/render.h"
#include "compiler/target/cpu/share.h"
#include "compiler/target/cuda/render.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cpu_dialect cpu_c = {
    {ty_render_head, ty_render_prelude, "__attribute__((visibility(\"default\"))) void ", ""}, ty_render_kernel, true};
static const cpu_dialect cpu_grid = {
    {ty_grid_head, ty_render_prelude, "#undef TY_NAME\n#define TY_NAME ", "\n"}, ty_grid_render_kernel, false};

/* Below this many scalar instructions a kernel runs on the calling thread: waking the others costs about as much. */
#define CPU_SERIAL_COST 250000.0

/* ---- pointers ---- */

char *ty_cpu_address(const ty_cpu *cpu, const ty_plan *plan, ty_place at, const void *const *inputs)
{
    switch (at.kind) {
    case TY_PLACE_SLAB:
        return cpu->slab + at.offset;
    case TY_PLACE_STATE:
        return (char *)cpu->opt.state[at.index] + at.offset;
    case TY_PLACE_CONST:
        return (char *)(uintptr_t)ty_graph_const_data(plan->f->g, (ty_val)at.index) + at.offset;
    case TY_PLACE_INPUT:
        return inputs ? (char *)(uintptr_t)inputs[at.index] + at.offset : NULL;
    default:
        return NULL;
    }
}

/* Notes that a step touches so many bytes there. */
static void cpu_reach(const ty_cpu *cpu, const ty_plan *plan, ty_cpu_step *step, ty_place at, int64_t bytes,
                      bool written)
{
    if (at.kind != TY_PLACE_NONE && at.kind != TY_PLACE_CONST)
        step->reach[step->n_reach++] = (ty_cpu_reach){ty_cpu_address(cpu, plan, at, NULL), bytes, written};
}

static void cpu_reach_value(const ty_cpu *cpu, const ty_plan *plan, ty_cpu_step *step, ty_val v, bool written)
{
    cpu_reach(cpu, plan, step, ty_plan_place(plan, v), (int64_t)ty_type_bytes(ty_graph_type(plan->f->g, v)), written);
}

/* *at <- address of v, `offset` bytes on. */
static void cpu_point(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, char **at, ty_val v, int64_t offset)
{
    ty_place place = ty_plan_place(plan, v);
    if (place.kind != TY_PLACE_INPUT) {
        char *address = ty_cpu_address(cpu, plan, place, NULL);
        *at = address ? address + offset : NULL;
        return;
    }
    if (tape->n_patches == tape->cap_patches) {
        int cap = tape->cap_patches ? 2 * tape->cap_patches : 16;
        cpu_patch *grown = TY_NEW_ARRAY(&cpu->arena, cpu_patch, cap);
        if (tape->n_patches)
            memcpy(grown, tape->patch, sizeof *grown * (size_t)tape->n_patches);
        tape->patch = grown;
        tape->cap_patches = cap;
    }
    tape->patch[tape->n_patches++] = (cpu_patch){at, (int)place.index, place.offset + offset};
}

/* ---- kernels ---- */

/* Adds the kernel's text; base[]: where each buffer's pointer points, in elements. Returns the text's hash. */
static uint64_t cpu_render(ty_cpu *cpu, const ty_plan *plan, const ty_kernel *k, int64_t *base, ty_buf *scratch)
{
    uint32_t *alias = TY_NEW_ARRAY(&cpu->arena, uint32_t, k->n_buffers);
    ty_plan_aliases(plan, k, alias);
    ty_ktext_bases(k, alias, base);
    ty_buf_clear(scratch);
    cpu->dialect->render(k, alias, base, scratch);
    cpu->report.n_kernels++;
    return ty_ktexts_add(&cpu->texts, scratch->data, scratch->len);
}

static void cpu_add_kernel(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, const ty_unit *u, ty_cpu_step *step,
                           ty_buf *scratch)
{
    const ty_kernel *k = u->kernel;
    int64_t *base = TY_NEW_ARRAY(&cpu->arena, int64_t, k->n_buffers);
    step->kind = TY_CPU_KERNEL;
    step->hash = cpu_render(cpu, plan, k, base, scratch);
    step->n_ptr = k->n_buffers;
    step->ptr = TY_NEW_ARRAY(&cpu->arena, char *, k->n_buffers);
    step->reach = TY_NEW_ARRAY(&cpu->arena, ty_cpu_reach, k->n_buffers);
    for (int i = 0; i < k->n_buffers; i++) {
        cpu_point(cpu, tape, plan, &step->ptr[i], k->buffer[i].val,
                  base[i] * (int64_t)ty_dtype_bytes(k->buffer[i].dtype));
        cpu_reach_value(cpu, plan, step, k->buffer[i].val, k->buffer[i].written);
    }
    step->n_units = ty_kernel_n_units(k);
    step->dealt = ty_kernel_row_guard(k) != TY_NONE;
    double cost = (double)step->n_units * ty_kernel_unit_cost(k);
    step->threads = cost < CPU_SERIAL_COST || step->n_units < 2 ? 1 : cpu->opt.threads;
    step->info = (ty_call_info){.kind = TY_CALL_KERNEL,
                                .name = ty_arena_printf(&cpu->arena, TY_KTEXTS_NAME, (unsigned long)step->hash),
                                .how = k->form == TY_FORM_COLUMNS ? "columns" : "rows",
                                .origin = k->origin,
                                .threads = step->threads};
    ty_kernel_traffic(k, &step->info.read_bytes, &step->info.written_bytes);
}

/* ---- library calls ---- */

static int cpu_prepare(ty_cpu *cpu, const ty_graph *g, uint32_t node, ty_library_call *call, ty_error *err)
{
    const ty_node *n = ty_graph_node(g, node);
    ty_type in[TY_LIBRARY_MAX_IN], res[TY_MAX_RESULTS];
    if (n->n_in > TY_LIBRARY_MAX_IN)
        return ty_error_set(err, TY_E_LIMIT, "%s: %u operands; a call has at most %d", ty_op_row_of(n->op)->text,
                            n->n_in, TY_LIBRARY_MAX_IN);
    for (int i = 0; i < (int)n->n_in; i++)
        in[i] = *ty_graph_type(g, ty_graph_in(g, node, i));
    for (uint32_t i = 0; i < n->n_res; i++)
        res[i] = *ty_graph_type(g, ty_val_make(node, i));
    ty_library_shape shape = {ty_graph_attr(g, node), in, (int)n->n_in, res, n->n_res, cpu->opt.threads,
                              cpu->opt.strict};
    if (ty_library_prepare((ty_op)n->op, &shape, call, err) < 0)
        return ty_error_wrap(err, "%s", ty_graph_origin_of(g, node));
    if (call->scratch_bytes > cpu->report.scratch_bytes)
        cpu->report.scratch_bytes = call->scratch_bytes;
    cpu->report.n_library_calls++;
    return 0;
}

/* A constant at an address that the call cannot read gets a copy that it can. */
static void cpu_align_constant(ty_cpu *cpu, const ty_plan *plan, ty_op op, ty_val v, char **at)
{
    bool readable = (uintptr_t)*at % 4 == 0 || ty_library_takes_any_address(op);
    if (ty_plan_place(plan, v).kind == TY_PLACE_CONST && !readable)
        *at = ty_arena_copy(&cpu->arena, *at, ty_type_bytes(ty_graph_type(plan->f->g, v)));
}

static void cpu_add_library(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, const ty_unit *u, ty_cpu_step *step)
{
    const ty_graph *g = plan->f->g;
    const ty_node *n = ty_graph_node(g, u->node);
    step->kind = TY_CPU_LIBRARY;
    step->node = u->node;
    step->n_in = (int)n->n_in;
    step->n_ptr = step->n_in + n->n_res;
    step->ptr = TY_NEW_ARRAY(&cpu->arena, char *, step->n_ptr);
    step->reach = TY_NEW_ARRAY(&cpu->arena, ty_cpu_reach, step->n_ptr);
    step->info = (ty_call_info){.kind = TY_CALL_LIBRARY,
                                .name = ty_op_row_of((ty_op)n->op)->text,
                                .origin = ty_graph_origin_of(g, u->node),
                                .threads = cpu->opt.threads};
    for (int i = 0; i < step->n_in; i++) {
        if (ty_fuse_is_implied(g, u->node, i))
            continue;
        cpu_point(cpu, tape, plan, &step->ptr[i], ty_graph_in(g, u->node, i), 0);
        cpu_align_constant(cpu, plan, (ty_op)n->op, ty_graph_in(g, u->node, i), &step->ptr[i]);
        cpu_reach_value(cpu, plan, step, ty_graph_in(g, u->node, i), false);
        step->info.read_bytes += ty_type_bytes(ty_graph_type(g, ty_graph_in(g, u->node, i)));
    }
    for (uint32_t i = 0; i < n->n_res; i++) {
        cpu_point(cpu, tape, plan, &step->ptr[step->n_in + (int)i], ty_val_make(u->node, i), 0);
        cpu_reach_value(cpu, plan, step, ty_val_make(u->node, i), true);
        step->info.written_bytes += ty_type_bytes(ty_graph_type(g, ty_val_make(u->node, i)));
    }
}

static int cpu_prepare_step(ty_cpu *cpu, const ty_graph *g, ty_cpu_step *step, ty_error *err)
{
    if (cpu_prepare(cpu, g, step->node, &step->call, err) < 0)
        return -1;
    step->info.how = step->call.text ? step->call.text : "";
    return 0;
}

/* Results without a reader have no place in the plan; most calls still write them. */
static void cpu_unread_results(ty_cpu *cpu, ty_cpu_step *step, const ty_plan *plan, const ty_unit *u)
{
    for (int i = step->n_in; step->kind == TY_CPU_LIBRARY && !step->call.skips_unread && i < step->n_ptr; i++)
        if (!step->ptr[i])
            step->ptr[i] = ty_arena_alloc(
                &cpu->arena,
                ty_type_bytes(ty_graph_type(plan->f->g, ty_val_make(u->node, (uint32_t)(i - step->n_in)))));
}

/* ---- exchanges ---- */

/* Waits for those that were begun, up to this one; -1: for none. Their time is that of the exchange's unit. */
static void cpu_add_waits(cpu_tape *tape, int last)
{
    for (int i = tape->pending.n_over; i <= last; i++) {
        const ty_cpu_step *begin = &tape->step[tape->begins[i]];
        ty_cpu_step *step = &tape->step[tape->n_steps++];
        *step = *begin;
        step->kind = TY_CPU_WAIT;
        step->info.how = "wait";
        step->info.read_bytes = step->info.written_bytes = 0;
    }
    if (last >= 0)
        ty_pending_over(&tape->pending, last);
}

/* They are carried out in order, so none needs to wait for another. */
static void cpu_add_begin(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, const ty_begin *b)
{
    const ty_graph *g = plan->f->g;
    uint32_t node = plan->f->unit[plan->order[b->unit]].node;
    ty_exchanged what = ty_pending_of_node(plan, node);
    int64_t element = (int64_t)ty_dtype_bytes((ty_dtype)ty_graph_type(g, ty_val_make(node, 0))->dtype);
    if (b->is_half) {
        what.from.offset += b->first * element;
        what.to.offset += b->first * element;
        what.from_bytes = what.to_bytes = (b->end - b->first) * element;
    }
    tape->begins[ty_pending_add(&tape->pending, what)] = tape->n_steps;
    ty_cpu_step *step = &tape->step[tape->n_steps++];
    step->kind = TY_CPU_BEGIN;
    step->exchange = cpu->n_exchanges++;
    step->n_ptr = 2;
    step->ptr = TY_NEW_ARRAY(&cpu->arena, char *, 2);
    step->reach = TY_NEW_ARRAY(&cpu->arena, ty_cpu_reach, 2);
    cpu_point(cpu, tape, plan, &step->ptr[0], ty_graph_in(g, node, 0), b->first * element);
    cpu_point(cpu, tape, plan, &step->ptr[1], ty_val_make(node, 0), b->first * element);
    cpu_reach(cpu, plan, step, what.from, what.from_bytes, false);
    cpu_reach(cpu, plan, step, what.to, what.to_bytes, true);
    step->info = (ty_call_info){.kind = TY_CALL_LIBRARY,
                                .name = ty_op_row_of(ty_graph_op(g, node))->text,
                                .how = "begin",
                                .origin = ty_graph_origin_of(g, node),
                                .threads = 1,
                                .read_bytes = (size_t)what.from_bytes,
                                .written_bytes = (size_t)what.to_bytes,
                                .unit = b->unit};
}

static void cpu_add_exchange(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, int at)
{
    const ty_begins *b = &cpu->opt.begins[tape - cpu->tape];
    while (tape->pending.n < b->n && b->list[tape->pending.n].at == at)
        cpu_add_begin(cpu, tape, plan, &b->list[tape->pending.n]);
}

/* ---- copies ---- */

static void cpu_add_copy_to(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, char *to, ty_val from)
{
    ty_cpu_step *step = &tape->step[tape->n_steps++];
    step->kind = TY_CPU_COPY;
    step->ptr = TY_NEW_ARRAY(&cpu->arena, char *, 2);
    step->n_ptr = 2;
    step->ptr[0] = to;
    step->bytes = ty_type_bytes(ty_graph_type(plan->f->g, from));
    cpu_point(cpu, tape, plan, &step->ptr[1], from, 0);
    step->reach = TY_NEW_ARRAY(&cpu->arena, ty_cpu_reach, 2);
    step->reach[step->n_reach++] = (ty_cpu_reach){to, (int64_t)step->bytes, true};
    cpu_reach_value(cpu, plan, step, from, false);
    step->info = (ty_call_info){.kind = TY_CALL_COPY,
                                .name = "copy",
                                .how = "",
                                .origin = ty_graph_origin_of(plan->f->g, ty_val_node(from)),
                                .threads = 1,
                                .read_bytes = step->bytes,
                                .written_bytes = step->bytes};
}

static void cpu_add_copy(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, ty_place to, ty_val from)
{
    cpu_add_waits(tape, ty_pending_before_copy(&tape->pending, plan, to, from));
    cpu_add_copy_to(cpu, tape, plan, ty_cpu_address(cpu, plan, to, NULL), from);
}

static void cpu_add_assembly(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, const ty_unit *u)
{
    const ty_graph *g = plan->f->g;
    ty_place to = ty_plan_place(plan, ty_val_make(u->node, 0));
    for (uint32_t i = 0; i < ty_graph_node(g, u->node)->n_in; i++) {
        ty_val in = ty_graph_in(g, u->node, (int)i);
        if (!ty_plan_part_in_place(plan, u->node, (int)i))
            cpu_add_copy(cpu, tape, plan, to, in);
        to.offset += (int64_t)ty_type_bytes(ty_graph_type(g, in));
    }
}

/* ---- tapes ---- */

static int cpu_max_steps(const ty_plan *plan)
{
    int n = plan->n_order + plan->n_copies;
    for (int at = 0; at < plan->n_order; at++) {
        const ty_unit *u = &plan->f->unit[plan->order[at]];
        n += u->kind == TY_UNIT_ASSEMBLY ? (int)ty_graph_node(plan->f->g, u->node)->n_in : u->n_roots;
    }
    return n + 3 * plan->n_order + ty_graph_n_outputs(plan->f->g); /* second halves, waits for both; outputs kept */
}

/* A table of which a kernel writes rows, where it must not be written over the old one. */
static void cpu_add_tables(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, const ty_unit *u)
{
    for (int i = 0; i < u->n_roots; i++) {
        ty_val old = ty_fuse_rows_of(plan->f->g, u->root[i]);
        if (old != TY_NONE && !ty_plan_rows_in_place(plan, u->root[i]))
            cpu_add_copy(cpu, tape, plan, ty_plan_place(plan, u->root[i]), old);
    }
}

static bool cpu_is_exchange(const ty_cpu *cpu, const ty_plan *plan, const ty_unit *u)
{
    return cpu->opt.exchange && ty_unit_is_exchange(plan->f, u);
}

static void cpu_add_unit(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, const ty_unit *u, ty_buf *scratch)
{
    if (u->kind == TY_UNIT_ASSEMBLY) {
        cpu_add_assembly(cpu, tape, plan, u);
        return;
    }
    cpu_add_tables(cpu, tape, plan, u);
    cpu_add_waits(tape, ty_pending_before_unit(&tape->pending, plan, u));
    ty_cpu_step *step = &tape->step[tape->n_steps++];
    if (u->kind == TY_UNIT_KERNEL)
        cpu_add_kernel(cpu, tape, plan, u, step, scratch);
    else
        cpu_add_library(cpu, tape, plan, u, step);
    cpu_unread_results(cpu, step, plan, u);
}

/* Calls belong to the unit at hand, but for those of exchanges, which know theirs. */
static void cpu_add_position(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, int at, ty_buf *scratch)
{
    const ty_unit *u = &plan->f->unit[plan->order[at]];
    int i = tape->n_steps;
    if (cpu_is_exchange(cpu, plan, u))
        cpu_add_exchange(cpu, tape, plan, at);
    else
        cpu_add_unit(cpu, tape, plan, u, scratch);
    for (; i < tape->n_steps; i++)
        if (tape->step[i].kind != TY_CPU_WAIT && tape->step[i].kind != TY_CPU_BEGIN)
            tape->step[i].info.unit = at;
}

static void cpu_add_copies(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan)
{
    for (int i = 0; i < plan->n_copies; i++) {
        cpu_add_copy(cpu, tape, plan, (ty_place){TY_PLACE_STATE, plan->copy[i].state, 0}, plan->copy[i].value);
        tape->step[tape->n_steps - 1].info.unit = plan->n_order + i;
    }
}

/* Late steps come in the order in which this tape needs them. Its outputs are kept, since the next run makes others
 * before the caller has taken these. */
static void cpu_make_late(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan)
{
    const ty_graph *g = plan->f->g;
    int first = ty_late_cut(tape->step, tape->n_steps);
    if (first == tape->n_steps)
        return;
    tape->result = TY_NEW_ARRAY(&cpu->arena, char *, ty_graph_n_outputs(g) + 1);
    for (int i = 0; i < ty_graph_n_outputs(g); i++) {
        ty_val v = ty_graph_output(g, i)->val;
        if (!(ty_graph_output(g, i)->tapes & plan->f->tape))
            continue;
        tape->result[i] = ty_arena_alloc(&cpu->arena, ty_type_bytes(ty_graph_type(g, v)));
        cpu_add_copy_to(cpu, tape, plan, tape->result[i], v);
        tape->step[tape->n_steps - 1].info.unit = plan->n_order - 1;
    }
    tape->need = ty_late_sort(tape->step, first, tape->n_steps, &cpu->arena);
    tape->n_main = first;
    cpu->late = (int)(tape - cpu->tape);
}

static void cpu_find_needs(ty_cpu *cpu)
{
    if (cpu->late < 0)
        return;
    const cpu_tape *late = &cpu->tape[cpu->late];
    cpu->late_next = late->n_steps;
    for (int i = 0; i < cpu->n_plans; i++)
        if (i != cpu->late)
            cpu->tape[i].need = ty_late_needs(late->step + late->n_main, late->n_steps - late->n_main,
                                              cpu->tape[i].step, cpu->tape[i].n_main, &cpu->arena);
}

static int cpu_add_tape(ty_cpu *cpu, cpu_tape *tape, const ty_plan *plan, ty_error *err)
{
    ty_buf scratch;
    ty_buf_init(&scratch, 16u << 20);
    tape->step = TY_NEW_ARRAY(&cpu->arena, ty_cpu_step, cpu_max_steps(plan) + 1);
    tape->pending.list = TY_NEW_ARRAY(&cpu->arena, ty_exchanged, 2 * plan->n_order + 1);
    tape->begins = TY_NEW_ARRAY(&cpu->arena, int, 2 * plan->n_order + 1);
    for (int at = 0; at < plan->n_order; at++)
        cpu_add_position(cpu, tape, plan, at, &scratch);
    cpu_add_copies(cpu, tape, plan);
    cpu_add_waits(tape, tape->pending.n - 1);
    tape->n_main = tape->n_steps;
    if (plan->f->tape == TY_TAPE_LAST)
        cpu_make_late(cpu, tape, plan);
    int rc = scratch.failed ? ty_error_set(err, TY_E_LIMIT, "a generated kernel is larger than 16 MiB of text") : 0;
    ty_buf_fini(&scratch);
    return rc;
}

/* ---- compiling ---- */

typedef int cpu_texts_fn(ty_cpu *cpu, const char *const *text, int n, ty_error *err);

/* Hands all kernels, cut into translation units, to `use`. */
static int cpu_with_texts(ty_cpu *cpu, cpu_texts_fn *use, ty_error *err)
{
    const ty_ktexts_words *words = &cpu->dialect->words;
    int n = cpu->opt.threads < cpu->texts.n ? cpu->opt.threads : cpu->texts.n;
    n = n > TY_CC_MAX_UNITS ? TY_CC_MAX_UNITS : n;
    if (n == 0)
        return 0;
    ty_buf unit[TY_CC_MAX_UNITS];
    const char *text[TY_CC_MAX_UNITS];
    for (int i = 0; i < n; i++)
        ty_buf_init(&unit[i], 1u << 30);
    ty_ktexts_sort(&cpu->texts);
    ty_ktexts texts = cpu->dialect->shares ? ty_share_texts(&cpu->texts, words->lead) : cpu->texts;
    cpu->report.text_bytes = ty_ktexts_deal(&texts, words, unit, n);
    int rc = ty_ktexts_hash(&cpu->texts, words, cpu->kernels, err);
    cpu->opt.objects.kernels = cpu->kernels;
    for (int i = 0; i < n; i++) {
        text[i] = unit[i].data;
        if (unit[i].failed)
            rc = ty_error_set(err, TY_E_LIMIT, "out of memory for generated code");
    }
    if (rc == 0)
        rc = use(cpu, text, n, err);
    for (int i = 0; i < n; i++)
        ty_buf_fini(&unit[i]);
    return rc;
}

static int cpu_compile(ty_cpu *cpu, const char *const *text, int n, ty_error *err)
{
    cpu->cc_start_ns = ty_clock_ns();
    return ty_objects_start(text, n, &cpu->opt.objects, &cpu->job, err);
}

static int cpu_await_compiler(ty_cpu *cpu, ty_error *err)
{
    if (!cpu->job)
        return 0;
    int rc = ty_objects_finish(cpu->job, &cpu->objects, err);
    cpu->job = NULL;
    cpu->report.cc_ms = (double)(ty_clock_ns() - cpu->cc_start_ns) * 1e-6;
    cpu->report.cache_hit = cpu->objects.cache_hit;
    return rc;
}

static int cpu_bind(ty_cpu *cpu, ty_error *err)
{
    char name[TY_KTEXTS_NAME_BYTES];
    for (int t = 0; t < cpu->n_plans; t++)
        for (int i = 0; i < cpu->tape[t].n_steps; i++) {
            ty_cpu_step *step = &cpu->tape[t].step[i];
            if (step->kind != TY_CPU_KERNEL)
                continue;
            snprintf(name, sizeof name, TY_KTEXTS_NAME, (unsigned long)step->hash);
            void *found = ty_objects_symbol(&cpu->objects, name);
            if (!found)
                return ty_error_set(err, TY_E_COMPILER, "compiled kernels lack %s", name);
            memcpy(&step->fn, &found, sizeof found);
        }
    return 0;
}

/* ---- building ---- */

static size_t cpu_room(size_t bytes)
{
    return bytes + 4096;
}

static int cpu_memory(size_t bytes, char **out, ty_error *err)
{
    *out = ty_pages_new(cpu_room(bytes));
    return *out ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes of temporaries", bytes);
}

/* Memory of its own, or what another program lends. */
static int cpu_borrow(size_t bytes, char *lent, size_t lent_bytes, char **out, bool *is_lent, ty_error *err)
{
    *is_lent = lent && lent_bytes >= bytes;
    if (!*is_lent)
        return cpu_memory(bytes, out, err);
    *out = lent;
    return 0;
}

static void cpu_size_slab(ty_cpu *cpu)
{
    for (int i = 0; i < cpu->n_plans; i++)
        if ((size_t)cpu->plan[i]->slab_bytes > cpu->report.slab_bytes)
            cpu->report.slab_bytes = (size_t)cpu->plan[i]->slab_bytes;
}

static int cpu_fill(ty_cpu *cpu, ty_error *err)
{
    cpu_size_slab(cpu);
    const ty_cpu *beside = cpu->opt.beside;
    if (cpu_borrow(cpu->report.slab_bytes, beside ? beside->slab : NULL, beside ? beside->report.slab_bytes : 0,
                   &cpu->slab, &cpu->has_lent_slab, err) < 0)
        return -1;
    for (int i = 0; i < cpu->n_plans; i++)
        if (cpu_add_tape(cpu, &cpu->tape[i], cpu->plan[i], err) < 0)
            return -1;
    cpu_find_needs(cpu);
    cpu->report.n_distinct_kernels = cpu->texts.n;
    ty_phases_lap(cpu->opt.phases, "render");
    int rc = cpu_with_texts(cpu, cpu_compile, err);
    ty_phases_lap(cpu->opt.phases, "start cc");
    return rc;
}

static ty_cpu *cpu_new(const ty_plan *const *plans, int n_plans, const ty_cpu_options *opt)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_cpu *cpu = TY_NEW(&arena, ty_cpu);
    cpu->arena = arena;
    cpu->texts.arena = &cpu->arena;
    cpu->plan = ty_arena_copy(&cpu->arena, plans, sizeof *plans * (size_t)n_plans);
    cpu->n_plans = n_plans;
    cpu->opt = *opt;
    cpu->dialect = opt->grid ? &cpu_grid : &cpu_c;
    cpu->tape = TY_NEW_ARRAY(&cpu->arena, cpu_tape, n_plans);
    cpu->late = -1;
    return cpu;
}

int ty_cpu_begin(const ty_plan *const *plans, int n_plans, const ty_cpu_options *opt, ty_cpu **out, ty_error *err)
{
    ty_cpu *cpu = cpu_new(plans, n_plans, opt);
    omp_set_num_threads(opt->threads);
    ty_phases_start(opt->phases);
    if (cpu_fill(cpu, err) < 0) {
        ty_cpu_free(cpu);
        return -1;
    }
    *out = cpu;
    return 0;
}

int ty_cpu_finish(ty_cpu *cpu, ty_error *err)
{
    ty_phases_start(cpu->opt.phases);
    for (int t = 0; t < cpu->n_plans; t++)
        for (int i = 0; i < cpu->tape[t].n_steps; i++)
            if (cpu->tape[t].step[i].kind == TY_CPU_LIBRARY &&
                cpu_prepare_step(cpu, cpu->plan[t]->f->g, &cpu->tape[t].step[i], err) < 0)
                return -1;
    const ty_cpu *beside = cpu->opt.beside;
    if (cpu_borrow(cpu->report.scratch_bytes, beside ? beside->scratch : NULL,
                   beside ? beside->report.scratch_bytes : 0, &cpu->scratch, &cpu->has_lent_scratch, err) < 0)
        return -1;
    ty_phases_lap(cpu->opt.phases, "prepare");
    if (cpu_await_compiler(cpu, err) < 0)
        return -1;
    ty_phases_lap(cpu->opt.phases, "cc");
    int rc = cpu_bind(cpu, err);
    ty_phases_lap(cpu->opt.phases, "bind");
    return rc;
}

/* ---- measuring ---- */

static int cpu_look_up(ty_cpu *cpu, const char *const *text, int n, ty_error *err)
{
    (void)text, (void)n;
    return ty_objects_find(&cpu->opt.objects, &cpu->report.cache_hit, err);
}

static int cpu_measure_plan(ty_cpu *cpu, const ty_plan *plan, ty_buf *scratch, ty_error *err)
{
    for (int at = 0; at < plan->n_order; at++) {
        const ty_unit *u = &plan->f->unit[plan->order[at]];
        ty_library_call call = {0};
        if (u->kind == TY_UNIT_KERNEL)
            cpu_render(cpu, plan, u->kernel, TY_NEW_ARRAY(&cpu->arena, int64_t, u->kernel->n_buffers), scratch);
        else if (u->kind == TY_UNIT_LIBRARY && cpu_prepare(cpu, plan->f->g, u->node, &call, err) < 0)
            return -1;
        ty_library_release(&call);
    }
    return 0;
}

int ty_cpu_measure(const ty_plan *const *plans, int n_plans, const ty_cpu_options *opt, ty_cpu_report *out,
                   ty_error *err)
{
    ty_cpu *cpu = cpu_new(plans, n_plans, opt);
    ty_buf scratch;
    ty_buf_init(&scratch, 16u << 20);
    int rc = 0;
    cpu_size_slab(cpu);
    for (int i = 0; i < n_plans && rc == 0; i++)
        rc = cpu_measure_plan(cpu, plans[i], &scratch, err);
    if (rc == 0 && scratch.failed)
        rc = ty_error_set(err, TY_E_LIMIT, "a generated kernel is larger than 16 MiB of text");
    if (rc == 0)
        rc = cpu_with_texts(cpu, cpu_look_up, err);
    cpu->report.n_distinct_kernels = cpu->texts.n;
    *out = cpu->report;
    ty_buf_fini(&scratch);
    ty_cpu_free(cpu);
    return rc;
}

void ty_cpu_free(ty_cpu *cpu)
{
    if (!cpu)
        return;
    for (int t = 0; t < cpu->n_plans; t++)
        for (int i = 0; i < cpu->tape[t].n_steps; i++)
            if (cpu->tape[t].step[i].kind == TY_CPU_LIBRARY)
                ty_library_release(&cpu->tape[t].step[i].call);
    ty_objects_abandon(cpu->job);
    ty_objects_close(&cpu->objects);
    if (!cpu->has_lent_slab)
        ty_pages_free(cpu->slab, cpu_room(cpu->report.slab_bytes));
    if (!cpu->has_lent_scratch)
        ty_pages_free(cpu->scratch, cpu_room(cpu->report.scratch_bytes));
    ty_arena arena = cpu->arena;
    ty_arena_fini(&arena);
}

const ty_cpu_report *ty_cpu_report_of(const ty_cpu *cpu)
{
    return &cpu->report;
}

char *ty_cpu_slab(const ty_cpu *cpu)
{
    return cpu->slab;
}
