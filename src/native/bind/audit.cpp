// Binds core/audit.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bind/bind.h"
#include "core/audit/image_measurer.h"
#include "core/audit/near_hashes.h"
#include "core/base/errors.h"
#include "core/threads/per_thread.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

// One per thread: a measurer keeps its memory, and Python threads come and go slowly.
ImageMeasurer& measurer() {
  static PerThread<ImageMeasurer> measurers;
  return measurers.get();
}

nb::tuple as_tuple(const ImageMeasure& measure) {
  const auto& [red, green, blue] = measure.sums;
  const auto& [red2, green2, blue2] = measure.squares;
  return nb::make_tuple(measure.size.width, measure.size.height, nb::make_tuple(red, green, blue),
                        nb::make_tuple(red2, green2, blue2), measure.hash, measure.strong);
}

nb::tuple measure_image(const ByteView& data, uint64_t max_pixels) {
  ImageMeasure measure;
  {
    WithoutGil nogil;
    measure = measurer().run(bytes_of(data), max_pixels);
  }
  return as_tuple(measure);
}

nb::tuple measure_pixels(const RgbImage& pixels) {
  if (pixels.size() == 0) throw Error(ErrorCode::kBadArgument, "The image has no pixels");
  const Extent size = extent_of(pixels.shape(0), pixels.shape(1));
  ImageMeasure measure;
  {
    WithoutGil nogil;
    measure = measurer().run(pixels.data(), size);
  }
  return as_tuple(measure);
}

nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>> near(const Column<uint64_t>& hashes,
                                                   const Column<uint64_t>& strong, int distance,
                                                   bool mirrored, size_t threads) {
  std::vector<uint32_t> firsts;
  {
    WithoutGil nogil;
    firsts = near_hashes({hashes.data(), hashes.size()}, {strong.data(), strong.size()}, distance,
                         mirrored ? kMirroredBits : 0, threads);
  }
  return give(std::move(firsts));
}

}  // namespace

#define MEASURE_SIGNATURE "-> tuple[int, int, tuple[int, int, int], tuple[int, int, int], int, int]"

void register_audit(nb::module_& m) {
  m.attr("MIRRORED_BITS") = kMirroredBits;
  m.def(
      "measure_image", &measure_image, "data"_a, "max_pixels"_a = kDefaultMaxPixels,
      nb::sig(
          "def measure_image(data: collections.abc.Buffer, max_pixels: int = 134217728) " MEASURE_SIGNATURE),
      "Decode an image file of one of image_formats() and return (width, height, sums of red, green and "
      "blue, "
      "sums of their squares, hash of what it shows, which of its bits are strong).");
  m.def("measure_pixels", &measure_pixels, "pixels"_a,
        nb::sig("def measure_pixels(pixels: numpy.typing.NDArray[numpy.uint8]) " MEASURE_SIGNATURE),
        "The same of RGB pixels (height, width, 3).");
  m.def(
      "near_hashes", &near, "hashes"_a, "strong"_a, "distance"_a, "mirrored"_a, "threads"_a,
      nb::sig("def near_hashes(hashes: numpy.typing.NDArray[numpy.uint64], strong: "
              "numpy.typing.NDArray[numpy.uint64], distance: int, mirrored: bool, threads: int) -> "
              "numpy.typing.NDArray[numpy.uint32]"),
      "For each hash the smallest index of those that it is near to, directly or through others: that "
      "differ in "
      "at most `distance` bits (0 to 11) and few of those that are `strong`, or, `mirrored`, do so once one "
      "of the images is mirrored.");
}

}  // namespace stoker::bind
