/* walk.h - one reader of a chunk. Private to this folder.
 *
 * A record without quotes whose fields are where they should be takes the lane (lane.c): its separators are known
 * before any of it is read. Every other goes field by field (rows.c), which also finds every fault.
 */
#ifndef TY_CONTAINER_INPUT_TABLE_WALK_H
#define TY_CONTAINER_INPUT_TABLE_WALK_H

#include "container/input/map/map.h"
#include "container/input/table/table.h"

enum { WALK_PLAIN_BYTES = 1 << 20, WALK_LANE_BYTES = 8192, WALK_LANE_SPARE = 8 };

typedef struct table_walk table_walk;

/* Reads the record at w->csv.at into w->real and w->whole. 1: done, 0: it has to go field by field, -1. */
typedef int walk_lane(table_walk *w, ty_error *err);

struct table_walk {
    const table_impl *t;
    table_chunk *chunk;
    ty_csv csv;
    double *real; /* [n_slots], one row on its way, before scaling */
    int64_t *whole;
    ty_text *text;        /* of TABLE_TEXT, in the file or in `plain` */
    ty_arena plain;       /* texts of this record without doubled quotes */
    ty_field_info *known; /* what was seen before a record that may be bad */
    walk_lane *lane_of;
    /* Separators outside quotes in [lane, lane_end): offsets from lane. `used` of them have been read, and lane_at is
     * the record that comes then. record_end: which of them end records. */
    const char *lane, *lane_end, *lane_at;
    int used, used_ends, n_ends;
    bool has_breaks; /* line ends inside quotes */
    uint16_t separator[WALK_LANE_BYTES + WALK_LANE_SPARE], record_end[WALK_LANE_BYTES];
};

/* The lane for this processor; all of them give the same. */
walk_lane *walk_lane_best(void);
walk_lane *walk_lane_any(void);

/* mapped.c: a text, and the row of a field with transforms. */
int walk_store_text(table_walk *w, const ty_csv_field *f, const table_target *at);
int walk_finish_mapped(table_walk *w, int64_t line, int field, ty_error *err);
void walk_forget_texts(table_walk *w); /* before a record */
int walk_learn(table_walk *w, int64_t line, ty_error *err);

/* A field's value, whatever it looks like. */
int walk_store_slow(table_walk *w, const ty_csv_field *f, const table_target *at, ty_error *err);

#endif
