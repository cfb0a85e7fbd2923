/* ctype.h - what a dtype is in generated C: its type in memory, its type in registers (16-bit floats are computed in
 * float), the suffix of its functions in the prelude, its lowest and highest value. Text without spaces around it. */
#ifndef TY_COMPILER_KERNEL_CTYPE_H
#define TY_COMPILER_KERNEL_CTYPE_H

#include "base/tensor.h"

typedef struct ty_ctype {
    const char *memory, *value, *suffix, *lowest, *highest;
} ty_ctype;

extern const ty_ctype ty_ctypes[TY_N_DTYPES]; /* by dtype */

#endif
