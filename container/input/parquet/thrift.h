/* thrift.h - reads Thrift's compact protocol, in which Parquet's footer and page headers are written.
 *
 * Source: thrift/doc/specs/thrift-compact-protocol.md. A struct is fields, each with a number; what one does not know
 * is skipped. After a fault everything reads as zeros and ends, so that one look at `failed` is enough.
 *
 *     thrift_field f = {0};
 *     while (thrift_next(&t, &f))
 *         if (f.id == 3 && f.type == THRIFT_I64) rows = thrift_int(&t);
 *         else thrift_skip(&t, f.type);
 */
#ifndef TY_CONTAINER_INPUT_PARQUET_THRIFT_H
#define TY_CONTAINER_INPUT_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_I8 = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12
};

typedef struct thrift {
    const uint8_t *p, *end;
    bool failed;
} thrift;

typedef struct thrift_field {
    int id, type; /* zeroed at the beginning of a struct */
} thrift_field;

/* The next field of a struct; false: it has ended. A bool's value is its type: nothing of it is left to read. */
bool thrift_next(thrift *t, thrift_field *f);
/* The value of an I16, I32 or I64. */
int64_t thrift_int(thrift *t);
/* Of an I8. */
int thrift_byte(thrift *t);
/* Bytes that lie in the buffer. */
const uint8_t *thrift_binary(thrift *t, size_t *n);
/* How many elements follow, and of what type; they take a byte each at least, so there are no more than bytes. */
int64_t thrift_list(thrift *t, int *type);
/* Passes over a value. */
void thrift_skip(thrift *t, int type);

#endif
