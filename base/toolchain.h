/* toolchain.h - which C compiler makes kernels, models written in C and programs of script mode, and where.
 *
 * The compiler, in this order: $CC; the one that came with this program (a bundle has it in cc/bin/cc, beside the
 * folder bin/ of its programs); "cc", which the system looks for in PATH.
 */
#ifndef TY_BASE_TOOLCHAIN_H
#define TY_BASE_TOOLCHAIN_H

/* Not NULL, not empty. $CC's text lives as long as nobody changes the environment, the others for ever. From any
 * thread. */
const char *ty_toolchain_cc(void);
/* The folder in which it works in folders of its own: $TMPDIR, or "/tmp". Likewise. */
const char *ty_toolchain_folder(void);

#endif
