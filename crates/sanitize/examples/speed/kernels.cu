// What the example measures: kernels that are bound by memory, as they are written.

extern "C" __global__ void add(const float* a, const float* b, float* c) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    c[at] = a[at] + b[at];
}

extern "C" __global__ void add_vectors(const float4* a, const float4* b, float4* c) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    float4 x = a[at], y = b[at];
    c[at] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

extern "C" __global__ void stencil(const float* in, float* out, int count) {
    __shared__ float row[258];
    int at = blockIdx.x * 256 + threadIdx.x;
    row[threadIdx.x + 1] = in[at];
    if (threadIdx.x == 0) row[0] = at > 0 ? in[at - 1] : 0;
    if (threadIdx.x == 255) row[257] = at + 1 < count ? in[at + 1] : 0;
    __syncthreads();
    out[at] = 0.25f * row[threadIdx.x] + 0.5f * row[threadIdx.x + 1] + 0.25f * row[threadIdx.x + 2];
}

extern "C" __global__ void transpose(const float* in, float* out, int extent) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        tile[threadIdx.y + step][threadIdx.x] = in[(row + step) * extent + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        out[(row + step) * extent + column] = tile[threadIdx.x][threadIdx.y + step];
}

extern "C" __global__ void sum_tree(const float* in, float* out) {
    __shared__ float row[256];
    row[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
    __syncthreads();
    for (int step = 128; step > 0; step >>= 1) {
        if (threadIdx.x < step) row[threadIdx.x] += row[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = row[0];
}

extern "C" __global__ void sum_shuffles(const float* in, float* out, int count) {
    __shared__ float row[8];
    float sum = 0;
    for (int at = blockIdx.x * 256 + threadIdx.x; at < count; at += gridDim.x * 256) sum += in[at];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) row[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 8; warp++) sum += row[warp];
        atomicAdd(out, sum);
    }
}

extern "C" __global__ void product(const float* a, const float* b, float* c, int extent) {
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < extent; k += 16) {
        left[threadIdx.y][threadIdx.x] = a[row * extent + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * extent + column];
        __syncthreads();
        for (int inner = 0; inner < 16; inner++) sum += left[threadIdx.y][inner] * right[inner][threadIdx.x];
        __syncthreads();
    }
    c[row * extent + column] = sum;
}

extern "C" __global__ void compute(float* out) {
    unsigned seed = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 1;
    for (int step = 0; step < 256; step++) {
        seed = seed * 1664525u + 1013904223u;
        seed ^= seed >> 9;
        sum = fmaxf(sum * 0.5f + float(seed >> 9), sum);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
