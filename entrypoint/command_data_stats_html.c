/* command_data_stats_html.c - `trainyard data stats --html`: a page with everything inside, pictures and sounds too. */
#include "base/file.h"
#include "container/input/audio/audio.h"
#include "container/input/image/plan.h"
#include "entrypoint/command_data_stats.h"
#include "entrypoint/html.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGE_PICTURES = 16,
    PAGE_SOUNDS = 8,
    PAGE_SIDE = 96,
    PAGE_CLASSES = 100,
    PAGE_MAX_SOUND = 512 << 10,
    BMP_HEAD = 54
};

#define PAGE_MAX_BYTES ((size_t)64 << 20)

/* ---- pictures ---- */

static void page_base64(const uint8_t *p, size_t n, ty_buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        ty_buf_addc(out, digits[v >> 18]);
        ty_buf_addc(out, digits[v >> 12 & 63]);
        ty_buf_addc(out, i + 1 < n ? digits[v >> 6 & 63] : '=');
        ty_buf_addc(out, i + 2 < n ? digits[v & 63] : '=');
    }
}

/* The head of a bitmap of 24 bits a pixel, whose rows come from the bottom (BITMAPINFOHEADER). */
static void page_bmp_head(uint8_t head[BMP_HEAD])
{
    static const struct {
        int at;
        uint32_t v;
    } numbers[] = {
        {2, BMP_HEAD + 3 * PAGE_SIDE * PAGE_SIDE}, {10, BMP_HEAD}, {14, 40}, {18, PAGE_SIDE}, {22, PAGE_SIDE}};
    memset(head, 0, BMP_HEAD);
    memcpy(head, "BM", 2);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (int k = 0; k < 4; k++)
            head[numbers[i].at + k] = (uint8_t)(numbers[i].v >> 8 * k);
    head[26] = 1;
    head[28] = 24;
}

typedef struct page_picture {
    ty_image_reader reader;
    uint8_t bmp[BMP_HEAD + 3 * PAGE_SIDE * PAGE_SIDE];
    ty_image_info info;
} page_picture;

static int page_see(void *ctx, const uint8_t *bytes, size_t n, ty_error *err)
{
    page_picture *p = ctx;
    uint8_t px[PAGE_SIDE][PAGE_SIDE][3];
    uint8_t *to = p->bmp + BMP_HEAD;
    if (ty_image_probe(bytes, n, &p->info, err) < 0 ||
        ty_image_read(&p->reader, bytes, n, &(ty_chance){0}, TY_U8, px, err) < 0)
        return -1;
    page_bmp_head(p->bmp);
    for (int y = PAGE_SIDE - 1; y >= 0; y--)
        for (int x = 0; x < PAGE_SIDE; x++)
            for (int c = 2; c >= 0; c--)
                *to++ = px[y][x][c];
    return 0;
}

/* Some of them, evenly from all. */
static int page_pictures(const ty_stats *s, ty_buf *out, ty_error *err)
{
    const ty_dataset *ds = s->d->ds;
    ty_image_plan plan = ty_image_plan_make();
    page_picture *p = TY_NEW(s->a, page_picture);
    char place[400];
    int64_t n = ds->n_samples < PAGE_PICTURES ? ds->n_samples : PAGE_PICTURES;
    int rc = 0;
    plan.fit = TY_IMAGE_CONTAIN;
    plan.width = plan.height = PAGE_SIDE;
    plan.channels = 3;
    plan.hwc = true;
    p->reader.plan = &plan;
    ty_buf_adds(out, "<h2>Pictures</h2>\n<p>");
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        int64_t sample = i * ds->n_samples / n;
        rc = ty_dataset_encoded(ds, s->picture, sample, page_see, p, err);
        if (rc < 0)
            break;
        ty_buf_addf(out, "<img width=\"%d\" height=\"%d\" alt=\"sample %lld\" title=\"", PAGE_SIDE, PAGE_SIDE,
                    (long long)sample);
        ty_html_text(ty_dataset_place(ds, s->picture, sample, place, sizeof place), out);
        ty_buf_addf(out, ", %s, %d x %d\" src=\"data:image/bmp;base64,", p->info.format, p->info.width, p->info.height);
        page_base64(p->bmp, sizeof p->bmp, out);
        ty_buf_adds(out, "\"/>\n");
    }
    ty_buf_adds(out, "</p>\n");
    ty_image_reader_fini(&p->reader);
    return rc;
}

/* ---- sounds ---- */

/* A player for what browsers play. */
static int page_hear(void *ctx, const uint8_t *bytes, size_t n, ty_error *err)
{
    static const char *const types[][2] = {{"WAV", "wav"}, {"FLAC", "flac"}, {"Ogg", "ogg"}, {"MP3", "mpeg"}};
    ty_buf *out = ctx;
    ty_audio_info info;
    if (ty_audio_probe(bytes, n, &info, err) < 0)
        return -1;
    ty_buf_addf(out, ", %s, %.3g s, %d frames a second, %d channel%s", info.format, (double)info.frames / info.rate,
                info.rate, info.channels, info.channels == 1 ? "" : "s");
    for (size_t i = 0; n <= PAGE_MAX_SOUND && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i][0], info.format) != 0)
            continue;
        ty_buf_addf(out, "<br/><audio controls=\"controls\" src=\"data:audio/%s;base64,", types[i][1]);
        page_base64(bytes, n, out);
        ty_buf_adds(out, "\"></audio>");
    }
    return 0;
}

static int page_sounds(const ty_stats *s, ty_buf *out, ty_error *err)
{
    const ty_dataset *ds = s->d->ds;
    char place[400];
    int64_t n = ds->n_samples < PAGE_SOUNDS ? ds->n_samples : PAGE_SOUNDS;
    int rc = 0;
    ty_buf_adds(out, "<h2>Sounds</h2>\n");
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        int64_t sample = i * ds->n_samples / n;
        ty_buf_adds(out, "<p>");
        ty_html_text(ty_dataset_place(ds, s->sound, sample, place, sizeof place), out);
        rc = ty_dataset_encoded(ds, s->sound, sample, page_hear, out, err);
        ty_buf_adds(out, "</p>\n");
    }
    return rc;
}

/* ---- numbers ---- */

static void page_counts(const ty_stats_counts *c, ty_buf *out)
{
    int64_t most = 1;
    for (int i = 0; i < c->n; i++)
        most = c->count[i].n > most ? c->count[i].n : most;
    ty_buf_adds(out, "<h2>");
    ty_html_text(c->title, out);
    ty_buf_addf(out, ": %d</h2>\n<table>\n", c->n);
    for (int i = 0; i < c->n && i < PAGE_CLASSES; i++) {
        ty_buf_adds(out, "<tr><td>");
        ty_html_text(c->count[i].name, out);
        ty_buf_addf(out,
                    "</td><td>%lld</td><td><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"10\" "
                    "style=\"width:200px\"><rect width=\"%.1f\" height=\"10\" fill=\"#4477aa\"/></svg></td></tr>\n",
                    (long long)c->count[i].n, 200.0 * (double)c->count[i].n / (double)most);
    }
    if (c->n > PAGE_CLASSES)
        ty_buf_addf(out, "<tr><td>and %d more</td></tr>\n", c->n - PAGE_CLASSES);
    ty_buf_adds(out, "</table>\n");
}

static void page_rows(const ty_stats *s, ty_buf *out)
{
    ty_buf_adds(out, "<table>\n<tr><th>field</th><th>least</th><th>mean</th><th>deviation</th><th>most</th>"
                     "<th>zeros</th><th>missing</th><th></th></tr>\n");
    for (int i = 0; i < s->n_rows; i++) {
        const ty_field_profile *p = &s->row[i].p;
        ty_buf_adds(out, "<tr><td>");
        ty_html_text(s->row[i].name, out);
        ty_buf_addf(out, "</td><td>%.5g</td><td>%.5g</td><td>%.5g</td><td>%.5g</td><td>%.1f %%</td><td>%lld</td><td>",
                    p->min, p->mean, p->deviation, p->max, p->n ? 100.0 * (double)p->n_zero / (double)p->n : 0.0,
                    (long long)s->row[i].n_missing);
        ty_html_text(s->row[i].odd, out);
        ty_buf_adds(out, "</td></tr>\n");
    }
    ty_buf_adds(out, "</table>\n");
}

int ty_stats_write_html(const ty_stats *s, const char *path, ty_error *err)
{
    ty_buf out;
    char text[160];
    const char *name = s->d->source.paths[0];
    ty_buf_init(&out, PAGE_MAX_BYTES);
    ty_html_begin(name, &out);
    ty_buf_adds(&out, "<h1>");
    ty_html_text(name, &out);
    ty_buf_adds(&out, "</h1>\n<p>");
    ty_html_text(ty_dataset_summary(s->d->ds, text, sizeof text), &out);
    ty_buf_adds(&out, "</p>\n");
    page_rows(s, &out);
    ty_stats_svg(s, &out);
    for (int i = 0; i < s->n_counts; i++)
        page_counts(&s->counts[i], &out);
    int rc = s->picture >= 0 ? page_pictures(s, &out, err) : 0;
    if (rc == 0 && s->sound >= 0)
        rc = page_sounds(s, &out, err);
    ty_html_end(&out);
    if (rc == 0)
        rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the page of %d fields is too large", s->n_rows)
                        : ty_file_write(path, out.data, out.len, 0644, err);
    ty_buf_fini(&out);
    return rc;
}
