/* keras_file.c - opens what Keras saves: archives, legacy HDF5 files, configuration and weights apart. HDF5 is read in
 * a jail (hdf5_list.h); the rest is zip and JSON, which are read here. */
#include "base/json.h"
#include "compiler/import/keras/keras_store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JSON_BYTES ((size_t)64 << 20)

static const ty_doc_limits json_limits = {.max_bytes = MAX_JSON_BYTES, .max_depth = TY_DOC_MAX_DEPTH};
static const ty_zip_limits zip_limits = {
    .max_entries = 10000, .max_total_bytes = (uint64_t)1 << 40, .free_bytes = (uint64_t)256 << 20, .max_ratio = 100};

typedef struct opening {
    keras_file *f;
    keras_store *s;
    ty_arena *arena;
    ty_error *err;
} opening;

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static int parse(opening *o, const char *name, const char *text, size_t n, const ty_doc **out)
{
    ty_doc *doc;
    if (ty_json_parse(o->arena, name, text, n, &json_limits, &doc, o->err) < 0)
        return -1;
    *out = doc;
    return doc->kind == TY_DOC_MAP ? 0 : ty_doc_expect(doc, TY_DOC_MAP, o->err);
}

/* "config.json" of what Keras 3 writes: the model, with how it was compiled. */
static int take_config(opening *o, const char *name, const char *text, size_t n)
{
    if (parse(o, name, text, n, &o->f->config) < 0)
        return -1;
    const ty_doc *compile = ty_doc_find(o->f->config, "compile_config");
    o->f->compile = compile && compile->kind == TY_DOC_MAP && compile->n_items > 0 ? compile : NULL;
    if (!ty_doc_find(o->f->config, "class_name"))
        return ty_doc_error(o->f->config, o->err, TY_E_MODEL_FILE, NULL,
                            "expected the configuration of a Keras model, with \"class_name\" and \"config\"");
    return 0;
}

static int take_metadata(opening *o, const char *name, const char *text, size_t n)
{
    if (parse(o, name, text, n, &o->f->metadata) < 0)
        return -1;
    const ty_doc *version = ty_doc_find(o->f->metadata, "keras_version");
    return version ? ty_doc_string(version, &o->f->version, o->err) : 0;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Lists the HDF5 file of s->h5; `name` is for messages. */
static int list_weights(opening *o, const char *name)
{
    keras_store *s = o->s;
    if (hdf5_list(name, s->h5, s->h5_bytes, o->arena, &s->listing, o->err) < 0)
        return -1;
    bool has_list =
        hdf5_find_attribute(&s->listing, "", "layer_names") || hdf5_find_attribute(&s->listing, "", "layer_names0");
    s->weights_root = hdf5_find_attribute(&s->listing, "", "model_config") ? "model_weights/" : has_list ? "" : NULL;
    o->f->has_weights = true;
    return 0;
}

static int take_tensors(opening *o, const char *name)
{
    return keras_take_tensors(o->f, o->arena, o->err) < 0 ? ty_error_wrap(o->err, "%s", name) : 0;
}

/* ---- NAME.keras -------------------------------------------------------------------------------------------------- */

/* A member that must be there. */
static int read_member(opening *o, const char *name, size_t max_bytes, const uint8_t **bytes, size_t *n,
                       uint8_t **owned)
{
    ty_zip_entry e;
    bool found;
    if (ty_zip_find(&o->s->zip, name, &e, &found, o->err) < 0)
        return -1;
    if (!found) {
        ty_error_set(o->err, TY_E_MODEL_FILE, "expected a member \"%s\" in the archive, found none", name);
        return ty_error_help(o->err, strcmp(name, KERAS_WEIGHTS_NAME) == 0
                                         ? "save the model with weights_format \"h5\", and not in pieces"
                                         : "a .keras file is what model.save(\"NAME.keras\") of Keras 3 writes");
    }
    *n = (size_t)e.plain_bytes;
    return ty_zip_read(&o->s->zip, &e, max_bytes, bytes, owned, o->err);
}

static int read_json_member(opening *o, const char *name, int (*take)(opening *, const char *, const char *, size_t))
{
    const uint8_t *bytes;
    uint8_t *owned;
    size_t n;
    if (read_member(o, name, MAX_JSON_BYTES, &bytes, &n, &owned) < 0)
        return -1;
    int rc = take(o, ty_arena_printf(o->arena, "%s: %s", o->f->path, name), (const char *)bytes, n);
    free(owned); /* trees have a copy of their text */
    return rc;
}

static int open_zip(opening *o)
{
    keras_store *s = o->s;
    const char *name = ty_arena_printf(o->arena, "%s: %s", o->f->path, KERAS_WEIGHTS_NAME);
    o->f->form = KERAS_ZIP;
    if (ty_zip_open(s->main.bytes, s->main.n_bytes, &s->zip, o->err) < 0 ||
        ty_zip_check(&s->zip, &zip_limits, o->err) < 0 || read_json_member(o, KERAS_METADATA_NAME, take_metadata) < 0 ||
        read_json_member(o, KERAS_CONFIG_NAME, take_config) < 0 ||
        read_member(o, KERAS_WEIGHTS_NAME, SIZE_MAX, &s->h5, &s->h5_bytes, &s->inflated) < 0)
        return -1;
    return list_weights(o, name) < 0 ? -1 : take_tensors(o, name);
}

/* ---- configuration and weights apart ----------------------------------------------------------------------------- */

static int map_beside(opening *o, const char *path, ty_file_view *view)
{
    return ty_file_map(path, view, o->err);
}

/* The first of the names that is there; NULL: none is. */
static const char *find_file(opening *o, const char *const *names, const char *folder, const char *stem)
{
    for (; *names; names++) {
        const char *path = (*names)[0] == '.' ? ty_arena_printf(o->arena, "%s%s", stem, *names)
                                              : ty_arena_printf(o->arena, "%s%s", folder, *names);
        if (ty_file_size(path) >= 0)
            return path;
    }
    return NULL;
}

/* "a/b/" of "a/b/c", "" of "c". */
static const char *folder_of(opening *o, const char *path)
{
    const char *slash = strrchr(path, '/');
    return ty_arena_strndup(o->arena, path, slash ? (size_t)(slash - path) + 1 : 0);
}

/* The path without the longest of the suffixes that it has. */
static const char *stem_of(opening *o, const char *path)
{
    static const char *const suffixes[] = {".weights.h5", ".json", ".h5", ".hdf5", NULL};
    size_t n = strlen(path);
    for (const char *const *s = suffixes; *s; s++)
        if (n > strlen(*s) && strcmp(path + n - strlen(*s), *s) == 0)
            return ty_arena_strndup(o->arena, path, n - strlen(*s));
    return path;
}

static int open_config_at(opening *o, const char *path)
{
    if (map_beside(o, path, &o->s->config) < 0)
        return -1;
    return take_config(o, path, (const char *)o->s->config.bytes, o->s->config.n_bytes);
}

/* path NULL: there are none. */
static int open_weights_at(opening *o, const char *path)
{
    if (!path)
        return 0;
    if (map_beside(o, path, &o->s->weights) < 0)
        return -1;
    o->s->h5 = o->s->weights.bytes;
    o->s->h5_bytes = o->s->weights.n_bytes;
    if (list_weights(o, path) < 0)
        return -1;
    return take_tensors(o, path);
}

static int open_metadata_at(opening *o, const char *path)
{
    if (ty_file_size(path) < 0)
        return 0;
    if (map_beside(o, path, &o->s->metadata) < 0)
        return -1;
    return take_metadata(o, path, (const char *)o->s->metadata.bytes, o->s->metadata.n_bytes);
}

static int open_folder(opening *o)
{
    const char *path = o->f->path;
    const char *weights = ty_arena_printf(o->arena, "%s/" KERAS_WEIGHTS_NAME, path);
    o->f->form = KERAS_FOLDER;
    if (open_metadata_at(o, ty_arena_printf(o->arena, "%s/" KERAS_METADATA_NAME, path)) < 0 ||
        open_config_at(o, ty_arena_printf(o->arena, "%s/" KERAS_CONFIG_NAME, path)) < 0)
        return -1;
    return open_weights_at(o, ty_file_size(weights) >= 0 ? weights : NULL);
}

static int open_config(opening *o)
{
    static const char *const weights[] = {".weights.h5", KERAS_WEIGHTS_NAME, ".h5", NULL};
    const char *folder = folder_of(o, o->f->path);
    o->f->form = KERAS_CONFIG;
    if (take_config(o, o->f->path, (const char *)o->s->main.bytes, o->s->main.n_bytes) < 0)
        return -1;
    return open_weights_at(o, find_file(o, weights, folder, stem_of(o, o->f->path)));
}

/* ---- NAME.h5 ----------------------------------------------------------------------------------------------------- */

static int take_attribute(opening *o, const char *name, const ty_doc **out)
{
    const hdf5_attribute *a = hdf5_find_attribute(&o->s->listing, "", name);
    if (!a)
        return 0;
    if (a->n_items != 1)
        return ty_error_set(o->err, TY_E_MODEL_FILE, "attribute \"%s\": expected one text, found %d", name, a->n_items);
    const char *shown = ty_arena_printf(o->arena, "%s: attribute %s", o->f->path, name);
    return parse(o, shown, a->item[0], strlen(a->item[0]), out);
}

static int open_weights_alone(opening *o)
{
    static const char *const configs[] = {".json", KERAS_CONFIG_NAME, "model.json", NULL};
    const char *folder = folder_of(o, o->f->path);
    const char *config = find_file(o, configs, folder, stem_of(o, o->f->path));
    o->f->form = KERAS_CONFIG;
    if (config)
        return open_config_at(o, config) < 0 ? -1 : take_tensors(o, o->f->path);
    ty_error_set(o->err, TY_E_MODEL_FILE,
                 "%s: these are weights alone, expected an attribute \"model_config\", or %s.json, config.json or "
                 "model.json beside the file",
                 o->f->path, stem_of(o, o->f->path));
    return ty_error_help(o->err,
                         "write model.to_json() there, or save the whole model with model.save(\"NAME.keras\")");
}

static int open_h5(opening *o)
{
    o->f->form = KERAS_LEGACY;
    o->s->h5 = o->s->main.bytes;
    o->s->h5_bytes = o->s->main.n_bytes;
    if (list_weights(o, o->f->path) < 0 || take_attribute(o, "model_config", &o->f->config) < 0 ||
        take_attribute(o, "training_config", &o->f->compile) < 0)
        return -1;
    return o->f->config ? take_tensors(o, o->f->path) : open_weights_alone(o);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static bool begins(const uint8_t *bytes, size_t n, const char *with, size_t n_with)
{
    return n >= n_with && memcmp(bytes, with, n_with) == 0;
}

static bool is_zip(const uint8_t *bytes, size_t n)
{
    return begins(bytes, n, "PK\3\4", 4) || begins(bytes, n, "PK\5\6", 4);
}

static bool is_hdf5(const uint8_t *bytes, size_t n)
{
    return begins(bytes, n, "\x89HDF\r\n\x1a\n", 8);
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

bool keras_file_matches(const char *path, const uint8_t *head, size_t n)
{
    char config[PATH_MAX];
    if (ty_file_is_folder(path))
        return snprintf(config, sizeof config, "%s/" KERAS_CONFIG_NAME, path) < (int)sizeof config &&
               ty_file_size(config) >= 0;
    return is_zip(head, n) || is_hdf5(head, n) || has_suffix(path, ".json") || has_suffix(path, ".keras") ||
           has_suffix(path, ".h5") || has_suffix(path, ".hdf5");
}

static int open_by_content(opening *o)
{
    const char *path = o->f->path;
    if (ty_file_is_folder(path))
        return open_folder(o);
    if (ty_file_map(path, &o->s->main, o->err) < 0)
        return -1;
    const uint8_t *bytes = o->s->main.bytes;
    size_t n = o->s->main.n_bytes;
    if (is_zip(bytes, n))
        return open_zip(o);
    if (is_hdf5(bytes, n))
        return open_h5(o);
    if (has_suffix(path, ".json"))
        return open_config(o);
    ty_error_set(o->err, TY_E_MODEL_FILE, "%s: expected a zip archive or an HDF5 file, found neither in its %zu bytes",
                 path, n);
    return ty_error_help(o->err, "the file is damaged, or was only downloaded in part");
}

int keras_file_open(const char *path, ty_arena *arena, keras_file *out, ty_error *err)
{
    ty_error own = {0};
    *out = (keras_file){.path = ty_arena_strdup(arena, path), .version = ""};
    opening o = {.f = out, .s = TY_NEW(arena, keras_store), .arena = arena, .err = &own};
    out->impl = o.s;
    if (open_by_content(&o) == 0)
        return 0;
    keras_file_close(out);
    if (own.code == TY_E_DATA) /* what zip and JSON call data is the model here */
        own.code = TY_E_MODEL_FILE;
    if (err)
        *err = own;
    return strstr(own.message, path) || strstr(own.place, path) ? -1 : ty_error_wrap(err, "%s", path);
}

int keras_file_member(const keras_file *f, const char *name, ty_arena *arena, const char **text, ty_error *err)
{
    const keras_store *s = f->impl;
    ty_zip_entry e;
    bool found = false;
    const uint8_t *bytes;
    uint8_t *owned = NULL;
    *text = NULL;
    if (!s || f->form != KERAS_ZIP)
        return 0;
    if (ty_zip_find(&s->zip, name, &e, &found, err) < 0)
        return -1;
    if (!found)
        return 0;
    if (ty_zip_read(&s->zip, &e, MAX_JSON_BYTES, &bytes, &owned, err) < 0)
        return -1;
    *text = ty_arena_strndup(arena, (const char *)bytes, (size_t)e.plain_bytes);
    free(owned);
    return 0;
}

void keras_file_close(keras_file *f)
{
    keras_store *s = f->impl;
    if (!s)
        return;
    hdf5_listing_release(&s->listing);
    ty_file_view *const views[] = {&s->main, &s->weights, &s->config, &s->metadata};
    for (int i = 0; i < 4; i++)
        if (views[i]->bytes)
            ty_file_unmap(views[i]);
    free(s->inflated);
    *f = (keras_file){0};
}
