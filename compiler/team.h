/* team.h - processes with a GPU each, and what they do together by NCCL outside of any program: to measure it.
 *
 *     ty_team_open(gpu, &exchange, n, &team, err)      all of them; finds the others by exchange.meet (exchange.h)
 *     ty_team_alloc(team, bytes, &at, err)             memory of the GPU
 *     ty_team_put(team, at, from, bytes, err)
 *     ty_team_begin(team, &call, err)                  all of them, in one order; asked for, not waited for
 *     ty_team_wait(team, err)                          until all that was begun is done
 *     ty_team_get(team, to, at, bytes, err)
 *     ty_team_close(team, cleanly)
 *
 * All functions are called from the thread that opened it. Where one of the others is lost, NCCL says so at the next
 * wait.
 */
#ifndef TY_COMPILER_TEAM_H
#define TY_COMPILER_TEAM_H

#include "compiler/exchange.h"

typedef struct ty_team ty_team;

/*                 from                          to
 * all_reduce      n elements                    n elements
 * reduce_scatter  n elements, a part for each   the own part, n / members elements
 * all_gather      own part, n elements          all parts
 * broadcast       n elements, read on member 0  n elements
 * all_to_all      n elements, a part for each   a part from each; not the memory of `from`
 *
 * `from` and `to` may be equal otherwise, and the own part may lie in its place of the whole. */
typedef enum ty_team_kind {
    TY_TEAM_ALL_REDUCE,
    TY_TEAM_REDUCE_SCATTER,
    TY_TEAM_ALL_GATHER,
    TY_TEAM_BROADCAST,
    TY_TEAM_ALL_TO_ALL,
    TY_N_TEAM_KINDS
} ty_team_kind;

typedef enum ty_team_reduce {
    TY_TEAM_SUM,
    TY_TEAM_PRODUCT,
    TY_TEAM_MAX,
    TY_TEAM_MIN,
    TY_TEAM_AVERAGE,
    TY_N_TEAM_REDUCES
} ty_team_reduce;

typedef struct ty_team_call {
    ty_team_kind kind;
    ty_team_reduce reduce;
    ty_dtype dtype;
    const char *from; /* addresses of the GPU */
    char *to;
    int64_t n; /* elements of `from` */
} ty_team_call;

/* gpu: its number. Of the exchange its replica and meet are asked, now. n: members. */
int ty_team_open(int gpu, const ty_exchange *exchange, int n, ty_team **out, ty_error *err);
/* NULL is fine. Cleanly: all of them do so, and wait for each other. Otherwise, after a failure, nobody is waited for,
 * and what was begun comes to an end. */
void ty_team_close(ty_team *team, bool cleanly);
const char *ty_team_version(const ty_team *team); /* "2.28.9", of NCCL */
/* Whether NCCL can: it adds up no bool and no 16-bit integers. */
bool ty_team_reduces(ty_dtype dtype);

int ty_team_alloc(ty_team *team, size_t bytes, char **out, ty_error *err);
void ty_team_release(ty_team *team, char *at); /* NULL: nothing */
/* Both wait until the bytes are there. */
int ty_team_put(ty_team *team, char *to, const void *from, size_t bytes, ty_error *err);
int ty_team_get(ty_team *team, void *to, const char *from, size_t bytes, ty_error *err);
int ty_team_begin(ty_team *team, const ty_team_call *call, ty_error *err);
int ty_team_wait(ty_team *team, ty_error *err);

#endif
