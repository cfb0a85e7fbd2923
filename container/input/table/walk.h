/* walk.h - one reader of a chunk. Private to this folder.
 *
 * Separators come first, 64 bytes at a time, for 16 KiB of text (walk_ways.look). Then there are three ways to read:
 *
 *     the tile  (tile.c)  all records whose separators are known, a field at a time, many numbers at a time, straight
 *                         into the rows; where nothing but plain numbers is wanted
 *     the lane  (lane.c)  one record whose separators are known
 *     rows.c              one record, field by field, whatever it looks like
 *
 * What one cannot read the next does, so that only the last knows faults, and all give the same.
 */
#ifndef TY_CONTAINER_INPUT_TABLE_WALK_H
#define TY_CONTAINER_INPUT_TABLE_WALK_H

#include "container/input/map/map.h"
#include "container/input/table/table.h"

enum { WALK_PLAIN_BYTES = 1 << 20, WALK_LANE_BYTES = 16384, WALK_LANE_SPARE = 64 };

typedef struct table_walk table_walk;
typedef struct walk_tile walk_tile;

/* Numbers as text, each between two separators: their offsets from `lane` in the low and the high half of a pair. At
 * least 16 bytes before the end of the first may be read. Eight pairs behind the last are there. */
typedef struct walk_numbers {
    const char *lane, *begin; /* begin: before it nothing may be read */
    const uint32_t *pair;
    int n;
    bool powers;      /* expect exponents: only a matter of speed */
    uint8_t *odd;     /* [(n + 7) / 8] receives a bit for each that was not read, whose value is then anything */
    int64_t min, max; /* of whole numbers that were read are set; INT64_MAX, INT64_MIN: there is none */
} walk_numbers;

/* Line feeds of a text so far, and how many of them stand behind an even number of quotes. */
typedef struct walk_count {
    const char *p;
    bool quoted;
    int64_t line_ends, records;
} walk_count;

/* How a kind of processor does it. All of them give the same, but for what they call odd. */
typedef struct walk_ways {
    const char *name;
    /* Goes on by 64 bytes while that many are left before `stop`. */
    void (*count)(walk_count *c, const char *stop);
    /* Separators from `from` on, where a record begins, as far as there is room for and quotes are where they should
     * be, into the walk. */
    void (*look)(table_walk *w, const char *from);
    /* Reads the record at w->csv.at into w->real and w->whole. 1: done, 0: it has to go field by field, -1. */
    int (*record)(table_walk *w, ty_error *err);
    /* For the tile; NULL: none. Plain numbers, as ty_number_scan and ty_integer_scan have them. single: a double made
     * float. Return how many are odd. */
    int (*real)(walk_numbers *t, double *out);
    int (*single)(walk_numbers *t, float *out);
    int (*whole)(walk_numbers *t, int64_t *out);
} walk_ways;

struct table_walk {
    const table_impl *t;
    table_chunk *chunk;
    ty_csv csv;
    double *real; /* [n_slots], one row on its way, before scaling */
    int64_t *whole;
    ty_text *text;        /* of TABLE_TEXT, in the file or in `plain` */
    ty_arena plain;       /* texts of this record without doubled quotes */
    ty_field_info *known; /* what was seen before a record that may be bad */
    const walk_ways *ways;
    walk_tile *tile; /* NULL: something else than plain numbers is wanted */
    /* Separators outside quotes from lane on, as offsets from it: number i is place[i + 1], and place[0] stands for the
     * one before the first record. `used` of them have been read, and lane_at is the record that comes then. end_at:
     * those that end records. break_at: line feeds inside quotes. */
    const char *lane, *lane_at;
    int used, used_ends, used_breaks, n, n_ends, n_breaks;
    uint16_t place[1 + WALK_LANE_BYTES + WALK_LANE_SPARE];
    uint16_t end_at[WALK_LANE_BYTES + WALK_LANE_SPARE], break_at[WALK_LANE_BYTES + WALK_LANE_SPARE];
};

/* The ways of this machine, the best first; NULL behind the last, which reads records one by one: what others are
 * compared with. */
const walk_ways *walk_ways_number(int i);
/* For tests: the number of those that are taken from now on. */
extern int walk_ways_taken;

/* wide.c: for AVX-512 with VBMI2. NULL: not this machine. */
const walk_ways *walk_ways_wide(void);

/* Records from w->csv.at on, many at a time. Returns how many were read, with all that rows.c does for each; 0: the
 * next has to go by itself; -1. */
int64_t walk_tile_read(table_walk *w, ty_error *err);
/* NULL in *out: the table is not for it. -1: no memory. */
int walk_tile_new(const table_impl *t, walk_tile **out);
void walk_tile_free(walk_tile *tile);

/* rows.c: one record, and the line of one that was read otherwise. */
int walk_record(table_walk *w, ty_error *err);
int walk_note_line(table_chunk *c, int64_t line, ty_error *err);

/* mapped.c: a text, and the row of a field with transforms. */
int walk_store_text(table_walk *w, const ty_csv_field *f, const table_target *at);
int walk_finish_mapped(table_walk *w, int64_t line, int field, ty_error *err);
void walk_forget_texts(table_walk *w); /* before a record */
int walk_learn(table_walk *w, int64_t line, ty_error *err);

/* Moves over the line feeds inside quotes of the record that ends at `end`; how many there are. */
static inline int walk_breaks(table_walk *w, uint16_t end)
{
    int before = w->used_breaks;
    while (w->used_breaks < w->n_breaks && w->break_at[w->used_breaks] < end)
        w->used_breaks++;
    return w->used_breaks - before;
}

/* A field's value, whatever it looks like. */
int walk_store_slow(table_walk *w, const ty_csv_field *f, const table_target *at, ty_error *err);

#endif
