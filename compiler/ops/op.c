/* op.c - the table of ops, made from ops.def. */
#include "compiler/ops/op.h"

#include "compiler/ops/families.h"

#include <string.h>

/* What the rows call none. */
#define ty_op_ref_none   NULL
#define ty_op_grad_none  NULL
#define ty_op_lower_none NULL

static const ty_op_row op_rows[TY_N_OPS] = {
#define OP(NAME, text, min_in, max_in, n_res, CLASS, attrs, infer, ref, grad, lower, weight) \
    [TY_OP_##NAME] = {text,                                                                  \
                      min_in,                                                                \
                      max_in,                                                                \
                      n_res,                                                                 \
                      TY_CLASS_##CLASS,                                                      \
                      attrs,                                                                 \
                      weight,                                                                \
                      ty_op_infer_##infer,                                                   \
                      ty_op_ref_##ref,                                                       \
                      ty_op_grad_##grad,                                                     \
                      ty_op_lower_##lower},
#include "compiler/ops/ops.def"
#undef OP
};

const ty_op_row *ty_op_row_of(ty_op op)
{
    return &op_rows[op];
}

ty_op ty_op_parse(const char *text)
{
    for (int op = 0; op < TY_N_OPS; op++)
        if (strcmp(op_rows[op].text, text) == 0)
            return (ty_op)op;
    return TY_N_OPS;
}
