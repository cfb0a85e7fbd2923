/* Our numbers beside those that others got: tests/golden/numbers, whose README says who and how.
 *
 * A case is a piece of a recipe, as a user writes it, and what another program made of the same thing. Each goes the
 * whole way: recipe, specification, training step, and the run, in the interpreter with every value rounded to its type
 * (compiled code is compared with that elsewhere), and the rules of optimizers compiled, too.
 *
 *     optimizers   weights after every step, from given gradients
 *     tables       likewise, updated by rows, of two lookups in one table
 *     schedules    learning rates of twelve steps
 *     losses       the loss and its gradient by each output
 *     metrics      over 23 rows in batches of five, the last one not full
 */
#include "tests/unit/onnx_model.h"

#include "base/file.h"
#include "base/json.h"
#include "compiler/passes/optimizer.h"
#include "compiler/passes/loss.h"
#include "compiler/passes/schedule.h"
#include "entrypoint/spec.h"
#include "entrypoint/tally.h"

#include <math.h>
#include <unistd.h>

enum { MAX_PARTS = 4, MAX_DATA = 128 };

/* ---- golden files ---------------------------------------------------------------------------------------------------
 */

static ty_arena arena;
static char model_path[64];
static bool seen_optimizer[TY_N_OPTIMIZER_KINDS], seen_loss[TY_N_LOSS_KINDS], seen_metric[TY_N_METRIC_KINDS],
    seen_schedule[TY_N_SCHEDULE_KINDS];

static const ty_doc *golden(const char *name)
{
    ty_doc *doc;
    ty_error err = {0};
    if (ty_json_read(&arena, ty_arena_printf(&arena, "tests/golden/numbers/%s", name), NULL, &doc, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    assert_true(ty_doc_len(ty_doc_find(doc, "cases")) > 0);
    return doc;
}

static const char *word(const ty_doc *map, const char *key)
{
    const char *text = "";
    ty_error err = {0};
    const ty_doc *d = ty_doc_find(map, key);
    if (!d || ty_doc_string(d, &text, &err) < 0)
        fail_msg("no text \"%s\"", key);
    return text;
}

static double number(const ty_doc *d)
{
    double v = NAN;
    ty_error err = {0};
    if (!d || ty_doc_float(d, &v, &err) < 0)
        fail_msg("no number: %s", err.message);
    return v;
}

/* All numbers of a nested list, row by row, and its shape. */
typedef struct array {
    int rank, n;
    int64_t dim[4];
    bool is_float;
    double v[MAX_DATA];
} array;

static void flatten(const ty_doc *d, int depth, array *out)
{
    if (d->kind != TY_DOC_LIST) {
        assert_true(out->n < MAX_DATA);
        out->is_float = out->is_float || d->kind == TY_DOC_FLOAT;
        out->v[out->n++] = number(d);
        return;
    }
    out->rank = depth + 1 > out->rank ? depth + 1 : out->rank;
    out->dim[depth] = (int64_t)ty_doc_len(d);
    for (size_t i = 0; i < ty_doc_len(d); i++)
        flatten(ty_doc_at(d, i), depth + 1, out);
}

static array array_of(const ty_doc *d)
{
    array a = {0};
    assert_non_null(d);
    flatten(d, 0, &a);
    return a;
}

/* ---- a case as a training -------------------------------------------------------------------------------------------
 */

typedef struct training {
    const ty_doc *about; /* for messages */
    ty_model *model;
    ty_recipe recipe;
    ty_spec_plan plan;
    ty_train_spec spec;
    ty_program *program;
} training;

static const char *case_name(const training *t)
{
    return ty_arena_printf(&arena, "%s  (%s)", word(t->about, "recipe"), word(t->about, "is"));
}

/* A data set that knows the type of each field and has no samples: the step is built from types alone. */
static ty_dataset fields_only(const ty_spec_plan *plan, const ty_doc *fields, const ty_doc *inputs)
{
    ty_dataset d = {.n_fields = plan->n_fields, .field = TY_NEW_ARRAY(&arena, ty_field_info, plan->n_fields)};
    for (int i = 0; i < plan->n_fields; i++) {
        const char *name = plan->fields[i].name;
        const ty_doc *values = ty_doc_find(fields, name);
        array a = array_of(values ? values : ty_doc_find(inputs, name));
        d.field[i].name = name;
        d.field[i].type = ty_type_make(plan->fields[i].dtype, a.rank - 1, a.dim + 1);
    }
    return d;
}

static void add_names(ty_buf *b, const ty_doc *map)
{
    for (size_t i = 0; i < ty_doc_len(map); i++)
        ty_buf_addf(b, "%s%s", b->data[b->len - 1] == '[' ? "" : ", ", ty_doc_at(map, i)->key);
}

/* The case's piece between the parts that every recipe needs. */
static void read_recipe(training *t, const ty_doc *inputs, const ty_doc *fields, int64_t batch)
{
    ty_buf b;
    ty_error err = {0};
    const char *piece = word(t->about, "recipe");
    ty_buf_init(&b, 1 << 16);
    ty_buf_addf(&b, "model: m.onnx\nbatch_size: %lld\n%s\n", (long long)batch, piece);
    if (!strstr(piece, "loss:"))
        ty_buf_addf(&b, "loss: mean\n");
    if (!strstr(piece, "optimizer:"))
        ty_buf_addf(&b, "optimizer: {sgd: {lr: %s}}\n", strstr(piece, "schedule:") ? "0.5" : "1");
    ty_buf_addf(&b, "data: {train: {fields: [");
    add_names(&b, inputs);
    add_names(&b, fields);
    ty_buf_addf(&b, "]}}\n");
    if (ty_recipe_parse("train.yaml", b.data, b.len, "/job", NULL, 0, &arena, &t->recipe, &err) < 0)
        fail_msg("%s: %s\n%s", err.place, err.message, b.data);
    ty_buf_fini(&b);
}

static void open_model(training *t, model_text *text)
{
    ty_error err = {0};
    model_end(text);
    if (ty_file_write(model_path, text->file.data, text->file.len, 0600, &err) < 0 ||
        ty_model_open(model_path, &t->model, &err) < 0)
        fail_msg("%s", err.message);
    ty_buf_fini(&text->file);
}

static void compile(training *t, const ty_doc *inputs, const ty_doc *fields, bool evaluates, ty_backend backend)
{
    ty_error err = {0};
    ty_compile_options opt = {.backend = backend, .threads = 1};
    if (ty_spec_plan_make(&t->recipe, t->model, &arena, &t->plan, &err) < 0)
        fail_msg("%s: %s", case_name(t), err.message);
    ty_dataset data = fields_only(&t->plan, fields, inputs);
    if (ty_spec_build(&t->recipe, &t->plan, &data, 1, 100, 1000, evaluates, &arena, &t->spec, &err) < 0 ||
        ty_compile_train(t->model, &t->spec, &opt, &t->program, &err) < 0)
        fail_msg("%s: %s", case_name(t), err.message);
    seen_optimizer[t->spec.optimizer.kind] = seen_schedule[t->spec.schedule.kind] = true;
    for (int i = 0; i < t->spec.n_loss; i++)
        seen_loss[t->spec.loss[i].kind] = true;
    for (int i = 0; i < t->spec.n_metrics; i++)
        seen_metric[t->spec.metrics[i].kind] = true;
}

static void end(training *t)
{
    ty_program_free(t->program);
    ty_model_free(t->model);
}

static void run(training *t, ty_run tape, const void *const *inputs)
{
    ty_error err = {0};
    if (ty_program_run(t->program, tape, inputs, &err) < 0)
        fail_msg("%s: %s", case_name(t), err.message);
}

static const ty_tensor *output(training *t, ty_run tape, const char *name)
{
    const ty_tensor *v = ty_program_output(t->program, tape, name);
    if (!v)
        fail_msg("%s: no output %s", case_name(t), name);
    return v;
}

static const float *weight(training *t, const char *name)
{
    for (int i = 0; i < ty_program_n_tensors(t->program); i++) {
        const char *found;
        ty_tensor w = ty_program_tensor(t->program, i, &found, NULL);
        if (strcmp(found, name) == 0)
            return w.data;
    }
    fail_msg("%s: no weight %s", case_name(t), name);
    return NULL;
}

/* |difference| <= 1e-6 max(1, |want|), for losses and gradients of max(0.1, ...). */
static void expect(const training *t, const char *what, double got, double want, double least)
{
    if (!(fabs(got - want) <= 1e-6 * fmax(least, fabs(want))))
        fail_msg("%s\n    %s: expected %.10g, found %.10g", case_name(t), what, want, got);
}

/* ---- optimizers -----------------------------------------------------------------------------------------------------
 */

/* y = sum of kernel * gk + sum of bias * gb: its gradients are the inputs, whatever the weights. */
static void open_sum(training *t, const ty_doc *start)
{
    model_text m;
    float w[9];
    array a = array_of(start);
    for (int i = 0; i < 9; i++)
        w[i] = (float)a.v[i];
    model_begin(&m, 13);
    model_input(&m, "gk", 1, SHAPE(1, 2, 3));
    model_input(&m, "gb", 1, SHAPE(1, 3));
    model_floats(&m, "kernel", SHAPE(2, 3), w);
    model_floats(&m, "bias", SHAPE(3), w + 6);
    model_node(&m, "Mul", "gk,kernel", "k", "");
    model_node(&m, "Mul", "gb,bias", "b", "");
    attr_int(&m, "keepdims", 0);
    model_node(&m, "ReduceSum", "k", "ks", "");
    attr_int(&m, "keepdims", 0);
    model_node(&m, "ReduceSum", "b", "bs", "");
    model_node(&m, "Add", "ks,bs", "y", "");
    model_output(&m, "y", 1);
    open_model(t, &m);
}

static const char *const gradient_inputs = "{\"gk\": [[[0, 0, 0], [0, 0, 0]]], \"gb\": [[0, 0, 0]]}";

static void feed_gradients(training *t, ty_run tape, const array *g)
{
    float all[9];
    for (int i = 0; i < 9; i++)
        all[i] = (float)g->v[i];
    run(t, tape, (const void *[]){all, all + 6});
}

static void expect_weights(training *t, int step, const array *want)
{
    const float *kernel = weight(t, "kernel"), *bias = weight(t, "bias");
    for (int i = 0; i < 9; i++) {
        const char *what = ty_arena_printf(&arena, "step %d, %s[%d]", step + 1, i < 6 ? "kernel" : "bias", i % 6);
        expect(t, what, (double)(i < 6 ? kernel[i] : bias[i - 6]), want->v[i], 1);
    }
}

static void follow_course(const ty_doc *file, const ty_doc *c, ty_backend backend)
{
    training t = {.about = c};
    ty_doc *inputs;
    ty_error err = {0};
    assert_int_equal(ty_json_parse(&arena, "inputs", gradient_inputs, strlen(gradient_inputs), NULL, &inputs, &err), 0);
    open_sum(&t, ty_doc_find(file, "start"));
    read_recipe(&t, inputs, NULL, 1);
    compile(&t, inputs, NULL, false, backend);
    const ty_doc *weights = ty_doc_find(c, "weights"), *gradients = ty_doc_find(file, "gradients");
    int each = t.spec.accumulate;
    assert_true(ty_doc_len(weights) >= 3);
    for (size_t step = 0; step < ty_doc_len(weights); step++) {
        for (int m = 0; m < each; m++) {
            array g = array_of(ty_doc_at(gradients, step * (size_t)each + (size_t)m));
            feed_gradients(&t, m + 1 == each ? TY_RUN_LAST : TY_RUN_MICRO, &g);
        }
        array want = array_of(ty_doc_at(weights, step));
        expect_weights(&t, (int)step, &want);
    }
    end(&t);
}

static void follow_courses(const char *name, ty_backend backend)
{
    const ty_doc *file = golden(name), *cases = ty_doc_find(file, "cases");
    for (size_t i = 0; i < ty_doc_len(cases); i++)
        follow_course(file, ty_doc_at(cases, i), backend);
}

static void optimizers_are_keras(void **state)
{
    (void)state;
    follow_courses("optimizers.keras.json", TY_BACKEND_INTERPRETER);
}

static void optimizers_are_pytorchs(void **state)
{
    (void)state;
    follow_courses("optimizers.torch.json", TY_BACKEND_INTERPRETER);
}

static void optimizers_are_optax(void **state)
{
    (void)state;
    follow_courses("optimizers.optax.json", TY_BACKEND_INTERPRETER);
}

static void optimizers_are_their_papers(void **state)
{
    (void)state;
    follow_courses("optimizers.papers.json", TY_BACKEND_INTERPRETER);
}

static void rules_are_compiled(void **state)
{
    (void)state;
    follow_courses("optimizers.keras.json", TY_BACKEND_CPU);
    follow_courses("optimizers.torch.json", TY_BACKEND_CPU);
    follow_courses("optimizers.optax.json", TY_BACKEND_CPU);
    follow_courses("optimizers.papers.json", TY_BACKEND_CPU);
}

/* ---- tables by rows -------------------------------------------------------------------------------------------------
 */

/* y = sum of table[i] * gi + sum of table[j] * gj + sum of bias * gb: what is looked up has the inputs as gradients. */
static void open_lookups(training *t, const ty_doc *file)
{
    model_text m;
    float w[24];
    array table = array_of(ty_doc_find(file, "table")), bias = array_of(ty_doc_find(file, "bias"));
    for (int i = 0; i < 24; i++)
        w[i] = (float)(i < 21 ? table.v[i] : bias.v[i - 21]);
    model_begin(&m, 13);
    model_input(&m, "i", 7, SHAPE(1, 3));
    model_input(&m, "j", 7, SHAPE(1, 2));
    model_input(&m, "gi", 1, SHAPE(1, 3, 3));
    model_input(&m, "gj", 1, SHAPE(1, 2, 3));
    model_input(&m, "gb", 1, SHAPE(1, 3));
    model_floats(&m, "table", SHAPE(7, 3), w);
    model_floats(&m, "bias", SHAPE(3), w + 21);
    model_node(&m, "Gather", "table,i", "ti", "first");
    model_node(&m, "Gather", "table,j", "tj", "second");
    const char *const products[3][3] = {{"ti,gi", "pi", "si"}, {"tj,gj", "pj", "sj"}, {"bias,gb", "pb", "sb"}};
    for (int k = 0; k < 3; k++) {
        model_node(&m, "Mul", products[k][0], products[k][1], "");
        attr_int(&m, "keepdims", 0);
        model_node(&m, "ReduceSum", products[k][1], products[k][2], "");
    }
    model_node(&m, "Add", "si,sj", "sij", "");
    model_node(&m, "Add", "sij,sb", "y", "");
    model_output(&m, "y", 1);
    open_model(t, &m);
}

static void feed_lookups(training *t, const ty_doc *file, size_t step)
{
    array i = array_of(ty_doc_at(ty_doc_find(file, "first"), step));
    array j = array_of(ty_doc_at(ty_doc_find(file, "second"), step));
    array g = array_of(ty_doc_at(ty_doc_find(file, "gradients"), step));
    int64_t numbers[5];
    float all[18];
    for (int k = 0; k < 5; k++)
        numbers[k] = (int64_t)(k < 3 ? i.v[k] : j.v[k - 3]);
    for (int k = 0; k < 18; k++)
        all[k] = (float)g.v[k];
    run(t, TY_RUN_LAST, (const void *[]){numbers, numbers + 3, all, all + 9, all + 15});
}

static void follow_table(const ty_doc *file, const ty_doc *c, ty_backend backend)
{
    static const char inputs_text[] =
        "{\"i\": [[0, 0, 0]], \"j\": [[0, 0]], \"gi\": [[[0.5, 0, 0], [0, 0, 0], [0, 0, 0]]],"
        " \"gj\": [[[0.5, 0, 0], [0, 0, 0]]], \"gb\": [[0.5, 0, 0]]}";
    training t = {.about = c};
    ty_doc *inputs;
    ty_error err = {0};
    assert_int_equal(ty_json_parse(&arena, "inputs", inputs_text, strlen(inputs_text), NULL, &inputs, &err), 0);
    open_lookups(&t, file);
    read_recipe(&t, inputs, NULL, 1);
    compile(&t, inputs, NULL, false, backend);
    const ty_doc *weights = ty_doc_find(c, "weights");
    assert_int_equal(ty_doc_len(weights), 6);
    for (size_t step = 0; step < 6; step++) {
        feed_lookups(&t, file, step);
        array want = array_of(ty_doc_at(weights, step));
        for (int k = 0; k < 24; k++) {
            const char *name = k < 21 ? "table" : "bias";
            int at = k < 21 ? k : k - 21;
            expect(&t, ty_arena_printf(&arena, "step %d, %s[%d]", (int)step + 1, name, at),
                   (double)weight(&t, name)[at], want.v[k], 1);
        }
    }
    end(&t);
}

static void tables_by_rows_are_others(void **state)
{
    static const char *const names[] = {"tables.torch.json", "tables.tensorflow.json"};
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        const ty_doc *file = golden(names[n]), *cases = ty_doc_find(file, "cases");
        for (size_t i = 0; i < ty_doc_len(cases); i++) {
            follow_table(file, ty_doc_at(cases, i), TY_BACKEND_INTERPRETER);
            follow_table(file, ty_doc_at(cases, i), TY_BACKEND_CPU);
        }
    }
}

/* ---- schedules ------------------------------------------------------------------------------------------------------
 */

static void follow_rates(const char *name)
{
    const ty_doc *cases = ty_doc_find(golden(name), "cases"), *start;
    ty_doc *zeros, *inputs;
    ty_error err = {0};
    static const char nine[] = "[0, 0, 0, 0, 0, 0, 0, 0, 0]";
    assert_int_equal(ty_json_parse(&arena, "zeros", nine, strlen(nine), NULL, &zeros, &err), 0);
    assert_int_equal(ty_json_parse(&arena, "inputs", gradient_inputs, strlen(gradient_inputs), NULL, &inputs, &err), 0);
    start = zeros;
    for (size_t i = 0; i < ty_doc_len(cases); i++) {
        training t = {.about = ty_doc_at(cases, i)};
        array want = array_of(ty_doc_find(t.about, "lr")), none = {0};
        open_sum(&t, start);
        read_recipe(&t, inputs, NULL, 1);
        compile(&t, inputs, NULL, false, TY_BACKEND_INTERPRETER);
        assert_int_equal(want.n, 12);
        for (int step = 0; step < want.n; step++) {
            feed_gradients(&t, TY_RUN_LAST, &none);
            double lr = (double)*(const float *)output(&t, TY_RUN_LAST, "lr")->data;
            expect(&t, ty_arena_printf(&arena, "rate of step %d", step + 1), lr, want.v[step], 1e-3);
        }
        end(&t);
    }
}

static void schedules_are_keras(void **state)
{
    (void)state;
    follow_rates("schedules.keras.json");
}

static void schedules_are_pytorchs(void **state)
{
    (void)state;
    follow_rates("schedules.torch.json");
}

/* ---- losses and metrics ---------------------------------------------------------------------------------------------
 */

/* Each output is an input plus a weight that starts at zero, so that the weight's gradient is the output's. */
static void open_sums(training *t, const ty_doc *outputs, int64_t batch)
{
    static const float zeros[MAX_DATA];
    model_text m;
    model_begin(&m, 13);
    for (size_t i = 0; i < ty_doc_len(outputs); i++) {
        const char *name = ty_doc_at(outputs, i)->key;
        const char *x = ty_arena_printf(&arena, "x%s", name), *w = ty_arena_printf(&arena, "w%s", name);
        array a = array_of(ty_doc_at(outputs, i));
        a.dim[0] = batch;
        model_input(&m, x, 1, a.rank, a.dim);
        model_floats(&m, w, a.rank, a.dim, zeros);
        model_node(&m, "Add", ty_arena_printf(&arena, "%s,%s", x, w), name, "");
        model_output(&m, name, 1);
    }
    open_model(t, &m);
}

/* The outputs' values under the names of the inputs that carry them. */
static const ty_doc *inputs_of(const ty_doc *outputs)
{
    ty_doc *map = ty_arena_copy(&arena, outputs, sizeof *outputs);
    map->items = ty_arena_copy(&arena, outputs->items, outputs->n_items * sizeof *outputs);
    for (uint32_t i = 0; i < map->n_items; i++)
        map->items[i].key = ty_arena_printf(&arena, "x%s", outputs->items[i].key);
    return map;
}

/* Rows first .. first + batch - 1 of each input of the step; behind the last row: the first ones again. */
static void gather(training *t, const ty_doc *inputs, const ty_doc *fields, int64_t first, const void **out)
{
    for (int i = 0; i < t->plan.n_feeds; i++) {
        const ty_doc *values = ty_doc_find(fields, t->plan.feeds[i].field);
        array a = array_of(values ? values : ty_doc_find(inputs, t->plan.feeds[i].field));
        const ty_type *type = &t->spec.inputs[i].type;
        int64_t n = ty_type_elems(type), per = a.n / a.dim[0];
        float *f = TY_NEW_ARRAY(&arena, float, n);
        int64_t *k = TY_NEW_ARRAY(&arena, int64_t, n);
        for (int64_t e = 0; e < n; e++) {
            double v = a.v[(first * per + e) % a.n];
            f[e] = (float)v;
            k[e] = (int64_t)v;
        }
        assert_true(type->dtype == TY_F32 || type->dtype == TY_I64);
        out[i] = type->dtype == TY_F32 ? (const void *)f : k;
    }
}

static void expect_loss(const ty_doc *c)
{
    training t = {.about = c};
    const ty_doc *outputs = ty_doc_find(c, "outputs"), *fields = ty_doc_find(c, "fields"), *inputs = inputs_of(outputs);
    const void *batch[8];
    int64_t rows = (int64_t)ty_doc_len(ty_doc_at(outputs, 0));
    open_sums(&t, outputs, rows);
    read_recipe(&t, inputs, fields, rows);
    compile(&t, inputs, fields, false, TY_BACKEND_INTERPRETER);
    gather(&t, inputs, fields, 0, batch);
    run(&t, TY_RUN_LAST, batch);
    double loss = (double)*(const float *)output(&t, TY_RUN_LAST, "loss")->data;
    expect(&t, "loss", loss, number(ty_doc_find(c, "loss")), 0.1);
    for (size_t i = 0; i < ty_doc_len(outputs); i++) {
        const char *name = ty_doc_at(outputs, i)->key;
        array want = array_of(ty_doc_find(ty_doc_find(c, "gradient"), name));
        const float *moved = weight(&t, ty_arena_printf(&arena, "w%s", name));
        for (int e = 0; e < want.n; e++)
            expect(&t, ty_arena_printf(&arena, "gradient by %s[%d]", name, e), -(double)moved[e], want.v[e], 0.1);
    }
    end(&t);
}

static void expect_losses(const char *name)
{
    const ty_doc *cases = ty_doc_find(golden(name), "cases");
    for (size_t i = 0; i < ty_doc_len(cases); i++)
        expect_loss(ty_doc_at(cases, i));
}

static void losses_are_keras(void **state)
{
    (void)state;
    expect_losses("losses.keras.json");
}

static void losses_are_pytorchs(void **state)
{
    (void)state;
    expect_losses("losses.torch.json");
}

enum { METRIC_BATCH = 5 };

static void expect_metric(const ty_doc *c)
{
    training t = {.about = c};
    const ty_doc *outputs = ty_doc_find(c, "outputs"), *fields = ty_doc_find(c, "fields"), *inputs = inputs_of(outputs);
    ty_error err = {0};
    int64_t rows = (int64_t)ty_doc_len(ty_doc_at(outputs, 0));
    assert_true(rows % METRIC_BATCH != 0);
    open_sums(&t, outputs, METRIC_BATCH);
    read_recipe(&t, inputs, fields, METRIC_BATCH);
    compile(&t, inputs, fields, true, TY_BACKEND_INTERPRETER);
    const ty_metric *metric = &t.spec.metrics[0];
    ty_tally tally = {.kind = metric->kind};
    for (int64_t first = 0; first < rows; first += METRIC_BATCH) {
        const void *batch[8];
        const ty_tensor *part[TY_TALLY_MAX_PARTS] = {NULL};
        int64_t valid = rows - first < METRIC_BATCH ? rows - first : METRIC_BATCH;
        gather(&t, inputs, fields, first, batch);
        batch[t.spec.n_inputs] = &valid;
        run(&t, TY_RUN_EVAL, batch);
        for (int i = 0; i < TY_TALLY_MAX_PARTS && ty_tally_part(metric->kind, i); i++)
            part[i] =
                output(&t, TY_RUN_EVAL, ty_arena_printf(&arena, "%s.%s", metric->name, ty_tally_part(metric->kind, i)));
        if (ty_tally_add(&tally, part, &err) < 0)
            fail_msg("%s: %s", case_name(&t), err.message);
    }
    expect(&t, metric->name, ty_tally_value(&tally), number(ty_doc_find(c, "value")), 0.1);
    ty_tally_fini(&tally);
    end(&t);
}

static void expect_metrics(const char *name)
{
    const ty_doc *cases = ty_doc_find(golden(name), "cases");
    for (size_t i = 0; i < ty_doc_len(cases); i++)
        expect_metric(ty_doc_at(cases, i));
}

static void metrics_are_keras(void **state)
{
    (void)state;
    expect_metrics("metrics.keras.json");
}

static void metrics_are_scikit_learns(void **state)
{
    (void)state;
    expect_metrics("metrics.sklearn.json");
}

/* ---- nothing is left out --------------------------------------------------------------------------------------------
 */

/* The plateau has no course without evaluations: tests/unit/schedule.c has PyTorch's. */
static void every_kind_was_judged(void **state)
{
    (void)state;
    for (int k = 0; k < TY_N_OPTIMIZER_KINDS; k++)
        if (!seen_optimizer[k])
            fail_msg("nobody judges the optimizer %s", ty_optimizer_text((ty_optimizer_kind)k));
    for (int k = 0; k < TY_N_LOSS_KINDS; k++)
        if (!seen_loss[k])
            fail_msg("nobody judges the loss %s", ty_loss_text((ty_loss_kind)k));
    for (int k = 0; k < TY_N_SCHEDULE_KINDS; k++)
        if (!seen_schedule[k] && k != TY_SCHED_PLATEAU)
            fail_msg("nobody judges the schedule %s", ty_schedule_text((ty_schedule_kind)k));
    for (int k = 0; k < TY_N_METRIC_KINDS; k++)
        if (!seen_metric[k])
            fail_msg("nobody judges metric %d", k);
}

static int setup(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    snprintf(model_path, sizeof model_path, "/tmp/ty-unit-numbers-%d.onnx", (int)getpid());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(model_path);
    ty_arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_by_rows_are_others), cmocka_unit_test(rules_are_compiled),
        cmocka_unit_test(optimizers_are_keras),      cmocka_unit_test(optimizers_are_pytorchs),
        cmocka_unit_test(optimizers_are_optax),      cmocka_unit_test(optimizers_are_their_papers),
        cmocka_unit_test(schedules_are_keras),       cmocka_unit_test(schedules_are_pytorchs),
        cmocka_unit_test(losses_are_keras),          cmocka_unit_test(losses_are_pytorchs),
        cmocka_unit_test(metrics_are_keras),         cmocka_unit_test(metrics_are_scikit_learns),
        cmocka_unit_test(every_kind_was_judged),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
