/* Attention of com.microsoft against its formula, written down again in plain C: masks of all forms, causal, with keys
 * that came before. One batch entry, L = 2, P = 1 past key, N = 2 heads of D = 2. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/onnx_model.h"

#include <math.h>

enum { L = 2, P = 1, T = 3, N = 2, D = 2, H = N * D };

static const float x[L * H] = {0.5f, -1, 2, 0.25f, 1, 0.75f, -0.5f, 1.5f};
static float w[H * 3 * H], bias[3 * H], past[2 * N * P * D];

/* allowed[i][t]: 1, or 0 where the mask filters key t for query i. */
static void reference(const int allowed[L][T], bool causal, double *y)
{
    double qkv[L][3 * H], k[N][T][D], v[N][T][D];
    for (int i = 0; i < L; i++)
        for (int c = 0; c < 3 * H; c++) {
            qkv[i][c] = bias[c];
            for (int h = 0; h < H; h++)
                qkv[i][c] += (double)x[i * H + h] * w[h * 3 * H + c];
        }
    for (int n = 0; n < N; n++)
        for (int t = 0; t < T; t++)
            for (int d = 0; d < D; d++) {
                k[n][t][d] = t < P ? past[(n * P + t) * D + d] : qkv[t - P][H + n * D + d];
                v[n][t][d] = t < P ? past[((N + n) * P + t) * D + d] : qkv[t - P][2 * H + n * D + d];
            }
    for (int n = 0; n < N; n++)
        for (int i = 0; i < L; i++) {
            double e[T], sum = 0;
            for (int t = 0; t < T; t++) {
                double s = 0;
                for (int d = 0; d < D; d++)
                    s += qkv[i][n * D + d] * k[n][t][d] / sqrt(D);
                s += allowed[i][t] ? 0 : -10000;
                e[t] = causal && t > P + i ? 0 : exp(s);
                sum += e[t];
            }
            for (int d = 0; d < D; d++) {
                y[i * H + n * D + d] = 0;
                for (int t = 0; t < T; t++)
                    y[i * H + n * D + d] += e[t] / sum * v[n][t][d];
            }
        }
}

static void fill(float *v, int n, int seed)
{
    for (int i = 0; i < n; i++)
        v[i] = (float)((i * 7 + seed) % 11 - 5) / 8;
}

/* mask: int32 of the given shape; rank 0: none. */
static void check(int rank, const int64_t *dim, const int32_t *mask, bool causal, const int allowed[L][T])
{
    model_text m;
    ty_buf opset;
    ty_onnx_values values;
    ty_error err = {0};
    double want[L * H];
    size_t n_mask = 1;
    fill(w, H * 3 * H, 1);
    fill(bias, 3 * H, 2);
    fill(past, 2 * N * P * D, 3);
    model_begin(&m, 14);
    ty_buf_init(&opset, 64);
    put_text(&opset, 1, "com.microsoft");
    put_int(&opset, 2, 1);
    put_sub(&m.file, 8, &opset);
    model_floats(&m, "x", 3, (int64_t[]){1, L, H}, x);
    model_floats(&m, "w", 2, (int64_t[]){H, 3 * H}, w);
    model_floats(&m, "bias", 1, (int64_t[]){3 * H}, bias);
    model_floats(&m, "past", 5, (int64_t[]){2, 1, N, P, D}, past);
    for (int i = 0; i < rank; i++)
        n_mask *= (size_t)dim[i];
    if (rank)
        model_raw(&m, "mask", 6, rank, dim, mask, 4 * n_mask);
    attr_int(&m, "num_heads", N);
    attr_int(&m, "unidirectional", causal);
    model_node_in(&m, "com.microsoft", "Attention", rank ? "x,w,bias,mask,past" : "x,w,bias,,past", "y,present", "");
    model_output(&m, "y", 1);
    model_output(&m, "present", 1);
    ty_onnx *o = model_open(&m);
    ty_graph *g = ty_graph_new();
    if (ty_onnx_import(o, g, &(ty_onnx_binding){.mode = TY_ONNX_EVAL}, &values, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    reference(allowed, causal, want);
    const double *found = evaluate(g, values.outputs[0], NULL, false);
    for (int i = 0; i < L * H; i++)
        if (!(fabs(found[i] - want[i]) <= 1e-6))
            fail_msg("element %d: expected %.9g, found %.9g", i, want[i], found[i]);
    assert_int_equal(ty_b_dim(g, values.outputs[1], 3), T);
    ty_graph_free(g);
    ty_onnx_free(o);
    ty_buf_fini(&m.file);
}

static const int all[L][T] = {{1, 1, 1}, {1, 1, 1}};

static void test_plain(void **state)
{
    (void)state;
    check(0, NULL, NULL, false, all);
    check(0, NULL, NULL, true, all);
}

static void test_masks(void **state)
{
    (void)state;
    static const int second[L][T] = {{1, 0, 1}, {1, 0, 1}}, ends[L][T] = {{1, 1, 0}, {1, 1, 0}};
    static const int span[L][T] = {{0, 1, 0}, {0, 1, 0}}, each[L][T] = {{0, 1, 1}, {1, 1, 0}};
    check(2, (int64_t[]){1, T}, (int32_t[]){1, 0, 1}, false, second);
    check(2, (int64_t[]){1, T}, (int32_t[]){1, 0, 1}, true, second);
    check(1, (int64_t[]){1}, (int32_t[]){2}, false, ends);
    check(1, (int64_t[]){2}, (int32_t[]){2, 1}, false, span);
    check(3, (int64_t[]){1, L, T}, (int32_t[]){0, 1, 1, 1, 1, 0}, false, each);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_masks)};
    return cmocka_run_group_tests_name("onnx_microsoft", tests, NULL, NULL);
}
