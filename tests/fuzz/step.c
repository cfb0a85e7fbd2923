/* Fuzz: an ONNX file trained: opened, imported, raised, differentiated, updated, and the step taken the whole way.
 *
 * The last bytes choose loss, optimizer, clipping and accumulation. What is refused says why.
 */
#define _GNU_SOURCE
#include "compiler/passes/step.h"
#include "tests/fuzz/small_graph.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MAX_BINDINGS = 16, CHOICES = 4 };

static ty_model *open_bytes(const uint8_t *data, size_t n)
{
    char path[64];
    ty_model *m = NULL;
    ty_error err = {0};
    int fd = memfd_create("model.onnx", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ty_model_open(path, &m, &err) < 0)
        small_refused(&err);
    close(fd);
    return m;
}

/* Free dims become 2, unknown shapes a vector of 2. */
static ty_binding binding_of(const ty_model_value *v)
{
    int64_t dim[TY_MAX_RANK] = {2};
    for (int i = 0; i < v->rank; i++)
        dim[i] = v->dim[i] < 0 ? 2 : v->dim[i];
    return (ty_binding){v->name,
                        ty_type_make(v->dtype < TY_N_DTYPES ? v->dtype : TY_F32, v->rank < 0 ? 1 : v->rank, dim)};
}

/* A target in the shape of the output, or class numbers of its rows. */
static ty_binding target_of(const ty_model_value *y, bool labels)
{
    ty_binding b = binding_of(y);
    b.name = "a target of the fuzzer";
    if (labels)
        b.type = ty_type_make(TY_I64, b.type.rank > 0 ? b.type.rank - 1 : 0, b.type.dim);
    else
        b.type.dtype = TY_F32;
    return b;
}

static void train(const ty_model *m, const uint8_t *choice)
{
    static const ty_loss_kind kinds[] = {TY_LOSS_MEAN, TY_LOSS_MSE, TY_LOSS_SOFTMAX_CROSS_ENTROPY, TY_LOSS_HUBER};
    ty_binding in[MAX_BINDINGS + 1];
    int n = ty_model_n_inputs(m);
    if (n > MAX_BINDINGS || ty_model_n_outputs(m) < 1)
        return;
    for (int i = 0; i < n; i++) {
        in[i] = binding_of(ty_model_input(m, i));
        if (ty_dims_elems_checked(in[i].type.rank, in[i].type.dim, 8) > SMALL_ELEMS ||
            ty_dims_elems_checked(in[i].type.rank, in[i].type.dim, 8) < 0)
            return;
    }
    ty_loss_kind kind = kinds[choice[0] % 4];
    ty_loss_term term = {.kind = kind, .output = ty_model_output(m, 0)->name, .weight = 1, .delta = 1};
    term.ignore_index = -100;
    term.class_axis = -1;
    if (kind != TY_LOSS_MEAN) {
        in[n] = target_of(ty_model_output(m, 0), kind == TY_LOSS_SOFTMAX_CROSS_ENTROPY);
        if (ty_dims_elems_checked(in[n].type.rank, in[n].type.dim, 8) < 0)
            return;
        term.target = in[n++].name;
    }
    ty_optimizer o = {.kind = (ty_optimizer_kind)(choice[1] % TY_N_OPTIMIZER_KINDS), .lr = 0.1, .weight_decay = 0.1};
    o.beta1 = o.alpha = o.rho = o.momentum = 0.9;
    o.beta2 = 0.99;
    o.eps = o.trust = o.initial_accumulator = 1e-3;
    o.lr_power = -0.5;
    ty_train_spec spec = {.inputs = in, .n_inputs = n, .loss = &term, .n_loss = 1, .optimizer = o, .clip_max = 1};
    spec.clip = (ty_clip_kind)(choice[2] % 4);
    spec.accumulate = 1 + choice[3] % 2;
    spec.batch_norm_statistics = true;
    ty_step step = {0};
    ty_error err = {0};
    if (ty_step_build(m, &spec, &step, &err) < 0) {
        small_refused(&err);
        return;
    }
    if (ty_graph_verify(step.g, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    small_exercise(step.g, TY_TAPE_LAST | TY_TAPE_EVAL | (spec.accumulate > 1 ? TY_TAPE_MICRO : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= CHOICES)
        return 0;
    ty_model *m = open_bytes(data, size);
    if (m)
        train(m, data + size - CHOICES);
    ty_model_free(m);
    return 0;
}
