"""A model's name to its folder, its facts, its tokenizer, or the loaded model."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from logging import getLogger
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.errors import ModelError, UsageError, nearest, option
from attnviz.models.folder.config import (
    NO_LIMIT,
    SEQ2SEQ,
    ModelSizes,
    check_computable,
    check_kind,
    folder_sizes,
    gpt2_config,
    read_card,
)
from attnviz.models.folder.files import (
    CONFIG,
    GGUF,
    IMAGES,
    INDEX,
    MERGES,
    PICKLED,
    TOKENIZER,
    WEIGHTS,
    bundled_folder,
    cut,
    is_folder,
    is_gguf,
    linked_gguf,
    read_config,
    weight_files,
)
from attnviz.models.folder.llama import UnknownSettingError, check_language_model, llama_config
from attnviz.models.folder.params import (
    GPT_SIZES,
    ParameterCount,
    config_count,
    folder_count,
    known_count,
)
from attnviz.models.placement import (
    ANYWHERE,
    BUILTIN,
    BUNDLED,
    COUNTED,
    EMBEDDINGS,
    ENCODER,
    HUB_MODELS,
    KNOWN_MODELS,
    SHAPES,
    Engine,
    Placement,
    check_weights,
    weight_count,
    written,
)
from attnviz.records.capture import Kind, ModelIdentity, ShownKind
from attnviz.records.heads import ModelCard, ModelFacts

if TYPE_CHECKING:
    from attnviz.models.loaded import LoadedModel
    from attnviz.models.tokenizer import TextTokenizer
    from attnviz.plugins import Plugin


@dataclass(frozen=True)
class Source:
    """The model and its origin: `name` is a bundled model, embeddings, a hub id or a folder.

    `kind`: one of an encoder-decoder's three attentions. `causal`: mask later tokens, where
    the model (embeddings) leaves that open. `engine`: the from-scratch model where it can run
    the folder (auto), only that one, or transformers.
    """

    name: str = BUILTIN
    revision: str | None = None
    offline: bool = False
    quiet: bool = False
    kind: Kind | ShownKind | None = None
    causal: bool = False
    engine: Engine = "auto"
    placement: Placement = ANYWHERE


def load(source: Source) -> "LoadedModel":
    """Load a model, ready to run."""
    if source.name == EMBEDDINGS:
        from attnviz.models.scratch.lessons import load_embeddings

        check_kind(source.kind)
        _check_plain(source)
        return load_embeddings(bundled_folder("builtin"), causal=source.causal)
    if source.causal:
        raise UsageError(
            f"{option('causal')} is for {option('model', EMBEDDINGS)}",
            "this model has its own mask",
        )
    folder, revision = locate(source)
    config = read_config(folder)
    model: LoadedModel
    if config.get("model_type") == SEQ2SEQ:
        from attnviz.models.scratch.translator import load_translator

        _check_plain(source)
        model = load_translator(folder, source.name, source.kind)
    elif source.engine != "transformers" and _runs_natively(folder, source):
        from attnviz.models.scratch.native import load_native

        check_kind(source.kind)
        model = load_native(folder, source.name, revision, source.placement)
    elif source.engine == "auto" and (plugin := _plugin(str(config.get("model_type")))):
        model = _load_by(plugin, folder, source)
    else:
        from attnviz.models.huggingface.load import load_huggingface

        model = load_huggingface(folder, source.name, revision, source.kind, source.placement)
    own_code, quantization = bool(config.get("auto_map")), quantization_of(folder)
    identity = replace(model.identity, own_code=own_code, quantization=quantization)
    return replace(model, identity=identity)


def _plugin(name: str) -> "Plugin | None":
    """The plugin for a scheme of names, or for a `model_type` that attnviz does not run itself."""
    from attnviz.plugins import found

    return found("models").get(name)


@cache
def _placed(name: str) -> Path | None:
    """The folder, or the GGUF file, that the plugin of a name's scheme gives for the rest of it."""
    scheme, colon, rest = name.partition(":")
    plugin = _plugin(scheme) if colon and not OF_HUB.fullmatch(name) else None
    if plugin is None:
        return None
    find = plugin.load(ModelError)
    with plugin.working(f"cannot find {name!r}", ModelError):
        return Path(find(rest))


def _load_by(plugin: "Plugin", folder: Path, source: Source) -> "LoadedModel":
    """Run the model that a plugin makes of a folder of its type, with the tokenizer it gives."""
    from attnviz.models.huggingface.load import wrap_huggingface

    load, where = plugin.load(ModelError), source.placement
    with plugin.working(f"cannot load {source.name!r}", ModelError):
        model, tokenizer = load(str(folder))
        model = model.to(where.torch_device(), where.torch_dtype()).eval()
    return wrap_huggingface(model, tokenizer, source.kind, source.name)


def _runs_natively(folder: Path, source: Source) -> bool:
    """Whether a model from scratch runs this folder."""
    try:
        if read_config(folder).get("model_type") != "gpt2":
            own = llama_config(folder)
            if own is not None:
                check_language_model(folder, own)
                if source.placement.dtype not in ("auto", "float32"):
                    raise UnknownSettingError(f"it is to run in {source.placement.dtype}")
                return True
            raise UsageError(
                f"the models from scratch are a GPT-2 and the Llama family, but {source.name} is "
                "neither",
                f"leave {option('engine')} out",
            )
        check_computable(gpt2_config(folder), folder)
        if source.placement.dtype not in ("auto", "float32"):
            raise UsageError(
                f"the from-scratch GPT-2 does not run in {source.placement.dtype}",
                f"use {option('engine', 'transformers')}, or {option('dtype', 'float32')}",
            )
    except UnknownSettingError as unknown:
        if source.engine == "native":
            raise ModelError(
                f"the from-scratch model does not run {source.name}: {unknown}",
                f"leave {option('engine')} out",
            ) from None
        getLogger("attnviz").debug("%s runs on transformers: %s", source.name, unknown)
        return False
    except (ModelError, UsageError):
        if source.engine == "native":
            raise
        return False
    return True


def _check_plain(source: Source) -> None:
    where = source.placement
    plain = (source.engine, "native"), (where.device, "cpu"), (where.dtype, "float32")
    if any(choice not in ("auto", own) for choice, own in plain):
        raise UsageError(
            f"{source.name} runs on the from-scratch code, on the CPU, in float32",
            f"leave {option('engine')}, {option('device')} and {option('dtype')} out",
        )


def tokenizer_of(source: Source) -> "TextTokenizer":
    """A model's tokenizer, without its weights."""
    from attnviz.models.tokenizer import read_folder

    folder, _ = locate(source)
    return read_folder(folder, source.name)[2]


def locate(source: Source) -> tuple[Path, str | None]:
    """The model's folder on this machine, fetched if necessary, and the commit of a hub model.

    A name that is both a folder here and a known hub model (`gpt2`) is the hub model;
    written as a path (`./gpt2`) it is the folder.
    """
    name = source.name
    if not name.strip():
        raise ModelError(
            "the model has no name", "give builtin, a hub id such as gpt2, or a folder"
        )
    local = _local_folder(name)
    if local is not None:
        if source.revision is not None:
            raise ModelError(
                f"{name!r} has no revisions", f"leave {option('revision')} out, or name a hub model"
            )
        return local, None
    folder = fetch(name, source.revision, offline=source.offline, quiet=source.quiet)
    return folder, _commit(folder)


def known_models() -> tuple[ModelFacts, ...]:
    """The bundled models, and the hub models that are known by name."""
    bundled = (_facts_of(bundled_folder(name), name, "bundled") for name in BUNDLED)
    return (*bundled, *HUB_MODELS)


def describe(name: str) -> tuple[ModelFacts, ModelCard]:
    """A model's sizes and card; nothing is fetched."""
    local = _local_folder(name)
    folder = local or cached(name)
    if folder is not None:
        place = "a folder" if local else "in the cache"
        if linked_gguf(folder):
            place = f"a GGUF file, {quantization_of(folder)}"
        facts = _facts_of(folder, name, "bundled" if name in BUNDLED else place)
        return facts, read_card(folder, name, (facts.heads_per_layer,) * facts.layers)
    for facts in HUB_MODELS:
        if facts.name == name:
            return facts, ModelCard(name, "", bos=False)
    raise ModelError(
        f"{name!r} is neither a known model, nor in the cache, nor a folder",
        _meant(name) or f"known are {', '.join(KNOWN_MODELS)}",
    )


def parameters_of(source: Source) -> ParameterCount:
    """A model's parameters, from only its sizes; the hub is asked only for config.json."""
    name = source.name
    if name == EMBEDDINGS:
        raise UsageError(f"{name} has no matrices of its own", f"count those of {BUILTIN}")
    if name in GPT_SIZES and source.revision is None:
        return known_count(name)
    if _local_folder(name) or OF_HUB.fullmatch(name):
        return folder_count(name, locate(source)[0])
    return config_count(name, fetch_config(name, source.revision, offline=source.offline))


def identity_of(source: Source, parameters: int = 0) -> ModelIdentity:
    """The identity of a model from its configuration, if it is not run."""
    name, revision = source.name, source.revision
    if name == EMBEDDINGS:
        return ModelIdentity(name, name, (1,), parameters, "none", "none")
    local = _local_folder(name)
    folder = local or cached(name, revision)
    if folder is None and name in GPT_SIZES and revision is None:
        heads = GPT_SIZES[name].heads_per_layer
        return ModelIdentity(name, "gpt2", heads, parameters, "none", "none")
    folder = folder or fetch_config(name, revision, offline=source.offline)
    try:
        sizes = _sizes_of(folder, name)
        architecture, heads = sizes.architecture, sizes.heads_per_layer
    except ModelError:  # no head in it: its parameters are counted all the same
        architecture, heads = str(read_config(folder).get("model_type")), ()
    commit = None if local else _commit(folder)
    identity = ModelIdentity(name, architecture, heads, parameters, "none", "none", commit)
    return replace(identity, quantization=quantization_of(folder))


def _commit(folder: Path) -> str:
    """The commit by which the hub's cache names a folder, or that of a GGUF file in it."""
    file = linked_gguf(folder)
    if file is None:
        return folder.name
    parts = file.parts
    return parts[-parts[::-1].index("snapshots")]


def _folder_of_gguf(path: Path) -> Path:
    from attnviz.models.folder.gguf_folder import folder_of_gguf

    return folder_of_gguf(path)


def quantization_of(folder: Path) -> str | None:
    """How the weights of a folder, or of the GGUF file that it was made of, are quantised."""
    if file := linked_gguf(folder):
        from attnviz.models.folder.gguf import read_gguf

        return read_gguf(file).quantization
    settings = read_config(folder).get("quantization_config")
    return cut(settings.get("quant_method")) if settings and isinstance(settings, dict) else None


def dequantised(source: Source) -> str:
    """What quantised weights take in memory; empty for a model of others."""
    folder = None if source.name in KNOWN_MODELS else locate(source)[0]
    quantization = quantization_of(folder) if folder else None
    if folder is None or quantization in (None, "F32", "F16", "BF16"):
        return ""
    dtype = source.placement.torch_dtype()
    size = weight_count(folder) * dtype.itemsize
    name = str(dtype).removeprefix("torch.")
    return f"{source.name} is quantised ({quantization}); as {name} it takes {written(size)}"


def save_folder(source: Source, target: Path) -> None:
    """Write the folder that transformers would save of a GGUF file, which is at first no folder.

    Raises:
        UsageError: the model is no GGUF file, or there is something at the target.
    """
    from attnviz.models.gguf_weights import save_dequantised

    folder = locate(source)[0]
    if not linked_gguf(folder):
        raise UsageError(
            f"{option('save')} writes the folder of a GGUF file, but {source.name} is none"
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{str(target)!r} is there already", "name a new folder")
    check_weights(folder, source.placement)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    save_dequantised(folder, target)


OF_HUB = re.compile(r"([\w.-]+(?:/[\w.-]+)?):(.+\.gguf)", re.IGNORECASE)
"""A GGUF file in a repository of the hub."""


def _local_folder(name: str) -> Path | None:
    """The folder that a name means, or None for a model of the hub."""
    path = _local_path(name)
    if path is None or is_gguf(path):
        return path and _folder_of_gguf(path)
    named = sorted(path.glob("*.[gG][gG][uU][fF]")) if is_folder(path) else []
    held = [each for each in named if is_gguf(each)]
    whole = any((path / name).is_file() for name in (WEIGHTS, INDEX, PICKLED)) if held else True
    if whole or linked_gguf(path):
        return path
    if len(held) > 1:
        names = ", ".join(each.name for each in held)
        raise ModelError(f"{name!r} holds several GGUF files: {names}", "give one of them")
    return _folder_of_gguf(held[0])


def _local_path(name: str) -> Path | None:
    if name in KNOWN_MODELS:
        of_bundle = BUILTIN if name == EMBEDDINGS else name
        return bundled_folder(of_bundle) if of_bundle in BUNDLED else None
    if placed := _placed(name):
        return placed
    looks_like_a_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    if name.lower().endswith(GGUF):
        looks_like_a_path = not OF_HUB.fullmatch(name)
    if not (looks_like_a_path or is_folder(Path(name)) or isfile(name)):
        return None
    try:
        return Path(name).expanduser()
    except RuntimeError:  # ~somebody
        raise ModelError(f"there is no home folder for {name!r}", "check the path") from None


BUNDLED_SIZES = {
    SHAPES: ModelSizes("llava", (4,) * 4, vocab_size=51, context=512, bos_id=1),
    ENCODER: ModelSizes("vit", (4,) * 4, vocab_size=0, context=145, bos_id=None, reads="image"),
}
"""The kinds of folders that only transformers reads; listing models does not import it."""


def _sizes_of(folder: Path, name: str) -> ModelSizes:
    return BUNDLED_SIZES.get(name) or folder_sizes(folder)


def _facts_of(folder: Path, name: str, where: str) -> ModelFacts:
    sizes = _sizes_of(folder, name)
    heads = sizes.heads_per_layer
    parameters = folder_count(name, folder).total
    context = None if sizes.reads != "text" and sizes.context == NO_LIMIT else sizes.context
    return ModelFacts(name, len(heads), heads[0], parameters, context, where, sizes.reads)


def reads_apart(name: str) -> bool:
    """Whether a model that is on this machine reads an image or speech, and no text with it."""
    from attnviz.models.folder.reading import TOWERS

    with suppress(ModelError):
        if folder := _local_folder(name) or cached(name):
            apart = read_config(folder).get("model_type") in TOWERS
            return apart or _sizes_of(folder, name).reads != "text"
    return False


def files_of_model(source: Source) -> list[tuple[str, int, str]]:
    """The files of a model: name, bytes, and a mark that changes with the content.

    The mark is the time of the last change; a model of the hub has its commit.
    """
    if source.name == EMBEDDINGS:
        return []
    folder, revision = locate(source)
    if source.name in KNOWN_MODELS:
        return []  # they change with the version of attnviz
    file = linked_gguf(folder)
    held = [file] if file else sorted(folder.iterdir())
    states = ((path, path.stat()) for path in held if path.is_file())
    return [(path.name, s.st_size, revision or str(s.st_mtime_ns)) for path, s in states]


def state_of_memory(model: "LoadedModel") -> list[tuple[str, int, str]]:
    """The state of a model in memory, whose fingerprint is to be of all bytes."""
    from hashlib import blake2b

    state = repr((model.identity, model.tokenizer.backend.to_str())).encode()
    mark = blake2b(state, digest_size=8).hexdigest()
    return [("in memory", model.identity.parameters, mark)]


# A hub id to a local folder: from the cache without a request, else downloaded once.

# Weights only as safetensors: pickled files can run code, so they are not even fetched.
PATTERNS = [
    *(CONFIG, WEIGHTS, INDEX, "model-*.safetensors"),
    *(TOKENIZER, *MERGES, "tokenizer_config.json", "generation_config.json", "card.json"),
    *("vocab.txt", "special_tokens_map.json", "added_tokens.json"),
    *(IMAGES, "processor_config.json"),
    *("chat_template.jinja", "additional_chat_templates/*.jinja"),
]
TIMEOUT = 10  # seconds


def fetch(name: str, revision: str | None, *, offline: bool, quiet: bool) -> Path:
    """Fetch the local folder of a hub model; one that is complete in the cache needs no request."""
    folder = cached(name, revision)
    if folder is not None:
        return folder
    one_file = OF_HUB.fullmatch(name)
    if offline:
        raise _not_fetched(name, f"{option('offline')} was given")
    import huggingface_hub as hub
    from huggingface_hub.utils import disable_progress_bars

    if quiet:
        disable_progress_bars()
    if one_file:
        from attnviz.models.folder.gguf import check_package

        check_package()
        with _download_errors(name, revision, file=one_file[2]):
            found = hub.hf_hub_download(*one_file.groups(), revision=revision)
        return _folder_of_gguf(Path(found))
    with _download_errors(name, revision):
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=PATTERNS))


def cached(name: str, revision: str | None = None) -> Path | None:
    """The cached folder, if it holds the configuration, the tokenizer and all weights.

    A model of only images has settings of its image processor in the place of a tokenizer.
    """
    import huggingface_hub as hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    one_file = OF_HUB.fullmatch(name)
    try:
        if one_file:
            found = hub.hf_hub_download(
                *one_file.groups(), revision=revision, local_files_only=True
            )
            return _folder_of_gguf(Path(found))
        folder = Path(hub.snapshot_download(name, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError:
        raise _no_name(name) from None
    there = {path.name for path in folder.iterdir()}
    if CONFIG not in there:
        return None
    patches = "patch_size" in read_config(folder) and IMAGES in there
    if not (TOKENIZER in there or there.issuperset(MERGES) or patches):
        return None
    try:
        return folder if weight_files(folder) else None
    except ModelError:  # an interrupted download: some files are missing
        return None


def cached_names() -> list[str]:
    """The models in the cache of the hub, whether all their files are there or not."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = sorted(Path(HF_HUB_CACHE).glob("models--*/snapshots/*"))
    names = (each.parts[-3].removeprefix("models--").replace("--", "/") for each in folders)
    return [*dict.fromkeys(names)]


def fetch_config(name: str, revision: str | None, *, offline: bool) -> Path:
    """Fetch a hub model's config.json to the cache, and return its folder, perhaps of it only."""
    import huggingface_hub as hub
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    def fetched(*, local: bool) -> Path:
        path = hub.hf_hub_download(name, CONFIG, revision=revision, local_files_only=local)
        return Path(path).parent

    try:
        return fetched(local=True)
    except LocalEntryNotFoundError:
        if offline:
            raise _not_fetched(name, f"{option('offline')} was given", COUNTED) from None
    except HFValidationError:
        raise _no_name(name) from None
    with _download_errors(name, revision, COUNTED):
        # A download is retried for a long time; this one request fails early.
        hub.HfApi().model_info(name, revision=revision, timeout=TIMEOUT)
        return fetched(local=False)


@contextmanager
def _download_errors(
    name: str, revision: str | None, names: Sequence[str] = KNOWN_MODELS, *, file: str = CONFIG
) -> Iterator[None]:
    """Turn the errors of a download into sentences; `name` may misspell one of `names`."""
    from huggingface_hub.errors import (
        GatedRepoError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)  # it reports every try
    try:
        yield
    except RevisionNotFoundError:
        raise ModelError(
            f"the model {name!r} has no revision {revision!r}",
            f"correct {option('revision')}, or leave it out",
        ) from None
    except GatedRepoError:
        raise ModelError(
            f"the hub gives {name!r} only to those who accepted its terms",
            "accept them on its page, then run: hf auth login",
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(
            f"the hub has no model {name!r}",
            _meant(name, names)
            or "check its name; a model that is not public needs: hf auth login",
        ) from None
    except RemoteEntryNotFoundError:
        raise ModelError(
            f"the hub has {name!r}, but no {file} in it", "use a model that transformers can load"
        ) from None
    except Exception:  # without a network, a library in there can raise anything
        raise _not_fetched(name, "the hub could not be reached", names) from None
    finally:
        logging.set_verbosity(verbosity)


def _no_name(name: str) -> ModelError:
    return ModelError(
        f"{name!r} is neither a folder nor a model's name",
        _meant(name) or "give builtin, a hub id such as gpt2, or a folder",
    )


def _meant(name: str, names: Sequence[str] = KNOWN_MODELS) -> str:
    """A hint: the known models, and those in the cache, that this one may be misspelled for."""
    return nearest(name, (*names, *cached_names()), 0.72)


def _not_fetched(name: str, why: str, names: Sequence[str] = KNOWN_MODELS) -> ModelError:
    one_file = OF_HUB.fullmatch(name)
    named = " ".join(one_file.groups()) if one_file else name
    fetching = f"fetch it once where there is a network (hf download {named}), or use builtin"
    return ModelError(
        f"the model {name!r} is not in the cache and was not fetched: {why}",
        (_meant(name, names) or fetching)
        + (f"; the folder {name} here is ./{name}" if Path(name).is_dir() else ""),
    )
