/* cudnn_engine.c - see cudnn_engine.h. */
#include "compiler/target/cuda/cudnn_engine.h"

#include "compiler/ops/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ENGINES = 16, /* looked at */
    TIMED = 6,    /* of those that will do */
    NOTES = TY_CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
    KNOBS = 32,
    NAME_BYTES = sizeof((ty_cudnn_planned *)0)->engine
};

int ty_cudnn_execute(const void *run, ty_error *err)
{
    const ty_cudnn_run *r = run;
    unsigned status = r->lib->cudnnBackendExecute(r->handle, r->plan, r->pack);
    if (status == 0)
        return 0;
    bool refused = r->follows && status < TY_CUDNN_STATUS_EXECUTION_FAILED;
    return ty_error_set(err, refused ? TY_E_NO_FUSION : TY_E_LIBRARY, "cuDNN: convolving by %s: %s", r->of.engine,
                        r->lib->cudnnGetErrorString(status));
}

/* ---- what an engine is ---- */

typedef struct proposed {
    ty_cudnn_maker *m;
    const ty_cuda_libraries *libraries;
    const ty_cudnn_conv *conv;
    ty_cudnn_run *run;
    int n, n_proposed;
    int64_t bytes[ENGINES]; /* of workspace, where there is a plan */
    cudnnBackendDescriptor_t config[ENGINES], plan[ENGINES];
    char name[ENGINES][NAME_BYTES]; /* zeros behind it: compared as bytes */
} proposed;

/* What does not give the same bits in every run, or the precision that was asked for. Parts of a sum meet in float32,
 * as those of products do. */
static bool note_will_do(const proposed *p, unsigned note)
{
    switch (note) {
    case TY_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    case TY_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case TY_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return false;
    case TY_CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return p->conv->dtype != TY_F32 || p->libraries->tf32;
    default:
        return true;
    }
}

static bool engine_will_do(const proposed *p, cudnnBackendDescriptor_t engine)
{
    unsigned note[NOTES];
    int64_t n = 0;
    if (p->m->lib->cudnnBackendGetAttribute(engine, TY_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, TY_CUDNN_TYPE_NUMERICAL_NOTE,
                                            NOTES, &n, note) != 0)
        return false;
    for (int64_t i = 0; i < n && i < NOTES; i++)
        if (!note_will_do(p, note[i]))
            return false;
    return true;
}

static bool print_knobs(ty_cudnn_maker *m, cudnnBackendDescriptor_t config, ty_buf *out)
{
    cudnnBackendDescriptor_t knob[KNOBS];
    int64_t n = 0, one;
    for (int i = 0; i < KNOBS; i++)
        knob[i] = ty_cudnn_new(m, TY_CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    if (m->status != 0 || m->lib->cudnnBackendGetAttribute(config, TY_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                           TY_CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, &n, knob) != 0)
        return false;
    for (int64_t i = 0; i < n && i < KNOBS; i++) {
        uint32_t kind = 0;
        int64_t value = 0;
        if (m->lib->cudnnBackendGetAttribute(knob[i], TY_CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, TY_CUDNN_TYPE_KNOB_TYPE, 1,
                                             &one, &kind) != 0 ||
            m->lib->cudnnBackendGetAttribute(knob[i], TY_CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, TY_CUDNN_TYPE_INT64, 1,
                                             &one, &value) != 0)
            return false;
        ty_buf_addf(out, " %u=%" PRId64, kind, value);
    }
    return n <= KNOBS;
}

/* Its number and its knobs: the same text is the same kernel. Where cuDNN does not tell, its place among the proposed.
 */
static void print_name(ty_cudnn_maker *m, cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t engine, int place,
                       char *out)
{
    ty_buf text;
    int64_t number = 0, n = 0;
    ty_buf_init(&text, NAME_BYTES);
    bool told = m->lib->cudnnBackendGetAttribute(engine, TY_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, TY_CUDNN_TYPE_INT64, 1, &n,
                                                 &number) == 0;
    ty_buf_addf(&text, "engine %" PRId64, number);
    told = told && print_knobs(m, config, &text);
    memset(out, 0, NAME_BYTES);
    if (told && !text.failed && text.len < NAME_BYTES)
        memcpy(out, text.data, text.len);
    else
        snprintf(out, NAME_BYTES, "number %d", place);
    ty_buf_fini(&text);
}

/* Keeps the configuration if its engine will do; what is needed to look at it is given back. */
static void look_at(proposed *p, cudnnBackendDescriptor_t config)
{
    int64_t n = 0;
    ty_cudnn_maker looking = {.lib = p->m->lib};
    cudnnBackendDescriptor_t engine = ty_cudnn_new(&looking, TY_CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (engine &&
        looking.lib->cudnnBackendGetAttribute(config, TY_CUDNN_ATTR_ENGINECFG_ENGINE, TY_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              1, &n, &engine) == 0 &&
        engine_will_do(p, engine)) {
        print_name(&looking, config, engine, p->n, p->name[p->n]);
        p->config[p->n++] = config;
    }
    ty_cudnn_release(&looking);
}

/* What cuDNN proposes in one mode. */
static void propose(proposed *p, cudnnBackendDescriptor_t graph, unsigned mode)
{
    cudnnBackendDescriptor_t config[ENGINES];
    ty_cudnn_maker *m = p->m;
    int64_t n = 0;
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    ty_cudnn_link(m, d, TY_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    ty_cudnn_set(m, d, TY_CUDNN_ATTR_ENGINEHEUR_MODE, TY_CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (m->gpu)
        ty_cudnn_link(m, d, TY_CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, m->gpu);
    if (m->status != 0 || m->lib->cudnnBackendFinalize(d) != 0)
        return;
    for (int i = 0; i < ENGINES; i++)
        config[i] = ty_cudnn_new(m, TY_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (m->status != 0 || m->lib->cudnnBackendGetAttribute(d, TY_CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                           TY_CUDNN_TYPE_BACKEND_DESCRIPTOR, ENGINES, &n, config) != 0)
        return;
    p->n_proposed = n < ENGINES ? (int)n : ENGINES;
    for (int i = 0; i < p->n_proposed; i++)
        look_at(p, config[i]);
}

/* ---- plans ---- */

/* A plan of the configuration, or NULL if cuDNN makes none here or it takes too much memory: that is no fault. */
static cudnnBackendDescriptor_t make_plan(const proposed *p, cudnnBackendDescriptor_t config, int64_t *bytes)
{
    ty_cudnn_maker *m = p->m;
    int64_t n = 0;
    cudnnBackendDescriptor_t d = ty_cudnn_new(m, TY_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (m->gpu)
        ty_cudnn_link(m, d, TY_CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, m->gpu);
    else
        ty_cudnn_set(m, d, TY_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, TY_CUDNN_TYPE_HANDLE, 1, &p->run->handle);
    ty_cudnn_link(m, d, TY_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (m->status == 0 && m->lib->cudnnBackendFinalize(d) == 0 &&
        m->lib->cudnnBackendGetAttribute(d, TY_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, TY_CUDNN_TYPE_INT64, 1, &n,
                                         bytes) == 0 &&
        *bytes <= (int64_t)ty_cudnn_conv_workspace(p->conv))
        return d;
    ty_cudnn_drop(m, d);
    return NULL;
}

static bool plan_engine(proposed *p, int i)
{
    if (!p->plan[i])
        p->plan[i] = make_plan(p, p->config[i], &p->bytes[i]);
    return p->plan[i] != NULL;
}

/* Planning may compile code, so it counts against the time for choosing. */
static int time_engine(void *ctx, int candidate, double *ms, ty_error *err)
{
    proposed *p = ctx;
    if (!plan_engine(p, candidate))
        return ty_error_set(err, TY_E_LIBRARY, "cuDNN: no plan of %s", p->name[candidate]);
    p->run->plan = p->plan[candidate];
    const ty_cuda_library_call call = {.run = ty_cudnn_execute, .prepared = p->run};
    return ty_cuda_library_time(p->libraries->gpu, &call, ms, err);
}

/* All that decides how quick an engine is, alignment included. */
static void print_convolution(const proposed *p, const ty_cudnn_places *at, unsigned mode, ty_buf *out)
{
    ty_buf_addf(out, "cudnn %zu %s mode %u ", p->m->lib->cudnnGetVersion(), ty_op_row_of(p->conv->op)->text, mode);
    ty_cudnn_print(p->conv, out);
    ty_buf_addf(out, " workspace %zu%s aligned", ty_cudnn_conv_workspace(p->conv), p->libraries->tf32 ? " tf32" : "");
    const CUdeviceptr place[] = {at->x, at->w, at->y, at->bias, at->z};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++)
        ty_buf_addf(out, " %" PRId64, place[i] ? ty_cudnn_alignment(place[i]) : 0);
}

static int choose(proposed *p, ty_cuda_tuner *tuner, const ty_cudnn_places *at, unsigned mode)
{
    ty_buf what;
    const ty_cuda_candidates candidates = {
        .n = p->n < TIMED ? p->n : TIMED, .identity = p->name, .bytes = NAME_BYTES, .time = time_engine, .ctx = p};
    ty_buf_init(&what, 4096);
    print_convolution(p, at, mode, &what);
    int choice = what.failed || p->m->gpu ? 0 : ty_cuda_tune(tuner, what.data, &candidates);
    ty_buf_fini(&what);
    return choice;
}

/* Takes the choice, or what can be planned in its place: false if nothing can. Other plans are given back. */
static bool take(proposed *p, int choice)
{
    bool found = p->n > 0 && plan_engine(p, choice);
    for (int i = 0; i < p->n && !found; i++)
        if (plan_engine(p, i))
            found = true, choice = i;
    for (int i = 0; i < p->n; i++)
        if (!found || i != choice)
            ty_cudnn_drop(p->m, p->plan[i]);
    p->run->plan = found ? p->plan[choice] : NULL;
    p->run->of = (ty_cudnn_planned){.n_proposed = p->n_proposed, .n_will_do = p->n};
    if (found) {
        memcpy(p->run->of.engine, p->name[choice], NAME_BYTES);
        p->run->of.workspace_bytes = p->bytes[choice];
    }
    return found;
}

/* cuDNN's fallbacks are slow, and asked for last. */
int ty_cudnn_choose(ty_cudnn_maker *m, ty_cuda_libraries *libraries, const ty_cudnn_conv *c, const ty_cudnn_places *at,
                    cudnnBackendDescriptor_t graph, ty_cudnn_run *run, ty_error *err)
{
    static const unsigned modes[] = {TY_CUDNN_HEUR_MODE_A, TY_CUDNN_HEUR_MODE_FALLBACK};
    bool found = false;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && !found; i++) {
        proposed p = {.m = m, .libraries = libraries, .conv = c, .run = run};
        propose(&p, graph, modes[i]);
        found = take(&p, choose(&p, &libraries->tuner, at, modes[i]));
    }
    if (found && m->status == 0)
        return 0;
    if (c->biases) /* what follows may be more than there is an engine for */
        return ty_error_set(err, TY_E_NO_FUSION, "cuDNN: no engine for a convolution with what follows it");
    if (ty_cudnn_error(m, err) < 0)
        return -1;
    return ty_error_set(err, TY_E_LIBRARY, "cuDNN: no engine for a convolution within %zu MB of workspace",
                        ty_cudnn_conv_workspace(c) / 1000000);
}
