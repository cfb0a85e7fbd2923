/* example.h - a tf.train.Example, written feature by feature.
 *
 * Source: tensorflow/core/example/{example,feature}.proto. Lists of numbers are packed; features stand in the order in
 * which they are added.
 *
 *     ty_example_clear(&x);
 *     ty_example_add_floats(&x, "label", &label, 1);
 *     ty_example_add_ints(&x, "ids", ids, n);
 *     const ty_buf *record = ty_example_record(&x);      // NULL: too large
 */
#ifndef TY_CONTAINER_OUTPUT_EXAMPLE_H
#define TY_CONTAINER_OUTPUT_EXAMPLE_H

#include "base/buf.h"

typedef struct ty_example_writer {
    ty_buf features, list, feature, record; /* private; messages on their way into one another */
} ty_example_writer;

void ty_example_writer_init(ty_example_writer *x, size_t max_bytes);
void ty_example_writer_fini(ty_example_writer *x);

void ty_example_clear(ty_example_writer *x);
void ty_example_add_floats(ty_example_writer *x, const char *name, const float *v, int64_t n);
void ty_example_add_ints(ty_example_writer *x, const char *name, const int64_t *v, int64_t n);
/* One string of bytes. */
/* Several: begin, each one, end. */
void ty_example_begin_bytes(ty_example_writer *x);
void ty_example_one_of_bytes(ty_example_writer *x, const void *bytes, size_t n);
void ty_example_end_bytes(ty_example_writer *x, const char *name);
void ty_example_add_bytes(ty_example_writer *x, const char *name, const void *bytes, size_t n);
/* The message's bytes, until the next clear. */
const ty_buf *ty_example_record(ty_example_writer *x);

#endif
