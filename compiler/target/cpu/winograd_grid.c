/* winograd_grid.c - see winograd_grid.h. */
#include "compiler/target/cpu/winograd_grid.h"

#include "compiler/ops/sliding.h"
#include "compiler/target/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>

enum { TILE = TY_WINOGRAD_TILE, PATCH = TY_WINOGRAD_PATCH };

int64_t ty_winograd_odd(int64_t floats)
{
    return ((floats + TY_WINOGRAD_LINE - 1) / TY_WINOGRAD_LINE | 1) * TY_WINOGRAD_LINE;
}

double ty_winograd_flops(const ty_winograd_grid *g)
{
    return 2.0 * TY_WINOGRAD_POINTS * (double)g->tiles * (double)g->in_c * (double)g->out_c;
}

/* ---- making ---- */

static bool grid_is_float(const ty_type *t)
{
    return t->dtype == TY_F32 || t->dtype == TY_BF16;
}

static bool grid_takes(const ty_library_shape *s, const ty_type *x, const ty_type *w, const ty_type *y)
{
    const ty_attr *a = s->attr;
    bool takes = a->n == 2 && a->groups == 1 && !s->strict && grid_is_float(x) && grid_is_float(w) && grid_is_float(y);
    takes &= (a->flags & (TY_SLIDING_LAST | TY_SLIDING_WINOGRAD | TY_SLIDING_WEIGHTS_LAST)) ==
             (TY_SLIDING_LAST | TY_SLIDING_WINOGRAD);
    for (int i = 0; takes && i < 2; i++)
        takes = w->dim[2 + i] == 3 && a->step[i] == 1 && a->dil[i] == 1 && a->lo[i] <= 2;
    return takes;
}

int ty_winograd_grid_init(ty_winograd_grid *g, const ty_panel_kernels *panels, const ty_library_shape *shape,
                          const ty_type *x, const ty_type *w, const ty_type *y, bool turned, ty_error *err)
{
    if (!grid_takes(shape, x, w, y))
        return ty_error_set(err, TY_E_UNSUPPORTED, "not a convolution for Winograd's algorithm");
    const ty_type *in = turned ? y : x, *out = turned ? x : y;
    const int64_t *lo = shape->attr->lo;
    *g = (ty_winograd_grid){.panels = panels, .images = in->dim[0]};
    g->kernels = ty_winograd_for(g->panels->strip);
    g->in_type = (ty_dtype)in->dtype;
    g->out_type = (ty_dtype)out->dtype;
    g->in_h = in->dim[1], g->in_w = in->dim[2], g->in_c = in->dim[3];
    g->out_h = out->dim[1], g->out_w = out->dim[2], g->out_c = out->dim[3];
    g->lo_h = turned ? 2 - lo[0] : lo[0];
    g->lo_w = turned ? 2 - lo[1] : lo[1];
    g->tiles_h = (g->out_h + TILE - 1) / TILE;
    g->tiles_w = (g->out_w + TILE - 1) / TILE;
    g->tiles = g->images * g->tiles_h * g->tiles_w;
    g->zeros = calloc((size_t)(g->in_c > g->out_c ? g->in_c : g->out_c), sizeof *g->zeros);
    return g->zeros ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a prepared convolution");
}

int ty_winograd_expect_pays(const ty_library_shape *shape, ty_error *err)
{
    if (shape->in[0].dtype != TY_BF16 || !ty_onednn_has_amx())
        return 0;
    return ty_error_set(err, TY_E_UNSUPPORTED, "AMX is quicker than Winograd's algorithm");
}

void ty_winograd_grid_free(ty_winograd_grid *g)
{
    free(g->zeros);
}

void ty_winograd_text(const ty_winograd_grid *g, const ty_attr *attr, const ty_type *x, const ty_type *w,
                      char out[TY_CONVOLUTION_TEXT])
{
    char how[32];
    snprintf(how, sizeof how, "winograd:%s", g->panels->name);
    ty_convolution_text(how, attr, x, w, out, TY_CONVOLUTION_TEXT);
}

/* ---- tiles ---- */

/* A tile's image, and the first of its rows and columns in the result. */
typedef struct grid_tile {
    int64_t image, row, column;
} grid_tile;

static grid_tile grid_tile_of(const ty_winograd_grid *g, int64_t tile)
{
    int64_t row = tile / g->tiles_w;
    return (grid_tile){row / g->tiles_h, row % g->tiles_h * TILE, tile % g->tiles_w * TILE};
}

/* An image of h x w positions of `bytes` bytes. */
typedef struct grid_image {
    const char *at;
    int64_t h, w, bytes;
} grid_image;

static grid_image grid_image_of(const void *images, int64_t i, int64_t h, int64_t w, int64_t c, ty_dtype type)
{
    int64_t bytes = c * (int64_t)ty_dtype_bytes(type);
    return (grid_image){(const char *)images + i * h * w * bytes, h, w, bytes};
}

/* size * size positions from (row, column) on; zeros outside. */
static void grid_positions(const void **at, int size, const grid_image *image, int64_t row, int64_t column,
                           const float *zeros)
{
    for (int y = 0; y < size; y++) {
        bool inside = row + y >= 0 && row + y < image->h;
        const char *line = image->at + (inside ? (row + y) * image->w * image->bytes : 0);
        for (int x = 0; x < size; x++) {
            int64_t i = column + x;
            at[y * size + x] = inside && i >= 0 && i < image->w ? line + i * image->bytes : (const char *)zeros;
        }
    }
}

void ty_winograd_patches(const ty_winograd_grid *g, const void *x, int64_t first, int64_t n,
                         const ty_winograd_place *place, int64_t row_step)
{
    const void *at[PATCH * PATCH];
    ty_winograd_place to = *place;
    for (int64_t t = 0; t < n; t++, to.to += row_step) {
        grid_tile tile = grid_tile_of(g, first + t);
        grid_image image = grid_image_of(x, tile.image, g->in_h, g->in_w, g->in_c, g->in_type);
        grid_positions(at, PATCH, &image, tile.row - g->lo_h, tile.column - g->lo_w, g->zeros);
        g->kernels->patch_in[g->in_type == TY_BF16](at, g->in_c, &to);
    }
}

void ty_winograd_tiles(const ty_winograd_grid *g, const void *y, int64_t first, int64_t n,
                       const ty_winograd_place *place, int64_t row_step)
{
    const void *at[TILE * TILE];
    ty_winograd_place to = *place;
    for (int64_t t = 0; t < n; t++, to.to += row_step) {
        grid_tile tile = grid_tile_of(g, first + t);
        grid_image image = grid_image_of(y, tile.image, g->out_h, g->out_w, g->out_c, g->out_type);
        grid_positions(at, TILE, &image, tile.row, tile.column, g->zeros);
        g->kernels->tile_in[g->out_type == TY_BF16](at, g->out_c, &to);
    }
}

static ty_winograd_tile grid_place(const ty_winograd_grid *g, void *y, int64_t i)
{
    grid_tile tile = grid_tile_of(g, i);
    int64_t rows = g->out_h - tile.row, columns = g->out_w - tile.column;
    return (ty_winograd_tile){
        .to = (char *)y + ((tile.image * g->out_h + tile.row) * g->out_w + tile.column) * g->out_c *
                              (int64_t)ty_dtype_bytes(g->out_type),
        .row_step = g->out_w * g->out_c,
        .column_step = g->out_c,
        .rows = rows < TILE ? (int)rows : TILE,
        .columns = columns < TILE ? (int)columns : TILE,
    };
}

/* Asks for lines that will be written: a tenth of the time of a convolution of large images. */
static void grid_expect(const ty_winograd_tile *tile, int64_t channels, ty_dtype type)
{
    int64_t line = TY_WINOGRAD_LINE * (int64_t)sizeof(float), bytes = (int64_t)ty_dtype_bytes(type);
    for (int y = 0; y < tile->rows; y++)
        for (int x = 0; x < tile->columns; x++) {
            const char *at = (const char *)tile->to + (y * tile->row_step + x * tile->column_step) * bytes;
            for (int64_t i = 0; i < channels * bytes; i += line)
                __builtin_prefetch(at + i, 1);
        }
}

void ty_winograd_results(const ty_winograd_grid *g, void *y, int64_t first, int64_t n, int64_t channels,
                         const float *from, int64_t step, int64_t row_step)
{
    ty_winograd_tile to = grid_place(g, y, first), next = to;
    for (int64_t t = 0; t < n; t++, from += row_step, to = next) {
        if (t + 1 < n)
            next = grid_place(g, y, first + t + 1);
        grid_expect(&next, channels, g->out_type);
        g->kernels->tile_out[g->out_type == TY_BF16](from, step, channels, &to);
    }
}
