/* phases.c - see phases.h. */
#include "compiler/phases.h"

#include "base/clock.h"

#include <string.h>

static void phases_book(ty_compile_phases *p, const char *name, double ms)
{
    int i = 0;
    while (i < p->n && strcmp(p->name[i], name) != 0)
        i++;
    if (i == TY_MAX_COMPILE_PHASES)
        i--; /* more names than room: the last one collects the rest */
    else if (i == p->n) {
        p->name[p->n] = name;
        p->ms[p->n++] = 0;
    }
    p->ms[i] += ms;
}

void ty_phases_start(ty_compile_phases *p)
{
    p->lap_ns = ty_clock_ns();
}

void ty_phases_lap(ty_compile_phases *p, const char *name)
{
    int64_t now_ns = ty_clock_ns();
    phases_book(p, name, (double)(now_ns - p->lap_ns) * 1e-6);
    p->lap_ns = now_ns;
}

void ty_phases_add(ty_compile_phases *p, const ty_compile_phases *from)
{
    for (int i = 0; i < from->n; i++)
        phases_book(p, from->name[i], from->ms[i]);
}
