/* found.h - fields for data whose recipe declares none, from what the files hold and what the model takes.
 *
 * Arrays (npz, npy, IDX): each is a field of its name; likewise columns of Parquet and Arrow of which some are lists,
 * which are as long as the model's input of their name.
 *
 * A table whose header names all inputs of the model: each of these is a field, and the target is one. Any other table,
 * for a model with one input: the field "features" holds all columns but the target's.
 *
 * Pictures: the field "image", of the size, channels and layout that the model's first input has if its rank is 4;
 * their folders' names, or the labels of a list, are the field "label". Sounds likewise.
 *
 * Texts, of a model that has a tokenizer beside it: tokens (found_texts.h).
 *
 * The target of a table is the column that `target` of the recipe's data or its loss names; else the first N where the
 * channel's content type says label_size=N (0: there is none); else one that is called as targets usually are; else the
 * first one, which is where SageMaker's built-in algorithms have it.
 *
 * Labels that are texts become class numbers in alphabetical order (classes: auto); any other column of text has to be
 * declared.
 *
 * Which field feeds what is another question (spec.h), which knows the same usual names.
 */
#ifndef TY_ENTRYPOINT_FOUND_H
#define TY_ENTRYPOINT_FOUND_H

#include "compiler/compiler.h"
#include "container/input/survey.h"
#include "entrypoint/recipe.h"

/* Fills the fields of r->train, and of r->validation if it has none either. source: of the training data; its fields
 * are not looked at. All lies in the arena. */
int ty_found_fields(ty_recipe *r, const ty_model *m, const ty_data_source *source, ty_arena *a, ty_error *err);

/* The same where nothing can be looked at, a channel in Pipe mode: of delimited text, by its content type or format,
 * for a model with one input: label_size columns, or one, then features. 1: found, 0: they cannot be, -1. */
int ty_found_fields_of_pipe(ty_recipe *r, const ty_model *m, const ty_data_source *source, ty_arena *a, ty_error *err);

/* Fields that the recipe declares without columns, of a table without a header whose channel's content type says
 * label_size=N: the target's are the first N columns, and those of the one other field the rest. What has columns keeps
 * them, and is told where they are others than the labels. is_pipe: nothing can be looked at. */
int ty_found_label_columns(ty_recipe *r, const ty_data_source *source, bool is_pipe, ty_arena *a, ty_error *err);

/* The field that the recipe, or by its name the model, wants for input i. */
const char *ty_found_wanted(const ty_recipe *r, const ty_model *m, int i);
/* The part of that name, or -1. */
int ty_found_part(const ty_data_survey *s, const char *name);
/* A field that is called as targets usually are: y, label, targets ... */
bool ty_found_is_target(const char *field);
/* Input i of several is called x<i> in arrays without better names, output i's target y<i>; prefix 'x' or 'y'. */
bool ty_found_is_number(const char *field, char prefix, int i);

#endif
