/* hf_model.h - an open Hugging Face folder, for hf.c, which opens it, and hf_bind.c, which finds its weights. Private
 * to these two.
 */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_MODEL_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_MODEL_H

#include "compiler/import/huggingface/hf.h"
#include "compiler/import/huggingface/hf_net.h"
#include "compiler/import/huggingface/hf_weights.h"

/* A weight that the files do not have. */
typedef struct hf_started {
    int weight; /* its number */
    ty_type type;
    ty_init init;
    uint64_t seed;
    float *out;
} hf_started;

struct ty_hf {
    ty_arena arena;
    const char *folder, *path; /* path: of config.json */
    ty_doc *config;
    hf_net net; /* what every build begins with */
    const char *class_name;
    bool labels_given;
    hf_weights *weights;
    ty_cmodel_lists lists;
    hf_started *started; /* [n_started]: weights that start anew */
    int n_started;
    double started_bytes;
    uint64_t seed; /* that they have started from */
    char format[160];
    ty_model_preparation preparation;
    const char **companion;
    int n_companions;
};

/* Whether the class that is meant has classes to tell apart. */
bool hf_has_classes(const ty_hf *h);
/* Gives every listed weight its numbers: those of the files, or new ones from the seed. net: that was listed. */
int hf_bind(ty_hf *h, const cmodel_net *net, uint64_t seed, ty_error *err);

#endif
