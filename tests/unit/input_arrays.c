/* input_arrays.c - npy, npz, IDX and gzip: all types and orders, vectors, round trips, every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/bytes.h"
#include "container/input/convert.h"
#include "container/input/idx.h"
#include "container/input/npy.h"
#include "base/zip.h"
#include "input_files.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <zlib.h>

/* --- Building files byte by byte --- */

typedef struct blob {
    uint8_t b[8192];
    size_t n;
} blob;

static void blob_add(blob *o, const void *p, size_t n)
{
    assert_true(o->n + n <= sizeof o->b);
    memcpy(o->b + o->n, p, n);
    o->n += n;
}

static void blob_int(blob *o, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8)
        blob_add(o, (uint8_t[1]){(uint8_t)v}, 1);
}

/* An npy file with this header text (unpadded) and data. */
static blob blob_npy(int major, const char *header, const void *data, size_t n)
{
    blob o = {0};
    blob_add(&o, "\x93NUMPY", 6);
    blob_int(&o, (uint64_t)major, 2);
    blob_int(&o, strlen(header), major == 1 ? 2 : 4);
    blob_add(&o, header, strlen(header));
    blob_add(&o, data, n);
    return o;
}

typedef struct zip_member {
    const char *name;
    blob content;
    int method;
    bool zip64;
    uint32_t crc_error;
} zip_member;

static blob blob_deflate(const blob *plain)
{
    blob o = {0};
    z_stream s = {0};
    assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (Bytef *)(uintptr_t)plain->b;
    s.avail_in = (uInt)plain->n;
    s.next_out = o.b;
    s.avail_out = sizeof o.b;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    o.n = s.total_out;
    deflateEnd(&s);
    return o;
}

static void zip_add_local(blob *o, const zip_member *m, const blob *packed, uint32_t crc)
{
    blob_int(o, 0x04034b50, 4);
    blob_int(o, 20, 2), blob_int(o, 8, 2), blob_int(o, (uint64_t)m->method, 2), blob_int(o, 0, 4);
    blob_int(o, crc, 4), blob_int(o, packed->n, 4), blob_int(o, m->content.n, 4);
    blob_int(o, strlen(m->name), 2), blob_int(o, 4, 2);
    blob_add(o, m->name, strlen(m->name));
    blob_int(o, 0xcafe, 2), blob_int(o, 0, 2); /* an unknown extra field */
    blob_add(o, packed->b, packed->n);
}

static void zip_add_record(blob *o, const zip_member *m, size_t packed, uint32_t crc, size_t at)
{
    blob_int(o, 0x02014b50, 4);
    blob_int(o, 45, 2), blob_int(o, 20, 2), blob_int(o, 8, 2), blob_int(o, (uint64_t)m->method, 2), blob_int(o, 0, 4);
    blob_int(o, crc, 4);
    blob_int(o, m->zip64 ? 0xffffffffu : packed, 4), blob_int(o, m->zip64 ? 0xffffffffu : m->content.n, 4);
    blob_int(o, strlen(m->name), 2), blob_int(o, m->zip64 ? 28 : 0, 2), blob_int(o, 0, 2);
    blob_int(o, 0, 2), blob_int(o, 0, 2), blob_int(o, 0, 4), blob_int(o, m->zip64 ? 0xffffffffu : at, 4);
    blob_add(o, m->name, strlen(m->name));
    if (m->zip64) {
        blob_int(o, 1, 2), blob_int(o, 24, 2);
        blob_int(o, m->content.n, 8), blob_int(o, packed, 8), blob_int(o, at, 8);
    }
}

static blob blob_zip(const zip_member *members, int n, bool zip64)
{
    blob o = {0}, directory = {0};
    for (int i = 0; i < n; i++) {
        blob packed = members[i].method == 8 ? blob_deflate(&members[i].content) : members[i].content;
        uint32_t crc = (uint32_t)crc32(0, members[i].content.b, (uInt)members[i].content.n) ^ members[i].crc_error;
        zip_add_record(&directory, &members[i], packed.n, crc, o.n);
        zip_add_local(&o, &members[i], &packed, crc);
    }
    size_t at = o.n, end;
    blob_add(&o, directory.b, directory.n);
    end = o.n;
    if (zip64) {
        blob_int(&o, 0x06064b50, 4), blob_int(&o, 44, 8), blob_int(&o, 45, 2), blob_int(&o, 45, 2), blob_int(&o, 0, 8);
        blob_int(&o, (uint64_t)n, 8), blob_int(&o, (uint64_t)n, 8), blob_int(&o, directory.n, 8), blob_int(&o, at, 8);
        blob_int(&o, 0x07064b50, 4), blob_int(&o, 0, 4), blob_int(&o, end, 8), blob_int(&o, 1, 4);
    }
    blob_int(&o, 0x06054b50, 4), blob_int(&o, 0, 4);
    blob_int(&o, zip64 ? 0xffff : (uint64_t)n, 2), blob_int(&o, zip64 ? 0xffff : (uint64_t)n, 2);
    blob_int(&o, zip64 ? 0xffffffffu : directory.n, 4), blob_int(&o, zip64 ? 0xffffffffu : at, 4);
    blob_int(&o, 5, 2);
    blob_add(&o, "hello", 5);
    return o;
}

static void put_gzip(const char *name, const void *data, size_t n, int members)
{
    FILE *f = fopen(files_path(name), "wb");
    for (int i = 0; i < members; i++) {
        uint8_t out[4096];
        size_t from = n * (size_t)i / (size_t)members, to = n * (size_t)(i + 1) / (size_t)members;
        z_stream s = {0};
        assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        s.next_in = (Bytef *)(uintptr_t)data + from;
        s.avail_in = (uInt)(to - from);
        s.next_out = out;
        s.avail_out = sizeof out;
        assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
        fwrite(out, 1, s.total_out, f);
        deflateEnd(&s);
    }
    fclose(f);
}

/* --- npy --- */

#define F4_2X3 "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"
static const float SIX[6] = {1, 2, 3, 4, 5, 6};

static void npy_headers_are_written_as_numpy_does(void **state)
{
    (void)state;
    /* The bytes that numpy 1.26 and 2.x write before the data. */
    static const struct {
        int rank;
        int64_t dim[3];
        ty_dtype dtype;
        const char *text;
        size_t bytes;
    } rows[] = {
        {0, {0}, TY_F64, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 128},
        {1, {3}, TY_I64, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", 128},
        {3, {2, 1, 4}, TY_BOOL, "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 1, 4), }", 128},
        {2, {1000000, 12}, TY_F16, "{'descr': '<f2', 'fortran_order': False, 'shape': (1000000, 12), }", 128},
        {1, {5}, TY_BF16, "{'descr': '<V2', 'fortran_order': False, 'shape': (5,), }", 128},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_buf b;
        ty_error err = {0};
        ty_buf_init(&b, 4096);
        ty_type type = ty_type_make(rows[i].dtype, rows[i].rank, rows[i].dim);
        assert_ok(ty_npy_header(&type, &b, &err), &err);
        assert_int_equal(b.len, rows[i].bytes);
        assert_memory_equal(b.data, "\x93NUMPY\x01\x00\x76\x00", 10);
        assert_memory_equal(b.data + 10, rows[i].text, strlen(rows[i].text));
        for (size_t k = 10 + strlen(rows[i].text); k + 1 < b.len; k++)
            assert_int_equal(b.data[k], ' ');
        assert_int_equal(b.data[b.len - 1], '\n');
        ty_buf_fini(&b);
    }
}

static void npy_files_come_back_as_they_were(void **state)
{
    (void)state;
    uint8_t data[24 * 8];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (int d = 0; d < TY_N_DTYPES; d++)
        for (int rank = 0; rank <= 3; rank++) {
            ty_error err = {0};
            const int64_t dim[3] = {2, 3, 4};
            ty_tensor t = {.type = ty_type_make((ty_dtype)d, rank, dim), .data = data}, back;
            assert_ok(ty_npy_write(files_path("t.npy"), &t, &err), &err);
            assert_ok(ty_npy_read(files_path("t.npy"), &back, &err), &err);
            assert_true(ty_type_same(&t.type, &back.type));
            assert_memory_equal(back.data, data, ty_type_bytes(&t.type));
            assert_int_equal((uintptr_t)back.data % 64, 0);
            free(back.data);
        }
}

static void npy_headers_of_all_ages_are_read(void **state)
{
    (void)state;
    static const struct {
        int major;
        const char *header;
        int rank;
    } rows[] = {
        {1, F4_2X3, 2},
        {2, F4_2X3, 2},
        {3, F4_2X3, 2},
        {1, "{\"shape\":(2L,3L),\"descr\":\"=f4\",\"fortran_order\":False}", 2},
        {1, "  { 'descr' : 'f4' , 'fortran_order' : False , 'shape' : ( 6 , ) , }   \n", 1},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (6,)}", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        blob b = blob_npy(rows[i].major, rows[i].header, SIX, sizeof SIX);
        ty_array a;
        ty_error err = {0};
        assert_ok(ty_npy_parse(b.b, b.n, &a, &err), &err);
        assert_int_equal(a.rank, rows[i].rank);
        assert_int_equal(a.n_bytes, 24);
        assert_true(ty_array_is_native(&a));
        assert_memory_equal(a.data, SIX, 24);
    }
}

static void npy_refusals_say_where_and_what(void **state)
{
    (void)state;
#define DICT(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
    static const struct {
        const char *header, *says;
    } rows[] = {
        {DICT("'|O'", "False", "(6,)"), "pickles"},
        {DICT("'<c8'", "False", "(3,)"), "element type \"<c8\" is not known"},
        {DICT("'<U5'", "False", "(1,)"), "holds texts"},
        {DICT("''", "False", "(6,)"), "not known"},
        {DICT("[('a', '<f4')]", "False", "(6,)"), "structured"},
        {DICT("'<f4'", "Maybe", "(6,)"), "expected True or False, found \"Maybe"},
        {DICT("'<f4'", "False", "(7,)"), "needs 28 bytes"},
        {DICT("'<f4'", "False", "(-1,)"), "expected a size"},
        {DICT("'<f4'", "False", "(6 6)"), "expected \",\" or \")\""},
        {DICT("'<f4'", "False", "6"), "expected a shape"},
        {DICT("'<f4'", "False", "(9223372036854775807,9223372036854775807)"), "more elements"},
        {DICT("'<f4'", "False", "(4611686018427387904,4)"), "more elements"},
        {DICT("'<f4'", "False", "(99999999999999999999,)"), "below 2^63"},
        {DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,6)"), "more than 8 dimensions"},
        {"{'descr': '<f4', 'shape': (6,)}", "\"fortran_order\" is missing"},
        {"{'descr': '<f4', 'descr': '<f4'}", "once each"},
        {"{'descr': '<f4', 'size': 3}", "the keys descr"},
        {"{'descr': '<f4'", "expected"},
        {"{'descr': '<f4", "short string"},
        {F4_2X3 "x", "nothing more"},
        {"", "expected \"{\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        blob b = blob_npy(1, rows[i].header, SIX, sizeof SIX);
        files_put("t.npy", b.b, b.n);
        ty_tensor t;
        ty_error err = {0};
        assert_int_equal(ty_npy_read(files_path("t.npy"), &t, &err), -1);
        assert_int_equal(err.code, TY_E_DATA);
        assert_says(&err, rows[i].says);
        assert_says(&err, "t.npy");
    }
}

/* Every shorter prefix is refused; under a sanitizer this also proves that no byte past the end is looked at. */
static void npy_and_idx_never_read_past_the_end(void **state)
{
    (void)state;
    blob npy = blob_npy(2, F4_2X3, SIX, sizeof SIX);
    blob idx = {.b = {0, 0, 0x0d, 2, 0, 0, 0, 2, 0, 0, 0, 3}, .n = 12 + 24};
    for (int kind = 0; kind < 2; kind++) {
        const blob *b = kind == 0 ? &npy : &idx;
        for (size_t n = 0; n <= b->n; n++) {
            uint8_t *copy = malloc(n > 0 ? n : 1);
            memcpy(copy, b->b, n);
            ty_array a;
            int rc = kind == 0 ? ty_npy_parse(copy, n, &a, NULL) : ty_idx_parse(copy, n, &a, NULL);
            assert_int_equal(rc, n == b->n ? 0 : -1);
            free(copy);
        }
    }
}

static void orders_of_bytes_and_axes_are_made_native(void **state)
{
    (void)state;
    int32_t be[24], want[24];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) {
                want[(i * 3 + j) * 4 + k] = 100 * i + 10 * j + k;
                be[(k * 3 + j) * 2 + i] = (int32_t)__builtin_bswap32((uint32_t)(100 * i + 10 * j + k));
            }
    blob b = blob_npy(1, "{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3, 4)}", be, sizeof be);
    ty_array a;
    int32_t got[24];
    assert_int_equal(ty_npy_parse(b.b, b.n, &a, NULL), 0);
    assert_false(ty_array_is_native(&a));
    ty_array_copy_native(&a, got);
    assert_memory_equal(got, want, sizeof want);
}

/* --- IDX --- */

static void idx_refusals_say_what(void **state)
{
    (void)state;
    static const struct {
        uint8_t b[16];
        size_t n;
        const char *says;
    } rows[] = {
        {{0, 0, 8, 1, 0, 0, 0, 3, 1, 2}, 10, "promises 3 elements of 1 bytes, the file has 2"},
        {{0, 0, 8, 1, 0, 0, 0, 1, 1, 2}, 10, "promises 1 elements"},
        {{0, 0, 10, 1, 0, 0, 0, 1, 1}, 9, "type 0x0a at byte 2"},
        {{0, 0, 8, 0, 1}, 5, "rank 0"},
        {{0, 0, 8, 9, 1}, 5, "rank 9"},
        {{0, 0, 8, 3, 0, 0, 0, 1}, 8, "needs 16 bytes"},
        {{1, 0, 8, 1, 0, 0, 0, 1, 1}, 9, "not an IDX file"},
        {{0, 0, 14, 2, 255, 255, 255, 255, 255, 255, 255, 255}, 12, "the file has 0 bytes"},
        {{0}, 1, "not an IDX file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_array a;
        ty_error err = {0};
        assert_int_equal(ty_idx_parse(rows[i].b, rows[i].n, &a, &err), -1);
        assert_says(&err, rows[i].says);
    }
}

/* --- zip --- */

static int read_npz(const char *member, ty_dataset **ds, ty_error *err)
{
    ty_field f = ty_field_make("x");
    f.member = member;
    return files_open("t.npz", &f, 1, (ty_data_source){0}, ds, err);
}

static void npz_members_are_found_stored_deflated_and_zip64(void **state)
{
    (void)state;
    blob x = blob_npy(1, F4_2X3, SIX, sizeof SIX);
    for (int variant = 0; variant < 8; variant++) {
        zip_member m[2] = {{.name = "other.npy", .content = blob_npy(1, "{}", "", 0), .method = 0},
                           {.name = "x.npy", .content = x, .method = variant & 1 ? 8 : 0, .zip64 = variant & 2}};
        blob z = blob_zip(m, 2, variant & 4);
        files_put("t.npz", z.b, z.n);
        ty_dataset *ds;
        ty_error err = {0};
        assert_ok(read_npz(NULL, &ds, &err), &err);
        float v[6];
        assert_int_equal(ds->n_samples, 2);
        assert_ok(ty_dataset_read(ds, 0, (int64_t[2]){1, 0}, 2, v, &err), &err);
        assert_memory_equal(v, SIX + 3, 12);
        assert_memory_equal(v + 3, SIX, 12);
        ty_dataset_close(ds);
    }
}

static void zip_refusals_say_what(void **state)
{
    (void)state;
    blob x = blob_npy(1, F4_2X3, SIX, sizeof SIX);
    zip_member m = {.name = "x.npy", .content = x, .method = 8};
    ty_dataset *ds;
    ty_error err = {0};
    blob z = blob_zip(&m, 1, false);
    files_put("t.npz", z.b, z.n);
    assert_int_equal(read_npz("y", &ds, &err), -1);
    assert_says(&err, "no array \"y\"");
    assert_says(&err, "it holds \"x.npy\"");
    static const struct {
        int method;
        uint32_t crc_error;
        const char *says;
    } rows[] = {{8, 1, "checksum"}, {0, 1, "checksum"}, {99, 0, "method 99"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        m.method = rows[i].method;
        m.crc_error = rows[i].crc_error;
        z = blob_zip(&m, 1, false);
        files_put("t.npz", z.b, z.n);
        err = (ty_error){0};
        assert_int_equal(read_npz(NULL, &ds, &err), -1);
        assert_says(&err, rows[i].says);
        assert_says(&err, "x.npy");
        assert_says(&err, "t.npz");
    }
}

static void read_all_members(const uint8_t *p, size_t n)
{
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    if (ty_zip_open(p, n, &z, NULL) < 0)
        return;
    while (ty_zip_next(&z, &walk, &e, NULL) == 1) {
        const uint8_t *out;
        uint8_t *owned;
        if (ty_zip_read(&z, &e, 1 << 20, &out, &owned, NULL) == 0)
            free(owned);
    }
}

/* Every byte of a small archive set to hostile values, and every length: nothing may read outside. */
static void damaged_archives_do_no_harm(void **state)
{
    (void)state;
    blob x = blob_npy(1, F4_2X3, SIX, sizeof SIX);
    zip_member m[2] = {{.name = "x.npy", .content = x, .method = 8, .zip64 = true},
                       {.name = "y.npy", .content = x, .method = 0}};
    blob z = blob_zip(m, 2, true);
    for (size_t n = 0; n < z.n; n++) {
        uint8_t *copy = malloc(n > 0 ? n : 1);
        memcpy(copy, z.b, n);
        read_all_members(copy, n);
        free(copy);
    }
    uint8_t *copy = malloc(z.n);
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < z.n; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            memcpy(copy, z.b, z.n);
            copy[at] = values[v];
            read_all_members(copy, z.n);
        }
    free(copy);
}

/* --- gzip --- */

static void gzip_files_are_inflated_member_by_member(void **state)
{
    (void)state;
    char text[3000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 23);
    for (int members = 1; members <= 3; members++) {
        ty_bytes b;
        ty_error err = {0};
        put_gzip("t.gz", text, sizeof text, members);
        assert_ok(ty_bytes_open(files_path("t.gz"), NULL, &b, &err), &err);
        assert_int_equal(b.n, sizeof text);
        assert_memory_equal(b.data, text, sizeof text);
        assert_true(b.file_bytes < b.n);
        ty_bytes_close(&b);
        ty_bytes_options small = {.max_inflated_bytes = 2999};
        assert_int_equal(ty_bytes_open(files_path("t.gz"), &small, &b, &err), -1);
        assert_int_equal(err.code, TY_E_LIMIT);
        small.max_inflated_bytes = 3000;
        err = (ty_error){0};
        assert_ok(ty_bytes_open(files_path("t.gz"), &small, &b, &err), &err);
        ty_bytes_close(&b);
    }
}

static void damaged_gzip_is_refused(void **state)
{
    (void)state;
    static const char text[] = "some text that is long enough to be squeezed, squeezed, squeezed, squeezed";
    put_gzip("t.gz", text, sizeof text, 2);
    ty_buf raw;
    ty_buf_init(&raw, 4096);
    assert_int_equal(ty_file_read(files_path("t.gz"), &raw, NULL), 0);
    ty_bytes b;
    for (size_t n = 3; n < raw.len; n++) { /* a cut between the members leaves a whole file: found below */
        files_put("cut.gz", raw.data, n);
        ty_error err = {0};
        if (ty_bytes_open(files_path("cut.gz"), NULL, &b, &err) == 0) {
            assert_int_equal(b.n, sizeof text / 2);
            ty_bytes_close(&b);
        } else {
            assert_int_equal(err.code, TY_E_DATA);
            assert_says(&err, "cut.gz");
        }
    }
    raw.data[raw.len - 6] ^= 1;
    files_put("crc.gz", raw.data, raw.len);
    ty_error err = {0};
    assert_int_equal(ty_bytes_open(files_path("crc.gz"), NULL, &b, &err), -1);
    assert_says(&err, "check");
    raw.data[raw.len - 6] ^= 1;
    ty_buf_adds(&raw, "tail");
    files_put("tail.gz", raw.data, raw.len);
    assert_int_equal(ty_bytes_open(files_path("tail.gz"), NULL, &b, &err), -1);
    assert_says(&err, "bytes that are not gzip follow the last member");
    ty_buf_fini(&raw);
}

/* --- Shared vectors --- */

/* Leaves of a nested JSON list, in order. */
static int flatten(const cJSON *v, double *out, int n)
{
    if (cJSON_IsNumber(v))
        out[n++] = v->valuedouble;
    else
        for (const cJSON *c = v != NULL ? v->child : NULL; c != NULL; c = c->next)
            n = flatten(c, out, n);
    return n;
}

static void check_array(const ty_array *a, const cJSON *row)
{
    double want[64], got[64];
    uint8_t native[512];
    const cJSON *shape = cJSON_GetObjectItem(row, "shape");
    assert_int_equal(a->rank, cJSON_GetArraySize(shape));
    for (int k = 0; k < a->rank; k++)
        assert_int_equal(a->dim[k], cJSON_GetArrayItem(shape, k)->valueint);
    int n = flatten(cJSON_GetObjectItem(row, "values"), want, 0);
    assert_int_equal((size_t)n * ty_dtype_bytes(a->dtype), a->n_bytes);
    ty_array_copy_native(a, native);
    ty_convert_to_f64(a->dtype, native, got, n);
    for (int i = 0; i < n; i++)
        assert_true(fabs(got[i] - want[i]) <= 1e-7 * fabs(want[i]));
}

static void check_file(const char *path, bool idx, const cJSON *row)
{
    ty_bytes b;
    ty_array a;
    ty_error err = {0};
    assert_ok(ty_bytes_open(path, NULL, &b, &err), &err);
    int rc = idx ? ty_idx_parse(b.data, b.n, &a, &err) : ty_npy_parse(b.data, b.n, &a, &err);
    if (cJSON_GetObjectItem(row, "reject") != NULL) {
        assert_int_equal(rc, -1);
        assert_int_equal(err.code, TY_E_DATA);
    } else {
        assert_ok(rc, &err);
        check_array(&a, row);
    }
    ty_bytes_close(&b);
}

static void check_npz(const char *path, const cJSON *row)
{
    ty_bytes b;
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    ty_error err = {0};
    int n = 0;
    assert_ok(ty_bytes_open(path, NULL, &b, &err), &err);
    assert_ok(ty_zip_open(b.data, b.n, &z, &err), &err);
    while (ty_zip_next(&z, &walk, &e, &err) == 1) {
        char name[64];
        const uint8_t *content;
        uint8_t *owned;
        ty_array a;
        snprintf(name, sizeof name, "%.*s", (int)e.name_bytes - 4, e.name);
        assert_ok(ty_zip_read(&z, &e, 1 << 20, &content, &owned, &err), &err);
        assert_ok(ty_npy_parse(content, (size_t)e.plain_bytes, &a, &err), &err);
        check_array(&a, cJSON_GetObjectItem(cJSON_GetObjectItem(row, "arrays"), name));
        free(owned);
        n++;
    }
    assert_int_equal(n, 2);
    ty_bytes_close(&b);
}

static void vectors_are_read_as_expected(void **state)
{
    (void)state;
    const char *path = files_vector("expected.json");
    if (path == NULL) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_file_read(path, &text, NULL), 0);
    cJSON *all = cJSON_Parse(text.data);
    int n = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(all, "cases"))
    {
        const char *name = cJSON_GetObjectItem(row, "file")->valuestring;
        char file[1100];
        snprintf(file, sizeof file, "%s%s", files_vector(""), name);
        bool npy = strncmp(name, "npy/", 4) == 0, npz = strncmp(name, "npz/", 4) == 0,
             idx = strncmp(name, "idx/", 4) == 0;
        n += npy || npz || idx;
        if (npz)
            check_npz(file, row);
        else if (npy || idx)
            check_file(file, idx, row);
    }
    assert_int_equal(n, 17 + 2 + 7);
    cJSON_Delete(all);
    ty_buf_fini(&text);
}

/* The t10k set of MNIST as a dataset: gzip, two files, two fields. */
static void mnist_is_read(void **state)
{
    (void)state;
    const char *folder = files_shared("mnist");
    if (folder == NULL) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    f[0].file = "*images*";
    f[1].file = "*labels*";
    f[0].scale = 1.0 / 255;
    f[0].shape_given = true;
    f[0].rank = 3;
    f[0].dim[0] = 1, f[0].dim[1] = f[0].dim[2] = 28;
    f[1].dtype = TY_I64;
    f[1].dtype_given = true;
    ty_data_source src = {.paths = &folder, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_string_equal(ds->format, "idx");
    assert_int_equal(ds->n_samples, 10000);
    assert_int_equal(ds->stats.n_files, 2);
    assert_int_equal(ds->field[1].min, 0);
    assert_int_equal(ds->field[1].max, 9);
    int64_t label, sample = 0;
    float image[784], darkest = 0;
    assert_ok(ty_dataset_read(ds, 1, &sample, 1, &label, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, &sample, 1, image, &err), &err);
    assert_int_equal(label, 7);
    for (int i = 0; i < 784; i++)
        darkest = image[i] > darkest ? image[i] : darkest;
    assert_true(darkest > 0.9f && darkest <= 1.0f);
    ty_dataset_close(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_headers_are_written_as_numpy_does),
        cmocka_unit_test(npy_files_come_back_as_they_were),
        cmocka_unit_test(npy_headers_of_all_ages_are_read),
        cmocka_unit_test(npy_refusals_say_where_and_what),
        cmocka_unit_test(npy_and_idx_never_read_past_the_end),
        cmocka_unit_test(orders_of_bytes_and_axes_are_made_native),
        cmocka_unit_test(idx_refusals_say_what),
        cmocka_unit_test(npz_members_are_found_stored_deflated_and_zip64),
        cmocka_unit_test(zip_refusals_say_what),
        cmocka_unit_test(damaged_archives_do_no_harm),
        cmocka_unit_test(gzip_files_are_inflated_member_by_member),
        cmocka_unit_test(damaged_gzip_is_refused),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_golden_vectors),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_shared_vectors),
        cmocka_unit_test(mnist_is_read),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
