/* own_attend.c - attention in tiles, on a GPU, for 16-bit numbers: no T x S tensor is in memory. Its gradient is in
 * own_attend_grad.c.
 *
 * A block takes 128 queries of a head and goes through the keys, tile by tile, with the greatest score and the sum of
 * exponentials of each row so far (arXiv:2205.14135, arXiv:2307.08691). What the causal mask hides is left out tile by
 * tile, and of tiles on its edge by the warps that see nothing.
 *
 * Each of four warps has `MT` times 16 rows, of which it keeps the numbers in registers: two where heads have up to 64
 * numbers, so that what it reads of a tile serves two products, else one. Tiles of what the block goes through lie in
 * shared memory, two of them: while one is worked on the next one comes (cp.async). Their rows are padded by 16 bytes
 * so that the eight rows of a small matrix lie in different banks. What is kept comes through the same memory, first.
 *
 * On sm_90 heads of 64 numbers are multiplied by the four warps together (TY_GROUP: wgmma; the words ty_group_... in
 * head.c), which each have 16 rows of each of two halves of the block's. Tiles are read by the tensor cores themselves,
 * so rows are not padded but swizzled, and products go on beside what the warps do.
 *
 * Else products are those of the tensor cores, of 16 x 16 by 16 x 8 numbers, added up in float32 (the words ty_mma_...,
 * ty_tiles in head.c). In such a product a lane has the numbers of rows lane / 4 and 8 more, of columns 2 (lane % 4)
 * and 1 more; two products' results side by side, rounded, are the first operand of the next (PTX ISA, "Matrix
 * Fragments for mma.m16n8k16").
 */
#include "compiler/target/cuda/own_attend.h"

/* Warps that multiply together have scores of one t at a time, and so few registers that three blocks have room: while
 * one waits for products, others have something to do. */
static const char attend_forward_scores[] = "    float p[GROUP ? 1 : MT][OTHER / 8][4];\n"
                                            "#if !GROUP\n"
                                            "    ACROSS(p, f, queries, ks, OTHER, D, MT)\n"
                                            "#endif\n";

static const char attend_forward_rows[] = "#pragma unroll\n"
                                          "    for (int t = 0; t < MT; t++) {\n"
                                          "     float (*of)[4] = p[GROUP ? 0 : t];\n"
                                          "#if GROUP\n"
                                          "     if (CAUSAL && key > first + t * STEP + STEP - 1 + S - T) continue;\n"
                                          "     ACROSS_ONE(of, queries, ks, OTHER, D, t)\n"
                                          "     ARRIVED(0, of, OTHER);\n"
                                          "#endif\n";

/* The scores of a tile become probabilities but for their sum and a power of two; `most` is of scores that are not
 * scaled yet. It follows the greatest of them only where that is 2^8 times as much: what there is of the row need not
 * be brought to the new one at every tile, and a factor of 2^8 is nothing to sums nor to 16-bit numbers. */
static const char attend_softmax[] =
    "     float top[2] = {most[t][0], most[t][1]};\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < OTHER / 2; j++) top[j / 2 % 2] = __builtin_fmaxf(of[j / 4][j % 4], top[j / 2 % 2]);\n"
    "#pragma unroll\n"
    "     for (int i = 0; i < 2; i++)\n"
    "      for (int m = 1; m < 4; m *= 2) {\n"
    "       const float other = TY_SHUFFLE_F(top[i], m);\n"
    "       top[i] = __builtin_fmaxf(other, top[i]);\n"
    "      }\n"
    "     if (!((top[0] - most[t][0]) * scale2 <= 8 && (top[1] - most[t][1]) * scale2 <= 8)) {\n"
    "      TY_JUMP();\n"
    "#pragma unroll\n"
    "      for (int i = 0; i < 2; i++) {\n"
    "       const float less = ty_exp2((most[t][i] - top[i]) * scale2);\n"
    "       most[t][i] = top[i], sum[t][i] *= less;\n"
    "#pragma unroll\n"
    "       for (int j = 0; j < E / 8; j++) o[t][j][2 * i] *= less, o[t][j][2 * i + 1] *= less;\n"
    "      }\n"
    "     }\n"
    "#pragma unroll\n"
    "     for (int j = 0; j < OTHER / 2; j++) {\n"
    "      float *x = &of[j / 4][j % 4];\n"
    "      *x = FALLEN(*x, most[t][j / 2 % 2]);\n"
    "      sum[t][j / 2 % 2] += *x;\n"
    "     }\n"
    "     DROP_ROWS(of, mine + t * STEP, key, head, 1.0f)\n"
    "     ALONG_ONE(o, of, vs, E, OTHER, t)\n"
    "    }\n";

static const char attend_forward_open[] =
    "  const unsigned short *qh = q + outer * qO + head * qH;\n"
    "  const unsigned short *kh = k + outer * kO + head / (HEADS / GROUPS) * kH;\n"
    "  const unsigned short *vh = v + outer * vO + head / (HEADS / GROUPS) * vH;\n"
    "  const int mine = first + warp * WARP + row, low = GROUP ? first : mine - row;\n"
    "  const int seen = first + ROWS + S - T, n = CAUSAL && seen < S ? seen : S;\n"
    "  float o[MT][E / 8][4], most[MT][2], sum[MT][2];\n"
    "  ZERO(o, E / 8, MT)\n"
    "#pragma unroll\n"
    "  for (int t = 0; t < MT; t++) most[t][0] = most[t][1] = never, sum[t][0] = sum[t][1] = 0;\n"
    "#if GROUP\n"
    "  TILE(queries, qh, qR, first, T, ROWS, D)\n"
    "#else\n"
    "  unsigned f[MT][D / 16][4];\n"
    "  TILE(tile, qh, qR, first, T, ROWS, D)\n"
    "  ARRIVE();\n"
    "  KEEP(f, tile, D)\n"
    "  TY_BARRIER();\n"
    "#endif\n"
    "  TILE(tile, kh, kR, 0, S, OTHER, D)\n"
    "  TILE(tile + OTHER * LINE, vh, vR, 0, S, OTHER, E)\n";

static const char attend_forward_close[] =
    "    ALONG(o, p, vs, E, OTHER)\n"
    "    LAST(o, E)\n"
    "   }\n"
    "   ARRIVE();\n"
    "  }\n"
    "  unsigned short *yh = y + outer * yO + head * yH;\n"
    "#pragma unroll\n"
    "  for (int t = 0; t < MT; t++)\n"
    "#pragma unroll\n"
    "   for (int i = 0; i < 2; i++) {\n"
    "    for (int m = 1; m < 4; m *= 2) sum[t][i] += TY_SHUFFLE_F(sum[t][i], m);\n"
    "    const int at = mine + t * STEP + i * 8;\n"
    "    if (at >= T) continue;\n"
    "    const float part = PART(most[t][i], sum[t][i]) * FACTOR;\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < E / 8; j++)\n"
    "     *(unsigned *)&yh[at * yR + j * 8 + pair] = PACK(o[t][j][2 * i] * part, o[t][j][2 * i + 1] * part);\n"
    "    if (lane % 4 == 0) lse[(outer * HEADS + head) * T + at] = LSE(most[t][i], sum[t][i]);\n"
    "   }\n"
    " }\n"
    "}\n";

int ty_cuda_own_attend(const ty_cuda_own *o, ty_error *err)
{
    ty_own_attend x;
    ty_buf text;
    if (ty_own_attend_read(o, &x, err) < 0)
        return -1;
    const ty_own_attend_shape shape = {
        .mt = x.wide ? 1 : 2, .other = x.wide || x.masked ? 32 : 64, .group = 64, .small = true};
    ty_buf_init(&text, TY_OWN_ATTEND_TEXT);
    ty_buf_addf(&text,
                "(const unsigned short *q, const unsigned short *k, const unsigned short *v, %s%sunsigned short *y, "
                "float *lse)\n",
                ty_own_attend_parameter(&x), ty_own_attend_drawn(&x));
    ty_own_attend_open(&x, &shape, &text);
    ty_own_attend_kept("queries", &text);
    ty_buf_adds(&text, " TY_SHARED TY_GROUP_ALIGNED unsigned short tile[4 * OTHER * LINE];\n"
                       " const int even = ((unsigned long)q | (unsigned long)k | (unsigned long)v) % 16 == 0;\n");
    ty_own_attend_items(&x, &shape, &text);
    ty_buf_adds(&text, attend_forward_open);
    ty_buf_adds(&text, ty_own_attend_keys);
    ty_buf_adds(&text, attend_forward_scores);
    ty_own_attend_mask(&x, false, &text);
    ty_buf_adds(&text, attend_forward_rows);
    ty_own_attend_mask(&x, true, &text);
    ty_buf_adds(&text, attend_softmax);
    ty_buf_adds(&text, attend_forward_close);
    ty_own_attend_launch(o, &x, &shape, &text, ty_own_attend_operands_of(&x, (const int[]){x.n_in, x.n_in + 1}, 2));
    return 0;
}
