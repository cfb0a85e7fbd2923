/* foreign.c - see foreign.h. */
#include "container/input/foreign.h"

#include <string.h>

#define PICTURE "convert it: pictures are JPEG, PNG, BMP, PGM or PPM"
#define SOUND   "convert it: sounds are WAV, FLAC, Ogg (Vorbis, Opus), MP3, AIFF or AU"
#define TABLE   "write it as CSV, npy or TFRecord"

static const ty_foreign foreigners[] = {
    {"a GIF picture", 0, "GIF8", 4, PICTURE},
    {"a WebP picture", 8, "WEBP", 4, PICTURE},
    {"a TIFF picture", 0, "II*\0", 4, PICTURE},
    {"a TIFF picture", 0, "MM\0*", 4, PICTURE},
    {"an AVIF picture", 4, "ftypavif", 8, PICTURE},
    {"an HEIC picture", 4, "ftypheic", 8, PICTURE},
    {"an SVG picture", 0, "<svg", 4, PICTURE},
    {"an MPEG-4 sound", 4, "ftypM4A", 7, SOUND},
    {"an MPEG-4 film", 4, "ftypisom", 8, SOUND},
    {"an MPEG-4 film", 4, "ftypmp42", 8, SOUND},
    {"a Matroska or WebM file", 0, "\x1a\x45\xdf\xa3", 4, SOUND},
    {"a Windows Media file", 0, "\x30\x26\xb2\x75", 4, SOUND},
    {"an ORC table", 0, "ORC", 3, TABLE},
    {"an Avro table", 0, "Obj\1", 4, TABLE},
    {"an HDF5 file", 0, "\x89HDF\r\n\x1a\n", 8, TABLE},
    {"an SQLite database", 0, "SQLite format 3", 16, TABLE},
    {"a tar archive", 257, "ustar", 5, "unpack it"},
    {"a bzip2 archive", 0, "BZh", 3, "unpack it, or pack it with gzip or zstd"},
    {"an xz archive", 0, "\3757zXZ", 5, "unpack it, or pack it with gzip or zstd"},
    {"an HTML page", 0, "<!DOCTYPE", 9, "download the file itself"},
    {"an HTML page", 0, "<!doctype", 9, "download the file itself"},
    {"an HTML page", 0, "<html", 5, "download the file itself"},
    {"a pointer of Git LFS", 0, "version https://git-lfs", 23, "fetch the file itself with git lfs pull"},
};

const ty_foreign *ty_foreign_find(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < sizeof foreigners / sizeof foreigners[0]; i++) {
        const ty_foreign *f = &foreigners[i];
        if (f->at + f->n_bytes <= n && memcmp(head + f->at, f->bytes, f->n_bytes) == 0)
            return f;
    }
    return NULL;
}
