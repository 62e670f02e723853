"""The jobs: ours, what a user would pick instead, and what must be reached (ours / theirs)."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
PYTHON = sys.executable


@dataclass(frozen=True)
class Job:
    """Two commands that do the same; `most_time` and `most_memory` are shares of theirs.

    `timed_inside`: they print their own seconds. `without_torch`: ours must not import it.
    `long`: they take an hour, and run only where no other job is asked for.
    """

    name: str
    against: str
    ours: Sequence[str]
    theirs: Sequence[str]
    most_time: float | None
    most_memory: float | None = None
    timed_inside: bool = False
    without_torch: bool = False
    long: bool = False


def jobs(folder: Path) -> tuple[Job, ...]:
    """All jobs on the checkpoints and texts of a folder."""
    capture, gpt2, llama = folder / "capture.npz", folder / "gpt2", folder / "llama"

    def show(tokens: int, *more: str) -> list[str]:
        text = str(folder / f"{tokens}.txt")
        return [PYTHON, "-m", "attnviz", "show", "--file", text, "--model", str(gpt2), *more]

    def plain(tokens: int, kind: str) -> list[str]:
        out = str(folder / f"plain-{kind}.png")
        text = str(folder / f"{tokens}.txt")
        return [PYTHON, str(SCRIPTS / "plain.py"), str(gpt2), text, kind, out]

    def inside(script: str, model: Path, tokens: int) -> list[str]:
        return [PYTHON, str(SCRIPTS / script), str(model), str(folder / f"{tokens}.txt")]

    def answer(model: Path, tokens: int, new: int, engine: str) -> list[str]:
        return [*inside("generate.py", model, tokens), str(new), engine]

    def plain_answer(model: Path, tokens: int, new: int, mode: str) -> list[str]:
        return [*inside("plain_generate.py", model, tokens), str(new), mode]

    def windows(script: str, model: Path, tokens: int, length: int, *more: str) -> list[str]:
        count = str(tokens // length)
        return [PYTHON, str(SCRIPTS / script), str(model), count, str(length), *more]

    def scan(name: str, *more: str) -> list[str]:
        out = folder / "scans" / name
        return [PYTHON, str(SCRIPTS / "scan_folder.py"), str(folder / "world.txt"), str(out), *more]

    imports = "import typer, rich.console, rich.table"
    return (
        Job(
            "attnviz --help",
            imports,
            [PYTHON, "-m", "attnviz", "--help"],
            [PYTHON, "-c", imports],
            2.0,
            without_torch=True,
        ),
        Job(
            "attnviz show CAPTURE.npz",
            "import numpy, typer, rich.console, rich.table",
            [PYTHON, "-m", "attnviz", "show", str(capture)],
            [PYTHON, "-c", "import numpy, typer, rich.console, rich.table"],
            2.0,
            without_torch=True,
        ),
        Job(
            "attnviz show TEXT (built-in)",
            "import torch",
            [PYTHON, "-m", "attnviz", "show", "a fluffy blue creature"],
            [PYTHON, "-c", "import torch"],
            1.35,
        ),
        Job(
            "GPT-2-sized, 16 tokens, one head as table",
            "plain script",
            show(16, "--head", "L5H3"),
            plain(16, "table"),
            0.45,
        ),
        Job(
            "GPT-2-sized, 1,024 tokens, one head as PNG",
            "plain script",
            show(1024, "--head", "L5H3", "-o", str(folder / "one.png")),
            plain(1024, "png"),
            0.30,
            0.50,
        ),
        Job(
            "GPT-2-sized, 1,024 tokens, 144-head grid as PNG",
            "plain script with 144 axes",
            show(1024, "--head", "all", "-o", str(folder / "grid.png")),
            plain(1024, "grid"),
            0.35,
            0.50,
        ),
        Job(
            "GPT-2-sized, 1,024 tokens, top links of all heads",
            "plain SDPA forward",
            inside("links.py", gpt2, 1024),
            inside("forward.py", gpt2, 1024),
            1.3,
            timed_inside=True,
        ),
        *(
            Job(
                f"GPT-2-sized, 64 tokens, all heads ablated, {engine}",
                "as many plain forwards in such batches",
                [*inside("ablate.py", gpt2, 64), engine],
                inside("batches.py", gpt2, 64),
                1.2,
                timed_inside=True,
            )
            for engine in ("native", "transformers")
        ),
        *(
            Job(
                f"GPT-2-sized, 64 tokens, all MLPs ablated, {engine}",
                "as many plain forwards in such batches",
                [*inside("ablate.py", gpt2, 64), engine, "mlps"],
                [*inside("batches.py", gpt2, 64), str(12 + 1)],
                1.2,
                timed_inside=True,
            )
            for engine in ("native", "transformers")
        ),
        *(
            Job(
                f"GPT-2-sized, 64 tokens, {links} of every head cut, transformers",
                "as many plain forwards in such batches",
                [*inside("ablate.py", gpt2, 64), "transformers", cut],
                inside("batches.py", gpt2, 64),
                1.2,
                timed_inside=True,
            )
            for links, cut in (("one link", "-1:3"), ("every query's link", "/^w/:0"))
        ),
        *(
            Job(
                f"GPT-2-sized, 64 tokens, all heads patched, {engine}",
                "as many plain forwards in such batches",
                [*inside("patch.py", gpt2, 64), engine, "head"],
                inside("batches.py", gpt2, 64),
                1.2,
                timed_inside=True,
            )
            for engine in ("native", "transformers")
        ),
        *(
            Job(
                f"GPT-2-sized, 16 tokens, the stream patched at each layer and position, {engine}",
                "as many plain forwards in such batches",
                [*inside("patch.py", gpt2, 16), engine, "residual"],
                [*inside("batches.py", gpt2, 16), str(12 * 16 + 1)],
                1.2,
                timed_inside=True,
            )
            for engine in ("native", "transformers")
        ),
        *(
            Job(
                f"GPT-2-sized, 64 tokens, a score by part, {engine}",
                "plain SDPA forward",
                [*inside("why.py", gpt2, 64), engine, "why"],
                inside("forward.py", gpt2, 64),
                None,
                timed_inside=True,
            )
            for engine in ("native", "transformers")
        ),
        Job(
            "small Llama, 8,192 tokens, top links of all heads",
            "plain SDPA forward",
            inside("links.py", llama, 8192),
            inside("forward.py", llama, 8192),
            None,
            1.25,
            timed_inside=True,
        ),
        *(
            Job(
                f"small Llama, 4,096 tokens and 128 new, all heads to segments, {engine}",
                against,
                answer(llama, 4096, 128, engine),
                plain_answer(llama, 4096, 128, mode),
                most,
                1.1,
                timed_inside=True,
            )
            for engine, against, mode, most in (
                ("native", "plain generate", "sdpa", 1.1),
                ("transformers", "plain generate", "sdpa", 1.2),
                ("native", "generate, eager, output_attentions", "eager", None),
            )
        ),
        Job(
            "GPT-2-sized, 900 tokens and 100 new, all heads to segments, native",
            "plain generate",
            answer(gpt2, 900, 100, "native"),
            plain_answer(gpt2, 900, 100, "sdpa"),
            None,
            timed_inside=True,
        ),
        Job(
            "scan, GPT-2-sized, 8 windows of 512: statistics of all heads",
            "plain SDPA forward",
            windows("scan_windows.py", gpt2, 4096, 512),
            windows("plain_windows.py", gpt2, 4096, 512, "forward"),
            1 / 0.6,
            1.25,
            timed_inside=True,
        ),
        Job(
            "scan, GPT-2-sized, 8 windows of 512: statistics of all heads",
            "six of them, eager",
            windows("scan_windows.py", gpt2, 4096, 512),
            windows("plain_windows.py", gpt2, 4096, 512, "eager"),
            1 / 3,
            timed_inside=True,
        ),
        Job(
            "scan, GPT-2-sized through transformers, 8 windows of 512",
            "plain SDPA forward",
            windows("scan_windows.py", gpt2, 4096, 512, "transformers"),
            windows("plain_windows.py", gpt2, 4096, 512, "forward"),
            1 / 0.6,
            1.25,
            timed_inside=True,
        ),
        Job(
            "scan, small Llama, 8,192 tokens: statistics of all heads",
            "plain SDPA forward",
            windows("scan_windows.py", llama, 8191, 8191),
            windows("plain_windows.py", llama, 8191, 8191, "forward"),
            1.8,
            1.25,
            timed_inside=True,
        ),
        *(
            Job(
                "scan, built-in, 10,000 documents of its world: statistics of all heads",
                against,
                [PYTHON, str(SCRIPTS / "scan_windows.py"), "builtin", "10000", "world"],
                [PYTHON, str(SCRIPTS / "plain_windows.py"), "builtin", "10000", "world", mode],
                most_time,
                most_memory,
                timed_inside=True,
            )
            for against, mode, most_time, most_memory in (
                ("plain SDPA forward", "forward", 1 / 0.6, 1.25),
                ("six of them, eager", "eager", 1 / 3, None),
            )
        ),
        Job(
            "scan, built-in, 100 documents of 512 words: statistics of all heads",
            "six of them, eager",
            [PYTHON, str(SCRIPTS / "scan_windows.py"), "builtin", "100", "joined"],
            [PYTHON, str(SCRIPTS / "plain_windows.py"), "builtin", "100", "joined", "eager"],
            1 / 3,
            timed_inside=True,
        ),
        *whole_scans(folder),
        *trained_size(folder),
        Job(
            "scan's worker, built-in, 10,000 documents made on the fly",
            "1,000 documents",
            [PYTHON, str(SCRIPTS / "scan_documents.py"), "10000"],
            [PYTHON, str(SCRIPTS / "scan_documents.py"), "1000"],
            None,
            1.05,
        ),
        Job(
            "scan, built-in, 2 workers",
            "1 worker",
            scan("two", "2"),
            scan("one", "1"),
            None,
        ),
        Job(
            "scan, built-in, Ray, 2 actors",
            "2 workers",
            scan("ray", "2", "local"),
            scan("two", "2"),
            None,
        ),
    )


def whole_scans(folder: Path) -> tuple[Job, ...]:
    """Scans of a corpus, from the start of their process to the last file of the result."""
    gpt2 = str(folder / "gpt2")

    def scan(corpus: str) -> list[str]:
        return whole_scan(folder, "gpt2", corpus)

    def script(name: str, corpus: str, out: str) -> list[str]:
        texts = str(folder / f"{corpus}.jsonl")
        return [PYTHON, str(SCRIPTS / name), gpt2, texts, str(folder / out)]

    return (
        *(
            Job(
                f"whole scan, GPT-2-sized, {documents}",
                "head metrics of Neuronpedia",
                scan(corpus),
                script("head_metrics.py", corpus, f"heads-{corpus}"),
                most_time,
                most_memory,
                long=corpus == "1000x512",
            )
            for documents, corpus, most_time, most_memory in (
                ("40 windows of 512", "40x512", 0.45, 1.0),
                ("1,000 windows of 512", "1000x512", 0.45, 1.0),
                ("40 documents of 60 to 140", "40x100", 0.6, None),
                ("400 documents of 60 to 140", "400x100", 0.6, None),
            )
        ),
        Job(
            "whole scan, GPT-2-sized, 16 windows of 500",
            "six statistics and the links, eager",
            scan("16x500"),
            script("eager_links.py", "16x500", "links.npz"),
            0.6,
        ),
        Job(
            "whole scan, GPT-2-sized, 16 windows of 500",
            "plain SDPA forward",
            scan("16x500"),
            [PYTHON, str(SCRIPTS / "plain_windows.py"), gpt2, "16", "500", "forward"],
            1.6,
        ),
    )


def whole_scan(folder: Path, model: str, corpus: str) -> list[str]:
    """A scan of one of the corpora by one of the checkpoints."""
    out, texts = str(folder / "scans" / corpus), str(folder / f"{corpus}.jsonl")
    how = ["--length", "512", "--workers", "1", "-m", str(folder / model)]
    return [PYTHON, str(SCRIPTS / "scan_command.py"), out, texts, *how]


def trained_size(folder: Path) -> tuple[Job, ...]:
    """What people run first on a model of SmolLM2's shape."""
    model, corpus = str(folder / "smollm"), str(folder / "200x47.jsonl")
    text, out = str(folder / "14.txt"), str(folder / "eager.npz")

    def show(tokens: int, *more: str) -> list[str]:
        file = str(folder / f"{tokens}.txt")
        return [PYTHON, "-m", "attnviz", "show", "--file", file, "-m", model, *more]

    def plain(tokens: int, kind: str) -> list[str]:
        file, picture = str(folder / f"{tokens}.txt"), str(folder / "plain.png")
        return [PYTHON, str(SCRIPTS / "plain.py"), model, file, kind, picture]

    def answer(script: str, how: str) -> list[str]:
        return [PYTHON, str(SCRIPTS / script), model, str(folder / "4096.txt"), "128", how]

    return (
        Job(
            "SmolLM2-sized, 14 tokens, the first screen",
            "plain script",
            show(14),
            plain(14, "table"),
            0.5,
            0.92,
        ),
        Job(
            "SmolLM2-sized, 14 tokens, one head as table",
            "plain script",
            show(14, "--head", "L5H1"),
            plain(14, "table"),
            0.45,
            0.92,
        ),
        Job(
            "SmolLM2-sized, 1,024 tokens, one head as PNG",
            "plain script",
            show(1024, "--head", "L5H3", "-o", str(folder / "one.png")),
            plain(1024, "png"),
            0.4,
            0.5,
        ),
        Job(
            "SmolLM2-sized, 4,096 tokens and 128 new, all heads to segments",
            "plain generate",
            answer("generate.py", "native"),
            answer("plain_generate.py", "sdpa"),
            1.1,
            timed_inside=True,
        ),
        Job(
            "whole scan, SmolLM2-sized, 200 documents of 14 to 80",
            "all statistics and the links, eager, batched",
            whole_scan(folder, "smollm", "200x47"),
            [PYTHON, str(SCRIPTS / "eager_scan.py"), model, corpus, out],
            0.5,
        ),
        Job(
            "SmolLM2-sized, the probe of all heads",
            "the same sums, eager, one batch",
            [PYTHON, "-m", "attnviz", "heads", "-m", model],
            [PYTHON, str(SCRIPTS / "eager_probe.py"), model, out],
            1.2,
        ),
        Job(
            "SmolLM2-sized, 14 tokens, all heads ablated",
            "as many plain forwards in such batches",
            [PYTHON, str(SCRIPTS / "ablate.py"), model, text, "transformers"],
            [PYTHON, str(SCRIPTS / "batches.py"), model, text],
            1.2,
            timed_inside=True,
        ),
    )
