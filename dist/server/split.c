/* split.c - see split.h. */
#include "dist/server/split.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct split_id {
    int64_t id, k;
    int part;
} split_id;

static int split_order(const void *a, const void *b)
{
    const split_id *x = a, *y = b;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->k < y->k ? -1 : x->k > y->k;
}

static int split_fill(ty_split *s, const ty_shard_variable *v, const int64_t *ids, split_id *all, ty_error *err)
{
    for (int64_t k = 0; k < s->n_ids; k++) {
        int64_t place;
        all[k] = (split_id){.id = ids[k], .k = k};
        if (ty_shard_variable_find(v, ids[k], &all[k].part, &place) < 0)
            return ty_error_set(err, TY_E_DATA_VALUE, "table \"%s\" has %" PRId64 " rows, id %" PRId64 " is not one",
                                v->name, v->rows, ids[k]);
    }
    qsort(all, (size_t)s->n_ids, sizeof *all, split_order);
    for (int64_t k = 0; k < s->n_ids; k++) {
        if (k == 0 || all[k].id != all[k - 1].id || all[k].part != all[k - 1].part) {
            s->id[s->n++] = all[k].id;
            s->begin[all[k].part + 1] = s->n;
        }
        s->where[all[k].k] = s->n - 1;
    }
    for (int p = 0; p < v->parts; p++)
        if (s->begin[p + 1] < s->begin[p])
            s->begin[p + 1] = s->begin[p];
    return 0;
}

int ty_split_init(ty_split *s, const ty_shard_variable *v, const int64_t *ids, int64_t n_ids, ty_error *err)
{
    size_t n = (size_t)n_ids + 1;
    split_id *all = malloc(n * sizeof *all);
    *s = (ty_split){.n_ids = n_ids,
                    .id = malloc(n * sizeof *s->id),
                    .where = malloc(n * sizeof *s->where),
                    .begin = calloc((size_t)v->parts + 1, sizeof *s->begin)};
    int rc = all && s->id && s->where && s->begin
                 ? split_fill(s, v, ids, all, err)
                 : ty_error_set(err, TY_E_LIMIT, "no memory for %" PRId64 " ids", n_ids);
    free(all);
    if (rc < 0)
        ty_split_fini(s);
    return rc;
}

void ty_split_fini(ty_split *s)
{
    free(s->id);
    free(s->where);
    free(s->begin);
    *s = (ty_split){0};
}
