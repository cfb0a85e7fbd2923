/* attr.h - the fields of ty_attr as a table, so that printing, parsing and cleaning need no list of their own.
 *
 * For compiler/ir and its tests; compiler/ops takes the names of the combines from here for its messages.
 */
#ifndef TY_COMPILER_IR_ATTR_H
#define TY_COMPILER_IR_ATTR_H

#include "compiler/ir/graph.h"

typedef enum ty_attr_kind {
    TY_ATTR_TYPE,   /* f32[2,3] */
    TY_ATTR_INT,    /* int64_t */
    TY_ATTR_COUNT,  /* uint32_t */
    TY_ATTR_MODE,   /* uint32_t: a ty_combine by name */
    TY_ATTR_AXES,   /* uint32_t: a mask, shown as a list */
    TY_ATTR_LIST,   /* int64_t[n] */
    TY_ATTR_NUMBER, /* double */
    TY_N_ATTR_KINDS
} ty_attr_kind;

typedef struct ty_attr_field {
    const char *name;
    ty_attr_kind kind;
    size_t offset; /* in ty_attr */
} ty_attr_field;

#define TY_N_ATTR_FIELDS 17
extern const ty_attr_field ty_attr_fields[TY_N_ATTR_FIELDS];
extern const char *const ty_combine_text[TY_SET + 1];

/* Bit i is set if the row's list of attributes names ty_attr_fields[i]. */
uint32_t ty_attr_mask(const char *attrs);
/* Zeroes what the mask does not name, and list entries from n on: attributes are compared as bytes. */
void ty_attr_clean(ty_attr *attr, uint32_t mask);

#endif
