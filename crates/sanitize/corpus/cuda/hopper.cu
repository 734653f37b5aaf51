// Right kernels of sm_90: mbarriers, bulk copies, wgmma, clusters.
#include "ptx.cuh"

// Stages of bulk loads, by the parity of the whole ring.
// @run ring_2 arch=90 grid=2 block=160 args="in:f32[2,2048] out:f32[2,128]"
// @run ring_3 arch=90 grid=2 block=160 args="in:f32[2,2048] out:f32[2,128]"
// @run ring_4 arch=90 grid=2 block=160 args="in:f32[2,2048] out:f32[2,128]"
template <int stages> __device__ void ring(const float* in, float* out) {
    __shared__ __align__(128) float buffers[stages][128];
    __shared__ u64 full[stages], empty[stages];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 4);
        }
        barrier_fence();
    }
    __syncthreads();
    in += blockIdx.x * 2048;
    int stage = 0, phase = 0;
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128)
            for (int tile = 0; tile < 16; tile++) {
                barrier_wait(&empty[stage], phase ^ 1);
                barrier_expect(&full[stage], 512);
                bulk_load(buffers[stage], in + 128 * tile, 512, &full[stage]);
                if (++stage == stages) stage = 0, phase ^= 1;
            }
    } else {
        float sum = 0;
        for (int tile = 0; tile < 16; tile++) {
            barrier_wait(&full[stage], phase);
            sum += buffers[stage][(threadIdx.x * 5 + 3) % 128];
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(&empty[stage]);
            if (++stage == stages) stage = 0, phase ^= 1;
        }
        out[blockIdx.x * 128 + threadIdx.x] = sum;
    }
}
extern "C" __global__ void ring_2(const float* in, float* out) { ring<2>(in, out); }
extern "C" __global__ void ring_3(const float* in, float* out) { ring<3>(in, out); }
extern "C" __global__ void ring_4(const float* in, float* out) { ring<4>(in, out); }

// The same threads load and use: the next stage is loaded when all have used it.
// @run ring_one_role arch=90 grid=1 block=128 args="in:f32[1024] out:f32[128]"
extern "C" __global__ void ring_one_role(const float* in, float* out) {
    __shared__ __align__(128) float buffers[2][128];
    __shared__ u64 full[2];
    auto load = [&](int tile) {
        barrier_expect(&full[tile % 2], 512);
        bulk_load(buffers[tile % 2], in + 128 * tile, 512, &full[tile % 2]);
    };
    if (threadIdx.x == 0) {
        barrier_init(&full[0], 1);
        barrier_init(&full[1], 1);
        barrier_fence();
        load(0);
        load(1);
    }
    __syncthreads();
    float sum = 0;
    for (int tile = 0; tile < 8; tile++) {
        barrier_wait(&full[tile % 2], tile / 2 & 1);
        sum += buffers[tile % 2][127 - threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0 && tile + 2 < 8) load(tile + 2);
    }
    out[threadIdx.x] = sum;
}

// Bulk stores from two buffers, one in flight while the other is filled.
// @run store_two_buffers arch=90 grid=2 block=128 args="in:f32[2,1024] out:f32[2,1024]"
extern "C" __global__ void store_two_buffers(const float* in, float* out) {
    __shared__ __align__(128) float buffers[2][128];
    in += blockIdx.x * 1024, out += blockIdx.x * 1024;
    for (int tile = 0; tile < 8; tile++) {
        if (threadIdx.x == 0) bulk_wait_read<1>();
        __syncthreads();
        buffers[tile % 2][threadIdx.x] = 3 * in[tile * 128 + threadIdx.x];
        proxy_fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            bulk_store(out + tile * 128, buffers[tile % 2], 512);
            bulk_commit();
        }
    }
    if (threadIdx.x == 0) bulk_wait<0>();
}
// @run bulk_reduce arch=90 grid=4 block=128 args="in:f32[4,128] inout:f32[128]=zeros"
extern "C" __global__ void bulk_reduce(const float* in, float* out) {
    __shared__ __align__(128) float row[128];
    row[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_add(out, row, 512);
        bulk_commit();
        bulk_wait<0>();
    }
}
// A load, an operation in place, a store of the same bytes.
// @run load_store arch=90 grid=4 block=128 args="in:f32[4,128] out:f32[4,128]"
extern "C" __global__ void load_store(const float* in, float* out) {
    __shared__ __align__(128) float row[128];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
        barrier_expect(&full, 512);
        bulk_load(row, in + blockIdx.x * 128, 512, &full);
    }
    __syncthreads();
    barrier_wait(&full, 0);
    row[threadIdx.x] = 2 * row[threadIdx.x];
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(out + blockIdx.x * 128, row, 512);
        bulk_commit();
        bulk_wait<0>();
    }
}
// Copies by cp.async that arrive at a barrier in memory.
// @run copies_arrive arch=90 grid=1 block=128 args="in:f32[512] out:f32[512]"
extern "C" __global__ void copies_arrive(const float* in, float* out) {
    __shared__ __align__(16) float row[512];
    __shared__ u64 full;
    if (threadIdx.x == 0) barrier_init(&full, 128);
    __syncthreads();
    copy_async16(&row[4 * threadIdx.x], &in[4 * threadIdx.x]);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&full)) : "memory");
    barrier_wait(&full, 0);
    for (int at = threadIdx.x; at < 512; at += 128) out[at] = row[511 - at];
}

// wgmma: with a group of products in flight, fed by a ring of bulk loads.
// @run wgmma_ring arch=90a grid=1 block=256 args="in:f16[8,1024] in:f16[8,128] out:f32[512]"
extern "C" __global__ void wgmma_ring(const u16* a, const u16* b, float* out) {
    __shared__ __align__(128) u16 left[3][1024];
    __shared__ __align__(128) u16 right[3][128];
    __shared__ u64 full[3], empty[3];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 3; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 128);
        }
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 128)
            for (int tile = 0; tile < 8; tile++) {
                int stage = tile % 3;
                barrier_wait(&empty[stage], (tile / 3 & 1) ^ 1);
                barrier_expect(&full[stage], 2048 + 256);
                bulk_load(left[stage], a + 1024 * tile, 2048, &full[stage]);
                bulk_load(right[stage], b + 128 * tile, 256, &full[stage]);
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sum[4] = {0, 0, 0, 0};
        for (int tile = 0; tile < 8; tile++) {
            int stage = tile % 3;
            barrier_wait(&full[stage], tile / 3 & 1);
            wgmma_fence();
            wgmma_64x8x16(sum, descriptor(left[stage], 128, 256), descriptor(right[stage], 128, 256));
            wgmma_commit();
            // The product before this one is over: its stage is empty.
            wgmma_wait<1>();
            if (tile > 0) barrier_arrive(&empty[(tile - 1) % 3]);
        }
        wgmma_wait<0>();
        for (int at = 0; at < 4; at++) out[4 * threadIdx.x + at] = sum[at];
    }
}
// Two warpgroups that take turns at the products (ping-pong), by barriers of an order.
// @run ping_pong arch=90a grid=1 block=384 args="in:f16[8,1024] in:f16[8,128] out:f32[2,512]"
extern "C" __global__ void ping_pong(const u16* a, const u16* b, float* out) {
    __shared__ __align__(128) u16 left[2][1024];
    __shared__ __align__(128) u16 right[2][128];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 1);
        }
        barrier_fence();
    }
    __syncthreads();
    int group = threadIdx.x / 128;
    if (group == 2) {
        if (threadIdx.x == 256)
            for (int tile = 0; tile < 8; tile++) {
                int stage = tile % 2;
                barrier_wait(&empty[stage], (tile / 2 & 1) ^ 1);
                barrier_expect(&full[stage], 2048 + 256);
                bulk_load(left[stage], a + 1024 * tile, 2048, &full[stage]);
                bulk_load(right[stage], b + 128 * tile, 256, &full[stage]);
            }
        return;
    }
    // The first group has the even tiles, and the second one waits for its turn.
    float sum[4] = {0, 0, 0, 0};
    if (group == 1) named_arrive(2, 256);
    for (int tile = group; tile < 8; tile += 2) {
        named_sync(2 + group, 256);
        barrier_wait(&full[tile % 2], tile / 2 & 1);
        wgmma_fence();
        wgmma_64x8x16(sum, descriptor(left[tile % 2], 128, 256), descriptor(right[tile % 2], 128, 256));
        wgmma_commit();
        if (tile < 7) named_arrive(3 - group, 256);
        wgmma_wait<0>();
        if (tile + 2 < 8) {
            // All of the group are ready with the stage.
            named_sync(4 + group, 128);
            if (threadIdx.x % 128 == 0) barrier_arrive(&empty[tile % 2]);
        }
    }
    for (int at = 0; at < 4; at++) out[group * 512 + 4 * (threadIdx.x % 128) + at] = sum[at];
}

// A product of a warpgroup is over for its four warps at once: one thread of them tells the producer.
// @run wgmma_one_tells arch=90a grid=1 block=256 args="in:f16[8,1024] in:f16[8,128] out:f32[512]" schedules=4
extern "C" __global__ void wgmma_one_tells(const u16* a, const u16* b, float* out) {
    __shared__ __align__(128) u16 left[2][1024];
    __shared__ __align__(128) u16 right[2][128];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 1);
        }
        barrier_fence();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128)
            for (int tile = 0; tile < 8; tile++) {
                int stage = tile % 2;
                barrier_wait(&empty[stage], (tile / 2 & 1) ^ 1);
                barrier_expect(&full[stage], 2048 + 256);
                bulk_load(left[stage], a + 1024 * tile, 2048, &full[stage]);
                bulk_load(right[stage], b + 128 * tile, 256, &full[stage]);
            }
    } else {
        float sum[4] = {0, 0, 0, 0};
        for (int tile = 0; tile < 8; tile++) {
            int stage = tile % 2;
            barrier_wait(&full[stage], tile / 2 & 1);
            wgmma_fence();
            wgmma_64x8x16(sum, descriptor(left[stage], 128, 256), descriptor(right[stage], 128, 256));
            wgmma_commit();
            wgmma_wait<0>();
            if (threadIdx.x == 0) barrier_arrive(&empty[stage]);
        }
        for (int at = 0; at < 4; at++) out[4 * threadIdx.x + at] = sum[at];
    }
}

// Clusters: a sum over distributed shared memory, writes into it, and barriers of another block.
// @run cluster_sum arch=90 grid=4 block=64 cluster=2 args="in:f32[256] out:f32[2]"
extern "C" __global__ void cluster_sum(const float* in, float* out) {
    __shared__ float row[64];
    __shared__ float sum;
    row[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (threadIdx.x < step) row[threadIdx.x] += row[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) sum = row[0];
    cluster_sync();
    if (cluster_rank() == 0 && threadIdx.x == 0) out[blockIdx.x / 2] = sum + remote_load(remote(&sum, 1));
    cluster_sync();
}
// @run cluster_exchange arch=90 grid=4 block=64 cluster=4 args="in:f32[256] out:f32[256]"
extern "C" __global__ void cluster_exchange(const float* in, float* out) {
    __shared__ float row[64];
    cluster_sync();
    remote_store(remote(&row[63 - threadIdx.x], (cluster_rank() + 1) % 4), in[blockIdx.x * 64 + threadIdx.x]);
    cluster_sync();
    out[blockIdx.x * 64 + threadIdx.x] = row[threadIdx.x];
}
// @run cluster_begin_relaxed arch=90 grid=2 block=64 cluster=2 args="in:f32[128] out:f32[128]"
extern "C" __global__ void cluster_begin_relaxed(const float* in, float* out) {
    __shared__ float row[64];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 64);
        barrier_fence();
    }
    // What was initialised is published by its own fence.
    cluster_arrive_relaxed();
    cluster_wait();
    u32 other = cluster_rank() ^ 1;
    remote_store(remote(&row[threadIdx.x], other), in[blockIdx.x * 64 + threadIdx.x]);
    remote_arrive(remote(&full, other));
    barrier_wait_cluster(&full, 0);
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x];
    cluster_sync();
}
// @run cluster_split_phase arch=90 grid=2 block=64 cluster=2 args="in:f32[128] out:f32[128]"
extern "C" __global__ void cluster_split_phase(const float* in, float* out) {
    __shared__ float row[64];
    float value = in[blockIdx.x * 64 + threadIdx.x];
    row[threadIdx.x] = value;
    cluster_arrive();
    value = value * value;
    cluster_wait();
    out[blockIdx.x * 64 + threadIdx.x] = value + remote_load(remote(&row[threadIdx.x], cluster_rank() ^ 1));
    cluster_arrive();
    cluster_wait();
}
// A load that goes to both blocks of a cluster.
// @run multicast arch=90 grid=2 block=64 cluster=2 args="in:f32[64] out:f32[128]"
extern "C" __global__ void multicast(const float* in, float* out) {
    __shared__ __align__(128) float row[64];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
        barrier_expect(&full, 256);
    }
    cluster_sync();
    if (threadIdx.x == 0 && cluster_rank() == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
                         shared_address(row)),
                     "l"(in), "r"(256), "r"(shared_address(&full)), "h"((u16)3)
                     : "memory");
    barrier_wait(&full, 0);
    out[blockIdx.x * 64 + threadIdx.x] = row[threadIdx.x];
    cluster_sync();
}
// Shared memory of one block is copied to another in bulk.
// @run cluster_bulk arch=90 grid=2 block=64 cluster=2 args="in:f32[128] out:f32[128]"
extern "C" __global__ void cluster_bulk(const float* in, float* out) {
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
    cluster_sync();
}
// A persistent kernel: a producer takes tiles from a counter and tells the consumers through shared memory.
// @run dynamic_persistent arch=90 grid=2 block=64 args="in:f32[8,32] out:f32[8,32] inout:i32[1]=zeros"
extern "C" __global__ void dynamic_persistent(const float* in, float* out, u32* next) {
    __shared__ u32 tiles[2];
    __shared__ u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; stage++) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], 32);
        }
    }
    __syncthreads();
    if (threadIdx.x >= 32) {
        if (threadIdx.x == 32)
            for (int at = 0;; at++) {
                barrier_wait(&empty[at % 2], (at / 2 & 1) ^ 1);
                u32 tile = atomicAdd(next, 1);
                tiles[at % 2] = tile;
                barrier_arrive(&full[at % 2]);
                if (tile >= 8) break;
            }
    } else {
        for (int at = 0;; at++) {
            barrier_wait(&full[at % 2], at / 2 & 1);
            u32 tile = tiles[at % 2];
            barrier_arrive(&empty[at % 2]);
            if (tile >= 8) break;
            out[tile * 32 + threadIdx.x] = 2 * in[tile * 32 + threadIdx.x];
        }
    }
}
