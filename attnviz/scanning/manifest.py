"""The manifest of a scan: what was asked, over what, with what.

A scan goes on where its folder holds the same manifest, and is refused where it holds another one:
a result never mixes two corpora, models, versions or kinds of processor.
"""

import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnviz.errors import InputError, UsageError, option
from attnviz.models.catalog import Source
from attnviz.models.placement import Placement
from attnviz.runs.options import HeadOptions
from attnviz.scanning.request import Request
from attnviz.scanning.store import Store
from attnviz.scanning.windows import BATCH

SCHEMA = "attnviz-scan/2"
MANIFEST = "manifest.json"


def manifest_of(
    request: Request, source: Source, corpus: Sequence[Sequence[Any]], shards: int
) -> dict[str, Any]:
    """All on which a bit of the result depends; `corpus`: the state of each file."""
    asked = {**asdict(request), "heads": asdict(request.heads), "paths": list(request.paths)}
    return {
        "schema": SCHEMA,
        "model": source.name,
        "revision": source.revision,
        "kind": source.kind,
        "engine": source.engine,
        "device": source.placement.device,
        "dtype": source.placement.dtype,
        **asked,
        "corpus": [list(each) for each in corpus],
        "shards": shards,
        "versions": {
            name: importlib.metadata.version(name) for name in ("attnviz", "torch", "transformers")
        },
        "processor": processor(),
        "threads": 1,
        "batch": BATCH,
    }


def processor() -> str:
    """The kind of processor, as far as it chooses how numbers are computed."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        flags = set()
    widest = next((name for name in ("avx512f", "avx2") if name in flags), "")
    return f"{platform.machine()} {widest}".strip()


def keep_manifest(store: Store, manifest: Mapping[str, Any]) -> None:
    """Write the manifest, or see that the one that is there is the same.

    Raises:
        UsageError: it is another one; the difference is named.
        OutputError: it cannot be written.
    """
    data = store.read(MANIFEST)
    if data is None:
        store.write(MANIFEST, f"{json.dumps(manifest, indent=2)}\n".encode())
        return
    found = _parsed(data) or {}
    names = [name for name in manifest if found.get(name) != manifest[name]]
    if names:
        raise UsageError(
            f"{store.where!r} holds another scan: its {', '.join(names)} "
            f"{'differ' if len(names) > 1 else 'differs'}",
            f"give another folder with {option('output')}",
        )


def read_manifest(store: Store) -> Mapping[str, Any]:
    """The manifest of a scan.

    Raises:
        InputError: the folder holds none.
    """
    found = _parsed(store.read(MANIFEST) or b"")
    if found is None:
        raise InputError(
            f"{store.where!r} holds no scan", "give the folder that attnviz scan wrote"
        )
    return found


def asked_by(store: Store) -> tuple[Request, Source]:
    """What the scan of a folder was asked to do, and with which model.

    Raises:
        InputError: the folder holds no scan, or a damaged one.
    """
    found = read_manifest(store)
    try:
        heads = HeadOptions(**found["heads"])
        names = ("split", "key", "length", "shard", "documents", "seed")
        request = Request(tuple(found["paths"]), heads=heads, **{n: found[n] for n in names})
        placement = Placement(found["device"], found["dtype"])
        named = {name: found[name] for name in ("revision", "kind", "engine")}
        return request, Source(found["model"], placement=placement, **named)
    except (KeyError, TypeError):
        raise InputError(f"the manifest in {store.where!r} is damaged", "scan again") from None


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
        return found if found["schema"] == SCHEMA else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
