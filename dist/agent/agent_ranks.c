/* agent_ranks.c - the ranks of this host as the agent sees them: started, read once a second, told of. */
#define _GNU_SOURCE
#include "dist/agent/agent_state.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINES_AHEAD_BYTES = 4 << 20, RECORD_BYTES = 1 << 20 };

/* ---- memory ---- */

static int64_t read_value(const char *path, const char *key)
{
    char line[256];
    int64_t value = -1;
    FILE *file = fopen(path, "re");
    while (file && value < 0 && fgets(line, sizeof line, file)) {
        const char *at = key[0] ? strstr(line, key) : line;
        if (at && sscanf(at + strlen(key), "%ld", &value) != 1)
            value = -1;
    }
    if (file)
        fclose(file);
    return value;
}

/* Of the host, or of the container's limit where that is closer: 0 to 100. */
int host_memory_percent(void)
{
    int64_t total = read_value("/proc/meminfo", "MemTotal:"), left = read_value("/proc/meminfo", "MemAvailable:");
    int64_t limit = read_value("/sys/fs/cgroup/memory.max", ""), used = read_value("/sys/fs/cgroup/memory.current", "");
    int host = total > 0 && left >= 0 && left <= total ? (int)((total - left) * 100 / total) : 0;
    int group = limit > 0 && used >= 0 ? (int)(used >= limit ? 100 : used * 100 / limit) : 0;
    return host > group ? host : group;
}

/* ---- hooks ---- */

static void on_fence(void *ctx, uint64_t number, const void *blob, size_t n_bytes)
{
    agent *a = ctx;
    ty_buf b;
    ty_buf_init(&b, TY_LINK_PAYLOAD_BYTES);
    ty_put_number(&b, (uint64_t)a->generation, 4);
    ty_put_number(&b, number, 8);
    ty_buf_add(&b, n_bytes ? blob : "", n_bytes);
    agent_tell_leader(a, TY_MESSAGE_FENCE, &b);
    ty_buf_fini(&b);
}

/* The leader shows the lines of all ranks. Where it cannot take them so fast the ranks that write them wait, as they
 * do for whoever reads our own output: no line is lost, and none waits in memory without bound. */
static void on_lines(void *ctx, int rank, int fd, const char *lines, size_t n_bytes)
{
    agent *a = ctx;
    (void)rank;
    if (a->leads || !a->o->gather || !a->to_leader)
        return;
    ty_buf b;
    ty_buf_init(&b, TY_LINK_PAYLOAD_BYTES);
    ty_put_number(&b, (uint64_t)fd, 1);
    ty_buf_add(&b, lines, n_bytes);
    if (!b.failed) {
        agent_tell_leader(a, TY_MESSAGE_LINES, &b);
        a->lines_sent += n_bytes;
    }
    if (a->ranks && a->lines_sent - a->lines_taken > LINES_AHEAD_BYTES)
        ty_ranks_hold(a->ranks, true);
    ty_buf_fini(&b);
}

void own_ranks_taken(agent *a, uint64_t n_bytes)
{
    a->lines_taken = n_bytes;
    if (a->ranks && a->lines_sent - a->lines_taken <= LINES_AHEAD_BYTES)
        ty_ranks_hold(a->ranks, false);
}

static void tell_exit(agent *a, int rank, pid_t pid, int wait_status, bool aborted, const char *text)
{
    ty_page_view view;
    ty_page_read(a->pages[rank - a->first_rank], &view);
    int memory = host_memory_percent();
    ty_exit e = {.generation = a->generation,
                 .rank = rank,
                 .pid = pid,
                 .wait_status = wait_status,
                 .aborted = aborted,
                 .memory_percent = memory > a->memory_percent ? memory : a->memory_percent,
                 .step = view.step,
                 .phase = view.phase};
    snprintf(e.text, sizeof e.text, "%s", view.has_error ? view.error : text);
    ty_buf b;
    ty_buf_init(&b, 4096);
    ty_put_exit(&b, &e);
    agent_tell_leader(a, TY_MESSAGE_EXIT, &b);
    ty_buf_fini(&b);
}

static void on_ended(void *ctx, int rank, pid_t pid, int wait_status)
{
    tell_exit(ctx, rank, pid, wait_status, false, "");
}

static void on_aborted(void *ctx, int rank, int status, const char *text)
{
    agent *a = ctx;
    int seen = status & 255 ? status & 255 : 1;
    tell_exit(a, rank, ty_ranks_pid(a->ranks, rank), seen << 8, true, text ? text : "");
}

/* ---- start and end ---- */

static void ranks_ready(agent *a, void *owner, uint32_t events)
{
    (void)owner;
    (void)events;
    ty_error err = {0};
    if (a->ranks && ty_ranks_turn(a->ranks, &err) < 0)
        ty_log_error("dist", "%s", err.message);
}

void own_ranks_tell_ends(agent *a)
{
    if (a->ranks)
        ty_ranks_look(a->ranks);
    ranks_ready(a, NULL, 0);
}

static int make_pages(agent *a, const char **names, ty_error *err)
{
    for (int i = 0; i < a->n_own; i++) {
        char path[64];
        if (ty_page_new(&a->pages[i], &a->page_fds[i], err) < 0)
            return -1;
        ty_page_path(a->page_fds[i], path);
        names[i] = ty_arena_strdup(&a->arena, path);
    }
    return 0;
}

/* The map as the launcher wants it: hosts without ranks are none for it. */
static void fill_map(agent *a, ty_ranks_host *hosts, ty_ranks_options *o)
{
    int n = 0;
    for (int i = 0; i < a->o->n_hosts; i++) {
        if (i == a->o->self)
            o->self = n;
        if (a->o->hosts[i].ranks > 0)
            hosts[n++] = (ty_ranks_host){a->host_name[i], a->o->n_hosts > 1 ? a->map.hosts[i].address : NULL,
                                         a->o->hosts[i].ranks, a->o->hosts[i].servers};
    }
    o->hosts = hosts;
    o->n_hosts = n;
}

/* ---- mpirun ---- */

static void remote_send(void *ctx, int to, const void *frame, size_t n_bytes)
{
    agent *a = ctx;
    ty_buf b;
    ty_buf_init(&b, TY_LINK_PAYLOAD_BYTES);
    ty_put_number(&b, (uint64_t)a->generation, 4);
    ty_buf_add(&b, frame, n_bytes);
    if (a->leads)
        agent_tell_host(a, to, TY_MESSAGE_REMOTE, &b);
    else
        agent_tell_leader(a, TY_MESSAGE_REMOTE, &b);
    ty_buf_fini(&b);
}

static void remote_ready(agent *a, void *owner, uint32_t events)
{
    (void)owner;
    (void)events;
    ty_error err = {0};
    if (a->remote && ty_remote_turn(a->remote, &err) < 0)
        ty_log_error("dist", "%s", err.message);
}

static int own_remote_open(agent *a, ty_error *err)
{
    own_remote_free(a);
    if (!a->o->mpirun_client)
        return 0;
    const ty_remote_options o = {
        .hosts = a->host_name, .n_hosts = a->o->n_hosts, .self = a->o->self, .ctx = a, .send = remote_send};
    if (ty_remote_open(&o, &a->remote, err) < 0)
        return -1;
    a->remote_source = (source){remote_ready, NULL};
    return agent_watch(a, ty_remote_fd(a->remote), &a->remote_source, EPOLLIN, true, err);
}

void own_remote_free(agent *a)
{
    if (a->remote)
        epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, ty_remote_fd(a->remote), NULL);
    ty_remote_free(a->remote);
    a->remote = NULL;
}

int own_remote_on(agent *a, int from, ty_reader *r, ty_error *err)
{
    int generation = (int)ty_get_number(r, 4);
    if (r->failed)
        return ty_error_set(err, TY_E_DATA, "message \"remote\" is too short");
    if (!a->remote || generation != a->generation)
        return 0; /* of an mpirun that is gone */
    return ty_remote_received(a->remote, from, r->at, (size_t)(r->end - r->at), err);
}

int own_ranks_start(agent *a, ty_error *err)
{
    if (own_remote_open(a, err) < 0)
        return -1;
    if (a->n_own == 0)
        return 0;
    const char **names = TY_NEW_ARRAY(&a->arena, const char *, a->n_own);
    ty_ranks_host *hosts = TY_NEW_ARRAY(&a->arena, ty_ranks_host, a->o->n_hosts);
    if (make_pages(a, names, err) < 0)
        return -1;
    ty_ranks_options o = {.job = a->o->job,
                          .generation = a->generation,
                          .nonce = a->map.nonce,
                          .interface = a->o->n_hosts > 1 ? a->hello.interface : NULL,
                          .master_port = a->o->master_port,
                          .tf_config = a->o->tf_config,
                          .cores = a->hello.cores,
                          .argv = a->o->argv,
                          .envp = a->remote ? (const char *const *)ty_remote_environment(
                                                  a->remote, &a->arena, a->o->envp, a->o->mpirun_client)
                                            : a->o->envp,
                          .plain = a->remote != NULL,
                          .cwd = a->o->cwd,
                          .page = names,
                          .without_mpi = a->o->without_mpi,
                          .terminal = a->o->terminal,
                          .quiet = a->o->quiet,
                          .ctx = a,
                          .fence = on_fence,
                          .lines = on_lines,
                          .ended = on_ended,
                          .aborted = on_aborted};
    fill_map(a, hosts, &o);
    if (ty_ranks_start(&o, &a->ranks, err) < 0)
        return -1;
    a->ranks_source = (source){ranks_ready, NULL};
    return agent_watch(a, ty_ranks_fd(a->ranks), &a->ranks_source, EPOLLIN, true, err);
}

void own_ranks_abort(agent *a)
{
    for (int i = 0; i < a->n_own; i++)
        ty_page_abort(a->pages[i]);
}

void own_ranks_free(agent *a)
{
    if (a->ranks)
        epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, ty_ranks_fd(a->ranks), NULL);
    ty_ranks_free(a->ranks);
    a->ranks = NULL;
    for (int i = 0; i < a->n_own; i++) {
        ty_page_close(a->pages[i]);
        a->pages[i] = NULL;
        if (a->page_fds[i] >= 0)
            close(a->page_fds[i]);
        a->page_fds[i] = -1;
    }
}

/* ---- pages ---- */

/* Whether a signal has stopped it: the letter behind the name in /proc/PID/stat. */
static bool is_stopped(pid_t pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    const char *name_end = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file)
        fclose(file);
    return name_end && (name_end[1] && (name_end[2] == 'T' || name_end[2] == 't'));
}

void own_ranks_tell_pages(agent *a)
{
    ty_buf b;
    ty_buf_init(&b, TY_LINK_PAYLOAD_BYTES);
    ty_put_number(&b, (uint64_t)a->generation, 4);
    ty_put_number(&b, (uint64_t)(a->ranks ? a->n_own : 0), 4);
    for (int i = 0; a->ranks && i < a->n_own; i++) {
        ty_page_view view;
        ty_page_read(a->pages[i], &view);
        ty_put_number(&b, (uint64_t)(a->first_rank + i), 4);
        ty_put_number(&b, is_stopped(ty_ranks_pid(a->ranks, a->first_rank + i)), 1);
        ty_put_page(&b, &view);
    }
    agent_tell_leader(a, TY_MESSAGE_PAGES, &b);
    ty_buf_fini(&b);
}

static void add_operation(ty_buf *b, const ty_page_op *op)
{
    ty_buf_addf(b, "{\"stream\":%d,\"number\":%llu,\"kind\":", op->stream, (unsigned long long)op->number);
    ty_json_add_string(b, op->kind, 0);
    ty_buf_adds(b, ",\"name\":");
    ty_json_add_string(b, op->name, 0);
    ty_buf_addf(b, ",\"bucket\":%d,\"bytes\":%lld,\"step\":%lld,\"begun_us\":%lld,\"ended_us\":%lld}\n", op->bucket,
                (long long)op->n_bytes, (long long)op->step, (long long)op->begun_us, (long long)op->ended_us);
}

static void record_rank(agent *a, int i, ty_page_op *ops)
{
    ty_error err = {0};
    ty_buf b;
    int n = ty_page_ring(a->pages[i], ops, TY_PAGE_RING);
    ty_buf_init(&b, RECORD_BYTES);
    for (int k = 0; k < n; k++)
        add_operation(&b, &ops[k]);
    char *path = ty_arena_printf(&a->arena, "%s/operations-rank-%d.jsonl", a->o->record_folder, a->first_rank + i);
    if (n > 0 && ty_file_write(path, b.data, b.len, 0644, &err) < 0)
        ty_log_warning("dist", "the last operations of rank %d are not kept: %s", a->first_rank + i, err.message);
    ty_buf_fini(&b);
}

void own_ranks_record(agent *a)
{
    if (!a->o->record_folder || !a->ranks)
        return;
    ty_page_op *ops = TY_NEW_ARRAY(&a->arena, ty_page_op, TY_PAGE_RING);
    for (int i = 0; i < a->n_own; i++)
        record_rank(a, i, ops);
}
