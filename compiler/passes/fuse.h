/* fuse.h - which values get memory, and which computations share a kernel.
 *
 * Needs: a graph without composites and the tape. Result: units (kernels, library calls, assemblies of concatenations)
 * whose order is still free, and for each value whether it lies in memory.
 *
 * Method: first every reduction, every operand of a library call, every output and every costly value with several
 * users gets memory and a kernel of its own; on a host a costly vector that many rows repeat, too, and what a
 * concatenation or a pad would ask too often which part it is from. Then kernels are joined as long as it is legal (the
 * kernel builder accepts the union, no path leads out and back in) and saves memory traffic: reductions with what reads
 * them (softmax, norms, losses become one kernel), producers with consumers, and siblings that read the same memory. A
 * value that only its own kernel uses loses its memory.
 *
 * On a GPU reductions over rows meet those down columns, where the latter were cut into bands of rows before
 * (split.c): what reads the gradient behind a normalisation for both then reads it once.
 */
#ifndef TY_COMPILER_FUSE_H
#define TY_COMPILER_FUSE_H

#include "compiler/ir/graph.h"
#include "compiler/kernel/kernel.h"

/* How far joining goes. Threads of a host share a kernel by its rows: a large loop is not joined to fewer rows than
 * keep them busy. A GPU has more of them, and less room in each: the addresses of many buffers alone fill its
 * registers. */
typedef struct ty_fuse_limits {
    int instrs, buffers; /* of a joined kernel */
    int64_t large;       /* elements of a loop that needs company, */
    int64_t units;       /* rows, or blocks of columns, that are enough for it */
    int columns;         /* of such a block */
    int bands;           /* fewest bands of rows of which a kernel of rows sums columns too; 0: it does not */
} ty_fuse_limits;

/* In place of a number of threads: for a GPU. */
enum { TY_FUSE_GPU = -1 };

typedef enum ty_unit_kind { TY_UNIT_KERNEL, TY_UNIT_LIBRARY, TY_UNIT_ASSEMBLY, TY_UNIT_DEAD } ty_unit_kind;

typedef struct ty_unit {
    ty_unit_kind kind;
    uint32_t node;     /* LIBRARY: the node; ASSEMBLY: the concat; KERNEL: the newest root's node */
    ty_kernel *kernel; /* KERNEL */
    ty_val *root;      /* values it puts into memory */
    int n_roots;
    uint32_t *reduce; /* KERNEL: reductions inside, in id order */
    int n_reduces;
    ty_type domain;
    uint32_t reduced_axes;
    uint32_t band_axes; /* kernel.h, TY_FORM_BANDS: what sums of columns run over; else 0 */
    ty_val *load; /* values in memory that it reads: bases of views; of a state the view, which says what stretch */
    int n_loads;
} ty_unit;

typedef struct ty_fusion {
    ty_arena arena;
    const ty_graph *g;
    uint32_t tape;
    uint8_t *live;      /* per node */
    uint8_t *in_memory; /* per value index */
    uint8_t *pinned;    /* per value index: must stay in memory (library operand, output, assign, assembly) */
    uint8_t *whole;     /* per value index: is gathered, and must be there before who gathers it */
    int64_t *repeats;   /* per value index: elements of the largest value that repeats it, or what is computed from it,
                           in its rows; 0: none */
    uint8_t *turned;    /* per node: a transpose that is a copy of its own */
    int *era;           /* per node: 0, or the latest `again` that it depends on */
    uint32_t *producer; /* per value index: unit that fills it, or TY_NONE (leaves) */
    ty_unit *unit;
    uint32_t n_units, cap_units;
    bool on_gpu; /* where a large loop's company may also be one that then moves less itself */
    ty_fuse_limits limits;
} ty_fusion;

/* A value that is a contiguous part of another one: reshapes and contiguous slices. */
typedef struct ty_view {
    ty_val base;
    int64_t offset; /* elements */
} ty_view;
ty_view ty_view_of(const ty_graph *g, ty_val v);

/* Is operand `in` of a library call nothing but zeros, which the call fills in by itself? What scatter writes into, as
 * an embedding's gradient does. It has no memory and its pointer is NULL. */
bool ty_fuse_is_implied(const ty_graph *g, uint32_t node, int in);

/* The table of which v is a copy with other rows (set_rows), which its kernel writes and nothing else; TY_NONE if v is
 * something else. */
ty_val ty_fuse_rows_of(const ty_graph *g, ty_val v);

/* Is the unit a call by which replicas exchange (compiler/ops/across.c)? */
bool ty_unit_is_exchange(const ty_fusion *f, const ty_unit *u);

/* fuse_domain.c: the loop nest of the union of two kernels goes to out (domain, reduced_axes, band_axes); false if
 * there is none. Whether the builder can fill it is another question. */
bool ty_fuse_domain(const ty_fusion *f, const ty_unit *a, const ty_unit *b, ty_unit *out);

/* Arithmetic and movement, which kernels compute element by element; and the kernels that read node's value do. */
bool ty_fuse_is_by_element(const ty_graph *g, uint32_t node);
bool ty_fuse_is_inline(const ty_fusion *f, uint32_t node);

/* fuse_repeats.c: by value, the elements of the largest value that repeats it in its rows by a broadcast; 0: none.
 * Fills f->repeats. On a host; the array is the fusion's. */
const int64_t *ty_fuse_find_repeats(ty_fusion *f);
/* By value, the elements of all that is gathered from it; the array is the fusion's. */
int64_t *ty_fuse_find_gathered(ty_fusion *f);
/* Whether so many elements are gathered from v, each of which would cost so many scalar operations, that v is computed
 * once for all of them, by a kernel of its own. */
bool ty_fuse_is_gathered(const ty_fusion *f, ty_val v, int64_t cost, int64_t elems);
/* Is a vector of `cost` scalar operations an element better computed once than in each row of the `elems` elements that
 * repeat it? */
bool ty_fuse_is_repeated(int64_t cost, int64_t elems);

/* fuse_turns.c: gives memory to large matrices that are turned, and to what they are turned from. Fills f->turned. On a
 * host. */
void ty_fuse_find_turns(ty_fusion *f);
/* Does the unit nothing but turn one? It stays alone then. */
bool ty_fuse_is_turned(const ty_fusion *f, const ty_unit *u);

/* How often it is asked which part an element of node's value is from, by concatenations and pads down to memory;
 * guards: the same of the nodes before. */
int ty_fuse_guards(const ty_fusion *f, uint32_t node, const int *guards);

/* Scalar operations that may be computed again instead of stored. */
enum { TY_FUSE_CHEAP = 4 };

/* again.c: takes memory from values that backward can compute again for nearly nothing. After it is decided what gets
 * memory, before there are units. */
void ty_fuse_again(ty_fusion *f);

/* n_threads: of the host, or TY_FUSE_GPU. */
int ty_pass_fuse(const ty_graph *g, uint32_t tape, int n_threads, ty_fusion **out, ty_error *err);
void ty_fusion_free(ty_fusion *f);

#endif
