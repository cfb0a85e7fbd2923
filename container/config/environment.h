/* environment.h - the SM_* variables that a user's program finds.
 *
 * environment.def has one row for each. Beside them: SM_CHANNEL_<NAME>, SM_HP_<NAME>, SM_TOPOLOGY, SM_TRAINING_ENV.
 * Names are upper-cased and otherwise kept ("SM_HP_LEARNING-RATE"); since shells cannot name such variables and dash
 * drops them, each is also there with '_' for every other character ("SM_HP_LEARNING_RATE"), unless that name is taken.
 */
#ifndef TY_CONTAINER_CONFIG_ENVIRONMENT_H
#define TY_CONTAINER_CONFIG_ENVIRONMENT_H

#include "container/config/arguments.h"
#include "container/config/channels.h"
#include "container/config/distribution.h"
#include "container/config/hardware.h"
#include "container/config/hyperparameters.h"
#include "container/config/inherited.h"
#include "container/config/paths.h"
#include "container/config/program.h"
#include "container/config/resources.h"

/* The kernel's limit on one string of an environment (MAX_ARG_STRLEN), name, '=' and NUL included. */
#define TY_ENVIRONMENT_STRING_MAX_BYTES ((size_t)128 << 10)

/* What the table draws from; all are needed. */
typedef struct ty_environment_sources {
    const ty_paths *paths;
    const ty_hyperparameters *hyperparameters;
    const ty_arguments *arguments;
    const ty_resources *resources;
    const ty_distribution *distribution;
    const ty_channels *channels;
    const ty_program *program;
    const ty_hardware *hardware;
    const ty_inherited *inherited;
} ty_environment_sources;

typedef struct ty_variable {
    const char *name;
    const char *value;
} ty_variable;

typedef struct ty_environment {
    const ty_variable *items; /* [n_items], sorted by name, no name twice */
    size_t n_items;
    const char *const *left_out; /* [n_left_out]: names whose value is too long for the kernel; worth a log line */
    size_t n_left_out;
} ty_environment;

void ty_environment_init(ty_environment *e, ty_arena *a, const ty_environment_sources *sources);
/* The value of a variable, or NULL. */
const char *ty_environment_get(const ty_environment *e, const char *name);
/* A whole environment for execve, NULL at the end: what was inherited, with ours over it. */
char **ty_environment_block(const ty_environment *e, ty_arena *a, const char *const *inherited);

#endif
