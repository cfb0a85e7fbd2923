/* A GPT in C: pre-norm blocks, learned positions, token table and output layer tied, as Radford et al. 2019.
 *
 * Bytes of ASCII text [batch, 64] to logits of the next one [batch, 64, 128]. B batch, T time, C channels, V
 * vocabulary.
 */
#include <trainyard/model.h>

enum { T = 64, C = 64, HEADS = 4, LAYERS = 2, V = 128 };

static ty_var block(ty_net *net, ty_var x, int layer) /* [B,T,C] */
{
    ty_var n = ty_layer_norm(net, ty_text(net, "h.%d.ln_1", layer), x);
    x = ty_add(net, x, ty_multi_head_attention(net, ty_text(net, "h.%d.attn", layer), n, HEADS, .causal = true));
    n = ty_layer_norm(net, ty_text(net, "h.%d.ln_2", layer), x);
    n = ty_gelu_tanh(net, ty_linear(net, ty_text(net, "h.%d.mlp.up", layer), n, 4 * C));
    return ty_add(net, x, ty_linear(net, ty_text(net, "h.%d.mlp.down", layer), n, C));
}

void model(ty_net *net)
{
    ty_var ids = ty_input(net, "ids", "i64[batch,64]");
    ty_var table = ty_parameter(net, "wte.weight", ty_dims(V, C), ty_normal(0, 0.02));
    ty_var places = ty_parameter(net, "wpe.weight", ty_dims(T, C), ty_normal(0, 0.02));
    ty_var x = ty_add(net, ty_gather(net, table, ids, 0), places); /* [B,T,C] + [T,C] */
    for (int layer = 0; layer < LAYERS; layer++)
        x = block(net, x, layer);
    x = ty_layer_norm(net, "ln_f", x);
    ty_output(net, "logits", ty_matmul(net, x, ty_transpose(net, table, ty_dims(1, 0)))); /* [B,T,V] */
}
