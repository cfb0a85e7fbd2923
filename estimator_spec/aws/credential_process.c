/* credential_process.c - a program of the user's that prints credentials as JSON: {"Version": 1, "AccessKeyId": ...}.
 *
 * Its words are split as a shell would, but no shell is started. It has the terminal: it may ask for a code.
 */
#define _GNU_SOURCE
#include "base/child.h"
#include "base/json.h"
#include "estimator_spec/aws/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 64, MAX_OUTPUT_BYTES = 1 << 16 };

/* One word of POSIX's shell: quotes and backslashes are taken off. NULL with *at unchanged: a quote without its end. */
static char *next_word(ty_arena *arena, const char **at)
{
    char *word = ty_arena_alloc(arena, strlen(*at) + 1), *out = word, quote = 0;
    const char *c = *at;
    for (; *c && (quote || !strchr(" \t\n", *c)); c++) {
        if (!quote && (*c == '\'' || *c == '"'))
            quote = *c;
        else if (quote && *c == quote)
            quote = 0;
        else if (*c == '\\' && c[1] && (!quote || (quote == '"' && strchr("\\\"$`", c[1]))))
            *out++ = *++c;
        else
            *out++ = *c;
    }
    if (quote)
        return NULL;
    *at = c;
    return word;
}

static int split(ty_arena *arena, const char *command, const char **words)
{
    int n = 0;
    for (const char *at = command;;) {
        at += strspn(at, " \t\n");
        if (!*at)
            break;
        if (n == MAX_WORDS || !(words[n++] = next_word(arena, &at)))
            return -1;
    }
    words[n] = NULL;
    return n > 0 ? 0 : -1;
}

static int take_stdout(void *ctx)
{
    return dup2(*(const int *)ctx, STDOUT_FILENO) < 0 ? -1 : 0;
}

static int read_all(int fd, ty_buf *out)
{
    for (;;) {
        char *room = ty_buf_reserve(out, 4096);
        if (!room)
            return -1;
        ssize_t n = read(fd, room, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : 0;
        out->len += (size_t)n;
        out->data[out->len] = 0;
    }
}

static int run(const char *const *words, ty_buf *out, int *status, ty_error *err)
{
    int fds[2];
    pid_t pid;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return ty_error_errno(err, TY_E_NONE, errno, "pipe");
    ty_child_program program = {.argv = words, .prepare = take_stdout, .ctx = &fds[1]};
    int rc = ty_child_start(&program, &pid, NULL, err);
    close(fds[1]);
    if (rc < 0) {
        close(fds[0]);
        return -1;
    }
    if (read_all(fds[0], out) < 0)
        rc = ty_error_set(err, TY_E_CREDENTIALS, "it prints more than credentials");
    close(fds[0]); /* it may still be writing: that ends it */
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
    return rc;
}

static int check_version(const ty_doc *d, const char *source, ty_error *err)
{
    const ty_doc *version = ty_doc_find(d, "Version");
    if (version && version->kind == TY_DOC_INT && version->integer == 1)
        return 0;
    return ty_error_set(err, TY_E_CREDENTIALS, "%s: expected a JSON object with \"Version\": 1", source);
}

static int take_output(const ty_provider_place *at, const ty_buf *text, const char *source, ty_credentials *out,
                       ty_error *err)
{
    ty_doc *d = NULL;
    ty_error own = {0};
    if (ty_json_parse(at->arena, source, text->data, text->len, NULL, &d, &own) < 0)
        d = NULL;
    if (check_version(d, source, err) < 0)
        return -1;
    return ty_provider_fill_json(out, at->arena, text->data, text->len, "SessionToken", source, err);
}

int ty_provider_process(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const char *command = ty_profile_get(at->profile, at->name, "credential_process"), *words[MAX_WORDS + 1];
    const char *source = ty_arena_printf(at->arena, "credential_process of profile \"%s\"", at->name);
    ty_error own = {0};
    ty_buf text;
    int status = 0;
    if (!command)
        return 0;
    if (split(at->arena, command, words) < 0)
        return ty_error_set(err, TY_E_CREDENTIALS, "%s: no command, too many words, or a quote without its end",
                            source);
    ty_buf_init(&text, MAX_OUTPUT_BYTES);
    int rc = run(words, &text, &status, &own);
    if (rc < 0)
        ty_error_set(err, TY_E_CREDENTIALS, "%s: %s", source, own.message);
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        rc = ty_error_set(err, TY_E_CREDENTIALS, "%s: \"%s\" failed with status %d", source, words[0],
                          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    else
        rc = take_output(at, &text, source, out, err);
    explicit_bzero(text.data, text.len);
    ty_buf_fini(&text);
    return rc;
}
