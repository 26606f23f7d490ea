// Binds core/transforms and core/operations.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bind/bind.h"
#include "core/transforms/transform.h"
#include "core/transforms/transform_decoder.h"

namespace stoker::bind {
namespace {

using GivenSettings = std::map<std::string, std::variant<std::string, std::vector<double>>>;
using NamedSettings = std::pair<std::string, GivenSettings>;
using PixelArray = nb::ndarray<nb::numpy, uint8_t, nb::ndim<3>>;

SettingValues values_of(GivenSettings given) {
  SettingValues values;
  for (auto& [name, value] : given) {
    std::visit([&](auto& of_a_kind) { values.emplace(name, std::move(of_a_kind)); }, value);
  }
  return values;
}

TransformSpec transform_of(std::string name, GivenSettings settings, std::vector<NamedSettings> operations) {
  std::vector<OperationSettings> changes;
  for (NamedSettings& operation : operations) {
    changes.emplace_back(std::move(operation.first), values_of(std::move(operation.second)));
  }
  return TransformSpec({std::move(name), values_of(std::move(settings))}, std::move(changes));
}

nb::object plan_of(const TransformSpec& transform, Extent image, const SampleRandom& random,
                   const std::optional<ObjectBox>& object) {
  const TransformPlan plan = transform.plan(image, random, object);
  const auto box = [](const Rect& r) { return nb::make_tuple(r.x, r.y, r.x + r.width, r.y + r.height); };
  return nb::make_tuple(box(plan.crop), nb::make_tuple(plan.resized.width, plan.resized.height),
                        box(plan.window), plan.flip, transform.steps(random));
}

PixelArray pixels_of(const TransformSpec& transform, const RgbImage& pixels, const SampleRandom& random) {
  const StoredImage image{.bytes = {pixels.data(), pixels.size()},
                          .encoding = ImageEncoding::kRaw,
                          .size = extent_of(pixels.shape(0), pixels.shape(1))};
  const auto width = static_cast<size_t>(transform.out().width),
             height = static_cast<size_t>(transform.out().height);
  auto bytes = std::make_unique_for_overwrite<uint8_t[]>(width * height * kRgbBytes);
  {
    WithoutGil nogil;
    const RgbSlot slot{bytes.get(), width * kRgbBytes};
    TransformDecoder().decode(image, {&transform, 1}, random, kDefaultMaxPixels, {&slot, 1});
  }
  return give<PixelArray>(std::move(bytes), {height, width, kRgbBytes});
}

}  // namespace

void register_transforms(nb::module_& m) {
  nb::class_<TransformSpec>(m, "TransformSpec", "What is made of every image.")
      .def(
          "__init__",
          [](TransformSpec* spec, std::string name, GivenSettings settings,
             std::vector<NamedSettings> operations) {
            new (spec)
                TransformSpec(transform_of(std::move(name), std::move(settings), std::move(operations)));
          },
          nb::arg("name"), nb::arg("settings"), nb::arg("operations") = std::vector<NamedSettings>{},
          "An operation that decides which pixels are shown, with its settings: words, and numbers in lists; "
          "and those on the pixels of its result.")
      .def_prop_ro(
          "shape",
          [](const TransformSpec& spec) { return nb::make_tuple(spec.out().height, spec.out().width); },
          "(height, width) of the pixels it gives.")
      .def(
          "plan",
          [](const TransformSpec& spec, int width, int height, uint64_t seed, uint64_t epoch, uint64_t index,
             std::optional<std::tuple<float, float, float, float>> object) {
            std::optional<ObjectBox> part;
            if (object) part = std::apply([](auto... edges) { return ObjectBox{edges...}; }, *object);
            return plan_of(spec, {width, height}, SampleRandom(seed, epoch, index), part);
          },
          nb::arg("width"), nb::arg("height"), nb::arg("seed"), nb::arg("epoch"), nb::arg("index"),
          nb::arg("object") = nb::none(),
          nb::sig("def plan(self, width: int, height: int, seed: int, epoch: int, index: int, object: "
                  "tuple[float, float, float, float] | None = None) -> tuple[tuple[int, int, int, int], "
                  "tuple[int, int], tuple[int, int, int, int], bool, list[tuple[str, float]]]"),
          "What is done to one image: crop box, resized (width, height), window box of that, mirrored or "
          "not, "
          "and what is changed in the pixels, with the numbers.")
      .def(
          "apply",
          [](const TransformSpec& spec, const RgbImage& pixels, uint64_t seed, uint64_t epoch,
             uint64_t index) { return pixels_of(spec, pixels, SampleRandom(seed, epoch, index)); },
          nb::arg("pixels"), nb::arg("seed"), nb::arg("epoch"), nb::arg("index"),
          "What is made of an image of uint8 (H, W, 3).");
}

}  // namespace stoker::bind
