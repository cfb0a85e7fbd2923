/* ours.c - trains one workload of the side-by-side benchmark: ours WORK DIR [STEPS]; DIR comes from peers/export.py, or
 * for the work "network" from peers/networks.py.
 *
 * The same as the peers do, through the compiler's public face: model.onnx (or model.keras, of peers/keras_works.py) is
 * compiled with the loss and the optimizer of the table below, batch i goes in at step i (round and round), and one
 * JSON line is printed with the figures that peers/measure.py defines:
 *
 *   first_s   seconds from the start of the process to the end of its first step; what is compiled counts
 *   step_ms   median of the steps after the first three
 *   peak_mb   peak resident memory of the process or, if greater, of a child it waited for (the C compiler); 10^6 bytes
 *   losses    of the first twenty steps
 *
 * followed by what only we know: ready_s, seconds from the start of the process to the beginning of the first step;
 * where the compiling time went, phase by phase; planned bytes, kernels.
 *
 * With --calls, twelve more steps are timed call by call and a table is printed instead: medians, longest first, with
 * the memory that each call moves at least and its speed, and that as a share of what copying memory reaches here;
 * then how often each kernel does which operation (ty_unit_facts.counts), one line a call, and the step's FLOP.
 * With --limit one JSON line says how near the step comes to what this machine can do: products at the speed of a large
 * one, the optimizer's memory at that of copying, nothing else.
 * With --plan nothing runs: the buffers of the slab that live at the peak are listed, largest first.
 * With --temporaries MB what would need more is computed again in backward (ty_compile_options.temporary_bytes).
 * With --sparse tables that are only gathered from are updated by rows (ty_train_spec.sparse_all): less work.
 * With --gpu it trains on the first GPU, with --gpus N on the first N, among which a batch is divided; with --tf32
 * float32 is multiplied there with ten bits of mantissa. With --batch ROWS batches have so many, those of the first one
 * repeated. With --cuda DIR the kernels are left there as CUDA C, with what a GPU does in a step; nothing runs unless a
 * GPU is asked for. With --without PASS a pass of the compiler is left out (ty_compile_options.skip_passes).
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "bench/ours_input.h"
#include "compiler/compiler.h"
#include "compiler/machine.h"
#include "entrypoint/threads.h"

#include <getopt.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX_INPUTS = 4, MAX_WITHOUT = 8, MAX_GPUS = 8, KEPT_LOSSES = 20, WARM_UP = 3 };

/* peers/works.py says the same; a change belongs into both, and into the tables of peer_jax.py and peer_tf.py. */
typedef struct work {
    const char *name;
    ty_loss_kind loss;
    ty_optimizer_kind optimizer;
    double lr;
    int steps;
} work;

static const work works[] = {
    {"mlp", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_ADAM, 1e-3, 200},
    {"cnn", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_SGD, 0.01, 60},
    {"lstm", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_ADAM, 1e-3, 40},
    {"deepfm", TY_LOSS_BCE_LOGITS, TY_OPT_ADAM, 5e-4, 60},
    {"chargpt", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_ADAMW, 1e-3, 12},
    {"gpt2", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_ADAMW, 3e-4, 8},
    {"bert", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_ADAMW, 2e-5, 8},
    {"resnet50", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_SGD, 1e-4, 6},
    {"network", TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_OPT_SGD, 1e-3, 6}, /* peers/networks.py; any of them */
};

typedef struct job {
    const work *work;
    const char *folder;
    int steps;
    int64_t rows; /* of a batch; 0: as in the file */
    ty_compile_options options;
    ty_model *model;
    ty_program *program;
    ours_input inputs[MAX_INPUTS];
    int n_inputs;
    float losses[KEPT_LOSSES];
    double *step_ms; /* one a step */
    double ready_s, first_s;
    ty_precision precision;
    const char *without[MAX_WITHOUT]; /* passes left out */
    bool sparse;                      /* tables by rows */
    bool on_gpu;                      /* it runs on one */
    bool calls, limit;                /* print where a step's time goes */
} job;

/* ---- data ------------------------------------------------------------------------------------------------------- */

/* Model input i comes from x<i>.npy, the target from y.npy. */
static int inputs_open(job *j, ty_error *err)
{
    char path[1024];
    int n = ty_model_n_inputs(j->model);
    ty_composite_count count;
    if (ty_model_n_outputs(j->model) == 0) /* of layers that are not known */
        return ty_model_count_composites(j->model, 2, &count, err) < 0
                   ? -1
                   : ty_error_set(err, TY_E_MODEL_FILE, "no outputs");
    if (n + 1 > MAX_INPUTS)
        return ty_error_set(err, TY_E_UNSUPPORTED, "the model has %d inputs, at most %d are known here", n,
                            MAX_INPUTS - 1);
    for (int i = 0; i <= n; i++, j->n_inputs++) {
        if (i < n)
            snprintf(path, sizeof path, "%s/x%d.npy", j->folder, i);
        else
            snprintf(path, sizeof path, "%s/y.npy", j->folder);
        if (ours_input_open(&j->inputs[i], i < n ? ty_model_input(j->model, i)->name : "y", path, err) < 0 ||
            (j->rows > 0 && ours_input_resize(&j->inputs[i], j->rows, err) < 0))
            return -1;
    }
    return 0;
}

/* ---- the recipe ------------------------------------------------------------------------------------------------- */

/* Defaults of torch.optim; SGD with momentum 0.9, AdamW with weight decay 0.01. */
static ty_optimizer job_optimizer(const work *w)
{
    return (ty_optimizer){.kind = w->optimizer,
                          .lr = w->lr,
                          .weight_decay = w->optimizer == TY_OPT_ADAMW ? 0.01 : 0,
                          .momentum = w->optimizer == TY_OPT_SGD ? 0.9 : 0,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .eps = 1e-8};
}

static int job_compile(job *j, ty_error *err)
{
    ty_binding bindings[MAX_INPUTS];
    int replicas = j->options.n_gpus > 1 ? j->options.n_gpus : 1;
    for (int i = 0; i < j->n_inputs; i++) {
        bindings[i] = (ty_binding){j->inputs[i].name, j->inputs[i].type};
        bindings[i].type.dim[0] /= replicas;
        if (bindings[i].type.dim[0] * replicas != j->inputs[i].type.dim[0])
            return ty_error_set(err, TY_E_RANGE, "batches are not to be divided among %d GPUs", replicas);
    }
    ty_loss_term loss = {.kind = j->work->loss,
                         .output = ty_model_output(j->model, 0)->name,
                         .target = "y",
                         .weight = 1,
                         .pos_weight = 1,
                         .ignore_index = -100,
                         .class_axis = -1};
    ty_train_spec spec = {.inputs = bindings,
                          .n_inputs = j->n_inputs,
                          .loss = &loss,
                          .n_loss = 1,
                          .optimizer = job_optimizer(j->work),
                          .schedule = {.kind = TY_SCHED_CONSTANT},
                          .sparse_all = j->sparse,
                          .accumulate = 1,
                          .seed = 1,
                          .replicas = replicas > 1 ? replicas : 0,
                          .precision = j->precision,
                          .batch_norm_statistics = true,
                          .no_eval = true}; /* the peers do not evaluate either */
    return ty_compile_train(j->model, &spec, &j->options, &j->program, err);
}

/* ---- training and measuring ------------------------------------------------------------------------------------- */

/* Seconds since this process began, by the kernel's own clock (its ticks are 10 ms), as measure.py reckons. */
static double seconds_since_start(void)
{
    char text[1024] = "";
    unsigned long long ticks = 0;
    FILE *f = fopen("/proc/self/stat", "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *after_name = strrchr(text, ')'); /* field 2; starttime is field 22 */
    if (!after_name ||
        sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        return -1;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* VmHWM, not getrusage of the own process: that one remembers what the parent was before exec. */
static double peak_mb(void)
{
    char line[256];
    long own_kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld kB", &own_kb) == 1)
            break;
    if (f)
        fclose(f);
    struct rusage children = {0};
    getrusage(RUSAGE_CHILDREN, &children);
    return 1024e-6 * (double)(children.ru_maxrss > own_kb ? children.ru_maxrss : own_kb);
}

static int job_begin(job *j, int step, ty_error *err)
{
    const void *inputs[MAX_INPUTS];
    for (int i = 0; i < j->n_inputs; i++)
        inputs[i] = ours_input_batch(&j->inputs[i], step);
    return ty_program_start(j->program, TY_RUN_LAST, inputs, err);
}

static int job_end(job *j, int step, ty_error *err)
{
    if (ty_program_finish(j->program, TY_RUN_LAST, err) < 0)
        return -1;
    const ty_tensor *t = ty_program_output(j->program, TY_RUN_LAST, "loss");
    if (!t || t->type.dtype != TY_F32)
        return ty_error_set(err, TY_E_INTERNAL, "expected an output \"loss\" of type f32");
    if (step < KEPT_LOSSES)
        j->losses[step] = *(const float *)t->data;
    return 0;
}

/* On a GPU a step's result is taken when the next one has begun, but for the first one's, whose end is told. */
static int job_train(job *j, ty_error *err)
{
    int late = ty_program_in_flight(j->program, TY_RUN_LAST) > 1, rc = 0;
    j->step_ms = calloc((size_t)j->steps, sizeof *j->step_ms);
    if (!j->step_ms)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %d times", j->steps);
    j->ready_s = seconds_since_start();
    for (int i = 0; i < j->steps && rc == 0; i++) {
        int64_t start = ty_clock_ns();
        rc = job_begin(j, i, err);
        if (rc == 0 && (i == 0 || !late || i > 1))
            rc = job_end(j, i > 1 ? i - late : i, err);
        j->step_ms[i] = 1e-6 * (double)(ty_clock_ns() - start);
        if (i == 0)
            j->first_s = seconds_since_start();
        if (rc < 0)
            return ty_error_wrap(err, "step %d", i + 1);
    }
    return late && j->steps > 1 ? job_end(j, j->steps - 1, err) : 0;
}

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

/* ---- the line --------------------------------------------------------------------------------------------------- */

static void put_rounded(ty_json_writer *w, const char *key, double x, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f", digits, x);
    ty_json_put_raw(w, key, text);
}

static void put_report(ty_json_writer *w, const ty_compile_report *r)
{
    put_rounded(w, "compile_ms", r->total_ms, 1);
    put_rounded(w, "import_ms", r->import_ms, 1);
    put_rounded(w, "lower_ms", r->lower_ms, 1);
    ty_json_put_int(w, "device_bytes", (int64_t)r->device_bytes);
    ty_json_put_int(w, "device_code_bytes", (int64_t)r->device_code_bytes);
    put_rounded(w, "plan_ms", r->plan_ms, 1);
    put_rounded(w, "cc_ms", r->cc_ms, 1);
    ty_json_open_map(w, "phases_ms");
    for (int i = 0; i < r->phases.n; i++)
        put_rounded(w, r->phases.name[i], r->phases.ms[i], 2);
    ty_json_close(w);
    ty_json_put_bool(w, "cache_hit", r->cache_hit);
    ty_json_put_int(w, "kernels", r->n_kernels);
    ty_json_put_int(w, "distinct_kernels", r->n_distinct_kernels);
    ty_json_put_int(w, "library_calls", r->n_library_calls);
    ty_json_put_int(w, "trained", r->n_trained);
    ty_json_put_int(w, "state_bytes", (int64_t)r->state_bytes);
    ty_json_put_int(w, "slab_bytes", (int64_t)r->slab_bytes);
    ty_json_put_int(w, "bound_bytes", (int64_t)r->bound_bytes);
    ty_json_put_int(w, "scratch_bytes", (int64_t)r->scratch_bytes);
}

static int job_print(job *j, ty_error *err)
{
    ty_buf line;
    ty_json_writer w;
    int later = j->steps > WARM_UP ? WARM_UP : 0;
    ty_buf_init(&line, 1 << 16);
    ty_json_writer_init(&w, &line, TY_JSON_PYTHON);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "work", j->work->name);
    ty_json_put_string(&w, "peer", "trainyard");
    ty_json_put_int(&w, "batch", j->inputs[0].type.dim[0]);
    put_rounded(&w, "first_s", j->first_s, 3);
    put_rounded(&w, "step_ms", median(j->step_ms + later, j->steps - later), 3);
    put_rounded(&w, "peak_mb", peak_mb(), 1);
    ty_json_open_list(&w, "losses");
    for (int i = 0; i < j->steps && i < KEPT_LOSSES; i++)
        ty_json_put_float32(&w, NULL, j->losses[i]);
    ty_json_close(&w);
    put_rounded(&w, "ready_s", j->ready_s, 3);
    put_report(&w, ty_program_report(j->program));
    ty_json_close(&w);
    ty_buf_addc(&line, '\n');
    int rc = line.failed ? ty_error_set(err, TY_E_LIMIT, "the line is too long")
                         : ty_file_write_all(STDOUT_FILENO, line.data, line.len, "stdout", err);
    ty_buf_fini(&line);
    return rc;
}

/* ---- where a step's time goes ----------------------------------------------------------------------------------- */

enum { TIMED_STEPS = 12, COPY_MB = 256 };

/* Bytes a second, read and written, of the fastest of eight copies by all threads. */
static double copy_speed(int threads)
{
    size_t n = (size_t)COPY_MB << 20;
    char *from = aligned_alloc(4096, n), *to = aligned_alloc(4096, n);
    double best = 0;
    for (int round = 0; from && to && round < 10; round++) {
        int64_t start = ty_clock_ns();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (int t = 0; t < threads; t++)
            memcpy(to + n / (size_t)threads * (size_t)t, from + n / (size_t)threads * (size_t)t, n / (size_t)threads);
        double speed = 2e9 * (double)n / (double)(ty_clock_ns() - start);
        if (round < 2) /* pages come in */
            memset(from, round, n);
        else
            best = speed > best ? speed : best;
    }
    free(from);
    free(to);
    return best;
}

typedef struct call_row {
    ty_call_info info;
    double ms;
} call_row;

static int compare_calls(const void *a, const void *b)
{
    const call_row *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

static void calls_print(const job *j, call_row *rows, int n)
{
    static const char *const kinds[] = {
        [TY_CALL_KERNEL] = "kernel", [TY_CALL_LIBRARY] = "library", [TY_CALL_COPY] = "copy"};
    double copy = copy_speed(j->options.threads > 0 ? j->options.threads : omp_get_max_threads()), sum = 0;
    double by_kind[3] = {0};
    for (int i = 0; i < n; i++) {
        sum += rows[i].ms;
        by_kind[rows[i].info.kind] += rows[i].ms;
    }
    qsort(rows, (size_t)n, sizeof *rows, compare_calls);
    printf("%s: %d calls, %.3f ms (kernels %.3f, library %.3f, copies %.3f); copying memory: %.1f GB/s\n",
           j->work->name, n, sum, by_kind[0], by_kind[1], by_kind[2], 1e-9 * copy);
    printf("%9s %6s %8s %8s %7s %7s %3s  %s\n", "ms", "share", "read MB", "write MB", "GB/s", "of copy", "thr", "what");
    for (int i = 0; i < n; i++) {
        const ty_call_info *c = &rows[i].info;
        double speed = (double)(c->read_bytes + c->written_bytes) / (1e-3 * rows[i].ms);
        printf("%9.4f %5.1f%% %8.3f %8.3f %7.2f %6.0f%% %3d  %s %s %s: %s\n", rows[i].ms, 100 * rows[i].ms / sum,
               1e-6 * (double)c->read_bytes, 1e-6 * (double)c->written_bytes, 1e-9 * speed, 100 * speed / copy,
               c->threads, kinds[c->kind], c->name, c->how, c->origin);
    }
}

static bool is_product(ty_work work)
{
    return work == TY_WORK_PRODUCT || work == TY_WORK_CONVOLUTION || work == TY_WORK_RECURRENT;
}

/* Of each unit once: calls of one kernel may have other extents. Then the step's arithmetic. */
static int counts_print(const job *j, const call_row *rows, int n, ty_error *err)
{
    ty_arena arena;
    ty_tape_facts tape;
    ty_arena_init(&arena);
    int rc = ty_program_describe(j->program, TY_RUN_LAST, &arena, &tape, err);
    for (int i = 0; i < n && rc == 0; i++) {
        bool first = rows[i].info.kind == TY_CALL_KERNEL;
        for (int k = 0; k < i && first; k++)
            first = rows[k].info.unit != rows[i].info.unit;
        if (first)
            printf("counts %s: %s\n", rows[i].info.name, tape.unit[rows[i].info.unit].counts);
    }
    double products = 0, all = 0;
    for (int i = 0; i < tape.n_units && rc == 0; i++) {
        products += is_product(tape.unit[i].work) ? tape.unit[i].flop : 0;
        all += tape.unit[i].flop;
    }
    if (rc == 0)
        printf("flop: products %.0f, all %.0f\n", products, all);
    ty_arena_fini(&arena);
    return rc;
}

/* Milliseconds of the library's calls of products, and of the update's kernels. */
static void limit_times(const call_row *rows, int n, double *products, double *update, double *sum)
{
    static const char *const names[] = {"dot", "conv", "rnn", "attend"};
    *products = *update = *sum = 0;
    for (int i = 0; i < n; i++) {
        const ty_call_info *c = &rows[i].info;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (c->kind == TY_CALL_LIBRARY && strncmp(c->name, names[k], strlen(names[k])) == 0)
                *products += rows[i].ms;
        *update += strcmp(c->origin, "update") == 0 ? rows[i].ms : 0;
        *sum += rows[i].ms;
    }
}

/* The step beside its arithmetic limit: (FLOP of products / speed of a large product) + (bytes that the update must
 * move / speed of copying). */
static int limit_print(const job *j, const ty_tape_facts *t, const call_row *rows, int n, ty_error *err)
{
    double flop = 0, bytes = 0, products, update, sum;
    ty_machine_ceilings top;
    if (ty_machine_measure(j->options.threads, &top, err) < 0)
        return -1;
    for (int i = 0; i < t->n_units; i++) {
        const ty_unit_facts *unit = &t->unit[i];
        flop += is_product(unit->work) ? unit->flop : 0;
        bytes += unit->phase == TY_PHASE_UPDATE ? (double)(unit->read_bytes + unit->written_bytes) : 0;
    }
    limit_times(rows, n, &products, &update, &sum);
    double step = median(j->step_ms + WARM_UP, j->steps - WARM_UP);
    double limit = 1e3 * flop / top.flop_per_s + 1e3 * bytes / top.bytes_per_s;
    printf("{\"work\": \"%s\", \"step_ms\": %.3f, \"limit_ms\": %.3f, \"reached\": %.3f, \"product_gflop\": %.3f, "
           "\"product_share\": %.3f, \"product_gflop_per_s\": %.1f, \"top_gflop_per_s\": %.1f, \"update_mb\": %.1f, "
           "\"update_share\": %.3f, \"copy_gb_per_s\": %.1f}\n",
           j->work->name, step, limit, limit / step, 1e-9 * flop, products / sum, 1e-6 * flop / products,
           1e-9 * top.flop_per_s, 1e-6 * bytes, update / sum, 1e-9 * top.bytes_per_s);
    return 0;
}

static int job_limit(const job *j, const call_row *rows, int n, ty_error *err)
{
    ty_arena arena;
    ty_tape_facts tape;
    ty_arena_init(&arena);
    int rc = ty_program_describe(j->program, TY_RUN_LAST, &arena, &tape, err);
    if (rc == 0)
        rc = limit_print(j, &tape, rows, n, err);
    ty_arena_fini(&arena);
    return rc;
}

static int job_calls(job *j, ty_error *err)
{
    int n = ty_program_n_calls(j->program, TY_RUN_LAST);
    int64_t *ns = calloc((size_t)n + 1, sizeof *ns);
    double *ms = calloc((size_t)n * TIMED_STEPS + 1, sizeof *ms);
    call_row *rows = calloc((size_t)n + 1, sizeof *rows);
    int rc = ns && ms && rows ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for %d times", n);
    for (int step = 0; step < TIMED_STEPS && rc == 0; step++) {
        const void *inputs[MAX_INPUTS];
        for (int i = 0; i < j->n_inputs; i++)
            inputs[i] = ours_input_batch(&j->inputs[i], step);
        rc = ty_program_run_timed(j->program, TY_RUN_LAST, inputs, ns, err);
        for (int i = 0; i < n; i++)
            ms[i * TIMED_STEPS + step] = 1e-6 * (double)ns[i];
    }
    for (int i = 0; i < n && rc == 0; i++) {
        ty_program_call(j->program, TY_RUN_LAST, i, &rows[i].info);
        rows[i].ms = median(ms + i * TIMED_STEPS, TIMED_STEPS);
    }
    if (rc == 0 && j->limit)
        rc = job_limit(j, rows, n, err);
    else if (rc == 0) {
        calls_print(j, rows, n);
        rc = counts_print(j, rows, n, err);
    }
    free(ns);
    free(ms);
    free(rows);
    return rc;
}

/* ---- what the slab holds at the peak ---------------------------------------------------------------------------- */

static int compare_buffers(const void *a, const void *b)
{
    const ty_buffer_facts *x = *(const ty_buffer_facts *const *)a, *y = *(const ty_buffer_facts *const *)b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void plan_print(const job *j, const ty_tape_facts *t, const ty_buffer_facts **live)
{
    const ty_compile_report *r = ty_program_report(j->program);
    char type[160];
    int n = 0;
    for (int i = 0; i < t->n_buffers; i++)
        if (t->buffer[i].first <= t->peak && t->buffer[i].last >= t->peak)
            live[n++] = &t->buffer[i];
    qsort(live, (size_t)n, sizeof *live, compare_buffers);
    printf("%s: states %.1f MB, slab %.1f MB, bound %.1f MB, workspaces %.1f MB; peak at call %d of %d: %s\n",
           j->work->name, 1e-6 * (double)r->state_bytes, 1e-6 * (double)t->slab_bytes, 1e-6 * (double)t->bound_bytes,
           1e-6 * (double)r->scratch_bytes, t->peak, t->n_units,
           t->peak < t->n_units ? t->unit[t->peak].origin : "the end");
    for (int i = 0; i < r->remat.n_lines; i++)
        printf("again: %.1f MB, %.2f %% %s %s - %s\n", 1e-6 * (double)r->remat.line[i].kept_bytes,
               100 * r->remat.line[i].share, r->remat.line[i].products ? "all" : "loops", r->remat.line[i].from,
               r->remat.line[i].to);
    printf("remat: %.1f MB -> %.1f MB, %.2f %% more arithmetic\n", 1e-6 * (double)r->remat.without_bytes,
           1e-6 * (double)r->remat.with_bytes, 100 * r->remat.share);
    for (int i = 0; i < n; i++)
        printf("%9.3f MB %5d-%-5d %-24s %-22s %s\n", 1e-6 * (double)live[i]->bytes, live[i]->first, live[i]->last,
               ty_buffer_use_text(live[i]->use), ty_type_text(&live[i]->type, type, sizeof type), live[i]->origin);
}

static int job_plan(const job *j, ty_error *err)
{
    ty_arena arena;
    ty_tape_facts tape;
    ty_arena_init(&arena);
    int rc = ty_program_describe(j->program, TY_RUN_LAST, &arena, &tape, err);
    if (rc == 0)
        plan_print(j, &tape, TY_NEW_ARRAY(&arena, const ty_buffer_facts *, tape.n_buffers + 1));
    ty_arena_fini(&arena);
    return rc;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static int job_run(job *j, ty_error *err)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/model.onnx", j->folder);
    if (access(path, R_OK) < 0)
        snprintf(path, sizeof path, "%s/model.keras", j->folder);
    if (ty_model_open(path, &j->model, err) < 0 || inputs_open(j, err) < 0 || job_compile(j, err) < 0)
        return -1;
    if (j->options.plan_only)
        return j->options.cuda_dir ? 0 : job_plan(j, err);
    if (job_train(j, err) < 0)
        return -1;
    return j->calls || j->limit ? job_calls(j, err) : job_print(j, err);
}

static void job_free(job *j)
{
    ty_program_free(j->program);
    ty_model_free(j->model);
    for (int i = 0; i < MAX_INPUTS; i++)
        ours_input_close(&j->inputs[i]);
    free(j->step_ms);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: ours WORK DIR [STEPS] [--cache DIR] [--threads N] [--cc PROGRAM] [--dump DIR] [--calls]\n"
            "            [--limit] [--plan] [--temporaries MB] [--strict] [--sparse] [--tf32] [--without PASS]...\n"
            "            [--precision float32|bfloat16|float16] [--gpu | --gpus N] [--cuda DIR] [--batch ROWS]\n"
            "       WORK is one of");
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        fprintf(stderr, " %s", works[i].name);
    fprintf(stderr, "\n");
    return 64;
}

static const work *work_find(const char *name)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, name) == 0)
            return &works[i];
    return NULL;
}

static ty_precision precision_find(const char *name)
{
    static const char *const names[] = {
        [TY_PRECISION_FLOAT32] = "float32", [TY_PRECISION_BFLOAT16] = "bfloat16", [TY_PRECISION_FLOAT16] = "float16"};
    for (int i = 0; i < TY_N_PRECISIONS; i++)
        if (strcmp(names[i], name) == 0)
            return (ty_precision)i;
    return TY_N_PRECISIONS; /* the compiler refuses it */
}

static bool job_options(job *j, int argc, char **argv)
{
    static const int numbers[MAX_GPUS] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const struct option known[] = {{"cache", required_argument, NULL, 'k'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"cc", required_argument, NULL, 'c'},
                                          {"dump", required_argument, NULL, 'd'},
                                          {"calls", no_argument, NULL, 'l'},
                                          {"limit", no_argument, NULL, 'i'},
                                          {"plan", no_argument, NULL, 'n'},
                                          {"temporaries", required_argument, NULL, 'm'},
                                          {"sparse", no_argument, NULL, 'r'},
                                          {"strict", no_argument, NULL, 's'},
                                          {"precision", required_argument, NULL, 'p'},
                                          {"tf32", no_argument, NULL, 'f'},
                                          {"cuda", required_argument, NULL, 'u'},
                                          {"gpu", no_argument, NULL, 'g'},
                                          {"gpus", required_argument, NULL, 'G'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {"without", required_argument, NULL, 'w'},
                                          {0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'k':
            j->options.cache_dir = optarg;
            break;
        case 't':
            j->options.threads = atoi(optarg);
            break;
        case 'b':
            j->rows = atoll(optarg);
            break;
        case 'c':
            j->options.cc = optarg;
            break;
        case 'p':
            j->precision = precision_find(optarg);
            break;
        case 'f':
            j->options.tf32 = true;
            break;
        case 'd':
            j->options.dump_dir = optarg;
            break;
        case 'w':
            if (j->options.n_skip_passes == MAX_WITHOUT)
                return false;
            j->without[j->options.n_skip_passes++] = optarg;
            j->options.skip_passes = j->without;
            break;
        case 'l':
            j->calls = true;
            break;
        case 'i':
            j->limit = true;
            break;
        case 'm':
            j->options.temporary_bytes = (int64_t)(1e6 * atof(optarg));
            break;
        case 'n':
            j->options.plan_only = true;
            break;
        case 'r':
            j->sparse = true;
            break;
        case 'u':
            j->options.cuda_dir = optarg;
            j->options.backend = TY_BACKEND_CUDA;
            break;
        case 'g':
            j->options.backend = TY_BACKEND_CUDA;
            j->on_gpu = true;
            break;
        case 'G':
            j->options.gpus = numbers;
            j->options.n_gpus = atoi(optarg);
            j->options.backend = TY_BACKEND_CUDA;
            j->on_gpu = true;
            break;
        case 's':
            j->options.deterministic_strict = true;
            break;
        default:
            return false;
        }
    }
    j->options.plan_only |= j->options.cuda_dir && !j->on_gpu;
    if (argc - optind < 2 || argc - optind > 3 || j->options.n_gpus < 0 || j->options.n_gpus > MAX_GPUS)
        return false;
    j->work = work_find(argv[optind]);
    j->folder = argv[optind + 1];
    j->steps = !j->work ? 0 : argc - optind == 3 ? atoi(argv[optind + 2]) : j->work->steps;
    return j->steps > 0;
}

int main(int argc, char **argv)
{
    ty_threads_settle(argv); /* as the programs do */
    job j = {.options = {.backend = TY_BACKEND_CPU}};
    ty_error err = {0};
    if (!job_options(&j, argc, argv))
        return usage();
    int rc = job_run(&j, &err);
    if (rc < 0) {
        char text[8192];
        ty_error_format(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    job_free(&j);
    return rc < 0 ? ty_error_exit_status(err.code) : 0;
}
