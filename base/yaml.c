/* yaml.c - libyaml's events into a tree. What we do not take is refused at its event, before anything follows it. The
 * meaning of plain scalars is in yaml_scalar.c. */
#include "base/yaml.h"

#include "base/doc_builder.h"
#include "base/file.h"
#include "base/yaml_scalar.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
    ty_doc_builder *builder;
    const ty_doc_source *source;
    ty_yaml_warn *warn;
    void *warn_context;
    int n_documents;
    bool want_key[TY_DOC_MAX_DEPTH]; /* by open map: the next scalar is a key */
    ty_error *err;
};

static uint32_t line_of(const yaml_mark_t *mark)
{
    return (uint32_t)mark->line + 1;
}

static uint32_t column_of(const yaml_mark_t *mark)
{
    return (uint32_t)mark->column + 1;
}

static uint32_t width_of(const yaml_event_t *e)
{
    bool one_line = e->start_mark.line == e->end_mark.line && e->end_mark.column > e->start_mark.column;
    return one_line ? (uint32_t)(e->end_mark.column - e->start_mark.column) : 1;
}

static int refuse(struct reader *r, const yaml_event_t *e, const char *what, const char *help)
{
    ty_error_set(r->err, TY_E_SYNTAX, "%s", what);
    ty_doc_excerpt(r->source, line_of(&e->start_mark), column_of(&e->start_mark), width_of(e), NULL, r->err);
    return help ? ty_error_help(r->err, "%s", help) : -1;
}

static int refuse_anchor(struct reader *r, const yaml_event_t *e)
{
    return refuse(r, e, "anchors (&name) are not accepted", "write the value out where it is used");
}

static int refuse_tag(struct reader *r, const yaml_event_t *e, const yaml_char_t *tag)
{
    char what[160];
    snprintf(what, sizeof what, "tags are not accepted, found \"%.80s\"", (const char *)tag);
    return refuse(r, e, what, "leave the tag out; quote what must be a string");
}

/* The map that waits for a key, if one does. */
static bool *key_slot(struct reader *r)
{
    ty_doc_builder *b = r->builder;
    if (b->depth == 0 || b->levels[b->depth - 1].container.kind != TY_DOC_MAP)
        return NULL;
    return &r->want_key[b->depth - 1];
}

static int take_key(struct reader *r, const yaml_event_t *e, bool *want_key)
{
    const char *text = (const char *)e->data.scalar.value;
    bool is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (is_plain && text[0] == 0)
        return refuse(r, e, "a key is missing before ':'", NULL);
    if (is_plain && strcmp(text, "<<") == 0)
        return refuse(r, e, "merge keys (<<) are not accepted", "write the keys out");
    ty_doc_builder_key(r->builder, ty_arena_strdup(r->builder->arena, text), line_of(&e->start_mark),
                       column_of(&e->start_mark));
    *want_key = false;
    return 0;
}

static void warn_if_doubtful(struct reader *r, const ty_doc *d)
{
    ty_error warning = {0};
    if (r->warn && !d->quoted && ty_yaml_scalar_doubt(d, &warning))
        r->warn(r->warn_context, &warning);
}

static int take_scalar(struct reader *r, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    if (e->data.scalar.anchor)
        return refuse_anchor(r, e);
    if (e->data.scalar.tag)
        return refuse_tag(r, e, e->data.scalar.tag);
    if (strlen(text) != e->data.scalar.length)
        return refuse(r, e, "a NUL character (\\0) in a string is not accepted", NULL);
    bool *want_key = key_slot(r);
    if (want_key && *want_key)
        return take_key(r, e, want_key);
    if (want_key)
        *want_key = true;
    ty_doc d = {.line = line_of(&e->start_mark),
                .column = column_of(&e->start_mark),
                .width = width_of(e),
                .source = r->source,
                .raw = ty_arena_strdup(r->builder->arena, text)};
    d.quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (d.quoted) {
        d.kind = TY_DOC_STRING;
        d.string = d.raw;
    } else {
        ty_yaml_resolve(&d);
    }
    d.key = r->builder->key;
    warn_if_doubtful(r, &d);
    return ty_doc_builder_scalar(r->builder, d, r->err);
}

static int take_start(struct reader *r, const yaml_event_t *e, ty_doc_kind kind, const yaml_char_t *anchor,
                      const yaml_char_t *tag)
{
    if (anchor)
        return refuse_anchor(r, e);
    if (tag)
        return refuse_tag(r, e, tag);
    bool *want_key = key_slot(r);
    if (want_key && *want_key)
        return refuse(r, e, "a list or map cannot be a key", "quote the key if it begins with [ or {");
    if (want_key)
        *want_key = true;
    if (ty_doc_builder_open(r->builder, kind, line_of(&e->start_mark), column_of(&e->start_mark), r->err) < 0)
        return -1;
    r->want_key[r->builder->depth - 1] = true;
    return 0;
}

static int take_document(struct reader *r, const yaml_event_t *e)
{
    const yaml_event_t *d = e;
    if (++r->n_documents > 1)
        return refuse(r, e, "more than one document", "keep what stands before the second ---");
    bool has_tags = d->data.document_start.tag_directives.start != d->data.document_start.tag_directives.end;
    if (d->data.document_start.version_directive || has_tags)
        return refuse(r, e, "directives (% lines) are not accepted", "leave the line out");
    return 0;
}

static int take_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return take_document(r, e);
    case YAML_ALIAS_EVENT:
        return refuse(r, e, "aliases (*name) are not accepted", "write the value out");
    case YAML_SCALAR_EVENT:
        return take_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT:
        return take_start(r, e, TY_DOC_LIST, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return take_start(r, e, TY_DOC_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return ty_doc_builder_close(r->builder, r->err);
    default:
        return 0;
    }
}

/* libyaml's own words, with the place it means: the problem's, or the context's where the problem has none. */
static int refuse_syntax(struct reader *r, const yaml_parser_t *p)
{
    if (p->error == YAML_MEMORY_ERROR)
        return ty_error_set(r->err, TY_E_LIMIT, "%s: no memory to parse it", r->source->name);
    const char *problem = p->problem ? p->problem : "not readable";
    if (p->error == YAML_READER_ERROR) {
        ty_error_set(r->err, TY_E_SYNTAX, "%s at byte %zu", problem, p->problem_offset);
        return ty_error_at(r->err, "%s", r->source->name);
    }
    ty_error_set(r->err, TY_E_SYNTAX, "%s%s%s", problem, p->context ? " " : "", p->context ? p->context : "");
    ty_doc_excerpt(r->source, line_of(&p->problem_mark), column_of(&p->problem_mark), 1, NULL, r->err);
    if (strstr(problem, "cannot start any token"))
        return ty_error_help(r->err, "indent with spaces, and quote text that begins with @ ` %% or a tab");
    if (strstr(problem, "mapping values are not allowed"))
        return ty_error_help(r->err, "quote text that holds \": \"");
    return -1;
}

static int read_events(struct reader *r, yaml_parser_t *p)
{
    for (;;) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e))
            return refuse_syntax(r, p);
        int rc = take_event(r, &e);
        bool is_end = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
        if (rc < 0 || is_end)
            return rc;
    }
}

static int parse_source(struct reader *r)
{
    yaml_parser_t p;
    if (!yaml_parser_initialize(&p))
        return ty_error_set(r->err, TY_E_LIMIT, "%s: no memory to parse it", r->source->name);
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)r->source->text, r->source->len);
    int rc = read_events(r, &p);
    yaml_parser_delete(&p);
    if (rc == 0 && !r->builder->done) { /* nothing but comments */
        ty_doc empty = {.kind = TY_DOC_NULL, .line = 1, .column = 1, .raw = ""};
        rc = ty_doc_builder_scalar(r->builder, empty, r->err);
    }
    return rc;
}

int ty_yaml_parse(ty_arena *arena, const char *name, const char *text, size_t len, const ty_doc_limits *limits,
                  ty_yaml_warn *warn, void *warn_context, ty_doc **out, ty_error *err)
{
    ty_doc_limits mine = limits ? *limits : (ty_doc_limits){0};
    mine.max_bytes = mine.max_bytes ? mine.max_bytes : TY_YAML_MAX_BYTES;
    mine.max_depth = mine.max_depth ? mine.max_depth : TY_YAML_MAX_DEPTH;
    ty_doc_builder b;
    if (ty_doc_builder_init(&b, arena, name, text, len, &mine, err) < 0)
        return -1;
    struct reader r = {.builder = &b, .source = b.source, .warn = warn, .warn_context = warn_context, .err = err};
    int rc = parse_source(&r);
    if (rc == 0)
        *out = ty_doc_builder_root(&b);
    ty_doc_builder_fini(&b);
    return rc;
}

int ty_yaml_read(ty_arena *arena, const char *path, const ty_doc_limits *limits, ty_yaml_warn *warn, void *warn_context,
                 ty_doc **out, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, limits && limits->max_bytes ? limits->max_bytes : TY_YAML_MAX_BYTES);
    int rc = ty_file_read(path, &text, err);
    if (rc == 0)
        rc = ty_yaml_parse(arena, path, text.data, text.len, limits, warn, warn_context, out, err);
    ty_buf_fini(&text);
    return rc;
}
