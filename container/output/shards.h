/* shards.h - records into TFRecord files of about one size, in a folder that appears when all of them are whole.
 *
 *     FOLDER/part-00000-of-00003-8192.tfrecord      the first of three files, with 8192 records
 *
 * Records keep their order: files sorted by name are it. A file is as large as it may be and never larger, unless a
 * single record is. What fails, or is killed, leaves no FOLDER.
 */
#ifndef TY_CONTAINER_OUTPUT_SHARDS_H
#define TY_CONTAINER_OUTPUT_SHARDS_H

#include "base/file.h"

typedef struct ty_shards {
    int64_t n_records;
    uint64_t n_bytes; /* of all files */
    int n_files;
    /* Private. */
    uint64_t max_bytes;
    ty_file_folder folder;
    ty_file_writer file;
    bool is_open; /* file */
    ty_buf frame;
    int64_t *records; /* [n_files]: of each */
    int cap;
} ty_shards;

/* Refuses a folder that is there and holds something. */
int ty_shards_open(ty_shards *s, const char *folder, uint64_t max_bytes, ty_error *err);
int ty_shards_add(ty_shards *s, const void *record, size_t n_bytes, ty_error *err);
/* Another file of the folder, in place at once with the others: "_classes.txt". */
int ty_shards_add_file(ty_shards *s, const char *name, const void *bytes, size_t n_bytes, ty_error *err);
/* All is in place. On failure, abandoned. */
int ty_shards_commit(ty_shards *s, ty_error *err);
/* Fine after commit, and on a zeroed one. */
void ty_shards_abandon(ty_shards *s);

#endif
