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

static void add_efa(word_list *l, const char *instance_type)
{
    for (size_t i = 0; instance_type && i < sizeof efa_rows / sizeof *efa_rows; i++)
        if (strcmp(efa_rows[i].type, instance_type) == 0) {
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

static void add_exports(word_list *l, const ty_mpirun *m)
{
    static const char *const credentials[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
    const char *const *envp = m->envp ? m->envp : (const char *const *)environ;
    for (int i = 0; i < 3; i++)
        if (is_set(envp, credentials[i]))
            add_export(l, credentials[i], NULL);
    for (const char *const *name = m->names; name && *name; name++)
        add_export(l, *name, NULL);
}

static char *host_list(const ty_mpirun *m, ty_arena *a)
{
    char *text = ty_arena_strdup(a, "");
    for (int i = 0; i < m->n_hosts; i++) {
        text = ty_arena_printf(a, "%s%s%s", text, i ? "," : "", m->hosts[i]);
        if (m->processes_per_host != 1)
            text = ty_arena_printf(a, "%s:%d", text, m->processes_per_host);
    }
    return text;
}

int ty_mpirun_command(const ty_mpirun *m, ty_arena *a, char ***words, ty_error *err)
{
    word_list l = {.arena = a}, options = {.arena = a};
    const char *nccl_debug = "INFO";
    int n = m->n_processes ? m->n_processes : m->n_hosts * m->processes_per_host;
    if (parse_options(m->options ? m->options : "", &options, &nccl_debug, err) < 0)
        return -1;
    const char *const begin[] = {
        "mpirun",        "--host",       host_list(m, a), "-np", ty_arena_printf(a, "%d", n), "--allow-run-as-root",
        "--display-map", "--tag-output",
    };
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        add(&l, begin[i]);
    add_parameter(&l, "btl_tcp_if_include", m->interface);
    add_parameter(&l, "oob_tcp_if_include", m->interface);
    add_parameter(&l, "plm_rsh_no_tree_spawn", "1");
    const char *const places[] = {"-bind-to", "none", "-map-by", "slot"};
    for (int i = 0; i < 4; i++)
        add(&l, places[i]);
    add_parameter(&l, "pml", "ob1");
    add_parameter(&l, "btl", "^openib");
    add_parameter(&l, "orte_abort_on_non_zero_status", "1");
    add_parameter(&l, "btl_vader_single_copy_mechanism", "none");
    add_export(&l, "NCCL_MIN_NRINGS", "4");
    add_export(&l, "NCCL_SOCKET_IFNAME", m->interface);
    add_export(&l, "NCCL_DEBUG", nccl_debug);
    add_export(&l, "LD_LIBRARY_PATH", NULL);
    add_export(&l, "PATH", NULL);
    if (m->preload)
        add_export(&l, "LD_PRELOAD", m->preload);
    for (size_t i = 0; i < options.n; i++)
        add(&l, options.words[i]);
    add_efa(&l, m->instance_type);
    add_exports(&l, m);
    for (const char *const *word = m->argv; *word; word++)
        add(&l, *word);
    *words = l.words;
    return 0;
}
