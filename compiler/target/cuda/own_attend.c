/* own_attend.c - attention and its gradient in tiles, on a GPU, for 16-bit numbers: no T x S tensor is in memory.
 *
 * A block takes 64 queries of a head and goes through the keys, tile by tile, with the greatest score and the sum of
 * exponentials of each row so far (arXiv:2205.14135, arXiv:2307.08691). The gradient computes the probabilities again
 * from the logarithm of each row's sum: one kernel has a block for 64 queries and adds up dq, another a block for 64
 * keys and adds up dk and dv over the queries that see them. So no two blocks add to one place, and sums have a fixed
 * order. What the causal mask hides is left out tile by tile.
 *
 * Four warps have 16 rows each. Tiles of operands lie in shared memory, rows padded by 16 bytes so that the eight rows
 * of a small matrix lie in different banks; products are those of the tensor cores, of 16 x 16 by 16 x 8 numbers, added
 * up in float32 (the words ty_mma_..., ty_tiles in head.c). In such a product a lane has the numbers of rows lane / 4
 * and 8 more, of columns 2 (lane % 4) and 1 more; two products' results side by side, rounded, are the first operand of
 * the next (PTX ISA, "Matrix Fragments for mma.m16n8k16").
 */
#include "compiler/kernel/ctype.h"
#include "compiler/ops/attend.h"
#include "compiler/target/cuda/own.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ATTEND_THREADS = 128, ATTEND_ROWS = 64, ATTEND_TEXT_BYTES = 1 << 16, ATTEND_MAX_HEAD = 128 };
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
    return 0;
}

/* ---- text that all three have ---- */

/* Steps from one row, head and `outer` to the next. */
static void attend_steps(const own_attend *x, const char *name, int64_t rows, int64_t heads, int64_t n, ty_buf *text)
{
    bool inside = x->a.inside;
    ty_buf_addf(text, " const long %sR = %" PRId64 ", %sH = %" PRId64 ", %sO = %" PRId64 ";\n", name,
                inside ? heads * n : n, name, inside ? n : rows * n, name, rows * heads * n);
}

/* Behind the parameters: constants, and what a tile is. `other`: rows of a tile of what a block goes through. */
static void attend_open(const own_attend *x, int other, ty_buf *text)
{
    const ty_attend_sizes *a = &x->a;
    const char *suffix = x->dtype == TY_BF16 ? "bf16" : "f16";
    ty_buf_addf(text,
                "{\n#undef MMA\n#undef PACK\n#undef LOAD\n"
                "#define MMA ty_mma_%s\n#define PACK ty_pack_%s\n#define LOAD ty_load_%s\n",
                suffix, suffix, suffix);
    ty_buf_addf(
        text,
        " enum { D = %" PRId64 ", E = %" PRId64 ", LINE = %" PRId64 ", OTHER = %d, CAUSAL = %d };\n"
        " enum { T = %" PRId64 ", S = %" PRId64 ", HEADS = %" PRId64 ", GROUPS = %" PRId64 ", OUTER = %" PRId64 " };\n",
        a->d, a->e, (a->d > a->e ? a->d : a->e) + 8, other, a->causal, a->t, a->s, a->heads, a->groups, a->outer);
    attend_steps(x, "q", a->t, a->heads, a->d, text);
    attend_steps(x, "k", a->s, a->groups, a->d, text);
    attend_steps(x, "v", a->s, a->groups, a->e, text);
    attend_steps(x, "y", a->t, a->heads, a->e, text);
    ty_buf_addf(text, " const float scale = %af, scale2 = %af;\n", (double)(float)x->scale,
                (double)(float)(x->scale / M_LN2));
    ty_buf_adds(text,
                " const int warp = TY_THREAD / 32, lane = TY_THREAD % 32, row = lane / 4, pair = lane % 4 * 2;\n"
                " const float never = -__builtin_inff(), log2e = 0x1.715476p+0f;\n"
                "#undef TILE\n"
                "#define TILE(to, from, step, first, rows, count, n) \\\n"
                " _Pragma(\"unroll 1\") for (int i = TY_THREAD; i < (count) * ((n) / 8); i += 128) { \\\n"
                "  const int r = i / ((n) / 8), c = i % ((n) / 8) * 8; \\\n"
                "  if ((first) + r < (rows)) ty_copy_eight(&(to)[r * LINE + c], (from) + ((first) + r) * (step) + c); "
                "\\\n"
                "  else ty_zero_eight(&(to)[r * LINE + c]); \\\n"
                " }\n"
                /* c [16, 8 (n / 8)] += a's 16 rows x b's rows, sums over `depth` */
                "#undef ACROSS\n"
                "#define ACROSS(c, a, b, n, depth) \\\n"
                " _Pragma(\"unroll 1\") for (int kk = 0; kk < (depth); kk += 16) { \\\n"
                "  unsigned f[4], g[4]; \\\n"
                "  ty_tiles(f, &(a)[(warp * 16 + lane % 16) * LINE + kk + lane / 16 * 8]); \\\n"
                "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
                "   ty_tiles(g, &(b)[(nn + lane % 8 + lane / 16 * 8) * LINE + kk + lane / 8 % 2 * 8]); \\\n"
                "   MMA(c[nn / 8], f, g[0], g[1]); \\\n"
                "   MMA(c[nn / 8 + 1], f, g[2], g[3]); \\\n"
                "  } \\\n"
                " }\n"
                /* c [16, n] += p [16, depth], rounded, x b [depth, n] */
                "#undef ALONG\n"
                "#define ALONG(c, p, b, n, depth) \\\n"
                " _Pragma(\"unroll\") for (int kk = 0; kk < (depth); kk += 16) { \\\n"
                "  const int j = kk / 8; \\\n"
                "  const unsigned f[4] = {PACK(p[j][0], p[j][1]), PACK(p[j][2], p[j][3]), \\\n"
                "                         PACK(p[j + 1][0], p[j + 1][1]), PACK(p[j + 1][2], p[j + 1][3])}; \\\n"
                "  unsigned g[4]; \\\n"
                "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
                "   ty_tiles_turned(g, &(b)[(kk + lane % 16) * LINE + nn + lane / 16 * 8]); \\\n"
                "   MMA(c[nn / 8], f, g[0], g[1]); \\\n"
                "   MMA(c[nn / 8 + 1], f, g[2], g[3]); \\\n"
                "  } \\\n"
                " }\n"
                "#undef ZERO\n"
                "#define ZERO(c, n) \\\n"
                " _Pragma(\"unroll\") for (int i = 0; i < (n); i++) c[i][0] = c[i][1] = c[i][2] = c[i][3] = 0;\n");
}

/* Items are tiles of 64 of `rows` rows, of each of `heads` heads, of each `outer`. Where there is a mask, those with
 * most to do come first. */
static void attend_items(const char *rows, const char *heads, bool last_first, ty_buf *text)
{
    ty_buf_addf(text,
                " const long tiles = (%s + 63) / 64;\n"
                " for (long item = TY_BLOCK; item < tiles * %s * OUTER; item += TY_BLOCKS) {\n"
                "  const int first = (int)(%sitem %% tiles) * 64;\n"
                "  const long head = item / tiles %% %s, outer = item / tiles / %s;\n",
                rows, heads, last_first ? "tiles - 1 - " : "", heads, heads);
}

static void attend_launch(const ty_cuda_own *o, const own_attend *x, bool keys, ty_buf *text, const int *which, int n)
{
    int64_t tiles = ((keys ? x->a.s : x->a.t) + ATTEND_ROWS - 1) / ATTEND_ROWS;
    const ty_cuda_launch launch = {.form = "own",
                                   .threads = ATTEND_THREADS,
                                   .blocks = tiles * (keys ? x->a.groups : x->a.heads) * x->a.outer,
                                   .has_barriers = true};
    o->launch(o->ctx, text, launch, which, n);
    ty_buf_fini(text);
}

/* ---- attention ---- */

static const char attend_forward[] =
    "  const unsigned short *qh = q + outer * qO + head * qH;\n"
    "  const unsigned short *kh = k + outer * kO + head / (HEADS / GROUPS) * kH;\n"
    "  const unsigned short *vh = v + outer * vO + head / (HEADS / GROUPS) * vH;\n"
    "  const int mine = first + warp * 16 + row, seen = first + 64 + S - T, n = CAUSAL && seen < S ? seen : S;\n"
    "  float o[E / 8][4], most[2] = {never, never}, sum[2] = {0, 0};\n"
    "  ZERO(o, E / 8)\n"
    "  TY_BARRIER();\n"
    "  TILE(qs, qh, qR, first, T, 64, D)\n"
    "  for (int key = 0; key < n; key += OTHER) {\n"
    "   float p[OTHER / 8][4];\n"
    "   ZERO(p, OTHER / 8)\n"
    "   TY_BARRIER();\n"
    "   TILE(ks, kh, kR, key, S, OTHER, D)\n"
    "   TILE(vs, vh, vR, key, S, OTHER, E)\n"
    "   TY_BARRIER();\n"
    "   ACROSS(p, qs, ks, OTHER, D)\n"
    "#pragma unroll\n"
    "   for (int i = 0; i < 2; i++) {\n"
    "    const int last = CAUSAL ? mine + i * 8 + S - T : S - 1;\n"
    "    float top = most[i], add = 0;\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < OTHER / 4; j++) {\n"
    "     const int at = key + j / 2 * 8 + pair + j % 2;\n"
    "     float *x = &p[j / 2][2 * i + j % 2];\n"
    "     *x = at > last ? never : *x * scale2;\n"
    "     top = *x > top ? *x : top;\n"
    "    }\n"
    "    for (int m = 1; m < 4; m *= 2) {\n"
    "     const float other = TY_SHUFFLE_F(top, m);\n"
    "     top = other > top ? other : top;\n"
    "    }\n"
    "    const float less = ty_exp2(most[i] - top);\n"
    "    most[i] = top;\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < OTHER / 4; j++) {\n"
    "     float *x = &p[j / 2][2 * i + j % 2];\n"
    "     *x = ty_exp2(*x - top);\n"
    "     add += *x;\n"
    "    }\n"
    "    sum[i] = sum[i] * less + add;\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < E / 8; j++) o[j][2 * i] *= less, o[j][2 * i + 1] *= less;\n"
    "   }\n"
    "   ALONG(o, p, vs, E, OTHER)\n"
    "  }\n"
    "  unsigned short *yh = y + outer * yO + head * yH;\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 2; i++) {\n"
    "   for (int m = 1; m < 4; m *= 2) sum[i] += TY_SHUFFLE_F(sum[i], m);\n"
    "   const int at = mine + i * 8;\n"
    "   if (at >= T) continue;\n"
    "   const float part = 1.0f / sum[i];\n"
    "#pragma unroll\n"
    "   for (int j = 0; j < E / 8; j++)\n"
    "    *(unsigned *)&yh[at * yR + j * 8 + pair] = PACK(o[j][2 * i] * part, o[j][2 * i + 1] * part);\n"
    "   if (lane % 4 == 0) lse[(outer * HEADS + head) * T + at] = most[i] / log2e + ty_log_f32(sum[i]);\n"
    "  }\n"
    " }\n"
    "}\n";

int ty_cuda_own_attend(const ty_cuda_own *o, ty_error *err)
{
    own_attend x;
    ty_buf text;
    if (attend_read(o, &x, err) < 0)
        return -1;
    ty_buf_init(&text, ATTEND_TEXT_BYTES);
    ty_buf_adds(&text, "(const unsigned short *q, const unsigned short *k, const unsigned short *v, unsigned short *y, "
                       "float *lse)\n");
    attend_open(&x, x.wide ? 32 : 64, &text);
    ty_buf_adds(&text, " TY_SHARED __attribute__((aligned(16))) unsigned short qs[64 * LINE];\n"
                       " TY_SHARED __attribute__((aligned(16))) unsigned short ks[OTHER * LINE], vs[OTHER * LINE];\n");
    attend_items("T", "HEADS", x.a.causal, &text);
    ty_buf_adds(&text, attend_forward);
    attend_launch(o, &x, false, &text, (const int[]){0, 1, 2, 3, 4}, 5);
    return 0;
}

/* ---- its gradient ---- */

/* For `count` rows of queries from `at`: the logarithm of the row's sum, in powers of two, and y dy, into shared
 * memory; 128 / count threads a row, whose parts meet in a butterfly. Behind the end all operands are
 * zeros, and nothing comes of them. */
static const char attend_delta[] =
    "#undef DELTA\n"
    "#define DELTA(at, count) { \\\n"
    " enum { A = 128 / (count) }; \\\n"
    " const int r = TY_THREAD / A, from = (at) + r; \\\n"
    " float d = 0; \\\n"
    " if (from < T) \\\n"
    "  for (int c = TY_THREAD % A; c < E; c += A) d += LOAD(yh[from * yR + c]) * LOAD(dyh[from * yR + c]); \\\n"
    " for (int m = 1; m < A; m *= 2) d += TY_SHUFFLE_F(d, m); \\\n"
    " if (TY_THREAD % A == 0) { \\\n"
    "  delta[r] = d; \\\n"
    "  most[r] = from < T ? lse[(outer * HEADS + h) * T + from] * log2e : 0; \\\n"
    " } \\\n"
    "}\n";

static const char attend_back_queries[] =
    "  const long h = head;\n"
    "  const unsigned short *qh = q + outer * qO + h * qH, *dyh = dy + outer * yO + h * yH;\n"
    "  const unsigned short *yh = y + outer * yO + h * yH;\n"
    "  const unsigned short *kh = k + outer * kO + h / (HEADS / GROUPS) * kH;\n"
    "  const unsigned short *vh = v + outer * vO + h / (HEADS / GROUPS) * vH;\n"
    "  const int mine = first + warp * 16 + row, seen = first + 64 + S - T, n = CAUSAL && seen < S ? seen : S;\n"
    "  float sum[D / 8][4];\n"
    "  ZERO(sum, D / 8)\n"
    "  TY_BARRIER();\n"
    "  TILE(qs, qh, qR, first, T, 64, D)\n"
    "  TILE(gs, dyh, yR, first, T, 64, E)\n"
    "  DELTA(first, 64)\n"
    "  for (int key = 0; key < n; key += OTHER) {\n"
    "   float p[OTHER / 8][4], g_[OTHER / 8][4];\n"
    "   ZERO(p, OTHER / 8)\n"
    "   ZERO(g_, OTHER / 8)\n"
    "   TY_BARRIER();\n"
    "   TILE(ks, kh, kR, key, S, OTHER, D)\n"
    "   TILE(vs, vh, vR, key, S, OTHER, E)\n"
    "   TY_BARRIER();\n"
    "   ACROSS(p, qs, ks, OTHER, D)\n"
    "   ACROSS(g_, gs, vs, OTHER, E)\n"
    "#pragma unroll\n"
    "   for (int j = 0; j < OTHER / 2; j++) {\n"
    "    const int i = j / 2 % 2, at = key + j / 4 * 8 + pair + j % 2, in = warp * 16 + row + i * 8;\n"
    "    float *x = &p[j / 4][j % 4];\n"
    "    const int last = CAUSAL ? mine + i * 8 + S - T : S - 1;\n"
    "    const float e = at > last ? 0 : ty_exp2(*x * scale2 - most[in]);\n"
    "    *x = e * (g_[j / 4][j % 4] - delta[in]);\n"
    "   }\n"
    "   ALONG(sum, p, ks, D, OTHER)\n"
    "  }\n"
    "  unsigned short *to = dq + outer * qO + h * qH;\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 2; i++)\n"
    "#pragma unroll\n"
    "   for (int j = 0; j < D / 8; j++)\n"
    "    if (mine + i * 8 < T)\n"
    "     *(unsigned *)&to[(mine + i * 8) * qR + j * 8 + pair] =\n"
    "      PACK(sum[j][2 * i] * scale, sum[j][2 * i + 1] * scale);\n"
    " }\n"
    "}\n";

static const char attend_back_keys[] =
    "  const unsigned short *kh = k + outer * kO + head * kH, *vh = v + outer * vO + head * vH;\n"
    "  const int mine = first + warp * 16 + row;\n"
    "  const int start = CAUSAL && first > S - T ? (first - (S - T)) / OTHER * OTHER : 0;\n"
    "#if DK\n"
    "  float ksum[D / 8][4];\n"
    "  ZERO(ksum, D / 8)\n"
    "#endif\n"
    "#if DV\n"
    "  float vsum[E / 8][4];\n"
    "  ZERO(vsum, E / 8)\n"
    "#endif\n"
    "  TY_BARRIER();\n"
    "  TILE(ks, kh, kR, first, S, 64, D)\n"
    "  TILE(vs, vh, vR, first, S, 64, E)\n"
    "  for (long h = head * (HEADS / GROUPS); h < (head + 1) * (HEADS / GROUPS); h++) {\n"
    "   const unsigned short *qh = q + outer * qO + h * qH, *dyh = dy + outer * yO + h * yH;\n"
    "   const unsigned short *yh = y + outer * yO + h * yH;\n"
    "   for (int query = start; query < T; query += OTHER) {\n"
    "    float p[OTHER / 8][4];\n"
    "    ZERO(p, OTHER / 8)\n"
    "    TY_BARRIER();\n"
    "    TILE(qs, qh, qR, query, T, OTHER, D)\n"
    "    TILE(gs, dyh, yR, query, T, OTHER, E)\n"
    "    DELTA(query, OTHER)\n"
    "    TY_BARRIER();\n"
    "    ACROSS(p, ks, qs, OTHER, D)\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < OTHER / 2; j++) {\n"
    "     const int in = j / 4 * 8 + pair + j % 2;\n"
    "     float *x = &p[j / 4][j % 4];\n"
    "     *x = CAUSAL && mine + j / 2 % 2 * 8 > query + in + S - T ? 0 : ty_exp2(*x * scale2 - most[in]);\n"
    "    }\n"
    "#if DV\n"
    "    ALONG(vsum, p, gs, E, OTHER)\n"
    "#endif\n"
    "#if DK\n"
    "    float g_[OTHER / 8][4];\n"
    "    ZERO(g_, OTHER / 8)\n"
    "    ACROSS(g_, vs, gs, OTHER, E)\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < OTHER / 2; j++) p[j / 4][j % 4] *= g_[j / 4][j % 4] - delta[j / 4 * 8 + pair + j % 2];\n"
    "    ALONG(ksum, p, qs, D, OTHER)\n"
    "#endif\n"
    "   }\n"
    "  }\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 2; i++) {\n"
    "   const long at = mine + i * 8;\n"
    "   if (at >= S) continue;\n"
    "#if DK\n"
    "#pragma unroll\n"
    "   for (int j = 0; j < D / 8; j++)\n"
    "    *(unsigned *)&dk[outer * kO + head * kH + at * kR + j * 8 + pair] =\n"
    "     PACK(ksum[j][2 * i] * scale, ksum[j][2 * i + 1] * scale);\n"
    "#endif\n"
    "#if DV\n"
    "#pragma unroll\n"
    "   for (int j = 0; j < E / 8; j++)\n"
    "    *(unsigned *)&dv[outer * vO + head * vH + at * vR + j * 8 + pair] = PACK(vsum[j][2 * i], vsum[j][2 * i + "
    "1]);\n"
    "#endif\n"
    "  }\n"
    " }\n"
    "}\n";

static void back_open(const own_attend *x, const char *results, bool keys, ty_buf *text)
{
    ty_buf_init(text, ATTEND_TEXT_BYTES);
    ty_buf_addf(text,
                "(const unsigned short *q, const unsigned short *k, const unsigned short *v, const unsigned short *y, "
                "const float *lse, const unsigned short *dy, %s)\n",
                results);
    attend_open(x, x->wide ? 16 : 32, text);
    ty_buf_adds(text, attend_delta);
    ty_buf_addf(text,
                " TY_SHARED __attribute__((aligned(16))) unsigned short qs[%s * LINE], gs[%s * LINE];\n"
                " TY_SHARED __attribute__((aligned(16))) unsigned short ks[%s * LINE], vs[%s * LINE];\n"
                " TY_SHARED float most[%s], delta[%s];\n",
                keys ? "OTHER" : "64", keys ? "OTHER" : "64", keys ? "64" : "OTHER", keys ? "64" : "OTHER",
                keys ? "OTHER" : "64", keys ? "OTHER" : "64");
}

static void back_queries(const ty_cuda_own *o, const own_attend *x)
{
    ty_buf text;
    back_open(x, "unsigned short *dq", false, &text);
    attend_items("T", "HEADS", x->a.causal, &text);
    ty_buf_adds(&text, attend_back_queries);
    attend_launch(o, x, false, &text, (const int[]){0, 1, 2, 3, 4, 5, 6}, 7);
}

static void back_keys(const ty_cuda_own *o, const own_attend *x, bool dk, bool dv)
{
    const int dk_at = IN_DY + 2, dv_at = IN_DY + 3;
    ty_buf text;
    back_open(x,
              dk && dv ? "unsigned short *dk, unsigned short *dv"
              : dk     ? "unsigned short *dk"
                       : "unsigned short *dv",
              true, &text);
    ty_buf_addf(&text, "#undef DK\n#undef DV\n#define DK %d\n#define DV %d\n", dk, dv);
    attend_items("S", "GROUPS", false, &text);
    ty_buf_adds(&text, attend_back_keys);
    attend_launch(o, x, true, &text, (const int[]){0, 1, 2, 3, 4, 5, dk ? dk_at : dv_at, dv_at}, 6 + dk + dv);
}

int ty_cuda_own_attend_grad(const ty_cuda_own *o, ty_error *err)
{
    own_attend x;
    if (attend_read(o, &x, err) < 0)
        return -1;
    back_queries(o, &x);
    if (x.wide) { /* both sums do not fit into the registers of a thread */
        back_keys(o, &x, true, false);
        back_keys(o, &x, false, true);
    } else {
        back_keys(o, &x, true, true);
    }
    return 0;
}
