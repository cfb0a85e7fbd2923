/* threads.c - ranks that are threads of one process. A group is a board on which every rank posts its call; when all
 * have, each does its share of the work in the memory of all (nothing is copied that need not be), and when all have
 * done that, the call is over.
 *
 * A call is carried out in start(), by the comm's thread of each rank. Sums are in rank order.
 */
#include "dist/comm/engine.h"
#include "dist/comm/event.h"
#include "dist/comm/reduce.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 256 };

typedef struct split_post {
    int color, key;
    ty_engine_group *made;
} split_post;

/* What the ends of a group share. */
typedef struct board {
    pthread_mutex_t lock;
    comm_event changed;
    int size, open, arrived;
    uint64_t round;              /* of meetings of all */
    int left;                    /* a rank that closed its end, or -1 */
    const ty_engine_call **call; /* [size] */
    split_post *split;           /* [size] */
} board;

struct ty_engine_group {
    board *board;
    int rank;
};

static void board_free(board *b)
{
    if (!b)
        return;
    pthread_mutex_destroy(&b->lock);
    free(b->call);
    free(b->split);
    free(b);
}

static board *board_new(int size)
{
    board *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    pthread_mutex_init(&b->lock, NULL);
    b->size = b->open = size;
    b->left = -1;
    b->call = calloc((size_t)size, sizeof *b->call);
    b->split = calloc((size_t)size, sizeof *b->split);
    if (b->call && b->split)
        return b;
    board_free(b);
    return NULL;
}

static int no_memory(ty_error *err)
{
    return ty_error_set(err, TY_E_LIMIT, "no memory for a group of ranks");
}

int ty_engine_threads_open(int size, ty_engine_group **group, ty_error *err)
{
    if (size < 1 || size > THREADS_MAX)
        return ty_error_set(err, TY_E_RANGE, "a group of threads has 1 to %d ranks, not %d", THREADS_MAX, size);
    board *b = board_new(size);
    int n = 0;
    while (b && n < size && (group[n] = malloc(sizeof *group[n]))) {
        *group[n] = (ty_engine_group){b, n};
        n++;
    }
    if (b && n == size)
        return 0;
    while (n > 0)
        free(group[--n]);
    board_free(b);
    return no_memory(err);
}

/* Until all ranks are here. */
static int meet(ty_engine_group *g, ty_error *err)
{
    board *b = g->board;
    pthread_mutex_lock(&b->lock);
    uint64_t round = b->round;
    if (++b->arrived == b->size) {
        b->arrived = 0;
        b->round++;
        comm_event_raise(&b->changed);
    }
    while (b->round == round && b->left < 0) {
        unsigned seen = comm_event_now(&b->changed);
        pthread_mutex_unlock(&b->lock);
        comm_event_wait(&b->changed, seen);
        pthread_mutex_lock(&b->lock);
    }
    bool met = b->round != round;
    int left = b->left;
    pthread_mutex_unlock(&b->lock);
    return met ? 0 : ty_error_set(err, TY_E_LIBRARY, "rank %d has left, rank %d waits for it", left, g->rank);
}

/* Own share of a sum: a stretch of the elements, of all ranks. */
static void share_all_reduce(const board *b, int rank)
{
    const ty_engine_call *mine = b->call[rank];
    const void *in[THREADS_MAX];
    int64_t offset, n = ty_comm_part(mine->n, b->size, rank, &offset);
    size_t skip = (size_t)offset * (size_t)mine->elem_bytes;
    for (int r = 0; r < b->size; r++)
        in[r] = (const char *)b->call[r]->in + skip;
    char *out = (char *)mine->out + skip;
    ty_reduce_ranks(mine->dtype, mine->reduce, in, b->size, 1, mine->dtype, out, n);
    for (int r = 0; r < b->size; r++)
        if (r != rank && n)
            memcpy((char *)b->call[r]->out + skip, out, (size_t)n * (size_t)mine->elem_bytes);
}

static void copy_elems(const ty_engine_call *to, int64_t to_offset, const void *from, int64_t from_offset, int64_t n)
{
    size_t bytes = (size_t)to->elem_bytes;
    if (n)
        memmove((char *)to->out + (size_t)to_offset * bytes, (const char *)from + (size_t)from_offset * bytes,
                (size_t)n * bytes);
}

static void share_all_to_all(const board *b, int rank)
{
    const ty_engine_call *to = b->call[rank];
    for (int r = 0; r < b->size; r++)
        copy_elems(to, to->out_offsets[r], b->call[r]->in, b->call[r]->in_offsets[rank], to->out_counts[r]);
}

static void share_all_gather(const board *b, int rank)
{
    const ty_engine_call *to = b->call[rank];
    for (int r = 0; r < b->size; r++) {
        const ty_engine_call *from = b->call[r];
        if (from->in)
            copy_elems(to, to->out_offsets[r], from->in, 0, to->out_counts[r]);
        else if (r != rank)
            copy_elems(to, to->out_offsets[r], from->out, from->out_offsets[r], to->out_counts[r]);
    }
}

static void share_broadcast(const board *b, int rank)
{
    const ty_engine_call *to = b->call[rank];
    if (rank != to->root)
        copy_elems(to, 0, b->call[to->root]->out, 0, to->n);
}

static void share_barrier(const board *b, int rank)
{
    (void)b, (void)rank;
}

static void (*const shares[])(const board *b, int rank) = {
    [TY_ENGINE_ALL_REDUCE] = share_all_reduce, [TY_ENGINE_ALL_TO_ALL] = share_all_to_all,
    [TY_ENGINE_ALL_GATHER] = share_all_gather, [TY_ENGINE_BROADCAST] = share_broadcast,
    [TY_ENGINE_BARRIER] = share_barrier,
};

/* A call that does not fit the one of rank 0 would write beyond somebody's memory. All ranks look, so that all stop.
 * Other engines cannot know this; `checked` comms find it before they start. */
static int check_calls(const board *b, ty_error *err)
{
    const ty_engine_call *first = b->call[0];
    for (int r = 1; r < b->size; r++) {
        const ty_engine_call *c = b->call[r];
        if (c->kind != first->kind || c->elem_bytes != first->elem_bytes || c->n != first->n ||
            c->root != first->root || c->dtype != first->dtype || c->reduce != first->reduce)
            return ty_error_set(err, TY_E_GRAPH, "rank %d and rank 0 are in different collectives", r);
    }
    return 0;
}

static int threads_start(ty_engine_group *g, const ty_engine_call *call, ty_error *err)
{
    board *b = g->board;
    b->call[g->rank] = call;
    if (meet(g, err) < 0)
        return -1;
    int rc = check_calls(b, err);
    if (rc == 0)
        shares[call->kind](b, g->rank);
    return meet(g, err) < 0 ? -1 : rc;
}

static int threads_test(ty_engine_group *g, bool *done, ty_error *err)
{
    (void)g, (void)err;
    *done = true;
    return 0;
}

static int threads_rank(const ty_engine_group *g)
{
    return g->rank;
}

static int threads_size(const ty_engine_group *g)
{
    return g->board->size;
}

static int threads_host(ty_engine_group *g, int *host, ty_error *err)
{
    (void)g, (void)err;
    *host = 0;
    return 0;
}

/* Ranks of one color, in the order of (key, rank), with the place of `rank` among them. */
static int same_color(const board *b, int rank, int *member, int *place)
{
    int n = 0;
    for (int r = 0; r < b->size; r++)
        if (b->split[r].color == b->split[rank].color) {
            int at = n++;
            for (; at > 0 && b->split[member[at - 1]].key > b->split[r].key; at--)
                member[at] = member[at - 1];
            member[at] = r;
        }
    *place = 0;
    while (member[*place] != rank)
        ++*place;
    return n;
}

/* The first rank of a color makes the ends of all. */
static int threads_split(ty_engine_group *g, int color, int key, ty_engine_group **out, ty_error *err)
{
    board *b = g->board;
    int member[THREADS_MAX], place = 0;
    ty_engine_group *made[THREADS_MAX];
    *out = NULL;
    b->split[g->rank] = (split_post){color, key, NULL};
    if (meet(g, err) < 0)
        return -1;
    int n = color < 0 ? 0 : same_color(b, g->rank, member, &place);
    if (n && place == 0 && ty_engine_threads_open(n, made, NULL) == 0)
        for (int i = 0; i < n; i++)
            b->split[member[i]].made = made[i];
    if (meet(g, err) < 0)
        return -1;
    *out = b->split[g->rank].made;
    if (meet(g, err) < 0) /* all have taken theirs */
        return -1;
    return color < 0 || *out ? 0 : no_memory(err);
}

static void threads_close(ty_engine_group *g, bool cleanly)
{
    (void)cleanly;
    if (!g)
        return;
    board *b = g->board;
    pthread_mutex_lock(&b->lock);
    if (b->left < 0)
        b->left = g->rank;
    int open = --b->open;
    comm_event_raise(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (!open)
        board_free(b);
    free(g);
}

const ty_engine ty_engine_threads = {
    .name = "threads",
    .rank = threads_rank,
    .size = threads_size,
    .split = threads_split,
    .host = threads_host,
    .start = threads_start,
    .test = threads_test,
    .close = threads_close,
};
