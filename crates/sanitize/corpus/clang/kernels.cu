// Kernels as clang compiles them, without headers of the CUDA toolkit.
#include "device.h"

// Pointers, a bound and a loop with a stride.
// @run clang_add grid=4 block=64 args="in:f32[1000]=range in:f32[1000]=range out:f32[1000] i32=1000" expect="2: a0 + a1"
extern "C" __global__ void clang_add(const float* a, const float* b, float* out, int count) {
    for (int i = place(); i < count; i += 4 * 64) out[i] = a[i] + b[i];
}

// @run clang_add_wrong grid=4 block=64 args="in:f32[250]=range in:f32[250]=range out:f32[250] i32=250" finds=E1010
extern "C" __global__ void clang_add_wrong(const float* a, const float* b, float* out, int count) {
    int i = place();
    if (i <= count) out[i] = a[i] + b[i];
}

// A tile in shared memory.
template <bool waits> __device__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][33];
    int x = threads::x(), y = threads::y(), column = blocks::x() * 32, row = blocks::y() * 32;
    for (int i = 0; i < 32; i += 8) tile[y + i][x] = in[(row + y + i) * 64 + column + x];
    if (waits) barrier();
    for (int i = 0; i < 32; i += 8) out[(column + y + i) * 64 + row + x] = tile[x][y + i];
}
// @run clang_transpose grid=2,2 block=32,8 args="in:f32[64,64]=range out:f32[64,64]" expect="1: a0.T"
extern "C" __global__ void clang_transpose(const float* in, float* out) { transpose<true>(in, out); }
// @run clang_transpose_wrong grid=2,2 block=32,8 args="in:f32[64,64]=range out:f32[64,64]" finds=E1016
extern "C" __global__ void clang_transpose_wrong(const float* in, float* out) { transpose<false>(in, out); }

// A sum by shuffles in the warps, by shared memory among them.
// @run clang_sum grid=4 block=256 args="in:i32[4,256]=range out:i32[4]" expect="1: a0.sum(1, dtype='i4')"
extern "C" __global__ void clang_sum(const int* in, int* out) {
    __shared__ int sums[8];
    int value = in[place()], lane = threads::x() % 32;
    for (int apart = 16; apart; apart /= 2) value += __nvvm_shfl_sync_down_i32(~0u, value, apart, 31);
    if (lane == 0) sums[threads::x() / 32] = value;
    barrier();
    if (threads::x() < 8) {
        value = sums[lane];
        for (int apart = 4; apart; apart /= 2) value += __nvvm_shfl_sync_down_i32(0xff, value, apart, 31);
        if (lane == 0) out[blocks::x()] = value;
    }
}

// Atomic additions to shared and to global memory; the first bins are dynamic shared memory.
extern __shared__ unsigned bins[];
template <bool atomic> __device__ void count(const unsigned* in, unsigned* out) {
    if (threads::x() < 16) bins[threads::x()] = 0;
    barrier();
    if (atomic) __atomic_fetch_add(&bins[in[place()] % 16], 1, __ATOMIC_RELAXED);
    else bins[in[place()] % 16]++;
    barrier();
    if (threads::x() < 16) __atomic_fetch_add(&out[threads::x()], bins[threads::x()], __ATOMIC_RELAXED);
}
// @run clang_histogram grid=4 block=128 shared=64 args="in:u32[512]=range inout:u32[16]=zeros" expect="1: np.full(16, 32, 'u4')"
extern "C" __global__ void clang_histogram(const unsigned* in, unsigned* out) { count<true>(in, out); }
// @run clang_histogram_wrong grid=4 block=128 shared=64 args="in:u32[512]=random inout:u32[16]=zeros" finds=E1016
extern "C" __global__ void clang_histogram_wrong(const unsigned* in, unsigned* out) { count<false>(in, out); }

// A tensor core product by inline PTX: 16 x 8 of 16 x 16 and 16 x 8 halves.
// @run clang_product arch=80 grid=1 block=32 args="in:f16[16,16]=ones in:f16[8,16]=ones out:f32[16,8]" expect="2: np.full((16, 8), 16, 'f4')"
extern "C" __global__ void clang_product(const unsigned* a, const unsigned* b, float* d) {
    int group = threads::x() / 4, lane = threads::x() % 4;
    float sum[4] = {0, 0, 0, 0};
    unsigned left[4] = {a[group * 8 + lane], a[(group + 8) * 8 + lane], a[group * 8 + lane + 4], a[(group + 8) * 8 + lane + 4]};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(b[group * 8 + lane]), "r"(b[group * 8 + lane + 4]));
    for (int i = 0; i < 4; i++) d[(group + i / 2 * 8) * 8 + lane * 2 + i % 2] = sum[i];
}

// Two stages of cp.async.
template <int pending> __device__ void stages(const int* in, int* out) {
    __shared__ __attribute__((aligned(16))) int tile[2][128];
    copy_16(&tile[0][4 * threads::x()], in + 4 * threads::x());
    commit();
    int sum = 0;
    for (int step = 0; step < 4; step++) {
        if (step < 3) copy_16(&tile[(step + 1) % 2][4 * threads::x()], in + 128 * (step + 1) + 4 * threads::x());
        commit();
        wait<pending>();
        barrier();
        for (int i = 0; i < 4; i++) sum += tile[step % 2][threads::x() + 32 * i];
        barrier();
    }
    out[threads::x()] = sum;
}
// @run clang_stages arch=80 grid=1 block=32 args="in:i32[16,32]=range out:i32[32]" expect="1: a0.sum(0, dtype='i4')"
extern "C" __global__ void clang_stages(const int* in, int* out) { stages<1>(in, out); }
// @run clang_stages_wrong arch=80 grid=1 block=32 args="in:i32[16,32]=range out:i32[32]" finds=E1018
extern "C" __global__ void clang_stages_wrong(const int* in, int* out) { stages<2>(in, out); }

// Functions that call themselves, and through pointers.
__device__ __noinline int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline int twice(int n) { return 2 * n; }
// @run clang_calls grid=1 block=32 args="out:i32[32]" expect="0: np.array([v for k in range(16) for v in (2 * k * 2, int(round(((1 + 5 ** .5) / 2) ** (k % 8) / 5 ** .5)))], 'i4')"
extern "C" __global__ void clang_calls(int* out) {
    int i = threads::x();
    int (*function)(int) = i % 2 ? fibonacci : twice;
    out[i] = function(i % 2 ? i / 2 % 8 : i / 2 * 2);
}

// A switch with work in each case.
// @run clang_switch grid=1 block=64 args="in:u32[64]=range out:u32[64]" expect="1: np.array([{0: 3 * k, 1: k ^ 77, 2: k * k, 3: k + 1, 4: k << 3, 5: 1000 - k, 6: k % 5, 7: k // 3}[k % 8] for k in range(64)], 'u4')"
extern "C" __global__ void clang_switch(const unsigned* in, unsigned* out) {
    unsigned k = in[place()], value = 0;
    switch (k % 8) {
    case 0: value = 3 * k; asm volatile("// 0"); break;
    case 1: value = k ^ 77; asm volatile("// 1"); break;
    case 2: value = k * k; asm volatile("// 2"); break;
    case 3: value = k + 1; asm volatile("// 3"); break;
    case 4: value = k << 3; asm volatile("// 4"); break;
    case 5: value = 1000 - k; asm volatile("// 5"); break;
    case 6: value = k % 5; asm volatile("// 6"); break;
    case 7: value = k / 3; asm volatile("// 7"); break;
    }
    out[place()] = value;
}

// What is printed, and an array of a thread whose size is known at run time.
extern "C" __device__ int vprintf(const char* format, const void* values);
// @run clang_prints grid=1 block=2 args="in:i32[2]=range out:i32[2]" expect="1: 10 * a0 + 5"
extern "C" __global__ void clang_prints(const int* in, int* out) {
    int i = threads::x(), own[8];
    for (int k = 0; k < 8; k++) own[k] = in[i] * k;
    int given[1] = {in[i]};
    vprintf("thread %d\n", given);
    // The places 1 to 4, in an order that depends on an input.
    int sum = 5;
    for (int k = 0; k < 4; k++) sum += own[(k + in[i]) % 4 + 1];
    out[i] = sum;
}
