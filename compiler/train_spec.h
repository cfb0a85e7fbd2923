/* train_spec.h - what to train and how: loss, optimizer, schedule, metrics, and all else that a recipe says of a step.
 * Part of compiler.h, which other folders include.
 */
#ifndef TY_COMPILER_TRAIN_SPEC_H
#define TY_COMPILER_TRAIN_SPEC_H

#include "base/tensor.h"

#include <stdbool.h>
#include <stdint.h>

/* What a weight is held to: applied to it after every update. n is the norm along `axes`, the root of the sum of
 * squares, kept as dims of 1. As Keras' constraints, 1e-7 included:
 *     max_norm      w min(n, max) / (1e-7 + n)
 *     unit_norm     w / (1e-7 + n)
 *     min_max_norm  w (rate min(max(n, min), max) + (1 - rate) n) / (1e-7 + n)
 *     non_neg       max(w, 0) */
typedef enum ty_constraint_kind {
    TY_CONSTRAINT_NONE,
    TY_CONSTRAINT_MAX_NORM,
    TY_CONSTRAINT_NON_NEG,
    TY_CONSTRAINT_UNIT_NORM,
    TY_CONSTRAINT_MIN_MAX_NORM,
    TY_N_CONSTRAINT_KINDS
} ty_constraint_kind;

typedef struct ty_constraint {
    ty_constraint_kind kind;
    double min, max, rate;
    uint32_t axes; /* bit i: axis i of the weight */
} ty_constraint;

typedef enum ty_loss_kind {
    TY_LOSS_MSE,
    TY_LOSS_MAE,
    TY_LOSS_HUBER,
    TY_LOSS_BCE_LOGITS, /* binary_cross_entropy_with_logits */
    TY_LOSS_SOFTMAX_CROSS_ENTROPY,
    TY_LOSS_NLL,
    TY_LOSS_KL_DIV,
    TY_LOSS_MEAN,
    TY_LOSS_HINGE,
    TY_LOSS_MULTI_MARGIN,
    TY_LOSS_COSINE,
    TY_LOSS_COSINE_EMBEDDING,
    TY_LOSS_CONTRASTIVE,
    TY_LOSS_CTC,
    TY_LOSS_L1,
    TY_LOSS_L2,
    TY_LOSS_KERAS_SPARSE_CROSSENTROPY, /* Keras' losses, which divide by another number: passes/loss_keras.h */
    TY_LOSS_KERAS_CATEGORICAL_CROSSENTROPY,
    TY_LOSS_KERAS_CATEGORICAL_FOCAL,
    TY_LOSS_KERAS_BINARY_CROSSENTROPY,
    TY_LOSS_KERAS_BINARY_FOCAL,
    TY_LOSS_KERAS_MSE,
    TY_LOSS_KERAS_MAE,
    TY_LOSS_KERAS_MAPE,
    TY_LOSS_KERAS_MSLE,
    TY_LOSS_KERAS_HUBER,
    TY_LOSS_KERAS_LOG_COSH,
    TY_LOSS_KERAS_KL_DIVERGENCE,
    TY_LOSS_KERAS_POISSON,
    TY_LOSS_KERAS_COSINE_SIMILARITY,
    TY_LOSS_KERAS_HINGE,
    TY_LOSS_KERAS_SQUARED_HINGE,
    TY_LOSS_KERAS_CATEGORICAL_HINGE,
    TY_N_LOSS_KINDS
} ty_loss_kind;

/* What a Keras loss is divided by: the number of rows; nothing; the sum of their weights. */
typedef enum ty_reduction { TY_REDUCTION_MEAN, TY_REDUCTION_SUM, TY_REDUCTION_WEIGHTED_MEAN } ty_reduction;

/* One term; the loss is the sum of terms times their weight. Formulas: train-cases/README.md and passes/loss.h;
 * PyTorch's definitions. L1 and L2 read weights of the model (`tensors`), neither output nor target. */
typedef struct ty_loss_term {
    ty_loss_kind kind;
    const char *output;        /* model output the term reads */
    const char *target;        /* name of the target input; NULL for MEAN */
    const char *sample_weight; /* name of an input of weights shaped as the target, or NULL */
    double weight;             /* factor of the term */
    double delta;              /* huber */
    double pos_weight;         /* bce; 1 if absent */
    double label_smoothing;
    int64_t ignore_index;        /* -100 if absent */
    int class_axis;              /* -1: last */
    const double *class_weights; /* n_class_weights numbers or NULL */
    int n_class_weights;
    bool dense_labels;          /* softmax_cross_entropy: the target holds a probability for each class */
    double margin;              /* hinge, multi_margin, cosine_embedding, contrastive */
    const char *other;          /* cosine_embedding, contrastive: the pair's second output */
    const char *input_lengths;  /* ctc: integer input [batch], 1 to T; NULL: all T steps */
    const char *target_lengths; /* ctc: integer input [batch], 0 to S; NULL: all S labels */
    int64_t blank;              /* ctc: class */
    int time_axis;              /* ctc: 0: output is [T, batch, C]; 1: [batch, T, C] */
    bool zero_infinity;         /* ctc: a target that does not fit counts 0, not infinity */
    bool from_logits;           /* keras crossentropies: the output is no probability */
    ty_reduction reduction;     /* keras */
    double alpha, gamma;        /* keras focal crossentropies */
    bool balanced;              /* keras binary focal: alpha weighs the classes */
    const char *const *tensors; /* l1, l2: names or shell patterns of weights; none: all that are trained */
    int n_tensors;
} ty_loss_term;

typedef enum ty_optimizer_kind {
    TY_OPT_SGD, /* momentum, dampening, nesterov */
    TY_OPT_ADAM,
    TY_OPT_ADAMW,
    TY_OPT_NADAM,
    TY_OPT_ADAMAX,
    TY_OPT_RMSPROP,
    TY_OPT_ADAGRAD,
    TY_OPT_ADADELTA,
    TY_OPT_LION,
    TY_OPT_LAMB,
    TY_OPT_LARS,
    TY_OPT_FTRL,
    TY_OPT_KERAS_SGD, /* Keras' rules where they differ; formulas: passes/optimizer.h */
    TY_OPT_KERAS_ADAM,
    TY_OPT_KERAS_NADAM,
    TY_OPT_KERAS_ADAMAX,
    TY_OPT_KERAS_RMSPROP,
    TY_OPT_KERAS_ADAGRAD,
    TY_OPT_KERAS_ADADELTA,
    TY_OPT_KERAS_LAMB,
    TY_N_OPTIMIZER_KINDS
} ty_optimizer_kind;

typedef struct ty_optimizer {
    ty_optimizer_kind kind;
    double lr, weight_decay;
    double momentum, dampening;
    bool nesterov, amsgrad, centered;
    double beta1, beta2, eps, alpha, rho;
    double momentum_decay, lr_decay, initial_accumulator;
    double trust;                                /* lars: trust coefficient */
    double l1, l2, l2_shrinkage, beta, lr_power; /* ftrl */
} ty_optimizer;

typedef enum ty_schedule_kind {
    TY_SCHED_CONSTANT,
    TY_SCHED_STEP,
    TY_SCHED_EXPONENTIAL,
    TY_SCHED_POLYNOMIAL,
    TY_SCHED_WARMUP_COSINE,
    TY_SCHED_ONE_CYCLE,
    TY_SCHED_COSINE_RESTARTS,
    TY_SCHED_PIECEWISE,
    TY_SCHED_PLATEAU,           /* constant times a factor that ty_plateau_note() lowers */
    TY_SCHED_KERAS_EXPONENTIAL, /* Keras': passes/schedule_keras.h */
    TY_SCHED_KERAS_INVERSE_TIME,
    TY_SCHED_KERAS_POLYNOMIAL,
    TY_SCHED_KERAS_COSINE,
    TY_SCHED_KERAS_COSINE_RESTARTS,
    TY_N_SCHEDULE_KINDS
} ty_schedule_kind;

typedef struct ty_schedule {
    ty_schedule_kind kind;
    double step_size, gamma;                     /* step, exponential */
    double total, power;                         /* polynomial, one_cycle: total steps */
    double warmup, start_factor, cosine, min_lr; /* warmup_cosine: steps and factors; min_lr: also where polynomial,
                                                    cosine_restarts and plateau end */
    double pct_start, div_factor, final_div_factor;
    bool anneal_linear;
    double cycle, cycle_mult;           /* cosine_restarts: steps of the first cycle, growth of the next ones */
    const double *boundaries, *factors; /* piecewise: [n_boundaries], [n_boundaries + 1] */
    int n_boundaries;
    double factor, patience, threshold, cooldown;         /* plateau; patience and cooldown count evaluations */
    bool maximize, threshold_absolute;                    /* plateau: higher is better; threshold is a difference */
    double decay_steps, decay_rate, alpha, m_mul, target; /* keras; target: where its warmup of `warmup` steps leads */
    bool staircase, cycles, has_target;                   /* keras */
    double ramp,
        ramp_start; /* any kind: first `ramp` steps rise from ramp_start times its first rate, then it begins */
} ty_schedule;

/* Numbers of the state "plateau" f64[TY_PLATEAU_NUMBERS], which a program with TY_SCHED_PLATEAU has. */
enum { TY_PLATEAU_FACTOR, TY_PLATEAU_BEST, TY_PLATEAU_BAD, TY_PLATEAU_COOLDOWN, TY_PLATEAU_SEEN, TY_PLATEAU_NUMBERS };
/* Tells the plateau an evaluation's result; true if the rate fell. state: the state's numbers, between two runs. lr:
 * the optimizer's rate. */
bool ty_plateau_note(const ty_schedule *s, double lr, double *state, double value);

/* global_norm: of all gradients; norm: of each tensor alone. keras_global_norm: without PyTorch's 1e-6. */
typedef enum ty_clip_kind {
    TY_CLIP_NONE,
    TY_CLIP_VALUE,
    TY_CLIP_GLOBAL_NORM,
    TY_CLIP_NORM,
    TY_CLIP_KERAS_GLOBAL_NORM
} ty_clip_kind;

/* Low-rank adapters (passes/adapt.h): the matrices of these names or patterns stay as they are, and two factors of each
 * are trained, "NAME.lora_left" [d0, rank] and "NAME.lora_right" [rank, d1]. Of all other weights only those of `train`
 * are. In `memory`, which outlives the program, are their first values. rank 0: none. */
typedef struct ty_lora {
    int rank;
    double alpha; /* what is added to a matrix is alpha / rank times the factors' product */
    const char *const *weights;
    int n_weights;
    const char *const *train;
    int n_train;
    struct ty_arena *memory;
} ty_lora;

#define TY_LORA_LEFT  ".lora_left"
#define TY_LORA_RIGHT ".lora_right"

/* Weights whose name is, or matches, `pattern` learn at lr * factor. The first match counts. */
typedef struct ty_lr_scale {
    const char *pattern;
    double factor;
} ty_lr_scale;

/* A named input of the step: a model input or a target. The dims are the static shape with the batch. */
typedef struct ty_binding {
    const char *name;
    ty_type type;
} ty_binding;

typedef enum ty_metric_kind {
    TY_METRIC_ACCURACY,
    TY_METRIC_MAE,
    TY_METRIC_MSE,
    TY_METRIC_TOP_K,
    TY_METRIC_PERPLEXITY,
    TY_METRIC_PRECISION,
    TY_METRIC_RECALL,
    TY_METRIC_F1,
    TY_METRIC_AUC,
    TY_METRIC_AVERAGE_PRECISION,
    TY_METRIC_IOU,
    TY_METRIC_RMSE,
    TY_METRIC_MAPE,
    TY_METRIC_R2,
    TY_N_METRIC_KINDS
} ty_metric_kind;

/* Of precision, recall, F1: of one positive class, or the mean over classes. AUTO: binary if the output has one number
 * an element, else macro. */
typedef enum ty_average { TY_AVERAGE_AUTO, TY_AVERAGE_BINARY, TY_AVERAGE_MACRO } ty_average;

/* A metric is program outputs of EVAL, which the caller adds up over batches (formulas: passes/metric.h)
 *     accuracy, top_k, mae, mse, mape  "<name>.sum", "<name>.count" f32[]: divided at the end
 *     perplexity, rmse           the same; exp of the quotient, its root
 *     precision, recall, f1, iou "<name>.counts" f32[3, C]: rows that are hits, rows said to be, rows that are of each
 *                                class; C = 1: of the positive class
 *     r2                         "<name>.outputs", "<name>.targets" f32[R]: of each row, target NaN: left out
 *     auc, average_precision     "<name>.scores", "<name>.labels" f32[R]: of each row, label 1, 0, or -1: left out */
typedef struct ty_metric {
    ty_metric_kind kind;
    const char *name;
    const char *output, *target;
    int64_t k; /* top_k, >= 1 */
    ty_average average;
    double threshold; /* accuracy, precision, recall, f1 of single numbers: above it is positive (0: of logits) */
} ty_metric;

/* MIXED: products, convolutions and attention of 16-bit floats, all else float32 (compiler/passes/precision.h).
 * FLOAT16 scales the loss by a factor that adapts itself (compiler/passes/loss_scale.h). */
typedef enum ty_precision {
    TY_PRECISION_FLOAT32,
    TY_PRECISION_BFLOAT16,
    TY_PRECISION_FLOAT16,
    TY_N_PRECISIONS
} ty_precision;

typedef struct ty_train_spec {
    const ty_binding *inputs; /* model inputs, by the model's names, then targets and sample weights */
    int n_inputs, n_loss;
    const ty_loss_term *loss;
    ty_optimizer optimizer;
    ty_schedule schedule;
    ty_clip_kind clip;
    double clip_max;
    ty_lora lora;
    const char *const *frozen; /* names or shell patterns (fnmatch) of weights that are not trained */
    int n_frozen;
    const char *const *no_decay; /* likewise: weight decay 0 */
    int n_no_decay;
    bool sparse_all; /* every table that the loss only gathers from is updated by rows: passes/tables.h */
    const char *const *sparse_rows; /* else those of these names or shell patterns */
    int n_sparse_rows;
    bool row_lists; /* with them: ROWS exists, and momentum may be kept, since the caller clears it after each step */
    const ty_lr_scale *lr_scale;
    int n_lr_scale;
    double ema_decay;      /* 0: none. Else averages of the trained weights are kept in the states "ema.<group>" */
    bool use_ema;          /* evaluation and ty_program_tensor() read the averages */
    bool ema_written;      /* ty_program_tensor() alone reads them */
    int64_t ema_overwrite; /* in every so-manieth update weights become their averages; 0: never */
    int update_every;      /* weights change at every so-manieth step, by the mean of its gradients; schedules count
                              all steps. 0, 1: at each */
    bool unmerged_rows;    /* squares and norms of a table's gradient are of its look-ups, not of its rows:
                              passes/unmerged.h */
    const char *const *buffers; /* float initializers that are no parameters */
    int n_buffers;
    const char *const *const *tied; /* groups of names that are one parameter, each list NULL-terminated; NULL: none */
    int n_tied, n_metrics;
    const ty_metric *metrics;
    int accumulate; /* micro-batches a step, >= 1 */
    int replicas;   /* that share each step, each with a batch of `inputs`' shapes: compiler/passes/across.h; 0: one */
    int64_t bucket_bytes;    /* gradients that replicas add up at once, at least; 0: 4 MiB, on GPUs 25 */
    ty_dtype wire;           /* on GPUs, what f32 gradients travel and are added up as: f16 or bf16; else as they are */
    bool optimizer_sharding; /* each replica keeps the moments of its part of the weights: compiler/passes/shard.h */
    bool batch_norm_across;  /* batch norm by the statistics of all replicas; else each has its own */
    uint64_t seed;
    ty_precision precision;
    const char *const *keep_float32; /* names or shell patterns of layers whose products stay float32, or op:NAME */
    int n_keep_float32;
    bool keep_float32_must_meet; /* one that meets no layer is refused: the user's own, not those that a file says */
    bool match_eager;            /* round after every operation on 16-bit floats, as PyTorch's autocast does */
    bool batch_norm_statistics;  /* train mode: batch norm uses batch statistics (normally true) */
    bool eval_valid_rows; /* evaluation takes an extra input "valid" i64[]: only the batch's first `valid` rows count */
    bool train_valid_rows; /* training takes it too: the loss is the mean over rows that count */
    bool no_eval;    /* training only: the EVAL tape is not compiled, which saves time where nothing is evaluated */
    bool no_outputs; /* EVAL yields losses and metrics, not the model's outputs: large ones need not be whole then */
} ty_train_spec;

#endif
