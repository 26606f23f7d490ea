"""``stoker info``: print what a dataset holds, without reading its images."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stoker.cli import options, output
from stoker.config import format_count, format_size, format_some, refuse_ineffective
from stoker.format import format_manifest
from stoker.inspect import (
    DEFAULT_RECORDS,
    DatasetInfo,
    ForeignInfo,
    ImagesInfo,
    UnfinishedInfo,
    dataset_info,
)
from stoker.storage import location

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from stoker.format import Manifest
    from stoker.inspect import ClassCount
    from stoker.types import Field

_ENDS = 5  # classes shown from the top and from the bottom of the histogram
_BAR = 30
_NAMED = 12  # classes of boxes
_SUFFIXES, _SUFFIX = 12, 20  # how many suffixes of names are shown, and characters of each

DESCRIPTION = "Print what a dataset holds, without reading its images: schema, recipe, counts, sizes, classes."
EXAMPLES = ("stoker info dataset", "stoker info dataset --html page.html", "stoker info 'tfrecords/train-*'")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "dataset, unfinished build, directory, pattern or file of TFRecords, or images; or its URL"
    parser.add_argument("dataset", help=text)
    add = parser.add_argument_group("what is looked at").add_argument
    text = (
        f"records to read: the first N of TFRecords of other origin, with --html N random (default {DEFAULT_RECORDS})"
    )
    add("--records", type=int, metavar="N", help=text)
    add("--html", metavar="FILE", help="write a page with charts, images and rejects instead; also of images")
    text = "with --html: what the dataset was built from, to show the rejects that are still there"
    add("--source", metavar="PATH", help=text)
    options.add_opening(parser)


def run(args: argparse.Namespace) -> int:
    """Print what is known, or write a page about it, and return 0."""
    if args.html is not None:
        return _write_page(args)
    refuse_ineffective({"source": args.source}, "without --html", "give both, or omit it")
    info = dataset_info(args.dataset, _records(args), options.record_keys(args), options.source_options(args))
    if not isinstance(info, ForeignInfo):
        where = f"on {args.dataset}, which is described without reading records"
        refuse_ineffective({"records": args.records}, where, "omit it, or add --html")
    turned, looked_at = (0, 0) if isinstance(info, UnfinishedInfo) else info.turned
    if args.json:
        output.document(_document(info) | {"exif_orientation": {"images": turned, "looked_at": looked_at}})
    elif isinstance(info, DatasetInfo):
        _print_dataset(info)
    elif isinstance(info, UnfinishedInfo):
        _print_unfinished(info)
    elif isinstance(info, ImagesInfo):
        _print_images(info)
    else:
        _print_foreign(info)
    if turned and not args.json:
        message = f"EXIF orientation, not applied: {turned:,} of {format_count(looked_at, 'image')} looked at"
        output.line(f'{message}; stoker.open(..., exif="apply") does')
    return 0


def _records(args: argparse.Namespace) -> int:
    return DEFAULT_RECORDS if args.records is None else int(args.records)


def _write_page(args: argparse.Namespace) -> int:
    page = output.page_module(args.html)
    with output.shown_progress("looking", bad="unreadable") as progress:
        portrait = page.dataset_portrait(
            args.dataset,
            _records(args),
            args.source,
            progress,
            keys=options.record_keys(args),
            options=options.source_options(args),
        )
    location(args.html).write_atomically(page.info_page(portrait).encode())
    looked_at, rejects = len(portrait.measured.seen), portrait.rejects.total
    if args.json:
        output.document({"page": args.html, "images": portrait.samples, "looked_at": looked_at, "rejects": rejects})
    else:
        output.line(
            f"{args.html}: a page about {format_count(portrait.samples, 'image')}, {looked_at:,} of them looked at"
        )
    return 0


def _document(info: DatasetInfo | UnfinishedInfo | ForeignInfo | ImagesInfo) -> dict[str, Any]:
    own = output.fields_of(info)
    own.pop("turned", None)  # `run` adds it for every kind
    if isinstance(info, UnfinishedInfo):
        return {"state": "unfinished", **own, "remedy": info.remedy}
    if isinstance(info, ForeignInfo):
        return {"state": "foreign", **own, "layout": info.layout and info.layout.preset}
    if isinstance(info, ImagesInfo):
        fields, examples = {name: field.to_json() for name, field in own.pop("fields").items()}, own.pop("examples")
        extra = {"fields": fields, "examples": examples} if fields else {}
        classes = {"classes": output.classes_of(own.pop("histogram")), **_box_classes(info)}
        del own["box_histogram"]
        return {"state": "images", **own, **classes, **extra}
    manifest = json.loads(format_manifest(info.manifest))
    for split in manifest["splits"].values():
        split["mean_bytes"] = round(split["bytes"] / split["records"], 1) if split["records"] else None
    return {
        "state": "finished",
        "path": info.path,
        **manifest,
        "records": info.manifest.records,
        "rejects": info.manifest.rejects,
        **({"examples": info.examples} if info.examples else {}),
        "classes": output.classes_of(info.histogram),
        **_box_classes(info),
        **({"being_built": True} if info.being_built else {}),
    }


def _box_classes(info: DatasetInfo | ImagesInfo) -> dict[str, Any]:
    return {"box_classes": output.classes_of(info.box_histogram)} if info.box_histogram else {}


def _print_dataset(info: DatasetInfo) -> None:
    manifest = info.manifest
    schema, source = manifest.schema, manifest.source
    output.line(f"{info.path}: finished dataset {manifest.dataset_id}, written by stoker {manifest.stoker_version}")
    if info.being_built:
        output.line("a build has begun here and not ended, so shards may be gone; if it was stopped, run it again")
    items, damaged = format_count(source.items, "item"), f"{manifest.annotation_errors:,}; their images have no boxes"
    output.facts(
        {
            "source": f"{items}, {format_size(source.size_bytes)}, fingerprint {source.fingerprint}",
            "ignored in the source": output.counted(source.ignored),
            "recipe": _setting(manifest.recipe),
            "checked": _checked(manifest),
            "stored": output.formats_line(manifest),
            **output.converted(manifest),
            "encoded by": _setting(manifest.encoders),
            "damaged annotations": damaged if manifest.annotation_errors else "",
            "seed": str(manifest.seed),
        }
    )
    rows = [
        (name, len(s.shards), s.records, format_size(s.size_bytes), _mean_size(s.size_bytes, s.records), s.rejects)
        for name, s in manifest.splits.items()
    ]
    output.line("")
    output.table(["split", ">shards", ">records", ">bytes", ">a record", ">rejects"], rows)
    output.line("")
    uses = {schema.image_key: "the image", schema.label_key: "its class", schema.filename_key: "its source"}
    output.line(f"schema: {schema.preset}, {len(schema.features)} features")
    features = [
        (key, feature.kind, "any" if feature.length is None else feature.length, uses.get(key, ""))
        for key, feature in schema.features.items()
    ]
    output.table(["feature", "kind", ">length", "use"], features)
    if schema.box_names:
        output.line(f"classes of boxes: {len(schema.box_names):,}: {format_some(schema.box_names, _NAMED)}")
    _print_fields(schema.fields, info.examples, "in the first record")
    output.line("")
    _print_histograms(info, list(manifest.splits), schema.label_note)


def _print_fields(fields: Mapping[str, Field], examples: Mapping[str, str], where: str) -> None:
    if fields:
        output.line("")
        described = [(name, field.summary, examples[name]) for name, field in fields.items()]
        output.table(["field", "kind", where], described)


def _checked(manifest: Manifest) -> str:
    """Return how much of each stored image the build has checked."""
    recipe = manifest.recipe
    keeps_images = recipe.get("kind") == "keep" or str(recipe.get("resize")).startswith("max:")
    if recipe.get("kind") == "encode":
        keeps_images = any("kept" in counts for counts in manifest.formats.values())
    if not keeps_images:
        return "all data of every image"
    if recipe.get("check") == "header":
        return "header and markers or chunks of every image kept, not its pixels; 'stoker verify' decodes them"
    return f"all data of every image (--check {recipe.get('check')})"


def _print_histograms(info: DatasetInfo | ImagesInfo, splits: Sequence[str], note: str) -> None:
    boxes = sum(entry.total for entry in info.box_histogram)
    if not info.box_histogram and not info.histogram:
        output.line("no classes")
    elif not info.box_histogram or any(entry.total for entry in info.histogram):
        _print_histogram(info.histogram, splits, "classes", "records", [note] * bool(note))
    if info.box_histogram:
        what = f"classes of {format_count(boxes, 'box')}"
        _print_histogram(info.box_histogram, splits, what, "boxes", [note] * bool(note))


def _print_histogram(
    histogram: Sequence[ClassCount], splits: Sequence[str], what: str, of: str, facts: list[str]
) -> None:
    ordered = sorted(histogram, key=lambda entry: (-entry.total, entry.label))
    empty = sum(entry.total == 0 for entry in ordered)
    facts = [f"{empty:,} of them without {of}"] * bool(empty) + facts
    output.line(", ".join([f"{what}: {len(ordered):,}", *facts]))
    top, bottom = (ordered, []) if len(ordered) <= 2 * _ENDS + 2 else (ordered[:_ENDS], ordered[-_ENDS:])
    most = max((entry.total for entry in ordered), default=0)
    rows = [_class_row(entry, splits, most) for entry in top]
    if bottom:
        rows.append(("...", f"{len(ordered) - 2 * _ENDS:,} more", "", *[""] * len(splits), ""))
        rows += [_class_row(entry, splits, most) for entry in bottom]
    output.table([">id", "class", "text", *(f">{name}" for name in splits), "share of the largest"], rows)


def _class_row(entry: ClassCount, splits: Sequence[str], most: int) -> tuple[object, ...]:
    text = entry.text if len(entry.text) <= 32 else entry.text[:29] + "..."
    return (
        str(entry.label),
        entry.name,
        text,
        *(entry.counts.get(name, 0) for name in splits),
        output.bar(entry.total / max(1, most), _BAR),
    )


def _print_unfinished(info: UnfinishedInfo) -> None:
    planned = "" if info.planned_shards is None else f" of {info.planned_shards:,}"
    output.line(f"{info.path}: unfinished build, {info.shards:,}{planned} shards are complete")
    size = format_size(info.size_bytes)
    output.line(f"so far: {format_count(info.records, 'record')}, {size}, {format_count(info.rejects, 'reject')}")
    rows = [(key, _setting(value)) for key, value in info.settings.items() if key != "source"]
    if rows:
        output.table(["setting", "value"], rows)
    output.line(f"to do: {info.remedy}")


def _print_foreign(info: ForeignInfo) -> None:
    output.line(f"{info.path}: TFRecords without a manifest")
    rows = []
    for name, split in info.splits.items():
        records = "?" if split.records is None else split.records
        missing = format_some(split.missing, 5, "{:05d}".format)
        rows.append((name, split.shards, records, format_size(split.size_bytes), missing or "none"))
    output.table(["split", ">shards", ">records", ">bytes", "missing shards"], rows)
    uncounted = [split for split in info.splits.values() if split.records is None]
    if any(split.compression == "none" for split in uncounted):
        output.line("records are known only where every shard has an index; 'stoker index' writes them")
    if any(split.compression != "none" for split in uncounted):
        output.line("records of compressed shards are not known: nothing can index them; 'stoker verify' counts them")
    output.line("")
    if info.layout is None:
        output.line("layout: unknown; give --image-key KEY and --label-key KEY of those below")
    else:
        count = "count from 1" if info.layout.label_base else "are read as they are stored"
        output.line(f"layout: {info.layout.preset}; labels {count}")
    first = f"the first {format_count(info.looked_at, 'record')}"
    if info.formats:
        output.line(f"images of {first}: {output.counted(info.formats)}")
    output.line(f"keys of {first}:")
    features = [
        (
            key,
            " or ".join(seen.kinds),
            seen.shortest if seen.shortest == seen.longest else f"{seen.shortest:,} to {seen.longest:,}",
            format_size(seen.size_bytes / seen.records) if "bytes" in seen.kinds else "",
            "all" if seen.records == info.looked_at else seen.records,
        )
        for key, seen in info.keys.items()
    ]
    output.table(["feature", "kind", ">length", ">mean bytes", ">in records"], features)


def _print_images(info: ImagesInfo) -> None:
    output.line(f"{info.path}: images, not built")
    rows = [
        (name, s.images, format_size(s.size_bytes), _mean_size(s.size_bytes, s.images), s.unlabelled)
        for name, s in info.splits.items()
    ]
    output.table(["split", ">images", ">bytes", ">an image", ">without a class"], rows)
    endings = {suffix[:_SUFFIX] or "no suffix": count for suffix, count in list(info.suffixes.items())[:_SUFFIXES]}
    more = len(info.suffixes) - len(endings)
    output.line(f"names end in: {output.counted(endings)}" + (f" and {more:,} others" if more else ""))
    for line in output.boxes_lines(info.path, info.boxes):
        output.line(line)
    output.facts({"ignored": output.counted(info.ignored)})
    for warning in info.warnings:
        output.line(f"warning: {warning}")
    _print_fields(info.fields, info.examples, "of the first image")
    output.line("")
    _print_histograms(info, list(info.splits), "")
    output.line("")
    output.line("next: 'stoker plan' checks every image, 'stoker show' and 'stoker info --html' draw some of them")


def _setting(value: object) -> str:
    return ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)


def _mean_size(size_bytes: int, records: int) -> str:
    return format_size(size_bytes / records) if records else "-"
