/* layout.c - see layout.h. */
#include "compiler/target/cuda/layout.h"

#include <string.h>

enum {
    LAYOUT_ROW_THREAD = 4,     /* longest row that one thread takes */
    LAYOUT_ROW_WARP = 1024,    /* that one warp takes */
    LAYOUT_ROW_BLOCK = 16384,  /* that a block holds in registers and shared memory */
    LAYOUT_WIDEST = 8,         /* neighbouring elements of a thread */
    LAYOUT_STREAM_BYTES = 96,  /* of the registers of a thread, for what it loads and stores at a time, */
    LAYOUT_COLUMN_BYTES = 128, /* and where it goes down columns, so that what a column has of its own stays there */
    LAYOUT_KEPT_LOADS = 3,     /* fewest loads that are worth going down rows for, */
    LAYOUT_KEPT = 64,          /* most numbers that a thread keeps then, */
    LAYOUT_DOWN = 8,           /* and rows that it takes */
    LAYOUT_ROW_LOADS = 2,      /* fewest loads of a row's own that are worth staying in it for, */
    LAYOUT_ALONG = 4,          /* and groups that a thread takes then */
    LAYOUT_HELD = 48,          /* registers in which a thread holds numbers */
    LAYOUT_BANDS = 64,         /* likewise, with the sums of its columns */
    LAYOUT_HELD_BESIDE = 32,   /* likewise, where more of them are in shared memory */
    LAYOUT_REGISTER = 4,       /* bytes */
    LAYOUT_SHARED = 32768,     /* bytes of a block's partial results, of its tiles, and of what it holds of a row */
    LAYOUT_NUMBER = 8,         /* bytes of the largest */
    LAYOUT_POINTERS = 16,      /* more buffers than that fill registers with their addresses */
    LAYOUT_ACROSS = 8,         /* fewest rows side by side: a sector of memory, of floats */
    LAYOUT_SIDE = 8,           /* fewest threads side by side on columns */
    LAYOUT_COLUMN_EACH = 8,    /* elements of a short column that a thread takes rather than fewer */
    LAYOUT_TILE = 16,          /* smallest extents that are worth a tile, */
    LAYOUT_TILED = 1 << 14     /* and points of the kernel */
};

static int64_t layout_extent(const ty_kernel *k, const int *var, int n)
{
    int64_t points = 1;
    for (int i = 0; i < n; i++)
        points *= k->extent[var[i]];
    return points;
}

static void layout_variables(const ty_kernel *k, ty_cuda_layout *l)
{
    l->column = k->form == TY_FORM_COLUMNS ? k->order[k->n_order - 1] : -1;
    for (int i = 0; i < k->n_order; i++) {
        int var = k->order[i];
        if (!(k->outer >> var & 1))
            l->inner[l->n_inner++] = var;
        else if (var != l->column)
            l->outer[l->n_outer++] = var;
    }
    l->n_rows = layout_extent(k, l->outer, l->n_outer);
    l->row = layout_extent(k, l->inner, l->n_inner);
}

/* ---- memory that runs across ---- */

typedef struct layout_directions {
    ty_lanes along, across;
    int64_t n_along, n_across; /* bytes that lie side by side in a row, and over neighbouring rows */
} layout_directions;

static void layout_direct(layout_directions *d, ty_ix addr, ty_dtype dtype)
{
    ty_lane_ix along = ty_lanes_ix(&d->along, addr, 0), across = ty_lanes_ix(&d->across, addr, 0);
    if (along.known && along.step == 1)
        d->n_along += (int64_t)ty_dtype_bytes(dtype);
    else if (along.step != 0 && across.known && across.step == 1)
        d->n_across += (int64_t)ty_dtype_bytes(dtype);
}

/* Does more of the memory run across the rows than along them? */
static bool layout_runs_across(const ty_kernel *k, const ty_cuda_layout *l, ty_arena *arena)
{
    if (l->n_outer == 0 || l->n_inner == 0)
        return false;
    layout_directions d = {.along = ty_lanes_make(k, l->inner[l->n_inner - 1], 1, arena),
                           .across = ty_lanes_make(k, l->outer[l->n_outer - 1], 1, arena)};
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (k->instr[i].kop == TY_K_LOAD && !(k->instr[i].stage & 1))
            layout_direct(&d, k->instr[i].addr, k->instr[i].dtype);
    for (int i = 0; i < k->n_stores; i++)
        if (!(k->store[i].stage & 1))
            layout_direct(&d, k->store[i].addr, k->buffer[k->store[i].buffer].dtype);
    return d.n_across > d.n_along;
}

/* How many rows a block takes side by side: as many as leave it enough company, 0 if it cannot. */
static int layout_rows_across(const ty_cuda_kernel *kernel, const ty_cuda_layout *l, ty_arena *arena)
{
    int rows = TY_CUDA_WARP;
    if (l->row <= LAYOUT_ROW_THREAD || l->n_rows % LAYOUT_ACROSS ||
        kernel->k->n_reductions * TY_CUDA_THREADS * LAYOUT_NUMBER > LAYOUT_SHARED ||
        !layout_runs_across(kernel->k, l, arena))
        return 0;
    while (rows > LAYOUT_ACROSS && (l->n_rows % rows || l->n_rows / rows * TY_CUDA_THREADS < kernel->threads))
        rows /= 2;
    return rows;
}

/* The variable along which a load lies in memory, where that is not the fastest one, and how far it jumps from point to
 * point of the fastest one: -1 if its address is no such sum. */
static int layout_turned(const ty_kernel *k, const ty_kinstr *load, int fast)
{
    bool inside = load->kop != TY_K_LOAD || load->guard != TY_NONE || ty_ix_at(&k->ix, load->addr)->data;
    int turned = -1;
    if (inside || ty_ix_coef(&k->ix, load->addr, (uint32_t)fast, &inside) <= 1)
        return -1;
    for (int i = 0; i < k->n_order && turned < 0; i++)
        if (ty_ix_coef(&k->ix, load->addr, (uint32_t)k->order[i], &inside) == 1)
            turned = k->order[i];
    return inside || (turned >= 0 && k->extent[turned] < LAYOUT_TILE) ? -1 : turned;
}

/* Loads that lie along one and the same other variable; tiles are larger where all of them are small. */
static bool layout_tiles(const ty_cuda_kernel *kernel, ty_cuda_layout *l, ty_arena *arena)
{
    const ty_kernel *k = kernel->k;
    int fast = k->n_order ? k->order[k->n_order - 1] : -1, bytes = 0, largest = 0;
    if (k->n_order < 2 || k->extent[fast] < LAYOUT_TILE || l->n_rows * l->row < LAYOUT_TILED)
        return false;
    l->tiled = TY_NEW_ARRAY(arena, uint8_t, k->n_instrs + 1);
    l->turned = -1;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        int turned = layout_turned(k, &k->instr[i], fast), each = (int)ty_dtype_bytes(k->instr[i].dtype);
        if (turned < 0 || (l->turned >= 0 && turned != l->turned))
            continue;
        l->turned = turned;
        l->tiled[i] = 1;
        bytes += each;
        largest = each > largest ? each : largest;
    }
    l->edge =
        largest <= 2 && l->n_rows * l->row / (4 * TY_CUDA_WARP * TY_CUDA_WARP) * TY_CUDA_THREADS >= kernel->threads
            ? 2 * TY_CUDA_WARP
            : TY_CUDA_WARP;
    return l->turned >= 0 && bytes * l->edge * (l->edge + LAYOUT_REGISTER) <= LAYOUT_SHARED;
}

static int64_t layout_count_tiles(const ty_kernel *k, const ty_cuda_layout *l)
{
    int64_t n = 1;
    for (int i = 0; i < k->n_order; i++) {
        int64_t extent = k->extent[k->order[i]];
        bool on_side = k->order[i] == l->fast || k->order[i] == l->turned;
        n *= on_side ? (extent + l->edge - 1) / l->edge : extent;
    }
    return n;
}

/* ---- the form ---- */

static ty_cuda_form layout_form(const ty_cuda_kernel *kernel, ty_cuda_layout *l, ty_arena *arena)
{
    const ty_kernel *k = kernel->k;
    if (l->column >= 0)
        return TY_CUDA_BY_COLUMN;
    if (k->form == TY_FORM_BANDS)
        return TY_CUDA_BANDS;
    if (k->n_reductions == 0 && k->n_stages == 1)
        return layout_tiles(kernel, l, arena) ? TY_CUDA_TILES : TY_CUDA_FLAT;
    l->points_per_block = layout_rows_across(kernel, l, arena);
    return l->points_per_block           ? TY_CUDA_ROWS_ACROSS
           : l->row <= LAYOUT_ROW_THREAD ? TY_CUDA_ROW_BY_THREAD
           : l->row <= LAYOUT_ROW_WARP   ? TY_CUDA_ROW_BY_WARP
                                         : TY_CUDA_ROW_BY_BLOCK;
}

/* The fastest variable, if neighbouring points of it are neighbours of the loop: -1 if there is none. */
static int layout_fast(const ty_kernel *k, const ty_cuda_layout *l)
{
    if (l->form == TY_CUDA_BY_COLUMN)
        return l->column;
    if (l->form == TY_CUDA_FLAT || l->form == TY_CUDA_TILES)
        return k->n_order ? k->order[k->n_order - 1] : -1;
    return l->form == TY_CUDA_ROW_BY_THREAD || l->form == TY_CUDA_ROWS_ACROSS || l->n_inner == 0
               ? -1
               : l->inner[l->n_inner - 1];
}

/* ---- the width ---- */

static int layout_align(const ty_cuda_kernel *kernel, uint32_t buffer)
{
    return kernel->align ? kernel->align[kernel->alias[buffer]] : 16;
}

/* Accesses of l->at; returns bytes of registers that they need, 0 if there is none. */
static int layout_accesses(const ty_cuda_kernel *kernel, ty_cuda_layout *l, ty_arena *arena)
{
    const ty_kernel *k = kernel->k;
    int width = (int)l->at.width;
    int *load = TY_NEW_ARRAY(arena, int, k->n_instrs + 1), *store = TY_NEW_ARRAY(arena, int, k->n_stores + 1),
        bytes = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const ty_kinstr *instr = &k->instr[i];
        if (instr->kop == TY_K_LOAD && !l->at.same[i] && !(instr->stage & 1))
            load[i] = ty_lanes_access(&l->at, instr->addr, instr->guard, kernel->base[instr->buffer], instr->dtype,
                                      layout_align(kernel, instr->buffer));
        bytes += load[i] ? width * (int)ty_dtype_bytes(instr->dtype) : 0;
    }
    for (int i = 0; i < k->n_stores; i++) {
        const ty_kstore *s = &k->store[i];
        ty_dtype dtype = k->buffer[s->buffer].dtype;
        if (!(s->stage & 1))
            store[i] = ty_lanes_access(&l->at, s->addr, s->guard, kernel->base[s->buffer], dtype,
                                       layout_align(kernel, s->buffer));
        bytes += store[i] ? width * (int)ty_dtype_bytes(dtype) : 0;
    }
    l->load = load;
    l->store = store;
    return bytes / ((k->n_stages + 1) / 2);
}

/* Accesses wider than 16 bytes save nothing. */
static bool layout_saves(const ty_kernel *k, const ty_cuda_layout *l, int width)
{
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (l->load[i] && width * (int)ty_dtype_bytes(k->instr[i].dtype) <= 16)
            return true;
    for (int i = 0; i < k->n_stores; i++)
        if (l->store[i] && width * (int)ty_dtype_bytes(k->buffer[k->store[i].buffer].dtype) <= 16)
            return true;
    return false;
}

/* Are enough threads left? A thread takes `width` elements. */
static bool layout_fills(const ty_cuda_kernel *kernel, const ty_cuda_layout *l, int width)
{
    const ty_kernel *k = kernel->k;
    int64_t fast = k->extent[l->fast], all = l->n_rows * l->row;
    if (l->form == TY_CUDA_BY_COLUMN)
        return fast >= LAYOUT_SIDE * width &&
               l->n_rows * ((fast + TY_CUDA_WARP * width - 1) / (TY_CUDA_WARP * width)) * TY_CUDA_THREADS >=
                   kernel->threads / 2 &&
               TY_CUDA_THREADS * width * k->n_reductions * LAYOUT_NUMBER <= LAYOUT_SHARED;
    if (l->form == TY_CUDA_FLAT)
        return all / width >= kernel->threads;
    if (l->form == TY_CUDA_BANDS)
        return l->row >= width * TY_CUDA_WARP;
    return l->row >= (l->form == TY_CUDA_ROW_BY_WARP ? width * 4 : width * TY_CUDA_THREADS);
}

static void layout_width(const ty_cuda_kernel *kernel, ty_cuda_layout *l, ty_arena *arena)
{
    const ty_kernel *k = kernel->k;
    l->width = 1;
    l->fast = layout_fast(k, l);
    for (int width = LAYOUT_WIDEST; width > 1 && l->fast >= 0 && l->form != TY_CUDA_TILES; width /= 2) {
        if (k->extent[l->fast] % width || !layout_fills(kernel, l, width))
            continue;
        l->at = ty_lanes_make(k, l->fast, width, arena);
        int bytes = layout_accesses(kernel, l, arena);
        if (bytes == 0 || bytes > (l->column < 0 ? LAYOUT_STREAM_BYTES : LAYOUT_COLUMN_BYTES) ||
            !layout_saves(k, l, width))
            continue;
        l->width = width;
        return;
    }
}

/* Loads of what lies along the fast variable alone. */
static int layout_kept(const ty_kernel *k, const ty_cuda_layout *l)
{
    int n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        n += k->instr[i].kop == TY_K_LOAD && k->instr[i].vars == UINT64_C(1) << l->fast;
    return n;
}

static int layout_kept_bytes(const ty_kernel *k, const ty_cuda_layout *l)
{
    int bytes = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (l->load[i] && k->instr[i].vars == UINT64_C(1) << l->fast)
            bytes += (int)l->at.width * (int)ty_dtype_bytes(k->instr[i].dtype);
    return bytes;
}

/* Down rows, a thread reads what they have in common once, and has registers for wider accesses to the rest. */
static void layout_down(const ty_cuda_kernel *kernel, ty_cuda_layout *l, ty_arena *arena)
{
    const ty_kernel *k = kernel->k;
    int kept = l->form == TY_CUDA_FLAT && l->fast >= 0 ? layout_kept(k, l) : 0;
    int64_t all = l->n_rows * l->row;
    for (int width = LAYOUT_WIDEST; width > 1 && kept >= LAYOUT_KEPT_LOADS; width /= 2) {
        if (k->extent[l->fast] % width || kept * width > LAYOUT_KEPT || all / width / LAYOUT_DOWN < kernel->threads)
            continue;
        ty_cuda_layout wide = *l;
        wide.at = ty_lanes_make(k, l->fast, width, arena);
        int bytes = layout_accesses(kernel, &wide, arena);
        if (bytes == 0 || bytes - layout_kept_bytes(k, &wide) > LAYOUT_STREAM_BYTES || !layout_saves(k, &wide, width))
            continue;
        *l = wide;
        l->width = width;
        l->down = (all / k->extent[l->fast] + LAYOUT_DOWN - 1) / LAYOUT_DOWN;
        return;
    }
}

/* Long rows that begin anywhere: groups of what the row writes, or of one thing that it reads, begin at its alignment.
 * As many elements as fill 16 bytes. */
static void layout_shift(const ty_cuda_kernel *kernel, ty_cuda_layout *l, ty_arena *arena)
{
    const ty_kernel *k = kernel->k;
    if (l->form != TY_CUDA_ROW_BY_BLOCK || l->width > 1 || l->groups || l->n_inner != 1)
        return;
    for (int i = k->n_stores + (int)k->n_instrs; i-- > 0 && !l->shifted;) {
        const ty_kinstr *load = &k->instr[i];
        const ty_kstore *store = i < (int)k->n_instrs ? NULL : &k->store[i - (int)k->n_instrs];
        if (store ? store->stage & 1 : load->kop != TY_K_LOAD || load->stage & 1)
            continue;
        l->begin = store ? store->buffer : load->buffer;
        int width = 16 / (int)ty_dtype_bytes(k->buffer[l->begin].dtype);
        if (width > LAYOUT_WIDEST || width < 2)
            continue;
        l->at = ty_lanes_make_anywhere(k, l->fast, width, store ? store->addr : load->addr, arena);
        l->shifted = layout_accesses(kernel, l, arena) > 0;
    }
    l->width = l->shifted ? (int)l->at.width : 1;
}

/* ---- threads ---- */

/* Fewer lanes for shorter rows, if the rows fill whole warps: all lanes of a warp take part in a butterfly. */
static int layout_lanes_of_row(const ty_cuda_kernel *kernel, const ty_cuda_layout *l)
{
    int lanes = TY_CUDA_WARP;
    while (lanes > 4 && l->row <= (int64_t)lanes * l->width && l->n_rows % (2 * TY_CUDA_WARP / lanes) == 0 &&
           l->n_rows * (lanes / 2) >= kernel->threads)
        lanes /= 2;
    return lanes;
}

static int64_t layout_column_blocks(const ty_kernel *k, const ty_cuda_layout *l, int lanes)
{
    return (k->extent[l->column] + lanes * l->width - 1) / (lanes * l->width) * l->n_rows;
}

/* Fewer than a warp has where columns are few, or blocks: then there are more blocks, with shorter ways through rows.
 */
static int layout_lanes_of_columns(const ty_cuda_kernel *kernel, const ty_cuda_layout *l)
{
    const ty_kernel *k = kernel->k;
    int lanes = TY_CUDA_WARP;
    while (lanes > 4 && (int64_t)(lanes / 2) * l->width >= k->extent[l->column])
        lanes /= 2;
    while (lanes * l->width > LAYOUT_SIDE && lanes > 4 &&
           2 * layout_column_blocks(k, l, lanes) * TY_CUDA_THREADS <= kernel->threads)
        lanes /= 2;
    return lanes;
}

/* Short columns: a block has several groups of columns, each of fewer rows of threads, so that a thread has some of a
 * column's elements to itself and only few partial results meet. All or none of a block's groups are there. */
static int layout_groups_of_columns(const ty_cuda_kernel *kernel, const ty_cuda_layout *l)
{
    int n = 1, columns = l->lanes * l->width;
    while (l->points % (2 * n) == 0 && TY_CUDA_THREADS / (2 * n) >= columns &&
           l->row < (int64_t)LAYOUT_COLUMN_EACH * (TY_CUDA_THREADS / n / l->lanes) &&
           l->points / (2 * n) * TY_CUDA_THREADS >= 2 * kernel->threads)
        n *= 2;
    return n;
}

/* Loads of what a row has for all of its elements. */
static int layout_of_row(const ty_kernel *k, const ty_cuda_layout *l)
{
    int n = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        n += k->instr[i].kop == TY_K_LOAD && k->instr[i].vars != 0 && !(k->instr[i].vars >> l->fast & 1);
    return n;
}

/* Along a row, a thread reads and computes once what the row has, and has several accesses to the rest on their way. */
static void layout_along(const ty_cuda_kernel *kernel, ty_cuda_layout *l)
{
    const ty_kernel *k = kernel->k;
    if (l->form != TY_CUDA_FLAT || l->down || l->width == 1 || layout_of_row(k, l) < LAYOUT_ROW_LOADS)
        return;
    int64_t groups = k->extent[l->fast] / l->width, all = l->n_rows * l->row / l->width;
    for (int along = LAYOUT_ALONG; along > 1 && l->along == 0; along--)
        if (groups % along == 0 && groups / along >= TY_CUDA_WARP && all / along >= kernel->threads)
            l->along = along;
}

static void layout_threads(const ty_cuda_kernel *kernel, ty_cuda_layout *l)
{
    const ty_kernel *k = kernel->k;
    switch (l->form) {
    case TY_CUDA_FLAT:
        l->points = l->down ? l->down * k->extent[l->fast] / l->width : l->n_rows * l->row / l->width;
        l->points /= l->along ? l->along : 1;
        l->points_per_block = TY_CUDA_THREADS;
        break;
    case TY_CUDA_BY_COLUMN:
        l->lanes = layout_lanes_of_columns(kernel, l);
        l->points = layout_column_blocks(k, l, l->lanes);
        l->points_per_block = layout_groups_of_columns(kernel, l);
        break;
    case TY_CUDA_TILES:
        l->points = layout_count_tiles(k, l);
        l->points_per_block = 1;
        break;
    case TY_CUDA_BANDS:
        l->points = k->extent[l->outer[0]];
        l->points_per_block = 1;
        break;
    case TY_CUDA_ROWS_ACROSS:
        l->points = l->n_rows;
        l->lanes = TY_CUDA_THREADS / l->points_per_block;
        break;
    default:
        l->lanes = l->form == TY_CUDA_ROW_BY_THREAD ? 1
                   : l->form == TY_CUDA_ROW_BY_WARP ? layout_lanes_of_row(kernel, l)
                                                    : TY_CUDA_THREADS;
        l->points = l->n_rows;
        l->points_per_block = TY_CUDA_THREADS / l->lanes;
    }
}

/* ---- registers ---- */

/* Bytes of what is held of an element. */
static int layout_held_bytes(const ty_kernel *k, const ty_cuda_layout *l)
{
    int bytes = 0;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (l->hold.held[i])
            bytes += ty_dtype_bytes(k->instr[i].dtype) > LAYOUT_REGISTER ? LAYOUT_NUMBER : LAYOUT_REGISTER;
    return bytes;
}

/* Registers in which a thread would hold all that it takes of a row. */
static int64_t layout_held(const ty_kernel *k, ty_cuda_layout *l)
{
    int64_t step = (int64_t)l->lanes * l->width;
    l->groups = (int)((l->row + step - 1) / step);
    return (int64_t)layout_held_bytes(k, l) / LAYOUT_REGISTER * l->groups * l->width;
}

/* What is too much for registers goes into shared memory, if all of the rest has room there. */
static void layout_spare(const ty_kernel *k, ty_cuda_layout *l)
{
    int bytes = layout_held_bytes(k, l) * l->width, groups = LAYOUT_HELD_BESIDE * LAYOUT_REGISTER / bytes;
    l->spare = l->groups - groups;
    l->groups = groups;
    if (l->form == TY_CUDA_ROW_BY_BLOCK && groups > 0 && l->spare * bytes * TY_CUDA_THREADS <= LAYOUT_SHARED)
        return;
    l->spare = l->groups = 0;
}

static int layout_column_sums(const ty_kernel *k)
{
    int n = 0;
    for (int i = 0; i < k->n_reductions; i++)
        n += k->reduction[i].columns;
    return n;
}

/* The fewest lanes that have registers for what they hold of a row and of its columns; the rows that a block has at a
 * time must divide the band, since all its threads meet. */
static void layout_bands(const ty_kernel *k, ty_cuda_layout *l, ty_arena *arena)
{
    int64_t rows = k->extent[l->outer[1]];
    l->hold = ty_kernel_hold(k, arena);
    l->lanes = TY_CUDA_WARP;
    while (l->lanes < TY_CUDA_THREADS &&
           (rows % (TY_CUDA_THREADS / l->lanes) ||
            layout_held(k, l) + (int64_t)layout_column_sums(k) * l->groups * l->width > LAYOUT_BANDS))
        l->lanes *= 2;
    layout_held(k, l);
}

/* What is too much for a warp is spread over a block. */
static void layout_hold(const ty_cuda_kernel *kernel, ty_cuda_layout *l, ty_arena *arena)
{
    bool fits = l->form == TY_CUDA_ROW_BY_WARP || l->form == TY_CUDA_ROWS_ACROSS ||
                (l->form == TY_CUDA_ROW_BY_BLOCK && l->row <= LAYOUT_ROW_BLOCK);
    if (!fits || kernel->k->n_stages < 3)
        return;
    l->hold = ty_kernel_hold(kernel->k, arena);
    if (layout_held(kernel->k, l) > LAYOUT_HELD && l->form == TY_CUDA_ROW_BY_WARP) {
        l->form = TY_CUDA_ROW_BY_BLOCK;
        layout_threads(kernel, l);
    }
    if (l->hold.n == 0)
        l->groups = 0;
    else if (layout_held(kernel->k, l) > LAYOUT_HELD)
        layout_spare(kernel->k, l);
}

ty_cuda_layout ty_cuda_layout_of(const ty_cuda_kernel *kernel, ty_arena *arena)
{
    ty_cuda_layout l = {.fast = -1, .lanes = 1, .width = 1};
    layout_variables(kernel->k, &l);
    l.form = layout_form(kernel, &l, arena);
    layout_width(kernel, &l, arena);
    layout_down(kernel, &l, arena);
    layout_along(kernel, &l);
    layout_threads(kernel, &l);
    if (l.form == TY_CUDA_BANDS)
        layout_bands(kernel->k, &l, arena);
    else
        layout_hold(kernel, &l, arena);
    layout_shift(kernel, &l, arena);
    bool keeps_much = l.groups > 0 || l.down > 0 || kernel->k->n_buffers > LAYOUT_POINTERS ||
                      (l.width > 1 && l.form != TY_CUDA_FLAT && l.form != TY_CUDA_BY_COLUMN);
    l.is_lone = 2 * l.points * TY_CUDA_THREADS <= kernel->threads * l.points_per_block;
    l.room = keeps_much ? TY_CUDA_TWO : TY_CUDA_FOUR;
    return l;
}
