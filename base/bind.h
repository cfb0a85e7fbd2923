/* bind.h - a map of settings into the fields of a struct, by a table.
 *
 * One row a key: name, type, field, default, limits, help. From the table come parsing, defaults, range checks,
 * refusals of unknown keys with a suggestion, the help text, and the origin of every value. Nested maps are rows of
 * type NODE, which the caller binds with their own table.
 *
 *     struct adamw { double lr; double weight_decay; };
 *     static const ty_bind_row adamw_rows[] = {
 *         {"lr", TY_BIND_FLOAT, offsetof(struct adamw, lr), "1e-3", .min = 0, .max = 10, .above_min = true,
 *          .help = "step size"},
 *         {"weight_decay", TY_BIND_FLOAT, offsetof(struct adamw, weight_decay), "0.01", .max = 1, .help = "decoupled"},
 *     };
 *     struct adamw settings;
 *     const ty_doc *origin[2];
 *     if (ty_bind(adamw_rows, 2, "adamw", map, &settings, origin, err) < 0)
 *         return -1;
 */
#ifndef TY_BASE_BIND_H
#define TY_BASE_BIND_H

#include "base/doc.h"

typedef enum ty_bind_type {
    TY_BIND_BOOL,   /* bool */
    TY_BIND_INT,    /* int64_t */
    TY_BIND_FLOAT,  /* double; integers are taken */
    TY_BIND_STRING, /* const char *, in the tree's arena, or the default's literal */
    TY_BIND_CHOICE, /* int: index into row.choices */
    TY_BIND_NODE,   /* const ty_doc *: anything; NULL if absent. The caller looks into it */
} ty_bind_type;

typedef struct ty_bind_row {
    const char *key;
    ty_bind_type type;
    size_t offset;              /* offsetof the field */
    const char *fallback;       /* default, as one would write it in YAML; NULL: zero, false, NULL, first choice */
    bool required;              /* absence is an error (TY_E_MISSING_KEY) */
    double min, max;            /* INT and FLOAT, inclusive; both 0: no limits */
    bool above_min;             /* min itself is not allowed */
    const char *const *choices; /* CHOICE: NULL-terminated */
    const char *help;           /* one line */
    const char *form;           /* NODE: what it may be, for help: "an integer, or auto" */
} ty_bind_row;

/* Fills every row's field of *out. `map` may be NULL or a null: all defaults, and required keys are missing. `what`
 * names the map in messages: `unknown key "x" in "data"`; "" at the top. origin (may be NULL) receives for each row the
 * node the value came from, NULL for a default. An explicit null counts as absent. Fails at the first fault, in file
 * order; what is missing comes last. */
int ty_bind(const ty_bind_row *rows, size_t n_rows, const char *what, const ty_doc *map, void *out,
            const ty_doc **origin, ty_error *err);

/* Where a value came from, for --origin: "train.yaml:4", `hyperparameter "lr"`, "default". Returns out. */
const char *ty_bind_origin_text(const ty_doc *origin, char *out, size_t n);

/* Appends the table as help, one row a line: key, type with limits, default, help. */
int ty_bind_help(const ty_bind_row *rows, size_t n_rows, int indent, ty_buf *out);

#endif
