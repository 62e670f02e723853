"""Whether a head's trace agrees with a captured pattern, and its numbers with each other."""

import numpy as np

from attnviz.records.capture import FloatArray
from attnviz.records.trace import HeadTrace


def check_trace(found: HeadTrace, captured: FloatArray) -> None:
    """Every step again in float64, from the arrays before it, up to the stream that leaves."""
    query = found.query
    np.testing.assert_allclose(found.pattern, captured, atol=1e-5)
    t = {name: array.astype(np.float64) for name, array in found.arrays().items()}
    read = t.get("source", t["normed"])
    for letter, of in (("q", t["normed"]), ("k", read), ("v", read)):
        made = of @ t[f"w_{letter}"] + t.get(f"b_{letter}", 0)
        plain = t.get(f"{letter}_plain", t[letter])
        np.testing.assert_allclose(plain, made, atol=1e-4, rtol=1e-5)
    products = t["q"] @ t["k"].T
    np.testing.assert_allclose(t["products"], products, atol=1e-4, rtol=1e-5)
    scaled = products * found.scale + t.get("bias", 0)
    allowed = np.isfinite(found.scores)
    np.testing.assert_allclose(t["scores"][allowed], scaled[allowed], atol=1e-4, rtol=1e-5)
    scores = np.exp(t["scores"] - t["scores"].max(axis=1, keepdims=True))
    np.testing.assert_allclose(scores / scores.sum(axis=1, keepdims=True), captured, atol=1e-5)
    np.testing.assert_allclose(t["z"], captured @ t["v"], atol=1e-4, rtol=1e-5)
    np.testing.assert_allclose(t["contributions"].sum(axis=0), t["added"], atol=1e-4, rtol=1e-5)
    np.testing.assert_allclose(t["weighted"], t["pattern"][query][:, None] * t["v"], atol=1e-6)
    np.testing.assert_allclose(
        t["added"], found.kinds.factor * t["z"][query] @ t["w_o"], atol=1e-4, rtol=1e-5
    )
    np.testing.assert_array_equal(found.unmasked[allowed], found.scores[allowed])
    total = t["x"][query] + t["attention_added"] + t.get("cross_added", 0) + t["mlp_out"]
    np.testing.assert_allclose(total, t["x_after"], atol=1e-5, rtol=1e-5)
