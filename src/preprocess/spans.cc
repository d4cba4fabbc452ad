#include "preprocess/spans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace berth::image {
namespace {

// Weight of a pixel at distance x from where the result is sampled.
struct Kernel {
  float radius;
  float (*weight)(float x);
};

float triangle(float x) { return x < 1 ? 1 - x : 0; }

// Keys' cubic with a = -1/2.
float keys_cubic(float x) {
  if (x >= 2) return 0;
  if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
  return (1.5f * x - 2.5f) * x * x + 1;
}

float mitchell_cubic(float x) {
  if (x >= 2) return 0;
  if (x >= 1) return (((-7.0f / 18) * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
  return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

float gaussian(float x) {  // of 1/2, cut off at 1.5
  return x < 1.5f ? std::exp(-2 * x * x) : 0;
}

template <int radius>
float lanczos(float x) {
  constexpr float kPi = std::numbers::pi_v<float>;
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) /
         (kPi * kPi * x * x);
}

bool kernel_of(const std::string& method, Kernel* to) {
  if (method == "bilinear") *to = {1, triangle};
  if (method == "bicubic") *to = {2, keys_cubic};
  if (method == "mitchellcubic") *to = {2, mitchell_cubic};
  if (method == "gaussian") *to = {1.5f, gaussian};
  if (method == "lanczos3") *to = {3, lanczos<3>};
  if (method == "lanczos5") *to = {5, lanczos<5>};
  return to->weight != nullptr;
}

Spans nearest_spans(int64_t in, int64_t out) {
  Spans s;
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (int64_t i = 0; i < out; ++i) {
    const float at = std::floor((static_cast<float>(i) + 0.5f) * scale);
    s.starts.push_back(
        static_cast<int32_t>(std::min(static_cast<int64_t>(at), in - 1)));
    s.weights.push_back(1);
  }
  return s;
}

// Each pixel of the result covers in / out pixels, the outer ones in part.
Spans area_spans(int64_t in, int64_t out) {
  Spans s;
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  s.width = std::min<int64_t>(static_cast<int64_t>(std::ceil(scale)) + 1, in);
  for (int64_t i = 0; i < out; ++i) {
    const double begin = static_cast<double>(i) * scale, end = begin + scale;
    const auto first = std::min(static_cast<int64_t>(begin), in - s.width);
    s.starts.push_back(static_cast<int32_t>(first));
    for (int64_t k = first; k < first + s.width; ++k) {
      const double covered = std::min<double>(end, static_cast<double>(k + 1)) -
                             std::max<double>(begin, static_cast<double>(k));
      s.weights.push_back(static_cast<float>(std::max(covered, 0.0) / scale));
    }
  }
  return s;
}

Spans kernel_spans(int64_t in, int64_t out, const Kernel& kernel,
                   bool antialias) {
  // Rounded twice, and a product below, as in TensorFlow: so taps at the very
  // edge of a kernel count alike.
  const float inverse = 1 / (static_cast<float>(out) / static_cast<float>(in));
  const float wide = antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float narrow = 1 / wide;
  const float radius = kernel.radius * wide;
  Spans s;
  s.width =
      std::min<int64_t>(2 * static_cast<int64_t>(std::ceil(radius)) + 1, in);
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * inverse;
    const auto whole = [&](float v) {
      return std::clamp<int64_t>(static_cast<int64_t>(v), 0, in - 1);
    };
    const int64_t first =
        std::min(whole(std::ceil(at - radius - 0.5f)), in - s.width);
    const int64_t begin = whole(std::ceil(at - radius - 0.5f));
    const int64_t end = whole(std::floor(at + radius - 0.5f)) + 1;
    s.starts.push_back(static_cast<int32_t>(first));
    const size_t base = s.weights.size();
    float total = 0;
    for (int64_t k = first; k < first + s.width; ++k) {
      float w = 0;
      if (k >= begin && k < end) {
        const float distance = static_cast<float>(k) + 0.5f - at;
        w = kernel.weight(std::abs(distance * narrow));
      }
      s.weights.push_back(w);
      total += w;
    }
    if (std::abs(total) < 1000 * std::numeric_limits<float>::min()) continue;
    for (size_t k = base; k < s.weights.size(); ++k) s.weights[k] /= total;
  }
  return s;
}

// Drops weights that are zero in all spans, at their ends.
void trim(Spans* s, int64_t in) {
  const auto out = static_cast<int64_t>(s->starts.size());
  int64_t most = 1;
  std::vector<int64_t> first(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    const float* w = s->weights.data() + i * s->width;
    int64_t a = 0, b = s->width;
    while (a < b && w[a] == 0) ++a;
    while (b > a && w[b - 1] == 0) --b;
    first[static_cast<size_t>(i)] = a;
    most = std::max(most, b - a);
  }
  if (most == s->width) return;
  std::vector<float> weights(static_cast<size_t>(out * most));
  for (int64_t i = 0; i < out; ++i) {
    int32_t& start = s->starts[static_cast<size_t>(i)];
    const auto wanted = std::min<int64_t>(start + first[i], in - most);
    for (int64_t k = 0; k < most; ++k) {
      const int64_t at = wanted + k - start;
      if (at < 0 || at >= s->width) continue;
      weights[static_cast<size_t>(i * most + k)] =
          s->weights[static_cast<size_t>(i * s->width + at)];
    }
    start = static_cast<int32_t>(wanted);
  }
  s->weights = std::move(weights);
  s->width = most;
}

}  // namespace

Spans make_spans(int64_t in, int64_t out, const std::string& method,
                 bool antialias, bool* known) {
  *known = true;
  if (method == "nearest") return nearest_spans(in, out);
  Spans spans;
  Kernel kernel{0, nullptr};
  if (method == "area") {
    spans = area_spans(in, out);
  } else if (kernel_of(method, &kernel)) {
    spans = kernel_spans(in, out, kernel, antialias);
  } else {
    *known = false;
    return spans;
  }
  trim(&spans, in);
  return spans;
}

}  // namespace berth::image
