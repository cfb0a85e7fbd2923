/* plugin.h - what many hosts need of foreign libraries, in shared objects of ours that are opened when they are asked
 * for.
 *
 * No program of ours is linked with MPI, PMIx or UCX: most jobs have one host, and start faster without. Each library
 * has a plug-in, libtrainyard-NAME.so, which alone is linked with it and offers a table of functions.
 * dist/plugin/NAME.c (and NAME_*.c) is its source, and the header of the table says its version.
 *
 * Who uses one:
 *     const ty_engine *engine;
 *     if (ty_plugin_open("mpi", TY_ENGINE_VERSION, (const void **)&engine, err) < 0)
 *         return -1;                        // one message: what is missing and which package has it
 *
 * Who writes one, in dist/plugin/mpi.c:
 *     TY_PLUGIN = {"mpi", TY_ENGINE_VERSION, "libmpi.so.40", mpi_version, &mpi_engine};
 *
 * A plug-in has base/ and dist/ in copies of its own and sees no variable of the program. So it logs nothing (its copy
 * of the log was never opened): what it has to say, it returns as a ty_error or through functions that it was given.
 *
 * A plug-in is looked for, in this order, and the first folder that has it counts:
 *     $TRAINYARD_PLUGINS     if it is set, only there
 *     HOME/lib/trainyard     HOME as in base/home.h: the folder above the program's
 *     HOME/lib
 *     beside the shared library that holds this code, in trainyard/ there and in the folder itself
 */
#ifndef TY_DIST_PLUGIN_H
#define TY_DIST_PLUGIN_H

#include "base/error.h"

#include <stddef.h>

typedef struct ty_plugin {
    const char *name; /* as in the file's name */
    int version;      /* of the table; another one than wanted is refused */
    /* Soname of a library whose symbols its own parts need to see, NULL: none. Open MPI's components are not linked
     * with libmpi but expect its symbols to be everybody's. */
    const char *global;
    const char *(*library)(void); /* version of the foreign library: "Open MPI 4.1.4"; no call to it must precede */
    const void *table;
} ty_plugin;

/* The one symbol that a plug-in shows. */
#define TY_PLUGIN_SYMBOL "ty_plugin_entry"
#define TY_PLUGIN                           \
    extern const ty_plugin ty_plugin_entry; \
    __attribute__((visibility("default"))) const ty_plugin ty_plugin_entry

/* Opens the plug-in, or finds it open, and points *table at its table, which is never closed. TY_E_NOT_FOUND: there is
 * no such plug-in, or the library that it is linked with is missing (the help names the package). TY_E_LIBRARY: what is
 * there is no plug-in, or one for another version of the table. From any thread. */
int ty_plugin_open(const char *name, int version, const void **table, ty_error *err);

/* What is found of a plug-in, whatever its table's version: *path (of its file, lives until the next call in this
 * thread) and the library's version. Errors as above. */
int ty_plugin_look(const char *name, const char **path, const char **library, ty_error *err);

#endif
