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
    if (s->job->replay_step > 0)
        return "values of a step are looked at on the CPU";
    if (s->recipe.debug != TY_DEBUG_NONE)
        return "debug looks at values, which the CPU does";
    return NULL;
}

int ty_device_choose(ty_session *s, ty_error *err)
{
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
    s->on_gpu = ty_machine_find_gpu(s->recipe.gpu, &s->arena, &s->gpu, err) == 0;
    if (s->on_gpu)
        return 0;
    if (s->recipe.device == TY_DEVICE_GPU) {
        ty_error_wrap(err, "device: gpu");
        return ty_error_help(err, "`trainyard doctor` lists what is missing; device: cpu trains without a GPU");
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

void ty_device_options(const ty_session *s, ty_compile_options *options)
{
    if (s->on_gpu)
        options->backend = TY_BACKEND_CUDA;
    options->gpu = s->gpu.number;
    options->gpu_capability = s->gpu.capability;
}

const char *ty_device_text(ty_session *s)
{
    if (s->on_gpu)
        return ty_arena_printf(&s->arena, "GPU %d, %s (compute capability %d.%d)", s->gpu.number, s->gpu.name,
                               s->gpu.capability / 10, s->gpu.capability % 10);
    return s->why_cpu ? ty_arena_printf(&s->arena, "CPU: %s", s->why_cpu) : "CPU";
}

int ty_device_memory(const ty_session *s, uint64_t *free_bytes, ty_error *err)
{
    size_t free = 0, total = 0;
    int rc = ty_machine_gpu_memory(s->gpu.number, &free, &total, err);
    *free_bytes = free;
    return rc;
}

/* ---- refusing ---- */

bool ty_device_fit(ty_session *s, ty_error *err)
{
    ty_error ignored = {0};
    if (ty_device_memory(s, &s->batch_limit_bytes, &ignored) < 0 || ty_budget_fit(s, &ignored) < 0 ||
        s->temporary_bytes == 0)
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
        ty_error_set(
            &refusal, TY_E_LIMIT,
            "batch_size %lld needs %s of the GPU's memory, %s are free (the largest buffers at the peak follow)",
            (long long)s->recipe.batch_size, ty_bytes_text(b.total_bytes, need, sizeof need),
            ty_bytes_text(limit, there, sizeof there));
        device_tell_buffers(s, p, &tape, &refusal);
        device_tell_batch(s, limit, &refusal);
        *err = refusal;
    }
    ty_program_free(p);
    return -1;
}
