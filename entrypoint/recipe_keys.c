/* recipe_keys.c - the tables but those of losses, optimizers and schedules. */
#include "entrypoint/recipe_keys.h"

#include "container/input/map/map.h"

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
    {"model", TY_BIND_STRING, TOP(model), .required = true,
     .help = "model file or folder: ONNX, Keras, TensorFlow, Hugging Face or C, relative to the recipe"},
    {"architecture", TY_BIND_STRING, TOP(architecture),
     .help = "of a Hugging Face folder: the class that is meant, as ForTokenClassification; left out: config.json's"},
    {"labels", TY_BIND_INT, TOP(labels), "0", .min = 0, .max = 1e6,
     .help = "of a Hugging Face folder: classes of the head; 0: as many as config.json has"},
    {"signature", TY_BIND_STRING, TOP(signature),
     .help = "of a TensorFlow model: what is applied and evaluated; left out: its default"},
    {"layers", TY_BIND_STRING, TOP(layers),
     .help = "C source of layers whose classes a Keras file names, relative to the recipe"},
    {"train_signature", TY_BIND_STRING, TOP(train_signature),
     .help = "of a TensorFlow model: its own training step; of TensorFlow 1 \"TRAIN_OP, LOSS\". loss is of evaluation "
             "then"},
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
    {"early_stopping", TY_BIND_NODE, TOP(early_stopping), .form = "a map",
     .help = "{patience: 3}: so many evaluations without a better one end the run; left out: none do"},
    {"export", TY_BIND_NODE, TOP(written), .form = "a map",
     .help = "{weights: best}: whose weights are written, and what beside the model: see below"},
    {"lora", TY_BIND_NODE, TOP(lora), .form = "a map",
     .help = "{rank: 8, weights: [\"*.q_proj.*\"]}: low-rank adapters of matrices are trained in place of all weights"},
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
    {"update_every", TY_BIND_INT, TOP(update_every), "1", .min = 1, .max = 1 << 20,
     .help = "steps between updates, of the mean of their gradients; schedules count all (Keras' accumulation)"},
    {"unmerged_rows", TY_BIND_BOOL, TOP(unmerged_rows), "false",
     .help = "squares and norms of a table's gradient are those of single look-ups, as in Keras"},
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
    {"data_threads", TY_BIND_NODE, TOP(data_threads), "auto", .form = "auto, or an integer from 1 to 64",
     .help = "threads that decode batches; auto: as many as help, by who waits for whom"},
    {"data_memory", TY_BIND_NODE, TOP(data_memory), .form = "text",
     .help = "\"512 MiB\": what the input may take: batches made ahead, half of it a stream's shuffle buffer; else a "
             "tenth of memory"},
    {"deterministic", TY_BIND_CHOICE, TOP(deterministic), "default", .choices = determinism,
     .help = "default: same bits run to run; strict: also for any number of threads"},
    {"precision", TY_BIND_CHOICE, TOP(precision), "float32", .choices = precisions,
     .help = "of products, convolutions and attention, all else float32; float16 has a loss scale"},
    {"keep_float32", TY_BIND_NODE, TOP(keep_float32), .form = "a list",
     .help = "list of layers (names or shell patterns) whose products stay float32, or of operations in all: "
             "[\"*lm_head*\", \"op:attention\"]"},
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

static const char *const index_bases[] = {"auto", "zero", "one", NULL}; /* ty_index_base */
static const char *const remainders[] = {"drop", "pad", "join", NULL};  /* ty_remainder */
static const char *const on_bad[] = {"error", "skip", NULL};
static const char *const headers[] = {"auto", "yes", "no", NULL};
static const char *const accesses[] = {"auto", "random", "stream", NULL};          /* ty_access */
static const char *const shard_rules[] = {"auto", "file", "record", "none", NULL}; /* ty_part_rule */

static const char *const starts[] = {"strided", "random", NULL};
static const char *const symbols[] = {"characters", "bytes", NULL}; /* ty_symbols */
static const char *const token_types[] = {"uint16", "uint32", NULL};

#define DATA(name) offsetof(recipe_data, name)
static const ty_bind_row data_rows[] = {
    {"channel", TY_BIND_STRING, DATA(channel), .help = "input channel; left out: the name of the section"},
    {"path", TY_BIND_STRING, DATA(path), .help = "file or folder, relative to the recipe, in place of a channel"},
    {"files", TY_BIND_STRING, DATA(pattern), .help = "take only files that match this shell pattern"},
    {"format", TY_BIND_STRING, DATA(format),
     .help = "csv, npy, npz, idx, tfrecord, recordio, mxnet, libsvm, jsonlines, text, lines, tokens or images; left "
             "out: found"},
    {"header", TY_BIND_CHOICE, DATA(header), "auto", .choices = headers,
     .help = "csv: whether the first line names the columns"},
    {"delimiter", TY_BIND_STRING, DATA(delimiter), .help = "csv: one character; left out: found in the first line"},
    {"missing_values", TY_BIND_NODE, DATA(missing_values), .form = "a list of texts and numbers",
     .help = "csv: what says that there is no value; left out: nothing, NA, N/A, null, None and ?, in any case"},
    {"access", TY_BIND_CHOICE, DATA(access), "auto", .choices = accesses,
     .help = "samples by number, or as they come; auto: so in Pipe mode, records in FastFile mode, very large files"},
    {"shuffle", TY_BIND_NODE, DATA(shuffle), .form = "true, false or an integer",
     .help = "train: a new order in every epoch (default true); N: of a stream, from a buffer of N; validation: never"},
    {"samples", TY_BIND_INT, DATA(samples), "0", .min = 0, .max = 1e15,
     .help = "of an epoch of a stream, whose length is not known: for schedules that depend on it"},
    {"shard", TY_BIND_CHOICE, DATA(shard), "auto", .choices = shard_rules,
     .help = "a stream on several ranks: each takes files or records of its own, or (none) all that it reads"},
    {"pipe_timeout", TY_BIND_INT, DATA(pipe_timeout), "120", .min = 1, .max = 1e6,
     .help = "Pipe mode: seconds that the next epoch's FIFO, or its next bytes, may take"},
    {"split", TY_BIND_FLOAT, DATA(split), "0", .max = 0.9,
     .help = "validation: this share of the training samples, drawn by the seed and not trained on; 0: none"},
    {"length_buckets", TY_BIND_NODE, DATA(length_buckets), .form = "auto, or a list of integers",
     .help = "train: rows filled up to max_length are cut to these lengths, by batches of samples about as long"},
    {"attributes", TY_BIND_NODE, DATA(attributes), .form = "a list of names",
     .help = "augmented manifest in Pipe mode: its attributes, in the order in which the job lists them"},
    {"remainder", TY_BIND_CHOICE, DATA(remainder), "drop", .choices = remainders,
     .help = "train: samples that fill no batch: left out, filled up with others, or with rows that do not count"},
    {"index_base", TY_BIND_CHOICE, DATA(index_base), "auto", .choices = index_bases,
     .help = "libsvm: the first index; auto: one if no index 0 occurs in the training data"},
    {"strict", TY_BIND_BOOL, DATA(strict), "true",
     .help =
         "libsvm: an index without a value, or twice on a line, is refused; false: it counts 1, the last one counts"},
    {"blank_lines", TY_BIND_BOOL, DATA(blank_lines), "false",
     .help = "lines: blank ones are samples too, of an empty text; false: they are left out"},
    {"on_bad", TY_BIND_CHOICE, DATA(on_bad), "error", .choices = on_bad,
     .help = "records that are damaged or do not fit their fields: refused, or left out, counted and named"},
    {"max_bad", TY_BIND_INT, DATA(max_bad), "100", .min = 1, .max = 1e15,
     .help = "on_bad: skip: how many of one pass may be left out, in all and so in a row"},
    {"keep_index", TY_BIND_BOOL, DATA(keep_index), "true",
     .help = "records by number: what opening them finds is kept in the cache, and used while the files stay the same"},
    {"window", TY_BIND_INT, DATA(window), .min = 1, .max = 1 << 26,
     .help = "text, tokens: a sample is so many tokens in a row, `inputs`, and those one further on, `targets`"},
    {"stride", TY_BIND_INT, DATA(stride), .min = 1, .max = 1e15,
     .help = "window: tokens from one to the next; left out: as many as it has"},
    {"starts", TY_BIND_CHOICE, DATA(starts), "strided", .choices = starts,
     .help = "window: where it begins in training: every `stride` tokens, or anywhere, as often"},
    {"symbols", TY_BIND_CHOICE, DATA(symbols), "characters", .choices = symbols,
     .help = "text without a tokenizer: what a token is; characters are numbered in their order"},
    {"tokenizer", TY_BIND_STRING, DATA(tokenizer),
     .help = "text: a tokenizer.json, relative to the recipe; tokens: whose last token none may be beyond"},
    {"end_token", TY_BIND_STRING, DATA(end_token), .help = "text: the token that follows each file: <|endoftext|>"},
    {"token_type", TY_BIND_CHOICE, DATA(token_type), "uint16", .choices = token_types,
     .help = "tokens: how wide they are in files without a header (.bin)"},
    {"target", TY_BIND_STRING, DATA(target),
     .help = "of outputs: a field, or with no fields a column's name or number (-1: the last); left out: found, or a "
             "table's first"},
    {"preprocessing", TY_BIND_STRING, DATA(preprocessing),
     .help = "train: preprocessing.json of a trained model: what transforms have learnt; left out: they learn it of "
             "these data"},
    {"fields", TY_BIND_NODE, DATA(fields), .form = "a map, a list or same",
     .help = "{name: {...}}, or a list of names; validation: `same` as train (default)"},
};

#define FIELD(name) offsetof(recipe_field, name)
static const char *const sides[] = {"right", "left", NULL};
static const ty_bind_row field_rows[] = {
    {"columns", TY_BIND_NODE, FIELD(columns), .form = "an integer or text",
     .help = "csv: 0-63, 64, \"0-3,7\", -1 or names of the header"},
    {"member", TY_BIND_STRING, FIELD(member),
     .help = "npz: name of the array; tfrecord, recordio, libsvm, jsonlines: of what a record has; left out: the "
             "field's name"},
    {"file", TY_BIND_STRING, FIELD(file), .help = "npy, idx: shell pattern of its files; left out: <field>*"},
    {"type", TY_BIND_STRING, FIELD(type), .help = "float32, int64 ...; left out: float32 for csv, else as stored"},
    {"shape", TY_BIND_NODE, FIELD(shape), .form = "a list of integers",
     .help = "of one sample, without the batch: [1, 8, 8]; []: a number"},
    {"scale", TY_BIND_FLOAT, FIELD(scale), "1", .help = "stored value * scale + offset"},
    {"offset", TY_BIND_FLOAT, FIELD(offset), "0", .help = "see scale"},
    {"missing", TY_BIND_NODE, FIELD(missing), .form = "a number or text",
     .help = "value of an empty csv field or absent feature; mean, median, most_frequent; of texts: a text; left out: "
             "refused"},
    {"max_length", TY_BIND_INT, FIELD(max_length), "0", .max = 1 << 26,
     .help = "records: lists of any length get this one, filled up with `missing` (or 0) or cut; 0: all have one"},
    {"pad", TY_BIND_NODE, FIELD(pad), .form = "a number", .help = "what max_length fills up with; left out: 0"},
    {"side", TY_BIND_CHOICE, FIELD(side), "right", .choices = sides, .help = "where max_length fills up and cuts"},
    {"split", TY_BIND_STRING, FIELD(split), .help = "a character that cuts a text into several: \"|\""},
    {"clip", TY_BIND_NODE, FIELD(clip), .form = "a list of two numbers",
     .help = "[low, high], behind scale and offset"},
    {"log1p", TY_BIND_BOOL, FIELD(log1p), "false", .help = "ln(1 + value), behind clip"},
    {"normalize", TY_BIND_NODE, FIELD(normalize), .form = "text or a map",
     .help = "standard: (v - mean) / deviation; minmax: to 0 .. 1; of the training data; or {mean: M, std: S}"},
    {"buckets", TY_BIND_NODE, FIELD(buckets), .form = "a list or a map",
     .help = "rising boundaries, id i is below boundary i; or {quantiles: N}"},
    {"vocabulary", TY_BIND_NODE, FIELD(vocabulary), .form = "text or a list",
     .help = "ids of texts: auto: most frequent first; a list; a file with a word a line. Ids below `oov` are other "
             "words'"},
    {"max_size", TY_BIND_INT, FIELD(max_size), "0", .max = 1 << 24, .help = "vocabulary: auto: words at most; 0: all"},
    {"min_count", TY_BIND_INT, FIELD(min_count), "0", .max = 1e15,
     .help = "vocabulary: auto: how often a word is there at least"},
    {"oov", TY_BIND_INT, FIELD(oov), "1", .max = 1 << 24,
     .help = "vocabulary: ids for other words, which several share by hash; 0: other words are refused"},
    {"classes", TY_BIND_NODE, FIELD(classes), .form = "text or a list",
     .help = "labels as 0 .. n-1: auto: in alphabetical order; or a list; other labels are refused"},
    {"hash", TY_BIND_INT, FIELD(hash), "0", .max = 9e18,
     .help = "ids of texts or integers: FarmHash's Fingerprint64 modulo N, as Keras' Hashing; with cross: of its ids"},
    {"cross", TY_BIND_NODE, FIELD(cross), .form = "a list of fields", .help = "one id for the ids of all, by hash: N"},
    {"tokenizer", TY_BIND_STRING, FIELD(tokenizer),
     .help = "a tokenizer.json, relative to the recipe: the ids of a text, max_length of them"},
    {"tokens", TY_BIND_CHOICE, FIELD(tokens), "ids", .choices = ty_token_parts,
     .help = "tokenizer: ids, or what goes with them"},
    {"pair", TY_BIND_NODE, FIELD(pair), .form = "an integer or text",
     .help = "tokenizer: member or column of a second text, which stands behind the first in the same row"},
    {"words", TY_BIND_NODE, FIELD(words), .form = "an integer or text",
     .help = "tokens: tags: member or columns of the words that have them; a tag is the label of its word's first id"},
    {"answer", TY_BIND_NODE, FIELD(answer), .form = "an integer or text",
     .help = "tokens: answer_start, answer_end: member or column of the piece of the pair's second text that is meant"},
    {"answer_start", TY_BIND_NODE, FIELD(answer_start), .form = "an integer or text",
     .help = "answer: member or column that says at which character it begins; left out: where it is found first"},
    {"hidden", TY_BIND_FLOAT, FIELD(hidden), "0.15", .max = 1,
     .help = "tokens: masked, hidden: how likely each id is hidden, another choice in each epoch"},
    {"start", TY_BIND_NODE, FIELD(start), .form = "an integer",
     .help = "tokens: previous: the id in front of the first; left out: the one that fills rows up"},
    {"one_hot", TY_BIND_NODE, FIELD(one_hot), .form = "an integer or auto",
     .help = "an id becomes N numbers, one of which is 1; auto: as many as there are ids"},
    {"multi_hot", TY_BIND_NODE, FIELD(multi_hot), .form = "an integer or auto",
     .help = "as one_hot, with all ids of a sample in one row"},
    {"image", TY_BIND_NODE, FIELD(image), .form = "a map",
     .help = "the stored bytes are a picture: see fields.NAME.image"},
    {"audio", TY_BIND_NODE, FIELD(audio), .form = "a map",
     .help = "the stored bytes are a sound: see fields.NAME.audio"},
};

#define IMAGE(name) offsetof(recipe_image, name)
static const char *const filters[] = {"bilinear", "bicubic", "lanczos", "box", "nearest", NULL};
static const char *const crops[] = {"center", "random", "random_resized", NULL};
static const char *const flips[] = {"none", "horizontal", "vertical", "both", NULL};
static const char *const layouts[] = {"chw", "hwc", NULL};
static const ty_bind_row image_rows[] = {
    {"size", TY_BIND_NODE, IMAGE(size), .form = "a list of two integers",
     .help = "[HEIGHT, WIDTH] of a row; left out: as the first picture, which all are like"},
    {"channels", TY_BIND_INT, IMAGE(channels), "0", .max = 4,
     .help = "1 (grey), 2 (with alpha), 3 (RGB) or 4; 0: as the first picture"},
    {"resize", TY_BIND_NODE, IMAGE(resize), .form = "an integer or text",
     .help = "stretch (default) to size; N: the shorter side becomes that; cover, contain: around or within size; "
             "none"},
    {"filter", TY_BIND_CHOICE, IMAGE(filter), "bilinear", .choices = filters, .help = "of resizing, antialiased"},
    {"crop", TY_BIND_CHOICE, IMAGE(crop), "center", .choices = crops,
     .help = "which part becomes the row; what is random is so in training only, else center"},
    {"pad", TY_BIND_INT, IMAGE(pad), "0", .max = 16384, .help = "zeros around the picture that crop: random may show"},
    {"area", TY_BIND_NODE, IMAGE(area), .form = "a list of two numbers",
     .help = "crop: random_resized: share of the picture; left out: [0.08, 1]"},
    {"ratio", TY_BIND_NODE, IMAGE(ratio), .form = "a list of two numbers",
     .help = "crop: random_resized: width over height; left out: [0.75, 1.3333]"},
    {"jitter", TY_BIND_NODE, IMAGE(jitter), .form = "a map",
     .help = "{brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}: changes of colour, in training only"},
    {"grayscale", TY_BIND_FLOAT, IMAGE(grayscale), "0", .max = 1,
     .help = "share of pictures without colours, likewise"},
    {"rotate", TY_BIND_FLOAT, IMAGE(rotate), "0", .max = 180,
     .help = "degrees, at most, by which pictures are turned about their centre, likewise"},
    {"erase", TY_BIND_FLOAT, IMAGE(erase), "0", .max = 1,
     .help = "share of pictures of which a rectangle becomes 0, behind mean and std, likewise"},
    {"flip", TY_BIND_CHOICE, IMAGE(flip), "none", .choices = flips, .help = "half of the pictures, in training only"},
    {"scale", TY_BIND_NODE, IMAGE(scale), .form = "a number",
     .help = "value = (sample * scale - mean) / std, sample 0 to 255; left out: 1/255"},
    {"mean", TY_BIND_NODE, IMAGE(mean), .form = "a number, a list or auto",
     .help = "one, or one a channel; auto: of the training data"},
    {"std", TY_BIND_NODE, IMAGE(std), .form = "a number, a list or auto", .help = "as mean"},
    {"layout", TY_BIND_CHOICE, IMAGE(layout), "chw", .choices = layouts, .help = "which axis comes first"},
    {"mix", TY_BIND_NODE, IMAGE(mix), .form = "a map",
     .help = "{mixup: ALPHA} or {cutmix: ALPHA}: with another picture and its label, in training only"},
    {"reducing_gap", TY_BIND_FLOAT, IMAGE(reducing_gap), "2", .max = 64,
     .help = "a JPEG is decoded smaller where that leaves so many times the pixels wanted; 0: never"},
    {"max_pixels", TY_BIND_INT, IMAGE(max_pixels), "100000000", .min = 1, .max = 4e9,
     .help = "bigger pictures are refused before memory is taken"},
};

#define AUDIO(name) offsetof(recipe_audio, name)
static const char *const audio_crops[] = {"start", "center", "random", NULL}; /* as ty_audio_crop */
static const char *const audio_pads[] = {"end", "center", "start", NULL};     /* as ty_audio_pad */
static const char *const audio_norms[] = {"none", "standard", "peak", NULL};  /* as ty_audio_normalize */
static const char *const audio_layouts[] = {"auto", "t", "ct", "tc", NULL};   /* as ty_audio_layout */
static const ty_bind_row audio_rows[] = {
    {"sample_rate", TY_BIND_INT, AUDIO(sample_rate), "0", .max = TY_AUDIO_MAX_RATE,
     .help = "frames a second, to which sounds of other rates are brought; 0: as the first sound, which all are like"},
    {"length", TY_BIND_INT, AUDIO(length), "0", .max = (double)TY_AUDIO_MAX_SAMPLES,
     .help = "frames of a row; 0: seconds, or as the first sound, which all are like"},
    {"seconds", TY_BIND_FLOAT, AUDIO(seconds), "0", .max = 1e6, .help = "the same as a time"},
    {"channels", TY_BIND_INT, AUDIO(channels), "0", .max = TY_AUDIO_MAX_CHANNELS,
     .help = "1: their mean, or as many as all sounds have; 0: as the first sound"},
    {"crop", TY_BIND_CHOICE, AUDIO(crop), "start", .choices = audio_crops,
     .help = "which part of a longer sound; what is random is so in training only, else center"},
    {"pad", TY_BIND_CHOICE, AUDIO(pad), "end", .choices = audio_pads,
     .help = "where a shorter sound gets its zeros; center: half in front, half behind"},
    {"normalize", TY_BIND_CHOICE, AUDIO(normalize), "none", .choices = audio_norms,
     .help = "each sound: standard: mean 0 and variance 1, as wav2vec 2.0; peak: the loudest sample is 1"},
    {"gain", TY_BIND_NODE, AUDIO(gain), .form = "a list of two numbers",
     .help = "decibels, drawn evenly from between them, in training only; left out: [0, 0]"},
    {"scale", TY_BIND_FLOAT, AUDIO(scale), "1", .min = -1e9, .max = 1e9,
     .help = "of samples, which are -1 to 1; 32768: as 16-bit integers are"},
    {"layout", TY_BIND_CHOICE, AUDIO(layout), "auto", .choices = audio_layouts,
     .help = "axes of a row, time and channels; auto: t for one channel, else ct"},
    {"max_seconds", TY_BIND_FLOAT, AUDIO(max_seconds), "7200", .max = 1e6,
     .help = "longer sounds are refused before memory is taken"},
};

static const ty_bind_row warmup_rows[] = {
    {"steps", TY_BIND_NODE, offsetof(recipe_warmup, steps), .required = true, .form = "an integer or text",
     .help = "steps, or \"N epochs\", of rising to the schedule's first rate"},
    {"start_factor", TY_BIND_FLOAT, offsetof(recipe_warmup, start_factor), "0", .max = 1,
     .help = "where it starts, as a part of that rate"},
};
static const char *const ema_uses[] = {"false", "true", "at_end", NULL}; /* as ty_recipe_ema_use */
static const ty_bind_row ema_rows[] = {
    {"decay", TY_BIND_FLOAT, offsetof(recipe_ema, decay), "0.999", .max = 0.999999999, .above_min = true,
     .help = "share of the old average in the new one"},
    {"use_ema", TY_BIND_CHOICE, offsetof(recipe_ema, use_ema), "false", .choices = ema_uses,
     .help = "true: evaluate the averages, and write them as the trained model; at_end: only write them"},
    {"overwrite_every", TY_BIND_INT, offsetof(recipe_ema, overwrite_every), "0", .min = 0, .max = 1e12,
     .help = "updates after which the weights become their averages, again and again; 0: never"},
};

static const ty_bind_row clip_rows[] = {
    {"max", TY_BIND_FLOAT, offsetof(recipe_clip, max), .required = true, .max = 1e30, .above_min = true,
     .help = "the limit"},
};
static const recipe_kind clips[] = {
    KIND("global_norm", TY_CLIP_GLOBAL_NORM, clip_rows, "scale all gradients so that their norm is at most max"),
    KIND("norm", TY_CLIP_NORM, clip_rows, "scale each tensor's gradient so that its norm is at most max"),
    KIND("value", TY_CLIP_VALUE, clip_rows, "cut each element to [-max, max]"),
    KIND("keras_global_norm", TY_CLIP_KERAS_GLOBAL_NORM, clip_rows, "global_norm without PyTorch's 1e-6"),
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
static const ty_bind_row accuracy_rows[] = {
    METRIC_COMMON,
    {"threshold", TY_BIND_FLOAT, METRIC(threshold), "0",
     .help = "outputs of one number: above it is yes; 0 fits logits, 0.5 probabilities"},
};
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
    KIND("accuracy", TY_METRIC_ACCURACY, accuracy_rows, "share of rows whose largest logit is the label's"),
    KIND("top_k", TY_METRIC_TOP_K, top_k_rows, "share of rows whose label is among the k largest logits"),
    KIND("precision", TY_METRIC_PRECISION, confusion_rows, "share of what is said to be that is"),
    KIND("recall", TY_METRIC_RECALL, confusion_rows, "share of what is that is said to be"),
    KIND("f1", TY_METRIC_F1, confusion_rows, "harmonic mean of precision and recall"),
    KIND("auc", TY_METRIC_AUC, metric_rows, "area under the ROC curve, of one logit or two classes"),
    KIND("average_precision", TY_METRIC_AVERAGE_PRECISION, metric_rows,
         "area under precision over recall, of one logit or two classes"),
    KIND("iou", TY_METRIC_IOU, confusion_rows, "intersection over union of what is said to be and what is"),
    KIND("perplexity", TY_METRIC_PERPLEXITY, metric_rows, "exp of the mean cross entropy"),
    KIND("mae", TY_METRIC_MAE, metric_rows, "mean absolute error"),
    KIND("mse", TY_METRIC_MSE, metric_rows, "mean squared error"),
    KIND("rmse", TY_METRIC_RMSE, metric_rows, "its root"),
    KIND("mape", TY_METRIC_MAPE, metric_rows, "mean absolute error as a share of the target"),
    KIND("r2", TY_METRIC_R2, metric_rows, "share of the targets' variance that is explained"),
};

static const char *const checkpoint_policies[] = {"warn", "stop", NULL};
#define JITTER(i) offsetof(recipe_jitter, amount) + (i) * sizeof(double)
static const ty_bind_row jitter_rows[] = {
    {"brightness", TY_BIND_FLOAT, JITTER(TY_JITTER_BRIGHTNESS), "0", .max = 100,
     .help = "b: samples times a number from 1 - b to 1 + b"},
    {"contrast", TY_BIND_FLOAT, JITTER(TY_JITTER_CONTRAST), "0", .max = 100, .help = "likewise, away from their mean"},
    {"saturation", TY_BIND_FLOAT, JITTER(TY_JITTER_SATURATION), "0", .max = 100, .help = "likewise, away from grey"},
    {"hue", TY_BIND_FLOAT, JITTER(TY_JITTER_HUE), "0", .max = 0.5, .help = "h: -h to h turns of the circle of hues"},
};

static const ty_bind_row lora_rows[] = {
    {"rank", TY_BIND_INT, offsetof(recipe_lora, rank), .required = true, .min = 1, .max = 4096,
     .help = "columns of the one factor of a matrix, rows of the other"},
    {"alpha", TY_BIND_NODE, offsetof(recipe_lora, alpha), .form = "a number",
     .help = "the factors' product counts alpha / rank times; left out: rank, which is once"},
    {"weights", TY_BIND_NODE, offsetof(recipe_lora, weights), .required = true, .form = "a list",
     .help = "list of matrices that have adapters (names or shell patterns)"},
    {"train", TY_BIND_NODE, offsetof(recipe_lora, train), .form = "a list",
     .help = "list of weights that are trained themselves, such as a new head; all others stay as they are"},
};

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

static const char *const watch_modes[] = {"auto", "min", "max", NULL}; /* as TY_WATCH_... */
#define EARLY(name) offsetof(recipe_early, name)
static const ty_bind_row early_rows[] = {
    {"patience", TY_BIND_INT, EARLY(patience), .required = true, .min = 1, .max = 1e9,
     .help = "evaluations in a row without a better value"},
    {"metric", TY_BIND_STRING, EARLY(metric),
     .help = "name of a metric, or loss; left out: the first of metrics, else the loss on data.validation"},
    {"mode", TY_BIND_CHOICE, EARLY(mode), "auto", .choices = watch_modes,
     .help = "min: lower is better; auto: max for accuracy and the like"},
    {"min_delta", TY_BIND_FLOAT, EARLY(min_delta), "0", .max = 1e30,
     .help = "a value must be better by more than this"},
    {"start_from", TY_BIND_NODE, EARLY(start_from), .form = "text",
     .help = "\"2 epochs\" or \"500 steps\": evaluations up to there count neither as better nor as worse"},
};

static const char *const written_weights[] = {"auto", "last", "best", NULL}; /* as TY_WEIGHTS_... */
static const ty_bind_row export_rows[] = {
    {"weights", TY_BIND_CHOICE, offsetof(recipe_export, weights), "auto", .choices = written_weights,
     .help = "of the last step, or the best evaluation, whose checkpoint stays; auto: best with early_stopping"},
    {"preprocessing", TY_BIND_BOOL, offsetof(recipe_export, preprocessing), "false",
     .help = "model_with_preprocessing.onnx, too: an ONNX model that takes raw numbers and texts"},
    {"adapter", TY_BIND_BOOL, offsetof(recipe_export, adapter), "false",
     .help = "of lora on a Hugging Face folder: adapter/, too, which PEFT opens"},
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
SECTION(ty_recipe_image_section, "data.train.fields.NAME.image", "how pictures become rows", image_rows);
SECTION(ty_recipe_jitter_section, "data.train.fields.NAME.image.jitter", "changes of colour", jitter_rows);
SECTION(ty_recipe_audio_section, "data.train.fields.NAME.audio", "how sounds become rows", audio_rows);
SECTION(ty_recipe_warmup_section, "warmup", "a rise in front of the schedule", warmup_rows);
SECTION(ty_recipe_ema_section, "ema", "averages of the trained weights", ema_rows);
SECTION(ty_recipe_distributed_section, "distributed", "several ranks that train together", distributed_rows);
SECTION(ty_recipe_checkpoint_section, "checkpoint", "saving the state of the run", checkpoint_rows);
SECTION(ty_recipe_lora_section, "lora", "low-rank adapters", lora_rows);
SECTION(ty_recipe_early_section, "early_stopping", "evaluations that end the run", early_rows);
SECTION(ty_recipe_export_section, "export", "what is written as the model, and beside it", export_rows);

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
    {"target", "data.train.target"},
    {"num_threads", "threads"},
    {"validation_split", "data.validation.split"},
    {"early_stopping_patience", "early_stopping.patience"},
};
const size_t ty_recipe_n_aliases = N(ty_recipe_aliases);
