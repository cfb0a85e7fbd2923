/* records_lines.c - plain text, each line of which is a sample: its one feature is the text of the line.
 *
 * What a text becomes is up to its field: a tokenizer, a vocabulary, a hash, classes; of a line that holds a number, a
 * number. Several fields may be made of the same line. The text is the line as it stands, without its end and without
 * the mark of UTF-8 before the first one.
 */
#include "container/input/records.h"

#include <string.h>

static const records_kind records_all_lines;

static int lines_check(records_impl *impl, ty_error *err)
{
    for (int i = 0; i < impl->n_fields; i++) {
        const ty_field *d = &impl->field[i].declared;
        if (strcmp(impl->names[i], "text") != 0) {
            ty_error_set(err, TY_E_CONFIG, "field \"%s\": lines have no \"%s\", but one feature, \"text\"", d->name,
                         impl->names[i]);
            return ty_error_help(err,
                                 "say member: text; what else belongs to a text goes with it in JSON Lines or CSV");
        }
        if (!d->map) {
            ty_error_set(err, TY_E_CONFIG, "field \"%s\": nothing says what becomes of the text of a line", d->name);
            return ty_error_help(err,
                                 "give it a tokenizer, a vocabulary, a hash or classes: %s: {member: text, "
                                 "tokenizer: tokenizer.json, max_length: 64}",
                                 d->name);
        }
    }
    if (impl->blank_lines)
        impl->kind = &records_all_lines;
    return 0;
}

static int lines_prepare(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    records_impl *impl = ds->impl;
    impl->blank_lines = src->blank_lines;
    return lines_check(impl, err);
}

static int lines_begin_stream(records_impl *impl, ty_index_base base, const ty_index_kept *index, ty_error *err)
{
    (void)base, (void)index;
    return lines_check(impl, err);
}

static int lines_find(records_look *look, const ty_frame *record, ty_error *err)
{
    const char *p = (const char *)record->data, *end = p + record->n;
    (void)err;
    if (record->at == 0 && record->n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (int i = records_first(look); i < records_end(look); i++) {
        look->cell[i] = (records_cell){.is_there = true, .dtype = TY_U8, .n = 1};
        look->cell[i].u.text.p = p;
        look->cell[i].u.text.end = end;
    }
    return 0;
}

static int lines_cells(records_look *look, const records_cell *c, bool wants_text, ty_cells *out, ty_error *err)
{
    (void)wants_text;
    if (records_bytes(look, sizeof(ty_text), err) < 0)
        return -1;
    ty_text *text = look->stored;
    *text = (ty_text){c->u.text.p, (size_t)(c->u.text.end - c->u.text.p)};
    *out = (ty_cells){.kind = TY_CELLS_TEXTS, .n = 1, .u.text = text};
    return 0;
}

/* All fields have a map (lines_check), and a map takes cells. */
const records_kind records_lines = {.framing = TY_FRAMES_LINES,
                                    .is_kept = true,
                                    .prepare = lines_prepare,
                                    .begin_stream = lines_begin_stream,
                                    .find = lines_find,
                                    .cells = lines_cells};
static const records_kind records_all_lines = {
    .framing = TY_FRAMES_ALL_LINES, .find = lines_find, .cells = lines_cells};
