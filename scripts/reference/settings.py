"""The page of settings, read from the code: presets and their records, forms of the options, environment variables."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.reference import docstrings
from stoker.builder.settings import PRESETS, Preset
from stoker.download import DATASETS
from stoker.format.shard_names import ShardNaming
from stoker.inspect.bench import CASES
from stoker.loader import ranks
from stoker.recipe import FILTERS, parse_encode
from stoker.recipe.recipe import StoredSize
from stoker.sources.kinds import KINDS

if TYPE_CHECKING:
    from stoker.types import FeatureSpec

PAGE = "docs/reference/settings.md"
ROOT = Path(__file__).resolve().parents[2]
_CLASSES = 10

# What each form of --encode means; each is given to the parser.
_ENCODES = {
    "jpeg:90": "baseline JPEG of quality 1 to 100, chroma subsampled 4:2:0 (`jpeg:90:420`), optimised Huffman tables",
    "jpeg:90:444": "the same without chroma subsampling",
    "jpeg:90:standard": (
        "with the standard Huffman tables, as Pillow and TensorFlow write JPEGs: the same pixels, faster, in about 3 % "
        "more bytes; also behind `jpeg:90:444`"
    ),
    "png": "PNG without loss: RGB, and grey, alpha and 16-bit grey where the source has them",
    "webp:90": "lossy WebP of that quality (0 to 100), with alpha where the source has it",
    "webp:lossless": "WebP without loss, as `webp:90` has it: 8 bits",
    "raw": "pixels, `height * width * 3` bytes: row after row of RGB (`HWC`)",
    "raw:CHW": "pixels: all of red, then green, then blue",
}
_FILTERS = {
    "nearest": "Pillow's",
    "box": "Pillow's",
    "bilinear": "Pillow's, with antialiasing",
    "bicubic": "Pillow's, with antialiasing; the default of a build",
    "lanczos": "Pillow's, with antialiasing",
    "tf1-align-corners": "TensorFlow 1's `resize_bilinear(align_corners=True)`, cut down to uint8",
    "tf1-legacy": "TensorFlow 1's `resize_bilinear(align_corners=False)`, cut down to uint8",
    "tf2-nearest": "TensorFlow 2's `resize(..., method='nearest')`",
}
_ANSWER = "answers of `stoker build --ask` ([the questions](../how-to/migrate/imagenet.md#flags))"
_VARIABLES = {
    "STOKER_KERNELS": "highest instructions used: `portable`, `sse42`, `avx2`, `avx512`; ARM64 `portable`, `neon`",
    "STOKER_CACHE_DIR": "caches of this user: unpacked Parquet files, indexes of shards where nothing can be written",
    "XDG_CACHE_HOME": "the same in its folder `stoker`, where `STOKER_CACHE_DIR` is not set (default `~/.cache`)",
    "AWS_ACCESS_KEY_ID": "S3: with the other `AWS_...` variables of AWS's tools, the account",
    "AWS_ENDPOINT_URL_S3": "S3: another server than Amazon's, the first that is set",
    "AWS_ENDPOINT_URL": "S3: another server than Amazon's, the first that is set",
    "AWS_SKIP_SIGNATURE": "S3: public buckets without an account",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "S3: a role, as Kubernetes, ECS and EKS give it",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "S3: a role, as Kubernetes, ECS and EKS give it",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "S3: a role, as Kubernetes, ECS and EKS give it",
    "STORAGE_EMULATOR_HOST": "GCS: another server than Google's, without an account",
    "AZURE_STORAGE_ENDPOINT": "Azure: another server, the first that is set; the account is in `AZURE_STORAGE_...`",
    "AZURE_ENDPOINT": "Azure: another server, the first that is set; the account is in `AZURE_STORAGE_...`",
    "HF_ENDPOINT": "Hugging Face Hub: another server",
    "HF_TOKEN": "Hugging Face Hub: the token of the account",
    "HF_TOKEN_PATH": "Hugging Face Hub: a file with the token (default `token` in `HF_HOME`)",
    "HF_HOME": "Hugging Face Hub: folder of its tools (default `huggingface` in `XDG_CACHE_HOME`)",
    "STOKER_PARTS": "`stoker build --part auto` in Kubernetes: number of completions of the job",
    "JOB_COMPLETION_INDEX": "the same: number of this one, set by Kubernetes",
    "SLURM_ARRAY_TASK_ID": "`stoker build --part auto`: set by Slurm",
    "SLURM_ARRAY_TASK_COUNT": "`stoker build --part auto`: set by Slurm",
    "SLURM_ARRAY_TASK_MIN": "`stoker build --part auto`: set by Slurm",
    "SLURM_ARRAY_TASK_MAX": "`stoker build --part auto`: set by Slurm",
    "JAVA_HOME": "Spark: Java, where `java` is not on the path",
    "PYSPARK_PYTHON": "Spark: Python of the executors (default: this one)",
    "PYSPARK_GATEWAY_PORT": "Spark: set by `spark-submit`, which has started Java already",
    "IMAGENET_USERNAME": "`stoker download imagenet`: account, key and directory",
    "IMAGENET_ACCESS_KEY": "`stoker download imagenet`: account, key and directory",
    "IMAGENET_OUT_DIR": "`stoker download imagenet`: account, key and directory",
    "DATA_DIR": _ANSWER,
    "IMAGENET_DATA_DIR": _ANSWER,
    "PROTO_OUT_DIR": _ANSWER,
    "RESIZE_IMAGES": _ANSWER,
    "NEW_HEIGHT": _ANSWER,
    "NEW_WIDTH": _ANSWER,
    "JPEG_Q": _ANSWER,
    "TORCHELASTIC_RESTART_COUNT": "set by torchrun: only ranks of one start compare their loaders",
}
_RANKS = {
    "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "HOROVOD_LOCAL_SIZE", "MPI_LOCALNRANKS",
    "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID", "SLURM_CPUS_ON_NODE", "MASTER_ADDR", "JAX_COORDINATOR_ADDRESS",
    "HOROVOD_RANK", "HOROVOD_SIZE", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE",
    "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "TF_CONFIG", "LOCAL_RANK", "PMIX_RANK", "PALS_RANKID",
    "AWS_BATCH_JOB_ARRAY_INDEX", "SM_HOSTS", "TPU_WORKER_HOSTNAMES",
}  # fmt: skip
# What Stoker sets for libraries and programs that it starts.
_SET = {"CUDA_VISIBLE_DEVICES", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "TF_CPP_MIN_LOG_LEVEL"}
_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|RANK")


def page(links: docstrings.Links) -> str:
    """Return the Markdown of the page.

    Raises:
        ValueError: A filter or a variable of the code is not described, or the other way round.
    """
    for text in _ENCODES:
        parse_encode(text)
    _compare("filters", set(FILTERS), set(_FILTERS))
    _compare("environment variables", _read_variables(), _VARIABLES.keys() | _RANKS | _SET)
    parts = [
        "# Settings",
        "Made from the code by `make reference`.",
        "## Kinds of sources",
        "The first of these that recognises a source ([how](images.md#sources)) reads it:",
        "\n".join(f"- {kind.name}" for kind in KINDS),
        "## Presets",
        "Other options override what a preset sets. Without one, a record has the keys of `imagenet`.",
        _table(["preset", *_PRESET_COLUMNS], [_preset_row(name, preset) for name, preset in PRESETS.items()]),
        "## Record keys",
        "`[1]`: one value in every record; `[*]`: any number; `[C]`: one for each class.",
        _table(["preset", "keys"], [[f"`{name}`", _keys(preset)] for name, preset in PRESETS.items() if name]),
        "## `--resize`",
        _of_docstring(StoredSize, links),
        "The other side of a kept aspect is rounded to the nearest pixel, halves upwards, and is at least 1.",
        "## `--encode`",
        _table(["text", "stored image"], [[f"`{text}`", meaning] for text, meaning in _ENCODES.items()]),
        "## `--filter`",
        _table(["filter", "what it is"], [[f"`{name}`", _FILTERS[name]] for name in FILTERS]),
        "## `--shard-names`",
        _of_docstring(ShardNaming, links),
        "## Cases of `stoker bench`",
        _table(["`--only`", "case"], [[f"`{case.key}`", case.name] for case in CASES]),
        "## Environment variables",
        _table(
            ["variable", "meaning"], [[", ".join(map(_code, names)), meaning] for meaning, names in _meanings().items()]
        ),
        "## Ranks",
        "Which of how many ranks a process is, where `rank=` and `world_size=` do not say it.",
        docstrings.markdown("\n\n".join((inspect.getdoc(ranks) or "").split("\n\n")[1:]), links),
    ]
    return "\n\n".join(parts) + "\n"


_PRESET_COLUMNS = ("first class", "`--resize`", "`--encode`", "`--filter`", "`--shard-names`", "shards", "compression")


def _preset_row(name: str | None, preset: Preset) -> list[str]:
    texts = [preset.resize, preset.encode or "", preset.filter or "", preset.shard_names]
    shards = "by size" if preset.shards is None else " and ".join(map(str, preset.shards))
    return [f"`{name}`" if name else "none", str(preset.label_base), *map(_code, texts), shards, preset.compression]


def _meanings() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, meaning in _VARIABLES.items():
        names.setdefault(meaning, []).append(name)
    return names


def _keys(preset: Preset) -> str:
    keys: dict[str, list[str]] = {}
    for key, spec in sorted(preset.schema().info(_CLASSES).features.items()):
        keys.setdefault(_spec(spec), []).append(f"`{key}`")
    return "; ".join(f"{spec}: {', '.join(names)}" for spec, names in sorted(keys.items()))


def _spec(spec: FeatureSpec) -> str:
    length = {1: "1", _CLASSES: "C", None: "*"}[spec.length]
    return f"{spec.kind}[{length}]"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _of_docstring(thing: type, links: docstrings.Links) -> str:
    match = docstrings.TABLE.search((inspect.getdoc(thing) or "") + "\n")
    if match is None:
        raise ValueError(f"the docstring of {thing.__name__} has no table")
    return docstrings.markdown(match[0], links)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _compare(what: str, actual: set[str], described: set[str]) -> None:
    if actual != described:
        lack, gone = sorted(actual - described), sorted(described - actual)
        raise ValueError(f"{what}: {lack} are not described in {__file__}, {gone} are not in the code")


def _read_variables() -> set[str]:
    """Return the texts that may be environment variables, in modules that look at the environment."""
    names: set[str] = set()
    for path in [*(ROOT / "src" / "stoker").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if "environ" in text:
            constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
            names |= {value for value in constants if isinstance(value, str) and _NAME.fullmatch(value)}
    accounts = [dataset.account for dataset in DATASETS.values() if dataset.account is not None]
    names |= {name for account in accounts for name in (account.username, account.key, account.directory)}
    return {name for name in names if not name.startswith("SC_")}  # of os.sysconf
