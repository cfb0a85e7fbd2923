/* s3_parts.h - what the files of S3 share: a bucket's region and address, calls, answers. For s3*.c alone. */
#ifndef TY_ESTIMATOR_SPEC_AWS_S3_PARTS_H
#define TY_ESTIMATOR_SPEC_AWS_S3_PARTS_H

#include "base/hash.h"
#include "estimator_spec/aws/s3.h"

enum { TY_S3_MAX_KEY_BYTES = 1024, TY_S3_MAX_PARTS = 10000, TY_S3_KNOWN_BUCKETS = 8, TY_S3_MAX_CALL_HEADERS = 8 };

typedef enum ty_s3_style { TY_S3_AUTO, TY_S3_PATH, TY_S3_VIRTUAL } ty_s3_style;

/* Where a bucket was found. */
typedef struct ty_s3_known {
    char bucket[64], region[64];
} ty_s3_known;

struct ty_s3 {
    ty_aws *aws;
    ty_s3_options options; /* its texts are owned */
    ty_s3_style style;
    bool sends_checksums, asks_for_checksums;
    ty_s3_known known[TY_S3_KNOWN_BUCKETS]; /* the oldest is forgotten first */
    size_t n_known;
};

/* ---- calls ---- */

/* Refuses a name that is none: it becomes part of a host's name. */
int ty_s3_check_bucket(const char *bucket, ty_error *err);
/* Refuses a key that is empty (the call would be about the bucket), too long or no UTF-8. */
int ty_s3_check_key(const char *key, ty_error *err);
/* Address of a bucket in a region: url, and the path in front of a key. */
int ty_s3_address(ty_s3 *s3, const char *bucket, const char *region, ty_arena *arena, const char **url,
                  const char **path, ty_error *err);
/* Sends *call about a place ("" as key: about the bucket) to where the bucket is. Filled in here: service, url, region,
 * path, rules of S3, the owner. The caller gives operation, method, query, headers, body and sink. */
int ty_s3_send(ty_s3 *s3, const ty_s3_place *at, const ty_call *call, ty_arena *arena, ty_answer *answer,
               ty_error *err);
/* Asks for the bucket if it is not known, so that no body is sent to the wrong region. Only its absence is an error,
 * and that nobody answers. */
int ty_s3_find_bucket(ty_s3 *s3, const char *bucket, ty_error *err);
/* Milliseconds since 1970 of "Mon, 05 Jan 2026 10:11:12 GMT"; -1 if it is none. */
int64_t ty_s3_parse_date(const char *text);
void ty_s3_tell(const ty_s3 *s3, uint64_t done_bytes, uint64_t total_bytes);

/* ---- answers: XML of `len` bytes, all strings in the arena; anything unexpected is TY_E_SERVICE ---- */

typedef struct ty_s3_page {
    ty_s3_object *objects;
    size_t n;
    const char *next; /* NULL: the last page */
} ty_s3_page;

typedef struct ty_s3_part {
    uint32_t number; /* 1 ... */
    uint64_t n_bytes;
    char etag[128];
} ty_s3_part;

typedef struct ty_s3_part_page {
    ty_s3_part *parts;
    size_t n;
    uint32_t next; /* the number behind which the next page begins; 0: the last page */
} ty_s3_part_page;

int ty_s3_read_page(const char *text, size_t len, ty_arena *arena, ty_s3_page *out, ty_error *err);
int ty_s3_read_parts(const char *text, size_t len, ty_arena *arena, ty_s3_part_page *out, ty_error *err);
int ty_s3_read_upload(const char *text, size_t len, ty_arena *arena, const char **upload_id, ty_error *err);
/* Whether a document with status 200 is an error all the same; S3 answers so when it has begun to answer too early. */
bool ty_s3_is_error(const char *text, size_t len);
/* The region that an error says a bucket is in; NULL if it says none, or what is none. */
const char *ty_s3_read_region(const char *text, size_t len, ty_arena *arena);

/* ---- uploads ---- */

typedef struct ty_s3_source {
    const void *bytes; /* or a file: */
    int fd;
    uint64_t n_bytes;
} ty_s3_source;

/* In parts. options is never NULL here. */
int ty_s3_upload(ty_s3 *s3, const ty_s3_place *at, const ty_s3_source *source, const ty_s3_put_options *options,
                 ty_error *err);
/* Bytes of a part of n: at least 8 MiB, whole MiB, at most 10,000 parts. */
uint64_t ty_s3_part_bytes(uint64_t n_bytes);
/* Adds headers of encryption and type; returns how many. */
size_t ty_s3_put_headers(const ty_s3_put_options *options, ty_header *headers);
/* SHA-256 and CRC-32 of a part of a source. */
int ty_s3_digest(const ty_s3_source *source, uint64_t offset, uint64_t n_bytes, uint8_t sha256[TY_SHA256_BYTES],
                 uint32_t *crc32, ty_error *err);

#endif
