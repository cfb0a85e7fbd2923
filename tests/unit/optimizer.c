/* Optimizers: several steps of every rule and variant beside a plain restatement of its formula in double, and beside
 * what PyTorch 2.15 gets where it has the rule; clipping.
 */
#include "tests/unit/evaluate.h"

#include "compiler/passes/clip.h"
#include "compiler/passes/optimizer.h"

#include <math.h>

#define ELEMS 3
#define STEPS 6

/* One scalar's course, in double. */
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

static void plain_lion(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    (void)k;
    double c = o->beta1 * s->m + (1 - o->beta1) * g;
    s->p -= lr * (c > 0 ? 1 : c < 0 ? -1 : 0);
    s->m = o->beta2 * s->m + (1 - o->beta2) * g;
}

static void plain_ftrl(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    double old = k == 1 ? o->initial_accumulator : s->v, n = old + g * g, e = -o->lr_power;
    s->x += g + 2 * o->l2_shrinkage * s->p - (pow(n, e) - pow(old, e)) / lr * s->p;
    double quadratic = pow(n, e) / lr + 2 * (o->l2 + o->beta / (2 * lr));
    s->p = fabs(s->x) <= o->l1 ? 0 : (copysign(o->l1, s->x) - s->x) / quadratic;
    s->v = n;
}

static void plain_keras_sgd(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    (void)k;
    s->m = o->momentum * s->m - lr * g;
    s->p += o->nesterov ? o->momentum * s->m - lr * g : s->m;
}

static void plain_keras_adam(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    double alpha = lr * sqrt(1 - pow(o->beta2, k)) / (1 - pow(o->beta1, k));
    s->m += (g - s->m) * (1 - o->beta1);
    s->v += (g * g - s->v) * (1 - o->beta2);
    s->x = fmax(s->x, s->v);
    s->p -= s->m * alpha / (sqrt(o->amsgrad ? s->x : s->v) + o->eps);
}

static void plain_keras_nadam(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    double u = o->beta1 * (1 - 0.5 * pow(0.96, k)), after = o->beta1 * (1 - 0.5 * pow(0.96, k + 1));
    s->product *= u;
    s->m += (g - s->m) * (1 - o->beta1);
    s->v += (g * g - s->v) * (1 - o->beta2);
    double m_hat = after * s->m / (1 - s->product * after) + (1 - u) * g / (1 - s->product);
    s->p -= m_hat * lr / (sqrt(s->v / (1 - pow(o->beta2, k))) + o->eps);
}

static void plain_keras_adamax(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    s->m += (g - s->m) * (1 - o->beta1);
    s->v = fmax(o->beta2 * s->v, fabs(g));
    s->p -= lr * s->m / ((1 - pow(o->beta1, k)) * (s->v + o->eps));
}

static void plain_keras_rmsprop(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    (void)k;
    s->v = o->alpha * s->v + (1 - o->alpha) * g * g;
    s->x = o->alpha * s->x + (1 - o->alpha) * g;
    double step = lr * g / sqrt((o->centered ? s->v - s->x * s->x : s->v) + o->eps);
    s->m = o->momentum * s->m + step;
    s->p -= s->m;
}

static void plain_keras_adagrad(const ty_optimizer *o, scalar *s, double g, double lr, int k)
{
    s->v = (k == 1 ? o->initial_accumulator : s->v) + g * g;
    s->p -= lr * g / sqrt(s->v + o->eps);
}

typedef void plain_fn(const ty_optimizer *, scalar *, double g, double lr, int k);

/* ---- rules that look at whole tensors ---- */

static double ratio_of(double a, double b)
{
    return a > 0 && b > 0 ? a / b : 1;
}

static double norm_of(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void tensor_lamb(const ty_optimizer *o, double decay, scalar *s, const double *g, int n, double lr, int k)
{
    double r[8] = {0}, p[8] = {0};
    for (int i = 0; i < n; i++) {
        s[i].m = o->beta1 * s[i].m + (1 - o->beta1) * g[i];
        s[i].v = o->beta2 * s[i].v + (1 - o->beta2) * g[i] * g[i];
        double m = s[i].m / (1 - pow(o->beta1, k)), v = s[i].v / (1 - pow(o->beta2, k));
        p[i] = s[i].p;
        r[i] = m / (sqrt(v) + o->eps) + decay * p[i];
    }
    double ratio = decay == 0 && o->weight_decay != 0 ? 1 : ratio_of(norm_of(p, n), norm_of(r, n));
    for (int i = 0; i < n; i++)
        s[i].p -= lr * ratio * r[i];
}

/* Decay first, and none in what is measured. */
static void tensor_keras_lamb(const ty_optimizer *o, double decay, scalar *s, const double *g, int n, double lr, int k)
{
    for (int i = 0; i < n; i++)
        s[i].p -= lr * decay * s[i].p;
    ty_optimizer plain = *o;
    plain.weight_decay = 0;
    tensor_lamb(&plain, 0, s, g, n, lr, k);
}

static void tensor_lars(const ty_optimizer *o, double decay, scalar *s, const double *g, int n, double lr, int k)
{
    (void)k;
    double p[8] = {0}, ratio = 1;
    for (int i = 0; i < n; i++)
        p[i] = s[i].p;
    double p_norm = norm_of(p, n), g_norm = norm_of(g, n);
    if (p_norm > 0 && g_norm > 0 && !(decay == 0 && o->weight_decay != 0))
        ratio = o->trust * p_norm / (g_norm + decay * p_norm + o->eps);
    for (int i = 0; i < n; i++) {
        s[i].m = o->momentum * s[i].m + lr * ratio * (g[i] + decay * p[i]);
        s[i].p -= s[i].m;
    }
}

typedef void tensor_fn(const ty_optimizer *, double decay, scalar *, const double *g, int n, double lr, int k);

typedef struct rule_case {
    const char *name;
    plain_fn *plain;
    double decay;
    ty_optimizer o;
    double pytorch[ELEMS]; /* the parameter after all steps; all 0: PyTorch has no such rule */
    tensor_fn *tensor;     /* in the place of plain */
} rule_case;

static const int64_t tensors[] = {2, 1}; /* of the three elements */
enum { N_TENSORS = 2 };

static bool is_decoupled(ty_optimizer_kind kind)
{
    return kind == TY_OPT_ADAMW || kind == TY_OPT_LION || kind == TY_OPT_FTRL || kind >= TY_OPT_KERAS_SGD;
}

static void plain_step(const rule_case *c, scalar *s, const double *grad, double lr, int k)
{
    for (int i = 0, at = 0; i < N_TENSORS && c->tensor; at += (int)tensors[i++])
        c->tensor(&c->o, c->decay, s + at, grad + at, (int)tensors[i], lr, k);
    for (int i = 0; i < ELEMS && !c->tensor; i++) {
        double g = grad[i];
        if (is_decoupled(c->o.kind))
            s[i].p -= lr * c->decay * s[i].p;
        else
            g += c->decay * s[i].p;
        c->plain(&c->o, &s[i], g, lr, k);
    }
}

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
    ty_opt_group group = {c->decay, {N_TENSORS, tensors, NULL}, false, TY_NONE};
    ty_val p = ty_optimizer_update(r.g, &c->o, &clock, &group, ty_b_state(r.g, r.p), grad, moment, next);
    ty_graph_add_assign(r.g, r.p, p, TY_TAPE_LAST);
    for (int i = 0; i < moments.n; i++)
        ty_graph_add_assign(r.g, r.moment[i], next[i], TY_TAPE_LAST);
    assert_int_equal(ty_optimizer_needs_product(&c->o), c->o.kind == TY_OPT_NADAM || c->o.kind == TY_OPT_KERAS_NADAM);
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
        double g[ELEMS] = {(double)grad[0], (double)grad[1], (double)grad[2]};
        plain_step(c, s, g, lr, t + 1);
        for (int i = 0; i < ELEMS; i++) {
            double got = ty_interp_state(it, r.p)->f[i];
            if (!(fabs(got - s[i].p) <= 1e-6 * fmax(1, fabs(s[i].p))))
                fail_msg("%s, step %d, element %d: expected %.9g, found %.9g", c->name, t, i, s[i].p, got);
        }
    }
    bool known = c->pytorch[0] != 0;
    for (int i = 0; i < ELEMS && known; i++)
        if (!(fabs(ty_interp_state(it, r.p)->f[i] - c->pytorch[i]) <= 1e-6 * fmax(1, fabs(c->pytorch[i]))))
            fail_msg("%s, element %d: PyTorch has %.10g, found %.10g", c->name, i, c->pytorch[i],
                     ty_interp_state(it, r.p)->f[i]);
    ty_interp_free(it);
    ty_graph_free(r.g);
}

/* The numbers are torch 2.15's, float64, one parameter [0.5, -1.25, 2], the gradients and rates of run_rule():
 *     p = torch.nn.Parameter(torch.tensor([0.5, -1.25, 2])); o = torch.optim.NAME([p], ...the row's values...)
 *     for t in range(6): k = t + 1; o.param_groups[0]["lr"] = 0.1 / k
 *         p.grad = torch.tensor([sin(k), -0.01 * k, 30 if t == 2 else 0.25]).float().double(); o.step() */
static const rule_case rules[] = {
    {"sgd", plain_sgd, 0, {.kind = TY_OPT_SGD}, .pytorch = {0.4084395071, -1.244, 0.9470833333}},
    {"sgd, decay", plain_sgd, 0.1, {.kind = TY_OPT_SGD}, .pytorch = {0.3978732384, -1.213691042, 0.9051966407}},
    {"sgd, momentum",
     plain_sgd,
     0,
     {.kind = TY_OPT_SGD, .momentum = 0.9},
     .pytorch = {0.2753489447, -1.237817315, -0.6372800417}},
    {"sgd, dampening",
     plain_sgd,
     0.01,
     {.kind = TY_OPT_SGD, .momentum = 0.9, .dampening = 0.5},
     .pytorch = {0.296336164, -1.238196596, 0.6477155494}},
    {"sgd, nesterov",
     plain_sgd,
     0.01,
     {.kind = TY_OPT_SGD, .momentum = 0.8, .nesterov = true},
     .pytorch = {0.2521004864, -1.227395142, -0.9339071502}},
    {"adam",
     plain_adam,
     0,
     {.kind = TY_OPT_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
     .pytorch = {0.3194123145, -1.010178812, 1.799233277}},
    {"adam, decay",
     plain_adam,
     0.1,
     {.kind = TY_OPT_ADAM, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-3},
     .pytorch = {0.3163220951, -1.006416302, 1.798828612}},
    {"adam, amsgrad",
     plain_adam,
     0,
     {.kind = TY_OPT_ADAM, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .amsgrad = true},
     .pytorch = {0.3236056421, -1.032302307, 1.8148326}},
    {"adamw",
     plain_adam,
     0.1,
     {.kind = TY_OPT_ADAMW, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8},
     .pytorch = {0.3090869576, -0.9843783609, 1.753365494}},
    {"adamw, amsgrad",
     plain_adam,
     0.1,
     {.kind = TY_OPT_ADAMW, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .amsgrad = true},
     .pytorch = {0.313550213, -1.0040804, 1.768341629}},
    {"nadam",
     plain_nadam,
     0.01,
     {.kind = TY_OPT_NADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum_decay = 0.4},
     .pytorch = {0.3761440583, -1.013345877, 1.811995117}},
    {"adamax",
     plain_adamax,
     0.01,
     {.kind = TY_OPT_ADAMAX, .beta1 = 0.9, .beta2 = 0.7, .eps = 1e-8},
     .pytorch = {0.3172641371, -1.036061869, 1.811546423}},
    {"rmsprop",
     plain_rmsprop,
     0.01,
     {.kind = TY_OPT_RMSPROP, .alpha = 0.9, .eps = 1e-4},
     .pytorch = {0.1448635043, -0.6039604982, 1.462874108}},
    {"rmsprop, momentum",
     plain_rmsprop,
     0,
     {.kind = TY_OPT_RMSPROP, .alpha = 0.9, .eps = 1e-4, .momentum = 0.5},
     .pytorch = {-0.004964920685, -0.28416211, 1.218429461}},
    {"rmsprop, centered",
     plain_rmsprop,
     0,
     {.kind = TY_OPT_RMSPROP, .alpha = 0.9, .eps = 1e-2, .centered = true},
     .pytorch = {0.128639014, -0.954293846, 1.477188472}},
    {"rmsprop, all",
     plain_rmsprop,
     0.01,
     {.kind = TY_OPT_RMSPROP, .alpha = 0.5, .eps = 1e-2, .centered = true, .momentum = 0.9},
     .pytorch = {-0.1054283132, -0.4466660623, 1.164104017}},
    {"adagrad",
     plain_adagrad,
     0.01,
     {.kind = TY_OPT_ADAGRAD, .lr_decay = 0.05, .initial_accumulator = 0.1, .eps = 1e-10},
     .pytorch = {0.3910310978, -1.224598508, 1.878415679}},
    {"adadelta",
     plain_adadelta,
     0.01,
     {.kind = TY_OPT_ADADELTA, .rho = 0.9, .eps = 1e-6},
     .pytorch = {0.4996606855, -1.249025059, 1.999336024}},
    {"lion", plain_lion, 0.1, .o = {.kind = TY_OPT_LION, .beta1 = 0.9, .beta2 = 0.5}},
    {"lamb", NULL, 0, {.kind = TY_OPT_LAMB, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6}, .tensor = tensor_lamb},
    {"lamb, decay",
     NULL,
     0.1,
     {.kind = TY_OPT_LAMB, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6},
     .tensor = tensor_lamb},
    {"lamb, excluded",
     NULL,
     0,
     {.kind = TY_OPT_LAMB, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6},
     .tensor = tensor_lamb},
    {"keras_lamb",
     NULL,
     0.1,
     {.kind = TY_OPT_KERAS_LAMB, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6},
     .tensor = tensor_keras_lamb},
    {"lars", NULL, 0, {.kind = TY_OPT_LARS, .momentum = 0.9, .trust = 0.02}, .tensor = tensor_lars},
    {"lars, decay",
     NULL,
     0.1,
     {.kind = TY_OPT_LARS, .weight_decay = 0.1, .momentum = 0.9, .trust = 0.02, .eps = 1e-3},
     .tensor = tensor_lars},
    {"lars, plain", NULL, 0.1, {.kind = TY_OPT_LARS, .weight_decay = 0.1, .trust = 0.02}, .tensor = tensor_lars},
    {"lars, excluded",
     NULL,
     0,
     {.kind = TY_OPT_LARS, .weight_decay = 0.1, .momentum = 0.9, .trust = 0.02},
     .tensor = tensor_lars},
    {"ftrl", plain_ftrl, 0, .o = {.kind = TY_OPT_FTRL, .lr_power = -0.5, .initial_accumulator = 0.1}},
    {"ftrl, all", plain_ftrl, 0.01,
     .o = {.kind = TY_OPT_FTRL,
           .lr_power = -0.7,
           .initial_accumulator = 0.2,
           .l1 = 0.05,
           .l2 = 0.1,
           .l2_shrinkage = 0.02,
           .beta = 0.3}},
    {"keras_sgd", plain_keras_sgd, 0.1, .o = {.kind = TY_OPT_KERAS_SGD}},
    {"keras_sgd, momentum", plain_keras_sgd, 0, .o = {.kind = TY_OPT_KERAS_SGD, .momentum = 0.9}},
    {"keras_sgd, nesterov", plain_keras_sgd, 0.1, .o = {.kind = TY_OPT_KERAS_SGD, .momentum = 0.8, .nesterov = true}},
    {"keras_adam", plain_keras_adam, 0, .o = {.kind = TY_OPT_KERAS_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3}},
    {"keras_adam, amsgrad", plain_keras_adam, 0.1,
     .o = {.kind = TY_OPT_KERAS_ADAM, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-7, .amsgrad = true}},
    {"keras_nadam", plain_keras_nadam, 0.1,
     .o = {.kind = TY_OPT_KERAS_NADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7}},
    {"keras_adamax", plain_keras_adamax, 0.1,
     .o = {.kind = TY_OPT_KERAS_ADAMAX, .beta1 = 0.9, .beta2 = 0.7, .eps = 1e-2}},
    {"keras_rmsprop", plain_keras_rmsprop, 0.1, .o = {.kind = TY_OPT_KERAS_RMSPROP, .alpha = 0.9, .eps = 1e-3}},
    {"keras_rmsprop, all", plain_keras_rmsprop, 0.1,
     .o = {.kind = TY_OPT_KERAS_RMSPROP, .alpha = 0.5, .eps = 1e-2, .momentum = 0.9, .centered = true}},
    {"keras_adagrad", plain_keras_adagrad, 0.1,
     .o = {.kind = TY_OPT_KERAS_ADAGRAD, .initial_accumulator = 0.1, .eps = 1e-2}},
    {"keras_adadelta", plain_adadelta, 0.1, .o = {.kind = TY_OPT_KERAS_ADADELTA, .rho = 0.95, .eps = 1e-7}},
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
    static const int64_t first[] = {1, 1}, second[] = {3};
    ty_clip_apply(g, kind, max, norm, grad, (ty_segments[]){{2, first, NULL}, {1, second, NULL}}, 2);
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
    expect_clipped(TY_CLIP_NORM, 2, (double[]){2, 0}, (double[]){0, -2, 0});
    expect_clipped(TY_CLIP_NORM, 3.5, (double[]){3, 0}, (double[]){0, -3.5, 0});
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
