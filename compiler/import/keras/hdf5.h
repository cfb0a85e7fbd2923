/* hdf5.h - libhdf5, opened in the child that uses it (base/jail.h), with every door shut that leads out of the file.
 *
 * Functions are called as h5.H5Fopen(...). A file is always memory: the core driver on an image that lies where the
 * caller says, which it reads and changes in place.
 */
#ifndef TY_COMPILER_IMPORT_KERAS_HDF5_H
#define TY_COMPILER_IMPORT_KERAS_HDF5_H

#include "base/error.h"
#include "base/tensor.h"

#include <hdf5/serial/hdf5.h>
#include <stddef.h>
#include <stdint.h>

/* The header's constants call functions of the library, which we are not linked with. */
#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

typedef struct hdf5 {
#define HDF5(name) __typeof__(&name) name;
#include "compiler/import/keras/hdf5.def"
#undef HDF5
    /* identifiers that the library makes when it starts: pointers to them */
    hid_t *float_le, *double_le, *int8_le, *c_string, *file_access, *dataset_create, *link_create;
} hdf5;

extern hdf5 h5; /* filled by hdf5_open */

/* Opens the library: before the walls of the jail go up, and before anything of the file is looked at. */
int hdf5_open(ty_error *err);

/* An error with the library's own last words behind ours. Returns -1. */
int hdf5_fail(ty_error *err, const char *fmt, ...) TY_PRINTF(2, 3);

/* A file that lies in memory, to be read in place. -1 on failure. */
hid_t hdf5_open_image(const uint8_t *bytes, size_t n, ty_error *err);
/* The same to be changed in place, growing up to max_bytes; n 0: a new one. */
hid_t hdf5_change_image(uint8_t *bytes, size_t n, size_t max_bytes, ty_error *err);
/* How long the image is after it was closed, by its superblock. */
int hdf5_image_bytes(const uint8_t *bytes, size_t max_bytes, size_t *n, ty_error *err);

/* Our type of an HDF5 one, TY_N_DTYPES if it is none of ours; bf16 is an opaque type for HDF5, which only the attribute
 * "dtype" tells: see hdf5_list.h. */
ty_dtype hdf5_dtype(hid_t type);
/* A new HDF5 type, as h5py writes it. */
hid_t hdf5_type_of(ty_dtype dtype);

#endif
