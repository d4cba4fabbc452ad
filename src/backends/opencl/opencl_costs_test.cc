// Costs of a GPU: measured, kept, and used by placement::Auto.

#include <cmath>
#include <filesystem>

#include "backends/opencl/opencl_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "place/cost_store.h"

namespace berth::opencl {
namespace {

using fresh_process::check;

using Costs = OpenClTest;

// Keeps costs in a temporary folder of this process.
struct OwnFolder {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("berth_costs_" + std::to_string(getpid()));

  OwnFolder() {
    std::filesystem::create_directories(path);
    setenv("BERTH_CACHE_DIR", path.c_str(), 1);
  }
  ~OwnFolder() { std::filesystem::remove_all(path); }
};

int32_t found(const Machine& m, const char* device) {
  return m.find(DeviceManager::get().lookup(DeviceName::parse(device)).str());
}

void measured_and_kept() {
  const OwnFolder folder;
  check(this_machine().class_of(found(this_machine(), "/GPU:0")).origin ==
            CostOrigin::kEstimated,
        "nothing is known before");
  MeasureOptions options;
  options.op_budget_ms = 4;
  const Machine m = measure_machine(true, options);
  const int32_t cpu = found(m, "/CPU:0"), gpu = found(m, "/GPU:0");
  const DeviceClass& rates = m.class_of(gpu);
  check(rates.origin == CostOrigin::kMeasured, "rates are measured");
  for (const double x :
       {rates.flops_per_us, rates.bytes_per_us, rates.launch_us,
        m.link(cpu, gpu).bytes_per_us, m.link(gpu, cpu).bytes_per_us}) {
    check(std::isfinite(x) && x > 0, "they are numbers above 0");
  }
  check(m.link(cpu, gpu).origin == CostOrigin::kMeasured, "there");
  check(m.link(gpu, cpu).origin == CostOrigin::kMeasured, "and back");
  // Another process would read the file.
  const CostStore read(folder.path / "costs.json", cost_version());
  const auto kept = read.find_class(rates.name);
  check(kept.has_value(), "kept by the name of the device");
  check(std::abs(kept->flops_per_us / rates.flops_per_us - 1) < 1e-6, "flops");
  check(std::abs(kept->launch_us / rates.launch_us - 1) < 1e-6, "launches");
}

// Returns where a chain of products runs when the card is declared `times` as
// fast as the processor.
std::string planned_on(double times) {
  const OwnFolder folder;
  const Machine m = this_machine();
  DeviceClass card = m.class_of(found(m, "/GPU:0"));
  card.flops_per_us = 1e4 * times;
  card.bytes_per_us = 1e4 * times;
  card.launch_us = 1 / times;
  card.origin = CostOrigin::kMeasured;
  CostStore::get().add_class(card);
  DeviceClass cores = m.class_of(found(m, "/CPU:0"));
  cores.flops_per_us = cores.bytes_per_us = cores.cached_bytes_per_us = 1e4;
  cores.launch_us = 1;
  cores.origin = CostOrigin::kMeasured;
  CostStore::get().add_class(cores);
  placement::Auto plan;
  plan.effort = placement::moves(20'000);
  plan.measure = false;
  auto f = function(
      [](const Tensor& x) {
        Tensor y = x;
        for (int i = 0; i < 8; ++i) y = linalg::matmul(y, x);
        return y;
      },
      {.name = "products", .placement = plan});
  const Tensor x = with_device("/CPU:0", [] { return ones({256, 256}); });
  check(f(x).to_vector<float>()[0] == std::pow(256.f, 8), "the product");
  std::string where;
  for (const auto& row : f.placement().ops) {
    if (row.type != "MatMul") continue;
    check(where.empty() || where == row.device, "all together");
    where = row.device;
  }
  return where;
}

void a_fast_card() {
  check(planned_on(100).find("GPU:0") != std::string::npos, "on the card");
}
void a_slow_card() {
  check(planned_on(0.01).find("CPU:0") != std::string::npos, "on the cores");
}

TEST_F(Costs, OfACardAreMeasuredAndKept) {
  IN_A_FRESH_PROCESS(measured_and_kept());
}

TEST_F(Costs, DecideWhereAutoPutsWork) {
  IN_A_FRESH_PROCESS(a_fast_card());
  IN_A_FRESH_PROCESS(a_slow_card());
}

}  // namespace
}  // namespace berth::opencl
