// Binds core/engine/engine.h.
#include "core/engine/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/converter.h"
#include "bind/decode_mode.h"
#include "bind/engine.h"
#include "bind/finished_batch.h"
#include "bind/remote_places.h"
#include "core/base/errors.h"

namespace stoker::bind {
namespace {

// How long a wait may keep Ctrl-C unnoticed.
constexpr std::chrono::milliseconds kPatience{50};

// What fills the columns of a request that are not given.
struct RequestColumns {
  std::optional<Column<int32_t>> objects;
  std::optional<Column<uint64_t>> keys;
  std::optional<Column<uint64_t>> streams;
};

template <typename T>
void check_as_many(const std::optional<Column<T>>& column, size_t count) {
  if (column && column->size() != count) {
    throw Error(ErrorCode::kBadArgument, "The columns of a batch must be as long as its numbers");
  }
}

void submit(Engine& engine, const Column<uint64_t>& numbers, uint64_t epoch, const RequestColumns& columns) {
  check_as_many(columns.objects, numbers.size());
  check_as_many(columns.keys, numbers.size());
  check_as_many(columns.streams, numbers.size());
  BatchRequest request{.samples = {}, .epoch = epoch};
  for (size_t i = 0; i < numbers.size(); ++i) {
    SampleRequest sample{
        .id = {numbers.data()[i], columns.objects ? columns.objects->data()[i] : kWholeImage},
        .key = columns.keys ? columns.keys->data()[i] : numbers.data()[i]};
    sample.stream = columns.streams ? columns.streams->data()[i] : sample.key;
    request.samples.push_back(sample);
  }
  const WithoutGil nogil;
  engine.get().submit(request);
}

FinishedBatch next_batch(Engine& engine) {
  BatchEngine& loads = engine.get();
  loads.consumer().asked(loads.ready());
  for (;;) {
    std::optional<Batch> batch;
    {
      WithoutGil nogil;
      batch = loads.next(kPatience);
      loads.consumer().came();
    }
    if (batch) {
      loads.consumer().given(batch->keys.size());
      return {*std::move(batch), loads.spec().views, loads.spec().format};
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

}  // namespace

void register_engine(nb::module_& m) {
  nb::class_<Engine> engine(m, "BatchEngine", "Decodes samples into batches on native threads.");
  engine
      .def(
          "__init__",
          [](Engine* engine, const std::shared_ptr<SampleSource>& source, std::vector<ViewSpec> views,
             uint64_t seed, uint64_t max_pixels, size_t batch_size, size_t threads, size_t spare_buffers,
             const PixelFormat& format, const std::string& decode, std::optional<double> boxes,
             std::shared_ptr<MemoryCache> decoded, std::shared_ptr<RemoteReader> ahead,
             std::optional<Converter> convert) {
            if (views.empty()) throw Error(ErrorCode::kBadArgument, "An engine needs a view");
            new (engine) Engine(
                source,
                EngineSpec{std::move(views), format, BoxRule{boxes.has_value(), boxes.value_or(0.0)},
                           decode_mode_named(decode), seed, max_pixels, batch_size, threads, spare_buffers,
                           std::move(decoded), std::move(ahead), converter(std::move(convert))});
          },
          nb::kw_only(), nb::arg("source"), nb::arg("views"), nb::arg("seed"), nb::arg("max_pixels"),
          nb::arg("batch_size"), nb::arg("threads"), nb::arg("spare_buffers"),
          nb::arg("format") = PixelFormat{}, nb::arg("decode") = "exact", nb::arg("boxes") = nb::none(),
          nb::arg("decoded") = nb::none(), nb::arg("ahead") = nb::none(), nb::arg("convert") = nb::none(),
          "`boxes`: the share of a box's area that a view must show to keep it; None for no boxes at all. "
          "`decoded` keeps whole images as pixels. `ahead` fetches remote samples by a schedule. "
          "`convert(bytes) -> bytes` makes a JPEG of an image that is none; it is called by any thread.")
      .def(
          "submit",
          [](Engine& engine, const Column<uint64_t>& numbers, uint64_t epoch,
             std::optional<Column<int32_t>> objects, std::optional<Column<uint64_t>> keys,
             std::optional<Column<uint64_t>> streams) {
            submit(engine, numbers, epoch, {std::move(objects), std::move(keys), std::move(streams)});
          },
          nb::arg("numbers"), nb::arg("epoch"), nb::arg("objects") = nb::none(), nb::arg("keys") = nb::none(),
          nb::arg("streams") = nb::none(),
          "Queue one batch of samples of the source; never blocks. `objects`: which box of each, -1 for the "
          "whole "
          "image. `keys`: what the batch calls them, left out: the numbers. `streams`: what random choices "
          "depend "
          "on, left out: the keys.")
      .def(
          "remote_places",
          [](Engine& engine, const Numbers& numbers, std::optional<Column<int32_t>> objects) {
            check_as_many(objects, numbers.size());
            const BatchEngine& loads = engine.get();
            return remote_places(numbers.size(), [&](size_t i) {
              return loads.remote_place({numbers.data()[i], objects ? objects->data()[i] : kWholeImage});
            });
          },
          nb::arg("numbers"), nb::arg("objects") = nb::none(),
          nb::sig(
              "def remote_places(self, numbers: numpy.typing.NDArray[numpy.uint64], objects: "
              "numpy.typing.NDArray[numpy.int32] | None = None) -> tuple[numpy.typing.NDArray[numpy.int64], "
              "numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
          "(file, offset, length) of what loading samples will take from remote storage; file -1: nothing.")
      .def("next", &next_batch, "Wait for the oldest queued batch.")
      .def(
          "replace",
          [](Engine& engine, FinishedBatch& finished, size_t index, uint64_t number, int32_t object,
             uint64_t key) {
            if (index >= finished.batch.keys.size() || finished.batch.images.empty()) {
              throw Error(ErrorCode::kBadArgument, "The batch has no sample " + std::to_string(index));
            }
            const WithoutGil nogil;
            engine.get().replace(finished.batch, index, {number, object}, key);
          },
          nb::arg("batch"), nb::arg("index"), nb::arg("number"), nb::arg("object"), nb::arg("key"),
          "Load another sample in place of one that failed, on this thread; raises what is wrong with it.")
      .def(
          "drop_pending",
          [](Engine& engine) {
            engine.get().drop_pending();
            engine.get().consumer().rest();
          },
          nb::call_guard<WithoutGil>(), "Forget every queued batch.")
      .def("close", &Engine::close, nb::call_guard<WithoutGil>(),
           "Stop the threads; samples being decoded are finished first.");
  add_totals(engine);
}

}  // namespace stoker::bind
