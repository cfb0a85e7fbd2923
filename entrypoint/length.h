/* length.h - what of a recipe depends on how long an epoch is, which of a stream nobody knows before it has ended. */
#ifndef TY_ENTRYPOINT_LENGTH_H
#define TY_ENTRYPOINT_LENGTH_H

#include "entrypoint/recipe.h"

/* The key that needs to know how many steps an epoch or the whole run has: "schedule.cosine"; NULL: none does. `steps`
 * (max_steps) says the run's, data.train.samples both. *at: where it stands, or NULL. */
const char *ty_length_needed(const ty_recipe *r, const ty_doc **at);

#endif
