/* feed_dataset.c - a feed of samples by number: a sampler draws, any thread reads. */
#include "container/input/feed.h"

#include <stdlib.h>

typedef struct dataset_feed {
    ty_data_feed feed;
    const ty_dataset *dataset;
    bool augment;
    /* the taking thread's; config and n_batches do not change */
    ty_sampler sampler;
    ty_position next;
    int64_t until_epoch;
} dataset_feed;

static int dataset_feed_start(ty_data_feed *feed, ty_position at, int64_t until_epoch, ty_error *err)
{
    dataset_feed *f = (dataset_feed *)feed;
    if (at.epoch < 0 || at.batch < 0 || at.batch >= f->sampler.n_batches)
        return ty_error_set(err, TY_E_RANGE, "no batch %lld in epoch %lld: an epoch has %lld batches",
                            (long long)at.batch, (long long)at.epoch, (long long)f->sampler.n_batches);
    f->next = at;
    f->until_epoch = until_epoch;
    return 0;
}

static int dataset_feed_take(ty_data_feed *feed, ty_draft *draft, ty_error *err)
{
    dataset_feed *f = (dataset_feed *)feed;
    (void)err;
    if (f->until_epoch > 0 && f->next.epoch >= f->until_epoch)
        return 0;
    draft->at = f->next;
    draft->n_valid = ty_sampler_batch(&f->sampler, f->next, draft->samples);
    draft->longest = ty_sampler_longest(&f->sampler, f->next);
    f->next = ty_sampler_after(&f->sampler, f->next);
    draft->ends_epoch = f->next.epoch != draft->at.epoch;
    draft->epoch_records = f->dataset->n_samples;
    return 1;
}

static int dataset_feed_fill(ty_data_feed *feed, ty_draft *draft, void *const *out, ty_error *err)
{
    dataset_feed *f = (dataset_feed *)feed;
    ty_pick pick = {draft->samples, feed->n_rows, f->sampler.config.seed, draft->at.epoch, f->augment};
    return ty_dataset_read_all(f->dataset, &pick, out, err);
}

static int dataset_feed_skip_epoch(ty_data_feed *feed, int64_t epoch, ty_error *err)
{
    dataset_feed *f = (dataset_feed *)feed;
    (void)err;
    if (f->next.epoch == epoch)
        f->next = (ty_position){.epoch = epoch + 1};
    return 0;
}

static size_t dataset_feed_work_bytes(const ty_data_feed *feed)
{
    return ty_dataset_work_bytes(((const dataset_feed *)feed)->dataset);
}

static void dataset_feed_place(const ty_data_feed *feed, const ty_draft *draft, int field, int64_t row, char *out,
                               size_t n)
{
    const dataset_feed *f = (const dataset_feed *)feed;
    ty_dataset_place(f->dataset, field, draft->samples[row], out, n);
}

static void dataset_feed_close(ty_data_feed *feed)
{
    dataset_feed *f = (dataset_feed *)feed;
    ty_sampler_fini(&f->sampler);
    free(f);
}

static const ty_data_feed_ops dataset_feed_ops = {.start = dataset_feed_start,
                                                  .take = dataset_feed_take,
                                                  .fill = dataset_feed_fill,
                                                  .skip_epoch = dataset_feed_skip_epoch,
                                                  .work_bytes = dataset_feed_work_bytes,
                                                  .place = dataset_feed_place,
                                                  .close = dataset_feed_close};

int ty_dataset_feed(const ty_dataset *dataset, const ty_sampler_config *order, bool augment, ty_data_feed **out,
                    ty_error *err)
{
    ty_sampler_config config = *order;
    config.n_samples = dataset->n_samples;
    dataset_feed *f = calloc(1, sizeof *f);
    if (!f)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the order of samples");
    if (ty_sampler_init(&f->sampler, &config, err) < 0) {
        dataset_feed_close(&f->feed);
        return -1;
    }
    f->dataset = dataset;
    f->augment = augment;
    f->feed = (ty_data_feed){.ops = &dataset_feed_ops,
                             .n_fields = dataset->n_fields,
                             .field = dataset->field,
                             .n_rows = config.batch_size,
                             .epoch_batches = f->sampler.n_batches,
                             .kept_bytes = ty_sampler_bytes(&f->sampler)};
    *out = &f->feed;
    return 0;
}

void ty_data_feed_close(ty_data_feed *feed)
{
    if (feed)
        feed->ops->close(feed);
}
