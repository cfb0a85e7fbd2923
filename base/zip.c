/* zip.c - central directory reader. Section numbers are those of APPNOTE.TXT 6.3. */
#include "base/zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define ZIP_END_BYTES         22 /* 4.3.16 end of central directory record, without its comment */
#define ZIP_END64_BYTES       56 /* 4.3.14 zip64 end of central directory record */
#define ZIP_LOCATOR_BYTES     20 /* 4.3.15 zip64 end of central directory locator */
#define ZIP_RECORD_BYTES      46 /* 4.3.12 central directory header, without its variable part */
#define ZIP_LOCAL_BYTES       30 /* 4.3.7 local file header, without its variable part */
#define ZIP_MAX_ENTRIES       1000000
#define ZIP_MADE_BY_UNIX      3    /* 4.4.2: the upper half of the external attributes is then a mode */
#define ZIP_MAX_DEFLATE_RATIO 1032 /* zlib's technical note: no deflate stream grows more */

enum {
    ZIP_END = 0x06054b50,
    ZIP_END64 = 0x06064b50,
    ZIP_LOCATOR = 0x07064b50,
    ZIP_RECORD = 0x02014b50,
    ZIP_LOCAL = 0x04034b50
};

static uint32_t zip_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t zip_u32(const uint8_t *p)
{
    return zip_u16(p) | zip_u16(p + 2) << 16;
}

static uint64_t zip_u64(const uint8_t *p)
{
    return zip_u32(p) | (uint64_t)zip_u32(p + 4) << 32;
}

/* Whether [at, at + n) lies inside the archive. */
static bool zip_holds(const ty_zip *z, uint64_t at, uint64_t n)
{
    return at <= z->n && n <= z->n - at;
}

/* The end record is searched from the back: a comment of up to 65,535 bytes may follow it. */
static const uint8_t *zip_find_end(const ty_zip *z)
{
    if (z->n < ZIP_END_BYTES)
        return NULL;
    size_t last = z->n - ZIP_END_BYTES;
    size_t first = last > 65535 ? last - 65535 : 0;
    for (size_t at = last + 1; at-- > first;) {
        const uint8_t *p = z->data + at;
        if (zip_u32(p) == ZIP_END && zip_u16(p + 20) == last - at)
            return p;
    }
    return NULL;
}

/* Takes counts from the zip64 end record, if a locator stands before the plain one. */
static int zip_open_64(ty_zip *z, const uint8_t *end, ty_error *err)
{
    if (end - z->data < ZIP_LOCATOR_BYTES || zip_u32(end - ZIP_LOCATOR_BYTES) != ZIP_LOCATOR)
        return 0;
    uint64_t at = zip_u64(end - ZIP_LOCATOR_BYTES + 8);
    if (!zip_holds(z, at, ZIP_END64_BYTES) || zip_u32(z->data + at) != ZIP_END64)
        return ty_error_set(err, TY_E_DATA, "zip: no zip64 end record at byte %llu, where the locator points",
                            (unsigned long long)at);
    const uint8_t *p = z->data + at;
    z->n_entries = zip_u64(p + 32);
    z->directory_bytes = zip_u64(p + 40);
    z->directory_at = zip_u64(p + 48);
    return 0;
}

int ty_zip_open(const uint8_t *data, size_t n, ty_zip *z, ty_error *err)
{
    *z = (ty_zip){.data = data, .n = n};
    const uint8_t *end = zip_find_end(z);
    if (end == NULL) {
        ty_error_set(err, TY_E_DATA, "zip: no end record in the last 64 KiB of %zu bytes", n);
        return ty_error_help(err, "the file is no zip archive, or it was cut short");
    }
    z->n_entries = zip_u16(end + 10);
    z->directory_bytes = zip_u32(end + 12);
    z->directory_at = zip_u32(end + 16);
    if (zip_u16(end + 4) != zip_u16(end + 6))
        return ty_error_set(err, TY_E_DATA, "zip: the archive is split over several disks");
    if (zip_open_64(z, end, err) < 0)
        return -1;
    if (!zip_holds(z, z->directory_at, z->directory_bytes) || z->n_entries > z->directory_bytes / ZIP_RECORD_BYTES)
        return ty_error_set(err, TY_E_DATA,
                            "zip: a directory of %llu bytes at byte %llu with %llu members does not fit into %zu bytes",
                            (unsigned long long)z->directory_bytes, (unsigned long long)z->directory_at,
                            (unsigned long long)z->n_entries, n);
    if (z->n_entries > ZIP_MAX_ENTRIES)
        return ty_error_set(err, TY_E_LIMIT, "zip: more than %d members", ZIP_MAX_ENTRIES);
    return 0;
}

/* Extra field 0x0001 (4.5.3): the 64-bit values of exactly those fields that are all ones, in this order. */
static int zip_apply_64(const uint8_t *p, size_t n, ty_zip_entry *e, ty_error *err)
{
    uint64_t *slots[3] = {&e->plain_bytes, &e->packed_bytes, &e->header_at};
    while (n >= 4) {
        uint32_t id = zip_u16(p), size = zip_u16(p + 2);
        if (size > n - 4)
            break;
        const uint8_t *value = p + 4;
        uint32_t left = size;
        for (int k = 0; id == 1 && k < 3; k++) {
            if (*slots[k] != 0xffffffffu)
                continue;
            if (left < 8)
                return ty_error_set(err, TY_E_DATA, "zip: the zip64 field of a member is too short");
            *slots[k] = zip_u64(value);
            value += 8;
            left -= 8;
        }
        if (id == 1)
            return 0;
        p += 4 + size;
        n -= 4 + size;
    }
    return 0;
}

int ty_zip_next(const ty_zip *z, ty_zip_walk *walk, ty_zip_entry *e, ty_error *err)
{
    if (walk->seen == z->n_entries)
        return 0;
    uint64_t left = z->directory_bytes - walk->at;
    const uint8_t *p = z->data + z->directory_at + walk->at;
    if (left < ZIP_RECORD_BYTES || zip_u32(p) != ZIP_RECORD)
        return ty_error_set(err, TY_E_DATA, "zip: no directory record number %llu at byte %llu",
                            (unsigned long long)walk->seen, (unsigned long long)(z->directory_at + walk->at));
    size_t name = zip_u16(p + 28), extra = zip_u16(p + 30), comment = zip_u16(p + 32);
    if (name + extra + comment > left - ZIP_RECORD_BYTES)
        return ty_error_set(err, TY_E_DATA, "zip: directory record number %llu runs past the directory's end",
                            (unsigned long long)walk->seen);
    *e = (ty_zip_entry){.name = (const char *)p + ZIP_RECORD_BYTES,
                        .name_bytes = name,
                        .method = (int)zip_u16(p + 10),
                        .crc32 = zip_u32(p + 16),
                        .packed_bytes = zip_u32(p + 20),
                        .plain_bytes = zip_u32(p + 24),
                        .header_at = zip_u32(p + 42),
                        .flags = zip_u16(p + 8),
                        .time = zip_u32(p + 12),
                        .mode = p[5] == ZIP_MADE_BY_UNIX ? zip_u16(p + 40) : 0};
    if (zip_u16(p + 8) & 1)
        return ty_error_set(err, TY_E_DATA, "zip: member \"%.*s\" is encrypted", (int)name, e->name);
    walk->at += ZIP_RECORD_BYTES + name + extra + comment;
    walk->seen++;
    return zip_apply_64(p + ZIP_RECORD_BYTES + name, extra, e, err) < 0 ? -1 : 1;
}

static int zip_inflate(const uint8_t *in, uint64_t n_in, uint8_t *out, uint64_t n_out, ty_error *err)
{
    z_stream s = {0};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return ty_error_set(err, TY_E_LIMIT, "no memory to inflate");
    uint64_t read = 0, written = 0;
    int rc = Z_OK;
    while (rc == Z_OK) {
        uInt take = (uInt)(n_in - read < (1u << 30) ? n_in - read : (1u << 30));
        uInt room = (uInt)(n_out - written < (1u << 30) ? n_out - written : (1u << 30));
        s.next_in = (Bytef *)(uintptr_t)(in + read);
        s.avail_in = take;
        s.next_out = out + written;
        s.avail_out = room;
        rc = inflate(&s, Z_NO_FLUSH);
        read += take - s.avail_in;
        written += room - s.avail_out;
        if (rc == Z_OK && s.avail_in == take && s.avail_out == room)
            rc = Z_BUF_ERROR;
    }
    inflateEnd(&s);
    if (rc != Z_STREAM_END || written != n_out)
        return ty_error_set(err, TY_E_DATA, "deflated data are damaged: %llu of %llu bytes came out",
                            (unsigned long long)written, (unsigned long long)n_out);
    return 0;
}

static int zip_check_crc(const ty_zip_entry *e, const uint8_t *p, ty_error *err)
{
    uLong crc = crc32_z(0, p, (size_t)e->plain_bytes);
    if (crc == e->crc32)
        return 0;
    return ty_error_set(err, TY_E_DATA, "the checksum is %08lx, expected %08lx", crc, (unsigned long)e->crc32);
}

static int zip_read_deflated(const ty_zip_entry *e, const uint8_t *packed, uint8_t **owned, ty_error *err)
{
    if (e->plain_bytes / ZIP_MAX_DEFLATE_RATIO > e->packed_bytes)
        return ty_error_set(err, TY_E_DATA, "%llu bytes cannot inflate to the %llu that the directory promises",
                            (unsigned long long)e->packed_bytes, (unsigned long long)e->plain_bytes);
    uint8_t *plain = malloc(e->plain_bytes > 0 ? (size_t)e->plain_bytes : 1);
    if (plain == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %llu bytes", (unsigned long long)e->plain_bytes);
    if (zip_inflate(packed, e->packed_bytes, plain, e->plain_bytes, err) < 0 || zip_check_crc(e, plain, err) < 0) {
        free(plain);
        return -1;
    }
    *owned = plain;
    return 0;
}

int ty_zip_locate(const ty_zip *z, const ty_zip_entry *e, uint64_t *at, ty_error *err)
{
    if (!zip_holds(z, e->header_at, ZIP_LOCAL_BYTES) || zip_u32(z->data + e->header_at) != ZIP_LOCAL)
        return ty_error_set(err, TY_E_DATA, "no local header at byte %llu", (unsigned long long)e->header_at);
    const uint8_t *local = z->data + e->header_at;
    *at = e->header_at + ZIP_LOCAL_BYTES + zip_u16(local + 26) + zip_u16(local + 28);
    if (!zip_holds(z, *at, e->packed_bytes))
        return ty_error_set(err, TY_E_DATA, "%llu bytes at byte %llu run past the archive's end",
                            (unsigned long long)e->packed_bytes, (unsigned long long)*at);
    return 0;
}

static int zip_read_member(const ty_zip *z, const ty_zip_entry *e, size_t max_bytes, const uint8_t **out,
                           uint8_t **owned, ty_error *err)
{
    uint64_t at;
    if (ty_zip_locate(z, e, &at, err) < 0)
        return -1;
    if (e->plain_bytes > max_bytes)
        return ty_error_set(err, TY_E_LIMIT, "%llu bytes, at most %zu are read", (unsigned long long)e->plain_bytes,
                            max_bytes);
    if (e->method == 8) {
        if (zip_read_deflated(e, z->data + at, owned, err) < 0)
            return -1;
        *out = *owned;
        return 0;
    }
    if (e->method != 0)
        return ty_error_set(err, TY_E_DATA, "compression method %d, expected 0 (stored) or 8 (deflated)", e->method);
    if (e->packed_bytes != e->plain_bytes)
        return ty_error_set(err, TY_E_DATA, "a stored member whose two sizes differ");
    *out = z->data + at;
    return zip_check_crc(e, *out, err);
}

int ty_zip_read(const ty_zip *z, const ty_zip_entry *e, size_t max_bytes, const uint8_t **out, uint8_t **owned,
                ty_error *err)
{
    *owned = NULL;
    if (zip_read_member(z, e, max_bytes, out, owned, err) == 0)
        return 0;
    return ty_error_wrap(err, "zip: member \"%.*s\"", (int)e->name_bytes, e->name);
}

int ty_zip_find(const ty_zip *z, const char *name, ty_zip_entry *out, bool *found, ty_error *err)
{
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    int more;
    *found = false;
    while ((more = ty_zip_next(z, &walk, &e, err)) > 0) {
        if (e.name_bytes != strlen(name) || memcmp(e.name, name, e.name_bytes) != 0)
            continue;
        *out = e;
        *found = true;
        return 0;
    }
    return more;
}
