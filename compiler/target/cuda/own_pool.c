/* own_pool.c - maximum and sum over sliding windows and their gradients, on a GPU. A thread an element of the result,
 * which reads all that meets in it: gradients too are gathered, in the order of the windows, and need no atomics. */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/sliding.h"
#include "compiler/target/cuda/own.h"

#include <inttypes.h>

enum { POOL_THREADS = 256, POOL_TEXT_BYTES = 1 << 16 };

typedef struct own_pool {
    ty_dtype dtype;
    ty_sliding s;
    const ty_attr *attr;
    int64_t n, c;
} own_pool;

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
    return 0;
}

/* ---- text ---- */

static void pool_three(ty_buf *text, const char *name, const int64_t *v)
{
    for (int a = 0; a < TY_SLIDING_AXES; a++)
        ty_buf_addf(text, "%s%s%d = %" PRId64, a ? ", " : " const int ", name, a, v[a]);
    ty_buf_adds(text, ";\n");
}

/* Extents, then a thread's element i of the result as plane (image and channel) and position in it; the offset of the
 * other side's element is OTHER(position). per: elements of the result's plane, `other`: of the other one. */
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
    ty_buf_addf(text, " for (long i = TY_BLOCK * %d + TY_THREAD; i < %" PRId64 "l; i += TY_BLOCKS * %d) {\n",
                POOL_THREADS, x->n * x->c * per, POOL_THREADS);
    ty_buf_adds(text, last ? "  const long c = i % C, position = i / C % PER, image = i / C / PER;\n"
                             "  const long start = image * OTHERS * C + c, stride = C;\n"
                           : "  const long position = i % PER, plane = i / PER, start = plane * OTHERS, stride = 1;\n");
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
    ty_buf_adds(&text, "  float best = 0;\n  int place = -1;\n");
    ty_buf_adds(&text, pool_forward);
    ty_buf_adds(&text, "     const float v = LD(x[start + at * stride]);\n"
                       "     if (place < 0 || v > best || (v != v && best == best)) { best = v; place = (int)at; }\n");
    ty_buf_adds(&text, pool_close);
    ty_buf_adds(&text, "  y[i] = ST(best);\n  index[i] = place;\n");
    pool_launch(o, x.n * x.c * x.s.out_elems, &text, which, 3);
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
    ty_buf_adds(&text, "  float sum = 0;\n");
    ty_buf_adds(&text, pool_backward);
    ty_buf_adds(&text, "     if (index[start + at * stride] == position) sum += LD(dy[start + at * stride]);\n");
    ty_buf_adds(&text, pool_close);
    ty_buf_adds(&text, "  dx[i] = ST(sum);\n");
    pool_launch(o, x.n * x.c * x.s.in_elems, &text, which, 3);
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
    ty_buf_adds(&text, "  float sum = 0;\n");
    ty_buf_adds(&text, forward ? pool_forward : pool_backward);
    ty_buf_adds(&text, "     sum += LD(from[start + at * stride]);\n");
    ty_buf_adds(&text, pool_close);
    ty_buf_adds(&text, "  to[i] = ST(sum);\n");
    pool_launch(o, x.n * x.c * per, &text, which, 2);
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
