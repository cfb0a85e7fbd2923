/* op.h - rows of ops.def as C: what each op is and the functions that define it.
 *
 * An op is defined by its row and by up to four functions in its family's file (unary.c, movement.c, ...):
 *   infer  types of the results from types of the inputs; refuses what is not allowed, with expected and found
 *   ref    the meaning, in double (floats) and int64 (integers, bool): the judge of every other implementation,
 *          and what folds constants. Clear before fast.
 *   grad   appends nodes that compute the gradient of each differentiable input
 *   lower  takes a composite apart
 */
#ifndef TY_COMPILER_OPS_OP_H
#define TY_COMPILER_OPS_OP_H

#include "compiler/ir/graph.h"

typedef enum ty_op_class {
    TY_CLASS_LEAF,
    TY_CLASS_ELEMENTWISE,
    TY_CLASS_LOOP,
    TY_CLASS_REDUCE,
    TY_CLASS_LIBRARY,
    TY_CLASS_COMPOSITE,
    TY_CLASS_EFFECT
} ty_op_class;

/* A tensor in reference arithmetic: floats as double, integers and bool as int64 (u64 by bit pattern).
 * 16- and 32-bit floats are not rounded between ops; only a cast to them rounds. */
typedef struct ty_ref {
    ty_type type;
    double *f;  /* elems values if dtype is a float, else NULL */
    int64_t *i; /* elems values if not */
} ty_ref;

/* in[k] are the operands; res[k].type is inferred and res[k].f or .i allocated (zeroed) by the caller. */
typedef int ty_ref_fn(const ty_attr *attr, const ty_ref *in, int n_in, ty_ref *res, ty_error *err);
/* in[k] may be NULL for an absent optional input. */
typedef int ty_infer_fn(const ty_attr *attr, const ty_type *const *in, int n_in, ty_type *res, ty_error *err);
/* dres[k] is the gradient of result k (TY_NONE: zero); set din[k] for inputs that have one (all are TY_NONE before). */
typedef void ty_grad_fn(ty_graph *g, uint32_t node, const ty_val *dres, ty_val *din);
typedef void ty_lower_fn(ty_graph *g, const ty_attr *attr, const ty_val *in, int n_in, ty_val *res);

typedef struct ty_op_row {
    const char *text;
    int min_in, max_in; /* max_in -1: no limit */
    int n_res;
    ty_op_class class_;
    const char *attrs;
    int weight; /* of an element, of ELEMENTWISE and LOOP */
    ty_infer_fn *infer;
    ty_ref_fn *ref;     /* NULL for leaves and effects */
    ty_grad_fn *grad;   /* NULL: not differentiable */
    ty_lower_fn *lower; /* NULL unless COMPOSITE */
} ty_op_row;

/* Of one step. */
#define TY_MAX_REPLICAS 65536

const ty_op_row *ty_op_row_of(ty_op op);
static inline bool ty_op_is_elementwise(ty_op op)
{
    return ty_op_row_of(op)->class_ == TY_CLASS_ELEMENTWISE;
}
/* The op of a text name, or TY_N_OPS. */
ty_op ty_op_parse(const char *text);

#endif
