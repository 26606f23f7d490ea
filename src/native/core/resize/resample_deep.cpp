#include "core/resize/resample_deep.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "core/base/pixel_mode.h"

namespace stoker {
namespace {

uint16_t* words(uint8_t* bytes) {
  return reinterpret_cast<uint16_t*>(bytes);
}

uint16_t to_word(double sum) {
  const auto value = static_cast<int32_t>(sum >= 0.0 ? sum + 0.5 : sum - 0.5);
  return static_cast<uint16_t>(std::clamp(value, 0, 65535));
}

}  // namespace

Rect DeepResampler::plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling) {
  if (sampling.shrink != 1) throw Error(ErrorCode::kBadArgument, "I;16 is not decoded at a smaller size");
  return plan_.plan_part(filter, part, out, window, {});
}

void DeepResampler::start(bool flip, RgbSlot dst) {
  flip_ = flip;
  dst_ = dst;
  const auto width = static_cast<size_t>(plan_.needed().width);
  row_.take(width * sizeof(uint16_t));
  result_.take(columns() * sizeof(uint16_t));
  const size_t kept = plan_.goes_down_first() ? width : columns();
  if (!plan_.copies()) between_.take(kept * static_cast<size_t>(plan_.needed().height) * sizeof(uint16_t));
}

void DeepResampler::add(RgbxView src, int32_t first) {
  const auto width = static_cast<size_t>(src.size.width);
  const Taps& down = plan_.down();
  for (int32_t i = 0; i < src.size.height; ++i) {
    const int32_t y = first + i;
    uint16_t* const row = words(row_.data());
    pack(PixelMode::kI16, src.row(i), width, row_.data());
    if (plan_.copies()) {
      const auto same = std::equal_range(down.first.begin(), down.first.end(), y + plan_.needed().y);
      for (auto at = same.first; at != same.second; ++at) {
        uint16_t* const result = words(result_.data());
        pass_across(row, result);
        write(result, static_cast<int32_t>(at - down.first.begin()));
      }
    } else if (plan_.goes_down_first()) {
      std::copy_n(row, width, words(between_.data()) + static_cast<size_t>(y) * width);
    } else {
      pass_across(row, words(between_.data()) + static_cast<size_t>(y) * columns());
    }
  }
}

void DeepResampler::finish() {
  if (plan_.copies()) return;
  const bool down_first = plan_.goes_down_first();
  const size_t width = down_first ? static_cast<size_t>(plan_.needed().width) : columns();
  uint16_t* const result = words(result_.data());
  for (size_t y = 0; y < plan_.down().size(); ++y) {
    uint16_t* const row = down_first ? words(row_.data()) : result;
    pass_down(words(between_.data()), width, y, row);
    if (down_first) pass_across(row, result);
    write(result, static_cast<int32_t>(y));
  }
}

void DeepResampler::pass_across(const uint16_t* from, uint16_t* to) const {
  const Taps& taps = plan_.across();
  const bool takes = plan_.copies() || taps.identity;
  for (size_t x = 0; x < taps.size(); ++x) {
    const uint16_t* in = from + (taps.first[x] - plan_.needed().x);
    if (takes) {
      to[x] = *in;
      continue;
    }
    const double* weights = taps.exact.data() + x * taps.stride;
    double sum = 0.0;
    for (int32_t k = 0; k < taps.count[x]; ++k) sum += in[k] * weights[k];
    to[x] = to_word(sum);
  }
}

// Row `y` of the result from all rows, which lie `width` pixels apart.
void DeepResampler::pass_down(const uint16_t* from, size_t width, size_t y, uint16_t* to) const {
  const Taps& taps = plan_.down();
  const uint16_t* first = from + static_cast<size_t>(taps.first[y] - plan_.needed().y) * width;
  if (taps.identity) {
    std::copy_n(first, width, to);
    return;
  }
  const double* weights = taps.exact.data() + y * taps.stride;
  for (size_t x = 0; x < width; ++x) {
    double sum = 0.0;
    for (int32_t k = 0; k < taps.count[y]; ++k) sum += first[static_cast<size_t>(k) * width + x] * weights[k];
    to[x] = to_word(sum);
  }
}

void DeepResampler::write(const uint16_t* from, int32_t y) const {
  uint8_t* to = dst_.row(y);
  const size_t last = columns() - 1;
  for (size_t x = 0; x <= last; ++x) {
    std::memcpy(to + x * sizeof(uint16_t), from + (flip_ ? last - x : x), sizeof(uint16_t));
  }
}

}  // namespace stoker
