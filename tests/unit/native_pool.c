/* native_pool.c - pooling by hand-written code against the reference, over a table of windows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/native_case.h"

typedef struct window {
    uint32_t n;
    int64_t dim[5], size[3], step[3], dil[3], lo[3], hi[3];
} window;

#define ONES    \
    {           \
        1, 1, 1 \
    }
static const window windows[] = {
    {2, {2, 3, 8, 8}, {2, 2}, {2, 2}, ONES, {0}, {0}},
    {2, {5, 7, 24, 24}, {2, 2}, {2, 2}, ONES, {0}, {0}},
    {2, {1, 1, 2, 2}, {2, 2}, {2, 2}, ONES, {0}, {0}},
    {2, {1, 2, 7, 13}, {2, 2}, {2, 2}, ONES, {0}, {0}},          /* odd: the last row and column are left over */
    {2, {1, 2, 7, 13}, {2, 2}, {2, 2}, ONES, {0}, {1, 1}},       /* rounded up: padding behind only */
    {2, {3, 2, 9, 7}, {3, 3}, {2, 2}, ONES, {1, 1}, {1, 1}},     /* overlapping */
    {2, {1, 1, 150, 150}, {3, 3}, {2, 2}, ONES, {1, 1}, {1, 0}}, /* one plane, dealt to threads by rows */
    {2, {1, 1, 150, 150}, {2, 2}, {2, 2}, ONES, {0}, {0}},
    {2, {2, 2, 11, 10}, {2, 3}, {1, 3}, {2, 3}, {1, 2}, {0, 4}},
    {2, {1, 3, 5, 5}, {5, 5}, {1, 1}, ONES, {0}, {0}}, /* whole plane */
    {2, {2, 64, 13, 17}, {13, 17}, {13, 17}, ONES, {0}, {0}},
    {2, {1, 1, 5, 6}, {1, 1}, {3, 2}, ONES, {0}, {0}}, /* windows with gaps between them */
    {2, {1, 2, 3, 4}, {3, 4}, {1, 1}, ONES, {2, 3}, {2, 3}},
    {2, {1, 2, 6, 40}, {1, 4}, {1, 4}, ONES, {0}, {0}},
    {1, {2, 3, 17}, {3}, {1}, ONES, {1}, {1}},
    {1, {2, 3, 17}, {2}, {2}, ONES, {0}, {1}},
    {1, {1, 1, 5}, {2}, {1}, {3}, {0}, {0}},
    {1, {40, 40, 16}, {4}, {3}, ONES, {3}, {3}},
    {3, {1, 2, 4, 5, 6}, {2, 2, 2}, {2, 2, 2}, ONES, {0}, {0}},
    {3, {1, 2, 5, 4, 7}, {3, 2, 3}, {1, 2, 3}, {1, 1, 2}, {1, 0, 2}, {0, 1, 2}},
    {3, {2, 1, 4, 4, 4}, {4, 4, 4}, {1, 1, 1}, ONES, {0}, {0}},
    {3, {1, 1, 30, 30, 30}, {2, 2, 2}, {2, 2, 2}, ONES, {1, 0, 1}, {1, 0, 1}},
};

static ty_attr window_attr(const window *w, uint32_t layout)
{
    ty_attr a = {.n = w->n, .flags = layout};
    for (uint32_t i = 0; i < w->n; i++) {
        a.size[i] = w->size[i];
        a.step[i] = w->step[i];
        a.dil[i] = w->dil[i];
        a.lo[i] = w->lo[i];
        a.hi[i] = w->hi[i];
    }
    return a;
}

static ty_type window_x(const window *w, uint32_t layout)
{
    ty_type first = ty_type_make(TY_F32, 2 + (int)w->n, w->dim);
    return ty_sliding_laid(&(ty_attr){.flags = layout}, &first);
}

/* Every window in both layouts, channels-first and channels-last. */
#define FOR_WINDOWS(w)                                                              \
    for (uint32_t layout = 0; layout <= TY_SLIDING_LAST; layout += TY_SLIDING_LAST) \
        for (const window *w = windows; w < windows + sizeof windows / sizeof *windows; w++)

static void max_agrees(void **state)
{
    (void)state;
    FOR_WINDOWS(w)
    for (native_fill fill = NATIVE_NOISE; fill <= NATIVE_LEAST; fill++)
        native_agrees(TY_OP_POOL_MAX, window_attr(w, layout), TYPES(window_x(w, layout)), fill, 0);
}

/* Operands are made like any others, so the index points anywhere in the plane, as the op allows. */
static void max_grad_agrees(void **state)
{
    (void)state;
    FOR_WINDOWS(w)
    {
        ty_attr attr = window_attr(w, layout);
        ty_type x = window_x(w, layout), y[2];
        assert_int_equal(ty_op_row_of(TY_OP_POOL_MAX)->infer(&attr, (const ty_type *[]){&x}, 1, y, NULL), 0);
        int64_t plane = ty_type_elems(&x) / (w->dim[0] * w->dim[1]);
        attr.type = x;
        native_agrees_below(TY_OP_POOL_MAX_GRAD, attr, TYPES(y[0], y[1]), NATIVE_NOISE, 1e-5, plane);
    }
}

static void *large(const ty_type *t)
{
    void *data = malloc(ty_type_bytes(t));
    assert_non_null(data);
    return data;
}

static void run_last(int (*prepare)(const ty_library_shape *, ty_library_call *, ty_error *), ty_library_shape shape,
                     const void *const *in, void *const *out)
{
    ty_library_call call;
    assert_int_equal(prepare(&shape, &call, NULL), 0);
    call.run(call.prepared, in, out, NULL);
    call.release(call.prepared);
}

/* The gradient of images that are taken slab by slab: where indices are a maximum's, and where one points into another
 * slab; gaps between windows, rows behind the last one, and padding. */
static void max_grad_of_large_images_agrees(void **state)
{
    (void)state;
    static const ty_attr attrs[] = {
        {.n = 2, .size = {2, 2}, .step = {2, 2}, .dil = {1, 1}},
        {.n = 2, .size = {2, 3}, .step = {3, 1}, .dil = {2, 1}, .lo = {1, 1}, .hi = {0, 2}},
        {.n = 2, .size = {3, 3}, .step = {4, 3}, .dil = {1, 1}, .lo = {2, 0}},
        {.n = 2, .size = {3, 3}, .step = {2, 2}, .dil = {1, 1}, .lo = {1, 1}, .hi = {1, 1}}};
    ty_type x = TYPE(TY_F32, DIMS(2, 83, 81, 48)), y[2];
    float *data = large(&x), *dx = large(&x), *want = large(&x);
    int64_t n_x = ty_type_elems(&x);
    for (int64_t i = 0; i < n_x; i++)
        data[i] = (float)((i * 7919 + 13) % 4093);
    for (size_t k = 0; k < 2 * sizeof attrs / sizeof *attrs; k++) {
        ty_attr attr = attrs[k / 2];
        attr.flags = TY_SLIDING_LAST;
        assert_int_equal(ty_op_row_of(TY_OP_POOL_MAX)->infer(&attr, (const ty_type *[]){&x}, 1, y, NULL), 0);
        float *dy = large(&y[0]);
        int32_t *index = large(&y[1]);
        run_last(ty_native_prepare_last_max, (ty_library_shape){&attr, &x, 1, y, 2, 2, true},
                 (const void *const[]){data}, (void *const[]){dy, index});
        if (k % 2)
            index[50] = 80 * 81 + 3; /* a window of the first rows gives to one of the last */
        attr.type = x;
        run_last(ty_native_prepare_last_max_grad, (ty_library_shape){&attr, y, 2, &x, 1, 2, true},
                 (const void *const[]){dy, index}, (void *const[]){dx});
        memset(want, 0, ty_type_bytes(&x));
        for (int64_t i = 0; i < ty_type_elems(&y[0]); i++)
            want[i / (ty_type_elems(&y[0]) / 2) * (n_x / 2) + (int64_t)index[i] * 48 + i % 48] += dy[i];
        assert_memory_equal(dx, want, ty_type_bytes(&x));
        free(dy);
        free(index);
    }
    free(data);
    free(dx);
    free(want);
}

static void max_grad_ignores_wild_index(void **state)
{
    (void)state;
    const float dy[4] = {1, 2, 4, 8};
    const int32_t index[4] = {-1, 4, INT32_MAX, 0};
    float dx[4];
    ty_attr attr = {.n = 1, .type = TYPE(TY_F32, DIMS(1, 1, 4)), .size = {1}, .step = {1}, .dil = {1}};
    ty_type in[2] = {attr.type, TYPE(TY_I32, DIMS(1, 1, 4))};
    ty_library_shape shape = {&attr, in, 2, &attr.type, 1, 1, true};
    ty_library_call call;
    assert_int_equal(ty_native_prepare_pool_max_grad(&shape, &call, NULL), 0);
    call.run(call.prepared, (const void *const[]){dy, index}, (void *const[]){dx}, NULL);
    call.release(call.prepared);
    assert_memory_equal(dx, ((const float[]){8, 0, 0, 0}), sizeof dx);
}

static void sum_agrees(void **state)
{
    (void)state;
    FOR_WINDOWS(w)
    {
        native_agrees(TY_OP_POOL_SUM, window_attr(w, layout), TYPES(window_x(w, layout)), NATIVE_NOISE, 1e-5);
        native_agrees(TY_OP_POOL_SUM, window_attr(w, layout), TYPES(window_x(w, layout)), NATIVE_TIES, 1e-5);
    }
    window far = {1, {1, 1, 2}, {1}, {2}, ONES, {0}, {3}}; /* a window of padding alone */
    native_agrees(TY_OP_POOL_SUM, window_attr(&far, 0), TYPES(window_x(&far, 0)), NATIVE_NOISE, 0);
}

static void sum_grad_agrees(void **state)
{
    (void)state;
    FOR_WINDOWS(w)
    {
        ty_attr attr = window_attr(w, layout);
        ty_type x = window_x(w, layout), y;
        assert_int_equal(ty_op_row_of(TY_OP_POOL_SUM)->infer(&attr, (const ty_type *[]){&x}, 1, &y, NULL), 0);
        attr.type = x;
        native_agrees(TY_OP_POOL_SUM_GRAD, attr, TYPES(y), NATIVE_NOISE, 1e-5);
    }
}

/* Each of the two takes one layout, so that the list of calls finds the right one. */
static void other_layouts_are_refused(void **state)
{
    (void)state;
    for (uint32_t layout = 0; layout <= TY_SLIDING_LAST; layout += TY_SLIDING_LAST) {
        ty_attr attr = window_attr(&windows[0], layout);
        ty_type x = window_x(&windows[0], layout), y;
        assert_int_equal(ty_op_row_of(TY_OP_POOL_SUM)->infer(&attr, (const ty_type *[]){&x}, 1, &y, NULL), 0);
        ty_library_shape shape = {&attr, &x, 1, &y, 1, 1, true};
        ty_library_call call;
        ty_error err = {0};
        assert_int_equal((layout ? ty_native_prepare_pool_sum : ty_native_prepare_last_sum)(&shape, &call, &err), -1);
        assert_int_equal(err.code, TY_E_UNSUPPORTED);
    }
}

static void other_dtypes_are_refused(void **state)
{
    (void)state;
    ty_attr attr = window_attr(&windows[0], 0);
    ty_type x = TYPE(TY_F64, DIMS(2, 3, 8, 8)), y = TYPE(TY_F64, DIMS(2, 3, 4, 4));
    ty_library_shape shape = {&attr, &x, 1, &y, 1, 1, true};
    ty_library_call call;
    ty_error err = {0};
    assert_int_equal(ty_native_prepare_pool_sum(&shape, &call, &err), -1);
    assert_int_equal(err.code, TY_E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_agrees),
        cmocka_unit_test(max_grad_agrees),
        cmocka_unit_test(max_grad_of_large_images_agrees),
        cmocka_unit_test(max_grad_ignores_wild_index),
        cmocka_unit_test(sum_agrees),
        cmocka_unit_test(sum_grad_agrees),
        cmocka_unit_test(other_dtypes_are_refused),
        cmocka_unit_test(other_layouts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
