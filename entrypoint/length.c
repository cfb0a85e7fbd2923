/* length.c - see length.h. */
#include "entrypoint/length.h"

/* A schedule that goes on to the end of the run unless it is told how far. */
static bool length_is_of_run(const ty_recipe_schedule *s)
{
    switch (s->kind) {
    case TY_SCHED_WARMUP_COSINE:
        return s->decay.n == 0;
    case TY_SCHED_POLYNOMIAL:
    case TY_SCHED_ONE_CYCLE:
        return s->total.n == 0;
    default:
        return false;
    }
}

const char *ty_length_needed(const ty_recipe *r, const ty_doc **at)
{
    const ty_recipe_schedule *s = &r->schedule;
    const ty_span *spans[] = {&s->ramp, &s->warmup, &s->decay, &s->total, &s->step_size, &s->cycle};
    *at = s->at;
    if (r->train.samples > 0)
        return NULL;
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        if (spans[i]->n > 0 && spans[i]->epochs) {
            *at = spans[i]->at ? spans[i]->at : s->at;
            return spans[i] == &s->ramp ? "warmup" : "schedule";
        }
    for (int i = 0; i < s->n_boundaries; i++)
        if (s->boundaries[i].epochs) {
            *at = s->boundaries[i].at;
            return "schedule";
        }
    return r->max_steps == 0 && length_is_of_run(s) ? "schedule" : NULL;
}
