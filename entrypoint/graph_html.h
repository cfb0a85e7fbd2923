/* graph_html.h - a compiled step as a picture: its tape from left to right, its layers from top to bottom.
 *
 * A layer is a row with three lanes (forward, gradient, update). Layers that repeat (blocks.0 to blocks.11) are one row
 * until it is unfolded, and then the first of them stands for all that are made of the same calls. A call unfolds into
 * the operations that were fused into it, as lines of a dump.
 */
#ifndef TY_ENTRYPOINT_GRAPH_HTML_H
#define TY_ENTRYPOINT_GRAPH_HTML_H

#include "base/arena.h"
#include "base/buf.h"
#include "compiler/compiler.h"
#include "compiler/machine.h"

/* What is drawn: of a call, or of an operation where there is no plan yet. */
typedef struct ty_drawn {
    const char *text, *how; /* how: what was chosen for it, or "" */
    const char *layer;
    ty_phase phase;
    ty_work work;
    double ms; /* a step's, times runs; or the least it can take; < 0: not known, bytes are drawn */
    double bytes, flop;
    int at; /* position on the tape; -1: none */
    const int *node;
    int n_nodes; /* operations in it, by number in the facts */
} ty_drawn;

typedef struct ty_drawing {
    ty_arena *arena;
    const ty_graph_facts *graph;
    const ty_tape_facts *tape; /* NULL: no plan */
    const ty_drawn *item;      /* in the order of the tape */
    int n_items;
    bool is_measured; /* ms are times, not estimates */
} ty_drawing;

/* Items from units: estimates by the machine's ceilings. ms[unit], if not NULL, are times instead; how[unit] likewise.
 */
void ty_drawing_of_units(ty_drawing *d, const ty_machine_ceilings *m, const double *ms, const char *const *how);
/* Items from operations, one each. */
void ty_drawing_of_nodes(ty_drawing *d);

/* The colours that occur, the tape with the memory it holds, and the rows of layers. */
void ty_graph_html_legend(const ty_drawing *d, ty_buf *out);
void ty_graph_html_tape(const ty_drawing *d, ty_buf *out);
void ty_graph_html_layers(const ty_drawing *d, ty_buf *out);

#endif
