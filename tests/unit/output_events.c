/* TensorBoard event files and their framing, byte by byte. */
#include "output_scratch.h"

#include "base/hash.h"
#include "container/output/events.h"
#include "container/output/tfrecord.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static const unsigned char version_record[] = {0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa3, 0x7f,
                                               0x4b, 0x22, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8,
                                               0x3f, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45,
                                               0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32, 0x2a, 0x28, 0x64, 0x6c};
static const unsigned char scalar_record[] = {
    0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x95, 0xf5, 0xd0, 0x5f, 0x09, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x04, 0x40, 0x10, 0x07, 0x2a, 0x23, 0x0a, 0x21, 0x0a, 0x04, 0x6c, 0x6f, 0x73,
    0x73, 0x4a, 0x0d, 0x0a, 0x09, 0x0a, 0x07, 0x73, 0x63, 0x61, 0x6c, 0x61, 0x72, 0x73, 0x20, 0x01,
    0x42, 0x0a, 0x08, 0x01, 0x12, 0x00, 0x2a, 0x04, 0x00, 0x00, 0x80, 0x3e, 0xff, 0x10, 0xff, 0x0c};

static void test_crc_vectors(void **state)
{
    (void)state;
    unsigned char zeros[32] = {0}, ones[32];
    memset(ones, 0xff, sizeof ones);
    assert_int_equal(ty_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(ty_crc32c_mask(0xe3069283u), 0xc78ab0e5u);
    assert_int_equal(ty_crc32c(0, zeros, 32), 0x8a9136aau);
    assert_int_equal(ty_crc32c(0, ones, 32), 0x62a8ab43u);
    assert_int_equal(ty_crc32c(0, "", 0), 0u);
    assert_int_equal(ty_crc32c_mask(0), 0xa282ead8u);
}

static void test_vector_records(void **state)
{
    (void)state;
    ty_buf message, file;
    ty_buf_init(&message, 4096);
    ty_buf_init(&file, 4096);
    assert_int_equal(ty_event_version(&message, 1.5), 0);
    assert_int_equal(ty_tfrecord_add(&file, message.data, message.len), 0);
    ty_buf_clear(&message);
    assert_int_equal(ty_event_scalar(&message, 2.5, 7, "loss", 0.25f, true), 0);
    assert_int_equal(ty_tfrecord_add(&file, message.data, message.len), 0);
    assert_int_equal(file.len, sizeof version_record + sizeof scalar_record);
    assert_memory_equal(file.data, version_record, sizeof version_record);
    assert_memory_equal(file.data + 40, scalar_record, sizeof scalar_record);
    ty_buf_fini(&message);
    ty_buf_fini(&file);
}

/* Each bit of a record matters: whatever is flipped, the reader does not hand the payload out as good. */
static void test_record_flips(void **state)
{
    (void)state;
    unsigned char bytes[sizeof scalar_record];
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        memcpy(bytes, scalar_record, sizeof bytes);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        size_t at = 0, n = 0;
        const void *payload = NULL;
        ty_tfrecord_status status = ty_tfrecord_next(bytes, sizeof bytes, 1 << 20, &at, &payload, &n);
        assert_int_equal(status, bit / 8 < 12 ? TY_TFRECORD_BAD_LENGTH : TY_TFRECORD_BAD_PAYLOAD);
    }
}

static void test_record_truncated(void **state)
{
    (void)state;
    for (size_t n = 0; n <= sizeof scalar_record; n++) {
        size_t at = 0, payload_bytes = 0;
        const void *payload;
        ty_tfrecord_status status = ty_tfrecord_next(scalar_record, n, 1 << 20, &at, &payload, &payload_bytes);
        assert_int_equal(status, n == 0                     ? TY_TFRECORD_END
                                 : n < sizeof scalar_record ? TY_TFRECORD_TORN
                                                            : TY_TFRECORD_OK);
        assert_int_equal(at, status == TY_TFRECORD_OK ? n : 0);
    }
    size_t at = 0, n;
    const void *payload;
    assert_int_equal(ty_tfrecord_next(scalar_record, sizeof scalar_record, 47, &at, &payload, &n),
                     TY_TFRECORD_BAD_LENGTH);
}

static size_t count_records(const char *path, size_t *total)
{
    size_t n_bytes, at = 0, n = 0, count = 0;
    const void *payload;
    char *bytes = get_file(path, &n_bytes);
    while (ty_tfrecord_next(bytes, n_bytes, 1 << 20, &at, &payload, &n) == TY_TFRECORD_OK)
        count++;
    assert_int_equal(at, n_bytes);
    if (total)
        *total = n_bytes;
    free(bytes);
    return count;
}

static void test_file(void **state)
{
    ty_error err;
    ty_events *e;
    assert_ok(ty_events_open(in(state, "tb/train"), 80, &e, &err));
    const char *name = strrchr(ty_events_path(e), '/') + 1;
    assert_int_equal(strncmp(name, "events.out.tfevents.", 20), 0);
    assert_int_equal(strspn(name + 20, "0123456789"), 10);
    char path[1024];
    snprintf(path, sizeof path, "%s", ty_events_path(e));
    assert_int_equal(count_records(path, NULL), 2); /* version and session start are there at once */
    assert_ok(ty_events_scalar(e, 81, 1e9, "loss", 0.5f, &err));
    assert_ok(ty_events_scalar(e, 81, 1e9, "loss", 0.25f, &err)); /* not after the last: left out */
    assert_ok(ty_events_scalar(e, 82, NAN, "loss", NAN, &err));
    assert_ok(ty_events_scalar(e, 1, 1e9, "lr", 1e-3f, &err));
    assert_int_equal(count_records(path, NULL), 2);
    assert_ok(ty_events_flush(e, &err));
    assert_int_equal(count_records(path, NULL), 5);
    assert_error(ty_events_scalar(e, 83, 1e9, "", 1, &err), TY_E_RANGE, "expected 1 to 255 bytes");
    assert_ok(ty_events_close(e, &err));
    /* A second process, the same second: a file of its own. */
    assert_ok(ty_events_open(in(state, "tb/train"), -1, &e, &err));
    assert_string_not_equal(path, ty_events_path(e));
    assert_int_equal(count_records(ty_events_path(e), NULL), 2);
    assert_ok(ty_events_close(e, &err));
    assert_ok(ty_events_close(NULL, &err));
}

/* Those that TensorBoard's own modules make, but for the metadata, which come first and say the class of the data. */
static void test_text_bytes(void **state)
{
    (void)state;
    static const unsigned char expected[] = {0x09, 0,    0,    0,    0,    0,    0,    0xf8, 0x3f, 0x10, 0x50, 0x2a,
                                             0x20, 0x0a, 0x1e, 0x0a, 0x01, 'a',  0x4a, 0x0a, 0x0a, 0x06, 0x0a, 0x04,
                                             't',  'e',  'x',  't',  0x20, 0x02, 0x42, 0x0d, 0x08, 0x07, 0x12, 0x00,
                                             0x42, 0x07, 'p',  'a',  'r',  's',  'i',  'n',  'g'};
    ty_buf message;
    ty_buf_init(&message, 4096);
    assert_int_equal(ty_event_text(&message, 1.5, 80, "a", "parsing", true), 0);
    assert_int_equal(message.len, sizeof expected);
    assert_memory_equal(message.data, expected, sizeof expected);
    ty_buf_fini(&message);
}

static void test_session_start_bytes(void **state)
{
    (void)state;
    static const unsigned char expected[] = {0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x10, 0x50, 0x3a, 0x02, 0x08, 0x01};
    ty_buf message;
    ty_buf_init(&message, 4096);
    assert_int_equal(ty_event_session_start(&message, 1.5, 80), 0);
    assert_int_equal(message.len, sizeof expected);
    assert_memory_equal(message.data, expected, sizeof expected);
    ty_buf_fini(&message);
}

/* A file size limit in place of a full disk: the write that does not fit is cut off, and the file goes on later. */
static void test_full_disk(void **state)
{
    ty_error err;
    ty_events *e;
    struct rlimit old, small;
    size_t start_bytes, n_bytes;
    signal(SIGXFSZ, SIG_IGN);
    assert_ok(ty_events_open(in(state, "tb"), -1, &e, &err));
    assert_int_equal(count_records(ty_events_path(e), &start_bytes), 2);
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){.rlim_cur = start_bytes + 60, .rlim_max = old.rlim_max};
    assert_ok(ty_events_scalar(e, 1, 1e9, "loss", 1, &err)); /* 64 bytes */
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = ty_events_flush(e, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, -1);
    assert_int_equal(count_records(ty_events_path(e), &n_bytes), 2);
    assert_int_equal(n_bytes, start_bytes);
    assert_ok(ty_events_scalar(e, 2, 1e9, "loss", 1, &err));
    assert_ok(ty_events_flush(e, &err));
    assert_int_equal(count_records(ty_events_path(e), &n_bytes), 3);
    assert_int_equal(n_bytes, start_bytes + 64); /* with the plugin's name again: the lost record had it */
    assert_ok(ty_events_close(e, &err));
}

static void test_unwritable(void **state)
{
    ty_error err;
    ty_events *e;
    put_file(in(state, "file"), "x", 1);
    assert_int_equal(ty_events_open(in(state, "file/tb"), -1, &e, &err), -1);
    assert_non_null(strstr(err.message, "TensorBoard events"));
    assert_null(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc_vectors),
        cmocka_unit_test(test_vector_records),
        cmocka_unit_test(test_record_flips),
        cmocka_unit_test(test_record_truncated),
        cmocka_unit_test(test_text_bytes),
        cmocka_unit_test(test_session_start_bytes),
        SCRATCH_TEST(test_file),
        SCRATCH_TEST(test_full_disk),
        SCRATCH_TEST(test_unwritable),
    };
    return cmocka_run_group_tests_name("output: events", tests, NULL, NULL);
}
