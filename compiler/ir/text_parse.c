/* text_parse.c - reads the text form of a graph.
 *
 * Recursive descent without a token stage: a cursor with line and column, and small functions that read one thing each.
 * Nodes are appended as written (inferred and hash-consed, but neither folded nor simplified), so that a dump comes back
 * with the numbers it was printed with. Nothing in the text is trusted: sizes are checked against the text that is left.
 */
#include "compiler/ir/attr.h"
#include "compiler/ir/storage.h"
#include "compiler/ir/text.h"
#include "compiler/ir/words.h"
#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"
#include "compiler/ops/refiter.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARSE_MAX_INPUTS 65536
#define PARSE_WORD_BYTES 64

typedef struct parser {
    const char *p, *end, *line_start;
    int line;
    ty_graph *g;
    ty_error *err;
    uint64_t *id; /* %numbers as written, growing */
    ty_val *val;  /* their values */
    size_t n_ids, cap_ids;
} parser;

TY_PRINTF(2, 3) static int parse_fail(parser *s, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    ty_error_set(s->err, TY_E_GRAPH, "%s", message);
    return ty_error_at(s->err, "line %d, column %d", s->line, (int)(s->p - s->line_start) + 1);
}

/* Passes on the graph's sticky error, with the place in the text. */
static int parse_fail_graph(parser *s)
{
    ty_error found = {0};
    ty_graph_failed(s->g, &found);
    ty_error_set(s->err, found.code, "%s", found.message);
    return ty_error_at(s->err, "line %d", s->line);
}

/* ---- small things ---- */

static void parse_blanks(parser *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r'))
        s->p++;
}

static bool parse_peek(parser *s, char c)
{
    parse_blanks(s);
    return s->p < s->end && *s->p == c;
}

static bool parse_accept(parser *s, char c)
{
    if (!parse_peek(s, c))
        return false;
    s->p++;
    return true;
}

static int parse_expect(parser *s, char c)
{
    if (parse_accept(s, c))
        return 0;
    if (s->p >= s->end || *s->p == '\n')
        return parse_fail(s, "expected '%c', found the end of the line", c);
    return parse_fail(s, "expected '%c', found '%c'", c, *s->p);
}

static bool parse_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Letters, digits and underscores; "" if there are none or too many. */
static const char *parse_word(parser *s, char *out)
{
    size_t n = 0;
    parse_blanks(s);
    while (s->p < s->end && parse_is_word(*s->p) && n < PARSE_WORD_BYTES - 1)
        out[n++] = *s->p++;
    out[n] = 0;
    return out;
}

/* One of n words, as its number. */
static int parse_choice(parser *s, const char *const *words, uint32_t n, uint32_t *out)
{
    char word[PARSE_WORD_BYTES];
    parse_word(s, word);
    for (*out = 0; *out < n; ++*out)
        if (strcmp(word, words[*out]) == 0)
            return 0;
    return parse_fail(s, "expected one of %s to %s, found \"%s\"", words[0], words[n - 1], word);
}

/* Characters of a number into a bounded copy with a final NUL: the text itself has none. */
static int parse_number_text(parser *s, char *out)
{
    size_t n = 0;
    parse_blanks(s);
    while (s->p < s->end && (parse_is_word(*s->p) || strchr("+-.", *s->p)) && *s->p && n < PARSE_WORD_BYTES - 1)
        out[n++] = *s->p++;
    out[n] = 0;
    return n > 0 ? 0 : parse_fail(s, "expected a number");
}

static int parse_int(parser *s, int64_t *out)
{
    char text[PARSE_WORD_BYTES], *end;
    if (parse_number_text(s, text) < 0)
        return -1;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (*end || errno)
        return parse_fail(s, "expected a 64-bit integer, found \"%s\"", text);
    return 0;
}

static int parse_uint(parser *s, uint64_t limit, uint64_t *out)
{
    char text[PARSE_WORD_BYTES], *end;
    if (parse_number_text(s, text) < 0)
        return -1;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (*end || errno || *text == '-' || *out > limit)
        return parse_fail(s, "expected a number from 0 to %" PRIu64 ", found \"%s\"", limit, text);
    return 0;
}

static int parse_double(parser *s, double *out)
{
    char text[PARSE_WORD_BYTES], *end;
    if (parse_number_text(s, text) < 0)
        return -1;
    *out = strtod(text, &end);
    return *end ? parse_fail(s, "expected a number, found \"%s\"", text) : 0;
}

static int parse_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of a string after a backslash. */
static int parse_escape(parser *s, char *out)
{
    if (s->p < s->end && (*s->p == '"' || *s->p == '\\')) {
        *out = *s->p++;
        return 0;
    }
    if (s->end - s->p < 3 || *s->p != 'x' || parse_hex_digit(s->p[1]) < 0 || parse_hex_digit(s->p[2]) < 0)
        return parse_fail(s, "expected \\\", \\\\ or \\xNN");
    *out = (char)(parse_hex_digit(s->p[1]) << 4 | parse_hex_digit(s->p[2]));
    s->p += 3;
    return *out ? 0 : parse_fail(s, "a NUL byte cannot stand in a string");
}

/* A quoted string, in the graph's memory. */
static int parse_string(parser *s, const char **out)
{
    if (parse_expect(s, '"') < 0)
        return -1;
    const char *close = s->p;
    while (close < s->end && *close != '"' && *close != '\n')
        close += *close == '\\' && s->end - close > 1 ? 2 : 1;
    if (close >= s->end || *close != '"')
        return parse_fail(s, "the string does not end on its line");
    char *to = ty_arena_alloc(&s->g->arena, (size_t)(close - s->p) + 1);
    *out = to;
    while (s->p < close) {
        char c = *s->p++;
        if (c == 0)
            return parse_fail(s, "a NUL byte cannot stand in a string");
        if (c == '\\' && parse_escape(s, &c) < 0)
            return -1;
        *to++ = c;
    }
    return parse_expect(s, '"');
}

static int parse_type(parser *s, ty_type *out)
{
    char word[PARSE_WORD_BYTES];
    ty_dtype dtype;
    if (!ty_dtype_parse(parse_word(s, word), &dtype))
        return parse_fail(s, "expected a type such as f32[2,3], found \"%s\"", word);
    int64_t dim[TY_MAX_RANK];
    int rank = 0;
    if (parse_expect(s, '[') < 0)
        return -1;
    while (!parse_peek(s, ']')) {
        if (rank == TY_MAX_RANK)
            return parse_fail(s, "a shape has at most %d dims", TY_MAX_RANK);
        if ((rank > 0 && parse_expect(s, ',') < 0) || parse_int(s, &dim[rank]) < 0)
            return -1;
        rank++;
    }
    if (ty_dims_elems_checked(rank, dim, ty_dtype_bytes(dtype)) < 0)
        return parse_fail(s, "a dim is negative, or the tensor is too large to address");
    *out = ty_type_make(dtype, rank, dim);
    return parse_expect(s, ']');
}

static int parse_tapes(parser *s, uint32_t *out)
{
    char word[PARSE_WORD_BYTES];
    *out = 0;
    do {
        uint32_t tape = 0;
        parse_word(s, word);
        for (int i = 0; i < 4; i++)
            if (strcmp(word, ty_tape_words[i].text) == 0)
                tape = ty_tape_words[i].tape;
        if (!tape)
            return parse_fail(s, "expected micro, last, eval or init, found \"%s\"", word);
        *out |= tape;
    } while (parse_accept(s, '|'));
    return 0;
}

/* ---- values ---- */

static int parse_id(parser *s, uint64_t *out)
{
    if (parse_expect(s, '%') < 0)
        return -1;
    return parse_uint(s, UINT32_MAX, out);
}

static int parse_value(parser *s, ty_val *out)
{
    uint64_t id, result = 0;
    if (parse_accept(s, '_')) {
        *out = TY_NONE;
        return 0;
    }
    if (parse_id(s, &id) < 0 || (parse_accept(s, ':') && parse_uint(s, TY_MAX_RESULTS - 1, &result) < 0))
        return -1;
    size_t lo = 0, hi = s->n_ids;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->id[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == s->n_ids || s->id[lo] != id)
        return parse_fail(s, "%%%" PRIu64 " is not defined above", id);
    uint32_t node = ty_val_node(s->val[lo]);
    if (result >= ty_graph_node(s->g, node)->n_res)
        return parse_fail(s, "%%%" PRIu64 " has no result %" PRIu64, id, result);
    *out = ty_val_make(node, (uint32_t)result);
    return 0;
}

static int parse_define(parser *s, uint64_t id, ty_val v)
{
    if (s->n_ids == s->cap_ids) {
        size_t cap = s->cap_ids ? 2 * s->cap_ids : 256;
        uint64_t *ids = realloc(s->id, cap * sizeof *ids);
        s->id = ids ? ids : s->id;
        ty_val *vals = realloc(s->val, cap * sizeof *vals);
        s->val = vals ? vals : s->val;
        if (!ids || !vals)
            return ty_error_set(s->err, TY_E_LIMIT, "no memory for %zu nodes", cap);
        s->cap_ids = cap;
    }
    s->id[s->n_ids] = id;
    s->val[s->n_ids++] = v;
    return 0;
}

/* ---- constants ---- */

static int parse_bytes(parser *s, const ty_type *type, void **out)
{
    size_t n = ty_type_bytes(type);
    s->p++;
    if (parse_expect(s, '"') < 0)
        return -1;
    if ((size_t)(s->end - s->p) / 2 < n)
        return parse_fail(s, "expected %zu bytes in base 16, found the end of the text", n);
    unsigned char *to = ty_arena_alloc(&s->g->arena, n);
    *out = to;
    for (size_t i = 0; i < n; i++, s->p += 2) {
        int high = parse_hex_digit(s->p[0]), low = parse_hex_digit(s->p[1]);
        if (high < 0 || low < 0)
            return parse_fail(s, "expected %zu bytes in base 16, found %zu", n, i);
        to[i] = (unsigned char)(high << 4 | low);
        if (type->dtype == TY_BOOL && to[i] > 1)
            return parse_fail(s, "a bool is 00 or 01");
    }
    return parse_expect(s, '"');
}

static int parse_element(parser *s, ty_ref *r, int64_t k)
{
    uint64_t u;
    if (r->f)
        return parse_double(s, &r->f[k]);
    if (r->type.dtype == TY_U64) {
        int rc = parse_uint(s, UINT64_MAX, &u);
        r->i[k] = rc < 0 ? 0 : (int64_t)u;
        return rc;
    }
    if (parse_int(s, &r->i[k]) < 0)
        return -1;
    if (ty_refiter_wrap((ty_dtype)r->type.dtype, r->i[k]) != r->i[k])
        return parse_fail(s, "%" PRId64 " is beyond %s", r->i[k], ty_dtype_text((ty_dtype)r->type.dtype));
    return 0;
}

static int parse_list(parser *s, const ty_type *type, void **out)
{
    int64_t n = ty_type_elems(type);
    if (parse_expect(s, '[') < 0)
        return -1;
    if (n > s->end - s->p)
        return parse_fail(s, "expected %" PRId64 " numbers, found the end of the text", n);
    ty_ref r;
    if (ty_ref_init(&r, type, s->err) < 0)
        return -1;
    int rc = 0;
    for (int64_t k = 0; k < n && rc == 0; k++)
        rc = parse_peek(s, ']') ? parse_fail(s, "expected %" PRId64 " numbers, found %" PRId64, n, k)
                                : parse_element(s, &r, k);
    if (rc == 0)
        rc = parse_expect(s, ']');
    if (rc == 0) {
        *out = ty_arena_alloc(&s->g->arena, ty_type_bytes(type));
        ty_ref_store(&r, *out);
    }
    ty_ref_fini(&r);
    return rc;
}

/* [1 2 3] or x"0011": bytes of the type, in the graph's memory. */
static int parse_data(parser *s, const ty_type *type, void **out)
{
    if (parse_peek(s, 'x'))
        return parse_bytes(s, type, out);
    if (parse_peek(s, '.')) {
        parse_fail(s, "the constant was left out when this text was printed");
        return ty_error_help(s->err, "print the graph in full");
    }
    return parse_list(s, type, out);
}

/* ---- attributes ---- */

/* Reads [a b c] into at most max entries. */
static int parse_ints(parser *s, int64_t *out, uint32_t max, uint32_t *n)
{
    *n = 0;
    if (parse_expect(s, '[') < 0)
        return -1;
    while (!parse_peek(s, ']')) {
        if (*n == max)
            return parse_fail(s, "a list has at most %u entries", max);
        if (parse_int(s, &out[(*n)++]) < 0)
            return -1;
    }
    return parse_expect(s, ']');
}

static int parse_axes(parser *s, uint32_t *axes)
{
    int64_t axis[TY_MAX_RANK];
    uint32_t n;
    if (parse_ints(s, axis, TY_MAX_RANK, &n) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (axis[i] < 0 || axis[i] >= TY_MAX_RANK)
            return parse_fail(s, "there is no axis %" PRId64, axis[i]);
        *axes |= 1u << axis[i];
    }
    return 0;
}

static int parse_field(parser *s, const ty_attr_field *f, ty_attr *attr)
{
    void *at = (char *)attr + f->offset;
    uint64_t u;
    uint32_t n;
    int rc = -1;
    switch (f->kind) {
    case TY_ATTR_TYPE: return parse_type(s, at);
    case TY_ATTR_INT: return parse_int(s, at);
    case TY_ATTR_MODE: return parse_choice(s, ty_combine_text, TY_SET + 1, at);
    case TY_ATTR_AXES: return parse_axes(s, at);
    case TY_ATTR_NUMBER: return parse_double(s, at);
    case TY_ATTR_COUNT:
        rc = parse_uint(s, UINT32_MAX, &u);
        *(uint32_t *)at = rc < 0 ? 0 : (uint32_t)u;
        return rc;
    case TY_ATTR_LIST:
        rc = parse_ints(s, at, TY_MAX_RANK, &n);
        return rc == 0 && n != attr->n ? parse_fail(s, "a list of %u entries where n is %u", n, attr->n) : rc;
    case TY_N_ATTR_KINDS: break;
    }
    return rc;
}

/* {name=value ...}; every field of the op once, n before the lists. */
static int parse_attr(parser *s, ty_op op, ty_attr *attr)
{
    uint32_t allowed = op == TY_OP_CONST ? ty_attr_mask("type") : ty_attr_mask(ty_op_row_of(op)->attrs);
    memset(attr, 0, sizeof *attr);
    if (!parse_accept(s, '{'))
        return allowed ? parse_fail(s, "expected attributes {%s}", ty_op_row_of(op)->attrs) : 0;
    while (!parse_accept(s, '}')) {
        char word[PARSE_WORD_BYTES];
        int i = 0;
        parse_word(s, word);
        while (i < TY_N_ATTR_FIELDS && (strcmp(ty_attr_fields[i].name, word) != 0 || !(allowed >> i & 1)))
            i++;
        if (i == TY_N_ATTR_FIELDS)
            return parse_fail(s, "\"%s\" is no attribute of %s, or stands twice; it has {%s}", word,
                              ty_op_row_of(op)->text, ty_op_row_of(op)->attrs);
        allowed &= ~(1u << i);
        if (parse_expect(s, '=') < 0 || parse_field(s, &ty_attr_fields[i], attr) < 0)
            return -1;
    }
    for (int i = 0; i < TY_N_ATTR_FIELDS; i++)
        if (allowed >> i & 1)
            return parse_fail(s, "attribute \"%s\" is missing", ty_attr_fields[i].name);
    return 0;
}

/* ---- lines ---- */

static int parse_numbered_name(parser *s, int expected, const char **name)
{
    uint64_t number;
    if (parse_uint(s, INT32_MAX, &number) < 0)
        return -1;
    if (number != (uint64_t)expected)
        return parse_fail(s, "expected number %d, found %" PRIu64, expected, number);
    return parse_string(s, name);
}

static int parse_input(parser *s)
{
    const char *name;
    ty_type type;
    if (parse_numbered_name(s, ty_graph_n_inputs(s->g), &name) < 0 || parse_type(s, &type) < 0)
        return -1;
    return ty_graph_add_input(s->g, name, type) < 0 ? parse_fail_graph(s) : 0;
}

static int parse_segment(parser *s, ty_segment *seg, const void **init)
{
    void *data = NULL;
    *init = NULL;
    if (parse_string(s, &seg->name) < 0 || parse_type(s, &seg->type) < 0 || parse_int(s, &seg->offset) < 0)
        return -1;
    if (parse_accept(s, '=')) {
        if (parse_data(s, &seg->type, &data) < 0)
            return -1;
        *init = data;
    }
    return 0;
}

/* { "name" type offset = data ; ... }, into arrays of the graph's memory. */
static int parse_segments(parser *s, ty_state *state)
{
    int cap = 0;
    ty_segment *segments = NULL;
    const void **init = NULL;
    bool any = false;
    if (parse_expect(s, '{') < 0)
        return -1;
    do {
        if (state->n_segments == cap) {
            cap = cap ? 2 * cap : 4;
            ty_segment *more = TY_NEW_ARRAY(&s->g->arena, ty_segment, cap);
            const void **more_init = TY_NEW_ARRAY(&s->g->arena, const void *, cap);
            for (int i = 0; i < state->n_segments; i++) {
                more[i] = segments[i];
                more_init[i] = init[i];
            }
            segments = more;
            init = more_init;
        }
        if (parse_segment(s, &segments[state->n_segments], &init[state->n_segments]) < 0)
            return -1;
        any = any || init[state->n_segments];
        state->n_segments++;
    } while (parse_accept(s, ';'));
    state->segments = segments;
    state->init = any ? init : NULL;
    return parse_expect(s, '}');
}

static int parse_state(parser *s)
{
    ty_state state = {0};
    uint32_t role = 0;
    if (parse_numbered_name(s, ty_graph_n_states(s->g), &state.name) < 0 ||
        parse_choice(s, ty_role_text, TY_N_STATE_ROLES, &role) < 0 || parse_type(s, &state.type) < 0 ||
        parse_segments(s, &state) < 0)
        return -1;
    state.role = (ty_state_role)role;
    return ty_graph_add_state(s->g, &state) < 0 ? parse_fail_graph(s) : 0;
}

static int parse_output(parser *s)
{
    const char *name;
    ty_val v;
    uint32_t tapes;
    if (parse_string(s, &name) < 0 || parse_value(s, &v) < 0 || parse_tapes(s, &tapes) < 0)
        return -1;
    return ty_graph_add_output(s->g, name, v, tapes) < 0 ? parse_fail_graph(s) : 0;
}

static int parse_assign(parser *s)
{
    uint64_t state;
    ty_val v;
    uint32_t tapes;
    if (parse_uint(s, INT32_MAX, &state) < 0 || parse_value(s, &v) < 0 || parse_tapes(s, &tapes) < 0)
        return -1;
    return ty_graph_add_assign(s->g, (int)state, v, tapes) < 0 ? parse_fail_graph(s) : 0;
}

static int parse_inputs_of_node(parser *s, ty_val **in, int *n_in)
{
    ty_val *list = TY_NEW_ARRAY(&s->g->arena, ty_val, 4);
    int cap = 4, n = 0;
    if (parse_expect(s, '(') < 0)
        return -1;
    while (!parse_peek(s, ')')) {
        if (n == cap) {
            ty_val *more = TY_NEW_ARRAY(&s->g->arena, ty_val, 2 * cap);
            memcpy(more, list, sizeof *list * (size_t)n);
            list = more;
            cap *= 2;
        }
        if (n == PARSE_MAX_INPUTS)
            return parse_fail(s, "a node has at most %d inputs", PARSE_MAX_INPUTS);
        if ((n > 0 && parse_expect(s, ',') < 0) || parse_value(s, &list[n]) < 0)
            return -1;
        n++;
    }
    *in = list;
    *n_in = n;
    return parse_expect(s, ')');
}

/* ": type, type" after a node, if there: must be what infer says. */
static int parse_result_types(parser *s, const ty_type *res, int n_res)
{
    if (!parse_accept(s, ':'))
        return 0;
    for (int r = 0; r < n_res; r++) {
        ty_type type;
        char found[160], expected[160];
        if ((r > 0 && parse_expect(s, ',') < 0) || parse_type(s, &type) < 0)
            return -1;
        if (!ty_type_same(&type, &res[r]))
            return parse_fail(s, "result %d is %s, not %s", r, ty_type_text(&res[r], expected, sizeof expected),
                              ty_type_text(&type, found, sizeof found));
    }
    return 0;
}

/* The rest of a node's line, and the node. Data is set for a const. */
static int parse_node_end(parser *s, const graph_draft *d, const void *data, ty_val *v)
{
    const char *origin = "";
    if (parse_result_types(s, d->res, ty_op_row_of(d->op)->n_res) < 0 ||
        (parse_accept(s, '@') && parse_string(s, &origin) < 0))
        return -1;
    ty_graph_origin(s->g, origin);
    *v = data ? ty_graph_const(s->g, &d->res[0], data, true) : ty_graph_append(s->g, d);
    ty_graph_origin(s->g, "");
    return *v == TY_NONE ? parse_fail_graph(s) : 0;
}

static int parse_const(parser *s, const ty_attr *attr, ty_val *v)
{
    graph_draft d = {.op = TY_OP_CONST, .res = {attr->type}};
    void *data = NULL;
    if (parse_expect(s, '=') < 0 || parse_data(s, &attr->type, &data) < 0)
        return -1;
    return parse_node_end(s, &d, data, v);
}

static int parse_node(parser *s)
{
    uint64_t id;
    char word[PARSE_WORD_BYTES];
    if (parse_id(s, &id) < 0)
        return -1;
    if (s->n_ids > 0 && id <= s->id[s->n_ids - 1])
        return parse_fail(s, "%%%" PRIu64 " does not come after %%%" PRIu64, id, s->id[s->n_ids - 1]);
    if (parse_expect(s, '=') < 0)
        return -1;
    ty_op op = ty_op_parse(parse_word(s, word));
    if (op == TY_N_OPS)
        return parse_fail(s, "there is no op \"%s\"", word);
    ty_val *in = NULL, v;
    int n_in = 0;
    ty_attr attr;
    graph_draft d;
    if (parse_inputs_of_node(s, &in, &n_in) < 0 || parse_attr(s, op, &attr) < 0)
        return -1;
    if (op == TY_OP_CONST)
        return n_in > 0 ? parse_fail(s, "a const takes no inputs")
               : parse_const(s, &attr, &v) < 0 ? -1 : parse_define(s, id, v);
    if (!ty_graph_draft(s->g, op, &attr, in, n_in, &d))
        return ty_graph_failed(s->g, NULL) ? parse_fail_graph(s) : parse_fail(s, "an input is absent that must be there");
    return parse_node_end(s, &d, NULL, &v) < 0 ? -1 : parse_define(s, id, v);
}

static int parse_line(parser *s)
{
    static const struct {
        const char *word;
        int (*parse)(parser *s);
    } lines[] = {{"input", parse_input}, {"state", parse_state}, {"output", parse_output}, {"assign", parse_assign}};
    char word[PARSE_WORD_BYTES];
    if (parse_peek(s, '%'))
        return parse_node(s);
    parse_word(s, word);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (strcmp(word, lines[i].word) == 0)
            return lines[i].parse(s);
    return parse_fail(s, "expected input, state, a node, output or assign, found \"%s\"", word);
}

/* Skips blank lines and comments from # to the end of the line. True if something is left. */
static bool parse_next_line(parser *s)
{
    for (;;) {
        parse_blanks(s);
        if (s->p < s->end && *s->p == '#')
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        if (s->p >= s->end)
            return false;
        if (*s->p != '\n')
            return true;
        s->p++;
        s->line++;
        s->line_start = s->p;
    }
}

static int parse_all(parser *s)
{
    char word[PARSE_WORD_BYTES];
    if (!parse_next_line(s) || strcmp(parse_word(s, word), "graph") != 0)
        return parse_fail(s, "expected \"graph\" in the first line");
    int line = s->line;
    while (parse_next_line(s)) {
        if (s->line == line)
            return parse_fail(s, "expected the end of the line, found '%c'", *s->p);
        line = s->line;
        if (parse_line(s) < 0)
            return -1;
    }
    return 0;
}

int ty_graph_parse(const char *text, size_t n, ty_graph **out, ty_error *err)
{
    ty_error own = {0};
    parser s = {.p = text, .end = text + n, .line_start = text, .line = 1, .g = ty_graph_new(), .err = err ? err : &own};
    int rc = parse_all(&s);
    free(s.id);
    free(s.val);
    *out = s.g;
    if (rc < 0) {
        ty_graph_free(s.g);
        *out = NULL;
    }
    return rc;
}
