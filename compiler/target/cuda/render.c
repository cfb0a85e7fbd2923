/* render.c - kernels as CUDA C: what surrounds the body. See render.h. */
#include "compiler/target/cuda/render.h"

#include "compiler/ops/op.h"
#include "compiler/target/cuda/emit.h"

#include <stdio.h>

enum { CUDA_DEAR = 24, CUDA_BLOCKS_OF_DEAR = 1024 };

static bool cuda_same_operand(const ty_cuda_emit *c, uint32_t instr)
{
    return instr == TY_NONE || c->before[instr];
}

static bool cuda_address_is_same(const ty_cuda_emit *c, ty_ix ix)
{
    const ty_ix_node *node = ty_ix_at(&c->t.k->ix, ix);
    for (int i = 0; i < node->n_terms; i++) {
        const ty_atom *atom = &c->t.k->ix.atom[node->term[i].atom];
        if (atom->kind == TY_ATOM_VAR || (atom->kind == TY_ATOM_DATA && !c->before[atom->arg]) ||
            (atom->kind != TY_ATOM_DATA && !cuda_address_is_same(c, atom->arg)))
            return false;
    }
    return true;
}

/* What depends on no variable and no result of a row is computed once a thread. */
static void cuda_find_before(ty_cuda_emit *c)
{
    const ty_kernel *k = c->t.k;
    c->before = TY_NEW_ARRAY(&c->arena, uint8_t, k->n_instrs + 1);
    c->ahead = TY_NEW_ARRAY(&c->arena, uint8_t, k->n_instrs + 1);
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        bool same = instr->vars == 0 && instr->kop != TY_K_RESULT && cuda_same_operand(c, instr->a) &&
                    cuda_same_operand(c, instr->b) && cuda_same_operand(c, instr->c) &&
                    cuda_same_operand(c, instr->guard);
        if (instr->kop == TY_K_LOAD || instr->kop == TY_K_INDEX || instr->kop == TY_K_INSIDE)
            same = same && cuda_address_is_same(c, instr->addr);
        c->before[i] = same;
        c->dear += same && instr->kop == TY_K_OP ? ty_op_row_of(instr->op)->weight : 0;
    }
}

/* What was rounded to 16 bits somewhere on the way is off by 2^-9 or 2^-12 of itself. Functions of it, and quotients,
 * have quick forms (compiler/target/cpu/prelude.c, compiler/kernel/text.c). */
static void cuda_find_near(ty_cuda_emit *c)
{
    static const bool has_form[TY_N_OPS] = {
        [TY_OP_EXP] = true, [TY_OP_TANH] = true, [TY_OP_ERF] = true, [TY_OP_MILLS] = true, [TY_OP_DIV] = true};
    const ty_kernel *k = c->t.k;
    uint8_t *rounded = TY_NEW_ARRAY(&c->arena, uint8_t, k->n_instrs + 1),
            *near = TY_NEW_ARRAY(&c->arena, uint8_t, k->n_instrs + 1);
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        const uint32_t operand[] = {instr->a, instr->b, instr->c};
        rounded[i] = instr->dtype == TY_BF16 || instr->dtype == TY_F16;
        if (instr->kop == TY_K_RESULT)
            rounded[i] |= rounded[k->reduction[instr->reduction].value];
        for (int o = 0; o < 3 && instr->kop == TY_K_OP; o++)
            rounded[i] |= operand[o] != TY_NONE && rounded[operand[o]];
        near[i] = instr->kop == TY_K_OP && instr->dtype == TY_F32 && has_form[instr->op] && rounded[i];
    }
    c->t.near = near;
}

static void cuda_flat_along(ty_cuda_emit *c, const int *all, int n)
{
    long groups = (long)c->t.k->extent[c->l.fast] / c->l.width, apart = groups / c->l.along;
    const char *index = ty_emit_index(c), *unsign = c->t.narrow ? "unsigned" : "unsigned long";
    ty_ktext_linef(&c->t, "const %s q0 = (%s)p %% %ldu; p = (%s)p / %ldu;\n", index, unsign, apart, unsign, apart);
    ty_emit_decode(c, all, n - 1, "p");
    ty_ktext_linef(&c->t, "TY_UNROLL for (int a = 0; a < %d; a++) {\n", c->l.along);
    c->t.indent++;
    ty_ktext_linef(&c->t, "const %s i%d = (q0 + a * %ld) * %d;\n", index, c->l.fast, apart, c->l.width);
    ty_emit_group(c, 0);
    ty_emit_close(c);
}

static void cuda_flat_down(ty_cuda_emit *c, const int *all, int n)
{
    const char *index = ty_emit_index(c);
    long groups = (long)c->t.k->extent[c->l.fast] / c->l.width,
         rows = (long)(c->l.n_rows * c->l.row) / c->l.width / groups;
    ty_ktext_linef(&c->t, "const %s i%d = p %% %ld * %d;\n", index, c->l.fast, groups, c->l.width);
    ty_ktext_linef(&c->t, "TY_UNROLL_2 for (%s q0 = p / %ld; q0 < %ld; q0 += %ld) {\n", index, groups, rows,
                   (long)c->l.down);
    c->t.indent++;
    ty_ktext_linef(&c->t, "%s q = q0; (void)q;\n", index);
    ty_emit_decode(c, all, n - 1, "q");
    ty_emit_group(c, 0);
    ty_emit_close(c);
}

static void cuda_flat(ty_cuda_emit *c)
{
    int all[TY_K_MAX_VARS], n = 0;
    for (int i = 0; i < c->l.n_outer; i++)
        all[n++] = c->l.outer[i];
    for (int i = 0; i < c->l.n_inner; i++)
        all[n++] = c->l.inner[i];
    if (c->l.down || c->l.along) {
        (c->l.down ? cuda_flat_down : cuda_flat_along)(c, all, n);
        return;
    }
    if (c->l.width > 1)
        ty_ktext_linef(&c->t, "p *= %d;\n", c->l.width);
    ty_emit_decode(c, all, n, "p");
    ty_emit_group(c, 0);
}

static void cuda_body(ty_cuda_emit *c)
{
    int each = c->l.points_per_block;
    char own[32] = "";
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        if (c->before[i])
            ty_ktext_instr(&c->t, i);
    if (c->l.form == TY_CUDA_ROWS_ACROSS)
        snprintf(own, sizeof own, " + TY_THREAD %% %d", each);
    else if (each > 1)
        snprintf(own, sizeof own, " + TY_THREAD / %d", TY_CUDA_THREADS / each);
    ty_ktext_linef(&c->t, "for (%s p0 = TY_BLOCK * %d%s; p0 < %ld; p0 += TY_BLOCKS * %d) {\n", ty_emit_index(c), each,
                   own, (long)c->l.points, each);
    c->t.indent++;
    ty_ktext_linef(&c->t, "%s p = p0; (void)p;\n", ty_emit_index(c));
    if (c->l.form == TY_CUDA_FLAT)
        cuda_flat(c);
    else if (c->l.form == TY_CUDA_TILES)
        ty_emit_tiles(c);
    else if (ty_emit_is_columns(c))
        ty_emit_columns(c);
    else if (c->l.form == TY_CUDA_BANDS)
        ty_emit_bands(c);
    else
        ty_emit_rows(c);
    ty_emit_close(c);
}

static void cuda_parameters(const ty_cuda_kernel *kernel, ty_buf *out)
{
    const ty_kernel *k = kernel->k;
    bool first = true;
    for (int i = 0; i < k->n_buffers; i++) {
        if (kernel->alias[i] != (uint32_t)i)
            continue;
        ty_buf_addf(out, "%s%s%s *__restrict__ b%d", first ? "" : ", ", k->buffer[i].written ? "" : "const ",
                    ty_emit_memory(k->buffer[i].dtype), i);
        first = false;
    }
}

/* Which loads are done, into x<n>[w], when the elements of a thread are computed: for ty_ktext. */
static const uint8_t *cuda_wide_loads(ty_cuda_emit *c)
{
    uint8_t *wide = TY_NEW_ARRAY(&c->arena, uint8_t, c->t.k->n_instrs + 1);
    for (uint32_t i = 0; i < c->t.k->n_instrs; i++)
        wide[i] = (c->l.width > 1 && c->l.load[i] > 0) || (c->l.form == TY_CUDA_TILES && c->l.tiled[i]);
    return wide;
}

const char *ty_cuda_word(ty_cuda_room room, bool is_lone)
{
    static const char *const words[] = {
        [TY_CUDA_FOUR] = "TY_KERNEL",
        [TY_CUDA_THREE] = "TY_JOINED_KERNEL",
        [TY_CUDA_TWO] = "TY_WIDE_KERNEL",
        [TY_CUDA_GROUP] = "TY_GROUP_KERNEL",
    };
    return is_lone ? "TY_LONE_KERNEL" : words[room];
}

static ty_cuda_launch cuda_launch(const ty_cuda_emit *c)
{
    static const char *const names[] = {
        [TY_CUDA_FLAT] = "flat",          [TY_CUDA_ROW_BY_THREAD] = "thread", [TY_CUDA_ROW_BY_WARP] = "warp",
        [TY_CUDA_ROW_BY_BLOCK] = "block", [TY_CUDA_ROWS_ACROSS] = "across",   [TY_CUDA_BY_COLUMN] = "column",
        [TY_CUDA_TILES] = "tiles",        [TY_CUDA_BANDS] = "bands"};
    int64_t blocks = (c->l.points + c->l.points_per_block - 1) / c->l.points_per_block;
    if (c->dear >= CUDA_DEAR && blocks > CUDA_BLOCKS_OF_DEAR) /* or each block would compute it again */
        blocks = CUDA_BLOCKS_OF_DEAR;
    bool alone = c->l.form == TY_CUDA_FLAT || c->l.form == TY_CUDA_ROW_BY_THREAD;
    return (ty_cuda_launch){.form = names[c->l.form],
                            .threads = TY_CUDA_THREADS,
                            .blocks = blocks,
                            .has_barriers = !alone,
                            .room = c->l.room,
                            .is_lone = c->l.is_lone};
}

ty_cuda_launch ty_cuda_render_kernel(const ty_cuda_kernel *kernel, const char *name, ty_buf *out)
{
    ty_cuda_emit c = {.t = {.k = kernel->k,
                            .alias = kernel->alias,
                            .base = kernel->base,
                            .out = out,
                            .indent = 1,
                            .narrow = ty_ktext_fits_int(kernel->k, kernel->base),
                            .held = "h",
                            .held_at = "",
                            .drawn_at = "[w / 4].word[w % 4]",
                            .cut = -1,
                            .row_guard = TY_NONE}};
    ty_arena_init(&c.arena);
    c.l = ty_cuda_layout_of(kernel, &c.arena);
    c.t.vector = cuda_wide_loads(&c);
    c.drawn = TY_NEW_ARRAY(&c.arena, uint8_t, kernel->k->n_instrs + 1);
    c.t.from = c.l.groups ? c.l.hold.from : NULL;
    cuda_find_before(&c);
    cuda_find_near(&c);
    ty_buf_addf(out, "%s(%d) %s(", ty_cuda_word(c.l.room, c.l.is_lone), TY_CUDA_THREADS, name);
    cuda_parameters(kernel, out);
    ty_buf_adds(out, ")\n{\n");
    cuda_body(&c);
    ty_buf_adds(out, "}\n");
    ty_cuda_launch launch = cuda_launch(&c);
    ty_arena_fini(&c.arena);
    return launch;
}

void ty_grid_render_kernel(const ty_kernel *k, const uint32_t *alias, const int64_t *base, ty_buf *out)
{
    bool first = true;
    ty_cuda_launch launch =
        ty_cuda_render_kernel(&(ty_cuda_kernel){k, alias, base, NULL, 0}, "TY_DEVICE(TY_NAME)", out);
    ty_buf_adds(
        out, "static void TY_BODY(TY_NAME)(void *all)\n{\n char *const *b = (char *const *)all;\n TY_DEVICE(TY_NAME)(");
    for (int i = 0; i < k->n_buffers; i++) {
        if (alias[i] != (uint32_t)i)
            continue;
        ty_buf_addf(out, "%s(void *)b[%d]", first ? "" : ", ", i);
        first = false;
    }
    ty_buf_addf(out, ");\n}\nTY_CALL(TY_NAME, %d, %ldl, %d)\n", launch.threads, (long)launch.blocks,
                launch.has_barriers);
}
