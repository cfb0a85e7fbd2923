/* records_media.c - fields of records that are encoded pictures or sounds (media.h). */
#include "container/input/records.h"

#include <stdlib.h>
#include <string.h>

int records_take_media(records_impl *impl, ty_field_info *info, ty_arena *a, const ty_dataset *like, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        f->media = ty_media_declared(&f->declared, f->name, impl->kind == &records_mxnet ? "image" : NULL, a);
        if (!ty_media_is(&f->media))
            continue;
        if (impl->kind->encoded == NULL || (f->media.audio && impl->kind == &records_mxnet)) {
            ty_error_set(err, TY_E_CONFIG, "field \"%s\" has %s:, but these records hold no encoded %ss",
                         f->declared.name, f->media.audio ? "audio" : "image", ty_media_noun(&f->media));
            return ty_error_help(err, "tfrecord and recordio records do, and mxnet's hold pictures");
        }
        int k = like != NULL ? ty_dataset_find(like, f->declared.name) : -1;
        if (k >= 0)
            ty_media_take(&f->media, like->field[k].image, like->field[k].audio);
        f->usual = ty_media_copy(&f->media, a);
        info[i].image = f->media.image;
        info[i].audio = f->media.audio;
    }
    return 0;
}

static int media_bytes(records_look *look, int i, const uint8_t **bytes, size_t *n, ty_error *err)
{
    const records_field *f = &look->impl->field[i];
    if (look->impl->kind->encoded(&look->cell[i], bytes, n, err) < 0)
        return -1;
    if (*bytes == NULL)
        return ty_error_set(err, TY_E_DATA_VALUE, "the record has no \"%s\" of bytes", f->name);
    if (look->reader == NULL && (look->reader = calloc((size_t)look->impl->n_fields, sizeof *look->reader)) == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory to read %ss", ty_media_noun(&f->media));
    ty_media_reader_init(&look->reader[i], &f->media);
    return 0;
}

/* Anew where the record that did it before was left out. */
static int media_settle(records_field *f, const ty_media_info *first, ty_field_info *info, ty_error *err)
{
    bool decode_all = ty_media_decodes_all(&f->media);
    ty_media_restore(&f->media, &f->usual);
    ty_media_decode_all(&f->media, decode_all);
    if (ty_media_settle(&f->media, first, err) < 0)
        return -1;
    f->stored = TY_U8;
    f->is_settled = true;
    info->image = f->media.image;
    info->audio = f->media.audio;
    info->type = ty_media_type(&f->media, f->declared.dtype_given ? f->declared.dtype : TY_F32);
    info->row_bytes = ty_type_bytes(&info->type);
    f->n_elems = ty_type_elems(&info->type);
    return 0;
}

static int media_see(records_look *look, int i, ty_field_info *info, ty_error *err)
{
    records_field *f = &look->impl->field[i];
    const uint8_t *bytes;
    size_t n;
    ty_media_info header;
    if (media_bytes(look, i, &bytes, &n, err) < 0 || ty_media_probe(&f->media, bytes, n, &header, err) < 0)
        return -1;
    if ((!f->is_settled && media_settle(f, &header, info, err) < 0) ||
        ty_media_look(&f->media, bytes, n, &look->media_bytes, err) < 0)
        return -1;
    bool sums = ty_media_learns(&f->media) && !look->impl->means_later;
    if (!sums && !ty_media_decodes_all(&f->media))
        return 0;
    return ty_media_see(&look->reader[i], bytes, n, &f->sums, err);
}

int records_see_media(records_look *look, int i, ty_field_info *info, ty_error *err)
{
    if (media_see(look, i, info, err) == 0)
        return 0;
    return ty_error_wrap(err, "field \"%s\"", look->impl->field[i].declared.name);
}

int records_put_media(records_look *look, int i, const ty_field_info *info, char *out, ty_error *err)
{
    const uint8_t *bytes;
    size_t n;
    if (media_bytes(look, i, &bytes, &n, err) == 0 &&
        ty_media_read(&look->reader[i], bytes, n, &look->draw, (ty_dtype)info->type.dtype, out, err) == 0)
        return 0;
    return ty_error_wrap(err, "field \"%s\"", look->impl->field[i].declared.name);
}

int records_settle_no_media(records_field *f, ty_field_info *info, ty_error *err)
{
    return media_settle(f, NULL, info, err);
}

bool records_want_means(const records_impl *impl)
{
    for (int i = 0; i < impl->n_fields; i++)
        if (ty_media_learns(&impl->field[i].media))
            return true;
    return false;
}

int records_sum_pictures(records_look *look, ty_image_sums *sums, ty_error *err)
{
    const uint8_t *bytes;
    size_t n;
    for (int i = 0; i < look->impl->n_fields; i++) {
        const records_field *f = &look->impl->field[i];
        if (ty_media_learns(&f->media) &&
            (media_bytes(look, i, &bytes, &n, err) < 0 || ty_media_see(&look->reader[i], bytes, n, &sums[i], err) < 0))
            return ty_error_wrap(err, "field \"%s\"", f->declared.name);
    }
    return 0;
}

int records_take_means(records_impl *impl, const ty_agree *agree, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        if (!ty_media_learns(&f->media))
            continue;
        if (ty_image_sums_agree(&f->sums, agree, err) < 0)
            return -1;
        ty_image_plan_take(f->media.image, &f->sums);
        f->media.image->mean_of_data = false;
        if (f->declared.image)
            ty_image_plan_keep(f->declared.image, f->media.image);
    }
    return 0;
}

void records_free_readers(records_look *look)
{
    for (int i = 0; look->reader && i < look->impl->n_fields; i++)
        ty_media_reader_fini(&look->reader[i]);
    free(look->reader);
    free(look->other);
}
