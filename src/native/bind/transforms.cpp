// Binds core/transforms.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/transforms/transform.h"

namespace stoker::bind {
namespace {

TransformKind transform_kind(const std::string& name) {
  if (name == "random_resized_crop") return TransformKind::kRandomResizedCrop;
  if (name == "center_crop") return TransformKind::kCenterCrop;
  if (name == "resize") return TransformKind::kResize;
  if (name == "top_left") return TransformKind::kTopLeft;
  if (name == "exact") return TransformKind::kExact;
  if (name == "object_crop") return TransformKind::kObjectCrop;
  throw Error(ErrorCode::kBadArgument, "Unknown transform " + name);
}

}  // namespace

void register_transforms(nb::module_& m) {
  nb::class_<TransformSpec>(m, "TransformSpec", "Which crop of an image becomes which pixels.")
      .def(
          "__init__",
          [](TransformSpec* spec, const std::string& kind, int width, int height, const std::string& filter,
             double hflip, std::pair<double, double> scale, std::pair<double, double> ratio,
             std::pair<double, double> log_ratio, int resize, std::optional<JitterSpec> jitter) {
            const TransformSpec made{.kind = transform_kind(kind),
                                     .out = {width, height},
                                     .filter = filter_named(filter),
                                     .hflip = hflip,
                                     .scale_min = scale.first,
                                     .scale_max = scale.second,
                                     .ratio_min = ratio.first,
                                     .ratio_max = ratio.second,
                                     .log_ratio_min = log_ratio.first,
                                     .log_ratio_max = log_ratio.second,
                                     .resize = resize,
                                     .jitter = jitter.value_or(JitterSpec{})};
            check_transform(made);
            new (spec) TransformSpec(made);
          },
          nb::kw_only(), nb::arg("kind"), nb::arg("width"), nb::arg("height"), nb::arg("filter"),
          nb::arg("hflip") = 0.0, nb::arg("scale") = std::pair(1.0, 1.0),
          nb::arg("ratio") = std::pair(1.0, 1.0), nb::arg("log_ratio") = std::pair(0.0, 0.0),
          nb::arg("resize") = 0, nb::arg("jitter") = nb::none())
      .def_prop_ro(
          "shape", [](const TransformSpec& spec) { return nb::make_tuple(spec.out.height, spec.out.width); },
          "(height, width) of the pixels it gives.");

  m.def(
      "plan_transform",
      [](const TransformSpec& spec, int width, int height, uint64_t seed, uint64_t epoch, uint64_t index,
         std::optional<std::tuple<float, float, float, float>> object) {
        std::optional<ObjectBox> part;
        if (object) part = std::apply([](auto... edges) { return ObjectBox{edges...}; }, *object);
        const TransformPlan plan =
            plan_transform(spec, {width, height}, SampleRandom(seed, epoch, index), part);
        const auto box = [](const Rect& r) {
          return nb::make_tuple(r.x, r.y, r.x + r.width, r.y + r.height);
        };
        return nb::make_tuple(box(plan.crop), nb::make_tuple(plan.resized.width, plan.resized.height),
                              box(plan.window), plan.flip);
      },
      nb::arg("spec"), nb::arg("width"), nb::arg("height"), nb::arg("seed"), nb::arg("epoch"),
      nb::arg("index"), nb::arg("object") = nb::none(),
      "What a transform does to one image: crop box, resized (width, height), window box of that, mirrored "
      "or not.");
}

}  // namespace stoker::bind
