#include "io/digit_strokes.h"

#include <array>

#include "base/immortal.h"

namespace berth::io {
namespace {

constexpr bool kCurve = true;
constexpr bool kLines = false;

using Manners = std::vector<DigitManner>;

Manners zero() {
  return {
      {{kCurve,
        {{0.1f, -1},
         {-0.42f, -0.7f},
         {-0.58f, 0},
         {-0.42f, 0.7f},
         {0, 1},
         {0.42f, 0.7f},
         {0.58f, 0},
         {0.42f, -0.7f},
         {0.05f, -1}}}},
      {{kCurve,
        {{0.3f, -0.85f},
         {-0.1f, -1},
         {-0.5f, -0.4f},
         {-0.5f, 0.4f},
         {-0.1f, 1},
         {0.4f, 0.65f},
         {0.55f, 0},
         {0.45f, -0.6f},
         {0.1f, -0.95f},
         {-0.15f, -0.8f}}}},
  };
}

Manners one() {
  return {
      {{kLines, {{0, -1}, {0, 1}}}},
      {{kLines, {{-0.32f, -0.6f}, {0.05f, -1}, {0.05f, 1}}}},
      {{kLines, {{-0.3f, -0.65f}, {0, -1}, {0, 1}}},
       {kLines, {{-0.38f, 1}, {0.38f, 1}}}},
  };
}

Manners two() {
  return {
      {{kCurve,
        {{-0.5f, -0.55f},
         {-0.25f, -0.92f},
         {0.15f, -0.97f},
         {0.5f, -0.6f},
         {0.38f, -0.1f},
         {0, 0.4f},
         {-0.55f, 0.95f}}},
       {kLines, {{-0.55f, 0.95f}, {0.6f, 0.92f}}}},
      {{kCurve,
        {{-0.5f, -0.6f},
         {-0.15f, -0.97f},
         {0.35f, -0.85f},
         {0.45f, -0.4f},
         {0.1f, 0.2f},
         {-0.35f, 0.75f},
         {-0.6f, 0.8f},
         {-0.52f, 0.5f},
         {-0.2f, 0.6f},
         {0.2f, 0.9f},
         {0.65f, 0.8f}}}},
  };
}

Manners three() {
  return {
      {{kCurve,
        {{-0.45f, -0.75f},
         {-0.05f, -1},
         {0.42f, -0.72f},
         {0.3f, -0.25f},
         {-0.12f, -0.05f}}},
       {kCurve,
        {{-0.12f, -0.05f},
         {0.4f, 0.12f},
         {0.5f, 0.6f},
         {0.1f, 0.98f},
         {-0.5f, 0.78f}}}},
      {{kLines, {{-0.5f, -0.95f}, {0.4f, -0.95f}, {-0.05f, -0.2f}}},
       {kCurve,
        {{-0.05f, -0.2f},
         {0.45f, 0.05f},
         {0.5f, 0.6f},
         {0.05f, 0.98f},
         {-0.5f, 0.75f}}}},
  };
}

Manners four() {
  return {
      {{kLines, {{-0.35f, -0.95f}, {-0.5f, 0.1f}, {0.55f, 0.1f}}},
       {kLines, {{0.3f, -0.7f}, {0.25f, 1}}}},
      {{kLines, {{0.3f, 0.98f}, {0.3f, -0.98f}, {-0.55f, 0.3f}, {0.6f, 0.3f}}}},
      {{kCurve,
        {{-0.4f, -0.9f},
         {-0.5f, -0.35f},
         {-0.4f, 0.02f},
         {0, 0.05f},
         {0.4f, -0.05f}}},
       {kCurve, {{0.45f, -0.9f}, {0.4f, 0}, {0.3f, 1}}}},
  };
}

Manners five() {
  return {
      {{kLines, {{0.5f, -0.95f}, {-0.35f, -0.95f}, {-0.42f, -0.15f}}},
       {kCurve,
        {{-0.42f, -0.15f},
         {0.1f, -0.3f},
         {0.5f, 0.1f},
         {0.45f, 0.65f},
         {0, 0.97f},
         {-0.5f, 0.75f}}}},
      {{kCurve,
        {{0.5f, -0.9f},
         {-0.1f, -0.92f},
         {-0.4f, -0.55f},
         {-0.3f, -0.2f},
         {0.2f, -0.1f},
         {0.45f, 0.35f},
         {0.2f, 0.88f},
         {-0.45f, 0.85f}}}},
  };
}

Manners six() {
  return {
      {{kCurve,
        {{0.35f, -0.95f},
         {-0.2f, -0.5f},
         {-0.5f, 0.2f},
         {-0.35f, 0.8f},
         {0.1f, 0.98f},
         {0.45f, 0.6f},
         {0.3f, 0.15f},
         {-0.1f, 0.1f},
         {-0.42f, 0.45f}}}},
      {{kCurve,
        {{0.05f, -1},
         {-0.28f, -0.4f},
         {-0.42f, 0.3f},
         {-0.2f, 0.9f},
         {0.25f, 0.85f},
         {0.35f, 0.35f},
         {0, 0.15f},
         {-0.35f, 0.5f}}}},
  };
}

Manners seven() {
  const Stroke tail = {
      kCurve, {{0.5f, -0.9f}, {0.2f, -0.2f}, {-0.08f, 0.4f}, {-0.2f, 1}}};
  return {
      {{kLines, {{-0.5f, -0.9f}, {0.5f, -0.9f}}}, tail},
      {{kLines, {{-0.5f, -0.9f}, {0.5f, -0.9f}}},
       tail,
       {kLines, {{-0.28f, 0.08f}, {0.42f, 0.02f}}}},
      {{kLines, {{-0.5f, -0.55f}, {-0.5f, -0.9f}, {0.5f, -0.9f}}}, tail},
  };
}

Manners eight() {
  return {
      {{kCurve,
        {{0.42f, -0.65f},
         {0, -1},
         {-0.4f, -0.65f},
         {-0.1f, -0.15f},
         {0.4f, 0.35f},
         {0.32f, 0.85f},
         {-0.1f, 1},
         {-0.45f, 0.65f},
         {-0.25f, 0.2f},
         {0.2f, -0.2f},
         {0.42f, -0.6f}}}},
      {{kCurve,
        {{0.05f, -0.95f},
         {-0.35f, -0.75f},
         {-0.35f, -0.3f},
         {0, -0.08f},
         {0.35f, -0.3f},
         {0.35f, -0.75f},
         {0, -0.95f}}},
       {kCurve,
        {{0, -0.05f},
         {-0.45f, 0.2f},
         {-0.45f, 0.75f},
         {0, 1},
         {0.45f, 0.75f},
         {0.45f, 0.2f},
         {0.02f, -0.05f}}}},
  };
}

Manners nine() {
  const Stroke loop = {kCurve,
                       {{0.4f, -0.6f},
                        {0.05f, -0.98f},
                        {-0.4f, -0.68f},
                        {-0.32f, -0.18f},
                        {0.08f, -0.1f},
                        {0.4f, -0.55f}}};
  return {
      {loop, {kCurve, {{0.4f, -0.65f}, {0.36f, 0.1f}, {0.25f, 1}}}},
      {loop,
       {kCurve,
        {{0.42f, -0.7f}, {0.42f, 0.2f}, {0.2f, 0.85f}, {-0.35f, 0.9f}}}},
  };
}

}  // namespace

std::span<const DigitManner> digit_manners(int digit) {
  using All = std::array<Manners, 10>;
  static const auto& all =
      immortal<All>(All{zero(), one(), two(), three(), four(), five(), six(),
                        seven(), eight(), nine()});
  return all[static_cast<size_t>(digit)];
}

}  // namespace berth::io
