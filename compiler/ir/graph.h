/* graph.h - the graph language: values, nodes, states, effects.
 *
 * A graph is a set of flat arrays in an arena. A node applies one op (a row of compiler/ops/ops.def) to values and
 * yields 1 to TY_MAX_RESULTS values with static types. Nodes are immutable and hash-consed: asking for the same op with
 * the same attributes and inputs gives the same node, so common subexpressions never exist twice. Ids grow, and a
 * node's inputs have smaller ids than the node: id order is a topological order.
 *
 * State (parameters, optimizer moments, counters, running statistics) lives outside the graph. A `state` node reads it
 * as it was when the tape started; an `assign` effect names its value for the next run. Everything else is pure.
 *
 * One graph holds the whole step. Effects and outputs carry a mask of the tapes they belong to; a tape is what is
 * reachable from its effects and outputs.
 *
 * Errors are sticky: the first failing constructor stores its error in g->err and returns TY_NONE, and every
 * constructor that is given TY_NONE returns TY_NONE. Build freely, then check once with ty_graph_failed().
 *
 * Side tables of a pass are arrays indexed by node id and owned by the pass; nothing is parked in nodes.
 */
#ifndef TY_COMPILER_IR_GRAPH_H
#define TY_COMPILER_IR_GRAPH_H

#include "base/arena.h"
#include "base/error.h"
#include "base/tensor.h"

#include <stdint.h>

typedef enum ty_op {
#define OP(NAME, ...) TY_OP_##NAME,
#include "compiler/ops/ops.def"
#undef OP
    TY_N_OPS
} ty_op;

/* A value: node id << 2 | result index. */
typedef uint32_t ty_val;
#define TY_NONE        UINT32_MAX
#define TY_MAX_RESULTS 4
static inline uint32_t ty_val_node(ty_val v)
{
    return v >> 2;
}
static inline uint32_t ty_val_result(ty_val v)
{
    return v & 3;
}
static inline ty_val ty_val_make(uint32_t node, uint32_t result)
{
    return node << 2 | result;
}

/* How a reduction, scan, scatter or pool combines; `mode` of an attribute. */
typedef enum ty_combine { TY_SUM, TY_MAX, TY_MIN, TY_PROD, TY_SET } ty_combine;

/* `index` of a cross-entropy in which every label is a class. */
#define TY_XENT_IGNORES_NONE INT64_MIN

/* `flags` of a product; a linear has the first two. WIDE: the result of 16-bit operands is f32. FULL: 16 bits are too
 * few for it, however a model is trained (precision.c). */
enum { TY_DOT_TRANS_A = 1, TY_DOT_TRANS_B = 2, TY_DOT_WIDE = 4, TY_DOT_FULL = 8 };

/* `flags` of what replicas do together. */
enum { TY_OF_GRADIENTS = 1 };

/* All that an op can be told beside its inputs. Each op reads the fields that its row in ops.def names; all others must
 * be zero, since attributes are compared as bytes. Lists have n entries. */
typedef struct ty_attr {
    ty_type type;            /* target type: of leaves, cast, bitcast, reshape, broadcast; shape of x for *_grad ops */
    int64_t index;           /* number of an input or state; id of a const; stream of rng */
    int64_t axis;            /* one axis, 0 <= axis < rank */
    int64_t groups;          /* of a convolution */
    uint32_t axes;           /* bit mask of axes */
    uint32_t mode;           /* ty_combine, or flags as the op says */
    uint32_t n;              /* entries in the lists below */
    uint32_t flags;          /* as the op says */
    int64_t lo[TY_MAX_RANK]; /* slice start; low padding; permutation */
    int64_t hi[TY_MAX_RANK]; /* slice limit (exclusive); high padding */
    int64_t step[TY_MAX_RANK]; /* slice or window stride */
    int64_t size[TY_MAX_RANK]; /* window extent */
    int64_t dil[TY_MAX_RANK];  /* window dilation */
    double value;              /* epsilon, fill value, smoothing */
    double value2;
    int64_t replicas; /* that take part */
    int64_t dropped;  /* of the 2^24 numbers that are drawn from: those that drop something */
} ty_attr;

typedef struct ty_node {
    uint16_t op; /* ty_op */
    uint8_t n_res;
    uint8_t pad;
    uint32_t n_in;
    uint32_t in_off;               /* into the graph's pool of inputs */
    uint32_t type[TY_MAX_RESULTS]; /* ids of interned types */
    uint32_t attr;                 /* id of an interned ty_attr */
    uint32_t origin;               /* id of an interned origin string */
    uint32_t hash;
} ty_node;

/* What a state is for. Checkpoints hold all states; the model output takes PARAM and BUFFER. */
typedef enum ty_state_role {
    TY_STATE_PARAM,   /* trained weights */
    TY_STATE_BUFFER,  /* running statistics and the like: changed by training, without gradient */
    TY_STATE_GRAD,    /* gradient sums over micro-batches */
    TY_STATE_MOMENT,  /* the optimizer's */
    TY_STATE_COUNTER, /* step, seeds, loss scale */
    TY_N_STATE_ROLES
} ty_state_role;

/* A state and, for flat arenas, the named tensors inside it. */
typedef struct ty_segment {
    const char *name; /* as the user knows it: "layers.0.weight" */
    ty_type type;
    int64_t offset; /* elements from the start of the state */
} ty_segment;

typedef struct ty_state {
    const char *name; /* unique in the graph: "param.0", "adam.m.0", "step" */
    ty_type type;
    ty_state_role role;
    const ty_segment *segments; /* ordered by offset; the state itself under its own name if there is one segment */
    int n_segments;
    const void *const *init; /* one pointer a segment to its initial bytes, or NULL for zeros; array may be NULL */
} ty_state;

/* Tapes of the step; bits of a mask. */
typedef enum ty_tape {
    TY_TAPE_MICRO = 1, /* forward, backward, add to the gradient sums */
    TY_TAPE_LAST = 2,  /* forward, backward, update */
    TY_TAPE_EVAL = 4,  /* forward and metrics as in inference */
    TY_TAPE_INIT = 8,  /* initial values of states */
    TY_TAPE_ROWS = 16, /* which rows of tables the batch names */
    TY_TAPE_ALL = 31
} ty_tape;
enum { TY_N_TAPES = 5 };

typedef struct ty_input {
    const char *name;
    ty_type type;
} ty_input;

typedef struct ty_output {
    const char *name;
    ty_val val;
    uint32_t tapes;
} ty_output;

typedef struct ty_effect {
    uint32_t node; /* an `assign` */
    uint32_t tapes;
} ty_effect;

typedef struct ty_graph ty_graph;

ty_graph *ty_graph_new(void);
void ty_graph_free(ty_graph *g);
/* True once a constructor has failed; the error is copied to *err (which may be NULL). */
bool ty_graph_failed(const ty_graph *g, ty_error *err);
/* Stores an error of the caller as if a constructor had failed (the first one wins). Returns TY_NONE. */
ty_val ty_graph_fail(ty_graph *g, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
/* Forgets the error, for importers that collect several. */
void ty_graph_clear_error(ty_graph *g);
/* Memory that lives as long as the graph. */
ty_arena *ty_graph_arena(ty_graph *g);

/* Nodes built from now on come from this source ("layers.0/attn (MatMul #17)"). Copied. A node keeps the first origin.
 */
void ty_graph_origin(ty_graph *g, const char *origin);

/* Access. Pointers stay valid until the graph is freed, except ty_graph_node's (valid until the next constructor). */
uint32_t ty_graph_n_nodes(const ty_graph *g);
const ty_node *ty_graph_node(const ty_graph *g, uint32_t id);
ty_val ty_graph_in(const ty_graph *g, uint32_t id, int i);
const ty_type *ty_graph_type(const ty_graph *g, ty_val v);
const ty_attr *ty_graph_attr(const ty_graph *g, uint32_t id);
const char *ty_graph_origin_of(const ty_graph *g, uint32_t id);
static inline ty_op ty_graph_op(const ty_graph *g, uint32_t id)
{
    return (ty_op)ty_graph_node(g, id)->op;
}

/* Inputs, states, outputs, effects. The add functions return the number, or -1 on a sticky error; names are copied,
 * `segments` and `init` arrays are copied too but the bytes behind init are not. */
int ty_graph_add_input(ty_graph *g, const char *name, ty_type type);
int ty_graph_n_inputs(const ty_graph *g);
const ty_input *ty_graph_input(const ty_graph *g, int i);
int ty_graph_add_state(ty_graph *g, const ty_state *state);
/* A state of role COUNTER in one segment of its own name; init NULL: zeros. */
int ty_graph_add_counter(ty_graph *g, const char *name, ty_type type, const void *init);
int ty_graph_n_states(const ty_graph *g);
const ty_state *ty_graph_state(const ty_graph *g, int i);
int ty_graph_add_output(ty_graph *g, const char *name, ty_val v, uint32_t tapes);
int ty_graph_n_outputs(const ty_graph *g);
const ty_output *ty_graph_output(const ty_graph *g, int i);
/* state <- value at the end of the tapes named. One assign a state and tape. */
int ty_graph_add_assign(ty_graph *g, int state, ty_val value, uint32_t tapes);
int ty_graph_n_effects(const ty_graph *g);
const ty_effect *ty_graph_effect(const ty_graph *g, int i);

/* Bytes of a const node (row-major, type_bytes of them). NULL if v is not a const. */
const void *ty_graph_const_data(const ty_graph *g, ty_val v);
/* Whether they lie elsewhere, as in a model file, and not in memory of the graph. */
bool ty_graph_const_is_borrowed(const ty_graph *g, ty_val v);

/* True if all elements of v are one constant number (a const, or a const seen through broadcast, reshape and the like),
 * which goes to *out. False for integers that a double cannot hold. */
bool ty_graph_splat_value(const ty_graph *g, ty_val v, double *out);
bool ty_graph_is_zero(const ty_graph *g, ty_val v); /* that, and 0 */

/* The one generic constructor: interns attr, infers types, folds constants, simplifies, hash-conses. All typed
 * constructors of build.h end here. `attr` may be NULL. Returns result 0 of the node (others: ty_val_make). */
ty_val ty_graph_emit(ty_graph *g, ty_op op, const ty_attr *attr, const ty_val *in, int n_in);

/* Marks live[id] = 1 for all nodes reachable from the effects and outputs of the tapes (array of n_nodes bytes). */
void ty_graph_mark_live(const ty_graph *g, uint32_t tapes, uint8_t *live);

#endif
