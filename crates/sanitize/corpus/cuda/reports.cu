// Defects that users of other projects have reported, each retold in a small kernel of our own, wrong and
// right. The comment names the project and what was seen there.
#include "ptx.cuh"

// vLLM, attention of latent vectors by CUTLASS: hangs under load. Warps that have no work for a tile only
// arrive at the barrier behind it, go on to the next tile and arrive again in the same phase.
// @run report_empty_tiles_wrong arch=90 grid=1 block=64 args="in:i32[8]=zeros out:i32[8]" finds=any
// @run report_empty_tiles_right arch=90 grid=1 block=64 args="in:i32[8]=zeros out:i32[8]"
template <bool right> __device__ void empty_tiles(const int* work, int* out) {
    __shared__ int row[32];
    int lane = threadIdx.x % 32;
    for (int tile = 0; tile < 8; tile++) {
        if (threadIdx.x < 32) {
            row[lane] = tile + lane;
            named_sync(1, 64);
            if (lane == 0) out[tile] = row[31];
            __syncwarp();
        } else if (work[tile] == 0) {
            if (right) named_sync(1, 64);
            else named_arrive(1, 64);
        } else {
            int sum = row[lane] + 1;
            named_sync(1, 64);
            row[lane] = sum;
        }
    }
}
extern "C" __global__ void report_empty_tiles_wrong(const int* work, int* out) { empty_tiles<false>(work, out); }
extern "C" __global__ void report_empty_tiles_right(const int* work, int* out) { empty_tiles<true>(work, out); }

// vLLM, its own all-reduce: garbled text. The second stage reads what other ranks have written without a
// release before their signal. (Ranks are blocks here.)
// @run report_two_stages_wrong grid=4 block=64 args="in:f32[4,64] inout:f32[4,64]=zeros inout:i32[4]=zeros out:f32[4,64]" finds=E1017
// @run report_two_stages_right grid=4 block=64 args="in:f32[4,64] inout:f32[4,64]=zeros inout:i32[4]=zeros out:f32[4,64]"
template <bool right> __device__ void two_stages(const float* in, float* between, u32* signals, float* out) {
    int rank = blockIdx.x, at = threadIdx.x;
    if (at < 16) {
        float sum = 0;
        for (int other = 0; other < 4; other++) sum += in[other * 64 + rank * 16 + at];
        between[rank * 16 + at] = sum;
    }
    __syncthreads();
    if (at == 0) {
        if (right) __threadfence_system();
        *(volatile u32*)&signals[rank] = 1;
    }
    if (at < 4) {
        while (*(volatile u32*)&signals[at] == 0) {}
        __threadfence_system();
    }
    __syncthreads();
    out[rank * 64 + at] = between[at];
}
extern "C" __global__ void report_two_stages_wrong(const float* in, float* between, u32* signals, float* out) { two_stages<false>(in, between, signals, out); }
extern "C" __global__ void report_two_stages_right(const float* in, float* between, u32* signals, float* out) { two_stages<true>(in, between, signals, out); }

// vLLM, the same all-reduce: hangs. A rank resets its counter for the next launch while others still spin on
// it; a counter that only rises does not need that.
// @run report_reset_counter_wrong grid=3 block=32 args="inout:i32[1]=zeros out:i32[3]" finds=any schedules=8
// @run report_reset_counter_right grid=3 block=32 args="inout:i32[1]=zeros out:i32[3]" schedules=8
template <bool right> __device__ void reset_counter(u32* counter, int* out) {
    if (threadIdx.x == 0) {
        atomicAdd(counter, 1);
        while (*(volatile u32*)counter < gridDim.x) {}
        if (!right && blockIdx.x == 0) *(volatile u32*)counter = 0;
        out[blockIdx.x] = 1;
    }
}
extern "C" __global__ void report_reset_counter_wrong(u32* counter, int* out) { reset_counter<false>(counter, out); }
extern "C" __global__ void report_reset_counter_right(u32* counter, int* out) { reset_counter<true>(counter, out); }

// vLLM and SGLang, alignment of blocks for experts: garbled text. Counters in shared memory are set to zero and
// counted up without a barrier between.
// @run report_zeroed_counters_wrong grid=1 block=128 args="in:i32[512]=range out:i32[16]" finds=E1016
// @run report_zeroed_counters_right grid=1 block=128 args="in:i32[512]=range out:i32[16]"
template <bool right> __device__ void zeroed_counters(const int* experts, int* out) {
    __shared__ int counts[16];
    if (threadIdx.x < 16) counts[threadIdx.x] = 0;
    if (right) __syncthreads();
    for (int at = threadIdx.x; at < 512; at += 128) atomicAdd(&counts[experts[at] & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x] = counts[threadIdx.x];
}
extern "C" __global__ void report_zeroed_counters_wrong(const int* experts, int* out) { zeroed_counters<false>(experts, out); }
extern "C" __global__ void report_zeroed_counters_right(const int* experts, int* out) { zeroed_counters<true>(experts, out); }

// SGLang, the same kernel in a later form: threads search in prefixes that other threads have yet to write.
// @run report_prefix_search_wrong grid=1 block=64 args="in:i32[64]=range out:i32[64]" finds=E1016
// @run report_prefix_search_right grid=1 block=64 args="in:i32[64]=range out:i32[64]"
template <bool right> __device__ void prefix_search(const int* in, int* out) {
    __shared__ int scan[64], prefix[64];
    scan[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        int add = threadIdx.x >= step ? scan[threadIdx.x - step] : 0;
        __syncthreads();
        scan[threadIdx.x] += add;
        __syncthreads();
    }
    prefix[threadIdx.x] = scan[threadIdx.x];
    if (right) __syncthreads();
    int low = 0, high = 63, wanted = threadIdx.x * 30;
    while (low < high) {
        int middle = (low + high) / 2;
        if (prefix[middle] >= wanted) high = middle;
        else low = middle + 1;
    }
    out[threadIdx.x] = low;
}
extern "C" __global__ void report_prefix_search_wrong(const int* in, int* out) { prefix_search<false>(in, out); }
extern "C" __global__ void report_prefix_search_right(const int* in, int* out) { prefix_search<true>(in, out); }

// SGLang, the fused gate of experts: sums of zero. The lane that wins writes to global memory and lane 0 reads
// it, without a barrier of the warp.
// @run report_gate_wrong grid=1 block=32 args="in:f32[32] inout:f32[1]=zeros out:f32[32]" finds=E1016
// @run report_gate_right grid=1 block=32 args="in:f32[32] inout:f32[1]=zeros out:f32[32]"
template <bool right> __device__ void gate(const float* in, float* best, float* out) {
    float value = in[threadIdx.x], most = value;
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    u32 winners = __ballot_sync(~0u, value == most);
    int winner = 31 - __clz(winners);
    if (threadIdx.x == winner) best[0] = value;
    if (right) __syncwarp();
    if (threadIdx.x == (winner ^ 1)) out[0] = best[0];
    out[threadIdx.x == (winner ^ 1) ? 0 : threadIdx.x == 0 ? (winner ^ 1) : threadIdx.x] = value;
}
extern "C" __global__ void report_gate_wrong(const float* in, float* best, float* out) { gate<false>(in, best, out); }
extern "C" __global__ void report_gate_right(const float* in, float* best, float* out) { gate<true>(in, best, out); }

// FlashInfer, sampling: tokens outside the vocabulary. The storage of a reduction is used again in the next
// iteration without a barrier.
// @run report_reused_storage_wrong grid=1 block=128 args="in:f32[1024] out:f32[8]" finds=E1016
// @run report_reused_storage_right grid=1 block=128 args="in:f32[1024] out:f32[8]"
template <bool right> __device__ void reused_storage(const float* in, float* out) {
    __shared__ float warps[4];
    for (int chunk = 0; chunk < 8; chunk++) {
        float most = in[chunk * 128 + threadIdx.x];
        for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = most;
        __syncthreads();
        if (threadIdx.x == 0) out[chunk] = fmaxf(fmaxf(warps[0], warps[1]), fmaxf(warps[2], warps[3]));
        if (right) __syncthreads();
    }
}
extern "C" __global__ void report_reused_storage_wrong(const float* in, float* out) { reused_storage<false>(in, out); }
extern "C" __global__ void report_reused_storage_right(const float* in, float* out) { reused_storage<true>(in, out); }

// FlashInfer, the best k by a filter: a histogram is cleared for the next round while others still read it.
// @run report_cleared_histogram_wrong grid=1 block=128 args="in:i32[128]=range out:i32[128]" finds=E1016
// @run report_cleared_histogram_right grid=1 block=128 args="in:i32[128]=range out:i32[128]"
template <bool right> __device__ void cleared_histogram(const int* in, int* out) {
    __shared__ int histogram[17];
    int rest = 40;
    for (int round = 0; round < 4; round++) {
        if (threadIdx.x < 17) histogram[threadIdx.x] = 0;
        __syncthreads();
        atomicAdd(&histogram[in[threadIdx.x] >> 2 * round & 15], 1);
        __syncthreads();
        rest -= histogram[round + 1];
        if (right) __syncthreads();
    }
    out[threadIdx.x] = rest;
}
extern "C" __global__ void report_cleared_histogram_wrong(const int* in, int* out) { cleared_histogram<false>(in, out); }
extern "C" __global__ void report_cleared_histogram_right(const int* in, int* out) { cleared_histogram<true>(in, out); }

// FlashInfer, sampling of the best p: hangs for some inputs. A barrier stands in a condition that differs
// between threads.
// @run report_conditional_barrier_wrong grid=1 block=64 args="in:i32[64]=range out:i32[64]" finds=any
// @run report_conditional_barrier_right grid=1 block=64 args="in:i32[64]=range out:i32[64]"
template <bool right> __device__ void conditional_barrier(const int* in, int* out) {
    __shared__ int row[64];
    int sum = in[threadIdx.x];
    for (int round = 0; round < 3; round++) {
        row[threadIdx.x] = sum;
        __syncthreads();
        if (right || sum > 20) {
            sum += row[(threadIdx.x + 1) % 64];
            __syncthreads();
        }
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void report_conditional_barrier_wrong(const int* in, int* out) { conditional_barrier<false>(in, out); }
extern "C" __global__ void report_conditional_barrier_right(const int* in, int* out) { conditional_barrier<true>(in, out); }

// CUTLASS, a pipeline that mixes TMA and cp.async: stale operands. Threads tell the consumers with an arrival
// that does not wait for their copies.
// @run report_mixed_copies_wrong arch=90 grid=1 block=64 args="in:f32[128] in:f32[128] out:f32[128]" finds=E1018
// @run report_mixed_copies_right arch=90 grid=1 block=64 args="in:f32[128] in:f32[128] out:f32[128]"
template <bool right> __device__ void mixed_copies(const float* a, const float* b, float* out) {
    __shared__ __align__(128) float left[128], side[128];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 33);
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            barrier_expect(&full, 512);
            bulk_load(left, a, 512, &full);
        }
        copy_async16(&side[4 * threadIdx.x], &b[4 * threadIdx.x]);
        copy_commit();
        if (right) copy_wait<0>();
        barrier_arrive(&full);
        copy_wait<0>();
    } else {
        barrier_wait(&full, 0);
        for (int at = threadIdx.x - 32; at < 128; at += 32) out[at] = left[at] + side[127 - at];
    }
}
extern "C" __global__ void report_mixed_copies_wrong(const float* a, const float* b, float* out) { mixed_copies<false>(a, b, out); }
extern "C" __global__ void report_mixed_copies_right(const float* a, const float* b, float* out) { mixed_copies<true>(a, b, out); }

// TileLang, a pipeline of one iteration: hangs. The barrier expects bytes, and nobody arrives there.
// @run report_expect_without_arrival_wrong arch=90 grid=1 block=64 args="in:f32[64] out:f32[64]" finds=any
// @run report_expect_without_arrival_right arch=90 grid=1 block=64 args="in:f32[64] out:f32[64]"
template <bool right> __device__ void expect_without_arrival(const float* in, float* out) {
    __shared__ __align__(128) float row[64];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (right) barrier_expect(&full, 256);
        else asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(shared_address(&full)) : "memory");
        bulk_load(row, in, 256, &full);
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = row[threadIdx.x];
}
extern "C" __global__ void report_expect_without_arrival_wrong(const float* in, float* out) { expect_without_arrival<false>(in, out); }
extern "C" __global__ void report_expect_without_arrival_right(const float* in, float* out) { expect_without_arrival<true>(in, out); }

// Triton: memory corruption now and then. Shared memory of a barrier is used for data before the barrier is
// invalidated.
// @run report_reused_barrier_wrong arch=90 grid=1 block=64 args="in:f32[64] out:f32[64]" finds=E1031
// @run report_reused_barrier_right arch=90 grid=1 block=64 args="in:f32[64] out:f32[64]"
template <bool right> __device__ void reused_barrier(const float* in, float* out) {
    __shared__ __align__(128) float row[64];
    __shared__ __align__(8) float scratch[64];
    u64* full = (u64*)scratch;
    if (threadIdx.x == 0) {
        barrier_init(full, 1);
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(full, 256);
        bulk_load(row, in, 256, full);
    }
    barrier_wait(full, 0);
    __syncthreads();
    if (right) {
        if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(full)) : "memory");
        __syncthreads();
    }
    scratch[threadIdx.x] = row[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = scratch[63 - threadIdx.x];
}
extern "C" __global__ void report_reused_barrier_wrong(const float* in, float* out) { reused_barrier<false>(in, out); }
extern "C" __global__ void report_reused_barrier_right(const float* in, float* out) { reused_barrier<true>(in, out); }
