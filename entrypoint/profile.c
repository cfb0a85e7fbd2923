/* profile.c - timing the calls of some steps, and adding them up by layer and by kind of work. See profile.h. */
#include "entrypoint/profile.h"

#include "base/clock.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- running ---- */

/* One micro-batch. run: NULL while warming up. */
static int run_tape(ty_session *s, ty_run tape, int64_t epoch_ns, ty_profile_run *run, ty_error *err)
{
    const ty_batch *batch;
    int64_t asked = ty_clock_ns();
    if (ty_prefetch_next(s->batches, &batch, err) < 0)
        return ty_error_wrap(err, "data.train");
    if (!batch)
        return ty_error_set(err, TY_E_INTERNAL, "the training data ended early");
    ty_session_point_inputs(s, batch, s->train_field);
    int64_t start = ty_clock_ns();
    /* A GPU's calls are timed one by one in a run of their own, the step as the graph that training runs. */
    int rc = ty_program_run_timed(s->program, tape, s->inputs, run && !s->on_gpu ? run->call_ns : NULL, err);
    int64_t end = ty_clock_ns();
    if (rc == 0 && run && s->on_gpu)
        rc = ty_program_run_timed(s->program, tape, s->inputs, run->call_ns, err);
    ty_prefetch_release(s->batches, batch);
    if (run) {
        run->tape = tape;
        run->wait_ns = asked - epoch_ns;
        run->start_ns = start - epoch_ns;
        run->total_ns = end - start;
    }
    return rc;
}

static int run_step(ty_session *s, int64_t epoch_ns, ty_profile_run *runs, int step, ty_error *err)
{
    int64_t n = s->recipe.accumulate;
    for (int64_t i = 0; i < n; i++) {
        ty_profile_run *run = runs ? &runs[i] : NULL;
        if (run)
            run->step = step;
        if (run_tape(s, i + 1 < n ? TY_RUN_MICRO : TY_RUN_LAST, epoch_ns, run, err) < 0)
            return ty_error_wrap(err, "step %d", step + 1);
    }
    return 0;
}

static void read_loss(const ty_session *s, ty_profile *p)
{
    const ty_tensor *loss = ty_program_output(s->program, TY_RUN_LAST, "loss");
    p->loss = loss && loss->data && loss->type.dtype == TY_F32 ? (double)*(const float *)loss->data : NAN;
}

/* 512 MiB of times. */
#define MAX_TIMES (64e6)

static int check_size(const ty_session *s, const ty_profile *p, ty_error *err)
{
    int n = ty_program_n_calls(s->program, TY_RUN_LAST);
    if ((double)p->n_steps * (double)s->recipe.accumulate * (n + 1) <= MAX_TIMES)
        return 0;
    ty_error_set(err, TY_E_LIMIT, "%d steps of %lld micro-batches with %d calls are more times than the %.0f kept",
                 p->n_steps, (long long)s->recipe.accumulate, n, MAX_TIMES);
    return ty_error_help(err, "time fewer steps (--steps)");
}

static int run_steps(ty_session *s, ty_profile *p, ty_error *err)
{
    if (check_size(s, p, err) < 0)
        return -1;
    int a_step = (int)s->recipe.accumulate;
    p->n_runs = p->n_steps * a_step;
    p->run = TY_NEW_ARRAY(&s->arena, ty_profile_run, p->n_runs);
    for (int i = 0; i < p->n_runs; i++) {
        ty_run tape = (i + 1) % a_step ? TY_RUN_MICRO : TY_RUN_LAST;
        p->run[i].call_ns = TY_NEW_ARRAY(&s->arena, int64_t, ty_program_n_calls(s->program, tape) + 1);
    }
    for (int i = 0; i < TY_PROFILE_WARM_UP; i++)
        if (run_step(s, 0, NULL, i, err) < 0)
            return ty_error_wrap(err, "warming up");
    int64_t epoch_ns = ty_clock_ns();
    for (int i = 0; i < p->n_steps; i++)
        if (run_step(s, epoch_ns, p->run + (size_t)i * (size_t)a_step, i, err) < 0)
            return -1;
    read_loss(s, p);
    return 0;
}

/* ---- calls ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts. The mean of the middle two where n is even. */
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

static double call_median_ms(const ty_profile *p, ty_run tape, int i, double *room)
{
    int n = 0;
    for (int r = 0; r < p->n_runs; r++)
        if (p->run[r].tape == tape)
            room[n++] = 1e-6 * (double)p->run[r].call_ns[i];
    return median(room, n);
}

/* 0: the machine was not measured. */
static double call_floor_ms(const ty_profile *p, const ty_profile_call *c)
{
    if (p->machine.bytes_per_s == 0)
        return 0;
    ty_work w = c->facts.work;
    bool library = w == TY_WORK_PRODUCT || w == TY_WORK_CONVOLUTION || w == TY_WORK_RECURRENT;
    double of_memory = c->bytes / p->machine.bytes_per_s;
    double of_arithmetic = library ? c->facts.flop / p->machine.flop_per_s : 0;
    return 1e3 * (of_memory > of_arithmetic ? of_memory : of_arithmetic);
}

/* The copies of an assembly are calls of one unit: bytes are the call's own, arithmetic the unit's. */
static int find_calls(ty_session *s, ty_run tape, int times, ty_profile *p, ty_error *err)
{
    ty_tape_facts facts;
    int n = ty_program_n_calls(s->program, tape);
    double *room = TY_NEW_ARRAY(&s->arena, double, p->n_runs);
    if (ty_program_describe(s->program, tape, &s->arena, &facts, err) < 0)
        return -1;
    p->first_call[tape] = p->n_calls;
    for (int i = 0; i < n; i++) {
        ty_profile_call *c = &p->call[p->n_calls++];
        c->tape = tape;
        c->times = times;
        ty_program_call(s->program, tape, i, &c->info);
        c->facts = facts.unit[c->info.unit];
        c->layer = ty_layer_of_origin(&s->arena, c->facts.origin);
        if (!c->layer[0])
            c->layer = "(no name)";
        c->bytes = (double)c->info.read_bytes + (double)c->info.written_bytes;
        c->ms = call_median_ms(p, tape, i, room);
        c->floor_ms = call_floor_ms(p, c);
    }
    return 0;
}

static int find_all_calls(ty_session *s, ty_profile *p, ty_error *err)
{
    int micro = (int)s->recipe.accumulate - 1;
    int n = ty_program_n_calls(s->program, TY_RUN_LAST);
    n += micro > 0 ? ty_program_n_calls(s->program, TY_RUN_MICRO) : 0;
    p->call = TY_NEW_ARRAY(&s->arena, ty_profile_call, n + 1);
    if (micro > 0 && find_calls(s, TY_RUN_MICRO, micro, p, err) < 0)
        return -1;
    return find_calls(s, TY_RUN_LAST, 1, p, err);
}

/* ---- sums ---- */

static void row_add(ty_profile_row *row, const ty_profile_call *c)
{
    row->calls += c->times;
    row->ms += c->times * c->ms;
    row->phase_ms[c->facts.phase] += c->times * c->ms;
    row->floor_ms += c->times * c->floor_ms;
    row->flop += c->times * c->facts.flop;
    row->bytes += c->times * c->bytes;
}

static int rows_by_ms(const void *a, const void *b)
{
    const ty_profile_row *x = a, *y = b;
    if (x->ms != y->ms)
        return x->ms < y->ms ? 1 : -1;
    return strcmp(x->name, y->name);
}

static ty_profile_row *row_of(ty_profile_row *rows, int *n, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    rows[*n].name = name;
    return &rows[(*n)++];
}

/* "dot: onednn sgemm" of "onednn sgemm NT 1x512x768x768": what stands in front of form and shape. */
static const char *choice_text(ty_arena *a, const ty_call_info *call)
{
    const char *end = call->how;
    while (*end && !isdigit((unsigned char)*end) && strspn(end, "NT+") != strcspn(end, " ")) {
        end += strcspn(end, " ");
        end += strspn(end, " ");
    }
    while (end > call->how && end[-1] == ' ')
        end--;
    return ty_arena_printf(a, "%s%s%.*s", call->name, end > call->how ? ": " : "", (int)(end - call->how), call->how);
}

static void find_rows(ty_session *s, ty_profile *p)
{
    p->layer = TY_NEW_ARRAY(&s->arena, ty_profile_row, p->n_calls + 1);
    p->choice = TY_NEW_ARRAY(&s->arena, ty_profile_row, p->n_calls + 1);
    for (int i = 0; i < TY_N_WORKS; i++)
        p->work[i].name = ty_work_text((ty_work)i);
    for (int i = 0; i < p->n_calls; i++) {
        const ty_profile_call *c = &p->call[i];
        row_add(row_of(p->layer, &p->n_layers, c->layer), c);
        row_add(&p->work[c->facts.work], c);
        if (c->info.kind == TY_CALL_LIBRARY)
            row_add(row_of(p->choice, &p->n_choices, choice_text(&s->arena, &c->info)), c);
        p->calls_ms += c->times * c->ms;
    }
    qsort(p->layer, (size_t)p->n_layers, sizeof *p->layer, rows_by_ms);
    qsort(p->choice, (size_t)p->n_choices, sizeof *p->choice, rows_by_ms);
}

static void find_step_times(ty_session *s, ty_profile *p)
{
    double *step = TY_NEW_ARRAY(&s->arena, double, p->n_steps), *wait = TY_NEW_ARRAY(&s->arena, double, p->n_steps);
    for (int i = 0; i < p->n_runs; i++) {
        const ty_profile_run *r = &p->run[i];
        step[r->step] += 1e-6 * (double)r->total_ns;
        wait[r->step] += 1e-6 * (double)(r->start_ns - r->wait_ns);
    }
    p->step_ms = median(step, p->n_steps);
    p->step_min_ms = step[0]; /* sorted now */
    p->step_max_ms = step[p->n_steps - 1];
    p->wait_ms = median(wait, p->n_steps);
}

/* The better of before and after: what is held up by other processes is no ceiling. */
static int measure_machine(ty_session *s, ty_machine_ceilings *best, ty_error *err)
{
    ty_machine_ceilings m;
    if (s->on_gpu) /* a processor's say nothing about it */
        return 0;
    if (ty_machine_measure((int)s->recipe.threads, &m, err) < 0)
        return -1;
    best->threads = m.threads;
    best->flop_per_s = fmax(best->flop_per_s, m.flop_per_s);
    best->bytes_per_s = fmax(best->bytes_per_s, m.bytes_per_s);
    return 0;
}

int ty_profile_measure(ty_session *s, int steps, ty_profile *out, ty_error *err)
{
    *out = (ty_profile){.n_steps = steps};
    if (getloadavg(&out->load, 1) != 1)
        out->load = 0;
    if (measure_machine(s, &out->machine, err) < 0 || run_steps(s, out, err) < 0 ||
        measure_machine(s, &out->machine, err) < 0 || find_all_calls(s, out, err) < 0)
        return -1;
    find_rows(s, out);
    find_step_times(s, out);
    return 0;
}

const char *ty_profile_tape_text(ty_run tape)
{
    static const char *const text[TY_N_RUNS] = {
        [TY_RUN_MICRO] = "micro", [TY_RUN_LAST] = "last", [TY_RUN_EVAL] = "eval", [TY_RUN_ROWS] = "rows"};
    return text[tape];
}

const char *ty_profile_phase_text(ty_phase phase)
{
    static const char *const text[TY_N_PHASES] = {
        [TY_PHASE_FORWARD] = "forward", [TY_PHASE_BACKWARD] = "gradient", [TY_PHASE_UPDATE] = "update"};
    return text[phase];
}
