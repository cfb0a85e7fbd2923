/* tf_flat.c - a graph without calls, in the order in which things happen.
 *
 * Nodes are visited from the results backwards, a node after what it needs, each called body as a whole when its call
 * is reached. Control edges order what reads and assigns variables; through anything else they are only followed (a
 * watch) to find that. What then stands in the list without serving a result or an assignment is taken out.
 *
 * All by a stack of our own: the depth of a graph is the file's to choose.
 */
#include "compiler/import/tensorflow/tf_file.h"

#include <string.h>

enum { MAX_SLOTS = 1 << 22 }; /* nodes of all bodies that are opened */

typedef struct slot {
    signed char state; /* 0 not seen, 1 on the stack, 2 in the list */
    bool watched;
    int at;             /* in the list; an inlined call: -1 */
    const tf_edge *ret; /* of an inlined call */
    int n_ret;
} slot;

/* A body while its nodes are put into the list. */
typedef struct frame {
    const tf_body *b;
    slot *slot;
    const tf_scope *scope;
    const tf_edge *arg;
    int n_args, depth;
    const ty_wire_list *call_attrs; /* tf_attr: values for placeholders of the function's attributes */
} frame;

typedef struct work {
    frame *fr;
    int raw; /* -1: the results of the frame, then what else runs */
    int step;
    bool is_watch;
    frame *child; /* body of the call, once it was opened */
} work;

/* An input of a Merge that comes around a loop. */
typedef struct late_edge {
    frame *fr;
    int node, in; /* where it belongs */
    tf_in from;
} late_edge;

typedef struct flat {
    tf_file *f;
    ty_arena *arena; /* of the result */
    ty_arena scratch;
    tf_keep_call *keep;
    void *ctx;
    work *stack;
    size_t n_stack, stack_room;
    tf_node *node;
    size_t n_nodes, node_room;
    late_edge *late;
    size_t n_late, late_room;
    size_t n_slots;
    frame *root;
    const tf_in *fed; /* outputs of the root's nodes that are arguments */
    int n_fed;
    ty_error *err;
} flat;

/* ---- lists that grow ---- */

#define GROW(x, list, n, room, type)                               \
    do {                                                           \
        if ((x)->n == (x)->room) {                                 \
            size_t more = (x)->room ? 2 * (x)->room : 256;         \
            type *grown = TY_NEW_ARRAY(&(x)->scratch, type, more); \
            if ((x)->n)                                            \
                memcpy(grown, (x)->list, (x)->n * sizeof *grown);  \
            (x)->list = grown;                                     \
            (x)->room = more;                                      \
        }                                                          \
    } while (0)

static void push(flat *x, frame *fr, int raw, bool is_watch)
{
    GROW(x, stack, n_stack, stack_room, work);
    x->stack[x->n_stack++] = (work){.fr = fr, .raw = raw, .is_watch = is_watch};
}

static int raw_error(const flat *x, const frame *fr, const tf_raw *raw)
{
    char place[512];
    tf_node view = tf_raw_view(raw);
    view.scope = fr->scope;
    ty_error_at(x->err, "%s", tf_node_place(&view, place, sizeof place));
    return -1;
}

/* ---- edges ---- */

static int find_fed(const flat *x, const frame *fr, const tf_in *in)
{
    if (fr != x->root || in->kind != TF_IN_NODE)
        return -1;
    for (int i = 0; i < x->n_fed; i++)
        if (x->fed[i].at == in->at && x->fed[i].out == in->out)
            return i;
    return -1;
}

/* Where a value is in the list; node -1: nowhere. */
static tf_edge edge_of(const flat *x, const frame *fr, const tf_in *in)
{
    int fed = find_fed(x, fr, in);
    if (fed >= 0)
        return (tf_edge){fed, 0};
    if (in->kind == TF_IN_ARG)
        return in->at < fr->n_args ? fr->arg[in->at] : (tf_edge){-1, 0};
    const slot *s = &fr->slot[in->at];
    if (s->ret)
        return in->out < s->n_ret ? s->ret[in->out] : (tf_edge){-1, 0};
    return s->state == 2 ? (tf_edge){s->at, in->out} : (tf_edge){-1, 0};
}

/* ---- visiting ---- */

/* Sees to it that an input is in the list; pushes it if it is not. */
static int want(flat *x, frame *fr, const tf_in *in, bool is_strict)
{
    if (in->kind == TF_IN_ARG || find_fed(x, fr, in) >= 0)
        return 0;
    slot *s = &fr->slot[in->at];
    if (s->state == 1 && is_strict) {
        ty_error_set(x->err, TY_E_MODEL_FILE, "it needs its own result: the graph has a cycle");
        return raw_error(x, fr, &fr->b->raw[in->at]);
    }
    if (s->state == 0) {
        s->state = 1;
        push(x, fr, in->at, false);
    }
    return 0;
}

/* Identity of a TF1 variable: that is how those are read. */
static bool reads_ref(flat *x, const tf_body *b, tf_raw *raw)
{
    if (strcmp(raw->node.op, "Identity") != 0 || tf_body_inputs(x->f, b, raw, NULL) < 0 || raw->n_in < 1)
        return false;
    return raw->in[0].kind == TF_IN_NODE && tf_op_is_variable(b->raw[raw->in[0].at].node.op);
}

static bool is_call(const flat *x, const char *op)
{
    return strcmp(op, "PartitionedCall") == 0 || strcmp(op, "StatefulPartitionedCall") == 0 ||
           tf_find_function(x->f, op) >= 0;
}

/* What a control edge leads to. */
static int watch(flat *x, frame *fr, int at)
{
    tf_raw *raw = &fr->b->raw[at];
    const char *op = raw->node.op;
    if (tf_op_is_stripped(op))
        return 0;
    if (tf_op_assigns(op) || tf_op_reads(op) || is_call(x, op) || tf_op_is_control_flow(op) || reads_ref(x, fr->b, raw))
        return want(x, fr, &(tf_in){TF_IN_NODE, at, 0}, false);
    if (!fr->slot[at].watched) {
        fr->slot[at].watched = true;
        push(x, fr, at, true);
    }
    return 0;
}

static int step_watch(flat *x, work *w)
{
    frame *fr = w->fr;
    tf_raw *raw = &fr->b->raw[w->raw];
    if (tf_body_inputs(x->f, fr->b, raw, x->err) < 0)
        return raw_error(x, fr, raw);
    if (w->step == raw->n_in) {
        x->n_stack--;
        return 0;
    }
    const tf_in *in = &raw->in[w->step++];
    return in->kind == TF_IN_ARG ? 0 : watch(x, fr, in->at);
}

/* ---- calls ---- */

static frame *open_frame(flat *x, const tf_body *b, int depth)
{
    x->n_slots += (size_t)b->n;
    if (x->n_slots > MAX_SLOTS || depth > TF_MAX_CALL_DEPTH) {
        ty_error_set(x->err, TY_E_LIMIT,
                     depth > TF_MAX_CALL_DEPTH ? "functions call each other more than %d levels deep"
                                               : "with all calls taken apart the graph has more than %d nodes",
                     depth > TF_MAX_CALL_DEPTH ? TF_MAX_CALL_DEPTH : MAX_SLOTS);
        return NULL;
    }
    frame *fr = TY_NEW(&x->scratch, frame);
    fr->b = b;
    fr->slot = TY_NEW_ARRAY(&x->scratch, slot, b->n);
    fr->depth = depth;
    return fr;
}

/* Data inputs of a node as edges. */
static tf_edge *data_edges(flat *x, frame *fr, const tf_raw *raw, int *n)
{
    tf_edge *edge = TY_NEW_ARRAY(x->arena, tf_edge, raw->n_in);
    *n = 0;
    for (int i = 0; i < raw->n_in; i++)
        if (raw->in[i].kind != TF_IN_CONTROL)
            edge[(*n)++] = edge_of(x, fr, &raw->in[i]);
    return edge;
}

static int open_call(flat *x, size_t at, const tf_function *fn)
{
    frame *fr = x->stack[at].fr;
    const tf_raw *raw = &fr->b->raw[x->stack[at].raw];
    frame *child = open_frame(x, fn->body, fr->depth + 1);
    if (!child)
        return raw_error(x, fr, raw);
    child->arg = data_edges(x, fr, raw, &child->n_args);
    if (child->n_args != fn->n_args) {
        ty_error_set(x->err, TY_E_MODEL_FILE, "expected %d inputs for function \"%.120s\", found %d", fn->n_args,
                     fn->name, child->n_args);
        return raw_error(x, fr, raw);
    }
    tf_scope *scope = TY_NEW(x->arena, tf_scope);
    *scope = (tf_scope){fn->name, raw->node.name, fr->scope};
    child->scope = scope;
    tf_node view = tf_raw_view(raw);
    const tf_attr_value *v = tf_find_attr(&view, "f");
    child->call_attrs = v && v->func ? &v->func->attrs : NULL;
    x->stack[at].child = child;
    push(x, child, -1, false);
    return 0;
}

/* The body is in the list: results of the call are results of the body. */
static int close_call(flat *x, work *w)
{
    const tf_body *b = w->child->b;
    tf_edge *ret = TY_NEW_ARRAY(&x->scratch, tf_edge, b->n_ret + 1);
    for (int i = 0; i < b->n_ret; i++)
        ret[i] = edge_of(x, w->child, &b->ret[i]);
    slot *s = &w->fr->slot[w->raw];
    *s = (slot){.state = 2, .watched = s->watched, .at = -1, .ret = ret, .n_ret = b->n_ret};
    x->n_stack--;
    return 0;
}

static int step_frame(flat *x, work *w)
{
    const tf_body *b = w->fr->b;
    int i = w->step++;
    if (i < b->n_ret)
        return want(x, w->fr, &b->ret[i], true);
    if (i < b->n_ret + b->n_control)
        return watch(x, w->fr, b->control[i - b->n_ret]);
    x->n_stack--;
    return 0;
}

/* ---- nodes ---- */

/* Attributes whose value is that of an attribute of the function take it from the call. */
static const tf_attr *fill_attrs(flat *x, const frame *fr, const tf_raw *raw)
{
    if (!fr->call_attrs || fr->call_attrs->n == 0)
        return raw->attr;
    tf_node call = {.attr = fr->call_attrs->data, .n_attrs = (int)fr->call_attrs->n};
    tf_attr *filled = NULL;
    for (int i = 0; i < raw->n_attrs; i++) {
        const char *from = raw->attr[i].value->placeholder;
        const tf_attr_value *v = from && *from ? tf_find_attr(&call, from) : NULL;
        if (!v)
            continue;
        if (!filled)
            filled = ty_arena_copy(x->arena, raw->attr, (size_t)raw->n_attrs * sizeof *filled);
        filled[i].value = v;
    }
    return filled ? filled : raw->attr;
}

static bool is_merge(const char *op)
{
    return strcmp(op, "Merge") == 0 || strcmp(op, "RefMerge") == 0;
}

static bool comes_around(const frame *fr, const tf_raw *raw, const tf_in *in)
{
    if (!is_merge(raw->node.op) || in->kind != TF_IN_NODE)
        return false;
    const char *op = fr->b->raw[in->at].node.op;
    return strcmp(op, "NextIteration") == 0 || strcmp(op, "RefNextIteration") == 0;
}

static int check_edges(const flat *x, const frame *fr, const tf_raw *raw, const tf_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].node < 0 && !is_merge(n->op)) {
            ty_error_set(x->err, TY_E_MODEL_FILE, "its input %d is an output that does not exist", i);
            return raw_error(x, fr, raw);
        }
    return 0;
}

static int add_node(flat *x, frame *fr, int at, const tf_function *called)
{
    tf_raw *raw = &fr->b->raw[at];
    if (tf_body_attrs(x->f, fr->b, raw, x->err) < 0)
        return raw_error(x, fr, raw);
    tf_node n = tf_raw_view(raw);
    n.scope = fr->scope;
    n.attr = fill_attrs(x, fr, raw);
    n.in = data_edges(x, fr, raw, &n.n_in);
    n.called = called;
    n.is_effect = tf_raw_has_effects(x->f, fr->b, raw);
    if (fr == x->root && raw->variable >= 0)
        *(strcmp(n.op, "Const") == 0 ? &n.constant : &n.variable) = raw->variable;
    if (check_edges(x, fr, raw, &n) < 0)
        return -1;
    for (int i = 0, k = 0; i < raw->n_in; i++) {
        if (raw->in[i].kind == TF_IN_CONTROL)
            continue;
        if (n.in[k].node < 0) {
            GROW(x, late, n_late, late_room, late_edge);
            x->late[x->n_late++] = (late_edge){fr, (int)x->n_nodes, k, raw->in[i]};
        }
        k++;
    }
    GROW(x, node, n_nodes, node_room, tf_node);
    fr->slot[at].at = (int)x->n_nodes;
    fr->slot[at].state = 2;
    x->node[x->n_nodes++] = n;
    return 0;
}

/* All that the node needs is in the list. */
static int finish_node(flat *x, size_t at)
{
    work *w = &x->stack[at];
    if (w->child)
        return close_call(x, w);
    tf_raw *raw = &w->fr->b->raw[w->raw];
    int i = tf_called(x->f, w->fr->b, raw, x->err);
    const tf_function *fn = NULL;
    if (i < -1 || (i >= 0 && tf_load_function(x->f, i, &fn, x->err) < 0))
        return raw_error(x, w->fr, raw);
    if (fn && !(x->keep && x->keep(x->ctx, fn)))
        return open_call(x, at, fn);
    if (add_node(x, w->fr, w->raw, fn) < 0)
        return -1;
    x->n_stack--;
    return 0;
}

/* Control edges first: what they lead to happens before. */
static int step_node(flat *x, work *w)
{
    frame *fr = w->fr;
    tf_raw *raw = &fr->b->raw[w->raw];
    if (w->step == 0 && tf_body_inputs(x->f, fr->b, raw, x->err) < 0)
        return raw_error(x, fr, raw);
    if (w->step >= 2 * raw->n_in)
        return finish_node(x, (size_t)(w - x->stack));
    bool is_first_round = w->step < raw->n_in;
    const tf_in *in = &raw->in[w->step++ % raw->n_in];
    if (in->kind == TF_IN_CONTROL)
        return is_first_round ? watch(x, fr, in->at) : 0;
    return is_first_round || comes_around(fr, raw, in) ? 0 : want(x, fr, in, true);
}

static int run(flat *x)
{
    while (x->n_stack > 0) {
        work *w = &x->stack[x->n_stack - 1];
        int rc = w->raw < 0 ? step_frame(x, w) : w->is_watch ? step_watch(x, w) : step_node(x, w);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* What comes around loops, which may bring further loops. */
static int run_late(flat *x)
{
    for (size_t i = 0; i < x->n_late; i++)
        if (want(x, x->late[i].fr, &x->late[i].from, true) < 0 || run(x) < 0)
            return -1;
    for (size_t i = 0; i < x->n_late; i++) {
        const late_edge *l = &x->late[i];
        tf_edge *in = (tf_edge *)(uintptr_t)x->node[l->node].in; /* made by data_edges */
        in[l->in] = edge_of(x, l->fr, &l->from);
        if (in[l->in].node < 0)
            return ty_error_set(x->err, TY_E_MODEL_FILE,
                                "node \"%.120s\": its input %d is an output that does not exist", x->node[l->node].name,
                                l->in);
    }
    return 0;
}

/* ---- taking out what serves nothing ---- */

static void mark_live(const flat *x, bool *live, const tf_graph *g)
{
    int *stack = TY_NEW_ARRAY((ty_arena *)(uintptr_t)&x->scratch, int, x->n_nodes + 1);
    size_t n = 0;
    for (int i = 0; i < g->n_args; i++)
        live[i] = true;
    for (size_t i = 0; i < x->n_nodes; i++)
        if (x->node[i].is_effect && !live[i])
            live[stack[n++] = (int)i] = true;
    for (int i = 0; i < g->n_results; i++)
        if (!live[g->result_edge[i].node])
            live[stack[n++] = g->result_edge[i].node] = true;
    while (n > 0) {
        const tf_node *at = &x->node[stack[--n]];
        for (int k = 0; k < at->n_in; k++)
            if (!live[at->in[k].node])
                live[stack[n++] = at->in[k].node] = true;
    }
}

static void use_output(tf_graph *g, tf_edge *e, const int *moved)
{
    e->node = moved[e->node];
    if (g->node[e->node].n_out <= e->out)
        g->node[e->node].n_out = e->out + 1;
}

static void compact(flat *x, tf_graph *g)
{
    bool *live = TY_NEW_ARRAY(&x->scratch, bool, x->n_nodes + 1);
    int *moved = TY_NEW_ARRAY(&x->scratch, int, x->n_nodes + 1);
    mark_live(x, live, g);
    g->node = TY_NEW_ARRAY(x->arena, tf_node, x->n_nodes);
    for (size_t i = 0; i < x->n_nodes; i++)
        if (live[i]) {
            moved[i] = g->n_nodes;
            g->node[g->n_nodes++] = x->node[i];
        }
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i].n_in; k++)
            use_output(g, (tf_edge *)(uintptr_t)&g->node[i].in[k], moved);
    for (int i = 0; i < g->n_results; i++)
        use_output(g, (tf_edge *)(uintptr_t)&g->result_edge[i], moved);
}

/* ---- the two ways in ---- */

/* Arguments come first in the list. */
static void add_args(flat *x, const tf_port *arg, int n)
{
    for (int i = 0; i < n; i++) {
        GROW(x, node, n_nodes, node_room, tf_node);
        x->node[x->n_nodes++] =
            (tf_node){.name = arg[i].name, .op = TF_OP_ARG, .n_out = 1, .arg = i, .variable = -1, .constant = -1};
    }
}

static int take_results(flat *x, tf_graph *g, const tf_in *from, int n)
{
    tf_edge *edge = TY_NEW_ARRAY(x->arena, tf_edge, n);
    for (int i = 0; i < n; i++) {
        edge[i] = edge_of(x, x->root, &from[i]);
        if (edge[i].node < 0)
            return ty_error_set(x->err, TY_E_MODEL_FILE, "result \"%.120s\" is an output that does not exist",
                                g->result[i].name);
    }
    g->result_edge = edge;
    g->n_results = n;
    g->has_loops = x->n_late > 0;
    return 0;
}

static flat flat_begin(const tf_file *f, tf_keep_call *keep, void *ctx, ty_arena *arena, ty_error *err)
{
    flat x = {.f = (tf_file *)(uintptr_t)f, .arena = arena, .keep = keep, .ctx = ctx, .err = err};
    ty_arena_init(&x.scratch);
    return x;
}

static int flat_end(flat *x, int rc, const tf_graph *g)
{
    ty_arena_fini(&x->scratch);
    if (rc == 0)
        return 0;
    char at[TY_ERROR_PLACE_BYTES] = "";
    if (x->err) {
        memcpy(at, x->err->place, sizeof at);
        x->err->place[0] = 0;
    }
    ty_error_wrap(x->err, "%s", g->name);
    return ty_error_at(x->err, *at ? "%.150s: %.160s" : "%.300s%s", x->f->path, at);
}

int tf_function_graph(const tf_file *f, const tf_function *fn, tf_keep_call *keep, void *ctx, ty_arena *arena,
                      tf_graph **out, ty_error *err)
{
    flat x = flat_begin(f, keep, ctx, arena, err);
    tf_graph *g = *out = TY_NEW(arena, tf_graph);
    g->name = ty_arena_printf(arena, "function \"%s\"", fn->name);
    g->arg = fn->arg;
    g->n_args = fn->n_args;
    g->result = fn->result;
    int rc = (x.root = open_frame(&x, fn->body, 0)) ? 0 : -1;
    if (rc == 0) {
        tf_scope *scope = TY_NEW(arena, tf_scope);
        *scope = (tf_scope){fn->name, fn->name, NULL};
        tf_edge *arg = TY_NEW_ARRAY(&x.scratch, tf_edge, fn->n_args);
        for (int i = 0; i < fn->n_args; i++)
            arg[i] = (tf_edge){i, 0};
        x.root->arg = arg;
        x.root->n_args = fn->n_args;
        x.root->scope = scope;
        add_args(&x, fn->arg, fn->n_args);
        push(&x, x.root, -1, false);
        rc = run(&x) < 0 || run_late(&x) < 0 ? -1 : take_results(&x, g, fn->body->ret, fn->n_results);
    }
    if (rc == 0)
        compact(&x, g);
    return flat_end(&x, rc, g);
}

/* Everything that running the signature would do. */
static int run_signature(flat *x, const tf_signature *s)
{
    for (int i = 0; i < s->n_outputs; i++)
        if (want(x, x->root, &s->ends->output[i], true) < 0 || run(x) < 0)
            return -1;
    for (int i = 0; i < s->ends->n_effects; i++)
        if (watch(x, x->root, s->ends->effect[i]) < 0 || run(x) < 0)
            return -1;
    return run_late(x);
}

int tf_signature_graph(const tf_file *f, const tf_signature *s, tf_keep_call *keep, void *ctx, ty_arena *arena,
                       tf_graph **out, ty_error *err)
{
    flat x = flat_begin(f, keep, ctx, arena, err);
    tf_graph *g = *out = TY_NEW(arena, tf_graph);
    g->name = ty_arena_printf(arena, "signature \"%s\"", s->name);
    g->arg = s->input;
    g->n_args = s->n_inputs;
    g->result = s->output;
    x.fed = s->ends->input;
    x.n_fed = s->n_inputs;
    int rc = (x.root = open_frame(&x, f->body, 0)) ? 0 : -1;
    if (rc == 0) {
        add_args(&x, s->input, s->n_inputs);
        rc = run_signature(&x, s) < 0 ? -1 : take_results(&x, g, s->ends->output, s->n_outputs);
    }
    if (rc == 0)
        compact(&x, g);
    return flat_end(&x, rc, g);
}
