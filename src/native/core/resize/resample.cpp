#include "core/resize/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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
  taps.weights.assign(n * stride, 0);
  taps.high.assign(n * stride, 0);
  taps.low.assign(n * stride, 0);
}

void store_weight(Taps& taps, size_t at, double value) {
  const double scaled = value * (1 << kWeightBits);
  const auto weight = static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const int32_t high = (weight + (1 << (kSplitBits - 1))) >> kSplitBits;
  taps.weights[at] = taps.coarse ? high << kSplitBits : weight;
  taps.high[at] = static_cast<int16_t>(high);
  taps.low[at] = static_cast<int16_t>(taps.coarse ? 0 : weight - (high << kSplitBits));
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
  std::vector<double>& raw = taps.exact;
  if (raw.size() < most) raw.resize(most);
  for (int32_t i = 0; i < outputs; ++i) {
    const double center = in.begin + (begin + i + 0.5) * scale;
    const double inverse = 1.0 / stretch;
    // The bounds come first: of an axis that is long enough, what lies beyond them does not fit 32 bits.
    const auto first = static_cast<int32_t>(std::max<double>(lowest, center - support + 0.5));
    const int32_t count = static_cast<int32_t>(std::min<double>(highest, center + support + 0.5)) - first;
    double sum = 0.0;
    for (int32_t k = 0; k < count; ++k) {
      const double w = kernel.weight((k + first - center + 0.5) * inverse);
      raw[static_cast<size_t>(k)] = w;
      sum += w;
    }
    const auto at = static_cast<size_t>(i);
    taps.first[at] = first;
    taps.count[at] = count;
    for (int32_t k = 0; k < count; ++k) {
      const double w = raw[static_cast<size_t>(k)];
      store_weight(taps, at * taps.stride + static_cast<size_t>(k), sum != 0.0 ? w / sum : w);
    }
  }
}

// The running sum, not a product, is what Pillow computes; they differ in the last bit.
void plan_nearest(int32_t in, int32_t out, int32_t begin, int32_t outputs, Taps& taps) {
  reset(taps, outputs, 4, in == out);
  const double scale = static_cast<double>(in) / out;
  double position = scale * 0.5;
  for (int32_t i = 0; i < begin + outputs; ++i, position += scale) {
    if (i < begin) continue;
    const auto at = static_cast<size_t>(i - begin);
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

TapsView Taps::view() const {
  return {first.data(), count.data(), weights.data(), high.data(), low.data(), size(), stride, coarse};
}

void Resampler::plan(Filter filter, Extent in, Extent out, Rect window) {
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

void Resampler::plan_coarsely(Filter filter, const Span& across, const Span& down, Extent out, Rect window) {
  nearest_ = false;
  across_.coarse = down_.coarse = true;
  plan_axis(filter, across, out.width, window.x, window.width, across_);
  plan_axis(filter, down, out.height, window.y, window.height, down_);
  finish_plan(across, down, out, window);
}

Rect Resampler::plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling) {
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

void Resampler::finish_plan(const Span& across, const Span& down, Extent out, Rect window) {
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

// One row, whose pixels are taken and not weighed.
void Resampler::pick(const uint8_t* from, bool flip, uint8_t* to) const {
  const size_t columns = across_.size();
  for (size_t x = 0; x < columns; ++x, to += kRgbBytes) {
    const int32_t column = across_.first[flip ? columns - 1 - x : x] - needed_.x;
    std::memcpy(to, from + static_cast<size_t>(column) * kRgbxBytes, kRgbBytes);
  }
}

void Resampler::copy(RgbxView src, bool flip, RgbSlot dst) const {
  for (size_t y = 0; y < down_.size(); ++y) {
    pick(src.row(down_.first[y] - needed_.y), flip, dst.row(static_cast<int32_t>(y)));
  }
}

void Resampler::run(RgbxView src, bool flip, RgbSlot dst) {
  if (nearest_ || (across_.identity && down_.identity)) return copy(src, flip, dst);
  if (down_.identity) return kernels_.horizontal(across_.view(), src, needed_.x, flip, dst);
  if (!across_.identity && down_first_) return run_down_first(src, flip, dst);
  const size_t bytes = across_.size() * kRgbBytes;
  const RgbSlot between = scratch(bytes, static_cast<size_t>(needed_.height));
  if (across_.identity) {
    for (int32_t y = 0; y < needed_.height; ++y) pick(src.row(y), flip, between.row(y));
  } else {
    kernels_.horizontal(across_.view(), src, needed_.x, flip, between);
  }
  kernels_.vertical(down_.view(), between.data, bytes, needed_.y, bytes, dst);
}

void Resampler::run_rgb(const uint8_t* pixels, size_t stride, bool flip, RgbSlot dst) {
  const auto width = static_cast<size_t>(needed_.width), height = static_cast<size_t>(needed_.height);
  std::vector<uint8_t> rgbx(width * height * kRgbxBytes + kRgbxPadding);
  const uint8_t* from =
      pixels + static_cast<size_t>(needed_.y) * stride + static_cast<size_t>(needed_.x) * kRgbBytes;
  for (size_t y = 0; y < height; ++y) {
    rgb_to_rgbx(from + y * stride, width, rgbx.data() + y * width * kRgbxBytes);
  }
  run({rgbx.data(), width * kRgbxBytes, {needed_.width, needed_.height}}, flip, dst);
}

void Resampler::run_down_first(RgbxView src, bool flip, RgbSlot dst) {
  const size_t bytes = static_cast<size_t>(needed_.width) * kRgbxBytes;
  const RgbSlot between = scratch(bytes, down_.size());
  kernels_.vertical(down_.view(), src.data, src.stride, needed_.y, bytes, between);
  const RgbxView lowered{between.data, bytes, {needed_.width, static_cast<int32_t>(down_.size())}};
  kernels_.horizontal(across_.view(), lowered, needed_.x, flip, dst);
}

RgbSlot Resampler::scratch(size_t stride, size_t rows) {
  // Kernels load and store whole vectors, which may reach a little past the end.
  return {between_.take(stride * rows + kRgbxPadding), stride};
}

}  // namespace stoker
