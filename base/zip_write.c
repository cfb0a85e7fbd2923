/* zip_write.c - archives written. Section numbers are those of APPNOTE.TXT 6.3. */
#include "base/zip.h"

#include <string.h>
#include <zlib.h>

#define ZIP_MAX_32        0xffffffffu /* and stands for "see the zip64 field" */
#define ZIP_MAX_16        0xffffu
#define ZIP_MAX_DIRECTORY ((size_t)256 << 20)
#define ZIP_FLAGS_KEPT    0x0806u /* how hard deflate tried, and UTF-8 names */
#define ZIP_MADE_BY_UNIX  (3u << 8)
#define ZIP_PLAIN_FILE    (0100600u << 16) /* external attributes of what we add, as Python's zipfile sets them */
#define ZIP_VERSION_BASIC 20u
#define ZIP_VERSION_ZIP64 45u

/* A header is put together here before it goes anywhere. */
typedef struct record {
    uint8_t b[128];
    size_t n;
} record;

static void put_int(record *r, uint64_t v, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++, v >>= 8)
        r->b[r->n++] = (uint8_t)v;
}

static uint64_t low_32(uint64_t v)
{
    return v < ZIP_MAX_32 ? v : ZIP_MAX_32;
}

static int sink(ty_zip_writer *w, const void *bytes, size_t n, ty_error *err)
{
    w->at += n;
    return n ? w->sink(w->ctx, bytes, n, err) : 0;
}

static bool is_large(const ty_zip_entry *e)
{
    return e->plain_bytes >= ZIP_MAX_32 || e->packed_bytes >= ZIP_MAX_32;
}

/* What local header and directory have in the same order (4.4). */
static void put_facts(record *r, const ty_zip_entry *e, bool zip64, size_t extra_bytes)
{
    put_int(r, zip64 ? ZIP_VERSION_ZIP64 : ZIP_VERSION_BASIC, 2);
    put_int(r, e->flags, 2);
    put_int(r, (uint64_t)e->method, 2);
    put_int(r, e->time, 4);
    put_int(r, e->crc32, 4);
    put_int(r, low_32(e->packed_bytes), 4);
    put_int(r, low_32(e->plain_bytes), 4);
    put_int(r, e->name_bytes, 2);
    put_int(r, extra_bytes, 2);
}

/* 4.3.7. The zip64 field of a local header has both sizes or none (4.5.3). */
static int put_local(ty_zip_writer *w, const ty_zip_entry *e, ty_error *err)
{
    record head = {0}, extra = {0};
    if (is_large(e)) {
        put_int(&extra, 1, 2);
        put_int(&extra, 16, 2);
        put_int(&extra, e->plain_bytes, 8);
        put_int(&extra, e->packed_bytes, 8);
    }
    put_int(&head, 0x04034b50, 4);
    ty_zip_entry shown = *e;
    if (is_large(e))
        shown.plain_bytes = shown.packed_bytes = ZIP_MAX_32;
    put_facts(&head, &shown, is_large(e), extra.n);
    if (sink(w, head.b, head.n, err) < 0 || sink(w, e->name, e->name_bytes, err) < 0)
        return -1;
    return sink(w, extra.b, extra.n, err);
}

/* 4.3.12 */
static void note_entry(ty_zip_writer *w, const ty_zip_entry *e)
{
    record head = {0}, extra = {0};
    uint64_t wide[3];
    int n_wide = 0;
    if (e->plain_bytes >= ZIP_MAX_32)
        wide[n_wide++] = e->plain_bytes;
    if (e->packed_bytes >= ZIP_MAX_32)
        wide[n_wide++] = e->packed_bytes;
    if (e->header_at >= ZIP_MAX_32)
        wide[n_wide++] = e->header_at;
    if (n_wide) {
        put_int(&extra, 1, 2);
        put_int(&extra, (uint64_t)n_wide * 8, 2);
        for (int i = 0; i < n_wide; i++)
            put_int(&extra, wide[i], 8);
    }
    put_int(&head, 0x02014b50, 4);
    put_int(&head, ZIP_MADE_BY_UNIX | (n_wide ? ZIP_VERSION_ZIP64 : ZIP_VERSION_BASIC), 2);
    put_facts(&head, e, n_wide > 0, extra.n);
    put_int(&head, 0, 2 + 2 + 2); /* comment, disk, internal attributes */
    put_int(&head, e->mode ? (uint64_t)e->mode << 16 : ZIP_PLAIN_FILE, 4);
    put_int(&head, low_32(e->header_at), 4);
    ty_buf_add(&w->directory, head.b, head.n);
    ty_buf_add(&w->directory, e->name, e->name_bytes);
    ty_buf_add(&w->directory, extra.b, extra.n);
    w->n_entries++;
}

static int put_member(ty_zip_writer *w, ty_zip_entry *e, const void *packed, ty_error *err)
{
    if (e->name_bytes > ZIP_MAX_16)
        return ty_error_set(err, TY_E_LIMIT, "zip: a name of %zu bytes, at most %u fit", e->name_bytes, ZIP_MAX_16);
    e->header_at = w->at;
    if (put_local(w, e, err) < 0 || sink(w, packed, (size_t)e->packed_bytes, err) < 0)
        return -1;
    note_entry(w, e);
    return 0;
}

void ty_zip_writer_init(ty_zip_writer *w, ty_zip_sink *sink, void *ctx)
{
    *w = (ty_zip_writer){.sink = sink, .ctx = ctx};
    ty_buf_init(&w->directory, ZIP_MAX_DIRECTORY);
}

int ty_zip_writer_add(ty_zip_writer *w, const char *name, uint32_t time, const void *bytes, size_t n, ty_error *err)
{
    ty_zip_entry e = {.name = name,
                      .name_bytes = strlen(name),
                      .crc32 = n ? (uint32_t)crc32_z(0, bytes, n) : 0,
                      .packed_bytes = n,
                      .plain_bytes = n,
                      .time = time};
    return put_member(w, &e, bytes, err);
}

int ty_zip_writer_copy(ty_zip_writer *w, const ty_zip *z, const ty_zip_entry *from, ty_error *err)
{
    uint64_t at;
    ty_zip_entry e = *from;
    if (ty_zip_locate(z, from, &at, err) < 0)
        return ty_error_wrap(err, "zip: member \"%.*s\"", (int)from->name_bytes, from->name);
    e.flags &= ZIP_FLAGS_KEPT;
    return put_member(w, &e, z->data + at, err);
}

/* 4.3.14 to 4.3.16 */
int ty_zip_writer_finish(ty_zip_writer *w, ty_error *err)
{
    uint64_t at = w->at, bytes = w->directory.len;
    record end = {0};
    if (w->directory.failed)
        return ty_error_set(err, TY_E_LIMIT, "zip: no room for a directory of %llu members",
                            (unsigned long long)w->n_entries);
    if (sink(w, w->directory.data, w->directory.len, err) < 0)
        return -1;
    if (at >= ZIP_MAX_32 || bytes >= ZIP_MAX_32 || w->n_entries >= ZIP_MAX_16) {
        uint64_t end64_at = w->at;
        put_int(&end, 0x06064b50, 4), put_int(&end, 44, 8);
        put_int(&end, ZIP_VERSION_ZIP64, 2), put_int(&end, ZIP_VERSION_ZIP64, 2), put_int(&end, 0, 8);
        put_int(&end, w->n_entries, 8), put_int(&end, w->n_entries, 8), put_int(&end, bytes, 8), put_int(&end, at, 8);
        put_int(&end, 0x07064b50, 4), put_int(&end, 0, 4), put_int(&end, end64_at, 8), put_int(&end, 1, 4);
    }
    uint64_t n = w->n_entries < ZIP_MAX_16 ? w->n_entries : ZIP_MAX_16;
    put_int(&end, 0x06054b50, 4), put_int(&end, 0, 4), put_int(&end, n, 2), put_int(&end, n, 2);
    put_int(&end, low_32(bytes), 4), put_int(&end, low_32(at), 4), put_int(&end, 0, 2);
    return sink(w, end.b, end.n, err);
}

void ty_zip_writer_fini(ty_zip_writer *w)
{
    ty_buf_fini(&w->directory);
}
