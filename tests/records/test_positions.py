"""What the names of queries and keys find in a text."""

import pytest

from attnviz.errors import UsageError
from attnviz.records.places import Patch
from attnviz.records.positions import find_positions, last_word, one_position, word_around
from attnviz.records.tokens import Token, numbered


def _tokens(*pieces: str, bos: bool = False) -> list[Token]:
    tokens, start = [Token(0, 0, "", 0, 0, special=True)] if bos else [], 0
    for piece in pieces:
        tokens.append(Token(len(tokens), 9, piece, start, start + len(piece)))
        start += len(piece)
    return tokens


#          0     1     2          3     4     5     6     7
TEXT = _tokens("the", " 3", " creature", " ro", "amed", " the", " Bl", "ue", " creature", ".", "3")

FOUND: list[tuple[str, tuple[int, ...]]] = [
    ("creature", (2, 8)),
    ("creature#1", (2,)),
    ("creature#2", (8,)),
    ("3", (3,)),  # digits are an index
    ("-1", (10,)),  # from the end
    ("-11", (0,)),
    ("3#1", (1,)),  # the token "3"
    ("3#2", (10,)),
    ("CREATURE", (2, 8)),  # equal but for case, where nothing is equal
    ("roamed", (3, 4)),  # a word that was cut into two tokens
    ("blue", ()),  # ... is spelled exactly
    ("Blue", (6, 7)),
    ("Blue creature", (6, 7, 8)),
    (".", (9,)),
]


@pytest.mark.parametrize(("name", "expected"), FOUND)
def test_a_name_finds_all_its_positions(name: str, expected: tuple[int, ...]) -> None:
    if expected:
        assert find_positions(TEXT, [name], "queries") == expected
    else:
        with pytest.raises(UsageError, match="is not in the text"):
            find_positions(TEXT, [name], "queries")


#               0      1     2      3    4     5     6    7     8    9     10
PIECES = _tokens("put", " s", "u", "it", "c", "as", "e", " f", "_", "it", " it", ".", " It")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("it", (10,)),  # neither in suitcase nor in f_it
        ("It", (12,)),
        ("suitcase", (1, 2, 3, 4, 5, 6)),
        ("f_it", (7, 8, 9)),
        ("as", (5,)),  # no word reads so: the piece
        ("it#1", (10,)),
        ("put suitcase", (0, 1, 2, 3, 4, 5, 6)),
        ("suit", (1, 2, 3)),  # no word reads so: the pieces
    ],
)
def test_a_word_is_no_piece_of_a_longer_one(name: str, expected: tuple[int, ...]) -> None:
    assert find_positions(PIECES, [name], "queries") == expected


def test_a_word_in_one_token_and_in_several_is_found_in_both() -> None:
    assert find_positions(_tokens("Blue", " Bl", "ue", " blue"), ["Blue"], "keys") == (0, 1, 2)
    # ideographs are words of their own; a blank may be a token of its own
    assert find_positions(_tokens("猫", "她", "猫"), ["猫"], "keys") == (0, 2)
    assert find_positions(_tokens("a", " ", "cat", "s", " ", "cat"), ["cat"], "keys") == (5,)


def test_several_names_find_each_position_once_in_order() -> None:
    assert find_positions(TEXT, ["creature", "8", "the#1"], "keys") == (0, 2, 8)


def test_a_token_that_contains_a_number_sign_is_found_as_it_stands() -> None:
    assert find_positions(_tokens("C#1", " C", " C"), ["C#1"], "query") == (0,)


def test_a_letter_in_several_tokens_is_one_occurrence() -> None:
    """Three tokens that share a letter, twice, and a blank that belongs to no token."""
    parts = [Token(i, 9, "—", at, at + 1, part=(n, 3)) for at in (0, 2) for n, i in _numbers(at)]
    assert find_positions(parts, ["—"], "query") == (0, 1, 2, 3, 4, 5)
    assert find_positions(parts, ["—#2"], "query") == (3, 4, 5)
    assert one_position(parts, "—#1", "query") == 2
    assert find_positions(parts, ["— —"], "query") == (0, 1, 2, 3, 4, 5)
    assert find_positions(parts, ["— 2/3"], "query") == (1, 4)


def _numbers(at: int) -> list[tuple[int, int]]:
    """Which part each of three tokens is, and its index."""
    return [(n, n - 1 + (3 if at else 0)) for n in (1, 2, 3)]


def test_the_beginning_token_is_found_by_its_label() -> None:
    assert find_positions(_tokens("a", bos=True), ["BOS"], "keys") == (0,)


REFUSED: list[tuple[str, str]] = [
    ("-12", "not a position in this text"),
    ("99", "in this text; its tokens are 0 to 10, or -1 for the last one; 99#1 would be the"),
    ("creatur", "its tokens are: the 3 creature ro amed Bl ue . (did you mean creature?)"),
    ("creature#3", "'creature' occurs 2 times; count from 1 to 2"),
    ("creature#0", "count from 1 to 2"),
    ("zebra#1", "'zebra' is not in the text"),
    ("roa", "'roa' is not in the text"),  # no part of a token
    (" ", "query names no token"),
]


@pytest.mark.parametrize(("name", "says"), REFUSED)
def test_a_name_that_finds_nothing_lists_what_there_is(name: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_positions(TEXT, [name], "queries")
    assert says in str(caught.value)


def _seen(image: int, row: int, column: int) -> Token:
    patch = Patch(image, 0, row, column)
    name = f"@{image + 1}:r{row}c{column}"
    return Token(0, 9, "", 0, 0, special=True, name=name, image=image, patch=patch)


def _beside_images(*pieces: str) -> tuple[Token, ...]:
    """Two images of 1 × 2 and 2 × 1 tokens, then a text."""
    end = Token(0, 9, "", 0, 0, special=True, name="end", image=0)  # of a row, without a place
    images = _seen(0, 0, 0), _seen(0, 0, 1), end, _seen(1, 0, 0), _seen(1, 1, 0)
    return numbered((*images, *_tokens(*pieces)))


@pytest.mark.parametrize(
    ("pieces", "name", "expected"),
    [
        (("a", " cat"), "image", (0, 1, 2, 3, 4)),
        (("a", " cat"), "image 1", (0, 1, 2)),
        (("a", " cat"), "image 2", (3, 4)),
        (("a", " cat"), "image#2", (3, 4)),
        (("an", " image"), "image", (6,)),  # the text's own word
        (("an", " im", "age"), "image", (6, 7)),
        (("an", " image"), "image 2", (3, 4)),
        (("an", " Image"), "image 1", (0, 1, 2)),
        (("an", " Image"), "image", (0, 1, 2, 3, 4)),  # does not read exactly so
        (("an", " image", "ry"), "image", (0, 1, 2, 3, 4)),
        (("image", " 2"), "image 2", (5, 6)),
    ],
)
def test_images_have_names_that_give_way_to_words(
    pieces: tuple[str, ...], name: str, expected: tuple[int, ...]
) -> None:
    assert find_positions(_beside_images(*pieces), [name], "keys") == expected


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("image 3", "is not in the text; its tokens are: a cat; 2 parts of image 1, @1:r0c0 to"),
        ("image 01", "is not in the text"),
        ("@2:r2c0", "is not in the image; the grid is 2 × 1"),
        ("@1:r0c10", "is not in the image; the grid is 1 × 2"),
        ("dog", "cat; 2 parts of image 1, @1:r0c0 to @1:r0c1; 2 parts of image 2, @2:r0c0 to @"),
        ("imag", "(did you mean image 2?)"),
    ],
)
def test_what_is_beside_the_images_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_positions(_beside_images("a", " cat"), [name], "keys")
    assert says in str(caught.value)


def test_without_an_image_its_name_is_a_word() -> None:
    with pytest.raises(UsageError, match="is not in the text"):
        find_positions(TEXT, ["image"], "keys")
    assert find_positions(_tokens("an", " image"), ["image"], "keys") == (1,)


def test_where_one_position_is_needed_several_are_listed() -> None:
    with pytest.raises(UsageError, match=r"is at 2 positions \(2, 8\).*creature#1"):
        one_position(TEXT, "creature", "query")
    assert one_position(TEXT, "creature#2", "query") == 8


def test_of_a_word_in_several_tokens_the_last_one_stands_for_it() -> None:
    assert one_position(TEXT, "roamed", "query") == 4


def test_the_last_word_is_the_last_token_with_a_letter_or_digit() -> None:
    assert last_word(_tokens("a", " dog", " .", "!")) == 1
    assert last_word(_tokens("?", "!", bos=True)) == 2


def test_an_expression_finds_a_special_token_only_where_it_spells_its_name() -> None:
    tokens = _tokens("The", " Bat", " sat", bos=True)
    assert find_positions(tokens, ("/^[A-Z]/",), "keys") == (1, 2)
    assert find_positions(tokens, ("/BOS|sat/",), "keys") == (0, 3)
    with pytest.raises(UsageError, match="is not in the text"):
        find_positions(tokens, ("/^B.S$/",), "keys")


def test_a_name_that_is_no_word_is_told_as_a_piece_of_one() -> None:
    assert word_around(PIECES[:9], "it") == "suitcase"
    assert word_around(PIECES[:9], "it#1") == "suitcase"
    assert word_around(PIECES[:9], "case") == "suitcase"
    for whole in ("it", "suitcase", "put", "3", "-1", "/it/", "absent"):
        assert word_around(PIECES, whole) == ""
