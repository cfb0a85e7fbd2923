/* stream.c - streams and events of the stand-in driver. See driver.h. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- work ---- */

void run_until(CUstream s, long until)
{
    while (s->done < until) {
        work w = s->list[0];
        memmove(s->list, s->list + 1, sizeof *s->list * (size_t)--s->n_pending);
        s->done++;
        if (w.after)
            run_until(w.after, w.until);
        else if (w.run)
            w.run(w.given);
        free(w.given);
    }
}

void run_all(void)
{
    for (CUstream s = now->streams; s; s = s->next)
        run_until(s, s->issued);
}

CUstream known(CUstream stream, const char *what)
{
    for (CUstream s = now ? now->streams : NULL; s; s = s->next)
        if (s == stream)
            return s;
    fake_wrong("%s on a stream that is not there", what);
    return NULL;
}

static bool runs_ahead(CUstream s)
{
    const char *order = getenv("TY_FAKE_STREAMS");
    return !s->first && order && strcmp(order, "ahead") == 0;
}

void issue(CUstream s, work w)
{
    s->list = realloc(s->list, sizeof *s->list * (size_t)(s->n_pending + 1));
    s->list[s->n_pending++] = w;
    s->issued++;
    if (runs_ahead(s))
        run_until(s, s->issued);
}

unsigned do_work(CUstream stream, fake_work_fn *run, const void *given, size_t bytes, const char *text)
{
    work w = {.run = runs_nothing() ? NULL : run, .given = memcpy(malloc(bytes), given, bytes), .bytes = bytes};
    snprintf(w.text, sizeof w.text, "%s", text);
    if (known(stream, text)->graph) {
        trace("capturing %s @%d\n", text, stream->number);
        add_to_graph(stream, w);
        return TY_CU_SUCCESS;
    }
    trace("%s @%d\n", text, stream->number);
    issue(stream, w);
    return TY_CU_SUCCESS;
}

/* ---- code of libraries ---- */

enum { MAX_LOADED = 4096 };

/* Loads what a call of a library needs when it first runs on a device, which a driver may refuse while it captures. */
static void load(CUstream stream, const char *text)
{
    static char loaded[MAX_LOADED][NAME_BYTES + 8];
    static int n;
    char name[NAME_BYTES + 8];
    const char *held = getenv("TY_FAKE_HELD");
    bool found = false;
    snprintf(name, sizeof name, "%d %.*s", number_now(), NAME_BYTES - 1, text);
    pthread_mutex_lock(&shared);
    for (int i = 0; i < n && !found; i++)
        found = strcmp(loaded[i], name) == 0;
    if (!found && n < MAX_LOADED)
        memcpy(loaded[n++], name, sizeof name);
    if (!found && held && !now->has_code)
        now->held_bytes += strtoull(held, NULL, 10);
    now->has_code |= !found;
    pthread_mutex_unlock(&shared);
    if (!found && stream->graph)
        fake_wrong("code of a library is loaded while a step is captured: %s", text);
}

void fake_hold(size_t bytes)
{
    pthread_mutex_lock(&shared);
    now->held_bytes += bytes;
    pthread_mutex_unlock(&shared);
}

unsigned fake_do(CUstream stream, fake_work_fn *run, const void *given, size_t bytes, const char *text)
{
    load(known(stream, text), text);
    return do_work(stream, run, given, bytes, text);
}

/* ---- streams ---- */

unsigned cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    no_capture("a stream is made");
    CUstream s = calloc(1, sizeof *s);
    s->first = !now->streams;
    s->number = now->n_streams++;
    s->next = now->streams;
    now->streams = s;
    *stream = s;
    return TY_CU_SUCCESS;
}

unsigned cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return TY_CU_SUCCESS;
}

unsigned cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    return priority > 0 || priority < -5 ? 1 : cuStreamCreate(stream, flags);
}

unsigned cuStreamDestroy_v2(CUstream stream)
{
    known(stream, "giving back");
    run_all();
    for (CUstream *p = &now->streams; *p; p = &(*p)->next)
        if (*p == stream) {
            *p = stream->next;
            break;
        }
    free(stream->list);
    free(stream);
    return TY_CU_SUCCESS;
}

unsigned cuStreamSynchronize(CUstream stream)
{
    no_capture("the stream is waited for");
    trace("wait @%d\n", known(stream, "waiting")->number);
    run_until(known(stream, "waiting"), stream->issued);
    return now->broken ? ILLEGAL_ADDRESS : TY_CU_SUCCESS;
}

/* ---- events ---- */

unsigned cuEventCreate(CUevent *event, unsigned flags)
{
    no_capture("an event is made");
    *event = calloc(1, sizeof **event);
    (*event)->timed = !(flags & TY_CU_EVENT_DISABLE_TIMING);
    (*event)->number = now->n_events++;
    (*event)->next = now->events;
    now->events = *event;
    return TY_CU_SUCCESS;
}

/* Ends the process if the event is none of this context. */
static void known_event(CUevent event, const char *what)
{
    CUevent e = now ? now->events : NULL;
    while (e && e != event)
        e = e->next;
    if (!e)
        fake_wrong("%s: the event is not there", what);
}

/* An event of a capture is a place in a graph and nothing that happens. */
static void no_place_in_graph(CUevent event, const char *what)
{
    known_event(event, what);
    if (event->graph)
        fake_wrong("%s: the event was recorded in a capture", what);
}

unsigned cuEventDestroy_v2(CUevent event)
{
    known_event(event, "giving back");
    for (CUevent *p = &now->events; *p; p = &(*p)->next)
        if (*p == event) {
            *p = event->next;
            break;
        }
    free(event);
    return TY_CU_SUCCESS;
}

/* When the stream has come to it. */
static void stamp(const void *given)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    (*(CUevent const *)given)->stamp_ns = t.tv_sec * 1000000000l + t.tv_nsec;
}

unsigned cuEventRecord(CUevent event, CUstream stream)
{
    known(stream, "an event is recorded");
    known_event(event, "recording");
    event->stream = stream;
    event->until = stream->graph ? stream->graph->n : stream->issued;
    event->graphs = stream->graphs;
    event->ms = stream->ms;
    event->graph = stream->graph;
    event->stamp_ns = 0;
    trace("%srecord e%d @%d\n", stream->graph ? "capturing " : "", event->number, stream->number);
    if (!stream->graph && event->timed) {
        issue(stream, (work){.run = stamp, .given = memcpy(malloc(sizeof event), &event, sizeof event)});
        event->until = stream->issued; /* who waits for it waits for its clock */
    }
    return TY_CU_SUCCESS;
}

unsigned cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    no_place_in_graph(from, "a clock is read");
    no_place_in_graph(to, "a clock is read");
    if (!from->timed || !to->timed || !from->stamp_ns || !to->stamp_ns)
        fake_wrong("a clock is read that has not run");
    *ms = (float)(to->stamp_ns - from->stamp_ns) * 1e-6f;
    if (to->ms > from->ms) /* work has said what it takes: no clock of a busy machine */
        *ms = (float)(to->ms - from->ms);
    return TY_CU_SUCCESS;
}

void fake_take(CUstream stream, double ms)
{
    known(stream, "work")->ms += ms;
}

/* With how many graphs were started behind what is waited for. */
unsigned cuEventSynchronize(CUevent event)
{
    no_capture("an event is waited for");
    no_place_in_graph(event, "waiting");
    trace("await %ld e%d\n", event->stream ? event->stream->graphs - event->graphs : 0, event->number);
    if (event->stream)
        run_until(event->stream, event->until);
    return now->broken ? ILLEGAL_ADDRESS : TY_CU_SUCCESS;
}

/* The graph that this context captures, or NULL. */
static CUgraph capture_now(void)
{
    CUstream s = now->streams;
    while (s && !s->graph)
        s = s->next;
    return s ? s->graph : NULL;
}

/* An event of a capture takes the stream that waits for it into the capture. */
unsigned cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)flags;
    known(stream, "waiting for an event");
    if (event->graph && event->graph != capture_now())
        fake_wrong("waiting for an event of a capture that is over");
    if (!event->graph && stream->graph)
        return ISOLATION;
    if (event->graph) {
        stream->graph = event->graph;
        trace("capturing after e%d @%d\n", event->number, stream->number);
        add_to_graph(stream, (work){.after = event->stream, .until = event->until, .text = "after"});
        return TY_CU_SUCCESS;
    }
    trace("after e%d @%d\n", event->number, stream->number);
    if (event->stream)
        issue(stream, (work){.after = event->stream, .until = event->until, .text = "after"});
    return TY_CU_SUCCESS;
}
