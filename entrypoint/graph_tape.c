/* graph_tape.c - the tape from left to right: calls in three lanes, and below them the memory that is alive. */
#include "base/quantity.h"
#include "entrypoint/graph_html.h"
#include "entrypoint/html.h"

enum { LEFT = 74, WIDTH = 1126, LANE = 30, GAP = 5, MEMORY_TOP = 3 * (LANE + GAP) + 14, MEMORY = 90 };

static void add_call(const ty_drawn *i, double x, double width, ty_buf *out)
{
    static const int lane[TY_N_PHASES] = {0, 1, 2};
    char bytes[32];
    ty_buf_addf(out, "<rect class=\"w%d\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>", (int)i->work, x,
                lane[i->phase] * (LANE + GAP), width > 0.4 ? width : 0.4, LANE);
    ty_html_text(i->layer, out);
    ty_buf_addc(out, '\n');
    ty_html_text(i->text, out);
    ty_buf_addf(out, "\ncall %d, %s, %.3f ms, %s</title></rect>\n", i->at, ty_work_text(i->work), i->ms,
                ty_bytes_text((uint64_t)i->bytes, bytes, sizeof bytes));
}

/* x of the beginning of every call, and of the end. */
static double *find_places(const ty_drawing *d)
{
    double *x = TY_NEW_ARRAY(d->arena, double, d->n_items + 1), sum = 0;
    for (int i = 0; i < d->n_items; i++) {
        x[i] = sum;
        sum += d->item[i].ms;
    }
    x[d->n_items] = sum;
    for (int i = 0; i <= d->n_items; i++)
        x[i] = LEFT + (sum > 0 ? WIDTH * x[i] / sum : 0);
    return x;
}

static void add_memory(const ty_drawing *d, const double *x, ty_buf *out)
{
    const ty_tape_facts *t = d->tape;
    char text[32];
    int64_t *change = TY_NEW_ARRAY(d->arena, int64_t, t->n_units + 3), live = 0;
    for (int i = 0; i < t->n_buffers; i++) {
        change[t->buffer[i].first] += t->buffer[i].bytes;
        change[t->buffer[i].last + 1] -= t->buffer[i].bytes;
    }
    double most = t->peak_bytes > 0 ? (double)t->peak_bytes : 1;
    ty_buf_addf(out, "<path class=\"a\" d=\"M%.1f %d", x[0], MEMORY_TOP + MEMORY);
    for (int at = 0; at < t->n_units; at++) {
        live += change[at];
        double y = MEMORY_TOP + MEMORY * (1 - (double)live / most);
        ty_buf_addf(out, "L%.2f %.1fL%.2f %.1f", x[at], y, x[at + 1], y);
    }
    ty_buf_addf(out, "L%.1f %dZ\"/>\n", x[t->n_units], MEMORY_TOP + MEMORY);
    ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 10, MEMORY_TOP + 8,
                ty_bytes_text((uint64_t)t->peak_bytes, text, sizeof text));
    ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">memory</text>\n", LEFT - 10, MEMORY_TOP + 24);
}

void ty_graph_html_tape(const ty_drawing *d, ty_buf *out)
{
    static const char *const lanes[TY_N_PHASES] = {"forward", "gradient", "update"};
    double *x = find_places(d), sum = 0;
    char text[32];
    ty_buf_addf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"calls of a step in order\">\n", LEFT + WIDTH,
                MEMORY_TOP + MEMORY + 22);
    for (int i = 0; i < TY_N_PHASES; i++)
        ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 10,
                    i * (LANE + GAP) + LANE / 2 + 4, lanes[i]);
    for (int i = 0; i < d->n_items; i++) {
        add_call(&d->item[i], x[i], x[i + 1] - x[i], out);
        sum += d->item[i].ms;
    }
    add_memory(d, x, out);
    for (int i = 0; i <= 4; i++)
        ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", LEFT + i * WIDTH / 4,
                    MEMORY_TOP + MEMORY + 17,
                    i == 0   ? "start"
                    : i == 4 ? "end"
                             : "middle",
                    ty_duration_text((int64_t)(1e3 * sum * i / 4), text, sizeof text));
    ty_buf_adds(out, "</svg>\n");
}
