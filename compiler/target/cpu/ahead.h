/* ahead.h - memory that a kernel asks for before its turn: rows of tables, and streams.
 *
 * A gather reads rows at places that memory itself names, so no hardware knows the next one: a table that is in no
 * cache costs a whole trip to memory a row, one after the other. The places stand in memory long before, so a kernel
 * looks a few rows ahead and asks for them.
 *
 * A stream is memory that is read or written in order. Hardware sees it and runs ahead of it, but not far enough where
 * memory is slow and each element costs arithmetic, and within a page only. So a long loop is cut into stretches, and
 * before each the kernel asks for one that comes later.
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

/* Whether the stage's loop over `var`, its innermost, walks along streams that are in no cache. */
bool ty_ahead_streams(const ty_ahead *a, int stage, int var);
/* Lines before the stretch of n elements of `var` that begins at the expression `first`: for the stretch as long that
 * begins some KB further on, of each of these streams. None if there are none. */
void ty_ahead_stretch(const ty_ahead *a, int stage, int var, const char *first, long n);
/* The same for a stretch of columns that begins at c0 + j, where j goes from `from` to `to` in each row; in front of
 * the loop over j there are lines of ty_ahead_begin_columns. */
void ty_ahead_begin_columns(const ty_ahead *a, int stage, const char *from, const char *to);
void ty_ahead_columns(const ty_ahead *a, int stage, const char *from, const char *to, long n);

#endif
