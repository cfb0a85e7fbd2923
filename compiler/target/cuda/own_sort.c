/* own_sort.c - sorting along an axis on a GPU: values and where they came from, equal ones in their order.
 *
 * Tiles of up to 1,024 elements of a line are sorted in shared memory by a bitonic network, then runs are merged, twice
 * as long in each pass: a thread an element, which finds by bisection how many of the other run stand before it. What
 * is sorted are places; they go to and fro between the memory of the two results (as int where the values will be), so
 * that they end where places belong, and the values are fetched last.
 *
 * A network for what fits into shared memory: K. Batcher, "Sorting networks and their applications", 1968.
 */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/refiter.h"
#include "compiler/target/cuda/own.h"

#include <inttypes.h>

enum { SORT_THREADS = 256, SORT_TILE = 1024, SORT_TEXT_BYTES = 1 << 16, SORT_DESCENDING = 1 };
enum { SORT_X, SORT_VALUES, SORT_PLACES }; /* numbers of operand and results */

typedef struct own_sort {
    const ty_cuda_own *o;
    ty_dtype dtype;
    int64_t outer, n, inner;
    bool descending;
    int tile; /* elements; a power of two */
} own_sort;

/* ---- text ---- */

/* BEFORE(a, i, b, j): value a at place i stands before b at j. NaN is above all others; both zeros are equal. */
static void sort_order(const own_sort *x, ty_buf *text)
{
    ty_cuda_own_words(text, x->dtype);
    const char *a = x->descending ? "b" : "a", *b = x->descending ? "a" : "b";
    if (ty_dtype_is_float(x->dtype))
        ty_buf_addf(text,
                    "#undef LESS\n#define LESS(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))\n"
                    "#undef BEFORE\n#define BEFORE(a, i, b, j) (LESS(%s, %s) || (!LESS(%s, %s) && (i) < (j)))\n",
                    a, b, b, a);
    else
        ty_buf_addf(text, "#undef BEFORE\n#define BEFORE(a, i, b, j) ((%s) < (%s) || ((a) == (b) && (i) < (j)))\n", a,
                    b);
}

/* Parameters; then a line's element k is at first + k * INNER. from, to: "int", "long" or NULL. */
static void sort_open(const own_sort *x, const char *from, const char *to, ty_buf *text)
{
    ty_buf_addf(text, "(const %s *__restrict__ x", ty_ctypes[x->dtype].memory);
    if (from)
        ty_buf_addf(text, ", const %s *__restrict__ from", from);
    ty_buf_addf(text, ", %s *__restrict__ to)\n{\n", to);
    ty_buf_addf(text, " const long N = %" PRId64 "l, INNER = %" PRId64 "l, LINES = %" PRId64 "l;\n", x->n, x->inner,
                x->outer * x->inner);
}

static void sort_launch(const own_sort *x, ty_buf *text, ty_cuda_launch launch, const int *which, int n)
{
    x->o->launch(x->o->ctx, text, launch, which, n);
    ty_buf_fini(text);
}

/* Memory of places before or after a pass. */
static const char *sort_type(bool in_places)
{
    return in_places ? "long" : "int";
}

/* ---- the three kinds of kernel ---- */

static const char sort_network[] =
    "  for (int size = 2; size <= TILE; size *= 2)\n"
    "   for (int step = size / 2; step > 0; step /= 2) {\n"
    "    for (int i = TY_THREAD; i < TILE / 2; i += 256) {\n"
    "     const int a = i / step * 2 * step + i % step, b = a + step;\n"
    "     const bool_t up = (a & size) == 0;\n"
    "     const bool_t swap = p[a] < 0 || p[b] < 0 ? (up ? p[a] < 0 && p[b] >= 0 : p[a] >= 0 && p[b] < 0)\n"
    "                         : up ? BEFORE(v[b], p[b], v[a], p[a]) : BEFORE(v[a], p[a], v[b], p[b]);\n"
    "     if (swap) {\n"
    "      const VALUE tv = v[a]; v[a] = v[b]; v[b] = tv;\n"
    "      const int tp = p[a]; p[a] = p[b]; p[b] = tp;\n"
    "     }\n"
    "    }\n"
    "    TY_BARRIER();\n"
    "   }\n";

/* What is beyond the end of a line has place -1 and goes last. */
static void sort_tiles(const own_sort *x, bool to_places)
{
    const int which[] = {SORT_X, to_places ? SORT_PLACES : SORT_VALUES};
    int64_t tiles = (x->n + x->tile - 1) / x->tile;
    ty_buf text;
    ty_buf_init(&text, SORT_TEXT_BYTES);
    sort_open(x, NULL, sort_type(to_places), &text);
    sort_order(x, &text);
    ty_buf_addf(&text,
                "#define VALUE %s\n#define bool_t int\n"
                " const int TILE = %d;\n const long TILES = %" PRId64 "l;\n"
                " TY_SHARED VALUE v[%d];\n TY_SHARED int p[%d];\n"
                " for (long part = TY_BLOCK; part < LINES * TILES; part += TY_BLOCKS) {\n"
                "  const long line = part / TILES, base = part %% TILES * TILE;\n"
                "  const long first = line / INNER * N * INNER + line %% INNER;\n"
                "  for (int i = TY_THREAD; i < TILE; i += 256) {\n"
                "   const long k = base + i;\n"
                "   p[i] = k < N ? (int)k : -1;\n"
                "   v[i] = k < N ? LD(x[first + k * INNER]) : 0;\n"
                "  }\n"
                "  TY_BARRIER();\n",
                ty_ctypes[x->dtype].value, x->tile, tiles, x->tile, x->tile);
    ty_buf_adds(&text, sort_network);
    ty_buf_adds(&text, "  for (int i = TY_THREAD; i < TILE; i += 256)\n"
                       "   if (base + i < N) to[first + (base + i) * INNER] = p[i];\n"
                       "  TY_BARRIER();\n"
                       " }\n}\n#undef VALUE\n#undef bool_t\n");
    int64_t blocks = x->outer * x->inner * tiles;
    const ty_cuda_launch launch = {
        .form = "own", .threads = SORT_THREADS, .blocks = blocks > 0 ? blocks : 1, .has_barriers = true};
    sort_launch(x, &text, launch, which, 2);
}

/* Runs of `run` elements become runs of twice as many. Those of the left run come first among equals. */
static void sort_merge(const own_sort *x, int64_t run, bool to_places)
{
    const int which[] = {SORT_X, to_places ? SORT_VALUES : SORT_PLACES, to_places ? SORT_PLACES : SORT_VALUES};
    ty_buf text;
    ty_buf_init(&text, SORT_TEXT_BYTES);
    sort_open(x, sort_type(!to_places), sort_type(to_places), &text);
    sort_order(x, &text);
    ty_buf_addf(&text,
                " const long RUN = %" PRId64 "l;\n"
                " for (long i = TY_BLOCK * %d + TY_THREAD; i < LINES * N; i += TY_BLOCKS * %d) {\n"
                "  const long line = i / N, k = i %% N, first = line / INNER * N * INNER + line %% INNER;\n"
                "  const long pair = k / (2 * RUN) * (2 * RUN), other = k - pair < RUN ? pair + RUN : pair;\n"
                "  const long me = (long)from[first + k * INNER];\n"
                "  long lo = other < N ? other : N, hi = other + RUN < N ? other + RUN : N;\n"
                "  const long start = lo;\n"
                "  while (lo < hi) {\n"
                "   const long middle = (lo + hi) / 2, it = (long)from[first + middle * INNER];\n"
                "   if (BEFORE(LD(x[first + it * INNER]), it, LD(x[first + me * INNER]), me)) lo = middle + 1;\n"
                "   else hi = middle;\n"
                "  }\n"
                "  const long mine = k - pair < RUN ? k - pair : k - pair - RUN;\n"
                "  to[first + (pair + mine + lo - start) * INNER] = me;\n"
                " }\n}\n",
                run, SORT_THREADS, SORT_THREADS);
    sort_launch(x, &text, ty_cuda_own_flat(x->outer * x->inner * x->n), which, 3);
}

static void sort_fetch(const own_sort *x)
{
    static const int which[] = {SORT_X, SORT_PLACES, SORT_VALUES};
    ty_buf text;
    ty_buf_init(&text, SORT_TEXT_BYTES);
    sort_open(x, "long", ty_ctypes[x->dtype].memory, &text);
    ty_buf_addf(
        &text,
        " for (long i = TY_BLOCK * %d + TY_THREAD; i < LINES * N; i += TY_BLOCKS * %d) {\n"
        "  const long line = i / N, first = line / INNER * N * INNER + line %% INNER, at = first + i %% N * INNER;\n"
        "  to[at] = x[first + from[at] * INNER];\n"
        " }\n}\n",
        SORT_THREADS, SORT_THREADS);
    sort_launch(x, &text, ty_cuda_own_flat(x->outer * x->inner * x->n), which, 3);
}

/* ---- the op ---- */

static int sort_read(const ty_cuda_own *o, own_sort *out, ty_error *err)
{
    const ty_type *x = ty_cuda_own_type(o, 0);
    const ty_attr *attr = ty_graph_attr(o->g, o->node);
    bool known = ty_dtype_is_float((ty_dtype)x->dtype) || x->dtype == TY_I32 || x->dtype == TY_I64;
    *out = (own_sort){.o = o, .dtype = (ty_dtype)x->dtype, .descending = attr->flags & SORT_DESCENDING, .tile = 2};
    ty_refiter_split(x, attr->axis, &out->outer, &out->n, &out->inner);
    /* places do not fit where 16-bit values will be */
    bool narrow = ty_dtype_bytes((ty_dtype)x->dtype) < sizeof(int32_t) && out->n > SORT_TILE;
    if (!known || narrow || out->n > INT32_MAX)
        return ty_error_set(err, TY_E_UNSUPPORTED,
                            "sorting on a GPU: expected floats (of 16 bits, at most %d), i32 or i64, found %s",
                            SORT_TILE, ty_dtype_text((ty_dtype)x->dtype));
    while (out->tile < SORT_TILE && out->tile < out->n)
        out->tile *= 2;
    return 0;
}

int ty_cuda_own_sort(const ty_cuda_own *o, ty_error *err)
{
    own_sort x;
    int passes = 0;
    if (sort_read(o, &x, err) < 0)
        return -1;
    for (int64_t run = x.tile; run < x.n; run *= 2)
        passes++;
    sort_tiles(&x, passes % 2 == 0);
    for (int64_t run = x.tile; run < x.n; run *= 2)
        sort_merge(&x, run, --passes % 2 == 0);
    sort_fetch(&x);
    return 0;
}
