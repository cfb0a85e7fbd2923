/* ops_across.c - all_reduce and all_gather: values, refusals, gradients, constants, and the step that replicas share.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/exchange.h"
#include "tests/unit/ops_gradient.h"
#include "tests/unit/step_case.h"

/* As if every replica held the operand. */
static void values(void **state)
{
    (void)state;
    case_expect(TY_OP_ALL_REDUCE, (ty_attr){.replicas = 3}, IN(F64(DIMS(2), 1, -2)), OUT(F64(DIMS(2), 3, -6)));
    case_expect(TY_OP_ALL_REDUCE, (ty_attr){.replicas = 2}, IN(INT(TY_I8, DIMS(1), 100)),
                OUT(INT(TY_I8, DIMS(1), -56)));
    case_expect(TY_OP_ALL_GATHER, (ty_attr){.replicas = 2}, IN(F64(DIMS(1, 2), 5, 7)),
                OUT(F64(DIMS(2, 2), 5, 7, 5, 7)));
    case_refused(TY_OP_ALL_REDUCE, (ty_attr){0}, IN(TYPE(TY_F32, DIMS(2))), "replicas: expected 1 to 65536, found 0");
    case_refused(TY_OP_ALL_REDUCE, (ty_attr){.replicas = 2}, IN(TYPE(TY_BOOL, DIMS(2))), "bool");
    case_refused(TY_OP_ALL_GATHER, (ty_attr){.replicas = 2}, IN(TYPE(TY_F32, SCALAR)), "rank");
    case_refused(TY_OP_ALL_GATHER, (ty_attr){.replicas = 65537}, IN(TYPE(TY_F32, DIMS(1))), "found 65537");
}

static void gradients(void **state)
{
    (void)state;
    GRADCHECK_NODE("all_reduce", TY_OP_ALL_REDUCE, .attr = {.replicas = 3},
                   .check = {.n_in = 1, .in = {GRAD_IN(2, 3)}});
}

/* A constant is the same on all replicas; one replica needs nobody. */
static void constants_fold(void **state)
{
    (void)state;
    ty_graph *g = ty_graph_new();
    double number = 0;
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, SHAPE(4))));
    assert_true(ty_graph_splat_value(g, ty_b_all_reduce(g, ty_b_full_like(g, x, 2.5), 4), &number));
    assert_true(number == 10);
    assert_int_equal(ty_b_all_reduce(g, x, 1), x);
    assert_int_equal(ty_b_all_gather(g, x, 1), x);
    ty_graph_free(g);
}

static int count_live(const ty_step *s, uint32_t tapes, ty_op op)
{
    uint32_t n = ty_graph_n_nodes(s->g);
    uint8_t *live = calloc(n, 1);
    int found = 0;
    ty_graph_mark_live(s->g, tapes, live);
    for (uint32_t id = 0; id < n; id++)
        found += live[id] && ty_graph_op(s->g, id) == op;
    free(live);
    return found;
}

/* Biases and weights of two layers: 20 to 128 bytes each. */
static void gradients_travel_in_buckets(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        int buckets;
    } cases[] = {{0, 1}, {1, 4}, {100, 3}, {1 << 20, 1}};
    ty_model *m = two_layers();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan p;
        plan_of(&p)->spec.replicas = 2;
        p.spec.bucket_bytes = cases[i].bytes;
        p.spec.no_eval = true;
        ty_step s = build(m, &p);
        int others = 2; /* the count of labels, the loss */
        assert_int_equal(count_live(&s, TY_TAPE_LAST, TY_OP_ALL_REDUCE), cases[i].buckets + others);
        assert_string_equal(ty_graph_input(s.g, ty_graph_n_inputs(s.g) - 1)->name, "replica");
        assert_int_equal(s.replicas, 2);
        ty_step_fini(&s);
    }
    ty_model_free(m);
}

/* Gradients of micro-batches stay where they are until the last one. */
static void micro_batches_exchange_no_gradients(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->spec.replicas = 2;
    p.spec.accumulate = 3;
    p.spec.no_eval = true;
    ty_step s = build(m, &p);
    assert_int_equal(count_live(&s, TY_TAPE_MICRO, TY_OP_ALL_REDUCE), 2);
    assert_int_equal(count_live(&s, TY_TAPE_LAST, TY_OP_ALL_REDUCE), 3);
    ty_step_fini(&s);
    ty_model_free(m);
}

static void one_replica_leaves_no_trace(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    for (int replicas = 0; replicas <= 1; replicas++) {
        plan p;
        plan_of(&p)->spec.replicas = replicas;
        p.spec.batch_norm_across = true;
        ty_step s = build(m, &p);
        assert_int_equal(count_live(&s, TY_TAPE_ALL, TY_OP_ALL_REDUCE), 0);
        assert_int_equal(ty_graph_n_inputs(s.g), 2);
        assert_int_equal(s.replicas, 1);
        ty_step_fini(&s);
    }
    ty_model_free(m);
}

static void refused(const ty_model *m, const plan *p, const char *words)
{
    ty_step s;
    ty_error err = {0};
    assert_int_equal(ty_step_build(m, &p->spec, &s, &err), -1);
    if (!strstr(err.message, words))
        fail_msg("expected \"%s\", found \"%s\"", words, err.message);
}

static void refusals(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->spec.replicas = -1;
    refused(m, &p, "replicas: expected 1 to 65536, found -1");
    p.spec.replicas = 2;
    refused(m, &p, "evaluation by 2 replicas yields losses and metrics, not model outputs");
    p.spec.no_outputs = true;
    ty_program *program;
    ty_error err = {0};
    assert_int_equal(ty_compile_train(m, &p.spec, NULL, &program, &err), -1);
    assert_non_null(strstr(err.message, "replicas: 2 on the CPU, and nothing"));
    ty_model_free(m);
}

/* Without anything compiled: what is exchanged, in which order, and what may be rounded on its way. */
static void schedule(void **state)
{
    (void)state;
    ty_model *m = two_layers();
    plan p;
    plan_of(&p)->spec.replicas = 2;
    p.spec.bucket_bytes = 1 << 20;
    p.spec.no_outputs = true;
    ty_program *program;
    ty_error err = {0};
    ty_buf text;
    int n;
    ty_buf_init(&text, 1 << 16);
    assert_int_equal(ty_compile_train(m, &p.spec, &(ty_compile_options){.plan_only = true}, &program, &err), 0);
    assert_int_equal(ty_program_schedule(program, &text, &err), 0);
    const ty_exchange_call *call = ty_program_exchanges(program, &n);
    ty_buf_add(&text, "", 1);
    assert_string_equal(text.data, "2 replicas, 5 calls\n"
                                   "0 last sum f32[1] loss\n"
                                   "1 last sum f32[1] loss\n"
                                   "2 last sum f32[67] may be rounded: gradients of w1 .. b1\n"
                                   "    w1 f32[4,8] at 0\n"
                                   "    b2 f32[3] at 32\n"
                                   "    w2 f32[8,3] at 35\n"
                                   "    b1 f32[8] at 59\n"
                                   "3 eval sum f32[1] loss\n"
                                   "4 eval sum f32[1] evaluation\n");
    assert_int_equal(n, 5);
    assert_true(call[2].gradients && !call[0].gradients && call[2].elems == 67 && call[4].run == TY_RUN_EVAL);
    ty_buf_fini(&text);
    ty_program_free(program);
    ty_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values, case_setup, case_teardown),
        cmocka_unit_test_setup_teardown(gradients, case_setup, case_teardown),
        cmocka_unit_test(constants_fold),
        cmocka_unit_test(schedule),
        cmocka_unit_test(gradients_travel_in_buckets),
        cmocka_unit_test(micro_batches_exchange_no_gradients),
        cmocka_unit_test(one_replica_leaves_no_trace),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("ops_across", tests, make_path, remove_path);
}
