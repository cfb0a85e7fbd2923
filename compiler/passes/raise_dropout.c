/* raise_dropout.c - dropout: numbers that are kept by chance, and zeros.
 *
 *     select(rate <= u, x / (1 - rate), 0)      u = (word >> 8) 2^-24, of random words of x's shape
 *
 * as every importer writes it. A word is kept where its upper 24 bits are no less than rate 2^24.
 */
#include "compiler/passes/raise.h"

#include <math.h>

/* Of 1 / (1 - rate), which is a float32 where it is multiplied by. */
#define DROPOUT_TOLERANCE 1e-6

/* u's words; TY_NONE if it is no such number. */
static ty_val dropout_words(const ty_raise *r, ty_val u)
{
    double factor = 1, shift;
    ty_val top = ty_raise_unscaled(r, u, &factor);
    if (factor != 0x1p-24 || !ty_raise_is(r, top, TY_OP_CAST) || ty_graph_type(r->g, top)->dtype != TY_F32)
        return TY_NONE;
    ty_val bits = ty_raise_in(r, top, 0);
    if (!ty_raise_is(r, bits, TY_OP_SHR) || !ty_graph_splat_value(r->g, ty_raise_in(r, bits, 1), &shift) || shift != 8)
        return TY_NONE;
    ty_val words = ty_raise_in(r, bits, 0);
    return ty_raise_is(r, words, TY_OP_RNG) ? words : TY_NONE;
}

bool ty_raise_is_dropout(const ty_raise *r, ty_val v, ty_raise_dropout *out)
{
    double zero, rate, factor = 1;
    if (!ty_raise_is(r, v, TY_OP_SELECT) || !ty_raise_is(r, ty_raise_in(r, v, 0), TY_OP_LE) ||
        !ty_graph_splat_value(r->g, ty_raise_in(r, v, 2), &zero) || zero != 0)
        return false;
    ty_val kept = ty_raise_in(r, v, 0), words = dropout_words(r, ty_raise_in(r, kept, 1));
    if (words == TY_NONE || !ty_graph_splat_value(r->g, ty_raise_in(r, kept, 0), &rate) || !(rate > 0 && rate < 1))
        return false;
    *out = (ty_raise_dropout){.x = ty_raise_unscaled(r, ty_raise_in(r, v, 1), &factor),
                              .seed = ty_raise_in(r, words, 0),
                              .step = ty_raise_in(r, words, 1),
                              .stream = ty_graph_attr(r->g, ty_val_node(words))->index,
                              .below = (uint32_t)ceil(rate * 0x1p24)};
    return fabs(factor * (1 - rate) - 1) < DROPOUT_TOLERANCE && out->below < 1 << 24;
}
