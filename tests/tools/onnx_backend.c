/* onnx_backend.c - runs ONNX's backend test folders: NAME/model.onnx, NAME/test_data_set_K/{input,output}_I.pb.
 *
 *     onnx_backend --backends            their names
 *     onnx_backend [-v] [--backend NAME] [--passed FILE] [--only TEXT] DIR...
 *
 * A case passes if every output has the expected dtype and shape and every element |a - b| <= 1e-7 + 1e-3 |b|, NaN equal to
 * NaN: the rule of ONNX's own runner. Inputs that an operator needs to know beforehand (shapes, axes, repeats) are bound as
 * constants: first none, then the integers, then all. Each line says what failed and why; -v shows every case. Data
 * that we have no type for, and random numbers that another generator drew, are skipped.
 */
#include "compiler/import/onnx.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ops/ref.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_IO = 64, MAX_FILE_BYTES = 1 << 30, MAX_DEPTH = 6 };

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

typedef struct backend_case {
    char model[1400];
    ty_onnx *m;
    ty_arena arena; /* of one data set */
    ty_tensor in[MAX_IO], want[MAX_IO];
    int n_in, n_want;
    char reason[4096];
} backend_case;

/* Runs one graph: inputs in graph order, results checked by the caller through `check`. */
typedef struct backend {
    const char *name;
    int (*run)(backend_case *t, ty_graph *g, const void *const *inputs, ty_error *err);
} backend;

static bool verbose;
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
static int load_tensors(backend_case *t, const char *folder, const char *what, ty_tensor *out, int *n_out)
{
    char path[1400];
    for (*n_out = 0; *n_out < MAX_IO; ++*n_out) {
        size_t n = 0;
        snprintf(path, sizeof path, "%.1300s/%s_%d.pb", folder, what, *n_out);
        void *bytes = load_file(&t->arena, path, &n);
        ty_error err = {0};
        if (!bytes)
            return 0;
        if (ty_onnx_read_tensor(bytes, n, &t->arena, &out[*n_out], &err) < 0) {
            snprintf(t->reason, sizeof t->reason, "%s_%d.pb: %s", what, *n_out, err.message);
            return -1;
        }
        /* Protobuf does not align; the interpreter and constants want to. */
        ty_tensor *last = &out[*n_out];
        last->data = ty_arena_copy(&t->arena, last->data, ty_type_bytes(&last->type));
    }
    return 0;
}

/* ---- comparing ---------------------------------------------------------------------------------------------------- */

static bool same_number(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= 1e-7 + 1e-3 * fabs(b);
}

static bool compare(backend_case *t, int output, const ty_ref *got)
{
    char a[160], b[160];
    const ty_tensor *want = &t->want[output];
    if (!ty_type_same(&got->type, &want->type)) {
        snprintf(t->reason, sizeof t->reason, "output %d is %s, expected %s", output, ty_type_text(&got->type, a, sizeof a),
                 ty_type_text(&want->type, b, sizeof b));
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

/* ---- back ends ---------------------------------------------------------------------------------------------------- */

/* 0: compared and equal; 1: compared and different (reason is set); -1: *err. */
static int run_interpreter(backend_case *t, ty_graph *g, const void *const *inputs, ty_error *err)
{
    ty_interp *it;
    if (ty_interp_new(g, &it, err) < 0)
        return -1;
    int rc = ty_interp_run(it, TY_TAPE_EVAL, inputs, true, err);
    for (int i = 0; rc == 0 && i < t->n_want; i++)
        rc = compare(t, i, ty_interp_output(it, i)) ? 0 : 1;
    ty_interp_free(it);
    return rc;
}

static const backend backends[] = {
    {"interpreter", run_interpreter},
};
enum { N_BACKENDS = sizeof backends / sizeof backends[0] };

/* ---- one case ----------------------------------------------------------------------------------------------------- */

/* How inputs are bound in each attempt. */
typedef enum constness { NONE, INTEGERS, ALL, N_CONSTNESS } constness;

static int bind(backend_case *t, ty_graph *g, constness how, ty_val *val, const void **data)
{
    int n = 0;
    for (int i = 0; i < t->n_in; i++) {
        const ty_type *type = &t->in[i].type;
        bool fixed = how == ALL || (how == INTEGERS && !ty_dtype_is_float((ty_dtype)type->dtype));
        if (fixed)
            val[i] = ty_b_const(g, *type, t->in[i].data);
        else {
            data[n++] = t->in[i].data;
            val[i] = ty_b_input(g, ty_graph_add_input(g, ty_onnx_input(t->m, i)->name, *type));
        }
    }
    return n;
}

static bool has_random(const ty_graph *g)
{
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        if (ty_graph_op(g, id) == TY_OP_RNG)
            return true;
    return false;
}

static void describe(backend_case *t, const ty_error *err)
{
    if (verbose)
        ty_error_format(err, t->reason, sizeof t->reason);
    else
        snprintf(t->reason, sizeof t->reason, "%s", err->message);
}

/* *importable: whether another way of binding may help. */
static verdict attempt(backend_case *t, const backend *b, constness how, bool *importable)
{
    ty_graph *g = ty_graph_new();
    ty_val val[MAX_IO];
    const void *data[MAX_IO] = {NULL};
    ty_error err = {0};
    bind(t, g, how, val, data);
    ty_onnx_binding binding = {.mode = TY_ONNX_AS_WRITTEN, .inputs = val, .step = ty_b_scalar(g, TY_I64, 0),
                               .seed = ty_b_scalar(g, TY_I64, 1)};
    ty_onnx_values values;
    verdict v = FAILED;
    *importable = ty_onnx_import(t->m, g, &binding, &values, &err) == 0;
    if (*importable) {
        for (int i = 0; i < t->n_want; i++)
            ty_graph_add_output(g, ty_onnx_output(t->m, i)->name, values.outputs[i], TY_TAPE_EVAL);
        int rc = ty_graph_failed(g, &err) ? -1 : b->run(t, g, data, &err);
        v = rc == 0 ? PASSED : FAILED;
        if (rc < 0)
            describe(t, &err);
        if (rc > 0 && has_random(g)) {
            snprintf(t->reason, sizeof t->reason, "expects the numbers of another random generator");
            v = SKIPPED;
        }
    } else
        describe(t, &err);
    ty_graph_free(g);
    return v;
}

static verdict run_data_set(backend_case *t, const backend *b, const char *folder)
{
    if (load_tensors(t, folder, "input", t->in, &t->n_in) < 0 || load_tensors(t, folder, "output", t->want, &t->n_want) < 0)
        return SKIPPED;
    if (t->n_in != ty_onnx_n_inputs(t->m) || t->n_want > ty_onnx_n_outputs(t->m)) {
        snprintf(t->reason, sizeof t->reason, "%d inputs and %d outputs in %s, the model has %d and %d", t->n_in, t->n_want,
                 folder, ty_onnx_n_inputs(t->m), ty_onnx_n_outputs(t->m));
        return FAILED;
    }
    verdict v = FAILED;
    bool importable = false;
    for (int how = NONE; how < N_CONSTNESS && !importable; how++)
        v = attempt(t, b, (constness)how, &importable);
    return v;
}

static verdict run_case(backend_case *t, const backend *b, const char *folder)
{
    ty_error err = {0};
    struct stat st;
    verdict v = SKIPPED;
    snprintf(t->model, sizeof t->model, "%.1200s/model.onnx", folder);
    snprintf(t->reason, sizeof t->reason, "no data set");
    if (ty_onnx_open(t->model, &t->m, &err) < 0) {
        describe(t, &err);
        return FAILED;
    }
    for (int k = 0; k < 16; k++) {
        char set[1300];
        snprintf(set, sizeof set, "%.1200s/test_data_set_%d", folder, k);
        if (stat(set, &st) < 0)
            break;
        ty_arena_init(&t->arena);
        v = run_data_set(t, b, set);
        ty_arena_fini(&t->arena);
        if (v != PASSED)
            break;
    }
    ty_onnx_free(t->m);
    return v;
}

/* ---- folders ------------------------------------------------------------------------------------------------------ */

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

static void run_folder(const char *root, const backend *b, FILE *passed, int count[3])
{
    static const char *const words[] = {"ok  ", "FAIL", "skip"};
    case_list l = {0};
    find_cases(&l, root, "", 0);
    qsort(l.names, (size_t)l.n, sizeof *l.names, by_name);
    for (int i = 0; i < l.n; i++) {
        char folder[2300];
        backend_case *t = calloc(1, sizeof *t);
        snprintf(folder, sizeof folder, "%.1000s/%.1200s", root, l.names[i]);
        bool wanted = !only_text || strstr(l.names[i], only_text);
        verdict v = wanted ? run_case(t, b, folder) : PASSED;
        if (wanted) {
            count[v]++;
            if (v == PASSED && passed)
                fprintf(passed, "%s\n", l.names[i]);
            if (v != PASSED || verbose)
                printf("%s %s%s%s\n", words[v], l.names[i], v == PASSED ? "" : ": ", v == PASSED ? "" : t->reason);
        }
        free(t);
        free(l.names[i]);
    }
    free(l.names);
}

int main(int argc, char **argv)
{
    const backend *b = &backends[0];
    FILE *passed = NULL;
    int count[3] = {0}, n_folders = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--backends") == 0) {
            for (int k = 0; k < N_BACKENDS; k++)
                puts(backends[k].name);
            return 0;
        }
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only_text = argv[++i];
        else if (strcmp(argv[i], "--passed") == 0 && i + 1 < argc)
            passed = fopen(argv[++i], "w");
        else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
            b = NULL;
            i++;
            for (int k = 0; k < N_BACKENDS; k++)
                b = strcmp(backends[k].name, argv[i]) == 0 ? &backends[k] : b;
            if (!b) {
                fprintf(stderr, "onnx_backend: no back end \"%s\"\n", argv[i]);
                return 64;
            }
        } else {
            run_folder(argv[i], b, passed, count);
            n_folders++;
        }
    }
    if (n_folders == 0) {
        fprintf(stderr, "usage: onnx_backend [-v] [--backend NAME] [--only TEXT] [--passed FILE] DIR...\n");
        return 64;
    }
    if (passed)
        fclose(passed);
    printf("%d passed, %d failed, %d skipped\n", count[PASSED], count[FAILED], count[SKIPPED]);
    return count[FAILED] > 0;
}
