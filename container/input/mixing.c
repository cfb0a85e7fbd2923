/* mixing.c - see mixing.h. */
#include "container/input/mixing.h"

#include <stdlib.h>

int ty_mixing_find(const ty_field_info *field, int n_fields, int *out, ty_error *err)
{
    *out = -1;
    for (int i = 0; i < n_fields; i++)
        if (field[i].image && field[i].image->mix != TY_IMAGE_MIX_NONE)
            *out = i;
    for (int i = 0; i < n_fields && *out >= 0; i++) {
        if (field[i].image || field[i].type.dtype == TY_F32)
            continue;
        ty_error_set(err, TY_E_CONFIG, "field \"%s\" is a class's number, of which mixed pictures have two",
                     field[i].name);
        return ty_error_help(err, "say one_hot: auto for it, and take a loss of probabilities: softmax_cross_entropy "
                                  "with dense_labels: true");
    }
    return 0;
}

int ty_mixing_room(const ty_field_info *field, int n_fields, float **out, ty_error *err)
{
    size_t most = 1;
    for (int i = 0; i < n_fields; i++)
        most = field[i].row_bytes > most ? field[i].row_bytes : most;
    *out = malloc(most);
    return *out ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory to mix pictures");
}

bool ty_mixing_takes(const ty_field_info *f)
{
    return !f->image || f->image->mix != TY_IMAGE_MIX_NONE;
}

void ty_mixing_blend(const ty_field_info *f, const ty_image_mixing *m, float *row, const float *other)
{
    if (f->image) {
        ty_image_plan_mix(f->image, m, row, other);
        return;
    }
    float a = (float)m->share, b = (float)(1.0 - m->share);
    for (int64_t i = 0; i < ty_type_elems(&f->type); i++)
        row[i] = a * row[i] + b * other[i];
}
