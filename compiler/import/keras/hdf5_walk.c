/* hdf5_walk.c - the child's side of hdf5_list.h: walks the file, refuses what does not belong, writes records. Nothing
 * here is freed on failure: the process ends. */
#include "compiler/import/keras/hdf5.h"
#include "compiler/import/keras/hdf5_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_ALIGNMENT 64

typedef struct walk {
    const hdf5_image *image;
    ty_jail_result *out;
    size_t at;      /* next byte of records */
    size_t data_at; /* next byte of data */
    uint64_t claimed, max_claimed;
    int n_objects, depth;
    size_t path_bytes;
    char path[HDF5_MAX_NAME + 1]; /* of the object that is looked at */
    ty_error *err;
} walk;

/* ---- records ----------------------------------------------------------------------------------------------------- */

static int put(walk *w, const void *bytes, size_t n)
{
    if (n > HDF5_MAX_RECORDS - w->at)
        return ty_error_set(w->err, TY_E_LIMIT, "names and texts of more than %zu bytes", HDF5_MAX_RECORDS);
    memcpy(w->out->bytes + w->at, bytes, n);
    w->at += n;
    return 0;
}

static int put_int(walk *w, uint64_t v, size_t n_bytes)
{
    return put(w, &v, n_bytes); /* little-endian, as all machines of ours */
}

static int put_text(walk *w, const char *s, size_t n)
{
    return put_int(w, n, 4) < 0 ? -1 : put(w, s, n);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static bool is_wanted(const char *name)
{
    static const char *const whole[] = {
        "model_config", "training_config", "keras_version", "backend", "name", "dtype", NULL};
    static const char *const begun[] = {"layer_names", "weight_names", NULL}; /* long lists: weight_names0, 1 ... */
    for (const char *const *s = whole; *s; s++)
        if (strcmp(name, *s) == 0)
            return true;
    for (const char *const *s = begun; *s; s++)
        if (strncmp(name, *s, strlen(*s)) == 0)
            return true;
    return false;
}

static int fail_attribute(walk *w, const char *name, const char *why)
{
    return hdf5_fail(w->err, "attribute \"%s\" of \"/%s\": %s", name, w->path, why);
}

/* Number of items; -1: too many. */
static int64_t count_items(hid_t attribute)
{
    hid_t space = h5.H5Aget_space(attribute);
    H5S_class_t kind = h5.H5Sget_simple_extent_type(space);
    hsize_t dim[H5S_MAX_RANK];
    if (kind == H5S_NULL || kind == H5S_SCALAR)
        return kind == H5S_SCALAR;
    if (kind != H5S_SIMPLE || h5.H5Sget_simple_extent_ndims(space) != 1 ||
        h5.H5Sget_simple_extent_dims(space, dim, NULL) < 0 || dim[0] > HDF5_MAX_ITEMS)
        return -1;
    h5.H5Sclose(space);
    return (int64_t)dim[0];
}

static int put_items(walk *w, const char *name, hid_t attribute, hid_t type, size_t n)
{
    bool variable = h5.H5Tis_variable_str(type) > 0;
    size_t size = variable ? sizeof(char *) : h5.H5Tget_size(type);
    if (size == 0 || size > HDF5_MAX_RECORDS / n)
        return fail_attribute(w, name, "texts that are too long");
    char *buf = calloc(n, size);
    if (!buf || h5.H5Aread(attribute, type, buf) < 0)
        return fail_attribute(w, name, "cannot be read");
    for (size_t i = 0; i < n; i++) {
        const char *s = variable ? ((char **)(void *)buf)[i] : buf + i * size;
        size_t len = s == NULL ? 0 : variable ? strlen(s) : strnlen(s, size);
        if (put_text(w, s ? s : "", len) < 0)
            return -1;
    }
    free(buf); /* what the library has put into it is left: it is small, and the end is near */
    return 0;
}

static herr_t visit_attribute(hid_t object, const char *name, const H5A_info_t *info, void *ctx)
{
    walk *w = ctx;
    (void)info;
    if (!is_wanted(name))
        return 0;
    hid_t attribute = h5.H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = attribute < 0 ? -1 : h5.H5Aget_type(attribute);
    if (type < 0)
        return fail_attribute(w, name, "cannot be opened");
    int64_t n = count_items(attribute);
    if (n < 0)
        return fail_attribute(w, name, "expected a text or a list of at most 100000");
    if (n > 0 && h5.H5Tget_class(type) != H5T_STRING)
        return strcmp(name, "name") == 0 || strcmp(name, "dtype") == 0 ? 0 : fail_attribute(w, name, "expected text");
    if (put_int(w, HDF5_RECORD_ATTRIBUTE, 1) < 0 || put_text(w, w->path, w->path_bytes) < 0 ||
        put_text(w, name, strlen(name)) < 0 || put_int(w, (uint64_t)n, 4) < 0 ||
        (n > 0 && put_items(w, name, attribute, type, (size_t)n) < 0))
        return -1;
    h5.H5Tclose(type);
    h5.H5Aclose(attribute);
    return 0;
}

static int visit_attributes(walk *w, hid_t object)
{
    hsize_t at = 0;
    if (h5.H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, visit_attribute, w) >= 0)
        return 0;
    return w->err->code ? -1 : hdf5_fail(w->err, "the attributes of \"/%s\" cannot be read", w->path);
}

/* ---- data sets --------------------------------------------------------------------------------------------------- */

static int fail_set(walk *w, const char *fmt, ...) TY_PRINTF(2, 3);
static int fail_set(walk *w, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return hdf5_fail(w->err, "data set \"/%s\": %s", w->path, text);
}

static int check_storage(walk *w, hid_t create, H5D_layout_t *layout)
{
    *layout = h5.H5Pget_layout(create);
    if (*layout == H5D_VIRTUAL)
        return fail_set(w, "is virtual, made of other files' data");
    if (*layout != H5D_COMPACT && *layout != H5D_CONTIGUOUS && *layout != H5D_CHUNKED)
        return fail_set(w, "has a layout that is not known");
    if (h5.H5Pget_external_count(create) != 0)
        return fail_set(w, "keeps its data in another file");
    int n = *layout == H5D_CHUNKED ? h5.H5Pget_nfilters(create) : 0;
    for (int i = 0; i < n; i++) {
        unsigned flags;
        size_t n_values = 0;
        H5Z_filter_t id = h5.H5Pget_filter2(create, (unsigned)i, &flags, &n_values, NULL, 0, NULL, NULL);
        if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_FLETCHER32)
            return fail_set(w, "is packed with filter %d, expected deflate, shuffle or fletcher32", (int)id);
    }
    return n < 0 ? fail_set(w, "has filters that cannot be read") : 0;
}

/* The shape into *type; its dtype is set already. *n_bytes 0 where the type is none of ours. */
static int read_shape(walk *w, hid_t set, ty_type *type, size_t *n_bytes)
{
    hid_t space = h5.H5Dget_space(set);
    H5S_class_t kind = h5.H5Sget_simple_extent_type(space);
    int rank = kind == H5S_SIMPLE ? h5.H5Sget_simple_extent_ndims(space) : 0;
    hsize_t dim[H5S_MAX_RANK] = {0};
    if ((kind != H5S_SIMPLE && kind != H5S_SCALAR) || rank < 0)
        return fail_set(w, "has no shape");
    if (rank > TY_MAX_RANK)
        return fail_set(w, "has %d dimensions, at most %d are read", rank, TY_MAX_RANK);
    if (rank > 0 && h5.H5Sget_simple_extent_dims(space, dim, NULL) < 0)
        return fail_set(w, "has a shape that cannot be read");
    type->rank = (uint8_t)rank;
    for (int i = 0; i < rank; i++)
        type->dim[i] = dim[i] > INT64_MAX ? -1 : (int64_t)dim[i];
    size_t elem = type->dtype < TY_N_DTYPES ? ty_dtype_bytes((ty_dtype)type->dtype) : 1;
    int64_t elems = ty_dims_elems_checked(rank, type->dim, elem);
    if (elems < 0)
        return fail_set(w, "has a shape beyond all sizes");
    *n_bytes = type->dtype < TY_N_DTYPES ? (size_t)elems * elem : 0;
    h5.H5Sclose(space);
    return 0;
}

/* Nobody may ask for more memory than the bytes that are there could come to. */
static int check_claim(walk *w, hid_t set, size_t n_bytes)
{
    uint64_t stored = h5.H5Dget_storage_size(set);
    if (n_bytes > DATA_ALIGNMENT && n_bytes / HDF5_MAX_DEFLATE > stored)
        return fail_set(w, "claims %zu bytes, %llu are stored", n_bytes, (unsigned long long)stored);
    if (n_bytes > w->max_claimed - w->claimed)
        return fail_set(w, "claims %zu bytes, which brings all to more than %llu, the limit for a file of %zu", n_bytes,
                        (unsigned long long)w->max_claimed, w->image->n);
    w->claimed += n_bytes;
    return 0;
}

/* ml_dtypes' bfloat16 is two bytes without a meaning to HDF5; Keras says in an attribute what they are. */
static bool is_bfloat16(hid_t set, hid_t type)
{
    char text[16] = "", *variable = NULL;
    if (h5.H5Tget_class(type) != H5T_OPAQUE || h5.H5Tget_size(type) != 2 || h5.H5Aexists(set, "dtype") <= 0)
        return false;
    hid_t attribute = h5.H5Aopen(set, "dtype", H5P_DEFAULT);
    hid_t text_type = h5.H5Aget_type(attribute);
    if (count_items(attribute) != 1 || h5.H5Tget_class(text_type) != H5T_STRING)
        return false;
    if (h5.H5Tis_variable_str(text_type) > 0)
        return h5.H5Aread(attribute, text_type, &variable) >= 0 && variable && strcmp(variable, "bfloat16") == 0;
    return h5.H5Tget_size(text_type) < sizeof text && h5.H5Aread(attribute, text_type, text) >= 0 &&
           strcmp(text, "bfloat16") == 0;
}

/* Where the file has the numbers as we want them, or HADDR_UNDEF. */
static haddr_t find_in_place(const walk *w, hid_t set, hid_t type, H5D_layout_t layout, size_t elem, size_t n_bytes)
{
    H5T_class_t class = h5.H5Tget_class(type);
    bool ordered = (class == H5T_FLOAT || class == H5T_INTEGER) && h5.H5Tget_order(type) != H5T_ORDER_LE;
    haddr_t at = layout == H5D_CONTIGUOUS && (elem == 1 || !ordered) ? h5.H5Dget_offset(set) : HADDR_UNDEF;
    if (at == HADDR_UNDEF || at > w->image->n || n_bytes > w->image->n - at)
        return HADDR_UNDEF;
    return (uintptr_t)(w->image->bytes + at) % elem ? HADDR_UNDEF : at;
}

static int read_data(walk *w, hid_t set, hid_t type, size_t n_bytes)
{
    size_t at = (w->data_at + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
    hid_t wanted = h5.H5Tcopy(type);
    H5T_class_t class = h5.H5Tget_class(type);
    if ((class == H5T_FLOAT || class == H5T_INTEGER) && h5.H5Tset_order(wanted, H5T_ORDER_LE) < 0)
        return fail_set(w, "has numbers that cannot be turned");
    if (at > w->out->max_bytes || n_bytes > w->out->max_bytes - at)
        return fail_set(w, "no memory for its %zu bytes", n_bytes);
    if (n_bytes > 0 && h5.H5Dread(set, wanted, H5S_ALL, H5S_ALL, H5P_DEFAULT, w->out->bytes + at) < 0)
        return fail_set(w, "cannot be read");
    h5.H5Tclose(wanted);
    w->data_at = at + n_bytes;
    return put_int(w, HDF5_IN_RESULT, 1) < 0 ? -1 : put_int(w, at, 8);
}

static int visit_set(walk *w, hid_t set)
{
    hid_t type = h5.H5Dget_type(set), create = h5.H5Dget_create_plist(set);
    H5D_layout_t layout = H5D_LAYOUT_ERROR;
    size_t n_bytes = 0;
    if (type < 0 || create < 0)
        return fail_set(w, "cannot be opened");
    ty_type t = {.dtype = (uint8_t)(is_bfloat16(set, type) ? TY_BF16 : hdf5_dtype(type))};
    if (check_storage(w, create, &layout) < 0 || read_shape(w, set, &t, &n_bytes) < 0 ||
        check_claim(w, set, n_bytes) < 0)
        return -1;
    if (put_int(w, HDF5_RECORD_SET, 1) < 0 || put_text(w, w->path, w->path_bytes) < 0 || put_int(w, t.dtype, 1) < 0 ||
        put_int(w, t.rank, 1) < 0 || put(w, t.dim, t.rank * sizeof t.dim[0]) < 0)
        return -1;
    h5.H5Pclose(create);
    if (t.dtype >= TY_N_DTYPES)
        return put_int(w, HDF5_NOWHERE, 1) < 0 ? -1 : put_int(w, 0, 8);
    haddr_t in_place = find_in_place(w, set, type, layout, ty_dtype_bytes((ty_dtype)t.dtype), n_bytes);
    int rc = in_place == HADDR_UNDEF           ? read_data(w, set, type, n_bytes)
             : put_int(w, HDF5_IN_FILE, 1) < 0 ? -1
                                               : put_int(w, in_place, 8);
    h5.H5Tclose(type);
    return rc;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int visit_group(walk *w, hid_t group);

static int visit_object(walk *w, hid_t object)
{
    H5I_type_t kind = h5.H5Iget_type(object);
    if (kind == H5I_GROUP)
        return visit_group(w, object);
    if (kind != H5I_DATASET)
        return 0; /* a named type, which nobody asks for */
    return visit_attributes(w, object) < 0 ? -1 : visit_set(w, object);
}

static int push_name(walk *w, const char *name)
{
    size_t n = strlen(name), slash = w->path_bytes > 0;
    if (n + slash > HDF5_MAX_NAME - w->path_bytes)
        return ty_error_set(w->err, TY_E_LIMIT, "below \"/%s\": a path of more than %d bytes", w->path, HDF5_MAX_NAME);
    if (slash)
        w->path[w->path_bytes++] = '/';
    memcpy(w->path + w->path_bytes, name, n + 1);
    w->path_bytes += n;
    return 0;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *ctx)
{
    walk *w = ctx;
    size_t before = w->path_bytes;
    if (push_name(w, name) < 0)
        return -1;
    if (link->type != H5L_TYPE_HARD)
        return ty_error_set(w->err, TY_E_MODEL_FILE, "\"/%s\" is %s, expected a group or a data set of this file",
                            w->path,
                            link->type == H5L_TYPE_SOFT       ? "a soft link"
                            : link->type == H5L_TYPE_EXTERNAL ? "a link into another file"
                                                              : "a link of a user's own kind");
    if (++w->n_objects > HDF5_MAX_OBJECTS)
        return ty_error_set(w->err, TY_E_LIMIT, "more than %d groups and data sets", HDF5_MAX_OBJECTS);
    hid_t object = h5.H5Oopen(group, name, H5P_DEFAULT);
    if (object < 0)
        return hdf5_fail(w->err, "\"/%s\" cannot be opened", w->path);
    if (visit_object(w, object) < 0)
        return -1;
    h5.H5Oclose(object);
    w->path[w->path_bytes = before] = 0;
    return 0;
}

static int visit_group(walk *w, hid_t group)
{
    hsize_t at = 0;
    if (w->depth == HDF5_MAX_DEPTH)
        return ty_error_set(w->err, TY_E_LIMIT, "\"/%s\": groups more than %d deep", w->path, HDF5_MAX_DEPTH);
    if (visit_attributes(w, group) < 0)
        return -1;
    w->depth++;
    if (h5.H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, visit_link, w) < 0)
        return w->err->code ? -1 : hdf5_fail(w->err, "the group \"/%s\" cannot be read", w->path);
    w->depth--;
    return 0;
}

int hdf5_walk(void *ctx, ty_jail_result *out, ty_error *err)
{
    const hdf5_image *image = ctx;
    uint64_t limit = (uint64_t)image->n * HDF5_MAX_EXPANSION;
    walk *w = calloc(1, sizeof *w);
    if (!w || out->max_bytes < HDF5_MAX_RECORDS)
        return ty_error_set(err, TY_E_LIMIT, "no memory to list an HDF5 file");
    *w = (walk){.image = image, .out = out, .data_at = HDF5_MAX_RECORDS, .err = err};
    w->max_claimed = limit > HDF5_FREE_BYTES ? limit : HDF5_FREE_BYTES;
    hid_t file = hdf5_open_image(image->bytes, image->n, err);
    hid_t root = file < 0 ? -1 : h5.H5Gopen2(file, "/", H5P_DEFAULT);
    if (root < 0)
        return err->code ? -1 : hdf5_fail(err, "there is no root group");
    if (visit_group(w, root) < 0)
        return -1;
    out->n_bytes = w->data_at;
    return 0;
}
