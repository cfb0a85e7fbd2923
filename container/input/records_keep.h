/* records_keep.h - the walk over files of records, kept for the next opening (keep.h). Private to dataset_records.c and
 * records_*.c.
 *
 *     records_keep_find     all files are open: is there what was kept of them?
 *     kind->prepare         what follows from all lines of LibSVM is taken of it
 *     records_keep_take     true: places, types, ranges and what maps have seen are there. False: walk, and then
 *     records_keep_give     keep what was found
 *
 * What is kept is what these files say by themselves, before anything is agreed with those who have others: from there
 * on all goes as behind a walk. Records are checked when they are decoded first.
 */
#ifndef TY_CONTAINER_INPUT_RECORDS_KEEP_H
#define TY_CONTAINER_INPUT_RECORDS_KEEP_H

#include "container/input/keep.h"
#include "container/input/records.h"

#include <stdatomic.h>

typedef struct records_kept {
    bool is_found;     /* there is something, and nothing has spoken against it */
    bool is_young;     /* a file was written so lately that its times may not show it if it is written again */
    bool is_replaced;  /* what is there does not hold */
    records_seen seen; /* is_found: as it was kept */
    const char *path;  /* where it is, or is to be; NULL: nowhere */
    ty_buf key, told;
    ty_keep_file file;
    _Atomic(uint64_t) *checked; /* a bit for each sample: decoded, and found right; NULL: all are */
} records_kept;

/* Does nothing for data of which nothing can be kept, and where nobody wants it. */
void records_keep_find(ty_dataset *ds, const ty_data_source *src);
bool records_keep_take(ty_dataset *ds);
/* Behind a walk; start_ns: when opening began. What cannot be written is told in the log. */
void records_keep_give(ty_dataset *ds, const ty_data_source *src, int64_t start_ns);
/* What was kept does not hold after all. */
void records_keep_drop(records_impl *impl);
void records_keep_fini(records_impl *impl);

static inline bool records_keep_holds(const records_impl *impl)
{
    return impl->kept && impl->kept->is_found;
}

/* Whether the sample was checked by this process: by its walk, or when it was decoded before. */
bool records_keep_is_checked(const records_impl *impl, int64_t sample);
/* It has been, all of its fields. */
void records_keep_note(const records_impl *impl, int64_t sample);
/* A record is not as it was when the index was made: says so, and the next opening looks at all of them. Returns -1. */
int records_keep_refuse(const records_impl *impl, ty_error *err);

/* records_key.c: what decides what a walk finds. False: it does not fit. */
bool records_keep_key(const ty_dataset *ds, const ty_data_source *src, ty_buf *out);

#endif
