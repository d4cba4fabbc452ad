#include "article.h"

#include <CLI/CLI.hpp>
#include <exception>
#include <stdexcept>

namespace article {

namespace {
std::string given_model;
}  // namespace

const std::string& model_name() { return given_model; }

void print_devices() {
  std::string list;
  for (const auto& d : berth::config::list_logical_devices()) {
    list +=
        fmt::format("{}{} ({})", list.empty() ? "" : ", ",
                    d.name.substr(d.name.rfind("device:") + 7), d.description);
  }
  fmt::print("devices: {}\n", list);
}

int main_of(const std::string& name, int argc, char** argv,
            const std::function<int()>& sensible,
            const std::function<int()>& as_printed) {
  CLI::App app(name);
  bool printed = false;
  std::string devices;
  app.add_flag("--as-printed", printed, "as the article prints it");
  app.add_option("--devices", devices, "device list, such as CPUx2");
  app.add_option("--model", given_model, "model of 000_1 or 001_2 (003 alone)")
      ->check(CLI::IsMember({"000_1", "001_2"}));
  try {
    app.parse(argc, argv);
    if (!devices.empty()) berth::config::set_device_list(devices);
    return printed ? as_printed() : sensible();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (const berth::errors::Error& e) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}: {}\n", name, code_name(e.code()), e.what());
  } catch (const std::out_of_range& e) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: OUT_OF_RANGE: {}\n", name, e.what());
  } catch (const std::exception& e) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", name, e.what());
  }
  return 1;
}

}  // namespace article
