/* catalogue.h - what the shards of a job hold: variables, rules, the mode; the same on every worker and server.
 *
 * Whoever trains makes it; workers send it to servers as JSON when they say hello, a server keeps the first and refuses
 * another, and every save has it. Where a row lies follows from it alone, so that nobody is asked.
 *
 *     {"format": 1, "shards": 3, "workers": 2, "mode": "bounded", "staleness": 4, "backup": 0,
 *      "variables": [{"name": "first.weight", "table": true, "hashed": false, "rows": 8192, "width": 1, "parts": 3,
 *                     "mod": true, "seed": 1, "scale": 0.01, "rule": {"kind": "adam", "rate": 0.001, ...}}]}
 *
 * A variable is a matrix [rows, width]: dense ones are pulled and pushed whole (a vector is [n, 1]), tables by rows. A
 * hashed table has no rows at first; a row comes to be when it is first asked for, as f(seed, id), whichever shard that
 * is, so that neither the number of shards nor the order of questions shows in its values.
 */
#ifndef TY_DIST_SERVER_CATALOGUE_H
#define TY_DIST_SERVER_CATALOGUE_H

#include "base/arena.h"
#include "base/buf.h"
#include "dist/server/partition.h"
#include "dist/server/rule.h"

#define TY_CATALOGUE_MAX_VARIABLES 4096
#define TY_CATALOGUE_MAX_SHARDS    1024
#define TY_CATALOGUE_MAX_WORKERS   4096
#define TY_CATALOGUE_MAX_BYTES     ((size_t)8 << 20) /* as JSON */

typedef enum ty_server_mode {
    TY_SERVER_ASYNC,   /* every push counts when it comes */
    TY_SERVER_BOUNDED, /* as async, but no worker runs more than `staleness` steps ahead of the slowest */
    TY_SERVER_SYNC,    /* a step is the mean of the first workers - backup pushes; later ones are dropped */
} ty_server_mode;

typedef struct ty_shard_variable {
    const char *name;
    bool table;  /* pulled and pushed by rows */
    bool hashed; /* a table that grows; rows is 0 */
    bool mod;    /* rows go to parts by remainder, else in blocks */
    int64_t rows, width;
    int parts;
    int *shard;    /* [parts] which shard holds it; filled by ty_catalogue_place */
    uint64_t seed; /* hashed: uniform in [-scale, scale) */
    float scale;
    ty_rule rule;
} ty_shard_variable;

typedef struct ty_catalogue {
    ty_server_mode mode;
    int staleness, backup, workers, shards;
    ty_shard_variable *variable;
    int n_variables;
} ty_catalogue;

/* Checks every field, then gives the parts to shards, even by bytes. Fails where a field is out of range. */
int ty_catalogue_place(ty_catalogue *c, ty_arena *arena, ty_error *err);
/* Appends the JSON. */
int ty_catalogue_write(const ty_catalogue *c, ty_buf *out);
/* Reads, checks and places. Bytes may come from anywhere. */
int ty_catalogue_read(const char *text, size_t n_bytes, ty_arena *arena, ty_catalogue *out, ty_error *err);
/* 0 if variables are the same (names, shapes, rules); else the first difference. Shards, workers and mode may differ,
 * as they may between a save and who loads it, unless `all`. */
int ty_catalogue_compare(const ty_catalogue *have, const ty_catalogue *given, bool all, ty_error *err);

/* Part and place of a row, and so its shard. -1 if the variable has no such row. Of a hashed table the place is -1. */
int ty_shard_variable_find(const ty_shard_variable *v, int64_t id, int *part, int64_t *place);
/* Rows of a part; 0 of a hashed table. */
int64_t ty_shard_variable_rows(const ty_shard_variable *v, int part);

#endif
