/* recipe_schedules.c - the tables of schedules. Defaults are PyTorch's (torch.optim.lr_scheduler), those of keras_*
 * Keras' (keras.optimizers.schedules). */
#include "entrypoint/recipe_keys.h"

#define SCHED(name)      offsetof(recipe_schedule, s.name)
#define SCHED_SPAN(name) offsetof(recipe_schedule, name)
static const char *const anneals[] = {"cos", "linear", NULL};

static const ty_bind_row step_rows[] = {
    {"step_size", TY_BIND_NODE, SCHED_SPAN(step_size), .required = true, .form = "an integer or text",
     .help = "\"500 steps\" or \"10 epochs\" between drops"},
    {"gamma", TY_BIND_FLOAT, SCHED(gamma), "0.1", .max = 1e3, .help = "factor of each drop"},
};
static const ty_bind_row exponential_rows[] = {
    {"gamma", TY_BIND_FLOAT, SCHED(gamma), .required = true, .max = 1e3, .help = "factor of each step"},
};
static const ty_bind_row polynomial_rows[] = {
    {"total_steps", TY_BIND_NODE, SCHED_SPAN(total), .form = "an integer or text",
     .help = "steps, or \"N epochs\", until 0; left out: the whole run"},
    {"power", TY_BIND_FLOAT, SCHED(power), "1", .max = 1e3, .help = "1: a line"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where it ends"},
};
static const ty_bind_row linear_rows[] = {
    {"total_steps", TY_BIND_NODE, SCHED_SPAN(total), .form = "an integer or text",
     .help = "steps, or \"N epochs\", until final_lr; left out: the whole run"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where the line ends"},
};
static const ty_bind_row cosine_decay_rows[] = {
    {"decay_steps", TY_BIND_NODE, SCHED_SPAN(decay), .form = "an integer or text",
     .help = "steps, or \"N epochs\", of falling; left out: the whole run"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where the cosine ends"},
};
static const ty_bind_row cosine_restarts_rows[] = {
    {"cycle_steps", TY_BIND_NODE, SCHED_SPAN(cycle), .required = true, .form = "an integer or text",
     .help = "steps, or \"N epochs\", of the first cycle"},
    {"cycle_mult", TY_BIND_FLOAT, SCHED(cycle_mult), "1", .min = 1, .max = 1e3,
     .help = "length of a cycle / length of the one before"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where each cycle ends"},
};
static const ty_bind_row piecewise_rows[] = {
    {"boundaries", TY_BIND_NODE, SCHED_SPAN(boundaries), .required = true, .form = "a list of integers or texts",
     .help = "list of steps, or \"N epochs\", at which the rate changes"},
    {"factors", TY_BIND_NODE, SCHED_SPAN(factors), .required = true, .form = "a list of numbers",
     .help = "list of factors of lr, the first before the first boundary: [1, 0.1, 0.01]"},
};
static const char *const threshold_modes[] = {"rel", "abs", NULL};
static const char *const plateau_modes[] = {"auto", "min", "max", NULL};
static const ty_bind_row plateau_rows[] = {
    {"factor", TY_BIND_FLOAT, SCHED(factor), "0.1", .max = 1, .above_min = true, .help = "of each drop"},
    {"patience", TY_BIND_INT, SCHED(patience), "10", .max = 1e9, .help = "evaluations without a better value"},
    {"threshold", TY_BIND_FLOAT, SCHED(threshold), "1e-4", .max = 1e30, .help = "by which a value must be better"},
    {"threshold_mode", TY_BIND_CHOICE, offsetof(recipe_schedule, threshold_mode), "rel", .choices = threshold_modes,
     .help = "rel: threshold is a share of the best value; abs: a difference"},
    {"cooldown", TY_BIND_INT, SCHED(cooldown), "0", .max = 1e9, .help = "evaluations after a drop that do not count"},
    {"min_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "the rate falls no lower"},
    {"metric", TY_BIND_STRING, SCHED(metric), .help = "name of a metric; left out: the loss on data.validation"},
    {"mode", TY_BIND_CHOICE, offsetof(recipe_schedule, mode), "auto", .choices = plateau_modes,
     .help = "min: lower is better; auto: max for accuracy and the like"},
};
static const ty_bind_row warmup_cosine_rows[] = {
    {"warmup_steps", TY_BIND_NODE, SCHED_SPAN(warmup), "0", .form = "an integer or text",
     .help = "steps, or \"N epochs\", of rising from start_factor * lr to lr"},
    {"start_factor", TY_BIND_FLOAT, SCHED(start_factor), "0", .max = 1,
     .help = "where the warmup starts, as a part of lr"},
    {"decay_steps", TY_BIND_NODE, SCHED_SPAN(decay), .form = "an integer or text",
     .help = "steps, or \"N epochs\", of falling; left out: the rest of the run"},
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "0", .max = 1e6, .help = "where the cosine ends"},
};
static const ty_bind_row one_cycle_rows[] = {
    {"total_steps", TY_BIND_NODE, SCHED_SPAN(total), .form = "an integer or text",
     .help = "steps, or \"N epochs\"; left out: the whole run"},
    {"pct_start", TY_BIND_FLOAT, SCHED(pct_start), "0.3", .max = 1, .help = "share of the rise"},
    {"div_factor", TY_BIND_FLOAT, SCHED(div_factor), "25", .max = 1e12, .above_min = true, .help = "lr / first rate"},
    {"final_div_factor", TY_BIND_FLOAT, SCHED(final_div_factor), "1e4", .max = 1e12, .above_min = true,
     .help = "first rate / last rate"},
    {"anneal", TY_BIND_CHOICE, offsetof(recipe_schedule, anneal), "cos", .choices = anneals,
     .help = "shape of both halves"},
};

#define DECAY_STEPS                                                                                                   \
    {                                                                                                                 \
        "decay_steps", TY_BIND_FLOAT, SCHED(decay_steps), .required = true, .min = 0, .max = 1e15, .above_min = true, \
                                                          .help = "steps"                                             \
    }
#define DECAY_RATE                                                                                                   \
    {                                                                                                                \
        "decay_rate", TY_BIND_FLOAT, SCHED(decay_rate), .required = true, .max = 1e9, .help = "of decay_steps steps" \
    }
#define STAIRCASE                                                                               \
    {                                                                                           \
        "staircase", TY_BIND_BOOL, SCHED(staircase), "false", .help = "in steps of decay_steps" \
    }
#define ALPHA                                                                                     \
    {                                                                                             \
        "alpha", TY_BIND_FLOAT, SCHED(alpha), "0", .min = -1e6, .max = 1e6,                       \
                                                   .help = "where it ends, as a part of the rate" \
    }
static const ty_bind_row keras_exponential_rows[] = {DECAY_STEPS, DECAY_RATE, STAIRCASE};
static const ty_bind_row keras_polynomial_rows[] = {
    DECAY_STEPS,
    {"final_lr", TY_BIND_FLOAT, SCHED(final_lr), "1e-4", .max = 1e6, .help = "where it ends (end_learning_rate)"},
    {"power", TY_BIND_FLOAT, SCHED(power), "1", .max = 1e3, .help = "1: a line"},
    {"cycle", TY_BIND_BOOL, SCHED(cycles), "false", .help = "begin again, each time with a longer way"},
};
static const ty_bind_row keras_cosine_rows[] = {
    DECAY_STEPS,
    ALPHA,
    {"warmup_target", TY_BIND_NODE, SCHED_SPAN(target), .form = "a number",
     .help = "rate after the warmup, from which the cosine falls; left out: lr, and no warmup"},
    {"warmup_steps", TY_BIND_NODE, SCHED_SPAN(warmup), "0", .form = "an integer or text",
     .help = "steps of rising from lr to warmup_target"},
};
static const ty_bind_row keras_cosine_restarts_rows[] = {
    {"first_decay_steps", TY_BIND_NODE, SCHED_SPAN(cycle), .required = true, .form = "an integer or text",
     .help = "steps, or \"N epochs\", of the first cycle"},
    {"t_mul", TY_BIND_FLOAT, SCHED(cycle_mult), "2", .min = 1, .max = 1e3,
     .help = "length of a cycle / length of the one before"},
    {"m_mul", TY_BIND_FLOAT, SCHED(m_mul), "1", .max = 1e3, .help = "height of a cycle / height of the one before"},
    ALPHA,
};

static const recipe_kind schedules[] = {
    {"constant", TY_SCHED_CONSTANT, NULL, 0, "lr stays (the default)"},
    KIND("warmup_cosine", TY_SCHED_WARMUP_COSINE, warmup_cosine_rows, "rise, then half a cosine down"),
    KIND("one_cycle", TY_SCHED_ONE_CYCLE, one_cycle_rows, "rise to lr, fall to almost nothing"),
    KIND("step", TY_SCHED_STEP, step_rows, "a drop now and then"),
    KIND("exponential", TY_SCHED_EXPONENTIAL, exponential_rows, "a small drop every step"),
    KIND("polynomial", TY_SCHED_POLYNOMIAL, polynomial_rows, "to final_lr, by a power"),
    KIND("linear", TY_SCHED_POLYNOMIAL, linear_rows, "to final_lr, in a line"),
    KIND("cosine", TY_SCHED_WARMUP_COSINE, cosine_decay_rows, "half a cosine down"),
    KIND("cosine_restarts", TY_SCHED_COSINE_RESTARTS, cosine_restarts_rows, "half a cosine down, again and again"),
    KIND("piecewise", TY_SCHED_PIECEWISE, piecewise_rows, "a factor for each stretch of steps"),
    KIND("plateau", TY_SCHED_PLATEAU, plateau_rows, "a drop when evaluations get no better"),
    KIND("keras_exponential", TY_SCHED_KERAS_EXPONENTIAL, keras_exponential_rows, "Keras' ExponentialDecay"),
    KIND("keras_inverse_time", TY_SCHED_KERAS_INVERSE_TIME, keras_exponential_rows, "Keras' InverseTimeDecay"),
    KIND("keras_polynomial", TY_SCHED_KERAS_POLYNOMIAL, keras_polynomial_rows, "Keras' PolynomialDecay"),
    KIND("keras_cosine", TY_SCHED_KERAS_COSINE, keras_cosine_rows, "Keras' CosineDecay"),
    KIND("keras_cosine_restarts", TY_SCHED_KERAS_COSINE_RESTARTS, keras_cosine_restarts_rows,
         "Keras' CosineDecayRestarts"),
};

CHOICE(ty_recipe_schedule_choice, "schedule", "learning rate over the steps", schedules);
