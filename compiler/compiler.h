/* compiler.h - a model file becomes a running training step. The only compiler header that other folders include.
 *
 *     ty_model *model;     ty_model_open("model.onnx", &model, &err);
 *     ty_program *prog;    ty_compile_train(model, &spec, &options, &prog, &err);
 *     for (each batch)     ty_program_run(prog, TY_RUN_LAST, input_pointers, &err);
 *                          loss = ty_program_output(prog, TY_RUN_LAST, "loss") ...
 *     weights              ty_program_n_tensors / ty_program_tensor: named views into the state arenas
 *     model file           ty_model_write(model, path, find_weight, prog, &err);
 *
 * A program owns its state (parameters, optimizer moments, counters) in flat arenas; ty_program_state() lists the
 * arenas for checkpoints, ty_program_tensor() the named tensors inside them for model files. Nothing is allocated after
 * compiling.
 */
#ifndef TY_COMPILER_COMPILER_H
#define TY_COMPILER_COMPILER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/tensor.h"
#include "compiler/train_spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- model files ------------------------------------------------------------------------------------------------- */

typedef struct ty_model ty_model;

/* A graph input, output or weight of a model file. dim -1: free (bound when compiling). Names belong to the model. */
typedef struct ty_model_value {
    const char *name;
    ty_dtype dtype;
    int rank;
    int64_t dim[TY_MAX_RANK];
    const char *dim_name[TY_MAX_RANK]; /* of free dims; NULL if unnamed */
    const void *data;                  /* weights: initial bytes, else NULL */
    bool trainable_hint;               /* weights: float, not a running statistic and not marked a buffer in the file */
    bool only_trains;                  /* inputs: of the model's own training step alone; not applied */
    ty_constraint constraint;          /* weights */
} ty_model_value;

/* Opens by content: ONNX, or C source (NAME.c, include/trainyard/model.h). Maps the file; weights are not copied. */
int ty_model_open(const char *path, ty_model **out, ty_error *err);
/* What is compiled of a model in C stays in a folder, and needs no C compiler where it is found there again. */
int ty_model_keep(const ty_model *m, const char *folder, ty_error *err);
int ty_model_open_kept(const char *path, const char *folder, ty_model **out, ty_error *err);
/* What is meant of a file that leaves it open: of several computations (TensorFlow's signatures) one, and classes of
 * layers without code. */
typedef struct ty_model_choice {
    const char *signature;       /* what is applied, evaluated and, unless the file trains itself, trained; NULL: the
                                    default of the file */
    const char *train_signature; /* the file's own training step; NULL: none */
    const char *layers;        /* C source of layers whose classes a Keras file names (trainyard/model.h); NULL: none */
    const char *architecture;  /* of a Hugging Face folder: the class that is meant, "BertForSequenceClassification" or
                                  "ForSequenceClassification"; NULL: the one that config.json names */
    int64_t labels;            /* classes of its head; 0: as many as config.json has */
    uint64_t seed;             /* what weights start from that its files do not have (ty_model_reseed) */
    const char *const *inputs; /* that are fed, of a network that can make up others; n_inputs 0: the usual ones */
    int n_inputs;
    const char *const *fields; /* names of what the data have, where that is known: such a network then leaves out usual
                                  inputs that are not among them, if its words are */
    int n_fields;
} ty_model_choice;
/* folder and choice may be NULL. */
int ty_model_open_as(const char *path, const char *folder, const ty_model_choice *choice, ty_model **out,
                     ty_error *err);
/* Its own training step is the training: gradients, optimizer and assignments are in the file. Its inputs are those of
 * both signatures. */
bool ty_model_trains_itself(const ty_model *m);
void ty_model_free(ty_model *m);
const char *ty_model_format(const ty_model *m); /* "onnx opset 18", for the banner */
int ty_model_n_inputs(const ty_model *m);
const ty_model_value *ty_model_input(const ty_model *m, int i);
int ty_model_n_outputs(const ty_model *m);
const ty_model_value *ty_model_output(const ty_model *m, int i);
int ty_model_n_weights(const ty_model *m);
const ty_model_value *ty_model_weight(const ty_model *m, int i);
/* A weight that batches change but gradients do not: running mean or variance. */
bool ty_model_weight_is_running(const ty_model *m, int weight);
int64_t ty_model_n_nodes(const ty_model *m);
/* How the file itself says that it is trained (loss, optimizer, schedule ...): text of a recipe, YAML, of which the
 * user's recipe replaces whole sections; NULL: it says nothing. Lives as long as the model. */
const char *ty_model_recipe(const ty_model *m);
struct ty_model_choice;
/* The same of a file that need not be open: *out in the arena, or NULL; also if there is no file. Opens the model only
 * where its format can say such things. What of the choice the format knows nothing of is passed over. */
int ty_model_recipe_of(const char *path, const struct ty_model_choice *choice, ty_arena *a, const char **out,
                       ty_error *err);

/* Weights that the file does not have, since it is a configuration alone, start from this seed (0 if never called).
 * Call before compiling: the bytes of ty_model_weight() change. */
int ty_model_reseed(ty_model *m, uint64_t seed, ty_error *err);

/* Something else that the file says, for people: "written by", "signature", "optimizer state" ... One line each; they
 * live as long as the model. */
typedef struct ty_model_fact {
    const char *what;
    const char *text;
} ty_model_fact;

int ty_model_n_facts(const ty_model *m);
const ty_model_fact *ty_model_fact_at(const ty_model *m, int i);

/* Something that the export of the file has lost and training would need (batch norm folded into convolutions, dropout
 * taken out ...), and how to export instead. One line each; they live as long as the model. */
typedef struct ty_model_warning {
    const char *text;
    const char *help;
} ty_model_warning;

int ty_model_n_warnings(const ty_model *m);
const ty_model_warning *ty_model_warning_at(const ty_model *m, int i);

/* What the labels of a model that reads texts are. */
typedef enum ty_label_kind {
    TY_LABELS_GIVEN,  /* something that the data have beside the text, or nothing */
    TY_LABELS_TAGS,   /* classes of its words */
    TY_LABELS_NEXT,   /* its own tokens, one further on */
    TY_LABELS_HIDDEN, /* those of its tokens that are hidden from the model */
    TY_LABELS_TEXT,   /* the tokens of another text, which a decoder foretells */
    TY_LABELS_ANSWER  /* the places of a piece of its second text, which answers the first: start_positions,
                         end_positions */
} ty_label_kind;

/* What the files beside a model say of how its inputs are made. */
typedef struct ty_model_preparation {
    const char *tokenizer; /* path of a tokenizer.json; NULL: none */
    int64_t max_length;    /* tokens of a text at most; 0: any number */
    bool is_turned;        /* weights of linear layers are [in, out] */
    ty_label_kind labels;
    int64_t start;          /* TY_LABELS_TEXT: the token that a decoder begins with; -1: not said */
    bool has_normalization; /* of pictures: (value / 255 - mean) / std, a channel each */
    double mean[3], std[3];
} ty_model_preparation;
/* NULL: there are no such files. Lives as long as the model. */
const ty_model_preparation *ty_model_preparation_of(const ty_model *m);
/* What the classes that a model tells apart are called, n of them from class 0 on, for formats that have a place for it
 * and a model that has as many. Copied; the last call counts. */
void ty_model_name_classes(ty_model *m, const char *const *names, int64_t n);
/* Whether the written model has no weights in it: all of them, also those that were not trained, belong into the
 * safetensors file beside it. */
bool ty_model_weights_are_beside(const ty_model *m);
/* Paths of files that belong beside the model wherever it is (tokenizers, settings of generation ...). */
const char *const *ty_model_companions(const ty_model *m, int *n);

/* Finds the present bytes of a weight by its name in the file; NULL keeps the bytes of the file. */
typedef const void *ty_find_weight(void *ctx, const char *name, const ty_type *type);
/* The name that the model has in a folder of results: "model.onnx", "model.c", "saved_model" (a folder itself) ... */
const char *ty_model_artifact(const ty_model *m);
/* Writes the model in the format in which it came, with weights from `find`. Durable and atomic, also where that is a
 * folder. */
int ty_model_write(const ty_model *m, const char *path, ty_find_weight *find, void *ctx, ty_error *err);
/* What an optimizer keeps, for formats that have a place for it. */
typedef struct ty_model_moments {
    const char *optimizer; /* ty_optimizer_text(): "keras_adam" */
    int64_t calls;         /* of the training step so far, those that only accumulate included */
    double learning_rate;  /* of the last one */
    /* A moment of a weight by its letter in the state's name ("m" of "keras_adam.m.0"); "ema", its average; "sum", the
     * sum of its gradients; and with weight "" a number that is kept once ("product", f64). NULL: not kept, or not
     * whole. */
    const void *(*find)(void *ctx, const char *moment, const char *weight, const ty_type *type);
    void *ctx;
} ty_model_moments;
/* ty_model_write, with them; NULL: none. */
int ty_model_write_trained(const ty_model *m, const char *path, ty_find_weight *find, void *ctx,
                           const ty_model_moments *moments, ty_error *err);
/* Whether that makes a second file, PATH.data, with the weights: where ONNX cannot hold them in one (2 GiB). */
bool ty_model_has_data_file(const ty_model *m);
#define TY_MODEL_DATA_SUFFIX ".data"

/* Parts of a model that the compiler knows as a whole, whether the file has them whole or taken apart. */
typedef enum ty_composite {
#define COMPOSITE(NAME, ...) TY_COMPOSITE_##NAME,
#include "compiler/composites.def"
#undef COMPOSITE
    TY_N_COMPOSITES
} ty_composite;

typedef struct ty_composite_count {
    int n[TY_N_COMPOSITES];
} ty_composite_count;

const char *ty_composite_text(ty_composite kind); /* "layer norm" */
/* "12 causal attention, 25 layer norm, 12 GELU"; "" if there is none. Returns out; 320 bytes hold the longest. */
const char *ty_composite_count_text(const ty_composite_count *c, char *out, size_t n);
/* Counts those of a model without faults as it is trained, with `batch` bound to free dims. */
int ty_model_count_composites(const ty_model *m, int64_t batch, ty_composite_count *out, ty_error *err);

/* What a unit spends its time on; compiler/ops/work.h says what counts as arithmetic. */
typedef enum ty_work {
    TY_WORK_PRODUCT,     /* matrix products */
    TY_WORK_CONVOLUTION, /* with both gradients */
    TY_WORK_RECURRENT,   /* a recurrent layer as one call */
    TY_WORK_ELEMENTWISE, /* generated loops without a reduction */
    TY_WORK_REDUCTION,   /* generated loops with one: softmax, norms, losses, sums; scans */
    TY_WORK_POOLING,
    TY_WORK_INDEXING,  /* gathers, scatters, sorting */
    TY_WORK_OPTIMIZER, /* clipping, schedule, update */
    TY_WORK_COPY,
    TY_WORK_EXCHANGE, /* between replicas */
    TY_N_WORKS
} ty_work;
const char *ty_work_text(ty_work w); /* "products" */

/* ---- what a model is, before anything is spent on it ----------------------------------------------------------------
 *
 *     ty_model_summary s;
 *     ty_model_summarize(model, &(ty_summary_options){.batch = 32}, &arena, &s, &err);
 *     s.n_faults: what cannot be trained, all at once;   if 0: s.layer[], s.forward_flop[] ...
 *
 * The model is imported as it will be trained and its gradient built, for every weight and for outputs that are floats;
 * no weight is read. Reads no data: a recipe may still ask for what the model cannot give.
 */

/* A free dimension that is not the batch: what to take it as. */
typedef struct ty_free_dim {
    const char *name; /* as the file names it */
    int64_t value;
} ty_free_dim;

typedef struct ty_summary_options {
    int64_t batch;           /* rows that the shapes are tried with; 0: 2 */
    const ty_free_dim *dims; /* others are taken as 64 */
    int n_dims;
} ty_summary_options;

/* Nodes of one module of the model (exporters that keep modules), or one node. In the order of the file. */
typedef struct ty_layer_facts {
    const char *name;                   /* "blocks.0.qkv"; "" if the file has no names */
    const char *op;                     /* of its main node: "Conv" */
    const char *shape;                  /* of its last result: "f32[N,64,56,56]" */
    int n_nodes;                        /* that became arithmetic or data movement */
    int64_t n_numbers;                  /* in the trainable weights that it reads first */
    double forward_flop, backward_flop; /* a sample */
} ty_layer_facts;

/* The layer that an origin of the compiled program (ty_unit_facts, ty_call_info) belongs to, as summaries name it:
 * "blocks.0/attn (MatMul #17)" is of "blocks.0". Lies in the arena or is the origin itself. */
const char *ty_layer_of_origin(ty_arena *a, const char *origin);

typedef struct ty_model_summary {
    int64_t batch; /* that the shapes were tried with */
    const ty_free_dim *assumed;
    int n_assumed;         /* free dims that options did not give */
    const ty_error *fault; /* complete up to TY_SUMMARY_MAX_FAULTS */
    int n_faults, n_faults_all;
    const char *const *untrainable; /* float outputs without a gradient (beside others that have one) */
    int n_untrainable;
    /* If there are no faults: */
    const ty_layer_facts *layer;
    int n_layers;
    int64_t n_numbers, n_trainable; /* in all weights; in those that are trained unless frozen */
    size_t weight_bytes;
    double forward_flop[TY_N_WORKS], backward_flop[TY_N_WORKS]; /* a sample */
    ty_composite_count found;
} ty_model_summary;

#define TY_SUMMARY_MAX_FAULTS 64

/* Everything lies in the arena. Fails only for lack of memory: faults of the model are results. */
int ty_model_summarize(const ty_model *m, const ty_summary_options *opt, ty_arena *a, ty_model_summary *out,
                       ty_error *err);

/* ---- compiling -------------------------------------------------------------------------------------------------- */

/* CUDA: TY_E_UNSUPPORTED where an op of the step has nothing that computes it on a GPU. */
typedef enum ty_backend { TY_BACKEND_CPU, TY_BACKEND_INTERPRETER, TY_BACKEND_CUDA } ty_backend;

/* How replicas on the GPUs of a host add up: compiler/target/cuda/nccl.h. */
typedef enum ty_cross_device { TY_CROSS_NCCL, TY_CROSS_HIERARCHICAL, TY_CROSS_ONE_DEVICE, TY_N_CROSS } ty_cross_device;
enum { TY_MAX_GPUS = 64 };

typedef struct ty_compile_options {
    ty_backend backend;
    int gpu;            /* CUDA: its number, from 0; if gpus is NULL */
    int gpu_capability; /* CUDA, plan_only: of the GPU whose kernels are looked for in the cache; 0: none */
    int threads;        /* 0: all cores */
    bool deterministic_strict;
    const char *dump_dir;    /* graphs after every pass, kernels and plan are written here; NULL: none */
    const char *work_dir;    /* where generated C is compiled; NULL: $TMPDIR or /tmp */
    const char *cache_dir;   /* of compiled kernels, ':' between folders: all are read, the first written; NULL: none */
    int64_t cache_max_bytes; /* of the first folder: entries used longest ago go; 0: 256 MiB */
    const char *compiled_dir; /* what output_dir left, without a C compiler: for this step and processor; NULL: none */
    const char *output_dir;   /* compiled kernels are left here, to be used elsewhere; NULL: not */
    const char *model_name;   /* for explanations of the cache; NULL: the model's format */
    ty_buf *cache_note;       /* NULL, or gets in words why the cache did not have the kernels */
    const char *cc;           /* C compiler; NULL: base/toolchain.h's */
    const char *const *skip_passes; /* passes to leave out (compile.c's table), to see what each is worth */
    int n_skip_passes;
    bool tf32;       /* CUDA: products and convolutions of float32 with ten bits of mantissa */
    uint64_t apart;  /* CUDA: calls that are kept apart from what follows them, a bit for each kind (apart.h) */
    const int *gpus; /* CUDA: numbers of the GPUs of this host, each of which runs a replica: spec.replicas of them */
    int n_gpus;      /* 0: one */
    ty_cross_device cross_device;
    int cross_inside; /* hierarchical: replicas of a group, which divides their number; 0: half of them */
    /* Another program of the same model and training, for inputs of another size, whose states this one shares: those
     * of a step that either has made are there for the next of either. Temporaries are shared too where the other has
     * enough. Of the two one at most has runs that were started and not finished, and what the other has left is caught
     * up (ty_program_fetch_states) before it starts any. Everything that is said and done of states goes through the
     * other one, which outlives this one. Compiled before either has run. NULL: it has states of its own. */
    struct ty_program *beside;
    int first_exchange;                 /* number of its first exchange among those of all programs */
    const struct ty_exchange *exchange; /* replicas are other processes or threads (exchange.h); copied; NULL: none */
    bool replicas_alike;  /* of spec.replicas one is run and speaks for all, as if all had its batch: for tests */
    bool grid;            /* kernels are a GPU's, and run on the host, a thread at a time: for tests */
    const char *cuda_dir; /* kernels are printed as CUDA C too and left here (compiler/target/cuda/build.h): for tests;
                             NULL: not */
    const char *stop_after;  /* "step", or a pass: the program has that graph, to be described; NULL: compile */
    int64_t temporary_bytes; /* if training needs more temporaries, parts of forward are computed again in backward,
                                until they fit or nothing is left: the report says how far it came. 0: no limit */
    bool plan_only; /* stop when everything is known but nothing allocated or compiled: the program cannot run and has
                       no state, but reports and describes itself */
} ty_compile_options;

/* An entry of a cache folder. */
typedef struct ty_cache_listed {
    char name[16]; /* beginning of its name */
    int64_t bytes, used_utc_s;
    const char *model, *inputs; /* what it was compiled for; "" if unknown */
} ty_cache_listed;

/* Compiled kernels in a folder, those used last first. A folder that is not there has none. What else it holds, its
 * limit and how all of it is removed: base/entries.h. */
int ty_cache_list(const char *dir, ty_arena *a, ty_cache_listed **out, int *n, ty_error *err);

typedef struct ty_program ty_program;

/* Tapes to run. MICRO: gradient of one micro-batch is added up (with spec.accumulate > 1). LAST: gradient, then update.
 * EVAL: forward and metrics. ROWS: which rows of tables a batch names (with spec.row_lists). */
typedef enum ty_run { TY_RUN_MICRO, TY_RUN_LAST, TY_RUN_EVAL, TY_RUN_ROWS, TY_N_RUNS } ty_run;

/* Wall time by phase and pass, in the order in which they began; a pass that runs for each tape is one phase. What
 * happens while the C compiler works counts for itself, "cc" is what is then still waited for. */
enum { TY_MAX_COMPILE_PHASES = 32 };
typedef struct ty_compile_phases {
    const char *name[TY_MAX_COMPILE_PHASES];
    double ms[TY_MAX_COMPILE_PHASES];
    int n;
    int64_t lap_ns; /* private */
} ty_compile_phases;

/* Computed again in backward, not kept: from one layer to another, all of it or what lies between library calls. */
typedef struct ty_remat_line {
    const char *from, *to;
    bool products;
    int64_t kept_bytes; /* that need not be kept, roughly */
    double share;       /* of the step's arithmetic, computed again */
} ty_remat_line;

typedef struct ty_remat_report {
    ty_remat_line *line;
    int n_lines;
    double share;                     /* of the step's arithmetic, computed again in all */
    size_t without_bytes, with_bytes; /* temporaries; 0: there was no limit */
} ty_remat_report;

/* Logits of which a few rows are in memory at a time, the largest there are: bytes of a chunk, and of all rows. */
typedef struct ty_chunk_report {
    int64_t rows, of_rows, columns; /* 0: none */
    size_t bytes, of_bytes;
} ty_chunk_report;

/* Time and memory of compiling, for the banner and reports; all true, none estimated. */
typedef struct ty_compile_report {
    double import_ms, lower_ms, plan_ms, cc_ms, total_ms; /* cc: from the start of the C compiler to its end */
    int n_graph_nodes, n_kernels, n_distinct_kernels, n_library_calls;
    bool cache_hit;
    size_t state_bytes; /* parameters, moments, statistics */
    size_t slab_bytes;  /* planned temporaries: the largest tape */
    size_t bound_bytes; /* lower bound: largest sum of live bytes */
    size_t constant_bytes;
    size_t mapped_constant_bytes; /* of these, those that are read where they lie in the model file */
    size_t scratch_bytes;         /* library workspaces */
    /* Of a GPU, where states, slab, constants and workspaces are the GPU's too: batches, what is left for code, and all
     * together; of the host: memory that batches and outputs pass through. */
    size_t device_batch_bytes, device_code_bytes, device_bytes, pinned_bytes;
    size_t text_bytes; /* generated C, of which compiling takes its time */
    ty_chunk_report chunk;
    ty_remat_report remat;    /* text lives as long as the program */
    int64_t n_trained;        /* numbers trained */
    ty_composite_count found; /* in the model as it is trained (inference: as it is applied) */
    ty_compile_phases phases;
} ty_compile_report;

/* Training: outputs of LAST are "loss", "lr", "grad_norm"; of MICRO "loss"; of EVAL "loss" parts "loss.sum",
 * "loss.count" (their quotient is the loss of the rows), metric sums and counts, and every model output by its name
 * unless spec->no_outputs; of ROWS "rows.<weight>" i64[n]: rows of that table, rising, then -1 for each that is missing
 * to n. Inputs of a run are in the order of spec->inputs (then "valid"). */
int ty_compile_train(const ty_model *m, const ty_train_spec *spec, const ty_compile_options *opt, ty_program **out,
                     ty_error *err);
/* Inference: only EVAL exists; inputs in the order of the model's inputs with the given types. */
int ty_compile_infer(const ty_model *m, const ty_binding *inputs, int n_inputs, const ty_compile_options *opt,
                     ty_program **out, ty_error *err);
void ty_program_free(ty_program *p);
const ty_compile_report *ty_program_report(const ty_program *p);
/* Runs one tape. inputs[i]: dense bytes of input i, for all GPUs. Returns when results and states are there. */
int ty_program_run(ty_program *p, ty_run run, const void *const *inputs, ty_error *err);
/* The same in halves: a GPU goes on while the host prepares the next run; replicas on CPUs leave what waits for others
 * to it. inputs are read before start returns. finish waits for the oldest run of the tape that was started, whose
 * outputs are then there until the next start. in_flight: how many may be started; one more finishes the oldest, and
 * all but one are finished before another tape than MICRO runs or states are fetched. */
int ty_program_start(ty_program *p, ty_run run, const void *const *inputs, ty_error *err);
int ty_program_finish(ty_program *p, ty_run run, ty_error *err);
int ty_program_in_flight(const ty_program *p, ty_run run);

/* ---- where the time goes ----
 *
 * A tape is a sequence of calls. ty_program_run_timed is ty_program_run with a clock read between them (40 ns a call):
 *
 *     int n = ty_program_n_calls(p, TY_RUN_LAST);
 *     ty_program_run_timed(p, TY_RUN_LAST, inputs, ns, err);     // ns[n]
 *     ty_program_call(p, TY_RUN_LAST, i, &info);                 // what call i is
 */
typedef enum ty_call_kind { TY_CALL_KERNEL, TY_CALL_LIBRARY, TY_CALL_COPY } ty_call_kind;

typedef struct ty_call_info {
    ty_call_kind kind;
    const char *name;   /* KERNEL: "ty_k_<hash>", its function; LIBRARY: its op; COPY: "copy" */
    const char *how;    /* KERNEL: "rows", "columns"; LIBRARY: what was chosen, "onednn jit"; COPY: "" */
    const char *origin; /* the user's layer */
    int threads, n_also;
    size_t read_bytes, written_bytes; /* memory that must move at least: every element that is touched, once */
    int unit;                         /* position on the tape: number in ty_tape_facts */
    const int *also;                  /* KERNEL of a GPU: n_also more units that it computes */
} ty_call_info;

int ty_program_n_calls(const ty_program *p, ty_run run);                         /* 0 for the interpreter */
void ty_program_call(const ty_program *p, ty_run run, int i, ty_call_info *out); /* text lives as the program does */
int ty_program_run_timed(ty_program *p, ty_run run, const void *const *inputs, int64_t *call_ns, ty_error *err);

int ty_program_n_inputs(const ty_program *p);
const ty_binding *ty_program_input(const ty_program *p, int i);
/* A result of the latest run of that tape; NULL if there is no such output. Valid until the next run. */
const ty_tensor *ty_program_output(const ty_program *p, ty_run run, const char *name);
int ty_program_n_outputs(const ty_program *p, ty_run run);
const char *ty_program_output_name(const ty_program *p, ty_run run, int i);

/* State arenas, whole: for checkpoints. Write into them only between runs. Fetch before they are read or written (on a
 * GPU they are copies, on a CPU a run may have left updates to the next), and say so after they were written. */
int ty_program_fetch_states(ty_program *p, ty_error *err);
void ty_program_states_changed(ty_program *p);
/* Fetches them, and refuses if replicas on several GPUs do not hold the same bytes. */
int ty_program_check_replicas(ty_program *p, ty_error *err);
int ty_program_n_states(const ty_program *p);
ty_tensor ty_program_state(const ty_program *p, int i, const char **name);
/* What its optimizer keeps, for ty_model_write_trained: valid until the next run. Fetch the states first. */
void ty_program_moments(ty_program *p, const ty_train_spec *spec, ty_model_moments *out);
/* Where a program on a CPU has its temporaries, report->slab_bytes; NULL: in no memory of this process. */
const void *ty_program_slab(const ty_program *p);
/* Named weights (parameters and buffers) as the model file names them. */
int ty_program_n_tensors(const ty_program *p);
ty_tensor ty_program_tensor(const ty_program *p, int i, const char **name, bool *trained);
/* Identity of the compiled plan: hex SHA-256 of graph, options and layout. Same model and recipe, same hash. */
const char *ty_program_hash(const ty_program *p);

/* ---- what a program consists of -----------------------------------------------------------------------------------
 *
 * For plans before a run and profiles after one. A tape is a row of units; a position on the tape is a unit's number.
 * Buffers are what the plan laid into the slab; several values may share one (views, results in place, the parts of a
 * concatenation).
 *
 *     ty_tape_facts t;
 *     ty_program_describe(prog, TY_RUN_LAST, &arena, &t, &err);
 *     for (int i = 0; i < t.n_units; i++)      t.unit[i].origin, .flop, .read_bytes ...
 *     for (int i = 0; i < t.n_buffers; i++)    alive at the peak if t.buffer[i].first <= t.peak <= t.buffer[i].last
 */

/* Which part of the step. */
typedef enum ty_phase { TY_PHASE_FORWARD, TY_PHASE_BACKWARD, TY_PHASE_UPDATE, TY_N_PHASES } ty_phase;

/* One call: a kernel, a library call, or a copy. */
typedef struct ty_unit_facts {
    ty_work work;
    ty_phase phase;
    const char *origin; /* the user's layer: "blocks.0/attn (MatMul #17)", "loss", "update"; "" if unknown */
    const char *text;   /* "dot f32[64,784] f32[784,512]", "kernel of 12 operations over 64 x 512" */
    const char *counts; /* of a kernel, how often each operation is done: "fma.f32 51200 exp.f32 512"; "" otherwise */
    double flop;
    size_t read_bytes, written_bytes; /* memory that must move at least: every element that is touched, once */
} ty_unit_facts;

typedef enum ty_buffer_use {
    TY_USE_ACTIVATION,      /* made forward, kept for the gradient */
    TY_USE_TEMPORARY,       /* within one phase; outputs of the step too */
    TY_USE_GRADIENT,        /* of activations */
    TY_USE_WEIGHT_GRADIENT, /* flat, of all weights */
    TY_N_BUFFER_USES
} ty_buffer_use;
const char *ty_buffer_use_text(ty_buffer_use use); /* "activations" */

typedef struct ty_buffer_facts {
    ty_buffer_use use;
    const char *origin; /* of the largest value in it */
    ty_type type;       /* likewise */
    int64_t offset, bytes;
    int first, last; /* positions; last may be n_units: an output, alive until the next run */
} ty_buffer_facts;

typedef struct ty_tape_facts {
    const ty_unit_facts *unit;
    int n_units;
    const ty_buffer_facts *buffer; /* by offset */
    int n_buffers;
    int64_t slab_bytes, bound_bytes; /* the bound: no plan of this order can be smaller */
    int peak;                        /* first position with the most live bytes */
    int64_t peak_bytes;              /* live there */
    int unfused_calls;               /* if every operation of the tape ran alone, as without a compiler ... */
    double unfused_bytes;            /* ... and read its operands from memory and wrote its results there */
} ty_tape_facts;

/* Describes one tape of a compiled or planned program; everything lies in the arena or belongs to the program. */
int ty_program_describe(const ty_program *p, ty_run run, ty_arena *a, ty_tape_facts *out, ty_error *err);

/* ---- what is not finite ----
 *
 * ty_program_run_checked is ty_program_run, bit for bit, and looks at what every call has written:
 *
 *     ty_program_run_checked(p, TY_RUN_LAST, inputs, &arena, &check, err);
 *     if (check.n_bad > 0)     check.bad[0].layer, .op, .index: where the first NaN or infinity came from
 *     if (check.reached)       and it did harm: it is in the loss or in a state
 *
 * A value is bad where it holds a NaN and no operand does, or an infinity and no operand does. Constants of the model
 * may be infinite (masks are), and an infinity that nobody notices (1 / (1 + inf)) harms nobody. Of a generated kernel
 * that wrote something bad every operation is computed once more, alone, so that not the kernel is named but the
 * operation; where that would take too much memory, the kernel. The interpreter is watched operation by operation.
 */

/* What a tensor holds. */
typedef struct ty_numbers {
    const char *text; /* "f32[64,256] dot of fc1", "f32[10] weight fc2.bias" */
    int64_t n, n_nan, n_inf;
    double lo, hi; /* of the finite ones; lo > hi: there are none */
} ty_numbers;

enum { TY_CHECK_MAX_OPERANDS = 8 };

typedef struct ty_bad_value {
    const char *op; /* "exp", "dot", "kernel of 7 operations over 64 x 256"; "input", "state": it came from outside */
    const char *layer; /* the user's, as ty_layer_of_origin has it; of inputs and weights: their name */
    ty_phase phase;
    ty_type type;
    int64_t index[TY_MAX_RANK]; /* of the first such element */
    double value;               /* NAN, INFINITY or -INFINITY */
    ty_numbers result, operand[TY_CHECK_MAX_OPERANDS];
    int n_operands;
} ty_bad_value;

/* Add up over the runs of a step: start with {0}. */
typedef struct ty_check {
    ty_bad_value bad[2]; /* the first; if that was an infinity, the first NaN too */
    int n_bad;
    bool reached;
    int64_t n_values, n_numbers; /* looked at */
} ty_check;

/* Texts lie in the arena. */
int ty_program_run_checked(ty_program *p, ty_run run, const void *const *inputs, ty_arena *a, ty_check *check,
                           ty_error *err);

/* The operations of a tape, for who wants to draw them: what a unit is made of. */
typedef struct ty_node_facts {
    const char *text;   /* "%12 = exp(%11) : f32[64,256]", as dumps have it */
    const char *origin; /* the user's layer, as of units */
    ty_phase phase;
    ty_work work; /* of the node if it ran alone */
    bool is_leaf; /* an input, a state or a constant */
    double bytes; /* of its results */
    int unit;     /* that computes it: the first one, since cheap things are computed where they are used; -1: none */
} ty_node_facts;

typedef struct ty_graph_facts {
    const ty_node_facts *node; /* live on the tape, in order */
    int n_nodes;
} ty_graph_facts;

/* The graph as it is compiled or, with stop_after, as it was after that pass. Everything lies in the arena. */
int ty_program_describe_graph(const ty_program *p, ty_run run, ty_arena *a, ty_graph_facts *out, ty_error *err);

/* Values that an integer input may take so that no lookup leaves its table: labels below the class count, ids below the
 * table's rows. */
typedef struct ty_input_range {
    int64_t lo, hi; /* lo <= value <= hi */
    int64_t also;   /* or just this one, if has_also (a loss's ignore_index) */
    bool has_also;
    const char *what; /* the table or the loss, for messages */
} ty_input_range;

/* The range of an input; NULL if no limit is known. */
const ty_input_range *ty_program_input_range(const ty_program *p, int input);

#endif
