/* doc_override.c - values from outside the file: hyperparameters, arguments. They become ordinary nodes of the tree, so
 * that everything that checks the file checks them too; only their source tells them apart. */
#include "base/doc.h"
#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

static ty_doc_source *new_source(ty_arena *arena, const char *name, const char *text)
{
    ty_doc_source *source = TY_NEW(arena, ty_doc_source);
    source->name = ty_arena_strdup(arena, name);
    source->text = ty_arena_strdup(arena, text);
    source->len = strlen(text);
    source->is_override = true;
    return source;
}

ty_doc *ty_doc_new_map(ty_arena *arena, const char *source_name)
{
    ty_doc *map = TY_NEW(arena, ty_doc);
    map->kind = TY_DOC_MAP;
    map->source = new_source(arena, source_name, "");
    map->raw = "";
    return map;
}

/* Room for one more value; the arena keeps the old array, which is why readers hold no pointers while overriding. */
static ty_doc *append_child(ty_arena *arena, ty_doc *map, const char *key, const ty_doc_source *source)
{
    ty_doc *items = TY_NEW_ARRAY(arena, ty_doc, map->n_items + 1);
    if (map->n_items)
        memcpy(items, map->items, map->n_items * sizeof *items);
    ty_doc *child = &items[map->n_items++];
    map->items = items;
    *child = (ty_doc){.kind = TY_DOC_NULL, .key = key, .source = source, .raw = ""};
    return child;
}

static ty_doc *find_child(ty_doc *d, const char *name)
{
    if (d->kind == TY_DOC_MAP)
        return (ty_doc *)ty_doc_find(d, name);
    if (d->kind != TY_DOC_LIST || name[0] == 0 || name[strspn(name, "0123456789")] != 0 || strlen(name) > 9)
        return NULL;
    return (ty_doc *)ty_doc_at(d, (size_t)atoi(name));
}

/* The node at the path, made where it is missing. */
static ty_doc *walk(ty_arena *arena, ty_doc *root, const char *path, const ty_doc_source *source, ty_error *err)
{
    ty_doc *at = root;
    int depth = 0;
    for (const char *name = path;; name++) {
        if (++depth > TY_YAML_MAX_DEPTH) {
            ty_error_set(err, TY_E_UNKNOWN_KEY, "a dotted path of more than %d names", TY_YAML_MAX_DEPTH);
            ty_error_at(err, "%s", source->name);
            return NULL;
        }
        size_t len = strcspn(name, ".");
        char *key = ty_arena_strndup(arena, name, len);
        if (len == 0) {
            ty_error_set(err, TY_E_UNKNOWN_KEY, "\"%s\" is no dotted path: a name is empty", path);
            ty_error_at(err, "%s", source->name);
            return NULL;
        }
        if (at->kind == TY_DOC_NULL) {
            at->kind = TY_DOC_MAP;
            at->items = NULL;
            at->n_items = 0;
            at->source = source;
        }
        ty_doc *child = find_child(at, key);
        if (!child && at->kind != TY_DOC_MAP) {
            char found[160];
            ty_error_set(err, TY_E_UNKNOWN_KEY, "\"%s\": nothing stands at \"%.*s\": found %s before it", path,
                         (int)(name - path + (ptrdiff_t)len), path, ty_doc_describe(at, found, sizeof found));
            ty_error_at(err, "%s", source->name);
            return NULL;
        }
        at = child ? child : append_child(arena, at, key, source);
        name += len;
        if (*name == 0)
            return at;
    }
}

static void mark_source(ty_doc *d, const ty_doc_source *source)
{
    d->source = source;
    if (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP)
        for (uint32_t i = 0; i < d->n_items; i++)
            mark_source(&d->items[i], source);
}

static int parse_value(ty_arena *arena, const char *text, const ty_doc_source *source, ty_doc *out, ty_error *err)
{
    *out = (ty_doc){.source = source, .raw = source->text, .line = 1, .column = 1};
    if (text[0] == 0) { /* `--name=` means the empty text, not the absence of one */
        out->kind = TY_DOC_STRING;
        out->string = source->text;
        return 0;
    }
    if (!strchr("[{\"'", text[0])) {
        ty_yaml_resolve(out);
        return 0;
    }
    ty_doc *parsed;
    ty_error why = {0};
    if (ty_yaml_parse(arena, source->name, text, strlen(text), NULL, NULL, NULL, &parsed, &why) < 0) {
        ty_error_set(err, why.code, "%s in %s", why.message, text);
        return ty_error_at(err, "%s", source->name);
    }
    *out = *parsed;
    mark_source(out, source);
    return 0;
}

int ty_doc_override(ty_arena *arena, ty_doc *root, const char *path, const char *text, const char *from, ty_error *err)
{
    const ty_doc_source *source = new_source(arena, from, text);
    ty_doc value;
    if (parse_value(arena, text, source, &value, err) < 0)
        return -1;
    ty_doc *target = walk(arena, root, path, source, err);
    if (!target)
        return -1;
    value.key = target->key;
    value.key_line = target->key_line;
    value.key_column = target->key_column;
    *target = value;
    return 0;
}
