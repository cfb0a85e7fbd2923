/* split.h - the ids of a batch without duplicates, by the parts that hold them. */
#ifndef TY_DIST_SERVER_SPLIT_H
#define TY_DIST_SERVER_SPLIT_H

#include "dist/server/catalogue.h"

typedef struct ty_split {
    int64_t n_ids;  /* as given */
    int64_t n;      /* different ones */
    int64_t *id;    /* [n] part after part, rising within each */
    int64_t *where; /* [n_ids] id k stands at id[where[k]] */
    int64_t *begin; /* [parts + 1] part p has id[begin[p]] .. id[begin[p + 1] - 1] */
} ty_split;

/* TY_E_DATA_VALUE names an id that the table does not have. */
int ty_split_init(ty_split *s, const ty_shard_variable *v, const int64_t *ids, int64_t n_ids, ty_error *err);
void ty_split_fini(ty_split *s);

#endif
