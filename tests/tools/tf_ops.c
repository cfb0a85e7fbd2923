/* tf_ops.c - the golden results of TensorFlow's operations (tests/tensorflow/golden_ops.py), computed by compiled
 * programs; tests/unit/tf_ops.c does the same with the interpreter.
 *
 *     tf_ops compiled|grid       on this processor, or as a GPU's kernels in the emulation of its grid
 *     tf_ops cuda DIR            leaves the kernels as CUDA C, for who compiles them (cuda_kernels)
 *
 * Some results make a program; the last line is "N passed, N failed, N skipped", by results.
 */
#include "compiler/import/tensorflow/tf_import.h"
#include "compiler/ir/build.h"
#include "compiler/ops/ref.h"
#include "compiler/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "tests/golden/tensorflow/"

enum { MAX_CASES = 2000, NAME = 80, EACH = 64 };

typedef struct golden {
    char got[NAME], want[NAME];
    double tolerance;
} golden;

static golden list[MAX_CASES];
static int passed, failed;

static int read_list(void)
{
    FILE *f = fopen(FOLDER "ops.txt", "r");
    int n = 0;
    while (f && n < MAX_CASES && fscanf(f, "%79s %79s %lf", list[n].got, list[n].want, &list[n].tolerance) == 3)
        n++;
    if (f)
        fclose(f);
    return n;
}

/* "y/Abs_0_0,want/Abs_0_0,..." */
static void name_outputs(int from, int to, char *out)
{
    for (int i = from; i < to; i++)
        out += sprintf(out, "%s%s,%s", i > from ? "," : "", list[i].got, list[i].want);
}

/* Floats of the file are inputs, so that nothing folds away what is tested. */
static int bind(const tf_file *file, ty_graph *g, ty_val *weights, const void **data)
{
    int n = 0;
    for (int i = 0; i < tf_n_variables(file); i++) {
        const tf_variable *v = tf_variable_at(file, i);
        weights[i] = TY_NONE;
        if (v->type.dtype != TY_F32 || !v->data || strncmp(v->name, "want", 4) == 0)
            continue;
        weights[i] = ty_b_input(g, ty_graph_add_input(g, v->name, v->type));
        data[n++] = v->data;
    }
    return n;
}

static double element(const ty_ref *r, int64_t k)
{
    return r->f ? r->f[k] : (double)r->i[k];
}

/* As a share of what is allowed: three times what the interpreter is, since fused sums round otherwise. */
static bool agree(const golden *g, const ty_tensor *got, const ty_tensor *want)
{
    ty_ref a, b;
    double scale = 1, most = 0;
    if (!got || !want || !ty_type_same(&got->type, &want->type) || ty_ref_init(&a, &got->type, NULL) < 0 ||
        ty_ref_init(&b, &want->type, NULL) < 0)
        return false;
    ty_ref_load(&a, got->data);
    ty_ref_load(&b, want->data);
    int64_t n = ty_type_elems(&got->type);
    for (int64_t k = 0; k < n; k++)
        if (isfinite(element(&b, k)))
            scale = fmax(scale, fabs(element(&b, k)));
    for (int64_t k = 0; k < n; k++) {
        double x = element(&a, k), y = element(&b, k);
        bool same = x == y || (isnan(x) && isnan(y));
        double d = same ? 0 : isfinite(x) && isfinite(y) ? fabs(x - y) / scale : INFINITY;
        most = fmax(most, d);
    }
    ty_ref_fini(&a);
    ty_ref_fini(&b);
    if (most > 3 * g->tolerance)
        printf("FAILED %s: apart by %g, allowed %g\n", g->got, most, 3 * g->tolerance);
    return most <= 3 * g->tolerance;
}

static const ty_tensor *output(ty_program *p, int number)
{
    char name[20];
    snprintf(name, sizeof name, "%d", number);
    return ty_program_output(p, TY_RUN_EVAL, name);
}

static int run(ty_graph *g, const ty_compile_options *opt, const void *const *data, int from, int to, ty_error *err)
{
    ty_program *p = NULL;
    if (ty_program_of_graph(g, TY_TAPE_EVAL, opt, &p, err) < 0)
        return -1;
    int rc = opt->plan_only ? 0 : ty_program_run(p, TY_RUN_EVAL, data, err);
    for (int i = 0; rc == 0 && i < to - from; i++) {
        bool good = opt->plan_only || agree(&list[from + i], output(p, 2 * i), output(p, 2 * i + 1));
        passed += good;
        failed += !good;
    }
    ty_program_free(p);
    return rc;
}

/* Results [from, to) as one program. */
static int run_some(const ty_compile_options *opt, int from, int to, ty_error *err)
{
    static char outputs[EACH * (2 * NAME + 2)];
    tf_file *file = NULL;
    ty_model_values values;
    name_outputs(from, to, outputs);
    if (tf_open(FOLDER "ops.pb", &(tf_options){.signature = outputs}, &file, err) < 0)
        return -1;
    ty_graph *g = ty_graph_new();
    ty_val *weights = calloc((size_t)tf_n_variables(file) + 1, sizeof *weights);
    const void **data = calloc((size_t)tf_n_variables(file) + 1, sizeof *data);
    bind(file, g, weights, data);
    ty_model_binding b = {.mode = TY_MODEL_EVAL, .weights = weights};
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    tf_run run_of = {.file = file, .signature = tf_chosen_signature(file)};
    int rc = tf_import(&run_of, g, &b, &values, err);
    for (int i = 0; rc == 0 && i < 2 * (to - from); i++) {
        char name[20];
        snprintf(name, sizeof name, "%d", i);
        ty_graph_add_output(g, name, values.outputs[i], TY_TAPE_EVAL);
    }
    if (rc == 0)
        rc = run(g, opt, data, from, to, err); /* takes the graph */
    else
        ty_graph_free(g);
    tf_close(file);
    free(weights);
    free(data);
    return rc;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 2};
    opt.grid = strcmp(how, "grid") == 0;
    if (strcmp(how, "cuda") == 0 && argc == 3) {
        opt.backend = TY_BACKEND_CUDA;
        opt.plan_only = true;
        opt.cuda_dir = argv[2];
    } else if (!opt.grid && strcmp(how, "compiled") != 0) {
        fprintf(stderr, "usage: tf_ops compiled|grid, tf_ops cuda DIR\n");
        return 2;
    }
    int n = read_list();
    for (int from = 0; from < n; from += EACH) {
        int to = from + EACH < n ? from + EACH : n;
        ty_error err = {0};
        char text[2000];
        if (run_some(&opt, from, to, &err) == 0)
            continue;
        ty_error_format(&err, text, sizeof text);
        printf("FAILED results %d to %d: %s\n", from, to - 1, text);
        failed += to - from;
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed > 0 || n == 0;
}
