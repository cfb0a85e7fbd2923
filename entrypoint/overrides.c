/* overrides.c - reading --key=value. */
#include "entrypoint/overrides.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Hyperparameters of other trainers' estimators that say nothing to a recipe. */
static const char *const not_of_the_recipe[] = {"recipe", "model_dir", "mp_parameters"};

static bool is_of_the_recipe(const ty_hyperparameter *h)
{
    for (size_t i = 0; i < sizeof not_of_the_recipe / sizeof not_of_the_recipe[0]; i++)
        if (strcmp(h->name, not_of_the_recipe[i]) == 0)
            return false;
    return h->kind == TY_RESERVED_NOT && h->value.kind != TY_VALUE_NULL;
}

int ty_overrides_of_hyperparameters(const ty_hyperparameters *h, ty_arena *a, ty_recipe_override *out)
{
    int n = 0;
    for (size_t i = 0; i < h->n_items; i++)
        if (is_of_the_recipe(&h->items[i]))
            out[n++] = (ty_recipe_override){h->items[i].name, h->items[i].text,
                                            ty_arena_printf(a, "hyperparameter \"%s\"", h->items[i].name)};
    return n;
}

/* --data and --validation name files or folders from where the command runs, not from where the recipe lies. */
static int overrides_place(ty_recipe_override *o, ty_arena *a, ty_error *err)
{
    static const char *const keys[][2] = {{"data", "data.train.path"}, {"validation", "data.validation.path"}};
    char here[PATH_MAX];
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(o->key, keys[i][0]) != 0 || o->text[0] == '{')
            continue;
        o->key = keys[i][1];
        if (o->text[0] == '/')
            return 0;
        if (!getcwd(here, sizeof here))
            return ty_error_errno(err, TY_E_NONE, errno, "the folder that --%s starts from", keys[i][0]);
        o->text = ty_arena_printf(a, "%s/%s", here, o->text);
    }
    return 0;
}

int ty_overrides_parse(const char *const *args, ty_arena *a, const ty_recipe_override **out, int *n_out, ty_error *err)
{
    int n_args = 0, n = 0;
    while (args[n_args])
        n_args++;
    ty_recipe_override *list = TY_NEW_ARRAY(a, ty_recipe_override, n_args);
    for (int i = 0; i < n_args; i++) {
        const char *word = args[i];
        if (strncmp(word, "--", 2) != 0 || word[2] == 0 || word[2] == '=') {
            ty_error_set(err, TY_E_USAGE, "unexpected argument \"%s\"", word);
            return ty_error_help(err, "settings have the form --key=value");
        }
        const char *equals = strchr(word, '=');
        const char *key = equals ? ty_arena_strndup(a, word + 2, (size_t)(equals - word) - 2) : word + 2;
        if (!equals && !args[i + 1]) {
            ty_error_set(err, TY_E_USAGE, "argument %s has no value", word);
            return ty_error_help(err, "write %s=VALUE", word);
        }
        const char *value = equals ? equals + 1 : args[++i];
        list[n] = (ty_recipe_override){key, value, ty_arena_printf(a, "argument --%s", key)};
        if (overrides_place(&list[n++], a, err) < 0)
            return -1;
    }
    *out = list;
    *n_out = n;
    return 0;
}

int ty_overrides_take(const ty_arguments_given *given, ty_arena *a, ty_job *job, ty_error *err)
{
    return ty_overrides_parse(given->rest, a, &job->overrides, &job->n_overrides, err);
}
