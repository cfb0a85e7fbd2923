/* tree.c - maps that grow, and merge patches. */
#include "estimator_spec/tree.h"

#include "base/json.h"

#include <string.h>

static const ty_doc_source nowhere = {.name = "", .text = "", .is_override = true};

static ty_doc plain(ty_doc_kind kind, const char *raw)
{
    return (ty_doc){.kind = kind, .raw = raw, .source = &nowhere};
}

ty_doc ty_tree_map(void)
{
    return plain(TY_DOC_MAP, "");
}

ty_doc ty_tree_list(void)
{
    return plain(TY_DOC_LIST, "");
}

ty_doc ty_tree_null(void)
{
    return plain(TY_DOC_NULL, "null");
}

ty_doc ty_tree_string(ty_arena *a, const char *text)
{
    ty_doc d = plain(TY_DOC_STRING, ty_arena_strdup(a, text));
    d.string = d.raw;
    d.quoted = true;
    return d;
}

ty_doc ty_tree_int(ty_arena *a, int64_t value)
{
    ty_doc d = plain(TY_DOC_INT, ty_arena_printf(a, "%lld", (long long)value));
    d.integer = value;
    return d;
}

ty_doc ty_tree_bool(bool value)
{
    ty_doc d = plain(TY_DOC_BOOL, value ? "true" : "false");
    d.boolean = value;
    return d;
}

/* ---- growing ---- */

/* Room is always a power of two: one more than it means a copy. */
void ty_tree_add(ty_arena *a, ty_doc *list, ty_doc value)
{
    uint32_t n = list->n_items;
    if ((n & (n - 1)) == 0) {
        ty_doc *items = TY_NEW_ARRAY(a, ty_doc, n ? 2 * (size_t)n : 1);
        if (n)
            memcpy(items, list->items, n * sizeof *items);
        list->items = items;
    }
    list->items[list->n_items++] = value;
}

static ty_doc *find_key(const ty_doc *map, const char *key)
{
    for (size_t i = 0; map && map->kind == TY_DOC_MAP && i < map->n_items; i++)
        if (strcmp(map->items[i].key, key) == 0)
            return &map->items[i];
    return NULL;
}

void ty_tree_put_key(ty_arena *a, ty_doc *map, const char *key, ty_doc value)
{
    ty_doc *there = find_key(map, key);
    value.key = there ? there->key : ty_arena_strdup(a, key);
    if (there)
        *there = value;
    else
        ty_tree_add(a, map, value);
}

void ty_tree_put(ty_arena *a, ty_doc *map, const char *path, ty_doc value)
{
    const char *dot = strchr(path, '.');
    if (!dot) {
        ty_tree_put_key(a, map, path, value);
        return;
    }
    const char *key = ty_arena_strndup(a, path, (size_t)(dot - path));
    ty_doc *child = find_key(map, key);
    if (!child || child->kind != TY_DOC_MAP) {
        ty_tree_put_key(a, map, key, ty_tree_map());
        child = find_key(map, key);
    }
    ty_tree_put(a, child, dot + 1, value);
}

const ty_doc *ty_tree_find(const ty_doc *map, const char *path)
{
    const char *dot = strchr(path, '.');
    if (!dot)
        return find_key(map, path);
    for (size_t i = 0; map && map->kind == TY_DOC_MAP && i < map->n_items; i++)
        if (strlen(map->items[i].key) == (size_t)(dot - path) &&
            memcmp(map->items[i].key, path, (size_t)(dot - path)) == 0)
            return ty_tree_find(&map->items[i], dot + 1);
    return NULL;
}

void ty_tree_remove(ty_doc *map, const char *key)
{
    ty_doc *there = find_key(map, key);
    if (!there)
        return;
    size_t after = map->n_items - 1 - (size_t)(there - map->items);
    memmove(there, there + 1, after * sizeof *there);
    map->n_items--;
}

/* ---- comparing ---- */

static bool same_items(const ty_doc *x, const ty_doc *y)
{
    if (x->n_items != y->n_items)
        return false;
    for (uint32_t i = 0; i < x->n_items; i++) {
        const ty_doc *other = x->kind == TY_DOC_MAP ? find_key(y, x->items[i].key) : &y->items[i];
        if (!other || !ty_tree_equal(&x->items[i], other))
            return false;
    }
    return true;
}

bool ty_tree_equal(const ty_doc *x, const ty_doc *y)
{
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case TY_DOC_NULL:
        return true;
    case TY_DOC_BOOL:
        return x->boolean == y->boolean;
    case TY_DOC_INT:
        return x->integer == y->integer;
    case TY_DOC_FLOAT:
        return x->number == y->number;
    case TY_DOC_STRING:
        return strcmp(x->string, y->string) == 0;
    case TY_DOC_LIST:
    case TY_DOC_MAP:
        return same_items(x, y);
    }
    return false;
}

/* ---- merge patches ---- */

static ty_doc copy_of(ty_arena *a, const ty_doc *d)
{
    ty_doc out = *d;
    if (d->kind == TY_DOC_MAP) {
        out.items = NULL;
        out.n_items = 0;
        for (uint32_t i = 0; i < d->n_items; i++)
            ty_tree_put_key(a, &out, d->items[i].key, d->items[i]);
    }
    return out;
}

ty_doc ty_tree_patched(ty_arena *a, const ty_doc *target, const ty_doc *patch)
{
    if (patch->kind != TY_DOC_MAP)
        return *patch;
    ty_doc out = target && target->kind == TY_DOC_MAP ? copy_of(a, target) : ty_tree_map();
    for (uint32_t i = 0; i < patch->n_items; i++) {
        const ty_doc *p = &patch->items[i];
        if (p->kind == TY_DOC_NULL)
            ty_tree_remove(&out, p->key);
        else
            ty_tree_put_key(a, &out, p->key, ty_tree_patched(a, find_key(&out, p->key), p));
    }
    return out;
}

ty_doc ty_tree_difference(ty_arena *a, const ty_doc *from, const ty_doc *to)
{
    ty_doc out = ty_tree_map();
    for (uint32_t i = 0; i < from->n_items; i++)
        if (!find_key(to, from->items[i].key))
            ty_tree_put_key(a, &out, from->items[i].key, ty_tree_null());
    for (uint32_t i = 0; i < to->n_items; i++) {
        const ty_doc *want = &to->items[i], *have = find_key(from, want->key);
        if (have && ty_tree_equal(have, want))
            continue;
        bool both_maps = have && have->kind == TY_DOC_MAP && want->kind == TY_DOC_MAP;
        ty_tree_put_key(a, &out, want->key, both_maps ? ty_tree_difference(a, have, want) : *want);
    }
    return out;
}
