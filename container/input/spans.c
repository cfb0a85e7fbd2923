/* spans.c - see spans.h. */
#include "container/input/spans.h"

#include "base/crew.h"
#include "base/hash.h"

#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SPAN_BYTES = 1 << 20, SPAN_ROWS = 1 << 14, SPANS_MOST = 1 << 14 };

typedef struct spans_run {
    const records_spans *s;
    records_span *span;
    int n;
    records_file *file; /* that s->frames are of */
} spans_run;

/* ---- where spans begin ---- */

/* Behind the first line end from `at` - 1 on. */
static size_t span_line_from(const ty_bytes *b, size_t at)
{
    const uint8_t *end = at < b->n ? memchr(b->data + at - 1, '\n', b->n - at + 1) : NULL;
    return end ? (size_t)(end - b->data) + 1 : b->n;
}

static bool span_is_tfrecord(const uint8_t *p, size_t left)
{
    uint64_t n;
    uint32_t crc;
    if (left < 16)
        return false;
    memcpy(&n, p, sizeof n);
    memcpy(&crc, p + 8, sizeof crc);
    n = le64toh(n);
    return n <= TY_FRAME_MAX_BYTES && n <= left - 16 && ty_crc32c_mask(ty_crc32c(0, p, 8)) == le32toh(crc);
}

static bool span_is_recordio(const uint8_t *p, size_t left)
{
    static const uint8_t magic[4] = {0x0a, 0x23, 0xd7, 0xce};
    return left >= 8 && memcmp(p, magic, 4) == 0 && p[7] >> 5 <= 1; /* a whole one, or its first part */
}

/* Where a record seems to begin, from `at` on; `to`: nowhere before. */
static size_t span_frame_from(const ty_bytes *b, ty_framing how, size_t at, size_t to)
{
    bool is_tfrecord = how == TY_FRAMES_TFRECORD;
    if (how == TY_FRAMES_ROWS)
        return at;
    size_t step = is_tfrecord ? 1 : 4;
    for (at = (at + step - 1) / step * step; at < to; at += step)
        if (is_tfrecord ? span_is_tfrecord(b->data + at, b->n - at) : span_is_recordio(b->data + at, b->n - at))
            return at;
    return to;
}

bool records_span_begin(records_span *span, ty_frames *frames)
{
    const ty_bytes *b = &span->file->bytes;
    bool is_lines = ty_frames_are_lines(frames->how);
    if (span->from > 0 && !is_lines)
        span->from = span_frame_from(b, frames->how, span->from, span->to);
    frames->bytes = b->data;
    frames->n = is_lines ? span->to : b->n;
    frames->at = span->from;
    return span->from < span->to;
}

int records_span_next(const records_span *span, ty_frames *frames, ty_frame *out)
{
    return frames->at < span->to ? records_next(span->all->impl->kind, frames, out, NULL) : 0;
}

bool records_span_end(records_span *span, const ty_frames *frames, bool is_clean)
{
    span->end = frames->at;
    span->n_numbers = frames->record;
    return is_clean;
}

static size_t spans_total(const records_impl *impl)
{
    size_t total = 0;
    for (int i = 0; i < impl->n_files; i++)
        total += impl->file[i].bytes.n;
    return total;
}

static int spans_cut(spans_run *run, ty_error *err)
{
    const records_impl *impl = run->s->impl;
    size_t total = spans_total(impl), fair = total / SPANS_MOST + 1;
    size_t usual = impl->kind->framing == TY_FRAMES_ROWS ? SPAN_ROWS : SPAN_BYTES;
    size_t each = run->s->bytes ? run->s->bytes : fair > usual ? fair : usual;
    if (total / each + (size_t)impl->n_files >= INT_MAX)
        return ty_error_set(err, TY_E_LIMIT, "%zu bytes in spans of %zu are too many", total, each);
    run->span = calloc(total / each + (size_t)impl->n_files + 1, sizeof *run->span);
    if (!run->span)
        return ty_error_set(err, TY_E_LIMIT, "no memory to look at %d files", impl->n_files);
    for (int i = 0; i < impl->n_files; i++) {
        const ty_bytes *b = &impl->file[i].bytes;
        for (size_t from = 0, to; from < b->n; from = to) {
            to = b->n - from > each ? from + each : b->n;
            if (ty_frames_are_lines(impl->kind->framing) && to < b->n)
                to = span_line_from(b, to);
            run->span[run->n++] = (records_span){.all = run->s, .file = &impl->file[i], .from = from, .to = to};
        }
    }
    return 0;
}

/* ---- ahead, and in order ---- */

static void span_job(const ty_job *job)
{
    records_span *span = job->to;
    span->is_clean = span->all->ahead(span);
}

static void span_fini(records_span *span)
{
    if (span->all->fini)
        span->all->fini(span);
    else
        free(span->found);
    span->found = NULL;
    span->is_clean = false;
}

static int span_redo(spans_run *run, records_span *span, ty_error *err)
{
    ty_frames *f = run->s->frames;
    f->n = ty_frames_are_lines(f->how) ? span->to : span->file->bytes.n;
    return run->s->redo(run->s, span->file, span->to, err);
}

static int span_take(spans_run *run, records_span *span, ty_error *err)
{
    ty_frames *f = run->s->frames;
    if (run->file != span->file) {
        run->file = span->file;
        f->bytes = span->file->bytes.data;
        f->at = 0;
        f->record = 0;
    }
    bool is_redone = !span->is_clean || span->from != f->at;
    if (f->at >= span->to) /* the record before reaches over it */
        return 0;
    if (is_redone)
        return span_redo(run, span, err);
    span->first = f->record;
    f->at = span->end;
    f->record += span->n_numbers;
    return run->s->take(span, err);
}

static ty_crew *spans_start(spans_run *run, int from, ty_error *err)
{
    const records_spans *s = run->s;
    int n = run->n - from;
    ty_job *jobs = calloc((size_t)n, sizeof *jobs);
    for (int i = 0; jobs && i < n; i++)
        jobs[i] = (ty_job){.run = span_job, .to = &run->span[from + i]};
    if (s->begin)
        s->begin(s);
    ty_crew *crew = jobs ? ty_crew_start(jobs, n, s->n_threads - 1) : NULL;
    free(jobs);
    if (!crew)
        ty_error_set(err, TY_E_LIMIT, "no memory to look at %d pieces of files", n);
    return crew;
}

/* With threads ahead, from span *at on, until all are taken or the caller knows more than they do. */
static int spans_take_ahead(spans_run *run, int *at, ty_error *err)
{
    const records_spans *s = run->s;
    int first = *at, rc = 0, known = s->known ? s->known(s) : 0;
    ty_crew *crew = spans_start(run, first, err);
    if (!crew)
        return -1;
    while (rc == 0 && *at < run->n && (!s->known || s->known(s) == known)) {
        ty_crew_help(crew, *at - first, *at - first + 1);
        rc = span_take(run, &run->span[*at], err);
        span_fini(&run->span[(*at)++]);
    }
    ty_crew_drop(crew);
    for (int i = *at; i < run->n; i++)
        span_fini(&run->span[i]);
    return rc;
}

int records_spans_run(const records_spans *s, ty_error *err)
{
    spans_run run = {.s = s};
    int at = 0, rc = spans_cut(&run, err);
    while (rc == 0 && at < run.n) { /* the first one teaches what threads have to know */
        rc = span_take(&run, &run.span[at++], err);
        if (rc == 0 && s->n_threads > 1 && at < run.n)
            rc = spans_take_ahead(&run, &at, err);
    }
    free(run.span);
    return rc;
}
