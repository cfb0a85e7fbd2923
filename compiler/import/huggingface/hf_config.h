/* hf_config.h - config.json of a Hugging Face folder: what is asked of it, and the file that is written back.
 *
 * Keys, meanings and defaults are those of the classes in transformers/models/NAME/configuration_NAME.py (Hugging Face
 * Transformers 5). Getters fail at the value, with its line.
 */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_CONFIG_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_CONFIG_H

#include "base/buf.h"
#include "base/doc.h"

#define HF_CONFIG_NAME "config.json"

/* NULL where the key is missing or null. */
const ty_doc *hf_config_find(const ty_doc *config, const char *key);
/* A size from 1 to 2^31. absent: what a missing or null key means; 0: it must be there. */
int hf_config_size(const ty_doc *config, const char *key, int64_t absent, int64_t *out, ty_error *err);
/* Any number; a missing or null key is `absent`. */
int hf_config_number(const ty_doc *config, const char *key, double absent, double *out, ty_error *err);
int hf_config_flag(const ty_doc *config, const char *key, bool absent, bool *out, ty_error *err);
int hf_config_text(const ty_doc *config, const char *key, const char *absent, const char **out, ty_error *err);

/* How many classes a head tells apart: entries of id2label, else num_labels, else 2 (PretrainedConfig's). */
int hf_config_labels(const ty_doc *config, int64_t *out, ty_error *err);

/* What the written file says otherwise than the one that was read. */
typedef struct hf_config_change {
    const char *architecture; /* the class: "BertForSequenceClassification" */
    int64_t labels;           /* 0: the head has no classes of its own */
    const char *const *names; /* [labels]: of the classes; NULL: not known */
} hf_config_change;

/* The file's text again: architectures, and id2label and label2id where names of classes are known or their number is
 * another, and the element type, which is float32. All else as it was. */
int hf_config_write(const ty_doc *config, const hf_config_change *change, ty_buf *out, ty_error *err);

#endif
