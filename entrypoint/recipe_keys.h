/* recipe_keys.h - the keys of a recipe, as tables. Private to recipe*.c.
 *
 * A section is a map with fixed keys. A choice is a map with one key that names a kind, whose value is a section:
 * `optimizer: {adamw: {lr: 1e-3}}`; the kind alone (`optimizer: adamw`) and `{type: adamw, lr: 1e-3}` mean the same.
 * All kinds of one choice fill the same struct. To add a kind: a table of its rows and a line in the choice.
 */
#ifndef TY_ENTRYPOINT_RECIPE_KEYS_H
#define TY_ENTRYPOINT_RECIPE_KEYS_H

#include "base/bind.h"
#include "container/input/audio/plan.h"
#include "container/input/image/plan.h"
#include "entrypoint/recipe.h"

/* What binding fills at the top level; the NODE fields are looked into by recipe.c. */
typedef struct recipe_top {
    const char *model, *signature, *train_signature, *layers, *architecture;
    const ty_doc *inputs, *loss, *optimizer, *schedule, *clip, *data, *metrics, *checkpoint, *written, *early_stopping;
    const ty_doc *lora, *frozen, *no_decay, *buffers, *tied, *evaluate_every;
    const ty_doc *warmup, *lr_scale, *ema, *keep_float32, *sparse_rows;
    const ty_doc *batch_size, *memory, *distributed, *data_threads, *data_memory;
    int batch_rule;
    int remat;
    int64_t batch_base, epochs, max_steps, accumulate, seed, threads, log_every, processes_per_host;
    int deterministic, precision, debug, strategy, cross_device;
    int64_t update_every, labels;
    bool match_eager, unmerged_rows;
    bool tf32;
    const char *tensorboard, *cache, *compiled, *device;
} recipe_top;

typedef struct recipe_data {
    const char *channel, *path, *pattern, *format, *delimiter, *target, *preprocessing;
    int header, index_base, on_bad, access, shard;
    int64_t max_bad, samples, pipe_timeout;
    bool strict, blank_lines, keep_index;
    double split;
    const ty_doc *missing_values;
    int remainder;
    int64_t window, stride;
    int starts, symbols, token_type;
    const char *tokenizer, *end_token;
    const ty_doc *fields, *shuffle, *attributes, *length_buckets;
} recipe_data;

typedef struct recipe_field {
    const char *member, *file, *type;
    const ty_doc *columns, *shape, *missing, *image, *audio;
    double scale, offset;
    int64_t max_length;
    /* transforms: */
    const ty_doc *clip, *normalize, *buckets, *vocabulary, *classes, *cross, *one_hot, *multi_hot, *pad;
    const char *split;
    bool log1p;
    int side;
    int64_t hash, max_size, min_count, oov;
    const char *tokenizer;
    const ty_doc *pair, *words, *answer, *answer_start, *start;
    int tokens;
    double hidden;
} recipe_field;

typedef struct recipe_image {
    const ty_doc *size, *resize, *scale, *mean, *std, *area, *ratio, *mix;
    int64_t channels, pad, max_pixels;
    int filter, crop, flip, layout;
    double reducing_gap;
    const ty_doc *jitter;
    double grayscale, erase, rotate;
} recipe_image;

typedef struct recipe_jitter {
    double amount[TY_N_JITTERS];
} recipe_jitter;

typedef struct recipe_audio {
    const ty_doc *gain;
    int64_t sample_rate, length, channels;
    int crop, pad, normalize, layout;
    double seconds, scale, max_seconds;
} recipe_audio;

typedef struct recipe_optimizer {
    ty_optimizer o;
    const ty_doc *betas;
} recipe_optimizer;

typedef struct recipe_loss {
    ty_loss_term t;
    int64_t class_axis, time_axis;
    int reduction;
    const ty_doc *class_weights, *tensors;
} recipe_loss;

typedef struct recipe_schedule {
    ty_recipe_schedule s;
    const ty_doc *warmup, *decay, *total, *step_size, *cycle, *boundaries, *factors, *target;
    int anneal, threshold_mode, mode;
} recipe_schedule;

typedef struct recipe_warmup {
    const ty_doc *steps;
    double start_factor;
} recipe_warmup;

typedef struct recipe_ema {
    double decay;
    int use_ema;
    int64_t overwrite_every;
} recipe_ema;

typedef struct recipe_lora {
    int64_t rank;
    const ty_doc *alpha, *weights, *train;
} recipe_lora;

typedef struct recipe_clip {
    double max;
} recipe_clip;

typedef struct recipe_metric {
    const char *name, *output, *target;
    int64_t k;
    int average;
    double threshold;
} recipe_metric;

typedef struct recipe_checkpoint {
    const ty_doc *every;
    int64_t keep;
    int on_error;
    bool sharded;
} recipe_checkpoint;

/* As the words of `mode`. */
enum { TY_WATCH_AUTO, TY_WATCH_MIN, TY_WATCH_MAX };

typedef struct recipe_early {
    int64_t patience;
    double min_delta;
    const char *metric;
    int mode;
    const ty_doc *start_from;
} recipe_early;

/* As the words of `weights`. */
enum { TY_WEIGHTS_AUTO, TY_WEIGHTS_LAST, TY_WEIGHTS_BEST };

typedef struct recipe_export {
    int weights;
    bool preprocessing, adapter;
} recipe_export;

typedef struct recipe_distributed {
    int64_t bucket_bytes, stall_seconds, restarts, meet_seconds, port;
    int64_t staleness, backup_workers, part_bytes, server_port;
    int wire, server_mode, partitioner;
    bool hierarchical, optimizer_sharding, sync_batch_norm, timeline;
    const char *interface;
} recipe_distributed;

typedef struct recipe_section {
    const char *path; /* "data.train" */
    const char *help;
    const ty_bind_row *rows;
    size_t n_rows;
} recipe_section;

typedef struct recipe_kind {
    const char *name;
    int kind; /* ty_loss_kind, ty_optimizer_kind ... */
    const ty_bind_row *rows;
    size_t n_rows;
    const char *help;
} recipe_kind;

typedef struct recipe_choice {
    const char *key;
    const char *help;
    const recipe_kind *kinds;
    size_t n_kinds;
} recipe_choice;

/* For the tables. */
#define N(rows) (sizeof(rows) / sizeof((rows)[0]))
#define KIND(name, kind, rows, help)    \
    {                                   \
        name, kind, rows, N(rows), help \
    }
#define CHOICE(name, key, help, kinds) const recipe_choice name = {key, help, kinds, N(kinds)}

extern const recipe_section ty_recipe_top_section, ty_recipe_data_section, ty_recipe_field_section,
    ty_recipe_image_section, ty_recipe_audio_section, ty_recipe_checkpoint_section, ty_recipe_distributed_section,
    ty_recipe_warmup_section, ty_recipe_ema_section, ty_recipe_early_section, ty_recipe_export_section,
    ty_recipe_lora_section, ty_recipe_jitter_section;
extern const recipe_choice ty_recipe_loss_choice, ty_recipe_optimizer_choice, ty_recipe_schedule_choice,
    ty_recipe_clip_choice, ty_recipe_metric_choice;

/* Other words for keys: those that tuning jobs and other trainers use. `path` may hold a '*': the kind that is chosen
 * there. */
typedef struct recipe_alias {
    const char *alias, *path;
} recipe_alias;

extern const recipe_alias ty_recipe_aliases[];
extern const size_t ty_recipe_n_aliases;

/* Brings overrides into the tree and every choice into its one form, {kind: section}. After this the tree is read-only.
 */
int ty_recipe_normalise(ty_arena *a, ty_doc *root, const ty_recipe_override *overrides, int n_overrides, ty_error *err);

#endif
