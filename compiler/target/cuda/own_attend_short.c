/* own_attend_short.c - the gradient of attention where a head has no more than 128 queries and keys, on a GPU
 * (own_attend_grad.c).
 *
 * A block has all keys and all queries of a head. It goes through the queries few at a time and leaves the gradients of
 * their scores in shared memory: from there, with the keys, come those of the queries. Each warp then has 16 of the
 * head's numbers, of all queries of the tile. Registers are few: where a tile lies is computed anew each time.
 */
#include "compiler/target/cuda/own_attend.h"

static const char attend_short_memory[] =
    "#if GROUP\n"
    " enum { TILES = 4 * ROWS * LINE };\n"
    " TY_GROUP_ROOM(keys, TILES + 4 * ROWS);\n"
    " unsigned short *const values = keys + ROWS * LINE, *const tile = values + ROWS * LINE;\n"
    " unsigned short *const scores = tile + 4 * OTHER * LINE;\n"
    " float *const most = (float *)(keys + TILES), *const less = most + ROWS;\n"
    "#else\n"
    " enum { SCORES = OTHER + 8 };\n"
    " TY_SHARED TY_ALIGNED unsigned short keys[ROWS * LINE], tile[4 * OTHER * LINE], scores[ROWS * SCORES];\n"
    " TY_SHARED float most[ROWS], less[ROWS];\n"
    "#endif\n";
enum { SHORT_BYTES = 2 * (4 * 128 * 64 + 4 * 128) }; /* of the first */

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
    "  const int mine = first + warp * WARP + row, low = GROUP ? first : mine - row;\n"
    "  float ksum[MT][D / 8][4], vsum[MT][E / 8][4];\n"
    "  ZERO(ksum, D / 8, MT)\n"
    "  ZERO(vsum, E / 8, MT)\n"
    "  TILE(keys, kh, kR, 0, S, ROWS, D)\n"
    "#if GROUP\n"
    "  TILE(values, vh, vR, 0, S, ROWS, E)\n"
    "  NEXT(0, 0)\n"
    "#else\n"
    "  unsigned fv[MT][E / 16][4];\n"
    "  TILE(tile, vh, vR, 0, S, ROWS, E)\n"
    "#endif\n";

static const char attend_short_delta[] = "    if (lane % 4 == 0) {\n"
                                         "     most[at] = at < T ? lse[(outer * HEADS + head) * T + at] : 0;\n"
                                         "     less[at] = d;\n"
                                         "    }\n"
                                         "   }\n"
                                         "  ARRIVE();\n"
                                         "#if !GROUP\n"
                                         "  KEEP(fv, tile, E)\n"
                                         "  TY_BARRIER();\n"
                                         "  NEXT(0, 0)\n"
                                         "  ARRIVE();\n"
                                         "#endif\n";

/* What the causal mask hides of a warp's keys is zeros to the queries. */
static const char attend_short_queries[] =
    "  for (int query = 0, stage = 0; query < T; query += OTHER, stage ^= 1) {\n"
    "   const unsigned short *qs = tile + stage * 2 * OTHER * LINE, *gs = qs + OTHER * LINE;\n"
    "   if (query + OTHER < T) NEXT(stage ^ 1, query + OTHER)\n"
    "#pragma unroll 1\n"
    "   for (int sub = 0; sub < OTHER; sub += SUB) {\n"
    "    const int from = query + sub;\n"
    "#if !GROUP\n"
    "    unsigned short *to = &scores[mine * SCORES + sub + pair];\n"
    "    if (CAUSAL && low > from + SUB - 1 + S - T) {\n"
    "     for (int i = 0; i < MT * 2; i++)\n"
    "      for (int j = 0; j < SUB; j += 8) *(unsigned *)&to[i * 8 * SCORES + j] = 0;\n"
    "     continue;\n"
    "    }\n"
    "#endif\n"
    "    const int edge = low + SPAN > S || (CAUSAL && low + SPAN - 1 > from + S - T);\n"
    "    const float *most_at = &most[from + pair], *less_at = &less[from + pair];\n";

/* Warps that multiply together bring in the gradients of 64 queries at a time; a row of the scores has as many. */
static const char attend_short_group[] =
    "#if GROUP\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < MT * 2; i++)\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < SUB / 8; j++)\n"
    "      *(unsigned *)&scores[AT(mine + i / 2 * STEP + i % 2 * 8, query % 64 + j * 8 + pair)] =\n"
    "       PACK(p[i / 2][j][i % 2 * 2], p[i / 2][j][i % 2 * 2 + 1]);\n"
    "   }\n"
    "   if (query % 64 + OTHER == 64 || query + OTHER >= T) {\n"
    "    float sum[D / 8][4];\n"
    "    TY_GROUP_SEES();\n"
    "    TY_BARRIER();\n"
    "    TY_GROUP_FENCE();\n"
    "#pragma unroll\n"
    "    for (int kk = 0; kk < ROWS / 16; kk++)\n"
    "     GROUP_TURNED(sum, TY_GROUP_TILE(scores), TY_GROUP_TILE(keys), kk, kk > 0);\n"
    "    TY_GROUP_COMMIT();\n"
    "    ARRIVED(0, sum, D);\n"
    "#pragma unroll\n"
    "    for (int i = 0; i < 2; i++) {\n"
    "     const int at = query / 64 * 64 + warp * 16 + row + i * 8;\n"
    "     if (at >= T) continue;\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < D / 8; j++)\n"
    "      *(unsigned *)&dq[outer * qO + head * qH + at * qR + j * 8 + pair] =\n"
    "       PACK(sum[j][2 * i] * scale, sum[j][2 * i + 1] * scale);\n"
    "    }\n"
    "   }\n"
    "   LAST(ksum, D)\n"
    "   LAST(vsum, E)\n"
    "   ARRIVE();\n"
    "  }\n"
    "#else\n";

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

bool ty_own_attend_is_short(const ty_own_attend *x)
{
    const ty_own_attend_shape shape = {.mt = 2};
    return !x->wide && x->a.heads == x->a.groups && x->a.t <= ty_own_attend_rows(&shape) &&
           x->a.s <= ty_own_attend_rows(&shape);
}

void ty_own_attend_short(const ty_cuda_own *o, const ty_own_attend *x)
{
    const ty_own_attend_shape shape = {.mt = 2, .other = 32, .group = 32, .keys = true, .bytes = SHORT_BYTES};
    const int results[] = {ty_own_attend_result(x, TY_OWN_ATTEND_Q), ty_own_attend_result(x, TY_OWN_ATTEND_K),
                           ty_own_attend_result(x, TY_OWN_ATTEND_V)};
    ty_buf text;
    ty_own_attend_back(x, &shape, "unsigned short *dq, unsigned short *dk, unsigned short *dv", &text);
    const ty_own_attend_sums_of sums = {true, true, "ACROSS_OF(p, keys, qt, SUB, D)", "(key) >= S", "8", "head"};
    ty_own_attend_sums(&sums, &text);
    ty_buf_adds(&text, attend_short_memory);
    ty_own_attend_behind(x, "dk", TY_OWN_ATTEND_K, &text);
    ty_own_attend_behind(x, "dv", TY_OWN_ATTEND_V, &text);
    ty_own_attend_items(x, &shape, &text);
    ty_buf_adds(&text, attend_short_open);
    ty_buf_adds(&text, ty_own_attend_delta);
    ty_buf_adds(&text, attend_short_delta);
    ty_buf_adds(&text, attend_short_queries);
    ty_buf_adds(&text, ty_own_attend_few);
    ty_buf_adds(&text, attend_short_group);
    ty_buf_adds(&text, attend_short_scores);
    ty_buf_adds(&text, "#endif\n");
    ty_buf_adds(&text, ty_own_attend_store);
    ty_own_attend_launch(o, x, &shape, &text, ty_own_attend_operands_of(x, results, 3));
}
