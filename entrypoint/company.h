/* company.h - the ranks that a session trains with.
 *
 *     ty_company_of(comm, wire, &company, err)       in a process that an agent started as a rank
 *     company == NULL                                a session that trains alone: every call below accepts that
 *
 * Two comms (dist/comm/comm.h): one carries what the program's tapes exchange, the other what is small: counts and
 * losses of tapes, and all that the session asks its company between steps. So they never stand in line behind
 * gradients, and both have an order of their own that is the same on all ranks. Calls that ask something are made by
 * all ranks in the same order.
 *
 * Whoever is rank 0 leads: it reads checkpoints and hands out what they hold, writes all results and prints metrics.
 * The other ranks compute.
 */
#ifndef TY_ENTRYPOINT_COMPANY_H
#define TY_ENTRYPOINT_COMPANY_H

#include "compiler/exchange.h"
#include "dist/comm/comm.h"

typedef struct ty_company ty_company;

/* comm: taken over, also on failure. wire: what gradients travel as. */
int ty_company_of(ty_comm *comm, ty_wire wire, ty_company **out, ty_error *err);
void ty_company_free(ty_company *c, bool cleanly);

int ty_company_rank(const ty_company *c);       /* 0 alone */
int ty_company_size(const ty_company *c);       /* 1 alone */
int ty_company_local_rank(const ty_company *c); /* among the ranks of this host */
int ty_company_local_size(const ty_company *c);
bool ty_company_leads(const ty_company *c);
int ty_company_host(const ty_company *c); /* number of this rank's host, in the order of their first ranks; 0 alone */
int ty_company_hosts(const ty_company *c);

/* Ranks of each host, where all hosts have as many; else 0. */
int ty_company_ranks_a_host(const ty_company *c);
/* The exchange of a program that is compiled for this company; NULL alone. After compiling, the list of its calls. */
const ty_exchange *ty_company_exchange(ty_company *c);
void ty_company_expect(ty_company *c, const ty_exchange_call *calls, int n);
/* Seconds that training steps have waited for others so far: communication that nothing hid. */
double ty_company_waited_s(const ty_company *c);

/* *v becomes the least, the greatest, the sum over all ranks. */
int ty_company_least(ty_company *c, const char *name, int64_t *v, ty_error *err);
int ty_company_most(ty_company *c, const char *name, int64_t *v, ty_error *err);
int ty_company_total(ty_company *c, const char *name, int64_t *v, ty_error *err);
/* How each fared: *v becomes the least number of all. Where another rank's is less than ours *err becomes what that
 * rank has there, its code and its words: "rank 3: no memory ...". err->which becomes that of all who have the least.
 */
int ty_company_worst(ty_company *c, const char *name, int64_t *v, ty_error *err);
/* All ranks get rank 0's bytes, or another's. */
int ty_company_share(ty_company *c, const char *name, void *bytes, size_t n_bytes, ty_error *err);
int ty_company_share_of(ty_company *c, int rank, const char *name, void *bytes, size_t n_bytes, ty_error *err);
/* The bytes of all ranks, in their order, on all of them: all[size][n_bytes]. */
int ty_company_gather(ty_company *c, const char *name, const void *mine, size_t n_bytes, void *all, ty_error *err);
/* The texts of all ranks must be equal; else the first line that differs is the error on all ranks. */
int ty_company_compare(ty_company *c, const char *what, const char *text, ty_error *err);
/* Waits until all are here. */
int ty_company_meet(ty_company *c, const char *name, ty_error *err);

/* Whether somebody wants to stop; the same answer on all ranks, which is that of the call before: the question travels
 * while a step is computed. `mine`: what this rank wants, a number of requests. Alone: mine itself. */
int ty_company_stopping(ty_company *c, int mine, int *all, ty_error *err);

/* What all ranks say of the batch to come: the least of it, or the most. Asked by all before a step, and answered after
 * it; the word travels meanwhile. */
int ty_company_ask(ty_company *c, const char *name, bool most, int mine, ty_error *err);
int ty_company_answer(ty_company *c, int *all, ty_error *err);

#endif
