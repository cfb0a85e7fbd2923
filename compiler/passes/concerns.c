/* concerns.c - which passes a graph need not go through: see ty_pass_concerns. */
#include "compiler/passes/passes.h"

#include <string.h>

enum { CONCERNS_MOST = 7 };

/* Passes that change nothing where a graph has none of these ops. Others look at nearly every graph. */
static const struct {
    const char *pass;
    int n;
    ty_op op[CONCERNS_MOST];
} concerns[] = {
    {"attend", 2, {TY_OP_ATTENTION, TY_OP_ATTENTION_GRAD}},
    {"pack", 1, {TY_OP_ATTEND}},
    {"layout",
     7,
     {TY_OP_CONV, TY_OP_CONV_DX, TY_OP_CONV_DW, TY_OP_POOL_MAX, TY_OP_POOL_MAX_GRAD, TY_OP_POOL_SUM,
      TY_OP_POOL_SUM_GRAD}},
    {"winograd", 3, {TY_OP_CONV, TY_OP_CONV_DX, TY_OP_CONV_DW}},
    {"narrow", 1, {TY_OP_TRANSPOSE}},
    {"stride", 1, {TY_OP_CONV_DX}},
    {"accumulate", 2, {TY_OP_SCATTER, TY_OP_PUT}},
};

static bool concerns_has(const ty_graph *g, const ty_op *op, int n)
{
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        for (int i = 0; i < n; i++)
            if (ty_graph_op(g, id) == op[i])
                return true;
    return false;
}

bool ty_pass_concerns(const char *pass, const ty_graph *g)
{
    for (size_t i = 0; i < sizeof concerns / sizeof *concerns; i++)
        if (strcmp(concerns[i].pass, pass) == 0)
            return concerns_has(g, concerns[i].op, concerns[i].n);
    return true;
}
