/* inflate.c - a row of functions for each compression; members and frames are counted here. */
#include "container/input/inflate.h"

#include "base/dl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

/* zlib counts in 32 bits. */
#define INFLATE_SLICE ((size_t)1 << 30)

typedef enum inflate_result { INFLATE_FAILED = -1, INFLATE_GOES_ON, INFLATE_MEMBER_ENDS } inflate_result;

typedef struct inflate_row {
    const char *name, *suffix;
    bool many; /* members may follow one another */
    int (*begin)(ty_inflate *z, ty_error *err);
    /* Takes from fed and gives to out; says how much of both. */
    inflate_result (*run)(ty_inflate *z, uint8_t *out, size_t max, size_t *n_used, size_t *n_out, ty_error *err);
    void (*end)(ty_inflate *z);
} inflate_row;

static int inflate_no_memory(const ty_inflate *z, ty_error *err)
{
    return ty_error_set(err, TY_E_LIMIT, "no memory to inflate %s data", ty_packing_name(z->packing));
}

static int inflate_damaged(const ty_inflate *z, const char *why, ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "%s data are damaged near byte %llu: %s", ty_packing_name(z->packing),
                 (unsigned long long)z->n_in, why != NULL ? why : "the file ends within them");
    return ty_error_help(err, "the file was cut short or changed while it was written or copied: fetch it again");
}

/* --- gzip and zlib --- */

static int zlib_begin(ty_inflate *z, ty_error *err)
{
    z_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return inflate_no_memory(z, err);
    if (inflateInit2(s, (z->packing == TY_PACKING_GZIP ? 16 : 0) + MAX_WBITS) != Z_OK) {
        free(s);
        return inflate_no_memory(z, err);
    }
    z->state = s;
    return 0;
}

static inflate_result zlib_run(ty_inflate *z, uint8_t *out, size_t max, size_t *n_used, size_t *n_out, ty_error *err)
{
    z_stream *s = z->state;
    if (z->between && z->n_members > 0 && inflateReset(s) != Z_OK)
        return inflate_no_memory(z, err);
    uInt in = (uInt)(z->n_fed < INFLATE_SLICE ? z->n_fed : INFLATE_SLICE);
    uInt room = (uInt)(max < INFLATE_SLICE ? max : INFLATE_SLICE);
    s->next_in = (Bytef *)(uintptr_t)z->fed;
    s->avail_in = in;
    s->next_out = out;
    s->avail_out = room;
    int rc = inflate(s, Z_NO_FLUSH);
    *n_used = in - s->avail_in;
    *n_out = room - s->avail_out;
    if (rc == Z_MEM_ERROR)
        return inflate_no_memory(z, err);
    if (rc == Z_NEED_DICT)
        return inflate_damaged(z, "it asks for a dictionary", err);
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
        z->n_in += *n_used;
        return inflate_damaged(z, s->msg, err);
    }
    return rc == Z_STREAM_END ? INFLATE_MEMBER_ENDS : INFLATE_GOES_ON;
}

static void zlib_end(ty_inflate *z)
{
    inflateEnd(z->state);
    free(z->state);
}

/* --- Zstandard --- */

static struct zstd {
    ZSTD_DStream *(*new)(void);
    size_t (*free)(ZSTD_DStream *);
    size_t (*run)(ZSTD_DStream *, ZSTD_outBuffer *, ZSTD_inBuffer *);
    unsigned (*is_error)(size_t);
    const char *(*error_name)(size_t);
    unsigned long long (*content_size)(const void *, size_t);
} zstd;
static ty_error zstd_error;
static pthread_once_t zstd_once = PTHREAD_ONCE_INIT;

static void zstd_open(void)
{
    static const char *const names[] = {"libzstd.so.1", NULL};
    static const ty_dl_symbol symbols[] = {
        {"ZSTD_createDStream", offsetof(struct zstd, new), false},
        {"ZSTD_freeDStream", offsetof(struct zstd, free), false},
        {"ZSTD_decompressStream", offsetof(struct zstd, run), false},
        {"ZSTD_isError", offsetof(struct zstd, is_error), false},
        {"ZSTD_getErrorName", offsetof(struct zstd, error_name), false},
        {"ZSTD_getFrameContentSize", offsetof(struct zstd, content_size), false},
    };
    void *handle;
    if (ty_dl_open(names, symbols, sizeof symbols / sizeof symbols[0], &zstd, &handle, &zstd_error) == 0)
        return;
    ty_error_wrap(&zstd_error, "Zstandard data cannot be read");
    ty_error_help(&zstd_error, "install libzstd1, or compress the files with gzip");
}

static int zstd_begin(ty_inflate *z, ty_error *err)
{
    pthread_once(&zstd_once, zstd_open);
    if (zstd_error.code != TY_E_NONE) {
        if (err != NULL)
            *err = zstd_error;
        return -1;
    }
    z->state = zstd.new();
    return z->state != NULL ? 0 : inflate_no_memory(z, err);
}

/* The library holds a frame's declared size against its blocks, unless the last one is empty. */
static bool zstd_has_all(const ty_inflate *z)
{
    static const unsigned long long unknown = 0ull - 1, no_header = 0ull - 2; /* as zstd.h has them */
    unsigned long long declared = zstd.content_size(z->head, z->n_head);
    return declared == unknown || declared == no_header || declared == z->n_member;
}

static void zstd_note(ty_inflate *z, size_t n_used, size_t n_out)
{
    size_t room = sizeof z->head - z->n_head, n = n_used < room ? n_used : room;
    memcpy(z->head + z->n_head, z->fed, n);
    z->n_head += n;
    z->n_member += n_out;
}

static inflate_result zstd_run(ty_inflate *z, uint8_t *out, size_t max, size_t *n_used, size_t *n_out, ty_error *err)
{
    ZSTD_inBuffer in = {z->fed, z->n_fed, 0};
    ZSTD_outBuffer room = {out, max, 0};
    size_t rc = zstd.run(z->state, &room, &in);
    *n_used = in.pos;
    *n_out = room.pos;
    if (zstd.is_error(rc))
        return inflate_damaged(z, zstd.error_name(rc), err);
    zstd_note(z, in.pos, room.pos);
    if (rc != 0)
        return INFLATE_GOES_ON;
    bool is_whole = zstd_has_all(z);
    z->n_head = 0;
    z->n_member = 0;
    return is_whole ? INFLATE_MEMBER_ENDS : inflate_damaged(z, "a frame of another size than it declares", err);
}

static void zstd_end(ty_inflate *z)
{
    zstd.free(z->state);
}

/* --- All of them --- */

static const inflate_row inflate_rows[] = {
    [TY_PACKING_GZIP] = {"gzip", ".gz", true, zlib_begin, zlib_run, zlib_end},
    [TY_PACKING_ZLIB] = {"zlib", ".zlib", false, zlib_begin, zlib_run, zlib_end},
    [TY_PACKING_ZSTD] = {"Zstandard", ".zst", true, zstd_begin, zstd_run, zstd_end},
};
#define INFLATE_N_ROWS (sizeof inflate_rows / sizeof inflate_rows[0])

const char *ty_packing_name(ty_packing p)
{
    return (size_t)p < INFLATE_N_ROWS && p != TY_PACKING_NONE ? inflate_rows[p].name : "no compression";
}

size_t ty_packing_suffix(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = TY_PACKING_GZIP; i < INFLATE_N_ROWS; i++) {
        size_t k = strlen(inflate_rows[i].suffix);
        if (n > k && strcasecmp(name + n - k, inflate_rows[i].suffix) == 0)
            return k;
    }
    return 0;
}

/* Two bytes that one in a thousand files would have by chance, among them TFRecords of 376 bytes: so something must
 * come out of them, or the stream must end. */
static bool packing_is_zlib(const uint8_t *head, size_t n)
{
    if (n < 8 || (head[0] & 15) != 8 || head[0] >> 4 > 7 || (head[0] << 8 | head[1]) % 31 != 0 || (head[1] & 32) != 0)
        return false;
    z_stream s = {0};
    uint8_t out[256];
    if (inflateInit(&s) != Z_OK)
        return false;
    s.next_in = (Bytef *)(uintptr_t)head;
    s.avail_in = (uInt)(n < TY_PACKING_HEAD_BYTES ? n : TY_PACKING_HEAD_BYTES);
    s.next_out = out;
    s.avail_out = sizeof out;
    int rc = inflate(&s, Z_NO_FLUSH);
    bool fits = rc == Z_STREAM_END || rc == Z_OK || (rc == Z_BUF_ERROR && s.avail_out == 0);
    inflateEnd(&s);
    return fits;
}

ty_packing ty_packing_of(const uint8_t *head, size_t n)
{
    if (n >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8)
        return TY_PACKING_GZIP;
    if (n >= 4 && head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd)
        return TY_PACKING_ZSTD;
    if (n >= 4 && head[0] >> 4 == 5 && head[1] == 0x2a && head[2] == 0x4d &&
        head[3] == 0x18) /* a frame to be skipped */
        return TY_PACKING_ZSTD;
    return packing_is_zlib(head, n) ? TY_PACKING_ZLIB : TY_PACKING_NONE;
}

int ty_inflate_init(ty_inflate *z, ty_packing packing, uint64_t max_bytes, ty_error *err)
{
    *z = (ty_inflate){.packing = packing, .max_bytes = max_bytes != 0 ? max_bytes : UINT64_MAX, .between = true};
    if (packing <= TY_PACKING_NONE || (size_t)packing >= INFLATE_N_ROWS)
        return ty_error_set(err, TY_E_INTERNAL, "data without compression are not inflated");
    if (inflate_rows[packing].begin(z, err) == 0)
        return 0;
    *z = (ty_inflate){0};
    return -1;
}

void ty_inflate_fini(ty_inflate *z)
{
    if (z->state != NULL)
        inflate_rows[z->packing].end(z);
    *z = (ty_inflate){0};
}

void ty_inflate_feed(ty_inflate *z, const void *bytes, size_t n)
{
    z->fed = bytes;
    z->n_fed = n;
}

static int inflate_grew(const ty_inflate *z, ty_error *err)
{
    ty_error_set(err, TY_E_LIMIT, "%s data grow past the limit of %llu bytes", ty_packing_name(z->packing),
                 (unsigned long long)z->max_bytes);
    return ty_error_help(err, "split the file, or store it uncompressed so that it can be mapped");
}

static int inflate_foreign(const ty_inflate *z, ty_error *err)
{
    return ty_error_set(err, TY_E_DATA, "bytes that are not %s follow the last member, at byte %llu",
                        ty_packing_name(z->packing), (unsigned long long)z->n_in);
}

/* One call of the library; out has room for a byte at least. */
static int inflate_once(ty_inflate *z, uint8_t *out, size_t max, size_t *n_out, ty_error *err)
{
    const inflate_row *row = &inflate_rows[z->packing];
    bool is_behind = z->between && z->n_members > 0;
    size_t n_used = 0;
    *n_out = 0;
    if (is_behind && (!row->many || (z->n_fed >= 4 && ty_packing_of(z->fed, z->n_fed) != z->packing)))
        return inflate_foreign(z, err);
    inflate_result rc = row->run(z, out, max, &n_used, n_out, err);
    if (rc == INFLATE_FAILED)
        return -1;
    z->fed += n_used;
    z->n_fed -= n_used;
    z->n_in += n_used;
    z->n_out += *n_out;
    z->n_members += rc == INFLATE_MEMBER_ENDS;
    z->between = rc == INFLATE_MEMBER_ENDS;
    z->is_pending = !z->between && *n_out == max;
    if (z->n_out > z->max_bytes)
        return inflate_grew(z, err);
    return n_used > 0 || *n_out > 0 || z->n_fed == 0 ? 0 : inflate_damaged(z, "nothing comes out of it", err);
}

int ty_inflate_take(ty_inflate *z, uint8_t *out, size_t max, size_t *n_out, ty_error *err)
{
    size_t made = 0, n = 0;
    while (made < max && (z->n_fed > 0 || z->is_pending)) {
        uint64_t room = z->max_bytes - z->n_out;
        uint8_t beyond;
        bool fits = room > 0; /* at the limit a single byte more is one too many, and an end is fine */
        size_t want = !fits ? 1 : max - made < room ? max - made : (size_t)room;
        if (inflate_once(z, fits ? out + made : &beyond, want, &n, err) < 0)
            return -1;
        made += fits ? n : 0;
    }
    *n_out = made;
    return 0;
}

int ty_inflate_end(const ty_inflate *z, ty_error *err)
{
    if (z->between && z->n_members > 0)
        return 0;
    return inflate_damaged(z, "unexpected end", err);
}
