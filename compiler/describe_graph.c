/* describe_graph.c - the operations of a tape and the unit that each became part of. See compiler.h. */
#include "compiler/ir/text.h"
#include "compiler/ops/op.h"
#include "compiler/ops/work.h"
#include "compiler/program.h"

#include <string.h>

static bool graph_is_leaf(ty_op op)
{
    return op == TY_OP_INPUT || op == TY_OP_STATE || op == TY_OP_CONST;
}

/* Filled before the unit runs. */
static bool graph_is_read(const ty_fusion *f, uint32_t unit, uint32_t node)
{
    if (graph_is_leaf(ty_graph_op(f->g, node)))
        return true;
    for (uint32_t i = 0; i < ty_graph_node(f->g, node)->n_res; i++) {
        ty_val v = ty_val_make(node, i);
        if (f->in_memory[v] && f->producer[v] != TY_NONE && f->producer[v] != unit)
            return true;
    }
    return false;
}

/* Operands have smaller ids, so that one walk down finds all. */
void ty_unit_mark(const ty_fusion *f, uint32_t unit, uint8_t *mark)
{
    const ty_unit *u = &f->unit[unit];
    uint32_t top = u->node;
    mark[u->node] = 1;
    for (int i = 0; i < u->n_roots; i++)
        mark[ty_val_node(u->root[i])] = 1;
    for (int i = 0; i < u->n_reduces; i++)
        mark[u->reduce[i]] = 1;
    for (int i = 0; i < u->n_roots; i++)
        top = ty_val_node(u->root[i]) > top ? ty_val_node(u->root[i]) : top;
    for (int i = 0; i < u->n_reduces; i++)
        top = u->reduce[i] > top ? u->reduce[i] : top;
    for (uint32_t node = top + 1; node-- > 0;) {
        if (!mark[node])
            continue;
        if (graph_is_read(f, unit, node)) {
            mark[node] = 2;
            continue;
        }
        for (uint32_t i = 0; i < ty_graph_node(f->g, node)->n_in; i++)
            if (ty_graph_in(f->g, node, (int)i) != TY_NONE)
                mark[ty_val_node(ty_graph_in(f->g, node, (int)i))] = 1;
    }
}

/* unit[node]: position on the tape. */
static void graph_find_units(const ty_plan *plan, uint8_t *mark, int *unit)
{
    uint32_t n = ty_graph_n_nodes(plan->f->g);
    for (uint32_t node = 0; node < n; node++)
        unit[node] = -1;
    for (int at = 0; at < plan->n_order; at++) {
        memset(mark, 0, n);
        ty_unit_mark(plan->f, plan->order[at], mark);
        for (uint32_t node = 0; node < n; node++)
            if (mark[node] == 1 && unit[node] < 0)
                unit[node] = at;
    }
}

static void graph_describe_node(const ty_graph *g, uint32_t id, ty_arena *a, ty_buf *text, ty_node_facts *out)
{
    ty_op op = ty_graph_op(g, id);
    const char *origin = ty_graph_origin_of(g, id);
    ty_buf_clear(text);
    ty_graph_print_node(g, id, text);
    *out = (ty_node_facts){.text = ty_arena_strdup(a, text->data),
                           .origin = ty_arena_strdup(a, ty_origin_of_forward(origin)),
                           .phase = ty_origin_phase(origin),
                           .work = ty_op_work(op),
                           .is_leaf = graph_is_leaf(op),
                           .unit = -1};
    if (ty_op_row_of(op)->class_ == TY_CLASS_ELEMENTWISE || out->work >= TY_N_WORKS)
        out->work = TY_WORK_ELEMENTWISE;
    if (out->phase == TY_PHASE_UPDATE)
        out->work = TY_WORK_OPTIMIZER;
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_res; i++)
        out->bytes += (double)ty_type_bytes(ty_graph_type(g, ty_val_make(id, i)));
}

int ty_program_describe_graph(const ty_program *p, ty_run run, ty_arena *a, ty_graph_facts *out, ty_error *err)
{
    const ty_graph *g = p->graph;
    uint32_t n = ty_graph_n_nodes(g);
    ty_buf text;
    if (!p->has[run])
        return ty_error_set(err, TY_E_INTERNAL, "this program has no tape number %d", (int)run);
    uint8_t *live = TY_NEW_ARRAY(a, uint8_t, n + 1), *mark = TY_NEW_ARRAY(a, uint8_t, n + 1);
    int *unit = TY_NEW_ARRAY(a, int, n + 1);
    ty_node_facts *node = TY_NEW_ARRAY(a, ty_node_facts, n + 1);
    *out = (ty_graph_facts){.node = node};
    ty_graph_mark_live(g, ty_program_tape_of(run), live);
    if (p->plan[run])
        graph_find_units(p->plan[run], mark, unit);
    ty_buf_init(&text, 1u << 20);
    for (uint32_t id = 0; id < n; id++) {
        if (!live[id])
            continue;
        graph_describe_node(g, id, a, &text, &node[out->n_nodes]);
        node[out->n_nodes++].unit = p->plan[run] ? unit[id] : -1;
    }
    ty_buf_fini(&text);
    return 0;
}
