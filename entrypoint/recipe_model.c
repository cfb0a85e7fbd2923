/* recipe_model.c - a model file in the place of a recipe. */
#include "base/json.h"
#include "base/yaml.h"
#include "entrypoint/recipe_reader.h"

#include <string.h>
#include <sys/stat.h>

/* Model files stand for a recipe that names them and nothing else: the file's own settings and arguments say the rest.
 */
bool ty_recipe_is_model(const char *path)
{
    static const char *const suffixes[] = {".onnx", ".keras", ".h5", ".hdf5", ".pb", ".meta", ".index", ".c"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(dot, suffixes[i]) == 0)
            return true;
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int ty_recipe_of_model(const char *path, ty_arena *a, ty_doc **root, ty_error *err)
{
    const char *end = path + strlen(path);
    while (end > path + 1 && end[-1] == '/')
        end--;
    const char *name = end;
    while (name > path && name[-1] != '/')
        name--;
    ty_buf text;
    ty_buf_init(&text, 1 << 16);
    ty_buf_addf(&text, "model: ");
    ty_json_add_string(&text, ty_arena_strndup(a, name, (size_t)(end - name)), 0);
    int rc = ty_yaml_parse(a, path, text.data, text.len, NULL, NULL, NULL, root, err);
    ty_buf_fini(&text);
    return rc;
}
