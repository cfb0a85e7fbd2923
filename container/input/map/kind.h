/* kind.h - how each way to an id works. Private to this folder.
 *
 * A new way is a name in ty_map_way, a row of functions and its place in map_kinds (map.c). Everything around it
 * (missing values, scales, lengths, one_hot, types, files) is the same for all.
 */
#ifndef TY_CONTAINER_INPUT_MAP_KIND_H
#define TY_CONTAINER_INPUT_MAP_KIND_H

#include "container/input/map/map.h"
#include "container/input/map/moments.h"
#include "container/input/map/words.h"

typedef struct map_kind {
    const char *name; /* as the recipe's key */
    bool wants_text;
    bool is_list; /* a text becomes several ids */
    /* NULL: nothing to be done, learnt or kept. */
    int (*prepare)(ty_map *m, ty_error *err);                               /* of ty_map_new */
    int (*see_text)(ty_map *m, ty_text text, int64_t times, ty_error *err); /* not missing */
    int (*fits)(const ty_map *m, const ty_cells *cells, ty_error *err); /* refuses what row_ids would for its form */
    int (*settle)(ty_map *m, ty_error *err);
    int64_t (*n_ids)(const ty_map *m);
    /* Ids of a text, up to max; returns how many there are in all (1 but for lists), or -1: refused. */
    int64_t (*text_ids)(const ty_map *m, ty_text text, int64_t *out, int64_t max, ty_error *err);
    /* Instead: ids of all texts of a sample, at most max, for which there is room; returns how many, or -1. */
    int64_t (*row_ids)(const ty_map *m, const ty_cells *cells, int64_t *out, int64_t max, ty_error *err);
    /* Instead, of those that want numbers: the id of one that has been scaled, clipped ... */
    int64_t (*number_id)(const ty_map *m, double v);
    void (*write)(const ty_map *m, ty_json_writer *w);
    int (*read)(ty_map *m, const ty_doc *settled, ty_error *err);
} map_kind;

/* What is learnt of one cell of a sample. */
typedef struct map_cell {
    map_moments raw;  /* as stored, for what stands in the place of missing values */
    map_moments made; /* scaled, clipped, log1p */
    int64_t n_missing;
} map_cell;

struct ty_map {
    ty_map_spec d;
    const map_kind *kind;
    ty_arena *arena;
    bool is_settled;
    int64_t n_seen;   /* samples */
    int64_t n_absent; /* of these without any cell */
    int64_t n_cells;  /* of a sample, where all have as many; 0: none seen */
    map_cell *cell;   /* [n_stats] while learning: of each cell, or one for all where samples are lists */
    int64_t n_stats;
    int64_t n_missing_text;
    map_words words; /* seen; settled: by number */
    /* Settled, of those with numbers: */
    double *shift, *divisor; /* [n_stats]: normalize is (v - shift) / divisor; NULL: none */
    double *fill;            /* [n_stats]: what stands for missing values, as stored; NULL: none */
    ty_text fill_text;
    double *boundary;
    int n_boundaries;
    void *tokenizer;
    int64_t n_tags;  /* tags are numbers below this, and their own ids; 0: they are words */
    int32_t mask_id; /* the token that stands where a word is hidden */
};

enum { MAP_NOT_COUNTED = -100 }; /* the label that losses pass over, as in PyTorch */

extern const map_kind map_number, map_buckets, map_hash, map_vocabulary, map_classes, map_crossed, map_tokenizer,
    map_length, map_tags, map_answer;

/* To which length rows are filled up or cut; 0: they are not. That of an answer is its tokens'. */
static inline int64_t map_row_length(const ty_map *m)
{
    return m->d.way == TY_MAP_ANSWER ? 0 : m->d.max_length;
}

/* Samples are lists of any length: cells have no place of their own. */
static inline bool map_has_list(const ty_map *m)
{
    return map_row_length(m) > 0 || m->d.one_row || m->kind->is_list;
}

/* What comes before buckets and behind missing values. */
double map_make_number(const ty_map *m, double v);
/* "red", cut after 40 bytes, for messages. */
const char *map_show(ty_text text, char out[64]);
/* A cell as a text: decimal digits of an integer; p NULL: missing. A number that is not whole is refused. */
int map_take_text(const ty_map *m, const ty_cells *cells, int64_t i, char room[32], ty_text *out, ty_error *err);
/* A cell as a number; NaN: missing. A text that is none is refused. */
int map_take_number(const ty_map *m, const ty_cells *cells, int64_t i, double *out, ty_error *err);
bool map_is_missing_text(ty_text text);
/* tokenizer.c: what tokens and tags share. */
int map_pieces_prepare(ty_map *m, ty_error *err);
int map_pieces_fit(const ty_map *m, const ty_cells *cells, ty_error *err);
int64_t map_pieces_row(const ty_map *m, const ty_cells *cells, int64_t *out, int64_t max, ty_error *err);
/* ways.c: the id of a word's tag. */
int map_tag_id(const ty_map *m, ty_text tag, int64_t *out, ty_error *err);
/* hide.c: finds the mask token. */
int map_hide_prepare(ty_map *m, ty_error *err);
/* Of the content of its file. */
uint64_t map_tokenizer_fingerprint(const ty_map *m);
/* The next piece of a text that is split; false at its end. */
bool map_next_piece(const ty_map *m, ty_text *rest, ty_text *out);
int map_refuse_missing(const ty_map *m, ty_error *err);

#endif
