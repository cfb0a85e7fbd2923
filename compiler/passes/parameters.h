/* parameters.h - which weights are trained, and where each lies in the flat arenas. Internal to step.c.
 *
 * While the step is drafted every weight that may change is a leaf of its own; how the leaves become slices of arenas
 * is known only after the model was imported, because the order follows the first use.
 */
#ifndef TY_COMPILER_PASSES_PARAMETERS_H
#define TY_COMPILER_PASSES_PARAMETERS_H

#include "compiler/compiler.h"
#include "compiler/ir/graph.h"

#define TY_PARAM_MAX_SCALES 32  /* different factors of the learning rate, 1 among them */
#define TY_PARAM_MAX_TABLES 256 /* weights that are updated by rows */
#define TY_PARAM_MAX_GROUPS (2 * TY_PARAM_MAX_SCALES + TY_PARAM_MAX_TABLES)

typedef enum ty_param_role {
    TY_PARAM_CONSTANT,  /* never changes: its bytes are a constant of the graph */
    TY_PARAM_ADAPTED,   /* neither; products add those of its adapter */
    TY_PARAM_CANDIDATE, /* trained if the loss depends on it */
    TY_PARAM_RUNNING    /* statistic of a normalization: changed by batches if training updates it */
} ty_param_role;

/* One a weight of the model; behind them, two an adapter. */
typedef struct ty_param {
    const ty_model_value *weight;
    ty_type type;
    ty_param_role role;
    int same_as; /* number of the weight it is tied to: itself unless tied */
    bool decays; /* weight decay applies */
    int scale;   /* number of its factor of the learning rate */
    bool trained;
    ty_val leaf;                /* in the draft; TY_NONE: a constant */
    ty_val eval_leaf;           /* what evaluation reads: the leaf, or one that becomes the average */
    uint32_t first_use;         /* id of the first node that reads the leaf */
    int group;                  /* trained: of param.<group> */
    int state, segment;         /* state -1: none */
    int64_t offset;             /* elements in the state */
    ty_val grad;                /* in the draft, of the leaf's type */
    ty_val *gather;             /* updated by rows (tables.h): all that the loss reads of it */
    int n_gathers;              /* 0: updated whole */
    ty_val *lookup;             /* whose rows are not merged (unmerged.h): all that the loss reads of it */
    int n_lookups;              /* 0: its gradient is as any other */
    ty_val row_index, row_grad; /* of them: i64[k], f32[k, width] */
} ty_param;

/* Weights of one flat arena, in order. */
typedef struct ty_param_group {
    int number; /* of its names: "param.<number>" */
    double decay, lr_factor;
    int *member; /* numbers of params */
    int n_members;
    int64_t *member_elems;
    int64_t elems;
    int state;          /* of the parameters themselves */
    bool by_rows;       /* one table, updated by rows (tables.h) */
    ty_type table;      /* by_rows: its type */
    ty_val rows;        /* by_rows: i64[k], of this step */
    int64_t grad_elems; /* by_rows: elements of the gradient, which is that of k rows */
} ty_param_group;

/* Numbers of params: a matrix and its factors. */
typedef struct ty_param_adapter {
    int weight, left, right;
} ty_param_adapter;

typedef struct ty_param_set {
    ty_param *param;
    int n_params;
    ty_param_adapter *adapter;
    int n_adapters;
    ty_param_group group[TY_PARAM_MAX_GROUPS];
    int n_groups;
    double scale[TY_PARAM_MAX_SCALES]; /* [0] is 1 */
    int n_scales;
    int64_t n_trained; /* numbers */
    int replicas;      /* that share a step */
    ty_arena *arena;   /* of all arrays */
} ty_param_set;

/* Roles and factors by the spec's lists. Refuses exact names that no weight has, and tied weights that differ in type.
 */
int ty_params_classify(ty_param_set *set, const ty_model *m, const ty_train_spec *spec, ty_arena *arena, ty_error *err);
/* Decides what is trained: candidates that `loss` depends on. Refuses those that are no f32. */
int ty_params_find_uses(ty_param_set *set, const ty_graph *g, ty_val loss, ty_error *err);
/* Is the name one of the list, or matched by a pattern in it? */
bool ty_params_in_list(const char *name, const char *const *list, int n);
/* A pattern may match nothing; a plain name that matches nothing is refused, under the recipe's key. */
int ty_params_check_names(const ty_model *m, const char *key, const char *const *list, int n, ty_error *err);
/* Marks all nodes that v depends on. */
void ty_params_mark(const ty_graph *g, ty_val v, uint8_t *live);
/* Groups, order and offsets of what is trained; tables that are updated by rows are a group each, behind all others. */
void ty_params_arrange(ty_param_set *set, const ty_train_spec *spec);
/* Adds a state with the segments of a group, named "<prefix>.<group number>". init: with the bytes of the file. Returns
 * its number. */
int ty_params_add_state(const ty_param_set *set, const ty_param_group *group, ty_graph *g, const char *prefix,
                        ty_state_role role, bool init);

#endif
