/* remote_mpirun.c - a list of words. The tests hold it against the toolkit's own expectations. */
#include "dist/agent/remote_mpirun.h"

#include <stdbool.h>
#include <string.h>

extern char **environ;

typedef struct word_list {
    ty_arena *arena;
    char **words;
    size_t n, room;
} word_list;

static void add(word_list *l, const char *word)
{
    if (l->n + 1 >= l->room) {
        size_t room = l->room * 2 + 64;
        char **larger = TY_NEW_ARRAY(l->arena, char *, room);
        if (l->n)
            memcpy(larger, l->words, l->n * sizeof *larger);
        l->words = larger;
        l->room = room;
    }
    l->words[l->n++] = ty_arena_strdup(l->arena, word);
    l->words[l->n] = NULL;
}

static void add_export(word_list *l, const char *name, const char *value)
{
    add(l, "-x");
    add(l, value ? ty_arena_printf(l->arena, "%s=%s", name, value) : name);
}

static void add_parameter(word_list *l, const char *name, const char *value)
{
    add(l, "-mca");
    add(l, name);
    add(l, value);
}

/* ---- the user's options ---- */

/* The option that is ours, also shortened, as Python's argparse takes it. */
static bool is_nccl_debug(const char *word, size_t n)
{
    static const char name[] = "--NCCL_DEBUG";
    return n > 2 && n < sizeof name && strncmp(word, name, n) == 0;
}

/* Takes them apart: ours goes to *nccl_debug, the rest to the list. */
static int parse_options(const char *text, word_list *rest, const char **nccl_debug, ty_error *err)
{
    static const char blanks[] = " \t\n\r\v\f";
    bool value_follows = false;
    for (const char *at = text; *(at += strspn(at, blanks));) {
        size_t n = strcspn(at, blanks), name = strcspn(at, "= \t\n\r\v\f");
        char *word = ty_arena_strndup(rest->arena, at, n);
        at += n;
        if (value_follows) {
            *nccl_debug = word;
            value_follows = false;
        } else if (is_nccl_debug(word, name)) {
            value_follows = word[name] != '=';
            if (!value_follows)
                *nccl_debug = word + name + 1;
        } else {
            add(rest, word);
        }
    }
    if (value_follows)
        return ty_error_set(err, TY_E_CONFIG, "mpirun's options: --NCCL_DEBUG has no value in \"%.200s\"", text);
    return 0;
}

/* ---- what the platform adds ---- */

/* Instance types with EFA; where `rdma`, its remote memory access is used as well. */
static const struct {
    const char *type;
    bool rdma;
} efa_rows[] = {
    {"ml.g4dn.8xlarge", false},  {"ml.g4dn.12xlarge", false}, {"ml.g5.48xlarge", false},
    {"ml.p3dn.24xlarge", false}, {"ml.p4d.24xlarge", true},   {"ml.p4de.24xlarge", true},
    {"ml.p5.48xlarge", false},   {"ml.trn1.32xlarge", true},  {"ml.p6e-gb200.36xlarge", true},
};

static void add_efa(word_list *l, const ty_mpirun *m)
{
    for (size_t i = 0; m->instance_type && i < sizeof efa_rows / sizeof *efa_rows; i++)
        if (strcmp(efa_rows[i].type, m->instance_type) == 0) {
            if (!m->data_parallel) /* which has it in any case */
                add_export(l, "FI_PROVIDER", "efa");
            add_export(l, "NCCL_PROTO", "simple");
            if (efa_rows[i].rdma)
                add_export(l, "FI_EFA_USE_DEVICE_RDMA", "1");
        }
}

static bool is_set(const char *const *envp, const char *name)
{
    size_t n = strlen(name);
    for (; *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return true;
    return false;
}

/* The data parallel library's line names none: its ranks find them elsewhere, ours in what our agents hand on. */
static void add_exports(word_list *l, const ty_mpirun *m)
{
    static const char *const credentials[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
    const char *const *envp = m->envp ? m->envp : (const char *const *)environ;
    for (int i = 0; i < 3 && !m->data_parallel; i++)
        if (is_set(envp, credentials[i]))
            add_export(l, credentials[i], NULL);
    for (const char *const *name = m->names; name && *name && !m->data_parallel; name++)
        add_export(l, *name, NULL);
}

/* "a:2,b:2". One process is left unsaid; the data parallel library says it, but on a single host says nothing. */
static char *host_list(const ty_mpirun *m, ty_arena *a)
{
    char *text = ty_arena_strdup(a, "");
    for (int i = 0; i < m->n_hosts; i++) {
        bool counts = m->data_parallel ? m->n_hosts > 1 : m->processes[i] != 1;
        text = ty_arena_printf(a, "%s%s%s", text, i ? "," : "", m->hosts[i]);
        if (counts)
            text = ty_arena_printf(a, "%s:%d", text, m->processes[i]);
    }
    return text;
}

/* ---- the line ---- */

static int count_processes(const ty_mpirun *m)
{
    int n = m->n_processes;
    for (int i = 0; i < m->n_hosts && m->n_processes == 0; i++)
        n += m->processes[i];
    return n;
}

static void add_words(word_list *l, const char *const *words)
{
    for (; words && *words; words++)
        add(l, *words);
}

static void add_places(word_list *l, const ty_mpirun *m)
{
    add_parameter(l, "btl_tcp_if_include", m->interface);
    add_parameter(l, "oob_tcp_if_include", m->interface);
    add_parameter(l, "plm_rsh_no_tree_spawn", "1");
    if (!m->data_parallel)
        add_words(l, (const char *const[]){"-bind-to", "none", "-map-by", "slot", NULL});
    add_parameter(l, "pml", "ob1");
    add_parameter(l, "btl", "^openib");
    add_parameter(l, "orte_abort_on_non_zero_status", "1");
    add_parameter(l, "btl_vader_single_copy_mechanism", "none");
    if (m->data_parallel)
        add_parameter(l, "plm_rsh_num_concurrent", ty_arena_printf(l->arena, "%d", m->n_hosts));
}

static void add_settings(word_list *l, const ty_mpirun *m, const char *nccl_debug)
{
    if (!m->data_parallel)
        add_export(l, "NCCL_MIN_NRINGS", "4");
    add_export(l, "NCCL_SOCKET_IFNAME", m->interface);
    add_export(l, "NCCL_DEBUG", nccl_debug);
    add_export(l, "LD_LIBRARY_PATH", NULL);
    add_export(l, "PATH", NULL);
    if (m->data_parallel) {
        add_export(l, m->n_hosts > 1 ? "SMDATAPARALLEL_USE_HOMOGENEOUS" : "SMDATAPARALLEL_USE_SINGLENODE", "1");
        add_export(l, "FI_PROVIDER", "efa");
        add_export(l, "RDMAV_FORK_SAFE", "1");
    }
    if (m->preload)
        add_export(l, "LD_PRELOAD", m->preload);
}

/* Where the library's servers are. */
static void add_server(word_list *l, const ty_mpirun *m)
{
    if (!m->data_parallel || m->n_hosts == 1)
        return;
    add_export(l, "SMDATAPARALLEL_SERVER_ADDR", m->hosts[0]);
    add_export(l, "SMDATAPARALLEL_SERVER_PORT", "7592");
    add_export(l, "SAGEMAKER_INSTANCE_TYPE", m->instance_type ? m->instance_type : "");
}

int ty_mpirun_command(const ty_mpirun *m, ty_arena *a, char ***words, ty_error *err)
{
    word_list l = {.arena = a}, options = {.arena = a};
    const char *nccl_debug = "INFO";
    if (parse_options(m->options ? m->options : "", &options, &nccl_debug, err) < 0)
        return -1;
    add_words(&l, (const char *const[]){"mpirun", "--host", host_list(m, a), "-np",
                                        ty_arena_printf(a, "%d", count_processes(m)), "--allow-run-as-root", NULL});
    if (m->data_parallel)
        add_words(&l, (const char *const[]){"--tag-output", "--oversubscribe", NULL});
    else
        add_words(&l, (const char *const[]){"--display-map", "--tag-output", NULL});
    add_places(&l, m);
    add_settings(&l, m, nccl_debug);
    add_words(&l, (const char *const *)options.words);
    add_efa(&l, m);
    add_server(&l, m);
    add_exports(&l, m);
    add_words(&l, m->argv);
    *words = l.words;
    return 0;
}
