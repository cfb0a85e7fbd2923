"""Exports the digits network: model.py [OUT]. Needs torch, onnx and onnxscript, and is not needed to run the example.

The network is as anyone would write it; the export keeps it trainable: in training form (so that batch norm stays batch
norm and dropout stays in the file), nothing folded, the batch axis free.
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Digits(nn.Module):
    """8x8 grey digits [N,1,8,8] in 0..1 to logits [N,10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(32)
        self.hidden = nn.Linear(32 * 2 * 2, 64)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(64, 10)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(image))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.out(self.drop(F.relu(self.hidden(x.flatten(1)))))


def main():
    torch.manual_seed(1)
    net = Digits().train()
    torch.onnx.export(net, (torch.rand(2, 1, 8, 8),), sys.argv[1] if len(sys.argv) > 1 else "model.onnx",
                      input_names=["image"], output_names=["logits"], opset_version=17, dynamo=False,
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)


main()
