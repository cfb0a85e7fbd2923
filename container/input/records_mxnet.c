/* records_mxnet.c - MXNet's records of pictures: a header, labels, the encoded picture.
 *
 * Source: MXNet's im2rec and recordio.py. Header: uint32 flag, float32 label, uint64 id, uint64 id2; flag k > 0: k
 * float32 labels stand behind it in place of the one in it. Little-endian. An .idx file beside is not needed.
 */
#include "container/input/records.h"
#include "container/input/spans.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MXNET_HEADER = 24 };

static int mxnet_parse(const ty_frame *record, records_cell *label, records_cell *image, ty_error *err)
{
    uint32_t flag;
    if (record->n < MXNET_HEADER)
        return ty_error_set(err, TY_E_DATA_VALUE, "MXNet's header takes %d bytes, found %zu", MXNET_HEADER, record->n);
    memcpy(&flag, record->data, sizeof flag);
    size_t n_labels = le32toh(flag), room = (record->n - MXNET_HEADER) / 4;
    if (n_labels > room) {
        ty_error_set(err, TY_E_DATA_VALUE, "its header says %zu labels, but there is room for %zu", n_labels, room);
        return ty_error_help(err, "the records are not MXNet's, if all of them say so: give format:");
    }
    *label = (records_cell){.is_there = true, .dtype = TY_F32, .n = n_labels ? (int64_t)n_labels : 1};
    label->u.mxnet.p = record->data + (n_labels ? MXNET_HEADER : 4);
    label->u.mxnet.n = (size_t)label->n * 4;
    *image = (records_cell){.is_there = true, .dtype = TY_U8};
    image->u.mxnet.p = record->data + MXNET_HEADER + n_labels * 4;
    image->u.mxnet.n = record->n - MXNET_HEADER - n_labels * 4;
    image->u.mxnet.is_picture = true;
    image->n = (int64_t)image->u.mxnet.n;
    return 0;
}

static float mxnet_label(const records_cell *c, int64_t i)
{
    uint32_t bits;
    float v;
    memcpy(&bits, c->u.mxnet.p + 4 * i, sizeof bits);
    bits = le32toh(bits);
    memcpy(&v, &bits, sizeof v);
    return v;
}

static bool mxnet_is_whole(const records_cell *label)
{
    float v = mxnet_label(label, 0);
    return label->n == 1 && v == floorf(v) && fabsf(v) < 0x1p53f;
}

/* Where the first record of a stream has decided that labels are classes, a later one that is none is refused. */
static int mxnet_check_label(const records_impl *impl, const records_cell *label, ty_error *err)
{
    if (!impl->first_decides || !impl->is_whole || mxnet_is_whole(label))
        return 0;
    if (label->n == 1)
        ty_error_set(err, TY_E_DATA_VALUE,
                     "the label %.9g is no class, and that of the first record was a whole number",
                     (double)mxnet_label(label, 0));
    else
        ty_error_set(err, TY_E_DATA_VALUE, "%lld labels, and the first record had one", (long long)label->n);
    return ty_error_help(err, "say dtype: float32 of the field that is the label");
}

static int mxnet_find(records_look *look, const ty_frame *record, ty_error *err)
{
    records_cell label, image;
    if (mxnet_parse(record, &label, &image, err) < 0 || mxnet_check_label(look->impl, &label, err) < 0)
        return -1;
    label.dtype = look->impl->is_whole ? TY_I64 : TY_F32;
    for (int i = records_first(look); i < records_end(look); i++) {
        const records_field *f = &look->impl->field[i];
        bool is_label = strcmp(f->name, "label") == 0;
        if (!is_label && !ty_media_is(&f->media)) {
            ty_error_set(err, TY_E_CONFIG, "field \"%s\": MXNet's records have \"image\" and \"label\"",
                         f->declared.name);
            return ty_error_help(err,
                                 "`member: label` names the part that the field is, `image: {}` makes it the picture");
        }
        look->cell[i] = ty_media_is(&f->media) ? image : label;
    }
    return 0;
}

static int64_t mxnet_count(const records_cell *c)
{
    return c->n;
}

static int64_t mxnet_decode(records_look *look, const records_cell *c, int64_t max)
{
    for (int64_t i = 0; i < c->n && i < max; i++) {
        float v = mxnet_label(c, i);
        if (c->dtype == TY_I64)
            ((int64_t *)look->stored)[i] = (int64_t)v;
        else
            ((float *)look->stored)[i] = v;
    }
    return c->n;
}

/* Classes' numbers are integers, although they are stored as floats: if all labels are whole and single. */
typedef struct mxnet_labels {
    ty_frames frames;
    bool is_whole;
} mxnet_labels;

static bool mxnet_record_is_whole(const ty_frame *record)
{
    records_cell label, image;
    return mxnet_parse(record, &label, &image, NULL) < 0 || mxnet_is_whole(&label); /* the walk tells what is wrong */
}

static int mxnet_labels_redo(const records_spans *s, records_file *file, size_t to, ty_error *err)
{
    mxnet_labels *l = s->ctx;
    ty_frame record;
    (void)file, (void)err;
    while (l->is_whole && l->frames.at < to && ty_frames_next(&l->frames, &record, NULL) == 1)
        l->is_whole = mxnet_record_is_whole(&record);
    return 0;
}

static bool mxnet_labels_ahead(records_span *span)
{
    bool *is_whole = span->found = malloc(sizeof *is_whole);
    ty_frames frames = {.how = TY_FRAMES_RECORDIO_MXNET};
    ty_frame record;
    int more = 0;
    if (!is_whole)
        return false;
    *is_whole = true;
    if (records_span_begin(span, &frames))
        while (*is_whole && (more = records_span_next(span, &frames, &record)) == 1)
            *is_whole = mxnet_record_is_whole(&record);
    ty_frames_fini(&frames);
    return records_span_end(span, &frames, more >= 0);
}

static int mxnet_labels_take(records_span *span, ty_error *err)
{
    mxnet_labels *l = span->all->ctx;
    (void)err;
    l->is_whole = l->is_whole && *(const bool *)span->found;
    return 0;
}

/* Nobody has declared what labels are. */
static bool mxnet_is_open(const records_impl *impl)
{
    for (int i = 0; i < impl->n_fields; i++)
        if (!ty_media_is(&impl->field[i].media) && impl->field[i].declared.dtype_given)
            return false;
    return true;
}

/* They are classes where all parts of the data say so. */
static int mxnet_agree(records_impl *impl, const ty_agree *agree, ty_error *err)
{
    int64_t is_whole = impl->is_whole;
    if (ty_agree_numbers(agree, "labels of MXNet's records", TY_AGREE_LEAST, &is_whole, 1, err) < 0)
        return -1;
    impl->is_whole = is_whole;
    return 0;
}

static int mxnet_prepare(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    mxnet_labels l = {.frames.how = TY_FRAMES_RECORDIO_MXNET, .is_whole = true};
    int rc = records_spans_run(&(records_spans){.impl = impl,
                                                .frames = &l.frames,
                                                .n_threads = records_threads(src),
                                                .bytes = src->span_bytes,
                                                .ctx = &l,
                                                .ahead = mxnet_labels_ahead,
                                                .take = mxnet_labels_take,
                                                .redo = mxnet_labels_redo},
                               err);
    ty_frames_fini(&l.frames);
    impl->is_whole = l.is_whole;
    return rc < 0 || !mxnet_is_open(impl) || src->like ? rc : mxnet_agree(impl, &src->agree, err);
}

static int mxnet_begin_stream(records_impl *impl, ty_index_base base, const ty_index_kept *kept, ty_error *err)
{
    (void)base, (void)kept, (void)err;
    impl->first_decides = mxnet_is_open(impl);
    return 0;
}

static int mxnet_first(records_impl *impl, const ty_frame *record, const ty_agree *agree, ty_error *err)
{
    records_cell label, image;
    if (!impl->first_decides)
        return 1;
    if (record && mxnet_parse(record, &label, &image, NULL) < 0)
        return 0;
    impl->is_whole = !record || mxnet_is_whole(&label);
    return mxnet_agree(impl, agree, err) < 0 ? -1 : 1;
}

static int mxnet_encoded(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err)
{
    (void)err;
    *bytes = c->u.mxnet.p;
    *n = c->u.mxnet.n;
    return 0;
}

const records_kind records_mxnet = {.framing = TY_FRAMES_RECORDIO_MXNET,
                                    .prepare = mxnet_prepare,
                                    .begin_stream = mxnet_begin_stream,
                                    .first = mxnet_first,
                                    .find = mxnet_find,
                                    .count = mxnet_count,
                                    .decode = mxnet_decode,
                                    .encoded = mxnet_encoded};
