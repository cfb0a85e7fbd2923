/* graph_html.c - see graph_html.h. The tape is in graph_tape.c. */
#include "entrypoint/graph_html.h"

#include "base/hash.h"
#include "base/quantity.h"
#include "entrypoint/html.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- items ---- */

static double estimate_ms(const ty_unit_facts *u, const ty_machine_ceilings *m)
{
    bool library = u->work == TY_WORK_PRODUCT || u->work == TY_WORK_CONVOLUTION || u->work == TY_WORK_RECURRENT;
    double of_memory = ((double)u->read_bytes + (double)u->written_bytes) / m->bytes_per_s;
    double of_arithmetic = library ? u->flop / m->flop_per_s : 0;
    return 1e3 * (of_memory > of_arithmetic ? of_memory : of_arithmetic);
}

static const char *layer_of(ty_arena *a, const char *origin)
{
    const char *layer = ty_layer_of_origin(a, origin);
    return layer[0] ? layer : "(no name)";
}

/* node[]: the operations of each unit, one unit after the other. */
static void find_nodes(const ty_drawing *d, ty_drawn *item)
{
    int *start = TY_NEW_ARRAY(d->arena, int, d->tape->n_units + 2);
    for (int i = 0; i < d->graph->n_nodes; i++)
        if (d->graph->node[i].unit >= 0)
            start[d->graph->node[i].unit + 1]++;
    for (int u = 0; u < d->tape->n_units; u++)
        start[u + 1] += start[u];
    int *list = TY_NEW_ARRAY(d->arena, int, start[d->tape->n_units] + 1);
    for (int u = 0; u < d->tape->n_units; u++)
        item[u].node = list + start[u];
    for (int i = 0; i < d->graph->n_nodes; i++) {
        int u = d->graph->node[i].unit;
        if (u >= 0)
            list[start[u] + item[u].n_nodes++] = i;
    }
}

void ty_drawing_of_units(ty_drawing *d, const ty_machine_ceilings *m, const double *ms, const char *const *how)
{
    ty_drawn *item = TY_NEW_ARRAY(d->arena, ty_drawn, d->tape->n_units + 1);
    for (int i = 0; i < d->tape->n_units; i++) {
        const ty_unit_facts *u = &d->tape->unit[i];
        item[i] = (ty_drawn){.text = u->text,
                             .how = how && how[i] ? how[i] : "",
                             .layer = layer_of(d->arena, u->origin),
                             .phase = u->phase,
                             .work = u->work,
                             .ms = ms ? ms[i] : estimate_ms(u, m),
                             .bytes = (double)u->read_bytes + (double)u->written_bytes,
                             .flop = u->flop,
                             .at = i};
    }
    find_nodes(d, item);
    d->item = item;
    d->n_items = d->tape->n_units;
    d->is_measured = ms != NULL;
}

void ty_drawing_of_nodes(ty_drawing *d)
{
    ty_drawn *item = TY_NEW_ARRAY(d->arena, ty_drawn, d->graph->n_nodes + 1);
    d->n_items = 0;
    for (int i = 0; i < d->graph->n_nodes; i++) {
        const ty_node_facts *n = &d->graph->node[i];
        if (!n->is_leaf)
            item[d->n_items++] = (ty_drawn){.text = n->text,
                                            .how = "",
                                            .layer = layer_of(d->arena, n->origin),
                                            .phase = n->phase,
                                            .work = n->work,
                                            .ms = -1,
                                            .bytes = n->bytes,
                                            .at = -1};
    }
    d->item = item;
}

/* ---- rows ---- */

/* A layer. */
typedef struct row {
    const char *name;
    const ty_drawn **item; /* in the order of the tape */
    int n_items;
} row;

/* Layers that begin alike up to a number: "blocks.0". A layer without a number is a block of its own. */
typedef struct block {
    const char *name;
    int first, n_rows; /* in rows[] */
    uint64_t signature;
} block;

/* What a lane, a row or a block adds up to. */
typedef struct sums {
    double by_work[TY_N_PHASES][TY_N_WORKS], lane[TY_N_PHASES], weight, bytes;
    int calls;
} sums;

typedef struct table {
    const ty_drawing *d;
    row *rows;
    int n_rows;
    block *blocks;
    int n_blocks;
    double total, widest; /* of a lane among the rows on the page */
} table;

static double weight_of(const ty_drawn *i)
{
    return i->ms >= 0 ? i->ms : i->bytes;
}

/* Length of "blocks.0" in "blocks.0.attn.qkv"; 0: there is no number. */
static size_t block_length(const char *name)
{
    for (size_t at = 0; name[at];) {
        size_t n = strcspn(name + at, "./"), digits = strspn(name + at, "0123456789");
        if (digits > 0 && digits == n)
            return at + n;
        at += n + (name[at + n] != 0);
    }
    return 0;
}

static row *find_row(table *t, const char *name)
{
    for (int i = 0; i < t->n_rows; i++)
        if (strcmp(t->rows[i].name, name) == 0)
            return &t->rows[i];
    t->rows[t->n_rows].name = name;
    return &t->rows[t->n_rows++];
}

/* Layers in the order of the model: as forward comes to them, then what only the gradient or the update has. */
static void find_rows(table *t)
{
    const ty_drawing *d = t->d;
    t->rows = TY_NEW_ARRAY(d->arena, row, d->n_items + 1);
    for (ty_phase phase = 0; phase < TY_N_PHASES; phase++)
        for (int i = 0; i < d->n_items; i++)
            if (d->item[i].phase == phase)
                find_row(t, d->item[i].layer)->n_items++;
    for (int i = 0; i < t->n_rows; i++) {
        t->rows[i].item = TY_NEW_ARRAY(d->arena, const ty_drawn *, t->rows[i].n_items);
        t->rows[i].n_items = 0;
    }
    for (int i = 0; i < d->n_items; i++) {
        row *r = find_row(t, d->item[i].layer);
        r->item[r->n_items++] = &d->item[i];
    }
}

static uint64_t add_signature(uint64_t hash, const row *r, size_t skip)
{
    hash = ty_fnv1a(hash, r->name + skip, strlen(r->name + skip) + 1);
    for (int i = 0; i < r->n_items; i++) {
        const char *text = r->item[i]->at >= 0 ? r->item[i]->text : strchr(r->item[i]->text, '=');
        size_t n = r->item[i]->at >= 0 || !text ? strlen(text ? text : "") : strcspn(text, "(");
        hash = ty_fnv1a(hash, text ? text : "", n);
        hash = ty_fnv1a(hash, &r->item[i]->phase, sizeof r->item[i]->phase);
    }
    return hash;
}

static bool same_block(const char *a, const char *b)
{
    size_t n = block_length(a);
    return n > 0 && n == block_length(b) && strncmp(a, b, n) == 0;
}

/* Rows of a block may be apart in the order of the tape; they come together where its first one is. */
static void find_blocks(table *t)
{
    row *sorted = TY_NEW_ARRAY(t->d->arena, row, t->n_rows + 1);
    uint8_t *taken = TY_NEW_ARRAY(t->d->arena, uint8_t, t->n_rows + 1);
    t->blocks = TY_NEW_ARRAY(t->d->arena, block, t->n_rows + 1);
    for (int i = 0, n = 0; i < t->n_rows; i++) {
        if (taken[i])
            continue;
        size_t length = block_length(t->rows[i].name);
        block *b = &t->blocks[t->n_blocks++];
        *b = (block){.name = length ? ty_arena_strndup(t->d->arena, t->rows[i].name, length) : t->rows[i].name,
                     .first = n,
                     .signature = 14695981039346656037ull};
        for (int k = i; k < t->n_rows; k++) {
            if (taken[k] || (k > i && !same_block(t->rows[i].name, t->rows[k].name)))
                continue;
            taken[k] = 1;
            sorted[n++] = t->rows[k];
            b->n_rows++;
            b->signature = add_signature(b->signature, &t->rows[k], length);
        }
    }
    t->rows = sorted;
}

static size_t stem_length(const char *name)
{
    size_t n = strlen(name);
    while (n > 0 && isdigit((unsigned char)name[n - 1]))
        n--;
    return n;
}

/* How many blocks from i on are the same but for their number. */
static int run_length(const table *t, int i)
{
    int n = 1;
    size_t stem = stem_length(t->blocks[i].name);
    while (stem > 0 && t->blocks[i].name[stem] && i + n < t->n_blocks &&
           t->blocks[i + n].signature == t->blocks[i].signature && t->blocks[i + n].n_rows == t->blocks[i].n_rows &&
           stem_length(t->blocks[i + n].name) == stem && strncmp(t->blocks[i].name, t->blocks[i + n].name, stem) == 0)
        n++;
    return n;
}

static void add_row(sums *s, const row *r)
{
    for (int i = 0; i < r->n_items; i++) {
        double w = weight_of(r->item[i]);
        s->by_work[r->item[i]->phase][r->item[i]->work] += w;
        s->lane[r->item[i]->phase] += w;
        s->weight += w;
        s->bytes += r->item[i]->bytes;
        s->calls++;
    }
}

static sums sum_run(const table *t, int from, int n)
{
    sums s = {.weight = 0};
    for (int b = from; b < from + n; b++)
        for (int i = 0; i < t->blocks[b].n_rows; i++)
            add_row(&s, &t->rows[t->blocks[b].first + i]);
    return s;
}

/* ---- drawing ---- */

static void add_weight(const table *t, double w, ty_buf *out)
{
    char text[32];
    if (t->d->tape)
        ty_buf_addf(out,
                    w >= 10000 ? "%.3g s"
                    : w >= 100 ? "%.0f ms"
                    : w >= 10  ? "%.1f ms"
                    : w >= 0.1 ? "%.2f ms"
                               : "%.3f ms",
                    w >= 10000 ? w / 1000 : w);
    else
        ty_buf_adds(out, ty_bytes_text((uint64_t)w, text, sizeof text));
}

/* A lane as one piece a kind of work. */
static void add_lane(const table *t, const double *by_work, double widest, ty_buf *out)
{
    ty_buf_adds(out, "<div class=\"b\">");
    for (int w = 0; w < TY_N_WORKS; w++) {
        if (by_work[w] <= 0)
            continue;
        ty_buf_addf(out, "<i class=\"w%d\" style=\"width:%.2f%%\" title=\"%s ", w, 100 * by_work[w] / widest,
                    ty_work_text((ty_work)w));
        add_weight(t, by_work[w], out);
        ty_buf_adds(out, "\"></i>");
    }
    ty_buf_adds(out, "</div>");
}

static void add_line(const table *t, const char *name, const char *note, const sums *s, double widest, ty_buf *out)
{
    ty_buf_adds(out, "<summary class=\"r\"><span class=\"n\">");
    ty_html_text(name, out);
    if (note[0])
        ty_buf_addf(out, "<em>%s</em>", note);
    ty_buf_adds(out, "</span>");
    for (int phase = 0; phase < TY_N_PHASES; phase++)
        add_lane(t, s->by_work[phase], widest, out);
    ty_buf_adds(out, "<span class=\"t\">");
    add_weight(t, s->weight, out);
    ty_buf_addf(out, "</span><span class=\"s\">%.1f %%</span></summary>\n",
                t->total > 0 ? 100 * s->weight / t->total : 0);
}

static void add_figures(const table *t, const ty_drawn *i, ty_buf *out)
{
    char bytes[32], flop[32], rate[32];
    ty_buf_adds(out, "<span>");
    if (i->ms >= 0)
        add_weight(t, i->ms, out);
    ty_buf_addf(out, "</span><span>%s</span><span>%s</span><span>",
                ty_bytes_text((uint64_t)i->bytes, bytes, sizeof bytes),
                i->flop > 0 ? ty_si_text(i->flop, "FLOP", flop, sizeof flop) : "");
    if (t->d->is_measured && i->ms > 0)
        ty_buf_adds(out, ty_si_text(i->bytes / (1e-3 * i->ms), "B/s", rate, sizeof rate));
    ty_buf_adds(out, "</span>");
}

static void add_item(const table *t, const ty_drawn *i, ty_buf *out)
{
    bool folds = i->n_nodes > 0;
    ty_buf_addf(out, folds ? "<details class=\"u\"><summary>" : "<div class=\"v\">");
    ty_buf_addf(out, "<i class=\"w%d\" title=\"%s\"></i><span>", (int)i->work, ty_work_text(i->work));
    if (i->at >= 0)
        ty_buf_addf(out, "%d", i->at);
    ty_buf_adds(out, "</span><span class=\"x\">");
    ty_html_text(i->text, out);
    if (i->how[0]) {
        ty_buf_adds(out, " · ");
        ty_html_text(i->how, out);
    }
    ty_buf_adds(out, "</span>");
    add_figures(t, i, out);
    ty_buf_adds(out, folds ? "</summary><pre>" : "</div>\n");
    for (int n = 0; n < i->n_nodes; n++) {
        ty_html_text(t->d->graph->node[i->node[n]].text, out);
        ty_buf_addc(out, '\n');
    }
    if (folds)
        ty_buf_adds(out, "</pre></details>\n");
}

static const char *const phase_names[TY_N_PHASES] = {"forward", "gradient", "update"};

static void add_items(const table *t, const row *r, ty_buf *out)
{
    ty_buf_adds(out, "<div class=\"in\">");
    for (int phase = 0; phase < TY_N_PHASES; phase++) {
        bool first = true;
        for (int i = 0; i < r->n_items; i++) {
            if ((int)r->item[i]->phase != phase)
                continue;
            if (first)
                ty_buf_addf(out, "<h3>%s</h3>\n", phase_names[phase]);
            first = false;
            add_item(t, r->item[i], out);
        }
    }
    ty_buf_adds(out, "</div></details>\n");
}

/* Rows of a run of blocks: times of all of them, calls of the first. */
static void add_rows_of_run(const table *t, int from, int n, size_t skip, ty_buf *out)
{
    double widest = 1e-12;
    const block *b = &t->blocks[from];
    sums *s = TY_NEW_ARRAY(t->d->arena, sums, b->n_rows);
    for (int i = 0; i < b->n_rows; i++) {
        for (int k = 0; k < n; k++)
            add_row(&s[i], &t->rows[t->blocks[from + k].first + i]);
        for (int phase = 0; phase < TY_N_PHASES; phase++)
            widest = s[i].lane[phase] > widest ? s[i].lane[phase] : widest;
    }
    for (int i = 0; i < b->n_rows; i++) {
        const row *r = &t->rows[b->first + i];
        const char *name = r->name + skip;
        ty_buf_adds(out, "<details>");
        add_line(t, *name == '.' || *name == '/' ? name + 1 : *name ? name : "(itself)", "", &s[i], widest, out);
        add_items(t, r, out);
    }
}

static void add_run(const table *t, int from, int n, ty_buf *out)
{
    const block *b = &t->blocks[from];
    sums s = sum_run(t, from, n);
    char note[64] = "";
    const char *name = b->name;
    if (n > 1) {
        name =
            ty_arena_printf(t->d->arena, "%s \u2013 %s", b->name, t->blocks[from + n - 1].name + stem_length(b->name));
        snprintf(note, sizeof note, "%d alike", n);
    }
    ty_buf_adds(out, "<details>");
    add_line(t, name, note, &s, t->widest, out);
    if (b->n_rows == 1 && n == 1) {
        add_items(t, &t->rows[b->first], out);
        return;
    }
    ty_buf_adds(out, "<div class=\"in\">\n");
    add_rows_of_run(t, from, n, block_length(t->rows[b->first].name), out);
    ty_buf_adds(out, "</div></details>\n");
}

static void measure_table(table *t)
{
    t->widest = 1e-12;
    for (int i = 0, n; i < t->n_blocks; i += n) {
        n = run_length(t, i);
        sums s = sum_run(t, i, n);
        t->total += s.weight;
        for (int phase = 0; phase < TY_N_PHASES; phase++)
            t->widest = s.lane[phase] > t->widest ? s.lane[phase] : t->widest;
    }
}

void ty_graph_html_layers(const ty_drawing *d, ty_buf *out)
{
    table t = {.d = d};
    find_rows(&t);
    find_blocks(&t);
    measure_table(&t);
    ty_buf_adds(out,
                "<div class=\"r h\"><span>layer</span><span>forward</span><span>gradient</span><span>update</span>");
    ty_buf_addf(out, "<span class=\"t\">%s</span><span class=\"s\">share</span></div>\n",
                !d->tape         ? "results"
                : d->is_measured ? "time"
                                 : "at least");
    for (int i = 0, n; i < t.n_blocks; i += n) {
        n = run_length(&t, i);
        add_run(&t, i, n, out);
    }
}

void ty_graph_html_legend(const ty_drawing *d, ty_buf *out)
{
    bool occurs[TY_N_WORKS] = {false};
    for (int i = 0; i < d->n_items; i++)
        occurs[d->item[i].work] = true;
    ty_buf_adds(out, "<div class=\"k\">");
    for (int w = 0; w < TY_N_WORKS; w++)
        if (occurs[w])
            ty_buf_addf(out, "<span><i class=\"w%d\"></i>%s</span>", w, ty_work_text((ty_work)w));
    ty_buf_adds(out, "</div>\n");
}
