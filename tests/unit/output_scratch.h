/* output_scratch.h - a folder for one test, and files as bytes. For tests of container/output alone. */
#ifndef TY_TESTS_OUTPUT_SCRATCH_H
#define TY_TESTS_OUTPUT_SCRATCH_H

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The path is in *state during a test. */
static inline int scratch_setup(void **state)
{
    const char *base = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/trainyard-test-XXXXXX", base ? base : "/tmp");
    *state = mkdtemp(path) ? strdup(path) : NULL;
    return *state ? 0 : -1;
}

static inline int scratch_teardown(void **state)
{
    int rc = ty_file_remove_tree(*state, NULL);
    free(*state);
    return rc;
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

/* "DIR/NAME" in one of a few static buffers. */
static inline const char *in(void **state, const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", (char *)*state, name);
    return path;
}

static inline void put_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The whole file; free() it. Always followed by a NUL. */
static inline char *get_file(const char *path, size_t *n)
{
    ty_buf b;
    ty_error err = {0};
    ty_buf_init(&b, 64 << 20);
    if (ty_file_read(path, &b, &err) < 0)
        fail_msg("%s", err.message);
    return ty_buf_detach(&b, n);
}

#define assert_ok(call)                                             \
    do {                                                            \
        err = (ty_error){0};                                        \
        if ((call) < 0)                                             \
            fail_msg("%s: %s (%s)", #call, err.message, err.place); \
    } while (0)

/* Fails with this code, and the text is part of the message. */
#define assert_error(call, error_code, text)                                                                           \
    do {                                                                                                               \
        err = (ty_error){0};                                                                                           \
        assert_int_equal((call), -1);                                                                                  \
        if (err.code != (error_code) || !strstr(err.message, (text)))                                                  \
            fail_msg("%s: code %d, \"%s\"; expected code %d, \"%s\"", #call, err.code, err.message, (int)(error_code), \
                     (text));                                                                                          \
    } while (0)

#endif
