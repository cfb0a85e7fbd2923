/* input_batches.c - the order of samples, resumed positions, and the prefetching ring under load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/prefetch.h"
#include "input_files.h"

#include <sched.h>

#define MAX_ROWS 64

static ty_sampler_config config_of(int64_t n, int64_t batch, bool shuffle, ty_tail tail)
{
    return (ty_sampler_config){
        .n_samples = n, .batch_size = batch, .shuffle = shuffle, .seed = 7, .stream = TY_STREAM_SHUFFLE, .tail = tail};
}

static void an_epoch_holds_every_sample_once(void **state)
{
    (void)state;
    for (int shuffle = 0; shuffle < 2; shuffle++)
        for (int64_t n = 1; n < 40; n++)
            for (int64_t batch = 1; batch < 12; batch++) {
                ty_sampler s;
                ty_error err = {0};
                ty_sampler_config c = config_of(n, batch, shuffle, TY_TAIL_PAD);
                assert_ok(ty_sampler_init(&s, &c, &err), &err);
                assert_int_equal(s.n_batches, (n + batch - 1) / batch);
                int seen[40] = {0};
                for (ty_position at = {.epoch = 3}; at.epoch == 3; at = ty_sampler_after(&s, at)) {
                    int64_t out[MAX_ROWS], valid = ty_sampler_batch(&s, at, out);
                    for (int64_t i = 0; i < batch; i++)
                        assert_true(out[i] >= 0 && out[i] < n);
                    for (int64_t i = 0; i < valid; i++)
                        seen[out[i]]++;
                }
                for (int64_t i = 0; i < n; i++)
                    assert_int_equal(seen[i], 1);
                ty_sampler_fini(&s);
            }
}

/* ---- samples that have lengths ---- */

enum { N_LONG = 103 };

static void some_lengths(uint32_t length[N_LONG])
{
    for (uint32_t i = 0; i < N_LONG; i++)
        length[i] = 1 + (i * 37 + i * i) % 64;
}

/* Of the batches of an epoch of one shard: how often each sample is there, and how much the lengths in a batch differ.
 */
static int64_t look_at_epoch(const ty_sampler_config *c, int seen[N_LONG])
{
    ty_sampler s;
    ty_error err = {0};
    int64_t out[MAX_ROWS], spread = 0;
    assert_ok(ty_sampler_init(&s, c, &err), &err);
    for (ty_position at = {.epoch = 2}; at.epoch == 2; at = ty_sampler_after(&s, at)) {
        int64_t valid = ty_sampler_batch(&s, at, out), least = INT64_MAX, most = 0;
        for (int64_t i = 0; i < c->batch_size; i++) {
            int64_t length = c->length ? c->length[out[i]] : 0;
            least = length < least ? length : least;
            most = length > most ? length : most;
            if (i < valid)
                seen[out[i]]++;
        }
        spread += most - least;
        assert_true(ty_sampler_longest(&s, at) >= most);
        if (c->n_shards <= 1)
            assert_int_equal(ty_sampler_longest(&s, at), most);
    }
    ty_sampler_fini(&s);
    return spread;
}

static void samples_of_like_length_come_together(void **state)
{
    (void)state;
    uint32_t length[N_LONG];
    some_lengths(length);
    for (int tail = 0; tail < 2; tail++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            int plain[N_LONG] = {0}, sorted[N_LONG] = {0}, all[N_LONG] = {0};
            ty_sampler_config c = config_of(N_LONG, 8, shuffle, (ty_tail)tail);
            look_at_epoch(&c, plain);
            c.length = length;
            int64_t as_they_come = look_at_epoch(&c, all);
            c.sorted_batches = 4;
            int64_t of_four = look_at_epoch(&c, sorted);
            /* The same samples, once each, whether they are sorted or not. */
            for (int i = 0; i < N_LONG; i++) {
                assert_int_equal(plain[i], all[i]);
                assert_int_equal(plain[i], sorted[i]);
                assert_in_range(plain[i], tail == TY_TAIL_PAD, 1);
            }
            assert_true(2 * of_four < as_they_come);
            c.sorted_batches = INT64_MAX;
            memset(sorted, 0, sizeof sorted);
            assert_true(3 * look_at_epoch(&c, sorted) < 2 * of_four);
        }
}

/* Shards share global batches; a position is the same batch however it was reached. */
static void sorted_batches_are_those_of_all_shards(void **state)
{
    (void)state;
    uint32_t length[N_LONG];
    some_lengths(length);
    ty_sampler whole, part;
    ty_sampler_config c = config_of(N_LONG, 8, true, TY_TAIL_DROP), half = c;
    c.length = half.length = length;
    c.sorted_batches = half.sorted_batches = 3;
    half.batch_size = 4;
    half.n_shards = 2;
    assert_int_equal(ty_sampler_init(&whole, &c, NULL), 0);
    for (half.shard = 0; half.shard < 2; half.shard++) {
        assert_int_equal(ty_sampler_init(&part, &half, NULL), 0);
        assert_int_equal(part.n_batches, whole.n_batches);
        for (int64_t i = part.n_batches - 1; i >= 0; i--) {
            int64_t a[8], b[4];
            ty_position at = {.epoch = i % 2, .batch = i};
            ty_sampler_batch(&whole, at, a);
            ty_sampler_batch(&part, at, b);
            assert_memory_equal(a + half.shard * 4, b, sizeof b);
            assert_int_equal(ty_sampler_longest(&part, at), ty_sampler_longest(&whole, at));
        }
        ty_sampler_fini(&part);
    }
    ty_sampler_fini(&whole);
}

static void orders_differ_by_epoch_and_seed_and_repeat_exactly(void **state)
{
    (void)state;
    int64_t a[50], b[50];
    ty_sampler s, other;
    ty_sampler_config c = config_of(50, 50, true, TY_TAIL_DROP), d = c;
    d.seed = 8;
    assert_int_equal(ty_sampler_init(&s, &c, NULL), 0);
    assert_int_equal(ty_sampler_init(&other, &d, NULL), 0);
    ty_sampler_batch(&s, (ty_position){0, 0}, a);
    ty_sampler_batch(&s, (ty_position){1, 0}, b);
    assert_memory_not_equal(a, b, sizeof a);
    ty_sampler_batch(&other, (ty_position){0, 0}, b);
    assert_memory_not_equal(a, b, sizeof a);
    ty_sampler_batch(&s, (ty_position){0, 0}, b);
    assert_memory_equal(a, b, sizeof a);
    ty_sampler_fini(&s);
    ty_sampler_fini(&other);
}

/* The global sequence is the same for 1, 2, 3 and 6 shards of a global batch of 6. */
static void shards_divide_the_same_global_batches(void **state)
{
    (void)state;
    for (int tail = 0; tail < 2; tail++)
        for (int64_t n_shards = 1; n_shards <= 6; n_shards += n_shards == 3 ? 3 : 1) {
            ty_sampler one, part;
            ty_sampler_config c = config_of(20, 6, true, (ty_tail)tail);
            assert_int_equal(ty_sampler_init(&one, &c, NULL), 0);
            for (int64_t shard = 0; shard < n_shards; shard++) {
                c.shard = shard;
                c.n_shards = n_shards;
                c.batch_size = 6 / n_shards;
                assert_int_equal(ty_sampler_init(&part, &c, NULL), 0);
                assert_int_equal(part.n_batches, tail == TY_TAIL_DROP ? 3 : 4);
                for (int64_t b = 0; b < part.n_batches; b++) {
                    int64_t whole[6], mine[6], first = shard * c.batch_size;
                    int64_t valid = ty_sampler_batch(&one, (ty_position){2, b}, whole);
                    int64_t own = ty_sampler_batch(&part, (ty_position){2, b}, mine);
                    assert_memory_equal(mine, whole + first, sizeof(int64_t) * (size_t)c.batch_size);
                    int64_t want = valid - first;
                    assert_int_equal(own, want < 0 ? 0 : want > c.batch_size ? c.batch_size : want);
                }
                ty_sampler_fini(&part);
            }
            ty_sampler_fini(&one);
        }
}

/* Hosts with samples of their own agree on a number of batches. */
static void an_epoch_may_have_an_agreed_length(void **state)
{
    (void)state;
    int64_t out[MAX_ROWS];
    ty_error err = {0};
    ty_sampler s;
    ty_sampler_config c = config_of(10, 3, true, TY_TAIL_DROP);
    c.epoch_batches = 2;
    assert_ok(ty_sampler_init(&s, &c, &err), &err);
    assert_int_equal(s.n_batches, 2);
    assert_int_equal(ty_sampler_after(&s, (ty_position){.batch = 1}).epoch, 1);
    ty_sampler_fini(&s);
    c.epoch_batches = 4;
    assert_int_equal(ty_sampler_init(&s, &c, &err), -1);
    assert_says(&err, "an epoch of 4 batches, and the data hold 3");
    c = config_of(4, 3, false, TY_TAIL_PAD);
    c.epoch_batches = 3;
    err = (ty_error){0};
    assert_ok(ty_sampler_init(&s, &c, &err), &err);
    assert_int_equal(ty_sampler_batch(&s, (ty_position){.batch = 0}, out), 3);
    assert_int_equal(ty_sampler_batch(&s, (ty_position){.batch = 1}, out), 1);
    assert_int_equal(ty_sampler_batch(&s, (ty_position){.batch = 2}, out), 0);
    ty_sampler_fini(&s);
}

/* More samples than a table of their order is made for. */
static void orders_of_very_many_samples_need_no_memory(void **state)
{
    (void)state;
    int64_t n = INT64_C(1000000000000), first[64], again[64], other[64];
    ty_sampler_config c = config_of(n, 64, true, TY_TAIL_PAD);
    ty_sampler s;
    ty_error err = {0};
    assert_ok(ty_sampler_init(&s, &c, &err), &err);
    assert_null(s.permutation);
    assert_int_equal(ty_sampler_batch(&s, (ty_position){.epoch = 2, .batch = 12345678901}, first), 64);
    assert_int_equal(ty_sampler_batch(&s, (ty_position){.epoch = 3, .batch = 12345678901}, other), 64);
    assert_int_equal(ty_sampler_batch(&s, (ty_position){.epoch = 2, .batch = 12345678901}, again), 64);
    assert_memory_equal(first, again, sizeof first);
    assert_int_not_equal(memcmp(first, other, sizeof first), 0);
    for (int i = 0; i < 64; i++) {
        assert_in_range(first[i], 0, n - 1);
        for (int k = 0; k < i; k++)
            assert_true(first[i] != first[k]);
    }
    ty_sampler_fini(&s);
}

static void impossible_samplers_are_refused(void **state)
{
    (void)state;
    struct {
        ty_sampler_config c;
        const char *says;
    } rows[] = {
        {config_of(10, 0, false, TY_TAIL_DROP), "batch_size 0"},
        {config_of(10, 11, false, TY_TAIL_DROP), "10 samples, fewer than one batch of 11"},
        {config_of(0, 1, false, TY_TAIL_PAD), "no samples"},
        {config_of(10, 1, false, TY_TAIL_DROP), "shard 2 of 2"},
        {config_of(INT64_MAX, 1, true, TY_TAIL_DROP), "cannot be put in another order"},
    };
    rows[3].c.shard = rows[3].c.n_shards = 2;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_sampler s;
        ty_error err = {0};
        assert_int_equal(ty_sampler_init(&s, &rows[i].c, &err), -1);
        assert_says(&err, rows[i].says);
        ty_sampler_fini(&s);
    }
}

static void steps_and_positions_agree(void **state)
{
    (void)state;
    ty_sampler s;
    ty_sampler_config c = config_of(10, 3, false, TY_TAIL_DROP);
    assert_int_equal(ty_sampler_init(&s, &c, NULL), 0);
    ty_position at = {0};
    for (int64_t step = 0; step < 20; step++, at = ty_sampler_after(&s, at)) {
        ty_position direct = ty_sampler_at_step(&s, step);
        assert_true(direct.epoch == at.epoch && direct.batch == at.batch);
    }
    ty_sampler_fini(&s);
}

/* --- Prefetch --- */

/* 23 rows: x = [i, -i], label = i. */
static ty_dataset *open_rows(void)
{
    char text[4096];
    size_t n = 0;
    for (int i = 0; i < 23; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d,%d,%d\n", i, -i, i);
    files_puts("rows.csv", text);
    ty_field f[2] = {ty_field_make("x"), ty_field_make("label")};
    f[0].columns = "0-1";
    f[1].columns = "2";
    f[1].dtype = TY_I64;
    f[1].dtype_given = true;
    ty_dataset *ds = NULL;
    ty_error err = {0};
    assert_ok(files_open("rows.csv", f, 2, (ty_data_source){0}, &ds, &err), &err);
    return ds;
}

static ty_prefetch *start_at(const ty_dataset *ds, ty_position at, int64_t until, int depth, ty_tail tail)
{
    ty_prefetch_config c = {
        .dataset = ds, .sampler = config_of(0, 4, true, tail), .start = at, .until_epoch = until, .depth = depth};
    ty_prefetch *p = NULL;
    ty_error err = {0};
    assert_ok(ty_prefetch_start(&c, &p, &err), &err);
    return p;
}

static void batches_come_in_order_with_their_rows(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    for (int depth = 2; depth <= 4; depth++) {
        ty_prefetch *p = start_at(ds, (ty_position){0}, 5, depth, TY_TAIL_PAD);
        assert_int_equal(ty_prefetch_batches_per_epoch(p), 6);
        assert_true(ty_prefetch_bytes(p) >= (size_t)depth * 4 * 16);
        const ty_batch *b;
        ty_error err = {0};
        int64_t n = 0;
        for (;;) {
            assert_ok(ty_prefetch_next(p, &b, &err), &err);
            if (b == NULL)
                break;
            assert_int_equal(b->at.epoch, n / 6);
            assert_int_equal(b->at.batch, n % 6);
            assert_int_equal(b->n_valid, n % 6 == 5 ? 3 : 4);
            assert_int_equal(b->n_rows, 4);
            assert_int_equal((uintptr_t)b->field[0].data % 64, 0);
            assert_int_equal((uintptr_t)b->field[1].data % 64, 0);
            char text[160];
            assert_string_equal(ty_type_text(&b->field[0].type, text, sizeof text), "f32[4,2]");
            const float *x = b->field[0].data;
            const int64_t *label = b->field[1].data;
            for (int i = 0; i < 4; i++) {
                assert_int_equal(label[i], b->samples[i]);
                assert_true(x[2 * i] == (float)label[i] && x[2 * i + 1] == -(float)label[i]);
            }
            ty_prefetch_release(p, b);
            n++;
        }
        assert_int_equal(n, 30);
        assert_int_equal(ty_prefetch_next(p, &b, &err), 0);
        assert_null(b);
        assert_true(ty_prefetch_waited_ms(p) >= 0);
        ty_prefetch_stop(p);
    }
    ty_dataset_close(ds);
}

static ty_prefetch *start_part(const ty_dataset *ds, ty_position at, ty_tail tail, int64_t shards, int depth)
{
    ty_prefetch_config c = {
        .dataset = ds, .sampler = config_of(0, 4, true, tail), .start = at, .until_epoch = 3, .depth = depth};
    c.sampler.n_shards = shards;
    c.sampler.shard = shards - 1;
    ty_prefetch *p = NULL;
    ty_error err = {0};
    assert_ok(ty_prefetch_start(&c, &p, &err), &err);
    return p;
}

/* Batches from a position on; how many there were. */
static int take_rest(ty_prefetch *p, int64_t (*labels)[5], ty_position *at)
{
    const ty_batch *b;
    int n = 0;
    for (; ty_prefetch_next(p, &b, NULL) == 0 && b; n++) {
        memcpy(labels[n], b->field[1].data, 4 * sizeof(int64_t));
        labels[n][4] = b->n_valid;
        at[n] = b->at;
        ty_prefetch_release(p, b);
    }
    ty_prefetch_stop(p);
    return n;
}

/* Whatever batch a run stopped at, the one that resumes there sees the rest of the same sequence: also of an epoch that
 * ends with a batch that is not full, and on the last of several ranks. */
static void a_resumed_run_sees_the_same_batches(void **state)
{
    (void)state;
    static const int batches[2][3] = {{15, 6, 3}, {18, 9, 6}}; /* of 23 rows, 3 epochs; by tail and shards */
    ty_dataset *ds = open_rows();
    int64_t all[18][5], rest[18][5];
    ty_position at[18], seen[18];
    for (int tail = TY_TAIL_DROP; tail <= TY_TAIL_PAD; tail++)
        for (int shards = 1; shards <= 3; shards++) {
            int n = take_rest(start_part(ds, (ty_position){0}, (ty_tail)tail, shards, 3), all, at);
            assert_int_equal(n, batches[tail][shards - 1]);
            for (int from = 0; from < n; from++) {
                assert_int_equal(take_rest(start_part(ds, at[from], (ty_tail)tail, shards, 2), rest, seen), n - from);
                assert_memory_equal(rest, all + from, (size_t)(n - from) * sizeof *all);
            }
        }
    ty_dataset_close(ds);
}

static void held_batches_are_not_overwritten(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    ty_prefetch *p = start_at(ds, (ty_position){0}, 0, 3, TY_TAIL_DROP);
    const ty_batch *held[3], *more;
    int64_t copy[3][4];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ty_prefetch_next(p, &held[i], NULL), 0);
        memcpy(copy[i], held[i]->field[1].data, sizeof copy[i]);
    }
    ty_error err = {0};
    assert_int_equal(ty_prefetch_next(p, &more, &err), -1);
    assert_int_equal(err.code, TY_E_INTERNAL);
    for (int i = 0; i < 100; i++)
        sched_yield();
    for (int i = 0; i < 3; i++)
        assert_memory_equal(held[i]->field[1].data, copy[i], sizeof copy[i]);
    ty_prefetch_release(p, held[0]);
    assert_int_equal(ty_prefetch_next(p, &more, NULL), 0);
    assert_int_equal(more->at.batch, 3);
    assert_memory_equal(held[1]->field[1].data, copy[1], sizeof copy[1]);
    ty_prefetch_stop(p);
    ty_dataset_close(ds);
}

static void stopping_at_any_moment_is_clean(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    for (int taken = 0; taken < 40; taken++) {
        ty_prefetch *p = start_at(ds, (ty_position){0}, taken % 3 == 0 ? 2 : 0, 2 + taken % 3, TY_TAIL_DROP);
        const ty_batch *b;
        for (int i = 0; i < taken % 9; i++) {
            assert_int_equal(ty_prefetch_next(p, &b, NULL), 0);
            ty_prefetch_release(p, b);
        }
        ty_prefetch_stop(p);
    }
    ty_prefetch_stop(NULL);
    ty_dataset_close(ds);
}

/* A dataset whose third batch cannot be read. */
static int faulty_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    (void)field;
    memset(out, 0, (size_t)n * ds->field[0].row_bytes);
    for (int64_t i = 0; i < n; i++)
        if (samples[i] == 9)
            return ty_error_set(err, TY_E_IO, "the disk is on fire");
    return 0;
}

static void errors_arrive_in_their_place_and_stay(void **state)
{
    (void)state;
    static const ty_dataset_ops ops = {.read = faulty_read};
    ty_field_info field = {.name = "x", .type = {.dtype = TY_F32}, .row_bytes = 4};
    ty_dataset ds = {.ops = &ops, .n_samples = 20, .n_fields = 1, .field = &field};
    for (int n_workers = 1; n_workers <= 5; n_workers++) {
        ty_prefetch_config c = {
            .dataset = &ds, .sampler = config_of(0, 4, false, TY_TAIL_DROP), .n_workers = n_workers};
        ty_prefetch *p;
        ty_error err = {0};
        assert_ok(ty_prefetch_start(&c, &p, &err), &err);
        const ty_batch *b;
        for (int i = 0; i < 2; i++) {
            assert_ok(ty_prefetch_next(p, &b, &err), &err);
            assert_int_equal(b->at.batch, i);
            ty_prefetch_release(p, b);
        }
        for (int i = 0; i < 3; i++) {
            err = (ty_error){0};
            assert_int_equal(ty_prefetch_next(p, &b, &err), -1);
            assert_int_equal(err.code, TY_E_IO);
            assert_says(&err, "epoch 0, batch 2: the disk is on fire");
        }
        ty_prefetch_stop(p);
    }
}

static ty_prefetch *start_workers(const ty_dataset *ds, int n_workers, int64_t until, ty_tail tail)
{
    ty_prefetch_config c = {
        .dataset = ds, .sampler = config_of(0, 4, true, tail), .until_epoch = until, .n_workers = n_workers};
    ty_prefetch *p = NULL;
    ty_error err = {0};
    assert_ok(ty_prefetch_start(&c, &p, &err), &err);
    return p;
}

/* However many decode: the same batches in the same order, each epoch ended by its last one. */
static void any_number_of_workers_gives_the_same_batches(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    int64_t expected[30][4];
    for (int n_workers = 1; n_workers <= 9; n_workers++) {
        ty_prefetch *p = start_workers(ds, n_workers, 5, TY_TAIL_PAD);
        const ty_batch *b;
        for (int i = 0; i < 30; i++) {
            assert_int_equal(ty_prefetch_next(p, &b, NULL), 0);
            if (n_workers == 1)
                memcpy(expected[i], b->field[1].data, sizeof expected[i]);
            assert_memory_equal(b->field[1].data, expected[i], sizeof expected[i]);
            assert_int_equal(b->ends_epoch, i % 6 == 5);
            char place[64], wanted[64];
            snprintf(wanted, sizeof wanted, "rows.csv:%lld", (long long)b->samples[2] + 1);
            assert_non_null(strstr(ty_prefetch_place(p, b, 1, 2, place, sizeof place), wanted));
            ty_prefetch_release(p, b);
        }
        assert_int_equal(ty_prefetch_next(p, &b, NULL), 0);
        assert_null(b);
        ty_prefetch_waits waits;
        ty_prefetch_measure(p, &waits);
        assert_int_equal(waits.n_workers, n_workers);
        assert_true(waits.parse_ms > 0 && waits.elapsed_ms >= waits.step_ms);
        assert_non_null(waits.cause);
        ty_prefetch_stop(p);
    }
    ty_dataset_close(ds);
}

/* What is left of an epoch is dropped, whatever of it lies in the ring, behind batches that are held. */
static void the_rest_of_an_epoch_can_be_skipped(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    for (int n_workers = 1; n_workers <= 4; n_workers++)
        for (int taken = 1; taken <= 5; taken++) {
            ty_prefetch *p = start_workers(ds, n_workers, 3, TY_TAIL_DROP);
            const ty_batch *b, *held = NULL;
            for (int i = 0; i < taken; i++) {
                if (held)
                    ty_prefetch_release(p, held);
                assert_int_equal(ty_prefetch_next(p, &held, NULL), 0);
            }
            int64_t before[4];
            memcpy(before, held->field[1].data, sizeof before);
            ty_prefetch_skip_epoch(p);
            for (int i = 0; i < 10; i++) {
                assert_int_equal(ty_prefetch_next(p, &b, NULL), 0);
                assert_int_equal(b->at.epoch, 1 + i / 5);
                assert_int_equal(b->at.batch, i % 5);
                assert_memory_equal(held->field[1].data, before, i == 0 ? sizeof before : 0);
                ty_prefetch_release(p, i == 0 ? held : b);
                if (i == 0)
                    ty_prefetch_release(p, b);
            }
            assert_int_equal(ty_prefetch_next(p, &b, NULL), 0);
            assert_null(b);
            ty_prefetch_stop(p);
        }
    ty_dataset_close(ds);
}

static void impossible_prefetches_are_refused(void **state)
{
    (void)state;
    ty_dataset *ds = open_rows();
    struct {
        int64_t batch_size, epoch, batch;
        int depth;
        const char *says;
    } rows[] = {{4, 0, 0, 1, "depth 1"},    {4, 0, 0, 17, "depth 17"}, {24, 0, 0, 2, "fewer than one batch"},
                {4, 0, 5, 2, "no batch 5"}, {4, -1, 0, 2, "epoch -1"}, {4, 0, -1, 2, "no batch -1"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_prefetch_config c = {.dataset = ds,
                                .sampler = config_of(0, rows[i].batch_size, false, TY_TAIL_DROP),
                                .start = {rows[i].epoch, rows[i].batch},
                                .depth = rows[i].depth};
        ty_prefetch *p;
        ty_error err = {0};
        assert_int_equal(ty_prefetch_start(&c, &p, &err), -1);
        assert_says(&err, rows[i].says);
    }
    ty_dataset_close(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_holds_every_sample_once),
        cmocka_unit_test(samples_of_like_length_come_together),
        cmocka_unit_test(sorted_batches_are_those_of_all_shards),
        cmocka_unit_test(orders_differ_by_epoch_and_seed_and_repeat_exactly),
        cmocka_unit_test(shards_divide_the_same_global_batches),
        cmocka_unit_test(an_epoch_may_have_an_agreed_length),
        cmocka_unit_test(impossible_samplers_are_refused),
        cmocka_unit_test(orders_of_very_many_samples_need_no_memory),
        cmocka_unit_test(steps_and_positions_agree),
        cmocka_unit_test(batches_come_in_order_with_their_rows),
        cmocka_unit_test(a_resumed_run_sees_the_same_batches),
        cmocka_unit_test(held_batches_are_not_overwritten),
        cmocka_unit_test(stopping_at_any_moment_is_clean),
        cmocka_unit_test(errors_arrive_in_their_place_and_stay),
        cmocka_unit_test(any_number_of_workers_gives_the_same_batches),
        cmocka_unit_test(the_rest_of_an_epoch_can_be_skipped),
        cmocka_unit_test(impossible_prefetches_are_refused),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
