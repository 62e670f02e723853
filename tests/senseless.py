"""Calls that make no sense, each as a shell types it and as Python writes it.

The one table of what goes with what. `test_senseless.py` runs each row through the command line and
through Python. What only a shell can spell (a format beside an option that is chosen before it, an
option that is given twice) stands in `commands/test_refusals.py`, and in the tests of its command
where it needs files.
"""

from dataclasses import dataclass
from typing import Any

from attnviz.errors import ExitStatus

WORDS = {
    "TEXT": "a fluffy blue creature",
    "SOURCE": "a fluffy red creature",
    "CAPTURE": "capture.npz",
    "CORPUS": "words.txt",
    "SCAN": "scanned",
}
"""What stands for a text, or is the name of a file, in a command line; Python takes it by place."""
FLAGS = {
    "files": "--file",
    "heads": "--head",
    "layers": "--layer",
    "least": "--min",
    "mlps": "--mlp",
    "replacement": "--with",
    "sections": "--section",
    "source": "--from",
    "segments": "--segment",
    "whole_layers": "--whole-layer",
}
"""Flags that are not spelled as their parameter is."""


@dataclass(frozen=True)
class Call:
    """A senseless call, spelled both ways.

    Attributes:
        shell: what is typed after `attnviz`; `TEXT` and the like stand for `WORDS`.
        names: the parameter, as Python spells it, that both messages name; empty where what is
            wrong is no parameter.
        python: the keyword arguments of the function.
        loads: arguments of `load_model`, where the shell has them as options of the command.
        then: a method of the result and its argument, or its arguments by name, where the shell
            has them as options of the command.
        status: the exit code.
    """

    shell: str
    names: str
    python: dict[str, Any]
    loads: dict[str, Any] | None
    then: tuple[str, Any] | None
    status: ExitStatus

    @property
    def flag(self) -> str:
        """The parameter that the message on stderr names."""
        return FLAGS.get(self.names, f"--{self.names.replace('_', '-')}") if self.names else ""


def call(
    shell: str,
    names: str,
    *,
    loads: dict[str, Any] | None = None,
    then: tuple[str, Any] | None = None,
    status: ExitStatus = ExitStatus.USAGE,
    **python: Any,
) -> Call:
    """A row: the command line, and Python's arguments by name."""
    return Call(shell, names, python, loads, then, status)


CALLS = (
    # no key is shown
    call("show TEXT --top 0", "top", top=0),
    # a weight is at most 1
    call("show TEXT --min 2", "least", least=2),
    # a weight is never negative
    call("show TEXT --min -1", "least", least=-1),
    # no such view
    call("show TEXT --view nonsense", "view", view="nonsense"),
    # heads are joined by their mean or their maximum
    call("show TEXT --reduce median", "reduce", reduce="median"),
    # nothing is joined
    call("show TEXT --reduce sum:heads", "reduce", reduce="sum:heads"),
    call("show TEXT --skip next", "skip", skip="next"),
    # no such axis
    call("show TEXT --reduce mean:rows", "reduce", reduce="mean:rows"),
    # rows or columns
    call("show TEXT --orient sideways", "orient", orient="sideways"),
    # left or right
    call("show TEXT --truncate middle", "truncate", truncate="middle"),
    # a rollout is of all heads
    call("show TEXT --rollout --head L1H2", "heads", rollout=True, heads="L1H2"),
    # a rollout joins the heads already
    call("show TEXT --rollout --reduce mean", "reduce", rollout=True, reduce="mean"),
    # words merge what chars do
    call("show TEXT --words --chars", "words", words=True, chars=True),
    # scores are no shares that could be scaled
    call("show TEXT --scores --drop-sink", "drop_sink", scores=True, drop_sink=True),
    # scores are no weights that could be multiplied by a norm
    call("show TEXT --scores --weighted", "weighted", scores=True, weighted=True),
    # what is dropped has a sign, and the rest does not sum to 1
    call("show TEXT --contribution --drop-sink", "drop_sink", contribution=True, drop_sink=True),
    # the largest of values with a sign is no share
    call("show TEXT --contribution --reduce max", "reduce", contribution=True, reduce="max"),
    # contributions have the norms in them
    call("show TEXT --contribution --weighted", "weighted", contribution=True, weighted=True),
    # a table shows weights
    call("show TEXT --scores --view table", "view", scores=True, view="table"),
    # keys of a table have their place
    call("show TEXT --view table --orient key-rows", "orient", view="table", orient="key-rows"),
    # a text has no key left
    call("show TEXT --drop-key '/.|BOS/'", "drop_key", drop_key="/.|BOS/"),
    # the empty text is no token
    call("show TEXT --query ''", "query", query=""),
    # one query colours the text
    call("show TEXT --view text --query a --query blue", "query", view="text", query=["a", "blue"]),
    # the model has no such head
    call("show TEXT --head L9H9", "", heads="L9H9"),
    # no head is named
    call("show TEXT --head ''", "heads", heads=[]),
    # no layer is named
    call("show TEXT --layer ''", "layers", layers=[]),
    # a GPT has no target
    call("show TEXT --target blue", "target", target="blue"),
    # a GPT has one kind of attention
    call("show TEXT --kind cross", "kind", loads={"kind": "cross"}),
    # a GPT has no Mamba-2 layers
    call("show TEXT --kind implicit", "kind", loads={"kind": "implicit"}),
    # a GPT is causal by itself
    call("show TEXT --causal", "causal", loads={"causal": True}),
    # the from-scratch model computes in float32
    call("show TEXT --engine native --dtype float16", "dtype", loads={"engine": "native",
        "dtype": "float16"}),
    # no such device
    call("show TEXT --device abacus", "device", loads={"device": "abacus"}),
    # a memory of nothing
    call("show TEXT --max-memory 0", "max_memory", loads={"max_memory": 0}),
    # between two texts no token is the token itself
    call("show TEXT --model translator --skip self", "skip", model="translator", skip="self"),
    # a table is no picture
    call("show TEXT --view table -o x.png", "view", view="table", then=("save", "x.png")),
    # rows have no view
    call("show TEXT --view grid -o x.json", "view", view="grid", then=("save", "x.json")),
    # a capture holds whole patterns
    call("show TEXT --top 3 -o x.npz", "top", top=3, then=("save", "x.npz")),
    # a page is of weights
    call("show TEXT --scores -o x.html", "scores", scores=True, then=("save", "x.html")),
    # a picture of no dots
    call("show TEXT --dpi 0 -o x.png", "dpi", dpi=0, then=("save", "x.png")),
    # no such colours
    call("show TEXT --cmap nonsense -o x.png", "cmap", cmap="nonsense", then=("save", "x.png")),
    # no such scale
    call("show TEXT --color-scale cubic -o x.png", "color_scale", color_scale="cubic",
        then=("save", "x.png")),
    # a saved capture was run already
    call("show CAPTURE --bos", "bos", bos=True),
    call("show CAPTURE --special", "special", special=True),
    call("show CAPTURE --truncate left", "truncate", truncate="left"),
    call("show CAPTURE --target blue", "target", target="blue"),
    call("show CAPTURE --model gpt2", "model", model="gpt2"),
    # a saved capture holds weights
    call("show CAPTURE --scores", "", scores=True),
    # no head is listed
    call("heads --top 0", "top", top=0),
    # no such metric
    call("heads --sort nonsense", "sort", sort="nonsense"),
    # no such role
    call("heads --role nonsense", "role", role="nonsense"),
    # one token has nothing before it
    call("heads --length 1", "length", length=1),
    # nothing is measured
    call("heads --samples 0", "samples", samples=0),
    # more than anybody waits for
    call("heads --samples 20000", "samples", samples=20000),
    # seeds are natural numbers
    call("heads --seed -1", "seed", seed=-1),
    # seeds have 32 bits
    call("heads --seed 4294967296", "seed", seed=2**32, length=4, samples=1),
    # no such convention
    call("heads --convention third", "convention", convention="third"),
    # the probe has its own text
    call("heads TEXT --probe", "probe", probe=True),
    # two measurements
    call("heads --retrieval --circuits", "circuits", retrieval=True, circuits=True),
    call("heads --probe --circuits", "probe", probe=True, circuits=True),
    # receivers are sentences of a text
    call("heads --receiver", "receiver", receiver=True),
    call("heads TEXT --receiver --words", "words", receiver=True, words=True),
    call("heads --circuits --labels links.jsonl", "labels", circuits=True, labels="links.jsonl"),
    # a text has its own length
    call("heads TEXT --length 50", "length", length=50),
    # a text is one sample
    call("heads TEXT --samples 3", "samples", samples=3),
    # nothing is drawn
    call("heads TEXT --seed 3", "seed", seed=3),
    # a text has no second copy
    call("heads TEXT --convention whole", "convention", convention="whole"),
    # the probe has no words
    call("heads --words", "words", words=True),
    # the first token of the probe is drawn like all others
    call("heads --drop-sink", "drop_sink", drop_sink=True),
    # the probe has no text to read
    call("heads --special", "special", special=True),
    # the probe is as long as it is meant to be
    call("heads --truncate left", "truncate", truncate="left"),
    # weights are read without a text
    call("heads --circuits --words", "words", circuits=True, words=True),
    # circuits have no roles
    call("heads --circuits --role sink", "role", circuits=True, role="sink"),
    # circuits have no entropy
    call("heads --circuits --sort entropy", "sort", circuits=True, sort="entropy"),
    # nothing is drawn
    call("heads --circuits --seed 3", "seed", circuits=True, seed=3),
    # labelled links have no roles
    call("heads --labels links.jsonl --role sink", "role", labels="links.jsonl", role="sink"),
    # labels are links between tokens
    call("heads --labels links.jsonl --words", "words", labels="links.jsonl", words=True),
    # nothing is drawn
    call("heads --labels links.jsonl --samples 3", "samples", labels="links.jsonl", samples=3),
    # a saved capture is not run again
    call("heads CAPTURE --bos", "bos", bos=True),
    call("heads CAPTURE --model embeddings", "model", model="embeddings"),
    # a haystack has no words
    call("heads --retrieval --words", "words", retrieval=True, words=True),
    # retrieval has no entropy
    call("heads --retrieval --sort entropy", "sort", retrieval=True, sort="entropy"),
    # example and text
    call("explain TEXT --example three-inputs", "example", example="three-inputs"),
    # matrices and text
    call("explain TEXT --matrices m.json", "matrices", matrices="m.json"),
    # two calculations
    call("explain --example three-inputs --matrices m.json", "matrices", example="three-inputs",
        matrices="m.json"),
    # no such example
    call("explain --example four-inputs", "example", example="four-inputs"),
    # an example has its own head
    call("explain --example multi-head --head L1H2", "head", example="multi-head", head="L1H2"),
    # an example has its own query
    call("explain --example multi-head --query a", "query", example="multi-head", query="a"),
    # an example is no look-up
    call("explain --example multi-head --as-lookup", "as_lookup", example="multi-head",
        as_lookup=True),
    # an example needs no model
    call("explain --example multi-head --model embeddings", "model", example="multi-head",
        model="embeddings"),
    # an example has no beginning token
    call("explain --example multi-head --bos", "bos", example="multi-head", bos=True),
    # its numbers are whole, and not drawn
    call("explain --example three-inputs --seed 3", "seed", example="three-inputs", seed=3),
    call("explain --example three-inputs --init xavier", "init", example="three-inputs",
        init="xavier"),
    # a model's softmax is not rounded
    call("explain TEXT --rounded", "rounded", rounded=True),
    # a model's weights are not drawn
    call("explain TEXT --seed 3", "seed", seed=3),
    call("explain TEXT --init xavier", "init", init="xavier"),
    # a look-up has no steps
    call("explain TEXT --as-lookup --only 2", "only", as_lookup=True, only="2"),
    # a look-up has no columns
    call("explain TEXT --as-lookup --columns", "columns", as_lookup=True, columns=True),
    # a look-up shows weights, not likeness
    call("explain TEXT --as-lookup --similarity dot", "similarity", as_lookup=True,
        similarity="dot"),
    # embeddings have no head
    call("explain TEXT --model embeddings --head L0H0", "head", model="embeddings", head="L0H0"),
    # embeddings are compared by their product
    call("explain TEXT --model embeddings --similarity rbf", "similarity", model="embeddings",
        similarity="rbf"),
    # embeddings are no look-up
    call("explain TEXT --model embeddings --as-lookup", "as_lookup", model="embeddings",
        as_lookup=True),
    # a GPT has no Mamba-2 layers
    call("show TEXT --kind implicit", "kind", loads={"kind": "implicit"}),
    # a GPT is causal by itself
    call("explain TEXT --causal", "causal", causal=True),
    # a GPT has no target
    call("explain TEXT --target blue", "target", target="blue"),
    # more decimals than float32 has
    call("explain TEXT --digits 10", "digits", digits=10),
    # decimals are counted
    call("explain TEXT --digits -1", "digits", digits=-1),
    # there is no such step
    call("explain TEXT --only 99", "only", only="99"),
    # no such likeness
    call("explain TEXT --similarity cosine", "similarity", similarity="cosine"),
    # no meaning is read there, and an example has none
    call("explain TEXT --query a -o x.png", "", query="a", then=("save", "x.png")),
    # no part is told apart
    call("why TEXT --top 0", "top", top=0),
    # more parts than anybody reads
    call("why TEXT --top 1001", "top", top=1001),
    # nothing is followed back
    call("why TEXT --depth 0", "depth", depth=0),
    # no model is as deep
    call("why TEXT --depth 65", "depth", depth=65),
    # no such group
    call("why TEXT --group nonsense", "group", group="nonsense"),
    # two heads
    call("why TEXT --head L1H2,L1H3", "head", head="L1H2,L1H3"),
    # a key has no contrast with itself
    call("why TEXT --key blue --versus blue", "versus", key="blue", versus="blue"),
    # no candidate
    call("predict TEXT --top 0", "top", top=0),
    # versus what?
    call("predict TEXT --versus red", "versus", versus="red"),
    # two readings
    call("predict TEXT --attribute --each", "attribute", attribute=True, each=True),
    call("predict TEXT --attribute --lens", "attribute", attribute=True, lens=True),
    # the empty text is no token
    call("predict TEXT --answer ''", "answer", answer=""),
    # predictions have no picture
    call("predict TEXT -o x.png", "", then=("save", "x.png")),
    # nothing is together
    call("ablate TEXT --together", "together", together=True),
    # no row is cut
    call("ablate TEXT --renormalise", "renormalise", renormalise=True),
    # a link has no mean
    call("ablate TEXT --cut a:blue --with mean", "replacement", cut="a:blue", replacement="mean"),
    # an answer is no token of the text
    call("ablate TEXT --rows token --answer blue", "rows", rows="token", answer="blue"),
    # a curve is of a set
    call("ablate TEXT --curve", "curve", curve=True),
    # a curve has every token
    call("ablate TEXT --rows token --together --head L1H2 --curve", "rows", rows="token",
        together=True, heads="L1H2", curve=True),
    # no curve is scored
    call("ablate TEXT --between 2:9", "between", between="2:9"),
    # zero is a mean of nothing
    call("ablate TEXT --mean-from words.txt", "mean_from", mean_from=["blue"]),
    # the text has one mean
    call("ablate TEXT --with mean --mean-by position", "mean_by", replacement="mean",
        mean_by="position"),
    # nothing is drawn
    call("ablate TEXT --seed 3", "seed", seed=3),
    # no text to draw from
    call("ablate TEXT --with resample", "replacement", replacement="resample"),
    # fewer than one text is drawn
    call("ablate TEXT --with resample --resample-from words.txt --draws 0", "draws",
        replacement="resample", resample_from=["blue"], draws=0),
    # no such replacement
    call("ablate TEXT --with noise", "replacement", replacement="noise"),
    # a link has two ends
    call("ablate TEXT --cut blue", "cut", cut="blue"),
    # a key is not after its query
    call("ablate TEXT --cut a:creature", "", cut="a:creature"),
    # the text has no segments
    call("ablate TEXT --cut @a:@a", "cut", cut="@a:@a"),
    # nothing is cut in a segment
    call("ablate TEXT --segment a=0:5 --cut blue:a", "segments", segments=["a=0:5"], cut="blue:a"),
    # every row would be empty
    call("ablate TEXT --cut *:* --renormalise", "renormalise", cut="*:*", renormalise=True),
    # an MLP has no links
    call("ablate TEXT --cut blue:a --mlp all", "mlps", cut="blue:a", mlps="all"),
    # a layer has more than links
    call("ablate TEXT --cut blue:a --whole-layer 1", "whole_layers", cut="blue:a", whole_layers=1),
    # versus what?
    call("ablate TEXT --versus red", "versus", versus="red"),
    # a direction is of the stream, which is no head
    call("ablate TEXT --direction v.npy --head L1H2", "heads", direction=[1.0] * 128, heads="L1H2"),
    # what is projected out is not replaced
    call("ablate TEXT --direction v.npy --with mean", "replacement", direction=[1.0] * 128,
        replacement="mean"),
    # no part is shown
    call("ablate TEXT --top 0", "top", top=0),
    # no layer is named
    call("ablate TEXT --mlp ''", "mlps", mlps=[]),
    # the model has no such layer
    call("ablate TEXT --mlp 99", "", mlps=99),
    # one number is no picture
    call("ablate TEXT --together --head L1H2 -o x.png", "together", together=True, heads="L1H2",
        then=("save", "x.png")),
    # an MLP has no heads
    call("patch TEXT --from SOURCE --part mlp --head L1H2", "heads", part="mlp", heads="L1H2"),
    # the stream has no heads
    call("patch TEXT --from SOURCE --part residual --head L1H2", "heads", part="residual",
        heads="L1H2"),
    # an image in the place of none
    call("patch TEXT --from-image a.png", "from_image", from_image="a.png"),
    # no such part
    call("patch TEXT --from SOURCE --part neuron", "part", part="neuron"),
    # no part is shown
    call("patch TEXT --from SOURCE --top 0", "top", top=0),
    # nothing is together
    call("patch TEXT --from SOURCE --together", "together", together=True),
    # MLPs one at a time are a part
    call("patch TEXT --from SOURCE --mlp 1", "mlps", mlps=1),
    # parts together are heads and MLPs
    call("patch TEXT --from SOURCE --together --mlp 1 --part mlp", "part", together=True, mlps=1,
        part="mlp"),
    # one number is no picture
    call("patch TEXT --from SOURCE --together --mlp 1 --answer red --versus blue -o x.png",
        "together", answer="red", versus="blue", together=True, mlps=1, then=("save", "x.png")),
    # the stream is no sender
    call("patch TEXT --from SOURCE --part residual --to logits", "to", part="residual",
        to="logits"),
    # no such part of a head
    call("patch TEXT --from SOURCE --to L4H0.z", "to", to="L4H0.z"),
    # no path has MLPs
    call("patch TEXT --from SOURCE --path-mlps freeze", "path_mlps", path_mlps="freeze"),
    # nothing is estimated
    call("patch TEXT --from SOURCE --check", "check", check=True),
    # parts together are one run
    call("patch TEXT --from SOURCE --together --mlp 1 --fast", "fast", together=True, mlps=1,
        fast=True),
    # parts together take every path
    call("patch TEXT --from SOURCE --together --mlp 1 --to logits", "to", together=True, mlps=1,
        to="logits"),
    # versus what?
    call("patch TEXT --from SOURCE --versus red", "versus", versus="red"),
    # two words are aligned
    call("patch TEXT --from SOURCE --align blue", "align", align="blue"),
    # no circuit is named
    call("circuit TEXT --from SOURCE", "heads"),
    # and none of its MLPs
    call("circuit TEXT --from SOURCE --mlp none", "heads", mlps="none"),
    # the source is missing
    call("circuit TEXT --head L1H2", "source", heads="L1H2"),
    # a mean needs no source
    call("circuit TEXT --from SOURCE --head L1H2 --with mean", "source", heads="L1H2",
        replacement="mean"),
    # nor does 0 need words that correspond
    call("circuit TEXT --head L1H2 --with zero --align blue=red", "align", heads="L1H2",
        replacement="zero", align="blue=red"),
    # a mean over other texts is a mean
    call("circuit TEXT --head L1H2 --with zero --mean-from words.txt", "mean_from", heads="L1H2",
        replacement="zero", mean_from="words.txt"),
    # a mean at each position is over other texts
    call("circuit TEXT --head L1H2 --with mean --mean-by position", "mean_by", heads="L1H2",
        replacement="mean", mean_by="position"),
    # no such replacement
    call("circuit TEXT --head L1H2 --with noise", "replacement", heads="L1H2", replacement="noise"),
    # a search draws nothing
    call("circuit TEXT --from SOURCE --find 2 --seed 1", "seed", find=2, seed=1),
    call("circuit TEXT --from SOURCE --find 2 --subsets 5", "subsets", find=2, subsets=5),
    # nothing is found
    call("circuit TEXT --from SOURCE --find 0", "find", find=0),
    # the model has fewer parts
    call("circuit TEXT --from SOURCE --answer blue --versus red --find 21", "find", answer="blue",
        versus="red", find=21),
    # no such head, no such layer
    call("circuit TEXT --from SOURCE --head L9H9", "", heads="L9H9"),
    call("circuit TEXT --from SOURCE --mlp 99", "", mlps=99),
    # one text alone
    call("compare TEXT", ""),
    # pairs are of two models
    call("compare TEXT SOURCE --pair same", "pair", pair="same"),
    # no such pairs
    call("compare TEXT SOURCE --pair worst", "pair", pair="worst"),
    # two models on two texts
    call("compare TEXT SOURCE --against builtin", "against", against="builtin"),
    # two models are compared row by row
    call("compare TEXT --against builtin --query blue", "query", against="builtin", query="blue"),
    # no head is listed
    call("compare TEXT SOURCE --top 0", "top", top=0),
    # words merge what chars do
    call("compare TEXT SOURCE --words --chars", "words", words=True, chars=True),
    # texts have no matrix of heads
    call("compare TEXT SOURCE -o x.npz", "", then=("save", "x.npz")),
    # heads have no vector
    call("compare TEXT SOURCE -o x.npy", "", then=("save", "x.npy")),
    # texts are compared by their patterns, files by the stream
    call("compare --file words.txt --file words.txt", "files", files=["words.txt", "words.txt"]),
    # nothing is written
    call("generate TEXT --max-new-tokens 0", "max_new_tokens", max_new_tokens=0),
    # colder than always the likeliest
    call("generate TEXT --temperature -1", "temperature", temperature=-1),
    # all tokens are equally likely long before
    call("generate TEXT --temperature 101", "temperature", temperature=101),
    # a probability is at most 1
    call("generate TEXT --top-p 2", "top_p", top_p=2),
    # seeds are natural numbers
    call("generate TEXT --seed -1", "seed", seed=-1),
    # seeds have 32 bits
    call("generate TEXT --max-new-tokens 1 --temperature 1 --seed 4294967296", "seed",
        max_new_tokens=1, temperature=1, seed=2**32),
    # prompts are not cut at words
    call("generate TEXT --by word", "by", by="word"),
    # heads are joined by their mean or their maximum
    call("generate TEXT --reduce median", "reduce", reduce="median"),
    # every text ends with nothing
    call("generate TEXT --stop ''", "stop", stop=""),
    # nothing is added
    call("generate TEXT --strength 2", "strength", strength=2),
    # there is no layer 99
    call("generate TEXT --add 99:v.npy", "", add={99: [1.0] * 128}),
    # a part has a name
    call("generate TEXT --segment blue", "segments", segments="blue"),
    # documents are segments already
    call("generate TEXT --doc words.txt --by line", "by", docs={"words": "the cat"}, by="line"),
    # a text goes through no template
    call("generate TEXT --raw", "raw", raw=True),
    # a section has a name and an expression
    call("generate TEXT --target blue --rows section --section blue", "sections", target="blue",
        sections="blue", then=("shares", "section")),
    # no share is carried back less than no time
    call("generate TEXT --hops -1", "hops", hops=-1),
    # each head has rows of its own, which are not joined
    call("generate TEXT --target blue --rows head --hops 1", "hops", target="blue", hops=1,
        then=("shares", "head")),
    # the translator's words look at the source alone
    call("generate TEXT --model translator --hops 1", "hops", loads={"name": "translator"},
        hops=1),
    # nothing is sampled
    call("generate TEXT --target blue --temperature 1", "temperature", target="blue",
        temperature=1),
    call("generate TEXT --target blue --top-p 0.5", "top_p", target="blue", top_p=0.5),
    call("generate TEXT --target blue --seed 3", "seed", target="blue", seed=3),
    # nothing is written that could end
    call("generate TEXT --target blue --stop .", "stop", target="blue", stop="."),
    # nothing is written
    call("generate TEXT --target blue --max-new-tokens 3", "max_new_tokens", target="blue",
        max_new_tokens=3),
    # each head has a row of its own
    call("generate TEXT --max-new-tokens 1 --rows head --reduce max", "reduce", max_new_tokens=1,
        reduce="max", then=("shares", "head")),
    # no such rows
    call("generate TEXT --max-new-tokens 1 --rows page", "rows", max_new_tokens=1, then=("shares",
        "page")),
    # no such check
    call("generate TEXT --max-new-tokens 1 --check-method all", "", max_new_tokens=1,
        then=("check", "all")),
    # a chain goes back by hops
    call("generate TEXT --target blue --check-method chain", "hops", target="blue", then=("check",
        "chain")),
    # nothing is sampled
    call("generate TEXT --seed 3", "seed", seed=3),
    call("generate TEXT --top-p 0.5", "top_p", top_p=0.5),
    # there is no corpus
    call("scan -o out", "", output="out"),
    # fewer tokens than a window has
    call("scan CORPUS -o out --length 7", "length", output="out", length=7),
    # no document
    call("scan CORPUS -o out --max-docs 0", "max_docs", output="out", max_docs=0),
    # nobody works
    call("scan CORPUS -o out --workers 0", "workers", output="out", workers=0),
    # a text file is not cut at words
    call("scan CORPUS -o out --split word", "split", output="out", split="word"),
    # more than all documents
    call("scan CORPUS -o out --max-bad 101", "max_bad", output="out", max_bad=101),
    # fewer than none
    call("scan CORPUS -o out --max-bad -1", "max_bad", output="out", max_bad=-1),
    # seeds are natural numbers
    call("scan CORPUS -o out --seed -1", "seed", output="out", seed=-1),
    # a text file has no fields
    call("scan CORPUS -o out --field body", "field", status=ExitStatus.INPUT, output="out",
        field="body"),
    # the model has no such head
    call("scan CORPUS -o out --head L9H9", "", output="out", heads="L9H9"),
    # the scan has no such head
    call("atlas SCAN --head L9H9", "", then=("head", "L9H9")),
    # a plot has two axes
    call("atlas SCAN --plot previous", "plot", then=("figure", "previous")),
    # no such score
    call("atlas SCAN --plot previous,nonsense", "plot", then=("figure", "previous,nonsense")),
    # no head is named
    call("atlas SCAN --plot previous,first --top 0 -o x.png", "top", then=("figure",
        {"plot": "previous,first", "top": 0})),
    # a picture of no dots
    call("atlas SCAN --dpi 0 -o x.png", "dpi", then=("figure", {"dpi": 0})),
    # no such colours
    call("atlas SCAN --cmap nonsense -o x.png", "cmap", then=("figure", {"cmap": "nonsense"})),
)  # fmt: skip
