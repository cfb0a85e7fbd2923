/* preflight_table.c - what the look at the network found: as bytes for the leader, as lines for people. */
#define _GNU_SOURCE
#include "dist/agent/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD_PAIRS = 32, CLOCK_US = 1000000, SHM_PER_RANK = 64 << 20, FILES = 1024 };

void ty_put_look(ty_buf *b, const ty_look *look)
{
    ty_put_number(b, (uint64_t)look->shm_bytes, 8);
    ty_put_number(b, (uint64_t)look->files, 8);
    ty_put_number(b, (uint64_t)look->memlock_bytes, 8);
    ty_put_number(b, (uint64_t)look->stack_bytes, 8);
    ty_put_number(b, (uint64_t)look->ptrace_scope, 4);
    ty_put_number(b, (uint64_t)look->n_pairs, 1);
    for (int i = 0; i < look->n_pairs; i++) {
        const ty_look_pair *pair = &look->pairs[i];
        ty_put_number(b, (uint64_t)pair->host, 4);
        ty_put_text(b, pair->failure);
        ty_put_number(b, (uint64_t)pair->round_us, 8);
        ty_put_number(b, (uint64_t)pair->mbyte_s, 8);
        ty_put_number(b, (uint64_t)pair->clock_us, 8);
        ty_put_number(b, (uint64_t)pair->path_mtu, 4);
    }
}

int ty_get_look(ty_reader *r, ty_look *look, ty_error *err)
{
    *look = (ty_look){.shm_bytes = (int64_t)ty_get_number(r, 8)};
    look->files = (int64_t)ty_get_number(r, 8);
    look->memlock_bytes = (int64_t)ty_get_number(r, 8);
    look->stack_bytes = (int64_t)ty_get_number(r, 8);
    look->ptrace_scope = (int)(int32_t)ty_get_number(r, 4);
    int n = (int)ty_get_number(r, 1);
    if (n > TY_LOOK_PAIRS)
        return ty_error_set(err, TY_E_DATA, "message \"look\" has %d pairs, %d are the most", n, TY_LOOK_PAIRS);
    look->n_pairs = n;
    for (int i = 0; i < n; i++) {
        ty_look_pair *pair = &look->pairs[i];
        pair->host = (int)(int32_t)ty_get_number(r, 4);
        ty_get_text(r, pair->failure, sizeof pair->failure);
        pair->round_us = (int64_t)ty_get_number(r, 8);
        pair->mbyte_s = (int64_t)ty_get_number(r, 8);
        pair->clock_us = (int64_t)ty_get_number(r, 8);
        pair->path_mtu = (int)(int32_t)ty_get_number(r, 4);
    }
    return ty_get_end(r, "look", err);
}

static int compare_speeds(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median of all pairs that were measured; 0: none was. */
static int64_t median_speed(const ty_look *looks, int n)
{
    int64_t *speeds = calloc((size_t)n * TY_LOOK_PAIRS, sizeof *speeds), median = 0;
    int count = 0;
    for (int i = 0; speeds && i < n; i++)
        for (int k = 0; k < looks[i].n_pairs; k++)
            if (looks[i].pairs[k].mbyte_s > 0)
                speeds[count++] = looks[i].pairs[k].mbyte_s;
    if (count > 0) {
        qsort(speeds, (size_t)count, sizeof *speeds, compare_speeds);
        median = speeds[count / 2];
    }
    free(speeds);
    return median;
}

static void add_size(ty_buf *b, const char *what, int64_t n_bytes)
{
    if (n_bytes < 0)
        ty_buf_addf(b, ", %s none", what);
    else
        ty_buf_addf(b, ", %s %.1f GB", what, (double)n_bytes / 1e9);
}

static void tell_machine(const ty_look *look, const ty_hello *hello, int ranks, ty_buf *table, ty_buf *warnings)
{
    ty_buf_addf(table, "look: %s: %d cores, %.1f GB of memory", hello->name, hello->cores,
                (double)hello->memory_bytes / 1e9);
    add_size(table, "/dev/shm", look->shm_bytes);
    if (look->files >= 0)
        ty_buf_addf(table, ", %lld files", (long long)look->files);
    if (look->ptrace_scope > 0)
        ty_buf_addf(table, ", ptrace scope %d", look->ptrace_scope);
    ty_buf_addc(table, '\n');
    if (ranks > 1 && look->shm_bytes < (int64_t)ranks * SHM_PER_RANK)
        ty_buf_addf(
            warnings, "%s has %lld MB free in /dev/shm for %d ranks; %d MB each are well (docker: --shm-size)\n",
            hello->name, (long long)(look->shm_bytes > 0 ? look->shm_bytes >> 20 : 0), ranks, SHM_PER_RANK >> 20);
    if (look->files >= 0 && look->files < FILES)
        ty_buf_addf(warnings, "%s may open %lld files only; %d are well (ulimit -n)\n", hello->name,
                    (long long)look->files, FILES);
}

static void tell_pair(const ty_look_pair *pair, const char *from, const char *to, int64_t median, ty_buf *table,
                      ty_buf *warnings)
{
    if (pair->failure[0]) {
        ty_buf_addf(warnings, "%s does not reach %s on a high port: %s\n", from, to, pair->failure);
        return;
    }
    if (table) {
        ty_buf_addf(table, "look: %s -> %s: %.2f ms there and back", from, to, (double)pair->round_us / 1000);
        if (pair->mbyte_s > 0)
            ty_buf_addf(table, ", %lld MB/s", (long long)pair->mbyte_s);
        if (pair->path_mtu > 0)
            ty_buf_addf(table, ", MTU %d", pair->path_mtu);
        ty_buf_addf(table, ", clock %+.0f ms\n", (double)pair->clock_us / 1000);
    }
    if (pair->mbyte_s > 0 && pair->mbyte_s < median / 3)
        ty_buf_addf(warnings, "%s -> %s is slow: %lld MB/s, half of the pairs have %lld or more\n", from, to,
                    (long long)pair->mbyte_s, (long long)median);
    if (llabs(pair->clock_us) > CLOCK_US)
        ty_buf_addf(warnings, "the clocks of %s and %s are %.1f s apart\n", from, to,
                    (double)llabs(pair->clock_us) / 1e6);
}

void ty_look_table(const ty_look *looks, const ty_hello *const *hellos, const int *ranks, int n, ty_buf *table,
                   ty_buf *warnings)
{
    int64_t median = median_speed(looks, n);
    int told = 0;
    for (int i = 0; i < n && i < TOLD_PAIRS; i++)
        tell_machine(&looks[i], hellos[i], ranks[i], table, warnings);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < looks[i].n_pairs; k++) {
            int to = looks[i].pairs[k].host;
            if (to >= 0 && to < n)
                tell_pair(&looks[i].pairs[k], hellos[i]->name, hellos[to]->name, median,
                          told++ < TOLD_PAIRS ? table : NULL, warnings);
        }
    if (told > TOLD_PAIRS)
        ty_buf_addf(table, "look: %d pairs in all, the median has %lld MB/s\n", told, (long long)median);
}
