/* Fuzz: config.json of Hugging Face's folders, and the index of their files beside it, from the first NUL on. What can
 * be opened is imported, for training and for evaluation. Numbers above 32 would only take time. */
#include "base/file.h"
#include "compiler/import/huggingface/hf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/ty-huggingface-XXXXXX";

static void remove_folder(void)
{
    ty_file_remove_tree(folder, NULL);
}

static void put(const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(bytes, 1, n, out) != n || fclose(out) != 0)
        abort();
}

static bool is_small(const uint8_t *data, size_t n)
{
    int number = 0;
    for (size_t i = 0; i < n; i++) {
        number = isdigit(data[i]) ? 10 * number + data[i] - '0' : 0;
        if (number > 32)
            return false;
    }
    return true;
}

static void import(const ty_hf *h, ty_model_mode mode)
{
    const ty_cmodel_lists *l = ty_hf_list(h);
    ty_graph *g = ty_graph_new();
    ty_val *inputs = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, l->n_inputs + 1);
    for (int i = 0; i < l->n_inputs; i++) {
        ty_type type = {.dtype = (uint8_t)l->input[i].dtype, .rank = (uint8_t)l->input[i].rank};
        for (int k = 0; k < type.rank; k++)
            type.dim[k] = l->input[i].dim[k] < 0 ? 3 : l->input[i].dim[k];
        inputs[i] = ty_b_input(g, ty_graph_add_input(g, l->input[i].name, type));
    }
    ty_model_binding b = {.mode = mode, .inputs = inputs};
    ty_model_values values;
    ty_error err = {0};
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    if (ty_hf_import(h, g, &b, &values, &err) < 0 && !err.message[0])
        abort();
    ty_graph_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const ty_model_choice choice = {.labels = 0};
    const uint8_t *nul = memchr(data, 0, n);
    size_t n_config = nul ? (size_t)(nul - data) : n;
    ty_buf text;
    ty_hf *h;
    ty_error err = {0};
    if (!is_small(data, n))
        return 0;
    if (strstr(folder, "XXXXXX") && (!mkdtemp(folder) || atexit(remove_folder) != 0))
        abort();
    put("config.json", data, n_config);
    char index[128];
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", folder);
    unlink(index);
    if (nul)
        put("model.safetensors.index.json", nul + 1, n - n_config - 1);
    if (ty_hf_open(folder, &choice, &h, &err) < 0) {
        if (!err.message[0])
            abort();
        return 0;
    }
    import(h, TY_MODEL_TRAIN);
    import(h, TY_MODEL_EVAL);
    ty_buf_init(&text, 1 << 20);
    if (ty_hf_write_config(h, NULL, 0, &text, &err) < 0 && !err.message[0])
        abort();
    ty_buf_fini(&text);
    ty_hf_free(h);
    return 0;
}
