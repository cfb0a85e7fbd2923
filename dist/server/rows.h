/* rows.h - the rows of one part of a variable that a shard holds: weights and the rule's slots beside them.
 *
 * Static parts have all their rows from the start, by place. Hashed ones get a row when an id is first seen; the index
 * is open addressing over 8 bytes an entry, at most two thirds full.
 * No locks: whoever owns the shard owns its rows.
 */
#ifndef TY_DIST_SERVER_ROWS_H
#define TY_DIST_SERVER_ROWS_H

#include "dist/server/catalogue.h"

typedef struct ty_rows {
    const ty_shard_variable *variable;
    int number, part; /* of the variable in the catalogue, of this part in it */
    int64_t n;        /* rows that are there */
    int64_t room;     /* rows that there is memory for */
    float *weight;    /* [n][width] */
    float *slot[TY_RULE_MAX_SLOTS];
    int64_t *id; /* hashed: of each row */
    int64_t *index;
    int64_t index_size;
    uint64_t version; /* grows with every change */
    double *sum;      /* private: gradients of sync mode, [n][width] of a dense part; or NULL */
    bool touched;
} ty_rows;

/* Zero weights, slots as the rule begins. TY_E_LIMIT without memory. */
int ty_rows_init(ty_rows *r, const ty_catalogue *c, int variable, int part, ty_error *err);
void ty_rows_fini(ty_rows *r);
/* Place of an id that belongs to this part (ty_shard_variable_find), or -1. `insert`: of a hashed part the row is made,
 * as f(seed, id). -1 with insert: no memory. */
int64_t ty_rows_find(ty_rows *r, int64_t id, bool insert);
/* The id of the row at a place: the inverse. */
int64_t ty_rows_id(const ty_rows *r, int64_t place);
/* One step of the rule on rows at..at+n: gradient [n][width]. */
void ty_rows_apply(ty_rows *r, int64_t at, int64_t n, float scale, uint64_t t, const float *gradient);

#endif
