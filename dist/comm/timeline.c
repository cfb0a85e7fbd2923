/* timeline.c - see timeline.h. */
#include "dist/comm/timeline.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EVENT_BYTES = 4096, PATH_BYTES = 4096 };

struct ty_timeline {
    pthread_mutex_t lock;
    FILE *file;
    int rank, n_owners;
    int n_events;   /* of collectives; the names of lanes come beside them */
    bool begun;     /* something was written: the next one needs a comma */
    int64_t day_ns; /* the day's clock less ty_clock_ns */
    uint32_t named; /* streams whose lanes have names */
};

static int64_t day_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- events; the lock is held ---- */

static void event_open(ty_json_writer *w, ty_buf *text, const ty_timeline *t, const char *form, const char *name,
                       int lane)
{
    ty_buf_init(text, EVENT_BYTES);
    ty_json_writer_init(w, text, TY_JSON_COMPACT);
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "ph", form);
    ty_json_put_string(w, "name", name);
    ty_json_put_int(w, "pid", t->rank);
    ty_json_put_int(w, "tid", lane);
}

/* An event that cannot be written whole is left out. */
static void event_close(ty_json_writer *w, ty_buf *text, ty_timeline *t)
{
    ty_json_close(w);
    if (!text->failed)
        fprintf(t->file, "%s\n%s", t->begun ? "," : "", text->data);
    t->begun = t->begun || !text->failed;
    ty_buf_fini(text);
}

static void put_times(ty_json_writer *w, const ty_timeline *t, int64_t start_ns, int64_t end_ns)
{
    ty_json_put_float(w, "ts", (double)((start_ns + t->day_ns) / 100) / 10);
    ty_json_put_float(w, "dur", (double)((end_ns - start_ns) / 100) / 10);
}

static void put_name(ty_timeline *t, const char *what, int lane, const char *name)
{
    ty_json_writer w;
    ty_buf text;
    event_open(&w, &text, t, "M", what, lane);
    ty_json_open_map(&w, "args");
    ty_json_put_string(&w, "name", name);
    ty_json_close(&w);
    event_close(&w, &text, t);
}

static int lane_of(ty_timeline *t, int stream, bool waits)
{
    char name[64];
    uint32_t bit = UINT32_C(1) << (stream & 31);
    if (!(t->named & bit)) {
        snprintf(name, sizeof name, "rank %d", t->rank);
        put_name(t, "process_name", 0, name);
        snprintf(name, sizeof name, "stream %d: carried out", stream);
        put_name(t, "thread_name", 2 * stream, name);
        snprintf(name, sizeof name, "stream %d: waited for", stream);
        put_name(t, "thread_name", 2 * stream + 1, name);
        t->named |= bit;
    }
    return 2 * stream + waits;
}

/* Takes the place of an event. Behind the last one stands that there is no more room. */
static bool take_place(ty_timeline *t)
{
    if (t->n_events > TIMELINE_MAX_EVENTS)
        return false;
    if (t->n_events++ == TIMELINE_MAX_EVENTS) {
        ty_json_writer w;
        ty_buf text;
        event_open(&w, &text, t, "i", "the file is full: later collectives are not here", 0);
        ty_json_put_float(&w, "ts", (double)(day_clock_ns() / 1000));
        event_close(&w, &text, t);
    }
    return t->n_events <= TIMELINE_MAX_EVENTS;
}

void ty_timeline_carried(ty_timeline *t, int stream, const ty_timeline_call *call)
{
    ty_json_writer w;
    ty_buf text;
    if (!t)
        return;
    const char *kind = ty_collective_text(call->what->kind);
    pthread_mutex_lock(&t->lock);
    if (take_place(t)) {
        int lane = lane_of(t, stream, false);
        event_open(&w, &text, t, "X", call->what->name ? call->what->name : kind, lane);
        ty_json_put_string(&w, "cat", kind);
        put_times(&w, t, call->start_ns, call->end_ns);
        ty_json_open_map(&w, "args");
        ty_json_put_int(&w, "bytes", call->bytes);
        ty_json_put_string(&w, "dtype", ty_dtype_text(call->what->dtype));
        ty_json_put_float(&w, "in_line_us", (double)(call->start_ns - call->begun_ns) / 1000);
        ty_json_close(&w);
        event_close(&w, &text, t);
    }
    pthread_mutex_unlock(&t->lock);
}

void ty_timeline_waited(ty_timeline *t, int stream, const char *name, int64_t start_ns, int64_t end_ns)
{
    ty_json_writer w;
    ty_buf text;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    if (take_place(t)) {
        int lane = lane_of(t, stream, true);
        event_open(&w, &text, t, "X", name, lane);
        ty_json_put_string(&w, "cat", "wait");
        put_times(&w, t, start_ns, end_ns);
        event_close(&w, &text, t);
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- life ---- */

int ty_timeline_open(const char *folder, int rank, ty_timeline **out, ty_error *err)
{
    char path[PATH_BYTES];
    if (ty_file_mkdirs(folder, 0755, err) < 0)
        return ty_error_wrap(err, "the timeline of collectives");
    ty_timeline *t = calloc(1, sizeof *t);
    if (!t)
        return ty_error_set(err, TY_E_LIMIT, "no memory for the timeline of collectives");
    snprintf(path, sizeof path, "%s/collectives-rank-%05d.json", folder, rank);
    t->file = fopen(path, "we");
    if (!t->file) {
        int number = errno;
        free(t);
        return ty_error_errno(err, TY_E_NONE, number, "no timeline of collectives: %s", path);
    }
    pthread_mutex_init(&t->lock, NULL);
    t->rank = rank;
    t->n_owners = 1;
    t->day_ns = day_clock_ns() - ty_clock_ns();
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", t->file);
    *out = t;
    return 0;
}

ty_timeline *ty_timeline_share(ty_timeline *t)
{
    if (t) {
        pthread_mutex_lock(&t->lock);
        t->n_owners++;
        pthread_mutex_unlock(&t->lock);
    }
    return t;
}

void ty_timeline_close(ty_timeline *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    bool last = --t->n_owners == 0;
    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    fputs("\n]}\n", t->file);
    fclose(t->file);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
