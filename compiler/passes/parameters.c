/* parameters.c - see parameters.h. */
#include "compiler/passes/parameters.h"

#include "base/suggest.h"
#include "compiler/ir/build.h"
#include "compiler/model.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS_VECTOR_ELEMS 16 /* tensors of whole vectors come first, so that they start on vector borders */

/* ---- names ----------------------------------------------------------------------------------------------------------
 */

bool ty_params_in_list(const char *name, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0 || fnmatch(list[i], name, 0) == 0)
            return true;
    return false;
}

int ty_params_check_names(const ty_model *m, const char *key, const char *const *list, int n, ty_error *err)
{
    for (int i = 0; i < n; i++) {
        if (strpbrk(list[i], "*?[") || ty_model_find_weight(m, list[i]) >= 0)
            continue;
        ty_suggestion near = {.word = list[i]};
        for (int k = 0; k < ty_model_n_weights(m); k++)
            ty_suggest_offer(&near, ty_model_weight(m, k)->name);
        ty_error_set(err, TY_E_CONFIG, "%s: the model has no weight \"%s\"", key, list[i]);
        return near.best ? ty_error_help(err, "did you mean \"%s\"?", near.best) : -1;
    }
    return 0;
}

/* A pattern that is there for certain layers and meets none is misspelt: training would go on without it. */
static int params_check_patterns(const ty_model *m, const char *key, const char *const *list, int n, ty_error *err)
{
    if (ty_params_check_names(m, key, list, n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        int k = 0, n_weights = ty_model_n_weights(m);
        while (k < n_weights && !ty_params_in_list(ty_model_weight(m, k)->name, &list[i], 1))
            k++;
        if (k == n_weights && n_weights > 0) {
            ty_error_set(err, TY_E_CONFIG, "%s: no weight of the model matches \"%s\"", key, list[i]);
            return ty_error_help(err, "its weights are called as \"%s\"; `trainyard model info` lists them",
                                 ty_model_weight(m, 0)->name);
        }
    }
    return 0;
}

/* The number of a factor, which is new or known. */
static int params_scale_number(ty_param_set *set, double factor, ty_error *err)
{
    for (int i = 0; i < set->n_scales; i++)
        if (set->scale[i] == factor)
            return i;
    if (set->n_scales == TY_PARAM_MAX_SCALES)
        return ty_error_set(err, TY_E_LIMIT, "lr_scale: more than %d different factors", TY_PARAM_MAX_SCALES - 1);
    set->scale[set->n_scales] = factor;
    return set->n_scales++;
}

static int params_scale(ty_param_set *set, const ty_model *m, const ty_train_spec *spec, ty_error *err)
{
    set->scale[0] = 1;
    set->n_scales = 1;
    for (int k = 0; k < spec->n_lr_scale; k++)
        if (params_check_patterns(m, "lr_scale", &spec->lr_scale[k].pattern, 1, err) < 0)
            return -1;
    for (int i = 0; i < set->n_params; i++) {
        int k = 0;
        while (k < spec->n_lr_scale && !ty_params_in_list(set->param[i].weight->name, &spec->lr_scale[k].pattern, 1))
            k++;
        if (k < spec->n_lr_scale && (set->param[i].scale = params_scale_number(set, spec->lr_scale[k].factor, err)) < 0)
            return -1;
    }
    return 0;
}

static int params_tie(ty_param_set *set, const ty_model *m, const char *const *names, ty_error *err)
{
    int first = -1;
    const char *const *group = names;
    for (; *names; names++) {
        int i = ty_model_find_weight(m, *names);
        if (i < 0)
            continue; /* one initializer for the group: tied by the file */
        ty_param *p = &set->param[i];
        if (first < 0)
            first = p->same_as;
        if (!ty_type_same(&p->type, &set->param[first].type)) {
            char a[160], b[160];
            return ty_error_set(err, TY_E_CONFIG, "tied: \"%s\" is %s, \"%s\" is %s", set->param[first].weight->name,
                                ty_type_text(&set->param[first].type, a, sizeof a), *names,
                                ty_type_text(&p->type, b, sizeof b));
        }
        p->same_as = first;
    }
    return first >= 0 ? 0 : ty_params_check_names(m, "tied", group, 1, err);
}

/* ---- roles ----------------------------------------------------------------------------------------------------------
 */

static ty_param_role params_role(const ty_model *m, int i, const ty_train_spec *spec)
{
    const ty_model_value *w = ty_model_weight(m, i);
    if (w->dtype >= TY_N_DTYPES || !ty_dtype_is_float(w->dtype))
        return TY_PARAM_CONSTANT;
    if (ty_model_weight_is_running(m, i))
        return TY_PARAM_RUNNING;
    if (!w->trainable_hint || ty_params_in_list(w->name, spec->buffers, spec->n_buffers) ||
        ty_params_in_list(w->name, spec->frozen, spec->n_frozen))
        return TY_PARAM_CONSTANT;
    if (spec->lora.rank == 0 || ty_params_in_list(w->name, spec->lora.train, spec->lora.n_train))
        return TY_PARAM_CANDIDATE;
    bool adapts =
        w->rank == 2 && w->dtype == TY_F32 && ty_params_in_list(w->name, spec->lora.weights, spec->lora.n_weights);
    return adapts ? TY_PARAM_ADAPTED : TY_PARAM_CONSTANT;
}

static ty_param params_new(const ty_model_value *w, int number, ty_param_role role, const ty_train_spec *spec)
{
    ty_param p = {.weight = w,
                  .type = {.dtype = (uint8_t)w->dtype, .rank = (uint8_t)w->rank},
                  .role = role,
                  .same_as = number,
                  .decays = !ty_params_in_list(w->name, spec->no_decay, spec->n_no_decay),
                  .leaf = TY_NONE,
                  .eval_leaf = TY_NONE,
                  .first_use = UINT32_MAX,
                  .state = -1,
                  .grad = TY_NONE};
    memcpy(p.type.dim, w->dim, sizeof w->dim);
    return p;
}

/* A factor, of zeros until it is known which one begins with random numbers. */
static int params_add_factor(ty_param_set *set, const ty_model_value *w, const char *end, int64_t rows, int64_t columns,
                             const ty_train_spec *spec)
{
    ty_model_value *f = TY_NEW(spec->lora.memory, ty_model_value);
    int64_t elems = rows * columns;
    *f = (ty_model_value){.name = ty_arena_printf(spec->lora.memory, "%s%s", w->name, end),
                          .dtype = TY_F32,
                          .rank = 2,
                          .dim = {rows, columns},
                          .data = TY_NEW_ARRAY(spec->lora.memory, float, elems),
                          .trainable_hint = true};
    set->param[set->n_params] = params_new(f, set->n_params, TY_PARAM_CANDIDATE, spec);
    return set->n_params++;
}

static void params_adapt(ty_param_set *set, int weight, const ty_train_spec *spec)
{
    const ty_model_value *w = set->param[weight].weight;
    int left = params_add_factor(set, w, TY_LORA_LEFT, w->dim[0], spec->lora.rank, spec);
    int right = params_add_factor(set, w, TY_LORA_RIGHT, spec->lora.rank, w->dim[1], spec);
    set->adapter[set->n_adapters++] = (ty_param_adapter){weight, left, right};
}

int ty_params_classify(ty_param_set *set, const ty_model *m, const ty_train_spec *spec, ty_arena *arena, ty_error *err)
{
    *set = (ty_param_set){
        .n_params = ty_model_n_weights(m), .replicas = spec->replicas > 1 ? spec->replicas : 1, .arena = arena};
    set->param = TY_NEW_ARRAY(arena, ty_param, 3 * set->n_params + 1);
    set->adapter = TY_NEW_ARRAY(arena, ty_param_adapter, set->n_params + 1);
    if (params_check_patterns(m, "frozen", spec->frozen, spec->n_frozen, err) < 0 ||
        params_check_patterns(m, "no_decay", spec->no_decay, spec->n_no_decay, err) < 0 ||
        params_check_patterns(m, "buffers", spec->buffers, spec->n_buffers, err) < 0 ||
        params_check_patterns(m, "lora.weights", spec->lora.weights, spec->lora.n_weights, err) < 0 ||
        params_check_patterns(m, "lora.train", spec->lora.train, spec->lora.n_train, err) < 0)
        return -1;
    int n = set->n_params;
    for (int i = 0; i < n; i++)
        set->param[i] = params_new(ty_model_weight(m, i), i, params_role(m, i, spec), spec);
    for (int i = 0; i < n; i++)
        if (set->param[i].role == TY_PARAM_ADAPTED)
            params_adapt(set, i, spec);
    if (params_scale(set, m, spec, err) < 0)
        return -1;
    for (int i = 0; i < spec->n_tied; i++)
        if (params_tie(set, m, spec->tied[i], err) < 0)
            return -1;
    return 0;
}

/* ---- uses -----------------------------------------------------------------------------------------------------------
 */

void ty_params_mark(const ty_graph *g, ty_val v, uint8_t *live)
{
    live[ty_val_node(v)] = 1;
    for (uint32_t id = ty_val_node(v) + 1; id-- > 0;)
        for (uint32_t k = 0; live[id] && k < ty_graph_node(g, id)->n_in; k++) {
            ty_val in = ty_graph_in(g, id, (int)k);
            if (in != TY_NONE)
                live[ty_val_node(in)] = 1;
        }
}

static int params_check_dtype(const ty_param *p, ty_error *err)
{
    if (p->type.dtype == TY_F32)
        return 0;
    char text[160];
    ty_error_set(err, TY_E_UNSUPPORTED, "weight \"%s\" is %s: only f32 weights can be trained", p->weight->name,
                 ty_type_text(&p->type, text, sizeof text));
    return ty_error_help(err, "name it under frozen, or under buffers if it is no parameter");
}

int ty_params_find_uses(ty_param_set *set, const ty_graph *g, ty_val loss, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(g);
    uint8_t *live = TY_NEW_ARRAY(set->arena, uint8_t, n + 1);
    uint32_t *first = TY_NEW_ARRAY(set->arena, uint32_t, n + 1);
    ty_params_mark(g, loss, live);
    for (uint32_t id = n; id-- > 0;)
        for (uint32_t k = 0; live[id] && k < ty_graph_node(g, id)->n_in; k++)
            if (ty_graph_in(g, id, (int)k) != TY_NONE)
                first[ty_val_node(ty_graph_in(g, id, (int)k))] = id;
    for (int i = 0; i < set->n_params; i++) {
        ty_param *p = &set->param[i];
        if (p->role != TY_PARAM_CANDIDATE || p->leaf == TY_NONE || !live[ty_val_node(p->leaf)])
            continue;
        p->first_use = first[ty_val_node(p->leaf)];
        p->trained = true;
        if (params_check_dtype(p, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- order ----------------------------------------------------------------------------------------------------------
 */

typedef struct params_entry {
    int number;
    bool odd;
    uint32_t first_use;
} params_entry;

/* The gradient of what is used last is ready first. */
static int params_compare(const void *a, const void *b)
{
    const params_entry *x = a, *y = b;
    if (x->odd != y->odd)
        return x->odd ? 1 : -1;
    if (x->first_use != y->first_use)
        return x->first_use > y->first_use ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void params_fill_group(ty_param_set *set, ty_param_group *group)
{
    params_entry *entry = TY_NEW_ARRAY(set->arena, params_entry, set->n_params + 1);
    int n = 0;
    for (int i = 0; i < set->n_params; i++) {
        const ty_param *p = &set->param[i];
        if (p->trained && p->same_as == i && p->group == group->number && !group->by_rows == !p->n_gathers)
            entry[n++] = (params_entry){i, ty_type_elems(&p->type) % PARAMS_VECTOR_ELEMS != 0, p->first_use};
    }
    qsort(entry, (size_t)n, sizeof *entry, params_compare);
    group->member = TY_NEW_ARRAY(set->arena, int, n + 1);
    group->member_elems = TY_NEW_ARRAY(set->arena, int64_t, n + 1);
    group->n_members = n;
    for (int i = 0; i < n; i++) {
        ty_param *p = &set->param[entry[i].number];
        group->member[i] = entry[i].number;
        p->segment = i;
        p->offset = group->elems;
        group->member_elems[i] = ty_type_elems(&p->type);
        group->elems += group->member_elems[i];
    }
}

static void params_arrange_table(ty_param_set *set, int i, int number)
{
    ty_param *p = &set->param[i];
    ty_param_group *group = &set->group[set->n_groups++];
    p->group = number;
    *group = (ty_param_group){
        .number = number, .lr_factor = set->scale[p->scale], .state = -1, .by_rows = true, .table = p->type};
    params_fill_group(set, group);
    set->n_trained += group->elems;
}

void ty_params_arrange(ty_param_set *set, const ty_train_spec *spec)
{
    double decay = spec->optimizer.weight_decay;
    for (int i = 0; i < set->n_params; i++) {
        const ty_param *same = &set->param[set->param[i].same_as];
        set->param[i].group = 2 * same->scale + (decay != 0 && !same->decays);
    }
    for (int number = 0; number < 2 * set->n_scales; number++) {
        ty_param_group *group = &set->group[set->n_groups];
        *group = (ty_param_group){
            .number = number, .decay = number % 2 == 0 ? decay : 0, .lr_factor = set->scale[number / 2], .state = -1};
        params_fill_group(set, group);
        set->n_trained += group->elems;
        set->n_groups += group->n_members > 0;
    }
    for (int i = 0, number = 2 * TY_PARAM_MAX_SCALES; i < set->n_params; i++)
        if (set->param[i].n_gathers)
            params_arrange_table(set, i, number++);
}

int ty_params_add_state(const ty_param_set *set, const ty_param_group *group, ty_graph *g, const char *prefix,
                        ty_state_role role, bool init)
{
    ty_segment *segments = TY_NEW_ARRAY(set->arena, ty_segment, group->n_members);
    const void **bytes = TY_NEW_ARRAY(set->arena, const void *, group->n_members);
    for (int i = 0; i < group->n_members; i++) {
        const ty_param *p = &set->param[group->member[i]];
        segments[i] = (ty_segment){p->weight->name, p->type, p->offset};
        bytes[i] = p->weight->data;
    }
    ty_state state = {.name = ty_arena_printf(set->arena, "%s.%d", prefix, group->number),
                      .type = ty_type_make(TY_F32, 1, &group->elems),
                      .role = role,
                      .segments = segments,
                      .n_segments = group->n_members,
                      .init = init ? bytes : NULL};
    return ty_graph_add_state(g, &state);
}
