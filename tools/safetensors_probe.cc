// What tools/safetensors_check runs: `write FILE` writes known tensors as a
// checkpoint's file of values, `check FILE` says whether a file holds them.

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "io/safetensors.h"

namespace {

using berth::Shape;
using berth::Tensor;

template <class T, class Fn>
Tensor make(const Fn& fn) {
  std::vector<T> v;
  for (int i = 0; i < 6; ++i) v.push_back(static_cast<T>(fn(i)));
  return berth::constant(std::span<const T>(v), Shape{2, 3});
}

std::vector<berth::io::TensorToWrite> known() {
  const Tensor odd = make<float>([](int i) { return i % 2; });
  return {
      {"f32", make<float>([](int i) { return i / 4.0f; })},
      {"f64", make<double>([](int i) { return i / 3.0; })},
      {"f16", berth::math::cast(make<float>([](int i) { return i / 8.0f; }),
                                berth::float16)},
      {"i32", make<int32_t>([](int i) { return i - 3; })},
      {"i64", make<int64_t>([](int64_t i) { return i << 40; })},
      {"u8", make<uint8_t>([](int i) { return i + 250; })},
      {"i8", make<int8_t>([](int i) { return i - 3; })},
      {"bool", odd > 0.5},
      {"scalar", berth::constant(7.f)},
      {"empty", berth::zeros({0, 4})},
      {"layer/sub layer \xc3\xa9", berth::ones({1})},
  };
}

std::string bytes_of(const Tensor& t) {
  std::string bytes(
      static_cast<size_t>(t.num_elements()) * berth::size_of(t.dtype()), '\0');
  t.copy_to(bytes.data());
  return bytes;
}

bool check(const std::string& path) {
  const berth::io::SafetensorsFile file(path, "check");
  const auto list = known();
  if (file.tensors().size() != list.size()) return false;
  for (const auto& t : list) {
    const int i = file.find(t.name);
    if (i < 0) return false;
    const Tensor got = file.tensor(i);
    if (got.dtype() != t.value.dtype() || !(got.shape() == t.value.shape()) ||
        bytes_of(got) != bytes_of(t.value)) {
      std::fprintf(stderr, "%s differs\n", t.name.c_str());
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1], path = argv[2];
  try {
    if (what == "check") return check(path) ? 0 : 1;
    berth::io::write_safetensors(path, known(), {}, "write");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
