/* keras_refusals.c - layers of Keras models that are refused, by layer, key and value; and what noise there is in
 * training, whose numbers are ours and whose distribution is Keras'. */
#include "compiler/model.h"
#include "tests/unit/evaluate.h"

#include <unistd.h>

static char path[] = "/tmp/keras_refusals.XXXXXX.json";

/* A Sequential model of one layer on x [batch, shape..]. */
static void write_model(const char *shape, const char *class_name, const char *config)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(
        f,
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"module\": \"keras.layers\", "
        "\"class_name\": \"InputLayer\", \"config\": {\"name\": \"x\", \"batch_shape\": [null, %s], \"dtype\": "
        "\"float32\"}}, {\"module\": \"keras.layers\", \"class_name\": \"%s\", \"config\": {\"name\": \"it\"%s%s}}]}}",
        shape, class_name, *config ? ", " : "", config);
    assert_int_equal(fclose(f), 0);
}

typedef struct bound {
    ty_model *model;
    ty_graph *g;
    ty_val in;
    ty_model_values values;
} bound;

static int bind(bound *b, int64_t batch, ty_model_mode mode, ty_error *err)
{
    memset(b, 0, sizeof *b);
    if (ty_model_open(path, &b->model, err) < 0)
        return -1;
    const ty_model_value *x = ty_model_input(b->model, 0);
    ty_type t = ty_type_make(TY_F32, x->rank, x->dim);
    t.dim[0] = batch;
    b->g = ty_graph_new();
    b->in = ty_b_input(b->g, ty_graph_add_input(b->g, "x", t));
    ty_model_binding binding = {
        .mode = mode, .inputs = &b->in, .seed = ty_b_scalar(b->g, TY_I64, 7), .step = ty_b_scalar(b->g, TY_I64, 1)};
    return ty_model_import(b->model, b->g, &binding, &b->values, err);
}

static void leave(bound *b)
{
    if (b->g)
        ty_graph_free(b->g);
    ty_model_free(b->model);
}

/* ---- refusals ---- */

typedef struct refusal {
    const char *class_name, *shape, *config, *words[3]; /* the message has them */
} refusal;

#define WINDOW "\"filters\": 4, \"kernel_size\": 3"

static const refusal refusals[] = {
    {"Conv2D", "8, 8, 3", "\"filters\": 4", {"kernel_size", "missing"}},
    {"Conv2D", "8, 8, 3", WINDOW ", \"padding\": \"causal\"", {"padding", "causal", "same"}},
    {"Conv2D", "8, 8, 3", WINDOW ", \"groups\": 2", {"groups", "2", "divisor of 3"}},
    {"Conv2D", "8, 8, 3", WINDOW ", \"strides\": [1, 2, 3]", {"strides", "list of 3"}},
    {"Conv2D", "8, 8, 3", WINDOW ", \"strides\": 0", {"strides", "0"}},
    {"Conv2D", "8, 8, 3", WINDOW ", \"lora_rank\": 4", {"lora_rank", "4"}},
    {"Conv2D", "8, 3", WINDOW, {"4 dimensions", "found 3"}},
    {"Conv2D", "2, 8, 3", WINDOW, {"window of 3", "2 positions"}},
    {"Conv2D", "8, 8, 3", "\"filters\": 0, \"kernel_size\": 3", {"filters", "0"}},
    {"Conv2D", "8, 8, 3", WINDOW ", \"data_format\": \"sideways\"", {"data_format", "sideways"}},
    {"Conv2DTranspose", "8, 8, 3", WINDOW ", \"output_padding\": 1", {"output_padding", "stride"}},
    {"Conv1DTranspose",
     "8, 3",
     "\"filters\": 2, \"kernel_size\": 2, \"padding\": \"same\", \"strides\": 2, "
     "\"output_padding\": 0",
     {"no convolution", "8 positions"}},
    {"MaxPooling2D", "1, 8, 3", "", {"window of 2", "1 positions"}},
    {"AdaptiveMaxPooling1D", "8, 3", "", {"output_size", "positive"}},
    {"BatchNormalization", "8, 3", "\"renorm\": true", {"renorm", "true"}},
    {"BatchNormalization", "8, 3", "\"axis\": 5", {"axis", "5"}},
    {"GroupNormalization", "8, 6", "\"groups\": 4", {"groups", "4", "6 channels"}},
    {"GroupNormalization", "8, 6", "\"groups\": 2, \"axis\": 0", {"axis", "0", "batch"}},
    {"RMSNormalization", "8, 6", "\"axis\": 1", {"axis", "1", "last axes"}},
    {"SpectralNormalization",
     "8",
     "\"layer\": {\"class_name\": \"Dense\", \"config\": {\"units\": 2}}",
     {"SpectralNormalization"}},
    {"ZeroPadding2D", "8, 8, 3", "\"padding\": [[1, 1], [1, 1, 1]]", {"padding", "pairs"}},
    {"ZeroPadding2D", "8, 8, 3", "\"padding\": -1", {"padding", "-1"}},
    {"Cropping1D", "8, 3", "\"cropping\": [4, 4]", {"cropping", "8 positions"}},
    {"UpSampling2D", "8, 8, 3", "\"interpolation\": \"bicubic\"", {"interpolation", "bicubic", "bilinear"}},
    {"Resizing", "8, 8, 3", "\"height\": 4, \"width\": 4, \"crop_to_aspect_ratio\": true", {"crop_to_aspect_ratio"}},
    {"CenterCrop", "8, 8, 3", "\"height\": 9, \"width\": 4", {"height", "9"}},
    {"ConvLSTM2D", "4, 8, 8, 3", "\"filters\": 2, \"kernel_size\": 3, \"stateful\": true", {"stateful", "true"}},
    {"ConvLSTM2D", "8, 8, 3", "\"filters\": 2, \"kernel_size\": 3", {"steps", "8,8,3"}},
    {"ConvLSTM1D", "4, 8, 3", "\"filters\": 0, \"kernel_size\": 3", {"filters", "0"}},
    {"CategoryEncoding", "8", "\"num_tokens\": 0", {"num_tokens", "0"}},
    {"CategoryEncoding", "8", "\"num_tokens\": 3, \"output_mode\": \"int\"", {"output_mode", "one_hot"}},
    {"Discretization", "8", "\"num_bins\": 3", {"bin_boundaries", "1 to"}},
    {"IntegerLookup", "8", "", {"no vocabulary"}},
    {"IntegerLookup", "8", "\"vocabulary\": [1, \"a\"]", {"vocabulary", "whole numbers"}},
    {"IntegerLookup", "8", "\"vocabulary\": [1, 2], \"invert\": true", {"invert"}},
    {"IntegerLookup", "8", "\"vocabulary\": [1, 2], \"output_mode\": \"tf_idf\"", {"output_mode", "one_hot"}},
    {"IntegerLookup", "8", "\"vocabulary\": [1, 2], \"oov_method\": \"farmhash\"", {"oov_method", "floormod"}},
    {"AugMix", "8, 8, 3", "", {"AugMix"}},
    {"RandomFlip", "8, 8, 3", "\"mode\": \"diagonal\"", {"mode", "diagonal", "horizontal"}},
    {"STFTSpectrogram", "64, 1", "\"frame_length\": 16, \"mode\": \"power\"", {"mode", "power", "magnitude"}},
    {"STFTSpectrogram", "64, 1", "\"frame_length\": 0", {"frame_length", "0"}},
    {"STFTSpectrogram", "8, 1", "\"frame_length\": 16", {"16", "8 positions"}},
    {"MelSpectrogram", "64", "\"fft_length\": 16, \"sequence_length\": 20", {"sequence_length", "at most fft_length"}},
    {"MelSpectrogram", "64", "\"fft_length\": 256", {"128 samples", "found 64"}},
    {"MelSpectrogram", "9000", "\"fft_length\": 8192", {"fft_length", "too long"}},
    {"MelSpectrogram", "64", "\"fft_length\": 16, \"window\": \"kaiser\"", {"window", "kaiser", "hann"}},
    {"MelSpectrogram", "64, 1", "\"fft_length\": 16", {"batch, samples", "3 axes"}},
    {"GaussianDropout", "8, 3", "\"rate\": 1.0", {"rate", "less than 1"}},
    {"SpatialDropout2D", "8, 3", "\"rate\": 0.5", {"4 dimensions"}},
    {"AlphaDropout", "8, 3", "\"rate\": 0.5, \"noise_shape\": [null, 5, 1]", {"noise_shape"}},
    {"StochasticDepth", "8, 3", "\"drop_path_rate\": 1.0", {"drop_path_rate", "less than 1"}},
    {"LayerScale", "8, 3", "\"init_values\": 0.1, \"projection_dim\": 0", {"projection_dim", "1 or more"}},
    {"LayerScale", "8, 3", "\"init_values\": 0.1, \"projection_dim\": 4", {"LayerScale", "3", "4"}},
    {"CustomScaleLayer", "8, 3", "\"scale\": 0.2", {"two inputs", "found 1"}},
};

static void says_what_and_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        ty_error err = {0};
        bound b;
        write_model(r->shape, r->class_name, r->config);
        if (bind(&b, 4, TY_MODEL_TRAIN, &err) == 0)
            fail_msg("%s {%s} is not refused", r->class_name, r->config);
        char said[4096];
        snprintf(said, sizeof said, "%s\n%s\n%s", err.message, err.place, err.detail);
        for (int k = 0; k < 3 && r->words[k]; k++)
            if (!strstr(said, r->words[k]))
                fail_msg("%s {%s}: \"%s\" is not in:\n%s", r->class_name, r->config, r->words[k], said);
        if (!strstr(said, "it"))
            fail_msg("%s: the layer's name is not in:\n%s", r->class_name, said);
        leave(&b);
    }
}

/* ---- noise ---- */

typedef struct moments {
    double mean, deviation, zeros; /* zeros: a share */
} moments;

/* Of the layer's result where x is 2 everywhere, with 400 rows. */
static moments result_of(const char *shape, const char *class_name, const char *config, ty_model_mode mode,
                         bool planes_alike)
{
    ty_error err = {0};
    bound b;
    moments m = {0};
    write_model(shape, class_name, config);
    if (bind(&b, 400, mode, &err) < 0)
        fail_msg("%s\n%s", err.message, err.place);
    const ty_type t = *ty_graph_type(b.g, b.in);
    int64_t n = ty_type_elems(&t), channels = t.dim[t.rank - 1], row = n / t.dim[0];
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = 2;
    const double *y = evaluate(b.g, b.values.outputs[0], (const void *[]){x}, false);
    for (int64_t i = 0; i < n; i++) {
        m.mean += y[i] / (double)n;
        m.zeros += (y[i] == 0) / (double)n;
        if (planes_alike && y[i] != y[i / row * row + i % channels])
            fail_msg("%s: a channel is not dropped as a whole", class_name);
    }
    for (int64_t i = 0; i < n; i++)
        m.deviation += (y[i] - m.mean) * (y[i] - m.mean) / (double)n;
    m.deviation = sqrt(m.deviation);
    free(x);
    leave(&b);
    return m;
}

static void expect_near(double found, double expected, double tolerance)
{
    if (fabs(found - expected) > tolerance)
        fail_msg("expected %g, found %g", expected, found);
}

static void noise_in_training(void **state)
{
    (void)state;
    moments m = result_of("50", "GaussianNoise", "\"stddev\": 0.5", TY_MODEL_TRAIN, false);
    expect_near(m.mean, 2, 0.02);
    expect_near(m.deviation, 0.5, 0.02);
    m = result_of("50", "GaussianDropout", "\"rate\": 0.2", TY_MODEL_TRAIN, false);
    expect_near(m.mean, 2, 0.04);
    expect_near(m.deviation, 1, 0.04); /* 2 sqrt(0.2 / 0.8) */
    m = result_of("5, 50", "SpatialDropout1D", "\"rate\": 0.25", TY_MODEL_TRAIN, true);
    expect_near(m.zeros, 0.25, 0.02);
    expect_near(m.mean, 2, 0.06);
    m = result_of("3, 2, 50", "SpatialDropout2D", "\"rate\": 0.25", TY_MODEL_TRAIN, true);
    expect_near(m.zeros, 0.25, 0.02);
    m = result_of("3, 2", "StochasticDepth", "\"drop_path_rate\": 0.25", TY_MODEL_TRAIN, true);
    expect_near(m.zeros, 0.25, 0.08); /* of 400 samples */
    expect_near(m.deviation, 2 * sqrt(1 / 3.0), 0.12);
    /* a 2 + b, or a alpha' + b: of rate 0.3, Keras' a = 0.8655, b = 0.4564 */
    double alpha = -1.6732632423543772 * 1.0507009873554805, a = pow(0.7 * (1 + 0.3 * alpha * alpha), -0.5);
    m = result_of("50", "AlphaDropout", "\"rate\": 0.3", TY_MODEL_TRAIN, false);
    expect_near(m.mean, a * (0.7 * 2 + 0.3 * alpha) - a * alpha * 0.3, 0.03);
}

static void none_in_evaluation(void **state)
{
    (void)state;
    static const char *const layers[] = {"GaussianNoise", "GaussianDropout", "SpatialDropout1D", "AlphaDropout"};
    for (int i = 0; i < 4; i++) {
        moments m = result_of("5, 10", layers[i], i ? "\"rate\": 0.3" : "\"stddev\": 0.3", TY_MODEL_EVAL, false);
        expect_near(m.mean, 2, 1e-9);
        expect_near(m.deviation, 0, 1e-9);
    }
}

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemps(path, 5);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_and_where),
        cmocka_unit_test(noise_in_training),
        cmocka_unit_test(none_in_evaluation),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
