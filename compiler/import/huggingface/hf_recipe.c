/* hf_recipe.c - see hf_recipe.h. */
#include "compiler/import/huggingface/hf_recipe.h"

#include <string.h>

#define CLASSES "loss: {softmax_cross_entropy: {logits: logits}}\nmetrics: [accuracy]\n"
#define TRAINER                                         \
    "optimizer: {adamw: {lr: 5e-5, weight_decay: 0}}\n" \
    "schedule: {linear: {}}\n"                          \
    "clip: {global_norm: 1.0}\n"                        \
    "epochs: 3\n"                                       \
    "batch_size: 8\n"

/* problem_type, or what Transformers takes it for: one label is a number, more are classes. */
static bool says(const ty_doc *config, const char *problem)
{
    const ty_doc *d = ty_doc_find(config, "problem_type");
    return d && d->kind == TY_DOC_STRING && strcmp(d->string, problem) == 0;
}

static const char *of_classes(int64_t labels, const ty_doc *config)
{
    if (says(config, "multi_label_classification"))
        return "loss: {binary_cross_entropy_with_logits: {logits: logits}}\n" TRAINER;
    if (labels == 1 || says(config, "regression"))
        return "loss: {mse: {output: logits}}\nmetrics: [mse]\n" TRAINER;
    return CLASSES TRAINER;
}

const char *hf_recipe(hf_task task, int64_t labels, const ty_doc *config)
{
    switch (task) {
    case HF_NO_TASK:
        return NULL;
    case HF_CLASSES:
        return of_classes(labels, config);
    case HF_TOKENS:
        return CLASSES TRAINER;
    case HF_WORDS:
    case HF_NEXT:
    case HF_TEXT:
        return "loss: {softmax_cross_entropy: {logits: logits}}\nmetrics: [perplexity]\n" TRAINER;
    case HF_QUESTIONS:
        return "loss:\n"
               "  - {softmax_cross_entropy: {logits: start_logits, labels: start_positions, weight: 0.5}}\n"
               "  - {softmax_cross_entropy: {logits: end_logits, labels: end_positions, weight: 0.5}}\n" TRAINER;
    }
    return NULL;
}
