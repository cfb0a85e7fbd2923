/* rule.c - see rule.h. */
#include "dist/server/rule.h"

#include <math.h>
#include <string.h>

typedef struct rule_now {
    const ty_rule *rule;
    double lr; /* rate times scale */
    uint64_t t;
} rule_now;

static void rule_sgd(const rule_now *now, float *w, float *const slot[], const float *g, int64_t n)
{
    double lr = now->lr, mu = now->rule->momentum;
    if (mu == 0) {
        for (int64_t i = 0; i < n; i++)
            w[i] = (float)(w[i] - lr * g[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double b = mu * slot[0][i] + g[i];
        slot[0][i] = (float)b;
        w[i] = (float)(w[i] - lr * (now->rule->nesterov ? g[i] + mu * b : b));
    }
}

static void rule_adagrad(const rule_now *now, float *w, float *const slot[], const float *g, int64_t n)
{
    double eps = now->rule->eps;
    bool inside = now->rule->kind == TY_RULE_KERAS_ADAGRAD;
    for (int64_t i = 0; i < n; i++) {
        double sum = slot[0][i] + (double)g[i] * g[i];
        slot[0][i] = (float)sum;
        double root = inside ? sqrt(sum + eps) : sqrt(sum) + eps;
        if (g[i] != 0) /* 0 / 0 where nothing was ever added */
            w[i] = (float)(w[i] - now->lr * g[i] / root);
    }
}

static void rule_adam(const rule_now *now, float *w, float *const slot[], const float *g, int64_t n)
{
    const ty_rule *r = now->rule;
    double root = sqrt(1 - pow(r->beta2, (double)now->t));
    double lr = now->lr * root / (1 - pow(r->beta1, (double)now->t));
    double eps = r->kind == TY_RULE_ADAM ? r->eps * root : r->eps;
    for (int64_t i = 0; i < n; i++) {
        double m = r->beta1 * slot[0][i] + (1 - r->beta1) * g[i];
        double v = r->beta2 * slot[1][i] + (1 - r->beta2) * g[i] * g[i];
        slot[0][i] = (float)m;
        slot[1][i] = (float)v;
        w[i] = (float)(w[i] - lr * m / (sqrt(v) + eps));
    }
}

/* TensorFlow counts beta as l2 + beta / (2 lr): keras.optimizers.Ftrl. */
static void rule_ftrl(const rule_now *now, float *w, float *const slot[], const float *g, int64_t n)
{
    const ty_rule *r = now->rule;
    double l2 = r->l2 + r->beta / (2 * now->lr);
    for (int64_t i = 0; i < n; i++) {
        double sum = slot[0][i] + (double)g[i] * g[i];
        double z = slot[1][i] + g[i] - (sqrt(sum) - sqrt(slot[0][i])) / now->lr * w[i];
        slot[0][i] = (float)sum;
        slot[1][i] = (float)z;
        double clipped = z > r->l1 ? r->l1 : z < -r->l1 ? -r->l1 : z;
        w[i] = (float)((clipped - z) / (sqrt(sum) / now->lr + 2 * l2));
    }
}

static const struct rule_row {
    const char *text;
    void (*apply)(const rule_now *now, float *w, float *const slot[], const float *g, int64_t n);
    int slots;
    bool accumulates; /* slot 0 begins with `initial` */
} rules[TY_N_RULES] = {
    [TY_RULE_SGD] = {"sgd", rule_sgd, 1, false},
    [TY_RULE_ADAGRAD] = {"adagrad", rule_adagrad, 1, true},
    [TY_RULE_KERAS_ADAGRAD] = {"keras_adagrad", rule_adagrad, 1, true},
    [TY_RULE_ADAM] = {"adam", rule_adam, 2, false},
    [TY_RULE_KERAS_ADAM] = {"keras_adam", rule_adam, 2, false},
    [TY_RULE_FTRL] = {"ftrl", rule_ftrl, 2, true},
};

const char *ty_rule_text(ty_rule_kind kind)
{
    return rules[kind].text;
}

bool ty_rule_parse(const char *text, ty_rule_kind *kind)
{
    for (int k = 0; k < TY_N_RULES; k++)
        if (strcmp(rules[k].text, text) == 0) {
            *kind = (ty_rule_kind)k;
            return true;
        }
    return false;
}

int ty_rule_check(const ty_rule *rule, ty_error *err)
{
    const struct {
        const char *name;
        double value, below;
    } field[] = {
        {"rate", rule->rate, INFINITY}, {"momentum", rule->momentum, 1}, {"beta1", rule->beta1, 1},
        {"beta2", rule->beta2, 1},      {"eps", rule->eps, INFINITY},    {"initial", rule->initial, INFINITY},
        {"l1", rule->l1, INFINITY},     {"l2", rule->l2, INFINITY},      {"beta", rule->beta, INFINITY},
    };
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        if (!(field[i].value >= 0 && field[i].value < field[i].below))
            return ty_error_set(err, TY_E_RANGE, "rule %s: %s is to be at least 0 and below %g, found %g",
                                ty_rule_text(rule->kind), field[i].name, field[i].below, field[i].value);
    if (rule->rate == 0 && rule->kind == TY_RULE_FTRL)
        return ty_error_set(err, TY_E_RANGE, "rule ftrl: divides by the rate, which is 0");
    return 0;
}

int ty_rule_slots(const ty_rule *rule)
{
    return rule->kind == TY_RULE_SGD && rule->momentum == 0 ? 0 : rules[rule->kind].slots;
}

float ty_rule_initial(const ty_rule *rule, int slot)
{
    return slot == 0 && rules[rule->kind].accumulates ? (float)rule->initial : 0;
}

void ty_rule_apply(const ty_rule *rule, float scale, uint64_t t, float *w, float *const slot[TY_RULE_MAX_SLOTS],
                   const float *g, int64_t n)
{
    rules[rule->kind].apply(&(rule_now){rule, rule->rate * scale, t}, w, slot, g, n);
}
