/* budget.h - the memory of a run before it begins, from the compiler's plan, and the batch that a limit allows.
 *
 * On a GPU it is the GPU's memory that limits: states, slab, constants, workspaces, batches and code are there, and the
 * host holds a copy of the states and what batches pass through.
 *
 * Everything the process will hold is counted: what it holds already (program, libraries, graphs, data that were read
 * into memory), the states, the plan's slab, the workspaces of library calls, and the ring of batches that are read
 * ahead. The first is measured in the process that asks, the others are planned; nothing is guessed.
 */
#ifndef TY_ENTRYPOINT_BUDGET_H
#define TY_ENTRYPOINT_BUDGET_H

#include "entrypoint/session.h"

typedef struct ty_budget {
    int64_t batch;          /* rows, of all devices */
    uint64_t process_bytes; /* program, libraries, graphs, data in memory */
    uint64_t state_bytes, slab_bytes, scratch_bytes;
    uint64_t input_bytes; /* batches made ahead; of a stream what is being read and its shuffle buffer too */
    bool on_gpu;
    int n_gpus;                                       /* that each take so much */
    uint64_t constant_bytes, batch_bytes, code_bytes; /* of the GPU */
    uint64_t pinned_bytes;                            /* of the host */
    uint64_t host_bytes;                              /* of these: the process's own, which nobody can take back */
    uint64_t total_bytes;                             /* that must be there: of the GPU, else those of the host */
    uint64_t
        mapped_bytes; /* files that are mapped, data and weights that stay: resident while there is room for them */
} ty_budget;

/* Plans the session's step for `batch` rows. program (may be NULL) receives the planned program. Where the recipe
 * allows it and a limit asks for it, parts of forward are computed again: s->temporary_bytes says so to the compiler,
 * else 0. Where a GPU does not compute the step and the recipe leaves the choice, it is planned for the CPU. */
int ty_budget_plan(ty_session *s, int64_t batch, ty_program **program, ty_budget *out, ty_error *err);

/* Before compiling: s->temporary_bytes for the recipe's batch, or an error if it cannot fit `memory`. */
int ty_budget_fit(ty_session *s, ty_error *err);

/* Budgets that were planned already; a search adds to them. */
enum { TY_BUDGET_MAX_KNOWN = 256 };
typedef struct ty_budget_list {
    ty_budget known[TY_BUDGET_MAX_KNOWN]; /* by batch, rising */
    int n;
} ty_budget_list;

/* The largest batch whose total is at most `limit`: a multiple of 8, or fewer than 8 rows, on each device; at most
 * max_batch. Batch 0
 * in *out: not even one row fits. Interpolates between what is known, and ends with a batch that was planned and fits,
 * whose successor was planned and does not. */
int ty_budget_largest(ty_session *s, uint64_t limit, int64_t max_batch, ty_budget_list *known, ty_budget *out,
                      ty_error *err);

/* The share of a memory limit that batch_size auto fills. */
#define TY_BUDGET_SHARE 0.95

/* Bytes of the batches that are read ahead. */
uint64_t ty_budget_input_bytes(const ty_session *s, int64_t batch);

/* What a program needs when it runs in this process, from now on. */
ty_budget ty_budget_of_program(const ty_session *s, const ty_program *p);

#endif
