/* keras_tensors.c - the data sets of a file in Keras' order. Files of Keras 3 number the variables of each object in a
 * group "vars"; legacy files list layers and weights in attributes. */
#include "compiler/import/keras/keras_store.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLD_GROUP "_layer_checkpoint_dependencies"

static int is_optimizer(const char *path)
{
    return strncmp(path, "optimizer", strlen("optimizer")) == 0;
}

/* Numbers by value, so that "10" follows "9"; the optimizer's last. */
static int compare_paths(const char *a, const char *b)
{
    int order = is_optimizer(a) - is_optimizer(b);
    for (; order == 0 && (*a || *b);) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            unsigned long long x = strtoull(a, (char **)&a, 10), y = strtoull(b, (char **)&b, 10);
            order = (x > y) - (x < y);
        } else {
            order = (unsigned char)*a - (unsigned char)*b;
            a += *a != 0, b += *b != 0;
        }
    }
    return order;
}

static int compare_tensors(const void *x, const void *y)
{
    const keras_tensor *a = x, *b = y;
    int order = compare_paths(a->path, b->path);
    return order ? order : strcmp(a->path, b->path);
}

static int fail_type(const hdf5_set *s, ty_error *err)
{
    return ty_error_set(
        err, TY_E_MODEL_FILE,
        "data set \"%s\": expected numbers (float16 to float64, bfloat16, integers, bool), found others", s->path);
}

/* ---- Keras 3 ----------------------------------------------------------------------------------------------------- */

/* "_layer_checkpoint_dependencies/dense/vars/0" as "layers/dense/vars/0", at every level. */
static const char *modern_path(ty_arena *arena, const char *path, bool *is_old)
{
    char *out = ty_arena_strdup(arena, path), *at = out;
    while ((at = strstr(at, OLD_GROUP))) {
        memcpy(at, "layers", 6);
        memmove(at + 6, at + strlen(OLD_GROUP), strlen(at + strlen(OLD_GROUP)) + 1);
        *is_old = true;
    }
    return out;
}

static bool is_variable(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t before = slash ? (size_t)(slash - path) : 0;
    return slash && before >= 4 && memcmp(slash - 4, "vars", 4) == 0 && (before == 4 || slash[-5] == '/');
}

static int take_numbered(keras_file *f, keras_store *s, ty_arena *arena, ty_error *err)
{
    keras_tensor *t = TY_NEW_ARRAY(arena, keras_tensor, s->listing.n_sets);
    int n = 0;
    for (int i = 0; i < s->listing.n_sets; i++) {
        const hdf5_set *set = &s->listing.set[i];
        if (!is_variable(set->path))
            continue;
        if (!set->data)
            return fail_type(set, err);
        t[n++] = (keras_tensor){modern_path(arena, set->path, &s->has_old_groups), NULL, set->type, set->data};
    }
    qsort(t, (size_t)n, sizeof *t, compare_tensors);
    f->tensor = t;
    f->n_tensors = n;
    return 0;
}

/* ---- legacy ------------------------------------------------------------------------------------------------------ */

int keras_names(const hdf5_listing *l, const char *path, const char *name, ty_arena *arena, const char ***out)
{
    const hdf5_attribute *whole = hdf5_find_attribute(l, path, name), *part;
    int n = 0, parts = 0;
    char numbered[64];
    if (whole) {
        *out = TY_NEW_ARRAY(arena, const char *, whole->n_items);
        memcpy(*out, whole->item, (size_t)whole->n_items * sizeof **out);
        return whole->n_items;
    }
    for (; snprintf(numbered, sizeof numbered, "%s%d", name, parts),
           (part = hdf5_find_attribute(l, path, numbered)) != NULL;
         parts++)
        n += part->n_items;
    *out = TY_NEW_ARRAY(arena, const char *, n);
    for (int i = 0, at = 0; i < parts; i++) {
        snprintf(numbered, sizeof numbered, "%s%d", name, i);
        part = hdf5_find_attribute(l, path, numbered);
        memcpy(*out + at, part->item, (size_t)part->n_items * sizeof **out);
        at += part->n_items;
    }
    return parts ? n : -1;
}

typedef struct taker {
    keras_store *s;
    ty_arena *arena;
    keras_tensor *t;
    int n, max;
    ty_error *err;
} taker;

/* The data sets that a group lists, in that order. A group without a list has no weights. */
static int take_listed(taker *k, const char *group, const char *layer)
{
    const char **name;
    int n = keras_names(&k->s->listing, group, "weight_names", k->arena, &name);
    for (int i = 0; i < n; i++) {
        const char *path = ty_arena_printf(k->arena, "%s/%s", group, name[i]);
        const hdf5_set *set = hdf5_find_set(&k->s->listing, path);
        if (!set)
            return ty_error_set(k->err, TY_E_MODEL_FILE,
                                "group \"%s\" lists the weight \"%s\", but there is no data set \"%s\"", group, name[i],
                                path);
        if (!set->data)
            return fail_type(set, k->err);
        if (k->n == k->max)
            return ty_error_set(k->err, TY_E_MODEL_FILE, "group \"%s\": weights are listed more than once", group);
        k->t[k->n++] = (keras_tensor){path, layer, set->type, set->data};
    }
    return 0;
}

static int take_legacy(keras_file *f, keras_store *s, ty_arena *arena, ty_error *err)
{
    taker k = {.s = s, .arena = arena, .max = s->listing.n_sets, .err = err};
    const char **layer;
    char root[32];
    k.t = TY_NEW_ARRAY(arena, keras_tensor, k.max);
    snprintf(root, sizeof root, "%.*s", s->weights_root[0] ? (int)strlen(s->weights_root) - 1 : 0, s->weights_root);
    int n = keras_names(&s->listing, root, "layer_names", arena, &layer);
    if (n < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "group \"/%s\" has no attribute \"layer_names\"", root);
    for (int i = 0; i < n; i++)
        if (take_listed(&k, ty_arena_printf(arena, "%s%s", s->weights_root, layer[i]), layer[i]) < 0)
            return -1;
    static const char top[] = "top_level_model_weights";
    if (take_listed(&k, ty_arena_printf(arena, "%s%s", s->weights_root, top), top) < 0 ||
        take_listed(&k, "optimizer_weights", NULL) < 0)
        return -1;
    f->tensor = k.t;
    f->n_tensors = k.n;
    return 0;
}

static const char *find_version(const keras_store *s)
{
    static const char *const places[] = {"", "model_weights"};
    for (int i = 0; i < 2; i++) {
        const hdf5_attribute *a = hdf5_find_attribute(&s->listing, places[i], "keras_version");
        if (a && a->n_items == 1)
            return a->item[0];
    }
    return "";
}

int keras_take_tensors(keras_file *f, ty_arena *arena, ty_error *err)
{
    keras_store *s = f->impl;
    if (!f->version[0])
        f->version = find_version(s);
    return s->weights_root ? take_legacy(f, s, arena, err) : take_numbered(f, s, arena, err);
}
