/* command_model.h - what the verbs of `trainyard model` share: one table of options, of which each verb takes some.
 * Private to command_model*.c. */
#ifndef TY_ENTRYPOINT_COMMAND_MODEL_H
#define TY_ENTRYPOINT_COMMAND_MODEL_H

#include "compiler/compiler.h"
#include "entrypoint/command.h"

enum {
    TY_MODEL_ALL,
    TY_MODEL_TOLERANCE,
    TY_MODEL_BATCH,
    TY_MODEL_DIM,
    TY_MODEL_OPSET,
    TY_MODEL_SIGNATURE,
    TY_MODEL_LAYERS,
    TY_MODEL_ARCHITECTURE,
    TY_MODEL_JSON,
    TY_N_MODEL_OPTIONS
};

/* What --signature, --layers and --architecture say; NULL: the model's own. */
ty_model_choice ty_model_choice_given(const ty_arguments_given *given);

/* One verb each; words[1], words[2] are the files. The exit status, or -1 with *err set. */
int ty_model_info(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_model_info_tensors(const char *path, const ty_arguments_given *given, ty_error *err); /* of .safetensors */
int ty_model_diff(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_model_convert(const ty_arguments_given *given, ty_arena *a, ty_error *err);

#endif
