/* container_config.h - everything that the platform told this container, read once and never changed.
 *
 * ty_container_config_read is called at the start; from then on functions take the parts they use (paths, a channel,
 * the resources ...), never the whole. Reading touches input/config and the given environment only; nothing is created.
 */
#ifndef TY_CONTAINER_CONFIG_CONTAINER_CONFIG_H
#define TY_CONTAINER_CONFIG_CONTAINER_CONFIG_H

#include "container/config/arguments.h"
#include "container/config/channels.h"
#include "container/config/distribution.h"
#include "container/config/hyperparameters.h"
#include "container/config/inherited.h"
#include "container/config/paths.h"
#include "container/config/program.h"
#include "container/config/resources.h"

typedef struct ty_container_config {
    ty_inherited inherited;
    ty_paths paths;
    ty_hyperparameters hyperparameters;
    ty_arguments arguments;
    ty_resources resources;
    ty_distribution distribution;
    ty_channels channels;
    ty_program program;
    const char *const *notices; /* [n_notices]: what was assumed or corrected, one sentence each, for the log */
    size_t n_notices;
} ty_container_config;

/* Reads the config files below SAGEMAKER_BASE_DIR (or /opt/ml) as envp says. Everything lies in the arena; strings of
 * envp are referred to and must stay.
 *
 * A missing file stands for none: no hyperparameters, no channels, a single host; each gives a notice. Only a managed
 * job (TRAINING_JOB_ARN is set) must have a resourceconfig.json: without it every host of a cluster would train alone.
 * Errors carry file, line and column: TY_E_SYNTAX, TY_E_DUPLICATE, TY_E_TYPE, TY_E_MISSING_KEY, TY_E_RANGE,
 * TY_E_CONFIG; TY_E_NOT_FOUND for the required file. */
int ty_container_config_read(ty_container_config *config, ty_arena *a, const char *const *envp, ty_error *err);

#endif
