/* model_print.h - what commands say of a model: values, layers; as text on stdout or as members of a JSON object. */
#ifndef TY_ENTRYPOINT_MODEL_PRINT_H
#define TY_ENTRYPOINT_MODEL_PRINT_H

#include "base/json.h"
#include "compiler/compiler.h"

/* "f32[batch,28,28]"; returns out. */
const char *ty_model_value_text(const ty_model_value *v, char *out, size_t n);
/* One line each: what, name, type. at: ty_model_input and the like. */
void ty_model_print_values(const char *what, int n, const ty_model *m,
                           const ty_model_value *(*at)(const ty_model *m, int i));
/* A table; without `all` those that have weights or compute much, the rest in one line. */
void ty_model_print_layers(const ty_model_summary *s, bool all);
double ty_model_total_flop(const double *flop); /* of all kinds of work */

/* Lists of maps, under these keys or "layers". */
void ty_model_put_values(ty_json_writer *w, const ty_model *m, const char *key, int n,
                         const ty_model_value *(*at)(const ty_model *m, int i));
void ty_model_put_layers(ty_json_writer *w, const ty_model_summary *s);
/* An item of a list of weights. role: what training does with it; NULL where nothing says so. */
void ty_model_put_weight(ty_json_writer *w, const ty_model_value *v, size_t n_bytes, const char *role);

#endif
