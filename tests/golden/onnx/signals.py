"""Spectra beyond the ONNX project's own cases: lengths that cut and fill, half of the bins, complex numbers, frames.
Expected numbers are numpy's."""

import numpy as np
from onnx import helper

from case import case, node
from versions import ints, x


def parts(z):
    """A complex array with its real and imaginary parts last."""
    return np.stack([z.real, z.imag], -1).astype(np.float32)


def with_inputs(op, names, **attrs):
    """Of inputs that may be left out, the last ones without a name."""
    while not names[-1]:
        names = names[:-1]
    return helper.make_node(op, names, ["y"], **attrs)


def dft(name, opset, a, length=None, axis=1, inverse=0, onesided=0):
    z = a[..., 0] if a.shape[-1] == 1 else a[..., 0] + 1j * a[..., 1]
    z = z.astype(np.float64 if a.shape[-1] == 1 else np.complex128)
    at = axis + 1 if axis < 0 else axis  # of z, which has no parts
    if inverse and onesided:
        want = np.fft.irfft(z, length, at)[..., None].astype(np.float32)
    else:
        want = (np.fft.ifft if inverse else np.fft.rfft if onesided else np.fft.fft)(z, length, at)
        want = parts(want)
    attrs = dict(inverse=inverse, onesided=onesided, **({"axis": axis} if opset < 20 else {}))
    weights = {} if length is None else {"length": ints(length).reshape(())}
    if opset >= 20:
        weights["axis"] = ints(axis).reshape(())
    n = with_inputs("DFT", ["a", "length" if length is not None else "", "axis" if opset >= 20 else ""], **attrs)
    case("dft_" + name, [n], {"a": a}, opset, [want], weights=weights)


def stft(name, a, step, window=None, length=None, onesided=1):
    n, z = length or len(window), a if a.ndim == 2 else a[..., 0] if a.shape[-1] == 1 else a[..., 0] + 1j * a[..., 1]
    frames = [z[:, at:at + n].astype(np.complex128) * (1 if window is None else window)
              for at in range(0, z.shape[1] - n + 1, step)]
    want = np.fft.fft(np.stack(frames, 1), axis=-1)[..., :n // 2 + 1 if onesided else n]
    weights = {"step": ints(step).reshape(())}
    if length:
        weights["length"] = ints(length).reshape(())
    made = with_inputs("STFT", ["a", "step", "" if window is None else "window", "length" if length else ""], onesided=onesided)
    case("stft_" + name, [made], {"a": a} if window is None else {"a": a, "window": window}, 17, [parts(want)], weights=weights)


def mel(name, bins, n, rate, low, high):
    weights = dict(bins=ints(bins).reshape(()), n=ints(n).reshape(()), rate=ints(rate).reshape(()), low=np.float32(low).reshape(()),
                   high=np.float32(high).reshape(()))
    a = x(3, n // 2 + 1)
    case("mel_" + name, [node("MelWeightMatrix", "bins n rate low high", "m"), node("MatMul", "a m", "y")], {"a": a}, 17,
         weights=weights)


def all_cases():
    real, both = x(2, 6, 3, 1), x(2, 5, 3, 2, seed=1)
    dft("half", 17, real, onesided=1)
    dft("half_odd", 17, x(2, 7, 1), onesided=1)
    dft("cut", 17, real, length=4)
    dft("filled", 17, both, length=8)
    dft("filled_half", 20, real, length=9, onesided=1)
    dft("axis_0", 17, both, axis=0)
    dft("axis_of_20", 20, both, axis=-2)
    dft("complex", 20, both, axis=1)
    dft("complex_inverse", 20, both, axis=1, inverse=1)
    dft("complex_inverse_filled", 17, both, length=7, inverse=1)
    dft("real_again", 20, both, axis=1, inverse=1, onesided=1)
    dft("real_again_odd", 20, both, length=9, axis=1, inverse=1, onesided=1)
    dft("real_again_cut", 20, both, length=6, axis=1, inverse=1, onesided=1)
    dft("real_again_filled", 20, both, length=12, axis=1, inverse=1, onesided=1)
    signal, window = x(2, 21, 1), np.hanning(8).astype(np.float32)
    stft("frames", signal, 3, length=8)
    stft("window", signal, 4, window)
    stft("window_and_length", signal, 8, window, length=8)
    stft("all_bins", signal, 5, window, onesided=0)
    stft("complex", x(2, 13, 2), 4, window[:5], onesided=0)
    stft("one_frame", signal, 40, length=21)
    stft("two_axes", signal[..., 0], 4, window)
    mel("bands", 8, 64, 8000, 0, 4000)
    mel("narrow_bands", 12, 31, 16000, 20, 8000)
