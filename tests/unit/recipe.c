/* Recipes: what they mean, what overrides do to them, and how every fault is told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "recipe_case.h"

#include <math.h>
#include <stdio.h>

static const char *const example =
    "model: model.onnx\n"
    "inputs: {x: image}\n"
    "loss: {softmax_cross_entropy: {logits: logits, labels: label}}\n"
    "optimizer: {adamw: {lr: 1e-3, weight_decay: 0.01}}\n"
    "schedule: {warmup_cosine: {warmup_steps: 100, final_lr: 1e-5}}\n"
    "batch_size: 64\n"
    "epochs: 20\n"
    "data:\n"
    "  train:      {channel: train, format: csv, fields: {image: {columns: 0-63, shape: [1, 8, 8], scale: 0.0625}, "
    "label: {columns: 64, type: int64}}, shuffle: true}\n"
    "  validation: {channel: test, format: csv, fields: same}\n"
    "metrics: [accuracy]\n"
    "checkpoint: {every: 1 epoch, keep: 3}\n"
    "seed: 1\n";

static void the_example_means_what_it_says(void **state)
{
    (void)state;
    ty_recipe r = good(example, NULL, 0);
    assert_string_equal(r.model, "/job/model.onnx");
    assert_int_equal(r.n_inputs, 1);
    assert_string_equal(r.inputs[0].field, "image");
    assert_int_equal(r.loss[0].term.kind, TY_LOSS_SOFTMAX_CROSS_ENTROPY);
    assert_string_equal(r.loss[0].term.target, "label");
    assert_int_equal(r.loss[0].term.ignore_index, -100);
    assert_int_equal(r.optimizer.kind, TY_OPT_ADAMW);
    assert_true(r.optimizer.lr == 1e-3 && r.optimizer.beta1 == 0.9 && r.optimizer.beta2 == 0.999 &&
                r.optimizer.eps == 1e-8);
    assert_int_equal(r.schedule.kind, TY_SCHED_WARMUP_COSINE);
    assert_int_equal(r.schedule.warmup.n, 100);
    assert_int_equal(r.batch_size, 64);
    assert_int_equal(r.train.n_fields, 2);
    assert_string_equal(r.train.fields[0].columns, "0-63");
    assert_string_equal(r.train.fields[1].columns, "64");
    assert_int_equal(r.train.fields[0].rank, 3);
    assert_true(r.train.fields[0].scale == 0.0625);
    assert_int_equal(r.train.fields[1].dtype, TY_I64);
    assert_true(r.train.shuffle);
    assert_false(r.validation.shuffle);
    assert_ptr_equal(r.validation.fields, r.train.fields);
    assert_string_equal(r.validation.channel, "test");
    assert_int_equal(r.metrics[0].kind, TY_METRIC_ACCURACY);
    assert_true(r.checkpoint_every.epochs && r.checkpoint_every.n == 1);
    assert_int_equal(r.checkpoint_keep, 3);
}

static void defaults(void **state)
{
    (void)state;
    ty_recipe r = good(shortest, NULL, 0);
    assert_int_equal(r.optimizer.kind, TY_OPT_ADAMW);
    assert_true(r.optimizer.weight_decay == 0.01);
    assert_int_equal(r.schedule.kind, TY_SCHED_CONSTANT);
    assert_int_equal(r.clip, TY_CLIP_NONE);
    assert_int_equal(r.batch_size, 32);
    assert_int_equal(r.epochs, 1);
    assert_string_equal(r.train.channel, "train");
    assert_true(r.train.shuffle);
    assert_false(r.validation.given);
    assert_string_equal(r.train.fields[1].name, "t");
    assert_null(r.loss[0].term.output);
}

static ty_recipe with(const char *lines)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s", lines, shortest);
    return good(text, NULL, 0);
}

static void devices(void **state)
{
    (void)state;
    ty_recipe r = with("");
    assert_int_equal(r.device, TY_DEVICE_AUTO);
    assert_int_equal(r.n_gpus, 0);
    assert_false(r.mirrored);
    r = with("device: gpu:3\n");
    assert_int_equal(r.device, TY_DEVICE_GPU);
    assert_int_equal(r.n_gpus, 1);
    assert_int_equal(r.gpu[0], 3);
    r = with("strategy: mirrored\ndevice: gpu:2,0\ncross_device: reduction_to_one_device\n");
    assert_true(r.mirrored);
    assert_int_equal(r.n_gpus, 2);
    assert_int_equal(r.gpu[0], 2);
    assert_int_equal(r.gpu[1], 0);
    assert_int_equal(r.cross_device, TY_CROSS_ONE_DEVICE);
    r = with("strategy: mirrored\ndevice: gpu\ncross_device: hierarchical_copy\n");
    assert_int_equal(r.n_gpus, 0);
    assert_int_equal(r.cross_device, TY_CROSS_HIERARCHICAL);
}

static void several_ranks(void **state)
{
    (void)state;
    ty_recipe r = with("");
    assert_int_equal(r.strategy, TY_STRATEGY_AUTO);
    assert_int_equal(r.processes_per_host, 0);
    assert_int_equal(r.distributed.stall_seconds, 600);
    assert_int_equal(r.distributed.port, 7777);
    assert_null(r.distributed.interface);
    r = with("strategy: data_parallel\nprocesses_per_host: 4\ndistributed: {wire: bfloat16, restarts: 2, "
             "hierarchical: true, optimizer_sharding: true, sync_batch_norm: true, timeline: true, bucket_bytes: 4096, "
             "interface: eth1}\n");
    assert_int_equal(r.strategy, TY_STRATEGY_DATA_PARALLEL);
    assert_string_equal(ty_strategy_name(r.strategy), "data_parallel");
    assert_int_equal(r.processes_per_host, 4);
    assert_int_equal(r.distributed.wire, TY_RECIPE_WIRE_BFLOAT16);
    assert_int_equal(r.distributed.restarts, 2);
    assert_true(r.distributed.hierarchical && r.distributed.optimizer_sharding && r.distributed.sync_batch_norm &&
                r.distributed.timeline);
    assert_int_equal(r.distributed.bucket_bytes, 4096);
    assert_string_equal(r.distributed.interface, "eth1");
    assert_non_null(strstr(ty_recipe_origin(&r, "processes_per_host"), "train.yaml"));
    assert_string_equal(ty_recipe_origin(&r, "distributed.stall_seconds"), "default");
    assert_null(ty_recipe_origin(&r, "distributed.nothing"));
    r = with("strategy: mirrored\ndevice: cpu\nprocesses_per_host: 2\n");
    assert_true(r.mirrored);
}

static void every_kind_is_reachable_with_pytorchs_defaults(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ty_optimizer o;
    } rows[] = {
        {"sgd", {.kind = TY_OPT_SGD, .lr = 1e-3}},
        {"adam", {.kind = TY_OPT_ADAM, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
        {"adamw", {.kind = TY_OPT_ADAMW, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01}},
        {"nadam",
         {.kind = TY_OPT_NADAM, .lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .momentum_decay = 4e-3}},
        {"adamax", {.kind = TY_OPT_ADAMAX, .lr = 2e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
        {"rmsprop", {.kind = TY_OPT_RMSPROP, .lr = 1e-2, .alpha = 0.99, .eps = 1e-8}},
        {"adagrad", {.kind = TY_OPT_ADAGRAD, .lr = 1e-2, .eps = 1e-10}},
        {"adadelta", {.kind = TY_OPT_ADADELTA, .lr = 1, .rho = 0.9, .eps = 1e-6}},
        {"lion", {.kind = TY_OPT_LION, .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99}},
        {"lamb", {.kind = TY_OPT_LAMB, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01}},
        {"lars", {.kind = TY_OPT_LARS, .lr = 1, .momentum = 0.9, .weight_decay = 1e-4, .trust = 1e-3}},
        {"ftrl", {.kind = TY_OPT_FTRL, .lr = 1e-3, .initial_accumulator = 0.1, .lr_power = -0.5}},
        {"keras_sgd", {.kind = TY_OPT_KERAS_SGD, .lr = 1e-2}},
        {"keras_adam", {.kind = TY_OPT_KERAS_ADAM, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7}},
        {"keras_nadam", {.kind = TY_OPT_KERAS_NADAM, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7}},
        {"keras_adamax", {.kind = TY_OPT_KERAS_ADAMAX, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7}},
        {"keras_rmsprop", {.kind = TY_OPT_KERAS_RMSPROP, .lr = 1e-3, .alpha = 0.9, .eps = 1e-7}},
        {"keras_adagrad", {.kind = TY_OPT_KERAS_ADAGRAD, .lr = 1e-3, .initial_accumulator = 0.1, .eps = 1e-7}},
        {"keras_adadelta", {.kind = TY_OPT_KERAS_ADADELTA, .lr = 1e-3, .rho = 0.95, .eps = 1e-7}},
        {"keras_lamb", {.kind = TY_OPT_KERAS_LAMB, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7}},
    };
    assert_int_equal(sizeof rows / sizeof rows[0], TY_N_OPTIMIZER_KINDS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_recipe r = good(shortest, &(ty_recipe_override){"optimizer", rows[i].name, "test"}, 1);
        assert_memory_equal(&r.optimizer.lr, &rows[i].o.lr, sizeof r.optimizer.lr);
        assert_int_equal(r.optimizer.kind, rows[i].o.kind);
        const ty_optimizer *a = &r.optimizer, *b = &rows[i].o;
        assert_true(a->weight_decay == b->weight_decay && a->momentum == b->momentum && a->beta1 == b->beta1 &&
                    a->beta2 == b->beta2 && a->eps == b->eps && a->alpha == b->alpha && a->rho == b->rho &&
                    a->momentum_decay == b->momentum_decay && a->lr_decay == b->lr_decay &&
                    a->initial_accumulator == b->initial_accumulator && a->trust == b->trust &&
                    a->lr_power == b->lr_power);
    }
    static const char *const losses[] = {"mse",
                                         "mae",
                                         "huber",
                                         "binary_cross_entropy_with_logits",
                                         "softmax_cross_entropy",
                                         "nll",
                                         "kl_div",
                                         "mean",
                                         "hinge",
                                         "multi_margin",
                                         "cosine",
                                         "{cosine_embedding: {output: a, other: b}}",
                                         "{contrastive: {output: a, other: b}}",
                                         "ctc",
                                         "l1",
                                         "l2",
                                         "keras_sparse_crossentropy",
                                         "keras_categorical_crossentropy",
                                         "keras_categorical_focal",
                                         "keras_binary_crossentropy",
                                         "keras_binary_focal",
                                         "keras_mse",
                                         "keras_mae",
                                         "keras_mape",
                                         "keras_msle",
                                         "keras_huber",
                                         "keras_log_cosh",
                                         "keras_kl_divergence",
                                         "keras_poisson",
                                         "keras_cosine_similarity",
                                         "keras_hinge",
                                         "keras_squared_hinge",
                                         "keras_categorical_hinge"};
    assert_int_equal(sizeof losses / sizeof losses[0], TY_N_LOSS_KINDS);
    for (int i = 0; i < TY_N_LOSS_KINDS; i++)
        assert_int_equal(good(shortest, &(ty_recipe_override){"loss", losses[i], "test"}, 1).loss[0].term.kind, i);
    static const char *const schedules[] = {"constant",
                                            "step: {step_size: 2}",
                                            "exponential: {gamma: 0.9}",
                                            "polynomial",
                                            "warmup_cosine",
                                            "one_cycle",
                                            "cosine_restarts: {cycle_steps: 2}",
                                            "piecewise: {boundaries: [2], factors: [1, 0.5]}",
                                            "plateau",
                                            "keras_exponential: {decay_steps: 3, decay_rate: 0.5}",
                                            "keras_inverse_time: {decay_steps: 3, decay_rate: 0.5}",
                                            "keras_polynomial: {decay_steps: 3}",
                                            "keras_cosine: {decay_steps: 3}",
                                            "keras_cosine_restarts: {first_decay_steps: 3}"};
    for (int i = 0; i < TY_N_SCHEDULE_KINDS; i++) {
        char text[512];
        snprintf(text, sizeof text, strchr(schedules[i], ':') ? "%sschedule: {%s}\n" : "%sschedule: %s\n",
                 "model: m.onnx\nloss: mse\ndata: {train: {fields: [x, t]}, validation: {channel: v}}\n", schedules[i]);
        assert_int_equal(good(text, NULL, 0).schedule.kind, i);
    }
}

static ty_loss_term loss_of(const char *loss)
{
    return good(shortest, &(ty_recipe_override){"loss", loss, "test"}, 1).loss[0].term;
}

static void losses_take_their_keys(void **state)
{
    (void)state;
    ty_loss_term t = loss_of("{softmax_cross_entropy: {dense_labels: true, label_smoothing: 0.1}}");
    assert_true(t.dense_labels && t.label_smoothing == 0.1);
    assert_true(loss_of("hinge").margin == 1 && loss_of("{multi_margin: {margin: 0.5}}").margin == 0.5);
    t = loss_of("{cosine_embedding: {output: a, other: b, target: t, margin: -0.2, axis: 1}}");
    assert_string_equal(t.output, "a");
    assert_string_equal(t.other, "b");
    assert_string_equal(t.target, "t");
    assert_true(t.margin == -0.2 && t.class_axis == 1);
    t = loss_of("ctc");
    assert_true(t.blank == 0 && t.time_axis == 1 && !t.zero_infinity && !t.input_lengths && !t.target_lengths);
    t = loss_of("{ctc: {labels: t, input_lengths: n, target_lengths: m, blank: 3, time_axis: 0, zero_infinity: true}}");
    assert_string_equal(t.input_lengths, "n");
    assert_string_equal(t.target_lengths, "m");
    assert_true(t.blank == 3 && t.time_axis == 0 && t.zero_infinity);
    t = loss_of("{l2: {weight: 1e-4, tensors: [\"*.weight\", head]}}");
    assert_true(t.weight == 1e-4);
    assert_int_equal(t.n_tensors, 2);
    assert_string_equal(t.tensors[0], "*.weight");
    assert_int_equal(loss_of("l1").n_tensors, 0);
}

static void metrics_take_their_keys(void **state)
{
    (void)state;
    static const char *const names[] = {"accuracy",  "mae",    "mse",  "top_3", "perplexity",
                                        "precision", "recall", "f1",   "auc",   "average_precision",
                                        "iou",       "rmse",   "mape", "r2"};
    char text[512];
    snprintf(
        text, sizeof text,
        "%smetrics: [accuracy, mae, mse, {top_k: {k: 3}}, perplexity, {precision: {average: binary}}, {recall: "
        "{average: macro}}, {f1: {threshold: 0.5}}, auc, average_precision, iou, rmse, mape, r2, top_k, {mae: {name: "
        "other, output: y, target: t}}]\n",
        shortest);
    ty_recipe r = good(text, NULL, 0);
    assert_int_equal(r.n_metrics, TY_N_METRIC_KINDS + 2);
    for (int i = 0; i < TY_N_METRIC_KINDS; i++) {
        assert_int_equal(r.metrics[i].kind, i);
        assert_string_equal(r.metrics[i].name, names[i]);
    }
    assert_int_equal(r.metrics[3].k, 3);
    assert_int_equal(r.metrics[5].average, TY_AVERAGE_BINARY);
    assert_int_equal(r.metrics[6].average, TY_AVERAGE_MACRO);
    assert_int_equal(r.metrics[7].average, TY_AVERAGE_AUTO);
    assert_true(r.metrics[7].threshold == 0.5 && r.metrics[5].threshold == 0);
    assert_string_equal(r.metrics[TY_N_METRIC_KINDS].name, "top_5");
    assert_string_equal(r.metrics[TY_N_METRIC_KINDS + 1].name, "other");
}

static void other_names_of_schedules_and_rules(void **state)
{
    (void)state;
    const ty_recipe_override linear[] = {{"schedule", "linear", "test"}, {"schedule.linear.final_lr", "0.1", "test"}};
    ty_recipe r = good(shortest, linear, 2);
    assert_int_equal(r.schedule.kind, TY_SCHED_POLYNOMIAL);
    assert_true(r.schedule.power == 1 && r.schedule.final_lr == 0.1);
    r = good(shortest, &(ty_recipe_override){"schedule", "cosine", "test"}, 1);
    assert_int_equal(r.schedule.kind, TY_SCHED_WARMUP_COSINE);
    assert_int_equal(r.schedule.warmup.n, 0);
    r = good(shortest, &(ty_recipe_override){"optimizer", "keras_adamw", "test"}, 1);
    assert_int_equal(r.optimizer.kind, TY_OPT_KERAS_ADAM);
    assert_true(r.optimizer.weight_decay == 4e-3);
    r = good(shortest, &(ty_recipe_override){"clip", "{norm: 2}", "test"}, 1);
    assert_int_equal(r.clip, TY_CLIP_NORM);
    assert_true(r.clip_max == 2);
}

static void layers_averages_and_warmup(void **state)
{
    (void)state;
    ty_recipe r = good("model: m.onnx\nloss: mse\nwarmup: {steps: 2 epochs, start_factor: 0.25}\n"
                       "lr_scale: {'encoder.*': 0.1, head.weight: 10}\nema: {decay: 0.99, use_ema: true}\n"
                       "schedule: {piecewise: {boundaries: [100, 2 epochs], factors: [1, 0.5, 0.1]}}\n"
                       "data: {train: {fields: [x, t]}}\n",
                       NULL, 0);
    assert_true(r.schedule.ramp.n == 2 && r.schedule.ramp.epochs && r.schedule.ramp_start == 0.25);
    assert_int_equal(r.n_lr_scale, 2);
    assert_string_equal(r.lr_scale[0].pattern, "encoder.*");
    assert_true(r.lr_scale[0].factor == 0.1 && r.lr_scale[1].factor == 10);
    assert_true(r.ema_decay == 0.99 && r.use_ema);
    assert_int_equal(r.schedule.n_boundaries, 2);
    assert_true(r.schedule.boundaries[0].n == 100 && r.schedule.boundaries[1].epochs && r.schedule.factors[2] == 0.1);
    r = good(shortest, NULL, 0);
    assert_true(r.ema_decay == 0 && r.n_lr_scale == 0 && r.schedule.ramp.n == 0);
}

static void rows_are_all_or_named(void **state)
{
    (void)state;
    assert_true(
        good("model: m.onnx\nloss: mse\nsparse_rows: true\ndata: {train: {fields: [x, t]}}\n", NULL, 0).sparse_all);
    ty_recipe r =
        good("model: m.onnx\nloss: mse\nsparse_rows: ['embed.*', user]\ndata: {train: {fields: [x, t]}}\n", NULL, 0);
    assert_true(!r.sparse_all && r.n_sparse_rows == 2);
    assert_string_equal(r.sparse_rows[1], "user");
    r = good("model: m.onnx\nloss: mse\nsparse_rows: false\ndata: {train: {fields: [x, t]}}\n", NULL, 0);
    assert_true(!r.sparse_all && r.n_sparse_rows == 0);
    r = good(shortest, NULL, 0);
    assert_true(!r.sparse_all && r.n_sparse_rows == 0);
}

static void overrides(void **state)
{
    (void)state;
    const ty_recipe_override o[] = {
        {"lr", "0.5", "hyperparameter \"lr\""},
        {"momentum", "0.9", "h"},
        {"optimizer", "sgd", "h"},
        {"batch-size", "8", "h"},
        {"epochs", "3", "h"},
        {"epochs", "4", "argument --epochs"},
        {"max_grad_norm", "2.5", "h"},
        {"data.train.fields.image.scale", "0.5", "h"},
        {"label_smoothing", "0.1", "h"},
        {"checkpoint.every", "10 steps", "h"},
        {"data.train.fields.image.shape", "[64]", "h"},
        {"weight_decay", "0.3", "h"},
        {"optimizer.sgd.weight_decay", "0.2", "argument"},
    };
    ty_recipe r = good(example, o, sizeof o / sizeof o[0]);
    assert_true(r.optimizer.weight_decay == 0.2); /* the later one, whichever way it is spelled */
    assert_int_equal(r.optimizer.kind, TY_OPT_SGD);
    assert_true(r.optimizer.lr == 0.5 && r.optimizer.momentum == 0.9);
    assert_int_equal(r.batch_size, 8);
    assert_int_equal(r.epochs, 4);
    assert_int_equal(r.clip, TY_CLIP_GLOBAL_NORM);
    assert_true(r.clip_max == 2.5);
    assert_true(r.train.fields[0].scale == 0.5);
    assert_int_equal(r.train.fields[0].rank, 1);
    assert_true(r.loss[0].term.label_smoothing == 0.1);
    assert_true(r.checkpoint_every.n == 10 && !r.checkpoint_every.epochs);
    bool found = false;
    for (int i = 0; i < r.n_settings; i++)
        if (strcmp(r.settings[i].key, "optimizer.sgd.lr") == 0) {
            found = true;
            assert_string_equal(r.settings[i].value, "0.5");
            assert_string_equal(r.settings[i].origin, "hyperparameter \"lr\"");
        } else if (strcmp(r.settings[i].key, "seed") == 0)
            assert_string_equal(r.settings[i].origin, "train.yaml:13");
        else if (strcmp(r.settings[i].key, "threads") == 0)
            assert_string_equal(r.settings[i].origin, "default");
    assert_true(found);
}

static void other_forms(void **state)
{
    (void)state;
    ty_recipe r = good("model: /abs/m.onnx\n"
                       "loss:\n- {type: huber, output: out, target: t, delta: 2, weight: 0.5}\n- {mean: {output: z}}\n"
                       "optimizer: {type: adam, lr: 0.01, betas: [0.8, 0.9]}\n"
                       "clip: {value: 0.5}\nfrozen: ['conv*']\ntied: [[a, b], [c, d, e]]\n"
                       "data: {train: {path: d/x.npz, fields: {x: {member: xs}, t: {}}, shuffle: false}}\n",
                       NULL, 0);
    assert_string_equal(r.model, "/abs/m.onnx");
    assert_int_equal(r.n_loss, 2);
    assert_string_equal(r.loss[0].term.output, "out");
    assert_string_equal(r.loss[0].term.target, "t");
    assert_true(r.loss[0].term.delta == 2 && r.loss[0].term.weight == 0.5 && r.loss[1].term.weight == 1);
    assert_true(r.optimizer.beta1 == 0.8 && r.optimizer.beta2 == 0.9);
    assert_int_equal(r.clip, TY_CLIP_VALUE);
    assert_string_equal(r.frozen[0], "conv*");
    assert_string_equal(r.tied[1][2], "e");
    assert_null(r.tied[1][3]);
    assert_string_equal(r.train.path, "/job/d/x.npz");
    assert_null(r.train.channel);
    assert_false(r.train.shuffle);
}

typedef struct fault {
    const char *add; /* a line put in front of the shortest recipe, or, with '=', an override */
    ty_code code;
    const char *says; /* in message, place, detail or help */
} fault;

static void faults(void **state)
{
    (void)state;
    static const fault rows[] = {
        {"bach_size: 3\n", TY_E_UNKNOWN_KEY, "did you mean \"batch_size\"?"},
        {"batch_size: many\n", TY_E_TYPE, "train.yaml:1:13"},
        {"batch_size: 0\n", TY_E_RANGE, "from 1 to"},
        {"batch_size: 1.5\n", TY_E_TYPE, "expected"},
        {"epochs: 2\nepochs: 3\n", TY_E_DUPLICATE, "train.yaml:2"},
        {"optimizer: adma\n", TY_E_RANGE, "did you mean \"adam\"?"},
        {"optimizer: {adma: {}}\n", TY_E_RANGE, "train.yaml:1:13"},
        {"optimizer: {type: adma}\n", TY_E_RANGE, "train.yaml:1:19"},
        {"optimizer: {adam: {}, sgd: {}}\n", TY_E_CONFIG, "train.yaml:1:23"},
        {"optimizer: {adam: {lr: fast}}\n", TY_E_TYPE, "train.yaml:1:24"},
        {"optimizer: {adam: {lr: -1}}\n", TY_E_RANGE, "lr"},
        {"optimizer: {adam: {}, sgd: {}}\n", TY_E_CONFIG, "\"adam\" and \"sgd\""},
        {"optimizer: [adam]\n", TY_E_TYPE, "needs one kind"},
        {"optimizer: {sgd: {nesterov: true}}\n", TY_E_CONFIG, "momentum"},
        {"optimizer: {adam: {betas: [0.9]}}\n", TY_E_TYPE, "two numbers"},
        {"optimizer: {adam: {betas: [0.9, 0.99], beta1: 0.8}}\n", TY_E_CONFIG, "both given"},
        {"schedule: {step: {}}\n", TY_E_MISSING_KEY, "step_size"},
        {"schedule: {warmup_cosine: {warmup_steps: ten}}\n", TY_E_RANGE, "500 steps"},
        {"schedule: {warmup_cosine: {warmup_steps: 1 hour}}\n", TY_E_RANGE, "1 epoch"},
        {"clip: {nrm: 1}\n", TY_E_RANGE, "global_norm"},
        {"schedule: plateau\n", TY_E_CONFIG, "needs data.validation"},
        {"early_stopping: {patience: 1}\n", TY_E_CONFIG, "needs data.validation"},
        {"early_stopping: {}\n", TY_E_MISSING_KEY, "patience"},
        {"export: {weights: best}\n", TY_E_CONFIG, "needs data.validation"},
        {"export: {weights: first}\n", TY_E_RANGE, "last"},
        {"schedule: {cosine_restarts: {cycle_steps: 0}}\n", TY_E_RANGE, "at least 1"},
        {"schedule: {piecewise: {boundaries: [1], factors: [1]}}\n", TY_E_RANGE, "1 boundaries need 2 factors"},
        {"schedule: {piecewise: {boundaries: [1], factors: [1, -1]}}\n", TY_E_RANGE, "must not be negative"},
        {"schedule: {warmup_cosine: {warmup_steps: 3}}\nwarmup: {steps: 2}\n", TY_E_CONFIG, "warmup of its own"},
        {"warmup: {start_factor: 0.5}\n", TY_E_MISSING_KEY, "steps"},
        {"sparse_rows: 3\n", TY_E_TYPE, "sparse_rows"},
        {"sparse_row: true\n", TY_E_UNKNOWN_KEY, "did you mean \"sparse_rows\"?"},
        {"lr_scale: [a]\n", TY_E_TYPE, "lr_scale"},
        {"lr_scale: {a: -1}\n", TY_E_RANGE, "between 0 and 1e6"},
        {"ema: {decay: 1}\n", TY_E_RANGE, "decay"},
        {"clip: {global_norm: 0}\n", TY_E_RANGE, "above 0"},
        {"metrics: [acuracy]\n", TY_E_RANGE, "did you mean \"accuracy\"?"},
        {"metrics: [mae, mae]\n", TY_E_DUPLICATE, "mae"},
        {"metrics: [{top_k: {k: 0}}]\n", TY_E_RANGE, "k"},
        {"metrics: [{f1: {average: micro}}]\n", TY_E_RANGE, "macro"},
        {"metrics: [{top_k: {k: 3}}, {top_k: {k: 3}}]\n", TY_E_DUPLICATE, "top_3"},
        {"checkpoint: {keep: 0}\n", TY_E_RANGE, "keep"},
        {"checkpoint: {every: sometimes}\n", TY_E_RANGE, "1 epoch"},
        {"tied: [[a]]\n", TY_E_RANGE, "at least two"},
        {"frozen: {a: b}\n", TY_E_TYPE, "frozen"},
        {"inputs: [x]\n", TY_E_TYPE, "inputs"},
        {"seed: -1\n", TY_E_RANGE, "seed"},
        {"deterministic: very\n", TY_E_RANGE, "default or strict"},
        {"device: tpu\n", TY_E_RANGE, "expected auto, cpu, gpu, gpu:NUMBER"},
        {"device: \"gpu:\"\n", TY_E_RANGE, "gpu:NUMBER"},
        {"device: gpu:1x\n", TY_E_RANGE, "train.yaml:1:9"},
        {"device: gpu:99999999999\n", TY_E_RANGE, "gpu:NUMBER"},
        {"strategy: mirrored\ndevice: gpu:1,\n", TY_E_RANGE, "gpu:NUMBER,NUMBER"},
        {"strategy: mirrored\ndevice: gpu:2,1,2\n", TY_E_RANGE, "each once"},
        {"device: gpu:0,1\n", TY_E_CONFIG, "strategy: mirrored trains on all of them"},
        {"strategy: mirrored\ndevice: cpu\n", TY_E_CONFIG, "is for GPUs"},
        {"strategy: ring\n", TY_E_RANGE, "one_device, mirrored, multi_worker_mirrored"},
        {"processes_per_host: -1\n", TY_E_RANGE, "processes_per_host"},
        {"distributed: {wire: float8}\n", TY_E_RANGE, "none, float16 or bfloat16"},
        {"distributed: {restart: 1}\n", TY_E_UNKNOWN_KEY, "restarts"},
        {"cross_device: ring\n", TY_E_RANGE, "hierarchical_copy"},
        {"batch_size: [\n", TY_E_SYNTAX, "train.yaml"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512], all[8192];
        ty_recipe r;
        ty_error err;
        snprintf(text, sizeof text, "%s%s", rows[i].add, shortest);
        if (parse(text, NULL, 0, &r, &err) == 0)
            fail_msg("accepted: %s", rows[i].add);
        ty_error_format(&err, all, sizeof all);
        if (err.code != rows[i].code || !strstr(all, rows[i].says) || !strstr(all, "train.yaml"))
            fail_msg("%s: expected code %d and \"%s\", found %d:\n%s", rows[i].add, rows[i].code, rows[i].says,
                     err.code, all);
    }
}

static void faults_in_data(void **state)
{
    (void)state;
    static const fault rows[] = {
        {"{}", TY_E_MISSING_KEY, "train"},
        {"{train: {fields: same}}", TY_E_MISSING_KEY, "needs fields of its own"},
        {"{train: {fields: [x, t], length_buckets: [8, 8]}}", TY_E_RANGE, "expected rising lengths"},
        {"{train: {fields: [x, t], length_buckets: [0]}}", TY_E_RANGE, "expected rising lengths"},
        {"{train: {fields: [x, t], length_buckets: []}}", TY_E_LIMIT, "1 to 16 lengths"},
        {"{train: {fields: [x, t], length_buckets: some}}", TY_E_TYPE, "length_buckets"},
        {"{train: {fields: [x, t]}, validation: {length_buckets: 8}}", TY_E_CONFIG, "of validation too"},
        {"{train: {fields: []}}", TY_E_RANGE, "names no field"},
        {"{train: {fields: 3}}", TY_E_TYPE, "fields"},
        {"{train: {fields: {x: {shape: [0]}}}}", TY_E_RANGE, "at least 1"},
        {"{train: {fields: {x: {shape: [1,1,1,1,1,1,1,1]}}}}", TY_E_RANGE, "dimensions"},
        {"{train: {fields: {x: {type: int65}}}}", TY_E_RANGE, "int65"},
        {"{train: {fields: {x: {scale: 0}}}}", TY_E_NONE, "scale"},
        {"{train: {fields: {x: {colums: 3}}}}", TY_E_UNKNOWN_KEY, "did you mean \"columns\"?"},
        {"{train: {fields: {x: {tokenizer: t.json, max_length: 8, words: y}}}}", TY_E_CONFIG, "pair: NAME"},
        {"{train: {fields: {x: {tokenizer: t.json, max_length: 8, tokens: tags, pair: y}}}}", TY_E_CONFIG,
         "tags are of words: NAME"},
        {"{train: {fields: {x: {tokenizer: t.json, max_length: 8, pair: y, words: z}}}}", TY_E_CONFIG, "one of pair"},
        {"{train: {delimiter: ab, fields: [x]}}", TY_E_RANGE, "one character"},
        {"{train: {fields: [x]}, validation: {shuffle: true}}", TY_E_CONFIG, "never shuffled"},
        {"{train: {fields: [x]}, test: {}}", TY_E_UNKNOWN_KEY, "test"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512], all[8192];
        ty_recipe r;
        ty_error err;
        snprintf(text, sizeof text, "model: m.onnx\nloss: mse\ndata: %s\n", rows[i].add);
        if (parse(text, NULL, 0, &r, &err) == 0)
            fail_msg("accepted: %s", rows[i].add);
        ty_error_format(&err, all, sizeof all);
        if ((rows[i].code && err.code != rows[i].code) || !strstr(all, rows[i].says))
            fail_msg("%s: expected \"%s\", found code %d:\n%s", rows[i].add, rows[i].says, err.code, all);
    }
}

static void faults_from_outside(void **state)
{
    (void)state;
    static const struct {
        const char *key, *text, *says;
    } rows[] = {
        {"lerning_rate", "0.1", "did you mean \"learning_rate\"?"},
        {"zzz", "1", "trainyard help recipe"},
        {"lr", "fast", "expected"},
        {"epochs", "0", "from 1"},
        {"optimizer.sgd.lr", "0.1", "give optimizer=sgd too"},
        {"data.train.fields.imag.scale", "0.1", "unknown"},
        {"optimizer.adamw.lerning", "1", "unknown key"},
        {"momentum", "0.9", "unknown key \"momentum\" in \"optimizer.adamw\""},
        {"epochs.x", "1", "epochs"},
        {"model..x", "1", "model"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char all[8192];
        ty_recipe r;
        ty_error err;
        ty_recipe_override o = {rows[i].key, rows[i].text, "hyperparameter \"h\""};
        if (parse(example, &o, 1, &r, &err) == 0) {
            /* a new field is made by its first key: the data will not have it */
            assert_string_equal(rows[i].key, "data.train.fields.imag.scale");
            continue;
        }
        ty_error_format(&err, all, sizeof all);
        bool has_origin = strstr(all, "hyperparameter \"h\"") || strcmp(rows[i].key, "optimizer.sgd.lr") == 0;
        if (!strstr(all, rows[i].says) || !has_origin)
            fail_msg("%s=%s: expected \"%s\", found:\n%s", rows[i].key, rows[i].text, rows[i].says, all);
    }
}

static void help_names_every_key(void **state)
{
    (void)state;
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_recipe_help(&text), 0);
    static const char *const words[] = {"batch_size", "warmup_steps",  "label_smoothing", "adadelta",  "fields",
                                        "keep",       "learning_rate", "global_norm",     "delimiter", "one_cycle"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_non_null(strstr(text.data, words[i]));
    ty_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_example_means_what_it_says, setup, teardown),
        cmocka_unit_test_setup_teardown(defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(devices, setup, teardown),
        cmocka_unit_test_setup_teardown(several_ranks, setup, teardown),
        cmocka_unit_test_setup_teardown(every_kind_is_reachable_with_pytorchs_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(losses_take_their_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(metrics_take_their_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(other_names_of_schedules_and_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_averages_and_warmup, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_all_or_named, setup, teardown),
        cmocka_unit_test_setup_teardown(overrides, setup, teardown),
        cmocka_unit_test_setup_teardown(other_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(faults, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_in_data, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_from_outside, setup, teardown),
        cmocka_unit_test(help_names_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
