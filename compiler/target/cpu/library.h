/* library.h - ops that are not generated: a prepared call for each LIBRARY row.
 *
 * Products and convolutions go to oneDNN (onednn_*.c); scatter, sort, scan, pooling and what oneDNN does not take
 * (other dtypes) are C functions written by hand (native_*.c). Preparing happens once at compile time and may be slow
 * and allocate; running happens each step, allocates nothing, uses up to `threads` OpenMP threads, and gives the same
 * bits for the same inputs. Results never depend on the thread count, except oneDNN's unless strict determinism is
 * asked for.
 */
#ifndef TY_TARGET_CPU_LIBRARY_H
#define TY_TARGET_CPU_LIBRARY_H

#include "compiler/ir/graph.h"

typedef struct ty_library_call {
    /* in[k], out[k]: dense row-major bytes of the operands and results, 4-byte aligned at least (views of arenas),
     * never overlapping but where plan.c lets a result take an operand (plan_overwrites); operands of ops that take any
     * address may be constants in a mapped file; in[k] is NULL where ty_fuse_is_implied (passes/fuse.h). scratch:
     * scratch_bytes, 64-byte aligned, contents undefined. */
    void (*run)(void *prepared, const void *const *in, void *const *out, void *scratch);
    void (*release)(void *prepared); /* frees `prepared`; may be NULL */
    void *prepared;
    size_t scratch_bytes;
    bool skips_unread; /* out[k] may be NULL: nobody reads that result */
    const char *text;  /* what was chosen, for the plan: "onednn jit:avx512_core", "native" */
} ty_library_call;

/* Operands that a call may have. */
enum { TY_LIBRARY_MAX_IN = 16 };

typedef struct ty_library_shape {
    const ty_attr *attr;
    const ty_type *in; /* n_in types */
    int n_in;
    const ty_type *res; /* n_res types */
    int n_res;
    int threads;
    bool strict; /* bits must not depend on the thread count */
} ty_library_shape;

typedef int ty_library_prepare_fn(const ty_library_shape *shape, ty_library_call *out, ty_error *err);

/* Prepares a call of `op`. Fails with UNSUPPORTED if there is none for these types. */
int ty_library_prepare(ty_op op, const ty_library_shape *shape, ty_library_call *out, ty_error *err);
void ty_library_release(ty_library_call *call);
/* Whether operands of `op` may lie at any address, as weights in a model file do. */
bool ty_library_takes_any_address(ty_op op);

/* Whether the first call of a graph would wait for the library to write code for all its calls (30 to 40 ms); and that
 * work, on this thread, without a fault: what cannot be done now shows when a call is prepared. */
bool ty_library_is_slow_to_start(const ty_graph *g);
void ty_library_warm_up(void);
/* The same on a thread of its own, before there is a graph, on processors where nearly every graph comes to it: then no
 * graph is slow any more, and a call that comes too early waits for it. ty_library_await returns when the thread has
 * gone: before the process may end. */
void ty_library_expect(void);
void ty_library_await(void);

#endif
