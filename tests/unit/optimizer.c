/* Optimizers: several steps of every rule and variant beside a plain scalar restatement of PyTorch's formulas;
 * clipping.
 */
#include "tests/unit/evaluate.h"

#include "compiler/passes/clip.h"
#include "compiler/passes/optimizer.h"

#include <math.h>

#define ELEMS 3
#define STEPS 6

/* One scalar's course: what PyTorch's loops do, in double. */
typedef struct scalar {
    double p, m, v, x, product;
} scalar;

static void plain_sgd(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    if (o->momentum == 0) {
        s->p -= lr * g;
        return;
    }
    s->m = k == 1 ? g : o->momentum * s->m + (1 - o->dampening) * g;
    s->p -= lr * (o->nesterov ? g + o->momentum * s->m : s->m);
}

static void plain_adam(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    s->m = o->beta1 * s->m + (1 - o->beta1) * g;
    s->v = o->beta2 * s->v + (1 - o->beta2) * g * g;
    s->x = fmax(s->x, s->v);
    double size = sqrt(o->amsgrad ? s->x : s->v) / sqrt(1 - pow(o->beta2, k)) + o->eps;
    s->p -= lr / (1 - pow(o->beta1, k)) * s->m / size;
}

static double plain_u(const ty_optimizer *o, int i)
{
    return o->beta1 * (1 - 0.5 * pow(0.96, i * o->momentum_decay));
}

static void plain_nadam(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    s->m = o->beta1 * s->m + (1 - o->beta1) * g;
    s->v = o->beta2 * s->v + (1 - o->beta2) * g * g;
    s->product *= plain_u(o, k);
    double size = sqrt(s->v / (1 - pow(o->beta2, k))) + o->eps, after = plain_u(o, k + 1);
    s->p -= lr * (1 - plain_u(o, k)) / (1 - s->product) * g / size;
    s->p -= lr * after / (1 - s->product * after) * s->m / size;
}

static void plain_adamax(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    s->m = o->beta1 * s->m + (1 - o->beta1) * g;
    s->v = fmax(o->beta2 * s->v, fabs(g) + o->eps);
    s->p -= lr / (1 - pow(o->beta1, k)) * s->m / s->v;
}

static void plain_rmsprop(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    (void)k;
    s->v = o->alpha * s->v + (1 - o->alpha) * g * g;
    s->x = o->alpha * s->x + (1 - o->alpha) * g;
    double q = g / (sqrt(o->centered ? s->v - s->x * s->x : s->v) + o->eps);
    s->m = o->momentum * s->m + q;
    s->p -= lr * (o->momentum != 0 ? s->m : q);
}

static void plain_adagrad(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    s->v = (k == 1 ? o->initial_accumulator : s->v) + g * g;
    s->p -= lr / (1 + (k - 1) * o->lr_decay) * g / (sqrt(s->v) + o->eps);
}

static void plain_adadelta(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    (void)k;
    s->v = o->rho * s->v + (1 - o->rho) * g * g;
    double q = sqrt(s->x + o->eps) / sqrt(s->v + o->eps) * g;
    s->x = o->rho * s->x + (1 - o->rho) * q * q;
    s->p -= lr * q;
}

typedef void plain_fn(const ty_optimizer *, scalar *, double g, double lr, int k);

typedef struct rule_case {
    const char *name;
    plain_fn *plain;
    double decay;
    ty_optimizer o;
} rule_case;

/* The graph of one group, with its states. */
typedef struct rule_graph {
    ty_graph *g;
    int p, product, moment[TY_OPT_MAX_MOMENTS];
} rule_graph;

static int add_state(ty_graph *g, const char *name, ty_type type, const void *init)
{
    ty_segment segment = {name, type, 0};
    ty_state s = {name, type, TY_STATE_MOMENT, &segment, 1, init ? &init : NULL};
    return ty_graph_add_state(g, &s);
}

static rule_graph build_rule(const rule_case *c, const float *start)
{
    static const double one = 1;
    int64_t n = ELEMS;
    rule_graph r = {.g = ty_graph_new()};
    ty_type vector = ty_type_make(TY_F32, 1, &n);
    ty_val grad = new_input(r.g, TY_F32, 1, &n);
    ty_val k = new_input(r.g, TY_F64, 0, NULL), lr = new_input(r.g, TY_F64, 0, NULL), moment[3], next[3];
    r.p = add_state(r.g, "p", vector, start);
    r.product = add_state(r.g, "product", ty_type_scalar(TY_F64), &one);
    ty_opt_moments moments = ty_optimizer_moments(&c->o);
    for (int i = 0; i < moments.n; i++) {
        r.moment[i] = add_state(r.g, moments.name[i], vector, NULL);
        moment[i] = ty_b_state(r.g, r.moment[i]);
    }
    ty_opt_clock clock = {k, lr, ty_b_state(r.g, r.product)};
    ty_val p = ty_optimizer_update(r.g, &c->o, &clock, c->decay, ty_b_state(r.g, r.p), grad, moment, next);
    ty_graph_add_assign(r.g, r.p, p, TY_TAPE_LAST);
    for (int i = 0; i < moments.n; i++)
        ty_graph_add_assign(r.g, r.moment[i], next[i], TY_TAPE_LAST);
    assert_int_equal(ty_optimizer_needs_product(&c->o), c->o.kind == TY_OPT_NADAM);
    if (ty_optimizer_needs_product(&c->o))
        ty_graph_add_assign(r.g, r.product, ty_optimizer_next_product(r.g, &c->o, &clock), TY_TAPE_LAST);
    expect_ok(r.g);
    return r;
}

static void run_rule(const rule_case *c)
{
    static const float start[ELEMS] = {0.5f, -1.25f, 2};
    scalar s[ELEMS] = {{.p = 0.5, .product = 1}, {.p = -1.25, .product = 1}, {.p = 2, .product = 1}};
    rule_graph r = build_rule(c, start);
    ty_error err = {0};
    ty_interp *it;
    assert_int_equal(ty_interp_new(r.g, &it, &err), 0);
    for (int t = 0; t < STEPS; t++) {
        double k = t + 1, lr = 0.1 / k;
        float grad[ELEMS] = {(float)sin(k), -0.01f * (float)k, t == 2 ? 30.0f : 0.25f};
        const void *inputs[] = {grad, &k, &lr};
        if (ty_interp_run(it, TY_TAPE_LAST, inputs, false, &err) < 0)
            fail_msg("%s", err.message);
        for (int i = 0; i < ELEMS; i++) {
            double g = (double)grad[i];
            if (c->o.kind == TY_OPT_ADAMW)
                s[i].p -= lr * c->decay * s[i].p;
            else
                g += c->decay * s[i].p;
            c->plain(&c->o, &s[i], g, lr, t + 1);
            double got = ty_interp_state(it, r.p)->f[i];
            if (!(fabs(got - s[i].p) <= 1e-6 * fmax(1, fabs(s[i].p))))
                fail_msg("%s, step %d, element %d: expected %.9g, found %.9g", c->name, t, i, s[i].p, got);
        }
    }
    ty_interp_free(it);
    ty_graph_free(r.g);
}

static const rule_case rules[] = {
    {"sgd", plain_sgd, 0, {.kind = TY_OPT_SGD}},
    {"sgd, decay", plain_sgd, 0.1, {.kind = TY_OPT_SGD}},
    {"sgd, momentum", plain_sgd, 0, {.kind = TY_OPT_SGD, .momentum = 0.9}},
    {"sgd, dampening", plain_sgd, 0.01, {.kind = TY_OPT_SGD, .momentum = 0.9, .dampening = 0.5}},
    {"sgd, nesterov", plain_sgd, 0.01, {.kind = TY_OPT_SGD, .momentum = 0.8, .nesterov = true}},
    {"adam", plain_adam, 0, {.kind = TY_OPT_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {"adam, decay", plain_adam, 0.1, {.kind = TY_OPT_ADAM, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3}},
    {"amsgrad", plain_adam, 0, {.kind = TY_OPT_ADAM, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .amsgrad = true}},
    {"adamw", plain_adam, 0.1, {.kind = TY_OPT_ADAMW, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}},
    {"nadam",
     plain_nadam,
     0.01,
     {.kind = TY_OPT_NADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum_decay = 0.4}},
    {"adamax", plain_adamax, 0.01, {.kind = TY_OPT_ADAMAX, .beta1 = 0.9, .beta2 = 0.7, .eps = 1e-8}},
    {"rmsprop", plain_rmsprop, 0.01, {.kind = TY_OPT_RMSPROP, .alpha = 0.9, .eps = 1e-4}},
    {"rmsprop, momentum", plain_rmsprop, 0, {.kind = TY_OPT_RMSPROP, .alpha = 0.9, .eps = 1e-4, .momentum = 0.5}},
    {"rmsprop, centered", plain_rmsprop, 0, {.kind = TY_OPT_RMSPROP, .alpha = 0.9, .eps = 1e-2, .centered = true}},
    {"rmsprop, all",
     plain_rmsprop,
     0.01,
     {.kind = TY_OPT_RMSPROP, .alpha = 0.5, .eps = 1e-2, .centered = true, .momentum = 0.9}},
    {"adagrad",
     plain_adagrad,
     0.01,
     {.kind = TY_OPT_ADAGRAD, .lr_decay = 0.05, .initial_accumulator = 0.1, .eps = 1e-10}},
    {"adadelta", plain_adadelta, 0.01, {.kind = TY_OPT_ADADELTA, .rho = 0.9, .eps = 1e-6}},
};

static void rules_follow_their_formulas(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        run_rule(&rules[i]);
}

static void every_kind_is_tried(void **state)
{
    (void)state;
    bool seen[TY_N_OPTIMIZER_KINDS] = {0};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        seen[rules[i].o.kind] = true;
    for (int k = 0; k < TY_N_OPTIMIZER_KINDS; k++)
        if (!seen[k])
            fail_msg("%s is not tried", ty_optimizer_text((ty_optimizer_kind)k));
}

/* ---- clipping -------------------------------------------------------------------------------------------------------
 */

static const float clip_a[] = {3, 0}, clip_b[] = {0, -4, 0};

static void expect_clipped(ty_clip_kind kind, double max, const double *a, const double *b)
{
    ty_graph *g = ty_graph_new();
    ty_val grad[2] = {new_input(g, TY_F32, SHAPE(2)), new_input(g, TY_F32, SHAPE(3))};
    const void *inputs[] = {clip_a, clip_b};
    ty_val norm = ty_clip_norm(g, grad, 2);
    assert_true(*(double *)evaluate(g, norm, inputs, false) == 5);
    ty_clip_apply(g, kind, max, norm, grad, 2);
    for (int i = 0; i < 2; i++) {
        const double *got = evaluate(g, grad[i], inputs, false), *want = i ? b : a;
        for (int k = 0; k < 2 + i; k++)
            if (!(fabs(got[k] - want[k]) <= 1e-6))
                fail_msg("gradient %d[%d]: expected %.9g, found %.9g", i, k, want[k], got[k]);
    }
    ty_graph_free(g);
}

static void clipping_keeps_bounds(void **state)
{
    (void)state;
    expect_clipped(TY_CLIP_NONE, 1, (double[]){3, 0}, (double[]){0, -4, 0});
    expect_clipped(TY_CLIP_VALUE, 3.5, (double[]){3, 0}, (double[]){0, -3.5, 0});
    expect_clipped(TY_CLIP_GLOBAL_NORM, 1, (double[]){0.6, 0}, (double[]){0, -0.8, 0});
    expect_clipped(TY_CLIP_GLOBAL_NORM, 6, (double[]){3, 0}, (double[]){0, -4, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_follow_their_formulas),
        cmocka_unit_test(every_kind_is_tried),
        cmocka_unit_test(clipping_keeps_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
