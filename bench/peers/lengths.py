"""Texts of different lengths, for bench/lengths: lengths.py export DIR TEXT | train DIR padded|dynamic|grouped|compiled
[lora] [dropout].

The texts are the speeches of a play in order, a line of JSON each: numbers of their words, and whether the speaker's name
has an even number of letters, which nobody can learn but which is something to learn. The network is DistilBERT of Hugging Face
with random weights, and without dropout unless it is asked for, for classes of sequences. The learning rate is 0: the update is computed and the
mean loss of an epoch is then the same whatever the order of the texts, by which the programs are compared.

padded: all rows have the longest length. dynamic: those of a batch have its longest row's, as Hugging Face's
DataCollatorWithPadding makes them, in random order. grouped: the same with samples of like length together, as
group_by_length does it. compiled: grouped, with torch.compile(dynamic=True), after an epoch that is not timed. lora: by
PEFT, adapters of rank 8 at the projections of queries and values, and the two layers of the classifier.
"""
import json
import os
import random
import re
import resource
import sys
import time
import warnings

import numpy as np
import torch
import transformers as t

LENGTH, BATCH, BATCHES, VOCABULARY, SEED = 128, 16, 48, 8192, 7


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def network(dropout=False):
    torch.manual_seed(SEED)
    rates = {} if dropout else {"dropout": 0, "attention_dropout": 0, "seq_classif_dropout": 0}  # usually 0.1, 0.1, 0.2
    config = t.DistilBertConfig(vocab_size=VOCABULARY, num_labels=2, attn_implementation="sdpa", **rates)
    return Logits(t.DistilBertForSequenceClassification(config))


def speeches(path):
    """(words, label) of each, evenly from all of the play."""
    parts = [p.split(":\n", 1) for p in open(path, encoding="utf-8").read().split("\n\n")]
    parts = [(who, re.findall(r"[a-z']+|[.,;:!?-]", what.lower())) for who, what in (p for p in parts if len(p) == 2)]
    number = {}
    rows = [([number.setdefault(w, len(number) % (VOCABULARY - 1) + 1) for w in words][:LENGTH], len(who) % 2)
            for who, words in parts if words]
    n = BATCH * BATCHES
    return [rows[i * len(rows) // n] for i in range(n)]


def export(folder, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "train.jsonl"), "w", encoding="ascii") as out:
        for ids, label in speeches(text):
            out.write(json.dumps({"input_ids": ids, "attention_mask": [1] * len(ids), "label": label}) + "\n")
    network().model.save_pretrained(os.path.join(folder, "folder"))
    network(dropout=True).model.save_pretrained(os.path.join(folder, "folder-dropout"))
    rows = (torch.ones(2, 24, dtype=torch.int64), torch.ones(2, 24, dtype=torch.int64))
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=LENGTH)
    free = {0: batch, 1: length}
    torch.onnx.export(network().train(), rows, os.path.join(folder, "model.onnx"), dynamo=True, external_data=False,
                      input_names=["input_ids", "attention_mask"], output_names=["logits"], optimize=False,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      dynamic_shapes={"input_ids": free, "attention_mask": free})


def batches(rows, way):
    """Lists of rows; grouped as transformers.trainer_pt_utils.get_length_grouped_indices does it."""
    order = random.Random(SEED).sample(range(len(rows)), len(rows))
    if way in ("grouped", "compiled"):
        many = max(min(len(rows) // (BATCH * 4), 50), 1) * BATCH
        groups = [sorted(order[i:i + many], key=lambda k: -len(rows[k][0])) for i in range(0, len(order), many)]
        order = [k for group in groups for k in group]
    return [[rows[k] for k in order[i:i + BATCH]] for i in range(0, len(order), BATCH)]


def filled(batch, way):
    longest = LENGTH if way == "padded" else max(len(ids) for ids, _ in batch)
    ids, mask = np.zeros((2, len(batch), longest), np.int64)
    for row, (words, _) in enumerate(batch):
        ids[row, :len(words)], mask[row, :len(words)] = words, 1
    return torch.from_numpy(ids), torch.from_numpy(mask), torch.tensor([label for _, label in batch])


def epoch(model, optimizer, rows, way):
    """Mean loss, seconds."""
    losses, begin = [], time.perf_counter()
    for batch in batches(rows, way):
        ids, mask, label = filled(batch, way)
        loss = torch.nn.functional.cross_entropy(model(ids, mask), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses), time.perf_counter() - begin


def adapted(net):
    import peft
    return peft.get_peft_model(net, peft.LoraConfig(r=8, lora_alpha=8, lora_dropout=0.0, modules_to_save=["classifier"],
                                                    target_modules=["q_lin", "v_lin"]))


def train(folder, way, options):
    with open(os.path.join(folder, "train.jsonl"), encoding="ascii") as lines:
        rows = [(row["input_ids"], row["label"]) for row in map(json.loads, lines)]
    net = (adapted if "lora" in options else lambda plain: plain)(network("dropout" in options)).train()
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=0.0, fused=True)
    model = torch.compile(net, dynamic=True) if way == "compiled" else net
    first = rows if way == "compiled" else rows[:2 * BATCH]  # what comes first is not timed
    epoch(model, optimizer, first, way)
    loss, seconds = epoch(model, optimizer, rows, way)
    print(json.dumps({"loss": loss, "samples_per_s": len(rows) / seconds,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}))


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if sys.argv[1] == "export":
        return export(sys.argv[2], sys.argv[3])
    return train(sys.argv[2], sys.argv[3], sys.argv[4:])


main()
