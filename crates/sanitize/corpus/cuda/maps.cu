// Tensor maps: loads, stores, reductions and multicast copies of boxes, right and wrong.
#include "ptx.cuh"

struct alignas(64) Map {
    u64 words[16];
};

__device__ inline void box_load(void* to, const Map* map, int column, int row, u64* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     shared_address(to)),
                 "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier)) : "memory");
}
__device__ inline void box_load_all(void* to, const Map* map, int column, int row, u64* barrier, u16 mask) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], "
                 "[%4], %5;" ::"r"(shared_address(to)),
                 "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier)), "h"(mask) : "memory");
}
__device__ inline void box_store(const Map* map, const void* from, int column, int row) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row),
                 "r"(shared_address(from)) : "memory");
}
__device__ inline void box_add(const Map* map, const void* from, int column, int row) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column),
                 "r"(row), "r"(shared_address(from)) : "memory");
}

// A block doubles its box of 16 rows of 32 numbers, which reaches over the edge of 40 rows.
// @run map_double_right arch=90 grid=2,3 block=128 args="map:in:f32[40,64]:box=16x32 map:out:f32[40,64]:box=16x32" schedules=4
// @run map_no_wait_wrong arch=90 grid=2,3 block=128 args="map:in:f32[40,64]:box=16x32 map:out:f32[40,64]:box=16x32" finds=E1018,E1020
// @run map_no_fence_wrong arch=90 grid=2,3 block=128 args="map:in:f32[40,64]:box=16x32 map:out:f32[40,64]:box=16x32" finds=E1019
// @run map_no_barrier_wrong arch=90 grid=2,3 block=128 args="map:in:f32[40,64]:box=16x32 map:out:f32[40,64]:box=16x32" finds=any
// @run map_open_store_wrong arch=90 grid=2,3 block=128 args="map:in:f32[40,64]:box=16x32 map:out:f32[40,64]:box=16x32" finds=E1020
// @run map_few_bytes_wrong arch=90 grid=2,3 block=128 args="map:in:f32[40,64]:box=16x32 map:out:f32[40,64]:box=16x32" finds=any
template <bool waits, bool fences, bool meets, bool ends> __device__ void doubled(const Map* in, const Map* out, u32 bytes) {
    __shared__ alignas(128) float box[16 * 32];
    __shared__ u64 full;
    int column = 32 * blockIdx.x, row = 16 * blockIdx.y;
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
        barrier_expect(&full, bytes);
        box_load(box, in, column, row, &full);
    }
    __syncthreads();
    if (waits) barrier_wait(&full, 0);
    for (int at = threadIdx.x; at < 16 * 32; at += 128) box[at] *= 2;
    if (fences) proxy_fence();
    if (meets) __syncthreads();
    if (threadIdx.x == 0) {
        box_store(out, box, column, row);
        bulk_commit();
        if (ends) bulk_wait<0>();
    }
}
extern "C" __global__ void map_double_right(const __grid_constant__ Map in, const __grid_constant__ Map out) {
    doubled<true, true, true, true>(&in, &out, 2048);
}
extern "C" __global__ void map_no_wait_wrong(const __grid_constant__ Map in, const __grid_constant__ Map out) {
    doubled<false, true, true, true>(&in, &out, 2048);
}
extern "C" __global__ void map_no_fence_wrong(const __grid_constant__ Map in, const __grid_constant__ Map out) {
    doubled<true, false, true, true>(&in, &out, 2048);
}
extern "C" __global__ void map_no_barrier_wrong(const __grid_constant__ Map in, const __grid_constant__ Map out) {
    doubled<true, true, false, true>(&in, &out, 2048);
}
extern "C" __global__ void map_open_store_wrong(const __grid_constant__ Map in, const __grid_constant__ Map out) {
    doubled<true, true, true, false>(&in, &out, 2048);
}
// Boxes at the edge have all their bytes too: those outside are filled.
extern "C" __global__ void map_few_bytes_wrong(const __grid_constant__ Map in, const __grid_constant__ Map out) {
    doubled<true, true, true, true>(&in, &out, 40 - 16 * blockIdx.y < 16 ? 1024 : 2048);
}

// All blocks add the same box to one place of global memory.
// @run map_add_right arch=90 grid=4 block=128 args="map:inout:f32[16,32]=zeros:box=16x32 in:f32[4,512]" schedules=4
// @run map_store_over_wrong arch=90 grid=4 block=128 args="map:inout:f32[16,32]=zeros:box=16x32 in:f32[4,512]" finds=E1017,E1018
template <bool adds> __device__ void summed(const Map* out, const float* in) {
    __shared__ alignas(128) float box[512];
    for (int at = threadIdx.x; at < 512; at += 128) box[at] = in[512 * blockIdx.x + at];
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (adds)
            box_add(out, box, 0, 0);
        else
            box_store(out, box, 0, 0);
        bulk_commit();
        bulk_wait<0>();
    }
}
extern "C" __global__ void map_add_right(const __grid_constant__ Map out, const float* in) { summed<true>(&out, in); }
extern "C" __global__ void map_store_over_wrong(const __grid_constant__ Map out, const float* in) { summed<false>(&out, in); }

// Each of two blocks of a cluster loads half of a box into both.
// @run map_multicast_right arch=90 grid=2 block=64 cluster=2 args="map:in:f32[16,32]:box=8x32 out:f32[2,512]" schedules=4
// @run map_multicast_early_wrong arch=90 grid=2 block=64 cluster=2 args="map:in:f32[16,32]:box=8x32 out:f32[2,512]" finds=any
template <bool meets> __device__ void shared_by_two(const Map* in, float* out) {
    __shared__ alignas(128) float box[512];
    __shared__ u64 full;
    u32 rank = cluster_rank();
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        barrier_fence();
        barrier_expect(&full, 2048);
    }
    // The other block's barrier must be there before a copy arrives at it.
    if (meets) cluster_sync();
    if (threadIdx.x == 0) box_load_all(box + 256 * rank, in, 0, 8 * rank, &full, 3);
    __syncthreads();
    barrier_wait(&full, 0);
    for (int at = threadIdx.x; at < 512; at += 64) out[512 * rank + at] = box[at];
    cluster_sync();
}
extern "C" __global__ void map_multicast_right(const __grid_constant__ Map in, float* out) { shared_by_two<true>(&in, out); }
extern "C" __global__ void map_multicast_early_wrong(const __grid_constant__ Map in, float* out) { shared_by_two<false>(&in, out); }
