/* The ranks of a host, with programs that need no MPI: what they are told, what they say, how they end, what stays. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "dist/agent/ranks.h"
#include "dist/agent/ranks_environment.h"
#include "dist/agent/ranks_folder.h"
#include "dist/agent/ranks_probe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const ty_ranks_host three_hosts[] = {
    {"algo-1", "10.0.0.1", 2, 0}, {"algo-2", "10.0.0.2", 3, 0}, {"algo-3", NULL, 1, 0}};

/* ---- what they are told ---- */

static const char *value_of(char **environment, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);
    for (; *environment; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') {
            assert_null(found); /* each stands there once */
            found = *environment + n + 1;
        }
    return found;
}

static void expect(char **environment, const char *name, const char *value)
{
    const char *found = value_of(environment, name);
    if (!value && found)
        fail_msg("%s is \"%s\" and should not be there", name, found);
    if (value && (!found || strcmp(found, value) != 0))
        fail_msg("%s is \"%s\", expected \"%s\"", name, found ? found : "(not set)", value);
}

static void test_environment(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    const char *const pages[] = {"page-0", "page-1", "page-2"};
    const ty_ranks_options o = {.hosts = three_hosts,
                                .n_hosts = 3,
                                .self = 1,
                                .interface = "eth0",
                                .tf_config = "{\"task\": 1}",
                                .page = pages};
    const ty_ranks_place place = {.session_folder = "/tmp/s", .shared_folder = "/dev/shm/m", .cores = 8};
    const char *const inherited[] = {"PATH=/bin",
                                     "RANK=77",
                                     "OMPI_MCA_pml=ucx",
                                     "PMIX_RANK=3",
                                     "SLURM_JOB_ID=4",
                                     "OMPI_COMM_WORLD_SIZE=9",
                                     "JSM_NAMESPACE_ID=1",
                                     "TRAINYARD_PAGE=old",
                                     "EMPTY=",
                                     "PMIX_NAMESPACE=x",
                                     NULL};
    char *more[] = {"PMIX_NAMESPACE=job", "PMIX_RANK=4", NULL};
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"RANK", "4"},
        {"WORLD_SIZE", "6"},
        {"LOCAL_RANK", "2"},
        {"LOCAL_WORLD_SIZE", "3"},
        {"GROUP_RANK", "1"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "29500"},
        {"TF_CONFIG", "{\"task\": 1}"},
        {"OMPI_COMM_WORLD_RANK", "4"},
        {"OMPI_COMM_WORLD_SIZE", "6"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
        {"OMPI_COMM_WORLD_NODE_RANK", "2"},
        {"TRAINYARD_PAGE", "page-2"},
        {"TRAINYARD_ENGINE", "mpi"},
        {"JSM_JSRUN_PORT", "1"},
        {"JSM_NAMESPACE_ID", NULL},
        {"SLURM_JOB_ID", NULL},
        {"OMP_NUM_THREADS", "2"}, /* 8 cores, 3 ranks */
        {"NCCL_SOCKET_IFNAME", "=eth0"},
        {"UCX_NET_DEVICES", "eth0"},
        {"GLOO_SOCKET_IFNAME", "eth0"},
        {"OMPI_MCA_pml", "ucx"}, /* the user's choice */
        {"OMPI_MCA_btl", "self,vader,tcp"},
        {"OMPI_MCA_btl_tcp_if_include", "eth0"},
        {"OMPI_MCA_oob_tcp_if_include", "eth0"},
        {"OMPI_MCA_mpi_yield_when_idle", NULL},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
        {"OMPI_MCA_btl_vader_backing_directory", "/dev/shm/m"},
        {"OMPI_MCA_osc_sm_backing_directory", "/dev/shm/m"},
        {"OMPI_MCA_orte_tmpdir_base", "/tmp/s"},
        {"PMIX_NAMESPACE", "job"},
        {"PMIX_RANK", "4"},
        {"PATH", "/bin"},
        {"EMPTY", ""},
    };
    char **e = ty_ranks_environment(&a, &o, &place, inherited, more, 2);
    size_t n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect(e, rows[i].name, rows[i].value);
        n += rows[i].value != NULL;
    }
    for (size_t i = 0; i < n; i++)
        assert_non_null(e[i]); /* the table above is all there is */
    assert_null(e[n]);
    ty_arena_fini(&a);
}

static void test_environment_variants(void **state)
{
    (void)state;
    ty_arena a;
    ty_arena_init(&a);
    ty_ranks_options o = {.hosts = three_hosts, .n_hosts = 3, .self = 0, .master_port = 1234};
    ty_ranks_place place = {.session_folder = "/s", .shared_folder = "/m", .cores = 1, .copies_allowed = true};
    const char *const inherited[] = {"TF_CONFIG=given", "OMP_NUM_THREADS=5", NULL};
    char **e = ty_ranks_environment(&a, &o, &place, inherited, NULL, 1);
    expect(e, "RANK", "1");
    expect(e, "MASTER_PORT", "1234");
    expect(e, "TF_CONFIG", "given");
    expect(e, "OMP_NUM_THREADS", "5");
    expect(e, "OMPI_MCA_mpi_yield_when_idle", "1"); /* 2 ranks, 1 core */
    expect(e, "OMPI_MCA_btl_vader_single_copy_mechanism", NULL);
    expect(e, "OMPI_MCA_btl_tcp_if_include", NULL);
    expect(e, "NCCL_SOCKET_IFNAME", NULL);
    expect(e, "TRAINYARD_PAGE", NULL);
    place.cores = 2; /* a core for each */
    expect(ty_ranks_environment(&a, &o, &place, inherited, NULL, 1), "OMPI_MCA_mpi_yield_when_idle", NULL);
    place.cores = 1;
    o.without_mpi = true;
    o.self = 2;
    e = ty_ranks_environment(&a, &o, &place, NULL, NULL, 0);
    expect(e, "RANK", "5");
    expect(e, "OMP_NUM_THREADS", "1");
    expect(e, "TRAINYARD_ENGINE", NULL);
    expect(e, "JSM_JSRUN_PORT", NULL);
    expect(e, "OMPI_MCA_pml", NULL);
    ty_arena_fini(&a);
    assert_int_equal(ty_ranks_first(three_hosts, 0), 0);
    assert_int_equal(ty_ranks_first(three_hosts, 2), 5);
}

/* ---- processes ---- */

typedef struct seen {
    ty_buf text[2];
    int n_ended, status[8];
} seen;

static void on_lines(void *ctx, int rank, int fd, const char *lines, size_t n_bytes)
{
    (void)rank;
    ty_buf_add(&((seen *)ctx)->text[fd - 1], lines, n_bytes);
}

static void on_ended(void *ctx, int rank, pid_t pid, int wait_status)
{
    seen *s = ctx;
    assert_true(pid > 0);
    s->status[rank] = wait_status;
    s->n_ended++;
}

static void seen_init(seen *s)
{
    *s = (seen){0};
    ty_buf_init(&s->text[0], 64 << 20);
    ty_buf_init(&s->text[1], 64 << 20);
}

static void seen_fini(seen *s)
{
    ty_buf_fini(&s->text[0]);
    ty_buf_fini(&s->text[1]);
}

/* Ranks that run a script of the shell. */
static ty_ranks *start(seen *s, const char *script, int n, bool terminal)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const ty_ranks_host host = {"algo-1", NULL, n, 0};
    const ty_ranks_options o = {.job = "unit",
                                .hosts = &host,
                                .n_hosts = 1,
                                .argv = argv,
                                .without_mpi = true,
                                .quiet = true,
                                .terminal = terminal,
                                .ctx = s,
                                .lines = on_lines,
                                .ended = on_ended};
    ty_error err = {0};
    ty_ranks *r = NULL;
    seen_init(s);
    if (ty_ranks_start(&o, &r, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_ranks_living(r), n);
    return r;
}

static void turn(ty_ranks *r)
{
    struct pollfd p = {.fd = ty_ranks_fd(r), .events = POLLIN};
    ty_error err = {0};
    assert_true(poll(&p, 1, 300000) == 1);
    assert_int_equal(ty_ranks_turn(r, &err), 0);
}

static void turn_until_ended(ty_ranks *r)
{
    while (ty_ranks_living(r))
        turn(r);
}

static void test_ends(void **state)
{
    (void)state;
    seen s;
    ty_ranks *r = start(&s, "echo $RANK $WORLD_SIZE; [ $RANK = 1 ] && kill -9 $$; exit $RANK", 3, false);
    turn_until_ended(r);
    assert_int_equal(s.n_ended, 3);
    assert_int_equal(s.status[0], 0);
    assert_true(WIFSIGNALED(s.status[1]) && WTERMSIG(s.status[1]) == SIGKILL);
    assert_true(WIFEXITED(s.status[2]) && WEXITSTATUS(s.status[2]) == 2);
    assert_non_null(strstr(s.text[0].data, "[1,0]<stdout>:0 3\n"));
    assert_non_null(strstr(s.text[0].data, "[1,1]<stdout>:1 3\n"));
    assert_non_null(strstr(s.text[0].data, "[1,2]<stdout>:2 3\n"));
    ty_ranks_free(r);
    seen_fini(&s);
}

/* 3 ranks write 5,000 lines each to both streams, the last one without a newline. */
static void test_no_line_is_lost(void **state)
{
    (void)state;
    seen s;
    ty_ranks *r = start(&s,
                        "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done & "
                        "seq -f 'err %.0f' 0 4999 >&2; wait; printf end",
                        3, false);
    turn_until_ended(r);
    ty_ranks_free(r);
    int next[2][3] = {0};
    for (int fd = 0; fd < 2; fd++)
        for (char *at = s.text[fd].data; *at; at = strchr(at, '\n') + 1) {
            int rank, number;
            if (sscanf(at, fd ? "[1,%d]<stderr>:err %d\n" : "[1,%d]<stdout>:line %d\n", &rank, &number) != 2) {
                assert_int_equal(strncmp(strchr(at, ':'), ":end\n", 5), 0);
                continue;
            }
            assert_int_equal(number, next[fd][rank]++);
        }
    for (int i = 0; i < 6; i++)
        assert_int_equal(next[i / 3][i % 3], 5000);
    seen_fini(&s);
}

static void test_signals(void **state)
{
    (void)state;
    seen s;
    ty_ranks *r = start(&s, "trap 'echo got it; exit 7' TERM; echo ready; while :; do sleep 0.05; done", 2, true);
    while (!strstr(s.text[0].data, "[1,0]<stdout>:ready\n") || !strstr(s.text[0].data, "[1,1]<stdout>:ready\n"))
        turn(r);
    ty_ranks_signal(r, SIGTERM);
    turn_until_ended(r);
    assert_int_equal(WEXITSTATUS(s.status[0]), 7);
    assert_int_equal(WEXITSTATUS(s.status[1]), 7);
    assert_non_null(strstr(s.text[0].data, "[1,1]<stdout>:got it\n"));
    ty_ranks_free(r);
    seen_fini(&s);
}

/* A rank that leaves a process behind, which holds the output open: its end is told, and the process dies at last. */
static void test_what_is_left(void **state)
{
    (void)state;
    seen s;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    ty_ranks *r = start(&s, "sleep 1000 & echo $!; exit 0", 1, false);
    turn_until_ended(r);
    pid_t left = atoi(strchr(s.text[0].data, ':') + 1);
    assert_true(left > 1);
    assert_int_equal(kill(left, 0), 0);
    assert_int_equal(kill(ty_ranks_pid(r, 0), 0), 0); /* its number is still its own */
    ty_ranks_free(r);
    int status = 0;
    assert_int_equal(waitpid(left, &status, 0), left);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    seen_fini(&s);
}

static void test_free_kills(void **state)
{
    (void)state;
    seen s;
    ty_ranks *r = start(&s, "trap '' TERM INT; printf begun; while :; do sleep 0.1; done", 2, true);
    ty_ranks_free(r);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    seen_fini(&s);
}

static void test_no_program(void **state)
{
    (void)state;
    const char *const argv[] = {"/nowhere/program", NULL};
    ty_ranks_options o = {
        .job = "unit", .hosts = three_hosts, .n_hosts = 3, .self = 1, .argv = argv, .without_mpi = true};
    ty_error err = {0};
    ty_ranks *r;
    assert_int_equal(ty_ranks_start(&o, &r, &err), -1);
    assert_null(r);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "rank 2"));
    assert_non_null(strstr(err.message, "/nowhere/program"));
    o.self = 3;
    assert_int_equal(ty_ranks_start(&o, &r, &err), -1);
    const ty_ranks_host none = {"algo-1", NULL, 0, 0};
    o.hosts = &none, o.n_hosts = 1, o.self = 0;
    assert_int_equal(ty_ranks_start(&o, &r, &err), -1);
    assert_non_null(strstr(err.message, "algo-1"));
}

/* ---- folders ---- */

static void test_folders(void **state)
{
    (void)state;
    char parent[] = "/tmp/ranks-test-XXXXXX", file[600];
    assert_non_null(mkdtemp(parent));
    ty_ranks_folder kept, killed, next;
    ty_error err = {0};
    assert_int_equal(ty_ranks_folder_make(&kept, parent, &err), 0);
    assert_int_equal(ty_ranks_folder_make(&killed, parent, &err), 0);
    snprintf(file, sizeof file, "%s/segment", killed.path);
    assert_int_equal(ty_file_write(file, "x", 1, 0600, &err), 0);
    assert_true(ty_file_is_folder(kept.path) && ty_file_is_folder(killed.path));
    close(killed.fd); /* as the kernel does when its owner is killed */
    assert_int_equal(ty_ranks_folder_make(&next, parent, &err), 0);
    assert_false(ty_file_exists(killed.path));
    assert_true(ty_file_is_folder(kept.path));
    ty_ranks_folder_remove(&next);
    ty_ranks_folder_remove(&kept);
    ty_ranks_folder_remove(&kept);
    assert_int_equal(rmdir(parent), 0);
    assert_int_equal(ty_ranks_folder_make(&next, "/nowhere", &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
}

static void test_probe(void **state)
{
    (void)state;
    bool first = ty_ranks_copies_allowed();
    assert_int_equal(first, ty_ranks_copies_allowed());
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment), cmocka_unit_test(test_environment_variants),
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_no_line_is_lost),
        cmocka_unit_test(test_signals),     cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_free_kills),  cmocka_unit_test(test_no_program),
        cmocka_unit_test(test_folders),     cmocka_unit_test(test_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
