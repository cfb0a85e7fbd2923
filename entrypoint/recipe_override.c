/* recipe_override.c - values from outside a recipe, and the one form of its choices.
 *
 * Order matters: `optimizer=sgd` replaces what the file says, so it comes before `optimizer.sgd.lr=0.1` and before the
 * alias `lr`, which means the lr of whatever optimizer there is by then. Hence two rounds over the overrides; within
 * each, the later one wins.
 */
#include "base/suggest.h"
#include "entrypoint/recipe_keys.h"

#include <string.h>

typedef enum round { WHOLE_KEYS, PARTS_OF_KEYS, N_ROUNDS } round;

static const recipe_choice *const choices[] = {&ty_recipe_loss_choice, &ty_recipe_optimizer_choice,
                                               &ty_recipe_schedule_choice, &ty_recipe_clip_choice};
enum { N_CHOICES = sizeof choices / sizeof choices[0] };

static const recipe_alias *find_alias(const char *key)
{
    for (size_t i = 0; i < ty_recipe_n_aliases; i++)
        if (strcmp(ty_recipe_aliases[i].alias, key) == 0)
            return &ty_recipe_aliases[i];
    return NULL;
}

static bool is_top_key(const char *key, size_t len)
{
    const recipe_section *top = &ty_recipe_top_section;
    for (size_t i = 0; i < top->n_rows; i++)
        if (strlen(top->rows[i].key) == len && memcmp(top->rows[i].key, key, len) == 0)
            return true;
    return false;
}

static ty_doc *find(ty_doc *map, const char *key)
{
    return (ty_doc *)ty_doc_find(map, key);
}

/* Makes `node` the map {kind: section}; `kind` is the text of `at`. What section held is kept with its places. */
static void make_choice(ty_arena *a, ty_doc *node, const char *kind, const ty_doc *at, const ty_doc *section)
{
    ty_doc *child = TY_NEW(a, ty_doc);
    *child = section ? *section : (ty_doc){.kind = TY_DOC_NULL, .raw = "", .source = node->source};
    child->line = section && section->line ? section->line : node->line;
    child->column = section && section->column ? section->column : node->column;
    child->key = kind;
    child->key_line = at->line;
    child->key_column = at->column;
    node->kind = TY_DOC_MAP;
    node->items = child;
    node->n_items = 1;
    node->width = 0;
}

/* {type: adamw, lr: 1} without its `type`. */
static ty_doc *without_type(ty_arena *a, const ty_doc *node)
{
    ty_doc *rest = TY_NEW(a, ty_doc);
    *rest = *node;
    rest->items = TY_NEW_ARRAY(a, ty_doc, node->n_items);
    rest->n_items = 0;
    for (uint32_t i = 0; i < node->n_items; i++)
        if (strcmp(node->items[i].key, "type") != 0)
            rest->items[rest->n_items++] = node->items[i];
    return rest;
}

static void normalise_choice(ty_arena *a, ty_doc *node)
{
    if (!node)
        return;
    if (node->kind == TY_DOC_LIST) {
        for (uint32_t i = 0; i < node->n_items; i++)
            normalise_choice(a, &node->items[i]);
        return;
    }
    if (node->kind == TY_DOC_STRING)
        make_choice(a, node, node->string, node, NULL);
    ty_doc *type = find(node, "type");
    if (type && type->kind == TY_DOC_STRING)
        make_choice(a, node, type->string, type, without_type(a, node));
}

static void normalise_all(ty_arena *a, ty_doc *root)
{
    for (int i = 0; i < N_CHOICES; i++)
        normalise_choice(a, find(root, choices[i]->key));
    ty_doc *metrics = find(root, "metrics");
    normalise_choice(a, metrics);
}

/* "optimizer.*.lr" with the kind in place of the star; a choice that is absent has its first kind, the default. */
static const char *resolve_star(ty_arena *a, ty_doc *root, const char *path)
{
    const char *star = strchr(path, '*');
    if (!star)
        return path;
    char *key = ty_arena_strndup(a, path, (size_t)(star - path) - 1);
    ty_doc *node = find(root, key);
    const char *kind = "";
    const char *index = "";
    if (node && node->kind == TY_DOC_LIST && node->n_items == 1) {
        node = &node->items[0];
        index = "0.";
    }
    if (ty_doc_len(node) > 0 && node->kind == TY_DOC_MAP)
        kind = node->items[0].key;
    for (int i = 0; i < N_CHOICES && !*kind; i++)
        if (strcmp(choices[i]->key, key) == 0)
            kind = choices[i]->kinds[0].name;
    return ty_arena_printf(a, "%s.%s%s%s", key, index, kind, star + 1);
}

static int refuse_unknown(const ty_recipe_override *o, ty_error *err)
{
    ty_suggestion s = {.word = o->key};
    for (size_t i = 0; i < ty_recipe_top_section.n_rows; i++)
        ty_suggest_offer(&s, ty_recipe_top_section.rows[i].key);
    for (size_t i = 0; i < ty_recipe_n_aliases; i++)
        ty_suggest_offer(&s, ty_recipe_aliases[i].alias);
    ty_error_set(err, TY_E_UNKNOWN_KEY, "unknown key \"%s\"", o->key);
    ty_error_at(err, "%s", o->from);
    if (s.best)
        return ty_error_help(err, "did you mean \"%s\"?", s.best);
    return ty_error_help(err, "`trainyard help recipe` lists all keys and aliases");
}

/* The key as it stands in the tables: dashes count as underscores. */
static const char *canonical(ty_arena *a, const char *key)
{
    if (find_alias(key) || is_top_key(key, strcspn(key, ".")))
        return key;
    char *copy = ty_arena_strdup(a, key);
    for (char *p = copy; *p && *p != '.'; p++)
        if (*p == '-')
            *p = '_';
    return copy;
}

static int apply(ty_arena *a, ty_doc *root, const ty_recipe_override *o, round now, ty_error *err)
{
    const char *key = canonical(a, o->key);
    const recipe_alias *alias = find_alias(key);
    bool known = alias || is_top_key(key, strcspn(key, "."));
    if (!known)
        return refuse_unknown(o, err);
    round when = strchr(alias ? alias->path : key, '.') ? PARTS_OF_KEYS : WHOLE_KEYS;
    if (when != now)
        return 0;
    const char *path = alias ? resolve_star(a, root, alias->path) : key;
    return ty_doc_override(a, root, path, o->text, o->from, err);
}

int ty_recipe_normalise(ty_arena *a, ty_doc *root, const ty_recipe_override *overrides, int n_overrides, ty_error *err)
{
    for (round now = 0; now < N_ROUNDS; now++) {
        for (int i = 0; i < n_overrides; i++)
            if (apply(a, root, &overrides[i], now, err) < 0)
                return -1;
        normalise_all(a, root);
    }
    return 0;
}
