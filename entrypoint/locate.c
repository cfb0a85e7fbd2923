/* locate.c - looking for train.yaml. */
#include "entrypoint/locate.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

bool ty_recipe_is_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static bool try_folder(const char *folder, const char *name, ty_arena *a, const char **out, char *looked, size_t n)
{
    size_t len = strlen(looked);
    snprintf(looked + len, n - len, "%s%s", len ? ", " : "", folder);
    *out = ty_arena_printf(a, "%s/%s", folder, name);
    return ty_file_exists(*out) && !ty_file_is_folder(*out);
}

int ty_recipe_locate(const char *named, const char *code_folder, const ty_job_channel *channels, int n_channels,
                     ty_arena *a, const char **out, ty_error *err)
{
    static const char *const order[] = {"config", "model", "train"};
    const char *name = named && *named ? named : "train.yaml";
    char looked[320] = "";
    if (name[0] == '/') {
        *out = name;
        if (ty_file_exists(name))
            return 0;
        return ty_error_set(err, TY_E_NOT_FOUND, "the recipe \"%s\" does not exist", name);
    }
    if (try_folder(code_folder, name, a, out, looked, sizeof looked))
        return 0;
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (int i = 0; i < n_channels; i++)
            if (strcmp(channels[i].name, order[k]) == 0 &&
                try_folder(channels[i].path, name, a, out, looked, sizeof looked))
                return 0;
    if (named && *named)
        ty_error_set(err, TY_E_NOT_FOUND, "the recipe \"%s\" was not found", name);
    else
        ty_error_set(err, TY_E_CONFIG, "nothing to train: no program is named, and there is no recipe train.yaml");
    ty_error_help(err, "looked in %s; a program is named by SAGEMAKER_PROGRAM or sagemaker_program", looked);
    return -1;
}
