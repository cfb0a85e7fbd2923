/* interpret.h - runs a graph one node at a time in double: the judge of everything compiled.
 *
 * Slow, simple and independent of fusion, planning and code generation: each node calls its row's `ref`.
 */
#ifndef TY_COMPILER_IR_INTERPRET_H
#define TY_COMPILER_IR_INTERPRET_H

#include "compiler/ir/graph.h"

typedef struct ty_interp ty_interp;

/* States start at their init bytes. The graph must outlive the interpreter. */
int ty_interp_new(const ty_graph *g, ty_interp **out, ty_error *err);
void ty_interp_free(ty_interp *it);
/* Runs the nodes live in `tape` with inputs[i] = dense data of graph input i (NULL if the tape does not use it), then
 * carries out its assigns. With round, results of 16- and 32-bit float type are rounded to it after every node. */
int ty_interp_run(ty_interp *it, ty_tape tape, const void *const *inputs, bool round, ty_error *err);

/* Somebody who looks on. `see` is called after each node, while its operands are still there. `given` may bring the
 * bytes of a value, which is then not computed; NULL: none are given. */
typedef struct ty_interp_watch {
    void *ctx;
    void (*see)(void *ctx, const ty_interp *it, uint32_t node);
    const void *(*given)(void *ctx, ty_val v);
} ty_interp_watch;

/* Runs from now on are watched; NULL: not. The watch is kept by the caller. */
void ty_interp_set_watch(ty_interp *it, const ty_interp_watch *watch);
/* Computes the nodes with live[id] != 0 alone, rounding as ty_interp_run does; leaves and all that is not live but read
 * must be given. For a look into one kernel. */
int ty_interp_trace(const ty_graph *g, const uint8_t *live, const ty_interp_watch *watch, ty_error *err);
/* Value of an operand or result of the node that is seen; NULL where there is none. */
const struct ty_ref *ty_interp_value(const ty_interp *it, ty_val v);

/* Value of output i after a run: elems doubles or int64, owned by the interpreter until the next run. */
const struct ty_ref *ty_interp_output(const ty_interp *it, int output);
/* A state's current value; writable. */
struct ty_ref *ty_interp_state(ty_interp *it, int state);

#endif
