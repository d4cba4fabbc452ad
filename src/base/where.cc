#include "base/where.h"

#include <fmt/format.h>

#include <cstring>

namespace berth {

const char* file_name(Site site) {
  if (site.file == nullptr) return "?";
  const char* slash = std::strrchr(site.file, '/');
  return slash ? slash + 1 : site.file;
}

std::string where_text(const char* layer, Site site) {
  std::string s;
  if (layer && *layer) s = fmt::format("layer \"{}\"", layer);
  if (site.file) {
    if (!s.empty()) s += ", ";
    s += fmt::format("{}:{}", file_name(site), site.line);
  }
  return s.empty() ? s : " (" + s + ")";
}

}  // namespace berth
