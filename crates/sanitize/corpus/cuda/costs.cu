// Kernels whose counts are compared with a profiler's: scripts/sanitize-costs-on-device.
#include "ptx.cuh"

// Copies: in a row, by vectors, with a stride, one element beside a sector.
// @run cost_copy grid=8 block=256 args="in:f32[2048] out:f32[2048]"
extern "C" __global__ void cost_copy(const float* in, float* out) {
    int at = blockIdx.x * 256 + threadIdx.x;
    out[at] = in[at];
}
// @run cost_copy_vectors grid=8 block=256 args="in:f32[8192] out:f32[8192]"
extern "C" __global__ void cost_copy_vectors(const float4* in, float4* out) {
    int at = blockIdx.x * 256 + threadIdx.x;
    out[at] = in[at];
}
// @run cost_copy_strided grid=8 block=256 args="in:f32[16384] out:f32[2048]"
extern "C" __global__ void cost_copy_strided(const float* in, float* out) {
    int at = blockIdx.x * 256 + threadIdx.x;
    out[at] = in[at * 8];
}
// @run cost_copy_beside grid=8 block=256 args="in:f32[2049] out:f32[2048]"
extern "C" __global__ void cost_copy_beside(const float* in, float* out) {
    int at = blockIdx.x * 256 + threadIdx.x;
    out[at] = in[at + 1];
}

// Transposes: by columns of global memory, and by a tile whose columns lie in one bank.
// @run cost_transpose_columns grid=4,16 block=32,8 args="in:f32[128,128] out:f32[128,128]"
extern "C" __global__ void cost_transpose_columns(const float* in, float* out) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[x * 128 + y] = in[y * 128 + x];
}
// @run cost_transpose_banks grid=4,4 block=32,8 args="in:f32[128,128] out:f32[128,128]"
extern "C" __global__ void cost_transpose_banks(const float* in, float* out) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * 128 + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) out[(y + row) * 128 + x] = tile[threadIdx.x][threadIdx.y + row];
}

// One load or store of a warp at any addresses: lanes with a negative offset take no part.
// @run probe_load_1 grid=1 block=32 args="in:i32[32]=zeros out:i32[32]"
// @run probe_load_2 grid=1 block=32 args="in:i32[32]=zeros out:i32[32]"
// @run probe_load_4 grid=1 block=32 args="in:i32[32]=zeros out:i32[32]"
template <int words> __device__ u32 load_shared(u32 at) {
    u32 a = 0, b = 0, c = 0, d = 0;
    if (words == 1) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(at) : "memory");
    if (words == 2) asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
    if (words == 4)
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
    return a + b + c + d;
}
template <int words> __device__ void probe_load(const int* offsets, int* out) {
    __shared__ __align__(16) int memory[4096];
    for (int at = threadIdx.x; at < 4096; at += 32) memory[at] = at;
    __syncthreads();
    int offset = offsets[threadIdx.x], value = 0;
    if (offset >= 0) value = load_shared<words>(shared_address(memory) + offset);
    out[threadIdx.x] = value;
}
extern "C" __global__ void probe_load_1(const int* offsets, int* out) { probe_load<1>(offsets, out); }
extern "C" __global__ void probe_load_2(const int* offsets, int* out) { probe_load<2>(offsets, out); }
extern "C" __global__ void probe_load_4(const int* offsets, int* out) { probe_load<4>(offsets, out); }

// @run probe_store_1 grid=1 block=32 args="in:i32[32]=zeros out:i32[32]"
// @run probe_store_2 grid=1 block=32 args="in:i32[32]=zeros out:i32[32]"
// @run probe_store_4 grid=1 block=32 args="in:i32[32]=zeros out:i32[32]"
template <int words> __device__ void probe_store(const int* offsets, int* out) {
    __shared__ __align__(16) int memory[4096];
    int offset = offsets[threadIdx.x], value = 7;
    u32 at = shared_address(memory) + offset;
    if (offset >= 0) {
        if (words == 1) asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
        if (words == 2) asm volatile("st.shared.v2.u32 [%0], {%1, %1};" ::"r"(at), "r"(value) : "memory");
        if (words == 4) asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at), "r"(value) : "memory");
    }
    out[threadIdx.x] = offset;
}
extern "C" __global__ void probe_store_1(const int* offsets, int* out) { probe_store<1>(offsets, out); }
extern "C" __global__ void probe_store_2(const int* offsets, int* out) { probe_store<2>(offsets, out); }
extern "C" __global__ void probe_store_4(const int* offsets, int* out) { probe_store<4>(offsets, out); }

// @run probe_add grid=1 block=32 args="in:i32[32]=zeros out:i32[32]"
extern "C" __global__ void probe_add(const int* offsets, int* out) {
    __shared__ int memory[4096];
    for (int at = threadIdx.x; at < 4096; at += 32) memory[at] = at;
    __syncthreads();
    int offset = offsets[threadIdx.x];
    if (offset >= 0) atomicAdd(&memory[offset / 4], 1);
    __syncthreads();
    out[threadIdx.x] = memory[threadIdx.x];
}

// @run probe_global_1 grid=1 block=32 args="in:i32[32]=zeros in:i32[4096] out:i32[32]"
// @run probe_global_2 grid=1 block=32 args="in:i32[32]=zeros in:i32[4096] out:i32[32]"
// @run probe_global_4 grid=1 block=32 args="in:i32[32]=zeros in:i32[4096] out:i32[32]"
template <int words> __device__ void probe_global(const int* offsets, const char* in, int* out) {
    int offset = offsets[threadIdx.x], a = 0, b = 0, c = 0, d = 0;
    if (offset >= 0) {
        const char* at = in + offset;
        if (words == 1) asm volatile("ld.global.u32 %0, [%1];" : "=r"(a) : "l"(at) : "memory");
        if (words == 2) asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(at) : "memory");
        if (words == 4)
            asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(at) : "memory");
    }
    out[threadIdx.x] = a + b + c + d;
}
extern "C" __global__ void probe_global_1(const int* offsets, const char* in, int* out) { probe_global<1>(offsets, in, out); }
extern "C" __global__ void probe_global_2(const int* offsets, const char* in, int* out) { probe_global<2>(offsets, in, out); }
extern "C" __global__ void probe_global_4(const int* offsets, const char* in, int* out) { probe_global<4>(offsets, in, out); }

// Cycles of shared memory for a load, by the clock: eight warps load again and again.
// @run probe_cycles_1 grid=1 block=256 args="in:i32[32]=zeros out:i64[8]"
// @run probe_cycles_2 grid=1 block=256 args="in:i32[32]=zeros out:i64[8]"
// @run probe_cycles_4 grid=1 block=256 args="in:i32[32]=zeros out:i64[8]"
template <int words> __device__ void probe_cycles(const int* offsets, long long* out) {
    __shared__ __align__(16) int memory[4096];
    for (int at = threadIdx.x; at < 4096; at += 256) memory[at] = at;
    int offset = offsets[threadIdx.x % 32];
    __syncthreads();
    u32 at = shared_address(memory) + offset, sum = 0;
    long long start = clock64();
    if (offset >= 0) {
        for (int turn = 0; turn < 16; turn++) {
#pragma unroll
            for (int step = 0; step < 8; step++) sum += load_shared<words>(at);
        }
    }
    __syncwarp();
    long long end = clock64();
    if (sum == 0x12345678) end = 0;
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = end - start;
}
extern "C" __global__ void probe_cycles_1(const int* offsets, long long* out) { probe_cycles<1>(offsets, out); }
extern "C" __global__ void probe_cycles_2(const int* offsets, long long* out) { probe_cycles<2>(offsets, out); }
extern "C" __global__ void probe_cycles_4(const int* offsets, long long* out) { probe_cycles<4>(offsets, out); }
