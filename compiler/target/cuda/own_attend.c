/* own_attend.c - attention and its gradient in tiles, on a GPU, for 16-bit numbers: no T x S tensor is in memory.
 *
 * A block takes 128 queries of a head and goes through the keys, tile by tile, with the greatest score and the sum of
 * exponentials of each row so far (arXiv:2205.14135, arXiv:2307.08691). The gradient computes the probabilities again
 * from the logarithm of each row's sum: one kernel has a block for 128 queries and adds up dq, another a block for 128
 * keys and adds up dk and dv over the queries that see them. So no two blocks add to one place, and sums have a fixed
 * order. Where a head has no more than 128 of either, one kernel does both: what it computes of a pair serves all three
 * gradients. What the causal mask hides is left out tile by tile, and of tiles on its edge by the warps that see
 * nothing.
 *
 * Each of four warps has `MT` times 16 rows, of which it keeps the numbers in registers: two where heads have up to 64
 * numbers, so that what it reads of a tile serves two products, else one (of dy it reads them as often as it needs
 * them). Tiles of what the block goes through lie in shared memory, two of them: while one is worked on the next one
 * comes (cp.async). Their rows are padded by 16 bytes so that the eight rows of a small matrix lie in different banks.
 * What is kept comes through the same memory, first.
 *
 * Products are those of the tensor cores, of 16 x 16 by 16 x 8 numbers, added up in float32 (the words ty_mma_...,
 * ty_tiles in head.c). In such a product a lane has the numbers of rows lane / 4 and 8 more, of columns 2 (lane % 4)
 * and 1 more; two products' results side by side, rounded, are the first operand of the next (PTX ISA, "Matrix
 * Fragments for mma.m16n8k16").
 */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/attend.h"
#include "compiler/target/cuda/own.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ATTEND_THREADS = 128, ATTEND_WARPS = 4, ATTEND_TEXT_BYTES = 1 << 16, ATTEND_MAX_HEAD = 128 };
enum { IN_Q, IN_K, IN_V, IN_Y, IN_LSE, IN_DY };

typedef struct own_attend {
    ty_dtype dtype;
    ty_attend_sizes a;
    double scale;
    bool wide; /* heads of more than 64 numbers */
} own_attend;

static int attend_read(const ty_cuda_own *o, own_attend *out, ty_error *err)
{
    const ty_attr *attr = ty_graph_attr(o->g, o->node);
    const ty_type *q = ty_cuda_own_type(o, IN_Q);
    out->dtype = (ty_dtype)q->dtype;
    out->a = ty_attend_sizes_of(attr->flags, q, ty_cuda_own_type(o, IN_K), ty_cuda_own_type(o, IN_V));
    out->scale = attr->value;
    out->wide = out->a.d > 64 || out->a.e > 64;
    if (q->dtype != TY_BF16 && q->dtype != TY_F16)
        return ty_error_set(err, TY_E_UNSUPPORTED, "attention in tiles on a GPU: expected 16-bit numbers, found %s",
                            ty_dtype_text((ty_dtype)q->dtype));
    if (out->a.d % 16 || out->a.e % 16 || out->a.d > ATTEND_MAX_HEAD || out->a.e > ATTEND_MAX_HEAD || out->a.d < 16 ||
        out->a.e < 16)
        return ty_error_set(err, TY_E_UNSUPPORTED,
                            "attention in tiles on a GPU: expected heads of a multiple of 16 up to %d, found %" PRId64
                            " and %" PRId64,
                            ATTEND_MAX_HEAD, out->a.d, out->a.e);
    if ((out->a.t + out->a.s) * out->a.heads * out->a.outer > INT32_MAX)
        return ty_error_set(err, TY_E_UNSUPPORTED, "attention in tiles on a GPU: expected fewer than 2^31 rows");
    return 0;
}

/* ---- text that all three have ---- */

/* What a kernel keeps of a warp's rows, and what it goes through at a time. */
typedef struct attend_shape {
    int mt, other; /* times 16 rows a warp; rows of a tile, of which keys go through SUB at a time */
    bool keys;     /* a block has keys, not queries */
} attend_shape;

static int attend_rows(const attend_shape *shape)
{
    return 16 * ATTEND_WARPS * shape->mt;
}

/* Steps from one row, head and `outer` to the next, where a row has `heads` heads. */
static void attend_steps(const own_attend *x, const char *name, int64_t rows, int64_t heads, int64_t n, ty_buf *text)
{
    bool inside = x->a.inside;
    ty_buf_addf(text, " const long %sR = %" PRId64 ", %sH = %" PRId64 ", %sO = %" PRId64 ";\n", name,
                inside ? heads * n : n, name, inside ? n : rows * n, name, rows * heads * n);
}

/* Where q, k and v, or their gradients, are parts of one tensor: behind q's heads are k's, and v's behind those. */
static void attend_behind(const own_attend *x, const char *name, int part, ty_buf *text)
{
    if (x->a.packed)
        ty_buf_addf(text, " %s += %" PRId64 ";\n", name, part * x->a.heads * x->a.d);
}

/* c[mt][.][4] [16 mt, n] += f x b's rows, sums over `depth`; f[mt][.][4]: fragments of the rows that are kept.
 * ACROSS_OF: these are read from a tile each time, for want of registers. */
static const char attend_across[] =
    "#undef ACROSS\n"
    "#define ACROSS(c, f, b, n, depth, mt) \\\n"
    " _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) \\\n"
    "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
    "   unsigned g[4]; \\\n"
    "   ty_tiles(g, &(b)[(nn + lane % 8 + lane / 16 * 8) * LINE + kk * 16 + lane / 8 % 2 * 8]); \\\n"
    "   _Pragma(\"unroll\") for (int t = 0; t < (mt); t++) { \\\n"
    "    MMA((c)[t][nn / 8], (f)[t][kk], g[0], g[1]); \\\n"
    "    MMA((c)[t][nn / 8 + 1], (f)[t][kk], g[2], g[3]); \\\n"
    "   } \\\n"
    "  }\n"
    "#undef ACROSS_OF\n"
    "#define ACROSS_OF(c, a, b, n, depth) \\\n"
    " _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) { \\\n"
    "  unsigned f[MT][4]; \\\n"
    "  _Pragma(\"unroll\") for (int t = 0; t < MT; t++) \\\n"
    "   ty_tiles(f[t], &(a)[((warp * MT + t) * 16 + lane % 16) * LINE + kk * 16 + lane / 16 * 8]); \\\n"
    "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
    "   unsigned g[4]; \\\n"
    "   ty_tiles(g, &(b)[(nn + lane % 8 + lane / 16 * 8) * LINE + kk * 16 + lane / 8 % 2 * 8]); \\\n"
    "   _Pragma(\"unroll\") for (int t = 0; t < MT; t++) { \\\n"
    "    MMA(c[t][nn / 8], f[t], g[0], g[1]); \\\n"
    "    MMA(c[t][nn / 8 + 1], f[t], g[2], g[3]); \\\n"
    "   } \\\n"
    "  } \\\n"
    " }\n";

/* c [16 MT, n] += p [16 MT, depth], rounded, x b [depth, n]. */
static const char attend_along[] =
    "#undef ALONG\n"
    "#define ALONG(c, p, b, n, depth) \\\n"
    " _Pragma(\"unroll\") for (int kk = 0; kk < (depth); kk += 16) { \\\n"
    "  const int j = kk / 8; \\\n"
    "  unsigned f[MT][4], g[4]; \\\n"
    "  _Pragma(\"unroll\") for (int t = 0; t < MT; t++) { \\\n"
    "   f[t][0] = PACK(p[t][j][0], p[t][j][1]), f[t][1] = PACK(p[t][j][2], p[t][j][3]); \\\n"
    "   f[t][2] = PACK(p[t][j + 1][0], p[t][j + 1][1]), f[t][3] = PACK(p[t][j + 1][2], p[t][j + 1][3]); \\\n"
    "  } \\\n"
    "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
    "   ty_tiles_turned(g, &(b)[(kk + lane % 16) * LINE + nn + lane / 16 * 8]); \\\n"
    "   _Pragma(\"unroll\") for (int t = 0; t < MT; t++) { \\\n"
    "    MMA(c[t][nn / 8], f[t], g[0], g[1]); \\\n"
    "    MMA(c[t][nn / 8 + 1], f[t], g[2], g[3]); \\\n"
    "   } \\\n"
    "  } \\\n"
    " }\n";

/* TILE: asks for rows of an operand, zeros behind its end: 16 bytes a thread at a time, of the same column where all
 * threads have whole rows; `even`: all operands begin at multiples of 16 bytes. KEEP: the warp's rows of a tile as
 * fragments. */
static const char attend_tile[] =
    "#undef TILE\n"
    "#define TILE(to, from, step, first, rows, count, n) \\\n"
    " if (!even) { \\\n"
    "  _Pragma(\"unroll 1\") for (int i = TY_THREAD; i < (count) * (n); i += 128) \\\n"
    "   (to)[i / (n) * LINE + i % (n)] = \\\n"
    "    (first) + i / (n) < (rows) ? (from)[((first) + i / (n)) * (step) + i % (n)] : 0; \\\n"
    " } else if (1024 % (n) == 0 && (count) % (1024 / (n)) == 0) { \\\n"
    "  int me = TY_THREAD; TY_ANEW(me); \\\n"
    "  const int r = me / ((n) / 8), c = me % ((n) / 8) * 8, left = (rows) - (first) - r; \\\n"
    "  unsigned short *at = &(to)[r * LINE + c]; \\\n"
    "  const unsigned short *of = (from) + ((first) + r) * (step) + c; \\\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < (count); i += 1024 / (n)) \\\n"
    "   TY_ASYNC16(at + i * LINE, of + i * (step), i < left); \\\n"
    " } else { \\\n"
    "  _Pragma(\"unroll 1\") for (int i = TY_THREAD; i < (count) * ((n) / 8); i += 128) { \\\n"
    "   const int r = i / ((n) / 8), c = i % ((n) / 8) * 8; \\\n"
    "   TY_ASYNC16(&(to)[r * LINE + c], (from) + ((first) + r) * (step) + c, (first) + r < (rows)); \\\n"
    "  } \\\n"
    " }\n"
    "#undef KEEP\n"
    "#define KEEP(f, a, depth) \\\n"
    " _Pragma(\"unroll\") for (int t = 0; t < MT; t++) \\\n"
    "  _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) \\\n"
    "   ty_tiles(f[t][kk], &(a)[((warp * MT + t) * 16 + lane % 16) * LINE + kk * 16 + lane / 16 * 8]);\n"
    "#undef ZERO\n"
    "#define ZERO(c, n, mt) \\\n"
    " _Pragma(\"unroll\") for (int t = 0; t < (mt); t++) \\\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < (n); i++) c[t][i][0] = c[t][i][1] = c[t][i][2] = c[t][i][3] = 0;\n"
    "#undef ARRIVE\n"
    "#define ARRIVE() do { TY_ASYNC_COMMIT(); TY_ASYNC_WAIT(); TY_BARRIER(); } while (0)\n";

/* Behind the parameters: constants, and what a tile is. */
static void attend_open(const own_attend *x, const attend_shape *shape, ty_buf *text)
{
    const ty_attend_sizes *a = &x->a;
    const char *suffix = x->dtype == TY_BF16 ? "bf16" : "f16";
    ty_buf_addf(text,
                "{\n#undef MMA\n#undef PACK\n#undef LOAD\n"
                "#define MMA ty_mma_%s\n#define PACK ty_pack_%s\n#define LOAD ty_load_%s\n",
                suffix, suffix, suffix);
    ty_buf_addf(text,
                " enum { D = %" PRId64 ", E = %" PRId64 ", LINE = %" PRId64 ", OTHER = %d, CAUSAL = %d, MT = %d };\n"
                " enum { T = %" PRId64 ", S = %" PRId64 ", HEADS = %" PRId64 ", GROUPS = %" PRId64 ", OUTER = %" PRId64
                ", ROWS = %d, SUB = 16 };\n",
                a->d, a->e, (a->d > a->e ? a->d : a->e) + 8, shape->other, a->causal, shape->mt, a->t, a->s, a->heads,
                a->groups, a->outer, attend_rows(shape));
    int parts = a->packed ? IN_Y : 1;
    attend_steps(x, "q", a->t, parts * a->heads, a->d, text);
    attend_steps(x, "k", a->s, parts * a->groups, a->d, text);
    attend_steps(x, "v", a->s, parts * a->groups, a->e, text);
    attend_steps(x, "y", a->t, a->heads, a->e, text);
    attend_behind(x, "k", IN_K, text);
    attend_behind(x, "v", IN_V, text);
    ty_buf_addf(text, " const float scale = %af, scale2 = %af;\n", (double)(float)x->scale,
                (double)(float)(x->scale / M_LN2));
    ty_buf_adds(text, " const int warp = TY_THREAD / 32, lane = TY_THREAD % 32, row = lane / 4, pair = lane % 4 * 2;\n"
                      " const float never = -__builtin_inff(), log2e = 0x1.715476p+0f;\n"
                      " (void)scale, (void)scale2, (void)never, (void)log2e;\n");
    ty_buf_adds(text, attend_across);
    ty_buf_adds(text, attend_along);
    ty_buf_adds(text, attend_tile);
}

/* Items are tiles of ROWS of `rows` rows, of each of `heads` heads, of each `outer`. Where there is a mask, those with
 * most to do come first. */
static void attend_items(const char *rows, const char *heads, bool last_first, ty_buf *text)
{
    ty_buf_addf(text,
                " const int tiles = (%s + ROWS - 1) / ROWS;\n"
                " TY_BLOCK_EACH(item, tiles * %s * OUTER) {\n"
                "  const int first = (%sitem %% tiles) * ROWS, head = item / tiles %% %s, outer = item / tiles / %s;\n",
                rows, heads, last_first ? "tiles - 1 - " : "", heads, heads);
}

static void attend_launch(const ty_cuda_own *o, const own_attend *x, const attend_shape *shape, ty_buf *text,
                          const int *which, int n)
{
    int rows = attend_rows(shape);
    int64_t tiles = ((shape->keys ? x->a.s : x->a.t) + rows - 1) / rows;
    const ty_cuda_launch launch = {.form = "own",
                                   .threads = ATTEND_THREADS,
                                   .blocks = tiles * (shape->keys ? x->a.groups : x->a.heads) * x->a.outer,
                                   .has_barriers = true,
                                   .room = TY_CUDA_TWO};
    o->launch(o->ctx, text, launch, which, n);
    ty_buf_fini(text);
}

/* ---- attention ---- */

/* Through tiles of keys and values, of which the first is asked for, to the scores of each. */
static const char attend_keys[] = "  ARRIVE();\n"
                                  "  for (int key = 0, stage = 0; key < n; key += OTHER, stage ^= 1) {\n"
                                  "   unsigned short *ks = tile + stage * 2 * OTHER * LINE, *vs = ks + OTHER * LINE;\n"
                                  "   if (key + OTHER < n) {\n"
                                  "    unsigned short *next = tile + (stage ^ 1) * 2 * OTHER * LINE;\n"
                                  "    TILE(next, kh, kR, key + OTHER, S, OTHER, D)\n"
                                  "    TILE(next + OTHER * LINE, vh, vR, key + OTHER, S, OTHER, E)\n"
                                  "   }\n"
                                  "   if (!CAUSAL || key <= low + MT * 16 - 1 + S - T) {\n"
                                  "    const int edge = key + OTHER > S || (CAUSAL && key + OTHER - 1 > low + S - T);\n"
                                  "    float p[MT][OTHER / 8][4];\n"
                                  "    ZERO(p, OTHER / 8, MT)\n"
                                  "    ACROSS(p, f, ks, OTHER, D, MT)\n";

/* Of a tile on the edge of what is seen: scores that are not are never the greatest, and nothing of the sum. */
static const char attend_mask[] =
    "    if (edge) {\n"
    "     TY_JUMP();\n"
    "#pragma unroll\n"
    "     for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < OTHER / 2; j++)\n"
    "       if (key + j / 4 * 8 + pair + j % 2 > (CAUSAL ? mine + t * 16 + j / 2 % 2 * 8 + S - T : S - 1))\n"
    "        p[t][j / 4][j % 4] = never;\n"
    "    }\n";

/* The scores p of a tile become probabilities but for their sum; `most` is of scores that are not scaled yet. */
static const char attend_softmax[] =
    "#pragma unroll\n"
    "    for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "     for (int i = 0; i < 2; i++) {\n"
    "      float top = most[t][i], add = 0;\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < OTHER / 4; j++) {\n"
    "       const float x = p[t][j / 2][2 * i + j % 2];\n"
    "       top = __builtin_fmaxf(x, top);\n"
    "      }\n"
    "      for (int m = 1; m < 4; m *= 2) {\n"
    "       const float other = TY_SHUFFLE_F(top, m);\n"
    "       top = __builtin_fmaxf(other, top);\n"
    "      }\n"
    "      const float less = ty_exp2((most[t][i] - top) * scale2), zero = -top * scale2;\n"
    "      most[t][i] = top;\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < OTHER / 4; j++) {\n"
    "       float *x = &p[t][j / 2][2 * i + j % 2];\n"
    "       *x = ty_exp2(__builtin_fmaf(*x, scale2, zero));\n"
    "       add += *x;\n"
    "      }\n"
    "      sum[t][i] = sum[t][i] * less + add;\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < E / 8; j++) o[t][j][2 * i] *= less, o[t][j][2 * i + 1] *= less;\n"
    "     }\n";

static const char attend_forward_open[] =
    "  const unsigned short *qh = q + outer * qO + head * qH;\n"
    "  const unsigned short *kh = k + outer * kO + head / (HEADS / GROUPS) * kH;\n"
    "  const unsigned short *vh = v + outer * vO + head / (HEADS / GROUPS) * vH;\n"
    "  const int low = first + warp * MT * 16, mine = low + row;\n"
    "  const int seen = first + ROWS + S - T, n = CAUSAL && seen < S ? seen : S;\n"
    "  unsigned f[MT][D / 16][4];\n"
    "  float o[MT][E / 8][4], most[MT][2], sum[MT][2];\n"
    "  ZERO(o, E / 8, MT)\n"
    "#pragma unroll\n"
    "  for (int t = 0; t < MT; t++) most[t][0] = most[t][1] = never, sum[t][0] = sum[t][1] = 0;\n"
    "  TILE(tile, qh, qR, first, T, ROWS, D)\n"
    "  ARRIVE();\n"
    "  KEEP(f, tile, D)\n"
    "  TY_BARRIER();\n"
    "  TILE(tile, kh, kR, 0, S, OTHER, D)\n"
    "  TILE(tile + OTHER * LINE, vh, vR, 0, S, OTHER, E)\n";

static const char attend_forward_close[] =
    "    ALONG(o, p, vs, E, OTHER)\n"
    "   }\n"
    "   ARRIVE();\n"
    "  }\n"
    "  unsigned short *yh = y + outer * yO + head * yH;\n"
    "#pragma unroll\n"
    "  for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "   for (int i = 0; i < 2; i++) {\n"
    "    for (int m = 1; m < 4; m *= 2) sum[t][i] += TY_SHUFFLE_F(sum[t][i], m);\n"
    "    const int at = mine + t * 16 + i * 8;\n"
    "    if (at >= T) continue;\n"
    "    const float part = 1.0f / sum[t][i];\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < E / 8; j++)\n"
    "     *(unsigned *)&yh[at * yR + j * 8 + pair] = PACK(o[t][j][2 * i] * part, o[t][j][2 * i + 1] * part);\n"
    "    if (lane % 4 == 0) lse[(outer * HEADS + head) * T + at] = most[t][i] * scale + ty_log_f32(sum[t][i]);\n"
    "   }\n"
    " }\n"
    "}\n";

int ty_cuda_own_attend(const ty_cuda_own *o, ty_error *err)
{
    own_attend x;
    ty_buf text;
    if (attend_read(o, &x, err) < 0)
        return -1;
    const attend_shape shape = {.mt = x.wide ? 1 : 2, .other = x.wide ? 32 : 64};
    ty_buf_init(&text, ATTEND_TEXT_BYTES);
    ty_buf_adds(&text, "(const unsigned short *q, const unsigned short *k, const unsigned short *v, unsigned short *y, "
                       "float *lse)\n");
    attend_open(&x, &shape, &text);
    ty_buf_adds(&text, " TY_SHARED TY_ALIGNED unsigned short tile[4 * OTHER * LINE];\n"
                       " const int even = ((unsigned long)q | (unsigned long)k | (unsigned long)v) % 16 == 0;\n");
    attend_items("T", "HEADS", x.a.causal, &text);
    ty_buf_adds(&text, attend_forward_open);
    ty_buf_adds(&text, attend_keys);
    ty_buf_adds(&text, attend_mask);
    ty_buf_adds(&text, attend_softmax);
    ty_buf_adds(&text, attend_forward_close);
    attend_launch(o, &x, &shape, &text, (const int[]){0, 1, 2, 3, 4}, 5);
    return 0;
}

/* ---- its gradient: of queries ---- */

/* Of the block's queries: delta, the sum of y dy, which the other kernel wants too, and the logarithm of the row's sum
 * in powers of two. Behind the end all operands are zeros, and nothing comes of them. */
static const char attend_delta[] = "  float most[MT][2], sum_of[MT][2];\n"
                                   "#pragma unroll\n"
                                   "  for (int t = 0; t < MT; t++)\n"
                                   "#pragma unroll\n"
                                   "   for (int i = 0; i < 2; i++) {\n"
                                   "    const int at = mine + t * 16 + i * 8;\n"
                                   "    float d = 0;\n"
                                   "    for (int c = lane % 4 * 8; at < T && c < E; c += 32) {\n"
                                   "     TY_ALIGNED unsigned short a[8], b[8];\n"
                                   "     ty_copy_eight(a, yh + at * yR + c);\n"
                                   "     ty_copy_eight(b, dyh + at * yR + c);\n"
                                   "#pragma unroll\n"
                                   "     for (int w = 0; w < 8; w++) d += LOAD(a[w]) * LOAD(b[w]);\n"
                                   "    }\n"
                                   "    for (int m = 1; m < 4; m *= 2) d += TY_SHUFFLE_F(d, m);\n"
                                   "    sum_of[t][i] = d;\n"
                                   "    most[t][i] = at < T ? lse[(outer * HEADS + head) * T + at] * log2e : 0;\n"
                                   "    if (at < T && lane % 4 == 0) delta[(outer * HEADS + head) * T + at] = d;\n"
                                   "   }\n";

static const char attend_back_open[] =
    "  const unsigned short *qh = q + outer * qO + head * qH, *dyh = dy + outer * yO + head * yH;\n"
    "  const unsigned short *yh = y + outer * yO + head * yH;\n"
    "  const unsigned short *kh = k + outer * kO + head / (HEADS / GROUPS) * kH;\n"
    "  const unsigned short *vh = v + outer * vO + head / (HEADS / GROUPS) * vH;\n"
    "  const int low = first + warp * MT * 16, mine = low + row;\n"
    "  const int seen = first + ROWS + S - T, n = CAUSAL && seen < S ? seen : S;\n"
    "  unsigned f[MT][D / 16][4];\n"
    "  float sum[MT][D / 8][4];\n"
    "  ZERO(sum, D / 8, MT)\n"
    "  TILE(kept, qh, qR, first, T, ROWS, D)\n"
    "  TILE(tile, kh, kR, 0, S, OTHER, D)\n"
    "  TILE(tile + OTHER * LINE, vh, vR, 0, S, OTHER, E)\n"
    "  ARRIVE();\n"
    "  KEEP(f, kept, D)\n"
    "  TY_BARRIER();\n"
    "  TILE(kept, dyh, yR, first, T, ROWS, E)\n";

static const char attend_back_queries[] =
    "    float g_[MT][OTHER / 8][4];\n"
    "    ZERO(g_, OTHER / 8, MT)\n"
    "    ACROSS_OF(g_, kept, vs, OTHER, E)\n"
    "#pragma unroll\n"
    "    for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < OTHER / 2; j++) {\n"
    "      const int i = j / 2 % 2;\n"
    "      float *x = &p[t][j / 4][j % 4];\n"
    "      *x = ty_exp2(__builtin_fmaf(*x, scale2, -most[t][i])) * (g_[t][j / 4][j % 4] - sum_of[t][i]);\n"
    "     }\n"
    "    ALONG(sum, p, ks, D, OTHER)\n"
    "   }\n"
    "   ARRIVE();\n"
    "  }\n"
    "  unsigned short *to = dq + outer * qO + head * qH;\n"
    "#pragma unroll\n"
    "  for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "   for (int i = 0; i < 2; i++)\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < D / 8; j++)\n"
    "     if (mine + t * 16 + i * 8 < T)\n"
    "      *(unsigned *)&to[(mine + t * 16 + i * 8) * qR + j * 8 + pair] =\n"
    "       PACK(sum[t][j][2 * i] * scale, sum[t][j][2 * i + 1] * scale);\n"
    " }\n"
    "}\n";

static void back_open(const own_attend *x, const attend_shape *shape, const char *results, ty_buf *text)
{
    ty_buf_init(text, ATTEND_TEXT_BYTES);
    ty_buf_addf(text,
                "(const unsigned short *q, const unsigned short *k, const unsigned short *v, const unsigned short *y, "
                "const float *lse, const unsigned short *dy, %s)\n",
                results);
    attend_open(x, shape, text);
    ty_buf_adds(text, " const int even = ((unsigned long)q | (unsigned long)k | (unsigned long)v | (unsigned long)dy) "
                      "% 16 == 0;\n"
                      " (void)y;\n");
}

static void back_queries(const ty_cuda_own *o, const own_attend *x)
{
    const attend_shape shape = {.mt = x->wide ? 1 : 2, .other = x->wide ? 16 : 32};
    ty_buf text;
    back_open(x, &shape, "float *delta, unsigned short *dq", &text);
    ty_buf_adds(&text, " TY_SHARED TY_ALIGNED unsigned short kept[ROWS * LINE], tile[4 * OTHER * LINE];\n");
    attend_items("T", "HEADS", x->a.causal, &text);
    ty_buf_adds(&text, attend_back_open);
    ty_buf_adds(&text, attend_delta);
    ty_buf_adds(&text, attend_keys);
    ty_buf_adds(&text, attend_mask);
    ty_buf_adds(&text, attend_back_queries);
    attend_launch(o, x, &shape, &text, (const int[]){0, 1, 2, 3, 4, 5, TY_CUDA_OWN_SCRATCH, 6}, 8);
}

/* ---- of keys and values ---- */

/* NEXT asks for the queries from `asked` on of head `h`. A warp goes through those of a tile few at a time, since sums
 * and what is kept take most registers. */
static const char attend_back_keys[] =
    "#undef NEXT\n"
    "#define NEXT(stage) { \\\n"
    "  unsigned short *to = tile + (stage) * 2 * OTHER * LINE; \\\n"
    "  TILE(to, q + outer * qO + h * qH, qR, asked, T, OTHER, D) \\\n"
    "  TILE(to + OTHER * LINE, dy + outer * yO + h * yH, yR, asked, T, OTHER, E) \\\n"
    "  if (TY_THREAD < OTHER) { \\\n"
    "   const int at = asked + TY_THREAD; \\\n"
    "   const long from = (outer * HEADS + h) * T + at; \\\n"
    "   TY_ASYNC4(&most[(stage) * OTHER + TY_THREAD], lse + from, at < T); \\\n"
    "   TY_ASYNC4(&less[(stage) * OTHER + TY_THREAD], delta + from, at < T); \\\n"
    "  } \\\n"
    " }\n"
    "  const unsigned short *kh = k + outer * kO + head * kH, *vh = v + outer * vO + head * vH;\n"
    "  const int low = first + warp * MT * 16, mine = low + row;\n"
    "  const int start = CAUSAL && first > S - T ? (first - (S - T)) / OTHER * OTHER : 0;\n"
    "  const int end = (head + 1) * (HEADS / GROUPS);\n"
    "  int h = head * (HEADS / GROUPS), asked = start;\n"
    "  unsigned f[MT][D / 16][4];\n"
    "  TILE(tile, kh, kR, first, S, ROWS, D)\n"
    "  ARRIVE();\n"
    "  KEEP(f, tile, D)\n"
    "  TY_BARRIER();\n"
    "#if DK\n"
    "  unsigned fv[MT][E / 16][4];\n"
    "  float ksum[MT][D / 8][4];\n"
    "  ZERO(ksum, D / 8, MT)\n"
    "  TILE(tile, vh, vR, first, S, ROWS, E)\n"
    "  ARRIVE();\n"
    "  KEEP(fv, tile, E)\n"
    "  TY_BARRIER();\n"
    "#endif\n"
    "#if DV\n"
    "  float vsum[MT][E / 8][4];\n"
    "  ZERO(vsum, E / 8, MT)\n"
    "#endif\n"
    "  (void)vh;\n"
    "  if (start < T) NEXT(0)\n"
    "  ARRIVE();\n"
    "  for (int stage = 0; start < T && h < end; stage ^= 1) {\n"
    "   const unsigned short *qs = tile + stage * 2 * OTHER * LINE, *gs = qs + OTHER * LINE;\n"
    "   const int query = asked;\n"
    "   asked += OTHER;\n"
    "   if (asked >= T) asked = start, h++;\n"
    "   if (h < end) NEXT(stage ^ 1)\n"
    "#pragma unroll 1\n"
    "   for (int sub = 0; sub < OTHER; sub += SUB) {\n"
    "    const int from = query + sub;\n"
    "    if (CAUSAL && low > from + SUB - 1 + S - T) continue;\n"
    "    const int edge = CAUSAL && low + MT * 16 - 1 > from + S - T;\n"
    "    const float *most_at = &most[stage * OTHER + sub + pair], *less_at = &less[stage * OTHER + sub + pair];\n";

/* What a few queries add to the sums of the warp's keys. p becomes the gradient of the scores, but for the scale.
 * KEYS_END: whether a key must be left out since there are not so many; PRODUCTS: of the keys with the queries. */
static const char attend_back_few[] =
    "    const unsigned short *qt = qs + sub * LINE, *gt = gs + sub * LINE;\n"
    "    float p[MT][SUB / 8][4];\n"
    "    ZERO(p, SUB / 8, MT)\n"
    "    PRODUCTS(p, qt)\n"
    "#pragma unroll\n"
    "    for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < SUB / 2; j++) {\n"
    "      float *x = &p[t][j / 4][j % 4];\n"
    "      *x = ty_exp2(__builtin_fmaf(*x, scale2, -(most_at[j / 4 * 8 + j % 2] * log2e)));\n"
    "     }\n"
    "    if (edge) {\n"
    "     TY_JUMP();\n"
    "#pragma unroll\n"
    "     for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < SUB / 2; j++)\n"
    "       if (KEYS_END(mine + t * 16 + j / 2 % 2 * 8) ||\n"
    "           (CAUSAL && mine + t * 16 + j / 2 % 2 * 8 > from + j / 4 * 8 + pair + j % 2 + S - T))\n"
    "        p[t][j / 4][j % 4] = 0;\n"
    "    }\n"
    "#if DV\n"
    "    ALONG(vsum, p, gt, E, SUB)\n"
    "#endif\n"
    "#if DK\n"
    "#pragma unroll\n"
    "    for (int u = 0; u < MT; u++) {\n"
    "     float g_[1][SUB / 8][4];\n"
    "     ZERO(g_, SUB / 8, 1)\n"
    "     ACROSS(g_, fv + u, gt, SUB, E, 1)\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < SUB / 2; j++)\n"
    "      p[u][j / 4][j % 4] *= g_[0][j / 4][j % 4] - less_at[j / 4 * 8 + j % 2];\n"
    "    }\n"
    "    ALONG(ksum, p, qt, D, SUB)\n"
    "#endif\n";

static const char attend_back_next[] = "   }\n"
                                       "   ARRIVE();\n"
                                       "  }\n";

static const char attend_back_store[] = "#pragma unroll\n"
                                        "  for (int t = 0; t < MT; t++)\n"
                                        "#pragma unroll\n"
                                        "   for (int i = 0; i < 2; i++) {\n"
                                        "    const long at = mine + t * 16 + i * 8;\n"
                                        "    if (at >= S) continue;\n"
                                        "#if DK\n"
                                        "#pragma unroll\n"
                                        "    for (int j = 0; j < D / 8; j++)\n"
                                        "     *(unsigned *)&dk[outer * kO + head * kH + at * kR + j * 8 + pair] =\n"
                                        "      PACK(ksum[t][j][2 * i] * scale, ksum[t][j][2 * i + 1] * scale);\n"
                                        "#endif\n"
                                        "#if DV\n"
                                        "#pragma unroll\n"
                                        "    for (int j = 0; j < E / 8; j++)\n"
                                        "     *(unsigned *)&dv[outer * vO + head * vH + at * vR + j * 8 + pair] =\n"
                                        "      PACK(vsum[t][j][2 * i], vsum[t][j][2 * i + 1]);\n"
                                        "#endif\n"
                                        "   }\n"
                                        " }\n"
                                        "}\n";

/* Which sums the kernel has; KEYS_END, PRODUCTS. */
static const char back_defines[] = "#undef DK\n#undef DV\n#undef KEYS_END\n#undef PRODUCTS\n"
                                   "#define DK %d\n#define DV %d\n#define KEYS_END(key) (%s)\n"
                                   "#define PRODUCTS(p, qt) %s\n";

static void back_keys(const ty_cuda_own *o, const own_attend *x, bool dk, bool dv)
{
    const attend_shape shape = {.mt = x->wide ? 1 : 2, .other = x->wide ? 16 : 64, .keys = true};
    const int dq_at = IN_DY + 1, dk_at = x->a.packed ? dq_at : dq_at + 1, dv_at = x->a.packed ? dq_at : dq_at + 2;
    ty_buf text;
    back_open(x, &shape,
              dk && dv ? "const float *delta, unsigned short *dk, unsigned short *dv"
              : dk     ? "const float *delta, unsigned short *dk"
                       : "const float *delta, unsigned short *dv",
              &text);
    ty_buf_addf(&text, back_defines, dk, dv, "0", "ACROSS(p, f, qt, SUB, D, MT)");
    ty_buf_adds(&text, " TY_SHARED TY_ALIGNED unsigned short tile[4 * OTHER * LINE];\n"
                       " TY_SHARED float most[2 * OTHER], less[2 * OTHER];\n");
    if (dk)
        attend_behind(x, "dk", IN_K, &text);
    if (dv)
        attend_behind(x, "dv", IN_V, &text);
    attend_items("S", "GROUPS", false, &text);
    ty_buf_adds(&text, attend_back_keys);
    ty_buf_adds(&text, attend_back_few);
    ty_buf_adds(&text, attend_back_next);
    ty_buf_adds(&text, attend_back_store);
    attend_launch(o, x, &shape, &text, (const int[]){0, 1, 2, 3, 4, 5, TY_CUDA_OWN_SCRATCH, dk ? dk_at : dv_at, dv_at},
                  7 + dk + dv);
}

/* ---- of short sequences, all at once ---- */

/* A block has all keys and all queries of a head. It goes through the queries as above, and leaves the gradients of
 * their scores in shared memory: from there, with the keys, come those of the queries. Each warp then has 16 of the
 * head's numbers, of all queries of the tile. */
static const char attend_short_open[] =
    "#undef NEXT\n"
    "#define NEXT(stage, asked) { \\\n"
    "  unsigned short *to = tile + (stage) * 2 * OTHER * LINE; \\\n"
    "  TILE(to, qh, qR, asked, T, OTHER, D) \\\n"
    "  TILE(to + OTHER * LINE, dyh, yR, asked, T, OTHER, E) \\\n"
    " }\n"
    "  const unsigned short *qh = q + outer * qO + head * qH, *dyh = dy + outer * yO + head * yH;\n"
    "  const unsigned short *kh = k + outer * kO + head * kH, *vh = v + outer * vO + head * vH;\n"
    "  const unsigned short *yh = y + outer * yO + head * yH;\n"
    "  const int low = first + warp * MT * 16, mine = low + row;\n"
    "  unsigned fv[MT][E / 16][4];\n"
    "  float ksum[MT][D / 8][4], vsum[MT][E / 8][4];\n"
    "  ZERO(ksum, D / 8, MT)\n"
    "  ZERO(vsum, E / 8, MT)\n"
    "  TILE(keys, kh, kR, 0, S, ROWS, D)\n"
    "  TILE(tile, vh, vR, 0, S, ROWS, E)\n";

static const char attend_short_delta[] = "#pragma unroll\n"
                                         "  for (int t = 0; t < MT; t++)\n"
                                         "#pragma unroll\n"
                                         "   for (int i = 0; i < 2; i++) {\n"
                                         "    const int at = mine + t * 16 + i * 8;\n"
                                         "    float d = 0;\n"
                                         "    for (int c = lane % 4 * 8; at < T && c < E; c += 32) {\n"
                                         "     TY_ALIGNED unsigned short a[8], b[8];\n"
                                         "     ty_copy_eight(a, yh + at * yR + c);\n"
                                         "     ty_copy_eight(b, dyh + at * yR + c);\n"
                                         "#pragma unroll\n"
                                         "     for (int w = 0; w < 8; w++) d += LOAD(a[w]) * LOAD(b[w]);\n"
                                         "    }\n"
                                         "    for (int m = 1; m < 4; m *= 2) d += TY_SHUFFLE_F(d, m);\n"
                                         "    if (lane % 4 == 0) {\n"
                                         "     most[at] = at < T ? lse[(outer * HEADS + head) * T + at] : 0;\n"
                                         "     less[at] = d;\n"
                                         "    }\n"
                                         "   }\n"
                                         "  ARRIVE();\n"
                                         "  KEEP(fv, tile, E)\n"
                                         "  TY_BARRIER();\n"
                                         "  NEXT(0, 0)\n"
                                         "  ARRIVE();\n";

/* What the causal mask hides of a warp's keys is zeros to the queries. */
static const char attend_short_queries[] =
    "  for (int query = 0, stage = 0; query < T; query += OTHER, stage ^= 1) {\n"
    "   const unsigned short *qs = tile + stage * 2 * OTHER * LINE, *gs = qs + OTHER * LINE;\n"
    "   if (query + OTHER < T) NEXT(stage ^ 1, query + OTHER)\n"
    "#pragma unroll 1\n"
    "   for (int sub = 0; sub < OTHER; sub += SUB) {\n"
    "    const int from = query + sub;\n"
    "    unsigned short *to = &scores[mine * SCORES + sub + pair];\n"
    "    if (CAUSAL && low > from + SUB - 1 + S - T) {\n"
    "     for (int i = 0; i < MT * 2; i++)\n"
    "      for (int j = 0; j < SUB; j += 8) *(unsigned *)&to[i * 8 * SCORES + j] = 0;\n"
    "     continue;\n"
    "    }\n"
    "    const int edge = low + MT * 16 > S || (CAUSAL && low + MT * 16 - 1 > from + S - T);\n"
    "    const float *most_at = &most[from + pair], *less_at = &less[from + pair];\n";

static const char attend_short_scores[] =
    "#pragma unroll\n"
    "    for (int i = 0; i < MT * 2; i++)\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < SUB / 8; j++)\n"
    "      *(unsigned *)&to[i * 8 * SCORES + j * 8] = PACK(p[i / 2][j][i % 2 * 2], p[i / 2][j][i % 2 * 2 + 1]);\n"
    "   }\n"
    "   TY_BARRIER();\n"
    "#pragma unroll 1\n"
    "   for (int nn = warp * 16; nn < D; nn += 64) {\n"
    "    float sum[OTHER / 16][2][4];\n"
    "    ZERO(sum, 2, OTHER / 16)\n"
    "#pragma unroll\n"
    "    for (int kk = 0; kk < ROWS; kk += 16) {\n"
    "     unsigned g[4];\n"
    "     ty_tiles_turned(g, &keys[(kk + lane % 16) * LINE + nn + lane / 16 * 8]);\n"
    "#pragma unroll\n"
    "     for (int t = 0; t < OTHER / 16; t++) {\n"
    "      unsigned a[4];\n"
    "      ty_tiles_turned(a, &scores[(kk + lane % 8 + lane / 16 * 8) * SCORES + t * 16 + lane / 8 % 2 * 8]);\n"
    "      MMA(sum[t][0], a, g[0], g[1]);\n"
    "      MMA(sum[t][1], a, g[2], g[3]);\n"
    "     }\n"
    "    }\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < OTHER / 8; i++) {\n"
    "     const int at = query + i * 8 + row;\n"
    "     if (at >= T) continue;\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < 2; j++)\n"
    "      *(unsigned *)&dq[outer * qO + head * qH + at * qR + nn + j * 8 + pair] =\n"
    "       PACK(sum[i / 2][j][i % 2 * 2] * scale, sum[i / 2][j][i % 2 * 2 + 1] * scale);\n"
    "    }\n"
    "   }\n"
    "   ARRIVE();\n"
    "  }\n";

/* One block's keys and queries, whose sums are all in registers. */
static bool back_is_short(const own_attend *x)
{
    const attend_shape shape = {.mt = 2};
    return !x->wide && x->a.heads == x->a.groups && x->a.t <= attend_rows(&shape) && x->a.s <= attend_rows(&shape);
}

static void back_short(const ty_cuda_own *o, const own_attend *x)
{
    const attend_shape shape = {.mt = 2, .other = 32, .keys = true};
    const int dq_at = IN_DY + 1, dk_at = x->a.packed ? dq_at : dq_at + 1, dv_at = x->a.packed ? dq_at : dq_at + 2;
    ty_buf text;
    back_open(x, &shape, "unsigned short *dq, unsigned short *dk, unsigned short *dv", &text);
    ty_buf_addf(&text, back_defines, 1, 1, "(key) >= S", "ACROSS_OF(p, keys, qt, SUB, D)");
    ty_buf_adds(&text, " enum { SCORES = OTHER + 8 };\n"
                       " TY_SHARED TY_ALIGNED unsigned short keys[ROWS * LINE], tile[4 * OTHER * LINE], scores[ROWS * "
                       "SCORES];\n"
                       " TY_SHARED float most[ROWS], less[ROWS];\n");
    attend_behind(x, "dk", IN_K, &text);
    attend_behind(x, "dv", IN_V, &text);
    attend_items("S", "GROUPS", false, &text);
    ty_buf_adds(&text, attend_short_open);
    ty_buf_adds(&text, attend_short_delta);
    ty_buf_adds(&text, attend_short_queries);
    ty_buf_adds(&text, attend_back_few);
    ty_buf_adds(&text, attend_short_scores);
    ty_buf_adds(&text, attend_back_store);
    attend_launch(o, x, &shape, &text, (const int[]){0, 1, 2, 3, 4, 5, dq_at, dk_at, dv_at}, 9);
}

int ty_cuda_own_attend_grad(const ty_cuda_own *o, ty_error *err)
{
    own_attend x;
    if (attend_read(o, &x, err) < 0)
        return -1;
    if (back_is_short(&x)) {
        back_short(o, &x);
        return 0;
    }
    o->scratch(o->ctx, x.a.outer * x.a.heads * x.a.t * (int64_t)sizeof(float));
    back_queries(o, &x);
    if (x.wide) { /* both sums do not fit into the registers of a thread */
        back_keys(o, &x, true, false);
        back_keys(o, &x, false, true);
    } else {
        back_keys(o, &x, true, true);
    }
    return 0;
}
