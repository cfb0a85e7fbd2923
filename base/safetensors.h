/* safetensors.h - write and read `.safetensors` files.
 *
 * A file is: u64 N, N bytes of JSON (padded with spaces to a multiple of 8), then the tensors' bytes. The JSON says for
 * each name the dtype, the shape and where its bytes lie. Format: https://github.com/huggingface/safetensors.
 *
 * Writing streams from the caller's memory: no copy of the weights is made. The file appears under its name whole and
 * durable, or not at all.
 * Reading maps the file: tensors point into the map, valid until ty_safetensors_close. All rules of the reference
 * reader are kept (no holes, no overlaps, no bytes left over, sizes that fit), so a file that opens here opens
 * everywhere.
 */
#ifndef TY_BASE_SAFETENSORS_H
#define TY_BASE_SAFETENSORS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/named_tensor.h"

#include <stddef.h>
#include <stdint.h>

#define TY_SAFETENSORS_HEADER_MAX_BYTES (16u << 20) /* the format allows 100 MB; real headers are far below ours */

/* One entry of `__metadata__`; `format` = "pt" is the conventional one. */
typedef struct ty_safetensors_meta {
    const char *key, *value;
} ty_safetensors_meta;

/* Writes `tensors` in any order given; the file orders them by alignment, then name. Names must differ.
 * The mode of the file is 0644. */
int ty_safetensors_write(const char *path, const ty_named_tensor *tensors, size_t n_tensors,
                         const ty_safetensors_meta *meta, size_t n_meta, ty_error *err);

/* A tensor as the file has it. Types that this project cannot hold (F8_E4M3, C64 ...) are listed too, with
 * type.dtype = TY_N_DTYPES; shape and bytes are right all the same. */
typedef struct ty_safetensors_entry {
    const char *name;       /* UTF-8, without NUL inside */
    const char *dtype_text; /* "F32" */
    ty_type type;
    const void *data; /* n_bytes; aligned as the file has it, so read through memcpy unless you check */
    size_t n_bytes;
} ty_safetensors_entry;

typedef struct ty_safetensors {
    const ty_safetensors_entry *entries; /* in the order of the header */
    size_t n_entries;
    const ty_safetensors_meta *meta;
    size_t n_meta;
    ty_arena arena;    /* private */
    ty_file_view view; /* private */
} ty_safetensors;

/* Maps and checks a file. The file must not change while it is open. On failure *out needs no close. */
int ty_safetensors_open(const char *path, ty_safetensors *out, ty_error *err);
/* The same over bytes in memory, which must outlive *out; `path` is for messages alone. */
int ty_safetensors_parse(const void *bytes, size_t n_bytes, const char *path, ty_safetensors *out, ty_error *err);
void ty_safetensors_close(ty_safetensors *s);
/* The entry of that name, or NULL. */
const ty_safetensors_entry *ty_safetensors_find(const ty_safetensors *s, const char *name);

#endif
