"""What several tests have Hypothesis draw."""

from __future__ import annotations

from hypothesis import strategies as st

FEATURES = st.dictionaries(
    st.text(max_size=6) | st.sampled_from(["image/encoded", "image/class/label", "é", "\U0001f600"]),
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=200), max_size=4))
    | st.tuples(st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6))
    | st.tuples(st.just("float"), st.lists(st.floats(width=32), max_size=6)),
    max_size=5,
)
"""What an Example holds."""


@st.composite
def regions(draw: st.DrawFn, width: int, height: int) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of a part of an image."""
    left, top = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    return left, top, draw(st.integers(left + 1, width)), draw(st.integers(top + 1, height))
