/* read.c - how fast Trainyard reads a file: what bench/input runs beside its peers. One JSON line.
 *
 *     read [OPTIONS] FILE FIELD...    opens the file, then reads epochs of batches; FIELD: NAME[=COLUMNS|MEMBER][:TYPE]
 *                                     or NAME@BINS, hashed into so many, or NAME@, by a vocabulary that it learns, or
 *                                     NAME%RATE, a sound of one channel at that rate
 *         --format F    --batch N (1024)    --epochs N (1)    --shuffle    --threads N (to open with; all)
 *         --keep FOLDER: what opening finds is kept there, and used;    --middle: the first batch is that in the middle
 *         --since NS: the clock (CLOCK_MONOTONIC) when the process was begun, for first_s
 *         --stream: as records that stream by, one epoch
 *         --pipe FOLDER: so, from the FIFO of the channel FILE there;    --pass: records alone, not decoded
 *     read --frames tfrecord|recordio FILE   record by record, with checksums, and nothing else
 *     read --order N                         the permutation of an epoch of N samples
 *
 * open_own_s: of opening, the processor's seconds of the thread that opens, beside those of all threads. first_s: from
 * the start of the process to the first batch. sum: of all numbers of an epoch, for the judge.
 */
#include "base/clock.h"
#include "base/pages.h"
#include "base/rng.h"
#include "container/input/audio/plan.h"
#include "container/input/bytes.h"
#include "container/input/convert.h"
#include "container/input/dataset.h"
#include "container/input/frame.h"
#include "container/input/map/map.h"
#include "container/input/sampler.h"
#include "container/input/stream/stream.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { READ_MAX_FIELDS = 64, READ_MAX_EPOCHS = 64 };

typedef struct read_settings {
    const char *format, *frames, *pipe, *keep;
    long batch, epochs, order, threads;
    int64_t since;
    bool shuffle, stream, pass, middle;
} read_settings;

static double read_since(int64_t start)
{
    return (double)(ty_clock_ns() - start) / 1e9;
}

static double read_cpu_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double read_cpu(void)
{
    return read_cpu_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* Seconds since the process was started: as who started it says, or to a hundredth. */
static double read_age(int64_t since)
{
    if (since)
        return read_since(since);
    char text[1024];
    FILE *f = fopen("/proc/self/stat", "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *p = strrchr(text, ')');
    for (int i = 0; p && i < 20; i++)
        p = strchr(p + 1, ' ');
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return p ? (double)now.tv_sec + (double)now.tv_nsec / 1e9 - atof(p) / (double)sysconf(_SC_CLK_TCK) : 0;
}

static double read_peak_mb(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_maxrss * 1024 / 1e6;
}

static int read_fail(const ty_error *err)
{
    char text[4096];
    ty_error_format(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}

/* ---- pieces ---- */

static int read_frames(const char *how, const char *path)
{
    ty_error err = {0};
    ty_bytes bytes;
    if (ty_bytes_open(path, NULL, &bytes, &err) < 0)
        return read_fail(&err);
    ty_frames frames = {.bytes = bytes.data,
                        .n = bytes.n,
                        .how = strcmp(how, "tfrecord") == 0 ? TY_FRAMES_TFRECORD : TY_FRAMES_RECORDIO};
    double s[3];
    int64_t rows = 0;
    for (int k = 0; k < 3; k++) { /* the first time the pages are mapped */
        double start = read_cpu();
        ty_frame frame;
        int more;
        frames.at = 0;
        for (rows = 0; (more = ty_frames_next(&frames, &frame, &err)) == 1;)
            rows++;
        if (more < 0)
            return read_fail(&err);
        s[k] = read_cpu() - start;
    }
    printf("{\"rows\": %lld, \"bytes\": %zu, \"epoch_s\": [%.6f, %.6f, %.6f], \"peak_mb\": %.1f}\n", (long long)rows,
           bytes.n, s[0], s[1], s[2], read_peak_mb());
    ty_frames_fini(&frames);
    ty_bytes_close(&bytes);
    return 0;
}

static int read_order(int64_t n)
{
    uint32_t *order = ty_pages_new((size_t)n * sizeof *order);
    if (!order)
        return 1;
    memset(order, 0, (size_t)n * sizeof *order);
    double start = read_cpu();
    ty_rng_permutation(7, TY_STREAM_SHUFFLE, 0, n, order);
    printf("{\"rows\": %lld, \"epoch_s\": [%.6f], \"first\": %lld}\n", (long long)n, read_cpu() - start,
           (long long)order[0]);
    ty_pages_free(order, (size_t)n * sizeof *order);
    return 0;
}

/* ---- a data set ---- */

static bool read_transformed(const char *name, const char *bins, ty_arena *a, ty_field *out)
{
    ty_map_spec spec = {.field = name,
                        .scale = 1,
                        .way = *bins ? TY_MAP_HASH : TY_MAP_VOCABULARY,
                        .bins = atoll(bins),
                        .n_oov = !*bins};
    return ty_map_new(&spec, a, &out->map, NULL) == 0;
}

static bool read_sound(const char *rate, ty_arena *a, ty_field *out)
{
    out->audio = TY_NEW(a, ty_audio_plan);
    *out->audio = ty_audio_plan_make();
    out->audio->rate = atoi(rate);
    out->audio->channels = 1;
    return out->audio->rate > 0;
}

static bool read_field(char *text, ty_arena *a, ty_field *out)
{
    char *type = strrchr(text, ':'), *where = NULL, *bins = strchr(text, '@'), *rate = strchr(text, '%');
    if (rate)
        *rate++ = 0;
    if (bins)
        *bins++ = 0;
    *out = ty_field_make(text);
    if (rate)
        return read_sound(rate, a, out);
    if (bins)
        return read_transformed(text, bins, a, out);
    if (type) {
        *type++ = 0;
        out->dtype_given = ty_dtype_parse(type, &out->dtype);
        if (!out->dtype_given)
            return false;
    }
    where = strchr(text, '=');
    if (where) {
        *where++ = 0;
        out->columns = out->member = where;
    }
    return true;
}

typedef struct read_batch {
    void *to[READ_MAX_FIELDS];
    int64_t *samples;
} read_batch;

static int read_room(const ty_dataset *ds, long rows, read_batch *b)
{
    b->samples = malloc((size_t)rows * sizeof *b->samples);
    for (int i = 0; i < ds->n_fields; i++)
        b->to[i] = aligned_alloc(64, ((size_t)rows * ds->field[i].row_bytes + 63) / 64 * 64);
    return b->samples ? 0 : -1;
}

static double read_sum(const ty_dataset *ds, const read_batch *b, int64_t n)
{
    double sum = 0, block[512];
    for (int i = 0; i < ds->n_fields; i++) {
        int64_t elems = n * ty_type_elems(&ds->field[i].type);
        size_t each = ty_dtype_bytes((ty_dtype)ds->field[i].type.dtype);
        for (int64_t at = 0; at < elems; at += 512) {
            int64_t some = elems - at < 512 ? elems - at : 512;
            ty_convert_to_f64((ty_dtype)ds->field[i].type.dtype, (char *)b->to[i] + (size_t)at * each, block, some);
            for (int64_t k = 0; k < some; k++)
                sum += isfinite(block[k]) ? block[k] : 0;
        }
    }
    return sum;
}

/* CPU seconds of one epoch, which hold on a busy machine. The sum takes longer than reading and is no part of them. */
static double read_epoch(const ty_dataset *ds, ty_sampler *sampler, int64_t epoch, read_batch *b, double *sum,
                         ty_error *err)
{
    double spent = 0;
    for (ty_position at = {.epoch = epoch}; at.epoch == epoch; at = ty_sampler_after(sampler, at)) {
        double start = read_cpu();
        int64_t n = ty_sampler_batch(sampler, at, b->samples);
        if (ty_dataset_read_all(ds, &(ty_pick){.sample = b->samples, .n = n}, b->to, err) < 0)
            return -1;
        spent += read_cpu() - start;
        if (sum)
            *sum += read_sum(ds, b, n);
    }
    return spent;
}

static int read_data(const char *path, ty_field *fields, int n_fields, const read_settings *s)
{
    ty_error err = {0};
    ty_data_source src = {.paths = &path, .n_paths = 1, .format = s->format, .fields = fields, .n_fields = n_fields};
    src.n_threads = (int)s->threads;
    src.keep = (ty_keep){.folders = s->keep, .max_bytes = INT64_MAX};
    ty_dataset *ds;
    int64_t start = ty_clock_ns();
    double cpu = read_cpu(), own = read_cpu_of(CLOCK_THREAD_CPUTIME_ID);
    if (ty_dataset_open(&src, &ds, &err) < 0)
        return read_fail(&err);
    double open_s = read_since(start), open_cpu_s = read_cpu() - cpu, sum = 0;
    double open_own_s = read_cpu_of(CLOCK_THREAD_CPUTIME_ID) - own;
    ty_sampler sampler;
    ty_sampler_config config = {.n_samples = ds->n_samples,
                                .batch_size = s->batch,
                                .shuffle = s->shuffle,
                                .seed = 7,
                                .stream = TY_STREAM_SHUFFLE,
                                .tail = TY_TAIL_PAD};
    read_batch b = {0};
    if (ty_sampler_init(&sampler, &config, &err) < 0 || read_room(ds, s->batch, &b) < 0)
        return read_fail(&err);
    int64_t n = ty_sampler_batch(&sampler, (ty_position){.batch = s->middle ? sampler.n_batches / 2 : 0}, b.samples);
    if (ty_dataset_read_all(ds, &(ty_pick){.sample = b.samples, .n = n}, b.to, &err) < 0)
        return read_fail(&err);
    double first_s = read_age(s->since);
    printf("{\"rows\": %lld, \"bytes\": %lld, \"open_s\": %.6f, \"open_cpu_s\": %.6f, \"open_own_s\": %.6f, "
           "\"first_s\": %.6f, \"kept\": %s, \"epoch_s\": [",
           (long long)ds->n_samples, (long long)ds->stats.file_bytes, open_s, open_cpu_s, open_own_s, first_s,
           ds->kept.made_s ? "true" : "false");
    for (long k = 0; k < s->epochs; k++) {
        double took = read_epoch(ds, &sampler, k, &b, k == 0 ? &sum : NULL, &err);
        if (took < 0)
            return read_fail(&err);
        printf("%s%.6f", k ? ", " : "", took);
    }
    printf("], \"sum\": %.9g, \"memory_mb\": %.1f, \"peak_mb\": %.1f}\n", sum, (double)ds->stats.memory_bytes / 1e6,
           read_peak_mb());
    for (int i = 0; i < ds->n_fields; i++)
        free(b.to[i]);
    free(b.samples);
    ty_sampler_fini(&sampler);
    ty_dataset_close(ds);
    return 0;
}

/* ---- a stream: framed, checked and decoded in one pass, by one thread ---- */

static int read_stream(const char *path, ty_field *fields, int n_fields, const read_settings *s)
{
    ty_error err = {0};
    ty_stream_config config = {
        .paths = &path, .n_paths = s->pipe ? 0 : 1, .format = s->format, .fields = fields, .n_fields = n_fields};
    if (s->pipe)
        config.channel = path;
    config.input_folder = config.state_folder = s->pipe;
    ty_stream_order order = {.n_rows = s->batch, .tail = TY_TAIL_PAD};
    ty_stream *stream;
    ty_data_feed *feed;
    read_batch b = {0};
    ty_draft draft = {0};
    double cpu = read_cpu(), first_s = 0;
    int64_t rows = 0, start = ty_clock_ns();
    if (ty_stream_open(&config, &stream, &err) < 0 || ty_stream_feed(stream, &order, &feed, &err) < 0)
        return read_fail(&err);
    b.samples = draft.samples = calloc((size_t)s->batch, sizeof *draft.samples);
    for (int i = 0; i < n_fields; i++)
        b.to[i] = aligned_alloc(64, ((size_t)s->batch * feed->field[i].row_bytes + 63) / 64 * 64);
    int more = feed->ops->start(feed, (ty_position){0}, 1, &err);
    if (more < 0 || (feed->ops->open_draft && feed->ops->open_draft(feed, &draft, &err) < 0))
        return read_fail(&err);
    while ((more = feed->ops->take(feed, &draft, &err)) == 1) {
        if (!s->pass && feed->ops->fill(feed, &draft, b.to, &err) < 0)
            return read_fail(&err);
        first_s = rows == 0 ? read_age(s->since) : first_s;
        rows += draft.n_valid;
    }
    if (more < 0)
        return read_fail(&err);
    printf("{\"rows\": %lld, \"bytes\": %lld, \"first_s\": %.3f, \"epoch_s\": [%.6f], \"wall_s\": %.6f, \"peak_mb\": "
           "%.1f}\n",
           (long long)rows, (long long)stream->file_bytes, first_s, read_cpu() - cpu, read_since(start),
           read_peak_mb());
    if (feed->ops->close_draft)
        feed->ops->close_draft(feed, &draft);
    ty_data_feed_close(feed);
    ty_stream_close(stream);
    for (int i = 0; i < n_fields; i++)
        free(b.to[i]);
    free(b.samples);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"format", 1, NULL, 'f'}, {"batch", 1, NULL, 'b'},
                                            {"epochs", 1, NULL, 'e'}, {"shuffle", 0, NULL, 's'},
                                            {"stream", 0, NULL, 'm'}, {"frames", 1, NULL, 'r'},
                                            {"order", 1, NULL, 'o'},  {"threads", 1, NULL, 't'},
                                            {"pipe", 1, NULL, 'p'},   {"pass", 0, NULL, 'x'},
                                            {"keep", 1, NULL, 'k'},   {"middle", 0, NULL, 'i'},
                                            {"since", 1, NULL, 'n'},  {0}};
    read_settings s = {.batch = 1024, .epochs = 1};
    ty_field fields[READ_MAX_FIELDS];
    ty_arena arena;
    int c, n_fields = 0;
    ty_arena_init(&arena);
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        s.format = c == 'f' ? optarg : s.format;
        s.frames = c == 'r' ? optarg : s.frames;
        s.batch = c == 'b' ? atol(optarg) : s.batch;
        s.epochs = c == 'e' ? atol(optarg) : s.epochs;
        s.order = c == 'o' ? atol(optarg) : s.order;
        s.threads = c == 't' ? atol(optarg) : s.threads;
        s.shuffle = s.shuffle || c == 's';
        s.pipe = c == 'p' ? optarg : s.pipe;
        s.stream = s.stream || c == 'm' || c == 'p';
        s.pass = s.pass || c == 'x';
        s.keep = c == 'k' ? optarg : s.keep;
        s.middle = s.middle || c == 'i';
        s.since = c == 'n' ? atoll(optarg) : s.since;
        if (c == '?')
            return 2;
    }
    if (s.order > 0)
        return read_order(s.order);
    if (optind == argc)
        return 2;
    const char *path = argv[optind++];
    if (s.frames)
        return read_frames(s.frames, path);
    while (optind < argc && n_fields < READ_MAX_FIELDS)
        if (!read_field(argv[optind++], &arena, &fields[n_fields++]))
            return 2;
    c = s.stream ? read_stream(path, fields, n_fields, &s) : read_data(path, fields, n_fields, &s);
    ty_arena_fini(&arena);
    return c;
}
