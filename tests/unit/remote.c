/* mpirun on our agents: its command line, what is started for it and what is not, and one session from end to end. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "dist/agent/remote.h"
#include "dist/agent/remote_frame.h"
#include "dist/agent/remote_mpirun.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const two_hosts[] = {"algo-1", "algo-2"};
static const int two_each[] = {2, 2}, one_each[] = {1, 1};

/* ---- the command line ---- */

static char *joined(ty_arena *a, char **words)
{
    char *text = ty_arena_strdup(a, "");
    for (; *words; words++)
        text = ty_arena_printf(a, "%s%s%s", text, *text ? " " : "", *words);
    return text;
}

static void test_command_line(void **state)
{
    (void)state;
    ty_arena a;
    char **words;
    ty_error err = {0};
    ty_arena_init(&a);
    const char *const none[] = {NULL}, *const names[] = {"LD_CONFIG_PATH", NULL};
    const char *const shell[] = {"/bin/sh", "-c", "./train.sh -v --lr 35", NULL};
    ty_mpirun m = {.hosts = two_hosts,
                   .n_hosts = 2,
                   .processes = two_each,
                   .interface = "ethw3",
                   .options = "-v --lr 35",
                   .preload = "/shim.so",
                   .names = names,
                   .envp = none,
                   .argv = shell};
    assert_int_equal(ty_mpirun_command(&m, &a, &words, &err), 0);
    assert_string_equal(
        joined(&a, words),
        "mpirun --host algo-1:2,algo-2:2 -np 4 --allow-run-as-root --display-map --tag-output "
        "-mca btl_tcp_if_include ethw3 -mca oob_tcp_if_include ethw3 -mca plm_rsh_no_tree_spawn 1 "
        "-bind-to none -map-by slot -mca pml ob1 -mca btl ^openib -mca orte_abort_on_non_zero_status 1 "
        "-mca btl_vader_single_copy_mechanism none -x NCCL_MIN_NRINGS=4 -x NCCL_SOCKET_IFNAME=ethw3 "
        "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -x LD_PRELOAD=/shim.so -v --lr 35 -x LD_CONFIG_PATH "
        "/bin/sh -c ./train.sh -v --lr 35");

    const char *const credentials[] = {"AWS_SESSION_TOKEN=t", "AWS_ACCESS_KEY_ID=i", "AWS_SECRET_ACCESS_KEYS=no", NULL};
    const char *const program[] = {"/opt/ml/code/app", "a b", NULL};
    m = (ty_mpirun){.hosts = two_hosts,
                    .n_hosts = 1,
                    .processes = one_each,
                    .n_processes = 3,
                    .interface = "eth0",
                    .options = "  --NCCL_DEBUG WARN\n-x FOO=1 ",
                    .instance_type = "ml.p4d.24xlarge",
                    .envp = credentials,
                    .argv = program};
    assert_int_equal(ty_mpirun_command(&m, &a, &words, &err), 0);
    assert_string_equal(
        joined(&a, words),
        "mpirun --host algo-1 -np 3 --allow-run-as-root --display-map --tag-output "
        "-mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 -mca plm_rsh_no_tree_spawn 1 "
        "-bind-to none -map-by slot -mca pml ob1 -mca btl ^openib -mca orte_abort_on_non_zero_status 1 "
        "-mca btl_vader_single_copy_mechanism none -x NCCL_MIN_NRINGS=4 -x NCCL_SOCKET_IFNAME=eth0 "
        "-x NCCL_DEBUG=WARN -x LD_LIBRARY_PATH -x PATH -x FOO=1 -x FI_PROVIDER=efa -x NCCL_PROTO=simple "
        "-x FI_EFA_USE_DEVICE_RDMA=1 -x AWS_ACCESS_KEY_ID -x AWS_SESSION_TOKEN /opt/ml/code/app a b");
    m.options = "--NCCL_DEBUG=TRACE";
    assert_int_equal(ty_mpirun_command(&m, &a, &words, &err), 0);
    assert_non_null(strstr(joined(&a, words), "-x NCCL_DEBUG=TRACE -x LD_LIBRARY_PATH"));
    m.options = "-v --NCCL_DEBUG";
    assert_int_equal(ty_mpirun_command(&m, &a, &words, &err), -1);
    assert_int_equal(err.code, TY_E_CONFIG);
    ty_arena_fini(&a);
}

static void test_command_line_of_uneven_hosts(void **state)
{
    (void)state;
    ty_arena a;
    char **words;
    ty_error err = {0};
    ty_arena_init(&a);
    const char *const none[] = {NULL}, *const program[] = {"./app", NULL};
    const int uneven[] = {4, 1};
    ty_mpirun m = {
        .hosts = two_hosts, .n_hosts = 2, .processes = uneven, .interface = "eth0", .envp = none, .argv = program};
    assert_int_equal(ty_mpirun_command(&m, &a, &words, &err), 0);
    assert_int_equal(strncmp(joined(&a, words), "mpirun --host algo-1:4,algo-2 -np 5 --allow", 43), 0);
    ty_arena_fini(&a);
}

/* What the toolkit starts for SageMaker's data parallel library: on several hosts, on one, on one with EFA. */
static void test_command_line_of_data_parallel(void **state)
{
    (void)state;
    ty_arena a;
    char **words;
    ty_error err = {0};
    ty_arena_init(&a);
    const char *const names[] = {"SM_HOSTS", NULL}, *const keys[] = {"AWS_SESSION_TOKEN=t", NULL};
    const char *const program[] = {"smddprun", "/usr/bin/python3", "-m", "mpi4py", "train.py", "--lr", "1", NULL};
    const int eight[] = {8, 8};
    ty_mpirun m = {.hosts = two_hosts,
                   .n_hosts = 2,
                   .processes = eight,
                   .interface = "eth0",
                   .options = "--NCCL_DEBUG WARN -verbose",
                   .preload = "/shim.so",
                   .instance_type = "ml.p3.16xlarge",
                   .names = names,
                   .envp = keys,
                   .argv = program,
                   .data_parallel = true};
    assert_int_equal(ty_mpirun_command(&m, &a, &words, &err), 0);
    assert_string_equal(
        joined(&a, words),
        "mpirun --host algo-1:8,algo-2:8 -np 16 --allow-run-as-root --tag-output --oversubscribe "
        "-mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 -mca plm_rsh_no_tree_spawn 1 "
        "-mca pml ob1 -mca btl ^openib -mca orte_abort_on_non_zero_status 1 "
        "-mca btl_vader_single_copy_mechanism none -mca plm_rsh_num_concurrent 2 "
        "-x NCCL_SOCKET_IFNAME=eth0 -x NCCL_DEBUG=WARN -x LD_LIBRARY_PATH -x PATH "
        "-x SMDATAPARALLEL_USE_HOMOGENEOUS=1 -x FI_PROVIDER=efa -x RDMAV_FORK_SAFE=1 -x LD_PRELOAD=/shim.so -verbose "
        "-x SMDATAPARALLEL_SERVER_ADDR=algo-1 -x SMDATAPARALLEL_SERVER_PORT=7592 "
        "-x SAGEMAKER_INSTANCE_TYPE=ml.p3.16xlarge smddprun /usr/bin/python3 -m mpi4py train.py --lr 1");
    m.n_hosts = 1;
    m.options = m.preload = NULL;
    m.instance_type = "ml.p4d.24xlarge";
    m.argv = program + 1;
    assert_int_equal(ty_mpirun_command(&m, &a, &words, &err), 0);
    assert_string_equal(joined(&a, words),
                        "mpirun --host algo-1 -np 8 --allow-run-as-root --tag-output --oversubscribe "
                        "-mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 -mca plm_rsh_no_tree_spawn 1 "
                        "-mca pml ob1 -mca btl ^openib -mca orte_abort_on_non_zero_status 1 "
                        "-mca btl_vader_single_copy_mechanism none -mca plm_rsh_num_concurrent 1 "
                        "-x NCCL_SOCKET_IFNAME=eth0 -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH "
                        "-x SMDATAPARALLEL_USE_SINGLENODE=1 -x FI_PROVIDER=efa -x RDMAV_FORK_SAFE=1 "
                        "-x NCCL_PROTO=simple -x FI_EFA_USE_DEVICE_RDMA=1 /usr/bin/python3 -m mpi4py train.py --lr 1");
    ty_arena_fini(&a);
}

/* ---- what is started ---- */

static void test_commands(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words; /* with | between; NULL: refused */
    } rows[] = {
        {" orted --daemonize -mca ess \"env\" -mca orte_node_regex \"vm,algo-[1:1-2]@0(3)\" -mca x '$a;b' -mca pmix "
         "\"^s1\"",
         "orted|-mca|ess|env|-mca|orte_node_regex|vm,algo-[1:1-2]@0(3)|-mca|x|$a;b|-mca|pmix|^s1"},
        {"orted", "orted"},
        {"orted a\\ b \"c \\\" d\" ''", "orted|a b|c \" d|"},
        {"", NULL},
        {"   ", NULL},
        {"/tmp/orted", NULL},
        {"orted; rm -rf /", NULL},
        {"orted $(id)", NULL},
        {"orted `id`", NULL},
        {"orted \"$HOME\"", NULL},
        {"orted \"`id`\"", NULL},
        {"orted a&b", NULL},
        {"orted a|b", NULL},
        {"orted >/etc/passwd", NULL},
        {"orted a\nid", NULL},
        {"orted 'open", NULL},
        {"orted \"open", NULL},
        {"orted back\\", NULL},
        {"sh -c orted", NULL},
        {" PATH=/opt/bin:$PATH ; export PATH ; /opt/bin/orted", NULL},
        {"or\"ted\"", "orted"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_arena a;
        char **words, *text;
        ty_error err = {0};
        ty_arena_init(&a);
        int rc = ty_remote_command(rows[i].text, &a, &words, &err);
        if (rc != (rows[i].words ? 0 : -1))
            fail_msg("\"%s\": %d", rows[i].text, rc);
        if (rc < 0) {
            assert_int_equal(err.code, TY_E_PERMISSION);
        } else {
            text = ty_arena_strdup(&a, words[0]);
            for (int k = 1; words[k]; k++)
                text = ty_arena_printf(&a, "%s|%s", text, words[k]);
            assert_string_equal(text, rows[i].words);
        }
        ty_arena_fini(&a);
    }
}

/* ---- sessions: a leader and a host in one process; frames go straight to the other ---- */

static ty_remote *remotes[2];

typedef struct queued {
    int from, to;
    size_t n;
    char bytes[TY_REMOTE_FRAME_BYTES];
} queued;
static queued queue[64];
static int n_queued;

static void on_send(void *ctx, int host, const void *frame, size_t n_bytes)
{
    assert_true(n_queued < 64 && n_bytes <= TY_REMOTE_FRAME_BYTES);
    queue[n_queued].from = *(int *)ctx;
    queue[n_queued].to = host;
    queue[n_queued].n = n_bytes;
    memcpy(queue[n_queued++].bytes, frame, n_bytes);
}

static void deliver(void)
{
    ty_error err = {0};
    for (int i = 0; i < n_queued; i++)
        assert_int_equal(ty_remote_received(remotes[queue[i].to], queue[i].from, queue[i].bytes, queue[i].n, &err), 0);
    n_queued = 0;
}

/* A folder with an orted of ours in front of the PATH. */
static char bin_folder[64];

static void make_orted(const char *script)
{
    char path[128];
    ty_error err = {0};
    strcpy(bin_folder, "/tmp/remote-test-XXXXXX");
    assert_non_null(mkdtemp(bin_folder));
    snprintf(path, sizeof path, "%s/orted", bin_folder);
    assert_int_equal(ty_file_write(path, script, strlen(script), 0755, &err), 0);
    snprintf(path, sizeof path, "%s:/bin:/usr/bin", bin_folder);
    setenv("PATH", path, 1);
}

static void open_both(void)
{
    static int self[2] = {0, 1};
    ty_error err = {0};
    for (int i = 0; i < 2; i++) {
        const ty_remote_options o = {.hosts = two_hosts, .n_hosts = 2, .self = i, .ctx = &self[i], .send = on_send};
        if (ty_remote_open(&o, &remotes[i], &err) < 0)
            fail_msg("%s", err.message);
    }
}

static void close_both(void)
{
    ty_error err = {0};
    ty_remote_free(remotes[0]);
    ty_remote_free(remotes[1]);
    assert_int_equal(ty_file_remove_tree(bin_folder, &err), 0);
}

/* The client as a process of its own; its output through a pipe. */
static pid_t start_client(const char *const *argv, int *out)
{
    ty_arena a;
    int ends[2], argc = 0;
    ty_arena_init(&a);
    char **envp = ty_remote_environment(remotes[0], &a, NULL, "client");
    assert_int_equal(pipe(ends), 0);
    while (argv[argc])
        argc++;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        for (; *envp; envp++)
            putenv(*envp);
        _exit(ty_remote_client(argc, argv));
    }
    close(ends[1]);
    *out = ends[0];
    ty_arena_fini(&a);
    return pid;
}

static void turn_both(int timeout_ms)
{
    ty_error err = {0};
    struct pollfd p[2] = {{.fd = ty_remote_fd(remotes[0]), .events = POLLIN},
                          {.fd = ty_remote_fd(remotes[1]), .events = POLLIN}};
    poll(p, 2, timeout_ms);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ty_remote_turn(remotes[i], &err), 0);
    deliver();
}

/* Until the client has ended; returns its exit status. */
static int finish_client(pid_t pid, int out, ty_buf *text)
{
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        turn_both(20);
    char chunk[4096];
    ssize_t n;
    while ((n = read(out, chunk, sizeof chunk)) > 0)
        ty_buf_add(text, chunk, (size_t)n);
    close(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static int run_client(const char *const *argv, ty_buf *text)
{
    int out;
    pid_t pid = start_client(argv, &out);
    return finish_client(pid, out, text);
}

static void test_session(void **state)
{
    (void)state;
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    make_orted("#!/bin/sh\necho \"out $*\"\necho err >&2\nexit 7\n");
    open_both();
    const char *const good[] = {"algo-2", " orted", "--daemonize", "-mca", "ess", "\"env x\"", NULL};
    assert_int_equal(run_client(good, &text), 7);
    assert_non_null(strstr(text.data, "out -mca ess env x\n"));
    assert_non_null(strstr(text.data, "err\n"));
    static const struct {
        const char *argv[4], *says;
    } refused[] = {
        {{"algo-2", "id", NULL}, "only orted"},
        {{"algo-2", "orted;", "id", NULL}, "needs a shell"},
        {{"algo-3", "orted", NULL}, "no such host"},
        {{"algo-1", "orted", NULL}, "mpirun itself runs on"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ty_buf_clear(&text);
        assert_int_equal(run_client(refused[i].argv, &text), 255);
        if (!strstr(text.data, refused[i].says))
            fail_msg("\"%s\" does not say \"%s\"", text.data, refused[i].says);
    }
    close_both();
    ty_buf_fini(&text);
}

/* A client that dies takes the command along, and a host that is closed the client. */
static void test_ends(void **state)
{
    (void)state;
    int out;
    char pid_path[128], chunk[64];
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    make_orted("#!/bin/sh\necho $$\nexec sleep 1000\n");
    open_both();
    const char *const argv[] = {"algo-2", "orted", NULL};
    for (int round = 0; round < 2; round++) {
        pid_t pid = start_client(argv, &out);
        struct pollfd p = {.fd = out, .events = POLLIN};
        while (poll(&p, 1, 0) == 0)
            turn_both(20);
        ssize_t n = read(out, chunk, sizeof chunk - 1);
        assert_true(n > 0);
        chunk[n] = 0;
        pid_t orted = atoi(chunk);
        assert_int_equal(kill(orted, 0), 0);
        if (round == 0) {
            kill(pid, SIGKILL);
            assert_int_equal(finish_client(pid, out, &text), 1000);
            snprintf(pid_path, sizeof pid_path, "/proc/%d", orted);
            while (ty_file_exists(pid_path))
                turn_both(20);
        } else {
            close_both();
            int status;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_int_equal(WEXITSTATUS(status), 255);
            assert_int_equal(kill(orted, 0), -1);
            close(out);
        }
    }
    ty_buf_fini(&text);
}

static void test_wrong_frames(void **state)
{
    (void)state;
    make_orted("#!/bin/sh\nexit 0\n");
    open_both();
    ty_error err = {0};
    char frame[64] = {0};
    static const struct {
        int to, from;
        remote_kind kind;
        size_t n;
    } rows[] = {
        {1, 1, REMOTE_START, 20}, /* a host commands another */
        {0, 1, REMOTE_START, 20}, /* a host commands the leader */
        {0, 1, REMOTE_KILL, 12},  {1, 0, REMOTE_OUTPUT, 20},
        {1, 0, REMOTE_END, 12},   {1, 0, 0, 12},
        {1, 0, 99, 12},           {0, 1, 99, 12},
        {1, 0, REMOTE_START, 11}, {1, 0, REMOTE_START, 0},
        {0, 0, REMOTE_START, 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        remote_head head = {.kind = rows[i].kind, .session = 1};
        memcpy(frame, &head, sizeof head);
        strcpy(frame + sizeof head, "orted");
        assert_int_equal(ty_remote_received(remotes[rows[i].to], rows[i].from, frame, rows[i].n, &err), -1);
    }
    remote_head head = {.kind = REMOTE_END, .session = 77}; /* of a session that is over: no fault */
    memcpy(frame, &head, sizeof head);
    assert_int_equal(ty_remote_received(remotes[0], 1, frame, 12, &err), 0);
    assert_int_equal(n_queued, 0);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_command_line_of_uneven_hosts),
        cmocka_unit_test(test_command_line_of_data_parallel),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_wrong_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
