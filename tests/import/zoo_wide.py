"""zoo_wide.py - many more families, each in one form of export: timm, and Hugging Face's for text, sound, pictures, films and series;
networks that begin with a spectrum."""
import torch
import transformers as t
from zoo_models import CLASSES, LENGTH, PICTURE, PLAIN, ROWS, TINY, WORDS, causal, classes, ids, image, ones, picture, words

WIDE = {}  # name: (as in MODELS, form)


def add(form, **models):
    for name, make in models.items():
        WIDE[name] = make, form


def kind(name, suffix):
    """A model of Hugging Face and its configuration."""
    return getattr(t, name + suffix), getattr(t, name + "Config")


def with_mask(model):
    """Some are written only with a mask."""
    def make():
        made, inputs, output, more = model()
        return made, dict(inputs, attention_mask=ones()), output, more
    return make


# ---- text ------------------------------------------------------------------------------------------------------------

def text(name, **settings):
    return classes(*kind(name, "ForSequenceClassification"), **settings)


def without(settings, *names):
    return {k: x for k, x in settings.items() if k not in names}


def boxes():
    return torch.arange(4).repeat(ROWS, LENGTH, 1)


SHORT = dict(max_position_embeddings=20)
add("training", xlm_roberta=text("XLMRoberta", **SHORT), big_bird=text("BigBird", attention_type="original_full", **SHORT),
    deberta=text("Deberta", relative_attention=True, pos_att_type=["c2p", "p2c"], **SHORT), roformer=text("RoFormer", embedding_size=32, **SHORT),
    convbert=text("ConvBert", embedding_size=32, head_ratio=2, conv_kernel_size=3, **SHORT), squeezebert=text("SqueezeBert", embedding_size=32, **SHORT),
    mobilebert=text("MobileBert", embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16, **SHORT), ibert=text("IBert", quant_mode=False, **SHORT),
    ernie=text("Ernie", **SHORT), rembert=text("RemBert", input_embedding_size=16, output_embedding_size=16, **SHORT), megatron_bert=text("MegatronBert", **SHORT),
    distilbert=lambda: (t.DistilBertForSequenceClassification(t.DistilBertConfig(vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=64, num_labels=CLASSES)),
                        {"input_ids": ids(), "attention_mask": ones()}, "logits", {}),
    funnel=lambda: (t.FunnelForSequenceClassification(t.FunnelConfig(vocab_size=WORDS, block_sizes=[1, 1], num_decoder_layers=1, d_model=32, n_head=4, d_head=8, d_inner=64,
                                                                     num_labels=CLASSES)), {"input_ids": ids(), "attention_mask": ones()}, "logits", {}),
    perceiver=lambda: (t.PerceiverForSequenceClassification(t.PerceiverConfig(vocab_size=WORDS, num_latents=4, d_latents=32, d_model=32, num_blocks=1,
                                                                              num_self_attends_per_block=2, num_self_attention_heads=4, num_cross_attention_heads=4,
                                                                              qk_channels=32, v_channels=32, num_labels=CLASSES, **SHORT)),
                       {"inputs": ids(), "attention_mask": ones()}, "logits", {}),
    layoutlm=lambda: (t.LayoutLMForTokenClassification(t.LayoutLMConfig(**TINY, num_labels=CLASSES, max_2d_position_embeddings=32, **SHORT)),
                      {"input_ids": ids(), "bbox": boxes(), "attention_mask": ones()}, "logits", {}),
    layoutlm_v3=lambda: (t.LayoutLMv3ForTokenClassification(t.LayoutLMv3Config(**TINY, num_labels=CLASSES, max_2d_position_embeddings=32, coordinate_size=4, shape_size=8,
                                                                               input_size=32, patch_size=8, **SHORT)),
                         {"input_ids": ids(), "bbox": boxes(), "attention_mask": ones(), "pixel_values": image(32)}, "logits", {}),
    bert_question=lambda: (t.BertForQuestionAnswering(t.BertConfig(**TINY)), {"input_ids": ids(), "attention_mask": ones()}, "start_logits", {}))


# ---- the next token --------------------------------------------------------------------------------------------------

def tokens(name, suffix="ForCausalLM", **settings):
    return with_mask(causal(*kind(name, suffix), **settings))


def with_own_names(name, suffix="ForCausalLM", config=None, **settings):
    """Whose configuration has other names for the usual settings."""
    return with_mask(words(getattr(t, name + suffix), getattr(t, (config or name) + "Config"), vocab_size=WORDS, use_cache=False, **settings))


GPT = dict(n_positions=20, n_embd=32, n_layer=2, n_head=4)
TWO = dict(num_key_value_heads=2)
add("training", gpt_neo=with_own_names("GPTNeo", hidden_size=32, num_layers=2, num_heads=4, intermediate_size=64, attention_types=[[["global", "local"], 1]], window_size=4, **SHORT),
    gpt_j=with_own_names("GPTJ", rotary_dim=4, **GPT), codegen=with_own_names("CodeGen", n_ctx=20, rotary_dim=4, **GPT), gpt_bigcode=with_own_names("GPTBigCode", **GPT),
    gpt_1=words(t.OpenAIGPTLMHeadModel, t.OpenAIGPTConfig, vocab_size=WORDS, tie_word_embeddings=False, **GPT), ctrl=with_own_names("CTRL", "LMHeadModel", dff=64, **GPT),
    falcon=tokens("Falcon", new_decoder_architecture=False, multi_query=True, alibi=False), stablelm=tokens("StableLm", **TWO), olmo=tokens("Olmo", **TWO), olmo_2=tokens("Olmo2", **TWO),
    starcoder_2=tokens("Starcoder2", **TWO), granite=tokens("Granite", **TWO), nemotron=tokens("Nemotron", head_dim=8, **TWO), smollm_3=tokens("SmolLM3", **TWO),
    gemma_3=with_mask(causal(t.Gemma3ForCausalLM, t.Gemma3TextConfig, head_dim=8, sliding_window=4, **TWO)), exaone_4=tokens("Exaone4", **TWO), persimmon=tokens("Persimmon"),
    recurrent_gemma=causal(t.RecurrentGemmaForCausalLM, t.RecurrentGemmaConfig, num_key_value_heads=1, lru_width=32, attention_window_size=8, head_dim=8),
    biogpt=causal(t.BioGptForCausalLM, t.BioGptConfig, **SHORT),
    mpt=words(t.MptForCausalLM, t.MptConfig, vocab_size=WORDS, max_seq_len=20, d_model=32, n_layers=2, n_heads=4, use_cache=False),
    rwkv=words(t.RwkvForCausalLM, t.RwkvConfig, vocab_size=WORDS, context_length=20, hidden_size=32, num_hidden_layers=2, use_cache=False),
    falcon_mamba=words(t.FalconMambaForCausalLM, t.FalconMambaConfig, hidden_size=32, num_hidden_layers=2, vocab_size=WORDS, state_size=4, use_cache=False))
add("dynamo", mamba_2=words(t.Mamba2ForCausalLM, t.Mamba2Config, hidden_size=32, num_hidden_layers=2, vocab_size=WORDS, state_size=8, num_heads=8, head_dim=8, n_groups=1, chunk_size=4,
                            use_cache=False))


def experts(name, **settings):
    """Whose experts are all computed at once: PyTorch's exporter writes no loop over those that are chosen."""
    def make():
        model, inputs, output, more = causal(*kind(name, "ForCausalLM"), **settings)()
        model.set_experts_implementation("batched_mm")
        return model, inputs, output, more
    return make


MIXED = dict(num_key_value_heads=4, moe_intermediate_size=24, num_experts_per_tok=2)
LATENT = dict(MIXED, n_routed_experts=4, n_group=1, topk_group=1, first_k_dense_replace=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8,
              qk_nope_head_dim=8, v_head_dim=8)
add("dynamo", gpt_oss=experts("GptOss", head_dim=8, num_local_experts=4, sliding_window=8, layer_types=["sliding_attention", "full_attention"], **TWO, num_experts_per_tok=2),
    deepseek_v3=experts("DeepseekV3", **LATENT), glm_4_moe=experts("Glm4Moe", head_dim=8, n_routed_experts=4, n_group=1, topk_group=1, first_k_dense_replace=1, **MIXED),
    qwen3_moe=experts("Qwen3Moe", head_dim=8, num_experts=4, **MIXED), granite_moe=experts("GraniteMoe", num_local_experts=4, **TWO), olmo_3=tokens("Olmo3", **TWO),
    cohere_2=tokens("Cohere2", head_dim=8, **TWO), glm_4=tokens("Glm4", head_dim=8, **TWO), arcee=tokens("Arcee", **TWO), seed_oss=tokens("SeedOss", head_dim=8, **TWO))


# ---- from sequence to sequence -----------------------------------------------------------------------------------------

def pairs(name, suffix="ForConditionalGeneration", **settings):
    model, config = kind(name, suffix)
    return lambda: (model(config(vocab_size=WORDS, use_cache=False, **settings)), {"input_ids": ids(), "decoder_input_ids": ids()}, "logits", {"use_cache": False})


BART = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, attn_implementation="eager",
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
T5 = dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4)
add("training", mbart=pairs("MBart", **BART, **SHORT), pegasus=pairs("Pegasus", **BART, **SHORT), marian=pairs("Marian", "MTModel", **BART, **SHORT), m2m100=pairs("M2M100", **BART, **SHORT),
    blenderbot=pairs("Blenderbot", **BART, **SHORT), longt5=pairs("LongT5", local_radius=3, **T5), umt5=pairs("UMT5", **T5),
    prophetnet=pairs("ProphetNet", hidden_size=32, encoder_ffn_dim=64, num_encoder_layers=2, num_encoder_attention_heads=4, decoder_ffn_dim=64, num_decoder_layers=2,
                     num_decoder_attention_heads=4, **SHORT))


# ---- sound -------------------------------------------------------------------------------------------------------------

def sound(name, suffix="ForSequenceClassification", **settings):
    model, config = kind(name, suffix)
    return lambda: (model(config(**settings)), {"input_values": torch.randn(ROWS, 2000)}, "logits", {})


WAVES = dict(PLAIN, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 5), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, classifier_proj_size=16,
             mask_time_prob=0.0, apply_spec_augment=False, num_feat_extract_layers=2)
add("training", sew=sound("SEW", squeeze_factor=2, **WAVES), wavlm=sound("WavLM", **without(WAVES, "attn_implementation")), unispeech=sound("UniSpeech", **WAVES),
    data2vec_audio=sound("Data2VecAudio", conv_pos_kernel_size=5, **dict(WAVES, num_conv_pos_embeddings=2)), wav2vec2_letters=sound("Wav2Vec2", "ForCTC", vocab_size=WORDS, **WAVES),
    conformer=sound("Wav2Vec2Conformer", position_embeddings_type="relative", max_source_positions=200, conv_depthwise_kernel_size=3, **without(WAVES, "attn_implementation")),
    spectrogram_transformer=lambda: (t.ASTForAudioClassification(t.ASTConfig(**PLAIN, patch_size=4, max_length=16, num_mel_bins=16, frequency_stride=4, time_stride=4)),
                                     {"input_values": torch.randn(ROWS, 16, 16)}, "logits", {}),
    speech2text=lambda: (t.Speech2TextForConditionalGeneration(t.Speech2TextConfig(vocab_size=WORDS, use_cache=False, input_feat_per_channel=8, conv_channels=16,
                                                                                   max_source_positions=40, max_target_positions=20, **BART)),
                         {"input_features": torch.randn(ROWS, 40, 8), "decoder_input_ids": ids()}, "logits", {"use_cache": False}))


# ---- spectra -----------------------------------------------------------------------------------------------------------

class Bands(torch.nn.Module):
    """Of waves: frames, their spectra, bands of those, a convolution over time."""

    def __init__(self, center):
        super().__init__()
        self.center = center
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bands", torch.rand(16, 33))
        self.time, self.head = torch.nn.Conv1d(16, 24, 3, padding=1), torch.nn.Linear(24, CLASSES)

    def forward(self, x):
        z = torch.stft(x, 64, 16, window=self.window, center=self.center, return_complex=self.center)
        power = (torch.view_as_real(z) if self.center else z).square().sum(-1)
        return self.head(torch.relu(self.time(torch.log(self.bands @ power + 1e-3))).mean(-1))


class Filters(torch.nn.Module):
    """Learned filters: there, a product in the spectrum, and back."""

    def __init__(self):
        super().__init__()
        self.ahead, self.head = torch.nn.Linear(8, 16), torch.nn.Linear(32, CLASSES)
        self.filters = torch.nn.Parameter(torch.randn(16, 17, 2) * 0.1)

    def forward(self, x):  # [rows, 32, 8]
        spectrum = torch.fft.rfft(self.ahead(x), dim=1).transpose(1, 2)
        filtered = torch.view_as_complex((torch.view_as_real(spectrum) * self.filters).contiguous())
        return self.head(torch.fft.irfft(filtered, n=32, dim=-1).mean(1))


add("training", spectra=lambda: (Bands(False), {"x": torch.randn(ROWS, 400)}, None, {}))
add("dynamo", spectra_centered=lambda: (Bands(True), {"x": torch.randn(ROWS, 400)}, None, {}), filters=lambda: (Filters(), {"x": torch.randn(ROWS, 32, 8)}, None, {}),
    fnet=lambda: (t.FNetForSequenceClassification(t.FNetConfig(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, intermediate_size=64, num_labels=CLASSES, **SHORT)),
                  {"input_ids": ids()}, "logits", {}))


# ---- pictures and films --------------------------------------------------------------------------------------------------

def seen(name, size=32, **settings):
    return picture(*kind(name, "ForImageClassification"), size, **settings)


def film(name, **settings):
    model, config = kind(name, "ForVideoClassification")
    return lambda: (model(config(num_frames=4, **settings)), {"pixel_values": torch.randn(ROWS, 4, 3, 32, 32)}, "logits", {})


PATCHES, STAGES = without(PICTURE, "num_labels"), dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32])
add("training", levit=seen("Levit", 64, image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8],
                           down_ops=[["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 3, 4, 2, 2]]),
    pvt=seen("Pvt", 64, image_size=64, num_attention_heads=[1, 2, 2, 4], sequence_reduction_ratios=[8, 4, 2, 1], **STAGES),
    pvt_v2=seen("PvtV2", 64, image_size=64, num_attention_heads=[1, 2, 2, 4], **STAGES),
    focalnet=seen("FocalNet", 64, image_size=64, embed_dim=16, hidden_sizes=[16, 32], depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3]),
    big_transfer=seen("Bit", 64, embedding_size=32, hidden_sizes=[64, 64, 128, 128], depths=[1, 1, 1, 1], num_groups=8),
    resnet=seen("ResNet", 64, embedding_size=16, hidden_sizes=[32, 64], depths=[1, 1]), mobilenet_v1=seen("MobileNetV1", 64, image_size=64),
    efficientnet=seen("EfficientNet", 64, image_size=64, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280),
    hiera=seen("Hiera", 64, image_size=[64, 64], embed_dim=16, num_heads=[1, 2], depths=[1, 1], query_stride=[2, 2], masked_unit_size=[4, 4], num_query_pool=1),
    swiftformer=seen("SwiftFormer", 64, image_size=64, depths=[1, 1, 1, 1], embed_dims=[8, 16, 16, 32]), vit_msn=seen("ViTMSN", **PATCHES), ijepa=seen("IJepa", **PATCHES),
    data2vec_vision=seen("Data2VecVision", **PATCHES), swin_v2=seen("Swinv2", image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    videomae=film("VideoMAE", **PICTURE), timesformer=film("Timesformer", **without(PICTURE, "attn_implementation")),
    vivit=film("Vivit", tubelet_size=[2, 8, 8], **without(PICTURE, "patch_size")),
    clip=lambda: (t.CLIPModel(t.CLIPConfig(text_config=dict(TINY, **SHORT), vision_config=dict(PICTURE), projection_dim=16)),
                  {"input_ids": ids(), "pixel_values": image(32), "attention_mask": ones()}, "logits_per_image", {}),
    swin2sr=lambda: (t.Swin2SRForImageSuperResolution(t.Swin2SRConfig(image_size=16, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4, upscale=2)),
                     {"pixel_values": image(16)}, "reconstruction", {}),
    depth=lambda: (t.GLPNForDepthEstimation(t.GLPNConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 40, 32], num_attention_heads=[1, 2, 5, 8], decoder_hidden_size=16)),
                   {"pixel_values": image(64)}, "predicted_depth", {}))


def of_timm(*names, size=64):
    def make(name):
        import timm  # who has it not skips these alone
        return timm.create_model(name, num_classes=CLASSES), {"x": image(size)}, None, {}
    for name in names:
        WIDE["timm_" + name] = lambda name=name: make(name), "training"


of_timm("hrnet_w18_small", "eca_nfnet_l0", "resnest14d", "res2net50_26w_4s", "dpn68", "ghostnet_100", "mixnet_s", "rexnet_100", "regnetz_b16", "repvgg_a0", "vovnet39a", "skresnet18",
        "cspresnet50", "darknet53", "dla34", "inception_next_tiny", "edgenext_xx_small", "fastvit_t8", "mobileone_s0", "efficientvit_b0", "repvit_m0_9", "starnet_s1", "hgnet_tiny",
        "poolformerv2_s12", "caformer_s18", "gcresnext26ts", "lambda_resnet26t", "resnetv2_50", "tresnet_m", "davit_tiny", "shvit_s1", "fasternet_t0", "resnetblur18", "convmixer_768_32")
of_timm("efficientformer_l1", "xcit_nano_12_p16_224", "pit_ti_224", "levit_128s", "visformer_tiny", "convit_tiny", "tiny_vit_5m_224", "mixer_s32_224", "resmlp_12_224", "gmlp_ti16_224",
        "eva02_tiny_patch14_224", size=224)
of_timm("crossvit_tiny_240", size=240)
of_timm("eca_botnext26ts_256", size=256)
