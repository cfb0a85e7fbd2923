/* s3_put.c - an object goes, at once; s3_upload.c sends larger ones in parts. */
#define _GNU_SOURCE
#include "estimator_spec/aws/checksum.h"
#include "estimator_spec/aws/s3_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE_BYTES = 256 << 10, AT_ONCE_BYTES = 16 << 20 };

/* ---- what is sent ---- */

static int read_piece(const ty_s3_source *source, char *piece, size_t n_bytes, uint64_t offset, ty_error *err)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t got = pread(source->fd, piece + done, n_bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ty_error_errno(err, TY_E_NONE, errno, "cannot read the file that is being sent");
        if (got == 0)
            return ty_error_set(err, TY_E_IO, "the file that is being sent has become shorter");
        done += (size_t)got;
    }
    return 0;
}

int ty_s3_digest(const ty_s3_source *source, uint64_t offset, uint64_t n_bytes, uint8_t sha256[TY_SHA256_BYTES],
                 uint32_t *crc32, ty_error *err)
{
    ty_sha256 h;
    int rc = 0;
    char *piece = source->bytes ? NULL : malloc(PIECE_BYTES);
    if (!source->bytes && !piece)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    *crc32 = 0;
    if (ty_sha256_init(&h, err) < 0) {
        free(piece);
        return -1;
    }
    for (uint64_t done = 0; rc == 0 && done < n_bytes;) {
        size_t n = n_bytes - done < PIECE_BYTES ? (size_t)(n_bytes - done) : PIECE_BYTES;
        const char *at = source->bytes ? (const char *)source->bytes + offset + done : piece;
        if (!source->bytes)
            rc = read_piece(source, piece, n, offset + done, err);
        if (rc == 0) {
            ty_sha256_add(&h, at, n);
            *crc32 = (uint32_t)crc32_z(*crc32, (const Bytef *)at, n);
        }
        done += n;
    }
    if (rc == 0)
        ty_sha256_final(&h, sha256);
    else
        ty_sha256_drop(&h);
    free(piece);
    return rc;
}

size_t ty_s3_put_headers(const ty_s3_put_options *options, ty_header *headers)
{
    size_t n = 0;
    if (options->content_type)
        headers[n++] = (ty_header){"content-type", options->content_type};
    if (options->kms_key)
        headers[n++] = (ty_header){"x-amz-server-side-encryption", "aws:kms"};
    if (options->kms_key && *options->kms_key)
        headers[n++] = (ty_header){"x-amz-server-side-encryption-aws-kms-key-id", options->kms_key};
    return n;
}

/* ---- at once ---- */

static int put_at_once(ty_s3 *s3, const ty_s3_place *at, const ty_s3_source *source, const ty_s3_put_options *options,
                       ty_error *err)
{
    ty_header headers[TY_S3_MAX_CALL_HEADERS];
    char hex[TY_SHA256_HEX_BYTES], base64[TY_CHECKSUM_TEXT_BYTES];
    uint8_t sha256[TY_SHA256_BYTES];
    uint32_t crc32;
    ty_arena arena;
    ty_answer answer;
    if (ty_s3_digest(source, 0, source->n_bytes, sha256, &crc32, err) < 0)
        return -1;
    size_t n = ty_s3_put_headers(options, headers);
    if (s3->sends_checksums) {
        headers[n++] = (ty_header){"x-amz-sdk-checksum-algorithm", "SHA256"};
        headers[n++] = (ty_header){"x-amz-checksum-sha256", ty_checksum_text256(sha256, base64)};
    }
    ty_call call = {.operation = "PutObject",
                    .method = "PUT",
                    .headers = headers,
                    .n_headers = n,
                    .body = source->bytes,
                    .body_bytes = source->n_bytes,
                    .body_fd = source->fd,
                    .payload = ty_sha256_hex(sha256, hex)};
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    int rc = ty_s3_send(s3, at, &call, &arena, &answer, err);
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    if (rc == 0)
        ty_s3_tell(s3, source->n_bytes, source->n_bytes);
    return rc;
}

static int put(ty_s3 *s3, const ty_s3_place *at, const ty_s3_source *source, const ty_s3_put_options *options,
               ty_error *err)
{
    static const ty_s3_put_options plain;
    options = options ? options : &plain;
    if (ty_s3_check_key(at->key, err) < 0 || ty_s3_find_bucket(s3, at->bucket, err) < 0)
        return -1;
    int rc = source->n_bytes > AT_ONCE_BYTES ? ty_s3_upload(s3, at, source, options, err)
                                             : put_at_once(s3, at, source, options, err);
    return rc < 0 && err && !strstr(err->message, "s3://") ? ty_error_wrap(err, "s3://%s/%.300s", at->bucket, at->key)
                                                           : rc;
}

int ty_s3_put_bytes(ty_s3 *s3, const ty_s3_place *at, const void *bytes, uint64_t n_bytes,
                    const ty_s3_put_options *options, ty_error *err)
{
    return put(s3, at, &(ty_s3_source){.bytes = n_bytes > 0 ? bytes : "", .fd = -1, .n_bytes = n_bytes}, options, err);
}

int ty_s3_put_file(ty_s3 *s3, const ty_s3_place *at, const char *path, const ty_s3_put_options *options, ty_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not keep us waiting here */
    if (fd < 0 || fstat(fd, &st) < 0) {
        ty_error_errno(err, TY_E_NONE, errno, "cannot send %s", path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int rc = S_ISREG(st.st_mode) ? put(s3, at, &(ty_s3_source){.fd = fd, .n_bytes = (uint64_t)st.st_size}, options, err)
                                 : ty_error_set(err, TY_E_CONFIG, "cannot send %s: it is no regular file", path);
    close(fd);
    return rc;
}
