/* recipe_data.c - the sections below `data`: sets of samples and their fields. */
#include "entrypoint/recipe_reader.h"

#include <string.h>

static int read_shape(recipe_reader *rd, const ty_doc *node, ty_field *f)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    size_t n = node->kind == TY_DOC_LIST ? node->n_items : 1;
    if (n > TY_SAMPLE_MAX_RANK)
        return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "a sample has at most %d dimensions", TY_SAMPLE_MAX_RANK);
    f->shape_given = true;
    f->rank = (int)n;
    for (size_t i = 0; i < n; i++) {
        const ty_doc *dim = node->kind == TY_DOC_LIST ? &node->items[i] : node;
        if (ty_doc_int(dim, &f->dim[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "shape");
        if (f->dim[i] < 1 || f->dim[i] > (int64_t)1 << 40)
            return ty_doc_error(dim, rd->err, TY_E_RANGE, NULL, "a dimension must be at least 1");
    }
    return 0;
}

/* 64, "0-63" or [0, 3]: the text that ty_columns_resolve reads. */
static int read_columns(recipe_reader *rd, const ty_doc *node, const char **out)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (node->kind == TY_DOC_MAP)
        return ty_doc_error(node, rd->err, TY_E_TYPE, NULL, "expected columns such as 0-63, found a map");
    const char *text = node->kind == TY_DOC_LIST ? "" : node->raw;
    for (uint32_t i = 0; node->kind == TY_DOC_LIST && i < node->n_items; i++)
        text = ty_arena_printf(rd->a, "%s%s%s", text, i ? "," : "", node->items[i].raw);
    *out = text;
    return 0;
}

static int read_field(recipe_reader *rd, const char *path, const ty_doc *node, ty_field *out)
{
    recipe_field f = {0};
    const char *what = ty_arena_printf(rd->a, "%s.fields.%s", path, node->key);
    if (ty_recipe_bind(rd, what, ty_recipe_field_section.rows, ty_recipe_field_section.n_rows, node, &f) < 0)
        return -1;
    *out = ty_field_make(node->key);
    out->member = f.member;
    out->file = f.file;
    out->scale = f.scale;
    out->offset = f.offset;
    if (read_columns(rd, f.columns, &out->columns) < 0 || read_shape(rd, f.shape, out) < 0)
        return ty_error_wrap(rd->err, "%s", what);
    if (f.type && !ty_dtype_parse(f.type, &out->dtype)) {
        ty_doc_error(ty_doc_find(node, "type"), rd->err, TY_E_RANGE, NULL, "unknown type \"%s\"", f.type);
        return ty_error_help(rd->err,
                             "known are: float32, float64, float16, bfloat16, int8 to int64, uint8 to uint64, bool");
    }
    out->dtype_given = f.type != NULL;
    out->missing_given = f.missing != NULL && f.missing->kind != TY_DOC_NULL;
    if (out->missing_given && ty_doc_float(f.missing, &out->missing, rd->err) < 0)
        return ty_error_wrap(rd->err, "missing");
    if (ty_field_check(out, rd->err) < 0) {
        char place[256];
        return ty_error_at(rd->err, "%s", ty_doc_place(node, place, sizeof place));
    }
    return 0;
}

static int read_fields(recipe_reader *rd, const char *path, const ty_doc *node, ty_recipe_data *out)
{
    bool is_list = node->kind == TY_DOC_LIST;
    if (!is_list && ty_doc_expect(node, TY_DOC_MAP, rd->err) < 0)
        return ty_error_wrap(rd->err, "%s.fields", path);
    ty_field *fields = TY_NEW_ARRAY(rd->a, ty_field, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        const char *name;
        if (is_list && ty_doc_string(&node->items[i], &name, rd->err) < 0)
            return ty_error_wrap(rd->err, "%s.fields", path);
        if (is_list)
            fields[i] = ty_field_make(name);
        else if (read_field(rd, path, &node->items[i], &fields[i]) < 0)
            return -1;
    }
    if (node->n_items == 0)
        return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "\"%s.fields\" names no field", path);
    out->fields = fields;
    out->n_fields = (int)node->n_items;
    return 0;
}

/* same: whose fields are taken when none are given; NULL for the training data, which must have some. */
static int read_data(recipe_reader *rd, const char *name, const ty_doc *node, const ty_recipe_data *same,
                     ty_recipe_data *out)
{
    recipe_data d = {.shuffle = !same};
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    const char *path = ty_arena_printf(rd->a, "data.%s", name);
    if (ty_recipe_bind(rd, path, ty_recipe_data_section.rows, ty_recipe_data_section.n_rows, node, &d) < 0)
        return -1;
    const ty_doc *shuffle = ty_doc_find(node, "shuffle");
    *out = (ty_recipe_data){.given = true,
                            .path = ty_recipe_path(rd, d.path),
                            .pattern = d.pattern,
                            .format = d.format,
                            .header = d.header,
                            .delimiter = d.delimiter,
                            .at = node,
                            .shuffle = shuffle && shuffle->kind == TY_DOC_BOOL ? d.shuffle : !same,
                            .remainder = d.remainder};
    out->channel = d.channel ? d.channel : d.path ? NULL : ty_arena_strdup(rd->a, name);
    if (same && shuffle && d.shuffle)
        return ty_doc_error(shuffle, rd->err, TY_E_CONFIG, NULL, "validation data is never shuffled");
    const ty_doc *remainder = ty_doc_find(node, "remainder");
    if (same && remainder && d.remainder != TY_REMAINDER_JOIN)
        return ty_doc_error(remainder, rd->err, TY_E_CONFIG, NULL,
                            "validation counts every sample once: its remainder is always join");
    if (d.delimiter && strlen(d.delimiter) != 1)
        return ty_doc_error(ty_doc_find(node, "delimiter"), rd->err, TY_E_RANGE, NULL, "a delimiter is one character");
    bool wants_same = !d.fields || (d.fields->kind == TY_DOC_STRING && strcmp(d.fields->string, "same") == 0);
    if (!wants_same)
        return read_fields(rd, path, d.fields, out);
    if (!same)
        return ty_doc_error(d.fields ? d.fields : node, rd->err, TY_E_MISSING_KEY, NULL,
                            "\"data.train\" needs its fields");
    out->fields = same->fields;
    out->n_fields = same->n_fields;
    if (!out->format)
        out->format = same->format;
    return 0;
}

int ty_recipe_read_data(recipe_reader *rd, const ty_doc *node)
{
    static const ty_bind_row rows[] = {
        {"train", TY_BIND_NODE, 0, .required = true, .help = "training data"},
        {"validation", TY_BIND_NODE, sizeof(ty_doc *), .help = "data to evaluate on"},
    };
    const ty_doc *parts[2] = {0};
    if (ty_recipe_bind(rd, "data", rows, 2, node, parts) < 0 ||
        read_data(rd, "train", parts[0], NULL, &rd->r->train) < 0)
        return -1;
    if (!rd->r->train.given)
        return ty_doc_error(node, rd->err, TY_E_MISSING_KEY, NULL, "\"data.train\" is missing");
    return read_data(rd, "validation", parts[1], &rd->r->train, &rd->r->validation);
}
