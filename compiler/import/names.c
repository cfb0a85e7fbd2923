/* names.c - open addressing with FNV-1a; grows at two thirds, old tables stay in the arena. */
#include "compiler/import/names.h"

#include <string.h>

struct names_slot {
    const char *name; /* NULL: free */
    uint32_t hash;
    int number;
};

static uint32_t names_hash(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    return h;
}

void ty_names_init(ty_names *m, ty_arena *arena)
{
    *m = (ty_names){.arena = arena};
}

static struct names_slot *names_slot_of(const ty_names *m, const char *name, uint32_t hash)
{
    for (uint32_t i = hash;; i++) {
        struct names_slot *slot = &m->slots[i & (m->n_slots - 1)];
        if (!slot->name || (slot->hash == hash && strcmp(slot->name, name) == 0))
            return slot;
    }
}

int ty_names_find(const ty_names *m, const char *name)
{
    if (m->n_slots == 0)
        return -1;
    const struct names_slot *slot = names_slot_of(m, name, names_hash(name));
    return slot->name ? slot->number : -1;
}

static void names_grow(ty_names *m)
{
    ty_names bigger = {.arena = m->arena, .n_slots = m->n_slots ? m->n_slots * 2 : 32};
    bigger.slots = TY_NEW_ARRAY(m->arena, struct names_slot, bigger.n_slots);
    for (uint32_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].name)
            *names_slot_of(&bigger, m->slots[i].name, m->slots[i].hash) = m->slots[i];
    bigger.n_used = m->n_used;
    *m = bigger;
}

void ty_names_put(ty_names *m, const char *name, int number)
{
    if (m->n_used * 3 >= m->n_slots * 2)
        names_grow(m);
    uint32_t hash = names_hash(name);
    struct names_slot *slot = names_slot_of(m, name, hash);
    m->n_used += !slot->name;
    *slot = (struct names_slot){name, hash, number};
}
