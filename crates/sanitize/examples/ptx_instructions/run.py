"""Runs the kernels of a folder on the first CUDA device, through the driver alone.

Each line of `list` is: name, blocks, threads of a block, bytes of the input, bytes of the output. A
kernel is `k` in NAME.ptx, with the addresses of its input and its output, and with a tensor map of
the input where there is a NAME.map; its output becomes NAME.out. What the driver refuses becomes NAME.err; if the device is lost, a new process goes on.
"""

import ctypes
import os
import sys

folder, first = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{name}: {code} {(text.value or b'').decode()}")


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def tensor_map(line, address):
    """The 128 bytes that the driver makes of a line of NAME.map, whose lists have the fastest dimension first."""
    kind, size, *lists, swizzle, nan = line.split()
    shape, sizes, lower, upper, steps = ([int(number) for number in own.split(",")] for own in lists)
    rank = len(shape)
    strides, bytes_ = [], int(size)
    for extent in shape[:-1]:
        bytes_ *= extent
        strides.append(bytes_)
    room = ctypes.create_string_buffer(192)
    place = (ctypes.addressof(room) + 63) // 64 * 64
    # The numbers of CUtensorMapDataType: bytes, f16 and f32.
    element = {1: 0, 2: 6, 4: 7}[int(size)]
    head = [ctypes.c_void_p(place), element, rank, ctypes.c_void_p(address)]
    head += [(ctypes.c_uint64 * rank)(*shape), (ctypes.c_uint64 * max(rank - 1, 1))(*strides)]
    steps = (ctypes.c_uint32 * rank)(*steps)
    tail = [steps, 0, int(swizzle), 0, int(nan)]
    if kind == "tiled":
        call("cuTensorMapEncodeTiled", *head, (ctypes.c_uint32 * rank)(*sizes), *tail)
    else:
        corners = [(ctypes.c_int * len(own))(*own) for own in (lower, upper)]
        call("cuTensorMapEncodeIm2col", *head, *corners, *map(ctypes.c_uint32, sizes), *tail)
    return room, place


def run(name, blocks, threads, input_bytes, output_bytes):
    log = ctypes.create_string_buffer(4096)
    options = (ctypes.c_int * 2)(5, 6)  # where errors go, and how many bytes
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 4096)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    text = bytes_of(os.path.join(folder, name + ".ptx")) + b"\0"
    try:
        call("cuModuleLoadDataEx", ctypes.byref(module), text, 2, options, values)
    except RuntimeError as error:
        raise ValueError(f"{error}\n{log.value.decode(errors='replace')}") from None
    call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(max(input_bytes, 1)))
    call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(max(output_bytes, 1)))
    given = bytes_of(os.path.join(folder, name + ".in"))
    call("cuMemcpyHtoD_v2", source, given, ctypes.c_size_t(input_bytes))
    call("cuMemsetD8_v2", target, ctypes.c_ubyte(0xEE), ctypes.c_size_t(output_bytes))
    parameters = [ctypes.cast(ctypes.byref(own), ctypes.c_void_p) for own in (source, target)]
    path = os.path.join(folder, name + ".map")
    if os.path.exists(path):
        room, place = tensor_map(bytes_of(path).decode(), source.value)
        parameters.append(ctypes.c_void_p(place))
    parameters = (ctypes.c_void_p * len(parameters))(*parameters)
    call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, parameters, None)
    call("cuCtxSynchronize")
    found = ctypes.create_string_buffer(output_bytes)
    call("cuMemcpyDtoH_v2", found, target, ctypes.c_size_t(output_bytes))
    with open(os.path.join(folder, name + ".out"), "wb") as file:
        file.write(found.raw)
    call("cuMemFree_v2", source)
    call("cuMemFree_v2", target)
    call("cuModuleUnload", module)


call("cuInit", 0)
device, context = ctypes.c_int(), ctypes.c_void_p()
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
with open(os.path.join(folder, "list")) as file:
    lines = [line.split() for line in file]
for number, (name, *sizes) in enumerate(lines):
    if number < first:
        continue
    lost = False
    try:
        run(name, *map(int, sizes))
    except ValueError as error:
        message = str(error)
    except RuntimeError as error:
        message, lost = str(error), True
    else:
        continue
    with open(os.path.join(folder, name + ".err"), "w") as file:
        file.write(message)
    if lost:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), folder, str(number + 1)])
