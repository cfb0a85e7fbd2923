/* toolchain.h - which C compiler makes kernels, models written in C and programs of script mode, where, and how long it
 * is waited for.
 *
 * The compiler, in this order: $CC; the one that came with this program (a bundle has it in cc/bin/cc, beside the
 * folder bin/ of its programs); "cc", which the system looks for in PATH.
 */
#ifndef TY_BASE_TOOLCHAIN_H
#define TY_BASE_TOOLCHAIN_H

#include <stdbool.h>

/* Not NULL, not empty. $CC's text lives as long as nobody changes the environment, the others for ever. From any
 * thread. */
const char *ty_toolchain_cc(void);
/* The folder in which it works in folders of its own: $TMPDIR, or "/tmp". Likewise. */
const char *ty_toolchain_folder(void);

/* Who waits for a compiler of kernels or of a model asks this some twenty times a second, and where it says true ends
 * the compiler and fails with TY_E_STOPPED. A signal to our process group does not do: a compiler that is started just
 * then is born too late for it, and one of a group of its own never gets it. NULL, as at the start: every compiler is
 * waited for to its end. From any thread. */
void ty_toolchain_ends_if(bool (*is_over)(void));
bool ty_toolchain_is_over(void);

#endif
