/* tf_ops.h - what the functions that import TensorFlow's operations see. Private to compiler/import/tensorflow.
 *
 * An operation is one row of tf_ops.def and one function `void tf_op_NAME(tf_ctx *c)`. It reads inputs and attributes
 * through c, emits graph nodes, and sets outputs:
 *
 *     void tf_op_square(tf_ctx *c)
 *     {
 *         tf_set(c, 0, ty_b_square(c->g, tf_in(c, 0)));
 *     }
 *
 * Inputs up to the row's min_in are there, and are tensors unless the row says otherwise. What cannot be done is
 * refused with tf_fail(), once; return then. Failures of graph constructors need no check: they are sticky, and the
 * driver turns them into a fault of this node. But do not ask TY_NONE for its shape.
 *
 * Only nodes that the chosen outputs need are imported, each after its inputs and its control inputs, otherwise in the
 * order of the file. Variables have a present value: a read gives it, an assignment renews it, so that the order
 * decides what a read sees, as it does in TensorFlow.
 */
#ifndef TY_COMPILER_IMPORT_TENSORFLOW_TF_OPS_H
#define TY_COMPILER_IMPORT_TENSORFLOW_TF_OPS_H

#include "compiler/import/names.h"
#include "compiler/import/tensorflow/tf.h"
#include "compiler/import/tensorflow/tf_import.h"
#include "compiler/ir/build.h"

typedef enum tf_item_kind {
    TF_UNSET, /* an output that nothing computed */
    TF_TENSOR,
    TF_COMPLEX,  /* a tensor of complex numbers, as two */
    TF_VARIABLE, /* a handle, or TensorFlow 1's reference, which is read where a tensor is wanted */
    TF_ROWS,     /* of Unique: distinct numbers in rising order, then -1; what rows of tables are named by */
    TF_LIST,     /* a list of tensors; exists while importing only */
    TF_DEAD,     /* behind the branch of a Switch that is not taken */
    TF_OTHER,    /* strings, tables, iterators: nothing that a step can hold */
    TF_FAULTY    /* its node was refused */
} tf_item_kind;

/* Elements of a list of tensors; TY_NONE: reserved and not set. Immutable: what changes one makes another. */
typedef struct tf_list {
    int n;
    ty_dtype dtype;
    int rank; /* of an element, -1: not known; dims may be -1 */
    int64_t dim[TY_MAX_RANK];
    const ty_val *val;
    ty_val whole; /* all elements along a new first axis, where they come from such a tensor; else TY_NONE */
} tf_list;

/* One output of a node while it is imported. */
typedef struct tf_item {
    tf_item_kind kind;
    ty_val val;   /* of a tensor; of a complex one its real part */
    ty_val imag;  /* of a complex one; TY_NONE: 0 */
    int variable; /* number of the variable: of a handle; of a tensor, what it is the value of, or -1 */
    bool is_ref;  /* of TensorFlow 1: Identity reads it */
    const tf_list *list;
    const char *origin; /* op of the node that made it */
} tf_item;

static inline tf_item tf_tensor_item(ty_val v)
{
    return (tf_item){.kind = TF_TENSOR, .val = v, .variable = -1};
}

struct tf_ctx;
typedef void tf_op_fn(struct tf_ctx *c);

typedef struct tf_op_row {
    const char *name;
    int min_in, max_in; /* data inputs; -1: no limit */
    tf_op_fn *fn;
    int arg;   /* for functions that serve several rows */
    bool any;  /* takes inputs that are no tensors */
    bool each; /* of complex tensors it does the same to each part */
} tf_op_row;

typedef struct tf_importer {
    const tf_file *file;
    ty_graph *g;
    const ty_model_binding *binding;
    bool own_step;  /* the user's own training step: nothing is differentiated */
    ty_arena arena; /* lives as long as the import */
    ty_names op_rows;
    ty_val *now;           /* by variable: its present value; TY_NONE: not read yet */
    bool *assigned;        /* by variable */
    int64_t serial;        /* of the node being imported, counting those of bodies */
    int depth;             /* of bodies */
    bool is_full;          /* a fault about limits is stored */
    const tf_graph **body; /* by function: its graph, once it was asked for */
    size_t start_bytes;    /* of the graph when the import began */
    ty_error *faults;
    int n_faults, max_faults; /* found; room */
} tf_importer;

/* One node on its way into the graph. */
typedef struct tf_ctx {
    tf_importer *imp;
    ty_graph *g;
    const tf_node *node;
    const tf_op_row *row;
    int n_in; /* data inputs */
    const tf_item *in;
    int n_out; /* room in out */
    tf_item *out;
    bool failed, quiet; /* quiet: the fault is stored already */
    ty_error err;
} tf_ctx;

/* ---- inputs and outputs (tf_node.c) --------------------------------------------------------------------------- */

/* Input i, or TY_NONE if there is none or it is no tensor. A reference is read. */
ty_val tf_in(const tf_ctx *c, int i);
bool tf_has(const tf_ctx *c, int i);
/* The same, or the real part of complex numbers; *imag: their imaginary one, or TY_NONE: 0. */
ty_val tf_in_parts(const tf_ctx *c, int i, ty_val *imag);
void tf_set_parts(tf_ctx *c, int i, ty_val real, ty_val imag);
/* For rows that take any input: whether input i is a tensor, or complex; false (and failed). */
bool tf_needs_numbers(tf_ctx *c, int i);
/* The list of rows that input i is, or TY_NONE. */
ty_val tf_in_rows(const tf_ctx *c, int i);
void tf_set(tf_ctx *c, int i, ty_val v);
void tf_set_item(tf_ctx *c, int i, const tf_item *item);
void tf_set_list(tf_ctx *c, int i, const tf_list *list);
/* Output i is nothing that a step can hold; who reads it is told. */
void tf_set_other(tf_ctx *c, int i);
/* The list of input i; NULL (and failed) if it is none. */
const tf_list *tf_in_list(tf_ctx *c, int i);
int tf_rank(const tf_ctx *c, ty_val v);
int64_t tf_dim(const tf_ctx *c, ty_val v, int axis);
ty_dtype tf_dtype_of(const tf_ctx *c, ty_val v);
const ty_type *tf_type(const tf_ctx *c, ty_val v);
bool tf_is_float(const tf_ctx *c, ty_val v);
void *tf_alloc(tf_ctx *c, size_t n, size_t elem_bytes); /* lives as long as the import, zeroed */

/* Attributes: tf_attr_int(c->node, "axis", 0) and the like (tf.h). A type of element: TY_N_DTYPES if it has no place in
 * a graph. */
ty_dtype tf_attr_dtype(tf_ctx *c, const char *name, ty_dtype absent);
/* A text, never NULL. */
const char *tf_text(tf_ctx *c, const char *name, const char *absent);

/* ---- what must be known now ---------------------------------------------------------------------------------------
 */

/* Elements of a constant input. False (and failed, naming the input) if it depends on the data. */
bool tf_const_ints(tf_ctx *c, int i, const int64_t **v, int64_t *n);
bool tf_const_floats(tf_ctx *c, int i, const double **v, int64_t *n);
bool tf_const_int(tf_ctx *c, int i, int64_t *out); /* one number */
bool tf_const_float(tf_ctx *c, int i, double *out);
/* Elements of any constant value; no fault if it is none. */
bool tf_val_ints(const tf_ctx *c, ty_val v, const int64_t **out, int64_t *n);
bool tf_val_floats(const tf_ctx *c, ty_val v, const double **out, int64_t *n);
ty_val tf_ints(tf_ctx *c, ty_dtype dtype, const int64_t *v, int64_t n); /* [n] */
ty_val tf_floats(tf_ctx *c, ty_dtype dtype, int rank, const int64_t *dim, const double *v);

/* ---- faults (tf_fault.c) ------------------------------------------------------------------------------------------
 */

void tf_fail(tf_ctx *c, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
/* Blames an attribute, or an input. */
void tf_fail_attr(tf_ctx *c, const char *attr, const char *fmt, ...) TY_PRINTF(3, 4);
void tf_fail_input(tf_ctx *c, int i, ty_code code, const char *fmt, ...) TY_PRINTF(4, 5);
void tf_help(tf_ctx *c, const char *fmt, ...) TY_PRINTF(2, 3);
/* An axis from the file, made non-negative; false (and failed) if it is outside [-rank, rank). */
bool tf_axis(tf_ctx *c, int64_t axis, int rank, int *out);
/* The axis that is input i. */
bool tf_axis_in(tf_ctx *c, int i, int rank, int *out);
/* A list of axes as a mask. */
bool tf_axes(tf_ctx *c, const int64_t *axes, int64_t n, int rank, uint32_t *mask);
/* Memory guard: refuses shapes that no step could hold. */
bool tf_shape_ok(tf_ctx *c, int64_t rank, const int64_t *dim);

/* ---- what families share ------------------------------------------------------------------------------------------
 */

/* Is a training differentiated by us? Then gradients at kinks and ties must be TensorFlow's. */
bool tf_is_differentiated(const tf_ctx *c);
/* The first of equals gets the gradient. tf_ops_math.c */
ty_val tf_maximum(tf_ctx *c, ty_val a, ty_val b);
ty_val tf_minimum(tf_ctx *c, ty_val a, ty_val b);
/* Integer indices as i32 or i64; constant ones are checked: TensorFlow has no negative ones. tf_ops_index.c */
ty_val tf_index(tf_ctx *c, ty_val index, int64_t dim);
/* Flat rows of a table for tuples of indices [.., k] after `batch` leading axes. */
ty_val tf_tuple_rows(tf_ctx *c, const ty_type *table, ty_val index, int batch);
/* x in which the rows that input `index` names are combined with update. */
ty_val tf_scatter_rows(tf_ctx *c, ty_val x, int index, ty_val update, ty_combine how);
/* The same of tuples of indices [.., k]. */
ty_val tf_scatter_tuples(tf_ctx *c, ty_val x, ty_val index, ty_val update, ty_combine how);
/* A random word of this node as uniform f32 in [0, 1). tf_ops_random.c */
ty_val tf_uniform(tf_ctx *c, int64_t part, int rank, const int64_t *dim);
/* The angle of a point; tf_ops_math.c */
ty_val tf_angle(tf_ctx *c, ty_val y, ty_val x);
/* ---- variables (tf_variable.c) ------------------------------------------------------------------------------------
 */

/* The number of the variable that input i is a handle of, or -1 (and failed). */
int tf_in_variable(tf_ctx *c, int i);
ty_val tf_present(tf_importer *imp, int variable);
void tf_assign(tf_ctx *c, int variable, ty_val v);
/* The variable that v is the present value of, or -1. */
int tf_variable_of(const tf_ctx *c, ty_val v);

/* ---- bodies (tf_import.c) -------------------------------------------------------------------------------------- */

/* Imports the body of a function with these arguments, n_in of them; out receives the first
 * n_out results. False (and failed). */
bool tf_call(tf_ctx *c, const char *function, const tf_item *in, int n_in, tf_item *out, int n_out);
/* The graph of a function, flat; NULL (and failed). */
const tf_graph *tf_body(tf_ctx *c, const char *function);
/* What is emitted from here on stands for this node: again, behind a body. */
void tf_origin(tf_ctx *c);
/* Does a loop run on from this state? -1 (and failed): that depends on the data. tf_ops_flow.c */
int tf_loop_goes_on(tf_ctx *c, const char *cond, const tf_item *state, int n);
/* The sum of the inputs, element by element, as output 0: what AddN is to lists. tf_ops_list.c */
void tf_add_lists(tf_ctx *c);
/* All elements along a new first axis. */
ty_val tf_list_whole(tf_ctx *c, const tf_list *list);
/* The row of an operation, or NULL. */
const tf_op_row *tf_find_row(const tf_importer *imp, const char *op);

#endif
