/* map.h - transforms of a field: what the data hold becomes what the model takes.
 *
 * A field without transforms has no map (ty_field.map is NULL) and none of this is in its way. A map takes the cells of
 * one sample, which are numbers, integers or texts, through steps in a fixed order:
 *
 *     missing    a cell without a value gets one
 *     scale      value * scale + offset         \
 *     clip       to [low, high]                  |  numbers
 *     log1p      ln(1 + value)                   |
 *     normalize  (value - mean) / deviation     /
 *     buckets    number of the bucket                 numbers to ids
 *     hash       fingerprint modulo bins              texts or integers to ids
 *     vocabulary place in a list of words             texts or integers to ids
 *     tokenizer  a text, or a pair of them, to the ids of its pieces
 *     tags       classes of words to labels of these pieces
 *     answer     a piece of a pair's second text to its place among them
 *     length     cut, or filled up
 *     one_hot    an id becomes a row of zeros with a one
 *     type       of the batch
 *
 * What has to be known of all data (means, quantiles, words) is learnt in the walk that opens the training data:
 * ty_map_see() for each sample, then ty_map_settle(). A settled map only reads, any thread may use it, and it goes
 * with the trained model (ty_map_write, ty_map_read). Which samples were seen in which order does not matter, so that
 * maps that saw different files can be joined (ty_map_join) and are the same on all ranks.
 *
 * Integers that become ids are texts: 7 is "7", whatever file format it came from.
 */
#ifndef TY_CONTAINER_INPUT_MAP_MAP_H
#define TY_CONTAINER_INPUT_MAP_MAP_H

#include "base/arena.h"
#include "base/doc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/tensor.h"
#include "container/input/chance.h"
#include "container/input/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ty_cells_kind { TY_CELLS_NUMBERS, TY_CELLS_INTEGERS, TY_CELLS_TEXTS } ty_cells_kind;

/* What a sample has for a field, as it is stored. Borrowed. */
typedef struct ty_cells {
    ty_cells_kind kind;
    int64_t n;
    int64_t n_part[TY_N_TEXT_PARTS]; /* the last of them that are of the field's parts (ty_field.part) */
    union {
        const double *number; /* NaN: missing */
        const int64_t *integer;
        const ty_text *text;
    } u;
} ty_cells;

/* Those that are the field's own; its parts' begin behind them. */
static inline int64_t ty_cells_own(const ty_cells *cells)
{
    int64_t n = cells->n;
    for (int i = 0; i < TY_N_TEXT_PARTS; i++)
        n -= cells->n_part[i];
    return n;
}

/* A cell as a text, a whole number as its digits, in `room` if they have to be written; false: a number that is none.
 */
bool ty_cells_text(const ty_cells *cells, int64_t i, char room[32], ty_text *out);

typedef enum ty_missing_kind {
    TY_MISSING_REFUSED,
    TY_MISSING_NUMBER,
    TY_MISSING_TEXT,
    TY_MISSING_MEAN,
    TY_MISSING_MEDIAN,
    TY_MISSING_MOST_FREQUENT
} ty_missing_kind;

typedef enum ty_normalize_kind {
    TY_NORMALIZE_NONE,
    TY_NORMALIZE_STANDARD, /* (v - mean) / deviation of all values; a constant becomes 0 */
    TY_NORMALIZE_MINMAX,   /* (v - min) / (max - min); a constant becomes 0 */
    TY_NORMALIZE_GIVEN     /* (v - mean) / std as declared */
} ty_normalize_kind;

/* What makes an id, or none. */
typedef enum ty_map_way {
    TY_MAP_NUMBER,  /* no ids: numbers as they are */
    TY_MAP_BUCKETS, /* boundaries are given, or n_quantiles of them learnt */
    TY_MAP_HASH,
    TY_MAP_VOCABULARY, /* words by frequency, or as given */
    TY_MAP_CLASSES,    /* words in alphabetical order, or as given; no word beside them is accepted */
    TY_MAP_CROSS,      /* ids of other fields, hashed together; see ty_map_cross */
    TY_MAP_TOKENIZER,
    TY_MAP_LENGTH, /* how long a text is: for looks at data, not for models */
    TY_MAP_TAGS,   /* classes of the words of a text, each at the word's first token */
    TY_MAP_ANSWER, /* where in a pair's tokens the piece is that answers the first text */
    TY_N_MAP_WAYS
} ty_map_way;

/* What a tokenizer gives of a text. Of labels (NEXT, HIDDEN, TAGS) padding is -100 unless declared, and so are tokens
 * that do not count. */
typedef enum ty_token_part {
    TY_TOKENS_IDS,
    TY_TOKENS_MASK,
    TY_TOKENS_TYPES,
    TY_TOKENS_NEXT,     /* at each id the one behind it, and the padding at the last */
    TY_TOKENS_MASKED,   /* ids of which some are hidden (ty_map_hide) */
    TY_TOKENS_HIDDEN,   /* the ids that are hidden there */
    TY_TOKENS_PREVIOUS, /* `start` and then the ids: at each place what a decoder has read before it */
    TY_TOKENS_TAGS,     /* of TY_MAP_TAGS */
    TY_TOKENS_BEGIN,    /* of TY_MAP_ANSWER: the place of the answer's first token; 0: there is none in the row */
    TY_TOKENS_END       /* the same of its last */
} ty_token_part;

/* Their names, as recipes and what is kept have them; ends with NULL. */
extern const char *const ty_token_parts[];

/* What TY_MAP_LENGTH counts: bytes that begin a character, words between blanks, 1 for a text that is no UTF-8, or 1
 * for any text. */
typedef enum ty_measure { TY_MEASURE_CHARACTERS, TY_MEASURE_WORDS, TY_MEASURE_FAULTS, TY_MEASURE_TEXTS } ty_measure;

/* What is declared. Zeroed but for field and scale. Borrowed by ty_map_new(), which copies what it keeps. */
typedef struct ty_map_spec {
    const char *field; /* its name, for messages */
    ty_map_way way;
    double scale, offset;
    ty_missing_kind missing;
    double missing_number;
    const char *missing_text;
    bool is_clipped, log1p;
    double low, high;
    ty_normalize_kind normalize;
    double mean, deviation;
    const double *boundary; /* buckets: [n_boundaries], rising; bucket i ends below boundary[i] */
    int n_boundaries;
    int n_quantiles;             /* buckets: so many of them, with boundaries at quantiles; 0: as given */
    int64_t bins;                /* hash, cross */
    const char *const *word;     /* vocabulary, classes: [n_words]; NULL: learnt */
    int64_t n_words;             /* at most 16,777,216 */
    int64_t max_size, min_count; /* vocabulary that is learnt: the most frequent words, those seen so often; 0: all */
    int64_t n_oov;               /* vocabulary: ids in front for words beside it; 0: refused */
    const char *const *cross;    /* [n_cross]: names of fields */
    int n_cross;
    char split;            /* a text is cut at each of these into several; 0: not at all */
    int64_t max_length;    /* 0: all samples have as many cells */
    bool left;             /* filled up and cut at the beginning, not the end */
    double pad;            /* behind all other steps but one_hot and type */
    int64_t one_hot;       /* width; -1: as many as there are ids; 0: none */
    bool one_row;          /* one_hot of several ids is one row with several ones */
    const char *tokenizer; /* path of a tokenizer.json */
    ty_token_part token_part;
    unsigned parts; /* bit 1 << TY_PART_SECOND ...: cells have these parts, too */
    double hidden;  /* MASKED, HIDDEN: how likely a token is hidden; 0: TY_MAP_HIDDEN */
    int64_t start;  /* PREVIOUS: the id in front of the first; -1: the tokenizer's padding, or 0 */
    ty_measure measure;
    bool in_all; /* of all texts of a sample together: one number, however many there are */
} ty_map_spec;

#define TY_MAP_HIDDEN 0.15 /* Devlin et al. 2019 */

typedef struct ty_map ty_map;

/* Checks what can be checked without data. The map lies in the arena, with all that it will learn; the arena must not
 * be used by another thread until the map is settled. */
int ty_map_new(const ty_map_spec *spec, ty_arena *a, ty_map **out, ty_error *err);
const ty_map_spec *ty_map_declared(const ty_map *m);

/* Cells should be texts: words, whatever they look like. Else numbers. */
bool ty_map_wants_text(const ty_map *m);

/* ---- learning ---- */

/* Whether nothing has to be learnt any more. */
bool ty_map_is_settled(const ty_map *m);
/* Whether ty_map_see, and later ty_map_put, would take the sample: refuses (TY_E_DATA_VALUE) what they would. is_whole:
 * the batch's type is an integer. Learns nothing, so that a sample that is left out for any of its fields is in none of
 * what is learnt. */
int ty_map_check(const ty_map *m, const ty_cells *cells, bool is_whole, ty_error *err);
/* A sample of the training data. Refuses what cannot be learnt from, when part of it may be learnt already. */
int ty_map_see(ty_map *m, const ty_cells *cells, ty_error *err);
int ty_map_settle(ty_map *m, ty_error *err);
/* Whether any sample had a value to learn from. */
bool ty_map_has_seen(const ty_map *m);

/* What an unsettled map has seen, as bytes for other ranks, and what another has seen added to it. */
int ty_map_write_seen(const ty_map *m, ty_buf *out);
int ty_map_join(ty_map *m, const void *seen, size_t n, ty_error *err);
/* As if nothing had been seen: before what all ranks have seen is joined, in one order; and for a map that will not be
 * settled, which else holds memory beside its arena. */
void ty_map_forget(ty_map *m);

/* ---- using: settled maps only ---- */

/* Type of one sample with n_cells cells; rank < 0: no shape is declared. dtype_given: dtype is wanted; else float32 for
 * numbers and one_hot, int64 for ids. */
int ty_map_type(const ty_map *m, int64_t n_cells, bool dtype_given, ty_dtype dtype, int rank, const int64_t *dim,
                ty_type *out, ty_error *err);
/* Cells of a sample, as they were learnt; 1 where nothing is known. */
int64_t ty_map_n_cells(const ty_map *m);
/* Samples that it has learnt of. */
int64_t ty_map_n_seen(const ty_map *m);
/* How many ids there are, 0 .. n - 1; 0: the rows are no ids (numbers, one_hot). */
int64_t ty_map_n_ids(const ty_map *m);
/* One sample. row: of type ty_map_type. The error names the field and the value, not the place. */
int ty_map_put(const ty_map *m, const ty_cells *cells, const ty_type *type, void *row, ty_error *err);
/* Whether rows are others in each epoch: those of MASKED and HIDDEN, in which ty_map_put leaves all ids. */
bool ty_map_hides(const ty_map *m);
/* Hides ids in such a row: each with the declared probability, special tokens never, and one in a text of which none
 * would be, since a batch without a label has no loss. Of those that are hidden the mask token stands for 8 of 10 and
 * any other token for one, and one stays as it is (Devlin et al. 2019, 3.1). A HIDDEN row keeps the ids of these places
 * alone. Both are the same places for the same draw; without `augment` they are those of an epoch of their own. */
void ty_map_hide(const ty_map *m, const ty_type *type, void *row, const ty_chance *draw);
/* cells: [n_cross] ids or integers of the crossed fields, which must hold one number each. */
int ty_map_cross(const ty_map *m, const int64_t *cells, const ty_type *type, void *row, ty_error *err);
/* What a settled map has learnt or was told, for who says it in another language (ONNX). Borrowed. */
typedef struct ty_map_settled {
    int64_t n_stats;    /* 1, or one for each cell */
    const double *fill; /* [n_stats or 1]: as stored; NULL: missing is refused, or no number */
    int64_t n_fill;
    const double *shift, *divisor; /* [n_stats]; NULL: not normalized */
    const double *boundary;        /* [n_boundaries] */
    int n_boundaries;
    const char *fill_text;  /* NULL: missing is refused, or no text */
    int64_t n_words, width; /* width: of one_hot; 0: none */
    bool is_list;           /* samples have any number of cells */
} ty_map_settled;
void ty_map_look(const ty_map *m, ty_map_settled *out);
/* Word of an id of classes or a vocabulary; NULL: it has none. */
const char *ty_map_word(const ty_map *m, int64_t id);

/* "words: 3, setosa versicolor virginica", for people. */
void ty_map_describe(const ty_map *m, ty_buf *out);

/* What a settled map has learnt, as a map under the key; nothing for one that learns nothing. */
void ty_map_write(const ty_map *m, ty_json_writer *w, const char *key);
/* Settles a map of the same declaration with what was written. */
int ty_map_read(ty_map *m, const ty_doc *settled, ty_error *err);
/* Of declaration and what was learnt. */
uint64_t ty_map_fingerprint(const ty_map *m);

#endif
