/* recipe_audio.c - the key `audio` of a field: how encoded sounds become its rows (container/input/audio/plan.h). */
#include "container/input/audio/plan.h"
#include "entrypoint/recipe_reader.h"

/* Two numbers of decibels, or one. */
static int read_gain(recipe_reader *rd, const ty_doc *d, ty_audio_plan *p)
{
    char found[128];
    if (!d || d->kind == TY_DOC_NULL)
        return 0;
    if (d->kind == TY_DOC_LIST && d->n_items != 2)
        return ty_doc_error(d, rd->err, TY_E_TYPE, NULL, "gain: expected two numbers, the smaller first, found %s",
                            ty_doc_describe(d, found, sizeof found));
    for (int i = 0; i < 2; i++)
        if (ty_doc_float(d->kind == TY_DOC_LIST ? &d->items[i] : d, &p->gain[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "gain");
    return 0;
}

int ty_recipe_read_audio(recipe_reader *rd, const char *path, const ty_doc *node, ty_field *out)
{
    recipe_audio f = {0};
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    path = ty_arena_printf(rd->a, "%s.audio", path);
    if (ty_recipe_bind(rd, path, ty_recipe_audio_section.rows, ty_recipe_audio_section.n_rows, node, &f) < 0)
        return -1;
    ty_audio_plan *p = TY_NEW(rd->a, ty_audio_plan);
    *p = ty_audio_plan_make();
    p->rate = (int)f.sample_rate;
    p->length = f.length;
    p->seconds = f.seconds;
    p->channels = (int)f.channels;
    p->crop = (ty_audio_crop)f.crop;
    p->pad = (ty_audio_pad)f.pad;
    p->normalize = (ty_audio_normalize)f.normalize;
    p->layout = (ty_audio_layout)f.layout;
    p->scale = f.scale;
    p->max_seconds = f.max_seconds;
    if (read_gain(rd, f.gain, p) < 0)
        return ty_error_wrap(rd->err, "%s", path);
    out->audio = p;
    return 0;
}
