"""Lines of JSON, and the images that they name: with a text, a question or a box, or in a chat.

Paths of images are relative to the folder of the file that names them.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from difflib import get_close_matches
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

from attnviz.errors import InputError
from attnviz.inputs.given import found
from attnviz.inputs.images import picture_of
from attnviz.inputs.text import LARGEST, STDIN
from attnviz.records.places import Box, RawImage

HINT = 'give {"text": "…", "image": "FILE"} or {"text": "…", "text_pair": "…"} on the line'
PAIR = "text_pair"
"""The key of the second text of a pair."""
IMAGES = ("image", "images")
"""The keys of images with a text."""
TEXTS = ("text", "question")
"""The keys of a text."""
FILES = ("image", "path", "url")
"""The keys that name the file of an image in a message."""
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""The beginning of an address; a single letter may be the drive of a path."""
LIKE = 0.82
"""The least similarity of a name to a field's, for a typo: `verses`, but not `source_id`."""
LONGEST_PATH = 4096


@dataclass(frozen=True)
class LineText:
    """A text of a line, and its images or its second text, if any."""

    text: str
    images: tuple[RawImage, ...] = ()
    text_pair: str | None = None


def folder_of(file: Path | None) -> Path:
    """The folder of the images that a file's lines name; for other lines, the current folder."""
    return Path() if file is None or str(file) == STDIN else file.parent


def is_jsonl(file: Path | None) -> bool:
    """Whether each line of a file is JSON."""
    return file is not None and found(file).suffix.lower() == ".jsonl"


def is_object_with(keys: Collection[str], line: str) -> bool:
    """Whether a line is in braces, like a JSON object, and names one of these keys."""
    bare = line.strip()
    braced = bare.startswith("{") and bare.endswith("}")
    return braced and any(re.search(rf'"{key}"\s*:', bare) for key in keys)


def line_text(line: str, file: Path | None) -> LineText:
    """The text of a line: of an object with images or a pair, or of any object in a .jsonl file.

    Raises:
        InputError: it names images or a pair, and there is no text, or one of them cannot be read.
    """
    keys = *IMAGES, PAIR
    if not (is_jsonl(file) and line.lstrip().startswith("{")) and not is_object_with(keys, line):
        return LineText(line)
    content = json_of(line, HINT)
    named = isinstance(content, dict) and not content.keys().isdisjoint(keys)
    told = content.get("text", content.get("question")) if isinstance(content, dict) else None
    if not isinstance(told, str):
        if named:
            wrong = f"there is no text with the {PAIR if PAIR in content else 'image'}"
            raise InputError(wrong, HINT)
        return LineText(line)
    check_fields(content, (*TEXTS, *keys))
    if not isinstance(pair := content.get(PAIR), str | None):
        raise InputError(f"{PAIR} is not a text", HINT)
    return LineText(told, images_beside(content, folder_of(file)), pair)


def images_beside(content: Mapping[str, Any], folder: Path) -> tuple[RawImage, ...]:
    """The images of an object: its `image`, or all of its `images`.

    Raises:
        InputError: it has both, or one of them cannot be read.
    """
    one, several = content.get("image"), content.get("images")
    if one is not None and several is not None:
        raise InputError("both image and images are given", "give one of them")
    if not isinstance(several, list | tuple | None):
        raise InputError("the images are not a list", HINT)
    given = [one] if one is not None else several or []
    return tuple(local_picture(each, folder) for each in given)


def local_picture(source: object, folder: Path) -> RawImage:
    """The image that an object names, or is.

    Raises:
        InputError: it is not an image, or not a file on this machine.
    """
    if isinstance(source, str):
        if ADDRESS.match(source) or len(source) > LONGEST_PATH:
            raise InputError(
                f"the image {source[:60]!r} is not the path of a file", "save it, and give its path"
            )
        return picture_of(folder / source)
    if not isinstance(source, PathLike | RawImage) and not hasattr(source, "size"):
        raise InputError("an image is not a file", "give its path")
    return picture_of(source)


def digest_of_images(line: str, folder: Path) -> str:
    """A digest of the files that a line names as images; "" if it names none."""
    if '"image' not in line:
        return ""
    try:
        files = list(_named(json_of(line, HINT)))
    except InputError:
        return ""
    return "".join(map(digest_of, (folder / file for file in files)))


def images_named(file: Path) -> Iterator[str]:
    """Yield the images that a JSON file or its lines name; none for a stream."""
    if not file.is_file() or str(file).startswith("/dev/"):
        return
    with file.open("rb") as stream:
        data = stream.read(LARGEST)
    texts = [data, *data.splitlines()] if b'"image' in data else []
    for text in texts:
        with suppress(InputError, ValueError):
            yield from _named(json_of(text.decode(), HINT))


def digest_of(file: Path) -> str:
    """A digest of a file's content, or "" if it cannot be read."""
    try:
        return sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
    except (OSError, ValueError):
        return ""


def _named(content: Any) -> Iterator[str]:
    """The files of images in an object, and in its messages."""
    if not isinstance(content, dict):
        return
    several = content.get("images")
    given = [content.get("image"), *(several if isinstance(several, list) else [])]
    yield from (each for each in given if isinstance(each, str))
    messages = content.get("messages")
    for message in messages if isinstance(messages, list) else []:
        parts = message.get("content") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict) and part.get("type") == "image":
                yield from (part[key] for key in FILES if isinstance(part.get(key), str))


def check_fields(content: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Check that no name is a misspelt field; other names are allowed."""
    for name in content:
        meant = [] if name in fields else get_close_matches(str(name), fields, 1, LIKE)
        if meant and meant[0] not in content:
            raise InputError(f"{name!r} is not a field", f"write {meant[0]!r}")


def json_of(line: str, hint: str) -> Any:
    """Read the value of a line of JSON; `hint`: the remedy for a wrong line.

    Raises:
        InputError: it is not JSON.
    """
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        said = error.msg.removesuffix(" at")
        why = f"{said[0].lower()}{said[1:]} at character {error.colno}"
    except RecursionError:
        why = "too deeply nested"
    except ValueError:  # Python refuses integers of thousands of digits
        why = "a number is too long"
    raise InputError(f"it is not JSON ({why})", hint)


# Questions and documents, with the keys of attnviz or of other programs.

RAGAS = {"user_input": "question", "contexts": "documents", "retrieved_contexts": "documents"}
"""Keys of RAGAS, and those of attnviz; a `user_input` that is a list holds the messages."""
CHAINS = {"question": ("input", "query"), "documents": ("context", "source_documents")}
"""attnviz's keys, and those in the results of LangChain's chains."""
DOCUMENT_TEXTS = ("text", "content", "contents", "page_content", "snippet")
"""The keys in which documents have their text."""
QUESTION_HINT = 'give {"question": "…", "documents": [{"id": "…", "text": "…"}]}'
KNOWN = (
    'give a "question" ("user_input", "text") and perhaps "documents" ("contexts", '
    '"retrieved_contexts", "context"), "target", "id" or "image"'
)


def in_our_words(content: Any, origin: str) -> Any:
    """An object with attnviz's keys in place of those of RAGAS and LangChain, else unchanged."""
    if not isinstance(content, Mapping):
        return content
    ours = dict[str, Any]()
    for key, value in content.items():
        several = key == "user_input" and isinstance(value, list)
        name = "messages" if several else RAGAS.get(str(key), str(key))
        if ours.get(name) and value:
            raise InputError(f"{origin} has {name} twice, once as {key}", "leave one out")
        ours[name] = ours.get(name) or value
    return ours if ours.get("messages") or "text" in ours else _of_chain(ours)


def _of_chain(entry: dict[str, Any]) -> dict[str, Any]:
    """The question and the documents of a chain's result, where it has both of them."""
    keys = [next((k for k in (a, *b) if entry.get(k)), "") for a, b in CHAINS.items()]
    asks, told = map(entry.get, keys)
    if not is_told(asks) or not isinstance(told, str | list):
        return entry
    others = {key: value for key, value in entry.items() if key not in keys}
    return {**others, "question": asks, "documents": [told] if isinstance(told, str) else told}


def is_told(text: object) -> TypeGuard[str]:
    """Whether a value is a text that is not blank."""
    return isinstance(text, str) and bool(text.strip())


def checked_documents(entries: object, origin: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The documents as objects, and those that are not read, as they are blank."""
    if not isinstance(entries, list):
        raise InputError(f"documents in {origin} is not a list", QUESTION_HINT)
    kept, blank = list[dict[str, Any]](), list[str]()
    for number, given in enumerate(entries, start=1):
        entry = {"text": given} if isinstance(given, str) else given
        texts = [entry.get(key) for key in DOCUMENT_TEXTS] if isinstance(entry, dict) else []
        if not any(isinstance(text, str) for text in texts):
            raise InputError(f"document {number} in {origin} has no text", QUESTION_HINT)
        if any(map(is_told, texts)):
            kept.append(entry)
        else:
            blank.append(f"document {number}, which is blank")
    return kept, tuple(blank)


def named_text(entry: Mapping[str, Any], *names: str) -> tuple[str, str]:
    """A document's name, under the first of these keys that it has, and the key of its text."""
    about = entry.get("metadata")  # of LangChain
    more = map(about.get, ("title", "source")) if isinstance(about, dict) else ()
    own = (str(each) for each in (*map(entry.get, names), *more) if isinstance(each, str | int))
    key = next(key for key in DOCUMENT_TEXTS if is_told(entry.get(key)))
    return next(filter(str.strip, own), "document"), key


# Boxes in images, each with its word.

BOX_HINT = 'give {"query": "circle", "box": [x0, y0, x1, y1]} on each line'


@dataclass(frozen=True)
class BoxLine:
    """A word and its box, in pixels, or in shares of the image's sides.

    `text`: None for that of the call, or else only the word. `image`: a file, the number of one of
    the call's images from 1, or None for its first.
    """

    query: str
    box: Box
    text: str | None = None
    image: str | int | None = None


def box_of(content: object) -> BoxLine:
    """The box of an object, or of a line of JSON.

    Raises:
        InputError: it is none.
    """
    if isinstance(content, str):
        content = json_of(content, BOX_HINT)
    if not isinstance(content, dict) or not isinstance(content.get("query"), str | int):
        raise InputError("there is no query", BOX_HINT)
    check_fields(content, [each.name for each in fields(BoxLine)])
    box, text, image = content.get("box"), content.get("text"), content.get("image")
    numbers = isinstance(box, list | tuple) and len(box) == 4
    if not numbers or not all(isinstance(n, int | float) and abs(n) < 1e9 for n in box or ()):
        raise InputError("the box is not four numbers", BOX_HINT)
    x0, y0, x1, y1 = map(float, box or ())
    if not (x0 < x1 and y0 < y1):
        raise InputError("the box is empty", "give left, top, right and bottom")
    if not isinstance(text, str | None) or not isinstance(image, str | int | None):
        raise InputError("a text or an image of this line has a wrong type", BOX_HINT)
    return BoxLine(str(content["query"]), (x0, y0, x1, y1), text, image)
