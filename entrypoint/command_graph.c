/* command_graph.c - `trainyard graph RECIPE --html FILE`: the step that would be trained, as a picture. */
#include "base/file.h"
#include "base/quantity.h"
#include "compiler/machine.h"
#include "entrypoint//budget.h"
#include "entrypoint/command.h"
#include "entrypoint/graph_html.h"
#include "entrypoint/html.h"
#include "entrypoint/overrides.h"
#include "entrypoint/session.h"

#include <stdio.h>
#include <string.h>

enum { HTML, AFTER, EVAL, DATA_DIR, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [HTML] = {"--html", "FILE", "the page to write (default graph.html)", false},
    [AFTER] = {"--after", "PASS", "as it is after that pass of the compiler, before kernels: step, attend, lower ...",
               false},
    [EVAL] = {"--eval", NULL, "the evaluation instead of a training step", false},
    [DATA_DIR] = {"--data-dir", "DIR", "folder that has the channels as folders or files", false},
};

typedef struct graphed {
    ty_arena *arena;
    ty_session session;
    ty_program *program;
    ty_run run;
    ty_graph_facts graph;
    ty_tape_facts tape;
    ty_drawing drawing;
    const char *after;
} graphed;

static int compile(graphed *g, ty_error *err)
{
    ty_session *s = &g->session;
    ty_train_spec spec;
    if (ty_budget_fit(s, err) < 0)
        return -1;
    ty_compile_options opt = {.backend = TY_BACKEND_CPU,
                              .threads = (int)s->recipe.threads,
                              .deterministic_strict = s->recipe.deterministic_strict,
                              .stop_after = g->after,
                              .temporary_bytes = s->temporary_bytes,
                              .plan_only = true};
    if (ty_spec_build(&s->recipe, &s->plan, s->train, 1, ty_session_epoch_steps(s), ty_session_all_steps(s),
                      s->validation != NULL, g->arena, &spec, err) < 0)
        return -1;
    if (g->run == TY_RUN_EVAL)
        spec.no_eval = spec.no_outputs = false;
    return ty_compile_train(s->model, &spec, &opt, &g->program, err);
}

static int find_all(graphed *g, ty_error *err)
{
    ty_machine_ceilings machine;
    if (compile(g, err) < 0 || ty_program_describe_graph(g->program, g->run, g->arena, &g->graph, err) < 0)
        return -1;
    g->drawing = (ty_drawing){.arena = g->arena, .graph = &g->graph};
    if (g->after) {
        ty_drawing_of_nodes(&g->drawing);
        return 0;
    }
    if (ty_program_describe(g->program, g->run, g->arena, &g->tape, err) < 0 ||
        ty_machine_measure((int)g->session.recipe.threads, &machine, err) < 0)
        return -1;
    g->drawing.tape = &g->tape;
    ty_drawing_of_units(&g->drawing, &machine, NULL, NULL);
    return 0;
}

/* ---- the page ---- */

static void add_figures(const graphed *g, ty_buf *out)
{
    const ty_compile_report *r = ty_program_report(g->program);
    char text[32];
    ty_buf_adds(out, "<div class=\"f\">\n");
    ty_html_figure(ty_count_text(r->n_trained, text, sizeof text), "numbers trained", out);
    ty_html_figure(ty_count_text(g->session.recipe.batch_size, text, sizeof text), "rows a batch", out);
    ty_html_figure(ty_count_text(g->graph.n_nodes, text, sizeof text), "operations", out);
    if (!g->after) {
        double ms = 0;
        for (int i = 0; i < g->drawing.n_items; i++)
            ms += g->drawing.item[i].ms;
        ty_html_figure(ty_count_text(g->tape.n_units, text, sizeof text), "calls", out);
        ty_html_figure(ty_count_text(r->n_distinct_kernels, text, sizeof text), "different kernels", out);
        ty_html_figure(ty_bytes_text((uint64_t)g->tape.slab_bytes, text, sizeof text), "temporaries", out);
        ty_html_figure(ty_duration_text((int64_t)(1e3 * ms), text, sizeof text), "at least", out);
    }
    ty_buf_adds(out, "</div>\n");
}

static void add_page(const graphed *g, ty_buf *out)
{
    const ty_session *s = &g->session;
    const char *base = strrchr(s->recipe.model, '/');
    ty_html_begin(s->recipe.path, out);
    ty_buf_adds(out, "<h1>");
    ty_html_text(base ? base + 1 : s->recipe.model, out);
    ty_buf_addf(out, "</h1>\n<p>%s of ", g->run == TY_RUN_EVAL ? "The evaluation" : "A training step");
    ty_html_text(s->recipe.path, out);
    if (g->after)
        ty_buf_addf(out, ", as it is after the pass \u201c%s\u201d. A bar is the memory of results", g->after);
    else
        ty_buf_adds(out, ". A bar is the least time that its calls can take on this machine");
    ty_buf_adds(out, "; a layer unfolds into its calls, a call into its operations.</p>\n");
    add_figures(g, out);
    ty_graph_html_legend(&g->drawing, out);
    if (!g->after) {
        ty_buf_adds(out, "<h2>The tape</h2>\n");
        ty_graph_html_tape(&g->drawing, out);
    }
    ty_buf_adds(out, "<h2>Layers</h2>\n");
    ty_graph_html_layers(&g->drawing, out);
    ty_html_end(out);
}

static int write_page(const graphed *g, const char *path, ty_error *err)
{
    ty_buf out;
    ty_buf_init(&out, (size_t)256 << 20);
    add_page(g, &out);
    int rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the picture is too large")
                        : ty_file_write(path, out.data, out.len, 0644, err);
    ty_buf_fini(&out);
    if (rc == 0)
        printf("%s: %d operations%s\n", path, g->graph.n_nodes, g->after ? "" : " in the calls they became");
    return rc;
}

/* ---- the command ---- */

static int graph(const ty_arguments_given *given, graphed *g, ty_error *err)
{
    const char *phase, *path = given->value[HTML] ? given->value[HTML] : "graph.html";
    ty_job job = {.recipe_path = given->words[0], .data_folder = given->value[DATA_DIR], .plan_only = true};
    g->after = given->value[AFTER];
    g->run = given->value[EVAL] ? TY_RUN_EVAL : TY_RUN_LAST;
    if (ty_overrides_take(given, g->arena, &job, err) < 0 || ty_file_try(path, err) < 0)
        return -1;
    int rc = ty_session_open(&g->session, &job, &phase, err);
    if (rc == 0)
        rc = find_all(g, err);
    if (rc == 0)
        rc = write_page(g, path, err);
    ty_program_free(g->program);
    ty_session_close(&g->session);
    return rc;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    graphed g = {.arena = a};
    return graph(given, &g, err);
}

static const char page[] =
    "Writes one HTML page that needs nothing else: no network, no script. The tape of a step with the memory it "
    "holds,\n"
    "and layers as rows with three lanes: forward, gradient, update. Layers that repeat are one row. A layer unfolds "
    "into\n"
    "calls (kernels and library calls) with shapes and bytes, a call into the operations that were fused into it. "
    "Nothing\n"
    "is compiled or trained; widths are the least time that each call can take on this machine. For times that were\n"
    "measured: trainyard profile RECIPE --html FILE.\n"
    "\n"
    "--after shows the graph before kernels were made of it, as --dump-dir writes it: after step (imported, with "
    "gradient\n"
    "and update), attend, lower and so on (a wrong name lists them). Widths are the memory of results.\n"
    "\n"
    "    trainyard graph train.yaml --data-dir=data --html graph.html\n"
    "    trainyard graph train.yaml --data-dir=data --html step.html --after step\n";

const ty_command_row ty_command_graph = {"graph",
                                         "RECIPE [--key=value ...]",
                                         "the step as a picture: layers, calls and what was fused into them",
                                         page,
                                         options,
                                         N_OPTIONS,
                                         1,
                                         1,
                                         true,
                                         false,
                                         run};
