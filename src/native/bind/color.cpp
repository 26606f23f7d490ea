// Binds core/color.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/color/pixel_format.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

PixelType pixel_type(const std::string& name) {
  if (name == "uint8") return PixelType::kUint8;
  if (name == "uint16") return PixelType::kUint16;
  if (name == "float16") return PixelType::kFloat16;
  if (name == "float32") return PixelType::kFloat32;
  throw Error(ErrorCode::kBadArgument, "Unknown pixel type " + name);
}

PixelLayout pixel_layout(const std::string& name) {
  if (name == "NHWC") return PixelLayout::kNhwc;
  if (name == "NCHW") return PixelLayout::kNchw;
  throw Error(ErrorCode::kBadArgument, "Unknown pixel layout " + name);
}

}  // namespace

void register_color(nb::module_& m) {
  nb::class_<PixelFormat>(m, "PixelFormat",
                          "Type, layout, mean and standard deviation of the pixels of batches.")
      .def(
          "__init__",
          [](PixelFormat* format, const std::string& dtype, const std::string& layout,
             std::vector<double> mean, std::vector<double> deviation) {
            new (format)
                PixelFormat{pixel_type(dtype), pixel_layout(layout), std::move(mean), std::move(deviation)};
          },
          nb::kw_only(), "dtype"_a = "uint8", "layout"_a = "NHWC", "mean"_a = std::vector<double>{},
          "std"_a = std::vector<double>{},
          "`mean` and `std` have a number for each channel; left out: 0 and 1.");
}

}  // namespace stoker::bind
