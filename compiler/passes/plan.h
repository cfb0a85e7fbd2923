/* plan.h - the order of units and the place of every value.
 *
 * order.c     decides which assigned values may be written straight over their state (donation) and puts the units in
 * an order that respects data and those overwrites. plan.c      lays all other values into one slab: lifetimes on that
 * order, views and in-place results share memory, the parts of a concatenation are written where they belong, then best
 * fit by decreasing size. plan_check.c walks the finished plan with other code than made it and proves that no value is
 * overwritten before its last reader.
 */
#ifndef TY_COMPILER_PLAN_H
#define TY_COMPILER_PLAN_H

#include "compiler/passes/fuse.h"

typedef enum ty_place_kind {
    TY_PLACE_NONE,
    TY_PLACE_SLAB,
    TY_PLACE_INPUT,
    TY_PLACE_STATE,
    TY_PLACE_CONST,
    TY_PLACE_SCRATCH /* of a call while it runs: in tapes, never in a plan */
} ty_place_kind;

typedef struct ty_place {
    ty_place_kind kind;
    int64_t index;  /* input or state number */
    int64_t offset; /* bytes from the start of slab, input or state */
} ty_place;

/* An assign whose value could not be written in place: copied after all units. */
typedef struct ty_plan_copy {
    int state;
    ty_val value;
} ty_plan_copy;

typedef struct ty_plan {
    ty_arena arena;
    const ty_fusion *f;
    uint32_t *order; /* units in the order of execution */
    int n_order;
    ty_place *place;   /* per value index; of bases of views */
    int *first, *last; /* per value index: lifetime in positions of `order` (n_order: until the next run) */
    ty_plan_copy *copy;
    int n_copies;
    int n_delayed; /* units that wait with a large result until it is needed */
    int64_t slab_bytes;
    int64_t bound_bytes; /* largest sum of live bytes over the order: no plan can be smaller */
} ty_plan;

/* order.c: fills order, copies, and the places of donated values. With delays, units whose large results are needed
 * much later wait. */
int ty_plan_schedule(ty_plan *p, bool delays, ty_error *err);
/* plan.c: all of it. */
int ty_pass_plan(const ty_fusion *f, ty_plan **out, ty_error *err);
void ty_plan_free(ty_plan *p);
/* plan_check.c: 0 if the plan is sound; otherwise names the value that would be lost. */
int ty_plan_check(const ty_plan *p, ty_error *err);

/* Place of any value in memory, views included. */
ty_place ty_plan_place(const ty_plan *p, ty_val v);
/* For a kernel of the plan: alias[i], the buffer whose pointer buffer i shares, or i. One that is read shares that of
 * one which is written at the same place, so that a target's compiler sees the dependence. */
void ty_plan_aliases(const ty_plan *p, const ty_kernel *k, uint32_t *alias);
/* True if the rows that make v (ty_fuse_rows_of) are written over the old table, which need not be copied first. */
bool ty_plan_rows_in_place(const ty_plan *p, ty_val v);
/* True if part `i` of the concatenation `node` was written in place and needs no copy. */
bool ty_plan_part_in_place(const ty_plan *p, uint32_t node, int i);

#define TY_PLAN_ALIGN 64

#endif
