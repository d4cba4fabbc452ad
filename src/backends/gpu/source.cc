#include "backends/gpu/source.h"

#include <fmt/format.h>

#include "backends/gpu/kernel_files.h"
#include "berth/errors.h"

namespace berth::gpu {

namespace {

// The words that types.cl defines for each type.
constexpr const char* kWords[] = {
    "C",   "LOAD", "STORE",  "ADD",     "SUB",   "MUL",  "DIV",     "ZERO",
    "ONE", "OF",   "LOWEST", "HIGHEST", "FLOAT", "HALF", "COMPLEX", "INTEGER"};

// They wrap: sums and products go through `wide`, an unsigned type.
struct WholeType {
  const char *word, *wide, *lowest, *highest;
};
constexpr WholeType kWholeTypes[] = {
    {"i8", "u32", "-128", "127"},
    {"u8", "u32", "0", "255"},
    {"i16", "u32", "-32768", "32767"},
    {"u16", "u32", "0", "65535"},
    {"i32", "u32", "-2147483647 - 1", "2147483647"},
    {"u32", "u32", "0", "0xffffffffu"},
    {"i64", "u64", "-9223372036854775807L - 1", "9223372036854775807L"},
    {"u64", "u64", "0", "~(u64)0"}};

constexpr const char* kWholeWords = R"(
#define {0}_C {0}
#define {0}_LOAD TYPE_PLAIN_LOAD
#define {0}_STORE(p, i, v) ((p)[i] = ({0})(v))
#define {0}_ADD(a, b) (({0})(({1})(a) + ({1})(b)))
#define {0}_SUB(a, b) (({0})(({1})(a) - ({1})(b)))
#define {0}_MUL(a, b) (({0})(({1})(a) * ({1})(b)))
#define {0}_ZERO (({0})0)
#define {0}_ONE (({0})1)
#define {0}_OF(x) (({0})(x))
#define {0}_LOWEST (({0})({2}))
#define {0}_HIGHEST (({0})({3}))
#define {0}_FLOAT 0
#define {0}_COMPLEX 0
#define {0}_HALF 0
#define {0}_INTEGER 1
)";

}  // namespace

std::string_view type_word(DType dtype) {
  switch (dtype) {
    case float32:
      return "f32";
    case float64:
      return "f64";
    case int32:
      return "i32";
    case int64:
      return "i64";
    case uint8:
      return "u8";
    case int8:
      return "i8";
    case int16:
      return "i16";
    case uint16:
      return "u16";
    case uint32:
      return "u32";
    case uint64:
      return "u64";
    case bool_:
      return "b8";
    case bfloat16:
      return "bf16";
    case float16:
      return "f16";
    case complex64:
      return "c64";
    case complex128:
      return "c128";
    default:
      throw errors::Internal(
          fmt::format("GPU kernels: a dtype of number {} is not one of theirs",
                      static_cast<int>(dtype)));
  }
}

std::string_view kernel_file(std::string_view name) {
  for (const KernelFile& f : kKernelFiles) {
    if (name == f.name) return f.text;
  }
  throw errors::Internal(
      fmt::format("GPU kernels: there is no file kernels/{}", name));
}

std::string text_of(const KernelSource& source) {
  std::string text(kernel_file("dialect.cl"));
  text += kernel_file("types.cl");
  for (const WholeType& t : kWholeTypes) {
    text += fmt::format(kWholeWords, t.word, t.wide, t.lowest, t.highest);
  }
  for (const auto& [letter, dtype] : source.types) {
    const std::string_view word = type_word(dtype);
    text += fmt::format("#define {} {}\n", letter, word);
    for (const char* w : kWords) {
      text += fmt::format("#define {}_{} {}_{}\n", letter, w, word, w);
    }
  }
  for (const auto& [name, value] : source.defines) {
    text += fmt::format("#define {} {}\n", name, value);
  }
  for (const std::string& file : source.files) text += kernel_file(file);
  return text + source.generated;
}

}  // namespace berth::gpu
