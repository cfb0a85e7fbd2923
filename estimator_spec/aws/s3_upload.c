/* s3_upload.c - an object goes in parts: each is a request that is repeated apart from the others, and those that an
 * earlier attempt brought through are not sent again.
 *
 * Which parts are there is what the note says (s3_note.h) and the service confirms: number, size and ETag. That a part
 * is still a part of what is to be sent is seen by its SHA-256, which is computed anew. The CRC-32 of the whole, put
 * together from the parts', goes along with the request that completes the object: the service refuses another.
 */
#define _GNU_SOURCE
#include "base/log.h"
#include "estimator_spec/aws/checksum.h"
#include "estimator_spec/aws/refusal.h"
#include "estimator_spec/aws/s3_note.h"
#include "estimator_spec/aws/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MIN_PART_BYTES = 8 << 20, MIB = 1 << 20, MAX_BODY_BYTES = 4 << 20, PAUSE_MS = 200 };

typedef struct part {
    char etag[128];
    uint32_t crc;
} part;

typedef struct upload {
    ty_s3 *s3;
    const ty_s3_place *at;
    const ty_s3_source *source;
    const ty_s3_put_options *options;
    ty_arena arena; /* as long as the upload */
    ty_s3_note note;
    const char *id;
    uint64_t part_bytes;
    uint32_t n_parts, n_there;
    part *parts;
    const ty_s3_noted **noted; /* by number - 1; NULL: not noted, or not confirmed */
    uint32_t crc;              /* of all parts so far */
} upload;

uint64_t ty_s3_part_bytes(uint64_t n_bytes)
{
    uint64_t least = (n_bytes + TY_S3_MAX_PARTS - 1) / TY_S3_MAX_PARTS, whole = (least + MIB - 1) / MIB * MIB;
    return whole > MIN_PART_BYTES ? whole : MIN_PART_BYTES;
}

/* ---- requests ---- */

/* Sends a request about the upload; its answer's body is copied to the arena if text is not NULL. */
static int ask(upload *u, const ty_call *call, const char **text, size_t *len, ty_error *err)
{
    ty_arena arena;
    ty_answer answer;
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    int rc = ty_s3_send(u->s3, u->at, call, &arena, &answer, err);
    if (rc == 0 && text) {
        *len = answer.http.body.len;
        *text = ty_arena_strndup(&u->arena, answer.http.body.data, *len);
    }
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    return rc;
}

/* "uploadId=..." of an id, with what stands in front. */
static const char *query_of(upload *u, const char *front, const char *id)
{
    ty_buf q;
    ty_buf_init(&q, MIB);
    ty_buf_adds(&q, front);
    ty_buf_adds(&q, "uploadId=");
    ty_uri_encode(&q, id, strlen(id), false);
    const char *copy = ty_arena_strdup(&u->arena, q.data);
    ty_buf_fini(&q);
    return copy;
}

static int begin(upload *u, const char *what, ty_error *err)
{
    ty_header headers[TY_S3_MAX_CALL_HEADERS];
    const char *text = "";
    size_t len = 0, n = ty_s3_put_headers(u->options, headers);
    if (u->s3->sends_checksums) {
        headers[n++] = (ty_header){"x-amz-checksum-algorithm", "CRC32"};
        headers[n++] = (ty_header){"x-amz-checksum-type", "FULL_OBJECT"};
    }
    ty_call call = {.operation = "CreateMultipartUpload",
                    .method = "POST",
                    .query = "uploads=",
                    .headers = headers,
                    .n_headers = n,
                    .body_fd = -1};
    if (ask(u, &call, &text, &len, err) < 0 || ty_s3_read_upload(text, len, &u->arena, &u->id, err) < 0)
        return -1;
    ty_s3_note_begin(&u->note, what, u->id);
    return 0;
}

static int abort_upload(upload *u, const char *id, ty_error *err)
{
    ty_call call = {
        .operation = "AbortMultipartUpload", .method = "DELETE", .query = query_of(u, "", id), .body_fd = -1};
    if (ask(u, &call, NULL, NULL, err) == 0 || (err && err->code == TY_E_NOT_FOUND))
        return 0;
    return -1;
}

/* ---- what is there ---- */

static void confirm(upload *u, const ty_s3_part *p, bool *is_confirmed)
{
    if (p->number > u->n_parts || !u->noted[p->number - 1])
        return;
    uint64_t offset = (p->number - 1) * u->part_bytes, left = u->source->n_bytes - offset;
    is_confirmed[p->number - 1] = p->n_bytes == (left < u->part_bytes ? left : u->part_bytes) &&
                                  strcmp(p->etag, u->noted[p->number - 1]->etag) == 0;
}

/* Keeps of the noted parts those that the service has. */
static int list_parts(upload *u, ty_error *err)
{
    bool *is_confirmed = TY_NEW_ARRAY(&u->arena, bool, u->n_parts);
    const char *text = "";
    size_t len = 0;
    for (uint32_t behind = 0;;) {
        const char *front = behind ? ty_arena_printf(&u->arena, "part-number-marker=%u&", behind) : "";
        ty_call call = {.operation = "ListParts", .method = "GET", .query = query_of(u, front, u->id), .body_fd = -1};
        ty_s3_part_page page;
        if (ask(u, &call, &text, &len, err) < 0 || ty_s3_read_parts(text, len, &u->arena, &page, err) < 0)
            return -1;
        for (size_t i = 0; i < page.n; i++)
            confirm(u, &page.parts[i], is_confirmed);
        if (page.next <= behind)
            break;
        behind = page.next;
    }
    for (uint32_t i = 0; i < u->n_parts; i++)
        if (!is_confirmed[i])
            u->noted[i] = NULL;
    return 0;
}

/* Takes up the upload that the note tells of, if it is of the same thing and still there. 1: taken up. */
static int take_up(upload *u, const char *what, ty_error *err)
{
    ty_error why = {0};
    if (!u->note.path || !u->note.upload_id[0])
        return 0;
    u->id = ty_arena_strdup(&u->arena, u->note.upload_id);
    if (strcmp(u->note.what, what) != 0) { /* something else went there: nobody will ever complete it */
        if (abort_upload(u, u->id, &why) < 0)
            ty_log_warning("aws", "s3://%s/%s: an incomplete upload is left behind (%s): %s", u->at->bucket, u->at->key,
                           u->id, why.message);
        return 0;
    }
    for (size_t i = 0; i < u->note.n_parts; i++)
        if (u->note.parts[i].number <= u->n_parts)
            u->noted[u->note.parts[i].number - 1] = &u->note.parts[i];
    if (list_parts(u, &why) == 0)
        return 1;
    if (why.code == TY_E_NOT_FOUND) {
        memset(u->noted, 0, u->n_parts * sizeof u->noted[0]);
        return 0;
    }
    if (err)
        *err = why;
    return -1;
}

/* ---- parts ---- */

static int send_part(upload *u, uint32_t number, uint64_t offset, uint64_t n_bytes, const char *hex, uint32_t crc,
                     ty_error *err)
{
    char front[64], text[TY_CHECKSUM_TEXT_BYTES];
    ty_header checksum = {"x-amz-checksum-crc32", ty_checksum_text32(crc, text)};
    ty_arena arena;
    ty_answer answer;
    snprintf(front, sizeof front, "partNumber=%u&", number);
    ty_call call = {.operation = "UploadPart",
                    .method = "PUT",
                    .query = query_of(u, front, u->id),
                    .headers = &checksum,
                    .n_headers = u->s3->sends_checksums ? 1 : 0,
                    .body = u->source->bytes ? (const char *)u->source->bytes + offset : NULL,
                    .body_bytes = n_bytes,
                    .body_fd = u->source->fd,
                    .body_offset = offset,
                    .payload = hex};
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    int rc = ty_s3_send(u->s3, u->at, &call, &arena, &answer, err);
    const char *etag = rc == 0 ? ty_headers_get(&answer.http.headers, "etag") : NULL;
    part *p = &u->parts[number - 1];
    if (rc == 0 && (!etag || !*etag || strlen(etag) >= sizeof p->etag || strpbrk(etag, "<& \t")))
        rc = ty_error_set(err, TY_E_SERVICE, "S3 UploadPart: the answer names no ETag");
    if (rc == 0) {
        strcpy(p->etag, etag);
        ty_s3_note_add(&u->note, number, hex, etag);
    }
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    return rc;
}

static int settle_part(upload *u, uint32_t number, ty_error *err)
{
    uint8_t sha256[TY_SHA256_BYTES];
    char hex[TY_SHA256_HEX_BYTES];
    uint64_t offset = (number - 1) * u->part_bytes, left = u->source->n_bytes - offset;
    uint64_t n_bytes = left < u->part_bytes ? left : u->part_bytes;
    part *p = &u->parts[number - 1];
    if (ty_s3_digest(u->source, offset, n_bytes, sha256, &p->crc, err) < 0)
        return -1;
    ty_sha256_hex(sha256, hex);
    const ty_s3_noted *noted = u->noted[number - 1];
    if (noted && strcmp(noted->sha256, hex) == 0)
        strcpy(p->etag, noted->etag);
    else if (send_part(u, number, offset, n_bytes, hex, p->crc, err) < 0)
        return -1;
    u->crc = (uint32_t)crc32_combine(u->crc, p->crc, (z_off_t)n_bytes);
    u->n_there++;
    ty_s3_tell(u->s3, offset + n_bytes, u->source->n_bytes);
    return 0;
}

/* ---- the end ---- */

/* Whether the object is there, complete: by the checksum of the whole. */
static bool is_there(upload *u, const char *checksum)
{
    ty_arena arena;
    ty_answer answer;
    ty_header mode = {"x-amz-checksum-mode", "ENABLED"};
    ty_call call = {.operation = "HeadObject", .method = "HEAD", .headers = &mode, .n_headers = 1, .body_fd = -1};
    ty_error ignored = {0};
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    bool is = ty_s3_send(u->s3, u->at, &call, &arena, &answer, &ignored) == 0;
    const char *length = ty_headers_get(&answer.http.headers, "content-length");
    const char *found = ty_headers_get(&answer.http.headers, "x-amz-checksum-crc32");
    is = is && length && strtoull(length, NULL, 10) == u->source->n_bytes && found && strcmp(found, checksum) == 0;
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    return is;
}

static void write_list(upload *u, ty_buf *body)
{
    char text[TY_CHECKSUM_TEXT_BYTES];
    ty_buf_adds(body, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (uint32_t i = 0; i < u->n_parts; i++) {
        ty_buf_addf(body, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag>", i + 1, u->parts[i].etag);
        if (u->s3->sends_checksums)
            ty_buf_addf(body, "<ChecksumCRC32>%s</ChecksumCRC32>", ty_checksum_text32(u->parts[i].crc, text));
        ty_buf_adds(body, "</Part>");
    }
    ty_buf_adds(body, "</CompleteMultipartUpload>");
}

/* One request. A status of 200 may be followed by an error: the service begins to answer before it knows. */
static int complete_once(upload *u, const ty_call *call, ty_answer *answer, ty_refusal_kind *kind, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    *kind = TY_REFUSAL_FINAL; /* what can be repeated has been */
    int rc = ty_s3_send(u->s3, u->at, call, &arena, answer, err);
    if (rc == 0 && ty_s3_is_error(answer->http.body.data, answer->http.body.len)) {
        *kind = ty_refusal_read(call, NULL, &arena, answer, err);
        rc = -1;
    }
    ty_arena_fini(&arena);
    return rc;
}

static int complete(upload *u, ty_error *err)
{
    char text[TY_CHECKSUM_TEXT_BYTES], size[24];
    ty_buf body;
    ty_answer answer;
    ty_refusal_kind kind;
    ty_caller *caller = ty_aws_caller(u->s3->aws);
    ty_buf_init(&body, MAX_BODY_BYTES);
    write_list(u, &body);
    snprintf(size, sizeof size, "%" PRIu64, u->source->n_bytes);
    ty_header headers[] = {{"content-type", "application/xml"},
                           {"x-amz-mp-object-size", size},
                           {"x-amz-checksum-crc32", ty_checksum_text32(u->crc, text)},
                           {"x-amz-checksum-type", "FULL_OBJECT"}};
    ty_call call = {.service = &ty_service_s3,
                    .operation = "CompleteMultipartUpload",
                    .method = "POST",
                    .query = query_of(u, "", u->id),
                    .headers = headers,
                    .n_headers = u->s3->sends_checksums ? 4 : 2,
                    .body = body.data,
                    .body_bytes = body.len,
                    .body_fd = -1,
                    .errors_in_xml = true};
    ty_answer_init(&answer);
    int rc = -1;
    bool may_be_there = false;
    for (int attempt = 1; rc < 0; attempt++) {
        rc = complete_once(u, &call, &answer, &kind, err);
        /* 404: by an attempt that nobody heard of, one of libcurl's own on a kept connection too. */
        int status = answer.http.status;
        may_be_there |= rc < 0 && (answer.is_unsure || status == 200 || status == 404 || status >= 500);
        if (rc < 0 && (kind == TY_REFUSAL_FINAL || attempt == caller->max_attempts ||
                       ty_caller_pause(caller, PAUSE_MS << attempt) < 0))
            break;
    }
    if (rc < 0 && may_be_there && is_there(u, text)) {
        *err = (ty_error){0};
        rc = 0;
    }
    ty_answer_fini(&answer);
    ty_buf_fini(&body);
    return rc;
}

/* ---- all of it ---- */

/* What an upload is of: another size, key of encryption or owner makes it another one. */
static int name_upload(upload *u, const char **name, char what[TY_SHA256_HEX_BYTES], ty_error *err)
{
    const char *url, *path, *owner = u->s3->options.owner, *kms = u->options->kms_key;
    uint8_t digest[TY_SHA256_BYTES];
    char hex[TY_SHA256_HEX_BYTES];
    if (ty_s3_address(u->s3, u->at->bucket, ty_aws_region(u->s3->aws), &u->arena, &url, &path, err) < 0)
        return -1;
    const char *where = ty_arena_printf(&u->arena, "%s%s\n%s\n", url, path, u->at->key);
    if (ty_sha256_bytes(where, strlen(where), digest, err) < 0)
        return -1;
    *name = ty_arena_printf(&u->arena, "%.32s", ty_sha256_hex(digest, hex));
    const char *all = ty_arena_printf(&u->arena, "%s%" PRIu64 "\n%s\n%s%s\n%s\n%d", where, u->source->n_bytes,
                                      owner ? owner : "", kms ? "kms " : "", kms ? kms : "",
                                      u->options->content_type ? u->options->content_type : "", u->s3->sends_checksums);
    if (ty_sha256_bytes(all, strlen(all), digest, err) < 0)
        return -1;
    ty_sha256_hex(digest, what);
    return 0;
}

/* Removes the parts although all is stopped: one attempt, which nobody can stop. */
static int clear_up(upload *u, ty_error *err)
{
    ty_caller *caller = ty_aws_caller(u->s3->aws), before = *caller;
    caller->stop = NULL;
    caller->max_attempts = 1;
    ty_http_set_stop(caller->http, NULL);
    int rc = abort_upload(u, u->id, err);
    ty_http_set_stop(caller->http, before.stop);
    caller->stop = before.stop;
    caller->max_attempts = before.max_attempts;
    return rc;
}

/* After a failure: removes what is there or says that it is. */
static int leave(upload *u, ty_error *err)
{
    ty_error why = {0};
    if (!u->id)
        return -1;
    if (u->note.path && !u->options->abort_on_failure)
        return ty_error_wrap(err, "%u of %u parts got through and are kept for when the same is sent again", u->n_there,
                             u->n_parts);
    if ((err->code == TY_E_STOPPED ? clear_up(u, &why) : abort_upload(u, u->id, &why)) == 0) {
        ty_s3_note_close(&u->note, true);
        return -1;
    }
    return ty_error_wrap(err, "an incomplete upload is left behind (%u of %u parts, id %.200s)", u->n_there, u->n_parts,
                         u->id);
}

static int run(upload *u, ty_error *err)
{
    const char *name;
    char what[TY_SHA256_HEX_BYTES];
    if (name_upload(u, &name, what, err) < 0)
        return -1;
    ty_s3_note_open(u->s3->options.notes, name, &u->arena, &u->note);
    int taken = take_up(u, what, err);
    if (taken == 0)
        u->id = NULL;
    if (taken < 0 || (taken == 0 && begin(u, what, err) < 0))
        return -1;
    for (uint32_t number = 1; number <= u->n_parts; number++)
        if (settle_part(u, number, err) < 0)
            return leave(u, err);
    if (complete(u, err) < 0)
        return leave(u, err);
    ty_s3_note_close(&u->note, true);
    return 0;
}

int ty_s3_upload(ty_s3 *s3, const ty_s3_place *at, const ty_s3_source *source, const ty_s3_put_options *options,
                 ty_error *err)
{
    ty_error own = {0};
    upload u = {.s3 = s3, .at = at, .source = source, .options = options, .note = {.fd = -1}};
    err = err ? err : &own;
    ty_arena_init(&u.arena);
    u.part_bytes = ty_s3_part_bytes(source->n_bytes);
    u.n_parts = (uint32_t)((source->n_bytes + u.part_bytes - 1) / u.part_bytes);
    u.parts = TY_NEW_ARRAY(&u.arena, part, u.n_parts);
    u.noted = TY_NEW_ARRAY(&u.arena, const ty_s3_noted *, u.n_parts);
    int rc = run(&u, err);
    ty_s3_note_close(&u.note, false);
    ty_arena_fini(&u.arena);
    return rc;
}

int ty_s3_abort(ty_s3 *s3, const ty_s3_place *at, ty_error *err)
{
    static const ty_s3_source nothing;
    static const ty_s3_put_options plain;
    ty_error own = {0};
    const char *name;
    char what[TY_SHA256_HEX_BYTES];
    upload u = {.s3 = s3, .at = at, .source = &nothing, .options = &plain, .note = {.fd = -1}};
    err = err ? err : &own;
    ty_arena_init(&u.arena);
    int rc = name_upload(&u, &name, what, err);
    if (rc == 0)
        ty_s3_note_open(s3->options.notes, name, &u.arena, &u.note);
    if (u.note.path && u.note.upload_id[0])
        rc = abort_upload(&u, u.note.upload_id, err);
    if (u.note.path)
        ty_s3_note_close(&u.note, rc == 0);
    ty_arena_fini(&u.arena);
    return rc;
}
