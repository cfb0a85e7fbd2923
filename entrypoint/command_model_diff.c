/* command_model_diff.c - `trainyard model diff A B`: what differs between two files, by name. */
#include "base/json.h"
#include "base/quantity.h"
#include "entrypoint/command_model.h"
#include "entrypoint/model_print.h"
#include "entrypoint/weight_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum status { SAME, DIFFERS, OTHER_TYPE, ONLY_FIRST, ONLY_SECOND, N_STATUSES } status;
static const char *const status_text[N_STATUSES] = {"same", "differs", "shape", "first", "second"};

typedef struct compared {
    const char *name;
    status status;
    const ty_listed_weight *side[2]; /* NULL: not there */
    double max_abs, relative, norm[2];
    bool has_numbers;
} compared;

/* Something beside the weights. */
typedef struct difference {
    const char *what, *side[2]; /* NULL: not there */
} difference;

enum { MAX_DIFFERENCES = 200 };

typedef struct diff {
    ty_arena *a;
    ty_weight_list list[2];
    compared *weight;
    int n_weights, n_of[N_STATUSES];
    difference difference[MAX_DIFFERENCES];
    int n_differences;
    double tolerance;
    bool all;
} diff;

/* ---- weights ---- */

static double number_at(const ty_listed_weight *w, int64_t i)
{
    uint8_t raw[8] = {0};
    double f64;
    float f32;
    uint16_t half;
    int64_t whole = 0;
    size_t n = ty_dtype_bytes((ty_dtype)w->type.dtype);
    memcpy(raw, (const char *)w->data + (size_t)i * n, n);
    switch ((ty_dtype)w->type.dtype) {
    case TY_F64:
        memcpy(&f64, raw, sizeof f64);
        return f64;
    case TY_F32:
        memcpy(&f32, raw, sizeof f32);
        return f32;
    case TY_F16:
        memcpy(&half, raw, sizeof half);
        return ty_f16_to_f32(half);
    case TY_BF16:
        memcpy(&half, raw, sizeof half);
        return ty_bf16_to_f32(half);
    default:
        break;
    }
    memcpy(&whole, raw, sizeof whole);
    if (ty_dtype_is_signed((ty_dtype)w->type.dtype) && n < 8)
        whole = (int64_t)((uint64_t)whole << (64 - 8 * n)) >> (64 - 8 * n);
    return (double)whole;
}

static bool have_the_same_bytes(const compared *c)
{
    return ty_type_same(&c->side[0]->type, &c->side[1]->type) &&
           memcmp(c->side[0]->data, c->side[1]->data, ty_type_bytes(&c->side[0]->type)) == 0;
}

static void compare_numbers(compared *c, double tolerance)
{
    int64_t n = ty_type_elems(&c->side[0]->type);
    double sum[2] = {0, 0}, change = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = number_at(c->side[0], i), y = number_at(c->side[1], i);
        double d = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
        if (d > c->max_abs || isnan(d))
            c->max_abs = isnan(d) ? INFINITY : d;
        sum[0] += x * x;
        sum[1] += y * y;
        change += d * d;
    }
    for (int k = 0; k < 2; k++)
        c->norm[k] = sqrt(sum[k]);
    c->relative = change == 0 ? 0 : sqrt(change) / c->norm[0];
    c->has_numbers = true;
    c->status = c->max_abs <= tolerance ? SAME : DIFFERS;
}

static void compare_weight(compared *c, double tolerance)
{
    const ty_listed_weight *x = c->side[0], *y = c->side[1];
    if (!x || !y)
        c->status = x ? ONLY_FIRST : ONLY_SECOND;
    else if (x->type.dtype >= TY_N_DTYPES || y->type.dtype >= TY_N_DTYPES || !ty_type_same_shape(&x->type, &y->type))
        c->status = OTHER_TYPE;
    else if (!x->data || !y->data)
        c->status = x->data == y->data ? SAME : x->data ? ONLY_FIRST : ONLY_SECOND;
    else if (ty_type_elems(&x->type) == 0)
        c->status = SAME;
    else {
        compare_numbers(c, tolerance);
        if (c->status == SAME && tolerance == 0 && x->type.dtype != y->type.dtype)
            c->status = OTHER_TYPE;
        else if (c->status == DIFFERS && have_the_same_bytes(c)) /* NaN */
            c->status = SAME;
    }
}

/* Both lists are sorted by name. */
static void compare_weights(diff *d)
{
    const ty_weight_list *x = &d->list[0], *y = &d->list[1];
    d->weight = TY_NEW_ARRAY(d->a, compared, x->n + y->n + 1);
    for (int i = 0, k = 0; i < x->n || k < y->n;) {
        int order = i == x->n ? 1 : k == y->n ? -1 : strcmp(x->weight[i].name, y->weight[k].name);
        compared *c = &d->weight[d->n_weights++];
        c->side[0] = order <= 0 ? &x->weight[i++] : NULL;
        c->side[1] = order >= 0 ? &y->weight[k++] : NULL;
        c->name = c->side[0] ? c->side[0]->name : c->side[1]->name;
        compare_weight(c, d->tolerance);
        d->n_of[c->status]++;
    }
}

/* ---- what else ---- */

static void note(diff *d, const char *what, const char *first, const char *second)
{
    bool same = first && second && strcmp(first, second) == 0;
    if ((!first && !second) || same || d->n_differences == MAX_DIFFERENCES)
        return;
    d->difference[d->n_differences++] = (difference){what, {first, second}};
}

static const char *values_text(diff *d, const ty_model *m, int n, const ty_model_value *(*at)(const ty_model *m, int i))
{
    const char *text = "";
    char type[320];
    for (int i = 0; i < n; i++)
        text = ty_arena_printf(d->a, "%s%s%s %s", text, i ? ", " : "", at(m, i)->name,
                               ty_model_value_text(at(m, i), type, sizeof type));
    return text;
}

static const char *line_of(diff *d, const char **text)
{
    if (!*text || !**text)
        return NULL;
    size_t n = strcspn(*text, "\n");
    const char *line = ty_arena_strndup(d->a, *text, n);
    *text += n + ((*text)[n] == '\n');
    return line;
}

/* Line by line: settings come in one order. */
static void compare_recipes(diff *d, const char *first, const char *second)
{
    if ((!first && !second) || (first && second && strcmp(first, second) == 0))
        return;
    if (!first || !second) {
        note(d, "training settings", first ? "there" : NULL, second ? "there" : NULL);
        return;
    }
    while (*first || *second) {
        const char *x = line_of(d, &first), *y = line_of(d, &second);
        note(d, "training settings", x, y);
    }
}

static void compare_models(diff *d)
{
    const ty_model *x = d->list[0].model, *y = d->list[1].model;
    if (!x || !y)
        return;
    note(d, "inputs", values_text(d, x, ty_model_n_inputs(x), ty_model_input),
         values_text(d, y, ty_model_n_inputs(y), ty_model_input));
    note(d, "outputs", values_text(d, x, ty_model_n_outputs(x), ty_model_output),
         values_text(d, y, ty_model_n_outputs(y), ty_model_output));
    compare_recipes(d, ty_model_recipe(x), ty_model_recipe(y));
    if (strcmp(ty_model_format(x), ty_model_format(y)) != 0)
        return; /* nodes and what files say of themselves differ then, whatever they mean */
    char nodes[2][32];
    for (int k = 0; k < 2; k++)
        ty_count_text(ty_model_n_nodes(d->list[k].model), nodes[k], sizeof nodes[k]);
    note(d, "nodes", ty_arena_strdup(d->a, nodes[0]), ty_arena_strdup(d->a, nodes[1]));
    for (int i = 0; i < ty_model_n_facts(x) && i < ty_model_n_facts(y); i++)
        if (strcmp(ty_model_fact_at(x, i)->what, ty_model_fact_at(y, i)->what) == 0)
            note(d, ty_model_fact_at(x, i)->what, ty_model_fact_at(x, i)->text, ty_model_fact_at(y, i)->text);
}

static bool is_same(const diff *d)
{
    return d->n_differences == 0 && d->n_of[SAME] == d->n_weights;
}

/* ---- text ---- */

static void print_weight(const compared *c)
{
    char x[160], y[160];
    for (int k = 0; k < 2; k++)
        if (c->side[k])
            ty_type_text(&c->side[k]->type, k ? y : x, sizeof x);
    if (c->status == ONLY_FIRST || c->status == ONLY_SECOND)
        printf("  %-44s only in the %s file: %s\n", c->name, status_text[c->status], c->status == ONLY_FIRST ? x : y);
    else if (c->status == OTHER_TYPE)
        printf("  %-44s %s, then %s\n", c->name, x, y);
    else if (c->has_numbers)
        printf("  %-44s %-22s %11.4g %11.4g %11.5g %11.5g\n", c->name, x, c->max_abs, c->relative, c->norm[0],
               c->norm[1]);
}

static void print_text(const diff *d)
{
    for (int i = 0; i < d->n_differences; i++)
        printf("%s:\n  - %s\n  + %s\n", d->difference[i].what,
               d->difference[i].side[0] ? d->difference[i].side[0] : "(nothing)",
               d->difference[i].side[1] ? d->difference[i].side[1] : "(nothing)");
    int shown = d->all ? d->n_weights : d->n_weights - d->n_of[SAME];
    if (shown > 0)
        printf("  %-44s %-22s %11s %11s %11s %11s\n", "weight", "type", "greatest", "relative", "norm", "then");
    for (int i = 0; i < d->n_weights; i++)
        if (d->all || d->weight[i].status != SAME)
            print_weight(&d->weight[i]);
    printf("%d weight%s the same, %d differ", d->n_of[SAME], d->n_of[SAME] == 1 ? "" : "s", d->n_of[DIFFERS]);
    if (d->n_of[OTHER_TYPE])
        printf(", %d of another type", d->n_of[OTHER_TYPE]);
    if (d->n_of[ONLY_FIRST])
        printf(", %d only in the first file", d->n_of[ONLY_FIRST]);
    if (d->n_of[ONLY_SECOND])
        printf(", %d only in the second", d->n_of[ONLY_SECOND]);
    puts("");
    if (d->n_weights > 0 && d->n_of[ONLY_FIRST] + d->n_of[ONLY_SECOND] == d->n_weights)
        puts("note: no weight has the same name in both files");
}

/* ---- JSON ---- */

static void put_weight(ty_json_writer *w, const compared *c)
{
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "name", c->name);
    ty_json_put_string(w, "status", status_text[c->status]);
    if (c->has_numbers) {
        ty_json_put_float(w, "max_abs", c->max_abs);
        ty_json_put_float(w, "relative", c->relative);
        ty_json_put_float(w, "norm_first", c->norm[0]);
        ty_json_put_float(w, "norm_second", c->norm[1]);
    }
    ty_json_close(w);
}

static void print_json(const diff *d)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, (size_t)64 << 20);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "schema", 1);
    ty_json_put_bool(&w, "same", is_same(d));
    ty_json_open_list(&w, "differences");
    for (int i = 0; i < d->n_differences; i++) {
        ty_json_open_map(&w, NULL);
        ty_json_put_string(&w, "what", d->difference[i].what);
        ty_json_put_string(&w, "first", d->difference[i].side[0]);
        ty_json_put_string(&w, "second", d->difference[i].side[1]);
        ty_json_close(&w);
    }
    ty_json_close(&w);
    ty_json_open_list(&w, "weights");
    for (int i = 0; i < d->n_weights; i++)
        put_weight(&w, &d->weight[i]);
    ty_json_close(&w);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

/* ---- the verb ---- */

static int parse_tolerance(const char *text, double *out, ty_error *err)
{
    char *end;
    *out = text ? strtod(text, &end) : 0;
    if (!text || (*end == 0 && end != text && *out >= 0 && !isinf(*out)))
        return 0;
    return ty_error_set(err, TY_E_USAGE, "--tolerance needs a number of at least 0, found \"%s\"", text);
}

int ty_model_diff(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    diff *d = TY_NEW(a, diff);
    d->a = a;
    d->all = given->value[TY_MODEL_ALL] != NULL;
    int rc = parse_tolerance(given->value[TY_MODEL_TOLERANCE], &d->tolerance, err);
    for (int k = 0; k < 2 && rc == 0; k++)
        rc = ty_weight_list_open(given->words[1 + k], NULL, a, &d->list[k], err);
    if (rc == 0) {
        compare_weights(d);
        compare_models(d);
        (given->value[TY_MODEL_JSON] ? print_json : print_text)(d);
        rc = !is_same(d);
    }
    for (int k = 0; k < 2; k++)
        ty_weight_list_close(&d->list[k]);
    return rc;
}
