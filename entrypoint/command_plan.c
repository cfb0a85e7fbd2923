/* command_plan.c - `trainyard plan RECIPE`: memory, time and the largest batch of a training, before it is paid for. */
#include "base/file.h"
#include "base/json.h"
#include "base/quantity.h"
#include "compiler/machine.h"
#include "entrypoint/budget.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command.h"
#include "entrypoint/device.h"
#include "entrypoint/memory.h"
#include "entrypoint/overrides.h"
#include "entrypoint/plan_svg.h"
#include "entrypoint/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_DIR, SVG, JSON, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [DATA_DIR] = {"--data-dir", "DIR", "folder that has the channels as folders or files", false},
    [SVG] = {"--svg", "FILE", "draw the memory plan: calls to the right, offsets upwards, layers under the pointer",
             false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

enum { N_LARGEST = 20, N_SIZES = 7, MAX_BATCH = 1 << 20 };

/* Seconds of gcc 12 for one translation unit on an idle core: of its start, and a rate for the text behind the prelude
 * that all units begin with (measured on the benchmark's workloads; within a quarter). */
#define COMPILE_START_S       0.05
#define COMPILE_PRELUDE_BYTES 10e3
#define COMPILE_BYTES_PER_S   60e3

typedef struct work_row {
    int calls;
    double flop, bytes, seconds;
} work_row;

typedef struct planned {
    ty_arena *arena;
    ty_session session;
    ty_program *program;
    ty_budget budget;
    ty_tape_facts tape;
    uint64_t weight_bytes, moment_bytes, sum_bytes; /* of the states */
    uint64_t use_bytes[TY_N_BUFFER_USES];           /* at the peak */
    const ty_buffer_facts *largest[N_LARGEST];
    int n_largest;
    struct {
        uint64_t limit;
        const char *name;
        ty_budget budget;
    } size[N_SIZES];
    ty_machine_ceilings machine;
    work_row work[TY_N_WORKS];
    double step_s, unfused_s, compile_s, cc_s, moved_bytes; /* compile_s contains cc_s, the C compiler's */
} planned;

/* ---- finding out ---- */

static int by_bytes(const void *a, const void *b)
{
    const ty_buffer_facts *x = *(const ty_buffer_facts *const *)a, *y = *(const ty_buffer_facts *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void find_peak(planned *p)
{
    const ty_tape_facts *t = &p->tape;
    const ty_buffer_facts **live = TY_NEW_ARRAY(p->arena, const ty_buffer_facts *, t->n_buffers + 1);
    int n = 0;
    for (int i = 0; i < t->n_buffers; i++) {
        const ty_buffer_facts *b = &t->buffer[i];
        if (b->first > t->peak || b->last < t->peak)
            continue;
        live[n++] = b;
        p->use_bytes[b->use] += (uint64_t)b->bytes;
    }
    qsort(live, (size_t)n, sizeof *live, by_bytes);
    p->n_largest = n < N_LARGEST ? n : N_LARGEST;
    memcpy(p->largest, live, sizeof *live * (size_t)p->n_largest);
}

static void find_states(planned *p)
{
    for (int i = 0; i < ty_program_n_states(p->program); i++) {
        const char *name;
        ty_tensor t = ty_program_state(p->program, i, &name);
        bool weight = strncmp(name, "param.", 6) == 0 || strncmp(name, "buffer.", 7) == 0;
        bool sum = strncmp(name, "grad.", 5) == 0;
        *(weight ? &p->weight_bytes : sum ? &p->sum_bytes : &p->moment_bytes) += ty_type_bytes(&t.type);
    }
}

static double unit_seconds(const planned *p, double flop, double bytes, bool library)
{
    if (p->session.on_gpu) /* whose speed nobody has measured here */
        return 0;
    double of_memory = bytes / p->machine.bytes_per_s, of_arithmetic = library ? flop / p->machine.flop_per_s : 0;
    return of_memory > of_arithmetic ? of_memory : of_arithmetic;
}

static void find_time(planned *p)
{
    double products = 0, moved_by_products = 0;
    for (int i = 0; i < p->tape.n_units; i++) {
        const ty_unit_facts *u = &p->tape.unit[i];
        double bytes = (double)u->read_bytes + (double)u->written_bytes;
        bool library = u->work == TY_WORK_PRODUCT || u->work == TY_WORK_CONVOLUTION || u->work == TY_WORK_RECURRENT;
        double seconds = unit_seconds(p, u->flop, bytes, library);
        work_row *row = &p->work[u->work];
        row->calls++;
        row->flop += u->flop;
        row->bytes += bytes;
        row->seconds += seconds;
        p->step_s += seconds;
        p->moved_bytes += bytes;
        products += library ? seconds : 0;
        moved_by_products += library ? bytes : 0;
    }
    if (p->session.on_gpu)
        return;
    double others = p->tape.unfused_bytes - moved_by_products;
    p->unfused_s = products + (others > 0 ? others / p->machine.bytes_per_s : 0);
    const ty_compile_report *r = ty_program_report(p->program);
    int units = r->n_distinct_kernels < p->machine.threads ? r->n_distinct_kernels : p->machine.threads;
    if (!r->cache_hit && units > 0)
        p->cc_s = COMPILE_START_S + ((double)r->text_bytes / units - COMPILE_PRELUDE_BYTES) / COMPILE_BYTES_PER_S;
    p->compile_s = (r->import_ms + r->lower_ms + r->plan_ms) / 1000 + p->cc_s;
}

static int find_batches(planned *p, ty_error *err)
{
    static const char *const names[N_SIZES] = {"1 GiB", "2 GiB", "4 GiB", "8 GiB", "16 GiB", "32 GiB"};
    ty_budget_list *known = TY_NEW(p->arena, ty_budget_list);
    known->known[known->n++] = p->budget;
    for (int i = N_SIZES - 1; i >= 0; i--) {
        p->size[i].name = names[i];
        p->size[i].limit = (uint64_t)1 << (30 + i);
        if (i == N_SIZES - 1 && ty_session_memory(&p->session, &p->size[i].limit, &p->size[i].name, err) < 0)
            return -1;
        uint64_t limit = (uint64_t)(TY_BUDGET_SHARE * (double)p->size[i].limit);
        if (ty_budget_largest(&p->session, limit, MAX_BATCH, known, &p->size[i].budget, err) < 0)
            return -1;
    }
    return 0;
}

static int find_all(planned *p, ty_error *err)
{
    ty_session *s = &p->session;
    if (ty_budget_plan(s, s->recipe.batch_size, &p->program, &p->budget, err) < 0 ||
        ty_program_describe(p->program, TY_RUN_LAST, p->arena, &p->tape, err) < 0 || find_batches(p, err) < 0 ||
        (!s->on_gpu && ty_machine_measure((int)s->recipe.threads, &p->machine, err) < 0))
        return -1;
    find_states(p);
    find_peak(p);
    find_time(p);
    return 0;
}

/* Steps after which compiling has paid; -1: never. */
static int64_t break_even(const planned *p)
{
    double gain = p->unfused_s - p->step_s;
    return gain > 0 ? (int64_t)(p->compile_s / gain) + 1 : -1;
}

/* ---- text ---- */

static void print_chunk(const ty_chunk_report *c)
{
    char a[32], b[32];
    if (c->rows > 0)
        printf("\n\n  logits of %lld columns, %lld of %lld rows at a time: %s, not %s", (long long)c->columns,
               (long long)c->rows, (long long)c->of_rows, ty_bytes_text(c->bytes, a, sizeof a),
               ty_bytes_text(c->of_bytes, b, sizeof b));
}

/* What is computed again, to fit the recipe's memory. */
static void print_remat(const ty_remat_report *r)
{
    char a[32], b[32];
    if (r->n_lines == 0)
        return;
    printf(
        "\n\n  computed again in backward, to fit the recipe's memory: %.1f %% more arithmetic, temporaries %s, not %s",
        100 * r->share, ty_bytes_text(r->with_bytes, a, sizeof a), ty_bytes_text(r->without_bytes, b, sizeof b));
    for (int i = 0; i < r->n_lines; i++)
        printf("\n    %12s  %5.2f %%  %s, from %s to %s", ty_bytes_text((uint64_t)r->line[i].kept_bytes, a, sizeof a),
               100 * r->line[i].share,
               r->line[i].products ? "products and convolutions too" : "between products and convolutions",
               r->line[i].from, r->line[i].to);
}

static void print_memory(const planned *p)
{
    char a[32], b[32];
    const ty_budget *m = &p->budget;
    if (m->on_gpu)
        printf("  GPU memory  %s at least%s\n", ty_bytes_text(m->total_bytes, a, sizeof a),
               m->n_gpus > 1 ? ", on each GPU" : "");
    else
        printf("  memory      %s at the peak\n", ty_bytes_text(m->total_bytes + m->mapped_bytes, a, sizeof a));
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {{"weights", p->weight_bytes},
                {"moments and counters", p->moment_bytes},
                {"gradient sums", p->sum_bytes},
                {"temporaries", m->slab_bytes},
                {"workspace of libraries", m->scratch_bytes},
                {"constants", m->on_gpu ? m->constant_bytes : 0},
                {"batches, two of them on their way", m->batch_bytes},
                {"left for kernels and libraries", m->code_bytes},
                {"input", m->on_gpu ? 0 : m->input_bytes},
                {"program, libraries, graphs, data in memory", m->on_gpu ? 0 : m->process_bytes},
                {"mapped files, data and weights that stay, while there is room", m->on_gpu ? 0 : m->mapped_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].bytes > 0)
            printf("    %12s  %s\n", ty_bytes_text(rows[i].bytes, a, sizeof a), rows[i].name);
    if (m->on_gpu)
        printf("  memory      %s of the host, with a copy of weights and moments\n",
               ty_bytes_text(m->host_bytes + m->mapped_bytes, a, sizeof a));
    printf("  temporaries %s planned, %s is the least any plan needs (%.1f %% over)\n",
           ty_bytes_text((uint64_t)p->tape.slab_bytes, a, sizeof a),
           ty_bytes_text((uint64_t)p->tape.bound_bytes, b, sizeof b),
           p->tape.bound_bytes > 0
               ? 100.0 * (double)(p->tape.slab_bytes - p->tape.bound_bytes) / (double)p->tape.bound_bytes
               : 0);
    printf("              at the peak, call %d of %d:", p->tape.peak, p->tape.n_units);
    for (int i = 0, first = 1; i < TY_N_BUFFER_USES; i++)
        if (p->use_bytes[i] > 0) {
            printf("%s %s %s", first ? "" : ",", ty_buffer_use_text((ty_buffer_use)i),
                   ty_bytes_text(p->use_bytes[i], a, sizeof a));
            first = 0;
        }
    print_chunk(&ty_program_report(p->program)->chunk);
    print_remat(&ty_program_report(p->program)->remat);
    puts("\n\n  largest buffers at the peak");
    char type[160];
    for (int i = 0; i < p->n_largest; i++)
        printf("    %12s  %-24s  %-22s %s\n", ty_bytes_text((uint64_t)p->largest[i]->bytes, a, sizeof a),
               ty_buffer_use_text(p->largest[i]->use), ty_type_text(&p->largest[i]->type, type, sizeof type),
               p->largest[i]->origin);
}

static void print_batches(const planned *p)
{
    char a[32], b[32], size[32];
    puts("\n  largest batch");
    for (int i = 0; i < N_SIZES; i++) {
        const ty_budget *m = &p->size[i].budget;
        bool here = i == N_SIZES - 1;
        printf("    %12s", here ? ty_bytes_text(p->size[i].limit, size, sizeof size) : p->size[i].name);
        if (m->batch == 0)
            printf("  not one row");
        else
            printf("  %10s  takes %s%s", ty_count_text(m->batch, a, sizeof a),
                   ty_bytes_text(m->total_bytes, b, sizeof b), m->batch >= MAX_BATCH ? ", and more" : "");
        printf("%s%s%s\n", here ? " (" : "", here ? p->size[i].name : "", here ? ")" : "");
    }
}

static void print_gpu(const planned *p)
{
    const ty_compile_report *r = ty_program_report(p->program);
    printf("\n  step        no time is foretold for a GPU\n  compiling   %d kernels, %d of them different\n",
           r->n_kernels, r->n_distinct_kernels);
}

static void print_time(const planned *p)
{
    char a[32], b[32], c[32];
    const ty_compile_report *r = ty_program_report(p->program);
    printf("\n  step        %s at least, at this machine's ceilings, measured now with %d threads: %s, %s\n",
           ty_duration_text((int64_t)(p->step_s * 1e6), a, sizeof a), p->machine.threads,
           ty_si_text(p->machine.flop_per_s, "FLOP/s", b, sizeof b),
           ty_si_text(p->machine.bytes_per_s, "B/s", c, sizeof c));
    printf("    %-14s %8s %12s %12s %10s\n", "", "calls", "FLOP", "bytes moved", "at least");
    for (int i = 0; i < TY_N_WORKS; i++)
        if (p->work[i].calls > 0)
            printf("    %-14s %8d %12s %12s %10s\n", ty_work_text((ty_work)i), p->work[i].calls,
                   ty_si_text(p->work[i].flop, "", a, sizeof a), ty_si_text(p->work[i].bytes, "", b, sizeof b),
                   ty_duration_text((int64_t)(p->work[i].seconds * 1e6), c, sizeof c));
    printf("  compiling   %s%s (%d kernels, %d of them different)\n", r->cache_hit ? "" : "about ",
           ty_duration_text((int64_t)(p->compile_s * 1e6), a, sizeof a), r->n_kernels, r->n_distinct_kernels);
    if (r->cache_hit)
        puts("              the compiled kernels are in the cache");
    int64_t steps = break_even(p);
    if (steps >= 0)
        printf("  break-even  step %s: one call an operation, with its operands in memory, would move %s a step (here "
               "%s)\n",
               ty_count_text(steps, a, sizeof a), ty_si_text(p->tape.unfused_bytes, "B", b, sizeof b),
               ty_si_text(p->moved_bytes, "B", c, sizeof c));
    else
        puts("  break-even  never: there is nothing to join");
}

static void print_text(planned *p)
{
    const ty_session *s = &p->session;
    char a[32], b[32];
    printf("%s: %s (%s), %s numbers trained\n", s->recipe.path, s->recipe.model, ty_model_format(s->model),
           ty_count_text(ty_program_report(p->program)->n_trained, a, sizeof a));
    printf(s->known_steps > 0 ? "  batch       %s rows%s%s, %s steps\n"
                              : "  batch       %s rows%s%s, as many steps as the stream has%.0s\n",
           ty_count_text(s->recipe.batch_size, a, sizeof a), s->batch_reason ? ": " : "",
           s->batch_reason ? s->batch_reason : "", ty_count_text(s->known_steps, b, sizeof b));
    printf("  device      %s\n", ty_device_text(&p->session));
    if (ty_session_lengths_text(&p->session))
        printf("  lengths     %s\n", ty_session_lengths_text(&p->session));
    print_memory(p);
    print_batches(p);
    (s->on_gpu ? print_gpu : print_time)(p);
}

/* ---- JSON ---- */

static void put_budget(ty_json_writer *w, const char *key, const ty_budget *b)
{
    ty_json_open_map(w, key);
    ty_json_put_int(w, "batch", b->batch);
    ty_json_put_int(w, "total_bytes", (int64_t)b->total_bytes);
    ty_json_put_int(w, "state_bytes", (int64_t)b->state_bytes);
    ty_json_put_int(w, "temporary_bytes", (int64_t)b->slab_bytes);
    ty_json_put_int(w, "workspace_bytes", (int64_t)b->scratch_bytes);
    ty_json_put_int(w, "input_bytes", (int64_t)b->input_bytes);
    ty_json_put_bool(w, "on_gpu", b->on_gpu);
    if (b->on_gpu)
        ty_json_put_int(w, "gpus", b->n_gpus);
    ty_json_put_int(w, "constant_bytes", (int64_t)b->constant_bytes);
    ty_json_put_int(w, "batch_bytes", (int64_t)b->batch_bytes);
    ty_json_put_int(w, "code_bytes", (int64_t)b->code_bytes);
    ty_json_put_int(w, "pinned_bytes", (int64_t)b->pinned_bytes);
    ty_json_put_int(w, "host_bytes", (int64_t)b->host_bytes);
    ty_json_put_int(w, "process_bytes", (int64_t)b->process_bytes);
    ty_json_put_int(w, "mapped_bytes", (int64_t)b->mapped_bytes);
    ty_json_close(w);
}

static void put_memory(ty_json_writer *w, const planned *p)
{
    char type[160];
    put_budget(w, "memory", &p->budget);
    ty_json_put_int(w, "weight_bytes", (int64_t)p->weight_bytes);
    ty_json_put_int(w, "moment_bytes", (int64_t)p->moment_bytes);
    ty_json_put_int(w, "gradient_sum_bytes", (int64_t)p->sum_bytes);
    ty_json_put_int(w, "bound_bytes", p->tape.bound_bytes);
    ty_json_open_map(w, "peak");
    ty_json_put_int(w, "call", p->tape.peak);
    ty_json_put_int(w, "calls", p->tape.n_units);
    ty_json_put_int(w, "bytes", p->tape.peak_bytes);
    for (int i = 0; i < TY_N_BUFFER_USES; i++)
        ty_json_put_int(w, ty_buffer_use_text((ty_buffer_use)i), (int64_t)p->use_bytes[i]);
    ty_json_close(w);
    ty_json_open_list(w, "largest_buffers");
    for (int i = 0; i < p->n_largest; i++) {
        ty_json_open_map(w, NULL);
        ty_json_put_int(w, "bytes", p->largest[i]->bytes);
        ty_json_put_string(w, "use", ty_buffer_use_text(p->largest[i]->use));
        ty_json_put_string(w, "type", ty_type_text(&p->largest[i]->type, type, sizeof type));
        ty_json_put_string(w, "layer", p->largest[i]->origin);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_batches(ty_json_writer *w, const planned *p)
{
    ty_json_open_list(w, "largest_batch");
    for (int i = 0; i < N_SIZES; i++) {
        ty_json_open_map(w, NULL);
        ty_json_put_string(w, "limit", p->size[i].name);
        ty_json_put_int(w, "limit_bytes", (int64_t)p->size[i].limit);
        put_budget(w, "plan", &p->size[i].budget);
        ty_json_close(w);
    }
    ty_json_close(w);
}

static void put_time(ty_json_writer *w, const planned *p)
{
    ty_json_open_map(w, "machine");
    ty_json_put_int(w, "threads", p->machine.threads);
    ty_json_put_float(w, "flop_per_s", p->machine.flop_per_s);
    ty_json_put_float(w, "bytes_per_s", p->machine.bytes_per_s);
    ty_json_close(w);
    ty_json_put_float(w, "step_at_least_s", p->step_s);
    ty_json_open_map(w, "work");
    for (int i = 0; i < TY_N_WORKS; i++) {
        if (p->work[i].calls == 0)
            continue;
        ty_json_open_map(w, ty_work_text((ty_work)i));
        ty_json_put_int(w, "calls", p->work[i].calls);
        ty_json_put_float(w, "flop", p->work[i].flop);
        ty_json_put_float(w, "bytes", p->work[i].bytes);
        ty_json_put_float(w, "at_least_s", p->work[i].seconds);
        ty_json_close(w);
    }
    ty_json_close(w);
    const ty_compile_report *r = ty_program_report(p->program);
    ty_json_put_float(w, "compile_s", p->compile_s);
    ty_json_put_float(w, "c_compiler_s", p->cc_s);
    ty_json_put_bool(w, "compiled_before", r->cache_hit);
    ty_json_put_int(w, "kernels", r->n_kernels);
    ty_json_put_int(w, "distinct_kernels", r->n_distinct_kernels);
    ty_json_put_float(w, "unfused_bytes", p->tape.unfused_bytes);
    ty_json_put_int(w, "break_even_step", break_even(p));
}

static void print_json(planned *p)
{
    const ty_session *s = &p->session;
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, (size_t)16 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_string(&w, "recipe", s->recipe.path);
    ty_json_put_string(&w, "model", s->recipe.model);
    ty_json_put_int(&w, "batch_size", s->recipe.batch_size);
    ty_json_put_string(&w, "batch_reason", s->batch_reason);
    ty_json_put_string(&w, "device", ty_device_text(&p->session));
    ty_json_put_int(&w, "steps", s->known_steps);
    ty_json_put_int(&w, "numbers_trained", ty_program_report(p->program)->n_trained);
    put_memory(&w, p);
    put_batches(&w, p);
    put_time(&w, p);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

/* ---- the command ---- */

static int write_svg(const planned *p, const char *path, ty_error *err)
{
    ty_buf out;
    char size[32];
    ty_buf_init(&out, (size_t)256 << 20);
    const char *title = ty_arena_printf(p->arena, "%s, batch %lld: %s of temporaries", p->session.recipe.model,
                                        (long long)p->session.recipe.batch_size,
                                        ty_bytes_text((uint64_t)p->tape.slab_bytes, size, sizeof size));
    int rc = ty_plan_svg(&p->tape, title, &out);
    rc = rc < 0 ? ty_error_set(err, TY_E_LIMIT, "the picture is too large")
                : ty_file_write(path, out.data, out.len, 0644, err);
    ty_buf_fini(&out);
    return rc;
}

static int plan(const ty_arguments_given *given, planned *p, ty_error *err)
{
    const char *phase;
    ty_job job = {.recipe_path = given->words[0],
                  .data_folder = given->value[DATA_DIR],
                  .cache_folder = ty_cache_folder(p->arena),
                  .plan_only = true};
    if (ty_overrides_take(given, p->arena, &job, err) < 0 ||
        (given->value[SVG] && ty_file_try(given->value[SVG], err) < 0))
        return -1;
    int rc = ty_session_open(&p->session, &job, &phase, err);
    if (rc == 0)
        rc = find_all(p, err);
    if (rc == 0 && given->value[SVG])
        rc = write_svg(p, given->value[SVG], err);
    if (rc == 0)
        (given->value[JSON] ? print_json : print_text)(p);
    ty_program_free(p->program);
    ty_session_close(&p->session);
    return rc;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    planned p = {.arena = a};
    return plan(given, &p, err);
}

static const char page[] =
    "Opens recipe, model and data as training does and plans the step, but compiles and trains nothing.\n\n"
    "Memory is all that the process will hold, at the peak. The largest batch is a multiple of 8 (below 8: any "
    "number)\n"
    "whose plan fits 95 % of the limit; `batch_size: auto` in the recipe takes the last one. The step's time is a "
    "floor:\n"
    "each call takes at least the time of its arithmetic (products, convolutions) or of its memory traffic. "
    "Break-even:\n"
    "the step at which compiling has paid, against one call an operation at the same ceilings.\n\n"
    "--json has these keys, and may get more: schema 1, recipe, model, batch_size, batch_reason, steps, "
    "numbers_trained,\n"
    "device, memory {batch, total_bytes (of the GPU where on_gpu, of each of `gpus`; else of the host), on_gpu, gpus, "
    "state_bytes, "
    "temporary_bytes, workspace_bytes, input_bytes, process_bytes,\n"
    "mapped_bytes (not in the total), constant_bytes, batch_bytes, code_bytes, pinned_bytes, host_bytes},\n"
    "weight_bytes, moment_bytes, gradient_sum_bytes, bound_bytes, peak, largest_buffers [bytes, use, type, layer],\n"
    "largest_batch [limit, limit_bytes, plan as memory; batch 0: not one row], machine {threads, flop_per_s,\n"
    "bytes_per_s}, step_at_least_s, work {calls, flop, bytes, at_least_s}, compile_s, c_compiler_s (of it),\n"
    "compiled_before, kernels, distinct_kernels, unfused_bytes, break_even_step (-1: never).\n\n"
    "    trainyard plan train.yaml --data-dir=data\n"
    "    trainyard plan train.yaml --batch_size=256 --svg plan.svg\n";

const ty_command_row ty_command_plan = {"plan",
                                        "RECIPE [--key=value ...]",
                                        "memory, time and the largest batch of a training, before it is paid for",
                                        page,
                                        options,
                                        N_OPTIONS,
                                        1,
                                        1,
                                        true,
                                        false,
                                        run};
