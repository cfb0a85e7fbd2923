/* s3.h - objects of S3: looked at, fetched, sent, listed; one at a time or whole folders.
 *
 *     ty_s3_place at;
 *     ty_s3 *s3;
 *     ty_s3_open(aws, &(ty_s3_options){.owner = "111122223333", .notes = "/home/x/.cache/trainyard/uploads"}, &s3,
 * err); ty_s3_parse("s3://bucket/job/source/sourcedir.tar.gz", arena, &at, err); ty_s3_put_bytes(s3, &at, archive.data,
 * archive.len, NULL, err); ty_s3_get(s3, &model, "model.tar.gz", NULL, err); ty_s3_close(s3);
 *
 * Buckets stand in the host's name, or in the path where the endpoint is one of the user's own (AWS_ENDPOINT_URL_S3,
 * AWS_ENDPOINT_URL) and for names with dots; a profile's s3.addressing_style decides otherwise. A bucket that lies in
 * another region is asked there, signed for that region. No object is ever held in memory.
 *
 * What goes through is checked: each request's body by its SHA-256, which is signed, an object by its SHA-256 (one
 * request) or CRC-32 (in parts); what comes is compared with the checksum that the service has of it (SHA-256, CRC-32,
 * CRC-32C or CRC-64/NVME of the whole object; those of parts are not), and with its size.
 * AWS_REQUEST_CHECKSUM_CALCULATION and AWS_RESPONSE_CHECKSUM_VALIDATION=when_required turn the service's part off.
 *
 * Errors are those of call.h; TY_E_NOT_FOUND for a bucket or a key that is not there. One thread at a time.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_S3_H
#define TY_ESTIMATOR_SPEC_AWS_S3_H

#include "estimator_spec/aws/client.h"

typedef struct ty_s3 ty_s3;

typedef struct ty_s3_options {
    const char *owner; /* the account that must own the buckets, else refused; NULL: anybody. Copied. */
    /* Told while bytes move: how many of the object's; of all objects', where a prefix becomes a folder. May be NULL.
     * Goes back where a transfer begins anew. */
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_ctx;
    /* A folder for notes of uploads that were interrupted, made when there is one; copied. NULL: none are kept. */
    const char *notes;
} ty_s3_options;

int ty_s3_open(ty_aws *aws, const ty_s3_options *options, ty_s3 **out, ty_error *err); /* asks nobody anything */
void ty_s3_close(ty_s3 *s3);

typedef struct ty_s3_place {
    const char *bucket;
    const char *key; /* or a prefix of keys; as it is, not encoded, without a slash in front of it; "" for a bucket */
} ty_s3_place;

/* "s3://bucket/key", the key as it stands, all its bytes: "s3://b/a%20b" names a key with a percent sign. The name of
 * the bucket is checked. Copies in the arena. */
int ty_s3_parse(const char *uri, ty_arena *arena, ty_s3_place *out, ty_error *err);

typedef struct ty_s3_object {
    const char *key;
    uint64_t n_bytes;
    char etag[128];      /* with its quotes, as it came */
    int64_t modified_ms; /* UTC; -1: not said */
} ty_s3_object;

/* ---- one object ---- */

/* out->key is at->key. */
int ty_s3_head(ty_s3 *s3, const ty_s3_place *at, ty_s3_object *out, ty_error *err);

/* Into a file: written under a temporary name, checked, made durable and renamed, so that path has the old content or
 * all of the new. Where a connection breaks it goes on behind the bytes that are there, if the object is still the
 * same one; if not, from the start. out may be NULL. */
int ty_s3_get(ty_s3 *s3, const ty_s3_place *at, const char *path, ty_s3_object *out, ty_error *err);
/* Into a descriptor, a pipe too: what was written before an error stays written, and what changes on the way is an
 * error. Checked when all of it has been written. */
int ty_s3_get_fd(ty_s3 *s3, const ty_s3_place *at, int fd, ty_s3_object *out, ty_error *err);
/* Appended to out. For small ones: larger than its max_bytes is TY_E_LIMIT. */
int ty_s3_get_bytes(ty_s3 *s3, const ty_s3_place *at, ty_buf *out, ty_error *err);

typedef struct ty_s3_put_options {
    const char *content_type; /* NULL: none is said */
    const char *kms_key;      /* encrypted with this key of KMS; "" by the account's own; NULL: as the bucket says */
    /* What is sent in parts and fails leaves the parts that got through, and a note of them: the same object sent again
     * goes on from there, and the error says so. true, or without a folder for notes: they are removed. If that fails
     * too, the error says what is left. */
    bool abort_on_failure;
} ty_s3_put_options;

/* Up to 16 MiB at once, beyond that in parts. options may be NULL. */
int ty_s3_put_bytes(ty_s3 *s3, const ty_s3_place *at, const void *bytes, uint64_t n_bytes,
                    const ty_s3_put_options *options, ty_error *err);
/* A regular file that nobody writes meanwhile (else the service refuses what does not match). */
int ty_s3_put_file(ty_s3 *s3, const ty_s3_place *at, const char *path, const ty_s3_put_options *options, ty_error *err);
/* Removes the parts of an interrupted upload to this place that there is a note of. None is success. */
int ty_s3_abort(ty_s3 *s3, const ty_s3_place *at, ty_error *err);

int ty_s3_remove(ty_s3 *s3, const ty_s3_place *at, ty_error *err); /* an absent object is success */

/* Makes the bucket, in our region, if it is not there. One that is somebody else's is an error. */
int ty_s3_make_bucket(ty_s3 *s3, const char *bucket, ty_error *err);

/* ---- many ---- */

/* All objects whose keys begin with at->key, in the order of their keys' bytes. The object lives until take returns;
 * -1 with *err set ends it. */
int ty_s3_list(ty_s3 *s3, const ty_s3_place *at, int (*take)(void *ctx, const ty_s3_object *object, ty_error *err),
               void *ctx, ty_error *err);

/* The name, below a folder, of an object that was found under a prefix:
 *
 *     prefix        key              name
 *     data/train    data/train/x/y   x/y         what follows the prefix
 *     data/train/   data/train/x/y   x/y
 *     data/train    data/train       train       an object itself: its last part
 *     data/tr       data/train/x     train/x     a prefix that ends inside a name: from that name on
 *     data/train    data/train//x    x           empty parts count for nothing
 *     data          data/sub/        sub/        a slash at the end: a folder
 *
 * In the arena. TY_E_REFUSED for what has no name there: a part that is "." or "..", or more than 255 bytes, an empty
 * name. */
int ty_s3_name_below(const char *prefix, const char *key, ty_arena *arena, const char **name, ty_error *err);

typedef struct ty_s3_folder {
    /* Whether an object is wanted; index counts the objects that are no folders: 0, 1 ... NULL: all are. */
    bool (*wants)(void *ctx, const ty_s3_object *object, uint64_t index);
    void *ctx;
    ty_s3_put_options put;     /* for ty_s3_put_folder */
    uint64_t n_files, n_bytes; /* out: fetched or sent */
} ty_s3_folder;

/* All objects under a prefix, each into its file below `folder`, which is made. Refused before anything is fetched: a
 * key without a name there, and two keys with the same ("a/b" and "a//b"), or one that is a file and a folder. No
 * object at all is TY_E_NOT_FOUND. how may be NULL. A file that was there before is replaced. */
int ty_s3_get_folder(ty_s3 *s3, const ty_s3_place *at, const char *folder, ty_s3_folder *how, ty_error *err);
/* All regular files below `folder`, each to the key at->key/NAME; links to files are followed, links to folders are
 * not. */
int ty_s3_put_folder(ty_s3 *s3, const ty_s3_place *at, const char *folder, ty_s3_folder *how, ty_error *err);

#endif
