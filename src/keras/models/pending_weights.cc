// Gives weights the values that a checkpoint had for them.

#include "keras/models/pending_weights.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/immortal.h"

namespace berth::keras {

namespace {

using PendingOfLayer = std::map<std::string, std::vector<PutWeight>>;

std::mutex g_pending_mutex;
std::atomic<size_t> g_pending_layers{0};

std::map<const LayerState*, PendingOfLayer>& pending_layers() {
  static auto& all = immortal<std::map<const LayerState*, PendingOfLayer>>();
  return all;
}

PendingOfLayer take_pending(const LayerState& layer) {
  if (g_pending_layers.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard lock(g_pending_mutex);
  auto node = pending_layers().extract(&layer);
  g_pending_layers = pending_layers().size();
  return node.empty() ? PendingOfLayer() : std::move(node.mapped());
}

}  // namespace

void put_when_made(const LayerState& layer, const std::string& name,
                   PutWeight put) {
  const std::lock_guard lock(g_pending_mutex);
  pending_layers()[&layer][name].push_back(std::move(put));
  g_pending_layers = pending_layers().size();
}

void weights_are_made(const LayerState& layer) {
  const PendingOfLayer pending = take_pending(layer);
  if (pending.empty()) return;
  for (const auto* list : {&layer.weights.trainable, &layer.weights.other}) {
    for (const Variable& v : *list) {
      const auto it = pending.find(weight_name(layer, v));
      if (it == pending.end()) continue;
      for (const PutWeight& put : it->second) put(v);
    }
  }
}

bool has_pending_weights(const LayerState& layer) {
  if (g_pending_layers.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(g_pending_mutex);
  return pending_layers().contains(&layer);
}

void forget_pending_weights(const LayerState& layer) { take_pending(layer); }

std::string weight_name(const LayerState& layer, const Variable& weight) {
  const std::string& name = weight.name();
  const std::string prefix = layer.name + "/";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace berth::keras
