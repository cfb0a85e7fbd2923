"""Makes colours.bin: a picture and what torchvision makes of its colours, as tensors of uint8; needs torch, torchvision.

A picture of 3 x 17 x 23 samples, channels last, then for each row of CASES the result, in the same layout. The unit test
has the same rows. Pictures that are turned may differ by a level, since torchvision's grid is in single precision.
"""
import os

import torch
import torchvision.transforms.functional as F

H, W = 17, 23
CASES = ([lambda x, f=f: F.adjust_brightness(x, f) for f in (0.6, 1.4)] +
         [lambda x, f=f: F.adjust_contrast(x, f) for f in (0.6, 1.4)] +
         [lambda x, f=f: F.adjust_saturation(x, f) for f in (0.3, 1.7)] +
         [lambda x, f=f: F.adjust_hue(x, f) for f in (-0.3, 0.1, 0.5)] +
         [lambda x: F.rgb_to_grayscale(x, 3)] +
         [lambda x, a=a: F.rotate(x, a, F.InterpolationMode.BILINEAR) for a in (20.0, -75.0)] +
         [lambda x: F.rotate(x, 30.0, F.InterpolationMode.NEAREST)])


def main():
    torch.manual_seed(4)
    y, x = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    smooth = torch.stack([x * 11 % 256, y * 15 % 256, (x + y) * 6 % 256]).to(torch.uint8)
    noise = torch.randint(0, 256, (3, H, W), dtype=torch.uint8)
    picture = torch.where((x + y) % 3 == 0, noise, smooth)
    picture[:, 3, 5], picture[:, 4, 6] = torch.tensor([80, 80, 80]), torch.tensor([0, 0, 0])
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "colours.bin"), "wb") as out:
        for p in [picture] + [case(picture) for case in CASES]:
            out.write(p.permute(1, 2, 0).contiguous().numpy().tobytes())


main()
