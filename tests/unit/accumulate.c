/* accumulate.c - scattered gradients added into others: what the pass takes, its numbers, and the memory it saves. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/passes.h"
#include "compiler/program.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ROWS = 300, WIDTH = 40, INNER = 8, UPDATES = 50 };

typedef enum form { TIED, SWAPPED, READ_TWICE, NOT_ZERO, MAXIMUM, OF_ITSELF } form;

static ty_val given(ty_graph *g, const char *name, ty_dtype dtype, int rank, const int64_t *dim)
{
    return ty_b_input(g, ty_graph_add_input(g, name, ty_type_make(dtype, rank, dim)));
}
#define DIMS(...)                                                                \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }

/* [more; a b + scatter(0, ids, rows)], as the gradients of a tied table and of another weight lie in their arena. */
static ty_graph *make(form what)
{
    ty_graph *g = ty_graph_new();
    ty_val a = given(g, "a", TY_F32, DIMS(ROWS, INNER)), b = given(g, "b", TY_F32, DIMS(INNER, WIDTH));
    ty_val rows = given(g, "rows", TY_F32, DIMS(UPDATES, WIDTH)), ids = given(g, "ids", TY_I64, DIMS(UPDATES));
    ty_val start = ty_b_full(g, TY_F32, DIMS(ROWS, WIDTH), what == NOT_ZERO ? 1 : 0);
    ty_val s = ty_b_scatter(g, start, ids, rows, 0, what == MAXIMUM ? TY_MAX : TY_SUM);
    ty_val x = what == OF_ITSELF ? s : ty_b_dot(g, a, b, false, false);
    ty_val y = what == SWAPPED ? ty_b_add(g, s, x) : ty_b_add(g, x, s);
    ty_val part[] = {ty_b_flatten(g, ty_b_dot(g, rows, b, false, true)), ty_b_flatten(g, y)};
    ty_graph_add_output(g, "all", ty_b_concat(g, part, 2, 0), TY_TAPE_EVAL);
    if (what == READ_TWICE)
        ty_graph_add_output(g, "scattered", s, TY_TAPE_EVAL);
    return g;
}

static int count(const ty_graph *g, ty_op op)
{
    int n = 0;
    uint8_t *live = calloc(ty_graph_n_nodes(g) + 1, 1);
    assert_non_null(live);
    ty_graph_mark_live(g, TY_TAPE_ALL, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        n += live[id] && ty_graph_op(g, id) == op;
    free(live);
    return n;
}

static void only_sums_into_zeros_read_once(void **state)
{
    (void)state;
    for (form what = TIED; what <= OF_ITSELF; what++) {
        ty_graph *g = make(what), *after = NULL;
        ty_error err = {0};
        assert_int_equal(ty_pass_accumulate(g, &after, &err), 0);
        assert_int_equal(count(after, TY_OP_ADD), what > SWAPPED);
        assert_int_equal(count(after, TY_OP_SCATTER), 1);
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

typedef struct batch {
    float a[ROWS * INNER], b[INNER * WIDTH], rows[UPDATES * WIDTH];
    int64_t ids[UPDATES];
    const void *in[4];
} batch;

static void fill(float *x, int n, uint32_t stream)
{
    for (int i = 0; i < n; i++)
        x[i] = ty_rng_uniform(ty_rng_u32(3, stream, 0, (uint64_t)i)) - 0.5f;
}

static batch *noise(void)
{
    batch *d = calloc(1, sizeof *d);
    assert_non_null(d);
    fill(d->a, ROWS * INNER, 0);
    fill(d->b, INNER * WIDTH, 1);
    fill(d->rows, UPDATES * WIDTH, 2);
    for (int i = 0; i < UPDATES; i++)
        d->ids[i] = (int64_t)ty_rng_below(4, 0, 0, (uint64_t)(64 * i), ROWS / 8); /* many come up again */
    d->in[0] = d->a, d->in[1] = d->b, d->in[2] = d->rows, d->in[3] = d->ids;
    return d;
}

static ty_program *compile(form what)
{
    ty_program *p = NULL;
    ty_error err = {0};
    const ty_compile_options opt = {.threads = 2};
    if (ty_program_of_graph(make(what), TY_TAPE_EVAL, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

/* The interpreter runs the graph as it was written. Twice: memory of the first run must not show in the second. */
static void numbers(void **state)
{
    (void)state;
    batch *d = noise();
    for (form what = TIED; what <= OF_ITSELF; what++) {
        ty_graph *g = make(what);
        ty_program *p = compile(what);
        ty_interp *judge = NULL;
        ty_error err = {0};
        assert_int_equal(ty_interp_new(g, &judge, &err), 0);
        assert_int_equal(ty_interp_run(judge, TY_TAPE_EVAL, d->in, false, &err), 0);
        for (int run = 0; run < 2; run++) {
            assert_int_equal(ty_program_run(p, TY_RUN_EVAL, d->in, &err), 0);
            const float *found = ty_program_output(p, TY_RUN_EVAL, "all")->data;
            const ty_ref *expected = ty_interp_output(judge, 0);
            for (int64_t i = 0; i < ty_type_elems(&expected->type); i++)
                if (!(fabs(found[i] - expected->f[i]) <= 1e-5))
                    fail_msg("form %d, element %lld: expected %.9g, found %.9g", what, (long long)i, expected->f[i],
                             found[i]);
        }
        ty_interp_free(judge);
        ty_program_free(p);
        ty_graph_free(g);
    }
    free(d);
}

/* The product is written where the sum will lie, inside the concatenation: there is nothing else in memory. */
static void nothing_is_kept_twice(void **state)
{
    (void)state;
    ty_program *tied = compile(TIED), *apart = compile(MAXIMUM);
    size_t all = sizeof(float) * (ROWS * WIDTH + UPDATES * INNER);
    assert_in_range(ty_program_report(tied)->slab_bytes, all, all + 256);
    assert_true(ty_program_report(apart)->slab_bytes >= all + sizeof(float) * ROWS * WIDTH);
    ty_program_free(tied);
    ty_program_free(apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_sums_into_zeros_read_once),
        cmocka_unit_test(numbers),
        cmocka_unit_test(nothing_is_kept_twice),
    };
    return cmocka_run_group_tests_name("accumulate", tests, NULL, NULL);
}
