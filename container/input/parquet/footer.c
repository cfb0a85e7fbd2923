/* footer.c - schema and row groups. */
#include "container/input/parquet/parquet.h"

#include "container/input/parquet/thrift.h"

#include <stdio.h>
#include <string.h>

enum { FOOTER_MAX_COLUMNS = 1 << 16, FOOTER_MAX_DEPTH = 32 };

/* SchemaElement. Trees are written in depth-first order, each with the number of its children. */
typedef struct footer_node {
    int type, length, repetition, converted, scale;
    int64_t n_children;
    const char *name;
    bool has_type, is_unsigned, is_decimal, is_float16, is_list, is_map, is_none;
} footer_node;

enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum { CONVERTED_MAP = 1, CONVERTED_KEY_VALUE = 2, CONVERTED_LIST = 3, CONVERTED_DECIMAL = 5 };
enum { CONVERTED_UINT_8 = 11, CONVERTED_UINT_64 = 14 };
/* Members of the union LogicalType. */
enum {
    LOGICAL_MAP = 2,
    LOGICAL_LIST = 3,
    LOGICAL_DECIMAL = 5,
    LOGICAL_INTEGER = 10,
    LOGICAL_UNKNOWN = 11,
    LOGICAL_FLOAT16 = 15
};

static int footer_damaged(const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_DATA, "the Parquet footer is damaged: %s", what);
    return ty_error_help(err, "the file was cut short or changed while it was written or copied: make it anew");
}

bool parquet_has_magic(const uint8_t *p, size_t n)
{
    return n >= 4 && (memcmp(p, "PAR1", 4) == 0 || memcmp(p, "PARE", 4) == 0);
}

/* ---- schema ---- */

/* DecimalType's scale; whether an IntType is unsigned. */
static void footer_logical_member(thrift *t, int member, footer_node *node)
{
    thrift_field f = {0};
    node->is_map |= member == LOGICAL_MAP;
    node->is_list |= member == LOGICAL_LIST;
    node->is_decimal |= member == LOGICAL_DECIMAL;
    node->is_float16 |= member == LOGICAL_FLOAT16;
    node->is_none |= member == LOGICAL_UNKNOWN;
    while (thrift_next(t, &f)) {
        if (member == LOGICAL_DECIMAL && f.id == 1 && f.type == THRIFT_I32)
            node->scale = (int)thrift_int(t);
        else if (member == LOGICAL_INTEGER && f.id == 2 && f.type == THRIFT_FALSE)
            node->is_unsigned = true;
        else
            thrift_skip(t, f.type);
    }
}

static void footer_logical(thrift *t, footer_node *node)
{
    thrift_field f = {0};
    while (thrift_next(t, &f)) {
        if (f.type == THRIFT_STRUCT)
            footer_logical_member(t, f.id, node);
        else
            thrift_skip(t, f.type);
    }
}

static void footer_take_converted(footer_node *node)
{
    node->is_map |= node->converted == CONVERTED_MAP || node->converted == CONVERTED_KEY_VALUE;
    node->is_list |= node->converted == CONVERTED_LIST;
    node->is_decimal |= node->converted == CONVERTED_DECIMAL;
    node->is_unsigned |= node->converted >= CONVERTED_UINT_8 && node->converted <= CONVERTED_UINT_64;
}

static void footer_node_read(thrift *t, ty_arena *a, footer_node *node)
{
    thrift_field f = {0};
    size_t n;
    *node = (footer_node){.name = "", .converted = -1};
    while (thrift_next(t, &f)) {
        int *const whole[] = {NULL, &node->type, &node->length,    &node->repetition,
                              NULL, NULL,        &node->converted, &node->scale};
        if (f.type == THRIFT_I32 && f.id < 8 && whole[f.id]) {
            *whole[f.id] = (int)thrift_int(t);
            node->has_type |= f.id == 1;
        } else if (f.id == 5 && f.type == THRIFT_I32) {
            node->n_children = thrift_int(t);
        } else if (f.id == 4 && f.type == THRIFT_BINARY) {
            const uint8_t *p = thrift_binary(t, &n);
            node->name = ty_arena_strndup(a, (const char *)p, n);
        } else if (f.id == 10 && f.type == THRIFT_STRUCT) {
            footer_logical(t, node);
        } else {
            thrift_skip(t, f.type);
        }
    }
    footer_take_converted(node);
}

/* The way down to a leaf. */
typedef struct footer_way {
    const footer_node *node;
    int64_t left; /* children that are still to come */
} footer_way;

typedef struct footer_schema {
    const footer_node *node;
    int64_t n;
    footer_way way[FOOTER_MAX_DEPTH];
    int depth;
} footer_schema;

static parquet_form footer_form(const footer_node *leaf)
{
    static const parquet_form forms[PARQUET_N_TYPES] = {
        [PARQUET_BOOLEAN] = PARQUET_AS_I32,      [PARQUET_INT32] = PARQUET_AS_I32,  [PARQUET_INT64] = PARQUET_AS_I64,
        [PARQUET_INT96] = PARQUET_AS_I64,        [PARQUET_FLOAT] = PARQUET_AS_F32,  [PARQUET_DOUBLE] = PARQUET_AS_F64,
        [PARQUET_BYTE_ARRAY] = PARQUET_AS_BYTES, [PARQUET_FIXED] = PARQUET_AS_BYTES};
    if (leaf->is_decimal)
        return PARQUET_AS_F64;
    if (leaf->is_float16)
        return PARQUET_AS_F32;
    return leaf->is_unsigned && leaf->type == PARQUET_INT32 ? PARQUET_AS_I64 : forms[leaf->type];
}

/* Names of the groups around a list's elements say nothing: "tags.list.element" is tags, "tags.list.element.id"
 * tags.id. A LIST is three levels: the group, a repeated group in it, the element, which may be a LIST again. */
static const char *footer_name(const footer_schema *s, const footer_node *leaf, ty_arena *a)
{
    const char *name = NULL;
    int around = 0; /* the levels of a list that have no name of their own end here */
    for (int i = 1; i <= s->depth; i++) {
        const footer_node *node = i < s->depth ? s->way[i].node : leaf;
        if (i > around)
            name = name ? ty_arena_printf(a, "%s.%s", name, node->name) : node->name;
        const footer_node *inside = i + 1 < s->depth ? s->way[i + 1].node : leaf;
        if (i < s->depth && node->is_list && inside->repetition == REPEATED)
            around = i + 2;
    }
    return name;
}

/* The levels that the nodes on the way make. Of lists in lists a row has all elements, one after the other. */
static void footer_levels(const footer_schema *s, const footer_node *leaf, parquet_column *c)
{
    bool has_map = false;
    for (int i = 1; i <= s->depth; i++) {
        const footer_node *node = i < s->depth ? s->way[i].node : leaf;
        has_map |= node->is_map;
        c->max_def += node->repetition != REQUIRED;
        if (node->repetition != REPEATED)
            continue;
        c->max_rep++;
        c->list_def = c->max_def;
    }
    if (has_map)
        c->odd = "it belongs to a map";
    else if (leaf->is_none)
        c->odd = "it has no type, because all of it is null";
}

static void footer_column(const footer_schema *s, const footer_node *leaf, ty_arena *a, parquet_column *c)
{
    *c = (parquet_column){.type = (parquet_type)leaf->type, .length = leaf->length, .scale = leaf->scale};
    footer_levels(s, leaf, c);
    c->logic = leaf->is_decimal                                        ? PARQUET_DECIMAL
               : leaf->is_float16                                      ? PARQUET_FLOAT16
               : leaf->is_unsigned && leaf->type <= (int)PARQUET_INT64 ? PARQUET_UNSIGNED
                                                                       : PARQUET_PLAIN;
    c->form = footer_form(leaf);
    c->name = footer_name(s, leaf, a);
}

static int footer_check_leaf(const footer_node *leaf, ty_error *err)
{
    bool may_be_decimal =
        leaf->type == PARQUET_INT32 || leaf->type == PARQUET_INT64 || leaf->type >= PARQUET_BYTE_ARRAY;
    if (!leaf->has_type || leaf->type < 0 || leaf->type >= PARQUET_N_TYPES)
        return footer_damaged("a column has no type", err);
    if (leaf->type == PARQUET_FIXED && (leaf->length < 1 || leaf->length > 1 << 20))
        return footer_damaged("values of fixed length have none", err);
    if (leaf->is_decimal &&
        (!may_be_decimal || leaf->scale < 0 || leaf->scale > 100 || (leaf->type == PARQUET_FIXED && leaf->length > 32)))
        return footer_damaged("a decimal has an impossible type or scale", err);
    if (leaf->is_float16 && (leaf->type != PARQUET_FIXED || leaf->length != 2))
        return footer_damaged("a float16 does not have two bytes", err);
    return 0;
}

/* Depth first, by a way of our own. */
static int footer_flatten(footer_schema *s, ty_arena *a, parquet_file *out, ty_error *err)
{
    out->column = TY_NEW_ARRAY(a, parquet_column, s->n + 1);
    s->way[0] = (footer_way){&s->node[0], s->node[0].n_children};
    s->depth = 1;
    for (int64_t i = 1; i < s->n; i++) {
        const footer_node *node = &s->node[i];
        while (s->depth > 0 && s->way[s->depth - 1].left == 0)
            s->depth--;
        if (s->depth == 0)
            return footer_damaged("its schema has more elements than it says", err);
        s->way[s->depth - 1].left--;
        if (node->repetition < REQUIRED || node->repetition > REPEATED || node->n_children < 0)
            return footer_damaged("its schema has an element that makes no sense", err);
        if (node->n_children > 0) {
            if (s->depth == FOOTER_MAX_DEPTH)
                return footer_damaged("its schema is nested too deeply", err);
            s->way[s->depth++] = (footer_way){node, node->n_children};
        } else if (footer_check_leaf(node, err) < 0) {
            return -1;
        } else {
            footer_column(s, node, a, &out->column[out->n_columns++]);
        }
    }
    for (int i = 0; i < s->depth; i++)
        if (s->way[i].left > 0)
            return footer_damaged("its schema has fewer elements than it says", err);
    return out->n_columns > 0 ? 0 : footer_damaged("it has no columns", err);
}

static int footer_schema_read(thrift *t, ty_arena *a, parquet_file *out, ty_error *err)
{
    int type;
    footer_schema s = {.n = thrift_list(t, &type)};
    if (s.n < 1 || s.n > FOOTER_MAX_COLUMNS || type != THRIFT_STRUCT)
        return s.n > FOOTER_MAX_COLUMNS
                   ? ty_error_set(err, TY_E_LIMIT, "the file has %lld columns, expected at most %d", (long long)s.n,
                                  FOOTER_MAX_COLUMNS)
                   : footer_damaged("it has no schema", err);
    footer_node *node = TY_NEW_ARRAY(a, footer_node, s.n);
    for (int64_t i = 0; i < s.n; i++)
        footer_node_read(t, a, &node[i]);
    s.node = node;
    return t->failed ? footer_damaged("its schema ends early", err) : footer_flatten(&s, a, out, err);
}

/* ---- row groups ---- */

static void footer_chunk_meta(thrift *t, parquet_chunk *c)
{
    thrift_field f = {0};
    int64_t data_at = 0, dictionary_at = 0;
    while (thrift_next(t, &f)) {
        if (f.id == 4 && f.type == THRIFT_I32)
            c->codec = (int)thrift_int(t);
        else if (f.id == 5 && f.type == THRIFT_I64)
            c->n_values = thrift_int(t);
        else if (f.id == 6 && f.type == THRIFT_I64)
            c->n_unpacked = thrift_int(t);
        else if (f.id == 7 && f.type == THRIFT_I64)
            c->n_bytes = thrift_int(t);
        else if (f.id == 9 && f.type == THRIFT_I64)
            data_at = thrift_int(t);
        else if (f.id == 11 && f.type == THRIFT_I64)
            dictionary_at = thrift_int(t);
        else
            thrift_skip(t, f.type);
    }
    c->at = dictionary_at > 0 && (dictionary_at < data_at || data_at <= 0) ? dictionary_at : data_at;
}

static void footer_chunk(thrift *t, parquet_chunk *c)
{
    thrift_field f = {0};
    size_t n;
    while (thrift_next(t, &f)) {
        if (f.id == 1 && f.type == THRIFT_BINARY) {
            thrift_binary(t, &n);
            c->is_elsewhere = n > 0;
        } else if (f.id == 3 && f.type == THRIFT_STRUCT) {
            footer_chunk_meta(t, c);
        } else {
            c->is_encrypted |= f.id == 8 || f.id == 9;
            thrift_skip(t, f.type);
        }
    }
}

static int footer_chunks(thrift *t, const parquet_file *file, ty_arena *a, parquet_group *g, ty_error *err)
{
    int type;
    int64_t n = thrift_list(t, &type);
    if (n != file->n_columns || type != THRIFT_STRUCT)
        return footer_damaged("a row group does not have all columns", err);
    g->chunk = TY_NEW_ARRAY(a, parquet_chunk, n);
    for (int64_t i = 0; i < n; i++)
        footer_chunk(t, &g->chunk[i]);
    return 0;
}

/* Bytes of chunks lie in the file; what they hold is seen when they are read. */
static int footer_check_group(const parquet_file *file, const parquet_group *g, ty_error *err)
{
    if (g->chunk == NULL || g->n_rows < 0)
        return footer_damaged("a row group has no columns or no rows", err);
    for (int i = 0; i < file->n_columns; i++) {
        const parquet_chunk *c = &g->chunk[i];
        bool fits =
            c->at >= 4 && c->n_bytes >= 0 && c->at <= (int64_t)file->n && c->n_bytes <= (int64_t)file->n - c->at;
        bool is_empty = g->n_rows == 0 && c->n_bytes == 0;
        if (!c->is_elsewhere && !c->is_encrypted && !is_empty && (!fits || c->n_values < 0))
            return footer_damaged("a column lies outside of the file", err);
    }
    return 0;
}

static int footer_groups(thrift *t, ty_arena *a, parquet_file *out, ty_error *err)
{
    int type;
    int64_t n = thrift_list(t, &type);
    if (n > 0 && (type != THRIFT_STRUCT || n > INT32_MAX || out->n_columns == 0))
        return footer_damaged("its row groups make no sense", err);
    out->group = TY_NEW_ARRAY(a, parquet_group, n + 1);
    out->n_groups = (int)n;
    for (int64_t i = 0; i < n && !t->failed; i++) {
        parquet_group *g = &out->group[i];
        thrift_field f = {0};
        while (thrift_next(t, &f)) {
            if (f.id == 1 && f.type == THRIFT_LIST) {
                if (footer_chunks(t, out, a, g, err) < 0)
                    return -1;
            } else if (f.id == 3 && f.type == THRIFT_I64) {
                g->n_rows = thrift_int(t);
            } else {
                thrift_skip(t, f.type);
            }
        }
        if (t->failed)
            return footer_damaged("a row group ends early", err);
        if (footer_check_group(out, g, err) < 0)
            return -1;
        if (__builtin_add_overflow(out->n_rows, g->n_rows, &out->n_rows))
            return footer_damaged("it has more rows than can be", err);
    }
    return 0;
}

static int footer_read(thrift *t, ty_arena *a, parquet_file *out, ty_error *err)
{
    thrift_field f = {0};
    int64_t n_rows = -1;
    while (thrift_next(t, &f)) {
        int rc = 0;
        if (f.id == 2 && f.type == THRIFT_LIST && out->column == NULL)
            rc = footer_schema_read(t, a, out, err);
        else if (f.id == 3 && f.type == THRIFT_I64)
            n_rows = thrift_int(t);
        else if (f.id == 4 && f.type == THRIFT_LIST && out->group == NULL)
            rc = footer_groups(t, a, out, err);
        else
            thrift_skip(t, f.type);
        if (rc < 0)
            return -1;
    }
    if (t->failed || out->column == NULL || out->group == NULL)
        return footer_damaged("it ends early", err);
    return n_rows == out->n_rows ? 0 : footer_damaged("its row groups do not have as many rows as it says", err);
}

size_t parquet_footer_bytes(const uint8_t tail[PARQUET_TAIL_BYTES], size_t n, ty_error *err)
{
    if (n < 4 + PARQUET_TAIL_BYTES || memcmp(tail + 4, "PAR1", 4) != 0) {
        footer_damaged("the file does not end with PAR1", err);
        return 0;
    }
    uint32_t length = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
    if (length <= n - 4 - PARQUET_TAIL_BYTES)
        return (size_t)length + PARQUET_TAIL_BYTES;
    footer_damaged("it is longer than the file", err);
    return 0;
}

int parquet_open_footer(const uint8_t *footer, size_t n_footer, size_t n, ty_arena *a, parquet_file *out, ty_error *err)
{
    *out = (parquet_file){.n = n};
    thrift t = {.p = footer, .end = footer + n_footer - PARQUET_TAIL_BYTES};
    return footer_read(&t, a, out, err);
}

int parquet_check_magic(const uint8_t *bytes, size_t n, ty_error *err)
{
    if (n >= 4 && memcmp(bytes, "PAR1", 4) == 0)
        return 0;
    if (n >= 4 && memcmp(bytes, "PARE", 4) == 0)
        return ty_error_set(err, TY_E_DATA, "the Parquet file is encrypted");
    return ty_error_set(err, TY_E_DATA, "the file is no Parquet: it does not begin with PAR1");
}

int parquet_open(const uint8_t *bytes, size_t n, ty_arena *a, parquet_file *out, ty_error *err)
{
    static const uint8_t none[PARQUET_TAIL_BYTES];
    *out = (parquet_file){.n = n};
    if (parquet_check_magic(bytes, n, err) < 0)
        return -1;
    size_t n_footer = parquet_footer_bytes(n < PARQUET_TAIL_BYTES ? none : bytes + n - PARQUET_TAIL_BYTES, n, err);
    if (n_footer == 0 || parquet_open_footer(bytes + n - n_footer, n_footer, n, a, out, err) < 0)
        return -1;
    out->bytes = bytes;
    return 0;
}
