/* penalty.c - see penalty.h. */
#include "compiler/passes/penalty.h"

#include <fnmatch.h>

/* Whether the weight, or one that is tied to it, has a name that fits. */
static bool penalty_takes(const ty_param_set *set, int weight, const char *pattern)
{
    for (int i = 0; i < set->n_params; i++)
        if (set->param[i].same_as == weight && fnmatch(pattern, set->param[i].weight->name, 0) == 0)
            return true;
    return false;
}

static int penalty_mark(const ty_param_set *set, const char *pattern, bool *taken, ty_error *err)
{
    int n = 0;
    for (int i = 0; i < set->n_params; i++) {
        const ty_param *p = &set->param[i];
        if (p->same_as != i || p->role != TY_PARAM_CANDIDATE || !penalty_takes(set, i, pattern))
            continue;
        taken[i] = true;
        n++;
    }
    if (n > 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "tensors: no weight that is trained has a name like \"%s\"", pattern);
    return ty_error_help(err, "tensors takes names and shell patterns of the model's weights");
}

static ty_loss_operands penalty_reads(const ty_val *tensors, int n)
{
    return (ty_loss_operands){.output = TY_NONE,
                              .target = TY_NONE,
                              .sample_weight = TY_NONE,
                              .rows = TY_NONE,
                              .other = TY_NONE,
                              .input_lengths = TY_NONE,
                              .target_lengths = TY_NONE,
                              .tensors = tensors,
                              .n_tensors = n};
}

int ty_penalty_operands(const ty_param_set *set, const ty_loss_term *term, ty_arena *arena, ty_loss_operands *train,
                        ty_loss_operands *eval, ty_error *err)
{
    static const char *const every[] = {"*"};
    const char *const *patterns = term->n_tensors ? term->tensors : every;
    ty_val *leaves = TY_NEW_ARRAY(arena, ty_val, set->n_params + 1);
    ty_val *eval_leaves = TY_NEW_ARRAY(arena, ty_val, set->n_params + 1);
    bool *taken = TY_NEW_ARRAY(arena, bool, set->n_params + 1);
    int n = 0;
    for (int i = 0; i < (term->n_tensors ? term->n_tensors : 1); i++)
        if (penalty_mark(set, patterns[i], taken, err) < 0)
            return -1;
    for (int i = 0; i < set->n_params; i++)
        if (taken[i]) {
            leaves[n] = set->param[i].leaf;
            eval_leaves[n++] = set->param[i].eval_leaf;
        }
    *train = penalty_reads(leaves, n);
    *eval = penalty_reads(eval_leaves, n);
    return 0;
}
