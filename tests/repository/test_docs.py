"""The documentation cannot lie: its Python runs, its commands parse, its links lead somewhere.

Every ``python`` block of a page runs, in order, in one namespace, in a directory that holds ``photos/`` (what ``stoker
sample`` makes) and ``dataset/`` (what ``stoker build photos dataset`` makes of it). Code that is not meant to run is
not in a ``python`` block.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import preloaded
import stoker
import stoker.cli.main
from programs import run_python
from repository import markdown
from repository.checkout import ROOT, pages
from small_cases import each

if TYPE_CHECKING:
    from pathlib import Path

# Python that is shown and cannot run here: how many blocks of a page, and why. Each must still be there.
NOT_RUN = {
    "docs/how-to/other-readers.md": (4, "runs in environments of its own: `make test-clients`"),
    "docs/how-to/transformers.md": (1, "runs in an environment of its own: `make test-clients`"),
    "docs/how-to/timm.md": (1, "timm is not installed for the tests"),
    "docs/how-to/my-csv.md": (6, "copies of data sets of others: tests/sources/test_my_csv.py"),
    "docs/how-to/ray.md": (2, "a cluster"),
    "docs/how-to/buckets.md": (2, "names of buckets"),
    "docs/how-to/migrate/dlbs.md": (1, "a dataset of the original system"),
    "docs/how-to/migrate/dogs.md": (2, "a bucket, and a line of the original notebook"),
    "docs/how-to/migrate/file-lists.md": (1, "a file list of the original system"),
    "docs/how-to/migrate/tfds.md": (1, "a dataset that TFDS prepared"),
    "docs/how-to/migrate/tiny-imagenet.md": (1, "a cluster"),
}
QUICK_START = ROOT / "docs" / "tutorials" / "first-dataset.md"
DISTRIBUTED = ROOT / "docs" / "tutorials" / "distributed-training.md"
OF_THE_MACHINE = {"pip install .", "make demo"}  # CI installs in this way; the demo is these commands once more
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
NEEDS_JAVA = {"docs/how-to/spark.md"}
SIGNATURES = "docs/reference/api/"  # made from the code: test_reference.py
WITH_PYTHON = [
    pytest.param(page, id=markdown.name(page), marks=[pytest.mark.servers] if markdown.name(page) in NEEDS_JAVA else [])
    for page in pages()
    if page != DISTRIBUTED
    and not markdown.name(page).startswith(SIGNATURES)
    and any(block.language == "python" for block in markdown.blocks(page))
]


# JAX warns of every fork after it was imported, also of those that end in another program, as Spark's do.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning", "ignore:'boxes' is a field of JSON")
@pytest.mark.parametrize("page", WITH_PYTHON)
@pytest.mark.slow
def test_the_python_of_a_page_runs(
    page: Path,
    photos: Path,
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if "from torchvision" in markdown.program(page):
        request.getfixturevalue("torchvision")
    shutil.copytree(photos, tmp_path / "photos")
    shutil.copytree(dataset, tmp_path / "dataset")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "documentation"}
    exec(compile(markdown.program(page), str(page), "exec"), namespace)


@each("page", pages())
def test_the_commands_of_a_page_parse(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in markdown.commands(page):
        parser = stoker.cli.main.make_parser(words)
        if "--help" in words:
            with pytest.raises(SystemExit):
                parser.parse_args(words)
        else:
            parser.parse_args(words)


@each("page", pages())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, heading in markdown.links(page):
        assert target.exists(), f"{markdown.name(page)} links to {target}, which is not there"
        if heading:
            assert heading in markdown.headings(target), f"{markdown.name(page)} links to #{heading} of {target}"


@each("page", pages())
def test_every_block_says_what_it_is(page: Path) -> None:
    known = {"python", "console", "sh", "text", "json", "toml", "cpp", "c", "proto", "tsv"}
    assert {block.language for block in markdown.blocks(page)} <= known


@each("page", pages())
def test_no_code_is_left_out(page: Path) -> None:
    # Code that is indented, in a list, or fenced in another way would be shown to readers and never run.
    assert markdown.code_seen_by_readers(page) == [(block.language, block.text) for block in markdown.blocks(page)]
    others = [block.text for block in markdown.blocks(page) if block.language != "python"]
    not_run = sum(markdown.is_python(text) for text in others)
    assert not_run == NOT_RUN.get(markdown.name(page), (0, ""))[0], "Python in blocks that are not run; see NOT_RUN"


@each("page", pages())
def test_what_make_is_asked_for_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shell = [block.text for block in markdown.blocks(page) if block.language in ("console", "sh")]
    assert set(re.findall(r"^(?:\$ )?make ([a-z-]+)", "\n".join(shell), re.MULTILINE)) <= targets


@pytest.mark.parametrize(
    "block",
    [
        "- in a list\n\n  ```python\n  x = 1\n  ```\n",
        "    x = 1\n",
        "~~~python\nx = 1\n~~~\n",
        "> ```python\n> x = 1\n> ```\n",
        "```python title='x'\nx = 1\n```\n",
        "```python\nx = 1\n",
        " ```python\nx = 1\n ```\n",
    ],
)
def test_a_block_that_would_not_run_is_noticed(tmp_path: Path, block: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A\n\n{block}\n")
    assert markdown.code_seen_by_readers(page) != [(parsed.language, parsed.text) for parsed in markdown.blocks(page)]


def test_python_under_another_name_is_noticed() -> None:
    assert markdown.is_python("import stoker\ntrain = stoker.open('x')")
    assert not markdown.is_python("stoker build a b\n")
    assert not markdown.is_python("photos | shards | batches")


def test_code_that_is_wrong_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    code = "```python\nx = 1\n```\n\nText.\n\n```python\nassert x == 2\n```\n"
    page.write_text(f"# A\n\n{code}\n[b](b.md#c)\n\n```sh\nstoker plan a --nix\n```\n")
    with pytest.raises(AssertionError) as caught:
        exec(compile(markdown.program(page), str(page), "exec"), {})
    assert caught.traceback[-1].lineno == 9  # counted from 0: the line on the page
    assert list(markdown.commands(page)) == [["plan", "a", "--nix"]]
    assert list(markdown.links(page)) == [(tmp_path / "b.md", "c")]
    assert markdown.headings(page) == {"a"}


@pytest.mark.slow
def test_the_quick_start_works(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(photos, tmp_path / "photos")  # what its first command makes: that finds it there
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "documentation"}
    run: list[str] = []
    for block in markdown.blocks(QUICK_START):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(QUICK_START), "exec"), namespace)
            continue
        for line in block.text.splitlines():
            command = line.partition("#")[0].strip()
            if command not in OF_THE_MACHINE:
                program, *words = command.split()
                assert program == "stoker", command
                assert stoker.cli.main.main(words) == 0, command
                run.append(words[0])
    assert run == ["sample", "plan", "build", "verify", "info", "show", "build"]
    assert (tmp_path / "sheet.png").stat().st_size > 10_000


@pytest.mark.needs("torch")
@pytest.mark.timeout(900)  # five processes import PyTorch
def test_the_distributed_tutorial_works(dataset: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset, tmp_path / "dataset")
    settle = "\nimport time\ntime.sleep(0.5)\n"  # as in tests/loader/torch_ranks.py
    (tmp_path / "train.py").write_text(markdown.program(DISTRIBUTED) + settle, encoding="utf-8")
    lines = [
        line for block in markdown.blocks(DISTRIBUTED) if block.language == "sh" for line in block.text.splitlines()
    ]
    assert [line.split()[0] for line in lines] == ["torchrun", "cp", "torchrun", "cp", "torchrun"]
    seen = []
    for program, *words in map(str.split, lines):
        if program == "cp":
            shutil.copy(tmp_path / words[0], tmp_path / words[1])
            continue
        run = ["-m", "torch.distributed.run", "--standalone", *words]
        environment = {**os.environ, **ONE_THREAD}
        python = preloaded.python("torch")
        result = run_python(*run, python=python, cwd=tmp_path, env=environment, seconds=280)
        assert result.returncode == 0, result.stderr
        epochs = re.findall(r"epoch (\d+), samples \[([\d, ]*)\]", result.stdout)  # lines may run together
        seen.append([(int(epoch), int(index)) for epoch, text in epochs for index in text.split(", ") if text])
    stopped, two, alone = seen
    assert len(stopped) == 24
    every = [(epoch, index) for epoch in range(3) for index in range(40)]
    assert sorted(stopped + two) == sorted(stopped + alone) == every
    saved = pytest.importorskip("torch").load(tmp_path / "checkpoint.pt")["loader"]
    assert (saved["epoch"], saved["consumed"]) == (3, 0)  # started again, the program would train nothing


@pytest.mark.needs("torch")
def test_the_loss_of_the_pages_is_finite_where_a_rank_has_repeats_alone(dataset: Path) -> None:
    torch = pytest.importorskip("torch")
    written = {
        loss
        for page in pages()
        for loss in re.findall(r"\(losses[^=\n]*batch\.valid\)[^\s)]*\(\)", page.read_text(encoding="utf-8"))
    }
    assert len(written) == 1  # all pages say the same
    train = stoker.open(dataset, split="train")
    shares = []
    for rank in range(3):  # 39 samples in the first step, one in the second
        settings = {"transform": stoker.Resize(8), "rank": rank, "world_size": 3}
        with stoker.torch.DataLoader(train, 13, **settings) as loader:
            for batch in loader:
                scores = torch.zeros(len(batch), len(train.classes))
                losses = torch.nn.functional.cross_entropy(scores, batch.labels, reduction="none")
                assert torch.isfinite(eval(written.copy().pop(), {"losses": losses, "batch": batch}))
            shares.append(int(batch.valid.sum()))
    assert shares == [1, 0, 0]
