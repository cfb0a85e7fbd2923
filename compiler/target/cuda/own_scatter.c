/* own_scatter.c - rows of an update are added to rows of a table by number, on a GPU: the gradient of an embedding.
 *
 * Numbers are sorted with their places (own_places.h), so that what goes to one row stands together, in the order of
 * the index. Of that order a group of threads has a fixed number of places, and adds up what goes to each row. A row
 * that lies within one group's places is added to the table; of one that reaches over, each group leaves a partial sum,
 * and the group in which the row begins adds these in their order. So a row that all of a batch asks for, as those of
 * DeepFM's fields of a single word, keeps as many threads busy as others, and the sums depend on the index alone.
 * Tables that are read by the same numbers, one behind the other, have them sorted once.
 */
#include "compiler/kernel/ctype.h"
#include "compiler/target/cuda/own_places.h"

#include <inttypes.h>
#include <stdio.h>

enum { SCATTER_THREADS = 256, SCATTER_TEXT_BYTES = 1 << 16 };
enum { SCATTER_INDEX = 1, SCATTER_UPDATE, SCATTER_RESULT }; /* numbers of operands and result */

/* Below that a block that reads the whole index is quicker than the dozen launches of sorting it. */
#define SCATTER_MIN_INDEX 1024
/* Places of a group: few enough that a small index keeps a large GPU busy, enough that partial sums are few. */
#define SCATTER_SMALL_INDEX (1 << 17)
#define SCATTER_SMALL_CHUNK 32
#define SCATTER_CHUNK       128

typedef struct own_scatter {
    ty_cuda_places places;
    ty_dtype dtype;
    int64_t inner, chunk, chunks;
    int lanes; /* threads of a group, a power of two */
} own_scatter;

bool ty_cuda_own_adds_rows(ty_dtype dtype, ty_combine how, int64_t outer, int64_t n_index, int64_t table)
{
    return how == TY_SUM && (dtype == TY_F32 || dtype == TY_F64) && outer == 1 && n_index >= SCATTER_MIN_INDEX &&
           n_index < INT32_MAX && table < INT32_MAX;
}

static own_scatter scatter_of(const ty_cuda_own *o, ty_dtype dtype, int64_t n_index, int64_t table, int64_t inner)
{
    own_scatter x = {.places = ty_cuda_places_of(o, SCATTER_INDEX, n_index, table), .dtype = dtype, .inner = inner};
    x.chunk = n_index < SCATTER_SMALL_INDEX ? SCATTER_SMALL_CHUNK : SCATTER_CHUNK;
    x.chunks = (n_index + x.chunk - 1) / x.chunk;
    x.lanes = 1;
    while (x.lanes < inner && x.lanes < SCATTER_THREADS)
        x.lanes *= 2;
    return x;
}

/* ROW(p): the row of the p-th sorted place. A group's item is a chunk and LANES columns of it, of which a thread has
 * column i. partial[2 c] is what chunk c has for the row that comes over from the one before, partial[2 c + 1] for the
 * one that goes on in the next. */
static void scatter_open(const own_scatter *x, const char *parameters, ty_buf *text)
{
    const char *value = ty_ctypes[x->dtype].value;
    ty_buf_init(text, SCATTER_TEXT_BYTES);
    ty_buf_addf(text, "(long *scratch, %s)\n{\n", parameters);
    ty_buf_addf(text,
                "#undef ROW\n#define ROW(p) (sorted[p] >> 32)\n"
                " const long N = %" PRId64 "l, TABLE = %" PRId64 "l, INNER = %" PRId64 "l;\n"
                " const long CHUNK = %" PRId64 "l, CHUNKS = %" PRId64 "l, PARTS = %" PRId64 "l;\n"
                " const int LANES = %d, GROUPS = %d, lane = TY_THREAD %% LANES;\n",
                x->places.n, x->places.table, x->inner, x->chunk, x->chunks, (x->inner + x->lanes - 1) / x->lanes,
                x->lanes, SCATTER_THREADS / x->lanes);
    ty_buf_addf(text,
                " const long *sorted = scratch;\n"
                " %s *partial = (%s *)(scratch + %" PRId64 "l);\n"
                " for (long item = TY_BLOCK * GROUPS + TY_THREAD / LANES; item < CHUNKS * PARTS;\n"
                "      item += TY_BLOCKS * GROUPS) {\n"
                "  const long chunk = item / PARTS, i = item %% PARTS * LANES + lane, lo = chunk * CHUNK;\n"
                "  const long hi = lo + CHUNK < N ? lo + CHUNK : N;\n"
                "  if (i >= INNER) continue;\n",
                value, value, ty_cuda_places_bytes(&x->places) / 8);
}

static void scatter_launch(const own_scatter *x, ty_buf *text, const int *which, int n)
{
    int64_t groups = SCATTER_THREADS / x->lanes, items = x->chunks * ((x->inner + x->lanes - 1) / x->lanes);
    const ty_cuda_launch launch = {
        .form = "own", .threads = SCATTER_THREADS, .blocks = (items + groups - 1) / groups, .has_barriers = false};
    x->places.o->launch(x->places.o->ctx, text, launch, which, n);
    ty_buf_fini(text);
}

/* Eight places are asked for together, then their rows. */
static const char scatter_sum[] =
    "  long row = ROW(lo);\n"
    "  bool_t comes = lo > 0 && ROW(lo - 1) == row;\n"
    "  VALUE sum = 0;\n"
    "  for (long p = lo; p < hi; p += 8) {\n"
    "   long e[8];\n"
    "   VALUE v[8];\n"
    "   TY_UNROLL for (int w = 0; w < 8; w++) e[w] = p + w < hi ? sorted[p + w] : TABLE << 32;\n"
    "   TY_UNROLL for (int w = 0; w < 8; w++)\n"
    "    v[w] = e[w] >> 32 < TABLE ? update[(e[w] & 0xFFFFFFFFl) * INNER + i] : 0;\n"
    "   TY_UNROLL for (int w = 0; w < 8; w++) {\n"
    "    if (e[w] >> 32 != row && p + w < hi) {\n"
    "     if (comes) partial[2 * chunk * INNER + i] = sum;\n"
    "     else if (row < TABLE) to[row * INNER + i] += sum;\n"
    "     row = e[w] >> 32, comes = 0, sum = 0;\n"
    "    }\n"
    "    sum += v[w];\n"
    "   }\n"
    "  }\n"
    "  if (comes) partial[2 * chunk * INNER + i] = sum;\n"
    "  else if (hi < N && ROW(hi) == row) partial[(2 * chunk + 1) * INNER + i] = sum;\n"
    "  else if (row < TABLE) to[row * INNER + i] += sum;\n"
    " }\n}\n";

/* The row with which the chunk ends, if it begins there and goes on: chunks that begin with it are found by bisection,
 * so that their partial sums can be asked for together. */
static const char scatter_join[] =
    "  const long row = ROW(hi - 1);\n"
    "  if (hi == N || row >= TABLE || ROW(hi) != row || (ROW(lo) == row && lo > 0 && ROW(lo - 1) == row)) continue;\n"
    "  long end = chunk + 2, beyond = CHUNKS;\n"
    "  while (end < beyond) {\n"
    "   const long middle = (end + beyond) / 2;\n"
    "   if (ROW(middle * CHUNK) == row) end = middle + 1; else beyond = middle;\n"
    "  }\n"
    "  VALUE sum = partial[(2 * chunk + 1) * INNER + i];\n"
    "  for (long c = chunk + 1; c < end; c += 8) {\n"
    "   VALUE v[8];\n"
    "   TY_UNROLL for (int w = 0; w < 8; w++) v[w] = c + w < end ? partial[2 * (c + w) * INNER + i] : 0;\n"
    "   TY_UNROLL for (int w = 0; w < 8; w++) sum += v[w];\n"
    "  }\n"
    "  to[row * INNER + i] += sum;\n"
    " }\n}\n";

static void scatter_words(const own_scatter *x, ty_buf *text)
{
    ty_buf_addf(text, "#undef VALUE\n#undef bool_t\n#define VALUE %s\n#define bool_t int\n", ty_ctypes[x->dtype].value);
}

static void scatter_add_sum(const own_scatter *x)
{
    static const int which[] = {TY_CUDA_OWN_SCRATCH, SCATTER_UPDATE, SCATTER_RESULT};
    char parameters[128];
    ty_buf text;
    snprintf(parameters, sizeof parameters, "const %s *__restrict__ update, %s *__restrict__ to",
             ty_ctypes[x->dtype].memory, ty_ctypes[x->dtype].memory);
    scatter_open(x, parameters, &text);
    scatter_words(x, &text);
    ty_buf_adds(&text, scatter_sum);
    scatter_launch(x, &text, which, 3);
}

static void scatter_add_join(const own_scatter *x)
{
    static const int which[] = {TY_CUDA_OWN_SCRATCH, SCATTER_RESULT};
    char parameters[64];
    ty_buf text;
    snprintf(parameters, sizeof parameters, "%s *__restrict__ to", ty_ctypes[x->dtype].memory);
    scatter_open(x, parameters, &text);
    scatter_words(x, &text);
    ty_buf_adds(&text, scatter_join);
    scatter_launch(x, &text, which, 2);
}

void ty_cuda_own_add_rows(const ty_cuda_own *o, ty_dtype dtype, int64_t n_index, int64_t table, int64_t inner)
{
    const own_scatter x = scatter_of(o, dtype, n_index, table, inner);
    size_t partial = (size_t)(2 * x.chunks * inner) * ty_dtype_bytes(dtype);
    o->scratch(o->ctx, ty_cuda_places_bytes(&x.places) + (int64_t)partial);
    if (!o->finds(o->ctx, SCATTER_INDEX, table))
        ty_cuda_places_sort(&x.places);
    scatter_add_sum(&x);
    scatter_add_join(&x);
    o->left(o->ctx, SCATTER_INDEX, table);
}
