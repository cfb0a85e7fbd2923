/* yaml.h - the YAML that settings need: one document, maps, lists and scalars by the core schema of YAML 1.2.
 *
 * `no`, `on` and `yes` are strings, 1e-3 is a float, 010 is ten. Where YAML 1.1 readers see something else, a warning
 * says so and shows the form that everybody reads alike. Refused by name, with place: anchors and aliases, tags,
 * directives, more than one document, keys that are no scalars, merge keys, duplicate keys, NUL characters. An empty
 * file is a null. Size is checked before parsing, depth on every event. Defaults: 1 MiB, 32 levels.
 *
 * What is written here reads back as the same tree, and as the same values by readers of YAML 1.1: whatever one of them
 * would take for something else stands in quotes.
 */
#ifndef TY_BASE_YAML_H
#define TY_BASE_YAML_H

#include "base/doc.h"

#define TY_YAML_MAX_BYTES ((size_t)1 << 20)
#define TY_YAML_MAX_DEPTH 32

/* Called once per doubtful scalar with message, place, excerpt and help; never fails the parse. */
typedef void ty_yaml_warn(void *context, const ty_error *warning);

int ty_yaml_parse(ty_arena *arena, const char *name, const char *text, size_t len, const ty_doc_limits *limits,
                  ty_yaml_warn *warn, void *warn_context, ty_doc **out, ty_error *err);
int ty_yaml_read(ty_arena *arena, const char *path, const ty_doc_limits *limits, ty_yaml_warn *warn, void *warn_context,
                 ty_doc **out, ty_error *err);

/* Fills kind and value of *d from plain (unquoted) text by the core schema; d->raw must be that text. */
void ty_yaml_resolve(ty_doc *d);

/* Longest key that can be written, as it is spelled (libyaml reads no longer ones), and the columns of a line. */
enum { TY_YAML_MAX_KEY = 1000, TY_YAML_COLUMNS = 110 };

/* Appends `KEY: VALUE` and a newline, `indent` blanks in front; a list or map goes on one line where there is room,
 * else an item a line. d->key is the key. Numbers keep their spelling. */
void ty_yaml_add_entry(ty_buf *out, const ty_doc *d, int indent);
/* Appends a value on the line that is there. */
void ty_yaml_add_value(ty_buf *out, const ty_doc *d);
/* Appends text as a scalar that is read as a string. */
void ty_yaml_add_string(ty_buf *out, const char *text);

#endif
