/* served_tables.h - tables of a served training that travel by rows: those of which a batch names only some
 * (ty_train_spec.row_lists).
 *
 *     ty_served_tables_name(&t, inputs, err);     // which rows the batch names: t.rows[k].ids
 *     ... pull t.rows ...     ty_served_tables_put(&t);
 *     ... a step ...          ty_served_tables_take(&t);
 *     ... push t.rows ...
 *
 * The rows travel through a buffer of as many as a batch can name, so that a step costs nothing that grows with the
 * table. Rows that no batch has named since are old, or changed by the step's own update: before anything reads whole
 * tables they are pulled whole.
 */
#ifndef TY_ENTRYPOINT_SERVED_TABLES_H
#define TY_ENTRYPOINT_SERVED_TABLES_H

#include "compiler/compiler.h"
#include "dist/server/client.h"

typedef struct ty_served_table {
    const char *list;         /* the program's output with the numbers of the rows */
    float *weight, *gradient; /* [rows][width], in the program's states */
    int64_t n, width;
    int64_t *ids; /* [as many as a batch can name] */
} ty_served_table;

typedef struct ty_served_tables {
    ty_program *program;
    ty_served_table *table; /* [n] */
    ty_client_rows *rows;   /* [n]: of the batch that was named last */
    int n;
} ty_served_tables;

/* Room for `most` tables. */
void ty_served_tables_init(ty_served_tables *t, ty_program *p, int most, ty_arena *a);
/* Whether the weight travels by rows: how many of them a batch can name; 0: it does not. */
int64_t ty_served_tables_find(const ty_served_tables *t, const char *weight);
/* Adds one of which a batch can name `most` rows (ty_served_tables_find), number `variable` of the catalogue. */
void ty_served_tables_add(ty_served_tables *t, int variable, const ty_shard_variable *v, int64_t most, float *weight,
                          float *gradient, ty_arena *a);

/* Runs the tape that finds the rows of a batch. */
int ty_served_tables_name(ty_served_tables *t, const void *const *inputs, ty_error *err);
/* Pulled rows go into the weights. */
void ty_served_tables_put(const ty_served_tables *t);
/* Gradients become the rows; in the program's state they are zero then, as they must be at the start of a step. */
void ty_served_tables_take(const ty_served_tables *t);
/* All of them, whatever rows they are of. */
void ty_served_tables_clear(const ty_served_tables *t);

#endif
