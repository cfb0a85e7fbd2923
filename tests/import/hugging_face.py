"""hugging_face.py TRAINYARD: BERT, DistilBERT, GPT-2, ViT and T5, small and random from their configurations, as PyTorch's exporter
writes them: imported, attention and norms found, one step trained. Needs torch, onnx, transformers. One line a model."""
import json, os, sys, tempfile
import numpy as np
import torch
import transformers as t
from beside import command

WORDS, LENGTH, ROWS = 61, 12, 4
passed = failed = 0


class Only(torch.nn.Module):
    """One output of a model, and inputs by position."""

    def __init__(self, model, names, output, **more):
        super().__init__()
        self.model, self.names, self.output, self.more = model, names, output, more

    def forward(self, *inputs):
        return getattr(self.model(**dict(zip(self.names, inputs)), **self.more), self.output)


def ids():
    return torch.randint(0, WORDS, (ROWS, LENGTH))


def ones():
    return torch.ones(ROWS, LENGTH, dtype=torch.int64)


small = dict(attn_implementation="eager", vocab_size=WORDS)
MODELS = {  # name: model, inputs, output, {composite: at least}
    "bert": lambda: (t.BertForSequenceClassification(t.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=3, **small)),
                     {"input_ids": ids(), "attention_mask": ones()}, "logits", {"attention": 2, "layer norm": 5}),
    "distilbert": lambda: (t.DistilBertForSequenceClassification(t.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, num_labels=3, **small)),
                           {"input_ids": ids(), "attention_mask": ones()}, "logits", {"attention": 2, "layer norm": 5}),
    "gpt2": lambda: (t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=16, use_cache=False, **small)),
                     {"input_ids": ids()}, "logits", {"attention": 2, "layer norm": 5}),
    "vit": lambda: (t.ViTForImageClassification(t.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
                                                           num_labels=3, attn_implementation="eager")),
                    {"pixel_values": torch.randn(ROWS, 3, 16, 16)}, "logits", {"attention": 2, "layer norm": 5}),
    "t5": lambda: (t.T5ForConditionalGeneration(t.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=WORDS, use_cache=False)),
                   {"input_ids": ids(), "attention_mask": ones(), "decoder_input_ids": ids()}, "logits", {"attention": 6, "RMS norm": 9}),
}


def judge(name, folder):
    torch.manual_seed(5)
    model, inputs, output, least = MODELS[name]()
    model.eval()
    wrapped = Only(model, list(inputs), output, **({"use_cache": False} if name in ("gpt2", "t5") else {}))
    values = tuple(inputs.values())
    with torch.no_grad():
        wanted = wrapped(*values).numpy()
    path = os.path.join(folder, "model.onnx")
    if name == "gpt2":  # the older exporter cannot write it
        torch.onnx.export(wrapped, values, path, input_names=list(inputs), output_names=["logits"], dynamo=True, opset_version=18, verbose=False)
    else:
        torch.onnx.export(wrapped, values, path, input_names=list(inputs), output_names=["logits"], dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE, dynamic_axes={k: {0: "batch"} for k in [*inputs, "logits"]})
    told = json.loads(command("check", path, "--json"))
    found = told["composites"]
    for what, n in least.items():
        have = sum(v for k, v in found.items() if what in k)
        if have < n:
            raise RuntimeError(f"{have} of {n} {what}: {found}")
    words = []
    for k, v in inputs.items():
        np.save(os.path.join(folder, k + ".npy"), v.numpy())
        words += ["--input", f"{k}={folder}/{k}.npy"]
    command("run", path, *words, "--output-dir", folder)
    got = np.load(os.path.join(folder, "logits.npy"))
    if not np.allclose(wanted, got, rtol=1e-4, atol=1e-5 * np.abs(wanted).max() + 1e-6):
        raise RuntimeError(f"outputs differ by {np.abs(wanted - got).max():.3g}")
    labels = np.random.default_rng(1).integers(0, wanted.shape[-1], size=wanted.shape[:-1])
    np.savez(os.path.join(folder, "data.npz"), label=labels, **{k: v.numpy() for k, v in inputs.items()})
    with open(os.path.join(folder, "train.yaml"), "w") as f:
        f.write(f"model: model.onnx\nbatch_size: {ROWS}\nmax_steps: 2\nlog_every: 1\nloss: softmax_cross_entropy\noptimizer: {{sgd: {{lr: 0.1}}}}\n"
                "data: {train: {path: data.npz, shuffle: false}}\n")
    command("train", "train.yaml", "--fresh", "--epochs=2", folder=folder)
    losses = [json.loads(line) for line in open(os.path.join(folder, "run/output/data/metrics.jsonl"))]
    losses = [row["loss"] for row in losses if row.get("split") == "train" and "loss" in row]
    if len(losses) != 2 or not losses[1] < losses[0]:
        raise RuntimeError(f"losses: {losses}")
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
