/* device.c - see device.h. */
#include "entrypoint/device.h"

#include "base/log.h"
#include "base/quantity.h"
#include "entrypoint/budget.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICE_LARGEST = 20, DEVICE_LAYER_CHARS = 40, DEVICE_MAX_BATCH = 1 << 20 };

/* ---- choosing ---- */

/* What is asked of this session that only the CPU does; NULL: nothing. */
static const char *device_needs_cpu(const ty_session *s)
{
    if (s->job->compiled_folder || s->recipe.compiled)
        return "kernels that were compiled before are the CPU's";
    if (s->compile_to)
        return "kernels are compiled for the CPU; those of a GPU are kept in the cache";
    if (s->recipe.debug == TY_DEBUG_INTERPRET)
        return "debug: interpret computes operation by operation, which the CPU does";
    if ((s->recipe.mirrored || s->job->company) && (s->job->replay_step > 0 || s->recipe.debug != TY_DEBUG_NONE))
        return "values are looked at on one device, which of several is the CPU";
    if (s->job->served)
        return "workers of parameter servers train on CPUs";
    return NULL;
}

/* The recipe's GPUs, or the one. */
static int device_find(ty_session *s, ty_error *err)
{
    const ty_recipe *r = &s->recipe;
    if (r->mirrored)
        return ty_machine_find_gpus(r->gpu, r->n_gpus, r->cross_device, &s->arena, &s->gpu, &s->n_gpus, err);
    s->gpu = TY_NEW(&s->arena, ty_machine_gpu);
    s->n_gpus = 1;
    return ty_machine_find_gpu(r->n_gpus ? r->gpu[0] : -1, &s->arena, s->gpu, err);
}

/* What is wrong with several is no reason to take the CPU where one would do. */
static bool device_may_be_cpu(ty_session *s)
{
    ty_machine_gpu one;
    return s->recipe.device == TY_DEVICE_AUTO &&
           !(s->recipe.mirrored && ty_machine_find_gpu(-1, &s->arena, &one, NULL) == 0);
}

/* Each GPU has as many rows. */
static int device_share_out(ty_session *s, ty_error *err)
{
    int64_t batch = s->recipe.batch_size, n = s->n_gpus;
    int *number = TY_NEW_ARRAY(&s->arena, int, s->n_gpus);
    for (int i = 0; i < s->n_gpus; i++)
        number[i] = s->gpu[i].number;
    s->gpu_number = number;
    if (s->recipe.batch_auto || batch % n == 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG,
                 "batch_size: %lld rows cannot be shared out to %lld GPUs, each of which takes as many",
                 (long long)batch, (long long)n);
    ty_error_at(err, "%s", s->recipe.path);
    return ty_error_help(err, "batch_size is of all GPUs together: take %lld, or name the GPUs (device: gpu:0,1)",
                         (long long)((batch + n - 1) / n * n));
}

/* ---- ranks: as many rows for each, and a GPU for each or for none ---- */

static int device_share_with_company(ty_session *s, ty_error *err)
{
    int64_t batch = s->recipe.batch_size, n = ty_company_size(s->job->company);
    if (s->recipe.batch_auto || batch % n == 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG,
                 "batch_size: %lld rows cannot be shared out to %lld ranks, each of which takes as many",
                 (long long)batch, (long long)n);
    ty_error_at(err, "%s", s->recipe.path);
    return ty_error_help(err, "batch_size is of all ranks together: take %lld", (long long)((batch + n - 1) / n * n));
}

int ty_device_of_rank(ty_company *c, const int *wanted, int n_wanted, ty_arena *a, ty_machine_gpu *out, ty_error *why,
                      ty_error *err)
{
    int64_t all =
        ty_machine_find_gpu_at(wanted, n_wanted, ty_company_local_rank(c), ty_company_local_size(c), a, out, why) == 0;
    bool own = all;
    if (ty_company_least(c, "GPUs", &all, err) < 0)
        return -1;
    if (own && !all)
        ty_error_set(why, TY_E_NOT_FOUND, "another rank has no GPU");
    return (int)all;
}

/* All ranks of one kind: update and weights are computed on each, and must be the same bits. */
static int device_check_alike(ty_session *s, ty_error *err)
{
    int capability = s->gpu[0].capability;
    const char *text = ty_arena_printf(&s->arena, "compute capability: %d.%d", capability / 10, capability % 10);
    if (ty_company_compare(s->job->company, "GPUs", text, err) == 0)
        return 0;
    err->code = err->code == TY_E_GRAPH ? TY_E_CONFIG : err->code; /* what differs is a machine */
    return -1;
}

/* Each has a GPU, or the recipe lets all go on without. */
static int device_agree_on_gpus(ty_session *s, ty_error *err)
{
    ty_error why = {0};
    s->gpu = TY_NEW(&s->arena, ty_machine_gpu);
    s->n_gpus = 1;
    int has = ty_device_of_rank(s->job->company, s->recipe.gpu, s->recipe.n_gpus, &s->arena, s->gpu, &why, err);
    if (has < 0)
        return -1;
    s->on_gpu = has;
    if (!has && s->recipe.device != TY_DEVICE_GPU) {
        s->why_cpu = ty_arena_strdup(&s->arena, why.message);
        return 0;
    }
    if (!has) {
        *err = why;
        ty_error_wrap(err, "device: gpu");
        return err->help[0] ? -1
                            : ty_error_help(err, "`trainyard doctor` lists what is missing; device: cpu trains "
                                                 "without GPUs");
    }
    int *number = TY_NEW(&s->arena, int);
    *number = s->gpu[0].number;
    s->gpu_number = number;
    return device_check_alike(s, err);
}

static int device_choose_in_company(ty_session *s, ty_error *err)
{
    const char *why = device_needs_cpu(s);
    if (device_share_with_company(s, err) < 0)
        return -1;
    if (s->recipe.device == TY_DEVICE_CPU)
        return 0;
    if (!why)
        return device_agree_on_gpus(s, err);
    s->why_cpu = why;
    if (s->recipe.device == TY_DEVICE_AUTO)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "device: gpu, with several ranks: %s", why);
    return ty_error_help(err, "leave it out, or train with device: cpu");
}

/* What becomes of all ranks, the worst first. */
typedef enum device_outlook { OUTLOOK_CPU, OUTLOOK_NO_MEMORY, OUTLOOK_FINE } device_outlook;

int ty_device_agree(ty_session *s, int rc, ty_error *err)
{
    if (rc < 0 && !(s->on_gpu && err->code == TY_E_LIMIT))
        return -1; /* without a question: the others wait in it until the agent ends them */
    int64_t mine = !s->on_gpu ? OUTLOOK_CPU : rc < 0 ? OUTLOOK_NO_MEMORY : OUTLOOK_FINE, all = mine;
    if (ty_company_worst(s->job->company, "GPUs", &all, err) < 0)
        return -1;
    if (all == mine)
        return rc;
    if (all == OUTLOOK_NO_MEMORY)
        return -1;
    s->on_gpu = false;
    s->why_cpu = "another rank cannot train on its GPU";
    *err = (ty_error){0};
    return ty_budget_fit(s, err);
}

int ty_device_choose(ty_session *s, ty_error *err)
{
    if (s->job->company)
        return device_choose_in_company(s, err);
    const char *why = device_needs_cpu(s);
    if (s->recipe.device == TY_DEVICE_CPU)
        return 0;
    if (why) {
        s->why_cpu = why;
        if (s->recipe.device == TY_DEVICE_AUTO || s->job->replay_step > 0)
            return 0;
        ty_error_set(err, TY_E_CONFIG, "device: gpu: %s", why);
        return ty_error_help(err, "device: auto or cpu");
    }
    s->on_gpu = device_find(s, err) == 0;
    if (s->on_gpu)
        return device_share_out(s, err);
    if (!device_may_be_cpu(s)) {
        ty_error_wrap(err, s->recipe.mirrored ? "strategy: mirrored" : "device: gpu");
        return err->help[0] ? -1
                            : ty_error_help(err, "`trainyard doctor` lists what is missing; %s",
                                            s->recipe.mirrored ? "strategy: one_device trains on one GPU"
                                                               : "device: cpu trains without a GPU");
    }
    s->why_cpu = ty_arena_strdup(&s->arena, err->message);
    *err = (ty_error){0};
    return 0;
}

bool ty_device_give_up(ty_session *s, ty_error *err)
{
    if (!s->on_gpu || s->recipe.device != TY_DEVICE_AUTO ||
        (err->code != TY_E_UNSUPPORTED && err->code != TY_E_NOT_FOUND))
        return false;
    s->on_gpu = false;
    s->why_cpu = ty_arena_strdup(&s->arena, err->message);
    ty_log_warning("device", "training on the CPU: %s", err->message);
    *err = (ty_error){0};
    return true;
}

/* Ranks by hosts, where that makes a difference: not where the order of ranks decides. */
static ty_cross_device device_cross(const ty_session *s, int *inside)
{
    const ty_company *c = s->job->company;
    int each = ty_company_ranks_a_host(c), n = ty_company_size(c);
    bool by_hosts = c && each > 1 && each < n;
    *inside = by_hosts ? each : 0;
    if (s->recipe.deterministic_strict)
        return TY_CROSS_NCCL;
    if (!c || s->recipe.cross_device != TY_CROSS_NCCL)
        return s->recipe.cross_device;
    return s->recipe.distributed.hierarchical && by_hosts ? TY_CROSS_HIERARCHICAL : TY_CROSS_NCCL;
}

void ty_device_options(const ty_session *s, ty_compile_options *options)
{
    if (s->on_gpu)
        options->backend = TY_BACKEND_CUDA;
    options->exchange = ty_company_exchange(s->job->company);
    if (!s->on_gpu)
        return;
    options->gpu = s->gpu[0].number;
    options->gpu_capability = s->gpu[0].capability;
    options->gpus = s->n_gpus > 1 ? s->gpu_number : NULL;
    options->n_gpus = s->n_gpus > 1 ? s->n_gpus : 0;
    options->cross_device = device_cross(s, &options->cross_inside);
}

int ty_device_replicas(const ty_session *s)
{
    return s->on_gpu && !s->job->company ? s->n_gpus : ty_company_size(s->job->company);
}

/* "hierarchical_copy" */
static const char *device_joined(const ty_session *s)
{
    int inside;
    return s->recipe.deterministic_strict ? "nccl in rank order" : ty_cross_device_text(device_cross(s, &inside));
}

/* "0, 1, NVIDIA H200"; of several names "0 NVIDIA H100 PCIe, 1 NVIDIA H100". */
static const char *device_list(ty_session *s)
{
    bool alike = true;
    const char *text = "";
    for (int i = 1; i < s->n_gpus; i++)
        alike = alike && strcmp(s->gpu[i].name, s->gpu[0].name) == 0;
    for (int i = 0; i < s->n_gpus; i++)
        text = ty_arena_printf(&s->arena, "%s%s%d%s%s", text, i ? ", " : "", s->gpu[i].number, alike ? "" : " ",
                               alike ? "" : s->gpu[i].name);
    return alike ? ty_arena_printf(&s->arena, "%s, %s", text, s->gpu[0].name) : text;
}

const char *ty_device_text(ty_session *s)
{
    if (s->on_gpu) {
        int ranks = ty_company_size(s->job->company);
        const char *text = ty_arena_printf(&s->arena, "GPU%s %s (compute capability %d.%d)", s->n_gpus > 1 ? "s" : "",
                                           device_list(s), s->gpu[0].capability / 10, s->gpu[0].capability % 10);
        if (s->job->company)
            return ty_arena_printf(&s->arena, "%s; %d ranks, a GPU each, joined by %s, %lld rows each", text, ranks,
                                   device_joined(s), (long long)(s->recipe.batch_size / ranks));
        return s->n_gpus == 1 ? text
                              : ty_arena_printf(&s->arena, "%s, mirrored by %s, %lld rows each", text, device_joined(s),
                                                (long long)(s->recipe.batch_size / s->n_gpus));
    }
    const char *text = s->why_cpu ? ty_arena_printf(&s->arena, "CPU: %s", s->why_cpu) : "CPU";
    int n = ty_company_size(s->job->company);
    return n == 1 ? text
                  : ty_arena_printf(&s->arena, "%s; %d ranks, %lld rows each", text, n,
                                    (long long)(s->recipe.batch_size / n));
}

int ty_device_memory(const ty_session *s, uint64_t *free_bytes, ty_error *err)
{
    size_t free = 0, total = 0;
    *free_bytes = UINT64_MAX;
    for (int i = 0; i < s->n_gpus; i++) {
        if (ty_machine_gpu_memory(s->gpu[i].number, &free, &total, err) < 0)
            return -1;
        *free_bytes = free < *free_bytes ? free : *free_bytes;
    }
    return 0;
}

/* ---- refusing ---- */

bool ty_device_fit(ty_session *s, ty_error *err)
{
    ty_error ignored = {0};
    bool is_known = ty_device_memory(s, &s->batch_limit_bytes, &ignored) == 0;
    int64_t least = is_known ? (int64_t)s->batch_limit_bytes : 0; /* all ranks plan for the GPU that has least */
    ignored = (ty_error){0};
    if (ty_company_least(s->job->company, "memory of GPUs", &least, &ignored) < 0 || least == 0)
        return false;
    s->batch_limit_bytes = (uint64_t)least;
    if (ty_budget_fit(s, &ignored) < 0 || s->temporary_bytes == 0)
        return false;
    *err = (ty_error){0};
    return true;
}

static const char *const device_uses[TY_N_BUFFER_USES] = {[TY_USE_ACTIVATION] = "activation",
                                                          [TY_USE_TEMPORARY] = "temporary",
                                                          [TY_USE_GRADIENT] = "gradient",
                                                          [TY_USE_WEIGHT_GRADIENT] = "of weights"};

/* A buffer of the slab at the peak, or a state. */
typedef struct device_buffer {
    uint64_t bytes;
    const char *use, *layer;
} device_buffer;

static int device_by_bytes(const void *a, const void *b)
{
    const device_buffer *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->layer, y->layer);
}

/* Largest first; returns how many. */
static int device_buffers(ty_session *s, const ty_program *p, const ty_tape_facts *t, device_buffer **out)
{
    int n = 0, n_states = ty_program_n_states(p);
    device_buffer *list = TY_NEW_ARRAY(&s->arena, device_buffer, t->n_buffers + n_states);
    for (int i = 0; i < t->n_buffers; i++)
        if (t->buffer[i].first <= t->peak && t->buffer[i].last >= t->peak)
            list[n++] = (device_buffer){(uint64_t)t->buffer[i].bytes, device_uses[t->buffer[i].use],
                                        ty_layer_of_origin(&s->arena, t->buffer[i].origin)};
    for (int i = 0; i < n_states; i++) {
        const char *name;
        ty_tensor state = ty_program_state(p, i, &name);
        list[n++] = (device_buffer){ty_type_bytes(&state.type), "state", name};
    }
    qsort(list, (size_t)n, sizeof *list, device_by_bytes);
    *out = list;
    return n;
}

/* A name's end says more than its beginning, and twenty must have room. */
static const char *device_end_of(const char *layer)
{
    size_t n = strlen(layer);
    return n > DEVICE_LAYER_CHARS ? layer + n - DEVICE_LAYER_CHARS : layer;
}

static void device_tell_buffers(ty_session *s, const ty_program *p, const ty_tape_facts *t, ty_error *err)
{
    char bytes[32];
    device_buffer *list;
    int n = device_buffers(s, p, t, &list);
    for (int i = 0; i < n && i < DEVICE_LARGEST && list[i].bytes > 0; i++)
        ty_error_detail(err, "%10s  %-10s  %s", ty_bytes_text(list[i].bytes, bytes, sizeof bytes), list[i].use,
                        device_end_of(list[i].layer));
}

static void device_tell_batch(ty_session *s, uint64_t limit, ty_error *err)
{
    ty_budget b;
    ty_error ignored = {0};
    ty_budget_list *known = TY_NEW(&s->arena, ty_budget_list);
    if (ty_budget_largest(s, limit, DEVICE_MAX_BATCH, known, &b, &ignored) < 0)
        return;
    if (b.batch == 0)
        ty_error_help(err, "not even one row fits: take a GPU with more memory, a smaller model, or device: cpu");
    else
        ty_error_help(err,
                      "the largest batch that fits is %lld rows: batch_size: %lld (or auto), with accumulate for "
                      "the same steps",
                      (long long)b.batch, (long long)b.batch);
}

int ty_device_refuse(ty_session *s, ty_error *err)
{
    ty_error refusal = {0};
    ty_program *p;
    ty_budget b;
    ty_tape_facts tape;
    uint64_t limit;
    char need[32], there[32];
    if (ty_device_memory(s, &limit, &refusal) < 0 || ty_budget_plan(s, s->recipe.batch_size, &p, &b, &refusal) < 0)
        return -1; /* with the error that was there */
    if (b.total_bytes > limit && ty_program_describe(p, TY_RUN_LAST, &s->arena, &tape, &refusal) == 0) {
        ty_error_set(&refusal, TY_E_LIMIT,
                     "batch_size %lld needs %s of %s memory, %s are free (the largest buffers at the peak follow)",
                     (long long)s->recipe.batch_size, ty_bytes_text(b.total_bytes, need, sizeof need),
                     s->n_gpus > 1 ? "each GPU's" : "the GPU's", ty_bytes_text(limit, there, sizeof there));
        device_tell_buffers(s, p, &tape, &refusal);
        device_tell_batch(s, limit, &refusal);
        *err = refusal;
    }
    ty_program_free(p);
    return -1;
}
