/* facts.c - what a program's kernels come from, in people's words: for explanations of the cache. See program.h. */
#include "compiler/program.h"

#include <stdlib.h>
#include <string.h>

enum { FACTS_TEXT_BYTES = 1 << 16 };

static const char *facts_inputs(ty_program *p, ty_buf *text)
{
    char type[160];
    ty_buf_clear(text);
    for (int i = 0; i < p->n_inputs; i++)
        ty_buf_addf(text, "%s%s %s", i ? ", " : "", p->input[i].name,
                    ty_type_text(&p->input[i].type, type, sizeof type));
    return ty_arena_strdup(&p->arena, text->data ? text->data : "");
}

/* Arenas tell the optimizer, what it does not decay, averages and running statistics. */
static const char *facts_states(ty_program *p, ty_buf *text)
{
    char type[160];
    ty_buf_clear(text);
    for (int i = 0; i < ty_graph_n_states(p->graph); i++) {
        const ty_state *s = ty_graph_state(p->graph, i);
        ty_buf_addf(text, "%s%s %s", i ? ", " : "", s->name, ty_type_text(&s->type, type, sizeof type));
    }
    return ty_arena_strdup(&p->arena, text->data ? text->data : "");
}

static const char *facts_tapes(ty_program *p)
{
    return ty_arena_printf(&p->arena, "%s%s%s%s", p->has[TY_RUN_LAST] ? "train " : "",
                           p->has[TY_RUN_MICRO] ? "accumulate " : "", p->has[TY_RUN_EVAL] ? "evaluate" : "",
                           p->has[TY_RUN_ROWS] ? " rows" : "");
}

int ty_program_facts(ty_program *p, const ty_compile_options *opt, int threads, ty_cache_field *out)
{
    int n = 0;
    ty_buf text;
    ty_buf_init(&text, FACTS_TEXT_BYTES);
    out[n++] = (ty_cache_field){"model", opt->model_name ? opt->model_name : "a graph", false};
    out[n++] = (ty_cache_field){"inputs", facts_inputs(p, &text), false};
    out[n++] = (ty_cache_field){"states", facts_states(p, &text), false};
    out[n++] = (ty_cache_field){"tapes", facts_tapes(p), false};
    out[n++] = (ty_cache_field){"threads", ty_arena_printf(&p->arena, "%d", threads), false};
    out[n++] = (ty_cache_field){"deterministic", opt->deterministic_strict ? "strict" : "default", false};
    ty_buf_fini(&text);
    return n;
}

/* What is fused depends on the number of threads: kernels that were compiled before keep theirs, wherever they run. */
int ty_program_threads_of(const char *compiled_dir, int threads)
{
    ty_arena a;
    ty_cache_entry entry;
    ty_arena_init(&a);
    if (compiled_dir && ty_cache_read(compiled_dir, &a, &entry, NULL) == 0) {
        const char *then = ty_cache_key_value(&entry.key, "threads");
        threads = then && atoi(then) > 0 ? atoi(then) : threads;
    }
    ty_arena_fini(&a);
    return threads;
}
