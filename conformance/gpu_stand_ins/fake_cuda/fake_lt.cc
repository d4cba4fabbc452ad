#include "conformance/gpu_stand_ins/fake_cuda/fake_lt.h"

#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "berth/half.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_driver.h"

namespace {

using berth::bfloat16_t;
using berth::float16_t;
using berth::cuda::FakeDriver;
using berth::cuda::kFakeLtMark;
using berth::cuda::kFakeLtScratch;

// The targets of the library's pointer types.
struct Operation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  int32_t transpose_first = CUBLAS_OP_N, transpose_second = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr, *aux = nullptr;
  int32_t bias_type = -1;
  int64_t aux_pitch = 0, aux_stride = 0;
};
struct Layout {
  cudaDataType type = CUDA_R_32F;
  int64_t rows = 0, columns = 0, pitch = 0, stride = 0;
  int32_t batches = 1;
};
struct Limits {
  uint64_t scratch = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

struct FakeLtFailure {
  std::string name;
  long at = 0;
  int status = 0;
};

struct LtState {
  std::mutex mutex;
  int kernels = 3;
  bool epilogues = true;
  std::vector<double> times;
  std::vector<FakeLtFailure> failures;
  std::map<std::string, long> calls;
  long failed = 0;
  std::set<const void*> objects;
  int last = -1, last_compute = -1;
  const FakeDriver* driver = nullptr;
  decltype(&cuCtxGetCurrent) current = nullptr;

  LtState() {
    void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (cuda == nullptr) return;
    driver = static_cast<const FakeDriver*>(dlsym(cuda, "berth_fake_driver"));
    current =
        reinterpret_cast<decltype(current)>(dlsym(cuda, "cuCtxGetCurrent"));
  }
  void read(const std::string& description);
};

LtState& lt_state() {
  static LtState& s = *new LtState;
  return s;
}

void LtState::read(const std::string& description) {
  kernels = 3;
  epilogues = true;
  times.clear();
  failures.clear();
  size_t begin = 0;
  while (begin < description.size()) {
    const size_t end =
        std::min(description.find(',', begin), description.size());
    const std::string word = description.substr(begin, end - begin);
    begin = end + 1;
    const size_t is = word.find('=');
    const std::string name = word.substr(0, is), value = word.substr(is + 1);
    if (name == "kernels") {
      kernels = std::atoi(value.c_str());
    } else if (name == "epilogues") {
      epilogues = value != "0";
    } else if (name == "times") {
      for (const char* at = value.c_str(); *at != '\0';) {
        char* next = nullptr;
        times.push_back(std::strtod(at, &next));
        at = *next == ':' ? next + 1 : next;
      }
    } else if (name == "fail") {
      const size_t at = value.find('@'), colon = value.find(':');
      failures.push_back({value.substr(0, at),
                          std::atol(value.c_str() + at + 1),
                          std::atoi(value.c_str() + colon + 1)});
    } else {
      std::abort();
    }
  }
}

// One call: the lock, and the status with which it must fail.
class LtCall {
 public:
  explicit LtCall(const char* name) : s(lt_state()), lock_(s.mutex) {
    const long n = ++s.calls[name];
    for (const FakeLtFailure& f : s.failures) {
      if (f.name != name || f.at != n) continue;
      ++s.failed;
      status = static_cast<cublasStatus_t>(f.status);
    }
  }
  bool fails() const { return status != CUBLAS_STATUS_SUCCESS; }
  bool in_context() const {
    CUcontext context = nullptr;
    return s.current != nullptr && s.current(&context) == CUDA_SUCCESS &&
           context != nullptr;
  }

  template <class T, class Handle>
  void make(T* object, Handle* handle) {
    s.objects.insert(object);
    *handle = reinterpret_cast<Handle>(object);
  }
  template <class T>
  cublasStatus_t destroy(T* object) {
    if (fails()) return status;
    if (s.objects.erase(object) == 0) return CUBLAS_STATUS_INVALID_VALUE;
    delete object;
    return CUBLAS_STATUS_SUCCESS;
  }
  // Null unless it is alive.
  template <class T, class Handle>
  T* look(Handle handle) const {
    auto* object = reinterpret_cast<T*>(handle);
    return s.objects.contains(object) ? object : nullptr;
  }

  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  LtState& s;

 private:
  std::lock_guard<std::mutex> lock_;
};

using Number = std::complex<double>;

size_t element_bytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
      return 4;
    case CUDA_C_64F:
      return 16;
    default:
      return 8;
  }
}

template <class T>
T read_as(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void write_as(char* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

Number load(cudaDataType type, const char* base, int64_t i) {
  const char* at = base + static_cast<size_t>(i) * element_bytes(type);
  switch (type) {
    case CUDA_R_16F:
      return static_cast<float>(read_as<float16_t>(at));
    case CUDA_R_16BF:
      return static_cast<float>(read_as<bfloat16_t>(at));
    case CUDA_R_32F:
      return read_as<float>(at);
    case CUDA_R_64F:
      return read_as<double>(at);
    case CUDA_C_32F:
      return read_as<std::complex<float>>(at);
    default:
      return read_as<Number>(at);
  }
}

void store(cudaDataType type, char* base, int64_t i, Number x) {
  char* at = base + static_cast<size_t>(i) * element_bytes(type);
  switch (type) {
    case CUDA_R_16F:
      return write_as(at, float16_t(static_cast<float>(x.real())));
    case CUDA_R_16BF:
      return write_as(at, bfloat16_t(static_cast<float>(x.real())));
    case CUDA_R_32F:
      return write_as(at, static_cast<float>(x.real()));
    case CUDA_R_64F:
      return write_as(at, x.real());
    case CUDA_C_32F:
      return write_as(at, std::complex<float>(x));
    default:
      return write_as(at, x);
  }
}

// Returns all bytes of a matrix, of every batch.
char* touch_all(const LtState& s, const Layout& l, const void* data) {
  const auto address = reinterpret_cast<uint64_t>(data);
  if (s.driver == nullptr || address % 16 != 0) return nullptr;
  const int64_t last =
      (l.batches - 1) * l.stride + (l.columns - 1) * l.pitch + l.rows;
  return s.driver->touch(address,
                         static_cast<size_t>(last) * element_bytes(l.type), -1);
}

double gelu_tanh(double v) {
  return std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v));
}

Number activated(uint32_t epilogue, Number x) {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return std::max(x.real(), 0.0);
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) {
    return 0.5 * x.real() * (1 + gelu_tanh(x.real()));
  }
  return x;
}

double gelu_slope(double v) {
  const double t = gelu_tanh(v);
  const double inner = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * v * v);
  return 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * inner;
}

// Returns whether the shapes of the matrices match.
bool fits(const Operation& op, const Layout& a, const Layout& b,
          const Layout& d) {
  const bool ta = op.transpose_first != CUBLAS_OP_N;
  const bool tb = op.transpose_second != CUBLAS_OP_N;
  return (ta ? a.columns : a.rows) == d.rows &&
         (tb ? b.rows : b.columns) == d.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) &&
         a.pitch >= a.rows && b.pitch >= b.rows && d.pitch >= d.rows &&
         a.batches == d.batches && b.batches == d.batches && a.type == d.type &&
         b.type == d.type;
}

struct Places {
  const char *a, *b;
  char *d, *row = nullptr, *aux = nullptr;
};

bool has(const Operation& op, uint32_t epilogue) {
  return (op.epilogue & epilogue) == epilogue;
}

// Sums the first factor along the inner dimension.
void sum_first(const Operation& op, const Layout& a, const Places& at) {
  const bool ta = op.transpose_first != CUBLAS_OP_N;
  for (int64_t i = 0; i < (ta ? a.columns : a.rows); ++i) {
    Number sum = 0;
    for (int64_t q = 0; q < (ta ? a.rows : a.columns); ++q) {
      sum += load(a.type, at.a, ta ? i * a.pitch + q : q * a.pitch + i);
    }
    store(a.type, at.row, i, sum);
  }
}

// Applies the epilogue to element (i, j) of batch z.
Number ended(const Operation& op, const Layout& d, const Places& at, Number sum,
             int64_t z, int64_t j, int64_t i) {
  if (has(op, CUBLASLT_EPILOGUE_BIAS)) sum += load(d.type, at.row, i);
  const int64_t aux = z * op.aux_stride + j * op.aux_pitch + i;
  if (has(op, CUBLASLT_EPILOGUE_DGELU)) {
    return sum * gelu_slope(load(d.type, at.aux, aux).real());
  }
  if (at.aux != nullptr) store(d.type, at.aux, aux, sum);
  return activated(op.epilogue, sum);
}

void multiply(const Operation& op, const Layout& a, const Layout& b,
              const Layout& d, const Places& at) {
  const bool ta = op.transpose_first != CUBLAS_OP_N;
  const bool tb = op.transpose_second != CUBLAS_OP_N;
  const int64_t inner = ta ? a.rows : a.columns;
  for (int64_t z = 0; z < d.batches; ++z) {
    for (int64_t j = 0; j < d.columns; ++j) {
      for (int64_t i = 0; i < d.rows; ++i) {
        Number sum = 0;
        for (int64_t q = 0; q < inner; ++q) {
          const int64_t x = ta ? i * a.pitch + q : q * a.pitch + i;
          const int64_t y = tb ? q * b.pitch + j : j * b.pitch + q;
          sum += load(a.type, at.a, z * a.stride + x) *
                 load(b.type, at.b, z * b.stride + y);
        }
        store(d.type, at.d, z * d.stride + j * d.pitch + i,
              ended(op, d, at, sum, z, j, i));
      }
    }
  }
}

// Returns the memory of the epilogue; false if something is wrong with it.
bool touch_end(const LtState& s, const Operation& op, const Layout& d,
               Places& at) {
  if (has(op, CUBLASLT_EPILOGUE_BIAS) || has(op, CUBLASLT_EPILOGUE_BGRADA)) {
    at.row = touch_all(s, {d.type, d.rows, 1, d.rows}, op.bias);
    if (at.row == nullptr || op.bias_type != d.type) return false;
  }
  constexpr uint32_t kAux = 128;
  if (!has(op, kAux)) return true;
  if (op.aux_pitch < d.rows || op.aux_pitch % 8 != 0 ||
      op.aux_stride % 8 != 0) {
    return false;
  }
  at.aux = touch_all(
      s, {d.type, d.rows, d.columns, op.aux_pitch, op.aux_stride, d.batches},
      op.aux);
  return at.aux != nullptr;
}

void fake_lt_begin(const char* description) {
  LtState& s = lt_state();
  std::lock_guard lock(s.mutex);
  s.read(description);
  s.calls.clear();
  s.failed = 0;
  s.last = -1;
}

long fake_lt_calls(const char* name) {
  LtState& s = lt_state();
  std::lock_guard lock(s.mutex);
  return s.calls[name];
}

long fake_lt_failed() {
  LtState& s = lt_state();
  std::lock_guard lock(s.mutex);
  return s.failed;
}

long fake_lt_objects() {
  LtState& s = lt_state();
  std::lock_guard lock(s.mutex);
  return static_cast<long>(s.objects.size());
}

int fake_lt_last() {
  LtState& s = lt_state();
  std::lock_guard lock(s.mutex);
  return s.last;
}

int fake_lt_last_compute() {
  LtState& s = lt_state();
  std::lock_guard lock(s.mutex);
  return s.last_compute;
}

// Returns the number of a kernel; -1: it is none of these.
int kernel_of(const LtState& s, const cublasLtMatmulAlgo_t* algo) {
  const uint64_t number = algo->data[0] - kFakeLtMark;
  return number < static_cast<uint64_t>(s.kernels) ? static_cast<int>(number)
                                                   : -1;
}

}  // namespace

#define FAKE_LT \
  extern "C" __attribute__((visibility("default"))) cublasStatus_t CUBLASWINAPI

extern "C" __attribute__((visibility("default")))
const berth::cuda::FakeLt berth_fake_lt = {
    fake_lt_begin,   fake_lt_calls, fake_lt_failed,
    fake_lt_objects, fake_lt_last,  fake_lt_last_compute};

extern "C" __attribute__((visibility("default"))) size_t CUBLASWINAPI
cublasLtGetVersion() {
  return 130100;
}

extern "C" __attribute__((visibility("default"))) const char* CUBLASWINAPI
cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                               : "CUBLAS_STATUS_OTHER";
}

FAKE_LT cublasLtCreate(cublasLtHandle_t* handle) {
  LtCall c("cublasLtCreate");
  if (!c.fails() && !c.in_context()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!c.fails()) c.make(new int, handle);
  return c.status;
}

FAKE_LT cublasLtDestroy(cublasLtHandle_t handle) {
  return LtCall("cublasLtDestroy").destroy(reinterpret_cast<int*>(handle));
}

FAKE_LT cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made,
                                 cublasComputeType_t compute,
                                 cudaDataType_t scale) {
  LtCall c("cublasLtMatmulDescCreate");
  if (!c.fails()) c.make(new Operation{compute, scale}, made);
  return c.status;
}

FAKE_LT cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  return LtCall("cublasLtMatmulDescDestroy")
      .destroy(reinterpret_cast<Operation*>(d));
}

FAKE_LT cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                       cublasLtMatmulDescAttributes_t what,
                                       const void* value, size_t bytes) {
  LtCall c("cublasLtMatmulDescSetAttribute");
  auto* op = c.look<Operation>(d);
  if (c.fails()) return c.status;
  if (op == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const auto set = [&](auto& member) {
    if (bytes != sizeof(member)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(op->transpose_first);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(op->transpose_second);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(op->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(op->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(op->bias_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(op->aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(op->aux_pitch);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return set(op->aux_stride);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

FAKE_LT cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made,
                                   cudaDataType type, uint64_t rows,
                                   uint64_t columns, int64_t pitch) {
  LtCall c("cublasLtMatrixLayoutCreate");
  if (!c.fails()) {
    c.make(new Layout{type, static_cast<int64_t>(rows),
                      static_cast<int64_t>(columns), pitch},
           made);
  }
  return c.status;
}

FAKE_LT cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  return LtCall("cublasLtMatrixLayoutDestroy")
      .destroy(reinterpret_cast<Layout*>(l));
}

FAKE_LT cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                         cublasLtMatrixLayoutAttribute_t what,
                                         const void* value, size_t bytes) {
  LtCall c("cublasLtMatrixLayoutSetAttribute");
  auto* layout = c.look<Layout>(l);
  if (c.fails()) return c.status;
  if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == 4) {
    std::memcpy(&layout->batches, value, bytes);
  } else if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
             bytes == 8) {
    std::memcpy(&layout->stride, value, bytes);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_LT cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  LtCall c("cublasLtMatmulPreferenceCreate");
  if (!c.fails()) c.make(new Limits, made);
  return c.status;
}

FAKE_LT cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  return LtCall("cublasLtMatmulPreferenceDestroy")
      .destroy(reinterpret_cast<Limits*>(p));
}

FAKE_LT cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what,
    const void* value, size_t bytes) {
  LtCall c("cublasLtMatmulPreferenceSetAttribute");
  auto* limits = c.look<Limits>(p);
  if (c.fails()) return c.status;
  if (limits == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const int operand = what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == 8) {
    std::memcpy(&limits->scratch, value, bytes);
  } else if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == 4) {
    std::memcpy(&limits->reductions, value, bytes);
  } else if (operand >= 0 && operand < 4 && bytes == 4) {
    std::memcpy(&limits->alignment[operand], value, bytes);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_LT cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
    cublasLtMatmulHeuristicResult_t* results, int* count) {
  LtCall c("cublasLtMatmulAlgoGetHeuristic");
  if (c.fails()) return c.status;
  const auto* op = c.look<Operation>(operation);
  const auto *x = c.look<Layout>(a), *y = c.look<Layout>(b),
             *z = c.look<Layout>(d);
  const auto* limits = c.look<Limits>(preference);
  if (c.look<int>(handle) == nullptr || op == nullptr || x == nullptr ||
      y == nullptr || z == nullptr || limits == nullptr ||
      !fits(*op, *x, *y, *z)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // Berth must not ask for reductions in arbitrary order or low precision, or
  // for operands of any alignment.
  if ((limits->reductions & ~CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const uint32_t alignment : limits->alignment) {
    if (alignment > 16) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (op->epilogue != CUBLASLT_EPILOGUE_DEFAULT && !c.s.epilogues) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *count = std::min(c.s.kernels, most);
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = kFakeLtMark + static_cast<uint64_t>(i);
    results[i].workspaceSize = kFakeLtScratch * static_cast<size_t>(i);
  }
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_LT cublasLtMatmulAlgoCheck(cublasLtHandle_t handle,
                                cublasLtMatmulDesc_t operation,
                                cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                const cublasLtMatmulAlgo_t* algo,
                                cublasLtMatmulHeuristicResult_t* result) {
  LtCall c("cublasLtMatmulAlgoCheck");
  if (c.fails()) return c.status;
  const int kernel = kernel_of(c.s, algo);
  if (c.look<int>(handle) == nullptr ||
      c.look<Operation>(operation) == nullptr || kernel < 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *result = {};
  result->algo = *algo;
  result->workspaceSize = kFakeLtScratch * static_cast<size_t>(kernel);
  return CUBLAS_STATUS_SUCCESS;
}

FAKE_LT cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                       const void* alpha, const void* a,
                       cublasLtMatrixLayout_t a_layout, const void* b,
                       cublasLtMatrixLayout_t b_layout, const void* beta,
                       const void*, cublasLtMatrixLayout_t, void* d,
                       cublasLtMatrixLayout_t d_layout,
                       const cublasLtMatmulAlgo_t* algo, void* scratch,
                       size_t scratch_bytes, cudaStream_t stream) {
  LtCall c("cublasLtMatmul");
  if (c.fails()) return c.status;
  if (!c.in_context() || stream == nullptr)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto* op = c.look<Operation>(operation);
  const auto *x = c.look<Layout>(a_layout), *y = c.look<Layout>(b_layout),
             *z = c.look<Layout>(d_layout);
  const int kernel = kernel_of(c.s, algo);
  if (c.look<int>(handle) == nullptr || op == nullptr || x == nullptr ||
      y == nullptr || z == nullptr || kernel < 0 || !fits(*op, *x, *y, *z)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (load(op->scale, static_cast<const char*>(alpha), 0) != Number(1) ||
      load(op->scale, static_cast<const char*>(beta), 0) != Number(0)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const size_t needs = kFakeLtScratch * static_cast<size_t>(kernel);
  const auto room = reinterpret_cast<uint64_t>(scratch);
  if (needs > 0 && (needs > scratch_bytes || room % 256 != 0 ||
                    c.s.driver->touch(room, needs, -1) == nullptr)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Places at = {touch_all(c.s, *x, a), touch_all(c.s, *y, b),
               touch_all(c.s, *z, d)};
  if (at.a == nullptr || at.b == nullptr || at.d == nullptr ||
      !touch_end(c.s, *op, *z, at)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // Large ones are not computed; they only take their time.
  if (x->rows * x->columns * y->rows * y->columns < int64_t{1} << 24) {
    multiply(*op, *x, *y, *z, at);
    if (has(*op, CUBLASLT_EPILOGUE_BGRADA)) sum_first(*op, *x, at);
  }
  c.s.last = kernel;
  c.s.last_compute = op->compute;
  const auto k = static_cast<size_t>(kernel);
  c.s.driver->pass_time(k < c.s.times.size() ? c.s.times[k] : 1);
  return CUBLAS_STATUS_SUCCESS;
}
