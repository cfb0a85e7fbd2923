/* command_model.c - `trainyard model VERB FILE`: what is in a model file, what differs between two, and one as another.
 * Each verb is in a file of its own. */
#include "entrypoint/command_model.h"

#include "entrypoint/verbs.h"

static const ty_option options[TY_N_MODEL_OPTIONS] = {
    [TY_MODEL_ALL] = {"--all", NULL, "info: every layer and weight; diff: also weights that are the same", false},
    [TY_MODEL_TOLERANCE] = {"--tolerance", "X", "diff: weights that differ by no more than X count as the same", false},
    [TY_MODEL_BATCH] = {"--batch", "N", "convert: rows of a batch, fixed in the file (default: left free)", false},
    [TY_MODEL_DIM] = {"--dim", "NAME=N", "convert: size of another free dimension", true},
    [TY_MODEL_OPSET] = {"--opset", "N", "convert: version of ONNX's operators, 17 to 23 (default 20)", false},
    [TY_MODEL_SIGNATURE] = {"--signature", "NAME", "info, convert: of a TensorFlow model: which (default: its own)",
                            false},
    [TY_MODEL_LAYERS] = {"--layers", "FILE", "info, convert: C source of layers whose classes a Keras file names",
                         false},
    [TY_MODEL_ARCHITECTURE] = {"--architecture", "CLASS",
                               "info, convert: of a Hugging Face folder: the class that is meant", false},
    [TY_MODEL_JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

#define BIT    TY_VERB_TAKES
#define CHOICE (BIT(TY_MODEL_SIGNATURE) | BIT(TY_MODEL_LAYERS) | BIT(TY_MODEL_ARCHITECTURE))

static const ty_verb verbs[] = {
    {"info", "one file", 1, BIT(TY_MODEL_ALL) | CHOICE | BIT(TY_MODEL_JSON), ty_model_info},
    {"diff", "two files", 2, BIT(TY_MODEL_ALL) | BIT(TY_MODEL_TOLERANCE) | BIT(TY_MODEL_JSON), ty_model_diff},
    {"convert", "two files", 2,
     BIT(TY_MODEL_BATCH) | BIT(TY_MODEL_DIM) | BIT(TY_MODEL_OPSET) | CHOICE | BIT(TY_MODEL_JSON), ty_model_convert},
};

ty_model_choice ty_model_choice_given(const ty_arguments_given *given)
{
    return (ty_model_choice){.signature = given->value[TY_MODEL_SIGNATURE],
                             .layers = given->value[TY_MODEL_LAYERS],
                             .architecture = given->value[TY_MODEL_ARCHITECTURE]};
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    return ty_verbs_run(&ty_command_model, verbs, sizeof verbs / sizeof verbs[0],
                        "write `trainyard model info FILE`, or diff or convert in place of info", given, a, err);
}

static const char page[] =
    "info     what is in a file: format, inputs and outputs, layers, weights with shapes and bytes, its own training\n"
    "         settings (as a recipe), and what else it says: signatures, state of an optimizer. Of a .safetensors "
    "file\n"
    "         weights alone: nothing in it says what is computed with them\n"
    "diff     what differs between two files, whatever their formats: weights by name (also of .safetensors), with "
    "the\n"
    "         greatest difference, its size against the weight's, and both norms; inputs, outputs, training settings.\n"
    "         Exit status 0: the same, 1: they differ\n"
    "convert  a file as another, by the suffix of its name:\n"
    "           .onnx         any model, as it is when it is applied. The batch is left free where nothing of the "
    "model\n"
    "                         depends on it but shapes; otherwise the file has a fixed one, and that is said\n"
    "           .safetensors  the weights under their names\n\n"
    "--json of info has these keys, and may get more: schema 1, model, format, bytes, nodes, facts [what, text], "
    "inputs\n"
    "and outputs [name, dtype, shape], weights [name, dtype, shape, bytes, role: trained, running, frozen or "
    "constant],\n"
    "numbers, weight_bytes, recipe (null), warnings [text, help], trainable, layers (as `trainyard check` has them; "
    "null\n"
    "if the model cannot be trained). Of diff: schema 1, same, differences [what, first, second], weights [name, "
    "status:\n"
    "same, differs, shape, first or second (only there), max_abs, relative, norm_first, norm_second]. Of convert: "
    "schema\n"
    "1, file, format, opset, batch (null: free), why_static (null), nodes, initializers, unused_weights, bytes.\n\n"
    "    trainyard model info model.keras\n"
    "    trainyard model diff model.keras run/model/model.keras\n"
    "    trainyard model convert model.keras model.onnx\n";

const ty_command_row ty_command_model = {"model",
                                         "VERB FILE [FILE]",
                                         "look into a model file, compare two, write one as ONNX",
                                         page,
                                         options,
                                         TY_N_MODEL_OPTIONS,
                                         1,
                                         3,
                                         false,
                                         false,
                                         run};
