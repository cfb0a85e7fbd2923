/* spec.c - matching names, types and shapes of recipe, model and data. */
#include "entrypoint/spec.h"

#include "base/suggest.h"
#include "entrypoint/found.h"
#include "entrypoint/tally.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FEEDS = 256 };

typedef struct planner {
    const ty_recipe *r;
    const ty_model *m;
    ty_arena *a;
    ty_feed *feeds;
    int n_feeds;
    ty_field *fields;
    ty_error *err;
} planner;

/* ---- names ---- */

static ty_field *find_field(const planner *p, const char *name)
{
    for (int i = 0; i < p->r->train.n_fields; i++)
        if (strcmp(p->fields[i].name, name) == 0)
            return &p->fields[i];
    return NULL;
}

static const ty_model_value *find_input(const planner *p, const char *name)
{
    for (int i = 0; i < ty_model_n_inputs(p->m); i++)
        if (strcmp(ty_model_input(p->m, i)->name, name) == 0)
            return ty_model_input(p->m, i);
    return NULL;
}

static const ty_model_value *find_output(const planner *p, const char *name)
{
    for (int i = 0; i < ty_model_n_outputs(p->m); i++)
        if (strcmp(ty_model_output(p->m, i)->name, name) == 0)
            return ty_model_output(p->m, i);
    return NULL;
}

static void add_name(char *list, size_t n, const char *name)
{
    size_t len = strlen(list);
    snprintf(list + len, n - len, "%s\"%s\"", len ? ", " : "", name);
}

static void list_fields(const planner *p, char list[256])
{
    list[0] = 0;
    for (int i = 0; i < p->r->train.n_fields; i++)
        add_name(list, 256, p->fields[i].name);
}

static void list_inputs(const planner *p, char list[256])
{
    list[0] = 0;
    for (int i = 0; i < ty_model_n_inputs(p->m); i++)
        add_name(list, 256, ty_model_input(p->m, i)->name);
}

static void list_outputs(const planner *p, char list[256])
{
    list[0] = 0;
    for (int i = 0; i < ty_model_n_outputs(p->m); i++)
        add_name(list, 256, ty_model_output(p->m, i)->name);
}

/* An error at a place of the recipe if there is one. */
static int fault(const planner *p, const ty_doc *at, ty_code code, const char *message)
{
    if (at)
        return ty_doc_error(at, p->err, code, NULL, "%s", message);
    ty_error_set(p->err, code, "%s", message);
    return ty_error_at(p->err, "%s", p->r->path);
}

static int unknown_name(const planner *p, const ty_doc *at, const char *what, const char *name, const char *list,
                        const char *whose)
{
    char message[512];
    snprintf(message, sizeof message, "%s has no %s \"%.200s\"", whose, what, name);
    fault(p, at, TY_E_CONFIG, message);
    return ty_error_help(p->err, "%ss of %s: %s", what, whose, list);
}

static bool is_fed_to_input(const planner *p, const char *field)
{
    for (int i = 0; i < p->n_feeds; i++)
        if (p->feeds[i].input && strcmp(p->feeds[i].field, field) == 0)
            return true;
    return false;
}

/* ---- feeds ---- */

static int add_feed(planner *p, const ty_feed *feed)
{
    for (int i = 0; i < p->n_feeds; i++)
        if (strcmp(p->feeds[i].name, feed->name) == 0 && strcmp(p->feeds[i].field, feed->field) == 0 && !feed->input)
            return 0;
    if (p->n_feeds == MAX_FEEDS)
        return ty_error_set(p->err, TY_E_LIMIT, "more than %d inputs and targets", MAX_FEEDS);
    p->feeds[p->n_feeds++] = *feed;
    return 0;
}

static const ty_recipe_input *declared_input(const planner *p, const char *name)
{
    for (int i = 0; i < p->r->n_inputs; i++)
        if (strcmp(p->r->inputs[i].input, name) == 0)
            return &p->r->inputs[i];
    return NULL;
}

static bool is_named_target(const planner *p, const char *field)
{
    if (p->r->train.target && strcmp(p->r->train.target, field) == 0)
        return true;
    for (int i = 0; i < p->r->n_loss; i++) {
        const ty_loss_term *t = &p->r->loss[i].term;
        const char *const names[] = {t->target, t->sample_weight, t->input_lengths, t->target_lengths};
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (names[k] && strcmp(names[k], field) == 0)
                return true;
    }
    return false;
}

/* Weights of samples and lengths are named, and no target then. */
static bool is_named_beside(const planner *p, const char *field)
{
    for (int i = 0; i < p->r->n_loss; i++) {
        const ty_loss_term *t = &p->r->loss[i].term;
        const char *const names[] = {t->sample_weight, t->input_lengths, t->target_lengths};
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (names[k] && strcmp(names[k], field) == 0)
                return true;
    }
    return false;
}

/* One model input without a field of its name, and one field that is no target: they belong together. */
static const char *only_candidate(const planner *p, bool by_usual_name)
{
    const char *candidate = NULL;
    for (int i = 0; i < p->r->train.n_fields; i++) {
        const char *name = p->fields[i].name;
        if (is_named_target(p, name) || (by_usual_name && ty_found_is_target(name)))
            continue;
        if (candidate)
            return NULL;
        candidate = name;
    }
    return candidate;
}

/* The field that input i is fed with where nobody says so and none has its name. */
static const char *unnamed_field(const planner *p, int i)
{
    if (ty_model_n_inputs(p->m) == 1) {
        const char *only = only_candidate(p, false);
        return only ? only : only_candidate(p, true);
    }
    for (int k = 0; k < p->r->train.n_fields; k++)
        if (ty_found_is_number(p->fields[k].name, 'x', i))
            return p->fields[k].name;
    return NULL;
}

static int plan_input(planner *p, int number)
{
    const ty_model_value *input = ty_model_input(p->m, number);
    const ty_recipe_input *declared = declared_input(p, input->name);
    const char *field = declared ? declared->field : input->name;
    char fields[256], message[512];
    list_fields(p, fields);
    if (!declared && !find_field(p, field)) {
        const char *candidate = unnamed_field(p, number);
        snprintf(message, sizeof message, "nothing feeds the model input \"%.200s\"", input->name);
        if (!candidate) {
            fault(p, NULL, TY_E_CONFIG, message);
            return ty_error_help(p->err, "say inputs: {%s: FIELD}; fields: %s", input->name, fields);
        }
        field = candidate;
    }
    if (!find_field(p, field))
        return unknown_name(p, declared ? declared->at : NULL, "field", field, fields, "data.train");
    return add_feed(
        p, &(ty_feed){.name = input->name, .field = field, .input = input, .at = declared ? declared->at : NULL});
}

static int plan_inputs(planner *p)
{
    char inputs[256];
    list_inputs(p, inputs);
    for (int i = 0; i < p->r->n_inputs; i++)
        if (!find_input(p, p->r->inputs[i].input))
            return unknown_name(p, p->r->inputs[i].at, "input", p->r->inputs[i].input, inputs, "the model");
    for (int i = 0; i < ty_model_n_inputs(p->m); i++)
        if (plan_input(p, i) < 0)
            return -1;
    return 0;
}

/* The output a term reads: named, or the only one. */
static int resolve_output(planner *p, const ty_doc *at, const char **name, const ty_model_value **out)
{
    char outputs[256];
    ty_composite_count count;
    if (ty_model_n_outputs(p->m) == 0 && ty_model_count_composites(p->m, 2, &count, p->err) < 0)
        return -1; /* some layer is not known */
    list_outputs(p, outputs);
    if (!*name && ty_model_n_outputs(p->m) != 1) {
        fault(p, at, TY_E_CONFIG, "the model has several outputs: name the one to use");
        return ty_error_help(p->err, "outputs of the model: %s", outputs);
    }
    if (!*name)
        *name = ty_model_output(p->m, 0)->name;
    *out = find_output(p, *name);
    return *out ? 0 : unknown_name(p, at, "output", *name, outputs, "the model");
}

static int output_number(const planner *p, const ty_model_value *output)
{
    for (int i = 0; i < ty_model_n_outputs(p->m); i++)
        if (ty_model_output(p->m, i) == output)
            return i;
    return -1;
}

/* How well a field goes with an output as its target: by the output's name, by number, by a usual name. */
static int target_likeness(const planner *p, const ty_model_value *output, const char *field)
{
    if (output && strcmp(field, output->name) == 0)
        return 3;
    if (output && ty_found_is_number(field, 'y', output_number(p, output)))
        return 2;
    return ty_model_n_outputs(p->m) == 1 && ty_found_is_target(field);
}

/* Of the fields that feed no input, the only one or the one most like a target of the output; NULL: there is none or
 * no best one. *n: how many there are. */
static const char *unnamed_target(const planner *p, const ty_model_value *output, int *n)
{
    const char *best = NULL;
    int likeness = -1;
    *n = 0;
    for (int i = 0; i < p->r->train.n_fields; i++) {
        const char *name = p->fields[i].name;
        int is_like = target_likeness(p, output, name);
        if (is_fed_to_input(p, name) || is_named_beside(p, name))
            continue;
        ++*n;
        best = is_like == likeness ? NULL : is_like > likeness ? name : best;
        likeness = is_like > likeness ? is_like : likeness;
    }
    return best;
}

/* output: that the target is compared with; NULL: of none. */
static int resolve_target(planner *p, const ty_doc *at, const ty_model_value *output, const char **field)
{
    char fields[256];
    int n;
    list_fields(p, fields);
    if (!*field && output && ty_model_n_outputs(p->m) == 1)
        *field = p->r->train.target;
    if (*field)
        return find_field(p, *field) ? 0 : unknown_name(p, at, "field", *field, fields, "data.train");
    *field = unnamed_target(p, output, &n);
    if (*field)
        return 0;
    if (n > 0) {
        fault(p, at, TY_E_CONFIG, "several fields could be the target: name the one to use");
        return ty_error_help(p->err, "fields of data.train: %s", fields);
    }
    fault(p, at, TY_E_CONFIG, "no field is left for the target: all feed inputs of the model");
    return ty_error_help(p->err, "declare one more field in data.train.fields, or name one of %s as the target",
                         fields);
}

/* Target inputs carry their field's name, unless a model input has that name already. */
static const char *target_name(const planner *p, const char *field)
{
    return find_input(p, field) ? ty_arena_printf(p->a, "target.%s", field) : field;
}

static bool takes_labels(ty_loss_kind kind)
{
    return kind == TY_LOSS_SOFTMAX_CROSS_ENTROPY || kind == TY_LOSS_NLL || kind == TY_LOSS_MULTI_MARGIN ||
           kind == TY_LOSS_CTC || kind == TY_LOSS_KERAS_SPARSE_CROSSENTROPY;
}

/* A field of whole numbers, one for each row: how long it is. */
static int plan_lengths(planner *p, const ty_recipe_loss *loss, const ty_model_value *output, const char **name)
{
    const char *field = *name;
    if (!field)
        return 0;
    if (resolve_target(p, loss->at, NULL, &field) < 0)
        return -1;
    *name = target_name(p, field);
    return add_feed(
        p,
        &(ty_feed){
            .name = *name, .field = field, .output = output, .is_label = true, .at = loss->at, .ignore_index = -100});
}

static bool is_penalty(const ty_loss_term *t)
{
    return t->kind == TY_LOSS_L1 || t->kind == TY_LOSS_L2;
}

static int plan_term(planner *p, const ty_recipe_loss *loss, ty_loss_term *term)
{
    const ty_model_value *output;
    *term = loss->term;
    if (is_penalty(term))
        return 0;
    if (resolve_output(p, loss->at, &term->output, &output) < 0)
        return -1;
    if (term->other && resolve_output(p, loss->at, &term->other, &(const ty_model_value *){NULL}) < 0)
        return -1;
    if (term->kind == TY_LOSS_MEAN) {
        term->target = NULL;
        return 0;
    }
    const char *field = term->target, *weights = term->sample_weight;
    if (resolve_target(p, loss->at, output, &field) < 0)
        return -1;
    term->target = target_name(p, field);
    ty_feed feed = {.name = term->target,
                    .field = field,
                    .output = output,
                    .is_label = takes_labels(term->kind) && !term->dense_labels,
                    .at = loss->at,
                    .ignore_index = term->ignore_index};
    if (add_feed(p, &feed) < 0 || plan_lengths(p, loss, output, &term->input_lengths) < 0 ||
        plan_lengths(p, loss, output, &term->target_lengths) < 0)
        return -1;
    if (!weights)
        return 0;
    if (resolve_target(p, loss->at, NULL, &weights) < 0)
        return -1;
    term->sample_weight = target_name(p, weights);
    return add_feed(p, &(ty_feed){.name = term->sample_weight, .field = weights, .output = output, .at = loss->at});
}

/* The term whose output and target a metric takes: the first with a target that reads the metric's output, else the
 * first with one. */
static const ty_loss_term *metric_term(const planner *p, const ty_loss_term *loss, const char *output)
{
    const ty_loss_term *first = NULL;
    for (int i = 0; i < p->r->n_loss; i++) {
        if (loss[i].target && output && loss[i].output && strcmp(loss[i].output, output) == 0)
            return &loss[i];
        first = first || !loss[i].target ? first : &loss[i];
    }
    return first;
}

/* Metrics read what a term reads, unless told otherwise. */
static int plan_metric(planner *p, const ty_loss_term *loss, const ty_recipe_metric *metric, ty_metric *out)
{
    const ty_model_value *output;
    const ty_loss_term *first = metric_term(p, loss, metric->output);
    *out = (ty_metric){.kind = metric->kind,
                       .name = metric->name,
                       .output = metric->output,
                       .target = metric->target,
                       .k = metric->k,
                       .average = metric->average,
                       .threshold = metric->threshold};
    if (!out->output && first)
        out->output = first->output;
    for (int i = 0; out->output && i < p->r->n_loss; i++)
        if (loss[i].target && loss[i].output && strcmp(loss[i].output, out->output) == 0) {
            first = &loss[i];
            break;
        }
    if (resolve_output(p, metric->at, &out->output, &output) < 0)
        return -1;
    if (!out->target && first) {
        out->target = first->target;
        return 0;
    }
    const char *field = out->target;
    if (resolve_target(p, metric->at, output, &field) < 0)
        return -1;
    out->target = target_name(p, field);
    return add_feed(p, &(ty_feed){.name = out->target,
                                  .field = field,
                                  .output = output,
                                  .at = metric->at,
                                  .is_label = !ty_tally_is_of_numbers(metric->kind),
                                  .ignore_index = -100});
}

/* ---- types that the recipe left open ---- */

static int settle_dtype(planner *p, const ty_feed *feed)
{
    ty_field *field = find_field(p, feed->field);
    ty_dtype wanted = feed->input ? feed->input->dtype : feed->is_label ? TY_I64 : feed->output->dtype;
    if (!field->dtype_given) {
        field->dtype = wanted;
        field->dtype_given = true;
        return 0;
    }
    bool fits = field->dtype == wanted || (feed->is_label && field->dtype == TY_I32);
    if (fits || (!feed->input && !feed->is_label))
        return 0;
    char message[512];
    snprintf(message, sizeof message, "field \"%.100s\" is %s, but %s \"%.100s\" needs %s", field->name,
             ty_dtype_text(field->dtype), feed->input ? "the model input" : "the class loss on", feed->name,
             ty_dtype_text(wanted));
    fault(p, feed->at, TY_E_TYPE, message);
    return ty_error_help(p->err, "set type: %s for the field, or leave the type out", ty_dtype_text(wanted));
}

int ty_spec_plan_make(const ty_recipe *r, const ty_model *m, ty_arena *a, ty_spec_plan *out, ty_error *err)
{
    planner p = {.r = r, .m = m, .a = a, .err = err, .feeds = TY_NEW_ARRAY(a, ty_feed, MAX_FEEDS)};
    p.fields = ty_arena_copy(a, r->train.fields, (size_t)r->train.n_fields * sizeof *p.fields);
    ty_loss_term *loss = TY_NEW_ARRAY(a, ty_loss_term, r->n_loss);
    ty_metric *metrics = TY_NEW_ARRAY(a, ty_metric, r->n_metrics);
    if (plan_inputs(&p) < 0)
        return -1;
    for (int i = 0; i < r->n_loss; i++)
        if (plan_term(&p, &r->loss[i], &loss[i]) < 0)
            return -1;
    for (int i = 0; i < r->n_metrics; i++)
        if (plan_metric(&p, loss, &r->metrics[i], &metrics[i]) < 0)
            return -1;
    for (int i = 0; i < p.n_feeds; i++)
        if (settle_dtype(&p, &p.feeds[i]) < 0)
            return -1;
    *out = (ty_spec_plan){.feeds = p.feeds,
                          .n_feeds = p.n_feeds,
                          .fields = p.fields,
                          .n_fields = r->train.n_fields,
                          .loss = loss,
                          .metrics = metrics};
    return 0;
}

/* ---- shapes ---- */

/* {batch, sample dims...} */
static ty_type batch_type(const ty_type *sample, int64_t batch)
{
    int64_t dim[TY_MAX_RANK] = {batch};
    memcpy(dim + 1, sample->dim, sizeof dim[0] * sample->rank);
    return ty_type_make(sample->dtype, sample->rank + 1, dim);
}

/* A flat row of numbers (CSV columns) takes the shape that the model wants, if the count fits and it is known. An array
 * with axes of its own does not: its order might be another one. */
bool ty_spec_take_shape(const ty_model_value *wanted, ty_type *type)
{
    int64_t elems = 1;
    if (type->rank > 2 || wanted->rank < 1)
        return false;
    for (int i = 1; i < wanted->rank; i++) {
        if (wanted->dim[i] < 1)
            return false;
        elems *= wanted->dim[i];
    }
    if (elems * type->dim[0] != ty_type_elems(type))
        return false;
    int64_t dim[TY_MAX_RANK] = {type->dim[0]};
    memcpy(dim + 1, wanted->dim + 1, sizeof dim[0] * (size_t)(wanted->rank - 1));
    *type = ty_type_make(type->dtype, wanted->rank, dim);
    return true;
}

static bool fits_input(const ty_model_value *input, const ty_type *type)
{
    if (input->rank < 0) /* the file does not tell */
        return true;
    if (input->rank != type->rank)
        return false;
    for (int i = 0; i < input->rank; i++)
        if (input->dim[i] >= 0 && input->dim[i] != type->dim[i])
            return false;
    return true;
}

static void input_text(const ty_model_value *v, char *out, size_t n)
{
    snprintf(out, n, "%s[", ty_dtype_text(v->dtype));
    for (int i = 0; i < v->rank; i++) {
        size_t len = strlen(out);
        if (v->dim[i] >= 0)
            snprintf(out + len, n - len, "%s%lld", i ? "," : "", (long long)v->dim[i]);
        else
            snprintf(out + len, n - len, "%s%.40s", i ? "," : "", v->dim_name[i] ? v->dim_name[i] : "?");
    }
    snprintf(out + strlen(out), n - strlen(out), "]");
}

static int refuse_shape(const ty_recipe *r, int replicas, const ty_feed *feed, const ty_type *type, ty_error *err)
{
    char found[160], wanted[320];
    input_text(feed->input, wanted, sizeof wanted);
    ty_error_set(err, TY_E_SHAPE, "model input \"%s\" is %s, but field \"%s\" gives %s", feed->name, wanted,
                 feed->field, ty_type_text(type, found, sizeof found));
    ty_error_at(err, "%s", r->path);
    if (feed->input->rank > 0 && feed->input->dim[0] >= 0 && feed->input->dim[0] != type->dim[0])
        return ty_error_help(err,
                             "the model's batch dimension is fixed: set batch_size: %lld, or export it with a free "
                             "batch dimension",
                             (long long)feed->input->dim[0] * replicas);
    return ty_error_help(err,
                         "a batch has %lld rows; set the field's columns, or its shape without the batch, to what "
                         "the model expects",
                         (long long)type->dim[0]);
}

static int bind_feed(const ty_recipe *r, int replicas, const ty_feed *feed, const ty_dataset *data, ty_binding *out,
                     ty_error *err)
{
    int field = ty_dataset_find(data, feed->field);
    if (field < 0)
        return ty_error_set(err, TY_E_INTERNAL, "the data set has lost field \"%s\"", feed->field);
    if (data->field[field].type.rank + 1 > TY_MAX_RANK)
        return ty_error_set(err, TY_E_SHAPE, "field \"%s\" has too many dimensions", feed->field);
    ty_type type = batch_type(&data->field[field].type, r->batch_size / replicas);
    if (feed->input && !fits_input(feed->input, &type) &&
        (!ty_spec_take_shape(feed->input, &type) || !fits_input(feed->input, &type)))
        return refuse_shape(r, replicas, feed, &type, err);
    if (feed->output && !feed->is_label)
        ty_spec_take_shape(feed->output, &type);
    *out = (ty_binding){.name = feed->name, .type = type};
    return 0;
}

/* ---- schedule ---- */

static const double *resolve_boundaries(const ty_recipe_schedule *s, int64_t steps_per_epoch, ty_arena *a)
{
    double *steps = TY_NEW_ARRAY(a, double, s->n_boundaries + 1);
    for (int i = 0; i < s->n_boundaries; i++)
        steps[i] = (double)ty_span_steps(&s->boundaries[i], steps_per_epoch);
    return steps;
}

static ty_schedule resolve_schedule(const ty_recipe_schedule *s, int64_t steps_per_epoch, int64_t total_steps,
                                    ty_arena *a)
{
    int64_t ramp = ty_span_steps(&s->ramp, steps_per_epoch);
    int64_t warmup = ty_span_steps(&s->warmup, steps_per_epoch);
    int64_t decay = ty_span_steps(&s->decay, steps_per_epoch);
    int64_t total = ty_span_steps(&s->total, steps_per_epoch);
    int64_t whole = total_steps > ramp ? total_steps - ramp : 1;
    int64_t rest = whole > warmup ? whole - warmup : 1;
    return (ty_schedule){
        .kind = s->kind,
        .step_size = (double)ty_span_steps(&s->step_size, steps_per_epoch),
        .gamma = s->gamma,
        .total = (double)(total > 0 ? total : whole),
        .power = s->power,
        .warmup = (double)warmup,
        .start_factor = s->start_factor,
        .cosine = (double)(decay > 0 ? decay : rest),
        .min_lr = s->final_lr,
        .pct_start = s->pct_start,
        .div_factor = s->div_factor,
        .final_div_factor = s->final_div_factor,
        .anneal_linear = s->anneal_linear,
        .cycle = (double)ty_span_steps(&s->cycle, steps_per_epoch),
        .cycle_mult = s->cycle_mult,
        .decay_steps = s->decay_steps,
        .decay_rate = s->decay_rate,
        .alpha = s->alpha,
        .m_mul = s->m_mul,
        .target = s->target,
        .staircase = s->staircase,
        .cycles = s->cycles,
        .has_target = s->has_target,
        .boundaries = resolve_boundaries(s, steps_per_epoch, a),
        .factors = s->factors,
        .n_boundaries = s->n_boundaries,
        .factor = s->factor,
        .patience = (double)s->patience,
        .threshold = s->threshold,
        .cooldown = (double)s->cooldown,
        .maximize = s->maximize,
        .threshold_absolute = s->threshold_absolute,
        .ramp = (double)ramp,
        .ramp_start = s->ramp_start,
    };
}

static int check_boundaries(const ty_recipe *r, const ty_schedule *s, ty_error *err)
{
    for (int i = 1; i < s->n_boundaries; i++)
        if (!(s->boundaries[i] > s->boundaries[i - 1]))
            return ty_doc_error(r->schedule.boundaries[i].at, err, TY_E_RANGE, NULL,
                                "boundaries must rise: step %g follows step %g", s->boundaries[i],
                                s->boundaries[i - 1]);
    return 0;
}

/* Fields of the validation data that were declared on their own get the types that the training fields were given. */
const ty_field *ty_spec_fields(const ty_recipe *r, const ty_spec_plan *plan, const ty_recipe_data *d, ty_arena *a)
{
    if (d->fields == r->train.fields)
        return plan->fields;
    ty_field *fields = ty_arena_copy(a, d->fields, (size_t)d->n_fields * sizeof *fields);
    for (int i = 0; i < d->n_fields; i++)
        for (int k = 0; k < plan->n_fields && !fields[i].dtype_given; k++)
            if (strcmp(fields[i].name, plan->fields[k].name) == 0) {
                fields[i].dtype = plan->fields[k].dtype;
                fields[i].dtype_given = plan->fields[k].dtype_given;
            }
    return fields;
}

int ty_spec_check_data(const ty_recipe *r, const ty_spec_plan *plan, const ty_dataset *data, ty_error *err)
{
    ty_binding bound;
    int replicas = r->mirrored && r->n_gpus > 0 ? r->n_gpus : 1; /* that are known without asking the machine */
    for (int i = 0; i < plan->n_feeds; i++)
        if (bind_feed(r, replicas, &plan->feeds[i], data, &bound, err) < 0)
            return -1;
    return 0;
}

static const ty_dtype spec_wires[] = {
    [TY_RECIPE_WIRE_NONE] = TY_F32, [TY_RECIPE_WIRE_FLOAT16] = TY_F16, [TY_RECIPE_WIRE_BFLOAT16] = TY_BF16};

int ty_spec_build(const ty_recipe *r, const ty_spec_plan *plan, const ty_dataset *data, int replicas,
                  int64_t steps_per_epoch, int64_t total_steps, bool has_validation, ty_arena *a, ty_train_spec *out,
                  ty_error *err)
{
    ty_binding *inputs = TY_NEW_ARRAY(a, ty_binding, plan->n_feeds);
    for (int i = 0; i < plan->n_feeds; i++)
        if (bind_feed(r, replicas, &plan->feeds[i], data, &inputs[i], err) < 0)
            return -1;
    *out = (ty_train_spec){
        .inputs = inputs,
        .n_inputs = plan->n_feeds,
        .loss = plan->loss,
        .n_loss = r->n_loss,
        .optimizer = r->optimizer,
        .schedule = resolve_schedule(&r->schedule, steps_per_epoch, total_steps, a),
        .clip = r->clip,
        .clip_max = r->clip_max,
        .lora = r->lora,
        .frozen = r->frozen,
        .n_frozen = r->n_frozen,
        .no_decay = r->no_decay,
        .n_no_decay = r->n_no_decay,
        .sparse_all = r->sparse_all,
        .sparse_rows = r->sparse_rows,
        .n_sparse_rows = r->n_sparse_rows,
        .lr_scale = r->lr_scale,
        .n_lr_scale = r->n_lr_scale,
        .ema_decay = r->ema_decay,
        .use_ema = r->use_ema == TY_EMA_USED,
        .ema_written = r->use_ema != TY_EMA_KEPT,
        .ema_overwrite = r->ema_overwrite,
        .update_every = (int)r->update_every,
        .unmerged_rows = r->unmerged_rows,
        .buffers = r->buffers,
        .n_buffers = r->n_buffers,
        .tied = r->tied,
        .n_tied = r->n_tied,
        .metrics = plan->metrics,
        .n_metrics = r->n_metrics,
        .accumulate = (int)r->accumulate,
        .replicas = replicas,
        .bucket_bytes = r->distributed.bucket_bytes,
        .wire = spec_wires[r->distributed.wire],
        .optimizer_sharding = r->distributed.optimizer_sharding && replicas > 1,
        .batch_norm_across = r->distributed.sync_batch_norm,
        .seed = (uint64_t)r->seed,
        .precision = r->precision,
        .keep_float32 = r->keep_float32,
        .n_keep_float32 = r->n_keep_float32,
        .keep_float32_must_meet = !r->keep_float32_is_files,
        .match_eager = r->match_eager,
        .batch_norm_statistics = true,
        .eval_valid_rows = has_validation,
        .train_valid_rows = r->train.remainder == TY_REMAINDER_JOIN,
        .no_eval = !has_validation,
        .no_outputs = true,
    };
    out->lora.memory = a;
    return check_boundaries(r, &out->schedule, err);
}
