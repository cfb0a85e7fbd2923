/* session.h - a run of the built-in trainer, opened: recipe, model, data, compiled program, checkpoints, outputs.
 *
 * Private to session*.c and trainer.c. Opening goes through phases in a fixed order (the table in session.c), so that a
 * fault is found by the cheapest phase that can find it: the recipe before the data, the data before the compiler.
 */
#ifndef TY_ENTRYPOINT_SESSION_H
#define TY_ENTRYPOINT_SESSION_H

#include "compiler/compiler.h"
#include "compiler/machine.h"
#include "container/input/lengths.h"
#include "container/input/prefetch.h"
#include "container/input/tuner.h"
#include "container/output/checkpoint.h"
#include "container/input/stream/stream.h"
#include "entrypoint/channel.h"
#include "entrypoint/company.h"
#include "entrypoint/job.h"
#include "entrypoint/loop.h"
#include "entrypoint/outputs.h"
#include "entrypoint/recipe.h"
#include "entrypoint/served.h"
#include "entrypoint/spec.h"

enum { TY_SESSION_MAX_METRICS = 60 };

/* Where a section of the data lies. */
typedef struct ty_session_source {
    const ty_job_channel *channel; /* NULL: a path; or, in Pipe mode, other ranks of this host have the channels */
    int n_alike;                   /* Pipe mode: channels for the ranks of this host */
    ty_job_mode mode;
    bool sharded; /* each host has files of its own */
    ty_data_source files;
} ty_session_source;

/* A section of the data that is read as a stream (session_stream.c). */
typedef struct ty_session_stream {
    bool is_on;
    bool is_idle;      /* other ranks read it; this one takes part with rows that do not count */
    ty_stream *stream; /* NULL with is_idle */
    ty_dataset face;   /* fields and nothing else, for who asks for their types */
    const char *name;  /* "data.train" */
    ty_session_source source;
    ty_stream_part part;
    ty_stream_order order;
    ty_data_feed *feed;
    ty_batch idle;        /* rows that do not count; its tensors are made when they are needed */
    const ty_batch *next; /* taken from the ring already, of an epoch to come */
    bool ended;           /* nothing is left in the ring */
    double read_s;        /* validation: when it was read last */
} ty_session_stream;

/* Programs for batches of short samples (session_lengths.c). */
typedef struct ty_session_lengths {
    int n;                              /* of lengths; 0: all batches have the longest, whatever is in them */
    int64_t longest;                    /* length[n - 1] */
    int64_t *length;                    /* [n], rising */
    ty_program **program;               /* [n], the last of which is s->program */
    int64_t *n_batches;                 /* [n]: that were trained on */
    bool *is_long;                      /* [plan.n_feeds]: rows of this field are cut */
    ty_filled *filled;                  /* [plan.n_feeds] */
    void **cut;                         /* [plan.n_feeds]: rows that were */
    uint32_t *of_train, *of_validation; /* of each sample */
    size_t n_train, n_validation;
} ty_session_lengths;

typedef struct ty_session_times {
    double started_s;                    /* monotonic */
    double data_s, compile_s, restore_s; /* opening */
    double compute_s, input_wait_s, evaluate_s, checkpoint_s, export_s;
    double first_step_s;                      /* from the start to the end of the first step; 0: none yet */
    double reported_s;                        /* compute + wait at the last report */
    double reported_comm_s, reported_input_s; /* waited for other ranks, likewise */
} ty_session_times;

typedef struct ty_session {
    const char *compile_to; /* folder for compiled kernels, or NULL */
    ty_buf *cache_note;     /* not NULL without compile_to: nothing is compiled */
    ty_buf *index_note;     /* with it: what the cache has of the data, a line for each section */
    const ty_job *job;
    ty_arena arena;
    ty_recipe recipe;
    ty_model *model;
    ty_spec_plan plan;
    ty_dataset *train, *validation; /* validation may be NULL */
    ty_train_spec spec;
    bool on_gpu;           /* device.h */
    ty_machine_gpu *gpu;   /* [n_gpus]: several share each batch, which n_gpus divides */
    const int *gpu_number; /* [n_gpus] */
    int n_gpus;
    const char *why_cpu; /* NULL: the recipe says so, or on_gpu */
    ty_program *program; /* with longer inputs than any beside it */
    ty_program *started; /* that was run last: it or one beside it */
    ty_session_lengths lengths;
    int n_open;                               /* steps that it has begun, and whose results nobody has taken */
    ty_step_result result[TY_LOOP_IN_FLIGHT]; /* [n_results] of others before them, the oldest first */
    int n_results;
    const int *train_field, *validation_field; /* [plan.n_feeds]: number of the field in the data set */
    const void **inputs;                       /* [plan.n_feeds + 1]: of the run to come, `valid` last */
    int64_t valid;
    ty_checkpoints checkpoints;
    ty_named_tensor *state;
    size_t n_state;
    uint64_t layout;                       /* which weights lie where in the states: hash */
    char run_hash[TY_MANIFEST_HASH_BYTES]; /* of what fixes the order of samples: a checkpoint of another one is refused
                                            */
    char run_text[TY_MANIFEST_RUN_BYTES];  /* the same for people; "" if it does not fit */
    bool resumed;
    const char *restored_from; /* replay: folder of the checkpoint; NULL: none, the model's own weights */
    ty_rule served_rule;       /* with job->served */
    ty_served *served;         /* NULL: weights live here */
    int64_t pushed_rows;       /* served: rows that count in the step's batch */
    int64_t whole_batch;       /* served: rows of a step of the servers, of which recipe.batch_size are this worker's */
    ty_prefetch *batches;
    ty_prefetch_waits reported_waits; /* of the ring, at the last report */
    ty_tuner tuner;                   /* of its threads */
    ty_loop_plan loop;
    ty_session_stream train_stream, validation_stream;
    const char *pipe_state_folder;          /* where no job says it; NULL: as the job says */
    int64_t word;                           /* of a stream: what workers of servers said of the batch to come */
    ty_position at;                         /* of a stream: of the batch to come, which is the same on all ranks */
    int64_t known_epoch;                    /* batches of an epoch; 0: of a stream, of which nobody has said it */
    int64_t known_steps;                    /* of the run; likewise */
    bool train_sharded, validation_sharded; /* each host has samples of its own, which its ranks share */
    int64_t epoch_batches;                  /* sharded: batches that all hosts have; 0: as the data say */
    int64_t n_samples;                      /* of data.train, on all hosts */
    ty_error stop_err;                      /* the company could not be asked whether to stop; reported by the step */
    ty_outputs *outputs;
    ty_value_named latest[TY_SESSION_MAX_METRICS]; /* of the latest evaluation, and the last training loss */
    int n_latest;
    int64_t evaluated_step;
    double last_loss;
    bool has_best;
    double best;
    int64_t best_step;
    int64_t n_worse;                                    /* evaluations since that count and were no better */
    ty_value_named best_values[TY_SESSION_MAX_METRICS]; /* of that evaluation */
    int n_best_values;                                  /* 0: it was before the run resumed */
    int64_t steps_done;
    ty_loop_position written;       /* of the weights that are written as the model */
    const char *batch_reason;       /* of batch_size auto, for the banner; NULL: it was given */
    uint64_t planned_process_bytes; /* resident after the first plan; 0: none yet (budget.h) */
    uint64_t batch_limit_bytes;     /* while batch_size auto searches and after; 0: it was given */
    int64_t temporary_bytes;        /* limit for the compiler; 0: none (budget.h) */
    uint64_t announced_bytes;       /* peak that was announced */
    ty_session_times times;
    bool is_checked; /* every value of a step is looked at */
    bool in_step;    /* micro-batches of the step have been run, and more will follow */
    ty_check check;  /* of the latest step that was */
    ty_arena check_arena;
    const char *bad_sample[2]; /* of check.bad[i]: "sample 17 (train.csv:19)"; NULL: its rows are no samples */
    bool told_harmless;
} ty_session;

/* phase: receives the name of the phase that failed. With job->plan_only the run is opened as far as it can be planned:
 * recipe, model, data, steps; nothing is compiled, restored or written. */
int ty_session_open(ty_session *s, const ty_job *job, const char **phase, ty_error *err);
/* Only what compiling needs: recipe, model, data, compile. The caller has filled job, arena and compile_to or note. */
int ty_session_open_to_compile(ty_session *s, ty_error *err);
/* What running steps needs: the same, the data's values checked, batches read ahead. No folder for results: nothing is
 * restored or written. */
int ty_session_open_for_steps(ty_session *s, ty_error *err);
void ty_session_close(ty_session *s);
double ty_session_now_s(void);
/* session_identity.c: what fixes the order of samples, with this batch size, as 64 hexadecimal digits. */
int ty_session_hash(const ty_session *s, int64_t batch, char *hex, ty_error *err);
/* Fills run_hash and run_text. */
int ty_session_identify(ty_session *s, ty_error *err);
/* Refuses a checkpoint of a run with another order, naming what differs where the checkpoint says it. */
int ty_session_check_run(const ty_session *s, const ty_train_state *state, ty_error *err);
/* plan_hash of a checkpoint: the plan's, a dot, that of the layout. Checkpoints of older versions have no dot. */
void ty_session_plan_hash(const ty_session *s, char hash[TY_MANIFEST_HASH_BYTES]);
/* Where compiled kernels are kept: the recipe's folder, else the job's. NULL: nowhere. */
const char *ty_session_cache_folder(const ty_session *s);
/* How large its first folder may grow; 0: nobody says. */
int64_t ty_session_cache_bytes(void);
/* session_keep.c: where what opening data finds is kept, and what became of it: in the log, or for who only asks. */
ty_keep ty_session_keep(const ty_session *s, const ty_recipe_data *d);
void ty_session_tell_kept(const ty_session *s, const ty_dataset *ds, const char *section);
/* session_batch.c, a phase: batch_size auto becomes a number, and lr follows the batch size if it shall. */
int ty_session_choose_batch(ty_session *s, ty_error *err);

/* session_data.c: phases. Fields where the recipe names none; data opened; how many steps; values in their ranges; the
 * batches of the training on their way. */
int ty_session_find_fields(ty_session *s, ty_error *err);
int ty_session_open_data(ty_session *s, ty_error *err);
int ty_session_plan_steps(ty_session *s, ty_error *err);
/* Data by number whose epochs have so many batches, as all workers agreed. */
void ty_session_set_epoch(ty_session *s, int64_t batches);
int ty_session_check_ranges(ty_session *s, ty_error *err);
int ty_session_start_batches(ty_session *s, ty_error *err);
/* The ring of the training, numbers and streams alike. */
int ty_session_start_ring(ty_session *s, ty_prefetch_config config, ty_error *err);
void ty_session_plan_cadences(ty_session *s);
ty_place ty_session_place(const ty_session *s);
/* What schedules are given: steps of an epoch and of the run. 1 and many where nobody knows; then no schedule asks. */
int64_t ty_session_epoch_steps(const ty_session *s);
int64_t ty_session_all_steps(const ty_session *s);
/* Whether the run ends with this step, as far as it is known. */
bool ty_session_is_last(const ty_session *s, int64_t step);

/* session_stream.c: what is different where data are a stream. */
int ty_session_open_stream(ty_session *s, const ty_recipe_data *d, const ty_session_source *source,
                           ty_session_stream *out, ty_error *err);
/* Which part of their streams ranks take: all of them ask it together. */
int ty_session_agree_on_parts(ty_session *s, ty_error *err);
int ty_session_plan_stream(ty_session *s, ty_error *err);
int ty_session_start_stream(ty_session *s, ty_error *err);
/* The training batch of s->at. It may be one of rows that do not count: others have batches left, this rank has none.
 * TY_LOOP_STOPPED: told to stop while it waited. */
int ty_session_next_batch(ty_session *s, const ty_batch **out, ty_error *err);
/* Before the batch is run, and after it: *ends, it was the last of its epoch, on all ranks. The batch is released. */
int ty_session_ask_epoch(ty_session *s, const ty_batch *batch, ty_error *err);
int ty_session_pass_batch(ty_session *s, const ty_batch *batch, bool *ends, ty_error *err);
/* Whether training batches may have rows that do not count, whatever `remainder` says: of a rank whose part has ended,
 * and in place of bad records, which are known when their batch has been cut. */
bool ty_session_has_idle_rows(const ty_session *s);
/* Batches of one evaluation; *feed is to be closed behind them. */
int ty_session_start_evaluation(ty_session *s, ty_prefetch **batches, ty_data_feed **feed, ty_error *err);
/* The next one, which may be of rows that do not count; NULL: no rank has any. To be released unless it is idle. */
int ty_session_next_evaluated(ty_session *s, ty_prefetch *batches, const ty_batch **out, ty_error *err);
void ty_session_release(ty_session_stream *stream, ty_prefetch *batches, const ty_batch *batch);
/* What was left out of the data: of a stream so far, while others may still count. Never NULL. */
/* To the error of a loss that is not finite: where the training data have such values, if they were seen to have. */
void ty_session_explain_not_finite(const ty_session *s, ty_error *err);
const ty_bad *ty_session_bad(const ty_session *s, bool validation);
/* "stream of tfrecord, 12 files, 1.2 GB", for a banner. Returns out. */
const char *ty_session_stream_text(const ty_session_stream *stream, char *out, size_t n);
/* What of the streams decides the order of samples, for the run's hash. */
void ty_session_stream_hash(const ty_session *s, ty_buf *out);
void ty_session_close_streams(ty_session *s);

/* session_served.c: a session whose weights live in parameter servers; nothing happens in others. */
/* Whether this session writes: rank 0, or worker 0. */
bool ty_session_leads(const ty_session *s);
/* A phase: in sync mode workers share a batch. */
int ty_session_share_batch(ty_session *s, ty_error *err);
/* A phase, before states are restored: what servers keep joins the states of a checkpoint. And one after. */
int ty_session_list_served(ty_session *s, ty_error *err);
int ty_session_open_served(ty_session *s, ty_error *err);
/* How many updates of the weights a step of this session stands for. Checkpoints are numbered by updates. */
int64_t ty_session_updates(const ty_session *s);
/* Before weights are measured, saved or exported at the end of the run. */
int ty_session_join(ty_session *s, int64_t step, ty_error *err);

/* session_best.c: the best evaluation. After one, whose values are s->latest: 0, TY_LOOP_BETTER or TY_LOOP_ENOUGH. */
int ty_session_note_best(ty_session *s, const ty_loop_position *at);
/* Once it is known where the run goes on. */
void ty_session_resume_best(ty_session *s);
/* At the end of a run, by all ranks: the weights become those that are to be written, s->latest what was measured of
 * them, and s->written says of which step they are. */
int ty_session_take_best(ty_session *s, bool stopped, ty_error *err);
/* session_calls.c: one evaluation into s->latest, with the weights as they are; *abandoned: told to stop, not done. */
int ty_session_measure(ty_session *s, bool *abandoned, ty_error *err);

/* session_lengths.c, where data.train.length_buckets are said; else nothing happens. Phases: which lengths there are;
 * how long each sample is. */
int ty_session_find_lengths(ty_session *s, ty_error *err);
int ty_session_measure_lengths(ty_session *s, ty_error *err);
/* Once s->program is compiled, with these options: the programs beside it. */
int ty_session_compile_lengths(ty_session *s, const ty_compile_options *whole, ty_error *err);
/* All programs in the order in which they were compiled, s->program first; NULL behind the last. */
const ty_program *ty_session_program(const ty_session *s, int i);
void ty_session_order_lengths(const ty_session *s, bool validation, ty_sampler_config *config);
/* The program for the batch that s->inputs points at, which then points at what that program takes. */
ty_program *ty_session_cut_inputs(ty_session *s, const ty_batch *batch, bool trains);
/* "16: 120 batches, 24: 80 batches", of training. */
void ty_session_add_lengths(const ty_session *s, ty_buf *out);
/* For looks at s->program: "rows of 40; steps for 8, 16, 24 are compiled beside this one". NULL: there is no other. */
const char *ty_session_lengths_text(ty_session *s);
void ty_session_close_lengths(ty_session *s);

/* session_company.c: what a session settles with the ranks that it trains with; nothing happens where it is alone.
 * The recipe and the data must be the same on all ranks; how many batches an epoch has is agreed. */
int ty_session_agree_on_data(ty_session *s, ty_error *err);
/* The batch that was chosen: the smallest. */
int ty_session_agree_on_batch(ty_session *s, ty_error *err);
/* Batches of an epoch that all take part in: the fewest of any rank, or the most where nothing is dropped. */
int ty_session_agree_on_epoch(ty_session *s, int64_t *batches, ty_error *err);
/* Before the first exchange: all ranks have the same schedule. */
int ty_session_agree_on_schedule(ty_session *s, ty_error *err);
/* States that ranks keep in parts stand whole in s->state from the first call to the second, on all ranks: for saving,
 * and for restoring, after which each takes its part. */
int ty_session_gather_state(ty_session *s, ty_error *err);
void ty_session_release_state(ty_session *s);
/* All ranks begin with rank 0's states and position. The states were gathered. */
int ty_session_share_state(ty_session *s, ty_error *err);
/* session_transforms.c: before data are opened with these fields, for transforms that learn. */
int ty_session_prepare_transforms(ty_session *s, const ty_field *fields, int n, bool sharded, ty_data_source *source,
                                  ty_error *err);
void ty_session_describe_transforms(const ty_field *fields, int n); /* in the log */
/* preprocessing.json; nothing where no field has transforms. */
int ty_session_preprocessing(ty_session *s, ty_buf *out, ty_error *err);
/* tokenizer.json of windows or fields; nothing where there is none. */
int ty_session_tokenizer(ty_session *s, ty_buf *out, ty_error *err);
/* session_shards.c: checkpoints of which each rank writes its part, by all ranks together, with whole states. */
int ty_session_save_parts(ty_session *s, const ty_train_state *state, ty_error *err);
/* What rank 0 restores may lie in parts with other hosts: it asks, they answer until it says that it has no more
 * questions, which it does in any case. */
void ty_session_fetch_parts(ty_session *s);
int ty_session_end_questions(ty_session *s, ty_error *err);
int ty_session_answer_questions(ty_session *s, ty_error *err);
/* Rows of a batch that this session computes, and which. */
int64_t ty_session_rows(const ty_session *s);
/* Whether the host knows how long steps waited for other ranks: between GPUs that is inside the graph of a step. */
bool ty_session_sees_waits(const ty_session *s);
ty_sampler_config ty_session_sampler(const ty_session *s, bool validation);

/* What the run may take: as the recipe says, else what the session's GPU has free, else the host's limit. */
int ty_session_memory(const ty_session *s, uint64_t *limit, const char **why, ty_error *err);

/* Lets inputs[] point into a batch; fields: train_field or validation_field. */
void ty_session_point_inputs(ty_session *s, const ty_batch *batch, const int *fields);
/* Explains session.check: where the first NaN and the first infinity came from, a line each and one an operand. */
void ty_session_explain(const ty_session *s, ty_buf *out);
/* The loop's callbacks over a session. */
ty_loop_calls ty_session_calls(ty_session *s);
/* Writes the trained model. */
int ty_session_export(ty_session *s, ty_error *err);
/* Banner before, summary after. Text for people. */
void ty_session_banner(ty_session *s, ty_buf *out);
void ty_session_summary(const ty_session *s, ty_job_end end, bool exported, ty_buf *out);

/* ---- session_ring.c ---- */

/* On so many cores, where the recipe does not say it: threads that may decode. */
int ty_ring_workers(int cores);
/* What a stream's shuffle buffer may take. memory_said: data_memory; 0: left out, and so is the limit here. */
uint64_t ty_input_shuffle_bytes(uint64_t memory_said);
/* Of data_memory, for a ring of batches whose feed keeps so many bytes; 0: no limit. */
uint64_t ty_input_ring_bytes(const ty_recipe *r, bool is_evaluation, uint64_t kept);
/* Batches in a ring. memory_said: data_memory; 0: a share of the limit. */
int ty_ring_depth(int max_workers, uint64_t batch_bytes, uint64_t memory_said, uint64_t memory_limit);
/* Threads that may decode; batches that a ring holds. */
int ty_session_max_workers(const ty_session *s);
int ty_session_ring_depth(const ty_session *s, uint64_t batch_bytes);
uint64_t ty_session_batch_bytes(const ty_dataset *d, int64_t rows);
/* Fills threads, depth and memory of a ring over d (its types are enough). Refused where its batches alone are more
 * than the run's memory. */
int ty_session_set_ring(ty_session *s, const ty_dataset *d, int64_t rows, ty_prefetch_config *c, ty_error *err);
/* Once s->batches has started: says with what, and sets the tuner to its beginning. */
void ty_session_tell_ring(ty_session *s);
/* What bounds the rate; NULL: no ring. */
const char *ty_session_input_cause(const ty_session *s);

#endif
