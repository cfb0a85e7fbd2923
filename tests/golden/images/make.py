"""Makes the pictures of this folder and what Pillow makes of them; needs pillow and numpy.

expected.txt has a line for each case: file, channels, x0 y0 x1 y1 of the part (in pixels), width, height, filter, levels
by which a sample may differ. expected.bin has their pixels one after the other, width * height * channels bytes each.
A JPEG that a camera lay on its side is wanted upright.
"""
import os
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

HERE = os.path.dirname(os.path.abspath(__file__))
W, H = 29, 19
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
           "lanczos": Image.Resampling.LANCZOS, "box": Image.Resampling.BOX, "nearest": Image.Resampling.NEAREST}
lines, blob = [], bytearray()


def path(name):
    return os.path.join(HERE, name)


def scene(channels):
    y, x = np.mgrid[0:H, 0:W].astype(np.float64)
    planes = [128 + 100 * np.sin(x / 5) + 20 * np.cos(y), 255 * x / W, 255 * y / H,
              255 * ((x - W / 2) ** 2 + (y - H / 2) ** 2 < 60)]
    return np.clip(np.stack(planes[:channels] if channels > 1 else planes[:1], -1), 0, 255).astype(np.uint8)


def add(name, pixels, part=None, size=None, how="bilinear", within=0):
    h, w, c = pixels.shape
    part, size = part or (0, 0, w, h), size or (w, h)
    if part != (0, 0, w, h) or size != (w, h):
        # Plane by plane: of pictures with alpha Pillow would weight the colours by it.
        planes = [Image.fromarray(np.ascontiguousarray(pixels[..., i])).resize(size, FILTERS[how], box=part)
                  for i in range(c)]
        pixels = np.stack([np.asarray(p) for p in planes], -1)
    lines.append("%s %d %s %d %d %s %d" % (name, c, " ".join(repr(float(v)) for v in part), *size, how, within))
    blob.extend(pixels.tobytes())


def grey(rgb):
    return np.asarray(Image.fromarray(rgb[..., :3]).convert("L"))[..., None]


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def write_png(name, depth, kind, rows, before=b""):
    """rows: bytes of each row, packed; no filter, no interlace."""
    head = struct.pack(">IIBBBBB", W, len(rows), depth, kind, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + r for r in rows))
    with open(path(name), "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def packed(values, depth):
    bits = "".join(format(int(v), "0%db" % depth) for v in values)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def pngs():
    g, rgb, rgba = scene(1), scene(3), scene(4)
    for depth in (1, 2, 4, 8):
        v = g[..., 0] >> (8 - depth)
        write_png("grey%d.png" % depth, depth, 0, [packed(r, depth) for r in v])
        wide = (v.astype(int) * 255 // (2 ** depth - 1)).astype(np.uint8)[..., None]
        add("grey%d.png" % depth, wide)
        add("grey%d.png" % depth, np.repeat(wide, 3, -1))
    sixteen = g[..., 0].astype(np.uint16) * 257 + 100
    write_png("grey16.png", 16, 0, [r.astype(">u2").tobytes() for r in sixteen])
    add("grey16.png", ((sixteen.astype(float) + 128) // 257).astype(np.uint8)[..., None], within=1)
    write_png("rgb16.png", 16, 2, [(r.astype(np.uint16) * 257).astype(">u2").tobytes() for r in rgb])
    add("rgb16.png", rgb)
    palette = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 8, 7]], np.uint8)
    i = g[..., 0] >> 6
    write_png("palette2.png", 2, 3, [packed(r, 2) for r in i],
              chunk(b"PLTE", palette.tobytes()) + chunk(b"tRNS", bytes([255, 128, 0])))
    add("palette2.png", palette[i])
    add("palette2.png", np.concatenate([palette[i], np.array([255, 128, 0, 255], np.uint8)[i][..., None]], -1))
    Image.fromarray(rgba).save(path("rgba.png"))
    add("rgba.png", rgba)
    add("rgba.png", rgb)
    add("rgba.png", grey(rgb))
    la = scene(2)
    Image.fromarray(la, "LA").save(path("la.png"))
    add("la.png", la)
    add("la.png", la[..., :1])
    add("la.png", np.concatenate([np.repeat(la[..., :1], 3, -1), la[..., 1:]], -1))
    Image.fromarray(rgb).save(path("rgb.png"))
    add("rgb.png", np.concatenate([rgb, np.full((H, W, 1), 255, np.uint8)], -1))
    for how in FILTERS:
        for size in ((7, 5), (41, 33), (W, 8)):
            add("rgb.png", rgb, None, size, how)
        add("rgb.png", rgb, (3.0, 2.0, 20.0, 17.0), (11, 9), how)
        add("rgba.png", rgba, (0.5, 1.25, 28.0, 18.5), (8, 8), how)
        add("grey8.png", g, (4.0, 4.0, 9.0, 9.0), (16, 16), how)
    add("la.png", la, None, (6, 6))
    add("rgb.png", rgb[2:12, 3:15], None, None)
    lines[-1] = "rgb.png 3 3.0 2.0 15.0 12.0 12 10 bilinear 0"


def jpegs():
    rgb, g = scene(3), scene(1)
    Image.fromarray(rgb).save(path("plain.jpg"), quality=90)
    Image.fromarray(rgb).save(path("progressive.jpg"), quality=80, progressive=True, subsampling=0)
    Image.fromarray(g[..., 0]).save(path("grey.jpg"), quality=90)
    Image.fromarray(rgb).convert("CMYK").save(path("cmyk.jpg"), quality=95)
    for name in ("plain.jpg", "progressive.jpg", "cmyk.jpg"):
        add(name, np.asarray(Image.open(path(name)).convert("RGB")), within=1)
    luma = Image.open(path("plain.jpg"))
    luma.draft("L", luma.size)
    add("plain.jpg", np.asarray(luma)[..., None], within=1)
    add("grey.jpg", np.asarray(Image.open(path("grey.jpg")))[..., None], within=1)
    add("plain.jpg", np.asarray(Image.open(path("plain.jpg"))), None, (10, 6), within=1)
    for turn in range(1, 9):
        name = "turn%d.jpg" % turn
        exif = Image.Exif()
        exif[0x0112] = turn
        Image.fromarray(rgb[:8, :16]).save(path(name), quality=90, exif=exif)
        add(name, np.asarray(ImageOps.exif_transpose(Image.open(path(name)))), within=1)


def others():
    rgb, g = scene(3), scene(1)
    Image.fromarray(rgb).save(path("rgb.ppm"))
    add("rgb.ppm", rgb)
    Image.fromarray(g[..., 0]).save(path("grey.pgm"))
    add("grey.pgm", g)
    with open(path("wide.pgm"), "wb") as f:
        ten = (g[..., 0].astype(int) * 1023 // 255).astype(">u2")
        f.write(b"P5 # ten bits\n%d %d\n1023\n" % (W, H) + ten.tobytes())
    add("wide.pgm", g, within=1)
    Image.fromarray(rgb).save(path("rgb.bmp"))
    add("rgb.bmp", rgb)
    Image.fromarray(g[..., 0]).save(path("grey.bmp"))
    add("grey.bmp", np.repeat(g, 3, -1))
    Image.fromarray(scene(4)).save(path("rgba.bmp"))
    add("rgba.bmp", np.asarray(Image.open(path("rgba.bmp")).convert("RGBA")))
    Image.fromarray(g[..., 0] > 128).save(path("one.bmp"))
    add("one.bmp", np.repeat((g > 128).astype(np.uint8) * 255, 3, -1))


pngs()
jpegs()
others()
with open(path("expected.txt"), "w") as f:
    f.write("\n".join(lines) + "\n")
with open(path("expected.bin"), "wb") as f:
    f.write(bytes(blob))
