/* onnx_mutants.c - damaged ONNX files: each is opened, checked and imported, and must be taken or refused in good
 * order.
 *
 *     onnx_mutants [-n COUNT] [-s SEED] FILE...
 *
 * A mutant is a file with a few bits flipped, its end cut off, a length field changed, or a stretch of bytes copied
 * over another one; the kinds and places follow from SEED. Bits are flipped where they matter: half of the time in the
 * first 4 KiB or the last quarter, since most bytes of a model are weights. What must hold for each mutant:
 *
 *     no crash                        a worker process would die; its mutant is named
 *     no second passes                CPU time of open, check and import
 *     64 MiB beyond the file          growth of a worker's peak since it started
 *     a refusal says what is wrong and where; in the graph, at which node
 *
 * Closes with "N passed, N failed, N skipped".
 */
#include "base/rng.h"
#include "compiler/import/onnx.h"
#include "compiler/ir/build.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SECONDS = 1, MAX_EXTRA_MIB = 64 };

typedef struct file {
    const char *path;
    uint8_t *bytes;
    size_t n;
} file;

/* What the worker tells its parent about a mutant. */
typedef struct report {
    int64_t mutant;
    bool refused, is_bad;
    char reason[300];
} report;

static uint32_t draw(int64_t mutant, uint32_t k, uint32_t below)
{
    return ty_rng_u32(11, (uint32_t)mutant, 0, k) % (below ? below : 1);
}

static bool load(const char *path, file *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    fseek(f, 0, SEEK_END);
    *out = (file){path, NULL, (size_t)ftell(f)};
    rewind(f);
    out->bytes = malloc(out->n + 1);
    bool ok = out->bytes && fread(out->bytes, 1, out->n, f) == out->n;
    fclose(f);
    return ok;
}

/* ---- mutations ----------------------------------------------------------------------------------------------------
 */

static size_t place(const file *f, int64_t id, uint32_t k)
{
    uint32_t where = draw(id, k, 4), n = (uint32_t)f->n;
    if (where == 0)
        return draw(id, k + 1, n < 4096 ? n : 4096);
    if (where == 1)
        return n - 1 - draw(id, k + 1, n / 4 + 1);
    return draw(id, k + 1, n);
}

static size_t flip_bits(const file *f, uint8_t *b, int64_t id)
{
    uint32_t count = 1 + draw(id, 1, 8);
    for (uint32_t i = 0; i < count; i++)
        b[place(f, id, 10 + 3 * i)] ^= (uint8_t)(1u << draw(id, 12 + 3 * i, 8));
    return f->n;
}

static size_t cut_off(const file *f, uint8_t *b, int64_t id)
{
    (void)b;
    return draw(id, 1, (uint32_t)f->n);
}

/* A byte behind the key of a counted field (wire type 2) becomes another length. */
static size_t change_length(const file *f, uint8_t *b, int64_t id)
{
    static const uint8_t lengths[] = {0, 1, 0x7f, 0x80, 0xff, 2, 64};
    size_t at = place(f, id, 1);
    for (size_t i = 0; i + 1 < f->n; i++, at = at + 2 < f->n ? at + 1 : 0)
        if ((b[at] & 7) == 2 && b[at] >> 3 > 0 && b[at] < 0x80)
            break;
    if (at + 1 < f->n)
        b[at + 1] = draw(id, 4, 2) ? lengths[draw(id, 5, sizeof lengths)] : (uint8_t)(b[at + 1] + draw(id, 6, 9) - 4);
    return f->n;
}

static size_t copy_over(const file *f, uint8_t *b, int64_t id)
{
    size_t from = place(f, id, 1), to = place(f, id, 4), n = 1 + draw(id, 7, 64);
    if (from + n <= f->n && to + n <= f->n)
        memmove(b + to, b + from, n);
    return f->n;
}

/* Returns the mutant's size. */
static size_t mutate(const file *f, uint8_t *b, int64_t id)
{
    static size_t (*const kinds[])(const file *, uint8_t *, int64_t) = {flip_bits, cut_off, change_length, copy_over};
    memcpy(b, f->bytes, f->n);
    return kinds[draw(id, 0, 4)](f, b, id);
}

/* ---- one mutant ---------------------------------------------------------------------------------------------------
 */

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (size_t)u.ru_maxrss;
}

/* What fails in the graph must name its node, or the graph; what fails before, its place. */
static void judge_refusal(report *r, const ty_error *err, bool in_graph)
{
    r->refused = true;
    bool named = in_graph ? strstr(err->place, "node #") || strstr(err->place, "graph \"") : err->place[0] != 0;
    if (r->is_bad || (err->message[0] && named))
        return;
    r->is_bad = true;
    snprintf(r->reason, sizeof r->reason, "a refusal without %s: %.200s", err->message[0] ? "its node" : "words",
             err->message);
}

/* Free dims are 2; inputs of no known type keep the model from being imported, as they would in training. */
static bool bind_inputs(const ty_onnx *m, ty_graph *g, ty_val *in)
{
    for (int i = 0; i < ty_onnx_n_inputs(m); i++) {
        const ty_onnx_value *v = ty_onnx_input(m, i);
        int64_t dim[TY_MAX_RANK];
        int64_t elems = 1;
        if (v->rank < 0 || v->dtype >= TY_N_DTYPES)
            return false;
        for (int k = 0; k < v->rank; k++) {
            dim[k] = v->dim[k] < 0 ? 2 : v->dim[k];
            if (dim[k] > 1 << 20 || (elems *= dim[k] ? dim[k] : 1) > 1 << 24)
                return false;
        }
        in[i] = ty_b_input(g, ty_graph_add_input(g, v->name, ty_type_make(v->dtype, v->rank, dim)));
    }
    return !ty_graph_failed(g, NULL);
}

static void import(const ty_onnx *m, report *r)
{
    ty_graph *g = ty_graph_new();
    ty_val *in = calloc((size_t)ty_onnx_n_inputs(m) + 1, sizeof *in);
    ty_error err = {0};
    ty_onnx_values values;
    if (in && bind_inputs(m, g, in)) {
        ty_onnx_binding b = {
            .mode = TY_ONNX_TRAIN, .inputs = in, .seed = ty_b_scalar(g, TY_I64, 1), .step = ty_b_scalar(g, TY_I64, 1)};
        if (ty_onnx_import(m, g, &b, &values, &err) < 0)
            judge_refusal(r, &err, true);
    }
    free(in);
    ty_graph_free(g);
}

static void try(const uint8_t *bytes, size_t n, size_t start_kib, report *r)
{
    ty_onnx *m = NULL;
    ty_error err = {0};
    static ty_error faults[TY_ONNX_MAX_FAULTS];
    double start = cpu_seconds();
    if (ty_onnx_open_memory("mutant.onnx", bytes, n, &m, &err) < 0)
        judge_refusal(r, &err, false);
    else {
        int found = ty_onnx_check(m, faults, TY_ONNX_MAX_FAULTS);
        for (int i = 0; i < found && i < TY_ONNX_MAX_FAULTS; i++)
            judge_refusal(r, &faults[i], true);
        import(m, r);
    }
    ty_onnx_free(m);
    double seconds = cpu_seconds() - start;
    size_t grown = (peak_kib() - start_kib) * 1024;
    if (!r->is_bad && seconds > MAX_SECONDS) {
        r->is_bad = true;
        snprintf(r->reason, sizeof r->reason, "%.2f s of CPU time", seconds);
    }
#ifndef __SANITIZE_ADDRESS__ /* its shadow and quarantine count as well */
    if (!r->is_bad && grown > n + ((size_t)MAX_EXTRA_MIB << 20)) {
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
static void work(const file *files, int n_files, int64_t first, int64_t end, int pipe)
{
    bool is_bad = false;
    size_t start_kib = peak_kib();
    for (int64_t id = first; id < end && !is_bad; id++) {
        const file *f = &files[id % n_files];
        report r = {.mutant = id};
        uint8_t *bytes = malloc(f->n + 1);
        if (!bytes || write(pipe, &r, sizeof r) != (ssize_t)sizeof r)
            _exit(2);
        alarm(30);
        try(bytes, mutate(f, bytes, id), start_kib, &r);
        free(bytes);
        is_bad = r.is_bad;
        if (write(pipe, &r, sizeof r) != (ssize_t)sizeof r)
            _exit(2);
    }
    _exit(0);
}

typedef struct tally {
    int64_t passed, failed, refused;
} tally;

static void complain(tally *sum, const file *files, int n_files, int64_t id, const char *reason)
{
    printf("FAIL mutant %lld of %s: %s\n", (long long)id, files[id % n_files].path, reason);
    sum->failed++;
}

/* Two reports a mutant: before and after. Returns the mutant to go on with. */
static int64_t watch(const file *files, int n_files, int64_t first, int64_t end, tally *sum)
{
    int ends[2], status;
    if (pipe(ends) < 0)
        exit(70);
    pid_t child = fork();
    if (child == 0)
        work(files, n_files, first, end, ends[1]);
    close(ends[1]);
    report r, open = {.mutant = -1};
    while (read(ends[0], &r, sizeof r) == (ssize_t)sizeof r) {
        bool is_end = open.mutant == r.mutant;
        open.mutant = is_end ? -1 : r.mutant;
        first = r.mutant + 1;
        if (is_end && r.is_bad)
            complain(sum, files, n_files, r.mutant, r.reason);
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
        complain(sum, files, n_files, open.mutant, reason);
    }
    return first;
}

int main(int argc, char **argv)
{
    int64_t count = 1000, from = 0;
    file files[256];
    int n_files = 0;
    tally sum = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            count = atoll(argv[++i]);
        else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            from = atoll(argv[++i]) << 20;
        else if (n_files < 256 && load(argv[i], &files[n_files]) && files[n_files].n > 0)
            n_files++;
        else
            return fprintf(stderr, "onnx_mutants: cannot read %s\n", argv[i]), 66;
    if (n_files == 0)
        return fprintf(stderr, "usage: onnx_mutants [-n COUNT] [-s SEED] FILE...\n"), 64;
    for (int64_t next = from; next < from + count;)
        next = watch(files, n_files, next, from + count, &sum);
    printf("%lld of %lld mutants were refused\n", (long long)sum.refused, (long long)count);
    printf("%lld passed, %lld failed, 0 skipped\n", (long long)sum.passed, (long long)sum.failed);
    for (int i = 0; i < n_files; i++)
        free(files[i].bytes);
    return sum.failed > 0;
}
