// Right kernels of many kinds: nothing may be found in them.
#include "ptx.cuh"
#include <cuda_fp16.h>

template <class T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
template <class T> struct Max { __device__ T operator()(T a, T b) const { return a > b ? a : b; } };

// The reduction of a block: by a tree in shared memory, and by shuffles.
// @run reduce_tree_f32 grid=4 block=256 args="in:f32[1024] out:f32[4]"
// @run reduce_tree_i32 grid=4 block=256 args="in:i32[1024] out:i32[4]"
// @run reduce_tree_f64 grid=4 block=256 args="in:f64[1024] out:f64[4]"
template <class T> __device__ void reduce_tree(const T* in, T* out) {
    __shared__ T row[256];
    row[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (int step = 128; step > 0; step >>= 1) {
        if (threadIdx.x < step) row[threadIdx.x] += row[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = row[0];
}
extern "C" __global__ void reduce_tree_f32(const float* in, float* out) { reduce_tree(in, out); }
extern "C" __global__ void reduce_tree_i32(const int* in, int* out) { reduce_tree(in, out); }
extern "C" __global__ void reduce_tree_f64(const double* in, double* out) { reduce_tree(in, out); }

// @run reduce_shuffle_sum grid=4 block=256 args="in:f32[1000] out:f32[4] i32=1000"
// @run reduce_shuffle_max grid=4 block=256 args="in:f32[1000] out:f32[4] i32=1000"
// @run reduce_shuffle_i64 grid=4 block=256 args="in:i64[1000] out:i64[4] i32=1000"
template <class T, class F> __device__ T of_block(T value, F combine) {
    __shared__ T row[32];
    for (int step = 16; step > 0; step >>= 1) value = combine(value, __shfl_xor_sync(~0u, value, step));
    if (threadIdx.x % 32 == 0) row[threadIdx.x / 32] = value;
    __syncthreads();
    value = row[threadIdx.x % (blockDim.x / 32)];
    for (int step = blockDim.x / 64; step > 0; step >>= 1) value = combine(value, __shfl_xor_sync(~0u, value, step));
    __syncthreads();
    return value;
}
template <class T, class F> __device__ void reduce_shuffle(const T* in, T* out, int count, F combine) {
    T value = 0;
    for (int at = blockIdx.x * 256 + threadIdx.x; at < count; at += 1024) value = combine(value, in[at]);
    value = of_block(value, combine);
    if (threadIdx.x == 0) out[blockIdx.x] = value;
}
extern "C" __global__ void reduce_shuffle_sum(const float* in, float* out, int count) { reduce_shuffle(in, out, count, Sum<float>()); }
extern "C" __global__ void reduce_shuffle_max(const float* in, float* out, int count) { reduce_shuffle(in, out, count, Max<float>()); }
extern "C" __global__ void reduce_shuffle_i64(const long long* in, long long* out, int count) { reduce_shuffle(in, out, count, Sum<long long>()); }

// @run reduce_redux grid=2 block=128 args="in:i32[256] out:i32[2]"
extern "C" __global__ void reduce_redux(const int* in, int* out) {
    __shared__ int row[4];
    int value = __reduce_add_sync(~0u, in[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x % 32 == 0) row[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = row[0] + row[1] + row[2] + row[3];
}

// One launch: the last block adds what all have written. With fences of all threads before a barrier, with
// fences of one thread behind it, and by acquire and release.
// @run reduce_last_fences grid=8 block=128 args="in:f32[4096] inout:f32[1024] inout:i32[1]=zeros out:f32[1]"
// @run reduce_last_fence grid=8 block=128 args="in:f32[4096] inout:f32[1024] inout:i32[1]=zeros out:f32[1]"
// @run reduce_last_acq_rel grid=8 block=128 args="in:f32[4096] inout:f32[1024] inout:i32[1]=zeros out:f32[1]"
template <int kind> __device__ void reduce_last(const float* in, float* parts, u32* counter, float* out) {
    __shared__ bool last;
    float sum = 0;
    for (int at = blockIdx.x * 128 + threadIdx.x; at < 4096; at += 1024) sum += in[at];
    parts[blockIdx.x * 128 + threadIdx.x] = sum;
    if (kind == 0) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (kind == 1) __threadfence();
        u32 before = kind == 2 ? add_acq_rel(counter, 1) : atomicInc(counter, 7);
        if (kind == 1) __threadfence();
        last = before == 7;
    }
    __syncthreads();
    if (last) {
        if (kind == 0) __threadfence();
        sum = 0;
        for (int block = 0; block < 8; block++) sum += parts[block * 128 + threadIdx.x];
        sum = of_block(sum, Sum<float>());
        if (threadIdx.x == 0) {
            out[0] = sum;
            *counter = 0;
        }
    }
}
extern "C" __global__ void reduce_last_fences(const float* in, float* parts, u32* counter, float* out) { reduce_last<0>(in, parts, counter, out); }
extern "C" __global__ void reduce_last_fence(const float* in, float* parts, u32* counter, float* out) { reduce_last<1>(in, parts, counter, out); }
extern "C" __global__ void reduce_last_acq_rel(const float* in, float* parts, u32* counter, float* out) { reduce_last<2>(in, parts, counter, out); }

// @run reduce_atomic grid=4 block=128 args="in:i32[512] inout:i32[1]=zeros"
extern "C" __global__ void reduce_atomic(const int* in, int* out) {
    int value = in[blockIdx.x * 128 + threadIdx.x];
    for (int step = 16; step > 0; step >>= 1) value += __shfl_down_sync(~0u, value, step);
    if (threadIdx.x % 32 == 0) atomicAdd(out, value);
}

// The scan of a block, by Hillis and Steele with two buffers, and by warps.
// @run scan_buffers grid=2 block=256 args="in:i32[512] out:i32[512]"
extern "C" __global__ void scan_buffers(const int* in, int* out) {
    __shared__ int rows[2][256];
    int at = threadIdx.x, from = 0;
    rows[0][at] = in[blockIdx.x * 256 + at];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2, from ^= 1) {
        rows[from ^ 1][at] = rows[from][at] + (at >= step ? rows[from][at - step] : 0);
        __syncthreads();
    }
    out[blockIdx.x * 256 + at] = rows[from][at];
}

__device__ int scan_block(int value, int* sums) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += other;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int sum = lane < blockDim.x / 32 ? sums[lane] : 0;
        for (int step = 1; step < 32; step *= 2) {
            int other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        if (lane < blockDim.x / 32) sums[lane] = sum;
    }
    __syncthreads();
    return value + (warp > 0 ? sums[warp - 1] : 0);
}
// @run scan_warps grid=2 block=256 args="in:i32[512] out:i32[512]"
extern "C" __global__ void scan_warps(const int* in, int* out) {
    __shared__ int sums[32];
    out[blockIdx.x * 256 + threadIdx.x] = scan_block(in[blockIdx.x * 256 + threadIdx.x], sums);
}

// A scan in one pass with decoupled look-back: the block of a number from a counter, a state of each tile
// that is nothing, its sum, or its prefix. By a flag beside the values, and by both in one word.
// @run scan_look_back_flags grid=8 block=128 args="in:i32[1024] out:i32[1024] inout:i32[1]=zeros inout:i32[8]=zeros inout:i32[8]=zeros inout:i32[8]=zeros"
extern "C" __global__ void scan_look_back_flags(const int* in, int* out, u32* next, u32* states, int* sums, int* prefixes) {
    __shared__ int warps[32];
    __shared__ int tile, before;
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int value = scan_block(in[tile * 128 + threadIdx.x], warps);
    if (threadIdx.x == 127) {
        int sum = 0;
        if (tile > 0) {
            sums[tile] = value;
            __threadfence();
            atomicExch(&states[tile], 1);
            for (int at = tile - 1; at >= 0; at--) {
                u32 state;
                do state = load_relaxed(&states[at]); while (state == 0);
                __threadfence();
                if (state == 2) {
                    sum += prefixes[at];
                    break;
                }
                sum += sums[at];
            }
        }
        prefixes[tile] = sum + value;
        __threadfence();
        atomicExch(&states[tile], 2);
        before = sum;
    }
    __syncthreads();
    out[tile * 128 + threadIdx.x] = value + before;
}

// @run scan_look_back_words grid=8 block=128 args="in:i32[1024] out:i32[1024] inout:i32[1]=zeros inout:i64[8]=zeros"
extern "C" __global__ void scan_look_back_words(const int* in, int* out, u32* next, u64* states) {
    __shared__ int warps[32];
    __shared__ int tile, before;
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    int value = scan_block(in[tile * 128 + threadIdx.x], warps);
    volatile u64* all = states;
    if (threadIdx.x == 127) all[tile] = (tile > 0 ? 1ull : 2ull) << 32 | (u32)value;
    if (threadIdx.x / 32 == 3) {
        // A warp looks back at 32 tiles at a time.
        int lane = threadIdx.x % 32, sum = 0, base = tile - 1;
        bool over = tile == 0;
        while (!over) {
            int at = base - lane;
            u64 state = 2ull << 32;
            if (at >= 0) do state = all[at]; while (state >> 32 == 0);
            u32 prefixes = __ballot_sync(~0u, state >> 32 == 2);
            int last = __ffs(prefixes) - 1;
            int part = prefixes == 0 || lane <= last ? (int)(u32)state : 0;
            for (int step = 16; step > 0; step >>= 1) part += __shfl_xor_sync(~0u, part, step);
            sum += part;
            over = prefixes != 0;
            base -= 32;
        }
        if (lane == 31) {
            before = sum;
            if (tile > 0) all[tile] = 2ull << 32 | (u32)(sum + value);
        }
    }
    __syncthreads();
    out[tile * 128 + threadIdx.x] = value + before;
}

// Histograms: in shared memory with atomic operations, and in global memory.
// @run histogram grid=4 block=128 args="in:i32[4096]=range inout:i32[64]=zeros"
extern "C" __global__ void histogram(const int* in, int* out) {
    __shared__ int bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int at = blockIdx.x * 128 + threadIdx.x; at < 4096; at += 512) atomicAdd(&bins[in[at] & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
// @run histogram_global grid=4 block=128 args="in:i32[512]=range inout:i32[64]=zeros"
extern "C" __global__ void histogram_global(const int* in, int* out) { atomicAdd(&out[in[blockIdx.x * 128 + threadIdx.x] & 63], 1); }

// Transposes by tiles.
// @run transpose_f32 grid=4,4 block=32,8 args="in:f32[128,128] out:f32[128,128]"
// @run transpose_u16 grid=4,4 block=32,8 args="in:f16[128,128] out:f16[128,128]"
// @run transpose_u8 grid=4,4 block=32,8 args="in:u8[128,128] out:u8[128,128]"
template <class T> __device__ void transpose(const T* in, T* out) {
    __shared__ T tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * 128 + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) out[(y + row) * 128 + x] = tile[threadIdx.x][threadIdx.y + row];
}
extern "C" __global__ void transpose_f32(const float* in, float* out) { transpose(in, out); }
extern "C" __global__ void transpose_u16(const u16* in, u16* out) { transpose(in, out); }
extern "C" __global__ void transpose_u8(const unsigned char* in, unsigned char* out) { transpose(in, out); }

// Rows: softmax, layer norm, rms norm.
// @run softmax_rows grid=4 block=128 args="in:f32[4,1000] out:f32[4,1000] i32=1000"
extern "C" __global__ void softmax_rows(const float* in, float* out, int columns) {
    in += blockIdx.x * columns, out += blockIdx.x * columns;
    float most = -3e38f, sum = 0;
    for (int at = threadIdx.x; at < columns; at += 128) most = fmaxf(most, in[at]);
    most = of_block(most, Max<float>());
    for (int at = threadIdx.x; at < columns; at += 128) sum += __expf(in[at] - most);
    sum = of_block(sum, Sum<float>());
    for (int at = threadIdx.x; at < columns; at += 128) out[at] = __expf(in[at] - most) / sum;
}
// @run layer_norm_rows grid=4 block=128 args="in:f32[4,1000] in:f32[1000] in:f32[1000] out:f32[4,1000] i32=1000"
extern "C" __global__ void layer_norm_rows(const float* in, const float* scale, const float* shift, float* out, int columns) {
    in += blockIdx.x * columns, out += blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int at = threadIdx.x; at < columns; at += 128) sum += in[at];
    float mean = of_block(sum, Sum<float>()) / columns;
    for (int at = threadIdx.x; at < columns; at += 128) squares += (in[at] - mean) * (in[at] - mean);
    float factor = rsqrtf(of_block(squares, Sum<float>()) / columns + 1e-5f);
    for (int at = threadIdx.x; at < columns; at += 128) out[at] = (in[at] - mean) * factor * scale[at] + shift[at];
}
// @run rms_norm_half grid=4 block=128 args="in:f16[4,1024] in:f16[1024] out:f16[4,1024]"
extern "C" __global__ void rms_norm_half(const half2* in, const half2* scale, half2* out) {
    in += blockIdx.x * 512, out += blockIdx.x * 512;
    float squares = 0;
    for (int at = threadIdx.x; at < 512; at += 128) {
        float2 value = __half22float2(in[at]);
        squares += value.x * value.x + value.y * value.y;
    }
    half2 factor = __float2half2_rn(rsqrtf(of_block(squares, Sum<float>()) / 1024 + 1e-5f));
    for (int at = threadIdx.x; at < 512; at += 128) out[at] = __hmul2(__hmul2(in[at], factor), scale[at]);
}

// Products: with tiles in shared memory, with a register tile, with copies in four stages, with mma.sync.
// @run gemm_tiles grid=4,4 block=16,16 args="in:f32[64,64] in:f32[64,64] out:f32[64,64]"
extern "C" __global__ void gemm_tiles(const float* a, const float* b, float* c) {
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < 64; tile += 16) {
        left[threadIdx.y][threadIdx.x] = a[row * 64 + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * 64 + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * 64 + column] = sum;
}
// @run gemm_two_buffers grid=4,4 block=16,16 args="in:f32[64,64] in:f32[64,64] out:f32[64,64]"
extern "C" __global__ void gemm_two_buffers(const float* a, const float* b, float* c) {
    __shared__ float left[2][16][17], right[2][16][17];
    int y = threadIdx.y, x = threadIdx.x, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    left[0][y][x] = a[row * 64 + x];
    right[0][y][x] = b[y * 64 + column];
    __syncthreads();
    for (int tile = 0; tile < 4; tile++) {
        int now = tile % 2;
        float next_left = 0, next_right = 0;
        if (tile < 3) {
            next_left = a[row * 64 + (tile + 1) * 16 + x];
            next_right = b[((tile + 1) * 16 + y) * 64 + column];
        }
        for (int k = 0; k < 16; k++) sum += left[now][y][k] * right[now][k][x];
        if (tile < 3) {
            left[now ^ 1][y][x] = next_left;
            right[now ^ 1][y][x] = next_right;
        }
        __syncthreads();
    }
    c[row * 64 + column] = sum;
}
// @run gemm_copies_3 arch=80 grid=2,2 block=128 args="in:f16[64,128] in:f16[64,128] out:f32[64,64]"
// @run gemm_copies_4 arch=80 grid=2,2 block=128 args="in:f16[64,128] in:f16[64,128] out:f32[64,64]"
template <int stages> __device__ void gemm_copies(const half* a, const half* b, float* c) {
    // 32 x 32 of the result by a block; each warp has 16 x 16, as two products of 16 x 8 x 16.
    __shared__ __align__(16) half left[stages][32][16], right[stages][32][16];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rows = blockIdx.y * 32, columns = blockIdx.x * 32;
    auto load = [&](int tile) {
        int at = threadIdx.x % 64, row = at / 2, part = at % 2 * 8;
        if (threadIdx.x < 64) copy_async16(&left[tile % stages][row][part], &a[(rows + row) * 128 + tile * 16 + part]);
        else copy_async16(&right[tile % stages][row][part], &b[(columns + row) * 128 + tile * 16 + part]);
    };
    for (int tile = 0; tile < stages - 1; tile++) {
        load(tile);
        copy_commit();
    }
    float sum[2][4] = {};
    for (int tile = 0; tile < 8; tile++) {
        copy_wait<stages - 2>();
        __syncthreads();
        if (tile + stages - 1 < 8) load(tile + stages - 1);
        copy_commit();
        u32 x[4], y[4];
        int row = warp / 2 * 16 + lane % 16, part = lane / 16 * 8;
        u32 from = shared_address(&left[tile % stages][row][part]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from));
        row = warp % 2 * 16 + lane % 8 + lane / 16 * 8, part = lane / 8 % 2 * 8;
        from = shared_address(&right[tile % stages][row][part]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]) : "r"(from));
        for (int half = 0; half < 2; half++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(sum[half][0]), "+f"(sum[half][1]), "+f"(sum[half][2]), "+f"(sum[half][3])
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * half]), "r"(y[2 * half + 1]));
    }
    copy_wait<0>();
    int row = rows + warp / 2 * 16 + lane / 4, column = columns + warp % 2 * 16 + lane % 4 * 2;
    for (int half = 0; half < 2; half++)
        for (int at = 0; at < 4; at++) c[(row + at / 2 * 8) * 64 + column + half * 8 + at % 2] = sum[half][at];
}
extern "C" __global__ void gemm_copies_3(const half* a, const half* b, float* c) { gemm_copies<3>(a, b, c); }
extern "C" __global__ void gemm_copies_4(const half* a, const half* b, float* c) { gemm_copies<4>(a, b, c); }

// Split-K: partial products and a counter for each tile; the last block adds. And stream-K: a semaphore by
// which parts are added in turn.
// @run split_k_counter grid=2,4 block=64 args="in:f32[64,64] in:f32[64,64] inout:f32[4,64,64] inout:i32[2]=zeros out:f32[64,64]"
extern "C" __global__ void split_k_counter(const float* a, const float* b, float* parts, u32* counters, float* c) {
    __shared__ bool last;
    int column = threadIdx.x, rows = blockIdx.x * 32, part = blockIdx.y;
    for (int row = rows; row < rows + 32; row++) {
        float sum = 0;
        for (int k = part * 16; k < part * 16 + 16; k++) sum += a[row * 64 + k] * b[k * 64 + column];
        parts[(part * 64 + row) * 64 + column] = sum;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&counters[blockIdx.x], 1) == 3;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int row = rows; row < rows + 32; row++) {
        float sum = 0;
        for (int other = 0; other < 4; other++) sum += parts[(other * 64 + row) * 64 + column];
        c[row * 64 + column] = sum;
    }
}
// @run semaphore_turns grid=4 block=64 args="in:f32[4,64] inout:f32[64]=zeros inout:i32[1]=zeros"
extern "C" __global__ void semaphore_turns(const float* in, float* out, u32* turn) {
    if (threadIdx.x == 0) while (load_acquire(turn) != blockIdx.x) {}
    __syncthreads();
    out[threadIdx.x] += in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) store_release(turn, blockIdx.x + 1);
}
// @run semaphore_volatile grid=4 block=64 args="in:f32[4,64] inout:f32[64]=zeros inout:i32[1]=zeros"
extern "C" __global__ void semaphore_volatile(const float* in, float* out, u32* turn) {
    if (threadIdx.x == 0) {
        while (*(volatile u32*)turn != blockIdx.x) __nanosleep(20);
        __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] += in[blockIdx.x * 64 + threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile u32*)turn = blockIdx.x + 1;
}
// @run stream_k grid=3 block=64 args="in:f32[8,64] out:f32[2,64] inout:f32[3,64] inout:i32[3]=zeros"
extern "C" __global__ void stream_k(const float* in, float* out, float* parts, u32* ready) {
    // Two tiles of four units each on three blocks: 0..3, 3..6, 6..8.
    int begin = blockIdx.x * 3, end = min(8, begin + 3), unit = begin;
    while (unit < end) {
        int tile = unit / 4, stop = min(end, 4 * tile + 4);
        bool first = unit % 4 == 0, whole = stop == 4 * tile + 4;
        float sum = 0;
        for (; unit < stop; unit++) sum += in[unit * 64 + threadIdx.x];
        if (!first) {
            // Somebody else has the beginning of the tile and adds this part.
            parts[blockIdx.x * 64 + threadIdx.x] = sum;
            __syncthreads();
            if (threadIdx.x == 0) red_release(&ready[blockIdx.x], 1);
        } else {
            if (!whole) {
                if (threadIdx.x == 0) while (load_acquire(&ready[blockIdx.x + 1]) == 0) {}
                __syncthreads();
                sum += parts[(blockIdx.x + 1) * 64 + threadIdx.x];
            }
            out[tile * 64 + threadIdx.x] = sum;
        }
    }
}

// A persistent kernel whose blocks take the next tile from a counter.
// @run dynamic_tiles grid=3 block=64 args="in:f32[16,64] out:f32[16,64] inout:i32[1]=zeros"
extern "C" __global__ void dynamic_tiles(const float* in, float* out, u32* next) {
    __shared__ u32 tile;
    while (true) {
        if (threadIdx.x == 0) tile = atomicAdd(next, 1);
        __syncthreads();
        u32 now = tile;
        __syncthreads();
        if (now >= 16) break;
        out[now * 64 + threadIdx.x] = 2 * in[now * 64 + threadIdx.x];
    }
}
// A queue: blocks add work that others take.
// @run work_queue grid=2 block=32 args="inout:i32[64]=zeros inout:i32[64]=zeros inout:i32[3]=zeros out:i32[64]"
extern "C" __global__ void work_queue(u32* items, u32* ready, u32* heads, u32* out) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        for (u32 at = 0; at < 16; at++) {
            items[at] = at * at;
            store_release(&ready[at], 1);
        }
    } else {
        for (u32 at = 0; at < 16; at++) {
            while (load_acquire(&ready[at]) == 0) {}
            out[at] = items[at] + 1;
        }
    }
}
// A lock of one thread of each block around a plain sum.
// @run spin_lock grid=4 block=32 args="inout:i32[1]=zeros inout:i32[1]=zeros"
extern "C" __global__ void spin_lock(u32* lock, int* value) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *value += 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

// A barrier of the whole grid, by a counter that rises, twice.
// @run grid_barrier grid=4 block=64 args="in:f32[256] inout:f32[256] out:f32[256] inout:i32[1]=zeros"
__device__ void meet(u32* counter, u32 round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(counter, 1);
        while (*(volatile u32*)counter < round * gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void grid_barrier(const float* in, float* between, float* out, u32* counter) {
    int at = blockIdx.x * 64 + threadIdx.x;
    between[at] = in[at] + 1;
    meet(counter, 1);
    float value = between[255 - at];
    meet(counter, 2);
    between[at] = 2 * value;
    meet(counter, 3);
    out[at] = between[(at + 64) % 256];
}
// @run grid_barrier_acq_rel grid=4 block=64 args="in:f32[256] inout:f32[256] out:f32[256] inout:i32[1]=zeros"
extern "C" __global__ void grid_barrier_acq_rel(const float* in, float* between, float* out, u32* counter) {
    int at = blockIdx.x * 64 + threadIdx.x;
    between[at] = in[at] + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        red_release(counter, 1);
        while (load_acquire(counter) < gridDim.x) {}
    }
    __syncthreads();
    out[at] = between[255 - at];
}

// Warps as producer and consumer over named barriers, in both directions.
// @run named_pipeline grid=2 block=64 args="in:f32[2,256] out:f32[2,256]"
extern "C" __global__ void named_pipeline(const float* in, float* out) {
    __shared__ float buffers[2][32];
    int lane = threadIdx.x % 32;
    in += blockIdx.x * 256, out += blockIdx.x * 256;
    if (threadIdx.x < 32) {
        for (int tile = 0; tile < 8; tile++) {
            if (tile >= 2) named_sync(3 + tile % 2, 64);
            buffers[tile % 2][lane] = in[tile * 32 + lane];
            named_arrive(1 + tile % 2, 64);
        }
    } else {
        for (int tile = 0; tile < 8; tile++) {
            named_sync(1 + tile % 2, 64);
            out[tile * 32 + lane] = buffers[tile % 2][31 - lane];
            if (tile < 6) named_arrive(3 + tile % 2, 64);
        }
    }
}

// Packed bytes: each thread writes its own byte of a word.
// @run bytes_of_words grid=1 block=128 args="in:u8[128] out:u8[128]"
extern "C" __global__ void bytes_of_words(const unsigned char* in, unsigned char* out) {
    __shared__ unsigned char row[128];
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = ((u32*)row)[threadIdx.x / 4] >> threadIdx.x % 4 * 8;
}
// All threads say the same: a flag that several set to one value.
// @run same_value grid=1 block=128 args="in:i32[128] out:i32[1]"
extern "C" __global__ void same_value(const int* in, int* out) {
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (in[threadIdx.x] > 5) found = 1;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = found;
}
// @run any_vote grid=1 block=128 args="in:i32[128] out:i32[128]"
extern "C" __global__ void any_vote(const int* in, int* out) {
    out[threadIdx.x] = __syncthreads_count(in[threadIdx.x] > 0) + __popc(__ballot_sync(~0u, in[threadIdx.x] > 3)) + __any_sync(~0u, in[threadIdx.x] == 7);
}
// @run match_groups grid=1 block=32 args="in:i32[32]=range out:i32[32]"
extern "C" __global__ void match_groups(const int* in, int* out) {
    u32 peers = __match_any_sync(~0u, in[threadIdx.x] / 4);
    out[threadIdx.x] = __reduce_max_sync(peers, in[threadIdx.x]);
}
// @run compact grid=2 block=128 args="in:i32[256] inout:i32[256]=zeros inout:i32[1]=zeros"
extern "C" __global__ void compact(const int* in, int* out, int* count) {
    int value = in[blockIdx.x * 128 + threadIdx.x];
    bool keep = value > 0;
    u32 kept = __ballot_sync(~0u, keep);
    int base = 0, lane = threadIdx.x % 32;
    if (lane == 0) base = atomicAdd(count, __popc(kept));
    base = __shfl_sync(~0u, base, 0);
    if (keep) out[base + __popc(kept & ((1u << lane) - 1))] = value;
}
// @run bitonic_sort grid=2 block=128 args="in:f32[256] out:f32[256]"
extern "C" __global__ void bitonic_sort(const float* in, float* out) {
    __shared__ float row[128];
    int at = threadIdx.x;
    row[at] = in[blockIdx.x * 128 + at];
    __syncthreads();
    for (int size = 2; size <= 128; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            int other = at ^ step;
            if (other > at && (row[at] > row[other]) == ((at & size) == 0)) {
                float held = row[at];
                row[at] = row[other];
                row[other] = held;
            }
            __syncthreads();
        }
    out[blockIdx.x * 128 + at] = row[at];
}
// @run stencil grid=4 block=128 args="in:f32[512] out:f32[512]"
extern "C" __global__ void stencil(const float* in, float* out) {
    __shared__ float row[130];
    int at = blockIdx.x * 128 + threadIdx.x;
    row[threadIdx.x + 1] = in[at];
    if (threadIdx.x == 0) row[0] = at > 0 ? in[at - 1] : 0;
    if (threadIdx.x == 127) row[129] = at + 1 < 512 ? in[at + 1] : 0;
    __syncthreads();
    out[at] = 0.25f * row[threadIdx.x] + 0.5f * row[threadIdx.x + 1] + 0.25f * row[threadIdx.x + 2];
}
// @run gather_scatter grid=2 block=128 args="in:f32[256] out:f32[256]"
extern "C" __global__ void gather_scatter(const float* in, float* out) {
    int at = blockIdx.x * 128 + threadIdx.x;
    out[at * 77 % 256] = in[at * 3 % 256];
}
// @run vectors grid=2 block=64 args="in:f32[512] out:f32[512]"
extern "C" __global__ void vectors(const float4* in, float4* out) {
    float4 value = in[blockIdx.x * 64 + threadIdx.x];
    out[blockIdx.x * 64 + threadIdx.x] = make_float4(value.w, value.z, value.y, value.x);
}
// @run local_arrays grid=1 block=64 args="in:i32[64] out:i32[64] i32=5"
extern "C" __global__ void local_arrays(const int* in, int* out, int turn) {
    int held[16];
    for (int at = 0; at < 16; at++) held[at] = in[(threadIdx.x + at) % 64];
    int sum = 0;
    for (int at = 0; at < 16; at++) sum += held[(at * turn + in[threadIdx.x] & 15) % 16];
    out[threadIdx.x] = sum;
}
// @run early_exit grid=2 block=128 args="in:f32[200] out:f32[200] i32=200"
extern "C" __global__ void early_exit(const float* in, float* out, int count) {
    int at = blockIdx.x * 128 + threadIdx.x;
    if (at >= count) return;
    out[at] = in[at] > 0 ? sqrtf(in[at]) : -in[at];
}
// @run dynamic_shared grid=2 block=128 shared=1024 args="in:f32[256] out:f32[256]"
extern "C" __global__ void dynamic_shared(const float* in, float* out) {
    extern __shared__ float rows[];
    float* second = rows + 128;
    rows[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    second[127 - threadIdx.x] = rows[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = second[threadIdx.x];
}

// A tile of which some rows are beyond the end: nobody writes them in shared memory, and the product has
// rows of nonsense, which nobody stores.
// @run uncleared_rows grid=1 block=32 args="in:f16[11,16] in:f16[8,16] out:f32[11,8]" schedules=4
extern "C" __global__ void uncleared_rows(const u16* a, const u16* b, float* out) {
    __shared__ __align__(16) u16 left[16][16], right[8][16];
    __shared__ float all[16][8];
    int lane = threadIdx.x, rows = 11;
    if (lane / 2 < rows) copy_async16(&left[lane / 2][lane % 2 * 8], &a[lane / 2 * 16 + lane % 2 * 8]);
    if (lane < 16) copy_async16(&right[lane / 2][lane % 2 * 8], &b[lane / 2 * 16 + lane % 2 * 8]);
    copy_commit();
    copy_wait<0>();
    __syncwarp();
    u32 x[4], y[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_address(&left[lane % 16][lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(shared_address(&right[lane % 8][lane / 8 % 2 * 8])));
    float sum[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    // The largest of a row, among the four lanes that have it.
    float most[2] = {fmaxf(sum[0], sum[1]), fmaxf(sum[2], sum[3])};
    for (int half = 0; half < 2; half++)
        for (int step = 1; step < 4; step *= 2) most[half] = fmaxf(most[half], __shfl_xor_sync(~0u, most[half], step));
    for (int at = 0; at < 4; at++) all[lane / 4 + at / 2 * 8][lane % 4 * 2 + at % 2] = sum[at] - most[at / 2];
    __syncwarp();
    for (int at = lane; at < rows * 8; at += 32) out[at] = all[at / 8][at % 8];
}
