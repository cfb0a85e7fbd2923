/* hf_files.c - see hf_files.h. */
#include "compiler/import/huggingface/hf_files.h"

#include "base/file.h"
#include "base/json.h"
#include "compiler/import/huggingface/hf_config.h"

#include <string.h>

#define TOKENIZER "tokenizer.json"
#define PICTURES  "preprocessor_config.json"

/* As save_pretrained() of tokenizers, image processors and generation settings names them. */
static const char *const companions[] = {
    TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "bpe.codes",
    "chat_template.jinja",
    "generation_config.json",
    "processor_config.json",
    PICTURES,
};

const char **hf_files_list(const char *folder, ty_arena *a, int *n)
{
    const char **list = TY_NEW_ARRAY(a, const char *, sizeof companions / sizeof *companions);
    *n = 0;
    for (size_t i = 0; i < sizeof companions / sizeof *companions; i++) {
        const char *path = ty_arena_printf(a, "%s/%s", folder, companions[i]);
        if (ty_file_size(path) >= 0)
            list[(*n)++] = path;
    }
    return list;
}

/* How many positions a network has, by any of the names in use; 0: it does not say. */
static int read_positions(const ty_doc *config, int64_t *out, ty_error *err)
{
    static const char *const keys[] = {"max_position_embeddings", "n_positions"};
    *out = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (ty_doc_find(config, keys[i]))
            return hf_config_size(config, keys[i], 1, out, err);
    return 0;
}

static int read_channels(const ty_doc *d, double out[3], ty_error *err)
{
    for (size_t i = 0; i < 3; i++)
        if (ty_doc_float(ty_doc_at(d, ty_doc_len(d) == 1 ? 0 : i), &out[i], err) < 0)
            return -1;
    return 0;
}

/* image_mean and image_std, of one channel or three. */
static int read_pictures(const char *path, ty_arena *a, ty_model_preparation *out, ty_error *err)
{
    ty_doc *d;
    if (ty_json_read(a, path, NULL, &d, err) < 0)
        return -1;
    const ty_doc *mean = ty_doc_find(d, "image_mean"), *std = ty_doc_find(d, "image_std");
    size_t n = ty_doc_len(mean);
    if ((n != 1 && n != 3) || ty_doc_len(std) != n)
        return 0;
    out->has_normalization = true;
    return read_channels(mean, out->mean, err) < 0 ? -1 : read_channels(std, out->std, err);
}

int hf_files_prepare(const char *folder, const ty_doc *config, ty_arena *a, ty_model_preparation *out, ty_error *err)
{
    const char *tokenizer = ty_arena_printf(a, "%s/%s", folder, TOKENIZER);
    const char *pictures = ty_arena_printf(a, "%s/%s", folder, PICTURES);
    *out = (ty_model_preparation){.tokenizer = ty_file_size(tokenizer) >= 0 ? tokenizer : NULL};
    if (read_positions(config, &out->max_length, err) < 0)
        return -1;
    return ty_file_size(pictures) < 0 ? 0 : read_pictures(pictures, a, out, err);
}
