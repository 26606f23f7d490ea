"""Buckets of Amazon S3, of servers with its protocol and of Google Cloud Storage, and containers of Azure Blob Storage.

All are read through obstore, the Python binding of Rust's object_store. Google's are written through gcsfs: obstore
writes with the XML interface, which no local server understands, so writing with it could not be tested; see
docs/decisions/storage-clients.md.
"""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import ClientError, ClientTimeout

from stoker.errors import ConfigError, StorageError
from stoker.forks import process_number
from stoker.storage.backend import Backend, Blob, Children, Entry, StoreError, needs_client, refuse_longer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

    from stoker.storage.backend import Data, StoreSettings

_T = TypeVar("_T")
_STATUS = re.compile(r"status code: (\d{3})")
_QUERY = re.compile(r"\?[^\s]*")  # of a URL: it may hold a signature
_KIND = re.compile(r"^Generic \S+ error: ")
_REQUEST = re.compile(r"Error performing (\S+ \S+) in \S+ - (?:HTTP error: )?")
_BUSY = frozenset({429, 503})
_RETRIED = frozenset({408, 409, 425, *_BUSY})

READING: ClientConfig = {"timeout": "30s", "connect_timeout": "5s"}
WRITING: ClientConfig = {"timeout": "15m", "connect_timeout": "5s"}
ONCE: RetryConfig = {"max_retries": 0}
"""Only one layer retries: `stoker.storage.retrying`."""

_SECONDS_OF_A_REQUEST = 60.0  # of gcsfs, for at most `_WHOLE_BYTES`; without a limit a stalled request never ends
_WHOLE_BYTES = 2**24  # a multiple of 256 KiB, as parts must be

# Credentials that the client finds by itself: keys, a role of a pod or a task, or none at all for a public bucket.
_OWN_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)

# Addresses at which clients ask the machine itself for credentials, and what to do if it has none.
_METADATA = {
    "/latest/": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or for a public bucket "
    "AWS_SKIP_SIGNATURE=true",
    "/metadata/identity/": "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or for a public container "
    "AZURE_SKIP_SIGNATURE=true",
    "/computeMetadata/": "run 'gcloud auth application-default login', or set GOOGLE_APPLICATION_CREDENTIALS",
}

_process: int | None = None  # the process that used obstore first


def check_process() -> None:
    """Refuse to work in a forked process: obstore would wait for ever for threads that are not there."""
    global _process  # noqa: PLW0603 - one value for the whole process
    if _process is None:
        _process = process_number()
    if _process != process_number():
        message = "this process was forked from one that had read from a bucket, and the client does not survive that"
        raise StorageError(f"{message}; start processes with 'spawn' or 'forkserver', or fork before the first read")


class ObjectsBackend(Backend):
    """Objects of one bucket; see `stoker.storage.backend.Backend`.

    Subclasses for a service take its scheme and bucket, and settings that override the environment. They raise a
    ConfigError if a client is not installed, or if a setting is not valid.
    """

    def __init__(self, name: str, reading: ObjectStore, writing: ObjectStore) -> None:
        self.name = name
        self._reading = reading
        self._writing = writing

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:
        pages = iter(_asked(lambda: self._reading.list(prefix or None, offset=after, chunk_size=1000)))
        while (page := _asked(lambda: next(pages, None))) is not None:
            # An object with the name of the folder itself, but for a slash, only marks the folder.
            yield from (_entry(meta) for meta in page if meta["path"] != prefix)

    def children(self, prefix: str) -> Children:
        listing = _asked(lambda: self._reading.list_with_delimiter(prefix or None))
        folders = tuple(folder.rstrip("/") for folder in listing["common_prefixes"])
        return Children(folders, tuple(_entry(meta) for meta in listing["objects"] if meta["path"] != prefix))

    def has_below(self, prefix: str) -> bool:
        try:
            return super().has_below(prefix)
        except OSError as error:
            if error.errno == errno.EINVAL:  # there is something, under a name that the client does not allow
                return True
            raise

    def stat(self, key: str) -> Entry:
        return _entry(_asked(lambda: self._reading.head(key)))

    def get(self, key: str, limit: int | None = None) -> Blob:
        def get() -> Blob:
            answer = self._reading.get(key)
            refuse_longer(answer.meta["size"], limit)
            data = answer.bytes().to_bytes()
            if len(data) != answer.meta["size"]:
                raise StoreError(f"{len(data)} bytes came instead of {answer.meta['size']}")
            return Blob(data, answer.meta["e_tag"])

        return _asked(get)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        if length == 0:
            return b""
        return _asked(lambda: self._reading.get_range(key, start=start, length=length).to_bytes())

    def put(self, key: str, data: Data) -> str | None:
        """Write an object in one request, so that nothing is left if the request breaks off."""
        return _asked(lambda: self._writing.put(key, data, use_multipart=False))["e_tag"]

    def create(self, key: str, data: Data) -> None:
        _asked(lambda: self._writing.put(key, data, mode="create", use_multipart=False))

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError):
            _asked(lambda: self._reading.delete(key))


class S3Backend(ObjectsBackend):
    """A bucket of S3.

    Endpoint, region and credentials come from the same places as for AWS's own tools: the variables ``AWS_...``
    (``AWS_ENDPOINT_URL`` for another server), a role of the machine, and if boto3 is installed the profiles and
    sessions of ``~/.aws``.
    """

    def __init__(self, name: str, settings: StoreSettings) -> None:
        with needs_client("s3", "s3"):
            from obstore.store import S3Store  # noqa: PLC0415 - an extra
        endpoint = (
            settings.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        )
        options = _only_set(endpoint=endpoint, region=settings.get("region"))
        if settings.get("anonymous"):
            options["skip_signature"] = True
        else:
            options["credential_provider"] = _credentials(settings, options)
        if settings.get("requester_pays"):
            options["request_payer"] = True
        super().__init__(name, *_clients(S3Store, name.partition("://")[2], options))


def _only_set(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value}


def _clients(kind: Callable[..., ObjectStore], bucket: str, options: dict[str, Any]) -> tuple[ObjectStore, ObjectStore]:
    """Return the reading and the writing client of a bucket."""
    plain: ClientConfig = {"allow_http": options.get("endpoint", "").startswith("http://")}
    reading, writing = (
        kind(bucket, client_options=limits | plain, retry_config=ONCE, **options) for limits in (READING, WRITING)
    )
    return reading, writing


def _credentials(settings: StoreSettings, options: dict[str, Any]) -> Any:
    """Return a provider of the credentials that are set, by keys or profile; None: the client finds some itself."""
    if "access_key_id" in settings:
        options["skip_signature"] = False  # whatever the environment says
        keys = {
            "access_key_id": settings["access_key_id"],
            "secret_access_key": settings.get("secret_access_key", ""),
            "token": settings.get("session_token"),
            "expires_at": None,
        }
        return lambda: keys
    profile = settings.get("profile")
    if profile is None and any(os.environ.get(name) for name in _OWN_CREDENTIALS):
        return None
    if profile is None and find_spec("boto3") is None:
        return None
    with needs_client("s3", "s3"):
        import boto3  # noqa: PLC0415 - an extra
        from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415
    session = boto3.session.Session()
    if profile is not None:
        if profile not in session.available_profiles:
            raise ConfigError(f"there is no profile {profile!r} in ~/.aws/config; it has {session.available_profiles}")
        session = boto3.session.Session(profile_name=profile)
        options |= {"skip_signature": False, **_only_set(region=options.get("region") or session.region_name)}
    return Boto3CredentialProvider(session) if session.get_credentials() is not None else None


class AzureBackend(ObjectsBackend):
    """A container of Azure Blob Storage: ``az://CONTAINER``, or ``abfs://CONTAINER@ACCOUNT.dfs.core.windows.net``.

    Account and credentials are those of the variables ``AZURE_STORAGE_...``, or of the machine's identity.
    """

    def __init__(self, name: str, settings: StoreSettings) -> None:
        with needs_client("az", "azure"):
            from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
            from obstore.store import AzureStore  # noqa: PLC0415
        container, _, host = name.partition("://")[2].partition("@")
        endpoint = settings.get("endpoint") or ("." in host and f"https://{host.replace('.dfs.', '.blob.')}")
        options = _only_set(
            endpoint=endpoint or os.environ.get("AZURE_STORAGE_ENDPOINT") or os.environ.get("AZURE_ENDPOINT"),
            account_name=settings.get("account_name") or host.partition(".")[0],
            skip_signature=settings.get("anonymous"),
        )
        for setting, credential in (("account_key", "access_key"), ("sas_token", "sas_token")):
            if setting in settings:
                # Not as options, which the environment might override.
                key = {credential: settings[setting].lstrip("?"), "expires_at": None}  # type: ignore[literal-required]
                options |= {"credential_provider": lambda key=key: key, "skip_signature": False}
        try:
            super().__init__(name, *_clients(AzureStore, container, options))
        except BaseError as error:
            advice = "set AZURE_STORAGE_ACCOUNT_NAME, or give account_name to stoker.location"
            raise ConfigError(f"{name} cannot be opened: {_sentence(error)}; {advice}") from error


class GcsBackend(ObjectsBackend):
    """A bucket of Google Cloud Storage.

    Credentials are Google's application default ones. ``STORAGE_EMULATOR_HOST`` names another server, without any.
    """

    def __init__(self, name: str, settings: StoreSettings) -> None:
        with needs_client("gs", "gcs"):
            from obstore.store import GCSStore  # noqa: PLC0415 - an extra
        bucket, payer = name.partition("://")[2], settings.get("requester_pays")
        if payer and not isinstance(payer, str):
            raise ConfigError(f"requester_pays of {name} is {payer}; it must name the project that pays")
        emulator, client = _emulator(settings), READING.copy()
        options = _only_set(
            skip_signature=settings.get("anonymous"), application_credentials=settings.get("credentials_file")
        )
        if emulator:
            client["allow_http"] = True
            options["service_account_key"] = _no_account(emulator)
        if payer:
            client["default_headers"] = {"x-goog-user-project": payer}
        reading = GCSStore(bucket, client_options=client, retry_config=ONCE, **options)
        super().__init__(name, reading, reading)
        self._bucket = bucket
        self._files = _writer(emulator, settings)

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:
        # Emulators ignore the offset and list from the start.
        return (entry for entry in super().entries(prefix, after) if after is None or entry.key > after)

    def put(self, key: str, data: Data) -> str | None:
        # gcsfs sends long data in parts, which it does not copy.
        content = bytes(data) if len(data) < _WHOLE_BYTES else memoryview(data)
        _asked_gcsfs(lambda: self._files.pipe_file(f"{self._bucket}/{key}", content, chunksize=_WHOLE_BYTES))
        return None  # gcsfs has compared the MD5 already

    def create(self, key: str, data: Data) -> None:
        _asked_gcsfs(lambda: self._files.pipe_file(f"{self._bucket}/{key}", bytes(data), mode="create"))

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError):
            _asked_gcsfs(lambda: self._files.rm_file(f"{self._bucket}/{key}"))


def _emulator(settings: StoreSettings) -> str:
    host = (settings.get("endpoint") or os.environ.get("STORAGE_EMULATOR_HOST", "")).rstrip("/")
    return host if "://" in host or not host else f"http://{host}"


def _no_account(url: str) -> str:
    fields = ("client_email", "private_key", "private_key_id")
    return json.dumps({"gcs_base_url": url, "disable_oauth": True} | dict.fromkeys(fields, ""))


def _writer(emulator: str, settings: StoreSettings) -> Any:
    # Otherwise gcsfs asks Google, for up to a minute, which kind each bucket is.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    with needs_client("gs", "gcs"):
        from gcsfs import GCSFileSystem  # noqa: PLC0415 - an extra
    account = "anon" if emulator or settings.get("anonymous") else settings.get("credentials_file")
    about = _only_set(endpoint_url=emulator, token=account, requester_pays=settings.get("requester_pays"))
    about["requests_timeout"] = ClientTimeout(total=_SECONDS_OF_A_REQUEST, sock_connect=5)
    about["session_kwargs"] = {"middlewares": (_once,)}
    return GCSFileSystem(consistency="md5", skip_instance_cache=True, use_listings_cache=False, **about)


async def _once(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Fail as gcsfs does not expect, so that it tries once: only one layer retries, `stoker.storage.retrying`."""
    try:
        response = await send(request)
        await response.read()
    except ClientError as error:
        raise StoreError(f"{type(error).__name__}: {error}"[:300]) from error
    status = response.status
    if status >= 500 or status in (401, 408, 429):
        raise StoreError(f"HTTP {status} {response.reason}", retry=status != 401, busy=status in _BUSY)
    return response


def _asked_gcsfs(request: Callable[[], _T]) -> _T:
    try:
        return request()
    except (FileNotFoundError, FileExistsError, PermissionError):
        raise
    except StoreError as error:  # of `_once`
        if error.retry:
            raise
        raise PermissionError(13, str(error)) from error
    except Exception as error:
        status = getattr(error, "code", None) or getattr(error, "status", None)
        if status == 412:
            raise FileExistsError(str(error)) from error
        if status == 403 or str(error).startswith("Forbidden: "):
            raise PermissionError(13, str(error)) from error
        raise StoreError(f"{type(error).__name__}: {error}"[:300], retry=not isinstance(status, int)) from error


def _entry(meta: Any) -> Entry:
    return Entry(meta["path"], meta["size"], meta["e_tag"])


def _asked(request: Callable[[], _T]) -> _T:
    from obstore import exceptions  # noqa: PLC0415

    check_process()
    try:
        return request()
    except exceptions.AlreadyExistsError as error:
        raise FileExistsError(_sentence(error)) from error
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise PermissionError(13, _sentence(error)) from error
    except UnicodeEncodeError as error:
        raise OSError(errno.EINVAL, f"no object has a name that is not UTF-8: {error}") from error
    except (exceptions.InvalidPathError, ValueError) as error:  # a key that the client does not allow
        raise OSError(errno.EINVAL, _sentence(error)) from error
    except exceptions.BaseError as error:
        raise _failure(_sentence(error)) from error


def _failure(message: str) -> StoreError | FileNotFoundError:
    status_match = _STATUS.search(message)
    remedy = next((text for address, text in _METADATA.items() if address in message), None)
    if remedy is not None:  # the clients' last resort, where there are no credentials
        return StoreError(f"there are no credentials; {remedy}", retry=status_match is None, answered=False, advice="")
    if status_match is None:
        return StoreError(message, answered="error sending request" not in message)
    status = int(status_match[1])
    if status == 404:  # of a listing: there is no such bucket
        return FileNotFoundError(errno.ENOENT, message)
    return StoreError(message, retry=status >= 500 or status in _RETRIED, busy=status in _BUSY)


def _sentence(error: Exception) -> str:
    """Return the main sentence of an error, without its details, and without anything that may be secret."""
    message = _QUERY.sub("?...", str(error).partition("\n\nDebug source")[0].strip())
    return _REQUEST.sub(r"\1: ", _KIND.sub("", message))
