#include "backends/cuda/lt_problem.h"

#include <fmt/format.h>

#include <array>

namespace berth::cuda {

namespace {

struct LtTypes {
  cudaDataType data = CUDA_R_32F, scale = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

LtTypes types_of(DType dtype, bool tf32) {
  switch (dtype) {
    case float16:
      return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case bfloat16:
      return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case float64:
      return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case complex64:
      return {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F};
    case complex128:
      return {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F};
    default:
      return {CUDA_R_32F, CUDA_R_32F,
              tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
  }
}

// One and zero in every scale type: a type reads the leading bytes.
constexpr std::array<double, 2> kOne64 = {1, 0}, kZero64 = {0, 0};
constexpr std::array<float, 2> kOne32 = {1, 0}, kZero32 = {0, 0};

bool is_double(DType dtype) { return dtype == float64 || dtype == complex128; }

const void* one(DType dtype) {
  return is_double(dtype) ? static_cast<const void*>(kOne64.data())
                          : kOne32.data();
}
const void* zero(DType dtype) {
  return is_double(dtype) ? static_cast<const void*>(kZero64.data())
                          : kZero32.data();
}

cublasLtEpilogue_t epilogue_of(const gpu::MatrixProduct& p) {
  if (p.sums_b) return CUBLASLT_EPILOGUE_BGRADA;  // first factor: b
  switch (p.activation) {
    case gpu::ProductActivation::kRelu:
      return p.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case gpu::ProductActivation::kGeluTanh:
      if (p.keeps) {
        return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                      : CUBLASLT_EPILOGUE_GELU_AUX;
      }
      return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case gpu::ProductActivation::kGeluTanhSlope:
      return CUBLASLT_EPILOGUE_DGELU;
    default:
      return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

// Returns whether the library has the product's epilogue.
bool takes_end(const gpu::MatrixProduct& p) {
  if (p.is_plain()) return true;
  if (p.dtype == complex64 || p.dtype == complex128) return false;
  const bool gelu = p.activation == gpu::ProductActivation::kGeluTanh;
  const bool slope = p.activation == gpu::ProductActivation::kGeluTanhSlope;
  if (p.keeps && !gelu) return false;
  if (p.has_aux() && p.n % 8 != 0) return false;  // alignment of its rows
  if (slope && p.bias) return false;
  return !p.sums_b ||
         (!p.bias && p.activation == gpu::ProductActivation::kNone &&
          p.batches == 1);
}

void check_lt(const LtLibrary& lt, const char* call, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw LtRefusal{lt.error(call, status)};
}

// Restrictions for the heuristics.
class Preference {
 public:
  Preference(const LtLibrary& lt, size_t scratch_bytes) : lt_(lt) {
    check_lt(lt, "cublasLtMatmulPreferenceCreate",
             lt.cublasLtMatmulPreferenceCreate(&preference_));
    try {
      fill(scratch_bytes);
    } catch (...) {
      lt.cublasLtMatmulPreferenceDestroy(preference_);
      throw;
    }
  }
  ~Preference() { lt_.cublasLtMatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  void fill(size_t scratch_bytes) {
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{scratch_bytes});
    // Partial sums are added in the compute type, not rounded to the result's
    // type first, and not in the order in which groups end, which would vary
    // the bits from run to run.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(operand, uint32_t{kLtAlignment});
    }
  }
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t what, const T& value) {
    check_lt(lt_, "cublasLtMatmulPreferenceSetAttribute",
             lt_.cublasLtMatmulPreferenceSetAttribute(preference_, what, &value,
                                                      sizeof(value)));
  }

  const LtLibrary& lt_;
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

bool lt_takes(const gpu::MatrixProduct& p) {
  switch (p.dtype) {
    case float32:
    case float64:
    case float16:
    case bfloat16:
    case complex64:
    case complex128:
      break;
    default:
      return false;
  }
  // The library counts matrices in 32 bits.
  constexpr int64_t kMost = INT32_MAX;
  return takes_end(p) && p.batches <= kMost && p.m > 0 && p.n > 0 && p.k > 0;
}

std::string lt_text(const gpu::MatrixProduct& p) {
  std::string text =
      fmt::format("{} [{}, {}]{} x [{}, {}]{}", name_of(p.dtype),
                  p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k,
                  p.transpose_a ? "^T" : "", p.transpose_b ? p.n : p.k,
                  p.transpose_b ? p.k : p.n, p.transpose_b ? "^T" : "");
  if (p.batches > 1) {
    text += fmt::format(", {} times by {}, {}, {}", p.batches, p.stride_a,
                        p.stride_b, p.stride_c);
  }
  if (p.bias) text += ", bias";
  if (p.activation == gpu::ProductActivation::kRelu) text += ", relu";
  if (p.activation == gpu::ProductActivation::kGeluTanh) text += ", gelu";
  if (p.activation == gpu::ProductActivation::kGeluTanhSlope)
    text += ", gelu's slope";
  if (p.keeps) text += ", kept";
  if (p.sums_b) text += ", sums";
  return text;
}

LtProblem::LtProblem(const LtLibrary& lt, const gpu::MatrixProduct& product,
                     bool tf32)
    : lt_(lt), product_(product), tf32_(tf32) {
  try {
    make();
  } catch (...) {
    destroy();
    throw;
  }
}

LtProblem::~LtProblem() { destroy(); }

void LtProblem::destroy() noexcept {
  for (cublasLtMatrixLayout_t l : {first_, second_, result_}) {
    if (l != nullptr) lt_.cublasLtMatrixLayoutDestroy(l);
  }
  if (operation_ != nullptr) lt_.cublasLtMatmulDescDestroy(operation_);
}

template <class T>
void LtProblem::set(cublasLtMatmulDescAttributes_t what, const T& value) const {
  check_lt(lt_, "cublasLtMatmulDescSetAttribute",
           lt_.cublasLtMatmulDescSetAttribute(operation_, what, &value,
                                              sizeof(value)));
}

void LtProblem::make_operation() {
  const gpu::MatrixProduct& p = product_;
  const LtTypes types = types_of(p.dtype, tf32_);
  check_lt(
      lt_, "cublasLtMatmulDescCreate",
      lt_.cublasLtMatmulDescCreate(&operation_, types.compute, types.scale));
  const auto form = [](bool transpose) {
    return int32_t{transpose ? CUBLAS_OP_T : CUBLAS_OP_N};
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, form(p.transpose_b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, form(p.transpose_a));
  const cublasLtEpilogue_t epilogue = epilogue_of(p);
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{epilogue});
  // Only its alignment matters until it runs.
  const void* aligned = reinterpret_cast<const void*>(kLtAlignment);
  if (p.bias || p.sums_b) {
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t{types.data});
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  }
  if (!p.has_aux()) return;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
  if (p.batches == 1) return;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, p.stride_c);
}

void LtProblem::make() {
  const gpu::MatrixProduct& p = product_;
  make_operation();
  first_ = p.transpose_b ? layout(p.k, p.n, p.stride_b)
                         : layout(p.n, p.k, p.stride_b);
  second_ = p.transpose_a ? layout(p.m, p.k, p.stride_a)
                          : layout(p.k, p.m, p.stride_a);
  result_ = layout(p.n, p.m, p.stride_c);
}

cublasLtMatrixLayout_t LtProblem::layout(int64_t rows, int64_t columns,
                                         int64_t stride) const {
  cublasLtMatrixLayout_t made = nullptr;
  check_lt(
      lt_, "cublasLtMatrixLayoutCreate",
      lt_.cublasLtMatrixLayoutCreate(
          &made, types_of(product_.dtype, tf32_).data,
          static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows));
  if (product_.batches == 1) return made;
  const auto set_layout = [&](cublasLtMatrixLayoutAttribute_t what,
                              const auto& value) {
    const cublasStatus_t status =
        lt_.cublasLtMatrixLayoutSetAttribute(made, what, &value, sizeof(value));
    if (status == CUBLAS_STATUS_SUCCESS) return;
    lt_.cublasLtMatrixLayoutDestroy(made);
    check_lt(lt_, "cublasLtMatrixLayoutSetAttribute", status);
  };
  set_layout(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
             static_cast<int32_t>(product_.batches));
  set_layout(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  return made;
}

int LtProblem::propose(cublasLtHandle_t handle, size_t scratch_bytes, int most,
                       cublasLtMatmulHeuristicResult_t* found) const {
  const Preference preference(lt_, scratch_bytes);
  int count = 0;
  check_lt(lt_, "cublasLtMatmulAlgoGetHeuristic",
           lt_.cublasLtMatmulAlgoGetHeuristic(
               handle, operation_, first_, second_, result_, result_,
               preference.get(), most, found, &count));
  int good = 0;
  for (int i = 0; i < count; ++i) {
    if (found[i].state == CUBLAS_STATUS_SUCCESS &&
        found[i].workspaceSize <= scratch_bytes) {
      found[good++] = found[i];
    }
  }
  if (good == 0) {
    throw LtRefusal{"cublasLtMatmulAlgoGetHeuristic: it has no kernel"};
  }
  return good;
}

bool LtProblem::check(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo,
                      size_t* scratch_bytes) const {
  cublasLtMatmulHeuristicResult_t result = {};
  if (lt_.cublasLtMatmulAlgoCheck(handle, operation_, first_, second_, result_,
                                  result_, &algo,
                                  &result) != CUBLAS_STATUS_SUCCESS) {
    return false;
  }
  *scratch_bytes = result.workspaceSize;
  return true;
}

void LtProblem::run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algo,
                    const Operands& o, cudaStream_t stream) const {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!product_.is_plain()) lock.lock();
  const void* row = product_.bias ? o.bias : o.sums;
  if (row != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, row);
  if (o.aux != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.aux);
  const cublasStatus_t status =
      lt_.cublasLtMatmul(handle, operation_, one(product_.dtype), o.b, first_,
                         o.a, second_, zero(product_.dtype), o.c, result_, o.c,
                         result_, &algo, o.scratch, o.scratch_bytes, stream);
  check_lt(lt_, "cublasLtMatmul", status);
}

}  // namespace berth::cuda
