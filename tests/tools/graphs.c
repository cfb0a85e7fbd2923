/* graphs.c - random graphs: what is compiled against the interpreter.
 *
 *     graphs [--first SEED] [--count N] [--print SEED] [--grid | --gpu] [-v]
 *
 * A seed decides a graph of some thirty values: elementwise ops, comparisons, movement, reductions, scans, sorts,
 * lookups and writes by number, products, convolutions, pools, softmax, norms, in f32, f64, bf16, i32 and i64, states
 * that are updated, and the gradient of a sum of some values. It is compiled for one to four threads (with strict
 * determinism for two numbers of them, which must give the same bits; every fifth with as much of forward computed
 * again in backward as can be), run three times, and each output compared with the interpreter, which rounds each value
 * to its type and computes in double. The compiler checks its memory plan by itself.
 *
 * Values stay near 1, so that one tolerance serves. What jumps, itself or in its gradient (comparisons, rounding,
 * sorting, maxima, absolute values), is only applied to exact values: small multiples of 1/8 that were moved but not
 * computed with. Of computed values two may be the same but for their rounding, and then the greatest is one or the
 * other.
 *
 * Of a graph that fails, each value alone is tried as the only output, the oldest first, and the first that fails is
 * printed as text. The last line is "N passed, N failed, 0 skipped".
 */
#include "base/file.h"
#include "base/log.h"
#include "compiler/ir/clone.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/build.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"
#include "tests/tools/graph_maker.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 3 };

/* ---- judging ---- */

typedef struct fault {
    int value;     /* number in the pool */
    bool left_out; /* nothing computes one of its ops on a GPU */
    char text[512];
} fault;

static double element(const ty_tensor *t, int64_t i)
{
    double number;
    int64_t integer;
    if (t->type.dtype == TY_BF16)
        return ty_bf16_to_f32(((const uint16_t *)t->data)[i]);
    if (t->type.dtype == TY_F16)
        return ty_f16_to_f32(((const uint16_t *)t->data)[i]);
    ty_scalar_read((ty_dtype)t->type.dtype, (const char *)t->data + (size_t)i * ty_dtype_bytes((ty_dtype)t->type.dtype),
                   &number, &integer);
    return ty_dtype_is_float((ty_dtype)t->type.dtype) ? number : (double)integer;
}

/* Float sums may differ by as much as their largest terms suggest; integers and exact values not at all. */
static bool same(const value *x, const ty_tensor *found, const ty_tensor *expected, fault *f)
{
    int64_t n = ty_type_elems(&found->type);
    double most = 1;
    for (int64_t i = 0; i < n; i++)
        most = isfinite(element(expected, i)) ? fmax(most, fabs(element(expected, i))) : most;
    double tolerance = x->exact ? 0 : (x->coarse ? 0.06 : 1e-4) * most * (x->grows ? 4 : 1);
    for (int64_t i = 0; i < n; i++) {
        double a = element(found, i), b = element(expected, i);
        if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance)
            continue;
        snprintf(f->text, sizeof f->text, "element %lld: expected %.9g, found %.9g", (long long)i, b, a);
        return false;
    }
    return true;
}

static void *make_data(const ty_type *type, uint32_t stream)
{
    int64_t n = ty_type_elems(type);
    void *data = aligned_alloc(64, (ty_type_bytes(type) + 63) / 64 * 64 + 64);
    for (int64_t i = 0; i < n; i++) {
        int k = (int)(ty_rng_u32(3, stream, 0, (uint64_t)i) % 25) - 12;
        if (type->dtype == TY_I64)
            ((int64_t *)data)[i] = k;
        else if (type->dtype == TY_F64)
            ((double *)data)[i] = k / 8.0;
        else
            ((float *)data)[i] = (float)k / 8;
    }
    return data;
}

static bool on_grid, on_gpu; /* kernels as for a GPU; all of it on a GPU, what nothing computes there left out */

/* Outputs: pool value `only`, or all beyond the inputs if -1. */
static ty_program *compile(uint64_t seed, int only, const ty_compile_options *opt, maker *m, fault *f)
{
    ty_error err = {0};
    ty_program *p = NULL;
    make_graph(m, seed);
    for (int i = N_INPUTS; i < m->n; i++)
        if (only < 0 ? true : i == only)
            ty_graph_add_output(m->g, ty_arena_printf(ty_graph_arena(m->g), "v%d", i), m->pool[i].v, TY_TAPE_LAST);
    if (ty_program_of_graph(m->g, TY_TAPE_LAST, opt, &p, &err) < 0) {
        snprintf(f->text, sizeof f->text, "compiling: %.400s", err.message);
        f->left_out = on_gpu && err.code == TY_E_UNSUPPORTED;
        return NULL;
    }
    return p;
}

static bool agree(ty_program *p, ty_program *q, const maker *m, bool bits, fault *f)
{
    const void *inputs[N_INPUTS];
    ty_error err = {0};
    bool good = true;
    for (int i = 0; i < N_INPUTS; i++)
        inputs[i] = make_data(&ty_program_input(p, i)->type, (uint32_t)i);
    for (int run = 0; run < RUNS && good; run++) {
        if (ty_program_run(p, TY_RUN_LAST, inputs, &err) < 0 || ty_program_run(q, TY_RUN_LAST, inputs, &err) < 0) {
            snprintf(f->text, sizeof f->text, "running: %.400s", err.message);
            good = false;
        }
        for (int i = 0; i < ty_program_n_outputs(p, TY_RUN_LAST) && good; i++) {
            const char *name = ty_program_output_name(p, TY_RUN_LAST, i);
            const ty_tensor *a = ty_program_output(p, TY_RUN_LAST, name), *b = ty_program_output(q, TY_RUN_LAST, name);
            f->value = atoi(name + 1);
            if (bits && memcmp(a->data, b->data, ty_type_bytes(&a->type)) != 0) {
                snprintf(f->text, sizeof f->text, "other bits with another number of threads");
                good = false;
            }
            good = good && (bits || same(&m->pool[f->value], a, b, f));
        }
    }
    for (int i = 0; i < N_INPUTS; i++)
        free((void *)(uintptr_t)inputs[i]);
    return good;
}

static bool judge(uint64_t seed, int only, const char *cache_dir, fault *f)
{
    maker m;
    bool strict = seed % 4 == 0;
    ty_compile_options cpu = {.backend = on_gpu ? TY_BACKEND_CUDA : TY_BACKEND_CPU,
                              .threads = 1 + (int)(seed % 3),
                              .deterministic_strict = strict,
                              .cache_dir = strict ? cache_dir : NULL, /* three programs of one graph: kernels once */
                              .temporary_bytes = seed % 5 == 1 ? 1 : 0,
                              .dump_dir = getenv("TY_GRAPHS_DUMP"),
                              .grid = on_grid};
    ty_compile_options judge = {.backend = TY_BACKEND_INTERPRETER}, other = cpu;
    other.threads = 4;
    ty_program *p = compile(seed, only, &cpu, &m, f), *q = p ? compile(seed, only, &judge, &m, f) : NULL;
    bool good = p && q && agree(p, q, &m, false, f);
    ty_program_free(q);
    if (good && strict) {
        q = compile(seed, only, &other, &m, f);
        ty_program_free(p);
        p = q ? compile(seed, only, &cpu, &m, f) : NULL;
        good = q && p && agree(p, q, &m, true, f);
        ty_program_free(q);
    }
    ty_program_free(p);
    return good;
}

/* ---- one seed in a process of its own: a crash is a failure too ---- */

static bool judge_apart(uint64_t seed, int only, fault *f)
{
    int pipe_fd[2];
    if (pipe(pipe_fd) < 0)
        return false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char cache_dir[] = "/tmp/ty-graphs-XXXXXX";
        fault mine = {.value = -1};
        alarm(300);
        bool good = mkdtemp(cache_dir) && judge(seed, only, cache_dir, &mine);
        ty_file_remove_tree(cache_dir, NULL);
        ssize_t n = write(pipe_fd[1], &mine, sizeof mine);
        _exit(good && n == sizeof mine ? 0 : 1);
    }
    close(pipe_fd[1]);
    *f = (fault){.value = -1};
    if (read(pipe_fd[0], f, sizeof *f) != sizeof *f)
        snprintf(f->text, sizeof f->text, "it crashed");
    close(pipe_fd[0]);
    int status = 1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void print_graph(uint64_t seed, int only)
{
    maker m;
    ty_graph *lean = NULL;
    ty_error err = {0};
    ty_buf text;
    make_graph(&m, seed);
    for (int i = N_INPUTS; i < m.n; i++)
        if (only < 0 || i == only)
            ty_graph_add_output(m.g, ty_arena_printf(ty_graph_arena(m.g), "v%d", i), m.pool[i].v, TY_TAPE_LAST);
    ty_buf_init(&text, 1 << 26);
    if (ty_pass_mask(m.g, &lean, &err) == 0 && ty_graph_print(lean, &text, true) == 0)
        printf("%.*s\n", (int)text.len, text.data);
    else
        printf("%s\n", err.message);
    ty_buf_fini(&text);
    ty_graph_free(lean);
    ty_graph_free(m.g);
}

/* The oldest value that fails as the only output. */
static void shrink(uint64_t seed, const fault *f)
{
    maker m;
    make_graph(&m, seed);
    int n = m.n;
    ty_graph_free(m.g);
    for (int only = N_INPUTS; only < n; only++) {
        fault alone;
        if (judge_apart(seed, only, &alone))
            continue;
        printf("  v%d alone: %s\n", only, alone.text);
        print_graph(seed, only);
        return;
    }
    printf("  no value fails alone; the whole (v%d):\n", f->value);
    print_graph(seed, -1);
}

/* ---- seeds ---- */

typedef struct counts {
    int passed, failed, left_out;
} counts;

static void judge_whole(uint64_t seed, bool verbose, counts *c)
{
    fault f;
    bool good = judge_apart(seed, -1, &f);
    if (verbose)
        printf("seed %llu: %s\n", (unsigned long long)seed, good ? "good" : f.text);
    good ? c->passed++ : c->failed++;
    if (good)
        return;
    printf("FAILED: seed %llu, v%d: %s\n", (unsigned long long)seed, f.value, f.text);
    shrink(seed, &f);
}

/* Each value by itself: there are few graphs all of whose ops something computes on a GPU. */
static void judge_values(uint64_t seed, bool verbose, counts *c)
{
    maker m;
    make_graph(&m, seed);
    for (int i = N_INPUTS; i < m.n; i++) {
        fault f;
        bool good = judge_apart(seed, i, &f);
        c->passed += good, c->left_out += !good && f.left_out, c->failed += !good && !f.left_out;
        if (verbose || (!good && !f.left_out))
            printf("%sseed %llu, v%d: %s\n", good || f.left_out ? "" : "FAILED: ", (unsigned long long)seed, i,
                   good ? "good" : f.text);
    }
    ty_graph_free(m.g);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"first", required_argument, NULL, 'f'}, {"count", required_argument, NULL, 'c'},
        {"print", required_argument, NULL, 'p'}, {"grid", no_argument, NULL, 'g'},
        {"gpu", no_argument, NULL, 'u'},         {0}};
    uint64_t first = 1, count = 100;
    counts c = {0};
    bool verbose = false;
    for (int o; (o = getopt_long(argc, argv, "v", known, NULL)) != -1;) {
        if (o == 'f')
            first = strtoull(optarg, NULL, 10);
        else if (o == 'c')
            count = strtoull(optarg, NULL, 10);
        else if (o == 'v')
            verbose = true;
        else if (o == 'g')
            on_grid = true;
        else if (o == 'u')
            on_gpu = true;
        else if (o == 'p')
            return print_graph(strtoull(optarg, NULL, 10), -1), 0;
        else
            return 64;
    }
    ty_log_set_level(TY_LOG_WARNING);
    for (uint64_t seed = first; seed < first + count; seed++)
        on_gpu ? judge_values(seed, verbose, &c) : judge_whole(seed, verbose, &c);
    printf("%d passed, %d failed, %d skipped\n", c.passed, c.failed, c.left_out);
    return c.failed != 0;
}
