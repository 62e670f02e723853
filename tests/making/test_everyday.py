"""Everyday sentences: what counts as right."""

import json
from pathlib import Path

import pytest

from making import everyday


@pytest.mark.parametrize(
    ("part", "rows", "said"),
    [
        (
            "translation",
            [
                {"en": "I love you.", "fr": ["Je vous aime.", "je t’aime"]},
                {"en": "I love you.", "fr": ["Je vous aime."]},
            ],
            "1 of 2",
        ),
        (
            "mystery",
            [
                {
                    "text": "Anna slept. The butler stabbed the count. The murderer was",
                    "suspects": ["Anna", "the butler"],
                    "guilty": guilty,
                }
                for guilty in ("the butler", "Anna", "Anna")
            ],
            "1 of 3",
        ),
    ],
)
def test_the_right_ones_are_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    part: str,
    rows: list[dict[str, object]],
    said: str,
) -> None:
    monkeypatch.setattr(everyday, "FOLDER", tmp_path)
    (tmp_path / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    everyday.main(part)
    assert capsys.readouterr().out == f"{part}: {said}\n"
