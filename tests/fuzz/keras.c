/* Fuzz: configurations of Keras models. What is read is refused, or imported as a sound graph, for training and for
 * evaluation, with every size of batch.
 */
#include "base/json.h"
#include "compiler/import/keras/keras_walk.h"
#include "compiler/ir/verify.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBERS = 1 << 14 };

static void import_model(const ty_keras *m, ty_model_mode mode, int64_t batch)
{
    ty_graph *g = ty_graph_new();
    ty_val *inputs = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, m->n_inputs + 1);
    for (int i = 0; i < m->n_inputs; i++) {
        ty_type t = {.dtype = (uint8_t)m->input[i].dtype, .rank = (uint8_t)m->input[i].rank};
        for (int k = 0; k < t.rank; k++)
            t.dim[k] = m->input[i].dim[k] < 0 ? batch : m->input[i].dim[k];
        inputs[i] = ty_b_input(g, ty_graph_add_input(g, m->input[i].name, t));
    }
    ty_model_binding b = {.mode = mode, .inputs = inputs};
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    ty_model_values values;
    ty_error err = {0};
    if (!ty_graph_failed(g, &err) && ty_keras_import(m, g, &b, &values, &err) == 0) {
        for (int i = 0; i < m->n_outputs; i++)
            ty_graph_add_output(g, m->output[i].name, values.outputs[i], TY_TAPE_EVAL);
        if (ty_graph_verify(g, &err) < 0)
            abort();
    }
    ty_graph_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_arena arena;
    ty_doc *d;
    ty_error err = {0};
    ty_keras *m;
    const ty_doc_limits limits = {.max_depth = 100};
    ty_arena_init(&arena);
    if (ty_json_parse(&arena, "config.json", (const char *)data, size, &limits, &d, &err) == 0) {
        keras_file file = {.path = "fuzz.json", .form = KERAS_CONFIG, .config = d, .version = ""};
        if (keras_open_parsed(&file, NULL, MAX_NUMBERS, &m, &err) == 0) {
            if (m->faults.n_all == 0) {
                import_model(m, TY_MODEL_TRAIN, 2);
                import_model(m, TY_MODEL_EVAL, 1);
            }
            ty_keras_free(m);
        }
    }
    ty_arena_fini(&arena);
    return 0;
}
