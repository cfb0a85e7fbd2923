/* native_dot.c - products on packed panels against the reference, and the panels themselves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/target/cpu/onednn.h"
#include "compiler/target/cpu/panel.h"
#include "tests/unit/native_case.h"

enum { TRANS_A = 1, TRANS_B = 2, FORMS = 4 };

/* a [m, k] or turned, b [k, n] or turned, and what the product is added to. */
static void product_agrees(int64_t batch, int64_t m, int64_t n, int64_t k, bool adds)
{
    for (int form = 0; form < FORMS; form++) {
        int64_t a[] = {batch, form & TRANS_A ? k : m, form & TRANS_A ? m : k};
        int64_t b[] = {batch, form & TRANS_B ? n : k, form & TRANS_B ? k : n};
        int skip = batch == 0; /* plain matrices */
        const ty_type types[] = {ty_type_make(TY_F32, 3 - skip, a + skip), ty_type_make(TY_F32, 3 - skip, b + skip),
                                 ty_type_make(TY_F32, 3 - skip, (int64_t[]){batch, m, n} + skip)};
        native_agrees(TY_OP_DOT, (ty_attr){.flags = (uint32_t)form}, types, adds ? 3 : 2, NATIVE_NOISE, 1e-5);
    }
}

static void small_shapes(void **state)
{
    (void)state;
    for (int64_t m = 1; m <= 26; m++)
        product_agrees(0, m, 33, 9, false);
    for (int64_t n = 1; n <= 66; n++)
        product_agrees(0, 13, n, 17, n % 2);
    for (int64_t k = 1; k <= 20; k++)
        product_agrees(0, 7, 40, k, k % 2);
}

/* Past the ends of blocks of rows, columns and the sum. */
static void blocks(void **state)
{
    (void)state;
    product_agrees(0, 247, 70, 30, false);
    product_agrees(0, 31, 1060, 20, true);
    product_agrees(0, 20, 50, 259, false);
    product_agrees(0, 20, 50, 515, true);
    product_agrees(0, 245, 1030, 257, true);
}

static void batches(void **state)
{
    (void)state;
    product_agrees(1, 20, 40, 30, false); /* fewer than threads: rectangles */
    product_agrees(5, 20, 40, 30, true);
}

/* What is no number reaches the sums it is part of, and no other: columns are filled up with zeros. */
static void no_numbers(void **state)
{
    (void)state;
    const int64_t a[] = {9, 5}, b[] = {5, 35};
    const ty_type types[] = {ty_type_make(TY_F32, 2, a), ty_type_make(TY_F32, 2, b)};
    native_agrees(TY_OP_DOT, (ty_attr){0}, types, 2, NATIVE_TIES, 1e-5);
}

/* a [batch, k, m], b [batch, k, n] of bfloat16, and what the product is added to. Sums are float32's but for their
 * order. */
static void pairs_agree(int64_t batch, int64_t m, int64_t n, int64_t k, bool adds)
{
    ty_attr attr = {.flags = TRANS_A | TY_DOT_WIDE};
    const ty_type types[] = {ty_type_make(TY_BF16, 3, (int64_t[]){batch, k, m}),
                             ty_type_make(TY_BF16, 3, (int64_t[]){batch, k, n}),
                             ty_type_make(TY_F32, 3, (int64_t[]){batch, m, n})};
    native_buffers want, got;
    native_make(&want, TY_OP_DOT, &attr, types, adds ? 3 : 2, NATIVE_NOISE, 0);
    want.loose = true;
    got = want;
    native_call(&want, TY_OP_DOT, &attr, NULL, 1);
    for (int threads = 1; threads <= 3; threads++) {
        native_call(&got, TY_OP_DOT, &attr, ty_native_prepare_dot_pairs, threads);
        native_compare("product of pairs", &types[2], got.out[0], want.out[0], 1e-5);
        native_free_results(&got);
    }
    native_free_results(&want);
    native_free_operands(&want);
}

static void pairs_of_bfloat16(void **state)
{
    (void)state;
    if (!ty_panel_pairs())
        skip();
    for (int64_t m = 1; m <= 26; m++)
        pairs_agree(1, m, 33, 10, false);
    for (int64_t n = 1; n <= 66; n++)
        pairs_agree(1, 13, n, 18, n % 2);
    for (int64_t k = 2; k <= 40; k += 2)
        pairs_agree(1, 7, 40, k, k % 4 == 0);
    pairs_agree(1, 247, 1060, 30, false);
    pairs_agree(1, 31, 70, 518, true);
    pairs_agree(5, 21, 41, 30, true); /* matrices begin at odd elements */
}

static void others_are_no_pairs(void **state)
{
    (void)state;
    static const struct {
        uint32_t flags;
        int64_t k;
        ty_dtype a, c;
        bool strict;
    } rows[] = {{TRANS_A, 7, TY_BF16, TY_F32, false},  {TRANS_A, 8, TY_F16, TY_F32, false},
                {TRANS_A, 8, TY_BF16, TY_BF16, false}, {TRANS_A, 8, TY_BF16, TY_F32, true},
                {0, 8, TY_BF16, TY_F32, false},        {TRANS_A | TRANS_B, 8, TY_BF16, TY_F32, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_type in[] = {ty_type_make(rows[i].a, 2, (int64_t[]){rows[i].k, rows[i].k}),
                        ty_type_make(rows[i].a, 2, (int64_t[]){rows[i].k, rows[i].k})};
        ty_type c = ty_type_make(rows[i].c, 2, (int64_t[]){rows[i].k, rows[i].k});
        ty_attr attr = {.flags = rows[i].flags};
        ty_library_shape shape = {&attr, in, 2, &c, 1, 1, rows[i].strict};
        ty_library_call call;
        ty_error err = {0};
        assert_int_equal(ty_native_prepare_dot_pairs(&shape, &call, &err), -1);
        assert_int_equal(err.code, TY_E_UNSUPPORTED);
    }
}

/* Large results, where oneDNN has no tiles of the processor's own. */
static void pairs_pay_for_large_results(void **state)
{
    (void)state;
    if (!ty_panel_pairs())
        skip();
    for (int large = 0; large < 2; large++) {
        int64_t m = large ? 50257 : 768;
        ty_type in[] = {ty_type_make(TY_BF16, 2, (int64_t[]){256, m}), ty_type_make(TY_BF16, 2, (int64_t[]){256, 768})};
        ty_type c = ty_type_make(TY_F32, 2, (int64_t[]){m, 768});
        ty_attr attr = {.flags = TRANS_A};
        ty_library_shape shape = {&attr, in, 2, &c, 1, 2, false};
        ty_library_call call = {0};
        int rc = ty_native_prepare_dot_bf16(&shape, &call, NULL);
        assert_int_equal(rc == 0, large && !ty_onednn_has_amx());
        ty_library_release(&call);
    }
}

static void it_pays_but_for_few_rows(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n;
        uint32_t flags;
        bool pays;
    } rows[] = {
        {1024, 256, TRANS_A, true}, /* the gradient of a recurrent weight */
        {10, 128, TRANS_A, false},  /* hardly anything */
        {128, 512, TRANS_B, false}, /* few rows for a turned right side */
        {2048, 512, TRANS_B, true}, {4096, 4096, TRANS_B, true}, {128, 512, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ty_type result = ty_type_make(TY_F32, 2, (int64_t[]){rows[i].m, rows[i].n});
        assert_int_equal(ty_native_dot_pays(&(ty_attr){.flags = rows[i].flags}, &result),
                         rows[i].pays && !ty_onednn_is_wide());
    }
}

enum { K = 37, DEPTH = 40, ROWS = 29, N = 21, STEP = 2 * TY_PANEL };

/* c [rows, 32] of 64 columns: what lies beside a panel's result stays 0. */
static void is_product(const float *a, const float *b, int rows, const float *c, double times)
{
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < STEP; j++) {
            double want = 0;
            for (int i = 0; j < N && i < K; i++)
                want += (double)a[r * K + i] * b[j * K + i];
            assert_true(fabs(c[r * STEP + j] - times * want) < 1e-5);
        }
}

/* Rows as they lie, turned, and in tiles added to that; b as it lies, turned, and turned back. */
static void panels_of(const ty_panel_kernels *kernels, const float *a, const float *b)
{
    static _Alignas(64) float panel[2][DEPTH * TY_PANEL], c[ROWS * STEP];
    static float turned_a[K * ROWS], turned_b[K * N], tiles[ROWS * K], unpacked[N * K];
    for (int i = 0; i < K; i++) {
        for (int r = 0; r < ROWS; r++)
            turned_a[i * ROWS + r] = a[r * K + i];
        for (int j = 0; j < N; j++)
            turned_b[i * N + j] = b[j * K + i];
    }
    kernels->pack_turned(panel[0], DEPTH, b, K, K, N);
    kernels->pack(panel[1], DEPTH, turned_b, N, K, N);
    kernels->unpack_turned(unpacked, K, panel[0], DEPTH, K, N);
    assert_memory_equal(unpacked, b, sizeof unpacked);
    for (int rows = 1; rows <= ROWS; rows++) {
        kernels->rows(a, K, rows, K, panel[0], DEPTH, c, STEP, false);
        is_product(a, b, rows, c, 1);
        kernels->columns(turned_a, ROWS, rows, K, panel[0], DEPTH, c, STEP, false);
        is_product(a, b, rows, c, 1);
        kernels->pack_tiles(tiles, turned_a, rows, K, ROWS);
        kernels->tiles(tiles, rows, K, panel[1], DEPTH, c, STEP, true);
        is_product(a, b, rows, c, 2);
    }
}

static void panels_multiply(void **state)
{
    (void)state;
    static float a[ROWS * K], b[N * K];
    const ty_panel_kernels *all[TY_PANEL_KINDS];
    uint32_t seed = 3;
    for (int i = 0; i < ROWS * K; i++)
        a[i] = (float)native_number(NATIVE_NOISE, native_random(&seed));
    for (int i = 0; i < N * K; i++)
        b[i] = (float)native_number(NATIVE_NOISE, native_random(&seed));
    for (int i = 0, n = ty_panel_usable(all); i < n; i++)
        panels_of(all[i], a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_shapes),
        cmocka_unit_test(blocks),
        cmocka_unit_test(batches),
        cmocka_unit_test(pairs_of_bfloat16),
        cmocka_unit_test(others_are_no_pairs),
        cmocka_unit_test(pairs_pay_for_large_results),
        cmocka_unit_test(no_numbers),
        cmocka_unit_test(panels_multiply),
        cmocka_unit_test(it_pays_but_for_few_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
