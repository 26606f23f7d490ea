#include "core/base/orientation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/base/exif.h"
#include "core/base/stored_image.h"
#include "tests/regions.h"

namespace stoker {
namespace {

using Pixels = std::vector<uint32_t>;

// Which stored pixel is at a point of the upright image, as the table of EXIF 2.3 has it: where the first row
// and the first column are.
struct Point {
  int32_t x, y;
};
Point stored_at(int exif, Extent stored, int32_t x, int32_t y) {
  const int32_t right = stored.width - 1, bottom = stored.height - 1;
  switch (exif) {
    case 2:
      return {right - x, y};
    case 3:
      return {right - x, bottom - y};
    case 4:
      return {x, bottom - y};
    case 5:
      return {y, x};
    case 6:
      return {y, bottom - x};
    case 7:
      return {right - y, bottom - x};
    case 8:
      return {right - y, x};
    default:
      return {x, y};
  }
}

Pixels numbered(Extent size) {
  Pixels pixels(static_cast<size_t>(size.width * size.height));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint32_t>(i);
  return pixels;
}

RgbxView view_of(const Pixels& pixels, Extent size) {
  return {reinterpret_cast<const uint8_t*>(pixels.data()), static_cast<size_t>(size.width) * kRgbxBytes,
          size};
}

TEST_CASE("orientations: pixels, sizes, regions and boxes are turned alike, in any stretches of rows") {
  std::mt19937 random(3);
  for (int exif = -1; exif <= 9; ++exif) {
    const Orientation orientation(exif);
    CHECK(orientation.turns() == (exif >= 2 && exif <= 8));
    for (const Extent size : {Extent{5, 3}, Extent{1, 7}, Extent{16, 16}, Extent{1, 1}}) {
      const Pixels stored = numbered(size);
      const Extent upright = orientation.upright(size);
      Pixels turned(stored.size());
      for (int32_t y = 0; y < size.height; y += 2) {
        const RgbxView all = view_of(stored, size);
        const RgbxView rows{all.row(y), all.stride, {size.width, std::min(2, size.height - y)}};
        orientation.turn({rows, y}, size, reinterpret_cast<uint8_t*>(turned.data()));
      }
      for (int32_t y = 0; y < upright.height; ++y) {
        for (int32_t x = 0; x < upright.width; ++x) {
          const Point point = stored_at(exif, size, x, y);
          REQUIRE(turned[static_cast<size_t>(y * upright.width + x)] ==
                  static_cast<uint32_t>(point.y * size.width + point.x));
          REQUIRE(orientation.stored({x, y, 1, 1}, size) == Rect{point.x, point.y, 1, 1});
        }
      }
      const Rect region = tests::any_region(upright, random), part = orientation.stored(region, size);
      CHECK(orientation.upright(Extent{part.width, part.height}) == Extent{region.width, region.height});
      const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
      const ObjectBox box = orientation.upright(ObjectBox{static_cast<float>(part.x) / width,
                                                          static_cast<float>(part.y) / height,
                                                          static_cast<float>(part.x + part.width) / width,
                                                          static_cast<float>(part.y + part.height) / height});
      const auto across = static_cast<float>(upright.width), down = static_cast<float>(upright.height);
      CHECK(box.xmin * across == doctest::Approx(region.x));
      CHECK(box.ymin * down == doctest::Approx(region.y));
      CHECK(box.xmax * across == doctest::Approx(region.x + region.width));
      CHECK(box.ymax * down == doctest::Approx(region.y + region.height));
    }
  }
}

TEST_CASE("orientations: an image shrinks as far as its last pixels are whole where they come first") {
  CHECK(Orientation(1).most_shrink({13, 13}) == 8);
  CHECK(Orientation(5).most_shrink({13, 13}) == 8);
  CHECK(Orientation(2).most_shrink({20, 13}) == 4);
  CHECK(Orientation(4).most_shrink({20, 13}) == 1);
  CHECK(Orientation(6).most_shrink({13, 24}) == 8);
  CHECK(Orientation(3).most_shrink({24, 26}) == 2);
}

// An IFD of `entries`, 12 bytes each, the last of which may be cut short.
std::vector<uint8_t> little_endian(const std::vector<uint8_t>& entries) {
  std::vector<uint8_t> file{'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0};
  file.push_back(static_cast<uint8_t>((entries.size() + 11) / 12));
  file.push_back(0);
  file.insert(file.end(), entries.begin(), entries.end());
  return file;
}

TEST_CASE("EXIF: the first tag of a number is taken, in either order of bytes") {
  const std::vector<uint8_t> other{16, 1, 2, 0, 1, 0, 0, 0, 'x', 0, 0, 0};
  for (const uint8_t type : {3, 4}) {
    std::vector<uint8_t> tag{18, 1, type, 0, 1, 0, 0, 0, 6, 0, 0, 0}, both = other;
    both.insert(both.end(), tag.begin(), tag.end());
    CHECK(orientation_in_exif(little_endian(tag)) == 6);
    CHECK(orientation_in_exif(little_endian(both)) == 6);
    const std::vector<uint8_t> introduced = little_endian(both);
    CHECK(orientation_in_exif(std::span(introduced).subspan(6)) == 6);
  }
  const std::vector<uint8_t> big{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 18, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0};
  CHECK(orientation_in_exif(big) == 8);
  const std::vector<uint8_t> text{18, 1, 2, 0, 1, 0, 0, 0, 6, 0, 0, 0},
      nine{18, 1, 3, 0, 1, 0, 0, 0, 9, 0, 0, 0};
  CHECK(!orientation_in_exif(little_endian(text)));
  CHECK(orientation_in_exif(little_endian(nine)) == 9);
  CHECK(orientation_in(little_endian(nine), {}) == 1);
}

TEST_CASE("EXIF: what is cut short, or points anywhere, is none") {
  std::vector<uint8_t> file = little_endian({18, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0});
  for (size_t size = 0; size < file.size(); ++size) {
    const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    CHECK(!orientation_in_exif(cut));
  }
  for (const uint32_t at : {0U, 7U, 21U, 22U, 0x7fffffffU, 0xfffffff4U, 0xffffffffU}) {
    for (size_t i = 0; i < 4; ++i) file[10 + i] = static_cast<uint8_t>(at >> 8 * i);
    CHECK(!orientation_in_exif(file));
  }
}

TEST_CASE("XMP: what is read of it goes behind EXIF") {
  const auto bytes = [](std::string_view text) { return std::vector<uint8_t>(text.begin(), text.end()); };
  CHECK(orientation_in_xmp(bytes(R"(<x tiff:Orientation="6"/>)")) == 6);
  CHECK(orientation_in_xmp(bytes("tiff:Orientation <tiff:Orientation>3</tiff:Orientation>")) == 3);
  for (const char* text :
       {"", "tiff:Orientation", "tiff:Orientation=\"", "tiff:Orientation>x", "tiff:Orientation='6'"}) {
    CHECK(!orientation_in_xmp(bytes(text)));
  }
  const std::vector<uint8_t> exif = little_endian({18, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0});
  CHECK(orientation_in(exif, bytes("tiff:Orientation>6")) == 1);
  CHECK(orientation_in({}, bytes("tiff:Orientation>6")) == 6);
}

}  // namespace
}  // namespace stoker
