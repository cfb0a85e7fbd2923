/* input_fifos.c - the FIFOs of a channel in Pipe mode: turns, waiting, objects in records, manifests. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_tryjoin_np */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "input_feeder.h"

#include <fcntl.h>

/* A feed for each evaluation, each with the next FIFO; one that ends early closes its FIFO. */
static void feeds_of_a_channel_take_turns(void **state)
{
    (void)state;
    run_batch got[64];
    feeder f = {0};
    put_files(JSON);
    feed(&f, files_path("data"), 4);
    ty_stream_config c = pipe_of(JSON);
    ty_stream *s = open_stream(&c), *other;
    ty_error err = {0};
    assert_int_equal(ty_stream_open(&c, &other, &err), -1);
    assert_says(&err, "the channel \"train\" is being read already, by process");
    for (int i = 0; i < 4; i++) {
        reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD}, (ty_position){0}, 1, 1);
        bool early = i == 1;
        assert_int_equal(take(&r, got, early ? 2 : 64), early ? 2 : 14);
        stop(&r);
    }
    ty_stream_close(s);
    fed(&f);
    assert_int_equal(next_fifo(), 4);
}

static void a_fifo_that_lets_wait_is_named(void **state)
{
    (void)state;
    ty_stream *s;
    ty_error err = {0};
    ty_file_remove_tree(files_path("input"), NULL);
    ty_file_remove_tree(files_path("state"), NULL);
    mkdir(files_path("input"), 0777);
    ty_stream_config c = pipe_of(JSON);
    c.timeout_ms = 60;
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "the FIFO of an epoch did not appear within 0.06 s");
    assert_says(&err, "input/train_0");
    assert_int_equal(mkfifo(files_path("input/train_0"), 0666), 0);
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "nobody opened the FIFO for writing within 0.06 s");
    unlink(files_path("input/train_0"));
    files_puts("input/train_0", "no FIFO");
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "expected a FIFO, found something else");
    unlink(files_path("input/train_0"));
    assert_int_equal(mkfifo(files_path("input/train_0"), 0666), 0);
    int fd = open(files_path("input/train_0"), O_RDWR);
    assert_int_equal(write(fd, "{\"x\": [1, -1]", 13), 13);
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "no more bytes came within 0.06 s");
    close(fd);
    assert_int_equal(next_fifo(), 1); /* only the one that was written to is over */
}

/* Objects in RecordIO, several records each; and the attributes of an augmented manifest. */
static void wrapped_objects_are_read(void **state)
{
    (void)state;
    for (int k = TFRECORD; k <= LINES; k++) {
        put_files((kind)k);
        feeder f = {.config.wrap = true};
        feed(&f, files_path("data"), 1);
        ty_stream_config c = pipe_of((kind)k);
        c.wrapped = true;
        c.block_bytes = 97;
        ty_stream *s = open_stream(&c);
        run_batch got[32];
        reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD, .shuffle_rows = 5}, (ty_position){0}, 1, 2);
        assert_int_equal(take(&r, got, 32), 14);
        stop(&r);
        ty_stream_close(s);
        fed(&f);
    }
}

static void attributes_of_a_manifest_are_samples(void **state)
{
    (void)state;
    static const char *const names[] = {"label", "x", "source-ref"};
    ty_buf text = new_buf();
    for (int i = 0; i < N_RECORDS; i++)
        ty_buf_addf(&text, "{\"source-ref\": \"object\", \"x\": [%d, %d], \"other\": \"%d\", \"label\": %d}\n", i, -i,
                    i, i);
    files_put("all.manifest", text.data, text.len);
    files_puts("object", "abc");
    ty_buf_fini(&text);
    for (int block = 0; block < 2; block++) {
        feeder f = {.config = {.attributes = names, .n_attributes = 3}};
        feed(&f, files_path("all.manifest"), 1);
        ty_stream_config c = pipe_of(JSON);
        ty_field three[3] = {fields[0], fields[1], ty_field_make("bytes")};
        three[2].member = "source-ref";
        c.fields = three;
        c.n_fields = 3;
        c.attributes = names;
        c.n_attributes = 3;
        c.block_bytes = block ? 50 : 0;
        ty_stream *s = open_stream(&c);
        run_batch got[32];
        reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD}, (ty_position){0}, 1, 2);
        assert_int_equal(take(&r, got, 1), 1);
        assert_int_equal(take(&r, got, 32), 13);
        stop(&r);
        ty_stream_close(s);
        fed(&f);
    }
    /* One record too many. */
    feeder f = {.config = {.attributes = names, .n_attributes = 1}};
    feed(&f, files_path("all.manifest"), 1);
    ty_stream_config c = pipe_of(JSON);
    c.fields = &fields[1];
    c.n_fields = 1;
    c.attributes = names;
    c.n_attributes = 2;
    ty_stream *s = open_stream(&c);
    reading r = start(s, (ty_stream_order){.tail = TY_TAIL_PAD}, (ty_position){0}, 1, 1);
    const ty_batch *b;
    ty_error err = {0};
    int rc;
    while ((rc = ty_prefetch_next(r.prefetch, &b, &err)) == 0 && b)
        ty_prefetch_release(r.prefetch, b);
    assert_int_equal(rc, -1);
    assert_says(&err, "the stream ends within a sample: expected 2 records for it, found 1");
    stop(&r);
    ty_stream_close(s);
    fed(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(feeds_of_a_channel_take_turns),
        cmocka_unit_test(a_fifo_that_lets_wait_is_named),
        cmocka_unit_test(wrapped_objects_are_read),
        cmocka_unit_test(attributes_of_a_manifest_are_samples),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
