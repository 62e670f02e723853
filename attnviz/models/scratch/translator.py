"""The from-scratch encoder-decoder as an engine, and its folder."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from attnviz.errors import ModelError
from attnviz.models.attention import attached
from attnviz.models.engine import Handover, RecordedHead, write_tokens
from attnviz.models.folder.config import SEQ2SEQ, folder_sizes, read_card, seq2seq_config
from attnviz.models.folder.files import read_words
from attnviz.models.loaded import LoadedModel
from attnviz.models.scratch.runs import seq2seq_record
from attnviz.models.scratch.seq2seq import Seq2Seq
from attnviz.models.tokenizer import END, load_tokenizer
from attnviz.models.weights import check_parameters, fill, fingerprint, read_weights, weights_in
from attnviz.records.capture import Consumer, Kind, ModelIdentity, ShownKind, Wanted
from attnviz.records.heads import Head
from attnviz.records.tokens import GoOn, Ids, Sampling, Token

POINTS: Mapping[Kind, str] = {
    "encoder": "encoder.{}.attn.pattern",
    "decoder": "decoder.{}.attn.pattern",
    "cross": "decoder.{}.cross.pattern",
}


@dataclass(frozen=True, kw_only=True)
class NativeTranslator(LoadedModel):
    """A `seq2seq.Seq2Seq` with its tokenizer and card; hands over one of its three attentions.

    `end` is the token that begins both sequences and ends the target. `words`: the English words
    that it was trained on; empty where its folder does not say.
    """

    model: Seq2Seq
    end: int
    words: frozenset[str] = frozenset()

    def working_bytes(self, n_queries: int, n_keys: int) -> int:
        sizes, n = self.model.config, max(n_queries, n_keys)
        return 4 * (n * (12 * sizes.n_embd + 2 * sizes.n_inner) + 3 * sizes.n_head * n * n)

    def run(self, ids: Ids, wanted: Wanted, consume: Consumer, target: Ids = ()) -> None:
        handover = Handover(wanted, consume)
        hooks = {POINTS[self.kind].format(layer): handover.hook(layer) for layer in wanted.heads}
        with torch.inference_mode(), attached(self.model, hooks):
            encoded = self.model.encode(torch.tensor([list(ids)]))
            if self.kind != "encoder":
                self.model.decode(self._read(target)[None], encoded)

    def record(
        self, ids: Ids, heads: Sequence[Head], query: int, target: Ids = ()
    ) -> Sequence[RecordedHead]:
        source, read = torch.tensor(list(ids)), self._read(target)
        return seq2seq_record(self.model, self.kind, source, read, heads, query)

    def output_vectors(self) -> Tensor:
        return self.model.wte.weight

    def _read(self, target: Ids) -> Tensor:
        """The input of the decoder (n_t): at each position the token before."""
        return torch.tensor([self.end, *target[:-1]])

    def write(self, ids: Ids) -> tuple[str, tuple[Token, ...]]:
        written = self.model.translate(torch.tensor(list(ids)), self.end, self.end)
        while True:
            # spaces as a person writes French: l'arbre, où est-il ?
            text = re.sub(r"\s+([.,]|-\w)", r"\1", self.tokenizer.decoded(written).strip())
            text = re.sub(r"(?<=['’])\s+", "", text)
            read = self.read_target(text)
            excess = len(read) - self.model.config.n_positions
            if excess <= 0:
                return text, read
            # a text without meaning can be read as more tokens than were written
            written = written[:-excess]

    def generate(
        self, ids: Ids, sampling: Sampling, wanted: Wanted, consume: Consumer, go_on: GoOn
    ) -> None:
        points = {POINTS[self.kind].format(layer): layer for layer in wanted.heads}
        sampling = replace(sampling, most=min(sampling.most, self.model.config.n_positions - 1))
        encoded: Tensor

        def next_logits(new: Ids) -> Tensor:  # (V)
            nonlocal encoded
            if not new:
                encoded = self.model.encode(torch.tensor([list(ids)]))
            read = torch.tensor([[self.end, *new]])
            return self.model.logits(self.model.decode(read, encoded)[0, -1])

        handover = Handover(wanted, consume)
        write_tokens(self.model, points, next_logits, sampling, {self.end}, handover.take, go_on)

    @torch.inference_mode()
    def answered(self, prompts: Sequence[Ids], answer: Ids) -> torch.Tensor:
        encoded = self.model.encode(torch.tensor([list(ids) for ids in prompts]))
        read = self._read(answer).expand(len(prompts), -1)
        return self.model.logits(self.model.decode(read, encoded))

    def unknown_words(self, text: str, target: str) -> tuple[str, ...]:
        """A capital letter makes no word unknown; else it is a name's, and known where copied."""
        if not self.words:
            return ()
        copied = set(self._cut(target))
        strange = (word for word in self._cut(text) if not self._knows(word))
        named = (w for w in strange if not (w[0].isupper() and (w in copied or not target)))
        return tuple(dict.fromkeys(word for word in named if any(map(str.isalnum, word))))

    def _knows(self, word: str) -> bool:
        lower = word[0].lower() + word[1:]
        return word in self.words or lower in self.words

    def _cut(self, text: str) -> list[str]:
        """The words of a text, as the tokenizer cuts it before it looks for pieces."""
        cuts = self.tokenizer.backend.pre_tokenizer.pre_tokenize_str(text)
        return [text[start:end] for _, (start, end) in cuts]


def load_translator(folder: Path, name: str, kind: Kind | ShownKind | None) -> NativeTranslator:
    """Load a folder that `making.translator` wrote."""
    sizes = folder_sizes(folder, kind)
    config = seq2seq_config(folder)
    check_parameters(config.parameters, folder)
    model = Seq2Seq(config)
    fill(model, read_weights(folder), folder)
    card = read_card(folder, name, (config.n_head,) * config.n_decoder)
    tokenizer = load_tokenizer(folder, sizes, bos=True)
    end = tokenizer.backend.token_to_id(END)
    if end is None:
        raise ModelError(f"the tokenizer in {str(folder)!r} lacks {END}", "save it again")
    tokenizer = replace(tokenizer, bos_id=end)
    identity = ModelIdentity(
        name=name,
        architecture=SEQ2SEQ,
        heads_per_layer=sizes.heads_per_layer,
        parameters=sum(p.numel() for p in model.parameters()),
        engine="native",
        fingerprint=fingerprint(*weights_in(model)),
    )
    if sizes.kind != "cross":
        card = replace(card, heads=())  # its heads are those of the cross-attention
    return NativeTranslator(
        model=model,
        identity=identity,
        card=card,
        tokenizer=tokenizer,
        causal=sizes.kind == "decoder",
        kind=sizes.kind,
        end=end,
        words=read_words(folder),
    )
