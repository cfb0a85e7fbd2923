/* shard.c - see shard.h. */
#include "compiler/passes/shard.h"

#include "compiler/ir/build.h"
#include "compiler/passes/across.h"
#include "compiler/passes/optimizer.h"

#define SHARD_ALIGN 16 /* elements: a cache line */

bool ty_shard_is_asked(const ty_train_spec *spec)
{
    return spec->optimizer_sharding && ty_across_replicas(spec) > 1;
}

int ty_shard_check(const ty_train_spec *spec, ty_error *err)
{
    ty_optimizer_kind kind = spec->optimizer.kind;
    if (!ty_shard_is_asked(spec))
        return 0;
    if (kind == TY_OPT_LAMB || kind == TY_OPT_LARS || kind == TY_OPT_KERAS_LAMB)
        return ty_error_set(err, TY_E_UNSUPPORTED,
                            "optimizer_sharding: %s needs norms of whole tensors, of which each replica has a part",
                            ty_optimizer_text(kind));
    if (spec->update_every > 1)
        return ty_error_set(
            err, TY_E_UNSUPPORTED,
            "optimizer_sharding: update_every %d gathers whole gradients, of which each replica has a part",
            spec->update_every);
    if (spec->clip == TY_CLIP_NORM) {
        ty_error_set(
            err, TY_E_UNSUPPORTED,
            "optimizer_sharding: clipping each tensor by its norm needs tensors of which each replica has a part");
        return ty_error_help(err, "clip by global_norm or value");
    }
    return 0;
}

/* ---- where ---- */

static void shard_add(ty_shards *s, int64_t lo, int64_t hi, int replicas)
{
    bool whole = replicas == 1;
    if (lo == hi)
        return;
    s->piece[s->n++] = (ty_shard_piece){lo, hi, s->elems, (hi - lo) / replicas, whole, TY_NONE};
    s->elems += (hi - lo) / replicas;
}

void ty_shard_cut(const ty_param_set *set, const ty_param_group *group, const ty_train_spec *spec, ty_shards *out)
{
    int64_t unit = (int64_t)set->replicas * SHARD_ALIGN, lo = 0, end = 0;
    int *bucket = TY_NEW_ARRAY(set->arena, int, group->n_members + 1);
    int n = ty_across_buckets(group, spec, bucket), member = 0;
    *out = (ty_shards){.piece = TY_NEW_ARRAY(set->arena, ty_shard_piece, n + 1)};
    for (int i = 0; i < n; i++) {
        while (member < bucket[i])
            end += group->member_elems[member++];
        int64_t hi = end / unit * unit;
        shard_add(out, lo, hi, set->replicas);
        lo = hi;
    }
    shard_add(out, lo, group->elems, 1);
}

/* ---- gradients ---- */

/* Elements lo .. hi - 1 of the group's gradient, of this replica. */
static ty_val shard_own_gradient(const ty_param_set *set, const ty_param_group *group, ty_graph *g, int64_t lo,
                                 int64_t hi)
{
    ty_val *part = TY_NEW_ARRAY(set->arena, ty_val, group->n_members);
    int n = 0;
    int64_t at = 0;
    for (int i = 0; i < group->n_members; i++) {
        int64_t end = at + group->member_elems[i], from = lo > at ? lo : at, to = hi < end ? hi : end;
        if (from < to)
            part[n++] = ty_b_slice_axis(g, ty_b_flatten(g, set->param[group->member[i]].grad), 0, from - at, to - at);
        at = end;
    }
    return n == 1 ? part[0] : ty_b_concat(g, part, n, 0);
}

void ty_shard_gradients(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val sums, ty_val replica,
                        ty_dtype wire, ty_shards *s)
{
    for (int i = 0; i < s->n && !ty_graph_failed(g, NULL); i++) {
        ty_shard_piece *p = &s->piece[i];
        ty_val own = shard_own_gradient(set, group, g, p->lo, p->hi);
        if (sums != TY_NONE)
            own = ty_b_add(g, ty_b_slice_axis(g, sums, 0, p->lo, p->hi), own);
        own = ty_b_cast(g, own, wire);
        p->grad = p->whole ? ty_b_all_reduce_gradients(g, own, set->replicas, group->state, p->lo, p->hi)
                           : ty_b_reduce_scatter_gradients(g, own, replica, set->replicas, group->state, p->lo, p->hi);
        p->grad = ty_b_cast(g, p->grad, TY_F32);
    }
}

/* ---- weights ---- */

ty_val ty_shard_weights(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val replica,
                        const ty_shards *s, int i)
{
    const ty_shard_piece *p = &s->piece[i];
    ty_val all = ty_b_slice_axis(g, ty_b_state(g, group->state), 0, p->lo, p->hi);
    int64_t dim[2] = {set->replicas, p->elems};
    return p->whole ? all : ty_b_gather(g, ty_b_reshape(g, all, 2, dim), replica, 0);
}

ty_val ty_shard_hand_on(const ty_param_set *set, ty_graph *g, const ty_shards *s, int i, ty_val own)
{
    return s->piece[i].whole ? own : ty_b_all_gather(g, own, set->replicas);
}

int ty_shard_add_state(const ty_param_set *set, const ty_param_group *group, ty_graph *g, const char *prefix,
                       const ty_shards *s)
{
    const char *name = ty_arena_printf(set->arena, "%s.%d", prefix, group->number);
    ty_type type = ty_type_make(TY_F32, 1, &s->elems);
    ty_segment segment = {name, type, 0};
    ty_state state = {.name = name, .type = type, .role = TY_STATE_MOMENT, .segments = &segment, .n_segments = 1};
    return ty_graph_add_state(g, &state);
}
