/* recipe_keys.c - the tables. Defaults of optimizers and losses are PyTorch's (torch.optim, torch.nn.functional), those
 * of ftrl and keras_* Keras' (keras.optimizers), those of lion, lamb and lars the papers'. */
#include "entrypoint/recipe_keys.h"

#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

static const char *const batch_rules[] = {"none", "linear", "sqrt", NULL};
static const char *const remats[] = {"none", "auto", "batch", NULL}; /* as ty_recipe_remat */
static const char *const determinism[] = {"default", "strict", NULL};
static const char *const strategies[] = {"auto",          "one_device", "mirrored",         "multi_worker_mirrored",
                                         "data_parallel", "tower",      "parameter_server", NULL}; /* as ty_strategy */
static const char *const cross_devices[] = {"nccl", "hierarchical_copy", "reduction_to_one_device",
                                            NULL};                                /* as ty_cross_device */
static const char *const debugs[] = {"false", "true", "interpret", NULL};         /* as ty_debug */
static const char *const precisions[] = {"float32", "bfloat16", "float16", NULL}; /* as ty_precision */

#define TOP(name) offsetof(recipe_top, name)
static const ty_bind_row top_rows[] = {
    {"model", TY_BIND_STRING, TOP(model), .required = true, .help = "model file (.onnx or .c), relative to the recipe"},
    {"inputs", TY_BIND_NODE, TOP(inputs), .form = "a map",
     .help = "{model input: field}; left out: fields named like the inputs"},
    {"loss", TY_BIND_NODE, TOP(loss), .required = true, .form = "a map, or a list of maps",
     .help = "{kind: {...}}, or a list of them that is added up"},
    {"optimizer", TY_BIND_NODE, TOP(optimizer), .form = "a map", .help = "{kind: {...}}; left out: adamw"},
    {"schedule", TY_BIND_NODE, TOP(schedule), .form = "a map",
     .help = "{kind: {...}}: learning rate over the steps; left out: constant"},
    {"warmup", TY_BIND_NODE, TOP(warmup), .form = "a map",
     .help = "{steps: 500, start_factor: 0.1}: a linear rise in front of the schedule, which begins behind it"},
    {"clip", TY_BIND_NODE, TOP(clip), .form = "a map",
     .help = "{global_norm: 1.0}, {norm: 1.0} or {value: 0.5}: limit of the gradient; left out: none"},
    {"batch_size", TY_BIND_NODE, TOP(batch_size), "32", .form = "an integer from 1 to 16777216, or auto",
     .help = "rows of a batch, of all GPUs; auto: the largest multiple of 8 a GPU that fits"},
    {"memory", TY_BIND_NODE, TOP(memory), .form = "text",
     .help = "\"8 GiB\": what the run may take, for batch_size auto and remat; left out: the container's limit, else "
             "what is free"},
    {"remat", TY_BIND_CHOICE, TOP(remat), "auto", .choices = remats,
     .help = "auto: logits in chunks, forward computed again, to fit a memory; batch: batch_size auto counts on it"},
    {"batch_size_rule", TY_BIND_CHOICE, TOP(batch_rule), "none", .choices = batch_rules,
     .help = "lr times batch_size / batch_size_base (linear), or its root (sqrt)"},
    {"batch_size_base", TY_BIND_INT, TOP(batch_base), "32", .min = 1, .max = 1 << 24,
     .help = "batch size that lr is meant for, for batch_size_rule"},
    {"epochs", TY_BIND_INT, TOP(epochs), "1", .min = 1, .max = 1e9, .help = "passes over the training data"},
    {"max_steps", TY_BIND_INT, TOP(max_steps), "0", .min = 0, .max = 1e12,
     .help = "end after this many steps; 0: no such limit"},
    {"accumulate", TY_BIND_INT, TOP(accumulate), "1", .min = 1, .max = 1 << 20,
     .help = "batches whose gradients make one step"},
    {"data", TY_BIND_NODE, TOP(data), .required = true, .form = "a map", .help = "{train: {...}, validation: {...}}"},
    {"metrics", TY_BIND_NODE, TOP(metrics), .form = "a list",
     .help = "list of metrics of the validation data: [accuracy]"},
    {"evaluate_every", TY_BIND_NODE, TOP(evaluate_every), "1 epoch", .form = "text",
     .help = "\"1 epoch\" or \"500 steps\"; always at the end"},
    {"checkpoint", TY_BIND_NODE, TOP(checkpoint), .form = "a map", .help = "{every: 1 epoch, keep: 3, sharded: false}"},
    {"frozen", TY_BIND_NODE, TOP(frozen), .form = "a list",
     .help = "list of weights (names or shell patterns) that are not trained"},
    {"no_decay", TY_BIND_NODE, TOP(no_decay), .form = "a list",
     .help = "list of weights without weight decay: [\"*.bias\"]"},
    {"sparse_rows", TY_BIND_NODE, TOP(sparse_rows), "false", .form = "true, false or a list",
     .help = "tables that a step updates only in the rows of its batch: names or patterns; true: all that can be"},
    {"lr_scale", TY_BIND_NODE, TOP(lr_scale), .form = "a map",
     .help = "{weight or shell pattern: factor of its learning rate}: {\"encoder.*\": 0.1}; the first match counts"},
    {"ema", TY_BIND_NODE, TOP(ema), .form = "a map",
     .help = "{decay: 0.999, use_ema: true}: averages of the weights; left out: none"},
    {"buffers", TY_BIND_NODE, TOP(buffers), .form = "a list",
     .help = "list of float constants of the model that are no weights"},
    {"tied", TY_BIND_NODE, TOP(tied), .form = "a list of lists",
     .help = "lists of weights that are one: [[embed.weight, head.weight]]"},
    {"seed", TY_BIND_INT, TOP(seed), "1", .min = 0, .max = 9.2e18, .help = "of shuffling, dropout and initial values"},
    {"device", TY_BIND_STRING, TOP(device), "auto",
     .help = "auto: a GPU where one can be used, else the CPU; cpu: no GPU; gpu, gpu:1 or gpu:0,1: those or an error"},
    {"strategy", TY_BIND_CHOICE, TOP(strategy), "auto", .choices = strategies, .help = "who shares each batch"},
    {"processes_per_host", TY_BIND_INT, TOP(processes_per_host), "0", .min = 0, .max = 1024,
     .help = "ranks on each host, each with its part of the batch; 0: as the job says, else one, or one a GPU"},
    {"distributed", TY_BIND_NODE, TOP(distributed), .form = "a map",
     .help = "{wire: bfloat16, restarts: 2}: how several ranks train together"},
    {"cross_device", TY_BIND_CHOICE, TOP(cross_device), "nccl", .choices = cross_devices,
     .help = "mirrored: how gradients are added up"},
    {"threads", TY_BIND_INT, TOP(threads), "0", .min = 0, .max = 4096, .help = "0: all cores"},
    {"deterministic", TY_BIND_CHOICE, TOP(deterministic), "default", .choices = determinism,
     .help = "default: same bits run to run; strict: also for any number of threads"},
    {"precision", TY_BIND_CHOICE, TOP(precision), "float32", .choices = precisions,
     .help = "of products, convolutions and attention, all else float32; float16 has a loss scale"},
    {"keep_float32", TY_BIND_NODE, TOP(keep_float32), .form = "a list",
     .help = "list of layers (names or shell patterns) whose products stay float32, or of operations in all\n"
             "layers: [\"*lm_head*\", \"op:attention\"]"},
    {"match_eager", TY_BIND_BOOL, TOP(match_eager), "false",
     .help = "round after every operation on 16-bit numbers, as PyTorch's autocast does"},
    {"tf32", TY_BIND_BOOL, TOP(tf32), "false",
     .help = "on a GPU: float32 products and convolutions with ten bits of mantissa, which is faster"},
    {"debug", TY_BIND_CHOICE, TOP(debug), "false", .choices = debugs,
     .help = "true: looks at every value, names a NaN by its layer, leaves dumps; interpret: uncompiled"},
    {"log_every", TY_BIND_INT, TOP(log_every), "0", .min = 0, .max = 1e9,
     .help = "steps between metric lines; 0: about 100 lines a run"},
    {"tensorboard", TY_BIND_STRING, TOP(tensorboard),
     .help = "folder of event files, relative to output/data; left out: output/tensorboard; none: no files"},
    {"cache", TY_BIND_STRING, TOP(cache),
     .help = "folder of compiled kernels, relative to the recipe; none: none; left out: $TRAINYARD_CACHE_DIR"},
    {"compiled", TY_BIND_STRING, TOP(compiled),
     .help = "folder that `trainyard compile` left, relative to the recipe: no C compiler is needed"},
};

static const char *const remainders[] = {"drop", "pad", "join", NULL}; /* ty_remainder */
static const char *const headers[] = {"auto", "yes", "no", NULL};

#define DATA(name) offsetof(recipe_data, name)
static const ty_bind_row data_rows[] = {
    {"channel", TY_BIND_STRING, DATA(channel), .help = "input channel; left out: the name of the section"},
    {"path", TY_BIND_STRING, DATA(path), .help = "file or folder, relative to the recipe, in place of a channel"},
    {"files", TY_BIND_STRING, DATA(pattern), .help = "take only files that match this shell pattern"},
    {"format", TY_BIND_STRING, DATA(format),
     .help = "csv, npy, npz or idx; left out: found by content type, name and first bytes"},
    {"header", TY_BIND_CHOICE, DATA(header), "auto", .choices = headers,
     .help = "csv: whether the first line names the columns"},
    {"delimiter", TY_BIND_STRING, DATA(delimiter), .help = "csv: one character; left out: found in the first line"},
    {"shuffle", TY_BIND_BOOL, DATA(shuffle),
     .help = "train: a new order in every epoch (default true); validation: never"},
    {"remainder", TY_BIND_CHOICE, DATA(remainder), "drop", .choices = remainders,
     .help = "train: samples that fill no batch: left out, filled up with others, or with rows that do not count"},
    {"fields", TY_BIND_NODE, DATA(fields), .form = "a map, a list or same",
     .help = "{name: {...}}, or a list of names; validation: `same` as train (default)"},
};

#define FIELD(name) offsetof(recipe_field, name)
static const ty_bind_row field_rows[] = {
    {"columns", TY_BIND_NODE, FIELD(columns), .form = "an integer or text",
     .help = "csv: 0-63, 64, \"0-3,7\", -1 or names of the header"},
    {"member", TY_BIND_STRING, FIELD(member), .help = "npz: name of the array; left out: the field's name"},
    {"file", TY_BIND_STRING, FIELD(file), .help = "npy, idx: shell pattern of its files; left out: <field>*"},
    {"type", TY_BIND_STRING, FIELD(type), .help = "float32, int64 ...; left out: float32 for csv, else as stored"},
    {"shape", TY_BIND_NODE, FIELD(shape), .form = "a list of integers",
     .help = "of one sample, without the batch: [1, 8, 8]; []: a number"},
    {"scale", TY_BIND_FLOAT, FIELD(scale), "1", .help = "stored value * scale + offset"},
    {"offset", TY_BIND_FLOAT, FIELD(offset), "0", .help = "see scale"},
    {"missing", TY_BIND_NODE, FIELD(missing), .form = "a number",
     .help = "value of an empty csv field; left out: refused"},
};

#define LOSS(name) offsetof(recipe_loss, t.name)
#define LOSS_COMMON(target_key, target_help)                                                                     \
    {target_key, TY_BIND_STRING, LOSS(target), .help = target_help},                                             \
        {"weight", TY_BIND_FLOAT, LOSS(weight), "1", .help = "factor of this term"},                             \
    {                                                                                                            \
        "sample_weights", TY_BIND_STRING, LOSS(sample_weight), .help = "field of weights, shaped as the targets" \
    }
#define LOSS_CLASSES                                                                                            \
    {"ignore_index", TY_BIND_INT, LOSS(ignore_index), "-100", .help = "label of elements that do not count"},   \
        {"class_axis", TY_BIND_INT, offsetof(recipe_loss, class_axis),  "-1",                                   \
         .min = -8,    .max = 7,    .help = "axis of classes; -1: last"},                                       \
    {                                                                                                           \
        "class_weights", TY_BIND_NODE, offsetof(recipe_loss, class_weights), .form = "a list of numbers",       \
                                                                             .help = "list: one factor a class" \
    }

static const ty_bind_row cross_entropy_rows[] = {
    {"logits", TY_BIND_STRING, LOSS(output), .help = "model output; left out: the only one"},
    LOSS_COMMON("labels", "field of class numbers; left out: the only field that is no input"),
    {"dense_labels", TY_BIND_BOOL, LOSS(dense_labels), "false",
     .help = "labels hold a probability for each class, shaped as the logits"},
    {"label_smoothing", TY_BIND_FLOAT, LOSS(label_smoothing), "0", .max = 1, .help = "share spread over all classes"},
    LOSS_CLASSES,
};
static const ty_bind_row nll_rows[] = {
    {"log_probs", TY_BIND_STRING, LOSS(output), .help = "model output of log-probabilities; left out: the only one"},
    LOSS_COMMON("labels", "field of class numbers; left out: the only field that is no input"),
    LOSS_CLASSES,
};
static const ty_bind_row bce_rows[] = {
    {"logits", TY_BIND_STRING, LOSS(output), .help = "model output; left out: the only one"},
    LOSS_COMMON("labels", "field of 0 and 1, or shares; left out: the only field that is no input"),
    {"pos_weight", TY_BIND_FLOAT, LOSS(pos_weight), "1", .max = 1e9, .above_min = true,
     .help = "factor of the positives"},
};
static const ty_bind_row regression_rows[] = {
    {"output", TY_BIND_STRING, LOSS(output), .help = "model output; left out: the only one"},
    LOSS_COMMON("target", "field; left out: the only one that is no input"),
};
static const ty_bind_row huber_rows[] = {
    {"output", TY_BIND_STRING, LOSS(output), .help = "model output; left out: the only one"},
    LOSS_COMMON("target", "field; left out: the only one that is no input"),
    {"delta", TY_BIND_FLOAT, LOSS(delta), "1", .max = 1e30, .above_min = true,
     .help = "where the square becomes a line"},
};
static const ty_bind_row kl_div_rows[] = {
    {"log_probs", TY_BIND_STRING, LOSS(output), .help = "model output of log-probabilities; left out: the only one"},
    LOSS_COMMON("target", "field of probabilities; left out: the only one that is no input"),
};
static const ty_bind_row mean_rows[] = {
    {"output", TY_BIND_STRING, LOSS(output), .help = "model output whose mean is the term; left out: the only one"},
    {"weight", TY_BIND_FLOAT, LOSS(weight), "1", .help = "factor of this term"},
};

#define LOSS_MARGIN(value, ...)                                                \
    {                                                                          \
        "margin", TY_BIND_FLOAT, LOSS(margin), value, .max = 1e30, __VA_ARGS__ \
    }
static const ty_bind_row hinge_rows[] = {
    {"output", TY_BIND_STRING, LOSS(output), .help = "model output; left out: the only one"},
    LOSS_COMMON("target", "field of 1 and -1, or 1 and 0; left out: the only one that is no input"),
    LOSS_MARGIN("1", .help = "how far on the right side a score must be"),
};
static const ty_bind_row multi_margin_rows[] = {
    {"logits", TY_BIND_STRING, LOSS(output), .help = "model output; left out: the only one"},
    LOSS_COMMON("labels", "field of class numbers; left out: the only field that is no input"),
    LOSS_MARGIN("1", .help = "lead that the right class must have"),
    LOSS_CLASSES,
};
#define LOSS_AXIS                                                                                                   \
    {                                                                                                               \
        "axis", TY_BIND_INT, offsetof(recipe_loss, class_axis), "-1", .min = -8, .max = 7, .help = "of the vectors" \
    }
static const ty_bind_row cosine_rows[] = {
    {"output", TY_BIND_STRING, LOSS(output), .help = "model output of vectors; left out: the only one"},
    LOSS_COMMON("target", "field of vectors; left out: the only one that is no input"),
    LOSS_AXIS,
};
#define LOSS_PAIR                                                                                                \
    {"output", TY_BIND_STRING, LOSS(output), .required = true, .help = "model output: one vector of each pair"}, \
    {                                                                                                            \
        "other", TY_BIND_STRING, LOSS(other), .required = true, .help = "model output: the other vector"         \
    }
static const ty_bind_row cosine_embedding_rows[] = {
    LOSS_PAIR,
    LOSS_COMMON("target", "field: 1 alike, -1 not; left out: the only one that is no input"),
    {"margin", TY_BIND_FLOAT, LOSS(margin), "0", .min = -1, .max = 1,
     .help = "cosine up to which unlike ones may come"},
    LOSS_AXIS,
};
static const ty_bind_row contrastive_rows[] = {
    LOSS_PAIR,
    LOSS_COMMON("target", "field: 1 alike, 0 not; left out: the only one that is no input"),
    LOSS_MARGIN("1", .above_min = true, .help = "distance that unlike ones must keep"),
    LOSS_AXIS,
};
static const ty_bind_row ctc_rows[] = {
    {"logits", TY_BIND_STRING, LOSS(output), .help = "model output, or log-probabilities; left out: the only one"},
    LOSS_COMMON("labels", "field of class numbers [labels], padded; left out: the only field that is no input"),
    {"input_lengths", TY_BIND_STRING, LOSS(input_lengths), .help = "field: time steps of each sample; left out: all"},
    {"target_lengths", TY_BIND_STRING, LOSS(target_lengths), .help = "field: labels of each sample; left out: all"},
    {"blank", TY_BIND_INT, LOSS(blank), "0", .min = 0, .max = 1e9, .help = "class between labels"},
    {"time_axis", TY_BIND_INT, offsetof(recipe_loss, time_axis), "1", .min = 0, .max = 1,
     .help = "1: output is [batch, time, classes]; 0: [time, batch, classes]"},
    {"zero_infinity", TY_BIND_BOOL, LOSS(zero_infinity), "false", .help = "labels that do not fit count 0"},
};
static const ty_bind_row penalty_rows[] = {
    {"weight", TY_BIND_FLOAT, LOSS(weight), "1", .help = "factor of this term"},
    {"tensors", TY_BIND_NODE, offsetof(recipe_loss, tensors), .form = "a list",
     .help = "list of weights (names or shell patterns); left out: all that are trained"},
};

#define KIND(name, kind, rows, help)    \
    {                                   \
        name, kind, rows, N(rows), help \
    }

static const recipe_kind losses[] = {
    KIND("softmax_cross_entropy", TY_LOSS_SOFTMAX_CROSS_ENTROPY, cross_entropy_rows, "classes, from logits"),
    KIND("binary_cross_entropy_with_logits", TY_LOSS_BCE_LOGITS, bce_rows, "yes or no, from logits"),
    KIND("mse", TY_LOSS_MSE, regression_rows, "mean squared error"),
    KIND("mae", TY_LOSS_MAE, regression_rows, "mean absolute error"),
    KIND("huber", TY_LOSS_HUBER, huber_rows, "square near zero, line beyond"),
    KIND("nll", TY_LOSS_NLL, nll_rows, "classes, from log-probabilities"),
    KIND("kl_div", TY_LOSS_KL_DIV, kl_div_rows, "divergence from given probabilities"),
    KIND("hinge", TY_LOSS_HINGE, hinge_rows, "yes or no by a margin (mean of max(0, margin - s x))"),
    KIND("multi_margin", TY_LOSS_MULTI_MARGIN, multi_margin_rows, "classes by a margin (PyTorch's multi_margin_loss)"),
    KIND("cosine", TY_LOSS_COSINE, cosine_rows, "1 - cosine of output and target"),
    KIND("cosine_embedding", TY_LOSS_COSINE_EMBEDDING, cosine_embedding_rows, "angle of pairs, alike or not"),
    KIND("contrastive", TY_LOSS_CONTRASTIVE, contrastive_rows, "distance of pairs, alike or not, by a margin"),
    KIND("ctc", TY_LOSS_CTC, ctc_rows, "sequences of labels whose places are unknown"),
    KIND("l1", TY_LOSS_L1, penalty_rows, "sum of |w| over weights, beside other terms"),
    KIND("l2", TY_LOSS_L2, penalty_rows, "sum of w^2 over weights, beside other terms"),
    KIND("mean", TY_LOSS_MEAN, mean_rows, "mean of an output that is a loss already"),
};

#define OPT(name) offsetof(recipe_optimizer, o.name)
#define OPT_LR(value)                                                            \
    {                                                                            \
        "lr", TY_BIND_FLOAT, OPT(lr), value, .max = 1e6, .help = "learning rate" \
    }
#define OPT_DECAY(value)                                                                            \
    {                                                                                               \
        "weight_decay", TY_BIND_FLOAT, OPT(weight_decay), value, .max = 1e6, .help = "weight decay" \
    }
#define OPT_EPS(value)                                                                      \
    {                                                                                       \
        "eps", TY_BIND_FLOAT, OPT(eps), value, .max = 1, .help = "added to the denominator" \
    }
#define OPT_MOMENTUM                                                                              \
    {                                                                                             \
        "momentum", TY_BIND_FLOAT, OPT(momentum), "0", .max = 1, .help = "share of the last step" \
    }
#define OPT_BETAS                                                                                      \
    {"beta1", TY_BIND_FLOAT, OPT(beta1), "0.9", .max = 1, .help = "decay of the first moment"},        \
        {"beta2", TY_BIND_FLOAT, OPT(beta2), "0.999", .max = 1, .help = "decay of the second moment"}, \
    {                                                                                                  \
        "betas", TY_BIND_NODE, offsetof(recipe_optimizer, betas), .form = "a list of two numbers",     \
                                                                  .help = "[beta1, beta2] in one"      \
    }
#define OPT_AMSGRAD                                                                              \
    {                                                                                            \
        "amsgrad", TY_BIND_BOOL, OPT(amsgrad), "false", .help = "keep the largest second moment" \
    }

static const ty_bind_row sgd_rows[] = {
    OPT_LR("1e-3"),
    OPT_MOMENTUM,
    {"dampening", TY_BIND_FLOAT, OPT(dampening), "0", .max = 1, .help = "of the momentum"},
    {"nesterov", TY_BIND_BOOL, OPT(nesterov), "false", .help = "look ahead; needs momentum"},
    OPT_DECAY("0"),
};
static const ty_bind_row adam_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-8"), OPT_DECAY("0"), OPT_AMSGRAD};
static const ty_bind_row adamw_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-8"), OPT_DECAY("0.01"), OPT_AMSGRAD};
static const ty_bind_row nadam_rows[] = {
    OPT_LR("2e-3"),
    OPT_BETAS,
    OPT_EPS("1e-8"),
    OPT_DECAY("0"),
    {"momentum_decay", TY_BIND_FLOAT, OPT(momentum_decay), "4e-3", .max = 1, .help = "of the Nesterov schedule"},
};
static const ty_bind_row adamax_rows[] = {OPT_LR("2e-3"), OPT_BETAS, OPT_EPS("1e-8"), OPT_DECAY("0")};
static const ty_bind_row rmsprop_rows[] = {
    OPT_LR("1e-2"),  {"alpha", TY_BIND_FLOAT, OPT(alpha), "0.99", .max = 1, .help = "decay of the squares"},
    OPT_EPS("1e-8"), OPT_DECAY("0"),
    OPT_MOMENTUM,    {"centered", TY_BIND_BOOL, OPT(centered), "false", .help = "divide by the variance"},
};
static const ty_bind_row adagrad_rows[] = {
    OPT_LR("1e-2"),
    {"lr_decay", TY_BIND_FLOAT, OPT(lr_decay), "0", .max = 1e6, .help = "decay of the rate"},
    OPT_DECAY("0"),
    {"initial_accumulator", TY_BIND_FLOAT, OPT(initial_accumulator), "0", .max = 1e30, .help = "where the sums start"},
    OPT_EPS("1e-10"),
};
static const ty_bind_row adadelta_rows[] = {
    OPT_LR("1"),
    {"rho", TY_BIND_FLOAT, OPT(rho), "0.9", .max = 1, .help = "decay of both averages"},
    OPT_EPS("1e-6"),
    OPT_DECAY("0"),
};

static const ty_bind_row lion_rows[] = {
    OPT_LR("1e-4"),
    {"beta1", TY_BIND_FLOAT, OPT(beta1), "0.9", .max = 1, .help = "share of the memory in the step"},
    {"beta2", TY_BIND_FLOAT, OPT(beta2), "0.99", .max = 1, .help = "decay of the memory"},
    {"betas", TY_BIND_NODE, offsetof(recipe_optimizer, betas), .form = "a list of two numbers",
     .help = "[beta1, beta2] in one"},
    OPT_DECAY("0"),
};
static const ty_bind_row lamb_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-6"), OPT_DECAY("0.01")};
static const ty_bind_row lars_rows[] = {
    OPT_LR("1"),
    {"momentum", TY_BIND_FLOAT, OPT(momentum), "0.9", .max = 1, .help = "share of the last step"},
    {"trust", TY_BIND_FLOAT, OPT(trust), "1e-3", .max = 1e6, .above_min = true, .help = "trust coefficient"},
    OPT_EPS("0"),
    OPT_DECAY("1e-4"),
};
static const ty_bind_row ftrl_rows[] = {
    OPT_LR("1e-3"),
    {"lr_power", TY_BIND_FLOAT, OPT(lr_power), "-0.5", .min = -10, .max = 0, .help = "-0.5: rates fall as adagrad's"},
    {"initial_accumulator", TY_BIND_FLOAT, OPT(initial_accumulator), "0.1", .max = 1e30, .above_min = true,
     .help = "where the sums start"},
    {"l1", TY_BIND_FLOAT, OPT(l1), "0", .max = 1e30, .help = "strength of l1: weights become exactly 0"},
    {"l2", TY_BIND_FLOAT, OPT(l2), "0", .max = 1e30, .help = "strength of l2"},
    {"l2_shrinkage", TY_BIND_FLOAT, OPT(l2_shrinkage), "0", .max = 1e30, .help = "strength of l2 on the gradient"},
    {"beta", TY_BIND_FLOAT, OPT(beta), "0", .max = 1e30, .help = "the paper's beta"},
    OPT_DECAY("0"),
};
static const ty_bind_row keras_sgd_rows[] = {
    OPT_LR("1e-2"),
    OPT_MOMENTUM,
    {"nesterov", TY_BIND_BOOL, OPT(nesterov), "false", .help = "look ahead; needs momentum"},
    OPT_DECAY("0"),
};
static const ty_bind_row keras_adam_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-7"), OPT_DECAY("0"), OPT_AMSGRAD};
static const ty_bind_row keras_adamw_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-7"), OPT_DECAY("4e-3"),
                                               OPT_AMSGRAD};
static const ty_bind_row keras_nadam_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-7"), OPT_DECAY("0")};
static const ty_bind_row keras_rmsprop_rows[] = {
    OPT_LR("1e-3"),  {"alpha", TY_BIND_FLOAT, OPT(alpha), "0.9", .max = 1, .help = "decay of the squares (Keras' rho)"},
    OPT_EPS("1e-7"), OPT_DECAY("0"),
    OPT_MOMENTUM,    {"centered", TY_BIND_BOOL, OPT(centered), "false", .help = "divide by the variance"},
};
static const ty_bind_row keras_adagrad_rows[] = {
    OPT_LR("1e-3"),
    {"initial_accumulator", TY_BIND_FLOAT, OPT(initial_accumulator), "0.1", .max = 1e30,
     .help = "where the sums start"},
    OPT_EPS("1e-7"),
    OPT_DECAY("0"),
};
static const ty_bind_row keras_adadelta_rows[] = {
    OPT_LR("1e-3"),
    {"rho", TY_BIND_FLOAT, OPT(rho), "0.95", .max = 1, .help = "decay of both averages"},
    OPT_EPS("1e-7"),
    OPT_DECAY("0"),
};

static const recipe_kind optimizers[] = {
    KIND("adamw", TY_OPT_ADAMW, adamw_rows, "Adam with decoupled weight decay (the default)"),
    KIND("adam", TY_OPT_ADAM, adam_rows, "Adam"),
    KIND("sgd", TY_OPT_SGD, sgd_rows, "gradient descent, with momentum and Nesterov"),
    KIND("nadam", TY_OPT_NADAM, nadam_rows, "Adam with Nesterov momentum"),
    KIND("adamax", TY_OPT_ADAMAX, adamax_rows, "Adam by the infinity norm"),
    KIND("rmsprop", TY_OPT_RMSPROP, rmsprop_rows, "RMSprop"),
    KIND("adagrad", TY_OPT_ADAGRAD, adagrad_rows, "Adagrad"),
    KIND("adadelta", TY_OPT_ADADELTA, adadelta_rows, "Adadelta"),
    KIND("lion", TY_OPT_LION, lion_rows, "the sign of a momentum, decoupled decay"),
    KIND("lamb", TY_OPT_LAMB, lamb_rows, "Adam with a ratio for each tensor, for large batches"),
    KIND("lars", TY_OPT_LARS, lars_rows, "momentum with a ratio for each tensor, for large batches"),
    KIND("ftrl", TY_OPT_FTRL, ftrl_rows, "follow the regularised leader, for sparse linear models"),
    KIND("keras_sgd", TY_OPT_KERAS_SGD, keras_sgd_rows, "Keras' SGD: the rate is in the memory"),
    KIND("keras_adam", TY_OPT_KERAS_ADAM, keras_adam_rows, "Keras' Adam: eps beside the uncorrected root"),
    KIND("keras_adamw", TY_OPT_KERAS_ADAM, keras_adamw_rows, "Keras' AdamW"),
    KIND("keras_nadam", TY_OPT_KERAS_NADAM, keras_nadam_rows, "Keras' Nadam"),
    KIND("keras_adamax", TY_OPT_KERAS_ADAMAX, keras_nadam_rows, "Keras' Adamax"),
    KIND("keras_rmsprop", TY_OPT_KERAS_RMSPROP, keras_rmsprop_rows, "Keras' and TensorFlow's RMSprop: eps in the root"),
    KIND("keras_adagrad", TY_OPT_KERAS_ADAGRAD, keras_adagrad_rows, "Keras' Adagrad: eps in the root"),
    KIND("keras_adadelta", TY_OPT_KERAS_ADADELTA, keras_adadelta_rows, "Keras' Adadelta"),
};

#define SCHED(name)      offsetof(recipe_schedule, s.name)
#define SCHED_SPAN(name) offsetof(recipe_schedule, name)
static const char *const anneals[] = {"cos", "linear", NULL};

static const ty_bind_row step_rows[] = {
    {"step_size", TY_BIND_NODE, SCHED_SPAN(step_size), .required = true, .form = "an integer or text",
     .help = "\"500 steps\" or \"10 epochs\" between drops"},
    {"gamma", TY_BIND_FLOAT, SCHED(gamma), "0.1", .max = 1e3, .help = "factor of each drop"},
};
static const ty_bind_row exponential_rows[] = {
    {"gamma", TY_BIND_FLOAT, SCHED(gamma), .required = true, .max = 1e3, .help = "factor of each step"},
};
static const ty_bind_row polynomial_rows[] = {
    {"total_steps", TY_BIND_NODE, SCHED_SPAN(total), .form = "an integer or text",
     .help = "steps, or \"N epochs\", until 0; left out: the whole run"},
    {"power", TY_BIND_FLOAT, SCHED(power), "1", .max = 1e3, .help = "1: a line"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where it ends"},
};
static const ty_bind_row linear_rows[] = {
    {"total_steps", TY_BIND_NODE, SCHED_SPAN(total), .form = "an integer or text",
     .help = "steps, or \"N epochs\", until final_lr; left out: the whole run"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where the line ends"},
};
static const ty_bind_row cosine_decay_rows[] = {
    {"decay_steps", TY_BIND_NODE, SCHED_SPAN(decay), .form = "an integer or text",
     .help = "steps, or \"N epochs\", of falling; left out: the whole run"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where the cosine ends"},
};
static const ty_bind_row cosine_restarts_rows[] = {
    {"cycle_steps", TY_BIND_NODE, SCHED_SPAN(cycle), .required = true, .form = "an integer or text",
     .help = "steps, or \"N epochs\", of the first cycle"},
    {"cycle_mult", TY_BIND_FLOAT, SCHED(cycle_mult), "1", .min = 1, .max = 1e3,
     .help = "length of a cycle / length of the one before"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where each cycle ends"},
};
static const ty_bind_row piecewise_rows[] = {
    {"boundaries", TY_BIND_NODE, SCHED_SPAN(boundaries), .required = true, .form = "a list of integers or texts",
     .help = "list of steps, or \"N epochs\", at which the rate changes"},
    {"factors", TY_BIND_NODE, SCHED_SPAN(factors), .required = true, .form = "a list of numbers",
     .help = "list of factors of lr, the first before the first boundary: [1, 0.1, 0.01]"},
};
static const char *const threshold_modes[] = {"rel", "abs", NULL};
static const char *const plateau_modes[] = {"auto", "min", "max", NULL};
static const ty_bind_row plateau_rows[] = {
    {"factor", TY_BIND_FLOAT, SCHED(factor), "0.1", .max = 1, .above_min = true, .help = "of each drop"},
    {"patience", TY_BIND_INT, SCHED(patience), "10", .max = 1e9, .help = "evaluations without a better value"},
    {"threshold", TY_BIND_FLOAT, SCHED(threshold), "1e-4", .max = 1e30, .help = "by which a value must be better"},
    {"threshold_mode", TY_BIND_CHOICE, offsetof(recipe_schedule, threshold_mode), "rel", .choices = threshold_modes,
     .help = "rel: threshold is a share of the best value; abs: a difference"},
    {"cooldown", TY_BIND_INT, SCHED(cooldown), "0", .max = 1e9, .help = "evaluations after a drop that do not count"},
    {"min_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "the rate falls no lower"},
    {"metric", TY_BIND_STRING, SCHED(metric), .help = "name of a metric; left out: the loss on data.validation"},
    {"mode", TY_BIND_CHOICE, offsetof(recipe_schedule, mode), "auto", .choices = plateau_modes,
     .help = "min: lower is better; auto: max for accuracy and the like"},
};
static const ty_bind_row warmup_cosine_rows[] = {
    {"warmup_steps", TY_BIND_NODE, SCHED_SPAN(warmup), "0", .form = "an integer or text",
     .help = "steps, or \"N epochs\", of rising from start_factor * lr to lr"},
    {"start_factor", TY_BIND_FLOAT, SCHED(start_factor), "0", .max = 1,
     .help = "where the warmup starts, as a part of lr"},
    {"decay_steps", TY_BIND_NODE, SCHED_SPAN(decay), .form = "an integer or text",
     .help = "steps, or \"N epochs\", of falling; left out: the rest of the run"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where the cosine ends"},
};
static const ty_bind_row one_cycle_rows[] = {
    {"total_steps", TY_BIND_NODE, SCHED_SPAN(total), .form = "an integer or text",
     .help = "steps, or \"N epochs\"; left out: the whole run"},
    {"pct_start", TY_BIND_FLOAT, SCHED(pct_start), "0.3", .max = 1, .help = "share of the rise"},
    {"div_factor", TY_BIND_FLOAT, SCHED(div_factor), "25", .max = 1e12, .above_min = true, .help = "lr / first rate"},
    {"final_div_factor", TY_BIND_FLOAT, SCHED(final_div_factor), "1e4", .max = 1e12, .above_min = true,
     .help = "first rate / last rate"},
    {"anneal", TY_BIND_CHOICE, offsetof(recipe_schedule, anneal), "cos", .choices = anneals,
     .help = "shape of both halves"},
};

static const recipe_kind schedules[] = {
    {"constant", TY_SCHED_CONSTANT, NULL, 0, "lr stays (the default)"},
    KIND("warmup_cosine", TY_SCHED_WARMUP_COSINE, warmup_cosine_rows, "rise, then half a cosine down"),
    KIND("one_cycle", TY_SCHED_ONE_CYCLE, one_cycle_rows, "rise to lr, fall to almost nothing"),
    KIND("step", TY_SCHED_STEP, step_rows, "a drop now and then"),
    KIND("exponential", TY_SCHED_EXPONENTIAL, exponential_rows, "a small drop every step"),
    KIND("polynomial", TY_SCHED_POLYNOMIAL, polynomial_rows, "to final_lr, by a power"),
    KIND("linear", TY_SCHED_POLYNOMIAL, linear_rows, "to final_lr, in a line"),
    KIND("cosine", TY_SCHED_WARMUP_COSINE, cosine_decay_rows, "half a cosine down"),
    KIND("cosine_restarts", TY_SCHED_COSINE_RESTARTS, cosine_restarts_rows, "half a cosine down, again and again"),
    KIND("piecewise", TY_SCHED_PIECEWISE, piecewise_rows, "a factor for each stretch of steps"),
    KIND("plateau", TY_SCHED_PLATEAU, plateau_rows, "a drop when evaluations get no better"),
};

static const ty_bind_row warmup_rows[] = {
    {"steps", TY_BIND_NODE, offsetof(recipe_warmup, steps), .required = true, .form = "an integer or text",
     .help = "steps, or \"N epochs\", of rising to the schedule's first rate"},
    {"start_factor", TY_BIND_FLOAT, offsetof(recipe_warmup, start_factor), "0", .max = 1,
     .help = "where it starts, as a part of that rate"},
};
static const ty_bind_row ema_rows[] = {
    {"decay", TY_BIND_FLOAT, offsetof(recipe_ema, decay), "0.999", .max = 0.999999999, .above_min = true,
     .help = "share of the old average in the new one"},
    {"use_ema", TY_BIND_BOOL, offsetof(recipe_ema, use_ema), "false",
     .help = "evaluate the averages, and write them as the trained model"},
};

static const ty_bind_row clip_rows[] = {
    {"max", TY_BIND_FLOAT, offsetof(recipe_clip, max), .required = true, .max = 1e30, .above_min = true,
     .help = "the limit"},
};
static const recipe_kind clips[] = {
    KIND("global_norm", TY_CLIP_GLOBAL_NORM, clip_rows, "scale all gradients so that their norm is at most max"),
    KIND("norm", TY_CLIP_NORM, clip_rows, "scale each tensor's gradient so that its norm is at most max"),
    KIND("value", TY_CLIP_VALUE, clip_rows, "cut each element to [-max, max]"),
};

#define METRIC(name) offsetof(recipe_metric, name)
#define METRIC_COMMON                                                                                      \
    {"name", TY_BIND_STRING, METRIC(name), .help = "in metric lines; left out: the kind (top_5 for k 5)"}, \
        {"output", TY_BIND_STRING, METRIC(output), .help = "model output; left out: the loss's"},          \
    {                                                                                                      \
        "target", TY_BIND_STRING, METRIC(target), .help = "field; left out: the loss's"                    \
    }
static const char *const averages[] = {"auto", "binary", "macro", NULL};
static const ty_bind_row metric_rows[] = {METRIC_COMMON};
static const ty_bind_row top_k_rows[] = {
    METRIC_COMMON,
    {"k", TY_BIND_INT, METRIC(k), "5", .min = 1, .max = 1 << 24, .help = "how many guesses are free"},
};
static const ty_bind_row confusion_rows[] = {
    METRIC_COMMON,
    {"average", TY_BIND_CHOICE, METRIC(average), "auto", .choices = averages,
     .help = "binary: of yes, or of class 1 of two; macro: mean over classes; auto: by the output's shape"},
    {"threshold", TY_BIND_FLOAT, METRIC(threshold), "0",
     .help = "outputs of one number: above it is yes; 0 fits logits, 0.5 probabilities"},
};
static const recipe_kind metric_kinds[] = {
    KIND("accuracy", TY_METRIC_ACCURACY, metric_rows, "share of rows whose largest logit is the label's"),
    KIND("top_k", TY_METRIC_TOP_K, top_k_rows, "share of rows whose label is among the k largest logits"),
    KIND("precision", TY_METRIC_PRECISION, confusion_rows, "share of what is said to be that is"),
    KIND("recall", TY_METRIC_RECALL, confusion_rows, "share of what is that is said to be"),
    KIND("f1", TY_METRIC_F1, confusion_rows, "harmonic mean of precision and recall"),
    KIND("auc", TY_METRIC_AUC, metric_rows, "area under the ROC curve, of one logit or two classes"),
    KIND("perplexity", TY_METRIC_PERPLEXITY, metric_rows, "exp of the mean cross entropy"),
    KIND("mae", TY_METRIC_MAE, metric_rows, "mean absolute error"),
    KIND("mse", TY_METRIC_MSE, metric_rows, "mean squared error"),
};

static const char *const checkpoint_policies[] = {"warn", "stop", NULL};
static const ty_bind_row checkpoint_rows[] = {
    {"every", TY_BIND_NODE, offsetof(recipe_checkpoint, every), "1 epoch", .form = "text",
     .help = "\"1 epoch\" or \"500 steps\"; always at the end and at a stop"},
    {"keep", TY_BIND_INT, offsetof(recipe_checkpoint, keep), "3", .min = 1, .max = 1e6,
     .help = "how many of the newest stay"},
    {"on_error", TY_BIND_CHOICE, offsetof(recipe_checkpoint, on_error), "warn", .choices = checkpoint_policies,
     .help = "a failed save: warn (two in a row stop the run) or stop"},
    {"sharded", TY_BIND_BOOL, offsetof(recipe_checkpoint, sharded), "false",
     .help = "each of several ranks writes its part, into its own host's folder; else rank 0 writes all"},
};

static const char *const wires[] = {"none", "float16", "bfloat16", NULL};          /* as ty_recipe_wire */
static const char *const server_modes[] = {"async", "bounded", "sync", NULL};      /* as ty_server_mode */
static const char *const partitioners[] = {"min_size", "max_size", "fixed", NULL}; /* as ty_recipe_partitioner */
#define DIST(name) offsetof(recipe_distributed, name)
static const ty_bind_row distributed_rows[] = {
    {"bucket_bytes", TY_BIND_INT, DIST(bucket_bytes), "0", .min = 0, .max = 1e12,
     .help = "gradients that travel together, at least; 0: chosen by the compiler"},
    {"wire", TY_BIND_CHOICE, DIST(wire), "none", .choices = wires,
     .help = "what float32 gradients travel as: none as they are, else half the bytes, rounded"},
    {"hierarchical", TY_BIND_BOOL, DIST(hierarchical), "false",
     .help = "add up within each host first, then between hosts"},
    {"optimizer_sharding", TY_BIND_BOOL, DIST(optimizer_sharding), "false",
     .help = "each rank keeps the optimizer's moments of its part of the weights alone"},
    {"sync_batch_norm", TY_BIND_BOOL, DIST(sync_batch_norm), "false",
     .help = "batch norm by the statistics of all ranks' rows; else each rank has its own"},
    {"timeline", TY_BIND_BOOL, DIST(timeline), "false",
     .help = "write what each rank exchanged when to output/data/timeline/, for chrome://tracing"},
    {"stall_seconds", TY_BIND_INT, DIST(stall_seconds), "600", .min = 0, .max = 1e6,
     .help = "end a job in which some ranks wait this long for one that does nothing; 0: never"},
    {"restarts", TY_BIND_INT, DIST(restarts), "0", .min = 0, .max = 1000,
     .help = "after a failure start all ranks anew from the newest checkpoint, so many times"},
    {"meet_seconds", TY_BIND_INT, DIST(meet_seconds), "600", .min = 1, .max = 1e6,
     .help = "how long hosts wait for each other at the start"},
    {"interface", TY_BIND_STRING, DIST(interface),
     .help = "network interface between hosts; left out: the platform's, else found out"},
    {"port", TY_BIND_INT, DIST(port), "7777", .min = 1, .max = 65535, .help = "of the link between the hosts' agents"},
    {"server_mode", TY_BIND_CHOICE, DIST(server_mode), "async", .choices = server_modes,
     .help = "parameter servers: gradients count as they come, nobody runs ahead, or steps are of all workers"},
    {"staleness", TY_BIND_INT, DIST(staleness), "4", .min = 0, .max = 1e6,
     .help = "server_mode bounded: how many steps a worker may be ahead of the slowest"},
    {"backup_workers", TY_BIND_INT, DIST(backup_workers), "0", .min = 0, .max = 1000,
     .help = "server_mode sync: so many workers are not waited for; what comes too late is dropped"},
    {"partitioner", TY_BIND_CHOICE, DIST(partitioner), "min_size", .choices = partitioners,
     .help = "parameter servers: how weights are cut, as TensorFlow's partitioners of these names do"},
    {"part_bytes", TY_BIND_INT, DIST(part_bytes), "262144", .min = 1, .max = 1e9,
     .help = "of a part at least (min_size) or at most (max_size)"},
    {"server_port", TY_BIND_INT, DIST(server_port), "2223", .min = 1, .max = 65535, .help = "of parameter servers"},
};

#define SECTION(name, path, help, rows) const recipe_section name = {path, help, rows, N(rows)}
SECTION(ty_recipe_top_section, "", "keys of train.yaml", top_rows);
SECTION(ty_recipe_data_section, "data.train, data.validation", "where samples come from", data_rows);
SECTION(ty_recipe_field_section, "data.train.fields.NAME", "one quantity of a sample", field_rows);
SECTION(ty_recipe_warmup_section, "warmup", "a rise in front of the schedule", warmup_rows);
SECTION(ty_recipe_ema_section, "ema", "averages of the trained weights", ema_rows);
SECTION(ty_recipe_distributed_section, "distributed", "several ranks that train together", distributed_rows);
SECTION(ty_recipe_checkpoint_section, "checkpoint", "saving the state of the run", checkpoint_rows);

#define CHOICE(name, key, help, kinds) const recipe_choice name = {key, help, kinds, N(kinds)}
CHOICE(ty_recipe_loss_choice, "loss", "what is made small", losses);
CHOICE(ty_recipe_optimizer_choice, "optimizer", "how weights follow the gradient", optimizers);
CHOICE(ty_recipe_schedule_choice, "schedule", "learning rate over the steps", schedules);
CHOICE(ty_recipe_clip_choice, "clip", "limit of the gradient", clips);
CHOICE(ty_recipe_metric_choice, "metrics", "what is measured on the validation data", metric_kinds);

const recipe_alias ty_recipe_aliases[] = {
    {"learning_rate", "optimizer.*.lr"},
    {"lr", "optimizer.*.lr"},
    {"weight_decay", "optimizer.*.weight_decay"},
    {"wd", "optimizer.*.weight_decay"},
    {"momentum", "optimizer.*.momentum"},
    {"nesterov", "optimizer.*.nesterov"},
    {"beta1", "optimizer.*.beta1"},
    {"beta2", "optimizer.*.beta2"},
    {"betas", "optimizer.*.betas"},
    {"eps", "optimizer.*.eps"},
    {"epsilon", "optimizer.*.eps"},
    {"warmup_steps", "schedule.*.warmup_steps"},
    {"gamma", "schedule.*.gamma"},
    {"step_size", "schedule.*.step_size"},
    {"label_smoothing", "loss.*.label_smoothing"},
    {"max_grad_norm", "clip.global_norm"},
    {"num_epochs", "epochs"},
    {"n_epochs", "epochs"},
    {"num_train_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"train_batch_size", "batch_size"},
    {"mini_batch_size", "batch_size"},
    {"per_device_train_batch_size", "batch_size"},
    {"gradient_accumulation_steps", "accumulate"},
    {"accumulation_steps", "accumulate"},
    {"steps", "max_steps"},
    {"num_steps", "max_steps"},
    {"random_seed", "seed"},
    {"num_threads", "threads"},
};
const size_t ty_recipe_n_aliases = N(ty_recipe_aliases);
