/* sampler.c - see sampler.h. */
#include "container/input/sampler.h"

#include "base/pages.h"
#include "base/rng.h"

static int64_t sampler_global_rows(const ty_sampler_config *c)
{
    return c->batch_size * c->n_shards;
}

static int sampler_check(const ty_sampler_config *c, ty_error *err)
{
    if (c->batch_size < 1 || c->batch_size > (int64_t)1 << 40)
        return ty_error_set(err, TY_E_RANGE, "batch_size %lld, expected 1 or more", (long long)c->batch_size);
    if (c->n_shards < 1 || c->n_shards > 1 << 20 || c->shard < 0 || c->shard >= c->n_shards)
        return ty_error_set(err, TY_E_RANGE, "shard %lld of %lld does not exist", (long long)c->shard,
                            (long long)c->n_shards);
    if (c->n_samples < 1)
        return ty_error_set(err, TY_E_DATA, "the data hold no samples");
    if (c->tail == TY_TAIL_DROP && c->n_samples < sampler_global_rows(c)) {
        ty_error_set(err, TY_E_CONFIG, "the data hold %lld samples, fewer than one batch of %lld",
                     (long long)c->n_samples, (long long)sampler_global_rows(c));
        return ty_error_help(err, "choose a batch_size of at most %lld", (long long)(c->n_samples / c->n_shards));
    }
    if (c->tail == TY_TAIL_DROP && c->epoch_batches > c->n_samples / sampler_global_rows(c))
        return ty_error_set(err, TY_E_RANGE, "an epoch of %lld batches, and the data hold %lld",
                            (long long)c->epoch_batches, (long long)(c->n_samples / sampler_global_rows(c)));
    return 0;
}

size_t ty_sampler_table_bytes(int64_t n_samples)
{
    return n_samples > 0 && n_samples <= TY_SAMPLER_TABLE
               ? (size_t)n_samples * sizeof *((ty_sampler *)NULL)->permutation
               : 0;
}

int ty_sampler_init(ty_sampler *s, const ty_sampler_config *config, ty_error *err)
{
    *s = (ty_sampler){.config = *config, .permuted_epoch = -1};
    if (s->config.n_shards == 0)
        s->config.n_shards = 1;
    if (sampler_check(&s->config, err) < 0)
        return -1;
    int64_t n = s->config.n_samples, rows = sampler_global_rows(&s->config);
    s->n_batches = s->config.tail == TY_TAIL_DROP ? n / rows : n / rows + (n % rows != 0);
    if (s->config.epoch_batches > 0)
        s->n_batches = s->config.epoch_batches;
    if (s->config.shuffle && n > INT64_C(1) << 62)
        return ty_error_set(err, TY_E_LIMIT, "%lld samples cannot be put in another order", (long long)n);
    if (s->config.shuffle && n <= TY_SAMPLER_TABLE) {
        s->permutation = ty_pages_new(ty_sampler_table_bytes(n));
        if (s->permutation == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for the order of %lld samples", (long long)n);
    }
    return 0;
}

size_t ty_sampler_bytes(const ty_sampler *s)
{
    return s->permutation ? ty_sampler_table_bytes(s->config.n_samples) : 0;
}

void ty_sampler_fini(ty_sampler *s)
{
    ty_pages_free(s->permutation, ty_sampler_table_bytes(s->config.n_samples));
    *s = (ty_sampler){0};
}

int64_t ty_sampler_batch(ty_sampler *s, ty_position at, int64_t *out)
{
    const ty_sampler_config *c = &s->config;
    if (s->permutation && s->permuted_epoch != at.epoch) {
        ty_rng_permutation(c->seed, c->stream, (uint32_t)at.epoch, c->n_samples, s->permutation);
        s->permuted_epoch = at.epoch;
    }
    int64_t first = at.batch * sampler_global_rows(c) + c->shard * c->batch_size;
    for (int64_t i = 0; i < c->batch_size; i++) {
        int64_t rank = (first + i) % c->n_samples;
        out[i] = s->permutation ? s->permutation[rank]
                 : c->shuffle   ? ty_rng_permuted(c->seed, c->stream, (uint32_t)at.epoch, c->n_samples, rank)
                                : rank;
    }
    int64_t left = c->n_samples - first;
    return left < 0 ? 0 : left < c->batch_size ? left : c->batch_size;
}

ty_position ty_sampler_after(const ty_sampler *s, ty_position at)
{
    at.batch++;
    if (at.batch >= s->n_batches)
        at = (ty_position){.epoch = at.epoch + 1};
    return at;
}

ty_position ty_sampler_at_step(const ty_sampler *s, int64_t step)
{
    return (ty_position){.epoch = step / s->n_batches, .batch = step % s->n_batches};
}
