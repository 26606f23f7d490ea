"""Google's addresses lead to a GCS server of this machine: for clients that know no others, as TensorFlow's ``gs://``.

A proxy as companies have them: a client that is told of it by ``https_proxy`` asks it for a connection to
``storage.googleapis.com``, and trusts the certificate that it presents, because ``CURL_CA_BUNDLE`` says so. The
certificate is made again each time, and its key is thrown away. It is for reading small files: whole answers pass.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import tempfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from .plain_http import ask
from .processes import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("storage.googleapis.com", "www.googleapis.com")
_PASSED = ("content-type", "range", "content-range")


@contextmanager
def leading_to(endpoint: str) -> Iterator[dict[str, str]]:
    """Run the proxy before the GCS server at that URL; gives what clients need in their environment.

    Raises:
        ServerError: There is no ``openssl`` to make a certificate with.
    """
    with tempfile.TemporaryDirectory(prefix="google-") as folder, _Proxy(endpoint, Path(folder)) as proxy:
        thread = Thread(target=proxy.serve_forever, args=(0.05,), name="Google's names", daemon=True)
        thread.start()
        try:
            yield {
                "https_proxy": f"http://127.0.0.1:{proxy.server_port}",
                "CURL_CA_BUNDLE": str(proxy.certificate),
                "GOOGLE_AUTH_TOKEN_FOR_TESTING": "anyone",
                "NO_GCE_CHECK": "true",
                "no_proxy": "127.0.0.1,localhost",
            }
        finally:
            proxy.shutdown()
            thread.join()


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # clients keep connections open

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint = endpoint
        self.certificate, key = _make_certificate(folder)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(self.certificate, key)
        super().__init__(("127.0.0.1", 0), _Connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Connection(BaseHTTPRequestHandler):
    """Joined to one of Google's names, it speaks TLS, and asks the real server the same in plain HTTP."""

    protocol_version = "HTTP/1.1"
    server: _Proxy

    def do_CONNECT(self) -> None:
        if self.path not in {f"{name}:443" for name in _NAMES}:
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_GET(self) -> None:
        head = {name: value for name, value in self.headers.items() if name.lower() in _PASSED}
        answer = ask("GET", self.server.endpoint + self.path, headers=head)
        self.send_response(answer.status)
        for name in sorted({*_PASSED} & {*answer.headers}):
            self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def finish(self) -> None:
        super().finish()
        self.connection.close()  # the one with TLS, of which the server does not know

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class says so
        pass


def _make_certificate(folder: Path) -> tuple[Path, Path]:
    program = shutil.which("openssl")
    if program is None:
        raise ServerError("There is no openssl here: install it")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    names = ",".join(f"DNS:{name}" for name in _NAMES)
    command = [
        *(program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={_NAMES[0]}"),
        *("-addext", f"subjectAltName={names}", "-keyout", str(key), "-out", str(certificate)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise ServerError(f"openssl made no certificate: {done.stderr[-1000:]}")
    return certificate, key
