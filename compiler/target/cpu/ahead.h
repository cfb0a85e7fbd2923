/* ahead.h - rows of tables that a kernel asks for before their turn.
 *
 * A gather reads rows at places that memory itself names, so no hardware knows the next one: a table that is in no
 * cache costs a whole trip to memory a row, one after the other. The places stand in memory long before, so a kernel
 * looks a few rows ahead and asks for them.
 */
#ifndef TY_TARGET_CPU_AHEAD_H
#define TY_TARGET_CPU_AHEAD_H

#include "compiler/kernel/text.h"

/* Where a kernel's text stands. */
typedef struct ty_ahead {
    ty_ktext *t;
    const int *inner; /* variables of the loops inside a unit, slowest first */
    int n_inner;
    int column; /* variable of the block of columns, or -1 */
} ty_ahead;

/* How many loops inside of a unit an instruction that depends on these variables stands in. */
int ty_ahead_depth(const ty_ahead *a, uint64_t vars);
/* Lines behind the instructions of a stage that stand in `depth` loops: for each table whose row is named by one of
 * them and read in a loop further inside. */
void ty_ahead_render(const ty_ahead *a, int stage, int depth);

#endif
