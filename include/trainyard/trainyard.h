/* trainyard/trainyard.h - collective communication for programs of your own that train on many hosts.
 *
 * Every process of a job (a rank) runs the same program on its own part of the data; gradients are summed over all
 * ranks as they become ready, and all ranks apply the same update. The names and the ways are those of Horovod and of
 * SageMaker's data parallel library.
 *
 *     #include <trainyard/trainyard.h>                  cc train.c $(pkg-config --cflags --libs trainyard)
 *
 *     if (trainyard_init(NULL) != TRAINYARD_OK)
 *         return fprintf(stderr, "%s\n", trainyard_error()), 1;
 *     int rank = trainyard_rank(), size = trainyard_size();
 *     ... weights, the same start everywhere:
 *     trainyard_broadcast(trainyard_f32(w, 10, 64), 0, NULL);
 *     for (...) {
 *         ... gradient of this rank's rows into g ...
 *         trainyard_allreduce(trainyard_f32(g, 10, 64), NULL, NULL);         the mean over ranks, in place
 *         ... update ...
 *     }
 *     trainyard_shutdown();
 *
 * HOW A PROGRAM BECOMES MANY RANKS
 *   Started by hand it is one rank, which needs no launcher and nothing but this library. Under mpirun, or under
 *   `train` with several hosts or processes, the environment says rank and size (RANK, WORLD_SIZE, LOCAL_RANK,
 *   LOCAL_WORLD_SIZE, or OMPI_COMM_WORLD_RANK and its kin), and the library reaches the other ranks through Open MPI,
 *   which it opens only then.
 *
 * THE ONE RULE
 *   All ranks make the same calls in the same order; all members of a process set, for calls on that set. Sets, sets of
 *   gradients and the world each have an order of their own. A call that differs on one rank (another operation, name,
 *   shape, type or root) fails on all of them with a text that says what both ranks asked for; none waits for ever, and
 *   the next call is a fresh one. A rank that has run out of data says so with trainyard_join. A rank that dies is the
 *   launcher's business: it ends the others.
 *
 * ERRORS
 *   Functions return TRAINYARD_OK (0) or a value >= 0, or one of the negative codes below. trainyard_error() is then
 * the text: what happened, expected and found, what to do. The text belongs to the calling thread and lives until its
 *   next failing call. Nothing is printed and the process is never ended, except where a function says so.
 *
 * MEMORY AND THREADS
 *   Tensors are dense, row-major views: the library never keeps one beyond its call, nor, for the _async forms, beyond
 *   trainyard_wait. Functions may be called from any thread; two threads that call on one set must agree on the order
 *   as ranks do.
 *
 * STOPPING
 *   trainyard_init catches SIGTERM unless the program has a handler of its own for it. What it means is agreed between
 *   ranks by the calls they make anyway: see trainyard_stop_requested.
 */
#ifndef TRAINYARD_TRAINYARD_H
#define TRAINYARD_TRAINYARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with what a program compiled against an older header would notice. */
#define TRAINYARD_API_VERSION 1
int trainyard_api_version(void); /* of the library: at least the header's */

/* ---- codes, types --------------------------------------------------------------------------------------------- */

enum {
    TRAINYARD_OK = 0,
    TRAINYARD_E_STATE = -1,      /* before init, after shutdown, a second init, a handle waited for twice */
    TRAINYARD_E_ARGUMENT = -2,   /* an argument that cannot be, here or (the text names it) on another rank */
    TRAINYARD_E_MISMATCH = -3,   /* ranks ask for different things */
    TRAINYARD_E_NOT_MEMBER = -4, /* this rank is not in that process set */
    TRAINYARD_E_LOST = -5,       /* another rank or the network failed, or another rank has shut down */
    TRAINYARD_E_START = -6,      /* init: the environment or the engine */
    TRAINYARD_E_MEMORY = -7,
    TRAINYARD_E_FILE = -8
};

/* Text of the last failure in this thread; "" if there was none. Never NULL. */
const char *trainyard_error(void);

typedef enum trainyard_dtype {
    TRAINYARD_BOOL = 0, /* one byte, 0 or 1. Sum and maximum are OR, product and minimum AND */
    TRAINYARD_I8 = 1,
    TRAINYARD_U8 = 2,
    TRAINYARD_I16 = 3,
    TRAINYARD_U16 = 4,
    TRAINYARD_I32 = 5,
    TRAINYARD_U32 = 6,
    TRAINYARD_I64 = 7,
    TRAINYARD_U64 = 8,
    TRAINYARD_F16 = 9,   /* IEEE half */
    TRAINYARD_BF16 = 10, /* the upper half of a float */
    TRAINYARD_F32 = 11,
    TRAINYARD_F64 = 12
} trainyard_dtype;

#define TRAINYARD_MAX_DIMS 8

/* A dense tensor in the caller's memory. ndim 0 is a single number. */
typedef struct trainyard_tensor {
    void *data;
    int32_t dtype; /* trainyard_dtype */
    int32_t ndim;  /* 0 to TRAINYARD_MAX_DIMS */
    int64_t shape[TRAINYARD_MAX_DIMS];
} trainyard_tensor;

/* A pointer to such a view, for the length of the enclosing block: trainyard_f32(w, 10, 64). In C; elsewhere, fill one.
 */
#define trainyard_view(pointer, element, ...)                                                          \
    (&(trainyard_tensor){.data = (void *)(pointer),                                                    \
                         .dtype = (element),                                                           \
                         .ndim = (int32_t)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1, \
                         .shape = {__VA_ARGS__}})
#define trainyard_f32(pointer, ...) trainyard_view(pointer, TRAINYARD_F32, __VA_ARGS__)
#define trainyard_f64(pointer, ...) trainyard_view(pointer, TRAINYARD_F64, __VA_ARGS__)
#define trainyard_i32(pointer, ...) trainyard_view(pointer, TRAINYARD_I32, __VA_ARGS__)
#define trainyard_i64(pointer, ...) trainyard_view(pointer, TRAINYARD_I64, __VA_ARGS__)

typedef enum trainyard_op {
    TRAINYARD_AVERAGE = 0, /* the sum over the number of ranks; of integers, cut towards zero */
    TRAINYARD_SUM = 1,
    TRAINYARD_MIN = 2,
    TRAINYARD_MAX = 3,
    TRAINYARD_PRODUCT = 4
} trainyard_op;

/* What a float32 travels as. Other types travel as they are. */
typedef enum trainyard_compression {
    TRAINYARD_COMPRESS_NONE = 0,
    TRAINYARD_COMPRESS_FP16 =
        1, /* half the bytes; beyond 65504 it is infinite. Averages are divided before they travel */
    TRAINYARD_COMPRESS_BF16 = 2 /* half the bytes, the range of float32, 8 bits of mantissa */
} trainyard_compression;

/* How a call is made. Everything may be left out (zero), and NULL leaves out all of it:
 * trainyard_with(.op = TRAINYARD_SUM, .name = "loss"). */
typedef struct trainyard_options {
    const char *name;    /* for messages; must be equal on all ranks */
    int32_t op;          /* trainyard_op, of reductions */
    int32_t compression; /* trainyard_compression, of reductions */
    double prescale;     /* what every rank's numbers are multiplied with before they are reduced; 0: not */
    double postscale;    /* and the result after that; 0: not */
    int32_t set;         /* process set; 0: all ranks */
    int32_t reserved[7]; /* 0 */
} trainyard_options;

#define trainyard_with(...) (&(trainyard_options){__VA_ARGS__})

/* ---- the job -------------------------------------------------------------------------------------------------- */

/* Left out (zero) or NULL: by the environment. */
typedef struct trainyard_settings {
    const char *engine;    /* "self" (one rank) or "mpi"; NULL: as the environment says */
    int32_t deterministic; /* 1: sums in the order of ranks, so that the bits depend neither on the sizes of messages
                              nor on which rank is where; TRAINYARD_DETERMINISTIC=1 says the same */
    int32_t own_signals;   /* 1: SIGTERM is left alone */
    int64_t piece_bytes;   /* what larger messages are cut into; 0: 1 MiB */
    int32_t reserved[8];   /* 0 */
} trainyard_settings;

/* Joins the job. Once in a process: a second call is refused, also after shutdown. */
int trainyard_init(const trainyard_settings *settings);
/* Leaves it, with all ranks: those that still call something get TRAINYARD_E_LOST. What is under way is waited for;
 * handles and gradients are gone afterwards. The library may be left without it only where the process ends badly. */
int trainyard_shutdown(void);
int trainyard_is_initialized(void); /* 1 between the two, else 0 */

int trainyard_rank(void); /* 0 ... size - 1, of all ranks of all hosts */
int trainyard_size(void);
int trainyard_local_rank(void); /* the same among the ranks of this host */
int trainyard_local_size(void);

/* ---- collectives ---------------------------------------------------------------------------------------------- */

/* out: shape and type of `in`; NULL: in place. */
int trainyard_allreduce(const trainyard_tensor *in, const trainyard_tensor *out, const trainyard_options *options);
/* n tensors of any types and shapes in as few messages as there are types. out NULL: in place. */
int trainyard_grouped_allreduce(const trainyard_tensor *in, const trainyard_tensor *out, int n,
                                const trainyard_options *options);

/* Rows of all ranks, in the order of ranks. First dimensions may differ between ranks (0 too), the others must not; a
 * tensor without dimensions counts as one row. `out` is filled: dtype, ndim and shape. With out->data NULL the memory
 * is made here (trainyard_free); else it holds out->shape[0] rows, and must hold all there are. */
int trainyard_allgather(const trainyard_tensor *in, trainyard_tensor *out, const trainyard_options *options);

/* Reduces, and leaves each rank its part of the rows: rows / size of them, and one more on the first rows % size ranks.
 * `out` as in trainyard_allgather. A tensor without dimensions is refused. */
int trainyard_reducescatter(const trainyard_tensor *in, trainyard_tensor *out, const trainyard_options *options);

/* Sends splits[r] rows of `in` to rank r, in order, and receives one part from each, in the order of ranks. splits: one
 * number a rank that add up to the rows of `in`, 0 too; NULL: equal parts. received: NULL, or room for one number a
 * rank, filled with the rows that came from each. `out` as in trainyard_allgather. */
int trainyard_alltoall(const trainyard_tensor *in, const int64_t *splits, trainyard_tensor *out, int64_t *received,
                       const trainyard_options *options);

/* The root's numbers on all ranks, in place. root is a rank of the world, also on a smaller set. */
int trainyard_broadcast(const trainyard_tensor *tensor, int root, const trainyard_options *options);
/* n of them at once: initial weights and state of the optimizer. */
int trainyard_broadcast_variables(const trainyard_tensor *tensors, int n, int root, const trainyard_options *options);

int trainyard_barrier(const trainyard_options *options);

/* For a rank that has no more data while others do: it takes part in whatever they call, with zeros in sums and
 * averages (which are still divided by the number of all ranks), as if it were not there in minima, maxima and
 * products, with no rows in gathers. Returns when all ranks have joined: the number of the one that did so last.
 * Broadcasts from a joined root and exchanges of all to all fail everywhere. All ranks must join; they may call again
 * after that. */
int trainyard_join(void);

/* ---- the same, beside the caller's own work --------------------------------------------------------------------- */

/* Begin, and return a handle (> 0) or a negative code. Calls are carried out in the order in which they were begun.
 * Tensors and lists of splits must stay where they are until trainyard_wait; names and options are copied. */
int64_t trainyard_allreduce_async(const trainyard_tensor *in, const trainyard_tensor *out,
                                  const trainyard_options *options);
int64_t trainyard_grouped_allreduce_async(const trainyard_tensor *in, const trainyard_tensor *out, int n,
                                          const trainyard_options *options);
int64_t trainyard_allgather_async(const trainyard_tensor *in, trainyard_tensor *out, const trainyard_options *options);
int64_t trainyard_reducescatter_async(const trainyard_tensor *in, trainyard_tensor *out,
                                      const trainyard_options *options);
int64_t trainyard_alltoall_async(const trainyard_tensor *in, const int64_t *splits, trainyard_tensor *out,
                                 int64_t *received, const trainyard_options *options);
int64_t trainyard_broadcast_async(const trainyard_tensor *tensor, int root, const trainyard_options *options);

int trainyard_poll(int64_t handle); /* 1: done, trainyard_wait will not wait; 0: not yet */
int trainyard_wait(int64_t handle); /* until it is done, and what came of it. The handle is gone then */

void trainyard_free(void *data); /* what a call made; NULL is fine */

/* ---- process sets ---------------------------------------------------------------------------------------------- */

/* Ranks that call something among themselves. Called by all ranks of the world with the same list (any order, none
 * twice); numbers within the set follow the list. Returns the set's number (> 0), equal on all ranks. At most 64. */
int trainyard_process_set(const int *ranks, int n);
int trainyard_process_set_rank(int set); /* this rank's number in it, or TRAINYARD_E_NOT_MEMBER */
int trainyard_process_set_size(int set);
/* By all ranks of the world; gradients of the set must be gone. */
int trainyard_process_set_free(int set);

/* ---- distributed gradients -------------------------------------------------------------------------------------- */

/* A set of parameters whose gradients are summed while the caller still computes the rest. They are packed into buckets
 * once; a bucket travels as soon as all its gradients are ready and those before it have gone.
 *
 *     trainyard_gradients *g;
 *     trainyard_gradients_new(parameters, n, NULL, &g);                 all ranks, the same list
 *     every step:
 *         for (layers, last to first) {
 *             ... backward of the layer, into trainyard_gradients_buffer(g, i) or memory of your own ...
 *             trainyard_gradients_ready(g, i, gradient);                returns at once
 *         }
 *         for (layers) {
 *             trainyard_gradients_wait_one(g, i);                       or trainyard_gradients_wait(g) for all at once
 *             ... update with the averaged gradient ...
 *         }
 *         trainyard_gradients_wait(g);                                  ends the step */
typedef struct trainyard_gradients trainyard_gradients;

typedef struct trainyard_parameter {
    const char *name;
    int32_t dtype; /* F32, F64, F16, BF16 */
    int32_t ndim;
    int64_t shape[TRAINYARD_MAX_DIMS];
} trainyard_parameter;

typedef struct trainyard_gradients_options {
    int32_t op;           /* AVERAGE or SUM */
    int32_t compression;  /* trainyard_compression */
    int32_t passes;       /* gradients added up before they travel; 0: 1. AVERAGE divides by it too */
    int32_t set;          /* process set; 0: all ranks */
    int64_t bucket_bytes; /* 0: 4 MiB. The first bucket that travels has at most 256 KiB, so that it can go early */
    int32_t reserved[8];  /* 0 */
} trainyard_gradients_options;

/* Parameters in the order of the forward pass: the last one's gradient is expected first. Names must differ. Lists that
 * differ between ranks fail on all of them, with the first line that does. */
int trainyard_gradients_new(const trainyard_parameter *parameters, int n, const trainyard_gradients_options *options,
                            trainyard_gradients **gradients);
/* The gradient's place in its bucket, aligned to 64 bytes, for ever the same. Writing gradients there saves a copy,
 * with passes = 1. Not to be touched between ready and wait. NULL for a number out of range. */
void *trainyard_gradients_buffer(const trainyard_gradients *g, int parameter);
/* From any thread, in any order, which may differ between ranks; once a parameter and pass. gradient: where it is now,
 * copied before this returns; NULL: in its buffer already. */
int trainyard_gradients_ready(trainyard_gradients *g, int parameter, const void *gradient);
/* Until the result of this parameter's bucket is in its buffer. In the last pass only. */
int trainyard_gradients_wait_one(trainyard_gradients *g, int parameter);
/* Ends the pass. In the last one: what was not marked ready counts as zero, all results are waited for, and are in the
 * buffers until the next ready. */
int trainyard_gradients_wait(trainyard_gradients *g);
int trainyard_gradients_buckets(const trainyard_gradients *g); /* how many */
/* By all ranks of its set. NULL is fine. */
int trainyard_gradients_free(trainyard_gradients *g);

/* ---- what one rank does for all ---------------------------------------------------------------------------------- */

/* By all ranks: rank 0 writes the file (its bytes; the others may pass NULL, 0), durably: after a crash at any moment
 * the path has the old content or the new one, whole. The folder is made. All ranks return what came of it. */
int trainyard_write(const char *path, const void *bytes, size_t n_bytes);
/* By all ranks: rank 0 reads the file, all get its bytes. Memory is made here (trainyard_free). A file that is not
 * there is no failure: *bytes is NULL, *n_bytes 0. At most 16 GiB. */
int trainyard_read(const char *path, void **bytes, size_t *n_bytes);

/* By all ranks: the means of n numbers over all ranks come back in `values`, and rank 0 prints the line that metric
 * definitions read, with one write to standard output: "step=1200 epoch=3 loss=0.23417 lr=0.0009". Names are
 * [a-z][a-z0-9_]*; at most 64 of them. epoch below 0 is left out. */
int trainyard_metrics(int64_t step, int64_t epoch, const char *const *names, double *values, int n);

/* 1: a rank has been told to stop (SIGTERM, or trainyard_request_stop); write a checkpoint and end. Ranks learn it from
 * each other in the calls they make, so that the answer is the same on all of them after the same call on the world or
 * on its gradients has been waited for: ask once a step, behind trainyard_gradients_wait or an allreduce. */
int trainyard_stop_requested(void);
/* What SIGTERM does, for programs that catch signals themselves. May be called in a signal handler. */
void trainyard_request_stop(void);

#ifdef __cplusplus
}
#endif

#endif
