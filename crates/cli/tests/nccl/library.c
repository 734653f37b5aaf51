/* An imitation of the CUDA driver and of NCCL, for nccl.rs: devices whose memory is that of the
 * process, and processes that leave each other messages as files of the folder that MESSAGES names.
 *
 * A receive ends when its message is there: in ncclGroupEnd, as that of a first transfer does,
 * which connects; with LATER=1 on the stream, as later ones do. Aborting waits for ever then.
 *
 * The process whose RANK is VICTIM stops when it comes to the call that STOPS names: `join`, or the
 * end of the group of that number. Functions have the parameters of the headers. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int code;
enum { SUCCESS = 0, NOT_READY = 600, NOT_SUPPORTED = 801 };
static char contexts[16];
static uint64_t handles = 16;

static int number(const char *name) { return getenv(name) ? atoi(getenv(name)) : -1; }
static void stop_at(const char *call) {
    const char *stops = getenv("STOPS");
    if (stops && number("RANK") == number("VICTIM") && strcmp(stops, call) == 0) raise(SIGSTOP);
}

code cuDriverGetVersion(int *version) { *version = 13000; return SUCCESS; }
code cuInit(unsigned flags) { return SUCCESS; }
code cuGetErrorName(code error, const char **name) { *name = "CUDA_ERROR"; return SUCCESS; }
code cuGetErrorString(code error, const char **words) { *words = "refused"; return SUCCESS; }
code cuDeviceGetCount(int *devices) { *devices = 16; return SUCCESS; }
code cuDeviceGet(int *device, int ordinal) { *device = ordinal; return SUCCESS; }
code cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "imitation %d", device); return SUCCESS; }
code cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)1 << 37; return SUCCESS; }
code cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 9 : 0; return SUCCESS; }
code cuDevicePrimaryCtxRetain(void **made, int device) { *made = &contexts[device]; return SUCCESS; }
code cuCtxGetCurrent(void **current) { *current = 0; return SUCCESS; }
code cuMemGetInfo_v2(size_t *left, size_t *all) { *left = *all = (size_t)1 << 37; return SUCCESS; }
code cuMemAlloc_v2(uint64_t *address, size_t bytes) { *address = (uint64_t)(uintptr_t)malloc(bytes); return SUCCESS; }
code cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return SUCCESS; }
code cuMemcpyHtoDAsync_v2(uint64_t into, const void *from, size_t bytes, void *stream) {
    memcpy((void *)(uintptr_t)into, from, bytes);
    return SUCCESS;
}
code cuMemcpyDtoHAsync_v2(void *into, uint64_t from, size_t bytes, void *stream) {
    memcpy(into, (void *)(uintptr_t)from, bytes);
    return SUCCESS;
}
code cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { *stream = (void *)(uintptr_t)handles++; return SUCCESS; }
code cuEventCreate(void **event, unsigned flags) { *event = (void *)(uintptr_t)handles++; return SUCCESS; }

struct unique { char bytes[128]; };
struct end { void *at; size_t bytes; int from, to; };
static struct end sent[4096], awaited[4096];
static int sends, receives, groups, later[64][64];

static void path(char *text, size_t size, const char *what, int from, int to, int which) {
    snprintf(text, size, "%s/%s-%d-%d-%d", getenv("MESSAGES"), what, from, to, which);
}
static void leave(const struct end *end) {
    char hidden[512], seen[512];
    int which = later[end->from][end->to]++;
    path(hidden, sizeof hidden, "hidden", end->from, end->to, which);
    path(seen, sizeof seen, "message", end->from, end->to, which);
    FILE *file = fopen(hidden, "wb");
    fwrite(end->at, 1, end->bytes, file);
    fclose(file);
    rename(hidden, seen);
}
static int take(const struct end *end) {
    char seen[512];
    path(seen, sizeof seen, "message", end->from, end->to, later[end->from][end->to]);
    FILE *file = fopen(seen, "rb");
    if (!file) return 0;
    fread(end->at, 1, end->bytes, file);
    fclose(file);
    remove(seen);
    later[end->from][end->to]++;
    return 1;
}
/* What is there, in the order in which it was asked for; whether it is all. */
static int taken(void) {
    int done = 0;
    while (done < receives && take(&awaited[done])) done++;
    memmove(awaited, awaited + done, (receives -= done) * sizeof *awaited);
    return receives == 0;
}
code cuStreamQuery(void *stream) { return taken() ? SUCCESS : NOT_READY; }

code ncclGetVersion(int *version) { *version = 22703; return 0; }
code ncclGetUniqueId(struct unique *id) { memset(id, number("RANK"), sizeof *id); return 0; }
code ncclCommInitRank(void **comm, int ranks, struct unique id, int rank) {
    stop_at("join");
    *comm = &contexts[rank];
    for (int other = 0; other < ranks; other++) {
        struct end end = { "", 0, rank, other };
        if (other != rank) leave(&end);
    }
    for (int other = 0; other < ranks; other++) {
        struct end end = { &handles, 0, other, rank };
        while (other != rank && !take(&end)) usleep(1000);
    }
    return id.bytes[0] == 0 ? 0 : 3; /* the identifier of the first */
}
code ncclCommInitAll(void **comms, int count, const int *devices) { return 3; }
code ncclCommDestroy(void *comm) { return 0; }
code ncclCommAbort(void *comm) {
    while (getenv("LATER")) pause();
    return 0;
}
code ncclCommGetAsyncError(void *comm, int *error) { *error = 0; return 0; }
code ncclGroupStart(void) { sends = 0; return 0; }
code ncclSend(void *at, size_t bytes, int kind, int to, void *comm, void *stream) {
    sent[sends++] = (struct end){ at, bytes, (char *)comm - contexts, to };
    return 0;
}
code ncclRecv(void *at, size_t bytes, int kind, int from, void *comm, void *stream) {
    awaited[receives++] = (struct end){ at, bytes, from, (char *)comm - contexts };
    return 0;
}
code ncclGroupEnd(void) {
    char own[16];
    snprintf(own, sizeof own, "%d", groups++);
    stop_at(own);
    for (int at = 0; at < sends; at++) leave(&sent[at]);
    while (!taken() && !getenv("LATER")) usleep(1000);
    return 0;
}
const char *ncclGetErrorString(code error) { return "refused"; }

#define DONE(name) code name(void) { return SUCCESS; }
#define NEVER(name) code name(void) { return NOT_SUPPORTED; }
DONE(cuDevicePrimaryCtxRelease_v2) DONE(cuCtxSetCurrent) DONE(cuCtxPushCurrent_v2) DONE(cuCtxPopCurrent_v2)
DONE(cuCtxSynchronize) DONE(cuStreamSynchronize) DONE(cuStreamDestroy_v2) DONE(cuStreamWaitEvent)
DONE(cuStreamGetId) DONE(cuStreamGetCaptureInfo_v2)
DONE(cuEventDestroy_v2) DONE(cuEventSynchronize) DONE(cuEventRecord) DONE(cuEventQuery)
NEVER(cuCtxEnablePeerAccess) NEVER(cuMemcpyDtoDAsync_v2) NEVER(cuMemcpy2DAsync_v2)
NEVER(cuMemsetD8Async) NEVER(cuMemsetD16Async) NEVER(cuMemsetD32Async) NEVER(cuEventElapsedTime)
NEVER(cuStreamBeginCapture_v2) NEVER(cuStreamEndCapture) NEVER(cuGraphInstantiateWithFlags)
NEVER(cuGraphLaunch) NEVER(cuGraphExecDestroy) NEVER(cuGraphDestroy)
NEVER(cuModuleLoadDataEx) NEVER(cuModuleUnload) NEVER(cuModuleGetFunction) NEVER(cuLinkCreate_v2)
NEVER(cuLinkAddData_v2) NEVER(cuLinkComplete) NEVER(cuLinkDestroy) NEVER(cuFuncGetParamInfo)
NEVER(cuFuncGetAttribute) NEVER(cuFuncSetAttribute) NEVER(cuLaunchKernelEx)
NEVER(cuOccupancyMaxActiveBlocksPerMultiprocessor) NEVER(cuOccupancyMaxActiveClusters)
NEVER(cuTensorMapEncodeTiled)
