/* example.c - see example.h. */
#include "container/output/example.h"

#include "container/output/protobuf.h"

#include <string.h>

enum { BYTES_LIST = 1, FLOAT_LIST, INT_LIST };

void ty_example_writer_init(ty_example_writer *x, size_t max_bytes)
{
    ty_buf_init(&x->features, max_bytes);
    ty_buf_init(&x->list, max_bytes);
    ty_buf_init(&x->feature, max_bytes);
    ty_buf_init(&x->record, max_bytes);
}

void ty_example_writer_fini(ty_example_writer *x)
{
    ty_buf_fini(&x->features);
    ty_buf_fini(&x->list);
    ty_buf_fini(&x->feature);
    ty_buf_fini(&x->record);
}

void ty_example_clear(ty_example_writer *x)
{
    ty_buf_clear(&x->features);
    ty_buf_clear(&x->record);
    x->features.failed = x->list.failed = x->feature.failed = x->record.failed = false;
}

/* x->list holds the list's message: around it the feature, the entry, the field of Features. */
static void add_feature(ty_example_writer *x, const char *name, int kind)
{
    ty_buf_clear(&x->feature);
    ty_proto_put_bytes(&x->feature, kind, x->list.data, x->list.len);
    ty_buf_clear(&x->list);
    ty_proto_put_bytes(&x->list, 1, name, strlen(name));
    ty_proto_put_bytes(&x->list, 2, x->feature.data, x->feature.len);
    ty_proto_put_bytes(&x->features, 1, x->list.data, x->list.len);
}

void ty_example_add_floats(ty_example_writer *x, const char *name, const float *v, int64_t n)
{
    ty_buf_clear(&x->list);
    ty_proto_put_bytes(&x->list, 1, v, (size_t)n * sizeof *v); /* all our targets are little-endian */
    add_feature(x, name, FLOAT_LIST);
}

void ty_example_add_ints(ty_example_writer *x, const char *name, const int64_t *v, int64_t n)
{
    ty_buf_clear(&x->feature);
    for (int64_t i = 0; i < n; i++)
        ty_proto_put_varint(&x->feature, (uint64_t)v[i]);
    ty_buf_clear(&x->list);
    ty_proto_put_bytes(&x->list, 1, x->feature.data, x->feature.len);
    add_feature(x, name, INT_LIST);
}

void ty_example_begin_bytes(ty_example_writer *x)
{
    ty_buf_clear(&x->list);
}

void ty_example_one_of_bytes(ty_example_writer *x, const void *bytes, size_t n)
{
    ty_proto_put_bytes(&x->list, 1, bytes, n);
}

void ty_example_end_bytes(ty_example_writer *x, const char *name)
{
    add_feature(x, name, BYTES_LIST);
}

void ty_example_add_bytes(ty_example_writer *x, const char *name, const void *bytes, size_t n)
{
    ty_example_begin_bytes(x);
    ty_example_one_of_bytes(x, bytes, n);
    ty_example_end_bytes(x, name);
}

const ty_buf *ty_example_record(ty_example_writer *x)
{
    ty_buf_clear(&x->record);
    ty_proto_put_bytes(&x->record, 1, x->features.data, x->features.len);
    bool failed = x->features.failed || x->list.failed || x->feature.failed || x->record.failed;
    return failed ? NULL : &x->record;
}
