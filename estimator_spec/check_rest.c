/* check_rest.c - image, network, checkpoints, hyperparameters as a whole, and the files of the source. */
#include "estimator_spec/job_parts.h"

#include "base/file.h"
#include "estimator_spec/hyperparameters.h"

#include <string.h>

static int check_image(job_reader *rd)
{
    bool image = job_given(rd, TY_FIELD_IMAGE), algorithm = job_given(rd, TY_FIELD_ALGORITHM);
    if (!image && !algorithm && !rd->world->is_local) {
        ty_job_refuse(rd, TY_FIELD_IMAGE, TY_E_MISSING_KEY, "key \"image\" is missing");
        return ty_error_help(rd->err, "write image: ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG, or algorithm");
    }
    if (image && algorithm)
        return ty_job_refuse(rd, TY_FIELD_ALGORITHM, TY_E_CONFIG, "\"image\" and \"algorithm\" are both given");
    if (job_given(rd, TY_FIELD_IMAGE_CREDENTIALS) && !job_given(rd, TY_FIELD_IMAGE_ACCESS))
        return ty_job_refuse(rd, TY_FIELD_IMAGE_CREDENTIALS, TY_E_CONFIG, "\"credentials\" goes with access: Vpc");
    return 0;
}

static int check_network(job_reader *rd)
{
    bool subnets = ty_jobspec_has(rd->job, TY_FIELD_SUBNETS),
         groups = ty_jobspec_has(rd->job, TY_FIELD_SECURITY_GROUPS);
    const char *access = job_text(rd, TY_FIELD_IMAGE_ACCESS);
    if (subnets != groups)
        return ty_job_refuse(rd, subnets ? TY_FIELD_SUBNETS : TY_FIELD_SECURITY_GROUPS, TY_E_CONFIG,
                             "a VPC needs \"subnets\" and \"security_groups\", found only \"%s\"",
                             subnets ? "subnets" : "security_groups");
    if (access && strcmp(access, "Vpc") == 0 && !subnets)
        return ty_job_refuse(rd, TY_FIELD_IMAGE_ACCESS, TY_E_CONFIG,
                             "access: Vpc needs network.subnets and network.security_groups");
    return 0;
}

/* A key that says nothing without another. */
static int check_pairs(job_reader *rd)
{
    static const struct {
        ty_field_id id, needs;
    } pairs[] = {
        {TY_FIELD_CHECKPOINT_PATH, TY_FIELD_CHECKPOINT_URI},
        {TY_FIELD_TENSORBOARD_PATH, TY_FIELD_TENSORBOARD_URI},
        {TY_FIELD_ARGUMENTS, TY_FIELD_ENTRYPOINT},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (job_given(rd, pairs[i].id) && !job_given(rd, pairs[i].needs))
            return ty_job_refuse(rd, pairs[i].id, TY_E_CONFIG, "\"%s\" needs \"%s\"", ty_field_path(pairs[i].id, rd->a),
                                 ty_field_path(pairs[i].needs, rd->a));
    return 0;
}

/* Checkpoints that two jobs share are mixed up. */
static void warn_of_places(job_reader *rd)
{
    const char *uri = job_text(rd, TY_FIELD_CHECKPOINT_URI), *output = job_text(rd, TY_FIELD_OUTPUT_PATH);
    if (uri && output && strcmp(uri, output) == 0)
        ty_job_warn(rd, "checkpoints and output share %s: the next job with this file goes on from these checkpoints",
                    uri);
}

/* ---- source ---- */

static const char *resolve(job_reader *rd, const char *folder, const char *path)
{
    return ty_path_within(folder, path, rd->a);
}

static int check_program(job_reader *rd, ty_field_id id)
{
    const char *program = job_text(rd, id), *folder = job_text(rd, TY_FIELD_SOURCE_FOLDER), *base = rd->job->folder;
    if (folder && (program[0] == '/' || strncmp(program, "../", 3) == 0 || strstr(program, "/../")))
        return ty_job_refuse(rd, id, TY_E_RANGE, "key \"%s\": \"%s\" leads out of the folder \"%s\"", ty_fields[id].key,
                             program, folder);
    if (!base)
        return 0;
    const char *path = resolve(rd, folder ? resolve(rd, base, folder) : base, program);
    if (folder && !ty_file_is_folder(resolve(rd, base, folder)))
        return ty_job_refuse(rd, TY_FIELD_SOURCE_FOLDER, TY_E_NOT_FOUND, "the folder \"%s\" does not exist",
                             resolve(rd, base, folder));
    if (ty_file_size(path) < 0)
        return ty_job_refuse(rd, id, TY_E_NOT_FOUND, "the %s \"%s\" does not exist in \"%s\"", ty_fields[id].key,
                             program, folder ? folder : base);
    return 0;
}

static int check_dependencies(job_reader *rd)
{
    const ty_doc *list = rd->job->value[TY_FIELD_DEPENDENCIES].node;
    for (size_t i = 0; rd->job->folder && i < ty_doc_len(list); i++)
        if (!ty_file_exists(resolve(rd, rd->job->folder, list->items[i].string)))
            return ty_doc_error(&list->items[i], rd->err, TY_E_NOT_FOUND, NULL, "the dependency \"%s\" does not exist",
                                list->items[i].string);
    return 0;
}

static int check_source(job_reader *rd)
{
    bool program = job_given(rd, TY_FIELD_PROGRAM), recipe = job_given(rd, TY_FIELD_RECIPE);
    bool uri = job_given(rd, TY_FIELD_SOURCE_URI);
    if (!ty_jobspec_has(rd->job, TY_FIELD_SOURCE))
        return 0;
    if (program == recipe) {
        ty_job_refuse(rd, program ? TY_FIELD_RECIPE : TY_FIELD_SOURCE, TY_E_CONFIG,
                      "\"source\" needs one of \"program\" and \"recipe\", found %s", program ? "both" : "neither");
        return ty_error_help(rd->err, "program: what is run; recipe: a train.yaml for Trainyard's own trainer");
    }
    if (uri && (job_given(rd, TY_FIELD_SOURCE_FOLDER) || job_given(rd, TY_FIELD_DEPENDENCIES) ||
                job_given(rd, TY_FIELD_CODE_LOCATION)))
        return ty_job_refuse(rd, TY_FIELD_SOURCE_URI, TY_E_CONFIG,
                             "\"uri\" names an archive that is there already: no folder, dependencies or location");
    if (uri)
        return 0;
    return check_program(rd, program ? TY_FIELD_PROGRAM : TY_FIELD_RECIPE) < 0 ? -1 : check_dependencies(rd);
}

int ty_job_check_rest(job_reader *rd)
{
    ty_hyperparameter *list;
    int n;
    if (check_image(rd) < 0 || check_network(rd) < 0 || check_pairs(rd) < 0 || check_source(rd) < 0)
        return -1;
    warn_of_places(rd);
    return ty_hyperparameters(rd->job, rd->a, &list, &n, rd->err);
}
