#include "core/png/samples.h"

#include <algorithm>
#include <cstring>

namespace stoker {
namespace {

unsigned deep_sample(const uint8_t* from) {
  return from[0] * 256u + from[1];
}

// What carries I;16, from samples whose high byte comes first.
void to_deep(const uint8_t* from, size_t pixels, uint8_t* to) {
  for (size_t x = 0; x < pixels; ++x) {
    const auto value = static_cast<uint16_t>(deep_sample(from + 2 * x));
    std::memcpy(to + x * kRgbxBytes, &value, sizeof value);
  }
}

}  // namespace

void write_grey(uint8_t value, uint8_t* to) {
  to[0] = to[1] = to[2] = value;
  to[3] = 0xff;
}

// Of less than 8 bits several lie in a byte, the first in the highest bits.
void PngPixels::indices_to_rgbx(const uint8_t* row, size_t first, size_t pixels, uint8_t* to) const {
  const unsigned bits = layout.sample_bits, most = (1u << bits) - 1;
  for (size_t x = first; x < first + pixels; ++x, to += kRgbxBytes) {
    const size_t at = x * bits;
    std::memcpy(to, &colors[row[at / 8] >> (8 - bits - at % 8) & most], kRgbxBytes);
  }
}

void PngPixels::to_rgbx(const uint8_t* from, size_t pixels, uint8_t* to) const {
  const size_t channels = layout.channels(), step = channels * layout.sample_bits / 8;
  switch (layout.samples) {
    case Samples::kIndex:
      for (size_t x = 0; x < pixels; ++x) std::memcpy(to + x * kRgbxBytes, &colors[from[x]], kRgbxBytes);
      return;
    case Samples::kGrey:
      for (size_t x = 0; x < pixels; ++x) {
        const unsigned value = deep_sample(from + 2 * x);
        write_grey(static_cast<uint8_t>((value * 255 + 32767) / 65535), to + x * kRgbxBytes);
      }
      return;
    case Samples::kGreyAlpha:
      for (size_t x = 0; x < pixels; ++x) write_grey(from[x * step], to + x * kRgbxBytes);
      return;
    case Samples::kRgb:
    case Samples::kRgba:
      if (step == kRgbBytes) return rgb_to_rgbx(from, pixels, to);
      if (step == kRgbxBytes) {
        std::memcpy(to, from, pixels * kRgbxBytes);
        return;
      }
      for (size_t x = 0; x < pixels; ++x, from += step, to += kRgbxBytes) {
        for (size_t c = 0; c < channels; ++c) to[c] = from[2 * c];
      }
      return;
  }
}

// The fourth byte of RGBX that to_rgbx() has written, where that has not done it.
void PngPixels::add_alpha(const uint8_t* from, size_t pixels, uint8_t* to) const {
  constexpr uint8_t kOpaque = 0xff;
  const size_t wide = layout.sample_bits / 8;
  for (size_t x = 0; x < pixels; ++x, to += kRgbxBytes) {
    if (layout.samples == Samples::kGreyAlpha) {
      to[3] = from[(2 * x + 1) * wide];
    } else if (layout.samples == Samples::kGrey) {
      to[3] = clear && deep_sample(from + 2 * x) == (*clear)[0] ? 0 : kOpaque;
    } else if (layout.samples == Samples::kRgb) {
      to[3] = clear && std::equal(clear->begin(), clear->end(), to) ? 0 : kOpaque;
    }
  }
}

void PngPixels::convert(const uint8_t* row, size_t first, size_t pixels, uint8_t* to) const {
  if (layout.sample_bits < 8) return indices_to_rgbx(row, first, pixels, to);
  const uint8_t* const from = row + first * layout.bits() / 8;
  if (is_deep()) return to_deep(from, pixels, to);
  to_rgbx(from, pixels, to);
  if (mode == PixelMode::kRgba) add_alpha(from, pixels, to);
}

}  // namespace stoker
