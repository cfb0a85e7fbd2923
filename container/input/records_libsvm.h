/* records_libsvm.h - a line of LibSVM, and what is found out of all lines. Private to records_libsvm*.c. */
#ifndef TY_CONTAINER_INPUT_RECORDS_LIBSVM_H
#define TY_CONTAINER_INPUT_RECORDS_LIBSVM_H

#include "container/input/records_keep.h"

/* What a field is of a line. */
typedef enum libsvm_part {
    LIBSVM_LABEL,
    LIBSVM_WEIGHT,
    LIBSVM_QID,
    LIBSVM_FEATURES,
    LIBSVM_IDS,
    LIBSVM_VALUES,
    LIBSVM_N_PARTS
} libsvm_part;

/* records_libsvm_line.c */

typedef struct libsvm_line {
    const char *p, *end; /* what is left of it, without its comment */
    const char *ahead;   /* what may be looked at: the end of the bytes that it lies in */
    double label, weight;
    int64_t qid;
    bool has_qid, lenient;
} libsvm_line;

/* Label, weight and qid; l stands at the first entry then. `ahead` is where the bytes that the text lies in end, or the
 * text's own end. */
int libsvm_begin(libsvm_line *l, const char *text, size_t n, const char *ahead, bool lenient, ty_error *err);
/* The next entry: 1, 0 at the end of the line, -1. */
int libsvm_next(libsvm_line *l, int64_t *index, double *value, ty_error *err);
/* The line is a comment. */
bool libsvm_is_none(const ty_frame *record);

/* records_libsvm_look.c: base, width, counts. */

typedef struct libsvm_facts {
    int64_t min, max;             /* indexes; min > max: none was seen */
    int64_t fewest, most;         /* entries of a line */
    const records_file *max_file; /* where the largest is */
    ty_frame max_at;
    int64_t unsorted; /* number of the first line whose indexes do not rise; -1: none */
    bool lenient, as_is;
    int64_t *sorted; /* room for the indexes of one line */
    int64_t room;
} libsvm_facts;

libsvm_facts libsvm_no_facts(const records_impl *impl);
/* Where the bytes end that the record lies in; file may be NULL. */
const char *libsvm_ahead(const records_file *file, const ty_frame *record);
/* Takes a line into account; f->sorted is the caller's to free. */
int libsvm_look_at_line(libsvm_facts *f, const records_file *file, const ty_frame *record, ty_error *err);
/* Some field is this part. */
bool libsvm_reads(const records_impl *impl, libsvm_part part);

/* Of records_kind. */
int libsvm_prepare(ty_dataset *ds, const ty_data_source *src, ty_error *err);
int libsvm_begin_stream(records_impl *impl, ty_index_base base, const ty_index_kept *kept, ty_error *err);
int libsvm_learn(records_impl *impl, const ty_frame *record, ty_error *err);
int libsvm_learnt(records_impl *impl, const ty_agree *agree, ty_error *err);

#endif
