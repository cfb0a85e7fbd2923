/* records.h - what data sets of records share. Private to dataset_records.c, records_*.c and streams.
 *
 * A kind of record is a row of functions: which frames its file has, what of a record belongs to which field, and how
 * that is decoded. dataset_records.c does everything else: files, the walk that checks all of it, batches.
 */
#ifndef TY_CONTAINER_INPUT_RECORDS_H
#define TY_CONTAINER_INPUT_RECORDS_H

#include "container/input/bytes.h"
#include "container/input/dataset.h"
#include "container/input/example.h"
#include "container/input/frame.h"
#include "container/input/map/map.h"
#include "container/input/media.h"
#include "container/input/parquet/packing.h"
#include "container/input/record.h"

#define RECORDS_MAX_ELEMS ((int64_t)1 << 26) /* of a field in a record */

typedef struct records_file {
    const ty_data_file *file;
    ty_bytes bytes;
    uint64_t *at; /* where each record begins */
    int64_t n, room;
    int64_t first; /* number of its first sample */
    uint64_t *bad; /* [n_bad] records that `prepare` left out, rising: the walk passes over them */
    int64_t n_bad, bad_room;
} records_file;

typedef struct records_field {
    ty_field declared;                 /* name, member, scale, missing ... */
    const char *name;                  /* in the records */
    const char *also[TY_N_TEXT_PARTS]; /* the same of ty_field.part; NULL: none */
    int feature[1 + TY_N_TEXT_PARTS];  /* example: numbers of these in records_impl.feature */
    bool is_settled;                   /* the stored type is known, and with it the batch's */
    ty_dtype stored;
    bool takes_any; /* a stream's, that no record had which was looked at: each is stored as it comes */
    int64_t n_elems;
    int64_t min, max; /* of the batch type, if an integer */
    int part;         /* libsvm: which part of a line it is */
    int32_t *column;  /* csv, parquet: [n_columns], of which the last ones are the parts' */
    int32_t n_columns, n_part[TY_N_TEXT_PARTS];
    ty_dtype decoded;   /* parquet: as which a row's elements are decoded */
    ty_media media;     /* of encoded pictures or sounds, settled with the first; none: neither */
    ty_media usual;     /* the same before that */
    ty_image_sums sums; /* of pictures whose mean is to be computed */
} records_field;

static inline bool records_has_parts(const records_field *f)
{
    bool any = false;
    for (int k = 0; k < TY_N_TEXT_PARTS; k++)
        any = any || f->also[k];
    return any;
}

/* What a record has for a field. */
typedef struct records_cell {
    bool is_there;
    ty_dtype dtype;                  /* as which it is decoded */
    int64_t n;                       /* elements; -1: not counted yet */
    int64_t n_part[TY_N_TEXT_PARTS]; /* parquet: the last of them that are of each part */
    size_t scratch_bytes;            /* that decoding needs behind the elements */
    union {
        struct {
            ty_feature feature;
            ty_feature_piece piece;
        } example;
        ty_record_tensor tensor;
        struct {
            const char *p, *end; /* the line, or the value in it */
            int part;            /* libsvm: which part of a line the field is */
            bool lenient, as_is;
        } text;
        struct {
            const parquet_values *value; /* of the row group: [columns that are read] */
            const void *const *plain;    /* the same, where nothing has to be looked at (rows.h) */
            int64_t row;                 /* in it */
            int field, column;           /* column: of those that are read, the field's first */
        } row;
        struct {
            const uint8_t *p; /* floats of the label, or the encoded picture */
            size_t n;         /* bytes */
            bool is_picture;
        } mxnet;
    } u;
} records_cell;

typedef struct records_kind records_kind;

/* libsvm: what the lines of these files say, before others are heard: words behind a label (-1, -2: see libsvm_counts),
 * indexes, entries of a line, the place of the largest index. */
typedef struct records_seen {
    int64_t each, min, max, fewest, most;
    int64_t max_file, max_at, max_record, as_is;
} records_seen;

typedef struct records_impl {
    const records_kind *kind;
    records_file *file;
    records_field *field;
    const char **names;   /* of fields, in the records */
    const char **feature; /* [n_features]: these and those of parts, each once */
    int n_features;
    int n_files, n_fields;
    int64_t index_base, width,
        count;           /* libsvm: first index, numbers of a dense row, entries if all rows have as many */
    bool lenient;        /* libsvm: as the source says */
    bool as_is;          /* libsvm: all lines have as many entries, which stay in their order */
    bool has_to_look;    /* libsvm in a stream: base and width follow from all lines, which kind->learn has to see */
    int64_t least, most; /* of those: the smallest and the largest index */
    bool is_whole;       /* mxnet: every record has one label, which is an integer */
    bool first_decides;  /* mxnet in a stream: is_whole is what the first record says */
    bool blank_lines;    /* lines: as the source says */
    ty_arena *arena;
    char delimiter;                  /* csv */
    ty_csv_missing missing;          /* csv: what stands for no value */
    int32_t n_columns;               /* csv: of every line; 0: the first has not been seen */
    struct parquet_rows *rows;       /* parquet: the columns; of a stream only which they are */
    struct parquet_packing *packing; /* parquet, a stream's: how a row is packed */
    struct parquet_blocks *blocks;   /* parquet: all fields row by row; NULL: they are made of the columns */
    const char **attribute;          /* attributes: [n_attributes] in their order */
    int n_attributes;
    bool skips_bad;       /* records may be left out: nothing is learnt of one that is */
    bool means_later;     /* pictures are decoded for their mean behind the walk, not in it */
    int mixed;            /* field whose pictures are mixed; -1: none */
    _Atomic size_t *work; /* the data set's, which a look raises when it ends; NULL: a stream's */
    records_seen seen;
    struct records_kept *kept; /* what an earlier opening found, or where this one's is to be kept; NULL: neither */
} records_impl;

/* The entries of a LibSVM line. */
typedef struct records_entries {
    bool is_read;
    float label, weight;
    int64_t qid, n, room;
    int64_t *index; /* as they stand, or rising where ids or values are read */
    float *value;
} records_entries;

/* Memory of a reader's own. */
typedef struct records_held {
    void *p;
    size_t bytes;
} records_held;

/* One reader's: datasets are read by any thread. */
typedef struct records_look {
    const records_impl *impl;
    ty_frames frames;
    ty_example example;
    int only;                              /* field that is read; -1: all */
    bool is_known;                         /* what is read has been checked, or is being checked by records_see */
    ty_feature *feature;                   /* [n_features] */
    records_cell *cell;                    /* [n_fields] */
    records_cell (*part)[TY_N_TEXT_PARTS]; /* [n_fields] */
    void *stored;                          /* a field's elements as they are stored */
    size_t stored_bytes;
    records_held held[1 + TY_N_TEXT_PARTS]; /* texts of a field that has parts, while these are decoded */
    void *joined;                           /* texts of all parts, and digits of those that are numbers */
    size_t joined_bytes;
    records_entries line; /* libsvm: the record that was found last, read once for all of its fields */
    void *split;          /* csv: the line's cells, then the numbers of fields */
    size_t split_bytes;
    parquet_unpacked unpacked; /* parquet, a stream's: the row */
    char *row;                 /* of a field with a map, to check it */
    size_t row_bytes;
    ty_media_reader *reader; /* [n_fields] from the first picture or sound on */
    ty_chance draw;          /* what is random of the record's; set with it */
    float *other;            /* a row, for mixing */
    size_t media_bytes;      /* that reading its pictures takes, as their headers say */
} records_look;

struct records_kind {
    ty_framing framing;
    bool opens_files;                 /* `prepare` does, and records_file.bytes is its own */
    bool is_kept;                     /* all that a walk finds of such records is in records_keep.c */
    bool has_parts;                   /* `cells` gives all parts of a field that has several (ty_cells.n_part) */
    bool finds_parts;                 /* `find` fills look->part, too */
    void (*fini)(records_impl *impl); /* before files are closed; NULL: nothing to do */
    /* All rows of a field as they go into a batch, where `prepare` has made them of all fields; NULL: it has not. */
    const uint8_t *(*block)(const records_impl *impl, int field);
    void (*block_place)(const records_impl *impl, int64_t sample, char *out, size_t n);
    /* Before the walk, with all files there; NULL: nothing to do. */
    int (*prepare)(ty_dataset *ds, const ty_data_source *src, ty_error *err);
    /* The same for a stream, of which nothing has been seen; NULL: nothing to do. */
    int (*begin_stream)(records_impl *impl, ty_index_base base, const ty_index_kept *kept, ty_error *err);
    /* impl->has_to_look: one after the other all records, and what follows from them. NULL: never does. */
    int (*learn)(records_impl *impl, const ty_frame *record, ty_error *err);
    int (*learnt)(records_impl *impl, const ty_agree *agree, ty_error *err);
    /* The same: what the first record decides for all, of all parts of the data. 1: it is settled, 0: the record is
     * bad, and the next one decides, -1. record NULL: there is none. NULL: none decides. */
    int (*first)(records_impl *impl, const ty_frame *record, const ty_agree *agree, ty_error *err);
    bool (*is_none)(const ty_frame *record); /* a comment; NULL: all are records */
    /* Fills look->cell of the fields that are looked for. */
    int (*find)(records_look *look, const ty_frame *record, ty_error *err);
    int64_t (*count)(const records_cell *c); /* elements; -1: malformed */
    /* Up to max of them, or all, into look->stored; returns how many there are in all; -1: malformed. */
    int64_t (*decode)(records_look *look, const records_cell *c, int64_t max);
    /* What occurs in a cell of c->n elements most of which are zero, each at least once, into look->stored: what there
     * is to check. Returns how many; -1: malformed, -2: decode it. NULL: decode all. */
    int64_t (*occurring)(records_look *look, const records_cell *c, ty_error *err);
    /* For fields with a map: what is there as cells, in look->stored or in the record; NULL: numbers, by decode. */
    int (*cells)(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err);
    /* The bytes of the encoded picture or sound in a cell, or in one that is not there for numbers. NULL: these records
     * hold none. */
    int (*encoded)(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err);
};

extern const records_kind records_parquet, records_example, records_tensor, records_libsvm, records_json, records_mxnet,
    records_lines;
extern const records_kind records_csv, records_attributes, records_parquet_stream; /* of streams alone */

/* Makes JSON text the cell of field i. */
void records_json_cell(records_look *look, int i, const char *p, const char *end);

/* The fields that a look is for: [first, end). */
static inline int records_first(const records_look *look)
{
    return look->only < 0 ? 0 : look->only;
}

static inline int records_end(const records_look *look)
{
    return look->only < 0 ? look->impl->n_fields : look->only + 1;
}

/* records_field.c. Names of n fields, of which declared is known, and of the features that they are; fields behind
 * impl->n_fields (crosses) are none. */
void records_name_fields(records_impl *impl, int n, ty_arena *a);
/* Room for n elements of 8 bytes in look->stored. */
int records_room(records_look *look, const records_cell *c, int64_t n, ty_error *err);
/* A look is a reader's own; only: as in records_look. */
int records_look_init(records_look *look, const records_impl *impl, int only, ty_error *err);
void records_look_fini(records_look *look);
/* Memory that it has come to, or will by the headers of pictures. */
size_t records_look_bytes(const records_look *look);
/* Types and shape of the batch, from the first record that has the field, with as many elements as were found. */
int records_settle(records_field *f, const records_cell *c, int64_t found, ty_field_info *info, ty_error *err);
/* The first walk: settles field i if it is not, holds what kind->find has found against its declaration, and notes its
 * range in *info. */
int records_see(records_look *look, int i, ty_field_info *info, int64_t sample, ty_error *err);
/* Decodes what kind->find has found for field i to a row of a batch. What is wrong is refused (TY_E_DATA_VALUE), all of
 * it unless look->is_known. */
int records_put(records_look *look, int i, const ty_field_info *info, char *out, ty_error *err);
/* records_transform.c: the same for fields with a map. */
int records_settle_mapped(records_field *f, int64_t n_cells, ty_field_info *info, ty_error *err);
int records_see_mapped(records_look *look, int i, ty_field_info *info, ty_error *err);
int records_put_mapped(records_look *look, int i, const ty_field_info *info, char *out, ty_error *err);
/* Maps that are not settled see the record that kind->find has found. */
int records_learn(records_look *look, ty_error *err);
/* One of them, behind the walk; `file`, which may be NULL, and the format are for messages. */
int records_settle_map(const records_field *f, const char *format, const ty_data_file *file, ty_error *err);
/* All of them, and their fields have a type. */
int records_settle_maps(ty_dataset *ds, const ty_data_source *src, ty_error *err);
/* Room for n bytes in look->stored. */
int records_bytes(records_look *look, size_t n_bytes, ty_error *err);
/* A field that no record has had is what it is declared to be. */
int records_settle_rest(const records_impl *impl, ty_field_info *info, bool has_records, ty_error *err);

/* records_media.c: fields that are pictures or sounds. Takes the declared plans over, or what `like` has settled (NULL:
 * nothing). */
int records_take_media(records_impl *impl, ty_field_info *info, ty_arena *a, const ty_dataset *like, ty_error *err);
int records_see_media(records_look *look, int i, ty_field_info *info, ty_error *err);
/* As look->draw says. */
int records_put_media(records_look *look, int i, const ty_field_info *info, char *out, ty_error *err);
/* Of a field that no record has had. */
int records_settle_no_media(records_field *f, ty_field_info *info, ty_error *err);
/* Whether means are to be computed. */
bool records_want_means(const records_impl *impl);
/* Adds the pictures of the record that kind->find has found to sums[n_fields], of fields whose means are wanted. */
int records_sum_pictures(records_look *look, ty_image_sums *sums, ty_error *err);
/* When all have been seen: the means, of all parts of the data. */
int records_take_means(records_impl *impl, const ty_agree *agree, ty_error *err);
/* records_means.c. Decodes all pictures of a walked data set on all cores, for impl->field[i].sums. */
int records_walk_means(ty_dataset *ds, ty_error *err);
/* dataset_records.c. Finds a sample's record for all fields of the look, or for its one. */
int records_find(const records_impl *impl, records_look *look, int64_t sample, ty_error *err);
void records_free_readers(records_look *look);

/* records_walk.c: looks at all records, or with types_only at the first ones. */
int records_walk_all(ty_dataset *ds, const ty_data_source *src, ty_error *err);
/* A file without records has the first sample of the one behind it. */
void records_number_files(const ty_dataset *ds);
/* How many threads open the source. */
int records_threads(const ty_data_source *src);
/* The next record that is one; as ty_frames_next. */
int records_next(const records_kind *kind, ty_frames *frames, ty_frame *out, ty_error *err);
/* Notes where a record begins. */
int records_note(uint64_t **at, int64_t *n, int64_t *room, uint64_t where, ty_error *err);
/* "file.tfrecord: record 3 at byte 120", "file.libsvm:4" as the error's place. Returns -1. */
int records_at(const records_file *file, ty_framing framing, const ty_frame *record, ty_error *err);

#endif
