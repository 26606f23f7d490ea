"""What the element spec says of the batches, and which come."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest
import tensorflow as tf

import stoker
from loader.shards import image, write_shards
from stoker.errors import ConfigError

ORDER = {"transform": stoker.RandomResizedCrop(24, hflip=0.5), "shuffle": True, "seed": 9}
SETTINGS = {"batch_size": 4, **ORDER}
FIELDS = ("images", "labels", "indices", "valid", "seeds", "position")


def indices_of(passed: tf.data.Dataset) -> list[int]:
    return [key for (keys,) in passed for key in keys.numpy().tolist()]


def test_shapes_are_static(train: stoker.Dataset) -> None:
    elements = stoker.tensorflow.dataset(train, tail="drop", elements=FIELDS, **SETTINGS)
    assert elements.element_spec == (
        tf.TensorSpec((4, 24, 24, 3), tf.uint8, name="images"),
        tf.TensorSpec((4,), tf.int64, name="labels"),
        tf.TensorSpec((4,), tf.int64, name="indices"),
        tf.TensorSpec((4,), tf.bool, name="valid"),
        tf.TensorSpec((4,), tf.int64, name="seeds"),
        tf.TensorSpec((3,), tf.int64, name="position"),
    )
    assert stoker.tensorflow.dataset(train, **SETTINGS).element_spec[0].shape.as_list() == [None, 24, 24, 3]


def test_boxes_that_were_asked_for_come_behind_the_labels(train: stoker.Dataset) -> None:
    batches = stoker.tensorflow.dataset(train, boxes=stoker.BoxOutput(pad_to=2), **SETTINGS)
    images, labels, boxes = next(iter(batches))
    assert (len(images), len(labels), boxes["corners"].shape) == (4, 4, (4, 2, 4))


def test_every_pass_is_whole(train: stoker.Dataset) -> None:
    elements = stoker.tensorflow.dataset(train, **SETTINGS)
    assert len(list(elements.take(1))) == 1
    assert [len(labels) for _, labels in elements] == [4, 4, 4, 4, 2]
    pairs = list(tf.data.Dataset.zip((elements, elements)))  # two passes at once
    assert len(pairs) == 5
    first, second = ([label for pair in pairs for label in pair[side][1].numpy()] for side in (0, 1))
    assert sorted(first) == sorted(second) == list(range(1, 19))
    assert first != second


def test_errors_keep_their_message_and_the_next_pass_starts_anew(tmp_path: Path) -> None:
    write_shards(tmp_path, 12, 1, {9: image(2)[:100]})
    broken = stoker.tensorflow.dataset(stoker.open(tmp_path), **{**SETTINGS, "shuffle": False})
    for _ in range(2):
        seen = []
        with pytest.raises(tf.errors.OpError, match=r"picture-9\.JPEG"):
            seen.extend(labels.numpy().tolist() for _, labels in broken)
        assert seen == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_a_state_begins_with_the_rest_of_its_epoch(train: stoker.Dataset) -> None:
    with stoker.Loader(train, **SETTINGS) as loader:
        epochs = [[index for batch in loader for index in batch.indices.tolist()] for _ in range(3)]
    whole = stoker.tensorflow.dataset(train, elements=("indices", "position"), **SETTINGS)
    *_, (_, position) = whole.skip(1).take(2).prefetch(1)  # 3 batches of epoch 0 were trained on
    state = stoker.tensorflow.state_at(position, train, **ORDER)
    assert (state["epoch"], state["consumed"]) == (0, 12)
    rest = stoker.tensorflow.dataset(train, elements=("indices",), state=state, **SETTINGS)
    assert rest.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert [indices_of(rest) for _ in range(3)] == [epochs[0][12:], epochs[1], epochs[2]]


def positions(*epochs: int) -> list[list[int]]:
    """The positions of all batches of some epochs."""
    return [at for epoch in epochs for at in (*([epoch, end, 9] for end in (4, 8, 12, 16)), [epoch + 1, 0, 9])]


def test_a_state_at_the_end_of_an_epoch_begins_with_the_next(train: stoker.Dataset) -> None:
    *_, (last,) = stoker.tensorflow.dataset(train, elements=("position",), **SETTINGS)
    state = stoker.tensorflow.state_at(last, train, **ORDER)
    elements = stoker.tensorflow.dataset(train, elements=("position",), state=state, **SETTINGS)
    assert elements.cardinality() == 5
    assert [p.numpy().tolist() for (p,) in elements] == positions(1)


def test_a_state_behind_the_last_batch_begins_with_an_empty_pass(train: stoker.Dataset) -> None:
    state = stoker.tensorflow.state_at((4, 18), train, **ORDER)  # as older versions saved it
    elements = stoker.tensorflow.dataset(train, elements=("position",), state=state, **SETTINGS)
    assert [[p.numpy().tolist() for (p,) in elements] for _ in range(2)] == [[], positions(5)]


def test_the_seed_of_a_run_without_one_comes_with_the_position(train: stoker.Dataset) -> None:
    order = {name: value for name, value in ORDER.items() if name != "seed"}
    given = {"elements": ("indices", "position"), "batch_size": 4, **order}
    first, other = (stoker.tensorflow.dataset(train, **given) for _ in range(2))
    (_, position), *rest = list(first)
    state = stoker.tensorflow.state_at(position, train, **order)
    assert 0 <= state["seed"] == int(position[2]) < 2**63
    assert state["seed"] != int(next(iter(other))[1][2])
    seen = [keys.numpy().tolist() for keys, _ in stoker.tensorflow.dataset(train, state=state, **given)]
    assert seen == [keys.numpy().tolist() for keys, _ in rest]
    large = stoker.tensorflow.dataset(train, **{**given, "seed": 2**64 - 2})
    assert stoker.tensorflow.state_at(next(iter(large))[1], train, **order)["seed"] == 2**64 - 2
    with pytest.raises(ConfigError, match="give seed="):
        stoker.tensorflow.state_at((0, 4), train, **order)
    with pytest.raises(ConfigError, match="omit seed="):
        stoker.tensorflow.state_at(position, train, **{**order, "seed": 1})
    for other in (None, [4], (1, 2, 3, 4), "4"):
        with pytest.raises(ConfigError, match="give the element position of a batch"):
            stoker.tensorflow.state_at(other, train, **order)


def test_states_of_something_else_are_refused(train: stoker.Dataset) -> None:
    state = stoker.tensorflow.state_at((0, 4), train, **ORDER)
    with pytest.raises(ConfigError, match="seed"):
        stoker.tensorflow.dataset(train, state=state, **{**SETTINGS, "seed": 8})


class Seen(tf.keras.Model):
    """Learns nothing, and writes down what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.positions: list[list[int]] = []

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, float]:
        self.positions.append(data[1].numpy().tolist())
        return {"loss": 0.0}


def test_keras_fit_sees_one_epoch_after_another(train: stoker.Dataset) -> None:
    elements = stoker.tensorflow.dataset(train, elements=("images", "position"), **SETTINGS)
    model = Seen()
    model.compile(run_eagerly=True)
    model.fit(elements, epochs=3, shuffle=False, verbose=0)
    assert model.positions == positions(0, 1, 2)


def test_keras_fit_goes_on_from_a_state(train: stoker.Dataset) -> None:
    state = stoker.tensorflow.state_at((1, 12), train, **ORDER)
    elements = stoker.tensorflow.dataset(train, elements=("images", "position"), state=state, **SETTINGS)
    model = Seen()
    model.compile(run_eagerly=True)
    with warnings.catch_warnings():  # Keras says so wherever the cardinality is unknown
        warnings.filterwarnings("ignore", "Your input ran out of data", UserWarning)
        model.fit(elements, epochs=2, initial_epoch=1, shuffle=False, verbose=0)
        model.fit(elements, epochs=4, initial_epoch=2, shuffle=False, verbose=0)
    assert model.positions == [[1, 16, 9], [2, 0, 9], *positions(2, 3)]


@pytest.mark.parametrize(("state", "left"), [((3, 0), [3]), ((2, 18), [3]), ((4, 0), [])], ids=str)
def test_keras_fit_trains_what_is_left_of_a_run(train: stoker.Dataset, state: tuple[int, int], left: list[int]) -> None:
    begins = stoker.tensorflow.state_at(state, train, **ORDER)
    elements = stoker.tensorflow.dataset(train, elements=("images", "position"), state=begins, **SETTINGS)
    model, epochs = Seen(), 4
    model.compile(run_eagerly=True)
    begun = min(begins["epoch"] + 1, epochs)
    with warnings.catch_warnings():  # of a first pass without a batch
        warnings.filterwarnings("ignore", "Your input ran out of data", UserWarning)
        model.fit(elements, epochs=begun, initial_epoch=begins["epoch"], shuffle=False, verbose=0)
        model.fit(elements, epochs=epochs, initial_epoch=begun, shuffle=False, verbose=0)
    assert model.positions == positions(*left)


def test_pixels_reach_tensorflow_without_a_copy(train: stoker.Dataset) -> None:
    with stoker.Loader(train, **SETTINGS) as loader:
        batch = next(iter(loader))
    assert batch.images.ctypes.data % 64 == 0  # what is not aligned so is copied


def test_no_thread_stays_behind(train: stoker.Dataset) -> None:
    def threads() -> int:
        gc.collect()
        return len(list(Path("/proc/self/task").iterdir()))

    def read() -> None:
        elements = stoker.tensorflow.dataset(train, threads=4, **SETTINGS)
        assert [len(list(elements)), len(list(elements.take(1)))] == [5, 1]

    read()
    before = threads()
    for _ in range(5):
        read()
    assert threads() <= before + 4  # TensorFlow may start some of its own


def test_nothing_is_tuned_or_sharded_but_users_may_turn_it_on(train: stoker.Dataset) -> None:
    elements = stoker.tensorflow.dataset(train, **SETTINGS)
    assert elements.options().autotune.enabled is False
    policy = elements.options().experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.OFF
    options = tf.data.Options()
    options.autotune.enabled = True
    assert elements.map(lambda _, labels: labels).with_options(options).options().autotune.enabled is True
