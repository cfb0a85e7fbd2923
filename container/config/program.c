/* program.c - hyperparameters against variables: who wins is the toolkit's choice, row by row (contract, 5.4). */
#include "container/config/program.h"

#include <string.h>

/* A known hyperparameter that must be a string; null and an absent one give the fallback. A number is taken as it was
 * written: SDKs encode "007" without quotes. */
static int program_text(const ty_value *known, const char *key, const char *fallback, const char **out, ty_error *err)
{
    const ty_value *v = ty_value_get(known, key);

    *out = fallback;
    if (v == NULL || v->kind == TY_VALUE_NULL)
        return 0;
    if (v->kind != TY_VALUE_STRING && v->kind != TY_VALUE_INT)
        return ty_error_set(err, TY_E_TYPE, "hyperparameter \"%s\": expected a string, found %s", key,
                            ty_value_kind_name(v->kind));
    *out = v->text;
    return 0;
}

static const char *program_module_name(ty_arena *a, const char *entry_point)
{
    size_t len;

    if (entry_point == NULL)
        return "None";
    len = strlen(entry_point);
    if (len >= 3 && strcmp(entry_point + len - 3, ".py") == 0)
        len -= 3;
    return ty_arena_strndup(a, entry_point, len);
}

int ty_program_init(ty_program *p, ty_arena *a, const ty_value *known, const ty_inherited *inherited, const char *code,
                    ty_error *err)
{
    const char *region = inherited->region != NULL       ? inherited->region
                         : inherited->aws_region != NULL ? inherited->aws_region
                                                         : "";
    const ty_value *log_level = ty_value_get(known, "sagemaker_container_log_level");

    *p = (ty_program){.framework_module = inherited->training_module};
    if (program_text(known, "sagemaker_program", NULL, &p->entry_point, err) < 0 ||
        program_text(known, "sagemaker_submit_directory", code, &p->submit_directory, err) < 0 ||
        program_text(known, "sagemaker_region", region, &p->region, err) < 0 ||
        program_text(known, "sagemaker_s3_output", NULL, &p->s3_output, err) < 0 ||
        program_text(known, "sagemaker_job_name", "", &p->sdk_job_name, err) < 0 ||
        program_text(known, "_tuning_objective_metric", NULL, &p->tuning_metric, err) < 0)
        return -1;
    if (inherited->program != NULL && inherited->program[0] != '\0')
        p->entry_point = inherited->program;
    if (p->entry_point != NULL && p->entry_point[0] == '\0')
        p->entry_point = NULL;
    p->module_name = program_module_name(a, p->entry_point);
    p->log_level = log_level != NULL ? *log_level : ty_value_int(a, 20);
    return 0;
}
