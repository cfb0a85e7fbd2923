/* load.c - see load.h. */
#include "compiler/load.h"

#include "base/crew.h"
#include "base/pages.h"
#include "compiler/target/cpu/library.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* One job's bytes: about a millisecond. */
#define LOAD_PART_BYTES ((size_t)2 << 20)

struct ty_load {
    ty_crew *crew;
    const ty_model *model;
    int weights, zeros; /* number of the first job of each kind; the weights end where the zeros begin */
    atomic_int left;    /* weights' jobs that are not done */
};

/* ---- jobs ---- */

/* The last one gives the file's pages back, before memory for anything else becomes present. */
static void load_weight(const ty_job *job)
{
    ty_load *load = job->shared;
    ty_pages_expect_copy(job->to, job->from, job->n_bytes);
    memcpy(job->to, job->from, job->n_bytes);
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

static void load_add_bytes(load_list *list, char *to, const char *from, size_t n_bytes)
{
    for (size_t at = 0, part; at < n_bytes; at += part) {
        part = n_bytes - at < LOAD_PART_BYTES ? n_bytes - at : LOAD_PART_BYTES;
        load_add(list, from ? (ty_job){load_weight, to + at, from + at, part, NULL}
                            : (ty_job){load_zeros, to + at, NULL, part, NULL});
    }
}

/* The segments of a state that begin with bytes of the model, or those that begin with zeros. */
static void load_add_state(load_list *list, const ty_state *state, char *memory, bool zeros)
{
    size_t element = ty_dtype_bytes((ty_dtype)state->type.dtype);
    if (!state->init && zeros)
        load_add_bytes(list, memory, NULL, ty_type_bytes(&state->type));
    for (int s = 0; state->init && s < state->n_segments; s++)
        if (!state->init[s] == zeros)
            load_add_bytes(list, memory + (size_t)state->segments[s].offset * element, state->init[s],
                           ty_type_bytes(&state->segments[s].type));
}

static void load_add_all(const ty_program *p, load_list *list)
{
    if (p->backend == TY_BACKEND_CPU && ty_library_is_slow_to_start(p->graph))
        load_add(list, (ty_job){.run = load_library});
    for (int zeros = 0; zeros < 2; zeros++) {
        *(zeros ? &list->load->zeros : &list->load->weights) = list->n;
        for (int i = 0; i < ty_graph_n_states(p->graph); i++)
            load_add_state(list, ty_graph_state(p->graph, i), p->state[i], zeros);
    }
}

/* ---- beside the passes ---- */

int ty_load_start(ty_program *p, const ty_model *model, ty_error *err)
{
    ty_load *load = TY_NEW(&p->arena, ty_load);
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
    ty_crew_help(p->load->crew, p->load->weights, p->load->zeros);
}

void ty_load_end(ty_program *p)
{
    if (p->load)
        ty_crew_end(p->load->crew);
    p->load = NULL;
}
