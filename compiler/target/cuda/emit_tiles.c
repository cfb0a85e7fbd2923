/* emit_tiles.c - kernels that read some of their memory across the loop's direction, in square tiles. See emit.h.
 *
 * A block takes a tile of the fastest variable f and the one, t, along which the turned operands lie in memory. Threads
 * first walk along t and carry these operands into shared memory, then along f, where everything else lies side by
 * side:
 *
 *     q5[y][x] = b1[t + ... ];        x: TY_THREAD % edge, along t; y: along f
 *     TY_BARRIER();
 *     b2[f + ...] = ... q5[x][y] ...  x: along f; y: along t
 *     TY_BARRIER();                   before the next tile is carried
 *
 * Rows of a tile are one bank longer than its edge, so that threads which read down a column of it meet 32 banks.
 */
#include "compiler/target/cuda/emit.h"

enum { TILE_BANK = 4 }; /* bytes */

static void tile_declare(ty_cuda_emit *c)
{
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        int bytes = (int)ty_dtype_bytes(c->t.k->instr[i].dtype), pad = bytes < TILE_BANK ? TILE_BANK / bytes : 1;
        if (c->l.tiled[i])
            ty_ktext_linef(&c->t, "TY_SHARED %s q%u[%d][%d];\n", ty_emit_memory(c->t.k->instr[i].dtype), i, c->l.edge,
                           c->l.edge + pad);
    }
}

static const char *tile_first(const ty_cuda_emit *c, int var)
{
    return var == c->l.fast ? "f0" : "t0";
}

/* Opens a loop over the part of the tile that a thread has, `along` one variable from thread to thread: two blocks. */
static void tile_walk(ty_cuda_emit *c, int along, int down, const char *unroll)
{
    const char *index = ty_emit_index(c);
    int rows = TY_CUDA_THREADS / c->l.edge;
    ty_ktext_linef(&c->t, "%s for (int j = 0; j < %d; j++) {\n", unroll, c->l.edge / rows);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const int y = TY_THREAD / %d + j * %d;\n", c->l.edge, rows);
    ty_ktext_linef(&c->t, "const %s i%d = %s + x, i%d = %s + y;\n", index, along, tile_first(c, along), down,
                   tile_first(c, down));
    ty_ktext_linef(&c->t, "if (i%d < %ld && i%d < %ld) {\n", along, (long)c->t.k->extent[along], down,
                   (long)c->t.k->extent[down]);
    c->t.indent++;
}

static void tile_carry(ty_cuda_emit *c)
{
    tile_walk(c, c->l.turned, c->l.fast, "TY_UNROLL");
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++) {
        if (!c->l.tiled[i])
            continue;
        ty_ktext_line(&c->t);
        ty_buf_addf(c->t.out, "q%u[y][x] = ", i);
        ty_ktext_element(&c->t, c->t.k->instr[i].buffer, c->t.k->instr[i].addr);
        ty_buf_adds(c->t.out, ";\n");
    }
    ty_emit_close(c);
    ty_emit_close(c);
}

static void tile_compute(ty_cuda_emit *c)
{
    tile_walk(c, c->l.fast, c->l.turned, "TY_UNROLL_4");
    ty_ktext_linef(&c->t, "const int w = 0; (void)w;\n");
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (c->l.tiled[i])
            ty_ktext_linef(&c->t, "const %s x%u[1] = {q%u[x][y]};\n", ty_emit_memory(c->t.k->instr[i].dtype), i, i);
    ty_emit_group(c, 0);
    ty_emit_close(c);
    ty_emit_close(c);
}

/* The first point of a tile, from its number; what is left of the number is of the other variables. */
static void tile_begin(ty_cuda_emit *c, int var)
{
    long tiles = (long)((c->t.k->extent[var] + c->l.edge - 1) / c->l.edge);
    ty_ktext_linef(&c->t, "const %s %s = p %% %ld * %d; p /= %ld;\n", ty_emit_index(c), tile_first(c, var), tiles,
                   c->l.edge, tiles);
}

void ty_emit_tiles(ty_cuda_emit *c)
{
    int others[TY_K_MAX_VARS], n = 0;
    for (int i = 0; i < c->t.k->n_order; i++)
        if (c->t.k->order[i] != c->l.fast && c->t.k->order[i] != c->l.turned)
            others[n++] = c->t.k->order[i];
    tile_begin(c, c->l.fast);
    tile_begin(c, c->l.turned);
    ty_emit_decode(c, others, n, "p");
    ty_ktext_linef(&c->t, "const int x = TY_THREAD %% %d;\n", c->l.edge);
    tile_declare(c);
    tile_carry(c);
    ty_ktext_linef(&c->t, "TY_BARRIER();\n");
    tile_compute(c);
    ty_ktext_linef(&c->t, "TY_BARRIER();\n");
}
