// Two loops over a plan's sequence: one for machines whose copies wait for
// nobody, where an op's end follows from its inputs' alone, and one for all.

#include "place/decode.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "place/decode_tables.h"
#include "place/peak_bytes.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUnset = -1;

// What every resource is free at stands beside every kStride-th position.
constexpr int32_t kStride = 8;

}  // namespace

class Decoder::Impl {
 public:
  Impl(const SimulatedGraph& graph, const CostTable& costs) : t_(graph, costs) {
    const auto n = graph.kind.size();
    const auto ops = static_cast<size_t>(t_.num_ops);
    no_log_ = t_.all_free && std::find(graph.kind.begin(), graph.kind.end(),
                                       Kind::kAlias) == graph.kind.end();
    const size_t devices = t_.num_devices;
    // Computing on d; the copy engine of d; a shared group; the latest end.
    const size_t resources =
        no_log_ ? devices : 2 * devices + static_cast<size_t>(t_.num_groups);
    free_.assign(resources + 1, 0);
    rows_.assign((ops / kStride + 1) * free_.size(), 0);
    tried_rows_ = rows_;
    span_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      if (graph.kind[i] == Kind::kAlias) span_[i] = {kUnset, kUnset};
    }
    kept_span_ = span_;
    kept_.sequence.resize(ops);
    kept_.device.assign(n, -1);
    targets_.reserve(devices);
    if (no_log_) return;
    make_log();
    log_.resize(tried_log_.size());
    row_events_.assign(ops / kStride + 1, 0);
    tried_row_events_ = row_events_;
    stand_.assign(n, -1);
    kept_stand_ = stand_;
    behind_.assign(ops + 1, -1);
    next_behind_.assign(n, -1);
  }

  double decode(const PlacePlan& plan) {
    drop_tried();
    std::fill_n(rows_.begin(), free_.size(), 0.0);  // in front of everything
    std::fill(kept_.device.begin(), kept_.device.end(), -1);
    first_ = 0;
    plan_ = &plan;
    tried_us_ = no_log_ ? run_free(kNever) : run_all(kNever);
    tried_ = true;
    accept();
    return kept_us_;
  }

  double try_from(const PlacePlan& changed, int32_t first, double stop_above) {
    drop_tried();
    plan_ = &changed;
    first_ = std::clamp(first, 0, t_.num_ops);
    tried_us_ = no_log_ ? run_free(stop_above) : run_all(stop_above);
    if (tried_us_ == kNever) {
      take_back(changed.sequence.data());
      plan_ = &kept_;
    } else {
      tried_ = true;
    }
    return tried_us_;
  }

  void accept() {
    if (!tried_) return;
    tried_ = false;
    kept_us_ = tried_us_;
    for (int32_t k = first_; k < t_.num_ops; ++k) {
      const int32_t op = plan_->sequence[k];
      kept_.sequence[k] = op;
      kept_.device[op] = plan_->device[op];
      kept_span_[op] = span_[op];
    }
    for (const int32_t i : t_.timeless) kept_.device[i] = plan_->device[i];
    plan_ = &kept_;
    const auto row = static_cast<ptrdiff_t>(first_ / kStride + 1);
    const auto at = row * static_cast<ptrdiff_t>(free_.size());
    std::copy(tried_rows_.begin() + at, tried_rows_.end(), rows_.begin() + at);
    if (no_log_) return;
    std::copy(tried_row_events_.begin() + row, tried_row_events_.end(),
              row_events_.begin() + row);
    std::copy(tried_log_.begin() + first_event_, tried_log_.begin() + events_,
              log_.begin() + first_event_);
    kept_events_ = events_;
    kept_stand_.swap(stand_);
  }

  double step_us() const { return kept_us_; }
  std::span<const Span> spans() const { return span_; }
  const DecodeTables& tables() const { return t_; }

  std::span<const Event> events() {
    if (no_log_) {
      list_copies();
      return {tried_log_.data(), static_cast<size_t>(events_)};
    }
    if (!tried_) return {log_.data(), static_cast<size_t>(kept_events_)};
    // What was tried has only its own part.
    std::copy(log_.begin(), log_.begin() + first_event_, tried_log_.begin());
    return {tried_log_.data(), static_cast<size_t>(events_)};
  }

  std::span<const int64_t> peak_bytes() {
    if (!peak_) peak_.emplace(t_.graph, t_.costs, t_.order);
    return peak_->compute(*plan_, span_, events());
  }

 private:
  // --- What was tried and is not kept.

  void drop_tried() {
    if (tried_) take_back(kept_.sequence.data());
    tried_ = false;
    plan_ = &kept_;
    reached_ = t_.num_ops;
  }

  // Makes the spans and the log those of the kept plan again; from first_ to
  // reached_, `sequence` names the ops that may differ.
  void take_back(const int32_t* sequence) {
    for (int32_t k = first_; k < reached_; ++k) {
      span_[sequence[k]] = kept_span_[sequence[k]];
    }
    if (no_log_) return;
    for (int32_t e = first_event_; e < events_; ++e) unset(tried_log_[e]);
    for (int32_t e = first_event_; e < kept_events_; ++e) set(log_[e]);
  }

  double& there(int32_t value, int32_t to) {
    return there_[static_cast<size_t>(value) * t_.num_devices + to];
  }
  void set(const Event& e) {
    if (e.to >= 0) {
      there(e.number, e.to) = e.end_us;
    } else {
      span_[e.number] = {e.start_us, e.end_us};
    }
  }
  void unset(const Event& e) {
    if (e.to >= 0) {
      there(e.number, e.to) = kUnset;
    } else {
      span_[e.number] = {kUnset, kUnset};
    }
  }

  void make_log() {
    there_.assign(t_.num_values * t_.num_devices, kUnset);
    tried_log_.resize(max_copies(t_.graph, t_.costs) + t_.timeless.size());
  }

  // Where copies wait for nobody and none are noted.
  void list_copies() {
    if (there_.empty()) make_log();
    for (int32_t e = 0; e < events_; ++e) unset(tried_log_[e]);
    events_ = position_ = 0;
    for (const int32_t i : t_.timeless) send_values(i);
    for (const int32_t op : plan_->sequence) {
      ++position_;
      send_values(op);
    }
  }

  // --- Rows.

  void load_row(int32_t row) {
    const double* from = rows_.data() + static_cast<size_t>(row) * free_.size();
    std::copy(from, from + free_.size(), free_.begin());
  }
  void save_row(int32_t row) {
    std::copy(
        free_.begin(), free_.end(),
        tried_rows_.begin() +
            static_cast<ptrdiff_t>(static_cast<size_t>(row) * free_.size()));
  }

  // --- Copies that wait for nobody.

  double run_free(double stop_above) {
    for (const int32_t i : t_.timeless) {
      if (plan_->device[i] != kept_.device[i]) first_ = 0;
    }
    const int32_t* sequence = plan_->sequence.data();
    const int32_t* device = plan_->device.data();
    double* free = free_.data();
    Span* span = span_.data();
    const int32_t row = first_ / kStride;
    load_row(row);
    double latest = free_.back();
    for (int32_t k = row * kStride; k < first_; ++k) {
      const double end = span[sequence[k]].end_us;
      free[device[sequence[k]]] = end;
      latest = std::max(latest, end);
    }
    int32_t k = first_;
    while (k < t_.num_ops) {
      const int32_t until = std::min(t_.num_ops, (k / kStride + 1) * kStride);
      for (; k < until; ++k) {
        const int32_t op = sequence[k];
        const int32_t on = device[op];
        double start = free[on];
        for (const DecodeTables::Read& r : t_.reads[op]) {
          start =
              std::max(start, span[r.producer].end_us +
                                  t_.copy_us(r.value, device[r.producer], on));
        }
        for (const int32_t c : t_.graph.controls[op]) {
          start = std::max(start, span[c].end_us);
        }
        const double end = start + t_.us(op, on);
        span[op] = {start, end};
        free[on] = end;
        latest = std::max(latest, end);
        if (end + t_.behind_us[op] > stop_above) {
          reached_ = k + 1;
          return kNever;
        }
      }
      free_.back() = latest;
      if (k % kStride == 0) save_row(k / kStride);
    }
    reached_ = t_.num_ops;
    return latest > stop_above ? kNever : latest;
  }

  // --- All rules.

  double run_all(double stop_above) {
    find_first();
    const int32_t* sequence = plan_->sequence.data();
    const int32_t* device = plan_->device.data();
    const int32_t row = first_ / kStride;
    load_row(row);
    events_ = first_event_ = first_ == 0 ? 0 : row_events_[row];
    for (int32_t e = first_event_; e < kept_events_; ++e) unset(log_[e]);
    double latest = free_.back();
    position_ = first_;
    if (t_.any_eager) {
      find_stands();
      if (first_ == 0) send_behind(-1);
    }
    for (int32_t k = first_; k < t_.num_ops;) {
      const int32_t op = sequence[k];
      const int32_t on = device[op];
      position_ = k;
      double start = 0;
      for (const DecodeTables::Read& r : t_.reads[op]) {
        start = std::max(start, arrive(r, on));
      }
      for (const int32_t c : t_.graph.controls[op]) {
        start = std::max(start, done(c));
      }
      start = std::max(start, free_[on]);
      const double end = start + t_.us(op, on);
      span_[op] = {start, end};
      free_[on] = end;
      latest = std::max(latest, end);
      ++k;
      if (end + t_.behind_us[op] > stop_above) {
        reached_ = k;
        return kNever;
      }
      position_ = k;
      if (t_.any_eager) {
        send_values(op);
        send_behind(k - 1);
      }
      if (k % kStride != 0) continue;
      free_.back() = latest;
      save_row(k / kStride);
      tried_row_events_[k / kStride] = events_;
    }
    for (const int32_t i : t_.timeless) latest = std::max(latest, done(i));
    reached_ = t_.num_ops;
    return latest > stop_above ? kNever : latest;
  }

  // Moves first_ to the row from which something changes.
  void find_first() {
    const auto before = [&](const DecodeTables::Read& r) {
      first_ = std::min(first_, std::max(0, kept_stand_[r.producer]));
    };
    if (t_.any_eager) {
      // Copies of inputs stand behind their producers.
      for (int32_t k = first_; k < t_.num_ops; ++k) {
        const int32_t op = plan_->sequence[k];
        if (plan_->device[op] == kept_.device[op]) continue;
        for (const DecodeTables::Read& r : t_.reads[op]) before(r);
      }
    }
    for (const int32_t i : t_.timeless) {
      if (plan_->device[i] == kept_.device[i]) continue;
      // Without eager copies nobody knows where aliases stand.
      if (!t_.any_eager || t_.reads[i].empty()) first_ = 0;
      for (const DecodeTables::Read& r : t_.reads[i]) before(r);
    }
    first_ = first_ / kStride * kStride;
  }

  // Behind which position everything stands, -1: in front; and what takes no
  // time, in lists by position.
  void find_stands() {
    for (int32_t k = 0; k < t_.num_ops; ++k) stand_[plan_->sequence[k]] = k;
    std::fill(behind_.begin() + (first_ == 0 ? 0 : first_ + 1), behind_.end(),
              -1);
    for (const int32_t i : t_.timeless) {
      int32_t stand = -1;
      for (const DecodeTables::Read& r : t_.reads[i]) {
        stand = std::max(stand, stand_[r.producer]);
      }
      for (const int32_t c : t_.graph.controls[i]) {
        stand = std::max(stand, stand_[c]);
      }
      stand_[i] = stand;
    }
    // The last first, as each goes to the head of its list.
    for (auto it = t_.timeless.rbegin(); it != t_.timeless.rend(); ++it) {
      const int32_t stand = stand_[*it];
      if (stand < first_ && first_ > 0) continue;
      next_behind_[*it] = behind_[stand + 1];
      behind_[stand + 1] = *it;
    }
  }

  void send_behind(int32_t position) {
    for (int32_t i = behind_[position + 1]; i >= 0; i = next_behind_[i]) {
      send_values(i);
    }
  }

  // Copies the values of a node to the overlapping devices that read them.
  void send_values(int32_t node) {
    const int32_t home = plan_->device[node];
    for (const int32_t v : t_.graph.values[node]) {
      if (t_.graph.everywhere[v]) continue;
      targets_.clear();
      for (const int32_t r : t_.graph.readers[v]) {
        const int32_t to = plan_->device[r];
        if (to == home || !t_.eager[to] || there(v, to) >= 0 ||
            std::find(targets_.begin(), targets_.end(), to) != targets_.end()) {
          continue;
        }
        targets_.push_back(to);
      }
      std::sort(targets_.begin(), targets_.end());
      for (const int32_t to : targets_) copy(v, home, to, done(node));
    }
  }

  // When a node has ended.
  double done(int32_t node) {
    const double end = span_[node].end_us;
    return end >= 0 ? end : settle(node);
  }

  double settle(int32_t alias) {
    const int32_t on = plan_->device[alias];
    double at = 0;
    for (const DecodeTables::Read& r : t_.reads[alias]) {
      at = std::max(at, arrive(r, on));
    }
    for (const int32_t c : t_.graph.controls[alias]) {
      at = std::max(at, done(c));
    }
    tried_log_[events_++] = {alias, -1, position_, at, at};
    span_[alias] = {at, at};
    return at;
  }

  // When what is read is on a device.
  double arrive(const DecodeTables::Read& r, int32_t on) {
    const int32_t home = plan_->device[r.producer];
    if (home == on || t_.graph.everywhere[r.value]) return done(r.producer);
    const double end = there(r.value, on);
    return end >= 0 ? end : copy(r.value, home, on, done(r.producer));
  }

  double copy(int32_t value, int32_t from, int32_t to, double ready) {
    double* wants[3] = {};
    const CopyRule rule = t_.costs.devices[to].copies;
    if (rule != CopyRule::kFree) {
      const auto devices = static_cast<int32_t>(t_.num_devices);
      wants[0] = &free_[rule == CopyRule::kOverlap ? devices + to : to];
      if (t_.costs.devices[from].copies == CopyRule::kBoth) {
        wants[1] = &free_[from];
      }
      const int32_t group = t_.group(from, to);
      if (group >= 0) wants[2] = &free_[2 * devices + group];
    }
    double start = ready;
    for (const double* w : wants) {
      if (w) start = std::max(start, *w);
    }
    const double end = start + t_.copy_us(value, from, to);
    for (double* w : wants) {
      if (w) *w = end;
    }
    tried_log_[events_++] = {value, to, position_, start, end};
    there(value, to) = end;
    return end;
  }

  const DecodeTables t_;
  bool no_log_ = false;  // copies are what they are: run_free()

  // Of the plan decoded last.
  std::vector<Span> span_;     // per node; aliases that wait: kUnset
  std::vector<double> free_;   // per resource; last the latest end of all
  std::vector<double> there_;  // [value * devices + device]: end of the copy

  // Of the kept plan, and (tried_) of the one tried, from first_ on.
  double kept_us_ = 0, tried_us_ = 0;
  std::vector<Span> kept_span_;
  PlacePlan kept_;
  std::vector<double> rows_, tried_rows_;
  std::vector<Event> log_, tried_log_;
  int32_t kept_events_ = 0, events_ = 0;
  std::vector<int32_t> row_events_, tried_row_events_;
  std::vector<int32_t> kept_stand_, stand_;  // per node: position, or behind it

  // The trial.
  const PlacePlan* plan_ = nullptr;
  int32_t position_ = 0;              // in front of the op that is decoded
  bool tried_ = false;                // it can be accepted
  int32_t first_ = 0;                 // position from which it was decoded
  int32_t first_event_ = 0;           // number of the first event from there
  int32_t reached_ = 0;               // position behind the last op decoded
  std::vector<int32_t> behind_;       // per position + 1: first of a list
  std::vector<int32_t> next_behind_;  // per node
  std::vector<int32_t> targets_;
  std::optional<PeakBytes> peak_;
};

Decoder::Decoder(const SimulatedGraph& graph, const CostTable& costs)
    : impl_(std::make_unique<Impl>(graph, costs)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

double Decoder::decode(const PlacePlan& plan) { return impl_->decode(plan); }
double Decoder::try_from(const PlacePlan& changed, int32_t first,
                         double stop_above) {
  return impl_->try_from(changed, first, stop_above);
}
void Decoder::accept() { impl_->accept(); }
double Decoder::step_us() const { return impl_->step_us(); }
std::span<const Decoder::Span> Decoder::spans() const { return impl_->spans(); }
std::span<const int64_t> Decoder::peak_bytes() { return impl_->peak_bytes(); }
double Decoder::path_behind_us(int32_t node) const {
  return impl_->tables().behind_us[static_cast<size_t>(node)];
}
std::span<const Decoder::Event> Decoder::events() { return impl_->events(); }
double Decoder::copy_us(int32_t value, int32_t from, int32_t to) const {
  return impl_->tables().copy_us(value, from, to);
}

}  // namespace berth
