/* keras_optimizer.c - see keras_optimizer.h. */
#include "compiler/import/keras/keras_optimizer.h"

#include <stdio.h>
#include <string.h>

/* One number for each of a weight's. `letter` is our name of it (compiler/passes/optimizer.c). */
typedef struct slot {
    const char *name; /* Keras': "momentum" */
    const char *letter;
    const char *if_key;   /* only where this key of the configuration is true, or not 0; NULL: always */
    const char *plus_key; /* our number is less than Keras' by the value of this key */
    bool with_last;       /* lies beside the slot before it: a0 b0 a1 b1 ... */
} slot;

typedef struct optimizer {
    const char *class_name;
    const char *kinds; /* of ours that keep the same: ty_model_moments.optimizer is one of them */
    slot slot[4];
    const char *scalar; /* letter of a single number at the end, or NULL */
} optimizer;

#define ADAM_SLOTS                                                                                   \
    {                                                                                                \
        {.name = "momentum", .letter = "m"}, {.name = "velocity", .letter = "v", .with_last = true}, \
        {                                                                                            \
            .name = "velocity_hat", .letter = "x", .if_key = "amsgrad"                               \
        }                                                                                            \
    }

static const optimizer optimizers[] = {
    {"SGD", "keras_sgd", {{.name = "momentum", .letter = "m", .if_key = "momentum"}}, NULL},
    {"Adam", "keras_adam", ADAM_SLOTS, NULL},
    {"AdamW", "keras_adam", ADAM_SLOTS, NULL},
    {"Nadam",
     "keras_nadam",
     {{.name = "momentum", .letter = "m"}, {.name = "velocity", .letter = "v", .with_last = true}},
     "product"},
    {"Adamax",
     "keras_adamax",
     {{.name = "momentum", .letter = "m"}, {.name = "norm", .letter = "s", .with_last = true}},
     NULL},
    {"Lamb",
     "keras_lamb",
     {{.name = "momentum", .letter = "m"}, {.name = "velocity", .letter = "v", .with_last = true}},
     NULL},
    {"Lion", "lion", {{.name = "momentum", .letter = "m"}}, NULL},
    {"Adagrad",
     "keras_adagrad",
     {{.name = "accumulator", .letter = "v", .plus_key = "initial_accumulator_value"}},
     NULL},
    {"RMSprop",
     "keras_rmsprop",
     {{.name = "velocity", .letter = "v"},
      {.name = "momentum", .letter = "m", .if_key = "momentum"},
      {.name = "average_gradient", .letter = "a", .if_key = "centered"}},
     NULL},
    {"Adadelta",
     "keras_adadelta",
     {{.name = "accumulated_grad", .letter = "v"}, {.name = "accumulated_delta_var", .letter = "s", .with_last = true}},
     NULL},
    {"Ftrl",
     "ftrl",
     {{.name = "accumulator", .letter = "n", .plus_key = "initial_accumulator_value"},
      {.name = "linear", .letter = "z", .with_last = true}},
     NULL},
};

static const slot average = {.name = "average", .letter = "ema", .if_key = "use_ema"};
static const slot gradients = {
    .name = "gradient_accumulator", .letter = "sum", .if_key = "gradient_accumulation_steps"};

typedef struct maker {
    const keras_trained *t;
    const ty_doc *config; /* of the optimizer */
    const char *prefix;   /* "adam" */
    ty_arena *arena;
    keras_variable *v;
    int n;
    bool failed; /* something is not kept */
} maker;

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static double number(const ty_doc *config, const char *key, double absent)
{
    double value = absent;
    const ty_doc *d = ty_doc_find(config, key);
    if (d && d->kind == TY_DOC_BOOL)
        return d->boolean;
    if (d && (d->kind == TY_DOC_INT || d->kind == TY_DOC_FLOAT))
        ty_doc_float(d, &value, NULL);
    return value;
}

static const char *text(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

/* The optimizer of compile settings: an object of Keras 3, or optimizer_config of a legacy file. */
static const ty_doc *optimizer_doc(const keras_file *f)
{
    const ty_doc *d = ty_doc_find(f->compile, "optimizer");
    return d && d->kind == TY_DOC_MAP ? d : ty_doc_find(f->compile, "optimizer_config");
}

static bool has_word(const char *words, const char *word)
{
    const char *at = strstr(words, word);
    size_t n = strlen(word);
    return at && (at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0);
}

static const optimizer *find_optimizer(const ty_doc *doc, const char *kind)
{
    const char *class_name = text(doc, "class_name");
    for (size_t i = 0; class_name && i < sizeof optimizers / sizeof optimizers[0]; i++)
        if (strcmp(optimizers[i].class_name, class_name) == 0)
            return has_word(optimizers[i].kinds, kind) ? &optimizers[i] : NULL;
    return NULL;
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

static void add(maker *m, const char *name, const ty_type *type, const void *data)
{
    m->v[m->n++] = (keras_variable){name, *type, data};
}

static void add_scalar(maker *m, const char *name, ty_dtype dtype, const void *data)
{
    ty_type type = ty_type_scalar(dtype);
    add(m, ty_arena_printf(m->arena, "%s/%s", m->prefix, name), &type,
        ty_arena_copy(m->arena, data, ty_dtype_bytes(dtype)));
}

/* Keras calls the momentum of "dense/kernel" "adam/dense_kernel_momentum". */
static const char *slot_name(maker *m, const keras_weight *w, const char *name)
{
    char *out = ty_arena_printf(m->arena, "%s/%s_%s", m->prefix, w->name, name);
    for (char *p = out + strlen(m->prefix) + 1; *p; p++)
        if (*p == '/')
            *p = '_';
    return out;
}

static const float *plus(maker *m, const float *data, const ty_type *type, double value)
{
    int64_t n = ty_type_elems(type);
    float *out = TY_NEW_ARRAY(m->arena, float, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = data[i] + (float)value;
    return out;
}

static void add_slot(maker *m, const slot *s, const keras_weight *w)
{
    const ty_model_moments *moments = m->t->moments;
    ty_type type = w->type;
    type.dtype = TY_F32; /* as we keep them, and as Keras does under its mixed policies */
    const void *data = moments->find(moments->ctx, s->letter, w->name, &type);
    if (!data && s == &gradients) /* nothing is under way between two steps */
        data = ty_arena_alloc(m->arena, ty_type_bytes(&type));
    if (!data || w->type.dtype != TY_F32)
        m->failed = true;
    else if (s->plus_key)
        data = plus(m, data, &type, number(m->config, s->plus_key, 0.1));
    add(m, slot_name(m, w, s->name), &type, data);
}

static bool is_there(const maker *m, const slot *s)
{
    return s->name && (!s->if_key || number(m->config, s->if_key, 0) != 0);
}

/* Slots from `first` on that lie beside one another, weight by weight. Returns how many there are. */
static int add_beside(maker *m, const slot *first)
{
    int n = 1;
    while (first[n].name && first[n].with_last)
        n++;
    for (int i = 0; i < m->t->n_weights && is_there(m, first); i++)
        for (int k = 0; k < n; k++)
            add_slot(m, &first[k], m->t->weight[i]);
    return n;
}

static void add_alone(maker *m, const slot *s)
{
    for (int i = 0; i < m->t->n_weights && is_there(m, s); i++)
        add_slot(m, s, m->t->weight[i]);
}

/* iteration is as wide as in the file: 64 bits, or 32 where JAX was behind Keras. */
static void add_clock(maker *m, const keras_file *f)
{
    const ty_model_moments *moments = m->t->moments;
    const ty_doc *rate = ty_doc_find(m->config, "learning_rate");
    bool narrow = false;
    for (int i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensor[i].path, "optimizer/vars/0") == 0)
            narrow = f->tensor[i].type.dtype == TY_I32;
    if (narrow)
        add_scalar(m, "iteration", TY_I32, &(int32_t){(int32_t)moments->calls});
    else
        add_scalar(m, "iteration", TY_I64, &moments->calls);
    if (!rate || rate->kind != TY_DOC_MAP) /* a schedule has none */
        add_scalar(m, "learning_rate", TY_F32, &(float){(float)moments->learning_rate});
}

static void add_number(maker *m, const char *letter)
{
    const ty_model_moments *moments = m->t->moments;
    ty_type type = ty_type_scalar(TY_F64);
    const double *value = moments->find(moments->ctx, letter, "", &type);
    if (value)
        add_scalar(m, "variable", TY_F32, &(float){(float)*value});
    else
        m->failed = true;
}

int keras_optimizer_variables(const keras_file *f, const keras_trained *t, ty_arena *arena, keras_variable **out)
{
    const ty_doc *doc = t && t->moments && f->compile ? optimizer_doc(f) : NULL;
    const optimizer *o = doc ? find_optimizer(doc, t->moments->optimizer) : NULL;
    if (!o)
        return 0;
    maker m = {.t = t, .config = ty_doc_find(doc, "config"), .arena = arena};
    const char *name = text(m.config, "name");
    m.prefix = name ? name : "optimizer";
    m.v = TY_NEW_ARRAY(arena, keras_variable, 3 + (size_t)t->n_weights * 6);
    add_clock(&m, f);
    add_alone(&m, &average);
    add_alone(&m, &gradients);
    for (int i = 0; i < 4 && o->slot[i].name;)
        i += add_beside(&m, &o->slot[i]);
    if (o->scalar)
        add_number(&m, o->scalar);
    *out = m.v;
    return m.failed ? 0 : m.n;
}
