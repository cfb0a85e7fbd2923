/* media.c - see media.h. */
#include "container/input/media.h"

#include "base/hash.h"

#include <string.h>

const char *ty_media_noun(const ty_media *m)
{
    return m->audio != NULL ? "sound" : "picture";
}

ty_media ty_media_copy(const ty_media *m, ty_arena *a)
{
    return (ty_media){m->image ? ty_arena_copy(a, m->image, sizeof *m->image) : NULL,
                      m->audio ? ty_arena_copy(a, m->audio, sizeof *m->audio) : NULL};
}

ty_media ty_media_declared(const ty_field *f, const char *name, const char *usual, ty_arena *a)
{
    ty_image_plan image = ty_image_plan_make();
    ty_audio_plan audio = ty_audio_plan_make();
    ty_media m = {f->image, f->audio};
    bool is_usual = !ty_media_is(&m) && usual && strcmp(name, usual) == 0 && !f->map;
    if (is_usual && strcmp(usual, "image") == 0)
        m.image = &image;
    else if (is_usual)
        m.audio = &audio;
    return ty_media_copy(&m, a);
}

int ty_media_check(const ty_media *m, ty_dtype dtype, ty_error *err)
{
    return m->audio ? ty_audio_plan_check(m->audio, dtype, err) : ty_image_plan_check(m->image, dtype, err);
}

int ty_media_probe(const ty_media *m, const uint8_t *bytes, size_t n, ty_media_info *out, ty_error *err)
{
    return m->audio ? ty_audio_probe(bytes, n, &out->audio, err) : ty_image_probe(bytes, n, &out->image, err);
}

int ty_media_settle(ty_media *m, const ty_media_info *first, ty_error *err)
{
    static const ty_media_info none = {{"", 1, 1, 1, 0}, {"", 1, 1, 1}};
    first = first ? first : &none;
    return m->audio ? ty_audio_plan_settle(m->audio, &first->audio, err)
                    : ty_image_plan_settle(m->image, &first->image, err);
}

void ty_media_take(ty_media *m, const struct ty_image_plan *image, const struct ty_audio_plan *audio)
{
    if (m->audio && audio)
        *m->audio = *audio;
    if (!m->image || !image)
        return;
    *m->image = *image;
    m->image->mean_of_data = false;
}

ty_type ty_media_type(const ty_media *m, ty_dtype dtype)
{
    return m->audio ? ty_audio_plan_type(m->audio, dtype) : ty_image_plan_type(m->image, dtype);
}

bool ty_media_learns(const ty_media *m)
{
    return m->image && m->image->mean_of_data;
}

bool ty_media_decodes_all(const ty_media *m)
{
    return (m->image && m->image->decode_all) || (m->audio && m->audio->decode_all);
}

void ty_media_decode_all(ty_media *m, bool all)
{
    if (m->image)
        m->image->decode_all = all;
    if (m->audio)
        m->audio->decode_all = all;
}

void ty_media_restore(ty_media *m, const ty_media *from)
{
    if (m->image)
        *m->image = *from->image;
    if (m->audio)
        *m->audio = *from->audio;
}

int ty_media_look(const ty_media *m, const uint8_t *bytes, size_t n, size_t *work, ty_error *err)
{
    return m->audio ? ty_audio_look(m->audio, bytes, n, work, err) : ty_image_look(m->image, bytes, n, work, err);
}

void ty_media_reader_init(ty_media_reader *r, const ty_media *m)
{
    r->image.plan = m->image;
    r->audio.plan = m->audio;
}

int ty_media_see(ty_media_reader *r, const uint8_t *bytes, size_t n, ty_image_sums *sums, ty_error *err)
{
    return r->audio.plan ? ty_audio_hear(&r->audio, bytes, n, err) : ty_image_see(&r->image, bytes, n, sums, err);
}

int ty_media_read(ty_media_reader *r, const uint8_t *bytes, size_t n, const ty_chance *chance, ty_dtype dtype,
                  void *out, ty_error *err)
{
    return r->audio.plan ? ty_audio_row(&r->audio, bytes, n, chance, dtype, out, err)
                         : ty_image_read(&r->image, bytes, n, chance, dtype, out, err);
}

size_t ty_media_reader_bytes(const ty_media_reader *r)
{
    return r->audio.plan ? ty_audio_reader_bytes(&r->audio) : r->image.plan ? ty_image_reader_bytes(&r->image) : 0;
}

void ty_media_reader_fini(ty_media_reader *r)
{
    ty_image_reader_fini(&r->image);
    ty_audio_reader_fini(&r->audio);
}

uint64_t ty_media_fingerprint(uint64_t h, const struct ty_image_plan *image, const struct ty_audio_plan *audio)
{
    uint64_t one = image ? ty_image_plan_fingerprint(image) : audio ? ty_audio_plan_fingerprint(audio) : 0;
    return one ? ty_fnv1a(h, &one, sizeof one) : h;
}
