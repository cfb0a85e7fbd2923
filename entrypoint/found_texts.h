/* found_texts.h - fields for texts in data whose recipe declares none, of a model that has a tokenizer beside it
 * (ty_model_preparation): input_ids, attention_mask and token_type_ids are made of one column or feature of text, or of
 * a pair of them; what a decoder reads is made of another; and so are the labels of a model whose labels are tokens,
 * tags of words, or places of answers.
 *
 * Which column or feature that is, names in use tell (found_texts.c): "text", "sentence1" and "sentence2", "tokens" and
 * "ner_tags" ...
 */
#ifndef TY_ENTRYPOINT_FOUND_TEXTS_H
#define TY_ENTRYPOINT_FOUND_TEXTS_H

#include "compiler/compiler.h"
#include "container/input/survey.h"
#include "entrypoint/recipe.h"

enum { TY_FOUND_MAX_TOKEN_FIELDS = 6 };

/* Whether all inputs are made of a text's tokens, and the data have none of them ready. */
bool ty_found_wants_texts(const ty_recipe *r, const ty_model *m, const ty_data_survey *s);
/* The labels are made of texts too. */
bool ty_found_makes_labels(const ty_model *m);
/* The field that they are; NULL: there are several, which the loss names. */
const char *ty_found_label(const ty_model *m);

/* Adds up to TY_FOUND_MAX_TOKEN_FIELDS fields. labels: parts that are no texts of the model's, n_labels from
 * first_label. Refuses data without a text, or with several of which none has a usual name. */
int ty_found_texts(const ty_recipe *r, const ty_model *m, const ty_data_survey *s, int first_label, int n_labels,
                   ty_arena *a, ty_field *fields, int *n_fields, ty_error *err);

#endif
