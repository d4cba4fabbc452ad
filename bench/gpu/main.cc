// bench_gpu: the rows of the table for cards on one device.
//
//   bench_gpu [--device=/GPU:0] [--model product|cublaslt|mlp|resnet50|gpt2|
//             chain|input_copy|latency] [--small] [--blocks N] [--seconds T]
//             [--json]
//
// Without --model, all of them. A row that cannot be measured here says so and
// ends with 77. Lines are JSON, with or without --json.

#include <cstdio>
#include <exception>
#include <functional>
#include <string_view>
#include <utility>

#include "bench/bench_common.h"
#include "bench/gpu/rows.h"
#include "berth/berth.h"

namespace berth_bench {
namespace {

const std::pair<const char*, std::function<void(const GpuOptions&)>> kRows[] = {
    {"product", product_row},
    {"mlp", [](const GpuOptions& o) { step_row(o, "mlp"); }},
    {"resnet50", [](const GpuOptions& o) { step_row(o, "resnet50"); }},
    {"gpt2", [](const GpuOptions& o) { step_row(o, "gpt2"); }},
    {"chain", chain_row},
    {"input_copy", input_copy_row},
    {"latency", latency_row},
    {"cublaslt", cublaslt_row},  // last: a library of others'
};

int usage(const char* why) {
  std::fprintf(stderr,
               "bench_gpu: %s; usage: bench_gpu [--device=/GPU:0] "
               "[--model NAME] [--small] [--blocks N] [--seconds T]\n",
               why);
  return 2;
}

// "--name value" and "--name=value"; false at the end.
bool next(int argc, char** argv, int* i, std::string* name,
          std::string* value) {
  if (++*i >= argc) return false;
  const std::string_view arg = argv[*i];
  const size_t equals = arg.find('=');
  *name = arg.substr(0, equals);
  value->clear();
  if (equals != std::string_view::npos) {
    *value = arg.substr(equals + 1);
  } else if (*name != "--small" && *name != "--json" && *i + 1 < argc) {
    *value = argv[++*i];
  }
  return true;
}

// `device` as "/GPU:0" or a full name.
bool is_there(const std::string& device) {
  const std::string part = device.substr(device.rfind('/') + 1);
  const std::string end = part.starts_with("device:") ? part : "device:" + part;
  for (const auto& d : berth::config::list_logical_devices()) {
    if (d.name.ends_with("/" + end)) return true;
  }
  return false;
}

int run(int argc, char** argv) {
  GpuOptions o;
  std::string name, value;
  for (int i = 0; next(argc, argv, &i, &name, &value);) {
    if (name == "--device") {
      o.device = value;
    } else if (name == "--model") {
      o.model = value;
    } else if (name == "--blocks") {
      o.blocks = std::atoi(value.c_str());
    } else if (name == "--seconds") {
      o.seconds = std::atof(value.c_str());
    } else if (name == "--small") {
      o.small = true;
    } else if (name != "--json" && name != "--cores") {
      return usage(("\"" + name + "\" is not understood").c_str());
    }
  }
  if (o.blocks < 1 || o.blocks > 10000 || !(o.seconds > 0)) {
    return usage("--blocks must be 1 to 10000, --seconds above 0");
  }
  bool ran = false;
  for (const auto& [row, fn] : kRows) {
    if (!o.model.empty() && o.model != row) continue;
    if (std::string_view(row) != "cublaslt" && !is_there(o.device)) {
      return skip("gpu_" + std::string(row), 1,
                  "there is no device " + o.device +
                      " (`berth devices --why` says why)");
    }
    fn(o);
    ran = true;
  }
  return ran ? 0 : usage(("there is no row \"" + o.model + "\"").c_str());
}

}  // namespace
}  // namespace berth_bench

int main(int argc, char** argv) {
  try {
    return berth_bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_gpu: %s\n", e.what());
    return 1;
  }
}
