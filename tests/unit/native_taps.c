/* native_taps.c - convolutions a tap at a time, and both gradients, against the reference; which ones are taken, and in
 * whose place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/target/cpu/onednn.h"
#include "compiler/target/cpu/panel.h"
#include "tests/unit/native_case.h"

enum { AXES = 3 };

typedef struct taps_case {
    uint32_t axes;
    int64_t images, in[AXES], channels, filters, size[AXES], step[AXES], dil[AXES], lo[AXES], hi[AXES];
    bool weights_last;
} taps_case;

static const taps_case cases[] = {
    /* long rows in several chunks, dilated and causal; of which a tap reaches nothing; strided both ways */
    {1, 2, {300}, 32, 64, {2}, {1}, {32}, {32}, {0}, false},
    {1, 1, {20}, 16, 32, {3}, {1}, {25}, {25}, {25}, false},
    {1, 3, {101}, 20, 17, {4}, {3}, {2}, {1}, {5}, false},
    {1, 2, {97}, 33, 40, {5}, {2}, {3}, {4}, {0}, true},
    /* planes */
    {2, 2, {14, 13}, 32, 64, {3, 3}, {1, 1}, {6, 6}, {6, 6}, {6, 6}, false},
    {2, 1, {9, 11}, 24, 19, {3, 2}, {2, 3}, {1, 2}, {1, 0}, {0, 2}, false},
    {2, 3, {5, 6}, 48, 32, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, true},
    {2, 1, {1, 1}, 16, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false},
    /* channels in several blocks, for one tap */
    {2, 1, {4, 5}, 130, 70, {1, 3}, {1, 1}, {1, 2}, {0, 2}, {0, 2}, false},
    /* volumes */
    {3, 2, {5, 4, 6}, 16, 35, {2, 3, 2}, {2, 1, 1}, {1, 2, 3}, {0, 2, 1}, {1, 2, 2}, false},
};

static ty_type weights_of(const taps_case *c)
{
    int64_t dim[AXES + 2] = {c->filters};
    for (uint32_t i = 0; i < c->axes; i++)
        dim[c->weights_last ? 1 + i : 2 + i] = c->size[i];
    dim[c->weights_last ? c->axes + 1 : 1] = c->channels;
    return ty_type_make(TY_F32, (int)c->axes + 2, dim);
}

static void types_of(const taps_case *c, ty_type *x, ty_type *y)
{
    int64_t in[AXES + 2] = {c->images}, out[AXES + 2] = {c->images};
    for (uint32_t i = 0; i < c->axes; i++) {
        in[1 + i] = c->in[i];
        out[1 + i] = (c->in[i] + c->lo[i] + c->hi[i] - (c->size[i] - 1) * c->dil[i] - 1) / c->step[i] + 1;
    }
    in[c->axes + 1] = c->channels;
    out[c->axes + 1] = c->filters;
    *x = ty_type_make(TY_F32, (int)c->axes + 2, in);
    *y = ty_type_make(TY_F32, (int)c->axes + 2, out);
}

static ty_attr attr_of(const taps_case *c, const ty_type *type)
{
    ty_attr a = {.n = c->axes,
                 .groups = 1,
                 .flags = TY_SLIDING_LAST | (c->weights_last ? TY_SLIDING_WEIGHTS_LAST : 0),
                 .type = *type};
    memcpy(a.step, c->step, sizeof c->step);
    memcpy(a.dil, c->dil, sizeof c->dil);
    memcpy(a.lo, c->lo, sizeof c->lo);
    memcpy(a.hi, c->hi, sizeof c->hi);
    return a;
}

static void results_are_those_of_the_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_type x, y, w = weights_of(&cases[i]);
        types_of(&cases[i], &x, &y);
        native_agrees(TY_OP_CONV, attr_of(&cases[i], &y), (const ty_type[]){x, w}, 2, NATIVE_NOISE, 2e-5);
        native_agrees(TY_OP_CONV_DX, attr_of(&cases[i], &x), (const ty_type[]){y, w}, 2, NATIVE_NOISE, 2e-5);
        native_agrees(TY_OP_CONV_DW, attr_of(&cases[i], &w), (const ty_type[]){x, y}, 2, NATIVE_NOISE, 2e-5);
    }
}

static int prepare(ty_op op, const taps_case *c, const ty_attr *attr, bool strict, ty_library_call *call)
{
    ty_type x, y, w = weights_of(c);
    types_of(c, &x, &y);
    ty_type in[2] = {op == TY_OP_CONV_DX ? y : x, op == TY_OP_CONV_DW ? y : w};
    ty_type res = op == TY_OP_CONV ? y : op == TY_OP_CONV_DX ? x : w;
    ty_library_shape shape = {attr, in, 2, &res, 1, 2, strict};
    return ty_library_prepare(op, &shape, call, NULL);
}

static const ty_op ops[] = {TY_OP_CONV, TY_OP_CONV_DX, TY_OP_CONV_DW};

static bool takes(ty_op op, const taps_case *c, const ty_attr *attr, bool strict)
{
    ty_library_call call = {0};
    assert_int_equal(prepare(op, c, attr, strict, &call), 0);
    bool taken = strncmp(call.text, "native-taps:", 12) == 0;
    assert_true(taken || !strict || strstr(call.text, "native") == NULL);
    ty_library_release(&call);
    return taken;
}

/* Where oneDNN has nothing fast, or its sums would depend on the number of threads, these have their turn; not where it
 * has something, nor for channels-first tensors, groups and few channels. */
static void what_is_taken(void **state)
{
    (void)state;
    const taps_case causal = {1, 8, {1024}, 64, 64, {2}, {1}, {128}, {128}, {0}, false};
    const taps_case plain = {2, 4, {28, 28}, 64, 64, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, false};
    const taps_case thin = {2, 4, {28, 28}, 12, 64, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, false};
    const ty_onednn *lib;
    ty_type x, y;
    types_of(&plain, &x, &y);
    ty_attr attr = attr_of(&plain, &y), of_thin = attr_of(&thin, &y);
    for (int i = 0; i < 3; i++) {
        assert_true(takes(ops[i], &plain, &attr, true));
        assert_false(takes(ops[i], &thin, &of_thin, true));
    }
    if (ty_onednn_get(&lib, NULL) < 0 || strcmp(ty_panel_best()->name, "avx512"))
        skip(); /* what oneDNN has for other processors is another matter */
    types_of(&causal, &x, &y);
    attr = attr_of(&causal, &y);
    assert_false(takes(TY_OP_CONV, &causal, &attr, false));
    assert_true(takes(TY_OP_CONV_DX, &causal, &attr, false));
    assert_true(takes(TY_OP_CONV_DW, &causal, &attr, false));
    attr = attr_of(&plain, &y);
    for (int i = 0; i < 3; i++)
        assert_false(takes(ops[i], &plain, &attr, false));
    for (int64_t filters = 448; filters <= 512; filters += 64) { /* whose rows of dy lie half a page apart */
        const taps_case c = {2, 1, {18, 18}, 32, filters, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, false};
        types_of(&c, &x, &y);
        attr = attr_of(&c, &y);
        assert_int_equal(takes(TY_OP_CONV_DX, &c, &attr, false), filters == 512);
        assert_false(takes(TY_OP_CONV, &c, &attr, false));
    }
}

static void what_is_refused(void **state)
{
    (void)state;
    static ty_library_prepare_fn *const prepares[] = {ty_native_prepare_taps, ty_native_prepare_taps_dx,
                                                      ty_native_prepare_taps_dw};
    const taps_case c = {2, 4, {8, 8}, 32, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false};
    ty_type x, w = weights_of(&c);
    types_of(&c, &x, &(ty_type){0});
    ty_attr attr[2] = {attr_of(&c, &x), attr_of(&c, &x)};
    attr[0].flags = 0;
    attr[1].groups = 2;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) { /* x and y are alike */
            ty_type in[2] = {x, i == 2 ? x : w}, res = i == 2 ? w : x;
            ty_library_shape shape = {&attr[k], in, 2, &res, 1, 1, false};
            ty_library_call call = {0};
            ty_error err = {0};
            assert_int_equal(prepares[i](&shape, &call, &err), -1);
            assert_int_equal(err.code, TY_E_UNSUPPORTED);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_the_definition),
        cmocka_unit_test(what_is_taken),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
