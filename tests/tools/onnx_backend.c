/* onnx_backend.c - runs ONNX's backend test folders: NAME/model.onnx, NAME/test_data_set_K/{input,output}_I.pb.
 *
 *     onnx_backend --backends            their names
 *     onnx_backend [-v] [--backend NAME] [--passed FILE] [--only TEXT] DIR...
 *     onnx_backend --gradient ... [--operators FILE]
 *     onnx_backend --cuda FOLDER DIR...  kernels are left in FOLDER as CUDA C, nothing runs
 *     onnx_backend --rows                the operators that can be imported, DOMAIN:OPERATOR
 *
 * A case passes if every output has the expected dtype and shape and every element |a - b| <= 1e-7 + 1e-3 |b|, NaN
 * equal to NaN: the rule of ONNX's own runner. Inputs that an operator needs to know beforehand (shapes, axes, repeats)
 * are bound as constants: first none, then the integers, then all. Each line says what failed and why; -v shows every
 * case. Data that we have no type for, and random numbers that another generator drew, are skipped. The compiled back
 * end puts many cases into one graph, because the system's C compiler is what takes time.
 *
 * --gradient does not compare results: it differentiates the sum of the outputs, weighted, by the float inputs
 * (integers are constants; where the floats cannot all vary, only the first does) and judges that by central
 * differences in the interpreter (onnx_gradient.h). Inputs are moved a little, so that they do not lie on kinks; a case
 * is tried with three distances. Skipped: cases without a float input or output, and those whose derivative is 0
 * everywhere. --operators appends the operators whose gradient was judged and is right, from cases of one node.
 */
#include "compiler/import/onnx.h"
#include "compiler/import/onnx_import.h"
#include "compiler/import/onnx_tree.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/ref.h"
#include "compiler/program.h"
#include "tests/tools/onnx_gradient.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_IO = 64, MAX_FILE_BYTES = 1 << 30, MAX_DEPTH = 6 };

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

/* One data set of a case. */
typedef struct item {
    char name[1200];   /* of the case, relative to the folder */
    char folder[2300]; /* of the case */
    int set;
    ty_onnx *m;
    ty_arena arena;
    ty_tensor in[MAX_IO], want[MAX_IO];
    int n_in, n_want;
    int first_in, n_graph_in; /* graph inputs of the item */
    const void *data[MAX_IO]; /* of these inputs */
    int first_out;            /* graph output of its result 0 */
    bool has_random, is_ready;
    verdict verdict;
    char reason[4096];
} item;

/* A back end runs a graph that holds the results of several items as outputs, and judges each. -1: none of it ran. */
typedef struct backend {
    const char *name;
    int batch; /* items in one graph */
    int (*run)(ty_graph *g, item *const *items, int n, const void *const *inputs, ty_error *err);
} backend;

static bool verbose, gradients;
static const char *only_text;

static void *load_file(ty_arena *arena, const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    struct stat st;
    void *data = NULL;
    if (fstat(fileno(f), &st) == 0 && st.st_size <= MAX_FILE_BYTES) {
        data = ty_arena_alloc(arena, (size_t)st.st_size + 1);
        *n = fread(data, 1, (size_t)st.st_size, f);
    }
    fclose(f);
    return data;
}

/* input_0.pb, input_1.pb ... of a data set. -1: one of them is no tensor of ours. */
static int load_tensors(item *t, const char *what, ty_tensor *out, int *n_out)
{
    char path[2600];
    for (*n_out = 0; *n_out < MAX_IO; ++*n_out) {
        size_t n = 0;
        snprintf(path, sizeof path, "%s/test_data_set_%d/%s_%d.pb", t->folder, t->set, what, *n_out);
        void *bytes = load_file(&t->arena, path, &n);
        ty_error err = {0};
        if (!bytes)
            return 0;
        if (ty_onnx_read_tensor(bytes, n, &t->arena, &out[*n_out], &err) < 0) {
            snprintf(t->reason, sizeof t->reason, "%s_%d.pb: %s", what, *n_out, err.message);
            return -1;
        }
        /* Protobuf does not align; kernels and constants want to. */
        ty_tensor *last = &out[*n_out];
        last->data = ty_arena_copy(&t->arena, last->data, ty_type_bytes(&last->type));
    }
    return 0;
}

/* ---- comparing ----------------------------------------------------------------------------------------------------
 */

static bool same_number(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= 1e-7 + 1e-3 * fabs(b);
}

static bool compare(item *t, int output, const ty_ref *got)
{
    char a[160], b[160];
    const ty_tensor *want = &t->want[output];
    if (!ty_type_same(&got->type, &want->type)) {
        snprintf(t->reason, sizeof t->reason, "output %d is %s, expected %s", output,
                 ty_type_text(&got->type, a, sizeof a), ty_type_text(&want->type, b, sizeof b));
        return false;
    }
    ty_ref ref;
    if (ty_ref_init(&ref, &want->type, NULL) < 0)
        return false;
    ty_ref_load(&ref, want->data);
    bool same = true;
    for (int64_t i = 0, n = ty_type_elems(&want->type); i < n && same; i++) {
        same = ref.f ? same_number(got->f[i], ref.f[i]) : got->i[i] == ref.i[i];
        if (!same && ref.f)
            snprintf(t->reason, sizeof t->reason, "output %d, element %lld: %.9g, expected %.9g", output, (long long)i,
                     got->f[i], ref.f[i]);
        else if (!same)
            snprintf(t->reason, sizeof t->reason, "output %d, element %lld: %lld, expected %lld", output, (long long)i,
                     (long long)got->i[i], (long long)ref.i[i]);
    }
    ty_ref_fini(&ref);
    return same;
}

static void judge(item *t, bool same)
{
    t->verdict = same ? PASSED : FAILED;
    if (!same && t->has_random) {
        snprintf(t->reason, sizeof t->reason, "expects the numbers of another random generator");
        t->verdict = SKIPPED;
    }
}

/* ---- back ends ----------------------------------------------------------------------------------------------------
 */

static int run_interpreter(ty_graph *g, item *const *items, int n, const void *const *inputs, ty_error *err)
{
    ty_interp *it;
    if (ty_interp_new(g, &it, err) < 0) {
        ty_graph_free(g);
        return -1;
    }
    int rc = ty_interp_run(it, TY_TAPE_EVAL, inputs, true, err);
    for (int k = 0; rc == 0 && k < n; k++) {
        bool same = true;
        for (int i = 0; i < items[k]->n_want && same; i++)
            same = compare(items[k], i, ty_interp_output(it, items[k]->first_out + i));
        judge(items[k], same);
    }
    ty_interp_free(it);
    ty_graph_free(g);
    return rc;
}

static bool compare_compiled(ty_program *p, item *t)
{
    bool same = true;
    for (int i = 0; i < t->n_want && same; i++) {
        char name[32];
        ty_ref ref;
        snprintf(name, sizeof name, "out%d", t->first_out + i);
        const ty_tensor *got = ty_program_output(p, TY_RUN_EVAL, name);
        if (!got || ty_ref_init(&ref, &got->type, NULL) < 0)
            return false;
        ty_ref_load(&ref, got->data);
        same = compare(t, i, &ref);
        ty_ref_fini(&ref);
    }
    return same;
}

static int run_program(ty_graph *g, item *const *items, int n, const void *const *inputs, const ty_compile_options *opt,
                       ty_error *err)
{
    ty_program *p = NULL;
    if (ty_program_of_graph(g, TY_TAPE_EVAL, opt, &p, err) < 0)
        return -1;
    int rc = ty_program_run(p, TY_RUN_EVAL, inputs, err);
    for (int k = 0; rc == 0 && k < n; k++)
        judge(items[k], compare_compiled(p, items[k]));
    ty_program_free(p);
    return rc;
}

static int run_compiled(ty_graph *g, item *const *items, int n, const void *const *inputs, ty_error *err)
{
    return run_program(g, items, n, inputs, &(ty_compile_options){.backend = TY_BACKEND_CPU, .threads = 2}, err);
}

static int run_grid(ty_graph *g, item *const *items, int n, const void *const *inputs, ty_error *err)
{
    return run_program(g, items, n, inputs, &(ty_compile_options){.backend = TY_BACKEND_CPU, .grid = true}, err);
}

static const char *cuda_dir;

/* Kernels are left in a folder as CUDA C; nothing runs. */
static int run_cuda(ty_graph *g, item *const *items, int n, const void *const *inputs, ty_error *err)
{
    ty_program *p = NULL;
    ty_compile_options opt = {.backend = TY_BACKEND_CUDA, .threads = 2, .plan_only = true, .cuda_dir = cuda_dir};
    (void)inputs;
    if (ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, err) < 0)
        return -1;
    for (int k = 0; k < n; k++)
        judge(items[k], true);
    ty_program_free(p);
    return 0;
}

static const backend backends[] = {
    {"interpreter", 1, run_interpreter},
    {"compiled", 64, run_compiled},
    {"grid", 64, run_grid},
};
enum { N_BACKENDS = sizeof backends / sizeof backends[0] };
static const backend cuda_backend = {"cuda", 64, run_cuda}; /* no judge, so none of these */

/* ---- items into graphs --------------------------------------------------------------------------------------------
 */

/* How inputs are bound in each attempt. */
typedef enum constness { NONE, INTEGERS, ALL, N_CONSTNESS } constness;

static void bind(item *t, ty_graph *g, constness how, ty_val *val)
{
    t->first_in = ty_graph_n_inputs(g);
    t->n_graph_in = 0;
    for (int i = 0; i < t->n_in; i++) {
        const ty_type *type = &t->in[i].type;
        char name[32];
        if (how == ALL || (how == INTEGERS && !ty_dtype_is_float((ty_dtype)type->dtype))) {
            val[i] = ty_b_const(g, *type, t->in[i].data);
            continue;
        }
        snprintf(name, sizeof name, "in%d", ty_graph_n_inputs(g));
        t->data[t->n_graph_in++] = t->in[i].data;
        val[i] = ty_b_input(g, ty_graph_add_input(g, name, *type));
    }
}

static void describe(item *t, const ty_error *err)
{
    if (verbose)
        ty_error_format(err, t->reason, sizeof t->reason);
    else
        snprintf(t->reason, sizeof t->reason, "%s", err->message);
}

static bool import_as(item *t, ty_graph *g, constness how, int64_t stream)
{
    ty_val val[MAX_IO];
    ty_error err = {0};
    bind(t, g, how, val);
    ty_onnx_binding binding = {.mode = TY_ONNX_AS_WRITTEN,
                               .inputs = val,
                               .step = ty_b_scalar(g, TY_I64, 0),
                               .seed = ty_b_scalar(g, TY_I64, 1),
                               .stream = stream};
    ty_onnx_values values;
    uint32_t first = ty_graph_n_nodes(g);
    if (ty_onnx_import(t->m, g, &binding, &values, &err) < 0) {
        describe(t, &err);
        return false;
    }
    t->has_random = false;
    for (uint32_t id = first; id < ty_graph_n_nodes(g); id++)
        t->has_random |= ty_graph_op(g, id) == TY_OP_RNG;
    t->first_out = ty_graph_n_outputs(g);
    for (int i = 0; i < t->n_want; i++) {
        char name[32];
        snprintf(name, sizeof name, "out%d", t->first_out + i);
        ty_graph_add_output(g, name, values.outputs[i], TY_TAPE_EVAL);
    }
    return true;
}

/* Each item draws random numbers from streams of its own. */
static void import_item(item *t, ty_graph *g, int number)
{
    for (int how = NONE; how < N_CONSTNESS; how++)
        if (import_as(t, g, (constness)how, (int64_t)number << 16))
            return;
    t->verdict = FAILED;
    t->is_ready = false;
}

/* All ready items in one graph; where that cannot run, halves of them, down to the one that is to blame. */
static void run_items(const backend *b, item *const *items, int n)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    item *ready[64];
    int n_ready = 0;
    for (int k = 0; k < n; k++) {
        if (items[k]->is_ready)
            import_item(items[k], g, k);
        if (items[k]->is_ready)
            ready[n_ready++] = items[k];
    }
    const void **inputs = calloc((size_t)ty_graph_n_inputs(g) + 1, sizeof *inputs);
    for (int k = 0; k < n_ready; k++)
        for (int i = 0; i < ready[k]->n_graph_in; i++)
            inputs[ready[k]->first_in + i] = ready[k]->data[i];
    int rc = 0;
    if (n_ready == 0)
        ty_graph_free(g);
    else
        rc = b->run(g, ready, n_ready, inputs, &err);
    free(inputs);
    if (rc == 0)
        return;
    if (n_ready == 1) {
        describe(ready[0], &err);
        ready[0]->verdict = FAILED;
    } else {
        run_items(b, ready, n_ready / 2);
        run_items(b, ready + n_ready / 2, n_ready - n_ready / 2);
    }
}

/* ---- gradients ----------------------------------------------------------------------------------------------------
 */

static bool is_float(const ty_type *t)
{
    return ty_dtype_is_float((ty_dtype)t->dtype);
}

/* How far inputs are moved in each attempt, relative to their size. */
typedef enum move_kind { BOTH_WAYS, UPWARDS, DRAWN_ANEW } move_kind;
typedef struct move {
    move_kind kind; /* DRAWN_ANEW: 0.5 to 1.5, for data that are garbage or give no number */
    double distance;
} move;

/* The input as doubles, moved. */
static double *moved(item *t, int input, const move *how)
{
    ty_ref ref;
    const ty_type *type = &t->in[input].type;
    int64_t n = ty_type_elems(type);
    double *x = ty_arena_alloc(&t->arena, sizeof *x * (size_t)(n + 1));
    if (ty_ref_init(&ref, type, NULL) < 0)
        return x;
    ty_ref_load(&ref, t->in[input].data);
    for (int64_t k = 0; k < n; k++) {
        double u = gradient_uniform((uint32_t)input, k), size = fabs(ref.f[k]) + 0.1;
        if (how->kind == DRAWN_ANEW)
            x[k] = 0.5 + u;
        else if (isfinite(ref.f[k]))
            x[k] = ref.f[k] + how->distance * size * (how->kind == UPWARDS ? u : 2 * u - 1);
        else
            x[k] = ref.f[k];
    }
    ty_ref_fini(&ref);
    return x;
}

/* Imports with float inputs (only the first one if `few`) as variables; false: t->reason says why not. */
static bool import_variable(item *t, gradient_job *j, bool few, const move *how, ty_val *x, ty_val *y, double **data)
{
    ty_graph *g = j->g;
    ty_val val[MAX_IO];
    ty_error err = {0};
    for (int i = 0; i < t->n_in; i++) {
        ty_type type = t->in[i].type;
        char name[32];
        if (!is_float(&type) || (few && j->n_x > 0)) {
            val[i] = ty_b_const(g, type, t->in[i].data);
            continue;
        }
        snprintf(name, sizeof name, "x%d", j->n_x);
        data[j->n_x] = moved(t, i, how);
        ty_state state = {.name = name, .type = type, .segments = &(ty_segment){name, type, 0}, .n_segments = 1};
        val[i] = x[j->n_x++] = ty_b_state(g, ty_graph_add_state(g, &state));
    }
    ty_onnx_binding binding = {.mode = TY_ONNX_AS_WRITTEN,
                               .inputs = val,
                               .step = ty_b_scalar(g, TY_I64, 0),
                               .seed = ty_b_scalar(g, TY_I64, 1)};
    ty_onnx_values values;
    if (ty_onnx_import(t->m, g, &binding, &values, &err) < 0) {
        describe(t, &err);
        return false;
    }
    for (int i = 0; i < t->n_want; i++)
        if (is_float(ty_graph_type(g, values.outputs[i])))
            y[j->n_y++] = ty_b_cast(g, values.outputs[i], TY_F64);
    return true;
}

/* One attempt. False: the inputs cannot vary like this. */
static bool try_gradient(item *t, bool few, const move *how)
{
    static const verdict words[] = {[GRADIENT_RIGHT] = PASSED, [GRADIENT_WRONG] = FAILED, [GRADIENT_FLAT] = SKIPPED};
    ty_val x[MAX_IO], y[MAX_IO];
    double *data[MAX_IO];
    gradient_job j = {.g = ty_graph_new(), .x = x, .y = y, .data = data, .reason = t->reason};
    /* A derivative that passes a cast to 16 bits is rounded like the values, unless 16 bits hold it. */
    j.tolerance = 1e-5;
    for (int i = 0; i < t->n_in + t->n_want; i++) {
        const ty_type *type = i < t->n_in ? &t->in[i].type : &t->want[i - t->n_in].type;
        if (is_float(type) && ty_dtype_bytes((ty_dtype)type->dtype) == 2)
            j.tolerance = 4e-3, j.sixteenths = true;
    }
    bool bound = import_variable(t, &j, few, how, x, y, data);
    if (bound && (j.n_x == 0 || j.n_y == 0)) {
        t->verdict = SKIPPED;
        snprintf(t->reason, sizeof t->reason, "no %s is a float", j.n_x == 0 ? "input" : "output");
    } else if (bound) {
        gradient_verdict v = gradient_judge(&j);
        t->verdict = words[v];
        if (v == GRADIENT_FLAT)
            snprintf(t->reason, sizeof t->reason, "the derivative is 0 everywhere");
    }
    ty_graph_free(j.g);
    return bound;
}

static void judge_gradient(item *t)
{
    static const move moves[] = {
        {BOTH_WAYS, 1e-2}, {BOTH_WAYS, 1e-3}, {UPWARDS, 1e-2}, {BOTH_WAYS, 0}, {DRAWN_ANEW, 0}};
    for (size_t k = 0; k < sizeof moves / sizeof *moves; k++) {
        if (!try_gradient(t, false, &moves[k]) && !try_gradient(t, true, &moves[k])) {
            t->verdict = FAILED;
            return;
        }
        if (t->verdict != FAILED)
            return;
    }
}

static void judge_gradients(item *const *items, int n)
{
    for (int k = 0; k < n; k++)
        if (items[k]->is_ready)
            judge_gradient(items[k]);
}

/* ---- cases --------------------------------------------------------------------------------------------------------
 */

/* Older test data hold bfloat16 as uint16. */
static void restore_bf16(const ty_onnx_value *v, ty_tensor *tensor)
{
    if (v->dtype == TY_BF16 && tensor->type.dtype == TY_U16)
        tensor->type.dtype = TY_BF16;
}

static void load_item(item *t)
{
    ty_error err = {0};
    char model[2400];
    snprintf(model, sizeof model, "%s/model.onnx", t->folder);
    ty_arena_init(&t->arena);
    t->verdict = FAILED;
    if (ty_onnx_open(model, &t->m, &err) < 0) {
        describe(t, &err);
        return;
    }
    if (load_tensors(t, "input", t->in, &t->n_in) < 0 || load_tensors(t, "output", t->want, &t->n_want) < 0)
        t->verdict = SKIPPED;
    else if (t->n_in != ty_onnx_n_inputs(t->m) || t->n_want > ty_onnx_n_outputs(t->m))
        snprintf(t->reason, sizeof t->reason, "%d inputs and %d outputs in data set %d, the model has %d and %d",
                 t->n_in, t->n_want, t->set, ty_onnx_n_inputs(t->m), ty_onnx_n_outputs(t->m));
    else
        t->is_ready = true;
    for (int i = 0; t->is_ready && i < t->n_in; i++)
        restore_bf16(ty_onnx_input(t->m, i), &t->in[i]);
    for (int i = 0; t->is_ready && i < t->n_want; i++)
        restore_bf16(ty_onnx_output(t->m, i), &t->want[i]);
}

static void free_item(item *t)
{
    ty_onnx_free(t->m);
    ty_arena_fini(&t->arena);
    free(t);
}

typedef struct case_list {
    char **names; /* relative to the folder */
    int n, room;
} case_list;

static void list_add(case_list *l, const char *name)
{
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 256;
        l->names = realloc(l->names, sizeof *l->names * (size_t)l->room);
    }
    l->names[l->n++] = strdup(name);
}

static void find_cases(case_list *l, const char *root, const char *relative, int depth)
{
    char path[2500], next[1200];
    struct stat st;
    snprintf(path, sizeof path, "%.1000s%s%.1200s", root, relative[0] ? "/" : "", relative);
    DIR *d = opendir(path);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.' || depth > MAX_DEPTH)
            continue;
        snprintf(next, sizeof next, "%.900s%s%.255s", relative, relative[0] ? "/" : "", e->d_name);
        snprintf(path, sizeof path, "%.1000s/%s/model.onnx", root, next);
        if (stat(path, &st) == 0)
            list_add(l, next);
        else
            find_cases(l, root, next, depth + 1);
    }
    closedir(d);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct tally {
    FILE *passed, *operators;
    int count[3];
} tally;

/* Takes or gives what no test datum can be. */
static bool is_boxing(const onnx_node *node)
{
    return strstr(node->op_type, "Sequence") || strstr(node->op_type, "Optional");
}

/* DOMAIN:OPERATOR of the only node that computes, or of all in a chain through sequences or optionals. */
static void print_operators(FILE *out, const ty_onnx *m)
{
    const ty_wire_list *nodes = &m->tree.graph->nodes;
    int n = 0, n_boxing = 0;
    for (size_t k = 0; k < nodes->n; k++) {
        n += strcmp(ONNX_AT(*nodes, onnx_node, k)->op_type, "Constant") != 0;
        n_boxing += is_boxing(ONNX_AT(*nodes, onnx_node, k));
    }
    for (size_t k = 0; k < nodes->n && (n == 1 || n == n_boxing); k++) {
        const onnx_node *node = ONNX_AT(*nodes, onnx_node, k);
        if (strcmp(node->op_type, "Constant") != 0)
            fprintf(out, "%s:%s\n", node->domain ? node->domain : "", node->op_type);
    }
}

static void print_rows(void)
{
    int n;
    const onnx_op_row *rows = onnx_op_rows(&n);
    for (int i = 0; i < n; i++)
        printf("%s:%s\n", rows[i].domain, rows[i].op_type);
}

/* A case is as good as the worst of its data sets, which stand in a row. */
static void report(tally *sum, item *const *items, int n)
{
    static const char *const words[] = {"ok  ", "FAIL", "skip"};
    for (int k = 0; k < n;) {
        const item *worst = items[k];
        int first = k;
        for (; k < n && strcmp(items[k]->name, items[first]->name) == 0; k++)
            worst = worst->verdict == PASSED ? items[k] : worst;
        sum->count[worst->verdict]++;
        if (worst->verdict == PASSED && sum->passed)
            fprintf(sum->passed, "%s\n", worst->name);
        if (worst->verdict == PASSED && sum->operators)
            print_operators(sum->operators, worst->m);
        if (worst->verdict != PASSED || verbose)
            printf("%s %s%s%s\n", words[worst->verdict], worst->name, worst->verdict == PASSED ? "" : ": ",
                   worst->verdict == PASSED ? "" : worst->reason);
    }
}

/* Adds the data sets of a case; returns how many. */
static int add_sets(const char *root, const char *name, item **items, int room)
{
    int n = 0;
    struct stat st;
    char set[2400];
    for (; n < room; n++) {
        item *t = calloc(1, sizeof *t);
        snprintf(t->name, sizeof t->name, "%.1100s", name);
        snprintf(t->folder, sizeof t->folder, "%.1000s/%.1200s", root, name);
        t->set = n;
        snprintf(set, sizeof set, "%s/test_data_set_%d", t->folder, n);
        if (stat(set, &st) < 0) {
            free(t);
            return n;
        }
        load_item(t);
        items[n] = t;
    }
    return n;
}

static void run_folder(const char *root, const backend *b, tally *sum)
{
    enum { MAX_SETS = 8, MAX_BATCH = 64 };
    case_list l = {0};
    item *items[MAX_BATCH];
    int n = 0;
    find_cases(&l, root, "", 0);
    qsort(l.names, (size_t)l.n, sizeof *l.names, by_name);
    for (int i = 0; i <= l.n; i++) {
        if (i == l.n || n >= b->batch || n + MAX_SETS > MAX_BATCH) {
            if (gradients)
                judge_gradients(items, n);
            else
                run_items(b, items, n);
            report(sum, items, n);
            for (int k = 0; k < n; k++)
                free_item(items[k]);
            n = 0;
        }
        if (i < l.n && (!only_text || strstr(l.names[i], only_text)))
            n += add_sets(root, l.names[i], items + n, MAX_SETS);
    }
    for (int i = 0; i < l.n; i++)
        free(l.names[i]);
    free(l.names);
}

static const backend *find_backend(const char *name)
{
    for (int k = 0; k < N_BACKENDS; k++)
        if (strcmp(backends[k].name, name) == 0)
            return &backends[k];
    fprintf(stderr, "onnx_backend: no back end \"%s\"\n", name);
    return NULL;
}

int main(int argc, char **argv)
{
    const backend *b = &backends[0];
    tally sum = {0};
    int n_folders = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--gradient") == 0)
            gradients = true;
        else if (strcmp(argv[i], "--backends") == 0) {
            for (int k = 0; k < N_BACKENDS; k++)
                puts(backends[k].name);
            return 0;
        } else if (strcmp(argv[i], "--rows") == 0) {
            print_rows();
            return 0;
        } else if (strcmp(argv[i], "--operators") == 0 && i + 1 < argc)
            sum.operators = fopen(argv[++i], "a");
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only_text = argv[++i];
        else if (strcmp(argv[i], "--passed") == 0 && i + 1 < argc)
            sum.passed = fopen(argv[++i], "w");
        else if (strcmp(argv[i], "--cuda") == 0 && i + 1 < argc)
            b = &cuda_backend, cuda_dir = argv[++i];
        else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
            if (!(b = find_backend(argv[++i])))
                return 64;
        } else {
            run_folder(argv[i], b, &sum);
            n_folders++;
        }
    }
    if (n_folders == 0) {
        fprintf(stderr,
                "usage: onnx_backend [-v] [--gradient | --backend NAME | --cuda DIR] [--only TEXT] [--passed FILE]\n"
                "                    DIR...\n");
        return 64;
    }
    if (sum.passed)
        fclose(sum.passed);
    printf("%d passed, %d failed, %d skipped\n", sum.count[PASSED], sum.count[FAILED], sum.count[SKIPPED]);
    return sum.count[FAILED] > 0;
}
