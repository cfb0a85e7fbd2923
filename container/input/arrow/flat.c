/* flat.c - see flat.h. */
#include "container/input/arrow/flat.h"

#include <endian.h>
#include <string.h>

/* An unsigned number of so many bytes; 0 (and failed) outside. */
static uint64_t flat_number(flat *f, size_t at, size_t bytes)
{
    uint64_t v = 0;
    if (at > f->n || bytes > f->n - at) {
        f->failed = true;
        return 0;
    }
    memcpy(&v, f->p + at, bytes);
    return le64toh(v);
}

static flat_table flat_table_at(flat *f, size_t at)
{
    int64_t back = (int32_t)flat_number(f, at, 4), vtable = (int64_t)at - back;
    if (f->failed || at == 0 || vtable < 0 || (size_t)vtable > f->n) {
        f->failed = true;
        return (flat_table){0};
    }
    uint16_t n = (uint16_t)flat_number(f, (size_t)vtable, 2);
    if (n < 4 || n > f->n - (size_t)vtable) {
        f->failed = true;
        return (flat_table){0};
    }
    return (flat_table){.at = at, .vtable = (size_t)vtable, .n = n};
}

flat_table flat_root(flat *f)
{
    return flat_table_at(f, (size_t)flat_number(f, 0, 4));
}

/* Where a field lies; 0: it is left out. */
static size_t flat_field(flat *f, flat_table t, int field)
{
    size_t entry = 4 + 2 * (size_t)field;
    if (t.at == 0 || entry + 2 > t.n)
        return 0;
    size_t offset = (size_t)flat_number(f, t.vtable + entry, 2);
    return offset == 0 ? 0 : t.at + offset;
}

int64_t flat_int(flat *f, flat_table t, int field, size_t bytes, int64_t absent)
{
    size_t at = flat_field(f, t, field);
    if (at == 0)
        return absent;
    uint64_t v = flat_number(f, at, bytes);
    return bytes == 1 ? (int8_t)v : bytes == 2 ? (int16_t)v : bytes == 4 ? (int32_t)v : (int64_t)v;
}

/* What a field points at; 0: nothing. */
static size_t flat_target(flat *f, flat_table t, int field)
{
    size_t at = flat_field(f, t, field);
    return at == 0 ? 0 : at + (size_t)flat_number(f, at, 4);
}

flat_table flat_sub(flat *f, flat_table t, int field)
{
    size_t at = flat_target(f, t, field);
    return at == 0 ? (flat_table){0} : flat_table_at(f, at);
}

flat_vector flat_list(flat *f, flat_table t, int field, size_t each)
{
    size_t at = flat_target(f, t, field);
    if (at == 0)
        return (flat_vector){0};
    size_t n = (size_t)flat_number(f, at, 4);
    if (f->failed || n > (f->n - at - 4) / each) {
        f->failed = true;
        return (flat_vector){0};
    }
    return (flat_vector){.at = at + 4, .n = (int64_t)n};
}

const char *flat_text(flat *f, flat_table t, int field, ty_arena *a)
{
    flat_vector v = flat_list(f, t, field, 1);
    return v.n == 0 ? "" : ty_arena_strndup(a, (const char *)f->p + v.at, (size_t)v.n);
}

flat_table flat_element(flat *f, flat_vector v, int64_t i)
{
    size_t at = v.at + 4 * (size_t)i;
    return flat_table_at(f, at + (size_t)flat_number(f, at, 4));
}

int64_t flat_long(const flat *f, size_t at)
{
    uint64_t v;
    memcpy(&v, f->p + at, sizeof v);
    return (int64_t)le64toh(v);
}
