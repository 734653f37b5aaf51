// What these kernels need without the CUDA toolkit: indices, barriers, shuffles and copies, by
// builtins of clang and inline PTX.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __noinline __attribute__((noinline))

struct threads {
    __device__ static unsigned x() { return __nvvm_read_ptx_sreg_tid_x(); }
    __device__ static unsigned y() { return __nvvm_read_ptx_sreg_tid_y(); }
    __device__ static unsigned count() { return __nvvm_read_ptx_sreg_ntid_x(); }
};

struct blocks {
    __device__ static unsigned x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
    __device__ static unsigned y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
};

// The number of a thread in a grid of one dimension.
__device__ inline unsigned place() { return blocks::x() * threads::count() + threads::x(); }

__device__ inline void barrier() { __syncthreads(); }

// The address of shared memory as instructions take it.
__device__ inline unsigned shared_address(const void* at) {
    return (unsigned)(unsigned long)(const __attribute__((address_space(3))) void*)at;
}

__device__ inline void copy_16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

__device__ inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int pending> __device__ inline void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
