/* nccl.c - see nccl.h. */
#include "compiler/target/cuda/nccl.h"

#include "compiler/machine.h"
#include "compiler/target/cuda/libraries.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { NCCL_HALVES = 2, NCCL_LOOK_MS = 100 };

/* A communicator that is ended, on a thread of its own. */
typedef struct nccl_ending {
    const ty_nccl *lib;
    ncclComm_t comm;
    pthread_t thread;
} nccl_ending;

struct ty_nccl_group {
    const ty_nccl *lib;
    ty_cross_device how;
    int n, first, n_own;                 /* replicas; those of this process: first ... first + n_own - 1 */
    int inside;                          /* a group of hierarchical copies */
    nccl_ending ending[3 * TY_MAX_GPUS]; /* aborted ones */
    int n_endings;
    /* By replica of this process: with all others; with those of its group; with its counterparts in the others. */
    ncclComm_t all[TY_MAX_GPUS], within[TY_MAX_GPUS], across[TY_MAX_GPUS];
    /* Between the thread that looks, and the others. */
    pthread_mutex_t lock;
    pthread_cond_t closing;
    pthread_t looker;
    bool has_looker, closes, aborted, failed;
    ty_error err;
};

const char *ty_cross_device_text(ty_cross_device how)
{
    static const char *const text[TY_N_CROSS] = {[TY_CROSS_NCCL] = "nccl",
                                                 [TY_CROSS_HIERARCHICAL] = "hierarchical_copy",
                                                 [TY_CROSS_ONE_DEVICE] = "reduction_to_one_device"};
    return text[how];
}

static int nccl_status(const ty_nccl_group *group, unsigned status, const char *what, ncclComm_t comm, ty_error *err)
{
    if (status == TY_NCCL_SUCCESS)
        return 0;
    const char *text = group->lib->ncclGetErrorString(status), *more = group->lib->ncclGetLastError(comm);
    ty_error_set(err, TY_E_LIBRARY, "%s: error %u of NCCL (%s)", what, status, text ? text : "no text for it");
    return ty_error_help(err, "NCCL says: %s; NCCL_DEBUG=WARN in the environment makes it say more",
                         more && *more ? more : "nothing");
}

/* Each communicator once, until `act` says -1. */
static int nccl_each(ty_nccl_group *group, int (*act)(ty_nccl_group *group, ncclComm_t comm))
{
    ncclComm_t *const lists[] = {group->all, group->within, group->across};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (int i = 0; i < group->n_own; i++)
            if (lists[k][i] && act(group, lists[k][i]) < 0)
                return -1;
    return 0;
}

/* ---- the thread that looks ---- */

static void *nccl_abort_thread(void *given)
{
    const nccl_ending *ending = given;
    ending->lib->ncclCommAbort(ending->comm);
    return NULL;
}

/* The call lets kernels go at once and returns when no captured graph knows the communicator any more: if one thread
 * aborted them all, the second one would wait for the first one's graphs, and those for the second. */
static int nccl_abort(ty_nccl_group *group, ncclComm_t comm)
{
    nccl_ending *ending = &group->ending[group->n_endings];
    *ending = (nccl_ending){.lib = group->lib, .comm = comm};
    group->n_endings += pthread_create(&ending->thread, NULL, nccl_abort_thread, ending) == 0;
    return 0;
}

/* With the lock. */
static void nccl_abort_all(ty_nccl_group *group)
{
    if (!group->aborted)
        nccl_each(group, nccl_abort);
    group->aborted = true;
}

static int nccl_look(ty_nccl_group *group, ncclComm_t comm)
{
    unsigned found = TY_NCCL_SUCCESS, status = group->lib->ncclCommGetAsyncError(comm, &found);
    if (status == TY_NCCL_SUCCESS && found == TY_NCCL_IN_PROGRESS)
        return 0;
    return nccl_status(group, status ? status : found, "exchanging with other GPUs", comm, &group->err);
}

static void *nccl_look_thread(void *given)
{
    ty_nccl_group *group = given;
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&group->lock);
    while (!group->closes && !group->aborted) {
        group->failed = nccl_each(group, nccl_look) < 0;
        if (group->failed)
            nccl_abort_all(group);
        next.tv_nsec += NCCL_LOOK_MS * 1000000l;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        while (!group->closes && pthread_cond_timedwait(&group->closing, &group->lock, &next) == 0)
            continue;
    }
    pthread_mutex_unlock(&group->lock);
    return NULL;
}

int ty_nccl_failed(ty_nccl_group *group, ty_error *err)
{
    pthread_mutex_lock(&group->lock);
    bool failed = group->failed;
    if (failed && err)
        *err = group->err;
    pthread_mutex_unlock(&group->lock);
    return failed ? -1 : 0;
}

int ty_nccl_stands(ty_nccl_group *group, ty_error *err)
{
    pthread_mutex_lock(&group->lock);
    bool aborted = group->aborted;
    pthread_mutex_unlock(&group->lock);
    if (ty_nccl_failed(group, err) < 0)
        return -1;
    return aborted ? ty_error_set(err, TY_E_LIBRARY, "exchanging with other GPUs was called off") : 0;
}

/* ---- opening ---- */

static int nccl_connect(ty_nccl_group *group, ncclComm_t *comms, int n, const int *devices, ty_error *err)
{
    unsigned status = group->lib->ncclCommInitAll(comms, n, devices);
    return nccl_status(group, status, "connecting GPUs", NULL, err);
}

/* Halves, and pairs of which one stands in each. */
static int nccl_connect_halves(ty_nccl_group *group, const int *devices, ty_error *err)
{
    int half = group->inside;
    for (int k = 0; k < NCCL_HALVES; k++)
        if (nccl_connect(group, &group->within[k * half], half, &devices[k * half], err) < 0)
            return -1;
    for (int i = 0; i < half; i++) {
        ncclComm_t pair[NCCL_HALVES];
        const int both[NCCL_HALVES] = {devices[i], devices[i + half]};
        if (nccl_connect(group, pair, NCCL_HALVES, both, err) < 0)
            return -1;
        group->across[i] = pair[0];
        group->across[i + half] = pair[1];
    }
    return 0;
}

int ty_nccl_check(int n, ty_cross_device how, ty_error *err)
{
    const ty_nccl *lib;
    if (n < 2 || n > TY_MAX_GPUS)
        return ty_error_set(err, TY_E_INTERNAL, "NCCL for %d GPUs", n);
    if (how != TY_CROSS_HIERARCHICAL || n % NCCL_HALVES == 0)
        return ty_nccl_get(&lib, err) < 0 ? ty_error_wrap(err, "%d GPUs exchange gradients by NCCL", n) : 0;
    ty_error_set(err, TY_E_CONFIG, "cross_device: hierarchical_copy is for an even number of GPUs, found %d", n);
    return ty_error_help(err, "use nccl or reduction_to_one_device, or one GPU less");
}

static ty_nccl_group *nccl_new(ty_cross_device how, int n, ty_error *err)
{
    ty_nccl_group *group = calloc(1, sizeof *group);
    if (!group) {
        ty_error_set(err, TY_E_LIMIT, "no memory to connect GPUs");
        return NULL;
    }
    group->how = how;
    group->n = n;
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->closing, NULL);
    return group;
}

static int nccl_ready(ty_nccl_group *group, int rc, ty_nccl_group **out, ty_error *err)
{
    if (rc == 0) {
        group->has_looker = pthread_create(&group->looker, NULL, nccl_look_thread, group) == 0;
        rc = group->has_looker ? 0 : ty_error_set(err, TY_E_LIMIT, "no thread to look after NCCL");
    }
    if (rc < 0)
        ty_nccl_close(group);
    else
        *out = group;
    return rc;
}

int ty_nccl_open(const int *devices, int n, ty_cross_device how, ty_nccl_group **out, ty_error *err)
{
    const ty_cu *driver;
    if (ty_nccl_check(n, how, err) < 0 || ty_cu_get(&driver, err) < 0)
        return -1;
    ty_nccl_group *group = nccl_new(how, n, err);
    if (!group)
        return -1;
    group->n_own = n;
    group->inside = n / NCCL_HALVES;
    int rc = ty_nccl_get(&group->lib, err);
    if (rc == 0)
        rc = nccl_connect(group, group->all, n, devices, err);
    if (rc == 0 && how == TY_CROSS_HIERARCHICAL)
        rc = nccl_connect_halves(group, devices, err);
    return nccl_ready(group, rc, out, err);
}

/* What all replicas find each other by, made by the first. */
static int nccl_meet(const ty_nccl_group *group, const ty_nccl_others *o, ncclUniqueId *id, ty_error *err)
{
    int rc = 0;
    if (o->replica == 0)
        rc = nccl_status(group, group->lib->ncclGetUniqueId(id), "preparing to connect GPUs", NULL, err);
    return o->meet(o->ctx, rc == 0, id, sizeof *id, err) < 0 ? -1 : rc;
}

static int nccl_connect_others(ty_nccl_group *group, const ty_nccl_others *o, ty_error *err)
{
    ncclUniqueId id = {0};
    if (nccl_meet(group, o, &id, err) < 0)
        return -1;
    unsigned status = group->lib->ncclCommInitRank(&group->all[0], o->n, id, o->replica);
    if (nccl_status(group, status, "connecting GPUs", NULL, err) < 0 || group->how != TY_CROSS_HIERARCHICAL)
        return status ? -1 : 0;
    ncclComm_t all = group->all[0];
    int number = o->replica / o->inside, place = o->replica % o->inside;
    status = group->lib->ncclCommSplit(all, number, place, &group->within[0], NULL);
    if (nccl_status(group, status, "connecting the GPUs of a host", all, err) < 0)
        return -1;
    status = group->lib->ncclCommSplit(all, place, number, &group->across[0], NULL);
    return nccl_status(group, status, "connecting GPUs of several hosts", all, err);
}

int ty_nccl_join(const ty_nccl_others *o, ty_cross_device how, ty_nccl_group **out, ty_error *err)
{
    const ty_nccl *lib;
    ty_nccl_group *group = NULL;
    if (ty_nccl_get(&lib, err) == 0)
        group = nccl_new(how, o->n, err);
    if (!group) {
        o->meet(o->ctx, false, NULL, 0, err);
        return -1;
    }
    group->lib = lib;
    group->first = o->replica;
    group->n_own = 1;
    group->inside = o->inside;
    return nccl_ready(group, nccl_connect_others(group, o, err), out, err);
}

/* ---- the end ---- */

static int nccl_destroy(ty_nccl_group *group, ncclComm_t comm)
{
    group->lib->ncclCommDestroy(comm);
    return 0;
}

void ty_nccl_abort(ty_nccl_group *group)
{
    pthread_mutex_lock(&group->lock);
    nccl_abort_all(group);
    pthread_mutex_unlock(&group->lock);
}

static void nccl_end_looker(ty_nccl_group *group)
{
    if (!group->has_looker)
        return;
    pthread_mutex_lock(&group->lock);
    group->closes = true;
    pthread_cond_signal(&group->closing);
    pthread_mutex_unlock(&group->lock);
    pthread_join(group->looker, NULL);
}

void ty_nccl_close(ty_nccl_group *group)
{
    if (!group)
        return;
    nccl_end_looker(group);
    if (group->lib && !group->aborted)
        nccl_each(group, nccl_destroy);
    for (int i = 0; i < group->n_endings; i++)
        pthread_join(group->ending[i].thread, NULL);
    pthread_cond_destroy(&group->closing);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

/* ---- exchanges ---- */

/* What a replica gives to a stream, in NCCL's words. */
typedef struct nccl_call {
    ty_nccl_group *group;
    int replica, own, number; /* own: number of the replica in this process */
    const char *from;
    char *to;
    size_t n, element_bytes;
    unsigned type;
    CUstream stream;
} nccl_call;

static int nccl_all_reduce(const nccl_call *c, ncclComm_t comm, size_t at, size_t n, const char *from, ty_error *err)
{
    unsigned status = c->group->lib->ncclAllReduce(from + at * c->element_bytes, c->to + at * c->element_bytes, n,
                                                   c->type, TY_NCCL_SUM, comm, c->stream);
    return nccl_status(c->group, status, "ncclAllReduce", comm, err);
}

static int nccl_sum(const nccl_call *c, ty_error *err)
{
    return nccl_all_reduce(c, c->group->all[c->own], 0, c->n, c->from, err);
}

/* Equal parts, one for each GPU of a group; what is left over is added up by all. */
static int nccl_sum_in_groups(const nccl_call *c, ty_error *err)
{
    const ty_nccl_group *group = c->group;
    size_t inside = (size_t)group->inside, part = c->n / inside, own = (size_t)c->replica % inside * part;
    ncclComm_t within = group->within[c->own];
    char *at = c->to + own * c->element_bytes;
    if (part > 0) {
        unsigned status = group->lib->ncclReduceScatter(c->from, at, part, c->type, TY_NCCL_SUM, within, c->stream);
        if (nccl_status(group, status, "ncclReduceScatter", within, err) < 0 ||
            nccl_all_reduce(c, group->across[c->own], own, part, c->to, err) < 0)
            return -1;
        status = group->lib->ncclAllGather(at, c->to, part, c->type, within, c->stream);
        if (nccl_status(group, status, "ncclAllGather", within, err) < 0)
            return -1;
    }
    size_t done = part * inside;
    return done == c->n ? 0 : nccl_all_reduce(c, group->all[c->own], done, c->n - done, c->from, err);
}

static int nccl_sum_on_one(const nccl_call *c, ty_error *err)
{
    int root = c->number % c->group->n;
    ncclComm_t comm = c->group->all[c->own];
    unsigned status = c->group->lib->ncclReduce(c->from, c->to, c->n, c->type, TY_NCCL_SUM, root, comm, c->stream);
    if (nccl_status(c->group, status, "ncclReduce", comm, err) < 0)
        return -1;
    status = c->group->lib->ncclBroadcast(c->to, c->to, c->n, c->type, root, comm, c->stream);
    return nccl_status(c->group, status, "ncclBroadcast", comm, err);
}

static int nccl_part(const nccl_call *c, ty_error *err)
{
    ncclComm_t comm = c->group->all[c->own];
    unsigned status = c->group->lib->ncclReduceScatter(c->from, c->to, c->n / (size_t)c->group->n, c->type, TY_NCCL_SUM,
                                                       comm, c->stream);
    return nccl_status(c->group, status, "ncclReduceScatter", comm, err);
}

/* NCCL's number of a type that can be added up, or -1. */
static int nccl_type(ty_dtype dtype)
{
    static const struct {
        ty_dtype dtype;
        int type;
    } types[] = {{TY_F32, TY_NCCL_FLOAT32},   {TY_F64, TY_NCCL_FLOAT64}, {TY_F16, TY_NCCL_FLOAT16},
                 {TY_BF16, TY_NCCL_BFLOAT16}, {TY_I8, TY_NCCL_INT8},     {TY_U8, TY_NCCL_UINT8},
                 {TY_I32, TY_NCCL_INT32},     {TY_U32, TY_NCCL_UINT32},  {TY_I64, TY_NCCL_INT64},
                 {TY_U64, TY_NCCL_UINT64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype)
            return types[i].type;
    return -1;
}

int ty_nccl_exchange(ty_nccl_group *group, int replica, const ty_nccl_exchanged *what, CUstream stream, ty_error *err)
{
    static int (*const sums[TY_N_CROSS])(const nccl_call *, ty_error *) = {[TY_CROSS_NCCL] = nccl_sum,
                                                                           [TY_CROSS_HIERARCHICAL] = nccl_sum_in_groups,
                                                                           [TY_CROSS_ONE_DEVICE] = nccl_sum_on_one};
    int type = nccl_type(what->dtype);
    if (what->n == 0)
        return 0;
    if (what->kind == TY_EXCHANGE_GATHER)
        return ty_nccl_gather(group, replica, what->from, what->to, (size_t)what->n * ty_dtype_bytes(what->dtype),
                              stream, err);
    if (type < 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "NCCL does not add up %s", ty_dtype_text(what->dtype));
    const nccl_call call = {.group = group,
                            .replica = replica,
                            .own = replica - group->first,
                            .number = what->number,
                            .from = (const char *)(uintptr_t)what->from,
                            .to = (char *)(uintptr_t)what->to,
                            .n = (size_t)what->n,
                            .element_bytes = ty_dtype_bytes(what->dtype),
                            .type = (unsigned)type,
                            .stream = stream};
    return what->kind == TY_EXCHANGE_PART ? nccl_part(&call, err) : sums[group->how](&call, err);
}

/* What is only moved goes as bytes: NCCL has fewer types than we have. */
int ty_nccl_gather(ty_nccl_group *group, int replica, CUdeviceptr from, CUdeviceptr to, size_t bytes, CUstream stream,
                   ty_error *err)
{
    ncclComm_t comm = group->all[replica - group->first];
    unsigned status = group->lib->ncclAllGather((const void *)(uintptr_t)from, (void *)(uintptr_t)to, bytes,
                                                TY_NCCL_INT8, comm, stream);
    return nccl_status(group, status, "ncclAllGather", comm, err);
}

/* Who sends to each and gets from each asks for all of it at once: one by one, each would wait for the other. */
static unsigned nccl_send_parts(const ty_nccl_group *group, ncclComm_t comm, const char *from, char *to, size_t part,
                                CUstream stream)
{
    const ty_nccl *lib = group->lib;
    unsigned status = lib->ncclGroupStart();
    for (int i = 0; i < group->n && status == TY_NCCL_SUCCESS; i++) {
        status = lib->ncclSend(from + (size_t)i * part, part, TY_NCCL_INT8, i, comm, stream);
        if (status == TY_NCCL_SUCCESS)
            status = lib->ncclRecv(to + (size_t)i * part, part, TY_NCCL_INT8, i, comm, stream);
    }
    unsigned ended = lib->ncclGroupEnd();
    return status ? status : ended;
}

int ty_nccl_deal(ty_nccl_group *group, int replica, CUdeviceptr from, CUdeviceptr to, size_t part_bytes,
                 CUstream stream, ty_error *err)
{
    ncclComm_t comm = group->all[replica - group->first];
    unsigned status =
        nccl_send_parts(group, comm, (const char *)(uintptr_t)from, (char *)(uintptr_t)to, part_bytes, stream);
    return nccl_status(group, status, "ncclSend and ncclRecv", comm, err);
}

/* ---- calls of a team ---- */

static const unsigned nccl_reduces[TY_N_TEAM_REDUCES] = {[TY_TEAM_SUM] = TY_NCCL_SUM,
                                                         [TY_TEAM_PRODUCT] = TY_NCCL_PROD,
                                                         [TY_TEAM_MAX] = TY_NCCL_MAX,
                                                         [TY_TEAM_MIN] = TY_NCCL_MIN,
                                                         [TY_TEAM_AVERAGE] = TY_NCCL_AVG};

bool ty_nccl_reduces(ty_dtype dtype)
{
    return nccl_type(dtype) >= 0;
}

void ty_nccl_version(char *out)
{
    const ty_nccl *lib;
    int version = 0;
    out[0] = 0;
    if (ty_nccl_get(&lib, NULL) == 0 && lib->ncclGetVersion(&version) == TY_NCCL_SUCCESS)
        ty_library_version((size_t)version, out);
}

static unsigned nccl_ask(const ty_nccl_group *group, const ty_team_call *c, CUstream stream)
{
    const ty_nccl *lib = group->lib;
    ncclComm_t comm = group->all[0];
    size_t n = (size_t)c->n, bytes = n * ty_dtype_bytes(c->dtype), members = (size_t)group->n;
    unsigned type = (unsigned)nccl_type(c->dtype), how = nccl_reduces[c->reduce];
    switch (c->kind) {
    case TY_TEAM_ALL_REDUCE:
        return lib->ncclAllReduce(c->from, c->to, n, type, how, comm, stream);
    case TY_TEAM_REDUCE_SCATTER:
        return lib->ncclReduceScatter(c->from, c->to, n / members, type, how, comm, stream);
    case TY_TEAM_ALL_GATHER:
        return lib->ncclAllGather(c->from, c->to, bytes, TY_NCCL_INT8, comm, stream);
    case TY_TEAM_BROADCAST:
        return lib->ncclBroadcast(c->from, c->to, bytes, TY_NCCL_INT8, 0, comm, stream);
    default:
        return nccl_send_parts(group, comm, c->from, c->to, bytes / members, stream);
    }
}

int ty_nccl_call(ty_nccl_group *group, const ty_team_call *what, CUstream stream, ty_error *err)
{
    bool reduces = what->kind == TY_TEAM_ALL_REDUCE || what->kind == TY_TEAM_REDUCE_SCATTER;
    if (reduces && nccl_type(what->dtype) < 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "NCCL does not add up %s", ty_dtype_text(what->dtype));
    if (what->n == 0)
        return 0;
    return nccl_status(group, nccl_ask(group, what, stream), "exchanging with other GPUs", group->all[0], err);
}
