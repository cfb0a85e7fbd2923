/* mpi.c - the engine "mpi": ranks are processes of one MPI job (dist/comm/engine.h). Linked with Open MPI, and the only
 * file that is.
 *
 * Each group is a communicator of its own with at most one call under way. MPI is asked for threads that call it at the
 * same time (THREAD_MULTIPLE), since several comms may be in use. Where it allows one thread at a time only, every call
 * is short (start, test) and made under a lock.
 *
 * A peer that dies is not noticed here: Open MPI 4.1 then waits for ever. The agent ends the job.
 */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include "dist/comm/engine.h"

#include "base/clock.h"
#include "dist/plugin.h"

#include <mpi.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long taking one's leave may last, from meeting the others to the end of MPI; a gap between two looks counts as so
 * much at most. */
enum { LEAVE_MS = 10000, GAP_MS = 100 };

enum { MESSAGE_TAG = 1 };

struct ty_engine_group {
    MPI_Comm comm;
    int rank, size;
    int n_requests;       /* of the call under way */
    MPI_Request *request; /* [2 size] */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `open_groups`, and of MPI where `one_at_a_time` */
static int open_groups;
static bool one_at_a_time;

static void enter(void)
{
    if (one_at_a_time)
        pthread_mutex_lock(&lock);
}

static void leave(void)
{
    if (one_at_a_time)
        pthread_mutex_unlock(&lock);
}

/* What MPI says about a return code; 0 if it is success. */
static int verdict(int rc, const char *call, ty_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "no text";
    int n = 0;
    if (rc == MPI_SUCCESS)
        return 0;
    MPI_Error_string(rc, text, &n);
    return ty_error_set(err, TY_E_LIBRARY, "MPI, in %s: %s", call, text);
}

/* --- calls --- */

static MPI_Datatype type_of(ty_dtype dtype)
{
    switch (dtype) {
    case TY_I8:
        return MPI_INT8_T;
    case TY_U8:
        return MPI_UINT8_T;
    case TY_I16:
        return MPI_INT16_T;
    case TY_U16:
        return MPI_UINT16_T;
    case TY_I32:
        return MPI_INT32_T;
    case TY_U32:
        return MPI_UINT32_T;
    case TY_I64:
        return MPI_INT64_T;
    case TY_U64:
        return MPI_UINT64_T;
    case TY_F32:
        return MPI_FLOAT;
    case TY_F64:
        return MPI_DOUBLE;
    default:
        return MPI_DATATYPE_NULL; /* never comes */
    }
}

static MPI_Datatype type_of_bytes(int elem_bytes)
{
    return elem_bytes == 8 ? MPI_UINT64_T : elem_bytes == 4 ? MPI_UINT32_T : elem_bytes == 2 ? MPI_UINT16_T : MPI_BYTE;
}

static MPI_Op op_of(ty_reduce reduce)
{
    return reduce == TY_REDUCE_MIN       ? MPI_MIN
           : reduce == TY_REDUCE_MAX     ? MPI_MAX
           : reduce == TY_REDUCE_PRODUCT ? MPI_PROD
                                         : MPI_SUM;
}

/* Messages of one call: each is a request of the group. */
static int send_part(ty_engine_group *g, int to, const void *from, int64_t offset, int64_t n, int elem_bytes)
{
    const char *at = (const char *)from + offset * elem_bytes;
    return n ? MPI_Isend(at, (int)n, type_of_bytes(elem_bytes), to, MESSAGE_TAG, g->comm, &g->request[g->n_requests++])
             : MPI_SUCCESS;
}

static int receive_part(ty_engine_group *g, int from, void *to, int64_t offset, int64_t n, int elem_bytes)
{
    char *at = (char *)to + offset * elem_bytes;
    return n ? MPI_Irecv(at, (int)n, type_of_bytes(elem_bytes), from, MESSAGE_TAG, g->comm,
                         &g->request[g->n_requests++])
             : MPI_SUCCESS;
}

/* Parts are single messages: Open MPI 4.1's MPI_Ialltoallv loses count of the calls where a rank has nothing to send
 * and nothing to get, and hangs; and sending each part to its rank is how it does it, too. */
static int start_all_reduce(ty_engine_group *g, const ty_engine_call *c)
{
    const void *in = c->in == c->out ? MPI_IN_PLACE : c->in;
    return MPI_Iallreduce(in, c->out, (int)c->n, type_of(c->dtype), op_of(c->reduce), g->comm,
                          &g->request[g->n_requests++]);
}

static int start_all_to_all(ty_engine_group *g, const ty_engine_call *c)
{
    int rc = MPI_SUCCESS, bytes = c->elem_bytes;
    for (int k = 1; k < g->size && rc == MPI_SUCCESS; k++) {
        int from = (g->rank + g->size - k) % g->size;
        rc = receive_part(g, from, c->out, c->out_offsets[from], c->out_counts[from], bytes);
    }
    for (int k = 1; k < g->size && rc == MPI_SUCCESS; k++) {
        int to = (g->rank + k) % g->size;
        rc = send_part(g, to, c->in, c->in_offsets[to], c->in_counts[to], bytes);
    }
    if (c->out_counts[g->rank])
        memcpy((char *)c->out + c->out_offsets[g->rank] * bytes, (const char *)c->in + c->in_offsets[g->rank] * bytes,
               (size_t)(c->out_counts[g->rank] * bytes));
    return rc;
}

static int start_all_gather(ty_engine_group *g, const ty_engine_call *c)
{
    int rc = MPI_SUCCESS, bytes = c->elem_bytes;
    int64_t own = c->out_counts[g->rank];
    char *place = (char *)c->out + c->out_offsets[g->rank] * bytes;
    for (int k = 1; k < g->size && rc == MPI_SUCCESS; k++) {
        int from = (g->rank + g->size - k) % g->size;
        rc = receive_part(g, from, c->out, c->out_offsets[from], c->out_counts[from], bytes);
    }
    for (int k = 1; k < g->size && rc == MPI_SUCCESS; k++)
        rc = send_part(g, (g->rank + k) % g->size, c->in ? c->in : place, 0, own, bytes);
    if (c->in && own)
        memcpy(place, c->in, (size_t)(own * bytes));
    return rc;
}

static int start_broadcast(ty_engine_group *g, const ty_engine_call *c)
{
    return MPI_Ibcast(c->out, (int)c->n, type_of_bytes(c->elem_bytes), c->root, g->comm, &g->request[g->n_requests++]);
}

static int start_barrier(ty_engine_group *g, const ty_engine_call *c)
{
    (void)c;
    return MPI_Ibarrier(g->comm, &g->request[g->n_requests++]);
}

static const struct {
    int (*start)(ty_engine_group *g, const ty_engine_call *c);
    const char *name;
} kinds[] = {
    [TY_ENGINE_ALL_REDUCE] = {start_all_reduce, "all_reduce"},
    [TY_ENGINE_ALL_TO_ALL] = {start_all_to_all, "all_to_all"},
    [TY_ENGINE_ALL_GATHER] = {start_all_gather, "all_gather"},
    [TY_ENGINE_BROADCAST] = {start_broadcast, "broadcast"},
    [TY_ENGINE_BARRIER] = {start_barrier, "barrier"},
};

static int mpi_start(ty_engine_group *g, const ty_engine_call *call, ty_error *err)
{
    enter();
    g->n_requests = 0;
    int rc = kinds[call->kind].start(g, call);
    leave();
    return verdict(rc, kinds[call->kind].name, err);
}

static int mpi_test(ty_engine_group *g, bool *done, ty_error *err)
{
    int flag = 0;
    enter();
    int rc = MPI_Testall(g->n_requests, g->request, &flag, MPI_STATUSES_IGNORE);
    leave();
    *done = flag;
    return verdict(rc, "test", err);
}

/* --- groups --- */

static int mpi_rank(const ty_engine_group *g)
{
    return g->rank;
}

static int mpi_size(const ty_engine_group *g)
{
    return g->size;
}

static void group_free(ty_engine_group *g)
{
    if (g)
        free(g->request);
    free(g);
}

/* Takes the communicator. */
static int group_of(MPI_Comm comm, ty_engine_group **out, ty_error *err)
{
    ty_engine_group *g = calloc(1, sizeof *g);
    if (g) {
        g->comm = comm;
        MPI_Comm_rank(comm, &g->rank);
        MPI_Comm_size(comm, &g->size);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        g->request = calloc((size_t)g->size * 2, sizeof *g->request);
    }
    if (!g || !g->request) {
        group_free(g);
        return ty_error_set(err, TY_E_LIMIT, "no memory for a group of ranks");
    }
    pthread_mutex_lock(&lock);
    open_groups++;
    pthread_mutex_unlock(&lock);
    *out = g;
    return 0;
}

static int mpi_split(ty_engine_group *g, int color, int key, ty_engine_group **out, ty_error *err)
{
    MPI_Comm comm;
    *out = NULL;
    enter();
    int rc = MPI_Comm_split(g->comm, color < 0 ? MPI_UNDEFINED : color, key, &comm);
    leave();
    if (verdict(rc, "comm_split", err) < 0)
        return -1;
    return comm == MPI_COMM_NULL ? 0 : group_of(comm, out, err);
}

/* The lowest rank of the host. */
static int mpi_host(ty_engine_group *g, int *host, ty_error *err)
{
    MPI_Comm local;
    *host = g->rank;
    if (verdict(MPI_Comm_split_type(g->comm, MPI_COMM_TYPE_SHARED, g->rank, MPI_INFO_NULL, &local), "comm_split_type",
                err) < 0)
        return -1;
    int rc = verdict(MPI_Bcast(host, 1, MPI_INT, 0, local), "bcast", err);
    MPI_Comm_free(&local);
    return rc;
}

/* --- begin and end of MPI --- */

/* Ranks that share cores must not spin in each other's time. MPI reads this while it starts. */
static void yield_if_crowded(void)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (local && atol(local) > sysconf(_SC_NPROCESSORS_ONLN))
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

/* A process that MPI takes for a job of its own, though its environment speaks of several ranks. */
static int check_size(int size, ty_error *err)
{
    const char *said = getenv("OMPI_COMM_WORLD_SIZE") ? getenv("OMPI_COMM_WORLD_SIZE") : getenv("WORLD_SIZE");
    if (!said || atoi(said) == size || atoi(said) <= 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "MPI knows of %d rank%s, but the environment says %s", size, size == 1 ? "" : "s",
                 said);
    return ty_error_help(err, "ranks are started by `train`, by `trainyard perf --ranks N` or by mpirun; a process "
                              "started by hand is alone");
}

static int mpi_open(ty_engine_group **world, ty_error *err)
{
    int before = 0, after = 0, level = 0;
    MPI_Comm comm;
    MPI_Initialized(&before);
    MPI_Finalized(&after);
    if (after)
        return ty_error_set(err, TY_E_CONFIG, "MPI was ended in this process and cannot be started again");
    if (!before) {
        yield_if_crowded();
        if (verdict(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level), "init_thread", err) < 0)
            return -1;
    }
    MPI_Query_thread(&level);
    one_at_a_time = level < MPI_THREAD_MULTIPLE;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (verdict(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "comm_dup", err) < 0 || group_of(comm, world, err) < 0)
        return -1;
    return check_size((*world)->size, err);
}

static void *finalize(void *unused)
{
    MPI_Finalize();
    return unused;
}

/* Time in which the others could be seen: of a machine that stood still, or gave this process nothing, the least part
 * was that. */
typedef struct patience {
    int64_t left_ms, looked_ms;
} patience;

static bool lasts(patience *p)
{
    int64_t now = ty_clock_ms(), gap = now - p->looked_ms;
    p->left_ms -= gap < GAP_MS ? gap : GAP_MS;
    p->looked_ms = now;
    return p->left_ms > 0;
}

/* All have come to their end, or the time is over. */
static bool all_leave(MPI_Comm comm, patience *p)
{
    MPI_Request request;
    int done = 0;
    if (MPI_Ibarrier(comm, &request) != MPI_SUCCESS)
        return false;
    while (!done && lasts(p)) {
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (!done)
            nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    return done;
}

/* MPI_Finalize has been seen to hang when a peer or the network went away. It gets a thread and the time that is left;
 * the process is about to end anyway. */
static void finalize_in_time(patience *p)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, finalize, NULL) != 0)
        return;
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (!lasts(p)) {
            pthread_detach(thread);
            return;
        }
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
}

static void mpi_close(ty_engine_group *g, bool cleanly)
{
    if (!g)
        return;
    pthread_mutex_lock(&lock);
    bool last = --open_groups == 0;
    pthread_mutex_unlock(&lock);
    patience p = {LEAVE_MS, ty_clock_ms()};
    if (cleanly && last && all_leave(g->comm, &p))
        finalize_in_time(&p);
    else if (cleanly && !last)
        MPI_Comm_free(&g->comm);
    group_free(g);
}

static const char *mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    MPI_Get_library_version(text, &n);
    text[strcspn(text, ",")] = 0;
    return text;
}

static const ty_engine mpi_engine = {
    .name = "mpi",
    .open = mpi_open,
    .rank = mpi_rank,
    .size = mpi_size,
    .split = mpi_split,
    .host = mpi_host,
    .start = mpi_start,
    .test = mpi_test,
    .goes_on = true,
    .close = mpi_close,
};

TY_PLUGIN = {"mpi", TY_ENGINE_VERSION, "libmpi.so.40", mpi_version, &mpi_engine};
