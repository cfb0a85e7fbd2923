/* recipe_base.c - what a model file says of its own training, as the base of a recipe (ty_model_recipe).
 *
 * Sections of the user's recipe, and those given whole from outside, take the place of the file's. A Keras optimizer
 * has its schedule, clipping, averages and accumulation in it: the user's replaces them with it.
 */
#include "base/yaml.h"
#include "entrypoint/recipe_keys.h"
#include "entrypoint/recipe_reader.h"

#include <stdlib.h>
#include <string.h>

static const char *const of_optimizer[] = {"schedule", "clip", "ema", "update_every"};

static bool overrides_have(const ty_recipe_override *overrides, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(overrides[i].key, key) == 0)
            return true;
    return false;
}

static bool is_users(const ty_doc *root, const ty_recipe_override *overrides, int n, const char *key)
{
    return ty_doc_find(root, key) || overrides_have(overrides, n, key);
}

static bool is_replaced(const ty_doc *root, const ty_recipe_override *overrides, int n, const char *key)
{
    bool optimizer = is_users(root, overrides, n, "optimizer");
    for (size_t i = 0; optimizer && i < sizeof of_optimizer / sizeof *of_optimizer; i++)
        if (strcmp(of_optimizer[i], key) == 0)
            return true;
    return ty_doc_find(root, key) != NULL;
}

/* The text of a key that holds one value, or NULL. */
static const char *text_of(const ty_doc *root, const char *key, const ty_recipe_override *overrides, int n)
{
    const ty_doc *d = ty_doc_find(root, key);
    const char *text = d && (d->kind == TY_DOC_STRING || d->kind == TY_DOC_INT) ? d->raw : NULL;
    for (int i = 0; i < n; i++)
        if (strcmp(overrides[i].key, key) == 0)
            text = overrides[i].text;
    return text;
}

/* The file that a key names, as it will be opened, or NULL. */
static const char *path_of(const ty_doc *root, const char *key, const ty_recipe_override *overrides, int n,
                           const char *folder, ty_arena *a)
{
    const char *path = text_of(root, key, overrides, n);
    return !path || path[0] == '/' ? path : ty_arena_printf(a, "%s/%s", folder, path);
}

static void add_sections(ty_arena *a, ty_doc *root, const ty_doc *base, const ty_recipe_override *overrides, int n)
{
    ty_doc *items = TY_NEW_ARRAY(a, ty_doc, root->n_items + base->n_items + 1);
    uint32_t count = root->kind == TY_DOC_MAP ? root->n_items : 0;
    if (count)
        memcpy(items, root->items, count * sizeof *items);
    for (uint32_t i = 0; i < base->n_items; i++)
        if (!is_replaced(root, overrides, n, base->items[i].key))
            items[count++] = base->items[i];
    root->kind = TY_DOC_MAP;
    root->items = items;
    root->n_items = count;
}

int ty_recipe_add_base(ty_arena *a, ty_doc *root, const char *folder, const ty_recipe_override *overrides, int n,
                       const ty_doc_source **source, ty_error *err)
{
    *source = NULL;
    const char *text, *path = path_of(root, "model", overrides, n, folder, a);
    ty_doc *base;
    if (!path)
        return 0;
    const char *labels = text_of(root, "labels", overrides, n);
    const ty_model_choice choice = {.layers = path_of(root, "layers", overrides, n, folder, a),
                                    .architecture = text_of(root, "architecture", overrides, n),
                                    .labels = labels ? strtoll(labels, NULL, 10) : 0};
    if (ty_model_recipe_of(path, &choice, a, &text, err) < 0)
        return -1;
    if (!text)
        return 0;
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
    if (ty_yaml_parse(a, name, text, strlen(text), NULL, NULL, NULL, &base, err) < 0 ||
        ty_doc_expect(base, TY_DOC_MAP, err) < 0)
        return ty_error_wrap(err, "the training settings of %s", name);
    ((ty_doc_source *)base->source)->is_override = true; /* the file has no such lines */
    add_sections(a, root, base, overrides, n);
    *source = base->source;
    return 0;
}

int ty_recipe_check_own_step(recipe_reader *rd, const ty_doc *root)
{
    static const char *const keys[] = {"optimizer", "schedule", "warmup", "clip", "ema", "lr_scale"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys && rd->r->choice.train_signature; i++) {
        const ty_doc *given = ty_doc_find(root, keys[i]);
        if (given)
            return ty_doc_error(given, rd->err, TY_E_CONFIG,
                                "leave it out, or leave train_signature out and let Trainyard make the step",
                                "\"%s\": the model's own training step is compiled as it is", keys[i]);
    }
    return 0;
}
