/* yaml.h - the YAML that settings need: one document, maps, lists and scalars by the core schema of YAML 1.2.
 *
 * `no`, `on` and `yes` are strings, 1e-3 is a float, 010 is ten. Where YAML 1.1 readers see something else, a warning
 * says so and shows the form that everybody reads alike. Refused by name, with place: anchors and aliases, tags,
 * directives, more than one document, keys that are no scalars, merge keys, duplicate keys, NUL characters. An empty
 * file is a null. Size is checked before parsing, depth on every event. Defaults: 1 MiB, 32 levels.
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

#endif
