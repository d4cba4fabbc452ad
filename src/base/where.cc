#include "base/where.h"

#include <fmt/format.h>

#include <cstring>

namespace berth {

std::string where_text(const char* layer, Site site) {
  std::string s;
  if (layer && *layer) s = fmt::format("layer \"{}\"", layer);
  if (site.file) {
    const char* base = std::strrchr(site.file, '/');
    if (!s.empty()) s += ", ";
    s += fmt::format("{}:{}", base ? base + 1 : site.file, site.line);
  }
  return s.empty() ? s : " (" + s + ")";
}

}  // namespace berth
