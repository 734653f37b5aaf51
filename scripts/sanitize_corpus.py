"""Compiles the kernels of `crates/sanitize/corpus` and runs them through `tilewright sanitize`.

    python scripts/sanitize_corpus.py compile FOLDER [NAME ..]
    python scripts/sanitize_corpus.py run FOLDER [NAME ..] [--command tilewright] [--jobs N]
    python scripts/sanitize_corpus.py mutate FOLDER [NAME ..] [--command tilewright] [--jobs N]
    python scripts/sanitize_corpus.py keep FOLDER DESTINATION

`compile` writes a file of PTX for each entry and a list of runs, `runs.json`. CUDA C++ goes through
the wheel of NVRTC, or through clang where it is installed (CLANG names it), and Triton through its
own compiler; none needs a GPU. `run` runs each and
compares what is found with what the manifest says. A NAME is a part of the name of an entry. `keep`
copies the small ones that the tests of the crate read. `mutate` takes one statement that orders
something out of each right kernel, or weakens it, and lists the changes with which nothing is found:
each of them is a statement that was not needed, or a defect that is missed.

A manifest is a comment in a source of CUDA C++,

    // @run ENTRY [arch=80] grid=X,Y,Z block=X,Y,Z [cluster=X,Y,Z] [shared=BYTES] args=".." [finds=CODE,..]
    //      [expect="N: EXPRESSION"]

where the expression gives argument N of the arguments `a0`, `a1` .. before the run, which are filled with
`range`, `ones` or `zeros`; or a function `cases()` in a file of Triton kernels. `finds=any` accepts any finding; a file of the
same name with `known=` in its line is expected to fail still, with the reason.
"""

import argparse
import concurrent.futures
import ctypes
import importlib.util
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
CORPUS = HERE / "crates/sanitize/corpus"


class Nvrtc:
    """NVRTC through its C interface."""

    def __init__(self):
        import nvidia

        (root,) = {pathlib.Path(part) / "cu13" for part in nvidia.__path__ if (pathlib.Path(part) / "cu13").exists()}
        self.include = root / "include"
        (library,) = [path for path in sorted((root / "lib").glob("libnvrtc.so.*")) if "alt" not in path.name]
        self.library = ctypes.CDLL(str(library))

    def check(self, code):
        if code:
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(self.library.nvrtcGetErrorString(code).decode())

    def ptx(self, path, arch):
        """The PTX of a file for an architecture, as in `90a`."""
        program = ctypes.c_void_p()
        source = path.read_bytes()
        # A path that is the same on every machine, for the lines of the source.
        name = str(path.relative_to(CORPUS)).encode()
        self.check(self.library.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None))
        options = [
            f"--gpu-architecture=compute_{arch}",
            "--std=c++17",
            "-lineinfo",
            f"-I{path.parent}",
            f"-I{self.include}",
            f"-I{self.include}/cccl",
        ]
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        code = self.library.nvrtcCompileProgram(program, len(options), array)
        size = ctypes.c_size_t()
        if code:
            self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self.library.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"{path}: {log.value.decode()}")
        self.check(self.library.nvrtcGetPTXSize(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self.check(self.library.nvrtcGetPTX(program, text))
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        # Paths as they are in the corpus, whoever compiles.
        found = text.value.decode()
        for folder in [f"{path.parent}/", f"{os.getcwd()}/", f"{self.include}/"]:
            found = found.replace(f'"{folder}', '"')
        return re.sub(r'(?m)^(\s*\.file\s+\d+ )"(\w+\.cuh?)"', r'\1"cuda/\2"', found)


def runs_of(path):
    """The runs that a source of CUDA C++ asks for."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r"\s*// @run (\S+)\s*(.*)", line)
        if not found:
            continue
        run = {"name": found[1], "entry": found[1], "from": f"{path.name}:{number}", "arch": "80"}
        for word in shlex.split(found[2]):
            key, _, value = word.partition("=")
            if key not in {"arch", "grid", "block", "cluster", "shared", "args", "finds", "known", "schedules", "expect"}:
                raise SystemExit(f"{path}:{number}: unknown key {key}")
            run[key] = value
        yield run


def compile_cuda(folder, wanted):
    nvrtc = None
    for path in sorted(CORPUS.glob("cuda/*.cu")):
        runs = [run for run in runs_of(path) if wanted(run["name"])]
        for arch in sorted({run["arch"] for run in runs}):
            nvrtc = nvrtc or Nvrtc()
            target = folder / f"{path.stem}.sm_{arch}.ptx"
            target.write_text(nvrtc.ptx(path, arch))
            for run in runs:
                if run["arch"] == arch:
                    yield {**run, "ptx": target.name}


def compile_clang(folder, wanted):
    """The kernels that clang compiles, without the CUDA toolkit."""
    clang = os.environ.get("CLANG") or shutil.which("clang++")
    for path in sorted(CORPUS.glob("clang/*.cu")):
        runs = [run for run in runs_of(path) if wanted(run["name"])]
        if runs and not clang:
            print(f"{path.name} is left out: there is no clang++")
            continue
        for arch in sorted({run["arch"] for run in runs}):
            target = folder / f"clang.{path.stem}.sm_{arch}.ptx"
            line = [clang, "-x", "cuda", "--cuda-device-only", "-S", "-nocudainc", "-nocudalib", f"--cuda-gpu-arch=sm_{arch}"]
            # Shuffles want a version of PTX that clang does not choose without a toolkit.
            line += ["-Xclang", "-target-feature", "-Xclang", "+ptx72", "-O2", "-std=c++17", "-gline-tables-only"]
            subprocess.run([*line, path.name, "-o", str(target.resolve())], cwd=path.parent, check=True)
            for run in runs:
                if run["arch"] == arch:
                    yield {**run, "ptx": target.name}


def compile_triton(folder, wanted):
    for path in sorted(CORPUS.glob("triton/*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        for case in module.cases():
            if wanted(case["name"]):
                yield from triton_run(folder, path, case)


def triton_run(folder, path, case):
    """Compiles one case of Triton: a kernel, the types of its arguments, constants and a grid."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    arch = int(case.get("arch", 80))
    kernel = case["kernel"]
    names = kernel.arg_names
    constants = case.get("constants", {})
    signature = {name: case["types"].get(name, "constexpr") for name in names}
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name, kind in case["types"].items() if kind.startswith("*")}
    for name in case.get("divisible", ()):
        attributes[(names.index(name),)] = [["tt.divisibility", 16]]
    if case["name"].startswith("gluon_"):
        from triton.experimental.gluon._runtime import GluonASTSource as ASTSource
    source = ASTSource(kernel, signature, constants, attributes)
    options = {"num_warps": case.get("warps", 4), "num_stages": case.get("stages", 3), **case.get("options", {})}
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    text = re.sub(r'"[^"]*/(\w+\.py)"', r'"triton/\1"', compiled.asm["ptx"]).replace(str(path.parent), "triton")
    target = folder / f"{case['name']}.ptx"
    target.write_text(text)
    # Behind the arguments that the source names Triton has pointers to scratch memory of its own, of
    # which each program has a part.
    extra = ["i64=0"] * (parameters(text, compiled.metadata.name) - len(case["args"].split()))
    if scratch := compiled.metadata.global_scratch_size:
        extra[0] = f"inout:u8[{scratch * math.prod(map(int, case['grid'].split(',')))}]=zeros"
    yield {
        "name": case["name"],
        "entry": compiled.metadata.name,
        "from": path.name,
        "arch": str(arch),
        "grid": case["grid"],
        "block": str(threads(text, compiled.metadata)),
        "shared": str(compiled.metadata.shared),
        "args": " ".join([case["args"], *extra]),
        "finds": case.get("finds", ""),
        "expect": case.get("expect", ""),
        "known": case.get("known", ""),
        "ptx": target.name,
    }


def threads(text, metadata):
    """The threads of a block: those that the text asks for, which may have more warps than the kernel was given."""
    found = re.search(r"\.reqntid (\d+)", text)
    return int(found[1]) if found else 32 * metadata.num_warps


def parameters(text, entry):
    """How many parameters an entry has."""
    head = text[text.index(f".entry {entry}(") :]
    return head[: head.index(")")].count(".param")


def compile_all(folder, wanted):
    folder.mkdir(parents=True, exist_ok=True)
    runs = []
    for part in [compile_cuda, compile_clang, compile_triton]:
        for run in part(folder, wanted):
            runs.append(run)
    names = [run["name"] for run in runs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"names that stand twice: {sorted(twice)}")
    (folder / "runs.json").write_text(json.dumps(runs, indent=1) + "\n")
    right = sum(1 for run in runs if not run.get("finds"))
    print(f"{len(runs)} runs: {right} right, {len(runs) - right} with a defect")


def expected(folder, run):
    """The number of the argument that a run gives, and the file of what it is to hold."""
    import numpy as np

    types = {"f16": "f2", "f32": "f4", "f64": "f8", **{f"{sign}{8 * size}": f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)}}
    values = {"np": np}
    for number, text in enumerate(run["args"].split()):
        found = re.match(r"(?:in|inout):(\w+)\[([\d,]+)\]=(range|ones|zeros)$", text)
        if found:
            shape = [int(extent) for extent in found[2].split(",")]
            kind = types[found[1]]
            full = {"range": np.arange(math.prod(shape)), "ones": np.ones(math.prod(shape)), "zeros": np.zeros(math.prod(shape))}
            values[f"a{number}"] = full[found[3]].astype(kind).reshape(shape)
    number, _, expression = run["expect"].partition(":")
    path = folder / f"{run['name']}.expected.npy"
    np.save(path, np.ascontiguousarray(eval(expression.strip(), values)))
    return f"{number}={path}"


def run_one(command, folder, run, limit):
    line = [command, "sanitize", str(folder / run["ptx"]), "--entry", run["entry"], "--json"]
    for key in ["grid", "block", "cluster", "shared", "schedules"]:
        if run.get(key):
            line += [f"--{key}", run[key]]
    for argument in run["args"].split():
        # What an array holds is said only where it matters.
        plain = re.match(r"(in|inout):[^=]*$", argument)
        line += ["--arg", f"{argument}=random" if plain else argument]
    if run.get("expect"):
        line += ["--expect", expected(folder, run)]
    begin = time.monotonic()
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return run, line, None, "", time.monotonic() - begin
    return run, line, done.returncode, done.stdout + done.stderr, time.monotonic() - begin


def verdict(run, status, text):
    """What is wrong with a run; empty if it is as the manifest says."""
    codes = sorted(set(re.findall(r"\bE\d{4}\b", text)))
    wanted = [code for code in run.get("finds", "").split(",") if code]
    if status is None:
        return "no end"
    if status not in (0, 1):
        return f"status {status}: {text.strip()[-300:]}"
    if not wanted:
        return "" if status == 0 else f"a false alarm: {' '.join(codes)}"
    if status == 0:
        return f"nothing found, not {' '.join(wanted)}"
    if wanted == ["any"] or set(wanted) & set(codes):
        return ""
    return f"found {' '.join(codes)}, not {' '.join(wanted)}"


def run_all(folder, wanted, command, jobs, limit, verbose):
    runs = [run for run in json.loads((folder / "runs.json").read_text()) if wanted(run["name"])]
    failed = known = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for run, line, status, text, seconds in pool.map(lambda run: run_one(command, folder, run, limit), runs):
            wrong = verdict(run, status, text)
            if wrong and run.get("known"):
                known += 1
                print(f"known   {run['name']} ({run['from']}): {wrong}; {run['known']}")
            elif wrong:
                failed += 1
                print(f"FAILED  {run['name']} ({run['from']}): {wrong}\n    {shlex.join(line)}")
            elif verbose:
                print(f"ok      {run['name']} {seconds:.1f} s")
                if run.get("finds"):
                    print("        " + text.strip().replace("\n", "\n        ")[:2000])
            sys.stdout.flush()
    print(f"{len(runs)} runs: {failed} failed, {known} known")
    return failed


# Statements that order something.
GUARD = r"\s*(@!?%\w+\s+)?"
ORDERS = re.compile(
    GUARD + r"(bar(\.cta|\.warp)?\.(sync|red)|barrier(\.cta)?\.sync|barrier\.cluster\.|fence\b|membar\b|mbarrier\.arrive"
    r"|cp\.async(\.bulk)?\.(wait_group|wait_all|commit_group)|wgmma\.(wait_group|fence|commit_group))"
)
PENDING = re.compile(r"(wait_group(?:\.read|\.sync\.aligned)?\s+)(\d+);")
STRONG = re.compile(GUARD + r"(ld|st|atom|red)\b.*?\.(acq_rel|acquire|release)\.")
BYTES = re.compile(r"(expect_tx[^;]*,\s*)(\d+);")


def mutants(text, entry):
    """Changes of an entry: what is changed, to what, and the module with it."""
    start = text.index(f".entry {entry}(")
    end = re.compile(r"(?m)^}").search(text, start).end()
    for found in re.finditer(r"[^;{}\n]+;", text[start:end]):
        statement = found[0]
        changes = [""] if ORDERS.match(statement) else []
        changes += [PENDING.sub(lambda own: f"{own[1]}{int(own[2]) + 1};", statement)] if PENDING.search(statement) else []
        changes += [BYTES.sub(lambda own: f"{own[1]}{int(own[2]) - 16};", statement)] if BYTES.search(statement) else []
        if strong := STRONG.match(statement):
            changes.append(statement[: strong.start(3)] + "relaxed" + statement[strong.end(3) :])
        for change in changes:
            at, behind = start + found.start(), start + found.end()
            yield statement.strip(), change.strip(), text[:at] + change + text[behind:]


def mutate(folder, wanted, command, jobs, limit):
    target = folder / "mutants"
    target.mkdir(exist_ok=True)
    runs = [run for run in json.loads((folder / "runs.json").read_text()) if wanted(run["name"]) and not run.get("finds")]

    def all_changes():
        for run in runs:
            changes = mutants((folder / run["ptx"]).read_text(), run["entry"])
            yield from ((run, number, *change) for number, change in enumerate(changes))

    def try_one(job):
        run, number, statement, change, text = job
        path = target / f"{run['name']}.{number}.ptx"
        path.write_text(text)
        *_, status, _, _ = run_one(command, folder, {"schedules": "4", **run, "ptx": f"mutants/{path.name}"}, limit)
        path.unlink()
        return run["name"], statement, change, status

    total = left = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, statement, change, status in pool.map(try_one, all_changes()):
            total += 1
            if status == 0:
                left += 1
                print(f"nothing found  {name}: {statement} -> {change or 'nothing'}")
    print(f"{total} changes: with {left} nothing is found")


def keep(folder, destination):
    """Copies the PTX of single kernels that tests read: the zoo of what needs few arguments."""
    destination.mkdir(parents=True, exist_ok=True)
    runs = json.loads((folder / "runs.json").read_text())
    lines = ["# name\tgrid\tblock\tcluster\tshared\targuments\tfindings; by scripts/sanitize-corpus --keep"]
    for run in runs:
        if run["name"] in KEPT:
            text = (folder / run["ptx"]).read_text()
            (destination / f"{run['name']}.ptx").write_text(only(text, run["entry"]))
            keys = ["name", "grid", "block", "cluster", "shared", "args", "finds"]
            lines.append("\t".join(run.get(key, "") for key in keys))
    (destination / "runs.tsv").write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 1} kept")


def only(text, entry):
    """A module with one entry alone, and without tables for debuggers."""
    head, *functions = re.split(r"(?m)^(?=\t?// \.globl)", text)
    bodies = [body for body in functions if f".entry {entry}(" in body]
    files = re.findall(r"(?m)^\s*\.file.*$", text)
    body = bodies[0]
    end = re.search(r"(?m)^}", body)
    head = "\n".join(line for line in head.splitlines() if not line.endswith("has been demoted"))
    return head + "\n" + body[: end.end()] + "\n" + "\n".join(line for line in files if line not in head) + "\n"


KEPT = [
    "no_barrier_wrong",
    "no_barrier_right",
    "no_wait_for_copies_wrong",
    "no_wait_for_copies_right",
    "no_wait_for_bulk_wrong",
    "no_wait_for_bulk_right",
    "no_proxy_fence_wrong",
    "no_proxy_fence_right",
    "passed_phase_wrong",
    "passed_phase_right",
    "count_without_fence_wrong",
    "count_with_fence_right",
    "flag_right",
    "cluster_no_end_wrong",
    "cluster_right",
    "wgmma_right",
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["compile", "run", "mutate", "keep"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--command", default=os.environ.get("TILEWRIGHT", "target/release/tilewright"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a run")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()

    def wanted(name):
        return not given.names or any(part in name for part in given.names)

    if given.what == "compile":
        compile_all(given.folder, wanted)
    elif given.what == "mutate":
        mutate(given.folder, wanted, given.command, given.jobs, given.limit)
    elif given.what == "keep":
        keep(given.folder, pathlib.Path(given.names[0]))
    elif run_all(given.folder, wanted, given.command, given.jobs, given.limit, given.verbose):
        sys.exit(1)


if __name__ == "__main__":
    main()
