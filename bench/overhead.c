/* overhead.c - what a generated kernel costs beside its work: overhead [RUNS [THREADS]].
 *
 * On the calling thread: a program of some 200 kernels of 4 x 4 numbers, whose work is a few nanoseconds, by their
 * number. Each needs all of the one before it (means over rows and over columns of exp(a c), where c is the last mean,
 * in turns), so that none can become part of another.
 *
 * On all threads: kernels that do nothing, one after the other: waking the threads and waiting for them.
 *
 * Prints a line of JSON: medians over the runs in microseconds a kernel.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "compiler/compiler.h"
#include "compiler/target/cpu/step.h"
#include "entrypoint/threads.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 100, MAX_RUNS = 10000, RUNS = 300, SIDE = 4, EMPTY = 1000 };

static const char model_text[] =
    "#include <trainyard/model.h>\n"
    "void model(ty_net *net)\n"
    "{\n"
    "    ty_var a = ty_input(net, \"a\", \"f32[%d,%d]\");\n"
    "    ty_var c = ty_reduce_mean(net, ty_exp(net, a), ty_dims(0), true);\n"
    "    for (int i = 0; i < %d; i++) {\n"
    "        ty_var r = ty_reduce_mean(net, ty_exp(net, ty_mul(net, a, c)), ty_dims(1), true);\n"
    "        c = ty_reduce_mean(net, ty_exp(net, ty_mul(net, a, r)), ty_dims(0), true);\n"
    "    }\n"
    "    ty_output(net, \"c\", c);\n"
    "}\n";

typedef struct chain {
    char folder[64], path[96];
    int kernels;
    ty_model *model;
    ty_program *program;
    float a[SIDE * SIDE];
    double us[MAX_RUNS]; /* a kernel */
} chain;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return x[n / 2];
}

static int chain_open(chain *c, ty_error *err)
{
    ty_buf text;
    strcpy(c->folder, "/tmp/trainyard-overhead-XXXXXX");
    if (!mkdtemp(c->folder))
        return ty_error_set(err, TY_E_CREATE, "making %s", c->folder);
    snprintf(c->path, sizeof c->path, "%s/model.c", c->folder);
    ty_buf_init(&text, 1 << 16);
    ty_buf_addf(&text, model_text, SIDE, SIDE, TURNS);
    int rc = ty_file_write(c->path, text.data, text.len, 0600, err);
    ty_buf_fini(&text);
    return rc < 0 ? -1 : ty_model_open(c->path, &c->model, err);
}

static int chain_compile(chain *c, ty_error *err)
{
    int64_t dim[2] = {SIDE, SIDE};
    ty_binding a = {"a", ty_type_make(TY_F32, 2, dim)};
    ty_compile_options options = {.backend = TY_BACKEND_CPU, .threads = 1};
    if (ty_compile_infer(c->model, &a, 1, &options, &c->program, err) < 0)
        return -1;
    c->kernels = ty_program_report(c->program)->n_kernels;
    if (c->kernels != 2 * TURNS + 1)
        return ty_error_set(err, TY_E_INTERNAL, "expected a chain of %d kernels, found %d", 2 * TURNS + 1, c->kernels);
    return 0;
}

static int chain_run(chain *c, int runs, ty_error *err)
{
    const void *input = c->a;
    for (int i = -3; i < runs; i++) {
        int64_t start = ty_clock_ns();
        if (ty_program_run(c->program, TY_RUN_EVAL, &input, err) < 0)
            return -1;
        if (i >= 0)
            c->us[i] = 1e-3 * (double)(ty_clock_ns() - start) / c->kernels;
    }
    return 0;
}

static void chain_close(chain *c)
{
    ty_program_free(c->program);
    ty_model_free(c->model);
    if (c->folder[0])
        ty_file_remove_tree(c->folder, NULL);
}

static int measure_alone(int runs, double *us, ty_error *err)
{
    static chain c;
    for (int i = 0; i < SIDE * SIDE; i++)
        c.a[i] = (float)(i % 17) / 64; /* means stay near one */
    int rc = chain_open(&c, err) < 0 || chain_compile(&c, err) < 0 || chain_run(&c, runs, err) < 0 ? -1 : 0;
    if (rc == 0)
        *us = median(c.us, runs);
    chain_close(&c);
    return rc;
}

static void do_nothing(char *const *b, long lo, long hi)
{
    (void)b, (void)lo, (void)hi;
}

static double measure_all(int runs, int threads)
{
    static double us[MAX_RUNS];
    ty_cpu_step step = {.kind = TY_CPU_KERNEL, .fn = do_nothing, .n_units = threads, .threads = threads};
    for (int i = -3; i < runs; i++) {
        int64_t start = ty_clock_ns();
        for (int k = 0; k < EMPTY; k++)
            ty_cpu_step_run(&step, NULL, NULL, NULL);
        if (i >= 0)
            us[i] = 1e-3 * (double)(ty_clock_ns() - start) / EMPTY;
    }
    return median(us, runs);
}

int main(int argc, char **argv)
{
    ty_threads_settle(argv);
    ty_error err = {0};
    int runs = argc > 1 ? atoi(argv[1]) : RUNS, threads = argc > 2 ? atoi(argv[2]) : omp_get_max_threads();
    if (runs < 1 || runs > MAX_RUNS || threads < 1 || argc > 3) {
        fprintf(stderr, "usage: overhead [RUNS [THREADS]]   (1 to %d runs)\n", MAX_RUNS);
        return 64;
    }
    double alone;
    int rc = measure_alone(runs, &alone, &err);
    if (rc == 0)
        printf("{\"threads\": %d, \"alone_us\": %.3f, \"all_threads_us\": %.3f}\n", threads, alone,
               measure_all(runs, threads));
    if (rc < 0) {
        char text[8192];
        ty_error_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return rc < 0 ? ty_error_exit_status(err.code) : 0;
}
