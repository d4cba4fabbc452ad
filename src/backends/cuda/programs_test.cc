// How many programs NVRTC compiles for a plan. Runs on the fake driver.

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "backends/cuda/cuda_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth::cuda {
namespace {

namespace fs = std::filesystem;
using fresh_process::check;

class ProgramsDeathTest : public CudaTest {};

// What the cache on disk has: a file per part, which names its program.
struct Kept {
  int parts = 0;
  std::set<std::string> programs;  // of parts
};

Kept kept_in(const std::string& folder) {
  Kept kept;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".cubin") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string line;
    while (std::getline(file, line)) {
    }
    ++kept.parts;
    kept.programs.insert(line);
  }
  return kept;
}

// A product stands between two chains: they are not one.
Tensor chain(const Tensor& x, float by) {
  return linalg::matmul(math::tanh(x * by + 1.0f) - x, x);
}

void count_programs() {
  std::string name = fs::temp_directory_path() / "berth_programs_XXXXXX";
  const std::string folder = mkdtemp(name.data());
  setenv("BERTH_CACHE_DIR", folder.c_str(), 1);
  if (kFake != nullptr) kFake->begin("devices=1");
  const auto on = device("/GPU:0");
  const Tensor x = zeros({32, 32});
  auto four = function([](const Tensor& in) {
    return chain(chain(chain(chain(in, 2), 3), 4), 5);
  });
  four(x);
  const Kept first = kept_in(folder + "/cuda");
  check(first.parts == 4, std::to_string(first.parts));
  check(first.programs.size() == 1, std::to_string(first.programs.size()));
  // Another plan compiles what is new.
  auto five = function([](const Tensor& in) {
    return chain(chain(chain(chain(in, 2), 3), 6), 7);
  });
  five(x);
  const Kept second = kept_in(folder + "/cuda");
  check(second.parts == 6, std::to_string(second.parts));
  check(second.programs.size() == 2, std::to_string(second.programs.size()));
  fs::remove_all(folder);
}

TEST_F(ProgramsDeathTest, OfTheChainsOfAPlanAreOneSlow) {
  IN_A_FRESH_PROCESS(count_programs());
}

}  // namespace
}  // namespace berth::cuda
