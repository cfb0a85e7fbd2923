/* wire.h - protobuf's wire format, read by tables without copying, and written piece by piece.
 *
 * A message type is a table of fields; ty_wire_read() fills a C struct from bytes as the table says. Byte strings and
 * packed floats stay where they are (the struct points into the input); names, varints and sub-messages go into an
 * arena.
 *
 *     static const ty_wire_field opset_fields[] = {
 *         {1, TY_WIRE_TEXT, offsetof(struct opset, domain), "domain", NULL},
 *         {2, TY_WIRE_INT, offsetof(struct opset, version), "version", NULL},
 *     };
 *     static const ty_wire_message opset_message = TY_WIRE_MESSAGE("OperatorSetIdProto", struct opset, opset_fields);
 *
 * The input is foreign: every length is checked against its enclosing message, nesting ends at 100 levels, memory is
 * bounded by a limit the caller states, groups and wire types 6 and 7 are refused, and every refusal names message,
 * field and byte. Unknown fields are skipped. A scalar that stands twice: the last one counts. A sub-message that
 * stands twice is merged (protobuf defines that as the concatenation of both encodings). Repeated numbers are accepted
 * packed, unpacked or mixed.
 */
#ifndef TY_COMPILER_IMPORT_WIRE_H
#define TY_COMPILER_IMPORT_WIRE_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define TY_WIRE_MAX_DEPTH 100

/* A slice of the input; not owned. */
typedef struct ty_bytes {
    const uint8_t *data;
    size_t n;
} ty_bytes;

/* Repeated fields in a struct. `data` of fixed-width elements may be unaligned: read them with memcpy. */
typedef struct ty_wire_list {
    const void *data; /* n elements of the kind's element type */
    size_t n;
} ty_wire_list;

typedef enum ty_wire_kind {
    TY_WIRE_INT,      /* int64_t: any varint; 32-bit ones arrive sign-extended */
    TY_WIRE_FLOAT,    /* float */
    TY_WIRE_TEXT,     /* const char *, NUL-terminated copy, never NULL once read ("" if absent); no NUL inside */
    TY_WIRE_BYTES,    /* ty_bytes in the input */
    TY_WIRE_SUB,      /* pointer to the sub-message's struct, NULL if absent */
    TY_WIRE_INTS,     /* list of int64_t, in the arena */
    TY_WIRE_FIXED32S, /* list of 4-byte elements, in the input if packed in one piece */
    TY_WIRE_FIXED64S, /* list of 8-byte elements, likewise */
    TY_WIRE_TEXTS,    /* list of const char * */
    TY_WIRE_BYTESES,  /* list of ty_bytes */
    TY_WIRE_SUBS,     /* list of sub-message structs */
} ty_wire_kind;

struct ty_wire_message;

typedef struct ty_wire_field {
    uint32_t number;
    ty_wire_kind kind;
    size_t offset;                     /* of the member in the struct */
    const char *name;                  /* for messages to people */
    const struct ty_wire_message *sub; /* SUB and SUBS */
    size_t present_offset;             /* of a bool set when the field is in the input; 0: nobody asks */
} ty_wire_field;

typedef struct ty_wire_message {
    const char *name;
    size_t size; /* of the struct */
    const ty_wire_field *fields;
    int n_fields;
    size_t raw_offset; /* of a ty_bytes that receives the message's own bytes; (size_t)-1: none */
} ty_wire_message;

#define TY_WIRE_NO_RAW        ((size_t)-1)
#define TY_WIRE_COUNT(fields) ((int)(sizeof(fields) / sizeof((fields)[0])))

/* Reads one message into `out` (zeroed, message->size bytes). Arena memory above max_bytes is refused. Pointers into
 * `in` stay valid as long as the input. Error place: "byte OFFSET". */
int ty_wire_read(const ty_wire_message *message, ty_bytes in, ty_arena *arena, size_t max_bytes, void *out,
                 ty_error *err);

/* One field of a message as it stands, for programs that walk a message themselves. */
typedef struct ty_wire_item {
    uint32_t number;
    uint32_t type;   /* 0 varint, 1 eight bytes, 2 counted bytes, 5 four bytes */
    uint64_t varint; /* type 0 */
    ty_bytes body;   /* types 1, 2, 5: the payload without key and length */
    ty_bytes whole;  /* key, length and payload */
} ty_wire_item;

/* Takes the next field off the front of *in. 1: there was one; 0: the end; -1: damaged. */
int ty_wire_next(ty_bytes *in, ty_wire_item *item, ty_error *err);

/* Writing: bytes of a varint, and the pieces of a field's head. `out` has room for TY_WIRE_HEAD_BYTES. */
#define TY_WIRE_HEAD_BYTES 20
size_t ty_wire_varint_bytes(uint64_t v);
size_t ty_wire_put_varint(uint8_t *out, uint64_t v);
/* Key and length of a counted field; returns bytes written. */
size_t ty_wire_put_head(uint8_t *out, uint32_t number, uint64_t n_body_bytes);
size_t ty_wire_head_bytes(uint32_t number, uint64_t n_body_bytes);

#endif
