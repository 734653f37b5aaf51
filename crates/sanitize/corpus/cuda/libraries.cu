// Right kernels that use what comes with CUDA: cooperative groups, libcu++ and CUB.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

// @run cg_tiles grid=2 block=128 args="in:i32[256] out:i32[256]"
extern "C" __global__ void cg_tiles(const int* in, int* out) {
    __shared__ int row[128];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int at = block.group_index().x * 128 + block.thread_rank();
    row[block.thread_rank()] = in[at];
    tile.sync();
    int next = row[tile.meta_group_rank() * 8 + (tile.thread_rank() + 1) % 8];
    int sum = cg::reduce(tile, next, cg::plus<int>());
    block.sync();
    row[127 - block.thread_rank()] = sum;
    cg::sync(block);
    out[at] = row[block.thread_rank()];
}
// @run cg_coalesced grid=2 block=128 args="in:i32[256] inout:i32[1]=zeros"
extern "C" __global__ void cg_coalesced(const int* in, int* count) {
    if (in[blockIdx.x * 128 + threadIdx.x] > 7) {
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(count, active.size());
    }
}
// @run cg_labeled grid=1 block=64 args="in:i32[64]=range out:i32[64]"
extern "C" __global__ void cg_labeled(const int* in, int* out) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    auto peers = cg::labeled_partition(tile, in[threadIdx.x] % 3);
    out[threadIdx.x] = cg::reduce(peers, in[threadIdx.x], cg::plus<int>());
}
// @run cg_copies arch=80 grid=2 block=128 args="in:f32[2,512] out:f32[2,512]"
extern "C" __global__ void cg_copies(const float* in, float* out) {
    __shared__ __align__(16) float row[512];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, row, in + blockIdx.x * 512, sizeof(row));
    cg::wait(block);
    for (int at = threadIdx.x; at < 512; at += 128) out[blockIdx.x * 512 + at] = row[511 - at];
}
// @run cg_cluster arch=90 grid=4 block=64 cluster=2 args="in:f32[256] out:f32[256]"
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void cg_cluster(const float* in, float* out) {
    __shared__ float row[64];
    auto cluster = cg::this_cluster();
    row[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    cluster.sync();
    const float* theirs = cluster.map_shared_rank(row, cluster.block_rank() ^ 1);
    out[blockIdx.x * 64 + threadIdx.x] = theirs[63 - threadIdx.x];
    cluster.sync();
}
#endif
// @run libcu_barrier arch=80 grid=1 block=64 args="in:f32[64] out:f32[64]"
extern "C" __global__ void libcu_barrier(const float* in, float* out) {
    __shared__ float row[64];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, 64);
    __syncthreads();
    for (int round = 0; round < 4; round++) {
        row[threadIdx.x] = in[threadIdx.x] + round;
        barrier.arrive_and_wait();
        float value = row[63 - threadIdx.x];
        barrier.arrive_and_wait();
        out[threadIdx.x] = value;
    }
}
// @run libcu_pipeline arch=80 grid=1 block=128 args="in:f32[1024] out:f32[128]"
extern "C" __global__ void libcu_pipeline(const float* in, float* out) {
    __shared__ __align__(16) float stages[2][128];
    auto block = cg::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipeline = cuda::make_pipeline(block, &state);
    float sum = 0;
    auto load = [&](int tile) {
        pipeline.producer_acquire();
        cuda::memcpy_async(block, stages[tile % 2], in + tile * 128, sizeof(float) * 128, pipeline);
        pipeline.producer_commit();
    };
    load(0);
    for (int tile = 0; tile < 8; tile++) {
        if (tile < 7) load(tile + 1);
        pipeline.consumer_wait();
        sum += stages[tile % 2][127 - threadIdx.x];
        pipeline.consumer_release();
    }
    out[threadIdx.x] = sum;
}
// @run libcu_atomic_flag grid=2 block=32 args="inout:f32[32]=zeros inout:i32[1]=zeros out:f32[32]"
extern "C" __global__ void libcu_atomic_flag(float* data, int* flag, float* out) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x;
        __syncwarp();
        if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        out[threadIdx.x] = data[31 - threadIdx.x];
    }
}
// @run libcu_atomic_count grid=4 block=64 args="in:f32[256] inout:f32[256] inout:i32[1]=zeros out:f32[64]"
extern "C" __global__ void libcu_atomic_count(const float* in, float* parts, unsigned* counter, float* out) {
    __shared__ bool last;
    parts[blockIdx.x * 64 + threadIdx.x] = 2 * in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(*counter);
        last = count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        float sum = 0;
        for (int block = 0; block < gridDim.x; block++) sum += parts[block * 64 + threadIdx.x];
        out[threadIdx.x] = sum;
    }
}
// @run cub_reduce grid=2 block=128 args="in:f32[256] out:f32[2]"
extern "C" __global__ void cub_reduce(const float* in, float* out) {
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage storage;
    float sum = Reduce(storage).Sum(in[blockIdx.x * 128 + threadIdx.x]);
    __syncthreads();
    float most = Reduce(storage).Reduce(in[blockIdx.x * 128 + threadIdx.x], [](float a, float b) { return a > b ? a : b; });
    if (threadIdx.x == 0) out[blockIdx.x] = sum + most;
}
// @run cub_scan grid=2 block=128 args="in:i32[1024] out:i32[1024]"
extern "C" __global__ void cub_scan(const int* in, int* out) {
    using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 128>;
    using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Scan::TempStorage scan;
        typename Store::TempStorage store;
    } storage;
    int values[4];
    Load(storage.load).Load(in + blockIdx.x * 512, values);
    __syncthreads();
    Scan(storage.scan).InclusiveSum(values, values);
    __syncthreads();
    Store(storage.store).Store(out + blockIdx.x * 512, values);
}
// @run cub_radix_sort grid=1 block=128 args="in:i32[512] out:i32[512]"
extern "C" __global__ void cub_radix_sort(const int* in, int* out) {
    using Sort = cub::BlockRadixSort<int, 128, 4>;
    __shared__ typename Sort::TempStorage storage;
    int values[4];
    for (int at = 0; at < 4; at++) values[at] = in[threadIdx.x * 4 + at];
    Sort(storage).Sort(values);
    for (int at = 0; at < 4; at++) out[threadIdx.x * 4 + at] = values[at];
}
// @run cub_warp_reduce grid=2 block=128 args="in:f32[256] out:f32[8]"
extern "C" __global__ void cub_warp_reduce(const float* in, float* out) {
    using Reduce = cub::WarpReduce<float>;
    __shared__ typename Reduce::TempStorage storage[4];
    float sum = Reduce(storage[threadIdx.x / 32]).Sum(in[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x % 32 == 0) out[blockIdx.x * 4 + threadIdx.x / 32] = sum;
}

// All blocks of a cooperative launch meet.
// @run grid_sync_right grid=3 block=64 args="inout:f32[192] out:f32[192]" schedules=4
// @run grid_sync_wrong grid=3 block=64 args="inout:f32[192] out:f32[192]" finds=E1017
extern "C" __global__ void grid_sync_right(float* between, float* out) {
    auto grid = cooperative_groups::this_grid();
    between[grid.thread_rank()] = 2 * between[grid.thread_rank()];
    grid.sync();
    out[grid.thread_rank()] = between[grid.size() - 1 - grid.thread_rank()];
}
extern "C" __global__ void grid_sync_wrong(float* between, float* out) {
    auto grid = cooperative_groups::this_grid();
    between[grid.thread_rank()] = 2 * between[grid.thread_rank()];
    __syncthreads();
    out[grid.thread_rank()] = between[grid.size() - 1 - grid.thread_rank()];
}

// Memory of the heap, which another thread of the block reads.
// @run heap_right grid=2 block=64 args="out:i32[128]"
// @run heap_wrong grid=2 block=64 args="out:i32[128]" finds=E1017,E1016,E1012
template <bool meets> __device__ void from_the_heap(int* out) {
    __shared__ int* given;
    if (threadIdx.x == 0) given = (int*)malloc(64 * sizeof(int));
    __syncthreads();
    given[threadIdx.x] = threadIdx.x * threadIdx.x;
    if (meets) __syncthreads();
    out[64 * blockIdx.x + threadIdx.x] = given[63 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) free(given);
}
extern "C" __global__ void heap_right(int* out) { from_the_heap<true>(out); }
extern "C" __global__ void heap_wrong(int* out) { from_the_heap<false>(out); }

// Merge sorts read one element behind what they have written, and drop it.
struct Less {
    template <class T> __device__ bool operator()(const T& a, const T& b) const { return a < b; }
};
template <int items> __device__ void sort_warp(const int* in, int* out) {
    using Sort = cub::WarpMergeSort<int, items, 32>;
    __shared__ typename Sort::TempStorage storage[2];
    int own[items];
    for (int at = 0; at < items; at++) own[at] = in[threadIdx.x * items + at];
    Sort(storage[threadIdx.x / 32]).Sort(own, Less());
    for (int at = 0; at < items; at++) out[threadIdx.x * items + at] = own[at];
}
// @run cub_warp_merge_sort_1 grid=1 block=64 args="in:i32[64] out:i32[64]" schedules=4
extern "C" __global__ void cub_warp_merge_sort_1(const int* in, int* out) { sort_warp<1>(in, out); }
// @run cub_warp_merge_sort_4 grid=1 block=64 args="in:i32[256] out:i32[256]" schedules=4
extern "C" __global__ void cub_warp_merge_sort_4(const int* in, int* out) { sort_warp<4>(in, out); }
// @run cub_warp_merge_sort_7 grid=1 block=64 args="in:i32[448] out:i32[448]"
extern "C" __global__ void cub_warp_merge_sort_7(const int* in, int* out) { sort_warp<7>(in, out); }
// @run cub_block_merge_sort grid=1 block=128 args="in:i32[384] in:i32[384] out:i32[384] out:i32[384]" schedules=4
extern "C" __global__ void cub_block_merge_sort(const int* keys, const int* values, int* keys_out, int* values_out) {
    using Sort = cub::BlockMergeSort<int, 128, 3, int>;
    __shared__ Sort::TempStorage storage;
    int key[3], value[3];
    for (int at = 0; at < 3; at++) {
        key[at] = keys[threadIdx.x * 3 + at];
        value[at] = values[threadIdx.x * 3 + at];
    }
    Sort(storage).StableSort(key, value, Less());
    for (int at = 0; at < 3; at++) {
        keys_out[threadIdx.x * 3 + at] = key[at];
        values_out[threadIdx.x * 3 + at] = value[at];
    }
}
// @run cub_block_merge_sort_part grid=1 block=64 args="in:i32[250] out:i32[250]"
extern "C" __global__ void cub_block_merge_sort_part(const int* in, int* out) {
    using Sort = cub::BlockMergeSort<int, 64, 4>;
    __shared__ Sort::TempStorage storage;
    int own[4];
    for (int at = 0; at < 4; at++) {
        int from = threadIdx.x * 4 + at;
        own[at] = from < 250 ? in[from] : 0;
    }
    Sort(storage).Sort(own, Less(), 250, 0x7fffffff);
    for (int at = 0; at < 4; at++)
        if (threadIdx.x * 4 + at < 250) out[threadIdx.x * 4 + at] = own[at];
}
