/* own_attend_grad.c - the gradient of attention in tiles (own_attend.c), on a GPU.
 *
 * The probabilities are computed again from the logarithm of each row's sum. One kernel has a block for 128 queries and
 * adds up dq, another a block for 128 keys and adds up dk and dv over the queries that see them. So no two blocks add
 * to one place, and sums have a fixed order. Where a head has no more than 128 of either, one kernel does both: what it
 * computes of a pair serves all three gradients.
 */
#include "compiler/target/cuda/own_attend.h"

/* ---- of queries ---- */

/* Of each of a thread's rows: d, the sum of y dy. What is done with it follows, and closes the loops. */
static const char attend_delta[] = "#pragma unroll\n"
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
                                   "    for (int m = 1; m < 4; m *= 2) d += TY_SHUFFLE_F(d, m);\n";

/* The other kernel wants it too. Beside it the logarithm of the row's sum in powers of two. Behind the end all operands
 * are zeros, and nothing comes of them. */
static const char attend_back_delta[] = "    sum_of[t][i] = d;\n"
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

static void back_open(const ty_own_attend *x, const ty_own_attend_shape *shape, const char *results, ty_buf *text)
{
    ty_buf_init(text, TY_OWN_ATTEND_TEXT);
    ty_buf_addf(text,
                "(const unsigned short *q, const unsigned short *k, const unsigned short *v, const unsigned short *y, "
                "const float *lse, const unsigned short *dy, %s)\n",
                results);
    ty_own_attend_open(x, shape, text);
    ty_buf_adds(text, " const int even = ((unsigned long)q | (unsigned long)k | (unsigned long)v | (unsigned long)dy) "
                      "% 16 == 0;\n"
                      " (void)y;\n");
}

static void back_queries(const ty_cuda_own *o, const ty_own_attend *x)
{
    const ty_own_attend_shape shape = {.mt = x->wide ? 1 : 2, .other = x->wide ? 16 : 32};
    ty_buf text;
    back_open(x, &shape, "float *delta, unsigned short *dq", &text);
    ty_buf_adds(&text, " TY_SHARED TY_ALIGNED unsigned short kept[ROWS * LINE], tile[4 * OTHER * LINE];\n");
    ty_own_attend_items("T", "HEADS", x->a.causal, &text);
    ty_buf_adds(&text, attend_back_open);
    ty_buf_adds(&text, "  float most[MT][2], sum_of[MT][2];\n");
    ty_buf_adds(&text, attend_delta);
    ty_buf_adds(&text, attend_back_delta);
    ty_buf_adds(&text, ty_own_attend_keys);
    ty_buf_adds(&text, ty_own_attend_mask);
    ty_buf_adds(&text, attend_back_queries);
    ty_own_attend_launch(o, x, &shape, &text, (const int[]){0, 1, 2, 3, 4, 5, TY_CUDA_OWN_SCRATCH, 6}, 8);
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

static void back_keys(const ty_cuda_own *o, const ty_own_attend *x, bool dk, bool dv)
{
    const ty_own_attend_shape shape = {.mt = x->wide ? 1 : 2, .other = x->wide ? 16 : 64, .keys = true};
    const int dq_at = TY_OWN_ATTEND_DY + 1, dk_at = x->a.packed ? dq_at : dq_at + 1,
              dv_at = x->a.packed ? dq_at : dq_at + 2;
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
        ty_own_attend_behind(x, "dk", TY_OWN_ATTEND_K, &text);
    if (dv)
        ty_own_attend_behind(x, "dv", TY_OWN_ATTEND_V, &text);
    ty_own_attend_items("S", "GROUPS", false, &text);
    ty_buf_adds(&text, attend_back_keys);
    ty_buf_adds(&text, attend_back_few);
    ty_buf_adds(&text, attend_back_next);
    ty_buf_adds(&text, attend_back_store);
    ty_own_attend_launch(o, x, &shape, &text,
                         (const int[]){0, 1, 2, 3, 4, 5, TY_CUDA_OWN_SCRATCH, dk ? dk_at : dv_at, dv_at}, 7 + dk + dv);
}

/* ---- of short sequences, all at once ---- */

/* A block has all keys and all queries of a head. It goes through the queries as above, and leaves the gradients of
 * their scores in shared memory: from there, with the keys, come those of the queries. Each warp then has 16 of the
 * head's numbers, of all queries of the tile. Registers are few: where a tile lies is computed anew each time. */
static const char attend_short_open[] =
    "#undef NEXT\n"
    "#define NEXT(stage, asked) { \\\n"
    "  int h = head; TY_ANEW(h); \\\n"
    "  unsigned short *to = tile + (stage) * 2 * OTHER * LINE; \\\n"
    "  TILE(to, q + outer * qO + h * qH, qR, asked, T, OTHER, D) \\\n"
    "  TILE(to + OTHER * LINE, dy + outer * yO + h * yH, yR, asked, T, OTHER, E) \\\n"
    " }\n"
    "  const unsigned short *dyh = dy + outer * yO + head * yH;\n"
    "  const unsigned short *kh = k + outer * kO + head * kH, *vh = v + outer * vO + head * vH;\n"
    "  const unsigned short *yh = y + outer * yO + head * yH;\n"
    "  const int low = first + warp * MT * 16, mine = low + row;\n"
    "  unsigned fv[MT][E / 16][4];\n"
    "  float ksum[MT][D / 8][4], vsum[MT][E / 8][4];\n"
    "  ZERO(ksum, D / 8, MT)\n"
    "  ZERO(vsum, E / 8, MT)\n"
    "  TILE(keys, kh, kR, 0, S, ROWS, D)\n"
    "  TILE(tile, vh, vR, 0, S, ROWS, E)\n";

static const char attend_short_delta[] = "    if (lane % 4 == 0) {\n"
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
static bool back_is_short(const ty_own_attend *x)
{
    const ty_own_attend_shape shape = {.mt = 2};
    return !x->wide && x->a.heads == x->a.groups && x->a.t <= ty_own_attend_rows(&shape) &&
           x->a.s <= ty_own_attend_rows(&shape);
}

static void back_short(const ty_cuda_own *o, const ty_own_attend *x)
{
    const ty_own_attend_shape shape = {.mt = 2, .other = 32, .keys = true};
    const int dq_at = TY_OWN_ATTEND_DY + 1, dk_at = x->a.packed ? dq_at : dq_at + 1,
              dv_at = x->a.packed ? dq_at : dq_at + 2;
    ty_buf text;
    back_open(x, &shape, "unsigned short *dq, unsigned short *dk, unsigned short *dv", &text);
    ty_buf_addf(&text, back_defines, 1, 1, "(key) >= S", "ACROSS_OF(p, keys, qt, SUB, D)");
    ty_buf_adds(&text, " enum { SCORES = OTHER + 8 };\n"
                       " TY_SHARED TY_ALIGNED unsigned short keys[ROWS * LINE], tile[4 * OTHER * LINE], scores[ROWS * "
                       "SCORES];\n"
                       " TY_SHARED float most[ROWS], less[ROWS];\n");
    ty_own_attend_behind(x, "dk", TY_OWN_ATTEND_K, &text);
    ty_own_attend_behind(x, "dv", TY_OWN_ATTEND_V, &text);
    ty_own_attend_items("S", "GROUPS", false, &text);
    ty_buf_adds(&text, attend_short_open);
    ty_buf_adds(&text, attend_delta);
    ty_buf_adds(&text, attend_short_delta);
    ty_buf_adds(&text, attend_short_queries);
    ty_buf_adds(&text, attend_back_few);
    ty_buf_adds(&text, attend_short_scores);
    ty_buf_adds(&text, attend_back_store);
    ty_own_attend_launch(o, x, &shape, &text, (const int[]){0, 1, 2, 3, 4, 5, dq_at, dk_at, dv_at}, 9);
}

int ty_cuda_own_attend_grad(const ty_cuda_own *o, ty_error *err)
{
    ty_own_attend x;
    if (ty_own_attend_read(o, &x, err) < 0)
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
