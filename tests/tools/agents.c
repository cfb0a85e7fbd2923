/* agents HOSTS SECONDS [PORT] - what it costs to be many: HOSTS agents as processes of this machine, on loopback, meet,
 * beat for SECONDS and end. Prints one line:
 *
 *     hosts 1000  meet 2.31 s, leader 0.80 s of CPU, 1.9 MB  beat: leader 2.1 % of a core, 0.21 MB/s, 9.1 MB resident;
 *     member 0.05 % of a core  end 0.21 s
 *
 * Only the leader's host has a rank, which waits: what ranks cost is not measured here. Bytes are those of the loopback
 * interface: `unshare -n sh -c 'ip link set lo up; agents 1000 10'` counts nobody else's. */
#include "dist/agent/agent.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_HOSTS = 10000 };

typedef struct reading {
    int64_t ms;
    double leader_cpu_s, member_cpu_s;
    long long bytes;
} reading;

static ty_agent_host hosts[MAX_HOSTS];
static char names[MAX_HOSTS][20];
static pid_t pids[MAX_HOSTS];
static int begun_pipe[2];

static void between(void *ctx, int generation)
{
    (void)ctx;
    (void)generation;
    if (write(begun_pipe[1], "b", 1) < 0)
        perror("agents");
}

static int run_agent(int n, int self, int port, const char *seconds)
{
    const char *const argv[] = {"sleep", seconds, NULL};
    ty_agent_options o = TY_AGENT_DEFAULTS;
    ty_agent_end end;
    ty_error err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ty_log_set_level(TY_LOG_WARNING);
    o.job = "many";
    o.secret = "secret";
    o.secret_bytes = 6;
    o.hosts = hosts;
    o.n_hosts = n;
    o.self = self;
    o.port = port;
    o.argv = argv;
    o.preflight = false;
    o.link_ms = 60000; /* a member of so many may not get a processor for seconds */
    o.without_mpi = true;
    o.between = self == 0 ? between : NULL;
    if (ty_agent_run(&o, &end, &err) < 0)
        fprintf(stderr, "agent %d: %s\n", self, err.message);
    else if (end.failed)
        fprintf(stderr, "agent %d: %s\n", self, end.first.text);
    else
        return 0;
    return 1;
}

static double cpu_seconds(pid_t pid)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file)) {
        const char *rest = strrchr(line, ')');
        if (rest)
            sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    }
    if (file)
        fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* A number behind a word, in a file of /proc. */
static long long find_number(const char *path, const char *word)
{
    char line[512];
    long long value = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, word);
        if (at)
            sscanf(at + strlen(word), "%lld", &value);
    }
    if (file)
        fclose(file);
    return value;
}

static reading take_reading(int n)
{
    reading r = {
        .ms = ty_clock_ms(), .leader_cpu_s = cpu_seconds(pids[0]), .bytes = find_number("/proc/self/net/dev", "lo:")};
    for (int i = 1; i < n; i++)
        r.member_cpu_s += cpu_seconds(pids[i]) / (n - 1);
    return r;
}

static int wait_for_all(int n)
{
    int failed = 0, status;
    for (int i = 0; i < n; i++)
        failed += waitpid(pids[i], &status, 0) < 0 || status != 0;
    return failed;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[1]) : 0, seconds = argc > 2 ? atoi(argv[2]) : 0;
    int port = argc > 3 ? atoi(argv[3]) : 7801;
    char path[64], byte;
    if (n < 2 || n > MAX_HOSTS || seconds < 2 || pipe(begun_pipe) < 0) {
        fprintf(stderr, "usage: agents HOSTS SECONDS [PORT]\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "algo-%05d", i + 1);
        hosts[i] = (ty_agent_host){.name = names[i], .ranks = i == 0, .address = "127.0.0.1"};
    }
    uint8_t digest[TY_SHA256_BYTES];
    ty_sha256_bytes("", 0, digest, NULL); /* opens libcrypto once, not in each */
    reading start = take_reading(1);
    for (int i = 0; i < n; i++)
        if ((pids[i] = fork()) == 0)
            _exit(run_agent(n, i, port, argv[2]));
    struct pollfd begun = {begun_pipe[0], POLLIN, 0};
    if (poll(&begun, 1, 300000) <= 0 || read(begun_pipe[0], &byte, 1) != 1)
        return 1;
    reading met = take_reading(n);
    poll(NULL, 0, 1000); /* what follows is the steady state */
    reading first = take_reading(n);
    poll(NULL, 0, (seconds - 2) * 1000);
    reading last = take_reading(n);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pids[0]);
    long long resident_kb = find_number(path, "VmRSS:");
    int failed = wait_for_all(n);
    double took_s = (double)(last.ms - first.ms) / 1000;
    printf("hosts %d  meet %.2f s, leader %.2f s of CPU, %.2f MB  beat: leader %.1f %% of a core, %.3f MB/s, %.1f MB "
           "resident; member %.2f %% of a core  end %.2f s  failed %d\n",
           n, (double)(met.ms - start.ms) / 1000, met.leader_cpu_s, (double)(met.bytes - start.bytes) / 1e6,
           100 * (last.leader_cpu_s - first.leader_cpu_s) / took_s, (double)(last.bytes - first.bytes) / 1e6 / took_s,
           (double)resident_kb / 1024, 100 * (last.member_cpu_s - first.member_cpu_s) / took_s,
           (double)(ty_clock_ms() - met.ms) / 1000 - seconds, failed);
    return failed > 0;
}
