/* emit.h - a kernel in the words of the CUDA dialect, as far as its layout does not matter (emit.c, emit_sums.c), and
 * the body that each layout gives it (emit_rows.c, emit_tiles.c). For render.c, which writes the kernel around it.
 *
 * Text is appended at the indentation of the moment. `w` numbers the neighbouring elements, or columns, of a thread,
 * `j` the groups of such elements that it holds, `e` an element of the row, `p` a point that blocks walk through.
 */
#ifndef TY_TARGET_CUDA_EMIT_H
#define TY_TARGET_CUDA_EMIT_H

#include "compiler/kernel/text.h"
#include "compiler/target/cuda/layout.h"

typedef struct ty_cuda_emit {
    ty_ktext t;
    ty_cuda_layout l;
    ty_arena arena;
    uint8_t *before; /* by instruction: the same for all rows */
    int dear;        /* operations of those */
    uint8_t *drawn;  /* by instruction: random words of the elements that are being written, in w<n> */
    uint8_t *ahead;  /* by instruction: loads of which those of all groups are in a<n>[j][w] */
} ty_cuda_emit;

static inline bool ty_emit_is_columns(const ty_cuda_emit *c)
{
    return c->l.form == TY_CUDA_BY_COLUMN;
}
/* The type of loop variables; how a dtype lies in memory. */
const char *ty_emit_index(const ty_cuda_emit *c);
const char *ty_emit_memory(ty_dtype dtype);
/* Ends a block of text. */
void ty_emit_close(ty_cuda_emit *c);
/* Variables from the number of a point; the first one needs no remainder. `from` is used up. */
void ty_emit_decode(ty_cuda_emit *c, const int *var, int n, const char *from);

/* Instructions of a stage, inside the loop over elements or outside of it. */
void ty_emit_instrs(ty_cuda_emit *c, int stage, bool in_loop);
void ty_emit_stores(ty_cuda_emit *c, int stage);
/* Whether an instruction of a stage's loop loads, at once, as many elements as a thread takes at a time; loads them
 * into a<n>[j], from where ty_emit_group takes them if ahead[] says so. */
bool ty_emit_is_wide_load(const ty_cuda_emit *c, uint32_t i, int stage);
void ty_emit_load_ahead(ty_cuda_emit *c, uint32_t i);
/* All that a stage does with the elements that a thread takes at a time. */
void ty_emit_group(ty_cuda_emit *c, int stage);

/* A thread's number in its row, as text. */
void ty_emit_lane(const ty_cuda_emit *c, char *out, size_t n);
/* Of columns: the number of a thread among those `of` threads that share a group of columns, as text. */
typedef struct ty_emit_thread {
    int of;
    char text[32];
} ty_emit_thread;
ty_emit_thread ty_emit_thread_of_columns(const ty_cuda_emit *c);

/* Partial results t<n> of a thread: declared, added to, and brought together as r<n>, which every thread of the row
 * has; of columns as r<n> of the threads that have one. Behind ty_emit_end_column_sums two blocks of text are open.
 * Those of a band's columns are c<n>[j][w], and ty_emit_band_sum makes one of them r<n>; one block is open then. */
void ty_emit_begin_sums(ty_cuda_emit *c, int stage);
void ty_emit_add_sums(ty_cuda_emit *c, int stage);
void ty_emit_end_sums(ty_cuda_emit *c, int stage);
void ty_emit_end_column_sums(ty_cuda_emit *c, int columns);
void ty_emit_begin_band_sums(ty_cuda_emit *c);
void ty_emit_band_sum(ty_cuda_emit *c, int number);

/* Bodies. */
void ty_emit_rows(ty_cuda_emit *c);
void ty_emit_bands(ty_cuda_emit *c);
void ty_emit_columns(ty_cuda_emit *c);
void ty_emit_tiles(ty_cuda_emit *c);

#endif
