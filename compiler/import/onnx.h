/* onnx.h - ONNX model files: open, list, import into a graph, write back with other weights.
 *
 *     ty_onnx *m;                ty_onnx_open("model.onnx", &m, &err);
 *     ty_graph *g = ty_graph_new();
 *     for each ty_onnx_input     choose a static type, ty_graph_add_input, ty_b_input
 *     for each initializer       a value (a slice of a state) or TY_NONE: taken as a constant
 *     ty_onnx_import(m, g, &binding, &values, &err);      values.outputs[i]: graph values of the model's outputs
 *     ty_onnx_write(m, payloads, n, sink, ctx, &err);     the same file, other weights
 *
 * Import from one thread at a time (it keeps aligned copies of constants); all else only reads. The model maps the
 * file: the file must not change while it is open. All pointers handed out live as long as the model; graphs that took
 * initializers as constants refer to the model's memory, so free the graph first.
 *
 * Import decomposes every ONNX operator into the rows of compiler/ops/ops.def. Everything must be static: shapes that
 * the file computes in the graph (Shape, Gather, Concat, Slice, Range ...) become constants because the input shapes
 * are bound before the first node is read. What does not become one is refused with the node's name.
 */
#ifndef TY_COMPILER_IMPORT_ONNX_H
#define TY_COMPILER_IMPORT_ONNX_H

#include "compiler/ir/graph.h"

typedef struct ty_onnx ty_onnx;

/* Maps and reads the file; weights stay where they are. External data are looked for beside it, never outside its
 * folder. */
int ty_onnx_open(const char *path, ty_onnx **out, ty_error *err);
/* The same from n bytes of memory, which must live as long as the model. `name` stands for the file in messages.
 * External data are refused. */
int ty_onnx_open_memory(const char *name, const void *bytes, size_t n, ty_onnx **out, ty_error *err);
void ty_onnx_free(ty_onnx *m);
/* Gives the pages of the mapped files back to the system; whoever reads them again has them read again. For when the
 * weights were copied to where they are trained. */
void ty_onnx_drop_pages(const ty_onnx *m);

/* The version of the default operator set, of the intermediate representation, and who wrote the file. */
int64_t ty_onnx_opset(const ty_onnx *m);
int64_t ty_onnx_ir_version(const ty_onnx *m);
const char *ty_onnx_producer(const ty_onnx *m);
int64_t ty_onnx_n_nodes(const ty_onnx *m);

/* A graph input or output. rank -1: the file gives no shape. dim -1: free; its name (or NULL) is in dim_name. A type
 * that is no dense tensor of a known element type has dtype TY_N_DTYPES. */
typedef struct ty_onnx_value {
    const char *name;
    ty_dtype dtype;
    int rank;
    int64_t dim[TY_MAX_RANK];
    const char *dim_name[TY_MAX_RANK];
} ty_onnx_value;

/* Inputs that are no initializers. */
int ty_onnx_n_inputs(const ty_onnx *m);
const ty_onnx_value *ty_onnx_input(const ty_onnx *m, int i);
int ty_onnx_n_outputs(const ty_onnx *m);
const ty_onnx_value *ty_onnx_output(const ty_onnx *m, int i);

/* What the exporter says an initializer is. PyTorch's dynamo exporter marks parameters and buffers; others say nothing.
 */
typedef enum ty_onnx_mark { TY_ONNX_UNMARKED, TY_ONNX_PARAMETER, TY_ONNX_BUFFER } ty_onnx_mark;

typedef struct ty_onnx_initializer {
    const char *name;
    ty_type type; /* dtype TY_N_DTYPES: an element type that we have not (text, complex, under 8 bits) */
    const void
        *data; /* ty_type_bytes(&type) bytes, little-endian; straight from the file, so perhaps unaligned: memcpy */
    ty_onnx_mark mark;
    bool is_running; /* running mean or variance of a BatchNormalization */
} ty_onnx_initializer;

int ty_onnx_n_initializers(const ty_onnx *m);
/* How many of them, the last ones, PyTorch's exporter had merged with others of the same value; they are on their own
 * again, under their names. */
int ty_onnx_n_merged(const ty_onnx *m);
const ty_onnx_initializer *ty_onnx_initializer_at(const ty_onnx *m, int i);
/* Its number, or -1. */
int ty_onnx_find_initializer(const ty_onnx *m, const char *name);

/* ---- import -------------------------------------------------------------------------------------------------------
 */

/* How nodes that act otherwise in training are taken. */
typedef enum ty_onnx_mode {
    TY_ONNX_EVAL,      /* BatchNormalization by running statistics, no Dropout, whatever the file says */
    TY_ONNX_TRAIN,     /* batch statistics; PyTorch's update of the running ones (unbiased variance); Dropout at work */
    TY_ONNX_AS_WRITTEN /* as the ONNX standard reads the file: training_mode attributes and inputs count */
} ty_onnx_mode;

typedef struct ty_onnx_binding {
    ty_onnx_mode mode;
    const ty_val *inputs;       /* one a graph input; its type is the static shape. Constants are welcome. */
    const ty_val *initializers; /* one an initializer; TY_NONE: a constant. NULL: all constants. */
    ty_val seed, step;       /* i64[] for random numbers (Dropout, RandomNormalLike); TY_NONE: such nodes are refused */
    int64_t stream;          /* node k draws from stream + k */
    int batch_norm_replicas; /* TRAIN: as ty_model_binding has it */
} ty_onnx_binding;

/* New value of a running statistic after a training step. */
typedef struct ty_onnx_update {
    int initializer;
    ty_val value;
} ty_onnx_update;

/* Arrays live in the graph's arena. */
typedef struct ty_onnx_values {
    ty_val *outputs; /* one a graph output */
    ty_onnx_update *updates;
    int n_updates;
    ty_error *faults; /* up to TY_ONNX_MAX_FAULTS independent errors, in node order */
    int n_faults;     /* stored */
    int n_faults_all; /* found */
} ty_onnx_values;

#define TY_ONNX_MAX_FAULTS 20

/* Emits the model into g. May be called again on the same graph, e.g. for training and evaluation: what is equal is
 * shared. On failure *err is the first fault with a note on the others; values->faults holds them all. Nodes that need
 * the result of a faulty node are passed over. */
int ty_onnx_import(const ty_onnx *m, ty_graph *g, const ty_onnx_binding *b, ty_onnx_values *values, ty_error *err);

/* Every node whose operator cannot be imported at all, whatever the shapes: faults[0 .. min(result, max) - 1] are
 * filled. Returns the number found. */
int ty_onnx_check(const ty_onnx *m, ty_error *faults, int max);

/* Something that the export has lost and training would need, and how to export instead. */
typedef struct ty_onnx_warning {
    const char *text; /* one line, in the arena: what, and the first node */
    const char *help; /* one line, static */
} ty_onnx_warning;

#define TY_ONNX_MAX_WARNINGS 7

/* Fills list (room for TY_ONNX_MAX_WARNINGS), one entry a kind; returns their number. Only what leaves a trace in the
 * file is told: batch norm folded into convolutions, statistics that cannot be updated, dropout that drops nothing or
 * was taken out, weights that are constants, that were merged beyond recognition, or folded into tables. */
int ty_onnx_warnings(const ty_onnx *m, ty_arena *arena, ty_onnx_warning *list);

/* ---- writing ------------------------------------------------------------------------------------------------------
 */

/* New bytes for one initializer: those of its type. */
typedef struct ty_onnx_payload {
    int initializer;
    const void *data;
} ty_onnx_payload;

/* Takes bytes in order; -1 stops the writer. */
typedef int ty_onnx_sink(void *ctx, const void *bytes, size_t n, ty_error *err);

/* Writes the model: byte for byte the file that was opened, except the payloads named. Initializers that lay in
 * external files come inside; those that were merged (ty_onnx_n_merged) are written as their own, without Identity.
 * Fails with TY_E_LIMIT if the result would pass protobuf's 2 GiB. Nothing is buffered. */
int ty_onnx_write(const ty_onnx *m, const ty_onnx_payload *payloads, int n_payloads, ty_onnx_sink *sink, void *ctx,
                  ty_error *err);
/* Whether it passes 2 GiB, and has to be written by the next function. */
bool ty_onnx_needs_two_files(const ty_onnx *m);
/* The same with weights of 1 KiB or more in a second file, as external data that the model names `data_name`: a file
 * in its folder. The second file is written first. */
int ty_onnx_write_two_files(const ty_onnx *m, const ty_onnx_payload *payloads, int n_payloads, const char *data_name,
                            ty_onnx_sink *sink, void *ctx, ty_onnx_sink *data_sink, void *data_ctx, ty_error *err);
/* Bytes that ty_onnx_write would write. */
uint64_t ty_onnx_written_bytes(const ty_onnx *m, const ty_onnx_payload *payloads, int n_payloads);

/* ---- tensors in files of their own (test data) ----------------------------------------------------------------------
 */

/* Reads a serialized TensorProto. *tensor points into `bytes` or into the arena. TY_E_UNSUPPORTED for element types
 * that we have not. */
int ty_onnx_read_tensor(const void *bytes, size_t n, ty_arena *arena, ty_tensor *tensor, ty_error *err);

#endif
