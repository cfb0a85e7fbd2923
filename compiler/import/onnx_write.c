/* onnx_write.c - the model file again, with other weights.
 *
 * Nothing is re-encoded from the parsed tree: the file's own fields are walked and passed on as they lie, so that
 * whatever we do not know (training info, metadata, future fields) survives. Only the data fields of the named
 * initializers change, and with them the lengths of the messages around them. Each message is walked once without a
 * sink to learn its length.
 */
#include "compiler/import/onnx_tree.h"

#include <string.h>

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, COUNTED = 2 };
enum { FLOAT_DATA = 4, RAW_DATA = 9, DOUBLE_DATA = 10, EXTERNAL_DATA = 13, DATA_LOCATION = 14 };

typedef struct writer {
    const ty_onnx *m;
    const void **payload; /* by initializer; NULL: as it is */
    ty_onnx_sink *sink;   /* NULL: only count */
    void *ctx;
    uint64_t n; /* bytes so far */
    int next;   /* number of the next initializer */
    ty_error *err;
} writer;

static int put(writer *w, const void *bytes, size_t n)
{
    w->n += n;
    return w->sink && n ? w->sink(w->ctx, bytes, n, w->err) : 0;
}

static int put_head(writer *w, uint32_t number, uint64_t n_body)
{
    uint8_t head[TY_WIRE_HEAD_BYTES];
    return put(w, head, ty_wire_put_head(head, number, n_body));
}

/* ---- tensors ------------------------------------------------------------------------------------------------------
 */

static bool is_data_field(uint32_t number)
{
    return (number >= FLOAT_DATA && number <= 7) || (number >= RAW_DATA && number <= 11);
}

/* The field in which new bytes are written: the old one if its bytes are laid out like ours, else raw_data. */
static uint32_t data_field(ty_bytes body, size_t n_bytes)
{
    uint32_t found = 0;
    ty_wire_item item;
    for (ty_bytes in = body; ty_wire_next(&in, &item, NULL) > 0;) {
        if (!is_data_field(item.number))
            continue;
        bool fits =
            item.type == COUNTED && item.body.n == n_bytes && (item.number == FLOAT_DATA || item.number == DOUBLE_DATA);
        if (!fits || found)
            return RAW_DATA;
        found = item.number;
    }
    return found ? found : RAW_DATA;
}

static int put_data(writer *w, uint32_t number, const void *data, size_t n_bytes)
{
    return put_head(w, number, n_bytes) < 0 ? -1 : put(w, data, n_bytes);
}

/* One TensorProto with its data replaced where the first of them stood. */
static int put_tensor(writer *w, const onnx_tensor *t, ty_bytes body, const void *data, size_t n_bytes)
{
    bool was_external = t->location == 1, done = false;
    uint32_t number = data_field(body, n_bytes);
    ty_wire_item item;
    for (ty_bytes in = body; ty_wire_next(&in, &item, NULL) > 0;) {
        bool drop = is_data_field(item.number) ||
                    (was_external && (item.number == EXTERNAL_DATA || item.number == DATA_LOCATION));
        int rc = 0;
        if (drop && !done)
            rc = put_data(w, number, data, n_bytes);
        else if (!drop)
            rc = put(w, item.whole.data, item.whole.n);
        done = done || drop;
        if (rc < 0)
            return -1;
    }
    return done ? 0 : put_data(w, number, data, n_bytes);
}

static int put_initializer(writer *w, const ty_wire_item *item)
{
    const ty_onnx_initializer *init = &w->m->initializers[w->next];
    const onnx_tensor *t = ONNX_AT(w->m->tree.graph->initializers, onnx_tensor, w->next);
    const void *data = w->payload[w->next++];
    if (!data && t->location == 1)
        data = init->data;
    if (!data)
        return put(w, item->whole.data, item->whole.n);
    size_t n_bytes = ty_type_bytes(&init->type);
    writer counting = {.m = w->m};
    put_tensor(&counting, t, item->body, data, n_bytes);
    return put_head(w, GRAPH_INITIALIZER, counting.n) < 0 ? -1 : put_tensor(w, t, item->body, data, n_bytes);
}

/* ---- model --------------------------------------------------------------------------------------------------------
 */

static int put_graph(writer *w, ty_bytes body)
{
    ty_wire_item item;
    while (ty_wire_next(&body, &item, NULL) > 0) {
        int rc = item.number == GRAPH_INITIALIZER && item.type == COUNTED ? put_initializer(w, &item)
                                                                          : put(w, item.whole.data, item.whole.n);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int put_model(writer *w)
{
    ty_wire_item item;
    for (ty_bytes in = w->m->bytes; ty_wire_next(&in, &item, NULL) > 0;) {
        int rc;
        if (item.number == MODEL_GRAPH && item.type == COUNTED) {
            writer counting = {.m = w->m, .payload = w->payload, .next = w->next};
            put_graph(&counting, item.body);
            rc = put_head(w, MODEL_GRAPH, counting.n) < 0 ? -1 : put_graph(w, item.body);
        } else
            rc = put(w, item.whole.data, item.whole.n);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Payloads by number of the initializer; freed with the arena. */
static const void **index_payloads(const ty_onnx *m, ty_arena *arena, const ty_onnx_payload *payloads, int n)
{
    const void **by_number = TY_NEW_ARRAY(arena, const void *, m->n_initializers + 1);
    for (int i = 0; i < n; i++)
        if (payloads[i].initializer >= 0 && payloads[i].initializer < m->n_initializers &&
            m->initializers[payloads[i].initializer].type.dtype != TY_N_DTYPES)
            by_number[payloads[i].initializer] = payloads[i].data;
    return by_number;
}

uint64_t ty_onnx_written_bytes(const ty_onnx *m, const ty_onnx_payload *payloads, int n_payloads)
{
    ty_arena arena;
    ty_arena_init(&arena);
    writer w = {.m = m, .payload = index_payloads(m, &arena, payloads, n_payloads)};
    put_model(&w);
    ty_arena_fini(&arena);
    return w.n;
}

int ty_onnx_write(const ty_onnx *m, const ty_onnx_payload *payloads, int n_payloads, ty_onnx_sink *sink, void *ctx,
                  ty_error *err)
{
    uint64_t n_bytes = ty_onnx_written_bytes(m, payloads, n_payloads);
    if (n_bytes > INT32_MAX)
        return ty_error_set(err, TY_E_LIMIT, "the model would have %llu bytes; an ONNX file ends at 2 GiB",
                            (unsigned long long)n_bytes);
    ty_arena arena;
    ty_arena_init(&arena);
    writer w = {
        .m = m, .payload = index_payloads(m, &arena, payloads, n_payloads), .sink = sink, .ctx = ctx, .err = err};
    int rc = put_model(&w);
    ty_arena_fini(&arena);
    return rc;
}
