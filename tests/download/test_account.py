"""The account: which servers get it, and that it is shown nowhere."""

from __future__ import annotations

import base64
import io
import traceback

import pytest

from download import faulty_server as does
from download.faulty_server import FaultyServer, Transfer, running
from small_cases import each
from stoker.download import Account, parse_base
from stoker.download.fetch import origin_of, shown
from stoker.errors import ConfigError

KEY = "s3cret-of-ada"
ACCOUNT = Account("ada", KEY)
HEADER = "Basic " + base64.b64encode(f"ada:{KEY}".encode()).decode()


def wants_account(to: does.Handler) -> None:
    if to.headers.get("Authorization") == HEADER:
        does.serve(to)
    else:
        does.answer(401, WWW_Authenticate='Basic realm="images"')(to)


def authorizations(server: FaultyServer) -> list[str | None]:
    return [seen.headers.get("Authorization") for seen in server.seen]


def test_the_account_is_sent_when_it_is_wanted_and_not_before(transfer: Transfer) -> None:
    transfer.server.always = wants_account
    transfer.server.script.extend([wants_account, does.drop_after(1000)])
    transfer.fetch(account=ACCOUNT)
    assert authorizations(transfer.server) == [None, HEADER, HEADER]


def test_a_server_that_wants_no_account_gets_none(transfer: Transfer) -> None:
    transfer.fetch(account=ACCOUNT)
    assert authorizations(transfer.server) == [None]


def test_an_account_that_is_refused_at_one_url_is_tried_once_at_the_next(transfer: Transfer) -> None:
    transfer.server.always = does.answer(401, WWW_Authenticate="Basic")
    base_urls = (transfer.server.url + "first/", transfer.server.url + "second/")
    transfer.fail(r"HTTP 401.*right user name and access key", *base_urls, account=ACCOUNT)
    assert authorizations(transfer.server) == [None, HEADER, HEADER]


@pytest.mark.parametrize(("status", "asked"), [(401, 1), (403, 0), (404, 0)])
def test_a_person_is_asked_once_and_only_if_an_account_helps(transfer: Transfer, status: int, asked: int) -> None:
    questions = []

    def ask() -> Account:
        questions.append(len(transfer.server.seen))
        return ACCOUNT

    transfer.server.always = does.answer(status, WWW_Authenticate="Basic")
    base_urls = (transfer.server.url + "first/", transfer.server.url + "second/")
    transfer.fail(None, *base_urls, ask=ask)
    assert len(questions) == asked


def test_a_server_that_speaks_another_scheme_does_not_get_the_key(transfer: Transfer) -> None:
    transfer.server.always = does.answer(401, WWW_Authenticate='Digest realm="x"')
    transfer.fail("HTTP 401", account=ACCOUNT)
    assert authorizations(transfer.server) == [None]


def test_403_gets_an_account_that_is_known_but_asks_no_person(transfer: Transfer) -> None:
    transfer.server.always = does.answer(403)
    transfer.fail("HTTP 403", account=ACCOUNT)
    assert authorizations(transfer.server) == [None, HEADER]


def test_a_redirect_is_followed_and_resumed_through(transfer: Transfer) -> None:
    def redirect_then(to: does.Handler) -> None:
        if to.path.startswith("/moved/"):
            (does.drop_after(1000) if len(transfer.server.seen) == 2 else does.serve)(to)
        else:
            does.answer(302, Location="/moved/a.tar?token=x")(to)

    transfer.server.always = redirect_then
    transfer.fetch()
    assert transfer.server.ranges() == [None, None, "bytes=1000-", "bytes=1000-"]


def test_the_account_does_not_follow_a_redirect_to_another_host(transfer: Transfer) -> None:
    with running({"a.tar": transfer.body}, "localhost") as other:

        def redirect(to: does.Handler) -> None:
            if to.headers.get("Authorization") == HEADER:
                does.answer(307, Location=other.url + "a.tar")(to)
            else:
                wants_account(to)

        transfer.server.always = redirect
        transfer.fetch(account=ACCOUNT)
        assert authorizations(transfer.server) == [None, HEADER]
        assert authorizations(other) == [None]
        assert not any("ada" in str(seen) or KEY in str(seen) for seen in other.seen)


def test_another_host_that_wants_the_account_does_not_get_it(transfer: Transfer) -> None:
    with running({"a.tar": transfer.body}, "localhost") as other:
        transfer.server.always = does.answer(302, Location=other.url + "a.tar")
        other.always = does.answer(401, WWW_Authenticate="Basic")
        transfer.fail("leads to localhost, which requires an account; that is not sent", account=ACCOUNT)
        assert authorizations(other) == [None]


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("file:///etc/passwd", "not HTTP"),
        ("ftp://host/a", "not HTTP"),
        ("", "not HTTP"),
        ("http://[half", "not HTTP"),
        ("http://host:99999999/", "not HTTP"),
        ("/a.tar", "more than 5 redirects"),
    ],
)
def test_a_redirect_that_leads_nowhere_ends(transfer: Transfer, location: str, message: str) -> None:
    transfer.server.always = does.answer(301, Location=location)
    transfer.fail(message)


def test_no_error_shows_the_key_anywhere(transfer: Transfer) -> None:
    base_url, account = parse_base(transfer.server.url.replace("//", f"//ada:{KEY}@"))
    transfer.server.script.append(wants_account)
    shown_texts = []
    for status in (401, 403, 404, 503, 500, 302, 206, 416, 204):
        transfer.server.always = does.answer(
            status, WWW_Authenticate="Basic", Location="http://[x", Content_Range="bytes 9-/"
        )
        error = transfer.fail(base_url, account=account)
        text = io.StringIO()
        traceback.print_exception(error, file=text)
        shown_texts += [text.getvalue(), repr(error), repr(vars(error))]
    assert HEADER in authorizations(transfer.server)  # it was at work
    everything = "\n".join([*shown_texts, *transfer.watcher.notes, repr(account)])
    secrets = (KEY, HEADER.removeprefix("Basic "))
    assert not any(secret in everything for secret in secrets)
    assert not any(
        secret.encode() in path.read_bytes()
        for path in transfer.folder.rglob("*")
        if path.is_file()
        for secret in secrets
    )


@pytest.mark.parametrize(("username", "key"), [("", "k"), ("a", ""), ("a\n", "k"), ("a", KEY + "\n"), ("a:b", KEY)])
def test_an_account_that_cannot_be_sent_is_refused_without_repeating_it(username: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Account(username, key)
    assert KEY not in str(caught.value)


def test_a_base_url_is_taken_apart() -> None:
    assert parse_base("https://mirror.example:8443/a/b") == ("https://mirror.example:8443/a/b/", None)
    base_url, account = parse_base("http://ada:k%40y@mirror.example/")
    assert (base_url, account) == ("http://mirror.example/", Account("ada", "k@y"))


@each(
    "url",
    [
        "mirror.example/x",
        "file:///etc",
        "ftp://mirror.example/",
        "https://",
        f"https://ada:{KEY}@/",
        f"https://ada:{KEY}@mirror.example:port/",
        f"https://mirror.example/?key={KEY}",
        f"https://mirror.example/#{KEY}",
        f"https://mirror.example/{KEY}\n",
        f"https://[{KEY}/",
        "https://mirror.example/a b",
        "https://mirror.exämple/",
    ],
)
def test_an_invalid_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match="--url is not a base URL") as caught:
        parse_base(url)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_what_is_shown_of_a_url_has_no_secrets() -> None:
    assert shown(f"https://ada:{KEY}@host:1/p/f?accesskey={KEY}#{KEY}") == "https://host:1/p/f"


def test_origins_differ_by_scheme_host_and_port() -> None:
    assert origin_of("https://HOST/a") == origin_of("https://host:443/b")
    assert len({origin_of(url) for url in ("https://h/", "http://h/", "https://h:444/", "https://www.h/")}) == 4
