/* An imitation of the CUDA driver, without devices: it keeps what is launched, for test_devices.py.
 *
 * Functions have the parameters of the driver's header. The parameters of a kernel are those that
 * its text declares. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int code;
enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_SUPPORTED = 801 };

/* A module: the sizes of the parameters of its only kernel. */
struct module {
    int count, sizes[64];
};
static struct module modules[64];
static int loaded;
static uint64_t launched[80], launches;
static int context;

code cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
code cuInit(unsigned flags) { return SUCCESS; }
code cuGetErrorName(code error, const char **name) { *name = "CUDA_ERROR"; return SUCCESS; }
code cuGetErrorString(code error, const char **words) { *words = "refused"; return SUCCESS; }
code cuDeviceGetCount(int *devices) { *devices = 2; return SUCCESS; }
code cuDeviceGet(int *device, int ordinal) { *device = ordinal; return SUCCESS; }
code cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "imitation %d", device); return SUCCESS; }
code cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)1 << 37; return SUCCESS; }
code cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 75: *value = 9; break; /* the capability, 9.0 */
    case 76: *value = 0; break;
    case 1: *value = 1024; break; /* threads of a block */
    case 6: case 7: *value = 65535; break;
    case 8: *value = 49152; break;
    case 97: *value = 232448; break;
    /* A multiprocessor: how many, threads, L2, shared memory, registers, blocks,
       what is reserved for each; the clock in kHz. */
    case 16: *value = 132; break;
    case 39: *value = 2048; break;
    case 38: *value = 50 << 20; break;
    case 81: *value = 233472; break;
    case 82: *value = 65536; break;
    case 106: *value = 32; break;
    case 111: *value = 1024; break;
    case 13: *value = 1980000; break;
    case 120: *value = 1; break;
    default: *value = 2147483647; break;
    }
    return SUCCESS;
}
code cuDevicePrimaryCtxRetain(void **made, int device) { *made = (char *)&context + device; return SUCCESS; }
code cuCtxGetCurrent(void **current) { *current = &context; return SUCCESS; }
code cuMemGetInfo_v2(size_t *left, size_t *all) { *left = *all = (size_t)1 << 37; return SUCCESS; }
/* Addresses of their own, of memory that nobody reads or writes. */
code cuMemAlloc_v2(uint64_t *at, size_t bytes) {
    static uint64_t next = (uint64_t)1 << 40;
    *at = next;
    next += (bytes + 511) / 512 * 512;
    return SUCCESS;
}
code cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { *stream = &context; return SUCCESS; }
code cuLinkCreate_v2(unsigned n, int *options, void **values, void **link) { return NOT_SUPPORTED; }
code cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values) {
    const char *at = strstr(image, ".entry"), *end = at ? strstr(at, "\n)") : 0;
    struct module *own = &modules[loaded++ % 64];
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
    for (int axis = 0; axis < 3; axis++) {
        launched[axis] = config->grid[axis];
        launched[3 + axis] = config->block[axis];
    }
    launched[6] = config->shared;
    launched[7] = (uint64_t)(uintptr_t)config->stream;
    for (int number = 0; number < function->count && number < 64; number++) {
        int size = function->sizes[number];
        launched[8 + number] = 0;
        memcpy(&launched[8 + number], arguments[number], size < 8 ? size : 8);
    }
    launches++;
    return SUCCESS;
}

/* What was launched last, and how many times. */
const uint64_t *last_launch(void) { return launched; }
uint64_t all_launches(void) { return launches; }

#define DONE(name) code name(void) { return SUCCESS; }
DONE(cuDevicePrimaryCtxRelease_v2) DONE(cuCtxSetCurrent) DONE(cuCtxPushCurrent_v2) DONE(cuCtxPopCurrent_v2)
DONE(cuCtxSynchronize) DONE(cuCtxEnablePeerAccess) DONE(cuMemFree_v2)
DONE(cuMemcpyHtoDAsync_v2) DONE(cuMemcpyDtoHAsync_v2)
DONE(cuMemcpyDtoDAsync_v2) DONE(cuMemcpy2DAsync_v2) DONE(cuMemsetD8Async) DONE(cuMemsetD16Async) DONE(cuMemsetD32Async)
DONE(cuStreamDestroy_v2) DONE(cuStreamSynchronize) DONE(cuStreamQuery) DONE(cuStreamWaitEvent)
DONE(cuStreamGetId) DONE(cuStreamGetCaptureInfo_v2)
DONE(cuStreamBeginCapture_v2) DONE(cuStreamEndCapture) DONE(cuEventCreate) DONE(cuEventDestroy_v2)
DONE(cuEventRecord) DONE(cuEventSynchronize) DONE(cuEventQuery) DONE(cuEventElapsedTime)
DONE(cuGraphInstantiateWithFlags) DONE(cuGraphLaunch) DONE(cuGraphExecDestroy) DONE(cuGraphDestroy)
DONE(cuModuleUnload) DONE(cuLinkAddData_v2) DONE(cuLinkComplete) DONE(cuLinkDestroy) DONE(cuFuncSetAttribute)
DONE(cuOccupancyMaxActiveBlocksPerMultiprocessor) DONE(cuOccupancyMaxActiveClusters) DONE(cuTensorMapEncodeTiled)
