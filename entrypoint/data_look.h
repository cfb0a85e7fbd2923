/* data_look.h - whether a recipe's data fit its model, from their headers and first rows alone.
 *
 * For `trainyard check`, which answers in a fraction of a second and reads no value: a data set that fits here may
 * still hold a label beyond the last class, which a run finds before its first step.
 */
#ifndef TY_ENTRYPOINT_DATA_LOOK_H
#define TY_ENTRYPOINT_DATA_LOOK_H

#include "entrypoint/spec.h"

/* One of data.train, data.validation. */
typedef struct ty_data_look {
    const char *name; /* "data.train" */
    const char *path; /* file or folder; NULL: no channel of that name is known */
    const char *why;  /* it was not looked at; NULL: it was, and fits */
    const char *help; /* what to do about that, or NULL */
    const char *format;
    int64_t n_samples; /* -1: not known without reading all of it */
} ty_data_look;

/* Fills out[2] and returns how many the recipe names; -1: there are data, and they do not fit. Channels are folders of
 * data_folder (may be NULL). Texts lie in the arena. */
int ty_data_look_at(const ty_recipe *r, const ty_spec_plan *plan, const char *data_folder, ty_arena *a,
                    ty_data_look out[2], ty_error *err);

/* Fills the fields of a recipe that declares none, where its training data are here (found.h). */
int ty_data_look_for_fields(ty_recipe *r, const ty_model *m, const char *data_folder, ty_arena *a, ty_error *err);

#endif
