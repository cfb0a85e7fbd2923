/* schema.h - the columns of an Arrow file, and which buffers of a batch make them. Private to this folder. */
#ifndef TY_CONTAINER_INPUT_ARROW_SCHEMA_H
#define TY_CONTAINER_INPUT_ARROW_SCHEMA_H

#include "container/input/arrow/arrow.h"
#include "container/input/arrow/flat.h"

enum { ARROW_MAX_DEPTH = 16, ARROW_MAX_LISTS = 4 };

typedef enum arrow_kind {
    ARROW_NONE, /* all null, and no buffers */
    ARROW_INT,
    ARROW_UINT,
    ARROW_FLOAT,
    ARROW_BOOL,
    ARROW_DECIMAL,
    ARROW_TEXT, /* texts or bytes of any length */
    ARROW_VIEW, /* those, each where a view of 16 bytes says, in one of several buffers */
    ARROW_FIXED /* bytes of one length */
} arrow_kind;

/* A field of a batch: how many rows and nulls its node says it has, and its first buffer, that of nulls. */
typedef struct arrow_place {
    int node, buffer;
} arrow_place;

typedef struct arrow_list {
    arrow_place place;
    int bytes;    /* of an offset: 4 or 8; 0: it has none */
    int64_t size; /* then: so many elements each */
} arrow_list;

/* How the values of a column lie: in structs, perhaps in a list, and there as numbers or texts. */
typedef struct arrow_column {
    arrow_place above[ARROW_MAX_DEPTH]; /* [n_above] structs around it */
    int n_above;
    arrow_place inside[ARROW_MAX_DEPTH]; /* [n_inside] those that are elements of its list */
    int n_inside;
    arrow_list list[ARROW_MAX_LISTS]; /* [n_lists] lists in lists, whose elements follow one another */
    int n_lists;
    arrow_kind kind;
    parquet_form form;
    int bytes; /* of a value; of texts: of an offset */
    int scale; /* decimal */
    arrow_place value;
    int view;        /* which of the batch's */
    bool is_coded;   /* the place has numbers of values of a dictionary */
    int dictionary;  /* which of the schema's */
    int index_bytes; /* of such a number */
    bool is_signed;
} arrow_column;

/* Values that columns have numbers of; they lie in a batch of their own, as its only field. */
typedef struct arrow_dictionary {
    int64_t id;
    arrow_column values;
} arrow_dictionary;

/* Of the schema's message. */
typedef struct arrow_schema {
    arrow_column *column; /* as parquet_file's */
    arrow_dictionary *dictionary;
    int n_dictionaries;
    int n_nodes, n_buffers; /* but for those that views point to, whose number each batch says */
    int *view;              /* [n_views] the last buffer of each column of views, read or not; theirs follow it */
    int n_views;
} arrow_schema;

/* Buffers of a column of such values. */
int arrow_buffers(const arrow_column *c);

/* t: the table Schema. */
int arrow_schema_read(flat *f, flat_table t, ty_arena *a, arrow_schema *out, parquet_file *file, ty_error *err);

/* Of a batch in which the columns of the schema lie. */
typedef struct arrow_batch {
    int64_t n_rows;
    int64_t body;                                /* where its buffers begin */
    int codec;                                   /* 0 LZ4, 1 Zstandard, -1: none */
    int64_t (*node)[2];                          /* [n_nodes] rows, nulls */
    int64_t (*buffer)[2];                        /* [n_buffers] place behind body, bytes */
    int64_t (*loose)[2];                         /* the same, of those that views point to */
    int64_t *first_loose;                        /* [n_views + 1] where those of each column of views begin */
    const struct arrow_batch *const *dictionary; /* [n_dictionaries] those that were there before it; NULL: was not */
    const struct arrow_batch *before;            /* of a dictionary: what it continues; NULL: nothing */
    int64_t n_values;                            /* of a dictionary: with those before it */
} arrow_batch;

struct arrow_file {
    arrow_schema schema;
    arrow_batch *batch; /* [n_groups] */
};

#endif
