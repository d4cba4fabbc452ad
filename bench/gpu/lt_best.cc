// The fastest of cuBLASLt's algorithms for the product of the table, by the
// library alone: every algorithm that its heuristics name is timed.

#include "bench/bench_common.h"
#include "bench/gpu/rows.h"

#ifdef BERTH_HAVE_CUBLASLT
#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>

#include <stdexcept>

#include "bench/models/drawn_model.h"
#endif

namespace berth_bench {

#ifndef BERTH_HAVE_CUBLASLT

void cublaslt_row(const GpuOptions&) {
  Line("gpu_cublaslt", 1)
      .add("skipped", "built without cublasLt.h of CUDA 13")
      .print();
}

#else

namespace {

constexpr int kMostAlgorithms = 200, kRuns = 20;
constexpr size_t kWorkspace = size_t{32} << 20;

// Opens a library from the folders of BERTH_CUDA_LIBRARIES, the loader's own,
// and the toolkit's.
void* open_library(const std::string& name) {
  std::vector<std::string> folders;
  const char* set = std::getenv("BERTH_CUDA_LIBRARIES");
  std::string list = set == nullptr ? "" : set;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    if (end > at) folders.push_back(list.substr(at, end - at) + "/");
    at = end + 1;
  }
  folders.push_back("");
  folders.push_back("/usr/local/cuda/lib64/");
  for (const std::string& folder : folders) {
    if (void* p = dlopen((folder + name).c_str(), RTLD_NOW)) return p;
  }
  throw std::runtime_error(name + " was not found");
}

template <class Fn>
Fn* symbol(void* library, const char* name) {
  void* p = dlsym(library, name);
  if (p == nullptr) throw std::runtime_error(std::string("no ") + name);
  return reinterpret_cast<Fn*>(p);
}

void check(int error, const char* what) {
  if (error == 0) return;
  throw std::runtime_error(std::string(what) + " gave " +
                           std::to_string(error));
}

// CALL(name, arguments...): a function of `library`, checked.
#define BERTH_CALL(library, name, ...) \
  check(symbol<decltype(name)>(library, #name)(__VA_ARGS__), #name)
#define BERTH_CALL_V2(library, name, ...) \
  check(symbol<decltype(name)>(library, #name "_v2")(__VA_ARGS__), #name)

class LtBest {
 public:
  explicit LtBest(int64_t size) : size_(size) {
    driver_ = open_library("libcuda.so.1");
    lt_ = open_library("libcublasLt.so.13");
    BERTH_CALL(driver_, cuInit, 0);
    CUdevice device = 0;
    BERTH_CALL(driver_, cuDeviceGet, &device, 0);
    CUcontext context = nullptr;
    BERTH_CALL(driver_, cuDevicePrimaryCtxRetain, &context, device);
    BERTH_CALL(driver_, cuCtxSetCurrent, context);
    BERTH_CALL(driver_, cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
    BERTH_CALL(driver_, cuEventCreate, &begin_, 0);
    BERTH_CALL(driver_, cuEventCreate, &end_, 0);
    BERTH_CALL(lt_, cublasLtCreate, &handle_);
    const size_t bytes = static_cast<size_t>(size * size) * 2;
    for (CUdeviceptr* p : {&a_, &b_, &c_}) {
      check(symbol<CUresult(CUdeviceptr*, size_t)>(driver_, "cuMemAlloc_v2")(
                p, bytes),
            "cuMemAlloc");
    }
    check(symbol<CUresult(CUdeviceptr*, size_t)>(driver_, "cuMemAlloc_v2")(
              &workspace_, kWorkspace),
          "cuMemAlloc");
    upload(a_, 1);
    upload(b_, 2);
    BERTH_CALL(lt_, cublasLtMatmulDescCreate, &operation_, CUBLAS_COMPUTE_32F,
               CUDA_R_32F);
    BERTH_CALL(lt_, cublasLtMatrixLayoutCreate, &layout_, CUDA_R_16BF,
               static_cast<uint64_t>(size), static_cast<uint64_t>(size), size);
  }

  // Seconds of the fastest, the median of its runs; sets `tried`.
  double seconds(int* tried) {
    cublasLtMatmulPreference_t preference = nullptr;
    BERTH_CALL(lt_, cublasLtMatmulPreferenceCreate, &preference);
    const uint64_t bytes = kWorkspace;
    BERTH_CALL(lt_, cublasLtMatmulPreferenceSetAttribute, preference,
               CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    BERTH_CALL(lt_, cublasLtMatmulAlgoGetHeuristic, handle_, operation_,
               layout_, layout_, layout_, layout_, preference, kMostAlgorithms,
               found.data(), &count);
    double best = 0;
    for (int i = 0; i < count; ++i) {
      const auto& f = found[static_cast<size_t>(i)];
      if (f.state != CUBLAS_STATUS_SUCCESS) continue;
      const double t = time_of(f.algo, f.workspaceSize);
      if (t > 0 && (best == 0 || t < best)) best = t;
      *tried += t > 0 ? 1 : 0;
    }
    if (best == 0) throw std::runtime_error("no algorithm runs");
    return best;
  }

 private:
  void upload(CUdeviceptr target, uint32_t id) {
    std::vector<uint16_t> values(static_cast<size_t>(size_ * size_));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = berth::bfloat16_t(drawn(id, static_cast<uint32_t>(i))).bits;
    }
    check(symbol<CUresult(CUdeviceptr, const void*, size_t)>(
              driver_, "cuMemcpyHtoD_v2")(target, values.data(),
                                          values.size() * 2),
          "cuMemcpyHtoD");
  }

  // The median of the runs; 0 when the algorithm does not run.
  double time_of(const cublasLtMatmulAlgo_t& algorithm, size_t workspace) {
    const float one = 1, zero = 0;
    std::vector<double> runs;
    for (int i = -3; i < kRuns; ++i) {  // three to warm up
      BERTH_CALL(driver_, cuEventRecord, begin_, stream_);
      const int status = symbol<decltype(cublasLtMatmul)>(lt_,
                                                          "cublasLtMatmul")(
          handle_, operation_, &one, at(b_), layout_, at(a_), layout_, &zero,
          at(c_), layout_, at(c_), layout_, &algorithm, at(workspace_),
          workspace, reinterpret_cast<cudaStream_t>(stream_));
      if (status != 0) return 0;
      BERTH_CALL(driver_, cuEventRecord, end_, stream_);
      BERTH_CALL(driver_, cuEventSynchronize, end_);
      float ms = 0;
      check(symbol<CUresult(float*, CUevent, CUevent)>(
                driver_, "cuEventElapsedTime")(&ms, begin_, end_),
            "cuEventElapsedTime");
      if (i >= 0) runs.push_back(ms * 1e-3);
    }
    return summarize(std::move(runs)).median;
  }

  static void* at(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

  int64_t size_;
  void *driver_ = nullptr, *lt_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  CUdeviceptr a_ = 0, b_ = 0, c_ = 0, workspace_ = 0;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
};

}  // namespace

void cublaslt_row(const GpuOptions& o) {
  const int64_t size = o.small ? 128 : 8192;
  Line line("gpu_cublaslt", 1);
  try {
    LtBest product(size);
    int tried = 0;
    const double seconds = product.seconds(&tried);
    const double n = static_cast<double>(size);
    line.add("size", size)
        .add("median_us", seconds * 1e6)
        .add("algorithms", tried)
        .add("tflops", 2e-12 * n * n * n / seconds);
  } catch (const std::exception& e) {
    line.add("skipped", std::string("cuBLASLt: ") + e.what());
  }
  line.print();
}

#endif

}  // namespace berth_bench
