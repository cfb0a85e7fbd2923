/* recipe.h - train.yaml: what to train, on what, and how.
 *
 *     model: model.onnx
 *     inputs: {x: image}                      # model input <- field of the data; left out: fields of the same names
 *     loss: {softmax_cross_entropy: {logits: logits, labels: label}}
 *     optimizer: {adamw: {lr: 1e-3, weight_decay: 0.01}}
 *     schedule: {warmup_cosine: {warmup_steps: 100, final_lr: 1e-5}}
 *     batch_size: 64
 *     epochs: 20
 *     data:
 *       train:      {channel: train, format: csv, fields: {image: {columns: 0-63, shape: [1, 8, 8]}, label: {columns:
 * 64}}} validation: {channel: test, fields: same} metrics: [accuracy] checkpoint: {every: 1 epoch, keep: 3} seed: 1
 *
 * The keys stand in tables (recipe_keys.h), one a section: parsing, checks, help and --origin come from them. Any key
 * can be overridden from outside by its dotted name, and the names that tuning jobs use are aliases
 * (recipe_override.c). A recipe knows no files but its own: paths are made absolute against its folder, data and model
 * are opened by others.
 */
#ifndef TY_ENTRYPOINT_RECIPE_H
#define TY_ENTRYPOINT_RECIPE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/error.h"
#include "base/suggest.h"
#include "compiler/compiler.h"
#include "container/input/dataset.h"
#include "dist/server/catalogue.h"
#include "entrypoint/override.h"

#include <stdbool.h>
#include <stdint.h>

/* "500 steps", "1 epoch" or a plain number of steps. */
typedef struct ty_span {
    int64_t n; /* 0: not given */
    bool epochs;
    const ty_doc *at; /* for messages; NULL for a default */
} ty_span;

/* When evaluations end the run: patience of them in a row that are not better by more than min_delta; 0: never. Those
 * up to start_from do not count at all. As Keras' EarlyStopping. */
typedef struct ty_recipe_early {
    int64_t patience;
    double min_delta;
    ty_span start_from;
} ty_recipe_early;

/* What becomes of samples that fill no whole batch at the end of an epoch, and of hosts whose files end first
 * (data-sharded channels): the epoch ends with the last batch that is full everywhere; it goes on, and samples from the
 * start of the epoch take the free places; or those take part without counting, neither in the loss nor in gradients.
 */
typedef enum ty_remainder { TY_REMAINDER_DROP, TY_REMAINDER_PAD, TY_REMAINDER_JOIN } ty_remainder;

/* NULL-terminated lists of names. */
typedef const char *const *ty_names;

/* Samples by number, or in the order in which they come. AUTO: channels in Pipe mode are streams, and so are records in
 * FastFile mode and files that are larger than half of the memory (channel.h). */
typedef enum ty_access { TY_ACCESS_AUTO, TY_ACCESS_RANDOM, TY_ACCESS_STREAM } ty_access;

/* What ranks leave to each other of a stream. AUTO: as channels and files suggest (channel.h). NONE: nothing, each rank
 * takes all that it reads. */
typedef enum ty_part_rule { TY_PART_AUTO, TY_PART_FILE, TY_PART_RECORD, TY_PART_NONE } ty_part_rule;

enum { TY_SHUFFLE_BUFFER = 8192 }; /* samples, where a stream is shuffled and nobody says by how many */

/* One set of samples: data.train or data.validation. */
typedef struct ty_recipe_data {
    bool given;
    const char *channel; /* name of an input channel, or NULL */
    const char *path;    /* file or folder, absolute; wins over the channel. Or NULL */
    const char *pattern; /* shell pattern of the files to take, or NULL */
    const char *format;  /* or NULL: found out */
    int header;          /* ty_csv_header */
    int index_base;      /* ty_index_base */
    bool lenient;        /* libsvm */
    bool blank_lines;    /* lines: blank ones are samples */
    ty_csv_missing missing_values;
    const char *delimiter;
    bool skip_bad;   /* bad records are left out */
    int64_t max_bad; /* how many at most */
    bool keep_index; /* what opening finds of records is kept in the cache */
    bool shuffle;
    int64_t shuffle_buffer; /* samples, of a stream */
    int access;             /* ty_access */
    int shard;              /* ty_part_rule */
    int64_t samples;        /* of an epoch of a stream, on all ranks; 0: not said */
    int64_t pipe_timeout;   /* seconds for the next FIFO, or the next bytes, to come */
    ty_names attributes;    /* of an augmented manifest, in order */
    int n_attributes;
    int remainder;             /* train: ty_remainder */
    ty_windows windows;        /* of text and tokens */
    const char *preprocessing; /* file with what transforms have learnt, or NULL: it is learnt of these data */
    double split;          /* validation: its share of the training samples, which has no files of its own; 0: it has */
    const int64_t *length; /* [n_lengths], rising: rows are as long as one of them, or as the longest row */
    int n_lengths;         /* 0: all rows are as long as the longest */
    bool length_auto;      /* some lengths, chosen */
    const char *target;    /* of outputs: a field, or a column where no fields are declared; NULL: found out */
    const ty_field *fields; /* [n_fields]; none: as the data say (found.h) */
    int n_fields;
    const ty_doc *at;
} ty_recipe_data;

/* A model input and the field that it is fed with. */
typedef struct ty_recipe_input {
    const char *input, *field;
    const ty_doc *at;
} ty_recipe_input;

/* A term of the loss. term.output and term.target may be NULL: the model's only output, the data's only other field. */
typedef struct ty_recipe_loss {
    ty_loss_term term;
    int64_t class_axis;
    const ty_doc *class_weights; /* list as written */
    const ty_doc *at;
} ty_recipe_loss;

typedef struct ty_recipe_schedule {
    ty_schedule_kind kind;
    ty_span warmup, decay, total, step_size;
    double start_factor, final_lr, gamma, power, pct_start, div_factor, final_div_factor;
    bool anneal_linear;
    ty_span cycle;
    double cycle_mult;
    double decay_steps, decay_rate, alpha, m_mul, target; /* Keras' */
    bool staircase, cycles, has_target;
    const ty_span *boundaries; /* [n_boundaries] */
    const double *factors;     /* [n_boundaries + 1] */
    int n_boundaries;
    double factor, threshold;
    int64_t patience, cooldown;
    bool threshold_absolute, maximize, mode_given;
    const char *metric; /* that the plateau watches; NULL: the loss */
    ty_span ramp;       /* the key `warmup`, in front of any kind */
    double ramp_start;
    const ty_doc *at;
} ty_recipe_schedule;

typedef struct ty_recipe_metric {
    ty_metric_kind kind;
    const char *name, *output, *target; /* output, target: NULL: as the loss's first term with a target */
    int64_t k;                          /* top_k */
    ty_average average;
    double threshold;
    const ty_doc *at;
} ty_recipe_metric;

/* A line of --origin: "optimizer.adamw.lr", "0.001", "train.yaml:4". */
typedef struct ty_setting {
    const char *key, *value, *origin;
} ty_setting;

/* CHECK: the compiled step, with every value it writes looked at. INTERPRET: operation by operation in double, rounded
 * after each, without a compiler. */
typedef enum ty_debug { TY_DEBUG_NONE, TY_DEBUG_CHECK, TY_DEBUG_INTERPRET } ty_debug;

/* Who reads the averages of the weights: nobody but checkpoints; evaluation and the written model; that model alone. */
typedef enum ty_recipe_ema_use { TY_EMA_KEPT, TY_EMA_USED, TY_EMA_WRITTEN } ty_recipe_ema_use;

/* AUTO: a GPU if one can be used and computes all of the step, else the CPU. */
typedef enum ty_device { TY_DEVICE_AUTO, TY_DEVICE_CPU, TY_DEVICE_GPU } ty_device;

/* Who shares each batch. AUTO: what the job's hyperparameters say; else all hosts of the job, or the GPUs that `device`
 * names, or one device. cluster.h makes ranks of it. */
typedef enum ty_strategy {
    TY_STRATEGY_AUTO,
    TY_STRATEGY_ONE_DEVICE,
    TY_STRATEGY_MIRRORED,              /* GPUs of one host in one process; on a CPU that host's ranks */
    TY_STRATEGY_MULTI_WORKER_MIRRORED, /* a process a host */
    TY_STRATEGY_DATA_PARALLEL,         /* processes_per_host on each host */
    TY_STRATEGY_TOWER,                 /* ranks of one host */
    TY_STRATEGY_PARAMETER_SERVER,
    TY_N_STRATEGIES
} ty_strategy;
const char *ty_strategy_name(ty_strategy strategy); /* "data_parallel" */

typedef enum ty_recipe_wire { TY_RECIPE_WIRE_NONE, TY_RECIPE_WIRE_FLOAT16, TY_RECIPE_WIRE_BFLOAT16 } ty_recipe_wire;

/* How weights are cut into parts for parameter servers (dist/server/partition.h). */
typedef enum ty_recipe_partitioner {
    TY_RECIPE_PARTS_MIN_SIZE,
    TY_RECIPE_PARTS_MAX_SIZE,
    TY_RECIPE_PARTS_FIXED
} ty_recipe_partitioner;

typedef struct ty_recipe_servers {
    ty_server_mode mode;
    ty_recipe_partitioner partitioner;
    int64_t staleness, backup_workers, part_bytes, port;
} ty_recipe_servers;

/* `distributed`: how several ranks train together. */
typedef struct ty_recipe_distributed {
    int64_t bucket_bytes; /* 0: the compiler's */
    ty_recipe_wire wire;
    bool hierarchical, optimizer_sharding, sync_batch_norm, timeline;
    int64_t stall_seconds; /* 0: never */
    int64_t restarts, meet_seconds, port;
    const char *interface; /* NULL: the platform's */
    ty_recipe_servers servers;
} ty_recipe_distributed;

typedef enum ty_batch_rule { TY_BATCH_RULE_NONE, TY_BATCH_RULE_LINEAR, TY_BATCH_RULE_SQRT } ty_batch_rule;

/* Forward computed again in backward: never; if a batch of the given size does not fit `memory` otherwise; also to find
 * a larger batch for batch_size auto. */
typedef enum ty_recipe_remat { TY_REMAT_NONE, TY_REMAT_AUTO, TY_REMAT_BATCH } ty_recipe_remat;

typedef struct ty_recipe {
    const char *path, *folder; /* of train.yaml */
    const char *model;         /* absolute */
    ty_model_choice choice;    /* what of it is meant */
    const ty_recipe_input *inputs;
    int n_inputs; /* 0: every model input takes the field of its own name */
    const ty_recipe_loss *loss;
    int n_loss;
    ty_optimizer optimizer;
    ty_recipe_schedule schedule;
    ty_clip_kind clip;
    double clip_max;
    bool batch_auto;            /* batch_size: auto. batch_size is then chosen when the data are known */
    uint64_t memory_bytes;      /* that the run may take; 0: what the container or the machine has */
    uint64_t data_memory_bytes; /* that the input may take (session_ring.c); 0: batches a tenth of that */
    int64_t data_threads;       /* that decode; 0: as many as help (container/input/tuner.h) */
    int remat;                  /* ty_recipe_remat */
    int batch_rule;             /* ty_batch_rule: how lr follows the batch size */
    int64_t batch_base;         /* batch size that lr is meant for */
    int64_t batch_size, epochs, max_steps /* 0: none */, accumulate, seed, threads /* 0: all cores */;
    bool deterministic_strict;
    ty_precision precision;
    bool match_eager;
    bool tf32;
    ty_debug debug;
    ty_device device;
    int gpu[TY_MAX_GPUS]; /* their numbers, each once */
    int n_gpus;           /* 0: the first that can be used, mirrored: all that can */
    ty_strategy strategy;
    int64_t processes_per_host; /* 0: not given */
    ty_recipe_distributed distributed;
    bool mirrored; /* by strategy: each GPU trains on rows of its own; else one does all */
    ty_cross_device cross_device;
    ty_recipe_data train, validation;
    ty_span evaluate_every;
    const ty_recipe_metric *metrics;
    int n_metrics;
    ty_lora lora; /* but for its memory */
    ty_names frozen, no_decay, buffers, keep_float32;
    int n_frozen, n_no_decay, n_buffers, n_keep_float32;
    bool keep_float32_is_files; /* the model file says it, not the user */
    bool sparse_all;            /* tables by rows: all that can be, or these */
    ty_names sparse_rows;
    int n_sparse_rows;
    const ty_lr_scale *lr_scale; /* [n_lr_scale] */
    int n_lr_scale;
    double ema_decay; /* 0: no averages */
    ty_recipe_ema_use use_ema;
    int64_t ema_overwrite, update_every;
    bool unmerged_rows;
    const char *const *const *tied; /* [n_tied] */
    int n_tied;
    ty_span checkpoint_every;
    int64_t checkpoint_keep;
    bool checkpoint_stop_on_error, checkpoint_sharded;
    ty_recipe_early early;
    int best_value;      /* of an evaluation's values the one by which it is the best: 0 the loss, i + 1 metric i */
    bool best_is_high;   /* higher is better */
    bool export_best;    /* the weights of the best evaluation are written, not the last */
    bool export_adapter; /* low-rank adapters as files of their own, too */
    bool export_preprocessing;  /* an ONNX file that takes raw values, too */
    int64_t log_every;          /* steps between metric lines; 0: about 100 lines a run */
    const char *tensorboard;    /* folder, NULL: as the platform says; "none" is NULL with no_tensorboard */
    const char *cache;          /* folder; NULL: as the job says; "none": no cache */
    const char *compiled;       /* folder of kernels compiled before, or NULL */
    const ty_setting *settings; /* all keys with value and origin */
    int n_settings;
} ty_recipe;

/* Reads and checks a recipe; everything lies in the arena. Later overrides win over earlier ones. */
int ty_recipe_load(const char *path, const ty_recipe_override *overrides, int n_overrides, ty_arena *a, ty_recipe *out,
                   ty_error *err);
/* The same from text, for tests; relative paths are taken against `folder`. */
int ty_recipe_parse(const char *name, const char *text, size_t len, const char *folder,
                    const ty_recipe_override *overrides, int n_overrides, ty_arena *a, ty_recipe *out, ty_error *err);

/* Where a setting's value stands: "train.yaml:4", "default", "hyperparameter \"strategy\""; NULL: no such key. */
const char *ty_recipe_origin(const ty_recipe *r, const char *key);

/* Steps that a span means when an epoch has steps_per_epoch steps. */
int64_t ty_span_steps(const ty_span *span, int64_t steps_per_epoch);

/* `trainyard help recipe`: every section with its keys, types, limits and defaults, and the aliases. */
int ty_recipe_help(ty_buf *out);
/* Appends what a key is, known by the end of its dotted name ("shuffle", "fields.age.scale", "adamw.lr"), an alias, or
 * a kind ("adamw"): all keys of that name. Returns how many, 0 if there is none, -1 without memory. */
int ty_recipe_explain(const char *topic, ty_buf *out);
/* Every key, kind and alias, for "did you mean". */
void ty_recipe_offer_keys(ty_suggestion *s);
/* All settings, one a line, in columns. */
int ty_recipe_print_origin(const ty_recipe *r, ty_buf *out);

#endif
