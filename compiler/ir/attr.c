/* attr.c - the table of attribute fields. */
#include "compiler/ir/attr.h"

#include <stddef.h>
#include <string.h>

const ty_attr_field ty_attr_fields[TY_N_ATTR_FIELDS] = {
    {"type", TY_ATTR_TYPE, offsetof(ty_attr, type)},
    {"index", TY_ATTR_INT, offsetof(ty_attr, index)},
    {"axis", TY_ATTR_INT, offsetof(ty_attr, axis)},
    {"axes", TY_ATTR_AXES, offsetof(ty_attr, axes)},
    {"mode", TY_ATTR_MODE, offsetof(ty_attr, mode)},
    {"flags", TY_ATTR_COUNT, offsetof(ty_attr, flags)},
    {"n", TY_ATTR_COUNT, offsetof(ty_attr, n)},
    {"lo", TY_ATTR_LIST, offsetof(ty_attr, lo)},
    {"hi", TY_ATTR_LIST, offsetof(ty_attr, hi)},
    {"step", TY_ATTR_LIST, offsetof(ty_attr, step)},
    {"size", TY_ATTR_LIST, offsetof(ty_attr, size)},
    {"dil", TY_ATTR_LIST, offsetof(ty_attr, dil)},
    {"groups", TY_ATTR_INT, offsetof(ty_attr, groups)},
    {"value", TY_ATTR_NUMBER, offsetof(ty_attr, value)},
    {"value2", TY_ATTR_NUMBER, offsetof(ty_attr, value2)},
    {"replicas", TY_ATTR_INT, offsetof(ty_attr, replicas)},
    {"dropped", TY_ATTR_INT, offsetof(ty_attr, dropped)},
};

const char *const ty_combine_text[TY_SET + 1] = {"sum", "max", "min", "prod", "set"};

static const size_t attr_kind_bytes[TY_N_ATTR_KINDS] = {
    [TY_ATTR_TYPE] = sizeof(ty_type),   [TY_ATTR_INT] = sizeof(int64_t),
    [TY_ATTR_COUNT] = sizeof(uint32_t), [TY_ATTR_MODE] = sizeof(uint32_t),
    [TY_ATTR_AXES] = sizeof(uint32_t),  [TY_ATTR_LIST] = TY_MAX_RANK * sizeof(int64_t),
    [TY_ATTR_NUMBER] = sizeof(double),
};

uint32_t ty_attr_mask(const char *attrs)
{
    uint32_t mask = 0;
    while (*attrs) {
        size_t len = strcspn(attrs, " ");
        for (int i = 0; i < TY_N_ATTR_FIELDS; i++)
            if (strncmp(ty_attr_fields[i].name, attrs, len) == 0 && ty_attr_fields[i].name[len] == 0)
                mask |= 1u << i;
        attrs += len;
        attrs += strspn(attrs, " ");
    }
    return mask;
}

void ty_attr_clean(ty_attr *attr, uint32_t mask)
{
    for (int i = 0; i < TY_N_ATTR_FIELDS; i++) {
        const ty_attr_field *f = &ty_attr_fields[i];
        char *at = (char *)attr + f->offset;
        if (!(mask >> i & 1))
            memset(at, 0, attr_kind_bytes[f->kind]);
        else if (f->kind == TY_ATTR_LIST && attr->n < TY_MAX_RANK)
            memset(at + attr->n * sizeof(int64_t), 0, (TY_MAX_RANK - attr->n) * sizeof(int64_t));
    }
    if (mask & 1) { /* unused dims are zero, so that equal types are equal bytes */
        memset(attr->type.pad, 0, sizeof attr->type.pad);
        for (int i = attr->type.rank; i < TY_MAX_RANK; i++)
            attr->type.dim[i] = 0;
    }
}
