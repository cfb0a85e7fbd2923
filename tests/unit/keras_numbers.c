/* keras_numbers.c - layers of Keras models against Keras' own numbers (tests/golden/keras/numbers.py): results in
 * evaluation and in training, gradients to inputs and weights, moving statistics; by the interpreter in double, and
 * compiled, after all passes. */
#include "base/json.h"
#include "compiler/model.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"
#include "tests/unit/evaluate.h"

#define FOLDER "tests/golden/keras/"
enum { SUMS = 5, MOST = 1024 };

/* ---- numbers that follow from names ---- */

static uint32_t seed_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

static double noise(const char *name, int64_t i)
{
    uint32_t h = (uint32_t)((uint64_t)(i + 1) * 2654435761u + seed_of(name));
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return (double)(h >> 8) / 8388608.0 - 1;
}

static bool ends_with(const char *s, const char *tail)
{
    return strlen(s) >= strlen(tail) && strcmp(s + strlen(s) - strlen(tail), tail) == 0;
}

static float *values(const char *name, const ty_type *t)
{
    int64_t n = ty_type_elems(t);
    float *v = malloc((size_t)(n + 1) * sizeof *v);
    assert_non_null(v);
    for (int64_t i = 0; i < n; i++) {
        bool is_masked = *name == 'm' && i / t->dim[t->rank - 1] % 3 == 0;
        double x = is_masked ? 0 : noise(name, i);
        v[i] = (float)(ends_with(name, "variance") ? 0.6 + 0.5 * fabs(x) : x);
    }
    return v;
}

/* ---- a model in a graph whose inputs are data and weights ---- */

typedef struct scene {
    ty_model *model;
    ty_graph *g;
    int n_in, n_weights;
    ty_val leaf[MOST]; /* inputs of the model, then weights */
    float *data[MOST];
    ty_model_values values;
    int n_results;
    const char *name[MOST]; /* of results */
    ty_type type[MOST];
    double *result[MOST];
} scene;

static void add_leaf(scene *s, const ty_model_value *v)
{
    int n = ty_graph_n_inputs(s->g);
    assert_true(n < MOST);
    ty_type t = ty_type_make(v->dtype, v->rank, v->dim);
    s->leaf[n] = ty_b_input(s->g, ty_graph_add_input(s->g, v->name, t));
    s->data[n] = values(v->name, &t);
}

static void open_scene(scene *s, const char *path, ty_model_mode mode)
{
    ty_error err = {0};
    memset(s, 0, sizeof *s);
    if (ty_model_open(path, &s->model, &err) < 0)
        fail_msg("%s\n%s", err.message, err.help);
    s->g = ty_graph_new();
    s->n_in = ty_model_n_inputs(s->model);
    s->n_weights = ty_model_n_weights(s->model);
    for (int i = 0; i < s->n_in; i++)
        add_leaf(s, ty_model_input(s->model, i));
    for (int i = 0; i < s->n_weights; i++)
        add_leaf(s, ty_model_weight(s->model, i));
    ty_model_binding b = {.mode = mode,
                          .inputs = s->leaf,
                          .weights = s->leaf + s->n_in,
                          .seed = ty_b_scalar(s->g, TY_I64, 3),
                          .step = ty_b_scalar(s->g, TY_I64, 0)};
    if (ty_model_import(s->model, s->g, &b, &s->values, &err) < 0)
        fail_msg("%s\n%s", err.message, err.help);
    expect_ok(s->g);
}

static void close_scene(scene *s)
{
    for (int i = 0; i < s->n_in + s->n_weights; i++)
        free(s->data[i]);
    for (int i = 0; i < s->n_results; i++)
        free(s->result[i]);
    ty_graph_free(s->g);
    ty_model_free(s->model);
}

static void name_result(scene *s, const char *name, ty_val v)
{
    assert_int_not_equal(v, TY_NONE);
    ty_graph_add_output(s->g, name, v, TY_TAPE_EVAL);
}

static const char *joined(scene *s, const char *kind, const char *name)
{
    return ty_arena_printf(ty_graph_arena(s->g), "%s/%s", kind, name);
}

/* The sum of every output times noise. */
static ty_val loss_of(scene *s)
{
    ty_val loss = ty_b_scalar(s->g, TY_F32, 0);
    for (int k = 0; k < ty_model_n_outputs(s->model); k++) {
        char name[32];
        snprintf(name, sizeof name, "out%d", k);
        ty_val y = s->values.outputs[k];
        const ty_type t = *ty_graph_type(s->g, y);
        float *w = values(name, &t);
        ty_val p = ty_b_mul(s->g, y, ty_b_const_copy(s->g, t, w));
        loss = ty_b_add(s->g, loss, ty_b_sum(s->g, p, ty_b_all_axes(s->g, p), false));
        free(w);
    }
    return loss;
}

static void add_gradients(scene *s)
{
    ty_val grad[MOST];
    ty_error err = {0};
    int n = s->n_in + s->n_weights;
    if (ty_pass_autodiff(s->g, loss_of(s), s->leaf, n, grad, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < n; i++)
        name_result(s, joined(s, "grad", ty_graph_input(s->g, i)->name), grad[i]);
    for (int i = 0; i < s->values.n_updates; i++)
        name_result(s, joined(s, "update", ty_model_weight(s->model, s->values.updates[i].weight)->name),
                    s->values.updates[i].value);
}

static void add_outputs(scene *s, const char *mode)
{
    for (int k = 0; k < ty_model_n_outputs(s->model); k++) {
        char name[32];
        snprintf(name, sizeof name, "out%d", k);
        name_result(s, joined(s, mode, name), s->values.outputs[k]);
    }
}

static void interpret(scene *s)
{
    ty_error err = {0};
    ty_interp *it;
    if (ty_interp_new(s->g, &it, &err) < 0 ||
        ty_interp_run(it, TY_TAPE_EVAL, (const void *const *)s->data, false, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < s->n_results; i++)
        memcpy(s->result[i], ty_interp_output(it, i)->f, (size_t)ty_type_elems(&s->type[i]) * sizeof(double));
    ty_interp_free(it);
}

/* Takes the graph. */
static void compile(scene *s)
{
    ty_error err = {0};
    ty_program *p;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU, .threads = 2};
    if (ty_program_of_graph(s->g, TY_TAPE_EVAL, &opt, &p, &err) < 0 ||
        ty_program_run(p, TY_RUN_EVAL, (const void *const *)s->data, &err) < 0)
        fail_msg("%s", err.message);
    s->g = NULL;
    for (int i = 0; i < s->n_results; i++) {
        const ty_tensor *t = ty_program_output(p, TY_RUN_EVAL, s->name[i]);
        assert_true(t && ty_type_same(&t->type, &s->type[i]) && t->type.dtype == TY_F32);
        for (int64_t k = 0; k < ty_type_elems(&t->type); k++)
            s->result[i][k] = ((const float *)t->data)[k];
    }
    ty_program_free(p);
}

static void run_scene(scene *s, ty_backend backend, ty_arena *arena)
{
    expect_ok(s->g);
    s->n_results = ty_graph_n_outputs(s->g);
    for (int i = 0; i < s->n_results; i++) {
        const ty_output *o = ty_graph_output(s->g, i);
        s->name[i] = ty_arena_printf(arena, "%s", o->name);
        s->type[i] = *ty_graph_type(s->g, o->val);
        s->result[i] = calloc((size_t)ty_type_elems(&s->type[i]) + 1, sizeof(double));
        assert_non_null(s->result[i]);
    }
    if (backend == TY_BACKEND_CPU)
        compile(s);
    else
        interpret(s);
}

/* ---- comparison ---- */

static double number(const ty_doc *d)
{
    double v = 0;
    ty_error err = {0};
    if (!d || ty_doc_float(d, &v, &err) < 0)
        fail_msg("not a number in the golden file");
    return v;
}

static int find_result(const scene *s, const char *name)
{
    for (int i = 0; i < s->n_results; i++)
        if (strcmp(s->name[i], name) == 0)
            return i;
    return -1;
}

static int same_shape(const ty_doc *shape, const ty_type *t)
{
    int same = ty_doc_len(shape) == t->rank;
    for (int i = 0; i < t->rank && same; i++)
        same = ty_doc_at(shape, (size_t)i)->integer == t->dim[i];
    return same;
}

/* 1 if wrong. */
static int compare(const scene *s, const ty_doc *expected, double tolerance)
{
    const char *name = expected->key;
    int at = find_result(s, name);
    if (at < 0 && strncmp(name, "update/", 7) == 0) /* a frozen layer's: they stay */
        return 0;
    if (at < 0 || !same_shape(ty_doc_find(expected, "shape"), &s->type[at])) {
        print_error("%s: %s\n", name, at < 0 ? "not there" : "another shape");
        return 1;
    }
    const double *found = s->result[at];
    int64_t n = ty_type_elems(&s->type[at]);
    double norm = number(ty_doc_find(expected, "norm")), square = 0, wrong = 0;
    for (int64_t i = 0; i < n; i++)
        square += found[i] * found[i];
    for (int k = 0; k < SUMS; k++) {
        char key[128];
        double sum = 0, want = number(ty_doc_at(ty_doc_find(expected, "sums"), (size_t)k));
        snprintf(key, sizeof key, "%s#%d", name, k);
        for (int64_t i = 0; i < n; i++)
            sum += found[i] * noise(key, i);
        wrong = fmax(wrong, fabs(sum - want));
    }
    wrong = fmax(wrong, fabs(sqrt(square) - norm));
    if (wrong <= tolerance * (norm + 0.5))
        return 0;
    print_error("%s: off by %g where the norm is %g, found %g\n", name, wrong, norm, sqrt(square));
    return 1;
}

/* In one mode; the number of what is wrong. */
static int judge_mode(const char *path, const ty_doc *expected, ty_model_mode mode, ty_backend backend)
{
    const char *own = mode == TY_MODEL_TRAIN ? "train/" : "eval/";
    ty_arena arena;
    scene s;
    int n_wrong = 0;
    ty_arena_init(&arena);
    open_scene(&s, path, mode);
    add_outputs(&s, mode == TY_MODEL_TRAIN ? "train" : "eval");
    if (mode == TY_MODEL_TRAIN)
        add_gradients(&s);
    run_scene(&s, backend, &arena);
    for (size_t i = 0; i < ty_doc_len(expected); i++) {
        const ty_doc *e = ty_doc_at(expected, i);
        bool evaluates = strncmp(e->key, "eval/", 5) == 0;
        if (strncmp(e->key, own, strlen(own)) == 0 || (mode == TY_MODEL_TRAIN && !evaluates))
            n_wrong += compare(&s, e, backend == TY_BACKEND_CPU ? 2e-5 : 2e-6);
    }
    close_scene(&s);
    ty_arena_fini(&arena);
    return n_wrong;
}

static void judge(const char *family)
{
    char path[128];
    ty_arena arena;
    ty_doc *expected;
    ty_error err = {0};
    ty_arena_init(&arena);
    snprintf(path, sizeof path, FOLDER "%s.expected.json", family);
    if (ty_json_read(&arena, path, NULL, &expected, &err) < 0)
        fail_msg("%s", err.message);
    snprintf(path, sizeof path, FOLDER "%s.config.json", family);
    int n_wrong = judge_mode(path, expected, TY_MODEL_EVAL, TY_BACKEND_INTERPRETER) +
                  judge_mode(path, expected, TY_MODEL_TRAIN, TY_BACKEND_INTERPRETER) +
                  judge_mode(path, expected, TY_MODEL_TRAIN, TY_BACKEND_CPU);
    ty_arena_fini(&arena);
    assert_int_equal(n_wrong, 0);
}

static void conv1d(void **state)
{
    (void)state;
    judge("conv1d");
}

static void conv2d(void **state)
{
    (void)state;
    judge("conv2d");
}

static void conv3d(void **state)
{
    (void)state;
    judge("conv3d");
}

static void pools(void **state)
{
    (void)state;
    judge("pools");
}

static void planes(void **state)
{
    (void)state;
    judge("planes");
}

static void norms(void **state)
{
    (void)state;
    judge("norms");
}

static void masked(void **state)
{
    (void)state;
    judge("masked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv1d), cmocka_unit_test(conv2d), cmocka_unit_test(conv3d), cmocka_unit_test(pools),
        cmocka_unit_test(planes), cmocka_unit_test(norms),  cmocka_unit_test(masked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
