/* kernel.h - the kernel language: what a fused group becomes, and all that a target sees of it.
 *
 * A kernel is a loop nest over one domain of static extents, cut into two sets of loop variables:
 *
 *   outer variables   run in parallel; a point of the outer space is a "row"
 *   inner variables   run inside a row, in order, the last one fastest
 *
 *     for each row (parallel)                      form ROWS: softmax, norms, losses, plain loops
 *         for each stage
 *             for inner variables ...              missing in a stage of scalars
 *                 instructions                     each at the loop level it needs, not deeper
 *                 reduce into row scalars, or store
 *
 * Form COLUMNS is for sums over leading axes: the last variable of the domain is outer, but runs innermost over a
 * block of columns with one accumulator each, so that memory is read in order. It has one stage of reductions.
 *
 * Form BANDS is ROWS that also sums columns: of each of `bands` of neighbouring rows, whose numbers it has at hand
 * anyway. Both gradients of a normalisation in one reading: that of its row, and those of its scale and shift, which
 * are sums over rows.
 *
 *     for each band (parallel)
 *         for each row of the band
 *             stages as in ROWS; some reductions are `columns`: an accumulator for each point of the inner space
 *         for inner variables                      the last stage
 *             store the sums of columns
 *
 * Instructions are scalar and in single assignment; an address is an index expression (index.h). Sums run in a fixed
 * order that depends neither on the number of threads nor on their timing.
 */
#ifndef TY_COMPILER_KERNEL_KERNEL_H
#define TY_COMPILER_KERNEL_KERNEL_H

#include "base/buf.h"
#include "compiler/ir/graph.h"
#include "compiler/kernel/index.h"

typedef enum ty_kop {
    TY_K_CONST,  /* imm */
    TY_K_LOAD,   /* buffer[addr]; 0 where guard (an instruction or TY_NONE) is false */
    TY_K_INDEX,  /* addr as an i64 value */
    TY_K_INSIDE, /* lo <= addr < hi, bool */
    TY_K_RESULT, /* row scalar: result of reduction number `reduction` */
    TY_K_OP      /* op applied to a, b, c */
} ty_kop;

typedef struct ty_kinstr {
    ty_kop kop;
    ty_op op;
    ty_dtype dtype;
    uint32_t a, b, c; /* instructions, TY_NONE if unused */
    uint32_t guard;
    uint32_t buffer;
    uint32_t reduction;
    ty_ix addr;
    int64_t lo, hi; /* INSIDE */
    double imm;
    int64_t imm_int; /* of integer constants */
    uint64_t vars;   /* loop variables it depends on */
    int stage;       /* stage it belongs to */
} ty_kinstr;

typedef struct ty_kstore {
    uint32_t buffer, value;
    uint32_t guard; /* bool instruction: stored only where it holds; TY_NONE: always */
    ty_ix addr;
    int stage;
    bool row; /* once a row, after the stage's loops, not in them */
} ty_kstore;

typedef struct ty_kreduction {
    ty_combine how;
    ty_dtype dtype;
    uint32_t value;
    int stage;
    bool columns; /* BANDS: over the rows of a band, not over the row */
} ty_kreduction;

/* A parameter of the kernel: the memory of one graph value, or of a slice of a flat state. */
typedef struct ty_kbuffer {
    ty_val val;
    ty_dtype dtype;
    bool written;
    bool unaligned;     /* a constant in a mapped file, at any address */
    bool own;           /* no parameter and no value: a row of a thread's own (keep.h) */
    int64_t span_elems; /* of the whole value */
} ty_kbuffer;

#define TY_K_MAX_VARS 16

typedef enum ty_kform { TY_FORM_ROWS, TY_FORM_COLUMNS, TY_FORM_BANDS } ty_kform;

typedef struct ty_kernel {
    ty_arena arena;
    ty_ix_pool ix;
    ty_kform form;
    int n_vars;
    int64_t extent[TY_K_MAX_VARS]; /* by variable */
    int order[TY_K_MAX_VARS];      /* variables from slowest to fastest */
    int n_order;
    uint64_t outer; /* mask of outer variables */
    int n_stages;   /* even stages loop over the inner variables, odd ones are row scalars */
    ty_kinstr *instr;
    uint32_t n_instrs, cap_instrs;
    ty_kstore *store;
    int n_stores, cap_stores;
    ty_kreduction *reduction;
    int n_reductions, cap_reductions;
    ty_kbuffer *buffer;
    int n_buffers, cap_buffers;
    const char *origin; /* of the main node, for the kernel's name */
} ty_kernel;

#define TY_COLUMN_BLOCK 64

/* The guard that all stores share and that does not change inside a row, so that the row can be left out where it is
 * false; TY_NONE if there is none. */
uint32_t ty_kernel_row_guard(const ty_kernel *k);
/* Units of parallel work: rows of a ROWS kernel, column blocks of all outer points of a COLUMNS kernel, bands. */
int64_t ty_kernel_n_units(const ty_kernel *k);
/* Work of one unit in scalar instructions, to decide how many threads are worth waking. */
double ty_kernel_unit_cost(const ty_kernel *k);
/* Bytes that the kernel must read and write at least: every element it touches, once a buffer. */
void ty_kernel_traffic(const ty_kernel *k, size_t *read_bytes, size_t *written_bytes);
/* Merges neighbouring variables that all addresses walk through as one, so that loops get longer. */
void ty_kernel_merge_vars(ty_kernel *k);

/* What to put into one kernel. */
typedef struct ty_kgroup {
    const ty_graph *g;
    const uint8_t
        *in_memory;     /* per value (node * TY_MAX_RESULTS + result): 1 if it has a buffer that other kernels fill */
    const ty_val *root; /* values this kernel must store */
    int n_roots;
    const uint32_t *reduce; /* REDUCE nodes computed inside, in id order (roots among them included) */
    int n_reduces;
    const ty_type *domain; /* shape of the loop nest */
    uint32_t reduced_axes; /* of the domain; 0 for plain loops */
    uint32_t band_axes;    /* likewise, of BANDS: what sums of columns run over; else 0 */
    int max_instrs;
} ty_kgroup;

/* Builds the kernel; NULL if the group does not fit the form (another row's result is needed, too large ...). That is
 * an answer, not an error: the fusion pass asks and takes the group apart otherwise. */
ty_kernel *ty_kernel_build(const ty_kgroup *group);
void ty_kernel_free(ty_kernel *k);

/* cut.c: where along a loop variable the guards of a stage change (pads, the parts of a concatenation). cut[0] = 0 up
 * to cut[n] = the extent; between two neighbours every guard that compares this variable alone is constant. Returns n,
 * 1 if there is nothing to cut or it would take more than TY_K_MAX_CUTS pieces. */
enum { TY_K_MAX_CUTS = 8 };
int ty_kernel_cuts(const ty_kernel *k, int stage, int var, int64_t cut[TY_K_MAX_CUTS + 1]);
/* 1 or 0 if a guard is that for all lo <= var < hi; -1: it changes, or depends on more. */
int ty_kernel_guard(const ty_kernel *k, const ty_kinstr *guard, int var, int64_t lo, int64_t hi);

/* Prints the kernel as text, for dumps. */
void ty_kernel_print(const ty_kernel *k, ty_buf *out);

#endif
