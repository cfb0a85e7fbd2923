/* text_parse.c - reads the text form of a graph.
 *
 * Recursive descent without a token stage, over the cursor of text_scan.h.
 * Nodes are appended as written (inferred and hash-consed, but neither folded nor simplified), so that a dump comes
 * back with the numbers it was printed with. Nothing in the text is trusted: sizes are checked against the text that is
 * left.
 */
#include "compiler/ir/attr.h"
#include "compiler/ir/storage.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text_scan.h"
#include "compiler/ir/words.h"
#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"
#include "compiler/ops/refiter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARSE_MAX_INPUTS 65536

typedef struct parser {
    ty_scan scan;
    ty_graph *g;
    uint64_t *id; /* %numbers as written, growing */
    ty_val *val;  /* their values */
    size_t n_ids, cap_ids;
} parser;

/* Passes on the graph's sticky error, with the place in the text. */
static int parse_fail_graph(parser *s)
{
    ty_error found = {0};
    ty_graph_failed(s->g, &found);
    ty_error_set(s->scan.err, found.code, "%s", found.message);
    return ty_error_at(s->scan.err, "line %d", s->scan.line);
}

/* ---- types and words ---- */

static int parse_type(parser *s, ty_type *out)
{
    char word[TY_SCAN_WORD_BYTES];
    ty_dtype dtype;
    if (!ty_dtype_parse(ty_scan_word(&s->scan, word), &dtype))
        return ty_scan_fail(&s->scan, "expected a type such as f32[2,3], found \"%s\"", word);
    int64_t dim[TY_MAX_RANK];
    int rank = 0;
    if (ty_scan_expect(&s->scan, '[') < 0)
        return -1;
    while (!ty_scan_peek(&s->scan, ']')) {
        if (rank == TY_MAX_RANK)
            return ty_scan_fail(&s->scan, "a shape has at most %d dims", TY_MAX_RANK);
        if ((rank > 0 && ty_scan_expect(&s->scan, ',') < 0) || ty_scan_int(&s->scan, &dim[rank]) < 0)
            return -1;
        rank++;
    }
    if (ty_dims_elems_checked(rank, dim, ty_dtype_bytes(dtype)) < 0)
        return ty_scan_fail(&s->scan, "a dim is negative, or the tensor is too large to address");
    *out = ty_type_make(dtype, rank, dim);
    return ty_scan_expect(&s->scan, ']');
}

static int parse_tapes(parser *s, uint32_t *out)
{
    char word[TY_SCAN_WORD_BYTES];
    *out = 0;
    do {
        uint32_t tape = 0;
        ty_scan_word(&s->scan, word);
        for (int i = 0; i < TY_N_TAPES; i++)
            if (strcmp(word, ty_tape_words[i].text) == 0)
                tape = ty_tape_words[i].tape;
        if (!tape)
            return ty_scan_fail(&s->scan, "expected micro, last, eval, init or rows, found \"%s\"", word);
        *out |= tape;
    } while (ty_scan_accept(&s->scan, '|'));
    return 0;
}

/* ---- values ---- */

static int parse_id(parser *s, uint64_t *out)
{
    if (ty_scan_expect(&s->scan, '%') < 0)
        return -1;
    return ty_scan_uint(&s->scan, UINT32_MAX, out);
}

static int parse_value(parser *s, ty_val *out)
{
    uint64_t id, result = 0;
    if (ty_scan_accept(&s->scan, '_')) {
        *out = TY_NONE;
        return 0;
    }
    if (parse_id(s, &id) < 0 ||
        (ty_scan_accept(&s->scan, ':') && ty_scan_uint(&s->scan, TY_MAX_RESULTS - 1, &result) < 0))
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
        return ty_scan_fail(&s->scan, "%%%" PRIu64 " is not defined above", id);
    uint32_t node = ty_val_node(s->val[lo]);
    if (result >= ty_graph_node(s->g, node)->n_res)
        return ty_scan_fail(&s->scan, "%%%" PRIu64 " has no result %" PRIu64, id, result);
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
            return ty_error_set(s->scan.err, TY_E_LIMIT, "no memory for %zu nodes", cap);
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
    s->scan.p++;
    if (ty_scan_expect(&s->scan, '"') < 0)
        return -1;
    if ((size_t)(s->scan.end - s->scan.p) / 2 < n)
        return ty_scan_fail(&s->scan, "expected %zu bytes in base 16, found the end of the text", n);
    unsigned char *to = ty_arena_alloc(&s->g->arena, n);
    *out = to;
    for (size_t i = 0; i < n; i++, s->scan.p += 2) {
        int high = ty_scan_hex_digit(s->scan.p[0]), low = ty_scan_hex_digit(s->scan.p[1]);
        if (high < 0 || low < 0)
            return ty_scan_fail(&s->scan, "expected %zu bytes in base 16, found %zu", n, i);
        to[i] = (unsigned char)(high << 4 | low);
        if (type->dtype == TY_BOOL && to[i] > 1)
            return ty_scan_fail(&s->scan, "a bool is 00 or 01");
    }
    return ty_scan_expect(&s->scan, '"');
}

static int parse_element(parser *s, ty_ref *r, int64_t k)
{
    uint64_t u;
    if (r->f)
        return ty_scan_double(&s->scan, &r->f[k]);
    if (r->type.dtype == TY_U64) {
        int rc = ty_scan_uint(&s->scan, UINT64_MAX, &u);
        r->i[k] = rc < 0 ? 0 : (int64_t)u;
        return rc;
    }
    if (ty_scan_int(&s->scan, &r->i[k]) < 0)
        return -1;
    if (ty_refiter_wrap((ty_dtype)r->type.dtype, r->i[k]) != r->i[k])
        return ty_scan_fail(&s->scan, "%" PRId64 " is beyond %s", r->i[k], ty_dtype_text((ty_dtype)r->type.dtype));
    return 0;
}

static int parse_list(parser *s, const ty_type *type, void **out)
{
    int64_t n = ty_type_elems(type);
    if (ty_scan_expect(&s->scan, '[') < 0)
        return -1;
    if (n > s->scan.end - s->scan.p)
        return ty_scan_fail(&s->scan, "expected %" PRId64 " numbers, found the end of the text", n);
    ty_ref r;
    if (ty_ref_init(&r, type, s->scan.err) < 0)
        return -1;
    int rc = 0;
    for (int64_t k = 0; k < n && rc == 0; k++)
        rc = ty_scan_peek(&s->scan, ']') ? ty_scan_fail(&s->scan, "expected %" PRId64 " numbers, found %" PRId64, n, k)
                                         : parse_element(s, &r, k);
    if (rc == 0)
        rc = ty_scan_expect(&s->scan, ']');
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
    if (ty_scan_peek(&s->scan, 'x'))
        return parse_bytes(s, type, out);
    if (ty_scan_peek(&s->scan, '.')) {
        ty_scan_fail(&s->scan, "the constant was left out when this text was printed");
        return ty_error_help(s->scan.err, "print the graph in full");
    }
    return parse_list(s, type, out);
}

/* ---- attributes ---- */

static int parse_axes(parser *s, uint32_t *axes)
{
    int64_t axis[TY_MAX_RANK];
    uint32_t n;
    if (ty_scan_ints(&s->scan, axis, TY_MAX_RANK, &n) < 0)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        if (axis[i] < 0 || axis[i] >= TY_MAX_RANK)
            return ty_scan_fail(&s->scan, "there is no axis %" PRId64, axis[i]);
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
    case TY_ATTR_TYPE:
        return parse_type(s, at);
    case TY_ATTR_INT:
        return ty_scan_int(&s->scan, at);
    case TY_ATTR_MODE:
        return ty_scan_choice(&s->scan, ty_combine_text, TY_SET + 1, at);
    case TY_ATTR_AXES:
        return parse_axes(s, at);
    case TY_ATTR_NUMBER:
        return ty_scan_double(&s->scan, at);
    case TY_ATTR_COUNT:
        rc = ty_scan_uint(&s->scan, UINT32_MAX, &u);
        *(uint32_t *)at = rc < 0 ? 0 : (uint32_t)u;
        return rc;
    case TY_ATTR_LIST:
        rc = ty_scan_ints(&s->scan, at, TY_MAX_RANK, &n);
        return rc == 0 && n != attr->n ? ty_scan_fail(&s->scan, "a list of %u entries where n is %u", n, attr->n) : rc;
    case TY_N_ATTR_KINDS:
        break;
    }
    return rc;
}

/* {name=value ...}; every field of the op once, n before the lists. */
static int parse_attr(parser *s, ty_op op, ty_attr *attr)
{
    uint32_t allowed = op == TY_OP_CONST ? ty_attr_mask("type") : ty_attr_mask(ty_op_row_of(op)->attrs);
    memset(attr, 0, sizeof *attr);
    if (!ty_scan_accept(&s->scan, '{'))
        return allowed ? ty_scan_fail(&s->scan, "expected attributes {%s}", ty_op_row_of(op)->attrs) : 0;
    while (!ty_scan_accept(&s->scan, '}')) {
        char word[TY_SCAN_WORD_BYTES];
        int i = 0;
        ty_scan_word(&s->scan, word);
        while (i < TY_N_ATTR_FIELDS && (strcmp(ty_attr_fields[i].name, word) != 0 || !(allowed >> i & 1)))
            i++;
        if (i == TY_N_ATTR_FIELDS)
            return ty_scan_fail(&s->scan, "\"%s\" is no attribute of %s, or stands twice; it has {%s}", word,
                                ty_op_row_of(op)->text, ty_op_row_of(op)->attrs);
        allowed &= ~(1u << i);
        if (ty_scan_expect(&s->scan, '=') < 0 || parse_field(s, &ty_attr_fields[i], attr) < 0)
            return -1;
    }
    for (int i = 0; i < TY_N_ATTR_FIELDS; i++)
        if (allowed >> i & 1)
            return ty_scan_fail(&s->scan, "attribute \"%s\" is missing", ty_attr_fields[i].name);
    return 0;
}

/* ---- lines ---- */

static int parse_numbered_name(parser *s, int expected, const char **name)
{
    uint64_t number;
    if (ty_scan_uint(&s->scan, INT32_MAX, &number) < 0)
        return -1;
    if (number != (uint64_t)expected)
        return ty_scan_fail(&s->scan, "expected number %d, found %" PRIu64, expected, number);
    return ty_scan_string(&s->scan, name);
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
    if (ty_scan_string(&s->scan, &seg->name) < 0 || parse_type(s, &seg->type) < 0 ||
        ty_scan_int(&s->scan, &seg->offset) < 0)
        return -1;
    if (ty_scan_accept(&s->scan, '=')) {
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
    if (ty_scan_expect(&s->scan, '{') < 0)
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
    } while (ty_scan_accept(&s->scan, ';'));
    state->segments = segments;
    state->init = any ? init : NULL;
    return ty_scan_expect(&s->scan, '}');
}

static int parse_state(parser *s)
{
    ty_state state = {0};
    uint32_t role = 0;
    if (parse_numbered_name(s, ty_graph_n_states(s->g), &state.name) < 0 ||
        ty_scan_choice(&s->scan, ty_role_text, TY_N_STATE_ROLES, &role) < 0 || parse_type(s, &state.type) < 0 ||
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
    if (ty_scan_string(&s->scan, &name) < 0 || parse_value(s, &v) < 0 || parse_tapes(s, &tapes) < 0)
        return -1;
    return ty_graph_add_output(s->g, name, v, tapes) < 0 ? parse_fail_graph(s) : 0;
}

static int parse_assign(parser *s)
{
    uint64_t state;
    ty_val v;
    uint32_t tapes;
    if (ty_scan_uint(&s->scan, INT32_MAX, &state) < 0 || parse_value(s, &v) < 0 || parse_tapes(s, &tapes) < 0)
        return -1;
    return ty_graph_add_assign(s->g, (int)state, v, tapes) < 0 ? parse_fail_graph(s) : 0;
}

static int parse_inputs_of_node(parser *s, ty_val **in, int *n_in)
{
    ty_val *list = TY_NEW_ARRAY(&s->g->arena, ty_val, 4);
    int cap = 4, n = 0;
    if (ty_scan_expect(&s->scan, '(') < 0)
        return -1;
    while (!ty_scan_peek(&s->scan, ')')) {
        if (n == cap) {
            ty_val *more = TY_NEW_ARRAY(&s->g->arena, ty_val, 2 * cap);
            memcpy(more, list, sizeof *list * (size_t)n);
            list = more;
            cap *= 2;
        }
        if (n == PARSE_MAX_INPUTS)
            return ty_scan_fail(&s->scan, "a node has at most %d inputs", PARSE_MAX_INPUTS);
        if ((n > 0 && ty_scan_expect(&s->scan, ',') < 0) || parse_value(s, &list[n]) < 0)
            return -1;
        n++;
    }
    *in = list;
    *n_in = n;
    return ty_scan_expect(&s->scan, ')');
}

/* ": type, type" after a node, if there: must be what infer says. */
static int parse_result_types(parser *s, const ty_type *res, int n_res)
{
    if (!ty_scan_accept(&s->scan, ':'))
        return 0;
    for (int r = 0; r < n_res; r++) {
        ty_type type;
        char found[160], expected[160];
        if ((r > 0 && ty_scan_expect(&s->scan, ',') < 0) || parse_type(s, &type) < 0)
            return -1;
        if (!ty_type_same(&type, &res[r]))
            return ty_scan_fail(&s->scan, "result %d is %s, not %s", r,
                                ty_type_text(&res[r], expected, sizeof expected),
                                ty_type_text(&type, found, sizeof found));
    }
    return 0;
}

/* The rest of a node's line, and the node. Data is set for a const. */
static int parse_node_end(parser *s, const graph_draft *d, const void *data, ty_val *v)
{
    const char *origin = "";
    if (parse_result_types(s, d->res, ty_op_row_of(d->op)->n_res) < 0 ||
        (ty_scan_accept(&s->scan, '@') && ty_scan_string(&s->scan, &origin) < 0))
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
    if (ty_scan_expect(&s->scan, '=') < 0 || parse_data(s, &attr->type, &data) < 0)
        return -1;
    return parse_node_end(s, &d, data, v);
}

static int parse_node(parser *s)
{
    uint64_t id;
    char word[TY_SCAN_WORD_BYTES];
    if (parse_id(s, &id) < 0)
        return -1;
    if (s->n_ids > 0 && id <= s->id[s->n_ids - 1])
        return ty_scan_fail(&s->scan, "%%%" PRIu64 " does not come after %%%" PRIu64, id, s->id[s->n_ids - 1]);
    if (ty_scan_expect(&s->scan, '=') < 0)
        return -1;
    ty_op op = ty_op_parse(ty_scan_word(&s->scan, word));
    if (op == TY_N_OPS)
        return ty_scan_fail(&s->scan, "there is no op \"%s\"", word);
    ty_val *in = NULL, v;
    int n_in = 0;
    ty_attr attr;
    graph_draft d;
    if (parse_inputs_of_node(s, &in, &n_in) < 0 || parse_attr(s, op, &attr) < 0)
        return -1;
    if (op == TY_OP_CONST)
        return n_in > 0                        ? ty_scan_fail(&s->scan, "a const takes no inputs")
               : parse_const(s, &attr, &v) < 0 ? -1
                                               : parse_define(s, id, v);
    if (!ty_graph_draft(s->g, op, &attr, in, n_in, &d))
        return ty_graph_failed(s->g, NULL) ? parse_fail_graph(s)
                                           : ty_scan_fail(&s->scan, "an input is absent that must be there");
    return parse_node_end(s, &d, NULL, &v) < 0 ? -1 : parse_define(s, id, v);
}

static int parse_line(parser *s)
{
    static const struct {
        const char *word;
        int (*parse)(parser *s);
    } lines[] = {{"input", parse_input}, {"state", parse_state}, {"output", parse_output}, {"assign", parse_assign}};
    char word[TY_SCAN_WORD_BYTES];
    if (ty_scan_peek(&s->scan, '%'))
        return parse_node(s);
    ty_scan_word(&s->scan, word);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (strcmp(word, lines[i].word) == 0)
            return lines[i].parse(s);
    return ty_scan_fail(&s->scan, "expected input, state, a node, output or assign, found \"%s\"", word);
}

/* Skips blank lines and comments from # to the end of the line. True if something is left. */
static bool parse_next_line(parser *s)
{
    for (;;) {
        ty_scan_blanks(&s->scan);
        if (s->scan.p < s->scan.end && *s->scan.p == '#')
            while (s->scan.p < s->scan.end && *s->scan.p != '\n')
                s->scan.p++;
        if (s->scan.p >= s->scan.end)
            return false;
        if (*s->scan.p != '\n')
            return true;
        s->scan.p++;
        s->scan.line++;
        s->scan.line_start = s->scan.p;
    }
}

static int parse_all(parser *s)
{
    char word[TY_SCAN_WORD_BYTES];
    if (!parse_next_line(s) || strcmp(ty_scan_word(&s->scan, word), "graph") != 0)
        return ty_scan_fail(&s->scan, "expected \"graph\" in the first line");
    int line = s->scan.line;
    while (parse_next_line(s)) {
        if (s->scan.line == line)
            return ty_scan_fail(&s->scan, "expected the end of the line, found '%c'", *s->scan.p);
        line = s->scan.line;
        if (parse_line(s) < 0)
            return -1;
    }
    return 0;
}

int ty_graph_parse(const char *text, size_t n, ty_graph **out, ty_error *err)
{
    ty_error own = {0};
    parser s = {.g = ty_graph_new()};
    s.scan = (ty_scan){text, text + n, text, 1, ty_graph_arena(s.g), err ? err : &own};
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
