/* mirror.c - see mirror.h. */
#include "compiler/target/cuda/mirror.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct mirror_replica mirror_replica;
/* What a replica's thread is asked to do. */
typedef int mirror_job(mirror_replica *r, ty_error *err);

struct mirror_replica {
    ty_mirror *mirror;
    int number, device;
    ty_cuda *cuda;
    void **state;       /* the host's memory of each, where parts are its own */
    const void **input; /* of a run: its own rows */
    int64_t *call_ns;   /* of a timed run; its length is that of the longest tape */
    int64_t told;       /* the number, as an input of the graph */
    ty_compile_phases phases;
    pthread_t thread;
    bool has_thread;
};

struct ty_mirror {
    ty_arena arena;
    ty_mirror_options opt;
    const ty_plan *const *plan;
    int n_plans;
    const ty_graph *g;
    ty_nccl_others others;
    bool *is_part; /* by state */
    bool has_met;
    ty_nccl_group *group; /* NULL: there is one replica */
    mirror_replica *replica;
    int n_replicas; /* that were asked for */
    /* Arguments of the job at hand. */
    int at_plan, n_timed;
    const void *const *inputs;
    /* Between the caller's thread and the replicas'. */
    pthread_mutex_t lock;
    pthread_cond_t asked, answered;
    mirror_job *job; /* NULL: end */
    long n_asked;
    int n_left;
    bool failed;
    ty_error err; /* of the first that failed */
};

/* ---- threads ---- */

/* What is said of a failure is what NCCL has noticed, if it has: all else comes of it. */
static int mirror_judge(const ty_mirror *m, int rc, ty_error *err)
{
    return m->group && ty_nccl_failed(m->group, err) < 0 ? -1 : rc;
}

/* Only the first error is kept: the others come of it. */
static void mirror_answer(mirror_replica *r, int rc, ty_error *err)
{
    ty_mirror *m = r->mirror;
    pthread_mutex_lock(&m->lock);
    if (rc < 0 && !m->failed) {
        m->failed = true;
        m->err = *err;
        ty_error_wrap(&m->err, "GPU %d", r->device);
    }
    m->n_left--;
    pthread_cond_signal(&m->answered);
    pthread_mutex_unlock(&m->lock);
}

static void *mirror_thread(void *given)
{
    mirror_replica *r = given;
    ty_mirror *m = r->mirror;
    for (long n = 0;; n++) {
        ty_error err = {0};
        pthread_mutex_lock(&m->lock);
        while (m->n_asked == n)
            pthread_cond_wait(&m->asked, &m->lock);
        mirror_job *job = m->job;
        pthread_mutex_unlock(&m->lock);
        mirror_answer(r, job ? mirror_judge(m, job(r, &err), &err) : 0, &err);
        if (!job)
            return NULL;
    }
}

/* Asks all and waits for them. Who waits for a replica that has failed is let go. */
static void mirror_ask(ty_mirror *m, mirror_job *job)
{
    bool told = m->failed;
    pthread_mutex_lock(&m->lock);
    m->job = job;
    m->n_left = m->opt.n;
    m->n_asked++;
    pthread_cond_broadcast(&m->asked);
    while (m->n_left > 0) {
        pthread_cond_wait(&m->answered, &m->lock);
        if (m->failed && !told && m->group)
            ty_nccl_abort(m->group);
        told |= m->failed;
    }
    pthread_mutex_unlock(&m->lock);
}

/* A job of a mirror that works; with one replica it is done here. */
static int mirror_do(ty_mirror *m, mirror_job *job, ty_error *err)
{
    if (m->opt.n == 1)
        return mirror_judge(m, job(&m->replica[0], err), err);
    if (!m->failed)
        mirror_ask(m, job);
    if (m->failed && err)
        *err = m->err;
    return m->failed ? -1 : 0;
}

static int mirror_start_threads(ty_mirror *m, ty_error *err)
{
    for (int i = 0; i < m->opt.n && m->opt.n > 1; i++) {
        mirror_replica *r = &m->replica[i];
        r->has_thread = pthread_create(&r->thread, NULL, mirror_thread, r) == 0;
        if (!r->has_thread)
            return ty_error_set(err, TY_E_LIMIT, "no thread for GPU %d", r->device);
    }
    return 0;
}

/* ---- building ---- */

/* The group of a GPU that is alone here. */
static int mirror_join(void *given, ty_nccl_group **out, ty_error *err)
{
    ty_mirror *m = given;
    m->has_met = true;
    if (ty_nccl_join(&m->others, m->opt.how, &m->group, err) < 0)
        return -1;
    *out = m->group;
    return 0;
}

static int mirror_build(mirror_replica *r, const ty_cuda *like, ty_error *err)
{
    ty_mirror *m = r->mirror;
    ty_cuda_options opt = m->opt.each;
    opt.device = r->device;
    opt.group = m->group;
    opt.replica = r->number;
    opt.replicas = m->opt.n;
    opt.state = r->state;
    opt.like = like;
    opt.beside = m->opt.beside ? m->opt.beside->replica[r->number].cuda : NULL;
    if (m->others.meet) {
        opt.replica = m->others.replica;
        opt.replicas = m->others.n;
        opt.join = mirror_join;
        opt.join_ctx = m;
    }
    opt.phases = like ? &r->phases : opt.phases;
    return ty_cuda_new(m->plan, m->n_plans, &opt, &r->cuda, err);
}

/* The first compiles the kernels, which the others take. */
static int mirror_build_first(mirror_replica *r, ty_error *err)
{
    return r->number == 0 ? mirror_build(r, NULL, err) : 0;
}

static int mirror_build_others(mirror_replica *r, ty_error *err)
{
    return r->number > 0 ? mirror_build(r, r->mirror->replica[0].cuda, err) : 0;
}

/* NCCL connects replicas when they first ask for an exchange, and each waits in there until all do. */
static int mirror_ready(mirror_replica *r, ty_error *err)
{
    return ty_cuda_ready(r->cuda, err);
}

static int mirror_check_devices(const ty_mirror_options *opt, ty_error *err)
{
    if (opt->others && opt->n != 1)
        return ty_error_set(err, TY_E_INTERNAL, "%d GPUs of a process whose replicas are elsewhere too", opt->n);
    if (opt->n < 1 || opt->n > TY_MAX_GPUS)
        return ty_error_set(err, TY_E_RANGE, "GPUs: expected 1 to %d, found %d", TY_MAX_GPUS, opt->n);
    for (int i = 0; i < opt->n; i++)
        for (int k = 0; k < i; k++)
            if (opt->devices[k] == opt->devices[i])
                return ty_error_set(err, TY_E_CONFIG, "GPU %d is named twice: each runs one replica", opt->devices[i]);
    return 0;
}

static ty_mirror *mirror_empty(const ty_plan *const *plans, int n_plans, const ty_mirror_options *opt)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_mirror *m = TY_NEW(&arena, ty_mirror);
    m->arena = arena;
    m->opt = *opt;
    m->n_replicas = opt->n;
    m->others = opt->others ? *opt->others : (ty_nccl_others){0};
    m->opt.others = NULL; /* the caller's */
    m->plan = ty_arena_copy(&m->arena, plans, sizeof *plans * (size_t)n_plans);
    m->n_plans = n_plans;
    m->g = plans[0]->f->g;
    m->is_part = TY_NEW_ARRAY(&m->arena, bool, ty_graph_n_states(m->g) + 1);
    m->replica = TY_NEW_ARRAY(&m->arena, mirror_replica, opt->n);
    for (int i = 0; i < opt->n; i++)
        m->replica[i] = (mirror_replica){
            .mirror = m,
            .number = i,
            .told = i,
            .device = opt->devices[i],
            .state = ty_arena_copy(&m->arena, opt->each.state, sizeof(void *) * (size_t)ty_graph_n_states(m->g)),
            .input = TY_NEW_ARRAY(&m->arena, const void *, ty_graph_n_inputs(m->g))};
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->asked, NULL);
    pthread_cond_init(&m->answered, NULL);
    return m;
}

int ty_mirror_new(const ty_plan *const *plans, int n_plans, const ty_mirror_options *opt, ty_mirror **out,
                  ty_error *err)
{
    if (mirror_check_devices(opt, err) < 0)
        return -1;
    ty_mirror *m = mirror_empty(plans, n_plans, opt);
    if ((opt->n > 1 && ty_nccl_open(opt->devices, opt->n, opt->how, &m->group, err) < 0) ||
        mirror_start_threads(m, err) < 0 || mirror_do(m, mirror_build_first, err) < 0 ||
        mirror_do(m, mirror_build_others, err) < 0 || mirror_do(m, mirror_ready, err) < 0) {
        if (m->others.meet && !m->has_met)
            m->others.meet(m->others.ctx, false, NULL, 0, err);
        ty_mirror_let_go(m);
        ty_mirror_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

/* ---- the end ---- */

static int mirror_close(mirror_replica *r, ty_error *err)
{
    (void)err;
    ty_cuda_free(r->cuda);
    r->cuda = NULL;
    return 0;
}

static void mirror_end_threads(ty_mirror *m)
{
    int n = 0;
    while (n < m->opt.n && m->replica[n].has_thread)
        n++;
    m->opt.n = n; /* those that began */
    mirror_ask(m, mirror_close);
    mirror_ask(m, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(m->replica[i].thread, NULL);
}

void ty_mirror_let_go(ty_mirror *m)
{
    if (m && m->group)
        ty_nccl_abort(m->group);
}

void ty_mirror_free(ty_mirror *m)
{
    if (!m)
        return;
    if (m->replica[0].has_thread)
        mirror_end_threads(m);
    else
        mirror_close(&m->replica[0], NULL);
    ty_nccl_close(m->group);
    for (int i = 1; i < m->n_replicas; i++)
        for (int state = 0; state < ty_graph_n_states(m->g); state++)
            if (m->is_part[state])
                free(m->replica[i].state[state]);
    pthread_cond_destroy(&m->answered);
    pthread_cond_destroy(&m->asked);
    pthread_mutex_destroy(&m->lock);
    ty_arena arena = m->arena;
    ty_arena_fini(&arena);
}

/* ---- what all do ---- */

static int mirror_upload(mirror_replica *r, ty_error *err)
{
    return ty_cuda_upload(r->cuda, err);
}

/* What is the same on all GPUs is taken from the first. */
static int mirror_download(mirror_replica *r, ty_error *err)
{
    if (r->number == 0)
        return ty_cuda_download(r->cuda, err);
    for (int i = 0; i < ty_graph_n_states(r->mirror->g); i++)
        if (r->mirror->is_part[i] && ty_cuda_fetch(r->cuda, i, r->state[i], err) < 0)
            return -1;
    return 0;
}

/* Its own rows of each input; what has no rows is for all. */
static void mirror_take_rows(mirror_replica *r)
{
    const ty_mirror *m = r->mirror;
    int n = ty_graph_n_inputs(m->g);
    for (int i = 0; i < n; i++) {
        const ty_type *type = &ty_graph_input(m->g, i)->type;
        size_t at = type->rank > 0 ? (size_t)r->number * ty_type_bytes(type) : 0;
        r->input[i] = m->inputs[i] ? (const char *)m->inputs[i] + at : NULL;
    }
    if (m->opt.n > 1)
        r->input[n - 1] = &r->told;
}

static int mirror_start(mirror_replica *r, ty_error *err)
{
    mirror_take_rows(r);
    return ty_cuda_start(r->cuda, r->mirror->at_plan, r->input, err);
}

static int mirror_finish(mirror_replica *r, ty_error *err)
{
    return ty_cuda_finish(r->cuda, r->mirror->at_plan, err);
}

static int mirror_drain(mirror_replica *r, ty_error *err)
{
    return ty_cuda_drain(r->cuda, r->mirror->at_plan, err);
}

/* A replica's states against those that the first has left in the caller's memory. */
static int mirror_compare(mirror_replica *r, ty_error *err)
{
    const ty_mirror *m = r->mirror;
    int rc = 0;
    for (int i = 0; i < ty_graph_n_states(m->g) && rc == 0; i++) {
        size_t bytes = ty_type_bytes(&ty_graph_state(m->g, i)->type);
        if (m->is_part[i])
            continue;
        void *own = malloc(bytes + 1);
        rc = own ? ty_cuda_fetch(r->cuda, i, own, err) : ty_error_set(err, TY_E_LIMIT, "no memory to compare states");
        if (rc == 0 && memcmp(own, m->opt.each.state[i], bytes) != 0)
            rc = ty_error_set(err, TY_E_INTERNAL, "the state \"%s\" is not that of GPU %d",
                              ty_graph_state(m->g, i)->name, m->replica[0].device);
        free(own);
    }
    return rc;
}

/* ---- the caller's side ---- */

int ty_mirror_upload(ty_mirror *m, ty_error *err)
{
    return mirror_do(m, mirror_upload, err);
}

int ty_mirror_download(ty_mirror *m, ty_error *err)
{
    return mirror_do(m, mirror_download, err);
}

int ty_mirror_start(ty_mirror *m, int plan, const void *const *inputs, ty_error *err)
{
    m->at_plan = plan;
    m->inputs = inputs;
    return mirror_do(m, mirror_start, err);
}

int ty_mirror_finish(ty_mirror *m, int plan, ty_error *err)
{
    m->at_plan = plan;
    return mirror_do(m, mirror_finish, err);
}

int ty_mirror_drain(ty_mirror *m, int plan, ty_error *err)
{
    m->at_plan = plan;
    return mirror_do(m, mirror_drain, err);
}

const void *ty_mirror_value(const ty_mirror *m, int plan, ty_val v)
{
    return ty_cuda_value(m->replica[0].cuda, plan, v);
}

static int mirror_run_timed(mirror_replica *r, ty_error *err)
{
    mirror_take_rows(r);
    return ty_cuda_run_timed(r->cuda, r->mirror->at_plan, r->input, r->call_ns, err);
}

int ty_mirror_run_timed(ty_mirror *m, int plan, const void *const *inputs, int64_t *call_ns, ty_error *err)
{
    int n = ty_cuda_n_calls(m->replica[0].cuda, plan);
    for (int i = 0; i < m->opt.n; i++)
        if (!m->replica[i].call_ns || m->n_timed < n)
            m->replica[i].call_ns = TY_NEW_ARRAY(&m->arena, int64_t, n + 1);
    m->n_timed = n > m->n_timed ? n : m->n_timed;
    m->at_plan = plan;
    m->inputs = inputs;
    if (mirror_do(m, mirror_run_timed, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        call_ns[i] = m->replica[0].call_ns[i];
        for (int k = 1; k < m->opt.n; k++)
            call_ns[i] = m->replica[k].call_ns[i] > call_ns[i] ? m->replica[k].call_ns[i] : call_ns[i];
    }
    return 0;
}

int ty_mirror_divide(ty_mirror *m, int state, ty_error *err)
{
    m->is_part[state] = true;
    for (int i = 1; i < m->opt.n; i++) {
        mirror_replica *r = &m->replica[i];
        r->state[state] = calloc(1, ty_type_bytes(&ty_graph_state(m->g, state)->type) + 1);
        if (!r->state[state])
            return ty_error_set(err, TY_E_LIMIT, "no memory for the state \"%s\" of GPU %d",
                                ty_graph_state(m->g, state)->name, r->device);
    }
    return 0;
}

int ty_mirror_n(const ty_mirror *m)
{
    return m->opt.n;
}

void *ty_mirror_state(const ty_mirror *m, int number, int state)
{
    return m->replica[number].state[state];
}

const ty_cuda *ty_mirror_first(const ty_mirror *m)
{
    return m->replica[0].cuda;
}

ty_cuda *ty_mirror_alone(const ty_mirror *m)
{
    return m->opt.n == 1 ? m->replica[0].cuda : NULL;
}

const ty_cuda_report *ty_mirror_report_of(const ty_mirror *m)
{
    return ty_cuda_report_of(m->replica[0].cuda);
}

int ty_mirror_check(ty_mirror *m, ty_error *err)
{
    return mirror_do(m, mirror_compare, err);
}
