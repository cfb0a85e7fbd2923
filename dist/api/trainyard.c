/* The public functions: the process's one world, and its text of the last failure. What they mean is in the header. */
#include "base/error.h"
#include "base/file.h"
#include "dist/api/adopt.h"
#include "dist/api/ask.h"
#include "dist/api/record.h"
#include "dist/api/world.h"
#include "dist/mishap.h"
#include "dist/page.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

enum state { NOT_YET, OPEN, OVER };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum state state;
static ty_world *world;
static ty_mishap mishap;            /* a fault that somebody asked for */
static ty_page *page;               /* where the agent of this host sees what this rank is at; or NULL */
static atomic_int told;             /* by a signal: lock-free */
static _Thread_local ty_world *own; /* of a thread that is a rank */

void ty_api_adopt(ty_world *w)
{
    own = w;
}

/* ---- errors ---- */

static _Thread_local char last_error[TY_ERROR_MESSAGE_BYTES + TY_ERROR_PLACE_BYTES + TY_ERROR_HELP_BYTES + 16];

PUBLIC const char *trainyard_error(void)
{
    return last_error;
}

/* Where it is a failure, the thread's text is that of err. Returns the code. */
static int64_t tell(int64_t code, const ty_error *err)
{
    if (code < 0)
        snprintf(last_error, sizeof last_error, "%s%s%s%s%s%s", err->message, err->place[0] ? " (" : "", err->place,
                 err->place[0] ? ")" : "", err->help[0] ? ". Help: " : "", err->help);
    return code;
}

static int refuse(int code, const char *text)
{
    snprintf(last_error, sizeof last_error, "%s", text);
    return code;
}

static ty_world *open_world(void)
{
    pthread_mutex_lock(&lock);
    ty_world *w = own ? own : state == OPEN ? world : NULL;
    if (!w)
        refuse(0, state == OVER ? "this process has called trainyard_shutdown: nothing can be called any more"
                                : "call trainyard_init first");
    pthread_mutex_unlock(&lock);
    return w;
}

/* ---- init, shutdown ---- */

PUBLIC int trainyard_api_version(void)
{
    return TRAINYARD_API_VERSION;
}

PUBLIC void trainyard_request_stop(void)
{
    atomic_store(&told, 1);
}

static void on_signal(int number)
{
    (void)number;
    trainyard_request_stop();
}

/* A second SIGTERM ends the process as if nobody had caught the first. */
static void catch_signal(void)
{
    struct sigaction now, ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGTERM, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
        sigaction(SIGTERM, &ours, NULL);
}

static int open_job(const trainyard_settings *s, ty_error *err)
{
    const char *deterministic = getenv("TRAINYARD_DETERMINISTIC");
    ty_comm_options options = {.engine = s->engine,
                               .piece_bytes = s->piece_bytes,
                               .rank_order = s->deterministic || (deterministic && strcmp(deterministic, "1") == 0)};
    ty_comm *comm;
    options.page = page = ty_page_from_environment();
    ty_page_phase(page, TY_PHASE_START);
    ty_mishap_from_environment(&mishap);
    if (s->piece_bytes < 0)
        return ty_fault(err, TRAINYARD_E_ARGUMENT, "piece_bytes is negative");
    if (ty_comm_open(&options, &comm, err) < 0)
        return TRAINYARD_E_START;
    return ty_world_open(comm, &told, &world, err);
}

PUBLIC int trainyard_init(const trainyard_settings *settings)
{
    trainyard_settings s = settings ? *settings : (trainyard_settings){0};
    ty_error err = {0};
    pthread_mutex_lock(&lock);
    int code = state == OPEN   ? refuse(TRAINYARD_E_STATE, "trainyard_init was called twice: once in a process")
               : state == OVER ? refuse(TRAINYARD_E_STATE, "trainyard_init after trainyard_shutdown: a process joins a "
                                                           "job once; start another process")
                               : (int)tell(open_job(&s, &err), &err);
    if (code == TRAINYARD_OK) {
        state = OPEN;
        ty_page_phase(page, TY_PHASE_STEP);
        if (!s.own_signals)
            catch_signal();
    }
    pthread_mutex_unlock(&lock);
    return code;
}

PUBLIC int trainyard_shutdown(void)
{
    ty_error err = {0};
    ty_world *w = open_world();
    if (!w)
        return TRAINYARD_E_STATE;
    pthread_mutex_lock(&lock);
    state = OVER;
    world = NULL;
    pthread_mutex_unlock(&lock);
    ty_page_phase(page, TY_PHASE_FINISHED);
    return (int)tell(ty_world_close(w, &err), &err);
}

PUBLIC int trainyard_is_initialized(void)
{
    pthread_mutex_lock(&lock);
    int is = state == OPEN;
    pthread_mutex_unlock(&lock);
    return is;
}

static int ask_comm(int (*what)(const ty_comm *comm))
{
    ty_world *w = open_world();
    return w ? what(ty_world_comm(w)) : TRAINYARD_E_STATE;
}

PUBLIC int trainyard_rank(void)
{
    return ask_comm(ty_comm_rank);
}

PUBLIC int trainyard_size(void)
{
    return ask_comm(ty_comm_size);
}

PUBLIC int trainyard_local_rank(void)
{
    return ask_comm(ty_comm_local_rank);
}

PUBLIC int trainyard_local_size(void)
{
    return ask_comm(ty_comm_local_size);
}

PUBLIC int trainyard_stop_requested(void)
{
    ty_world *w = open_world();
    return w ? ty_world_stops(w) : TRAINYARD_E_STATE;
}

/* ---- collectives, now ---- */

static int now(ty_call *call)
{
    ty_world *w = open_world();
    if (!w) {
        ty_call_fini(call);
        return TRAINYARD_E_STATE;
    }
    return (int)tell(ty_world_now(w, call), &call->err);
}

PUBLIC int trainyard_allreduce(const trainyard_tensor *in, const trainyard_tensor *out,
                               const trainyard_options *options)
{
    ty_call call;
    ty_ask_allreduce(&call, in, out, 1, options);
    return now(&call);
}

PUBLIC int trainyard_grouped_allreduce(const trainyard_tensor *in, const trainyard_tensor *out, int n,
                                       const trainyard_options *options)
{
    ty_call call;
    ty_ask_allreduce(&call, in, out, n, options);
    return now(&call);
}

PUBLIC int trainyard_allgather(const trainyard_tensor *in, trainyard_tensor *out, const trainyard_options *options)
{
    ty_call call;
    ty_ask_rows(&call, TY_CALL_ALLGATHER, in, out, options);
    return now(&call);
}

PUBLIC int trainyard_reducescatter(const trainyard_tensor *in, trainyard_tensor *out, const trainyard_options *options)
{
    ty_call call;
    ty_ask_rows(&call, TY_CALL_REDUCESCATTER, in, out, options);
    return now(&call);
}

PUBLIC int trainyard_alltoall(const trainyard_tensor *in, const int64_t *splits, trainyard_tensor *out,
                              int64_t *received, const trainyard_options *options)
{
    ty_call call;
    ty_ask_alltoall(&call, in, splits, out, received, options);
    return now(&call);
}

PUBLIC int trainyard_broadcast(const trainyard_tensor *tensor, int root, const trainyard_options *options)
{
    ty_call call;
    ty_ask_broadcast(&call, tensor, 1, root, options);
    return now(&call);
}

PUBLIC int trainyard_broadcast_variables(const trainyard_tensor *tensors, int n, int root,
                                         const trainyard_options *options)
{
    ty_call call;
    ty_ask_broadcast(&call, tensors, n, root, options);
    return now(&call);
}

PUBLIC int trainyard_barrier(const trainyard_options *options)
{
    ty_call call;
    ty_ask_barrier(&call, options);
    return now(&call);
}

PUBLIC int trainyard_join(void)
{
    ty_error err = {0};
    ty_world *w = open_world();
    if (!w)
        return TRAINYARD_E_STATE;
    ty_page_phase(page, TY_PHASE_FINISHED);
    int code = ty_world_join(w, &err);
    ty_page_phase(page, TY_PHASE_STEP);
    return (int)tell(code, &err);
}

/* ---- collectives, later ---- */

static ty_call *fresh(void)
{
    ty_call *call = malloc(sizeof *call);
    if (!call)
        refuse(0, "no memory for a call");
    return call;
}

/* The call is gone, or the world's. */
static int64_t later(ty_call *call)
{
    ty_error err = {0};
    ty_world *w = open_world();
    if (!w) {
        ty_call_fini(call);
        free(call);
        return TRAINYARD_E_STATE;
    }
    return tell(ty_world_later(w, call, &err), &err);
}

PUBLIC int64_t trainyard_allreduce_async(const trainyard_tensor *in, const trainyard_tensor *out,
                                         const trainyard_options *options)
{
    return trainyard_grouped_allreduce_async(in, out, 1, options);
}

PUBLIC int64_t trainyard_grouped_allreduce_async(const trainyard_tensor *in, const trainyard_tensor *out, int n,
                                                 const trainyard_options *options)
{
    ty_call *call = fresh();
    if (!call)
        return TRAINYARD_E_MEMORY;
    ty_ask_allreduce(call, in, out, n, options);
    return later(call);
}

static int64_t rows_later(ty_call_kind kind, const trainyard_tensor *in, trainyard_tensor *out,
                          const trainyard_options *options)
{
    ty_call *call = fresh();
    if (!call)
        return TRAINYARD_E_MEMORY;
    ty_ask_rows(call, kind, in, out, options);
    return later(call);
}

PUBLIC int64_t trainyard_allgather_async(const trainyard_tensor *in, trainyard_tensor *out,
                                         const trainyard_options *options)
{
    return rows_later(TY_CALL_ALLGATHER, in, out, options);
}

PUBLIC int64_t trainyard_reducescatter_async(const trainyard_tensor *in, trainyard_tensor *out,
                                             const trainyard_options *options)
{
    return rows_later(TY_CALL_REDUCESCATTER, in, out, options);
}

PUBLIC int64_t trainyard_alltoall_async(const trainyard_tensor *in, const int64_t *splits, trainyard_tensor *out,
                                        int64_t *received, const trainyard_options *options)
{
    ty_call *call = fresh();
    if (!call)
        return TRAINYARD_E_MEMORY;
    ty_ask_alltoall(call, in, splits, out, received, options);
    return later(call);
}

PUBLIC int64_t trainyard_broadcast_async(const trainyard_tensor *tensor, int root, const trainyard_options *options)
{
    ty_call *call = fresh();
    if (!call)
        return TRAINYARD_E_MEMORY;
    ty_ask_broadcast(call, tensor, 1, root, options);
    return later(call);
}

PUBLIC int trainyard_poll(int64_t handle)
{
    ty_error err = {0};
    ty_world *w = open_world();
    return w ? (int)tell(ty_world_poll(w, handle, &err), &err) : TRAINYARD_E_STATE;
}

PUBLIC int trainyard_wait(int64_t handle)
{
    ty_error err = {0};
    ty_world *w = open_world();
    return w ? (int)tell(ty_world_wait(w, handle, &err), &err) : TRAINYARD_E_STATE;
}

PUBLIC void trainyard_free(void *data)
{
    free(data);
}

/* ---- process sets ---- */

PUBLIC int trainyard_process_set(const int *ranks, int n)
{
    ty_error err = {0};
    ty_world *w = open_world();
    return w ? (int)tell(ty_world_set_new(w, ranks, n, &err), &err) : TRAINYARD_E_STATE;
}

PUBLIC int trainyard_process_set_rank(int set)
{
    ty_error err = {0};
    ty_world *w = open_world();
    return w ? (int)tell(ty_world_set_rank(w, set, &err), &err) : TRAINYARD_E_STATE;
}

PUBLIC int trainyard_process_set_size(int set)
{
    ty_error err = {0};
    ty_world *w = open_world();
    return w ? (int)tell(ty_world_set_size(w, set, &err), &err) : TRAINYARD_E_STATE;
}

PUBLIC int trainyard_process_set_free(int set)
{
    ty_error err = {0};
    ty_world *w = open_world();
    return w ? (int)tell(ty_world_set_free(w, set, &err), &err) : TRAINYARD_E_STATE;
}

/* ---- gradients ---- */

/* The world, if there are gradients to speak of. */
static ty_world *world_of(const trainyard_gradients *g)
{
    ty_world *w = open_world();
    if (w && !g)
        refuse(0, "gradients are NULL");
    return g ? w : NULL;
}

static int lacks(const trainyard_gradients *g)
{
    return g ? TRAINYARD_E_STATE : TRAINYARD_E_ARGUMENT;
}

PUBLIC int trainyard_gradients_new(const trainyard_parameter *parameters, int n,
                                   const trainyard_gradients_options *options, trainyard_gradients **gradients)
{
    ty_error err = {0};
    ty_world *w = open_world();
    if (!w)
        return TRAINYARD_E_STATE;
    return (int)tell(ty_world_gradients_new(w, parameters, n, options, gradients, &err), &err);
}

PUBLIC void *trainyard_gradients_buffer(const trainyard_gradients *g, int parameter)
{
    return g ? ty_gradients_buffer(g, parameter) : NULL;
}

PUBLIC int trainyard_gradients_ready(trainyard_gradients *g, int parameter, const void *gradient)
{
    ty_error err = {0};
    ty_world *w = world_of(g);
    return w ? (int)tell(ty_gradients_ready(g, parameter, gradient, &err), &err) : lacks(g);
}

PUBLIC int trainyard_gradients_wait_one(trainyard_gradients *g, int parameter)
{
    ty_error err = {0};
    ty_world *w = world_of(g);
    return w ? (int)tell(ty_gradients_wait_one(g, parameter, &err), &err) : lacks(g);
}

PUBLIC int trainyard_gradients_wait(trainyard_gradients *g)
{
    ty_error err = {0};
    ty_world *w = world_of(g);
    return w ? (int)tell(ty_world_gradients_wait(w, g, &err), &err) : lacks(g);
}

PUBLIC int trainyard_gradients_buckets(const trainyard_gradients *g)
{
    return world_of(g) ? ty_gradients_buckets(g) : lacks(g);
}

PUBLIC int trainyard_gradients_free(trainyard_gradients *g)
{
    ty_error err = {0};
    ty_world *w = open_world();
    if (!g || !w)
        return g ? TRAINYARD_E_STATE : TRAINYARD_OK;
    return (int)tell(ty_world_gradients_free(w, g, &err), &err);
}

/* ---- what one rank does for all ---- */

PUBLIC int trainyard_write(const char *path, const void *bytes, size_t n_bytes)
{
    ty_record record = {.path = path, .bytes = bytes, .n_bytes = n_bytes};
    ty_call call;
    ty_call_init(&call, TY_CALL_WRITE, trainyard_with(.name = path), NULL, NULL, 0);
    call.with = &record;
    if (!path || !path[0])
        call.fault = ty_fault(&call.err, TRAINYARD_E_ARGUMENT, "no path");
    else if (!bytes && n_bytes > 0)
        call.fault = ty_fault(&call.err, TRAINYARD_E_ARGUMENT, "bytes is NULL");
    ty_page_phase(page, TY_PHASE_SAVE);
    int code = now(&call);
    ty_page_phase(page, TY_PHASE_STEP);
    return code;
}

/* Rank 0 looks before the ranks meet, so that they all learn of its failure. */
static void read_first(ty_world *w, ty_call *call, ty_record *record)
{
    bool is_there = false;
    if (!record->path || !record->path[0])
        call->fault = ty_fault(&call->err, TRAINYARD_E_ARGUMENT, "no path");
    else if (ty_comm_rank(ty_world_comm(w)) == 0)
        call->fault = ty_record_read(record, &is_there, &call->err);
    call->n_bytes = is_there ? (int64_t)record->n_bytes : -1;
}

PUBLIC int trainyard_read(const char *path, void **bytes, size_t *n_bytes)
{
    ty_record record = {.path = path};
    ty_call call;
    ty_world *w = open_world();
    if (!w)
        return TRAINYARD_E_STATE;
    ty_call_init(&call, TY_CALL_READ, trainyard_with(.name = path), NULL, NULL, 0);
    call.with = &record;
    call.work = ty_record_share;
    read_first(w, &call, &record);
    int code = now(&call);
    if (code != TRAINYARD_OK) {
        free(record.got);
        record = (ty_record){0};
    }
    *bytes = record.got;
    *n_bytes = record.n_bytes;
    return code;
}

/* Rank 0 prints; that its standard output is gone is not the training's failure. */
static int print_metrics(int64_t step, int64_t epoch, const char *const *names, const double *values, int n)
{
    ty_error err = {0};
    ty_buf line;
    ty_buf_init(&line, TY_RECORD_LINE_BYTES);
    int code = ty_record_metrics_line(&line, step, epoch, names, values, n, &err);
    if (code == TRAINYARD_OK)
        ty_file_write_all(STDOUT_FILENO, line.data, line.len, "standard output", NULL);
    ty_buf_fini(&line);
    return (int)tell(code, &err);
}

PUBLIC int trainyard_metrics(int64_t step, int64_t epoch, const char *const *names, double *values, int n)
{
    ty_call call;
    ty_buf text;
    ty_buf_init(&text, TY_CALL_TEXT_BYTES);
    ty_call_init(&call, TY_CALL_ALLREDUCE, trainyard_with(.name = "metrics"), trainyard_f64(values, n), NULL, 1);
    if (!call.fault)
        call.fault = ty_record_check_metrics(names, values, n, &call.err);
    for (int i = 0; i < n && !call.fault; i++)
        ty_buf_addf(&text, "%s%s", i ? " " : "", names[i]);
    call.details = text.data;
    ty_page_step(page, step);
    ty_mishap_meet(&mishap, step);
    int code = now(&call);
    ty_buf_fini(&text);
    return code == TRAINYARD_OK && trainyard_rank() == 0 ? print_metrics(step, epoch, names, values, n) : code;
}
