/* onnx_write.c - the model file again, with other weights.
 *
 * Nothing is re-encoded from the parsed tree: the file's own fields are walked and passed on as they lie, so that
 * whatever we do not know (training info, metadata, future fields) survives. Only the data fields of the named
 * initializers change, and with them the lengths of the messages around them. Each message is walked once without a
 * sink to learn its length.
 *
 * A model beyond 2 GiB is no protobuf message any more. Its large weights then go to a second file as external data.
 */
#include "compiler/import/onnx_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OUTSIDE_MIN_BYTES 1024 /* smaller weights stay in the model */
#define OUTSIDE_ALIGNMENT 4096 /* so that a reader may map each alone */

enum { MODEL_GRAPH = 7, GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, COUNTED = 2 };
enum { FLOAT_DATA = 4, RAW_DATA = 9, DOUBLE_DATA = 10, EXTERNAL_DATA = 13, DATA_LOCATION = 14 };

typedef struct writer {
    const ty_onnx *m;
    const void **payload; /* by initializer; NULL: as it is */
    ty_onnx_sink *sink;   /* NULL: only count */
    void *ctx;
    const char *data_name;   /* of the second file; NULL: there is none */
    const uint64_t *outside; /* by initializer: offset in the second file, or UINT64_MAX: inside */
    uint64_t n;              /* bytes so far */
    int next;                /* number of the next initializer */
    int node;                /* and of the next node */
    bool has_parted;         /* those that were merged are written */
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

/* ---- tensors outside ---- */

static int put_pair_body(writer *w, const char *key, const char *value)
{
    if (put_head(w, 1, strlen(key)) < 0 || put(w, key, strlen(key)) < 0 || put_head(w, 2, strlen(value)) < 0)
        return -1;
    return put(w, value, strlen(value));
}

static int put_pair(writer *w, const char *key, const char *value)
{
    writer counting = {.m = w->m};
    put_pair_body(&counting, key, value);
    return put_head(w, EXTERNAL_DATA, counting.n) < 0 ? -1 : put_pair_body(w, key, value);
}

/* One TensorProto without data, which says where they are. */
static int put_outside(writer *w, ty_bytes body, uint64_t offset, size_t n_bytes)
{
    static const uint8_t external[] = {DATA_LOCATION << 3, 1};
    char at[24], n[24];
    ty_wire_item item;
    for (ty_bytes in = body; ty_wire_next(&in, &item, NULL) > 0;)
        if (!is_data_field(item.number) && item.number != EXTERNAL_DATA && item.number != DATA_LOCATION &&
            put(w, item.whole.data, item.whole.n) < 0)
            return -1;
    snprintf(at, sizeof at, "%" PRIu64, offset);
    snprintf(n, sizeof n, "%zu", n_bytes);
    if (put_pair(w, "location", w->data_name) < 0 || put_pair(w, "offset", at) < 0 || put_pair(w, "length", n) < 0)
        return -1;
    return put(w, external, sizeof external);
}

static int put_initializer_outside(writer *w, ty_bytes body, int i)
{
    size_t n_bytes = ty_type_bytes(&w->m->initializers[i].type);
    writer counting = {.m = w->m, .data_name = w->data_name};
    put_outside(&counting, body, w->outside[i], n_bytes);
    return put_head(w, GRAPH_INITIALIZER, counting.n) < 0 ? -1 : put_outside(w, body, w->outside[i], n_bytes);
}

/* Initializer i, whose TensorProto is t, with the data given; body: as it stands, perhaps with other data. */
static int put_initializer(writer *w, const onnx_tensor *t, ty_bytes body, int i, const void *data)
{
    if (w->outside && w->outside[i] != UINT64_MAX)
        return put_initializer_outside(w, body, i);
    size_t n_bytes = ty_type_bytes(&w->m->initializers[i].type);
    writer counting = {.m = w->m};
    put_tensor(&counting, t, body, data, n_bytes);
    return put_head(w, GRAPH_INITIALIZER, counting.n) < 0 ? -1 : put_tensor(w, t, body, data, n_bytes);
}

static int put_initializer_of_file(writer *w, const ty_wire_item *item)
{
    int i = w->next++;
    const onnx_tensor *t = ONNX_AT(w->m->tree.graph->initializers, onnx_tensor, i);
    const void *data = w->payload[i];
    bool is_outside = w->outside && w->outside[i] != UINT64_MAX;
    if (!data && t->location == 1)
        data = w->m->initializers[i].data;
    if (!data && !is_outside)
        return put(w, item->whole.data, item->whole.n);
    return put_initializer(w, t, item->body, i, data);
}

/* Those that were merged follow the file's own. */
static int put_parted(writer *w)
{
    const onnx_tensor inside = {0};
    int first = w->m->n_initializers - w->m->n_parted;
    for (int k = 0; k < w->m->n_parted && !w->has_parted; k++) {
        const void *data = w->payload[first + k] ? w->payload[first + k] : w->m->initializers[first + k].data;
        if (put_initializer(w, &inside, w->m->parted[k], first + k, data) < 0)
            return -1;
    }
    w->has_parted = true;
    return 0;
}

/* ---- model --------------------------------------------------------------------------------------------------------
 */

static int put_graph_item(writer *w, const ty_wire_item *item)
{
    if (item->number == GRAPH_INITIALIZER && item->type == COUNTED)
        return put_initializer_of_file(w, item);
    if (item->number == GRAPH_NODE && item->type == COUNTED && w->m->is_parted && w->m->is_parted[w->node++])
        return 0;
    return put(w, item->whole.data, item->whole.n);
}

static int put_graph(writer *w, ty_bytes body)
{
    ty_wire_item item;
    while (ty_wire_next(&body, &item, NULL) > 0)
        if (put_graph_item(w, &item) < 0)
            return -1;
    return put_parted(w);
}

static int put_model(writer *w)
{
    ty_wire_item item;
    for (ty_bytes in = w->m->bytes; ty_wire_next(&in, &item, NULL) > 0;) {
        int rc;
        if (item.number == MODEL_GRAPH && item.type == COUNTED) {
            writer counting = *w;
            counting.sink = NULL;
            counting.n = 0;
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

bool ty_onnx_needs_two_files(const ty_onnx *m)
{
    return ty_onnx_written_bytes(m, NULL, 0) > INT32_MAX;
}

static int write_model(writer *w)
{
    writer counting = *w;
    counting.sink = NULL;
    put_model(&counting);
    if (counting.n > INT32_MAX)
        return ty_error_set(w->err, TY_E_LIMIT, "the model would have %llu bytes; an ONNX file ends at 2 GiB",
                            (unsigned long long)counting.n);
    return put_model(w);
}

int ty_onnx_write(const ty_onnx *m, const ty_onnx_payload *payloads, int n_payloads, ty_onnx_sink *sink, void *ctx,
                  ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    writer w = {
        .m = m, .payload = index_payloads(m, &arena, payloads, n_payloads), .sink = sink, .ctx = ctx, .err = err};
    int rc = write_model(&w);
    ty_arena_fini(&arena);
    return rc;
}

/* Offsets of the weights that go outside, in the order of the file. */
static const uint64_t *place_outside(const ty_onnx *m, ty_arena *arena)
{
    uint64_t *outside = TY_NEW_ARRAY(arena, uint64_t, m->n_initializers + 1), at = 0;
    for (int i = 0; i < m->n_initializers; i++) {
        const ty_onnx_initializer *init = &m->initializers[i];
        outside[i] = UINT64_MAX;
        if (init->type.dtype == TY_N_DTYPES || !init->data || ty_type_bytes(&init->type) < OUTSIDE_MIN_BYTES)
            continue;
        outside[i] = at;
        at = (at + ty_type_bytes(&init->type) + OUTSIDE_ALIGNMENT - 1) / OUTSIDE_ALIGNMENT * OUTSIDE_ALIGNMENT;
    }
    return outside;
}

static int write_outside(const writer *w, ty_onnx_sink *sink, void *ctx)
{
    static const uint8_t zeros[OUTSIDE_ALIGNMENT];
    uint64_t at = 0;
    for (int i = 0; i < w->m->n_initializers; i++) {
        const ty_onnx_initializer *init = &w->m->initializers[i];
        if (w->outside[i] == UINT64_MAX)
            continue;
        const void *data = w->payload[i] ? w->payload[i] : init->data;
        size_t n_bytes = ty_type_bytes(&init->type);
        if ((w->outside[i] > at && sink(ctx, zeros, (size_t)(w->outside[i] - at), w->err) < 0) ||
            sink(ctx, data, n_bytes, w->err) < 0)
            return -1;
        at = w->outside[i] + n_bytes;
    }
    return 0;
}

int ty_onnx_write_two_files(const ty_onnx *m, const ty_onnx_payload *payloads, int n_payloads, const char *data_name,
                            ty_onnx_sink *sink, void *ctx, ty_onnx_sink *data_sink, void *data_ctx, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    writer w = {.m = m,
                .payload = index_payloads(m, &arena, payloads, n_payloads),
                .sink = sink,
                .ctx = ctx,
                .data_name = data_name,
                .outside = place_outside(m, &arena),
                .err = err};
    int rc = write_outside(&w, data_sink, data_ctx);
    if (rc == 0)
        rc = write_model(&w);
    ty_arena_fini(&arena);
    return rc;
}
