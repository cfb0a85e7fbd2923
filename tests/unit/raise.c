/* Raising: composites found again in graphs as exporters write them, what must be left alone, and that values stay.
 *
 * Small models are written in double, so that values before and after can be compared to 1e-12.
 */
#include "tests/unit/raise_case.h"

#include "compiler/model.h"

#include <unistd.h>

/* ---- norms ---- */

static void mean(model_text *t, const char *in, const char *out, int64_t axis)
{
    attr_ints(t, "axes", 1, &axis);
    attr_int(t, "keepdims", 1);
    model_node(t, "ReduceMean", in, out, "");
}

/* nn.LayerNorm by the older exporter below opset 17. */
static void layer_norm(model_text *t, int64_t axis, double eps)
{
    begin(t, SHAPE(2, 4, 4));
    constant(t, "two", 2);
    constant(t, "eps", eps);
    numbers(t, "w", SHAPE(4));
    numbers(t, "b", SHAPE(4));
    mean(t, "x", "m", axis);
    model_node(t, "Sub", "x,m", "d", "");
    model_node(t, "Pow", "d,two", "dd", "");
    mean(t, "dd", "v", axis);
    model_node(t, "Add", "v,eps", "ve", "");
    model_node(t, "Sqrt", "ve", "s", "");
    model_node(t, "Div", "d,s", "h", "");
    model_node(t, "Mul", "h,w", "hw", "");
    model_node(t, "Add", "hw,b", "y", "");
    model_output(t, "y", F64);
}

static void layer_norm_is_found(void **state)
{
    (void)state;
    model_text t;
    layer_norm(&t, -1, 1e-5);
    expect_found("layer norm", raise_model(&t), "1 layer norm");
}

static void norms_that_are_none(void **state)
{
    (void)state;
    model_text t;
    layer_norm(&t, 1, 1e-5);
    expect_found("another axis", raise_model(&t), "");
    layer_norm(&t, -1, 0);
    expect_found("no epsilon", raise_model(&t), "");
    layer_norm(&t, -1, 1e-5);
    model_output(&t, "s", F64);
    expect_found("the deviation is wanted too", raise_model(&t), "");
    layer_norm(&t, -1, 1e-5);
    model_output(&t, "h", F64);
    expect_found("the value before the scale is wanted too", raise_model(&t), "1 layer norm");
}

/* As LLaMA writes it: x * rsqrt(mean(x^2) + eps) * w, rsqrt as Reciprocal of Sqrt; and the quotient form. */
static void rms_norm_is_found(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        model_text t;
        begin(&t, SHAPE(2, 3, 4));
        constant(&t, "two", 2);
        constant(&t, "eps", 1e-6);
        numbers(&t, "w", SHAPE(4));
        model_node(&t, "Pow", "x,two", "xx", "");
        mean(&t, "xx", "v", -1);
        model_node(&t, "Add", "v,eps", "ve", "");
        model_node(&t, "Sqrt", "ve", "s", "");
        model_node(&t, "Reciprocal", "s", "r", "");
        model_node(&t, over ? "Div" : "Mul", over ? "x,s" : "x,r", "h", "");
        model_node(&t, "Mul", "w,h", "y", "");
        model_output(&t, "y", F64);
        expect_found("rms norm", raise_model(&t), "1 RMS norm");
    }
}

/* ---- activations ---- */

/* Orders as in the dynamo exporter (0) and in Hugging Face's NewGELU by the older one (1); c: the cubic's factor. */
static void gelu_tanh(model_text *t, int order, double c, double root)
{
    begin(t, SHAPE(3, 4));
    constant(t, "three", 3);
    constant(t, "c", c);
    constant(t, "root", root);
    constant(t, "one", 1);
    constant(t, "half", 0.5);
    model_node(t, "Pow", "x,three", "p", "");
    model_node(t, "Mul", order ? "c,p" : "p,c", "cp", "");
    model_node(t, "Add", "x,cp", "a", "");
    model_node(t, "Mul", "a,root", "ra", "");
    model_node(t, "Tanh", "ra", "th", "");
    model_node(t, "Add", "th,one", "u", "");
    model_node(t, "Mul", order ? "x,half" : "half,u", "l", "");
    model_node(t, "Mul", order ? "l,u" : "x,l", "y", "");
    model_output(t, "y", F64);
}

/* 0: x (erf + 1) 0.5;  1: (x 0.5) (erf + 1) with x times the reciprocal of the root of 2. */
static void gelu_erf(model_text *t, int order)
{
    begin(t, SHAPE(3, 4));
    constant(t, "root", order ? sqrt(0.5) : sqrt(2));
    constant(t, "one", 1);
    constant(t, "half", 0.5);
    model_node(t, order ? "Mul" : "Div", "x,root", "a", "");
    model_node(t, "Erf", "a", "e", "");
    model_node(t, "Add", "e,one", "u", "");
    model_node(t, "Mul", order ? "x,half" : "x,u", "l", "");
    model_node(t, "Mul", order ? "u,l" : "l,half", "y", "");
    model_output(t, "y", F64);
}

static void gelus_are_found(void **state)
{
    (void)state;
    model_text t;
    for (int order = 0; order < 2; order++) {
        gelu_tanh(&t, order, 0.044715, sqrt(2 / M_PI));
        expect_found("tanh gelu", raise_model(&t), "1 GELU (tanh)");
        gelu_erf(&t, order);
        expect_found("gelu", raise_model(&t), "1 GELU");
    }
}

static void gelus_that_are_none(void **state)
{
    (void)state;
    model_text t;
    gelu_tanh(&t, 0, 0.0447, sqrt(2 / M_PI));
    expect_found("another cubic", raise_model(&t), "");
    gelu_tanh(&t, 0, 0.044715, 0.7978);
    expect_found("a short root", raise_model(&t), "");
    gelu_tanh(&t, 0, 0.044715, sqrt(2 / M_PI));
    model_output(&t, "th", F64);
    expect_found("tanh is wanted too", raise_model(&t), "");
}

static void silu_is_found(void **state)
{
    (void)state;
    for (int other = 0; other < 2; other++) {
        model_text t;
        begin(&t, SHAPE(3, 4));
        constant(&t, "k", other ? 1.702 : 1);
        model_node(&t, "Mul", "x,k", "kx", "");
        model_node(&t, "Sigmoid", "kx", "s", "");
        model_node(&t, "Mul", "x,s", "y", "");
        model_output(&t, "y", F64);
        expect_found(other ? "quick gelu" : "silu", raise_model(&t), other ? "" : "1 SiLU");
    }
}

static void gate_is_no_silu(void **state)
{
    (void)state;
    model_text t;
    begin(&t, SHAPE(3, 4));
    model_input(&t, "z", F64, SHAPE(3, 4));
    model_node(&t, "Sigmoid", "z", "s", "");
    model_node(&t, "Mul", "x,s", "y", "");
    model_output(&t, "y", F64);
    expect_found("gate", raise_model(&t), "");
}

/* ---- attention ---- */

typedef enum look { LOOK_ALL, LOOK_ADDED, LOOK_CAUSAL, LOOK_CAUSAL_WHERE, LOOK_WHERE, LOOK_STRICT } look;
typedef enum scale { SCALE_BOTH, SCALE_PRODUCT, SCALE_DIV } scale;

static void lower_triangle(model_text *t, int64_t k)
{
    static const double ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    model_raw(t, "ones", F64, SHAPE(4, 4), ones, sizeof ones);
    model_ints(t, "k", 1, &k);
    attr_int(t, "upper", 0);
    model_node(t, "Trilu", "ones,k0", "low", "");
    model_node(t, "Equal", "low,zero", "future", "");
}

static void attention_mask(model_text *t, look how)
{
    int64_t k = how == LOOK_STRICT ? 1 : 0; /* 1: each query sees one key of its future */
    model_raw(t, "k0", 7, 0, NULL, &k, sizeof k);
    constant(t, "zero", 0);
    constant(t, "hidden", how == LOOK_CAUSAL_WHERE || how == LOOK_WHERE ? -INFINITY : -1.7e308);
    lower_triangle(t, k);
    model_node(t, "Where", "future,hidden,zero", "bias", "");
    if (how == LOOK_CAUSAL_WHERE)
        model_node(t, "Where", "future,hidden,scaled", "masked", "");
    else if (how == LOOK_WHERE)
        model_node(t, "Where", "seen,scaled,hidden", "masked", "");
    else
        model_node(t, "Add", how == LOOK_ADDED ? "scaled,given" : "scaled,bias", "masked", "");
}

/* scaled_dot_product_attention: 2 batch entries, 2 heads, 4 tokens of 3 numbers. */
static void attention(model_text *t, look how, scale where)
{
    begin(t, SHAPE(2, 4, 6));
    model_input(t, "given", F64, SHAPE(2, 1, 1, 4));
    model_input(t, "seen", 9, SHAPE(2, 1, 4, 4));
    model_ints(t, "heads", 4, (int64_t[]){2, 4, 2, 3});
    constant(t, "s", where == SCALE_BOTH ? sqrt(sqrt(1.0 / 3)) : where == SCALE_DIV ? sqrt(3) : sqrt(1.0 / 3));
    model_node(t, "Reshape", "x,heads", "xh", "");
    attr_ints(t, "perm", 4, (int64_t[]){0, 2, 1, 3});
    model_node(t, "Transpose", "xh", "q", "");
    attr_ints(t, "perm", 4, (int64_t[]){0, 2, 3, 1});
    model_node(t, "Transpose", "xh", "kt", "");
    if (where == SCALE_BOTH) {
        model_node(t, "Mul", "q,s", "qs", "");
        model_node(t, "Mul", "kt,s", "ks", "");
        model_node(t, "MatMul", "qs,ks", "scaled", "");
    } else {
        model_node(t, "MatMul", "q,kt", "scores", "");
        model_node(t, where == SCALE_DIV ? "Div" : "Mul", "scores,s", "scaled", "");
    }
    if (how != LOOK_ALL)
        attention_mask(t, how);
    attr_int(t, "axis", -1);
    model_node(t, "Softmax", how == LOOK_ALL ? "scaled" : "masked", "p", "");
    model_node(t, "MatMul", "p,q", "y", "");
    model_output(t, "y", F64);
}

static void attentions_are_found(void **state)
{
    (void)state;
    model_text t;
    for (scale where = SCALE_BOTH; where <= SCALE_DIV; where++)
        for (look how = LOOK_ALL; how <= LOOK_STRICT; how++) {
            attention(&t, how, where);
            bool causal = how == LOOK_CAUSAL || how == LOOK_CAUSAL_WHERE;
            expect_found("attention", raise_model(&t), causal ? "1 causal attention" : "1 attention");
        }
}

static void attentions_that_are_none(void **state)
{
    (void)state;
    model_text t;
    attention(&t, LOOK_CAUSAL, SCALE_BOTH);
    model_output(&t, "p", F64);
    expect_found("the probabilities are wanted too", raise_model(&t), "1 softmax");
    begin(&t, SHAPE(2, 3, 3));
    attr_ints(&t, "perm", 3, (int64_t[]){0, 2, 1});
    model_node(&t, "Transpose", "x", "xt", "");
    model_node(&t, "MatMul", "x,xt", "s", "");
    attr_int(&t, "axis", 1);
    model_node(&t, "Softmax", "s", "p", "");
    model_node(&t, "MatMul", "p,x", "y", "");
    model_output(&t, "y", F64);
    expect_found("softmax over queries", raise_model(&t), "1 softmax");
}

/* ---- softmax, cross-entropy, batch norm: what must be left alone ---- */

static void reduced(model_text *t, const char *op, const char *in, const char *out, int64_t axis)
{
    attr_int(t, "keepdims", 1);
    if (strcmp(op, "ReduceSum") == 0) {
        model_node(t, op, in, out, "");
        return;
    }
    attr_ints(t, "axes", 1, &axis);
    model_node(t, op, in, out, "");
}

/* exp(x - max(x)) / sum along the last axis, the maximum along axis max_axis. */
static void softmax_parts(model_text *t, int64_t max_axis)
{
    int64_t last = 1;
    begin(t, SHAPE(4, 5));
    model_ints(t, "last", 1, &last);
    reduced(t, "ReduceMax", "x", "m", max_axis);
    model_node(t, "Sub", "x,m", "d", "");
    model_node(t, "Exp", "d", "e", "");
    reduced(t, "ReduceSum", "e,last", "s", 1);
    model_node(t, "Div", "e,s", "y", "");
    model_output(t, "y", F64);
}

static void softmaxes_that_are_none(void **state)
{
    (void)state;
    model_text t;
    softmax_parts(&t, 1);
    expect_found("softmax", raise_model(&t), "1 softmax");
    softmax_parts(&t, 0);
    expect_found("the maximum of a column", raise_model(&t), "");
    softmax_parts(&t, 1);
    model_output(&t, "s", F64);
    expect_found("the sum is wanted too", raise_model(&t), "");
}

static void picked(model_text *t, int64_t axis)
{
    begin(t, SHAPE(5, 5));
    model_input(t, "label", 7, SHAPE(5, 1));
    attr_int(t, "axis", axis);
    model_node(t, "LogSoftmax", "x", "p", "");
    attr_int(t, "axis", 1);
    model_node(t, "GatherElements", "p,label", "y", "");
    model_output(t, "y", F64);
}

static void cross_entropies_that_are_none(void **state)
{
    (void)state;
    model_text t;
    picked(&t, 1);
    expect_found("cross-entropy", raise_model(&t), "1 cross-entropy");
    picked(&t, 0);
    expect_found("classes along another axis", raise_model(&t), "1 log-softmax");
    picked(&t, 1);
    model_output(&t, "p", F64);
    expect_found("the probabilities are wanted too", raise_model(&t), "1 log-softmax");
}

/* Labels that are no class: a one-hot row of zeros has no term. */
static void one_hot_of_no_class_is_zero(void **state)
{
    (void)state;
    model_text t;
    int64_t classes[3] = {0, 1, 2}, last = 1; /* of labels 0 to 4 */
    begin(&t, SHAPE(5, 3));
    model_input(&t, "label", 7, SHAPE(5, 1));
    model_raw(&t, "classes", 7, SHAPE(1, 3), classes, sizeof classes);
    model_ints(&t, "last", 1, &last);
    attr_int(&t, "axis", 1);
    model_node(&t, "LogSoftmax", "x", "p", "");
    model_node(&t, "Equal", "label,classes", "hit", "");
    attr_int(&t, "to", F64);
    model_node(&t, "Cast", "hit", "hot", "");
    model_node(&t, "Mul", "p,hot", "ph", "");
    reduced(&t, "ReduceSum", "ph,last", "y", 1);
    model_output(&t, "y", F64);
    expect_found("labels beyond the classes", raise_model(&t), "1 cross-entropy");
}

/* x / sqrt(mean(x x) + eps) with the mean over the batch: no batch norm without the mean taken away. */
static void batch_norms_that_are_none(void **state)
{
    (void)state;
    for (int centered = 0; centered < 2; centered++) {
        model_text t;
        begin(&t, SHAPE(4, 3));
        constant(&t, "eps", 1e-5);
        mean(&t, "x", "m", 0);
        model_node(&t, "Sub", "x,m", "d", "");
        model_node(&t, "Mul", centered ? "d,d" : "x,x", "dd", "");
        mean(&t, "dd", "v", 0);
        model_node(&t, "Add", "v,eps", "ve", "");
        model_node(&t, "Sqrt", "ve", "s", "");
        model_node(&t, "Div", centered ? "d,s" : "x,s", "y", "");
        model_output(&t, "y", F64);
        expect_found("batch", raise_model(&t), centered ? "1 batch norm" : "");
    }
}

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
        cmocka_unit_test(layer_norm_is_found),
        cmocka_unit_test(norms_that_are_none),
        cmocka_unit_test(rms_norm_is_found),
        cmocka_unit_test(gelus_are_found),
        cmocka_unit_test(gelus_that_are_none),
        cmocka_unit_test(silu_is_found),
        cmocka_unit_test(gate_is_no_silu),
        cmocka_unit_test(attentions_are_found),
        cmocka_unit_test(attentions_that_are_none),
        cmocka_unit_test(softmaxes_that_are_none),
        cmocka_unit_test(cross_entropies_that_are_none),
        cmocka_unit_test(one_hot_of_no_class_is_zero),
        cmocka_unit_test(batch_norms_that_are_none),
        cmocka_unit_test(exported_forms_are_found),
        cmocka_unit_test(groups_keep_their_few_keys),
        cmocka_unit_test(what_is_no_composite_is_one_kernel),
        cmocka_unit_test(train_cases_have_what_they_have),
        cmocka_unit_test(recurrences_read_weights_as_they_lie),
        cmocka_unit_test(reports_say_what_was_found),
        cmocka_unit_test(workloads_have_what_they_have),
    };
    return cmocka_run_group_tests_name("raise", tests, NULL, NULL);
}
