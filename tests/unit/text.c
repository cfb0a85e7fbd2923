/* The text form: exact round trips, golden files, and refusals with line and column. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/evaluate.h"

#include <dirent.h>
#include <math.h>

/* Everything the language has: leaves, all kinds of attributes, several results, absent inputs, odd names. */
static ty_graph *build_everything(void)
{
    static float big[200], weight[32];
    for (int i = 0; i < 200; i++)
        big[i] = (float)i / 3;
    for (int i = 0; i < 32; i++)
        weight[i] = 1.0f / (float)(i + 1);
    ty_graph *g = ty_graph_new();
    ty_segment parts[2] = {{"fc \"1\".weight", ty_type_make(TY_F32, SHAPE(8, 4)), 0},
                           {"fc\\bias\n", ty_type_make(TY_F32, SHAPE(8)), 40}};
    const void *init[2] = {weight, NULL};
    ty_state s = {"param.0", ty_type_make(TY_F32, SHAPE(48)), TY_STATE_PARAM, parts, 2, init};
    ty_graph_add_state(g, &s);
    ty_state step = {.name = "step", .type = ty_type_scalar(TY_I64), .role = TY_STATE_COUNTER};
    ty_graph_add_state(g, &step);
    ty_val x = new_input(g, TY_F32, SHAPE(2, 3, 8, 8)), n = ty_b_state(g, 1), p = ty_b_state(g, 0);
    ty_graph_origin(g, "layers.0 (Conv \"a\")");
    ty_attr conv = {.n = 2, .step = {2, 2}, .lo = {1, 1}, .hi = {1, 1}, .dil = {1, 1}, .groups = 1};
    ty_val w = ty_b_reshape(g, ty_b_slice_axis(g, p, 0, 0, 27), SHAPE(1, 3, 3, 3));
    ty_val y = ty_graph_emit(g, TY_OP_CONV, &conv, (ty_val[]){x, w}, 2), order;
    ty_graph_origin(g, "");
    ty_val sorted = ty_b_sort(g, y, 3, true, &order);
    ty_val z = ty_b_norm(g, sorted, TY_NONE, ty_b_slice_axis(g, p, 0, 40, 44), 1, 1e-5, false);
    z = ty_b_pad(g, z, (int64_t[]){0, 0, 1, 0}, (int64_t[]){0, 0, 0, 2}, -INFINITY);
    z = ty_b_add(g, ty_b_max(g, z, ty_b_scalar(g, TY_F32, -0.1)), ty_b_scalar(g, TY_F32, INFINITY));
    ty_val c = ty_b_const(g, ty_type_make(TY_F32, SHAPE(200)), big);
    ty_val nans = ty_b_const(g, ty_type_make(TY_F32, SHAPE(2)), (uint32_t[]){0x7fc00001, 0xffc00000});
    ty_val u = ty_b_const(g, ty_type_make(TY_U64, SHAPE(2)), (uint64_t[]){UINT64_MAX, 1});
    ty_val h = ty_b_const(g, ty_type_make(TY_F16, SHAPE(3)), (uint16_t[]){0x0001, 0x8000, 0x7c00});
    ty_val r = ty_b_rng(g, n, n, 7, SHAPE(5));
    ty_b_reverse(g, z, 5);
    ty_b_reduce(g, z, TY_MAX, 10, true);
    ty_b_iota(g, ty_type_make(TY_I32, SHAPE(2, 3)), 1);
    ty_val none = ty_b_slice_axis(g, x, 0, 1, 1);
    ty_graph_add_output(g, "y", order, TY_TAPE_EVAL | TY_TAPE_LAST);
    ty_val all[] = {z, c, nans, u, h, r, none};
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%d", i);
        ty_graph_add_output(g, name, all[i], TY_TAPE_MICRO);
    }
    ty_graph_add_assign(g, 1, ty_b_add_s(g, n, 1), TY_TAPE_LAST);
    ty_graph_add_assign(g, 0, ty_b_full_like(g, p, 0), TY_TAPE_INIT);
    ty_b_neg(g, z); /* after the assigns, and dead: must keep its number */
    expect_ok(g);
    return g;
}

static void test_everything_comes_back(void **state)
{
    (void)state;
    ty_graph *g = build_everything();
    expect_round_trip(g);
    ty_graph_free(g);
}

static void test_constants_come_back_bit_by_bit(void **state)
{
    (void)state;
    ty_graph *g = build_everything(), *back;
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_graph_print(g, &text, false), 0);
    assert_int_equal(ty_graph_parse(text.data, text.len, &back, NULL), 0);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        ty_val v = ty_val_make(id, 0);
        const void *a = ty_graph_const_data(g, v), *b = ty_graph_const_data(back, v);
        assert_int_equal(!a, !b);
        if (a)
            assert_memory_equal(a, b, ty_type_bytes(ty_graph_type(g, v)));
    }
    assert_memory_equal(ty_graph_state(g, 0)->init[0], ty_graph_state(back, 0)->init[0], 128);
    assert_null(ty_graph_state(back, 0)->init[1]);
    assert_string_equal(ty_graph_state(back, 0)->segments[1].name, "fc\\bias\n");
    ty_buf_fini(&text);
    ty_graph_free(g);
    ty_graph_free(back);
}

static void test_elided_text_is_short_and_refused(void **state)
{
    (void)state;
    ty_graph *g = build_everything(), *back;
    ty_buf text;
    ty_error err = {0};
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_graph_print(g, &text, true), 0);
    assert_non_null(strstr(text.data, "= ... : f32[200]"));
    assert_int_equal(ty_graph_parse(text.data, text.len, &back, &err), -1);
    assert_null(back);
    assert_non_null(strstr(err.message, "left out"));
    ty_buf_fini(&text);
    ty_graph_free(g);
}

static void test_a_full_buffer_is_an_error(void **state)
{
    (void)state;
    ty_graph *g = build_everything();
    ty_buf text;
    ty_buf_init(&text, 100);
    assert_int_equal(ty_graph_print(g, &text, false), -1);
    ty_buf_fini(&text);
    ty_graph_free(g);
}

/* Every beginning of a good text must be refused or read, without harm (the sanitizers judge). */
static void test_cut_and_damaged_text(void **state)
{
    (void)state;
    ty_graph *g = build_everything(), *back;
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_graph_print(g, &text, false), 0);
    for (size_t n = 0; n < text.len; n += 1 + n / 400) {
        char *part = malloc(n + 1); /* exact size: reading beyond it is found out */
        memcpy(part, text.data, n);
        if (ty_graph_parse(part, n, &back, NULL) == 0)
            ty_graph_free(back);
        free(part);
    }
    static const char noise[] = "%{}[]():,=\"x-_9\n @";
    for (size_t i = 7; i < text.len; i += 11) {
        char old = text.data[i];
        text.data[i] = noise[i % (sizeof noise - 1)];
        if (ty_graph_parse(text.data, text.len, &back, NULL) == 0) {
            assert_int_equal(ty_graph_verify(back, NULL), 0);
            ty_graph_free(back);
        }
        text.data[i] = old;
    }
    ty_buf_fini(&text);
    ty_graph_free(g);
}

/* ---- files ---- */

static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    char *data = malloc(1 << 16);
    *len = fread(data, 1, (1 << 16) - 1, f);
    data[*len] = 0;
    fclose(f);
    return data;
}

/* Calls `judge` with each file of the folder that ends in .ir; returns their number. */
static int for_each_file(const char *folder, void (*judge)(const char *path))
{
    DIR *d = opendir(folder);
    int n = 0;
    if (!d)
        fail_msg("cannot open %s", folder);
    for (struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len < 4 || strcmp(e->d_name + len - 3, ".ir") != 0)
            continue;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        judge(path);
        n++;
    }
    closedir(d);
    return n;
}

static void judge_good(const char *path)
{
    size_t len;
    char *text = read_file(path, &len);
    ty_graph *g;
    ty_error err = {0};
    ty_buf out;
    ty_buf_init(&out, 1 << 20);
    if (ty_graph_parse(text, len, &g, &err) < 0 || ty_graph_verify(g, &err) < 0)
        fail_msg("%s: %s: %s", path, err.place, err.message);
    assert_int_equal(ty_graph_print(g, &out, false), 0);
    assert_string_equal(out.data, text);
    ty_graph_free(g);
    ty_buf_fini(&out);
    free(text);
}

/* The .err file holds the place and the message in one line. */
static void judge_bad(const char *path)
{
    size_t len, err_len;
    char *text = read_file(path, &len), err_path[512], found[2048];
    snprintf(err_path, sizeof err_path, "%.*s.err", (int)strlen(path) - 3, path);
    char *expected = read_file(err_path, &err_len);
    ty_graph *g;
    ty_error err = {0};
    if (ty_graph_parse(text, len, &g, &err) == 0)
        fail_msg("%s was accepted", path);
    snprintf(found, sizeof found, "%s: %s\n", err.place, err.message);
    if (strcmp(found, expected) != 0)
        fail_msg("%s\n  expected: %s  found:    %s", path, expected, found);
    free(text);
    free(expected);
}

static void test_golden_files(void **state)
{
    (void)state;
    assert_in_range(for_each_file("tests/golden/ir", judge_good), 3, 1000);
}

static void test_bad_files(void **state)
{
    (void)state;
    int n = for_each_file("tests/golden/ir/bad", judge_bad);
    print_message("%d bad files refused\n", n);
    assert_in_range(n, 30, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_comes_back),
        cmocka_unit_test(test_constants_come_back_bit_by_bit),
        cmocka_unit_test(test_elided_text_is_short_and_refused),
        cmocka_unit_test(test_a_full_buffer_is_an_error),
        cmocka_unit_test(test_cut_and_damaged_text),
        cmocka_unit_test(test_golden_files),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
