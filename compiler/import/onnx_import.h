/* onnx_import.h - what the functions that import operators see. Private to compiler/import.
 *
 * An operator is one row of onnx_ops.def and one function `void onnx_op_NAME(onnx_ctx *c)`. The function reads inputs
 * and attributes through c, emits graph nodes, and sets outputs:
 *
 *     void onnx_op_neg(onnx_ctx *c)
 *     {
 *         onnx_set(c, 0, ty_b_neg(c->g, onnx_in(c, 0)));
 *     }
 *
 * Inputs up to the row's min_in are there and are tensors. What cannot be done is refused with onnx_fail(), once;
 * return then. Failures of graph constructors need no check: they are sticky, and the driver turns them into a fault of
 * this node. But do not ask TY_NONE for its shape.
 */
#ifndef TY_COMPILER_IMPORT_ONNX_IMPORT_H
#define TY_COMPILER_IMPORT_ONNX_IMPORT_H

#include "compiler/import/names.h"
#include "compiler/import/onnx_tree.h"
#include "compiler/ir/build.h"

typedef enum onnx_item_kind {
    ONNX_TENSOR,
    ONNX_SEQUENCE, /* of tensors; exists while importing only */
    ONNX_UNSET,    /* an optional output that is not computed */
    ONNX_ABSENT,   /* an optional input of a function that the call leaves out: as good as no input */
    ONNX_FAULTY    /* its node was refused */
} onnx_item_kind;

/* A named value of the model while it is imported. */
typedef struct onnx_item {
    onnx_item_kind kind;
    ty_val val;        /* of a tensor */
    const ty_val *seq; /* of a sequence */
    int n_seq;
    int initializer; /* number of the initializer that it is, also through Identity; or -1 */
    const char *name;
    int64_t producer;   /* node number, or -1 */
    const char *origin; /* op type of the producer, or "initializer", "graph input" */
    const char *unset_reason;
} onnx_item;

/* Names visible at a node: of this graph and of those around it. */
typedef struct onnx_scope {
    ty_names names;
    struct onnx_scope *parent;
    const ty_wire_list *opsets;
    const onnx_node *call;               /* node that called the function whose body this is, or NULL */
    const struct onnx_scope *call_scope; /* where that node stands */
    const onnx_function *function;
    const char *where; /* `graph "main"` */
} onnx_scope;

typedef struct onnx_importer {
    const ty_onnx *m;
    ty_graph *g;
    const ty_onnx_binding *binding;
    ty_onnx_values *values;
    ty_arena arena; /* lives as long as the import */
    ty_names op_rows;
    onnx_item *items;
    int n_items, items_room;
    int64_t serial; /* of the node being imported, counting inlined ones */
    int depth;      /* of functions and subgraphs */
    int updates_room;
    size_t start_bytes;                      /* of the graph when the import began */
    bool is_full;                            /* a fault about memory is stored */
    int64_t n_good;                          /* nodes read before the first fault */
    int64_t fault_nodes[TY_ONNX_MAX_FAULTS]; /* node number of each stored fault */
    const char *fault_ops[TY_ONNX_MAX_FAULTS];
    ty_names *asked; /* NULL, or gathers the names of attributes that operators look for; the first of them, too: */
    const char *asked_name[32];
    int n_asked;
} onnx_importer;

struct onnx_ctx;
typedef void onnx_op_fn(struct onnx_ctx *c);

typedef struct onnx_op_row {
    const char *domain;
    const char *op_type;
    int since;          /* first opset with a meaning that the function knows */
    int min_in, max_in; /* -1: no limit */
    onnx_op_fn *fn;
    int arg; /* for functions that serve several rows */
    bool takes_sequences;
} onnx_op_row;

/* One node on its way into the graph. */
typedef struct onnx_ctx {
    onnx_importer *imp;
    ty_graph *g;
    const onnx_node *node;
    const onnx_scope *scope;
    const onnx_op_row *row;
    int64_t index;        /* of the node in its graph */
    int64_t opset;        /* version of its domain */
    int n_in;             /* without trailing absent ones */
    const onnx_item **in; /* NULL: absent */
    int n_out;
    onnx_item *out;
    bool failed, quiet;   /* quiet: the fault is stored already */
    int bad_input;        /* input that the fault is about, or -1 */
    const char *bad_attr; /* attribute that it is about, or NULL */
    char expected[160];   /* shown behind them */
    ty_error err;
} onnx_ctx;

/* ---- inputs and outputs (onnx_node.c) -----------------------------------------------------------------------------
 */

/* Input i, or TY_NONE if it is absent. */
ty_val onnx_in(const onnx_ctx *c, int i);
bool onnx_has(const onnx_ctx *c, int i);
/* True if output i has a name, so that somebody may want it. */
bool onnx_wants(const onnx_ctx *c, int i);
void onnx_set(onnx_ctx *c, int i, ty_val v);
void onnx_set_sequence(onnx_ctx *c, int i, const ty_val *seq, int n);
/* Output i is not computed; whoever reads it is told why. */
void onnx_unset(onnx_ctx *c, int i, const char *reason);
int onnx_rank(const onnx_ctx *c, ty_val v);
int64_t onnx_dim(const onnx_ctx *c, ty_val v, int axis);
ty_dtype onnx_dtype_of(const onnx_ctx *c, ty_val v);
const ty_type *onnx_type_of(const onnx_ctx *c, ty_val v);
void *onnx_alloc(onnx_ctx *c, size_t n, size_t elem_bytes); /* lives as long as the import */

/* ---- attributes -----------------------------------------------------------------------------------------------------
 */

const onnx_attr *onnx_find_attr(const onnx_ctx *c, const char *name);
int64_t onnx_attr_int(onnx_ctx *c, const char *name, int64_t absent);
double onnx_attr_float(onnx_ctx *c, const char *name, double absent);
/* NUL-terminated; `absent` as given (may be NULL). */
const char *onnx_attr_text(onnx_ctx *c, const char *name, const char *absent);
/* False if absent. */
bool onnx_attr_ints(onnx_ctx *c, const char *name, const int64_t **v, int64_t *n);
bool onnx_attr_floats(onnx_ctx *c, const char *name, const double **v, int64_t *n);
/* Exactly n numbers, or `fill` n times if absent. False (and failed) if the count is another. */
bool onnx_attr_int_list(onnx_ctx *c, const char *name, int64_t n, int64_t fill, int64_t *out);
/* Number of the text among `choices` (NULL-terminated); fails and gives 0 for others. */
int onnx_attr_choice(onnx_ctx *c, const char *name, const char *absent, const char *const *choices);

/* ---- what must be known now -----------------------------------------------------------------------------------------
 */

/* True if input i is a constant whatever its type. */
bool onnx_is_const(const onnx_ctx *c, int i);
/* Elements of a constant input. False (and failed, naming the input) if it is not one, or no integers or floats. */
bool onnx_const_ints(onnx_ctx *c, int i, const int64_t **v, int64_t *n);
bool onnx_const_floats(onnx_ctx *c, int i, const double **v, int64_t *n);
/* One number; `absent` if the input is. */
bool onnx_const_int(onnx_ctx *c, int i, int64_t absent, int64_t *out);
bool onnx_const_float(onnx_ctx *c, int i, double absent, double *out);
/* The list that lies in attribute `name` up to some opset and in input i from then on. *n is -1 if it is in neither. */
bool onnx_ints_either(onnx_ctx *c, const char *name, int i, const int64_t **v, int64_t *n);
/* Elements of any constant value. */
bool onnx_val_ints(onnx_ctx *c, ty_val v, const int64_t **out, int64_t *n);
ty_val onnx_ints_const(onnx_ctx *c, const int64_t *v, int64_t n); /* i64[n] */
ty_val onnx_int_const(onnx_ctx *c, int64_t v);                    /* i64[] */
ty_val onnx_const_from(onnx_ctx *c, ty_dtype dtype, int rank, const int64_t *dim, const double *v);

/* ---- faults ---------------------------------------------------------------------------------------------------------
 */

void onnx_fail(onnx_ctx *c, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
/* Blames an attribute: code ATTRIBUTE, `expected` behind its value. */
void onnx_fail_attr(onnx_ctx *c, const char *attr, const char *expected, ...) TY_PRINTF(3, 4);
/* Blames an input. */
void onnx_fail_input(onnx_ctx *c, int i, ty_code code, const char *expected, ...) TY_PRINTF(4, 5);
void onnx_help(onnx_ctx *c, const char *fmt, ...) TY_PRINTF(2, 3);
/* An axis from the file, made non-negative; false (and failed) if it is outside [-rank, rank). */
bool onnx_axis(onnx_ctx *c, int64_t axis, int rank, int *out);
/* A list of axes as a mask; duplicates are refused. */
bool onnx_axes(onnx_ctx *c, const int64_t *axes, int64_t n, int rank, uint32_t *mask);
/* Memory guard: refuses shapes that no step could hold. */
bool onnx_shape_ok(onnx_ctx *c, int rank, const int64_t *dim);

/* ---- faults of nodes, inside (onnx_fault.c)
 * --------------------------------------------------------------------------- */

void onnx_fault_store(onnx_importer *imp, const onnx_ctx *c);
/* A line of help for an operator that we have not, where one is known. */
void onnx_suggest(onnx_ctx *c);
/* A fault of the graph as a whole. */
void onnx_fault_graph(onnx_importer *imp, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
/* The first fault with a note on the others. */
int onnx_fault_result(onnx_importer *imp, ty_error *err);
/* Adds place and inputs to a node's error. */
void onnx_fault_describe(const onnx_ctx *c, ty_error *err);

/* ---- driver (onnx_import.c)
 * ------------------------------------------------------------------------------------------- */

/* The modules that a node lies in, if the exporter told, "layers.0/attn", or "". Returns out. */
const char *onnx_module_path(const onnx_node *node, char *out, size_t n);
/* Rows of onnx_ops.def; the number of one by domain and type, or -1. */
const onnx_op_row *onnx_op_rows(int *n);
/* Imports nodes into a scope; failing nodes are stored as faults. */
void onnx_import_nodes(onnx_importer *imp, onnx_scope *scope, const ty_wire_list *nodes);
/* Names that begin a scope. */
void onnx_scope_init(onnx_importer *imp, onnx_scope *scope, onnx_scope *parent);
int onnx_define(onnx_importer *imp, onnx_scope *scope, const onnx_item *item);
const onnx_item *onnx_lookup(const onnx_importer *imp, const onnx_scope *scope, const char *name);
/* Imports a graph attribute whose inputs are given, in a scope of its own; out receives n_out items. */
bool onnx_import_subgraph(onnx_ctx *c, const onnx_graph *graph, const onnx_item *in, int n_in, onnx_item *out,
                          int n_out);
/* Fails unless there is a row for the node's operator at its opset. */
void onnx_check_supported(onnx_ctx *c);
/* The row of a node's operator, or NULL; the function of the model that it calls, or NULL. */
const onnx_op_row *onnx_find_row(const onnx_importer *imp, const onnx_node *node);
const onnx_function *onnx_find_function(const ty_onnx *m, const onnx_node *node);
void onnx_index_rows(onnx_importer *imp);
/* A constant of the model's bytes: the same address each time, aligned unless it is of floats. `key` identifies it. */
ty_val onnx_model_const(const ty_onnx *m, ty_graph *g, const void *key, ty_type type, const void *data);

/* ---- helpers that operator families share
 * ------------------------------------------------------------------------------- */

/* Integer indices of any type as i64 or i32, negative ones counted from the end. */
ty_val onnx_wrap_index(onnx_ctx *c, ty_val index, int64_t dim); /* onnx_ops_index.c */
ty_val onnx_take_rows(onnx_ctx *c, ty_val x, ty_val index, int axis);
/* Per-channel [C] seen against x [N, C, ...]: [1, C, 1 ...]. */
ty_val onnx_per_channel(onnx_ctx *c, ty_val v, int rank); /* onnx_ops_nn.c */
/* Activation functions by name, of RNN nodes. */
ty_val onnx_activation(onnx_ctx *c, const char *name, ty_val x, double alpha, double beta); /* onnx_ops_act.c */
/* random words of this node as uniform f32 in [0, 1) of a shape; fails without seed and step. */
ty_val onnx_uniform(onnx_ctx *c, int64_t part, int rank, const int64_t *dim); /* onnx_ops_random.c */
/* Registers the new value of running statistics. */
void onnx_update(onnx_ctx *c, int initializer, ty_val value);
/* The pending new value of an initializer, or TY_NONE. */
ty_val onnx_updated(const onnx_ctx *c, int initializer);

#endif
