/* load.c - see load.h. */
#include "compiler/load.h"

#include "base/crew.h"
#include "base/pages.h"
#include "compiler/target/cpu/library.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

typedef struct load_arena {
    const ty_state *state;
    char *memory;
} load_arena;

struct ty_load {
    ty_crew *crew;
    const ty_model *model;
    bool runs;          /* the program will */
    load_arena *arena;  /* one a state */
    int weights, zeros; /* number of the first job of each kind; the weights end where the zeros begin */
    atomic_int left;    /* weights' jobs that are not done */
};

/* ---- jobs ---- */

/* What segment s of the arena has in [to, to + n_bytes), if it begins with bytes of the model. */
static void load_segment(const load_arena *arena, int s, char *to, size_t n_bytes)
{
    const ty_state *state = arena->state;
    size_t element = ty_dtype_bytes((ty_dtype)state->type.dtype);
    char *first = arena->memory + (size_t)state->segments[s].offset * element;
    char *end = first + ty_type_bytes(&state->segments[s].type);
    char *at = first > to ? first : to, *stop = end < to + n_bytes ? end : to + n_bytes;
    if (!state->init[s] || at >= stop)
        return;
    const char *from = (const char *)state->init[s] + (at - first);
    ty_pages_expect_read(from, (size_t)(stop - at));
    memcpy(at, from, (size_t)(stop - at));
}

/* A part of an arena. The last one gives the file's pages back, before memory for anything else becomes present. */
static void load_weights(const ty_job *job)
{
    ty_load *load = job->shared;
    const load_arena *arena = job->from;
    ty_pages_expect_update(job->to, job->n_bytes);
    for (int s = 0; s < arena->state->n_segments; s++)
        load_segment(arena, s, job->to, job->n_bytes);
    if (atomic_fetch_sub(&load->left, 1) == 1 && load->model)
        ty_model_drop_pages(load->model);
}

static void load_zeros(const ty_job *job)
{
    ty_pages_expect_update(job->to, job->n_bytes);
}

static void load_library(const ty_job *job)
{
    (void)job;
    ty_library_warm_up();
}

/* ---- the list ---- */

typedef struct load_list {
    ty_load *load;
    ty_job *job; /* NULL: only counted */
    int n;
} load_list;

static void load_add(load_list *list, ty_job job)
{
    job.shared = list->load;
    if (list->job)
        list->job[list->n] = job;
    list->n++;
}

/* In parts of about a millisecond; kind: from, run and n_bytes of the whole. */
static void load_add_parts(load_list *list, char *to, ty_job kind)
{
    for (size_t at = 0, part; at < kind.n_bytes; at += part) {
        part = ty_pages_part(to + at, kind.n_bytes - at);
        load_add(list, (ty_job){kind.run, to + at, kind.from, part, NULL});
    }
}

static void load_add_state(load_list *list, const load_arena *arena, bool zeros)
{
    const ty_job kind = {
        .run = zeros ? load_zeros : load_weights, .from = arena, .n_bytes = ty_type_bytes(&arena->state->type)};
    if ((arena->state->init == NULL) == zeros)
        load_add_parts(list, arena->memory, kind);
}

/* What a GPU computes with lies there: the host's zeros are read once, if at all, and need no pages of their own. */
static void load_add_all(const ty_program *p, load_list *list)
{
    bool here = list->load->runs && p->backend != TY_BACKEND_CUDA;
    if (list->load->runs && p->backend == TY_BACKEND_CPU && ty_library_is_slow_to_start(p->graph))
        load_add(list, (ty_job){.run = load_library});
    for (int zeros = 0; zeros < 2; zeros++) {
        *(zeros ? &list->load->zeros : &list->load->weights) = list->n;
        for (int i = 0; i < ty_graph_n_states(p->graph) && (here || !zeros); i++)
            load_add_state(list, &list->load->arena[i], zeros);
    }
}

/* ---- ahead of the graph ---- */

void ty_load_ahead(const ty_compile_options *options)
{
    static const ty_compile_options none = {.backend = TY_BACKEND_CPU};
    const ty_compile_options *o = options ? options : &none;
    if (o->backend == TY_BACKEND_CPU && !o->plan_only && !o->output_dir && !o->deterministic_strict && o->threads != 1)
        ty_library_expect();
}

void ty_load_give_up(void)
{
    ty_library_await();
}

/* ---- beside the passes ---- */

int ty_load_start(ty_program *p, const ty_model *model, bool runs, ty_error *err)
{
    ty_load *load = TY_NEW(&p->arena, ty_load);
    load->runs = runs;
    load->arena = TY_NEW_ARRAY(&p->arena, load_arena, ty_graph_n_states(p->graph));
    for (int i = 0; i < ty_graph_n_states(p->graph); i++)
        load->arena[i] = (load_arena){ty_graph_state(p->graph, i), p->state[i]};
    load_list list = {load, NULL, 0};
    load_add_all(p, &list);
    ty_arena scratch;
    ty_arena_init(&scratch);
    list = (load_list){load, TY_NEW_ARRAY(&scratch, ty_job, list.n), 0};
    load_add_all(p, &list);
    load->model = model;
    atomic_init(&load->left, load->zeros - load->weights);
    load->crew = ty_crew_start(list.job, list.n, p->threads - 1);
    ty_arena_fini(&scratch);
    if (!load->crew)
        return ty_error_set(err, TY_E_LIMIT, "no memory to load weights");
    p->load = load;
    return 0;
}

void ty_load_weights(ty_program *p)
{
    if (!p->load) /* the states are another program's */
        return;
    ty_crew_help(p->load->crew, p->load->weights, p->load->zeros);
}

void ty_load_expect(ty_program *p, void *memory, size_t n_bytes)
{
    if (!p->load || !p->load->runs || !memory)
        return;
    ty_arena scratch;
    load_list list = {p->load, NULL, 0};
    const ty_job kind = {.run = load_zeros, .n_bytes = n_bytes};
    load_add_parts(&list, memory, kind);
    ty_arena_init(&scratch);
    list = (load_list){p->load, TY_NEW_ARRAY(&scratch, ty_job, list.n + 1), 0};
    load_add_parts(&list, memory, kind);
    ty_crew_add(p->load->crew, list.job, list.n); /* else it becomes present page by page */
    ty_arena_fini(&scratch);
}

void ty_load_end(ty_program *p)
{
    if (p->load)
        ty_crew_end(p->load->crew);
    p->load = NULL;
}

void ty_load_drop(ty_program *p)
{
    if (p->load)
        ty_crew_drop(p->load->crew);
    p->load = NULL;
}
