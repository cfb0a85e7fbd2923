/* recipe_image.c - the key `image` of a field: how encoded pictures become its rows (container/input/image/plan.h). */
#include "container/input/image/plan.h"
#include "entrypoint/recipe_reader.h"

#include <string.h>

static bool is_word(const ty_doc *d, const char *word)
{
    return d && d->kind == TY_DOC_STRING && strcmp(d->string, word) == 0;
}

static bool is_there(const ty_doc *d)
{
    return d && d->kind != TY_DOC_NULL;
}

static int refuse(recipe_reader *rd, const ty_doc *d, const char *key, const char *expected)
{
    char found[128];
    return ty_doc_error(d, rd->err, TY_E_TYPE, NULL, "%s: expected %s, found %s", key, expected,
                        ty_doc_describe(d, found, sizeof found));
}

/* A number, or a list of up to `most`. */
static int read_numbers(recipe_reader *rd, const ty_doc *d, const char *key, double *out, int most, int *n)
{
    *n = d->kind == TY_DOC_LIST ? (int)d->n_items : 1;
    if (*n < 1 || *n > most)
        return refuse(rd, d, key, most == 2 ? "two numbers" : "a number, or one a channel");
    for (int i = 0; i < *n; i++)
        if (ty_doc_float(d->kind == TY_DOC_LIST ? &d->items[i] : d, &out[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "%s", key);
    return 0;
}

static int read_size(recipe_reader *rd, const ty_doc *d, ty_image_plan *p)
{
    int64_t side[2];
    if (!is_there(d))
        return 0;
    if (d->kind == TY_DOC_LIST && d->n_items != 2)
        return refuse(rd, d, "size", "[HEIGHT, WIDTH]");
    for (int i = 0; i < 2; i++) {
        if (ty_doc_int(d->kind == TY_DOC_LIST ? &d->items[i] : d, &side[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "size");
        if (side[i] < 1 || side[i] > 1 << 20)
            return refuse(rd, d, "size", "[HEIGHT, WIDTH] in pixels");
    }
    p->height = (int)side[0];
    p->width = (int)side[1];
    return 0;
}

static int read_resize(recipe_reader *rd, const ty_doc *d, ty_image_plan *p)
{
    static const char *const words[] = {
        [TY_IMAGE_STRETCH] = "stretch", [TY_IMAGE_COVER] = "cover", [TY_IMAGE_CONTAIN] = "contain",
        [TY_IMAGE_SHORTER] = "",        [TY_IMAGE_AS_IS] = "none",
    };
    int64_t shorter = 0;
    if (!is_there(d)) {
        p->fit = p->crop == TY_IMAGE_CROP_RANDOM_RESIZED ? TY_IMAGE_COVER : TY_IMAGE_STRETCH;
        return 0;
    }
    for (size_t i = 0; i < N(words); i++)
        if (words[i][0] && is_word(d, words[i])) {
            p->fit = (ty_image_fit)i;
            return 0;
        }
    if (d->kind != TY_DOC_INT || ty_doc_int(d, &shorter, rd->err) < 0 || shorter < 1 || shorter > 1 << 20)
        return refuse(rd, d, "resize", "stretch, cover, contain, none, or what the shorter side becomes");
    p->fit = TY_IMAGE_SHORTER;
    p->shorter = (int)shorter;
    return 0;
}

static int read_statistics(recipe_reader *rd, const recipe_image *f, ty_image_plan *p)
{
    if (is_word(f->mean, "auto") != is_word(f->std, "auto"))
        return ty_doc_error(is_there(f->mean) ? f->mean : f->std, rd->err, TY_E_CONFIG, NULL,
                            "mean and std are computed of the data together: say auto for both");
    p->mean_of_data = is_word(f->mean, "auto");
    if (p->mean_of_data)
        return 0;
    if (is_there(f->mean) && read_numbers(rd, f->mean, "mean", p->mean, 4, &p->n_mean) < 0)
        return -1;
    return is_there(f->std) ? read_numbers(rd, f->std, "std", p->std, 4, &p->n_std) : 0;
}

static int read_range(recipe_reader *rd, const ty_doc *d, const char *key, double *out)
{
    int n = 2;
    if (is_there(d) && read_numbers(rd, d, key, out, 2, &n) < 0)
        return -1;
    return n == 2 ? 0 : refuse(rd, d, key, "two numbers, the smaller first");
}

/* {mixup: 0.2} or {cutmix: 1.0} */
static int read_mix(recipe_reader *rd, const ty_doc *d, ty_image_plan *p)
{
    if (!is_there(d))
        return 0;
    const ty_doc *mixup = ty_doc_find(d, "mixup"), *cutmix = ty_doc_find(d, "cutmix");
    if (d->kind != TY_DOC_MAP || d->n_items != 1 || (!mixup && !cutmix))
        return refuse(rd, d, "mix", "{mixup: ALPHA} or {cutmix: ALPHA}");
    p->mix = mixup ? TY_IMAGE_MIXUP : TY_IMAGE_CUTMIX;
    return ty_doc_float(mixup ? mixup : cutmix, &p->alpha, rd->err) < 0 ? ty_error_wrap(rd->err, "mix") : 0;
}

static int read_jitter(recipe_reader *rd, const char *path, const ty_doc *d, ty_image_plan *p)
{
    recipe_jitter j = {0};
    const recipe_section *s = &ty_recipe_jitter_section;
    if (!is_there(d))
        return 0;
    path = ty_arena_printf(rd->a, "%s.jitter", path);
    if (ty_recipe_bind(rd, path, s->rows, s->n_rows, d, &j) < 0)
        return -1;
    memcpy(p->jitter, j.amount, sizeof p->jitter);
    return 0;
}

int ty_recipe_read_image(recipe_reader *rd, const char *path, const ty_doc *node, ty_field *out)
{
    recipe_image f = {0};
    if (!is_there(node))
        return 0;
    path = ty_arena_printf(rd->a, "%s.image", path);
    if (ty_recipe_bind(rd, path, ty_recipe_image_section.rows, ty_recipe_image_section.n_rows, node, &f) < 0)
        return -1;
    ty_image_plan *p = TY_NEW(rd->a, ty_image_plan);
    *p = ty_image_plan_make();
    p->channels = (int)f.channels;
    p->filter = (ty_image_filter)f.filter;
    p->crop = (ty_image_crop)f.crop;
    p->pad = (int)f.pad;
    p->flip_across = f.flip == 1 || f.flip == 3;
    p->flip_down = f.flip == 2 || f.flip == 3;
    p->hwc = f.layout == 1;
    p->grey = f.grayscale;
    p->erase = f.erase;
    p->rotate = f.rotate;
    p->gap = f.reducing_gap;
    p->max_pixels = f.max_pixels;
    p->scale_given = is_there(f.scale);
    if ((p->scale_given && ty_doc_float(f.scale, &p->scale, rd->err) < 0) || read_size(rd, f.size, p) < 0 ||
        read_resize(rd, f.resize, p) < 0 || read_statistics(rd, &f, p) < 0 || read_mix(rd, f.mix, p) < 0 ||
        read_jitter(rd, path, f.jitter, p) < 0 || read_range(rd, f.area, "area", p->area) < 0 ||
        read_range(rd, f.ratio, "ratio", p->ratio) < 0)
        return ty_error_wrap(rd->err, "%s", path);
    out->image = p;
    return 0;
}
