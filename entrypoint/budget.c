/* budget.c - see budget.h. */
#include "entrypoint/budget.h"

#include "base/quantity.h"
#include "container/input/format.h"
#include "entrypoint/device.h"
#include "entrypoint/memory.h"

#include <string.h>
#include <sys/mman.h>

enum { BUDGET_STEP = 8 };

/* Blocks and row groups of a stream; its shuffle buffer as if records were as large as their rows of a batch. */
static uint64_t budget_read(const ty_session_stream *st)
{
    if (!st->is_on || !st->stream)
        return 0;
    uint64_t row = ty_session_batch_bytes(&st->face, 1), room = st->stream->memory_bytes;
    uint64_t rows = st->order.shuffle_rows > 0 ? (uint64_t)st->order.shuffle_rows : 0;
    return st->stream->read_bytes + (rows < room / row ? rows * row : room);
}

uint64_t ty_budget_input_bytes(const ty_session *s, int64_t batch)
{
    uint64_t bytes = ty_session_batch_bytes(s->train, batch / ty_company_size(s->job->company));
    return bytes * (uint64_t)ty_session_ring_depth(s, bytes) * (s->validation ? 2 : 1) + budget_read(&s->train_stream) +
           budget_read(&s->validation_stream);
}

static void budget_add_up(ty_budget *b)
{
    uint64_t others = b->on_gpu ? b->pinned_bytes : b->slab_bytes + b->scratch_bytes;
    b->host_bytes = b->process_bytes + b->state_bytes + b->input_bytes + others;
    b->total_bytes = b->on_gpu ? b->state_bytes + b->slab_bytes + b->scratch_bytes + b->constant_bytes +
                                     b->batch_bytes + b->code_bytes
                               : b->host_bytes;
}

/* Text is parsed and kept, as are columns; arrays are read where they lie, but for what was inflated. */
static uint64_t budget_mapped(const ty_dataset *d)
{
    bool is_kept = d && (strcmp(d->format, "csv") == 0 || ty_format_is_columns(d->format));
    if (!d || is_kept || d->stats.file_bytes <= d->stats.memory_bytes)
        return 0;
    return (uint64_t)(d->stats.file_bytes - d->stats.memory_bytes);
}

static ty_budget budget_of(const ty_session *s, const ty_compile_report *r, int64_t batch)
{
    return (ty_budget){.batch = batch,
                       .state_bytes = r->state_bytes,
                       .slab_bytes = r->slab_bytes,
                       .scratch_bytes = r->scratch_bytes,
                       .input_bytes = ty_budget_input_bytes(s, batch),
                       .on_gpu = r->device_bytes > 0,
                       .n_gpus = s->on_gpu ? s->n_gpus : 1,
                       .constant_bytes = r->constant_bytes,
                       .batch_bytes = r->device_batch_bytes,
                       .code_bytes = r->device_code_bytes,
                       .pinned_bytes = r->pinned_bytes * (uint64_t)(s->on_gpu ? s->n_gpus : 1),
                       .mapped_bytes = budget_mapped(s->train) + budget_mapped(s->validation) +
                                       (r->device_bytes > 0 ? 0 : r->mapped_constant_bytes)};
}

/* How much of n bytes the kernel has given pages to. */
static uint64_t budget_resident(const char *bytes, size_t n)
{
    enum { PAGE = 4096, PAGES_AT_ONCE = 16384 };
    unsigned char there[PAGES_AT_ONCE];
    uintptr_t at = (uintptr_t)bytes / PAGE * PAGE, end = ((uintptr_t)bytes + n + PAGE - 1) / PAGE * PAGE;
    uint64_t resident = 0;
    for (; at < end; at += (uintptr_t)PAGES_AT_ONCE * PAGE) {
        size_t pages = (end - at) / PAGE < PAGES_AT_ONCE ? (end - at) / PAGE : PAGES_AT_ONCE;
        if (mincore((void *)at, pages * PAGE, there) < 0)
            return 0;
        for (size_t i = 0; i < pages; i++)
            resident += there[i] & 1 ? PAGE : 0;
    }
    return resident;
}

/* Of what is added up one by one, some has its pages already: they are not the rest of the process. */
static uint64_t budget_present(const ty_program *p, uint64_t slab_bytes)
{
    const void *slab = ty_program_slab(p);
    uint64_t present = slab ? budget_resident(slab, slab_bytes) : 0;
    for (int i = 0; i < ty_program_n_states(p); i++) {
        ty_tensor t = ty_program_state(p, i, NULL);
        present += budget_resident(t.data, ty_type_bytes(&t.type));
    }
    return present;
}

ty_budget ty_budget_of_program(const ty_session *s, const ty_program *p)
{
    ty_budget b = budget_of(s, ty_program_report(p), s->recipe.batch_size);
    uint64_t held = ty_memory_now().resident, present = budget_present(p, b.slab_bytes);
    b.process_bytes = held > present ? held - present : 0;
    budget_add_up(&b);
    return b;
}

/* Memory that computing again must reach; 0: none. */
static uint64_t budget_limit(const ty_session *s)
{
    if (s->recipe.remat == TY_REMAT_NONE || (s->recipe.batch_auto && s->recipe.remat != TY_REMAT_BATCH))
        return 0;
    return s->batch_limit_bytes ? s->batch_limit_bytes : s->recipe.memory_bytes;
}

/* Temporaries that a limit leaves beside all else; at least 1. Of the process, which is measured, so much that the same
 * run comes to the same decision. */
static int64_t budget_temporaries(const ty_budget *b, uint64_t limit)
{
    enum { ROUND = 16 << 20 };
    uint64_t others = b->total_bytes - b->slab_bytes;
    if (!b->on_gpu)
        others += ROUND - 1 - (b->process_bytes + ROUND - 1) % ROUND;
    return limit > others ? (int64_t)(limit - others) : 1;
}

static int budget_plan_within(ty_session *s, int64_t batch, int64_t temporaries, ty_program **program, ty_budget *out,
                              ty_error *err)
{
    ty_train_spec spec;
    ty_program *p;
    ty_recipe recipe = s->recipe;
    ty_compile_options options = {.backend = TY_BACKEND_CPU,
                                  .threads = (int)s->recipe.threads,
                                  .deterministic_strict = s->recipe.deterministic_strict,
                                  .tf32 = s->recipe.tf32,
                                  .cache_dir = ty_session_cache_folder(s),
                                  .temporary_bytes = temporaries,
                                  .plan_only = true};
    ty_device_options(s, &options);
    options.gpu_capability = 0; /* the cache is asked when it is compiled */
    recipe.batch_size = batch;
    if (ty_spec_build(&recipe, &s->plan, s->train, ty_device_replicas(s), ty_session_epoch_steps(s),
                      ty_session_all_steps(s), s->validation != NULL, &s->arena, &spec, err) < 0 ||
        ty_compile_train(s->model, &spec, &options, &p, err) < 0)
        return -1;
    *out = budget_of(s, ty_program_report(p), batch);
    if (s->planned_process_bytes == 0) /* once: later plans leave their traces */
        s->planned_process_bytes = ty_memory_now().resident;
    out->process_bytes = s->planned_process_bytes;
    budget_add_up(out);
    if (program)
        *program = p;
    else
        ty_program_free(p);
    return 0;
}

/* Sets s->temporary_bytes. */
static int budget_plan_limited(ty_session *s, int64_t batch, uint64_t limit, ty_program **program, ty_budget *out,
                               ty_error *err)
{
    if (budget_plan_within(s, batch, 0, program, out, err) < 0)
        return -1;
    s->temporary_bytes = 0;
    if (limit == 0 || out->total_bytes <= limit)
        return 0;
    if (program)
        ty_program_free(*program);
    s->temporary_bytes = budget_temporaries(out, limit);
    return budget_plan_within(s, batch, s->temporary_bytes, program, out, err);
}

int ty_budget_plan(ty_session *s, int64_t batch, ty_program **program, ty_budget *out, ty_error *err)
{
    int rc = budget_plan_limited(s, batch, budget_limit(s), program, out, err);
    return rc < 0 && ty_device_give_up(s, err) ? budget_plan_limited(s, batch, budget_limit(s), program, out, err) : rc;
}

int ty_budget_fit(ty_session *s, ty_error *err)
{
    char need[32], limit[32];
    ty_budget b;
    if (budget_limit(s) == 0)
        return 0;
    if (ty_budget_plan(s, s->recipe.batch_size, NULL, &b, err) < 0)
        return -1;
    if (b.total_bytes <= budget_limit(s))
        return 0;
    ty_error_set(err, TY_E_LIMIT,
                 "memory: %lld rows need at least %s, of which %s are temporaries with all of forward computed again "
                 "that can be; the limit is %s",
                 (long long)b.batch, ty_bytes_text(b.total_bytes, need, sizeof need),
                 ty_bytes_text(b.slab_bytes, (char[32]){0}, 32), ty_bytes_text(budget_limit(s), limit, sizeof limit));
    return ty_error_help(err, "take a smaller batch_size (with accumulate for the same steps), or more memory");
}

/* ---- searching ---- */

static const ty_budget *budget_find(const ty_budget_list *l, int64_t batch)
{
    for (int i = 0; i < l->n; i++)
        if (l->known[i].batch == batch)
            return &l->known[i];
    return NULL;
}

/* Computing again for the sake of a larger batch must be asked for. */
static int budget_at(ty_session *s, int64_t batch, uint64_t limit, ty_budget_list *l, const ty_budget **out,
                     ty_error *err)
{
    *out = budget_find(l, batch);
    if (*out)
        return 0;
    if (l->n == TY_BUDGET_MAX_KNOWN)
        return ty_error_set(err, TY_E_LIMIT, "the largest batch was not found in %d plans", l->n);
    ty_budget b;
    if (budget_plan_limited(s, batch, s->recipe.remat == TY_REMAT_BATCH ? limit : 0, NULL, &b, err) < 0)
        return ty_error_wrap(err, "batch size %lld", (long long)batch);
    int at = l->n++;
    for (; at > 0 && l->known[at - 1].batch > batch; at--)
        l->known[at] = l->known[at - 1];
    l->known[at] = b;
    *out = &l->known[at];
    return 0;
}

/* Batches that are tried: 1 to 7 rows on each of n devices, then multiples of 8. */
static int64_t budget_round(double batch, int n)
{
    int64_t b = batch < n ? 1 : batch > 1 << 24 ? (1 << 24) / n : (int64_t)batch / n;
    return n * (b < BUDGET_STEP ? b : b / BUDGET_STEP * BUDGET_STEP);
}

static int64_t budget_next(int64_t batch, int n)
{
    return batch < BUDGET_STEP * n ? batch + n : batch + BUDGET_STEP * n;
}

static int64_t budget_previous(int64_t batch, int n)
{
    return batch <= BUDGET_STEP * n ? batch - n : batch - BUDGET_STEP * n;
}

/* Where a straight line through the two known batches nearest to the limit meets it. */
static double budget_guess(const ty_budget_list *l, uint64_t limit)
{
    int at = 0;
    while (at + 2 < l->n && l->known[at + 1].total_bytes <= limit)
        at++;
    if (l->n < 2)
        return 64;
    const ty_budget *a = &l->known[at], *b = &l->known[at + 1];
    double slope = ((double)b->total_bytes - (double)a->total_bytes) / (double)(b->batch - a->batch);
    return slope > 0 ? (double)a->batch + ((double)limit - (double)a->total_bytes) / slope : 2.0 * (double)b->batch;
}

int ty_budget_largest(ty_session *s, uint64_t limit, int64_t max_batch, ty_budget_list *l, ty_budget *out,
                      ty_error *err)
{
    int n = ty_device_replicas(s);
    int64_t fits = 0, fails = budget_next(budget_round((double)max_batch, n), n); /* fits < answer + 1 step <= fails */
    const ty_budget *b;
    if (s->recipe.remat == TY_REMAT_BATCH) /* what was planned for another limit says nothing */
        l->n = 0;
    if (budget_at(s, n, limit, l, &b, err) < 0)
        return -1;
    *out = (ty_budget){0};
    for (int i = 0; i < l->n; i++) {
        if (l->known[i].total_bytes <= limit && l->known[i].batch > fits && l->known[i].batch < fails)
            fits = l->known[i].batch;
        if (l->known[i].total_bytes > limit && l->known[i].batch < fails)
            fails = l->known[i].batch;
    }
    for (int turn = 0; fits > 0 && budget_next(fits, n) < fails; turn++) {
        double guess = turn % 4 == 3 ? ((double)fits + (double)fails) / 2 : budget_guess(l, limit);
        int64_t batch = budget_round(guess, n);
        batch = batch <= fits ? budget_next(fits, n) : batch >= fails ? budget_previous(fails, n) : batch;
        if (budget_at(s, batch, limit, l, &b, err) < 0)
            return -1;
        *(b->total_bytes <= limit ? &fits : &fails) = batch;
    }
    if (fits > 0 && budget_at(s, fits, limit, l, &b, err) == 0)
        *out = *b;
    return 0;
}
