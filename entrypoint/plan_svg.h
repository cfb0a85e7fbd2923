/* plan_svg.h - a memory plan as a picture: position on the tape to the right, offset in the slab upwards. */
#ifndef TY_ENTRYPOINT_PLAN_SVG_H
#define TY_ENTRYPOINT_PLAN_SVG_H

#include "compiler/compiler.h"

/* Appends the picture. A rectangle is a buffer; its colour is its use, its title says layer, shape and size (browsers
 * show titles under the pointer). The line is what is alive, the dashed one the peak. */
int ty_plan_svg(const ty_tape_facts *t, const char *title, ty_buf *out);

#endif
