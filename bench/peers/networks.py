"""Networks that people bring, of torchvision, Hugging Face and PyTorch's own layers in the size in which they are used, with
random weights and without dropout, for bench/networks: networks.py export NAME DIR | train NAME DIR
[eager|channels_last|compile] [float32|bfloat16] [STEPS].

export writes DIR/model.onnx, in the form that the README asks for, DIR/x0.npy ... and y.npy, [batches, rows, ...];
train makes the same network, trains it by SGD with momentum on the same batches, and prints what measure.py says;
bfloat16: under autocast, over float32 weights; channels_last: of pictures and films, else as eager.
"""
import logging
import os
import sys
import warnings

import numpy as np
import torch
import torchvision.models as v
import transformers as t

import measure

BATCHES, PICTURES, SEQUENCES = 2, 8, 4
LEARNING_RATE, STEPS = 1e-3, 6  # bench/ours.c says the same of "network"


class Logits(torch.nn.Module):
    """A model of Hugging Face with inputs by position and one output."""

    def __init__(self, model, names, more):
        super().__init__()
        self.model, self.names, self.more = model, names, more

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), **self.more).logits


def vision(make, size=224, rows=PICTURES, **settings):
    shape = (rows, 3, *size) if isinstance(size, tuple) else (rows, 3, size, size)
    return lambda: (make(num_classes=1000, **settings), {"x": ("f", shape)}, 1000, False)


def words(make, config, length, classes=None, padded=False, **settings):
    """Classes of whole sequences, or else the next token at each place; padded: of sequences of different lengths."""
    settings = {"attn_implementation": "sdpa", **settings,
                **({"num_labels": classes} if classes else {"use_cache": False})}

    def network():
        built = config(**settings)
        inputs = {"input_ids": (built.vocab_size, (SEQUENCES, length)),
                  **({"attention_mask": ("mask", (SEQUENCES, length))} if padded else {})}
        model = Logits(make(built), list(inputs), {} if classes else {"use_cache": False})
        return model, inputs, classes or built.vocab_size, not classes
    return network


class Segments(torch.nn.Module):
    """A network of torchvision that names the class of each point, classes last."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"].permute(0, 2, 3, 1)


def segments(make, rows=2, size=224, classes=21):
    return lambda: (Segments(make(weights=None, weights_backbone=None, num_classes=classes)),
                    {"x": ("f", (rows, 3, size, size))}, classes, True)


class Recurrent(torch.nn.Module):
    """Tokens or series through a recurrent layer to classes, of each place or of the last."""

    def __init__(self, make, wide, units, classes, everywhere, tokens=None, **settings):
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, wide) if tokens else torch.nn.Identity()
        self.rnn = make(wide, units, batch_first=True, **settings)
        self.head = torch.nn.Linear(units * (2 if self.rnn.bidirectional else 1), classes)
        self.everywhere = everywhere

    def forward(self, x):
        y = self.rnn(self.embedding(x))[0]
        return self.head(y if self.everywhere else y[:, -1])


class Translator(torch.nn.Module):
    """PyTorch's encoder and decoder; both read the same tokens."""

    def __init__(self, tokens):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(tokens, 512), torch.nn.Linear(512, tokens)
        self.both = torch.nn.Transformer(batch_first=True)

    def forward(self, x):
        h, mask = self.embedding(x), torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.both(h, h, tgt_mask=mask, tgt_is_causal=True))


class Both(torch.nn.Module):
    """An encoder and a decoder of Hugging Face; both read the same tokens."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(input_ids=x, decoder_input_ids=x, use_cache=False).logits


class Keywords(torch.nn.Module):
    """A second of sound: frames of 32 ms, their spectra, 64 bands, convolutions over time and bands."""

    def __init__(self, classes, bands=64):
        super().__init__()
        self.register_buffer("window", torch.hann_window(512))
        self.register_buffer("bands", torch.rand(bands, 257) * (torch.rand(bands, 257) < 0.05))
        widths = [1, 32, 64, 128, 128]
        self.stages = torch.nn.Sequential(*(part for a, b in zip(widths, widths[1:]) for part in (
            torch.nn.Conv2d(a, b, 3, stride=1 if a == 1 else 2, padding=1, bias=False), torch.nn.BatchNorm2d(b),
            torch.nn.ReLU())))
        self.head = torch.nn.Linear(widths[-1], classes)

    def forward(self, x):
        power = torch.stft(x, 512, 160, window=self.window, center=False, return_complex=False).square().sum(-1)
        heard = torch.log(self.bands @ power + 1e-3)
        return self.head(self.stages(heard.unsqueeze(1)).mean((2, 3)))


def translator(make, config, length, **settings):
    def network():
        built = config(use_cache=False, **settings)
        return Both(make(built)), {"x": (built.vocab_size, (SEQUENCES, length))}, built.vocab_size, True
    return network


def recurrent(make, rows, length, wide, classes, tokens=None, everywhere=True, **settings):
    inputs = {"x": (tokens, (rows, length)) if tokens else ("f", (rows, length, wide))}
    return lambda: (Recurrent(make, wide, classes=classes, everywhere=everywhere, tokens=tokens, **settings), inputs,
                    classes, everywhere)


def pictures(make, config, **settings):
    return lambda: (Logits(make(config(num_labels=1000, attn_implementation="sdpa", **settings)), ["pixel_values"], {}),
                    {"pixel_values": ("f", (PICTURES, 3, 224, 224))}, 1000, False)


LLAMA = dict(vocab_size=32000, hidden_size=512, intermediate_size=1376, num_hidden_layers=8, num_attention_heads=8,
             num_key_value_heads=4, tie_word_embeddings=False)

NETWORKS = {  # name: model, {input: (kind, shape)}, classes, whether each place has a label
    "resnet18": vision(v.resnet18), "resnext50_32x4d": vision(v.resnext50_32x4d), "densenet121": vision(v.densenet121),
    "shufflenet_v2_x1_0": vision(v.shufflenet_v2_x1_0), "mobilenet_v2": vision(v.mobilenet_v2),
    "mobilenet_v3_large": vision(v.mobilenet_v3_large), "efficientnet_b0": vision(v.efficientnet_b0),
    "regnet_y_400mf": vision(v.regnet_y_400mf), "convnext_tiny": vision(v.convnext_tiny),
    "vit_b_16": vision(v.vit_b_16), "swin_t": vision(v.swin_t), "swin_v2_t": vision(v.swin_v2_t),
    "r3d_18": vision(v.video.r3d_18, (8, 112, 112), 4),
    "deeplabv3_resnet50": segments(v.segmentation.deeplabv3_resnet50),
    "lraspp_mobilenet_v3": segments(v.segmentation.lraspp_mobilenet_v3_large, 4),
    "deit_small": pictures(t.DeiTForImageClassification, t.DeiTConfig, hidden_size=384, num_attention_heads=6,
                           intermediate_size=1536),
    "beit_small": pictures(t.BeitForImageClassification, t.BeitConfig, hidden_size=384, num_attention_heads=6,
                           intermediate_size=1536, use_relative_position_bias=True),
    "distilbert": words(t.DistilBertForSequenceClassification, t.DistilBertConfig, 128, classes=2),
    "bert_padded": words(t.BertForSequenceClassification, t.BertConfig, 128, classes=2, padded=True),
    "electra_small": words(t.ElectraForSequenceClassification, t.ElectraConfig, 128, classes=2),
    "llama_60m": words(t.LlamaForCausalLM, t.LlamaConfig, 256, **LLAMA),
    "mistral_60m": words(t.MistralForCausalLM, t.MistralConfig, 256, sliding_window=64, padded=True, **LLAMA),
    "qwen3_60m": words(t.Qwen3ForCausalLM, t.Qwen3Config, 256, head_dim=64, **LLAMA),
    "gemma2_60m": words(t.Gemma2ForCausalLM, t.Gemma2Config, 256, head_dim=64, attn_implementation="eager",
                        **LLAMA),
    "pythia_70m": words(t.GPTNeoXForCausalLM, t.GPTNeoXConfig, 256, hidden_size=512, num_hidden_layers=6,
                        num_attention_heads=8, intermediate_size=2048, vocab_size=50304),
    "lstm_ptb": recurrent(torch.nn.LSTM, 20, 35, 650, 10000, 10000, units=650, num_layers=2),
    "gru_words": recurrent(torch.nn.GRU, 32, 128, 256, 5000, 5000, units=512, num_layers=2),
    "bilstm_tagger": recurrent(torch.nn.LSTM, 32, 64, 300, 20, 20000, units=256, num_layers=2, bidirectional=True),
    "lstm_speech": recurrent(torch.nn.LSTM, 8, 200, 80, 35, everywhere=False, units=512, num_layers=5),
    "keywords": lambda: (Keywords(35), {"x": ("f", (32, 16000))}, 35, False),
    "t5_small": translator(t.T5ForConditionalGeneration, t.T5Config, 128),
    "transformer_base": lambda: (Translator(8000), {"x": (8000, (SEQUENCES, 64))}, 8000, True),
}

# PyTorch's older exporter cannot write them, or writes tables that are no weights as if they were
TRACED_NOT = ["llama_60m", "mistral_60m", "qwen3_60m", "gemma2_60m", "pythia_70m", "keywords"]


CHANCES = ["p", "drop_prob", "dropout", "attention_dropout", "activation_dropout", "layerdrop", "dropout_prob"]


def without_chance(model):
    for module in model.modules():
        for name in CHANCES:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def numbers(rng, kind, shape):
    """Normal ones, tokens, or ones up to the end of each sequence, behind three quarters: PyTorch's attentions differ in
    what they make of a place that sees nothing."""
    if kind == "mask":
        ends = rng.integers(shape[-1] * 3 // 4 + 1, shape[-1] + 1, shape[:-1])
        return (np.arange(shape[-1]) < ends[..., None]).astype(np.int64)
    return rng.standard_normal(shape, dtype=np.float32) if kind == "f" else rng.integers(3, kind, shape)


def network(name):
    torch.manual_seed(0)
    model, inputs, classes, everywhere = NETWORKS[name]()
    without_chance(model)
    rng = np.random.default_rng(0)
    xs = {k: numbers(rng, kind, (BATCHES, *shape)) for k, (kind, shape) in inputs.items()}
    shape = next(iter(inputs.values()))[1]
    places = (shape[0], *shape[2:]) if len(shape) == 4 else shape  # of pictures, all of their points
    y = rng.integers(0, classes, (BATCHES, *places) if everywhere else (BATCHES, shape[0]))
    return model, xs, y


def export(name, folder):
    model, xs, y = network(name)
    os.makedirs(folder, exist_ok=True)
    for i, x in enumerate(xs.values()):
        np.save(f"{folder}/x{i}.npy", x)
    np.save(f"{folder}/y.npy", y)
    inputs, path = tuple(torch.from_numpy(x[0]) for x in xs.values()), f"{folder}/model.onnx"
    names = {"input_names": list(xs), "output_names": ["logits"]}
    if name in TRACED_NOT:
        torch.onnx.export(model.eval(), inputs, path, dynamo=True, optimize=False, opset_version=18,
                          external_data=False, verbose=False, **names)
    else:
        torch.onnx.export(model.train(), inputs, path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, opset_version=17,
                          dynamic_axes={k: {0: "batch"} for k in [*xs, "logits"]}, **names)


def train(name, folder, how="eager", precision="float32", steps=STEPS):
    model, _, _ = network(name)
    n = sum(f.startswith("x") for f in os.listdir(folder))
    xs = [torch.from_numpy(np.load(f"{folder}/x{i}.npy")) for i in range(n)]
    y = torch.from_numpy(np.load(f"{folder}/y.npy"))
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(xs[0][0].dim())
    if how == "channels_last" and last:
        model, xs = model.to(memory_format=last), [[b.contiguous(memory_format=last) for b in x] for x in xs]
    opt = torch.optim.SGD(model.train().parameters(), lr=LEARNING_RATE, momentum=0.9)

    def loss_of(labels, *inputs):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            out = model(*inputs).float()
        return torch.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), labels.reshape(-1))

    if how == "compile":
        loss_of = torch.compile(loss_of)

    def step(i):
        i %= len(y)
        opt.zero_grad(set_to_none=True)
        loss = loss_of(y[i], *(x[i] for x in xs))
        loss.backward()
        opt.step()
        return loss.detach()

    measure.run(step, int(steps), work=name, peer="torch " + how)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    {"export": export, "train": train}[sys.argv[1]](*sys.argv[2:])
