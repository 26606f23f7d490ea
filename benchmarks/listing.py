"""Time and memory of listing a million objects of a bucket.

A server of this script answers the requests of the real client with pages of a tree that it makes up as it goes:
1,000 classes of 1,000 images, 1,000 keys a page as S3 has it, each page after a latency. The listing runs in a process
of its own, whose peak memory is that of Python, NumPy, the client and the source together.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import resource
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit
from zlib import crc32

from stoker.sources import list_source

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PAGE = 1000
DAY = "2026-01-01T00:00:00.000Z"
TOP = "imagenet/train"


def answer(query: dict[str, str], classes: int, images: int) -> str:
    """A page of keys, or of folders, of the tree."""
    prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
    parts, after = [], after or query.get("start-after", "")
    names = [f"n{label:08d}" for label in range(classes)]
    keys = [f"{prefix}{name}/" for name in names] if prefix == f"{TOP}/" else []
    label = prefix.removeprefix(f"{TOP}/n").rstrip("/")
    if label.isdigit():
        keys = [f"{prefix}n{label}_{image:08d}.JPEG" for image in range(images)]
    elif "delimiter" not in query and keys:
        keys = [f"{TOP}/{names[0]}/n00000000_{image:08d}.JPEG" for image in range(images)]
    elif "delimiter" in query and TOP.startswith(prefix) and prefix != f"{TOP}/":
        keys = [prefix + TOP.removeprefix(prefix).partition("/")[0] + "/"]
    page = [key for key in keys if key > after][:PAGE]
    more = bool(page) and page[-1] != keys[-1]
    for key in page:
        if key.endswith("/"):
            parts.append(f"<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>")
        else:
            about = f"<LastModified>{DAY}</LastModified><ETag>{crc32(key.encode()):032x}</ETag><Size>110000</Size>"
            parts.append(f"<Contents><Key>{key}</Key>{about}<StorageClass>STANDARD</StorageClass></Contents>")
    token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if more else ""
    return f"<ListBucketResult>{''.join(parts)}<IsTruncated>{str(more).lower()}</IsTruncated>{token}</ListBucketResult>"


async def next_head(reader: asyncio.StreamReader) -> bytes:
    """The head of the next request; nothing when the client has hung up."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def serve(ready: Connection, classes: int, images: int, latency: float) -> None:
    """Answer listings until the process is ended; say on which port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await next_head(reader):
            url = urlsplit(head.split(b" ", 2)[1].decode())
            await asyncio.sleep(latency)
            is_listing = head.startswith(b"GET") and "list-type" in url.query
            query = dict(parse_qsl(url.query, keep_blank_values=True))
            body = answer(query, classes, images).encode() if is_listing else b""
            status = b"200 OK" if is_listing else b"404 Not Found"
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
            await writer.drain()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def list_all(results: Connection, port: int) -> None:
    """List the bucket and send images, seconds, and the peak memory in MiB before and after."""
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_REGION": "us-east-1",
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.monotonic()
    tree = list_source(f"s3://bucket/{TOP}")
    seconds = time.monotonic() - started
    tree.fingerprint()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.send((len(tree.table), len(tree.classes), seconds, before, after))


def main() -> int:
    """Print a line and return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--images", type=int, default=1000, help="of each class")
    parser.add_argument("--latency", type=float, default=20, help="milliseconds before each page")
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    numbers = (args.classes, args.images, args.latency / 1000)
    server = context.Process(target=serve, args=(theirs, *numbers), daemon=True)
    server.start()
    lister = context.Process(target=list_all, args=(theirs, ours.recv()))
    lister.start()
    images, classes, seconds, before, after = ours.recv()
    lister.join()
    server.terminate()
    if (images, classes) != (args.classes * args.images, args.classes):
        sys.exit(f"{images} images of {classes} classes were listed")
    rate = f"{seconds:.1f} s, {images / seconds:,.0f} a second"
    print(f"{images:,} objects, {args.latency:g} ms a page: {rate}; peak memory {after:.0f} MiB ({before:.0f} before)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
