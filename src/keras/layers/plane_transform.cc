// Images seen through a plane transform.

#include "keras/layers/plane_transform.h"

#include <vector>

#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"
#include "op/dispatcher.h"

namespace berth::keras {

namespace {

// Coordinates that are inside, for those that are not.
Tensor mapped(const Tensor& at, int64_t length, FillMode mode, Site site) {
  const double n = static_cast<double>(length);
  Tensor in = at;
  if (mode == FillMode::kConstant) return in;
  if (length == 1) return at * 0.0;
  if (mode == FillMode::kReflect) {
    const Tensor turn = fill({}, 2 * n, at.dtype(), site);
    const Tensor t = math::floormod(at + 0.5, turn, site);
    in = math::minimum(t, 2 * n - t, site) - 0.5;
  } else if (mode == FillMode::kWrap) {
    const Tensor laps = math::floor(at / (n - 1), site);
    const Tensor back = math::floor(-at / (n - 1), site);
    in = where(at < 0.0, at + (back + 1.0) * n,
               where(at > n - 1, at - laps * n, at, site), site);
  }
  return clip_by_value(in, 0, n - 1, site);
}

// Pixels of flat [n, h * w, c] at whole coordinates [n, h * w].
Tensor pixels_at(const Tensor& flat, const Tensor& x, const Tensor& y,
                 int64_t h, int64_t w, const TransformOptions& o, Site site) {
  const double right = static_cast<double>(w - 1);
  const double bottom = static_cast<double>(h - 1);
  const Tensor cx = clip_by_value(x, 0, right, site);
  const Tensor cy = clip_by_value(y, 0, bottom, site);
  const Tensor at = math::cast(cy * static_cast<double>(w) + cx, int32, site);
  const Tensor v =
      gather(flat, at, GatherOptions{.axis = 1, .batch_dims = 1}, site);
  if (o.fill_mode != FillMode::kConstant) return v;
  const Tensor inside = math::logical_and(math::equal(x, cx, site),
                                          math::equal(y, cy, site), site);
  return where(expand_dims(inside, -1, site), v,
               fill({}, o.fill_value, v.dtype(), site), site);
}

}  // namespace

FillMode fill_mode_of(const LayerState& s, const std::string& name) {
  if (name == "reflect") return FillMode::kReflect;
  if (name == "wrap") return FillMode::kWrap;
  if (name == "nearest") return FillMode::kNearest;
  if (name == "constant") return FillMode::kConstant;
  fail_in(s,
          "{}: fill_mode is \"{}\"; expected reflect, wrap, "
          "nearest or constant",
          s.type, name);
}

Tensor transformed(const Tensor& x, const PlaneTransform& t,
                   const TransformOptions& o, Site site) {
  set_site(site);
  const int64_t n = x.shape()[0], h = x.shape()[1], w = x.shape()[2];
  const int64_t c = x.shape()[3];
  std::vector<float> px, py;
  for (int64_t i = 0; i < h * w; ++i) {
    px.push_back(static_cast<float>(i % w));
    py.push_back(static_cast<float>(i / w));
  }
  const Tensor gx = constant(px, {1, h * w}, site);
  const Tensor gy = constant(py, {1, h * w}, site);
  auto plane = [&](const Tensor& a, const Tensor& b, const Tensor& d) {
    Tensor sum = a * gx;
    if (b.defined()) sum = sum + b * gy;
    return d.defined() ? sum + d : sum;
  };
  Tensor in_x = plane(t[0], t[1], t[2]);
  Tensor in_y = t[3].defined() ? plane(t[3], t[4], t[5]) : t[4] * gy;
  if (!t[3].defined() && t[5].defined()) in_y = in_y + t[5];
  if (t[6].defined()) {
    const Tensor k = plane(t[6], t[7], Tensor()) + 1.0;
    in_x = in_x / k;
    in_y = in_y / k;
  }
  in_x = mapped(in_x, w, o.fill_mode, site);
  in_y = mapped(in_y, h, o.fill_mode, site);
  const Tensor flat = reshape(x, {n < 0 ? kUnknownDim : n, h * w, c}, site);
  auto at = [&](const Tensor& ix, const Tensor& iy) {
    return pixels_at(flat, ix, iy, h, w, o, site);
  };
  Tensor y;
  if (o.bilinear) {
    const Tensor x0 = math::floor(in_x, site), y0 = math::floor(in_y, site);
    const Tensor x1 = x0 + 1.0, y1 = y0 + 1.0;
    const Tensor fx = math::cast(expand_dims(in_x - x0, -1, site), x.dtype());
    const Tensor fy = math::cast(expand_dims(in_y - y0, -1, site), x.dtype());
    const Tensor top = at(x0, y0) * (1.0 - fx) + at(x1, y0) * fx;
    const Tensor bottom = at(x0, y1) * (1.0 - fx) + at(x1, y1) * fx;
    y = top * (1.0 - fy) + bottom * fy;
  } else {
    y = at(math::round(in_x, site), math::round(in_y, site));
  }
  return reshape(y, {n < 0 ? kUnknownDim : n, h, w, c}, site);
}

}  // namespace berth::keras
