/* agent - one host's agent, told on the command line what the entry point takes from the platform:
 *
 *     agent --hosts algo-1:2,algo-2:1 --self 1 --port 7801 [options] -- PROGRAM [ARGUMENTS]
 *
 *     --address A      all hosts are at this address (127.0.0.1); "names": they are looked up
 *     --interface I    the user's choice
 *     --secret S       (secret)            --job J  (job)
 *     --fact NAME=VALUE                    what must be equal on all hosts
 *     --meet MS --link MS --leave MS --warn MS --stall MS --grace MS --stop MS --restarts N --pause MS
 *     --record FOLDER  --look              the look at the network first
 *     --mpi            ranks are MPI programs
 *     --mpirun CLIENT  the program is mpirun, and CLIENT what it takes for a remote shell
 *
 *     agent rank stall R | agent rank shrink R | agent rank leave R
 *
 * is a rank to be run by it: it writes its page as a training does, and rank R stays away from operation 3, reading
 * data for ever, or having none left. With `leave` rank R dies when it is told to stop, and the others wait for it
 * until they are told not to; then they end with 150.
 *
 * SIGTERM asks it to stop. Prints one line at the end, "end: status 0" or with the culprit, and exits with the status;
 * 99 if the job never began. */
#include "dist/agent/agent.h"

#include "base/log.h"
#include "dist/page.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_HOSTS = 4096, NEVER_BEGAN = 99, TOLD_TO_LEAVE = 150 };

static volatile sig_atomic_t asked;

static void ask(int number)
{
    (void)number;
    asked = 1;
}

static bool stopping(void *ctx)
{
    (void)ctx;
    return asked;
}

static void between(void *ctx, int generation)
{
    (void)ctx;
    if (generation > 0)
        ty_log_info("tool", "generation %d begins", generation);
}

static ty_agent_host hosts[MAX_HOSTS];
static ty_agent_fact facts[16];

static int parse_hosts(char *text, const char *address)
{
    int n = 0;
    for (char *host; (host = strsep(&text, ",")) && n < MAX_HOSTS; n++) {
        char *colon = strchr(host, ':');
        hosts[n] = (ty_agent_host){.name = host, .ranks = colon ? atoi(colon + 1) : 1, .address = address};
        if (colon)
            *colon = 0;
    }
    return n;
}

static void add_fact(ty_agent_options *o, char *text)
{
    char *equal = strchr(text, '=');
    if (!equal || o->n_facts == 16)
        return;
    *equal = 0;
    facts[o->n_facts++] = (ty_agent_fact){text, equal + 1};
}

static void set_number(ty_agent_options *o, const char *name, int value)
{
    const struct {
        const char *name;
        int *at;
    } numbers[] = {{"--self", &o->self},        {"--port", &o->port},          {"--meet", &o->meet_ms},
                   {"--link", &o->link_ms},     {"--warn", &o->stall_warn_ms}, {"--stall", &o->stall_end_ms},
                   {"--grace", &o->grace_ms},   {"--stop", &o->stop_ms},       {"--restarts", &o->max_restarts},
                   {"--pause", &o->restart_ms}, {"--leave", &o->leave_ms}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(numbers[i].name, name) == 0) {
            *numbers[i].at = value;
            return;
        }
    fprintf(stderr, "agent: unknown option %s\n", name);
    exit(2);
}

static void set_option(ty_agent_options *o, const char *name, char *value, const char **address, char **host_text)
{
    if (strcmp(name, "--hosts") == 0)
        *host_text = value;
    else if (strcmp(name, "--address") == 0)
        *address = strcmp(value, "names") == 0 ? NULL : value;
    else if (strcmp(name, "--interface") == 0)
        o->interface = value;
    else if (strcmp(name, "--secret") == 0)
        o->secret = value;
    else if (strcmp(name, "--mpirun") == 0)
        o->mpirun_client = value;
    else if (strcmp(name, "--job") == 0)
        o->job = value;
    else if (strcmp(name, "--record") == 0)
        o->record_folder = value;
    else if (strcmp(name, "--fact") == 0)
        add_fact(o, value);
    else
        set_number(o, name, atoi(value));
}

static int report(const ty_agent_end *end)
{
    printf("end: status %d%s%s generation %d", end->status, end->failed ? " failed" : "",
           end->stopped ? " stopped" : "", end->generation);
    if (end->failed)
        printf(" rank %d host %d signal %d: %s", end->first.rank, end->first.host, end->first.signal, end->first.text);
    putchar('\n');
    return end->status;
}

static int wait_in_vain(const ty_page *page)
{
    signal(SIGTERM, ask);
    printf("up\n");
    fflush(stdout);
    while (!ty_page_is_aborted(page))
        usleep(10000);
    return TOLD_TO_LEAVE;
}

static int be_rank(const char *how, int missing)
{
    const char *rank = getenv("RANK");
    ty_page *page = ty_page_from_environment();
    ty_page_step(page, 811);
    ty_page_phase(page, TY_PHASE_STEP);
    for (uint64_t i = 1; i <= 2; i++) {
        ty_page_begin(page, 0, i, "all-reduce", "dense_1/kernel", (int)i, 4096);
        ty_page_end(page, 0);
    }
    if (atoi(rank ? rank : "0") == missing) {
        ty_page_phase(page, strcmp(how, "stall") == 0 ? TY_PHASE_DATA : TY_PHASE_FINISHED);
    } else {
        ty_page_step(page, 812);
        ty_page_begin(page, 0, 3, "all-reduce", "dense_2/kernel", 3, 4 << 20);
    }
    if (strcmp(how, "leave") == 0 && atoi(rank ? rank : "0") != missing)
        return wait_in_vain(page);
    printf("up\n");
    fflush(stdout);
    while (pause() < 0)
        continue;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return be_rank(argv[2], atoi(argv[3]));
    ty_agent_options o = TY_AGENT_DEFAULTS;
    const char *address = "127.0.0.1";
    char *host_text = NULL;
    o.job = "job";
    o.secret = "secret";
    o.facts = facts;
    o.stopping = stopping;
    o.between = between;
    o.preflight = false;
    o.without_mpi = true;
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--look") == 0)
            o.preflight = true;
        else if (strcmp(argv[i], "--mpi") == 0)
            o.without_mpi = false;
        else if (i + 1 < argc)
            set_option(&o, argv[i], argv[i + 1], &address, &host_text), i++;
    }
    if (!host_text || i + 1 >= argc) {
        fprintf(stderr, "usage: agent --hosts A:N,B:N --self I --port P [options] -- PROGRAM [ARGUMENTS]\n");
        return 2;
    }
    o.n_hosts = parse_hosts(host_text, address);
    o.hosts = hosts;
    o.secret_bytes = strlen(o.secret);
    o.argv = (const char *const *)argv + i + 1;
    struct sigaction action = {.sa_handler = ask};
    sigaction(SIGTERM, &action, NULL);
    ty_error err = {0};
    ty_agent_end end;
    if (ty_log_from_environment(&err) == 0 && ty_agent_run(&o, &end, &err) == 0)
        return report(&end);
    printf("never began: %s\n", err.message);
    return NEVER_BEGAN;
}
