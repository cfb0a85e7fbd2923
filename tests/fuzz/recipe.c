/* A recipe: YAML, overrides, choices, fields, and what it means for a model. The first line, if it is a comment, holds
 * overrides: "# key=value key=value". */
#include "base/log.h"
#include "entrypoint/recipe.h"
#include "entrypoint/spec.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_OVERRIDES = 16 };

static int list_overrides(ty_arena *arena, const char *text, size_t size, ty_recipe_override *out)
{
    int n = 0;
    if (size == 0 || text[0] != '#')
        return 0;
    const char *end = memchr(text, '\n', size);
    char *line = ty_arena_strndup(arena, text + 1, end ? (size_t)(end - text) - 1 : size - 1);
    for (char *save, *word = strtok_r(line, " ", &save); word && n < MAX_OVERRIDES; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (!equals)
            continue;
        *equals = 0;
        out[n++] = (ty_recipe_override){word, equals + 1, "argument"};
    }
    return n;
}

static void refused(const ty_error *err)
{
    if (err->code == TY_E_NONE || err->code == TY_E_INTERNAL || !err->message[0])
        abort();
}

/* The digits' model, and data whose fields have the shapes that were declared. */
static void specify(const ty_recipe *recipe, ty_arena *arena)
{
    static ty_model *model;
    ty_error err = {0};
    ty_spec_plan plan;
    ty_train_spec spec;
    if (!model && ty_model_open("examples/digits/model.onnx", &model, &err) < 0)
        abort();
    if (ty_spec_plan_make(recipe, model, arena, &plan, &err) < 0) {
        refused(&err);
        return;
    }
    ty_dataset data = {.n_fields = plan.n_fields, .field = TY_NEW_ARRAY(arena, ty_field_info, plan.n_fields)};
    for (int i = 0; i < plan.n_fields; i++) {
        const ty_field *f = &plan.fields[i];
        data.field[i].name = f->name;
        data.field[i].type = ty_type_make(f->dtype, f->rank < 0 ? 0 : f->rank, f->dim);
    }
    if (ty_spec_build(recipe, &plan, &data, 1, 10, 100, recipe->validation.given, arena, &spec, &err) < 0)
        refused(&err);
    else if (spec.n_loss < 1 || spec.n_inputs < 1 || !spec.schedule.boundaries)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_log_set_level(TY_LOG_QUIET);
    ty_recipe_override overrides[MAX_OVERRIDES];
    ty_recipe recipe;
    ty_error err = {0};
    int n = list_overrides(&arena, (const char *)data, size, overrides);
    int rc = ty_recipe_parse("train.yaml", (const char *)data, size, "/job", overrides, n, &arena, &recipe, &err);
    if (rc < 0)
        refused(&err);
    if (rc == 0) {
        ty_buf text;
        ty_buf_init(&text, (size_t)16 << 20);
        ty_recipe_print_origin(&recipe, &text);
        if (!recipe.model || recipe.n_loss < 1 || recipe.train.n_fields < 0 || recipe.batch_size < 1)
            abort();
        ty_buf_fini(&text);
        if (recipe.train.n_fields > 0) /* else they are found in the data */
            specify(&recipe, &arena);
    }
    ty_arena_fini(&arena);
    return 0;
}
