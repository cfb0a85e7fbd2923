#!/usr/bin/env python3
"""Makes the cases below `cases/`: recurrent layers, attention and operations of keras.ops, trained by Keras 3.15.

    python make.py [CASE...]       needs TensorFlow and Keras

A case is laid out as those that tests/train-cases reads. All branches of a model end in one output, so that a fault in
any of them shows in the loss.
"""
import io, json, os, sys, zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import keras
from keras import layers as L, ops

HERE = os.path.dirname(os.path.abspath(__file__))
B, T, D = 4, 5, 3
STEPS, RATE = 3, 0.05


def joined(parts):
    """Two numbers of each branch: of all its elements, and of all in their order. What follows sees no mask."""
    seen = []
    for p in keras.tree.flatten(parts):
        n = int(np.prod(p.shape[1:]))
        flat = ops.reshape(p, (-1, n))
        seen += [ops.tanh(ops.mean(flat, axis=1)), ops.tanh(ops.mean(ops.cumsum(flat, axis=1), axis=1) * (2 / n))]
    return L.Dense(6, name="out")(ops.stack(seen, axis=-1))


def recurrent():
    x = L.Input((T, D), name="x")
    d = L.Input((4, 2), name="d")
    y = []
    y.append(L.LSTM(4)(x))
    y.append(L.LSTM(3, return_sequences=True, go_backwards=True)(x))
    y.append(L.LSTM(3, use_bias=False, unroll=True)(x))
    y.append(L.LSTM(2, recurrent_activation="hard_sigmoid", activation="elu", return_sequences=True)(x))
    y.append(L.GRU(4, return_sequences=True)(x))
    y.append(L.GRU(3, reset_after=False)(x))
    y.append(L.GRU(3, use_bias=False, go_backwards=True)(x))
    y.append(L.GRU(2, activation="relu", reset_after=False, go_backwards=True, return_sequences=True)(x))
    y.append(L.GRU(2, activation="softsign", recurrent_activation="sigmoid")(x))
    y.append(L.SimpleRNN(3)(x))
    y.append(L.SimpleRNN(3, activation="relu", return_sequences=True, go_backwards=True)(x))
    y.append(L.SimpleRNN(2, activation=None, use_bias=False)(x))
    s, h, c = L.LSTM(4, return_state=True, return_sequences=True)(x)
    y += [s, h, c]
    y.append(L.LSTM(4, go_backwards=True)(d, initial_state=[h, c]))
    g, gh = L.GRU(3, return_state=True)(x)
    y += [gh, L.SimpleRNN(3)(d, initial_state=gh)]
    y.append(L.RNN(L.LSTMCell(3), return_sequences=True)(x))
    y += L.RNN([L.GRUCell(3), L.LSTMCell(2), L.LSTMCell(2), L.SimpleRNNCell(4)], return_state=True, go_backwards=True,
               return_sequences=True)(x)
    for mode in "concat", "sum", "mul", "ave":
        y.append(L.Bidirectional(L.LSTM(2, return_sequences=mode != "mul"), merge_mode=mode)(x))
    y += L.Bidirectional(L.GRU(2, return_sequences=True), merge_mode=None)(x)
    y += L.Bidirectional(L.LSTM(2, return_state=True))(x)
    y.append(L.Bidirectional(L.LSTM(3, return_sequences=True),
                             backward_layer=L.LSTM(3, return_sequences=True, go_backwards=True, activation="relu"))(x))
    y.append(L.TimeDistributed(L.Dense(2, activation="tanh"))(x))
    y.append(L.TimeDistributed(L.SimpleRNN(2))(L.Reshape((2, 2, 2))(d)))
    y.append(L.TimeDistributed(L.BatchNormalization(momentum=0.8))(x))
    return keras.Model([x, d], joined([p for p in y]))


def masked():
    x = L.Input((T, D), name="x")
    ids = L.Input((T,), dtype="int32", name="ids")
    m = L.Masking(0.0)(x)
    e = L.Embedding(7, 3, mask_zero=True, name="words")(ids)
    y = []
    y.append(L.LSTM(4)(m))
    y.append(L.LSTM(3, return_sequences=True)(e))
    y.append(L.LSTM(3, return_sequences=True, go_backwards=True)(m))
    y += L.LSTM(3, return_state=True)(e)
    y.append(L.GRU(4)(m))
    y.append(L.GRU(3, return_sequences=True, reset_after=False, go_backwards=True)(e))
    y += L.GRU(2, return_state=True, return_sequences=True)(m)
    y.append(L.GRU(2, activation="elu", return_sequences=True)(e))
    y.append(L.SimpleRNN(3, go_backwards=True)(e))
    y.append(L.SimpleRNN(3, activation="relu", return_sequences=True)(L.LSTM(2, return_sequences=True)(m)))
    y.append(L.RNN([L.GRUCell(3), L.LSTMCell(2)], return_sequences=True, zero_output_for_mask=True)(m))
    y.append(L.RNN(L.SimpleRNNCell(2), go_backwards=True)(e))
    y.append(L.Bidirectional(L.LSTM(2, return_sequences=True))(e))
    y.append(L.Bidirectional(L.GRU(2), merge_mode="sum")(m))
    y.append(L.Bidirectional(L.SimpleRNN(2, return_sequences=True, activation="softplus"), merge_mode="ave")(e))
    y.append(L.LSTM(2)(L.TimeDistributed(L.Dense(3))(m)))
    y.append(L.LSTM(2)(e, initial_state=[L.GRU(2)(m), L.GRU(2)(e)]))
    return keras.Model([x, ids], joined(y))


def attention():
    x = L.Input((T, 6), name="x")
    v = L.Input((4, 5), name="v")
    ids = L.Input((T,), dtype="int32", name="ids")
    z = L.Input((2, 3, 2, 4), name="z")
    e = L.Embedding(7, 6, mask_zero=True, name="words")(ids)
    f = L.Embedding(7, 6, mask_zero=True, name="others")(ids)
    y = []
    y.append(L.MultiHeadAttention(2, 3)(x, x))
    y.append(L.MultiHeadAttention(3, 2, value_dim=4, use_bias=False)(x, v))
    y.append(L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    y.append(L.MultiHeadAttention(2, 2, output_shape=(2, 3))(x, v, v, use_causal_mask=True))
    y += L.MultiHeadAttention(2, 3)(x, x, return_attention_scores=True)
    y.append(L.MultiHeadAttention(2, 3, use_gate=True, sliding_window=2)(x, x))
    y.append(L.MultiHeadAttention(2, 3, attention_axes=(2, 3), output_shape=5)(z, z))
    y.append(L.MultiHeadAttention(2, 3, attention_axes=2)(z, z))
    a = L.MultiHeadAttention(2, 3)(e, e, use_causal_mask=True)
    y += [L.GRU(2)(a), L.GRU(2)(L.Add()([e, a])), L.GRU(2)(L.LayerNormalization()(e))]
    y += L.MultiHeadAttention(2, 3)(f, f, return_attention_scores=True)
    lower = np.tril(np.ones((T, T), "bool"), 1)
    y.append(L.MultiHeadAttention(2, 3)(x, x, attention_mask=lower[None]))
    g = L.Embedding(7, 6, mask_zero=True, name="third")(ids)
    u = L.Embedding(7, 6, mask_zero=True, name="fourth")(ids)
    y.append(L.GRU(2)(L.GroupQueryAttention(3, 4, 2)(g, g)))
    y.append(L.GroupQueryAttention(2, 4, 1, use_bias=False)(x, x, use_causal_mask=True))
    y.append(L.Attention()([x, x]))
    y.append(L.Attention(use_scale=True)([x, e], use_causal_mask=True))
    y.append(L.GRU(2)(L.Attention(score_mode="concat", use_scale=True)([g, u])))
    y += L.AdditiveAttention()([x, u], return_attention_scores=True)
    y.append(L.AdditiveAttention(use_scale=False)([x, x, x]))
    y.append(L.EinsumDense("abc,cd->abd", output_shape=(T, 4), bias_axes="d", activation="relu")(x))
    y.append(L.EinsumDense("...x,xy->...y", output_shape=3, bias_axes="y")(z))
    y.append(L.EinsumDense("ab...,bc->ac...", output_shape=3, bias_axes="c")(x))
    y.append(L.EinsumDense("abcd,dce->abe", output_shape=(T, 3))(ops.reshape(x, (-1, T, 2, 3))))
    y.append(L.EinsumDense("abc,bcd->bad", output_shape=(None, 3), bias_axes="bd")(x)) if False else None
    return keras.Model([x, v, ids, z], joined([p for p in y if p is not None]))


def operations():
    x = L.Input((4, 6), name="x")
    k = L.Input((4,), dtype="int32", name="k")
    a = L.Dense(6, name="a")(x)
    b = L.Dense(6, name="b")(x)
    p = ops.softplus(b) + 0.5
    i = ops.cast(k, "int32")
    y = [a + b, a - 2, 3 * a, a / p, 1.5 - b, ops.power(p, 1.5), 2.0 ** a, a % p, a // p, -a, ops.mod(k, 3) * 1.0]
    y += [ops.maximum(a, b), ops.minimum(a, 0.0), ops.maximum(x, x), ops.absolute(a), ops.sign(a), ops.square(a)]
    y += [ops.exp(a), ops.log(p), ops.sqrt(p), ops.rsqrt(p), ops.log1p(p), ops.expm1(a), ops.log2(p), ops.log10(p)]
    y += [ops.sin(a), ops.cos(a), ops.tan(a * 0.3), ops.tanh(a), ops.sinh(a), ops.cosh(a), ops.arctan(a)]
    y += [ops.arcsin(a * 0.1), ops.arccos(b * 0.1), ops.arcsinh(a), ops.arccosh(p + 1), ops.arctanh(a * 0.1)]
    y += [ops.arctan2(a, b), ops.erf(a), ops.logaddexp(a, b), ops.hypot(a, p), ops.reciprocal(p), ops.round(x, 1)]
    y += [ops.clip(a, -0.5, 0.7), ops.floor(x), ops.ceil(x), ops.trunc(x), ops.nan_to_num(a)]
    y += [ops.where(a > b, a, 0.25), ops.where(ops.logical_and(x > 0, k[:, :, None] > 1), b, a)]
    y += [ops.cast(ops.logical_or(x < 0, ops.logical_not(x <= 0.5)), "float32"), ops.cast(ops.equal(k, 2), "float32")]
    y += [ops.divide_no_nan(a, ops.cast(k, "float32")[:, :, None])]
    y += [ops.sum(a, axis=1), ops.sum(a, axis=(1, 2), keepdims=True), ops.mean(a, axis=-1), ops.max(a, axis=1)]
    y += [ops.min(b, axis=[1, 2]), ops.max(ops.relu(a), axis=2), ops.prod(p, axis=1), ops.var(a, axis=1), ops.std(p, axis=2)]
    y += [ops.logsumexp(a, axis=-1), ops.norm(a, axis=-1), ops.norm(a, ord=1, axis=1), ops.any(x > 1, axis=1) * 1.0]
    y += [ops.all(x > -1, axis=2) * 1.0, ops.argmax(x, axis=-1) * 1.0, ops.argmin(x, axis=1, keepdims=True) * 0.5]
    y += [ops.cumsum(a, axis=1), ops.cumprod(p, axis=2), ops.sort(a, axis=-1), ops.argsort(x, axis=1) * 1.0]
    y += list(ops.top_k(a, 3)[:1]) + [ops.average(a, axis=2), ops.count_nonzero(k, axis=1)[:, None] * 1.0]
    y += list(ops.moments(a, axes=[1])) + [ops.normalize(a, axis=-1)]
    y += [ops.reshape(a, (-1, 2, 12)), ops.transpose(a, (0, 2, 1)), ops.swapaxes(a, 1, 2), ops.moveaxis(a, 2, 1)]
    y += [ops.expand_dims(a, 1), ops.squeeze(ops.expand_dims(a, -1), -1), a * ops.take(ops.ravel(x[0]), list(range(6)), axis=0)]
    y += [ops.concatenate([a, b], axis=1), ops.stack([a, b], axis=-1), ops.append(a, b, axis=2), ops.hstack([a, b])]
    y += ops.split(a, 2, axis=2) + ops.split(b, [1, 4], axis=-1) + ops.unstack(a, axis=1)
    y += [ops.tile(a, (1, 2, 1)), ops.repeat(b, 2, axis=1), ops.roll(a, 1, axis=2), ops.roll(b, (1, -2), axis=(1, 2))]
    y += [ops.flip(a, axis=1), ops.pad(a, ((0, 0), (1, 2), (0, 1))), ops.pad(b, ((0, 0), (1, 1), (2, 1)), "reflect")]
    y += [ops.pad(b, ((0, 0), (0, 1), (2, 1)), constant_values=0.5), ops.pad(a, ((0, 0), (0, 2), (1, 0)), "symmetric")]
    y += [ops.tril(a), ops.triu(b, 1), a[:, 1:3], a[:, ::-1, 1::2], a[:, -1], a[..., 2], a[:, None, 0], b[:, 3:0:-2]]
    y += [ops.take(a, [2, 0, -1], axis=2), ops.take(a, k[0], axis=2), ops.take_along_axis(a, k[:, :, None], axis=2)]
    y += [ops.one_hot(k, 6), ops.one_hot(k, 6, axis=1), ops.ones_like(a) * b, ops.zeros_like(a), ops.full_like(a, 3) + a]
    y += [ops.matmul(a, ops.transpose(b, (0, 2, 1))), ops.einsum("bij,bkj->bik", a, b), ops.einsum("bij->bj", a)]
    y += [ops.tensordot(a, np.ones((6, 2), "float32"), axes=1), ops.dot(a, np.eye(6, 3, dtype="float32"))]
    y += [ops.dot_product_attention(*[ops.reshape(t, (-1, 4, 2, 3)) for t in (a, b, x)], is_causal=True)]
    y += [ops.relu(a), ops.relu6(a * 4), ops.sigmoid(a), ops.softplus(a), ops.softsign(a), ops.silu(a)]
    y += [ops.log_sigmoid(a), ops.leaky_relu(a, 0.3), ops.hard_sigmoid(a * 3), ops.hard_silu(a * 3), ops.elu(a, 0.7)]
    y += [ops.selu(a), ops.gelu(a), ops.gelu(a, approximate=False), ops.celu(a, 0.8), ops.glu(a), ops.hard_tanh(a)]
    y += [ops.tanh_shrink(a), ops.soft_shrink(a, 0.3), ops.hard_shrink(a, 0.3), ops.threshold(a, 0.1, 0.2)]
    y += [ops.squareplus(a), ops.softmax(a), ops.log_softmax(a, axis=1), ops.stop_gradient(a) * b]
    y += [ops.layer_normalization(a, p[0, 0], axis=-1), ops.rms_normalization(a, axis=-1)] if hasattr(
        ops, "layer_normalization") else []
    y += [ops.batch_normalization(a, np.ones(6, "float32"), np.full(6, 2, "float32"), -1)]
    seg = ops.segment_sum(ops.reshape(a, (-1, 6)), ops.reshape(k, (-1,)), num_segments=6)
    y += [ops.multiply(a, ops.sum(seg)), ops.expand_dims(ops.outer(a[0, 0], np.array([1, 2], "float32")), 0) * a[:, :1, :2]]
    return keras.Model([x, k], joined([t if len(t.shape) > 1 else t[:, None] for t in y]))


def data(name, model, rng):
    out = []
    for t in model.inputs:
        shape = (2, B) + tuple(t.shape[1:])
        if "int" in t.dtype:
            v = rng.integers(0, 6, shape).astype("int32")
            v[:, 0, 3:] = 0
            v[:, 1, :2] = 0
        else:
            v = rng.normal(size=shape).astype("float32")
            if name == "masked":
                v[0, 0, 3:] = v[0, 1, :2] = v[0, 2, 2] = v[1, 3] = 0
        out.append(v)
    return out


def save(model, path):
    from keras.src.saving import saving_lib
    buf = io.BytesIO()
    saving_lib._save_model_to_fileobj(model, buf, weights_format="h5")
    with zipfile.ZipFile(buf) as src, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as dst:
        for n in sorted(src.namelist()):
            dst.writestr(zipfile.ZipInfo(n, (2020, 1, 1, 0, 0, 0)), src.read(n), zipfile.ZIP_DEFLATED)


def make(name, build):
    keras.utils.set_random_seed(7)
    keras.backend.clear_session()
    model = build()
    rng = np.random.default_rng(3)
    for w in model.weights:
        if w.trainable:
            w.assign(w.numpy() + rng.normal(size=w.shape, scale=0.2).astype("float32"))
    model.compile(optimizer=keras.optimizers.SGD(RATE), loss="mse")
    folder = os.path.join(HERE, "cases", name)
    os.makedirs(folder, exist_ok=True)
    xs, y = data(name, model, rng), rng.normal(size=(2, B, 6)).astype("float32")
    for i, x in enumerate(xs):
        np.save(f"{folder}/x{i}.npy", x)
    np.save(f"{folder}/y.npy", y)
    save(model, f"{folder}/model.keras")
    import tensorflow as tf
    losses, norms = [], []
    before = float(model.evaluate([x[0] for x in xs], y[0], batch_size=B, verbose=0))
    for t in range(STEPS):
        batch = [tf.constant(x[t % 2]) for x in xs]
        with tf.GradientTape() as tape:
            loss = model.compute_loss(y=y[t % 2], y_pred=model(batch, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        norms.append(float(np.sqrt(sum(float(tf.reduce_sum(tf.square(tf.convert_to_tensor(g)))) for g in grads))))
        losses.append(float(loss))
        model.optimizer.apply_gradients(zip(grads, model.trainable_variables))
    final = {w.path: w.numpy() for w in model.weights if "float" in w.dtype and "seed" not in w.path}
    np.savez_compressed(f"{folder}/final.npz", **final)
    last = (STEPS - 1) % 2
    after = float(model.evaluate([x[last] for x in xs], y[last], batch_size=B, verbose=0))
    count = int(sum(np.prod(w.shape) for w in model.trainable_weights))
    expected = dict(parameters=count, losses=losses, lr=[RATE] * STEPS, grad_norm=norms, eval_loss_before=before,
                    eval_loss_after=after,
                    tolerance=dict(first_loss=1e-5, losses=2e-5, grad_norm=2e-5, eval_loss_before=1e-5,
                                   eval_loss_after=3e-5,
                                   weights={k: float(max(2e-5 * np.abs(v).max(), 1e-6)) for k, v in final.items()}))
    json.dump(expected, open(f"{folder}/expected.json", "w"), indent=1)
    inputs = ", ".join(f"{t.name}: x{i}.npy" for i, t in enumerate(model.inputs))
    with open(f"{folder}/recipe.yaml", "w") as f:
        f.write(f"name: {name}\nabout: \"{build.__name__}\"\nmodel: model.keras\ninputs: {{{inputs}}}\n"
                f"batch: {B}\nsteps: {STEPS}\naccumulate: 1\ntrain_mode: all\n"
                "loss:\n- {output: out, target: y.npy, type: mse}\nschedule: {type: constant}\n"
                f"optimizer: {{type: sgd, lr: {RATE}, momentum: 0.0, dampening: 0.0, nesterov: false, weight_decay: 0.0}}\n")
    print(name, losses, norms, before)


CASES = dict(recurrent=recurrent, masked=masked, attention=attention, operations=operations)
if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        make(case, CASES[case])
