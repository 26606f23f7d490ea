// JPEG bytes: the header walk, and a region decoded twice, whole and cut out, which must agree.
#include "core/jpeg/jpeg.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/errors.h"

namespace {

constexpr uint64_t kMaxPixels = 1 << 16;  // keeps one input fast

std::vector<uint8_t> rows_of(const stoker::RgbxView& view, int32_t x, int32_t y, stoker::Extent size) {
  std::vector<uint8_t> rgb;
  for (int32_t row = y; row < y + size.height; ++row) {
    for (int32_t column = x; column < x + size.width; ++column) {
      const uint8_t* pixel = view.row(row) + static_cast<size_t>(column) * stoker::kRgbxBytes;
      rgb.insert(rgb.end(), pixel, pixel + stoker::kRgbBytes);
    }
  }
  return rgb;
}

void walk(std::span<const uint8_t> bytes) {
  try {
    stoker::check_jpeg(bytes);
  } catch (const stoker::Error&) {
  }
}

// One quarter of the image, placed by four bits of the input.
stoker::Rect quarter(stoker::Extent size, uint8_t choice) {
  return {size.width * (choice & 3) / 8, size.height * (choice >> 2 & 3) / 8, (size.width + 1) / 2,
          (size.height + 1) / 2};
}

void decode(std::span<const uint8_t> bytes, uint8_t choice) {
  static stoker::JpegDecoder
      decoder;  // reused, as a loader's thread does, so that an error's leftovers would show
  try {
    const stoker::Extent size = decoder.open(bytes, kMaxPixels);
    const stoker::Rect part = quarter(size, choice);
    const stoker::Extent extent{part.width, part.height};
    const auto expected = rows_of(decoder.decode({0, 0, size.width, size.height}), part.x, part.y, extent);
    decoder.open(bytes, kMaxPixels);
    if (rows_of(decoder.decode(part), 0, 0, extent) != expected) std::abort();
  } catch (const stoker::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  walk({data + 1, size - 1});
  decode({data + 1, size - 1}, data[0]);
  return 0;
}
