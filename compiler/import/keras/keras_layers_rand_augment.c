/* keras_layers_rand_augment.c - several changes of pictures: some of eleven, and one after the other. */
#include "compiler/import/keras/keras_augment.h"

#include <math.h>

enum { RAND_KINDS = 11, RAND_MOST = 16 };

typedef struct rand_settings {
    augment_range factor, values;
} rand_settings;

/* Change number k. */
static ty_val rand_apply(keras_call *c, const rand_settings *s, int k, ty_val x)
{
    augment_plane p;
    int64_t bits = (int64_t)fmax(1, 8 * s->factor.hi);
    if (k < 3 && !augment_plane_read(c, x, &p))
        return TY_NONE;
    switch (k) {
    case 0:
        return augment_shear(&p, s->factor, s->factor);
    case 1:
        return augment_translate(&p, s->factor, s->factor);
    case 2:
        return augment_rotate(&p, s->factor);
    case 3:
        return augment_brightness(c, x, s->factor, s->values);
    case 4:
        return augment_fade(c, x, s->factor, s->values);
    case 5:
        return augment_contrast(c, x, s->factor, s->values);
    case 6:
        return augment_sharpen(c, x, s->factor, s->values);
    case 7:
        return augment_posterize(c, x, bits, bits, s->values);
    case 8:
        return augment_solarize(c, x, s->factor, s->factor, s->values);
    case 9:
        return augment_auto_contrast(c, x, s->values);
    default:
        return augment_equalize(c, x, 256, s->values);
    }
}

/* num_ops times one of all, the same for all pictures of a step: all are computed, and one is taken. Source: E. Cubuk
 * et al., RandAugment, CVPR Workshops 2020, in the form of keras/src/layers/preprocessing/image_preprocessing. */
void keras_call_rand_augment(keras_call *c)
{
    ty_graph *g = c->g;
    rand_settings s = {.factor = {0, 0.5}};
    int64_t n = keras_int(c, "num_ops", 2);
    ty_val x = augment_pictures(c);
    if (x == TY_NONE || (keras_config(c, "factor") && !augment_read_range(c, "factor", 0, 1, &s.factor)) ||
        !augment_read_values(c, &s.values) || !augment_has_colours(c, x))
        return;
    if (n < 1 || n > RAND_MOST) {
        keras_fail_key(c, "num_ops", "expected a number from 1 to %d", RAND_MOST);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        ty_val number = ty_b_mul_s(g, keras_uniform(c, 0, NULL), RAND_KINDS), y = x;
        number = ty_b_unary(g, TY_OP_FLOOR, number);
        for (int k = 0; k < RAND_KINDS && y != TY_NONE; k++) {
            ty_val changed = rand_apply(c, &s, k, x);
            y = ty_b_select(g, ty_b_eq(g, number, ty_b_full_like(g, number, k)), changed, y);
        }
        x = y;
    }
    augment_set(c, x);
}

/* ---- one after the other ---- */

void keras_create_pipeline(keras_call *c)
{
    const ty_doc *layers = keras_config(c, "layers");
    if (!layers || layers->kind != TY_DOC_LIST) {
        keras_fail_key(c, "layers", "must be a list of layers");
        return;
    }
    size_t n = ty_doc_len(layers);
    keras_layer **part = keras_keep(c, n + 1, sizeof *part);
    for (size_t i = 0; i < n; i++)
        if ((part[i] = keras_sub(c, "layers", ty_doc_at(layers, i), NULL)) == NULL)
            return;
    c->layer->note = part;
}

void keras_call_pipeline(keras_call *c)
{
    keras_layer **part = c->layer->note;
    ty_val x = c->in[0], mask = c->mask ? c->mask[0] : TY_NONE;
    for (; part && *part; part++) {
        keras_apply a = {.layer = *part, .in = &x, .mask = &mask, .n_in = 1};
        if (!keras_apply_layer(c, &a) || a.n_out != 1)
            return;
        x = a.out[0];
        mask = a.mask_out ? a.mask_out[0] : TY_NONE;
    }
    keras_set(c, 0, x);
    keras_set_mask(c, 0, mask);
}
