"""Every public name has an example, which works as printed."""

import doctest
import inspect
from pathlib import Path

import pytest

import attnviz
from tests.test_public_records import RECORDS

NO_EXAMPLE = {"AttnvizError", "ShowOptions", "Token", "__version__", *RECORDS}
"""Types that examples of others hold, and a text."""


@pytest.mark.parametrize("name", sorted(set(attnviz.__all__) - NO_EXAMPLE))
def test_the_example_of_a_public_name_works_as_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    documented = getattr(attnviz, name)
    parser = doctest.DocTestParser()
    example = parser.get_doctest(
        inspect.getdoc(documented) or "", {"attnviz": attnviz}, name, None, 0
    )
    assert example.examples, f"{name} has no example"
    said: list[str] = []
    ended = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert ended.failed == 0, "".join(said)


def test_every_public_function_says_what_it_takes_and_gives() -> None:
    for name in attnviz.__all__:
        documented = getattr(attnviz, name)
        if not inspect.isfunction(documented):
            continue
        signature = inspect.signature(documented)
        assert signature.return_annotation is not inspect.Signature.empty, name
        for parameter in signature.parameters.values():
            assert parameter.annotation is not inspect.Parameter.empty, (name, parameter.name)
            said = parameter.name in (documented.__doc__ or "")
            assert said, f"{name} does not say what {parameter.name} is"
