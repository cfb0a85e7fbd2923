/* moments.c - what a program's optimizer keeps, by the names of weights: for model files that have a place for it. */
#include "compiler/passes/optimizer.h"
#include "compiler/program.h"

#include <string.h>

/* "m" of "keras_adam.m.0", "ema" of "ema.0", "product" of "nadam.product". */
static bool moments_is(const char *state, const char *moment, bool scalar)
{
    size_t len = strlen(state), n = strlen(moment);
    if (!scalar) {
        const char *dot = strrchr(state, '.');
        len = dot ? (size_t)(dot - state) : 0;
    }
    return len >= n && strncmp(state + len - n, moment, n) == 0 && (len == n || state[len - n - 1] == '.');
}

static const void *moments_find(void *ctx, const char *moment, const char *weight, const ty_type *type)
{
    const ty_program *p = ctx;
    for (int i = 0; i < ty_graph_n_states(p->graph); i++) {
        const ty_state *s = ty_graph_state(p->graph, i);
        if (*weight == 0 && s->role == TY_STATE_COUNTER && moments_is(s->name, moment, true))
            return ty_type_same(&s->type, type) ? p->state[i] : NULL;
        if (*weight == 0 || s->role != TY_STATE_MOMENT || !moments_is(s->name, moment, false))
            continue;
        for (int k = 0; k < s->n_segments; k++)
            if (strcmp(s->segments[k].name, weight) == 0 && ty_type_same(&s->segments[k].type, type))
                return (const char *)p->state[i] + (size_t)s->segments[k].offset * ty_dtype_bytes(TY_F32);
    }
    return NULL;
}

void ty_program_moments(ty_program *p, const ty_train_spec *spec, ty_model_moments *out)
{
    const ty_tensor *lr = ty_program_output(p, TY_RUN_LAST, "lr");
    *out = (ty_model_moments){.optimizer = ty_optimizer_text(spec->optimizer.kind),
                              .learning_rate = lr && lr->data ? (double)*(const float *)lr->data : spec->optimizer.lr,
                              .find = moments_find,
                              .ctx = p};
    for (int i = 0; i < ty_graph_n_states(p->graph); i++)
        if (strcmp(ty_graph_state(p->graph, i)->name, "step") == 0)
            out->calls = *(const int64_t *)p->state[i];
}
