/* The stride pass: float32 gradients of convolutions that go several positions at a time become those of ones that go
 * one by one, and mean the same. */
#include "tests/unit/evaluate.h"

#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"

enum { N = 2, MOST = 200000 };

/* Of x [N, channels, in..] and `out` channels, the convolution and its gradient for x; whether that is changed. */
typedef struct stride_case {
    int64_t in[2], size[2], step[2], lo[2], hi[2], channels, out, groups, dil;
    uint32_t flags;
    ty_dtype dtype;
    bool folds;
} stride_case;

#define PLAIN 1, 1, 0, TY_F32

static const stride_case cases[] = {
    {{8, 10}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 16, 4, PLAIN, true},
    {{9, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 17, 3, PLAIN, true}, /* the last row is met, and is not */
    {{8, 7}, {3, 3}, {2, 2}, {0, 0}, {0, 0}, 16, 3, PLAIN, true},
    {{8, 8}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, 16, 5, PLAIN, true},  /* as DCGAN's */
    {{12, 8}, {4, 4}, {4, 4}, {0, 0}, {0, 0}, 16, 5, PLAIN, true}, /* patches */
    {{11, 9}, {2, 2}, {3, 4}, {0, 0}, {0, 0}, 16, 4, PLAIN, true}, /* positions between windows */
    {{11, 9}, {2, 5}, {3, 2}, {1, 2}, {2, 3}, 16, 4, PLAIN, true},
    {{9, 9}, {3, 5}, {1, 2}, {1, 2}, {1, 1}, 16, 4, PLAIN, true}, /* along one axis */
    {{13, 13}, {5, 5}, {3, 3}, {4, 3}, {2, 5}, 16, 2, PLAIN, true},
    {{6, 6}, {7, 7}, {2, 2}, {3, 3}, {3, 3}, 16, 2, PLAIN, true},  /* windows larger than x */
    {{9, 8}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, 16, 4, PLAIN, true},  /* as those beside a strided block */
    {{8, 8}, {7, 7}, {2, 2}, {3, 3}, {3, 3}, 3, 4, PLAIN, true},   /* a first layer, whose gradient hardly anybody wants
                                                                    */
    {{1, 1}, {3, 3}, {3, 3}, {4, 4}, {0, 0}, 16, 2, PLAIN, false}, /* of zeros alone */
    {{23, 0}, {10, 0}, {5, 0}, {4, 0}, {2, 0}, 16, 4, PLAIN, true}, /* sound */
    {{23, 0}, {3, 0}, {4, 0}, {1, 0}, {0, 0}, 3, 4, PLAIN, true},
    {{8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 16, 4, PLAIN, false},
    {{8, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 16, 4, 2, 1, 0, TY_F32, false},
    {{8, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 16, 4, 1, 2, 0, TY_F32, false},
    {{8, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 16, 4, 1, 1, 0, TY_BF16, false},
    {{8, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 16, 4, 1, 1, TY_SLIDING_LAST, TY_F32, false},
};

/* Along one axis where in[1] is 0. */
static ty_attr attr_of(const stride_case *c)
{
    ty_attr attr = {.n = c->in[1] ? 2 : 1, .groups = c->groups, .flags = c->flags};
    for (uint32_t i = 0; i < attr.n; i++)
        attr.step[i] = c->step[i], attr.lo[i] = c->lo[i], attr.hi[i] = c->hi[i], attr.dil[i] = c->dil;
    return attr;
}

/* Both are outputs, of numbers of their own. */
static ty_graph *make(const stride_case *c)
{
    ty_graph *g = ty_graph_new();
    ty_attr attr = attr_of(c);
    int rank = 2 + (int)attr.n;
    int64_t x_first[] = {N, c->channels, c->in[0], c->in[1]}, x_last[] = {N, c->in[0], c->in[1], c->channels};
    ty_val x = new_input(g, TY_F32, rank, c->flags & TY_SLIDING_LAST ? x_last : x_first);
    ty_val w = new_input(g, TY_F32, rank, (int64_t[]){c->out, c->channels / c->groups, c->size[0], c->size[1]});
    x = ty_b_cast(g, x, c->dtype), w = ty_b_cast(g, w, c->dtype);
    ty_val y = ty_graph_emit(g, TY_OP_CONV, &attr, (ty_val[]){x, w}, 2);
    expect_ok(g);
    const ty_type type = *ty_graph_type(g, y);
    ty_val dy = ty_b_cast(g, new_input(g, TY_F32, type.rank, type.dim), c->dtype);
    attr.type = *ty_graph_type(g, x);
    ty_val dx = ty_graph_emit(g, TY_OP_CONV_DX, &attr, (ty_val[]){dy, w}, 2);
    ty_graph_add_output(g, "y", y, TY_TAPE_EVAL);
    ty_graph_add_output(g, "dx", dx, TY_TAPE_EVAL);
    expect_ok(g);
    return g;
}

/* The gradient that goes by steps of 1, or NONE. */
static uint32_t gradient_of_one(const ty_graph *g)
{
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        const ty_attr *attr = ty_graph_attr(g, id);
        if (ty_graph_op(g, id) == TY_OP_CONV_DX && attr->step[0] == 1 && (attr->n == 1 || attr->step[1] == 1))
            return id;
    }
    return TY_NONE;
}

static void means_the_same(void **state)
{
    (void)state;
    static float numbers[3][MOST];
    const void *inputs[] = {numbers[0], numbers[1], numbers[2]};
    for (int i = 0; i < 3 * MOST; i++)
        numbers[i / MOST][i % MOST] = (float)(i * 37 % 101) / 64 - 0.75f;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ty_error err = {0};
        ty_graph *g = make(&cases[i]), *to = NULL;
        bool before = gradient_of_one(g) != TY_NONE;
        if (ty_pass_stride(g, &to, &err) < 0 || ty_graph_verify(to, &err) < 0)
            fail_msg("case %zu: %s", i, err.message);
        if ((gradient_of_one(to) != TY_NONE) != (before || cases[i].folds))
            fail_msg("case %zu: expected it to be changed: %d", i, cases[i].folds);
        expect_same_outputs(g, to, TY_TAPE_EVAL, inputs);
        ty_graph_free(g);
        ty_graph_free(to);
    }
}

/* Where the step divides the window, and where positions are left out, there is as much to multiply as before; 3 x 3 by
 * two is 4 x 4. */
static void multiplies_no_more_than_it_says(void **state)
{
    (void)state;
    static const struct {
        int64_t size, step, elements;
    } windows[] = {{4, 2, 16}, {4, 4, 16}, {2, 3, 4}, {3, 2, 16}, {5, 3, 36}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        int64_t size = windows[i].size, step = windows[i].step;
        ty_error err = {0};
        ty_graph *g = make(&(stride_case){{24, 24}, {size, size}, {step, step}, {0, 0}, {0, 0}, 16, 4, PLAIN, true}),
                 *to;
        assert_int_equal(ty_pass_stride(g, &to, &err), 0);
        const ty_type *w = ty_graph_type(to, ty_graph_in(to, gradient_of_one(to), 1));
        assert_int_equal(w->dim[1] * w->dim[2] * w->dim[3], 16 * windows[i].elements);
        ty_graph_free(g);
        ty_graph_free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_the_same),
        cmocka_unit_test(multiplies_no_more_than_it_says),
    };
    return cmocka_run_group_tests_name("stride", tests, NULL, NULL);
}
