/* einsum.h - Einstein sums as a chain of batched products, for importers. */
#ifndef TY_COMPILER_IMPORT_EINSUM_H
#define TY_COMPILER_IMPORT_EINSUM_H

#include "compiler/ir/graph.h"

enum { TY_EINSUM_MAX_INPUTS = 8 };

/* NumPy's notation: "bij,bjk->bik", "...ij->...ji", "ii"; letters of axes of 1 stretch. TY_NONE where it cannot be
 * done: *why then says what is wrong with the equation ("has a character that is no letter"), or is NULL where the
 * graph has the error. The inputs have one dtype. */
ty_val ty_einsum(ty_graph *g, const char *equation, const ty_val *in, int n_in, const char **why);

#endif
