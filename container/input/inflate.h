/* inflate.h - compressed bytes in pieces: fed as they come, taken as they are wanted.
 *
 * One place for all compressions that data files come in. gzip (RFC 1952) may have members that follow one another,
 * Zstandard (RFC 8878) frames; zlib (RFC 1950) is one stream. Checksums and lengths are checked where the format has
 * them. Memory is bounded by the format's window (zlib 48 KiB, Zstandard 128 MiB at most), not by what comes out.
 *
 *     ty_inflate z;
 *     if (ty_inflate_init(&z, ty_packing_of(head, n_head), 0, err) < 0) ...
 *     for (;;) {
 *         if (ty_inflate_take(&z, out, sizeof out, &n, err) < 0) ...        // n bytes have come out
 *         if (n < sizeof out) {                                             // all that was fed is used up
 *             if ((n_in = read(fd, in, sizeof in)) == 0) break;
 *             ty_inflate_feed(&z, in, n_in);
 *         }
 *     }
 *     if (ty_inflate_end(&z, err) < 0) ...                                  // cut off in the middle
 *     ty_inflate_fini(&z);
 *
 * libzstd is opened at the first Zstandard file; where it is missing such files are refused by that name.
 */
#ifndef TY_CONTAINER_INPUT_INFLATE_H
#define TY_CONTAINER_INPUT_INFLATE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ty_packing { TY_PACKING_NONE, TY_PACKING_GZIP, TY_PACKING_ZLIB, TY_PACKING_ZSTD } ty_packing;

/* So many first bytes are enough to tell. */
#define TY_PACKING_HEAD_BYTES 64

/* How the data are compressed, by their first bytes. zlib's two are weak evidence: it is believed only if what follows
 * inflates. */
ty_packing ty_packing_of(const uint8_t *head, size_t n);
/* "gzip", "zlib", "Zstandard"; "no compression". */
const char *ty_packing_name(ty_packing p);
/* Of a file's name: bytes of the suffix that says how it is compressed (".gz", ".zst", ".zlib"), or 0. */
size_t ty_packing_suffix(const char *name);

typedef struct ty_inflate {
    ty_packing packing;
    uint64_t n_in, n_out; /* bytes that went in and came out so far */
    uint64_t max_bytes;
    /* Private. */
    const uint8_t *fed;
    size_t n_fed;
    uint8_t head[18]; /* Zstandard: the first bytes of the frame, and how many there are */
    size_t n_head;
    uint64_t n_member; /* what the frame has given so far */
    bool between;      /* at the end of a member or frame */
    bool is_pending;   /* more may come out of what was fed */
    int n_members;     /* whole ones */
    void *state;
} ty_inflate;

/* max_bytes: what may come out in all; 0: no limit. Nothing is to be undone after a failure. */
int ty_inflate_init(ty_inflate *z, ty_packing packing, uint64_t max_bytes, ty_error *err);
/* Safe on a zeroed struct. */
void ty_inflate_fini(ty_inflate *z);

/* The next bytes, borrowed until they are used up: until a take gave less than it was asked for. */
void ty_inflate_feed(ty_inflate *z, const void *bytes, size_t n);
/* Up to max bytes to out; fewer mean that all that was fed is used up. TY_E_DATA for damage (with the byte),
 * TY_E_LIMIT past max_bytes. */
int ty_inflate_take(ty_inflate *z, uint8_t *out, size_t max, size_t *n_out, ty_error *err);
/* After the last byte: refuses what was cut off. */
int ty_inflate_end(const ty_inflate *z, ty_error *err);

#endif
