"""A real HDFS: one NameNode and one DataNode of Hadoop 2.7.4, each a process of its own.

``scripts/hdfs_jars.sh DIR`` fetches its jars once; STOKER_TEST_HDFS_JARS names the directory, which is
``build/hdfs-jars`` of the checkout if it is not set. It needs Java. WebHDFS is off: it would want jars from elsewhere,
and nothing here speaks it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .plain_http import ask
from .processes import Process, ServerError, free_ports, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_READY_SECONDS = 60
_CHECKOUT = Path(__file__).resolve().parents[2]
_LOGGING = """log4j.rootLogger=WARN, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %c{1}: %m%n
"""


class HdfsServer:
    """A server that runs.

    Attributes:
        url: ``hdfs://127.0.0.1:PORT``, the root of its files.
        name_port: Of the NameNode.
        data_port: Of the DataNode.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare an empty one with its data in ``folder``; `running` is the way to have one."""
        self.name_port, self._web_port, self.data_port, *others = free_ports(5)
        self.url = f"hdfs://127.0.0.1:{self.name_port}"
        self._folder = folder
        self._configure([self.data_port, *others])
        java = _java_command(folder)
        package = "org.apache.hadoop.hdfs.server"
        self._name_node = Process("NameNode", [*java, f"{package}.namenode.NameNode"], folder)
        self._data_node = Process("DataNode", [*java, f"{package}.datanode.DataNode"], folder)
        with (folder / "format.log").open("wb") as log:
            formatting = [*java, f"{package}.namenode.NameNode", "-format", "-nonInteractive"]
            done = subprocess.run(formatting, stdout=log, stderr=log, timeout=_READY_SECONDS, check=False)
        if done.returncode != 0:
            raise ServerError(f"HDFS could not be formatted:\n{(folder / 'format.log').read_text()[-3000:]}")

    def start(self) -> None:
        """Start it, or start it again with the same files and ports, and wait until it takes and gives blocks."""
        self._name_node.start()
        self._data_node.start()
        self._name_node.wait_until(self._ready, _READY_SECONDS)

    def kill(self) -> None:
        """End it at once, as a crash does. What was closed it still has after `start`."""
        self._data_node.kill()
        self._name_node.kill()

    def kill_data_node(self) -> None:
        """End only the DataNode: names stay, no byte can be read or written."""
        self._data_node.kill()

    def start_data_node(self) -> None:
        """Start the DataNode again; clients can use it some seconds later."""
        self._data_node.start()

    def environment(self) -> dict[str, str]:
        """What clients read from the environment."""
        return {"HADOOP_CONF_DIR": str(self._folder / "conf-of-clients"), "HADOOP_USER_NAME": "tests"}

    def _ready(self) -> bool:
        query = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        state = ask("GET", f"http://127.0.0.1:{self._web_port}/{query}").body
        if not self._data_node.alive:
            raise ServerError(f"The DataNode ended\n{self._data_node.log_tail()}")
        return b'"FSState" : "Operational"' in state and b'"NumLiveDataNodes" : 1' in state

    def _configure(self, data_ports: list[int]) -> None:
        for name in ("hdfs", "datanode"):  # its jars have no pages, and it does not start without a place for them
            (self._folder / "conf" / "webapps" / name / "WEB-INF").mkdir(parents=True, exist_ok=True)
            (self._folder / "conf" / "webapps" / name / "WEB-INF" / "web.xml").write_text("<web-app/>")
        (self._folder / "conf" / "log4j.properties").write_text(_LOGGING)
        listening = zip(("address", "ipc.address", "http.address"), data_ports, strict=True)
        site = {
            "dfs.namenode.name.dir": f"file://{self._folder / 'names'}",
            "dfs.namenode.http-address": f"127.0.0.1:{self._web_port}",
            "dfs.namenode.safemode.extension": "0",
            "dfs.datanode.data.dir": f"file://{self._folder / 'blocks'}",
            "dfs.datanode.hostname": "127.0.0.1",
            **{f"dfs.datanode.{what}": f"127.0.0.1:{port}" for what, port in listening},
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            "dfs.webhdfs.enabled": "false",
        }
        _write(self._folder / "conf", {"fs.defaultFS": self.url}, site)
        _write(self._folder / "conf-of-clients", {"fs.defaultFS": self.url}, {"dfs.replication": "1"})


@contextmanager
def running() -> Iterator[HdfsServer]:
    """A server that is ready and empty; it and its data are gone afterwards.

    Raises:
        ServerError: There is no Java, there are no jars, or it did not come up.
    """
    with started("hdfs", HdfsServer) as server:
        yield server


def java() -> str:
    """The Java to run.

    Raises:
        ServerError: There is none.
    """
    home = os.environ.get("JAVA_HOME", "")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is None or not Path(path).is_file():
        raise ServerError("There is no Java here, or not where JAVA_HOME says: install Java 17 (scripts/deps.sh test)")
    return path


def _java_command(folder: Path) -> list[str]:
    jars = Path(os.environ.get("STOKER_TEST_HDFS_JARS") or _CHECKOUT / "build" / "hdfs-jars").resolve()
    if not (jars / "complete").exists():
        raise ServerError(
            f"There are no jars of an HDFS server in {jars}: "
            "run scripts/hdfs_jars.sh DIR and set STOKER_TEST_HDFS_JARS=DIR"
        )
    # Two small, quick JVMs; their code is from before modules.
    settings = [
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
    ]
    return [java(), *settings, "-cp", f"{folder / 'conf'}:{jars}/*"]


def _write(folder: Path, core: Mapping[str, str], site: Mapping[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, settings in (("core-site.xml", core), ("hdfs-site.xml", site)):
        lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()]
        (folder / name).write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
