/* Fuzz: the text form of a graph, and behind it lowering, fusion, planning, rendering and the interpreter.
 *
 * What parses must be sound and print as a text that parses to the same text.
 */
#include "compiler/ir/clone.h"
#include "compiler/ir/text.h"
#include "tests/fuzz/small_graph.h"

static void print(const ty_graph *g, ty_buf *out)
{
    ty_buf_init(out, (size_t)1 << 26);
    if (ty_graph_print(g, out, false) < 0)
        abort();
}

static void round_trip(const ty_graph *g)
{
    ty_buf one, two;
    ty_graph *back;
    ty_error err = {0};
    print(g, &one);
    if (ty_graph_parse(one.data, one.len, &back, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.place, err.message);
        abort();
    }
    print(back, &two);
    if (one.len != two.len || memcmp(one.data, two.data, one.len) != 0)
        abort();
    ty_graph_free(back);
    ty_buf_fini(&one);
    ty_buf_fini(&two);
}

static uint32_t tapes_of(const ty_graph *g)
{
    uint32_t tapes = 0;
    for (int i = 0; i < ty_graph_n_outputs(g); i++)
        tapes |= ty_graph_output(g, i)->tapes;
    for (int i = 0; i < ty_graph_n_effects(g); i++)
        tapes |= ty_graph_effect(g, i)->tapes;
    return tapes & (TY_TAPE_MICRO | TY_TAPE_LAST | TY_TAPE_EVAL);
}

/* The program takes the copy; initial bytes of its states stay in g. */
static ty_graph *copy(const ty_graph *g)
{
    ty_clone c;
    ty_graph *out;
    ty_error err = {0};
    ty_clone_begin(&c, g);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        ty_clone_node(&c, id);
    if (ty_clone_finish(&c, &out, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_graph *g;
    ty_error err = {0};
    if (ty_graph_parse((const char *)data, size, &g, &err) < 0) {
        small_refused(&err);
        return 0;
    }
    if (ty_graph_verify(g, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    round_trip(g);
    small_exercise(copy(g), tapes_of(g));
    ty_graph_free(g);
    return 0;
}
