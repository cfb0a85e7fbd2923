/* records_tensor.c - records that are SageMaker's Record: a field is a tensor. */
#include "container/input/records.h"

static int tensor_refuse_bytes(const char *name, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE,
                 "\"%s\" holds bytes (a Bytes tensor), which are read as pictures and sounds alone", name);
    return ty_error_help(err, "write texts as CSV, JSON Lines or TFRecord, where a vocabulary, classes, a hash or "
                              "a tokenizer make numbers of them");
}

static int tensor_look(records_look *look, const ty_frame *record, ty_error *err)
{
    for (int i = records_first(look); i < records_end(look); i++) {
        records_cell *c = &look->cell[i];
        ty_record_tensor *t = &c->u.tensor;
        if (ty_record_find(record->data, record->n, look->impl->names[i], t, err) < 0)
            return -1;
        if (!t->is_there && t->n_pieces > 0 && !ty_media_is(&look->impl->field[i].media))
            return tensor_refuse_bytes(look->impl->names[i], err);
        c->is_there = t->is_there;
        c->dtype = t->dtype;
        c->n = t->is_there ? ty_record_elems(t) : 0;
        c->scratch_bytes = t->is_sparse ? (size_t)t->n * 16 : 0;
    }
    return 0;
}

static int64_t tensor_count(const records_cell *c)
{
    return c->n;
}

/* Behind the elements there is room for what sparse ones need (c->scratch_bytes). */
static int64_t tensor_decode(records_look *look, const records_cell *c, int64_t max)
{
    (void)max;
    ty_record_decode(&c->u.tensor, look->stored, (int64_t *)look->stored + c->n);
    return c->n;
}

static int tensor_encoded(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err)
{
    const ty_record_tensor *t = &c->u.tensor;
    if (t->is_there || t->n_pieces > 1)
        return ty_error_set(err, TY_E_DATA_VALUE, "a picture or sound is one byte string, found %s",
                            t->is_there ? "numbers" : "several");
    *bytes = t->bytes;
    *n = t->n_bytes;
    return 0;
}

const records_kind records_tensor = {.framing = TY_FRAMES_RECORDIO,
                                     .is_kept = true,
                                     .find = tensor_look,
                                     .count = tensor_count,
                                     .decode = tensor_decode,
                                     .encoded = tensor_encoded};
