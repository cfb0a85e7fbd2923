/* own_attend_tile.c - see own_attend.h. */
#include "compiler/target/cuda/own_attend.h"

#include <inttypes.h>
#include <math.h>

enum { ATTEND_THREADS = 128, ATTEND_WARPS = 4, ATTEND_MAX_HEAD = 128, ATTEND_GROUP_HEAD = 64, ATTEND_BESIDE = 64 };

int ty_own_attend_read(const ty_cuda_own *o, ty_own_attend *out, ty_error *err)
{
    const ty_attr *attr = ty_graph_attr(o->g, o->node);
    const ty_type *q = ty_cuda_own_type(o, TY_OWN_ATTEND_Q);
    out->dtype = (ty_dtype)q->dtype;
    out->a =
        ty_attend_sizes_of(attr->flags, q, ty_cuda_own_type(o, TY_OWN_ATTEND_K), ty_cuda_own_type(o, TY_OWN_ATTEND_V));
    out->scale = attr->value;
    out->wide = out->a.d > 64 || out->a.e > 64;
    out->n_in = (int)ty_graph_node(o->g, o->node)->n_in;
    int mask_at = ty_graph_op(o->g, o->node) == TY_OP_ATTEND ? TY_ATTEND_MASK_AT : TY_ATTEND_GRAD_MASK_AT;
    out->drops = attr->flags & TY_ATTEND_DROPS;
    out->dropout = ty_attend_dropout_of(attr);
    out->masked = ty_attend_n_given(attr, out->n_in) > mask_at &&
                  ty_attend_mask_of(attr->flags, q, ty_cuda_own_type(o, mask_at), &out->mask);
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

ty_own_attend_operands ty_own_attend_operands_of(const ty_own_attend *x, const int *more, int n_more)
{
    ty_own_attend_operands which = {.n = x->n_in + n_more};
    for (int i = 0; i < which.n; i++)
        which.at[i] = i < x->n_in ? i : more[i - x->n_in];
    return which;
}

const char *ty_own_attend_parameter(const ty_own_attend *x)
{
    return !x->masked ? "" : x->mask.chooses ? "const unsigned char *mask, " : "const float *mask, ";
}

int ty_own_attend_rows(const ty_own_attend_shape *shape)
{
    return 16 * ATTEND_WARPS * shape->mt;
}

/* Whether warps may multiply together: rows of tiles have 128 bytes then. */
static bool attend_groups(const ty_own_attend *x, const ty_own_attend_shape *shape)
{
    return shape->group && x->a.d == ATTEND_GROUP_HEAD && x->a.e == ATTEND_GROUP_HEAD;
}

/* Steps from one row, head and `outer` to the next, where a row has `heads` heads. */
static void attend_steps(const ty_own_attend *x, const char *name, int64_t rows, int64_t heads, int64_t n, ty_buf *text)
{
    bool inside = x->a.inside;
    ty_buf_addf(text, " const long %sR = %" PRId64 ", %sH = %" PRId64 ", %sO = %" PRId64 ";\n", name,
                inside ? heads * n : n, name, inside ? n : rows * n, name, rows * heads * n);
}

void ty_own_attend_behind(const ty_own_attend *x, const char *name, int part, ty_buf *text)
{
    if (x->a.packed)
        ty_buf_addf(text, " %s += %" PRId64 ";\n", name, part * x->a.heads * x->a.d);
}

/* c[mt][.][4] [16 mt, n] = f x b's rows, sums over `depth`; f[mt][.][4]: fragments of the rows that are kept.
 * ACROSS_OF: of rows that lie in a tile, from which they are read each time. BOTH: the columns nn and the next ones, of
 * fragments `of` for each t. ALONG: c [16 MT, n] += p [16 MT, depth], rounded, x b [depth, n]; ALONG_ONE: of one t. AS:
 * how they are rounded, PAIRS or another word. */
static const char attend_by_warp[] =
    "#undef BOTH\n"
    "#define BOTH(c, of, mt) \\\n"
    " _Pragma(\"unroll\") for (int t = 0; t < (mt); t++) { \\\n"
    "  MMA((c)[t][nn / 8], of, g[0], g[1]); \\\n"
    "  MMA((c)[t][nn / 8 + 1], of, g[2], g[3]); \\\n"
    " }\n"
    "#define ACROSS(c, f, a, b, n, depth, mt) \\\n"
    " ZERO(c, (n) / 8, mt) \\\n"
    " _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) \\\n"
    "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
    "   unsigned g[4]; \\\n"
    "   ty_tiles(g, &(b)[(nn + lane % 8 + lane / 16 * 8) * LINE + kk * 16 + lane / 8 % 2 * 8]); \\\n"
    "   BOTH(c, (f)[t][kk], mt) \\\n"
    "  }\n"
    "#define ACROSS_OF(c, a, b, n, depth) \\\n"
    " ZERO(c, (n) / 8, MT) \\\n"
    " _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) { \\\n"
    "  unsigned f[MT][4]; \\\n"
    "  _Pragma(\"unroll\") for (int t = 0; t < MT; t++) \\\n"
    "   ty_tiles(f[t], &(a)[(warp * WARP + t * STEP + lane % 16) * LINE + kk * 16 + lane / 16 * 8]); \\\n"
    "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
    "   unsigned g[4]; \\\n"
    "   ty_tiles(g, &(b)[(nn + lane % 8 + lane / 16 * 8) * LINE + kk * 16 + lane / 8 % 2 * 8]); \\\n"
    "   BOTH(c, f[t], MT) \\\n"
    "  } \\\n"
    " }\n"
    "#define ALONG_AS(c, p, b, n, depth, as) \\\n"
    " _Pragma(\"unroll\") for (int kk = 0; kk < (depth); kk += 16) { \\\n"
    "  unsigned f[MT][4], g[4]; \\\n"
    "  _Pragma(\"unroll\") for (int t = 0; t < MT; t++) as(f[t], p[t], kk / 8); \\\n"
    "  _Pragma(\"unroll\") for (int nn = 0; nn < (n); nn += 16) { \\\n"
    "   ty_tiles_turned(g, &(b)[(kk + lane % 16) * LINE + nn + lane / 16 * 8]); \\\n"
    "   BOTH(c, f[t], MT) \\\n"
    "  } \\\n"
    " }\n"
    "#define ALONG_ONE_AS(c, p, b, n, depth, t, as)\n"
    "#define ARRIVED(left, c, n)\n"
    "#define LAST(c, n)\n";

/* The same for the four warps together, of products that go on beside what follows: each t is a group, and ARRIVED says
 * that of all groups but the last `left` the sums c are there. They are added up one t at a time, ALONG_ONE. Rows that
 * are kept lie in tiles (a): ptxas 13.0 takes fragments that a loop multiplies again and again for dead behind their
 * first use, and gives their registers away. */
static const char attend_by_group[] =
    "#define ACROSS(c, f, a, b, n, depth, mt) ACROSS_OF(c, a, b, n, depth)\n"
    "#define ACROSS_OF(c, a, b, n, depth) \\\n"
    " _Pragma(\"unroll\") for (int t = 0; t < MT; t++) ACROSS_ONE((c)[t], a, b, n, depth, t)\n"
    "#define ACROSS_ONE(c, a, b, n, depth, t) { \\\n"
    "  TY_GROUP_FENCE(); \\\n"
    "  _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) \\\n"
    "   GROUP_TILES(c, TY_GROUP_TILE((a) + (t) * STEP * LINE), TY_GROUP_TILE(b), kk, kk > 0, n); \\\n"
    "  TY_GROUP_COMMIT(); \\\n"
    " }\n"
    "#define ALONG_AS(c, p, b, n, depth, as)\n"
    "#define ALONG_ONE_AS(c, p, b, n, depth, t, as) { \\\n"
    "  unsigned f_[(depth) / 16][4]; \\\n"
    "  _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) as(f_[kk], p, kk * 2); \\\n"
    "  TY_GROUP_FENCE(); \\\n"
    "  _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) \\\n"
    "   GROUP_KEPT((c)[t], f_[kk], TY_GROUP_TILE(b), kk); \\\n"
    "  TY_GROUP_COMMIT(); \\\n"
    " }\n"
    "#define ARRIVED(left, c, n) TY_GROUP_WAIT(left); TY_GROUP_HELD(c, n)\n"
    "#define LAST(c, n) \\\n"
    " TY_GROUP_WAIT(0); \\\n"
    " _Pragma(\"unroll\") for (int t = 0; t < MT; t++) { TY_GROUP_HELD((c)[t], n); }\n";

/* TILE: asks for rows of an operand, zeros behind its end: 16 bytes a thread at a time, of the same column where all
 * threads have whole rows; `even`: all operands begin at multiples of 16 bytes. AT: where a number of a tile is; of
 * groups' tiles, eight rows of 128 bytes have their parts of 16 bytes in an order of their own (PTX ISA, "Shared memory
 * matrix layout", 128-byte swizzling). KEEP: the warp's rows of a tile as fragments. PAIRS: 16 numbers of each of 16
 * rows, rounded, as a fragment. */
static const char attend_tile[] =
    "#undef AT\n"
    "#if GROUP\n"
    "#define AT(r, c) ((r) * LINE + ((c) ^ (r) % 8 * 8))\n"
    "#else\n"
    "#define AT(r, c) ((r) * LINE + (c))\n"
    "#endif\n"
    "#undef TILE\n"
    "#define TILE(to, from, step, first, rows, count, n) \\\n"
    " if (!even) { \\\n"
    "  _Pragma(\"unroll 1\") for (int i = TY_THREAD; i < (count) * (n); i += 128) \\\n"
    "   (to)[AT(i / (n), i % (n))] = \\\n"
    "    (first) + i / (n) < (rows) ? (from)[((first) + i / (n)) * (step) + i % (n)] : 0; \\\n"
    " } else if (1024 % (n) == 0 && (count) % (1024 / (n)) == 0) { \\\n"
    "  int me = TY_THREAD; TY_ANEW(me); \\\n"
    "  const int r = me / ((n) / 8), c = me % ((n) / 8) * 8, left = (rows) - (first) - r; \\\n"
    "  unsigned short *at = &(to)[AT(r, c)]; \\\n"
    "  const unsigned short *of = (from) + ((first) + r) * (step) + c; \\\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < (count); i += 1024 / (n)) \\\n"
    "   TY_ASYNC16(at + i * LINE, of + i * (step), i < left); \\\n"
    " } else { \\\n"
    "  _Pragma(\"unroll 1\") for (int i = TY_THREAD; i < (count) * ((n) / 8); i += 128) { \\\n"
    "   const int r = i / ((n) / 8), c = i % ((n) / 8) * 8; \\\n"
    "   TY_ASYNC16(&(to)[AT(r, c)], (from) + ((first) + r) * (step) + c, (first) + r < (rows)); \\\n"
    "  } \\\n"
    " }\n"
    "#undef KEEP\n"
    "#define KEEP(f, a, depth) \\\n"
    " _Pragma(\"unroll\") for (int t = 0; t < MT; t++) \\\n"
    "  _Pragma(\"unroll\") for (int kk = 0; kk < (depth) / 16; kk++) \\\n"
    "   ty_tiles(f[t][kk], &(a)[AT(warp * WARP + t * STEP + lane % 16, kk * 16 + lane / 16 * 8)]);\n"
    "#undef PAIRS\n"
    "#define PAIRS(f, p, j) (f)[0] = PACK((p)[j][0], (p)[j][1]), (f)[1] = PACK((p)[j][2], (p)[j][3]), \\\n"
    "  (f)[2] = PACK((p)[(j) + 1][0], (p)[(j) + 1][1]), (f)[3] = PACK((p)[(j) + 1][2], (p)[(j) + 1][3])\n"
    "#undef ZERO\n"
    "#define ZERO(c, n, mt) \\\n"
    " _Pragma(\"unroll\") for (int t = 0; t < (mt); t++) \\\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < (n); i++) c[t][i][0] = c[t][i][1] = c[t][i][2] = c[t][i][3] = 0;\n"
    "#undef ARRIVE\n"
    "#define ARRIVE() do { TY_ASYNC_COMMIT(); TY_ASYNC_WAIT(); TY_GROUP_SEES(); TY_BARRIER(); } while (0)\n"
    "#undef ACROSS\n#undef ACROSS_OF\n#undef ALONG_AS\n#undef ALONG_ONE_AS\n#undef ACROSS_ONE\n"
    "#undef ARRIVED\n#undef LAST\n#undef ALONG\n#undef ALONG_ONE\n"
    "#define ALONG(c, p, b, n, depth) ALONG_AS(c, p, b, n, depth, PAIRS)\n"
    "#define ALONG_ONE(c, p, b, n, depth, t) ALONG_ONE_AS(c, p, b, n, depth, t, PAIRS)\n";

/* Words for what becomes of scores. MASK: those of the pairs i < n, of which a mask has the numbers from `of_mask` on,
 * by a query's number and a key's, scaled back as they will be scaled. FALLEN: the power of a score that is not scaled
 * yet, of the greatest. PROBABILITY: the same of its row's lse in powers of two. WANTED: a gradient of a probability,
 * unless bools have set all scores of the row. PART: of a row's sum; LSE. Without a mask all is seen. */
static const char attend_unmasked[] = "#define MASK(of, n, query, key, head)\n"
                                      "#define FALLEN(x, most) ty_exp2(__builtin_fmaf(x, scale2, -(most) * scale2))\n"
                                      "#define PROBABILITY(x, lse2) ty_exp2(__builtin_fmaf(x, scale2, -(lse2)))\n"
                                      "#define WANTED(d, lse2) (d)\n"
                                      "#define PART(most, sum) (1.0f / (sum))\n"
                                      "#define LSE(most, sum) ((most) * scale + ty_log_f32(sum))\n";

/* Where all of a row is hidden, scores are equal, and must be so when they are brought to the greatest: it is taken
 * away before what is left is scaled, which makes exactly 0 of two that are the same. */
static const char attend_masked[] =
    "#define MASK(of, n, query, key, head) { \\\n"
    "  const MASK_TYPE *of_mask = mask + outer / MASK_DIV % MASK_MOD * mask_O + (head) * mask_H; \\\n"
    "  _Pragma(\"unroll\") for (int j_ = 0; j_ < (n); j_ += 4) { \\\n"
    "   int lane_ = lane; TY_ANEW(lane_); \\\n"
    "   const int row = lane_ / 4, pair = lane_ % 4 * 2; \\\n"
    "   _Pragma(\"unroll\") for (int j = j_; j < j_ + 4; j++) { \\\n"
    "    const int at_query = (query), at_key = (key); \\\n"
    "    float *score = &(of)[j / 4][j % 4]; \\\n"
    "    if ((T % 128 == 0 || at_query < T) && (S % 128 == 0 || at_key < S)) \\\n"
    "     *score = MASKED(*score, of_mask[at_query * mask_T + at_key * mask_S]); \\\n"
    "   } \\\n"
    "  } \\\n"
    " }\n"
    "#define FALLEN(x, most) ty_exp2(((x) - (most)) * scale2)\n"
    "#define PROBABILITY(x, lse2) \\\n"
    " ((lse2) < IS_HIDDEN * log2e ? (x) * scale < IS_UNSEEN ? 0.0f : HIDDEN * log2e / (lse2) : \\\n"
    "  ty_exp2(__builtin_fmaf(x, scale2, -(lse2))))\n"
    "#define WANTED(d, lse2) (BLIND && (lse2) < IS_HIDDEN * log2e ? 0.0f : (d))\n"
    "#define PART(most, sum) ((most) * scale < IS_UNSEEN ? __builtin_nanf(\"\") : 1.0f / (sum))\n"
    "#define LSE(most, sum) \\\n"
    " ((most) * scale < IS_UNSEEN   ? __builtin_nanf(\"\") \\\n"
    "  : (most) * scale < IS_HIDDEN ? HIDDEN * (sum) : (most) * scale + ty_log_f32(sum))\n";

static void attend_words(const ty_own_attend *x, ty_buf *text)
{
    const ty_attend_mask *m = &x->mask;
    bool is_small = x->a.t * x->a.s <= INT32_MAX;
    ty_buf_adds(text, "#undef MASK\n#undef MASKED\n#undef MASK_TYPE\n#undef FALLEN\n#undef PROBABILITY\n"
                      "#undef WANTED\n#undef PART\n#undef LSE\n");
    if (!x->masked) {
        ty_buf_adds(text, attend_unmasked);
        return;
    }
    ty_buf_addf(text,
                " enum { MASK_DIV = %" PRId64 ", MASK_MOD = %" PRId64 ", BLIND = %d };\n"
                " const long mask_O = %" PRId64 ", mask_H = %" PRId64 ";\n const %s mask_T = %" PRId64
                ", mask_S = %" PRId64 ";\n",
                m->div, m->mod, m->blind, m->outer_step, m->head_step, is_small ? "int" : "long", m->query_step,
                m->key_step);
    ty_buf_addf(text, " const float HIDDEN = %af, IS_HIDDEN = %af, IS_UNSEEN = %af;\n", (double)(float)TY_ATTEND_HIDDEN,
                (double)(float)TY_ATTEND_IS_HIDDEN, (double)(float)TY_ATTEND_IS_UNSEEN);
    ty_buf_addf(text, "#define MASK_TYPE %s\n#define MASKED(score, m) ", m->chooses ? "unsigned char" : "float");
    if (m->chooses)
        ty_buf_addf(text, "((m) ? (score) : %af)\n", (double)(float)(m->hidden / x->scale));
    else
        ty_buf_addf(text, "__builtin_fmaf(m, %af, score)\n", (double)(float)(1 / x->scale));
    ty_buf_adds(text, " (void)HIDDEN, (void)IS_HIDDEN, (void)IS_UNSEEN;\n");
    ty_buf_adds(text, attend_masked);
}

void ty_own_attend_open(const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text)
{
    const ty_attend_sizes *a = &x->a;
    const char *suffix = x->dtype == TY_BF16 ? "bf16" : "f16";
    ty_buf_addf(text,
                "{\n#undef MMA\n#undef PACK\n#undef LOAD\n#undef GROUP_KEPT\n#undef GROUP_TILES\n#undef GROUP\n#undef "
                "GROUP_TURNED\n"
                "#define MMA ty_mma_%s\n#define PACK ty_pack_%s\n#define LOAD ty_load_%s\n"
                "#define GROUP_KEPT ty_group_kept_%s\n#define GROUP_TILES ty_group_tiles_%s\n"
                "#define GROUP_TURNED ty_group_turned_%s\n#define GROUP %s\n",
                suffix, suffix, suffix, suffix, suffix, suffix, attend_groups(x, shape) ? "TY_GROUP" : "0");
    ty_buf_addf(text,
                " enum { D = %" PRId64 ", E = %" PRId64 ", LINE = GROUP ? %d : %" PRId64
                ", OTHER = GROUP ? %d : %d, CAUSAL = %d, MT = %d };\n"
                " enum { T = %" PRId64 ", S = %" PRId64 ", HEADS = %" PRId64 ", GROUPS = %" PRId64 ", OUTER = %" PRId64
                ", ROWS = %d };\n"
                " enum { SUB = GROUP ? 32 : 16, WARP = GROUP ? 16 : MT * 16, STEP = GROUP ? 64 : 16, "
                "SPAN = GROUP ? ROWS : WARP };\n",
                a->d, a->e, ATTEND_GROUP_HEAD, (a->d > a->e ? a->d : a->e) + 8, shape->group, shape->other, a->causal,
                shape->mt, a->t, a->s, a->heads, a->groups, a->outer, ty_own_attend_rows(shape));
    int parts = a->packed ? TY_OWN_ATTEND_Y : 1;
    attend_steps(x, "q", a->t, parts * a->heads, a->d, text);
    attend_steps(x, "k", a->s, parts * a->groups, a->d, text);
    attend_steps(x, "v", a->s, parts * a->groups, a->e, text);
    attend_steps(x, "y", a->t, a->heads, a->e, text);
    ty_own_attend_behind(x, "k", TY_OWN_ATTEND_K, text);
    ty_own_attend_behind(x, "v", TY_OWN_ATTEND_V, text);
    ty_buf_addf(text, " const float scale = %af, scale2 = %af;\n", (double)(float)x->scale,
                (double)(float)(x->scale / M_LN2));
    ty_buf_adds(text, " const int warp = TY_THREAD / 32, lane = TY_THREAD % 32, row = lane / 4, pair = lane % 4 * 2;\n"
                      " const float never = -__builtin_inff(), log2e = 0x1.715476p+0f;\n"
                      " (void)scale, (void)scale2, (void)never, (void)log2e;\n");
    attend_words(x, text);
    ty_own_attend_drop_words(x, text);
    ty_buf_adds(text, attend_tile);
    ty_buf_adds(text, "#if GROUP\n");
    ty_buf_adds(text, attend_by_group);
    ty_buf_adds(text, "#else\n");
    ty_buf_adds(text, attend_by_warp);
    ty_buf_adds(text, "#endif\n");
}

void ty_own_attend_kept(const char *name, ty_buf *text)
{
    ty_buf_addf(text, "#if GROUP\n TY_SHARED TY_GROUP_ALIGNED unsigned short %s[ROWS * LINE];\n#endif\n", name);
}

/* Heads that go side by side: their keys and values have room in the cache. */
static int64_t attend_beside(int64_t heads)
{
    int64_t n = heads < ATTEND_BESIDE ? heads : ATTEND_BESIDE;
    while (heads % n)
        n--;
    return n;
}

void ty_own_attend_items(const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text)
{
    const char *heads = shape->keys ? "GROUPS" : "HEADS";
    int64_t all = (shape->keys ? x->a.groups : x->a.heads) * x->a.outer;
    ty_buf_addf(
        text,
        " const int tiles = (%s + ROWS - 1) / ROWS, beside = %d;\n"
        " TY_BLOCK_EACH(item, tiles * %s * OUTER) {\n"
        "  const int number = item / beside %% tiles, one = item / (beside * tiles) * beside + item %% beside;\n"
        "  const int first = (%snumber) * ROWS, head = one %% %s, outer = one / %s;\n",
        shape->keys ? "S" : "T", x->a.causal ? (int)attend_beside(all) : 1, heads,
        x->a.causal && !shape->keys ? "tiles - 1 - " : "", heads, heads);
}

void ty_own_attend_launch(const ty_cuda_own *o, const ty_own_attend *x, const ty_own_attend_shape *shape, ty_buf *text,
                          ty_own_attend_operands which)
{
    int rows = ty_own_attend_rows(shape);
    bool groups = attend_groups(x, shape);
    int64_t tiles = ((shape->keys ? x->a.s : x->a.t) + rows - 1) / rows;
    const ty_cuda_launch launch = {.form = "attend",
                                   .threads = ATTEND_THREADS,
                                   .blocks = tiles * (shape->keys ? x->a.groups : x->a.heads) * x->a.outer,
                                   .has_barriers = true,
                                   .group_bytes = groups ? shape->bytes : 0,
                                   .room = groups && shape->small ? TY_CUDA_GROUP : TY_CUDA_TWO};
    o->launch(o->ctx, text, launch, which.at, which.n);
    ty_buf_fini(text);
}

const char ty_own_attend_keys[] =
    "  ARRIVE();\n"
    "  for (int key = 0, stage = 0; key < n; key += OTHER, stage ^= 1) {\n"
    "   unsigned short *ks = tile + stage * 2 * OTHER * LINE, *vs = ks + OTHER * LINE;\n"
    "   if (key + OTHER < n) {\n"
    "    unsigned short *next = tile + (stage ^ 1) * 2 * OTHER * LINE;\n"
    "    TILE(next, kh, kR, key + OTHER, S, OTHER, D)\n"
    "    TILE(next + OTHER * LINE, vh, vR, key + OTHER, S, OTHER, E)\n"
    "   }\n"
    "   if (!CAUSAL || key <= low + SPAN - 1 + S - T) {\n"
    "    const int edge = key + OTHER > S || (CAUSAL && key + OTHER - 1 > low + S - T);\n";

/* Of a tile on the edge of what is seen: scores that are not seen are never the greatest, and nothing of the sum. */
static const char attend_edge[] =
    "     if (edge) {\n"
    "      TY_JUMP();\n"
    "#pragma unroll\n"
    "      for (int j = 0; j < OTHER / 2; j++)\n"
    "       if (key + j / 4 * 8 + pair + j % 2 > (CAUSAL ? mine + t * STEP + j / 2 % 2 * 8 + S - T : S - 1))\n"
    "        of[j / 4][j % 4] = never;\n"
    "     }\n";

void ty_own_attend_mask(const ty_own_attend *x, bool by_group, ty_buf *text)
{
    ty_buf_adds(text, by_group ? "#if GROUP\n"
                               : "#if !GROUP\n#pragma unroll\n    for (int t = 0; t < MT; t++) {\n"
                                 "     float (*of)[4] = p[t];\n");
    if (x->masked)
        ty_buf_adds(
            text, "     MASK(of, OTHER / 2, mine + t * STEP + j / 2 % 2 * 8, key + j / 4 * 8 + pair + j % 2, head)\n");
    ty_buf_adds(text, attend_edge);
    ty_buf_adds(text, by_group ? "#endif\n" : "    }\n#endif\n");
}
