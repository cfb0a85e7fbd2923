/* The digits network of examples/digits/model.py, in C: 8x8 grey digits [N,1,8,8] in 0..1 to logits [N,10]. */
#include <trainyard/model.h>

static ty_var block(ty_net *net, ty_var x, int number, int channels)
{
    x = ty_conv(net, ty_text(net, "conv%d", number), x, channels, 3, .padding = 1, .no_bias = true);
    x = ty_batch_norm(net, ty_text(net, "norm%d", number), x);
    return ty_max_pool(net, ty_relu(net, x), 2);
}

void model(ty_net *net)
{
    ty_var x = ty_input(net, "image", "f32[batch,1,8,8]");
    x = block(net, x, 1, 16);
    x = block(net, x, 2, 32);
    x = ty_relu(net, ty_linear(net, "hidden", ty_flatten(net, x, 1), 64));
    x = ty_dropout(net, x, 0.2);
    ty_output(net, "logits", ty_linear(net, "out", x, 10));
}
