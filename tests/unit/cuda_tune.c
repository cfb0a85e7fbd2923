/* cuda_tune.c - which of several algorithms is taken: by candidates that say how long they take, and, where there is a
 * library that stands in for the GPU's driver (tests/cuda_run.sh), by what products and convolutions are told. */
#include "base/file.h"
#include "compiler/ir/build.h"
#include "compiler/program.h"
#include "compiler/target/cuda/tune.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N = 4 };

/* ---- candidates that say how long they take; below 0: they fail ---- */

typedef struct said {
    const double *ms;
    int asked;
} said;

static int say(void *ctx, int candidate, double *ms, ty_error *err)
{
    said *s = ctx;
    s->asked++;
    *ms = s->ms[candidate];
    return *ms < 0 ? ty_error_set(err, TY_E_LIBRARY, "it fails") : 0;
}

static const char ways[N][5] = {"four", "kinds", "ways ", "more"}, others[N][5] = {"and", "now", "quite", "new"};

typedef struct asking {
    const char *dirs, *device;
    double left_ms;
    const void *identity; /* NULL: ways */
} asking;

/* The choice of a tuner that knows nothing yet; asked: how many candidates ran. */
static int chosen(const asking *how, const char *what, const double *ms, int *asked)
{
    ty_arena arena;
    ty_arena_init(&arena);
    said s = {.ms = ms};
    ty_cuda_tuner t = {.dirs = how->dirs, .device = how->device, .left_ms = how->left_ms, .arena = &arena};
    const ty_cuda_candidates c = {
        .n = N, .identity = how->identity ? how->identity : ways, .bytes = sizeof *ways, .time = say, .ctx = &s};
    int i = ty_cuda_tune(&t, what, &c);
    *asked = s.asked;
    assert_int_equal(ty_cuda_tune(&t, what, &c), i); /* it remembers */
    if (how->dirs && how->left_ms > 0)
        assert_int_equal(s.asked, *asked);
    ty_arena_fini(&arena);
    return i;
}

static char folder[] = "/tmp/ty-tune-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return ty_file_remove_tree(folder, NULL);
}

static const double last_wins[N] = {3, 2, 2.5, 1}, hardly[N] = {3, 2.95, 3, 3.1}, first_fails[N] = {-1, 5, 4, 6};

static void the_quickest_is_taken(void **state)
{
    const asking how = {folder, "a GPU", 1000, NULL};
    int asked;
    (void)state;
    assert_int_equal(chosen(&how, "last wins", last_wins, &asked), 3);
    assert_int_equal(asked, N);
    assert_int_equal(chosen(&how, "hardly", hardly, &asked), 0);
    assert_int_equal(chosen(&how, "first fails", first_fails, &asked), 2);
}

static void the_choice_is_kept(void **state)
{
    asking how = {folder, "a GPU", 1000, NULL};
    int asked;
    (void)state;
    chosen(&how, "kept", last_wins, &asked);
    assert_int_equal(chosen(&how, "kept", hardly, &asked), 3);
    assert_int_equal(asked, 0);
    how.device = "another GPU";
    assert_int_equal(chosen(&how, "kept", hardly, &asked), 0);
    assert_int_equal(asked, N);
    how = (asking){folder, "a GPU", 0, NULL};
    assert_int_equal(chosen(&how, "kept", hardly, &asked), 3); /* no time is needed to know it */
}

/* An entry that names none of the candidates, whoever made it, is refused; what replaces it is kept. */
static void a_foreign_choice_is_made_anew(void **state)
{
    asking how = {folder, "a GPU", 1000, others};
    int asked;
    (void)state;
    assert_int_equal(chosen(&how, "foreign", last_wins, &asked), 3);
    how.identity = NULL;
    assert_int_equal(chosen(&how, "foreign", first_fails, &asked), 2);
    assert_int_equal(asked, N);
    assert_int_equal(chosen(&how, "foreign", hardly, &asked), 2);
    assert_int_equal(asked, 0);
}

static void nothing_is_timed_that_is_not_kept(void **state)
{
    char file[64];
    int asked;
    (void)state;
    assert_int_equal(chosen(&(asking){NULL, "a GPU", 1000, NULL}, "free", last_wins, &asked), 0);
    assert_int_equal(asked, 0);
    assert_int_equal(chosen(&(asking){"", "a GPU", 1000, NULL}, "free", last_wins, &asked), 0);
    assert_int_equal(asked, 0);
    snprintf(file, sizeof file, "%s/file", folder);
    assert_int_equal(ty_file_write(file, "", 0, 0600, NULL), 0);
    assert_int_equal(chosen(&(asking){file, "a GPU", 1000, NULL}, "free", last_wins, &asked), 0); /* no folder */
    assert_int_equal(asked, 0);
}

/* The next start of the training would else find time, choose otherwise and give other bits. */
static void what_had_no_time_is_kept_too(void **state)
{
    int asked;
    (void)state;
    assert_int_equal(chosen(&(asking){folder, "a GPU", 0, NULL}, "no time", last_wins, &asked), 0);
    assert_int_equal(asked, 0);
    assert_int_equal(chosen(&(asking){folder, "a GPU", 1000, NULL}, "no time", last_wins, &asked), 0);
    assert_int_equal(asked, 0);
}

/* ---- products on the stand-in: of what it proposes algorithm 2 is the quickest that adds up in float32 ---- */

static ty_graph *product(void)
{
    ty_graph *g = ty_graph_new();
    ty_type type = ty_type_make(TY_F32, 2, (int64_t[]){3, 3});
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", type));
    ty_val v[2] = {x, x};
    ty_graph_add_output(g, "y", ty_graph_emit(g, TY_OP_DOT, &(ty_attr){.flags = 1}, v, 2), TY_TAPE_EVAL);
    return g;
}

/* Lines of the trace from a byte on that have a word. */
static int lines(const char *trace, const char *word, long from)
{
    char line[256];
    int n = 0;
    FILE *f = fopen(trace, "r");
    assert_non_null(f);
    fseek(f, from, SEEK_SET);
    while (fgets(line, sizeof line, f))
        n += strstr(line, word) != NULL;
    fclose(f);
    return n;
}

static long end_of(const char *trace)
{
    FILE *f = fopen(trace, "r");
    long at = 0;
    if (f && fseek(f, 0, SEEK_END) == 0)
        at = ftell(f);
    if (f)
        fclose(f);
    return at;
}

/* One convolution of 3 x 3. */
static ty_graph *convolution(void)
{
    ty_graph *g = ty_graph_new();
    ty_val v[2] = {ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 4, (int64_t[]){1, 4, 5, 5}))),
                   ty_b_input(g, ty_graph_add_input(g, "w", ty_type_make(TY_F32, 4, (int64_t[]){4, 4, 3, 3})))};
    const ty_attr attr = {.n = 2, .groups = 1, .step = {1, 1}, .dil = {1, 1}};
    ty_graph_add_output(g, "y", ty_graph_emit(g, TY_OP_CONV, &attr, v, 2), TY_TAPE_EVAL);
    return g;
}

typedef struct expected {
    const char *cache;
    bool strict, tf32;
    int timed; /* runs */
    const char *choice;
} expected;

/* How many calls are timed, and which choice is captured. word: of the calls. */
static void expect_program(const char *trace, ty_graph *g, const char *word, const expected *e)
{
    ty_error err = {0};
    ty_program *p = NULL;
    char captured[96];
    long from = end_of(trace);
    ty_compile_options opt = {.threads = 1,
                              .backend = TY_BACKEND_CUDA,
                              .cache_dir = e->cache,
                              .deterministic_strict = e->strict,
                              .tf32 = e->tf32};
    if (ty_program_of_graph(g, TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    ty_program_free(p);
    snprintf(captured, sizeof captured, "capturing %s", e->choice);
    if (lines(trace, captured, from) != 1 || lines(trace, word, from) != e->timed + 2) /* one loads, one is captured */
        fail_msg("%s: %d captured, %d calls", e->choice, lines(trace, captured, from), lines(trace, word, from));
}

static bool has_stand_in(const char *trace)
{
    ty_error err = {0};
    ty_program *p = NULL;
    ty_compile_options opt = {.threads = 1, .backend = TY_BACKEND_CUDA};
    setenv("TY_FAKE_TRACE", trace, 1);
    if (ty_program_of_graph(product(), TY_TAPE_EVAL, &opt, &p, &err) == 0)
        ty_program_free(p);
    return end_of(trace) > 0;
}

static void products_take_the_quickest(void **state)
{
    char trace[64], cache[64];
    (void)state;
    snprintf(trace, sizeof trace, "%s/trace", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    if (!has_stand_in(trace))
        skip();
    const expected e[] = {
        {NULL, false, false, 0, "matmul 3x3x1 algorithm 1"},      {cache, true, false, 0, "matmul 3x3x1 algorithm 1"},
        {cache, false, false, 3 * 4, "matmul 3x3x1 algorithm 2"}, /* three that may be taken, once and three times */
        {cache, false, false, 0, "matmul 3x3x1 algorithm 2"},     {cache, true, false, 0, "matmul 3x3x1 algorithm 1"},
    };
    for (size_t i = 0; i < sizeof e / sizeof *e; i++)
        expect_program(trace, product(), "matmul", &e[i]);
}

/* Of nine engines one may not be planned, one takes too much memory, and three others or four do not keep bits or the
 * precision; what is proposed first of those that remain is the slowest. */
static void convolutions_take_the_quickest(void **state)
{
    char trace[64], cache[64];
    (void)state;
    snprintf(trace, sizeof trace, "%s/trace", folder);
    snprintf(cache, sizeof cache, "%s/convolutions", folder);
    if (!has_stand_in(trace))
        skip();
    const expected e[] = {
        {NULL, false, false, 0, "convolve y engine 5 knob 1"},
        {cache, true, false, 0, "convolve y engine 5 knob 1"},
        {cache, false, false, 3 * 4, "convolve y engine 5 knob 4"},
        {cache, false, false, 0, "convolve y engine 5 knob 4"},
        {cache, false, true, 4 * 4, "convolve y engine 3 knob 1"}, /* with tensor cores */
        {cache, true, false, 0, "convolve y engine 5 knob 1"},
    };
    for (size_t i = 0; i < sizeof e / sizeof *e; i++)
        expect_program(trace, convolution(), "convolve", &e[i]);
}

/* A small product, a large one, and one that occurs so often that it is most of the arithmetic, in this order. */
static ty_graph *products(void)
{
    static const int64_t extent[] = {3, 5, 4, 4, 4};
    ty_graph *g = ty_graph_new();
    for (size_t i = 0; i < sizeof extent / sizeof *extent; i++) {
        char name[2][4];
        snprintf(name[0], sizeof name[0], "x%zu", i);
        snprintf(name[1], sizeof name[1], "y%zu", i);
        ty_type type = ty_type_make(TY_F32, 2, (int64_t[]){extent[i], extent[i]});
        ty_val x = ty_b_input(g, ty_graph_add_input(g, name[0], type));
        ty_graph_add_output(g, name[1], ty_b_dot(g, x, x, true, false), TY_TAPE_EVAL);
    }
    return g;
}

/* The sizes of products in the order in which they are first timed, or run. */
static void first_products(const char *trace, long from, char *sizes, size_t n)
{
    char line[256], size[32];
    FILE *f = fopen(trace, "r");
    assert_non_null(f);
    fseek(f, from, SEEK_SET);
    sizes[0] = 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "matmul %31s", size) == 1 && !strstr(sizes, size))
            snprintf(sizes + strlen(sizes), n - strlen(sizes), "%s ", size);
    fclose(f);
}

/* Time for choosing ends where least is lost. */
static void most_arithmetic_is_timed_first(void **state)
{
    char trace[64], cache[64], sizes[96];
    ty_error err = {0};
    ty_program *p = NULL;
    (void)state;
    snprintf(trace, sizeof trace, "%s/trace", folder);
    snprintf(cache, sizeof cache, "%s/order", folder);
    if (!has_stand_in(trace))
        skip();
    long from = end_of(trace);
    ty_compile_options opt = {.threads = 1, .backend = TY_BACKEND_CUDA, .cache_dir = cache};
    if (ty_program_of_graph(products(), TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    first_products(trace, from, sizes, sizeof sizes);
    assert_string_equal(sizes, "4x4x1 5x5x1 3x3x1 ");
    ty_program_free(p);
}

/* A replica with the same plans: nothing is timed again, though the cache has forgotten. */
static void a_replica_takes_the_first_ones_choice(void **state)
{
    char trace[64], cache[64];
    ty_error err = {0};
    ty_program *p = NULL;
    ty_cuda *first = NULL, *second = NULL;
    ty_compile_phases phases = {0};
    (void)state;
    snprintf(trace, sizeof trace, "%s/trace", folder);
    snprintf(cache, sizeof cache, "%s/forgets", folder);
    if (!has_stand_in(trace))
        skip();
    ty_compile_options opt = {.threads = 1, .backend = TY_BACKEND_CUDA, .plan_only = true};
    assert_int_equal(ty_program_of_graph(product(), TY_TAPE_EVAL, &opt, &p, &err), 0);
    const ty_plan *plan[] = {p->plan[TY_RUN_EVAL]};
    ty_cuda_options cuda = {.tune = true, .build = {.threads = 1, .cache_dir = cache}, .phases = &phases};
    assert_int_equal(ty_cuda_new(plan, 1, &cuda, &first, &err), 0);
    assert_int_equal(ty_cuda_ready(first, &err), 0);
    assert_int_equal(ty_file_remove_tree(cache, NULL), 0);
    long from = end_of(trace);
    cuda.like = first;
    assert_int_equal(ty_cuda_new(plan, 1, &cuda, &second, &err), 0);
    assert_int_equal(ty_cuda_ready(second, &err), 0);
    assert_int_equal(lines(trace, "matmul", from), 2);
    assert_int_equal(lines(trace, "capturing matmul 3x3x1 algorithm 2", from), 1);
    ty_cuda_free(second);
    ty_cuda_free(first);
    ty_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quickest_is_taken),
        cmocka_unit_test(the_choice_is_kept),
        cmocka_unit_test(a_foreign_choice_is_made_anew),
        cmocka_unit_test(nothing_is_timed_that_is_not_kept),
        cmocka_unit_test(what_had_no_time_is_kept_too),
        cmocka_unit_test(products_take_the_quickest),
        cmocka_unit_test(convolutions_take_the_quickest),
        cmocka_unit_test(most_arithmetic_is_timed_first),
        cmocka_unit_test(a_replica_takes_the_first_ones_choice),
    };
    return cmocka_run_group_tests_name("cuda_tune", tests, make_folder, remove_folder);
}
