/* schema.c - see schema.h. Field and type numbers are those of format/Schema.fbs. */
#include "container/input/arrow/schema.h"

#include <string.h>

enum { MAX_FIELDS = 1 << 16 };

/* Of the table DictionaryEncoding. */
enum { DICTIONARY_ID = 0, DICTIONARY_INDEX = 1 };

/* Members of the union Type. */
enum {
    TYPE_NULL = 1,
    TYPE_INT,
    TYPE_FLOAT,
    TYPE_BINARY,
    TYPE_UTF8,
    TYPE_BOOL,
    TYPE_DECIMAL,
    TYPE_DATE,
    TYPE_TIME,
    TYPE_TIMESTAMP,
    TYPE_INTERVAL,
    TYPE_LIST,
    TYPE_STRUCT,
    TYPE_UNION,
    TYPE_FIXED_BINARY,
    TYPE_FIXED_LIST,
    TYPE_MAP,
    TYPE_DURATION,
    TYPE_LARGE_BINARY,
    TYPE_LARGE_UTF8,
    TYPE_LARGE_LIST,
    TYPE_RUNS,
    TYPE_BINARY_VIEW,
    TYPE_UTF8_VIEW,
    TYPE_LIST_VIEW,
    TYPE_LARGE_LIST_VIEW
};

/* Of the tables Field and of types. */
enum { FIELD_NAME = 0, FIELD_TYPE = 2, FIELD_TYPE_TABLE = 3, FIELD_DICTIONARY = 4, FIELD_CHILDREN = 5 };

typedef struct schema_walk {
    flat *f;
    ty_arena *a;
    arrow_schema *out;
    parquet_file *file;
    int n_fields, room, dictionary_room, view_room;
    ty_error *err;
} schema_walk;

static int schema_damaged(const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "the Arrow schema is damaged: %s", what);
    return ty_error_help(err, "the file was cut short or changed while it was written or copied: make it anew");
}

/* ---- values ---- */

/* Kind and width of a value; false: values of this type are not read. */
static bool value_of(flat *f, int type, flat_table t, arrow_column *c)
{
    switch (type) {
    case TYPE_NULL:
        c->kind = ARROW_NONE;
        return true;
    case TYPE_INT:
        c->kind = flat_int(f, t, 1, 1, 0) ? ARROW_INT : ARROW_UINT;
        c->bytes = (int)flat_int(f, t, 0, 4, 0) / 8;
        return c->bytes == 1 || c->bytes == 2 || c->bytes == 4 || c->bytes == 8;
    case TYPE_FLOAT:
        c->kind = ARROW_FLOAT;
        c->bytes = 2 << (flat_int(f, t, 0, 2, 0) & 3);
        return c->bytes <= 8;
    case TYPE_BOOL:
        c->kind = ARROW_BOOL;
        return true;
    case TYPE_DECIMAL:
        c->kind = ARROW_DECIMAL;
        c->bytes = (int)flat_int(f, t, 2, 4, 128) / 8;
        c->scale = (int)flat_int(f, t, 1, 4, 0);
        return (c->bytes == 4 || c->bytes == 8 || c->bytes == 16) && c->scale > -400 && c->scale < 400;
    case TYPE_DATE:
        c->kind = ARROW_INT;
        c->bytes = flat_int(f, t, 0, 2, 1) == 0 ? 4 : 8;
        return true;
    case TYPE_TIME:
        c->kind = ARROW_INT;
        c->bytes = (int)flat_int(f, t, 1, 4, 32) / 8;
        return c->bytes == 4 || c->bytes == 8;
    case TYPE_TIMESTAMP:
    case TYPE_DURATION:
        c->kind = ARROW_INT;
        c->bytes = 8;
        return true;
    case TYPE_BINARY:
    case TYPE_UTF8:
    case TYPE_LARGE_BINARY:
    case TYPE_LARGE_UTF8:
        c->kind = ARROW_TEXT;
        c->bytes = type == TYPE_BINARY || type == TYPE_UTF8 ? 4 : 8;
        return true;
    case TYPE_BINARY_VIEW:
    case TYPE_UTF8_VIEW:
        c->kind = ARROW_VIEW;
        c->bytes = 16;
        return true;
    case TYPE_FIXED_BINARY:
        c->kind = ARROW_FIXED;
        c->bytes = (int)flat_int(f, t, 0, 4, 0);
        return c->bytes >= 0 && c->bytes < 1 << 28;
    default:
        return false;
    }
}

static parquet_form form_of(const arrow_column *c)
{
    switch (c->kind) {
    case ARROW_INT:
        return c->bytes == 8 ? PARQUET_AS_I64 : PARQUET_AS_I32;
    case ARROW_UINT:
        return c->bytes >= 4 ? PARQUET_AS_I64 : PARQUET_AS_I32;
    case ARROW_FLOAT:
        return c->bytes == 8 ? PARQUET_AS_F64 : PARQUET_AS_F32;
    case ARROW_DECIMAL:
        return PARQUET_AS_F64;
    case ARROW_TEXT:
    case ARROW_VIEW:
    case ARROW_FIXED:
        return PARQUET_AS_BYTES;
    default:
        return PARQUET_AS_I32;
    }
}

/* Buffers of a field itself. */
static int buffers_of(int type)
{
    switch (type) {
    case TYPE_NULL:
    case TYPE_RUNS:
        return 0;
    case TYPE_STRUCT:
    case TYPE_FIXED_LIST:
        return 1;
    case TYPE_BINARY:
    case TYPE_UTF8:
    case TYPE_LARGE_BINARY:
    case TYPE_LARGE_UTF8:
    case TYPE_LIST_VIEW:
    case TYPE_LARGE_LIST_VIEW:
        return 3;
    default:
        return 2;
    }
}

static bool is_list(int type)
{
    return type == TYPE_LIST || type == TYPE_LARGE_LIST || type == TYPE_FIXED_LIST;
}

/* ---- fields ---- */

static void schema_add(schema_walk *w, const char *name, const arrow_column *c, const char *odd)
{
    arrow_schema *s = w->out;
    parquet_file *file = w->file;
    if (file->n_columns == w->room) {
        int room = 2 * w->room + 16;
        parquet_column *columns = TY_NEW_ARRAY(w->a, parquet_column, room);
        arrow_column *ours = TY_NEW_ARRAY(w->a, arrow_column, room);
        if (file->n_columns > 0) {
            memcpy(columns, file->column, (size_t)file->n_columns * sizeof *columns);
            memcpy(ours, s->column, (size_t)file->n_columns * sizeof *ours);
        }
        file->column = columns;
        s->column = ours;
        w->room = room;
    }
    s->column[file->n_columns] = *c;
    s->column[file->n_columns].form = form_of(c);
    file->column[file->n_columns++] =
        (parquet_column){.name = name, .form = form_of(c), .max_rep = c->n_lists > 0, .odd = odd};
}

static const char *odd_of(int type, bool has_dictionary)
{
    return has_dictionary           ? "it is a dictionary of lists or structs"
           : type == TYPE_UNION     ? "it is a union"
           : type == TYPE_MAP       ? "it is a map"
           : type == TYPE_INTERVAL  ? "it holds intervals"
           : type == TYPE_RUNS      ? "it is encoded by runs"
           : type >= TYPE_LIST_VIEW ? "it holds views of lists"
                                    : "it holds values of a type";
}

/* above: name of what it is in; as_it: its own name, too, that of a list whose element it is. odd: why it is not read.
 */
static int schema_field(schema_walk *w, flat_table field, const char *above, bool as_it, arrow_column in, int depth,
                        const char *odd);

static int schema_children(schema_walk *w, flat_table field, const char *name, bool as_it, const arrow_column *in,
                           int depth, const char *odd)
{
    flat_vector children = flat_list(w->f, field, FIELD_CHILDREN, 4);
    for (int64_t i = 0; i < children.n; i++)
        if (schema_field(w, flat_element(w->f, children, i), name, as_it, *in, depth + 1, odd) < 0)
            return -1;
    return 0;
}

/* A list's element has the list's name. */
static int schema_list(schema_walk *w, flat_table field, int type, const char *name, arrow_column *c, arrow_place place,
                       int depth, const char *odd)
{
    flat_table t = flat_sub(w->f, field, FIELD_TYPE_TABLE);
    arrow_list list = {.place = place, .bytes = type == TYPE_LIST ? 4 : type == TYPE_LARGE_LIST ? 8 : 0};
    if (flat_list(w->f, field, FIELD_CHILDREN, 4).n != 1)
        return schema_damaged("a list does not have one kind of element", w->err);
    if (type == TYPE_FIXED_LIST)
        list.size = flat_int(w->f, t, 0, 4, 0);
    if (list.size < 0)
        return schema_damaged("a list has fewer elements than none", w->err);
    odd = c->n_inside > 0 ? "it holds lists in structs in lists" : odd;
    if (c->n_lists == ARROW_MAX_LISTS)
        odd = "it holds lists in too many lists";
    else
        c->list[c->n_lists++] = list;
    return schema_children(w, field, name, true, c, depth, odd);
}

int arrow_buffers(const arrow_column *c)
{
    return c->kind == ARROW_NONE ? 0 : c->kind == ARROW_TEXT ? 3 : 2;
}

/* The dictionary of that number; the first column that names it says what its values are. */
static int schema_dictionary(schema_walk *w, int64_t id, const arrow_column *values)
{
    arrow_schema *s = w->out;
    for (int i = 0; i < s->n_dictionaries; i++)
        if (s->dictionary[i].id == id)
            return i;
    if (s->n_dictionaries == w->dictionary_room) {
        w->dictionary_room = 2 * w->dictionary_room + 4;
        arrow_dictionary *all = TY_NEW_ARRAY(w->a, arrow_dictionary, w->dictionary_room);
        if (s->n_dictionaries > 0)
            memcpy(all, s->dictionary, (size_t)s->n_dictionaries * sizeof *all);
        s->dictionary = all;
    }
    arrow_dictionary *d = &s->dictionary[s->n_dictionaries];
    *d = (arrow_dictionary){.id = id, .values = {.kind = values->kind, .bytes = values->bytes, .scale = values->scale}};
    d->values.form = form_of(values);
    return s->n_dictionaries++;
}

/* A column of numbers of values. False: they are of a kind that makes no sense, or another column's are of another. */
static bool schema_coded(schema_walk *w, flat_table encoding, arrow_column *c)
{
    flat_table index = flat_sub(w->f, encoding, DICTIONARY_INDEX);
    c->is_coded = true;
    c->index_bytes = index.at ? (int)flat_int(w->f, index, 0, 4, 0) / 8 : 4;
    c->is_signed = !index.at || flat_int(w->f, index, 1, 1, 0) != 0;
    c->dictionary = schema_dictionary(w, flat_int(w->f, encoding, DICTIONARY_ID, 8, 0), c);
    const arrow_column *values = &w->out->dictionary[c->dictionary].values;
    return (c->index_bytes == 1 || c->index_bytes == 2 || c->index_bytes == 4 || c->index_bytes == 8) &&
           values->kind == c->kind && values->bytes == c->bytes && values->scale == c->scale;
}

/* The number of the column of views whose buffers are those counted last. */
static int schema_view(schema_walk *w)
{
    arrow_schema *s = w->out;
    if (s->n_views == w->view_room) {
        w->view_room = 2 * w->view_room + 4;
        int *all = TY_NEW_ARRAY(w->a, int, w->view_room);
        if (s->n_views > 0)
            memcpy(all, s->view, (size_t)s->n_views * sizeof *all);
        s->view = all;
    }
    s->view[s->n_views] = s->n_buffers - 1;
    return s->n_views++;
}

static void schema_enter(arrow_column *in, arrow_place place)
{
    if (in->n_lists > 0)
        in->inside[in->n_inside++] = place;
    else
        in->above[in->n_above++] = place;
}

static int schema_field(schema_walk *w, flat_table field, const char *above, bool as_it, arrow_column in, int depth,
                        const char *odd)
{
    flat_table encoding = flat_sub(w->f, field, FIELD_DICTIONARY);
    bool has_dictionary = encoding.at != 0;
    int type = (int)flat_int(w->f, field, FIELD_TYPE, 1, 0);
    if (w->f->failed || ++w->n_fields > MAX_FIELDS || depth >= ARROW_MAX_DEPTH)
        return schema_damaged("its fields make no sense, or are too many", w->err);
    const char *own = flat_text(w->f, field, FIELD_NAME, w->a);
    const char *name = as_it ? above : above[0] ? ty_arena_printf(w->a, "%s.%s", above, own) : own;
    arrow_place place = {.node = w->out->n_nodes++, .buffer = w->out->n_buffers};
    w->out->n_buffers += has_dictionary ? 2 : buffers_of(type);
    if (!has_dictionary && (type == TYPE_BINARY_VIEW || type == TYPE_UTF8_VIEW))
        in.view = schema_view(w);
    if (!has_dictionary && is_list(type))
        return schema_list(w, field, type, name, &in, place, depth, odd);
    if (!has_dictionary && type == TYPE_STRUCT) {
        schema_enter(&in, place);
        return schema_children(w, field, name, false, &in, depth, odd);
    }
    bool is_value = value_of(w->f, type, flat_sub(w->f, field, FIELD_TYPE_TABLE), &in);
    in.value = place;
    if (is_value && has_dictionary)
        is_value = schema_coded(w, encoding, &in);
    schema_add(w, name, &in, odd ? odd : is_value ? NULL : odd_of(type, has_dictionary));
    if (is_value || has_dictionary)
        return 0;
    int n = w->file->n_columns;
    int rc = schema_children(w, field, name, true, &in, depth, odd_of(type, false)); /* their nodes and buffers count */
    w->file->n_columns = n;
    return rc;
}

int arrow_schema_read(flat *f, flat_table t, ty_arena *a, arrow_schema *out, parquet_file *file, ty_error *err)
{
    schema_walk w = {.f = f, .a = a, .out = out, .file = file, .err = err};
    if (flat_int(f, t, 0, 2, 0) != 0)
        return ty_error_set(err, TY_E_DATA, "its numbers are big-endian, which are not read");
    flat_vector fields = flat_list(f, t, 1, 4);
    for (int64_t i = 0; i < fields.n; i++)
        if (schema_field(&w, flat_element(f, fields, i), "", false, (arrow_column){.kind = ARROW_NONE}, 0, NULL) < 0)
            return -1;
    if (f->failed)
        return schema_damaged("it points outside of itself", err);
    return file->n_columns > 0 ? 0 : schema_damaged("it has no columns", err);
}
