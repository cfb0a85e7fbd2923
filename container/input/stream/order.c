/* order.c - a feed of records that stream by: shards, the shuffle buffer, where batches and epochs end.
 *
 * The buffer: before the record number e leaves it, it holds an eighth of its size plus e records, at most its size, so
 * that it fills while batches are made already; which one leaves is number e of the generator's stream for this epoch.
 * So the order depends on the bytes, the seed, the epoch and the sizes, and on nothing else. To go to a batch in an
 * epoch is to do all that without keeping what leaves.
 *
 * One batch is made ahead, since only that tells whether the one before is the epoch's last.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "container/input/stream/opened.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_BEGIN = 8 };      /* batches begin when so small a part of the buffer is full */
enum { BUFFER_SLACK = 16 };     /* so small a part of a record may stand unused in its place */
enum { BUFFER_ALLOCATED = 16 }; /* bytes of malloc's beside each piece */

typedef struct buffer_slot {
    uint8_t *bytes;
    size_t room;
    stream_record record;
} buffer_slot;

typedef struct stream_feed {
    ty_data_feed feed;
    stream_opened *opened;
    ty_stream_order order;
    int *which; /* files of this shard */
    int n_which;
    int64_t n_first, n_global; /* of a global batch: the first row that is this shard's, all rows */
    bool mixes;                /* rows with others of their global batch */
    bool keeps_all;            /* of the global batch, to be mixed in or to fill free places */
    /* The taking thread's. */
    ty_position next;
    int64_t until_epoch, n_skip; /* batches to pass over before the first */
    bool in_epoch, has_ahead, is_late;
    int64_t n_records; /* of this epoch so far, all shards' */
    int64_t asleep_ns; /* of epochs before */
    stream_batch *ahead, *spare;
    ty_error late; /* of the batch behind the one that is ahead */
    buffer_slot *slot;
    int64_t n_slots, n_full, n_left; /* in the buffer; that have left it */
    size_t buffer_bytes;
    bool is_drained; /* nothing comes into the buffer any more */
} stream_feed;

/* ---- records ---- */

/* The next record of this shard: 1, 0 at the end of the epoch, -1. */
static int order_read(stream_feed *f, const uint8_t **data, stream_record *out, ty_error *err)
{
    stream_opened *s = f->opened;
    ty_cursor_record r;
    for (;;) {
        int rc = s->cursor.source ? ty_cursor_next(&s->cursor, &r, err) : 0;
        if (rc < 0) {
            char fifo[TY_PIPE_PATH_BYTES];
            return ty_error_at(err, "%s", s->is_pipe ? ty_pipe_path(&s->pipe, s->fifo, fifo) : s->files[r.file].path);
        }
        if (rc == 0)
            return 0;
        stream_record where = {
            .n = r.n, .record = r.record, .at = r.at, .file = s->is_pipe ? s->fifo : r.file, .number = f->n_records++};
        if (f->order.shard_by == TY_SHARD_RECORDS && where.number % f->order.n_shards != f->order.shard)
            continue;
        *out = where;
        *data = r.data;
        return 1;
    }
}

/* Of a record in the buffer: its bytes, where it comes from, and what the allocator takes. */
static size_t buffer_cost(size_t n)
{
    return n + sizeof(buffer_slot) + BUFFER_ALLOCATED;
}

static int buffer_put(stream_feed *f, const uint8_t *data, const stream_record *r, ty_error *err)
{
    buffer_slot *slot = &f->slot[f->n_full];
    size_t n = stream_bytes_of(f->opened, r->n);
    if (n > slot->room || slot->room - n > n / BUFFER_SLACK) { /* what is counted is what is held */
        uint8_t *grown = realloc(slot->bytes, n + 1);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a record of %zu bytes in the shuffle buffer", n);
        slot->bytes = grown;
        slot->room = n;
    }
    memcpy(slot->bytes, data, n);
    slot->record = *r;
    f->buffer_bytes += buffer_cost(n);
    f->n_full++;
    return 0;
}

static int buffer_fill(stream_feed *f, ty_error *err)
{
    int64_t begin = f->n_slots / BUFFER_BEGIN > 0 ? f->n_slots / BUFFER_BEGIN : 1;
    int64_t wanted = f->n_left < f->n_slots - begin ? begin + f->n_left : f->n_slots;
    while (!f->is_drained && f->n_full < wanted && (f->n_full == 0 || f->buffer_bytes < f->opened->memory_bytes)) {
        const uint8_t *data;
        stream_record r;
        int rc = order_read(f, &data, &r, err);
        f->is_drained = rc == 0;
        if (rc < 0 || (rc > 0 && buffer_put(f, data, &r, err) < 0))
            return -1;
    }
    return 0;
}

/* The next record in the order of the epoch, to a batch unless that is NULL: 1, 0, -1. */
static int order_next(stream_feed *f, stream_batch *to, bool is_mine, ty_error *err)
{
    const uint8_t *data;
    stream_record r;
    if (f->n_slots == 0) {
        int rc = order_read(f, &data, &r, err);
        return rc <= 0 || !to ? rc : stream_batch_add(to, f->opened, data, &r, is_mine, err) < 0 ? -1 : 1;
    }
    if (buffer_fill(f, err) < 0)
        return -1;
    if (f->n_full == 0)
        return 0;
    uint64_t i = ty_rng_below(f->order.seed, TY_STREAM_BUFFER, (uint32_t)f->next.epoch, (uint64_t)f->n_left,
                              (uint64_t)f->n_full);
    buffer_slot leaves = f->slot[i];
    f->slot[i] = f->slot[--f->n_full];
    f->slot[f->n_full] = leaves;
    f->buffer_bytes -= buffer_cost(stream_bytes_of(f->opened, leaves.record.n));
    f->n_left++;
    if (f->n_full + 1 < f->n_slots) { /* of those that have left, one is kept: its bytes are still to be copied */
        buffer_slot *idle = &f->slot[f->n_full + 1];
        free(idle->bytes);
        *idle = (buffer_slot){0};
    }
    if (!to)
        return 1;
    return stream_batch_add(to, f->opened, leaves.bytes, &leaves.record, is_mine, err) < 0 ? -1 : 1;
}

/* The places that a global batch of n records leaves free take its records in turn, whoever's they are. */
static void order_fill(const stream_feed *f, stream_batch *to, int64_t n)
{
    for (; to->n_records < f->order.n_rows; to->n_records++)
        to->record[to->n_records] = to->other[(f->n_first + to->n_records) % n];
}

/* The next batch: 1, 0 if the epoch has none, -1. to: NULL to pass over it. */
static int order_batch(stream_feed *f, stream_batch *to, ty_error *err)
{
    int64_t n = 0;
    if (to) {
        to->n_records = to->n_other = 0;
        to->n_bytes = 0;
    }
    for (; n < f->n_global; n++) {
        bool is_mine = to && n >= f->n_first && n < f->n_first + f->order.n_rows;
        int rc = order_next(f, is_mine || f->keeps_all ? to : NULL, is_mine, err);
        if (rc < 0)
            return -1;
        if (rc == 0)
            break;
    }
    if (to && f->order.fills && n > 0)
        order_fill(f, to, n);
    return f->order.tail == TY_TAIL_DROP ? n == f->n_global : n > 0;
}

/* ---- epochs ---- */

static bool order_is_stopping(stream_feed *f)
{
    pthread_mutex_lock(&f->opened->lock);
    bool stopping = f->opened->stopping;
    pthread_mutex_unlock(&f->opened->lock);
    return stopping;
}

static void order_note_waits(stream_feed *f)
{
    const ty_source *source = f->opened->cursor.source;
    f->feed.asleep_ns = f->asleep_ns + (source ? ty_source_waited_ns(source) : 0);
}

static void order_end_epoch(stream_feed *f)
{
    order_note_waits(f);
    f->asleep_ns = f->feed.asleep_ns;
    stream_end(f->opened);
    f->in_epoch = f->has_ahead = f->is_late = false;
    f->next = (ty_position){.epoch = f->next.epoch + 1};
}

/* Passes over the batches before the position that the feed was started at. An epoch that has no more is over. */
static int order_skip(stream_feed *f, ty_error *err)
{
    int64_t start = ty_clock_ns(), n = f->n_skip;
    f->n_skip = 0;
    for (; f->next.batch < n; f->next.batch++) {
        int rc = order_batch(f, NULL, err);
        if (rc <= 0)
            return rc;
    }
    if (n > 0)
        ty_log_info(
            "input", "passed over %lld batches of epoch %lld, to go on where the run stopped: %lld records, %.3g s",
            (long long)n, (long long)f->next.epoch, (long long)f->n_records, (double)(ty_clock_ns() - start) / 1e9);
    return 1;
}

/* 1: batches come; 0: none does, or it was told to stop. */
static int order_begin_epoch(stream_feed *f, ty_error *err)
{
    stream_opened *s = f->opened;
    f->n_records = f->n_full = f->n_left = 0;
    f->buffer_bytes = 0;
    f->is_drained = false;
    if (!s->is_fresh && (s->is_pipe || f->n_which > 0)) {
        int rc = stream_begin(s, f->which, f->n_which, err);
        if (rc <= 0)
            return rc;
    }
    s->is_fresh = false;
    f->in_epoch = true;
    return order_skip(f, err);
}

/* ---- the feed ---- */

static int feed_start(ty_data_feed *feed, ty_position at, int64_t until_epoch, ty_error *err)
{
    stream_feed *f = (stream_feed *)feed;
    if (at.epoch < 0 || at.batch < 0)
        return ty_error_set(err, TY_E_RANGE, "no batch %lld in epoch %lld", (long long)at.batch, (long long)at.epoch);
    if (f->opened->is_pipe && (at.epoch > 0 || at.batch > 0))
        ty_log_info("input",
                    "the channel in Pipe mode goes on in epoch %lld, batch %lld: with the same samples only if "
                    "the platform does not shuffle it (ShuffleConfig)",
                    (long long)at.epoch, (long long)at.batch);
    f->next = (ty_position){.epoch = at.epoch};
    f->n_skip = at.batch;
    f->until_epoch = until_epoch;
    pthread_mutex_lock(&f->opened->lock);
    ty_bad_begin_again(&f->opened->stream.bad, at.epoch);
    pthread_mutex_unlock(&f->opened->lock);
    return 0;
}

static int order_open_batch(const stream_feed *f, stream_batch **out, ty_error *err)
{
    return stream_batch_open(f->opened, f->order.n_rows, f->keeps_all ? f->n_global : 0, f->mixes, out, err);
}

static int feed_open_draft(ty_data_feed *feed, ty_draft *draft, ty_error *err)
{
    stream_feed *f = (stream_feed *)feed;
    return order_open_batch(f, (stream_batch **)&draft->impl, err);
}

static void feed_close_draft(ty_data_feed *feed, ty_draft *draft)
{
    (void)feed;
    stream_batch_close(draft->impl);
    draft->impl = NULL;
}

/* The batch that is ahead is the draft's now. */
static void order_give(stream_feed *f, ty_draft *draft, bool ends_epoch)
{
    stream_batch *empty = draft->impl;
    draft->impl = f->ahead;
    f->ahead = empty;
    draft->at = f->next;
    draft->n_valid = ((stream_batch *)draft->impl)->n_records;
    draft->ends_epoch = ends_epoch;
    draft->epoch_records = f->n_records;
    f->next.batch++;
    if (ends_epoch)
        order_end_epoch(f);
}

/* Makes the batch that is ahead. 1, 0 at the end of everything, -1. *is_none: an epoch without a batch, which is one
 * without rows. */
static int order_look_ahead(stream_feed *f, bool *is_none, ty_error *err)
{
    *is_none = false;
    for (;;) {
        if (f->until_epoch > 0 && f->next.epoch >= f->until_epoch)
            return 0;
        bool was_skipped = f->n_skip > 0;
        int rc = f->in_epoch ? 1 : order_begin_epoch(f, err);
        rc = rc <= 0 ? rc : order_batch(f, f->ahead, err);
        if (rc < 0 || order_is_stopping(f))
            return rc < 0 ? -1 : 0;
        if (rc > 0)
            return f->has_ahead = true;
        if (!was_skipped) {
            f->ahead->n_records = 0;
            *is_none = true;
            return 1;
        }
        order_end_epoch(f);
    }
}

static int feed_take(ty_data_feed *feed, ty_draft *draft, ty_error *err)
{
    stream_feed *f = (stream_feed *)feed;
    bool is_none = false;
    if (f->is_late) {
        if (err)
            *err = f->late;
        return -1;
    }
    int rc = f->has_ahead ? 1 : order_look_ahead(f, &is_none, err);
    if (rc <= 0)
        return rc;
    if (is_none) {
        order_give(f, draft, true);
        return 1;
    }
    int more = order_batch(f, f->spare, &f->late);
    f->is_late = more < 0;
    order_note_waits(f);
    if (order_is_stopping(f))
        return 0;
    order_give(f, draft, more == 0);
    stream_batch *empty = f->ahead;
    f->ahead = f->spare;
    f->spare = empty;
    f->has_ahead = more > 0;
    return 1;
}

static int feed_fill(ty_data_feed *feed, ty_draft *draft, void *const *out, ty_error *err)
{
    stream_feed *f = (stream_feed *)feed;
    return stream_decode(f->opened, &f->order, draft->at, draft->impl, draft->samples, out, &draft->n_valid, err);
}

static int feed_skip_epoch(ty_data_feed *feed, int64_t epoch, ty_error *err)
{
    stream_feed *f = (stream_feed *)feed;
    (void)err;
    if (f->next.epoch != epoch)
        return 0;
    f->n_skip = 0;
    order_end_epoch(f);
    return 0;
}

static void feed_stop(ty_data_feed *feed)
{
    stream_opened *s = ((stream_feed *)feed)->opened;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    if (s->cursor.source)
        ty_source_stop(s->cursor.source);
    pthread_mutex_unlock(&s->lock);
}

static size_t feed_draft_bytes(const ty_draft *draft)
{
    return stream_batch_bytes(draft->impl);
}

static void feed_place(const ty_data_feed *feed, const ty_draft *draft, int field, int64_t row, char *out, size_t n)
{
    const stream_batch *b = draft->impl;
    (void)field;
    if (row < b->n_records)
        stream_place(((const stream_feed *)feed)->opened, &b->record[row], out, n);
}

static void feed_close(ty_data_feed *feed)
{
    stream_feed *f = (stream_feed *)feed;
    for (int64_t i = 0; f->slot && i < f->n_slots; i++)
        free(f->slot[i].bytes);
    if (f->in_epoch || f->opened->stopping)
        stream_end(f->opened);
    f->opened->stopping = f->opened->has_feed = false;
    stream_batch_close(f->ahead);
    stream_batch_close(f->spare);
    free(f->slot);
    free(f->which);
    free(f);
}

static const ty_data_feed_ops stream_feed_ops = {.start = feed_start,
                                                 .open_draft = feed_open_draft,
                                                 .close_draft = feed_close_draft,
                                                 .take = feed_take,
                                                 .fill = feed_fill,
                                                 .skip_epoch = feed_skip_epoch,
                                                 .stop = feed_stop,
                                                 .draft_bytes = feed_draft_bytes,
                                                 .place = feed_place,
                                                 .close = feed_close};

static int feed_check(const stream_opened *s, const ty_stream_order *o, ty_error *err)
{
    if (s->has_feed)
        return ty_error_set(err, TY_E_INTERNAL, "the stream has a feed already");
    if (o->n_rows < 1 || o->n_rows > INT64_C(1) << 32)
        return ty_error_set(err, TY_E_RANGE, "batches of %lld rows, expected 1 or more", (long long)o->n_rows);
    if (o->shard < 0 || o->shard >= o->n_shards)
        return ty_error_set(err, TY_E_RANGE, "shard %lld of %lld does not exist", (long long)o->shard,
                            (long long)o->n_shards);
    if (o->shuffle_rows < 0 || o->shuffle_rows > INT64_C(1) << 32)
        return ty_error_set(err, TY_E_RANGE, "a shuffle buffer of %lld records", (long long)o->shuffle_rows);
    if (o->shard_by == TY_SHARD_FILES && s->is_pipe && o->n_shards > 1) {
        ty_error_set(err, TY_E_CONFIG, "a channel in Pipe mode cannot be divided by files: where they end is not told");
        return ty_error_help(err, "divide it by records");
    }
    for (int i = 0; i < o->n_ranges; i++)
        if (o->range[i].field < 0 || o->range[i].field >= s->stream.n_fields)
            return ty_error_set(err, TY_E_INTERNAL, "no field number %d in the stream", o->range[i].field);
    return 0;
}

static int feed_make(stream_feed *f, ty_error *err)
{
    const ty_stream_order *o = &f->order;
    const stream_opened *s = f->opened;
    bool by_files = o->shard_by == TY_SHARD_FILES, by_rows = o->shard_by == TY_SHARD_ROWS;
    f->n_global = by_rows ? o->n_shards * o->n_rows : o->n_rows;
    f->n_first = by_rows ? o->shard * o->n_rows : 0;
    f->n_slots = o->shuffle_rows;
    f->feed.kept_bytes = s->stream.read_bytes + (f->n_slots ? s->memory_bytes : 0);
    f->mixes = o->augment && s->mixed >= 0;
    f->keeps_all = f->mixes || o->fills;
    f->which = calloc((size_t)s->n_files + 1, sizeof *f->which);
    f->slot = calloc((size_t)f->n_slots + 1, sizeof *f->slot);
    if (!f->which || !f->slot)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a shuffle buffer of %lld records", (long long)f->n_slots);
    for (int i = 0; i < s->n_files; i++)
        if (!by_files || i % o->n_shards == o->shard)
            f->which[f->n_which++] = i;
    return order_open_batch(f, &f->ahead, err) < 0 || order_open_batch(f, &f->spare, err) < 0 ? -1 : 0;
}

int ty_stream_feed(ty_stream *stream, const ty_stream_order *order, ty_data_feed **out, ty_error *err)
{
    stream_opened *s = (stream_opened *)stream;
    ty_stream_order o = *order;
    o.n_shards = o.n_shards ? o.n_shards : 1;
    if (feed_check(s, &o, err) < 0)
        return -1;
    stream_feed *f = calloc(1, sizeof *f);
    if (!f)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the order of a stream");
    f->opened = s;
    f->order = o;
    f->feed = (ty_data_feed){
        .ops = &stream_feed_ops, .n_fields = stream->n_fields, .field = stream->field, .n_rows = o.n_rows};
    s->has_feed = true;
    if (feed_make(f, err) < 0) {
        feed_close(&f->feed);
        return -1;
    }
    *out = &f->feed;
    return 0;
}
