/* The link between agents: what a stranger, a forger and a slow peer can do to it, which is nothing. */
#include "dist/agent/link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct inbox {
    int n, kind, refuse;
    ty_buf payload; /* of the last frame */
} inbox;

static int take(void *ctx, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err)
{
    inbox *in = ctx;
    in->n++;
    in->kind = kind;
    ty_buf_clear(&in->payload);
    ty_buf_add(&in->payload, n_bytes ? (const void *)payload : "", n_bytes);
    return in->refuse ? ty_error_set(err, TY_E_DATA, "refused by the test") : 0;
}

typedef struct pair {
    ty_link there, here; /* connecting, listening */
    inbox from_here, from_there;
} pair;

static void begin(pair *p, const char *secret_there, const char *secret_here)
{
    uint8_t key[TY_LINK_KEY_BYTES];
    memset(p, 0, sizeof *p);
    ty_buf_init(&p->from_here.payload, 1 << 26);
    ty_buf_init(&p->from_there.payload, 1 << 26);
    assert_int_equal(ty_link_key(secret_there, strlen(secret_there), "job", key, NULL), 0);
    assert_int_equal(ty_link_init(&p->there, key, false, NULL, NULL), 0);
    assert_int_equal(ty_link_key(secret_here, strlen(secret_here), "job", key, NULL), 0);
    assert_int_equal(ty_link_init(&p->here, key, true, NULL, NULL), 0);
}

static void end(pair *p)
{
    ty_link_fini(&p->there);
    ty_link_fini(&p->here);
    ty_buf_fini(&p->from_here.payload);
    ty_buf_fini(&p->from_there.payload);
}

/* Carries what one side has to say to the other, in pieces of `piece` bytes. */
static int carry(ty_link *from, ty_link *to, inbox *in, size_t piece, ty_error *err)
{
    while (from->out.len > 0) {
        size_t n = from->out.len < piece ? from->out.len : piece;
        char *bytes = malloc(n);
        memcpy(bytes, from->out.data, n);
        ty_link_sent(from, n);
        int rc = ty_link_take(to, bytes, n, take, in, err);
        free(bytes);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static void shake(pair *p, size_t piece)
{
    for (int round = 0; round < 3; round++) {
        assert_int_equal(carry(&p->there, &p->here, &p->from_there, piece, NULL), 0);
        assert_int_equal(carry(&p->here, &p->there, &p->from_here, piece, NULL), 0);
    }
    assert_int_equal(p->there.state, TY_LINK_OPEN);
    assert_int_equal(p->here.state, TY_LINK_OPEN);
}

static void test_frames(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 7, 48, 1 << 20};
    static const size_t sizes[] = {0, 1, 15, 16, 17, 4096, 100000};
    for (size_t i = 0; i < 4; i++) {
        pair p;
        begin(&p, "secret", "secret");
        shake(&p, pieces[i]);
        char *bytes = calloc(1, 100000);
        for (size_t k = 0; k < 7; k++) {
            memset(bytes, (int)k + 1, sizes[k]);
            assert_int_equal(ty_link_send(&p.there, (int)k + 3, bytes, sizes[k], NULL), 0);
            assert_int_equal(carry(&p.there, &p.here, &p.from_there, pieces[i], NULL), 0);
            assert_int_equal(p.from_there.n, k + 1);
            assert_int_equal(p.from_there.kind, k + 3);
            assert_int_equal(p.from_there.payload.len, sizes[k]);
            assert_memory_equal(p.from_there.payload.data, bytes, sizes[k]);
            assert_int_equal(ty_link_send(&p.here, 9, bytes, sizes[k], NULL), 0);
        }
        assert_int_equal(carry(&p.here, &p.there, &p.from_here, pieces[i], NULL), 0);
        assert_int_equal(p.from_here.n, 7);
        free(bytes);
        end(&p);
    }
}

static void test_wrong_secret(void **state)
{
    (void)state;
    pair p;
    ty_error err = {0};
    begin(&p, "secret", "another");
    assert_int_equal(carry(&p.here, &p.there, &p.from_here, 100, NULL), 0);
    assert_int_equal(carry(&p.there, &p.here, &p.from_there, 100, &err), -1);
    assert_int_equal(err.code, TY_E_PERMISSION);
    assert_int_equal(p.here.out.len, 0); /* nothing was given away that a secret could be tried against */
    assert_int_equal(ty_link_take(&p.here, "x", 1, take, &p.from_there, &err), -1);
    end(&p);

    uint8_t one[TY_LINK_KEY_BYTES], two[TY_LINK_KEY_BYTES];
    ty_link_key("s", 1, "job-1", one, NULL);
    ty_link_key("s", 1, "job-2", two, NULL);
    assert_memory_not_equal(one, two, sizeof one);
    assert_int_equal(ty_link_key("", 0, "job", one, &err), -1);
}

/* A stranger that sends one's own bytes back passes as nobody. */
static void test_reflection(void **state)
{
    (void)state;
    uint8_t key[TY_LINK_KEY_BYTES] = {1};
    for (int listening = 0; listening < 2; listening++) {
        ty_link l;
        ty_error err = {0};
        inbox in = {0};
        ty_link_init(&l, key, listening, NULL, NULL);
        int rc = 0;
        for (int round = 0; round < 3 && rc == 0 && l.out.len > 0; round++) {
            char bytes[256];
            size_t n = l.out.len;
            memcpy(bytes, l.out.data, n);
            ty_link_sent(&l, n);
            rc = ty_link_take(&l, bytes, n, take, &in, &err);
        }
        assert_int_not_equal(l.state, TY_LINK_OPEN);
        ty_link_fini(&l);
    }
}

static void test_garbage(void **state)
{
    (void)state;
    static const char *const greetings[] = {"GET / HTTP/1.1\r\nHost: algo-1\r\nAccept: everything\r\n\r\n",
                                            "SSH-2.0-OpenSSH_9.2p1 Debian-2 and more so that it is forty",
                                            "TYLINK0\n0123456789012345678901234567890123456789"};
    for (size_t i = 0; i < 3; i++) {
        pair p;
        ty_error err = {0};
        begin(&p, "s", "s");
        assert_int_equal(ty_link_take(&p.here, greetings[i], strlen(greetings[i]), take, &p.from_there, &err), -1);
        assert_int_equal(err.code, TY_E_DATA);
        assert_int_equal(p.from_there.n, 0);
        end(&p);
    }
}

/* One bit anywhere in a frame, or in the handshake, is one too many. */
static void test_every_bit(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * (TY_LINK_HEAD_BYTES + 5 + TY_LINK_MAC_BYTES); bit++) {
        pair p;
        begin(&p, "s", "s");
        shake(&p, 100);
        ty_link_send(&p.there, 3, "hello", 5, NULL);
        p.there.out.data[bit / 8] ^= (char)(1 << (bit % 8));
        int rc = carry(&p.there, &p.here, &p.from_there, 100, NULL);
        /* A longer length waits for more bytes; all else is refused at once. */
        assert_true(rc < 0 || bit < 32);
        assert_int_equal(p.from_there.n, 0);
        end(&p);
    }
    for (size_t bit = 0; bit < 8 * 72; bit++) {
        pair p;
        begin(&p, "s", "s");
        carry(&p.here, &p.there, &p.from_here, 100, NULL);
        assert_int_equal(p.there.out.len, 72);
        p.there.out.data[bit / 8] ^= (char)(1 << (bit % 8));
        assert_int_equal(carry(&p.there, &p.here, &p.from_there, 100, NULL), -1);
        assert_int_not_equal(p.here.state, TY_LINK_OPEN);
        end(&p);
    }
}

static void test_replay(void **state)
{
    (void)state;
    pair p;
    ty_error err = {0};
    begin(&p, "s", "s");
    shake(&p, 100);
    ty_link_send(&p.there, 3, "stop", 4, NULL);
    char frame[256];
    size_t n = p.there.out.len;
    memcpy(frame, p.there.out.data, n);
    assert_int_equal(carry(&p.there, &p.here, &p.from_there, 100, NULL), 0);
    assert_int_equal(ty_link_take(&p.here, frame, n, take, &p.from_there, &err), -1);
    assert_non_null(strstr(err.message, "replayed"));
    assert_int_equal(p.from_there.n, 1);
    /* Nor does it come back to who sent it. */
    assert_int_equal(ty_link_take(&p.there, frame, n, take, &p.from_here, &err), -1);
    end(&p);

    /* A whole conversation, played to a new listener: its nonce is another. */
    begin(&p, "s", "s");
    char tape[512];
    size_t n_tape = 0;
    for (int round = 0; round < 3; round++) {
        memcpy(tape + n_tape, p.there.out.data, p.there.out.len);
        n_tape += p.there.out.len;
        carry(&p.there, &p.here, &p.from_there, 100, NULL);
        carry(&p.here, &p.there, &p.from_here, 100, NULL);
    }
    pair q;
    begin(&q, "s", "s");
    assert_int_equal(ty_link_take(&q.here, tape, n_tape, take, &q.from_there, &err), -1);
    assert_int_equal(err.code, TY_E_PERMISSION);
    end(&q);
    end(&p);
}

static void test_oversize(void **state)
{
    (void)state;
    pair p;
    ty_error err = {0};
    begin(&p, "s", "s");
    shake(&p, 100);
    static const uint8_t head[TY_LINK_HEAD_BYTES] = {0xff, 0xff, 0xff, 0x7f, 3};
    assert_int_equal(ty_link_take(&p.here, head, sizeof head, take, &p.from_there, &err), -1);
    assert_int_equal(err.code, TY_E_LIMIT);
    assert_int_equal(ty_link_send(&p.there, 3, head, (size_t)TY_LINK_PAYLOAD_BYTES + 1, &err), -1);
    end(&p);

    /* The other side takes nothing: the queue is bounded. */
    begin(&p, "s", "s");
    shake(&p, 100);
    char *bytes = calloc(1, TY_LINK_PAYLOAD_BYTES);
    int sent = 0;
    while (sent < 10 && ty_link_send(&p.there, 3, bytes, TY_LINK_PAYLOAD_BYTES, &err) == 0)
        sent++;
    assert_in_range(sent, 1, 4);
    assert_int_equal(err.code, TY_E_LIMIT);
    free(bytes);
    end(&p);
}

static void test_refused_by_the_taker(void **state)
{
    (void)state;
    pair p;
    ty_error err = {0};
    begin(&p, "s", "s");
    shake(&p, 100);
    p.from_there.refuse = 1;
    ty_link_send(&p.there, 3, "a", 1, NULL);
    ty_link_send(&p.there, 3, "b", 1, NULL);
    assert_int_equal(carry(&p.there, &p.here, &p.from_there, 1000, &err), -1);
    assert_int_equal(p.from_there.n, 1);
    assert_int_equal(p.here.state, TY_LINK_FAILED);
    end(&p);
    begin(&p, "s", "s");
    assert_int_equal(ty_link_send(&p.there, 3, "a", 1, &err), -1); /* before it is open */
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),     cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_reflection), cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_every_bit),  cmocka_unit_test(test_replay),
        cmocka_unit_test(test_oversize),   cmocka_unit_test(test_refused_by_the_taker),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
