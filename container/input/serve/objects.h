/* objects.h - what a served channel sends: objects of files, or attributes of the lines of a manifest. Private to
 * container/input/serve/. */
#ifndef TY_CONTAINER_INPUT_SERVE_OBJECTS_H
#define TY_CONTAINER_INPUT_SERVE_OBJECTS_H

#include "base/arena.h"
#include "container/input/serve/serve.h"

typedef struct serve_attribute {
    const char *path; /* of the object that a -ref points to; NULL: the text */
    const char *text;
    size_t n;
} serve_attribute;

typedef struct serve_object {
    const char *path;                 /* of a file; NULL: a line of a manifest */
    const serve_attribute *attribute; /* [n_attributes] */
} serve_object;

/* All of the shard, in order. Everything lies in the arena. */
int serve_objects_list(const ty_serve_config *config, ty_arena *a, serve_object **out, int64_t *n_out, ty_error *err);

#endif
