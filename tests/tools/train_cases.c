/* train_cases.c - trains every case of a folder like shared/data/train-cases and compares with what PyTorch got.
 *
 *     train_cases [-v] [--interpreter | --grid | --gpu] [--threads N] [--dump DIR] [--cuda DIR] [--replicas N]
 *                 [--gpus N [--cross-device HOW] [--wire f16|bf16]] [--ranks N] [--shard] [--strict] [--bucket BYTES]
 *                 DIR [NAME...]
 *
 * With --replicas N the step is one that N replicas share, of which one is run and speaks for all: each has the case's
 * batch, so that all numbers are the case's. With --gpu what nothing computes on a GPU is left out.
 * With --gpus N the batch is divided among so many GPUs, which must end with the same bits; with --ranks N among so
 * many CPU programs, each on a thread of its own, which exchange by the memory of this process; with --shard each of
 * them has moments of its own part of the weights. --strict is `deterministic: strict`. With --cuda nothing is trained:
 * kernels are left in a folder as CUDA C (ty_compile_options.cuda_dir).
 *
 * A case is a folder with recipe.yaml, model.onnx, batches, expected.json and final.npz; the README beside them says
 * what all of it means. Each case runs in a process of its own, so that a crash is one failed case. What a deviation
 * may be is said in expected.json; the share of it that was used up is printed.
 */
#include "base/file.h"
#include "base/yaml.h"
#include "compiler/compiler.h"
#include "container/input/npy.h"
#include "base/zip.h"
#include "tests/tools/train_case.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LR_TOLERANCE  1e-6
#define CASE_SECONDS  300
#define MAX_NPZ_BYTES ((size_t)64 << 20)

/* ---- comparing ------------------------------------------------------------------------------------------------------
 */

static void complain(test_case *c, const char *fmt, ...) TY_PRINTF(2, 3);
static void complain(test_case *c, const char *fmt, ...)
{
    va_list args;
    if (++c->n_faults > 8 && !c->set.verbose)
        return;
    va_start(args, fmt);
    printf("  ");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

/* allowed: absolute. */
static void compare(test_case *c, int kind, double got, double want, double allowed, const char *fmt, ...)
    TY_PRINTF(6, 7);
static void compare(test_case *c, int kind, double got, double want, double allowed, const char *fmt, ...)
{
    double share = fabs(got - want) / allowed;
    if (!(share <= c->worst[kind]))
        c->worst[kind] = isnan(share) ? INFINITY : share;
    if (share <= 1 && !c->set.verbose)
        return;
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (!(share <= 1))
        complain(c, "%s: expected %.9g, found %.9g: %.3g times what is allowed", what, want, got, share);
    else if (kind != WORST_WEIGHT)
        printf("  %s: %.9g, found %.9g\n", what, want, got);
}

static double expected_at(const test_case *c, const char *key, int64_t i)
{
    const ty_doc *d = ty_doc_at(ty_doc_find(c->expected, key), (size_t)i);
    return !d ? NAN : d->kind == TY_DOC_INT ? (double)d->integer : d->number;
}

/* In mixed precision the curve of losses may be off by `within` on average, the evaluation at the end by twice, and a
 * single loss by three times as much: with small batches it is rounding itself that moves a single one (resnet_basic in
 * float16: 1.7 to 2.1 % off, by the number of threads alone). Gradients and weights are not looked at. */
#define WITHIN_EVALUATION 2
#define WITHIN_STEP       3

static double tolerance(const test_case *c, const char *key)
{
    if (c->set.precision != TY_PRECISION_FLOAT32)
        return c->set.within * (strncmp(key, "eval", 4) == 0 ? WITHIN_EVALUATION : WITHIN_STEP);
    return number(ty_doc_find(c->expected, "tolerance"), key, 1e-5);
}

/* ---- running --------------------------------------------------------------------------------------------------------
 */

/* Of a batch, whatever part of it a GPU gets. */
static size_t all_bytes(const test_case *c, int input)
{
    const ty_type *stack = &c->stack[input].type;
    return stack->dim[0] ? ty_type_bytes(stack) / (size_t)stack->dim[0] : 0;
}

/* The rows of a batch, those of rank 0 first. */
static void run_ranks(test_case *c, ty_run tape, const void *const *inputs)
{
    const void *part[EXCHANGE_MAX_REPLICAS][MAX_INPUTS];
    exchange_run runs[EXCHANGE_MAX_REPLICAS] = {0};
    for (int r = 0; r < c->set.n_ranks; r++) {
        for (int i = 0; i < c->spec.n_inputs; i++)
            part[r][i] = (const char *)inputs[i] + (size_t)r * ty_type_bytes(&c->binding[i].type);
        runs[r] = (exchange_run){.program = c->rank[r], .run = tape, .inputs = part[r]};
    }
    const exchange_run *bad = exchange_run_all(runs, c->set.n_ranks);
    if (bad)
        die("run", &bad->err);
}

static void run(test_case *c, ty_run tape, int64_t batch)
{
    const void *inputs[MAX_INPUTS];
    ty_error err;
    for (int i = 0; i < c->spec.n_inputs; i++)
        inputs[i] = (const char *)c->stack[i].data + (size_t)batch * all_bytes(c, i);
    if (c->set.n_ranks > 1) {
        run_ranks(c, tape, inputs);
        return;
    }
    if (ty_program_run(c->program, tape, inputs, &err) < 0) {
        ty_program_free(c->program);
        die("run", &err);
    }
}

static double result(const test_case *c, ty_run tape, const char *name)
{
    const ty_tensor *t = ty_program_output(c->program, tape, name);
    if (!t || t->type.dtype != TY_F32 || t->type.rank != 0) {
        ty_error err;
        ty_error_set(&err, TY_E_INTERNAL, "expected an output \"%s\" f32[]", name);
        die("outputs", &err);
    }
    return (double)*(const float *)t->data;
}

static void evaluate(test_case *c, int64_t batch, const char *key)
{
    run(c, TY_RUN_EVAL, batch);
    double got = result(c, TY_RUN_EVAL, "loss.sum") / result(c, TY_RUN_EVAL, "loss.count");
    double want = number(c->expected, key, NAN);
    compare(c, WORST_EVAL, got, want, tolerance(c, key) * fabs(want), "%s", key);
}

static void train(test_case *c)
{
    int64_t per_step = c->spec.accumulate;
    double off = 0; /* sum over the steps, relative */
    for (int64_t t = 0; t < c->steps; t++) {
        double loss = 0;
        for (int64_t m = 0; m < per_step; m++) {
            ty_run tape = m == per_step - 1 ? TY_RUN_LAST : TY_RUN_MICRO;
            run(c, tape, (t * per_step + m) % c->n_batches);
            loss += result(c, tape, "loss") / (double)per_step;
        }
        double want = expected_at(c, "losses", t), rate = expected_at(c, "lr", t),
               norm = expected_at(c, "grad_norm", t);
        compare(c, WORST_LOSS, loss, want, tolerance(c, t ? "losses" : "first_loss") * fabs(want),
                "loss of step %" PRId64, t);
        off += fabs(loss - want) / fabs(want);
        compare(c, WORST_LR, result(c, TY_RUN_LAST, "lr"), rate, LR_TOLERANCE * fabs(rate) + 1e-30,
                "rate of step %" PRId64, t);
        if (c->set.precision == TY_PRECISION_FLOAT32)
            compare(c, WORST_NORM, result(c, TY_RUN_LAST, "grad_norm"), norm, tolerance(c, "grad_norm") * fabs(norm),
                    "gradient of step %" PRId64, t);
    }
    if (c->set.precision != TY_PRECISION_FLOAT32)
        compare(c, WORST_LOSS, off / (double)c->steps, 0, c->set.within, "losses, off on average");
}

/* ---- weights at the end ---------------------------------------------------------------------------------------------
 */

/* What the program holds under that name of the file, or the file's own bytes. */
static const float *present_bytes(const test_case *c, const ty_model_value *w)
{
    for (int i = 0; i < ty_program_n_tensors(c->program); i++) {
        const char *name;
        bool trained;
        ty_tensor t = ty_program_tensor(c->program, i, &name, &trained);
        if (strcmp(name, w->name) == 0)
            return t.data;
    }
    return w->data;
}

static bool is_undetermined(const test_case *c, const char *name, int64_t at)
{
    const ty_doc *ranges = ty_doc_find(ty_doc_find(c->expected, "undetermined"), name);
    for (size_t i = 0; i < ty_doc_len(ranges); i++) {
        const ty_doc *r = ty_doc_at(ranges, i);
        if (at >= ty_doc_at(r, 0)->integer && at < ty_doc_at(r, 1)->integer)
            return true;
    }
    return false;
}

static void compare_tensor(test_case *c, const char *name, const ty_array *want, const ty_model_value *w,
                           bool transposed)
{
    int64_t n = (int64_t)(want->n_bytes / sizeof(float)), elems = 1;
    for (int k = 0; k < w->rank; k++)
        elems *= w->dim[k];
    if (elems != n || want->dtype != TY_F32) {
        complain(c, "%s: expected %" PRId64 " elements, found %" PRId64, name, n, elems);
        return;
    }
    double allowed = number(ty_doc_find(ty_doc_find(c->expected, "tolerance"), "weights"), name, 1e-5);
    const char *have = (const char *)present_bytes(c, w);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = transposed ? i % want->dim[1] * want->dim[0] + i / want->dim[1] : i;
        float a, b;
        memcpy(&a, want->data + (size_t)i * sizeof a, sizeof a);
        memcpy(&b, have + (size_t)at * sizeof b, sizeof b);
        if (!is_undetermined(c, name, i))
            compare(c, WORST_WEIGHT, (double)b, (double)a, allowed, "%s[%" PRId64 "]", name, i);
    }
}

/* A name that the file leaves out may be tied to one that it has. */
static const ty_model_value *weight_or_tied(const test_case *c, const char *name, bool *transposed)
{
    const ty_model_value *w = weight_of(c, name, transposed);
    const ty_doc *groups = ty_doc_find(c->recipe, "tied");
    for (size_t i = 0; !w && i < ty_doc_len(groups); i++) {
        const ty_doc *group = ty_doc_at(groups, i);
        bool in = false;
        for (size_t k = 0; k < ty_doc_len(group); k++)
            in = in || strcmp(ty_doc_at(group, k)->string, name) == 0;
        for (size_t k = 0; in && !w && k < ty_doc_len(group); k++)
            w = weight_of(c, ty_doc_at(group, k)->string, transposed);
    }
    return w;
}

static void compare_member(test_case *c, const ty_zip *zip, const ty_zip_entry *entry)
{
    ty_error err;
    const uint8_t *bytes;
    uint8_t *owned;
    ty_array array;
    char *name = ty_arena_strndup(&c->arena, entry->name, entry->name_bytes - strlen(".npy"));
    if (ty_zip_read(zip, entry, MAX_NPZ_BYTES, &bytes, &owned, &err) < 0 ||
        ty_npy_parse(bytes, (size_t)entry->plain_bytes, &array, &err) < 0)
        die("final.npz", &err);
    bool transposed;
    const ty_model_value *w = weight_or_tied(c, name, &transposed);
    if (w)
        compare_tensor(c, name, &array, w, transposed);
    else if (ty_doc_find(ty_doc_find(ty_doc_find(c->expected, "tolerance"), "weights"), name))
        complain(c, "%s: the model has no such weight", name);
    free(owned);
}

static void compare_weights(test_case *c)
{
    ty_error err;
    ty_buf bytes;
    ty_zip zip;
    ty_zip_walk walk = {0};
    ty_zip_entry entry;
    ty_buf_init(&bytes, MAX_NPZ_BYTES);
    if (ty_program_fetch_states(c->program, &err) < 0)
        die("weights", &err);
    if (ty_file_read(path_in(c, "final.npz"), &bytes, &err) < 0 ||
        ty_zip_open((const uint8_t *)bytes.data, bytes.len, &zip, &err) < 0)
        die("final.npz", &err);
    int more;
    while ((more = ty_zip_next(&zip, &walk, &entry, &err)) > 0)
        compare_member(c, &zip, &entry);
    if (more < 0)
        die("final.npz", &err);
    ty_buf_fini(&bytes);
}

/* ---- a case ---------------------------------------------------------------------------------------------------------
 */

static void compile_ranks(test_case *c, const ty_compile_options *given)
{
    ty_error err;
    exchange_group_init(&c->group, c->set.n_ranks);
    for (int r = 0; r < c->set.n_ranks; r++) {
        c->member[r] = (exchange_member){&c->group, r};
        ty_exchange x = exchange_of(&c->member[r]);
        ty_compile_options opt = *given;
        opt.exchange = &x;
        opt.replicas_alike = false;
        if (ty_compile_train(c->model, &c->spec, &opt, &c->rank[r], &err) < 0)
            die("compile", &err);
    }
    c->program = c->rank[0];
    exchange_group_start(&c->group, c->program);
}

static void compile(test_case *c)
{
    static const int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    ty_error err;
    ty_compile_options opt = {.backend = c->set.backend,
                              .threads = c->set.threads,
                              .dump_dir = c->set.dump,
                              .grid = c->set.grid,
                              .tf32 = c->set.tf32,
                              .deterministic_strict = c->set.strict,
                              .cuda_dir = c->set.cuda,
                              .replicas_alike = true,
                              .gpus = c->set.n_gpus ? numbers : NULL,
                              .n_gpus = c->set.n_gpus,
                              .cross_device = c->set.cross_device,
                              .cache_dir = c->set.cache,
                              .plan_only = c->set.cuda};
    if (c->set.n_ranks > 1) {
        compile_ranks(c, &opt);
    } else if (ty_compile_train(c->model, &c->spec, &opt, &c->program, &err) < 0) {
        if (c->set.backend != TY_BACKEND_CUDA || err.code != TY_E_UNSUPPORTED)
            die("compile", &err);
        printf("skip: %s: %s\n", c->folder, err.message);
        fflush(stdout);
        exit(SKIPPED);
    }
    int64_t trained = ty_program_report(c->program)->n_trained;
    if (trained != (int64_t)number(c->expected, "parameters", -1))
        complain(c, "parameters: expected %.0f, found %" PRId64, number(c->expected, "parameters", -1), trained);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All ranks hold the same bits. */
static void compare_ranks(test_case *c)
{
    for (int r = 1; r < c->set.n_ranks; r++) {
        const char *state = exchange_differing_state(c->program, c->rank[r]);
        if (state)
            complain(c, "rank %d: state \"%s\" has other bits than that of rank 0", r, state);
    }
}

/* Trains, and compares all that is recorded. */
static void follow(test_case *c)
{
    evaluate(c, 0, "eval_loss_before");
    train(c);
    evaluate(c, (c->steps * c->spec.accumulate - 1) % c->n_batches, "eval_loss_after");
    if (c->set.precision == TY_PRECISION_FLOAT32)
        compare_weights(c);
    compare_ranks(c);
    ty_error err;
    if (ty_program_check_replicas(c->program, &err) < 0)
        die("replicas", &err);
}

static int run_case(const char *folder, const char *name, const settings *set)
{
    test_case *c = calloc(1, sizeof *c);
    ty_error err;
    c->folder = folder;
    c->set = *set;
    ty_arena_init(&c->arena);
    ty_doc *recipe, *expected;
    if (ty_yaml_read(&c->arena, path_in(c, "recipe.yaml"), NULL, NULL, NULL, &recipe, &err) < 0 ||
        ty_json_read(&c->arena, path_in(c, "expected.json"), NULL, &expected, &err) < 0 ||
        ty_model_open(path_in(c, text(recipe, "model") ? text(recipe, "model") : "model.onnx"), &c->model, &err) < 0)
        die(name, &err);
    c->recipe = recipe;
    c->expected = expected;
    double start = seconds_now();
    read_spec(c);
    compile(c);
    double compiled = seconds_now();
    if (!set->cuda)
        follow(c);
    printf("%-6s %-26s of tolerance: loss %3.0f%%, gradient %3.0f%%, evaluation %3.0f%%, weights %3.0f%%;  "
           "compile %.2f s, run %.2f s\n",
           c->n_faults ? "FAILED" : "ok", name, 100 * c->worst[WORST_LOSS], 100 * c->worst[WORST_NORM],
           100 * c->worst[WORST_EVAL], 100 * c->worst[WORST_WEIGHT], compiled - start, seconds_now() - compiled);
    if (c->n_faults > 8 && !set->verbose)
        printf("  %d deviations in all\n", c->n_faults);
    int failed = c->n_faults != 0;
    ty_program_free(c->program);
    for (int r = 1; r < c->set.n_ranks; r++)
        ty_program_free(c->rank[r]);
    if (c->set.n_ranks > 1)
        exchange_group_fini(&c->group);
    ty_model_free(c->model);
    for (int i = 0; i < c->spec.n_inputs; i++)
        free(c->stack[i].data);
    ty_arena_fini(&c->arena);
    free(c);
    return failed;
}

typedef enum outcome { PASSED, FAILED, LEFT_OUT, N_OUTCOMES } outcome;

/* In a child. */
static outcome run_apart(const char *folder, const char *name, const settings *set)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(CASE_SECONDS);
        int rc = run_case(folder, name, set);
        fflush(stdout);
        exit(rc);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) {
        printf("FAILED %s: no process\n", name);
        return FAILED;
    }
    if (WIFSIGNALED(status))
        printf("FAILED %-26s died of signal %d\n", name, WTERMSIG(status));
    else if (WEXITSTATUS(status) == SKIPPED)
        return LEFT_OUT;
    else if (WEXITSTATUS(status) > 0)
        printf("FAILED %s\n", name);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? PASSED : FAILED;
}

/* ---- all of them ----------------------------------------------------------------------------------------------------
 */

static bool wanted(const char *name, char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return n == 0;
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: train_cases [-v] [--interpreter | --grid | --gpu] [--threads N] [--dump DIR] [--cuda DIR]\n"
        "                   [--replicas N] [--gpus N [--cross-device HOW] [--wire f16|bf16]] [--ranks N] [--shard]\n"
        "                   [--strict] [--bucket BYTES] [--cache DIR] [--precision bfloat16|float16 WITHIN]\n"
        "                   [--tf32] DIR [NAME...]\n");
    return 64;
}

static int run_all(const char *dir, char *const *names, int n_names, const settings *set)
{
    ty_arena arena;
    ty_error err;
    ty_file_entry *entries;
    size_t n;
    int n_of[N_OUTCOMES] = {0};
    ty_arena_init(&arena);
    if (!ty_file_is_folder(dir)) {
        printf("skip: no folder %s\n0 passed, 0 failed, 1 skipped\n", dir);
        return 0;
    }
    if (ty_file_list(dir, &arena, &entries, &n, &err) < 0)
        die(dir, &err);
    for (size_t i = 0; i < n; i++) {
        const char *folder = ty_arena_printf(&arena, "%s/%s", dir, entries[i].name);
        if (!ty_file_exists(ty_arena_printf(&arena, "%s/recipe.yaml", folder)) ||
            !wanted(entries[i].name, names, n_names))
            continue;
        n_of[run_apart(folder, entries[i].name, set)]++;
    }
    ty_arena_fini(&arena);
    printf("%d passed, %d failed, %d skipped\n", n_of[PASSED], n_of[FAILED], n_of[LEFT_OUT]);
    return n_of[FAILED] || n_of[PASSED] == 0;
}

static ty_precision precision_of(const char *name)
{
    return strcmp(name, "bfloat16") == 0  ? TY_PRECISION_BFLOAT16
           : strcmp(name, "float16") == 0 ? TY_PRECISION_FLOAT16
                                          : TY_N_PRECISIONS;
}

static ty_cross_device cross_device_of(const char *name)
{
    return strcmp(name, "hierarchical_copy") == 0         ? TY_CROSS_HIERARCHICAL
           : strcmp(name, "reduction_to_one_device") == 0 ? TY_CROSS_ONE_DEVICE
                                                          : TY_CROSS_NCCL;
}

int main(int argc, char **argv)
{
    settings set = {0};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-v") == 0)
            set.verbose = true;
        else if (strcmp(argv[i], "--interpreter") == 0)
            set.backend = TY_BACKEND_INTERPRETER;
        else if (strcmp(argv[i], "--gpu") == 0)
            set.backend = TY_BACKEND_CUDA;
        else if (strcmp(argv[i], "--grid") == 0)
            set.grid = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            set.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--replicas") == 0 && i + 1 < argc)
            set.replicas = atoi(argv[++i]);
        else if (strcmp(argv[i], "--gpus") == 0 && i + 1 < argc)
            set.n_gpus = set.replicas = atoi(argv[++i]), set.backend = TY_BACKEND_CUDA;
        else if (strcmp(argv[i], "--ranks") == 0 && i + 1 < argc)
            set.n_ranks = set.replicas = atoi(argv[++i]), set.threads = 1;
        else if (strcmp(argv[i], "--tf32") == 0)
            set.tf32 = true;
        else if (strcmp(argv[i], "--shard") == 0)
            set.shard = true;
        else if (strcmp(argv[i], "--strict") == 0)
            set.strict = true;
        else if (strcmp(argv[i], "--bucket") == 0 && i + 1 < argc)
            set.bucket_bytes = atoll(argv[++i]);
        else if (strcmp(argv[i], "--wire") == 0 && i + 1 < argc)
            set.wire = strcmp(argv[++i], "bf16") == 0 ? TY_BF16 : TY_F16;
        else if (strcmp(argv[i], "--cache") == 0 && i + 1 < argc)
            set.cache = argv[++i];
        else if (strcmp(argv[i], "--cross-device") == 0 && i + 1 < argc)
            set.cross_device = cross_device_of(argv[++i]);
        else if (strcmp(argv[i], "--precision") == 0 && i + 2 < argc) {
            set.precision = precision_of(argv[++i]);
            set.within = atof(argv[++i]);
        } else if (strcmp(argv[i], "--dump") == 0 && i + 1 < argc)
            set.dump = argv[++i];
        else if (strcmp(argv[i], "--cuda") == 0 && i + 1 < argc)
            set.cuda = argv[++i], set.backend = TY_BACKEND_CUDA;
        else
            return usage();
    }
    if (i >= argc || set.n_ranks > EXCHANGE_MAX_REPLICAS)
        return usage();
    return run_all(argv[i], argv + i + 1, argc - i - 1, &set);
}
