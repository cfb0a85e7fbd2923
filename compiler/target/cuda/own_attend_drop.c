/* own_attend_drop.c - dropout in attention's tiles (own_attend.h).
 *
 * Philox makes four words at once (base/rng.h): those of four neighbouring keys of a query. A thread has two of these
 * in one query and two in another, or, where a warp's rows are keys, one in each of four. So the threads that share
 * blocks of words make one each, and tell each other what is kept: bits, in one shuffle or two, as small floats. Where
 * queries have no multiple of four keys, a block belongs to two of them, and each thread makes what it needs. The
 * loop that makes words is no longer than one block of them: their rounds take registers that numbers need.
 *
 * Behind the backward pass' first use of probabilities p, where they meet dy, their sign says what is dropped.
 */
#include "compiler/target/cuda/own_attend.h"

#include <inttypes.h>

const char *ty_own_attend_drawn(const ty_own_attend *x)
{
    return x->drops ? "const long *seed, const long *step, " : "";
}

/* DROP_ROWS: of x, numbers of pairs in which a warp's rows are queries. DROP_KEYS: of probabilities in which they are
 * keys. FACTOR: of what is kept, where it is left to the end. PAIRS_LEFT: PAIRS (own_attend_tile.c) of what is kept.
 * DSCORE: the gradient of a score, of its probability's. */
static const char attend_whole[] = "#define FACTOR 1.0f\n"
                                   "#define DROP_ROWS(x, query, at_key, head, by)\n"
                                   "#define DROP_KEYS(p, query, at_key, head)\n"
                                   "#define PAIRS_LEFT PAIRS\n"
                                   "#define DSCORE(p, d, less, lse2) ((p) * WANTED((d) - (less), lse2))\n";

/* WORD: the number of a pair's word. KEPT_ROWS: bits 0 and 1 are of the keys `at_key` and the next one of a query, 2
 * and 3 of those of the query eight rows further down. KEPT_KEYS: bits 0 to 3 are of a key and a query, the next query,
 * both with the key eight rows further down; at_key is that of the first of four neighbouring rows. Negative zeros of p
 * are of no consequence. */
static const char attend_dropped[] =
    "#define WORD(query, key, head) (((outer * (long)HEADS + (head)) * T + (query)) * S + (key))\n"
    "#define KEPT_WORD(number) (ty_rng(drawn_seed, drawn_step, number, STREAM) >> 8 >= BELOW)\n"
    "#define KEPT_BLOCK(bits, number) { \\\n"
    "  const ty_words w_ = ty_rng_block(drawn_seed, drawn_step, (unsigned long)(number) / 4, STREAM); \\\n"
    "  bits = 0; \\\n"
    "  _Pragma(\"unroll\") for (int i_ = 0; i_ < 4; i_++) bits |= (unsigned)(w_.word[i_] >> 8 >= BELOW) << i_; \\\n"
    " }\n"
    "#define KEPT_ROWS(kept, query, at_key, head) { \\\n"
    "  const long word_ = WORD(query, at_key, head); \\\n"
    "  if (S % 4 == 0) { \\\n"
    "   const int odd_ = lane % 2; \\\n"
    "   unsigned bits_; \\\n"
    "   KEPT_BLOCK(bits_, odd_ ? word_ - 2 + 8l * S : word_) \\\n"
    "   const unsigned other_ = (unsigned)TY_SHUFFLE_F((float)(odd_ ? bits_ & 3 : bits_ >> 2), 1); \\\n"
    "   kept = odd_ ? other_ | (bits_ & 12) : (bits_ & 3) | other_ << 2; \\\n"
    "  } else { \\\n"
    "   kept = 0; \\\n"
    "   _Pragma(\"unroll\") for (int i_ = 0; i_ < 4; i_++) \\\n"
    "    kept |= (unsigned)KEPT_WORD(word_ + i_ / 2 * 8l * S + i_ % 2) << i_; \\\n"
    "  } \\\n"
    " }\n"
    "#define KEPT_KEYS(kept, query, at_key, head) { \\\n"
    "  const long word_ = WORD(query, at_key, head); \\\n"
    "  const int own_ = lane / 4 % 4; \\\n"
    "  if (S % 4 == 0) { \\\n"
    "   unsigned bits_; \\\n"
    "   KEPT_BLOCK(bits_, word_ + own_ % 2 * (long)S + own_ / 2 * 8) \\\n"
    "   float all_ = (float)(bits_ << 4 * own_); \\\n"
    "   all_ += TY_SHUFFLE_F(all_, 4); \\\n"
    "   all_ += TY_SHUFFLE_F(all_, 8); \\\n"
    "   const unsigned four_ = (unsigned)all_ >> own_; \\\n"
    "   kept = (four_ & 1) | (four_ >> 4 & 1) << 1 | (four_ >> 8 & 1) << 2 | (four_ >> 12 & 1) << 3; \\\n"
    "  } else { \\\n"
    "   kept = 0; \\\n"
    "   _Pragma(\"unroll\") for (int i_ = 0; i_ < 4; i_++) \\\n"
    "    kept |= (unsigned)KEPT_WORD(word_ + i_ % 2 * (long)S + i_ / 2 * 8 + own_) << i_; \\\n"
    "  } \\\n"
    " }\n"
    "#define DROP_ROWS(x, query, at_key, head, by) { \\\n"
    " unsigned all_ = 0; \\\n"
    " _Pragma(\"unroll 1\") for (int n_ = 0; n_ < OTHER / 8; n_++) { \\\n"
    "  unsigned kept_; \\\n"
    "  KEPT_ROWS(kept_, query, (at_key) + n_ * 8 + pair, head) \\\n"
    "  all_ |= kept_ << 4 * n_; \\\n"
    " } \\\n"
    " _Pragma(\"unroll\") for (int j_ = 0; j_ < OTHER / 2; j_++) \\\n"
    "  (x)[j_ / 4][j_ % 4] = all_ >> j_ & 1 ? (x)[j_ / 4][j_ % 4] * (by) : 0.0f; \\\n"
    " }\n"
    "#define DROP_KEYS(p, query, at_key, head) { \\\n"
    " unsigned all_ = 0; \\\n"
    " _Pragma(\"unroll 1\") for (int n_ = 0; n_ < SUB / 8; n_++) { \\\n"
    "  unsigned kept_; \\\n"
    "  KEPT_KEYS(kept_, (query) + n_ * 8 + pair, (at_key) - lane / 4 % 4, head) \\\n"
    "  all_ |= kept_ << 4 * n_; \\\n"
    " } \\\n"
    " _Pragma(\"unroll\") for (int j_ = 0; j_ < SUB / 2; j_++) \\\n"
    "  (p)[j_ / 4][j_ % 4] = all_ >> j_ & 1 ? (p)[j_ / 4][j_ % 4] : -(p)[j_ / 4][j_ % 4]; \\\n"
    " }\n"
    "#define LEFT(x) ((x) < 0 ? 0.0f : (x))\n"
    "#define PAIRS_LEFT(f, p, j) \\\n"
    " (f)[0] = PACK(LEFT((p)[j][0]), LEFT((p)[j][1])), (f)[1] = PACK(LEFT((p)[j][2]), LEFT((p)[j][3])), \\\n"
    " (f)[2] = PACK(LEFT((p)[(j) + 1][0]), LEFT((p)[(j) + 1][1])), \\\n"
    " (f)[3] = PACK(LEFT((p)[(j) + 1][2]), LEFT((p)[(j) + 1][3]))\n"
    "#define DSCORE(p, d, less, lse2) \\\n"
    " (__builtin_fabsf(p) * WANTED(((p) < 0 ? 0.0f : (d) * FACTOR) - (less), lse2))\n";

void ty_own_attend_drop_words(const ty_own_attend *x, ty_buf *text)
{
    ty_buf_adds(text,
                "#undef FACTOR\n#undef DROP_ROWS\n#undef DROP_KEYS\n#undef PAIRS_LEFT\n#undef DSCORE\n#undef WORD\n"
                "#undef KEPT_WORD\n#undef KEPT_BLOCK\n#undef KEPT_ROWS\n#undef KEPT_KEYS\n#undef LEFT\n");
    if (!x->drops) {
        ty_buf_adds(text, attend_whole);
        return;
    }
    ty_buf_addf(text,
                " const long drawn_seed = *seed, drawn_step = *step;\n const unsigned BELOW = %" PRIu32
                "u, STREAM = %" PRIu32 "u;\n#define FACTOR %af\n",
                x->dropout.below, x->dropout.stream, (double)(float)x->dropout.factor);
    ty_buf_adds(text, attend_dropped);
}
