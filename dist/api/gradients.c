#include "dist/api/gradients.h"

#include "dist/api/buckets.h"
#include "dist/api/carry.h"
#include "dist/api/carry_kinds.h"
#include "dist/api/numbers.h"
#include "dist/api/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parameter {
    char name[TY_CALL_NAME_BYTES];
    bool has_sum; /* a gradient of this step is in its slot */
    bool marked;  /* ready in this pass; its copy may still be under way */
} parameter;

typedef struct trip {
    ty_call call;
    int n_ready;
} trip;

struct trainyard_gradients {
    ty_channel *channel;
    int n, n_buckets, set;
    trainyard_op op;
    int compression, passes;
    parameter *parameters;
    ty_bucket_slot *slots;
    ty_bucket *buckets;
    trip *trips; /* [n_buckets] */
    ty_call step;
    char *arena;

    pthread_mutex_t lock;
    int pass;     /* 0 ... passes - 1 */
    int launched; /* buckets of this step */
};

/* ---- buckets on their way (in the channel's order) ---- */

static int sum_bucket(ty_channel *c, const ty_gradients *g, const ty_bucket *bucket, void *memory, ty_error *err)
{
    ty_collective sum = {.kind = TY_ALL_REDUCE,
                         .name = g->parameters[bucket->last].name,
                         .dtype = bucket->dtype,
                         .reduce = ty_carry_reduce((int)g->op),
                         .wire = bucket->dtype == TY_F32 ? ty_carry_wire(g->compression) : TY_WIRE_AS_IS,
                         .in = memory,
                         .out = memory,
                         .n = (int64_t)(bucket->n_bytes / ty_dtype_bytes(bucket->dtype))};
    return sum.n ? ty_carry_collective(c, &sum, err) : TRAINYARD_OK;
}

static int work_bucket(ty_channel *c, ty_call *call, ty_error *err)
{
    ty_gradients *g = c->gradients;
    const ty_bucket *bucket = call->with;
    if (g->step.code != TRAINYARD_OK) { /* the others did not begin the step either */
        *err = g->step.err;
        return g->step.code;
    }
    void *memory = g->arena + bucket->offset;
    if (g->passes > 1 && g->op == TRAINYARD_AVERAGE)
        ty_numbers_scale(bucket->dtype, memory, (int64_t)(bucket->n_bytes / ty_dtype_bytes(bucket->dtype)),
                         1.0 / g->passes);
    return sum_bucket(c, g, bucket, memory, err);
}

/* A step of the others, for a rank that has no data: its own buffers are not touched. */
static int take_part(ty_channel *c, ty_error *err)
{
    ty_gradients *g = c->gradients;
    int code = TRAINYARD_OK;
    for (int b = 0; b < g->n_buckets && code == TRAINYARD_OK; b++) {
        void *zeros = ty_channel_scratch(c, g->buckets[b].n_bytes);
        if (!zeros)
            return ty_carry_no_memory(c, (int64_t)g->buckets[b].n_bytes, err);
        memset(zeros, 0, g->buckets[b].n_bytes);
        code = sum_bucket(c, g, &g->buckets[b], zeros, err);
    }
    return code;
}

/* Sends what can go; locked. */
static void launch(ty_gradients *g)
{
    while (g->launched < g->n_buckets) {
        const ty_bucket *bucket = &g->buckets[g->launched];
        trip *t = &g->trips[g->launched];
        if (t->n_ready <= bucket->last - bucket->first)
            return;
        if (g->launched == 0) {
            ty_call_init(&g->step, TY_CALL_STEP, NULL, NULL, NULL, 0);
            ty_channel_begin(g->channel, &g->step);
        }
        ty_call_init(&t->call, TY_CALL_BUCKET, NULL, NULL, NULL, 0);
        t->call.with = (void *)bucket;
        t->call.work = work_bucket;
        ty_channel_begin(g->channel, &t->call);
        g->launched++;
    }
}

/* ---- making ---- */

static int check_parameter(const trainyard_parameter *p, int i, ty_error *err)
{
    trainyard_tensor view = {.data = &view, .dtype = p->dtype, .ndim = p->ndim};
    memcpy(view.shape, p->shape, sizeof view.shape);
    int code = ty_view_check(&view, p->name ? p->name : "a parameter", err);
    if (code == TRAINYARD_OK && (!p->name || !p->name[0]))
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "parameter %d has no name", i);
    if (code == TRAINYARD_OK && !ty_dtype_is_float((ty_dtype)p->dtype))
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "parameter \"%s\" is %s: expected f32, f64, f16 or bf16", p->name,
                        ty_dtype_text((ty_dtype)p->dtype));
    return code;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_names(const trainyard_parameter *parameters, int n, ty_error *err)
{
    const char **names = malloc((size_t)n * sizeof *names + 1);
    int code = names ? TRAINYARD_OK : ty_fault(err, TRAINYARD_E_MEMORY, "no memory for %d names", n);
    for (int i = 0; names && i < n; i++)
        names[i] = parameters[i].name;
    if (names)
        qsort(names, (size_t)n, sizeof *names, compare_names);
    for (int i = 1; i < n && code == TRAINYARD_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            code = ty_fault(err, TRAINYARD_E_ARGUMENT, "two parameters are called \"%s\"", names[i]);
    free(names);
    return code;
}

static int check_all(const trainyard_parameter *parameters, int n, const trainyard_gradients_options *o, ty_error *err)
{
    if (n < 1 || !parameters)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "no parameters");
    if (o->op != TRAINYARD_AVERAGE && o->op != TRAINYARD_SUM)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "op %d: gradients have 0 (average) or 1 (sum)", o->op);
    if (o->compression < 0 || o->compression > TRAINYARD_COMPRESS_BF16)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "compression %d: expected 0 (none), 1 (fp16) or 2 (bf16)",
                        o->compression);
    if (o->passes < 0 || o->bucket_bytes < 0)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "passes and bucket_bytes may not be negative");
    int code = TRAINYARD_OK;
    for (int i = 0; i < n && code == TRAINYARD_OK; i++)
        code = check_parameter(&parameters[i], i, err);
    return code == TRAINYARD_OK ? check_names(parameters, n, err) : code;
}

/* What must be equal on all ranks, a line a parameter. */
static void describe(const trainyard_parameter *parameters, int n, const trainyard_gradients_options *o, ty_buf *text)
{
    char view[TY_VIEW_TEXT_BYTES];
    ty_buf_addf(text, "%s, compression %d, %d passes, buckets of %lld bytes, %d parameters",
                o->op == TRAINYARD_SUM ? "sum" : "average", o->compression, o->passes, (long long)o->bucket_bytes, n);
    for (int i = 0; i < n; i++) {
        trainyard_tensor t = {.dtype = parameters[i].dtype, .ndim = parameters[i].ndim};
        memcpy(t.shape, parameters[i].shape, sizeof t.shape);
        ty_buf_addf(text, "\nparameter %d: '%s' %s", i, parameters[i].name, ty_view_text(&t, false, view));
    }
}

static int lay_out(ty_gradients *g, const trainyard_parameter *parameters, int64_t bucket_bytes, ty_error *err)
{
    size_t n = (size_t)g->n, n_bytes = 0;
    g->parameters = calloc(n, sizeof *g->parameters);
    g->slots = calloc(n, sizeof *g->slots);
    g->buckets = calloc(n, sizeof *g->buckets);
    if (!g->parameters || !g->slots || !g->buckets)
        return ty_fault(err, TRAINYARD_E_MEMORY, "no memory for %d parameters", g->n);
    for (int i = 0; i < g->n; i++)
        memccpy(g->parameters[i].name, parameters[i].name, 0, sizeof g->parameters[i].name - 1);
    g->n_buckets = ty_buckets_lay(parameters, g->n, bucket_bytes, g->slots, g->buckets, &n_bytes);
    g->trips = calloc((size_t)g->n_buckets, sizeof *g->trips);
    g->arena = aligned_alloc(4096, (n_bytes + 4095) / 4096 * 4096 + 4096);
    if (!g->trips || !g->arena)
        return ty_fault(err, TRAINYARD_E_MEMORY, "no memory for %zu bytes of gradients", n_bytes);
    memset(g->arena, 0, n_bytes);
    return TRAINYARD_OK;
}

/* In the parent's order: all ranks make the second comm. */
static int work_new(ty_channel *parent, ty_call *call, ty_error *err)
{
    ty_gradients *g = call->with;
    ty_comm *comm;
    if (ty_comm_dup(parent->comm, &comm, err) < 0) {
        parent->lost = *err;
        return TRAINYARD_E_LOST;
    }
    return ty_channel_open(comm, parent->ranks, parent->told, &g->channel, err);
}

int ty_gradients_new(ty_channel *parent, const trainyard_parameter *parameters, int n,
                     const trainyard_gradients_options *options, ty_gradients **gradients, ty_error *err)
{
    trainyard_gradients_options o = options ? *options : (trainyard_gradients_options){0};
    ty_call call;
    ty_buf text;
    ty_buf_init(&text, TY_CALL_TEXT_BYTES);
    ty_call_init(&call, TY_CALL_GRADIENTS, NULL, NULL, NULL, 0);
    ty_gradients *g = calloc(1, sizeof *g);
    call.fault = g ? check_all(parameters, n, &o, &call.err) : ty_fault(&call.err, TRAINYARD_E_MEMORY, "no memory");
    if (!call.fault) {
        *g = (ty_gradients){.n = n,
                            .set = o.set,
                            .op = (trainyard_op)o.op,
                            .compression = o.compression,
                            .passes = o.passes ? o.passes : 1};
        pthread_mutex_init(&g->lock, NULL);
        describe(parameters, n, &o, &text);
        call.fault = lay_out(g, parameters, o.bucket_bytes, &call.err);
        call.details = text.data;
        call.with = g;
        call.work = work_new;
    }
    ty_channel_do(parent, &call);
    ty_buf_fini(&text);
    if (call.code != TRAINYARD_OK) {
        *err = call.err;
        ty_gradients_drop(g);
        return call.code;
    }
    g->channel->gradients = g;
    g->channel->take_part = take_part;
    *gradients = g;
    return TRAINYARD_OK;
}

void ty_gradients_drop(ty_gradients *g)
{
    if (!g)
        return;
    ty_channel_close(g->channel);
    if (g->parameters)
        pthread_mutex_destroy(&g->lock);
    free(g->arena);
    free(g->trips);
    free(g->buckets);
    free(g->slots);
    free(g->parameters);
    free(g);
}

static int work_free(ty_channel *parent, ty_call *call, ty_error *err)
{
    (void)parent, (void)err;
    ty_gradients_drop(call->with);
    return TRAINYARD_OK;
}

int ty_gradients_free(ty_channel *parent, ty_gradients *g, ty_error *err)
{
    ty_call call;
    char which[TY_CALL_NAME_BYTES + 32];
    snprintf(which, sizeof which, "those of \"%s\"", g->parameters[0].name);
    ty_call_init(&call, TY_CALL_FORGET, NULL, NULL, NULL, 0);
    call.details = which;
    call.with = g;
    call.work = work_free;
    ty_channel_do(parent, &call);
    if (call.code != TRAINYARD_OK)
        *err = call.err;
    return call.code;
}

/* ---- a step ---- */

static int check_number(const ty_gradients *g, int i, ty_error *err)
{
    if (i < 0 || i >= g->n)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "parameter %d: there are %d", i, g->n);
    return TRAINYARD_OK;
}

/* Adds the gradient to its slot, without the lock: no two calls are about one parameter. */
static void take(ty_gradients *g, int i, const void *gradient)
{
    const ty_bucket_slot *slot = &g->slots[i];
    char *to = g->arena + slot->offset;
    if (!gradient || gradient == to || slot->elems == 0)
        return;
    if (g->parameters[i].has_sum)
        ty_numbers_add(slot->dtype, to, gradient, slot->elems);
    else
        memcpy(to, gradient, (size_t)slot->elems * ty_dtype_bytes(slot->dtype));
}

static void mark(ty_gradients *g, int i)
{
    g->parameters[i].has_sum = true;
    if (g->pass < g->passes - 1)
        return;
    g->trips[g->slots[i].bucket].n_ready++;
    launch(g);
}

int ty_gradients_ready(ty_gradients *g, int i, const void *gradient, ty_error *err)
{
    int code = check_number(g, i, err);
    if (code != TRAINYARD_OK)
        return code;
    parameter *p = &g->parameters[i];
    if (!gradient && g->passes > 1)
        return ty_fault(err, TRAINYARD_E_ARGUMENT,
                        "gradient of \"%s\" is NULL: with several passes it is added to the "
                        "buffer from memory of your own",
                        p->name);
    pthread_mutex_lock(&g->lock);
    bool twice = p->marked;
    p->marked = true;
    pthread_mutex_unlock(&g->lock);
    if (twice)
        return ty_fault(err, TRAINYARD_E_STATE,
                        "gradient of \"%s\" is ready already: once a pass, and "
                        "trainyard_gradients_wait ends one",
                        p->name);
    take(g, i, gradient);
    pthread_mutex_lock(&g->lock);
    mark(g, i);
    pthread_mutex_unlock(&g->lock);
    return TRAINYARD_OK;
}

static int wait_bucket(ty_gradients *g, int b, ty_error *err)
{
    ty_call *call = &g->trips[b].call;
    ty_channel_wait(call);
    if (call->code != TRAINYARD_OK && err->code == TY_E_NONE)
        *err = call->err;
    return call->code;
}

/* The first parameter that keeps a bucket from travelling. */
static int missing(const ty_gradients *g)
{
    for (int i = g->buckets[g->launched].last; i > g->buckets[g->launched].first; i--)
        if (!g->parameters[i].marked)
            return i;
    return g->buckets[g->launched].first;
}

int ty_gradients_wait_one(ty_gradients *g, int i, ty_error *err)
{
    int code = check_number(g, i, err);
    if (code != TRAINYARD_OK)
        return code;
    pthread_mutex_lock(&g->lock);
    bool launched = g->slots[i].bucket < g->launched;
    int lacks = launched ? 0 : missing(g);
    pthread_mutex_unlock(&g->lock);
    if (!launched)
        return ty_fault(err, TRAINYARD_E_STATE,
                        "the bucket of \"%s\" has not been sent: the gradient of \"%s\" is not "
                        "ready",
                        g->parameters[i].name, g->parameters[lacks].name);
    return wait_bucket(g, g->slots[i].bucket, err);
}

/* What was not marked has no gradient in this step: zero. */
static void complete(ty_gradients *g)
{
    for (int i = g->n - 1; i >= 0; i--) {
        const ty_bucket_slot *slot = &g->slots[i];
        if (g->parameters[i].marked)
            continue;
        if (!g->parameters[i].has_sum)
            memset(g->arena + slot->offset, 0, (size_t)slot->elems * ty_dtype_bytes(slot->dtype));
        mark(g, i);
    }
}

static void begin_step(ty_gradients *g)
{
    for (int i = 0; i < g->n; i++)
        g->parameters[i].has_sum = false;
    for (int b = 0; b < g->n_buckets; b++)
        g->trips[b].n_ready = 0;
    g->launched = 0;
    g->pass = 0;
}

int ty_gradients_wait(ty_gradients *g, bool *stop, ty_error *err)
{
    bool is_last = g->pass == g->passes - 1;
    int code = TRAINYARD_OK;
    pthread_mutex_lock(&g->lock);
    if (is_last)
        complete(g);
    pthread_mutex_unlock(&g->lock);
    for (int b = 0; is_last && b < g->n_buckets; b++) {
        int of_bucket = wait_bucket(g, b, err);
        code = code == TRAINYARD_OK ? of_bucket : code;
    }
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < g->n; i++)
        g->parameters[i].marked = false;
    g->pass++;
    if (is_last) {
        *stop = g->step.stop;
        begin_step(g);
    }
    pthread_mutex_unlock(&g->lock);
    return code;
}

/* ---- what it is ---- */

void *ty_gradients_buffer(const ty_gradients *g, int i)
{
    return i >= 0 && i < g->n ? g->arena + g->slots[i].offset : NULL;
}

int ty_gradients_buckets(const ty_gradients *g)
{
    return g->n_buckets;
}

ty_channel *ty_gradients_channel(const ty_gradients *g)
{
    return g->channel;
}

int ty_gradients_set(const ty_gradients *g)
{
    return g->set;
}
