/* local_process.c - variables, ports, cores. */
#define _GNU_SOURCE
#include "entrypoint/local_process.h"

#include "base/home.h"
#include "dist/mishap.h"
#include "entrypoint/launch_variables.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

enum { MORE_VARIABLES = 128, FIRST_PORT = 12000, LAST_PORT = 32000 };

/* ---- variables ---- */

/* Of a job that we are part of ourselves, or that somebody left in the shell. */
static bool is_foreign(const char *variable)
{
    static const char *const names[] = {
        "SM_",
        "SAGEMAKER_",
        "TRAINING_JOB_",
        "RANK=",
        "WORLD_SIZE=",
        "LOCAL_RANK=",
        "LOCAL_WORLD_SIZE=",
        "TF_CONFIG=",
        TY_ADDRESSES_VARIABLE "=",
        TY_SECRET_VARIABLE "=",
        TY_MISHAP_VARIABLE "=",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int find(const ty_local_variables *v, const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < v->n; i++)
        if (strncmp(v->list[i], name, n) == 0 && v->list[i][n] == '=')
            return i;
    return -1;
}

void ty_local_variables_set(ty_local_variables *v, const char *name, const char *value, ty_arena *a)
{
    int at = find(v, name);
    v->list[at < 0 ? v->n++ : at] = ty_arena_printf(a, "%s=%s", name, value);
    v->names[v->n_names++] = name;
}

static void set_job(ty_local_variables *v, const ty_stage *s, ty_arena *a)
{
    const ty_doc *map = ty_doc_find(s->body, "Environment"), *name = ty_doc_find(s->body, "TrainingJobName");
    const ty_field_value *region = &s->job->value[TY_FIELD_REGION];
    ty_local_variables_set(v, "TRAINING_JOB_NAME", name->string, a);
    if (ty_field_is_said(region))
        ty_local_variables_set(v, "AWS_REGION", region->text, a);
    for (size_t i = 0; i < ty_doc_len(map); i++)
        ty_local_variables_set(v, ty_doc_at(map, i)->key, ty_doc_at(map, i)->string, a);
}

void ty_local_variables_init(ty_local_variables *v, const ty_stage *s, const char *fault, ty_arena *a)
{
    size_t n = 0;
    while (environ[n])
        n++;
    size_t room = n + ty_doc_len(ty_doc_find(s->body, "Environment")) + MORE_VARIABLES;
    *v =
        (ty_local_variables){.list = TY_NEW_ARRAY(a, const char *, room), .names = TY_NEW_ARRAY(a, const char *, room)};
    for (size_t i = 0; i < n; i++)
        if (!is_foreign(environ[i]))
            v->list[v->n++] = environ[i];
    set_job(v, s, a);
    if (fault)
        ty_local_variables_set(v, TY_MISHAP_VARIABLE, fault, a);
}

void ty_local_variables_copy(const ty_local_variables *from, ty_local_variables *to, ty_arena *a)
{
    size_t room = (size_t)from->n + MORE_VARIABLES;
    *to = (ty_local_variables){TY_NEW_ARRAY(a, const char *, room), from->names, from->n, from->n_names};
    memcpy(to->list, from->list, (size_t)from->n * sizeof *from->list);
}

/* ---- who is who ---- */

const char *ty_local_secret(ty_arena *a)
{
    unsigned char b[16];
    char *text = ty_arena_strdup(a, ""), *at = text;
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return NULL;
    for (size_t i = 0; i < sizeof b; i++)
        at = text = ty_arena_printf(a, "%s%02x", at, b[i]);
    return text;
}

static bool is_free(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool bound = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

/* Below the ports that the kernel gives to whoever connects. Those who start at once begin far from each other. */
int ty_local_addresses(const ty_stage *s, const char **out, ty_arena *a, ty_error *err)
{
    unsigned start = 0;
    const char *text = "";
    int found = 0, span = LAST_PORT - FIRST_PORT;
    if (getrandom(&start, sizeof start, 0) < 0)
        return ty_error_set(err, TY_E_INTERNAL, "no random numbers");
    for (int i = 0; i < span && found < s->n_hosts; i++) {
        int port = FIRST_PORT + (int)((start + (unsigned)i) % (unsigned)span);
        if (is_free(port)) {
            text = ty_arena_printf(a, "%s%s%s=127.0.0.1:%d", text, found ? "," : "", s->hosts[found].name, port);
            found++;
        }
    }
    *out = text;
    return found == s->n_hosts ? 0 : ty_error_set(err, TY_E_LIMIT, "no free ports for %d hosts", s->n_hosts);
}

int ty_local_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int ty_local_command(const char *const *words, const char *const **out, ty_arena *a, ty_error *err)
{
    const char *self = ty_home_program(), *slash = strrchr(self, '/');
    int n = 0;
    while (words[n])
        n++;
    if (!slash)
        return ty_error_set(err, TY_E_INTERNAL, "cannot tell where this program lies: /proc/self/exe");
    const char **argv = TY_NEW_ARRAY(a, const char *, n + 3);
    argv[0] = ty_arena_printf(a, "%.*s/train", (int)(slash - self), self);
    argv[1] = "train";
    memcpy(argv + 2, words, (size_t)n * sizeof *argv);
    *out = argv;
    return 0;
}

int ty_local_feeder(const ty_stage_host *h, const ty_stage_feed *f, const char *const **out, ty_arena *a, ty_error *err)
{
    const char *self = ty_home_program(), **argv = TY_NEW_ARRAY(a, const char *, 16);
    int n = 0;
    if (!strchr(self, '/'))
        return ty_error_set(err, TY_E_INTERNAL, "cannot tell where this program lies: /proc/self/exe");
    argv[n++] = self;
    argv[n++] = "data";
    argv[n++] = "serve-pipe";
    argv[n++] = f->from;
    argv[n++] = ty_arena_printf(a, "--into=%s/input/data", h->tree);
    argv[n++] = ty_arena_printf(a, "--channel=%s", f->channel);
    argv[n++] = ty_arena_printf(a, "--shard=%d/%d", f->share, f->n_shares);
    if (f->wraps)
        argv[n++] = "--wrap";
    if (!f->inflates)
        argv[n++] = "--compressed";
    if (f->seed)
        argv[n++] = ty_arena_printf(a, "--shuffle=%s", f->seed);
    if (f->attributes)
        argv[n++] = ty_arena_printf(a, "--attributes=%s", f->attributes);
    *out = argv;
    return 0;
}
