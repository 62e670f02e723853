"""Direct effects of heads on a logit: attnviz beside TransformerLens (extra bench).

    python -m benchmarks.direct_effects

The built-in checkpoint through both. Prints the largest difference; ends with 1 above 1e-5.
"""

import sys
from importlib.resources import files

import torch
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoTokenizer, GPT2LMHeadModel

import attnviz
from attnviz.records.parts import Part

TEXT = "a fluffy blue creature roamed . the creature was"
MOST = 1e-5


def main() -> int:
    """Compare every head's effect on the likeliest next token's logit."""
    folder = str(files("attnviz").joinpath("builtin", "gpt"))
    model = attnviz.load_model()._loaded
    ids = [token.id for token in model.tokenizer.encode(TEXT, bos=True, special=False)]
    theirs, best = _theirs(folder, ids)
    run = model.freeze(ids)
    shares = run.of_logits(len(ids) - 1, run.output.weight[[best]]).shares.by("head")
    ours = dict(zip(shares.parts, shares.values[0].tolist(), strict=True))
    differences = [
        abs(effect - ours[Part("head", *divmod(i, model.identity.heads_per_layer[0]))])
        for i, effect in enumerate(theirs)
    ]
    print(f"{len(differences)} heads, largest effect {max(map(abs, theirs)):.2f}")
    print(f"largest difference {max(differences):.1e}, at most {MOST:.0e}")
    return int(max(differences) > MOST)


@torch.no_grad()
def _theirs(folder: str, ids: list[int]) -> tuple[list[float], int]:
    """The effect of each head, layer by layer, and the likeliest token."""
    plain = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    bridge = TransformerBridge.boot_transformers(folder, hf_model=plain, tokenizer=tokenizer)
    bridge.set_use_attn_result(True)
    logits, cache = bridge.run_with_cache(torch.tensor([ids]))
    best = int(logits[0, -1].argmax())
    heads = cache.stack_head_results(layer=-1, pos_slice=-1)
    scaled = cache.apply_ln_to_stack(heads, layer=-1, pos_slice=-1)[:, 0]  # (heads, d)
    direction = plain.transformer.ln_f.weight * plain.lm_head.weight[best]
    return (scaled @ direction).tolist(), best


if __name__ == "__main__":
    sys.exit(main())
