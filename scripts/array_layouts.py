#!/usr/bin/env python3
"""Random views of NumPy and tinygrad, and shardings of JAX, and where their elements are.

Usage: array_layouts.py COUNT SEED SYSTEM.. > facts.tsv, with systems numpy, tinygrad (0.10), jax, torch.

Each line has four fields with tabs between: the system, the text that it prints, the shape, and
numbers. For an array these are the offsets of all elements from the first one, in elements, row by
row; for a view of tinygrad, from the start of the memory. For a sharding, for each device the
ranges of its part, as `device:first-end,first-end`. The test `recorded_facts_of_arrays` in
crates/read reads such a file.
"""

import math
import os
import random
import sys


def shape_text(shape):
    return ",".join(map(str, shape))


def numpy_facts(count):
    import numpy as np

    for _ in range(count):
        dtype = random.choice(["int8", "int16", "float32", "float64"])
        shape = [random.randint(1, 6) for _ in range(random.randint(1, 3))]
        base = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape)
        cut = tuple(slice(None, None, random.choice([1, 1, 2, -1])) for _ in shape)
        order = random.sample(range(len(shape)), len(shape))
        # The numbers of the elements tell their places; strides are those of the real type.
        numbers = base[cut].transpose(order)
        real = np.zeros(shape, dtype=dtype)[cut].transpose(order)
        offsets = (numbers - numbers.flat[0]).flatten().tolist()
        text = f"shape={real.shape}, strides={real.strides}, dtype={real.dtype}"
        print("numpy", text, shape_text(real.shape), shape_text(offsets), sep="\t")


def tinygrad_facts(count):
    from itertools import product

    from tinygrad.shape.shapetracker import ShapeTracker

    done = 0
    while done < count:
        shape = tuple(random.choice([1, 2, 3, 4, 6]) for _ in range(random.randint(1, 3)))
        tracker = ShapeTracker.from_shape(shape)
        for _ in range(random.randint(1, 4)):
            own = tracker.shape
            kind = random.choice(["permute", "reshape", "shrink", "expand", "stride"])
            if kind == "permute":
                tracker = tracker.permute(tuple(random.sample(range(len(own)), len(own))))
            elif kind == "reshape":
                size = 1
                for extent in own:
                    size *= extent
                divisors = [d for d in range(1, size + 1) if size % d == 0]
                first = random.choice(divisors)
                tracker = tracker.reshape((first, size // first))
            elif kind == "shrink":
                ranges = []
                for extent in own:
                    low = random.randint(0, extent - 1)
                    ranges.append((low, random.randint(low + 1, extent)))
                tracker = tracker.shrink(tuple(ranges))
            elif kind == "expand":
                tracker = tracker.expand(tuple(3 if extent == 1 and random.random() < 0.5 else extent for extent in own))
            else:
                tracker = tracker.stride(tuple(random.choice([1, 1, -1, 2]) for _ in own))
        own = tracker.shape
        offsets = []
        for coordinate in product(*map(range, own)):
            # View by view, from the last to the first, as the documentation of views has it.
            number = None
            for view in reversed(tracker.views):
                if number is not None:
                    indices = []
                    for extent in reversed(view.shape):
                        indices.append(number % extent)
                        number //= extent
                    coordinate = tuple(reversed(indices))
                number = view.offset + sum(i * s for i, s in zip(coordinate, view.strides))
            offsets.append(number)
        if any(view.mask is not None for view in tracker.views):
            continue
        print("tinygrad", tracker, shape_text(own), shape_text(offsets), sep="\t")
        done += 1


def jax_facts(count):
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    for _ in range(count):
        extents = random.choice([[8], [2, 4], [4, 2], [2, 2, 2]])
        names = ["dp", "tp", "pp"][: len(extents)]
        mesh = Mesh(np.array(jax.devices()).reshape(extents), names)
        rank = random.randint(1, 3)
        entries = [[] for _ in range(rank)]
        for name in random.sample(names, random.randint(0, len(names))):
            entries[random.randrange(rank)].append(name)
        spec = PartitionSpec(*[tuple(e) if len(e) > 1 else e[0] if e else None for e in entries])
        shape = tuple(8 * random.randint(1, 2) for _ in range(rank))
        sharding = NamedSharding(mesh, spec)
        parts = []
        for device, slices in sharding.devices_indices_map(shape).items():
            ranges = [(s.start or 0, s.stop if s.stop is not None else extent) for s, extent in zip(slices, shape)]
            parts.append(f"{device.id}:" + ",".join(f"{a}-{b}" for a, b in ranges))
        own = str(sharding)
        hlo = "GSPMDSharding(" + str(sharding._to_xla_hlo_sharding(rank)) + ")"
        for text in [own, hlo] if "devices" in hlo else [own]:
            print("jax", text, shape_text(shape), " ".join(parts), sep="\t")


def torch_facts(count):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset as part

    for _ in range(count):
        extents = random.choice([[8], [2, 4], [4, 2], [2, 2, 2], [3], [2, 3]])
        names = ["dp", "tp", "pp"][: len(extents)]
        rank = random.randint(1, 3)
        # Extents that the devices do not divide are sharded unevenly, as torch.chunk does.
        shape = [random.randint(1, 17) for _ in range(rank)]
        placements = [random.choice([Replicate(), Shard(random.randrange(rank))]) for _ in extents]
        parts = []
        for device in range(math.prod(extents)):
            coordinate, rest = [], device
            for extent in reversed(extents):
                coordinate.insert(0, rest % extent)
                rest //= extent
            local, first = part(shape, extents, coordinate, placements)
            parts.append(f"{device}:" + ",".join(f"{a}-{a + n}" for a, n in zip(first, local)))
        written = ", ".join(f"Shard(dim={own.dim})" if isinstance(own, Shard) else "Replicate()" for own in placements)
        axes = ", ".join(f"'{name}'" for name in names)
        nested = str(torch_mesh(extents))
        text = f"DTensorSpec(mesh=DeviceMesh('cpu', {nested}, mesh_dim_names=({axes},)), placements=({written},))"
        print("torch", text, shape_text(shape), " ".join(parts), sep="\t")


def torch_mesh(extents):
    import numpy as np

    return np.arange(math.prod(extents)).reshape(extents).tolist()


def main():
    count = int(sys.argv[1])
    random.seed(int(sys.argv[2]))
    for system in sys.argv[3:]:
        {"numpy": numpy_facts, "tinygrad": tinygrad_facts, "jax": jax_facts, "torch": torch_facts}[system](count)


if __name__ == "__main__":
    main()
