/* preprocessing.h - preprocessing.json: how raw data become what a trained model takes.
 *
 *     {"version": 1,
 *      "data": {"format": "csv", "header": "yes", "delimiter": ","},
 *      "inputs": {"x": "features"},             model input: field
 *      "targets": ["species"],
 *      "fields": {"species": {"declared": {"columns": "4", "classes": "auto"},     as in a recipe
 *                             "type": "int64",  "shape": [],
 *                             "settled": {"words": ["setosa", "versicolor", "virginica"]}}}}
 *
 * It stands beside model.json wherever a field has transforms or is a picture. `trainyard run MODEL --data FILE`
 * applies it to raw rows, a recipe's `preprocessing: FILE` takes what was learnt from it.
 */
#ifndef TY_ENTRYPOINT_PREPROCESSING_H
#define TY_ENTRYPOINT_PREPROCESSING_H

#include "container/input/dataset.h"
#include "container/input/map/map.h"
#include "entrypoint/recipe.h"
#include "entrypoint/spec.h"

#define TY_PREPROCESSING_NAME "preprocessing.json"

typedef struct ty_preprocessing {
    ty_recipe_data data;         /* fields with settled maps; format, header, delimiter, index_base */
    const char **input, **field; /* [n_inputs] */
    int n_inputs;
} ty_preprocessing;

/* ds: of training data that are open, NULL: none. */
bool ty_preprocessing_is_needed(const ty_field *fields, int n, const ty_dataset *ds);
/* Of training data that are open. plan: which field feeds what; NULL: not known. */
int ty_preprocessing_write(const ty_recipe_data *d, const ty_field *fields, const ty_dataset *ds,
                           const ty_spec_plan *plan, ty_buf *out, ty_error *err);
/* Everything lies in the arena. */
int ty_preprocessing_read(const char *path, ty_arena *a, ty_preprocessing *out, ty_error *err);
/* Settles the maps of fields with what the file has for their names. */
int ty_preprocessing_settle(const char *path, ty_arena *a, const ty_field *fields, int n, ty_error *err);

#endif
