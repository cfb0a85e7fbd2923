/* rankfile.h - the tensors of one rank in a checkpoint: `rank-00003.bin`.
 *
 * Integers are little-endian; offsets count from the start of the file.
 *
 *      0  char[8]  "TYRANK\r\n"; the line end shows damage by text-mode copying
 *      8  u32      version, 1
 *     12  u32      rank
 *     16  u32      world size
 *     20  u32      number of tensors
 *     24  u64      step
 *     32  u64      bytes of the index
 *     40  u64      bytes of the file
 *     48  u32      CRC-32C of the index
 *     52  u32[2]   0
 *     60  u32      CRC-32C of bytes 0 to 59
 *     64           index: for each tensor
 *                      u64 offset of its data, a multiple of 64      u64 bytes of its data
 *                      char[8] element type ("f32", NUL-padded)      u32 CRC-32C of its data
 *                      u16 rank of its shape   u16 bytes of its name   i64 dims   name   NULs to a multiple of 8
 *                  data, in the order of the index, zeros in between; the file ends with the last byte of data
 *
 * The whole file's SHA-256 stands in the manifest (manifest.h). The CRCs in the index tell which tensor is damaged, and
 * let two saves of one step be compared without reading data.
 *
 * Writing streams from the tensors' memory, reading goes straight into it: gigabytes are never copied.
 */
#ifndef TY_CONTAINER_OUTPUT_RANKFILE_H
#define TY_CONTAINER_OUTPUT_RANKFILE_H

#include "base/error.h"
#include "container/output/manifest.h"
#include "base/named_tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ty_rankfile_id {
    int rank, world_size;
    int64_t step;
} ty_rankfile_id;

/* Bytes that a file of these tensors takes. */
uint64_t ty_rankfile_bytes(const ty_named_tensor *tensors, size_t n_tensors);

/* Writes DIR/rank-00003.bin, durable and atomic, and tells the manifest's line about it in *out. `unchanged` (may be
 * NULL): set when a valid file with the same content stood there already and was left alone. */
int ty_rankfile_write(const char *dir, const ty_rankfile_id *id, const ty_named_tensor *tensors, size_t n_tensors,
                      ty_manifest_file *out, bool *unchanged, ty_error *err);

/* How reading a rank file can go wrong: a damaged file makes the loader take an older checkpoint, a file of another
 * model must not. */
typedef enum ty_rankfile_fault {
    TY_RANKFILE_FINE,
    TY_RANKFILE_DAMAGED,  /* size, hash, structure, or it cannot be read */
    TY_RANKFILE_MISMATCH, /* whole, but for other tensors, rank or world size */
} ty_rankfile_fault;

/* Reads DIR/rank-00003.bin into the tensors' memory. `expected` is the manifest's line: size and SHA-256 are checked
 * in the same pass. The tensors must be those of the file, by name, in any order. On failure the tensors may be partly
 * overwritten. `fault` may be NULL. */
int ty_rankfile_read(const char *dir, const ty_rankfile_id *id, const ty_manifest_file *expected,
                     const ty_named_tensor *tensors, size_t n_tensors, ty_rankfile_fault *fault, ty_error *err);

/* Checks size and SHA-256 alone. */
int ty_rankfile_verify(const char *dir, const ty_manifest_file *expected, ty_error *err);

#endif
