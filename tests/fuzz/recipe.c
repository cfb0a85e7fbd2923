/* A recipe: YAML, overrides, choices, fields. The first line, if it is a comment, holds overrides: "# key=value
 * key=value". */
#include "entrypoint/recipe.h"
#include "base/log.h"

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
    if (rc < 0 && (err.code == TY_E_NONE || err.code == TY_E_INTERNAL || !err.message[0]))
        abort();
    if (rc == 0) {
        ty_buf text;
        ty_buf_init(&text, (size_t)16 << 20);
        ty_recipe_print_origin(&recipe, &text);
        if (!recipe.model || recipe.n_loss < 1 || recipe.train.n_fields < 1 || recipe.batch_size < 1)
            abort();
        ty_buf_fini(&text);
    }
    ty_arena_fini(&arena);
    return 0;
}
