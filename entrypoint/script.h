/* script.h - script mode: the user's own program as the training job.
 *
 * What kind of program it is follows from its name, in the order of the contract (sagemaker training toolkit), with one
 * kind added:
 *
 *     NAME.sh            ./NAME, by its own first line; /bin/sh ./NAME if it has none
 *     any, setup.py      python -m pip install . (and requirements.txt), then python -m NAME
 *     NAME.py            python -m pip install -r requirements.txt if there is one, then python NAME
 *     NAME.c             cc -O2 into a temporary folder, with <trainyard/trainyard.h>, then that program
 *     anything else      ./NAME
 *
 * The program gets its arguments as an exact vector: no shell ever reads them.
 */
#ifndef TY_ENTRYPOINT_SCRIPT_H
#define TY_ENTRYPOINT_SCRIPT_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

typedef struct ty_script {
    const char *program; /* as the job names it: relative to the code folder, or absolute */
    const char *code_folder;
    const char *const *args; /* NULL-terminated */
} ty_script;

typedef struct ty_command {
    const char *const *argv; /* NULL-terminated; argv[0] is executed */
    const char *path;        /* what is executed as argv[0]; NULL: argv[0] itself */
    const char *cwd;
    bool is_python; /* argv[0] is the interpreter */
    const char
        *shell_argv0; /* for a file that the kernel cannot execute (no "#!"): run /bin/sh with argv; NULL: never */
} ty_command;

/* Installs or compiles what must be, and finds the command. Strings live in the arena. */
int ty_script_prepare(const ty_script *script, ty_arena *a, ty_command *out, ty_error *err);
/* The command of one of several ranks, as the platform's toolkit makes it: Python runs the program through mpi4py, if
 * that is installed, since then an exception on one rank ends it, where it would else wait for the others while it
 * leaves; and with `data_parallel` all of it runs through smddprun, if that is installed. */
void ty_script_as_rank(ty_command *command, bool data_parallel, ty_arena *a);
/* Becomes the program; returns only on failure, with 126 or 127 in *exec_status. */
int ty_script_execute(const ty_command *command, int *exec_status, ty_error *err);
/* The command as one line for logs and reports: words joined by spaces, values of arguments whose name may be a secret
 * as "xxx". */
const char *ty_command_text(const ty_command *command, ty_arena *a);

#endif
