/* comm.c - see comm.h. Ends are opened and closed. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "dist/comm/comm_state.h"

#include "dist/plugin.h"
#include "dist/page.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 19, PIECE_MIN_BYTES = 4096, PIECE_MAX_BYTES = 1 << 28 };

/* --- opening --- */

static int cores_of_process(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Has the comm's thread a core that no computing thread uses? */
static bool has_own_core(const ty_comm *c)
{
    int cores = c->options.cores ? c->options.cores : cores_of_process() / c->local_size;
    const char *omp = getenv("OMP_NUM_THREADS");
    int threads = c->options.threads ? c->options.threads : omp ? atoi(omp) : cores;
    return cores > (threads > 0 ? threads : cores);
}

/* A number of each rank, to all. */
static int gather_numbers(ty_comm *c, int32_t own, int32_t *all, ty_error *err)
{
    int64_t *counts = c->slot[0].counts[0], *offsets = c->slot[0].counts[1];
    for (int r = 0; r < c->size; r++) {
        counts[r] = 1;
        offsets[r] = r;
    }
    ty_engine_call call = {.kind = TY_ENGINE_ALL_GATHER,
                           .elem_bytes = sizeof own,
                           .in = &own,
                           .out = all,
                           .out_counts = counts,
                           .out_offsets = offsets};
    return ty_comm_call(c, c->slot[0].all, &call, err);
}

/* Which ranks are on this host, and whether all hosts have as many. */
static int count_local(ty_comm *c, ty_error *err)
{
    int32_t own = 0, host[COMM_MAX_RANKS], n_like_own = 0;
    if (c->engine->host(c->slot[0].all, &own, err) < 0)
        return -1;
    if (c->options.ranks_per_host)
        own = c->rank / c->options.ranks_per_host;
    if (gather_numbers(c, own, host, err) < 0)
        return -1;
    c->host = own;
    for (int r = 0; r < c->size; r++) {
        c->local_size += host[r] == own;
        c->local_rank += r < c->rank && host[r] == own;
    }
    for (int r = 0; r < c->size; r++) {
        int like = 0;
        for (int k = 0; k < c->size; k++)
            like += host[k] == host[r];
        n_like_own += like == c->local_size;
    }
    c->even = n_like_own == c->size;
    return 0;
}

static int make_slot(ty_comm *c, comm_slot *slot, ty_error *err)
{
    size_t bytes = (size_t)c->options.piece_bytes + (size_t)c->size * sizeof(double);
    bytes = (bytes + 63) / 64 * 64;
    for (int i = 0; i < 4; i++)
        slot->counts[i] = calloc((size_t)c->size, sizeof *slot->counts[i]);
    slot->sent = aligned_alloc(64, bytes);
    slot->got = aligned_alloc(64, bytes);
    bool whole = slot->counts[0] && slot->counts[1] && slot->counts[2] && slot->counts[3];
    if (!whole || !slot->sent || !slot->got)
        return ty_error_set(err, TY_E_LIMIT, "no memory for pieces of %lld bytes", (long long)c->options.piece_bytes);
    return 0;
}

static void free_slot(ty_comm *c, comm_slot *slot, bool cleanly)
{
    ty_engine_group *const groups[] = {slot->local, slot->cross, slot->all};
    for (int i = 0; i < 3; i++)
        if (groups[i])
            c->engine->close(groups[i], cleanly);
    for (int i = 0; i < 4; i++)
        free(slot->counts[i]);
    free(slot->sent);
    free(slot->got);
}

/* The comm's own part of opening: no other rank is needed. Takes the groups, which are NULL where they are to be made
 * together. */
static int comm_new(const ty_engine *engine, ty_engine_group *const group[COMM_SLOTS], const ty_comm_options *o,
                    ty_comm **comm, ty_error *err)
{
    ty_comm *c = calloc(1, sizeof *c);
    *comm = c;
    if (!c) {
        for (int s = 0; s < COMM_SLOTS; s++)
            if (group[s])
                engine->close(group[s], false);
        return ty_error_set(err, TY_E_LIMIT, "no memory for a comm");
    }
    c->engine = engine;
    c->options = *o;
    if (!c->options.piece_bytes)
        c->options.piece_bytes = PIECE_BYTES;
    c->rank = engine->rank(group[0]);
    c->size = engine->size(group[0]);
    for (int s = 0; s < COMM_SLOTS; s++)
        c->slot[s].all = group[s];
    if (c->size > COMM_MAX_RANKS)
        return ty_error_set(err, TY_E_LIMIT, "%d ranks, at most %d are possible", c->size, COMM_MAX_RANKS);
    c->end = &c->ops;
    pthread_mutex_init(&c->lock, NULL);
    c->start = calloc((size_t)c->size + 1, sizeof *c->start);
    int rc = c->start ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for the parts of %d ranks", c->size);
    for (int s = 0; s < COMM_SLOTS; s++) {
        rc = rc < 0 ? rc : make_slot(c, &c->slot[s], err);
    }
    return rc;
}

/* The part that all ranks do together, unless it is done. */
static int comm_meet(ty_comm *c, ty_error *err)
{
    for (int s = 1; s < COMM_SLOTS; s++)
        if (!c->slot[s].all && c->engine->split(c->slot[0].all, 0, c->rank, &c->slot[s].all, err) < 0)
            return -1;
    if (!c->local_size && count_local(c, err) < 0)
        return -1;
    c->own_core = has_own_core(c);
    if (c->options.timeline && ty_timeline_open(c->options.timeline, c->rank, &c->timeline, err) < 0)
        return -1;
    c->options.timeline = NULL; /* the caller's */
    return 0;
}

static int check_options(const ty_comm_options *o, ty_error *err)
{
    if (o->piece_bytes && (o->piece_bytes < PIECE_MIN_BYTES || o->piece_bytes > PIECE_MAX_BYTES))
        return ty_error_set(err, TY_E_RANGE, "a piece has %d to %d bytes, not %lld", PIECE_MIN_BYTES, PIECE_MAX_BYTES,
                            (long long)o->piece_bytes);
    if (o->ranks_per_host < 0)
        return ty_error_set(err, TY_E_RANGE, "%d ranks per host", o->ranks_per_host);
    return 0;
}

/* An end from its first group. */
static int open_end(const ty_engine *engine, ty_engine_group *group, const ty_comm_options *o, ty_comm **comm,
                    ty_error *err)
{
    ty_engine_group *groups[COMM_SLOTS] = {group};
    if (comm_new(engine, groups, o, comm, err) == 0 && comm_meet(*comm, err) == 0)
        return 0;
    ty_comm_close(*comm, false);
    *comm = NULL;
    return ty_error_wrap(err, "dist");
}

/* The engine's name, by the environment where none is given: who started us says how many we are. */
static const char *engine_name(const ty_comm_options *o)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"};
    const char *named = o->engine ? o->engine : getenv("TRAINYARD_ENGINE");
    for (int i = 0; i < 2 && !named; i++)
        if (getenv(sizes[i]) && atoi(getenv(sizes[i])) > 1)
            named = "mpi";
    return named ? named : "self";
}

int ty_comm_open(const ty_comm_options *options, ty_comm **comm, ty_error *err)
{
    ty_comm_options full = options ? *options : (ty_comm_options){0};
    const ty_comm_options *o = &full;
    const char *name = engine_name(o);
    const ty_engine *engine;
    ty_engine_group *world = NULL;
    *comm = NULL;
    if (!full.timeline)
        full.timeline = getenv(TY_TIMELINE_VARIABLE);
    if (strcmp(name, "self") == 0)
        return ty_comm_open_threads(o, 1, comm, err);
    if (strcmp(name, "mpi") != 0)
        return ty_error_set(err, TY_E_CONFIG, "dist: there is no engine \"%s\", only \"self\" and \"mpi\"", name);
    if (check_options(o, err) < 0 || ty_plugin_open(name, TY_ENGINE_VERSION, (const void **)&engine, err) < 0)
        return ty_error_wrap(err, "dist");
    if (engine->open(&world, err) == 0)
        return open_end(engine, world, o, comm, err);
    if (world)
        engine->close(world, false);
    return ty_error_wrap(err, "dist");
}

static int open_thread(ty_engine_group *const group[COMM_SLOTS], const ty_comm_options *o, ty_comm **comm,
                       ty_error *err)
{
    if (comm_new(&ty_engine_threads, group, o, comm, err) < 0)
        return -1;
    ty_comm *c = *comm;
    int per_host = o->ranks_per_host ? o->ranks_per_host : c->size;
    c->host = c->rank / per_host;
    c->local_rank = c->rank % per_host;
    c->local_size = per_host < c->size - c->host * per_host ? per_host : c->size - c->host * per_host;
    c->even = c->size % per_host == 0;
    return comm_meet(c, err);
}

int ty_comm_open_threads(const ty_comm_options *options, int size, ty_comm **comm, ty_error *err)
{
    ty_comm_options none = {0};
    const ty_comm_options *o = options ? options : &none;
    ty_engine_group **group = size > 0 ? calloc((size_t)size * COMM_SLOTS, sizeof *group) : NULL;
    int rc = check_options(o, err), opened = 0;
    for (int s = 0; s < COMM_SLOTS && rc == 0; s++, opened += rc == 0)
        rc = ty_engine_threads_open(size, group + (size_t)s * (size_t)size, err);
    for (int r = 0; r < size && group && opened; r++) {
        ty_engine_group *own[COMM_SLOTS];
        for (int s = 0; s < COMM_SLOTS; s++)
            own[s] = group[(size_t)s * (size_t)size + (size_t)r];
        comm[r] = NULL;
        if (rc == 0)
            rc = open_thread(own, o, &comm[r], err);
        else
            for (int s = 0; s < opened; s++)
                ty_engine_threads.close(own[s], false);
    }
    for (int r = 0; r < size && rc < 0 && opened; r++) {
        ty_comm_close(comm[r], false);
        comm[r] = NULL;
    }
    free(group);
    return rc < 0 ? ty_error_wrap(err, "dist") : 0;
}

int ty_comm_dup(ty_comm *c, ty_comm **dup, ty_error *err)
{
    ty_engine_group *group = NULL;
    *dup = NULL;
    if (c->engine->split(c->slot[0].all, 0, c->rank, &group, err) < 0)
        return ty_error_wrap(err, "dist");
    ty_comm_options o = c->options;
    o.stream++;
    if (open_end(c->engine, group, &o, dup, err) < 0)
        return -1;
    (*dup)->timeline = ty_timeline_share(c->timeline);
    return 0;
}

int ty_comm_subset(ty_comm *c, const int *ranks, int n, ty_comm **part, ty_error *err)
{
    ty_engine_group *group = NULL;
    int key = -1;
    *part = NULL;
    for (int i = 0; i < n; i++)
        if (ranks[i] == c->rank)
            key = i;
    if (c->engine->split(c->slot[0].all, key < 0 ? -1 : 0, key < 0 ? 0 : key, &group, err) < 0)
        return ty_error_wrap(err, "dist");
    ty_comm_options o = c->options;
    o.page = NULL; /* what some of the ranks do is no measure for the others */
    return group ? open_end(c->engine, group, &o, part, err) : 0;
}

int ty_comm_rank(const ty_comm *c)
{
    return c->rank;
}

int ty_comm_size(const ty_comm *c)
{
    return c->size;
}

int ty_comm_local_rank(const ty_comm *c)
{
    return c->local_rank;
}

int ty_comm_local_size(const ty_comm *c)
{
    return c->local_size;
}

void ty_comm_close(ty_comm *c, bool cleanly)
{
    if (!c)
        return;
    ty_comm_queue_end(c, cleanly);
    for (int s = COMM_SLOTS - 1; s >= 0; s--)
        free_slot(c, &c->slot[s], cleanly && c->failed.code == TY_E_NONE);
    pthread_mutex_destroy(&c->lock);
    ty_timeline_close(c->timeline);
    free(c->start);
    free(c);
}
