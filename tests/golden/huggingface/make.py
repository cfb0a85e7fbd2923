"""Small random networks of Hugging Face's Transformers, as folders with what they compute.

    python make.py FOLDER [CASE ...]        # needs torch, transformers, safetensors

Each case is a folder: config.json and model.safetensors as save_pretrained() leaves them, and golden.safetensors:
    in.NAME        inputs and labels
    out.NAME       outputs in evaluation
    loss           [1] in training (without dropout)
    stepped.NAME   weights after one step of SGD with learning rate RATE, by their names in model.safetensors
"""
import json
import os
import sys
import tempfile

import torch
import transformers as T
from safetensors.torch import load_file, save_file

RATE = 0.5
WORDS, BATCH, LENGTH = 23, 3, 6
TEXT = dict(vocab_size=WORDS, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            max_position_embeddings=16)
PICTURE = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=8,
               patch_size=4)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def texts(pad=0, types=0, mask=True, length=LENGTH):
    """Words and padding at the right; the first text is whole."""
    ids = torch.randint(3, WORDS, (BATCH, length))
    lengths = [length, length - 2, length - 3]
    seen = torch.tensor([[int(i < n) for i in range(length)] for n in lengths])
    given = {"input_ids": torch.where(seen.bool(), ids, pad)}
    if mask:
        given["attention_mask"] = seen
    if types:
        given["token_type_ids"] = torch.randint(0, types, (BATCH, length))
    return given, seen


def pictures(channels=3, height=8, width=8):
    return {"pixel_values": torch.randn(BATCH, channels, height, width)}


def words_labels(seen):
    labels = torch.randint(0, WORDS, seen.shape)
    return {"labels": torch.where(seen.bool(), labels, -100)}


def labels_for(kind, seen, n):
    if kind == "classes":
        return {"labels": torch.randint(0, n, (BATCH,))}
    if kind == "tokens":
        return {"labels": torch.where(seen.bool(), torch.randint(0, n, seen.shape), -100)}
    if kind == "words":
        return words_labels(seen)
    if kind == "questions":
        return {"start_positions": torch.randint(0, 3, (BATCH,)), "end_positions": torch.randint(0, 3, (BATCH,))}
    return {}


def cross_entropy(logits, labels):
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def loss_of(out, labels):
    """As the recipe of the class says; the next word is a label of its own position, shifted by whoever makes it."""
    if "start_positions" in labels:
        return (cross_entropy(out.start_logits, labels["start_positions"]) +
                cross_entropy(out.end_logits, labels["end_positions"])) / 2
    return cross_entropy(out.logits, labels["labels"])


def stepped(model):
    """Weights after a step as they are saved: names in files are not always those of modules. What has no gradient is
    marked by NaN, and left out."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p - RATE * p.grad if p.grad is not None else p * float("nan"))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = load_file(os.path.join(folder, "model.safetensors"))
    return {"stepped." + name: p for name, p in saved.items() if not p.isnan().any()}


def write(folder, model, given, labels):
    model = model.float()
    for p in model.parameters():
        if p.dim() == 1 or not p.any():  # norms and biases are 1 and 0 at first, and would hide mistakes
            torch.nn.init.uniform_(p, 0.5, 1.5)
    model.save_pretrained(folder)
    golden = {"in." + k: v.contiguous() for k, v in {**given, **labels}.items()}
    with torch.no_grad():
        out = model.eval()(**given)
    for name in ("logits", "start_logits", "end_logits", "last_hidden_state", "pooler_output", "cls_logits",
                 "distillation_logits"):
        if getattr(out, name, None) is not None:
            golden["out." + name] = getattr(out, name).contiguous()
    if labels:
        loss = loss_of(model.train()(**given), labels)
        loss.backward()
        golden["loss"] = loss.detach().reshape(1)
        golden.update(stepped(model))
    save_file(golden, os.path.join(folder, "golden.safetensors"))


CASES = {}


def case(name):
    def add(make):
        CASES[name] = make
        return make
    return add


def text_case(name, config, classes, pad=0, types=0, mask=True, length=LENGTH):
    """classes: {head: (class, kind)}; a folder for each."""
    for head, (cls, kind) in classes.items():
        def make(folder, cls=cls, kind=kind):
            given, seen = texts(pad, types, mask, length)
            settings = config()
            settings.num_labels = 2 if kind == "questions" else 4
            write(folder, cls(settings), given, labels_for(kind, seen, 4))
        CASES[f"{name}-{head}" if head else name] = make


def pair_case(name, cls, classes="words", apart=False, **settings):
    """Of an encoder and a decoder. The decoder's texts are shorter, and padded as well. apart: logits have a table of
    their own, which Transformers 5 has only where a file has it."""
    def make(folder):
        given, _ = texts()
        seen = torch.tensor([[int(i < n) for i in range(5)] for n in (5, 2, 4)])
        if cls is not T.T5EncoderModel:
            given["decoder_input_ids"] = torch.where(seen.bool(), torch.randint(3, WORDS, seen.shape), 0)
        model = cls(T.T5Config(**{**PAIR, **settings}))
        if apart:
            model.lm_head.weight = torch.nn.Parameter(torch.randn(WORDS, 8))
        write(folder, model, given, labels_for(classes, seen, 4))
    CASES[name] = make


def picture_case(name, config, suffix, inputs=pictures):
    """config: of the class that begins as the configuration's does and ends with suffix."""
    def make(folder):
        settings = config()
        settings.num_labels = 4
        cls = getattr(T, type(settings).__name__.removesuffix("Config") + suffix)
        write(folder, cls(settings), inputs(), {} if suffix == "Model" else labels_for("classes", None, 4))
    CASES[name] = make


def heads(prefix, **more):
    get = lambda suffix: getattr(T, prefix + suffix)
    found = {"model": (get("Model"), "none"), "words": (get("ForMaskedLM"), "words"),
             "classes": (get("ForSequenceClassification"), "classes"),
             "tokens": (get("ForTokenClassification"), "tokens"),
             "questions": (get("ForQuestionAnswering"), "questions")}
    return {k: v for k, v in found.items() if k in more.get("only", found)}


text_case("bert", lambda: T.BertConfig(**TEXT, **NO_DROPOUT, initializer_range=0.5), heads("Bert"),
          types=2)
ROBERTA = dict(TEXT, max_position_embeddings=18)
text_case("roberta", lambda: T.RobertaConfig(**ROBERTA, **NO_DROPOUT, type_vocab_size=1,
                                             initializer_range=0.5, layer_norm_eps=1e-5),
          heads("Roberta", only=("words", "classes", "tokens")), pad=1)
text_case("xlm-roberta", lambda: T.XLMRobertaConfig(**ROBERTA, **NO_DROPOUT, type_vocab_size=1,
                                                    initializer_range=0.5), heads("XLMRoberta", only=("classes",)),
          pad=1)
text_case("electra", lambda: T.ElectraConfig(**TEXT, **NO_DROPOUT, embedding_size=4,
                                             initializer_range=0.5),
          heads("Electra", only=("model", "words", "classes")), types=2)

text_case("gpt2", lambda: T.GPT2Config(vocab_size=WORDS, n_embd=8, n_layer=2, n_head=2, n_positions=16, resid_pdrop=0.0,
                                       embd_pdrop=0.0, attn_pdrop=0.0, pad_token_id=0, classifier_dropout=0.0,
                                       initializer_range=0.5, bos_token_id=1, eos_token_id=2),
          {"model": (T.GPT2Model, "none"), "words": (T.GPT2LMHeadModel, "words"),
           "classes": (T.GPT2ForSequenceClassification, "classes"),
           "tokens": (T.GPT2ForTokenClassification, "tokens")}, mask=False)


def decoder(prefix, only=("words",), **more):
    """Llama and its like, with two heads of keys for four of queries."""
    known = {"model": ("Model", "none"), "words": ("ForCausalLM", "words"),
             "classes": ("ForSequenceClassification", "classes"), "tokens": ("ForTokenClassification", "tokens")}
    settings = dict(TEXT, num_attention_heads=4, num_key_value_heads=2, initializer_range=0.5, pad_token_id=0,
                    bos_token_id=1, eos_token_id=2, hidden_size=16, classifier_dropout=0.0)
    settings.update(more)
    config = getattr(T, prefix + "Config")
    text_case(prefix.lower(), lambda: config(**settings),
              {k: (getattr(T, prefix + known[k][0]), known[k][1]) for k in only}, mask=False)


decoder("Llama", ("model", "words", "classes", "tokens"), attention_bias=True, mlp_bias=True,
        rope_parameters=dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                             original_max_position_embeddings=8))
decoder("Mistral", sliding_window=3)
decoder("Qwen2", ("words", "classes"), use_sliding_window=True, sliding_window=3, max_window_layers=1,
        tie_word_embeddings=True)
decoder("Qwen3", head_dim=6, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0))
decoder("Gemma", head_dim=8)
decoder("Granite", embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.5, attention_multiplier=0.4)
decoder("Phi3", rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
        sliding_window=4)
decoder("SmolLM3", num_hidden_layers=3, no_rope_layers=[1, 0, 1])
decoder("Olmo2")
DISTILBERT = dict(vocab_size=WORDS, dim=8, n_layers=2, n_heads=2, hidden_dim=12, max_position_embeddings=16, dropout=0.0,
                  attention_dropout=0.0, seq_classif_dropout=0.0, qa_dropout=0.0, initializer_range=0.5)
text_case("distilbert", lambda: T.DistilBertConfig(**DISTILBERT), heads("DistilBert"))
# The tables of waves are trained too.
text_case("distilbert-waves", lambda: T.DistilBertConfig(**DISTILBERT, sinusoidal_pos_embds=True),
          heads("DistilBert", only=("classes",)))
ALBERT = dict(TEXT, **NO_DROPOUT, embedding_size=4, classifier_dropout_prob=0.0, initializer_range=0.5)
text_case("albert", lambda: T.AlbertConfig(**ALBERT), heads("Albert"), types=2)
# 3 layers in 2 groups: the first has 2 of them.
text_case("albert-groups", lambda: T.AlbertConfig(**{**ALBERT, "num_hidden_layers": 3}, num_hidden_groups=2,
                                                  inner_group_num=2, hidden_act="gelu"),
          heads("Albert", only=("classes",)), types=2)
text_case("albert-apart", lambda: T.AlbertConfig(**ALBERT, tie_word_embeddings=False),
          heads("Albert", only=("words",)), types=2)
# Windows of 3 positions, so that padding may see no word; angles that turn fast.
MODERNBERT = dict(TEXT, num_hidden_layers=4, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1,
                  sep_token_id=2, local_attention=3, initializer_range=0.5)
TURNS = {"full_attention": {"rope_type": "default", "rope_theta": 40.0},
         "sliding_attention": {"rope_type": "default", "rope_theta": 5.0}}
text_case("modernbert", lambda: T.ModernBertConfig(**MODERNBERT, rope_parameters=TURNS), heads("ModernBert"))
text_case("modernbert-biased", lambda: T.ModernBertConfig(
    **MODERNBERT, norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True, decoder_bias=False,
    layer_types=["sliding_attention", "full_attention", "full_attention", "sliding_attention"]),
    heads("ModernBert", only=("words",)))
OLD = dict(global_attn_every_n_layers=2, global_rope_theta=40.0, local_rope_theta=5.0)


def rewrite(folder, without=(), **keys):
    """Changes config.json to what files from elsewhere say."""
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = {k: v for k, v in json.load(f).items() if k not in without}
    with open(path, "w") as f:
        json.dump({**config, **keys}, f, indent=2, sort_keys=True)
        f.write("\n")


@case("modernbert-old-mean")
def modernbert_old(folder):
    """The keys of Transformers 4."""
    given, seen = texts()
    config = T.ModernBertConfig(**MODERNBERT, **OLD, classifier_pooling="mean", num_labels=4)
    write(folder, T.ModernBertForSequenceClassification(config), given, labels_for("classes", seen, 4))
    rewrite(folder, without=("layer_types", "rope_parameters"), **OLD)


text_case("mpnet", lambda: T.MPNetConfig(**ROBERTA, **NO_DROPOUT, initializer_range=0.5), heads("MPNet"), pad=1)
# Of more than 7 positions several distances share a number.
text_case("mpnet-far", lambda: T.MPNetConfig(**{**TEXT, "max_position_embeddings": 42}, **NO_DROPOUT,
                                             initializer_range=0.5), heads("MPNet", only=("classes",)), pad=1, length=40)


@case("mpnet-apart-words")
def mpnet_apart(folder):
    """Two tables in the files where the configuration tells of one: Transformers believes the files."""
    given, seen = texts(pad=1)
    config = T.MPNetConfig(**ROBERTA, **NO_DROPOUT, initializer_range=0.5, tie_word_embeddings=False)
    write(folder, T.MPNetForMaskedLM(config), given, words_labels(seen))
    rewrite(folder, tie_word_embeddings=True)


VIT = dict(PICTURE, **NO_DROPOUT, initializer_range=0.5)
WIDE = dict(VIT, image_size=[8, 13], patch_size=[4, 3], num_channels=1, qkv_bias=False, hidden_act="gelu_new",
            layer_norm_eps=1e-3)
picture_case("vit-model", lambda: T.ViTConfig(**VIT, pooler_output_size=6, pooler_act="gelu"), "Model")
picture_case("vit-classes", lambda: T.ViTConfig(**VIT), "ForImageClassification")
picture_case("vit-wide", lambda: T.ViTConfig(**WIDE), "ForImageClassification", lambda: pictures(1, 8, 13))
picture_case("deit-model", lambda: T.DeiTConfig(**VIT), "Model")
picture_case("deit-classes", lambda: T.DeiTConfig(**VIT), "ForImageClassification")
picture_case("deit-teacher", lambda: T.DeiTConfig(**VIT), "ForImageClassificationWithTeacher")
DINO = {k: v for k, v in VIT.items() if k != "intermediate_size"}
picture_case("dinov2-model", lambda: T.Dinov2Config(**DINO, use_swiglu_ffn=True, mlp_ratio=3), "Model")
picture_case("dinov2-classes", lambda: T.Dinov2Config(**DINO, mlp_ratio=2), "ForImageClassification")
picture_case("dinov2-gated", lambda: T.Dinov2Config(**dict(DINO, num_hidden_layers=1), use_swiglu_ffn=True, mlp_ratio=1,
                                                    use_mask_token=False), "ForImageClassification")
PAIR = dict(vocab_size=WORDS, d_model=8, d_kv=3, d_ff=12, num_layers=2, num_heads=2, dropout_rate=0.0,
            relative_attention_num_buckets=8, relative_attention_max_distance=5)
pair_case("t5-words", T.T5ForConditionalGeneration)
pair_case("t5-gated", T.T5ForConditionalGeneration, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
          num_layers=1, num_decoder_layers=2)
pair_case("t5-apart", T.T5ForConditionalGeneration, apart=True, feed_forward_proj="gated-silu", num_layers=1,
          tie_word_embeddings=False, layer_norm_epsilon=1e-3)
pair_case("t5-model", T.T5Model, "none", num_layers=1)
pair_case("t5-encoder", T.T5EncoderModel, "none")
CONV = dict(num_stages=2, hidden_sizes=[4, 6], depths=[1, 2], patch_size=2, image_size=8, initializer_range=0.5)
picture_case("convnext-model", lambda: T.ConvNextConfig(**CONV), "Model")
picture_case("convnext-classes", lambda: T.ConvNextConfig(**CONV, layer_scale_init_value=0.5, layer_norm_eps=1e-3),
             "ForImageClassification")


def main():
    wanted = sys.argv[2:] or list(CASES)
    for name in wanted:
        torch.manual_seed(sum(map(ord, name)))
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(folder, exist_ok=True)
        CASES[name](folder)
        for file in os.listdir(folder):
            os.chmod(os.path.join(folder, file), 0o644)
        print(name)


if __name__ == "__main__":
    main()
