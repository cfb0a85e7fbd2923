/* keras_recipe.c - see keras_recipe.h. One table a section: Keras' class, the recipe's kind, and its keys. */
#include "compiler/import/keras/keras_recipe.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RECIPE_MAX_KEYS = 10, RECIPE_MAX_BYTES = 1 << 20 };

typedef struct recipe_text {
    const keras_recipe_of *in;
    ty_arena *arena;
    ty_buf *buf;
    ty_json_writer w;
    ty_error *err;
} recipe_text;

/* A key of Keras' configuration and what the recipe calls it. */
typedef struct recipe_key {
    const char *keras, *key;
} recipe_key;

typedef struct recipe_class {
    const char *names[5]; /* class, function, short names */
    const char *kind;
    recipe_key keys[RECIPE_MAX_KEYS];
} recipe_class;

/* ---- reading ------------------------------------------------------------------------------------------------------
 */

static bool recipe_is_null(const ty_doc *d)
{
    return !d || d->kind == TY_DOC_NULL;
}

static const char *recipe_string(const ty_doc *d)
{
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

/* A number, or `absent`: NaN for what is none. */
static double recipe_number(const ty_doc *map, const char *key, double absent)
{
    const ty_doc *d = ty_doc_find(map, key);
    if (recipe_is_null(d))
        return absent;
    if (d->kind == TY_DOC_BOOL)
        return d->boolean;
    return d->kind == TY_DOC_INT ? (double)d->integer : d->kind == TY_DOC_FLOAT ? d->number : NAN;
}

/* {"class_name": ..., "config": {...}}, a name, or a function by name. */
static const char *recipe_class_of(const ty_doc *d, const ty_doc **config)
{
    *config = NULL;
    const char *name = recipe_string(d);
    if (name || !d || d->kind != TY_DOC_MAP)
        return name;
    name = recipe_string(ty_doc_find(d, "class_name"));
    const ty_doc *c = ty_doc_find(d, "config");
    if (name && strcmp(name, "function") == 0)
        return recipe_string(c);
    *config = c && c->kind == TY_DOC_MAP ? c : NULL;
    return name;
}

static const recipe_class *recipe_find(const recipe_class *list, size_t n, const char *name)
{
    const char *custom = strrchr(name, '>'); /* "Custom>AdamW", as old files have it */
    if (custom)
        name = custom + 1;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 5 && list[i].names[k]; k++)
            if (strcmp(list[i].names[k], name) == 0)
                return &list[i];
    return NULL;
}

static int recipe_refuse_value(const recipe_text *t, const char *class, const char *key, const char *expected)
{
    ty_error_set(t->err, TY_E_MODEL_FILE, "%.100s: \"%s\" is not %s", class, key, expected);
    return ty_error_at(t->err, "compile settings");
}

/* ---- writing ------------------------------------------------------------------------------------------------------
 */

static void recipe_begin(recipe_text *t, const char *section)
{
    ty_buf_addf(t->buf, "%s: ", section);
    ty_json_writer_init(&t->w, t->buf, TY_JSON_SPACED);
}

static void recipe_end(recipe_text *t)
{
    ty_buf_adds(t->buf, "\n");
}

/* A class that is not known stands in the recipe under its own name: it is refused there, unless the user's recipe has
 * a section of its own. */
static void recipe_put_unknown(recipe_text *t, const char *section, const char *name)
{
    recipe_begin(t, section);
    ty_json_open_map(&t->w, NULL);
    ty_json_open_map(&t->w, name ? name : "?");
    ty_json_close(&t->w);
    ty_json_close(&t->w);
    recipe_end(t);
}

static void recipe_put_number(recipe_text *t, const char *key, double v)
{
    if (v == floor(v) && fabs(v) < 1e15)
        ty_json_put_int(&t->w, key, (int64_t)v);
    else
        ty_json_put_float(&t->w, key, v);
}

/* The keys that a class and its configuration have in common. */
static int recipe_put_keys(recipe_text *t, const recipe_class *class, const ty_doc *config)
{
    for (int i = 0; i < RECIPE_MAX_KEYS && class->keys[i].keras; i++) {
        const recipe_key *k = &class->keys[i];
        const ty_doc *d = ty_doc_find(config, k->keras);
        double v = recipe_number(config, k->keras, 0);
        if (recipe_is_null(d))
            continue;
        if (!isfinite(v))
            return recipe_refuse_value(t, class->names[0], k->keras, "a number");
        if (d->kind == TY_DOC_BOOL)
            ty_json_put_bool(&t->w, k->key, d->boolean);
        else
            recipe_put_number(t, k->key, v);
    }
    return 0;
}

/* ---- schedule -----------------------------------------------------------------------------------------------------
 */

static const recipe_class recipe_schedules[] = {
    {{"ExponentialDecay"},
     "keras_exponential",
     {{"decay_steps", "decay_steps"}, {"decay_rate", "decay_rate"}, {"staircase", "staircase"}}},
    {{"InverseTimeDecay"},
     "keras_inverse_time",
     {{"decay_steps", "decay_steps"}, {"decay_rate", "decay_rate"}, {"staircase", "staircase"}}},
    {{"PolynomialDecay"},
     "keras_polynomial",
     {{"decay_steps", "decay_steps"}, {"end_learning_rate", "final_lr"}, {"power", "power"}, {"cycle", "cycle"}}},
    {{"CosineDecay"},
     "keras_cosine",
     {{"decay_steps", "decay_steps"},
      {"alpha", "alpha"},
      {"warmup_target", "warmup_target"},
      {"warmup_steps", "warmup_steps"}}},
    {{"CosineDecayRestarts"},
     "keras_cosine_restarts",
     {{"first_decay_steps", "first_decay_steps"}, {"t_mul", "t_mul"}, {"m_mul", "m_mul"}, {"alpha", "alpha"}}},
    {{"PiecewiseConstantDecay"}, "piecewise", {{0}}},
};

static double recipe_at(const ty_doc *list, size_t i)
{
    const ty_doc *d = ty_doc_at(list, i);
    return !d ? NAN : d->kind == TY_DOC_INT ? (double)d->integer : d->kind == TY_DOC_FLOAT ? d->number : NAN;
}

/* Ours changes at its boundaries, Keras' behind them; its values are factors of the first. */
static int recipe_put_piecewise(recipe_text *t, const ty_doc *config, double first)
{
    const ty_doc *boundaries = ty_doc_find(config, "boundaries"), *values = ty_doc_find(config, "values");
    size_t n = ty_doc_len(boundaries);
    if (ty_doc_len(values) != n + 1)
        return recipe_refuse_value(t, "PiecewiseConstantDecay", "values", "one longer than its boundaries");
    ty_json_open_list(&t->w, "boundaries");
    for (size_t i = 0; i < n; i++) {
        double at = floor(recipe_at(boundaries, i)) + 1;
        if (!(at >= 0 && at < 1e12))
            return recipe_refuse_value(t, "PiecewiseConstantDecay", "boundaries", "a list of steps");
        ty_json_put_int(&t->w, NULL, (int64_t)at);
    }
    ty_json_close(&t->w);
    ty_json_open_list(&t->w, "factors");
    for (size_t i = 0; i <= n; i++) {
        double v = recipe_at(values, i);
        if (!isfinite(v))
            return recipe_refuse_value(t, "PiecewiseConstantDecay", "values", "a list of numbers");
        ty_json_put_float(&t->w, NULL, first == 0 ? v : v / first);
    }
    ty_json_close(&t->w);
    return 0;
}

static int recipe_put_schedule(recipe_text *t, const ty_doc *schedule, double lr)
{
    const ty_doc *config;
    const char *name = recipe_class_of(schedule, &config);
    const recipe_class *class =
        name ? recipe_find(recipe_schedules, sizeof recipe_schedules / sizeof *recipe_schedules, name) : NULL;
    if (!class) {
        recipe_put_unknown(t, "schedule", name);
        return 0;
    }
    recipe_begin(t, "schedule");
    ty_json_open_map(&t->w, NULL);
    ty_json_open_map(&t->w, class->kind);
    int rc =
        strcmp(class->kind, "piecewise") == 0 ? recipe_put_piecewise(t, config, lr) : recipe_put_keys(t, class, config);
    ty_json_close(&t->w);
    ty_json_close(&t->w);
    recipe_end(t);
    return rc;
}

/* The rate at the beginning, of a number or a schedule; NaN if it is neither. */
static double recipe_first_rate(const ty_doc *lr)
{
    if (lr->kind != TY_DOC_MAP)
        return lr->kind == TY_DOC_INT ? (double)lr->integer : lr->kind == TY_DOC_FLOAT ? lr->number : NAN;
    const ty_doc *config = ty_doc_find(lr, "config"), *values = ty_doc_find(config, "values");
    double first = values ? recipe_at(values, 0) : recipe_number(config, "initial_learning_rate", NAN);
    return values && first == 0 ? 1 : first;
}

/* ---- optimizer ----------------------------------------------------------------------------------------------------
 */

#define BETAS                                 \
    {"beta_1", "beta1"}, {"beta_2", "beta2"}, \
    {                                         \
        "epsilon", "eps"                      \
    }
#define DECAY                          \
    {                                  \
        "weight_decay", "weight_decay" \
    }

static const recipe_class recipe_optimizers[] = {
    {{"SGD", "sgd"}, "keras_sgd", {DECAY, {"momentum", "momentum"}, {"nesterov", "nesterov"}}},
    {{"RMSprop", "rmsprop"},
     "keras_rmsprop",
     {DECAY, {"rho", "alpha"}, {"momentum", "momentum"}, {"epsilon", "eps"}, {"centered", "centered"}}},
    {{"Adam", "adam"}, "keras_adam", {DECAY, BETAS, {"amsgrad", "amsgrad"}}},
    {{"AdamW", "adamw"}, "keras_adamw", {DECAY, BETAS, {"amsgrad", "amsgrad"}}},
    {{"Nadam", "nadam"}, "keras_nadam", {DECAY, BETAS}},
    {{"Adamax", "adamax"}, "keras_adamax", {DECAY, BETAS}},
    {{"Lamb", "lamb"}, "keras_lamb", {DECAY, BETAS}},
    {{"Lion", "lion"}, "lion", {DECAY, {"beta_1", "beta1"}, {"beta_2", "beta2"}}},
    {{"Adagrad", "adagrad"},
     "keras_adagrad",
     {DECAY, {"initial_accumulator_value", "initial_accumulator"}, {"epsilon", "eps"}}},
    {{"Adadelta", "adadelta"}, "keras_adadelta", {DECAY, {"rho", "rho"}, {"epsilon", "eps"}}},
    {{"Ftrl", "ftrl"},
     "ftrl",
     {DECAY,
      {"learning_rate_power", "lr_power"},
      {"initial_accumulator_value", "initial_accumulator"},
      {"l1_regularization_strength", "l1"},
      {"l2_regularization_strength", "l2"},
      {"l2_shrinkage_regularization_strength", "l2_shrinkage"},
      {"beta", "beta"}}},
};

/* Rates where the file leaves them out: keras.optimizers. */
static double recipe_default_rate(const recipe_class *class)
{
    return strcmp(class->kind, "keras_sgd") == 0 ? 0.01 : 0.001;
}

static void recipe_put_limit(recipe_text *t, const char *kind, double max)
{
    recipe_begin(t, "clip");
    ty_json_open_map(&t->w, NULL);
    recipe_put_number(t, kind, max);
    ty_json_close(&t->w);
    recipe_end(t);
}

/* Only the first of these that is set acts. */
static void recipe_put_clip(recipe_text *t, const ty_doc *config)
{
    static const recipe_key clips[] = {
        {"clipnorm", "norm"}, {"global_clipnorm", "keras_global_norm"}, {"clipvalue", "value"}};
    for (int i = 0; i < 3; i++) {
        double max = recipe_number(config, clips[i].keras, 0);
        if (max > 0) {
            recipe_put_limit(t, clips[i].key, max);
            return;
        }
    }
}

static int recipe_put_averages(recipe_text *t, const ty_doc *config)
{
    if (!(recipe_number(config, "use_ema", 0) > 0))
        return 0;
    double every = recipe_number(config, "ema_overwrite_frequency", 0);
    double momentum = recipe_number(config, "ema_momentum", 0.99);
    if (!(momentum > 0 && momentum < 1))
        return recipe_refuse_value(t, "the optimizer", "ema_momentum", "between 0 and 1");
    recipe_begin(t, "ema");
    ty_json_open_map(&t->w, NULL);
    ty_json_put_float(&t->w, "decay", momentum);
    ty_json_put_string(&t->w, "use_ema", "at_end");
    if (every > 0)
        recipe_put_number(t, "overwrite_every", every);
    ty_json_close(&t->w);
    recipe_end(t);
    return 0;
}

/* Keras 2's `decay`: lr / (1 + decay t). */
static void recipe_put_old_decay(recipe_text *t, double decay)
{
    ty_buf_addf(t->buf, "schedule: {keras_inverse_time: {decay_steps: 1, decay_rate: %.17g}}\n", decay);
}

static int recipe_put_optimizer(recipe_text *t, const char *name, const ty_doc *config)
{
    const recipe_class *class =
        recipe_find(recipe_optimizers, sizeof recipe_optimizers / sizeof *recipe_optimizers, name);
    if (!class) {
        recipe_put_unknown(t, "optimizer", name);
        return 0;
    }
    const ty_doc *lr = ty_doc_find(config, "learning_rate");
    if (!lr)
        lr = ty_doc_find(config, "lr");
    double rate = recipe_is_null(lr) ? recipe_default_rate(class) : recipe_first_rate(lr);
    bool scheduled = lr && lr->kind == TY_DOC_MAP;
    if (scheduled && isnan(rate)) /* of a schedule that is not known, which is refused as such */
        rate = recipe_default_rate(class);
    if (!(rate >= 0 && rate <= 1e6))
        return recipe_refuse_value(t, name, "learning_rate", "a rate");
    recipe_begin(t, "optimizer");
    ty_json_open_map(&t->w, NULL);
    ty_json_open_map(&t->w, class->kind);
    ty_json_put_float(&t->w, "lr", rate);
    int rc = recipe_put_keys(t, class, config);
    if (strcmp(class->kind, "keras_adamw") == 0 && recipe_is_null(ty_doc_find(config, "weight_decay")))
        ty_json_put_float(&t->w, "weight_decay", config && ty_doc_find(config, "weight_decay") ? 0 : 0.004);
    ty_json_close(&t->w);
    ty_json_close(&t->w);
    recipe_end(t);
    double old_decay = recipe_number(config, "decay", 0),
           every = recipe_number(config, "gradient_accumulation_steps", 0);
    if (rc == 0 && scheduled)
        rc = recipe_put_schedule(t, lr, rate);
    else if (old_decay > 0)
        recipe_put_old_decay(t, old_decay);
    if (rc == 0 && every > 1)
        ty_buf_addf(t->buf, "update_every: %.0f\n", every);
    recipe_put_clip(t, config);
    return rc < 0 ? -1 : recipe_put_averages(t, config);
}

/* float16 has a loss scale of its own: LossScaleOptimizer is what it wraps. */
static int recipe_put_any_optimizer(recipe_text *t, const ty_doc *d)
{
    const ty_doc *config;
    for (int depth = 0; depth < 4; depth++) {
        const char *name = recipe_class_of(d, &config);
        if (!name)
            return recipe_refuse_value(t, "compile", "optimizer", "an optimizer");
        if (strcmp(name, "LossScaleOptimizer") != 0)
            return recipe_put_optimizer(t, name, config);
        d = ty_doc_find(config, "inner_optimizer");
    }
    return recipe_refuse_value(t, "LossScaleOptimizer", "inner_optimizer", "an optimizer");
}

/* ---- what belongs to which output ---------------------------------------------------------------------------------
 */

static bool recipe_is_object(const ty_doc *d)
{
    return d && (d->kind == TY_DOC_STRING || (d->kind == TY_DOC_MAP && ty_doc_find(d, "class_name")));
}

/* Of a list or a map by output's name: that of output i. One thing for all is returned as it is. */
static const ty_doc *recipe_of_output(const recipe_text *t, const ty_doc *d, int i)
{
    if (recipe_is_null(d) || recipe_is_object(d) || (d->kind != TY_DOC_LIST && d->kind != TY_DOC_MAP))
        return d;
    return d->kind == TY_DOC_LIST ? ty_doc_at(d, (size_t)i) : ty_doc_find(d, t->in->outputs[i].name);
}

static int recipe_check_names(const recipe_text *t, const char *what, const ty_doc *d)
{
    for (uint32_t i = 0; d && d->kind == TY_DOC_MAP && !recipe_is_object(d) && i < d->n_items; i++) {
        bool known = false;
        for (int k = 0; k < t->in->n_outputs; k++)
            known = known || strcmp(d->items[i].key, t->in->outputs[k].name) == 0;
        if (!known)
            return recipe_refuse_value(t, what, d->items[i].key, "an output of the model");
    }
    return 0;
}

static void recipe_put_output(recipe_text *t, int i)
{
    if (t->in->n_outputs > 1)
        ty_json_put_string(&t->w, "output", t->in->outputs[i].name);
}

/* ---- loss ---------------------------------------------------------------------------------------------------------
 */

#define LOGITS                       \
    {                                \
        "from_logits", "from_logits" \
    }
#define SMOOTHING                            \
    {                                        \
        "label_smoothing", "label_smoothing" \
    }

static const recipe_class recipe_losses[] = {
    {{"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"},
     "keras_sparse_crossentropy",
     {LOGITS, {"ignore_class", "ignore_index"}}},
    {{"CategoricalCrossentropy", "categorical_crossentropy"}, "keras_categorical_crossentropy", {LOGITS, SMOOTHING}},
    {{"CategoricalFocalCrossentropy", "categorical_focal_crossentropy"},
     "keras_categorical_focal",
     {LOGITS, SMOOTHING, {"alpha", "alpha"}, {"gamma", "gamma"}}},
    {{"BinaryCrossentropy", "binary_crossentropy", "bce", "BCE"}, "keras_binary_crossentropy", {LOGITS, SMOOTHING}},
    {{"BinaryFocalCrossentropy", "binary_focal_crossentropy"},
     "keras_binary_focal",
     {LOGITS, SMOOTHING, {"alpha", "alpha"}, {"gamma", "gamma"}, {"apply_class_balancing", "balanced"}}},
    {{"MeanSquaredError", "mean_squared_error", "mse", "MSE"}, "keras_mse", {{0}}},
    {{"MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"}, "keras_mae", {{0}}},
    {{"MeanAbsolutePercentageError", "mean_absolute_percentage_error", "mape", "MAPE"}, "keras_mape", {{0}}},
    {{"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", "msle", "MSLE"}, "keras_msle", {{0}}},
    {{"Huber", "huber", "huber_loss"}, "keras_huber", {{"delta", "delta"}}},
    {{"LogCosh", "log_cosh", "logcosh"}, "keras_log_cosh", {{0}}},
    {{"KLDivergence", "kl_divergence", "kld", "KLD", "kullback_leibler_divergence"}, "keras_kl_divergence", {{0}}},
    {{"Poisson", "poisson"}, "keras_poisson", {{0}}},
    {{"CosineSimilarity", "cosine_similarity"}, "keras_cosine_similarity", {{0}}},
    {{"Hinge", "hinge"}, "keras_hinge", {{0}}},
    {{"SquaredHinge", "squared_hinge"}, "keras_squared_hinge", {{0}}},
    {{"CategoricalHinge", "categorical_hinge"}, "keras_categorical_hinge", {{0}}},
};

static int recipe_put_reduction(recipe_text *t, const char *class, const ty_doc *config)
{
    const char *how = recipe_string(ty_doc_find(config, "reduction"));
    if (!how || strcmp(how, "sum_over_batch_size") == 0 || strcmp(how, "mean") == 0 || strcmp(how, "auto") == 0)
        return 0;
    bool weighted = strcmp(how, "mean_with_sample_weight") == 0;
    if (!weighted && strcmp(how, "sum") != 0)
        return recipe_refuse_value(t, class, "reduction", "sum_over_batch_size, mean, sum or mean_with_sample_weight");
    ty_json_put_string(&t->w, "reduction", weighted ? "weighted_mean" : "sum");
    return 0;
}

static int recipe_put_term(recipe_text *t, const ty_doc *loss, double weight, int output)
{
    const ty_doc *config;
    const char *name = recipe_class_of(loss, &config);
    const recipe_class *class =
        name ? recipe_find(recipe_losses, sizeof recipe_losses / sizeof *recipe_losses, name) : NULL;
    if (!class) {
        ty_json_open_map(&t->w, NULL);
        ty_json_open_map(&t->w, name ? name : "?");
        ty_json_close(&t->w);
        ty_json_close(&t->w);
        return 0;
    }
    int rank = t->in->outputs[output].rank;
    double axis = recipe_number(config, "axis", -1);
    if (axis != -1 && axis != rank - 1)
        return recipe_refuse_value(t, class->names[0], "axis", "the last one");
    if (config && strcmp(class->kind, "keras_huber") == 0 && !ty_doc_find(config, "delta"))
        ty_log_warning("keras", "the file's loss Huber has no delta, which Keras does not write: 1 is taken; another: "
                                "loss: {keras_huber: {delta: D}}");
    ty_json_open_map(&t->w, NULL);
    ty_json_open_map(&t->w, class->kind);
    recipe_put_output(t, output);
    if (weight != 1)
        ty_json_put_float(&t->w, "weight", weight);
    int rc = recipe_put_keys(t, class, config);
    if (rc == 0)
        rc = recipe_put_reduction(t, class->names[0], config);
    ty_json_close(&t->w);
    ty_json_close(&t->w);
    return rc;
}

static int recipe_put_loss(recipe_text *t, const ty_doc *loss, const ty_doc *weights)
{
    if (recipe_check_names(t, "loss", loss) < 0 || recipe_check_names(t, "loss weight", weights) < 0)
        return -1;
    recipe_begin(t, "loss");
    ty_json_open_list(&t->w, NULL);
    for (int i = 0; i < t->in->n_outputs; i++) {
        const ty_doc *own = recipe_of_output(t, loss, i), *weight = recipe_of_output(t, weights, i);
        double w = recipe_is_null(weight)         ? 1
                   : weight->kind == TY_DOC_INT   ? (double)weight->integer
                   : weight->kind == TY_DOC_FLOAT ? weight->number
                                                  : NAN;
        if (own && own->kind == TY_DOC_LIST && own->n_items == 1)
            own = &own->items[0];
        if (recipe_is_null(own))
            continue;
        if (!isfinite(w))
            return recipe_refuse_value(t, "compile", "loss_weights", "a number");
        if (recipe_put_term(t, own, w, i) < 0)
            return -1;
    }
    ty_json_close(&t->w);
    recipe_end(t);
    return 0;
}

/* ---- metrics ------------------------------------------------------------------------------------------------------
 */

static const recipe_class recipe_metrics[] = {
    {{"SparseCategoricalAccuracy", "sparse_categorical_accuracy"}, "accuracy", {{0}}},
    {{"CategoricalAccuracy", "categorical_accuracy"}, "accuracy", {{0}}},
    {{"BinaryAccuracy", "binary_accuracy"}, "accuracy", {{"threshold", "threshold"}}},
    {{"SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy"}, "top_k", {{"k", "k"}}},
    {{"TopKCategoricalAccuracy", "top_k_categorical_accuracy"}, "top_k", {{"k", "k"}}},
    {{"MeanSquaredError", "mean_squared_error", "mse", "MSE"}, "mse", {{0}}},
    {{"MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"}, "mae", {{0}}},
    {{"Precision"}, "precision", {{"thresholds", "threshold"}}},
    {{"Recall"}, "recall", {{"thresholds", "threshold"}}},
    {{"AUC"}, "auc", {{0}}},
};

/* accuracy goes by the output, and is of single numbers where it has one. */
static const recipe_class recipe_accuracy = {{"accuracy"}, "accuracy", {{0}}};

static const recipe_class *recipe_find_metric(const char *name)
{
    if (strcmp(name, "accuracy") == 0 || strcmp(name, "acc") == 0 || strcmp(name, "Accuracy") == 0)
        return &recipe_accuracy;
    return recipe_find(recipe_metrics, sizeof recipe_metrics / sizeof *recipe_metrics, name);
}

static bool recipe_has_threshold(const char *kind)
{
    return strcmp(kind, "accuracy") == 0 || strcmp(kind, "precision") == 0 || strcmp(kind, "recall") == 0;
}

/* The name in metric lines: the file's, or Keras' own word; with the output's in front where there are several. */
static void recipe_put_name(recipe_text *t, const char *name, const ty_doc *config, int output)
{
    const char *given = recipe_string(ty_doc_find(config, "name"));
    if (given)
        name = given;
    if (t->in->n_outputs > 1)
        name = ty_arena_printf(t->arena, "%s_%s", t->in->outputs[output].name, name);
    ty_json_put_string(&t->w, "name", name);
}

static void recipe_put_metric(recipe_text *t, const ty_doc *metric, int output)
{
    const ty_doc *config;
    const char *name = recipe_class_of(metric, &config);
    const recipe_class *class = name ? recipe_find_metric(name) : NULL;
    if (!class) {
        ty_log_warning("keras", "the file's metric \"%.100s\" is not known and left out", name ? name : "?");
        return;
    }
    ty_json_open_map(&t->w, NULL);
    ty_json_open_map(&t->w, class->kind);
    recipe_put_name(t, name, config, output);
    recipe_put_output(t, output);
    double threshold = recipe_number(config, class->keys[0].keras ? class->keys[0].keras : "threshold", 0.5);
    if (strcmp(class->kind, "top_k") == 0)
        recipe_put_number(t, "k", recipe_number(config, "k", 5));
    else if (recipe_has_threshold(class->kind))
        ty_json_put_float(&t->w, "threshold", isfinite(threshold) ? threshold : 0.5);
    ty_json_close(&t->w);
    ty_json_close(&t->w);
}

static void recipe_put_all_metrics(recipe_text *t, const ty_doc *metrics, int depth)
{
    bool one = t->in->n_outputs == 1;
    if (recipe_is_null(metrics) || depth > 2)
        return;
    for (int i = 0; i < t->in->n_outputs; i++) {
        const ty_doc *own = one && metrics->kind == TY_DOC_LIST ? metrics : recipe_of_output(t, metrics, i);
        if (one && own && own->kind == TY_DOC_LIST && own->n_items == 1 && own->items[0].kind == TY_DOC_LIST)
            own = &own->items[0];
        if (recipe_is_object(own))
            recipe_put_metric(t, own, i);
        for (uint32_t k = 0; own && own->kind == TY_DOC_LIST && k < own->n_items; k++)
            if (recipe_is_object(&own->items[k]))
                recipe_put_metric(t, &own->items[k], i);
    }
}

static void recipe_put_metrics(recipe_text *t, const ty_doc *metrics)
{
    recipe_begin(t, "metrics");
    ty_json_open_list(&t->w, NULL);
    recipe_put_all_metrics(t, metrics, 0);
    ty_json_close(&t->w);
    recipe_end(t);
}

/* ---- precision ----------------------------------------------------------------------------------------------------
 */

/* Patterns for the origins of a layer's nodes: "look (Conv2D)", "look/inner (Dense)". */
static void recipe_put_precision(recipe_text *t)
{
    const ty_keras_policies *p = t->in->policies;
    if (!p || p->precision == TY_PRECISION_FLOAT32)
        return;
    ty_buf_addf(t->buf, "precision: %s\n", p->precision == TY_PRECISION_FLOAT16 ? "float16" : "bfloat16");
    if (p->n_float32 == 0)
        return;
    recipe_begin(t, "keep_float32");
    ty_json_open_list(&t->w, NULL);
    for (int i = 0; i < p->n_float32; i++) {
        ty_json_put_string(&t->w, NULL, ty_arena_printf(t->arena, "%s (*", p->float32[i]));
        ty_json_put_string(&t->w, NULL, ty_arena_printf(t->arena, "%s/*", p->float32[i]));
    }
    ty_json_close(&t->w);
    recipe_end(t);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------
 */

static int recipe_put_compiled(recipe_text *t, const ty_doc *compile)
{
    const ty_doc *loss = ty_doc_find(compile, "loss"), *metrics = ty_doc_find(compile, "metrics");
    const ty_doc *optimizer = ty_doc_find(compile, "optimizer");
    if (recipe_is_null(optimizer))
        optimizer = ty_doc_find(compile, "optimizer_config");
    if (!recipe_is_null(loss) && recipe_put_loss(t, loss, ty_doc_find(compile, "loss_weights")) < 0)
        return -1;
    if (!recipe_is_null(metrics))
        recipe_put_metrics(t, metrics);
    return recipe_is_null(optimizer) ? 0 : recipe_put_any_optimizer(t, optimizer);
}

int keras_recipe(const keras_recipe_of *in, ty_arena *arena, const char **out, ty_error *err)
{
    ty_buf buf;
    *out = NULL;
    ty_buf_init(&buf, RECIPE_MAX_BYTES);
    recipe_text t = {.in = in, .arena = arena, .buf = &buf, .err = err};
    int rc = in->compile && in->compile->kind == TY_DOC_MAP ? recipe_put_compiled(&t, in->compile) : 0;
    if (rc == 0) {
        recipe_put_precision(&t);
        ty_buf_adds(&buf, "unmerged_rows: true\n");
    }
    if (rc == 0 && buf.failed)
        rc = ty_error_set(err, TY_E_LIMIT, "the file's compile settings make a recipe of more than %d bytes",
                          RECIPE_MAX_BYTES);
    if (rc == 0)
        *out = ty_arena_strdup(arena, buf.data);
    ty_buf_fini(&buf);
    return rc;
}
