#!/usr/bin/env python3
"""Random attributes of Triton and Gluon, and what the triton package says that they mean.

Usage: triton_layouts.py COUNT SEED > facts.tsv

The kind `old` has attributes as Triton 2 and 3.0 printed them, `#triton_gpu.blocked<{.., CTAsPerCGA =
[1, 1], ..}>`: each is translated to today's spelling, and the package is asked about that.

Each line has four fields with tabs between: the kind, the text of the attribute (of MLIR, or
Gluon's Python), the shape, and the bases: of registers, lanes, warps and blocks for tensors in
registers, of offsets and blocks for shared memory, of rows and columns for tensor memory. COUNT
lines are written of each kind. No GPU is needed. The test `recorded_facts_of_triton` in
crates/read reads such a file.
"""

import random
import sys
import tempfile

from triton._C.libtriton import gluon_ir, ir

CONTEXT = ir.context()
ir.load_dialects(CONTEXT)
BUILDER = gluon_ir.GluonOpBuilder(CONTEXT)
ATTRIBUTES = '"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = %d : i32'
MEMORY = {"shared": "#ttg.shared_memory", "tmem": "#ttng.tensor_memory"}


def module(kind, text, shape, element, lanes):
    """A module with one function, whose argument has the attribute."""
    extents = "x".join(map(str, shape))
    if kind in MEMORY:
        argument = f"!ttg.memdesc<{extents}x{element}, {text}, {MEMORY[kind]}, mutable>"
    else:
        argument = f"tensor<{extents}x{element}, {text}>"
    head = "module attributes {" + ATTRIBUTES % lanes + "}"
    return f"{head} {{ tt.func @f(%a: {argument}) {{ tt.return }} }}"


def ask(kind, text, shape, element="f16", lanes=32):
    """The layout that the package has for a text, and its bases as text; None if it refuses."""
    with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
        file.write(module(kind, text, shape, element, lanes))
        file.flush()
        parsed = ir.parse_mlir_module(file.name, CONTEXT)
    argument = parsed.get_function("f").args(0)
    if kind in MEMORY:
        layout = BUILDER.get_gluon_layout_from_memdesc(argument)
    else:
        layout = BUILDER.get_gluon_layout_from_tensor(argument)
    if type(layout).__name__ == "PaddedSharedLayout":
        # The package has the order of the elements; where the padding goes its documentation says.
        return layout, bases(layout, shape)
    return layout, bases(BUILDER.to_linear_layout(layout._to_ir(BUILDER), list(shape)), shape)


def bases(linear, shape):
    """The bases in the notation of tilewright's linear layouts."""
    names = {
        "reg_bases": "register",
        "lane_bases": "lane",
        "warp_bases": "warp",
        "offset_bases": "offset",
        "rows": "row",
        "cols": "column",
        "block_bases": "block",
    }
    parts = []
    for field, name in names.items():
        if hasattr(linear, field):
            images = ",".join("(" + ",".join(map(str, image)) + ")" for image in getattr(linear, field))
            parts.append(f"{name}=[{images}]")
    outputs = " ".join(f"dim{mode}:{extent}" for mode, extent in enumerate(shape))
    return " ".join(parts) + " -> " + outputs


def power(low, high):
    return 1 << random.randint(low, high)


def split(total, rank):
    """Powers of two whose product is given, by chance."""
    parts = [1] * rank
    while total > 1:
        parts[random.randrange(rank)] *= 2
        total //= 2
    return parts


def order(rank):
    found = list(range(rank))
    random.shuffle(found)
    return found


def cga(rank):
    """The bases of blocks: often none."""
    if random.random() < 0.7:
        return ""
    steps, images = [1] * rank, []
    for _ in range(random.randint(1, 2)):
        image = [0] * rank
        if random.random() < 0.8:
            mode = random.randrange(rank)
            image[mode] = steps[mode]
            steps[mode] *= 2
        images.append(image)
    return f", CGALayout = {images}"


def blocked(rank, lanes=32, clusters=True):
    return (
        f"#ttg.blocked<{{sizePerThread = {[power(0, 3) for _ in range(rank)]}, "
        f"threadsPerWarp = {split(lanes, rank)}, warpsPerCTA = {split(4, rank)}, order = {order(rank)}"
        f"{cga(rank) if clusters else ''}}}>"
    )


def mma(version, rank=2):
    warps = split(4, rank)
    if version == 2:
        instruction = [1] * (rank - 2) + [16, 8]
    else:
        warps = random.choice([[4, 1], [4, 1], [4, 2], [8, 1]])
        instruction = [16, random.choice([8, 16, 32, 64, 128, 256]), random.choice([8, 16, 32])]
    return (
        f"#ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}"
        f"{cga(rank)}, instrShape = {instruction}}}>"
    )


def mfma():
    instruction = random.choice(
        [[32, 32, 8], [16, 16, 16], [32, 32, 16], [16, 16, 32], [16, 16, 4], [4, 64, 4], [64, 4, 4]]
    )
    extra = random.choice(["", "", ", tilesPerWarp = [2, 2]", ", tilesPerWarp = [1, 2]"])
    wide = ""
    if instruction == [16, 16, 4] and random.random() < 0.5:
        wide = ", elementBitWidth = 64"
    turned = "true" if instruction[0] == 64 else random.choice(["true", "false"])
    return (
        f"#ttg.amd_mfma<{{version = {random.randint(1, 4)}, warpsPerCTA = {split(4, 2)}, "
        f"instrShape = {instruction}, isTransposed = {turned}{extra}{wide}}}>"
    )


def wmma(version=None):
    version = version or random.randint(1, 3)
    warps, registers = [], []
    steps = [1, 1]
    for images in [registers, warps]:
        for _ in range(random.randint(0, 1) if images is registers else 2):
            mode = random.randrange(2)
            image = [0, 0]
            image[mode] = steps[mode]
            steps[mode] *= 2
            images.append(image)
    fields = f"warp = {warps}" if not registers else f"register = {registers}, warp = {warps}"
    instruction = {1: [[16, 16, 16]], 2: [[16, 16, 16], [16, 16, 32]], 3: [[16, 16, 32], [16, 16, 4], [16, 16, 64], [32, 16, 128]]}
    chosen = random.choice(instruction[version])
    return (
        f"#ttg.amd_wmma<{{version = {version}, isTranspose = {random.choice(['true', 'false'])}, "
        f"ctaLayout = {{{fields}}}, instrShape = {chosen}}}>"
    )


def shape(rank, low=3, high=8):
    return [power(low, high) for _ in range(rank)]


def linear(rank):
    total = shape(rank, 2, 6)
    images = []
    for mode, extent in enumerate(total):
        for bit in range(extent.bit_length() - 1):
            image = [0] * rank
            image[mode] = 1 << bit
            images.append(image)
    if random.random() < 0.5:
        # A unit triangular map of the bits: still one to one.
        for at in range(len(images)):
            other = random.randrange(len(images))
            if other < at:
                images[at] = [a ^ b for a, b in zip(images[at], images[other])]
    random.shuffle(images)
    while len(images) < 7:
        images.insert(random.randrange(len(images) + 1), [0] * rank)
    lane, warp, register = images[:5], images[5:7], images[7:]
    text = f"#ttg.linear<{{register = {register}, lane = {lane}, warp = {warp}, block = []}}>"
    return text, total


def clusters(rank):
    """How blocks divide a tensor: in the older spelling, and as the bases of today's."""
    if random.random() < 0.5:
        split, copies = [1] * rank, [1] * rank
    else:
        split, copies = [power(0, 1) for _ in range(rank)], [power(0, 1) for _ in range(rank)]
    along = order(rank)
    images = []
    for mode in along:
        for bit in range(split[mode].bit_length() - 1):
            images.append([1 << bit if at == mode else 0 for at in range(rank)])
        images += [[0] * rank] * (copies[mode].bit_length() - 1)
    blocks = [a * b for a, b in zip(split, copies)]
    old = f"CTAsPerCGA = {blocks}, CTASplitNum = {split}, CTAOrder = {along}"
    return old, f", CGALayout = {images}" if images else ""


def older():
    """An attribute in an older spelling and in today's, with shape, element and lanes."""
    kind = random.choice(["blocked", "mma", "mfma", "shared", "slice", "dot"])
    rank = random.choice([1, 2, 2, 3]) if kind in ("blocked", "shared") else 2
    before, after = clusters(rank)
    if kind == "blocked" or kind == "slice":
        body = (
            f"sizePerThread = {[power(0, 3) for _ in range(rank)]}, threadsPerWarp = {split(32, rank)}, "
            f"warpsPerCTA = {split(4, rank)}, order = {order(rank)}"
        )
        new, old = f"#ttg.blocked<{{{body}{after}}}>", f"#triton_gpu.blocked<{{{body}, {before}}}>"
        if kind == "slice":
            mode = random.randrange(rank)
            new = f"#ttg.slice<{{dim = {mode}, parent = {new}}}>"
            return f"#triton_gpu.slice<{{dim = {mode}, parent = {old}}}>", new, "tensor", shape(1, 3, 8), "f16", 32
        return old, new, "tensor", shape(rank, 2, 8), "f16", 32
    if kind == "shared":
        body = f"vec = {power(0, 3)}, perPhase = {power(0, 2)}, maxPhase = {power(0, 3)}, order = {order(rank)}"
        old = f"#triton_gpu.shared<{{{body}, {before}, hasLeadingOffset = false}}>"
        return old, f"#ttg.swizzled_shared<{{{body}{after}}}>", "shared", shape(rank, 3, 7), "f16", 32
    if kind == "mfma":
        instruction = random.choice([[32, 32], [16, 16]])
        depth = {32: 8, 16: 16}[instruction[0]]
        turned = random.choice(["true", "false"])
        body = f"warpsPerCTA = {split(4, 2)}"
        rest = f"isTransposed = {turned}"
        old = f"#triton_gpu.amd_mfma<{{versionMajor = 2, versionMinor = 0, {body}, instrShape = {instruction}, {rest}}}>"
        new = f"#ttg.amd_mfma<{{version = 2, {body}, instrShape = {instruction + [depth]}, {rest}}}>"
        return old, new, "tensor", shape(2, 5, 8), "f32", 64
    version = 2 if kind == "dot" else random.choice([2, 3])
    warps = split(4, 2) if version == 2 else [4, 1]
    instruction = [16, 8] if version == 2 else [16, random.choice([16, 64, 128]), 16]
    name = random.choice(["nvidia_mma", "mma"])
    body = f"versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}"
    old = f"#triton_gpu.{name}<{{{body}, {before}, instrShape = {instruction}}}>"
    new = f"#ttg.nvidia_mma<{{{body}{after}, instrShape = {instruction}}}>"
    if kind == "dot":
        which, width = random.randint(0, 1), random.choice([1, 2, 4])
        tail = f", kWidth = {width}}}>"
        return (
            f"#triton_gpu.dot_op<{{opIdx = {which}, parent = {old}{tail}",
            f"#ttg.dot_op<{{opIdx = {which}, parent = {new}{tail}",
            "tensor", shape(2, 4, 7), "f16", 32,
        )
    return old, new, "tensor", shape(2, 4, 8), "f32", 32


def one(kind):
    """A random attribute of a kind: place, text, shape, element, lanes."""
    if kind == "blocked":
        rank = random.randint(1, 3)
        return "tensor", blocked(rank), shape(rank, 0, 8), "f16", 32
    if kind == "mma2":
        rank = random.choice([2, 2, 2, 3])
        return "tensor", mma(2, rank), shape(rank, 2, 8), "f32", 32
    if kind == "mma3":
        return "tensor", mma(3), shape(2, 4, 8), "f32", 32
    if kind == "mfma":
        return "tensor", mfma(), shape(2, 4, 8), "f32", 64
    if kind == "wmma":
        return "tensor", wmma(), shape(2, 4, 8), "f32", 32
    if kind == "dot":
        of = random.choice(["mma2", "mma2", "mma3", "blocked", "mfma", "wmma"])
        which = random.randint(0, 1)
        lanes = 64 if of == "mfma" else 32
        if of == "mma2":
            rank = random.choice([2, 2, 3])
            parent, width, extents = mma(2, rank), random.choice([1, 2, 4]), shape(rank, 4, 7)
        elif of == "mma3":
            parent, width, which, extents = mma(3), random.choice([1, 2, 4]), 0, shape(2, 4, 7)
        elif of == "blocked":
            parent, width, extents = blocked(2, clusters=False), 0, shape(2, 3, 6)
        elif of == "mfma":
            parent, width, extents = mfma(), random.choice([4, 8, 16]), shape(2, 5, 7)
        else:
            parent, width, extents = wmma(), random.choice([4, 8, 16]), shape(2, 5, 7)
        suffix = f", kWidth = {width}" if width else ""
        return "tensor", f"#ttg.dot_op<{{opIdx = {which}, parent = {parent}{suffix}}}>", extents, "f16", lanes
    if kind == "slice":
        parent, rank = random.choice([(lambda: blocked(2), 2), (lambda: blocked(3), 3), (lambda: mma(2), 2), (lambda: mma(3), 2)])
        return "tensor", f"#ttg.slice<{{dim = {random.randrange(rank)}, parent = {parent()}}}>", shape(rank - 1, 3, 8), "f16", 32
    if kind == "linear":
        text, extents = linear(random.randint(1, 3))
        return "tensor", text, extents, "f16", 32
    if kind == "swizzled":
        rank = random.choice([1, 2, 2, 2, 3])
        text = f"#ttg.swizzled_shared<{{vec = {power(0, 3)}, perPhase = {power(0, 2)}, maxPhase = {power(0, 3)}, order = {order(rank)}{cga(rank)}}}>"
        return "shared", text, shape(rank, 2, 7), "f16", 32
    if kind == "nvmma":
        bits, width = random.choice([8, 16, 32]), random.choice([0, 32, 64, 128])
        rank = random.choice([2, 2, 2, 3])
        turned = rank == 2 and random.random() < 0.5
        cluster = cga(rank)
        # A block has at least eight rows of the swizzle: the package ends the process where it has not.
        blocks = 1 << cluster.count("[") if cluster else 1
        extents = [8 * blocks * power(0, 2 if rank == 3 else 5) for _ in range(rank)]
        extents[0 if turned else -1] = max(width * 8 // bits, 8) * blocks * power(0, 3)
        text = (
            f"#ttg.nvmma_shared<{{swizzlingByteWidth = {width}, transposed = {str(turned).lower()}, "
            f"elementBitWidth = {bits}{', rank = 3' if rank == 3 else ''}{cluster}}}>"
        )
        return "shared", text, extents, f"i{bits}", 32
    if kind == "padded":
        rank = random.choice([1, 2, 2, 3])
        extents = shape(rank, 3, 7)
        pads = sorted({power(3, 9) for _ in range(random.randint(1, 2))})
        pairs = ", ".join(f"{interval}:+{power(1, 4)}" for interval in pads)
        return "shared", f"#ttg.padded_shared<[{pairs}] {{order = {order(rank)}, shape = {extents}}}>", extents, "f16", 32
    if kind == "sharedlinear":
        text, extents = linear(random.randint(1, 3))
        images = [i for part in ("register", "lane", "warp") for i in eval(text.split(part + " = ")[1].split("]]")[0] + "]]" if not text.split(part + " = ")[1].startswith("[]") else "[]") if any(i)]
        return "shared", f"#ttg.shared_linear<{{offset = {images}}}, alignment = 16>", extents, "f16", 32
    if kind == "fp4":
        extents = [power(4, 8), power(6, 8)]
        turned = random.random() < 0.5
        if turned:
            extents.reverse()
        text = (
            f"#ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = {str(turned).lower()}, "
            f"elementBitWidth = 8, fp4Padded = true}}>"
        )
        return "shared", text, extents, "i8", 32
    if kind == "scales":
        return "tmem", "#ttng.tensor_memory_scales_encoding<>", [power(5, 9), power(0, 5)], "i8", 32
    if kind == "tmem" and random.random() < 0.2:
        m, n = random.choice([64, 128]), power(5, 8)
        extents = [m * power(0, 1), n * power(0, 1)]
        text = f"#ttng.tensor_memory_encoding<blockM = {m}, blockN = {n}, colStride = 1, fp4Padded = true>"
        return "tmem", text, extents, "i8", 32
    if kind == "tmem":
        m, n = random.choice([64, 128]), power(3, 8)
        extents = [m * power(0, 1), n * power(0, 1)]
        text = f"#ttng.tensor_memory_encoding<blockM = {m}, blockN = {n}, colStride = {random.choice([1, 1, 2])}>"
        return "tmem", text, extents, random.choice(["f32", "f16"]), 32
    raise ValueError(kind)


KINDS = [
    "blocked", "mma2", "mma3", "mfma", "wmma", "dot", "slice", "linear",
    "swizzled", "nvmma", "fp4", "padded", "sharedlinear", "tmem", "scales", "old",
]


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    kinds = sys.argv[3:] or KINDS
    random.seed(seed)
    for kind in kinds:
        done = tries = 0
        while done < count and tries < 20 * count:
            tries += 1
            if kind == "old":
                written, text, place, extents, element, lanes = older()
            else:
                place, text, extents, element, lanes = one(kind)
                written = text
            try:
                layout, found = ask(place, text, extents, element, lanes)
            except Exception as error:  # The package refuses: not a fact about layouts.
                print(kind, text, extents, str(error)[:200], file=sys.stderr)
                continue
            size = ",".join(map(str, extents))
            print(kind, written, size, found, sep="\t")
            done += 1
            if kind in ("blocked", "mma3", "dot", "slice", "swizzled", "nvmma", "mfma", "wmma") and done % 3 == 0:
                print("gluon", repr(layout), size, found, sep="\t")


if __name__ == "__main__":
    main()
