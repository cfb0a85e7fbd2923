/* transform.h - transforms of fields whose format has only numbers, and crosses, which no format has. Private to
 * dataset.c and streams.
 *
 * Formats that can hold texts apply maps themselves, where the text is at hand (ty_format.maps). Of the others the
 * stored rows are read, and what the batch gets is made of them here. Crosses stand last among the fields; a format
 * never sees them.
 */
#ifndef TY_CONTAINER_INPUT_TRANSFORM_H
#define TY_CONTAINER_INPUT_TRANSFORM_H

#include "container/input/format.h"
#include "container/input/map/map.h"

typedef struct ty_transforms {
    int n_stored;          /* fields that the format has: the first ones */
    const ty_field *field; /* [n_fields] as declared, for their maps */
    ty_field_info *stored; /* [n_stored]: of the format's rows, where these are not the batch's */
    int **cross;           /* [n_fields - n_stored][n_cross]: numbers of the crossed fields */
    const bool *is_stored; /* [n_stored]: the map is applied here */
} ty_transforms;

/* Opens with the format what it can open, learns what is to be learnt, and fills types of all fields. ds->transforms
 * stays NULL where nothing has to be done in reading. A format with a read_all of its own knows maps (ty_format.maps).
 */
int ty_transform_open(ty_dataset *ds, const ty_data_source *src, const ty_format *format, ty_error *err);
/* As the dataset's rows of functions do. */
int ty_transform_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err);
int ty_transform_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err);

/* Hides words in rows of a field that are read, where its map does so (ty_map_hide). */
void ty_transform_hide(const ty_dataset *ds, int field, const ty_pick *pick, void *rows);

/* Range and kind of what a settled map makes. */
void ty_map_info(const ty_map *m, ty_field_info *info);
/* Made of other fields; no format has it. */
bool ty_field_is_cross(const ty_field *f);
/* Finds the crossed ones among the stored fields, from[n_cross] of them, and the cross's type. */
int ty_transform_settle_cross(const ty_field *cross, const ty_field_info *stored, int n_stored, int *from,
                              ty_field_info *info_of_cross, ty_error *err);
/* n rows of a cross: from[c] and rows[c] are of the c-th crossed field. */
int ty_transform_cross(const ty_map *map, const ty_field_info *const *from, const char *const *rows, int64_t n,
                       const ty_field_info *info, char *out, ty_error *err);

#endif
