/* cuda_compile.c - every kernel of random graphs, as CUDA C, compiled by NVRTC for four generations of GPUs; and what
 * NVRTC refuses. Needs no GPU. */
#include "base/file.h"
#include "base/log.h"
#include "compiler/program.h"
#include "compiler/target/cuda/build.h"
#include "compiler/target/cuda/cubin.h"
#include "compiler/target/cuda/libraries.h"
#include "compiler/target/cuda/tape.h"
#include "tests/tools/graph_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N_GRAPHS = 6 };
static const int capabilities[] = {75, 80, 90, 100};

static bool have_nvrtc(void)
{
    const ty_nvrtc *lib;
    ty_error err = {0};
    if (ty_nvrtc_get(&lib, &err) == 0)
        return true;
    print_message("skip: %s\n", err.message);
    return false;
}

/* How many launches, kernels written by hand too; each has a line of facts. -1 with err filled. */
static int add_plan(const ty_plan *plan, ty_ktexts *texts, ty_error *err)
{
    ty_cuda_tape tape;
    ty_buf facts;
    int n = 0, lines = 0;
    if (ty_cuda_tape_of(plan, false, texts, texts->arena, &tape, err) < 0)
        return -1;
    ty_buf_init(&facts, 1 << 20);
    ty_cuda_tape_print_facts(&tape, &facts);
    for (int i = 0; i < tape.n_calls; i++)
        n += tape.call[i].kind == TY_CUDA_LAUNCH;
    for (int i = 0; i < tape.n_kernels; i++) {
        char name[TY_KTEXTS_NAME_BYTES];
        snprintf(name, sizeof name, TY_KTEXTS_NAME, (unsigned long)tape.kernel[i]);
        assert_non_null(strstr(facts.data, name));
    }
    for (const char *line = facts.data; line && *line; line = strchr(line, '\n') + 1)
        lines++;
    assert_int_equal(lines, n);
    ty_buf_fini(&facts);
    return n;
}

/* All kernels of a random graph, behind those of the graphs before. Returns how many launches. */
static int add_graph(uint64_t seed, ty_ktexts *texts)
{
    maker m;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options plan = {.backend = TY_BACKEND_CPU, .threads = 1, .plan_only = true};
    make_graph(&m, seed);
    for (int i = N_INPUTS; i < m.n; i++)
        ty_graph_add_output(m.g, ty_arena_printf(ty_graph_arena(m.g), "v%d", i), m.pool[i].v, TY_TAPE_LAST);
    int n =
        ty_program_of_graph(m.g, TY_TAPE_LAST, &plan, &p, &err) < 0 ? -1 : add_plan(p->plan[TY_RUN_LAST], texts, &err);
    if (n < 0)
        fail_msg("seed %d: %s", (int)seed, err.message);
    ty_program_free(p);
    return n;
}

static const ty_ktexts_one *find_text(const ty_ktexts *texts, const char *name)
{
    char of[TY_KTEXTS_NAME_BYTES];
    const ty_ktexts_one *found = NULL;
    for (int i = 0; i < texts->n; i++) {
        snprintf(of, sizeof of, TY_KTEXTS_NAME, (unsigned long)texts->one[i].hash);
        if (strcmp(of, name) == 0) {
            assert_null(found);
            found = &texts->one[i];
        }
    }
    return found;
}

/* Of a thread, by the word that the kernel's text begins with: 65,536 for 256 threads and 4, 3, 2 or 1 blocks. */
static int most_registers(const ty_ktexts_one *text)
{
    static const struct {
        const char *word;
        int most;
    } words[] = {{"TY_LONE_KERNEL", 255}, {"TY_WIDE_KERNEL", 128}, {"TY_JOINED_KERNEL", 80}, {"TY_KERNEL", 64}};
    int i = 0;
    while (!strstr(text->text, words[i].word))
        i++;
    return words[i].most;
}

/* Each text is in one of the objects, once, and fits into registers. */
static void check_code(const ty_ktexts *texts, const ty_cuda_code *code)
{
    int n = 0;
    for (int o = 0; o < code->n; o++) {
        const ty_cuda_object *object = &code->object[o];
        assert_true(object->bytes > 64);
        assert_memory_equal(object->cubin, "\177ELF", 4);
        for (int i = 0; i < object->n_kernels; i++) {
            const ty_ktexts_one *text = find_text(texts, object->kernel[i].name);
            assert_int_equal(object->kernel[i].spill_bytes, 0);
            if (!text)
                continue;
            assert_in_range(object->kernel[i].registers, 4, most_registers(text));
            n++;
        }
    }
    assert_int_equal(n, texts->n);
}

static void test_kernels(void **state)
{
    (void)state;
    if (!have_nvrtc())
        skip();
    ty_arena arena;
    ty_arena_init(&arena);
    ty_ktexts texts = {.arena = &arena};
    int n = 0;
    for (uint64_t seed = 1; seed <= N_GRAPHS; seed++)
        n += add_graph(seed, &texts);
    assert_in_range(texts.n, 10, n - 1); /* some are the same */
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
        ty_cuda_code code;
        ty_error err = {0};
        ty_cuda_build_options opt = {.capability = capabilities[i], .threads = 2, .units = 1 + (int)i};
        if (ty_cuda_build(&texts, &opt, &arena, &code, &err) < 0)
            fail_msg("sm_%d: %s", capabilities[i], err.message);
        assert_int_equal(code.n, opt.units);
        check_code(&texts, &code);
    }
    ty_arena_fini(&arena);
}

/* Memory of a block is told. */
static void test_facts(void **state)
{
    (void)state;
    if (!have_nvrtc())
        skip();
    static const char text[] = "extern \"C\" __global__ void k(double *x) {\n"
                               " __shared__ double s[8];\n"
                               " s[threadIdx.x % 8] = x[threadIdx.x]; __syncthreads();\n"
                               " x[threadIdx.x] = s[(threadIdx.x + 1) % 8] / x[threadIdx.x + 1];\n}\n";
    ty_arena arena;
    ty_cuda_object object;
    ty_error err = {0};
    ty_arena_init(&arena);
    assert_int_equal(ty_cuda_compile(text, 90, &arena, &object, &err), 0);
    assert_int_equal(object.n_kernels, 1);
    assert_int_equal(object.kernel[0].shared_bytes, 64);
    ty_arena_fini(&arena);
}

/* Names to their ends; what is cut or damaged anywhere is read within its bounds. */
static void test_names(void **state)
{
    (void)state;
    if (!have_nvrtc())
        skip();
    static const char text[] = "extern \"C\" __global__ void first(float *x) { x[0] = 1; }\n"
                               "extern \"C\" __global__ void second(float *x) { x[0] = 2; }\n";
    ty_arena arena;
    ty_cuda_object o;
    ty_error err = {0};
    ty_arena_init(&arena);
    assert_int_equal(ty_cuda_compile(text, 90, &arena, &o, &err), 0);
    assert_false(ty_cubin_lacks(o.cubin, o.bytes, "first"));
    assert_false(ty_cubin_lacks(o.cubin, o.bytes, "second"));
    assert_true(ty_cubin_lacks(o.cubin, o.bytes, "secon"));
    assert_true(ty_cubin_lacks(o.cubin, o.bytes, "third"));
    for (size_t cut = 0; cut < o.bytes; cut++) {
        unsigned char *part = malloc(cut ? cut : 1); /* of that size, for the sanitizers */
        memcpy(part, o.cubin, cut);
        assert_false(ty_cubin_lacks(part, cut, "second"));
        free(part);
    }
    unsigned char *damaged = malloc(o.bytes);
    memcpy(damaged, o.cubin, o.bytes);
    for (size_t at = 0; at < o.bytes; at++) {
        damaged[at] ^= 0xff;
        ty_cubin_lacks(damaged, o.bytes, "third");
        damaged[at] ^= 0xff;
    }
    free(damaged);
    assert_false(ty_cubin_lacks("text", 5, "third"));
    ty_arena_fini(&arena);
}

/* One text, with `word` in it; hit: whether the cache must have it. */
static void expect_cached(const char *dir, int capability, const char *word, bool hit)
{
    ty_arena arena;
    ty_cuda_code code;
    ty_error err = {0};
    ty_buf note;
    ty_arena_init(&arena);
    ty_buf_init(&note, 1 << 16);
    ty_ktexts texts = {.arena = &arena};
    const char *text = ty_arena_printf(&arena, "TY_KERNEL(256) TY_NAME(float *x) { x[0] = %s; }\n", word);
    ty_ktexts_add(&texts, text, strlen(text));
    ty_cuda_build_options opt = {.capability = capability, .threads = 1, .cache_dir = dir, .note = &note};
    if (ty_cuda_build(&texts, &opt, &arena, &code, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(code.n, 1);
    assert_int_equal(code.cache_hit, hit);
    assert_memory_equal(code.object[0].cubin, "\177ELF", 4);
    assert_int_equal(note.len == 0, hit);
    ty_buf_fini(&note);
    ty_arena_fini(&arena);
}

/* Another architecture or text is another entry; one that was changed is made anew. */
static void test_cached(void **state)
{
    (void)state;
    if (!have_nvrtc())
        skip();
    char dir[] = "/tmp/ty-cubins-XXXXXX";
    assert_non_null(mkdtemp(dir));
    expect_cached(dir, 90, "1", false);
    expect_cached(dir, 90, "1", true);
    expect_cached(dir, 80, "1", false);
    expect_cached(dir, 90, "2", false);
    expect_cached(dir, 90, "1", true);
    ty_arena arena;
    ty_file_entry *entry;
    size_t n = 0;
    ty_arena_init(&arena);
    assert_int_equal(ty_file_list(dir, &arena, &entry, &n, NULL), 0);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        const char *cubin = ty_arena_printf(&arena, "%s/%s/k0.cubin", dir, entry[i].name);
        assert_true(ty_file_exists(cubin));
        assert_int_equal(ty_file_write(cubin, "\177ELF", 4, 0644, NULL), 0);
    }
    ty_log_set_level(TY_LOG_ERROR);
    expect_cached(dir, 90, "1", false);
    expect_cached(dir, 90, "1", true);
    ty_file_remove_tree(dir, NULL);
    ty_arena_fini(&arena);
}

/* The graph's one kernel, as a text of the arena. */
static const char *only_text(ty_graph *g, ty_arena *arena)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options plan = {.backend = TY_BACKEND_CPU, .threads = 1, .plan_only = true};
    ty_ktexts texts = {.arena = arena};
    if (ty_program_of_graph(g, TY_TAPE_LAST, &plan, &p, &err) < 0 || add_plan(p->plan[TY_RUN_LAST], &texts, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(texts.n, 1);
    ty_program_free(p);
    return texts.one[0].text;
}

/* Indices are int where none can leave it: not where there are too many elements, nor where memory says which row. */
static void test_width(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        bool gathers;
        const char *word, *other;
    } rows[] = {
        {1000, false, "for (int p0", "long"},
        {(int64_t)1 << 29, false, "for (int p0", "long"},
        {(int64_t)1 << 31, false, "for (long p0", "int p0"},
        {1000, true, "for (long p0", "int p0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_arena arena;
        ty_arena_init(&arena);
        ty_graph *g = ty_graph_new();
        ty_type floats = ty_type_make(TY_F32, 1, &rows[i].n), numbers = ty_type_make(TY_I64, 1, &rows[i].n);
        ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", floats));
        if (rows[i].gathers)
            x = ty_b_take(g, x, ty_b_input(g, ty_graph_add_input(g, "i", numbers)), 0);
        ty_graph_add_output(g, "y", ty_b_unary(g, TY_OP_ABS, x), TY_TAPE_LAST);
        const char *text = only_text(g, &arena);
        assert_non_null(strstr(text, rows[i].word));
        assert_null(strstr(text, rows[i].other));
        ty_arena_fini(&arena);
    }
}

/* Where three operands lie along the last axis a thread goes down rows, with wide accesses; not for two of them. */
static void test_down(void **state)
{
    (void)state;
    const int64_t rows[] = {1 << 16, 64}, channels[] = {64};
    for (int n = 2; n <= 3; n++) {
        ty_arena arena;
        ty_arena_init(&arena);
        ty_graph *g = ty_graph_new();
        ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 2, rows)));
        for (int i = 0; i < n; i++)
            x = ty_b_mul(g, x,
                         ty_b_input(g, ty_graph_add_input(g, (const char *[]){"a", "b", "c"}[i],
                                                          ty_type_make(TY_F32, 1, channels))));
        ty_graph_add_output(g, "y", x, TY_TAPE_LAST);
        const char *text = only_text(g, &arena);
        assert_int_equal(strstr(text, "for (int q0") != NULL, n == 3);
        assert_non_null(strstr(text, "TY_PUT16"));
        ty_arena_fini(&arena);
    }
}

static void test_refused(void **state)
{
    (void)state;
    if (!have_nvrtc())
        skip();
    static const struct {
        const char *text, *word;
        int capability;
    } rows[] = {
        {"extern \"C\" __global__ void k(float *x) { x[0] = nothing; }", "identifier \"nothing\" is undefined", 90},
        {"extern \"C\" __global__ void k() {}", "sm_42", 42},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_arena arena;
        ty_cuda_object object;
        ty_error err = {0};
        ty_arena_init(&arena);
        assert_int_equal(ty_cuda_compile(rows[i].text, rows[i].capability, &arena, &object, &err), -1);
        assert_int_equal(err.code, TY_E_COMPILER);
        assert_non_null(strstr(err.message, rows[i].word));
        ty_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_facts),
                                       cmocka_unit_test(test_names),   cmocka_unit_test(test_cached),
                                       cmocka_unit_test(test_width),   cmocka_unit_test(test_down),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
