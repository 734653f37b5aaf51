// Each defect once, beside the same kernel without it.
//
// A line `@run` names an entry, its launch and what is to be found: `finds=` gives codes, and without it
// nothing may be found.
#include "ptx.cuh"

// Threads read what their neighbours wrote, without a barrier.
// @run no_barrier_wrong grid=2 block=128 args="in:f32[256] out:f32[256]" finds=E1016
// @run no_barrier_right grid=2 block=128 args="in:f32[256] out:f32[256]"
template <bool right> __device__ void no_barrier(const float* in, float* out) {
    __shared__ float row[128];
    int at = threadIdx.x;
    row[at] = in[blockIdx.x * 128 + at];
    if (right) __syncthreads();
    out[blockIdx.x * 128 + at] = row[127 - at];
}
extern "C" __global__ void no_barrier_wrong(const float* in, float* out) { no_barrier<false>(in, out); }
extern "C" __global__ void no_barrier_right(const float* in, float* out) { no_barrier<true>(in, out); }

// The buffer of a loop is filled again while others read it.
// @run no_second_barrier_wrong grid=1 block=128 args="in:f32[1024] out:f32[128]" finds=E1016
// @run no_second_barrier_right grid=1 block=128 args="in:f32[1024] out:f32[128]"
template <bool right> __device__ void no_second_barrier(const float* in, float* out) {
    __shared__ float row[128];
    float sum = 0;
    for (int tile = 0; tile < 8; tile++) {
        row[threadIdx.x] = in[tile * 128 + threadIdx.x];
        __syncthreads();
        sum += row[127 - threadIdx.x] + row[(threadIdx.x + 33) % 128];
        if (right) __syncthreads();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void no_second_barrier_wrong(const float* in, float* out) { no_second_barrier<false>(in, out); }
extern "C" __global__ void no_second_barrier_right(const float* in, float* out) { no_second_barrier<true>(in, out); }

// Copies that are not waited for.
// @run no_wait_for_copies_wrong arch=80 grid=1 block=128 args="in:f32[512] out:f32[512]" finds=E1018,E1020
// @run no_wait_for_copies_right arch=80 grid=1 block=128 args="in:f32[512] out:f32[512]"
template <bool right> __device__ void no_wait_for_copies(const float* in, float* out) {
    __shared__ __align__(16) float row[512];
    copy_async16(&row[4 * threadIdx.x], &in[4 * threadIdx.x]);
    copy_commit();
    if (right) copy_wait<0>();
    __syncthreads();
    for (int at = threadIdx.x; at < 512; at += 128) out[at] = row[511 - at];
}
extern "C" __global__ void no_wait_for_copies_wrong(const float* in, float* out) { no_wait_for_copies<false>(in, out); }
extern "C" __global__ void no_wait_for_copies_right(const float* in, float* out) { no_wait_for_copies<true>(in, out); }

// A pipeline of copies that waits for one group too few.
// @run one_group_too_few_wrong arch=80 grid=1 block=128 args="in:f32[4096] out:f32[128]" finds=E1018
// @run one_group_too_few_right arch=80 grid=1 block=128 args="in:f32[4096] out:f32[128]"
template <int pending> __device__ void one_group_too_few(const float* in, float* out) {
    __shared__ __align__(16) float stages[4][512];
    for (int tile = 0; tile < 3; tile++) {
        copy_async16(&stages[tile][4 * threadIdx.x], &in[512 * tile + 4 * threadIdx.x]);
        copy_commit();
    }
    float sum = 0;
    for (int tile = 0; tile < 8; tile++) {
        copy_wait<pending>();
        __syncthreads();
        for (int at = 0; at < 4; at++) sum += stages[tile % 4][(threadIdx.x * 4 + at + 37) % 512];
        if (tile + 3 < 8) copy_async16(&stages[(tile + 3) % 4][4 * threadIdx.x], &in[512 * (tile + 3) + 4 * threadIdx.x]);
        copy_commit();
    }
    copy_wait<0>();
    out[threadIdx.x] = sum;
}
extern "C" __global__ void one_group_too_few_wrong(const float* in, float* out) { one_group_too_few<3>(in, out); }
extern "C" __global__ void one_group_too_few_right(const float* in, float* out) { one_group_too_few<2>(in, out); }

// A bulk load that is not waited for.
// @run no_wait_for_bulk_wrong arch=90 grid=1 block=128 args="in:f32[128] out:f32[128]" finds=E1018,E1020
// @run no_wait_for_bulk_right arch=90 grid=1 block=128 args="in:f32[128] out:f32[128]"
template <bool right> __device__ void no_wait_for_bulk(const float* in, float* out) {
    __shared__ __align__(128) float row[128];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(&full, 512);
        bulk_load(row, in, 512, &full);
    }
    if (right) barrier_wait(&full, 0);
    out[threadIdx.x] = row[threadIdx.x];
}
extern "C" __global__ void no_wait_for_bulk_wrong(const float* in, float* out) { no_wait_for_bulk<false>(in, out); }
extern "C" __global__ void no_wait_for_bulk_right(const float* in, float* out) { no_wait_for_bulk<true>(in, out); }

// Lanes exchange through shared memory without meeting.
// @run no_syncwarp_wrong grid=1 block=64 args="in:f32[64] out:f32[64]" finds=E1016
// @run no_syncwarp_right grid=1 block=64 args="in:f32[64] out:f32[64]"
template <bool right> __device__ void no_syncwarp(const float* in, float* out) {
    __shared__ float row[64];
    row[threadIdx.x] = in[threadIdx.x];
    if (right) __syncwarp();
    out[threadIdx.x] = row[threadIdx.x ^ 1];
}
extern "C" __global__ void no_syncwarp_wrong(const float* in, float* out) { no_syncwarp<false>(in, out); }
extern "C" __global__ void no_syncwarp_right(const float* in, float* out) { no_syncwarp<true>(in, out); }

// The sum of a warp with neither volatile nor a barrier of the warp.
// @run warp_sum_wrong grid=1 block=32 args="in:f32[32] out:f32[1]" finds=E1016
// @run warp_sum_right grid=1 block=32 args="in:f32[32] out:f32[1]"
template <bool right> __device__ void warp_sum(const float* in, float* out) {
    __shared__ float row[32];
    int at = threadIdx.x;
    row[at] = in[at];
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) {
        float other = at < step ? row[at + step] : 0;
        if (right) __syncwarp();
        if (at < step) row[at] += other;
        if (right) __syncwarp();
    }
    if (at == 0) out[0] = row[0];
}
extern "C" __global__ void warp_sum_wrong(const float* in, float* out) { warp_sum<false>(in, out); }
extern "C" __global__ void warp_sum_right(const float* in, float* out) { warp_sum<true>(in, out); }

// A barrier in a branch that not all threads take, before one that all take.
// @run barrier_in_branch_wrong grid=1 block=128 args="in:f32[128] out:f32[128]" finds=any
// @run barrier_in_branch_right grid=1 block=128 args="in:f32[128] out:f32[128]"
template <bool right> __device__ void barrier_in_branch(const float* in, float* out) {
    __shared__ float row[128];
    row[threadIdx.x] = in[threadIdx.x];
    if (right) __syncthreads();
    if (threadIdx.x < 40) {
        if (!right) __syncthreads();
        out[threadIdx.x] = row[127 - threadIdx.x];
    }
    __syncthreads();
    if (threadIdx.x >= 40) out[threadIdx.x] = row[threadIdx.x - 40];
}
extern "C" __global__ void barrier_in_branch_wrong(const float* in, float* out) { barrier_in_branch<false>(in, out); }
extern "C" __global__ void barrier_in_branch_right(const float* in, float* out) { barrier_in_branch<true>(in, out); }

// Warps wait at two different barriers for each other.
// @run crossed_barriers_wrong grid=1 block=64 args="out:i32[64]" finds=any
// @run crossed_barriers_right grid=1 block=64 args="out:i32[64]"
template <bool right> __device__ void crossed_barriers(int* out) {
    bool second = threadIdx.x >= 32;
    named_sync(right || !second ? 1 : 2, 64);
    named_sync(right || !second ? 2 : 1, 64);
    out[threadIdx.x] = threadIdx.x;
}
extern "C" __global__ void crossed_barriers_wrong(int* out) { crossed_barriers<false>(out); }
extern "C" __global__ void crossed_barriers_right(int* out) { crossed_barriers<true>(out); }

// A named barrier that counts more threads than come.
// @run barrier_count_wrong grid=1 block=96 args="out:i32[96]" finds=any
// @run barrier_count_right grid=1 block=96 args="out:i32[96]"
template <int count> __device__ void barrier_count(int* out) {
    __shared__ int row[64];
    if (threadIdx.x < 64) {
        row[threadIdx.x] = threadIdx.x;
        named_sync(1, count);
        out[threadIdx.x] = row[63 - threadIdx.x];
    } else {
        out[threadIdx.x] = 0;
    }
}
extern "C" __global__ void barrier_count_wrong(int* out) { barrier_count<96>(out); }
extern "C" __global__ void barrier_count_right(int* out) { barrier_count<64>(out); }

// The last block reads behind the end.
// @run past_the_end_wrong grid=4 block=128 args="in:f32[500] out:f32[500] i32=500" finds=E1010
// @run past_the_end_right grid=4 block=128 args="in:f32[500] out:f32[500] i32=500"
template <bool right> __device__ void past_the_end(const float* in, float* out, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    float value = !right || at < count ? in[at] : 0;
    // The comparison needs the value, so the compiler cannot move the load behind it.
    if (at < count + (value > 1e30f)) out[at] = 2 * value;
}
extern "C" __global__ void past_the_end_wrong(const float* in, float* out, int count) { past_the_end<false>(in, out, count); }
extern "C" __global__ void past_the_end_right(const float* in, float* out, int count) { past_the_end<true>(in, out, count); }

// A write one element before the beginning.
// @run before_the_beginning_wrong grid=1 block=128 args="in:f32[128] out:f32[128]" finds=E1010
// @run before_the_beginning_right grid=1 block=128 args="in:f32[128] out:f32[128]"
template <bool right> __device__ void before_the_beginning(const float* in, float* out) {
    int at = threadIdx.x;
    if (!right || at > 0) out[at - 1] = in[at];
}
extern "C" __global__ void before_the_beginning_wrong(const float* in, float* out) { before_the_beginning<false>(in, out); }
extern "C" __global__ void before_the_beginning_right(const float* in, float* out) { before_the_beginning<true>(in, out); }

// An index behind the shared memory of the block.
// @run past_shared_wrong grid=1 block=128 shared=512 args="in:f32[128] out:f32[128] i32=128" finds=E1010
// @run past_shared_right grid=1 block=128 shared=512 args="in:f32[128] out:f32[128] i32=127"
extern "C" __global__ void past_shared_wrong(const float* in, float* out, int last) {
    extern __shared__ float row[];
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = row[last - threadIdx.x];
}
extern "C" __global__ void past_shared_right(const float* in, float* out, int last) {
    extern __shared__ float row[];
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = row[last - threadIdx.x];
}

// A vector that does not begin at a multiple of its bytes.
// @run misaligned_wrong grid=1 block=32 args="in:f32[132] out:f32[128] i32=1" finds=E1011
// @run misaligned_right grid=1 block=32 args="in:f32[132] out:f32[128] i32=4"
__device__ void misaligned(const float* in, float* out, int offset) {
    float4 value = *(const float4*)(in + offset + 4 * threadIdx.x);
    *(float4*)(out + 4 * threadIdx.x) = value;
}
extern "C" __global__ void misaligned_wrong(const float* in, float* out, int offset) { misaligned(in, out, offset); }
extern "C" __global__ void misaligned_right(const float* in, float* out, int offset) { misaligned(in, out, offset); }

// A barrier expects other bytes than come.
// @run too_many_bytes_wrong arch=90 grid=1 block=128 args="in:f32[128] out:f32[128] i32=768" finds=any
// @run too_few_bytes_wrong arch=90 grid=1 block=128 args="in:f32[128] out:f32[128] i32=256" finds=any
// @run bytes_right arch=90 grid=1 block=128 args="in:f32[128] out:f32[128] i32=512"
__device__ void bytes(const float* in, float* out, int expected) {
    __shared__ __align__(128) float row[128];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(&full, expected);
        bulk_load(row, in, 256, &full);
        bulk_load(row + 64, in + 64, 256, &full);
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = row[threadIdx.x];
}
extern "C" __global__ void too_many_bytes_wrong(const float* in, float* out, int expected) { bytes(in, out, expected); }
extern "C" __global__ void too_few_bytes_wrong(const float* in, float* out, int expected) { bytes(in, out, expected); }
extern "C" __global__ void bytes_right(const float* in, float* out, int expected) { bytes(in, out, expected); }

// The producer of a pipeline fills a stage that consumers may still read.
// @run no_wait_for_empty_wrong arch=90 grid=1 block=160 args="in:f32[1024] out:f32[128]" finds=any
// @run no_wait_for_empty_right arch=90 grid=1 block=160 args="in:f32[1024] out:f32[128]"
template <bool right> __device__ void no_wait_for_empty(const float* in, float* out) {
    __shared__ __align__(128) float stages[2][128];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 128);
        }
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) {
            for (int tile = 0; tile < 8; tile++) {
                int stage = tile % 2;
                if (right) barrier_wait(&empty[stage], (tile / 2 & 1) ^ 1);
                barrier_expect(&full[stage], 512);
                bulk_load(stages[stage], in + 128 * tile, 512, &full[stage]);
            }
        }
    } else {
        float sum = 0;
        for (int tile = 0; tile < 8; tile++) {
            int stage = tile % 2;
            barrier_wait(&full[stage], tile / 2 & 1);
            sum += stages[stage][127 - threadIdx.x];
            barrier_arrive(&empty[stage]);
        }
        out[threadIdx.x] = sum;
    }
}
extern "C" __global__ void no_wait_for_empty_wrong(const float* in, float* out) { no_wait_for_empty<false>(in, out); }
extern "C" __global__ void no_wait_for_empty_right(const float* in, float* out) { no_wait_for_empty<true>(in, out); }

// The consumers wait for the phase that has passed: with the parity of the producer.
// @run passed_phase_wrong arch=90 grid=1 block=160 args="in:f32[1024] out:f32[128]" finds=any
// @run passed_phase_right arch=90 grid=1 block=160 args="in:f32[1024] out:f32[128]"
template <int flip> __device__ void passed_phase(const float* in, float* out) {
    __shared__ __align__(128) float stages[2][128];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 4);
        }
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x == 128) {
        for (int tile = 0; tile < 8; tile++) {
            int stage = tile % 2;
            barrier_wait(&empty[stage], (tile / 2 & 1) ^ 1);
            barrier_expect(&full[stage], 512);
            bulk_load(stages[stage], in + 128 * tile, 512, &full[stage]);
        }
    } else if (threadIdx.x < 128) {
        float sum = 0;
        for (int tile = 0; tile < 8; tile++) {
            int stage = tile % 2;
            barrier_wait(&full[stage], (tile / 2 & 1) ^ flip);
            sum += stages[stage][127 - threadIdx.x];
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&empty[stage]);
        }
        out[threadIdx.x] = sum;
    }
}
extern "C" __global__ void passed_phase_wrong(const float* in, float* out) { passed_phase<1>(in, out); }
extern "C" __global__ void passed_phase_right(const float* in, float* out) { passed_phase<0>(in, out); }

// Threads wait for a phase, and nothing keeps the next one from being over before they look.
// @run missed_phase_wrong arch=90 grid=1 block=64 args="in:f32[64] out:f32[64]" finds=E1042
// @run missed_phase_right arch=90 grid=1 block=64 args="in:f32[64] out:f32[64]"
template <bool right> __device__ void missed_phase(const float* in, float* out) {
    __shared__ float row[2][32];
    __shared__ u64 ready, seen;
    if (threadIdx.x == 0) {
        barrier_init(&ready, 32);
        barrier_init(&seen, 32);
    }
    __syncthreads();
    for (int part = 0; part < 2; part++) {
        if (threadIdx.x < 32) {
            if (right && part > 0) barrier_wait(&seen, part - 1);
            if (!right && part > 0) {
                barrier_wait(&ready, part - 1);
                // Long enough, mostly.
                for (int turn = 0; turn < 2000; turn++) __nanosleep(100);
            }
            row[part][threadIdx.x] = in[32 * part + threadIdx.x];
            barrier_arrive(&ready);
        } else {
            barrier_wait(&ready, part);
            out[32 * part + threadIdx.x - 32] = row[part][63 - threadIdx.x];
            barrier_arrive(&seen);
        }
    }
}
extern "C" __global__ void missed_phase_wrong(const float* in, float* out) { missed_phase<false>(in, out); }
extern "C" __global__ void missed_phase_right(const float* in, float* out) { missed_phase<true>(in, out); }

// A thread arrives for the second phase and does not know that the first is over: if it is fast, it counts twice
// in the first.
// @run early_arrival_wrong arch=90 grid=1 block=64 args="in:f32[128] out:f32[64]" finds=E1042
// @run early_arrival_right arch=90 grid=1 block=64 args="in:f32[128] out:f32[64]"
template <bool right> __device__ void early_arrival(const float* in, float* out) {
    __shared__ float row[2][64];
    __shared__ u64 ready;
    if (threadIdx.x == 0) barrier_init(&ready, 64);
    __syncthreads();
    float sum = 0;
    for (int part = 0; part < 2; part++) {
        row[part][threadIdx.x] = in[64 * part + threadIdx.x];
        barrier_arrive(&ready);
        // The second half has no use for the first row, and waits for the second alone.
        if (right || part == 1 || threadIdx.x < 32) {
            barrier_wait(&ready, part);
            sum += row[part][63 - threadIdx.x];
        }
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void early_arrival_wrong(const float* in, float* out) { early_arrival<false>(in, out); }
extern "C" __global__ void early_arrival_right(const float* in, float* out) { early_arrival<true>(in, out); }

// Fewer arrivals than a phase counts, and more.
// @run too_few_arrivals_wrong arch=90 grid=1 block=128 args="out:i32[128] i32=129" finds=any
// @run arrivals_right arch=90 grid=1 block=128 args="out:i32[128] i32=128"
__device__ void arrivals(int* out, int count) {
    __shared__ int row[128];
    __shared__ u64 barrier;
    if (threadIdx.x == 0) barrier_init(&barrier, count);
    __syncthreads();
    row[threadIdx.x] = threadIdx.x;
    barrier_arrive(&barrier);
    barrier_wait(&barrier, 0);
    out[threadIdx.x] = row[127 - threadIdx.x];
}
extern "C" __global__ void too_few_arrivals_wrong(int* out, int count) { arrivals(out, count); }
extern "C" __global__ void arrivals_right(int* out, int count) { arrivals(out, count); }

// One lane arrives for its warp before the other lanes have written.
// @run arrival_for_others_wrong arch=90 grid=1 block=64 args="out:i32[32]" finds=E1016
// @run arrival_for_others_right arch=90 grid=1 block=64 args="out:i32[32]"
template <bool right> __device__ void arrival_for_others(int* out) {
    __shared__ int row[32];
    __shared__ u64 barrier;
    if (threadIdx.x == 0) barrier_init(&barrier, 1);
    __syncthreads();
    if (threadIdx.x < 32) {
        row[threadIdx.x] = threadIdx.x;
        if (right) __syncwarp();
        if (threadIdx.x == 0) barrier_arrive(&barrier);
    } else {
        barrier_wait(&barrier, 0);
        out[threadIdx.x - 32] = row[63 - threadIdx.x];
    }
}
extern "C" __global__ void arrival_for_others_wrong(int* out) { arrival_for_others<false>(out); }
extern "C" __global__ void arrival_for_others_right(int* out) { arrival_for_others<true>(out); }

// A barrier in memory that others use before they know of it.
// @run unpublished_barrier_wrong arch=90 grid=1 block=64 args="out:i32[64]" finds=any
// @run unpublished_barrier_right arch=90 grid=1 block=64 args="out:i32[64]"
template <bool right> __device__ void unpublished_barrier(int* out) {
    __shared__ u64 barrier;
    if (threadIdx.x == 0) barrier_init(&barrier, 64);
    if (right) __syncthreads();
    barrier_arrive(&barrier);
    barrier_wait(&barrier, 0);
    out[threadIdx.x] = threadIdx.x;
}
extern "C" __global__ void unpublished_barrier_wrong(int* out) { unpublished_barrier<false>(out); }
extern "C" __global__ void unpublished_barrier_right(int* out) { unpublished_barrier<true>(out); }

// A bulk store of what threads have written, without the fence of its proxy.
// @run no_proxy_fence_wrong arch=90 grid=2 block=128 args="in:f32[256] out:f32[256]" finds=E1019
// @run no_proxy_fence_right arch=90 grid=2 block=128 args="in:f32[256] out:f32[256]"
template <bool right> __device__ void no_proxy_fence(const float* in, float* out) {
    __shared__ __align__(128) float row[128];
    row[threadIdx.x] = 2 * in[blockIdx.x * 128 + threadIdx.x];
    if (right) proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out + blockIdx.x * 128, row, 512);
        bulk_commit();
        bulk_wait<0>();
    }
}
extern "C" __global__ void no_proxy_fence_wrong(const float* in, float* out) { no_proxy_fence<false>(in, out); }
extern "C" __global__ void no_proxy_fence_right(const float* in, float* out) { no_proxy_fence<true>(in, out); }

// Shared memory is written again before the bulk store has read it.
// @run rewritten_source_wrong arch=90 grid=1 block=128 args="in:f32[512] out:f32[512]" finds=E1018
// @run rewritten_source_right arch=90 grid=1 block=128 args="in:f32[512] out:f32[512]"
template <bool right> __device__ void rewritten_source(const float* in, float* out) {
    __shared__ __align__(128) float row[128];
    for (int tile = 0; tile < 4; tile++) {
        row[threadIdx.x] = 2 * in[tile * 128 + threadIdx.x];
        proxy_fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_store(out + tile * 128, row, 512);
            bulk_commit();
            if (right || tile == 3) bulk_wait_read<0>();
        }
        __syncthreads();
    }
}
extern "C" __global__ void rewritten_source_wrong(const float* in, float* out) { rewritten_source<false>(in, out); }
extern "C" __global__ void rewritten_source_right(const float* in, float* out) { rewritten_source<true>(in, out); }

// A block that ends while its bulk store reads.
// @run open_store_wrong arch=90 grid=1 block=128 args="in:f32[128] out:f32[128]" finds=E1020
// @run open_store_right arch=90 grid=1 block=128 args="in:f32[128] out:f32[128]"
template <bool right> __device__ void open_store(const float* in, float* out) {
    __shared__ __align__(128) float row[128];
    row[threadIdx.x] = in[threadIdx.x];
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out, row, 512);
        bulk_commit();
        if (right) bulk_wait_read<0>();
    }
}
extern "C" __global__ void open_store_wrong(const float* in, float* out) { open_store<false>(in, out); }
extern "C" __global__ void open_store_right(const float* in, float* out) { open_store<true>(in, out); }

// What threads wrote to global memory is loaded in bulk by the same block.
// @run no_global_fence_wrong arch=90 grid=1 block=128 args="in:f32[128] inout:f32[128] out:f32[128]" finds=E1019
// @run no_global_fence_right arch=90 grid=1 block=128 args="in:f32[128] inout:f32[128] out:f32[128]"
template <bool right> __device__ void no_global_fence(const float* in, float* between, float* out) {
    __shared__ __align__(128) float row[128];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
    }
    between[threadIdx.x] = in[threadIdx.x] + 1;
    if (right) proxy_fence_all();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (right) proxy_fence_all();
        barrier_expect(&full, 512);
        bulk_load(row, between, 512, &full);
    }
    barrier_wait(&full, 0);
    out[threadIdx.x] = row[127 - threadIdx.x];
}
extern "C" __global__ void no_global_fence_wrong(const float* in, float* between, float* out) { no_global_fence<false>(in, between, out); }
extern "C" __global__ void no_global_fence_right(const float* in, float* between, float* out) { no_global_fence<true>(in, between, out); }

// Two blocks write one element.
// @run two_writers_wrong grid=4 block=32 args="out:i32[64]" finds=E1017
// @run two_writers_right grid=4 block=32 args="out:i32[128]"
template <int step> __device__ void two_writers(int* out) { out[blockIdx.x * step + threadIdx.x] = blockIdx.x + 1; }
extern "C" __global__ void two_writers_wrong(int* out) { if (blockIdx.x < 3) two_writers<16>(out); }
extern "C" __global__ void two_writers_right(int* out) { two_writers<32>(out); }

// Shared memory that nobody has written.
// @run unwritten_shared_wrong grid=1 block=128 args="in:f32[128] out:f32[128]" finds=E1012
// @run unwritten_shared_right grid=1 block=128 args="in:f32[128] out:f32[128]"
template <bool right> __device__ void unwritten_shared(const float* in, float* out) {
    __shared__ float row[130];
    row[threadIdx.x + 1] = in[threadIdx.x];
    if (right && threadIdx.x < 2) row[129 * threadIdx.x] = 0;
    __syncthreads();
    out[threadIdx.x] = row[threadIdx.x] + row[threadIdx.x + 1] + row[threadIdx.x + 2];
}
extern "C" __global__ void unwritten_shared_wrong(const float* in, float* out) { unwritten_shared<false>(in, out); }
extern "C" __global__ void unwritten_shared_right(const float* in, float* out) { unwritten_shared<true>(in, out); }

// A sum that is added to memory without values.
// @run unwritten_global_wrong grid=1 block=32 args="in:f32[32] out:f32[1]" finds=E1012
// @run unwritten_global_right grid=1 block=32 args="in:f32[32] inout:f32[1]=zeros"
extern "C" __global__ void unwritten_global_wrong(const float* in, float* out) { atomicAdd(out, in[threadIdx.x]); }
extern "C" __global__ void unwritten_global_right(const float* in, float* out) { atomicAdd(out, in[threadIdx.x]); }

// The last block sums what the others wrote. Without a fence its reads may come first.
// @run count_without_fence_wrong grid=4 block=64 args="in:f32[256] inout:f32[4] inout:i32[1]=zeros out:f32[1]" finds=E1017
// @run count_with_fence_right grid=4 block=64 args="in:f32[256] inout:f32[4] inout:i32[1]=zeros out:f32[1]"
// @run count_narrow_fence_wrong grid=4 block=64 args="in:f32[256] inout:f32[4] inout:i32[1]=zeros out:f32[1]" finds=E1017
// @run count_acq_rel_right grid=4 block=64 args="in:f32[256] inout:f32[4] inout:i32[1]=zeros out:f32[1]"
template <int kind> __device__ void count_blocks(const float* in, float* parts, u32* counter, float* out) {
    __shared__ float row[64];
    __shared__ bool last;
    row[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (threadIdx.x < step) row[threadIdx.x] += row[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = row[0];
        if (kind == 1) __threadfence();
        if (kind == 2) __threadfence_block();
        u32 before = kind == 3 ? add_acq_rel(counter, 1) : atomicAdd(counter, 1);
        if (kind < 2) __threadfence();
        last = before == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int block = 0; block < gridDim.x; block++) sum += parts[block];
        out[0] = sum;
    }
}
extern "C" __global__ void count_without_fence_wrong(const float* in, float* parts, u32* counter, float* out) { count_blocks<0>(in, parts, counter, out); }
extern "C" __global__ void count_with_fence_right(const float* in, float* parts, u32* counter, float* out) { count_blocks<1>(in, parts, counter, out); }
extern "C" __global__ void count_narrow_fence_wrong(const float* in, float* parts, u32* counter, float* out) { count_blocks<2>(in, parts, counter, out); }
extern "C" __global__ void count_acq_rel_right(const float* in, float* parts, u32* counter, float* out) { count_blocks<3>(in, parts, counter, out); }

// A flag between two blocks: volatile without fences, a plain flag, an acquire that is missing.
// @run flag_without_fence_wrong grid=2 block=32 args="inout:f32[32]=zeros inout:i32[1]=zeros out:f32[32]" finds=E1017
// @run flag_without_acquire_wrong grid=2 block=32 args="inout:f32[32]=zeros inout:i32[1]=zeros out:f32[32]" finds=E1017
// @run flag_right grid=2 block=32 args="inout:f32[32]=zeros inout:i32[1]=zeros out:f32[32]"
// @run flag_fences_right grid=2 block=32 args="inout:f32[32]=zeros inout:i32[1]=zeros out:f32[32]"
template <int kind> __device__ void pass_by_flag(float* data, u32* flag, float* out) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __syncwarp();
        if (threadIdx.x == 0) {
            if (kind == 3) __threadfence();
            if (kind == 1 || kind == 2) store_release(flag, 1);
            else *(volatile u32*)flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            if (kind == 2) while (load_acquire(flag) == 0) {}
            else while (*(volatile u32*)flag == 0) {}
            if (kind == 3) __threadfence();
        }
        __syncwarp();
        out[threadIdx.x] = data[threadIdx.x];
    }
}
extern "C" __global__ void flag_without_fence_wrong(float* data, u32* flag, float* out) { pass_by_flag<0>(data, flag, out); }
extern "C" __global__ void flag_without_acquire_wrong(float* data, u32* flag, float* out) { pass_by_flag<1>(data, flag, out); }
extern "C" __global__ void flag_right(float* data, u32* flag, float* out) { pass_by_flag<2>(data, flag, out); }
extern "C" __global__ void flag_fences_right(float* data, u32* flag, float* out) { pass_by_flag<3>(data, flag, out); }

// A counter in global memory with atomic operations of the block alone.
// @run narrow_atomics_wrong grid=4 block=32 args="inout:i32[1]=zeros" finds=E1017
// @run narrow_atomics_right grid=4 block=32 args="inout:i32[1]=zeros"
extern "C" __global__ void narrow_atomics_wrong(int* counter) { atomicAdd_block(counter, 1); }
extern "C" __global__ void narrow_atomics_right(int* counter) { atomicAdd(counter, 1); }

// A plain increment beside an atomic one.
// @run mixed_increment_wrong grid=2 block=32 args="inout:i32[1]=zeros" finds=E1017
// @run mixed_increment_right grid=2 block=32 args="inout:i32[1]=zeros"
extern "C" __global__ void mixed_increment_wrong(int* counter) {
    if (blockIdx.x == 0) atomicAdd(counter, 1);
    else if (threadIdx.x == 0) *counter = *counter + 1;
}
extern "C" __global__ void mixed_increment_right(int* counter) {
    if (blockIdx.x == 0) atomicAdd(counter, 1);
    else if (threadIdx.x == 0) atomicAdd(counter, 1);
}

// A load through the cache that is not coherent, of what the same kernel writes.
// @run non_coherent_wrong grid=1 block=64 args="inout:f32[64] out:f32[64]" finds=E1044
// @run non_coherent_right grid=1 block=64 args="inout:f32[64] out:f32[64]"
template <bool right> __device__ void non_coherent(float* data, float* out) {
    data[threadIdx.x] += 1;
    __syncthreads();
    out[threadIdx.x] = right ? data[63 - threadIdx.x] : __ldg(&data[63 - threadIdx.x]);
}
extern "C" __global__ void non_coherent_wrong(float* data, float* out) { non_coherent<false>(data, out); }
extern "C" __global__ void non_coherent_right(float* data, float* out) { non_coherent<true>(data, out); }

// Blocks of a cluster: one reads from the other before it has begun, and one leaves while it is read.
// @run cluster_no_begin_wrong arch=90 grid=2 block=32 cluster=2 args="out:f32[64]" finds=any
// @run cluster_no_end_wrong arch=90 grid=2 block=32 cluster=2 args="out:f32[64]" finds=E1035
// @run cluster_right arch=90 grid=2 block=32 cluster=2 args="out:f32[64]"
template <bool begin, bool end> __device__ void neighbours(float* out) {
    __shared__ float row[32];
    row[threadIdx.x] = threadIdx.x + 100 * cluster_rank();
    if (begin) cluster_sync();
    out[blockIdx.x * 32 + threadIdx.x] = remote_load(remote(&row[31 - threadIdx.x], cluster_rank() ^ 1));
    if (end) cluster_sync();
}
extern "C" __global__ void cluster_no_begin_wrong(float* out) { neighbours<false, true>(out); }
extern "C" __global__ void cluster_no_end_wrong(float* out) { neighbours<true, false>(out); }
extern "C" __global__ void cluster_right(float* out) { neighbours<true, true>(out); }

// An accumulator that is read before the product is over, a product without its fence, an operand that
// was written without the fence of the proxy, and one that is overwritten while it is read.
// @run wgmma_no_wait_wrong arch=90a grid=1 block=128 args="in:f16[1024] in:f16[128] out:f32[512]" finds=any
// @run wgmma_no_fence_wrong arch=90a grid=1 block=128 args="in:f16[1024] in:f16[128] out:f32[512]" finds=E1033
// @run wgmma_no_proxy_fence_wrong arch=90a grid=1 block=128 args="in:f16[1024] in:f16[128] out:f32[512]" finds=E1019
// @run wgmma_overwritten_wrong arch=90a grid=1 block=128 args="in:f16[1024] in:f16[128] out:f32[512]" finds=E1018
// @run wgmma_right arch=90a grid=1 block=128 args="in:f16[1024] in:f16[128] out:f32[512]"
template <int kind> __device__ void product(const u16* a, const u16* b, float* out) {
    __shared__ __align__(128) u16 left[1024];
    __shared__ __align__(128) u16 right[128];
    for (int at = threadIdx.x; at < 1024; at += 128) left[at] = a[at];
    right[threadIdx.x] = b[threadIdx.x];
    if (kind != 2) proxy_fence();
    __syncthreads();
    float sum[4] = {0, 0, 0, 0};
    if (kind != 1) wgmma_fence();
    wgmma_64x8x16(sum, descriptor(left, 128, 256), descriptor(right, 128, 256));
    wgmma_commit();
    if (kind == 3) left[threadIdx.x] = 0;
    if (kind != 0) wgmma_wait<0>();
    for (int at = 0; at < 4; at++) out[4 * threadIdx.x + at] = sum[at];
    if (kind == 0) wgmma_wait<0>();
}
extern "C" __global__ void wgmma_no_wait_wrong(const u16* a, const u16* b, float* out) { product<0>(a, b, out); }
extern "C" __global__ void wgmma_no_fence_wrong(const u16* a, const u16* b, float* out) { product<1>(a, b, out); }
extern "C" __global__ void wgmma_no_proxy_fence_wrong(const u16* a, const u16* b, float* out) { product<2>(a, b, out); }
extern "C" __global__ void wgmma_overwritten_wrong(const u16* a, const u16* b, float* out) { product<3>(a, b, out); }
extern "C" __global__ void wgmma_right(const u16* a, const u16* b, float* out) { product<4>(a, b, out); }

// A result that depends on which block comes first.
// @run order_dependent_wrong grid=4 block=32 args="inout:i32[1]=zeros out:i32[4]" finds=E1028 schedules=4
// @run order_independent_right grid=4 block=32 args="inout:i32[1]=zeros out:i32[4]" schedules=4
extern "C" __global__ void order_dependent_wrong(int* counter, int* out) {
    if (threadIdx.x == 0) out[atomicAdd(counter, 1)] = blockIdx.x;
}
extern "C" __global__ void order_independent_right(int* counter, int* out) {
    if (threadIdx.x == 0) {
        atomicAdd(counter, 1);
        out[blockIdx.x] = blockIdx.x;
    }
}

// Warps read what one of them rewrites in place: right if the others drop what they have read.
// @run copies_used_wrong grid=1 block=64 args="inout:f32[32] out:f32[32]" finds=E1016
// @run copies_branched_wrong grid=1 block=64 args="inout:f32[32] inout:f32[32]=zeros" finds=E1016
// @run copies_dropped_right grid=1 block=64 args="inout:f32[32] out:f32[1]=zeros" schedules=4
template <int kind> __device__ void copies(float* x, float* out) {
    int lane = threadIdx.x % 32;
    float value = *(volatile float*)&x[lane], sum = value;
    for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x < 32) x[lane] = value / sum;
    if (kind == 1 && threadIdx.x >= 32) out[lane] = sum;
    if (kind == 2 && threadIdx.x >= 32 && sum > 7) __nanosleep(10);
}
extern "C" __global__ void copies_used_wrong(float* x, float* out) { copies<1>(x, out); }
extern "C" __global__ void copies_branched_wrong(float* x, float* out) { copies<2>(x, out); }
extern "C" __global__ void copies_dropped_right(float* x, float* out) { copies<0>(x, out); }

// A block copies its memory to its neighbour, and ends while the copy may still read it.
// @run cluster_copy_no_end_wrong arch=90 grid=2 block=64 cluster=2 args="in:f32[128] out:f32[128]" finds=E1035
// @run cluster_copy_no_arrival_wrong arch=90 grid=2 block=64 cluster=2 args="in:f32[128] out:f32[128]" finds=E1022
// @run cluster_copy_right arch=90 grid=2 block=64 cluster=2 args="in:f32[128] out:f32[128]"
template <int kind> __device__ void cluster_copy(const float* in, float* out) {
    __shared__ __align__(128) float mine[64], theirs[64];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
        barrier_expect(&full, 256);
    }
    mine[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    proxy_fence();
    cluster_sync();
    u32 other = cluster_rank() ^ 1;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(remote(theirs, other)),
                     "r"(shared_address(mine)), "r"(256), "r"(remote(&full, other))
                     : "memory");
    barrier_wait(&full, 0);
    out[blockIdx.x * 64 + threadIdx.x] = theirs[63 - threadIdx.x];
    if (kind == 0) cluster_arrive();
    if (kind < 2) cluster_wait();
}
extern "C" __global__ void cluster_copy_right(const float* in, float* out) { cluster_copy<0>(in, out); }
extern "C" __global__ void cluster_copy_no_arrival_wrong(const float* in, float* out) { cluster_copy<1>(in, out); }
extern "C" __global__ void cluster_copy_no_end_wrong(const float* in, float* out) { cluster_copy<2>(in, out); }
