/* step_adapt.c - low-rank adapters in the draft of a step: what imports are told of them, and their first values. */
#include "compiler/passes/step_draft.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

#define STEP_STREAM_LORA 0x4c4f5241u

void ty_step_bind_adapters(const ty_step_draft *d, bool evaluates, ty_model_adapter *out)
{
    for (int i = 0; i < d->set.n_adapters; i++) {
        const ty_param_adapter *a = &d->set.adapter[i];
        const ty_param *left = &d->set.param[a->left], *right = &d->set.param[a->right];
        out[i] = (ty_model_adapter){.weight = a->weight,
                                    .left = evaluates ? left->eval_leaf : left->leaf,
                                    .right = evaluates ? right->eval_leaf : right->leaf,
                                    .scale = d->spec->lora.alpha / d->spec->lora.rank};
    }
}

/* As Kaiming's rule for a layer of its own, with slope sqrt(5): PyTorch's for linear layers, and PEFT's. */
static void step_draw_factor(const ty_step_draft *d, const ty_param *p, int weight, int64_t fan_in)
{
    float *to = (float *)(uintptr_t)p->weight->data, bound = 1 / sqrtf((float)fan_in);
    for (int64_t i = 0; i < ty_type_elems(&p->type); i++)
        to[i] = bound *
                (2 * ty_rng_uniform(ty_rng_u32(d->spec->seed, STEP_STREAM_LORA, (uint32_t)weight, (uint64_t)i)) - 1);
}

static bool step_is_named(const ty_step_draft *d, const char *name)
{
    for (int i = 0; i < d->spec->lora.n_weights; i++)
        if (strcmp(d->spec->lora.weights[i], name) == 0)
            return true;
    return false;
}

/* A pattern may meet tables and other matrices that no product reads: they stay as they are. */
static int step_check_adapter(const ty_step_draft *d, const ty_model_adapter *a, ty_error *err)
{
    const char *name = d->set.param[a->weight].weight->name;
    if (a->is_met && a->is_read_by_others) {
        ty_error_set(err, TY_E_CONFIG, "lora.weights: \"%s\" is read by more than products of matrices", name);
        return ty_error_help(err, "leave it out: an adapter would be in one of its uses, and its table in the other");
    }
    if (!a->is_met && step_is_named(d, name))
        return ty_error_set(err, TY_E_CONFIG, "lora.weights: \"%s\" is in no product of matrices", name);
    return 0;
}

int ty_step_begin_adapters(const ty_step_draft *d, const ty_model_adapter *adapters, ty_error *err)
{
    int n_met = 0;
    for (int i = 0; i < d->set.n_adapters; i++) {
        const ty_model_adapter *a = &adapters[i];
        const ty_param_adapter *of = &d->set.adapter[i];
        const ty_param *factor = &d->set.param[a->sums_rows ? of->left : of->right];
        if (step_check_adapter(d, a, err) < 0)
            return -1;
        if (a->is_met)
            step_draw_factor(d, factor, of->weight, factor->type.dim[a->sums_rows ? 0 : 1]);
        n_met += a->is_met;
    }
    if (d->spec->lora.rank == 0 || n_met > 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "lora.weights: none of them is a matrix that a product reads");
    return ty_error_help(err, "`trainyard check MODEL` lists layers; those of MatMul and Gemm can have adapters");
}
