#include "distribute/parameter_server/registered_datasets.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::distribute {

namespace {

struct DatasetTable {
  std::mutex mutex;
  std::map<std::string, DatasetFn> fns;
};

DatasetTable& dataset_table() {
  static auto& table = immortal<DatasetTable>();
  return table;
}

}  // namespace

void register_dataset(const std::string& name, DatasetFn fn) {
  DatasetTable& table = dataset_table();
  std::lock_guard lock(table.mutex);
  table.fns[name] = std::move(fn);
}

DatasetFn registered_dataset(const std::string& name) {
  DatasetTable& table = dataset_table();
  std::lock_guard lock(table.mutex);
  const auto it = table.fns.find(name);
  if (it != table.fns.end()) return it->second;
  std::string known;
  for (const auto& [n, fn] : table.fns) {
    known += (known.empty() ? "\"" : ", \"") + n + "\"";
  }
  throw errors::NotFound(fmt::format(
      "there is no dataset \"{}\" in this task; expected one of {{{}}}, or "
      "distribute::register_dataset(\"{}\", ...) before the strategy is made, "
      "in every task",
      name, known, name));
}

}  // namespace berth::distribute
