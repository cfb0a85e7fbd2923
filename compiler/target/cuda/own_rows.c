/* own_rows.c - the rows of a table that a batch touches, on a GPU: find_rows sorts the numbers of an index
 * (own_places.h), sum_rows adds up what goes to each. ops/rows.c has their meaning.
 *
 * A sum takes the places of its row in their order, if they are few; else threads take them in turn and their partial
 * sums are added in the order of the threads. Both depend on the index alone.
 */
#include "compiler/kernel/ctype.h"
#include "compiler/target/cuda/own_places.h"

#include <inttypes.h>

enum { ROWS_THREADS = 256, ROWS_TEXT_BYTES = 1 << 16, ROWS_FEW = 64 };
enum { FIND_INDEX, FIND_ROWS, FIND_ORDER, FIND_START }; /* numbers of operand and results */

typedef struct own_rows {
    ty_cuda_places places;
    int64_t k;
} own_rows;

/* ---- find_rows ---- */

static void rows_open(const own_rows *x, const char *parameters, ty_buf *text)
{
    ty_buf_init(text, ROWS_TEXT_BYTES);
    ty_buf_addf(text, "(const long *__restrict__ from, %s)\n{\n", parameters);
    ty_buf_addf(text, " const long N = %" PRId64 "l, TABLE = %" PRId64 "l, TILES = %" PRId64 "l;\n", x->places.n,
                x->places.table, x->places.tiles);
    ty_buf_adds(text, " (void)N, (void)TABLE, (void)TILES;\n#undef HEAD\n");
    ty_buf_adds(text,
                "#define HEAD(i) (from[i] >> 32 < TABLE && ((i) == 0 || from[i] >> 32 != from[(i) - 1] >> 32))\n");
}

static void rows_launch(const own_rows *x, ty_buf *text, int64_t blocks, const int *which, int n)
{
    const ty_cuda_launch launch = {
        .form = "own", .threads = ROWS_THREADS, .blocks = blocks > 0 ? blocks : 1, .has_barriers = true};
    x->places.o->launch(x->places.o->ctx, text, launch, which, n);
    ty_buf_fini(text);
}

/* How many different numbers of the table begin in each tile; then, writing, what they are. */
static void rows_add_heads(const own_rows *x, bool writes)
{
    static const int which[] = {TY_CUDA_OWN_SCRATCH, FIND_ROWS, FIND_ORDER, FIND_START};
    ty_buf text;
    rows_open(x, writes ? "long *rows, long *order, long *start" : "long *scratch", &text);
    ty_buf_adds(&text, " TY_SHARED int s[256];\n"
                       " for (long tile = TY_BLOCK; tile < TILES; tile += TY_BLOCKS) {\n"
                       "  int mine = 0;\n"
                       "  for (int j = 0; j < 8; j++) {\n"
                       "   const long i = tile * 2048 + TY_THREAD * 8 + j;\n"
                       "   mine += i < N && HEAD(i);\n"
                       "  }\n"
                       "  s[TY_THREAD] = mine;\n");
    ty_buf_adds(&text, ty_cuda_places_running);
    ty_buf_adds(&text, writes ? "  int place = ((const int *)(from + N))[tile] + s[TY_THREAD] - mine;\n"
                                "  for (int j = 0; j < 8; j++) {\n"
                                "   const long i = tile * 2048 + TY_THREAD * 8 + j;\n"
                                "   if (i >= N) continue;\n"
                                "   order[i] = from[i] & 0xFFFFFFFFl;\n"
                                "   if (HEAD(i)) { rows[place] = from[i] >> 32; start[place] = i; place++; }\n"
                                "  }\n"
                              : "  if (TY_THREAD == 255) ((int *)(scratch + N))[tile] = s[255];\n");
    ty_buf_adds(&text, "  TY_BARRIER();\n }\n}\n");
    const int counts[] = {TY_CUDA_OWN_SCRATCH, TY_CUDA_OWN_SCRATCH};
    rows_launch(x, &text, x->places.tiles, writes ? which : counts, writes ? 4 : 2);
}

/* Behind the last row: -1, and where numbers outside the table begin. */
static void rows_add_end(const own_rows *x)
{
    static const int which[] = {TY_CUDA_OWN_SCRATCH, FIND_ROWS, FIND_START};
    ty_buf text;
    rows_open(x, "long *rows, long *start", &text);
    ty_buf_addf(&text,
                " const long found = ((const int *)(from + N))[TILES], K = %" PRId64 "l;\n"
                " long lo = 0, hi = N;\n"
                " while (lo < hi) {\n"
                "  const long middle = (lo + hi) / 2;\n"
                "  if (from[middle] >> 32 < TABLE) lo = middle + 1; else hi = middle;\n"
                " }\n"
                " for (long k = found + TY_BLOCK * 256 + TY_THREAD; k <= K; k += TY_BLOCKS * 256) {\n"
                "  start[k] = lo;\n"
                "  if (k < K) rows[k] = -1;\n"
                " }\n}\n",
                x->k);
    rows_launch(x, &text, (x->k + ROWS_THREADS) / ROWS_THREADS, which, 3);
}

static int rows_read(const ty_cuda_own *o, own_rows *out, ty_error *err)
{
    int64_t n = ty_cuda_own_type(o, FIND_INDEX)->dim[0], table = ty_graph_attr(o->g, o->node)->index;
    *out = (own_rows){ty_cuda_places_of(o, FIND_INDEX, n, table), ty_cuda_own_type(o, FIND_ROWS)->dim[0]};
    out->places.other = FIND_ORDER;
    if (n >= INT32_MAX || table >= INT32_MAX)
        return ty_error_set(err, TY_E_UNSUPPORTED,
                            "rows of a table on a GPU: expected fewer than 2^31 numbers and rows, found %" PRId64
                            " and %" PRId64,
                            n, table);
    return 0;
}

int ty_cuda_own_find_rows(const ty_cuda_own *o, ty_error *err)
{
    own_rows x;
    if (rows_read(o, &x, err) < 0)
        return -1;
    o->scratch(o->ctx, ty_cuda_places_bytes(&x.places));
    ty_cuda_places_sort(&x.places);
    rows_add_heads(&x, false);
    ty_cuda_places_scan(&x.places, x.places.tiles);
    rows_add_heads(&x, true);
    rows_add_end(&x);
    return 0;
}

/* ---- sum_rows ---- */

static void sum_open(const ty_cuda_own *o, int64_t k, int64_t inner, int lanes, ty_buf *text)
{
    ty_dtype dtype = (ty_dtype)ty_cuda_own_type(o, 0)->dtype;
    const char *list = ty_ctypes[ty_cuda_own_type(o, 1)->dtype].memory;
    ty_buf_addf(text,
                "(const %s *__restrict__ u, const %s *__restrict__ order, const %s *__restrict__ start, "
                "%s *__restrict__ to)\n{\n",
                ty_ctypes[dtype].memory, list, list, ty_ctypes[dtype].memory);
    ty_cuda_own_words(text, dtype);
    ty_buf_addf(text,
                "#undef VALUE\n#define VALUE %s\n"
                " const long K = %" PRId64 "l, INNER = %" PRId64 "l;\n"
                " const int LANES = %d, GROUPS = %d, FEW = %d;\n"
                " TY_SHARED VALUE s[256];\n",
                ty_ctypes[dtype].value, k, inner, lanes, ROWS_THREADS / lanes, ROWS_FEW);
}

/* A group of threads a row; then all of the block for each row of many. */
static const char sum_body[] =
    " const int group = TY_THREAD / LANES, lane = TY_THREAD % LANES;\n"
    " for (long base = TY_BLOCK * GROUPS; base < K; base += TY_BLOCKS * GROUPS) {\n"
    "  const long row = base + group, lo = row < K ? (long)start[row] : 0, hi = row < K ? (long)start[row + 1] : 0;\n"
    "  for (long i = lane; row < K && hi - lo <= FEW && i < INNER; i += LANES) {\n"
    "   VALUE sum = 0;\n"
    "   for (long p = lo; p < hi; p++) sum += LD(u[(long)order[p] * INNER + i]);\n"
    "   to[row * INNER + i] = ST(sum);\n"
    "  }\n"
    "  for (long k = base; k < base + GROUPS && k < K; k++) {\n"
    "   const long first = (long)start[k], end = (long)start[k + 1];\n"
    "   for (long i0 = 0; end - first > FEW && i0 < INNER; i0 += LANES) {\n"
    "    const long i = i0 + lane;\n"
    "    VALUE sum = 0;\n"
    "    for (long p = first + group; i < INNER && p < end; p += GROUPS) sum += LD(u[(long)order[p] * INNER + i]);\n"
    "    s[TY_THREAD] = sum;\n"
    "    TY_BARRIER();\n"
    "    for (int w = 1; w < GROUPS && group == 0; w++) sum += s[w * LANES + lane];\n"
    "    if (group == 0 && i < INNER) to[k * INNER + i] = ST(sum);\n"
    "    TY_BARRIER();\n"
    "   }\n"
    "  }\n"
    " }\n}\n";

int ty_cuda_own_sum_rows(const ty_cuda_own *o, ty_error *err)
{
    static const int which[] = {0, 1, 2, 3};
    const ty_type *u = ty_cuda_own_type(o, 0);
    int64_t k = ty_cuda_own_type(o, 3)->dim[0], n = u->dim[0], inner = n ? ty_type_elems(u) / n : 0;
    int lanes = 1;
    ty_buf text;
    if (!ty_dtype_is_float((ty_dtype)u->dtype) && u->dtype != TY_I32 && u->dtype != TY_I64)
        return ty_error_set(err, TY_E_UNSUPPORTED, "sums of rows on a GPU: expected floats, i32 or i64, found %s",
                            ty_dtype_text((ty_dtype)u->dtype));
    while (lanes < inner && lanes < ROWS_THREADS)
        lanes *= 2;
    ty_buf_init(&text, ROWS_TEXT_BYTES);
    sum_open(o, k, inner, lanes, &text);
    ty_buf_adds(&text, sum_body);
    int64_t groups = ROWS_THREADS / lanes, blocks = (k + groups - 1) / groups;
    const ty_cuda_launch launch = {
        .form = "own", .threads = ROWS_THREADS, .blocks = blocks > 0 ? blocks : 1, .has_barriers = true};
    o->launch(o->ctx, &text, launch, which, 4);
    ty_buf_fini(&text);
    return 0;
}
