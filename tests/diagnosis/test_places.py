"""What a thread does is told from its stack: whose C it is in, and whether it works on pixels."""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter

from stoker.diagnosis.places import _held, is_users, place_of
from stoker.diagnosis.sampling import Sampler, _below

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.diagnosis.places import Place
    from stoker.diagnosis.watching import Watch

IMAGE = np.random.default_rng(3).integers(0, 255, (160, 160, 3), np.uint8)
LARGE = np.random.default_rng(4).random((700, 700))
NET = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 5), torch.nn.ReLU())
LOOKS = 25


def sleep() -> None:
    time.sleep(0.02)


def spin() -> None:
    end = time.perf_counter() + 0.01
    while time.perf_counter() < end:
        pass


def wait_for_a_queue() -> None:
    with contextlib.suppress(queue.Empty):
        queue.Queue().get(timeout=0.02)


def blur(image: np.ndarray[Any, Any] = IMAGE) -> object:
    return Image.fromarray(image).filter(ImageFilter.GaussianBlur(8))


def normalise(image: np.ndarray[Any, Any] = IMAGE) -> object:
    scaled = image.astype(np.float32) / 255.0
    return (scaled - scaled.mean()) / scaled.std()


def operate(image: np.ndarray[Any, Any] = IMAGE) -> object:
    return image**3 + image


def brightness(image: np.ndarray[Any, Any] = IMAGE[:20, :20]) -> int:
    total = 0
    for row in image:
        for pixel in row:
            total += int(pixel[0])
    return total


def product() -> object:
    return LARGE @ LARGE


def named_product() -> object:
    return np.dot(LARGE, LARGE)


def network() -> object:
    return NET(torch.from_numpy(IMAGE.transpose(2, 0, 1)[None].astype(np.float32))).sum().backward()


def count() -> int:
    total = 0
    for number in range(20_000):
        total += number * number
    return total


def write_json() -> object:
    return json.dumps(list(range(2000)))


def looked_at(work: Callable[[], object]) -> list[Place]:
    """Where a thread was that does nothing but this, as seen from its loop."""
    going = [True]

    def loop() -> None:
        while going:
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    found: list[Place] = []
    try:
        while len(found) < LOOKS:
            time.sleep(0.003)
            frame = sys._current_frames().get(thread.ident or 0)
            if frame is None:
                continue
            chain = _below(frame, frozenset())
            while chain and chain[0].f_code is not loop.__code__:
                del chain[0]
            if len(chain) > 1:
                found.append(place_of(chain))
    finally:
        going.clear()
        thread.join()
    return found


@pytest.mark.parametrize(
    ("work", "kind"),
    [
        (sleep, "waiting"),
        (wait_for_a_queue, "waiting"),
        (blur, "transform"),
        (normalise, "transform"),
        (operate, "transform"),
        (brightness, "transform"),
        (product, "model"),
        (named_product, "model"),
        (network, "model"),
        (count, "python"),
        (spin, "python"),
        (write_json, "python"),
    ],
)
def test_a_kind_of_work_is_recognised(work: Callable[[], object], kind: str) -> None:
    places = looked_at(work)
    counted = Counter(place.work for place in places)
    assert counted.most_common(1)[0][0] == kind, counted
    assert {place.file for place in places} == {__file__}
    assert Counter(place.function for place in places).most_common(1)[0][0] == work.__name__


def test_the_expression_and_its_line_are_named() -> None:
    sleeping = [place for place in looked_at(sleep) if place.work == "waiting"]
    assert {place.code for place in sleeping} == {"time.sleep(0.02)"}
    assert {place.line for place in sleeping} == {sleep.__code__.co_firstlineno + 1}


def test_code_without_source_has_a_place_too() -> None:
    names: dict[str, Any] = {"time": time}
    exec("def nap():\n    time.sleep(0.02)\n", names)
    places = looked_at(partial(names["nap"]))
    assert {place.function for place in places} == {"nap"}
    assert {place.code for place in places} == {""}


def test_installed_code_is_not_the_users() -> None:
    frames: list[Any] = []
    np.apply_along_axis(lambda _: frames.append(sys._getframe().f_back) or 0, 0, np.zeros(2))
    assert not is_users(frames[0])
    assert is_users(sys._getframe())


class Proxy:
    """As those of web frameworks, which look for what they stand for."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError("somebody has looked")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("somebody has looked")

    def __call__(self) -> None:
        pass


def test_looking_runs_no_code_of_anybody() -> None:
    assert _held(Proxy()) == {}
    assert _held(np.zeros(1)) == {}
    assert _held(time)["sleep"] is time.sleep
    assert "__call__" in _held(Proxy)


def test_the_sampler_outlives_what_it_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    watch: Watch = object()  # type: ignore[assignment]  # not asked for
    frame = sys._getframe()
    monkeypatch.setattr("stoker.diagnosis.places.linecache", None)
    place = Sampler(watch)._place([frame])
    assert (place.work, place.file) == ("other", __file__)
