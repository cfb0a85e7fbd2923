/* hdf5.c - see hdf5.h. */
#include "compiler/import/keras/hdf5.h"

#include "base/dl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_STEP ((size_t)1 << 16) /* by which an image grows */

hdf5 h5;

#define NAME_OF(name) #name
/* Each minor version of the library has its own number, and its headers fit no other. */
#if H5_VERS_MINOR == 10
static const char *const hdf5_names[] = {"libhdf5_serial.so.103", "libhdf5.so.103", NULL};
#elif H5_VERS_MINOR == 12
static const char *const hdf5_names[] = {"libhdf5_serial.so.200", "libhdf5.so.200", NULL};
#else
static const char *const hdf5_names[] = {"libhdf5_serial.so.310", "libhdf5.so.310", NULL};
#endif

static const ty_dl_symbol hdf5_symbols[] = {
#define HDF5(name) {NAME_OF(name), offsetof(hdf5, name), false},
#include "compiler/import/keras/hdf5.def"
#undef HDF5
    {"H5T_IEEE_F32LE_g", offsetof(hdf5, float_le), false},
    {"H5T_IEEE_F64LE_g", offsetof(hdf5, double_le), false},
    {"H5T_STD_I8LE_g", offsetof(hdf5, int8_le), false},
    {"H5T_C_S1_g", offsetof(hdf5, c_string), false},
    {"H5P_CLS_FILE_ACCESS_ID_g", offsetof(hdf5, file_access), false},
    {"H5P_CLS_DATASET_CREATE_ID_g", offsetof(hdf5, dataset_create), false},
    {"H5P_CLS_LINK_CREATE_ID_g", offsetof(hdf5, link_create), false},
};

int hdf5_open(ty_error *err)
{
    void *handle;
    unsigned major = 0, minor = 0, release = 0;
    setenv("HDF5_PLUGIN_PRELOAD", "::", 1); /* no plug-ins, whatever a folder of them holds */
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    if (ty_dl_open(hdf5_names, hdf5_symbols, sizeof hdf5_symbols / sizeof hdf5_symbols[0], &h5, &handle, err) < 0)
        return ty_error_help(err, "models of Keras need HDF5: on Debian, apt-get install libhdf5-103-1");
    h5.H5dont_atexit();
    if (h5.H5get_libversion(&major, &minor, &release) < 0 || major != H5_VERS_MAJOR || minor != H5_VERS_MINOR)
        return ty_error_set(err, TY_E_LIBRARY, "%s is version %u.%u.%u, expected %d.%d", hdf5_names[0], major, minor,
                            release, H5_VERS_MAJOR, H5_VERS_MINOR);
    if (h5.H5open() < 0 || h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0 || h5.H5PLset_loading_state(0) < 0)
        return ty_error_set(err, TY_E_LIBRARY, "%s does not start", hdf5_names[0]);
    return 0;
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* The innermost entry of the library's stack is the first one upward. */
static herr_t take_words(unsigned n, const H5E_error2_t *e, void *ctx)
{
    if (n == 0 && e->desc)
        snprintf(ctx, 160, "%s", e->desc);
    return 0;
}

int hdf5_fail(ty_error *err, const char *fmt, ...)
{
    char words[160] = "", text[512];
    va_list args;
    h5.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_words, words);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return ty_error_set(err, TY_E_MODEL_FILE, "%s%s%s%s", text, words[0] ? " (HDF5 says: " : "", words,
                        words[0] ? ")" : "");
}

/* ---- files in memory --------------------------------------------------------------------------------------------- */

/* The library copies images at every turn, through functions that we give it: ours hand out the one memory there is, so
 * that nothing is copied. One image a process. */
static struct {
    uint8_t *at;
    size_t max_bytes;
} image;

static void *image_malloc(size_t n, H5FD_file_image_op_t op, void *ctx)
{
    (void)op, (void)ctx;
    return n <= image.max_bytes ? image.at : NULL;
}

static void *image_memcpy(void *to, const void *from, size_t n, H5FD_file_image_op_t op, void *ctx)
{
    (void)op, (void)ctx;
    return to == from ? to : memmove(to, from, n);
}

static void *image_realloc(void *p, size_t n, H5FD_file_image_op_t op, void *ctx)
{
    (void)p;
    return image_malloc(n, op, ctx);
}

static herr_t image_free(void *p, H5FD_file_image_op_t op, void *ctx)
{
    (void)p, (void)op, (void)ctx;
    return 0;
}

static hid_t image_access(size_t n, ty_error *err)
{
    H5FD_file_image_callbacks_t callbacks = {image_malloc, image_memcpy, image_realloc, image_free, NULL, NULL, NULL};
    hid_t access = h5.H5Pcreate(*h5.file_access);
    if (access < 0 || h5.H5Pset_fapl_core(access, IMAGE_STEP, 0) < 0 ||
        h5.H5Pset_file_image_callbacks(access, &callbacks) < 0 || (n && h5.H5Pset_file_image(access, image.at, n) < 0))
        return hdf5_fail(err, "cannot set up a file in memory");
    return access;
}

hid_t hdf5_open_image(const uint8_t *bytes, size_t n, ty_error *err)
{
    image.at = (uint8_t *)(uintptr_t)bytes; /* read-only memory: the library writes to no file that is opened so */
    image.max_bytes = n;
    hid_t access = image_access(n, err);
    if (access < 0)
        return -1;
    hid_t file = h5.H5Fopen("memory", H5F_ACC_RDONLY, access);
    if (file < 0)
        return hdf5_fail(err, "no HDF5 file can be opened in these %zu bytes", n);
    h5.H5Pclose(access); /* any call forgets the words of the last one */
    return file;
}

hid_t hdf5_change_image(uint8_t *bytes, size_t n, size_t max_bytes, ty_error *err)
{
    image.at = bytes;
    image.max_bytes = max_bytes;
    hid_t access = image_access(n, err);
    if (access < 0)
        return -1;
    hid_t file =
        n ? h5.H5Fopen("memory", H5F_ACC_RDWR, access) : h5.H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file < 0)
        return hdf5_fail(err, "the HDF5 file cannot be opened for writing");
    h5.H5Pclose(access); /* any call forgets the words of the last one */
    return file;
}

/* Superblocks of versions 0 and 1 have the end of the file at byte 40 (44 in version 1), 2 and 3 at byte 28. */
int hdf5_image_bytes(const uint8_t *bytes, size_t max_bytes, size_t *n, ty_error *err)
{
    static const size_t place[] = {40, 44, 28, 28};
    uint64_t end = 0;
    if (max_bytes < 64 || bytes[8] > 3)
        return ty_error_set(err, TY_E_MODEL_FILE, "the HDF5 file that was made has no superblock that is known");
    for (int i = 7; i >= 0; i--)
        end = end << 8 | bytes[place[bytes[8]] + (size_t)i];
    if (end < 64 || end > max_bytes)
        return ty_error_set(err, TY_E_MODEL_FILE, "the HDF5 file that was made ends at byte %llu of %zu",
                            (unsigned long long)end, max_bytes);
    *n = (size_t)end;
    return 0;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static ty_dtype float_dtype(hid_t type)
{
    static const struct {
        ty_dtype dtype;
        size_t bits, sign, exponent_at, exponent, mantissa_at, mantissa, bias;
    } known[] = {{TY_F16, 16, 15, 10, 5, 0, 10, 15},
                 {TY_BF16, 16, 15, 7, 8, 0, 7, 127},
                 {TY_F32, 32, 31, 23, 8, 0, 23, 127},
                 {TY_F64, 64, 63, 52, 11, 0, 52, 1023}};
    size_t sign, e_at, e, m_at, m;
    if (h5.H5Tget_fields(type, &sign, &e_at, &e, &m_at, &m) < 0)
        return TY_N_DTYPES;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (h5.H5Tget_size(type) * 8 == known[i].bits && sign == known[i].sign && e_at == known[i].exponent_at &&
            e == known[i].exponent && m_at == known[i].mantissa_at && m == known[i].mantissa &&
            h5.H5Tget_ebias(type) == known[i].bias)
            return known[i].dtype;
    return TY_N_DTYPES;
}

static ty_dtype int_dtype(hid_t type)
{
    static const ty_dtype known[2][4] = {{TY_U8, TY_U16, TY_U32, TY_U64}, {TY_I8, TY_I16, TY_I32, TY_I64}};
    size_t n = h5.H5Tget_size(type);
    int at = n == 1 ? 0 : n == 2 ? 1 : n == 4 ? 2 : n == 8 ? 3 : -1;
    if (at < 0 || h5.H5Tget_precision(type) != n * 8 || h5.H5Tget_offset(type) != 0)
        return TY_N_DTYPES;
    return known[h5.H5Tget_sign(type) == H5T_SGN_2][at];
}

ty_dtype hdf5_dtype(hid_t type)
{
    switch (h5.H5Tget_class(type)) {
    case H5T_FLOAT:
        return float_dtype(type);
    case H5T_INTEGER:
        return int_dtype(type);
    case H5T_ENUM: /* h5py's bool: FALSE and TRUE in a byte */
        return h5.H5Tget_size(type) == 1 && h5.H5Tget_nmembers(type) == 2 ? TY_BOOL : TY_N_DTYPES;
    default:
        return TY_N_DTYPES;
    }
}

static hid_t half_type(void)
{
    hid_t type = h5.H5Tcopy(*h5.float_le);
    if (h5.H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || h5.H5Tset_size(type, 2) < 0 || h5.H5Tset_ebias(type, 15) < 0)
        return -1;
    return type;
}

static hid_t bool_type(void)
{
    hid_t type = h5.H5Tenum_create(*h5.int8_le);
    signed char no = 0, yes = 1;
    if (h5.H5Tenum_insert(type, "FALSE", &no) < 0 || h5.H5Tenum_insert(type, "TRUE", &yes) < 0)
        return -1;
    return type;
}

static hid_t int_type(size_t n_bytes, bool is_signed)
{
    hid_t type = h5.H5Tcopy(*h5.int8_le);
    if (h5.H5Tset_size(type, n_bytes) < 0 || h5.H5Tset_precision(type, n_bytes * 8) < 0 ||
        h5.H5Tset_sign(type, is_signed ? H5T_SGN_2 : H5T_SGN_NONE) < 0)
        return -1;
    return type;
}

hid_t hdf5_type_of(ty_dtype dtype)
{
    switch (dtype) {
    case TY_F16:
        return half_type();
    case TY_F32:
        return h5.H5Tcopy(*h5.float_le);
    case TY_F64:
        return h5.H5Tcopy(*h5.double_le);
    case TY_BOOL:
        return bool_type();
    case TY_BF16:
        return h5.H5Tcreate(H5T_OPAQUE, 2);
    default:
        return int_type(ty_dtype_bytes(dtype), ty_dtype_is_signed(dtype));
    }
}
