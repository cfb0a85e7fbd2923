/* spec.h - what a recipe means for one model and its data: the specification that the compiler takes.
 *
 * Two halves, because data are opened in between: ty_spec_plan() decides which field feeds what and fills in types that
 * the recipe leaves open (a label of a class loss is int64, an input has the model's type); ty_spec_build() then knows
 * all shapes.
 */
#ifndef TY_ENTRYPOINT_SPEC_H
#define TY_ENTRYPOINT_SPEC_H

#include "compiler/compiler.h"
#include "container/input/dataset.h"
#include "entrypoint/recipe.h"

/* One input of the compiled step and the field that it is copied from. */
typedef struct ty_feed {
    const char *name; /* of the input: the model's own, or the field's for targets */
    const char *field;
    const ty_model_value *input;  /* of the model; NULL for targets and sample weights */
    const ty_model_value *output; /* targets: of the model, that they are compared with; else NULL */
    bool is_label;                /* class numbers */
    const ty_doc *at;             /* for messages; may be NULL */
    int64_t ignore_index;         /* labels: value that does not count */
} ty_feed;

typedef struct ty_spec_plan {
    const ty_feed *feeds;
    int n_feeds;
    const ty_field *fields; /* the recipe's, completed: open the datasets with these */
    int n_fields;
    const ty_loss_term *loss;
    const ty_metric *metrics;
} ty_spec_plan;

int ty_spec_plan_make(const ty_recipe *r, const ty_model *m, ty_arena *a, ty_spec_plan *out, ty_error *err);

/* Fields to open d with: those of d, with the types that the plan has filled in. */
const ty_field *ty_spec_fields(const ty_recipe *r, const ty_spec_plan *plan, const ty_recipe_data *d, ty_arena *a);

/* Rows of as many numbers as the input has in a sample get its shape. False: they stay as they are. */
bool ty_spec_take_shape(const ty_model_value *wanted, ty_type *type);

/* Whether types and shapes of a data set fit the model's inputs; ty_spec_build looks at that, too. */
int ty_spec_check_data(const ty_recipe *r, const ty_spec_plan *plan, const ty_dataset *data, ty_error *err);

/* replicas: that share each batch, whose number divides it. steps_per_epoch and total_steps resolve spans of the
 * schedule. Everything lies in the arena. */
int ty_spec_build(const ty_recipe *r, const ty_spec_plan *plan, const ty_dataset *data, int replicas,
                  int64_t steps_per_epoch, int64_t total_steps, bool has_validation, ty_arena *a, ty_train_spec *out,
                  ty_error *err);

#endif
