/* front.c - see front.h. */
#include "entrypoint/front.h"

#include "base/log.h"
#include "compiler/export/front.h"
#include "container/input/map/map.h"
#include "entrypoint/export.h"

#include <math.h>
#include <string.h>

/* Why a field cannot be made by nodes; NULL: it can. */
static const char *front_obstacle(const ty_map_spec *d, const ty_map_settled *s)
{
    static const char *const ways[TY_N_MAP_WAYS] = {[TY_MAP_HASH] = "its hash is FarmHash's",
                                                    [TY_MAP_CROSS] = "it is a cross, which is hashed",
                                                    [TY_MAP_TOKENIZER] = "it has a tokenizer",
                                                    [TY_MAP_TAGS] = "it has a tokenizer",
                                                    [TY_MAP_ANSWER] = "it has a tokenizer"};
    if (ways[d->way])
        return ways[d->way];
    if (d->way == TY_MAP_VOCABULARY && d->n_oov > 1)
        return "several ids for other words are told apart by a hash";
    return s->is_list ? "its samples are lists of any length" : NULL;
}

static void front_take_map(const ty_map *m, const ty_map_settled *s, ty_arena *a, ty_onnx_front *out)
{
    const ty_map_spec *d = ty_map_declared(m);
    int64_t first = d->way == TY_MAP_VOCABULARY ? d->n_oov : 0;
    const char **word = TY_NEW_ARRAY(a, const char *, s->n_words + 1);
    for (int64_t i = 0; i < s->n_words; i++)
        word[i] = ty_map_word(m, first + i);
    *out = (ty_onnx_front){.is_text = ty_map_wants_text(m),
                           .fill = s->fill,
                           .n_fill = s->n_fill,
                           .scale = d->scale,
                           .offset = d->offset,
                           .is_clipped = d->is_clipped,
                           .log1p = d->log1p,
                           .low = d->low,
                           .high = d->high,
                           .shift = s->shift,
                           .divisor = s->divisor,
                           .n_stats = s->n_stats,
                           .has_buckets = d->way == TY_MAP_BUCKETS,
                           .boundary = s->boundary,
                           .n_boundaries = s->n_boundaries,
                           .word = word,
                           .n_words = s->n_words,
                           .first_id = first,
                           .has_other = first > 0,
                           .fill_text = s->fill_text,
                           .one_hot = s->width};
}

/* As the row is, unless its values stand for more, or have statistics of their own. */
static void front_shape(const ty_type *row, ty_onnx_front *f)
{
    int64_t n = f->n_fill > f->n_stats ? f->n_fill : f->n_stats;
    f->row = *row;
    f->raw_rank = row->rank;
    memcpy(f->raw_dim, row->dim, sizeof f->raw_dim);
    if (f->one_hot > 0)
        n = ty_type_elems(row) / f->one_hot;
    if (f->one_hot > 0 || n > 1) {
        f->raw_rank = n > 1;
        f->raw_dim[0] = n;
    }
}

/* 1: made by nodes; 0: the input stays as it is. */
static int front_of(const ty_field *f, const ty_field_info *info, const char *input, ty_arena *a, ty_onnx_front *out)
{
    ty_map_settled s;
    if (f->map) {
        ty_map_look(f->map, &s);
        const char *why = front_obstacle(ty_map_declared(f->map), &s);
        if (why) {
            ty_log_info("model",
                        TY_FRONT_NAME ": input \"%s\" stays as it is after preprocessing: %s, for which ONNX "
                                      "has no operator (field \"%s\")",
                        input, why, f->name);
            return 0;
        }
        front_take_map(f->map, &s, a, out);
    } else {
        bool fills = f->missing_given && !isnan(f->missing);
        if (f->image || f->audio || (f->scale == 1 && f->offset == 0 && !fills) || f->max_length > 0)
            return 0;
        *out = (ty_onnx_front){.scale = f->scale, .offset = f->offset, .n_stats = 1};
        if (fills) {
            out->fill = &f->missing;
            out->n_fill = 1;
        }
    }
    out->input = input;
    front_shape(&info->type, out);
    return 1;
}

int ty_front_write(const ty_spec_plan *plan, const ty_field *fields, const ty_dataset *ds, const char *model,
                   const char *path, bool *is_written, ty_error *err)
{
    ty_arena a;
    ty_arena_init(&a);
    ty_onnx_front *fronts = TY_NEW_ARRAY(&a, ty_onnx_front, plan->n_feeds + 1);
    int n = 0, rc = 0;
    for (int i = 0; i < plan->n_feeds; i++) {
        int k = plan->feeds[i].input ? ty_dataset_find(ds, plan->feeds[i].field) : -1;
        if (k >= 0)
            n += front_of(&fields[k], &ds->field[k], plan->feeds[i].name, &a, &fronts[n]);
    }
    *is_written = n > 0;
    if (n == 0)
        ty_log_warning("model", TY_FRONT_NAME " is not written: no input has a transform that ONNX has operators for");
    else
        rc = ty_onnx_write_front(model, path, fronts, n, &a, err);
    ty_arena_fini(&a);
    if (rc == 0 || (err->code != TY_E_UNSUPPORTED && err->code != TY_E_LIMIT))
        return rc;
    ty_log_warning("model", TY_FRONT_NAME " is not written: %s", err->message); /* the model itself is */
    *is_written = false;
    return 0;
}
