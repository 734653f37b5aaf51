extern "C" __global__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[(blockIdx.y * 32 + y) * 64 + blockIdx.x * 32 + x];
    __syncthreads();
    out[(blockIdx.x * 32 + y) * 64 + blockIdx.y * 32 + x] = tile[x][y];
}
