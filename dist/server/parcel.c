/* parcel.c - see parcel.h. */
#include "dist/server/parcel.h"

#include <inttypes.h>
#include <string.h>

/* A part's head on the wire; its ids, values and bytes follow, each block filled up to a multiple of 8. */
typedef struct part_head {
    uint32_t kind, variable, part, slot;
    uint64_t version, n_ids, n_values, n_bytes;
} part_head;

_Static_assert(sizeof(ty_parcel) == 112 && sizeof(part_head) == 48, "no holes: these are the bytes on the wire");

static const char *const names[TY_N_PARCELS] = {
    [TY_PARCEL_HELLO] = "HELLO", [TY_PARCEL_SET] = "SET",       [TY_PARCEL_READY] = "READY",
    [TY_PARCEL_PULL] = "PULL",   [TY_PARCEL_PUSH] = "PUSH",     [TY_PARCEL_CLOCK] = "CLOCK",
    [TY_PARCEL_SAVE] = "SAVE",   [TY_PARCEL_COMMIT] = "COMMIT", [TY_PARCEL_LOAD] = "LOAD",
    [TY_PARCEL_STAT] = "STAT",   [TY_PARCEL_LEAVE] = "LEAVE",   [TY_PARCEL_BEAT] = "BEAT",
    [TY_PARCEL_ALONE] = "ALONE", [TY_PARCEL_ANSWER] = "ANSWER", [TY_PARCEL_WORD] = "WORD",
};

const char *ty_parcel_text(unsigned kind)
{
    return kind < TY_N_PARCELS && names[kind] ? names[kind] : "unknown";
}

static size_t round_up(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

/* Bytes of a part, or 0 if its counts pass `room`. */
static size_t part_bytes(const part_head *h, size_t room)
{
    if (h->n_ids > room / sizeof(int64_t) || h->n_values > room / sizeof(float) || h->n_bytes > room)
        return 0;
    size_t bytes =
        sizeof *h + h->n_ids * sizeof(int64_t) + round_up(h->n_values * sizeof(float)) + round_up(h->n_bytes);
    return bytes <= room ? bytes : 0;
}

static int parcel_walk(const char *body, const ty_parcel *m, ty_error *err)
{
    size_t at = 0, n = m->body_bytes;
    for (uint32_t k = 0; k < m->n_parts; k++) {
        part_head h;
        if (n - at < sizeof h)
            return ty_error_set(err, TY_E_DATA, "part %u of %u begins behind the end", k + 1, m->n_parts);
        memcpy(&h, body + at, sizeof h);
        size_t bytes = part_bytes(&h, n - at);
        if (bytes == 0)
            return ty_error_set(err, TY_E_DATA, "part %u of %u goes past the end", k + 1, m->n_parts);
        if (h.kind == 0 || h.kind >= TY_N_PARTS || (h.slot != 0 && h.kind != TY_PART_DENSE))
            return ty_error_set(err, TY_E_DATA, "part %u of %u has the unknown kind %u", k + 1, m->n_parts, h.kind);
        at += bytes;
    }
    if (at != n)
        return ty_error_set(err, TY_E_DATA, "%zu bytes behind the last part", n - at);
    return 0;
}

int ty_parcel_read(const void *bytes, size_t n_bytes, ty_parcel *m, ty_error *err)
{
    if (n_bytes < sizeof *m || n_bytes > TY_PARCEL_MAX_BYTES)
        return ty_error_set(err, TY_E_DATA, "message of %zu bytes: expected %zu to %zu", n_bytes, sizeof *m,
                            TY_PARCEL_MAX_BYTES);
    memcpy(m, bytes, sizeof *m);
    if (m->magic != TY_PARCEL_MAGIC || m->format != TY_PARCEL_FORMAT)
        return ty_error_set(err, TY_E_DATA, "message: expected magic %08x and format %d, found %08x and %d",
                            TY_PARCEL_MAGIC, TY_PARCEL_FORMAT, m->magic, m->format);
    if (m->kind == 0 || m->kind >= TY_N_PARCELS)
        return ty_error_set(err, TY_E_DATA, "message of unknown kind %d", m->kind);
    if (m->body_bytes != n_bytes - sizeof *m || m->n_parts > TY_PARCEL_MAX_PARTS)
        return ty_error_set(err, TY_E_DATA, "%s: expected %zu bytes behind the head, found %" PRIu64 " in %u parts",
                            names[m->kind], n_bytes - sizeof *m, m->body_bytes, m->n_parts);
    if (parcel_walk((const char *)bytes + sizeof *m, m, err) < 0)
        return ty_error_wrap(err, "%s", names[m->kind]);
    return 0;
}

bool ty_parcel_next(const void *bytes, size_t *at, ty_part *part)
{
    ty_parcel m;
    memcpy(&m, bytes, sizeof m);
    if (*at >= m.body_bytes)
        return false;
    const char *from = (const char *)bytes + sizeof m + *at;
    part_head h;
    memcpy(&h, from, sizeof h);
    *part = (ty_part){h.kind, h.variable, h.part, h.slot, h.version, h.n_ids, h.n_values, h.n_bytes, NULL, NULL, NULL};
    from += sizeof h;
    part->ids = (const int64_t *)(const void *)from;
    from += h.n_ids * sizeof(int64_t);
    part->values = (const float *)(const void *)from;
    from += round_up(h.n_values * sizeof(float));
    part->bytes = from;
    *at += part_bytes(&h, m.body_bytes - *at);
    return true;
}

/* ---- writing ---- */

void ty_parcel_begin(ty_buf *out, const ty_parcel *m)
{
    ty_parcel head = *m;
    head.magic = TY_PARCEL_MAGIC;
    head.format = TY_PARCEL_FORMAT;
    head.n_parts = 0;
    head.body_bytes = 0;
    ty_buf_clear(out);
    ty_buf_add(out, &head, sizeof head);
}

ty_parcel *ty_parcel_head(ty_buf *out)
{
    return (ty_parcel *)(void *)out->data;
}

float *ty_parcel_add(ty_buf *out, const ty_part *p)
{
    part_head h = {p->kind, p->variable, p->part, p->slot, p->version, p->n_ids, p->n_values, p->n_bytes};
    size_t bytes = part_bytes(&h, TY_PARCEL_MAX_BYTES);
    char *to = bytes ? ty_buf_reserve(out, bytes) : NULL;
    if (to == NULL) {
        out->failed = true;
        return NULL;
    }
    out->len += bytes;
    ty_parcel_head(out)->n_parts++;
    memcpy(to, &h, sizeof h);
    to += sizeof h;
    if (p->ids && p->n_ids)
        memcpy(to, p->ids, p->n_ids * sizeof(int64_t));
    to += p->n_ids * sizeof(int64_t);
    if (p->values && p->n_values)
        memcpy(to, p->values, p->n_values * sizeof(float));
    if (p->bytes && p->n_bytes)
        memcpy(to + round_up(p->n_values * sizeof(float)), p->bytes, p->n_bytes);
    return (float *)(void *)to;
}

int ty_parcel_end(ty_buf *out, ty_error *err)
{
    if (out->failed)
        return ty_error_set(err, TY_E_LIMIT, "a message would have more than %zu bytes; use more shards or parts",
                            out->max_bytes);
    ty_parcel *head = ty_parcel_head(out);
    if (head->n_parts > TY_PARCEL_MAX_PARTS)
        return ty_error_set(err, TY_E_LIMIT, "a message would have more than %d parts", TY_PARCEL_MAX_PARTS);
    head->body_bytes = out->len - sizeof *head;
    return 0;
}
