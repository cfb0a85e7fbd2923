/* ranks_server.c - see ranks_server.h. The server itself is one a process and stays when a job ends: libpmix is not
 * made for being closed and opened again while its clients' sockets are still around. */
#define _GNU_SOURCE
#include "dist/agent/ranks_server.h"

#include "base/arena.h"
#include "dist/agent/pmix.h"
#include "dist/agent/ranks_folder.h"
#include "dist/plugin.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ABORTS = 8 };            /* the first ones; what comes later is their consequence */
enum { MAX_BLOB_BYTES = 16 << 20 }; /* 50 to 140 bytes a rank were measured */

/* The server of this process. */
static struct {
    const ty_pmix *pmix;
    ty_ranks_folder folder;
    bool is_open;
} server;

struct ty_ranks_server {
    ty_pmix_job *job;
    int wake_fd;
    pthread_mutex_t lock; /* guards what follows */
    ty_buf blob;
    bool has_fence, is_answered;
    uint64_t fence; /* of the blob, or the one that was taken last */
    uint64_t n_fences;
    ty_ranks_abort aborts[MAX_ABORTS];
    int n_aborts, n_taken;
};

static void wake(const ty_ranks_server *s)
{
    uint64_t one = 1;
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written; /* fails only when it is already as awake as it gets */
}

static void on_fence(void *ctx, const void *blob, size_t n_bytes)
{
    ty_ranks_server *s = ctx;
    pthread_mutex_lock(&s->lock);
    ty_buf_clear(&s->blob);
    ty_buf_add(&s->blob, blob, n_bytes);
    s->fence = s->n_fences++;
    s->has_fence = true;
    s->is_answered = false;
    pthread_mutex_unlock(&s->lock);
    wake(s);
}

static void on_abort(void *ctx, int rank, int status, const char *text)
{
    ty_ranks_server *s = ctx;
    pthread_mutex_lock(&s->lock);
    if (s->n_aborts < MAX_ABORTS) {
        ty_ranks_abort *a = &s->aborts[s->n_aborts++];
        *a = (ty_ranks_abort){.rank = rank, .status = status};
        snprintf(a->text, sizeof a->text, "%s", text);
    }
    pthread_mutex_unlock(&s->lock);
    wake(s);
}

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder == '/' ? folder : "/tmp";
}

static int open_server(const char *host, ty_error *err)
{
    if (server.is_open)
        return 0;
    if (ty_plugin_open("pmix", TY_PMIX_VERSION, (const void **)&server.pmix, err) < 0 ||
        ty_ranks_folder_make(&server.folder, temporary_folder(), err) < 0)
        return -1;
    if (server.pmix->open(server.folder.path, host, err) < 0) {
        ty_ranks_folder_remove(&server.folder);
        return -1;
    }
    server.is_open = true;
    return 0;
}

void ty_ranks_shutdown(void)
{
    if (!server.is_open)
        return;
    server.pmix->close();
    ty_ranks_folder_remove(&server.folder);
    server.is_open = false;
}

/* The name keeps jobs apart that Open MPI would take for one: it makes the number in its file names from it. */
static int open_job(ty_ranks_server *s, const ty_ranks_options *o, const char *folder, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    const char **hosts = TY_NEW_ARRAY(&arena, const char *, o->n_hosts);
    int *ranks = TY_NEW_ARRAY(&arena, int, o->n_hosts);
    for (int i = 0; i < o->n_hosts; i++) {
        hosts[i] = o->hosts[i].name;
        ranks[i] = o->hosts[i].ranks;
    }
    const ty_pmix_map map = {
        .name = ty_arena_printf(&arena, "trainyard-%.128s-%d-%016" PRIx64, o->job, o->generation, o->nonce),
        .hosts = hosts,
        .ranks = ranks,
        .n_hosts = o->n_hosts,
        .self = o->self,
        .folder = folder,
    };
    const ty_pmix_hooks hooks = {.ctx = s, .fence = on_fence, .aborted = on_abort};
    int rc = server.pmix->job_open(&map, &hooks, &s->job, err);
    ty_arena_fini(&arena);
    return rc;
}

int ty_ranks_server_open(ty_ranks_server **out, const ty_ranks_options *o, const char *folder, int wake_fd,
                         ty_error *err)
{
    *out = NULL;
    if (open_server(o->hosts[o->self].name, err) < 0)
        return ty_error_wrap(err, "starting ranks");
    ty_ranks_server *s = calloc(1, sizeof *s);
    if (!s)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a PMIx job");
    s->wake_fd = wake_fd;
    ty_buf_init(&s->blob, MAX_BLOB_BYTES);
    pthread_mutex_init(&s->lock, NULL);
    if (open_job(s, o, folder, err) < 0) {
        ty_ranks_server_close(s);
        return ty_error_wrap(err, "starting ranks");
    }
    *out = s;
    return 0;
}

int ty_ranks_server_environment(ty_ranks_server *s, int rank, char ***variables, ty_error *err)
{
    return server.pmix->environment(s->job, rank, variables, err);
}

void ty_ranks_server_free_environment(ty_ranks_server *s, char **variables)
{
    (void)s;
    server.pmix->free_environment(variables);
}

bool ty_ranks_server_take_fence(ty_ranks_server *s, uint64_t *fence, ty_buf *blob)
{
    pthread_mutex_lock(&s->lock);
    bool has = s->has_fence;
    s->has_fence = false;
    *fence = s->fence;
    if (has)
        ty_buf_add(blob, s->blob.data, s->blob.len);
    pthread_mutex_unlock(&s->lock);
    return has;
}

bool ty_ranks_server_take_abort(ty_ranks_server *s, ty_ranks_abort *abort)
{
    pthread_mutex_lock(&s->lock);
    bool has = s->n_taken < s->n_aborts;
    if (has)
        *abort = s->aborts[s->n_taken++];
    pthread_mutex_unlock(&s->lock);
    return has;
}

void ty_ranks_server_answer(ty_ranks_server *s, uint64_t fence, const void *all, size_t n_bytes)
{
    pthread_mutex_lock(&s->lock);
    bool is_open = s->n_fences && s->fence == fence && !s->is_answered;
    s->is_answered = s->is_answered || is_open;
    pthread_mutex_unlock(&s->lock);
    if (is_open) /* without the lock: the next fence may come from inside */
        server.pmix->fence_done(s->job, all, n_bytes);
}

void ty_ranks_server_close(ty_ranks_server *s)
{
    if (!s)
        return;
    server.pmix->job_close(s->job);
    ty_buf_fini(&s->blob);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
