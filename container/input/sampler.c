/* sampler.c - see sampler.h. */
#include "container/input/sampler.h"

#include "base/pages.h"
#include "base/rng.h"

#include <stdlib.h>

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

static int64_t sampler_group(const ty_sampler *s)
{
    const ty_sampler_config *c = &s->config;
    return c->sorted_batches < s->n_full ? c->sorted_batches : s->n_full;
}

static int sampler_room(ty_sampler *s, ty_error *err)
{
    const ty_sampler_config *c = &s->config;
    int64_t n = c->n_samples, rows = sampler_global_rows(c);
    bool sorts = c->length && c->sorted_batches > 0 && n <= TY_SAMPLER_TABLE;
    if ((c->shuffle || sorts) && n <= TY_SAMPLER_TABLE && !(s->permutation = ty_pages_new(ty_sampler_table_bytes(n))))
        return ty_error_set(err, TY_E_LIMIT, "no memory for the order of %lld samples", (long long)n);
    s->n_full = sorts ? (n / rows < s->n_batches ? n / rows : s->n_batches) : 0;
    if (s->n_full == 0)
        return 0;
    s->by_length = calloc((size_t)(sampler_group(s) * rows), sizeof *s->by_length);
    s->batch_order = calloc((size_t)s->n_full, sizeof *s->batch_order);
    if (!s->by_length || !s->batch_order)
        return ty_error_set(err, TY_E_LIMIT, "no memory to sort %lld samples", (long long)(sampler_group(s) * rows));
    return 0;
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
    return sampler_room(s, err);
}

size_t ty_sampler_bytes(const ty_sampler *s)
{
    size_t sorting = (size_t)(s->n_full > 0 ? sampler_group(s) * sampler_global_rows(&s->config) : 0);
    return (s->permutation ? ty_sampler_table_bytes(s->config.n_samples) : 0) + sorting * sizeof *s->by_length +
           (size_t)s->n_full * sizeof *s->batch_order;
}

void ty_sampler_fini(ty_sampler *s)
{
    ty_pages_free(s->permutation, ty_sampler_table_bytes(s->config.n_samples));
    free(s->by_length);
    free(s->batch_order);
    *s = (ty_sampler){0};
}

/* ---- the order of an epoch ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Samples of one length stay in the order that they had. */
static void sort_group(ty_sampler *s, uint32_t *samples, int64_t n)
{
    const uint32_t *length = s->config.length;
    for (int64_t i = 0; i < n; i++)
        s->by_length[i] = (uint64_t)length[samples[i]] << 32 | (uint64_t)i;
    qsort(s->by_length, (size_t)n, sizeof *s->by_length, by_value);
    for (int64_t i = 0; i < n; i++)
        s->by_length[i] = samples[s->by_length[i] & UINT32_MAX];
    for (int64_t i = 0; i < n; i++)
        samples[i] = (uint32_t)s->by_length[i];
}

/* Without shuffling batches stay in the order of their lengths. */
static void draw_batches(ty_sampler *s, int64_t epoch)
{
    const ty_sampler_config *c = &s->config;
    int64_t group = sampler_group(s), rows = sampler_global_rows(c);
    for (int64_t first = 0; first < s->n_full; first += group) {
        int64_t n = s->n_full - first < group ? s->n_full - first : group;
        sort_group(s, s->permutation + first * rows, n * rows);
    }
    if (c->shuffle)
        ty_rng_permutation(c->seed, TY_STREAM_LENGTHS, (uint32_t)epoch, s->n_full, s->batch_order);
    for (int64_t i = 0; i < s->n_full && !c->shuffle; i++)
        s->batch_order[i] = (uint32_t)i;
}

static void draw_epoch(ty_sampler *s, int64_t epoch)
{
    const ty_sampler_config *c = &s->config;
    if (!s->permutation || s->permuted_epoch == epoch)
        return;
    if (c->shuffle)
        ty_rng_permutation(c->seed, c->stream, (uint32_t)epoch, c->n_samples, s->permutation);
    for (int64_t i = 0; i < c->n_samples && !c->shuffle; i++)
        s->permutation[i] = (uint32_t)i;
    if (s->n_full > 0)
        draw_batches(s, epoch);
    s->permuted_epoch = epoch;
}

/* The sample at a place of the epoch's order, which goes on at its start. */
static int64_t sampler_at(const ty_sampler *s, int64_t epoch, int64_t place)
{
    const ty_sampler_config *c = &s->config;
    int64_t at = place % c->n_samples;
    return s->permutation ? s->permutation[at]
           : c->shuffle   ? ty_rng_permuted(c->seed, c->stream, (uint32_t)epoch, c->n_samples, at)
                          : at;
}

/* Where the rows of a global batch begin. */
static int64_t sampler_first(const ty_sampler *s, int64_t batch)
{
    return (batch < s->n_full ? s->batch_order[batch] : batch) * sampler_global_rows(&s->config);
}

int64_t ty_sampler_batch(ty_sampler *s, ty_position at, int64_t *out)
{
    const ty_sampler_config *c = &s->config;
    draw_epoch(s, at.epoch);
    int64_t first = sampler_first(s, at.batch) + c->shard * c->batch_size;
    for (int64_t i = 0; i < c->batch_size; i++)
        out[i] = sampler_at(s, at.epoch, first + i);
    int64_t left = c->n_samples - first;
    return left < 0 ? 0 : left < c->batch_size ? left : c->batch_size;
}

int64_t ty_sampler_longest(const ty_sampler *s, ty_position at)
{
    const ty_sampler_config *c = &s->config;
    int64_t first = sampler_first(s, at.batch), longest = 0;
    for (int64_t i = 0; c->length && i < sampler_global_rows(c); i++) {
        int64_t length = c->length[sampler_at(s, at.epoch, first + i)];
        longest = length > longest ? length : longest;
    }
    return longest;
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
