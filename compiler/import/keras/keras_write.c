/* keras_write.c - see keras_write.h. */
#include "compiler/import/keras/keras_write.h"

#include "base/json.h"
#include "compiler/import/keras/hdf5_change.h"
#include "compiler/import/keras/keras_optimizer.h"
#include "compiler/import/keras/keras_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST_VERSION "3.10.0" /* whose layout is the one that we write, for what has no metadata */

typedef struct writing {
    const keras_file *f;
    const keras_store *s;
    ty_arena *arena;
    hdf5_value *value; /* room for all */
    int n_values;
    hdf5_text *text;
    int n_texts;
    const char **removed;
    int n_removed;
} writing;

static bool is_legacy(const keras_store *s)
{
    return s->weights_root != NULL;
}

const char *keras_file_suffix(const keras_file *f)
{
    return is_legacy(f->impl) ? ".h5" : ".keras";
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* "layers/a/vars/0" where the file says "_layer_checkpoint_dependencies/a/vars/0". */
static const char *path_in_file(const writing *w, const char *path)
{
    static const char old[] = "_layer_checkpoint_dependencies";
    if (!w->s->has_old_groups)
        return path;
    const char *out = "";
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, "/");
        bool layers = n == 6 && memcmp(at, "layers", 6) == 0;
        out = ty_arena_printf(w->arena, "%s%s%.*s", out, out[0] ? "/" : "", layers ? (int)strlen(old) : (int)n,
                              layers ? old : at);
        at += n + (at[n] == '/');
    }
    return out;
}

/* The group of a new variable says whose it is, as Keras' own do. */
static void name_group(writing *w, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (!name || !slash || hdf5_find_set(&w->s->listing, path))
        return;
    const char *group = ty_arena_strndup(w->arena, path, (size_t)(slash - path));
    if (w->n_texts && strcmp(w->text[w->n_texts - 1].path, group) == 0)
        return;
    const char **item = TY_NEW(w->arena, const char *);
    *item = name;
    w->text[w->n_texts++] = (hdf5_text){.path = group, .name = "name", .item = item, .n_items = 1};
}

/* HDF5 makes numbers what the file has, but it knows nothing of bfloat16. */
static hdf5_value as_in_file(const writing *w, const char *path, const keras_value *v)
{
    const hdf5_set *s = hdf5_find_set(&w->s->listing, path);
    hdf5_value out = {path, v->type, v->data};
    if (!s || s->type.dtype != TY_BF16 || v->type.dtype != TY_F32)
        return out;
    int64_t n = ty_type_elems(&v->type);
    uint16_t *rounded = TY_NEW_ARRAY(w->arena, uint16_t, n);
    for (int64_t i = 0; i < n; i++)
        rounded[i] = ty_f32_to_bf16(((const float *)v->data)[i]);
    out.type.dtype = TY_BF16;
    out.data = rounded;
    return out;
}

static void take_values(writing *w, const keras_value *values, int n)
{
    for (int i = 0; i < n; i++) {
        const char *path = path_in_file(w, values[i].path);
        w->value[w->n_values++] = as_in_file(w, path, &values[i]);
        if (!is_legacy(w->s))
            name_group(w, path, values[i].name);
    }
}

/* ---- the optimizer's --------------------------------------------------------------------------------------------- */

/* Numbered, and those of the file that go beyond are gone. */
static void take_numbered(writing *w, const keras_variable *v, int n)
{
    for (int i = 0; i < n; i++)
        w->value[w->n_values++] = (hdf5_value){ty_arena_printf(w->arena, "optimizer/vars/%d", i), v[i].type, v[i].data};
    for (int i = n;; i++) {
        const char *path = ty_arena_printf(w->arena, "optimizer/vars/%d", i);
        if (!hdf5_find_set(&w->s->listing, path))
            break;
        w->removed[w->n_removed++] = path;
    }
}

/* Whether the names of the file stand for variables of these shapes, so that they can stay. */
static bool has_same_shapes(const writing *w, const char **name, int n_names, const keras_variable *v, int n)
{
    if (n_names != n)
        return false;
    for (int i = 0; i < n; i++) {
        const hdf5_set *s = hdf5_find_set(&w->s->listing, ty_arena_printf(w->arena, "optimizer_weights/%s", name[i]));
        if (!s || !ty_type_same(&s->type, &v[i].type))
            return false;
    }
    return true;
}

/* Up to Keras 2.10 the order was another, and what read such a file would take one variable for another. */
static bool has_this_order(const char *version)
{
    int major = 0, minor = 0;
    sscanf(version, "%d.%d", &major, &minor);
    return major >= 3 || (major == 2 && minor >= 11);
}

static void take_listed(writing *w, const keras_variable *v, int n)
{
    static const char group[] = "optimizer_weights";
    const char **name;
    int n_names = keras_names(&w->s->listing, group, "weight_names", w->arena, &name);
    bool keeps = has_same_shapes(w, name, n_names, v, n);
    if (!keeps)
        w->removed[w->n_removed++] = group;
    if (!keeps && !has_this_order(w->f->version))
        return; /* whoever goes on from here starts the optimizer afresh */
    const char **names = TY_NEW_ARRAY(w->arena, const char *, n);
    for (int i = 0; i < n; i++) {
        names[i] = keeps ? name[i] : v[i].name;
        w->value[w->n_values++] =
            (hdf5_value){ty_arena_printf(w->arena, "%s/%s", group, names[i]), v[i].type, v[i].data};
    }
    if (!keeps)
        w->text[w->n_texts++] =
            (hdf5_text){.path = group, .name = "weight_names", .item = names, .n_items = n, .is_list = true};
}

/* ---- archives ---------------------------------------------------------------------------------------------------- */

/* Every member as it is, in the order in which they are, but for the weights. */
static int pass_members(const writing *w, ty_zip_writer *z, const ty_jail_result *h5, ty_error *err)
{
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    int more;
    while ((more = ty_zip_next(&w->s->zip, &walk, &e, err)) > 0) {
        bool is_weights =
            e.name_bytes == strlen(KERAS_WEIGHTS_NAME) && memcmp(e.name, KERAS_WEIGHTS_NAME, e.name_bytes) == 0;
        if ((is_weights ? ty_zip_writer_add(z, KERAS_WEIGHTS_NAME, e.time, h5->bytes, h5->n_bytes, err)
                        : ty_zip_writer_copy(z, &w->s->zip, &e, err)) < 0)
            return -1;
    }
    return more;
}

/* The text of a tree that was read from a file. */
static int add_text(ty_zip_writer *z, const char *name, const ty_doc *d, ty_error *err)
{
    return ty_zip_writer_add(z, name, TY_ZIP_NO_TIME, d->source->text, d->source->len, err);
}

static int make_members(const writing *w, ty_zip_writer *z, const ty_jail_result *h5, ty_error *err)
{
    static const char metadata[] =
        "{\"keras_version\": \"" OLDEST_VERSION "\", \"date_saved\": \"1980-01-01@00:00:00\"}";
    if ((w->f->metadata
             ? add_text(z, KERAS_METADATA_NAME, w->f->metadata, err)
             : ty_zip_writer_add(z, KERAS_METADATA_NAME, TY_ZIP_NO_TIME, metadata, strlen(metadata), err)) < 0 ||
        add_text(z, KERAS_CONFIG_NAME, w->f->config, err) < 0)
        return -1;
    return ty_zip_writer_add(z, KERAS_WEIGHTS_NAME, TY_ZIP_NO_TIME, h5->bytes, h5->n_bytes, err);
}

static int write_archive(const writing *w, const ty_jail_result *h5, ty_zip_sink *sink, void *ctx, ty_error *err)
{
    ty_zip_writer z;
    ty_zip_writer_init(&z, sink, ctx);
    int rc = w->f->form == KERAS_ZIP ? pass_members(w, &z, h5, err) : make_members(w, &z, h5, err);
    rc = rc < 0 ? rc : ty_zip_writer_finish(&z, err);
    ty_zip_writer_fini(&z);
    return rc;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int write_all(writing *w, ty_zip_sink *sink, void *ctx, ty_error *err)
{
    ty_jail_result h5;
    hdf5_change change = {.name = ty_arena_printf(w->arena, "%s: the weights", w->f->path),
                          .bytes = w->s->h5,
                          .n = w->s->h5_bytes,
                          .removed = w->removed,
                          .n_removed = w->n_removed,
                          .value = w->value,
                          .n_values = w->n_values,
                          .text = w->text,
                          .n_texts = w->n_texts};
    if (hdf5_change_file(&change, w->arena, &h5, err) < 0)
        return -1;
    int rc = is_legacy(w->s) ? sink(ctx, h5.bytes, h5.n_bytes, err) : write_archive(w, &h5, sink, ctx, err);
    ty_jail_release(&h5);
    return rc;
}

int keras_file_write(const keras_file *f, const keras_value *values, int n_values, const keras_trained *trained,
                     ty_zip_sink *sink, void *ctx, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    keras_variable *variable;
    int n = keras_optimizer_variables(f, trained, &arena, &variable);
    writing w = {.f = f, .s = f->impl, .arena = &arena};
    w.value = TY_NEW_ARRAY(&arena, hdf5_value, n_values + n);
    w.text = TY_NEW_ARRAY(&arena, hdf5_text, n_values + 1);
    w.removed = TY_NEW_ARRAY(&arena, const char *, w.s->listing.n_sets + 1);
    take_values(&w, values, n_values);
    if (n > 0 && is_legacy(w.s))
        take_listed(&w, variable, n);
    else if (n > 0)
        take_numbered(&w, variable, n);
    int rc = write_all(&w, sink, ctx, err);
    ty_arena_fini(&arena);
    return rc;
}
