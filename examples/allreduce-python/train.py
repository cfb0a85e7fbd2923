"""Softmax regression on handwritten digits, by any number of processes: train.py TRAIN.csv TEST.csv CHECKPOINT [EPOCHS]

Needs NumPy and libtrainyard.so (found by the loader, or named by TRAINYARD_LIBRARY); nothing is installed or compiled. It
trains what examples/allreduce-c trains, and either goes on from the other's checkpoint.
"""
import ctypes
import os
import sys

import numpy as np

lib = ctypes.CDLL(os.environ.get("TRAINYARD_LIBRARY", "libtrainyard.so.1"))
lib.trainyard_error.restype = ctypes.c_char_p
AVERAGE, SUM = 0, 1
DTYPES = {"int32": 5, "int64": 7, "float16": 9, "float32": 11, "float64": 12}


class Tensor(ctypes.Structure):
    """trainyard_tensor: a view of an array that must be contiguous and stay where it is."""

    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("ndim", ctypes.c_int32), ("shape", ctypes.c_int64 * 8)]

    def __init__(self, array):
        assert array.flags.c_contiguous
        super().__init__(array.ctypes.data, DTYPES[array.dtype.name], array.ndim, (ctypes.c_int64 * 8)(*array.shape))


class Options(ctypes.Structure):
    """trainyard_options."""

    _fields_ = [("name", ctypes.c_char_p), ("op", ctypes.c_int32), ("compression", ctypes.c_int32), ("prescale", ctypes.c_double),
                ("postscale", ctypes.c_double), ("set", ctypes.c_int32), ("reserved", ctypes.c_int32 * 7)]


def check(code):
    if code < 0:
        raise RuntimeError(lib.trainyard_error().decode())
    return code


def allreduce(arrays, op=AVERAGE, name=None):
    """In place, all of them in one message a type."""
    tensors = (Tensor * len(arrays))(*map(Tensor, arrays))
    options = Options(name=name and name.encode(), op=op)
    check(lib.trainyard_grouped_allreduce(tensors, None, len(arrays), ctypes.byref(options)))


def metrics(step, epoch, **values):
    names = (ctypes.c_char_p * len(values))(*(name.encode() for name in values))
    numbers = (ctypes.c_double * len(values))(*values.values())
    check(lib.trainyard_metrics(ctypes.c_int64(step), ctypes.c_int64(epoch), names, numbers, len(values)))


def write(path, data):
    check(lib.trainyard_write(path.encode(), data, ctypes.c_size_t(len(data))))


def read(path):
    data, n = ctypes.c_void_p(), ctypes.c_size_t()
    check(lib.trainyard_read(path.encode(), ctypes.byref(data), ctypes.byref(n)))
    result = ctypes.string_at(data, n.value)
    lib.trainyard_free(data)
    return result


def softmax(x, weight, bias):
    z = x @ weight.T + bias
    z = np.exp(z - z.max(1, keepdims=True))
    return z / z.sum(1, keepdims=True)


def main(train_csv, test_csv, checkpoint, epochs="10", batch=64, lr=np.float32(0.5)):
    check(lib.trainyard_init(None))
    rank, size = lib.trainyard_rank(), lib.trainyard_size()
    train, test = (np.loadtxt(path, delimiter=",", dtype=np.float32) for path in (train_csv, test_csv))
    x, y = train[:, :64] / 16, train[:, 64].astype(int)
    state = read(checkpoint) or bytes(8 + 4 * 650)
    epoch, weights = int.from_bytes(state[:8], "little"), np.frombuffer(state[8:], np.float32).copy()
    weight, bias = weights[:640].reshape(10, 64), weights[640:]
    while epoch < int(epochs) and not lib.trainyard_stop_requested():
        loss, right = np.zeros(1), np.zeros(1)
        for at in range(0, len(x), batch):
            rows = min(batch, len(x) - at)
            mine = slice(at + rows * rank // size, at + rows * (rank + 1) // size)  # this rank's part of the batch
            p = softmax(x[mine], weight, bias)
            loss -= np.log(p[np.arange(len(p)), y[mine]].astype(float)).sum()
            p[np.arange(len(p)), y[mine]] -= 1
            gradients = [np.ascontiguousarray(p.T @ x[mine]), p.sum(0)]
            allreduce(gradients, SUM, "gradients")  # sums over rows and ranks, divided by the rows of all
            weight -= lr * gradients[0] / np.float32(rows)
            bias -= lr * gradients[1] / np.float32(rows)
        part = test[rank::size]
        right += (softmax(part[:, :64] / 16, weight, bias).argmax(1) == part[:, 64]).sum()
        allreduce([loss, right], SUM, "loss and right answers")
        epoch += 1
        metrics(epoch * -(-len(x) // batch), epoch, loss=loss[0] / len(x), accuracy=right[0] / len(test))
        write(checkpoint, epoch.to_bytes(8, "little") + weights.tobytes())
    check(lib.trainyard_shutdown())


if __name__ == "__main__":
    main(*sys.argv[1:])
