// Binds core/transforms/transform.h and core/engine/decode_loop.h.
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
#include "bind/decode_mode.h"
#include "bind/filter.h"
#include "core/base/errors.h"
#include "core/engine/decode_loop.h"
#include "core/transforms/transform.h"

namespace stoker::bind {
namespace {

ViewKind view_kind(const std::string& name) {
  if (name == "random_resized_crop") return ViewKind::kRandomResizedCrop;
  if (name == "center_crop") return ViewKind::kCenterCrop;
  if (name == "resize") return ViewKind::kResize;
  if (name == "top_left") return ViewKind::kTopLeft;
  if (name == "exact") return ViewKind::kExact;
  if (name == "object_crop") return ViewKind::kObjectCrop;
  throw Error(ErrorCode::kBadArgument, "Unknown view " + name);
}

}  // namespace

void register_view(nb::module_& m) {
  nb::class_<ViewSpec>(m, "ViewSpec", "Which crop of an image becomes which pixels.")
      .def(
          "__init__",
          [](ViewSpec* spec, const std::string& kind, int width, int height, const std::string& filter,
             double hflip, std::pair<double, double> scale, std::pair<double, double> ratio,
             std::pair<double, double> log_ratio, int resize, std::optional<JitterSpec> jitter) {
            new (spec) ViewSpec{.kind = view_kind(kind),
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
          },
          nb::kw_only(), nb::arg("kind"), nb::arg("width"), nb::arg("height"), nb::arg("filter"),
          nb::arg("hflip") = 0.0, nb::arg("scale") = std::pair(1.0, 1.0),
          nb::arg("ratio") = std::pair(1.0, 1.0), nb::arg("log_ratio") = std::pair(0.0, 0.0),
          nb::arg("resize") = 0, nb::arg("jitter") = nb::none())
      .def_prop_ro(
          "shape",
          [](const ViewSpec& spec) { return nb::make_tuple(spec.out.height, spec.out.width, kRgbBytes); },
          "(height, width, 3) of the pixels it gives.");

  m.def(
      "plan_view",
      [](const ViewSpec& spec, int width, int height, uint64_t seed, uint64_t epoch, uint64_t key,
         std::optional<std::tuple<float, float, float, float>> object) {
        std::optional<ObjectBox> part;
        if (object) part = std::apply([](auto... edges) { return ObjectBox{edges...}; }, *object);
        const ViewPlan plan = plan_view(spec, {width, height}, SampleRandom(seed, epoch, key), part);
        const auto box = [](const Rect& r) {
          return nb::make_tuple(r.x, r.y, r.x + r.width, r.y + r.height);
        };
        return nb::make_tuple(box(plan.crop), nb::make_tuple(plan.resized.width, plan.resized.height),
                              box(plan.window), plan.flip);
      },
      nb::arg("spec"), nb::arg("width"), nb::arg("height"), nb::arg("seed"), nb::arg("epoch"), nb::arg("key"),
      nb::arg("object") = nb::none(),
      "What a view does to one image: crop box, resized (width, height), window box of that, mirrored or "
      "not.");

  m.def(
      "codec_loop",
      [](const std::vector<nb::bytes>& images, const Column<uint64_t>& keys, const ViewSpec& view,
         uint64_t seed, uint64_t epoch, size_t threads, const std::string& decode) {
        const DecodeMode mode = decode_mode_named(decode);
        std::vector<std::span<const uint8_t>> spans;
        for (const nb::bytes& image : images) {
          spans.emplace_back(static_cast<const uint8_t*>(image.data()), image.size());
        }
        WithoutGil nogil;
        run_codec_loop(spans, {keys.data(), keys.size()}, view, mode, seed, epoch, threads);
      },
      nb::kw_only(), nb::arg("images"), nb::arg("keys"), nb::arg("view"), nb::arg("seed"), nb::arg("epoch"),
      nb::arg("threads"), nb::arg("decode") = "exact",
      "Decode and resize what the engine would for these keys, and do nothing else.");
}

}  // namespace stoker::bind
