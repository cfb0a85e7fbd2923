/* native_depth.c - the gradient of the weights of depthwise convolutions against the reference, and which ones are
 * taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/native_case.h"

typedef struct depth_case {
    int64_t images, h, w, channels, size_h, size_w, step_h, step_w, dil_h, dil_w, lo, hi;
} depth_case;

static ty_attr case_attr(const depth_case *c, uint32_t flags)
{
    const int64_t window[] = {c->channels, 1, c->size_h, c->size_w}, last[] = {c->channels, c->size_h, c->size_w, 1};
    return (ty_attr){.n = 2,
                     .groups = c->channels,
                     .flags = flags,
                     .step = {c->step_h, c->step_w},
                     .dil = {c->dil_h, c->dil_w},
                     .lo = {c->lo, c->lo},
                     .hi = {c->hi, c->hi},
                     .type = ty_type_make(TY_F32, 4, flags & TY_SLIDING_WEIGHTS_LAST ? last : window)};
}

static int64_t positions(int64_t in, int64_t pad, int64_t size, int64_t dil, int64_t step)
{
    return (in + pad - ((size - 1) * dil + 1)) / step + 1;
}

/* x and dy */
static void case_types(const depth_case *c, ty_dtype dtype, ty_type types[2])
{
    int64_t h = positions(c->h, c->lo + c->hi, c->size_h, c->dil_h, c->step_h);
    int64_t w = positions(c->w, c->lo + c->hi, c->size_w, c->dil_w, c->step_w);
    types[0] = ty_type_make(dtype, DIMS(c->images, c->h, c->w, c->channels));
    types[1] = ty_type_make(dtype, DIMS(c->images, h, w, c->channels));
}

static void gradients_are_those_of_the_definition(void **state)
{
    (void)state;
    static const depth_case cases[] = {
        {3, 14, 14, 32, 5, 5, 1, 1, 1, 1, 2, 2},  {2, 13, 11, 24, 5, 5, 2, 2, 1, 1, 2, 1}, /* half a vector */
        {1, 9, 12, 3, 7, 7, 1, 1, 1, 1, 3, 3},    {2, 5, 40, 17, 2, 11, 1, 3, 1, 1, 0, 0}, /* taps of all kinds */
        {2, 17, 16, 16, 4, 4, 1, 1, 2, 3, 3, 3},  {1, 3, 3, 48, 5, 5, 1, 1, 1, 1, 2, 2},   /* fewer rows than parts */
        {2, 20, 19, 20, 3, 6, 3, 2, 4, 1, 0, 5},  {4, 7, 7, 160, 1, 13, 1, 1, 1, 1, 6, 6},
        {2, 4, 9, 16, 13, 1, 1, 1, 1, 1, 12, 12}, /* windows higher than x, rows that are all padding */
    };
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        ty_type types[2];
        uint32_t flags = TY_SLIDING_LAST | (i & 1 ? TY_SLIDING_WEIGHTS_LAST : 0);
        case_types(&cases[i / 4], i & 2 ? TY_BF16 : TY_F32, types);
        native_agrees(TY_OP_CONV_DW, case_attr(&cases[i / 4], flags), types, 2, NATIVE_NOISE, 2e-5);
    }
}

static bool is_taken(const depth_case *c, ty_dtype dtype, uint32_t flags, int64_t filters)
{
    ty_type types[2];
    ty_attr attr = case_attr(c, flags);
    ty_library_call call = {0};
    case_types(c, dtype, types);
    types[1].dim[3] = filters;
    attr.type.dim[0] = filters;
    const ty_library_shape shape = {.attr = &attr, .in = types, .n_in = 2, .res = &attr.type, .n_res = 1, .threads = 1};
    bool taken = ty_native_prepare_depth_dw(&shape, &call, NULL) == 0;
    ty_library_release(&call);
    return taken;
}

static void what_is_taken(void **state)
{
    (void)state;
    const depth_case five = {8, 14, 14, 32, 5, 5, 1, 1, 1, 1, 2, 2}, three = {8, 14, 14, 32, 3, 3, 1, 1, 1, 1, 1, 1};
    const depth_case high = {1, 99, 3, 32, 17, 1, 1, 1, 5, 1, 0, 0}; /* rows that are too far apart to be kept */
    assert_true(is_taken(&five, TY_F32, TY_SLIDING_LAST, 32));
    assert_true(is_taken(&five, TY_BF16, TY_SLIDING_LAST, 32));
    assert_false(is_taken(&five, TY_F16, TY_SLIDING_LAST, 32));
    assert_false(is_taken(&five, TY_F32, 0, 32));
    assert_false(is_taken(&five, TY_F32, TY_SLIDING_LAST, 64)); /* two filters a channel */
    assert_false(is_taken(&three, TY_F32, TY_SLIDING_LAST, 32));
    assert_false(is_taken(&high, TY_F32, TY_SLIDING_LAST, 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_definition),
        cmocka_unit_test(what_is_taken),
    };
    return cmocka_run_group_tests_name("native_depth", tests, NULL, NULL);
}
