/* Records that stream by. The first byte chooses format and framing, the second the sizes of blocks and buffer; the
 * rest is the file, which lies in memory only. What is read twice must be the same. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "container/input/stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 3, MOST = 40, ROW_BYTES = 1 << 16 };

static uint64_t take_all(ty_stream *s, const ty_stream_order *order)
{
    ty_data_feed *feed;
    ty_error err = {0};
    ty_draft draft = {0};
    int64_t samples[ROWS];
    uint64_t sum = 0;
    void *out[3];
    if (ty_stream_feed(s, order, &feed, &err) < 0)
        return 1;
    for (int i = 0; i < 3; i++)
        out[i] = calloc(ROWS, s->field[i].row_bytes + 1);
    draft.samples = samples;
    bool is_right = (!feed->ops->open_draft || feed->ops->open_draft(feed, &draft, &err) == 0) &&
                    feed->ops->start(feed, (ty_position){0, 0}, 2, &err) == 0;
    for (int n = 0; is_right && n < MOST && feed->ops->take(feed, &draft, &err) == 1; n++) {
        if (feed->ops->fill(feed, &draft, out, &err) < 0)
            break;
        if (draft.n_valid < 0 || draft.n_valid > ROWS)
            abort();
        for (int i = 0; i < 3; i++)
            for (size_t k = 0; k < ROWS * s->field[i].row_bytes; k++)
                sum = sum * 31 + ((uint8_t *)out[i])[k];
        sum += draft.ends_epoch;
    }
    for (int i = 0; i < 3; i++)
        free(out[i]);
    if (feed->ops->close_draft)
        feed->ops->close_draft(feed, &draft);
    ty_data_feed_close(feed);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {"tfrecord", "recordio", "libsvm", "jsonlines", "csv"};
    static const char *const names[][3] = {{"label", "ids", "values"},
                                           {"label", "features", "values"},
                                           {"label", "ids", "values"},
                                           {"label", "ids", "values"},
                                           {"a", "b", "c"}};
    static const char *const columns[] = {"0", "1-2", "-1"};
    if (size < 2)
        return 0;
    int how = data[0] % 5;
    ty_field f[3];
    for (int i = 0; i < 3; i++) {
        f[i] = ty_field_make(names[how][i]);
        f[i].columns = how == 4 ? columns[i] : NULL;
        f[i].max_length = data[0] & 8 ? 4 : 0;
        f[i].missing_given = data[0] & 16;
    }
    int fd = memfd_create("fuzz", 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data + 2, size - 2) != (ssize_t)(size - 2))
        abort();
    const char *paths[] = {path};
    ty_stream_config c = {.paths = paths,
                          .n_paths = 1,
                          .format = formats[how],
                          .fields = f,
                          .n_fields = 3,
                          .skip_bad = data[0] & 32,
                          .wrapped = data[0] & 64,
                          .lenient = data[0] & 128,
                          .block_bytes = 64 + data[1],
                          .memory_bytes = 1 << 16};
    ty_stream_order order = {.n_rows = ROWS, .tail = TY_TAIL_PAD, .shuffle_rows = data[1] % 8, .seed = 3};
    ty_stream *s;
    ty_error err = {0};
    if (ty_stream_open(&c, &s, &err) == 0) {
        bool is_small = true;
        for (int i = 0; i < 3; i++)
            is_small = is_small && s->field[i].row_bytes < ROW_BYTES;
        if (is_small && take_all(s, &order) != take_all(s, &order))
            abort();
        ty_stream_close(s);
    } else if (!err.message[0]) {
        abort();
    }
    close(fd);
    return 0;
}
