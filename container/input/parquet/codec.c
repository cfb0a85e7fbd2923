/* codec.c - see codec.h. Libraries are opened when the first page needs them (base/dl.h). */
#include "container/input/parquet/codec.h"

#include "base/dl.h"
#include "container/input/bytes.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, SNAPPY, GZIP, LZO, BROTLI, LZ4_FRAMED, ZSTD, LZ4_RAW, N_CODECS };

/* snappy-c.h, brotli/decode.h, lz4.h, lz4frame.h */
static struct codecs {
    int (*snappy)(const char *, size_t, char *, size_t *);
    int (*snappy_length)(const char *, size_t, size_t *);
    int (*brotli)(size_t, const uint8_t *, size_t *, uint8_t *);
    int (*lz4)(const char *, char *, int, int);
    size_t (*lz4f_new)(void **, unsigned);
    size_t (*lz4f)(void *, void *, size_t *, const void *, size_t *, const void *);
    unsigned (*lz4f_is_error)(size_t);
    size_t (*lz4f_free)(void *);
} codecs;

typedef struct codec_library {
    const char *names[2];
    const char *package;
    ty_dl_symbol symbol[5];
    int n_symbols;
    bool is_tried;
    ty_error error;
} codec_library;

static codec_library snappy_library = {
    .names = {"libsnappy.so.1"},
    .package = "libsnappy1v5",
    .symbol = {{"snappy_uncompress", offsetof(struct codecs, snappy), false},
               {"snappy_uncompressed_length", offsetof(struct codecs, snappy_length), false}},
    .n_symbols = 2};
static codec_library brotli_library = {.names = {"libbrotlidec.so.1"},
                                       .package = "libbrotli1",
                                       .symbol = {{"BrotliDecoderDecompress", offsetof(struct codecs, brotli), false}},
                                       .n_symbols = 1};
static codec_library lz4_library = {
    .names = {"liblz4.so.1"},
    .package = "liblz4-1",
    .symbol = {{"LZ4_decompress_safe", offsetof(struct codecs, lz4), false},
               {"LZ4F_createDecompressionContext", offsetof(struct codecs, lz4f_new), false},
               {"LZ4F_decompress", offsetof(struct codecs, lz4f), false},
               {"LZ4F_isError", offsetof(struct codecs, lz4f_is_error), false},
               {"LZ4F_freeDecompressionContext", offsetof(struct codecs, lz4f_free), false}},
    .n_symbols = 5};
static pthread_mutex_t codec_lock = PTHREAD_MUTEX_INITIALIZER;

static void codec_open(codec_library *l)
{
    void *handle;
    l->is_tried = true;
    if (ty_dl_open(l->names, l->symbol, (size_t)l->n_symbols, &codecs, &handle, &l->error) == 0)
        return;
    ty_error_wrap(&l->error, "the file's pages cannot be read");
    ty_error_help(&l->error, "install %s, or write the file with another compression, such as zstd", l->package);
}

/* None but the one that is needed. */
static int codec_need(codec_library *l, ty_error *err)
{
    pthread_mutex_lock(&codec_lock);
    if (!l->is_tried)
        codec_open(l);
    pthread_mutex_unlock(&codec_lock);
    if (l->error.code == TY_E_NONE)
        return 0;
    if (err)
        *err = l->error;
    return -1;
}

static int codec_damaged(ty_error *err)
{
    return ty_error_set(err, TY_E_DATA, "what is compressed does not become what its header says");
}

static int codec_snappy(const uint8_t *in, size_t n, size_t n_out, uint8_t *out, ty_error *err)
{
    size_t length = 0, made = n_out;
    if (codec_need(&snappy_library, err) < 0)
        return -1;
    if (codecs.snappy_length((const char *)in, n, &length) != 0 || length != n_out ||
        codecs.snappy((const char *)in, n, (char *)out, &made) != 0 || made != n_out)
        return codec_damaged(err);
    return 0;
}

static int codec_brotli(const uint8_t *in, size_t n, size_t n_out, uint8_t *out, ty_error *err)
{
    size_t made = n_out;
    if (codec_need(&brotli_library, err) < 0)
        return -1;
    return codecs.brotli(n, in, &made, out) == 1 && made == n_out ? 0 : codec_damaged(err);
}

static bool codec_lz4_block(const uint8_t *in, size_t n, uint8_t *out, size_t n_out)
{
    return n <= INT_MAX && n_out <= INT_MAX &&
           codecs.lz4((const char *)in, (char *)out, (int)n, (int)n_out) == (int)n_out;
}

static size_t codec_u32be(const uint8_t *p)
{
    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

/* Hadoop's frames: bytes of the block as it was and as it is, big-endian, then the block. */
static bool codec_lz4_frames(const uint8_t *in, size_t n, uint8_t *out, size_t n_out)
{
    while (n >= 8 && n_out > 0) {
        size_t was = codec_u32be(in), is = codec_u32be(in + 4);
        if (is > n - 8 || was > n_out || !codec_lz4_block(in + 8, is, out, was))
            return false;
        in += 8 + is, n -= 8 + is;
        out += was, n_out -= was;
    }
    return n == 0 && n_out == 0;
}

static int codec_lz4(int codec, const uint8_t *in, size_t n, size_t n_out, uint8_t *out, ty_error *err)
{
    if (codec_need(&lz4_library, err) < 0)
        return -1;
    bool ok = codec == LZ4_FRAMED && codec_lz4_frames(in, n, out, n_out); /* some have left the frames out */
    return ok || codec_lz4_block(in, n, out, n_out) ? 0 : codec_damaged(err);
}

/* gzip and Zstandard, which files of other formats may be packed with too. */
static int codec_inflate(ty_packing packing, const uint8_t *in, size_t n, size_t n_out, parquet_room *room,
                         ty_error *err)
{
    size_t made = 0;
    free(room->page);
    room->page = NULL;
    room->page_bytes = 0;
    if (ty_inflate_all(packing, in, n, n_out + 1, &room->page, &made, err) < 0)
        return -1;
    return made == n_out ? 0 : codec_damaged(err);
}

static int codec_room(parquet_room *room, size_t n, ty_error *err)
{
    if (room->page != NULL && n <= room->page_bytes)
        return 0;
    free(room->page);
    room->page = malloc(n + 1);
    room->page_bytes = room->page ? n : 0;
    return room->page ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a page of %zu bytes", n);
}

int parquet_unpack(int codec, const uint8_t *in, size_t n, size_t n_out, parquet_room *room, const uint8_t **out,
                   ty_error *err)
{
    static const uint8_t nothing[1];
    int rc;
    if (codec < 0 || codec >= N_CODECS || codec == LZO) {
        ty_error_set(err, TY_E_DATA, "its pages are compressed with %s, which is not read",
                     codec == LZO ? "LZO" : "an unknown codec");
        return ty_error_help(err, "write the file with another compression, such as zstd or snappy");
    }
    *out = n > 0 ? in : nothing;
    if (codec == PLAIN)
        return n == n_out ? 0 : codec_damaged(err);
    if (codec == GZIP || codec == ZSTD)
        rc = codec_inflate(codec == GZIP ? TY_PACKING_GZIP : TY_PACKING_ZSTD, in, n, n_out, room, err);
    else if ((rc = codec_room(room, n_out, err)) == 0)
        rc = codec == SNAPPY   ? codec_snappy(in, n, n_out, room->page, err)
             : codec == BROTLI ? codec_brotli(in, n, n_out, room->page, err)
                               : codec_lz4(codec, in, n, n_out, room->page, err);
    *out = room->page;
    return rc;
}

/* ---- frames ---- */

static bool codec_lz4_frame(void *context, const uint8_t *in, size_t n, uint8_t *out, size_t n_out)
{
    size_t at = 0, made = 0;
    for (size_t rest = 1; rest != 0;) {
        size_t took = n - at, some = n_out - made;
        rest = codecs.lz4f(context, out + made, &some, in + at, &took, NULL);
        if (codecs.lz4f_is_error(rest) || (rest != 0 && took == 0 && some == 0))
            return false;
        at += took;
        made += some;
    }
    return made == n_out;
}

int parquet_unpack_lz4(const uint8_t *in, size_t n, size_t n_out, uint8_t **out, ty_error *err)
{
    enum { VERSION = 100, MOST_FOR_ONE = 255 }; /* bytes that one of a block stands for at most */
    void *context;
    if (codec_need(&lz4_library, err) < 0)
        return -1;
    if (n_out / MOST_FOR_ONE > n)
        return codec_damaged(err);
    *out = malloc(n_out + 1);
    if (*out == NULL || codecs.lz4f_is_error(codecs.lz4f_new(&context, VERSION))) {
        free(*out);
        return ty_error_set(err, TY_E_LIMIT, "no memory for %zu bytes that are compressed", n_out);
    }
    bool ok = codec_lz4_frame(context, in, n, *out, n_out);
    codecs.lz4f_free(context);
    if (ok)
        return 0;
    free(*out);
    return codec_damaged(err);
}

int parquet_unpack_zstd(const uint8_t *in, size_t n, size_t n_out, uint8_t **out, ty_error *err)
{
    size_t made = 0;
    if (ty_inflate_all(TY_PACKING_ZSTD, in, n, n_out + 1, out, &made, err) < 0)
        return -1;
    if (made == n_out)
        return 0;
    free(*out);
    return codec_damaged(err);
}
