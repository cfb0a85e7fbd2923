/* wire.c - protobuf's wire format.
 *
 * Each message is walked twice: the first walk counts repeated fields, so that their arrays are allocated once and no
 * number in the file is believed before the bytes behind it were seen; the second fills the struct.
 */
#include "compiler/import/wire.h"

#include <stdbool.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_COUNTED = 2, WIRE_FIXED32 = 5, MAX_FIELDS = 24 };

/* ---- items ------------------------------------------------------------------------------------------------------ */

static int read_varint(ty_bytes *in, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < in->n && i < 10; i++) {
        uint8_t byte = in->data[i];
        if (i == 9 && byte > 1)
            return -1;
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            in->data += i + 1;
            in->n -= i + 1;
            *out = v;
            return 0;
        }
    }
    return -1;
}

static int take_body(ty_bytes *in, uint64_t n_bytes, ty_bytes *body, ty_error *err)
{
    if (n_bytes > in->n)
        return ty_error_set(err, TY_E_MODEL_FILE, "a field claims %llu bytes where %zu are left",
                            (unsigned long long)n_bytes, in->n);
    *body = (ty_bytes){in->data, (size_t)n_bytes};
    in->data += n_bytes;
    in->n -= (size_t)n_bytes;
    return 0;
}

int ty_wire_next(ty_bytes *in, ty_wire_item *item, ty_error *err)
{
    if (in->n == 0)
        return 0;
    const uint8_t *start = in->data;
    uint64_t key;
    if (read_varint(in, &key) < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "a field key is cut short or longer than 10 bytes");
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return ty_error_set(err, TY_E_MODEL_FILE, "field number %llu is not allowed", (unsigned long long)(key >> 3));
    item->number = (uint32_t)(key >> 3);
    item->type = (uint32_t)(key & 7);
    item->varint = 0;
    item->body = (ty_bytes){in->data, 0};
    uint64_t n_bytes = 0;
    int rc = 0;
    switch (item->type) {
    case WIRE_VARINT:
        if (read_varint(in, &item->varint) < 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "a number is cut short or longer than 10 bytes");
        break;
    case WIRE_FIXED64:
        rc = take_body(in, 8, &item->body, err);
        break;
    case WIRE_FIXED32:
        rc = take_body(in, 4, &item->body, err);
        break;
    case WIRE_COUNTED:
        if (read_varint(in, &n_bytes) < 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "a length is cut short or longer than 10 bytes");
        rc = take_body(in, n_bytes, &item->body, err);
        break;
    default:
        return ty_error_set(err, TY_E_MODEL_FILE, "wire type %u is not allowed", item->type);
    }
    item->whole = (ty_bytes){start, (size_t)(in->data - start)};
    return rc < 0 ? -1 : 1;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

typedef struct reader {
    ty_arena *arena;
    size_t max_bytes;
    const uint8_t *start; /* of the whole input, for offsets in messages */
    size_t n_total;
    ty_error *err;
} reader;

/* What the first walk learned of one field. */
typedef struct field_count {
    size_t n;        /* elements of a repeated field; times a singular one stands there */
    size_t n_pieces; /* keys */
    size_t n_bytes;  /* of the bodies, for merging */
    size_t filled;
} field_count;

static int reader_fail(reader *r, const ty_wire_message *m, const char *field, const uint8_t *at, const char *what)
{
    ty_error_set(r->err, TY_E_MODEL_FILE, "%s%s%s: %s", m->name, field ? "." : "", field ? field : "", what);
    if (at >= r->start && at <= r->start + r->n_total)
        ty_error_at(r->err, "byte %zu", (size_t)(at - r->start));
    return -1;
}

static void *reader_alloc(reader *r, const ty_wire_message *m, size_t n, size_t elem_bytes)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, elem_bytes, &n_bytes) || r->arena->used_bytes > r->max_bytes ||
        n_bytes > r->max_bytes - r->arena->used_bytes) {
        ty_error_set(r->err, TY_E_LIMIT, "%s: its structure needs more than %zu bytes of memory", m->name,
                     r->max_bytes);
        return NULL;
    }
    return ty_arena_alloc(r->arena, n_bytes);
}

static bool kind_is_repeated(ty_wire_kind kind)
{
    return kind >= TY_WIRE_INTS;
}

static size_t kind_elem_bytes(const ty_wire_field *f)
{
    switch (f->kind) {
    case TY_WIRE_INTS:
        return sizeof(int64_t);
    case TY_WIRE_FIXED32S:
        return 4;
    case TY_WIRE_FIXED64S:
        return 8;
    case TY_WIRE_TEXTS:
        return sizeof(const char *);
    case TY_WIRE_BYTESES:
        return sizeof(ty_bytes);
    case TY_WIRE_SUBS:
        return f->sub->size;
    default:
        return 0;
    }
}

/* The wire type of one element. */
static uint32_t kind_wire_type(ty_wire_kind kind)
{
    switch (kind) {
    case TY_WIRE_INT:
    case TY_WIRE_INTS:
        return WIRE_VARINT;
    case TY_WIRE_FLOAT:
    case TY_WIRE_FIXED32S:
        return WIRE_FIXED32;
    case TY_WIRE_FIXED64S:
        return WIRE_FIXED64;
    default:
        return WIRE_COUNTED;
    }
}

static int find_field(const ty_wire_message *m, uint32_t number)
{
    for (int i = 0; i < m->n_fields; i++)
        if (m->fields[i].number == number)
            return i;
    return -1;
}

static bool is_packed(const ty_wire_field *f, const ty_wire_item *item)
{
    return item->type == WIRE_COUNTED &&
           (f->kind == TY_WIRE_INTS || f->kind == TY_WIRE_FIXED32S || f->kind == TY_WIRE_FIXED64S);
}

/* Number of varints in packed bytes: those without the continuation bit. The last byte must be one. */
static int count_varints(ty_bytes b, size_t *n)
{
    for (size_t i = 0; i < b.n; i++)
        *n += !(b.data[i] & 0x80);
    return b.n > 0 && (b.data[b.n - 1] & 0x80) ? -1 : 0;
}

static int count_item(reader *r, const ty_wire_message *m, const ty_wire_field *f, const ty_wire_item *item,
                      field_count *count)
{
    count->n_pieces++;
    count->n_bytes += item->body.n;
    if (!is_packed(f, item)) {
        if (item->type != kind_wire_type(f->kind))
            return reader_fail(r, m, f->name, item->whole.data, "has the wrong wire type");
        count->n++;
        return 0;
    }
    if (f->kind == TY_WIRE_INTS) {
        if (count_varints(item->body, &count->n) < 0)
            return reader_fail(r, m, f->name, item->whole.data, "its packed numbers are cut short");
        return 0;
    }
    size_t width = kind_elem_bytes(f);
    if (item->body.n % width)
        return reader_fail(r, m, f->name, item->whole.data, "its packed length is no multiple of the element size");
    count->n += item->body.n / width;
    return 0;
}

static int count_fields(reader *r, const ty_wire_message *m, ty_bytes in, field_count *counts)
{
    ty_wire_item item;
    for (;;) {
        const uint8_t *at = in.data;
        int rc = ty_wire_next(&in, &item, r->err);
        if (rc == 0)
            return 0;
        if (rc < 0) {
            ty_error_wrap(r->err, "%s", m->name);
            if (at >= r->start && at <= r->start + r->n_total)
                ty_error_at(r->err, "byte %zu", (size_t)(at - r->start));
            return -1;
        }
        int i = find_field(m, item.number);
        if (i >= 0 && count_item(r, m, &m->fields[i], &item, &counts[i]) < 0)
            return -1;
    }
}

static int alloc_lists(reader *r, const ty_wire_message *m, const field_count *counts, char *out)
{
    for (int i = 0; i < m->n_fields; i++) {
        const ty_wire_field *f = &m->fields[i];
        if (!kind_is_repeated(f->kind) || counts[i].n == 0)
            continue;
        ty_wire_list *list = (ty_wire_list *)(void *)(out + f->offset);
        list->n = counts[i].n;
        bool in_place = (f->kind == TY_WIRE_FIXED32S || f->kind == TY_WIRE_FIXED64S) && counts[i].n_pieces == 1;
        if (!in_place && !(list->data = reader_alloc(r, m, list->n, kind_elem_bytes(f))))
            return -1;
    }
    return 0;
}

static const char *copy_text(reader *r, const ty_wire_message *m, const ty_wire_field *f, ty_bytes b)
{
    if (b.n && memchr(b.data, 0, b.n)) {
        reader_fail(r, m, f->name, b.data, "a name holds a zero byte");
        return NULL;
    }
    char *text = reader_alloc(r, m, b.n + 1, 1);
    if (text && b.n)
        memcpy(text, b.data, b.n);
    return text;
}

static int read_message(reader *r, const ty_wire_message *m, ty_bytes in, int depth, char *out);

/* Each piece must be a message of its own: no field may cross from one into the next. */
static int check_fields(reader *r, const ty_wire_message *m, const ty_wire_field *f, ty_bytes body)
{
    ty_wire_item item;
    int rc;
    while ((rc = ty_wire_next(&body, &item, r->err)) > 0)
        continue;
    return rc < 0 ? reader_fail(r, m, f->name, body.data, "one of its pieces is damaged") : 0;
}

/* A singular sub-message: read at its last piece from the concatenation of all of them. */
static int read_sub(reader *r, const ty_wire_message *m, const ty_wire_field *f, const ty_wire_item *item,
                    field_count *count, ty_bytes *merged, int depth, char *out)
{
    ty_bytes body = item->body;
    if (count->n_pieces > 1) {
        if (!merged->data) {
            merged->data = reader_alloc(r, m, count->n_bytes, 1);
            if (!merged->data)
                return -1;
        }
        if (check_fields(r, m, f, body) < 0)
            return -1;
        memcpy((uint8_t *)(uintptr_t)merged->data + merged->n, body.data, body.n);
        merged->n += body.n;
        if (++count->filled < count->n_pieces)
            return 0;
        body = *merged;
    }
    void *sub = reader_alloc(r, m, 1, f->sub->size);
    if (!sub)
        return -1;
    memcpy(out + f->offset, &sub, sizeof sub);
    return read_message(r, f->sub, body, depth + 1, sub);
}

static int fill_packed(const ty_wire_field *f, const ty_wire_item *item, field_count *count, char *base)
{
    if (f->kind != TY_WIRE_INTS) {
        size_t width = kind_elem_bytes(f);
        memcpy(base + count->filled * width, item->body.data, item->body.n);
        count->filled += item->body.n / width;
        return 0;
    }
    for (ty_bytes rest = item->body; rest.n > 0; count->filled++) {
        uint64_t v;
        if (read_varint(&rest, &v) < 0)
            return -1;
        memcpy(base + count->filled * sizeof v, &v, sizeof v);
    }
    return 0;
}

static int fill_repeated(reader *r, const ty_wire_message *m, const ty_wire_field *f, const ty_wire_item *item,
                         field_count *count, int depth, char *out)
{
    ty_wire_list *list = (ty_wire_list *)(void *)(out + f->offset);
    bool is_fixed = f->kind == TY_WIRE_FIXED32S || f->kind == TY_WIRE_FIXED64S;
    if (is_fixed && count->n_pieces == 1) {
        list->data = item->body.data;
        return 0;
    }
    char *base = (char *)(uintptr_t)list->data;
    if (count->n == 0)
        return 0;
    if (is_packed(f, item)) {
        if (fill_packed(f, item, count, base) < 0)
            return reader_fail(r, m, f->name, item->whole.data, "a packed number is longer than 10 bytes");
        return 0;
    }
    char *slot = base + count->filled++ * kind_elem_bytes(f);
    const char *text;
    switch (f->kind) {
    case TY_WIRE_INTS:
        memcpy(slot, &item->varint, sizeof item->varint);
        return 0;
    case TY_WIRE_BYTESES:
        memcpy(slot, &item->body, sizeof item->body);
        return 0;
    case TY_WIRE_SUBS:
        return read_message(r, f->sub, item->body, depth + 1, slot);
    case TY_WIRE_TEXTS:
        text = copy_text(r, m, f, item->body);
        memcpy(slot, &text, sizeof text);
        return text ? 0 : -1;
    default:
        memcpy(slot, item->body.data, item->body.n);
        return 0;
    }
}

static int fill_singular(reader *r, const ty_wire_message *m, const ty_wire_field *f, const ty_wire_item *item,
                         char *out)
{
    const char *text;
    switch (f->kind) {
    case TY_WIRE_INT:
        memcpy(out + f->offset, &item->varint, sizeof(int64_t));
        return 0;
    case TY_WIRE_FLOAT:
        memcpy(out + f->offset, item->body.data, sizeof(float));
        return 0;
    case TY_WIRE_BYTES:
        memcpy(out + f->offset, &item->body, sizeof item->body);
        return 0;
    default:
        text = copy_text(r, m, f, item->body);
        memcpy(out + f->offset, &text, sizeof text);
        return text ? 0 : -1;
    }
}

/* Names that are not in the input read as "". */
static void default_texts(const ty_wire_message *m, char *out)
{
    static const char *const empty = "";
    for (int i = 0; i < m->n_fields; i++)
        if (m->fields[i].kind == TY_WIRE_TEXT)
            memcpy(out + m->fields[i].offset, &empty, sizeof empty);
}

static int fill_fields(reader *r, const ty_wire_message *m, ty_bytes in, field_count *counts, int depth, char *out)
{
    ty_bytes merged[MAX_FIELDS] = {{0}};
    ty_wire_item item;
    while (ty_wire_next(&in, &item, r->err) > 0) {
        int i = find_field(m, item.number);
        if (i < 0)
            continue;
        const ty_wire_field *f = &m->fields[i];
        if (f->present_offset)
            memcpy(out + f->present_offset, &(bool){true}, sizeof(bool));
        int rc;
        if (f->kind == TY_WIRE_SUB)
            rc = read_sub(r, m, f, &item, &counts[i], &merged[i], depth, out);
        else if (kind_is_repeated(f->kind))
            rc = fill_repeated(r, m, f, &item, &counts[i], depth, out);
        else
            rc = fill_singular(r, m, f, &item, out);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int read_message(reader *r, const ty_wire_message *m, ty_bytes in, int depth, char *out)
{
    if (depth > TY_WIRE_MAX_DEPTH)
        return reader_fail(r, m, NULL, in.data, "messages nest deeper than 100 levels");
    if (m->n_fields > MAX_FIELDS)
        return ty_error_set(r->err, TY_E_INTERNAL, "%s: table has more than %d fields", m->name, MAX_FIELDS);
    field_count counts[MAX_FIELDS] = {{0}};
    if (m->raw_offset != TY_WIRE_NO_RAW)
        memcpy(out + m->raw_offset, &in, sizeof in);
    default_texts(m, out);
    if (count_fields(r, m, in, counts) < 0 || alloc_lists(r, m, counts, out) < 0)
        return -1;
    return fill_fields(r, m, in, counts, depth, out);
}

int ty_wire_read(const ty_wire_message *message, ty_bytes in, ty_arena *arena, size_t max_bytes, void *out,
                 ty_error *err)
{
    reader r = {arena, max_bytes, in.data, in.n, err};
    return read_message(&r, message, in, 1, out);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

size_t ty_wire_varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v > 0x7f; v >>= 7)
        n++;
    return n;
}

size_t ty_wire_put_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    for (; v > 0x7f; v >>= 7)
        out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    return n;
}

size_t ty_wire_put_head(uint8_t *out, uint32_t number, uint64_t n_body_bytes)
{
    size_t n = ty_wire_put_varint(out, (uint64_t)number << 3 | WIRE_COUNTED);
    return n + ty_wire_put_varint(out + n, n_body_bytes);
}

size_t ty_wire_head_bytes(uint32_t number, uint64_t n_body_bytes)
{
    return ty_wire_varint_bytes((uint64_t)number << 3 | WIRE_COUNTED) + ty_wire_varint_bytes(n_body_bytes);
}
