/* collectives.c - a rank that measures what its comm costs and what it hides.
 *
 *     mpirun -np 2 build/release/tools/collectives raw [--cores N --threads N --piece BYTES]
 *     mpirun -np 2 build/release/tools/collectives overlap [--compute-ms 200 --mb 16 --buckets 8 --wire f16 ...]
 *
 * raw: all_reduce of float32 by ty_comm_run beside one call of the engine (MPI_Iallreduce) for the whole tensor, looked
 * at without a break until it is over; by turns, medians.
 *
 * overlap: steps of `compute-ms` in `buckets` parts, after each of which a bucket of gradients is summed. Medians of:
 * computing alone, communication alone, one after the other, and both at once, which is how a training does it. With
 * --asleep the computing takes its time without a core, as if a device did it: a machine with few cores then has some
 * to spare. The last line of rank 0 is JSON.
 */
#include "base/clock.h"
#include "dist/comm/engine.h"
#include "dist/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TURNS = 101, MAX_BUCKETS = 64 };

typedef struct settings {
    ty_comm_options comm;
    int compute_ms, mb, n_buckets, turns;
    ty_wire wire;
    bool asleep;
} settings;

static void fail(const ty_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

static void meet(ty_comm *c)
{
    ty_error err = {0};
    if (ty_comm_run(c, &(ty_collective){.kind = TY_BARRIER}, &err) < 0)
        fail(&err);
}

/* --- raw --- */

static double time_engine(ty_comm *c, const ty_engine *e, ty_engine_group *g, float *x, int64_t n, int calls)
{
    ty_error err = {0};
    ty_engine_call call = {.kind = TY_ENGINE_ALL_REDUCE, .elem_bytes = 4, .dtype = TY_F32, .in = x, .out = x, .n = n};
    meet(c);
    int64_t start = ty_clock_ns();
    for (int i = 0; i < calls; i++) {
        bool done = false;
        if (e->start(g, &call, &err) < 0)
            fail(&err);
        while (!done)
            if (e->test(g, &done, &err) < 0)
                fail(&err);
    }
    return (double)(ty_clock_ns() - start) / 1e3 / calls;
}

static double time_comm(ty_comm *c, float *x, int64_t n, int calls)
{
    ty_error err = {0};
    ty_collective w = {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .in = x, .out = x, .n = n};
    meet(c);
    int64_t start = ty_clock_ns();
    for (int i = 0; i < calls; i++)
        if (ty_comm_run(c, &w, &err) < 0)
            fail(&err);
    return (double)(ty_clock_ns() - start) / 1e3 / calls;
}

static void measure_raw(ty_comm *c, const settings *s)
{
    const ty_engine *engine;
    ty_engine_group *group;
    ty_error err = {0};
    float *x = calloc((size_t)s->mb << 18, sizeof *x);
    double raw[MAX_TURNS], ours[MAX_TURNS];
    if (!x || ty_plugin_open("mpi", TY_ENGINE_VERSION, (const void **)&engine, &err) < 0 ||
        engine->open(&group, &err) < 0)
        fail(&err);
    if (ty_comm_rank(c) == 0)
        printf("%12s %12s %8s %12s %8s %8s\n", "bytes", "MPI us", "GB/s", "ours us", "GB/s", "ratio");
    for (int64_t n = 256; n <= (int64_t)s->mb << 18; n *= 4) {
        int calls = n <= 16384 ? 50 : n <= 1 << 20 ? 5 : 1;
        for (int t = 0; t < s->turns; t++) {
            raw[t] = time_engine(c, engine, group, x, n, calls);
            ours[t] = time_comm(c, x, n, calls);
        }
        double a = median(raw, s->turns), b = median(ours, s->turns), bytes = (double)n * 4;
        if (ty_comm_rank(c) == 0)
            printf("%12lld %12.1f %8.2f %12.1f %8.2f %8.2f\n", (long long)n * 4, a, bytes / a / 1e3, b, bytes / b / 1e3,
                   b / a);
        fflush(stdout);
    }
    engine->close(group, true);
    free(x);
}

/* --- overlap --- */

/* Work that does not depend on memory; `rounds` of it take a known time on a quiet core. */
static double churn(int64_t rounds)
{
    double x = 1.000000001;
    for (int64_t i = 0; i < rounds; i++)
        __asm__ volatile("mulsd %0, %0\n\tsqrtsd %0, %0" : "+x"(x));
    return x;
}

static int64_t rounds_of_ms(int ms)
{
    const int64_t probe = 200000;
    double best = 1e30;
    for (int i = 0; i < 20; i++) {
        int64_t start = ty_clock_ns();
        churn(probe);
        double took = (double)(ty_clock_ns() - start);
        best = took < best ? took : best;
    }
    return (int64_t)((double)ms * 1e6 / best * (double)probe);
}

typedef struct step {
    ty_comm *c;
    float *gradients;
    int64_t bucket; /* elements */
    int64_t rounds; /* of a part; 0: it sleeps */
    int64_t sleep_ns;
    int n_buckets;
    ty_wire wire;
} step;

static ty_collective bucket_call(const step *p, int b)
{
    float *x = p->gradients + (int64_t)b * p->bucket;
    return (ty_collective){.kind = TY_ALL_REDUCE,
                           .name = "gradients",
                           .dtype = TY_F32,
                           .reduce = TY_REDUCE_AVERAGE,
                           .wire = p->wire,
                           .in = x,
                           .out = x,
                           .n = p->bucket,
                           .bucket = b + 1};
}

/* Milliseconds of a step: parts of computing, each followed by a bucket that is begun (at once), waited for right there
 * (not at once), or left out. */
static double run_step(const step *p, bool computes, bool communicates, bool at_once)
{
    ty_error err = {0};
    uint64_t ticket[MAX_BUCKETS];
    meet(p->c);
    int64_t start = ty_clock_ns();
    for (int b = 0; b < p->n_buckets && computes; b++) {
        ty_collective w = bucket_call(p, b);
        if (p->rounds)
            churn(p->rounds);
        else
            nanosleep(&(struct timespec){p->sleep_ns / 1000000000, p->sleep_ns % 1000000000}, NULL);
        if (communicates && at_once && ty_comm_begin(p->c, &w, &ticket[b], &err) < 0)
            fail(&err);
    }
    for (int b = 0; b < p->n_buckets && communicates; b++) {
        ty_collective w = bucket_call(p, b);
        if (!computes || !at_once)
            if (ty_comm_begin(p->c, &w, &ticket[b], &err) < 0)
                fail(&err);
    }
    for (int b = 0; b < p->n_buckets && communicates; b++)
        if (ty_comm_wait(p->c, ticket[b], &err) < 0)
            fail(&err);
    return (double)(ty_clock_ns() - start) / 1e6;
}

static void measure_overlap(ty_comm *c, const settings *s)
{
    int64_t n = (int64_t)s->mb << 18;
    step p = {.c = c,
              .gradients = calloc((size_t)n, sizeof(float)),
              .bucket = n / s->n_buckets,
              .n_buckets = s->n_buckets,
              .wire = s->wire};
    double compute[MAX_TURNS], comm[MAX_TURNS], serial[MAX_TURNS], both[MAX_TURNS];
    p.rounds = s->asleep ? 0 : rounds_of_ms(s->compute_ms) / s->n_buckets;
    p.sleep_ns = (int64_t)s->compute_ms * 1000000 / s->n_buckets;
    for (int t = 0; t < s->turns; t++) {
        compute[t] = run_step(&p, true, false, false);
        comm[t] = run_step(&p, false, true, false);
        serial[t] = run_step(&p, true, true, false);
        both[t] = run_step(&p, true, true, true);
    }
    double a = median(compute, s->turns), b = median(comm, s->turns), most = a > b ? a : b;
    double one_by_one = median(serial, s->turns), at_once = median(both, s->turns);
    if (ty_comm_rank(c) == 0)
        printf("{\"ranks\": %d, \"mb\": %d, \"buckets\": %d, \"compute_ms\": %.1f, \"comm_ms\": %.1f, \"serial_ms\": "
               "%.1f, "
               "\"step_ms\": %.1f, \"ratio\": %.3f}\n",
               ty_comm_size(c), s->mb, s->n_buckets, a, b, one_by_one, at_once, at_once / most);
    free(p.gradients);
}

static int number(char **argv, int *i)
{
    return argv[*i + 1] ? atoi(argv[++*i]) : 0;
}

static settings read_settings(char **argv)
{
    settings s = {.compute_ms = 200, .mb = 16, .n_buckets = 8, .turns = 9};
    for (int i = 2; argv[1] && argv[i]; i++) {
        if (strcmp(argv[i], "--cores") == 0)
            s.comm.cores = number(argv, &i);
        else if (strcmp(argv[i], "--threads") == 0)
            s.comm.threads = number(argv, &i);
        else if (strcmp(argv[i], "--piece") == 0)
            s.comm.piece_bytes = number(argv, &i);
        else if (strcmp(argv[i], "--mb") == 0)
            s.mb = number(argv, &i);
        else if (strcmp(argv[i], "--compute-ms") == 0)
            s.compute_ms = number(argv, &i);
        else if (strcmp(argv[i], "--buckets") == 0)
            s.n_buckets = number(argv, &i);
        else if (strcmp(argv[i], "--turns") == 0)
            s.turns = number(argv, &i);
        else if (strcmp(argv[i], "--asleep") == 0)
            s.asleep = true;
        else if (strcmp(argv[i], "--rank-order") == 0)
            s.comm.rank_order = true;
        else if (strcmp(argv[i], "--wire") == 0 && argv[i + 1])
            s.wire = strcmp(argv[++i], "f16") == 0 ? TY_WIRE_F16 : TY_WIRE_BF16;
    }
    s.n_buckets = s.n_buckets < 1 ? 1 : s.n_buckets > MAX_BUCKETS ? MAX_BUCKETS : s.n_buckets;
    s.turns = s.turns < 1 ? 1 : s.turns > MAX_TURNS ? MAX_TURNS : s.turns;
    s.mb = s.mb < 1 ? 1 : s.mb;
    return s;
}

int main(int argc, char **argv)
{
    settings s = read_settings(argv);
    ty_error err = {0};
    ty_comm *c;
    if (argc < 2 || ty_comm_open(&s.comm, &c, &err) < 0) {
        fprintf(stderr, "%s\n", argc < 2 ? "usage: collectives raw | overlap [options]" : err.message);
        return 2;
    }
    if (strcmp(argv[1], "raw") == 0)
        measure_raw(c, &s);
    else
        measure_overlap(c, &s);
    ty_comm_close(c, true);
    return 0;
}
