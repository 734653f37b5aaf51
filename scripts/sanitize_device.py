"""Runs the kernels of the sanitizer's corpus on a device, under NVIDIA's compute-sanitizer.

    python scripts/sanitize_device.py FOLDER [NAME ..] [--limit SECONDS]

FOLDER is what `scripts/sanitize_corpus.py compile` wrote. For each run a line tells what the manifest
expects, and what each tool of compute-sanitizer says: `-` for nothing, the number of errors, `hang`
where it did not end. Needs a device, the driver, `compute-sanitizer` and NumPy.
"""

import argparse
import ctypes
import json
import pathlib
import re
import subprocess
import sys

TYPES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8}
TOOLS = ["memcheck", "racecheck", "synccheck", "initcheck"]


def launch(folder, name):
    """Launches one run on the first device."""
    import numpy

    (run,) = [run for run in json.loads((folder / "runs.json").read_text()) if run["name"] == name]
    driver = ctypes.CDLL("libcuda.so.1")

    def check(code):
        if code:
            text = ctypes.c_char_p()
            driver.cuGetErrorName(code, ctypes.byref(text))
            raise SystemExit(f"{name}: {text.value.decode()}")

    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuInit(0))
    check(driver.cuDeviceGet(ctypes.byref(device), 0))
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    check(driver.cuCtxSetCurrent(context))
    check(driver.cuModuleLoadData(ctypes.byref(module), (folder / run["ptx"]).read_bytes() + b"\0"))
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, run["entry"].encode()))
    random = numpy.random.default_rng(1)
    values = []
    for text in run["args"].split():
        found = re.match(r"(in|out|inout):(\w+)\[([\d,]+)\](?:=(\w+))?", text)
        if not found:
            kind, value = text.split("=")
            values.append({"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}[kind](type(1.5)(value) if kind == "f32" else int(value)))
            continue
        direction, kind, shape, fill = found.groups()
        count = int(numpy.prod([int(part) for part in shape.split(",")]))
        pointer = ctypes.c_uint64()
        check(driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(count * TYPES[kind])))
        if direction != "out":
            if fill == "zeros":
                data = numpy.zeros(count * TYPES[kind], numpy.uint8)
            elif fill == "range":
                data = numpy.arange(count).astype(numpy.int32 if kind.startswith(("i", "u")) else numpy.float32)
            elif kind in ("f32", "f64", "f16"):
                data = (random.random(count) * 2 - 1).astype({"f32": "f4", "f64": "f8", "f16": "f2"}[kind])
            elif kind == "bf16":
                data = ((random.random(count) * 2 - 1).astype("f4").view("u4") >> 16).astype("u2")
            else:
                data = random.integers(0, 16, count).astype(f"i{TYPES[kind]}")
            check(driver.cuMemcpyHtoD_v2(pointer, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes)))
        values.append(pointer)
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values])
    extents = lambda key: ([int(part) for part in run.get(key, "1").split(",")] + [1, 1])[:3]
    shared = int(run.get("shared") or 0)
    if shared > 48 << 10:
        check(driver.cuFuncSetAttribute(function, 8, shared))

    class Attribute(ctypes.Structure):
        _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16)]

    class Config(ctypes.Structure):
        _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                    ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]

    attributes = (Attribute * 1)()
    config = Config((ctypes.c_uint * 3)(*extents("grid")), (ctypes.c_uint * 3)(*extents("block")), shared, None, attributes, 0)
    if run.get("cluster"):
        attributes[0].id = 4
        attributes[0].value[:3] = extents("cluster")
        config.count = 1
    check(driver.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None))
    check(driver.cuCtxSynchronize())


def say(folder, name, tool, limit):
    """What a tool says of a run."""
    line = [sys.executable, __file__, str(folder), name, "--one"]
    if tool:
        line = ["compute-sanitizer", "--tool", tool, *line]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "hang"
    text = done.stdout + done.stderr
    found = re.findall(r"(\d+) error|(\d+) hazard|(\d+) warning", text)
    count = sum(int(part) for parts in found for part in parts if part)
    return str(count) if count else ("-" if done.returncode == 0 else "failed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--limit", type=float, default=40.0, help="seconds of a run")
    given = parser.parse_args()
    if given.one:
        return launch(given.folder, given.names[0])
    print("\t".join(["run", "planted", "alone", *TOOLS]))
    for run in json.loads((given.folder / "runs.json").read_text()):
        if given.names and not any(part in run["name"] for part in given.names):
            continue
        said = [say(given.folder, run["name"], tool, given.limit) for tool in [None, *TOOLS]]
        print("\t".join([run["name"], run.get("finds") or "-", *said]), flush=True)


if __name__ == "__main__":
    main()
