/* writer.h - what the writers of ops share: values, nodes, attributes, constants, dims. Private to compiler/export.
 *
 *     export_begin(c, "Conv");
 *     export_use(c, export_of(c, p->in[0]));                    inputs in order; NULL: absent
 *     export_attr_ints(c, "pads", pads, 4);
 *     export_give(c, p, 0, export_end(c));                      result 0 of the op is this value
 *
 * Nothing fails visibly: export_refuse() and export_cannot_follow() note the first fault, and what is built from then
 * on is never written.
 */
#ifndef TY_COMPILER_EXPORT_WRITER_H
#define TY_COMPILER_EXPORT_WRITER_H

#include "compiler/export/onnx.h"
#include "compiler/import/names.h"
#include "compiler/ir/graph.h"

/* A tensor of the file: a graph input, an initializer or a node's result. */
typedef struct export_value {
    const char *name; /* NULL until names are given: results that are no outputs */
    bool is_result;
} export_value;

typedef struct export_node {
    const char *op_type;
    const char *layer; /* "" if unknown */
    export_value **in; /* NULL: absent */
    export_value **out;
    int n_in, n_out;
    size_t attrs_at, attrs_bytes; /* in the attributes of all nodes: encoded fields */
    const char *name;
} export_node;

typedef struct export_initializer {
    export_value *value;
    ty_type type;
    const void *data;
    int weight; /* of the model, or -1 */
} export_initializer;

/* A dimension: per * batch + plus. */
typedef struct export_dim {
    int64_t per, plus;
} export_dim;

struct export_plan;
typedef struct export_ctx {
    const ty_model *m;
    const ty_onnx_export *opt;
    int opset;
    ty_arena *a;
    const ty_graph *g;     /* at batch[0] */
    const ty_graph *other; /* at batch[1]; NULL: the batch is fixed */
    const uint32_t *twin;  /* by node of g that is live: of other */
    int64_t batch[2];
    struct export_plan **plan; /* by node of g; NULL: not needed */
    const uint32_t *uses;      /* by node of g: operands and outputs that it is */
    export_value **value;      /* by value of g */
    uint32_t node;             /* that is being written */
    const char *layer;
    export_node *nodes;
    int n_nodes, nodes_room;
    export_node draft;
    int draft_room;
    ty_buf attrs;
    export_initializer *initializers;
    int n_initializers, initializers_room;
    ty_names by_content;       /* of small constants: number of the initializer */
    export_value **inputs;     /* of the model */
    const int *weight_of;      /* by input of g: number of the weight */
    export_value *batch_value; /* an input of the model that has the batch .. */
    int batch_axis;            /* .. and where; NULL: no dim is free */
    export_value *rows;        /* i64[1], the batch; NULL until it is needed */
    bool failed, is_static;    /* is_static: what failed is that the batch was free */
    const char *why_static;
    ty_error err;
} export_ctx;

typedef void export_write_fn(export_ctx *c, const struct export_plan *p);

/* How a node is written, and of what: patterns take the place of several nodes. */
typedef struct export_plan {
    uint32_t id;
    uint32_t source; /* whose attributes count: id, or a node that it stands for */
    export_write_fn *write;
    const char *op; /* ONNX operator */
    ty_val *in;
    int n_in;
    uint32_t splat; /* bit k: operand k is one number everywhere, and written as a scalar */
    double number;
    int64_t dim[TY_MAX_RANK];
    bool keep_dims;
} export_plan;

/* ---- faults ---- */

void export_refuse(export_ctx *c, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
void export_cannot_follow(export_ctx *c, const char *fmt, ...) TY_PRINTF(2, 3);

/* ---- nodes.c ---- */

void export_begin(export_ctx *c, const char *op_type);
void export_use(export_ctx *c, export_value *v);
void export_attr_int(export_ctx *c, const char *name, int64_t v);
void export_attr_float(export_ctx *c, const char *name, double v);
void export_attr_text(export_ctx *c, const char *name, const char *v);
void export_attr_ints(export_ctx *c, const char *name, const int64_t *v, int n);
void export_attr_texts(export_ctx *c, const char *name, const char *const *v, int n);
export_value *export_end(export_ctx *c);
void export_end_many(export_ctx *c, export_value **out, int n_out);
/* Nodes without attributes; absent trailing inputs are NULL. */
export_value *export_apply(export_ctx *c, const char *op_type, export_value *x, export_value *y, export_value *z);
export_value *export_cast(export_ctx *c, export_value *x, ty_dtype dtype);
export_value *export_permute(export_ctx *c, export_value *x, const int64_t *perm, int n);

/* Constants: small ones exist once. The data of large ones must live until the file is written. */
export_value *export_const(export_ctx *c, const ty_type *type, const void *data);
export_value *export_ints(export_ctx *c, const int64_t *v, int n);
export_value *export_int(export_ctx *c, int64_t v); /* i64[] */
export_value *export_number(export_ctx *c, ty_dtype dtype, double v);
export_value *export_fill(export_ctx *c, ty_dtype dtype, int rank, const int64_t *dim, double v);
/* A weight of the model under its name. */
export_value *export_weight(export_ctx *c, int weight, const ty_type *type);
/* The weight that these bytes are, else a constant: weights that nothing trains are constants of the graph. */
export_value *export_const_or_weight(export_ctx *c, const ty_type *type, const void *data);

/* The value of a graph value that was written before; what a writer's results are. */
export_value *export_of(export_ctx *c, ty_val v);
void export_give(export_ctx *c, const export_plan *p, uint32_t result, export_value *v);

/* Operand k of the plan. */
export_value *export_operand(export_ctx *c, const export_plan *p, int k);

static inline const ty_type *export_type(const export_ctx *c, ty_val v)
{
    return ty_graph_type(c->g, v);
}
static inline const ty_attr *export_attr(const export_ctx *c, const export_plan *p)
{
    return ty_graph_attr(c->g, p->source);
}
static inline const ty_type *export_result_type(const export_ctx *c, const export_plan *p)
{
    return ty_graph_type(c->g, ty_val_make(p->id, 0));
}

/* ---- follow.c ---- */

export_dim export_dim_of(export_ctx *c, ty_val v, int axis);
void export_dims_of(export_ctx *c, ty_val v, export_dim *dim);
/* What a number at batch[0] and one at batch[1] say; refuses to follow if no whole multiple of the batch is in it. */
export_dim export_dim_from(export_ctx *c, int64_t first, int64_t second);
/* i64[n] that holds the dims. */
export_value *export_shape(export_ctx *c, const export_dim *dim, int n);
/* x in these dims. same[i], if not NULL: axis i of x has the same size as axis i of the result. */
export_value *export_reshape(export_ctx *c, export_value *x, int x_rank, const export_dim *x_dim, int rank,
                             const export_dim *dim);
/* A const node, which may differ between the batches. */
export_value *export_constant_node(export_ctx *c, uint32_t id);
/* The node of the other graph; the node itself if the batch is fixed. */
uint32_t export_twin(const export_ctx *c, uint32_t id);
static inline const ty_graph *export_twin_graph(const export_ctx *c)
{
    return c->other ? c->other : c->g;
}
/* Pairs up the nodes live in g with those live in other: c->twin. False, with why, if they are not the same graph. */
bool export_pair_up(export_ctx *c);

/* ---- match.c ---- */

/* True if a pattern ends in node `id`: fills the plan. */
bool export_match(export_ctx *c, uint32_t id, export_plan *p);
/* Operands without the broadcasts that the operator does by itself. */
void export_strip_operands(export_ctx *c, export_plan *p);

/* ---- file.c ---- */

int export_write_file(export_ctx *c, const char *path, ty_onnx_exported *out, ty_error *err);

/* ---- the writers ---- */

#define EXPORT(OP, writer, text, since) export_write_fn export_write_##writer;
#include "compiler/export/rows.def"
#undef EXPORT
export_write_fn export_write_mean, export_write_average_pool, export_write_batch_norm, export_write_matmul,
    export_write_gemm;

#endif
