/* hdf5_list.h - what is in an HDF5 file: walked in a jail, told as records, which are checked here.
 *
 * Everything below the root that hard links lead to: data sets of numbers and those attributes of text that Keras has.
 * Refused by name: soft, external and user-defined links, external storage, virtual data sets, filters other than
 * deflate, shuffle and fletcher32, and sizes beyond what the file can hold. Data sets of other things (text, compounds)
 * are listed without data. What lies in the file as it lies in memory is not copied.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_HDF5_LIST_H
#define TY_COMPILER_IMPORT_KERAS_HDF5_LIST_H

#include "base/arena.h"
#include "base/jail.h"
#include "base/tensor.h"

#define HDF5_MAX_OBJECTS   100000 /* groups and data sets */
#define HDF5_MAX_DEPTH     32
#define HDF5_MAX_NAME      1024 /* bytes of a path */
#define HDF5_MAX_ITEMS     100000
#define HDF5_MAX_RECORDS   ((size_t)64 << 20) /* all names and texts */
#define HDF5_FREE_BYTES    ((size_t)256 << 20)
#define HDF5_MAX_EXPANSION 100  /* beyond HDF5_FREE_BYTES, bytes of data sets for each of the file */
#define HDF5_MAX_DEFLATE   1032 /* of a single data set: no deflate stream grows more */

typedef struct hdf5_attribute {
    const char *path; /* of its object: "model_weights/dense"; "" is the root */
    const char *name; /* "weight_names" */
    const char *const *item;
    int n_items; /* 1 for a single text; a list may be empty */
} hdf5_attribute;

typedef struct hdf5_set {
    const char *path; /* "layers/dense/vars/0" */
    ty_type type;     /* dtype TY_N_DTYPES: none of ours, and no data */
    const void *data; /* aligned for its type */
} hdf5_set;

typedef struct hdf5_listing {
    const hdf5_attribute *attribute; /* sorted by path, then by name */
    int n_attributes;
    const hdf5_set *set; /* sorted by path as bytes */
    int n_sets;
    ty_jail_result memory; /* private */
} hdf5_listing;

/* `name` is for messages: "model.keras: model.weights.h5". The file's bytes must stay where they are as long as the
 * listing is used; on failure *out needs no release. */
int hdf5_list(const char *name, const uint8_t *bytes, size_t n, ty_arena *arena, hdf5_listing *out, ty_error *err);
void hdf5_listing_release(hdf5_listing *l); /* for {0} too */
/* NULL if there is none. */
const hdf5_attribute *hdf5_find_attribute(const hdf5_listing *l, const char *path, const char *name);
const hdf5_set *hdf5_find_set(const hdf5_listing *l, const char *path);

/* The library that would be used: its version, and its file. Opened in a jail, too. */
int hdf5_look(ty_arena *arena, const char **version, const char **where, ty_error *err);

/* ---- the child's side (hdf5_walk.c) ---- */

typedef struct hdf5_image {
    const uint8_t *bytes;
    size_t n;
} hdf5_image;

/* Records, one behind the other in the first HDF5_MAX_RECORDS bytes of the result; data behind them. A text is its
 * length in 4 bytes, and its bytes. */
typedef enum hdf5_record {
    HDF5_RECORD_ATTRIBUTE = 1, /* path, name, 4 bytes n, n texts */
    HDF5_RECORD_SET /* path, dtype and rank in a byte each, dims in 8 bytes each, place in a byte, offset in 8 */
} hdf5_record;

typedef enum hdf5_place { HDF5_IN_FILE, HDF5_IN_RESULT, HDF5_NOWHERE } hdf5_place;

int hdf5_walk(void *image, ty_jail_result *out, ty_error *err);

#endif
