"""hugging_face_tf.py TRAINYARD [NAME ...]: BERT, DistilBERT, GPT-2, ViT and T5, small and random from their configurations, as TensorFlow
SavedModels: imported, attention found, applied, two steps trained, written back and loaded by TensorFlow. Needs tensorflow, tf-keras and
transformers before 5, the last with models of TensorFlow. One line a model."""
import json, os, sys, tempfile

os.environ.update(TF_USE_LEGACY_KERAS="1", USE_TORCH="0", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf
import transformers as t
from beside import command

WORDS, LENGTH, ROWS = 61, 12, 4
LEARNING_RATE = 0.1
passed = failed = 0
small = dict(vocab_size=WORDS)
ids, image = ((LENGTH,), "int32"), ((3, 16, 16), "float32")
MODELS = {  # name: model, {input: shape and type}, {composite: at least}
    "bert": lambda: (t.TFBertForSequenceClassification(t.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=3, **small)),
                     {"input_ids": ids, "attention_mask": ids}, {"attention": 2, "layer norm": 5}),
    "distilbert": lambda: (t.TFDistilBertForSequenceClassification(t.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, num_labels=3, **small)),
                           {"input_ids": ids, "attention_mask": ids}, {"attention": 2, "layer norm": 5}),
    "gpt2": lambda: (t.TFGPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=16, use_cache=False, **small)), {"input_ids": ids}, {"attention": 2, "layer norm": 5}),
    "vit": lambda: (t.TFViTForImageClassification(t.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
                                                             num_labels=3)), {"pixel_values": image}, {"attention": 2, "layer norm": 5}),
    "t5": lambda: (t.TFT5ForConditionalGeneration(t.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=WORDS, use_cache=False)),
                   {"input_ids": ids, "attention_mask": ids, "decoder_input_ids": ids}, {"attention": 6, "RMS norm": 9}),
}


def expect_near(what, wanted, found):
    if not np.allclose(wanted, found, rtol=1e-4, atol=1e-5 * np.abs(wanted).max() + 1e-6):
        raise RuntimeError(f"{what}: differ by {np.abs(wanted - found).max():.3g} of {np.abs(wanted).max():.3g}")


def losses_there(model, data, labels):
    """Plain gradient descent. The weights of the model stay trained."""
    losses = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            logits = model(**data, training=False).logits
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        losses.append(float(loss))
        weights = model.trainable_variables
        for w, d in zip(weights, tape.gradient(loss, weights, unconnected_gradients="zero")):
            w.assign_sub(LEARNING_RATE * tf.convert_to_tensor(d))
    return losses


def judge(name, folder):
    tf.random.set_seed(5)
    rng = np.random.default_rng(5)
    model, inputs, least = MODELS[name]()
    data = {k: rng.integers(1, WORDS, (ROWS, *shape)).astype(kind) if kind == "int32" else rng.normal(size=(ROWS, *shape)).astype(kind)
            for k, (shape, kind) in inputs.items()}
    if "attention_mask" in data:
        data["attention_mask"] = np.ones((ROWS, LENGTH), "int32")
    wanted = model(**data, training=False).logits.numpy()
    call = tf.function(lambda **x: {"logits": model(**x, training=False).logits})
    call = call.get_concrete_function(**{k: tf.TensorSpec((None, *shape), kind, name=k) for k, (shape, kind) in inputs.items()})
    path = os.path.join(folder, "model")
    tf.saved_model.save(model, path, {"serving_default": call})
    found = json.loads(command("check", path, "--json"))["composites"]
    for what, n in least.items():
        if sum(v for k, v in found.items() if what in k) < n:
            raise RuntimeError(f"fewer than {n} {what}: {found}")
    words = []
    for k, v in data.items():
        np.save(os.path.join(folder, k + ".npy"), v)
        words += ["--input", f"{k}={folder}/{k}.npy"]
    command("run", path, *words, "--output-dir", folder)
    expect_near("outputs", wanted, np.load(os.path.join(folder, "logits.npy")))
    labels = rng.integers(0, wanted.shape[-1], size=wanted.shape[:-1])
    np.savez(os.path.join(folder, "data.npz"), label=labels, **data)
    with open(os.path.join(folder, "train.yaml"), "w") as f:
        f.write(f"model: model\nbatch_size: {ROWS}\nmax_steps: 2\nlog_every: 1\nloss: softmax_cross_entropy\n"
                f"optimizer: {{sgd: {{lr: {LEARNING_RATE}}}}}\ndata: {{train: {{path: data.npz, shuffle: false}}}}\n")
    command("train", "train.yaml", "--fresh", "--epochs=2", folder=folder)
    losses = [json.loads(line) for line in open(os.path.join(folder, "run/output/data/metrics.jsonl"))]
    losses = [row["loss"] for row in losses if row.get("split") == "train" and "loss" in row]
    there = losses_there(model, data, labels)
    if len(losses) != 2 or not np.allclose(losses, there, rtol=1e-4):
        raise RuntimeError(f"losses: {losses}, TensorFlow's {there}")
    written = tf.saved_model.load(os.path.join(folder, "run/model/saved_model")).signatures["serving_default"]
    expect_near("written", model(**data, training=False).logits.numpy(), written(**{k: tf.constant(v) for k, v in data.items()})["logits"].numpy())
    return found, losses


for name in sys.argv[2:] or MODELS:
    with tempfile.TemporaryDirectory() as folder:
        try:
            print("ok", name, *judge(name, folder), flush=True)
            passed += 1
        except Exception as e:
            failed += 1
            print(f"FAILED {name}: {str(e)[:1500]}", flush=True)
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
