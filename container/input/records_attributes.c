/* records_attributes.c - samples of an augmented manifest: each has the same attributes in the same order.
 *
 * Source: the rules of SageMaker's augmented manifests. A record is what stream/cursor.h makes of them: for each
 * attribute its length in 8 bytes and its bytes. An attribute whose name ends in -ref is an object's bytes; others are
 * JSON text: numbers, texts for fields that have transforms, and lists of these.
 */
#include "container/input/records.h"

#include <string.h>

static int attributes_begin_stream(records_impl *impl, ty_index_base base, const ty_index_kept *kept, ty_error *err)
{
    (void)base;
    (void)kept;
    for (int i = 0; i < impl->n_fields; i++) {
        int k = 0;
        while (k < impl->n_attributes && strcmp(impl->attribute[k], impl->names[i]) != 0)
            k++;
        if (k < impl->n_attributes)
            continue;
        ty_error_set(err, TY_E_CONFIG, "field \"%s\": the manifest's attributes have no \"%s\"",
                     impl->field[i].declared.name, impl->names[i]);
        return ty_error_help(err, "attributes: lists them in the job's order; member: says which is the field");
    }
    return 0;
}

static void attributes_cell(records_look *look, int i, const uint8_t *p, size_t n)
{
    const char *name = look->impl->names[i], *text = (const char *)p;
    size_t n_name = strlen(name);
    look->cell[i] = (records_cell){.is_there = true, .dtype = TY_U8, .n = (int64_t)n};
    if (n_name >= 4 && strcmp(name + n_name - 4, "-ref") == 0) {
        look->cell[i].u.text.p = text;
        return;
    }
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        n--;
    while (n > 0 && strchr(" \t\r\n", *text)) {
        text++;
        n--;
    }
    records_json_cell(look, i, text, text + n);
}

static int attributes_find(records_look *look, const ty_frame *record, ty_error *err)
{
    const uint8_t *p = record->data, *end = p + record->n;
    for (int k = 0; k < look->impl->n_attributes; k++) {
        uint64_t n;
        if ((size_t)(end - p) < sizeof n)
            return ty_error_set(err, TY_E_INTERNAL, "a sample without all of its attributes");
        memcpy(&n, p, sizeof n);
        p += sizeof n;
        if ((uint64_t)(end - p) < n)
            return ty_error_set(err, TY_E_INTERNAL, "a sample without all of its attributes");
        for (int i = records_first(look); i < records_end(look); i++)
            if (strcmp(look->impl->attribute[k], look->impl->names[i]) == 0)
                attributes_cell(look, i, p, n);
        p += n;
    }
    return 0;
}

static int64_t attributes_count(const records_cell *c)
{
    return c->dtype == TY_U8 ? c->n : records_json.count(c);
}

static int64_t attributes_decode(records_look *look, const records_cell *c, int64_t max)
{
    if (c->dtype != TY_U8)
        return records_json.decode(look, c, max);
    memcpy(look->stored, c->u.text.p, (size_t)(c->n < max ? c->n : max));
    return c->n;
}

static int attributes_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err)
{
    if (c->dtype != TY_U8)
        return records_json.cells(look, c, wants_text, out, err);
    if (records_bytes(look, sizeof(ty_text), err) < 0)
        return -1;
    *(ty_text *)look->stored = (ty_text){c->u.text.p, (size_t)c->n};
    *out = (ty_cells){.kind = TY_CELLS_TEXTS, .n = 1, .u.text = look->stored};
    return 0;
}

static int attributes_encoded(const records_cell *c, const uint8_t **bytes, size_t *n, ty_error *err)
{
    *bytes = NULL;
    if (!c->is_there)
        return 0;
    if (c->dtype != TY_U8)
        return ty_error_set(err, TY_E_DATA_VALUE, "a picture or sound is the object of an attribute that ends in -ref");
    *bytes = (const uint8_t *)c->u.text.p;
    *n = (size_t)c->n;
    return 0;
}

const records_kind records_attributes = {.framing = TY_FRAMES_RECORDIO,
                                         .begin_stream = attributes_begin_stream,
                                         .find = attributes_find,
                                         .count = attributes_count,
                                         .decode = attributes_decode,
                                         .cells = attributes_cells,
                                         .encoded = attributes_encoded};
