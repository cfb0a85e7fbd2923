/* across.c - see across.h. */
#include "compiler/passes/across.h"

#include "compiler/ir/build.h"
#include "compiler/ops/op.h"
#include "compiler/passes/shard.h"

/* Bytes of a bucket where nothing is asked for: PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed",
 * VLDB 2020) takes 25 MB. The first one is small, so that it travels early, and so is the last one, which nothing is
 * computed beside. */
#define ACROSS_BUCKET_BYTES ((int64_t)25 << 20)
#define ACROSS_SMALL_BYTES  ((int64_t)1 << 20) /* at most, or this share of a bucket: */
#define ACROSS_SMALL        16

/* Seeds of replicas are so far apart; odd, exact in a double. */
#define ACROSS_SEEDS 0x9E3779B97F4A7

int ty_across_replicas(const ty_train_spec *spec)
{
    return spec->replicas > 1 ? spec->replicas : 1;
}

int ty_across_check(const ty_train_spec *spec, ty_error *err)
{
    if (spec->replicas < 0 || spec->replicas > TY_MAX_REPLICAS)
        return ty_error_set(err, TY_E_RANGE, "replicas: expected 1 to %d, found %d", TY_MAX_REPLICAS, spec->replicas);
    if (spec->replicas > 1 && !spec->no_eval && !spec->no_outputs) {
        ty_error_set(err, TY_E_UNSUPPORTED, "evaluation by %d replicas yields losses and metrics, not model outputs",
                     spec->replicas);
        return ty_error_help(err, "set no_outputs, or evaluate with one replica");
    }
    return ty_shard_check(spec, err);
}

/* ---- gradients ---- */

typedef struct across_sizes {
    int64_t most, small; /* bytes of a bucket; of the first and the last one */
    int last;            /* first member of the last one; 0: there is one bucket */
} across_sizes;

static across_sizes across_sizes_of(const ty_param_group *group, const ty_train_spec *spec)
{
    int64_t most = spec->bucket_bytes > 0 ? spec->bucket_bytes : ACROSS_BUCKET_BYTES, small = most, bytes = 0;
    if (most >= ACROSS_SMALL_BYTES)
        small = most / ACROSS_SMALL < ACROSS_SMALL_BYTES ? most / ACROSS_SMALL : ACROSS_SMALL_BYTES;
    int last = group->n_members;
    while (last > 0 && bytes + group->member_elems[last - 1] * (int64_t)sizeof(float) <= small)
        bytes += group->member_elems[--last] * (int64_t)sizeof(float);
    return (across_sizes){most, small, last == group->n_members ? last - 1 : last};
}

/* The first member behind the bucket that begins with `first`. */
static int across_bucket_end(const ty_param_group *group, int first, const across_sizes *sizes)
{
    int64_t most = first == 0 ? sizes->small : sizes->most, bytes = 0;
    int end = first, stop = first < sizes->last ? sizes->last : group->n_members;
    while (end < stop && (end == first || bytes < most))
        bytes += group->member_elems[end++] * (int64_t)sizeof(float);
    return end;
}

int ty_across_buckets(const ty_param_group *group, const ty_train_spec *spec, int *end)
{
    const across_sizes sizes = across_sizes_of(group, spec);
    int n = 0;
    for (int first = 0; first < group->n_members; first = end[n++])
        end[n] = across_bucket_end(group, first, &sizes);
    return n;
}

ty_dtype ty_across_wire(const ty_train_spec *spec)
{
    return ty_across_replicas(spec) > 1 && (spec->wire == TY_F16 || spec->wire == TY_BF16) ? spec->wire : TY_F32;
}

/* Gradients of members first .. end - 1, flat. */
static ty_val across_bucket(const ty_param_set *set, const ty_param_group *group, ty_graph *g, int first, int end,
                            ty_dtype dtype)
{
    ty_val *part = TY_NEW_ARRAY(set->arena, ty_val, end - first);
    for (int i = first; i < end; i++)
        part[i - first] = ty_b_cast(g, ty_b_flatten(g, set->param[group->member[i]].grad), dtype);
    return end - first == 1 ? part[0] : ty_b_concat(g, part, end - first, 0);
}

ty_val ty_across_gradient(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val sums,
                          const ty_train_spec *spec)
{
    ty_val *bucket = TY_NEW_ARRAY(set->arena, ty_val, group->n_members);
    int *end = TY_NEW_ARRAY(set->arena, int, group->n_members + 1);
    int n = ty_across_buckets(group, spec, end);
    int64_t lo = 0;
    ty_dtype wire = ty_across_wire(spec);
    for (int i = 0; i < n; i++) {
        ty_val own = across_bucket(set, group, g, i ? end[i - 1] : 0, end[i], sums == TY_NONE ? wire : TY_F32);
        if (ty_graph_failed(g, NULL))
            return TY_NONE;
        int64_t hi = lo + ty_b_dim(g, own, 0);
        if (sums != TY_NONE)
            own = ty_b_add(g, ty_b_slice_axis(g, sums, 0, lo, hi), own);
        own = ty_b_cast(g, own, wire);
        own = ty_b_all_reduce_gradients(g, own, ty_across_replicas(spec), group->state, lo, hi);
        bucket[i] = ty_b_cast(g, own, TY_F32);
        lo = hi;
    }
    return n == 1 ? bucket[0] : ty_b_concat(g, bucket, n, 0);
}

/* ---- when they begin ---- */

/* The node after which all that v is put together from is there. */
static uint32_t across_ready(const ty_graph *g, ty_val v)
{
    static const uint8_t puts_together[TY_N_OPS] = {[TY_OP_CONCAT] = 1, [TY_OP_RESHAPE] = 1,   [TY_OP_CAST] = 1,
                                                    [TY_OP_SLICE] = 1,  [TY_OP_TRANSPOSE] = 1, [TY_OP_ADD] = 1};
    uint32_t id = ty_val_node(v), ready = 0;
    ty_op op = ty_graph_op(g, id);
    if (ty_op_row_of(op)->class_ == TY_CLASS_LEAF)
        return 0;
    if (!puts_together[op])
        return id;
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in; i++) {
        uint32_t one = across_ready(g, ty_graph_in(g, id, (int)i));
        ready = one > ready ? one : ready;
    }
    return ready;
}

static bool across_is_early(const ty_graph *g, const uint8_t *live, uint32_t id)
{
    ty_op op = ty_graph_op(g, id);
    return live[id] && (op == TY_OP_ALL_REDUCE || op == TY_OP_REDUCE_SCATTER) && ty_b_rank(g, ty_val_make(id, 0)) == 1;
}

void ty_across_find_early(const ty_graph *g, const uint8_t *live, ty_arena *a, const uint32_t **early)
{
    uint32_t n = ty_graph_n_nodes(g);
    for (uint32_t id = 0; id < n; id++) {
        uint32_t ready = across_is_early(g, live, id) ? across_ready(g, ty_graph_in(g, id, 0)) : id;
        if (ready == id)
            continue;
        int k = 0;
        while (early[ready] && early[ready][k] != TY_NONE)
            k++;
        uint32_t *list = TY_NEW_ARRAY(a, uint32_t, k + 2);
        for (int i = 0; i < k; i++)
            list[i] = early[ready][i];
        list[k] = id;
        list[k + 1] = TY_NONE;
        early[ready] = list;
    }
}

/* ---- statistics ---- */

void ty_across_mean(ty_graph *g, ty_val *v, int n, int replicas)
{
    if (replicas == 1 || n == 0)
        return;
    ty_arena *a = ty_graph_arena(g);
    ty_val *flat = TY_NEW_ARRAY(a, ty_val, n);
    for (int i = 0; i < n; i++)
        flat[i] = ty_b_flatten(g, ty_b_cast(g, v[i], TY_F32));
    ty_val all = ty_b_all_reduce(g, n == 1 ? flat[0] : ty_b_concat(g, flat, n, 0), replicas);
    all = ty_b_mul_s(g, all, 1.0 / replicas);
    int64_t at = 0;
    for (int i = 0; i < n && !ty_graph_failed(g, NULL); i++) {
        const ty_type t = *ty_graph_type(g, v[i]);
        ty_val own = ty_b_slice_axis(g, all, 0, at, at + ty_type_elems(&t));
        v[i] = ty_b_cast(g, ty_b_reshape(g, own, t.rank, t.dim), (ty_dtype)t.dtype);
        at += ty_type_elems(&t);
    }
}

/* ---- random numbers ---- */

ty_val ty_across_seed(ty_graph *g, ty_val seed, ty_val replica)
{
    return ty_b_add(g, seed, ty_b_mul(g, replica, ty_b_scalar(g, TY_I64, (double)ACROSS_SEEDS)));
}
