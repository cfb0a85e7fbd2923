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
 * Products are those of the tensor cores, of 16 x 16 by 16 x 8 numbers, added up in float32 (the words ty_mma_...,
 * ty_tiles in head.c). In such a product a lane has the numbers of rows lane / 4 and 8 more, of columns 2 (lane % 4)
 * and 1 more; two products' results side by side, rounded, are the first operand of the next (PTX ISA, "Matrix
 * Fragments for mma.m16n8k16").
 */
#include "compiler/target/cuda/own_attend.h"

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
    ty_own_attend x;
    ty_buf text;
    if (ty_own_attend_read(o, &x, err) < 0)
        return -1;
    const ty_own_attend_shape shape = {.mt = x.wide ? 1 : 2, .other = x.wide ? 32 : 64};
    ty_buf_init(&text, TY_OWN_ATTEND_TEXT);
    ty_buf_adds(&text, "(const unsigned short *q, const unsigned short *k, const unsigned short *v, unsigned short *y, "
                       "float *lse)\n");
    ty_own_attend_open(&x, &shape, &text);
    ty_buf_adds(&text, " TY_SHARED TY_ALIGNED unsigned short tile[4 * OTHER * LINE];\n"
                       " const int even = ((unsigned long)q | (unsigned long)k | (unsigned long)v) % 16 == 0;\n");
    ty_own_attend_items("T", "HEADS", x.a.causal, &text);
    ty_buf_adds(&text, attend_forward_open);
    ty_buf_adds(&text, ty_own_attend_keys);
    ty_buf_adds(&text, ty_own_attend_mask);
    ty_buf_adds(&text, attend_softmax);
    ty_buf_adds(&text, attend_forward_close);
    ty_own_attend_launch(o, &x, &shape, &text, (const int[]){0, 1, 2, 3, 4}, 5);
    return 0;
}
