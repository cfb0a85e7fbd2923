/* text_print.c - a graph as text. The language is described in IR.md; text_parse.c reads it back. */
#include "compiler/ir/text.h"

#include "compiler/ir/attr.h"
#include "compiler/ir/storage.h"
#include "compiler/ir/words.h"
#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const ty_role_text[TY_N_STATE_ROLES] = {"param", "buffer", "grad", "moment", "counter"};
const ty_tape_word ty_tape_words[TY_N_TAPES] = {{"micro", TY_TAPE_MICRO},
                                                {"last", TY_TAPE_LAST},
                                                {"eval", TY_TAPE_EVAL},
                                                {"init", TY_TAPE_INIT},
                                                {"rows", TY_TAPE_ROWS}};

static void print_string(ty_buf *out, const char *s)
{
    ty_buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            ty_buf_addf(out, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7f)
            ty_buf_addf(out, "\\x%02x", (unsigned char)*s);
        else
            ty_buf_addc(out, *s);
    }
    ty_buf_addc(out, '"');
}

static void print_type(ty_buf *out, const ty_type *t)
{
    char text[160];
    ty_buf_adds(out, ty_type_text(t, text, sizeof text));
}

static void print_tapes(ty_buf *out, uint32_t tapes)
{
    const char *between = " ";
    for (int i = 0; i < TY_N_TAPES; i++) {
        if (!(tapes & ty_tape_words[i].tape))
            continue;
        ty_buf_addf(out, "%s%s", between, ty_tape_words[i].text);
        between = "|";
    }
}

static void print_value(const ty_graph *g, ty_buf *out, ty_val v)
{
    if (v == TY_NONE)
        ty_buf_addc(out, '_');
    else if (ty_graph_node(g, ty_val_node(v))->n_res > 1)
        ty_buf_addf(out, "%%%u:%u", ty_val_node(v), ty_val_result(v));
    else
        ty_buf_addf(out, "%%%u", ty_val_node(v));
}

/* ---- constants ---- */

static void print_bytes(ty_buf *out, const void *data, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = data;
    ty_buf_adds(out, "x\"");
    while (n > 0) {
        size_t chunk = n < 4096 ? n : 4096;
        char *to = ty_buf_reserve(out, 2 * chunk);
        if (!to)
            return;
        for (size_t i = 0; i < chunk; i++) {
            to[2 * i] = digits[p[i] >> 4];
            to[2 * i + 1] = digits[p[i] & 15];
        }
        out->len += 2 * chunk;
        p += chunk;
        n -= chunk;
    }
    ty_buf_adds(out, "\"");
}

/* C99 hex; a NaN is not exact as a number, so a constant with one is printed as bytes. */
static void print_number(ty_buf *out, double v)
{
    if (isinf(v))
        ty_buf_adds(out, v < 0 ? "-inf" : "inf");
    else
        ty_buf_addf(out, "%a", v);
}

static bool print_has_nan(const ty_ref *r, int64_t n)
{
    for (int64_t k = 0; r->f && k < n; k++)
        if (isnan(r->f[k]))
            return true;
    return false;
}

static void print_data(ty_buf *out, const ty_type *type, const void *data, bool elide_large)
{
    int64_t n = ty_type_elems(type);
    double f[TEXT_LISTED_ELEMS];
    int64_t i[TEXT_LISTED_ELEMS];
    ty_ref r = {.type = *type};
    if (n > TEXT_LISTED_ELEMS && elide_large) {
        ty_buf_adds(out, "...");
        return;
    }
    if (ty_dtype_is_float((ty_dtype)type->dtype))
        r.f = f;
    else
        r.i = i;
    if (n <= TEXT_LISTED_ELEMS)
        ty_ref_load(&r, data);
    if (n > TEXT_LISTED_ELEMS || print_has_nan(&r, n)) {
        print_bytes(out, data, ty_type_bytes(type));
        return;
    }
    ty_buf_addc(out, '[');
    for (int64_t k = 0; k < n; k++) {
        if (k > 0)
            ty_buf_addc(out, ' ');
        if (r.f)
            print_number(out, r.f[k]);
        else if (type->dtype == TY_U64)
            ty_buf_addf(out, "%" PRIu64, (uint64_t)r.i[k]);
        else
            ty_buf_addf(out, "%" PRId64, r.i[k]);
    }
    ty_buf_addc(out, ']');
}

/* ---- attributes ---- */

static void print_axes(ty_buf *out, uint32_t axes)
{
    const char *between = "";
    ty_buf_addc(out, '[');
    for (int i = 0; i < 32; i++) {
        if (!(axes >> i & 1))
            continue;
        ty_buf_addf(out, "%s%d", between, i);
        between = " ";
    }
    ty_buf_addc(out, ']');
}

static void print_list(ty_buf *out, const int64_t *list, uint32_t n)
{
    ty_buf_addc(out, '[');
    for (uint32_t i = 0; i < n; i++)
        ty_buf_addf(out, "%s%" PRId64, i > 0 ? " " : "", list[i]);
    ty_buf_addc(out, ']');
}

static void print_field(ty_buf *out, const ty_attr *attr, const ty_attr_field *f)
{
    const void *at = (const char *)attr + f->offset;
    ty_buf_addf(out, "%s=", f->name);
    switch (f->kind) {
    case TY_ATTR_TYPE:
        print_type(out, at);
        break;
    case TY_ATTR_INT:
        ty_buf_addf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case TY_ATTR_COUNT:
        ty_buf_addf(out, "%" PRIu32, *(const uint32_t *)at);
        break;
    case TY_ATTR_MODE:
        ty_buf_adds(out, attr->mode <= TY_SET ? ty_combine_text[attr->mode] : "?");
        break;
    case TY_ATTR_AXES:
        print_axes(out, attr->axes);
        break;
    case TY_ATTR_LIST:
        print_list(out, at, attr->n);
        break;
    case TY_ATTR_NUMBER:
        isnan(*(const double *)at) ? ty_buf_adds(out, "nan") : (print_number(out, *(const double *)at), 0);
    case TY_N_ATTR_KINDS:
        break;
    }
}

/* Number of a const: where its data lie in memory; no part of the language. */
static uint32_t print_attr_mask(ty_op op)
{
    return op == TY_OP_CONST ? ty_attr_mask("type") : ty_attr_mask(ty_op_row_of(op)->attrs);
}

void ty_graph_print_attr(const ty_graph *g, uint32_t id, ty_buf *out)
{
    uint32_t mask = print_attr_mask(ty_graph_op(g, id));
    const char *before = " {";
    for (int i = 0; i < TY_N_ATTR_FIELDS; i++) {
        if (!(mask >> i & 1))
            continue;
        ty_buf_adds(out, before);
        print_field(out, ty_graph_attr(g, id), &ty_attr_fields[i]);
        before = " ";
    }
    if (mask)
        ty_buf_addc(out, '}');
}

/* ---- lines ---- */

static void print_state(const ty_graph *g, ty_buf *out, int i, bool elide_large)
{
    const ty_state *s = ty_graph_state(g, i);
    ty_buf_addf(out, "state %d ", i);
    print_string(out, s->name);
    ty_buf_addf(out, " %s ", ty_role_text[s->role]);
    print_type(out, &s->type);
    ty_buf_adds(out, " {");
    for (int k = 0; k < s->n_segments; k++) {
        ty_buf_adds(out, k > 0 ? " ; " : " ");
        print_string(out, s->segments[k].name);
        ty_buf_addc(out, ' ');
        print_type(out, &s->segments[k].type);
        ty_buf_addf(out, " %" PRId64, s->segments[k].offset);
        if (s->init && s->init[k]) {
            ty_buf_adds(out, " = ");
            print_data(out, &s->segments[k].type, s->init[k], elide_large);
        }
    }
    ty_buf_adds(out, " }\n");
}

static void print_node(const ty_graph *g, ty_buf *out, uint32_t id, bool elide_large)
{
    const ty_node *n = ty_graph_node(g, id);
    ty_buf_addf(out, "%%%u = %s(", id, ty_op_row_of((ty_op)n->op)->text);
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (k > 0)
            ty_buf_adds(out, ", ");
        print_value(g, out, ty_graph_in(g, id, (int)k));
    }
    ty_buf_addc(out, ')');
    ty_graph_print_attr(g, id, out);
    if (n->op == TY_OP_CONST) {
        ty_val v = ty_val_make(id, 0);
        ty_buf_adds(out, " = ");
        print_data(out, ty_graph_type(g, v), ty_graph_const_data(g, v), elide_large);
    }
    for (uint32_t r = 0; r < n->n_res; r++) {
        ty_buf_adds(out, r > 0 ? ", " : " : ");
        print_type(out, ty_graph_type(g, ty_val_make(id, r)));
    }
}

static void print_origin(const ty_graph *g, ty_buf *out, uint32_t id)
{
    if (*ty_graph_origin_of(g, id)) {
        ty_buf_adds(out, " @");
        print_string(out, ty_graph_origin_of(g, id));
    }
    ty_buf_addc(out, '\n');
}

void ty_graph_print_node(const ty_graph *g, uint32_t id, ty_buf *out)
{
    print_node(g, out, id, true);
}

static void print_ends(const ty_graph *g, ty_buf *out)
{
    for (int i = 0; i < ty_graph_n_outputs(g); i++) {
        ty_buf_adds(out, "output ");
        print_string(out, ty_graph_output(g, i)->name);
        ty_buf_addc(out, ' ');
        print_value(g, out, ty_graph_output(g, i)->val);
        print_tapes(out, ty_graph_output(g, i)->tapes);
        ty_buf_addc(out, '\n');
    }
    for (int i = 0; i < ty_graph_n_effects(g); i++) {
        const ty_effect *e = ty_graph_effect(g, i);
        ty_buf_addf(out, "assign %" PRId64 " ", ty_graph_attr(g, e->node)->index);
        print_value(g, out, ty_graph_in(g, e->node, 0));
        print_tapes(out, e->tapes);
        ty_buf_addc(out, '\n');
    }
}

int ty_graph_print(const ty_graph *g, ty_buf *out, bool elide_large)
{
    ty_buf_adds(out, "graph\n");
    for (int i = 0; i < ty_graph_n_inputs(g); i++) {
        ty_buf_addf(out, "input %d ", i);
        print_string(out, ty_graph_input(g, i)->name);
        ty_buf_addc(out, ' ');
        print_type(out, &ty_graph_input(g, i)->type);
        ty_buf_addc(out, '\n');
    }
    for (int i = 0; i < ty_graph_n_states(g); i++)
        print_state(g, out, i, elide_large);
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        print_node(g, out, id, elide_large);
        print_origin(g, out, id);
    }
    print_ends(g, out);
    return out->failed ? -1 : 0;
}
