#!/usr/bin/env python3
"""Reads a file as one would with a peer's own tools, once, in batches where these are what comes of it. One JSON line.

    input.py KIND FILE
"""
import json
import os
import resource
import sys
import time

import numpy as np

BATCH = 1024


def age():
    with open("/proc/self/stat", encoding="ascii") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def finite_sum(a):
    a = np.asarray(a, dtype=np.float64)
    return float(a[np.isfinite(a)].sum())


class Told:
    """What a run found: rows, CPU seconds of reading (of all threads; not of importing, nor of adding up), the first
    batch, the sum."""

    def __init__(self):
        self.rows, self.sum, self.first_s, self.cpu_s, self.wall_s = 0, 0.0, None, 0.0, 0.0

    def begin(self):
        self.cpu_s, self.wall_s = -time.process_time(), -time.perf_counter()

    def end(self):
        self.cpu_s += time.process_time()
        self.wall_s += time.perf_counter()

    def over(self, batches, arrays):
        self.begin()
        for batch in batches:
            cpu, wall = time.thread_time(), time.perf_counter()
            got = arrays(batch)
            if self.first_s is None:
                self.first_s = age()
            self.rows += len(got[0])
            self.sum += sum(map(finite_sum, got))
            self.cpu_s -= time.thread_time() - cpu
            self.wall_s -= time.perf_counter() - wall
        self.end()


def tensorflow():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(len(os.sched_getaffinity(0)))
    return tf


def tf_frames(path, told):
    tf = tensorflow()
    told.begin()
    told.rows = int(tf.data.TFRecordDataset(path, buffer_size=8 << 20).batch(BATCH).map(tf.size).reduce(
        np.int32(0), lambda a, b: a + b))
    told.end()


def tf_examples(path, told, features):
    tf = tensorflow()
    wanted = {name: tf.io.FixedLenFeature([n] if n else [], kind) for name, n, kind in features(tf)}
    data = tf.data.TFRecordDataset(path, buffer_size=8 << 20).batch(BATCH)
    data = data.map(lambda x: tf.io.parse_example(x, wanted), num_parallel_calls=tf.data.AUTOTUNE)
    told.over(data.prefetch(tf.data.AUTOTUNE), lambda x: [x[name].numpy() for name in wanted])


def tf_clicks(path, told):
    tf_examples(path, told, lambda tf: [("ids", 39, tf.int64), ("values", 39, tf.float32), ("label", 0, tf.float32)])


def tf_digits(path, told):
    tf_examples(path, told, lambda tf: [("image", 784, tf.float32), ("label", 0, tf.int64)])


def fifo_records(path):
    """What a FIFO has: tf.data opens files to read them by offset, so that Python has to find the records."""
    with open(path, "rb", buffering=1 << 20) as f:
        while True:
            head = f.read(12)
            if len(head) < 12:
                return
            yield f.read(int.from_bytes(head[:8], "little"))
            f.read(4)


def tf_pipe(path, told, decoded=True):
    tf = tensorflow()
    data = tf.data.Dataset.from_generator(lambda: fifo_records(path), output_signature=tf.TensorSpec((), tf.string)).batch(16)
    if decoded:
        wanted = {"x": tf.io.FixedLenFeature([131072], tf.float32)}
        data = data.map(lambda x: tf.io.parse_example(x, wanted)["x"], num_parallel_calls=tf.data.AUTOTUNE)
    told.begin()
    for batch in data.prefetch(tf.data.AUTOTUNE):
        told.first_s = told.first_s or age()
        told.rows += batch.shape[0]
    told.end()


def tf_pipe_records(path, told):
    tf_pipe(path, told, decoded=False)


def tf_floats(path, told):
    tf = tensorflow()
    data = tf.data.TextLineDataset(path, buffer_size=8 << 20).batch(BATCH)
    data = data.map(lambda x: tf.stack(tf.io.decode_csv(x, [tf.constant([0.0])] * 17), axis=1),
                    num_parallel_calls=tf.data.AUTOTUNE)
    told.over(data.prefetch(tf.data.AUTOTUNE), lambda x: [x.numpy()])


def pandas_floats(path, told):
    import pandas
    told.begin()
    table = pandas.read_csv(path, header=None, dtype=np.float32).to_numpy()
    told.end()
    told.first_s, told.rows, told.sum = age(), len(table), finite_sum(table)


def pandas_mixed(path, told):
    import pandas
    told.begin()
    table = pandas.read_csv(path, usecols=["label", "amount", "count", "rate", "size"]).to_numpy(np.float64)
    told.end()
    told.first_s, told.rows, told.sum = age(), len(table), finite_sum(table)


def sklearn_libsvm(path, told):
    from sklearn.datasets import load_svmlight_file
    told.begin()
    x, y = load_svmlight_file(path, dtype=np.float32)
    told.end()
    told.first_s, told.rows, told.sum = age(), x.shape[0], finite_sum(x.data) + finite_sum(y)


def torch_rows(path, told):
    import torch
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.from_numpy(np.load(path, mmap_mode="c")))
    loader = torch.utils.data.DataLoader(data, batch_size=128, shuffle=True)
    told.over(loader, lambda x: [x[0].numpy()])


def numpy_order(n, told):
    told.begin()
    np.random.default_rng(7).permutation(int(n))
    told.end()
    told.rows = int(n)


def pillow_pictures(path, told):
    from PIL import Image
    files = sorted(os.path.join(folder, f) for folder, _, names in os.walk(path) for f in names)
    told.over((np.asarray(Image.open(f).convert("RGB"))[None] for f in files), lambda x: [x])


def pandas_columns(path, told):
    import pandas
    told.begin()
    table = pandas.read_parquet(path).to_numpy(np.float32)
    told.end()
    told.first_s, told.rows, told.sum = age(), len(table), finite_sum(table)


def arrow_batches(path, told):
    import pyarrow.parquet

    def rows():
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(1024):
            yield np.stack([np.asarray(column, np.float32) for column in batch.columns], 1)
    told.over(rows(), lambda batch: [batch])


def files_of(path):
    return sorted(os.path.join(folder, f) for folder, _, names in os.walk(path) for f in names)


def soundfile_waves(path, told):
    import soundfile
    told.over((soundfile.read(f, dtype="float32")[0][None] for f in files_of(path)), lambda x: [x])


def soundfile_rates(path, told):
    import soundfile
    import soxr
    told.over((soxr.resample(soundfile.read(f, dtype="float32")[0].mean(axis=1), 44100, 16000)[None] for f in files_of(path)),
              lambda x: [x])


def tf_waves(path, told):
    tf = tensorflow()
    data = tf.data.Dataset.from_tensor_slices(files_of(path))
    data = data.map(lambda f: tf.audio.decode_wav(tf.io.read_file(f))[0][:, 0], num_parallel_calls=tf.data.AUTOTUNE)
    told.over(data.batch(16).prefetch(tf.data.AUTOTUNE), lambda x: [x.numpy()])


KINDS = {"tf-frames": tf_frames, "tf-clicks": tf_clicks, "tf-digits": tf_digits, "tf-floats": tf_floats, "tf-pipe": tf_pipe,
         "tf-pipe-records": tf_pipe_records,
         "pandas-floats": pandas_floats, "pandas-mixed": pandas_mixed, "sklearn-libsvm": sklearn_libsvm,
         "pandas-columns": pandas_columns, "arrow-batches": arrow_batches,
         "soundfile-waves": soundfile_waves, "soundfile-rates": soundfile_rates, "tf-waves": tf_waves,
         "torch-rows": torch_rows, "numpy-order": numpy_order, "pillow-pictures": pillow_pictures}


def main():
    told = Told()
    KINDS[sys.argv[1]](sys.argv[2], told)
    print(json.dumps({"rows": told.rows, "cpu_s": told.cpu_s, "wall_s": told.wall_s, "first_s": told.first_s, "sum": told.sum,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}))


if __name__ == "__main__":
    main()
