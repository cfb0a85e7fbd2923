/* Fuzz: the table behind trainyard/model.h. The bytes are a program of calls: operator, operands, arguments.
 *
 * A model.c is a program and may do what it likes, but a mistake in it (an axis that is none, a size below zero, a name
 * used twice) must be an error with a place and no crash. What is taken makes a sound graph.
 */
#include "compiler/import/cmodel_net.h"
#include "compiler/ir/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 48, MAX_VARS = 64, CONSTANT_ELEMS = 512 };

static const uint8_t *bytes;
static size_t n_bytes, at;

static uint8_t next(void)
{
    return at < n_bytes ? bytes[at++] : 0;
}

/* Mostly small, at times at the edges. */
static int64_t number(void)
{
    static const int64_t odd[] = {-1, -2, 0, INT64_MAX, INT64_MIN, 1 << 12, (int64_t)1 << 40, 1000};
    uint8_t b = next();
    return b < 240 ? b % 9 : odd[b % 8];
}

static ty_shape shape(void)
{
    ty_shape s = {.n = next() % 6};
    if (s.n == 5)
        s.n = number();
    for (int i = 0; i < 4; i++)
        s.dim[i] = number();
    return s;
}

static ty_init init(void)
{
    uint8_t b = next();
    return (ty_init){(ty_init_kind)(b % 9), b % 5, 1}; /* one more than there are */
}

static double real(void)
{
    static const double values[] = {0, 1, -1, 0.5, 1e-5, 1e30, -0.0, 3};
    return values[next() % 8];
}

typedef union options {
    ty_linear_options linear;
    ty_conv_options conv;
    ty_pool_options pool;
    ty_norm_options norm;
    ty_embedding_options embedding;
    ty_attention_options attention;
} options;

static ty_var pick(const ty_var *var, int n)
{
    uint8_t b = next();
    return b == 255 ? (ty_var){next() * 1000u} : n > 0 ? var[n - 1 - b % n] : (ty_var){0};
}

static options options_for(const char *op, const ty_var *var, int n)
{
    options o = {0};
    if (strstr(op, "conv"))
        o.conv = (ty_conv_options){.stride = number(),
                                   .dilation = number(),
                                   .groups = number(),
                                   .padding = number(),
                                   .output_padding = number(),
                                   .no_bias = next() & 1,
                                   .weight = init()};
    else if (strstr(op, "pool"))
        o.pool = (ty_pool_options){.stride = number(),
                                   .padding = number(),
                                   .dilation = number(),
                                   .ceil = next() & 1,
                                   .count_padding = next() & 1};
    else if (strstr(op, "norm"))
        o.norm = (ty_norm_options){.eps = real(), .momentum = real(), .axes = number(), .no_bias = next() & 1};
    else if (strstr(op, "attention"))
        o.attention = (ty_attention_options){.causal = next() & 1,
                                             .scale = real(),
                                             .dropout = real(),
                                             .mask = next() & 1 ? pick(var, n) : (ty_var){0},
                                             .memory = next() & 1 ? pick(var, n) : (ty_var){0}};
    else
        o.linear = (ty_linear_options){.no_bias = next() & 1, .weight = init(), .bias = init()};
    return o;
}

static const cmodel_row *pick_op(void)
{
    static const cmodel_row *const tables[] = {cmodel_leaves, cmodel_basics, cmodel_layers, cmodel_windows};
    const cmodel_row *row = tables[next() % 4];
    int n = 0;
    while (row[n].name)
        n++;
    return &row[next() % n];
}

static bool fits_constant(const ty_shape *s)
{
    int64_t elems = 1;
    for (int64_t i = 0; i < s->n && i < TY_MODEL_MAX_RANK; i++)
        if (s->dim[i] < 0 || s->dim[i] > CONSTANT_ELEMS || (elems *= s->dim[i]) > CONSTANT_ELEMS)
            return false;
    return true;
}

static ty_var call(ty_net *net, const ty_var *var, int n)
{
    static const char *const names[] = {"x", "a", "b", "w.weight", "", "a.b"};
    static const char *const texts[] = {"f32[batch,4]", "i64[2,3]", "f32",     "i64", "bool",
                                        "f32[2,3,4,4]", "f32[",     "u8[n,n]", "f16", "i32[batch]"};
    static const double zeros[CONSTANT_ELEMS];
    const cmodel_row *row = pick_op();
    ty_var in[4];
    int n_in = row->max_in < 0 ? 1 + next() % 3 : row->min_in + (next() == 77);
    for (int i = 0; i < n_in; i++)
        in[i] = pick(var, n);
    options o = options_for(row->name, var, n);
    ty_args args = {.name = names[next() % 6], .text = texts[next() % 10], .dims = shape(), .more = shape()};
    args.axis = number();
    args.axis -= args.axis >= 0 && args.axis < 9 ? 2 : 0;
    args.from = number();
    args.to = number();
    args.count = number();
    args.value = real();
    args.value2 = real();
    args.flag = next() & 1;
    args.init = init();
    args.data = fits_constant(&args.dims) ? zeros : NULL;
    args.options = &o;
    if (strcmp(row->name, "constant") == 0 && !args.data)
        return (ty_var){0};
    return net->calls->apply(net, row->name, in, n_in, &args);
}

static void build(ty_net *net)
{
    ty_var var[MAX_VARS];
    int n = 0;
    net->file = "model.c";
    var[n++] = net->calls->apply(net, "input", NULL, 0, &(ty_args){.name = "image", .text = "f32[batch,4,6,6]"});
    var[n++] = net->calls->apply(net, "input", NULL, 0, &(ty_args){.name = "rows", .text = "f32[batch,8]"});
    var[n++] = net->calls->apply(net, "input", NULL, 0, &(ty_args){.name = "ids", .text = "i64[batch,3]"});
    for (int i = 0; i < MAX_CALLS && at < n_bytes; i++) {
        net->line = i + 1;
        ty_var v = call(net, var, n);
        if (v.id && n < MAX_VARS)
            var[n++] = v;
    }
    net->calls->apply(net, "output", &var[n - 1], 1, &(ty_args){.name = "y"});
}

static void run(ty_model_mode mode)
{
    ty_arena arena;
    ty_error err = {0};
    ty_arena_init(&arena);
    cmodel_net net = {.g = ty_graph_new(), .arena = &arena, .mode = mode, .free_dim = 2};
    at = 0;
    if (mode == TY_MODEL_TRAIN)
        net.seed = net.step = ty_b_scalar(net.g, TY_I64, 0);
    else
        net.seed = net.step = TY_NONE;
    cmodel_build(&net, build);
    if (net.failed && (net.error.code == TY_E_NONE || net.error.code == TY_E_INTERNAL || !net.error.message[0])) {
        fprintf(stderr, "refused with code %d: %s\n", (int)net.error.code, net.error.message);
        abort();
    }
    if (!net.failed && !ty_graph_failed(net.g, NULL) && ty_graph_verify(net.g, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    ty_graph_free(net.g);
    ty_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes = data;
    n_bytes = size;
    run(TY_MODEL_TRAIN);
    run(TY_MODEL_EVAL);
    return 0;
}
