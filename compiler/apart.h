/* apart.h - calls that a library refuses together with what follows them are compiled apart.
 *
 * Whether there is an algorithm or an engine for both shows when the library is asked on the GPU. Its error names the
 * pass that has put them together (compiler/compile.c has the list of passes).
 */
#ifndef TY_COMPILER_APART_H
#define TY_COMPILER_APART_H

#include "compiler/compiler.h"

#define TY_PASS_EPILOGUE "epilogue" /* products: TY_E_NO_EPILOGUE */
#define TY_PASS_ATTACH   "attach"   /* convolutions: TY_E_NO_FUSION */

enum { TY_APART_MOST = 16 }; /* passes left out */

/* Leaves out of *opt the pass that the error names, as one more of names[TY_APART_MOST], which outlive it. False if it
 * names none, or one that is left out already. */
bool ty_compile_apart(ty_code why, const char **names, ty_compile_options *opt);

#endif
