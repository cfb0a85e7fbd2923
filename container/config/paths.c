/* paths.c - one table of names below the base folder. */
#include "container/config/paths.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    size_t offset;
    const char *below;
} path_rows[] = {
    {offsetof(ty_paths, base), ""},
    {offsetof(ty_paths, input), "/input"},
    {offsetof(ty_paths, input_config), "/input/config"},
    {offsetof(ty_paths, input_data), "/input/data"},
    {offsetof(ty_paths, code), "/code"},
    {offsetof(ty_paths, model), "/model"},
    {offsetof(ty_paths, checkpoints), "/checkpoints"},
    {offsetof(ty_paths, output), "/output"},
    {offsetof(ty_paths, output_data), "/output/data"},
    {offsetof(ty_paths, output_intermediate), "/output/intermediate"},
    {offsetof(ty_paths, failure), "/output/failure"},
    {offsetof(ty_paths, failure_json), "/output/failure.json"},
    {offsetof(ty_paths, success), "/output/success"},
};

void ty_paths_init(ty_paths *paths, ty_arena *a, const char *base_dir)
{
    if (base_dir == NULL || base_dir[0] == '\0')
        base_dir = TY_PATHS_DEFAULT_BASE;

    size_t len = strlen(base_dir);

    while (len > 1 && base_dir[len - 1] == '/')
        len--;
    if (len == 1 && base_dir[0] == '/') /* "/" itself: the names below bring their own slash */
        len = 0;

    const char *base = ty_arena_strndup(a, base_dir, len);

    for (size_t i = 0; i < sizeof path_rows / sizeof path_rows[0]; i++) {
        const char *path = ty_arena_printf(a, "%s%s", base, path_rows[i].below);
        memcpy((char *)paths + path_rows[i].offset, &path, sizeof path);
    }
    if (len == 0)
        paths->base = "/";
}

const char *ty_paths_channel(const ty_paths *paths, ty_arena *a, const char *channel)
{
    return ty_arena_printf(a, "%s/%s", paths->input_data, channel);
}

const char *ty_paths_config_file(const ty_paths *paths, ty_arena *a, const char *name)
{
    return ty_arena_printf(a, "%s/%s", paths->input_config, name);
}

static int path_make_folder(const char *path, ty_error *err)
{
    struct stat st;

    if (mkdir(path, 0777) == 0)
        return 0;

    int mkdir_errno = errno;

    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return 0;
        mkdir_errno = ENOTDIR;
    }
    ty_code code = mkdir_errno == EACCES || mkdir_errno == EPERM ? TY_E_PERMISSION : TY_E_CREATE;
    ty_error_errno(err, code, mkdir_errno, "cannot create the folder %s", path);
    return ty_error_help(err, "mount a writable folder at %s, or set " TY_PATHS_BASE_VARIABLE, TY_PATHS_DEFAULT_BASE);
}

int ty_paths_create(const ty_paths *paths, ty_error *err)
{
    const char *const folders[] = {paths->base, paths->model, paths->output, paths->output_data};

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (path_make_folder(folders[i], err) < 0)
            return -1;
    return 0;
}
