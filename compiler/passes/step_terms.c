/* step_terms.c - what a recipe names of a step: terms of the loss, and evaluation with its metrics. See step_draft.h.
 */
#include "compiler/passes/step_draft.h"

#include "base/suggest.h"
#include "compiler/ir/build.h"
#include "compiler/passes/across.h"
#include "compiler/passes/loss_keras.h"
#include "compiler/passes/metric.h"
#include "compiler/passes/penalty.h"

#include <string.h>

uint32_t ty_step_train_tapes(const ty_step_draft *d)
{
    return d->spec->accumulate > 1 ? (uint32_t)(TY_TAPE_MICRO | TY_TAPE_LAST) : (uint32_t)TY_TAPE_LAST;
}

int ty_step_find_input(const ty_step_draft *d, const char *name)
{
    for (int i = 0; i < d->spec->n_inputs; i++)
        if (strcmp(d->spec->inputs[i].name, name) == 0)
            return i;
    return -1;
}

/* ---- loss -----------------------------------------------------------------------------------------------------------
 */

static int terms_no_output(const ty_step_draft *d, const char *name, ty_error *err)
{
    ty_suggestion near = {.word = name};
    for (int i = 0; i < ty_model_n_outputs(d->m); i++)
        ty_suggest_offer(&near, ty_model_output(d->m, i)->name);
    ty_error_set(err, TY_E_CONFIG, "the model has no output \"%s\"", name);
    const char *known = near.best ? near.best : ty_model_n_outputs(d->m) ? ty_model_output(d->m, 0)->name : NULL;
    return known ? ty_error_help(err, "the model has an output \"%s\"", known) : -1;
}

/* An input of the step that the loss or a metric names; NULL names none. */
static int terms_operand(const ty_step_draft *d, const char *name, ty_val *out, ty_error *err)
{
    *out = TY_NONE;
    if (!name)
        return 0;
    int i = ty_step_find_input(d, name);
    if (i < 0)
        return ty_error_set(err, TY_E_CONFIG, "there is no input \"%s\"", name);
    *out = d->input[i];
    return 0;
}

/* What of an output counts: rows of the batch, and what the model's own mask leaves. */
static ty_val terms_counted(const ty_step_draft *d, const ty_model_values *values, int output, ty_val rows)
{
    ty_val mask = values->masks ? values->masks[output] : TY_NONE;
    if (mask == TY_NONE || rows == TY_NONE)
        return mask == TY_NONE ? rows : mask;
    return ty_b_binary(d->g, TY_OP_AND, mask, ty_loss_stretch_rows(d->g, rows, mask));
}

static int terms_operands(const ty_step_draft *d, const char *output, const char *target, const char *weight,
                          ty_loss_operands *train, ty_loss_operands *eval, ty_error *err)
{
    int i = ty_model_find_output(d->m, output);
    if (i < 0)
        return terms_no_output(d, output, err);
    *train = (ty_loss_operands){.output = d->train.outputs[i], .rows = TY_NONE};
    train->rows = terms_counted(d, &d->train, i, d->spec->train_valid_rows ? d->rows : TY_NONE);
    if (terms_operand(d, target, &train->target, err) < 0 || terms_operand(d, weight, &train->sample_weight, err) < 0)
        return -1;
    *eval = *train;
    eval->output = d->eval.outputs[i];
    eval->is_kept = true; /* outputs of the model are outputs of EVAL */
    eval->evaluates = true;
    eval->rows = terms_counted(d, &d->eval, i, d->rows);
    return 0;
}

/* A term's operands beside output, target and weights, which are the same in training and evaluation but for `other`.
 */
static int terms_term_extras(ty_step_draft *d, const ty_loss_term *t, ty_loss_operands *train, ty_loss_operands *eval,
                             ty_error *err)
{
    if (terms_operand(d, t->input_lengths, &train->input_lengths, err) < 0 ||
        terms_operand(d, t->target_lengths, &train->target_lengths, err) < 0)
        return -1;
    eval->input_lengths = train->input_lengths;
    eval->target_lengths = train->target_lengths;
    train->other = eval->other = TY_NONE;
    if (!t->other)
        return 0;
    int i = ty_model_find_output(d->m, t->other);
    if (i < 0)
        return terms_no_output(d, t->other, err);
    train->other = d->train.outputs[i];
    eval->other = d->eval.outputs[i];
    return 0;
}

static int terms_term(ty_step_draft *d, const ty_loss_term *t, ty_loss_sums *train_sums, ty_loss_sums *eval_sums,
                      ty_error *err)
{
    ty_loss_operands train, eval;
    if (ty_loss_is_penalty(t->kind)) {
        if (ty_penalty_operands(&d->set, t, &d->arena, &train, &eval, err) < 0)
            return ty_error_wrap(err, "loss %s", ty_loss_text(t->kind));
    } else if (terms_operands(d, t->output, t->target, t->sample_weight, &train, &eval, err) < 0 ||
               terms_term_extras(d, t, &train, &eval, err) < 0) {
        return ty_error_wrap(err, "loss %s", ty_loss_text(t->kind));
    }
    return ty_loss_term_build(d->g, t, &train, train_sums, err) < 0 ||
                   ty_loss_term_build(d->g, t, &eval, eval_sums, err) < 0
               ? -1
               : 0;
}

static ty_val terms_quotient(ty_graph *g, const ty_loss_term *t, const ty_loss_sums *s)
{
    ty_val v = ty_b_div(g, s->sum, s->count);
    return t->weight == 1 ? v : ty_b_mul_s(g, v, t->weight);
}

/* A sum, which has no count that replicas add up. */
static bool terms_is_sum(const ty_loss_term *t)
{
    return ty_loss_is_keras(t->kind) && t->reduction == TY_REDUCTION_SUM;
}

/* A replica's part of the loss: its own sums over the counts of all. */
static void terms_across(const ty_step_draft *d)
{
    for (int i = 0; i < d->spec->n_loss; i++)
        if (!terms_is_sum(&d->spec->loss[i]))
            d->train_term[i].count = ty_b_all_reduce(d->g, d->train_term[i].count, ty_across_replicas(d->spec));
}

/* With the model's penalties, of which each of so many replicas has its share. */
static ty_val terms_total(const ty_step_draft *d, const ty_loss_sums *terms, const ty_model_values *values,
                          int replicas)
{
    ty_val sum = TY_NONE;
    for (int i = 0; i < d->spec->n_loss; i++) {
        ty_val v = terms_quotient(d->g, &d->spec->loss[i], &terms[i]);
        sum = i == 0 ? v : ty_b_add(d->g, sum, v);
    }
    for (int i = 0; i < values->n_penalties; i++) {
        ty_val v = values->penalties[i];
        sum = ty_b_add(d->g, sum, replicas > 1 ? ty_b_mul_s(d->g, v, 1.0 / replicas) : v);
    }
    return sum;
}

int ty_step_loss(ty_step_draft *d, ty_error *err)
{
    const ty_train_spec *spec = d->spec;
    if (spec->n_loss < 1)
        return ty_error_set(err, TY_E_CONFIG, "loss: expected at least one term, found none");
    d->train_term = TY_NEW_ARRAY(&d->arena, ty_loss_sums, spec->n_loss);
    d->eval_term = TY_NEW_ARRAY(&d->arena, ty_loss_sums, spec->n_loss);
    ty_graph_origin(d->g, "loss");
    for (int i = 0; i < spec->n_loss; i++)
        if (terms_term(d, &spec->loss[i], &d->train_term[i], &d->eval_term[i], err) < 0)
            return -1;
    terms_across(d);
    d->loss = d->own_loss ? *d->own_loss : terms_total(d, d->train_term, &d->train, ty_across_replicas(d->spec));
    ty_graph_add_output(d->g, "loss", ty_b_all_reduce(d->g, d->loss, ty_across_replicas(d->spec)),
                        ty_step_train_tapes(d));
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- evaluation -----------------------------------------------------------------------------------------------------
 */

static ty_val terms_count_rows(const ty_step_draft *d)
{
    if (d->rows != TY_NONE)
        return ty_loss_sum(d->g, ty_b_cast(d->g, d->rows, TY_F32), TY_NONE);
    const ty_type *t = &d->spec->inputs[0].type;
    return ty_b_scalar(d->g, TY_F32, t->rank ? (double)t->dim[0] : 1);
}

/* Sums and counts of all replicas. */
static void terms_eval_across(ty_step_draft *d)
{
    int replicas = ty_across_replicas(d->spec);
    for (int i = 0; i < d->spec->n_loss; i++) {
        d->eval_term[i].sum = ty_b_all_reduce(d->g, d->eval_term[i].sum, replicas);
        if (!terms_is_sum(&d->spec->loss[i]))
            d->eval_term[i].count = ty_b_all_reduce(d->g, d->eval_term[i].count, replicas);
    }
}

/* Keras' loss of several batches is the mean of theirs by their rows, whatever masks leave of each. Penalties of
 * activations are means over a replica's own rows. */
static bool terms_by_batch(const ty_step_draft *d)
{
    return d->spec->n_loss > 1 || d->eval.n_penalties > 0 || ty_loss_is_keras(d->spec->loss[0].kind);
}

static ty_val terms_eval_total(ty_step_draft *d)
{
    int replicas = ty_across_replicas(d->spec);
    ty_model_values values = d->eval;
    if (replicas > 1 && values.n_penalties) {
        ty_val *v = TY_NEW_ARRAY(&d->arena, ty_val, values.n_penalties);
        for (int i = 0; i < values.n_penalties; i++)
            v[i] = values.penalties[i];
        ty_across_mean(d->g, v, values.n_penalties, replicas);
        values.penalties = v;
    }
    return terms_total(d, d->eval_term, &values, 1);
}

static void terms_eval_loss(ty_step_draft *d)
{
    ty_val sum, count;
    if (!terms_by_batch(d)) {
        double weight = d->spec->loss[0].weight;
        count = d->eval_term[0].count;
        sum = weight == 1 ? d->eval_term[0].sum : ty_b_mul_s(d->g, d->eval_term[0].sum, weight);
    } else {
        count = ty_b_all_reduce(d->g, terms_count_rows(d), ty_across_replicas(d->spec));
        sum = ty_b_mul(d->g, terms_eval_total(d), count);
    }
    ty_graph_add_output(d->g, "loss.sum", sum, TY_TAPE_EVAL);
    ty_graph_add_output(d->g, "loss.count", count, TY_TAPE_EVAL);
}

static ty_metric_classes terms_metric_classes(const ty_step_draft *d, const char *output)
{
    for (int i = 0; i < d->spec->n_loss; i++) {
        const ty_loss_term *t = &d->spec->loss[i];
        bool shares = ty_loss_keras_has_shares(t->kind);
        bool has_classes = shares || ty_loss_keras_has_labels(t->kind) || t->kind == TY_LOSS_SOFTMAX_CROSS_ENTROPY ||
                           t->kind == TY_LOSS_NLL || t->kind == TY_LOSS_MULTI_MARGIN;
        if (has_classes && strcmp(t->output, output) == 0)
            return (ty_metric_classes){t->class_axis, t->ignore_index, t->dense_labels || shares};
    }
    return (ty_metric_classes){-1, -100, false};
}

static int terms_metric(ty_step_draft *d, const ty_metric *metric, ty_error *err)
{
    ty_loss_operands train, eval;
    ty_metric_parts parts;
    if (terms_operands(d, metric->output, metric->target, NULL, &train, &eval, err) < 0)
        return ty_error_wrap(err, "metric \"%s\"", metric->name);
    ty_metric_classes classes = terms_metric_classes(d, metric->output);
    if (ty_metric_build(d->g, metric, &eval, &classes, &parts, err) < 0)
        return -1;
    for (int i = 0; i < parts.n; i++) {
        const char *name = ty_arena_printf(&d->arena, "%s.%s", metric->name, parts.suffix[i]);
        bool by_row = ty_metric_is_by_row(metric->kind);
        ty_val all = (by_row ? ty_b_all_gather : ty_b_all_reduce)(d->g, parts.value[i], ty_across_replicas(d->spec));
        ty_graph_add_output(d->g, name, all, TY_TAPE_EVAL);
    }
    return 0;
}

int ty_step_eval(ty_step_draft *d, ty_error *err)
{
    ty_graph_origin(d->g, "evaluation");
    terms_eval_across(d);
    terms_eval_loss(d);
    for (int i = 0; i < d->spec->n_metrics; i++)
        if (terms_metric(d, &d->spec->metrics[i], err) < 0)
            return -1;
    bool outputs = !d->spec->no_eval && !d->spec->no_outputs;
    for (int i = 0; i < ty_model_n_outputs(d->m) && outputs; i++)
        ty_graph_add_output(d->g, ty_model_output(d->m, i)->name, d->eval.outputs[i], TY_TAPE_EVAL);
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}
