/* hdf5_list.c - the parent's side: runs the walk in a jail and believes nothing of what comes back before it is
 * checked. */
#define _GNU_SOURCE
#include "compiler/import/keras/hdf5_list.h"

#include "compiler/import/keras/hdf5.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *p;
    size_t left;
    bool failed; /* sticky */
    ty_arena *arena;
} reader;

static uint64_t take_int(reader *r, size_t n_bytes)
{
    uint64_t v = 0;
    if (n_bytes > r->left) {
        r->failed = true;
        return 0;
    }
    memcpy(&v, r->p, n_bytes);
    r->p += n_bytes;
    r->left -= n_bytes;
    return v;
}

/* A copy, without a NUL inside. */
static const char *take_text(reader *r)
{
    size_t n = (size_t)take_int(r, 4);
    if (n > r->left || memchr(r->p, 0, n)) {
        r->failed = true;
        return "";
    }
    const char *s = ty_arena_strndup(r->arena, (const char *)r->p, n);
    r->p += n;
    r->left -= n;
    return s;
}

static void take_attribute(reader *r, hdf5_attribute *a)
{
    a->path = take_text(r);
    a->name = take_text(r);
    uint64_t n = take_int(r, 4);
    if (n > r->left / 4)
        r->failed = true;
    if (r->failed)
        return;
    const char **item = TY_NEW_ARRAY(r->arena, const char *, n);
    for (uint64_t i = 0; i < n && !r->failed; i++)
        item[i] = take_text(r);
    a->item = item;
    a->n_items = (int)n;
}

typedef struct memory {
    const uint8_t *bytes;
    size_t n;
} memory;

static void take_set(reader *r, const memory *file, const memory *result, hdf5_set *s)
{
    s->path = take_text(r);
    s->type.dtype = (uint8_t)take_int(r, 1);
    s->type.rank = (uint8_t)take_int(r, 1);
    if (s->type.rank > TY_MAX_RANK || s->type.dtype > TY_N_DTYPES)
        r->failed = true;
    for (int i = 0; i < s->type.rank && !r->failed; i++)
        s->type.dim[i] = (int64_t)take_int(r, 8);
    uint64_t place = take_int(r, 1);
    if ((s->type.dtype == TY_N_DTYPES) != (place == HDF5_NOWHERE) || place > HDF5_NOWHERE)
        r->failed = true;
    uint64_t at = take_int(r, 8);
    if (r->failed || place == HDF5_NOWHERE)
        return;
    size_t elem = ty_dtype_bytes((ty_dtype)s->type.dtype);
    int64_t elems = ty_dims_elems_checked(s->type.rank, s->type.dim, elem);
    const memory *m = place == HDF5_IN_FILE ? file : result;
    if (elems < 0 || at > m->n || (size_t)elems * elem > m->n - at || (uintptr_t)(m->bytes + at) % elem)
        r->failed = true;
    else
        s->data = m->bytes + at;
}

static int compare_attributes(const void *x, const void *y)
{
    const hdf5_attribute *a = x, *b = y;
    int order = strcmp(a->path, b->path);
    return order ? order : strcmp(a->name, b->name);
}

static int compare_sets(const void *x, const void *y)
{
    return strcmp(((const hdf5_set *)x)->path, ((const hdf5_set *)y)->path);
}

/* Records end with a zero, since the memory was zero at first. Without arrays they are only counted. */
static bool take_records(const memory *file, const memory *result, ty_arena *arena, int *n_attributes, int *n_sets,
                         hdf5_attribute *attribute, hdf5_set *set)
{
    reader r = {.p = result->bytes, .left = HDF5_MAX_RECORDS, .arena = arena};
    uint64_t kind = 0;
    *n_attributes = *n_sets = 0;
    while (!r.failed && r.left > 0 && (kind = take_int(&r, 1)) != 0) {
        hdf5_attribute a = {0};
        hdf5_set s = {0};
        if (kind == HDF5_RECORD_ATTRIBUTE && *n_attributes < HDF5_MAX_ITEMS) {
            take_attribute(&r, attribute ? &attribute[*n_attributes] : &a);
            ++*n_attributes;
        } else if (kind == HDF5_RECORD_SET && *n_sets < HDF5_MAX_OBJECTS) {
            take_set(&r, file, result, set ? &set[*n_sets] : &s);
            ++*n_sets;
        } else
            r.failed = true;
    }
    return !r.failed;
}

static bool take_listing(const memory *file, const memory *result, ty_arena *arena, hdf5_listing *out)
{
    ty_arena scratch;
    ty_arena_init(&scratch);
    bool sound = take_records(file, result, &scratch, &out->n_attributes, &out->n_sets, NULL, NULL);
    ty_arena_fini(&scratch);
    if (!sound)
        return false;
    hdf5_attribute *attribute = TY_NEW_ARRAY(arena, hdf5_attribute, out->n_attributes);
    hdf5_set *set = TY_NEW_ARRAY(arena, hdf5_set, out->n_sets);
    take_records(file, result, arena, &out->n_attributes, &out->n_sets, attribute, set);
    qsort(attribute, (size_t)out->n_attributes, sizeof *attribute, compare_attributes);
    qsort(set, (size_t)out->n_sets, sizeof *set, compare_sets);
    out->attribute = attribute;
    out->set = set;
    return true;
}

/* ---- the face ---------------------------------------------------------------------------------------------------- */

static int open_library(void *ctx, ty_error *err)
{
    (void)ctx;
    return hdf5_open(err);
}

int hdf5_list(const char *name, const uint8_t *bytes, size_t n, ty_arena *arena, hdf5_listing *out, ty_error *err)
{
    static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    *out = (hdf5_listing){0};
    if (n < 64 || memcmp(bytes, signature, sizeof signature) != 0) {
        ty_error_set(err, TY_E_MODEL_FILE, "%s: expected the signature of HDF5 in front of %zu bytes", name, n);
        return ty_error_help(err, "the file is damaged, or not what its name says");
    }
    hdf5_image image = {bytes, n};
    uint64_t limit = (uint64_t)n * HDF5_MAX_EXPANSION;
    ty_jail j = {.reader = "the HDF5 library",
                 .task = ty_arena_printf(arena, "reading %s", name),
                 .prepare = open_library,
                 .run = hdf5_walk,
                 .ctx = &image,
                 .max_bytes = HDF5_MAX_RECORDS + (size_t)(limit > HDF5_FREE_BYTES ? limit : HDF5_FREE_BYTES) +
                              (size_t)HDF5_MAX_OBJECTS * 64,
                 .cpu_seconds =
                     2 + (int)(n >> 23), /* opening takes milliseconds, deflate a twentieth of a second for 8 MB */
                 .wall_seconds = 300 + (int)(n >> 22)};
    if (ty_jail_run(&j, &out->memory, err) < 0) {
        if (err && err->code == TY_E_DATA)
            err->code = TY_E_MODEL_FILE;
        return err && strstr(err->message, name) ? -1 : ty_error_wrap(err, "%s", name);
    }
    if (out->memory.n_bytes >= HDF5_MAX_RECORDS &&
        take_listing(&(memory){bytes, n}, &(memory){out->memory.bytes, out->memory.n_bytes}, arena, out))
        return 0;
    hdf5_listing_release(out);
    return ty_error_set(err, TY_E_MODEL_FILE, "%s: the list of what is in it contradicts itself", name);
}

void hdf5_listing_release(hdf5_listing *l)
{
    ty_jail_release(&l->memory);
    *l = (hdf5_listing){0};
}

const hdf5_attribute *hdf5_find_attribute(const hdf5_listing *l, const char *path, const char *name)
{
    hdf5_attribute key = {.path = path, .name = name};
    return l->n_attributes ? bsearch(&key, l->attribute, (size_t)l->n_attributes, sizeof key, compare_attributes)
                           : NULL;
}

const hdf5_set *hdf5_find_set(const hdf5_listing *l, const char *path)
{
    hdf5_set key = {.path = path};
    return l->n_sets ? bsearch(&key, l->set, (size_t)l->n_sets, sizeof key, compare_sets) : NULL;
}

/* ---- the library itself ------------------------------------------------------------------------------------------ */

enum { LOOK_BYTES = 4096 };

static int tell_library(void *ctx, ty_jail_result *out, ty_error *err)
{
    unsigned major = 0, minor = 0, release = 0;
    Dl_info info = {0};
    const void *address;
    (void)ctx, (void)err;
    h5.H5get_libversion(&major, &minor, &release);
    memcpy(&address, &h5.H5open, sizeof address);
    dladdr(address, &info);
    int n = snprintf((char *)out->bytes, LOOK_BYTES, "%u.%u.%u %s", major, minor, release,
                     info.dli_fname ? info.dli_fname : "");
    out->n_bytes = n < LOOK_BYTES ? (size_t)n : LOOK_BYTES - 1;
    return 0;
}

int hdf5_look(ty_arena *arena, const char **version, const char **where, ty_error *err)
{
    ty_jail_result r;
    ty_jail j = {.reader = "the HDF5 library",
                 .task = "starting",
                 .prepare = open_library,
                 .run = tell_library,
                 .max_bytes = LOOK_BYTES};
    if (ty_jail_run(&j, &r, err) < 0)
        return -1;
    const char *text = ty_arena_strndup(arena, (const char *)r.bytes, r.n_bytes), *blank = strchr(text, ' ');
    ty_jail_release(&r);
    *version = ty_arena_strndup(arena, text, blank ? (size_t)(blank - text) : strlen(text));
    *where = blank ? blank + 1 : "";
    return 0;
}
