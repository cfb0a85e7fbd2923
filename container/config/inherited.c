/* inherited.c - picks our variables out of an environment. */
#include "container/config/inherited.h"

#include "container/config/paths.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} inherited_rows[] = {
    {TY_PATHS_BASE_VARIABLE, offsetof(ty_inherited, base_dir)},
    {"SAGEMAKER_PROGRAM", offsetof(ty_inherited, program)},
    {"SAGEMAKER_TRAINING_MODULE", offsetof(ty_inherited, training_module)},
    {"SAGEMAKER_REGION", offsetof(ty_inherited, region)},
    {"AWS_REGION", offsetof(ty_inherited, aws_region)},
    {"TRAINING_JOB_NAME", offsetof(ty_inherited, job_name)},
    {"TRAINING_JOB_ARN", offsetof(ty_inherited, job_arn)},
    {"PYTHONPATH", offsetof(ty_inherited, python_path)},
    {"SM_HP_MP_PARAMETERS", offsetof(ty_inherited, mp_parameters)},
};

static const char *inherited_value(const char *const *envp, const char *name)
{
    size_t len = strlen(name);

    for (; *envp != NULL; envp++)
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
            return *envp + len + 1;
    return NULL;
}

void ty_inherited_init(ty_inherited *inherited, const char *const *envp)
{
    for (size_t i = 0; i < sizeof inherited_rows / sizeof inherited_rows[0]; i++) {
        const char *value = inherited_value(envp, inherited_rows[i].name);
        memcpy((char *)inherited + inherited_rows[i].offset, &value, sizeof value);
    }
}
