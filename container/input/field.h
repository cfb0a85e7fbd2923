/* field.h - what a user declares about one named quantity of the data: where it is, its type and shape.
 *
 * A recipe says
 *
 *     fields: {image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}, label: {columns: 64, type: int64}}
 *
 * and every entry becomes one ty_field. A declaration knows nothing of files; ty_dataset_open() holds it against them.
 */
#ifndef TY_CONTAINER_INPUT_FIELD_H
#define TY_CONTAINER_INPUT_FIELD_H

#include "base/arena.h"
#include "base/error.h"
#include "base/tensor.h"
#include "container/input/text.h"

/* A batch has one dimension more than a sample. */
#define TY_SAMPLE_MAX_RANK (TY_MAX_RANK - 1)

/* Make one with ty_field_make(), then set what is declared. Strings are borrowed and must outlive the dataset's
 * opening only. */
typedef struct ty_field {
    const char *name;    /* "image" */
    const char *columns; /* CSV: "0-63", "64", "0-3,7", "-1", "age,height"; see ty_columns_resolve. NULL: `name` is the
                          * header's name of the one column */
    const char *member;  /* npz: the member's name without ".npy"; records: the feature. NULL: `name` */
    const char *part[TY_N_TEXT_PARTS]; /* what belongs with it: members, or columns as above; NULL: nothing */
    const char *file; /* npy, IDX: shell pattern of the files that hold the field, matched with the path below the
                       * channel or the bare file name. NULL: every file if there is one field, else "<name>*" */
    ty_dtype dtype;   /* type in the batch, if dtype_given; else f32 for CSV and for scaled values, as stored for
                       * arrays */
    bool dtype_given;
    bool shape_given; /* false: as the data say (CSV: scalar for one column, else [n_columns]) */
    int rank;
    int64_t dim[TY_SAMPLE_MAX_RANK]; /* shape of one sample, without the batch */
    double scale, offset;            /* batch value = stored value * scale + offset, computed in double */
    double missing;                  /* value of an empty CSV field, if missing_given; else NaN, and refused for
                                      * integers */
    bool missing_given;
    int64_t max_length; /* records: fields of any length become [max_length], filled up at their ends with
                         * `missing` (or 0) or cut; 0: all have one length */
    /* The stored bytes are a picture (image/plan.h); NULL: they are not. Its mean and std that are learnt stand here
     * too from then on, for whoever opens other data with the same declaration. */
    struct ty_image_plan *image;
    struct ty_audio_plan *audio; /* the stored bytes are a sound (audio/plan.h); NULL: they are not */
    struct ty_map
        *map; /* transforms (map/map.h), which then do scale, offset, missing and max_length too; NULL: none */
} ty_field;

/* A field with nothing declared: scale 1, offset 0. */
ty_field ty_field_make(const char *name);

/* Checks what can be checked without data: name, dtype, positive dims, finite scale that is not zero, no scale on
 * bool. */
int ty_field_check(const ty_field *f, ty_error *err);

/* Works out a column specification against a table of n_columns columns.
 *   spec     items parted by commas: a number (0 is the first), a negative number (-1 is the last), a range "a-b" with
 *            both ends included ("0-63", "-3--1"), or a name of the header. What reads as a number is never a name.
 *   header   n_columns names, or NULL when the table has none
 *   out      *out receives *n_out column numbers, allocated in `arena`, in the order of the specification
 * Refuses numbers outside the table, unknown and ambiguous names, backward ranges and more than 1,048,576 columns. */
int ty_columns_resolve(const char *spec, const char *const *header, int64_t n_columns, ty_arena *arena, int32_t **out,
                       int32_t *n_out, ty_error *err);

bool ty_field_has_parts(const ty_field *f);
/* All columns of a field, the last of them those of its parts, n_part of each. */
int ty_field_columns(const ty_field *f, const char *const *header, int64_t n_columns, ty_arena *arena, int32_t **out,
                     int32_t *n_out, int32_t n_part[TY_N_TEXT_PARTS], ty_error *err);

/* Whether the specification holds an item that can only be a name, so that a header is needed. */
bool ty_columns_need_header(const char *spec);
/* The same of all that a field names, which without columns is its name. */
bool ty_field_needs_header(const ty_field *f);

#endif
