/* own_attend_grad.c - the gradient of attention in tiles (own_attend.c), on a GPU.
 *
 * The probabilities are computed again from the logarithm of each row's sum. One kernel has a block for 128 queries and
 * adds up dq, another a block for 128 keys and adds up dk and dv over the queries that see them. So no two blocks add
 * to one place, and sums have a fixed order. Where a head has no more than 128 of either, one kernel does both: what it
 * computes of a pair serves all three gradients (own_attend_short.c).
 */
#include "compiler/target/cuda/own_attend.h"

/* ---- of queries ---- */

const char ty_own_attend_delta[] = "#pragma unroll\n"
                                   "  for (int t = 0; t < MT; t++)\n"
                                   "#pragma unroll\n"
                                   "   for (int i = 0; i < 2; i++) {\n"
                                   "    const int at = mine + t * STEP + i * 8;\n"
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
    "  const int mine = first + warp * WARP + row, low = GROUP ? first : mine - row;\n"
    "  const int seen = first + ROWS + S - T, n = CAUSAL && seen < S ? seen : S;\n"
    "  float sum[MT][D / 8][4];\n"
    "  ZERO(sum, D / 8, MT)\n"
    "  TILE(tile, kh, kR, 0, S, OTHER, D)\n"
    "  TILE(tile + OTHER * LINE, vh, vR, 0, S, OTHER, E)\n"
    "#if GROUP\n"
    "  TILE(queries, qh, qR, first, T, ROWS, D)\n"
    "#else\n"
    "  unsigned f[MT][D / 16][4];\n"
    "  TILE(kept, qh, qR, first, T, ROWS, D)\n"
    "  ARRIVE();\n"
    "  KEEP(f, kept, D)\n"
    "  TY_BARRIER();\n"
    "#endif\n"
    "  TILE(kept, dyh, yR, first, T, ROWS, E)\n";

static const char attend_back_gradients[] = "#if !GROUP\n"
                                            "    ACROSS_OF(g_, kept, vs, OTHER, E)\n"
                                            "#endif\n"
                                            "#pragma unroll\n"
                                            "    for (int t = 0; t < MT; t++) {\n"
                                            "     float (*of)[4] = p[GROUP ? 0 : t], (*to)[4] = g_[GROUP ? 0 : t];\n"
                                            "#if GROUP\n"
                                            "     if (CAUSAL && key > first + t * STEP + STEP - 1 + S - T) continue;\n"
                                            "     ACROSS_ONE(of, queries, ks, OTHER, D, t)\n"
                                            "     ACROSS_ONE(to, kept, vs, OTHER, E, t)\n"
                                            "     ARRIVED(0, of, OTHER);\n"
                                            "     ARRIVED(0, to, OTHER);\n"
                                            "#endif\n";

static const char attend_back_queries[] =
    "     DROP_ROWS(to, mine + t * STEP, key, head, FACTOR)\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < OTHER / 2; j++) {\n"
    "      const int i = j / 2 % 2;\n"
    "      float *x = &of[j / 4][j % 4];\n"
    "      *x = PROBABILITY(*x, most[t][i]) * WANTED(to[j / 4][j % 4] - sum_of[t][i], most[t][i]);\n"
    "     }\n"
    "     ALONG_ONE(sum, of, ks, D, OTHER, t)\n"
    "    }\n"
    "    ALONG(sum, p, ks, D, OTHER)\n"
    "    LAST(sum, D)\n"
    "   }\n"
    "   ARRIVE();\n"
    "  }\n"
    "  unsigned short *dqh = dq + outer * qO + head * qH;\n"
    "#pragma unroll\n"
    "  for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "   for (int i = 0; i < 2; i++)\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < D / 8; j++)\n"
    "     if (mine + t * STEP + i * 8 < T)\n"
    "      *(unsigned *)&dqh[(mine + t * STEP + i * 8) * qR + j * 8 + pair] =\n"
    "       PACK(sum[t][j][2 * i] * scale, sum[t][j][2 * i + 1] * scale);\n"
    " }\n"
    "}\n";

void ty_own_attend_back(const ty_own_attend *x, const ty_own_attend_shape *shape, const char *results, ty_buf *text)
{
    ty_buf_init(text, TY_OWN_ATTEND_TEXT);
    ty_buf_addf(text,
                "(const unsigned short *q, const unsigned short *k, const unsigned short *v, const unsigned short *y, "
                "const float *lse, const unsigned short *dy, %s%s%s)\n",
                ty_own_attend_parameter(x), ty_own_attend_drawn(x), results);
    ty_own_attend_open(x, shape, text);
    ty_buf_adds(text, " const int even = ((unsigned long)q | (unsigned long)k | (unsigned long)v | (unsigned long)dy) "
                      "% 16 == 0;\n"
                      " (void)y;\n");
}

static void back_queries(const ty_cuda_own *o, const ty_own_attend *x)
{
    const ty_own_attend_shape shape = {.mt = x->wide ? 1 : 2, .other = x->wide ? 16 : 32, .group = 32, .small = true};
    ty_buf text;
    ty_own_attend_back(x, &shape, "float *delta, unsigned short *dq", &text);
    ty_own_attend_kept("queries", &text);
    ty_buf_adds(&text, " TY_SHARED TY_GROUP_ALIGNED unsigned short kept[ROWS * LINE], tile[4 * OTHER * LINE];\n");
    ty_own_attend_items(x, &shape, &text);
    ty_buf_adds(&text, attend_back_open);
    ty_buf_adds(&text, "  float most[MT][2], sum_of[MT][2];\n");
    ty_buf_adds(&text, ty_own_attend_delta);
    ty_buf_adds(&text, attend_back_delta);
    ty_buf_adds(&text, ty_own_attend_keys);
    ty_buf_adds(&text, "    float p[GROUP ? 1 : MT][OTHER / 8][4], g_[GROUP ? 1 : MT][OTHER / 8][4];\n"
                       "#if !GROUP\n"
                       "    ACROSS(p, f, queries, ks, OTHER, D, MT)\n"
                       "#endif\n");
    ty_own_attend_mask(x, false, &text);
    ty_buf_adds(&text, attend_back_gradients);
    ty_own_attend_mask(x, true, &text);
    ty_buf_adds(&text, attend_back_queries);
    const int more[] = {TY_CUDA_OWN_SCRATCH, ty_own_attend_result(x, TY_OWN_ATTEND_Q)};
    ty_own_attend_launch(o, x, &shape, &text, ty_own_attend_operands_of(x, more, 2));
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
    "  SUMS(stage) \\\n"
    " }\n"
    "#undef SUMS\n"
    "#if GROUP\n"
    "#define SUMS(stage)\n"
    "#else\n"
    "#define SUMS(stage) if (TY_THREAD < OTHER) { \\\n"
    "   const int at = asked + TY_THREAD; \\\n"
    "   const long from = (outer * HEADS + h) * T + at; \\\n"
    "   TY_ASYNC4(&most[(stage) * OTHER + TY_THREAD], lse + from, at < T); \\\n"
    "   TY_ASYNC4(&less[(stage) * OTHER + TY_THREAD], delta + from, at < T); \\\n"
    "  }\n"
    "#endif\n"
    "  const unsigned short *kh = k + outer * kO + head * kH, *vh = v + outer * vO + head * vH;\n"
    "  const int mine = first + warp * WARP + row, low = GROUP ? first : mine - row;\n"
    "  const int start = CAUSAL && first > S - T ? (first - (S - T)) / OTHER * OTHER : 0;\n"
    "  const int end = (head + 1) * (HEADS / GROUPS);\n"
    "  int h = head * (HEADS / GROUPS), asked = start;\n"
    "#if GROUP\n"
    "  TILE(keys, kh, kR, first, S, ROWS, D)\n"
    "#else\n"
    "  unsigned f[MT][D / 16][4];\n"
    "  TILE(tile, kh, kR, first, S, ROWS, D)\n"
    "  ARRIVE();\n"
    "  KEEP(f, tile, D)\n"
    "  TY_BARRIER();\n"
    "#endif\n"
    "#if DK\n"
    "  float ksum[MT][D / 8][4];\n"
    "  ZERO(ksum, D / 8, MT)\n"
    "#if GROUP\n"
    "  TILE(values, vh, vR, first, S, ROWS, E)\n"
    "#else\n"
    "  unsigned fv[MT][E / 16][4];\n"
    "  TILE(tile, vh, vR, first, S, ROWS, E)\n"
    "  ARRIVE();\n"
    "  KEEP(fv, tile, E)\n"
    "  TY_BARRIER();\n"
    "#endif\n"
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
    "   const int query = asked, of_head = h;\n"
    "   (void)of_head;\n"
    "   asked += OTHER;\n"
    "   if (asked >= T) asked = start, h++;\n"
    "   if (h < end) NEXT(stage ^ 1)\n"
    "#pragma unroll 1\n"
    "   for (int sub = 0; sub < OTHER; sub += SUB) {\n"
    "    const int from = query + sub;\n"
    "    if (CAUSAL && low > from + SUB - 1 + S - T) continue;\n"
    "    const int edge = CAUSAL && low + SPAN - 1 > from + S - T;\n"
    "#if GROUP\n"
    "    float most_at[SUB / 4], less_at[SUB / 4];\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < SUB / 4; j++) {\n"
    "     const int at = from + j / 2 * 8 + pair + j % 2;\n"
    "     most_at[j] = at < T ? lse[(outer * HEADS + of_head) * T + at] : 0;\n"
    "     less_at[j] = at < T ? delta[(outer * HEADS + of_head) * T + at] : 0;\n"
    "    }\n"
    "#else\n"
    "    const float *most_at = &most[stage * OTHER + sub + pair], *less_at = &less[stage * OTHER + sub + pair];\n"
    "#endif\n";

/* p becomes the gradient of the scores, but for the scale. KEYS_END: whether a key must be left out since there are not
 * so many; PRODUCTS: of the keys with the queries; PLACE: where the sums of a query are in most_at and less_at. Warps
 * that multiply together ask for products as soon as there is what they are of: for the scores of both t and the
 * gradients of the probabilities of the first, then for dv's of a t, the second gradients, and dk's. What is waited for
 * has so many groups behind it as ARRIVED says. */
const char ty_own_attend_few[] =
    "    const unsigned short *qt = qs + sub * LINE, *gt = gs + sub * LINE;\n"
    "    float p[MT][SUB / 8][4];\n"
    "    PRODUCTS(p, qt)\n"
    "#if GROUP\n"
    "    float g_[SUB / 8][4];\n"
    "    ACROSS_ONE(g_, values, gt, SUB, E, 0)\n"
    "#endif\n"
    "#pragma unroll\n"
    "    for (int t = 0; t < MT; t++) {\n"
    "     ARRIVED(2, p[t], SUB);\n"
    "     MASK(p[t], SUB / 2, from + j / 4 * 8 + pair + j % 2, mine + t * STEP + j / 2 % 2 * 8, OF_HEAD)\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < SUB / 2; j++) {\n"
    "      float *x = &p[t][j / 4][j % 4];\n"
    "      *x = PROBABILITY(*x, most_at[PLACE(j)] * log2e);\n"
    "     }\n"
    "     if (edge) {\n"
    "      TY_JUMP();\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < SUB / 2; j++)\n"
    "       if (KEYS_END(mine + t * STEP + j / 2 % 2 * 8) ||\n"
    "           (CAUSAL && mine + t * STEP + j / 2 % 2 * 8 > from + j / 4 * 8 + pair + j % 2 + S - T))\n"
    "        p[t][j / 4][j % 4] = 0;\n"
    "     }\n"
    "     DROP_KEYS(p[t], from, mine + t * STEP, OF_HEAD)\n"
    "#if DV\n"
    "     ALONG_ONE_AS(vsum, p[t], gt, E, SUB, t, PAIRS_LEFT)\n"
    "#endif\n"
    "    }\n"
    "#if DV\n"
    "    ALONG_AS(vsum, p, gt, E, SUB, PAIRS_LEFT)\n"
    "#endif\n"
    "#if DK\n"
    "#pragma unroll\n"
    "    for (int u = 0; u < MT; u++) {\n"
    "#if GROUP\n"
    "     if (u == 0) { ARRIVED(2, g_, SUB); } else { ARRIVED(1, g_, SUB); }\n"
    "     float (*of)[4] = g_;\n"
    "#else\n"
    "     float g_[1][SUB / 8][4], (*of)[4] = g_[0];\n"
    "     ACROSS(g_, fv + u, values, gt, SUB, E, 1)\n"
    "#endif\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < SUB / 2; j++) {\n"
    "      float *x = &p[u][j / 4][j % 4];\n"
    "      *x = DSCORE(*x, of[j / 4][j % 4], less_at[PLACE(j)], most_at[PLACE(j)] * log2e);\n"
    "     }\n"
    "#if GROUP\n"
    "     if (u + 1 < MT) ACROSS_ONE(g_, values, gt, SUB, E, u + 1)\n"
    "#endif\n"
    "     ALONG_ONE(ksum, p[u], qt, D, SUB, u)\n"
    "    }\n"
    "    ALONG(ksum, p, qt, D, SUB)\n"
    "#endif\n";

static const char attend_back_next[] = "   }\n"
                                       "   LAST(ksum, D)\n"
                                       "   LAST(vsum, E)\n"
                                       "   ARRIVE();\n"
                                       "  }\n";

const char ty_own_attend_store[] = "#pragma unroll\n"
                                   "  for (int t = 0; t < MT; t++)\n"
                                   "#pragma unroll\n"
                                   "   for (int i = 0; i < 2; i++) {\n"
                                   "    const long at = mine + t * STEP + i * 8;\n"
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
                                   "      PACK(vsum[t][j][2 * i] * FACTOR, vsum[t][j][2 * i + 1] * FACTOR);\n"
                                   "#endif\n"
                                   "   }\n"
                                   " }\n"
                                   "}\n";

void ty_own_attend_sums(const ty_own_attend_sums_of *of, ty_buf *text)
{
    ty_buf_addf(text,
                "#undef DK\n#undef DV\n#undef KEYS_END\n#undef PRODUCTS\n#undef PLACE\n#undef OF_HEAD\n"
                "#define OF_HEAD %s\n"
                "#define PLACE(j) ((j) / 4 * (%s) + (j) %% 2)\n"
                "#define DK %d\n#define DV %d\n#define KEYS_END(key) (%s)\n"
                "#define PRODUCTS(p, qt) %s\n",
                of->head, of->pairs, of->dk, of->dv, of->keys_end, of->products);
}

static const char attend_keys_memory[] =
    "#if GROUP\n"
    " TY_GROUP_ROOM(keys, 2 * ROWS * LINE + 4 * OTHER * LINE);\n"
    " unsigned short *const values = keys + ROWS * LINE, *const tile = values + ROWS * LINE;\n"
    "#else\n"
    " TY_SHARED TY_ALIGNED unsigned short tile[4 * OTHER * LINE];\n"
    " TY_SHARED float most[2 * OTHER], less[2 * OTHER];\n"
    "#endif\n";
enum { KEYS_BYTES = 2 * (2 * 128 + 4 * 64) * 64 }; /* of the first */

static void back_keys(const ty_cuda_own *o, const ty_own_attend *x, bool dk, bool dv)
{
    const ty_own_attend_shape shape = {
        .mt = x->wide ? 1 : 2, .other = x->wide ? 16 : 64, .group = 64, .keys = true, .bytes = KEYS_BYTES};
    const int dk_at = ty_own_attend_result(x, TY_OWN_ATTEND_K), dv_at = ty_own_attend_result(x, TY_OWN_ATTEND_V);
    ty_buf text;
    ty_own_attend_back(x, &shape,
                       dk && dv ? "const float *delta, unsigned short *dk, unsigned short *dv"
                       : dk     ? "const float *delta, unsigned short *dk"
                                : "const float *delta, unsigned short *dv",
                       &text);
    const ty_own_attend_sums_of sums = {dk, dv, "ACROSS(p, f, keys, qt, SUB, D, MT)", "0", "GROUP ? 2 : 8", "of_head"};
    ty_own_attend_sums(&sums, &text);
    ty_buf_adds(&text, attend_keys_memory);
    if (dk)
        ty_own_attend_behind(x, "dk", TY_OWN_ATTEND_K, &text);
    if (dv)
        ty_own_attend_behind(x, "dv", TY_OWN_ATTEND_V, &text);
    ty_own_attend_items(x, &shape, &text);
    ty_buf_adds(&text, attend_back_keys);
    ty_buf_adds(&text, ty_own_attend_few);
    ty_buf_adds(&text, attend_back_next);
    ty_buf_adds(&text, ty_own_attend_store);
    const int more[] = {TY_CUDA_OWN_SCRATCH, dk ? dk_at : dv_at, dv_at};
    ty_own_attend_launch(o, x, &shape, &text, ty_own_attend_operands_of(x, more, 1 + dk + dv));
}

int ty_cuda_own_attend_grad(const ty_cuda_own *o, ty_error *err)
{
    ty_own_attend x;
    if (ty_own_attend_read(o, &x, err) < 0)
        return -1;
    if (ty_own_attend_is_short(&x)) {
        ty_own_attend_short(o, &x);
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
