/* view.h - tensors as programs hand them in: foreign structs, checked before anything is read through them. */
#ifndef TY_DIST_API_VIEW_H
#define TY_DIST_API_VIEW_H

#include "base/tensor.h"
#include "dist/api/fault.h"

#include <stddef.h>
#include <stdint.h>

/* Type, shape and pointer make sense. `what` names the tensor in the error: "in", "tensor 3". */
int ty_view_check(const trainyard_tensor *t, const char *what, ty_error *err);
int64_t ty_view_elems(const trainyard_tensor *t); /* of a checked one */
size_t ty_view_bytes(const trainyard_tensor *t);
/* The first dimension, 1 for a single number; and the elements of one row. */
int64_t ty_view_rows(const trainyard_tensor *t);
int64_t ty_view_row_elems(const trainyard_tensor *t);
bool ty_view_same(const trainyard_tensor *a, const trainyard_tensor *b); /* type and shape */
/* "f32[3,4]", with the first dimension as "*" if rows are free; into out, which holds TY_VIEW_TEXT_BYTES. Returns out.
 */
#define TY_VIEW_TEXT_BYTES 200
const char *ty_view_text(const trainyard_tensor *t, bool free_rows, char out[TY_VIEW_TEXT_BYTES]);

#endif
