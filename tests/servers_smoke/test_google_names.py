"""Google's addresses lead to our server, by a certificate of ours; other addresses lead nowhere."""

from __future__ import annotations

import ssl
from http.client import HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from servers import google_names
from servers.plain_http import ask

if TYPE_CHECKING:
    from servers.gcs import GcsServer

pytestmark = pytest.mark.servers


def connection_to(host: str, environment: dict[str, str]) -> HTTPSConnection:
    proxy = urlsplit(environment["https_proxy"])
    context = ssl.create_default_context(cafile=environment["CURL_CA_BUNDLE"])
    connection = HTTPSConnection(str(proxy.hostname), proxy.port, context=context, timeout=10)
    connection.set_tunnel(host, 443)
    return connection


def test_an_object_is_read_under_googles_name(gcs_server: GcsServer) -> None:
    bucket = gcs_server.make_bucket()
    url = f"{gcs_server.endpoint}/upload/storage/v1/b/{bucket}/o?uploadType=media&name=folder/x"
    assert ask("POST", url, b"0123456789").status == 200
    with google_names.leading_to(gcs_server.endpoint) as environment:
        connection = connection_to("storage.googleapis.com", environment)
        try:
            for span, status, body in (("bytes=2-4", 206, b"234"), ("bytes=0-", 206, b"0123456789")):
                connection.request("GET", f"/{bucket}/folder/x", headers={"Range": span})
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (status, body)
            connection.request("GET", f"/{bucket}/nothing")
            answer = connection.getresponse()
            assert answer.status == 404
        finally:
            connection.close()


def test_other_names_are_refused(gcs_server: GcsServer) -> None:
    with google_names.leading_to(gcs_server.endpoint) as environment:
        connection = connection_to("example.org", environment)
        with pytest.raises(OSError, match="403"):
            connection.request("GET", "/")
        connection.close()
