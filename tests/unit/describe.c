/* describe.c - what a program says of itself: arithmetic by hand, buffers against the planner's own account, calls
 * against units. */
#include "base/arena.h"
#include "compiler/compiler.h"
#include "compiler/ir/build.h"
#include "compiler/ops/op.h"
#include "compiler/ops/work.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define DIMS(...)                                                     \
    (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                 \
        __VA_ARGS__                                                   \
    }

static void test_every_op_has_its_work(void **state)
{
    (void)state;
    for (int op = 0; op < TY_N_OPS; op++)
        if (ty_op_work((ty_op)op) == TY_N_WORKS)
            fail_msg("%s has no row in compiler/ops/work.c", ty_op_row_of((ty_op)op)->text);
}

static ty_val input(ty_graph *g, int rank, const int64_t *dim)
{
    char name[32];
    snprintf(name, sizeof name, "x%d", ty_graph_n_inputs(g));
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(TY_F32, rank, dim)));
}

static void flop_is(ty_graph *g, ty_val v, double expected)
{
    ty_error err = {0};
    if (ty_graph_failed(g, &err))
        fail_msg("%s", err.message);
    double found = ty_node_flop(g, ty_val_node(v));
    if (found != expected)
        fail_msg("%s: expected %.0f, found %.0f", ty_op_row_of(ty_graph_op(g, ty_val_node(v)))->text, expected, found);
}

static void test_products(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_attr left = {.flags = 1};
    ty_val plain[] = {input(g, DIMS(7, 3, 5)), input(g, DIMS(7, 5, 4))};
    flop_is(g, ty_graph_emit(g, TY_OP_DOT, NULL, plain, 2), 2.0 * 7 * 3 * 5 * 4);
    ty_val turned[] = {input(g, DIMS(5, 3)), input(g, DIMS(5, 4))};
    flop_is(g, ty_graph_emit(g, TY_OP_DOT, &left, turned, 2), 2.0 * 3 * 5 * 4);
    ty_graph_free(g);
}

/* y [2, 6, 5, 5] = conv of x [2, 4, 5, 5] with w [6, 2, 3, 3], padding 1, two groups. */
static void test_convolutions(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_attr attr = {.n = 2, .groups = 2, .step = {1, 1}, .lo = {1, 1}, .hi = {1, 1}, .dil = {1, 1}};
    ty_val x = input(g, DIMS(2, 4, 5, 5)), w = input(g, DIMS(6, 2, 3, 3)), dy = input(g, DIMS(2, 6, 5, 5));
    double expected = 2.0 * (2 * 6 * 5 * 5) * (2 * 3 * 3);
    flop_is(g, ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){x, w}, 2), expected);
    attr.type = *ty_graph_type(g, x);
    flop_is(g, ty_graph_emit(g, TY_OP_CONV_DX, &attr, (ty_val[]){dy, w}, 2), expected);
    attr.type = *ty_graph_type(g, w);
    flop_is(g, ty_graph_emit(g, TY_OP_CONV_DW, &attr, (ty_val[]){x, dy}, 2), expected);
    ty_graph_free(g);
}

/* A vanilla layer, 5 steps of 2 rows and 3 units: each step multiplies with [3, 3], on the way back too. */
static void test_recurrences(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_attr attr = {.n = 1};
    ty_val xw = input(g, DIMS(5, 2, 3)), r = input(g, DIMS(3, 3)), h = input(g, DIMS(2, 3));
    ty_val steps = ty_graph_emit(g, TY_OP_RNN_STEPS, &attr, (ty_val[]){xw, r, input(g, DIMS(3)), h}, 4);
    flop_is(g, steps, 2.0 * 5 * 2 * 3 * 3);
    flop_is(g, ty_graph_emit(g, TY_OP_RNN_GRAD, &attr, (ty_val[]){xw, r, steps}, 3), 2.0 * 5 * 2 * 3 * 3);
    ty_graph_free(g);
}

static void test_numbers(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    ty_val x = input(g, DIMS(4, 5));
    flop_is(g, ty_b_unary(g, TY_OP_EXP, x), 20);
    flop_is(g, ty_b_mul(g, x, input(g, DIMS(4, 5))), 20);
    flop_is(g, ty_b_cast(g, x, TY_F64), 0);
    flop_is(g, ty_graph_emit(g, TY_OP_REDUCE, &(ty_attr){.axes = 1}, &x, 1), 20);
    ty_graph_free(g);
}

/* ---- a whole program ---- */

enum { BATCH = 32 };

static ty_program *digits(ty_model **model, bool plan_only, ty_compile_options opt)
{
    ty_error err = {0};
    ty_program *p;
    if (ty_model_open("examples/digits/model.onnx", model, &err) < 0)
        fail_msg("%s", err.message);
    const ty_binding inputs[] = {{"image", ty_type_make(TY_F32, 4, (int64_t[]){BATCH, 1, 8, 8})},
                                 {"label", ty_type_make(TY_I64, 1, (int64_t[]){BATCH})}};
    const ty_loss_term loss = {.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                               .output = "logits",
                               .target = "label",
                               .weight = 1,
                               .ignore_index = -100,
                               .class_axis = -1};
    const ty_train_spec spec = {
        .inputs = inputs,
        .n_inputs = 2,
        .loss = &loss,
        .n_loss = 1,
        .accumulate = 2,
        .optimizer = {.kind = TY_OPT_ADAM, .lr = 0.05, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8},
        .batch_norm_statistics = true};
    opt.plan_only = plan_only;
    if (ty_compile_train(*model, &spec, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static ty_tape_facts describe(const ty_program *p, ty_run run, ty_arena *a)
{
    ty_error err = {0};
    ty_tape_facts t;
    if (ty_program_describe(p, run, a, &t, &err) < 0)
        fail_msg("%s", err.message);
    return t;
}

static void check_buffers(const ty_tape_facts *t)
{
    assert_true(t->n_buffers > 3);
    assert_true(t->peak_bytes == t->bound_bytes); /* the planner counts items, this counts what lies in the slab */
    for (int i = 0; i < t->n_buffers; i++) {
        const ty_buffer_facts *b = &t->buffer[i];
        assert_true(b->first >= 0 && b->last <= t->n_units && b->first <= b->last);
        assert_true(b->bytes > 0 && b->offset + b->bytes <= t->slab_bytes);
        for (int k = i + 1; k < t->n_buffers; k++) {
            const ty_buffer_facts *c = &t->buffer[k];
            bool apart = c->offset >= b->offset + b->bytes || c->first > b->last || b->first > c->last;
            assert_true(apart);
        }
    }
}

static void test_buffers(void **state)
{
    (void)state;
    ty_arena a;
    ty_model *model;
    ty_arena_init(&a);
    ty_program *p = digits(&model, true, (ty_compile_options){.threads = 2});
    bool used[TY_N_BUFFER_USES] = {0};
    for (int run = 0; run < TY_RUN_ROWS; run++) { /* that one only programs have whose tables lie elsewhere */
        ty_tape_facts t = describe(p, (ty_run)run, &a);
        check_buffers(&t);
        for (int i = 0; i < t.n_buffers; i++)
            used[t.buffer[i].use] = true;
    }
    assert_true(used[TY_USE_ACTIVATION] && used[TY_USE_TEMPORARY] && used[TY_USE_GRADIENT]);
    ty_program_free(p);
    ty_model_free(model);
    ty_arena_fini(&a);
}

static const ty_unit_facts *unit_of(const ty_tape_facts *t, ty_work work, ty_phase phase)
{
    for (int i = 0; i < t->n_units; i++)
        if (t->unit[i].work == work && t->unit[i].phase == phase)
            return &t->unit[i];
    fail_msg("no %s in phase %d", ty_work_text(work), (int)phase);
    return NULL;
}

static void test_units(void **state)
{
    (void)state;
    ty_arena a;
    ty_model *model;
    ty_arena_init(&a);
    ty_program *p = digits(&model, true, (ty_compile_options){.threads = 2});
    ty_tape_facts t = describe(p, TY_RUN_LAST, &a);
    assert_true(unit_of(&t, TY_WORK_CONVOLUTION, TY_PHASE_FORWARD)->flop > 0);
    assert_true(unit_of(&t, TY_WORK_CONVOLUTION, TY_PHASE_BACKWARD)->flop > 0);
    assert_non_null(strstr(unit_of(&t, TY_WORK_CONVOLUTION, TY_PHASE_BACKWARD)->origin, "Conv"));
    assert_null(strstr(unit_of(&t, TY_WORK_CONVOLUTION, TY_PHASE_BACKWARD)->origin, "gradient"));
    /* Adam reads a parameter, two moments and a gradient, and writes the first three. */
    const ty_unit_facts *adam = unit_of(&t, TY_WORK_OPTIMIZER, TY_PHASE_UPDATE);
    size_t numbers = 0;
    for (int i = 0; i < t.n_units; i++)
        if (t.unit[i].work == TY_WORK_OPTIMIZER && t.unit[i].written_bytes > numbers)
            adam = &t.unit[i], numbers = adam->written_bytes;
    assert_true(adam->written_bytes >= 3 * 4 * (size_t)ty_program_report(p)->n_trained);
    assert_true(adam->flop > 8 * (double)ty_program_report(p)->n_trained);
    ty_program_free(p);
    ty_model_free(model);
    ty_arena_fini(&a);
}

/* n of "WHAT n" in the counts of a kernel; 0 if it does no such thing. */
static double count_of(const ty_unit_facts *unit, const char *what)
{
    const char *at = strstr(unit->counts, what);
    return at ? strtod(at + strlen(what), NULL) : 0;
}

/* Adam, for each number: a root, a quotient; 4 products that are added at once, among them the sum of the gradients'
 * squares, and 3 that are not. The norm of the gradients is one root more. Library calls are not counted. */
static void test_counts(void **state)
{
    (void)state;
    ty_arena a;
    ty_model *model;
    ty_arena_init(&a);
    ty_program *p = digits(&model, true, (ty_compile_options){.threads = 2});
    ty_tape_facts t = describe(p, TY_RUN_LAST, &a);
    double roots = 0, quotients = 0, sums = 0, products = 0, trained = (double)ty_program_report(p)->n_trained;
    for (int i = 0; i < t.n_units; i++) {
        if (t.unit[i].work != TY_WORK_OPTIMIZER)
            continue;
        roots += count_of(&t.unit[i], "sqrt.f32 ");
        quotients += count_of(&t.unit[i], "div.f32 ");
        sums += count_of(&t.unit[i], "fma.f32 ");
        products += count_of(&t.unit[i], "mul.f32 ");
    }
    assert_true(roots == trained + 1 && quotients == trained && sums == 4 * trained && products == 3 * trained);
    assert_string_equal(unit_of(&t, TY_WORK_CONVOLUTION, TY_PHASE_FORWARD)->counts, "");
    ty_program_free(p);
    ty_model_free(model);
    ty_arena_fini(&a);
}

/* A compiled program's calls are its units' calls, in their order, and move the units' bytes; planned alone it is the
 * same program. */
static void test_calls(void **state)
{
    (void)state;
    ty_arena a;
    ty_model *model, *again;
    ty_arena_init(&a);
    ty_program *p = digits(&model, false, (ty_compile_options){.threads = 2});
    ty_program *planned = digits(&again, true, (ty_compile_options){.threads = 2});
    ty_tape_facts t = describe(p, TY_RUN_LAST, &a), q = describe(planned, TY_RUN_LAST, &a);
    size_t *moved = calloc((size_t)t.n_units, sizeof *moved);
    int before = 0, shaped = 0; /* what bench/products reads back */
    for (int i = 0; i < ty_program_n_calls(p, TY_RUN_LAST); i++) {
        ty_call_info call;
        ty_program_call(p, TY_RUN_LAST, i, &call);
        assert_true(call.unit >= before && call.unit < t.n_units);
        shaped += strstr(call.how, " 32x16x4x4 by 32x16x3x3 s1x1 p1x1+1x1 d1x1 g1") != NULL;
        moved[before = call.unit] += call.read_bytes + call.written_bytes;
    }
    assert_int_equal(shaped, 3);
    assert_int_equal(q.n_units, t.n_units);
    for (int i = 0; i < t.n_units; i++) {
        assert_true(moved[i] == t.unit[i].read_bytes + t.unit[i].written_bytes);
        assert_string_equal(t.unit[i].text, q.unit[i].text);
    }
    const ty_compile_report *r = ty_program_report(p), *s = ty_program_report(planned);
    assert_true(r->slab_bytes == s->slab_bytes && r->state_bytes == s->state_bytes);
    assert_true(r->scratch_bytes == s->scratch_bytes && r->n_kernels == s->n_kernels);
    assert_true(r->n_distinct_kernels == s->n_distinct_kernels && r->n_library_calls == s->n_library_calls);
    free(moved);
    ty_program_free(p);
    ty_program_free(planned);
    ty_model_free(model);
    ty_model_free(again);
    ty_arena_fini(&a);
}

static void test_a_plan_does_not_run(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_model *model;
    ty_program *p = digits(&model, true, (ty_compile_options){.threads = 1});
    const void *nothing[3] = {0};
    assert_int_equal(ty_program_run(p, TY_RUN_LAST, nothing, &err), -1);
    assert_non_null(strstr(err.message, "planned"));
    ty_program_free(p);
    ty_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_its_work),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_recurrences),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_a_plan_does_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
