/* join.h - small launches and copies of a tape that do not depend on each other become one launch.
 *
 * Each kernel of a graph costs a GPU two microseconds or more besides its work: a network of many layers has hundreds
 * of copies of a kilobyte, casts of weights and last steps of sums, whose work takes less. What a call touches is
 * known, so one may go to an earlier place if none between touches the same memory, and there become part of what is
 * launched: a kernel whose blocks are dealt to the parts. Each part computes what it did alone, with as many blocks as
 * it had: bits stay the same.
 *
 * Nothing moves over an exchange with other replicas, or over the wait for one.
 */
#ifndef TY_TARGET_CUDA_JOIN_H
#define TY_TARGET_CUDA_JOIN_H

#include "compiler/target/cuda/tape.h"

/* Memory that a call touches. */
typedef struct ty_cuda_touch {
    ty_place at;
    int64_t bytes;
    bool written;
} ty_cuda_touch;

/* Both touch the same memory, and one of them writes it. */
bool ty_cuda_touches(const ty_cuda_touch *a, const ty_cuda_touch *b);

/* A call that is not yet on the tape. */
typedef struct ty_cuda_item {
    ty_cuda_call call;
    const char *text; /* LAUNCH, EXCHANGE in order: from TY_KERNEL to the closing brace */
    bool may_join;    /* the text is ty_cuda_render_kernel's */
    bool is_gone;     /* it is part of an earlier one */
    const ty_cuda_touch *touch;
    int n_touch;
} ty_cuda_item;

/* item[n]: in the order in which they may run; what is made is `a`'s. False: a kernel is too large. */
bool ty_cuda_join(ty_cuda_item *item, int n, ty_arena *a);

#endif
