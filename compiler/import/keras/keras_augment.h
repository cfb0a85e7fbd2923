/* keras_augment.h - what layers that change pictures at random share. Private to keras_layers_augment.c,
 * keras_layers_colour.c and keras_layers_rand_augment.c.
 *
 * Source: keras/src/layers/preprocessing/image_preprocessing. Random numbers are of our generator: their distribution
 * is Keras', not their values. Letters: B pictures, H rows, W columns, C channels; all pictures are floats [B, H, W,
 * C].
 */
#ifndef TY_COMPILER_IMPORT_KERAS_KERAS_AUGMENT_H
#define TY_COMPILER_IMPORT_KERAS_KERAS_AUGMENT_H

#include "compiler/import/keras/keras_window.h"
#include "compiler/import/picture.h"

typedef struct augment_range {
    double lo, hi;
} augment_range;

/* The pictures; TY_NONE where there is nothing to do, since it is not training (they are the result then), or after
 * failing. */
ty_val augment_pictures(keras_call *c);
/* Sets them, in the layer's own layout; TY_NONE: nothing. */
void augment_set(keras_call *c, ty_val y);
/* Whether they have red, green and blue; else failed. */
bool augment_has_colours(keras_call *c, ty_val x);

/* Two numbers, or one that stands for -x to x, cut off at `least`. False (and failed) outside [least, most]. */
bool augment_read_range(keras_call *c, const char *key, double least, double most, augment_range *r);
/* value_range: what is computed stays inside. */
bool augment_read_values(keras_call *c, augment_range *r);
/* A number for each picture, [B, 1, 1, 1] or fewer axes. */
ty_val augment_draw(keras_call *c, ty_val x, int rank, augment_range r);
/* y for each picture for which a number from 0 to 1 is below one drawn from `share`, else x. */
ty_val augment_choose(keras_call *c, augment_range share, ty_val x, ty_val y);
/* From one range of values to another. */
ty_val augment_scale(ty_graph *g, ty_val x, augment_range from, augment_range to);

/* ---- colours (keras_layers_colour.c) ---- */

ty_val augment_contrast(keras_call *c, ty_val x, augment_range factor, augment_range values);
ty_val augment_brightness(keras_call *c, ty_val x, augment_range factor, augment_range values);
ty_val augment_fade(keras_call *c, ty_val x, augment_range factor, augment_range values);
ty_val augment_sharpen(keras_call *c, ty_val x, augment_range factor, augment_range values);
ty_val augment_posterize(keras_call *c, ty_val x, int64_t least, int64_t most, augment_range values);
ty_val augment_solarize(keras_call *c, ty_val x, augment_range more, augment_range threshold, augment_range values);
ty_val augment_auto_contrast(keras_call *c, ty_val x, augment_range values);
ty_val augment_equalize(keras_call *c, ty_val x, int64_t bins, augment_range values);

/* ---- places (keras_layers_augment.c) ---- */

/* How pictures are read that are turned, moved and sheared. */
typedef struct augment_plane {
    keras_call *c;
    ty_picture_reader reader;
    ty_val x; /* [B, H, W, C] */
    int64_t height, width;
} augment_plane;

/* fill_mode, fill_value, interpolation of the configuration. False: failed, or x is TY_NONE. */
bool augment_plane_read(keras_call *c, ty_val x, augment_plane *p);
ty_val augment_rotate(const augment_plane *p, augment_range turns);
ty_val augment_translate(const augment_plane *p, augment_range rows, augment_range columns);
ty_val augment_shear(const augment_plane *p, augment_range across, augment_range down);

#endif
