/* What a session asks the ranks that it trains with, here threads of one process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "entrypoint/company.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3 };

typedef struct rank {
    ty_comm *comm;
    int (*run)(ty_company *c, ty_error *err);
    int rc;
    ty_error err;
} rank;

static _Thread_local ty_comm *own; /* the rank's, which its company takes for what tapes exchange */

static void *run_rank(void *arg)
{
    rank *r = arg;
    ty_company *c = NULL;
    own = r->comm;
    r->rc = ty_company_of(r->comm, TY_WIRE_AS_IS, &c, &r->err);
    if (r->rc == 0)
        r->rc = r->run(c, &r->err);
    ty_company_free(c, true);
    return NULL;
}

static void together(rank *ranks, int (*run)(ty_company *c, ty_error *err))
{
    ty_error err = {0};
    ty_comm *comm[RANKS];
    pthread_t thread[RANKS];
    if (ty_comm_open_threads(NULL, RANKS, comm, &err) < 0)
        fail_msg("%s", err.message);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (rank){.comm = comm[i], .run = run};
        assert_int_equal(pthread_create(&thread[i], NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(thread[i], NULL);
}

static int ask(ty_company *c, ty_error *err)
{
    int me = ty_company_rank(c), wrong = ty_company_size(c) != RANKS || ty_company_leads(c) != (me == 0);
    int64_t least = 10 - me, most = 10 - me, total = 1 << (8 * me);
    char bytes[16], last[16], all[RANKS][16];
    snprintf(bytes, sizeof bytes, "of rank %d", me);
    memcpy(last, bytes, sizeof last);
    if (ty_company_least(c, "least", &least, err) < 0 || ty_company_most(c, "most", &most, err) < 0 ||
        ty_company_total(c, "total", &total, err) < 0 || ty_company_share(c, "bytes", bytes, sizeof bytes, err) < 0 ||
        ty_company_gather(c, "all", last, sizeof last, all, err) < 0 ||
        ty_company_share_of(c, RANKS - 1, "last", last, sizeof last, err) < 0 ||
        ty_company_share(c, "nothing", NULL, 0, err) < 0 || ty_company_compare(c, "texts", "a: 1\n", err) < 0 ||
        ty_company_meet(c, "end", err) < 0)
        return -1;
    return wrong + (least != 8) + (most != 10) + (total != 0x010101) + (strcmp(bytes, "of rank 0") != 0) +
           (strcmp(last, "of rank 2") != 0) + (strcmp(all[0], bytes) != 0) + (strcmp(all[RANKS - 1], last) != 0);
}

static void answers_are_the_same_on_all(void **state)
{
    (void)state;
    rank ranks[RANKS];
    together(ranks, ask);
    for (int i = 0; i < RANKS; i++)
        if (ranks[i].rc != 0)
            fail_msg("rank %d: %d %s", i, ranks[i].rc, ranks[i].err.message);
}

/* Rank 1 has no memory, rank 2 fares worse: all get rank 2's number, and those that fared better its words and
 * its code. */
static int fare(ty_company *c, ty_error *err)
{
    int me = ty_company_rank(c);
    int64_t mine = me == 0 ? 9 : 3 - me;
    if (me > 0)
        ty_error_set(err, me == 2 ? TY_E_DATA : TY_E_LIMIT, "no memory in place %d", me);
    if (ty_company_worst(c, "first", &mine, err) < 0 || mine != 1 || err->code == TY_E_NONE)
        return -1;
    *err = (ty_error){0};
    mine = 7; /* nobody's is less: each keeps what it has */
    if (ty_company_worst(c, "second", &mine, err) < 0 || mine != 7 || err->code != TY_E_NONE)
        return -1;
    mine = me == 0 ? 9 : 3 - me;
    if (me > 0)
        ty_error_set(err, me == 2 ? TY_E_DATA : TY_E_LIMIT, "no memory in place %d", me);
    return ty_company_worst(c, "third", &mine, err);
}

static void the_worst_is_told_to_all(void **state)
{
    (void)state;
    rank ranks[RANKS];
    together(ranks, fare);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks[i].rc, 0);
        assert_int_equal(ranks[i].err.code, TY_E_DATA);
        assert_string_equal(ranks[i].err.message, i < 2 ? "rank 2: no memory in place 2" : "no memory in place 2");
    }
}

/* Two ranks' GPUs refuse kinds of calls: all ranks hear of both, since all have the same program. */
static int are_refused(ty_company *c, ty_error *err)
{
    const ty_exchange *x = ty_company_exchange(c);
    int me = ty_company_rank(c);
    char bytes[4] = "";
    if (me > 0) {
        ty_error_set(err, TY_E_NO_EPILOGUE, "rank %d is refused", me);
        err->which = (uint64_t)1 << me;
    }
    return x->meet(x->ctx, me == 0, bytes, sizeof bytes, err);
}

static void what_any_is_refused_is_told_to_all(void **state)
{
    (void)state;
    rank ranks[RANKS];
    together(ranks, are_refused);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks[i].rc, -1);
        assert_int_equal(ranks[i].err.code, TY_E_NO_EPILOGUE);
        assert_int_equal(ranks[i].err.which, 6);
    }
}

/* Rank 1 is asked to stop in step 3: all obey in front of step 4. */
static int stop(ty_company *c, ty_error *err)
{
    int all = 0, step = 0;
    while (all == 0 && step < 100) {
        int mine = ty_company_rank(c) == 1 && step >= 3 ? 2 : 0;
        if (ty_company_stopping(c, mine, &all, err) < 0)
            return -1;
        step += all == 0;
    }
    return all == 2 ? step : -2;
}

static void all_stop_after_the_same_step(void **state)
{
    (void)state;
    rank ranks[RANKS];
    together(ranks, stop);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(ranks[i].rc, 4);
}

/* What a step waits for does not stand in line behind gradients, of which even few go where all do. */
static int exchange(ty_company *c, ty_error *err)
{
    const ty_exchange_call calls[] = {
        {.kind = TY_EXCHANGE_SUM, .dtype = TY_F32, .elems = 4, .gradients = true, .name = "gradients of a bias"},
        {.kind = TY_EXCHANGE_SUM, .dtype = TY_F32, .elems = 4, .name = "losses"}};
    const ty_exchange *x = ty_company_exchange(c);
    float v[4] = {1, 2, 3, 4};
    ty_comm_stats stats;
    int expected[] = {1, 1}, found[2];
    ty_company_expect(c, calls, 2);
    for (int i = 0; i < 2; i++) {
        if (x->begin(x->ctx, i, v, v, err) < 0 || x->wait(x->ctx, i, err) < 0)
            return -1;
        ty_comm_get_stats(own, &stats);
        found[i] = (int)stats.n_calls;
    }
    return memcmp(expected, found, sizeof found) != 0 || v[3] != 4 * RANKS * RANKS;
}

static void gradients_go_one_way(void **state)
{
    (void)state;
    rank ranks[RANKS];
    together(ranks, exchange);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(ranks[i].rc, 0);
}

static int differ(ty_company *c, ty_error *err)
{
    return ty_company_compare(c, "recipe", ty_company_rank(c) == 2 ? "seed: 1\nlr: 2\n" : "seed: 1\nlr: 1\n", err);
}

static void what_differs_is_told_on_all(void **state)
{
    (void)state;
    rank ranks[RANKS];
    together(ranks, differ);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks[i].rc, -1);
        assert_non_null(strstr(ranks[i].err.message, "lr: rank 0 1, rank 2 2"));
    }
}

static void alone(void **state)
{
    (void)state;
    ty_error err = {0};
    int64_t v = 7;
    int all;
    char one[2] = "a", same[2];
    assert_int_equal(ty_company_gather(NULL, "v", one, sizeof one, same, &err), 0);
    assert_string_equal(same, one);
    assert_int_equal(ty_company_rank(NULL), 0);
    assert_int_equal(ty_company_size(NULL), 1);
    assert_true(ty_company_leads(NULL));
    assert_null(ty_company_exchange(NULL));
    assert_int_equal(ty_company_least(NULL, "v", &v, &err) + ty_company_share(NULL, "v", &v, 8, &err) +
                         ty_company_meet(NULL, "end", &err) + ty_company_compare(NULL, "v", "", &err),
                     0);
    assert_int_equal(ty_company_stopping(NULL, 2, &all, &err), 0);
    assert_int_equal(all, 2);
    assert_int_equal(v, 7);
    ty_company_free(NULL, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_same_on_all),
        cmocka_unit_test(the_worst_is_told_to_all),
        cmocka_unit_test(what_any_is_refused_is_told_to_all),
        cmocka_unit_test(all_stop_after_the_same_step),
        cmocka_unit_test(gradients_go_one_way),
        cmocka_unit_test(what_differs_is_told_on_all),
        cmocka_unit_test(alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
