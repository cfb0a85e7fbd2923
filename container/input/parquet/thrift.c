/* thrift.c - see thrift.h. */
#include "container/input/parquet/thrift.h"

enum { THRIFT_MAX_DEPTH = 32, THRIFT_FIXED_DOUBLE = 8 };

static uint64_t thrift_fail(thrift *t)
{
    t->failed = true;
    t->p = t->end;
    return 0;
}

static uint64_t thrift_varint(thrift *t)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (t->p == t->end)
            return thrift_fail(t);
        uint8_t byte = *t->p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
    return thrift_fail(t);
}

int64_t thrift_int(thrift *t)
{
    uint64_t v = thrift_varint(t);
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

int thrift_byte(thrift *t)
{
    return t->p < t->end ? *t->p++ : (int)thrift_fail(t);
}

bool thrift_next(thrift *t, thrift_field *f)
{
    int head = thrift_byte(t);
    f->type = head & 15;
    if (f->type == 0 || t->failed)
        return false;
    int64_t id = head >> 4 ? f->id + (head >> 4) : thrift_int(t);
    if (t->failed || id < 0 || id > INT16_MAX || f->type > THRIFT_STRUCT) {
        thrift_fail(t);
        return false;
    }
    f->id = (int)id;
    return true;
}

const uint8_t *thrift_binary(thrift *t, size_t *n)
{
    uint64_t length = thrift_varint(t);
    const uint8_t *p = t->p;
    *n = 0;
    if (length > (uint64_t)(t->end - t->p)) {
        thrift_fail(t);
        return p;
    }
    *n = (size_t)length;
    t->p += length;
    return p;
}

int64_t thrift_list(thrift *t, int *type)
{
    int head = thrift_byte(t);
    uint64_t n = head >> 4 < 15 ? (uint64_t)(head >> 4) : thrift_varint(t);
    *type = head & 15;
    if (n == 0) /* of whatever: some write a type of 0 then */
        return 0;
    if (n > (uint64_t)(t->end - t->p) || *type == 0 || *type > THRIFT_STRUCT)
        return (int64_t)thrift_fail(t);
    return (int64_t)n;
}

static void thrift_pass(thrift *t, uint64_t n)
{
    if (n > (uint64_t)(t->end - t->p))
        thrift_fail(t);
    else
        t->p += n;
}

static void thrift_skip_at(thrift *t, int type, int depth);

/* Elements of a list are a byte where fields of a struct have their value in the type. */
static void thrift_skip_element(thrift *t, int type, int depth)
{
    if (type == THRIFT_TRUE || type == THRIFT_FALSE)
        thrift_pass(t, 1);
    else
        thrift_skip_at(t, type, depth);
}

static void thrift_skip_map(thrift *t, int depth)
{
    uint64_t n = thrift_varint(t);
    int types = n > 0 ? thrift_byte(t) : 0;
    for (uint64_t i = 0; i < n && !t->failed; i++) {
        thrift_skip_element(t, types >> 4, depth);
        thrift_skip_element(t, types & 15, depth);
    }
}

static void thrift_skip_list(thrift *t, int depth)
{
    int type;
    int64_t n = thrift_list(t, &type);
    for (int64_t i = 0; i < n && !t->failed; i++)
        thrift_skip_element(t, type, depth);
}

static void thrift_skip_struct(thrift *t, int depth)
{
    thrift_field f = {0};
    while (thrift_next(t, &f))
        thrift_skip_at(t, f.type, depth);
}

static void thrift_skip_at(thrift *t, int type, int depth)
{
    size_t n;
    if (depth > THRIFT_MAX_DEPTH)
        thrift_fail(t);
    else if (type == THRIFT_I8)
        thrift_pass(t, 1);
    else if (type == THRIFT_I16 || type == THRIFT_I32 || type == THRIFT_I64)
        thrift_varint(t);
    else if (type == THRIFT_DOUBLE)
        thrift_pass(t, THRIFT_FIXED_DOUBLE);
    else if (type == THRIFT_BINARY)
        thrift_binary(t, &n);
    else if (type == THRIFT_LIST || type == THRIFT_SET)
        thrift_skip_list(t, depth + 1);
    else if (type == THRIFT_MAP)
        thrift_skip_map(t, depth + 1);
    else if (type == THRIFT_STRUCT)
        thrift_skip_struct(t, depth + 1);
    else if (type != THRIFT_TRUE && type != THRIFT_FALSE)
        thrift_fail(t);
}

void thrift_skip(thrift *t, int type)
{
    thrift_skip_at(t, type, 0);
}
