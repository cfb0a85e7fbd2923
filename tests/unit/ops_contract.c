/* ops_contract.c - dot, conv and its gradients: values, refusals, adjoints, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/ops_case.h"
#include "tests/unit/ops_gradient.h"

static void dot_multiplies(void **state)
{
    (void)state;
    ty_ref want =
        F64(DIMS(2, 2), 1 * 5 + 2 * 7 + 3 * 9, 1 * 6 + 2 * 8 + 3 * 10, 4 * 5 + 5 * 7 + 6 * 9, 4 * 6 + 5 * 8 + 6 * 10);
    ty_ref a = F64(DIMS(2, 3), 1, 2, 3, 4, 5, 6), at = F64(DIMS(3, 2), 1, 4, 2, 5, 3, 6);
    ty_ref b = F64(DIMS(3, 2), 5, 6, 7, 8, 9, 10), bt = F64(DIMS(2, 3), 5, 7, 9, 6, 8, 10);
    case_expect(TY_OP_DOT, (ty_attr){.flags = 0}, IN(a, b), OUT(want));
    case_expect(TY_OP_DOT, (ty_attr){.flags = 1}, IN(at, b), OUT(want));
    case_expect(TY_OP_DOT, (ty_attr){.flags = 2}, IN(a, bt), OUT(want));
    case_expect(TY_OP_DOT, (ty_attr){.flags = 3}, IN(at, bt), OUT(want));
    case_expect(TY_OP_DOT, (ty_attr){.flags = 2},
                IN(F64(DIMS(2, 1, 2), 1, 2, 3, 4), F64(DIMS(2, 3, 2), 1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 2, 2)),
                OUT(F64(DIMS(2, 1, 3), 1, 2, 3, 6, 8, 14)));
    case_expect(TY_OP_DOT, (ty_attr){.flags = 0},
                IN(INT(TY_I32, DIMS(1, 2), 1 << 20, 3), INT(TY_I32, DIMS(2, 1), 1 << 12, -4)),
                OUT(INT(TY_I32, DIMS(1, 1), -12))); /* 2^32 wraps away */
    case_expect(TY_OP_DOT, (ty_attr){.flags = 0}, IN(a, b, F64(DIMS(2, 2), 1, -2, 0, 4)),
                OUT(F64(DIMS(2, 2), 1 + 46, -2 + 52, 109, 4 + 124)));
    case_expect(TY_OP_DOT, (ty_attr){.flags = 0},
                IN(INT(TY_I32, DIMS(1, 1), 3), INT(TY_I32, DIMS(1, 1), 5), INT(TY_I32, DIMS(1, 1), -1)),
                OUT(INT(TY_I32, DIMS(1, 1), 14)));
    ty_ref none = case_noise(DIMS(2, 0), 1), none_b = case_noise(DIMS(0, 1), 1);
    case_expect(TY_OP_DOT, (ty_attr){.flags = 0}, IN(none, none_b), OUT(F64(DIMS(2, 1), 0, 0)));
}

static void dot_refuses(void **state)
{
    (void)state;
    case_refused(TY_OP_DOT, (ty_attr){.flags = 0}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_F32, DIMS(4, 2))),
                 "expected 3 rows to contract with a f32[2,3], found f32[4,2]");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 3}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_F32, DIMS(3, 3))),
                 "expected 2 rows to contract with a f32[2,3] transposed, found f32[3,3] transposed");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 0}, IN(TYPE(TY_F32, DIMS(2, 2, 3)), TYPE(TY_F32, DIMS(1, 3, 2))),
                 "batch axis 0 to be 2");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 0}, IN(TYPE(TY_F32, DIMS(2, 2, 3)), TYPE(TY_F32, DIMS(3, 2))),
                 "b: expected rank 3");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 0}, IN(TYPE(TY_F32, DIMS(3)), TYPE(TY_F32, DIMS(3))),
                 "a: expected rank 2");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 0}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_F64, DIMS(3, 2))),
                 "b: expected f32, found f64");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 0},
                 IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_F32, DIMS(3, 4)), TYPE(TY_F32, DIMS(4, 2))),
                 "c: expected f32[2,4], found f32[4,2]");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 16}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_F32, DIMS(3, 2))), "flags");
    case_refused(TY_OP_DOT, (ty_attr){.flags = 0},
                 IN(TYPE(TY_F32, DIMS(INT64_C(1) << 40, 1)), TYPE(TY_F32, DIMS(1, INT64_C(1) << 40))), "below 2^63");
}

typedef struct conv_geometry {
    int n, groups;
    int64_t batch, c, o, in[3], size[3], step[3], dil[3], lo[3], hi[3];
} conv_geometry;

static const conv_geometry conv_geometries[] = {
    {2, 1, 2, 3, 4, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 1, 2, 3, {7, 5}, {3, 2}, {2, 3}, {1, 1}, {0, 1}, {2, 0}},
    {2, 2, 2, 4, 6, {5, 5}, {2, 3}, {1, 2}, {2, 1}, {1, 0}, {0, 2}},
    {2, 4, 1, 4, 4, {4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, /* depthwise */
    {1, 1, 2, 2, 3, {9}, {4}, {3}, {2}, {2}, {1}},
    {1, 3, 1, 3, 6, {4}, {1}, {1}, {1}, {0}, {0}},
    {3, 1, 1, 2, 2, {3, 4, 3}, {2, 2, 3}, {1, 2, 1}, {1, 1, 1}, {1, 0, 1}, {0, 1, 1}},
    {2, 1, 1, 1, 1, {2, 2}, {1, 1}, {3, 3}, {1, 1}, {3, 4}, {3, 1}}, /* windows of padding alone; skipped rows */
};
#define CONV_N_GEOMETRIES (sizeof conv_geometries / sizeof conv_geometries[0])

static ty_attr conv_attr(const conv_geometry *q)
{
    ty_attr a = {.n = (uint32_t)q->n, .groups = q->groups};
    for (int i = 0; i < q->n; i++) {
        a.step[i] = q->step[i];
        a.dil[i] = q->dil[i];
        a.lo[i] = q->lo[i];
        a.hi[i] = q->hi[i];
    }
    return a;
}

static ty_ref conv_operand(const conv_geometry *q, int64_t d0, int64_t d1, const int64_t *spatial, unsigned seed)
{
    int64_t dim[5] = {d0, d1};
    for (int i = 0; i < q->n; i++)
        dim[2 + i] = spatial[i];
    return case_noise(2 + q->n, dim, seed);
}

static int64_t conv_dim(const ty_ref *r, int axis)
{
    return axis < r->type.rank ? r->type.dim[axis] : 1;
}

/* One element of y straight from the definition. at: n, o, and spatial position. */
static double conv_one(const conv_geometry *q, const ty_ref *x, const ty_ref *w, const int64_t *at)
{
    int64_t per = q->c / q->groups, group = at[1] / (q->o / q->groups);
    double sum = 0;
    for (int64_t c = 0; c < per; c++)
        for (int64_t i = 0; i < conv_dim(w, 2); i++)
            for (int64_t j = 0; j < conv_dim(w, 3); j++)
                for (int64_t k = 0; k < conv_dim(w, 4); k++) {
                    int64_t tap[3] = {i, j, k}, xi = at[0] * q->c + group * per + c, wi = at[1] * per + c;
                    bool inside = true;
                    for (int a = 0; a < q->n; a++) {
                        int64_t p = at[2 + a] * q->step[a] - q->lo[a] + tap[a] * q->dil[a];
                        inside = inside && p >= 0 && p < q->in[a];
                        xi = xi * q->in[a] + p;
                        wi = wi * q->size[a] + tap[a];
                    }
                    if (inside)
                        sum += x->f[xi] * w->f[wi];
                }
    return sum;
}

static void conv_by_definition(const conv_geometry *q, const ty_ref *x, const ty_ref *w, ty_ref *y)
{
    int64_t n = ty_type_elems(&y->type);
    for (int64_t k = 0; k < n; k++) {
        int64_t at[5], rest = k;
        for (int a = y->type.rank - 1; a >= 0; a--) {
            at[a] = rest % y->type.dim[a];
            rest /= y->type.dim[a];
        }
        y->f[k] = conv_one(q, x, w, at);
    }
}

static void conv_follows_its_definition(void **state)
{
    (void)state;
    for (size_t k = 0; k < CONV_N_GEOMETRIES; k++) {
        const conv_geometry *q = &conv_geometries[k];
        ty_ref x = conv_operand(q, q->batch, q->c, q->in, 1), w = conv_operand(q, q->o, q->c / q->groups, q->size, 2);
        ty_ref y, want;
        case_run(TY_OP_CONV, conv_attr(q), IN(x, w), &y);
        for (int a = 0; a < q->n; a++)
            assert_int_equal(y.type.dim[2 + a],
                             (q->in[a] + q->lo[a] + q->hi[a] - q->dil[a] * (q->size[a] - 1) - 1) / q->step[a] + 1);
        want = case_noise(y.type.rank, y.type.dim, 0);
        conv_by_definition(q, &x, &w, &want);
        case_same("conv", &y, &want, 1e-13);
    }
}

static double conv_inner(const ty_ref *a, const ty_ref *b)
{
    double sum = 0;
    assert_true(ty_type_same(&a->type, &b->type));
    for (int64_t k = 0; k < ty_type_elems(&a->type); k++)
        sum += a->f[k] * b->f[k];
    return sum;
}

/* <conv(x, w), y> = <x, conv_dx(y, w)> = <w, conv_dw(x, y)> for any x, w, y */
static void conv_gradients_are_adjoint(void **state)
{
    (void)state;
    for (size_t k = 0; k < CONV_N_GEOMETRIES; k++) {
        const conv_geometry *q = &conv_geometries[k];
        ty_ref x = conv_operand(q, q->batch, q->c, q->in, 3), w = conv_operand(q, q->o, q->c / q->groups, q->size, 4);
        ty_ref y, dx, dw;
        ty_attr attr = conv_attr(q), of_x = attr, of_w = attr;
        of_x.type = x.type;
        of_w.type = w.type;
        case_run(TY_OP_CONV, attr, IN(x, w), &y);
        ty_ref dy = case_noise(y.type.rank, y.type.dim, 5);
        case_run(TY_OP_CONV_DX, of_x, IN(dy, w), &dx);
        case_run(TY_OP_CONV_DW, of_w, IN(x, dy), &dw);
        double want = conv_inner(&y, &dy);
        assert_true(fabs(conv_inner(&x, &dx) - want) < 1e-12 * (1 + fabs(want)));
        assert_true(fabs(conv_inner(&w, &dw) - want) < 1e-12 * (1 + fabs(want)));
    }
}

static void conv_values(void **state)
{
    ty_attr a = {.n = 1, .groups = 1, .step = {1}, .dil = {1}, .lo = {1}};
    (void)state;
    case_expect(TY_OP_CONV, a, IN(F64(DIMS(1, 1, 4), 1, 2, 3, 4), F64(DIMS(1, 1, 2), 10, 1)),
                OUT(F64(DIMS(1, 1, 4), 1, 12, 23, 34)));
    a.type = ty_type_make(TY_F64, DIMS(1, 1, 4));
    case_expect(TY_OP_CONV_DX, a, IN(F64(DIMS(1, 1, 4), 1, 2, 3, 4), F64(DIMS(1, 1, 2), 10, 1)),
                OUT(F64(DIMS(1, 1, 4), 21, 32, 43, 4)));
    a.type = ty_type_make(TY_F64, DIMS(1, 1, 2));
    case_expect(TY_OP_CONV_DW, a, IN(F64(DIMS(1, 1, 4), 1, 2, 3, 4), F64(DIMS(1, 1, 4), 1, 0, 1, -1)),
                OUT(F64(DIMS(1, 1, 2), 2 - 3, 1 + 3 - 4)));
}

static void conv_refuses(void **state)
{
    ty_attr a = conv_attr(&conv_geometries[0]);
    (void)state;
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 4, 5, 5)), TYPE(TY_F32, DIMS(2, 3, 3, 3))),
                 "w: expected 4 channels (4 of x in 1 groups), found 3");
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 3, 5, 5)), TYPE(TY_F32, DIMS(2, 3, 3))), "w: expected rank 4");
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 3, 5)), TYPE(TY_F32, DIMS(2, 3, 3, 3))), "x: expected rank 4");
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 3, 5, 5)), TYPE(TY_F64, DIMS(2, 3, 3, 3))), "w: expected f32");
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_I32, DIMS(1, 3, 5, 5)), TYPE(TY_I32, DIMS(2, 3, 3, 3))), "float type");
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 3, 5, 5)), TYPE(TY_F32, DIMS(2, 3, 8, 3))), "one that spans 8");
    a.groups = 2;
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 3, 5, 5)), TYPE(TY_F32, DIMS(2, 3, 3, 3))),
                 "groups: expected a divisor of 3 input and 2 output channels, found 2");
    a.groups = 0;
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 3, 5, 5)), TYPE(TY_F32, DIMS(2, 3, 3, 3))), "found 0");
    a.groups = 1;
    a.n = UINT32_MAX;
    case_refused(TY_OP_CONV, a, IN(TYPE(TY_F32, DIMS(1, 3, 5, 5)), TYPE(TY_F32, DIMS(2, 3, 3, 3))),
                 "n: expected 1 to 3");
    a.n = 2;
    a.type = ty_type_make(TY_F32, DIMS(1, 3, 5, 5));
    case_refused(TY_OP_CONV_DX, a, IN(TYPE(TY_F32, DIMS(1, 2, 5, 6)), TYPE(TY_F32, DIMS(2, 3, 3, 3))),
                 "dy: expected f32[1,2,5,5], found f32[1,2,5,6]");
    a.type = ty_type_make(TY_F32, DIMS(2, 3, 3, 3));
    case_refused(TY_OP_CONV_DW, a, IN(TYPE(TY_F32, DIMS(1, 3, 5, 5)), TYPE(TY_F32, DIMS(1, 1, 5, 5))),
                 "dy: expected f32[1,2,5,5], found f32[1,1,5,5]");
}

static void dot_gradients(void **state)
{
    (void)state;
    for (uint32_t flags = 0; flags < 4; flags++) {
        gradcheck_input a = GRAD_IN(2, 3), b = GRAD_IN(3, 4), at = GRAD_IN(3, 2), bt = GRAD_IN(4, 3), c = GRAD_IN(2, 4);
        gradcheck_input a3 = GRAD_IN(2, 2, 3), b3 = GRAD_IN(2, 3, 1), at3 = GRAD_IN(2, 3, 2), bt3 = GRAD_IN(2, 1, 3);
        GRADCHECK_NODE("dot", TY_OP_DOT, .attr = {.flags = flags},
                       .check = {.n_in = 2, .in = {flags & 1 ? at : a, flags & 2 ? bt : b}});
        GRADCHECK_NODE("dot added", TY_OP_DOT, .attr = {.flags = flags},
                       .check = {.n_in = 3, .in = {flags & 1 ? at : a, flags & 2 ? bt : b, c}});
        GRADCHECK_NODE("batched dot", TY_OP_DOT, .attr = {.flags = flags},
                       .check = {.n_in = 2, .in = {flags & 1 ? at3 : a3, flags & 2 ? bt3 : b3}});
    }
}

static gradcheck_input conv_grad_in(const ty_ref *r)
{
    gradcheck_input in = {.rank = r->type.rank};
    memcpy(in.dim, r->type.dim, sizeof in.dim);
    return in;
}

/* conv and both its gradients are differentiated in both operands, for every geometry. */
static void conv_gradients(void **state)
{
    (void)state;
    for (size_t k = 0; k < CONV_N_GEOMETRIES; k++) {
        conv_geometry q = conv_geometries[k];
        q.batch = 1; /* central differences run the op twice for each element */
        ty_ref x = conv_operand(&q, q.batch, q.c, q.in, 3), w = conv_operand(&q, q.o, q.c / q.groups, q.size, 4), y;
        ty_attr attr = conv_attr(&q), of_x = attr, of_w = attr;
        of_x.type = x.type;
        of_w.type = w.type;
        case_run(TY_OP_CONV, attr, IN(x, w), &y);
        gradcheck_input gx = conv_grad_in(&x), gw = conv_grad_in(&w), gy = conv_grad_in(&y);
        GRADCHECK_NODE("conv", TY_OP_CONV, .attr = attr, .check = {.n_in = 2, .in = {gx, gw}});
        GRADCHECK_NODE("conv_dx", TY_OP_CONV_DX, .attr = of_x, .check = {.n_in = 2, .in = {gy, gw}});
        GRADCHECK_NODE("conv_dw", TY_OP_CONV_DW, .attr = of_w, .check = {.n_in = 2, .in = {gx, gy}});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dot_gradients),  cmocka_unit_test(conv_gradients),
        cmocka_unit_test(dot_multiplies), cmocka_unit_test(dot_refuses),
        cmocka_unit_test(conv_values),    cmocka_unit_test(conv_follows_its_definition),
        cmocka_unit_test(conv_refuses),   cmocka_unit_test(conv_gradients_are_adjoint),
    };
    return cmocka_run_group_tests_name("ops_contract", tests, case_setup, case_teardown);
}
