#include <cstdio>
#include <nv/target>

__global__ void add(int *sum) { atomicAdd(sum, static_cast<int>(threadIdx.x)); }

int main() {
    int *sum = nullptr;
    if (cudaMallocManaged(&sum, sizeof *sum) != cudaSuccess) return 1;
    add<<<1, 32>>>(sum);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
