/* nccl.c - see nccl.h. */
#include "compiler/target/cuda/nccl.h"

#include "compiler/machine.h"
#include "compiler/target/cuda/libraries.h"

#include <pthread.h>
#include <stdlib.h>

enum { NCCL_GROUPS = 2 }; /* of hierarchical copies */

/* A communicator that is ended, on a thread of its own. */
typedef struct nccl_ending {
    const ty_nccl *lib;
    ncclComm_t comm;
    pthread_t thread;
} nccl_ending;

struct ty_nccl_group {
    const ty_nccl *lib;
    ty_cross_device how;
    int n;
    bool aborted;
    nccl_ending ending[3 * TY_MAX_GPUS]; /* aborted ones */
    int n_endings;
    /* By replica: with all others; with those of its half; with its counterpart in the other half. */
    ncclComm_t all[TY_MAX_GPUS], inside[TY_MAX_GPUS], across[TY_MAX_GPUS];
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
    if (status == 0)
        return 0;
    const char *text = group->lib->ncclGetErrorString(status), *more = group->lib->ncclGetLastError(comm);
    ty_error_set(err, TY_E_LIBRARY, "%s: error %u of NCCL (%s)", what, status, text ? text : "no text for it");
    return ty_error_help(err, "NCCL says: %s; NCCL_DEBUG=WARN in the environment makes it say more",
                         more && *more ? more : "nothing");
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
    int half = group->n / NCCL_GROUPS;
    for (int k = 0; k < NCCL_GROUPS; k++)
        if (nccl_connect(group, &group->inside[k * half], half, &devices[k * half], err) < 0)
            return -1;
    for (int i = 0; i < half; i++) {
        ncclComm_t pair[NCCL_GROUPS];
        const int both[NCCL_GROUPS] = {devices[i], devices[i + half]};
        if (nccl_connect(group, pair, NCCL_GROUPS, both, err) < 0)
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
    if (how != TY_CROSS_HIERARCHICAL || n % NCCL_GROUPS == 0)
        return ty_nccl_get(&lib, err) < 0 ? ty_error_wrap(err, "%d GPUs exchange gradients by NCCL", n) : 0;
    ty_error_set(err, TY_E_CONFIG, "cross_device: hierarchical_copy is for an even number of GPUs, found %d", n);
    return ty_error_help(err, "use nccl or reduction_to_one_device, or one GPU less");
}

int ty_nccl_open(const int *devices, int n, ty_cross_device how, ty_nccl_group **out, ty_error *err)
{
    const ty_cu *driver;
    if (ty_nccl_check(n, how, err) < 0 || ty_cu_get(&driver, err) < 0)
        return -1;
    ty_nccl_group *group = calloc(1, sizeof *group);
    if (!group)
        return ty_error_set(err, TY_E_LIMIT, "no memory to connect GPUs");
    group->how = how;
    group->n = n;
    int rc = ty_nccl_get(&group->lib, err);
    if (rc == 0)
        rc = nccl_connect(group, group->all, n, devices, err);
    if (rc == 0 && how == TY_CROSS_HIERARCHICAL)
        rc = nccl_connect_halves(group, devices, err);
    if (rc < 0) {
        ty_nccl_close(group);
        return -1;
    }
    *out = group;
    return 0;
}

/* ---- the end ---- */

/* Each communicator once. */
static void nccl_each(ty_nccl_group *group, void (*end)(ty_nccl_group *group, ncclComm_t comm))
{
    ncclComm_t *const lists[] = {group->all, group->inside, group->across};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (int i = 0; i < group->n; i++)
            if (lists[k][i])
                end(group, lists[k][i]);
}

static void nccl_destroy(ty_nccl_group *group, ncclComm_t comm)
{
    group->lib->ncclCommDestroy(comm);
}

static void *nccl_abort_thread(void *given)
{
    const nccl_ending *ending = given;
    ending->lib->ncclCommAbort(ending->comm);
    return NULL;
}

/* The call lets kernels go at once and returns when no captured graph knows the communicator any more: if one thread
 * aborted them all, the second one would wait for the first one's graphs, and those for the second. */
static void nccl_abort(ty_nccl_group *group, ncclComm_t comm)
{
    nccl_ending *ending = &group->ending[group->n_endings];
    *ending = (nccl_ending){.lib = group->lib, .comm = comm};
    group->n_endings += pthread_create(&ending->thread, NULL, nccl_abort_thread, ending) == 0;
}

void ty_nccl_abort(ty_nccl_group *group)
{
    if (!group->aborted)
        nccl_each(group, nccl_abort);
    group->aborted = true;
}

void ty_nccl_close(ty_nccl_group *group)
{
    if (group && group->lib && !group->aborted)
        nccl_each(group, nccl_destroy);
    for (int i = 0; group && i < group->n_endings; i++)
        pthread_join(group->ending[i].thread, NULL);
    free(group);
}

/* ---- exchanges ---- */

/* What a replica gives to a stream, in NCCL's words. */
typedef struct nccl_call {
    ty_nccl_group *group;
    int replica, number;
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
    return nccl_all_reduce(c, c->group->all[c->replica], 0, c->n, c->from, err);
}

/* Equal parts, one for each GPU of a half; what is left over is added up by all. */
static int nccl_sum_in_halves(const nccl_call *c, ty_error *err)
{
    const ty_nccl_group *group = c->group;
    size_t half = (size_t)group->n / NCCL_GROUPS, part = c->n / half, own = (size_t)c->replica % half * part;
    ncclComm_t inside = group->inside[c->replica];
    char *at = c->to + own * c->element_bytes;
    if (part > 0) {
        unsigned status = group->lib->ncclReduceScatter(c->from, at, part, c->type, TY_NCCL_SUM, inside, c->stream);
        if (nccl_status(group, status, "ncclReduceScatter", inside, err) < 0 ||
            nccl_all_reduce(c, group->across[c->replica], own, part, c->to, err) < 0)
            return -1;
        status = group->lib->ncclAllGather(at, c->to, part, c->type, inside, c->stream);
        if (nccl_status(group, status, "ncclAllGather", inside, err) < 0)
            return -1;
    }
    return part * half == c->n
               ? 0
               : nccl_all_reduce(c, group->all[c->replica], part * half, c->n - part * half, c->from, err);
}

static int nccl_sum_on_one(const nccl_call *c, ty_error *err)
{
    int root = c->number % c->group->n;
    ncclComm_t comm = c->group->all[c->replica];
    unsigned status = c->group->lib->ncclReduce(c->from, c->to, c->n, c->type, TY_NCCL_SUM, root, comm, c->stream);
    if (nccl_status(c->group, status, "ncclReduce", comm, err) < 0)
        return -1;
    status = c->group->lib->ncclBroadcast(c->to, c->to, c->n, c->type, root, comm, c->stream);
    return nccl_status(c->group, status, "ncclBroadcast", comm, err);
}

static int nccl_gather(const nccl_call *c, ty_error *err)
{
    ncclComm_t comm = c->group->all[c->replica];
    unsigned status =
        c->group->lib->ncclAllGather(c->from, c->to, c->n * c->element_bytes, TY_NCCL_INT8, comm, c->stream);
    return nccl_status(c->group, status, "ncclAllGather", comm, err);
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
                                                                           [TY_CROSS_HIERARCHICAL] = nccl_sum_in_halves,
                                                                           [TY_CROSS_ONE_DEVICE] = nccl_sum_on_one};
    int type = nccl_type(what->dtype);
    if (type < 0 && !what->gather)
        return ty_error_set(err, TY_E_UNSUPPORTED, "NCCL does not add up %s", ty_dtype_text(what->dtype));
    const nccl_call call = {.group = group,
                            .replica = replica,
                            .number = what->number,
                            .from = (const char *)(uintptr_t)what->from,
                            .to = (char *)(uintptr_t)what->to,
                            .n = (size_t)what->n,
                            .element_bytes = ty_dtype_bytes(what->dtype),
                            .type = (unsigned)type,
                            .stream = stream};
    if (what->n == 0)
        return 0;
    return what->gather ? nccl_gather(&call, err) : sums[group->how](&call, err);
}
