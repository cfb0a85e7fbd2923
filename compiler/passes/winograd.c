/* winograd.c - which convolutions may be computed with fewer multiplications.
 *
 * Windows of 3 x 3 that move by one overlap: a tile of 4 x 4 results needs 36 products a pair of channels where the
 * definition has 144 (Winograd 1980; Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, F(4x4,
 * 3x3)). The price is to transform tiles and weights, which pays where there are many channels and enough tiles, and
 * rounding: against sums in double a result is 4 to 7 times as far off as a plain one (1e-6 of its size), the gradient
 * of the weights half as far, since its sums are shorter. Here such convolutions are marked; a target may do as it
 * likes, and strict determinism computes them plainly.
 */
#include "compiler/ir/clone.h"
#include "compiler/ops/op.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>

#define WINOGRAD_WINDOW 3
#define WINOGRAD_TILE   4 /* results along an axis */

/* Channels of the side that has fewer, and of both together: with fewer the transforms cost what the products save. Of
 * 16 and 64, and of 24 and 24, all three take 0.6 to 0.8 of the time, of 16 and 16 0.95 to 1.3. */
#define WINOGRAD_CHANNELS      16
#define WINOGRAD_BOTH_CHANNELS 48

/* One tile for this many channels: with fewer tiles transforming the weights outweighs the rest. 512 channels of 7 x 7,
 * 32 tiles, take 0.6 of the time of plain sums forward and 0.65 and 0.5 for the gradients. */
#define WINOGRAD_CHANNELS_A_TILE 16

static int64_t winograd_tiles(const ty_attr *attr, const ty_type *y)
{
    ty_type first = ty_sliding_first(attr, y);
    int64_t tiles = first.dim[0];
    for (int i = 2; i < first.rank; i++)
        tiles *= (first.dim[i] + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
    return tiles;
}

static bool winograd_fits_window(const ty_attr *attr, const ty_type *w)
{
    bool fits = attr->n == 2 && attr->groups == 1;
    for (uint32_t i = 0; i < attr->n; i++)
        fits &= w->dim[2 + i] == WINOGRAD_WINDOW && attr->step[i] == 1 && attr->dil[i] == 1 && attr->lo[i] <= 1 &&
                attr->hi[i] <= 1;
    return fits;
}

/* Of bfloat16 direct sums take half the time of float32's, where a processor has instructions for them, and these take
 * as long as before. In units of what a tile's products take for a pair of channels: the direct sums of nine results
 * take 1; transforming the tiles of a channel takes 12, and the weights of a pair as much (Zen 4, 13 shapes of 32 to
 * 512 channels: mostly within 0.15 of the ratio). Then all three take 0.65 to 0.9 of the time: of 32 channels from
 * images of 56 x 56 on, of 64 from 28 x 28, of 256 from 14 x 14. The gradient of the weights transforms no weights, and
 * takes 0.6 to 0.9 of the time from 24 channels on. */
#define WINOGRAD_BF16_CHANNELS  24
#define WINOGRAD_BF16_RESULTS   9.0
#define WINOGRAD_BF16_TRANSFORM 12.0

static bool winograd_pays_bf16(ty_op op, const ty_attr *attr, const ty_type *w, const ty_type *y)
{
    double tiles = (double)winograd_tiles(attr, y), in = (double)w->dim[1], out = (double)w->dim[0];
    double results = (double)ty_type_elems(y) / out;
    if (op == TY_OP_CONV_DW)
        return in >= WINOGRAD_BF16_CHANNELS && out >= WINOGRAD_BF16_CHANNELS;
    return tiles * (1 + WINOGRAD_BF16_TRANSFORM * (1 / in + 1 / out)) + WINOGRAD_BF16_TRANSFORM <
           results / WINOGRAD_BF16_RESULTS;
}

static bool winograd_pays(ty_op op, const ty_attr *attr, const ty_type *w, const ty_type *y)
{
    int64_t most = w->dim[0] > w->dim[1] ? w->dim[0] : w->dim[1], least = w->dim[0] + w->dim[1] - most;
    if (!winograd_fits_window(attr, w) || least < WINOGRAD_CHANNELS || least + most < WINOGRAD_BOTH_CHANNELS ||
        winograd_tiles(attr, y) * WINOGRAD_CHANNELS_A_TILE < most)
        return false;
    return y->dtype == TY_F32 || (y->dtype == TY_BF16 && winograd_pays_bf16(op, attr, w, y));
}

static bool winograd_takes(const ty_graph *g, uint32_t id)
{
    const ty_attr *attr = ty_graph_attr(g, id);
    const ty_type *res = ty_graph_type(g, ty_val_make(id, 0));
    ty_op op = ty_graph_op(g, id);
    switch (op) {
    case TY_OP_CONV:
        return winograd_pays(op, attr, ty_graph_type(g, ty_graph_in(g, id, 1)), res);
    case TY_OP_CONV_DX:
        return winograd_pays(op, attr, ty_graph_type(g, ty_graph_in(g, id, 1)),
                             ty_graph_type(g, ty_graph_in(g, id, 0)));
    case TY_OP_CONV_DW:
        return winograd_pays(op, attr, res, ty_graph_type(g, ty_graph_in(g, id, 1)));
    default:
        return false;
    }
}

static void winograd_mark(ty_clone *c, uint32_t id)
{
    ty_attr attr = *ty_graph_attr(c->from, id);
    ty_val in[2];
    ty_clone_inputs(c, id, in);
    attr.flags |= TY_SLIDING_WINOGRAD;
    ty_graph_origin(c->to, ty_graph_origin_of(c->from, id));
    c->map[ty_val_make(id, 0)] = ty_graph_emit(c->to, ty_graph_op(c->from, id), &attr, in, 2);
}

int ty_pass_winograd(const ty_graph *in, ty_graph **out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(in);
    uint8_t *live = calloc((size_t)n + 1, 1);
    *out = NULL;
    if (!live)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n);
    ty_graph_mark_live(in, TY_TAPE_ALL, live);
    ty_clone c;
    ty_clone_begin(&c, in);
    for (uint32_t id = 0; id < n && !ty_graph_failed(c.to, NULL); id++) {
        if (live[id] && winograd_takes(in, id))
            winograd_mark(&c, id);
        else if (live[id])
            ty_clone_node(&c, id);
    }
    free(live);
    return ty_clone_finish(&c, out, err);
}
