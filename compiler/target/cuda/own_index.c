/* own_index.c - writing rows (scatter) and single elements (put) by number, on a GPU.
 *
 * The result starts as a copy of x, or as zeros. Sums by a long index are for own_scatter.c. Rows are dealt to blocks
 * in ranges. A block goes through the whole index in order, 2,048 numbers at a time, and lists those in its range: each
 * thread counts among eight neighbours, the counts are summed over the block, so that the list is in the order of the
 * index. Then groups of threads go through the list, each for rows of its own. Updates that meet are combined in the
 * order of the index, without atomics and without sorting; the index is read once a range, from the cache mostly. An
 * index outside the axis writes nothing.
 */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/refiter.h"
#include "compiler/target/cuda/own_places.h"

#include <inttypes.h>

enum { INDEX_THREADS = 256, INDEX_RANGES = 512, INDEX_TEXT_BYTES = 1 << 16 };

typedef struct own_index {
    ty_dtype data, index;
    ty_combine how;
    int64_t outer, n, inner, n_index;
} own_index;

static int index_read(const ty_cuda_own *o, bool is_put, own_index *out, ty_error *err)
{
    const ty_type *x = ty_cuda_own_type(o, 0), *index = ty_cuda_own_type(o, 1);
    const ty_attr *attr = ty_graph_attr(o->g, o->node);
    bool known = x->dtype == TY_F32 || x->dtype == TY_F64 || x->dtype == TY_I32 || x->dtype == TY_I64;
    if (!known || (index->dtype != TY_I64 && index->dtype != TY_I32))
        return ty_error_set(err, TY_E_UNSUPPORTED,
                            "writing by number on a GPU: expected f32, f64, i32 or i64, found %s",
                            ty_dtype_text((ty_dtype)x->dtype));
    *out = (own_index){.data = (ty_dtype)x->dtype, .index = (ty_dtype)index->dtype, .how = (ty_combine)attr->mode};
    ty_refiter_split(x, attr->axis, &out->outer, &out->n, &out->inner);
    out->n_index = is_put ? index->dim[attr->axis] : ty_type_elems(index);
    return 0;
}

/* Operands: x 0, index 1, update 2; the result is 3. */
static void index_start(const ty_cuda_own *o, const own_index *x)
{
    static const int result = 3;
    ty_buf text;
    if (!o->starts_at_zero && !o->starts_in_place)
        o->copy(o->ctx, 3, 0);
    if (!o->starts_at_zero)
        return;
    int64_t n = x->outer * x->n * x->inner;
    ty_buf_init(&text, INDEX_TEXT_BYTES);
    ty_buf_addf(&text,
                "(%s *__restrict__ to)\n{\n"
                " for (long i = TY_BLOCK * %d + TY_THREAD; i < %" PRId64 "l; i += TY_BLOCKS * %d)\n"
                "  to[i] = 0;\n}\n",
                ty_ctypes[x->data].memory, INDEX_THREADS, n, INDEX_THREADS);
    o->launch(o->ctx, &text, ty_cuda_own_flat(n), &result, 1);
    ty_buf_fini(&text);
}

static void index_parameters(const own_index *x, ty_buf *text)
{
    ty_buf_addf(text,
                "(const %s *__restrict__ index, const %s *__restrict__ update, %s *__restrict__ to)\n{\n"
                " const long N = %" PRId64 "l, INNER = %" PRId64 "l, OUTER = %" PRId64 "l, K = %" PRId64 "l;\n",
                ty_ctypes[x->index].memory, ty_ctypes[x->data].memory, ty_ctypes[x->data].memory, x->n, x->inner,
                x->outer, x->n_index);
}

static void index_combine(const own_index *x, ty_buf *text)
{
    ty_buf_addf(text, "const %s a = to[at], b = update[from]; to[at] = ", ty_ctypes[x->data].value);
    ty_cuda_own_combine(text, x->how, x->data, "a", "b");
    ty_buf_adds(text, ";\n");
}

/* ---- scatter ---- */

/* The power of two of threads that take a row together. */
static int scatter_lanes(int64_t inner)
{
    int lanes = 1;
    while (lanes < inner && lanes < INDEX_THREADS)
        lanes *= 2;
    return lanes;
}

/* What is in the block's range becomes row[0 ... n-1] and from_k[0 ... n-1], in the order of the index. */
static const char scatter_list[] = "  for (long base = 0; base < K; base += 256 * 8) {\n"
                                   "   int mine = 0;\n"
                                   "   for (int j = 0; j < 8; j++) {\n"
                                   "    const long k = base + TY_THREAD * 8 + j;\n"
                                   "    const long r = k < K ? (long)index[k] : -1;\n"
                                   "    mine += r >= lo && r < hi;\n"
                                   "   }\n"
                                   "   count[TY_THREAD] = mine;\n"
                                   "   TY_BARRIER();\n"
                                   "   for (int step = 1; step < 256; step *= 2) {\n"
                                   "    const int before = TY_THREAD >= step ? count[TY_THREAD - step] : 0;\n"
                                   "    TY_BARRIER();\n"
                                   "    count[TY_THREAD] += before;\n"
                                   "    TY_BARRIER();\n"
                                   "   }\n"
                                   "   const int n = count[255];\n"
                                   "   int place = count[TY_THREAD] - mine;\n"
                                   "   for (int j = 0; j < 8 && mine > 0; j++) {\n"
                                   "    const long k = base + TY_THREAD * 8 + j;\n"
                                   "    const long r = k < K ? (long)index[k] : -1;\n"
                                   "    if (r >= lo && r < hi) { row[place] = r; from_k[place] = k; place++; }\n"
                                   "   }\n"
                                   "   TY_BARRIER();\n";

int ty_cuda_own_scatter(const ty_cuda_own *o, ty_error *err)
{
    static const int which[] = {1, 2, 3};
    own_index x;
    ty_buf text;
    if (index_read(o, false, &x, err) < 0)
        return -1;
    int lanes = scatter_lanes(x.inner);
    int64_t ranges = x.n < INDEX_RANGES ? x.n : INDEX_RANGES, rows = ranges ? (x.n + ranges - 1) / ranges : 1;
    ranges = (x.n + rows - 1) / rows;
    index_start(o, &x);
    if (ty_cuda_own_adds_rows(x.data, x.how, x.outer, x.n_index, x.n)) {
        ty_cuda_own_add_rows(o, x.data, x.n_index, x.n, x.inner);
        return 0;
    }
    ty_buf_init(&text, INDEX_TEXT_BYTES);
    index_parameters(&x, &text);
    ty_buf_addf(
        &text,
        " const long RANGES = %" PRId64 "l, ROWS = %" PRId64 "l;\n"
        " TY_SHARED int count[256];\n TY_SHARED long row[2048], from_k[2048];\n"
        " const int group = TY_THREAD / %d, lane = TY_THREAD %% %d;\n"
        " for (long part = TY_BLOCK; part < OUTER * RANGES; part += TY_BLOCKS) {\n"
        "  const long o = part / RANGES, lo = part %% RANGES * ROWS, end = lo + ROWS, hi = end < N ? end : N;\n",
        ranges, rows, lanes, lanes);
    ty_buf_adds(&text, scatter_list);
    ty_buf_addf(&text,
                "   for (int e = 0; e < n; e++)\n"
                "    if (row[e] %% %d == group)\n"
                "     for (long i = lane; i < INNER; i += %d) {\n"
                "      const long at = (o * N + row[e]) * INNER + i, from = (o * K + from_k[e]) * INNER + i;\n      ",
                INDEX_THREADS / lanes, lanes);
    index_combine(&x, &text);
    ty_buf_adds(&text, "     }\n   TY_BARRIER();\n  }\n }\n}\n");
    ty_cuda_launch launch = {.form = "own",
                             .threads = INDEX_THREADS,
                             .blocks = x.outer * ranges > 0 ? x.outer * ranges : 1,
                             .has_barriers = true};
    o->launch(o->ctx, &text, launch, which, 3);
    ty_buf_fini(&text);
    return 0;
}

/* ---- put ---- */

/* A thread a line along the axis: each has an index of its own. */
int ty_cuda_own_put(const ty_cuda_own *o, ty_error *err)
{
    static const int which[] = {1, 2, 3};
    own_index x;
    ty_buf text;
    if (index_read(o, true, &x, err) < 0)
        return -1;
    index_start(o, &x);
    ty_buf_init(&text, INDEX_TEXT_BYTES);
    index_parameters(&x, &text);
    ty_buf_addf(&text,
                " for (long line = TY_BLOCK * %d + TY_THREAD; line < OUTER * INNER; line += TY_BLOCKS * %d) {\n"
                "  const long o = line / INNER, i = line %% INNER;\n"
                "  for (long k = 0; k < K; k++) {\n"
                "   const long from = (o * K + k) * INNER + i, r = (long)index[from], at = (o * N + r) * INNER + i;\n"
                "   if (r < 0 || r >= N) continue;\n   ",
                INDEX_THREADS, INDEX_THREADS);
    index_combine(&x, &text);
    ty_buf_adds(&text, "  }\n }\n}\n");
    o->launch(o->ctx, &text, ty_cuda_own_flat(x.outer * x.inner), which, 3);
    ty_buf_fini(&text);
    return 0;
}
