/* What a cold start costs, by its causes: how often the C compiler is started, how many kernels it gets, and that a
 * deep network asks no more of it than a shallow one; that loops tell their lengths; a warm start asks it nothing; a
 * first step finds its memory present. Times are for bench/compare. */
#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "compiler/compiler.h"
#include "compiler/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { T = 8, THREADS = 2, SHALLOW = 2, DEEP = 24, NARROW = 32, WIDE = 512 };

static const char model_text[] =
    "#include <trainyard/model.h>\n"
    "enum { C = %d, LAYERS = %d, V = 16 };\n"
    "void model(ty_net *net)\n"
    "{\n"
    "    ty_var ids = ty_input(net, \"ids\", \"i64[batch,8]\");\n"
    "    ty_var table = ty_parameter(net, \"wte.weight\", ty_dims(V, C), ty_normal(0, 0.02));\n"
    "    ty_var x = ty_gather(net, table, ids, 0);\n"
    "    for (int layer = 0; layer < LAYERS; layer++) {\n"
    "        ty_var n = ty_layer_norm(net, ty_text(net, \"h.%%d.ln_1\", layer), x);\n"
    "        x = ty_add(net, x, ty_multi_head_attention(net, ty_text(net, \"h.%%d.attn\", layer), n, 2, .causal = "
    "true));\n"
    "        n = ty_layer_norm(net, ty_text(net, \"h.%%d.ln_2\", layer), x);\n"
    "        n = ty_gelu_tanh(net, ty_linear(net, ty_text(net, \"h.%%d.mlp.up\", layer), n, 4 * C));\n"
    "        x = ty_add(net, x, ty_linear(net, ty_text(net, \"h.%%d.mlp.down\", layer), n, C));\n"
    "    }\n"
    "    ty_output(net, \"logits\", ty_matmul(net, x, ty_transpose(net, table, ty_dims(1, 0))));\n"
    "}\n";

typedef struct scratch {
    ty_arena a;
    char dir[64];
    const char *cc, *calls, *cache; /* a compiler that writes a line into `calls` whenever it is started */
    const char *dump;               /* where the generated C goes; NULL: nowhere */
    const char *output;             /* where kernels go for other machines; NULL: they are for this one */
} scratch;

static const char *scratch_file(scratch *s, const char *name, const char *text, unsigned mode)
{
    const char *path = ty_arena_printf(&s->a, "%s/%s", s->dir, name);
    assert_int_equal(ty_file_write(path, text, strlen(text), mode, NULL), 0);
    return path;
}

static int set_up(void **state)
{
    scratch *s = calloc(1, sizeof *s);
    ty_arena_init(&s->a);
    strcpy(s->dir, "/tmp/ty-cold-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    s->calls = scratch_file(s, "calls", "", 0600);
    s->cache = ty_arena_printf(&s->a, "%s/cache", s->dir);
    s->cc = scratch_file(s, "cc", ty_arena_printf(&s->a, "#!/bin/sh\necho >>%s\nexec cc \"$@\"\n", s->calls), 0700);
    *state = s;
    ty_log_set_level(TY_LOG_ERROR);
    return 0;
}

static int tear_down(void **state)
{
    scratch *s = *state;
    ty_file_remove_tree(s->dir, NULL);
    ty_arena_fini(&s->a);
    free(s);
    return 0;
}

static int compilers_started(const scratch *s)
{
    struct stat st;
    assert_int_equal(stat(s->calls, &st), 0);
    return (int)st.st_size;
}

static ty_program *compile_program(scratch *s, int width, int layers)
{
    int64_t dim[2] = {2, T};
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
                          .seed = 1};
    ty_compile_options options = {.backend = TY_BACKEND_CPU,
                                  .threads = THREADS,
                                  .cc = s->cc,
                                  .cache_dir = s->cache,
                                  .work_dir = s->dir,
                                  .dump_dir = s->dump,
                                  .output_dir = s->output};
    const char *path = scratch_file(s, "model.c", ty_arena_printf(&s->a, model_text, width, layers), 0600);
    ty_model *model = NULL;
    ty_program *program = NULL;
    ty_error err = {0};
    if (ty_model_open(path, &model, &err) < 0 || ty_compile_train(model, &spec, &options, &program, &err) < 0)
        fail_msg("%s", err.message);
    ty_model_free(model);
    return program;
}

static ty_compile_report compile(scratch *s, int layers)
{
    ty_program *program = compile_program(s, NARROW, layers);
    ty_compile_report report = *ty_program_report(program);
    ty_program_free(program);
    return report;
}

/* The layers share their kernels, and all kernels are compiled by one compiler a thread. */
static void depth_costs_no_compiler(void **state)
{
    scratch *s = *state;
    ty_compile_report shallow = compile(s, SHALLOW);
    int first = compilers_started(s);
    ty_compile_report deep = compile(s, DEEP);
    int second = compilers_started(s) - first;
    assert_true(first >= 1 && first <= THREADS);
    assert_true(second >= 1 && second <= THREADS);
    assert_true(deep.n_kernels > 8 * shallow.n_kernels);
    assert_in_range(deep.n_distinct_kernels, 1, shallow.n_distinct_kernels + 4);
    assert_in_range(deep.text_bytes, 1, shallow.text_bytes * 6 / 5);
}

static void warm_start_compiles_nothing(void **state)
{
    scratch *s = *state;
    ty_compile_report cold = compile(s, SHALLOW);
    int started = compilers_started(s);
    ty_compile_report warm = compile(s, SHALLOW);
    assert_false(cold.cache_hit);
    assert_true(warm.cache_hit);
    assert_int_equal(compilers_started(s), started);
}

/* How often a unit's text has these words. */
static int words_in(const ty_buf *text, const char *words)
{
    int n = 0;
    for (const char *at = text->data; (at = strstr(at, words)); at += strlen(words))
        n++;
    return n;
}

/* The text says how often a loop goes round, or of what that is a multiple: what vectors leave over needs no loop
 * behind it then, whose compiling took longer than the loop's own. Sums begin with zeros without a loop. */
static void lengths_are_told(void **state)
{
    scratch *s = *state;
    int known = 0, multiples = 0, zeros = 0, columns = 0;
    ty_buf text;
    s->dump = ty_arena_printf(&s->a, "%s/dump", s->dir);
    ty_program_free(compile_program(s, WIDE, SHALLOW));
    for (int unit = 0; unit < THREADS; unit++) {
        ty_buf_init(&text, 1 << 22);
        assert_int_equal(ty_file_read(ty_arena_printf(&s->a, "%s/k%d.c", s->dump, unit), &text, NULL), 0);
        ty_buf_addc(&text, 0);
        known += words_in(&text, "for (long k = 0; k < 256; k++)");
        multiples += words_in(&text, "& -64l;");
        columns += words_in(&text, "const long left = blocks");
        zeros += words_in(&text, "__builtin_memset(r");
        assert_int_equal(words_in(&text, "c++) r0[c] = 0"), 0);
        ty_buf_fini(&text);
    }
    assert_in_range(known, 1, 100);
    assert_in_range(columns, 1, 100);
    assert_int_equal(multiples, columns);
    assert_in_range(zeros, columns, 1000);
}

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* What the first step changes is resident before it: weights, and moments, of which a step reads each page before it
 * writes it and would pay for it twice. */
static void first_step_finds_its_memory(void **state)
{
    scratch *s = *state;
    int64_t ids[2 * T] = {1, 2, 3};
    const void *inputs[2] = {ids, ids};
    ty_error err = {0};
    ty_program *p = compile_program(s, WIDE, SHALLOW);
    ty_load_end(p);
    long before = page_faults();
    assert_int_equal(ty_program_run(p, TY_RUN_LAST, inputs, &err), 0);
    long faults = page_faults() - before, pages = (long)(ty_program_report(p)->state_bytes / 4096);
    assert_true(pages > 15000);
    assert_in_range(faults, 0, pages / 4);
    ty_program_free(p);
}

static size_t resident_pages(const void *memory, size_t bytes)
{
    static unsigned char there[1 << 20];
    uintptr_t first = ((uintptr_t)memory + 4095) / 4096 * 4096, end = ((uintptr_t)memory + bytes) / 4096 * 4096;
    size_t n = 0, pages = (end - first) / 4096;
    assert_true(pages > 0 && pages <= sizeof there);
    assert_int_equal(mincore((void *)first, end - first, there), 0);
    for (size_t i = 0; i < pages; i++)
        n += there[i] & 1;
    return n;
}

/* Kernels for other machines: nothing runs here, and no memory is made present but that of the weights. */
static void nothing_runs_where_kernels_are_for_others(void **state)
{
    scratch *s = *state;
    s->output = ty_arena_printf(&s->a, "%s/output", s->dir);
    ty_program *p = compile_program(s, WIDE, SHALLOW);
    ty_load_end(p);
    size_t weights = 0, moments = 0;
    for (int i = 0; i < ty_program_n_states(p); i++) {
        ty_tensor t = ty_program_state(p, i, NULL);
        size_t bytes = ty_type_bytes(&t.type);
        if (bytes >= 1 << 20)
            *(ty_graph_state(p->graph, i)->init ? &weights : &moments) += resident_pages(t.data, bytes);
    }
    assert_true(weights > 5000);
    assert_int_equal(moments, 0);
    assert_true(ty_program_report(p)->slab_bytes > 1 << 20);
    assert_int_equal(resident_pages(ty_cpu_slab(p->cpu), ty_program_report(p)->slab_bytes), 0);
    ty_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(depth_costs_no_compiler, set_up, tear_down),
        cmocka_unit_test_setup_teardown(warm_start_compiles_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lengths_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(first_step_finds_its_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_runs_where_kernels_are_for_others, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
