"""Attention as it is planned for an older card, run on the card that is here, beside PyTorch's.

    timeout 540 python python/bench/of_older_cards.py [MACHINE]

The machine is an A100 unless it is named. Its kernels multiply by ``mma.sync`` and copy by
``cp.async``, on any card from 8.0 on. Each result is checked with the definition in f32, and the exit
status is 1 where one is wrong. PyTorch's flash attention is what it chooses for this card:
FlashAttention-2 for heads of 64 and 128.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from turns import in_turns, table

import tilewright as tw
from tilewright.ops import _attention

functional = torch.nn.functional
#: The largest difference to the definition, over the largest element.
MOST = 2e-2
wrong = []


def definition(q, k, v, causal):
    """The definition in f32, head by head of the batch, and nothing of it is kept."""
    rows = []
    for batch in range(q.shape[0]):
        own = [x[batch].float() for x in (q, k, v)]
        scores = own[0] @ own[1].transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            length = scores.shape[-1]
            scores.masked_fill_(torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1), -math.inf)
        rows.append(torch.softmax(scores, -1) @ own[2])
    return torch.stack(rows)


def check(what, found, wanted):
    apart = ((found.float() - wanted).abs().max() / wanted.abs().max()).item()
    if not apart < MOST:
        wrong.append(f"{what}: {apart:.2e} of the largest element")
    return apart


def numbers(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def forward_and_backward():
    """Heads of 64 and 128, whole and causal: small sizes are checked, large ones are timed."""
    lines = []
    for head in (64, 128):
        for causal in (False, True):
            for small in ((2, 3, 200), (1, 2, 1000)):
                batch, heads, length = small
                q, k, v = (numbers(batch, heads, length, head).requires_grad_() for _ in range(3))
                d_o = numbers(batch, heads, length, head)
                wanted = definition(q, k, v, causal)
                wanted.backward(d_o.float())
                d_wanted = [x.grad.float() for x in (q, k, v)]
                own = [x.detach().clone().requires_grad_() for x in (q, k, v)]
                for deterministic in (True, False):
                    found = tw.ops.attention(*own, causal=causal, deterministic=deterministic)
                    name = f"head {head}, causal {causal}, deterministic {deterministic}, {small}"
                    check(f"forward, {name}", found.detach(), wanted.detach())
                    for at, d_own, d_true in zip("qkv", torch.autograd.grad(found, own, d_o), d_wanted):
                        check(f"d_{at}, {name}", d_own, d_true)
            batch, heads, length = 4, 2048 // head, 4096
            q, k, v, d_o = (numbers(batch, heads, length, head) for _ in range(4))
            kept = [x.clone().requires_grad_() for x in (q, k, v)]
            o = tw.ops.attention(*kept, causal=causal)
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                peer = functional.scaled_dot_product_attention(*kept, is_causal=causal)
                apart = check(f"beside PyTorch, head {head}, causal {causal}", o.detach(), peer.detach().float())

                def peer_forward(q=q, k=k, v=v, causal=causal):
                    with torch.no_grad():
                        functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

                def peer_backward(peer=peer, kept=kept, d_o=d_o):
                    torch.autograd.grad(peer, kept, d_o, retain_graph=True)

                def own_forward(q=q, k=k, v=v, causal=causal):
                    tw.ops.attention(q, k, v, causal=causal)

                def own_backward(o=o, kept=kept, d_o=d_o):
                    torch.autograd.grad(o, kept, d_o, retain_graph=True)

                free = tw.ops.attention(*kept, causal=causal, deterministic=False)

                def free_backward(free=free, kept=kept, d_o=d_o):
                    torch.autograd.grad(free, kept, d_o, retain_graph=True)

                works = {"f": own_forward, "pf": peer_forward, "b": own_backward, "pb": peer_backward, "free b": free_backward}
                taken = in_turns(works)
            work = 4 * batch * heads * length * length * head / (2 if causal else 1)
            rates = {way: work * (2.5 if "b" in way else 1) / ms / 1e9 for way, ms in taken.items()}
            for way, title in (("f", "forward"), ("b", "backward"), ("free b", "backward, in any order")):
                own, other = rates[way], rates["p" + way[-1]]
                lines.append([title, head, "causal" if causal else "whole", f"{own:.0f}", f"{other:.0f}", f"{own / other:.2f}", f"{apart:.1e}"])
    table(["pass", "head", "mask", "TFLOPS", "PyTorch", "ratio", "apart"], lines)


def decoding():
    """One query of each sequence over a cache of many rows."""
    lines = []
    for head in (64, 128):
        for batch, length in ((1, 32768), (16, 8192), (64, 2048)):
            heads, kv = 32, 8
            q, k, v = numbers(batch, heads, 1, head), numbers(batch, kv, length, head), numbers(batch, kv, length, head)
            lengths = torch.full((batch,), length, dtype=torch.int32, device="cuda")
            found = tw.ops.attention_decode(q, k, v, lengths)
            group = heads // kv
            own = [x.float() for x in (q.view(batch, kv, group, head), k, v)]
            scores = own[0] @ own[1].transpose(-1, -2) / math.sqrt(head)
            wanted = (torch.softmax(scores, -1) @ own[2]).view(batch, heads, 1, head)
            apart = check(f"decoding, head {head}, {batch} x {length}", found, wanted)
            taken = in_turns({
                "own": lambda: tw.ops.attention_decode(q, k, v, lengths),
                "peer": lambda: functional.scaled_dot_product_attention(q, k, v, enable_gqa=True),
            })
            rate = {way: 4 * batch * kv * length * head / ms / 1e9 for way, ms in taken.items()}
            lines.append([head, f"{batch} x {length}", f"{rate['own']:.2f}", f"{rate['peer']:.2f}", f"{apart:.1e}"])
    table(["head", "cache", "TB/s", "PyTorch", "apart"], lines)


if __name__ == "__main__":
    machine = sys.argv[1] if len(sys.argv) > 1 else "A100"
    torch.manual_seed(0)
    # The operators plan for this machine instead of the card that is here.
    _attention.machine_of = lambda array: machine
    print(f"{torch.cuda.get_device_name()}, planned for {machine}; PyTorch {torch.__version__}")
    forward_and_backward()
    decoding()
    for line in wrong:
        print("WRONG", line)
    sys.exit(1 if wrong else 0)
