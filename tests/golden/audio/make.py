"""Sounds in every format that is read, and what soundfile and soxr make of them. Run in this folder; needs numpy,
soundfile and soxr from PyPI (their libraries are their own, not Debian's). Expected samples are little-endian float32,
frame by frame."""
import numpy as np
import soundfile
import soxr

rng = np.random.default_rng(1)


def chirp(rate, frames, channels=1, amplitude=0.6):
    t = np.arange(frames) / rate
    tones = [np.sin(2 * np.pi * (200 * (c + 1) + 900 * t / t[-1]) * t) for c in range(channels)]
    noise = 0.05 * rng.standard_normal((frames, channels))
    return amplitude * (np.stack(tones, 1) + noise) / 1.2


def keep(name, samples):
    np.ascontiguousarray(samples, "<f4").tofile(name)


FILES = [  # name, rate, frames, channels, subtype
    ("s16.wav", 8000, 400, 1, "PCM_16"), ("u8.wav", 8000, 300, 1, "PCM_U8"), ("s24.wav", 8000, 200, 2, "PCM_24"),
    ("s32.wav", 8000, 100, 1, "PCM_32"), ("f32.wav", 8000, 100, 1, "FLOAT"), ("f64.wav", 8000, 100, 1, "DOUBLE"),
    ("ulaw.wav", 8000, 400, 1, "ULAW"), ("alaw.wav", 8000, 400, 1, "ALAW"), ("adpcm.wav", 8000, 400, 1, "IMA_ADPCM"),
    ("s16.flac", 16000, 1200, 2, "PCM_16"), ("vorbis.ogg", 16000, 2400, 1, "VORBIS"), ("opus.opus", 16000, 2400, 1, "OPUS"),
    ("layer3.mp3", 16000, 2400, 1, "MPEG_LAYER_III"), ("s16.aiff", 8000, 200, 1, "PCM_16"), ("s16.au", 8000, 200, 1, "PCM_16"),
    ("fast.wav", 44100, 6000, 1, "PCM_16"),
]
for name, rate, frames, channels, subtype in FILES:
    kind = {"opus": "OGG"}.get(name.rsplit(".", 1)[1], name.rsplit(".", 1)[1].upper())
    soundfile.write(name, chirp(rate, frames, channels), rate, subtype=subtype, format=kind)
    read, found = soundfile.read(name, dtype="float32", always_2d=True)
    assert found == rate, (name, found)
    print(name, rate, read.shape)
    if name != "fast.wav":
        keep(name + ".f32", read)

stereo = soundfile.read("s24.wav", dtype="float32")[0]
keep("s24.mono.f32", stereo.mean(axis=1))
fast = soundfile.read("fast.wav", dtype="float32")[0]
keep("fast.16000.f32", soxr.resample(fast, 44100, 16000, "HQ"))
slow = soundfile.read("s16.wav", dtype="float32")[0]
keep("s16.22050.f32", soxr.resample(slow, 8000, 22050, "HQ"))
both = soundfile.read("s16.flac", dtype="float32")[0]
keep("flac.11025.f32", soxr.resample(both, 16000, 11025, "HQ"))
# Wav2Vec2FeatureExtractor.zero_mean_unit_var_norm
keep("s16.standard.f32", (slow - np.mean(slow)) / np.sqrt(np.var(slow) + 1e-7))
keep("s16.peak.f32", slow / np.abs(slow).max())

# A network of tones: [N, 1, 400] at 8000 frames a second, three classes.
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def weight(name, *shape):
    bound = (6 / np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0
    return numpy_helper.from_array(rng.uniform(-bound, bound, shape).astype(np.float32), name)


nodes = [
    helper.make_node("Conv", ["wave", "w1", "b1"], ["c1"], kernel_shape=[32], strides=[8], name="filters"),
    helper.make_node("Relu", ["c1"], ["r1"]),
    helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], kernel_shape=[8], strides=[4], name="shapes"),
    helper.make_node("Relu", ["c2"], ["r2"]),
    helper.make_node("GlobalAveragePool", ["r2"], ["mean"]),
    helper.make_node("Flatten", ["mean"], ["flat"]),
    helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], transB=1, name="head"),
]
graph = helper.make_graph(
    nodes, "tones", [helper.make_tensor_value_info("wave", TensorProto.FLOAT, ["N", 1, 400])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])],
    [weight("w1", 16, 1, 32), weight("b1", 16), weight("w2", 16, 16, 8), weight("b2", 16), weight("w3", 3, 16), weight("b3", 3)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "tones.onnx")
