/* graph.c - captures and graphs of the stand-in driver. See driver.h. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- captures ---- */

void add_to_graph(CUstream stream, work w)
{
    CUgraph g = stream->graph;
    w.stream = stream;
    g->list = realloc(g->list, sizeof *g->list * (size_t)(g->n + 1));
    g->list[g->n++] = w;
}

unsigned cuStreamBeginCapture_v2(CUstream stream, unsigned mode)
{
    if (mode != TY_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        fake_wrong("a capture that forbids other threads what they do");
    no_capture("a capture begins");
    known(stream, "a capture")->graph = calloc(1, sizeof *stream->graph);
    stream->graph->origin = stream;
    return TY_CU_SUCCESS;
}

bool fake_is_captured(CUstream stream)
{
    return known(stream, "a library")->graph != NULL;
}

static void free_graph(CUgraph graph)
{
    for (int i = 0; i < graph->n; i++)
        free(graph->list[i].given);
    free(graph->list);
    free(graph);
}

/* Runs what of stream `s` stands before place `until` and is not done, and what that waits for. */
static void run_part(const struct CUgraph_st *g, bool *done, CUstream s, long until)
{
    for (long i = 0; i < until; i++) {
        const work *w = &g->list[i];
        if (w->stream != s || done[i])
            continue;
        done[i] = true;
        if (w->after)
            run_part(g, done, w->after, w->until);
        else if (w->run)
            w->run(w->given);
    }
}

/* Work that nobody waits for is no part of a capture that a driver takes. */
static bool is_joined(const struct CUgraph_st *g)
{
    struct CUgraph_st dry = {malloc(sizeof *g->list * (size_t)(g->n + 1)), g->n, g->origin, false, NULL};
    bool *done = calloc((size_t)g->n + 1, sizeof *done), joined = true;
    for (int i = 0; i < g->n; i++) {
        dry.list[i] = g->list[i];
        dry.list[i].run = NULL;
    }
    run_part(&dry, done, g->origin, g->n);
    for (int i = 0; i < g->n; i++)
        joined = joined && done[i];
    free(dry.list);
    free(done);
    return joined;
}

unsigned cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = known(stream, "a capture")->graph;
    if (!*graph)
        fake_wrong("a capture ends that did not begin");
    for (CUstream s = now->streams; s; s = s->next)
        if (s->graph == *graph)
            s->graph = NULL;
    if (!is_joined(*graph)) {
        free_graph(*graph);
        *graph = NULL;
        return UNJOINED;
    }
    trace("captured %d\n", (*graph)->n);
    return TY_CU_SUCCESS;
}

/* ---- graphs ---- */

unsigned cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    CUgraph copy = malloc(sizeof *copy);
    const char *order = getenv("TY_FAKE_STREAMS");
    *copy = (struct CUgraph_st){malloc(sizeof *copy->list * (size_t)(graph->n + 1)), graph->n, graph->origin,
                                order && strcmp(order, "ahead") == 0, (CUgraph)now->graphs};
    now->graphs = (CUgraphExec)copy;
    for (int i = 0; i < graph->n; i++) {
        work *w = &copy->list[i];
        *w = graph->list[i];
        if (w->given)
            w->given = memcpy(malloc(w->bytes), w->given, w->bytes);
    }
    *exec = (CUgraphExec)copy;
    return TY_CU_SUCCESS;
}

static void known_graph(CUgraphExec exec, const char *what)
{
    CUgraph g = now ? (CUgraph)now->graphs : NULL;
    while (g && g != (CUgraph)exec)
        g = g->next;
    if (!g)
        fake_wrong("%s: the graph is not there", what);
}

static void run_graph(const void *given)
{
    const struct CUgraph_st *g = *(CUgraph const *)given;
    bool *done = calloc((size_t)g->n + 1, sizeof *done);
    for (int i = 0; i < g->n && g->ahead; i++)
        run_part(g, done, g->list[i].stream, i + 1);
    run_part(g, done, g->origin, g->n);
    free(done);
}

static bool is_to_fail(void)
{
    const char *fail = getenv("TY_FAKE_FAIL");
    int device, count;
    now->n_graphs++;
    return fail && sscanf(fail, "%d,%d", &device, &count) == 2 && device == number_now() && count == now->n_graphs;
}

unsigned cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    char text[NAME_BYTES];
    CUgraph g = (CUgraph)exec;
    no_capture("a graph is started");
    known_graph(exec, "starting");
    if (is_to_fail() || now->broken) {
        now->broken = true;
        return strstr(getenv("TY_FAKE_FAIL"), "later") ? TY_CU_SUCCESS : ILLEGAL_ADDRESS;
    }
    snprintf(text, sizeof text, "graph %d", g->n);
    known(stream, text)->graphs++;
    return do_work(stream, run_graph, &g, sizeof g, text);
}

unsigned cuGraphDestroy(CUgraph graph)
{
    free_graph(graph);
    return TY_CU_SUCCESS;
}

unsigned cuGraphExecDestroy(CUgraphExec exec)
{
    known_graph(exec, "giving back");
    run_all();
    for (CUgraphExec *p = &now->graphs; *p; p = (CUgraphExec *)&((CUgraph)*p)->next)
        if (*p == exec) {
            *p = (CUgraphExec)((CUgraph)exec)->next;
            break;
        }
    free_graph((CUgraph)exec);
    return TY_CU_SUCCESS;
}
