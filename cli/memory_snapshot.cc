// berth report SNAPSHOT: the page of a memory snapshot.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/commands.h"
#include "io/atomic_file.h"
#include "profiler/snapshot_page.h"

namespace berth::cli {

bool report_snapshot(const std::vector<std::string>& files,
                     const std::string& output) {
  if (files.size() != 1 || !profiler::is_memory_snapshot(files[0])) {
    return false;
  }
  std::ostringstream json;
  json << std::ifstream(files[0], std::ios::binary).rdbuf();
  const std::string page = profiler::snapshot_page(
      json.str(), std::filesystem::path(files[0]).stem().string());
  io::AtomicFile file(output, "report: -o");
  file.append(page.data(), page.size());
  file.commit();
  fmt::print("{}\n", output);
  return true;
}

}  // namespace berth::cli
