"""Many small cases in one test: pytest takes milliseconds for each test, which is more than such a case takes."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


def each(names: str | Sequence[str], cases: Collection[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize`` gives a test its cases, but within one test; a failure names its case.

    The cases share the fixtures of the test.
    """
    several = not isinstance(names, str)
    listed = names if several else [names]

    def over_all(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def loop(**fixtures: Any) -> None:
            assert cases, f"{test.__name__} has no cases"
            for values in cases:
                case = dict(zip(listed, values if several else [values], strict=True))
                try:
                    test(**fixtures, **case)
                except BaseException as error:  # those of pytest, too, such as that of pytest.raises
                    shown = (f"{name}={str(value)[:300]}" for name, value in case.items())
                    error.add_note(f"{test.__name__}: {', '.join(shown)}")
                    raise

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in listed]
        loop.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return loop

    return over_all
