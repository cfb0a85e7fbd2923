/* libnccl.c - a stand-in for NCCL: replicas are threads of this process, whose calls meet when their streams run them.
 *
 * Sums are taken in the order of the replicas, in the type of the numbers, so that all get the same bits. Calls that do
 * not fit each other, and a replica that is waited for in vain, end the process. What is aborted lets everybody go.
 *
 *     TY_FAKE_NCCL=3      what connecting answers
 */
#include "tests/fakes/gpu/element.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_RANKS = 8, PATIENCE_S = 30, TEXT_BYTES = 64, INVALID = 4 };

typedef enum kind { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER } kind;

typedef struct call {
    ncclComm_t comm;
    kind kind;
    const char *from;
    char *to;
    size_t n; /* as NCCL counts: of REDUCE_SCATTER results, of ALL_GATHER operands */
    unsigned type;
    int root;
} call;

/* All ranks of a communicator. Each call has two meetings: all have come, all have read. */
typedef struct group {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    const call *arrived[MAX_RANKS];
    int n, here, left; /* left: communicators that were not given back */
    long meeting;
    bool aborted;
} group;

struct ncclComm {
    group *group;
    int rank, device;
    fake_driver driver;
};

unsigned ncclGetVersion(int *version)
{
    *version = 22809;
    return 0;
}

const char *ncclGetErrorString(unsigned result)
{
    return result == 3 ? "internal error" : result == INVALID ? "invalid argument" : "an error of the stand-in";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "the stand-in's words";
}

unsigned ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
    fake_driver driver;
    const char *fail = getenv("TY_FAKE_NCCL");
    if (fail)
        return (unsigned)atoi(fail);
    if (n > MAX_RANKS || !fake_driver_find(&driver))
        return INVALID;
    group *g = calloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->moved, NULL);
    g->n = g->left = n;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            if (devices[k] == devices[i])
                return INVALID; /* as NCCL: a GPU stands in a communicator once */
        comms[i] = calloc(1, sizeof **comms);
        *comms[i] = (struct ncclComm){g, i, devices[i], driver};
    }
    return 0;
}

static void leave(ncclComm_t comm, bool abort_all)
{
    group *g = comm->group;
    pthread_mutex_lock(&g->lock);
    g->aborted |= abort_all;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock); /* the group and its communicators stay: others may still be on their way out */
}

unsigned ncclCommDestroy(ncclComm_t comm)
{
    group *g = comm->group;
    leave(comm, false);
    free(comm);
    if (--g->left == 0)
        free(g);
    return 0;
}

unsigned ncclCommAbort(ncclComm_t comm)
{
    leave(comm, true);
    return 0;
}

/* Until all ranks are here; false if somebody has called it off. Called with the lock. */
static bool meet(group *g, const call *c)
{
    struct timespec end;
    long meeting = g->meeting;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    if (++g->here == g->n) {
        g->here = 0;
        g->meeting++;
        pthread_cond_broadcast(&g->moved);
        return !g->aborted;
    }
    while (g->meeting == meeting && !g->aborted)
        if (pthread_cond_timedwait(&g->moved, &g->lock, &end) != 0) {
            fprintf(stderr, "stand-in NCCL: rank %d waits for others in vain\n", c->comm->rank);
            abort();
        }
    return !g->aborted;
}

static void check_same(const group *g, const call *c)
{
    for (int i = 0; i < g->n; i++) {
        const call *other = g->arrived[i];
        if (other->kind == c->kind && other->n == c->n && other->type == c->type && other->root == c->root)
            continue;
        fprintf(stderr, "stand-in NCCL: rank %d is in call %d of %zu, rank %d in call %d of %zu\n", c->comm->rank,
                (int)c->kind, c->n, i, (int)other->kind, other->n);
        abort();
    }
}

/* ---- arithmetic ---- */

static ty_dtype dtype_of(unsigned type)
{
    static const ty_dtype dtypes[] = {TY_I8, TY_U8, TY_I32, TY_U32, TY_I64, TY_U64, TY_F16, TY_F32, TY_F64, TY_BF16};
    return dtypes[type];
}

static int64_t whole_get(const char *at, int64_t i, ty_dtype type)
{
    int64_t v = 0;
    memcpy(&v, at + (size_t)i * ty_dtype_bytes(type), ty_dtype_bytes(type));
    return v;
}

/* Of all ranks; integers wrap in their own bytes. */
static void sum(const group *g, char *to, size_t first, size_t n, ty_dtype type)
{
    for (size_t i = 0; i < n; i++) {
        int64_t at = (int64_t)(first + i), whole = 0;
        if (ty_dtype_is_float(type)) {
            element_put(to, (int64_t)i, type, element_get(g->arrived[0]->from, at, type));
            for (int r = 1; r < g->n; r++)
                element_put(to, (int64_t)i, type,
                            element_get(to, (int64_t)i, type) + element_get(g->arrived[r]->from, at, type));
            continue;
        }
        for (int r = 0; r < g->n; r++)
            whole += whole_get(g->arrived[r]->from, at, type);
        memcpy(to + i * ty_dtype_bytes(type), &whole, ty_dtype_bytes(type));
    }
}

/* What this rank gets, in fresh memory. */
static size_t result_of(const group *g, const call *c, char **out)
{
    ty_dtype type = dtype_of(c->type);
    size_t bytes = c->n * ty_dtype_bytes(type);
    if (c->kind == REDUCE && c->root != c->comm->rank)
        return 0;
    char *to = *out = malloc(c->kind == ALL_GATHER ? bytes * (size_t)g->n : bytes);
    if (c->kind == ALL_GATHER)
        for (int r = 0; r < g->n; r++)
            memcpy(to + (size_t)r * bytes, g->arrived[r]->from, bytes);
    else if (c->kind == BROADCAST)
        memcpy(to, g->arrived[c->root]->from, bytes);
    else
        sum(g, to, c->kind == REDUCE_SCATTER ? (size_t)c->comm->rank * c->n : 0, c->n, type);
    return c->kind == ALL_GATHER ? bytes * (size_t)g->n : bytes;
}

static void run(const void *given)
{
    const call *c = given;
    group *g = c->comm->group;
    char *result = NULL;
    size_t bytes = 0;
    pthread_mutex_lock(&g->lock);
    g->arrived[c->comm->rank] = c;
    bool met = meet(g, c);
    pthread_mutex_unlock(&g->lock);
    if (met) {
        check_same(g, c);
        bytes = result_of(g, c, &result);
    }
    pthread_mutex_lock(&g->lock);
    met = met && meet(g, c);
    pthread_mutex_unlock(&g->lock);
    if (met && result)
        memcpy(c->to, result, bytes);
    free(result);
}

/* ---- calls ---- */

static unsigned ask(call c, CUstream stream, const char *name)
{
    char text[TEXT_BYTES];
    size_t bytes = c.n * ty_dtype_bytes(dtype_of(c.type)), all = bytes * (size_t)c.comm->group->n;
    if (c.comm->group->aborted)
        return INVALID;
    c.comm->driver.check(c.from, c.kind == REDUCE_SCATTER ? all : bytes, name);
    c.comm->driver.check(c.to, c.kind == ALL_GATHER ? all : bytes, name);
    snprintf(text, sizeof text, "%s %zu", name, c.n);
    return c.comm->driver.work(stream, run, &c, sizeof c, text);
}

unsigned ncclAllReduce(const void *from, void *to, size_t n, unsigned type, unsigned how, ncclComm_t comm,
                       CUstream stream)
{
    (void)how;
    return ask((call){comm, ALL_REDUCE, from, to, n, type, 0}, stream, "ncclAllReduce");
}

unsigned ncclReduce(const void *from, void *to, size_t n, unsigned type, unsigned how, int root, ncclComm_t comm,
                    CUstream stream)
{
    (void)how;
    return ask((call){comm, REDUCE, from, to, n, type, root}, stream, "ncclReduce");
}

unsigned ncclBroadcast(const void *from, void *to, size_t n, unsigned type, int root, ncclComm_t comm, CUstream stream)
{
    return ask((call){comm, BROADCAST, from, to, n, type, root}, stream, "ncclBroadcast");
}

unsigned ncclReduceScatter(const void *from, void *to, size_t n, unsigned type, unsigned how, ncclComm_t comm,
                           CUstream stream)
{
    (void)how;
    return ask((call){comm, REDUCE_SCATTER, from, to, n, type, 0}, stream, "ncclReduceScatter");
}

unsigned ncclAllGather(const void *from, void *to, size_t n, unsigned type, ncclComm_t comm, CUstream stream)
{
    return ask((call){comm, ALL_GATHER, from, to, n, type, 0}, stream, "ncclAllGather");
}
