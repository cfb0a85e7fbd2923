/* s3_get.c - an object comes: in rounds, each a request for what is still missing.
 *
 * A round repeats by itself (call.h) until its first byte is here. One that breaks later is followed by another, from
 * where the bytes end (Range) and for the same object alone (If-Match). A round that brought less than a MiB counts as
 * an attempt; others do not, so that a long transfer outlives any number of broken connections.
 */
#define _GNU_SOURCE
#include "base/file.h"
#include "estimator_spec/aws/checksum.h"
#include "estimator_spec/aws/s3_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { GOOD_ROUND_BYTES = 1 << 20, MAX_RESTARTS = 2 };

typedef struct target {
    int (*write)(void *ctx, const void *bytes, size_t n_bytes, ty_error *err);
    int (*restart)(void *ctx, ty_error *err); /* takes all back; NULL: it cannot */
    void *ctx;
} target;

typedef struct fetch {
    ty_s3 *s3;
    const ty_s3_place *at;
    const target *to;
    ty_answer answer;
    ty_s3_object object; /* as the first answer says; etag "": none came so far */
    uint64_t have_bytes, skip_bytes;
    ty_checksum sum;
    char expected[TY_CHECKSUM_TEXT_BYTES]; /* the checksum as the service has it */
    bool is_open;                          /* this attempt's headers were read */
    bool is_changed;                       /* the object is not the one that was begun */
} fetch;

/* ---- an answer's headers ---- */

static int fail(const char *words, ty_error *err)
{
    return ty_error_set(err, TY_E_SERVICE, "S3 GetObject: %s", words);
}

static int read_first(fetch *f, ty_error *err)
{
    const ty_headers *h = &f->answer.http.headers;
    const char *etag = ty_headers_get(h, "etag"), *length = ty_headers_get(h, "content-length");
    const char *modified = ty_headers_get(h, "last-modified"), *type = ty_headers_get(h, "x-amz-checksum-type");
    char *end = NULL;
    if (!etag || !*etag || strlen(etag) >= sizeof f->object.etag)
        return fail("the answer has no ETag", err);
    f->object.n_bytes = length ? strtoull(length, &end, 10) : 0;
    if (!length || *end || *length == '-' || !*length)
        return fail("the answer names no size", err);
    strcpy(f->object.etag, etag);
    f->object.modified_ms = modified ? ty_s3_parse_date(modified) : -1;
    ty_checksum_kind kind = TY_CHECKSUM_NONE;
    for (int k = TY_CHECKSUM_NONE + 1; k < TY_CHECKSUM_KINDS && kind == TY_CHECKSUM_NONE; k++) {
        const char *value = ty_headers_get(h, ty_checksum_header((ty_checksum_kind)k));
        /* "VALUE-12" is a checksum of checksums of parts whose borders nobody knows here. */
        if (!value || strchr(value, '-') || (type && strcmp(type, "COMPOSITE") == 0) ||
            strlen(value) >= sizeof f->expected)
            continue;
        kind = (ty_checksum_kind)k;
        strcpy(f->expected, value);
    }
    ty_checksum_drop(&f->sum);
    return ty_checksum_init(&f->sum, kind, err);
}

/* Where the bytes of a later answer begin. */
static int read_later(fetch *f, ty_error *err)
{
    const ty_headers *h = &f->answer.http.headers;
    const char *etag = ty_headers_get(h, "etag"), *range = ty_headers_get(h, "content-range");
    uint64_t first, last, all;
    f->is_changed = !etag || strcmp(etag, f->object.etag) != 0;
    if (f->is_changed)
        return fail("the object was replaced while it came", err);
    if (!range) { /* all of it again */
        f->skip_bytes = f->have_bytes;
        return 0;
    }
    if (sscanf(range, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &first, &last, &all) != 3 || first != f->have_bytes ||
        all != f->object.n_bytes)
        return fail("the answer is about other bytes than were asked for", err);
    return 0;
}

static int open_answer(fetch *f, ty_error *err)
{
    if (f->is_open)
        return 0;
    f->is_open = true;
    f->skip_bytes = 0;
    return f->object.etag[0] ? read_later(f, err) : read_first(f, err);
}

/* ---- a round ---- */

static int take(void *ctx, const void *bytes, size_t n_bytes, ty_error *err)
{
    fetch *f = ctx;
    if (open_answer(f, err) < 0)
        return -1;
    size_t skipped = f->skip_bytes < n_bytes ? (size_t)f->skip_bytes : n_bytes;
    f->skip_bytes -= skipped;
    n_bytes -= skipped;
    if (n_bytes == 0)
        return 0;
    if (n_bytes > f->object.n_bytes - f->have_bytes)
        return fail("more bytes come than the object has", err);
    const char *from = (const char *)bytes + skipped;
    if (f->to->write(f->to->ctx, from, n_bytes, err) < 0)
        return -1;
    ty_checksum_add(&f->sum, from, n_bytes);
    f->have_bytes += n_bytes;
    ty_s3_tell(f->s3, f->have_bytes, f->object.n_bytes);
    return 0;
}

/* Before another attempt: only while it can be the same request. */
static int rewind_round(void *ctx, ty_error *err)
{
    fetch *f = ctx;
    (void)err; /* says what broke */
    bool was_open = f->is_open;
    f->is_open = false;
    return was_open ? -1 : 0;
}

static int get_round(fetch *f, ty_error *err)
{
    char range[48];
    ty_header headers[3];
    size_t n = 0;
    ty_arena arena;
    if (f->object.etag[0]) {
        snprintf(range, sizeof range, "bytes=%" PRIu64 "-", f->have_bytes);
        headers[n++] = (ty_header){"range", range};
        headers[n++] = (ty_header){"if-match", f->object.etag};
    } else if (f->s3->asks_for_checksums)
        headers[n++] = (ty_header){"x-amz-checksum-mode", "ENABLED"};
    ty_call call = {.operation = "GetObject",
                    .method = "GET",
                    .headers = headers,
                    .n_headers = n,
                    .body_fd = -1,
                    .sink = take,
                    .rewind = rewind_round,
                    .sink_ctx = f};
    f->is_open = false;
    ty_arena_init(&arena);
    int rc = ty_s3_send(f->s3, f->at, &call, &arena, &f->answer, err);
    if (rc == 0)
        rc = open_answer(f, err); /* an empty object has no first byte */
    else if (f->answer.http.status == 412)
        f->is_changed = true;
    ty_arena_fini(&arena);
    return rc;
}

/* ---- all of it ---- */

static int restart(fetch *f, int *n_restarts, ty_error *err)
{
    if (!f->to->restart || *n_restarts == MAX_RESTARTS)
        return -1;
    ++*n_restarts;
    *err = (ty_error){0};
    f->object = (ty_s3_object){.key = f->at->key, .modified_ms = -1};
    f->have_bytes = 0;
    f->is_changed = false;
    ty_checksum_drop(&f->sum);
    f->sum = (ty_checksum){0};
    f->expected[0] = 0;
    return f->to->restart(f->to->ctx, err);
}

/* Whether a round that failed may be followed by another one. */
static bool may_go_on(fetch *f, uint64_t begun_bytes, int *n_short, const ty_error *err)
{
    bool broke_off = err->code == TY_E_SERVICE && f->answer.http.status == 0 && f->have_bytes > begun_bytes;
    if (!broke_off ||
        (f->have_bytes - begun_bytes < GOOD_ROUND_BYTES && ++*n_short >= ty_aws_caller(f->s3->aws)->max_attempts))
        return false;
    return true;
}

static int check(fetch *f, ty_error *err)
{
    char found[TY_CHECKSUM_TEXT_BYTES];
    if (f->have_bytes != f->object.n_bytes)
        return ty_error_set(err, TY_E_SERVICE, "S3 GetObject: %" PRIu64 " bytes came of %" PRIu64, f->have_bytes,
                            f->object.n_bytes);
    ty_checksum_kind kind = f->sum.kind;
    ty_checksum_final(&f->sum, found);
    f->sum = (ty_checksum){0};
    if (strcmp(found, f->expected) == 0)
        return 0;
    f->is_changed = true;
    return ty_error_set(err, TY_E_SERVICE, "S3 GetObject: what came has the %s %s, but the object has %s",
                        ty_checksum_title(kind), found, f->expected);
}

static int get_all(fetch *f, ty_error *err)
{
    int n_restarts = 0, n_short = 0;
    for (;;) {
        uint64_t begun_bytes = f->have_bytes;
        bool is_done = f->object.etag[0] && f->have_bytes == f->object.n_bytes; /* only the connection's end was bad */
        int rc = is_done ? 0 : get_round(f, err);
        if (rc == 0)
            rc = check(f, err);
        if (rc == 0)
            return 0;
        if (f->is_changed) {
            if (restart(f, &n_restarts, err) < 0)
                return -1;
        } else if (!may_go_on(f, begun_bytes, &n_short, err))
            return -1;
    }
}

static int get(ty_s3 *s3, const ty_s3_place *at, const target *to, ty_s3_object *out, ty_error *err)
{
    ty_error own = {0};
    fetch f = {.s3 = s3, .at = at, .to = to, .object = {.key = at->key, .modified_ms = -1}};
    err = err ? err : &own;
    if (ty_s3_check_key(at->key, err) < 0)
        return -1;
    ty_answer_init(&f.answer);
    int rc = get_all(&f, err);
    if (rc < 0 && !strstr(err->message, "s3://"))
        ty_error_wrap(err, "s3://%s/%.300s", at->bucket, at->key);
    if (rc == 0 && out)
        *out = f.object;
    ty_checksum_drop(&f.sum);
    ty_answer_fini(&f.answer);
    return rc;
}

/* ---- where it goes ---- */

static int write_file(void *ctx, const void *bytes, size_t n_bytes, ty_error *err)
{
    return ty_file_writer_add(ctx, bytes, n_bytes, err);
}

static int restart_file(void *ctx, ty_error *err)
{
    ty_file_writer *w = ctx;
    if (ftruncate(w->fd, 0) < 0 || lseek(w->fd, 0, SEEK_SET) < 0)
        return ty_error_set(err, TY_E_IO, "cannot begin again in %s", w->path);
    w->n_bytes = 0;
    return 0;
}

int ty_s3_get(ty_s3 *s3, const ty_s3_place *at, const char *path, ty_s3_object *out, ty_error *err)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    if (get(s3, at, &(target){write_file, restart_file, &w}, out, err) < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    return ty_file_writer_commit(&w, err);
}

static int write_fd(void *ctx, const void *bytes, size_t n_bytes, ty_error *err)
{
    return ty_file_write_all(*(int *)ctx, bytes, n_bytes, "what comes from S3", err);
}

int ty_s3_get_fd(ty_s3 *s3, const ty_s3_place *at, int fd, ty_s3_object *out, ty_error *err)
{
    return get(s3, at, &(target){write_fd, NULL, &fd}, out, err);
}

typedef struct into_buf {
    ty_buf *out;
    size_t begun; /* what was in it before */
} into_buf;

static int write_buf(void *ctx, const void *bytes, size_t n_bytes, ty_error *err)
{
    into_buf *into = ctx;
    if (ty_buf_add(into->out, bytes, n_bytes) == 0)
        return 0;
    return ty_error_set(err, TY_E_LIMIT, "the object is larger than the %zu bytes that are expected at most",
                        into->out->max_bytes);
}

static int restart_buf(void *ctx, ty_error *err)
{
    into_buf *into = ctx;
    (void)err;
    into->out->len = into->begun;
    into->out->data[into->begun] = 0;
    return 0;
}

int ty_s3_get_bytes(ty_s3 *s3, const ty_s3_place *at, ty_buf *out, ty_error *err)
{
    into_buf into = {out, out->len};
    return get(s3, at, &(target){write_buf, restart_buf, &into}, NULL, err);
}
