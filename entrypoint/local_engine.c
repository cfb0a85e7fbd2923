/* local_engine.c - command lines for `docker`. */
#define _GNU_SOURCE
#include "entrypoint/local_engine.h"

#include "entrypoint/spawn.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 512, MAX_OUTPUT = 1 << 20 };

/* ---- asking ---- */

/* The command's output; its status, -1 if it cannot be run. */
static int ask(const char *const *argv, ty_buf *out, ty_error *err)
{
    int status;
    ty_buf_init(out, MAX_OUTPUT);
    if (ty_spawn_capture(argv, NULL, false, out, &status, err) < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *last_line(const ty_buf *text, ty_arena *a)
{
    size_t end = text->len;
    while (end > 0 && (text->data[end - 1] == '\n' || text->data[end - 1] == ' '))
        end--;
    size_t begin = end;
    while (begin > 0 && text->data[begin - 1] != '\n')
        begin--;
    return end > begin ? ty_arena_strndup(a, text->data + begin, end - begin < 300 ? end - begin : 300) : "no answer";
}

bool ty_engine_has(const char *image, ty_arena *a, const char **why)
{
    const char *const argv[] = {"docker", "image", "inspect", "--format", "{{.Id}}", image, NULL};
    ty_buf text;
    ty_error err = {0};
    int status = ask(argv, &text, &err);
    if (status < 0)
        *why = "there is no command docker";
    else if (status != 0)
        *why = ty_arena_printf(a, "docker has no image %s: %s", image, last_line(&text, a));
    ty_buf_fini(&text);
    return status == 0;
}

static bool is_rootless(void)
{
    const char *const argv[] = {"docker", "info", "--format", "{{json .}}", NULL};
    ty_buf text;
    ty_error err = {0};
    bool found = ask(argv, &text, &err) == 0 &&
                 (strstr(text.data, "name=rootless") != NULL || strstr(text.data, "\"rootless\":true") != NULL);
    ty_buf_fini(&text);
    return found;
}

/* ---- network ---- */

int ty_engine_open(ty_engine *e, const char *image, const char *options, ty_arena *a, ty_error *err)
{
    unsigned char random[4] = {0};
    ty_buf text;
    if (getrandom(random, sizeof random, 0) < 0)
        return ty_error_set(err, TY_E_INTERNAL, "no random numbers");
    *e = (ty_engine){.image = image, .options = options};
    e->network =
        ty_arena_printf(a, "trainyard-%d-%02x%02x%02x%02x", (int)getpid(), random[0], random[1], random[2], random[3]);
    e->user = is_rootless() ? "0:0" : ty_arena_printf(a, "%u:%u", (unsigned)getuid(), (unsigned)getgid());
    const char *const argv[] = {"docker", "network", "create", e->network, NULL};
    int status = ask(argv, &text, err);
    e->has_network = status == 0;
    if (status > 0) {
        ty_error_set(err, TY_E_SERVICE, "docker makes no network for the hosts: %s", last_line(&text, a));
        ty_error_help(err, "--no-docker runs the hosts as processes");
    }
    ty_buf_fini(&text);
    return status == 0 ? 0 : -1;
}

/* ---- hosts ---- */

const char *ty_engine_container(const ty_engine *e, const ty_stage_host *h, ty_arena *a)
{
    return ty_arena_printf(a, "%s-%s", e->network, h->name);
}

typedef struct words {
    const char **list;
    int n;
    ty_arena *a;
} words;

static void add(words *w, const char *word)
{
    if (w->n < MAX_WORDS)
        w->list[w->n++] = word;
}

static void add_pair(words *w, const char *option, const char *value)
{
    add(w, option);
    add(w, value);
}

static void add_mounts(words *w, const ty_stage_host *h)
{
    add_pair(w, "-v", ty_arena_printf(w->a, "%s:/opt/ml", h->tree));
    for (int i = 0; i < h->n_mounts; i++)
        add_pair(w, "-v",
                 ty_arena_printf(w->a, "%s:%s%s", h->mounts[i].from, h->mounts[i].to,
                                 h->mounts[i].is_writable ? "" : ":ro"));
}

static void add_split(words *w, const char *text)
{
    char *copy = ty_arena_strdup(w->a, text ? text : ""), *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        add(w, word);
}

/* From i on. */
static void add_list(words *w, const ty_doc *list, size_t i)
{
    for (; i < ty_doc_len(list); i++)
        add(w, ty_doc_at(list, i)->string);
}

const char *const *ty_engine_command(const ty_engine *e, const ty_stage *s, const ty_stage_host *h,
                                     const char *const *names, const char *const *arguments, ty_arena *a)
{
    words w = {TY_NEW_ARRAY(a, const char *, MAX_WORDS + 1), 0, a};
    const ty_doc *how = ty_doc_find(s->body, "AlgorithmSpecification");
    const ty_doc *entrypoint = ty_doc_find(how, "ContainerEntrypoint");
    add_pair(&w, "docker", "run");
    add(&w, "--rm");
    add_pair(&w, "--name", ty_engine_container(e, h, a));
    add_pair(&w, "--hostname", h->name);
    add_pair(&w, "--network", e->network);
    add_pair(&w, "--network-alias", h->name);
    add_pair(&w, "--user", e->user);
    add_pair(&w, "--stop-timeout", "120");
    add_mounts(&w, h);
    for (int i = 0; names[i]; i++)
        add_pair(&w, "-e", names[i]);
    if (entrypoint)
        add_pair(&w, "--entrypoint", ty_doc_at(entrypoint, 0)->string);
    add_split(&w, e->options);
    add(&w, e->image);
    if (!entrypoint)
        add(&w, "train");
    add_list(&w, entrypoint, 1);
    add_list(&w, ty_doc_find(how, "ContainerArguments"), 0);
    for (int i = 0; arguments[i]; i++)
        add(&w, arguments[i]);
    return w.list;
}

/* ---- ends ---- */

void ty_engine_kill(const char *container)
{
    const char *const argv[] = {"docker", "rm", "-f", container, NULL};
    ty_spawn_options o = TY_SPAWN_DEFAULTS;
    ty_error err = {0};
    pid_t pid;
    o.argv = argv;
    o.stdout_fd = STDERR_FILENO;
    ty_spawn(&o, &pid, NULL, &err);
}

static void ask_quietly(const char *const *argv)
{
    ty_buf text;
    ty_error err = {0};
    ask(argv, &text, &err);
    ty_buf_fini(&text);
}

/* --rm has removed containers that ended by themselves; whose client died before it got so far is removed here. */
void ty_engine_close(ty_engine *e, const ty_stage *s, ty_arena *a)
{
    if (!e->has_network)
        return;
    for (int i = 0; i < s->n_hosts; i++) {
        const char *const argv[] = {"docker", "rm", "-f", "-v", ty_engine_container(e, &s->hosts[i], a), NULL};
        ask_quietly(argv);
    }
    const char *const argv[] = {"docker", "network", "rm", e->network, NULL};
    ask_quietly(argv);
    e->has_network = false;
}
