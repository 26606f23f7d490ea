// Binds core/color.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/color/color_jitter.h"
#include "core/color/pixel_format.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

using Changed = nb::ndarray<nb::numpy, uint8_t, nb::ndim<3>>;
using Bounds = std::optional<std::pair<double, double>>;

JitterSpec::Range range(const Bounds& bounds) {
  return bounds ? JitterSpec::Range{true, bounds->first, bounds->second} : JitterSpec::Range{};
}

Changed jittered(const RgbImage& pixels, const JitterPlan& plan) {
  const auto bytes = pixels.size();
  const Extent size = extent_of(pixels.shape(0), pixels.shape(1));
  auto out = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  {
    WithoutGil nogil;
    std::memcpy(out.get(), pixels.data(), bytes);
    apply_jitter(plan, {out.get(), pixels.shape(1) * kRgbBytes}, size);
  }
  return give<Changed>(std::move(out), {pixels.shape(0), pixels.shape(1), kRgbBytes});
}

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
  nb::class_<JitterSpec>(m, "JitterSpec",
                         "Bounds of random changes of colour; None where there is no change.")
      .def(
          "__init__",
          [](JitterSpec* spec, const Bounds& brightness, const Bounds& contrast, const Bounds& saturation,
             const Bounds& hue) {
            const JitterSpec made{{range(brightness), range(contrast), range(saturation), range(hue)}};
            check_jitter(made);
            new (spec) JitterSpec(made);
          },
          nb::kw_only(), "brightness"_a, "contrast"_a, "saturation"_a, "hue"_a);
  nb::class_<JitterPlan>(m, "JitterPlan", "What is done to the colours of one image.")
      .def_prop_ro(
          "steps",
          [](const JitterPlan& plan) {
            const char* const names[] = {"brightness", "contrast", "saturation", "hue"};
            nb::list steps;
            for (size_t i = 0; i < plan.count; ++i) {
              const auto op = static_cast<size_t>(plan.order[i]);
              steps.append(nb::make_tuple(names[op], plan.factors[op]));
            }
            return steps;
          },
          nb::sig("def steps(self) -> list[tuple[str, float]]"),
          "The operations in their order, with their factors.")
      .def(
          "apply", [](const JitterPlan& plan, const RgbImage& pixels) { return jittered(pixels, plan); },
          "pixels"_a, "Return a changed copy of uint8 (H, W, 3).");
  m.def(
      "plan_jitter",
      [](const JitterSpec& spec, uint64_t seed, uint64_t epoch, uint64_t index) {
        return plan_jitter(spec, SampleRandom(seed, epoch, index));
      },
      "spec"_a, "seed"_a, "epoch"_a, "index"_a, "The changes of one sample.");
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
