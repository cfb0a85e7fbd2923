/* hdf5_change.c - see hdf5_change.h. All but hdf5_change_file runs in the child, where nothing is freed on failure. */
#include "compiler/import/keras/hdf5_change.h"

#include "compiler/import/keras/hdf5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ATTRIBUTE_BYTES ((size_t)64512) /* Keras' HDF5_OBJECT_HEADER_LIMIT */
#define BYTES_OF_NAMES      ((size_t)64 << 10)
#define BYTES_OF_A_SET      ((size_t)16 << 10) /* headers and groups that a new data set may need */

/* Every group above the path must be there for HDF5 to be asked. */
static bool exists(hid_t file, const char *path)
{
    char part[1100];
    for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (h5.H5Lexists(file, part, H5P_DEFAULT) <= 0)
            return false;
    }
    return h5.H5Lexists(file, path, H5P_DEFAULT) > 0;
}

static hid_t intermediate_groups(void)
{
    hid_t list = h5.H5Pcreate(*h5.link_create);
    h5.H5Pset_create_intermediate_group(list, 1);
    return list;
}

/* ---- data sets --------------------------------------------------------------------------------------------------- */

/* Whether the new numbers fit where the old ones are: in shape, and as numbers that HDF5 converts. */
static bool fits(hid_t set, const ty_type *t)
{
    hid_t type = h5.H5Dget_type(set), space = h5.H5Dget_space(set);
    hsize_t dim[H5S_MAX_RANK] = {0};
    bool opaque = h5.H5Tget_class(type) == H5T_OPAQUE && h5.H5Tget_size(type) == 2;
    ty_dtype has = opaque ? TY_BF16 : hdf5_dtype(type), gets = (ty_dtype)t->dtype;
    bool same = (has == gets || (has != TY_BF16 && has < TY_N_DTYPES && ty_dtype_is_float(has) && gets != TY_BF16 &&
                                 ty_dtype_is_float(gets))) &&
                h5.H5Sget_simple_extent_ndims(space) == t->rank &&
                (t->rank == 0 || h5.H5Sget_simple_extent_dims(space, dim, NULL) >= 0);
    for (int i = 0; same && i < t->rank; i++)
        same = (int64_t)dim[i] == t->dim[i];
    h5.H5Tclose(type);
    h5.H5Sclose(space);
    return same;
}

static int write_set(hid_t set, const hdf5_value *v, ty_error *err)
{
    hid_t file_type = h5.H5Dget_type(set);
    /* What is opaque has no other form; all else is converted from ours. */
    hid_t type = h5.H5Tget_class(file_type) == H5T_OPAQUE || h5.H5Tget_class(file_type) == H5T_ENUM
                     ? file_type
                     : hdf5_type_of((ty_dtype)v->type.dtype);
    if (ty_type_bytes(&v->type) > 0 && h5.H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v->data) < 0)
        return hdf5_fail(err, "data set \"/%s\" cannot be written", v->path);
    return 0;
}

static int put_text(hid_t object, const char *name, const char *value, ty_error *err);

static int create_set(hid_t file, const hdf5_value *v, ty_error *err)
{
    hsize_t dim[TY_MAX_RANK];
    for (int i = 0; i < v->type.rank; i++)
        dim[i] = (hsize_t)v->type.dim[i];
    hid_t space = v->type.rank ? h5.H5Screate_simple(v->type.rank, dim, NULL) : h5.H5Screate(H5S_SCALAR);
    hid_t type = hdf5_type_of((ty_dtype)v->type.dtype);
    hid_t set = h5.H5Dcreate2(file, v->path, type, space, intermediate_groups(), H5P_DEFAULT, H5P_DEFAULT);
    if (set < 0)
        return hdf5_fail(err, "data set \"/%s\" cannot be made", v->path);
    if (v->type.dtype == TY_BF16 && put_text(set, "dtype", "bfloat16", err) < 0)
        return -1;
    return write_set(set, v, err) < 0 || h5.H5Dclose(set) < 0 ? -1 : 0;
}

static int put_value(hid_t file, const hdf5_value *v, ty_error *err)
{
    if (!exists(file, v->path))
        return create_set(file, v, err);
    hid_t set = h5.H5Dopen2(file, v->path, H5P_DEFAULT);
    if (set < 0)
        return hdf5_fail(err, "data set \"/%s\" cannot be opened", v->path);
    bool same = fits(set, &v->type);
    if (same && write_set(set, v, err) < 0)
        return -1;
    if (h5.H5Dclose(set) < 0)
        return hdf5_fail(err, "data set \"/%s\" cannot be closed", v->path);
    if (same)
        return 0;
    return h5.H5Ldelete(file, v->path, H5P_DEFAULT) < 0 ? hdf5_fail(err, "data set \"/%s\" cannot be removed", v->path)
                                                        : create_set(file, v, err);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static int replace_attribute(hid_t object, const char *name, hid_t type, hid_t space, const void *value, ty_error *err)
{
    if (h5.H5Aexists(object, name) > 0 && h5.H5Adelete(object, name) < 0)
        return hdf5_fail(err, "attribute \"%s\" cannot be removed", name);
    hid_t attribute = h5.H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0 || (value && h5.H5Awrite(attribute, type, value) < 0) || h5.H5Aclose(attribute) < 0)
        return hdf5_fail(err, "attribute \"%s\" cannot be written", name);
    return 0;
}

/* As h5py writes a str: of any length, UTF-8. */
static int put_text(hid_t object, const char *name, const char *value, ty_error *err)
{
    hid_t type = h5.H5Tcopy(*h5.c_string);
    h5.H5Tset_size(type, H5T_VARIABLE);
    h5.H5Tset_cset(type, H5T_CSET_UTF8);
    return replace_attribute(object, name, type, h5.H5Screate(H5S_SCALAR), &value, err);
}

/* As h5py writes an array of bytes: of the length of the longest, padded with NULs. */
static int put_part(hid_t object, const char *name, const char *const *item, size_t n, size_t longest, ty_error *err)
{
    hsize_t dim = n;
    char *all = calloc(n + 1, longest);
    for (size_t i = 0; i < n; i++)
        memcpy(all + i * longest, item[i], strlen(item[i]));
    hid_t type = h5.H5Tcopy(*h5.c_string);
    h5.H5Tset_size(type, longest);
    h5.H5Tset_strpad(type, H5T_STR_NULLPAD);
    return replace_attribute(object, name, type, h5.H5Screate_simple(1, &dim, NULL), n ? all : NULL, err);
}

static int remove_parts(hid_t object, const char *name, ty_error *err)
{
    char part[80];
    if (h5.H5Aexists(object, name) > 0 && h5.H5Adelete(object, name) < 0)
        return hdf5_fail(err, "attribute \"%s\" cannot be removed", name);
    for (int i = 0; snprintf(part, sizeof part, "%s%d", name, i), h5.H5Aexists(object, part) > 0; i++)
        if (h5.H5Adelete(object, part) < 0)
            return hdf5_fail(err, "attribute \"%s\" cannot be removed", part);
    return 0;
}

static int put_list(hid_t object, const hdf5_text *t, ty_error *err)
{
    size_t longest = 1, n = (size_t)t->n_items;
    for (size_t i = 0; i < n; i++)
        longest = strlen(t->item[i]) > longest ? strlen(t->item[i]) : longest;
    size_t fit = MAX_ATTRIBUTE_BYTES / longest;
    if (remove_parts(object, t->name, err) < 0)
        return -1;
    if (n <= fit)
        return put_part(object, t->name, t->item, n, longest, err);
    for (size_t at = 0, part = 0; at < n; at += fit, part++) {
        char name[80];
        snprintf(name, sizeof name, "%s%zu", t->name, part);
        if (put_part(object, name, t->item + at, n - at < fit ? n - at : fit, longest, err) < 0)
            return -1;
    }
    return 0;
}

static int put_attribute(hid_t file, const hdf5_text *t, ty_error *err)
{
    hid_t group = exists(file, t->path) ? h5.H5Gopen2(file, t->path, H5P_DEFAULT)
                                        : h5.H5Gcreate2(file, t->path, intermediate_groups(), H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0)
        return hdf5_fail(err, "group \"/%s\" cannot be opened", t->path);
    int rc = t->is_list ? put_list(group, t, err) : put_text(group, t->name, t->item[0], err);
    return rc < 0 || h5.H5Gclose(group) < 0 ? ty_error_wrap(err, "group \"/%s\"", t->path) : 0;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int change_all(const hdf5_change *c, hid_t file, ty_error *err)
{
    for (int i = 0; i < c->n_removed; i++)
        if (exists(file, c->removed[i]) && h5.H5Ldelete(file, c->removed[i], H5P_DEFAULT) < 0)
            return hdf5_fail(err, "\"/%s\" cannot be removed", c->removed[i]);
    for (int i = 0; i < c->n_values; i++)
        if (put_value(file, &c->value[i], err) < 0)
            return -1;
    for (int i = 0; i < c->n_texts; i++)
        if (put_attribute(file, &c->text[i], err) < 0)
            return -1;
    return 0;
}

static int change_in_jail(void *ctx, ty_jail_result *out, ty_error *err)
{
    const hdf5_change *c = ctx;
    if (c->n > out->max_bytes)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a file of %zu bytes", c->n);
    if (c->n)
        memcpy(out->bytes, c->bytes, c->n);
    hid_t file = hdf5_change_image(out->bytes, c->n, out->max_bytes, err);
    if (file < 0 || change_all(c, file, err) < 0)
        return -1;
    if (h5.H5Fclose(file) < 0)
        return hdf5_fail(err, "the file cannot be finished");
    return hdf5_image_bytes(out->bytes, out->max_bytes, &out->n_bytes, err);
}

static int open_library(void *ctx, ty_error *err)
{
    (void)ctx;
    return hdf5_open(err);
}

int hdf5_change_file(const hdf5_change *c, ty_arena *arena, ty_jail_result *out, ty_error *err)
{
    size_t n = c->n;
    for (int i = 0; i < c->n_values; i++)
        n += ty_type_bytes(&c->value[i].type) + BYTES_OF_A_SET;
    n += (size_t)c->n_texts * BYTES_OF_NAMES + ((size_t)1 << 20);
    ty_jail j = {.reader = "the HDF5 library",
                 .task = ty_arena_printf(arena, "writing %s", c->name),
                 .prepare = open_library,
                 .run = change_in_jail,
                 .ctx = (void *)(uintptr_t)c,
                 .max_bytes = n,
                 .cpu_seconds = 2 + (int)(n >> 23),
                 .wall_seconds = 300 + (int)(n >> 22)};
    if (ty_jail_run(&j, out, err) == 0)
        return 0;
    return err && strstr(err->message, c->name) ? -1 : ty_error_wrap(err, "%s", c->name);
}
