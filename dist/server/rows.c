/* rows.c - see rows.h. */
#include "dist/server/rows.h"

#include "base/rng.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_FIRST = 256, ROWS_STREAM = 0x70737276 };

/* Makes memory for `room` rows, and fills the slots of new ones. */
static int rows_grow(ty_rows *r, int64_t room)
{
    size_t bytes = (size_t)(room * r->variable->width) * sizeof(float);
    int n_slots = ty_rule_slots(&r->variable->rule);
    float **array[1 + TY_RULE_MAX_SLOTS] = {&r->weight, &r->slot[0], &r->slot[1]};
    for (int k = 0; k < 1 + n_slots; k++) {
        float *grown = realloc(*array[k], bytes ? bytes : 1);
        if (grown == NULL)
            return -1;
        *array[k] = grown;
        float first = k ? ty_rule_initial(&r->variable->rule, k - 1) : 0;
        for (int64_t i = r->room * r->variable->width; i < room * r->variable->width; i++)
            grown[i] = first;
    }
    if (r->variable->hashed) {
        int64_t *id = realloc(r->id, (size_t)room * sizeof *id);
        if (id == NULL)
            return -1;
        r->id = id;
    }
    r->room = room;
    return 0;
}

static uint64_t rows_hash(int64_t id)
{
    uint64_t x = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 29);
}

/* Where the id stands in the index, or the empty entry where it would. */
static int64_t rows_probe(const ty_rows *r, int64_t id)
{
    int64_t mask = r->index_size - 1, at = (int64_t)(rows_hash(id) >> 3) & mask;
    while (r->index[at] >= 0 && r->id[r->index[at]] != id)
        at = (at + 1) & mask;
    return at;
}

static int rows_index(ty_rows *r, int64_t size)
{
    int64_t *index = malloc((size_t)size * sizeof *index);
    if (index == NULL)
        return -1;
    free(r->index);
    r->index = index;
    r->index_size = size;
    for (int64_t i = 0; i < size; i++)
        index[i] = -1;
    for (int64_t k = 0; k < r->n; k++)
        index[rows_probe(r, r->id[k])] = k;
    return 0;
}

int ty_rows_init(ty_rows *r, const ty_catalogue *c, int variable, int part, ty_error *err)
{
    const ty_shard_variable *v = &c->variable[variable];
    *r = (ty_rows){.variable = v, .number = variable, .part = part, .version = 1};
    int64_t n = ty_shard_variable_rows(v, part);
    if (rows_grow(r, v->hashed ? ROWS_FIRST : n) < 0 || (v->hashed && rows_index(r, (int64_t)2 * ROWS_FIRST) < 0)) {
        ty_rows_fini(r);
        return ty_error_set(err, TY_E_LIMIT, "no memory for part %d of variable \"%s\": %" PRId64 " rows of %" PRId64,
                            part, v->name, n, v->width);
    }
    r->n = n;
    return 0;
}

void ty_rows_fini(ty_rows *r)
{
    free(r->weight);
    free(r->slot[0]);
    free(r->slot[1]);
    free(r->id);
    free(r->index);
    free(r->sum);
    *r = (ty_rows){0};
}

/* Number k of row `id` is word id * width + k of a stream of its own: any shard makes the same. */
static void rows_begin(ty_rows *r, int64_t id, float *w)
{
    const ty_shard_variable *v = r->variable;
    for (int64_t k = 0; k < v->width; k++) {
        uint64_t i = (uint64_t)id * (uint64_t)v->width + (uint64_t)k;
        w[k] = (2 * ty_rng_uniform(ty_rng_u32(v->seed, ROWS_STREAM, (uint32_t)r->number, i)) - 1) * v->scale;
    }
}

int64_t ty_rows_find(ty_rows *r, int64_t id, bool insert)
{
    const ty_shard_variable *v = r->variable;
    if (!v->hashed) {
        int part;
        int64_t place;
        return ty_shard_variable_find(v, id, &part, &place) == 0 && part == r->part ? place : -1;
    }
    int64_t at = rows_probe(r, id);
    if (r->index[at] >= 0 || !insert)
        return r->index[at];
    if (r->n == r->room && rows_grow(r, r->room * 2) < 0)
        return -1;
    if ((r->n + 1) * 3 > r->index_size * 2) {
        if (rows_index(r, r->index_size * 2) < 0)
            return -1;
        at = rows_probe(r, id);
    }
    r->id[r->n] = id;
    r->index[at] = r->n;
    rows_begin(r, id, r->weight + r->n * v->width);
    return r->n++;
}

int64_t ty_rows_id(const ty_rows *r, int64_t place)
{
    const ty_shard_variable *v = r->variable;
    return v->hashed ? r->id[place] : ty_partition_row(v->rows, v->parts, v->mod, r->part, place);
}

void ty_rows_apply(ty_rows *r, int64_t at, int64_t n, float scale, uint64_t t, const float *gradient)
{
    int64_t width = r->variable->width, skip = at * width;
    float *slot[TY_RULE_MAX_SLOTS] = {r->slot[0] ? r->slot[0] + skip : NULL, r->slot[1] ? r->slot[1] + skip : NULL};
    ty_rule_apply(&r->variable->rule, scale, t, r->weight + skip, slot, gradient, n * width);
}
