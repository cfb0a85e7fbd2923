/* profile.h - what the numbers of a data set look like: range, mean, distribution of each field, and what is odd.
 *
 * Two walks over all samples, in blocks: the first finds ranges and moments, the second counts. Numbers of a field that
 * has several count alike, whatever their place.
 */
#ifndef TY_CONTAINER_INPUT_PROFILE_H
#define TY_CONTAINER_INPUT_PROFILE_H

#include "container/input/dataset.h"

enum { TY_PROFILE_BINS = 32 };

typedef struct ty_field_profile {
    int64_t n;                /* finite numbers */
    int64_t n_not_finite;     /* NaN and infinite ones */
    int64_t first_not_finite; /* the sample of the first; -1: none */
    int64_t n_zero;
    double min, max, mean, deviation; /* of the finite ones; deviation: of all of them, divided by n */
    int64_t bin[TY_PROFILE_BINS];     /* equally wide from min to max */
    bool is_constant;                 /* min == max */
    bool is_whole;                    /* all are whole numbers */
    double correlation;               /* with the target, of fields with one number a sample; NaN: not known */
} ty_field_profile;

/* out[i]: of field i. target: number of the field that others are compared with, or -1. */
int ty_data_profile(const ty_dataset *ds, int target, ty_field_profile *out, ty_error *err);

/* Of n numbers at hand. */
void ty_profile_numbers(const double *v, int64_t n, ty_field_profile *out);
/* Of one field, without distribution and correlation, in one walk: range, moments and what is not finite. */
int ty_data_range(const ty_dataset *ds, int field, ty_field_profile *out, ty_error *err);

#endif
