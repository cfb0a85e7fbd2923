/* stage_parts.h - what stage.c and stage_channels.c share. Private to them. */
#ifndef TY_ESTIMATOR_SPEC_STAGE_PARTS_H
#define TY_ESTIMATOR_SPEC_STAGE_PARTS_H

#include "estimator_spec/stage.h"

/* A string of the body by its dotted path; NULL: there is none. */
const char *ty_stage_text(const ty_doc *map, const char *path);
/* Whether every channel can be given here, and every input has a channel. */
int ty_stage_check_channels(const ty_stage *s, ty_arena *a, ty_error *err);
/* Content of channels, mounts, and inputdataconfig.json. */
int ty_stage_lay_channels(ty_stage *s, ty_arena *a, ty_error *err);

#endif
