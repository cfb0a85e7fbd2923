/* cuda_tiles.c - kernels for a GPU whose threads meet in shared memory, run by fibers on the host: turned operands in
 * tiles, rows side by side, rows that registers do not hold. Each is laid out as it should be, gives the interpreter's
 * numbers in three orders of threads, and no barrier of it can be left out without that being found. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"
#include "tests/unit/output_scratch.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAME, DIFFERENT, BROKEN }; /* how a child process ends */

typedef struct tiles_case {
    const char *what, *form, *word; /* of the kernel, and a piece of its text */
    ty_val (*make)(ty_graph *g, ty_val x);
    int rank;
    int64_t dim[3];
    ty_dtype dtype;
    int barriers; /* of the kernel: each must be missed */
} tiles_case;

static ty_val make_turned(ty_graph *g, ty_val x)
{
    const int64_t perm[] = {0, 2, 1};
    ty_val y = ty_b_cast(g, ty_b_transpose(g, x, perm), TY_F32);
    return ty_b_add_s(g, ty_b_mul(g, y, y), 1);
}

static ty_val make_turned_and_straight(ty_graph *g, ty_val x)
{
    const int64_t perm[] = {0, 2, 1};
    return ty_b_add(g, ty_b_transpose(g, x, perm), ty_b_mul(g, x, x));
}

static ty_val make_share(ty_graph *g, ty_val x)
{
    ty_val sum = ty_b_sum(g, ty_b_mul(g, x, x), 2, true);
    return ty_b_div(g, x, ty_b_add_s(g, sum, 1));
}

static ty_val make_turned_share(ty_graph *g, ty_val x)
{
    const int64_t perm[] = {0, 2, 1};
    ty_val y = ty_b_transpose(g, x, perm), sum = ty_b_sum(g, ty_b_mul(g, y, y), 4, true);
    return ty_b_div(g, y, ty_b_add_s(g, sum, 1));
}

/* Of pixels whose channels come first, as in the loss of an image's classes. */
static ty_val make_turned_softmax(ty_graph *g, ty_val x)
{
    const int64_t perm[] = {0, 2, 1};
    return ty_b_sum(g, ty_b_softmax(g, ty_b_transpose(g, x, perm), 2, false), 4, false);
}

static ty_val make_columns(ty_graph *g, ty_val x)
{
    return ty_b_sum(g, ty_b_mul(g, x, x), 1, false);
}

/* As a factorization machine adds up its fields. */
static ty_val make_short_columns(ty_graph *g, ty_val x)
{
    return ty_b_sub(g, ty_b_square(g, ty_b_sum(g, x, 2, false)), ty_b_sum(g, ty_b_mul(g, x, x), 2, false));
}

/* Sums of columns beside those of rows: of what is read, and of what the rows' sums lead to. */
static ty_val make_bands(ty_graph *g, ty_val x)
{
    ty_val y = ty_b_sum(g, make_share(g, x), 1, false);
    return ty_b_add(g, ty_b_mul(g, y, ty_b_sum(g, x, 1, false)), ty_b_sum(g, ty_b_mul(g, x, x), 1, false));
}

static ty_val make_bands_by_warp(ty_graph *g, ty_val x)
{
    return ty_b_sum(g, make_share(g, x), 1, false);
}

/* What rows come to is stored too. */
static ty_val make_bands_and_rows(ty_graph *g, ty_val x)
{
    ty_val y = ty_b_exp(g, make_share(g, x));
    return ty_b_add(g, y, ty_b_mul(g, ty_b_sum(g, y, 1, false), ty_b_sum(g, x, 1, false)));
}

static const tiles_case cases[] = {
    {"turned", "tiles", "float q", make_turned, 3, {3, 70, 90}, TY_F32, 2},
    {"turned and straight", "tiles", "float q", make_turned_and_straight, 3, {2, 96, 96}, TY_F32, 2},
    {"turned halves", "tiles", "unsigned short q", make_turned, 3, {2, 130, 200}, TY_F16, 0},
    {"turned bytes", "tiles", "unsigned char q", make_turned, 3, {1, 150, 130}, TY_U8, 0},
    {"rows side by side", "across", "TY_THREAD / ", make_turned_share, 3, {4, 37, 40}, TY_F32, 2},
    {"a softmax over rows side by side", "across", "TY_THREAD / ", make_turned_softmax, 3, {3, 11, 24}, TY_F32, 0},
    {"a row in shared memory", "block", "TY_SHARED float q", make_share, 2, {5, 16000}, TY_F32, 2},
    {"an odd row in shared memory", "block", "TY_SHARED float q", make_share, 2, {5, 15001}, TY_F32, 0},
    {"a row in several passes", "block", "e0", make_share, 2, {5, 16640}, TY_F32, 0},
    {"bands", "bands", "q = TY_THREAD / 64", make_bands, 2, {8192, 640}, TY_F32, 9},
    {"bands, a warp a row", "bands", "q = TY_THREAD / 32", make_bands_by_warp, 2, {8192, 640}, TY_F32, 4},
    {"bands and their rows", "bands", "TY_PUT16(y", make_bands_and_rows, 2, {8192, 640}, TY_F32, 0},
    {"columns", "column", "TY_SHARED", make_columns, 2, {70, 400}, TY_F32, 2},
    {"short columns", "column", "TY_THREAD / 64;", make_short_columns, 3, {2048, 21, 30}, TY_F32, 2},
};

static ty_graph *make(const tiles_case *c)
{
    ty_graph *g = ty_graph_new();
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(c->dtype, c->rank, c->dim)));
    ty_graph_add_output(g, "y", c->make(g, x), TY_TAPE_EVAL);
    return g;
}

static ty_program *run(const tiles_case *c, const ty_compile_options *opt, const void *x)
{
    ty_error err = {0};
    ty_program *p = NULL;
    const void *inputs[] = {x};
    if (ty_program_of_graph(make(c), TY_TAPE_EVAL, opt, &p, &err) < 0)
        fail_msg("%s: compiling: %s", c->what, err.message);
    if (ty_program_run(p, TY_RUN_EVAL, inputs, &err) < 0)
        fail_msg("%s: running: %s", c->what, err.message);
    return p;
}

static void *numbers(const tiles_case *c)
{
    ty_type type = ty_type_make(c->dtype, c->rank, c->dim);
    int64_t n = ty_type_elems(&type);
    void *x = malloc(ty_type_bytes(&type));
    assert_non_null(x);
    for (int64_t e = 0; e < n; e++) {
        uint32_t bits = ty_rng_u32(7, 0, 0, (uint64_t)e);
        if (c->dtype == TY_F32)
            ((float *)x)[e] = (float)(bits * 0x1p-32);
        else if (c->dtype == TY_F16)
            ((uint16_t *)x)[e] = ty_f32_to_f16((float)(bits * 0x1p-32));
        else
            ((uint8_t *)x)[e] = (uint8_t)bits;
    }
    return x;
}

/* ---- a child process, since a barrier that not all threads reach ends it ---- */

static bool same(const ty_tensor *a, const float *b)
{
    int64_t n = ty_type_elems(&a->type);
    for (int64_t e = 0; e < n; e++)
        if (!(fabsf(((const float *)a->data)[e] - b[e]) <= 1e-5f * fabsf(b[e])))
            return false;
    return true;
}

/* Barrier number `without` is left out; -1: none is. */
static int on_grid(const tiles_case *c, const ty_compile_options *opt, int order, int without, const void *x,
                   const float *expected)
{
    char text[2][16];
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        snprintf(text[0], sizeof text[0], "%d", order);
        snprintf(text[1], sizeof text[1], "%d", without);
        setenv("TY_GRID_ORDER", text[0], 1);
        setenv("TY_GRID_WITHOUT", text[1], 1);
        if (without >= 0)
            fclose(stderr);
        ty_program *p = run(c, opt, x);
        _exit(same(ty_program_output(p, TY_RUN_EVAL, "y"), expected) ? SAME : DIFFERENT);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
}

static void check_orders(const tiles_case *c, const ty_compile_options *opt, const void *x, const float *expected)
{
    for (int order = 0; order < 3; order++)
        if (on_grid(c, opt, order, -1, x, expected) != SAME)
            fail_msg("%s: other numbers than the interpreter's, threads in order %d", c->what, order);
}

static void check_barriers(const tiles_case *c, const ty_compile_options *opt, const void *x, const float *expected)
{
    for (int without = 0; without < c->barriers; without++) {
        bool found = false;
        for (int order = 0; order < 3 && !found; order++)
            found = on_grid(c, opt, order, without, x, expected) != SAME;
        if (!found)
            fail_msg("%s: barrier %d is left out, and no order of threads shows it", c->what, without);
    }
    if (c->barriers && on_grid(c, opt, 0, c->barriers, x, expected) != SAME)
        fail_msg("%s: it has more barriers than %d", c->what, c->barriers);
}

/* ---- its layout ---- */

static bool folder_has(const char *folder, const char *suffix, const char *text)
{
    ty_arena arena;
    ty_file_entry *file;
    ty_error err = {0};
    size_t n = 0;
    bool found = false;
    ty_arena_init(&arena);
    assert_ok(ty_file_list(folder, &arena, &file, &n, &err));
    for (size_t i = 0; i < n; i++) {
        if (!strstr(file[i].name, suffix))
            continue;
        char *all = get_file(ty_arena_printf(&arena, "%s/%s", folder, file[i].name), NULL);
        found |= strstr(all, text) != NULL;
        free(all);
    }
    ty_arena_fini(&arena);
    return found;
}

static void check_layout(const tiles_case *c, const char *folder)
{
    ty_error err = {0};
    ty_program *p = NULL;
    const ty_compile_options opt = {.backend = TY_BACKEND_CUDA, .plan_only = true, .cuda_dir = folder};
    assert_ok(ty_program_of_graph(make(c), TY_TAPE_EVAL, &opt, &p, &err));
    ty_program_free(p);
    if (!folder_has(folder, ".txt", c->form))
        fail_msg("%s: no kernel of the form \"%s\"", c->what, c->form);
    if (!folder_has(folder, ".cu", c->word))
        fail_msg("%s: no \"%s\" in the kernel's text", c->what, c->word);
}

static void test_forms(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tiles_case *c = &cases[i];
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        check_layout(c, in(state, name));
        const ty_compile_options opt = {.backend = TY_BACKEND_CPU, .grid = true, .cache_dir = in(state, "cache")};
        void *x = numbers(c);
        ty_program *q = run(c, &(ty_compile_options){.backend = TY_BACKEND_INTERPRETER}, x);
        const float *expected = ty_program_output(q, TY_RUN_EVAL, "y")->data;
        check_orders(c, &opt, x, expected);
        check_barriers(c, &opt, x, expected);
        ty_program_free(q);
        free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {SCRATCH_TEST(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
