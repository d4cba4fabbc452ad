#include "base/vertex_folder.h"

namespace berth {

std::string or_vertex_folder(const std::string& given, const char* variable) {
  if (!given.empty()) return given;
  constexpr const char* kBucket = "gs://";
  std::string folder = environment(variable);
  if (folder.starts_with(kBucket)) folder = "/gcs/" + folder.substr(5);
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

}  // namespace berth
