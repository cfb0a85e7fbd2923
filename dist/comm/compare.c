/* compare.c - texts of all ranks, compared. Hashes first; where they differ, rank 0's text goes to all, each finds its
 * own first difference, and those are told to all. */
#include "dist/comm/comm_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 240 };

/* One rank's first line that differs from rank 0's. Travels as bytes. */
typedef struct difference {
    int64_t line; /* counted from 1; 0: none */
    char mine[LINE_BYTES], first[LINE_BYTES];
} difference;

static uint64_t fnv1a(const char *text)
{
    uint64_t h = 0xcbf29ce484222325;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3;
    return h;
}

static void take_line(const char **text, char out[LINE_BYTES])
{
    if (!**text) {
        snprintf(out, LINE_BYTES, "ends before");
        return;
    }
    size_t n = strcspn(*text, "\n");
    snprintf(out, LINE_BYTES, "%.*s", (int)(n < LINE_BYTES ? n : LINE_BYTES), *text);
    *text += n;
    *text += **text == '\n';
}

/* Whole lines are compared, also beyond what is shown of them. */
static difference first_difference(const char *mine, const char *first)
{
    difference d = {.line = 1};
    for (; *mine || *first; d.line++) {
        size_t n = strcspn(mine, "\n"), m = strcspn(first, "\n");
        bool same = n == m && memcmp(mine, first, n) == 0 && *mine && *first;
        take_line(&mine, d.mine);
        take_line(&first, d.first);
        if (!same)
            return d;
    }
    return (difference){0};
}

static int gather(ty_comm *c, const void *own, size_t bytes, void *all, ty_error *err)
{
    ty_collective g = {
        .kind = TY_ALL_GATHER, .name = "compare", .dtype = TY_U8, .in = own, .out = all, .n = (int64_t)bytes};
    return ty_comm_run(c, &g, err);
}

/* The length of what both lines begin with, up to and with ": ". */
static size_t common_label(const char *a, const char *b)
{
    const char *end = strstr(a, ": ");
    size_t n = end ? (size_t)(end - a) + 2 : 0;
    return n && strncmp(a, b, n) == 0 ? n : 0;
}

/* Of all ranks, the one whose texts part first; equal ones: the lowest rank. */
static int tell(const ty_comm *c, const char *what, difference *all, ty_error *err)
{
    int who = -1;
    for (int r = 0; r < c->size; r++) {
        all[r].mine[LINE_BYTES - 1] = all[r].first[LINE_BYTES - 1] = 0;
        if (all[r].line && (who < 0 || all[r].line < all[who].line))
            who = r;
    }
    if (who < 0)
        return 0;
    const difference *d = &all[who];
    size_t label = common_label(d->first, d->mine);
    ty_error_set(err, TY_E_GRAPH, "dist: %s differ: %.*srank 0 %s, rank %d %s", what, (int)label, d->first,
                 d->first + label, who, d->mine + label);
    return ty_error_help(err,
                         "line %lld is the first that differs; all ranks must run the same program on the same "
                         "configuration",
                         (long long)d->line);
}

/* The text of rank 0, as it is on all ranks; NULL on failure. */
static char *first_text(ty_comm *c, const char *text, ty_error *err)
{
    int64_t n = (int64_t)strlen(text);
    ty_collective length = {.kind = TY_BROADCAST, .name = "compare", .dtype = TY_I64, .in = &n, .out = &n, .n = 1};
    if (ty_comm_run(c, &length, err) < 0)
        return NULL;
    char *first = calloc(1, (size_t)n + 1);
    ty_collective body = {.kind = TY_BROADCAST, .name = "compare", .dtype = TY_U8, .in = text, .out = first, .n = n};
    if (!first)
        ty_error_set(err, TY_E_LIMIT, "no memory for a text of %lld bytes", (long long)n);
    else if (ty_comm_run(c, &body, err) == 0)
        return first;
    free(first);
    return NULL;
}

static int compare_texts(ty_comm *c, const char *what, const char *text, difference *all, ty_error *err)
{
    char *first = first_text(c, text, err);
    if (!first)
        return -1;
    difference own = first_difference(text, first);
    free(first);
    if (gather(c, &own, sizeof own, all, err) < 0)
        return -1;
    return tell(c, what, all, err);
}

int ty_comm_compare(ty_comm *c, const char *what, const char *text, ty_error *err)
{
    uint64_t hash = fnv1a(text);
    difference *all = calloc((size_t)c->size, sizeof *all);
    if (!all)
        return ty_error_set(err, TY_E_LIMIT, "no memory to compare %d texts", c->size);
    uint64_t *hashes = (uint64_t *)all;
    int rc = gather(c, &hash, sizeof hash, hashes, err);
    bool same = true;
    for (int r = 0; r < c->size && rc == 0; r++)
        same = same && hashes[r] == hashes[0];
    if (rc == 0 && !same)
        rc = compare_texts(c, what, text, all, err);
    free(all);
    return rc;
}
