/* recipe_losses.c - the tables of losses. Defaults are PyTorch's (torch.nn.functional), those of keras_* Keras'
 * (keras.losses). */
#include "entrypoint/recipe_keys.h"

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

/* ---- Keras ---- */

static const char *const reductions[] = {"mean", "sum", "weighted_mean", NULL}; /* as ty_reduction */
#define KERAS_COMMON                                                                                         \
    {"output", TY_BIND_STRING, LOSS(output), .help = "model output; left out: the only one"},                \
        LOSS_COMMON("target", "field; left out: the only one that is no input"),                             \
        {"class_weights", TY_BIND_NODE, offsetof(recipe_loss, class_weights), .form = "a list of numbers",   \
         .help = "list: factor of a row by the class of its target; in training alone"},                     \
    {                                                                                                        \
        "reduction", TY_BIND_CHOICE, offsetof(recipe_loss, reduction), "mean",                               \
            .choices = reductions, .help = "divide the sum by the number of rows, nothing, or their weights" \
    }
#define KERAS_LOGITS                                                                     \
    {                                                                                    \
        "from_logits", TY_BIND_BOOL, LOSS(from_logits), "false",                         \
            .help = "the output is no probability but what goes into softmax or sigmoid" \
    }
#define KERAS_SMOOTHING                                                                                       \
    {                                                                                                         \
        "label_smoothing", TY_BIND_FLOAT, LOSS(label_smoothing), "0", .max = 1,                               \
                                                                      .help = "share spread over all classes" \
    }
#define KERAS_GAMMA                                                                                   \
    {                                                                                                 \
        "gamma", TY_BIND_FLOAT, LOSS(gamma), "2", .max = 1e3, .help = "power of what is missing to 1" \
    }
#define KERAS_ALPHA                                                               \
    {                                                                             \
        "alpha", TY_BIND_FLOAT, LOSS(alpha), "0.25", .max = 1e9, .help = "factor" \
    }
static const ty_bind_row keras_rows[] = {KERAS_COMMON};
static const ty_bind_row keras_sparse_rows[] = {
    KERAS_COMMON,
    KERAS_LOGITS,
    {"ignore_index", TY_BIND_INT, LOSS(ignore_index), "-100", .help = "label of rows that do not count"},
};
static const ty_bind_row keras_categorical_rows[] = {KERAS_COMMON, KERAS_LOGITS, KERAS_SMOOTHING};
static const ty_bind_row keras_categorical_focal_rows[] = {KERAS_COMMON, KERAS_LOGITS, KERAS_SMOOTHING, KERAS_ALPHA,
                                                           KERAS_GAMMA};
static const ty_bind_row keras_binary_focal_rows[] = {
    KERAS_COMMON,    KERAS_LOGITS,
    KERAS_SMOOTHING, KERAS_ALPHA,
    KERAS_GAMMA,     {"balanced", TY_BIND_BOOL, LOSS(balanced), "false", .help = "alpha weighs yes, 1 - alpha no"},
};
static const ty_bind_row keras_huber_rows[] = {
    KERAS_COMMON,
    {"delta", TY_BIND_FLOAT, LOSS(delta), "1", .max = 1e30, .above_min = true,
     .help = "where the square becomes a line"},
};

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
    KIND("keras_sparse_crossentropy", TY_LOSS_KERAS_SPARSE_CROSSENTROPY, keras_sparse_rows,
         "Keras' SparseCategoricalCrossentropy"),
    KIND("keras_categorical_crossentropy", TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY, keras_categorical_rows,
         "Keras' CategoricalCrossentropy"),
    KIND("keras_categorical_focal", TY_LOSS_KERAS_CATEGORICAL_FOCAL, keras_categorical_focal_rows,
         "Keras' CategoricalFocalCrossentropy"),
    KIND("keras_binary_crossentropy", TY_LOSS_KERAS_BINARY_CROSSENTROPY, keras_categorical_rows,
         "Keras' BinaryCrossentropy"),
    KIND("keras_binary_focal", TY_LOSS_KERAS_BINARY_FOCAL, keras_binary_focal_rows, "Keras' BinaryFocalCrossentropy"),
    KIND("keras_mse", TY_LOSS_KERAS_MSE, keras_rows, "Keras' MeanSquaredError"),
    KIND("keras_mae", TY_LOSS_KERAS_MAE, keras_rows, "Keras' MeanAbsoluteError"),
    KIND("keras_mape", TY_LOSS_KERAS_MAPE, keras_rows, "Keras' MeanAbsolutePercentageError"),
    KIND("keras_msle", TY_LOSS_KERAS_MSLE, keras_rows, "Keras' MeanSquaredLogarithmicError"),
    KIND("keras_huber", TY_LOSS_KERAS_HUBER, keras_huber_rows, "Keras' Huber"),
    KIND("keras_log_cosh", TY_LOSS_KERAS_LOG_COSH, keras_rows, "Keras' LogCosh"),
    KIND("keras_kl_divergence", TY_LOSS_KERAS_KL_DIVERGENCE, keras_rows, "Keras' KLDivergence"),
    KIND("keras_poisson", TY_LOSS_KERAS_POISSON, keras_rows, "Keras' Poisson"),
    KIND("keras_cosine_similarity", TY_LOSS_KERAS_COSINE_SIMILARITY, keras_rows, "Keras' CosineSimilarity"),
    KIND("keras_hinge", TY_LOSS_KERAS_HINGE, keras_rows, "Keras' Hinge"),
    KIND("keras_squared_hinge", TY_LOSS_KERAS_SQUARED_HINGE, keras_rows, "Keras' SquaredHinge"),
    KIND("keras_categorical_hinge", TY_LOSS_KERAS_CATEGORICAL_HINGE, keras_rows, "Keras' CategoricalHinge"),
};

CHOICE(ty_recipe_loss_choice, "loss", "what is made small", losses);
