/* s3_note.h - a note of an upload in parts, so that one that was interrupted goes on. For s3*.c and its fuzz target.
 *
 *     trainyard upload 1
 *     what 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08     of what, how and to where (SHA-256)
 *     id VXBsb2FkIElE
 *     part 1 60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752 "b54357faf0632cce46e942fa68356b38"
 *
 * A part's line is its number, the SHA-256 of what was sent, and the ETag that came back. Lines are added as parts get
 * through; a line that was cut off, or is none, and all behind it do not count. Whoever has a note open holds it alone.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_S3_NOTE_H
#define TY_ESTIMATOR_SPEC_AWS_S3_NOTE_H

#include "base/hash.h"
#include "estimator_spec/aws/s3_parts.h"

typedef struct ty_s3_noted {
    uint32_t number;
    char sha256[TY_SHA256_HEX_BYTES], etag[128];
} ty_s3_noted;

typedef struct ty_s3_note {
    char *path; /* NULL: there is no note */
    int fd;
    char what[TY_SHA256_HEX_BYTES];
    char upload_id[TY_S3_MAX_KEY_BYTES + 1]; /* "": none was begun */
    ty_s3_noted *parts;                      /* in the arena */
    size_t n_parts;
} ty_s3_note;

/* Opens the note `name` in a folder, which is made, and reads it. If somebody else has it open, or there can be none,
 * there is none: out->path is NULL. */
void ty_s3_note_open(const char *folder, const char *name, ty_arena *arena, ty_s3_note *out);
/* Fills what, upload_id and parts from text. */
void ty_s3_note_read(const char *text, size_t len, ty_arena *arena, ty_s3_note *note);
/* Begins it anew. What cannot be written is not noted: an upload does not fail for its note. */
void ty_s3_note_begin(ty_s3_note *note, const char *what, const char *upload_id);
void ty_s3_note_add(ty_s3_note *note, uint32_t number, const char *sha256, const char *etag);
/* with_file: the note is done with. */
void ty_s3_note_close(ty_s3_note *note, bool with_file);

#endif
