/* keep.h - saves: one file a shard, and a manifest that makes them one, which comes last.
 *
 *     FOLDER/TAG/shard-0-of-3.bin    one file of each shard, written by its server
 *     FOLDER/TAG/manifest.json       {"format": 1, "tag": "step-100", "shards": [{"file": ..., "bytes": ..., "crc":
 * ..., "version": ...}, ...]}, written by shard 0 when all are in Without a manifest a folder is no save. Where servers
 * have no disk in common, whoever brings their folders together (the platform, to which all write the same prefix)
 * brings a save together.
 *
 * What is kept is the logical variable: a shard that loads reads all files and takes the rows that are its own under
 * its own catalogue, so that any number of shards, parts and either placement can load any save. A shard's file:
 *
 *     8 bytes    "TYSHARD1"
 *     8 bytes    length of the JSON, a multiple of 8
 *     JSON       {"format": 1, "shard": 0, "version": 812, "ready": true,
 *                 "workers": [[incarnation, next, step, clock, left, counted (16 words)], ...],
 *                 "catalogue": {...}, "parts": [[variable, part, rows], ...]}, blanks
 *     arrays     a part after the other: ids (hashed only), weights, slots
 *     4 bytes    CRC-32C of all that
 *
 * What workers had asked is kept too: a server that comes back counts no push of the save a second time.
 */
#ifndef TY_DIST_SERVER_KEEP_H
#define TY_DIST_SERVER_KEEP_H

#include "dist/server/shard.h"

#define TY_KEEP_TAG_BYTES 65 /* letters, digits, - and _, with the NUL */
#define TY_KEEP_ROW_BYTES 256

/* Writes the shard's file. row becomes its row of the manifest, as JSON. */
int ty_keep_save(const ty_shard *s, const char *tag, char *row, size_t room, ty_error *err);
/* Manifest from the rows of all shards, in their order, one after the other with commas. Appends to out. */
int ty_keep_manifest(const char *tag, const char *const *rows, int n, ty_buf *out);
/* Writes the manifest, which must be one. */
int ty_keep_commit(const char *folder, const char *tag, const char *manifest, size_t n_bytes, ty_error *err);
/* Tag of the newest complete save (by the versions in its manifest). 1, or 0: there is none. */
int ty_keep_newest(const char *folder, char tag[TY_KEEP_TAG_BYTES], ty_error *err);
/* Takes this shard's rows from a save. On failure rows may be mixed: the server has to be given up. */
int ty_keep_load(ty_shard *s, const char *tag, ty_error *err);
/* The part of it that reads one file's bytes, from wherever they are. */
int ty_keep_take(ty_shard *s, const char *name, const uint8_t *bytes, size_t n_bytes, ty_error *err);

#endif
