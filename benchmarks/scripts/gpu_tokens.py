"""A scan's statistics on a graphics processor, beside the plain forward pass: seconds, and bytes.

python gpu_tokens.py ours|forward [WINDOWS] [LENGTH] [DTYPE] [tiny]

The model is a Llama of 8 billion random parameters, which is made on the device; `tiny` makes one
that any machine can run. Where there is no graphics processor, the processor runs it.
"""

import sys
import time

import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from attnviz.models.huggingface.load import wrap_huggingface
from attnviz.models.reducing import sum_windows
from attnviz.records.heads import by_layer, every_head

BATCH = 4096
mode, *more = sys.argv[1:]
tiny = "tiny" in more
windows, length, dtype = [*[each for each in more if each != "tiny"], "16", "2048", "bfloat16"][:3]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
sizes = (64, 128, 2, 4, 2) if tiny else (4096, 14336, 32, 32, 8)
names = ("hidden_size", "intermediate_size", "num_hidden_layers")
names += ("num_attention_heads", "num_key_value_heads")
config = LlamaConfig(
    vocab_size=1000, max_position_embeddings=8192, **dict(zip(names, sizes, strict=True))
)
torch.manual_seed(0)
torch.set_default_dtype(getattr(torch, dtype))
with torch.device(device):
    model = LlamaForCausalLM(config).eval()
torch.set_default_dtype(torch.float32)
draw = torch.Generator().manual_seed(0)
ids = torch.randint(1000, (int(windows), int(length)), generator=draw)
batches = torch.split(ids, max(1, BATCH // int(length)))
words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(1000)}, unk_token="w0"))
loaded = wrap_huggingface(model, PreTrainedTokenizerFast(tokenizer_object=words))
heads = by_layer(every_head(loaded.identity.heads_per_layer))


def work(batch: torch.Tensor) -> None:
    if mode == "ours":
        sum_windows(loaded, batch.tolist(), heads)
        return
    with torch.inference_mode():
        model.model(batch.to(device), use_cache=False)


def wait() -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


work(batches[0])
wait()
started = time.perf_counter()
for batch in batches:
    work(batch)
wait()
used = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
print(time.perf_counter() - started, used)
