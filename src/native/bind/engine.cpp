// Binds core/engine.h.
#include "core/engine.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/filter.h"
#include "core/codec_loop.h"
#include "core/errors.h"

namespace stoker::bind {
namespace {

using Extents = nb::ndarray<const uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using Keys = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(RecordExtent) == 2 * sizeof(uint64_t), "rows of an index are copied as they are");

// How long a wait may keep Ctrl-C unnoticed.
constexpr std::chrono::milliseconds kPatience{50};

ViewKind view_kind(const std::string& name) {
  if (name == "random_resized_crop") return ViewKind::kRandomResizedCrop;
  if (name == "center_crop") return ViewKind::kCenterCrop;
  if (name == "resize") return ViewKind::kResize;
  throw Error(ErrorCode::kBadArgument, "Unknown view " + name);
}

// A vector that numpy owns from now on.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> give(std::vector<T> values) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* data = held->data();
  const size_t count = held->size();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  held.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner);
}

nb::tuple hand_over(Batch batch, const ViewSpec& view) {
  auto held = std::make_unique<std::shared_ptr<uint8_t[]>>(std::move(batch.images));
  uint8_t* pixels = held->get();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<uint8_t[]>*>(p); });
  held.release();
  const nb::ndarray<nb::numpy, uint8_t, nb::ndim<4>> images(
      pixels,
      {batch.keys.size(), static_cast<size_t>(view.out.height), static_cast<size_t>(view.out.width),
       kRgbBytes},
      owner);
  return nb::make_tuple(images, give(std::move(batch.labels)), give(std::move(batch.keys)));
}

nb::tuple next_batch(BatchEngine& engine) {
  for (;;) {
    std::optional<Batch> batch;
    {
      nb::gil_scoped_release nogil;
      batch = engine.next(kPatience);
    }
    if (batch) return hand_over(*std::move(batch), engine.spec().view);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace

void register_engine(nb::module_& m) {
  nb::class_<RecordSet>(m, "RecordSet", "Random access to the records of many shards.")
      .def(nb::init<size_t>(), nb::arg("max_open") = 256)
      .def(
          "add",
          [](RecordSet& set, const std::string& path, const Extents& extents) {
            const auto* rows = reinterpret_cast<const RecordExtent*>(extents.data());
            set.add(path, std::vector<RecordExtent>(rows, rows + extents.shape(0)));
          },
          nb::arg("path"), nb::arg("extents"),
          "Append a shard; rows are (offset, size) of whole frames, in bytes.")
      .def("__len__", &RecordSet::size)
      .def(
          "read",
          [](const RecordSet& set, uint64_t index) {
            std::vector<uint8_t> buffer;
            std::span<const uint8_t> payload;
            {
              nb::gil_scoped_release nogil;
              payload = set.read(index, PayloadCheck::kOn, buffer);
            }
            return nb::bytes(payload.data(), payload.size());
          },
          nb::arg("index"), "The payload of one record, its checksum verified.")
      .def(
          "where",
          [](const RecordSet& set, uint64_t index) {
            const Where where = set.where(index);
            return nb::make_tuple(nb::str(where.path.c_str(), where.path.size()), where.record, where.offset);
          },
          nb::arg("index"), "The shard's path, the number of the record in it, and its offset in bytes.");

  nb::class_<ViewSpec>(m, "ViewSpec", "Which crop of an image becomes which pixels.")
      .def(
          "__init__",
          [](ViewSpec* spec, const std::string& kind, int width, int height, const std::string& filter,
             double hflip, std::pair<double, double> scale, std::pair<double, double> ratio,
             std::pair<double, double> log_ratio, int resize) {
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
                                .resize = resize};
          },
          nb::kw_only(), nb::arg("kind"), nb::arg("width"), nb::arg("height"), nb::arg("filter"),
          nb::arg("hflip") = 0.0, nb::arg("scale") = std::pair(1.0, 1.0),
          nb::arg("ratio") = std::pair(1.0, 1.0), nb::arg("log_ratio") = std::pair(0.0, 0.0),
          nb::arg("resize") = 0)
      .def_prop_ro(
          "shape",
          [](const ViewSpec& spec) { return nb::make_tuple(spec.out.height, spec.out.width, kRgbBytes); },
          "(height, width, 3) of the pixels it gives.");

  m.def(
      "plan_view",
      [](const ViewSpec& spec, int width, int height, uint64_t seed, uint64_t epoch, uint64_t key) {
        const ViewPlan plan = plan_view(spec, {width, height}, SampleRandom(seed, epoch, key));
        const auto box = [](const Rect& r) {
          return nb::make_tuple(r.x, r.y, r.x + r.width, r.y + r.height);
        };
        return nb::make_tuple(box(plan.crop), nb::make_tuple(plan.resized.width, plan.resized.height),
                              box(plan.window), plan.flip);
      },
      nb::arg("spec"), nb::arg("width"), nb::arg("height"), nb::arg("seed"), nb::arg("epoch"), nb::arg("key"),
      "What a view does to one image: crop box, resized (width, height), window box of that, mirrored or "
      "not.");

  m.def(
      "codec_loop",
      [](const std::vector<nb::bytes>& images, const Keys& keys, const ViewSpec& view, uint64_t seed,
         uint64_t epoch, size_t threads) {
        std::vector<std::span<const uint8_t>> spans;
        for (const nb::bytes& image : images) {
          spans.emplace_back(static_cast<const uint8_t*>(image.data()), image.size());
        }
        nb::gil_scoped_release nogil;
        run_codec_loop(spans, {keys.data(), keys.size()}, view, seed, epoch, threads);
      },
      nb::kw_only(), nb::arg("images"), nb::arg("keys"), nb::arg("view"), nb::arg("seed"), nb::arg("epoch"),
      nb::arg("threads"), "Decode and resize what the engine would for these keys, and do nothing else.");

  nb::class_<BatchEngine>(m, "BatchEngine", "Decodes records into batches on native threads.")
      .def(
          "__init__",
          [](BatchEngine* engine, std::shared_ptr<RecordSet> records, const ViewSpec& view, uint64_t seed,
             const std::string& image_key, const std::string& label_key, const std::string& source_key,
             bool check, uint64_t max_pixels, size_t batch_size, size_t threads, size_t spare_buffers) {
            new (engine)
                BatchEngine(std::move(records), EngineSpec{view, seed, image_key, label_key, source_key,
                                                           check ? PayloadCheck::kOn : PayloadCheck::kOff,
                                                           max_pixels, batch_size, threads, spare_buffers});
          },
          nb::kw_only(), nb::arg("records"), nb::arg("view"), nb::arg("seed"), nb::arg("image_key"),
          nb::arg("label_key"), nb::arg("source_key"), nb::arg("check"), nb::arg("max_pixels"),
          nb::arg("batch_size"), nb::arg("threads"), nb::arg("spare_buffers"))
      .def(
          "submit",
          [](BatchEngine& engine, const Keys& keys, uint64_t epoch) {
            std::vector<uint64_t> copy(keys.data(), keys.data() + keys.size());
            nb::gil_scoped_release nogil;
            engine.submit(std::move(copy), epoch);
          },
          nb::arg("keys"), nb::arg("epoch"), "Queue one batch of record numbers; never blocks.")
      .def(
          "next", &next_batch,
          "Wait for the oldest queued batch: images (B, H, W, 3) uint8, labels (B,) int64, keys (B,) uint64.")
      .def("drop_pending", &BatchEngine::drop_pending, nb::call_guard<nb::gil_scoped_release>(),
           "Forget every queued batch.")
      .def("close", &BatchEngine::close, nb::call_guard<nb::gil_scoped_release>(),
           "Stop the threads; samples being decoded are finished first.");
}

}  // namespace stoker::bind
