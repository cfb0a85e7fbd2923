/* recipe_watch.c - what a recipe makes depend on evaluations: a plateau, the end of the run, whose weights are written.
 */
#include "entrypoint/recipe_reader.h"
#include "entrypoint/tally.h"

#include <string.h>

/* Which value of an evaluation: 0 the loss, i + 1 metric i. -1: there is no such metric. NULL: the loss. */
static int find_watched(const ty_recipe *r, const char *name)
{
    if (!name || strcmp(name, "loss") == 0)
        return 0;
    for (int i = 0; i < r->n_metrics; i++)
        if (strcmp(r->metrics[i].name, name) == 0)
            return i + 1;
    return -1;
}

static bool prefers_high(const ty_recipe *r, int watched)
{
    return watched > 0 && ty_tally_prefers_high(r->metrics[watched - 1].kind);
}

/* `what` needs evaluations, and the metric that it names. */
static int check_watched(recipe_reader *rd, const ty_doc *at, const char *what, const char *metric, int *watched)
{
    if (!rd->r->validation.given)
        return ty_doc_error(at, rd->err, TY_E_CONFIG, NULL, "%s needs data.validation", what);
    *watched = find_watched(rd->r, metric);
    if (*watched >= 0)
        return 0;
    ty_doc_error(at, rd->err, TY_E_CONFIG, NULL, "\"metrics\" has no \"%s\" for %s", metric, what);
    return ty_error_help(rd->err, "add it to metrics, or name one of them, or loss");
}

int ty_recipe_check_plateau(recipe_reader *rd)
{
    ty_recipe_schedule *s = &rd->r->schedule;
    int watched;
    if (s->kind != TY_SCHED_PLATEAU)
        return 0;
    if (check_watched(rd, s->at, "the schedule plateau", s->metric, &watched) < 0)
        return -1;
    if (!s->mode_given)
        s->maximize = prefers_high(rd->r, watched);
    return 0;
}

int ty_recipe_read_early_stopping(recipe_reader *rd, const ty_doc *node)
{
    ty_recipe *r = rd->r;
    recipe_early e = {0};
    const recipe_section *s = &ty_recipe_early_section;
    r->best_value = r->n_metrics > 0 ? 1 : 0;
    r->best_is_high = prefers_high(r, r->best_value);
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_recipe_bind(rd, s->path, s->rows, s->n_rows, node, &e) < 0 ||
        ty_recipe_read_span(rd, e.start_from, "start_from", NULL, &r->early.start_from) < 0 ||
        check_watched(rd, node, "early_stopping",
                      e.metric       ? e.metric
                      : r->n_metrics ? r->metrics[0].name
                                     : NULL,
                      &r->best_value) < 0)
        return -1;
    r->early.patience = e.patience;
    r->early.min_delta = e.min_delta;
    r->best_is_high = e.mode ? e.mode == TY_WATCH_MAX : prefers_high(r, r->best_value);
    return 0;
}

int ty_recipe_read_export(recipe_reader *rd, const ty_doc *node)
{
    ty_recipe *r = rd->r;
    recipe_export e = {0};
    const recipe_section *s = &ty_recipe_export_section;
    if (ty_recipe_bind(rd, s->path, s->rows, s->n_rows, node, &e) < 0)
        return -1;
    r->export_preprocessing = e.preprocessing;
    r->export_adapter = e.adapter;
    if (e.adapter && r->lora.rank == 0)
        return ty_doc_error(node, rd->err, TY_E_CONFIG, NULL, "export.adapter needs lora");
    r->export_best = e.weights == TY_WEIGHTS_BEST || (e.weights == TY_WEIGHTS_AUTO && r->early.patience > 0);
    if (r->export_best && !r->validation.given)
        return ty_doc_error(node, rd->err, TY_E_CONFIG, NULL, "export.weights: best needs data.validation");
    return 0;
}
