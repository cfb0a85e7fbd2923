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

/* tf.nn.batch_normalization over the last axis: x f + (b - m f) with f = w / sqrt(v + eps). shift: which value is
 * multiplied with f in the second place. */
static void layer_norm_folded(model_text *t, const char *shift, bool scaled)
{
    begin(t, SHAPE(2, 4, 4));
    constant(t, "eps", 1e-5);
    constant(t, "one", 1);
    numbers(t, "w", SHAPE(4));
    numbers(t, "b", SHAPE(4));
    mean(t, "x", "m", -1);
    mean(t, "x", "other", 1);
    model_node(t, "Sub", "x,m", "d", "");
    model_node(t, "Mul", "d,d", "dd", "");
    mean(t, "dd", "v", -1);
    model_node(t, "Add", "v,eps", "ve", "");
    model_node(t, "Sqrt", "ve", "s", "");
    model_node(t, "Div", "one,s", "r", "");
    model_node(t, "Mul", "r,w", "rw", "");
    const char *f = scaled ? "rw" : "r";
    char in[32];
    snprintf(in, sizeof in, "x,%s", f);
    model_node(t, "Mul", in, "xf", "");
    snprintf(in, sizeof in, "%s,%s", shift, f);
    model_node(t, "Mul", in, "mf", "");
    model_node(t, "Sub", "b,mf", "rest", "");
    model_node(t, "Add", "xf,rest", "y", "");
    model_output(t, "y", F64);
}

static void folded_layer_norm_is_found(void **state)
{
    (void)state;
    model_text t;
    for (int scaled = 0; scaled < 2; scaled++) {
        layer_norm_folded(&t, "m", scaled);
        expect_found("TensorFlow's layer norm", raise_model(&t), "1 layer norm");
    }
    layer_norm_folded(&t, "other", true);
    expect_found("the mean of another axis", raise_model(&t), "");
    layer_norm_folded(&t, "v", true);
    expect_found("no mean", raise_model(&t), "");
    layer_norm_folded(&t, "m", true);
    model_output(&t, "rw", F64);
    expect_found("the factor is wanted too", raise_model(&t), "");
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

typedef enum look {
    LOOK_ALL,
    LOOK_ADDED,
    LOOK_CAUSAL,
    LOOK_CAUSAL_WHERE,
    LOOK_WHERE,
    LOOK_TAKEN,
    LOOK_WEIGHTED,
    LOOK_WEIGHTED_FAR,
    LOOK_STRICT
} look;
typedef enum scale { SCALE_BOTH, SCALE_PRODUCT, SCALE_DIV } scale;

/* y: the softmax p of the scores, times values. */
static void attention_ends(model_text *t, const char *scores, const char *weighted)
{
    attr_int(t, "axis", -1);
    model_node(t, "Softmax", scores, "p", "");
    model_node(t, "MatMul", weighted, "y", "");
    model_output(t, "y", F64);
}

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
    if (how == LOOK_WEIGHTED || how == LOOK_WEIGHTED_FAR) { /* TFGPT2LMHeadModel */
        constant(t, "far", how == LOOK_WEIGHTED ? 1e4 : 1e10);
        constant(t, "one", 1);
        model_node(t, "Mul", "scaled,low", "kept", "");
        model_node(t, "Sub", "one,low", "high", "");
        model_node(t, "Mul", "far,high", "taken", "");
        model_node(t, "Sub", "kept,taken", "masked", "");
    } else if (how == LOOK_TAKEN)
        model_node(t, "Sub", "scaled,given", "masked", "");
    else if (how == LOOK_CAUSAL_WHERE)
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
    attention_ends(t, how == LOOK_ALL ? "scaled" : "masked", "p,q");
}

static void attentions_are_found(void **state)
{
    (void)state;
    model_text t;
    for (scale where = SCALE_BOTH; where <= SCALE_DIV; where++)
        for (look how = LOOK_ALL; how <= LOOK_STRICT; how++) {
            attention(&t, how, where);
            bool causal = how == LOOK_CAUSAL || how == LOOK_CAUSAL_WHERE || how == LOOK_WEIGHTED_FAR;
            expect_found("attention", raise_model(&t), causal ? "1 causal attention" : "1 attention");
        }
}

/* Keys and values of all heads: the product stretches them. Two entries, two heads, four tokens of three numbers. */
static void multi_query(model_text *t, bool stretched_entries)
{
    begin(t, SHAPE(2, 2, 4, 3));
    model_input(t, "m", F64, SHAPE(stretched_entries ? 1 : 2, 1, 4, 3));
    attr_ints(t, "perm", 4, (int64_t[]){0, 1, 3, 2});
    model_node(t, "Transpose", "m", "mt", "");
    model_node(t, "MatMul", "x,mt", "scores", "");
    attention_ends(t, "scores", "p,m");
}

static void expect_key_heads(model_text *t, int64_t heads)
{
    ty_onnx *m = model_open(t);
    ty_graph *g = ty_graph_new(), *after = ty_graph_new();
    ty_val in[2], bound[2], held;
    ty_onnx_values values;
    for (int i = 0; i < 2; i++) {
        const ty_onnx_value *v = ty_onnx_input(m, i);
        in[i] = new_input(g, v->dtype, v->rank, v->dim);
        bound[i] = new_input(after, v->dtype, v->rank, v->dim);
    }
    ty_onnx_binding b = {.mode = TY_ONNX_TRAIN, .inputs = in, .seed = TY_NONE, .step = TY_NONE};
    assert_int_equal(ty_onnx_import(m, g, &b, &values, NULL), 0);
    held = values.outputs[0];
    assert_int_equal(ty_pass_raise(g, after, bound, &held, 1, NULL), 0);
    int n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(after); id++)
        for (int k = 1; k < 3 && ty_graph_op(after, id) == TY_OP_ATTENTION; k++, n++)
            assert_int_equal(ty_b_dim(after, ty_graph_in(after, id, k), 1), heads);
    assert_int_equal(n, 2);
    ty_graph_free(g);
    ty_graph_free(after);
    ty_onnx_free(m);
    ty_buf_fini(&t->file);
}

/* One entry's keys and values for all entries, without heads. */
static void shared_memory(model_text *t)
{
    begin(t, SHAPE(2, 4, 3));
    model_input(t, "m", F64, SHAPE(1, 5, 3));
    attr_ints(t, "perm", 3, (int64_t[]){0, 2, 1});
    model_node(t, "Transpose", "m", "mt", "");
    model_node(t, "MatMul", "x,mt", "scores", "");
    attention_ends(t, "scores", "p,m");
}

static void keys_of_all_heads_stay_one(void **state)
{
    (void)state;
    model_text t;
    for (int entries = 0; entries < 2; entries++) {
        multi_query(&t, entries);
        expect_found("multi-query attention", raise_model(&t), "1 attention");
    }
    shared_memory(&t);
    expect_found("keys of one entry for all", raise_model(&t), "1 attention");
    multi_query(&t, false);
    expect_key_heads(&t, 1);
    multi_query(&t, true); /* one entry for all, too: no group of heads */
    expect_key_heads(&t, 2);
}

/* Two masks, of which the second meets the scores in another shape; 4 entries or windows, 2 heads, 4 tokens of 3. */
static const struct {
    const char *what, *found;
    int n_first, n_second;
    int64_t first[5], bias[5], second[5], mask[5]; /* shapes of scores, and of what is added to them */
    bool chosen;                                   /* the second is a condition */
} twice[] = {
    {"heads and entries as one axis", "1 attention", 3, 4, {8, 4, 4}, {8, 1, 4}, {4, 2, 4, 4}, {4, 1, 1, 4}, false},
    {"a bias for all of that axis", "1 attention", 3, 4, {8, 4, 4}, {1, 4, 4}, {4, 2, 4, 4}, {1, 2, 4, 1}, false},
    {"windows", "1 attention", 4, 5, {4, 2, 4, 4}, {1, 2, 4, 4}, {2, 2, 2, 4, 4}, {1, 2, 1, 4, 4}, false},
    {"one shape", "1 attention", 4, 4, {4, 2, 4, 4}, {1, 2, 4, 4}, {4, 2, 4, 4}, {4, 1, 1, 4}, false},
    {"a condition behind a bias", "1 attention", 4, 4, {4, 2, 4, 4}, {1, 2, 1, 4}, {4, 2, 4, 4}, {4, 1, 4, 4}, true},
    {"a part of an axis", "1 softmax", 5, 4, {2, 2, 2, 4, 4}, {1, 2, 1, 4, 4}, {4, 2, 4, 4}, {4, 1, 1, 4}, false},
};

static void masked_twice(model_text *t, size_t i)
{
    int n = twice[i].n_first;
    int64_t heads[5], swapped[5] = {0, 1, 2, 3, 4};
    memcpy(heads, twice[i].first, sizeof heads);
    heads[n - 1] = 3;
    swapped[n - 2] = n - 1;
    swapped[n - 1] = n - 2;
    begin(t, SHAPE(8, 4, 3));
    model_input(t, "bias", F64, n, twice[i].bias);
    model_input(t, "mask", twice[i].chosen ? 9 : F64, twice[i].n_second, twice[i].mask);
    constant(t, "hidden", -1e300);
    model_ints(t, "heads", n, heads);
    model_ints(t, "first", n, twice[i].first);
    model_ints(t, "second", twice[i].n_second, twice[i].second);
    model_node(t, "Reshape", "x,heads", "q", "");
    attr_ints(t, "perm", n, swapped);
    model_node(t, "Transpose", "q", "kt", "");
    model_node(t, "MatMul", "q,kt", "scores", "");
    model_node(t, "Add", "scores,bias", "biased", "");
    model_node(t, "Reshape", "biased,second", "again", "");
    model_node(t, twice[i].chosen ? "Where" : "Add", twice[i].chosen ? "mask,again,hidden" : "again,mask", "masked",
               "");
    model_node(t, "Reshape", "masked,first", "last", "");
    attention_ends(t, "last", "p,q");
}

static void masks_are_added_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
        model_text t;
        masked_twice(&t, i);
        expect_found(twice[i].what, raise_model(&t), twice[i].found);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_is_found),
        cmocka_unit_test(folded_layer_norm_is_found),
        cmocka_unit_test(norms_that_are_none),
        cmocka_unit_test(rms_norm_is_found),
        cmocka_unit_test(gelus_are_found),
        cmocka_unit_test(gelus_that_are_none),
        cmocka_unit_test(silu_is_found),
        cmocka_unit_test(gate_is_no_silu),
        cmocka_unit_test(attentions_are_found),
        cmocka_unit_test(keys_of_all_heads_stay_one),
        cmocka_unit_test(masks_are_added_twice),
        cmocka_unit_test(attentions_that_are_none),
        cmocka_unit_test(softmaxes_that_are_none),
        cmocka_unit_test(cross_entropies_that_are_none),
        cmocka_unit_test(one_hot_of_no_class_is_zero),
        cmocka_unit_test(batch_norms_that_are_none),
    };
    return cmocka_run_group_tests_name("raise", tests, NULL, NULL);
}
