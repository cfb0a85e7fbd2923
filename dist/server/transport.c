/* transport.c - see transport.h. */
#include "dist/server/transport.h"

#include "base/rng.h"
#include "dist/plugin.h"

#include <stdlib.h>
#include <string.h>

enum { DROP_STREAM = 0x64726f70 };

int ty_transport_open(const ty_transport_options *o, ty_transport *t, ty_error *err)
{
    *t = (ty_transport){.drop_percent = o->drop_percent, .drop_seed = o->drop_seed};
    if (strcmp(o->name, ty_transport_local.name) == 0)
        t->table = &ty_transport_local;
    else if (ty_plugin_open(o->name, TY_TRANSPORT_VERSION, (const void **)&t->table, err) < 0)
        return -1;
    return t->table->open(o->listen, o->interface, &t->self, t->address, err);
}

void ty_transport_send(ty_transport *t, int64_t peer, void *bytes, size_t n_bytes)
{
    uint64_t number = t->n_sent++;
    if (t->drop_percent > 0 && ty_rng_below(t->drop_seed, DROP_STREAM, 0, number, 100) < (uint64_t)t->drop_percent) {
        t->n_dropped++;
        free(bytes);
        return;
    }
    t->table->send(t->self, peer, bytes, n_bytes);
}

void ty_transport_close(ty_transport *t)
{
    if (t->table && t->self)
        t->table->close(t->self);
    *t = (ty_transport){0};
}
