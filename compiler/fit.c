/* fit.c - see fit.h. Each attempt is fused and planned, so that what is promised is what the plan says. */
#include "compiler/fit.h"

#include "compiler/ops/work.h"
#include "compiler/passes/chunk.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/plan.h"
#include "compiler/passes/remat.h"

#include <string.h>

/* Numbers of segments that are tried: few segments keep little between them, but compute much of it at once. */
static const int fit_segments[] = {16, 8, 32};

/* Rows of a chunk of logits that are tried, cheapest first; fewer would make products slow. */
static const int fit_chunk_rows[] = {512, 256, 128};

enum {
    N_SEGMENTS = sizeof fit_segments / sizeof *fit_segments,
    N_CHUNK_ROWS = sizeof fit_chunk_rows / sizeof *fit_chunk_rows
};

typedef struct fit {
    uint32_t tapes;
    int fuse_for;
} fit;

/* Of the training tape that needs most. */
static int fit_slab(const fit *f, const ty_graph *g, int64_t *bytes, ty_error *err)
{
    static const uint32_t tapes[] = {TY_TAPE_MICRO, TY_TAPE_LAST};
    *bytes = 0;
    for (size_t i = 0; i < sizeof tapes / sizeof *tapes; i++) {
        ty_fusion *fusion;
        ty_plan *plan;
        if (!(f->tapes & tapes[i]))
            continue;
        if (ty_pass_fuse(g, tapes[i], f->fuse_for, &fusion, err) < 0)
            return -1;
        int rc = ty_pass_plan(fusion, &plan, err);
        if (rc == 0) {
            *bytes = plan->slab_bytes > *bytes ? plan->slab_bytes : *bytes;
            ty_plan_free(plan);
        }
        ty_fusion_free(fusion);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int fit_attempt(const fit *f, const ty_remat *r, int n, int64_t *bytes, ty_error *err)
{
    ty_graph *g;
    if (ty_remat_apply(r, n, &g, err) < 0)
        return -1;
    int rc = fit_slab(f, g, bytes, err);
    ty_graph_free(g);
    return rc;
}

/* The fewest items that fit, given that all do. */
static int fit_fewest(const fit *f, const ty_remat *r, int64_t limit, int *n, int64_t *bytes, ty_error *err)
{
    int lo = 0, hi = ty_remat_n_items(r); /* lo does not fit, hi does */
    while (hi - lo > 1) {
        int64_t now;
        int middle = (lo + hi) / 2;
        if (fit_attempt(f, r, middle, &now, err) < 0)
            return -1;
        if (now <= limit)
            *bytes = now;
        *(now <= limit ? &hi : &lo) = middle;
    }
    *n = hi;
    return 0;
}

/* Logits in chunks: the largest that fit, else the smallest if these save anything. *bytes: before and after. */
static int fit_chunk(const fit *f, ty_graph **g, int64_t limit, int64_t *bytes, ty_error *err)
{
    for (int i = 0; *bytes > limit && i < N_CHUNK_ROWS; i++) {
        const ty_chunk_rule rule = {fit_chunk_rows[i], false};
        ty_graph *next;
        int64_t now = 0;
        int n, rc = ty_chunk(*g, &rule, &next, &n, err);
        if (rc < 0)
            return -1;
        if (n == 0)
            continue;
        bool last = i + 1 == N_CHUNK_ROWS;
        rc = fit_slab(f, next, &now, err);
        bool take = rc == 0 && (now <= limit || (last && now < *bytes));
        ty_graph_free(take ? *g : next);
        if (rc < 0)
            return -1;
        if (take) {
            *g = next;
            *bytes = now;
            return 0;
        }
    }
    return 0;
}

static double fit_flop(const ty_graph *g, uint32_t tapes)
{
    ty_arena scratch;
    ty_arena_init(&scratch);
    uint8_t *live = TY_NEW_ARRAY(&scratch, uint8_t, ty_graph_n_nodes(g) + 1);
    double flop = 0;
    ty_graph_mark_live(g, tapes, live);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        flop += live[id] ? ty_node_flop(g, id) : 0;
    ty_arena_fini(&scratch);
    return flop;
}

/* From *g, with the first n items; the items go into the report. */
static int fit_take(ty_graph **g, const ty_remat *r, int n, uint32_t tape, ty_arena *a, ty_remat_report *out,
                    ty_error *err)
{
    ty_graph *next;
    double flop = fit_flop(*g, tape);
    out->line = TY_NEW_ARRAY(a, ty_remat_line, n + 1);
    for (int i = 0; i < n; i++) {
        const ty_remat_item *item = ty_remat_item_of(r, i);
        ty_remat_line line = {ty_arena_strdup(a, item->from ? item->from : ""),
                              ty_arena_strdup(a, item->to ? item->to : ""), item->products, item->kept_bytes,
                              item->flop / flop};
        if (item->kept_bytes > 0)
            out->line[out->n_lines++] = line;
    }
    if (ty_remat_apply(r, n, &next, err) < 0)
        return -1;
    out->share = fit_flop(next, tape) / flop - 1;
    ty_graph_free(*g);
    *g = next;
    return 0;
}

int ty_fit(ty_graph **g, uint32_t tapes, int64_t limit, int fuse_for, ty_arena *a, ty_remat_report *out, ty_error *err)
{
    const fit f = {tapes & (TY_TAPE_MICRO | TY_TAPE_LAST), fuse_for};
    int64_t before = 0, least = 0, bytes = 0;
    int n_best = 0, rc = fit_slab(&f, *g, &before, err);
    ty_remat *best = NULL;
    least = before;
    if (rc == 0)
        rc = fit_chunk(&f, g, limit, &least, err);
    for (int i = 0; rc == 0 && least > limit && i < N_SEGMENTS; i++) {
        ty_remat *r = ty_remat_new(*g, fit_segments[i]);
        rc = fit_attempt(&f, r, ty_remat_n_items(r), &bytes, err);
        bool better = rc == 0 && bytes < least;
        if (better) {
            ty_remat_free(best);
            best = r;
            least = bytes;
            n_best = ty_remat_n_items(r);
        } else {
            ty_remat_free(r);
        }
        if (least <= limit)
            break;
    }
    if (rc == 0 && best && least <= limit)
        rc = fit_fewest(&f, best, limit, &n_best, &least, err);
    *out = (ty_remat_report){.without_bytes = (size_t)before, .with_bytes = (size_t)least};
    if (rc == 0 && best)
        rc = fit_take(g, best, n_best, TY_TAPE_LAST, a, out, err);
    ty_remat_free(best);
    return rc;
}
