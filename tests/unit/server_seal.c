/* What proves where a message comes from, and that it comes once (dist/server/seal.h), alone and at a shard. */
#include "dist/server/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SERVER = 77, WORKER = 9, ROWS = 4 };
static const uint8_t key[TY_SEAL_KEY_BYTES] = "the job's", other_key[TY_SEAL_KEY_BYTES] = "another's";
static const char catalogue[] =
    "{\"format\":1,\"shards\":1,\"workers\":1,\"mode\":\"async\",\"staleness\":0,\"backup\":0,\"variables\":["
    "{\"name\":\"w\",\"table\":false,\"hashed\":false,\"mod\":false,\"rows\":4,\"width\":1,\"parts\":1,\"seed\":0,"
    "\"scale\":0.0,\"rule\":{\"kind\":\"sgd\",\"nesterov\":false,\"rate\":1.0,\"momentum\":0.0,\"beta1\":0.0,"
    "\"beta2\":0.0,\"eps\":0.0,\"initial\":0.0,\"l1\":0.0,\"l2\":0.0,\"beta\":0.0}}]}";

typedef struct ear { /* what the shard has answered */
    int n;
    ty_parcel last;
    bool sealed;
} ear;

static void hear(void *ctx, int64_t peer, void *bytes, size_t n_bytes)
{
    ear *e = ctx;
    (void)peer;
    e->n++;
    e->sealed = ty_seal_holds(bytes, n_bytes, key, WORKER);
    memcpy(&e->last, bytes, sizeof e->last);
    free(bytes);
}

/* The message as it is sent, under this key to this process. */
static void *make(ty_parcel_kind kind, uint64_t sequence, uint64_t counter, const uint8_t *by, uint64_t to, size_t *n)
{
    static const float ones[ROWS] = {1, 1, 1, 1};
    ty_buf b;
    ty_error err = {0};
    ty_buf_init(&b, 1 << 16);
    ty_parcel_begin(&b, &(ty_parcel){.kind = kind,
                                     .incarnation = WORKER,
                                     .sequence = sequence,
                                     .oldest = sequence,
                                     .counter = counter,
                                     .scale = 1});
    if (kind == TY_PARCEL_HELLO)
        ty_parcel_add(&b, &(ty_part){.kind = TY_PART_TEXT, .n_bytes = strlen(catalogue), .bytes = catalogue});
    if (kind == TY_PARCEL_PUSH || kind == TY_PARCEL_SET)
        ty_parcel_add(&b, &(ty_part){.kind = TY_PART_DENSE, .n_values = ROWS, .values = ones});
    assert_int_equal(ty_parcel_end(&b, &err), 0);
    assert_int_equal(ty_seal(b.data, b.len, by, to, &err), 0);
    return ty_buf_detach(&b, n);
}

static void say(ty_shard *s, ty_parcel_kind kind, uint64_t sequence, uint64_t counter, const uint8_t *by, uint64_t to)
{
    size_t n;
    void *bytes = make(kind, sequence, counter, by, to, &n);
    ty_shard_take(s, bytes, n, 1, 1000);
}

static void codes(void **state)
{
    (void)state;
    size_t n;
    char *bytes = make(TY_PARCEL_PUSH, 1, 1, key, SERVER, &n);
    assert_true(ty_seal_holds(bytes, n, key, SERVER));
    assert_true(ty_seal_holds(bytes, n, key, SERVER)); /* looking changes nothing */
    assert_false(ty_seal_holds(bytes, n, key, SERVER + 1));
    assert_false(ty_seal_holds(bytes, n, other_key, SERVER));
    assert_false(ty_seal_holds(bytes, sizeof(ty_parcel) - 1, key, SERVER));
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 4;
        assert_false(ty_seal_holds(bytes, n, key, SERVER));
        bytes[i] ^= 4;
    }
    assert_true(ty_seal_holds(bytes, n, key, SERVER));
    free(bytes);
}

static void counters(void **state)
{
    (void)state;
    ty_seal_window w = {0};
    static const struct {
        uint64_t incarnation, counter;
        bool is_new;
    } rows[] = {{5, 0, false}, {5, 1, true},   {5, 1, false},   {5, 3, true},   {5, 2, true},  {5, 2, false},
                {5, 90, true}, {5, 26, false}, {5, 27, true},   {5, 27, false}, {5, 89, true}, {4, 91, false},
                {6, 1, true},  {6, 1, false},  {5, 100, false}, {6, 64, true},  {6, 65, true}, {6, 2, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ty_seal_is_new(&w, rows[i].incarnation, rows[i].counter) != rows[i].is_new)
            fail_msg("row %zu", i);
}

static void shard_listens(void **state)
{
    (void)state;
    ear e = {0};
    ty_shard s;
    ty_error err = {0};
    ty_shard_options o = {.incarnation = SERVER, .answer = hear, .ctx = &e, .key = key};
    assert_int_equal(ty_shard_init(&s, &o, &err), 0);
    say(&s, TY_PARCEL_HELLO, 0, 1, other_key, SERVER);
    say(&s, TY_PARCEL_HELLO, 0, 1, other_key, 0);
    say(&s, TY_PARCEL_HELLO, 0, 1, key, SERVER + 1);
    assert_int_equal(e.n, 0);
    assert_int_equal(s.counts.strange, 3);
    assert_false(s.known);
    say(&s, TY_PARCEL_HELLO, 0, 1, key, 0); /* who asks gets the number, and nothing else happens */
    assert_int_equal(e.n, 1);
    assert_true(e.sealed && (e.last.flags & TY_PARCEL_IS_NUMBER) && e.last.incarnation == SERVER);
    assert_false(s.known);
    say(&s, TY_PARCEL_HELLO, 0, 2, key, SERVER);
    say(&s, TY_PARCEL_SET, 1, 3, key, SERVER);
    say(&s, TY_PARCEL_READY, 2, 4, key, SERVER);
    say(&s, TY_PARCEL_PUSH, 3, 5, key, SERVER);
    assert_int_equal(e.n, 5);
    assert_int_equal(e.last.status, 0);
    assert_true(s.known);
    assert_true(s.rows[0].weight[0] == 0 && s.version == 1);
    say(&s, TY_PARCEL_PUSH, 3, 5, key, SERVER); /* recorded, and said again */
    say(&s, TY_PARCEL_LEAVE, 0, 3, key, SERVER);
    assert_int_equal(e.n, 5);
    assert_int_equal(s.counts.replayed, 2);
    say(&s, TY_PARCEL_PUSH, 3, 6, key, SERVER); /* sent again by the worker: answered, not counted */
    assert_int_equal(e.n, 6);
    assert_true(s.rows[0].weight[0] == 0 && s.version == 1);
    say(&s, TY_PARCEL_PUSH, 4, 7, other_key, SERVER);
    say(&s, TY_PARCEL_LEAVE, 0, 8, other_key, SERVER);
    assert_true(s.rows[0].weight[0] == 0 && s.version == 1 && !ty_shard_finished(&s));
    say(&s, TY_PARCEL_LEAVE, 0, 9, key, SERVER);
    say(&s, TY_PARCEL_BEAT, 0, 10, key, SERVER); /* what was still on its way is no return */
    assert_true(ty_shard_finished(&s));
    ty_shard_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(codes), cmocka_unit_test(counters),
                                       cmocka_unit_test(shard_listens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
