/* The end of a program's stderr: what of it reaches a report. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "entrypoint/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *lines_of(const char *bytes, size_t n, size_t piece, size_t max_bytes)
{
    static ty_stderr_tail tail;
    ty_buf out;
    memset(&tail, 0, sizeof tail);
    for (size_t at = 0; at < n; at += piece)
        ty_stderr_tail_add(&tail, bytes + at, n - at < piece ? n - at : piece);
    ty_buf_init(&out, 1 << 16);
    ty_stderr_tail_lines(&tail, max_bytes, &out);
    return ty_buf_detach(&out, NULL);
}

static void cleaning(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"", ""},
        {"one\n", "one"},
        {"one", "one"},
        {"one\n\n\ntwo \n", "one\ntwo"},
        {"same\nsame\nsame\nother\nsame\n", "same\nother\nsame"},
        {"10%\r20%\r30%\n", "10%\n20%\n30%"},
        {"\x1b[31mred\x1b[0m \x1b[1;4Hx\n", "red x"},
        {"\x1b]0;title\x07text\x1b]8;;u\x1b\\link\n", "textlink"},
        {"a\x01\x02\x7f"
         "b\tc\n",
         "ab c"},
        {"caf\xc3\xa9 \xff\xc3( \xed\xa0\x80 \xf0\x9f\x99\x82\n", "caf\xc3\xa9 ?\x3f( ??\x3f \xf0\x9f\x99\x82"},
        {"c1 \xc2\x9b"
         "31m\n",
         "c1 31m"},
        {"end in escape \x1b", "end in escape"},
        {"end in csi \x1b[31", "end in csi"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece <= 64; piece += 7) {
            char *out = lines_of(rows[i].in, strlen(rows[i].in), piece, 1000);
            assert_string_equal(out, rows[i].out);
            free(out);
        }
}

static void the_end_is_kept_within_the_limit(void **state)
{
    (void)state;
    char *text = malloc(400000), *out;
    size_t n = 0;
    for (int i = 0; i < 20000; i++)
        n += (size_t)sprintf(text + n, "line number %d\n", i);
    for (size_t piece = 1; piece < 30000; piece = piece * 7 + 1) {
        out = lines_of(text, n, piece, 40);
        assert_string_equal(out, "line number 19998\nline number 19999");
        free(out);
    }
    out = lines_of("abcdefgh\xc3\xa9xyz", 13, 4, 5); /* a long last line: its end, at a character */
    assert_string_equal(out, "\xc3\xa9xyz");
    free(out);
    out = lines_of("abcdefgh\xc3\xa9xyz", 13, 4, 4);
    assert_string_equal(out, "xyz");
    free(out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cleaning),
        cmocka_unit_test(the_end_is_kept_within_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
