/* cmodel_layer.h - layers of one's own for Keras models: a C source that registers classes (trainyard/model.h, "layers
 * of Keras models"). Private to compiler/import.
 *
 * The source is compiled when it is opened, as a model.c is. Its functions run in this process.
 */
#ifndef TY_COMPILER_IMPORT_CMODEL_LAYER_H
#define TY_COMPILER_IMPORT_CMODEL_LAYER_H

#include "base/doc.h"
#include "compiler/import/cmodel_net.h"

typedef void cmodel_layer_fn(ty_net *net);
typedef struct cmodel_classes cmodel_classes;

int cmodel_classes_open(const char *path, cmodel_classes **out, ty_error *err);
void cmodel_classes_free(cmodel_classes *s);
/* NULL: the source registers none of that name. */
cmodel_layer_fn *cmodel_classes_find(const cmodel_classes *s, const char *class_name);
int cmodel_classes_n(const cmodel_classes *s);
const char *cmodel_classes_name(const cmodel_classes *s, int i);

/* One call of a layer, as whoever builds it sees it. */
typedef struct cmodel_layer {
    void *ctx;
    /* A weight by its name: declared at first, then what it is bound to. */
    ty_val (*weight)(void *ctx, const char *name, const ty_type *type, ty_init init, bool is_buffer);
    const ty_doc *config; /* map */
    const ty_val *in;
    int n_in;
    ty_val out[16]; /* set by the layer */
    int n_out;
    cmodel_classes *defines; /* while classes are registered, else NULL */
} cmodel_layer;

/* Runs the function; net->failed and net->error as cmodel_build() leaves them. Of net the caller sets g, arena, mode,
 * seed, step, n_random and layer. */
void cmodel_layer_build(cmodel_net *net, cmodel_layer_fn *fn);

/* Behind the calls. */
void cmodel_layer_define(ty_net *face, const char *class_name, cmodel_layer_fn *fn);
double cmodel_layer_number(ty_net *face, const char *key, double absent);
const char *cmodel_layer_setting(ty_net *face, const char *key, const char *absent);
ty_shape cmodel_layer_settings(ty_net *face, const char *key);
ty_val cmodel_layer_weight(cmodel_net *net, const cmodel_value *v);

#endif
