/* tape.c - see tape.h. */
#include "compiler/target/cuda/tape.h"

#include "compiler/kernel/text.h"
#include "compiler/ops/op.h"
#include "compiler/target/cuda/join.h"
#include "compiler/target/cuda/library.h"
#include "compiler/target/cuda/own.h"
#include "compiler/target/pending.h"

#include <inttypes.h>
#include <string.h>

enum { TAPE_KERNEL_BYTES = 16 << 20 };

/* What an op has left in the scratch memory, as ty_cuda_own has it. */
typedef struct tape_left {
    ty_cuda_touch of; /* the operand */
    int64_t number;
    int at; /* items there were then; 0: nothing is left */
} tape_left;

/* A tape that grows. */
typedef struct tape_list {
    const ty_plan *plan;
    ty_ktexts *texts;
    ty_arena *arena;
    ty_cuda_item *item;
    uint64_t *kernel;
    ty_val *constant;
    int n_items, n_kernels, n_constants;
    int64_t scratch_bytes;
    tape_left left;
    bool in_order;
    size_t room_bytes;
    ty_pending pending;
    ty_buf text; /* of one kernel */
    bool failed; /* one was too large */
} tape_list;

/* The number of a constant, or how many there are. */
static int tape_constant_number(const ty_val *constant, int n, ty_val v)
{
    int i = 0;
    while (i < n && constant[i] != v)
        i++;
    return i;
}

static ty_place tape_place(tape_list *t, ty_val v)
{
    ty_place place = ty_plan_place(t->plan, v);
    ty_val constant = (ty_val)place.index;
    if (place.kind == TY_PLACE_CONST && tape_constant_number(t->constant, t->n_constants, constant) == t->n_constants)
        t->constant[t->n_constants++] = constant;
    return place;
}

static ty_cuda_item *tape_add(tape_list *t, ty_cuda_call_kind kind, int unit, const char *origin)
{
    ty_cuda_item *item = &t->item[t->n_items++];
    *item = (ty_cuda_item){.call = {.kind = kind, .unit = unit, .origin = origin ? origin : ""}};
    return item;
}

/* What the call touches: its places, of so many bytes; those from number n_read on are written. */
static void tape_touch(tape_list *t, ty_cuda_item *item, const int64_t *bytes, int n_read)
{
    ty_cuda_touch *touch = TY_NEW_ARRAY(t->arena, ty_cuda_touch, item->call.n_at);
    for (int i = 0; i < item->call.n_at; i++)
        touch[i] = (ty_cuda_touch){item->call.at[i], bytes[i], i >= n_read};
    item->touch = touch;
    item->n_touch = item->call.n_at;
}

static int tape_kernel(tape_list *t, uint64_t hash)
{
    for (int i = 0; i < t->n_kernels; i++)
        if (t->kernel[i] == hash)
            return i;
    t->kernel[t->n_kernels] = hash;
    return t->n_kernels++;
}

/* A copy of the text at hand. */
static const char *tape_text(tape_list *t)
{
    t->failed |= t->text.failed;
    return ty_arena_printf(t->arena, "%.*s", (int)t->text.len, t->text.data);
}

/* A kernel written by hand: parameters and body. */
static void tape_own_text(tape_list *t, const ty_cuda_launch *launch, const ty_buf *text)
{
    ty_buf_clear(&t->text);
    ty_buf_addf(&t->text, "%s(%d) TY_NAME", ty_cuda_word(launch->room, launch->is_lone), launch->threads);
    ty_buf_add(&t->text, text->data, text->len);
    t->text.failed |= text->failed;
}

/* ---- exchanges ---- */

/* What NCCL moves a kernel adds up. */
static void tape_add_order(tape_list *t, ty_cuda_item *item)
{
    ty_cuda_call *call = &item->call;
    ty_buf body;
    ty_buf_init(&body, TAPE_KERNEL_BYTES);
    call->launch = ty_in_order_render(t->plan->f->g, call->node, &call->in_order, &body);
    tape_own_text(t, &call->launch, &body);
    ty_buf_fini(&body);
    item->text = tape_text(t);
    call->bytes = call->in_order.room_bytes;
    t->room_bytes = call->bytes > t->room_bytes ? call->bytes : t->room_bytes;
}

static void tape_wait(tape_list *t, int exchange, int unit)
{
    if (exchange < 0)
        return;
    const ty_cuda_sync before[] = {{TY_CUDA_STREAM_MAIN, true, TY_CUDA_EVENT_OVER, exchange}};
    ty_cuda_call *call = &tape_add(t, TY_CUDA_WAIT, unit, NULL)->call;
    call->before = ty_arena_copy(t->arena, before, sizeof before);
    call->n_before = 1;
    ty_pending_over(&t->pending, exchange);
}

/* It begins where the tape is; its end is a mark that others wait for. */
static void tape_order_exchange(tape_list *t, ty_cuda_call *call)
{
    const ty_cuda_sync before[] = {{TY_CUDA_STREAM_MAIN, false, TY_CUDA_EVENT_READY, 0},
                                   {TY_CUDA_STREAM_EXCHANGES, true, TY_CUDA_EVENT_READY, 0}};
    const ty_cuda_sync after[] = {{TY_CUDA_STREAM_EXCHANGES, false, TY_CUDA_EVENT_OVER, call->exchange}};
    call->stream = TY_CUDA_STREAM_EXCHANGES;
    call->before = ty_arena_copy(t->arena, before, sizeof before);
    call->n_before = 2;
    call->after = ty_arena_copy(t->arena, after, sizeof after);
    call->n_after = 1;
}

/* They come one after the other on a stream of their own: none needs to wait for another. */
static void tape_add_exchange(tape_list *t, uint32_t node, int unit)
{
    const ty_graph *g = t->plan->f->g;
    ty_place at[2] = {tape_place(t, ty_graph_in(g, node, 0)), tape_place(t, ty_val_make(node, 0))};
    ty_cuda_item *item = tape_add(t, TY_CUDA_EXCHANGE, unit, ty_graph_origin_of(g, node));
    ty_cuda_call *call = &item->call;
    call->node = node;
    call->at = ty_arena_copy(t->arena, at, sizeof at);
    call->n_at = 2;
    call->n_in = 1;
    call->exchange = ty_pending_add(&t->pending, ty_pending_of_node(t->plan, node));
    tape_order_exchange(t, call);
    if (t->in_order && ty_in_order_of(g, node, &call->in_order))
        tape_add_order(t, item);
}

/* ---- kernels ---- */

/* Of a buffer and of all that share its memory, of which one may be longer: a stretch of a state beside the state. */
static ty_cuda_touch tape_touch_of(const tape_list *t, const ty_kernel *k, const uint32_t *alias, int buffer,
                                   ty_place at)
{
    ty_cuda_touch touch = {.at = at};
    for (int i = 0; i < k->n_buffers; i++) {
        if (alias[i] != (uint32_t)buffer)
            continue;
        int64_t bytes = (int64_t)ty_type_bytes(ty_graph_type(t->plan->f->g, k->buffer[i].val));
        touch.bytes = bytes > touch.bytes ? bytes : touch.bytes;
        touch.written |= k->buffer[i].written;
    }
    return touch;
}

/* One pointer a buffer that is not another's alias, as ty_cuda_render_kernel has it. */
static void tape_point(tape_list *t, const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_cuda_item *item)
{
    ty_place *at = TY_NEW_ARRAY(t->arena, ty_place, k->n_buffers);
    ty_cuda_touch *touch = TY_NEW_ARRAY(t->arena, ty_cuda_touch, k->n_buffers);
    int n = 0;
    for (int i = 0; i < k->n_buffers; i++) {
        if (alias[i] != (uint32_t)i)
            continue;
        at[n] = tape_place(t, k->buffer[i].val);
        touch[n] = tape_touch_of(t, k, alias, i, at[n]);
        at[n++].offset += base[i] * (int64_t)ty_dtype_bytes(k->buffer[i].dtype);
    }
    item->call.at = at;
    item->touch = touch;
    item->call.n_at = item->n_touch = n;
}

/* Pieces of memory begin at multiples of 16 bytes. */
static int tape_align(const ty_place *at)
{
    int64_t bytes = at->offset & -at->offset;
    return bytes == 0 || bytes > 16 ? 16 : (int)bytes;
}

/* By buffer: bytes of which its address is a multiple. */
static const int *tape_aligns(tape_list *t, const ty_kernel *k, const uint32_t *alias, const ty_cuda_call *call)
{
    int *align = TY_NEW_ARRAY(t->arena, int, k->n_buffers), n = 0;
    for (int i = 0; i < k->n_buffers; i++)
        if (alias[i] == (uint32_t)i)
            align[i] = tape_align(&call->at[n++]);
    return align;
}

static void tape_add_launch(tape_list *t, const ty_kernel *k, int unit)
{
    uint32_t *alias = TY_NEW_ARRAY(t->arena, uint32_t, k->n_buffers);
    int64_t *base = TY_NEW_ARRAY(t->arena, int64_t, k->n_buffers);
    ty_plan_aliases(t->plan, k, alias);
    ty_ktext_bases(k, alias, base);
    ty_cuda_item *item = tape_add(t, TY_CUDA_LAUNCH, unit, k->origin);
    tape_point(t, k, alias, base, item);
    const ty_cuda_kernel kernel = {k, alias, base, tape_aligns(t, k, alias, &item->call), TY_CUDA_FILL};
    ty_buf_clear(&t->text);
    item->call.launch = ty_cuda_render_kernel(&kernel, "TY_NAME", &t->text);
    item->text = tape_text(t);
    item->may_join = true;
    size_t read, written;
    ty_kernel_traffic(k, &read, &written);
    item->call.bytes = read + written;
}

/* ---- library calls ---- */

static ty_cuda_call tape_library(tape_list *t, uint32_t node, int unit)
{
    const ty_graph *g = t->plan->f->g;
    const ty_node *n = ty_graph_node(g, node);
    ty_place *at = TY_NEW_ARRAY(t->arena, ty_place, n->n_in + n->n_res);
    ty_cuda_call call = {.kind = TY_CUDA_LIBRARY,
                         .unit = unit,
                         .origin = ty_graph_origin_of(g, node),
                         .node = node,
                         .n_in = (int)n->n_in,
                         .n_at = (int)(n->n_in + n->n_res),
                         .at = at};
    for (int i = 0; i < call.n_in; i++)
        if (!ty_fuse_is_implied(g, node, i))
            at[i] = tape_place(t, ty_graph_in(g, node, i));
    for (uint32_t i = 0; i < n->n_res; i++)
        at[call.n_in + (int)i] = tape_place(t, ty_val_make(node, i));
    return call;
}

/* Of operand i, or of result i - n_in. */
static int64_t tape_value_bytes(const ty_graph *g, uint32_t node, int i)
{
    int n_in = (int)ty_graph_node(g, node)->n_in;
    ty_val v = i < n_in ? ty_graph_in(g, node, i) : ty_val_make(node, (uint32_t)(i - n_in));
    return v == TY_NONE ? 0 : (int64_t)ty_type_bytes(ty_graph_type(g, v));
}

static void tape_add_library(tape_list *t, uint32_t node, int unit)
{
    ty_cuda_item *item = tape_add(t, TY_CUDA_LIBRARY, unit, NULL);
    item->call = tape_library(t, node, unit);
    int64_t *bytes = TY_NEW_ARRAY(t->arena, int64_t, item->call.n_at);
    for (int i = 0; i < item->call.n_at; i++)
        bytes[i] = tape_value_bytes(t->plan->f->g, node, i);
    tape_touch(t, item, bytes, item->call.n_in);
}

/* ---- copies ---- */

static void tape_copy(tape_list *t, ty_place to, ty_place from, size_t bytes, int unit, const char *origin)
{
    ty_cuda_item *item = tape_add(t, TY_CUDA_COPY, unit, origin);
    const ty_cuda_touch touch[2] = {{to, (int64_t)bytes, true}, {from, (int64_t)bytes, false}};
    ty_place at[2] = {to, from};
    item->call.at = ty_arena_copy(t->arena, at, sizeof at);
    item->touch = ty_arena_copy(t->arena, touch, sizeof touch);
    item->call.n_at = item->n_touch = 2;
    item->call.bytes = bytes;
}

static void tape_add_copy(tape_list *t, ty_place to, ty_val from, int unit)
{
    const ty_graph *g = t->plan->f->g;
    tape_wait(t, ty_pending_before_copy(&t->pending, t->plan, to, from), unit);
    tape_copy(t, to, tape_place(t, from), ty_type_bytes(ty_graph_type(g, from)), unit,
              ty_graph_origin_of(g, ty_val_node(from)));
}

static void tape_add_assembly(tape_list *t, uint32_t node, int unit)
{
    const ty_graph *g = t->plan->f->g;
    ty_place to = ty_plan_place(t->plan, ty_val_make(node, 0));
    for (uint32_t i = 0; i < ty_graph_node(g, node)->n_in; i++) {
        ty_val in = ty_graph_in(g, node, (int)i);
        if (!ty_plan_part_in_place(t->plan, node, (int)i))
            tape_add_copy(t, to, in, unit);
        to.offset += (int64_t)ty_type_bytes(ty_graph_type(g, in));
    }
}

/* A table of which a kernel writes rows, where it must not be written over the old one. */
static void tape_add_tables(tape_list *t, const ty_unit *u, int unit)
{
    for (int i = 0; i < u->n_roots; i++) {
        ty_val old = ty_fuse_rows_of(t->plan->f->g, u->root[i]);
        if (old != TY_NONE && !ty_plan_rows_in_place(t->plan, u->root[i]))
            tape_add_copy(t, ty_plan_place(t->plan, u->root[i]), old, unit);
    }
}

/* ---- kernels written by hand ---- */

/* What they are given: where operands and results are. */
typedef struct tape_own {
    tape_list *list;
    const ty_cuda_call *places; /* as of a library call */
    uint32_t node;
} tape_own;

static bool tape_same_place(const ty_place *a, const ty_place *b)
{
    return a->kind == b->kind && a->index == b->index && a->offset == b->offset;
}

/* The same memory under another number: q, k and v may be one tensor. */
static bool tape_is_again(const ty_place *at, int i)
{
    int k = 0;
    while (k < i && !tape_same_place(&at[k], &at[i]))
        k++;
    return k < i;
}

static void tape_own_launch(void *ctx, const ty_buf *text, ty_cuda_launch launch, const int *which, int n)
{
    tape_own *own = ctx;
    tape_list *t = own->list;
    ty_place *at = TY_NEW_ARRAY(t->arena, ty_place, n);
    ty_cuda_touch *touch = TY_NEW_ARRAY(t->arena, ty_cuda_touch, n);
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        bool scratch = which[i] == TY_CUDA_OWN_SCRATCH;
        int64_t each = scratch ? 0 : tape_value_bytes(t->plan->f->g, own->node, which[i]);
        at[i] = scratch ? (ty_place){.kind = TY_PLACE_SCRATCH} : own->places->at[which[i]];
        touch[i] = (ty_cuda_touch){at[i], each, scratch || which[i] >= own->places->n_in};
        bytes += tape_is_again(at, i) ? 0 : each;
    }
    tape_own_text(t, &launch, text);
    ty_cuda_item *item = tape_add(t, TY_CUDA_LAUNCH, own->places->unit, own->places->origin);
    item->text = tape_text(t);
    item->call.launch = launch;
    item->call.bytes = (size_t)bytes;
    item->call.at = at;
    item->touch = touch;
    item->call.n_at = item->n_touch = n;
}

static void tape_own_copy(void *ctx, int to, int from)
{
    tape_own *own = ctx;
    const ty_graph *g = own->list->plan->f->g;
    tape_copy(own->list, own->places->at[to], own->places->at[from],
              ty_type_bytes(ty_graph_type(g, ty_val_make(own->node, 0))), own->places->unit, own->places->origin);
}

static void tape_own_scratch(void *ctx, int64_t bytes)
{
    tape_list *t = ((tape_own *)ctx)->list;
    t->scratch_bytes = bytes > t->scratch_bytes ? bytes : t->scratch_bytes;
}

static ty_cuda_touch tape_own_operand(const tape_own *own, int i)
{
    return (ty_cuda_touch){own->places->at[i], tape_value_bytes(own->list->plan->f->g, own->node, i), false};
}

static void tape_own_left(void *ctx, int index, int64_t number)
{
    tape_own *own = ctx;
    own->list->left = (tape_left){tape_own_operand(own, index), number, own->list->n_items};
}

/* Library calls may work in the scratch memory. */
static bool tape_spares(const ty_cuda_item *item, const ty_cuda_touch *operand)
{
    const ty_cuda_touch scratch = {{.kind = TY_PLACE_SCRATCH}, 0, false};
    if (item->call.kind != TY_CUDA_LAUNCH && item->call.kind != TY_CUDA_COPY)
        return false;
    for (int i = 0; i < item->n_touch; i++)
        if (ty_cuda_touches(&item->touch[i], operand) || ty_cuda_touches(&item->touch[i], &scratch))
            return false;
    return true;
}

static bool tape_own_finds(void *ctx, int index, int64_t number)
{
    tape_own *own = ctx;
    const tape_left *left = &own->list->left;
    const ty_cuda_touch operand = tape_own_operand(own, index);
    bool same = left->at > 0 && left->number == number && left->of.bytes == operand.bytes &&
                tape_same_place(&left->of.at, &operand.at);
    for (int i = left->at; same && i < own->list->n_items; i++)
        same = tape_spares(&own->list->item[i], &operand);
    return same;
}

/* False: there is none for the node. */
static bool tape_add_own(tape_list *t, uint32_t node, int unit)
{
    ty_cuda_call places = tape_library(t, node, unit);
    tape_own own = {t, &places, node};
    const ty_cuda_own o = {.g = t->plan->f->g,
                           .node = node,
                           .starts_in_place = tape_same_place(&places.at[0], &places.at[places.n_in]),
                           .starts_at_zero = places.at[0].kind == TY_PLACE_NONE,
                           .ctx = &own,
                           .launch = tape_own_launch,
                           .copy = tape_own_copy,
                           .scratch = tape_own_scratch,
                           .left = tape_own_left,
                           .finds = tape_own_finds};
    return ty_cuda_own_add(&o, NULL) == 0;
}

/* ---- the list ---- */

static void tape_add_unit(tape_list *t, int unit)
{
    const ty_unit *u = &t->plan->f->unit[t->plan->order[unit]];
    if (u->kind == TY_UNIT_ASSEMBLY) {
        tape_add_assembly(t, u->node, unit);
        return;
    }
    if (ty_unit_is_exchange(t->plan->f, u)) {
        tape_add_exchange(t, u->node, unit);
        return;
    }
    tape_add_tables(t, u, unit);
    tape_wait(t, ty_pending_before_unit(&t->pending, t->plan, u), unit);
    if (u->kind == TY_UNIT_KERNEL) {
        tape_add_launch(t, u->kernel, unit);
        return;
    }
    if (!tape_add_own(t, u->node, unit))
        tape_add_library(t, u->node, unit);
}

static int tape_max_calls(const ty_plan *plan)
{
    int n = plan->n_order + plan->n_copies;
    for (int at = 0; at < plan->n_order; at++) {
        const ty_unit *u = &plan->f->unit[plan->order[at]];
        n += u->kind == TY_UNIT_ASSEMBLY ? (int)ty_graph_node(plan->f->g, u->node)->n_in : u->n_roots;
        n += u->kind == TY_UNIT_LIBRARY ? TY_CUDA_OWN_MAX : 0;
    }
    return n + plan->n_order + 1; /* waits: no more than exchanges */
}

/* Joined, and only what is left of their texts. */
static ty_cuda_call *tape_calls(tape_list *t, int *n_calls)
{
    ty_cuda_call *call = TY_NEW_ARRAY(t->arena, ty_cuda_call, t->n_items + 1);
    t->failed |= !ty_cuda_join(t->item, t->n_items, t->arena);
    for (int i = 0; i < t->n_items; i++) {
        const ty_cuda_item *item = &t->item[i];
        if (item->is_gone)
            continue;
        call[*n_calls] = item->call;
        if (item->text)
            call[*n_calls].kernel = tape_kernel(t, ty_ktexts_add(t->texts, item->text, strlen(item->text)));
        ++*n_calls;
    }
    return call;
}

int ty_cuda_tape_of(const ty_plan *plan, bool in_order, ty_ktexts *texts, ty_arena *a, ty_cuda_tape *out, ty_error *err)
{
    int max = tape_max_calls(plan), n_calls = 0;
    tape_list t = {.plan = plan,
                   .texts = texts,
                   .arena = a,
                   .in_order = in_order,
                   .item = TY_NEW_ARRAY(a, ty_cuda_item, max),
                   .kernel = TY_NEW_ARRAY(a, uint64_t, max),
                   .constant = TY_NEW_ARRAY(a, ty_val, ty_graph_n_nodes(plan->f->g)),
                   .pending = {.list = TY_NEW_ARRAY(a, ty_exchanged, plan->n_order)}};
    ty_buf_init(&t.text, TAPE_KERNEL_BYTES);
    for (int unit = 0; unit < plan->n_order; unit++)
        tape_add_unit(&t, unit);
    for (int i = 0; i < plan->n_copies; i++)
        tape_add_copy(&t, (ty_place){TY_PLACE_STATE, plan->copy[i].state, 0}, plan->copy[i].value, plan->n_order + i);
    if (t.pending.n_over < t.pending.n)
        tape_wait(&t, t.pending.n - 1, plan->n_order + plan->n_copies);
    ty_cuda_call *call = tape_calls(&t, &n_calls);
    int rc = t.failed ? ty_error_set(err, TY_E_LIMIT, "a generated kernel is larger than 16 MiB of text") : 0;
    ty_buf_fini(&t.text);
    *out = (ty_cuda_tape){call,       n_calls,       t.kernel,        t.n_kernels, t.pending.n,
                          t.constant, t.n_constants, t.scratch_bytes, t.room_bytes};
    return rc;
}

/* ---- text ---- */

void ty_cuda_tape_print_facts(const ty_cuda_tape *tape, ty_buf *out)
{
    for (int i = 0; i < tape->n_calls; i++) {
        const ty_cuda_call *call = &tape->call[i];
        if (call->launch.threads)
            ty_buf_addf(out, TY_KTEXTS_NAME "\t%s\t%d\t%" PRId64 "\t%zu\t%s\n",
                        (unsigned long)tape->kernel[call->kernel], call->launch.form, call->launch.threads,
                        call->launch.blocks, call->bytes, call->origin);
    }
}

/* Constants by their number, which stays when others come into the graph. */
void ty_cuda_tape_print_place(const ty_cuda_tape *tape, const ty_place *at, ty_buf *out)
{
    static const char *const name[] = {
        [TY_PLACE_NONE] = "-",      [TY_PLACE_SLAB] = "slab",   [TY_PLACE_INPUT] = "input",
        [TY_PLACE_STATE] = "state", [TY_PLACE_CONST] = "const", [TY_PLACE_SCRATCH] = "scratch"};
    ty_buf_adds(out, name[at->kind]);
    if (at->kind == TY_PLACE_CONST)
        ty_buf_addf(out, " %d", tape_constant_number(tape->constant, tape->n_constants, (ty_val)at->index));
    else if (at->kind != TY_PLACE_NONE && at->kind != TY_PLACE_SLAB && at->kind != TY_PLACE_SCRATCH)
        ty_buf_addf(out, " %" PRId64, at->index);
    if (at->offset)
        ty_buf_addf(out, "%+" PRId64, at->offset);
}

static void print_places(const ty_cuda_tape *tape, const ty_place *at, int n, const char *before, ty_buf *out)
{
    for (int i = 0; i < n; i++) {
        ty_buf_adds(out, i == 0 ? before : ", ");
        ty_cuda_tape_print_place(tape, &at[i], out);
    }
}

static void print_launch(const ty_cuda_tape *tape, const ty_cuda_call *call, const ty_plan *plan, ty_buf *out)
{
    (void)plan;
    ty_buf_addf(out, "k%d %s<<<%" PRId64 ",%d>>>", call->kernel, call->launch.form, call->launch.blocks,
                call->launch.threads);
    print_places(tape, call->at, call->n_at, " ", out);
}

static void print_library(const ty_cuda_tape *tape, const ty_cuda_call *call, const ty_plan *plan, ty_buf *out)
{
    ty_cuda_library_print(plan->f->g, call->node, out);
    print_places(tape, call->at, call->n_in, ": ", out);
    print_places(tape, call->at + call->n_in, call->n_at - call->n_in, " -> ", out);
}

static void print_copy(const ty_cuda_tape *tape, const ty_cuda_call *call, const ty_plan *plan, ty_buf *out)
{
    (void)plan;
    ty_buf_addf(out, "copy %zu", call->bytes);
    print_places(tape, &call->at[1], 1, ": ", out);
    print_places(tape, &call->at[0], 1, " -> ", out);
}

static void print_exchange(const ty_cuda_tape *tape, const ty_cuda_call *call, const ty_plan *plan, ty_buf *out)
{
    char text[160];
    const ty_graph *g = plan->f->g;
    ty_op op = ty_graph_op(g, call->node);
    ty_buf_addf(out, "%s #%d of %" PRId64 " %s", ty_op_row_of(op)->text, call->exchange,
                ty_graph_attr(g, call->node)->replicas,
                ty_type_text(ty_graph_type(g, ty_graph_in(g, call->node, 0)), text, sizeof text));
    if (call->launch.threads)
        ty_buf_addf(out, " in order by k%d %s<<<%" PRId64 ",%d>>>", call->kernel, call->launch.form,
                    call->launch.blocks, call->launch.threads);
    print_places(tape, &call->at[0], 1, ": ", out);
    print_places(tape, &call->at[1], 1, " -> ", out);
}

static void print_syncs(int number, const ty_cuda_sync *sync, int n, ty_buf *out)
{
    for (int i = 0; i < n; i++) {
        ty_buf_addf(out, "%d ", number);
        ty_cuda_sync_print(&sync[i], out);
        ty_buf_adds(out, "\n");
    }
}

void ty_cuda_tape_print(const ty_cuda_tape *tape, const ty_plan *plan, ty_buf *out)
{
    static void (*const print[])(const ty_cuda_tape *, const ty_cuda_call *, const ty_plan *,
                                 ty_buf *) = {[TY_CUDA_LAUNCH] = print_launch,
                                              [TY_CUDA_LIBRARY] = print_library,
                                              [TY_CUDA_COPY] = print_copy,
                                              [TY_CUDA_EXCHANGE] = print_exchange,
                                              [TY_CUDA_WAIT] = NULL};
    ty_buf_addf(out, "tape: %d calls, %d kernels, %d constants, slab %" PRId64 "\n", tape->n_calls, tape->n_kernels,
                tape->n_constants, plan->slab_bytes);
    for (int i = 0; i < tape->n_calls; i++) {
        const ty_cuda_call *call = &tape->call[i];
        print_syncs(i, call->before, call->n_before, out);
        if (print[call->kind]) {
            ty_buf_addf(out, "%d %s ", i, ty_cuda_stream_text(call->stream));
            print[call->kind](tape, call, plan, out);
            ty_buf_addf(out, "%s%s\n", *call->origin ? " | " : "", call->origin);
        }
        print_syncs(i, call->after, call->n_after, out);
    }
}
