"""Draw the pictures of the README again: ``python scripts/pictures.py PHOTOS DATASET``.

PHOTOS is what ``stoker sample`` makes and DATASET what ``stoker build`` makes of it. ``speed.svg`` shows figures of
docs/explanation/performance.md and needs neither; a test compares it with that page.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

import stoker

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
INK, FAINT, PAPER, LINE, ACCENT, LIMIT, RIVAL = (
    "#1e293b",
    "#64748b",
    "#f8fafc",
    "#cbd5e1",
    "#c2410c",
    "#fdba74",
    "#94a3b8",
)

BARS = {  # the row on the page: the label of its bar
    "Stoker, fast decode, max 500, JPEG 90 + restart": "Stoker, 500 px, fast decode",
    "Stoker, max 500, JPEG 90 + restart": "Stoker, 500 px",
    "Stoker, restart markers": "Stoker, restart markers",
    "Stoker": "Stoker",
    "codec alone": "JPEG codec alone",
    "FFCV, max 500, raw": "FFCV, 500 px, raw",
    "FFCV, max 500, half raw": "FFCV, 500 px, half raw",
    "tf.data, tuned, loose files": "tf.data, tuned, files",
    "tf.data, tuned": "tf.data, tuned, TFRecord",
    "FFCV, JPEG": "FFCV, JPEG",
}
WIDTH, LABELS, STEP, BAR, TOP = 640, 270, 34, 22, 48


def speed_chart() -> str:
    """Return an SVG of images per CPU second, with the figures of the page on performance."""
    page = (ROOT / "docs" / "explanation" / "performance.md").read_text(encoding="utf-8")
    table = page[page.index("**Training transform**") :].split("\n\n")[1]
    speeds = {name: int(speed) for name, speed in re.findall(r"^\| \**([^|*]+?)\** \| (\d+)", table, re.MULTILINE)}
    unit = (WIDTH - LABELS - 70) / max(speeds[row] for row in BARS)
    height = TOP + len(BARS) * STEP + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" fill="{INK}">',
        "<style>text { font: 18px sans-serif; }</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
        '<text x="14" y="30" style="font-weight: bold">Training images per CPU second, 224 x 224</text>',
    ]
    for number, (row, label) in enumerate(BARS.items()):
        top, length = TOP + number * STEP, speeds[row] * unit
        color = LIMIT if row.startswith("codec") else ACCENT if row.startswith("Stoker") else RIVAL
        parts += [
            f'<text x="{LABELS - 10}" y="{top + 17}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{LABELS}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{color}"/>',
            f'<text x="{LABELS + length + 8:.1f}" y="{top + 17}">{speeds[row]:,}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def overview(photos: Path, dataset: Path) -> Image.Image:
    """Return the way of the images as a picture: a folder, shards, a batch."""
    sheet = Image.new("RGB", (1440, 560), PAPER)
    draw = ImageDraw.Draw(sheet)
    title, small = ImageFont.load_default(44), ImageFont.load_default(30)
    for left, right, name, text in (
        (30, 430, "photos/", "a folder, list, tar or bucket"),
        (520, 920, "dataset/", "standard TFRecords"),
        (1010, 1410, "batches", "PyTorch, TensorFlow, JAX"),
    ):
        draw.rounded_rectangle((left, 30, right, 530), 16, fill="white", outline=LINE, width=3)
        draw.text(((left + right) / 2, 72), name, INK, title, "mm")
        draw.text(((left + right) / 2, 500), text, FAINT, ImageFont.load_default(26), "mm")
    files = sorted(photos.glob("train/*/*"))
    for number in range(6):
        with Image.open(files[number * len(files) // 6]) as photograph:
            picture = photograph.convert("RGB")
            picture.thumbnail((176, 112))
        x, y = 52 + number % 2 * 186, 116 + number // 2 * 120
        sheet.paste(picture, (x + (176 - picture.width) // 2, y + (112 - picture.height) // 2))
    shards = [path.name.split("-of-")[0] for path in sorted(dataset.glob("train-*.tfrecord"))][:4]
    for number, text in enumerate([*shards, "index", "labels.txt", "manifest.json"]):
        top = 110 + number * 51
        draw.rounded_rectangle((550, top, 890, top + 44), 8, fill="#ffedd5" if number < len(shards) else "#f1f5f9")
        draw.text((570, top + 22), text, INK, small, "lm")
    train = stoker.open(dataset, split="train")
    with stoker.Loader(
        train, batch_size=9, transform=stoker.RandomResizedCrop(112, hflip=0.5), shuffle=True, seed=17
    ) as loader:
        images = next(iter(loader)).images
    for number in range(9):
        corner = (1030 + number % 3 * 122, 116 + number // 3 * 122)
        sheet.paste(Image.fromarray(images[number]), corner)
    for left, text in ((430, "build"), (920, "load")):
        draw.text((left + 45, 240), text, ACCENT, small, "mm")
        draw.line((left + 8, 280, left + 70, 280), ACCENT, 8)
        draw.polygon([(left + 62, 260), (left + 84, 280), (left + 62, 300)], ACCENT)
    return sheet


if __name__ == "__main__":
    (PICTURES / "speed.svg").write_text(speed_chart(), encoding="utf-8")
    if len(sys.argv) > 2:
        overview(Path(sys.argv[1]), Path(sys.argv[2])).save(PICTURES / "overview.jpg", quality=88, optimize=True)
