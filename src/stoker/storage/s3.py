"""Amazon S3 and what speaks its protocol, through obstore."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from stoker.storage.rust_objects import ONCE, READING, WRITING, ObjectsBackend, missing

if TYPE_CHECKING:
    from obstore.store import ClientConfig

# Those that the client finds by itself: keys, a role of a pod or a task, or none at all for a public bucket.
_OWN_MEANS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)


class S3Backend(ObjectsBackend):
    """A bucket of S3.

    Endpoint, region and credentials come from where AWS's own tools have them: the variables ``AWS_...``
    (``AWS_ENDPOINT_URL`` for another server), a role of the machine, and where boto3 is installed also the profiles
    and sessions of ``~/.aws``.

    Args:
        name: ``s3://BUCKET``.

    Raises:
        ConfigError: obstore is not installed.
    """

    def __init__(self, name: str) -> None:
        try:
            from obstore.store import S3Store  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise missing("s3", error) from error
        bucket = name.partition("://")[2]
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        settings: dict[str, Any] = {"retry_config": ONCE, "credential_provider": _profile()}
        if endpoint:
            settings["endpoint"] = endpoint
        plain: ClientConfig = {"allow_http": endpoint.startswith("http://")}
        super().__init__(
            name,
            S3Store(bucket, client_options=READING | plain, **settings),
            S3Store(bucket, client_options=WRITING | plain, **settings),
        )


def _profile() -> Any:
    """Return the credentials of a profile, where no others are set."""
    if any(os.environ.get(name) for name in _OWN_MEANS):
        return None
    try:
        import boto3  # noqa: PLC0415 - an extra
        from obstore.auth.boto3 import Boto3CredentialProvider  # noqa: PLC0415
    except ImportError:
        return None
    session = boto3.session.Session()
    return Boto3CredentialProvider(session) if session.get_credentials() is not None else None
