/* mutants.h - damaged files, each read by a worker process: it must be taken or refused in good order.
 *
 * A mutant is a file with a few bits flipped, its end cut off, a length changed, or a stretch of bytes copied over
 * another one; the kinds and places follow from its number. Bits are changed where they matter: half of the time in the
 * first 4 KiB or the last quarter, since most bytes of a large file are weights or samples. What must hold for each:
 *
 *     no crash                        a worker process would die; its mutant is named
 *     no second passes                CPU time
 *     64 MiB beyond the file          growth of a worker's peak since it started
 *     a refusal says what is wrong and where: mutants_judge
 *
 * A tool is a table of kinds and a function that reads one mutant:
 *
 *     int main(int argc, char **argv)
 *     {
 *         return mutants_main(argc, argv, &(mutants_job){"onnx_mutants", kinds, 4, try});
 *     }
 */
#ifndef TY_TESTS_TOOLS_MUTANTS_H
#define TY_TESTS_TOOLS_MUTANTS_H

#include "base/error.h"
#include "base/rng.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MUTANTS_MAX_SECONDS = 1, MUTANTS_MAX_EXTRA_MIB = 64, MUTANTS_MAX_FILES = 256 };

typedef struct mutants_file {
    const char *path;
    uint8_t *bytes;
    size_t n;
} mutants_file;

/* What the worker tells its parent about a mutant. */
typedef struct mutants_report {
    int64_t mutant;
    bool refused, is_bad;
    char reason[300];
} mutants_report;

/* Changes b[f->n], a copy of the file, and returns its new size, f->n at most. */
typedef size_t mutants_change(const mutants_file *f, uint8_t *b, int64_t id);

typedef struct mutants_job {
    const char *name;
    mutants_change *const *kinds;
    uint32_t n_kinds;
    /* Reads a mutant of f, bytes[n], and frees what it made. */
    void (*try)(const mutants_file *f, const uint8_t *bytes, size_t n, mutants_report *r);
} mutants_job;

static inline uint32_t mutants_draw(int64_t mutant, uint32_t k, uint32_t below)
{
    return ty_rng_u32(11, (uint32_t)mutant, 0, k) % (below ? below : 1);
}

static inline bool mutants_load(const char *path, mutants_file *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    fseek(f, 0, SEEK_END);
    *out = (mutants_file){path, NULL, (size_t)ftell(f)};
    rewind(f);
    out->bytes = malloc(out->n + 1);
    bool ok = out->bytes && fread(out->bytes, 1, out->n, f) == out->n;
    fclose(f);
    return ok;
}

/* ---- mutations ----------------------------------------------------------------------------------------------------
 */

static inline size_t mutants_place(const mutants_file *f, int64_t id, uint32_t k)
{
    uint32_t where = mutants_draw(id, k, 4), n = (uint32_t)f->n;
    if (where == 0)
        return mutants_draw(id, k + 1, n < 4096 ? n : 4096);
    if (where == 1)
        return n - 1 - mutants_draw(id, k + 1, n / 4 + 1);
    return mutants_draw(id, k + 1, n);
}

static inline size_t mutants_flip_bits(const mutants_file *f, uint8_t *b, int64_t id)
{
    uint32_t count = 1 + mutants_draw(id, 1, 8);
    for (uint32_t i = 0; i < count; i++)
        b[mutants_place(f, id, 10 + 3 * i)] ^= (uint8_t)(1u << mutants_draw(id, 12 + 3 * i, 8));
    return f->n;
}

static inline size_t mutants_cut_off(const mutants_file *f, uint8_t *b, int64_t id)
{
    (void)b;
    return mutants_draw(id, 1, (uint32_t)f->n);
}

static inline size_t mutants_copy_over(const mutants_file *f, uint8_t *b, int64_t id)
{
    size_t from = mutants_place(f, id, 1), to = mutants_place(f, id, 4), n = 1 + mutants_draw(id, 7, 64);
    if (from + n <= f->n && to + n <= f->n)
        memmove(b + to, b + from, n);
    return f->n;
}

/* Returns the mutant's size. */
static inline size_t mutants_mutate(const mutants_job *job, const mutants_file *f, uint8_t *b, int64_t id)
{
    memcpy(b, f->bytes, f->n);
    return job->kinds[mutants_draw(id, 0, job->n_kinds)](f, b, id);
}

/* ---- one mutant ---------------------------------------------------------------------------------------------------
 */

static inline double mutants_cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline size_t mutants_peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (size_t)u.ru_maxrss;
}

/* err must have words, and its place the text `where`. */
static inline void mutants_judge(mutants_report *r, const ty_error *err, const char *where)
{
    r->refused = true;
    if (r->is_bad || (err->message[0] && strstr(err->place, where)))
        return;
    r->is_bad = true;
    snprintf(r->reason, sizeof r->reason, "a refusal without %s: %.100s: %.150s",
             err->message[0] ? "its place" : "words", err->place, err->message);
}

static inline void mutants_read_one(const mutants_job *job, const mutants_file *f, const uint8_t *bytes, size_t n,
                                    size_t start_kib, mutants_report *r)
{
    double start = mutants_cpu_seconds();
    job->try(f, bytes, n, r);
    double seconds = mutants_cpu_seconds() - start;
    size_t grown = (mutants_peak_kib() - start_kib) * 1024;
    if (!r->is_bad && seconds > MUTANTS_MAX_SECONDS) {
        r->is_bad = true;
        snprintf(r->reason, sizeof r->reason, "%.2f s of CPU time", seconds);
    }
#ifndef __SANITIZE_ADDRESS__ /* its shadow and quarantine count as well */
    if (!r->is_bad && grown > n + ((size_t)MUTANTS_MAX_EXTRA_MIB << 20)) {
        r->is_bad = true;
        snprintf(r->reason, sizeof r->reason, "%zu MiB of memory for a file of %zu bytes", grown >> 20, n);
    }
#else
    (void)grown;
#endif
}

/* ---- workers ------------------------------------------------------------------------------------------------------
 */

/* Mutants from `first` on, reports into the pipe; dies with the mutant that kills it, and ends behind a bad one. */
static inline void mutants_work(const mutants_job *job, const mutants_file *files, int n_files, int64_t first,
                                int64_t end, int pipe)
{
    bool is_bad = false;
    size_t start_kib = mutants_peak_kib();
    for (int64_t id = first; id < end && !is_bad; id++) {
        const mutants_file *f = &files[id % n_files];
        mutants_report r = {.mutant = id};
        uint8_t *bytes = malloc(f->n + 1);
        if (!bytes || write(pipe, &r, sizeof r) != (ssize_t)sizeof r)
            _exit(2);
        alarm(120); /* a jail may take two seconds of a processor that others use too */
        mutants_read_one(job, f, bytes, mutants_mutate(job, f, bytes, id), start_kib, &r);
        free(bytes);
        is_bad = r.is_bad;
        if (write(pipe, &r, sizeof r) != (ssize_t)sizeof r)
            _exit(2);
    }
    _exit(0);
}

typedef struct mutants_tally {
    int64_t passed, failed, refused;
} mutants_tally;

static inline void mutants_complain(mutants_tally *sum, const mutants_file *files, int n_files, int64_t id,
                                    const char *reason)
{
    printf("FAIL mutant %lld of %s: %s\n", (long long)id, files[id % n_files].path, reason);
    sum->failed++;
}

/* Two reports a mutant: before and after. Returns the mutant to go on with. */
static inline int64_t mutants_watch(const mutants_job *job, const mutants_file *files, int n_files, int64_t first,
                                    int64_t end, mutants_tally *sum)
{
    int ends[2], status;
    if (pipe(ends) < 0)
        exit(70);
    pid_t child = fork();
    if (child == 0)
        mutants_work(job, files, n_files, first, end, ends[1]);
    close(ends[1]);
    mutants_report r, open = {.mutant = -1};
    while (read(ends[0], &r, sizeof r) == (ssize_t)sizeof r) {
        bool is_end = open.mutant == r.mutant;
        open.mutant = is_end ? -1 : r.mutant;
        first = r.mutant + 1;
        if (is_end && r.is_bad)
            mutants_complain(sum, files, n_files, r.mutant, r.reason);
        else if (is_end)
            sum->passed++;
        sum->refused += is_end && r.refused;
    }
    close(ends[0]);
    waitpid(child, &status, 0);
    if (open.mutant >= 0) {
        char reason[80];
        snprintf(reason, sizeof reason, "the worker died (%s %d)", WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        mutants_complain(sum, files, n_files, open.mutant, reason);
    }
    return first;
}

static inline int mutants_main(int argc, char **argv, const mutants_job *job)
{
    int64_t count = 1000, from = 0;
    mutants_file files[MUTANTS_MAX_FILES];
    int n_files = 0;
    mutants_tally sum = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            count = atoll(argv[++i]);
        else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            from = atoll(argv[++i]) << 20;
        else if (n_files < MUTANTS_MAX_FILES && mutants_load(argv[i], &files[n_files]) && files[n_files].n > 0)
            n_files++;
        else
            return fprintf(stderr, "%s: cannot read %s\n", job->name, argv[i]), 66;
    if (n_files == 0)
        return fprintf(stderr, "usage: %s [-n COUNT] [-s SEED] FILE...\n", job->name), 64;
    for (int64_t next = from; next < from + count;)
        next = mutants_watch(job, files, n_files, next, from + count, &sum);
    printf("%lld of %lld mutants were refused\n", (long long)sum.refused, (long long)count);
    printf("%lld passed, %lld failed, 0 skipped\n", (long long)sum.passed, (long long)sum.failed);
    for (int i = 0; i < n_files; i++)
        free(files[i].bytes);
    return sum.failed > 0;
}

#endif
