/* message.c - both directions of each message side by side, so that they can be compared line by line. */
#include "dist/agent/message.h"

#include <string.h>

/* ---- numbers and texts ---- */

void ty_put_number(ty_buf *b, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        ty_buf_addc(b, (char)(value >> (8 * i)));
}

void ty_put_text(ty_buf *b, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (n > 65535)
        n = 65535;
    ty_put_number(b, n, 2);
    if (n > 0)
        ty_buf_add(b, text, n);
}

uint64_t ty_get_number(ty_reader *r, int n_bytes)
{
    uint64_t value = 0;
    if (r->failed || r->end - r->at < n_bytes) {
        r->failed = true;
        return 0;
    }
    for (int i = 0; i < n_bytes; i++)
        value |= (uint64_t)*r->at++ << (8 * i);
    return value;
}

void ty_get_text(ty_reader *r, char *out, size_t n)
{
    size_t length = ty_get_number(r, 2), kept;
    out[0] = 0;
    if (r->failed || (size_t)(r->end - r->at) < length) {
        r->failed = true;
        return;
    }
    kept = length < n ? length : n - 1;
    for (size_t i = 0; i < kept; i++)
        out[i] = r->at[i] < 0x20 || r->at[i] == 0x7f ? '?' : (char)r->at[i];
    out[kept] = 0;
    r->at += length;
}

int ty_get_end(const ty_reader *r, const char *what, ty_error *err)
{
    if (r->failed || r->at != r->end)
        return ty_error_set(err, TY_E_DATA, "message \"%s\" is too %s", what, r->failed ? "short" : "long");
    return 0;
}

static int get_int(ty_reader *r, int n_bytes)
{
    return (int)(int32_t)(uint32_t)ty_get_number(r, n_bytes);
}

static int64_t get_signed(ty_reader *r)
{
    return (int64_t)ty_get_number(r, 8);
}

/* A count that the limit bounds; more is a failure. */
static int get_count(ty_reader *r, int limit)
{
    int n = (int)ty_get_number(r, 2);
    if (n > limit)
        r->failed = true;
    return r->failed ? 0 : n;
}

/* ---- hello ---- */

void ty_put_hello(ty_buf *b, const ty_hello *h)
{
    ty_put_number(b, (uint64_t)h->host, 4);
    ty_put_text(b, h->name);
    ty_put_text(b, h->interface);
    ty_put_text(b, h->address);
    ty_put_number(b, (uint64_t)h->mtu, 4);
    ty_put_number(b, (uint64_t)h->speed_mbit, 4);
    ty_put_number(b, (uint64_t)h->look_port, 2);
    ty_put_number(b, (uint64_t)h->cores, 4);
    ty_put_number(b, (uint64_t)h->memory_bytes, 8);
    ty_put_number(b, (uint64_t)h->n_addresses, 2);
    for (int i = 0; i < h->n_addresses; i++)
        ty_put_text(b, h->addresses[i]);
    ty_put_number(b, (uint64_t)h->n_facts, 2);
    for (int i = 0; i < h->n_facts; i++) {
        ty_put_text(b, h->facts[i].name);
        ty_put_text(b, h->facts[i].value);
    }
}

int ty_get_hello(ty_reader *r, ty_hello *h, ty_error *err)
{
    *h = (ty_hello){.host = get_int(r, 4)};
    ty_get_text(r, h->name, sizeof h->name);
    ty_get_text(r, h->interface, sizeof h->interface);
    ty_get_text(r, h->address, sizeof h->address);
    h->mtu = get_int(r, 4);
    h->speed_mbit = get_int(r, 4);
    h->look_port = (int)ty_get_number(r, 2);
    h->cores = get_int(r, 4);
    h->memory_bytes = get_signed(r);
    h->n_addresses = get_count(r, TY_HELLO_ADDRESSES);
    for (int i = 0; i < h->n_addresses; i++)
        ty_get_text(r, h->addresses[i], sizeof h->addresses[i]);
    h->n_facts = get_count(r, TY_HELLO_FACTS);
    for (int i = 0; i < h->n_facts; i++) {
        ty_get_text(r, h->facts[i].name, sizeof h->facts[i].name);
        ty_get_text(r, h->facts[i].value, sizeof h->facts[i].value);
    }
    return ty_get_end(r, "hello", err);
}

/* ---- map ---- */

void ty_put_map(ty_buf *b, const ty_map *map)
{
    ty_put_number(b, map->nonce, 8);
    ty_put_number(b, map->preflight, 1);
    ty_put_number(b, (uint64_t)map->n_hosts, 4);
    for (int i = 0; i < map->n_hosts; i++) {
        ty_put_text(b, map->hosts[i].address);
        ty_put_number(b, (uint64_t)map->hosts[i].look_port, 2);
    }
}

int ty_get_map(ty_reader *r, ty_map *map, ty_error *err)
{
    map->nonce = ty_get_number(r, 8);
    map->preflight = ty_get_number(r, 1) != 0;
    if (get_int(r, 4) != map->n_hosts)
        return ty_error_set(err, TY_E_DATA, "the leader's map has another number of hosts than %d", map->n_hosts);
    for (int i = 0; i < map->n_hosts; i++) {
        ty_get_text(r, map->hosts[i].address, sizeof map->hosts[i].address);
        map->hosts[i].look_port = (int)ty_get_number(r, 2);
    }
    return ty_get_end(r, "map", err);
}

/* ---- a rank's end ---- */

void ty_put_exit(ty_buf *b, const ty_exit *e)
{
    ty_put_number(b, (uint64_t)e->generation, 4);
    ty_put_number(b, (uint64_t)e->rank, 4);
    ty_put_number(b, (uint64_t)e->pid, 4);
    ty_put_number(b, (uint64_t)e->wait_status, 4);
    ty_put_number(b, e->aborted, 1);
    ty_put_number(b, (uint64_t)e->memory_percent, 1);
    ty_put_number(b, (uint64_t)e->step, 8);
    ty_put_number(b, (uint64_t)e->phase, 1);
    ty_put_text(b, e->text);
}

static ty_phase get_phase(ty_reader *r)
{
    uint64_t phase = ty_get_number(r, 1);
    return phase < TY_PHASES ? (ty_phase)phase : TY_PHASE_NONE;
}

int ty_get_exit(ty_reader *r, ty_exit *e, ty_error *err)
{
    *e = (ty_exit){.generation = get_int(r, 4)};
    e->rank = get_int(r, 4);
    e->pid = get_int(r, 4);
    e->wait_status = get_int(r, 4);
    e->aborted = ty_get_number(r, 1) != 0;
    e->memory_percent = (int)ty_get_number(r, 1);
    e->step = get_signed(r);
    e->phase = get_phase(r);
    ty_get_text(r, e->text, sizeof e->text);
    return ty_get_end(r, "exit", err);
}

/* ---- pages ---- */

enum { TEXTS_AFTER_MS = 1000 };

static bool is_waiting(const ty_page_stream_view *s)
{
    return s->begun > s->ended && s->begun_ms >= TEXTS_AFTER_MS;
}

void ty_put_page(ty_buf *b, const ty_page_view *view)
{
    ty_put_number(b, (uint64_t)view->phase, 1);
    ty_put_number(b, (uint64_t)view->phase_ms, 4);
    ty_put_number(b, (uint64_t)view->step, 8);
    uint64_t streams = 0;
    for (int i = 0; i < TY_PAGE_STREAMS; i++)
        streams |= (uint64_t)(view->streams[i].begun > 0) << i;
    ty_put_number(b, streams, 1);
    for (int i = 0; i < TY_PAGE_STREAMS; i++) {
        const ty_page_stream_view *s = &view->streams[i];
        if (s->begun == 0)
            continue;
        ty_put_number(b, s->begun, 8);
        ty_put_number(b, s->begun - s->ended, 4);
        ty_put_number(b, (uint64_t)s->begun_ms, 4);
        ty_put_number(b, (uint64_t)s->n_bytes, 8);
        ty_put_number(b, (uint64_t)s->bucket, 4);
        ty_put_text(b, is_waiting(s) ? s->kind : "");
        ty_put_text(b, is_waiting(s) ? s->name : "");
    }
}

static void get_stream(ty_reader *r, ty_page_stream_view *s)
{
    s->begun = ty_get_number(r, 8);
    uint64_t open = ty_get_number(r, 4);
    s->ended = s->begun > open ? s->begun - open : 0;
    s->begun_ms = (int64_t)ty_get_number(r, 4);
    s->n_bytes = get_signed(r);
    s->bucket = get_int(r, 4);
    ty_get_text(r, s->kind, sizeof s->kind);
    ty_get_text(r, s->name, sizeof s->name);
}

void ty_get_page(ty_reader *r, ty_page_view *view)
{
    *view = (ty_page_view){.phase = get_phase(r)};
    view->phase_ms = (int64_t)ty_get_number(r, 4);
    view->step = get_signed(r);
    uint64_t streams = ty_get_number(r, 1);
    for (int i = 0; i < TY_PAGE_STREAMS; i++)
        if (streams >> i & 1)
            get_stream(r, &view->streams[i]);
}

/* ---- ends ---- */

void ty_put_culprit(ty_buf *b, const ty_culprit *c)
{
    ty_put_number(b, (uint64_t)c->rank, 4);
    ty_put_number(b, (uint64_t)c->host, 4);
    ty_put_number(b, (uint64_t)c->pid, 4);
    ty_put_number(b, (uint64_t)c->signal, 4);
    ty_put_number(b, (uint64_t)c->exit_status, 4);
    ty_put_number(b, (uint64_t)c->step, 8);
    ty_put_text(b, c->phase);
    ty_put_text(b, c->text);
}

void ty_get_culprit(ty_reader *r, ty_culprit *c)
{
    *c = (ty_culprit){.rank = get_int(r, 4)};
    c->host = get_int(r, 4);
    c->pid = get_int(r, 4);
    c->signal = get_int(r, 4);
    c->exit_status = get_int(r, 4);
    c->step = get_signed(r);
    ty_get_text(r, c->phase, sizeof c->phase);
    ty_get_text(r, c->text, sizeof c->text);
}

void ty_put_end(ty_buf *b, const ty_agent_end *end)
{
    ty_put_number(b, (uint64_t)end->status, 4);
    ty_put_number(b, (uint64_t)(end->failed | end->stopped << 1), 1);
    ty_put_number(b, (uint64_t)end->generation, 4);
    ty_put_culprit(b, &end->first);
}

int ty_get_end_of_job(ty_reader *r, ty_agent_end *end, ty_error *err)
{
    *end = (ty_agent_end){.status = get_int(r, 4)};
    uint64_t flags = ty_get_number(r, 1);
    end->failed = flags & 1;
    end->stopped = flags & 2;
    end->generation = get_int(r, 4);
    ty_get_culprit(r, &end->first);
    return ty_get_end(r, "end", err);
}
