/* model_format.h - what a format of model files is to compiler/model.c: a row of its table. Private to model.c and to
 * the files of formats (model_keras.c ...).
 */
#ifndef TY_COMPILER_MODEL_FORMAT_H
#define TY_COMPILER_MODEL_FORMAT_H

#include "base/file.h"
#include "compiler/model.h"

typedef struct model_format {
    bool (*matches)(const char *path, const uint8_t *head, size_t n);
    /* Sets impl and the lists. kept: as ty_model_open_kept. */
    int (*open)(ty_model *m, const char *path, const char *kept, ty_error *err);
    void (*close)(void *impl);
    int (*import)(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err);
    int (*check)(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max);
    int (*write)(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                 ty_error *err);
    /* In the place of `write`, for formats with room for moments (NULL: there are none). */
    int (*write_trained)(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                         const ty_model_moments *moments, ty_error *err);
    /* In place of write: makes `path` itself, as a file or a folder, complete or not at all. */
    int (*write_to)(const ty_model *m, const char *path, ty_find_weight *find, void *ctx, ty_error *err);
    bool (*has_data_file)(const ty_model *m); /* NULL: never */
    void (*drop_pages)(const void *impl);     /* NULL: has none to drop */
    bool (*is_mapped)(const void *impl);      /* weights are pages of the file; NULL: if it has pages to drop */
    int (*keep)(const void *impl, const char *folder, ty_error *err); /* NULL: has no code */
    int (*reseed)(ty_model *m, uint64_t seed, ty_error *err);         /* NULL: its weights have their values */
    bool weights_beside; /* what is written has no weights in it: they are in model.safetensors beside it */
    bool has_recipes;    /* files may say how they are trained: ty_model.recipe */
    /* The recipe without opening the model; NULL: it is opened. */
    int (*read_recipe)(const char *path, const ty_model_choice *choice, ty_arena *a, const char **out, ty_error *err);
} model_format;

struct ty_model {
    const model_format *format;
    void *impl;
    char text[160];       /* "onnx opset 18" */
    const char *artifact; /* ty_model_artifact */
    ty_model_value *input, *output, *weight;
    bool *running;          /* one a weight */
    bool own_step;          /* the file's own training step is the training */
    ty_model_choice choice; /* by the caller, before open */
    int n_inputs, n_outputs, n_weights;
    int64_t n_nodes;
    const char *recipe;        /* NULL: the file has no settings of its own */
    const ty_model_fact *fact; /* what else it says */
    int n_facts;
    ty_model_warning *warning;
    int n_warnings;
    const ty_model_preparation *preparation; /* NULL: the file says nothing of it */
    const char **class_name;                 /* [n_classes]: ty_model_name_classes */
    int64_t n_classes;
    const char *const *companion; /* ty_model_companions */
    int n_companions;
    ty_arena arena;
};

struct ty_cmodel_lists;
/* model.c: for formats whose networks functions build (import/cmodel_lists.h). What they declare, and the one fault at
 * which building ends. */
void ty_model_take_lists(ty_model *m, const struct ty_cmodel_lists *l);
int ty_model_first_fault(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max);

/* model_keras.c: a .keras file, HDF5, or a folder or file with a configuration. */
extern const model_format ty_model_keras;
extern const model_format ty_model_tensorflow; /* model_tensorflow.c */
extern const model_format ty_model_onnx;       /* model_onnx.c */
extern const model_format ty_model_cmodel;     /* model_cmodel.c: C source */
extern const model_format ty_model_hf;         /* model_hf.c: a Hugging Face folder */

#endif
