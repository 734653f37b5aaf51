/* An imitation of the CUDA driver, without devices: it writes down what is given to streams, for
 * order.rs. A line of the file that ORDER_LOG names is
 *
 *   alloc ADDRESS BYTES               free ADDRESS
 *   copy STREAM INTO FROM             set STREAM INTO
 *   launch STREAM POINTER ..          the parameters of 8 bytes, in their order
 *   record STREAM EVENT               wait STREAM EVENT
 *   sync
 *
 * Functions have the parameters of the driver's header. The parameters of a kernel are those that
 * its text declares. ORDER_DEVICES says how many devices there are, ORDER_ALONE that none reaches
 * another. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int code;
enum { SUCCESS = 0, INVALID_VALUE = 1, PEER_UNSUPPORTED = 217, NOT_SUPPORTED = 801 };

struct module {
    int count, sizes[64];
};
static struct module modules[4096];
static int loaded;
static char contexts[16];
static uint64_t handles = 16, memory = 1 << 20;

static void note(const char *line) {
    FILE *log = fopen(getenv("ORDER_LOG"), "a");
    if (log) fprintf(log, "%s\n", line), fclose(log);
}
#define NOTE(...) do { char line[256]; snprintf(line, sizeof line, __VA_ARGS__); note(line); } while (0)
#define NUMBER(of) ((unsigned long long)(uintptr_t)(of))

code cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
code cuInit(unsigned flags) { return SUCCESS; }
code cuGetErrorName(code error, const char **name) { *name = "CUDA_ERROR"; return SUCCESS; }
code cuGetErrorString(code error, const char **words) { *words = "refused"; return SUCCESS; }
code cuDeviceGetCount(int *devices) { *devices = atoi(getenv("ORDER_DEVICES")); return SUCCESS; }
code cuDeviceGet(int *device, int ordinal) { *device = ordinal; return SUCCESS; }
code cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "imitation %d", device); return SUCCESS; }
code cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)1 << 37; return SUCCESS; }
code cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 16: *value = 132; break; /* processors */
    case 75: *value = 9; break; /* the capability, 9.0 */
    case 76: *value = 0; break;
    case 1: *value = 1024; break; /* threads of a block */
    case 6: case 7: *value = 65535; break;
    case 8: *value = 49152; break;
    case 97: *value = 232448; break;
    case 120: *value = 1; break;
    default: *value = 2147483647; break;
    }
    return SUCCESS;
}
code cuDevicePrimaryCtxRetain(void **made, int device) { *made = &contexts[device]; return SUCCESS; }
code cuCtxGetCurrent(void **current) { *current = 0; return SUCCESS; }
code cuCtxEnablePeerAccess(void *context, unsigned flags) { return getenv("ORDER_ALONE") ? PEER_UNSUPPORTED : SUCCESS; }
code cuCtxSynchronize(void) { note("sync"); return SUCCESS; }
code cuStreamSynchronize(void *stream) { note("sync"); return SUCCESS; }
code cuEventSynchronize(void *event) { note("sync"); return SUCCESS; }
code cuMemGetInfo_v2(size_t *left, size_t *all) { *left = *all = (size_t)1 << 37; return SUCCESS; }
code cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    *address = memory;
    memory += (bytes + 511) / 256 * 256;
    NOTE("alloc %llu %llu", NUMBER(*address), (unsigned long long)bytes);
    return SUCCESS;
}
code cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) { return cuMemAlloc_v2(address, bytes); }
code cuMemFree_v2(uint64_t address) { NOTE("free %llu", NUMBER(address)); return SUCCESS; }
code cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    *stream = (void *)(uintptr_t)handles++;
    if (priority < 0) NOTE("urgent %llu", NUMBER(*stream));
    return SUCCESS;
}
code cuMemFreeAsync(uint64_t address, void *stream) { return cuMemFree_v2(address); }
code cuStreamCreate(void **stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
code cuStreamGetId(void *stream, uint64_t *number) { *number = NUMBER(stream); return SUCCESS; }
code cuEventCreate(void **event, unsigned flags) { *event = (void *)(uintptr_t)handles++; return SUCCESS; }
code cuEventRecord(void *event, void *stream) { NOTE("record %llu %llu", NUMBER(stream), NUMBER(event)); return SUCCESS; }
code cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    NOTE("wait %llu %llu", NUMBER(stream), NUMBER(event));
    return SUCCESS;
}
code cuMemcpyDtoDAsync_v2(uint64_t into, uint64_t from, size_t bytes, void *stream) {
    NOTE("copy %llu %llu %llu", NUMBER(stream), NUMBER(into), NUMBER(from));
    return SUCCESS;
}
struct side {
    size_t x, y;
    unsigned kind;
    const void *host;
    uint64_t device;
    void *array;
    size_t step;
};
struct lines {
    struct side from, to;
    size_t bytes, count;
};
code cuMemcpy2DAsync_v2(const struct lines *lines, void *stream) {
    NOTE("copy %llu %llu %llu", NUMBER(stream), NUMBER(lines->to.device), NUMBER(lines->from.device));
    return SUCCESS;
}
code cuMemsetD8Async(uint64_t into, unsigned char value, size_t count, void *stream) {
    NOTE("set %llu %llu", NUMBER(stream), NUMBER(into));
    return SUCCESS;
}
code cuLinkCreate_v2(unsigned n, int *options, void **values, void **link) { return NOT_SUPPORTED; }
code cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
    const char *at = strstr(image, ".entry"), *end = at ? strstr(at, "\n)") : 0;
    struct module *own = &modules[loaded++ % 4096];
    for (own->count = 0; at && (at = strstr(at, ".param .")) && at < end; at++) {
        int bits = 0;
        if (sscanf(at, ".param .%*[ub]%d", &bits) == 1) own->sizes[own->count++] = bits / 8;
        else own->sizes[own->count++] = 128;
    }
    *module = own;
    return SUCCESS;
}
code cuModuleGetFunction(void **function, void *module, const char *name) { *function = module; return SUCCESS; }
code cuFuncGetParamInfo(struct module *function, size_t number, size_t *offset, size_t *size) {
    if (number >= (size_t)function->count) return INVALID_VALUE;
    *offset = 0;
    *size = function->sizes[number];
    return SUCCESS;
}
code cuFuncGetAttribute(int *value, int attribute, void *function) { *value = attribute == 0 ? 1024 : 0; return SUCCESS; }
struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
};
code cuLaunchKernelEx(const struct config *config, struct module *function, void **arguments, void **extra) {
    char line[2048];
    int at = snprintf(line, sizeof line, "launch %llu", NUMBER(config->stream));
    for (int number = 0; number < function->count; number++) {
        uint64_t pointer;
        if (function->sizes[number] != 8) continue;
        memcpy(&pointer, arguments[number], 8);
        at += snprintf(line + at, sizeof line - at, " %llu", NUMBER(pointer));
    }
    note(line);
    return SUCCESS;
}

#define DONE(name) code name(void) { return SUCCESS; }
DONE(cuDevicePrimaryCtxRelease_v2) DONE(cuCtxSetCurrent) DONE(cuCtxPushCurrent_v2) DONE(cuCtxPopCurrent_v2)
DONE(cuMemcpyHtoDAsync_v2) DONE(cuMemcpyDtoHAsync_v2) DONE(cuMemsetD16Async) DONE(cuMemsetD32Async)
DONE(cuStreamGetCaptureInfo_v2) DONE(cuStreamDestroy_v2) DONE(cuStreamQuery) DONE(cuStreamBeginCapture_v2) DONE(cuStreamEndCapture)
DONE(cuEventDestroy_v2) DONE(cuEventQuery) DONE(cuEventElapsedTime)
DONE(cuGraphInstantiateWithFlags) DONE(cuGraphLaunch) DONE(cuGraphExecDestroy) DONE(cuGraphDestroy)
DONE(cuModuleUnload) DONE(cuLinkAddData_v2) DONE(cuLinkComplete) DONE(cuLinkDestroy) DONE(cuFuncSetAttribute)
DONE(cuOccupancyMaxActiveBlocksPerMultiprocessor) DONE(cuOccupancyMaxActiveClusters) DONE(cuTensorMapEncodeTiled)
