/* pmix.c - the PMIx server of a host, for direct launch of Open MPI's processes.
 *
 * What a process of Open MPI 4.1 asks is little: the map of the job, then one fence in MPI_Init that collects
 * everybody's addresses, and one in MPI_Finalize. The library serves the processes of this host and collects their
 * contributions; the fence itself, across hosts, is ours: the blob goes out through a hook and the answer comes back as
 * the blobs of all hosts, one after the other. Everything else of PMIx (publishing, spawning, connecting) is left out,
 * and the library answers "not supported" for it.
 */
#define _GNU_SOURCE
#include "dist/agent/pmix.h"
#include "dist/plugin.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ty_pmix_job {
    pmix_nspace_t name;
    ty_pmix_hooks hooks;
    int first_rank, n_ranks, n_total; /* of this host; of the job */
    pmix_modex_cbfunc_t fence_answer; /* of the open fence; NULL: none is open */
    void *fence_data;
    struct ty_pmix_job *next;
};

/* The library calls back with a namespace, not with a pointer of ours: open jobs are found by name. The lock is held
 * while a hook runs, so that job_close() waits for it. */
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static ty_pmix_job *jobs;
static bool is_open;

static int fail(ty_error *err, const char *what, pmix_status_t status)
{
    return ty_error_set(err, TY_E_LIBRARY, "%s: %s (PMIx status %d)", what, PMIx_Error_string(status), status);
}

static bool succeeded(pmix_status_t status)
{
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

/* With the lock. */
static ty_pmix_job *find_job(const char *name)
{
    ty_pmix_job *job = jobs;
    while (job && strcmp(job->name, name) != 0)
        job = job->next;
    return job;
}

/* ---- what the library asks ---- */

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *data)
{
    (void)proc, (void)object, (void)done, (void)data;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char message[],
                              pmix_proc_t procs[], size_t n_procs, pmix_op_cbfunc_t done, void *data)
{
    (void)object, (void)procs, (void)n_procs; /* whoever aborts ends the job: ranks cannot go on without each other */
    if (!message || strcmp(message, "N/A") == 0) /* what MPI_Abort has to say: the rest is on standard error */
        message = "";
    pthread_mutex_lock(&jobs_lock);
    ty_pmix_job *job = find_job(proc->nspace);
    if (job)
        job->hooks.aborted(job->hooks.ctx, (int)proc->rank, status, message);
    pthread_mutex_unlock(&jobs_lock);
    if (done)
        done(PMIX_SUCCESS, data); /* the process waits for this, and then ends by itself */
    return PMIX_SUCCESS;
}

/* Whether the processes named are the whole job. */
static bool is_everybody(const ty_pmix_job *job, const pmix_proc_t procs[], size_t n)
{
    return (n == 1 && procs[0].rank == PMIX_RANK_WILDCARD) || n == (size_t)job->n_total;
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[], size_t n_info,
                              char *blob, size_t n_bytes, pmix_modex_cbfunc_t answer, void *data)
{
    (void)info, (void)n_info;
    pmix_status_t status = PMIX_SUCCESS;
    pthread_mutex_lock(&jobs_lock);
    ty_pmix_job *job = n_procs ? find_job(procs[0].nspace) : NULL;
    if (!job || !is_everybody(job, procs, n_procs) || job->fence_answer)
        status = PMIX_ERR_NOT_SUPPORTED;
    if (status == PMIX_SUCCESS) {
        job->fence_answer = answer;
        job->fence_data = data;
        job->hooks.fence(job->hooks.ctx, blob, n_bytes);
    }
    pthread_mutex_unlock(&jobs_lock);
    return status;
}

static pmix_server_module_t module = {
    .client_connected = on_connected,
    .client_finalized = on_connected, /* nothing to do either: how a process ends, the agent sees itself */
    .abort = on_abort,
    .fence_nb = on_fence,
};

/* ---- the server ---- */

static const char *library(void)
{
    return PMIx_Get_version();
}

static int open_server(const char *folder, const char *host, ty_error *err)
{
    if (is_open)
        return 0;
    pmix_info_t info[4];
    bool no = false;
    for (int i = 0; i < 4; i++)
        PMIX_INFO_CONSTRUCT(&info[i]);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, host, PMIX_STRING);
    PMIX_INFO_LOAD(&info[3], PMIX_SERVER_TOOL_SUPPORT, &no, PMIX_BOOL);
    pmix_status_t status = PMIx_server_init(&module, info, 4);
    for (int i = 0; i < 4; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (!succeeded(status))
        return fail(err, "PMIx_server_init", status);
    is_open = true;
    return 0;
}

static void close_server(void)
{
    if (is_open)
        PMIx_server_finalize();
    is_open = false;
}

/* ---- a job ---- */

/* Text that grows; what does not fit in memory leaves it NULL, which is seen at the end. */
static void append(char **text, const char *separator, const char *word)
{
    char *longer = NULL;
    if (*text && asprintf(&longer, "%s%s%s", *text, **text ? separator : "", word) < 0)
        longer = NULL;
    free(*text);
    *text = longer;
}

/* "algo-1,algo-2" and "0,1;2,3": which hosts, and which ranks on each. peers: those of this host. */
static void describe(const ty_pmix_map *map, char **nodes, char **procs, char **peers)
{
    *nodes = strdup(""), *procs = strdup(""), *peers = strdup("");
    for (int host = 0, rank = 0; host < map->n_hosts; host++) {
        char *of_host = strdup("");
        for (int i = 0; i < map->ranks[host]; i++, rank++) {
            char number[16];
            snprintf(number, sizeof number, "%d", rank);
            append(&of_host, ",", number);
        }
        append(nodes, ",", map->hosts[host]);
        append(procs, ";", of_host ? of_host : "");
        if (host == map->self)
            append(peers, ",", of_host ? of_host : "");
        free(of_host);
    }
}

static void load_u32(pmix_info_t *info, const char *key, int value)
{
    uint32_t v = (uint32_t)value;
    PMIX_INFO_LOAD(info, key, &v, PMIX_UINT32);
}

/* What is to be known of one rank. */
static void load_rank(pmix_info_t *info, const ty_pmix_map *map, int rank, int host, int local)
{
    pmix_data_array_t *array;
    PMIX_DATA_ARRAY_CREATE(array, 6, PMIX_INFO);
    pmix_info_t *row = array->array;
    pmix_rank_t r = (pmix_rank_t)rank;
    uint16_t l = (uint16_t)local;
    PMIX_INFO_LOAD(&row[0], PMIX_RANK, &r, PMIX_PROC_RANK);
    load_u32(&row[1], PMIX_APPNUM, 0);
    PMIX_INFO_LOAD(&row[2], PMIX_LOCAL_RANK, &l, PMIX_UINT16);
    PMIX_INFO_LOAD(&row[3], PMIX_NODE_RANK, &l, PMIX_UINT16);
    load_u32(&row[4], PMIX_NODEID, host);
    PMIX_INFO_LOAD(&row[5], PMIX_HOSTNAME, map->hosts[host], PMIX_STRING);
    PMIX_LOAD_KEY(info->key, PMIX_PROC_DATA);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = array;
}

enum { N_JOB_FACTS = 13 };

static pmix_status_t load_job(pmix_info_t *info, const ty_pmix_map *map, const ty_pmix_job *job)
{
    char *nodes, *procs, *peers, *node_map = NULL, *proc_map = NULL;
    describe(map, &nodes, &procs, &peers);
    bool complete = nodes && procs && peers;
    pmix_status_t status = complete ? PMIx_generate_regex(nodes, &node_map) : PMIX_ERR_NOMEM;
    if (succeeded(status))
        status = PMIx_generate_ppn(procs, &proc_map);
    if (succeeded(status)) {
        pmix_rank_t leader = (pmix_rank_t)job->first_rank;
        load_u32(&info[0], PMIX_UNIV_SIZE, job->n_total);
        load_u32(&info[1], PMIX_JOB_SIZE, job->n_total);
        load_u32(&info[2], PMIX_MAX_PROCS, job->n_total);
        load_u32(&info[3], PMIX_LOCAL_SIZE, job->n_ranks);
        load_u32(&info[4], PMIX_NODE_SIZE, job->n_ranks);
        load_u32(&info[5], PMIX_NUM_NODES, map->n_hosts);
        load_u32(&info[6], PMIX_JOB_NUM_APPS, 1);
        PMIX_INFO_LOAD(&info[7], PMIX_NODE_MAP, node_map, PMIX_REGEX);
        PMIX_INFO_LOAD(&info[8], PMIX_PROC_MAP, proc_map, PMIX_REGEX);
        PMIX_INFO_LOAD(&info[9], PMIX_LOCAL_PEERS, peers, PMIX_STRING);
        PMIX_INFO_LOAD(&info[10], PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
        PMIX_INFO_LOAD(&info[11], PMIX_JOBID, map->name, PMIX_STRING);
        PMIX_INFO_LOAD(&info[12], PMIX_NSDIR, map->folder, PMIX_STRING);
    }
    free(nodes), free(procs), free(peers), free(node_map), free(proc_map);
    return status;
}

static pmix_status_t register_job(const ty_pmix_map *map, const ty_pmix_job *job)
{
    size_t n = N_JOB_FACTS + (size_t)job->n_total;
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, n);
    if (!info)
        return PMIX_ERR_NOMEM;
    pmix_status_t status = load_job(info, map, job);
    for (int host = 0, rank = 0; host < map->n_hosts; host++)
        for (int i = 0; i < map->ranks[host]; i++, rank++)
            load_rank(&info[N_JOB_FACTS + rank], map, rank, host, i);
    if (succeeded(status))
        status = PMIx_server_register_nspace(job->name, job->n_ranks, info, n, NULL, NULL);
    PMIX_INFO_FREE(info, n);
    for (int i = 0; i < job->n_ranks && succeeded(status); i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, job->name, (pmix_rank_t)(job->first_rank + i));
        status = PMIx_server_register_client(&proc, getuid(), getgid(), NULL, NULL, NULL);
    }
    return status;
}

static void job_close(ty_pmix_job *job)
{
    if (!job)
        return;
    pthread_mutex_lock(&jobs_lock);
    for (ty_pmix_job **at = &jobs; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            break;
        }
    pthread_mutex_unlock(&jobs_lock);
    if (job->fence_answer) /* its processes are gone; the library frees what it kept for it */
        job->fence_answer(PMIX_ERR_LOST_CONNECTION, NULL, 0, job->fence_data, NULL, NULL);
    PMIx_server_deregister_nspace(job->name, NULL, NULL);
    free(job);
}

static int job_open(const ty_pmix_map *map, const ty_pmix_hooks *hooks, ty_pmix_job **out, ty_error *err)
{
    *out = NULL;
    ty_pmix_job *job = calloc(1, sizeof *job);
    if (!job)
        return fail(err, "PMIx job", PMIX_ERR_NOMEM);
    PMIX_LOAD_NSPACE(job->name, map->name);
    job->hooks = *hooks;
    for (int host = 0; host < map->n_hosts; host++) {
        job->first_rank += host < map->self ? map->ranks[host] : 0;
        job->n_total += map->ranks[host];
    }
    job->n_ranks = map->ranks[map->self];
    pthread_mutex_lock(&jobs_lock);
    job->next = jobs;
    jobs = job;
    pthread_mutex_unlock(&jobs_lock);
    pmix_status_t status = register_job(map, job);
    if (!succeeded(status)) {
        job_close(job);
        return fail(err, "registering the job with PMIx", status);
    }
    *out = job;
    return 0;
}

static int environment(ty_pmix_job *job, int rank, char ***variables, ty_error *err)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->name, (pmix_rank_t)rank);
    *variables = NULL;
    pmix_status_t status = PMIx_server_setup_fork(&proc, variables);
    return succeeded(status) ? 0 : fail(err, "PMIx_server_setup_fork", status);
}

static void free_environment(char **variables)
{
    for (char **v = variables; v && *v; v++)
        free(*v);
    free(variables);
}

/* The library reads the answer later, in its own thread, and then calls this. */
static void release_answer(void *copy)
{
    free(copy);
}

static void fence_done(ty_pmix_job *job, const void *all, size_t n_bytes)
{
    pthread_mutex_lock(&jobs_lock);
    pmix_modex_cbfunc_t answer = job->fence_answer;
    void *data = job->fence_data;
    job->fence_answer = NULL;
    pthread_mutex_unlock(&jobs_lock);
    if (!answer)
        return;
    char *copy = n_bytes > 0 ? malloc(n_bytes) : NULL;
    if (copy)
        memcpy(copy, all, n_bytes);
    answer(copy || n_bytes == 0 ? PMIX_SUCCESS : PMIX_ERR_NOMEM, copy, copy ? n_bytes : 0, data, release_answer, copy);
}

static const ty_pmix table = {
    .open = open_server,
    .close = close_server,
    .job_open = job_open,
    .environment = environment,
    .free_environment = free_environment,
    .fence_done = fence_done,
    .job_close = job_close,
};

TY_PLUGIN = {"pmix", TY_PMIX_VERSION, NULL, library, &table};
