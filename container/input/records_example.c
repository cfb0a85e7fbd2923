/* records_example.c - records that are a tf.train.Example: a field is a feature. */
#include "container/input/records.h"

#include <string.h>

/* is_one: several byte strings are none. */
static int example_cell(const ty_feature *f, const char *name, bool is_one, records_cell *c, ty_error *err)
{
    static const ty_dtype stored[] = {
        [TY_FEATURE_BYTES] = TY_U8, [TY_FEATURE_FLOATS] = TY_F32, [TY_FEATURE_INTS] = TY_I64};
    *c = (records_cell){.n = -1};
    c->u.example.feature = *f;
    if (f->kind == TY_FEATURE_ABSENT)
        return 0;
    c->dtype = stored[f->kind];
    c->is_there = f->n > 0;
    if (f->kind != TY_FEATURE_BYTES)
        return 0;
    int64_t pieces = ty_feature_bytes(f, &c->u.example.piece, 1);
    if (pieces < 0)
        return ty_error_set(err, TY_E_DATA_VALUE, "feature \"%s\": its list is malformed", name);
    if (pieces > 1 && is_one) {
        ty_error_set(err, TY_E_DATA_VALUE, "feature \"%s\" has %lld byte strings, expected one", name,
                     (long long)pieces);
        return ty_error_help(err, "texts become ids: vocabulary: auto, or hash: N, with max_length");
    }
    c->is_there = pieces > 0;
    c->n = (int64_t)c->u.example.piece.n;
    return 0;
}

static int example_look(records_look *look, const ty_frame *record, ty_error *err)
{
    if (ty_example_find(&look->example, record->data, record->n, look->feature, err) < 0)
        return -1;
    for (int i = records_first(look); i < records_end(look); i++) {
        const records_field *f = &look->impl->field[i];
        if (example_cell(&look->feature[f->feature[0]], f->name, !f->declared.map, &look->cell[i], err) < 0)
            return -1;
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            if (f->also[k] &&
                example_cell(&look->feature[f->feature[1 + k]], f->also[k], false, &look->part[i][k], err) < 0)
                return -1;
    }
    return 0;
}

static int64_t example_count(const records_cell *c)
{
    if (c->dtype == TY_U8)
        return c->n;
    return c->dtype == TY_F32 ? ty_feature_floats(&c->u.example.feature, NULL, 0)
                              : ty_feature_ints(&c->u.example.feature, NULL, 0);
}

static int64_t example_decode(records_look *look, const records_cell *c, int64_t max)
{
    if (c->dtype == TY_F32)
        return ty_feature_floats(&c->u.example.feature, look->stored, max);
    if (c->dtype == TY_I64)
        return ty_feature_ints(&c->u.example.feature, look->stored, max);
    memcpy(look->stored, c->u.example.piece.bytes, (size_t)(c->n < max ? c->n : max));
    return c->n;
}

/* Byte strings are texts; 1: numbers. */
static int example_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err)
{
    (void)wants_text;
    if (c->dtype != TY_U8)
        return 1;
    int64_t n = ty_feature_bytes(&c->u.example.feature, NULL, 0);
    if (n < 0 || n > RECORDS_MAX_ELEMS)
        return ty_error_set(err, TY_E_DATA_VALUE, "its list is malformed or too long");
    size_t pieces = (size_t)n * sizeof(ty_feature_piece);
    if (records_bytes(look, pieces + (size_t)n * sizeof(ty_text) + 64, err) < 0)
        return -1;
    ty_feature_piece *piece = look->stored;
    ty_text *text = (ty_text *)((char *)look->stored + pieces);
    ty_feature_bytes(&c->u.example.feature, piece, n);
    for (int64_t i = 0; i < n; i++)
        text[i] = (ty_text){(const char *)piece[i].bytes, piece[i].n};
    *out = (ty_cells){.kind = TY_CELLS_TEXTS, .n = n, .u.text = text};
    return 0;
}

static int example_encoded(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err)
{
    if (c->is_there && c->dtype != TY_U8)
        return ty_error_set(err, TY_E_DATA_VALUE, "a picture or sound is a byte string, found a list of numbers");
    *bytes = c->is_there ? c->u.example.piece.bytes : NULL;
    *n = c->is_there ? c->u.example.piece.n : 0;
    return 0;
}

const records_kind records_example = {.framing = TY_FRAMES_TFRECORD,
                                      .is_kept = true,
                                      .finds_parts = true,
                                      .find = example_look,
                                      .count = example_count,
                                      .decode = example_decode,
                                      .cells = example_cells,
                                      .encoded = example_encoded};
