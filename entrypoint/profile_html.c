/* profile_html.c - a profile as a page. See profile.h. */
#include "base/quantity.h"
#include "entrypoint/graph_html.h"
#include "entrypoint/html.h"
#include "entrypoint/profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the roofline: arithmetic a byte to the right, arithmetic a second upwards, both by powers of ten ---- */

enum { LEFT = 74, WIDTH = 1100, HEIGHT = 330, TOP = 8 };

typedef struct axes {
    double x_lo, x_hi, y_lo, y_hi; /* log10 */
} axes;

static double x_of(const axes *a, double v)
{
    return LEFT + WIDTH * (log10(v) - a->x_lo) / (a->x_hi - a->x_lo);
}

static double y_of(const axes *a, double v)
{
    return TOP + HEIGHT * (1 - (log10(v) - a->y_lo) / (a->y_hi - a->y_lo));
}

static bool is_drawn(const ty_profile_call *c)
{
    return c->ms > 0 && c->facts.flop > 0 && c->bytes > 0;
}

static axes find_axes(const ty_profile *p)
{
    double ridge = log10(p->machine.flop_per_s / p->machine.bytes_per_s), top = log10(p->machine.flop_per_s);
    axes a = {-1, ridge + 1, top - 4, top + 0.4};
    for (int i = 0; i < p->n_calls; i++) {
        const ty_profile_call *c = &p->call[i];
        if (!is_drawn(c))
            continue;
        double x = log10(c->facts.flop / c->bytes), y = log10(c->facts.flop / c->ms) + 3;
        a.x_lo = fmin(a.x_lo, floor(x));
        a.x_hi = fmax(a.x_hi, x + 0.2);
        a.y_hi = fmax(a.y_hi, y + 0.2);
    }
    return a;
}

static void add_grid(const ty_profile *p, const axes *a, ty_buf *out)
{
    char text[32];
    for (int e = (int)ceil(a->x_lo); e <= (int)a->x_hi; e++)
        ty_buf_addf(out,
                    "<path class=\"g\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                    x_of(a, pow(10, e)), TOP, TOP + HEIGHT, x_of(a, pow(10, e)), TOP + HEIGHT + 16, pow(10, e));
    for (int e = (int)ceil(a->y_lo); e <= (int)a->y_hi; e++)
        ty_buf_addf(out,
                    "<path class=\"g\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                    LEFT, y_of(a, pow(10, e)), LEFT + WIDTH, LEFT - 8, y_of(a, pow(10, e)) + 4,
                    ty_si_text(pow(10, e), "FLOP/s", text, sizeof text));
    ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">FLOP a byte</text>\n", LEFT + WIDTH,
                TOP + HEIGHT + 32);
    double ridge = p->machine.flop_per_s / p->machine.bytes_per_s, x = pow(10, a->x_lo);
    double lowest = fmax(x, pow(10, a->y_lo) / p->machine.bytes_per_s);
    ty_buf_addf(out, "<path class=\"l\" d=\"M%.1f %.1fL%.1f %.1fL%d %.1f\"/>\n", x_of(a, lowest),
                y_of(a, lowest * p->machine.bytes_per_s), x_of(a, ridge), y_of(a, p->machine.flop_per_s), LEFT + WIDTH,
                y_of(a, p->machine.flop_per_s));
}

static void add_dot(const ty_profile *p, const axes *a, const ty_profile_call *c, ty_buf *out)
{
    char rate[32], bytes[32];
    double flop_per_s = 1e3 * c->facts.flop / c->ms, y = fmin(y_of(a, flop_per_s), TOP + HEIGHT);
    double part = p->calls_ms > 0 ? c->times * c->ms / p->calls_ms : 0;
    ty_buf_addf(out, "<circle class=\"w%d\" fill-opacity=\".72\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
                (int)c->facts.work, x_of(a, c->facts.flop / c->bytes), y, 2.5 + 30 * sqrt(part));
    ty_html_text(c->layer, out);
    ty_buf_addf(out, ", %s\n", ty_profile_phase_text(c->facts.phase));
    ty_html_text(c->facts.text, out);
    ty_buf_addf(out, "\n%.3f ms, %s, %s, %.0f %% of what is possible</title></circle>\n", c->ms,
                ty_si_text(flop_per_s, "FLOP/s", rate, sizeof rate),
                ty_si_text(1e3 * c->bytes / c->ms, "B/s", bytes, sizeof bytes), 100 * c->floor_ms / c->ms);
}

static void add_roofline(const ty_profile *p, ty_buf *out)
{
    axes a = find_axes(p);
    ty_buf_adds(out,
                "<h2>Against the machine</h2>\n<p>A dot is a call, its area its share of the step. The line is what "
                "the machine can do, measured before and after: memory to the left, arithmetic to the right. Calls "
                "without arithmetic are not shown; one that finds its operands in a cache may lie above.</p>\n");
    ty_buf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"roofline\">\n", LEFT + WIDTH + 20,
                TOP + HEIGHT + 40);
    add_grid(p, &a, out);
    for (int i = 0; i < p->n_calls; i++)
        if (is_drawn(&p->call[i]))
            add_dot(p, &a, &p->call[i], out);
    ty_buf_adds(out, "</svg>\n");
}

/* ---- tables ---- */

static void add_kinds(const ty_profile *p, ty_buf *out)
{
    char a[32], b[32];
    ty_buf_adds(out, "<h2>Kinds of work</h2>\n<table>\n<tr><th>kind</th><th>time</th><th>share</th><th>calls</th>"
                     "<th>FLOP/s</th><th>B/s</th><th>reached</th></tr>\n");
    for (int w = 0; w < TY_N_WORKS; w++) {
        const ty_profile_row *r = &p->work[w];
        double seconds = r->ms > 0 ? 1e-3 * r->ms : 1e-9;
        if (r->calls > 0)
            ty_buf_addf(out,
                        "<tr><td><i class=\"w%d\"></i>%s</td><td>%.3f ms</td><td>%.1f %%</td><td>%d</td><td>%s</td>"
                        "<td>%s</td><td>%.0f %%</td></tr>\n",
                        w, r->name, r->ms, p->calls_ms > 0 ? 100 * r->ms / p->calls_ms : 0, r->calls,
                        ty_si_text(r->flop / seconds, "", a, sizeof a), ty_si_text(r->bytes / seconds, "", b, sizeof b),
                        r->ms > 0 ? 100 * r->floor_ms / r->ms : 0);
    }
    ty_buf_adds(out, "</table>\n");
}

static void add_figures(const ty_session *s, const ty_profile *p, ty_buf *out)
{
    char text[64];
    double floor_ms = 0;
    for (int w = 0; w < TY_N_WORKS; w++)
        floor_ms += p->work[w].floor_ms;
    ty_buf_adds(out, "<div class=\"f\">\n");
    snprintf(text, sizeof text, "%.3f ms", p->step_ms);
    ty_html_figure(text, "a step, median", out);
    snprintf(text, sizeof text, "%.0f %%", p->calls_ms > 0 ? 100 * floor_ms / p->calls_ms : 0);
    ty_html_figure(text, "of what is possible", out);
    double rows = (double)(s->recipe.batch_size * s->recipe.accumulate);
    ty_html_figure(ty_count_text((int64_t)(1e3 * rows / (p->step_ms > 0 ? p->step_ms : 1)), text, sizeof text),
                   "rows a second", out);
    snprintf(text, sizeof text, "%.3f ms", p->wait_ms);
    ty_html_figure(text, "waiting for data", out);
    ty_html_figure(ty_si_text(p->machine.flop_per_s, "FLOP/s", text, sizeof text), "a large product", out);
    ty_html_figure(ty_si_text(p->machine.bytes_per_s, "B/s", text, sizeof text), "a copy", out);
    ty_buf_adds(out, "</div>\n");
}

/* ---- the page ---- */

/* Times of the calls of LAST by their unit: the copies of an assembly are one. */
static void find_units(const ty_session *s, const ty_profile *p, double *ms, const char **how)
{
    int n = ty_program_n_calls(s->program, TY_RUN_LAST);
    for (int i = 0; i < n; i++) {
        const ty_profile_call *c = &p->call[p->first_call[TY_RUN_LAST] + i];
        ms[c->info.unit] += c->ms;
        how[c->info.unit] = c->info.kind == TY_CALL_KERNEL ? c->info.name : c->info.how;
    }
}

int ty_profile_html(ty_session *s, const ty_profile *p, ty_buf *out, ty_error *err)
{
    ty_graph_facts graph;
    ty_tape_facts tape;
    if (ty_program_describe_graph(s->program, TY_RUN_LAST, &s->arena, &graph, err) < 0 ||
        ty_program_describe(s->program, TY_RUN_LAST, &s->arena, &tape, err) < 0)
        return -1;
    ty_drawing d = {.arena = &s->arena, .graph = &graph, .tape = &tape};
    double *ms = TY_NEW_ARRAY(&s->arena, double, tape.n_units + 1);
    const char **how = TY_NEW_ARRAY(&s->arena, const char *, tape.n_units + 1);
    find_units(s, p, ms, how);
    ty_drawing_of_units(&d, &p->machine, ms, how);
    const char *base = strrchr(s->recipe.model, '/');
    ty_html_begin(s->recipe.path, out);
    ty_buf_adds(out, "<h1>");
    ty_html_text(base ? base + 1 : s->recipe.model, out);
    ty_buf_adds(out, "</h1>\n<p>Where the time of a training step of ");
    ty_html_text(s->recipe.path, out);
    ty_buf_addf(out, " goes: medians of %d steps of %lld rows, %d threads.", p->n_steps,
                (long long)(s->recipe.batch_size * s->recipe.accumulate), p->machine.threads);
    if (p->load >= 1)
        ty_buf_addf(out, " The load average was %.1f before the first one: others may have slowed it down.", p->load);
    ty_buf_adds(out, "</p>\n");
    add_figures(s, p, out);
    add_kinds(p, out);
    add_roofline(p, out);
    ty_buf_addf(out, "<h2>The tape%s</h2>\n", s->recipe.accumulate > 1 ? " of the last micro-batch" : "");
    ty_graph_html_legend(&d, out);
    ty_graph_html_tape(&d, out);
    ty_buf_adds(out, "<h2>Layers</h2>\n");
    ty_graph_html_layers(&d, out);
    ty_html_end(out);
    return 0;
}
