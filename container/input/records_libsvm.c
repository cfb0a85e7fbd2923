/* records_libsvm.c - lines of LibSVM and SVMlight: label[:weight] [qid:N] index:value ... # comment
 *
 * Source: the README of libsvm. Fields are parts of a line: "label", "weight" (1 where a line has none), "qid",
 * "features" (a dense row, zeros between the entries), and "ids" and "values": the entries as they stand where all
 * lines have as many, those of max_length in the order of their indexes. Whether the first index is 0 or 1, and how
 * wide a dense row is, is decided once, from all of the data: guessing block by block has bitten many. Data that are
 * opened like others take it over.
 */
#include "container/input/records_libsvm.h"

#include <stdlib.h>
#include <string.h>

static const ty_dtype libsvm_dtypes[LIBSVM_N_PARTS] = {TY_F32, TY_F32, TY_I64, TY_F32, TY_I64, TY_F32};

/* ---- fields ---- */

/* A line that no walk has seen. */
static int libsvm_check_line(const records_impl *impl, const ty_frame *record, ty_error *err)
{
    libsvm_line l;
    int64_t index, last = -1, end = INT64_MAX;
    double value;
    bool rising = true;
    int more;
    if (libsvm_reads(impl, LIBSVM_FEATURES))
        end = impl->width + impl->index_base;
    if (libsvm_begin(&l, (const char *)record->data, record->n, libsvm_ahead(NULL, record), impl->lenient, err) < 0)
        return -1;
    while ((more = libsvm_next(&l, &index, &value, err)) == 1) {
        if (end != INT64_MAX && (index < impl->index_base || index >= end))
            return ty_error_set(err, TY_E_DATA_VALUE, "found the index %lld, expected %lld to %lld", (long long)index,
                                (long long)impl->index_base, (long long)end - 1);
        rising = rising && index > last;
        last = index;
    }
    if (more < 0 || rising || impl->as_is)
        return more;
    libsvm_facts f = libsvm_no_facts(impl);
    int rc = libsvm_look_at_line(&f, NULL, record, err);
    free(f.sorted);
    return rc;
}

/* Numbers of a dense row that field i takes: a row that is cut is not made whole before. */
static int64_t libsvm_row_length(const records_impl *impl, int i)
{
    int64_t most = impl->field[i].declared.max_length;
    return most > 0 && most < impl->width ? most : impl->width;
}

static int libsvm_find(records_look *look, const ty_frame *record, ty_error *err)
{
    if (!look->is_known && libsvm_check_line(look->impl, record, err) < 0)
        return -1;
    look->line.is_read = false;
    for (int i = records_first(look); i < records_end(look); i++) {
        records_cell *c = &look->cell[i];
        int part = look->impl->field[i].part;
        bool is_one = part <= LIBSVM_QID;
        *c = (records_cell){.is_there = true,
                            .dtype = libsvm_dtypes[part],
                            .n = is_one                    ? 1
                                 : part == LIBSVM_FEATURES ? libsvm_row_length(look->impl, i)
                                                           : -1};
        c->u.text.part = part;
        c->u.text.lenient = look->impl->lenient;
        c->u.text.as_is = look->impl->as_is;
        c->u.text.p = (const char *)record->data;
        c->u.text.end = c->u.text.p + record->n;
        if (part == LIBSVM_QID) {
            libsvm_line l;
            c->is_there = libsvm_begin(&l, c->u.text.p, record->n, c->u.text.end, false, NULL) == 0 && l.has_qid;
        }
    }
    return 0;
}

typedef struct libsvm_entry {
    int64_t index, at;
    float value;
} libsvm_entry;

/* By index; of one index as they stand. */
static int libsvm_compare_entries(const void *a, const void *b)
{
    const libsvm_entry *x = a, *y = b;
    return x->index != y->index ? (x->index > y->index) - (x->index < y->index) : (x->at > y->at) - (x->at < y->at);
}

/* Entries whose indexes do not rise are sorted; of a repeated index the last stays. */
static bool libsvm_sort(records_entries *line, bool lenient)
{
    libsvm_entry *e = malloc((size_t)line->n * sizeof *e);
    int64_t n = 0;
    for (int64_t i = 0; e && i < line->n; i++)
        e[i] = (libsvm_entry){line->index[i], i, line->value[i]};
    if (!e)
        return false;
    qsort(e, (size_t)line->n, sizeof *e, libsvm_compare_entries);
    for (int64_t i = 0; i < line->n; i++) {
        bool is_repeated = i + 1 < line->n && e[i + 1].index == e[i].index;
        if (is_repeated && lenient)
            continue;
        if (is_repeated) {
            free(e);
            return false;
        }
        line->index[n] = e[i].index;
        line->value[n++] = e[i].value;
    }
    line->n = n;
    free(e);
    return true;
}

static bool libsvm_grow(records_entries *line)
{
    int64_t room = line->room ? 2 * line->room : 64;
    int64_t *index = realloc(line->index, (size_t)room * sizeof *index);
    line->index = index ? index : line->index;
    float *value = realloc(line->value, (size_t)room * sizeof *value);
    line->value = value ? value : line->value;
    line->room = index && value ? room : line->room;
    return index && value;
}

/* The record's line, for all of its fields. */
static bool libsvm_read(records_look *look, const records_cell *c)
{
    records_entries *line = &look->line;
    const char *p = c->u.text.p, *end = c->u.text.end, *bytes = (const char *)look->frames.bytes;
    bool is_within = bytes && p >= bytes && end <= bytes + look->frames.n;
    libsvm_line l;
    int64_t index, last = -1;
    double value;
    bool rising = true;
    int more;
    if (line->is_read)
        return true;
    if (libsvm_begin(&l, p, (size_t)(end - p), is_within ? bytes + look->frames.n : end, c->u.text.lenient, NULL) < 0)
        return false;
    for (line->n = 0; (more = libsvm_next(&l, &index, &value, NULL)) == 1; line->n++) {
        if (line->n == line->room && !libsvm_grow(line))
            return false;
        rising = rising && index > last;
        last = index;
        line->index[line->n] = index;
        line->value[line->n] = (float)value;
    }
    line->label = (float)l.label;
    line->weight = (float)l.weight;
    line->qid = l.qid;
    line->is_read = more == 0 && (rising || c->u.text.as_is || libsvm_sort(line, c->u.text.lenient));
    return line->is_read;
}

static int64_t libsvm_count(const records_cell *c)
{
    records_impl none = {.lenient = c->u.text.lenient};
    records_look look = {.impl = &none};
    int64_t n = c->n >= 0 ? c->n : libsvm_read(&look, c) ? look.line.n : -1;
    free(look.line.index);
    free(look.line.value);
    return n;
}

/* There may be no entries, and no room for any. */
static void libsvm_copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* The first n numbers of a dense row. */
static int64_t libsvm_dense(const records_look *look, int64_t n)
{
    const records_entries *line = &look->line;
    float *out = look->stored;
    int64_t base = look->impl->index_base;
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < line->n; i++)
        if (line->index[i] - base < n)
            out[line->index[i] - base] = line->value[i];
    return n;
}

/* The entries of a dense row, and a zero for all the others. */
static int64_t libsvm_occurring(records_look *look, const records_cell *c, ty_error *err)
{
    if (c->u.text.part != LIBSVM_FEATURES)
        return -2;
    if (!libsvm_read(look, c))
        return -1;
    int64_t n = look->line.n;
    if (records_room(look, &(records_cell){.n = n}, n + 1, err) < 0)
        return -1;
    libsvm_copy(look->stored, look->line.value, (size_t)n * sizeof *look->line.value);
    ((float *)look->stored)[n] = 0;
    return n + (n < look->impl->width);
}

static int64_t libsvm_decode(records_look *look, const records_cell *c, int64_t max)
{
    const records_entries *line = &look->line;
    if (!libsvm_read(look, c))
        return -1;
    size_t some = (size_t)(line->n < max ? line->n : max);
    switch ((libsvm_part)c->u.text.part) {
    case LIBSVM_LABEL:
        *(float *)look->stored = line->label;
        return 1;
    case LIBSVM_WEIGHT:
        *(float *)look->stored = line->weight;
        return 1;
    case LIBSVM_QID:
        *(int64_t *)look->stored = line->qid;
        return 1;
    case LIBSVM_FEATURES:
        return libsvm_dense(look, c->n);
    case LIBSVM_IDS:
        libsvm_copy(look->stored, line->index, some * sizeof *line->index);
        return line->n;
    default:
        libsvm_copy(look->stored, line->value, some * sizeof *line->value);
        return line->n;
    }
}

const records_kind records_libsvm = {.framing = TY_FRAMES_LINES,
                                     .is_kept = true,
                                     .prepare = libsvm_prepare,
                                     .begin_stream = libsvm_begin_stream,
                                     .learn = libsvm_learn,
                                     .learnt = libsvm_learnt,
                                     .is_none = libsvm_is_none,
                                     .find = libsvm_find,
                                     .count = libsvm_count,
                                     .decode = libsvm_decode,
                                     .occurring = libsvm_occurring};
