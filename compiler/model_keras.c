/* model_keras.c - the row of Keras models in the table of formats. */
#include "compiler/import/keras/keras.h"
#include "compiler/import/keras/keras_model.h"
#include "compiler/import/keras/keras_recipe.h"
#include "compiler/model_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *keras_word(const ty_doc *map, const char *key)
{
    const ty_doc *v = ty_doc_find(map, key);
    return v && v->kind == TY_DOC_STRING ? v->string : NULL;
}

/* Who saved it and when, and what it keeps of an optimizer. */
static void keras_say(ty_model *m, const keras_file *f)
{
    static const char *const places[] = {"optimizer/", "optimizer_weights/"};
    ty_model_fact *fact = TY_NEW_ARRAY(&m->arena, ty_model_fact, 3);
    const char *saved = keras_word(f->metadata, "date_saved"), *name = keras_word(f->config, "class_name");
    int n = 0;
    for (int i = 0; i < f->n_tensors; i++)
        for (size_t k = 0; k < sizeof places / sizeof *places; k++)
            n += strncmp(f->tensor[i].path, places[k], strlen(places[k])) == 0;
    if (name)
        fact[m->n_facts++] = (ty_model_fact){"class", ty_arena_strdup(&m->arena, name)};
    if (saved)
        fact[m->n_facts++] = (ty_model_fact){"saved", ty_arena_strdup(&m->arena, saved)};
    if (n > 0)
        fact[m->n_facts++] = (ty_model_fact){"optimizer state", ty_arena_printf(&m->arena, "%d tensors", n)};
    m->fact = fact;
}

/* compile_config as text of a recipe. */
static int keras_read_recipe(ty_model *m, const ty_keras *k, ty_error *err)
{
    ty_keras_policies policies;
    ty_keras_read_policies(k, &m->arena, &policies);
    const keras_recipe_of in = {ty_keras_file(k)->compile, &policies, m->output, m->n_outputs};
    if (keras_recipe(&in, &m->arena, &m->recipe, err) == 0)
        return 0;
    return ty_error_wrap(err, "%s", ty_keras_file(k)->path);
}

static int keras_open(ty_model *m, const char *path, const char *kept, ty_error *err)
{
    ty_keras *k;
    ty_keras_lists l;
    (void)kept;
    if (ty_keras_open(path, m->choice.layers, &k, err) < 0)
        return -1;
    m->impl = k;
    m->artifact = strcmp(ty_keras_suffix(k), ".h5") == 0 ? "model.h5" : "model.keras";
    ty_keras_list(k, &l);
    snprintf(m->text, sizeof m->text, "%s", l.format);
    m->n_nodes = l.n_calls;
    m->input = l.input;
    m->n_inputs = l.n_inputs;
    m->output = l.output;
    m->n_outputs = l.n_outputs;
    m->weight = l.weight;
    m->n_weights = l.n_weights;
    m->running = l.running;
    keras_say(m, ty_keras_file(k));
    return keras_read_recipe(m, k, err);
}

static void keras_close(void *impl)
{
    ty_keras_free(impl);
}

static int keras_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                        ty_error *err)
{
    return ty_keras_import(m->impl, g, b, values, err);
}

static int keras_check(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    return ty_keras_faults(m->impl, g, b, faults, max);
}

static int keras_reseed(ty_model *m, uint64_t seed, ty_error *err)
{
    return ty_keras_reseed(m->impl, seed, err);
}

static int sink_file(void *to, const void *bytes, size_t n, ty_error *err)
{
    return ty_file_writer_add(to, bytes, n, err);
}

static int keras_write(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                       ty_error *err)
{
    (void)path;
    return ty_keras_write(m->impl, find, ctx, NULL, sink_file, w, err);
}

static int keras_write_trained(const ty_model *m, const char *path, ty_file_writer *w, ty_find_weight *find, void *ctx,
                               const ty_model_moments *moments, ty_error *err)
{
    (void)path;
    return ty_keras_write(m->impl, find, ctx, moments, sink_file, w, err);
}

const model_format ty_model_keras = {.matches = keras_file_matches,
                                     .has_recipes = true,
                                     .open = keras_open,
                                     .close = keras_close,
                                     .import = keras_import,
                                     .check = keras_check,
                                     .write = keras_write,
                                     .write_trained = keras_write_trained,
                                     .reseed = keras_reseed};
