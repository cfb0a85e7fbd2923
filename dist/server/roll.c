/* roll.c - see roll.h. */
#include "dist/server/roll.h"

#include <stdlib.h>
#include <string.h>

int ty_roll_init(ty_roll *r, int n_workers, ty_error *err)
{
    *r = (ty_roll){.n = n_workers, .worker = calloc((size_t)n_workers, sizeof(ty_worker))};
    if (r->worker == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %d workers", n_workers);
    return 0;
}

static void worker_forget(ty_worker *w)
{
    for (int i = 0; i < TY_ROLL_WINDOW; i++) {
        free(w->held[i].bytes);
        w->held[i] = (ty_held){0};
    }
}

void ty_roll_fini(ty_roll *r)
{
    for (int i = 0; i < r->n; i++)
        worker_forget(&r->worker[i]);
    free(r->worker);
    *r = (ty_roll){0};
}

/* All questions before `oldest` are answered: their worker says so. */
static void worker_skip(ty_worker *w, uint64_t oldest)
{
    if (oldest <= w->next)
        return;
    w->next = oldest;
    for (int i = 0; i < TY_ROLL_WINDOW; i++)
        if (w->held[i].bytes && ((const ty_parcel *)w->held[i].bytes)->sequence < oldest) {
            free(w->held[i].bytes);
            w->held[i] = (ty_held){0};
        }
}

static ty_turn worker_early(ty_roll *r, ty_worker *w, const ty_parcel *m, ty_held from)
{
    if (m->sequence - w->next >= TY_ROLL_WINDOW) {
        r->refused++;
        return TY_TURN_DROP;
    }
    ty_held *held = &w->held[m->sequence % TY_ROLL_WINDOW];
    free(held->bytes);
    *held = from;
    r->early++;
    return TY_TURN_HELD;
}

ty_turn ty_roll_take(ty_roll *r, const ty_parcel *m, void *bytes, size_t n_bytes, int64_t peer, int64_t now_ms)
{
    ty_worker *w = &r->worker[m->worker];
    if (m->incarnation < w->incarnation) {
        r->refused++;
        return TY_TURN_REPLACED;
    }
    if (m->incarnation > w->incarnation) {
        worker_forget(w);
        w->incarnation = m->incarnation;
        w->next = 1;
    }
    w->heard_ms = now_ms;
    /* One that has left comes back with a question, not with what was still on its way. */
    if (m->kind != TY_PARCEL_BEAT && (m->sequence == 0 || m->sequence >= w->next))
        w->left = false;
    if (m->sequence == 0)
        return TY_TURN_NOW;
    worker_skip(w, m->oldest <= m->sequence ? m->oldest : m->sequence);
    if (m->sequence < w->next) {
        r->repeated++;
        return TY_TURN_AGAIN;
    }
    if (m->sequence > w->next)
        return worker_early(r, w, m, (ty_held){bytes, n_bytes, peer});
    return TY_TURN_NOW;
}

void ty_roll_done(ty_roll *r, uint32_t worker, uint64_t sequence, uint32_t status)
{
    ty_worker *w = &r->worker[worker];
    if (sequence != w->next)
        return;
    w->status[sequence % TY_ROLL_WINDOW] = status;
    w->next++;
}

bool ty_roll_next(ty_roll *r, uint32_t worker, ty_held *out)
{
    ty_worker *w = &r->worker[worker];
    ty_held *held = &w->held[w->next % TY_ROLL_WINDOW];
    if (held->bytes == NULL || ((const ty_parcel *)held->bytes)->sequence != w->next)
        return false;
    *out = *held;
    *held = (ty_held){0};
    return true;
}

uint32_t ty_roll_status(const ty_roll *r, uint32_t worker, uint64_t sequence)
{
    return r->worker[worker].status[sequence % TY_ROLL_WINDOW];
}

bool ty_roll_counted(const ty_worker *w, uint64_t step)
{
    uint64_t bit = step % TY_ROLL_STEPS;
    if (step > w->step)
        return false;
    return w->step - step >= TY_ROLL_STEPS || (w->counted[bit / 64] >> bit % 64 & 1);
}

void ty_roll_count(ty_worker *w, uint64_t step)
{
    uint64_t skipped = step > w->step ? step - w->step : 0, bit = step % TY_ROLL_STEPS;
    if (skipped >= TY_ROLL_STEPS)
        memset(w->counted, 0, sizeof w->counted);
    for (uint64_t s = w->step + 1; skipped < TY_ROLL_STEPS && s < step; s++)
        w->counted[s % TY_ROLL_STEPS / 64] &= ~(UINT64_C(1) << s % 64);
    w->counted[bit / 64] |= UINT64_C(1) << bit % 64;
    if (step > w->step)
        w->step = step;
}

int ty_roll_awaited(const ty_roll *r, uint64_t step)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += !r->worker[i].left && !ty_roll_counted(&r->worker[i], step);
    return n;
}

int ty_roll_active(const ty_roll *r)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += r->worker[i].incarnation != 0 && !r->worker[i].left;
    return n;
}

int ty_roll_left(const ty_roll *r)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += r->worker[i].left;
    return n;
}

bool ty_roll_alone(const ty_roll *r, uint32_t worker, bool came)
{
    for (int i = 0; i < r->n; i++)
        if (i != (int)worker && !r->worker[i].left && (!came || r->worker[i].incarnation != 0))
            return false;
    return true;
}

bool ty_roll_word(ty_worker *w, uint64_t question, uint32_t word)
{
    if (question <= w->asked)
        return false;
    w->asked = question;
    w->word[question % 2] = word;
    return true;
}

/* Who has left said some words before, which count for all who ask: else they would hear different answers. */
bool ty_roll_words(const ty_roll *r, uint64_t question, uint32_t *least, uint32_t *most)
{
    *least = UINT32_MAX;
    *most = 0;
    for (int i = 0; i < r->n; i++) {
        const ty_worker *w = &r->worker[i];
        uint32_t word = w->word[question % 2];
        if (w->asked < question && !w->left)
            return false;
        if (w->asked < question || w->asked > question + 1)
            continue;
        *least = word < *least ? word : *least;
        *most = word > *most ? word : *most;
    }
    return true;
}

uint64_t ty_roll_slowest(const ty_roll *r)
{
    uint64_t slowest = UINT64_MAX;
    for (int i = 0; i < r->n; i++)
        if (!r->worker[i].left && r->worker[i].clock < slowest)
            slowest = r->worker[i].clock;
    return slowest;
}

int ty_roll_silence(ty_roll *r, int64_t now_ms, int64_t limit_ms)
{
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        ty_worker *w = &r->worker[i];
        if (limit_ms > 0 && w->incarnation && !w->left && now_ms - w->heard_ms > limit_ms) {
            w->left = true;
            n++;
        }
    }
    return n;
}
