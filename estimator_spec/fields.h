/* fields.h - the keys of job.yaml as a table, and the values that a file gives them.
 *
 * fields.def has a row a key: where it stands, what it may be, its default, and where it goes in the body of
 * CreateTrainingJob. Reading (here), showing (show.c) and the body (request.c) all go over the same rows.
 */
#ifndef TY_ESTIMATOR_SPEC_FIELDS_H
#define TY_ESTIMATOR_SPEC_FIELDS_H

#include "base/arena.h"
#include "base/bind.h"

typedef enum ty_field_id {
#define FIELD(id, section, key, type, fallback, min, max, form, send, body, help) TY_FIELD_##id,
#include "fields.def"
#undef FIELD
    TY_N_FIELDS
} ty_field_id;

typedef enum ty_field_type {
    TY_FIELD_TEXT,
    TY_FIELD_WORD,
    TY_FIELD_INT,
    TY_FIELD_BOOL,
    TY_FIELD_CHOICE,
    TY_FIELD_NODE,
} ty_field_type;

typedef enum ty_field_send {
    TY_SEND_ALWAYS,
    TY_SEND_GIVEN,
    TY_SEND_TRUE,
    TY_SEND_SECTION,
    TY_SEND_OWN,
} ty_field_send;

typedef struct ty_field_row {
    const char *section, *key;
    ty_field_type type;
    const char *fallback;
    double min, max;
    const char *form;
    ty_field_send send;
    const char *body;
    const char *help;
} ty_field_row;

extern const ty_field_row ty_fields[TY_N_FIELDS];

/* What a row has come to. A whole file is an array of TY_N_FIELDS of them, and so is each channel and group. */
typedef struct ty_field_value {
    const ty_doc *at;   /* where the file gives it; NULL: it does not */
    const char *origin; /* "job.yaml:4", "default", "derived from role", "environment AWS_REGION"; NULL: has no value */
    const char *text;   /* TEXT, WORD, CHOICE; NULL: none */
    int64_t integer;    /* INT */
    const ty_doc *node; /* NODE; NULL: none */
    bool boolean;       /* BOOL */
} ty_field_value;

/* Reads the rows of a section out of its map into values[their ids]; other values stay as they are. node: a map, NULL
 * (defaults), or a scalar, which is the value of the section's first key. what: the section in messages. Refuses
 * unknown keys with the nearest known one, wrong kinds, and values beyond limits or form, each with its place. */
int ty_fields_read(const char *section, const char *what, const ty_doc *node, ty_field_value *values, ty_arena *a,
                   ty_error *err);
/* Whether a value was given or derived, and is no default. */
bool ty_field_is_said(const ty_field_value *v);
/* 0, or the error at d: text is not of a form of forms.def (NULL: any), or has not min to max characters (0, 0: any).
 * what: "key \"role\"". */
int ty_form_check(const char *form, const char *text, double min, double max, const ty_doc *d, const char *what,
                  ty_error *err);
/* Whether text is of a form. */
bool ty_form_fits(const char *form, const char *text);
/* The dotted path of a row: "output.path". Lives in the arena if it has to. */
const char *ty_field_path(ty_field_id id, ty_arena *a);
/* A scalar value as text ("30", "true"); NULL if there is none. */
const char *ty_field_text(ty_field_id id, const ty_field_value *v, ty_arena *a);
/* All rows as help, a section after the other. */
int ty_fields_help(ty_buf *out, ty_error *err);

#endif
