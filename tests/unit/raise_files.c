/* Raising, on files: forms that PyTorch's exporters write, whole models and the workloads of the bench: what is found
 * in each. Graphs made by hand: raise.c. */
#include "tests/unit/raise_case.h"

#include "compiler/model.h"

#include <unistd.h>

/* ---- forms as PyTorch's exporters write them ---- */

/* tests/golden/raise/export.py wrote NAME.script.onnx and NAME.dynamo.onnx; some forms one of them cannot write. Gated
 * units hold a SiLU and need no more: the product fuses with it. */
static const struct {
    const char *name, *found;
} forms[] = {
    {"attention", "1 attention"},
    {"attention_causal", "1 causal attention"},
    {"attention_scale", "1 attention"},
    {"attention_bias", "1 attention"},
    {"attention_bool", "1 attention"}, /* with a row that sees nothing */
    {"attention_gqa", "1 attention"},
    {"attention_hand", "1 attention"},
    {"attention_hand_bias", "1 attention"},
    {"attention_hand_causal", "1 causal attention"},
    {"attention_hand_fill", "1 causal attention"},
    {"attention_hand_both", "1 causal attention"},
    {"attention_hand_both_bias", "1 attention"}, /* the future hidden by a condition, and a mask added */
    {"attention_hand_shifted", "1 attention"},
    {"attention_hand_repeat", "1 attention"},
    {"attention_hand_expand", "1 attention"},
    {"attention_float32", "1 attention"},
    {"attention_softmax_apart", "1 attention"},
    {"attention_einsum", "1 attention"},
    {"layer_norm", "1 layer norm"},
    {"layer_norm_apart", "1 layer norm"},
    {"rms_norm", "1 RMS norm"},
    {"rms_norm_apart", "1 RMS norm"},
    {"batch_norm", "1 batch norm"},
    {"batch_norm_apart", "1 batch norm"},
    {"batch_norm_var", "1 batch norm"},
    {"batch_norm_rows", "1 batch norm"},
    {"gelu", "1 GELU"},
    {"gelu_tanh", "1 GELU (tanh)"},
    {"silu", "1 SiLU"},
    {"swiglu", "1 SiLU"},
    {"softmax_apart", "1 softmax"},
    {"softmax_plain", ""}, /* overflows, and the model means that */
    {"log_softmax_apart", "1 log-softmax"},
    {"log_softmax_lse", "1 log-softmax"},
    {"log_softmax_log", "1 softmax"}, /* -inf where a log-softmax is not */
    {"xent", "1 cross-entropy"},
    {"xent_smooth", "1 cross-entropy"},
    {"xent_none", "1 cross-entropy"},
    {"xent_nll", "1 cross-entropy"},
    {"xent_gather", "1 cross-entropy"},
    {"xent_one_hot", "1 cross-entropy"},
    {"rotary", "1 rotary embedding"},
    {"rotary_interleaved", "1 rotary embedding"},
    {"rotary_halves", "1 rotary embedding"},
    {"rotary_every_two", "1 rotary embedding"},
    {"rotary_pairs", "1 rotary embedding"},
    {"rotary_partly", "1 rotary embedding"},
    {"rotary_both", "1 attention, 2 rotary embedding"},
    {"rotary_positions", "1 rotary embedding"}, /* the tables are computed from an input */
};

static void exported_forms_are_found(void **state)
{
    (void)state;
    static const char *const exporters[] = {"script", "dynamo"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int n = 0;
        for (int e = 0; e < 2; e++) {
            char path[256];
            ty_onnx *m;
            ty_error err = {0};
            snprintf(path, sizeof path, "tests/golden/raise/%s.%s.onnx", forms[i].name, exporters[e]);
            if (access(path, R_OK) != 0)
                continue;
            if (ty_onnx_open(path, &m, &err) < 0)
                fail_msg("%s: %s", path, err.message);
            expect_found(path, raise_onnx(path, m, 1e-5), forms[i].found);
            ty_onnx_free(m);
            n++;
        }
        if (n == 0)
            fail_msg("%s: no file", forms[i].name);
    }
}

/* Attention over groups reads the few keys that there are: the repeats are gone. */
static void groups_keep_their_few_keys(void **state)
{
    (void)state;
    static const char *const files[] = {"attention_gqa.dynamo", "attention_hand_repeat.script",
                                        "attention_hand_repeat.dynamo", "attention_hand_expand.script",
                                        "attention_hand_expand.dynamo"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[256];
        ty_model *m;
        ty_error err = {0};
        ty_model_values values;
        int n = 0;
        snprintf(path, sizeof path, "tests/golden/raise/%s.onnx", files[i]);
        assert_int_equal(ty_model_open(path, &m, &err), 0);
        ty_graph *g = ty_graph_new();
        const ty_model_value *v = ty_model_input(m, 0);
        ty_val in = new_input(g, v->dtype, v->rank, v->dim);
        ty_model_binding b = {.mode = TY_MODEL_EVAL, .inputs = &in};
        b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
        assert_int_equal(ty_model_import(m, g, &b, &values, &err), 0);
        for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
            if (ty_graph_op(g, id) == TY_OP_ATTENTION && ++n)
                for (int k = 0; k < 3; k++)
                    if (ty_b_dim(g, ty_graph_in(g, id, k), 1) != (k == 0 ? 2 : 1))
                        fail_msg("%s: input %d has %d heads", path, k, (int)ty_b_dim(g, ty_graph_in(g, id, k), 1));
        assert_int_equal(n, 1);
        ty_graph_free(g);
        ty_model_free(m);
    }
}

/* Rotary embedding and gated units are no composites of their own: each is one kernel. */
static void what_is_no_composite_is_one_kernel(void **state)
{
    (void)state;
    static const char *const files[] = {
        "rotary.script",        "rotary.dynamo",           "rotary_interleaved.script", "rotary_interleaved.dynamo",
        "rotary_halves.dynamo", "rotary_every_two.script", "rotary_pairs.dynamo",       "rotary_partly.script",
        "swiglu.dynamo"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[256];
        ty_model *m;
        ty_program *p;
        ty_error err = {0};
        snprintf(path, sizeof path, "tests/golden/raise/%s.onnx", files[i]);
        assert_int_equal(ty_model_open(path, &m, &err), 0);
        const ty_model_value *x = ty_model_input(m, 0);
        ty_binding in = {x->name, ty_type_make(x->dtype, x->rank, x->dim)};
        if (ty_compile_infer(m, &in, 1, &(ty_compile_options){.threads = 1}, &p, &err) < 0)
            fail_msg("%s: %s", path, err.message);
        if (ty_program_report(p)->n_kernels != 1 || ty_program_report(p)->n_library_calls != 0)
            fail_msg("%s: %d kernels, %d library calls", path, ty_program_report(p)->n_kernels,
                     ty_program_report(p)->n_library_calls);
        ty_program_free(p);
        ty_model_free(m);
    }
}

/* ---- real files ---- */

typedef struct real {
    const char *name, *found;
} real;

/* For training, with all weights constants. einsum_attention adds -10000, which hides a score only almost. */
static const real cases[] = {
    {"gpt_tied", "2 causal attention, 5 layer norm, 2 GELU (tanh)"},
    {"bert_pairs", "2 attention, 5 layer norm, 2 GELU"},
    {"vit", "2 attention, 5 layer norm, 2 GELU"},
    {"llama_gqa", "2 causal attention, 4 rotary embedding, 5 RMS norm, 2 SiLU"},
    {"t5_relative", "2 attention, 5 RMS norm, 2 GELU (tanh)"},
    {"encoder_padding_mask", "2 attention, 4 layer norm"},
    {"attention_opset23", "2 causal attention, 1 layer norm, 4 RMS norm, 2 GELU"},
    {"einsum_attention", "1 attention, 1 layer norm"},
    {"mlp_gelu", "1 GELU, 1 GELU (tanh)"},
    {"mlp_silu_mish_softplus", "1 SiLU"},
    {"cnn_group_instance_norm", "3 layer norm, 1 SiLU"},
    {"resnet_basic", "9 batch norm"},
    {"lstm_char", "1 recurrence"},
    {"gru_char", "1 recurrence"},
    {"rnn_tanh_char", "1 recurrence"},
    {"lstm_two_layer_rows", "2 recurrence"},
    {"bilstm_truecase", "2 recurrence"},
    {"mlp_relu", ""},
};

/* The files that bench/peers/export.py writes. */
static const real works[] = {
    {"gpt2", "12 causal attention, 25 layer norm, 12 GELU (tanh)"},
    {"bert", "12 attention, 25 layer norm, 12 GELU"},
    {"chargpt", "6 causal attention, 13 layer norm, 6 GELU (tanh)"},
    {"resnet50", "53 batch norm"},
    {"cnn", ""},
    {"mlp", ""},
    {"lstm", "2 recurrence"},
    {"deepfm", ""},
};

/* False if there is no such file. */
static bool check_real(const char *folder, const real *want)
{
    char path[512];
    ty_model *m;
    ty_error err = {0};
    ty_composite_count found;
    snprintf(path, sizeof path, "%s/%s/model.onnx", folder, want->name);
    if (access(path, R_OK) != 0)
        return false;
    if (ty_model_open(path, &m, &err) < 0 || ty_model_count_composites(m, 2, &found, &err) < 0)
        fail_msg("%s: %s", path, err.message);
    expect_found(want->name, found, want->found);
    ty_model_free(m);
    return true;
}

static void train_cases_have_what_they_have(void **state)
{
    (void)state;
    const char *shared = getenv("TY_SHARED");
    char folder[400];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/data/train-cases", shared ? shared : "../shared");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        n += check_real(folder, &cases[i]);
    if (n == 0) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
}

/* Imports with all weights bound to inputs, as for training. */
static ty_graph *import_trained(const ty_model *m)
{
    ty_graph *g = ty_graph_new();
    ty_error err = {0};
    ty_val in[8], weight[64];
    assert_true(ty_model_n_inputs(m) <= 8 && ty_model_n_weights(m) <= 64);
    for (int i = 0; i < ty_model_n_inputs(m); i++) {
        const ty_model_value *v = ty_model_input(m, i);
        int64_t dim[TY_MAX_RANK];
        for (int k = 0; k < v->rank; k++)
            dim[k] = v->dim[k] < 0 ? 2 : v->dim[k];
        in[i] = new_input(g, v->dtype, v->rank, dim);
    }
    for (int i = 0; i < ty_model_n_weights(m); i++) {
        const ty_model_value *v = ty_model_weight(m, i);
        weight[i] = ty_dtype_is_float(v->dtype) ? new_input(g, v->dtype, v->rank, v->dim) : TY_NONE;
    }
    ty_model_binding b = {.mode = TY_MODEL_TRAIN, .inputs = in, .weights = weight};
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    ty_model_values values;
    if (ty_model_import(m, g, &b, &values, &err) < 0)
        fail_msg("%s", err.message);
    return g;
}

/* PyTorch's exporter puts the gates of all weights into ONNX's order; `rnn` takes them as they were. */
static void recurrences_read_weights_as_they_lie(void **state)
{
    (void)state;
    static const char *const names[] = {"lstm_char", "gru_char", "rnn_tanh_char", "lstm_two_layer_rows",
                                        "bilstm_truecase"};
    const char *shared = getenv("TY_SHARED");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        ty_model *m;
        ty_error err = {0};
        snprintf(path, sizeof path, "%s/data/train-cases/%s/model.onnx", shared ? shared : "../shared", names[i]);
        if (access(path, R_OK) != 0) {
            print_message("skip: no shared data at TY_SHARED or ../shared\n");
            skip();
        }
        assert_int_equal(ty_model_open(path, &m, &err), 0);
        ty_graph *g = import_trained(m);
        int n = 0;
        for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
            if (ty_graph_op(g, id) == TY_OP_RNN) {
                n++;
                assert_int_equal(ty_graph_op(g, ty_val_node(ty_graph_in(g, id, 1))), TY_OP_INPUT);
                assert_int_equal(ty_graph_op(g, ty_val_node(ty_graph_in(g, id, 2))), TY_OP_INPUT);
            }
        assert_true(n > 0);
        ty_graph_free(g);
        ty_model_free(m);
    }
}

/* The report of compiling says the same, for inference as it is applied: batch norm is no composite there. */
static void reports_say_what_was_found(void **state)
{
    (void)state;
    const char *shared = getenv("TY_SHARED");
    static const real reports[] = {{"mlp_gelu", "1 GELU, 1 GELU (tanh)"}, {"resnet_basic", ""}};
    for (int i = 0; i < 2; i++) {
        char path[512];
        ty_model *m;
        ty_program *p;
        ty_error err = {0};
        snprintf(path, sizeof path, "%s/data/train-cases/%s/model.onnx", shared ? shared : "../shared",
                 reports[i].name);
        if (access(path, R_OK) != 0) {
            print_message("skip: no shared data at TY_SHARED or ../shared\n");
            skip();
        }
        assert_int_equal(ty_model_open(path, &m, &err), 0);
        const ty_model_value *x = ty_model_input(m, 0);
        ty_binding in = {x->name, {.dtype = (uint8_t)x->dtype, .rank = (uint8_t)x->rank}};
        for (int k = 0; k < x->rank; k++)
            in.type.dim[k] = x->dim[k] < 0 ? 2 : x->dim[k];
        if (ty_compile_infer(m, &in, 1, &(ty_compile_options){.backend = TY_BACKEND_INTERPRETER}, &p, &err) < 0)
            fail_msg("%s", err.message);
        expect_found(path, ty_program_report(p)->found, reports[i].found);
        ty_program_free(p);
        ty_model_free(m);
    }
}

static void workloads_have_what_they_have(void **state)
{
    (void)state;
    int n = 0;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        n += check_real("build/bench/works", &works[i]);
    if (n == 0) {
        print_message("skip: workloads in build/bench/works; bench/compare makes them\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exported_forms_are_found),
        cmocka_unit_test(groups_keep_their_few_keys),
        cmocka_unit_test(what_is_no_composite_is_one_kernel),
        cmocka_unit_test(train_cases_have_what_they_have),
        cmocka_unit_test(recurrences_read_weights_as_they_lie),
        cmocka_unit_test(reports_say_what_was_found),
        cmocka_unit_test(workloads_have_what_they_have),
    };
    return cmocka_run_group_tests_name("raise_files", tests, NULL, NULL);
}
