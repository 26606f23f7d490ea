// Resizes to any size and any window: an error, or that part of the whole result, with every set of kernels
// and in every mode; and no byte is read or written beside the pixels.
#include "core/resize/resample_modes.h"
#include "core/resize/resample_tf1.h"
#include "fuzz/geometry.h"
#include "fuzz/invariant.h"
#include "fuzz/resize_rgb.h"

namespace {

using stoker::Extent;
using stoker::Rect;
using stoker::fuzz::Input;
using stoker::fuzz::require;

constexpr int64_t kMostPixels = 1 << 12;  // of a result that is made whole

std::vector<uint8_t> resized(const stoker::ResampleKernels& kernels, stoker::Filter filter, Extent in,
                             const std::vector<uint8_t>& pixels, Extent out, Rect window, bool flip) {
  stoker::Resampler resampler(kernels);
  resampler.plan(filter, in, out, window);
  const Rect needed = resampler.needed();
  require(needed.x >= 0 && needed.y >= 0 && needed.width > 0 && needed.height > 0);
  require(needed.width <= in.width - needed.x && needed.height <= in.height - needed.y);
  const size_t stride = static_cast<size_t>(window.width) * stoker::kRgbBytes;
  std::vector<uint8_t> result(stride * static_cast<size_t>(window.height));
  stoker::fuzz::resize_rgb(resampler, pixels.data(), static_cast<size_t>(in.width) * stoker::kRgbBytes, flip,
                           {result.data(), stride});
  return result;
}

std::vector<uint8_t> resized_in(stoker::PixelMode mode, stoker::Filter filter, Extent in,
                                const std::vector<uint8_t>& rgbx, Extent out, Rect window, bool flip) {
  constexpr size_t kGap = 2;
  stoker::ModeResampler resampler(mode);
  const Rect needed = resampler.plan_part(filter, {0, 0, in.width, in.height}, out, window, {});
  const size_t row = static_cast<size_t>(window.width) * stoker::pixel_bytes(mode), stride = row + kGap;
  const size_t wide = static_cast<size_t>(in.width) * stoker::kRgbxBytes;
  std::vector<uint8_t> result(stride * static_cast<size_t>(window.height), 0xA5);
  resampler.start(flip, {result.data(), stride});
  for (int32_t y = 0; y < needed.height; ++y) {
    const uint8_t* from = rgbx.data() + static_cast<size_t>(needed.y + y) * wide;
    resampler.add({from + static_cast<size_t>(needed.x) * stoker::kRgbxBytes, wide, {needed.width, 1}}, y);
  }
  resampler.finish();
  std::vector<uint8_t> pixels;
  for (size_t at = 0; at < result.size(); at += stride) {
    require(result[at + row] == 0xA5 && result[at + row + 1] == 0xA5);
    pixels.insert(pixels.end(), result.data() + at, result.data() + at + row);
  }
  return pixels;
}

// A window of a small result is that part of all of it.
void resize_in(stoker::PixelMode mode, stoker::Filter filter, Extent in, std::vector<uint8_t> rgbx,
               Extent out, Rect window, bool flip) {
  rgbx.resize(static_cast<size_t>(in.width * in.height) * stoker::kRgbxBytes + stoker::kRgbxPadding);
  const auto whole = resized_in(mode, filter, in, rgbx, out, {0, 0, out.width, out.height}, false);
  const auto part = resized_in(mode, filter, in, rgbx, out, window, flip);
  const size_t bytes = stoker::pixel_bytes(mode);
  for (int32_t y = 0; y < window.height; ++y) {
    for (int32_t x = 0; x < window.width; ++x) {
      const int32_t from = window.x + (flip ? window.width - 1 - x : x);
      const auto there = static_cast<size_t>((window.y + y) * out.width + from) * bytes;
      const auto here = static_cast<size_t>(y * window.width + x) * bytes;
      for (size_t i = 0; i < bytes; ++i) require(part[here + i] == whole[there + i]);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t choice = input.byte();
  const auto filter = static_cast<stoker::Filter>(choice % 5);
  const bool flip = (choice & 128) != 0;
  const Extent in{1 + input.byte() % 32, 1 + 2 * input.byte()};
  const Extent out{stoker::fuzz::some_side(input, 48), stoker::fuzz::some_side(input, 48)};
  const Rect window{stoker::fuzz::some_coordinate(input, 48), stoker::fuzz::some_coordinate(input, 48),
                    stoker::fuzz::some_side(input, 48), stoker::fuzz::some_side(input, 48)};
  const auto mode = static_cast<stoker::PixelMode>(input.byte() & 3);
  std::vector<uint8_t> pixels = input.rest();
  pixels.resize(static_cast<size_t>(in.width * in.height) * stoker::kRgbBytes);
  const auto small = [](int64_t width, int64_t height) {
    return width <= kMostPixels && width * height <= kMostPixels;
  };
  if (!small(window.width, window.height) && window.width > 0 && window.height > 0) return 0;

  const auto& kernels = stoker::resample_kernels();
  std::vector<uint8_t> result;
  const bool sound = stoker::fuzz::succeeds(
      [&] { result = resized(*kernels.front(), filter, in, pixels, out, window, flip); });
  require(sound == (out.width > 0 && out.height > 0 && out.width <= stoker::kMostResized &&
                    out.height <= stoker::kMostResized && window.x >= 0 && window.y >= 0 &&
                    window.width > 0 && window.height > 0 && int64_t{window.x} + window.width <= out.width &&
                    int64_t{window.y} + window.height <= out.height));
  if (!sound) return 0;
  for (const stoker::ResampleKernels* other : kernels) {
    require(resized(*other, filter, in, pixels, out, window, flip) == result);
  }
  if (!small(out.width, out.height)) return 0;
  const auto whole = resized(*kernels.back(), filter, in, pixels, out, {0, 0, out.width, out.height}, false);
  for (int32_t y = 0; y < window.height; ++y) {
    for (int32_t x = 0; x < window.width; ++x) {
      const int32_t from = window.x + (flip ? window.width - 1 - x : x);
      const size_t there =
          (static_cast<size_t>(window.y + y) * static_cast<size_t>(out.width) + static_cast<size_t>(from)) *
          stoker::kRgbBytes;
      const size_t here =
          (static_cast<size_t>(y) * static_cast<size_t>(window.width) + static_cast<size_t>(x)) *
          stoker::kRgbBytes;
      require(std::equal(result.begin() + static_cast<std::ptrdiff_t>(here),
                         result.begin() + static_cast<std::ptrdiff_t>(here + stoker::kRgbBytes),
                         whole.begin() + static_cast<std::ptrdiff_t>(there)));
    }
  }
  resize_in(mode, filter, in, pixels, out, window, flip);
  std::vector<uint8_t> tf1(whole.size());
  stoker::resize_tf1(pixels.data(), in, out, (choice & 64) != 0,
                     {tf1.data(), static_cast<size_t>(out.width) * stoker::kRgbBytes});
  return 0;
}
