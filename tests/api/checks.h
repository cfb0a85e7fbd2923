/* checks.h - what every rank checks, through the public header alone: the cases of Horovod's parallel tests.
 *
 * Included by tests/unit/api.c, where ranks are threads of one program, and by tests/api/parallel.c, where they are
 * processes. All ranks run the same checks in the same order; a check that fails counts and goes on, so that ranks stay
 * together.
 */
#ifndef TY_TESTS_API_CHECKS_H
#define TY_TESTS_API_CHECKS_H

#include "broadcasts.h"
#include "exchanges.h"
#include "gathers.h"
#include "gradients.h"
#include "joining.h"
#include "mistakes.h"
#include "outcomes.h"
#include "reductions.h"
#include "sets.h"

static const struct check {
    const char *name;
    void (*run)(void);
} checks[] = {
    {"ranks and sizes", ranks_and_sizes},
    {"allreduce: types, operations, dimensions", allreduce_types_ops_dims},
    {"allreduce: nothing, one number, many", allreduce_sizes},
    {"allreduce: scaled before and after", allreduce_scales},
    {"allreduce: fp16 and bf16 on the wire", allreduce_compressed},
    {"allreduce: groups of mixed types", allreduce_grouped},
    {"allreduce: handles, waited for in any order", allreduce_async},
    {"allgather: first dimensions that differ", allgather_rows},
    {"allgather: own memory, empty parts", allgather_room_and_nothing},
    {"allgather: several under way", allgather_async},
    {"reducescatter: even, uneven, none", reducescatter_parts},
    {"reducescatter: scaled; a single number is refused", reducescatter_scaled_and_refused},
    {"alltoall: equal parts", alltoall_equal},
    {"alltoall: given splits", alltoall_splits},
    {"alltoall: ranks that send or receive nothing", alltoall_zero_splits},
    {"alltoall: wrong splits are refused", alltoall_refused},
    {"broadcast: types, every root", broadcast_types},
    {"broadcast: several variables", broadcast_variables},
    {"broadcast: an object", broadcast_object},
    {"errors: shapes that differ", error_shapes},
    {"errors: types, operations, names, calls that differ", error_types_and_options},
    {"errors: roots", error_roots},
    {"errors: arguments", error_arguments},
    {"join: uneven data", join_uneven},
    {"join: what needs all ranks is refused", join_refuses},
    {"process sets", process_sets},
    {"process sets: refused", process_sets_refused},
    {"gradients: ready in any order", gradients_any_order},
    {"gradients: results before all are ready", gradients_early},
    {"gradients: passes, missing ones", gradients_passes},
    {"gradients: fp16 and bf16 on the wire", gradients_compressed},
    {"gradients: refused", gradients_refused},
    {"gradients: join", gradients_join},
    {"gradients: of a process set", gradients_of_a_set},
    {"gradients: of rows", gradients_of_rows},
    {"files", files},
    {"metrics", metrics},
};
enum { N_CHECKS = sizeof checks / sizeof *checks };

#endif
