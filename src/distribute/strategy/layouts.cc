#include "distribute/strategy/layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/where.h"
#include "berth/errors.h"

namespace berth::distribute {

namespace {

constexpr int kMostUnits = 32;  // of shares

std::string str(const AxisNames& names) {
  return fmt::format("{{\"{}\"}}", fmt::join(names, "\", \""));
}

// The smallest whole numbers are the user's own.
std::vector<int> units_of(const std::vector<double>& shares, size_t devices,
                          Site site) {
  if (shares.empty()) return std::vector<int>(devices, 1);
  std::vector<int> units;
  double sum = 0;
  bool good = shares.size() == devices;
  for (const double x : shares) {
    good = good && x >= 1 && x <= kMostUnits && x == std::floor(x);
    sum += x;
    if (good) units.push_back(static_cast<int>(x));
  }
  if (good && sum <= kMostUnits) return units;
  throw errors::InvalidArgument(fmt::format(
      "ModelParallel: shares are {{{}}} of {} devices{}; expected a whole "
      "number of at least 1 for each, at most {} together",
      fmt::join(shares, ", "), devices, where_text(nullptr, site), kMostUnits));
}

}  // namespace

Mesh::Mesh(std::vector<MeshAxis> axes, std::vector<std::string> devices,
           Site site)
    : axes_(std::move(axes)), devices_(std::move(devices)) {
  std::set<std::string> names;
  size_t places = axes_.empty() ? 0 : 1;
  std::string text;
  bool good = true;
  for (const MeshAxis& a : axes_) {
    good = good && a.size > 0 && !a.name.empty() && names.insert(a.name).second;
    places *= static_cast<size_t>(std::max(a.size, 0));
    text +=
        fmt::format("{}\"{}\" {}", text.empty() ? "" : ", ", a.name, a.size);
  }
  if (good && places == devices_.size()) return;
  throw errors::InvalidArgument(fmt::format(
      "Mesh: axes are {}, and there are {} devices{}; expected axes with names "
      "of their own and sizes of at least 1, whose product is the number of "
      "devices",
      text.empty() ? "none" : text, devices_.size(),
      where_text(nullptr, site)));
}

int Mesh::dim_size(const std::string& name) const {
  for (const MeshAxis& a : axes_) {
    if (a.name == name) return a.size;
  }
  return 0;
}

AxisNames& LayoutMap::operator[](const std::string& key) {
  for (auto& [known, names] : entries_) {
    if (known == key) return names;
  }
  return entries_.emplace_back(key, AxisNames{}).second;
}

Layouts::Grid Layouts::grid_of(const Mesh& mesh, const std::string& batch,
                               Site site) {
  const auto& axes = mesh.axes();
  int split = 0;                 // axes that divide layers
  size_t stride = 1, place = 1;  // between devices along the axis of batches
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].name == batch) place = stride;
    split += axes[i].name != batch && axes[i].size > 1;
    stride *= static_cast<size_t>(axes[i].size);
  }
  const int replicas = batch.empty() ? 1 : mesh.dim_size(batch);
  if (replicas == 0 || split > 1) {
    throw errors::InvalidArgument(fmt::format(
        "a mesh: its axis of batches or stages is to be \"{}\", and {} other "
        "axes have several devices{}; expected the name of an axis or \"\", "
        "and "
        "one axis besides it",
        batch, split, where_text(nullptr, site)));
  }
  Grid grid{{}, replicas};
  for (int r = 0; r < replicas; ++r) {
    for (size_t d = 0; d < mesh.devices().size(); ++d) {
      const size_t along = d / place % static_cast<size_t>(replicas);
      if (along == static_cast<size_t>(r)) {
        grid.devices.push_back(mesh.devices()[d]);
      }
    }
  }
  return grid;
}

Layouts::Layouts(const LayoutMap& map, const ModelParallelOptions& options,
                 Site site)
    : mesh_(map.mesh()), batch_dim_name_(options.batch_dim_name), site_(site) {
  const std::string where = where_text(nullptr, site);
  const Grid grid = grid_of(mesh_, batch_dim_name_, site);
  shares_ =
      units_of(options.shares.weights(),
               grid.devices.size() / static_cast<size_t>(grid.replicas), site);
  for (const auto& [key, names] : map.entries()) {
    Entry& e = entries_.emplace_back();
    e.key = key;
    e.names = names;
    try {
      e.pattern = std::regex(key);
    } catch (const std::regex_error& error) {
      throw errors::InvalidArgument(fmt::format(
          "ModelParallel: the key \"{}\" is no regular expression{}: {}", key,
          where, error.what()));
    }
    e.axis = divided_axis(key, names);
  }
}

int Layouts::divided_axis(const std::string& key,
                          const AxisNames& names) const {
  int axis = -1;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const int size = mesh_.dim_size(names[i]);
    if (size == 0 || (size > 1 && axis >= 0) || names[i] == batch_dim_name_) {
      throw errors::InvalidArgument(fmt::format(
          "ModelParallel: the layout of \"{}\" is {}{}; expected \"\" and, at "
          "most once, the name of an axis of the mesh other than that of "
          "batches",
          key, str(names), where_text(nullptr, site_)));
    }
    if (size > 1) axis = static_cast<int>(i);
  }
  return axis;
}

int Layouts::axis_of(const VariableState& v) const {
  const Entry* found = nullptr;
  for (const Entry& e : entries_) {
    if (e.key == v.name) found = &e;
  }
  const bool exact = found != nullptr;
  for (const Entry& e : entries_) {
    if (exact || !std::regex_match(v.name, e.pattern)) continue;
    if (found != nullptr) {
      throw errors::InvalidArgument(fmt::format(
          "variable '{}'{}: the keys \"{}\" and \"{}\" of the layout map both "
          "match; expected one, or its name as a key",
          v.name, where_text(nullptr, v.site), found->key, e.key));
    }
    found = &e;
  }
  if (found == nullptr) return -1;
  check_fits(found->names, found->axis, v);
  found->used = true;
  return found->axis;
}

int Layouts::axis_of(const VariableState& v, const AxisNames& layout) const {
  const int axis = divided_axis(v.name, layout);
  check_fits(layout, axis, v);
  return axis;
}

void Layouts::check_fits(const AxisNames& names, int axis,
                         const VariableState& v) const {
  const auto units = std::accumulate(shares_.begin(), shares_.end(), 0);
  const char* expected = nullptr;
  if (names.size() != static_cast<size_t>(v.shape.rank())) {
    expected = "a name or \"\" for each of its axes";
  } else if (axis >= 0 && v.shape[axis] % units != 0) {
    expected = "an axis whose length is a multiple of the sum of shares";
  } else if (!v.parts.empty()) {
    expected = "no variable that synchronises on reading";
  }
  if (expected == nullptr) return;
  throw errors::InvalidArgument(fmt::format(
      "variable '{}' {}{}: its layout is {}, over shares of {}; expected {}",
      v.name, v.shape.str(), where_text(nullptr, v.site), str(names),
      fmt::join(shares_, ":"), expected));
}

void Layouts::check_used() const {
  for (const Entry& e : entries_) {
    if (e.used) continue;
    throw errors::InvalidArgument(fmt::format(
        "ModelParallel{}: the key \"{}\" of the layout map matches no "
        "variable; expected the name of one (variable.name()), or a regular "
        "expression for the whole of it",
        where_text(nullptr, site_), e.key));
  }
}

}  // namespace berth::distribute
