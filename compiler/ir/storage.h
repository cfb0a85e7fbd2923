/* storage.h - how a graph lies in memory. Private to compiler/ir (and to tests that break graphs on purpose).
 *
 * Everything lives in one arena. Interned things (types, attributes, origins, constants) are arrays of pointers or
 * records that never move their contents; nodes and inputs are flat arrays that grow by doubling.
 */
#ifndef TY_COMPILER_IR_STORAGE_H
#define TY_COMPILER_IR_STORAGE_H

#include "compiler/ir/graph.h"

/* Open addressing; a slot holds an id + 1 (0: free) and the hash of what the id stands for. */
typedef struct graph_slot {
    uint32_t hash, id1;
} graph_slot;

typedef struct graph_table {
    graph_slot *slot;
    uint32_t cap; /* a power of two, or 0 */
    uint32_t used;
} graph_table;

/* A growing array of elements of one size. */
typedef struct graph_array {
    void *data;
    uint32_t n, cap;
} graph_array;

typedef struct graph_const {
    ty_type type;
    const void *data;
    bool owned; /* in the graph's arena; otherwise the caller keeps it alive */
} graph_const;

struct ty_graph {
    ty_arena arena;
    ty_error err;
    bool failed;
    uint32_t origin;       /* of nodes built from now on */
    double folded;         /* steps that folding has taken: fold.c */
    graph_array node;      /* ty_node */
    graph_array in;        /* ty_val */
    graph_array type;      /* const ty_type * */
    graph_array attr;      /* const ty_attr * */
    graph_array origin_of; /* const char * */
    graph_array constant;  /* graph_const */
    graph_array input;     /* ty_input * */
    graph_array state;     /* ty_state * */
    graph_array output;    /* ty_output * */
    graph_array effect;    /* ty_effect */
    graph_table node_table, type_table, attr_table, origin_table, constant_table;
};

/* What emit has worked out about a node before it exists. */
typedef struct graph_draft {
    ty_op op;
    ty_attr attr; /* clean */
    const ty_val *in;
    int n_in;
    ty_type res[TY_MAX_RESULTS];
} graph_draft;

/* Checks inputs, arity and attributes, infers result types: fills *d. False if there is no node to make: an error is
 * then stored, or an input was TY_NONE. */
bool ty_graph_draft(ty_graph *g, ty_op op, const ty_attr *attr, const ty_val *in, int n_in, graph_draft *d);
/* The node of the draft: an equal one if there is one, else a new one. */
ty_val ty_graph_append(ty_graph *g, const graph_draft *d);
/* The value if it can be computed now, else TY_NONE (fold.c). */
ty_val ty_graph_fold(ty_graph *g, const graph_draft *d);
/* A simpler value that means the same, or TY_NONE (peephole.c). May reorder the draft's inputs through `in`. */
ty_val ty_graph_peephole(ty_graph *g, graph_draft *d, ty_val *in);

/* A constant of the type. With owned, data are in the graph's arena already and are hash-consed by content; otherwise
 * as ty_b_const says. */
ty_val ty_graph_const(ty_graph *g, const ty_type *type, const void *data, bool owned);
/* The same of data that lie elsewhere: copied into the arena if the graph has no such constant yet. */
ty_val ty_graph_const_copy(ty_graph *g, const ty_type *type, const void *data);

#endif
