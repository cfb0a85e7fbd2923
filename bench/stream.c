/* stream.c - how fast records stream: frames found in files and FIFOs, and the whole way to batches.
 *
 *     stream [MB (512)] [BYTES (317)]    TFRecords of so many bytes, the size of a DeepFM row by default
 *
 * One line a way. `GB/s` is by the clock, with as many cores as there are threads; `a core` is by the time of the
 * thread that finds the frames, which is what a machine that has other work would give it alone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#endif
#include "base/clock.h"
#include "base/hash.h"
#include "container/input/frame.h"
#include "container/input/prefetch.h"
#include "container/input/stream/cursor.h"
#include "container/input/stream/stream.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FEED_BYTES = 1 << 20, PIPE_BYTES = 1 << 20 };

typedef struct data {
    uint8_t *bytes;
    size_t n;
    int64_t n_records;
    char folder[64], file[96], fifo[96];
} data;

/* Of all threads, those that have ended too. */
static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what, const ty_error *err)
{
    fprintf(stderr, "stream: %s: %s\n", what, err ? err->message : strerror(1));
    exit(1);
}

static void put_frame(uint8_t *to, const uint8_t *payload, uint64_t n)
{
    uint32_t head, tail = ty_crc32c_mask(ty_crc32c(0, payload, n));
    memcpy(to, &n, 8);
    head = ty_crc32c_mask(ty_crc32c(0, to, 8));
    memcpy(to + 8, &head, 4);
    memcpy(to + 12, payload, n);
    memcpy(to + 12 + n, &tail, 4);
}

/* An Example with one list of floats, "x", of as many as make the record so long. */
static size_t make_example(uint8_t *out, size_t wanted, uint32_t seed)
{
    size_t n_floats = wanted > 40 ? (wanted - 24) / 4 : 1, list = 4 * n_floats, at = 0;
    uint8_t body[1 << 16];
    size_t n = 0;
#define VARINT(to, at, v)                                \
    for (size_t w = (v);; w >>= 7) {                     \
        (to)[(at)++] = (uint8_t)(w > 127 ? w | 128 : w); \
        if (w < 128)                                     \
            break;                                       \
    }
    size_t l1 = 1 + (list > 127 ? 2 : 1) + list, l2 = 1 + (l1 > 127 ? 2 : 1) + l1,
           entry = 3 + 1 + (l2 > 127 ? 2 : 1) + l2;
    body[n++] = 0x0a;
    VARINT(body, n, entry)
    body[n++] = 0x0a, body[n++] = 1, body[n++] = 'x', body[n++] = 0x12;
    VARINT(body, n, l2)
    body[n++] = 0x12;
    VARINT(body, n, l1)
    body[n++] = 0x0a;
    VARINT(body, n, list)
    for (size_t i = 0; i < n_floats; i++) {
        float v = (float)((seed + i) % 1000);
        memcpy(body + n, &v, 4);
        n += 4;
    }
    out[at++] = 0x0a;
    VARINT(out, at, n)
    memcpy(out + at, body, n);
    return at + n;
}

static void make_data(data *d, size_t bytes, size_t each)
{
    static uint8_t example[1 << 16];
    d->bytes = malloc(bytes);
    if (!d->bytes)
        fail("no memory", NULL);
    for (uint32_t i = 0;; i++) {
        size_t n = make_example(example, each, i);
        if (d->n + n + 16 > bytes)
            break;
        put_frame(d->bytes + d->n, example, n);
        d->n += n + 16;
        d->n_records++;
    }
    strcpy(d->folder, "/tmp/ty-stream-XXXXXX");
    if (!mkdtemp(d->folder))
        fail("no folder", NULL);
    snprintf(d->file, sizeof d->file, "%s/data.tfrecord", d->folder);
    snprintf(d->fifo, sizeof d->fifo, "%s/train_0", d->folder);
    FILE *f = fopen(d->file, "wb");
    if (!f || fwrite(d->bytes, 1, d->n, f) != d->n || fclose(f) != 0 || mkfifo(d->fifo, 0600) < 0)
        fail("cannot write", NULL);
}

static void tell(const char *what, const data *d, int64_t n_records, double wall_s, double core_s)
{
    if (n_records != d->n_records)
        fail("records are missing", NULL);
    double gb = (double)d->n / 1e9;
    printf("%-34s %6.2f GB/s %6.2f M records/s", what, gb / wall_s, (double)n_records / wall_s / 1e6);
    printf("   %6.2f GB/s a core\n", gb / core_s);
    fflush(stdout);
}

static void frames(const data *d, bool unchecked, const char *what)
{
    ty_frames f = {.bytes = d->bytes, .n = d->n, .how = TY_FRAMES_TFRECORD, .unchecked = unchecked};
    ty_frame record;
    ty_error err = {0};
    int more;
    int64_t n = 0, start = ty_clock_ns();
    double core = cpu_s();
    while ((more = ty_frames_next(&f, &record, &err)) == 1)
        n++;
    if (more < 0)
        fail(what, &err);
    tell(what, d, n, (double)(ty_clock_ns() - start) / 1e9, cpu_s() - core);
}

static void *feed(void *arg)
{
    const data *d = arg;
    int fd = open(d->fifo, O_WRONLY);
    (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
    for (size_t at = 0; at < d->n;) {
        ssize_t n = write(fd, d->bytes + at, d->n - at < FEED_BYTES ? d->n - at : FEED_BYTES);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    close(fd);
    return NULL;
}

static void blocks(data *d, bool from_fifo, const char *what)
{
    static const int first = 0;
    ty_data_file file = {d->file, "data.tfrecord", (int64_t)d->n};
    ty_source_config config = {
        .files = &file, .which = &first, .n_files = 1, .timeout_ms = 60000, .block_bytes = TY_BLOCK_BYTES};
    ty_source *source;
    ty_cursor cursor = {.how = TY_FRAMES_TFRECORD};
    ty_cursor_record record;
    ty_error err = {0};
    pthread_t feeder;
    config.fifo = from_fifo ? d->fifo : NULL;
    if (from_fifo)
        pthread_create(&feeder, NULL, feed, d);
    int64_t n = 0, start = ty_clock_ns();
    double core = cpu_s();
    if (ty_source_open(&config, &source, &err) < 0)
        fail(what, &err);
    ty_cursor_start(&cursor, source);
    int more;
    while ((more = ty_cursor_next(&cursor, &record, &err)) == 1)
        n++;
    if (more < 0)
        fail(what, &err);
    tell(what, d, n, (double)(ty_clock_ns() - start) / 1e9, cpu_s() - core);
    ty_cursor_end(&cursor);
    if (from_fifo)
        pthread_join(feeder, NULL);
}

static void batches(data *d, bool from_fifo, int64_t shuffle_rows, int n_workers, const char *what)
{
    const char *paths[1] = {d->file};
    ty_field field = ty_field_make("x");
    ty_stream_config config = {.format = "tfrecord", .fields = &field, .n_fields = 1};
    ty_stream_order order = {.n_rows = 1024, .tail = TY_TAIL_PAD, .shuffle_rows = shuffle_rows, .seed = 1};
    ty_stream *s;
    ty_data_feed *f;
    ty_prefetch *p;
    const ty_batch *b;
    ty_error err = {0};
    pthread_t feeder;
    if (from_fifo) {
        config.channel = "train";
        config.input_folder = config.state_folder = d->folder;
        pthread_create(&feeder, NULL, feed, d);
    } else {
        config.paths = paths;
        config.n_paths = 1;
    }
    int64_t start = ty_clock_ns(), n = 0;
    double core = cpu_s();
    if (ty_stream_open(&config, &s, &err) < 0 || ty_stream_feed(s, &order, &f, &err) < 0)
        fail(what, &err);
    ty_prefetch_config c = {.feed = f, .until_epoch = 1, .n_workers = n_workers};
    if (ty_prefetch_start(&c, &p, &err) < 0)
        fail(what, &err);
    while (ty_prefetch_next(p, &b, &err) == 0 && b) {
        n += b->n_valid;
        ty_prefetch_release(p, b);
    }
    if (err.code)
        fail(what, &err);
    tell(what, d, n, (double)(ty_clock_ns() - start) / 1e9, cpu_s() - core);
    ty_prefetch_stop(p);
    ty_data_feed_close(f);
    ty_stream_close(s);
    if (from_fifo)
        pthread_join(feeder, NULL);
}

static void tidy(const data *d)
{
    static const char *const names[] = {"data.tfrecord", "train_0", ".train-pipe_mode-state", ".train-pipe_mode-lock",
                                        ".train-pipe_mode-reader"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", d->folder, names[i]);
        unlink(path);
    }
    rmdir(d->folder);
}

int main(int argc, char **argv)
{
    data d = {0};
    long mb = argc > 1 ? atol(argv[1]) : 512, each = argc > 2 ? atol(argv[2]) : 317;
    if (mb < 1 || mb > 65536 || each < 40 || each > 60000) {
        fprintf(stderr, "usage: stream [MB] [BYTES from 40 to 60000]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    make_data(&d, (size_t)mb << 20, (size_t)each);
    printf("%lld records of %ld bytes\n", (long long)d.n_records, (long)(d.n / (size_t)d.n_records));
    frames(&d, false, "frames and checksums, memory");
    frames(&d, true, "frames alone, memory");
    blocks(&d, false, "frames, file in blocks");
    blocks(&d, true, "frames, FIFO");
    batches(&d, false, 0, 1, "batches, file, 1 worker");
    batches(&d, false, 0, 2, "batches, file, 2 workers");
    batches(&d, false, 10000, 1, "batches, file, shuffled, 1 worker");
    batches(&d, true, 0, 1, "batches, FIFO, 1 worker");
    tidy(&d);
    free(d.bytes);
    return 0;
}
