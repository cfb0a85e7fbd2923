/* small_graph.h - for fuzz targets: takes a graph the whole way that needs no C compiler, if it is small enough.
 *
 * Lowered, fused, planned and rendered for every tape, and run once in the interpreter. What the compiler takes it must
 * finish: an internal error or a plan that its checker refuses is a find.
 */
#ifndef TY_TESTS_FUZZ_SMALL_GRAPH_H
#define TY_TESTS_FUZZ_SMALL_GRAPH_H

#include "compiler/ir/verify.h"
#include "compiler/ops/op.h"
#include "compiler/program.h"
#include "compiler/kernel/text.h"
#include "compiler/target/cpu/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_NODES = 3000, SMALL_ELEMS = 1 << 12, SMALL_PAIRS = 1 << 20 };

static inline void small_refused(const ty_error *err)
{
    if (err->code != TY_E_NONE && err->code != TY_E_INTERNAL && err->message[0])
        return;
    fprintf(stderr, "refused with code %d: %s\n", (int)err->code, err->message);
    abort();
}

static inline bool small_node(const ty_graph *g, uint32_t id)
{
    const ty_node *node = ty_graph_node(g, id);
    int64_t pairs = 1;
    for (uint32_t r = 0; r < node->n_res; r++)
        if (ty_type_elems(ty_graph_type(g, ty_val_make(id, r))) > SMALL_ELEMS)
            return false;
    for (uint32_t k = 0; k < node->n_in && k < 3; k++) {
        ty_val v = ty_graph_in(g, id, (int)k);
        pairs *= v == TY_NONE ? 1 : 1 + ty_type_elems(ty_graph_type(g, v));
        if (pairs > SMALL_PAIRS)
            return ty_op_row_of((ty_op)node->op)->class_ == TY_CLASS_LOOP;
    }
    const ty_attr *a = ty_graph_attr(g, id);
    for (uint32_t i = 0; i < a->n && i < TY_MAX_RANK; i++) /* windows */
        pairs *= a->size[i] > 1 ? a->size[i] : 1;
    return pairs <= SMALL_PAIRS * 4;
}

static inline bool small_enough(const ty_graph *g)
{
    if (ty_graph_n_nodes(g) > SMALL_NODES)
        return false;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        if (!small_node(g, id))
            return false;
    for (int i = 0; i < ty_graph_n_states(g); i++)
        if (ty_type_elems(&ty_graph_state(g, i)->type) > 16 * SMALL_ELEMS)
            return false;
    return true;
}

static inline void small_render(const ty_plan *plan, ty_buf *out)
{
    for (int at = 0; at < plan->n_order; at++) {
        const ty_unit *u = &plan->f->unit[plan->order[at]];
        if (u->kind != TY_UNIT_KERNEL)
            continue;
        int n = u->kernel->n_buffers + 1;
        uint32_t *alias = calloc((size_t)n, sizeof *alias);
        int64_t *base = calloc((size_t)n, sizeof *base);
        for (int i = 0; i < n; i++)
            alias[i] = (uint32_t)i;
        ty_ktext_bases(u->kernel, alias, base);
        ty_render_kernel(u->kernel, alias, base, out);
        free(alias);
        free(base);
    }
}

static inline void small_plan(const ty_graph *g, ty_tape tape)
{
    ty_fusion *f = NULL;
    ty_plan *plan = NULL;
    ty_error err = {0};
    ty_buf text;
    ty_buf_init(&text, 1 << 26);
    if (ty_pass_fuse(g, tape, 2, &f, &err) < 0) {
        small_refused(&err);
    } else if (ty_pass_plan(f, &plan, &err) < 0) {
        small_refused(&err);
    } else if (ty_plan_check(plan, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    } else {
        small_render(plan, &text);
    }
    ty_buf_fini(&text);
    ty_plan_free(plan);
    ty_fusion_free(f);
}

/* Inputs of zeros: legal as labels, ids and lengths alike. */
static inline void small_run(ty_program *p, ty_run run)
{
    ty_error err = {0};
    size_t room = 8;
    for (int i = 0; i < ty_program_n_inputs(p); i++) {
        size_t bytes = ty_type_bytes(&ty_program_input(p, i)->type);
        room = bytes > room ? bytes : room;
    }
    void *zeros = calloc(1, room);
    const void **in = calloc((size_t)ty_program_n_inputs(p) + 1, sizeof *in);
    for (int i = 0; i < ty_program_n_inputs(p); i++)
        in[i] = zeros;
    if (ty_program_run(p, run, in, &err) < 0)
        small_refused(&err);
    free(in);
    free(zeros);
}

/* Takes the graph, which has been found sound. */
static inline void small_exercise(ty_graph *g, uint32_t tapes)
{
    ty_error err = {0};
    ty_program *p;
    ty_compile_options opt = {.backend = TY_BACKEND_INTERPRETER, .threads = 1};
    if (!small_enough(g)) {
        ty_graph_free(g);
        return;
    }
    if (ty_program_of_graph(g, tapes, &opt, &p, &err) < 0) {
        small_refused(&err);
        return;
    }
    for (int run = 0; run < TY_N_RUNS && small_enough(p->graph); run++)
        if (p->has[run]) {
            small_plan(p->graph, ty_program_tape_of((ty_run)run));
            small_run(p, (ty_run)run);
        }
    ty_program_free(p);
}

#endif
