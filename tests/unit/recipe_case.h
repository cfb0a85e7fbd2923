/* recipe_case.h - recipes that are texts, for tests of what they mean. */
#ifndef TY_TESTS_UNIT_RECIPE_CASE_H
#define TY_TESTS_UNIT_RECIPE_CASE_H

#include "entrypoint/recipe.h"

#include <string.h>

static const char *const shortest = "model: m.onnx\nloss: mse\ndata: {train: {fields: [x, t]}}\n";

static ty_arena arena;

static inline int setup(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    return 0;
}
static inline int teardown(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return 0;
}

static inline int parse(const char *text, const ty_recipe_override *o, int n, ty_recipe *r, ty_error *err)
{
    *err = (ty_error){0};
    return ty_recipe_parse("train.yaml", text, strlen(text), "/job", o, n, &arena, r, err);
}

static inline ty_recipe good(const char *text, const ty_recipe_override *o, int n)
{
    ty_recipe r;
    ty_error err;
    if (parse(text, o, n, &r, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    return r;
}

#endif
