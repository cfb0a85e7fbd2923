/* dist/api: the checks that programs under mpirun make too, on ranks that are threads of this one; and what only can be
 * seen from inside: buckets, numbers, the end of a job. */
#include "base/file.h"
#include "dist/api/adopt.h"
#include "dist/api/buckets.h"
#include "dist/api/numbers.h"
#include "tests/api/checks.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MAX_RANKS = 7 };

static atomic_int told[MAX_RANKS];

typedef struct rank {
    ty_comm *comm;
    void (*run)(void);
    int number;
    pthread_t thread;
    int closed; /* what the end returned */
    char text[1600];
} rank;

static void *rank_main(void *ctx)
{
    rank *r = ctx;
    ty_world *w = NULL;
    ty_error err = {0};
    if (ty_world_open(r->comm, &told[r->number], &w, &err) != TRAINYARD_OK) {
        atomic_fetch_add(&failures, 1);
        return NULL;
    }
    ty_api_adopt(w);
    r->run();
    ty_api_adopt(NULL);
    r->closed = ty_world_close(w, &err);
    snprintf(r->text, sizeof r->text, "%s", err.message);
    return NULL;
}

/* Runs the function on n ranks, which are threads, and ends their job. */
static void on_ranks(int n, void (*run)(void))
{
    ty_comm *comm[MAX_RANKS];
    rank ranks[MAX_RANKS] = {{0}};
    ty_error err = {0};
    assert_int_equal(ty_comm_open_threads(NULL, n, comm, &err), 0);
    atomic_store(&failures, 0);
    for (int r = 0; r < n; r++) {
        atomic_store(&told[r], 0);
        ranks[r] = (rank){.comm = comm[r], .run = run, .number = r};
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    }
    for (int r = 0; r < n; r++) {
        pthread_join(ranks[r].thread, NULL);
        if (ranks[r].closed != TRAINYARD_OK)
            fail_msg("rank %d: %s", r, ranks[r].text);
    }
    assert_int_equal(atomic_load(&failures), 0);
}

static void check_on_ranks(void **state)
{
    void (*run)(void) = ((const struct check *)*state)->run;
    static const int sizes_of_jobs[] = {1, 2, 3, 4, 7};
    for (size_t i = 0; i < sizeof sizes_of_jobs / sizeof *sizes_of_jobs; i++)
        on_ranks(sizes_of_jobs[i], run);
}

/* ---- before init, after shutdown: of this process ---- */

static void states(void **state)
{
    (void)state;
    float x = 3;
    trainyard_gradients *g = NULL;
    assert_int_equal(trainyard_is_initialized(), 0);
    assert_int_equal(trainyard_rank(), TRAINYARD_E_STATE);
    assert_string_equal(trainyard_error(), "call trainyard_init first");
    assert_int_equal(trainyard_allreduce(trainyard_f32(&x, 1), NULL, NULL), TRAINYARD_E_STATE);
    assert_int_equal(trainyard_allreduce_async(trainyard_f32(&x, 1), NULL, NULL), TRAINYARD_E_STATE);
    assert_int_equal(trainyard_barrier(NULL), TRAINYARD_E_STATE);
    assert_int_equal(trainyard_join(), TRAINYARD_E_STATE);
    assert_int_equal(trainyard_gradients_new(NULL, 0, NULL, &g), TRAINYARD_E_STATE);
    assert_int_equal(trainyard_shutdown(), TRAINYARD_E_STATE);
    assert_int_equal(trainyard_init(&(trainyard_settings){.engine = "pigeons"}), TRAINYARD_E_START);
    assert_non_null(strstr(trainyard_error(), "pigeons"));
    assert_int_equal(trainyard_init(&(trainyard_settings){.engine = "self"}), TRAINYARD_OK);
    assert_int_equal(trainyard_init(NULL), TRAINYARD_E_STATE);
    assert_non_null(strstr(trainyard_error(), "called twice"));
    assert_int_equal(trainyard_size(), 1);
    assert_int_equal(trainyard_allreduce(trainyard_f32(&x, 1), NULL, NULL), TRAINYARD_OK);
    assert_true(x == 3);
    assert_int_equal(trainyard_stop_requested(), 0);
    raise(SIGTERM);
    assert_int_equal(trainyard_barrier(NULL), TRAINYARD_OK);
    assert_int_equal(trainyard_stop_requested(), 1);
    assert_int_equal(trainyard_shutdown(), TRAINYARD_OK);
    assert_int_equal(trainyard_init(NULL), TRAINYARD_E_STATE);
    assert_non_null(strstr(trainyard_error(), "after trainyard_shutdown"));
    assert_int_equal(trainyard_rank(), TRAINYARD_E_STATE);
    assert_int_equal(trainyard_is_initialized(), 0);
}

/* ---- stop, and leaving early ---- */

static void told_on_one_rank(void)
{
    int rank = trainyard_rank(), size = trainyard_size(), stopped_at = -1;
    trainyard_parameter one = {"w", TRAINYARD_F32, 1, {10}};
    trainyard_gradients *g = NULL;
    CHECK_OK(trainyard_gradients_new(&one, 1, NULL, &g));
    for (int step = 0; step < 10 && stopped_at < 0; step++) {
        if (step == 3 && rank == size - 1)
            atomic_store(&told[rank], 1);
        CHECK_OK(trainyard_gradients_ready(g, 0, NULL));
        CHECK_OK(trainyard_gradients_wait(g));
        stopped_at = trainyard_stop_requested() ? step : -1;
    }
    CHECK(stopped_at == 3); /* on all ranks */
}

static void stop_is_agreed(void **state)
{
    (void)state;
    on_ranks(1, told_on_one_rank);
    on_ranks(4, told_on_one_rank);
}

/* Rank 0 leaves while the others still call: with words, not for ever. Handles and gradients need not be cleared up. */
static void leave_early(void)
{
    float x = 1;
    trainyard_gradients *g;
    trainyard_parameter one = {"w", TRAINYARD_F32, 1, {10}};
    CHECK_OK(trainyard_gradients_new(&one, 1, NULL, &g));
    int64_t h = trainyard_allreduce_async(trainyard_f32(&x, 1), NULL, NULL);
    CHECK(h > 0);
    if (trainyard_rank() == 0)
        return;
    CHECK_OK(trainyard_wait(h));
    CHECK_FAILS(trainyard_allreduce(trainyard_f32(&x, 1), NULL, trainyard_with(.name = "late")), TRAINYARD_E_LOST);
    CHECK_TEXT("rank 0 has shut down while this rank calls allreduce late");
    CHECK_FAILS(trainyard_join(), TRAINYARD_E_LOST);
    CHECK_OK(trainyard_gradients_ready(g, 0, NULL));
    CHECK_FAILS(trainyard_gradients_wait(g), TRAINYARD_E_LOST);
}

static void leaving_is_told(void **state)
{
    (void)state;
    on_ranks(2, leave_early);
    on_ranks(4, leave_early);
}

/* ---- inside ---- */

static void buckets(void **state)
{
    (void)state;
    trainyard_parameter p[] = {{"a", TRAINYARD_F32, 1, {100}},     {"b", TRAINYARD_F32, 2, {1000, 1000}},
                               {"c", TRAINYARD_F64, 1, {8}},       {"d", TRAINYARD_F32, 1, {0}},
                               {"e", TRAINYARD_F32, 1, {1 << 20}}, {"f", TRAINYARD_F32, 1, {60000}},
                               {"g", TRAINYARD_F32, 0, {0}}};
    ty_bucket_slot slots[7];
    ty_bucket list[7];
    size_t n_bytes;
    /* g and f fit the small first one; e fills one; d goes with it, since nothing is added; c is of another type. */
    assert_int_equal(ty_buckets_lay(p, 7, 0, slots, list, &n_bytes), 4);
    assert_int_equal(list[0].first, 5);
    assert_int_equal(list[0].last, 6);
    assert_int_equal(list[1].first, 3);
    assert_int_equal(list[2].dtype, TY_F64);
    assert_int_equal(list[3].first, 0);
    assert_int_equal(list[3].last, 1);
    size_t at = 0;
    for (int i = 6; i >= 0; i--) {
        assert_int_equal(slots[i].offset, at);
        assert_int_equal(at % 64, 0);
        at += ((size_t)slots[i].elems * ty_dtype_bytes(slots[i].dtype) + 63) / 64 * 64;
    }
    assert_int_equal(n_bytes, at);
    assert_int_equal(list[3].offset + list[3].n_bytes, at);
    assert_int_equal(ty_buckets_lay(p, 7, 1, slots, list, &n_bytes), 7); /* each its own */
}

static void neutral_numbers(void **state)
{
    (void)state;
    for (int t = 0; t < N_TYPES; t++)
        for (int op = TRAINYARD_AVERAGE; op <= TRAINYARD_PRODUCT; op++) {
            double x[4], y[4];
            fill(types[t], op, x, 4);
            ty_numbers_neutral((ty_dtype)types[t], (trainyard_op)op, y, 4);
            for (int i = 0; i < 4; i++)
                assert_true(combine(op, get(types[t], x, i), get(types[t], y, i)) == get(types[t], x, i));
        }
}

static void scaled_numbers(void **state)
{
    (void)state;
    int8_t i8[] = {100, -100, 7};
    uint64_t u64[] = {UINT64_MAX, 5};
    int64_t i64[] = {INT64_MAX, INT64_MIN};
    ty_numbers_scale(TY_I8, i8, 3, 2.5);
    assert_int_equal(i8[0], 127);
    assert_int_equal(i8[1], -128);
    assert_int_equal(i8[2], 17);
    ty_numbers_scale(TY_U64, u64, 2, -3);
    assert_int_equal(u64[0], 0);
    ty_numbers_scale(TY_I64, i64, 2, 10);
    assert_true(i64[0] > INT64_MAX / 2 && i64[1] == INT64_MIN);
    bool b = true;
    ty_numbers_scale(TY_BOOL, &b, 1, 0.5);
    assert_true(b);
    _Float16 h[] = {1.5f}, k[] = {2.25f};
    ty_numbers_add(TY_F16, h, k, 1);
    assert_true((float)h[0] == 3.75f);
}

int main(void)
{
    struct CMUnitTest tests[N_CHECKS + 8];
    char scratch[] = "/tmp/api-XXXXXX";
    size_t n = 0;
    folder = mkdtemp(scratch);
    for (int i = 0; i < N_CHECKS; i++)
        tests[n++] = (struct CMUnitTest){checks[i].name, check_on_ranks, NULL, NULL, (void *)&checks[i]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(stop_is_agreed);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(leaving_is_told);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(buckets);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(neutral_numbers);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(scaled_numbers);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(states); /* last: a process joins once */
    int failed = _cmocka_run_group_tests("api", tests, n, NULL, NULL);
    ty_file_remove_tree(folder, NULL);
    return failed;
}
