/* plan_svg.c - see plan_svg.h. */
#include "entrypoint/plan_svg.h"

#include "entrypoint/html.h"

#include "base/quantity.h"

#include <stdlib.h>

enum { LEFT = 96, TOP = 72, WIDTH = 1200, HEIGHT = 560, RIGHT = 24, BOTTOM = 96 };

/* Of Okabe and Ito's palette, which colour-blind readers can tell apart. */
static const char *const use_colours[TY_N_BUFFER_USES] = {[TY_USE_ACTIVATION] = "#0072b2",
                                                          [TY_USE_TEMPORARY] = "#999999",
                                                          [TY_USE_GRADIENT] = "#e69f00",
                                                          [TY_USE_WEIGHT_GRADIENT] = "#d55e00"};
static const char *const phase_names[TY_N_PHASES] = {"forward", "backward", "update"};
static const char *const phase_colours[TY_N_PHASES] = {"#f4f8fb", "#fdf8ee", "#f3f7f3"};

static double x_of(const ty_tape_facts *t, double at)
{
    return LEFT + WIDTH * at / (double)(t->n_units > 0 ? t->n_units : 1);
}

static double y_of(const ty_tape_facts *t, double bytes)
{
    return TOP + HEIGHT * (1 - bytes / (double)(t->slab_bytes > 0 ? t->slab_bytes : 1));
}

static void add_head(const char *title, ty_buf *out)
{
    ty_buf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, "
                "sans-serif\" font-size=\"13\" fill=\"#222\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                "<style>.b rect{stroke:#fff;stroke-width:.4;fill-opacity:.86}.b rect:hover{fill-opacity:1;stroke:#000;"
                "stroke-width:1.2}</style>\n<text x=\"%d\" y=\"32\" font-size=\"18\" font-weight=\"bold\">",
                LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM, LEFT);
    ty_html_text(title, out);
    ty_buf_adds(out, "</text>\n");
}

/* Stretches of the tape in one phase, as backgrounds with their names. */
static void add_phases(const ty_tape_facts *t, ty_buf *out)
{
    for (int i = 0, from = 0; i <= t->n_units; i++) {
        if (i < t->n_units && (i == from || t->unit[i].phase == t->unit[from].phase))
            continue;
        if (i == from)
            break;
        double x = x_of(t, from), w = x_of(t, i) - x;
        ty_phase phase = t->unit[from].phase;
        ty_buf_addf(out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n", x, TOP, w, HEIGHT,
                    phase_colours[phase]);
        if (w > 70)
            ty_buf_addf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#777\">%s</text>\n", x + w / 2,
                        TOP - 8, phase_names[phase]);
        from = i;
    }
}

static void add_axes(const ty_tape_facts *t, ty_buf *out)
{
    char text[32];
    for (int i = 0; i <= 4; i++) {
        double bytes = (double)t->slab_bytes * i / 4, y = y_of(t, bytes);
        ty_buf_addf(out,
                    "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
                    "text-anchor=\"end\">%s</text>\n",
                    LEFT, y, LEFT + WIDTH, y, LEFT - 8, y + 4, ty_bytes_text((uint64_t)bytes, text, sizeof text));
    }
    ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">position on the tape (%d calls)</text>\n",
                LEFT + WIDTH / 2, TOP + HEIGHT + 24, t->n_units);
}

static void add_buffers(const ty_tape_facts *t, ty_buf *out)
{
    char size[32], type[160];
    ty_buf_adds(out, "<g class=\"b\">\n");
    for (int i = 0; i < t->n_buffers; i++) {
        const ty_buffer_facts *b = &t->buffer[i];
        double last = b->last < t->n_units ? b->last + 1 : t->n_units;
        double x = x_of(t, b->first), top = y_of(t, (double)(b->offset + b->bytes));
        ty_buf_addf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", x, top,
                    x_of(t, last) - x, y_of(t, (double)b->offset) - top, use_colours[b->use]);
        ty_html_text(b->origin[0] ? b->origin : "(no layer)", out);
        ty_buf_addf(out, "\n%s, %s, %s\ncalls %d to %d</title></rect>\n", ty_type_text(&b->type, type, sizeof type),
                    ty_bytes_text((uint64_t)b->bytes, size, sizeof size), ty_buffer_use_text(b->use), b->first,
                    b->last);
    }
    ty_buf_adds(out, "</g>\n");
}

static void add_live(const ty_tape_facts *t, ty_buf *out)
{
    int64_t *change = calloc((size_t)t->n_units + 3, sizeof *change), live = 0;
    for (int i = 0; change && i < t->n_buffers; i++) {
        change[t->buffer[i].first] += t->buffer[i].bytes;
        change[t->buffer[i].last + 1] -= t->buffer[i].bytes;
    }
    ty_buf_adds(out, "<polyline fill=\"none\" stroke=\"#000\" stroke-width=\"1.4\" pointer-events=\"none\" points=\"");
    for (int at = 0; change && at < t->n_units; at++) {
        live += change[at];
        double y = y_of(t, (double)live);
        ty_buf_addf(out, "%.2f,%.2f %.2f,%.2f ", x_of(t, at), y, x_of(t, at + 1), y);
    }
    double y = y_of(t, (double)t->bound_bytes);
    ty_buf_addf(out,
                "\"/>\n<line x1=\"%d\" y1=\"%.2f\" x2=\"%d\" y2=\"%.2f\" stroke=\"#000\" stroke-dasharray=\"6 4\" "
                "pointer-events=\"none\"/>\n",
                LEFT, y, LEFT + WIDTH, y);
    free(change);
}

static void add_legend(ty_buf *out)
{
    int x = LEFT, y = TOP + HEIGHT + 52;
    for (int i = 0; i < TY_N_BUFFER_USES; i++, x += 200)
        ty_buf_addf(
            out, "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
            x, y, use_colours[i], x + 20, y + 12, ty_buffer_use_text((ty_buffer_use)i));
    ty_buf_addf(out,
                "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#000\" stroke-width=\"1.4\"/>"
                "<text x=\"%d\" y=\"%d\">alive (dashed: lower bound of any plan)</text>\n",
                x, y + 7, x + 24, y + 7, x + 30, y + 12);
}

int ty_plan_svg(const ty_tape_facts *t, const char *title, ty_buf *out)
{
    add_head(title, out);
    add_phases(t, out);
    add_axes(t, out);
    add_buffers(t, out);
    add_live(t, out);
    add_legend(out);
    ty_buf_adds(out, "</svg>\n");
    return out->failed ? -1 : 0;
}
