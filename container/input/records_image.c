/* records_image.c - fields of records that are encoded pictures (image/plan.h). */
#include "container/input/records.h"

#include <stdlib.h>
#include <string.h>

int records_take_pictures(records_impl *impl, ty_field_info *info, ty_arena *a, const ty_dataset *like, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        const ty_image_plan *declared = f->declared.image;
        bool usual = impl->kind == &records_mxnet && strcmp(f->name, "image") == 0 && !f->declared.map;
        if (declared == NULL && !usual)
            continue;
        if (impl->kind->picture == NULL) {
            ty_error_set(err, TY_E_CONFIG, "field \"%s\" has image:, but these records hold no encoded pictures",
                         f->declared.name);
            return ty_error_help(err, "tfrecord, recordio and mxnet records do");
        }
        int k = like != NULL ? ty_dataset_find(like, f->declared.name) : -1;
        bool is_kept = k >= 0 && like->field[k].image != NULL;
        f->plan = TY_NEW(a, ty_image_plan);
        *f->plan = is_kept ? *like->field[k].image : declared ? *declared : ty_image_plan_make();
        f->plan->mean_of_data = f->plan->mean_of_data && !is_kept;
        f->usual = ty_arena_copy(a, f->plan, sizeof *f->plan);
        info[i].image = f->plan;
    }
    return 0;
}

static int picture_bytes(records_look *look, int i, const uint8_t **bytes, size_t *n, ty_error *err)
{
    const records_field *f = &look->impl->field[i];
    if (look->impl->kind->picture(&look->cell[i], bytes, n, err) < 0)
        return -1;
    if (*bytes == NULL)
        return ty_error_set(err, TY_E_DATA_VALUE, "the record has no \"%s\" of bytes", f->name);
    if (look->reader == NULL && (look->reader = calloc((size_t)look->impl->n_fields, sizeof *look->reader)) == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory to read pictures");
    look->reader[i].plan = f->plan;
    return 0;
}

/* Anew where the record that did it before was left out. */
static int picture_settle(records_field *f, const ty_image_info *first, ty_field_info *info, ty_error *err)
{
    bool decode_all = f->plan->decode_all;
    *f->plan = *f->usual;
    f->plan->decode_all = decode_all;
    if (ty_image_plan_settle(f->plan, first, err) < 0)
        return -1;
    f->stored = TY_U8;
    f->is_settled = true;
    info->image = f->plan;
    info->type = ty_image_plan_type(f->plan, f->declared.dtype_given ? f->declared.dtype : TY_F32);
    info->row_bytes = ty_type_bytes(&info->type);
    f->n_elems = ty_type_elems(&info->type);
    return 0;
}

static int picture_see(records_look *look, int i, ty_field_info *info, ty_error *err)
{
    records_field *f = &look->impl->field[i];
    const uint8_t *bytes;
    size_t n;
    ty_image_info header;
    if (picture_bytes(look, i, &bytes, &n, err) < 0 || ty_image_probe(bytes, n, &header, err) < 0)
        return -1;
    if ((!f->is_settled && picture_settle(f, &header, info, err) < 0) ||
        ty_image_look(f->plan, bytes, n, &look->picture_bytes, err) < 0)
        return -1;
    bool sums = f->plan->mean_of_data && !look->impl->means_later;
    if (!sums && !f->plan->decode_all)
        return 0;
    return ty_image_see(&look->reader[i], bytes, n, &f->sums, err);
}

int records_see_picture(records_look *look, int i, ty_field_info *info, ty_error *err)
{
    if (picture_see(look, i, info, err) == 0)
        return 0;
    return ty_error_wrap(err, "field \"%s\"", look->impl->field[i].declared.name);
}

int records_put_picture(records_look *look, int i, const ty_field_info *info, char *out, ty_error *err)
{
    const uint8_t *bytes;
    size_t n;
    if (picture_bytes(look, i, &bytes, &n, err) == 0 &&
        ty_image_read(&look->reader[i], bytes, n, &look->draw, (ty_dtype)info->type.dtype, out, err) == 0)
        return 0;
    return ty_error_wrap(err, "field \"%s\"", look->impl->field[i].declared.name);
}

int records_settle_no_picture(records_field *f, ty_field_info *info, ty_error *err)
{
    return picture_settle(f, &(ty_image_info){"", 1, 1, 1, 0}, info, err);
}

bool records_want_means(const records_impl *impl)
{
    for (int i = 0; i < impl->n_fields; i++)
        if (impl->field[i].plan && impl->field[i].plan->mean_of_data)
            return true;
    return false;
}

int records_sum_pictures(records_look *look, ty_image_sums *sums, ty_error *err)
{
    const uint8_t *bytes;
    size_t n;
    for (int i = 0; i < look->impl->n_fields; i++) {
        const records_field *f = &look->impl->field[i];
        if (f->plan && f->plan->mean_of_data &&
            (picture_bytes(look, i, &bytes, &n, err) < 0 ||
             ty_image_see(&look->reader[i], bytes, n, &sums[i], err) < 0))
            return ty_error_wrap(err, "field \"%s\"", f->declared.name);
    }
    return 0;
}

int records_take_means(records_impl *impl, const ty_agree *agree, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++) {
        records_field *f = &impl->field[i];
        if (!f->plan || !f->plan->mean_of_data)
            continue;
        if (ty_image_sums_agree(&f->sums, agree, err) < 0)
            return -1;
        ty_image_plan_take(f->plan, &f->sums);
        f->plan->mean_of_data = false;
        if (f->declared.image)
            ty_image_plan_keep(f->declared.image, f->plan);
    }
    return 0;
}

void records_free_readers(records_look *look)
{
    for (int i = 0; look->reader && i < look->impl->n_fields; i++)
        ty_image_reader_fini(&look->reader[i]);
    free(look->reader);
    free(look->other);
}
