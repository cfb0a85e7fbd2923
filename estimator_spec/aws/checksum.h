/* checksum.h - the checksums by which S3 knows objects: of pieces as they come, as text as it stands in headers.
 *
 *     x-amz-checksum-sha256: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=     base64 of the value's bytes, big end
 * first x-amz-checksum-crc64nvme: rosUhgp5mIg=
 *
 * CRC-64/NVME: NVM Express Command Set Specification 1.0, 5.2.1.3.4; polynomial 0xad93d23594c93659, bits reflected.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_CHECKSUM_H
#define TY_ESTIMATOR_SPEC_AWS_CHECKSUM_H

#include "base/hash.h"

#include <stdbool.h>

typedef enum ty_checksum_kind {
    TY_CHECKSUM_NONE,
    TY_CHECKSUM_SHA256,
    TY_CHECKSUM_CRC64NVME,
    TY_CHECKSUM_CRC32C,
    TY_CHECKSUM_CRC32,
    TY_CHECKSUM_KINDS,
} ty_checksum_kind;

const char *ty_checksum_title(ty_checksum_kind kind);  /* "CRC-32": for messages */
const char *ty_checksum_header(ty_checksum_kind kind); /* "x-amz-checksum-crc32" */

typedef struct ty_checksum {
    ty_checksum_kind kind;
    ty_sha256 sha256; /* private */
    uint64_t crc;     /* private */
} ty_checksum;

enum { TY_CHECKSUM_TEXT_BYTES = 48 }; /* with the NUL */

/* init, add..., then exactly one of final and drop. Of kind NONE it is "". */
int ty_checksum_init(ty_checksum *c, ty_checksum_kind kind, ty_error *err);
void ty_checksum_add(ty_checksum *c, const void *bytes, size_t n_bytes);
const char *ty_checksum_final(ty_checksum *c, char text[TY_CHECKSUM_TEXT_BYTES]);
void ty_checksum_drop(ty_checksum *c);

/* The text of a CRC of 32 bits, and of a SHA-256. */
const char *ty_checksum_text32(uint32_t crc, char text[TY_CHECKSUM_TEXT_BYTES]);
const char *ty_checksum_text256(const uint8_t digest[TY_SHA256_BYTES], char text[TY_CHECKSUM_TEXT_BYTES]);
/* Start with 0; feed the result back in for more bytes. */
uint64_t ty_crc64nvme(uint64_t crc, const void *bytes, size_t n_bytes);

#endif
