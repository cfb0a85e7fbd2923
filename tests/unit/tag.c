/* Lines of ranks: whole, in order, tagged, whatever pieces they come in, however slowly they are taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "dist/agent/tag.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Feeds the text in pieces of n bytes and returns what comes out. The caller frees. */
static char *in_pieces(const char *text, size_t n)
{
    ty_tag t;
    ty_buf lines;
    ty_tag_init(&t, 12, 2);
    ty_buf_init(&lines, 64 << 20);
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i += n)
        assert_int_equal(ty_tag_feed(&t, text + i, len - i < n ? len - i : n, false, &lines), 0);
    assert_int_equal(ty_tag_feed(&t, NULL, 0, true, &lines), 0);
    ty_tag_fini(&t);
    char *out = strdup(lines.data);
    ty_buf_fini(&lines);
    return out;
}

static void test_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", ""},
        {"one\n", "[1,12]<stderr>:one\n"},
        {"one\ntwo\n", "[1,12]<stderr>:one\n[1,12]<stderr>:two\n"},
        {"\n\n", "[1,12]<stderr>:\n[1,12]<stderr>:\n"},
        {"no end", "[1,12]<stderr>:no end\n"},
        {"a\rb\tc\x1b[0m\nrest", "[1,12]<stderr>:a\rb\tc\x1b[0m\n[1,12]<stderr>:rest\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 1; n < 12; n++) {
            char *out = in_pieces(rows[i].in, n);
            assert_string_equal(out, rows[i].out);
            free(out);
        }
}

static void test_long_lines(void **state)
{
    (void)state;
    size_t n = TY_TAG_LINE_BYTES, tag = strlen("[1,12]<stderr>:");
    char *text = malloc(2 * n + 2);
    memset(text, 'x', 2 * n + 1);
    text[2 * n + 1] = 0;
    text[n] = '\n'; /* the first line is as long as a line may be, the second too */
    char *out = in_pieces(text, 10007);
    assert_int_equal(strlen(out), 2 * (tag + n + 1));
    free(out);
    text[n] = 'y'; /* one line, twice as long as it may be and one more */
    out = in_pieces(text, 65536);
    assert_int_equal(strlen(out), 2 * n + 1 + 3 * (tag + 1));
    assert_int_equal(out[tag + n], '\n');
    free(out);
    free(text);
}

static void *read_all(void *arg)
{
    ty_buf *b = arg;
    char chunk[65536];
    ssize_t n;
    while ((n = read(*(int *)b[1].data, chunk, sizeof chunk)) > 0)
        ty_buf_add(b, chunk, (size_t)n);
    return NULL;
}

/* Standard output is a pipe that nobody reads until all was added. */
static void test_writer(void **state)
{
    (void)state;
    int pipe_fds[2], saved = dup(STDOUT_FILENO), room = eventfd(0, EFD_NONBLOCK);
    assert_int_equal(pipe(pipe_fds), 0);
    dup2(pipe_fds[1], STDOUT_FILENO);
    close(pipe_fds[1]);
    ty_tag_writer *w;
    ty_error err = {0};
    int rc = ty_tag_writer_open(&w, room, &err);
    ty_buf line, got[2];
    ty_buf_init(&line, 1 << 20);
    ty_buf_init(&got[0], 64 << 20);
    got[1].data = (char *)&pipe_fds[0];
    size_t added = 0;
    int n = 0;
    for (; rc == 0 && !ty_tag_writer_is_full(w); n++) {
        ty_buf_clear(&line);
        ty_buf_addf(&line, "line %d %0*d\n", n, n % 9000, 7);
        ty_tag_writer_add(w, 1, line.data, line.len);
        added += line.len;
    }
    pthread_t reader;
    pthread_create(&reader, NULL, read_all, got);
    struct pollfd p = {.fd = room, .events = POLLIN};
    int has_room = poll(&p, 1, 300000);
    ty_tag_writer_close(w);
    dup2(saved, STDOUT_FILENO); /* the last one to have the pipe's end */
    pthread_join(reader, NULL);
    close(saved), close(room), close(pipe_fds[0]);

    assert_int_equal(rc, 0);
    assert_int_equal(has_room, 1);
    assert_true(added > TY_TAG_WRITER_BYTES);
    assert_int_equal(got[0].len, added);
    char *at = got[0].data;
    for (int i = 0; i < n; i++, at = strchr(at, '\n') + 1)
        assert_int_equal(strtol(at + 5, NULL, 10), i);
    ty_buf_fini(&line);
    ty_buf_fini(&got[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
