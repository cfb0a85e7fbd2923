"""zoo_models.py - the zoo's models: random, and small where their libraries let them be. Each is a function that gives the model, its
inputs, the output that counts (None: the only one) and what else its forward takes."""
import torch
import torchvision.models as v
import transformers as t

WORDS, LENGTH, ROWS, CLASSES = 61, 12, 4, 5


class Only(torch.nn.Module):
    """One output of a model, and inputs by position."""

    def __init__(self, model, names, output, more):
        super().__init__()
        self.model, self.names, self.output, self.more = model, names, output, more

    def forward(self, *inputs):
        out = self.model(**dict(zip(self.names, inputs)), **self.more)
        return out if self.output is None else out[self.output] if isinstance(out, dict) else getattr(out, self.output)


def ids(low=1, length=LENGTH):
    return torch.randint(low, WORDS, (ROWS, length))


def ones():
    return torch.ones(ROWS, LENGTH, dtype=torch.int64)


def image(size=64):
    return torch.randn(ROWS, 3, size, size)


def vision(make, size=64, **settings):
    return lambda: (make(num_classes=CLASSES, **settings), {"x": image(size)}, None, {})


def segmentation(make, **settings):
    name = "input" if make is v.segmentation.lraspp_mobilenet_v3_large else "x"
    return lambda: (make(weights=None, weights_backbone=None, num_classes=CLASSES, **settings), {name: image()}, "out", {})


def video(make):
    return lambda: (make(num_classes=CLASSES), {"x": torch.randn(ROWS, 3, 8, 32, 32)}, None, {})


TINY = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=WORDS, attn_implementation="eager",
            pad_token_id=0, bos_token_id=1, eos_token_id=2)
PLAIN = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, attn_implementation="eager", num_labels=CLASSES)
PICTURE = dict(PLAIN, image_size=32, patch_size=8)


def words(make, config, output="logits", masked=False, **settings):
    """Of tokens; masked: with attention_mask."""
    return lambda: (make(config(**settings)), {"input_ids": ids(), **({"attention_mask": ones()} if masked else {})}, output,
                    {"use_cache": False} if getattr(config(**settings), "use_cache", None) is not None else {})


def classes(make, config, **settings):
    return words(make, config, masked=True, **dict(TINY, num_labels=CLASSES, **settings))


def causal(make, config, **settings):
    return words(make, config, **dict(TINY, use_cache=False, tie_word_embeddings=False, **settings))


def t5(length, head, masked=False):
    """masked: one sequence is shorter."""
    mask = torch.ones(ROWS, length, dtype=torch.int64)
    mask[0, length * 3 // 4:] = 0
    return lambda: (t.T5ForConditionalGeneration(t.T5Config(d_model=32, d_kv=head, d_ff=64, num_layers=2, num_heads=4, vocab_size=WORDS,
                                                            relative_attention_num_buckets=8, use_cache=False)),
                    {"input_ids": ids(length=length), "decoder_input_ids": ids(length=length), **({"attention_mask": mask} if masked else {})}, "logits",
                    {"use_cache": False})


def picture(make, config, size=32, **settings):
    return lambda: (make(config(num_labels=CLASSES, **settings)), {"pixel_values": image(size)}, "logits", {})


MODELS = {  # name: model, inputs, output (None: the only one), what else its forward takes
    "alexnet": vision(v.alexnet), "vgg11_bn": vision(v.vgg11_bn, 32), "squeezenet1_1": vision(v.squeezenet1_1), "resnet18": vision(v.resnet18),
    "resnext50_32x4d": vision(v.resnext50_32x4d), "densenet121": vision(v.densenet121),
    "googlenet": vision(v.googlenet, 96, aux_logits=False, init_weights=False), "inception_v3": vision(v.inception_v3, 128, aux_logits=False, init_weights=False),
    "shufflenet_v2_x0_5": vision(v.shufflenet_v2_x0_5), "mobilenet_v2": vision(v.mobilenet_v2), "mobilenet_v3_small": vision(v.mobilenet_v3_small),
    "mnasnet0_5": vision(v.mnasnet0_5), "efficientnet_b0": vision(v.efficientnet_b0), "efficientnet_v2_s": vision(v.efficientnet_v2_s),
    "regnet_y_400mf": vision(v.regnet_y_400mf), "convnext_tiny": vision(v.convnext_tiny),
    "vit": vision(v.VisionTransformer, 32, image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64),
    "swin_t": vision(v.swin_t), "swin_v2_t": vision(v.swin_v2_t),
    "maxvit": vision(v.MaxVit, 64, input_size=(64, 64), stem_channels=16, partition_size=2, block_channels=[16, 32], block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0),
    "fcn_resnet50": segmentation(v.segmentation.fcn_resnet50), "deeplabv3_mobilenet": segmentation(v.segmentation.deeplabv3_mobilenet_v3_large),
    "lraspp_mobilenet": segmentation(v.segmentation.lraspp_mobilenet_v3_large),
    "r3d_18": video(v.video.r3d_18), "r2plus1d_18": video(v.video.r2plus1d_18),
    "roberta": classes(t.RobertaForSequenceClassification, t.RobertaConfig, max_position_embeddings=20),
    "albert": classes(t.AlbertForSequenceClassification, t.AlbertConfig, embedding_size=16),
    "electra": classes(t.ElectraForSequenceClassification, t.ElectraConfig, embedding_size=16),
    "deberta_v2": classes(t.DebertaV2ForSequenceClassification, t.DebertaV2Config, max_position_embeddings=20, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "mpnet": classes(t.MPNetForSequenceClassification, t.MPNetConfig, max_position_embeddings=20),
    "modernbert": classes(t.ModernBertForSequenceClassification, t.ModernBertConfig, cls_token_id=1, sep_token_id=2),
    "bert_tokens": classes(t.BertForTokenClassification, t.BertConfig), "bert_words": classes(t.BertForMaskedLM, t.BertConfig),
    "llama": causal(t.LlamaForCausalLM, t.LlamaConfig, num_key_value_heads=2), "mistral": causal(t.MistralForCausalLM, t.MistralConfig, num_key_value_heads=2),
    "qwen2": causal(t.Qwen2ForCausalLM, t.Qwen2Config, num_key_value_heads=2),
    "qwen3": causal(t.Qwen3ForCausalLM, t.Qwen3Config, num_key_value_heads=2, head_dim=8),
    "gemma": causal(t.GemmaForCausalLM, t.GemmaConfig, num_key_value_heads=1, head_dim=8),
    "gemma2": causal(t.Gemma2ForCausalLM, t.Gemma2Config, num_key_value_heads=2, head_dim=8),
    "phi": causal(t.PhiForCausalLM, t.PhiConfig), "phi3": causal(t.Phi3ForCausalLM, t.Phi3Config),
    "opt": causal(t.OPTForCausalLM, t.OPTConfig, ffn_dim=64, word_embed_proj_dim=32, max_position_embeddings=20),
    "gpt_neox": causal(t.GPTNeoXForCausalLM, t.GPTNeoXConfig), "bloom": causal(t.BloomForCausalLM, t.BloomConfig, n_head=4),
    "mixtral": causal(t.MixtralForCausalLM, t.MixtralConfig, num_key_value_heads=2, num_local_experts=4),
    "mamba": words(t.MambaForCausalLM, t.MambaConfig, hidden_size=32, num_hidden_layers=2, vocab_size=WORDS, state_size=4, use_cache=False, pad_token_id=0),
    "bart": lambda: (t.BartForConditionalGeneration(t.BartConfig(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                                                 encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=WORDS, max_position_embeddings=20, use_cache=False,
                                                                 attn_implementation="eager", pad_token_id=0, bos_token_id=1, eos_token_id=2)),
                     {"input_ids": ids(), "decoder_input_ids": ids()}, "logits", {"use_cache": False}),
    "deit": picture(t.DeiTForImageClassification, t.DeiTConfig, **{k: x for k, x in PICTURE.items() if k != "num_labels"}),
    "beit": picture(t.BeitForImageClassification, t.BeitConfig, **{k: x for k, x in PICTURE.items() if k != "num_labels"}, use_relative_position_bias=True),
    "beit_tiles": picture(t.BeitForImageClassification, t.BeitConfig, 64, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                          image_size=64, patch_size=8, use_relative_position_bias=True, attn_implementation="eager"),
    "t5": t5(LENGTH, 8), "t5_tiles": t5(72, 16), "t5_tiles_masked": t5(72, 16, masked=True),
    "dinov2": picture(t.Dinov2ForImageClassification, t.Dinov2Config, **{k: x for k, x in PICTURE.items() if k not in ("num_labels", "intermediate_size")}),
    "swin": picture(t.SwinForImageClassification, t.SwinConfig, image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, attn_implementation="eager"),
    "convnext_v2": picture(t.ConvNextV2ForImageClassification, t.ConvNextV2Config, hidden_sizes=[16, 32], depths=[1, 1], num_stages=2),
    "mobilevit": picture(t.MobileViTForImageClassification, t.MobileViTConfig, 64, image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 16, 16, 24, 32, 32, 48]),
    "segformer": picture(t.SegformerForSemanticSegmentation, t.SegformerConfig, 64, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16),
    "poolformer": picture(t.PoolFormerForImageClassification, t.PoolFormerConfig, 64, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]),
    "wav2vec2": lambda: (t.Wav2Vec2ForSequenceClassification(t.Wav2Vec2Config(**dict(PLAIN, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
                                                                                    num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, classifier_proj_size=16,
                                                                                    apply_spec_augment=False))),
                         {"input_values": torch.randn(ROWS, 400)}, "logits", {}),
    "whisper": lambda: (t.WhisperForConditionalGeneration(t.WhisperConfig(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                                                          encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=WORDS, num_mel_bins=8, max_source_positions=20,
                                                                          max_target_positions=20, use_cache=False, attn_implementation="eager", pad_token_id=0, bos_token_id=1,
                                                                          eos_token_id=2, decoder_start_token_id=1, suppress_tokens=[], begin_suppress_tokens=[])),
                        {"input_features": torch.randn(ROWS, 8, 40), "decoder_input_ids": ids()}, "logits", {"use_cache": False}),
}
