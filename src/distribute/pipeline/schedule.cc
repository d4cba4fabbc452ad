#include "distribute/pipeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "berth/errors.h"

namespace berth::distribute {

namespace {

using List = std::vector<PipelineAction>;

[[noreturn]] void refuse(const std::string& text) {
  throw errors::InvalidArgument("PipelineStrategy: " + text);
}

// Appends instructions of one stage, each pass counting its micro-batches.
class Writer {
 public:
  explicit Writer(int micro_batches) : end_(micro_batches) {}
  void add(int stage, const char* passes) {
    for (; *passes != '\0'; ++passes) {
      const int k = next(stage, *passes)++;
      if (k < end_) list_.push_back({stage, *passes, k});
    }
  }
  int count(int stage, char pass) { return next(stage, pass); }
  List take() { return std::move(list_); }

 private:
  struct Count {
    int stage;
    char pass;
    int next = 0;
  };
  int& next(int stage, char pass) {
    for (Count& c : next_) {  // of a few
      if (c.stage == stage && c.pass == pass) return c.next;
    }
    return next_.emplace_back(Count{stage, pass}).next;
  }

  const int end_;
  std::vector<Count> next_;
  List list_;
};

List gpipe(const ScheduleShape& s, int device) {
  Writer w(s.micro_batches);
  for (int k = 0; k < s.micro_batches; ++k) w.add(device, "F");
  for (int k = 0; k < s.micro_batches; ++k) w.add(device, "B");
  return w.take();
}

List one_f_one_b(const ScheduleShape& s, int device) {
  Writer w(s.micro_batches);
  const int warm = std::min(s.micro_batches, s.devices - 1 - device);
  for (int k = 0; k < warm; ++k) w.add(device, "F");
  for (int k = warm; k < s.micro_batches; ++k) w.add(device, "FB");
  for (int k = 0; k < warm; ++k) w.add(device, "B");
  return w.take();
}

// Micro-batches go through the device's stages in groups of as many as there
// are devices.
List interleaved(const ScheduleShape& s, int device) {
  const int p = s.devices, chunks = s.stages / p;
  const int total = s.micro_batches * chunks;
  Writer w(s.micro_batches);
  const auto stage = [&](int k, bool backward) {
    const int chunk = k / p % chunks;
    return (backward ? chunks - 1 - chunk : chunk) * p + device;
  };
  const int warm = std::min(total, (chunks - 1) * p + 2 * (p - 1 - device));
  for (int k = 0; k < warm; ++k) w.add(stage(k, false), "F");
  for (int k = 0; k < total; ++k) {
    if (warm + k < total) w.add(stage(warm + k, false), "F");
    w.add(stage(k, true), "B");
  }
  return w.take();
}

List zb_h1(const ScheduleShape& s, int device) {
  Writer w(s.micro_batches);
  const int warm = std::min(s.micro_batches, s.devices - device);
  for (int k = 0; k < warm; ++k) w.add(device, "F");
  for (int k = 0; k < s.micro_batches; ++k) {
    w.add(device, "I");
    if (k >= device) w.add(device, "W");
    if (warm + k < s.micro_batches) w.add(device, "F");
  }
  for (int k = 0; k < std::min(device, s.micro_batches); ++k) {
    w.add(device, "W");
  }
  return w.take();
}

// The pattern needs 2p - 1 micro-batches; with fewer, those are left out.
List zb_v(const ScheduleShape& s, int device) {
  const int p = s.devices, m = std::max(s.micro_batches, 2 * p - 1);
  const int there = device, back = s.stages - 1 - device;
  Writer w(s.micro_batches);
  for (int k = 0; k < 2 * (p - device) - 1; ++k) w.add(there, "F");
  for (int k = 0; k < device; ++k) {
    w.add(back, "F");
    w.add(there, "F");
  }
  for (int k = 0; k < p - device; ++k) w.add(back, "FIW");
  while (w.count(back, 'F') < w.count(there, 'F') || w.count(there, 'F') < m) {
    if (w.count(there, 'F') < m) w.add(there, "F");
    w.add(there, "IW");
    w.add(back, "FIW");
  }
  for (int k = 0; k < device; ++k) {
    w.add(there, "I");
    w.add(back, "I");
  }
  for (int k = 0; k < p - device; ++k) w.add(there, "IW");
  for (const int stage : {back, there}) {
    while (w.count(stage, 'W') < w.count(stage, 'I')) w.add(stage, "W");
  }
  return w.take();
}

void check_shape(const ScheduleShape& s) {
  const bool several = s.schedule == PipelineSchedule::kInterleaved1F1B;
  const bool there_and_back = s.schedule == PipelineSchedule::kZbV;
  const bool fits = several ? s.stages % s.devices == 0 && s.stages > s.devices
                            : s.stages == s.devices * (there_and_back ? 2 : 1);
  if (!fits) {
    refuse(fmt::format(
        "{} stages on {} devices; schedule {} expects {}", s.stages, s.devices,
        name_of(s.schedule),
        several ? fmt::format("a multiple, {} or more", 2 * s.devices)
                : std::to_string(s.devices * (there_and_back ? 2 : 1))));
  }
  if (several && s.micro_batches % s.devices != 0) {
    refuse(
        fmt::format("{} micro-batches on {} devices; schedule {} expects a "
                    "multiple",
                    s.micro_batches, s.devices, name_of(s.schedule)));
  }
}

std::string text_of(const PipelineAction& a) {
  return fmt::format("{}{}{}", a.stage, a.pass, a.micro_batch);
}

}  // namespace

const char* name_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::kGPipe:
      return "gpipe";
    case PipelineSchedule::k1F1B:
      return "1f1b";
    case PipelineSchedule::kInterleaved1F1B:
      return "interleaved-1f1b";
    case PipelineSchedule::kZbH1:
      return "zb-h1";
    case PipelineSchedule::kZbV:
      return "zb-v";
  }
  return "";
}

PipelineSchedule schedule_named(const std::string& name) {
  std::string known;
  for (const auto s : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B,
                       PipelineSchedule::kInterleaved1F1B,
                       PipelineSchedule::kZbH1, PipelineSchedule::kZbV}) {
    if (name == name_of(s)) return s;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name_of(s));
  }
  refuse(fmt::format("schedule is \"{}\"; expected one of {}", name, known));
}

int ScheduleShape::device_of(int stage) const {
  if (schedule != PipelineSchedule::kZbV) return stage % devices;
  return stage < devices ? stage : 2 * devices - 1 - stage;
}

PipelineActions actions_of(const ScheduleShape& shape) {
  check_shape(shape);
  PipelineActions lists;
  for (int d = 0; d < shape.devices; ++d) {
    switch (shape.schedule) {
      case PipelineSchedule::kGPipe:
        lists.push_back(gpipe(shape, d));
        break;
      case PipelineSchedule::k1F1B:
        lists.push_back(one_f_one_b(shape, d));
        break;
      case PipelineSchedule::kInterleaved1F1B:
        lists.push_back(interleaved(shape, d));
        break;
      case PipelineSchedule::kZbH1:
        lists.push_back(zb_h1(shape, d));
        break;
      case PipelineSchedule::kZbV:
        lists.push_back(zb_v(shape, d));
        break;
    }
  }
  return lists;
}

PipelineActions forward_only(const PipelineActions& actions,
                             int micro_batches) {
  PipelineActions kept;
  for (const List& list : actions) {
    kept.emplace_back();
    std::copy_if(list.begin(), list.end(), std::back_inserter(kept.back()),
                 [&](const PipelineAction& a) {
                   return a.pass == 'F' && a.micro_batch < micro_batches;
                 });
  }
  return kept;
}

std::string str(const PipelineActions& actions) {
  std::string text;
  for (const List& list : actions) {
    for (size_t i = 0; i < list.size(); ++i) {
      text += (i > 0 ? " " : "") + text_of(list[i]);
    }
    text += '\n';
  }
  return text;
}

PipelineActions parse_actions(const std::string& text) {
  PipelineActions lists;
  const auto is_number = [](const std::string& s) {
    return !s.empty() && s.size() < 7 &&
           s.find_first_not_of("0123456789") == std::string::npos;
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r,") == std::string::npos) continue;
    List& list = lists.emplace_back();
    const char* separators = " \t\r,";
    for (size_t at = line.find_first_not_of(separators);
         at != std::string::npos; at = line.find_first_not_of(separators, at)) {
      const size_t stop =
          std::min(line.find_first_of(separators, at), line.size());
      const std::string word = line.substr(at, stop - at);
      at = stop;
      const size_t pass = word.find_first_of("FBIW");
      const std::string stage = word.substr(0, pass);
      const std::string part =
          pass == std::string::npos ? "" : word.substr(pass + 1);
      if (!is_number(stage) || !is_number(part)) {
        refuse(fmt::format(
            "instruction \"{}\" of device {}; expected a stage, a pass (F, B, "
            "I or W) and a micro-batch, such as 0F1",
            word, lists.size() - 1));
      }
      list.push_back({std::stoi(stage), word[pass], std::stoi(part)});
    }
  }
  return lists;
}

void check_actions(const PipelineActions& actions, const ScheduleShape& shape) {
  if (static_cast<int>(actions.size()) != shape.devices) {
    refuse(
        fmt::format("instructions for {} devices; expected a line for each "
                    "of {}",
                    actions.size(), shape.devices));
  }
  // Place in its list, by stage, micro-batch and pass.
  std::map<std::tuple<int32_t, int32_t, char>, size_t> at;
  for (int d = 0; d < shape.devices; ++d) {
    const List& list = actions[static_cast<size_t>(d)];
    for (size_t i = 0; i < list.size(); ++i) {
      const PipelineAction& a = list[i];
      const std::string where = fmt::format("{} of device {}", text_of(a), d);
      if (a.stage >= shape.stages || a.micro_batch >= shape.micro_batches) {
        refuse(fmt::format("{}: there are {} stages and {} micro-batches",
                           where, shape.stages, shape.micro_batches));
      }
      if (shape.device_of(a.stage) != d) {
        refuse(fmt::format("{}: stage {} is on device {}", where, a.stage,
                           shape.device_of(a.stage)));
      }
      if (!at.insert({{a.stage, a.micro_batch, a.pass}, i}).second) {
        refuse(fmt::format("{} is there twice", where));
      }
    }
  }
  for (int s = 0; s < shape.stages; ++s) {
    for (int k = 0; k < shape.micro_batches; ++k) {
      const auto place = [&](char pass) {
        const auto it = at.find({s, k, pass});
        return it == at.end() ? -1 : static_cast<int64_t>(it->second);
      };
      const int64_t f = place('F'), b = place('B'), i = place('I'),
                    w = place('W');
      const auto missing = [&](char pass) {
        refuse(fmt::format("{}{}{} is missing on device {}", s, pass, k,
                           shape.device_of(s)));
      };
      if (f < 0) missing('F');
      if (b >= 0 && (i >= 0 || w >= 0)) {
        refuse(
            fmt::format("stage {} has both {}B{} and a half of it", s, s, k));
      }
      if (b < 0 && i < 0) missing(w >= 0 ? 'I' : 'B');
      if (b < 0 && w < 0) missing('W');
      const auto before = [&](int64_t first, int64_t then, char x, char y) {
        if (first < then) return;
        refuse(
            fmt::format("{}{}{} of device {} comes before {}{}{}, which it "
                        "needs",
                        s, y, k, shape.device_of(s), s, x, k));
      };
      before(f, b >= 0 ? b : i, 'F', b >= 0 ? 'B' : 'I');
      if (w >= 0) before(i, w, 'I', 'W');
    }
  }
  const auto n = static_cast<size_t>(shape.stages);
  const std::vector<double> one(n, 1);
  time_of(actions, {one, one, one, 0});
}

namespace {

// Runs the lists: what each instruction waits for, and when it ends.
class Clock {
 public:
  Clock(const PipelineActions& actions, const PipelineTimes& times)
      : actions_(actions), times_(times), next_(actions.size(), 0) {
    for (size_t d = 0; d < actions.size(); ++d) {
      for (const PipelineAction& a : actions[d]) {
        const auto s = static_cast<size_t>(a.stage);
        if (s >= device_.size()) device_.resize(s + 1, 0);
        device_[s] = static_cast<int>(d);
        last_ = std::max(last_, a.stage);
        micro_batches_ = std::max(micro_batches_, a.micro_batch + 1);
      }
    }
    end_.assign(device_.size() * static_cast<size_t>(micro_batches_) * 4, -1);
  }

  PipelineTiming run() {
    const size_t n = actions_.size();
    PipelineTiming t;
    t.begin_us.resize(n);
    t.busy_us.assign(n, 0);
    t.in_flight = in_flight(actions_);
    std::vector<double> free(n, 0);
    for (size_t d = 0; d < n; ++d) t.begin_us[d].reserve(actions_[d].size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t d = 0; d < n; ++d) {
        while (next_[d] < actions_[d].size()) {
          const PipelineAction& a = actions_[d][next_[d]];
          const double ready = ready_at(a, static_cast<int>(d));
          if (ready < 0) break;
          const double begin = std::max(ready, free[d]);
          const double length = times_.of(a);
          t.begin_us[d].push_back(begin);
          t.busy_us[d] += length;
          free[d] = end_[at(a.stage, a.micro_batch, a.pass)] = begin + length;
          t.step_us = std::max(t.step_us, free[d]);
          ++next_[d];
          moved = true;
        }
      }
    }
    for (size_t d = 0; d < n; ++d) {
      if (next_[d] < actions_[d].size()) refuse(deadlock());
    }
    return t;
  }

 private:
  // -1: not yet known.
  double end_of(int stage, int micro_batch, const char* passes,
                int device) const {
    for (; *passes != '\0'; ++passes) {
      const double end = end_[at(stage, micro_batch, *passes)];
      if (end < 0) continue;
      const bool here = device_[static_cast<size_t>(stage)] == device;
      return end + (here ? 0 : times_.hop);
    }
    return -1;
  }

  size_t at(int stage, int micro_batch, char pass) const {
    const int of_all = stage * micro_batches_ + micro_batch;
    const int of_pass = pass == 'F' ? 0 : pass == 'B' ? 1 : pass == 'I' ? 2 : 3;
    return static_cast<size_t>(of_all) * 4 + static_cast<size_t>(of_pass);
  }

  double ready_at(const PipelineAction& a, int device) const {
    const int k = a.micro_batch;
    if (a.pass == 'W') return end_of(a.stage, k, "I", device);
    if (a.pass == 'F') {
      return a.stage == 0 ? 0 : end_of(a.stage - 1, k, "F", device);
    }
    const double own = end_of(a.stage, k, "F", device);
    if (a.stage == last_ || own < 0) return own;
    const double after = end_of(a.stage + 1, k, "BI", device);
    return after < 0 ? after : std::max(own, after);
  }

  std::string deadlock() const {
    std::string text = "the instructions wait for each other";
    for (size_t d = 0; d < actions_.size(); ++d) {
      if (next_[d] == actions_[d].size()) continue;
      const PipelineAction& a = actions_[d][next_[d]];
      const bool first = a.pass == 'W' || end_of(a.stage, a.micro_batch, "F",
                                                 static_cast<int>(d)) >= 0;
      const PipelineAction needs =
          a.pass == 'F'   ? PipelineAction{a.stage - 1, 'F', a.micro_batch}
          : a.pass == 'W' ? PipelineAction{a.stage, 'I', a.micro_batch}
          : first         ? PipelineAction{a.stage + 1, a.pass, a.micro_batch}
                          : PipelineAction{a.stage, 'F', a.micro_batch};
      text += fmt::format("; device {} at {} for {}", d, text_of(a),
                          text_of(needs));
    }
    return text;
  }

  const PipelineActions& actions_;
  const PipelineTimes& times_;
  std::vector<size_t> next_;
  std::vector<int> device_;  // by stage
  std::vector<double> end_;  // by at(); -1: not yet
  int last_ = 0, micro_batches_ = 0;
};

}  // namespace

double PipelineTimes::of(const PipelineAction& a) const {
  const auto s = static_cast<size_t>(a.stage);
  switch (a.pass) {
    case 'F':
      return forward[s];
    case 'I':
      return input[s];
    case 'W':
      return weight[s];
    default:
      return input[s] + weight[s];
  }
}

std::vector<int> in_flight(const PipelineActions& actions) {
  std::vector<int> most;
  for (const List& list : actions) {
    int held = 0;
    most.push_back(0);
    for (const PipelineAction& a : list) {
      held += a.pass == 'F' ? 1 : a.pass == 'I' ? 0 : -1;
      most.back() = std::max(most.back(), held);
    }
  }
  return most;
}

PipelineTiming time_of(const PipelineActions& actions,
                       const PipelineTimes& times) {
  return Clock(actions, times).run();
}

double PipelineTiming::bubble() const {
  double busy = 0;
  for (const double us : busy_us) busy += us;
  const double all = step_us * static_cast<double>(busy_us.size());
  return all > 0 ? 1 - busy / all : 0;
}

double closed_form_us(const ScheduleShape& shape, double f, double i,
                      double w) {
  const double m = shape.micro_batches, p = shape.devices;
  const double work = m * (f + i + w);
  switch (shape.schedule) {
    case PipelineSchedule::kGPipe:
    case PipelineSchedule::k1F1B:
      return work + (p - 1) * (f + i + w);
    case PipelineSchedule::kInterleaved1F1B:
      return work + (p - 1) * (f + i + w) * p / shape.stages;
    case PipelineSchedule::kZbH1:
      return work + (p - 1) * (f + i - w);
    case PipelineSchedule::kZbV:
      return work + (p - 1) * f / 2;
  }
  return 0;
}

}  // namespace berth::distribute
