// Connectionist temporal classification, in logarithms of probabilities.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
using Logs = Scratch<double>;

double log_sum(double a, double b) {
  const double high = std::max(a, b);
  return high == kNever ? kNever
                        : high + std::log1p(std::exp(std::min(a, b) - high));
}

// log softmax of the first `time` rows of batch `b` of logits [time, batch,
// classes].
template <class T>
Logs log_probabilities(const View& logits, int64_t b, int64_t time) {
  const int64_t batch = logits.dim(1), classes = logits.dim(2);
  Logs out(static_cast<size_t>(time * classes));
  for (int64_t t = 0; t < time; ++t) {
    const T* x = logits.as<T>() + (t * batch + b) * classes;
    double* y = out.data() + t * classes;
    const auto most = static_cast<double>(*std::max_element(x, x + classes));
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      sum += std::exp(static_cast<double>(x[k]) - most);
    }
    for (int64_t k = 0; k < classes; ++k) {
      y[k] = static_cast<double>(x[k]) - most - std::log(sum);
    }
  }
  return out;
}

int64_t length_at(const KernelCall& c, int input, int64_t b, int64_t most) {
  const int64_t n = c.in[input].as<int64_t>()[b];
  if (n >= 0 && n <= most) return n;
  throw errors::InvalidArgument(
      fmt::format("{}: length {} of the batch is {}; expected 0 to {}",
                  c.op->name(), b, n, most));
}

// The labels with blanks between and around.
Scratch<int64_t> spread_labels(const KernelCall& c, int64_t b, int64_t blank) {
  const int64_t most = c.in[1].dim(1), classes = c.in[0].dim(2);
  const int64_t n = length_at(c, 2, b, most);
  Scratch<int64_t> path(static_cast<size_t>(2 * n + 1), blank);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t label = c.in[1].as<int64_t>()[b * most + i];
    if (label < 0 || label >= classes) {
      throw errors::InvalidArgument(fmt::format(
          "CTCLoss: label {} of row {} is {}; expected a class of {}", i, b,
          label, classes));
    }
    path[static_cast<size_t>(2 * i + 1)] = label;
  }
  return path;
}

// Whether a path may go from place s - 2 to s: between different labels.
bool may_skip(const Scratch<int64_t>& path, size_t s) {
  return s >= 2 && s % 2 == 1 && path[s] != path[s - 2];
}

template <class T>
void ctc_loss_of(const KernelCall& c, int64_t b) {
  const int64_t batch = c.in[0].dim(1), classes = c.in[0].dim(2);
  const int64_t blank_index = c.attr<int64_t>("blank_index");
  const int64_t blank = blank_index + (blank_index < 0 ? classes : 0);
  const int64_t time = length_at(c, 3, b, c.in[0].dim(0));
  const Scratch<int64_t> path = spread_labels(c, b, blank);
  const Logs p = log_probabilities<T>(c.in[0], b, time);
  const size_t n = path.size(), steps = static_cast<size_t>(time);
  const auto at = [&](size_t t, size_t s) {
    return p[t * static_cast<size_t>(classes) + static_cast<size_t>(path[s])];
  };
  Logs before(steps * n, kNever), after(steps * n, kNever);
  for (size_t t = 0; t < steps; ++t) {
    for (size_t s = 0; s < n; ++s) {
      double sum = t == 0 && s < 2 ? 0 : kNever;
      for (size_t back = 0; t > 0 && back <= std::min<size_t>(s, 2); ++back) {
        if (back == 2 && !may_skip(path, s)) continue;
        sum = log_sum(sum, before[(t - 1) * n + s - back]);
      }
      before[t * n + s] = sum + at(t, s);
    }
  }
  for (size_t t = steps; t-- > 0;) {
    for (size_t s = 0; s < n; ++s) {
      double sum = t + 1 == steps && s + 2 >= n ? 0 : kNever;
      for (size_t next = s; t + 1 < steps && next < std::min(n, s + 3);
           ++next) {
        if (next == s + 2 && !may_skip(path, next)) continue;
        sum = log_sum(sum, after[(t + 1) * n + next] + at(t + 1, next));
      }
      after[t * n + s] = sum;
    }
  }
  double all = steps == 0 && n == 1 ? 0 : kNever;
  for (size_t s = n > 1 ? n - 2 : 0; steps > 0 && s < n; ++s) {
    all = log_sum(all, before[(steps - 1) * n + s]);
  }
  c.out[0].as<T>()[b] = static_cast<T>(-all);
  Logs share(static_cast<size_t>(classes));
  for (int64_t t = 0; t < c.in[0].dim(0); ++t) {
    T* d = c.out[1].as<T>() + (t * batch + b) * classes;
    std::fill_n(d, classes, T{});
    if (t >= time || all == kNever) continue;
    std::fill(share.begin(), share.end(), 0.0);
    for (size_t s = 0; s < n; ++s) {
      const size_t i = static_cast<size_t>(t) * n + s;
      share[path[s]] += std::exp(before[i] + after[i] - all);
    }
    for (int64_t k = 0; k < classes; ++k) {
      d[k] = static_cast<T>(std::exp(p[static_cast<size_t>(t * classes + k)]) -
                            share[static_cast<size_t>(k)]);
    }
  }
}

void ctc_loss(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&](auto type) {
    for (int64_t b = 0; b < c.in[0].dim(1); ++b) {
      ctc_loss_of<decltype(type)>(c, b);
    }
  });
}

// The paths of a beginning that end with a blank, and with its last label.
struct Ends {
  double blank = kNever, label = kNever;
  double all() const { return log_sum(blank, label); }
};
using Labels = Scratch<int64_t>;
using Beams = std::map<Labels, Ends, std::less<Labels>,
                       ScratchAllocator<std::pair<const Labels, Ends>>>;

// The beginnings after one more row of logarithms.
Beams advanced(const Beams& beams, const double* p, int64_t classes) {
  Beams next;
  for (const auto& [labels, ends] : beams) {
    const double all = ends.all();
    Ends& same = next[labels];
    same.blank = log_sum(same.blank, all + p[classes - 1]);
    const int64_t last = labels.empty() ? -1 : labels.back();
    if (last >= 0) same.label = log_sum(same.label, ends.label + p[last]);
    Labels longer = labels;
    longer.push_back(0);
    for (int64_t k = 0; k + 1 < classes; ++k) {
      longer.back() = k;
      Ends& other = next[longer];
      other.label = log_sum(other.label, (k == last ? ends.blank : all) + p[k]);
    }
  }
  return next;
}

// The `width` most probable, the best first.
using Ranked = Scratch<std::pair<double, const Labels*>>;
Ranked ranked(const Beams& beams, int64_t width) {
  Ranked list;
  for (const auto& [labels, ends] : beams)
    list.push_back({ends.all(), &labels});
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : *a.second < *b.second;
  });
  if (static_cast<int64_t>(list.size()) > width) {
    list.resize(static_cast<size_t>(width));
  }
  return list;
}

template <class T>
void beam_search_of(const KernelCall& c, int64_t b) {
  const int64_t most = c.in[0].dim(0), batch = c.in[0].dim(1),
                classes = c.in[0].dim(2);
  const int64_t time = length_at(c, 1, b, most);
  const int64_t paths = c.attr<int64_t>("top_paths");
  const Logs p = log_probabilities<T>(c.in[0], b, time);
  Beams beams;
  beams[{}] = {0, kNever};
  for (int64_t t = 0; t < time; ++t) {
    const Beams all = advanced(beams, p.data() + t * classes, classes);
    beams.clear();
    for (const auto& [score, labels] :
         ranked(all, c.attr<int64_t>("beam_width"))) {
      beams[*labels] = all.at(*labels);
    }
  }
  const Ranked best = ranked(beams, paths);
  for (int64_t i = 0; i < paths; ++i) {
    int64_t* y = c.out[0].as<int64_t>() + (i * batch + b) * most;
    std::fill_n(y, most, int64_t{-1});
    const bool there = i < static_cast<int64_t>(best.size());
    if (there) {
      const Labels& labels = *best[static_cast<size_t>(i)].second;
      std::copy(labels.begin(), labels.end(), y);
    }
    c.out[1].as<T>()[b * paths + i] =
        static_cast<T>(there ? best[static_cast<size_t>(i)].first : kNever);
  }
}

void beam_search(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&](auto type) {
    for (int64_t b = 0; b < c.in[0].dim(1); ++b) {
      beam_search_of<decltype(type)>(c, b);
    }
  });
}

}  // namespace

void add_ctc(KernelTable& t) {
  t.direct("CTCLoss", kFloatingTypes, &ctc_loss, "reference");
  t.direct("CTCBeamSearchDecoder", kFloatingTypes, &beam_search, "reference");
}

}  // namespace berth::reference
