/* own_line.c - along one axis, on a GPU: running sums and extrema (scan), the place of an extremum (argreduce). A
 * thread a line: neighbouring threads read neighbouring elements where the axis is not the last. */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/refiter.h"
#include "compiler/target/cuda/own.h"

#include <inttypes.h>

enum { LINE_THREADS = 256, LINE_TEXT_BYTES = 1 << 16, LINE_EXCLUSIVE = 1, LINE_FROM_END = 2, LINE_LAST = 1 };

typedef struct own_line {
    ty_dtype dtype;
    int64_t outer, n, inner;
    const ty_attr *attr;
} own_line;

static int line_read(const ty_cuda_own *o, own_line *out, ty_error *err)
{
    const ty_type *x = ty_cuda_own_type(o, 0);
    bool known = ty_dtype_is_float((ty_dtype)x->dtype) || x->dtype == TY_I32 || x->dtype == TY_I64;
    if (!known)
        return ty_error_set(err, TY_E_UNSUPPORTED, "along an axis on a GPU: expected floats, i32 or i64, found %s",
                            ty_dtype_text((ty_dtype)x->dtype));
    *out = (own_line){.dtype = (ty_dtype)x->dtype, .attr = ty_graph_attr(o->g, o->node)};
    ty_refiter_split(x, out->attr->axis, &out->outer, &out->n, &out->inner);
    return 0;
}

/* Up to the first statement about a line: `at` is its first element, `step` leads to the next. */
static void line_open(const own_line *x, const char *result, ty_buf *text)
{
    ty_buf_addf(text, "(const %s *__restrict__ x, %s *__restrict__ y)\n{\n", ty_ctypes[x->dtype].memory, result);
    ty_cuda_own_words(text, x->dtype);
    ty_buf_addf(text,
                " const long N = %" PRId64 "l, INNER = %" PRId64 "l;\n"
                " for (long line = TY_BLOCK * %d + TY_THREAD; line < %" PRId64 "l; line += TY_BLOCKS * %d) {\n"
                "  const long first = line / INNER * N * INNER + line %% INNER;\n",
                x->n, x->inner, LINE_THREADS, x->outer * x->inner, LINE_THREADS);
}

static void line_launch(const ty_cuda_own *o, const own_line *x, ty_buf *text)
{
    static const int which[] = {0, 1};
    ty_buf_adds(text, " }\n}\n");
    o->launch(o->ctx, text, ty_cuda_own_flat(x->outer * x->inner), which, 2);
    ty_buf_fini(text);
}

static const char *line_identity(const own_line *x)
{
    switch (x->attr->mode) {
    case TY_MAX:
        return ty_ctypes[x->dtype].lowest;
    case TY_MIN:
        return ty_ctypes[x->dtype].highest;
    default:
        return x->attr->mode == TY_PROD ? "1" : "0";
    }
}

int ty_cuda_own_scan(const ty_cuda_own *o, ty_error *err)
{
    own_line x;
    ty_buf text;
    if (line_read(o, &x, err) < 0)
        return -1;
    bool back = x.attr->flags & LINE_FROM_END, exclusive = x.attr->flags & LINE_EXCLUSIVE;
    ty_buf_init(&text, LINE_TEXT_BYTES);
    line_open(&x, ty_ctypes[x.dtype].memory, &text);
    ty_buf_addf(&text,
                "  %s a = %s;\n"
                "  for (long k = 0; k < N; k++) {\n"
                "   const long at = first + %s * INNER;\n"
                "   const %s b = LD(x[at]);\n",
                ty_ctypes[x.dtype].value, line_identity(&x), back ? "(N - 1 - k)" : "k", ty_ctypes[x.dtype].value);
    ty_buf_adds(&text, exclusive ? "   y[at] = ST(a);\n   a = " : "   a = ");
    ty_cuda_own_combine(&text, (ty_combine)x.attr->mode, x.dtype, "a", "b");
    ty_buf_adds(&text, exclusive ? ";\n  }\n" : ";\n   y[at] = ST(a);\n  }\n");
    line_launch(o, &x, &text);
    return 0;
}

/* NaN is nearest to the extremum; of equals the first, or the last where the flag says so. */
int ty_cuda_own_argreduce(const ty_cuda_own *o, ty_error *err)
{
    own_line x;
    ty_buf text;
    if (line_read(o, &x, err) < 0)
        return -1;
    const char *before = x.attr->mode == TY_MAX ? ">" : "<";
    ty_buf_init(&text, LINE_TEXT_BYTES);
    line_open(&x, "long", &text);
    ty_buf_addf(&text,
                "  %s a = LD(x[first]);\n"
                "  long best = 0;\n"
                "  for (long k = 1; k < N; k++) {\n"
                "   const %s b = LD(x[first + k * INNER]);\n"
                "   if ((b != b && %s) || (a == a && b %s%s a)) { a = b; best = k; }\n"
                "  }\n"
                "  y[line] = best;\n",
                ty_ctypes[x.dtype].value, ty_ctypes[x.dtype].value, x.attr->flags & LINE_LAST ? "1" : "a == a", before,
                x.attr->flags & LINE_LAST ? "=" : "");
    line_launch(o, &x, &text);
    return 0;
}
