/* scale.c - compile and step time of a GPT of any depth, width and batch: scale LAYERS WIDTH BATCH [STEPS].
 *
 * The network is that of examples/gpt-c (64 characters, heads of 32), written as a model.c and compiled afresh. Prints
 * one JSON line: wall time by phase, CPU seconds of this process and of the C compilers it started, and the median
 * step. `bench/scaling` runs it over series. Time on a machine with other work is compared by the CPU seconds.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "compiler/compiler.h"
#include "entrypoint/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { T = 64, V = 128, MAX_STEPS = 1000 };

static const char model_text[] =
    "#include <trainyard/model.h>\n"
    "enum { T = 64, C = %d, HEADS = %d, LAYERS = %d, V = 128 };\n"
    "static ty_var block(ty_net *net, ty_var x, int layer)\n"
    "{\n"
    "    ty_var n = ty_layer_norm(net, ty_text(net, \"h.%%d.ln_1\", layer), x);\n"
    "    x = ty_add(net, x, ty_multi_head_attention(net, ty_text(net, \"h.%%d.attn\", layer), n, HEADS, .causal = "
    "true));\n"
    "    n = ty_layer_norm(net, ty_text(net, \"h.%%d.ln_2\", layer), x);\n"
    "    n = ty_gelu_tanh(net, ty_linear(net, ty_text(net, \"h.%%d.mlp.up\", layer), n, 4 * C));\n"
    "    return ty_add(net, x, ty_linear(net, ty_text(net, \"h.%%d.mlp.down\", layer), n, C));\n"
    "}\n"
    "void model(ty_net *net)\n"
    "{\n"
    "    ty_var ids = ty_input(net, \"ids\", \"i64[batch,64]\");\n"
    "    ty_var table = ty_parameter(net, \"wte.weight\", ty_dims(V, C), ty_normal(0, 0.02));\n"
    "    ty_var places = ty_parameter(net, \"wpe.weight\", ty_dims(T, C), ty_normal(0, 0.02));\n"
    "    ty_var x = ty_add(net, ty_gather(net, table, ids, 0), places);\n"
    "    for (int layer = 0; layer < LAYERS; layer++)\n"
    "        x = block(net, x, layer);\n"
    "    x = ty_layer_norm(net, \"ln_f\", x);\n"
    "    ty_output(net, \"logits\", ty_matmul(net, x, ty_transpose(net, table, ty_dims(1, 0))));\n"
    "}\n";

typedef struct scale {
    int layers, width, batch, steps;
    char folder[64], path[96];
    ty_model *model;
    ty_program *program;
    int64_t *ids;
    double own_s, compilers_s; /* CPU of compiling */
    double step_ms[MAX_STEPS];
} scale;

static double cpu_s(int who)
{
    struct rusage r;
    getrusage(who, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static int scale_open(scale *s, ty_error *err)
{
    ty_buf text;
    strcpy(s->folder, "/tmp/trainyard-scale-XXXXXX");
    if (!mkdtemp(s->folder))
        return ty_error_set(err, TY_E_CREATE, "making %s", s->folder);
    snprintf(s->path, sizeof s->path, "%s/model.c", s->folder);
    ty_buf_init(&text, 1 << 16);
    ty_buf_addf(&text, model_text, s->width, s->width / 32, s->layers);
    int rc = ty_file_write(s->path, text.data, text.len, 0600, err);
    ty_buf_fini(&text);
    return rc < 0 ? -1 : ty_model_open(s->path, &s->model, err);
}

static int scale_compile(scale *s, ty_error *err)
{
    int64_t dim[2] = {s->batch, T};
    ty_binding inputs[2] = {{"ids", ty_type_make(TY_I64, 2, dim)}, {"next", ty_type_make(TY_I64, 2, dim)}};
    ty_loss_term loss = {.kind = TY_LOSS_SOFTMAX_CROSS_ENTROPY,
                         .output = "logits",
                         .target = "next",
                         .weight = 1,
                         .ignore_index = -100,
                         .class_axis = -1};
    ty_train_spec spec = {.inputs = inputs,
                          .n_inputs = 2,
                          .loss = &loss,
                          .n_loss = 1,
                          .optimizer = {.kind = TY_OPT_ADAMW, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8},
                          .schedule = {.kind = TY_SCHED_CONSTANT},
                          .accumulate = 1,
                          .seed = 1,
                          .batch_norm_statistics = true,
                          .no_eval = true};
    double own = cpu_s(RUSAGE_SELF), compilers = cpu_s(RUSAGE_CHILDREN);
    int rc = ty_compile_train(s->model, &spec, &(ty_compile_options){.backend = TY_BACKEND_CPU}, &s->program, err);
    s->own_s = cpu_s(RUSAGE_SELF) - own;
    s->compilers_s = cpu_s(RUSAGE_CHILDREN) - compilers;
    return rc;
}

static int scale_train(scale *s, ty_error *err)
{
    s->ids = calloc((size_t)s->batch * T + 1, sizeof *s->ids);
    for (int i = 0; s->ids && i <= s->batch * T; i++)
        s->ids[i] = (i * 7 + i / 5) % V;
    for (int i = 0; i < s->steps; i++) {
        const void *inputs[2] = {s->ids, s->ids + 1};
        int64_t start = ty_clock_ns();
        if (!s->ids || ty_program_run(s->program, TY_RUN_LAST, inputs, err) < 0)
            return -1;
        s->step_ms[i] = 1e-6 * (double)(ty_clock_ns() - start);
    }
    return 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_rounded(ty_json_writer *w, const char *key, double x)
{
    char text[64];
    snprintf(text, sizeof text, "%.3f", x);
    ty_json_put_raw(w, key, text);
}

static void scale_print(scale *s)
{
    ty_buf line;
    ty_json_writer w;
    const ty_compile_report *r = ty_program_report(s->program);
    qsort(s->step_ms, (size_t)s->steps, sizeof *s->step_ms, compare_doubles);
    ty_buf_init(&line, 1 << 16);
    ty_json_writer_init(&w, &line, TY_JSON_PYTHON);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "layers", s->layers);
    ty_json_put_int(&w, "width", s->width);
    ty_json_put_int(&w, "batch", s->batch);
    put_rounded(&w, "compile_ms", r->total_ms);
    put_rounded(&w, "graph_cpu_ms", 1e3 * s->own_s);
    put_rounded(&w, "cc_cpu_ms", 1e3 * s->compilers_s);
    put_rounded(&w, "step_ms", s->steps ? s->step_ms[s->steps / 2] : 0);
    ty_json_put_int(&w, "graph_nodes", r->n_graph_nodes);
    ty_json_put_int(&w, "kernels", r->n_kernels);
    ty_json_put_int(&w, "distinct_kernels", r->n_distinct_kernels);
    ty_json_put_int(&w, "slab_bytes", (int64_t)r->slab_bytes);
    ty_json_open_map(&w, "phases_ms");
    for (int i = 0; i < r->phases.n; i++)
        put_rounded(&w, r->phases.name[i], r->phases.ms[i]);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(line.data);
    ty_buf_fini(&line);
}

static int scale_run(scale *s, ty_error *err)
{
    if (scale_open(s, err) < 0 || scale_compile(s, err) < 0 || scale_train(s, err) < 0)
        return -1;
    scale_print(s);
    return 0;
}

int main(int argc, char **argv)
{
    ty_threads_settle(argv);
    static scale s;
    ty_error err = {0};
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: scale LAYERS WIDTH BATCH [STEPS]   (WIDTH a multiple of 32)\n");
        return 64;
    }
    s.layers = atoi(argv[1]), s.width = atoi(argv[2]), s.batch = atoi(argv[3]), s.steps = argc == 5 ? atoi(argv[4]) : 5;
    if (s.layers < 1 || s.width < 32 || s.width % 32 || s.batch < 1 || s.steps < 0 || s.steps > MAX_STEPS)
        return 64;
    int rc = scale_run(&s, &err);
    if (rc < 0) {
        char text[8192];
        ty_error_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    ty_program_free(s.program);
    ty_model_free(s.model);
    free(s.ids);
    if (s.folder[0])
        ty_file_remove_tree(s.folder, NULL);
    return rc < 0 ? ty_error_exit_status(err.code) : 0;
}
