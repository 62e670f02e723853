"""The encoder-decoder from scratch, against PyTorch's own layers and what must hold."""

import math

import pytest
import torch
from torch import Tensor, nn

from attnviz.models.attention import MultiHeadAttention, attached, causal_mask
from attnviz.models.folder.config import Seq2SeqConfig
from attnviz.models.scratch.seq2seq import DecoderBlock, EncoderBlock, Seq2Seq

CONFIG = Seq2SeqConfig(
    vocab_size=31, n_positions=16, n_embd=24, n_encoder=2, n_decoder=3, n_head=3, n_inner=40
)


def seeded(model: nn.Module, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model.eval().requires_grad_(False)


@pytest.fixture
def model() -> Seq2Seq:
    made = seeded(Seq2Seq(CONFIG))
    assert isinstance(made, Seq2Seq)
    return made


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Our W (d_in, d_out), apart, into PyTorch's (d_out, d_in), joined."""
    parts = (ours.w_q, ours.w_k, ours.w_v)
    assert theirs.in_proj_weight is not None
    theirs.in_proj_weight.data = torch.cat([p.weight.t() for p in parts])
    theirs.in_proj_bias.data = torch.cat([p.bias for p in parts])
    theirs.out_proj.weight.data = ours.w_o.weight.t().contiguous()
    theirs.out_proj.bias.data = ours.w_o.bias


def copy_rest(ours: EncoderBlock | DecoderBlock, theirs: nn.Module) -> None:
    theirs.linear1.weight.data = ours.mlp.c_fc.weight.t().contiguous()
    theirs.linear1.bias.data = ours.mlp.c_fc.bias
    theirs.linear2.weight.data = ours.mlp.c_proj.weight.t().contiguous()
    theirs.linear2.bias.data = ours.mlp.c_proj.bias
    theirs.norm1.load_state_dict(ours.ln_1.state_dict())


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def test_an_encoder_block_is_pytorchs() -> None:
    ours = EncoderBlock(CONFIG)
    seeded(ours)
    theirs = nn.TransformerEncoderLayer(24, 3, 40, 0.0, gelu, batch_first=True, norm_first=True)
    copy_attention(ours.attn, theirs.self_attn)
    copy_rest(ours, theirs)
    theirs.norm2.load_state_dict(ours.ln_2.state_dict())
    x = torch.randn(2, 7, 24)
    padded = torch.tensor([[False] * 7, [False] * 5 + [True] * 2])
    found = ours(x, ~padded[:, None, None, :])
    expected = theirs.eval()(x, src_key_padding_mask=padded)
    torch.testing.assert_close(found[~padded], expected[~padded], atol=1e-5, rtol=1e-5)


def test_a_decoder_block_is_pytorchs() -> None:
    ours = DecoderBlock(CONFIG)
    seeded(ours)
    theirs = nn.TransformerDecoderLayer(24, 3, 40, 0.0, gelu, batch_first=True, norm_first=True)
    copy_attention(ours.attn, theirs.self_attn)
    copy_attention(ours.cross, theirs.multihead_attn)
    copy_rest(ours, theirs)
    theirs.norm2.load_state_dict(ours.ln_cross.state_dict())
    theirs.norm3.load_state_dict(ours.ln_2.state_dict())
    x, source = torch.randn(2, 5, 24), torch.randn(2, 7, 24)
    found = ours(x, causal_mask(5), source, None)
    expected = theirs.eval()(x, source, tgt_mask=~causal_mask(5))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_the_decoder_sees_no_later_target_token_and_all_of_the_source(model: Seq2Seq) -> None:
    source, target = torch.randint(31, (1, 6)), torch.randint(31, (1, 5))
    before = model(source, target)
    later = target.clone()
    later[0, 3] = (later[0, 3] + 1) % 31
    torch.testing.assert_close(model(source, later)[0, :3], before[0, :3])
    other = source.clone()
    other[0, 5] = (other[0, 5] + 1) % 31
    assert (model(other, target)[0, 0] - before[0, 0]).abs().max() > 1e-3


def test_padding_of_the_source_changes_nothing(model: Seq2Seq) -> None:
    source, target = torch.randint(31, (1, 6)), torch.randint(31, (1, 5))
    padded = torch.cat([source, torch.zeros(1, 3, dtype=torch.long)], dim=1)
    mask = (torch.arange(9) < 6)[None, None, None, :]
    torch.testing.assert_close(model(padded, target, mask), model(source, target))


def test_every_attention_has_its_hook_points_with_their_shapes(model: Seq2Seq) -> None:
    seen: dict[str, tuple[int, ...]] = {}

    def keep(name: str) -> object:
        def record(value: Tensor) -> None:
            seen[name] = tuple(value.shape)

        return record

    names = ("encoder.1.attn.pattern", "decoder.2.attn.pattern", "decoder.2.cross.pattern")
    with attached(model, {name: keep(name) for name in names}):  # type: ignore[misc]
        model(torch.randint(31, (1, 6)), torch.randint(31, (1, 5)))
    assert [seen[name] for name in names] == [(1, 3, 6, 6), (1, 3, 5, 5), (1, 3, 5, 6)]


def test_a_translation_takes_the_likeliest_token_at_each_step(model: Seq2Seq) -> None:
    source = torch.randint(31, (6,))
    found = model.translate(source, begin=1, end=2)
    read = [1]
    for token in found:
        assert int(model(source[None], torch.tensor([read]))[0, -1].argmax()) == token
        read.append(token)
    assert 2 not in found
    assert len(found) < CONFIG.n_positions
