"""What a sample tree holds."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.config import check_range
from stoker.errors import ConfigError

# Synsets of ImageNet with their words; a tree of up to ten classes uses the first of them.
_SYNSETS = (
    ("n01440764", "tench, Tinca tinca"),
    ("n01530575", "brambling, Fringilla montifringilla"),
    ("n01641577", "bullfrog, Rana catesbeiana"),
    ("n01773549", "barn spider, Araneus cavaticus"),
    ("n01882714", "koala, koala bear, kangaroo bear, native bear, Phascolarctos cinereus"),
    ("n02007558", "flamingo"),
    ("n02099601", "golden retriever"),
    ("n02281406", "sulphur butterfly, sulfur butterfly"),
    ("n02504458", "African elephant, Loxodonta africana"),
    ("n03028079", "church, church building"),
)
_LEAST_WITH_DAMAGE = 13
"""Training images it takes to have one of each odd and each damaged kind."""
_FIRST_MADE_UP = 20_000_000  # above every number of a real synset


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """What a sample tree holds.

    The same spec gives the same bytes for any number of threads, on one machine with the same numpy and Pillow. Another
    processor or version may round a pixel otherwise.

    The odd files are always there, one of each kind, in place of ordinary training images; a tree of fewer training
    images than that holds as many kinds as fit. Damaged files come after them.

    Attributes:
        classes: Number of classes.
        images_per_class: Training images of each class.
        validation_per_class: Validation images of each class.
        seed: Of everything random.
        damaged: Whether damaged files are put among the others.

    Raises:
        ConfigError: A number is out of range, or there are too few training images to damage some.
    """

    classes: int = 10
    images_per_class: int = 30
    validation_per_class: int = 6
    seed: int = 17
    damaged: bool = False

    def __post_init__(self) -> None:
        check_range("classes", self.classes, 1, 10_000)
        check_range("images per class", self.images_per_class, 1, 100_000)
        check_range("validation images per class", self.validation_per_class, 0, 100_000)
        check_range("seed", self.seed, 0, 2**63)
        images = self.classes * self.images_per_class
        if self.damaged and images < _LEAST_WITH_DAMAGE:
            raise ConfigError(
                f"{images} training images are too few for every kind of damage; "
                f"it takes {_LEAST_WITH_DAMAGE}: ask for more classes or more images of each"
            )

    def synsets(self) -> list[tuple[str, str]]:
        """Return the id and the words of every class, in the order of the ids."""
        made_up = range(len(_SYNSETS), self.classes)
        return [*_SYNSETS[: self.classes], *((f"n{_FIRST_MADE_UP + i}", f"made-up class {i}") for i in made_up)]


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What was made.

    Attributes:
        images: Image files, the damaged ones included.
        size_bytes: Their bytes.
        oddities: Path below the tree -> what is odd about it, of files that are right but unusual.
        damaged: Path below the tree -> what is wrong with it: images that cannot be used, and one annotation.
        made: False when the very same tree was there already.
    """

    images: int
    size_bytes: int
    oddities: dict[str, str]
    damaged: dict[str, str]
    made: bool
