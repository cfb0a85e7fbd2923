/* keras_save.c - a model written again: which weight goes where, and for which the optimizer keeps something. */
#include "compiler/import/keras/keras_walk.h"
#include "compiler/import/keras/keras_write.h"

/* New bytes, or those that the model started from where the file has none. data NULL: as in the file. */
static keras_value save_value(const ty_keras *m, int i, ty_find_weight *find, void *ctx)
{
    const ty_model_value *v = &m->listed[i];
    const keras_weight *w = m->faults.n_all ? NULL : m->weight[i];
    keras_value out = {.path = ty_keras_place(m, i),
                       .name = w ? w->layer->name : NULL,
                       .type = ty_type_make(v->dtype, v->rank, v->dim)};
    out.data = find(ctx, v->name, &out.type);
    if (!out.data && w && !w->tensor)
        out.data = v->data;
    return out;
}

int ty_keras_write(const ty_keras *m, ty_find_weight *find, void *ctx, const ty_model_moments *moments,
                   int (*sink)(void *to, const void *bytes, size_t n, ty_error *err), void *to, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    keras_value *value = TY_NEW_ARRAY(&arena, keras_value, m->n_listed);
    const keras_weight **trained = TY_NEW_ARRAY(&arena, const keras_weight *, m->n_weights);
    int n = 0, n_trained = 0;
    for (int i = 0; i < m->n_listed; i++) {
        value[n] = save_value(m, i, find, ctx);
        n += value[n].data != NULL;
    }
    for (int i = 0; i < m->n_weights; i++) /* in Keras' order, as keras_bind_weights has put them */
        if (m->weight[i]->trainable)
            trained[n_trained++] = m->weight[i];
    int rc = keras_file_write(&m->file, value, n, &(keras_trained){moments, trained, n_trained}, sink, to, err);
    ty_arena_fini(&arena);
    return rc;
}

const char *ty_keras_suffix(const ty_keras *m)
{
    return keras_file_suffix(&m->file);
}
