/* records_libsvm.c - lines of LibSVM and SVMlight: label[:weight] [qid:N] index:value ... # comment
 *
 * Source: the README of libsvm. Fields are parts of a line: "label", "weight" (1 where a line has none), "qid",
 * "features" (a dense row, zeros between the entries), and "ids" and "values": the entries as they stand where all
 * lines have as many, those of max_length in the order of their indexes. Whether the first index is 0 or 1, and how
 * wide a dense row is, is decided once, from all of the data: guessing block by block has bitten many. Data that are
 * opened like others take it over.
 */
#include "base/log.h"
#include "container/input/number.h"
#include "container/input/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum libsvm_part {
    LIBSVM_LABEL,
    LIBSVM_WEIGHT,
    LIBSVM_QID,
    LIBSVM_FEATURES,
    LIBSVM_IDS,
    LIBSVM_VALUES,
    LIBSVM_N_PARTS
} libsvm_part;

static const char *const libsvm_names[LIBSVM_N_PARTS] = {"label", "weight", "qid", "features", "ids", "values"};
static const ty_dtype libsvm_dtypes[LIBSVM_N_PARTS] = {TY_F32, TY_F32, TY_I64, TY_F32, TY_I64, TY_F32};

/* ---- a line ---- */

typedef struct libsvm_line {
    const char *p, *end; /* what is left of it, without its comment */
    const char *ahead;   /* what may be looked at: the end of the bytes that it lies in */
    double label, weight;
    int64_t qid;
    bool has_qid, lenient;
} libsvm_line;

static bool libsvm_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void libsvm_skip_blanks(libsvm_line *l)
{
    while (l->p < l->end && libsvm_is_blank(*l->p))
        l->p++;
}

static int libsvm_refuse(const libsvm_line *l, const char *expected, ty_error *err)
{
    size_t n = 0;
    while (l->p + n < l->end && n < 30 && !libsvm_is_blank(l->p[n]))
        n++;
    return ty_error_set(err, TY_E_DATA_VALUE, "expected %s, found \"%.*s\"", expected, (int)n, l->p);
}

/* A word ends here. */
static bool libsvm_ends(const libsvm_line *l)
{
    return l->p == l->end || libsvm_is_blank(*l->p);
}

static const char *libsvm_number(libsvm_line *l, double *out)
{
    if (l->end - l->p > 1 && (unsigned char)(l->p[0] - '0') < 10 && libsvm_is_blank(l->p[1])) { /* 1, mostly */
        *out = l->p[0] - '0';
        return ++l->p;
    }
    const char *after = ty_number_plain(l->p, l->ahead, out);
    if (!after || after > l->end)
        after = ty_number_scan(l->p, l->end, out);
    if (after)
        l->p = after;
    return after;
}

/* Label, weight and qid; l stands at the first entry then. `ahead` is where the bytes that the text lies in end, or the
 * text's own end. */
static int libsvm_begin(libsvm_line *l, const char *text, size_t n, const char *ahead, bool lenient, ty_error *err)
{
    const char *comment = memchr(text, '#', n);
    *l = (libsvm_line){.p = text, .end = comment ? comment : text + n, .weight = 1, .lenient = lenient};
    l->ahead = ahead;
    libsvm_skip_blanks(l);
    if (!libsvm_number(l, &l->label))
        return libsvm_refuse(l, "a label", err);
    if (l->p < l->end && *l->p == ':') {
        l->p++;
        if (!libsvm_number(l, &l->weight))
            return libsvm_refuse(l, "a weight behind the label", err);
    }
    if (!libsvm_ends(l))
        return libsvm_refuse(l, "a blank behind the label", err);
    libsvm_skip_blanks(l);
    if (l->end - l->p < 4 || memcmp(l->p, "qid:", 4) != 0)
        return 0;
    l->p += 4;
    const char *after = ty_integer_scan(l->p, l->end, &l->qid);
    if (!after)
        return libsvm_refuse(l, "a whole number behind qid:", err);
    l->p = after;
    l->has_qid = true;
    if (!libsvm_ends(l))
        return libsvm_refuse(l, "a blank behind the qid", err);
    libsvm_skip_blanks(l);
    return 0;
}

/* The next entry: 1, 0 at the end of the line, -1. */
static int libsvm_next(libsvm_line *l, int64_t *index, double *value, ty_error *err)
{
    if (l->p == l->end)
        return 0;
    const char *start = l->p, *after = ty_integer_plain(l->p, l->ahead, index);
    if (!after || after > l->end)
        after = ty_integer_scan(l->p, l->end, index);
    if (!after || *index < 0 || *start == '+')
        return libsvm_refuse(l, "an index, a whole number from 0 on", err);
    l->p = after;
    if (l->lenient && libsvm_ends(l)) {
        *value = 1;
        libsvm_skip_blanks(l);
        return 1;
    }
    if (l->p == l->end || *l->p != ':') {
        l->p = start;
        libsvm_refuse(l, "index:value", err);
        return ty_error_help(err, "an index alone means the value 1 to some programs: write it out, as 7:1, or say "
                                  "strict: false");
    }
    l->p++;
    if (!libsvm_number(l, value))
        return libsvm_refuse(l, "a value behind the index", err);
    if (!libsvm_ends(l))
        return libsvm_refuse(l, "a blank behind the value", err);
    libsvm_skip_blanks(l);
    return 1;
}

static bool libsvm_is_none(const ty_frame *record)
{
    const char *p = (const char *)record->data, *end = p + record->n;
    while (p < end && libsvm_is_blank(*p))
        p++;
    return p == end || *p == '#';
}

/* ---- before the walk: base, width, counts ---- */

typedef struct libsvm_facts {
    int64_t min, max;             /* indexes; min > max: none was seen */
    int64_t fewest, most;         /* entries of a line */
    const records_file *max_file; /* where the largest is */
    ty_frame max_at;
    bool lenient, as_is, is_unsorted;
    int64_t *sorted; /* room for the indexes of one line */
    int64_t room;
} libsvm_facts;

static int libsvm_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* How many different ones there are, of n in whichever order. Two of one index are refused, unless lenient. */
static int libsvm_count_different(libsvm_facts *f, int64_t n, int64_t *out, ty_error *err)
{
    qsort(f->sorted, (size_t)n, sizeof *f->sorted, libsvm_compare);
    *out = n > 0;
    for (int64_t i = 1; i < n; i++) {
        bool is_same = f->sorted[i] == f->sorted[i - 1];
        *out += !is_same;
        if (!is_same || f->lenient)
            continue;
        ty_error_set(err, TY_E_DATA_VALUE, "the index %lld stands twice", (long long)f->sorted[i]);
        return ty_error_help(err, "strict: false takes the last of them");
    }
    return 0;
}

static int libsvm_keep(libsvm_facts *f, int64_t n, int64_t index, ty_error *err)
{
    if (n == f->room) {
        int64_t room = f->room ? 2 * f->room : 256;
        int64_t *grown = realloc(f->sorted, (size_t)room * sizeof *grown);
        if (!grown)
            return ty_error_set(err, TY_E_LIMIT, "no memory for %lld entries of a line", (long long)room);
        f->sorted = grown;
        f->room = room;
    }
    f->sorted[n] = index;
    return 0;
}

/* Where the bytes of the file end that the record is of. */
static const char *libsvm_ahead(const records_file *file, const ty_frame *record)
{
    return file ? (const char *)file->bytes.data + file->bytes.n : (const char *)record->data + record->n;
}

static int libsvm_look_at_line(libsvm_facts *f, const records_file *file, const ty_frame *record, ty_error *err)
{
    libsvm_line l;
    int64_t index, n = 0, last = -1;
    double value;
    bool rising = true;
    int more;
    if (libsvm_begin(&l, (const char *)record->data, record->n, libsvm_ahead(file, record), f->lenient, err) < 0)
        return -1;
    for (; (more = libsvm_next(&l, &index, &value, err)) == 1; n++) {
        if (libsvm_keep(f, n, index, err) < 0)
            return -1;
        rising = rising && index > last;
        last = index;
        f->min = index < f->min ? index : f->min;
        if (index > f->max) {
            f->max = index;
            f->max_file = file;
            f->max_at = *record;
        }
    }
    rising = rising || f->as_is;
    if (more < 0 || (!rising && libsvm_count_different(f, n, &n, err) < 0))
        return -1;
    if (!rising && !f->is_unsorted && file)
        ty_log_warning("data", "%s:%lld: indexes that do not rise: such lines are sorted (said once)", file->file->path,
                       (long long)record->record + 1);
    f->is_unsorted = f->is_unsorted || !rising;
    f->fewest = n < f->fewest ? n : f->fewest;
    f->most = n > f->most ? n : f->most;
    return 0;
}

/* The same; a bad line that is left out counts for nothing. */
static int libsvm_take_line(ty_dataset *ds, libsvm_facts *f, records_file *file, const ty_frame *record, ty_error *err)
{
    libsvm_facts before = *f;
    if (libsvm_look_at_line(f, file, record, err) == 0)
        return 0;
    before.sorted = f->sorted;
    before.room = f->room;
    *f = before;
    records_at(file, TY_FRAMES_LINES, record, err);
    if (ty_bad_leave_out(&ds->bad, err) < 0)
        return -1;
    return records_note(&file->bad, &file->n_bad, &file->bad_room, record->at, err);
}

static int libsvm_look_at_all(ty_dataset *ds, libsvm_facts *f, ty_error *err)
{
    records_impl *impl = ds->impl;
    for (int i = 0; i < impl->n_files; i++) {
        records_file *file = &impl->file[i];
        ty_frames frames = {.bytes = file->bytes.data, .n = file->bytes.n, .how = TY_FRAMES_LINES};
        ty_frame record;
        int more;
        while ((more = records_next(&records_libsvm, &frames, &record, err)) == 1)
            if (libsvm_take_line(ds, f, file, &record, err) < 0)
                return -1;
        if (more < 0)
            return ty_error_at(err, "%s", file->file->path);
    }
    return 0;
}

/* The width that the recipe declares for "features"; 0: none. */
static int64_t libsvm_declared_width(const records_impl *impl)
{
    for (int i = 0; i < impl->n_fields; i++) {
        const ty_field *d = &impl->field[i].declared;
        int64_t width = 1;
        if (strcmp(impl->names[i], libsvm_names[LIBSVM_FEATURES]) != 0 || !d->shape_given)
            continue;
        for (int k = 0; k < d->rank; k++)
            width *= d->dim[k];
        return width;
    }
    return 0;
}

/* What was decided for the data that these are opened like, or is declared, or follows from all lines. */
static void libsvm_decide(records_impl *impl, const ty_data_source *src, const libsvm_facts *f)
{
    const ty_index_kept *kept = src->like && src->like->index.given ? &src->like->index : &src->index;
    bool has_any = f->min <= f->max;
    impl->index_base = kept->given                             ? kept->base
                       : src->index_base == TY_INDEX_BASE_ZERO ? 0
                       : src->index_base == TY_INDEX_BASE_ONE  ? 1
                                                               : !has_any || f->min > 0;
    int64_t declared = libsvm_declared_width(impl);
    impl->width = declared ? declared : kept->given ? kept->width : has_any ? f->max - impl->index_base + 1 : 0;
    impl->count = f->fewest == f->most ? f->most : -1;
}

static bool libsvm_reads(const records_impl *impl, libsvm_part part)
{
    for (int i = 0; i < impl->n_fields; i++)
        if (impl->field[i].part == (int)part)
            return true;
    return false;
}

/* Entries are read, and no row that has a place for each index. */
static bool libsvm_reads_pairs(const records_impl *impl)
{
    return !libsvm_reads(impl, LIBSVM_FEATURES) &&
           (libsvm_reads(impl, LIBSVM_IDS) || libsvm_reads(impl, LIBSVM_VALUES));
}

static int libsvm_check_width(const records_impl *impl, const libsvm_facts *f, ty_error *err)
{
    if (f->min > f->max || !libsvm_reads(impl, LIBSVM_FEATURES))
        return 0;
    if (f->min < impl->index_base) {
        ty_error_set(err, TY_E_DATA_VALUE, "the index 0 stands in the data, but indexes begin at 1");
        return ty_error_help(err, "say index_base: zero for all of the data");
    }
    if (f->max - impl->index_base < impl->width && impl->width <= RECORDS_MAX_ELEMS)
        return 0;
    ty_error_set(err, TY_E_DATA_VALUE, "the index %lld is beyond a row of %lld numbers, whose indexes begin at %lld",
                 (long long)f->max, (long long)impl->width, (long long)impl->index_base);
    ty_error_help(err, "the width is that of the training data; declare more with shape: [N] of the field");
    return records_at(f->max_file, TY_FRAMES_LINES, &f->max_at, err);
}

static int libsvm_check_names(records_impl *impl, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++) {
        int part = 0;
        while (part < LIBSVM_N_PARTS && strcmp(impl->names[i], libsvm_names[part]) != 0)
            part++;
        impl->field[i].part = part;
        if (part < LIBSVM_N_PARTS)
            continue;
        ty_error_set(err, TY_E_CONFIG, "field \"%s\": lines have no \"%s\"", impl->field[i].declared.name,
                     impl->names[i]);
        return ty_error_help(err, "they have label, weight, qid, features, ids and values: say which with member:");
    }
    return 0;
}

/* Words of a line behind its label that are no qid. */
static int64_t libsvm_count_words(const char *p, size_t n)
{
    const char *comment = memchr(p, '#', n), *end = comment ? comment : p + n;
    int64_t words = -1;
    while (p < end) {
        while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        words += p < end && !(end - p > 4 && memcmp(p, "qid:", 4) == 0);
        while (p < end && *p != ' ' && *p != '\t')
            p++;
    }
    return words;
}

/* Whether all lines have as many entries: then pairs are fields in their order, as those of clicks are, and mean
 * nothing by being repeated or falling. */
static bool libsvm_is_as_is(const records_impl *impl)
{
    int64_t count = -1;
    for (int i = 0; i < impl->n_files; i++) {
        const records_file *file = &impl->file[i];
        ty_frames frames = {.bytes = file->bytes.data, .n = file->bytes.n, .how = TY_FRAMES_LINES};
        ty_frame record;
        while (records_next(&records_libsvm, &frames, &record, NULL) == 1) {
            int64_t n = libsvm_count_words((const char *)record.data, record.n);
            if (count >= 0 && n != count)
                return false;
            count = n;
        }
    }
    return true;
}

static int libsvm_prepare(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    libsvm_facts f = {.min = INT64_MAX, .max = -1, .fewest = INT64_MAX, .most = -1, .lenient = src->lenient};
    impl->lenient = src->lenient;
    if (libsvm_check_names(impl, err) < 0)
        return -1;
    impl->as_is = f.as_is = libsvm_reads_pairs(impl) && libsvm_is_as_is(impl);
    int rc = libsvm_look_at_all(ds, &f, err);
    free(f.sorted);
    if (rc < 0)
        return -1;
    libsvm_decide(impl, src, &f);
    ds->index = (ty_index_kept){true, impl->index_base, impl->width};
    return libsvm_check_width(impl, &f, err);
}

/* Lines differ in length: a field says how many entries it takes of them. */
static bool libsvm_has_any_length(const records_impl *impl)
{
    for (int i = 0; i < impl->n_fields; i++)
        if (impl->field[i].declared.max_length > 0)
            return true;
    return false;
}

/* Nothing follows from lines that have not been seen: what is wanted of a stream is declared, kept from other data, or
 * asks for a look at all lines. */
static int libsvm_begin_stream(records_impl *impl, ty_index_base base, const ty_index_kept *kept, ty_error *err)
{
    if (libsvm_check_names(impl, err) < 0)
        return -1;
    impl->index_base = kept->given ? kept->base : base == TY_INDEX_BASE_AUTO ? -1 : base != TY_INDEX_BASE_ZERO;
    impl->width = libsvm_declared_width(impl);
    impl->width = impl->width == 0 && kept->given ? kept->width : impl->width;
    impl->count = -1;
    impl->as_is = libsvm_reads_pairs(impl) && !libsvm_has_any_length(impl);
    impl->has_to_look = libsvm_reads(impl, LIBSVM_FEATURES) && (impl->index_base < 0 || impl->width == 0);
    impl->least = INT64_MAX;
    impl->most = -1;
    if (!impl->has_to_look && impl->index_base < 0)
        impl->index_base = 1;
    return 0;
}

static int libsvm_learn(records_impl *impl, const ty_frame *record, ty_error *err)
{
    libsvm_facts f = {.min = impl->least, .max = impl->most, .fewest = INT64_MAX, .most = -1, .lenient = impl->lenient};
    int rc = libsvm_look_at_line(&f, NULL, record, err);
    free(f.sorted);
    if (rc == 0) {
        impl->least = f.min;
        impl->most = f.max;
    }
    return rc;
}

static int libsvm_learnt(records_impl *impl, ty_error *err)
{
    bool has_any = impl->least <= impl->most;
    if (impl->index_base < 0)
        impl->index_base = !has_any || impl->least > 0;
    if (impl->width == 0 && has_any)
        impl->width = impl->most - impl->index_base + 1;
    impl->has_to_look = false;
    if (impl->width <= RECORDS_MAX_ELEMS)
        return 0;
    return ty_error_set(err, TY_E_DATA_VALUE, "rows of %lld numbers, as the largest index says, are too wide",
                        (long long)impl->width);
}

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
    libsvm_facts f = {.min = INT64_MAX, .max = -1, .fewest = INT64_MAX, .most = -1, .lenient = impl->lenient};
    int rc = libsvm_look_at_line(&f, NULL, record, err);
    free(f.sorted);
    return rc;
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
                                 : part == LIBSVM_FEATURES ? look->impl->width
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

static int64_t libsvm_dense(const records_look *look)
{
    const records_entries *line = &look->line;
    float *out = look->stored;
    int64_t base = look->impl->index_base;
    memset(out, 0, (size_t)look->impl->width * sizeof *out);
    for (int64_t i = 0; i < line->n; i++)
        out[line->index[i] - base] = line->value[i];
    return look->impl->width;
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
        return libsvm_dense(look);
    case LIBSVM_IDS:
        libsvm_copy(look->stored, line->index, some * sizeof *line->index);
        return line->n;
    default:
        libsvm_copy(look->stored, line->value, some * sizeof *line->value);
        return line->n;
    }
}

const records_kind records_libsvm = {.framing = TY_FRAMES_LINES,
                                     .prepare = libsvm_prepare,
                                     .begin_stream = libsvm_begin_stream,
                                     .learn = libsvm_learn,
                                     .learnt = libsvm_learnt,
                                     .is_none = libsvm_is_none,
                                     .find = libsvm_find,
                                     .count = libsvm_count,
                                     .decode = libsvm_decode,
                                     .occurring = libsvm_occurring};
