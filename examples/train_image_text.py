"""Images and captions brought together as CLIP does it, with PyTorch: python train_image_text.py DATASET.

Each image is built once more with a caption of the name of its class. Any tokenizer takes the list of strings.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from typing import Any

import torch
from torch import nn

import stoker
import stoker.torch

EPOCHS, BATCH, WORDS, WIDTH = 6, 16, 512, 32
CROP = stoker.RandomResizedCrop(48, scale=(0.5, 1.0), hflip=0.5)
OUTPUT = stoker.Output("float32", "NCHW", mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))


def tokens(captions: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of the words of all captions end to end, and where each caption begins."""
    words = [caption.split() for caption in captions]
    starts = torch.tensor([0, *map(len, words[:-1])]).cumsum(0)
    return torch.tensor([zlib.crc32(word.encode()) % WORDS for each in words for word in each]), starts


def main(path: str, folder: str) -> None:
    """Build, train, and say how far apart pairs and strangers are."""
    source = stoker.open(path, split="train")
    samples = [source[number] for number in range(min(96, len(source)))]
    names = [f"a photograph of {source.classes[sample.label].name}" for sample in samples]
    records = [{"image": sample.encoded, "caption": name} for sample, name in zip(samples, names, strict=True)]
    stoker.build(records, folder, progress=False)

    torch.manual_seed(0)
    pooled = nn.Sequential(nn.Conv2d(3, 32, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
    images, texts = pooled.append(nn.Linear(512, WIDTH)), nn.EmbeddingBag(WORDS, WIDTH)
    optimizer = torch.optim.Adam([*images.parameters(), *texts.parameters()], lr=0.01)
    settings: dict[str, Any] = {"shuffle": True, "drop_last": True, "fields": ["caption"]}
    with stoker.torch.DataLoader(stoker.open(folder), BATCH, transform=CROP, output=OUTPUT, **settings) as loader:
        for epoch in range(EPOCHS):
            losses = []
            for batch in loader:
                seen = nn.functional.normalize(images(batch.images), dim=1)
                read = nn.functional.normalize(texts(*tokens(batch.fields["caption"])), dim=1)
                loss = nn.functional.cross_entropy(10 * seen @ read.T, torch.arange(BATCH))
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: mean loss {sum(losses) / len(losses):.3f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1], scratch + "/captions")
