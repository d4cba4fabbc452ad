#include "cli/place_input.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "berth/config.h"
#include "berth/errors.h"
#include "cli/commands.h"
#include "device/device_manager.h"
#include "graph/blob_table.h"
#include "io/written_function.h"
#include "place/place_text.h"

namespace berth::cli {

namespace {

// Returns this engine's kernels; for GPUs, those of a simulated one if there is
// no real one. Null: the engine has no such devices.
const KernelTable* kernels_of(const std::string& type) {
  for (const Device* d : DeviceManager::get().devices()) {
    if (d->type() == type) return &d->kernels();
  }
  return nullptr;
}

// Creates the devices of this process, for their kernel tables.
void create_devices() {
  // Nothing runs on a simulated one: the printed time is not of its clock.
  setenv("BERTH_SIM_CLOCK", "real", 0);
  try {
    if (config::list_physical_devices("GPU").empty()) {
      config::set_simulated_devices("GPUx1");
    }
    DeviceManager::get();
  } catch (const errors::Error& e) {
    throw UsageError(std::string("place: ") + e.what());
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  struct Close {
    void operator()(std::FILE* f) const {
      if (f != stdin) std::fclose(f);
    }
  };
  const std::unique_ptr<std::FILE, Close> file(
      path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  const auto fail = [&] {
    throw UsageError(fmt::format("{}: {}; expected a file that can be read",
                                 path, std::strerror(errno)));
  };
  if (!file) fail();
  std::string text;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), file.get())) {
    text.append(buffer, n);
    if (text.size() > kMaxGraphBytes) {
      throw UsageError(
          fmt::format("{}: more than {} bytes; expected a graph "
                      "text",
                      path, kMaxGraphBytes));
    }
  }
  if (std::ferror(file.get())) fail();
  return text;
}

std::string read_graph_file(const std::string& path) {
  try {
    if (auto text = io::read_function_text(path, path)) return *text;
  } catch (const errors::Error& e) {
    throw UsageError(e.what());
  }
  return read_file(path);
}

std::vector<std::string> devices_of_option(const std::string& list,
                                           const GraphText* text) {
  try {
    return devices_of_list(list, text);
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(fmt::format("--devices: {}", e.what()));
  }
}

PlaceInput parse_place_input(const std::string& path, const std::string& bytes,
                             const DevicesOfText& devices_for) {
  create_devices();
  const BlobsWithoutValues structure_alone;
  PlaceInput input;
  try {
    input.text = parse_text(bytes);
    if (input.text.graph.nodes.empty()) {
      throw UsageError(
          fmt::format("{}: no node stands outside of the {} functions; "
                      "expected node lines: "
                      "what is in a function is placed where a node calls it",
                      path, input.text.functions.size()));
    }
    input.devices =
        devices_for ? devices_for(input.text) : devices_of_text(input.text);
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(fmt::format("{}: {}", path, e.what()));
  }
  if (input.devices.empty()) {
    throw UsageError(fmt::format(
        "{}: no devices to place on; expected --devices, for example "
        "\"CPUx1,GPUx2\", or device lines in the text",
        path));
  }
  input.options = place_options(input.text, input.devices, kernels_of);
  return input;
}

PlaceInput read_place_input(const std::string& path,
                            const std::string& device_list) {
  const std::string bytes = read_graph_file(path);
  if (device_list.empty()) return parse_place_input(path, bytes);
  return parse_place_input(path, bytes, [&](const GraphText& text) {
    return devices_of_option(device_list, &text);
  });
}

}  // namespace berth::cli
