/* mishap.c - see mishap.h. */
#define _GNU_SOURCE
#include "dist/mishap.h"

#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *word;
    int signal;
} kinds[] = {{"kill", SIGKILL}, {"stop", SIGSTOP}, {"term", SIGTERM}};

static int refuse(const char *text, ty_error *err)
{
    ty_error_set(err, TY_E_USAGE, "a fault looks like kill:rank=1,step=50, not \"%.80s\"", text);
    return ty_error_help(err, "kill, stop (the rank hangs) or term (it is told to stop); steps count from 1");
}

/* Reads "NAME=NUMBER" at *at and goes behind it. */
static bool take_number(const char **at, const char *name, int64_t *out)
{
    size_t n = strlen(name);
    char *end;
    if (strncmp(*at, name, n) != 0 || (*at)[n] != '=' || (*at)[n + 1] < '0' || (*at)[n + 1] > '9')
        return false;
    errno = 0;
    *out = strtoll(*at + n + 1, &end, 10);
    *at = end;
    return errno == 0;
}

int ty_mishap_parse(const char *text, ty_mishap *out, ty_error *err)
{
    const char *at = strchr(text, ':');
    int64_t rank = -1, step = -1;
    *out = (ty_mishap){0};
    for (size_t i = 0; at && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strlen(kinds[i].word) == (size_t)(at - text) && strncmp(text, kinds[i].word, (size_t)(at - text)) == 0)
            out->signal = kinds[i].signal;
    if (out->signal == 0)
        return refuse(text, err);
    do {
        at++;
        if (!take_number(&at, "rank", &rank) && !take_number(&at, "step", &step))
            return refuse(text, err);
    } while (*at == ',');
    if (*at || rank < 0 || rank > 1000000 || step < 1)
        return refuse(text, err);
    out->rank = (int)rank;
    out->step = step;
    return 0;
}

void ty_mishap_from_environment(ty_mishap *out)
{
    const char *text = getenv(TY_MISHAP_VARIABLE), *rank = getenv("RANK");
    ty_error err = {0};
    *out = (ty_mishap){0};
    if (!text || !*text)
        return;
    if (ty_mishap_parse(text, out, &err) < 0)
        ty_log_warning("fault", TY_MISHAP_VARIABLE ": %s", err.message);
    if (err.code != TY_E_NONE || out->rank != (rank ? atoi(rank) : 0))
        out->signal = 0;
}

void ty_mishap_meet(ty_mishap *m, int64_t step)
{
    int number = m->signal;
    if (number == 0 || step < m->step)
        return;
    m->signal = 0;
    ty_log_warning("fault", TY_MISHAP_MARK " rank %d gets signal %d in step %lld", m->rank, number, (long long)step);
    kill(getpid(), number);
}
