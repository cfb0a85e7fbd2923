/* records_libsvm_look.c - what follows from all lines: base, width, whether all have as many entries. Streams, of which
 * nothing has been seen, find it out in a pass of their own.
 */
#include "container/input/records_libsvm.h"
#include "container/input/spans.h"

#include <stdlib.h>
#include <string.h>

static const char *const libsvm_names[LIBSVM_N_PARTS] = {"label", "weight", "qid", "features", "ids", "values"};

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

const char *libsvm_ahead(const records_file *file, const ty_frame *record)
{
    return file ? (const char *)file->bytes.data + file->bytes.n : (const char *)record->data + record->n;
}

int libsvm_look_at_line(libsvm_facts *f, const records_file *file, const ty_frame *record, ty_error *err)
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
    if (!rising && f->unsorted < 0)
        f->unsorted = record->record;
    f->fewest = n < f->fewest ? n : f->fewest;
    f->most = n > f->most ? n : f->most;
    return 0;
}

libsvm_facts libsvm_no_facts(const records_impl *impl)
{
    return (libsvm_facts){.min = INT64_MAX,
                          .max = -1,
                          .fewest = INT64_MAX,
                          .most = -1,
                          .unsorted = -1,
                          .lenient = impl->lenient,
                          .as_is = impl->as_is};
}

static void libsvm_say_unsorted(const ty_dataset *ds, const libsvm_facts *f, const records_file *file)
{
    ty_bad_tell(ds->bad.told, "%s:%lld: indexes that do not rise: such lines are sorted (said once)", file->file->path,
                (long long)f->unsorted + 1);
}

/* The same; a bad line that is left out counts for nothing. */
static int libsvm_take_line(ty_dataset *ds, libsvm_facts *f, records_file *file, const ty_frame *record, ty_error *err)
{
    libsvm_facts before = *f;
    if (libsvm_look_at_line(f, file, record, err) == 0) {
        if (before.unsorted < 0 && f->unsorted >= 0)
            libsvm_say_unsorted(ds, f, file);
        return 0;
    }
    before.sorted = f->sorted;
    before.room = f->room;
    *f = before;
    records_at(file, TY_FRAMES_LINES, record, err);
    if (ty_bad_leave_out(&ds->bad, err) < 0)
        return -1;
    return records_note(&file->bad, &file->n_bad, &file->bad_room, record->at, err);
}

/* All lines, in order or ahead (spans.h). */
typedef struct libsvm_walk {
    ty_dataset *ds;
    ty_frames frames;
    libsvm_facts *facts;
} libsvm_walk;

static int libsvm_walk_redo(const records_spans *s, records_file *file, size_t to, ty_error *err)
{
    libsvm_walk *w = s->ctx;
    ty_frame record;
    int more = 0;
    while (w->frames.at < to && (more = records_next(&records_libsvm, &w->frames, &record, err)) == 1)
        if (libsvm_take_line(w->ds, w->facts, file, &record, err) < 0)
            return -1;
    return more < 0 ? ty_error_at(err, "%s", file->file->path) : 0;
}

static bool libsvm_walk_ahead(records_span *span)
{
    libsvm_facts *f = span->found = malloc(sizeof *f);
    ty_frames frames = {.how = TY_FRAMES_LINES};
    ty_frame record;
    if (!f)
        return false;
    *f = libsvm_no_facts(span->all->impl);
    bool is_clean = records_span_begin(span, &frames);
    int more;
    while (is_clean && (more = records_span_next(span, &frames, &record)) != 0)
        is_clean = more == 1 && libsvm_look_at_line(f, span->file, &record, NULL) == 0;
    free(f->sorted);
    f->sorted = NULL;
    return records_span_end(span, &frames, is_clean);
}

static int libsvm_walk_take(records_span *span, ty_error *err)
{
    const libsvm_walk *w = span->all->ctx;
    libsvm_facts *all = w->facts;
    const libsvm_facts *f = span->found;
    (void)err;
    if (f->max > all->max) {
        all->max = f->max;
        all->max_file = f->max_file;
        all->max_at = f->max_at;
        all->max_at.record += span->first;
    }
    if (all->unsorted < 0 && f->unsorted >= 0) {
        all->unsorted = span->first + f->unsorted;
        libsvm_say_unsorted(w->ds, all, span->file);
    }
    all->min = f->min < all->min ? f->min : all->min;
    all->fewest = f->fewest < all->fewest ? f->fewest : all->fewest;
    all->most = f->most > all->most ? f->most : all->most;
    return 0;
}

static int libsvm_look_at_all(ty_dataset *ds, const ty_data_source *src, libsvm_facts *f, ty_error *err)
{
    libsvm_walk w = {.ds = ds, .frames.how = TY_FRAMES_LINES, .facts = f};
    return records_spans_run(&(records_spans){.impl = ds->impl,
                                              .frames = &w.frames,
                                              .n_threads = records_threads(src),
                                              .bytes = src->span_bytes,
                                              .ctx = &w,
                                              .ahead = libsvm_walk_ahead,
                                              .take = libsvm_walk_take,
                                              .redo = libsvm_walk_redo},
                             err);
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

bool libsvm_reads(const records_impl *impl, libsvm_part part)
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

/* The smallest and the largest of a number that all parts of the data have. */
static int libsvm_agree(const ty_agree *agree, const char *what, int64_t *least, int64_t *most, ty_error *err)
{
    return ty_agree_numbers(agree, what, TY_AGREE_LEAST, least, 1, err) < 0 ||
                   ty_agree_numbers(agree, what, TY_AGREE_MOST, most, 1, err) < 0
               ? -1
               : 0;
}

static const ty_index_kept *libsvm_kept(const ty_data_source *src)
{
    return src->like && src->like->index.given ? &src->like->index : &src->index;
}

/* Facts of all parts of the data, as far as they decide anything: the same for all who ask. */
static int libsvm_take_all(const records_impl *impl, const ty_data_source *src, const libsvm_facts *mine,
                           libsvm_facts *all, ty_error *err)
{
    bool is_told = src->index_base != TY_INDEX_BASE_AUTO && libsvm_declared_width(impl) > 0;
    *all = *mine;
    if (src->like)
        return 0;
    if (libsvm_reads(impl, LIBSVM_FEATURES) && !is_told && !libsvm_kept(src)->given &&
        libsvm_agree(&src->agree, "LibSVM's indexes", &all->min, &all->max, err) < 0)
        return -1;
    if (!libsvm_reads_pairs(impl))
        return 0;
    return libsvm_agree(&src->agree, "entries of LibSVM's lines", &all->fewest, &all->most, err);
}

/* What was decided for the data that these are opened like, or is declared, or follows from all lines. */
static void libsvm_decide(records_impl *impl, const ty_data_source *src, const libsvm_facts *f)
{
    const ty_index_kept *kept = libsvm_kept(src);
    bool has_any = f->min <= f->max;
    impl->index_base = kept->given                             ? kept->base
                       : src->index_base == TY_INDEX_BASE_ZERO ? 0
                       : src->index_base == TY_INDEX_BASE_ONE  ? 1
                                                               : !has_any || f->min > 0;
    int64_t declared = libsvm_declared_width(impl);
    impl->width = declared ? declared : kept->given ? kept->width : has_any ? f->max - impl->index_base + 1 : 0;
    impl->count = f->fewest == f->most ? f->most : -1;
}

/* A dense row has a place for each index, be it used or not. */
static int libsvm_refuse_wide(const records_impl *impl, ty_error *err)
{
    ty_error_set(err, TY_E_LIMIT, "dense rows of %lld numbers, a place for each index, expected at most %lld",
                 (long long)impl->width, (long long)RECORDS_MAX_ELEMS);
    return ty_error_help(err, "in place of \"features\" read the entries as they stand: fields ids and values, each "
                              "with max_length: N; or number the indexes anew");
}

static int libsvm_check_width(const records_impl *impl, const libsvm_facts *f, ty_error *err)
{
    if (f->min > f->max || !libsvm_reads(impl, LIBSVM_FEATURES))
        return 0;
    if (f->min < impl->index_base) {
        ty_error_set(err, TY_E_DATA_VALUE, "the index 0 stands in the data, but indexes begin at 1");
        return ty_error_help(err, "say index_base: zero for all of the data");
    }
    if (impl->width > RECORDS_MAX_ELEMS) {
        libsvm_refuse_wide(impl, err);
        return records_at(f->max_file, TY_FRAMES_LINES, &f->max_at, err);
    }
    if (f->max - impl->index_base < impl->width)
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
typedef struct libsvm_counts {
    ty_frames frames;
    int64_t each; /* -1: no line was seen, -2: they differ */
} libsvm_counts;

static int64_t libsvm_same_count(int64_t a, int64_t b)
{
    return a == -1 || a == b ? b : b == -1 ? a : -2;
}

/* A fault ends the file here, and comes out when lines are looked at. */
static int libsvm_count_redo(const records_spans *s, records_file *file, size_t to, ty_error *err)
{
    libsvm_counts *c = s->ctx;
    ty_frame record;
    (void)file, (void)err;
    while (c->each != -2 && c->frames.at < to && records_next(&records_libsvm, &c->frames, &record, NULL) == 1)
        c->each = libsvm_same_count(c->each, libsvm_count_words((const char *)record.data, record.n));
    return 0;
}

static bool libsvm_count_ahead(records_span *span)
{
    int64_t *each = span->found = malloc(sizeof *each);
    ty_frames frames = {.how = TY_FRAMES_LINES};
    ty_frame record;
    int more = 0;
    if (!each)
        return false;
    *each = -1;
    if (records_span_begin(span, &frames))
        while (*each != -2 && (more = records_span_next(span, &frames, &record)) == 1)
            *each = libsvm_same_count(*each, libsvm_count_words((const char *)record.data, record.n));
    return records_span_end(span, &frames, more >= 0);
}

static int libsvm_count_take(records_span *span, ty_error *err)
{
    libsvm_counts *c = span->all->ctx;
    (void)err;
    c->each = libsvm_same_count(c->each, *(const int64_t *)span->found);
    return 0;
}

static int libsvm_find_as_is(records_impl *impl, const ty_data_source *src, bool *out, ty_error *err)
{
    libsvm_counts c = {.frames.how = TY_FRAMES_LINES, .each = -1};
    int rc = 0;
    if (records_keep_holds(impl))
        c.each = impl->kept->seen.each;
    else
        rc = records_spans_run(&(records_spans){.impl = impl,
                                                .frames = &c.frames,
                                                .n_threads = records_threads(src),
                                                .bytes = src->span_bytes,
                                                .ctx = &c,
                                                .ahead = libsvm_count_ahead,
                                                .take = libsvm_count_take,
                                                .redo = libsvm_count_redo},
                               err);
    impl->seen.each = c.each;
    int64_t fewest = c.each == -1 ? INT64_MAX : c.each, most = c.each; /* that differ: -2 is less than any */
    if (c.each == -2)
        most = INT64_MAX;
    if (rc == 0 && !src->like)
        rc = libsvm_agree(&src->agree, "words of LibSVM's lines", &fewest, &most, err);
    *out = fewest == most || most == -1;
    return rc;
}

/* Of these files alone, before others are heard: what was kept of an earlier look. False: there is none, or none that
 * took lines as this one has to. */
static bool libsvm_take_seen(records_impl *impl, libsvm_facts *f)
{
    const records_seen *s = records_keep_holds(impl) ? &impl->kept->seen : NULL;
    if (s && (s->as_is != impl->as_is || (s->min <= s->max && (s->max_file < 0 || s->max_file >= impl->n_files)))) {
        records_keep_drop(impl);
        s = NULL;
    }
    if (!s)
        return false;
    f->min = s->min;
    f->max = s->max;
    f->fewest = s->fewest;
    f->most = s->most;
    f->max_file = s->min <= s->max ? &impl->file[s->max_file] : NULL;
    f->max_at = (ty_frame){.at = s->max_at, .record = s->max_record};
    return true;
}

static void libsvm_give_seen(records_impl *impl, const libsvm_facts *f)
{
    impl->seen = (records_seen){.each = impl->seen.each,
                                .min = f->min,
                                .max = f->max,
                                .fewest = f->fewest,
                                .most = f->most,
                                .max_file = f->max_file ? f->max_file - impl->file : -1,
                                .max_at = (int64_t)f->max_at.at,
                                .max_record = f->max_at.record,
                                .as_is = impl->as_is};
}

int libsvm_prepare(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    impl->lenient = src->lenient;
    if (libsvm_check_names(impl, err) < 0 ||
        (libsvm_reads_pairs(impl) && libsvm_find_as_is(impl, src, &impl->as_is, err) < 0))
        return -1;
    libsvm_facts f = libsvm_no_facts(impl), all;
    int rc = libsvm_take_seen(impl, &f) ? 0 : libsvm_look_at_all(ds, src, &f, err);
    free(f.sorted);
    libsvm_give_seen(impl, &f);
    if (rc < 0 || libsvm_take_all(impl, src, &f, &all, err) < 0)
        return -1;
    libsvm_decide(impl, src, &all);
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
int libsvm_begin_stream(records_impl *impl, ty_index_base base, const ty_index_kept *kept, ty_error *err)
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

int libsvm_learn(records_impl *impl, const ty_frame *record, ty_error *err)
{
    libsvm_facts f = libsvm_no_facts(impl);
    f.min = impl->least;
    f.max = impl->most;
    f.as_is = false;
    int rc = libsvm_look_at_line(&f, NULL, record, err);
    free(f.sorted);
    if (rc == 0) {
        impl->least = f.min;
        impl->most = f.max;
    }
    return rc;
}

int libsvm_learnt(records_impl *impl, const ty_agree *agree, ty_error *err)
{
    if (libsvm_agree(agree, "LibSVM's indexes", &impl->least, &impl->most, err) < 0)
        return -1;
    bool has_any = impl->least <= impl->most;
    if (impl->index_base < 0)
        impl->index_base = !has_any || impl->least > 0;
    if (impl->width == 0 && has_any)
        impl->width = impl->most - impl->index_base + 1;
    impl->has_to_look = false;
    return impl->width <= RECORDS_MAX_ELEMS ? 0 : libsvm_refuse_wide(impl, err);
}
