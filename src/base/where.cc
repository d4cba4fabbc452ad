#include "base/where.h"

#include <fmt/format.h>

#include <cstring>

namespace berth {

const char* file_name(Site site) {
  if (site.file == nullptr) return "?";
  const char* slash = std::strrchr(site.file, '/');
  return slash ? slash + 1 : site.file;
}

std::string site_text(Site site) {
  return site.file ? fmt::format("{}:{}", file_name(site), site.line) : "";
}

std::string call_text(std::string_view what, Site site) {
  return std::string(what) + where_text(nullptr, site);
}

std::string where_text(const char* layer, Site site) {
  std::string s;
  if (layer && *layer) s = fmt::format("layer \"{}\"", layer);
  if (site.file) {
    if (!s.empty()) s += ", ";
    s += site_text(site);
  }
  return s.empty() ? s : " (" + s + ")";
}

}  // namespace berth
