/* example.c - see example.h. */
#include "container/input/example.h"

#include "container/input/protobuf.h"

#include <string.h>

static int example_malformed(const char *where, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "the record is no tf.train.Example: %s is malformed", where);
    return ty_error_help(
        err, "TFRecord files are read if their records are tf.train.Examples; if these hold something else, "
             "write it as features of Examples");
}

/* A Feature: the last of its lists. */
static bool example_feature(const uint8_t *p, size_t n, ty_feature *out)
{
    ty_proto_bytes in = {p, p + n};
    ty_proto_field v;
    *out = (ty_feature){TY_FEATURE_ABSENT, NULL, 0};
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v))
            return false;
        if (v.type == TY_PROTO_BYTES && v.field >= 1 && v.field <= 3)
            *out = (ty_feature){(ty_feature_kind)v.field, v.bytes, v.n};
    }
    return true;
}

typedef struct example_entry {
    const uint8_t *name;
    size_t name_bytes;
    ty_feature feature;
} example_entry;

static bool example_read_entry(const uint8_t *p, size_t n, example_entry *out)
{
    ty_proto_bytes in = {p, p + n};
    ty_proto_field v;
    *out = (example_entry){.name = p};
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v))
            return false;
        if (v.type == TY_PROTO_BYTES && v.field == 1) {
            out->name = v.bytes;
            out->name_bytes = v.n;
        }
        if (v.type == TY_PROTO_BYTES && v.field == 2 && !example_feature(v.bytes, v.n, &out->feature))
            return false;
    }
    return true;
}

typedef int example_take(void *ctx, int k, const example_entry *e, ty_error *err);

/* Gives each entry of each Features message in the record to `take`. */
static int example_entries(const uint8_t *record, size_t n, example_take *take, void *ctx, ty_error *err)
{
    ty_proto_bytes in = {record, record + n};
    ty_proto_field features, v;
    example_entry e;
    int k = 0;
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &features))
            return example_malformed("a field", err);
        if (features.field != 1 || features.type != TY_PROTO_BYTES)
            continue;
        for (ty_proto_bytes map = {features.bytes, features.bytes + features.n}; map.p < map.end;) {
            if (!ty_proto_next(&map, &v))
                return example_malformed("its map of features", err);
            if (v.field != 1 || v.type != TY_PROTO_BYTES)
                continue;
            if (!example_read_entry(v.bytes, v.n, &e))
                return example_malformed("a feature", err);
            if (take(ctx, k++, &e, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* ---- by name ---- */

typedef struct example_search {
    ty_example *x;
    ty_feature *out;
} example_search;

static bool example_has_name(const ty_example *x, int i, const example_entry *e)
{
    size_t n = i < TY_EXAMPLE_REMEMBERED ? x->name_bytes[i] : strlen(x->name[i]);
    return e->name_bytes == n && memcmp(e->name, x->name[i], n) == 0;
}

/* Number of the name; -1: it is not looked for. */
static int example_number(ty_example *x, int k, const example_entry *e)
{
    if (k < TY_EXAMPLE_REMEMBERED && x->order[k] > 0 && example_has_name(x, x->order[k] - 1, e))
        return x->order[k] - 1;
    for (int i = 0; i < x->n; i++)
        if (example_has_name(x, i, e)) {
            if (k < TY_EXAMPLE_REMEMBERED)
                x->order[k] = (int16_t)(i + 1);
            return i;
        }
    return -1;
}

static int example_keep(void *ctx, int k, const example_entry *e, ty_error *err)
{
    example_search *s = ctx;
    int i = example_number(s->x, k, e);
    (void)err;
    if (i >= 0)
        s->out[i] = e->feature;
    return 0;
}

int ty_example_find(ty_example *x, const uint8_t *record, size_t n, ty_feature *out, ty_error *err)
{
    example_search search = {x, out};
    for (int i = 0; i < x->n; i++) {
        out[i] = (ty_feature){TY_FEATURE_ABSENT, NULL, 0};
        if (i < TY_EXAMPLE_REMEMBERED && x->name_bytes[i] == 0)
            x->name_bytes[i] = (uint16_t)strlen(x->name[i]);
    }
    return example_entries(record, n, example_keep, &search, err);
}

typedef struct example_tour {
    ty_example_visit *visit;
    void *ctx;
} example_tour;

static int example_show(void *ctx, int k, const example_entry *e, ty_error *err)
{
    const example_tour *tour = ctx;
    (void)k;
    return tour->visit(tour->ctx, (const char *)e->name, e->name_bytes, &e->feature, err);
}

int ty_example_walk(const uint8_t *record, size_t n, ty_example_visit *visit, void *ctx, ty_error *err)
{
    example_tour tour = {visit, ctx};
    return example_entries(record, n, example_show, &tour, err);
}

/* ---- lists ---- */

int64_t ty_feature_floats(const ty_feature *f, float *out, int64_t max)
{
    if (f->kind != TY_FEATURE_FLOATS)
        return f->kind == TY_FEATURE_ABSENT ? 0 : -1;
    ty_proto_bytes in = {f->list, f->list + f->n};
    ty_proto_field v;
    int64_t n = 0;
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v))
            return -1;
        if (v.field != 1)
            continue;
        if ((v.type != TY_PROTO_BYTES && v.type != TY_PROTO_FOUR) || v.n % sizeof(float))
            return -1;
        int64_t more = (int64_t)(v.n / sizeof(float)), room = max > n ? max - n : 0;
        if (room > 0)
            memcpy(out + n, v.bytes, (size_t)(more < room ? more : room) * sizeof(float));
        n += more;
    }
    return n;
}

int64_t ty_feature_ints(const ty_feature *f, int64_t *out, int64_t max)
{
    if (f->kind != TY_FEATURE_INTS)
        return f->kind == TY_FEATURE_ABSENT ? 0 : -1;
    return ty_proto_integers(f->list, f->n, 1, out, max);
}

int64_t ty_feature_bytes(const ty_feature *f, ty_feature_piece *out, int64_t max)
{
    if (f->kind != TY_FEATURE_BYTES)
        return f->kind == TY_FEATURE_ABSENT ? 0 : -1;
    ty_proto_bytes in = {f->list, f->list + f->n};
    ty_proto_field v;
    int64_t n = 0;
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v) || (v.field == 1 && v.type != TY_PROTO_BYTES))
            return -1;
        if (v.field == 1 && n++ < max)
            out[n - 1] = (ty_feature_piece){v.bytes, v.n};
    }
    return n;
}
