/* command_data_stats.c - `trainyard data stats`: distributions in the terminal and as a picture, and what is odd. */
#include "base/file.h"
#include "base/json.h"
#include "entrypoint/command_data_stats.h"
#include "entrypoint/preprocessing.h"

#include <stdio.h>
#include <string.h>

/* ---- terminal ---- */

static const char *stats_bars(const ty_field_profile *p, char out[3 * TY_PROFILE_BINS + 1])
{
    static const char *const bars[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2586", "\u2587", "\u2588"};
    int64_t most = 1;
    out[0] = 0;
    for (int i = 0; i < TY_PROFILE_BINS; i++)
        most = p->bin[i] > most ? p->bin[i] : most;
    for (int i = 0; i < TY_PROFILE_BINS; i++)
        strcat(out, bars[p->bin[i] == 0 ? 0 : 1 + p->bin[i] * 7 / most]);
    return out;
}

enum { STATS_SHOWN = 20 }; /* of counts, in the terminal */

static void stats_print_counts(const ty_stats_counts *c)
{
    int width = 0;
    for (int i = 0; i < c->n && i < STATS_SHOWN; i++)
        width = (int)strlen(c->count[i].name) > width ? (int)strlen(c->count[i].name) : width;
    printf("\n  %s: %d\n", c->title, c->n);
    for (int i = 0; i < c->n && i < STATS_SHOWN; i++)
        printf("    %-*s  %lld\n", width, c->count[i].name, (long long)c->count[i].n);
    if (c->n > STATS_SHOWN)
        printf("    and %d more\n", c->n - STATS_SHOWN);
}

static void stats_print(const ty_stats *s)
{
    char text[160], bars[3 * TY_PROFILE_BINS + 1];
    int width = 5;
    for (int i = 0; i < s->n_rows; i++)
        width = (int)strlen(s->row[i].name) > width ? (int)strlen(s->row[i].name) : width;
    printf("%s\n\n", ty_dataset_summary(s->d->ds, text, sizeof text));
    printf("  %-*s  %11s  %11s  %11s  %11s  %6s\n", width, "field", "least", "mean", "deviation", "most", "zeros");
    for (int i = 0; i < s->n_rows; i++) {
        const ty_field_profile *p = &s->row[i].p;
        printf("  %-*s  %11.5g  %11.5g  %11.5g  %11.5g  %5.1f%%  |%s|\n", width, s->row[i].name, p->min, p->mean,
               p->deviation, p->max, p->n ? 100.0 * (double)p->n_zero / (double)p->n : 0.0, stats_bars(p, bars));
    }
    for (int i = 0; i < s->n_counts; i++)
        stats_print_counts(&s->counts[i]);
    bool first = true;
    for (int i = 0; i < s->n_rows; i++) {
        if (!*s->row[i].odd)
            continue;
        printf("%s  %-*s  %s\n", first ? "\n" : "", width, s->row[i].name, s->row[i].odd);
        first = false;
    }
}

static void stats_put_row(const ty_stats_row *row, ty_json_writer *w)
{
    const ty_field_profile *p = &row->p;
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "name", row->name);
    ty_json_put_int(w, "numbers", p->n);
    ty_json_put_int(w, "missing", row->n_missing);
    ty_json_put_int(w, "not_finite", p->n_not_finite);
    ty_json_put_int(w, "zeros", p->n_zero);
    ty_json_put_float(w, "min", p->min);
    ty_json_put_float(w, "max", p->max);
    ty_json_put_float(w, "mean", p->mean);
    ty_json_put_float(w, "deviation", p->deviation);
    ty_json_open_list(w, "histogram");
    for (int k = 0; k < TY_PROFILE_BINS; k++)
        ty_json_put_int(w, NULL, p->bin[k]);
    ty_json_close(w);
    if (*row->odd)
        ty_json_put_string(w, "odd", row->odd);
    ty_json_close(w);
}

static void stats_print_json(const ty_stats *s)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 26);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "samples", s->d->ds->n_samples);
    ty_json_open_list(&w, "fields");
    for (int i = 0; i < s->n_rows; i++)
        stats_put_row(&s->row[i], &w);
    ty_json_close(&w);
    for (int i = 0; i < s->n_counts; i++) {
        ty_json_open_map(&w, s->counts[i].title);
        for (int k = 0; k < s->counts[i].n; k++)
            ty_json_put_int(&w, s->counts[i].count[k].name, s->counts[i].count[k].n);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

/* ---- picture ---- */

enum { SVG_COLUMNS = 4, SVG_WIDTH = 220, SVG_HEIGHT = 110, SVG_BAR = 6, SVG_BARS_HEIGHT = 60 };

static void svg_text(ty_buf *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            ty_buf_adds(out, *text == '<' ? "&lt;" : "&amp;");
        else
            ty_buf_addc(out, *text);
}

static void svg_field(ty_buf *out, const char *name, const ty_field_profile *p, int i)
{
    int x = 10 + i % SVG_COLUMNS * SVG_WIDTH, y = 10 + i / SVG_COLUMNS * SVG_HEIGHT;
    int64_t most = 1;
    for (int k = 0; k < TY_PROFILE_BINS; k++)
        most = p->bin[k] > most ? p->bin[k] : most;
    ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">", x, y + 12);
    svg_text(out, name);
    ty_buf_adds(out, "</text>\n");
    for (int k = 0; k < TY_PROFILE_BINS; k++) {
        double height = (double)p->bin[k] * SVG_BARS_HEIGHT / (double)most;
        if (p->bin[k] > 0)
            ty_buf_addf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", x + k * SVG_BAR,
                        y + 18 + SVG_BARS_HEIGHT - (height < 1 ? 1 : height), SVG_BAR - 1, height < 1 ? 1 : height);
    }
    ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" fill=\"#555\">%.4g</text>\n", x, y + 92, p->min);
    ty_buf_addf(out, "<text x=\"%d\" y=\"%d\" fill=\"#555\" text-anchor=\"end\">%.4g</text>\n",
                x + TY_PROFILE_BINS * SVG_BAR, y + 92, p->max);
}

void ty_stats_svg(const ty_stats *s, ty_buf *out)
{
    int rows = (s->n_rows + SVG_COLUMNS - 1) / SVG_COLUMNS;
    ty_buf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
                "font-size=\"11\" fill=\"#4477aa\">\n",
                20 + SVG_COLUMNS * SVG_WIDTH, 20 + rows * SVG_HEIGHT);
    ty_buf_adds(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    for (int i = 0; i < s->n_rows; i++)
        svg_field(out, s->row[i].name, &s->row[i].p, i);
    ty_buf_adds(out, "</svg>\n");
}

static int stats_draw(const ty_stats *s, const char *path, ty_error *err)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 26);
    ty_stats_svg(s, &out);
    int rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the picture of %d fields is too large", s->n_rows)
                        : ty_file_write(path, out.data, out.len, 0644, err);
    ty_buf_fini(&out);
    return rc;
}

/* ---- what transforms learn ---- */

static int stats_keep(const ty_data_opened *d, const char *path, ty_error *err)
{
    const ty_recipe_data *train = &d->recipe.train;
    ty_buf text;
    if (!ty_preprocessing_is_needed(train->fields, train->n_fields, d->ds)) {
        ty_error_set(err, TY_E_CONFIG, "no field has a transform: there is nothing to learn");
        return ty_error_help(err,
                             "give data.train.fields of the recipe some: {vocabulary: auto}, {normalize: standard}");
    }
    ty_buf_init(&text, (size_t)2 << 30);
    int rc = ty_preprocessing_write(train, train->fields, d->ds, NULL, &text, err);
    if (rc == 0)
        rc = ty_file_write(path, text.data, text.len, 0644, err);
    ty_buf_fini(&text);
    return rc;
}

static int stats_refuse_target(const ty_dataset *ds, const char *target, bool declared, ty_arena *a, ty_error *err)
{
    const char *list = "";
    for (int i = 0; i < ds->n_fields; i++)
        list = ty_arena_printf(a, "%s%s%s", list, i ? ", " : "", ds->field[i].name);
    ty_error_set(err, TY_E_USAGE, "the data have no field of numbers \"%.100s\"", target);
    return ty_error_help(err, "fields: %.200s%s", list,
                         declared ? "" : "; a text becomes one by --recipe=FILE, with classes: auto");
}

int ty_command_data_stats(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_data_opened d;
    const char *kept = given->value[TY_DATA_PREPROCESSING];
    bool declared = given->value[TY_DATA_RECIPE] != NULL;
    if (kept && !declared)
        return ty_error_set(err, TY_E_USAGE, "--preprocessing needs --recipe FILE, whose fields have the transforms");
    if ((declared ? ty_data_open_declared : ty_data_open)(given, a, &d, err) < 0)
        return -1;
    ty_stats s;
    int target = ty_data_target(given, d.ds), rc = 0;
    if (given->value[TY_DATA_TARGET] && target < 0)
        rc = stats_refuse_target(d.ds, given->value[TY_DATA_TARGET], declared, a, err);
    if (rc == 0)
        rc = ty_stats_collect(&d, target, a, &s, err);
    if (rc == 0 && kept)
        rc = stats_keep(&d, kept, err);
    if (rc == 0 && given->value[TY_DATA_SVG])
        rc = stats_draw(&s, given->value[TY_DATA_SVG], err);
    if (rc == 0 && given->value[TY_DATA_HTML])
        rc = ty_stats_write_html(&s, given->value[TY_DATA_HTML], err);
    if (rc == 0)
        (given->value[TY_DATA_JSON] ? stats_print_json : stats_print)(&s);
    ty_dataset_close(d.ds);
    return rc;
}
