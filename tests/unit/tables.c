/* tables.c - tables that are updated by rows: what a step leaves alone, what it shares with the dense step, what its
 * plan needs, and what is refused. The numbers of others: numbers.c.
 */
#include "tests/unit/onnx_model.h"

#include "base/file.h"
#include "compiler/compiler.h"
#include "compiler/passes/optimizer.h"
#include "compiler/program.h"

#include <math.h>
#include <unistd.h>

enum { ROWS = 5000, WIDTH = 20, LOOKUPS = 40 };

static char model_path[64];

static int make_path(void **state)
{
    (void)state;
    snprintf(model_path, sizeof model_path, "/tmp/ty-unit-tables-%d.onnx", (int)getpid());
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    unlink(model_path);
    return 0;
}

/* y = table[i] * head, table read at `i` [N]; with_sum: the whole table is read, too. */
static ty_model *lookup_model(int64_t width, bool with_sum)
{
    static float table[ROWS * WIDTH], head[WIDTH];
    model_text t;
    ty_error err = {0};
    ty_model *m;
    for (int k = 0; k < ROWS * WIDTH; k++)
        table[k] = 0.125f * (float)(k * 7 % 11 - 5);
    for (int k = 0; k < WIDTH; k++)
        head[k] = 0.25f * (float)(k % 5 - 1);
    model_begin(&t, 13);
    model_input(&t, "i", 7, SHAPE(-1));
    model_floats(&t, "table", SHAPE(ROWS, width), table);
    model_floats(&t, "head", SHAPE(width), head);
    model_node(&t, "Gather", "table,i", "e", "embed");
    model_node(&t, "Mul", "e,head", with_sum ? "z" : "y", "");
    if (with_sum) {
        model_node(&t, "ReduceMax", "table", "s", "whole");
        model_node(&t, "Add", "z,s", "y", "");
    }
    model_output(&t, "y", 1);
    model_end(&t);
    if (ty_file_write(model_path, t.file.data, t.file.len, 0600, &err) < 0 || ty_model_open(model_path, &m, &err) < 0)
        fail_msg("%s", err.message);
    ty_buf_fini(&t.file);
    return m;
}

typedef struct plan {
    ty_train_spec spec;
    ty_binding input[2];
    ty_loss_term term;
} plan;

static plan *plan_of(plan *p, ty_optimizer_kind kind, int64_t width)
{
    *p = (plan){
        .input = {{"i", ty_type_make(TY_I64, SHAPE(LOOKUPS))}, {"t", ty_type_make(TY_F32, SHAPE(LOOKUPS, width))}},
        .term = {.kind = TY_LOSS_MSE, .output = "y", .target = "t", .weight = 1}};
    p->spec = (ty_train_spec){.inputs = p->input,
                              .n_inputs = 2,
                              .loss = &p->term,
                              .n_loss = 1,
                              .optimizer = {.kind = kind, .lr = 0.5, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8},
                              .schedule = {.kind = TY_SCHED_CONSTANT},
                              .accumulate = 1,
                              .sparse_all = true,
                              .batch_norm_statistics = true};
    return p;
}

static ty_program *compile(const ty_model *m, const plan *p, ty_backend backend, int threads)
{
    ty_error err = {0};
    ty_program *program;
    ty_compile_options opt = {.backend = backend, .threads = threads};
    if (ty_compile_train(m, &p->spec, &opt, &program, &err) < 0)
        fail_msg("%s", err.message);
    return program;
}

/* Step s looks at rows that are multiples of 3 + s, many of them several times. */
static void step_of(ty_program *p, int s, int64_t width)
{
    static int64_t index[LOOKUPS];
    static float target[LOOKUPS * WIDTH];
    ty_error err = {0};
    for (int k = 0; k < LOOKUPS; k++)
        index[k] = (k * k % 17) * (3 + s) * 60 % ROWS;
    for (int k = 0; k < LOOKUPS * (int)width; k++)
        target[k] = 0.25f * (float)((k + s) % 7);
    if (ty_program_run(p, TY_RUN_LAST, (const void *[]){index, target}, &err) < 0)
        fail_msg("%s", err.message);
}

static const float *tensor(ty_program *p, const char *name)
{
    for (int i = 0; i < ty_program_n_tensors(p); i++) {
        const char *found;
        ty_tensor w = ty_program_tensor(p, i, &found, NULL);
        if (strcmp(found, name) == 0)
            return w.data;
    }
    fail_msg("no weight %s", name);
    return NULL;
}

static double output(ty_program *p, const char *name)
{
    return (double)*(const float *)ty_program_output(p, TY_RUN_LAST, name)->data;
}

/* Rules in which a gradient of zero changes nothing: dense and by rows are the same but for rounding; the reported norm
 * and what clips by it, too. */
static void plain_rules_equal_the_dense_step(void **state)
{
    static const ty_optimizer_kind kinds[] = {TY_OPT_SGD, TY_OPT_ADAGRAD, TY_OPT_KERAS_SGD, TY_OPT_KERAS_ADAGRAD};
    static const ty_clip_kind clips[] = {TY_CLIP_NONE, TY_CLIP_GLOBAL_NORM, TY_CLIP_NORM, TY_CLIP_VALUE};
    (void)state;
    ty_model *m = lookup_model(WIDTH, false);
    for (int k = 0; k < 4; k++) {
        plan p;
        plan_of(&p, kinds[k], WIDTH)->spec.clip = clips[k];
        p.spec.clip_max = 0.01;
        ty_program *rows = compile(m, &p, TY_BACKEND_CPU, 2);
        p.spec.sparse_all = false;
        ty_program *dense = compile(m, &p, TY_BACKEND_CPU, 2);
        for (int s = 0; s < 4; s++) {
            step_of(rows, s, WIDTH);
            step_of(dense, s, WIDTH);
            assert_true(output(dense, "grad_norm") > 0);
            assert_true(fabs(output(rows, "grad_norm") - output(dense, "grad_norm")) < 1e-6);
        }
        for (int i = 0; i < ROWS * WIDTH; i++)
            if (fabsf(tensor(rows, "table")[i] - tensor(dense, "table")[i]) > 1e-6f)
                fail_msg("%s: element %d is %g by rows, %g dense", "table", i, (double)tensor(rows, "table")[i],
                         (double)tensor(dense, "table")[i]);
        ty_program_free(rows);
        ty_program_free(dense);
    }
    ty_model_free(m);
}

/* Rows that no batch has named keep their bits, others move; and the threads do not matter. */
static void other_rows_keep_their_bits(void **state)
{
    (void)state;
    for (int64_t width = 1; width <= WIDTH; width += WIDTH - 1) { /* 1: a kernel without a loop inside */
        ty_model *m = lookup_model(width, false);
        plan p;
        plan_of(&p, TY_OPT_ADAM, width)->spec.optimizer.eps = 1e-3; /* else gradients that are rounding alone count */
        ty_program *one = compile(m, &p, TY_BACKEND_CPU, 1), *two = compile(m, &p, TY_BACKEND_CPU, 2);
        ty_program *judge = compile(m, &p, TY_BACKEND_INTERPRETER, 1);
        float *start = malloc(sizeof *start * (size_t)(ROWS * width));
        memcpy(start, tensor(one, "table"), sizeof *start * (size_t)(ROWS * width));
        bool named[ROWS] = {false};
        for (int s = 0; s < 3; s++) {
            step_of(one, s, width);
            step_of(two, s, width);
            step_of(judge, s, width);
            for (int k = 0; k < LOOKUPS; k++)
                named[(k * k % 17) * (3 + s) * 60 % ROWS] = true;
        }
        assert_memory_equal(tensor(one, "table"), tensor(two, "table"), sizeof *start * (size_t)(ROWS * width));
        int moved = 0;
        for (int64_t i = 0; i < ROWS * width; i++) {
            float now = tensor(one, "table")[i];
            if (fabsf(now - tensor(judge, "table")[i]) > 1e-5f)
                fail_msg("element %d: interpreted %g, compiled %g", (int)i, (double)tensor(judge, "table")[i],
                         (double)now);
            if (!named[i / width] && now != start[i])
                fail_msg("row %d was not named and changed", (int)(i / width));
            moved += now != start[i];
        }
        assert_in_range(moved, 20 * width, LOOKUPS * 3 * width);
        free(start);
        ty_program_free(one);
        ty_program_free(two);
        ty_program_free(judge);
        ty_model_free(m);
    }
}

/* No gradient of the table, and nothing is copied: temporaries do not know how large the table is. */
static void temporaries_follow_the_batch(void **state)
{
    (void)state;
    ty_model *m = lookup_model(WIDTH, false);
    plan p;
    plan_of(&p, TY_OPT_ADAM, WIDTH);
    ty_program *rows = compile(m, &p, TY_BACKEND_CPU, 1);
    p.spec.sparse_all = false;
    ty_program *dense = compile(m, &p, TY_BACKEND_CPU, 1);
    assert_true(ty_program_report(dense)->slab_bytes >= 4 * ROWS * WIDTH);
    assert_true(ty_program_report(rows)->slab_bytes < 40 * 4 * LOOKUPS * WIDTH);
    int updates = 0;
    for (int i = 0; i < ty_program_n_calls(rows, TY_RUN_LAST); i++) {
        ty_call_info info;
        ty_program_call(rows, TY_RUN_LAST, i, &info);
        assert_true(info.written_bytes <= 4 * 4 * LOOKUPS * WIDTH);
        assert_true(info.kind != TY_CALL_COPY || info.written_bytes < 4 * LOOKUPS * WIDTH);
        updates += strcmp(info.origin, "update") == 0 && info.written_bytes == 3 * 4 * LOOKUPS * WIDTH;
    }
    assert_int_equal(updates, 1); /* rows of weight and both moments in one kernel */
    ty_program_free(rows);
    ty_program_free(dense);
    ty_model_free(m);
}

/* A step that does not count leaves all rows as they are. */
static void a_step_that_does_not_count_changes_nothing(void **state)
{
    (void)state;
    ty_model *m = lookup_model(WIDTH, false);
    plan p;
    plan_of(&p, TY_OPT_ADAM, WIDTH)->spec.precision = TY_PRECISION_FLOAT16;
    ty_program *program = compile(m, &p, TY_BACKEND_CPU, 2);
    static int64_t index[LOOKUPS] = {3, 3, 9};
    static float target[LOOKUPS * WIDTH], start[ROWS * WIDTH];
    ty_error err = {0};
    memcpy(start, tensor(program, "table"), sizeof start);
    target[0] = INFINITY;
    assert_int_equal(ty_program_run(program, TY_RUN_LAST, (const void *[]){index, target}, &err), 0);
    assert_memory_equal(tensor(program, "table"), start, sizeof start);
    target[0] = 1;
    assert_int_equal(ty_program_run(program, TY_RUN_LAST, (const void *[]){index, target}, &err), 0);
    assert_true(memcmp(tensor(program, "table"), start, sizeof start) != 0);
    ty_program_free(program);
    ty_model_free(m);
}

static float *table_memory(ty_program *p)
{
    for (int i = 0; i < ty_program_n_states(p); i++) {
        const char *name;
        ty_tensor t = ty_program_state(p, i, &name);
        if (strncmp(name, "sgd.m.", 6) == 0 && ty_type_elems(&t.type) == ROWS * WIDTH)
            return t.data;
    }
    fail_msg("no momentum of the table");
    return NULL;
}

/* The tape ROWS names the rows that a step then moves; with a momentum that is cleared after each step this has the
 * gradient, of which nobody needs to look at other rows. */
static void rows_are_told(void **state)
{
    static const ty_backend backends[] = {TY_BACKEND_CPU, TY_BACKEND_INTERPRETER};
    (void)state;
    ty_model *m = lookup_model(WIDTH, false);
    for (int b = 0; b < 2; b++) {
        plan p;
        plan_of(&p, TY_OPT_SGD, WIDTH)->spec.row_lists = true;
        p.spec.optimizer.momentum = 0.5;
        ty_program *program = compile(m, &p, backends[b], 1);
        float *memory = table_memory(program), before[WIDTH];
        for (int s = 0; s < 3; s++) {
            int64_t index[LOOKUPS];
            float target[LOOKUPS * WIDTH] = {0};
            bool named[ROWS] = {false};
            int n = 0, n_named = 0;
            ty_error err = {0};
            for (int k = 0; k < LOOKUPS; k++)
                named[index[k] = (k * k % 17) * (3 + s) * 60 % ROWS] = true;
            for (int i = 0; i < ROWS; i++)
                n_named += named[i];
            const void *inputs[] = {index, target};
            assert_int_equal(ty_program_run(program, TY_RUN_ROWS, inputs, &err), 0);
            const ty_tensor *list = ty_program_output(program, TY_RUN_ROWS, "rows.table");
            assert_non_null(list);
            const int64_t *row = list->data;
            for (; n < ty_type_elems(&list->type) && row[n] >= 0; n++)
                assert_true(named[row[n]] && (n == 0 || row[n] > row[n - 1]));
            assert_int_equal(n, n_named);
            for (int k = n; k < ty_type_elems(&list->type); k++)
                assert_int_equal(row[k], -1);
            memcpy(before, tensor(program, "table") + index[0] * WIDTH, sizeof before);
            assert_int_equal(ty_program_run(program, TY_RUN_LAST, inputs, &err), 0);
            for (int k = 0; k < WIDTH; k++) {
                float moved = before[k] - 0.5f * memory[index[0] * WIDTH + k];
                assert_true(fabsf(tensor(program, "table")[index[0] * WIDTH + k] - moved) < 1e-6f);
            }
            for (int i = 0; i < ROWS * WIDTH; i++) {
                assert_true(named[i / WIDTH] || memory[i] == 0);
                memory[i] = 0;
            }
        }
        ty_program_free(program);
    }
    ty_model_free(m);
}

static void expect_refused(const ty_model *m, const plan *p, const char *message, const char *help)
{
    ty_error err = {0};
    ty_program *program;
    assert_int_equal(ty_compile_train(m, &p->spec, &(ty_compile_options){.threads = 1}, &program, &err), -1);
    if (!strstr(err.message, message) || !strstr(err.help, help))
        fail_msg("expected \"%s\" (%s), found \"%s\" (%s)", message, help, err.message, err.help);
}

static void what_is_not_defined_is_refused(void **state)
{
    static const char *const table[] = {"table"}, *const typo[] = {"tabel"}, *const head[] = {"head"};
    (void)state;
    ty_model *m = lookup_model(WIDTH, false), *whole = lookup_model(WIDTH, true);
    plan p;
    plan_of(&p, TY_OPT_ADAM, WIDTH)->spec.accumulate = 2;
    expect_refused(m, &p, "sparse_rows: with accumulate 2", "larger batches");
    plan_of(&p, TY_OPT_ADAM, WIDTH)->spec.ema_decay = 0.9;
    expect_refused(m, &p, "sparse_rows: averages (ema)", "");
    plan_of(&p, TY_OPT_ADAM, WIDTH)->spec.optimizer.weight_decay = 0.1;
    expect_refused(m, &p, "weight decay changes every row of \"table\"", "no_decay");
    plan_of(&p, TY_OPT_SGD, WIDTH)->spec.optimizer.momentum = 0.9;
    expect_refused(m, &p, "sparse_rows: sgd with momentum moves every row", "");
    plan_of(&p, TY_OPT_ADAM, WIDTH)->spec.optimizer.amsgrad = true;
    expect_refused(m, &p, "sparse_rows: adam with amsgrad", "");
    expect_refused(m, plan_of(&p, TY_OPT_LAMB, WIDTH), "sparse_rows: lamb has no rule", "");
    expect_refused(whole, plan_of(&p, TY_OPT_ADAM, WIDTH), "no trained table that it only gathers from", "");
    plan_of(&p, TY_OPT_ADAM, WIDTH)->spec.sparse_all = false;
    p.spec.n_sparse_rows = 1;
    p.spec.sparse_rows = table;
    expect_refused(whole, &p, "\"table\" is read whole by whole", "sparse_rows: true");
    p.spec.sparse_rows = head;
    expect_refused(m, &p, "\"head\" is read whole by", "");
    p.spec.sparse_rows = typo;
    expect_refused(m, &p, "sparse_rows: the model has no weight \"tabel\"", "did you mean \"table\"?");
    ty_model_free(m);
    ty_model_free(whole);
}

/* Every optimizer either has its numbers in tests/golden/numbers or is refused. */
static void rules_are_known(void **state)
{
    static const ty_optimizer_kind known[] = {TY_OPT_SGD,  TY_OPT_ADAM,      TY_OPT_ADAMW,      TY_OPT_ADAGRAD,
                                              TY_OPT_FTRL, TY_OPT_KERAS_SGD, TY_OPT_KERAS_ADAM, TY_OPT_KERAS_ADAGRAD};
    (void)state;
    for (int kind = 0; kind < TY_N_OPTIMIZER_KINDS; kind++) {
        bool expected = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            expected |= (int)known[i] == kind;
        const char *why = ty_optimizer_refuses_rows(&(ty_optimizer){.kind = (ty_optimizer_kind)kind});
        assert_int_equal(why == NULL, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_rules_equal_the_dense_step),
        cmocka_unit_test(other_rows_keep_their_bits),
        cmocka_unit_test(temporaries_follow_the_batch),
        cmocka_unit_test(a_step_that_does_not_count_changes_nothing),
        cmocka_unit_test(rows_are_told),
        cmocka_unit_test(what_is_not_defined_is_refused),
        cmocka_unit_test(rules_are_known),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
