/* recipe_names.c - lists of names in a recipe. */
#include "entrypoint/recipe_reader.h"

enum { NAMES_MAX = 4096 };

int ty_recipe_read_names(recipe_reader *rd, const ty_doc *node, const char *what, ty_names *out, int *n_out)
{
    const ty_doc *items = node;
    size_t n = ty_doc_len(node);
    if (!node || node->kind == TY_DOC_NULL)
        n = 0;
    else if (node->kind == TY_DOC_STRING)
        n = 1;
    else if (ty_doc_expect(node, TY_DOC_LIST, rd->err) < 0)
        return ty_error_wrap(rd->err, "%s", what);
    else
        items = node->items;
    if (n > NAMES_MAX)
        return ty_doc_error(node, rd->err, TY_E_LIMIT, NULL, "\"%s\" has more than %d names", what, NAMES_MAX);
    const char **names = TY_NEW_ARRAY(rd->a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        if (ty_doc_string(&items[i], &names[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "%s", what);
    *out = names;
    *n_out = (int)n;
    return 0;
}
