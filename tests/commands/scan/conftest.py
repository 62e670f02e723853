"""A server of buckets, for scans from and into object stores."""

import os
from collections.abc import Iterator

import fsspec
import pytest


@pytest.fixture
def s3(
    monkeypatch: pytest.MonkeyPatch, spawned_workers: None
) -> Iterator[fsspec.AbstractFileSystem]:
    """The file system of a server on this machine that speaks S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    kind = fsspec.get_filesystem_class("s3")
    kind.clear_instance_cache()
    yield fsspec.filesystem("s3")
    kind.clear_instance_cache()
    server.stop()
