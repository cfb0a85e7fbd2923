/* frame.c - see frame.h. */
#include "container/input/frame.h"

#include "base/hash.h"

#include <endian.h>
#include <string.h>

static uint32_t frame_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t frame_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static int frame_fault(const ty_frames *f, ty_code code, const char *what, ty_error *err)
{
    return ty_error_set(err, code, "record %lld at byte %zu: %s", (long long)f->record, f->base + f->at, what);
}

/* ---- TFRecord: length, its checksum, payload, its checksum ---- */

enum { TFRECORD_HEAD = 12, TFRECORD_TAIL = 4 };

static int frame_too_long(const ty_frames *f, uint64_t n, ty_error *err)
{
    ty_error_set(err, TY_E_LIMIT, "record %lld at byte %zu has %llu bytes, more than the limit of %llu",
                 (long long)f->record, f->base + f->at, (unsigned long long)n, (unsigned long long)TY_FRAME_MAX_BYTES);
    return -1;
}

static int frame_truncated(const ty_frames *f, ty_error *err)
{
    if (f->more)
        return TY_FRAMES_SHORT;
    frame_fault(f, TY_E_DATA, "the file ends within it", err);
    return ty_error_help(err, "the file was cut short while it was written or copied: make it anew");
}

static int frame_tfrecord(ty_frames *f, ty_frame *out, ty_error *err)
{
    const uint8_t *p = f->bytes + f->at;
    size_t left = f->n - f->at;
    if (left < TFRECORD_HEAD)
        return frame_truncated(f, err);
    uint64_t n = frame_u64(p);
    if (ty_crc32c_mask(ty_crc32c(0, p, 8)) != frame_u32(p + 8)) {
        frame_fault(f, TY_E_DATA, "the checksum of its length does not match", err);
        return ty_error_help(err, "where the next record begins is lost with it: the file is damaged from there on, or "
                                  "is no TFRecord file");
    }
    if (n > TY_FRAME_MAX_BYTES)
        return frame_too_long(f, n, err);
    if (left - TFRECORD_HEAD < n + TFRECORD_TAIL)
        return frame_truncated(f, err);
    *out = (ty_frame){p + TFRECORD_HEAD, n, f->base + f->at, f->record};
    bool is_right = f->unchecked || ty_crc32c_mask(ty_crc32c(0, out->data, n)) == frame_u32(out->data + n);
    if (!is_right)
        frame_fault(f, TY_E_DATA_VALUE, "the checksum of its payload does not match", err);
    f->at += TFRECORD_HEAD + n + TFRECORD_TAIL;
    f->record++;
    return is_right ? 1 : -1;
}

/* ---- RecordIO: magic, three bits of what part it is and 29 of length, payload, padding to 4 ---- */

#define RECORDIO_MAGIC 0xced7230aU
enum { PART_WHOLE, PART_FIRST, PART_MIDDLE, PART_LAST };

/* The part at *at: its kind and payload; moves behind it. */
static int frame_part(const ty_frames *f, size_t *at, unsigned *kind, const uint8_t **data, size_t *n, ty_error *err)
{
    size_t left = f->n - *at;
    if (left < 8)
        return frame_truncated(f, err);
    if (frame_u32(f->bytes + *at) != RECORDIO_MAGIC) {
        frame_fault(f, TY_E_DATA, "expected the magic 0a 23 d7 ce", err);
        ty_error_detail(err, "found %02x %02x %02x %02x at byte %zu", f->bytes[*at], f->bytes[*at + 1],
                        f->bytes[*at + 2], f->bytes[*at + 3], f->base + *at);
        return ty_error_help(err, "the file is damaged from there on, or is no RecordIO file");
    }
    uint32_t word = frame_u32(f->bytes + *at + 4);
    *kind = word >> 29;
    *n = word & ((1U << 29) - 1);
    size_t padded = (*n + 3) / 4 * 4;
    if (left - 8 < (f->more ? padded : *n))
        return frame_truncated(f, err);
    *data = f->bytes + *at + 8;
    *at += 8 + (left - 8 < padded ? *n : padded); /* the last padding may be missing */
    return 0;
}

static int frame_join(ty_frames *f, const uint8_t *data, size_t n, bool is_first, ty_error *err)
{
    static const uint8_t magic[4] = {0x0a, 0x23, 0xd7, 0xce};
    if (!f->joined.data)
        ty_buf_init(&f->joined, TY_FRAME_MAX_BYTES);
    if (is_first)
        ty_buf_clear(&f->joined);
    else if (f->how == TY_FRAMES_RECORDIO_MXNET)
        ty_buf_add(&f->joined, magic, sizeof magic);
    if (ty_buf_add(&f->joined, data, n) < 0)
        return frame_too_long(f, f->joined.len + n, err);
    return 0;
}

/* Joins the first part with the others, which begin at *at. */
static int frame_rest(ty_frames *f, size_t *at, const uint8_t *data, size_t n, ty_error *err)
{
    for (unsigned kind = PART_FIRST; frame_join(f, data, n, kind == PART_FIRST, err) == 0;) {
        if (kind == PART_LAST)
            return 0;
        int rc = frame_part(f, at, &kind, &data, &n, err);
        if (rc != 0)
            return rc;
        if (kind != PART_MIDDLE && kind != PART_LAST)
            return frame_fault(f, TY_E_DATA, "another record begins before its last part", err);
    }
    return -1;
}

static int frame_recordio(ty_frames *f, ty_frame *out, ty_error *err)
{
    size_t at = f->at, n;
    unsigned kind;
    const uint8_t *data;
    int rc = frame_part(f, &at, &kind, &data, &n, err);
    if (rc != 0)
        return rc;
    if (kind != PART_WHOLE && kind != PART_FIRST)
        return frame_fault(f, TY_E_DATA, "it begins with a part that is not the first one", err);
    *out = (ty_frame){data, n, f->base + f->at, f->record};
    if (kind == PART_FIRST) {
        rc = frame_rest(f, &at, data, n, err);
        if (rc != 0)
            return rc;
        out->data = (const uint8_t *)f->joined.data;
        out->n = f->joined.len;
    }
    f->at = at;
    f->record++;
    return 1;
}

/* ---- lines ---- */

static bool frame_is_blank(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
            return false;
    return true;
}

static int frame_line(ty_frames *f, ty_frame *out, ty_error *err)
{
    while (f->at < f->n) {
        const uint8_t *p = f->bytes + f->at, *end = memchr(p + f->looked, '\n', f->n - f->at - f->looked);
        size_t n = end ? (size_t)(end - p) : f->n - f->at;
        if (n > TY_FRAME_MAX_BYTES)
            return frame_too_long(f, n, err);
        f->looked = !end && f->more ? n : 0;
        if (f->looked > 0)
            return TY_FRAMES_SHORT;
        *out = (ty_frame){p, n - (n > 0 && p[n - 1] == '\r'), f->base + f->at, f->record};
        f->at += n + (end != NULL);
        f->record++;
        if (f->how == TY_FRAMES_ALL_LINES || !frame_is_blank(p, n))
            return 1;
    }
    return 0;
}

/* ---- packed rows ---- */

static int frame_packed(ty_frames *f, ty_frame *out, ty_error *err)
{
    uint64_t n, left = f->n - f->at;
    if (left < sizeof n && f->more)
        return TY_FRAMES_SHORT;
    if (left >= sizeof n)
        memcpy(&n, f->bytes + f->at, sizeof n);
    if (left < sizeof n || n > TY_FRAME_MAX_BYTES || (n > left - sizeof n && !f->more))
        return ty_error_set(err, TY_E_DATA, "row %lld does not end within its bytes", (long long)f->record);
    if (n > left - sizeof n)
        return TY_FRAMES_SHORT;
    *out = (ty_frame){f->bytes + f->at + sizeof n, (size_t)n, f->base + f->at, f->record++};
    f->at += sizeof n + (size_t)n;
    return 1;
}

int ty_frames_next(ty_frames *f, ty_frame *out, ty_error *err)
{
    if (ty_frames_are_lines(f->how))
        return frame_line(f, out, err);
    if (f->at >= f->n)
        return 0;
    if (f->how == TY_FRAMES_ROWS) {
        *out = (ty_frame){f->bytes + f->at, 0, f->base + f->at, f->record++};
        f->at++;
        return 1;
    }
    if (f->how == TY_FRAMES_PACKED)
        return frame_packed(f, out, err);
    return f->how == TY_FRAMES_TFRECORD ? frame_tfrecord(f, out, err) : frame_recordio(f, out, err);
}

void ty_frames_fini(ty_frames *f)
{
    if (f->joined.data)
        ty_buf_fini(&f->joined);
    f->joined = (ty_buf){0};
}
