/* cmodel_net.h - a network while model() builds it: what stands behind the calls of trainyard/model.h. */
#ifndef TY_COMPILER_IMPORT_CMODEL_NET_H
#define TY_COMPILER_IMPORT_CMODEL_NET_H

#include "base/arena.h"
#include "compiler/ir/build.h"
#include "compiler/model.h"

#define TY_MODEL_TYPES_ONLY
#include "include/trainyard/model.h"

#define CMODEL_NAME_BYTES 200
#define CMODEL_MAX_VALUES 65536
#define CMODEL_MAX_SCOPES 32
#define CMODEL_MAX_FREE   16

/* An input, output, parameter or buffer that model() has named. */
typedef struct cmodel_value {
    const char *name;
    ty_type type;
    ty_val val;
    const char *dim_name[TY_MAX_RANK]; /* inputs: of free dims, else NULL */
    ty_init init;                      /* weights */
    bool is_buffer;
    ty_val update; /* buffers: value after a step, or TY_NONE */
} cmodel_value;

typedef struct cmodel_list {
    cmodel_value *at;
    int n, cap;
} cmodel_list;

typedef struct cmodel_net {
    ty_net face; /* first: what model() sees */
    ty_graph *g;
    ty_arena *arena; /* names and lists */
    ty_model_mode mode;
    ty_val seed, step;
    char *place;      /* the rehearsal leaves "file:line" of each call here; else NULL */
    int64_t free_dim; /* listing: what the first free dimension is bound to, the next one to one more, and so on */
    const char *free_name[CMODEL_MAX_FREE];
    int n_free;
    /* Importing: the value of an input or weight by name; NULL while listing, where stand-ins are made. */
    ty_val (*bound_input)(struct cmodel_net *net, const char *name, const ty_type *declared, const char *const *free);
    ty_val (*bound_weight)(struct cmodel_net *net, const char *name, const ty_type *type);
    const struct ty_cmodel_lists *lists;
    const ty_model_binding *binding;
    cmodel_list input, output, weight;
    char scope[CMODEL_NAME_BYTES];          /* "layers.0." */
    uint8_t scope_bytes[CMODEL_MAX_SCOPES]; /* its length before each scope that is open */
    int n_scopes;
    uint64_t init_seed;
    int64_t n_calls, n_random;
    struct cmodel_layer *layer; /* cmodel_layer.h; NULL: this is a model */
    void *builder; /* what code of ours builds it with: origins and faults name layers then; NULL: lines of C */
    bool failed;
    ty_error error; /* the first one */
} cmodel_net;

typedef struct cmodel_call {
    const char *op;
    int arg; /* of the table's row */
    const ty_val *in;
    int n_in;
    const ty_args *args; /* never NULL */
} cmodel_call;

/* The calls that models and layers make. */
extern const ty_net_calls cmodel_calls;
/* Runs model() with these settings; sets net->failed and net->error. The caller sets the fields above up to binding. */
void cmodel_build(cmodel_net *net, void (*model)(ty_net *));

/* For operators and layers. All failures set the error with the user's line; the value is TY_NONE. */
ty_val cmodel_fail(cmodel_net *net, ty_code code, const char *fmt, ...) TY_PRINTF(3, 4);
ty_val cmodel_parameter(cmodel_net *net, const char *name, int rank, const int64_t *dim, ty_init init);
ty_val cmodel_buffer(cmodel_net *net, const char *name, int rank, const int64_t *dim, ty_init init);
void cmodel_update(cmodel_net *net, ty_val buffer, ty_val value);
/* "layer.part" in the arena. */
const char *cmodel_join(cmodel_net *net, const char *layer, const char *part);
/* Uniform f32 in [0, 1) from a stream of its own. */
ty_val cmodel_random(cmodel_net *net, int rank, const int64_t *dim);
/* The graph value of a variable; TY_NONE (without failure) for none. */
ty_val cmodel_optional(cmodel_net *net, ty_var v);
/* A negative axis counts from the end; false after failing. limit: rank, or rank + 1 where an axis is added. */
bool cmodel_axis(cmodel_net *net, int64_t axis, int limit, int *out);
/* True if x has between lo and hi axes. */
bool cmodel_rank_is(cmodel_net *net, ty_val x, int lo, int hi);
bool cmodel_dtype(cmodel_net *net, const char *text, ty_dtype *out);
bool cmodel_shape_ok(cmodel_net *net, const ty_shape *s, ty_dtype dtype);

#define CMODEL_PLACE_BYTES 300

/* The table of operators; NULL if there is none of that name. */
typedef ty_val cmodel_op(cmodel_net *net, const cmodel_call *c);
typedef struct cmodel_row {
    const char *name;
    int min_in, max_in; /* -1: any number */
    cmodel_op *build;
    int arg;
} cmodel_row;
const cmodel_row *cmodel_find_op(const char *name);
extern const cmodel_row cmodel_leaves[], cmodel_basics[], cmodel_layers[], cmodel_windows[], cmodel_onnx[],
    cmodel_layer_rows[]; /* each ends with a NULL name */

/* Initial bytes of a weight, f32, into out. */
void cmodel_initialize(const char *name, const ty_type *type, ty_init init, uint64_t seed, float *out);

#endif
