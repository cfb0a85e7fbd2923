/* ranks_environment.c - the table. Names of OMPI_MCA_* variables are parameters of Open MPI 4.1 (ompi_info --all). */
#include "dist/agent/ranks_environment.h"

#include <string.h>

int ty_ranks_first(const ty_ranks_host *hosts, int host)
{
    int first = 0;
    for (int i = 0; i < host; i++)
        first += hosts[i].ranks;
    return first;
}

/* All that a row may be made of. */
typedef struct rank_facts {
    const ty_ranks_options *o;
    const ty_ranks_place *place;
    int rank, local, size, local_size;
} rank_facts;

/* Each returns the value, or NULL: the variable is not set. */
typedef const char *(*rank_value)(ty_arena *a, const rank_facts *f);

static const char *number(ty_arena *a, int value)
{
    return ty_arena_printf(a, "%d", value);
}

static const char *rank(ty_arena *a, const rank_facts *f)
{
    return number(a, f->rank);
}

static const char *size(ty_arena *a, const rank_facts *f)
{
    return number(a, f->size);
}

static const char *local_rank(ty_arena *a, const rank_facts *f)
{
    return number(a, f->local);
}

static const char *local_size(ty_arena *a, const rank_facts *f)
{
    return number(a, f->local_size);
}

static const char *master_address(ty_arena *a, const rank_facts *f)
{
    (void)a;
    const ty_ranks_host *host = &f->o->hosts[0];
    return host->address ? host->address : host->name;
}

static const char *master_port(ty_arena *a, const rank_facts *f)
{
    return number(a, f->o->master_port ? f->o->master_port : 29500);
}

/* "10.0.1.7,10.0.1.8": of all hosts, in their order, for jobs whose ranks call each other by address. */
static const char *addresses(ty_arena *a, const rank_facts *f)
{
    const char *text = "";
    bool has_servers = false;
    for (int i = 0; i < f->o->n_hosts; i++) {
        const ty_ranks_host *host = &f->o->hosts[i];
        text = ty_arena_printf(a, "%s%s%s", text, i ? "," : "", host->address ? host->address : "127.0.0.1");
        has_servers |= host->servers > 0;
    }
    return has_servers ? text : NULL;
}

static const char *tf_config(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->o->tf_config;
}

static const char *page(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->o->page ? f->o->page[f->local] : NULL;
}

static const char *threads(ty_arena *a, const rank_facts *f)
{
    int computing = f->local_size - f->o->hosts[f->o->self].servers;
    int each = f->place->cores / (computing > 0 ? computing : 1);
    return number(a, each > 1 ? each : 1);
}

static const char *engine(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->o->without_mpi ? NULL : "mpi";
}

/* Without it Open MPI 4.1 takes a process that has PMIx but no launcher it knows for a job of size 1. Any value makes
 * it go the way of processes that were launched directly (its "schizo" framework, component "jsm"). */
static const char *direct_launch(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->o->without_mpi ? NULL : "1";
}

static const char *interface(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->o->interface;
}

/* NCCL takes a name for a prefix, unless "=" stands in front of it. */
static const char *exact_interface(ty_arena *a, const rank_facts *f)
{
    return f->o->interface ? ty_arena_printf(a, "=%s", f->o->interface) : NULL;
}

static const char *point_to_point(ty_arena *a, const rank_facts *f)
{
    (void)a, (void)f;
    return "ob1";
}

static const char *transports(ty_arena *a, const rank_facts *f)
{
    (void)a, (void)f;
    return "self,vader,tcp";
}

/* A rank that waits for another spins. Where there are more ranks than cores, it must let the other run. */
static const char *yield(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->local_size > f->place->cores ? "1" : NULL;
}

/* Open MPI names its shared memory after host name, user and job: two hosts that share /dev/shm, or what a killed job
 * left behind, would meet there. */
static const char *shared_folder(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->place->shared_folder;
}

static const char *session_folder(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->place->session_folder;
}

/* In containers that forbid it, each copy would fail with a message ("Read -1, expected N, errno = 1"). */
static const char *single_copy(ty_arena *a, const rank_facts *f)
{
    (void)a;
    return f->place->copies_allowed ? NULL : "none";
}

/* A rank is not pinned to a core: its threads would all run there. */
static const char *binding(ty_arena *a, const rank_facts *f)
{
    (void)a, (void)f;
    return "none";
}

/* Which host, counted from 0. */
static const char *host_number(ty_arena *a, const rank_facts *f)
{
    return number(a, f->o->self);
}

typedef struct rank_row {
    const char *name;
    rank_value value;
    enum { OF_MAP, PROPOSAL, MPI_PROPOSAL } kind; /* the third only for MPI programs */
} rank_row;

static const rank_row rank_rows[] = {
    {"RANK", rank, OF_MAP},
    {"WORLD_SIZE", size, OF_MAP},
    {"LOCAL_RANK", local_rank, OF_MAP},
    {"LOCAL_WORLD_SIZE", local_size, OF_MAP},
    {"GROUP_RANK", host_number, OF_MAP},
    {"MASTER_ADDR", master_address, OF_MAP},
    {"MASTER_PORT", master_port, OF_MAP},
    {"TF_CONFIG", tf_config, OF_MAP},
    {TY_RANK_ADDRESSES_VARIABLE, addresses, OF_MAP},
    {"OMPI_COMM_WORLD_RANK", rank, OF_MAP},
    {"OMPI_COMM_WORLD_SIZE", size, OF_MAP},
    {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank, OF_MAP},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size, OF_MAP},
    {"OMPI_COMM_WORLD_NODE_RANK", local_rank, OF_MAP}, /* rank among all jobs of the host: there is one job */
    {"TRAINYARD_PAGE", page, OF_MAP},
    {"TRAINYARD_ENGINE", engine, OF_MAP},
    {"JSM_JSRUN_PORT", direct_launch, OF_MAP},
    {"OMP_NUM_THREADS", threads, PROPOSAL},
    {"NCCL_SOCKET_IFNAME", exact_interface, PROPOSAL},
    {"UCX_NET_DEVICES", interface, PROPOSAL},
    {"GLOO_SOCKET_IFNAME", interface, PROPOSAL},
    {"OMPI_MCA_pml", point_to_point, MPI_PROPOSAL},
    {"OMPI_MCA_btl", transports, MPI_PROPOSAL},
    {"OMPI_MCA_btl_tcp_if_include", interface, MPI_PROPOSAL},
    {"OMPI_MCA_oob_tcp_if_include", interface, MPI_PROPOSAL},
    {"OMPI_MCA_mpi_yield_when_idle", yield, MPI_PROPOSAL},
    {"OMPI_MCA_hwloc_base_binding_policy", binding, MPI_PROPOSAL},
    {"OMPI_MCA_btl_vader_single_copy_mechanism", single_copy, MPI_PROPOSAL},
    {"OMPI_MCA_btl_vader_backing_directory", shared_folder, MPI_PROPOSAL},
    {"OMPI_MCA_osc_sm_backing_directory", shared_folder, MPI_PROPOSAL},
    {"OMPI_MCA_orte_tmpdir_base", session_folder, MPI_PROPOSAL},
};
enum { N_RANK_ROWS = sizeof rank_rows / sizeof *rank_rows };

/* What a rank must not inherit: marks of another launcher, under which we may have been started ourselves. */
static const char *const foreign_marks[] = {
    "PMIX_",
    "PMI_",
    "OMPI_COMM_WORLD_",
    "OMPI_UNIVERSE_SIZE=",
    "OMPI_MCA_ess",
    "OMPI_MCA_orte_ess_",
    "OMPI_MCA_orte_hnp_uri",
    "OMPI_MCA_orte_local_daemon_uri",
    "OMPI_MCA_pmix",
    "ORTE_",
    "PRTE_",
    "HYDRA_",
    "SLURM_",
    "GROUP_RANK=",
    "MASTER_ADDR=",
    "MASTER_PORT=",
    "JSM_",
    "TRAINYARD_PAGE=",
    "TRAINYARD_ENGINE=",
    TY_RANK_ADDRESSES_VARIABLE "=",
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_foreign(const char *variable)
{
    for (size_t i = 0; i < sizeof foreign_marks / sizeof *foreign_marks; i++)
        if (begins(variable, foreign_marks[i]))
            return true;
    return false;
}

/* Whether "NAME=..." sets the variable `name`. */
static bool sets(const char *variable, const char *name)
{
    size_t n = strlen(name);
    return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

typedef struct environment {
    char **list;
    size_t n;
} environment;

/* The value stands in front of us: it replaces an older one, if `replace`. */
static void put(environment *e, ty_arena *a, const char *name, const char *value, bool replace)
{
    for (size_t i = 0; i < e->n; i++)
        if (sets(e->list[i], name)) {
            if (replace)
                e->list[i] = ty_arena_printf(a, "%s=%s", name, value);
            return;
        }
    e->list[e->n++] = ty_arena_printf(a, "%s=%s", name, value);
}

static void put_variable(environment *e, ty_arena *a, const char *variable)
{
    const char *equals = strchr(variable, '=');
    if (equals)
        put(e, a, ty_arena_strndup(a, variable, (size_t)(equals - variable)), equals + 1, true);
}

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

char **ty_ranks_environment(ty_arena *a, const ty_ranks_options *o, const ty_ranks_place *place,
                            const char *const *inherited, char *const *more, int local)
{
    const rank_facts facts = {
        .o = o,
        .place = place,
        .rank = ty_ranks_first(o->hosts, o->self) + local,
        .local = local,
        .size = ty_ranks_first(o->hosts, o->n_hosts),
        .local_size = o->hosts[o->self].ranks,
    };
    size_t n_inherited = count(inherited), n_more = count((const char *const *)more);
    environment e = {.list = TY_NEW_ARRAY(a, char *, n_inherited + n_more + N_RANK_ROWS + 1)};
    for (size_t i = 0; i < n_inherited; i++)
        if (!is_foreign(inherited[i]))
            e.list[e.n++] = ty_arena_strdup(a, inherited[i]);
    for (int i = 0; i < N_RANK_ROWS; i++) {
        const rank_row *row = &rank_rows[i];
        const char *value = row->kind == MPI_PROPOSAL && o->without_mpi ? NULL : row->value(a, &facts);
        if (value)
            put(&e, a, row->name, value, row->kind == OF_MAP);
    }
    for (size_t i = 0; i < n_more; i++)
        put_variable(&e, a, more[i]);
    return e.list;
}
