/* media.h - stored bytes that are a picture or a sound, and how they become a row: what data sets of files and of
 * records do alike with both (image/plan.h, audio/plan.h).
 */
#ifndef TY_CONTAINER_INPUT_MEDIA_H
#define TY_CONTAINER_INPUT_MEDIA_H

#include "base/arena.h"
#include "container/input/audio/plan.h"
#include "container/input/field.h"
#include "container/input/image/plan.h"

/* At most one of them; both NULL: the field is neither. */
typedef struct ty_media {
    ty_image_plan *image;
    ty_audio_plan *audio;
} ty_media;

static inline bool ty_media_is(const ty_media *m)
{
    return m->image != NULL || m->audio != NULL;
}

typedef struct ty_media_info {
    ty_image_info image;
    ty_audio_info audio;
} ty_media_info;

/* One thread's. Zeroed: no field's. */
typedef struct ty_media_reader {
    ty_image_reader image;
    ty_audio_reader audio;
} ty_media_reader;

/* "picture", "sound" */
const char *ty_media_noun(const ty_media *m);
/* A copy of its own. */
ty_media ty_media_copy(const ty_media *m, ty_arena *a);
/* Copies the declared plan; where none is, that of a field which is called "image" or "audio" and one of those is
 * usual. NULL is fine for the names. */
ty_media ty_media_declared(const ty_field *f, const char *name, const char *usual, ty_arena *a);
int ty_media_check(const ty_media *m, ty_dtype dtype, ty_error *err);
int ty_media_probe(const ty_media *m, const uint8_t *bytes, size_t n, ty_media_info *out, ty_error *err);
/* By the first that was probed; NULL: there is none. */
int ty_media_settle(ty_media *m, const ty_media_info *first, ty_error *err);
/* `m` as it is, settled before (by other data). */
void ty_media_take(ty_media *m, const struct ty_image_plan *image, const struct ty_audio_plan *audio);
ty_type ty_media_type(const ty_media *m, ty_dtype dtype);
/* Whether the plan learns a mean of all data. */
bool ty_media_learns(const ty_media *m);
/* Whether all are decoded when they are opened, not their headers alone. */
bool ty_media_decodes_all(const ty_media *m);
void ty_media_decode_all(ty_media *m, bool all);
/* The plan becomes what `from` is, in its place. */
void ty_media_restore(ty_media *m, const ty_media *from);

/* As ty_image_look and ty_audio_look. */
int ty_media_look(const ty_media *m, const uint8_t *bytes, size_t n, size_t *work, ty_error *err);
void ty_media_reader_init(ty_media_reader *r, const ty_media *m);
/* Decodes, adds to the sums of pictures. */
int ty_media_see(ty_media_reader *r, const uint8_t *bytes, size_t n, ty_image_sums *sums, ty_error *err);
int ty_media_read(ty_media_reader *r, const uint8_t *bytes, size_t n, const ty_chance *chance, ty_dtype dtype,
                  void *out, ty_error *err);
size_t ty_media_reader_bytes(const ty_media_reader *r);
void ty_media_reader_fini(ty_media_reader *r);

/* Of a plan in a description of a field; NULL: of none. */
uint64_t ty_media_fingerprint(uint64_t h, const struct ty_image_plan *image, const struct ty_audio_plan *audio);

#endif
