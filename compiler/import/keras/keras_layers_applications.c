/* keras_layers_applications.c - layers that networks of keras.applications bring along (keras/src/applications/):
 * ConvNeXt's LayerScale, InceptionResNetV2's CustomScaleLayer. Their module is Keras', so that a class of somebody
 * else's that is called so is not taken for them.
 */
#include "compiler/import/keras/keras.h"

/* x gamma, gamma [projection_dim] along the last axis */
void keras_create_layer_scale(keras_call *c)
{
    int64_t n = keras_int(c, "projection_dim", 0);
    if (c->failed)
        return;
    if (n < 1) {
        keras_fail_key(c, "projection_dim", "1 or more");
        return;
    }
    keras_add_weight(c, &(keras_spec){.label = "variable", .rank = 1, .dim = {n}, .initializer = "init_values"});
}

void keras_call_layer_scale(keras_call *c)
{
    keras_set(c, 0, ty_b_mul(c->g, keras_float(c, c->in[0]), keras_var(c, "variable")));
}

/* a + scale b */
void keras_call_custom_scale(keras_call *c)
{
    double scale = keras_number(c, "scale", 1);
    if (c->failed)
        return;
    if (c->n_in != 2) {
        keras_fail(c, TY_E_SHAPE, "expected two inputs, found %d", c->n_in);
        return;
    }
    ty_val scaled = ty_b_mul_s(c->g, keras_float(c, c->in[1]), scale);
    keras_set(c, 0, ty_b_add(c->g, keras_float(c, c->in[0]), scaled));
}
