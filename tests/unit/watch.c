/* What a leader concludes: the first culprit out of several failures, stalls out of pages; and what is said of them. */
#include "dist/agent/watch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"algo-1", "algo-2"};

static ty_failure rank_failure(int wait_status, bool aborted)
{
    return (ty_failure){.kind = TY_FAILURE_EXIT,
                        .host = 1,
                        .exit = {.rank = 5,
                                 .pid = 312,
                                 .wait_status = wait_status,
                                 .aborted = aborted,
                                 .step = 812,
                                 .phase = TY_PHASE_STEP,
                                 .memory_percent = 97}};
}

/* Who is blamed when `second` comes a moment after `first`. */
static void test_blame(void **state)
{
    (void)state;
    const ty_failure killed = rank_failure(SIGKILL, false), crashed = rank_failure(SIGSEGV, false),
                     aborted = rank_failure(3 << 8, true), abrt = rank_failure(SIGABRT, false),
                     left = rank_failure(1 << 8, false), lost = {.kind = TY_FAILURE_LOST},
                     fault = {.kind = TY_FAILURE_FAULT};
    const struct {
        const char *name;
        const ty_failure *first, *second;
        bool rather;
    } rows[] = {
        {"an error of a peer before the kill", &left, &killed, true},
        {"a crash of a peer before the kill", &abrt, &killed, true},
        {"an abort before an error", &aborted, &left, false},
        {"an error before an abort", &left, &aborted, true},
        {"two errors", &left, &left, false},
        {"two kills", &killed, &crashed, false},
        {"an error before the host is lost", &left, &lost, true},
        {"a kill before the host is lost", &killed, &lost, false},
        {"a lost host and its neighbours' errors", &lost, &left, false},
        {"a host that cannot start", &fault, &left, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ty_blame_rather(rows[i].first, rows[i].second) != rows[i].rather)
            fail_msg("%s", rows[i].name);
}

static void test_culprits(void **state)
{
    (void)state;
    ty_failure failures[] = {rank_failure(SIGKILL, false),
                             rank_failure(3 << 8, false),
                             rank_failure(6 << 8, true),
                             {.kind = TY_FAILURE_LOST, .host = 1, .status = 70},
                             {.kind = TY_FAILURE_FAULT, .host = 0, .status = 66}};
    static const char *const texts[] = {
        "rank 5 (algo-2, pid 312) was killed by signal 9 (KILL) in step 812; stopping 8 ranks. Often this is the OOM "
        "killer: host memory was 97 % used",
        "rank 5 (algo-2, pid 312) ended with status 3 before its first step (phase \"compile\"): loss is NaN; stopping "
        "8 "
        "ranks",
        "rank 5 (algo-2, pid 312) called MPI_Abort with 6 in step 812; stopping 8 ranks",
        "lost algo-2 (no answer for 5.0 s on eth0 10.0.1.7); last seen: 4 ranks in step 812, all-reduce #7 (bucket 3)",
        "algo-1 cannot go on: cannot execute \"x\"",
    };
    static const int statuses[] = {137, 3, 6, 70, 66};
    failures[1].exit.step = -1;
    failures[1].exit.phase = TY_PHASE_COMPILE;
    strcpy(failures[1].exit.text, "loss is NaN");
    strcpy(failures[3].text, "no answer for 5.0 s on eth0 10.0.1.7");
    strcpy(failures[4].text, "cannot execute \"x\"");
    ty_rank_state ranks[8] = {{0}};
    for (int i = 0; i < 8; i++) {
        ranks[i] = (ty_rank_state){.host = i / 4, .known = true, .page.step = 812, .page.phase = TY_PHASE_STEP};
        ranks[i].page.streams[0] = (ty_page_stream_view){.begun = 7, .ended = 6, .bucket = 3, .kind = "all-reduce"};
    }
    for (size_t i = 0; i < 5; i++) {
        ty_culprit c;
        ty_blame(&failures[i], names, ranks, 8, &c);
        assert_string_equal(c.text, texts[i]);
        assert_int_equal(c.exit_status, statuses[i]);
        assert_int_equal(c.rank, i < 3 ? 5 : -1);
    }
}

/* Ranks by what they have begun and ended in stream 0, and how long ago. */
typedef struct stall_case {
    const char *name;
    struct {
        int begun, ended, seconds;
        ty_phase phase;
    } rank[8];
    const char *text; /* NULL: no stall of 60 s */
} stall_case;

#define IN(n, s)                   \
    {                              \
        n, (n)-1, s, TY_PHASE_STEP \
    }
#define OUT(n, s)              \
    {                          \
        n, n, s, TY_PHASE_STEP \
    }
#define AT(n, p)    \
    {               \
        n, n, 58, p \
    }

static const stall_case stalls[] = {
    {"all run", {OUT(5, 1), OUT(5, 1), IN(6, 1), OUT(5, 1), OUT(5, 1), OUT(5, 1), OUT(5, 1), OUT(5, 1)}, NULL},
    {"nobody has begun anything",
     {AT(0, 0), AT(0, 0), AT(0, 0), AT(0, 0), AT(0, 0), AT(0, 0), AT(0, 0), AT(0, 0)},
     NULL},
    {"all think for an hour",
     {OUT(5, 3600), OUT(5, 3600), OUT(5, 9), OUT(5, 9), OUT(5, 9), OUT(5, 9), OUT(5, 9), OUT(5, 9)},
     NULL},
    {"one reads data",
     {IN(7, 61), IN(7, 61), IN(7, 60), AT(6, TY_PHASE_DATA), IN(7, 61), IN(7, 61), IN(7, 61), IN(7, 61)},
     "stall: all-reduce #7 (step 812, bucket 3 'dense_2/kernel' 4.0 MB) waits 61 s. Arrived: 0-2 4-7. Missing: 3 "
     "(algo-1, "
     "phase \"data\", 58 s, step 812)."},
    {"two are missing",
     {IN(7, 61), AT(6, TY_PHASE_SAVE), IN(7, 61), AT(5, TY_PHASE_SAVE), IN(7, 61), IN(7, 61), IN(7, 61), IN(7, 61)},
     NULL /* below: they miss different operations */},
    {"one has no more data",
     {IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), AT(6, TY_PHASE_FINISHED)},
     "Missing: 7 (algo-2, phase \"finished\", 58 s, step 812). Rank 7 finished its data after step 812"},
    {"all are in",
     {IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70), IN(7, 70)},
     "waits 70 s. All ranks have begun it; waiting: 0-7."},
    {"some are through",
     {OUT(7, 70), OUT(7, 70), OUT(7, 70), IN(7, 70), IN(7, 65), OUT(7, 70), OUT(7, 70), OUT(7, 70)},
     "All ranks have begun it; waiting: 3 4."},
};

static void test_stalls(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stalls / sizeof stalls[0]; i++) {
        const stall_case *c = &stalls[i];
        ty_rank_state ranks[8];
        for (int k = 0; k < 8; k++) {
            ranks[k] = (ty_rank_state){.host = k / 4, .known = true, .heard_ms = 5000};
            ranks[k].page = (ty_page_view){.phase = c->rank[k].phase, .phase_ms = 57600, .step = 812};
            ranks[k].page.streams[0] = (ty_page_stream_view){.begun = (uint64_t)c->rank[k].begun,
                                                             .ended = (uint64_t)c->rank[k].ended,
                                                             .begun_ms = c->rank[k].seconds * 1000 - 500,
                                                             .n_bytes = 4 << 20,
                                                             .bucket = 3,
                                                             .kind = "all-reduce",
                                                             .name = "dense_2/kernel"};
        }
        ty_stall stall = {0};
        bool found = ty_watch_stall(ranks, 8, names, 5500, 60000, &stall);
        if (strcmp(c->name, "two are missing") == 0) {
            assert_true(found && stall.number == 6 && stall.first_missing == 3);
            assert_non_null(strstr(stall.text, "Arrived: 0-2 4-7. Missing: 3 (algo-1"));
        } else if (found != (c->text != NULL) || (found && !strstr(stall.text, c->text))) {
            fail_msg("%s: %s", c->name, found ? stall.text : "no stall");
        }
    }
}

/* The stream that waits longest is told of; a rank that is gone does not wait, it is missing. */
static void test_streams_and_ends(void **state)
{
    (void)state;
    ty_rank_state ranks[2] = {{.host = 0, .known = true}, {.host = 1, .known = true, .ended = true}};
    for (int i = 0; i < 2; i++) {
        ranks[i].page.step = 9;
        ranks[i].page.streams[1] = (ty_page_stream_view){.begun = 5, .ended = 4, .begun_ms = 61000, .bucket = -1};
        ranks[i].page.streams[2] = (ty_page_stream_view){.begun = 2 - i, .ended = 1, .begun_ms = 90000, .bucket = -1};
    }
    ty_stall stall;
    assert_true(ty_watch_stall(ranks, 2, names, 0, 60000, &stall));
    assert_int_equal(stall.stream, 2);
    assert_int_equal(stall.first_missing, 1);
    assert_non_null(strstr(stall.text, "Missing: 1 (algo-2, has ended, step 9). Rank 1 finished its data"));
    ranks[1].ended = false;
    ranks[1].stopped = true;
    ranks[1].page.phase = TY_PHASE_STEP;
    assert_true(ty_watch_stall(ranks, 2, names, 0, 60000, &stall));
    assert_non_null(strstr(stall.text, "Missing: 1 (algo-2, stopped by a signal, phase \"step\", step 9)."));
    ranks[1].page.streams[2].begun = 2; /* it was stopped within the operation */
    assert_true(ty_watch_stall(ranks, 2, names, 0, 60000, &stall));
    assert_int_equal(stall.first_missing, 1);
    assert_non_null(
        strstr(stall.text, "Arrived: 0. Missing: 1 (algo-2, stopped by a signal, phase \"step\", step 9)."));
    ranks[1].page.streams[2].ended = 2; /* behind it: whatever keeps rank 0, it is not that */
    assert_true(ty_watch_stall(ranks, 2, names, 0, 60000, &stall));
    assert_int_equal(stall.first_missing, -1);
    assert_non_null(strstr(stall.text, "All ranks have begun it; waiting: 0."));
    assert_false(ty_watch_stall(ranks, 2, names, 0, 90001, &stall));
    assert_false(ty_watch_stall(ranks, 0, names, 0, 1, &stall));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_culprits),
        cmocka_unit_test(test_stalls),
        cmocka_unit_test(test_streams_and_ends),
    };
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
