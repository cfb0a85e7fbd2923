/* hf_vit.h - what networks share that read a picture as a row of patches: ViT, DeiT, DINOv2.
 *
 * Names are those of files, which Transformers 5 writes as 4 did; modules in its sources are called otherwise
 * (encoder.layer.0.attention.attention.query in a file is layers.0.attention.q_proj there: conversion_mapping.py).
 */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_VIT_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_VIT_H

#include "compiler/import/huggingface/hf_net.h"

typedef struct hf_vit_rows {
    int64_t image, patch;     /* image_size and patch_size where config.json has none */
    const char *const *token; /* rows in front of the patches: "cls_token"; ends with NULL */
    bool starts_at_0;         /* these rows and positions, where they start anew */
} hf_vit_rows;

/* [B, tokens + patches, hidden_size]: the module "embeddings" of a network. */
ty_var hf_vit_embed(hf_net *n, const hf_vit_rows *rows);
/* The module "attention" of a layer. */
ty_var hf_vit_attend(hf_net *n, ty_var x);
/* hidden_size. */
int64_t hf_vit_size(hf_net *n);

#endif
