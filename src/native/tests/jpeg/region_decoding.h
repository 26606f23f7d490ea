// Regions by the decoders of our own, as tests compare them with the same part of libjpeg's whole image.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "core/base/errors.h"
#include "core/base/pixels.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/region/baseline_decoder.h"
#include "core/jpeg/region/progressive_decoder.h"
#include "tests/libjpeg_reference.h"
#include "tests/regions.h"

namespace stoker::tests {

inline std::vector<uint8_t> noise(Extent size, int channels, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> pixels(static_cast<size_t>(size.width * size.height * channels));
  for (uint8_t& value : pixels) value = static_cast<uint8_t>(random());
  return pixels;
}

// Empty where the image is libjpeg's.
template <typename Decoder>
std::vector<uint8_t> decoded(Decoder& decoder, const std::vector<uint8_t>& file, Rect region,
                             int32_t shrink = 1, const auto&... entries) {
  const size_t stride = static_cast<size_t>(region.width) * kRgbxBytes;
  std::vector<uint8_t> rows(stride * static_cast<size_t>(region.height) + kPlanePadding * kRgbxBytes);
  FrameReader headers;
  if (!headers.open(file) || !decoder.open(headers) || !decoder.start(region, shrink, entries...)) return {};
  for (int32_t y = 0; y < region.height;) {
    const auto more = decoder.next(rows.data() + static_cast<size_t>(y) * stride, stride);
    if (!more) return {};
    y += *more;
  }
  return to_rgb({rows.data(), stride, {region.width, region.height}});
}

// The result of JpegDecoder, as a loader uses it; empty for kBadImage.
inline std::vector<uint8_t> judged(JpegDecoder& decoder, const std::vector<uint8_t>& file, Rect region) {
  try {
    decoder.open(file);
    return to_rgb(decoder.decode(region));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadImage);
    return {};
  }
}

// The whole image, and some regions of it.
template <typename Decoder>
void check_regions(Decoder& decoder, const std::vector<uint8_t>& file, Extent size, int regions,
                   std::mt19937& random) {
  const std::vector<uint8_t> whole = reference_pixels(file);
  REQUIRE(decoded(decoder, file, {0, 0, size.width, size.height}) == whole);
  for (int i = 0; i < regions; ++i) {
    const Rect region = any_region(size, random);
    REQUIRE(decoded(decoder, file, region) == cut(whole, size, region));
  }
}

// The fastest kernels, or the portable ones.
template <typename Decoder>
Decoder decoder_of(bool fastest) {
  return fastest ? Decoder() : Decoder(*plane_kernels().back(), *entropy_kernels().back());
}

}  // namespace stoker::tests
