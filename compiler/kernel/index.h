/* index.h - integer index expressions of a kernel, in a normal form.
 *
 * An expression is a constant plus a sum of coefficient * atom; an atom is a loop variable, floor(x / d), x mod d, or
 * an integer read from memory. Expressions are hash-consed in a pool: equal expressions have equal ids, so that "the
 * same element" is a comparison of two numbers. All values are >= 0 where they are used as addresses.
 *
 * The constructors simplify with the known ranges: (8 i + j) / 8 with 0 <= j < 8 is i, its remainder is j,
 * (4 i + j) / 8 with 0 <= j < 4 is i / 2, and d (x / d) + x mod d is x again, which undoes a reshape that a later one
 * undoes. All memory is the arena's.
 */
#ifndef TY_COMPILER_KERNEL_INDEX_H
#define TY_COMPILER_KERNEL_INDEX_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t ty_ix;

typedef enum ty_atom_kind { TY_ATOM_VAR, TY_ATOM_DIV, TY_ATOM_MOD, TY_ATOM_DATA } ty_atom_kind;

typedef struct ty_atom {
    ty_atom_kind kind;
    uint32_t arg;   /* VAR: number of the variable; DIV, MOD: an expression; DATA: number of the kernel's instruction */
    int64_t d;      /* divisor; VAR: 0, or what is known to be above it behind a guard, as lo is known then */
    int64_t lo, hi; /* inclusive range of the value; of VAR and MOD perhaps behind a guard alone */
    uint64_t vars;  /* loop variables it depends on, bit mask */
    bool data;      /* depends on memory */
} ty_atom;

typedef struct ty_term {
    int64_t coef;
    uint32_t atom;
} ty_term;

typedef struct ty_ix_node {
    int64_t c;
    int32_t n_terms;
    const ty_term *term; /* ordered by atom */
    int64_t lo, hi;      /* inclusive range */
    uint64_t vars;
    bool data;
} ty_ix_node;

typedef struct ty_ix_pool {
    ty_arena *arena;
    ty_ix_node *node;
    uint32_t n_nodes, cap_nodes;
    ty_atom *atom;
    uint32_t n_atoms, cap_atoms;
    uint32_t *table; /* open addressing over nodes */
    uint32_t table_cap;
    bool overflow; /* an expression had too many terms: the kernel must be given up */
} ty_ix_pool;

void ty_ix_init(ty_ix_pool *p, ty_arena *arena);
/* *to has the same expressions with the same ids; what is added to it stays out of `from`, which must outlive it. */
void ty_ix_copy(const ty_ix_pool *from, ty_arena *arena, ty_ix_pool *to);
ty_ix ty_ix_const(ty_ix_pool *p, int64_t c);
ty_ix ty_ix_var(ty_ix_pool *p, uint32_t var, int64_t extent); /* 0 <= var < extent */
/* a behind a guard, where it is known to be >= 0 and below `extent` though its variable is not: with that range, if it
 * is a loop variable or a remainder, perhaps with a constant; else a itself. */
ty_ix ty_ix_limit(ty_ix_pool *p, ty_ix a, int64_t extent);
/* The same without the guard: *plain is a with all of its variables, below *hi. False if a is no sum of variables. */
bool ty_ix_unlimited(ty_ix_pool *p, ty_ix a, const int64_t *extent, ty_ix *plain, int64_t *hi);
ty_ix ty_ix_data(ty_ix_pool *p, uint32_t instr, int64_t lo, int64_t hi, uint64_t vars);
ty_ix ty_ix_add(ty_ix_pool *p, ty_ix a, ty_ix b);
ty_ix ty_ix_add_const(ty_ix_pool *p, ty_ix a, int64_t c);
ty_ix ty_ix_mul(ty_ix_pool *p, ty_ix a, int64_t c);
ty_ix ty_ix_div(ty_ix_pool *p, ty_ix a, int64_t d); /* floor, d > 0, a >= 0 */
ty_ix ty_ix_mod(ty_ix_pool *p, ty_ix a, int64_t d);
static inline const ty_ix_node *ty_ix_at(const ty_ix_pool *p, ty_ix a)
{
    return &p->node[a];
}
/* Coefficient of a loop variable, if the variable occurs in no other atom; *inside is set if it does. */
int64_t ty_ix_coef(const ty_ix_pool *p, ty_ix a, uint32_t var, bool *inside);

#endif
