/* apart.c - see apart.h. */
#include "compiler/apart.h"

enum { APART_DTYPES = 3, APART_ADDS = 1, APART_RELU = 2, APART_GROUPED = 4, APART_CONVS = 8 };

_Static_assert((TY_N_LINEAR_KINDS + APART_CONVS) * APART_DTYPES <= 64, "a bit for each kind");

static ty_apart apart_kind(int number, ty_dtype dtype)
{
    static const ty_dtype dtypes[APART_DTYPES] = {TY_F32, TY_BF16, TY_F16};
    for (int i = 0; i < APART_DTYPES; i++)
        if (dtypes[i] == dtype)
            return (ty_apart)1 << (number * APART_DTYPES + i);
    return 0;
}

ty_apart ty_apart_linear(ty_linear_kind kind, ty_dtype dtype)
{
    return apart_kind((int)kind, dtype);
}

ty_apart ty_apart_conv(bool adds, bool relu, bool grouped, ty_dtype dtype)
{
    int does = (adds ? APART_ADDS : 0) | (relu ? APART_RELU : 0) | (grouped ? APART_GROUPED : 0);
    return apart_kind(TY_N_LINEAR_KINDS + does, dtype);
}

ty_apart ty_apart_slow(void)
{
    static const ty_linear_kind kinds[] = {TY_LINEAR_RELU_GRAD,     TY_LINEAR_RELU_GRAD_SUM, TY_LINEAR_GELU_GRAD,
                                           TY_LINEAR_GELU_GRAD_SUM, TY_LINEAR_SUM_A,         TY_LINEAR_SUM_B};
    ty_apart all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all |= ty_apart_linear(kinds[i], TY_BF16) | ty_apart_linear(kinds[i], TY_F16);
    return all;
}

ty_apart ty_apart_of(const ty_graph *g, uint32_t node)
{
    const ty_attr *attr = ty_graph_attr(g, node);
    ty_op op = ty_graph_op(g, node);
    if (op != TY_OP_LINEAR && op != TY_OP_CONV_BIAS)
        return 0;
    ty_dtype dtype = (ty_dtype)ty_graph_type(g, ty_graph_in(g, node, 0))->dtype;
    if (op == TY_OP_LINEAR)
        return ty_apart_linear((ty_linear_kind)attr->index, dtype);
    return ty_apart_conv(ty_graph_node(g, node)->n_in > 3, attr->index, attr->groups > 1, dtype);
}

void ty_apart_refused(const ty_graph *g, uint32_t node, ty_error *err)
{
    if (err && (err->code == TY_E_NO_EPILOGUE || err->code == TY_E_NO_FUSION))
        err->which = ty_apart_of(g, node);
}
