"""What each command refuses, as a shell types it: one sentence, and nothing on standard output.

`tests/senseless.py` has the calls that Python can make too, and `tests/golden` further ones with
every word of their message.
"""

import shlex

import pytest

from attnviz.errors import ExitStatus
from tests.conftest import Run

INPUT, USAGE, MODEL = ExitStatus.INPUT, ExitStatus.USAGE, ExitStatus.MODEL
BLUE, RED = (f"'a {color} bird slept . the bird was'" for color in ("blue", "red"))
PAIR = f"{BLUE} --from {RED}"
MURDER = "'Anna ran . the murderer was'"
REFUSED = (
    # show
    ("show 'a cat' --rollout -m translator", USAGE, "leave --rollout out"),
    ("show 'a cat' --rollout --layer 7", USAGE, "there is no layer 7"),
    ("show 'a cat' --drop-key mole", USAGE, "--drop-key 'mole' is not in the text"),
    ("show 'a cat' --query '/(/'", USAGE, "is not a regular expression"),
    ("show 'a cat' --query '/x{9}/'", USAGE, "is not in the text"),
    ("show 'a cat' --drop-sink -f npz", USAGE, "a capture holds whole patterns"),
    ("show 'a cat' --scores --words", USAGE, "leave --words out"),
    ("show 'a cat' --scores --min 0.1", USAGE, "leave --min out"),
    ("show 'a cat' --weighted --rollout", USAGE, "cannot be rolled out"),
    ("show 'a cat' --weighted -m translator", USAGE, "which translator is not"),
    # explain
    ("explain 'a cat' --head all", USAGE, "--head all names 20 heads"),
    ("explain 'a cat' --digits 2 -f json", USAGE, "--digits applies only to text output"),
    ("explain 'a cat' --as-lookup -o x.npz", USAGE, "npz holds all numbers"),
    ("explain 'a cat' --kind cross", USAGE, "--kind cross is for encoder-decoders"),
    (
        "explain 'a fluffy blue creature' -m translator --query creature",
        USAGE,
        "its tokens are: une créature bleue et duveteuse (did you mean créature?)",
    ),
    ("explain --matrices nowhere.json", INPUT, "nowhere.json"),
    ("explain ' '", INPUT, "blank"),
    # why
    ("why 'a cat' --head L4", USAGE, "--head"),
    ("why 'a cat' --head all", USAGE, "names 20 heads"),
    ("why 'a cat' --query zebra", USAGE, "is not in the text"),
    ("why 'a cat' --writes --key cat", USAGE, "does nothing with --writes"),
    ("why 'a cat' --writes -o a.png", USAGE, "is a table, not a picture"),
    ("why 'a cat' --depth 2 -f csv", USAGE, "is not in the rows"),
    ("why 'a cat' --query 0", INPUT, "attends to only one key"),
    ("why 'a cat' -m embeddings", USAGE, "residual stream"),
    # heads
    ("heads --length 99999", USAGE, "give a smaller --length"),
    ("heads -m translator", USAGE, "give --kind encoder, or a text"),
    ("heads 'a cat' --role sink", USAGE, "give a longer one, or --probe"),
    ("heads 'a cat' --head L9H0", USAGE, "there is no layer 9"),
    ("heads 'a cat' -f npz", USAGE, "does not write npz"),
    ("heads 'a cat' --dpi 90", USAGE, "--dpi is for pictures"),
    ("heads --retrieval 'a text'", USAGE, "measured without a text of yours"),
    ("heads --retrieval --probe", USAGE, "does nothing for the measurement of retrieval"),
    ("heads --retrieval --head L0H0", USAGE, "does nothing for the measurement of retrieval"),
    ("heads --retrieval --length 9", USAGE, "does nothing for the measurement of retrieval"),
    # predict
    ("predict ' '", INPUT, "blank"),
    ("predict 'a cat' --max-memory 1MB", MODEL, "shorten the text"),
    ("predict 'a cat' --attribute --versus ''", USAGE, "is not a token here"),
    (f"predict {BLUE} --attribute --versus blue", USAGE, "is the likeliest token itself"),
    # generate
    (f"generate {MURDER} --by line --segment a=0:2", USAGE, "--by cannot cut a prompt"),
    (f"generate {MURDER} --top-p 0", USAGE, "give more than 0, and at most 1"),
    (f"generate {MURDER} --doc README.md --by line", USAGE, "--doc makes segments"),
    (f"generate {MURDER} --chat README.md", USAGE, "--chat is the whole prompt"),
    (f"generate {MURDER} --head L9H0", USAGE, "no layer 9"),
    (f"generate {MURDER} --view text -f csv", USAGE, "view does nothing for csv"),
    (f"generate {MURDER} --rows word -o a.npz", USAGE, "rows does nothing for npz"),
    (f"generate {MURDER} --check -o a.png", USAGE, "check is for tables, pages and rows"),
    (f"generate {MURDER} --cmap magma", USAGE, "cmap is for pictures"),
    (f"generate {MURDER} --lines -o a.npz", USAGE, "needs its own file"),
    # ablate
    (f"ablate {BLUE} --answer ' '", USAGE, "is not a token here"),
    (f"ablate {BLUE} --answer blue --versus blue", USAGE, "the same token as"),
    ("ablate a --no-bos", INPUT, "nothing follows a single token"),
    (f"ablate {BLUE} --head L9H9", USAGE, "there is no layer 9"),
    (f"ablate {BLUE} --whole-layer x", USAGE, "--whole-layer 'x' cannot be read"),
    (f"ablate {BLUE} --max-memory 1MB", MODEL, "memory"),
    (f"ablate {BLUE} --dpi 99", USAGE, "is for pictures"),
    (f"ablate {BLUE} -o x.html", USAGE, "this result of ablate makes no page"),
    (f"ablate {BLUE} --cut BOS:BOS --renormalise", USAGE, "nothing is left of the row of 'BOS'"),
    (f"ablate {BLUE} --cut a:b:c", USAGE, "is not QUERY:KEY"),
    (f"ablate {BLUE} --cut :blue", USAGE, "is not QUERY:KEY"),
    (f"ablate {BLUE} --cut zebra:blue", USAGE, "--cut 'zebra' is not in the text"),
    # an option that is given twice loses neither in silence
    (f"ablate {BLUE} --with mean --mean-from a --mean-from b", USAGE, "given twice; give one"),
    (f"ablate {BLUE} --head L4H0 -H L4H1", USAGE, "--head is given twice; give a list"),
    (f"ablate {BLUE} --mlp 1 --mlp=2", USAGE, "--mlp is given twice"),
    (f"ablate {BLUE} --answer a --versus b --versus a", USAGE, "--versus is given twice"),
    # patch
    (f"patch {BLUE} --from ''", INPUT, "empty"),
    (f"patch {PAIR} --answer red --versus red", USAGE, "the same token as"),
    (f"patch {PAIR} -o x.png --top 3", USAGE, "--top does nothing here"),
    (f"patch {PAIR} --query zebra", USAGE, "--query 'zebra' is not in the text"),
    (f"patch {PAIR} --align blue=green", USAGE, "--align 'green' is not in the source"),
    (f"patch {PAIR} -m embeddings", USAGE, "does not predict"),
    (f"patch {PAIR} -f npz", USAGE, "does not write npz"),
    # compare
    ("compare 'a dog' 'a b a' --query a", USAGE, "is at 2 positions"),
    ("compare 'a dog' 'a cat' -m translator", USAGE, "cannot be compared"),
    ("compare 'a dog' 'a cat' --dpi 90", USAGE, "is for pictures"),
    ("compare 'a dog' '  '", INPUT, "blank"),
    ("compare cat dog --no-bos", INPUT, "a single token"),
    ("compare cat --against builtin --no-bos", INPUT, "a single token"),
)


@pytest.mark.parametrize(("shell", "status", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_meant_is_one_sentence(
    run: Run, shell: str, status: ExitStatus, says: str
) -> None:
    ended = run(*shlex.split(shell))
    assert (ended.status, ended.out) == (status, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1


MISTYPED = [
    # what is typed, the sentence
    ('show "a b" --json', "there is no option --json; give -f json."),
    ("models --csv", "there is no option --csv; give -f csv."),
    ('show "a b" --querry b', "there is no option --querry; did you mean --query?"),
    ('show "a b" --no-bow', "there is no option --no-bow; did you mean --no-bos?"),
    ('show "a b" --zebra', "there is no option --zebra; see attnviz show --help."),
    ('show --text "a b"',
        "there is no option --text; TEXT is given without an option: attnviz show TEXT."),
    ("generate --prompt a",
        "there is no option --prompt; TEXT is given without an option: attnviz generate TEXT."),
    ("compare --text a",
        "there is no option --text; TEXT is given without an option: attnviz compare TEXT."),
    ("params --name gpt2",
        "there is no option --name; NAME is given without an option: attnviz params NAME."),
    ('show "a b" --layer', "--layer has no value; give --layer LAYERS."),
    ("explain --example", "--example has no value; give one of three-inputs, multi-head."),
    ('show "a b" --top ten', "--top 'ten' is not a whole number; give 1 or more."),
    ('show "a b" --top 1.5', "--top 1.5 is not a whole number; give 1 or more."),
    ('show "a b" --min 2', "--min 2.0 is out of range; give 0 to 1."),
    ('show "a b" --view heat', "--view 'heat' is not known; did you mean heatmap?"),
    ('show "a b" --truncate middle', "--truncate 'middle' is not known; give one of 'left'"),
    ("show a b", "unexpected extra argument: b; put the text in quotes, or see"),
    (r"show --file 'C:\no\a.txt'", r"there is no file 'C:\no\a.txt'; check the name."),
    (r"show 'a b' --query '/\d\d/'", r"--query '/\d\d/' is not in the text"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "said"), MISTYPED, ids=[typed for typed, _ in MISTYPED])
def test_a_slip_in_an_option_is_told_in_a_sentence_that_says_what_to_type(
    run: Run, typed: str, said: str
) -> None:
    ended = run(*shlex.split(typed))
    assert ended.status in (ExitStatus.USAGE, ExitStatus.INPUT)
    assert ended.err.startswith(f"attnviz: {said}")
    assert ended.err.count("\n") == 1
