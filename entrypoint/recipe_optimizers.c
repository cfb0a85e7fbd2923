/* recipe_optimizers.c - the tables of optimizers. Defaults are PyTorch's (torch.optim), those of ftrl and keras_*
 * Keras' (keras.optimizers), those of lion, lamb and lars the papers'. */
#include "entrypoint/recipe_keys.h"

#define OPT(name) offsetof(recipe_optimizer, o.name)
#define OPT_LR(value)                                                            \
    {                                                                            \
        "lr", TY_BIND_FLOAT, OPT(lr), value, .max = 1e6, .help = "learning rate" \
    }
#define OPT_DECAY(value)                                                                            \
    {                                                                                               \
        "weight_decay", TY_BIND_FLOAT, OPT(weight_decay), value, .max = 1e6, .help = "weight decay" \
    }
#define OPT_EPS(value)                                                                      \
    {                                                                                       \
        "eps", TY_BIND_FLOAT, OPT(eps), value, .max = 1, .help = "added to the denominator" \
    }
#define OPT_MOMENTUM                                                                              \
    {                                                                                             \
        "momentum", TY_BIND_FLOAT, OPT(momentum), "0", .max = 1, .help = "share of the last step" \
    }
#define OPT_BETAS                                                                                      \
    {"beta1", TY_BIND_FLOAT, OPT(beta1), "0.9", .max = 1, .help = "decay of the first moment"},        \
        {"beta2", TY_BIND_FLOAT, OPT(beta2), "0.999", .max = 1, .help = "decay of the second moment"}, \
    {                                                                                                  \
        "betas", TY_BIND_NODE, offsetof(recipe_optimizer, betas), .form = "a list of two numbers",     \
                                                                  .help = "[beta1, beta2] in one"      \
    }
#define OPT_AMSGRAD                                                                              \
    {                                                                                            \
        "amsgrad", TY_BIND_BOOL, OPT(amsgrad), "false", .help = "keep the largest second moment" \
    }

static const ty_bind_row sgd_rows[] = {
    OPT_LR("1e-3"),
    OPT_MOMENTUM,
    {"dampening", TY_BIND_FLOAT, OPT(dampening), "0", .max = 1, .help = "of the momentum"},
    {"nesterov", TY_BIND_BOOL, OPT(nesterov), "false", .help = "look ahead; needs momentum"},
    OPT_DECAY("0"),
};
static const ty_bind_row adam_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-8"), OPT_DECAY("0"), OPT_AMSGRAD};
static const ty_bind_row adamw_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-8"), OPT_DECAY("0.01"), OPT_AMSGRAD};
static const ty_bind_row nadam_rows[] = {
    OPT_LR("2e-3"),
    OPT_BETAS,
    OPT_EPS("1e-8"),
    OPT_DECAY("0"),
    {"momentum_decay", TY_BIND_FLOAT, OPT(momentum_decay), "4e-3", .max = 1, .help = "of the Nesterov schedule"},
};
static const ty_bind_row adamax_rows[] = {OPT_LR("2e-3"), OPT_BETAS, OPT_EPS("1e-8"), OPT_DECAY("0")};
static const ty_bind_row rmsprop_rows[] = {
    OPT_LR("1e-2"),  {"alpha", TY_BIND_FLOAT, OPT(alpha), "0.99", .max = 1, .help = "decay of the squares"},
    OPT_EPS("1e-8"), OPT_DECAY("0"),
    OPT_MOMENTUM,    {"centered", TY_BIND_BOOL, OPT(centered), "false", .help = "divide by the variance"},
};
static const ty_bind_row adagrad_rows[] = {
    OPT_LR("1e-2"),
    {"lr_decay", TY_BIND_FLOAT, OPT(lr_decay), "0", .max = 1e6, .help = "decay of the rate"},
    OPT_DECAY("0"),
    {"initial_accumulator", TY_BIND_FLOAT, OPT(initial_accumulator), "0", .max = 1e30, .help = "where the sums start"},
    OPT_EPS("1e-10"),
};
static const ty_bind_row adadelta_rows[] = {
    OPT_LR("1"),
    {"rho", TY_BIND_FLOAT, OPT(rho), "0.9", .max = 1, .help = "decay of both averages"},
    OPT_EPS("1e-6"),
    OPT_DECAY("0"),
};

static const ty_bind_row lion_rows[] = {
    OPT_LR("1e-4"),
    {"beta1", TY_BIND_FLOAT, OPT(beta1), "0.9", .max = 1, .help = "share of the memory in the step"},
    {"beta2", TY_BIND_FLOAT, OPT(beta2), "0.99", .max = 1, .help = "decay of the memory"},
    {"betas", TY_BIND_NODE, offsetof(recipe_optimizer, betas), .form = "a list of two numbers",
     .help = "[beta1, beta2] in one"},
    OPT_DECAY("0"),
};
static const ty_bind_row lamb_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-6"), OPT_DECAY("0.01")};
static const ty_bind_row lars_rows[] = {
    OPT_LR("1"),
    {"momentum", TY_BIND_FLOAT, OPT(momentum), "0.9", .max = 1, .help = "share of the last step"},
    {"trust", TY_BIND_FLOAT, OPT(trust), "1e-3", .max = 1e6, .above_min = true, .help = "trust coefficient"},
    OPT_EPS("0"),
    OPT_DECAY("1e-4"),
};
static const ty_bind_row ftrl_rows[] = {
    OPT_LR("1e-3"),
    {"lr_power", TY_BIND_FLOAT, OPT(lr_power), "-0.5", .min = -10, .max = 0, .help = "-0.5: rates fall as adagrad's"},
    {"initial_accumulator", TY_BIND_FLOAT, OPT(initial_accumulator), "0.1", .max = 1e30, .above_min = true,
     .help = "where the sums start"},
    {"l1", TY_BIND_FLOAT, OPT(l1), "0", .max = 1e30, .help = "strength of l1: weights become exactly 0"},
    {"l2", TY_BIND_FLOAT, OPT(l2), "0", .max = 1e30, .help = "strength of l2"},
    {"l2_shrinkage", TY_BIND_FLOAT, OPT(l2_shrinkage), "0", .max = 1e30, .help = "strength of l2 on the gradient"},
    {"beta", TY_BIND_FLOAT, OPT(beta), "0", .max = 1e30, .help = "the paper's beta"},
    OPT_DECAY("0"),
};
static const ty_bind_row keras_sgd_rows[] = {
    OPT_LR("1e-2"),
    OPT_MOMENTUM,
    {"nesterov", TY_BIND_BOOL, OPT(nesterov), "false", .help = "look ahead; needs momentum"},
    OPT_DECAY("0"),
};
static const ty_bind_row keras_adam_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-7"), OPT_DECAY("0"), OPT_AMSGRAD};
static const ty_bind_row keras_adamw_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-7"), OPT_DECAY("4e-3"),
                                               OPT_AMSGRAD};
static const ty_bind_row keras_nadam_rows[] = {OPT_LR("1e-3"), OPT_BETAS, OPT_EPS("1e-7"), OPT_DECAY("0")};
static const ty_bind_row keras_rmsprop_rows[] = {
    OPT_LR("1e-3"),  {"alpha", TY_BIND_FLOAT, OPT(alpha), "0.9", .max = 1, .help = "decay of the squares (Keras' rho)"},
    OPT_EPS("1e-7"), OPT_DECAY("0"),
    OPT_MOMENTUM,    {"centered", TY_BIND_BOOL, OPT(centered), "false", .help = "divide by the variance"},
};
static const ty_bind_row keras_adagrad_rows[] = {
    OPT_LR("1e-3"),
    {"initial_accumulator", TY_BIND_FLOAT, OPT(initial_accumulator), "0.1", .max = 1e30,
     .help = "where the sums start"},
    OPT_EPS("1e-7"),
    OPT_DECAY("0"),
};
static const ty_bind_row keras_adadelta_rows[] = {
    OPT_LR("1e-3"),
    {"rho", TY_BIND_FLOAT, OPT(rho), "0.95", .max = 1, .help = "decay of both averages"},
    OPT_EPS("1e-7"),
    OPT_DECAY("0"),
};

static const recipe_kind optimizers[] = {
    KIND("adamw", TY_OPT_ADAMW, adamw_rows, "Adam with decoupled weight decay (the default)"),
    KIND("adam", TY_OPT_ADAM, adam_rows, "Adam"),
    KIND("sgd", TY_OPT_SGD, sgd_rows, "gradient descent, with momentum and Nesterov"),
    KIND("nadam", TY_OPT_NADAM, nadam_rows, "Adam with Nesterov momentum"),
    KIND("adamax", TY_OPT_ADAMAX, adamax_rows, "Adam by the infinity norm"),
    KIND("rmsprop", TY_OPT_RMSPROP, rmsprop_rows, "RMSprop"),
    KIND("adagrad", TY_OPT_ADAGRAD, adagrad_rows, "Adagrad"),
    KIND("adadelta", TY_OPT_ADADELTA, adadelta_rows, "Adadelta"),
    KIND("lion", TY_OPT_LION, lion_rows, "the sign of a momentum, decoupled decay"),
    KIND("lamb", TY_OPT_LAMB, lamb_rows, "Adam with a ratio for each tensor, for large batches"),
    KIND("lars", TY_OPT_LARS, lars_rows, "momentum with a ratio for each tensor, for large batches"),
    KIND("ftrl", TY_OPT_FTRL, ftrl_rows, "follow the regularised leader, for sparse linear models"),
    KIND("keras_sgd", TY_OPT_KERAS_SGD, keras_sgd_rows, "Keras' SGD: the rate is in the memory"),
    KIND("keras_adam", TY_OPT_KERAS_ADAM, keras_adam_rows, "Keras' Adam: eps beside the uncorrected root"),
    KIND("keras_adamw", TY_OPT_KERAS_ADAM, keras_adamw_rows, "Keras' AdamW"),
    KIND("keras_nadam", TY_OPT_KERAS_NADAM, keras_nadam_rows, "Keras' Nadam"),
    KIND("keras_adamax", TY_OPT_KERAS_ADAMAX, keras_nadam_rows, "Keras' Adamax"),
    KIND("keras_rmsprop", TY_OPT_KERAS_RMSPROP, keras_rmsprop_rows, "Keras' and TensorFlow's RMSprop: eps in the root"),
    KIND("keras_adagrad", TY_OPT_KERAS_ADAGRAD, keras_adagrad_rows, "Keras' Adagrad: eps in the root"),
    KIND("keras_adadelta", TY_OPT_KERAS_ADADELTA, keras_adadelta_rows, "Keras' Adadelta"),
    KIND("keras_lamb", TY_OPT_KERAS_LAMB, keras_nadam_rows, "Keras' Lamb: decay beside the ratio"),
};

CHOICE(ty_recipe_optimizer_choice, "optimizer", "how weights follow the gradient", optimizers);
