"""The manifest of a scan: what was asked, over what, with what.

A scan goes on where its folder holds the same manifest, and is refused where it holds another one:
a result never mixes two corpora, models, versions or kinds of processor.
"""

import importlib.metadata
import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

from attnviz.errors import InputError, UsageError, option
from attnviz.models.catalog import Source
from attnviz.models.placement import Placement
from attnviz.runs.options import HeadOptions
from attnviz.scanning.request import Request
from attnviz.scanning.store import Store
from attnviz.scanning.windows import BATCH

SCHEMA = "attnviz-scan/3"
MANIFEST = "manifest.json"


def manifest_of(
    request: Request,
    source: Source,
    files: Sequence[Sequence[Any]],
    corpus: Sequence[Sequence[Any]],
    shards: int,
) -> dict[str, Any]:
    """All on which a bit of the result depends; `files`, `corpus`: name, size and mark of each.

    `files` are those of the model.
    """
    asked = {**asdict(request), "heads": asdict(request.heads), "paths": list(request.paths)}
    return {
        "schema": SCHEMA,
        "model": source.name,
        "revision": source.revision,
        "files": [list(each) for each in files],
        "kind": source.kind,
        "engine": source.engine,
        "device": source.placement.device,
        "dtype": source.placement.dtype,
        **asked,
        "corpus": [list(each) for each in corpus],
        "shards": shards,
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("attnviz", "torch", "transformers", "tokenizers", "numpy", "pyarrow")
        },
        "processor": processor(),
        "threads": 1,
        "batch": BATCH,
    }


def processor() -> str:
    """The kind of processor, as far as it chooses how numbers are computed."""
    try:
        told = Path("/proc/cpuinfo").read_text()
    except OSError:
        told = ""
    vendor = re.search(r"vendor_id\s*:\s*(\S+)", told)
    widest = next((name for name in ("avx512f", "avx2") if name in told.split()), "")
    return " ".join(filter(None, (platform.machine(), vendor[1] if vendor else "", widest)))


def digest_of(manifest: Mapping[str, Any]) -> str:
    """A name of a manifest, by which its records are known."""
    written = json.dumps(manifest, sort_keys=True).encode()
    return blake2b(written, digest_size=8).hexdigest()


def keep_manifest(store: Store, manifest: Mapping[str, Any]) -> None:
    """Write the manifest, or see that the one that is there is the same.

    One under which nothing was counted is replaced.

    Raises:
        UsageError: it is another one; the difference is named.
        OutputError: it cannot be written.
    """
    data = store.read(MANIFEST)
    if data is None or not store.names("shards"):
        store.write(MANIFEST, f"{json.dumps(manifest, indent=2)}\n".encode())
        return
    found = parsed_manifest(data) or {}
    names = [name for name in manifest if found.get(name) != manifest[name]]
    if names:
        told = ", ".join(_difference(name, found.get(name), manifest[name]) for name in names)
        raise UsageError(
            f"{store.where!r} holds another scan ({told})",
            f"give another folder with {option('output')}, or remove this one",
        )


def _difference(name: str, old: object, new: object) -> str:
    """What differs, with both values where they are short."""
    parameters = {"key": "field", "documents": "max_docs"}
    if isinstance(old, list | dict) or isinstance(new, list | dict):
        return f"another {'model' if name == 'files' else name}"
    return f"{parameters.get(name, name)} was {old}, is {new}"


def read_manifest(store: Store) -> Mapping[str, Any]:
    """The manifest of a scan.

    Raises:
        InputError: the folder holds none.
    """
    found = parsed_manifest(store.read(MANIFEST) or b"")
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


def parsed_manifest(data: bytes) -> dict[str, Any] | None:
    """What a manifest holds; None where it is none."""
    try:
        found = json.loads(data)
        return found if found["schema"] == SCHEMA else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
