/* libnccl.c - a stand-in for NCCL: replicas are threads of this process or other processes, whose calls meet in shared
 * memory when their streams run them.
 *
 * Sums are taken in the type of the numbers, in an order that depends on where an element lies in the operand, as those
 * of rings do; all get the same bits. Calls that do
 * not fit each other, operands and results that overlap otherwise than NCCL allows, and a replica that is waited for in
 * vain end the process. As with NCCL, what waits for a replica
 * that died waits on until the communicator is aborted; that one died is known to who asks.
 *
 * Ranks are connected late, as NCCL 2.28 does it unless told otherwise (NCCL_RUNTIME_CONNECT): who first asks for a
 * kind of call on a communicator waits until all its ranks do. In a capture that ends the process.
 *
 *     TY_FAKE_NCCL=3            what connecting answers
 *     TY_FAKE_NCCL_REFUSED=1,2  the second call that rank 1 asks for is refused
 *     TY_FAKE_NCCL_HELD=BYTES   what connecting for a kind of call takes of a device's memory
 *     TY_FAKE_NCCL_WRONG=1      sums are wrong in their first number
 *     TY_FAKE_NCCL_DIR=FOLDER   where processes meet (/dev/shm)
 *     TY_FAKE_NCCL_DEAF=1       nobody notices that a replica died
 *     TY_FAKE_NCCL_STUCK=6,5    the fifth call of replica 0 never ends, and NCCL then says error 6 (0: nothing)
 *     NCCL_HOSTID=NAME          of the host, as NCCL: a GPU of a host stands in a communicator once
 */
#define _GNU_SOURCE
#include "tests/fakes/gpu/element.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 8, PATIENCE_S = 120, LOOK_NS = 5000000, TEXT_BYTES = 64, NAME_BYTES = 112, PATH_BYTES = 512 };
enum { RING_ELEMS = 8 }; /* neighbours that are added up in one order */
enum { INVALID = 4, INVALID_USAGE = 5, REMOTE = 6 };
#define HEAD_BYTES ((size_t)1 << 16)
#define SLOT_BYTES ((size_t)256 << 20) /* the largest operand; only what is used takes memory */

typedef enum kind { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, N_KINDS } kind;

/* What all ranks of a communicator see. Each call has two meetings: all have come, all have read. */
typedef struct board {
    uint32_t meeting, here;
    uint32_t asking[N_KINDS]; /* ranks that have come to their first call of a kind */
    struct {
        uint32_t has_left;
        int32_t device, color, key;
        char host[TEXT_BYTES];
        kind kind; /* the call it has come with */
        size_t n;
        unsigned type, how;
        int root;
    } rank[MAX_RANKS];
} board;

struct ncclComm {
    board *board;              /* and a slot for the operand of each rank */
    int n, rank, device, file; /* file: -1 among threads; a rank that lives has its byte of it locked */
    int n_splits, n_calls, n_asked, error;
    bool connected[N_KINDS];
    uint32_t aborted;
    int *n_users;    /* among threads: communicators that were not given back */
    ncclComm_t gone; /* that was aborted before it */
    char name[NAME_BYTES];
    fake_driver driver;
};

typedef struct call {
    ncclComm_t comm;
    kind kind;
    const char *from;
    char *to;
    size_t n; /* as NCCL counts: of REDUCE_SCATTER results, of ALL_GATHER operands, of ALL_TO_ALL a part */
    unsigned type, how;
    int root;
    const char *part_from[MAX_RANKS]; /* ALL_TO_ALL */
    char *part_to[MAX_RANKS];
} call;

/* Between ncclGroupStart and ncclGroupEnd of a thread: a part to each and one from each. */
static _Thread_local struct {
    bool open;
    int n_sent, n_received;
    CUstream stream;
    call call;
} group;

unsigned ncclGetVersion(int *version)
{
    *version = 22809;
    return 0;
}

const char *ncclGetErrorString(unsigned result)
{
    return result == 3               ? "internal error"
           : result == INVALID       ? "invalid argument"
           : result == INVALID_USAGE ? "invalid usage"
           : result == REMOTE        ? "remote process exited or there was a network error"
                                     : "an error of the stand-in";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "the stand-in's words";
}

/* ---- meeting ---- */

static size_t board_bytes(int n)
{
    return HEAD_BYTES + (size_t)n * SLOT_BYTES;
}

static char *slot(const struct ncclComm *c, int rank)
{
    return (char *)c->board + HEAD_BYTES + (size_t)rank * SLOT_BYTES;
}

/* Until all ranks are here; false if somebody of this process has called it off. */
static bool meet(ncclComm_t c)
{
    board *b = c->board;
    const struct timespec look = {.tv_nsec = LOOK_NS};
    uint32_t meeting = __atomic_load_n(&b->meeting, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&b->here, 1, __ATOMIC_SEQ_CST) == (uint32_t)c->n) {
        __atomic_store_n(&b->here, 0, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&b->meeting, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &b->meeting, FUTEX_WAKE, MAX_RANKS, NULL, NULL, 0);
        return !__atomic_load_n(&c->aborted, __ATOMIC_SEQ_CST);
    }
    for (time_t end = time(NULL) + PATIENCE_S; __atomic_load_n(&b->meeting, __ATOMIC_SEQ_CST) == meeting;) {
        if (__atomic_load_n(&c->aborted, __ATOMIC_SEQ_CST))
            return false;
        if (time(NULL) > end) {
            fprintf(stderr, "stand-in NCCL: rank %d waits for others in vain\n", c->rank);
            abort();
        }
        syscall(SYS_futex, &b->meeting, FUTEX_WAIT, meeting, &look, NULL, 0);
    }
    return !__atomic_load_n(&c->aborted, __ATOMIC_SEQ_CST);
}

/* ---- connecting ---- */

static unsigned new_comm(int n, int rank, ncclComm_t *out)
{
    const char *fail = getenv("TY_FAKE_NCCL");
    ncclComm_t c = calloc(1, sizeof *c);
    *out = NULL;
    *c = (struct ncclComm){.n = n, .rank = rank, .file = -1};
    if (fail || n > MAX_RANKS || !fake_driver_find(&c->driver)) {
        free(c);
        return fail ? (unsigned)atoi(fail) : INVALID;
    }
    c->device = c->driver.device;
    *out = c;
    return 0;
}

unsigned ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
    unsigned status = 0;
    int *n_users = malloc(sizeof *n_users);
    *n_users = n;
    board *b = mmap(NULL, board_bytes(n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < n && status == 0; i++) {
        for (int k = 0; k < i; k++)
            if (devices[k] == devices[i])
                return INVALID;
        status = new_comm(n, i, &comms[i]);
        if (status == 0) {
            comms[i]->board = b;
            comms[i]->n_users = n_users;
        }
    }
    return b == MAP_FAILED ? INVALID : status;
}

unsigned ncclGetUniqueId(ncclUniqueId *id)
{
    static int n_made;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, NAME_BYTES, "ty-nccl-%ld-%d", (long)getpid(), n_made++);
    return 0;
}

static struct flock own_byte(int rank)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
}

static void find_path(const struct ncclComm *c, char out[PATH_BYTES])
{
    const char *folder = getenv("TY_FAKE_NCCL_DIR");
    snprintf(out, PATH_BYTES, "%s/%s", folder ? folder : "/dev/shm", c->name);
}

static bool is_twice(const struct ncclComm *c)
{
    for (int i = 0; i < c->n; i++)
        if (i != c->rank && c->board->rank[i].device == c->device &&
            strcmp(c->board->rank[i].host, c->board->rank[c->rank].host) == 0)
            return true;
    return false;
}

/* The file is fresh memory to who comes first; the name is not needed when all are here. */
static unsigned join(ncclComm_t c)
{
    char path[PATH_BYTES];
    const char *host = getenv("NCCL_HOSTID");
    struct flock own = own_byte(c->rank);
    find_path(c, path);
    c->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (c->file < 0 || ftruncate(c->file, (off_t)board_bytes(c->n)) < 0 || fcntl(c->file, F_OFD_SETLK, &own) < 0)
        return INVALID;
    c->board = mmap(NULL, board_bytes(c->n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, c->file, 0);
    if (c->board == MAP_FAILED)
        return INVALID;
    snprintf(c->board->rank[c->rank].host, TEXT_BYTES, "%s", host ? host : "this host");
    c->board->rank[c->rank].device = c->device;
    meet(c);
    unlink(path);
    bool twice = is_twice(c);
    meet(c);
    return twice ? INVALID_USAGE : 0;
}

unsigned ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
    unsigned status = new_comm(n, rank, comm);
    if (status)
        return status;
    if ((*comm)->device < 0)
        return INVALID; /* no current device */
    snprintf((*comm)->name, NAME_BYTES, "%.100s", id.internal);
    return join(*comm);
}

/* Those of one color, in the order of their keys. */
unsigned ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    const board *b = parent->board;
    int n = 0, rank = 0;
    if (config || parent->file < 0)
        return INVALID;
    parent->board->rank[parent->rank].color = color;
    parent->board->rank[parent->rank].key = key;
    meet(parent);
    for (int i = 0; i < parent->n; i++) {
        n += b->rank[i].color == color;
        rank += b->rank[i].color == color && b->rank[i].key < key;
    }
    meet(parent);
    unsigned status = new_comm(n, rank, out);
    if (status)
        return status;
    snprintf((*out)->name, NAME_BYTES, "%.90s.%d.%d", parent->name, parent->n_splits++, color);
    return join(*out);
}

/* ---- what becomes of it ---- */

unsigned ncclCommGetAsyncError(ncclComm_t c, unsigned *error)
{
    *error = (unsigned)__atomic_load_n(&c->error, __ATOMIC_SEQ_CST);
    for (int i = 0; c->file >= 0 && i < c->n && !getenv("TY_FAKE_NCCL_DEAF"); i++) {
        struct flock other = own_byte(i);
        if (i == c->rank || fcntl(c->file, F_OFD_GETLK, &other) < 0 || other.l_type != F_UNLCK)
            continue;
        if (!__atomic_load_n(&c->board->rank[i].has_left, __ATOMIC_SEQ_CST))
            *error = REMOTE;
    }
    return 0;
}

/* Between processes all do so and wait for each other, but for those that died. */
static void take_leave(ncclComm_t c)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    __atomic_store_n(&c->board->rank[c->rank].has_left, 1, __ATOMIC_SEQ_CST);
    time_t end = time(NULL) + PATIENCE_S;
    for (int i = 0; c->file >= 0 && i < c->n;) {
        struct flock other = own_byte(i);
        bool lives = i != c->rank && fcntl(c->file, F_OFD_GETLK, &other) == 0 && other.l_type != F_UNLCK;
        if (!lives || __atomic_load_n(&c->board->rank[i].has_left, __ATOMIC_SEQ_CST)) {
            i++;
            continue;
        }
        if (time(NULL) > end) {
            fprintf(stderr, "stand-in NCCL: rank %d takes leave of rank %d in vain\n", c->rank, i);
            abort();
        }
        nanosleep(&look, NULL);
    }
}

unsigned ncclCommDestroy(ncclComm_t c)
{
    take_leave(c);
    if (c->file >= 0)
        close(c->file);
    if (!c->n_users || --*c->n_users == 0) {
        munmap(c->board, board_bytes(c->n));
        free(c->n_users);
    }
    free(c);
    return 0;
}

/* The communicator stays, where leak checkers find it: others may still be on their way out. */
unsigned ncclCommAbort(ncclComm_t c)
{
    static ncclComm_t gone;
    c->gone = __atomic_load_n(&gone, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(&gone, &c->gone, c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
    __atomic_store_n(&c->aborted, 1, __ATOMIC_SEQ_CST);
    return 0;
}

/* ---- arithmetic ---- */

static ty_dtype dtype_of(unsigned type)
{
    static const ty_dtype dtypes[] = {TY_I8, TY_U8, TY_I32, TY_U32, TY_I64, TY_U64, TY_F16, TY_F32, TY_F64, TY_BF16};
    return dtypes[type];
}

static int64_t whole_get(const char *at, int64_t i, ty_dtype type)
{
    int64_t v = 0;
    memcpy(&v, at + (size_t)i * ty_dtype_bytes(type), ty_dtype_bytes(type));
    return v;
}

enum { SUM, PRODUCT, MAX, MIN, AVERAGE };

#define COMBINE(how, x, y)                      \
    ((how) == PRODUCT ? (x) * (y)               \
     : (how) == MAX   ? ((y) > (x) ? (y) : (x)) \
     : (how) == MIN   ? ((y) < (x) ? (y) : (x)) \
                      : (x) + (y))

/* An average's parts are divided before they are added up, as NCCL does it. */
static void combine_float(const struct ncclComm *c, char *to, int64_t i, int64_t at, ty_dtype type, unsigned how)
{
    double part = how == AVERAGE ? 1.0 / c->n : 1.0;
    int first = (int)(at / RING_ELEMS % c->n);
    element_put(to, i, type, element_get(slot(c, first), at, type) * part);
    for (int r = 1; r < c->n; r++) {
        double x = element_get(to, i, type), y = element_get(slot(c, (first + r) % c->n), at, type) * part;
        element_put(to, i, type, COMBINE(how, x, y));
    }
}

/* Integers wrap in their own bytes; those that are compared are small here, so that a sign does not matter. */
static void combine_whole(const struct ncclComm *c, char *to, int64_t i, int64_t at, ty_dtype type, unsigned how)
{
    int64_t x = whole_get(slot(c, 0), at, type);
    for (int r = 1; r < c->n; r++) {
        int64_t y = whole_get(slot(c, r), at, type);
        x = COMBINE(how, x, y);
    }
    x = how == AVERAGE ? x / c->n : x;
    memcpy(to + (size_t)i * ty_dtype_bytes(type), &x, ty_dtype_bytes(type));
}

/* Of all ranks. */
static void combine(const struct ncclComm *c, char *to, size_t first, size_t n, ty_dtype type, unsigned how)
{
    for (size_t i = 0; i < n; i++)
        (ty_dtype_is_float(type) ? combine_float : combine_whole)(c, to, (int64_t)i, (int64_t)(first + i), type, how);
    if (n > 0 && getenv("TY_FAKE_NCCL_WRONG"))
        to[0] ^= 1;
}

static void take_result(const call *c)
{
    ty_dtype type = dtype_of(c->type);
    size_t bytes = c->n * ty_dtype_bytes(type);
    if (c->kind == REDUCE && c->root != c->comm->rank)
        return;
    if (c->kind == ALL_GATHER)
        for (int r = 0; r < c->comm->n; r++)
            memcpy(c->to + (size_t)r * bytes, slot(c->comm, r), bytes);
    else if (c->kind == BROADCAST)
        memcpy(c->to, slot(c->comm, c->root), bytes);
    else if (c->kind == ALL_TO_ALL)
        for (int r = 0; r < c->comm->n; r++)
            memcpy(c->part_to[r], slot(c->comm, r) + (size_t)c->comm->rank * bytes, bytes);
    else
        combine(c->comm, c->to, c->kind == REDUCE_SCATTER ? (size_t)c->comm->rank * c->n : 0, c->n, type, c->how);
}

static void check_same(const call *c)
{
    const board *b = c->comm->board;
    for (int i = 0; i < c->comm->n; i++) {
        if (b->rank[i].kind == c->kind && b->rank[i].n == c->n && b->rank[i].type == c->type &&
            b->rank[i].how == c->how && b->rank[i].root == c->root)
            continue;
        fprintf(stderr, "stand-in NCCL: rank %d is in call %d of %zu, rank %d in call %d of %zu\n", c->comm->rank,
                (int)c->kind, c->n, i, (int)b->rank[i].kind, b->rank[i].n);
        abort();
    }
}

static size_t operand_bytes(const call *c)
{
    size_t parts = c->kind == REDUCE_SCATTER || c->kind == ALL_TO_ALL ? (size_t)c->comm->n : 1;
    return parts * c->n * ty_dtype_bytes(dtype_of(c->type));
}

/* A call that never ends, until it is called off. */
static bool is_stuck(ncclComm_t c)
{
    int error = 0, number = 0;
    const char *text = getenv("TY_FAKE_NCCL_STUCK");
    const struct timespec look = {.tv_nsec = LOOK_NS};
    if (!text || sscanf(text, "%d,%d", &error, &number) != 2 || c->rank != 0 || ++c->n_calls != number)
        return false;
    __atomic_store_n(&c->error, error, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&c->aborted, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &c->aborted, FUTEX_WAIT, 0, &look, NULL, 0);
    return true;
}

static void run(const void *given)
{
    const call *c = given;
    board *b = c->comm->board;
    int me = c->comm->rank;
    if (is_stuck(c->comm) || __atomic_load_n(&c->comm->aborted, __ATOMIC_SEQ_CST))
        return;
    size_t part = c->n * ty_dtype_bytes(dtype_of(c->type));
    if (c->kind == ALL_TO_ALL)
        for (int r = 0; r < c->comm->n; r++)
            memcpy(slot(c->comm, me) + (size_t)r * part, c->part_from[r], part);
    else if (c->kind != BROADCAST || c->root == me)
        memcpy(slot(c->comm, me), c->from, operand_bytes(c));
    b->rank[me].kind = c->kind;
    b->rank[me].n = c->n;
    b->rank[me].type = c->type;
    b->rank[me].how = c->how;
    b->rank[me].root = c->root;
    if (!meet(c->comm))
        return;
    check_same(c);
    take_result(c);
    meet(c->comm);
}

/* ---- calls ---- */

/* What NCCL reads and writes is the same memory only where each rank's own part lies in its place of the whole. */
static void check_places(const call *c, size_t bytes, size_t all, const char *name)
{
    size_t own = bytes * (size_t)c->comm->rank;
    const char *from = c->from, *to = c->to;
    size_t n_from = c->kind == REDUCE_SCATTER ? all : bytes, n_to = c->kind == ALL_GATHER ? all : bytes;
    bool in_place = c->kind == REDUCE_SCATTER ? to == from + own
                    : c->kind == ALL_GATHER   ? from == to + own
                                              : from == to;
    if (in_place || from + n_from <= to || to + n_to <= from)
        return;
    fprintf(stderr, "stand-in NCCL: %s of %zu reads and writes the same memory, not in place\n", name, c->n);
    abort();
}

/* No part that is sent is one that is received. */
static void check_parts(const call *c, size_t bytes, const char *name)
{
    for (int i = 0; i < c->comm->n; i++)
        for (int k = 0; k < c->comm->n; k++)
            if (c->part_from[i] < c->part_to[k] + bytes && c->part_to[k] < c->part_from[i] + bytes) {
                fprintf(stderr, "stand-in NCCL: %s: what goes to %d is where the part of %d comes\n", name, i, k);
                abort();
            }
}

/* The host waits, as for messages of all other ranks; false if somebody of this process has called it off. */
static bool meet_first(ncclComm_t c, kind kind, const char *name)
{
    uint32_t *asking = &c->board->asking[kind], n = __atomic_add_fetch(asking, 1, __ATOMIC_SEQ_CST);
    const struct timespec look = {.tv_nsec = LOOK_NS};
    for (time_t end = time(NULL) + PATIENCE_S; n < (uint32_t)c->n; n = __atomic_load_n(asking, __ATOMIC_SEQ_CST)) {
        if (__atomic_load_n(&c->aborted, __ATOMIC_SEQ_CST))
            return false;
        if (time(NULL) > end) {
            fprintf(stderr, "stand-in NCCL: rank %d asks for its first %s, and others do not\n", c->rank, name);
            abort();
        }
        syscall(SYS_futex, asking, FUTEX_WAIT, n, &look, NULL, 0);
    }
    syscall(SYS_futex, asking, FUTEX_WAKE, MAX_RANKS, NULL, NULL, 0);
    return true;
}

/* What NCCL does for each algorithm, and for each peer of a send. */
static bool connect_for(const call *c, CUstream stream, const char *name)
{
    ncclComm_t comm = c->comm;
    const char *held = getenv("TY_FAKE_NCCL_HELD");
    if (comm->connected[c->kind])
        return true;
    if (comm->driver.is_captured(stream)) {
        fprintf(stderr, "stand-in NCCL: rank %d asks for its first %s in a capture, where nobody is connected\n",
                comm->rank, name);
        abort();
    }
    if (!meet_first(comm, c->kind, name))
        return false;
    comm->connected[c->kind] = true;
    comm->driver.hold(held ? strtoull(held, NULL, 10) : 0);
    return true;
}

static bool is_refused(ncclComm_t c)
{
    int rank = 0, number = 0;
    const char *text = getenv("TY_FAKE_NCCL_REFUSED");
    return ++c->n_asked && text && sscanf(text, "%d,%d", &rank, &number) == 2 && c->rank == rank &&
           c->n_asked == number;
}

static unsigned ask(call c, CUstream stream, const char *name)
{
    char text[TEXT_BYTES];
    if (is_refused(c.comm))
        return INVALID_USAGE;
    size_t bytes = c.n * ty_dtype_bytes(dtype_of(c.type)), all = bytes * (size_t)c.comm->n;
    if (__atomic_load_n(&c.comm->aborted, __ATOMIC_SEQ_CST) || operand_bytes(&c) > SLOT_BYTES || group.open)
        return INVALID;
    for (int r = 0; c.kind == ALL_TO_ALL && r < c.comm->n; r++) {
        c.comm->driver.check(c.part_from[r], bytes, name);
        c.comm->driver.check(c.part_to[r], bytes, name);
    }
    if (c.kind == ALL_TO_ALL)
        check_parts(&c, bytes, name);
    if (c.kind != ALL_TO_ALL) {
        check_places(&c, bytes, all, name);
        c.comm->driver.check(c.from, c.kind == REDUCE_SCATTER ? all : bytes, name);
        c.comm->driver.check(c.to, c.kind == ALL_GATHER ? all : bytes, name);
    }
    if (!connect_for(&c, stream, name))
        return INVALID;
    snprintf(text, sizeof text, "%s %zu %s", name, c.n, ty_dtype_text(dtype_of(c.type)));
    return c.comm->driver.work(stream, run, &c, sizeof c, text);
}

unsigned ncclAllReduce(const void *from, void *to, size_t n, unsigned type, unsigned how, ncclComm_t comm,
                       CUstream stream)
{
    const call c = {.comm = comm, .kind = ALL_REDUCE, .from = from, .to = to, .n = n, .type = type, .how = how};
    return ask(c, stream, "ncclAllReduce");
}

unsigned ncclReduce(const void *from, void *to, size_t n, unsigned type, unsigned how, int root, ncclComm_t comm,
                    CUstream stream)
{
    const call c = {
        .comm = comm, .kind = REDUCE, .from = from, .to = to, .n = n, .type = type, .how = how, .root = root};
    return ask(c, stream, "ncclReduce");
}

unsigned ncclBroadcast(const void *from, void *to, size_t n, unsigned type, int root, ncclComm_t comm, CUstream stream)
{
    const call c = {.comm = comm, .kind = BROADCAST, .from = from, .to = to, .n = n, .type = type, .root = root};
    return ask(c, stream, "ncclBroadcast");
}

unsigned ncclReduceScatter(const void *from, void *to, size_t n, unsigned type, unsigned how, ncclComm_t comm,
                           CUstream stream)
{
    const call c = {.comm = comm, .kind = REDUCE_SCATTER, .from = from, .to = to, .n = n, .type = type, .how = how};
    return ask(c, stream, "ncclReduceScatter");
}

unsigned ncclAllGather(const void *from, void *to, size_t n, unsigned type, ncclComm_t comm, CUstream stream)
{
    const call c = {.comm = comm, .kind = ALL_GATHER, .from = from, .to = to, .n = n, .type = type};
    return ask(c, stream, "ncclAllGather");
}

/* ---- parts to each: the one shape of a group that this stand-in knows ---- */

unsigned ncclGroupStart(void)
{
    memset(&group, 0, sizeof group);
    group.open = true;
    return 0;
}

/* All of a group have one communicator, stream, type and length, and each peer stands in it once. */
static bool fits(ncclComm_t comm, size_t n, unsigned type, int peer, CUstream stream)
{
    bool first = group.n_sent + group.n_received == 0;
    if (!group.open || peer < 0 || peer >= comm->n)
        return false;
    if (first) {
        group.stream = stream;
        group.call = (call){.comm = comm, .kind = ALL_TO_ALL, .n = n, .type = type};
    }
    return group.call.comm == comm && group.stream == stream && group.call.n == n && group.call.type == type;
}

unsigned ncclSend(const void *from, size_t n, unsigned type, int peer, ncclComm_t comm, CUstream stream)
{
    if (!fits(comm, n, type, peer, stream) || group.call.part_from[peer])
        return INVALID_USAGE;
    group.call.part_from[peer] = from;
    group.n_sent++;
    return 0;
}

unsigned ncclRecv(void *to, size_t n, unsigned type, int peer, ncclComm_t comm, CUstream stream)
{
    if (!fits(comm, n, type, peer, stream) || group.call.part_to[peer])
        return INVALID_USAGE;
    group.call.part_to[peer] = to;
    group.n_received++;
    return 0;
}

unsigned ncclGroupEnd(void)
{
    bool whole =
        group.open && group.n_sent == group.n_received && (group.n_sent == 0 || group.n_sent == group.call.comm->n);
    group.open = false;
    if (!whole)
        return INVALID_USAGE;
    return group.n_sent == 0 ? 0 : ask(group.call, group.stream, "ncclSend and ncclRecv");
}
