/* graph.c - storage of a graph: arrays, interning, inputs, states, outputs, effects, reachability.
 *
 * How a node comes to be is in emit.c; this file only keeps what it is given.
 */
#include "compiler/ir/graph.h"

#include "compiler/ir/storage.h"
#include "compiler/ops/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrays and tables ---- */

static void *graph_push(ty_graph *g, graph_array *a, size_t elem_bytes, uint32_t n)
{
    if (a->n + n > a->cap) {
        uint32_t cap = a->cap ? a->cap : 64;
        while (cap < a->n + n)
            cap *= 2;
        void *data = ty_arena_alloc(&g->arena, elem_bytes * cap);
        if (a->n > 0)
            memcpy(data, a->data, elem_bytes * a->n);
        a->data = data;
        a->cap = cap;
    }
    void *at = (char *)a->data + elem_bytes * a->n;
    a->n += n;
    return at;
}

/* Multiply and fold, 8 bytes at a time (Knuth's multiplicative hashing, TAOCP 6.4), and the finalizer of MurmurHash3.
 */
static uint32_t graph_hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = (h ^ w) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    for (; n > 0; n--, p++)
        h = (h ^ *p) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCDu;
    return (uint32_t)(h ^ h >> 33);
}

static void table_grow(ty_graph *g, graph_table *t)
{
    uint32_t cap = t->cap ? t->cap * 2 : 256;
    graph_slot *slot = TY_NEW_ARRAY(&g->arena, graph_slot, cap);
    for (uint32_t i = 0; i < t->cap; i++) {
        if (!t->slot[i].id1)
            continue;
        uint32_t at = t->slot[i].hash & (cap - 1);
        while (slot[at].id1)
            at = (at + 1) & (cap - 1);
        slot[at] = t->slot[i];
    }
    t->slot = slot;
    t->cap = cap;
}

typedef bool graph_same_fn(const ty_graph *g, uint32_t id, const void *key);

/* The slot of an equal item, or the free slot where it goes; make room first. */
static graph_slot *table_find(ty_graph *g, graph_table *t, uint32_t hash, graph_same_fn *same, const void *key)
{
    if (2 * (t->used + 1) > t->cap)
        table_grow(g, t);
    uint32_t at = hash & (t->cap - 1);
    while (t->slot[at].id1) {
        if (t->slot[at].hash == hash && same(g, t->slot[at].id1 - 1, key))
            break;
        at = (at + 1) & (t->cap - 1);
    }
    return &t->slot[at];
}

static void table_put(graph_table *t, graph_slot *slot, uint32_t hash, uint32_t id)
{
    *slot = (graph_slot){hash, id + 1};
    t->used++;
}

/* ---- interning ---- */

static const ty_type *graph_type_at(const ty_graph *g, uint32_t id)
{
    return ((const ty_type **)g->type.data)[id];
}

static bool same_type(const ty_graph *g, uint32_t id, const void *key)
{
    return memcmp(graph_type_at(g, id), key, sizeof(ty_type)) == 0;
}

static uint32_t intern_type(ty_graph *g, const ty_type *type)
{
    uint32_t hash = graph_hash(1, type, sizeof *type);
    graph_slot *slot = table_find(g, &g->type_table, hash, same_type, type);
    if (!slot->id1) {
        *(const ty_type **)graph_push(g, &g->type, sizeof(void *), 1) = ty_arena_copy(&g->arena, type, sizeof *type);
        table_put(&g->type_table, slot, hash, g->type.n - 1);
    }
    return slot->id1 - 1;
}

static const ty_attr *graph_attr_at(const ty_graph *g, uint32_t id)
{
    return ((const ty_attr **)g->attr.data)[id];
}

static bool same_attr(const ty_graph *g, uint32_t id, const void *key)
{
    return memcmp(graph_attr_at(g, id), key, sizeof(ty_attr)) == 0;
}

static uint32_t intern_attr(ty_graph *g, const ty_attr *attr)
{
    uint32_t hash = graph_hash(2, attr, sizeof *attr);
    graph_slot *slot = table_find(g, &g->attr_table, hash, same_attr, attr);
    if (!slot->id1) {
        *(const ty_attr **)graph_push(g, &g->attr, sizeof(void *), 1) = ty_arena_copy(&g->arena, attr, sizeof *attr);
        table_put(&g->attr_table, slot, hash, g->attr.n - 1);
    }
    return slot->id1 - 1;
}

static bool same_origin(const ty_graph *g, uint32_t id, const void *key)
{
    return strcmp(((const char **)g->origin_of.data)[id], key) == 0;
}

void ty_graph_origin(ty_graph *g, const char *origin)
{
    uint32_t hash = graph_hash(3, origin, strlen(origin));
    graph_slot *slot = table_find(g, &g->origin_table, hash, same_origin, origin);
    if (!slot->id1) {
        *(const char **)graph_push(g, &g->origin_of, sizeof(void *), 1) = ty_arena_strdup(&g->arena, origin);
        table_put(&g->origin_table, slot, hash, g->origin_of.n - 1);
    }
    g->origin = slot->id1 - 1;
}

/* Constants up to this size are copied and compared by content. */
#define GRAPH_SMALL_CONST_BYTES 4096

static const graph_const *graph_const_at(const ty_graph *g, uint32_t id)
{
    return &((const graph_const *)g->constant.data)[id];
}

static bool same_const(const ty_graph *g, uint32_t id, const void *key)
{
    const graph_const *a = graph_const_at(g, id), *b = key;
    if (!ty_type_same(&a->type, &b->type))
        return false;
    return a->data == b->data || (a->owned && b->owned && memcmp(a->data, b->data, ty_type_bytes(&a->type)) == 0);
}

/* copies: data lie elsewhere, and are copied if there is no such constant yet. */
static ty_val graph_const_of(ty_graph *g, const ty_type *type, const void *data, bool owned, bool copies)
{
    if (g->failed)
        return TY_NONE;
    size_t n_bytes = ty_type_bytes(type);
    bool small = n_bytes <= GRAPH_SMALL_CONST_BYTES;
    graph_const key = {ty_type_make((ty_dtype)type->dtype, type->rank, type->dim), data, owned || small};
    uint32_t hash = graph_hash(4, &key.type, sizeof key.type);
    hash = key.owned ? graph_hash(hash, data, n_bytes) : graph_hash(hash, &data, sizeof data);
    graph_slot *slot = table_find(g, &g->constant_table, hash, same_const, &key);
    if (!slot->id1) {
        if (copies || (small && !owned))
            key.data = ty_arena_copy(&g->arena, data, n_bytes);
        *(graph_const *)graph_push(g, &g->constant, sizeof key, 1) = key;
        table_put(&g->constant_table, slot, hash, g->constant.n - 1);
    }
    ty_attr attr = {.type = key.type, .index = slot->id1 - 1};
    return ty_graph_emit(g, TY_OP_CONST, &attr, NULL, 0);
}

ty_val ty_graph_const(ty_graph *g, const ty_type *type, const void *data, bool owned)
{
    return graph_const_of(g, type, data, owned, false);
}

ty_val ty_graph_const_copy(ty_graph *g, const ty_type *type, const void *data)
{
    return graph_const_of(g, type, data, true, true);
}

const void *ty_graph_const_data(const ty_graph *g, ty_val v)
{
    if (v == TY_NONE || ty_graph_op(g, ty_val_node(v)) != TY_OP_CONST)
        return NULL;
    return graph_const_at(g, (uint32_t)ty_graph_attr(g, ty_val_node(v))->index)->data;
}

bool ty_graph_const_is_borrowed(const ty_graph *g, ty_val v)
{
    return ty_graph_const_data(g, v) && !graph_const_at(g, (uint32_t)ty_graph_attr(g, ty_val_node(v))->index)->owned;
}

/* ---- nodes ---- */

static bool same_node(const ty_graph *g, uint32_t id, const void *key)
{
    const ty_node *a = ty_graph_node(g, id), *b = key;
    if (a->op != b->op || a->attr != b->attr || a->n_in != b->n_in || a->type[0] != b->type[0])
        return false;
    /* The candidate's inputs have been pushed at b->in_off already. */
    const ty_val *in = g->in.data;
    return a->n_in == 0 || memcmp(in + a->in_off, in + b->in_off, a->n_in * sizeof *in) == 0;
}

ty_val ty_graph_append(ty_graph *g, const graph_draft *d)
{
    ty_node node = {.op = (uint16_t)d->op,
                    .n_res = (uint8_t)ty_op_row_of(d->op)->n_res,
                    .n_in = (uint32_t)d->n_in,
                    .in_off = g->in.n,
                    .attr = intern_attr(g, &d->attr),
                    .origin = g->origin};
    for (int i = 0; i < node.n_res; i++)
        node.type[i] = intern_type(g, &d->res[i]);
    if (d->n_in > 0)
        memcpy(graph_push(g, &g->in, sizeof(ty_val), node.n_in), d->in, node.n_in * sizeof(ty_val));
    node.hash = graph_hash((uint64_t)node.op << 32 | node.attr, d->in, node.n_in * sizeof(ty_val));
    graph_slot *slot = table_find(g, &g->node_table, node.hash, same_node, &node);
    if (slot->id1) {
        g->in.n = node.in_off;
        return ty_val_make(slot->id1 - 1, 0);
    }
    *(ty_node *)graph_push(g, &g->node, sizeof node, 1) = node;
    table_put(&g->node_table, slot, node.hash, g->node.n - 1);
    return ty_val_make(g->node.n - 1, 0);
}

uint32_t ty_graph_n_nodes(const ty_graph *g)
{
    return g->node.n;
}

const ty_node *ty_graph_node(const ty_graph *g, uint32_t id)
{
    return &((const ty_node *)g->node.data)[id];
}

ty_val ty_graph_in(const ty_graph *g, uint32_t id, int i)
{
    return ((const ty_val *)g->in.data)[ty_graph_node(g, id)->in_off + (uint32_t)i];
}

const ty_type *ty_graph_type(const ty_graph *g, ty_val v)
{
    return graph_type_at(g, ty_graph_node(g, ty_val_node(v))->type[ty_val_result(v)]);
}

const ty_attr *ty_graph_attr(const ty_graph *g, uint32_t id)
{
    return graph_attr_at(g, ty_graph_node(g, id)->attr);
}

const char *ty_graph_origin_of(const ty_graph *g, uint32_t id)
{
    return ((const char **)g->origin_of.data)[ty_graph_node(g, id)->origin];
}

/* ---- life and errors ---- */

ty_graph *ty_graph_new(void)
{
    ty_arena arena; /* the graph lies in its own */
    ty_arena_init(&arena);
    ty_graph *g = TY_NEW(&arena, ty_graph);
    g->arena = arena;
    ty_graph_origin(g, "");
    return g;
}

void ty_graph_free(ty_graph *g)
{
    if (!g)
        return;
    ty_arena arena = g->arena;
    ty_arena_fini(&arena);
}

bool ty_graph_failed(const ty_graph *g, ty_error *err)
{
    if (g->failed && err)
        *err = g->err;
    return g->failed;
}

ty_val ty_graph_fail(ty_graph *g, ty_code code, const char *fmt, ...)
{
    if (g->failed)
        return TY_NONE;
    char message[TY_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    g->err = (ty_error){0};
    ty_error_set(&g->err, code, "%s", message);
    const char *origin = ((const char **)g->origin_of.data)[g->origin];
    if (*origin)
        ty_error_at(&g->err, "%s", origin);
    g->failed = true;
    return TY_NONE;
}

void ty_graph_clear_error(ty_graph *g)
{
    g->failed = false;
    g->err = (ty_error){0};
}

ty_arena *ty_graph_arena(ty_graph *g)
{
    return &g->arena;
}

/* ---- inputs, states, outputs, effects ---- */

int ty_graph_n_inputs(const ty_graph *g)
{
    return (int)g->input.n;
}

const ty_input *ty_graph_input(const ty_graph *g, int i)
{
    return ((ty_input **)g->input.data)[i];
}

int ty_graph_add_input(ty_graph *g, const char *name, ty_type type)
{
    if (g->failed)
        return -1;
    for (int i = 0; i < ty_graph_n_inputs(g); i++)
        if (strcmp(ty_graph_input(g, i)->name, name) == 0)
            return (void)ty_graph_fail(g, TY_E_GRAPH, "two inputs are named \"%s\"", name), -1;
    ty_input *in = TY_NEW(&g->arena, ty_input);
    in->name = ty_arena_strdup(&g->arena, name);
    in->type = ty_type_make((ty_dtype)type.dtype, type.rank, type.dim);
    *(ty_input **)graph_push(g, &g->input, sizeof in, 1) = in;
    return ty_graph_n_inputs(g) - 1;
}

int ty_graph_n_states(const ty_graph *g)
{
    return (int)g->state.n;
}

const ty_state *ty_graph_state(const ty_graph *g, int i)
{
    return ((ty_state **)g->state.data)[i];
}

/* Segments in order, side by side or with gaps, inside the state. */
static bool segments_fit(ty_graph *g, const ty_state *state)
{
    int64_t end = 0;
    for (int i = 0; i < state->n_segments; i++) {
        const ty_segment *s = &state->segments[i];
        if (s->offset < end || s->type.dtype != state->type.dtype ||
            s->offset > ty_type_elems(&state->type) - ty_type_elems(&s->type)) {
            ty_graph_fail(g, TY_E_GRAPH,
                          "state \"%s\": segment \"%s\" at %lld overlaps another, has another dtype or "
                          "lies outside of the state",
                          state->name, s->name, (long long)s->offset);
            return false;
        }
        end = s->offset + ty_type_elems(&s->type);
    }
    return true;
}

static void state_copy_segments(ty_graph *g, ty_state *to, const ty_state *from)
{
    int n = from->n_segments > 0 ? from->n_segments : 1;
    ty_segment *segments = TY_NEW_ARRAY(&g->arena, ty_segment, n);
    segments[0] = (ty_segment){.name = to->name, .type = to->type};
    for (int i = 0; i < from->n_segments; i++) {
        const ty_segment *s = &from->segments[i];
        segments[i].name = ty_arena_strdup(&g->arena, s->name);
        segments[i].type = ty_type_make((ty_dtype)s->type.dtype, s->type.rank, s->type.dim);
        segments[i].offset = s->offset;
    }
    to->segments = segments;
    to->n_segments = n;
    if (from->init)
        to->init = ty_arena_copy(&g->arena, from->init, sizeof(void *) * (size_t)n);
}

int ty_graph_add_state(ty_graph *g, const ty_state *state)
{
    if (g->failed)
        return -1;
    for (int i = 0; i < ty_graph_n_states(g); i++)
        if (strcmp(ty_graph_state(g, i)->name, state->name) == 0)
            return (void)ty_graph_fail(g, TY_E_GRAPH, "two states are named \"%s\"", state->name), -1;
    if (!segments_fit(g, state))
        return -1;
    ty_state *s = TY_NEW(&g->arena, ty_state);
    s->name = ty_arena_strdup(&g->arena, state->name);
    s->type = ty_type_make((ty_dtype)state->type.dtype, state->type.rank, state->type.dim);
    s->role = state->role;
    state_copy_segments(g, s, state);
    *(ty_state **)graph_push(g, &g->state, sizeof s, 1) = s;
    return ty_graph_n_states(g) - 1;
}

int ty_graph_add_counter(ty_graph *g, const char *name, ty_type type, const void *init)
{
    ty_segment segment = {name, type, 0};
    ty_state state = {.name = name,
                      .type = type,
                      .role = TY_STATE_COUNTER,
                      .segments = &segment,
                      .n_segments = 1,
                      .init = init ? &init : NULL};
    return ty_graph_add_state(g, &state);
}

int ty_graph_n_outputs(const ty_graph *g)
{
    return (int)g->output.n;
}

const ty_output *ty_graph_output(const ty_graph *g, int i)
{
    return ((ty_output **)g->output.data)[i];
}

int ty_graph_add_output(ty_graph *g, const char *name, ty_val v, uint32_t tapes)
{
    if (g->failed)
        return -1;
    if (v == TY_NONE || ty_val_node(v) >= g->node.n)
        return (void)ty_graph_fail(g, TY_E_GRAPH, "output \"%s\" has no value", name), -1;
    if (ty_graph_op(g, ty_val_node(v)) == TY_OP_ASSIGN)
        return (void)ty_graph_fail(g, TY_E_GRAPH, "output \"%s\" is an assign, expected the value assigned", name), -1;
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if (strcmp(ty_graph_output(g, i)->name, name) == 0 && (ty_graph_output(g, i)->tapes & tapes))
            return (void)ty_graph_fail(g, TY_E_GRAPH, "two outputs of one tape are named \"%s\"", name), -1;
    ty_output *out = TY_NEW(&g->arena, ty_output);
    *out = (ty_output){ty_arena_strdup(&g->arena, name), v, tapes};
    *(ty_output **)graph_push(g, &g->output, sizeof out, 1) = out;
    return ty_graph_n_outputs(g) - 1;
}

int ty_graph_n_effects(const ty_graph *g)
{
    return (int)g->effect.n;
}

const ty_effect *ty_graph_effect(const ty_graph *g, int i)
{
    return &((const ty_effect *)g->effect.data)[i];
}

int ty_graph_add_assign(ty_graph *g, int state, ty_val value, uint32_t tapes)
{
    if (g->failed)
        return -1;
    if (state < 0 || state >= ty_graph_n_states(g))
        return (void)ty_graph_fail(g, TY_E_GRAPH, "assign to state %d: the graph has %d", state, ty_graph_n_states(g)),
               -1;
    const char *name = ty_graph_state(g, state)->name;
    if (value == TY_NONE)
        return (void)ty_graph_fail(g, TY_E_GRAPH, "assign to state \"%s\": there is no value", name), -1;
    for (int i = 0; i < ty_graph_n_effects(g); i++) {
        const ty_effect *e = ty_graph_effect(g, i);
        if (ty_graph_attr(g, e->node)->index == state && (e->tapes & tapes))
            return (void)ty_graph_fail(g, TY_E_GRAPH, "state \"%s\" is assigned twice in one tape", name), -1;
    }
    ty_val v = ty_graph_emit(g, TY_OP_ASSIGN, &(ty_attr){.index = state}, &value, 1);
    if (v == TY_NONE)
        return -1;
    *(ty_effect *)graph_push(g, &g->effect, sizeof(ty_effect), 1) = (ty_effect){ty_val_node(v), tapes};
    return ty_graph_n_effects(g) - 1;
}

void ty_graph_mark_live(const ty_graph *g, uint32_t tapes, uint8_t *live)
{
    memset(live, 0, g->node.n);
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        if (ty_graph_output(g, i)->tapes & tapes)
            live[ty_val_node(ty_graph_output(g, i)->val)] = 1;
    for (int i = 0; i < ty_graph_n_effects(g); i++)
        if (ty_graph_effect(g, i)->tapes & tapes)
            live[ty_graph_effect(g, i)->node] = 1;
    for (uint32_t id = g->node.n; id-- > 0;)
        for (uint32_t k = 0; live[id] && k < ty_graph_node(g, id)->n_in; k++) {
            ty_val v = ty_graph_in(g, id, (int)k);
            if (v != TY_NONE)
                live[ty_val_node(v)] = 1;
        }
}
