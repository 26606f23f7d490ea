"""Which files a dataset consists of, where they lie, and what their bytes must be: data only.

Sizes and checksums are those that several independent users of the files have published: torchvision (MD5 of the images
and of the devkit), ImageNet's page of downloads (MD5 of the bounding boxes), TensorFlow Datasets (sizes and SHA-256 of
Stanford Dogs), Avalanche and others (MD5 and size of Tiny ImageNet). A size that could not be confirmed is left out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unpacking:
    """What an archive becomes, for datasets that are read as folders."""

    folder: str  # name of the folder, beside the archive
    is_inside: bool  # whether the archive holds that folder; otherwise all that it holds goes into it
    max_bytes: int  # the archive is refused if its files have more bytes than this, together


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file to fetch."""

    name: str  # its name at the server: the URL is the base URL, and then this
    saved_as: str  # where it goes, below the directory of the dataset
    checksum: str  # what its bytes must hash to: ``md5:`` or ``sha256:``, and the digest in hex
    size_bytes: int | None = None  # how many they are; None if that is not known for sure
    unpacking: Unpacking | None = None  # what it becomes; None if builds read it as it is


@dataclass(frozen=True, slots=True)
class AccountNames:
    """How the account of a dataset is called in the environment."""

    username: str  # variable with the user name
    key: str  # variable with the access key
    directory: str  # variable with the directory to download to
    register: str  # where to get an account


@dataclass(frozen=True, slots=True)
class RemoteDataset:
    """A dataset that can be downloaded."""

    name: str  # as people type it
    base_urls: tuple[str, ...]  # URLs that end with a slash, in the order in which they are tried
    files: tuple[RemoteFile, ...]  # in this order: small ones first, so that a refusal comes early
    account: AccountNames | None = None  # set if the server may want an account
    source: str = ""  # what to build from, below the directory; empty for the directory itself
    preset: str = ""  # the preset of ``stoker build`` that writes what the system writes for which it was first packed


_GIGABYTE = 10**9

DEVKIT = RemoteFile(
    "ILSVRC2012_devkit_t12.tar.gz", "ILSVRC2012_devkit_t12.tar.gz", "md5:fa75699e90414af021442c21a62c3abf"
)
"""ImageNet's development kit, without which its validation images have no classes."""

_IMAGENET = RemoteDataset(
    name="imagenet",
    base_urls=(
        "https://image-net.org/data/ILSVRC/2012/",
        "https://www.image-net.org/challenges/LSVRC/2012/nnoupb/",
        "https://www.image-net.org/challenges/LSVRC/2012/nonpub/",
    ),
    files=(
        DEVKIT,
        RemoteFile(
            "ILSVRC2012_bbox_train_v2.tar.gz",
            "bounding_boxes/annotations.tar.gz",
            "md5:9271167e2176350e65cfe4e546f14b17",
        ),
        RemoteFile(
            "ILSVRC2012_img_val.tar",
            "ILSVRC2012_img_val.tar",
            "md5:29b22e2961454d5413ddabcf34fc5622",
            6_744_924_160,
        ),
        RemoteFile(
            "ILSVRC2012_img_train.tar",
            "ILSVRC2012_img_train.tar",
            "md5:1d675b47d978889d74fa0da5fadfb00e",
            147_897_477_120,
        ),
    ),
    account=AccountNames(
        "IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY", "IMAGENET_OUT_DIR", "https://image-net.org/download.php"
    ),
    preset="imagenet",
)

_TINY_IMAGENET = RemoteDataset(
    name="tiny-imagenet",
    base_urls=("http://cs231n.stanford.edu/",),
    files=(
        RemoteFile(
            "tiny-imagenet-200.zip",
            "tiny-imagenet-200.zip",
            "md5:90528d7ca1a48142e341f4ef8d21d0de",
            248_100_043,
            unpacking=Unpacking("tiny-imagenet-200", is_inside=True, max_bytes=_GIGABYTE),
        ),
    ),
    source="tiny-imagenet-200",
    preset="tiny-imagenet",
)

_STANFORD_DOGS = RemoteDataset(
    name="stanford-dogs",
    base_urls=("http://vision.stanford.edu/aditya86/ImageNetDogs/",),
    files=(
        RemoteFile(
            "lists.tar",
            "lists.tar",
            "sha256:34b47cacd9a98b5d150e084f24d29391c084c55272295ec65c85651bc35f4d6c",
            481_280,
            unpacking=Unpacking("lists", is_inside=False, max_bytes=_GIGABYTE),
        ),
        RemoteFile(
            "annotation.tar",
            "annotation.tar",
            "sha256:662ed36f707be6b195c2fda392d8e153e83af28cedc8e2134a649f198def30fd",
            21_852_160,
            unpacking=Unpacking("Annotation", is_inside=True, max_bytes=_GIGABYTE),
        ),
        RemoteFile(
            "images.tar",
            "images.tar",
            "sha256:a443fc2f9a851aa1a7b8e4fa4af94b8459fce2c9f5a2f4dd4669cf9673a4ec58",
            793_579_520,
            unpacking=Unpacking("Images", is_inside=True, max_bytes=_GIGABYTE),
        ),
    ),
    source="Images",
    preset="dogs-onehot",
)

DATASETS: dict[str, RemoteDataset] = {dataset.name: dataset for dataset in (_IMAGENET, _TINY_IMAGENET, _STANFORD_DOGS)}
"""Every dataset that can be downloaded, by name."""
