/* build.h - the kernel builder's inside: for kernel/build.c and the scalar forms of ops in kernel/scalar_*.c only. */
#ifndef TY_COMPILER_KERNEL_BUILD_H
#define TY_COMPILER_KERNEL_BUILD_H

#include "compiler/kernel/kernel.h"

/* Where a value is wanted: one index an axis, or a flat row-major one in v[0]. Unused entries are 0. */
typedef struct ty_kpos {
    bool flat;
    ty_ix v[TY_MAX_RANK];
} ty_kpos;

typedef struct ty_kmemo {
    bool used;
    ty_val v;
    ty_kpos pos;
    uint32_t guard;
    int stage;
    uint32_t instr;
} ty_kmemo;

typedef struct ty_klevel {
    uint32_t node;
    int level;
} ty_klevel;

typedef struct ty_kb {
    const ty_kgroup *group;
    ty_kernel *k;
    ty_arena scratch;
    ty_ix var[TY_MAX_RANK]; /* of the domain's axes */
    int stage;              /* being filled */
    int depth;
    bool failed;
    uint32_t table_most; /* entries that memo and level may have */
    ty_kmemo *memo;
    uint32_t memo_cap, n_memo;
    ty_klevel *level;
    uint32_t level_cap, n_levels;
} ty_kb;

/* The instruction that holds v at a position; loads are only made where guard holds. TY_NONE if b->failed. */
uint32_t ty_kb_eval(ty_kb *b, ty_val v, const ty_kpos *pos, uint32_t guard);
uint32_t ty_kb_push(ty_kb *b, ty_kinstr instr);
uint32_t ty_kb_op(ty_kb *b, ty_op op, ty_dtype dtype, uint32_t x, uint32_t y, uint32_t z);
uint32_t ty_kb_and(ty_kb *b, uint32_t guard, uint32_t more);
uint64_t ty_kb_vars(const ty_kb *b, uint32_t instr);
ty_ix ty_kb_flat(ty_kb *b, const ty_kpos *pos, const ty_type *type);
ty_kpos ty_kb_vector(ty_kb *b, const ty_kpos *pos, const ty_type *type);
ty_kpos ty_kb_flat_pos(ty_ix flat);

/* The scalar form of a LOOP op: one element of the node at a position. NULL for ops that have none. */
typedef uint32_t ty_kscalar_fn(ty_kb *b, uint32_t node, const ty_kpos *pos, uint32_t guard);
ty_kscalar_fn *ty_kscalar_of(ty_op op);

/* Element k of a list of rows (rows.c) of a table of n rows, as an index; returns whether it is a row, as an
 * instruction, the same one for the same k. */
uint32_t ty_kb_row(ty_kb *b, ty_val rows, ty_ix k, int64_t n, ty_ix *row);

/* Reads one element as number and as integer. */
void ty_scalar_read(ty_dtype dtype, const void *data, double *number, int64_t *integer);

#endif
