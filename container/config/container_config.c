/* container_config.c - the order in which the files are read and depend on each other. */
#include "container/config/container_config.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define NOTICES_MAX 8

typedef struct config_reader {
    ty_arena *arena;
    const ty_paths *paths;
    const char *notices[NOTICES_MAX];
    size_t n_notices;
} config_reader;

static void config_notice(config_reader *r, const char *text)
{
    if (r->n_notices < NOTICES_MAX)
        r->notices[r->n_notices++] = text;
}

/* *out = NULL if the file is not there. */
static int config_read_file(config_reader *r, const char *name, const char *without, const ty_doc **out, ty_error *err)
{
    const char *path = ty_paths_config_file(r->paths, r->arena, name);
    struct stat st;
    ty_doc *doc;

    *out = NULL;
    if (stat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        config_notice(r, ty_arena_printf(r->arena, "%s is not there: %s", path, without));
        return 0;
    }
    if (ty_json_read(r->arena, path, NULL, &doc, err) < 0)
        return -1;
    *out = doc;
    return 0;
}

static int config_read_resources(config_reader *r, ty_container_config *c, ty_error *err)
{
    const ty_doc *doc;

    if (config_read_file(r, "resourceconfig.json", "a single host is assumed", &doc, err) < 0)
        return -1;
    if (doc == NULL && c->inherited.job_arn != NULL) {
        ty_error_set(err, TY_E_NOT_FOUND, "%s is not there, but this is a managed job (TRAINING_JOB_ARN is set)",
                     ty_paths_config_file(r->paths, r->arena, "resourceconfig.json"));
        return ty_error_help(err, "the platform writes it before the start; look whether something hides %s",
                             r->paths->input_config);
    }
    return ty_resources_init(&c->resources, r->arena, doc, err);
}

static int config_read_hyperparameters(config_reader *r, ty_container_config *c, ty_error *err)
{
    const ty_doc *doc;

    if (config_read_file(r, "hyperparameters.json", "no hyperparameters", &doc, err) < 0 ||
        ty_hyperparameters_init(&c->hyperparameters, r->arena, doc, err) < 0)
        return -1;
    ty_arguments_init(&c->arguments, r->arena, &c->hyperparameters.user);
    return ty_program_init(&c->program, r->arena, &c->hyperparameters.known, &c->inherited, c->paths.code, err);
}

static int config_read_channels(config_reader *r, ty_container_config *c, ty_error *err)
{
    const ty_doc *doc;

    if (config_read_file(r, "inputdataconfig.json", "no channels", &doc, err) < 0)
        return -1;
    return ty_channels_init(&c->channels, r->arena, doc, c->paths.input_data, err);
}

static int config_derive_distribution(config_reader *r, ty_container_config *c, ty_error *err)
{
    ty_distribution *d = &c->distribution;

    if (ty_distribution_init(d, r->arena, &c->resources, &c->hyperparameters.framework, err) < 0)
        return -1;
    if (d->corrected_flag != NULL)
        config_notice(r, ty_arena_printf(r->arena,
                                         "hyperparameter \"%s\" is the raw word for false and taken as off; send "
                                         "it JSON-encoded (false)",
                                         d->corrected_flag));
    return 0;
}

/* The only place where a custom checkpoint folder is told. Observed, not promised: other shapes are ignored. */
static int config_read_checkpoint_path(config_reader *r, ty_container_config *c, ty_error *err)
{
    const ty_doc *doc, *local;
    size_t before = r->n_notices;

    if (config_read_file(r, "checkpointconfig.json", "", &doc, err) < 0)
        return -1;
    r->n_notices = before; /* its absence is normal */
    local = ty_doc_find(doc, "LocalPath");
    if (local != NULL && local->kind == TY_DOC_STRING && local->string[0] == '/')
        c->paths.checkpoints = local->string;
    return 0;
}

int ty_container_config_read(ty_container_config *c, ty_arena *a, const char *const *envp, ty_error *err)
{
    config_reader r = {.arena = a, .paths = &c->paths};

    *c = (ty_container_config){0};
    ty_inherited_init(&c->inherited, envp);
    ty_paths_init(&c->paths, a, c->inherited.base_dir);
    if (config_read_resources(&r, c, err) < 0 || config_read_hyperparameters(&r, c, err) < 0 ||
        config_read_channels(&r, c, err) < 0 || config_derive_distribution(&r, c, err) < 0 ||
        config_read_checkpoint_path(&r, c, err) < 0)
        return -1;
    c->notices = ty_arena_copy(a, r.notices, sizeof r.notices);
    c->n_notices = r.n_notices;
    return 0;
}
