/* recipe.c - a tree of settings into a ty_recipe.
 *
 * Every map goes through ty_recipe_bind(), which also notes value and origin of each key. What is left to do here is
 * what a table cannot say: choices, lists, names that point at each other.
 */
#include "entrypoint/recipe.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/yaml.h"
#include "entrypoint/recipe_reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SETTINGS = 4096, MAX_LIST = 4096, MAX_ROWS = 64, MAX_METRICS = 50 };

/* ---- settings with their origins ---- */

static const char *value_text(recipe_reader *rd, const ty_bind_row *row, const ty_doc *origin)
{
    if (!origin)
        return row->fallback ? row->fallback : row->type == TY_BIND_CHOICE ? row->choices[0] : "-";
    if (origin->kind != TY_DOC_LIST && origin->kind != TY_DOC_MAP)
        return origin->kind == TY_DOC_STRING ? origin->string : origin->raw;
    ty_buf text;
    ty_buf_init(&text, 1 << 16);
    ty_json_add_doc(&text, origin, TY_JSON_SPACED);
    const char *out = text.failed ? "..." : ty_arena_strdup(rd->a, text.data);
    ty_buf_fini(&text);
    return out;
}

static bool has_sections(const ty_doc *d)
{
    return d && (d->kind == TY_DOC_MAP || (d->kind == TY_DOC_LIST && d->n_items > 0 && d->items[0].kind == TY_DOC_MAP));
}

static void note_setting(recipe_reader *rd, const char *path, const ty_bind_row *row, const ty_doc *origin)
{
    bool is_field = strstr(path, ".fields.") != NULL, is_value = is_field || strcmp(row->key, "inputs") == 0;
    bool is_container = row->type == TY_BIND_NODE && has_sections(origin) && !is_value;
    if (rd->n_settings == MAX_SETTINGS || is_container || (is_field && !origin))
        return;
    char text[256];
    ty_setting *s = &rd->settings[rd->n_settings++];
    s->key = *path ? ty_arena_printf(rd->a, "%s.%s", path, row->key) : row->key;
    s->value = value_text(rd, row, origin);
    s->origin = ty_arena_strdup(rd->a, ty_bind_origin_text(origin, text, sizeof text));
}

int ty_recipe_bind(recipe_reader *rd, const char *path, const ty_bind_row *rows, size_t n_rows, const ty_doc *map,
                   void *out)
{
    const ty_doc *origin[MAX_ROWS] = {0};
    if (n_rows > MAX_ROWS)
        return ty_error_set(rd->err, TY_E_INTERNAL, "\"%s\" has more than %d keys", path, MAX_ROWS);
    if (ty_bind(rows, n_rows, path, map, out, origin, rd->err) < 0)
        return -1;
    for (size_t i = 0; i < n_rows; i++)
        note_setting(rd, path, &rows[i], origin[i]);
    return 0;
}

/* ---- choices ---- */

static int refuse_kind(recipe_reader *rd, const recipe_choice *c, const ty_doc *kind)
{
    ty_suggestion s = {.word = kind->key};
    char list[512] = "";
    for (size_t i = 0; i < c->n_kinds; i++) {
        ty_suggest_offer(&s, c->kinds[i].name);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", c->kinds[i].name);
    }
    char note[128] = "";
    if (s.best)
        snprintf(note, sizeof note, "did you mean \"%s\"? ", s.best);
    ty_doc_error_key(kind, rd->err, TY_E_RANGE, NULL, "unknown %s \"%s\"", c->key, kind->key);
    return ty_error_help(rd->err, "%sknown are: %s", note, list);
}

/* The chosen kind and its section. node: {kind: section}; NULL gives the default, the first kind. A scalar section is
 * the value of the kind's only key: {global_norm: 1.0}. */
static int read_choice(recipe_reader *rd, const recipe_choice *c, const ty_doc *node, const recipe_kind **kind,
                       const ty_doc **section)
{
    *kind = &c->kinds[0];
    *section = NULL;
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (node->kind == TY_DOC_MAP && node->n_items > 1) {
        ty_doc_error_key(&node->items[1], rd->err, TY_E_CONFIG, NULL, "\"%s\" needs one kind, found \"%s\" and \"%s\"",
                         c->key, node->items[0].key, node->items[1].key);
        return ty_error_help(rd->err, "to choose another kind from outside, give %s=%s too", c->key,
                             node->items[1].key);
    }
    if (node->kind != TY_DOC_MAP || node->n_items == 0) {
        char found[160];
        ty_doc_error(node, rd->err, TY_E_TYPE, NULL, "\"%s\" needs one kind, found %s", c->key,
                     ty_doc_describe(node, found, sizeof found));
        return ty_error_help(rd->err, "write %s: {%s: {...}}", c->key, c->kinds[0].name);
    }
    const ty_doc *child = &node->items[0];
    *section = child;
    for (size_t i = 0; i < c->n_kinds; i++)
        if (strcmp(c->kinds[i].name, child->key) == 0) {
            *kind = &c->kinds[i];
            return 0;
        }
    return refuse_kind(rd, c, child);
}

static int bind_kind(recipe_reader *rd, const recipe_choice *c, const char *path, const recipe_kind *kind,
                     const ty_doc *section, void *out)
{
    ty_doc wrapped;
    bool is_scalar =
        section && section->kind != TY_DOC_MAP && section->kind != TY_DOC_LIST && section->kind != TY_DOC_NULL;
    if (is_scalar && kind->n_rows == 1) {
        ty_doc *child = TY_NEW(rd->a, ty_doc);
        *child = *section;
        child->key = kind->rows[0].key;
        wrapped = *section;
        wrapped.kind = TY_DOC_MAP;
        wrapped.items = child;
        wrapped.n_items = 1;
        section = &wrapped;
    }
    const char *what = ty_arena_printf(rd->a, "%s.%s", path && *path ? path : c->key, kind->name);
    return ty_recipe_bind(rd, what, kind->rows, kind->n_rows, section, out);
}

/* ---- small values ---- */

/* true, false, or names. */
static int read_sparse_rows(recipe_reader *rd, const ty_doc *node)
{
    if (node && node->kind == TY_DOC_BOOL)
        return ty_doc_bool(node, &rd->r->sparse_all, rd->err);
    return ty_recipe_read_names(rd, node, "sparse_rows", &rd->r->sparse_rows, &rd->r->n_sparse_rows);
}

static int read_tied(recipe_reader *rd, const ty_doc *node)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_doc_expect(node, TY_DOC_LIST, rd->err) < 0)
        return ty_error_wrap(rd->err, "tied");
    ty_names *groups = TY_NEW_ARRAY(rd->a, ty_names, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        int n;
        if (ty_recipe_read_names(rd, &node->items[i], "tied", &groups[i], &n) < 0)
            return -1;
        if (n < 2)
            return ty_doc_error(&node->items[i], rd->err, TY_E_RANGE, NULL,
                                "a group of tied weights needs at least two names");
    }
    rd->r->tied = groups;
    rd->r->n_tied = (int)node->n_items;
    return 0;
}

/* "500", "500 steps", "1 epoch". */
int ty_recipe_read_span(recipe_reader *rd, const ty_doc *node, const char *what, const char *fallback, ty_span *out)
{
    const char *text = node && node->kind != TY_DOC_NULL ? node->raw : fallback;
    *out = (ty_span){.at = node};
    if (!text)
        return 0;
    char *end, unit[8] = "";
    long long n = strtoll(text, &end, 10);
    int used = 0;
    bool fits = end != text && (*end == 0 || (sscanf(end, " %7[a-z]%n", unit, &used) == 1 && end[used] == 0));
    out->epochs = strcmp(unit, "epoch") == 0 || strcmp(unit, "epochs") == 0;
    fits = fits && (out->epochs || !*unit || strcmp(unit, "step") == 0 || strcmp(unit, "steps") == 0);
    if (fits && n >= 0 && n <= (long long)1e12) {
        out->n = n;
        return 0;
    }
    ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "\"%s\": expected a number of steps or epochs, found \"%s\"", what,
                 text);
    return ty_error_help(rd->err, "write \"500 steps\" or \"1 epoch\"");
}

const char *ty_recipe_path(recipe_reader *rd, const char *path)
{
    if (!path || path[0] == '/')
        return path;
    return ty_arena_printf(rd->a, "%s/%s", rd->r->folder, path);
}

/* ---- what to train ---- */

static int read_inputs(recipe_reader *rd, const ty_doc *node)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_doc_expect(node, TY_DOC_MAP, rd->err) < 0)
        return ty_error_wrap(rd->err, "inputs");
    ty_recipe_input *inputs = TY_NEW_ARRAY(rd->a, ty_recipe_input, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        inputs[i] = (ty_recipe_input){.input = node->items[i].key, .at = &node->items[i]};
        if (ty_doc_string(&node->items[i], &inputs[i].field, rd->err) < 0)
            return ty_error_wrap(rd->err, "inputs.%s", node->items[i].key);
    }
    rd->r->inputs = inputs;
    rd->r->n_inputs = (int)node->n_items;
    const char **names = TY_NEW_ARRAY(rd->a, const char *, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++)
        names[i] = inputs[i].input;
    rd->r->choice.inputs = names;
    rd->r->choice.n_inputs = rd->r->n_inputs;
    return 0;
}

/* Fields that are declared say what the data have. */
static void choose_fields(recipe_reader *rd)
{
    const ty_recipe_data *d = &rd->r->train;
    const char **names = TY_NEW_ARRAY(rd->a, const char *, d->n_fields + 1);
    for (int i = 0; i < d->n_fields; i++)
        names[i] = d->fields[i].name;
    rd->r->choice.fields = names;
    rd->r->choice.n_fields = d->n_fields;
}

static int read_class_weights(recipe_reader *rd, const ty_doc *node, ty_loss_term *term)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_doc_expect(node, TY_DOC_LIST, rd->err) < 0)
        return ty_error_wrap(rd->err, "class_weights");
    double *weights = TY_NEW_ARRAY(rd->a, double, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        if (ty_doc_float(&node->items[i], &weights[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "class_weights");
        if (!(weights[i] >= 0))
            return ty_doc_error(&node->items[i], rd->err, TY_E_RANGE, NULL, "a class weight must not be negative");
    }
    term->class_weights = weights;
    term->n_class_weights = (int)node->n_items;
    return 0;
}

/* `output` and `target` are understood in every loss, whatever the kind calls them. */
static const ty_doc *rename_common_keys(recipe_reader *rd, const recipe_kind *kind, const ty_doc *section)
{
    static const struct {
        const char *word;
        size_t offset;
    } common[] = {{"output", offsetof(recipe_loss, t.output)}, {"target", offsetof(recipe_loss, t.target)}};
    if (!section || section->kind != TY_DOC_MAP)
        return section;
    ty_doc *copy = TY_NEW(rd->a, ty_doc);
    *copy = *section;
    copy->items = ty_arena_copy(rd->a, section->items, section->n_items * sizeof *section->items);
    for (uint32_t i = 0; i < copy->n_items; i++)
        for (size_t c = 0; c < 2; c++)
            for (size_t k = 0; k < kind->n_rows && strcmp(copy->items[i].key, common[c].word) == 0; k++)
                if (kind->rows[k].offset == common[c].offset && kind->rows[k].type == TY_BIND_STRING &&
                    !ty_doc_find(section, kind->rows[k].key))
                    copy->items[i].key = kind->rows[k].key;
    return copy;
}

static int read_loss_term(recipe_reader *rd, const char *path, const ty_doc *node, ty_recipe_loss *out)
{
    const recipe_kind *kind;
    const ty_doc *section;
    recipe_loss loss = {.t = {.pos_weight = 1, .delta = 1, .weight = 1, .ignore_index = -100, .class_axis = -1},
                        .class_axis = -1,
                        .time_axis = 1};
    if (read_choice(rd, &ty_recipe_loss_choice, node, &kind, &section) < 0)
        return -1;
    section = rename_common_keys(rd, kind, section);
    if (bind_kind(rd, &ty_recipe_loss_choice, path, kind, section, &loss) < 0 ||
        read_class_weights(rd, loss.class_weights, &loss.t) < 0 ||
        ty_recipe_read_names(rd, loss.tensors, "tensors", &loss.t.tensors, &loss.t.n_tensors) < 0)
        return -1;
    loss.t.kind = (ty_loss_kind)kind->kind;
    loss.t.class_axis = (int)loss.class_axis;
    loss.t.time_axis = (int)loss.time_axis;
    loss.t.reduction = (ty_reduction)loss.reduction;
    *out = (ty_recipe_loss){
        .term = loss.t, .class_axis = loss.class_axis, .class_weights = loss.class_weights, .at = node};
    return 0;
}

static int read_loss(recipe_reader *rd, const ty_doc *node)
{
    bool is_list = node->kind == TY_DOC_LIST;
    uint32_t n = is_list ? node->n_items : 1;
    if (n == 0 || n > 64)
        return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "\"loss\" needs 1 to 64 terms, found %u", n);
    ty_recipe_loss *terms = TY_NEW_ARRAY(rd->a, ty_recipe_loss, n);
    for (uint32_t i = 0; i < n; i++) {
        const char *path = is_list ? ty_arena_printf(rd->a, "loss.%u", i) : "loss";
        if (read_loss_term(rd, path, is_list ? &node->items[i] : node, &terms[i]) < 0)
            return -1;
    }
    rd->r->loss = terms;
    rd->r->n_loss = (int)n;
    return 0;
}

static int read_betas(recipe_reader *rd, const ty_doc *node, const ty_doc *section, ty_optimizer *o)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (node->kind != TY_DOC_LIST || node->n_items != 2)
        return ty_doc_error(node, rd->err, TY_E_TYPE, NULL, "\"betas\" needs two numbers: [0.9, 0.999]");
    if (ty_doc_find(section, "beta1") || ty_doc_find(section, "beta2"))
        return ty_doc_error(node, rd->err, TY_E_CONFIG, NULL, "\"betas\" and \"beta1\" or \"beta2\" are both given");
    if (ty_doc_float(&node->items[0], &o->beta1, rd->err) < 0 || ty_doc_float(&node->items[1], &o->beta2, rd->err) < 0)
        return ty_error_wrap(rd->err, "betas");
    if (!(o->beta1 >= 0 && o->beta1 <= 1 && o->beta2 >= 0 && o->beta2 <= 1))
        return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "\"betas\" must lie between 0 and 1");
    return 0;
}

static int read_optimizer(recipe_reader *rd, const ty_doc *node)
{
    const recipe_kind *kind;
    const ty_doc *section;
    recipe_optimizer o = {0};
    if (read_choice(rd, &ty_recipe_optimizer_choice, node, &kind, &section) < 0 ||
        bind_kind(rd, &ty_recipe_optimizer_choice, "", kind, section, &o) < 0 ||
        read_betas(rd, o.betas, section, &o.o) < 0)
        return -1;
    o.o.kind = (ty_optimizer_kind)kind->kind;
    if (o.o.nesterov && (o.o.momentum <= 0 || o.o.dampening != 0))
        return ty_doc_error(section, rd->err, TY_E_CONFIG, NULL, "\"nesterov\" needs a momentum and no dampening");
    rd->r->optimizer = o.o;
    return 0;
}

static int read_numbers(recipe_reader *rd, const ty_doc *node, const char *what, double **out)
{
    if (ty_doc_expect(node, TY_DOC_LIST, rd->err) < 0)
        return ty_error_wrap(rd->err, "%s", what);
    *out = TY_NEW_ARRAY(rd->a, double, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        if (ty_doc_float(&node->items[i], &(*out)[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "%s", what);
        if (!((*out)[i] >= 0))
            return ty_doc_error(&node->items[i], rd->err, TY_E_RANGE, NULL, "\"%s\" must not be negative", what);
    }
    return 0;
}

/* Boundaries with one factor more. That they rise is seen when epochs have become steps. */
static int read_piecewise(recipe_reader *rd, const recipe_schedule *s, ty_recipe_schedule *out)
{
    double *factors = NULL;
    if (ty_doc_expect(s->boundaries, TY_DOC_LIST, rd->err) < 0)
        return ty_error_wrap(rd->err, "boundaries");
    if (read_numbers(rd, s->factors, "factors", &factors) < 0)
        return -1;
    uint32_t n = s->boundaries->n_items;
    if (n > 256 || s->factors->n_items != n + 1)
        return ty_doc_error(s->factors, rd->err, TY_E_RANGE, NULL,
                            "%u boundaries need %u factors, found %u; at most 256 boundaries", n, n + 1,
                            s->factors->n_items);
    ty_span *spans = TY_NEW_ARRAY(rd->a, ty_span, n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (ty_recipe_read_span(rd, &s->boundaries->items[i], "boundaries", NULL, &spans[i]) < 0)
            return -1;
    out->boundaries = spans;
    out->factors = factors;
    out->n_boundaries = (int)n;
    return 0;
}

/* The rate to which Keras' cosine rises first. */
static int read_target(recipe_reader *rd, const ty_doc *node, ty_recipe_schedule *out)
{
    out->has_target = node && node->kind != TY_DOC_NULL;
    if (out->has_target && ty_doc_float(node, &out->target, rd->err) < 0)
        return ty_error_wrap(rd->err, "warmup_target");
    return 0;
}

static int read_schedule(recipe_reader *rd, const ty_doc *node)
{
    const recipe_kind *kind;
    const ty_doc *section;
    recipe_schedule s = {.s.power = 1};
    if (read_choice(rd, &ty_recipe_schedule_choice, node, &kind, &section) < 0 ||
        bind_kind(rd, &ty_recipe_schedule_choice, "", kind, section, &s) < 0 ||
        ty_recipe_read_span(rd, s.warmup, "warmup_steps", NULL, &s.s.warmup) < 0 ||
        ty_recipe_read_span(rd, s.decay, "decay_steps", NULL, &s.s.decay) < 0 ||
        ty_recipe_read_span(rd, s.total, "total_steps", NULL, &s.s.total) < 0 ||
        ty_recipe_read_span(rd, s.step_size, "step_size", NULL, &s.s.step_size) < 0 ||
        ty_recipe_read_span(rd, s.cycle, "cycle_steps", NULL, &s.s.cycle) < 0 || read_target(rd, s.target, &s.s) < 0 ||
        (kind->kind == TY_SCHED_PIECEWISE && read_piecewise(rd, &s, &s.s) < 0))
        return -1;
    if (s.cycle && s.s.cycle.n < 1)
        return ty_doc_error(s.cycle, rd->err, TY_E_RANGE, NULL, "\"%s\" must be at least 1", s.cycle->key);
    if (kind->kind == TY_SCHED_STEP && s.s.step_size.n < 1)
        return ty_doc_error(s.step_size, rd->err, TY_E_RANGE, NULL, "\"step_size\" must be at least 1");
    s.s.kind = (ty_schedule_kind)kind->kind;
    s.s.anneal_linear = s.anneal == 1;
    s.s.threshold_absolute = s.threshold_mode == 1;
    s.s.maximize = s.mode == 2;
    s.s.mode_given = s.mode != 0;
    s.s.at = section;
    rd->r->schedule = s.s;
    return 0;
}

static int read_warmup(recipe_reader *rd, const ty_doc *node)
{
    recipe_warmup w = {0};
    const recipe_section *s = &ty_recipe_warmup_section;
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_recipe_bind(rd, "warmup", s->rows, s->n_rows, node, &w) < 0 ||
        ty_recipe_read_span(rd, w.steps, "warmup.steps", NULL, &rd->r->schedule.ramp) < 0)
        return -1;
    if (rd->r->schedule.warmup.n > 0)
        return ty_doc_error(node, rd->err, TY_E_CONFIG, NULL, "the schedule has a warmup of its own: give one of them");
    rd->r->schedule.ramp_start = w.start_factor;
    return 0;
}

static int read_lr_scale(recipe_reader *rd, const ty_doc *node)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_doc_expect(node, TY_DOC_MAP, rd->err) < 0)
        return ty_error_wrap(rd->err, "lr_scale");
    ty_lr_scale *scales = TY_NEW_ARRAY(rd->a, ty_lr_scale, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        scales[i].pattern = node->items[i].key;
        if (ty_doc_float(&node->items[i], &scales[i].factor, rd->err) < 0)
            return ty_error_wrap(rd->err, "lr_scale");
        if (!(scales[i].factor >= 0 && scales[i].factor <= 1e6))
            return ty_doc_error(&node->items[i], rd->err, TY_E_RANGE, NULL, "a factor lies between 0 and 1e6");
    }
    rd->r->lr_scale = scales;
    rd->r->n_lr_scale = (int)node->n_items;
    return 0;
}

static int read_ema(recipe_reader *rd, const ty_doc *node)
{
    recipe_ema e = {0};
    const recipe_section *s = &ty_recipe_ema_section;
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_recipe_bind(rd, "ema", s->rows, s->n_rows, node, &e) < 0)
        return -1;
    rd->r->ema_decay = e.decay;
    rd->r->use_ema = (ty_recipe_ema_use)e.use_ema;
    rd->r->ema_overwrite = e.overwrite_every;
    return 0;
}

static int read_lora(recipe_reader *rd, const ty_doc *node)
{
    recipe_lora l = {0};
    ty_recipe *r = rd->r;
    const recipe_section *s = &ty_recipe_lora_section;
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (ty_recipe_bind(rd, s->path, s->rows, s->n_rows, node, &l) < 0 ||
        ty_recipe_read_names(rd, l.weights, "lora.weights", &r->lora.weights, &r->lora.n_weights) < 0 ||
        ty_recipe_read_names(rd, l.train, "lora.train", &r->lora.train, &r->lora.n_train) < 0)
        return -1;
    r->lora.rank = (int)l.rank;
    r->lora.alpha = (double)l.rank;
    if (l.alpha && l.alpha->kind != TY_DOC_NULL && ty_doc_float(l.alpha, &r->lora.alpha, rd->err) < 0)
        return ty_error_wrap(rd->err, "lora.alpha");
    if (r->lora.alpha > 0 && r->lora.alpha <= 1e6)
        return 0;
    return ty_doc_error(l.alpha, rd->err, TY_E_RANGE, NULL, "lora.alpha: expected a number above 0, at most 1e6");
}

static int read_clip(recipe_reader *rd, const ty_doc *node)
{
    const recipe_kind *kind;
    const ty_doc *section;
    recipe_clip c = {0};
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (read_choice(rd, &ty_recipe_clip_choice, node, &kind, &section) < 0 ||
        bind_kind(rd, &ty_recipe_clip_choice, "", kind, section, &c) < 0)
        return -1;
    rd->r->clip = (ty_clip_kind)kind->kind;
    rd->r->clip_max = c.max;
    return 0;
}

static int read_metric(recipe_reader *rd, const ty_doc *node, ty_recipe_metric *out)
{
    const recipe_kind *kind;
    const ty_doc *section;
    recipe_metric m = {0};
    if (read_choice(rd, &ty_recipe_metric_choice, node, &kind, &section) < 0 ||
        bind_kind(rd, &ty_recipe_metric_choice, "metrics", kind, section, &m) < 0)
        return -1;
    const char *name = kind->kind == TY_METRIC_TOP_K ? ty_arena_printf(rd->a, "top_%lld", (long long)m.k) : kind->name;
    *out = (ty_recipe_metric){.kind = (ty_metric_kind)kind->kind,
                              .name = m.name ? m.name : name,
                              .k = m.k,
                              .average = (ty_average)m.average,
                              .threshold = m.threshold,
                              .output = m.output,
                              .target = m.target,
                              .at = node};
    return 0;
}

static int read_metrics(recipe_reader *rd, const ty_doc *node)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    bool is_list = node->kind == TY_DOC_LIST;
    uint32_t n = is_list ? node->n_items : 1;
    if (n > MAX_METRICS)
        return ty_doc_error(node, rd->err, TY_E_LIMIT, NULL, "\"metrics\" has more than %d", MAX_METRICS);
    ty_recipe_metric *metrics = TY_NEW_ARRAY(rd->a, ty_recipe_metric, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (read_metric(rd, is_list ? &node->items[i] : node, &metrics[i]) < 0)
            return -1;
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(metrics[k].name, metrics[i].name) == 0)
                return ty_doc_error(&node->items[i], rd->err, TY_E_DUPLICATE, NULL, "two metrics have the name \"%s\"",
                                    metrics[i].name);
    }
    rd->r->metrics = metrics;
    rd->r->n_metrics = (int)n;
    return 0;
}

static int read_checkpoint(recipe_reader *rd, const ty_doc *node)
{
    recipe_checkpoint c = {0};
    const recipe_section *s = &ty_recipe_checkpoint_section;
    if (ty_recipe_bind(rd, "checkpoint", s->rows, s->n_rows, node, &c) < 0 ||
        ty_recipe_read_span(rd, c.every, "checkpoint.every", "1 epoch", &rd->r->checkpoint_every) < 0)
        return -1;
    rd->r->checkpoint_keep = c.keep;
    rd->r->checkpoint_stop_on_error = c.on_error == 1;
    rd->r->checkpoint_sharded = c.sharded;
    return 0;
}

static int read_batch_size(recipe_reader *rd, const ty_doc *node)
{
    ty_recipe *r = rd->r;
    r->batch_size = 32;
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    r->batch_auto = node->raw && strcmp(node->raw, "auto") == 0;
    if (r->batch_auto)
        return 0;
    if (ty_doc_int(node, &r->batch_size, rd->err) < 0)
        return ty_error_help(rd->err, "write a number of rows, or auto");
    if (r->batch_size >= 1 && r->batch_size <= 1 << 24)
        return 0;
    return ty_doc_error(node, rd->err, TY_E_RANGE, NULL,
                        "key \"batch_size\": expected auto, or an integer from 1 to %d, found %lld", 1 << 24,
                        (long long)r->batch_size);
}

static int read_top(recipe_reader *rd, const ty_doc *root)
{
    ty_recipe *r = rd->r;
    recipe_top t = {0};
    if (ty_recipe_bind(rd, "", ty_recipe_top_section.rows, ty_recipe_top_section.n_rows, root, &t) < 0)
        return -1;
    r->model = ty_recipe_path(rd, t.model);
    r->choice.signature = t.signature;
    r->choice.train_signature = t.train_signature;
    r->choice.layers = t.layers ? ty_recipe_path(rd, t.layers) : NULL;
    r->choice.architecture = t.architecture;
    r->choice.labels = t.labels;
    r->choice.seed = (uint64_t)t.seed;
    r->batch_rule = t.batch_rule;
    r->remat = t.remat;
    r->batch_base = t.batch_base;
    r->epochs = t.epochs;
    r->max_steps = t.max_steps;
    r->accumulate = t.accumulate;
    r->seed = t.seed;
    r->threads = t.threads;
    r->log_every = t.log_every;
    r->deterministic_strict = t.deterministic == 1;
    r->precision = (ty_precision)t.precision;
    r->match_eager = t.match_eager;
    r->update_every = t.update_every;
    r->unmerged_rows = t.unmerged_rows;
    r->tf32 = t.tf32;
    r->keep_float32_is_files = t.keep_float32 && t.keep_float32->source == rd->base;
    r->debug = (ty_debug)t.debug;
    r->strategy = (ty_strategy)t.strategy;
    r->processes_per_host = t.processes_per_host;
    r->mirrored = r->strategy == TY_STRATEGY_MIRRORED;
    r->cross_device = (ty_cross_device)t.cross_device;
    r->tensorboard = t.tensorboard;
    r->cache = t.cache && strcmp(t.cache, "none") != 0 ? ty_recipe_path(rd, t.cache) : t.cache;
    r->compiled = ty_recipe_path(rd, t.compiled);
    if (ty_recipe_check_own_step(rd, root) < 0 ||
        ty_recipe_read_device(rd, t.device, ty_doc_find(root, "device")) < 0 || read_batch_size(rd, t.batch_size) < 0 ||
        ty_recipe_read_memory(rd, t.memory, &r->memory_bytes) < 0 ||
        ty_recipe_read_memory(rd, t.data_memory, &r->data_memory_bytes) < 0 ||
        ty_recipe_read_data_threads(rd, t.data_threads) < 0 || read_inputs(rd, t.inputs) < 0 ||
        read_loss(rd, t.loss) < 0 || read_optimizer(rd, t.optimizer) < 0 || read_schedule(rd, t.schedule) < 0 ||
        read_warmup(rd, t.warmup) < 0 || read_clip(rd, t.clip) < 0 || read_lr_scale(rd, t.lr_scale) < 0 ||
        read_ema(rd, t.ema) < 0 || read_lora(rd, t.lora) < 0 || ty_recipe_read_data(rd, t.data) < 0 ||
        read_metrics(rd, t.metrics) < 0 || read_checkpoint(rd, t.checkpoint) < 0 ||
        ty_recipe_read_early_stopping(rd, t.early_stopping) < 0 || ty_recipe_read_export(rd, t.written) < 0 ||
        ty_recipe_read_distributed(rd, t.distributed) < 0 || ty_recipe_check_plateau(rd) < 0)
        return -1;
    choose_fields(rd);
    return ty_recipe_read_span(rd, t.evaluate_every, "evaluate_every", "1 epoch", &r->evaluate_every) < 0 ||
                   ty_recipe_read_names(rd, t.frozen, "frozen", &r->frozen, &r->n_frozen) < 0 ||
                   ty_recipe_read_names(rd, t.no_decay, "no_decay", &r->no_decay, &r->n_no_decay) < 0 ||
                   read_sparse_rows(rd, t.sparse_rows) < 0 ||
                   ty_recipe_read_names(rd, t.keep_float32, "keep_float32", &r->keep_float32, &r->n_keep_float32) < 0 ||
                   ty_recipe_read_names(rd, t.buffers, "buffers", &r->buffers, &r->n_buffers) < 0 ||
                   read_tied(rd, t.tied) < 0
               ? -1
               : 0;
}

static void warn_scalar(void *context, const ty_error *warning)
{
    (void)context;
    ty_log_warning("recipe", "%s: %s%s%s", warning->place, warning->message, warning->help[0] ? "; " : "",
                   warning->help);
}

static int read_tree(ty_doc *root, const ty_recipe_override *overrides, int n_overrides, ty_arena *a, ty_recipe *out,
                     ty_error *err)
{
    recipe_reader rd = {.a = a, .r = out, .err = err, .settings = TY_NEW_ARRAY(a, ty_setting, MAX_SETTINGS)};
    if (root->kind != TY_DOC_NULL && ty_doc_expect(root, TY_DOC_MAP, err) < 0)
        return ty_error_wrap(err, "recipe");
    if (ty_recipe_add_base(a, root, out->folder, overrides, n_overrides, &rd.base, err) < 0 ||
        ty_recipe_normalise(a, root, overrides, n_overrides, err) < 0 || read_top(&rd, root) < 0)
        return -1;
    out->settings = rd.settings;
    out->n_settings = rd.n_settings;
    return 0;
}

int ty_recipe_parse(const char *name, const char *text, size_t len, const char *folder,
                    const ty_recipe_override *overrides, int n_overrides, ty_arena *a, ty_recipe *out, ty_error *err)
{
    ty_doc *root;
    *out = (ty_recipe){.path = ty_arena_strdup(a, name), .folder = ty_arena_strdup(a, folder)};
    if (ty_yaml_parse(a, name, text, len, NULL, warn_scalar, NULL, &root, err) < 0)
        return -1;
    return read_tree(root, overrides, n_overrides, a, out, err);
}

int ty_recipe_load(const char *path, const ty_recipe_override *overrides, int n_overrides, ty_arena *a, ty_recipe *out,
                   ty_error *err)
{
    ty_doc *root;
    const char *slash = strrchr(path, '/');
    const char *folder = !slash ? "." : slash == path ? "/" : ty_arena_strndup(a, path, (size_t)(slash - path));
    *out = (ty_recipe){.path = ty_arena_strdup(a, path), .folder = folder};
    bool is_model = ty_recipe_is_model(path);
    if (is_model && !ty_file_exists(path))
        return ty_error_errno(err, TY_E_NONE, ENOENT, "model \"%s\"", path);
    if (is_model ? ty_recipe_of_model(path, a, &root, err) < 0
                 : ty_yaml_read(a, path, NULL, warn_scalar, NULL, &root, err) < 0)
        return ty_error_wrap(err, "recipe");
    return read_tree(root, overrides, n_overrides, a, out, err);
}

int64_t ty_span_steps(const ty_span *span, int64_t steps_per_epoch)
{
    return span->epochs ? span->n * steps_per_epoch : span->n;
}
