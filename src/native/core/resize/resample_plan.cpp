#include "core/resize/resample_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/base/errors.h"

namespace stoker {
namespace {

double triangle(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}
double rectangle(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

// Keys' cubic with a = -0.5. The order of operations is part of the result.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x = x * std::numbers::pi;
  return std::sin(x) / x;
}
double lanczos3(double x) {
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return {rectangle, 0.5};
    case Filter::kBilinear:
      return {triangle, 1.0};
    case Filter::kBicubic:
      return {cubic, 2.0};
    case Filter::kLanczos:
      return {lanczos3, 3.0};
    case Filter::kNearest:
      break;
  }
  throw Error(ErrorCode::kBadArgument, "nearest has no kernel");
}

void reset(Taps& taps, int32_t outputs, size_t stride, bool identity) {
  const auto n = static_cast<size_t>(outputs);
  taps.first.resize(n);
  taps.count.resize(n);
  taps.stride = stride;
  taps.identity = identity;
  if (taps.deep) return taps.exact.assign(n * stride, 0.0);
  taps.weights.assign(n * stride, 0);
}

void store_weight(Taps& taps, size_t at, double value) {
  if (taps.deep) {
    taps.exact[at] = value;
    return;
  }
  const double scaled = value * (1 << kWeightBits);
  const auto weight = static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const int32_t high = (weight + (1 << (kSplitBits - 1))) >> kSplitBits;
  taps.weights[at] = taps.coarse ? high << kSplitBits : weight;
}

int8_t lowest_byte(int32_t value) {
  return static_cast<int8_t>(static_cast<uint8_t>(value));
}

// All weights in the parts that SIMD units multiply.
void split_weights(Taps& taps) {
  const size_t n = taps.weights.size();
  taps.high.resize(n);
  taps.low.resize(n);
  taps.digits.resize(3 * n);
  for (size_t i = 0; i < n; ++i) {
    const int32_t high = (taps.weights[i] + (1 << (kSplitBits - 1))) >> kSplitBits;
    taps.high[i] = static_cast<int16_t>(high);
    taps.low[i] = static_cast<int16_t>(taps.weights[i] - (high << kSplitBits));
  }
  for (size_t i = 0; i < n; i += 4) {
    int8_t* const digits = taps.digits.data() + 3 * i;
    for (size_t k = 0; k < 4; ++k) {
      const int32_t weight = taps.weights[i + k];
      digits[k] = lowest_byte((weight + 0x8080) >> 16);
      digits[k + 4] = lowest_byte((weight + 0x80) >> 8);
      digits[k + 8] = lowest_byte(weight);
    }
  }
}

// Outputs begin .. begin + outputs - 1 of the axis in -> out.
void plan_axis(Filter filter, const Span& in, int32_t out, int32_t begin, int32_t outputs, Taps& taps) {
  const Kernel kernel = kernel_of(filter);
  const double scale = in.length / out;
  const auto lowest = static_cast<int32_t>(std::floor(in.begin));
  const auto highest = static_cast<int32_t>(std::ceil(in.begin + in.length));
  const double stretch = std::max(scale, 1.0);
  const double support = kernel.support * stretch;
  const auto most = static_cast<size_t>(std::ceil(support)) * 2 + 1;
  reset(taps, outputs, (most + 3) / 4 * 4, in.begin == 0.0 && in.length == out);
  if (taps.exact.size() < most) taps.exact.resize(most);
  for (int32_t i = 0; i < outputs; ++i) {
    const double center = in.begin + (begin + i + 0.5) * scale;
    const double inverse = 1.0 / stretch;
    // Bounds are checked first: on a long axis, values beyond them do not fit 32 bits.
    const auto first = static_cast<int32_t>(std::max<double>(lowest, center - support + 0.5));
    const int32_t count = static_cast<int32_t>(std::min<double>(highest, center + support + 0.5)) - first;
    const auto at = static_cast<size_t>(i);
    double* const raw = taps.exact.data() + (taps.deep ? at * taps.stride : 0);
    double sum = 0.0;
    for (int32_t k = 0; k < count; ++k) {
      const double w = kernel.weight((k + first - center + 0.5) * inverse);
      raw[k] = w;
      sum += w;
    }
    taps.first[at] = first;
    taps.count[at] = count;
    for (int32_t k = 0; k < count; ++k) {
      const double w = raw[k];
      store_weight(taps, at * taps.stride + static_cast<size_t>(k), sum != 0.0 ? w / sum : w);
    }
  }
  if (!taps.deep) split_weights(taps);
}

// The running sum, not a product, is what Pillow computes, but for 16 bits; they differ in the last bit.
void plan_nearest(int32_t in, int32_t out, int32_t begin, int32_t outputs, Taps& taps) {
  reset(taps, outputs, 4, in == out);
  const double scale = static_cast<double>(in) / out;
  double position = scale * 0.5;
  for (int32_t i = 0; i < begin + outputs; ++i, position += scale) {
    if (i < begin) continue;
    const auto at = static_cast<size_t>(i - begin);
    if (taps.deep) position = scale * (i + 0.5);
    taps.first[at] = std::min(static_cast<int32_t>(position), in - 1);
    taps.count[at] = 1;
    store_weight(taps, at * taps.stride, 1.0);
  }
}

// Inputs the outputs of an axis depend on, as {first, count}.
std::pair<int32_t, int32_t> reach(const Taps& taps) {
  int32_t from = taps.first[0], to = 0;
  for (size_t i = 0; i < taps.size(); ++i) {
    from = std::min(from, taps.first[i]);
    to = std::max(to, taps.first[i] + taps.count[i]);
  }
  return {from, to - from};
}

void check(Extent in, Extent out, Rect window) {
  const auto [shortest, longest] = std::minmax({in.width, in.height, out.width, out.height});
  if (shortest < 1 || longest > kMostResized) {
    throw Error(ErrorCode::kBadArgument, "Cannot resize " + std::to_string(in.width) + " x " +
                                             std::to_string(in.height) + " to " + std::to_string(out.width) +
                                             " x " + std::to_string(out.height) + ": every side must be 1.." +
                                             std::to_string(kMostResized));
  }
  if (window.x < 0 || window.y < 0 || window.width < 1 || window.height < 1 ||
      window.width > out.width - window.x || window.height > out.height - window.y) {
    throw Error(ErrorCode::kBadArgument, "The window is empty or leaves the resized image");
  }
}

}  // namespace

Filter filter_named(const std::string& name) {
  if (name == "nearest") return Filter::kNearest;
  if (name == "box") return Filter::kBox;
  if (name == "bilinear") return Filter::kBilinear;
  if (name == "bicubic") return Filter::kBicubic;
  if (name == "lanczos") return Filter::kLanczos;
  throw Error(ErrorCode::kBadArgument,
              "Unknown filter " + name + "; use nearest, box, bilinear, bicubic or lanczos");
}

TapsView Taps::view(size_t begin, size_t outputs) const {
  const size_t at = begin * stride;
  return {first.data() + begin,
          count.data() + begin,
          weights.data() + at,
          high.data() + at,
          low.data() + at,
          digits.data() + 3 * at,
          outputs,
          stride,
          coarse};
}

void ResamplePlan::plan(Filter filter, Extent in, Extent out, Rect window) {
  check(in, out, window);
  nearest_ = filter == Filter::kNearest;
  across_.coarse = down_.coarse = false;
  const Span across{0.0, static_cast<double>(in.width)}, down{0.0, static_cast<double>(in.height)};
  if (nearest_) {
    plan_nearest(in.width, out.width, window.x, window.width, across_);
    plan_nearest(in.height, out.height, window.y, window.height, down_);
  } else {
    plan_axis(filter, across, out.width, window.x, window.width, across_);
    plan_axis(filter, down, out.height, window.y, window.height, down_);
  }
  finish_plan(across, down, out, window);
}

void ResamplePlan::plan_coarsely(Filter filter, const Span& across, const Span& down, Extent out,
                                 Rect window) {
  nearest_ = false;
  across_.coarse = down_.coarse = true;
  plan_axis(filter, across, out.width, window.x, window.width, across_);
  plan_axis(filter, down, out.height, window.y, window.height, down_);
  finish_plan(across, down, out, window);
}

Rect ResamplePlan::plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling) {
  const Extent size{part.width, part.height};
  check(size, out, window);
  if (sampling.coarse && size != out && filter != Filter::kNearest) {
    const double scale = sampling.shrink;
    plan_coarsely(filter, {part.x / scale, part.width / scale}, {part.y / scale, part.height / scale}, out,
                  window);
    return needed_;
  }
  plan(filter, size, out, window);
  return {part.x + needed_.x, part.y + needed_.y, needed_.width, needed_.height};
}

void ResamplePlan::finish_plan(const Span& across, const Span& down, Extent out, Rect window) {
  // Pillow skips a pass whose size does not change, whatever the filter's weights would be.
  for (Taps* taps : {&across_, &down_}) {
    if (!taps->identity) continue;
    const int32_t begin = taps == &across_ ? window.x : window.y;
    for (size_t i = 0; i < taps->size(); ++i) {
      taps->first[i] = begin + static_cast<int32_t>(i);
      taps->count[i] = 1;
    }
  }
  const double lost = down.length - out.height;  // rows; whole numbers are exact
  down_first_ = lost > 0 && lost > 2 * (across.length - out.width);
  const auto [x, width] = reach(across_);
  const auto [y, height] = reach(down_);
  needed_ = {x, y, width, height};
}

}  // namespace stoker
