/* plugin.c - see plugin.h. dlopen counts and locks by itself, so nothing is kept here. */
#define _GNU_SOURCE
#include "dist/plugin.h"

#include "base/home.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLUGIN_PATH_BYTES = 4096 };

/* Debian's packages of what plug-ins are linked with. */
static const struct {
    const char *name, *title, *package;
} plugin_rows[] = {
    {"mpi", "Open MPI", "libopenmpi3"},
    {"pmix", "PMIx", "libpmix2"},
    {"ucx", "UCX", "libucx0"},
};

/* The folder of the file that holds this code: of a program, or of a shared library of ours in another's program. */
static void plugin_own_folder(char *out)
{
    static const char here;
    Dl_info info;
    char path[PLUGIN_PATH_BYTES];
    strcpy(out, ".");
    if (!dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, path))
        return;
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    strcpy(out, path);
}

/* Writes the path of the plug-in in the first folder that has it. tried: the folders, for the message. */
static int plugin_find(const char *name, char *path, char *tried, size_t n_tried)
{
    char own[PLUGIN_PATH_BYTES];
    const char *only = getenv("TRAINYARD_PLUGINS"), *home = ty_home_folder();
    plugin_own_folder(own);
    const struct {
        const char *folder, *below;
    } rows[] = {{home, "/lib/trainyard"}, {home, "/lib"}, {own, "/trainyard"}, {own, ""}};
    if (only && *only) {
        snprintf(tried, n_tried, "%s", only);
        snprintf(path, PLUGIN_PATH_BYTES, "%s/libtrainyard-%s.so", only, name);
        return access(path, F_OK);
    }
    *tried = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t at = strlen(tried);
        snprintf(tried + at, n_tried - at, "%s%s%s", at ? ", " : "", rows[i].folder, rows[i].below);
        snprintf(path, PLUGIN_PATH_BYTES, "%s%s/libtrainyard-%s.so", rows[i].folder, rows[i].below, name);
        if (access(path, F_OK) == 0)
            return 0;
    }
    return -1;
}

static int plugin_no_library(const char *name, const char *path, const char *reason, ty_error *err)
{
    for (size_t i = 0; i < sizeof plugin_rows / sizeof *plugin_rows; i++) {
        if (strcmp(plugin_rows[i].name, name) != 0)
            continue;
        ty_error_set(err, TY_E_NOT_FOUND, "%s is needed and cannot be loaded: %s", plugin_rows[i].title, reason);
        ty_error_at(err, "%s", path);
        return ty_error_help(err, "install the package %s (apt-get install %s), or use an image that has it",
                             plugin_rows[i].package, plugin_rows[i].package);
    }
    return ty_error_set(err, TY_E_NOT_FOUND, "the plug-in %s cannot be loaded: %s", path, reason);
}

/* The library is loaded already, by the plug-in, where nobody else sees it: this makes its symbols everybody's. */
static int plugin_make_global(const ty_plugin *p, ty_error *err)
{
    void *handle = p->global ? dlopen(p->global, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) : NULL;
    if (p->global && !handle)
        return ty_error_set(err, TY_E_LIBRARY, "the plug-in %s is not linked with %s, of which it says so", p->name,
                            p->global);
    return 0;
}

static int plugin_load(const char *name, char *path, const ty_plugin **out, ty_error *err)
{
    char tried[2 * PLUGIN_PATH_BYTES];
    if (plugin_find(name, path, tried, sizeof tried) < 0) {
        ty_error_set(err, TY_E_NOT_FOUND, "there is no plug-in libtrainyard-%s.so; looked in %s", name, tried);
        return ty_error_help(err, "it is built and installed with the programs, in lib/ beside their bin/: copy both");
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return plugin_no_library(name, path, dlerror(), err);
    const ty_plugin *p = dlsym(handle, TY_PLUGIN_SYMBOL);
    if (!p || strcmp(p->name, name) != 0) {
        ty_error_set(err, TY_E_LIBRARY, "%s is no plug-in \"%s\" of Trainyard: it %s%s", path, name,
                     p ? "says it is " : "has no " TY_PLUGIN_SYMBOL, p ? p->name : "");
        dlclose(handle);
        return -1;
    }
    *out = p;
    return plugin_make_global(p, err);
}

int ty_plugin_open(const char *name, int version, const void **table, ty_error *err)
{
    char path[PLUGIN_PATH_BYTES];
    const ty_plugin *p;
    if (plugin_load(name, path, &p, err) < 0)
        return -1;
    if (p->version != version) {
        ty_error_set(err, TY_E_LIBRARY, "%s has version %d of its table, this program expects %d", path, p->version,
                     version);
        return ty_error_help(err, "programs and plug-ins must come from one build");
    }
    *table = p->table;
    return 0;
}

int ty_plugin_look(const char *name, const char **path, const char **library, ty_error *err)
{
    static _Thread_local char found[PLUGIN_PATH_BYTES];
    const ty_plugin *p;
    if (plugin_load(name, found, &p, err) < 0)
        return -1;
    *path = found;
    *library = p->library();
    return 0;
}
