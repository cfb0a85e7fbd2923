/* mixing.h - two samples in one, of data that have pictures with `mix` (image/plan.h).
 *
 * Which two, and how much of each, says ty_image_plan_mixing(). The picture is mixed as its plan says, and every other
 * field that is no picture by its share: labels, as rows of one_hot. Pictures without `mix` (a mask) stay.
 */
#ifndef TY_CONTAINER_INPUT_MIXING_H
#define TY_CONTAINER_INPUT_MIXING_H

#include "container/input/dataset.h"
#include "container/input/image/plan.h"

/* *out: the field whose pictures are mixed; -1: none. Refuses labels that are numbers of classes. */
int ty_mixing_find(const ty_field_info *field, int n_fields, int *out, ty_error *err);
/* Room for one row of any of the fields, the caller's (free()). */
int ty_mixing_room(const ty_field_info *field, int n_fields, float **out, ty_error *err);
/* Whether the field's rows are mixed, where any are. */
bool ty_mixing_takes(const ty_field_info *f);
/* row = mixed with other, both of the field's type. */
void ty_mixing_blend(const ty_field_info *f, const ty_image_mixing *m, float *row, const float *other);

#endif
