/* cache_folder.c - see cache_folder.h. */
#include "entrypoint/cache_folder.h"

#include <stdlib.h>
#include <string.h>

const char *ty_cache_folder(ty_arena *a)
{
    const char *given = getenv("TRAINYARD_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given)
        return *given && strcmp(given, "none") != 0 ? given : NULL;
    if (xdg && xdg[0] == '/')
        return ty_arena_printf(a, "%s/trainyard", xdg);
    return home && home[0] == '/' ? ty_arena_printf(a, "%s/.cache/trainyard", home) : NULL;
}
