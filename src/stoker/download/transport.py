"""One HTTP request: redirects, the account, timeouts. What the answer means is for `stoker.download.fetch`."""

from __future__ import annotations

import http.client
import ssl
import string
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit

from stoker.download.account import origin_of
from stoker.download.failure import Interruption, PlaceError, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message

    from stoker.download.account import Keyring

_MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_READ_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answers. Use it as a context, which ends the connection.

    Attributes:
        status: HTTP status.
        headers: Its headers.
    """

    status: int
    headers: Message
    _response: http.client.HTTPResponse

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *exception: object) -> None:
        self._response.close()

    def read(self) -> bytes:
        """Return the bytes that have come, at most one MiB; empty at the end of the body or of the connection.

        Raises:
            Interruption: Nothing came for too long, or the connection broke.
        """
        try:
            return self._response.read1(_READ_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise Interruption(reason_of(error), is_answered=True) from None


class Transport:
    """Sends requests. Proxies are those of the environment (``https_proxy``, ``no_proxy``); TLS trusts the system.

    Args:
        keyring: The account, and who may see it.
        stall_seconds: How long a server may be silent.
    """

    def __init__(self, keyring: Keyring, stall_seconds: float) -> None:
        self._keyring = keyring
        self._stall_seconds = stall_seconds
        # Not build_opener(): it opens file: and ftp: URLs too, and follows redirects with all headers.
        self._opener = urllib.request.OpenerDirector()
        for handler in (urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
            self._opener.add_handler(handler())

    def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Ask for a file, wherever it was moved to.

        Args:
            url: Of the file.
            headers: To send beside the usual ones; never the account, which is added here where it may be.

        Raises:
            PlaceError: It can never be had from here: no trust in the certificate, redirects that lead nowhere.
            Interruption: There was no answer this time.
        """
        for _ in range(_MAX_REDIRECTS + 1):
            answer = self._ask(url, headers)
            if answer.status in (401, 403) and self._unlock(url, answer):
                answer = self._ask(url, headers)
            if answer.status in (401, 403) and not self._keyring.may_have(url):
                answer.__exit__()
                host = origin_of(url)[1]
                raise PlaceError(f"it leads to {host}, which wants an account; that is not sent to another host")
            if answer.status not in _REDIRECTS:
                return answer
            with answer:
                url = _target(url, answer)
        raise PlaceError(f"more than {_MAX_REDIRECTS} redirects")

    def _unlock(self, url: str, answer: Answer) -> bool:
        """Give the account to a server that asks for it in a way we speak; whether it is worth asking again."""
        schemes = " ".join(answer.headers.get_all("WWW-Authenticate", [])).lower()
        if answer.status == 401 and "basic" not in schemes:
            return False
        # A refusal that does not ask for an account is no reason to bother a person for one.
        if not self._keyring.unlock(url, may_ask=answer.status == 401):
            return False
        answer.__exit__()
        return True

    def _ask(self, url: str, headers: Mapping[str, str]) -> Answer:
        try:
            request = urllib.request.Request(url, headers={"User-Agent": "stoker", "Accept-Encoding": "identity"})  # noqa: S310 - see opener
            for name, value in headers.items():
                request.add_header(name, value)
            account = self._keyring.given_to(url)
            if account is not None:
                request.add_unredirected_header("Authorization", account.header())
            response = self._opener.open(request, timeout=self._stall_seconds)
        except urllib.error.URLError as error:
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                message = "the certificate of the server is not trusted; install the certificates of the system"
                raise PlaceError(message) from None
            raise Interruption(reason_of(error), is_answered=False) from None
        except (OSError, http.client.HTTPException) as error:
            raise Interruption(reason_of(error), is_answered=False) from None
        except ValueError:  # of a redirect: the places themselves are checked
            raise PlaceError("a redirect leads to something that is no URL") from None
        assert isinstance(response, http.client.HTTPResponse)
        return Answer(response.status, response.headers, response)


def _target(url: str, answer: Answer) -> str:
    location = answer.headers.get("Location", "")
    try:
        target = urljoin(url, quote(location, safe=string.punctuation))
        parts = urlsplit(target)
        usable = bool(location) and parts.scheme in ("http", "https") and bool(origin_of(target)[1])
    except ValueError:
        usable = False
    if not usable:
        raise PlaceError("a redirect leads to something that is not HTTP")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
