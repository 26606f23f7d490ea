// Binds core/resize.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/resize/resample.h"
#include "core/resize/resample_tf1.h"

namespace stoker::bind {
namespace {

using RgbOut = nb::ndarray<nb::numpy, uint8_t, nb::shape<-1, -1, 3>, nb::c_contig>;

RgbOut resize(const RgbImage& pixels, int width, int height, const std::string& filter,
              std::optional<Box> window, bool flip) {
  const Filter kind = filter_named(filter);
  Resampler resampler;
  const Extent in = extent_of(pixels.shape(0), pixels.shape(1));
  Rect part{0, 0, width, height};
  if (window) part = rect_of(*window);
  resampler.plan(kind, in, {width, height}, part);  // before the buffer: it refuses senseless sizes
  const size_t columns = static_cast<size_t>(part.width), rows = static_cast<size_t>(part.height);
  auto out = std::make_unique_for_overwrite<uint8_t[]>(columns * rows * kRgbBytes);
  {
    WithoutGil nogil;
    resampler.run_rgb(pixels.data(), pixels.shape(1) * kRgbBytes, flip, {out.get(), columns * kRgbBytes});
  }
  return give<RgbOut>(std::move(out), {rows, columns, kRgbBytes});
}

RgbOut resize_for_tf1(const RgbImage& pixels, int width, int height, bool align_corners) {
  const Extent in = extent_of(pixels.shape(0), pixels.shape(1));
  if (width < 1 || height < 1) throw Error(ErrorCode::kBadArgument, "Cannot resize to nothing");
  const size_t columns = static_cast<size_t>(width), rows = static_cast<size_t>(height);
  auto out = std::make_unique_for_overwrite<uint8_t[]>(columns * rows * kRgbBytes);
  {
    WithoutGil nogil;
    resize_tf1(pixels.data(), in, {width, height}, align_corners, {out.get(), columns * kRgbBytes});
  }
  return give<RgbOut>(std::move(out), {rows, columns, kRgbBytes});
}

}  // namespace

void register_resize(nb::module_& m) {
  m.def("resize", &resize, nb::arg("pixels"), nb::arg("width"), nb::arg("height"), nb::arg("filter"),
        nb::kw_only(), nb::arg("window") = nb::none(), nb::arg("flip") = false,
        "Resize RGB of shape (height, width, 3), bit-equal to Pillow; only `window` (left, top, right, "
        "bottom) of the result, mirrored if asked.");
  m.def("resize_tf1", &resize_for_tf1, nb::arg("pixels"), nb::arg("width"), nb::arg("height"), nb::kw_only(),
        nb::arg("align_corners"),
        "Resize RGB of shape (height, width, 3) as TensorFlow 1's resize_bilinear and a cast to uint8 do.");
}

}  // namespace stoker::bind
