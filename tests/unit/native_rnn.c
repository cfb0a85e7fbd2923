/* native_rnn.c - recurrent layers step by step: hand-written code against the reference, for awkward sizes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/ops/recurrence.h"
#include "tests/unit/native_case.h"
#include "tests/unit/rnn_layers.h"

/* Steps, batch, units. Threads come in at 2 million operations; few rows and many units make them share out units. */
static const int64_t sizes[][3] = {{1, 1, 1}, {3, 2, 5}, {4, 7, 31}, {2, 13, 32}, {3, 5, 33}, {9, 37, 70}, {7, 3, 160}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void tame_weights(native_buffers *b, double by)
{
    ty_ref r;
    assert_int_equal(ty_ref_init(&r, &b->in_type[1], NULL), 0);
    ty_ref_load(&r, b->in[1]);
    for (int64_t i = 0, n = ty_type_elems(&r.type); i < n; i++)
        r.f[i] /= by;
    ty_ref_store(&r, b->in[1]);
    ty_ref_fini(&r);
}

/* With weights of 16 bits. */
static void compare_rounded(native_buffers *b, ty_op op, const ty_attr *attr, void *const *want)
{
    native_check(b, op, attr, want, 1e-2);
    native_call(b, op, attr, native_of(op, false), 1);
    double worst, apart = layer_share_apart(b->out[0], want[0], ty_type_elems(&b->res_type[0]), 2e-5, &worst);
    if (apart > 0.15)
        fail_msg("%s with weights of %s: %.1f %% of results differ from the reference's", ty_op_row_of(op)->text,
                 ty_dtype_text((ty_dtype)b->in_type[1].dtype), 100 * apart);
    native_free_results(b);
}

/* With the weights of the state, operand 1, divided by `tame`: or errors grow from step to step. */
static void compare_tamed(ty_op op, ty_attr attr, const ty_type *in, int n_in, double tame)
{
    native_buffers got;
    native_make(&got, op, &attr, in, n_in, NATIVE_NOISE, 0);
    tame_weights(&got, tame);
    native_call(&got, op, &attr, NULL, 1);
    native_buffers want = got;
    if (in[1].dtype == TY_F32)
        native_check(&got, op, &attr, want.out, 2e-5);
    for (int loose = 0; loose < 2 && in[1].dtype != TY_F32; loose++) {
        got.loose = loose;
        compare_rounded(&got, op, &attr, want.out);
    }
    native_free_results(&want);
    native_free_operands(&got);
}

static void steps_agree_of(ty_dtype weight)
{
    for (int k = 0; k < N_LAYERS; k++)
        for (int s = 0; s < N_SIZES; s++)
            for (uint32_t backward = 0; backward < 2; backward++) {
                int64_t t = sizes[s][0], b = sizes[s][1], h = sizes[s][2], wide = layers[k].gates * h;
                int64_t bias = wide + (layers[k].flags & TY_RNN_RESET_AFTER ? h : 0);
                ty_type state_type = TYPE(TY_F32, DIMS(b, h));
                const ty_type in[] = {TYPE(TY_F32, DIMS(t, b, wide)), TYPE(weight, DIMS(wide, h)),
                                      TYPE(TY_F32, DIMS(bias)), state_type, state_type};
                compare_tamed(TY_OP_RNN_STEPS, layer_attr(&layers[k], backward), in,
                              layers[k].gates == TY_RNN_LSTM ? 5 : 4, sqrt((double)h));
            }
}

static void steps_agree(void **state)
{
    (void)state;
    steps_agree_of(TY_F32);
    steps_agree_of(TY_BF16);
    steps_agree_of(TY_F16);
}

/* Gates and states are noise here: the gradient is a function of them as of all operands. */
static void grads_agree_of(ty_dtype weight)
{
    static const int n_in[] = {[1] = 3, [3] = 5, [4] = 6};
    for (int k = 0; k < N_LAYERS; k++)
        for (int s = 0; s < N_SIZES; s++)
            for (uint32_t backward = 0; backward < 2; backward++) {
                int64_t t = sizes[s][0], b = sizes[s][1], h = sizes[s][2], wide = layers[k].gates * h;
                ty_type kept = TYPE(TY_F32, DIMS(t + (layers[k].gates == TY_RNN_LSTM), b, h));
                const ty_type in[] = {TYPE(TY_F32, DIMS(t, b, h)),
                                      TYPE(weight, DIMS(wide, h)),
                                      TYPE(TY_F32, DIMS(t + 1, b, h)),
                                      TYPE(TY_F32, DIMS(t, b, wide)),
                                      kept,
                                      TYPE(TY_F32, DIMS(b, h))};
                compare_tamed(TY_OP_RNN_GRAD, layer_attr(&layers[k], backward), in, n_in[layers[k].gates], (double)h);
            }
}

static void grads_agree(void **state)
{
    (void)state;
    grads_agree_of(TY_F32);
    grads_agree_of(TY_BF16);
    grads_agree_of(TY_F16);
}

/* States of 64 bits, or of 16 as weights are, are others'. */
static void other_states_are_refused(void **state)
{
    (void)state;
    static const ty_dtype others[] = {TY_F64, TY_BF16};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const ty_type in[] = {TYPE(others[k], DIMS(2, 3, 16)), TYPE(others[k], DIMS(16, 4)), TYPE(others[k], DIMS(16)),
                              TYPE(others[k], DIMS(3, 4)), TYPE(others[k], DIMS(3, 4))};
        ty_attr attr = layer_attr(&layers[3], 0);
        ty_library_shape shape = {&attr, in, 5, in, 3, 1, true};
        ty_library_call call;
        ty_error err = {0};
        assert_int_equal(ty_native_prepare_rnn_steps(&shape, &call, &err), -1);
        assert_int_equal(err.code, TY_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, "recurrent steps: expected f32, found"));
    }
}

/* What nobody reads need not be given memory; the rest is the same. */
static void unread_results_may_be_absent(void **state)
{
    (void)state;
    for (int k = 0; k < N_LAYERS; k++) {
        int64_t h = 33, b = 5, t = 4, wide = layers[k].gates * h;
        int64_t bias = wide + (layers[k].flags & TY_RNN_RESET_AFTER ? h : 0);
        ty_attr attr = layer_attr(&layers[k], 0);
        ty_type state_type = TYPE(TY_F32, DIMS(b, h));
        const ty_type in[] = {TYPE(TY_F32, DIMS(t, b, wide)), TYPE(TY_F32, DIMS(wide, h)), TYPE(TY_F32, DIMS(bias)),
                              state_type, state_type};
        native_buffers all;
        native_make(&all, TY_OP_RNN_STEPS, &attr, in, layers[k].gates == TY_RNN_LSTM ? 5 : 4, NATIVE_NOISE, 0);
        native_call(&all, TY_OP_RNN_STEPS, &attr, ty_native_prepare_rnn_steps, 1);
        ty_library_shape shape = {&attr, all.in_type, all.n_in, all.res_type, all.n_res, 1, true};
        ty_library_call call;
        assert_int_equal(ty_native_prepare_rnn_steps(&shape, &call, NULL), 0);
        assert_true(call.skips_unread);
        for (int kept = 0; kept < all.n_res; kept++) {
            void *out[TY_MAX_RESULTS] = {NULL};
            out[kept] = calloc(1, ty_type_bytes(&all.res_type[kept]));
            void *scratch = aligned_alloc(64, (call.scratch_bytes + 63) / 64 * 64);
            call.run(call.prepared, (const void *const *)all.in, out, scratch);
            assert_memory_equal(out[kept], all.out[kept], ty_type_bytes(&all.res_type[kept]));
            free(scratch);
            free(out[kept]);
        }
        call.release(call.prepared);
        native_free_results(&all);
        native_free_operands(&all);
    }
}

/* A result may lie where the operand was that the plan lets it take: gates over xw, gradients over gates. */
static void overwriting_changes_nothing(native_buffers *b, ty_op op, const ty_attr *attr, int operand, int result)
{
    ty_library_shape shape = {attr, b->in_type, b->n_in, b->res_type, b->n_res, 2, true};
    ty_library_call call;
    assert_int_equal(native_of(op, false)(&shape, &call, NULL), 0);
    native_call(b, op, attr, native_of(op, false), 1);
    void *scratch = aligned_alloc(64, (call.scratch_bytes + 63) / 64 * 64), *out[TY_MAX_RESULTS];
    for (int k = 0; k < b->n_res; k++)
        out[k] = k == result ? b->in[operand] : calloc(1, ty_type_bytes(&b->res_type[k]));
    call.run(call.prepared, (const void *const *)b->in, out, scratch);
    for (int k = 0; k < b->n_res; k++) {
        assert_memory_equal(out[k], b->out[k], ty_type_bytes(&b->res_type[k]));
        if (k != result)
            free(out[k]);
    }
    free(scratch);
    call.release(call.prepared);
    native_free_results(b);
    native_free_operands(b);
}

static void results_may_take_an_operand(void **state)
{
    (void)state;
    for (int k = 0; k < N_LAYERS; k++) {
        int64_t h = 70, b = 9, t = 6, wide = layers[k].gates * h;
        int64_t bias = wide + (layers[k].flags & TY_RNN_RESET_AFTER ? h : 0);
        bool lstm = layers[k].gates == TY_RNN_LSTM;
        ty_attr attr = layer_attr(&layers[k], 0);
        ty_type state_type = TYPE(TY_F32, DIMS(b, h)), gates = TYPE(TY_F32, DIMS(t, b, wide));
        ty_type weight = TYPE(TY_F32, DIMS(wide, h));
        const ty_type in[] = {gates, weight, TYPE(TY_F32, DIMS(bias)), state_type, state_type};
        const ty_type back[] = {TYPE(TY_F32, DIMS(t, b, h)),        weight,    TYPE(TY_F32, DIMS(t + 1, b, h)), gates,
                                TYPE(TY_F32, DIMS(t + lstm, b, h)), state_type};
        native_buffers all;
        native_make(&all, TY_OP_RNN_STEPS, &attr, in, lstm ? 5 : 4, NATIVE_NOISE, 0);
        overwriting_changes_nothing(&all, TY_OP_RNN_STEPS, &attr, TY_STEPS_XW, TY_STEPS_GATES);
        if (layers[k].gates == TY_RNN_VANILLA)
            continue;
        native_make(&all, TY_OP_RNN_GRAD, &attr, back, lstm ? 6 : 5, NATIVE_NOISE, 0);
        overwriting_changes_nothing(&all, TY_OP_RNN_GRAD, &attr, TY_RGRAD_GATES, TY_RGRAD_DPRE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_agree),
        cmocka_unit_test(grads_agree),
        cmocka_unit_test(other_states_are_refused),
        cmocka_unit_test(unread_results_may_be_absent),
        cmocka_unit_test(results_may_take_an_operand),
    };
    return cmocka_run_group_tests_name("native_rnn", tests, NULL, NULL);
}
