/* bucket.c - weights updated piece by piece: what the pass takes, its numbers, and the memory it saves. */
#include "base/rng.h"
#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
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

/* y = tanh(x U) V + b, and the gradients of sum(y^2) / 2: [V, b, U] in one arena of more than 2 Mi numbers, with a
 * momentum in another. Rows of 256 do not divide b. */
enum { ROWS = 3, IN = 1100, INNER = 1024, OUT = 1050, V = INNER * OUT, U = IN * INNER, ALL = V + OUT + U };

/* SHARED: each part summed over two replicas. */
typedef enum form { PLAIN, NORM, SHARED, CLIPPED, SHOWN } form;

static ty_val part(ty_graph *g, ty_val flat, int64_t at, int64_t rows, int64_t columns)
{
    ty_val v = ty_b_slice_axis(g, flat, 0, at, at + rows * columns);
    return ty_b_reshape(g, v, 2, (const int64_t[]){rows, columns});
}

static ty_val gradients(ty_graph *g, ty_val x, ty_val p, int replicas)
{
    ty_val v = part(g, p, 0, INNER, OUT), b = part(g, p, V, 1, OUT), u = part(g, p, V + OUT, IN, INNER);
    ty_val h = ty_b_unary(g, TY_OP_TANH, ty_b_dot(g, x, u, false, false));
    ty_val y = ty_b_add(g, ty_b_dot(g, h, v, false, false), b);
    ty_val dh = ty_b_dot(g, y, v, false, true);
    ty_val dz = ty_b_mul(g, dh, ty_b_sub(g, ty_b_full_like(g, h, 1), ty_b_square(g, h)));
    ty_val all[] = {ty_b_flatten(g, ty_b_dot(g, h, y, true, false)), ty_b_sum(g, y, 1, false),
                    ty_b_flatten(g, ty_b_dot(g, x, dz, true, false))};
    for (int i = 0; i < 3; i++)
        all[i] = ty_b_all_reduce(g, all[i], replicas);
    return ty_b_concat(g, all, 3, 0);
}

static ty_graph *make(form what)
{
    static float start[ALL];
    for (int i = 0; i < ALL; i++)
        start[i] = 0.06f * (ty_rng_uniform(ty_rng_u32(3, 0, 0, (uint64_t)i)) - 0.5f);
    ty_graph *g = ty_graph_new();
    int64_t n = ALL, rows[] = {ROWS, IN};
    const void *init[] = {start};
    ty_segment whole = {"p", ty_type_make(TY_F32, 1, &n), 0};
    ty_state p = {"p", whole.type, TY_STATE_PARAM, &whole, 1, init},
             m = {"m", whole.type, TY_STATE_MOMENT, &whole, 1, NULL};
    int sp = ty_graph_add_state(g, &p), sm = ty_graph_add_state(g, &m);
    ty_val x = ty_b_input(g, ty_graph_add_input(g, "x", ty_type_make(TY_F32, 2, rows)));
    ty_val weights = ty_b_state(g, sp), grad = gradients(g, x, weights, what == SHARED ? 2 : 1);
    if (what != PLAIN) {
        ty_val norm = ty_b_unary(g, TY_OP_SQRT, ty_b_sum(g, ty_b_square(g, grad), 1, false));
        ty_graph_add_output(g, "norm", norm, TY_TAPE_LAST);
        if (what == CLIPPED)
            grad = ty_b_div(g, grad, norm);
        if (what == SHOWN)
            ty_graph_add_output(g, "gradient", grad, TY_TAPE_LAST);
    }
    ty_val momentum = ty_b_add(g, ty_b_mul_s(g, ty_b_state(g, sm), 0.9), grad);
    ty_graph_add_assign(g, sp, ty_b_sub(g, weights, ty_b_mul_s(g, momentum, 1e-3)), TY_TAPE_LAST);
    ty_graph_add_assign(g, sm, momentum, TY_TAPE_LAST);
    return g;
}

static int64_t largest_concat(const ty_graph *g)
{
    int64_t most = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        int64_t n = ty_type_elems(ty_graph_type(g, ty_val_make(id, 0)));
        bool inner = false; /* read by something other than an assign */
        for (uint32_t k = id + 1; k < ty_graph_n_nodes(g) && ty_graph_op(g, id) == TY_OP_CONCAT; k++)
            for (uint32_t i = 0; i < ty_graph_node(g, k)->n_in; i++)
                inner |= ty_graph_op(g, k) != TY_OP_ASSIGN && ty_graph_in(g, k, (int)i) == ty_val_make(id, 0);
        most = inner && n > most ? n : most;
    }
    return most;
}

static void gradients_needed_at_once_stay_whole(void **state)
{
    (void)state;
    for (form what = PLAIN; what <= SHOWN; what++) {
        ty_graph *g = make(what), *after = NULL;
        ty_error err = {0};
        assert_int_equal(ty_pass_bucket(g, &after, &err), 0);
        if (what == CLIPPED || what == SHOWN)
            assert_int_equal(largest_concat(after), ALL);
        else
            assert_true(largest_concat(after) < ALL * 6 / 10);
        ty_graph_free(g);
        ty_graph_free(after);
    }
}

/* The sum of a bucket is read when that of the next one has begun. */
static void sums_over_replicas_are_given_time(void **state)
{
    (void)state;
    ty_graph *g = make(SHARED), *after = NULL;
    ty_error err = {0};
    assert_int_equal(ty_pass_bucket(g, &after, &err), 0);
    uint32_t sum[3], reader[3] = {0}, n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(after); id++) {
        if (ty_graph_op(after, id) == TY_OP_ALL_REDUCE && n < 3)
            sum[n++] = id;
        for (uint32_t i = 0; i < ty_graph_node(after, id)->n_in; i++)
            for (uint32_t k = 0; k < n; k++)
                if (ty_val_node(ty_graph_in(after, id, (int)i)) == sum[k] && !reader[k])
                    reader[k] = id;
    }
    assert_int_equal(n, 3);
    assert_true(reader[0] > sum[2] && reader[1] > sum[2]); /* two buckets: V, then b and U */
    ty_graph_free(g);
    ty_graph_free(after);
}

static ty_program *compile(form what, const char *without)
{
    ty_program *p = NULL;
    ty_error err = {0};
    const ty_compile_options opt = {.threads = 2, .skip_passes = &without, .n_skip_passes = without ? 1 : 0};
    if (ty_program_of_graph(make(what), TY_TAPE_LAST, &opt, &p, &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static void close_to(const float *x, const double *y, double tolerance)
{
    for (int i = 0; i < ALL; i++)
        if (!(fabs((double)x[i] - y[i]) <= tolerance))
            fail_msg("number %d: expected %g, found %g", i, y[i], (double)x[i]);
}

/* The second step reads what the first has left in the arenas. */
static void numbers_and_memory(void **state)
{
    (void)state;
    static float x[ROWS * IN];
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = ty_rng_uniform(ty_rng_u32(4, 0, 0, (uint64_t)i)) - 0.5f;
    const void *in[] = {x};
    for (form what = PLAIN; what <= CLIPPED; what++) {
        ty_graph *g = make(what);
        ty_program *p = compile(what, NULL), *whole = compile(what, "bucket");
        ty_interp *judge = NULL;
        ty_error err = {0};
        assert_int_equal(ty_interp_new(g, &judge, &err), 0);
        for (int step = 0; step < 2; step++) {
            assert_int_equal(ty_interp_run(judge, TY_TAPE_LAST, in, true, &err), 0);
            assert_int_equal(ty_program_run(p, TY_RUN_LAST, in, &err), 0);
            for (int s = 0; s < 2; s++)
                close_to(ty_program_state(p, s, NULL).data, ty_interp_state(judge, s)->f, s ? 2e-4 : 2e-6);
            if (what == NORM)
                assert_true(fabs((double)*(const float *)ty_program_output(p, TY_RUN_LAST, "norm")->data /
                                     ty_interp_output(judge, 0)->f[0] -
                                 1) < 1e-5);
        }
        size_t slab = ty_program_report(p)->slab_bytes, slab_whole = ty_program_report(whole)->slab_bytes;
        assert_true(slab_whole >= 4 * (size_t)ALL);
        assert_true(what == SHARED ? slab <= slab_whole + slab_whole / 100 /* two buckets, of which the first waits */
                    : what == CLIPPED ? slab == slab_whole
                                      : slab < slab_whole * 6 / 10);
        ty_interp_free(judge);
        ty_graph_free(g);
        ty_program_free(p);
        ty_program_free(whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_needed_at_once_stay_whole),
        cmocka_unit_test(sums_over_replicas_are_given_time),
        cmocka_unit_test(numbers_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
