/* own_pool.c - maximum and sum over sliding windows and their gradients, on a GPU. A thread an element of the result,
 * which reads all that meets in it: gradients too are gathered, in the order of the windows, and need no atomics. Where
 * channels lie side by side a thread has as many of a position as fill 16 bytes. */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/sliding.h"
#include "compiler/target/cuda/own.h"

#include <inttypes.h>
#include <string.h>

enum { POOL_THREADS = 256, POOL_TEXT_BYTES = 1 << 16 };

typedef struct own_pool {
    ty_dtype dtype;
    ty_sliding s;
    const ty_attr *attr;
    int64_t n, c;
    int width; /* channels of a thread */
} own_pool;

enum { POOL_BYTES = 16 };

/* x: the type of what windows slide over. */
static int pool_read(const ty_cuda_own *o, const ty_type *x, own_pool *out, ty_error *err)
{
    out->attr = ty_graph_attr(o->g, o->node);
    out->dtype = (ty_dtype)x->dtype;
    if (x->dtype != TY_F32 && x->dtype != TY_F16 && x->dtype != TY_BF16)
        return ty_error_set(err, TY_E_UNSUPPORTED, "pooling on a GPU: expected f32, f16 or bf16, found %s",
                            ty_dtype_text((ty_dtype)x->dtype));
    if (ty_sliding_make(&out->s, out->attr, x, out->attr->size, err) < 0)
        return -1;
    ty_type first = ty_sliding_first(out->attr, x);
    out->n = first.dim[0];
    out->c = first.dim[1];
    int width = POOL_BYTES / (int)ty_dtype_bytes(out->dtype);
    out->width = out->attr->flags & TY_SLIDING_LAST && out->c % width == 0 ? width : 1;
    return 0;
}

/* ---- text ---- */

static void pool_three(ty_buf *text, const char *name, const int64_t *v)
{
    for (int a = 0; a < TY_SLIDING_AXES; a++)
        ty_buf_addf(text, "%s%s%d = %" PRId64, a ? ", " : " const int ", name, a, v[a]);
    ty_buf_adds(text, ";\n");
}

/* The word for an access of a thread's numbers. */
static const char *pool_word(const own_pool *x, const char *way)
{
    bool get = strcmp(way, "GET") == 0;
    switch (x->width * (int)ty_dtype_bytes(x->dtype)) {
    case 16:
        return get ? "TY_GET16" : "TY_PUT16";
    case 4:
        return get ? "TY_GET4" : "TY_PUT4";
    default:
        return get ? "TY_GET2" : "TY_PUT2";
    }
}

/* Extents, then a thread's elements of the result, i and W - 1 more, as plane (image and channel) and position in it;
 * the other side's at place `at` of its plane begin at start + at * stride. per: elements of the result's plane,
 * `other`: of the other one. TAKE(v, from): what lies there. */
static void pool_open(const own_pool *x, int64_t per, int64_t other, ty_buf *text)
{
    bool last = x->attr->flags & TY_SLIDING_LAST;
    ty_cuda_own_words(text, x->dtype);
    pool_three(text, "IN", x->s.in);
    pool_three(text, "OUT", x->s.out);
    pool_three(text, "SIZE", x->s.size);
    pool_three(text, "STEP", x->s.step);
    pool_three(text, "DIL", x->s.dil);
    pool_three(text, "LO", x->s.lo);
    ty_buf_addf(text, " const long C = %" PRId64 "l, PER = %" PRId64 "l, OTHERS = %" PRId64 "l;\n", x->c, per, other);
    ty_buf_addf(text,
                " enum { W = %d };\n#undef TAKE\n#undef PLACES\n#undef GIVE\n"
                "#define TAKE(v, from) TY_ALIGNED %s v[W]; %s(v, from)\n"
                "#define GIVE(to, v) %s(v, to)\n",
                x->width, ty_ctypes[x->dtype].memory, pool_word(x, "GET"), pool_word(x, "PUT"));
    ty_buf_adds(text, x->width > 1 ? "#define PLACES(n, from) TY_ALIGNED int n[W]; \\\n"
                                     " TY_UNROLL for (int w = 0; w < W; w += 4) TY_GET16(n + w, (from) + w)\n"
                                   : "#define PLACES(n, from) const int n[1] = {*(from)}\n");
    int64_t items = x->n * x->c * per / x->width;
    const char *index = items * x->width < INT32_MAX ? "int" : "long";
    ty_buf_addf(text,
                " for (%s item = TY_BLOCK * %d + TY_THREAD; item < %" PRId64 "l; item += TY_BLOCKS * %d) {\n"
                "  const long i = (long)item * W;\n"
                "#undef LONG\n#define LONG %s\n",
                index, POOL_THREADS, items, POOL_THREADS, index);
    ty_buf_adds(text, last ? "  const LONG group = item % (LONG)(C / W), place = item / (LONG)(C / W);\n"
                             "  const LONG position = place % (LONG)PER, image = place / (LONG)PER;\n"
                             "  const long start = image * OTHERS * C + group * W, stride = C;\n"
                           : "  const LONG position = item % (LONG)PER, plane = item / (LONG)PER;\n"
                             "  const long start = plane * OTHERS, stride = 1;\n");
}

/* For each tap of the window at output `position`: `at` is the place in the input's plane, where there is one. */
static const char pool_forward[] = "  const int o0 = (int)(position / (OUT1 * OUT2)), o1 = (int)(position / OUT2 % "
                                   "OUT1), o2 = (int)(position % OUT2);\n"
                                   "  for (int k0 = 0; k0 < SIZE0; k0++) {\n"
                                   "   const int a0 = o0 * STEP0 - LO0 + k0 * DIL0;\n"
                                   "   if (a0 < 0 || a0 >= IN0) continue;\n"
                                   "   for (int k1 = 0; k1 < SIZE1; k1++) {\n"
                                   "    const int a1 = o1 * STEP1 - LO1 + k1 * DIL1;\n"
                                   "    if (a1 < 0 || a1 >= IN1) continue;\n"
                                   "    for (int k2 = 0; k2 < SIZE2; k2++) {\n"
                                   "     const int a2 = o2 * STEP2 - LO2 + k2 * DIL2;\n"
                                   "     if (a2 < 0 || a2 >= IN2) continue;\n"
                                   "     const long at = ((long)a0 * IN1 + a1) * IN2 + a2;\n";

/* For each output whose window covers the input's `position`, in their order: `at` is its place in the output's plane.
 */
static const char pool_backward[] =
    "  const int a0 = (int)(position / (IN1 * IN2)), a1 = (int)(position / IN2 % IN1), a2 = (int)(position % IN2);\n"
    "  for (int k0 = SIZE0 - 1; k0 >= 0; k0--) {\n"
    "   const int b0 = a0 + LO0 - k0 * DIL0;\n"
    "   if (b0 < 0 || b0 % STEP0 != 0 || b0 / STEP0 >= OUT0) continue;\n"
    "   for (int k1 = SIZE1 - 1; k1 >= 0; k1--) {\n"
    "    const int b1 = a1 + LO1 - k1 * DIL1;\n"
    "    if (b1 < 0 || b1 % STEP1 != 0 || b1 / STEP1 >= OUT1) continue;\n"
    "    for (int k2 = SIZE2 - 1; k2 >= 0; k2--) {\n"
    "     const int b2 = a2 + LO2 - k2 * DIL2;\n"
    "     if (b2 < 0 || b2 % STEP2 != 0 || b2 / STEP2 >= OUT2) continue;\n"
    "     const long at = ((long)(b0 / STEP0) * OUT1 + b1 / STEP1) * OUT2 + b2 / STEP2;\n";

static const char pool_close[] = "    }\n   }\n  }\n";
static const char pool_zero[] = "  float sum[W];\n  TY_UNROLL for (int w = 0; w < W; w++) sum[w] = 0;\n";

/* The thread's results, rounded. */
static void pool_give(const own_pool *x, const char *to, const char *from, ty_buf *text)
{
    ty_buf_addf(text,
                "  TY_ALIGNED %s given[W];\n"
                "  TY_UNROLL for (int w = 0; w < W; w++) given[w] = ST(%s[w]);\n"
                "  GIVE(&%s[i], given);\n",
                ty_ctypes[x->dtype].memory, from, to);
}

static void pool_launch(const ty_cuda_own *o, int64_t items, ty_buf *text, const int *which, int n)
{
    ty_buf_adds(text, " }\n}\n");
    o->launch(o->ctx, text, ty_cuda_own_flat(items), which, n);
    ty_buf_fini(text);
}

/* ---- ops ---- */

int ty_cuda_own_pool_max(const ty_cuda_own *o, ty_error *err)
{
    static const int which[] = {0, 1, 2};
    own_pool x;
    ty_buf text;
    if (pool_read(o, ty_cuda_own_type(o, 0), &x, err) < 0)
        return -1;
    ty_buf_init(&text, POOL_TEXT_BYTES);
    ty_buf_addf(&text, "(const %s *__restrict__ x, %s *__restrict__ y, int *__restrict__ index)\n{\n",
                ty_ctypes[x.dtype].memory, ty_ctypes[x.dtype].memory);
    pool_open(&x, x.s.out_elems, x.s.in_elems, &text);
    ty_buf_adds(&text, "  float best[W];\n  TY_ALIGNED int found[W];\n"
                       "  TY_UNROLL for (int w = 0; w < W; w++) best[w] = 0, found[w] = -1;\n");
    ty_buf_adds(&text, pool_forward);
    ty_buf_adds(&text, "     TAKE(v, &x[start + at * stride]);\n"
                       "     TY_UNROLL for (int w = 0; w < W; w++) {\n"
                       "      const float a = LD(v[w]);\n"
                       "      if (found[w] < 0 || a > best[w] || (a != a && best[w] == best[w]))\n"
                       "       best[w] = a, found[w] = (int)at;\n"
                       "     }\n");
    ty_buf_adds(&text, pool_close);
    pool_give(&x, "y", "best", &text);
    ty_buf_adds(&text, x.width > 1 ? "  TY_UNROLL for (int w = 0; w < W; w += 4) TY_PUT16(found + w, &index[i + w]);\n"
                                   : "  index[i] = found[0];\n");
    pool_launch(o, x.n * x.c * x.s.out_elems / x.width, &text, which, 3);
    return 0;
}

int ty_cuda_own_pool_max_grad(const ty_cuda_own *o, ty_error *err)
{
    static const int which[] = {0, 1, 2};
    own_pool x;
    ty_buf text;
    if (pool_read(o, ty_cuda_own_type(o, 2), &x, err) < 0)
        return -1;
    ty_buf_init(&text, POOL_TEXT_BYTES);
    ty_buf_addf(&text, "(const %s *__restrict__ dy, const int *__restrict__ index, %s *__restrict__ dx)\n{\n",
                ty_ctypes[x.dtype].memory, ty_ctypes[x.dtype].memory);
    pool_open(&x, x.s.in_elems, x.s.out_elems, &text);
    ty_buf_adds(&text, pool_zero);
    ty_buf_adds(&text, pool_backward);
    ty_buf_adds(&text, "     PLACES(n, &index[start + at * stride]);\n"
                       "     TAKE(v, &dy[start + at * stride]);\n"
                       "     TY_UNROLL for (int w = 0; w < W; w++)\n"
                       "      if (n[w] == position) sum[w] += LD(v[w]);\n");
    ty_buf_adds(&text, pool_close);
    pool_give(&x, "dx", "sum", &text);
    pool_launch(o, x.n * x.c * x.s.in_elems / x.width, &text, which, 3);
    return 0;
}

static int pool_sum_of(const ty_cuda_own *o, const ty_type *windowed, bool forward, ty_error *err)
{
    static const int which[] = {0, 1};
    own_pool x;
    ty_buf text;
    if (pool_read(o, windowed, &x, err) < 0)
        return -1;
    int64_t per = forward ? x.s.out_elems : x.s.in_elems, other = forward ? x.s.in_elems : x.s.out_elems;
    ty_buf_init(&text, POOL_TEXT_BYTES);
    ty_buf_addf(&text, "(const %s *__restrict__ from, %s *__restrict__ to)\n{\n", ty_ctypes[x.dtype].memory,
                ty_ctypes[x.dtype].memory);
    pool_open(&x, per, other, &text);
    ty_buf_adds(&text, pool_zero);
    ty_buf_adds(&text, forward ? pool_forward : pool_backward);
    ty_buf_adds(&text, "     TAKE(v, &from[start + at * stride]);\n"
                       "     TY_UNROLL for (int w = 0; w < W; w++) sum[w] += LD(v[w]);\n");
    ty_buf_adds(&text, pool_close);
    pool_give(&x, "to", "sum", &text);
    pool_launch(o, x.n * x.c * per / x.width, &text, which, 2);
    return 0;
}

int ty_cuda_own_pool_sum(const ty_cuda_own *o, ty_error *err)
{
    return pool_sum_of(o, ty_cuda_own_type(o, 0), true, err);
}

int ty_cuda_own_pool_sum_grad(const ty_cuda_own *o, ty_error *err)
{
    return pool_sum_of(o, ty_cuda_own_type(o, 1), false, err);
}
