/* dataset.h - samples by number, whatever file format they lie in.
 *
 * A dataset is opened from the files of a channel and the declared fields, and is read-only from then on: any thread
 * may read any sample at any time. Files are concatenated in sorted order. What is wrong with the data is found when
 * they are opened, not in the middle of a training: ragged rows, missing files, values that do not fit their type;
 * and the smallest and largest value of every integer field is known with its place, so that a label beyond the last
 * class can be refused before the first step.
 *
 *     ty_field fields[2] = {ty_field_make("image"), ty_field_make("label")};
 *     fields[0].columns = "0-63"; ...
 *     ty_data_source src = {.paths = paths, .n_paths = 1, .fields = fields, .n_fields = 2};
 *     ty_dataset *ds;
 *     if (ty_dataset_open(&src, &ds, err) < 0) ...
 */
#ifndef TY_CONTAINER_INPUT_DATASET_H
#define TY_CONTAINER_INPUT_DATASET_H

#include "base/arena.h"
#include "base/error.h"
#include "base/tensor.h"
#include "container/input/agree.h"
#include "container/input/bad.h"
#include "container/input/field.h"
#include "container/input/files.h"
#include "container/input/tokenizer/windows.h"

#include <stdatomic.h>
#include <stdint.h>

struct ty_image_sums;

/* Texts of delimited text that say that there is no value, exactly as they are, and where one is a number any
 * number of its value. text NULL: the usual ones (header.h). */
typedef struct ty_csv_missing {
    const char *const *text; /* [n] */
    int n;
} ty_csv_missing;

typedef enum ty_csv_header { TY_CSV_HEADER_AUTO, TY_CSV_HEADER_YES, TY_CSV_HEADER_NO } ty_csv_header;

/* LibSVM: the first index. AUTO: 1 if no 0 occurs in the data. */
typedef enum ty_index_base { TY_INDEX_BASE_AUTO, TY_INDEX_BASE_ZERO, TY_INDEX_BASE_ONE } ty_index_base;

/* LibSVM: what was decided from all of the training data, and holds for whatever is read with them or after them. */
typedef struct ty_index_kept {
    bool given;
    int64_t base;  /* the first index: 0 or 1 */
    int64_t width; /* numbers of a dense row */
} ty_index_kept;

/* Where what opening finds is kept, and how much of it (keep.h). Borrowed. */
typedef struct ty_keep {
    const char *folders; /* of the cache, ':' between them: all are read, the first is written; NULL: nothing is kept */
    int64_t max_bytes;   /* of the first folder with all that is in it; 0: TY_ENTRIES_MAX_BYTES */
    int64_t least_us;    /* what was found in less is not kept */
    bool is_read_only;   /* nothing is written or removed */
} ty_keep;

/* What became of that, for the log. */
typedef struct ty_kept {
    bool is_asked;       /* it can be kept of these data, and somebody wants it */
    int64_t made_s;      /* it was there, and made then (UTC, seconds since 1970); 0: it was not */
    int64_t n_bytes;     /* it was written; 0: it was not */
    int64_t too_big;     /* bytes that it would have, which are more than the cache may have; 0: fewer */
    const char *differs; /* what differs from the one that is most like it; NULL: there is none like it */
} ty_kept;

/* What to open. All is borrowed for the time of the call. */
typedef struct ty_data_source {
    const char *const *paths; /* folders of channels or plain files */
    int n_paths;
    const char *pattern;      /* take only files that match this shell pattern; NULL: all */
    const char *format;       /* "csv", "npy" ... (format.c); NULL: by content type, extension, then first bytes */
    const char *content_type; /* the channel's ContentType; NULL or "" where it has none */
    const ty_field *fields;
    int n_fields;
    ty_csv_header csv_header; /* AUTO: the first line is a header if no field in it is a number */
    char csv_delimiter;       /* 0: tab for .tsv, else the most frequent of comma, tab, semicolon in the first line */
    ty_csv_missing csv_missing;
    ty_index_base index_base;
    ty_index_kept index;           /* given: of the data that a model was trained on (its model.json) */
    ty_windows windows;            /* text, tokens: what a sample is */
    const struct ty_dataset *like; /* what is decided from all of the data is as it was for these; NULL: decided anew */
    ty_agree agree;                /* where these are a part of the data, and others have the rest */
    ty_keep keep;                  /* records: zeroed: nothing is kept, and nothing kept is used */
    bool no_map;                   /* FastFile: read files instead of mapping them */
    bool lenient;                  /* libsvm: an index alone has the value 1, of a repeated one the last entry counts;
                                    * else both are refused */
    bool blank_lines;              /* lines: blank ones are samples too, of an empty text; else they are none */
    bool any_length;               /* parquet: rows of lists become as long as the longest; else all have one length, or
                                    * a declared one */
    bool skip_bad;                 /* bad records are left out, max_bad of them at most (bad.h), not refused */
    int64_t max_bad;               /* 0: TY_BAD_MAX */
    size_t max_inflated_bytes;     /* a compressed file's limit; 0: TY_BYTES_MAX_INFLATED */
    int n_threads;                 /* to open with; 0: as many as the process has processors. Changes no result */
    size_t span_bytes;             /* records: what a thread opens at a time; 0: as it thinks fit. Changes no result */
    bool types_only; /* look at headers and the first rows: types and shapes are known then, and of arrays the
                      * number of samples; values are neither read nor checked */
} ty_data_source;

/* What is known of one field over the whole dataset. */
typedef struct ty_field_info {
    const char *name;
    ty_type type; /* of one sample */
    size_t row_bytes;
    const struct ty_image_plan *image; /* how pictures become rows, with what the data decided; NULL: no pictures */
    const struct ty_audio_plan *audio; /* the same of sounds */
    bool is_mapped;                    /* transforms made it: min and max are what they can make */
    bool is_integer;                   /* min and max are filled (when there is a sample with at least one element) */
    int64_t min, max;                  /* after scale and offset; u64 beyond int64 counts as INT64_MAX */
    int64_t min_sample, max_sample;    /* first sample that holds them; see ty_dataset_place */
    int64_t n_missing;                 /* empty CSV fields and markers such as NA */
    int64_t n_not_finite;              /* nan and inf in CSV, missing values that became NaN not counted */
    int64_t first_missing, first_not_finite; /* samples; -1: none */
    uint64_t fingerprint;                    /* of what is declared and learnt of it alone */
} ty_field_info;

/* Where parts of a data set are looked at side by side: nothing has been seen; what a part saw, whose samples count
 * from `first` on, behind all that was seen of the parts before it. */
void ty_field_info_reset(ty_field_info *info);
void ty_field_info_take(ty_field_info *all, const ty_field_info *seen, int64_t first);

typedef struct ty_data_stats {
    int64_t n_files;
    int64_t file_bytes;   /* on disk */
    int64_t memory_bytes; /* held in memory of our own, beside mapped files */
    double load_ms;
} ty_data_stats;

typedef struct ty_dataset ty_dataset;

/* Is shown the bytes of a picture or sound as they are stored, for the time of the call. */
typedef int ty_encoded_see(void *ctx, const uint8_t *bytes, size_t n, ty_error *err);

/* Which samples, and what makes their augmentation: a pure function of (seed, epoch, sample), so that a batch is the
 * same whichever thread reads it, on however many processes, and after a resume. */
typedef struct ty_pick {
    const int64_t *sample; /* n numbers, repeats allowed */
    int64_t n;
    uint64_t seed;
    int64_t epoch;
    bool augment; /* false: evaluation; fields that would vary are read in their one plain way */
} ty_pick;

/* How a format serves samples. A new format is one table row in format.c and one of these. */
typedef struct ty_dataset_ops {
    /* Samples samples[0..n-1] of one field, one after the other, to out. */
    int (*read)(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err);
    /* All fields of these samples at once, out[i] of field i; NULL: field by field, which has no augmentation. */
    int (*read_all)(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err);
    /* "train.csv:17", "labels.npy: row 16" */
    void (*place)(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n);
    /* A picture's or sound's bytes as they are stored. NULL: this format holds none. */
    int (*encoded)(const ty_dataset *ds, int field, int64_t sample, ty_encoded_see *see, void *ctx, ty_error *err);
    void (*close)(ty_dataset *ds); /* frees impl; may find it NULL or half-made */
} ty_dataset_ops;

/* Read-only for everybody but the format that fills it. */
struct ty_dataset {
    const ty_dataset_ops *ops;
    const char *format; /* "csv" */
    int64_t n_samples;
    int n_fields;
    ty_field_info *field;
    const ty_data_file *files;
    int n_files;
    ty_data_stats stats;
    ty_index_kept index; /* libsvm: given */
    ty_kept kept;
    ty_bad bad;            /* what was left out when it was opened; of those that remain n_samples are */
    bool is_partial;       /* types_only: n_samples are those looked at, not all */
    const char *tokenizer; /* windows: the tokenizer.json that goes with the model, tokenizer_bytes long; NULL: none */
    size_t tokenizer_bytes;
    uint64_t settings;    /* windows: what is declared beside fields; 0: nothing */
    uint64_t fingerprint; /* of file names, sizes and declared fields: a resumed run must find the same */
    uint64_t files_fingerprint, fields_fingerprint; /* of its two parts, to tell which of them is another */
    ty_arena arena;
    void *impl;
    struct ty_transforms *transforms;  /* transforms that the format does not do; NULL: none */
    const struct ty_map *const *hides; /* [n_fields]: maps whose rows are others in each epoch, or NULL; NULL: none */
    _Atomic size_t *work;              /* ty_dataset_work_bytes; NULL: not kept */
};

/* Opens, reads or maps all files and checks them. On success *out must be closed. A dataset without samples is not an
 * error here. */
int ty_dataset_open(const ty_data_source *src, ty_dataset **out, ty_error *err);
void ty_dataset_close(ty_dataset *ds); /* NULL is fine */

/* Field number of a name, or -1. */
int ty_dataset_find(const ty_dataset *ds, const char *field);

/* Gathers n samples by number (repeats allowed) to out: n * row_bytes, C order, the batch dimension first. Never
 * augmented. */
int ty_dataset_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err);

/* The same for all fields, out[i] of field i. */
int ty_dataset_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err);

/* Shows the encoded picture or sound of a sample; the field is one (ty_field_info.image, audio). */
int ty_dataset_encoded(const ty_dataset *ds, int field, int64_t sample, ty_encoded_see *see, void *ctx, ty_error *err);

/* Memory that a thread takes while it reads, beside the rows: decoders of pictures, the numbers of a record. The most
 * that one has come to; before the first has read, what follows from the headers of pictures. */
size_t ty_dataset_work_bytes(const ty_dataset *ds);
/* For formats: a thread has come to so much. work NULL: nobody asks. */
static inline void ty_work_raise(_Atomic size_t *work, size_t bytes)
{
    size_t most = work ? atomic_load_explicit(work, memory_order_relaxed) : bytes;
    while (bytes > most &&
           !atomic_compare_exchange_weak_explicit(work, &most, bytes, memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* Where a sample's field stands, for messages: file and line, or file and row. Returns out. */
const char *ty_dataset_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n);

/* Refuses (TY_E_DATA_VALUE, with file and row) an integer field with a value outside [min, max]; `what` says what the
 * field is used for: "label", "id of an embedding with 1000 rows". */
int ty_dataset_check_range(const ty_dataset *ds, int field, int64_t min, int64_t max, const char *what, ty_error *err);

/* "1,797 samples, 1 file, 483 KB csv" for a banner. Returns out. */
const char *ty_dataset_summary(const ty_dataset *ds, char *out, size_t n);

#endif
