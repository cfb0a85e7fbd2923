/* dist/comm: every collective on ranks that are threads. */
#include "base/json.h"
#include "dist/comm/comm.h"
#include "dist/comm/timeline.h"
#include "dist/page.h"

#include "tests/unit/comm_case.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_RANKS = 8 };

/* The same function on every rank, each a thread; the sum of what they return. */
typedef struct end {
    ty_comm *c;
    int (*run)(ty_comm *c);
    int result;
} end;

static void *end_thread(void *p)
{
    end *e = p;
    e->result = e->run(e->c);
    ty_comm_close(e->c, true);
    return NULL;
}

static int on_ranks(const ty_comm_options *o, int size, int (*run)(ty_comm *c))
{
    ty_comm *c[MAX_RANKS];
    pthread_t thread[MAX_RANKS];
    end e[MAX_RANKS];
    ty_error err = {0};
    assert_int_equal(ty_comm_open_threads(o, size, c, &err), 0);
    int sum = 0;
    for (int r = 0; r < size; r++) {
        assert_int_equal(ty_comm_rank(c[r]), r);
        assert_int_equal(ty_comm_size(c[r]), size);
        e[r] = (end){c[r], run, 0};
        assert_int_equal(pthread_create(&thread[r], NULL, end_thread, &e[r]), 0);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(thread[r], NULL);
        sum += e[r].result;
    }
    return sum;
}

static void every_collective(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++)
        assert_int_equal(on_ranks(&(ty_comm_options){.piece_bytes = 4096}, size, case_everything), 0);
    assert_int_equal(on_ranks(&(ty_comm_options){.piece_bytes = 4096, .rank_order = true}, 3, case_something), 0);
    ty_comm_options levels = {.piece_bytes = 4096, .hierarchical = true, .ranks_per_host = 2};
    assert_int_equal(on_ranks(&levels, 4, case_something), 0);
    assert_int_equal(on_ranks(&levels, 3, case_something), 0); /* hosts differ: no levels, the same results */
}

/* Several at a time, waited for in another order, and a run that waits for those before it. */
static int several(ty_comm *c)
{
    enum { N = 20, ELEMS = 3000 };
    static _Thread_local int32_t x[N][ELEMS];
    uint64_t ticket[N];
    int faults = 0;
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < ELEMS; i++)
            x[k][i] = i + k + ty_comm_rank(c);
        ty_collective w = {.kind = TY_ALL_REDUCE, .dtype = TY_I32, .in = x[k], .out = x[k], .n = ELEMS};
        faults -= ty_comm_begin(c, &w, &ticket[k], NULL);
    }
    int64_t one = 1;
    ty_collective last = {.kind = TY_ALL_REDUCE, .dtype = TY_I64, .in = &one, .out = &one, .n = 1};
    faults -= ty_comm_run(c, &last, NULL);
    faults += one != ty_comm_size(c);
    for (int k = N - 1; k >= 0; k--) {
        faults += !ty_comm_test(c, ticket[k]); /* the run came after them */
        faults -= ty_comm_wait(c, ticket[k], NULL);
        for (int i = 0; i < ELEMS; i++)
            faults += x[k][i] != (i + k) * ty_comm_size(c) + ty_comm_size(c) * (ty_comm_size(c) - 1) / 2;
    }
    ty_error err = {0};
    faults += ty_comm_wait(c, ticket[0], &err) == 0; /* a ticket is good for once */
    return faults + (err.code != TY_E_INTERNAL);
}

/* By levels, hosts and local ranks are what they should be; bits of all ranks are equal. */
static int on_levels(ty_comm *c)
{
    int rank = ty_comm_rank(c), faults = ty_comm_local_size(c) != 3 || ty_comm_local_rank(c) != rank % 3;
    static _Thread_local float x[777], all[6 * 777];
    for (int wire = 0; wire < TY_N_WIRES; wire++) {
        for (int i = 0; i < 777; i++)
            x[i] = (float)(i + rank) / (float)(1 + i % 5 + rank);
        ty_collective sum = {
            .kind = TY_ALL_REDUCE, .dtype = TY_F32, .wire = (ty_wire)wire, .in = x, .out = x, .n = 777};
        ty_collective gather = {.kind = TY_ALL_GATHER, .dtype = TY_F32, .in = x, .out = all, .n = 777};
        faults -= ty_comm_run(c, &sum, NULL) + ty_comm_run(c, &gather, NULL);
        for (int r = 0; r < 6; r++)
            faults += memcmp(all + r * 777, x, sizeof x) != 0;
        for (int i = 0; i < 777; i++) {
            double expected = 0;
            for (int r = 0; r < 6; r++)
                expected += (double)(float)(i + r) / (double)(float)(1 + i % 5 + r);
            faults += x[i] < expected * 0.98 || x[i] > expected * 1.02;
        }
    }
    return faults;
}

static void levels_agree(void **state)
{
    (void)state;
    assert_int_equal(on_ranks(&(ty_comm_options){.hierarchical = true, .ranks_per_host = 3}, 6, on_levels), 0);
}

/* The page says what goes on, the statistics what went on. */
static int watched(ty_comm *c)
{
    float x[100] = {0};
    ty_comm_stats stats;
    ty_collective w = {
        .kind = TY_ALL_REDUCE, .name = "gradients", .dtype = TY_F32, .in = x, .out = x, .n = 100, .bucket = 3};
    int faults = -ty_comm_run(c, &w, NULL) - ty_comm_run(c, &w, NULL);
    ty_comm_get_stats(c, &stats);
    return faults +
           (stats.n_calls != 2 || stats.n_bytes != 800 || stats.busy_ns <= 0 || stats.waited_ns < stats.busy_ns);
}

static void the_page_is_written(void **state)
{
    (void)state;
    ty_page *page;
    ty_page_view view;
    int fd;
    assert_int_equal(ty_page_new(&page, &fd, NULL), 0);
    assert_int_equal(on_ranks(&(ty_comm_options){.page = page, .stream = 1}, 1, watched), 0);
    ty_page_read(page, &view);
    assert_int_equal(view.streams[1].begun, 2);
    assert_int_equal(view.streams[1].ended, 2);
    assert_int_equal(view.streams[1].n_bytes, 400);
    assert_int_equal(view.streams[1].bucket, 2);
    assert_string_equal(view.streams[1].kind, "all_reduce");
    assert_string_equal(view.streams[1].name, "gradients");
    ty_page_close(page);
    close(fd);
    assert_int_equal(on_ranks(NULL, 2, watched), 0);
}

/* Ranks 2 and 0 of three, in this order. */
static int some_ranks(ty_comm *c)
{
    ty_comm *part;
    const int ranks[] = {2, 0};
    int faults = -ty_comm_subset(c, ranks, 2, &part, NULL), rank = ty_comm_rank(c);
    if (rank == 1)
        return faults + (part != NULL);
    int32_t x = rank, all[2] = {9, 9};
    ty_collective w = {.kind = TY_ALL_GATHER, .dtype = TY_I32, .in = &x, .out = all, .n = 1};
    faults -= ty_comm_run(part, &w, NULL);
    faults += all[0] != 2 || all[1] != 0 || ty_comm_rank(part) != (rank == 0) || ty_comm_size(part) != 2;
    ty_comm_close(part, true);
    return faults;
}

static void a_part_has_an_order_of_its_own(void **state)
{
    (void)state;
    assert_int_equal(on_ranks(NULL, 3, some_ranks), 0);
}

static void many_are_under_way(void **state)
{
    (void)state;
    for (int size = 1; size <= 4; size++)
        assert_int_equal(on_ranks(NULL, size, several), 0);
}

/* Two comms of the same ranks have orders of their own. */
static int in_two_comms(ty_comm *c)
{
    ty_comm *other;
    if (ty_comm_dup(c, &other, NULL) < 0)
        return 1;
    float a = 1, b = 2;
    uint64_t first, second;
    ty_collective wa = {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .in = &a, .out = &a, .n = 1};
    ty_collective wb = {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .in = &b, .out = &b, .n = 1};
    bool odd = ty_comm_rank(c) % 2;
    int faults = -ty_comm_begin(odd ? c : other, odd ? &wa : &wb, &first, NULL);
    faults -= ty_comm_begin(odd ? other : c, odd ? &wb : &wa, &second, NULL);
    faults -= ty_comm_wait(odd ? c : other, first, NULL) + ty_comm_wait(odd ? other : c, second, NULL);
    faults += a != (float)ty_comm_size(c) || b != 2 * (float)ty_comm_size(c);
    ty_comm_close(other, true);
    return faults;
}

static void orders_are_separate(void **state)
{
    (void)state;
    assert_int_equal(on_ranks(NULL, 3, in_two_comms), 0);
}

static void rank_order_does_not_know_pieces(void **state)
{
    (void)state;
    static const int64_t pieces[] = {4096, 5000, 1 << 20};
    for (int k = 0; k < 3; k++) {
        ty_comm_options o = {.piece_bytes = pieces[k], .rank_order = true};
        assert_int_equal(on_ranks(&o, 3, case_rank_order), 0);
        o.ranks_per_host = 2; /* nor where ranks are */
        o.hierarchical = true;
        assert_int_equal(on_ranks(&o, 4, case_rank_order), 0);
    }
}

/* --- what is refused --- */

static int wrong_calls(ty_comm *c)
{
    const ty_collective wrong[] = {
        {.kind = (ty_collective_kind)17},
        {.kind = TY_ALL_REDUCE, .dtype = (ty_dtype)99},
        {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .n = -1},
        {.kind = TY_ALL_REDUCE, .dtype = TY_BOOL, .reduce = TY_REDUCE_AVERAGE, .n = 1},
        {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .reduce = (ty_reduce)9, .n = 1},
        {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .wire = (ty_wire)9, .n = 1},
        {.kind = TY_BROADCAST, .dtype = TY_F32, .n = 1, .root = 2},
        {.kind = TY_BROADCAST, .dtype = TY_F32, .n = 1, .root = -1},
        {.kind = TY_ALL_TO_ALL, .dtype = TY_F32, .n = 3},
        {.kind = TY_ALL_TO_ALL, .dtype = TY_F32, .n = 3, .counts = (const int64_t[]){1, 2}},
        {.kind = TY_REDUCE_SCATTER, .dtype = TY_F32, .n = 4, .counts = (const int64_t[]){1, 2}},
        {.kind = TY_REDUCE_SCATTER, .dtype = TY_F32, .n = 1, .counts = (const int64_t[]){2, -1}},
        {.kind = TY_ALL_GATHER, .dtype = TY_F32, .n = INT64_C(1) << 31},
    };
    int faults = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ty_error err = {0};
        uint64_t ticket;
        bool refused = ty_comm_begin(c, &wrong[i], &ticket, &err) < 0 && strncmp(err.message, "dist: ", 6) == 0;
        if (!refused)
            printf("call %zu was taken: %s\n", i, err.message);
        faults += !refused;
    }
    return faults;
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    assert_int_equal(on_ranks(NULL, 2, wrong_calls), 0);
    ty_comm *c[1];
    ty_error err = {0};
    assert_int_equal(ty_comm_open_threads(NULL, 0, c, &err), -1);
    assert_int_equal(ty_comm_open_threads(&(ty_comm_options){.piece_bytes = 100}, 1, c, &err), -1);
    assert_string_equal(err.message, "dist: a piece has 4096 to 268435456 bytes, not 100");
}

/* One rank leaves without a word: the others' call fails, and every later one with the same words. */
static int left_alone(ty_comm *c)
{
    float x = 1;
    ty_error first = {0}, second = {0};
    ty_collective w = {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .in = &x, .out = &x, .n = 1};
    if (ty_comm_rank(c) == 1)
        return 0;
    int faults = ty_comm_run(c, &w, &first) == 0;
    faults += ty_comm_run(c, &w, &second) == 0;
    return faults + (strcmp(first.message, second.message) != 0 || !strstr(first.message, "rank 1 has left"));
}

static void who_leaves_is_named(void **state)
{
    (void)state;
    assert_int_equal(on_ranks(NULL, 2, left_alone), 0);
}

static int other_calls(ty_comm *c)
{
    float x[8] = {0};
    ty_error err = {0};
    ty_collective w = {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .in = x, .out = x, .n = 4 + ty_comm_rank(c)};
    return ty_comm_run(c, &w, &err) == 0 || !strstr(err.message, "different collectives");
}

static void different_calls_stop_all(void **state)
{
    (void)state;
    assert_int_equal(on_ranks(NULL, 3, other_calls), 0);
}

/* --- texts --- */

static const char *texts[3];
static char told[3][TY_ERROR_MESSAGE_BYTES];

static int compare_texts(ty_comm *c)
{
    ty_error err = {0};
    int rc = ty_comm_compare(c, "schedules", texts[ty_comm_rank(c)], &err);
    memcpy(told[ty_comm_rank(c)], err.message, sizeof told[0]);
    float x = 1;
    ty_collective w = {.kind = TY_ALL_REDUCE, .dtype = TY_F32, .in = &x, .out = &x, .n = 1};
    return ty_comm_run(c, &w, NULL) < 0 ? -100 : rc; /* the comm is as good as before */
}

static void check_told(const char *expected)
{
    assert_int_equal(on_ranks(NULL, 3, compare_texts), *expected ? -3 : 0);
    for (int r = 0; r < 3; r++)
        assert_string_equal(told[r], expected);
}

static void first_difference_is_told(void **state)
{
    (void)state;
    texts[0] = texts[1] = texts[2] = "bucket 0 entry 0: 'a' [2] f32\nbucket 0 entry 1: 'b' [3] f32\n";
    check_told("");
    texts[2] = "bucket 0 entry 0: 'a' [2] f32\nbucket 0 entry 1: 'b' [4] f32\n";
    check_told("dist: schedules differ: bucket 0 entry 1: rank 0 'b' [3] f32, rank 2 'b' [4] f32");
    texts[1] = "bucket 0 entry 0: 'a' [2] f32\n";
    texts[2] = texts[0];
    check_told("dist: schedules differ: rank 0 bucket 0 entry 1: 'b' [3] f32, rank 1 ends before");
    texts[1] = "";
    texts[2] = "x: y";
    check_told("dist: schedules differ: rank 0 bucket 0 entry 0: 'a' [2] f32, rank 1 ends before");
}

/* A call with a name that JSON must escape, in a comm and in its dup. */
static int two_lanes(ty_comm *c)
{
    ty_comm *dup;
    float x = 1;
    uint64_t ticket;
    ty_error err = {0};
    ty_collective w = {.kind = TY_ALL_REDUCE, .name = "the \"first\"", .dtype = TY_F32, .in = &x, .out = &x, .n = 1};
    if (ty_comm_dup(c, &dup, &err) < 0)
        return -1;
    int rc = ty_comm_begin(c, &w, &ticket, &err) < 0 || ty_comm_wait(c, ticket, &err) < 0 ||
             ty_comm_run(dup, &(ty_collective){.kind = TY_BARRIER}, &err) < 0;
    ty_comm_close(dup, true);
    return -rc;
}

static void a_timeline_is_json(void **state)
{
    (void)state;
    char folder[] = "/tmp/timeline-XXXXXX", path[64], head[128];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(on_ranks(&(ty_comm_options){.timeline = folder}, 2, two_lanes), 0);
    for (int r = 0; r < 2; r++) {
        ty_arena a;
        ty_doc *doc;
        ty_error err = {0};
        int lanes = 0;
        ty_arena_init(&a);
        snprintf(path, sizeof path, "%s/collectives-rank-%05d.json", folder, r);
        assert_int_equal(ty_json_read(&a, path, NULL, &doc, &err), 0);
        const ty_doc *events = ty_doc_find(doc, "traceEvents");
        for (size_t i = 0; i < ty_doc_len(events); i++) {
            const ty_doc *e = ty_doc_at(events, i), *args = ty_doc_find(e, "args");
            snprintf(head, sizeof head, "%s %s", ty_doc_find(e, "ph")->raw, ty_doc_find(e, "name")->raw);
            if (args && ty_doc_find(args, "bytes") && strcmp(head, "X the \"first\"") == 0)
                lanes |= 1;
            if (args && ty_doc_find(args, "bytes") && strcmp(head, "X barrier") == 0)
                lanes |= 2;
        }
        assert_int_equal(lanes, 3);
        ty_arena_fini(&a);
        unlink(path);
    }
    rmdir(folder);
    ty_comm *c;
    ty_error err = {0};
    assert_int_equal(ty_comm_open_threads(&(ty_comm_options){.timeline = "/proc/none"}, 1, &c, &err), -1);
    assert_non_null(strstr(err.message, "the timeline of collectives"));
}

/* The last event that fits opens a lane, whose names take nobody's place. */
static void a_full_timeline_says_so_once(void **state)
{
    (void)state;
    char folder[] = "/tmp/timeline-XXXXXX", path[64], line[512];
    int waits = 0, ends = 0, lanes = 0;
    ty_timeline *t;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(ty_timeline_open(folder, 0, &t, NULL), 0);
    for (int i = 0; i < TIMELINE_MAX_EVENTS + 3; i++)
        ty_timeline_waited(t, i >= TIMELINE_MAX_EVENTS - 1, "w", i, i + 1);
    ty_timeline_close(t);
    snprintf(path, sizeof path, "%s/collectives-rank-00000.json", folder);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        waits += strstr(line, "\"ph\":\"X\"") != NULL;
        ends += strstr(line, "the file is full") != NULL;
        lanes += strstr(line, "thread_name") != NULL;
    }
    fclose(f);
    unlink(path);
    rmdir(folder);
    assert_int_equal(waits, TIMELINE_MAX_EVENTS);
    assert_int_equal(ends, 1);
    assert_int_equal(lanes, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective),
        cmocka_unit_test(levels_agree),
        cmocka_unit_test(the_page_is_written),
        cmocka_unit_test(a_part_has_an_order_of_its_own),
        cmocka_unit_test(many_are_under_way),
        cmocka_unit_test(orders_are_separate),
        cmocka_unit_test(rank_order_does_not_know_pieces),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(who_leaves_is_named),
        cmocka_unit_test(different_calls_stop_all),
        cmocka_unit_test(first_difference_is_told),
        cmocka_unit_test(a_timeline_is_json),
        cmocka_unit_test(a_full_timeline_says_so_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
