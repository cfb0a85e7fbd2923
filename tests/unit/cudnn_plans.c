/* Which convolutions cuDNN computes on GPUs that are not here: the real library, where it is installed (from 9.8 on),
 * told what is known of a GPU, proposes engines and plans them. Nothing runs. */
#include "tests/unit/evaluate.h"

#include "compiler/ops/sliding.h"
#include "compiler/program.h"
#include "compiler/target/cuda/cudnn.h"
#include "compiler/target/cuda/libraries.h"

enum { FIRST_VERSION = 90800, SMALL = 16 << 20, LEAST = 32 << 20, MOST = 1 << 30 };

/* Of an H100; other generations differ here by what decides: the capability and its shared memory. */
static const char *properties_of(int capability)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "{\"deviceVer\":%d,\"multiProcessorCount\":132,\"maxSharedMemoryPerBlockOptin\":%d,"
             "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"driverVer\":13000,"
             "\"maxSharedMemoryPerBlock\":49152,\"reservedSharedMemoryPerBlock\":1024,\"totalGlobalMem\":85028110336,"
             "\"cudaDeviceId\":0,\"deviceName\":\"a GPU\",\"regsPerBlock\":65536,\"warpSize\":32,"
             "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
             "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,"
             "\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800}",
             10 * capability, capability >= 90 ? 232448 : 166912);
    return text;
}

/* Channels in and out, extent, window, step, padding: of the layers of a ResNet, and a depthwise one; two of them with
 * more images. */
typedef struct layer {
    int64_t in, out, extent, window, step, pad, groups, images;
} layer;

static const layer layers[] = {{3, 64, 224, 7, 2, 3, 1, 8},   {64, 64, 56, 3, 1, 1, 1, 8},
                               {256, 512, 56, 1, 2, 0, 1, 8}, {128, 128, 56, 3, 2, 1, 1, 8},
                               {512, 512, 7, 3, 1, 1, 1, 8},  {64, 64, 28, 3, 1, 1, 64, 8},
                               {3, 64, 224, 7, 2, 3, 1, 64},  {256, 256, 28, 3, 2, 1, 1, 64}};
static const layer *const stem = &layers[6], *const strided = &layers[7];

static ty_type laid(ty_dtype dtype, bool last, int64_t n, int64_t c, int64_t extent)
{
    return last ? ty_type_make(dtype, SHAPE(n, extent, extent, c)) : ty_type_make(dtype, SHAPE(n, c, extent, extent));
}

static ty_graph *convolution(ty_op op, ty_dtype dtype, bool last, const layer *l, ty_dtype weights, uint32_t *node)
{
    ty_graph *g = ty_graph_new();
    int64_t out = (l->extent + 2 * l->pad - l->window) / l->step + 1;
    ty_type x = laid(dtype, last, l->images, l->in, l->extent), y = laid(dtype, last, l->images, l->out, out);
    ty_type w = laid(dtype, last, l->out, l->in / l->groups, l->window);
    ty_attr attr = {.flags = last ? TY_SLIDING_LAST | TY_SLIDING_WEIGHTS_LAST : 0, .n = 2, .groups = l->groups};
    for (int i = 0; i < 2; i++)
        attr.step[i] = l->step, attr.dil[i] = 1, attr.lo[i] = attr.hi[i] = l->pad;
    if (op == TY_OP_CONV_DX)
        attr.type = x;
    if (op == TY_OP_CONV_DW) {
        attr.type = w;
        attr.type.dtype = weights;
    }
    const ty_type *a = op == TY_OP_CONV_DX ? &y : &x, *b = op == TY_OP_CONV_DW ? &y : &w;
    ty_val in[2] = {ty_b_input(g, ty_graph_add_input(g, "a", *a)), ty_b_input(g, ty_graph_add_input(g, "b", *b))};
    *node = ty_val_node(ty_graph_emit(g, op, &attr, in, 2));
    expect_ok(g);
    return g;
}

static bool is_there(void)
{
    const ty_cudnn *lib;
    if (ty_cudnn_get(&lib, NULL) == 0 && lib->cudnnGetVersion() >= FIRST_VERSION)
        return true;
    print_message("skip: cuDNN from 9.8 on is not installed: no convolution is planned\n");
    return false;
}

/* What is chosen for a node, by number and knobs; fails where nothing is. The graph is freed. */
static ty_cudnn_planned planned_node(ty_graph *g, uint32_t node, const char *what, int capability, bool tf32)
{
    ty_error err = {0};
    ty_cudnn_planned plan;
    if (ty_cudnn_try(g, node, properties_of(capability), tf32, &plan, &err) < 0)
        fail_msg("%s, sm_%d: %s", what, capability, err.message);
    ty_graph_free(g);
    assert_memory_equal(plan.engine, "engine ", 7);
    assert_in_range(plan.n_will_do, 1, plan.n_proposed);
    return plan;
}

static ty_cudnn_planned planned(ty_op op, ty_dtype dtype, bool last, const layer *l, int capability, bool tf32)
{
    uint32_t node;
    char what[96];
    ty_graph *g = convolution(op, dtype, last, l, dtype, &node);
    snprintf(what, sizeof what, "%s of %s, layer %ld", ty_op_row_of(op)->text, ty_dtype_text(dtype),
             (long)(l - layers));
    return planned_node(g, node, what, capability, tf32);
}

static const ty_op ops[] = {TY_OP_CONV, TY_OP_CONV_DX, TY_OP_CONV_DW};

static void channels_last_is_planned(void **state)
{
    static const int capabilities[] = {80, 90, 100};
    (void)state;
    for (size_t c = 0; is_there() && c < sizeof capabilities / sizeof *capabilities; c++)
        for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
            for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
                planned(ops[o], l % 2 ? TY_BF16 : TY_F16, true, &layers[l], capabilities[c], false);
}

/* A convolution and what conv_bias does behind it. */
static ty_cudnn_planned planned_bias(ty_dtype dtype, bool last, const layer *l, bool adds, bool relu, int capability,
                                     bool tf32)
{
    uint32_t node;
    char what[96];
    ty_graph *g = convolution(TY_OP_CONV, dtype, last, l, dtype, &node);
    const ty_type y = *ty_graph_type(g, ty_val_make(node, 0));
    ty_attr attr = *ty_graph_attr(g, node);
    attr.index = relu;
    ty_val in[4] = {ty_graph_in(g, node, 0), ty_graph_in(g, node, 1),
                    ty_b_input(g, ty_graph_add_input(g, "bias", ty_type_make(dtype, SHAPE(l->out)))),
                    ty_b_input(g, ty_graph_add_input(g, "z", y))};
    node = ty_val_node(ty_graph_emit(g, TY_OP_CONV_BIAS, &attr, in, adds ? 4 : 3));
    expect_ok(g);
    snprintf(what, sizeof what, "conv_bias of %s%s%s, layer %ld", ty_dtype_text(dtype), adds ? ", z" : "",
             relu ? ", relu" : "", (long)(l - layers));
    return planned_node(g, node, what, capability, tf32);
}

/* As convolutions lie: of 16 bits and TF32 channels-last, of float32 channels-first. */
static void what_follows_is_planned(void **state)
{
    static const struct {
        ty_dtype dtype;
        bool last, tf32;
    } kinds[] = {{TY_BF16, true, false}, {TY_F16, true, false}, {TY_F32, true, true}, {TY_F32, false, false}};
    static const int capabilities[] = {80, 90, 100};
    (void)state;
    for (size_t k = 0; is_there() && k < sizeof kinds / sizeof *kinds; k++)
        for (size_t c = 0; c < sizeof capabilities / sizeof *capabilities; c++)
            for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
                for (int adds = 0; adds < 2; adds++)
                    planned_bias(kinds[k].dtype, kinds[k].last, &layers[l], adds, (l + c) % 2, capabilities[c],
                                 kinds[k].tf32);
}

/* The reason for the layout: channels-first, 16 bits and TF32 are turned into room of their own in every call. */
static void channels_first_is_turned(void **state)
{
    (void)state;
    for (size_t o = 0; is_there() && o < sizeof ops / sizeof *ops; o++) {
        const layer *l = &layers[1];
        int64_t tensor = 2 * l->images * l->in * l->extent * l->extent;
        assert_true(planned(ops[o], TY_BF16, true, l, 90, false).workspace_bytes < SMALL);
        assert_true(planned(ops[o], TY_BF16, false, l, 90, false).workspace_bytes >= tensor);
        assert_true(planned(ops[o], TY_F32, true, l, 90, true).workspace_bytes < SMALL);
        assert_true(planned(ops[o], TY_F32, false, l, 90, false).workspace_bytes <
                    SMALL); /* without TF32 it is the other way */
    }
}

/* Engines of float32 that copy all that they read come first, and fit into what a program has for them. */
static void copies_have_room(void **state)
{
    (void)state;
    if (!is_there())
        return;
    assert_true(planned(TY_OP_CONV_DW, TY_F32, false, strided, 90, false).workspace_bytes > LEAST);
    assert_true(planned(TY_OP_CONV_DW, TY_F32, true, stem, 90, true).workspace_bytes > LEAST);
    assert_true(planned(TY_OP_CONV_DX, TY_F32, true, stem, 90, true).workspace_bytes > LEAST);
    assert_true(planned(TY_OP_CONV_DX, TY_BF16, true, stem, 90, false).workspace_bytes > LEAST);
}

/* Its kernels for float32 want as many zeros behind x as before it, also where the last window ends in x: without, it
 * is left with engine 0, which takes anything and its time. */
static void padding_is_the_same_on_both_sides(void **state)
{
    (void)state;
    for (size_t o = 0; is_there() && o < 2; o++) /* that of the weights has others */
        assert_memory_not_equal(planned(ops[o], TY_F32, false, strided, 90, false).engine, "engine 0", 8);
}

/* Of what it proposes for float32, some would round it for tensor cores: those are left out unless TF32 is allowed. Of
 * the rest there is a choice, which knobs tell apart. */
static void engines_are_left_out(void **state)
{
    (void)state;
    int left_out[2] = {0, 0}, knobs = 0;
    for (size_t o = 0; is_there() && o < sizeof ops / sizeof *ops; o++)
        for (int tf32 = 0; tf32 < 2; tf32++) {
            ty_cudnn_planned p = planned(ops[o], TY_F32, tf32, &layers[1], 90, tf32);
            left_out[tf32] += p.n_proposed - p.n_will_do;
            knobs += strchr(p.engine, '=') != NULL;
            assert_true(p.n_will_do > tf32);
        }
    assert_true(!is_there() || (left_out[false] > 0 && knobs > 0));
}

/* cuDNN has nothing that writes a weight's gradient wider than what it reads: such a node is no call of its. */
static void wider_gradients_are_refused(void **state)
{
    (void)state;
    uint32_t node;
    ty_error err = {0};
    ty_cudnn_conv c;
    ty_graph *g = convolution(TY_OP_CONV_DW, TY_BF16, true, &layers[1], TY_F32, &node);
    assert_int_equal(ty_cudnn_conv_of(g, node, &c, &err), -1);
    assert_int_equal(err.code, TY_E_UNSUPPORTED);
    ty_graph_free(g);
}

/* ---- on any machine ---- */

static const layer huge = {64, 32, 512, 3, 1, 1, 1, 64};

/* Of so many elements that their numbers must not be multiplied. */
static void large_ones_are_taken(void **state)
{
    (void)state;
    uint32_t node;
    ty_error err = {0};
    ty_cudnn_conv c;
    ty_graph *g = convolution(TY_OP_CONV, TY_F32, false, &huge, TY_F32, &node);
    if (ty_cudnn_conv_of(g, node, &c, &err) < 0)
        fail_msg("%s", err.message);
    ty_graph_free(g);
}

/* What a program takes of a GPU's memory for its library calls. */

static void expect_workspace(ty_graph *g, ty_val v, size_t expected)
{
    ty_error err = {0};
    ty_program *p;
    const ty_compile_options opt = {.threads = 1, .backend = TY_BACKEND_CUDA, .plan_only = true};
    ty_graph_add_output(g, "y", v, TY_TAPE_EVAL);
    if (ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_program_report(p)->scratch_bytes, expected);
    ty_program_free(p);
}

static void workspace_is_announced(void **state)
{
    static const layer small = {64, 64, 28, 3, 1, 1, 1, 4}, large = {64, 32, 128, 3, 1, 1, 1, 32};
    const size_t tensors = 4 * (32 * (64 + 32) * 128 * 128 + 32 * 64 * 9);
    (void)state;
    uint32_t node;
    ty_graph *g = ty_graph_new();
    ty_val x = new_input(g, TY_F32, SHAPE(512, 512));
    expect_workspace(g, ty_b_exp(g, x), 0); /* no library is asked */
    g = ty_graph_new();
    x = new_input(g, TY_F32, SHAPE(4096, 4096));
    expect_workspace(g, ty_b_dot(g, x, x, false, false), LEAST);
    g = convolution(TY_OP_CONV, TY_F32, false, &small, TY_F32, &node);
    expect_workspace(g, ty_val_make(node, 0), LEAST);
    g = convolution(TY_OP_CONV, TY_F32, false, &large, TY_F32, &node);
    expect_workspace(g, ty_val_make(node, 0), tensors + tensors / 4);
    g = convolution(TY_OP_CONV_DW, TY_F32, false, &huge, TY_F32, &node);
    expect_workspace(g, ty_val_make(node, 0), MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_last_is_planned),
        cmocka_unit_test(what_follows_is_planned),
        cmocka_unit_test(channels_first_is_turned),
        cmocka_unit_test(copies_have_room),
        cmocka_unit_test(padding_is_the_same_on_both_sides),
        cmocka_unit_test(engines_are_left_out),
        cmocka_unit_test(wider_gradients_are_refused),
        cmocka_unit_test(large_ones_are_taken),
        cmocka_unit_test(workspace_is_announced),
    };
    return cmocka_run_group_tests_name("cudnn_plans", tests, NULL, NULL);
}
