/* cuda_compile.c - every kernel of random graphs, as CUDA C, compiled by NVRTC for four generations of GPUs; and what
 * NVRTC refuses. Needs no GPU. */
#include "compiler/kernel/text.h"
#include "compiler/program.h"
#include "compiler/target/cpu/render.h"
#include "compiler/target/cuda/compile.h"
#include "compiler/target/cuda/libraries.h"
#include "compiler/target/cuda/render.h"
#include "tests/tools/graph_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Random kernels of many results spill a little: the assembler stops at 64 registers for more threads at a time. */
enum { N_GRAPHS = 4, MOST_SPILLED = 64 };
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

/* Kernel k under the name k<number>. */
static void add_kernel(const ty_kernel *k, int number, ty_buf *out)
{
    uint32_t alias[64];
    int64_t base[64];
    assert_true(k->n_buffers <= 64);
    for (int i = 0; i < k->n_buffers; i++)
        alias[i] = (uint32_t)i;
    ty_ktext_bases(k, alias, base);
    ty_buf_addf(out, "TY_KERNEL(%d) k%d", ty_cuda_launch_of(k).threads, number);
    ty_cuda_render_kernel(k, alias, base, out);
}

/* All kernels of a random graph, behind those of the graphs before. */
static int add_graph(uint64_t seed, int n, ty_buf *out)
{
    maker m;
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options plan = {.backend = TY_BACKEND_CPU, .threads = 1, .plan_only = true};
    make_graph(&m, seed);
    for (int i = N_INPUTS; i < m.n; i++)
        ty_graph_add_output(m.g, ty_arena_printf(ty_graph_arena(m.g), "v%d", i), m.pool[i].v, TY_TAPE_LAST);
    if (ty_program_of_graph(m.g, TY_TAPE_LAST, &plan, &p, &err) < 0)
        fail_msg("seed %d: %s", (int)seed, err.message);
    const ty_fusion *f = p->fusion[TY_RUN_LAST];
    for (uint32_t i = 0; i < f->n_units; i++)
        if (f->unit[i].kind == TY_UNIT_KERNEL)
            add_kernel(f->unit[i].kernel, n++, out);
    ty_program_free(p);
    return n;
}

static void check_object(const ty_cuda_object *o, int n)
{
    assert_int_equal(o->n_kernels, n);
    assert_true(o->bytes > 64);
    assert_memory_equal(o->cubin, "\177ELF", 4);
    for (int i = 0; i < n; i++) {
        assert_int_equal(o->kernel[i].name[0], 'k');
        assert_in_range(o->kernel[i].registers, 4, 255);
        assert_in_range(o->kernel[i].spill_bytes, 0, MOST_SPILLED);
    }
}

static void test_kernels(void **state)
{
    (void)state;
    if (!have_nvrtc())
        skip();
    ty_buf text;
    int n = 0;
    ty_buf_init(&text, 1 << 26);
    ty_buf_adds(&text, ty_cuda_head);
    ty_buf_adds(&text, ty_render_prelude);
    for (uint64_t seed = 1; seed <= N_GRAPHS; seed++)
        n = add_graph(seed, n, &text);
    assert_true(n > 10);
    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
        ty_arena arena;
        ty_cuda_object object;
        ty_error err = {0};
        ty_arena_init(&arena);
        if (ty_cuda_compile(text.data, capabilities[i], &arena, &object, &err) < 0)
            fail_msg("sm_%d: %s", capabilities[i], err.message);
        check_object(&object, n);
        ty_arena_fini(&arena);
    }
    ty_buf_fini(&text);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
