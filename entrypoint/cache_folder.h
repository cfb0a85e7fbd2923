/* cache_folder.h - where compiled kernels are kept. */
#ifndef TY_ENTRYPOINT_CACHE_FOLDER_H
#define TY_ENTRYPOINT_CACHE_FOLDER_H

#include "base/arena.h"

/* $TRAINYARD_CACHE_DIR if it is set ("" or "none": NULL), else the user's own: $XDG_CACHE_HOME/trainyard or
 * $HOME/.cache/trainyard; NULL without a home. For commands; a job in a container keeps nothing that nobody asked for.
 */
const char *ty_cache_folder(ty_arena *a);

#endif
