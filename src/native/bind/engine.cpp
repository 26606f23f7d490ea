// Binds core/engine.
#include "core/engine/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/remote_places.h"
#include "core/base/errors.h"
#include "core/base/process.h"
#include "core/clocks/trace_log.h"
#include "core/engine/decode_loop.h"

namespace stoker::bind {
namespace {

// An engine that Python owns. In a process that was forked from the one that made it, its threads do
// not exist and its locks may be held forever: there it is left alone, also at the end.
class Engine {
 public:
  Engine(std::shared_ptr<const SampleSource> source, EngineSpec spec)
      : engine_(std::make_unique<BatchEngine>(std::move(source), std::move(spec))) {}
  ~Engine() {
    if (process_number() != process_) {
      static_cast<void>(engine_.release());
      return;
    }
    // Python frees it with the GIL held, which a worker in the middle of a conversion waits for.
    WithoutGil nogil;
    engine_->close();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  BatchEngine& get() {
    if (process_number() == process_) return *engine_;
    throw Error(ErrorCode::kClosed, "This engine was made before a fork, and threads do not survive one");
  }

  void close() {
    if (process_number() == process_) engine_->close();
  }

 private:
  std::unique_ptr<BatchEngine> engine_;
  uint64_t process_ = process_number();
};

// A batch between the engine and Python.
struct FinishedBatch {
  Batch batch;
  std::vector<TransformSpec> transforms;
  PixelFormat format;
};

using Converter = nb::typed<nb::callable, nb::bytes(nb::bytes)>;

// The error of the core for what a converter has raised. Needs the GIL.
Error converter_error(const nb::python_error& raised) {
  const std::string what = nb::str(raised.value()).c_str();
  const nb::object errors = nb::module_::import_("stoker.errors");
  if (raised.matches(errors.attr("ImageTooLargeError"))) return {ErrorCode::kImageTooLarge, what};
  if (raised.matches(errors.attr("ImageError"))) return {ErrorCode::kBadImage, what};
  const std::string name = nb::str(raised.type().attr("__name__")).c_str();
  return {ErrorCode::kCallback, "the converter of images that are not JPEGs raised " + name + ": " + what};
}

std::vector<uint8_t> call_converter(const nb::callable& convert, std::span<const uint8_t> image) {
  const WithGil gil;
  try {
    const nb::bytes made = nb::cast<nb::bytes>(convert(nb::bytes(image.data(), image.size())));
    const auto* bytes = static_cast<const uint8_t*>(made.data());
    return {bytes, bytes + made.size()};
  } catch (const nb::python_error& raised) {
    if (raised.matches(PyExc_MemoryError)) throw std::bad_alloc();
    throw converter_error(raised);
  } catch (const nb::cast_error&) {
    throw Error(ErrorCode::kCallback, "the converter of images that are not JPEGs did not return bytes");
  }
}

ConvertImage converter(std::optional<Converter> convert) {
  if (!convert) return {};
  return [held = hold(*std::move(convert))](std::span<const uint8_t> image) {
    return call_converter(*held, image);
  };
}

nb::dlpack::dtype numpy_type(PixelType type) {
  switch (type) {
    case PixelType::kUint8:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::UInt), 8, 1};
    case PixelType::kFloat16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case PixelType::kFloat32:
      break;
  }
  return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 32, 1};
}

nb::object images_of(const FinishedBatch& finished, size_t transform) {
  auto held = std::make_unique<std::shared_ptr<uint8_t[]>>(finished.batch.images[transform]);
  uint8_t* pixels = held->get();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<uint8_t[]>*>(p); });
  held.release();
  const Extent out = finished.transforms[transform].out;
  const auto height = static_cast<size_t>(out.height), width = static_cast<size_t>(out.width);
  const size_t count = finished.batch.indices.size();
  const bool planes = finished.format.layout == PixelLayout::kNchw;
  const size_t nhwc[] = {count, height, width, kRgbBytes}, nchw[] = {count, kRgbBytes, height, width};
  return nb::cast(nb::ndarray<nb::numpy>(pixels, 4, planes ? nchw : nhwc, owner, nullptr,
                                         numpy_type(finished.format.type)));
}

// corners (T, 4), labels (T,), objects (T,) and offsets (B + 1,): the boxes of sample i are rows offsets[i]
// to offsets[i + 1].
nb::tuple boxes_of(const std::vector<std::vector<TransformedBox>>& samples) {
  std::vector<float> corners;
  std::vector<int64_t> labels, offsets{0};
  std::vector<int32_t> objects;
  for (const auto& boxes : samples) {
    for (const TransformedBox& box : boxes) {
      corners.insert(corners.end(), {box.xmin, box.ymin, box.xmax, box.ymax});
      labels.push_back(box.label);
      objects.push_back(box.object);
    }
    offsets.push_back(static_cast<int64_t>(labels.size()));
  }
  return nb::make_tuple(give(std::move(corners)), give(std::move(labels)), give(std::move(objects)),
                        give(std::move(offsets)));
}

nb::tuple take(FinishedBatch& finished) {
  Batch& batch = finished.batch;
  nb::list images, boxes;
  for (size_t transform = 0; transform < batch.images.size(); ++transform)
    images.append(images_of(finished, transform));
  for (const auto& samples : batch.boxes) boxes.append(boxes_of(samples));
  return nb::make_tuple(images, give(std::move(batch.labels)), give(std::move(batch.indices)),
                        give(std::move(batch.seeds)), boxes);
}

nb::list failures_of(const FinishedBatch& finished) {
  nb::list failures;
  for (const SampleFailure& failure : finished.batch.failures) {
    failures.append(nb::make_tuple(failure.row, exception_of(failure.error)));
  }
  return failures;
}

// What of the loader's figures is the engine's, under the names that loader/stats.py reads.
nb::dict totals(Engine& engine) {
  const EngineTotals all = engine.get().totals();
  nb::dict made, stages;
  for (size_t i = 0; i < kStages; ++i) {
    stages[kStageNames[i]] = nb::make_tuple(all.stages.of[i].samples, all.stages.of[i].nanoseconds);
  }
  made["stages"] = stages;
  made["bytes_read"] = all.stages.bytes_read;
  made["threads"] = all.threads;
  made["busy_ns"] = all.workers.busy_ns;
  made["idle_ns"] = all.workers.idle_ns;
  made["cpu_ns"] = all.workers.cpu_ns;
  made["batches"] = all.consumer.batches;
  made["samples"] = all.consumer.samples;
  made["ready"] = all.consumer.ready;
  made["wait_ns"] = all.consumer.wait_ns;
  made["handover_ns"] = all.consumer.handover_ns;
  made["consume_ns"] = all.consumer.consume_ns;
  return made;
}

nb::tuple take_trace(Engine& engine) {
  const TraceLog::Taken taken = engine.get().trace().take();
  const size_t bytes = taken.events.size() * sizeof(TraceEvent);
  return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(taken.events.data()), bytes), taken.lost);
}

// How long a wait may keep Ctrl-C unnoticed.
constexpr std::chrono::milliseconds kTimeout{50};

// What fills the columns of a request that are not given.
struct RequestColumns {
  std::optional<Column<int32_t>> objects;
  std::optional<Column<uint64_t>> indices;
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
  check_as_many(columns.indices, numbers.size());
  check_as_many(columns.streams, numbers.size());
  BatchRequest request{.samples = {}, .epoch = epoch};
  for (size_t i = 0; i < numbers.size(); ++i) {
    SampleRequest sample{
        .id = {numbers.data()[i], columns.objects ? columns.objects->data()[i] : kWholeImage},
        .index = columns.indices ? columns.indices->data()[i] : numbers.data()[i]};
    sample.stream = columns.streams ? columns.streams->data()[i] : sample.index;
    request.samples.push_back(sample);
  }
  const WithoutGil nogil;
  engine.get().submit(request);
}

FinishedBatch next_batch(Engine& engine) {
  BatchEngine& loads = engine.get();
  FinishedBatch finished{{}, loads.spec().transforms, loads.spec().format};
  loads.consumer().asked(loads.ready());
  for (;;) {
    std::optional<Batch> batch;
    {
      WithoutGil nogil;
      batch = loads.next(kTimeout);
      loads.consumer().came();
    }
    if (batch) {
      loads.consumer().given(batch->indices.size());
      finished.batch = *std::move(batch);
      return finished;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void add_finished_batch(nb::module_& m) {
  nb::class_<FinishedBatch>(m, "FinishedBatch", "A batch that all threads are done with.")
      .def_prop_ro("failures", &failures_of, nb::sig("def failures(self) -> list[tuple[int, Exception]]"),
                   "Which samples could not be loaded, in batch order, and why.")
      .def("take", &take, nb::lock_self(),
           "Hand over, once: the images of each transform, (B, H, W, 3) or (B, 3, H, W), labels (B,), "
           "indices (B,), seeds (B,), and of each transform the boxes: corners (4 T,), labels (T,), "
           "objects (T,), offsets (B + 1,).");
}

void add_totals(nb::class_<Engine>& engine) {
  engine
      .def("totals", &totals, nb::sig("def totals(self) -> dict[str, typing.Any]"),
           "What was done since it was made; also after close().")
      .def(
          "time_stages", [](Engine& engine, bool on) { engine.get().time_stages(on); }, nb::arg("on"),
          "Whether samples are timed, from now on; off only to measure the cost of timing.")
      .def(
          "start_trace", [](Engine& engine, size_t most) { engine.get().trace().start(most); },
          nb::arg("most"), "Keep what the threads do, up to `most` events of each until they are taken.")
      .def(
          "stop_trace", [](Engine& engine) { engine.get().trace().stop(); }, "Keep nothing any more.")
      .def(
          "is_traced", [](Engine& engine) { return engine.get().trace().on(); }, "Whether events are kept.")
      .def("take_trace", &take_trace, nb::sig("def take_trace(self) -> tuple[bytes, int]"),
           "The events since the last call, as loader/tracing.py lays them out, and how many were lost.");
}

void add_engine(nb::module_& m) {
  nb::class_<Engine> engine(m, "BatchEngine", "Decodes samples into batches on native threads.");
  engine
      .def(
          "__init__",
          [](Engine* engine, const std::shared_ptr<SampleSource>& source,
             std::vector<TransformSpec> transforms, uint64_t seed, uint64_t max_pixels, size_t batch_size,
             size_t threads, size_t spare_buffers, const PixelFormat& format, const std::string& decode,
             std::optional<double> boxes, std::shared_ptr<MemoryCache> decoded,
             std::shared_ptr<RemoteReader> ahead, std::optional<Converter> convert) {
            new (engine) Engine(
                source,
                EngineSpec{std::move(transforms), format, BoxRule{boxes.has_value(), boxes.value_or(0.0)},
                           decode_mode_named(decode), seed, max_pixels, batch_size, threads, spare_buffers,
                           std::move(decoded), std::move(ahead), converter(std::move(convert))});
          },
          nb::kw_only(), nb::arg("source"), nb::arg("transforms"), nb::arg("seed"), nb::arg("max_pixels"),
          nb::arg("batch_size"), nb::arg("threads"), nb::arg("spare_buffers"),
          nb::arg("format") = PixelFormat{}, nb::arg("decode") = "exact", nb::arg("boxes") = nb::none(),
          nb::arg("decoded") = nb::none(), nb::arg("ahead") = nb::none(), nb::arg("convert") = nb::none(),
          "`boxes`: the share of a box's area that a transform must show to keep it; None for no boxes at "
          "all. "
          "`decoded` keeps whole images as pixels. `ahead` fetches remote samples by a schedule. "
          "`convert(bytes) -> bytes` makes a JPEG of an image in another format; it is called by any thread.")
      .def(
          "submit",
          [](Engine& engine, const Column<uint64_t>& numbers, uint64_t epoch,
             std::optional<Column<int32_t>> objects, std::optional<Column<uint64_t>> indices,
             std::optional<Column<uint64_t>> streams) {
            submit(engine, numbers, epoch, {std::move(objects), std::move(indices), std::move(streams)});
          },
          nb::arg("numbers"), nb::arg("epoch"), nb::arg("objects") = nb::none(),
          nb::arg("indices") = nb::none(), nb::arg("streams") = nb::none(),
          "Queue one batch of samples of the source; never blocks. `objects`: which box of each, -1 for the "
          "whole image. `indices`: what the batch calls them; by default the numbers. `streams`: what random "
          "choices depend on; by default the indices.")
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
          [](Engine& engine, FinishedBatch& finished, size_t row, uint64_t number, int32_t object,
             uint64_t index) {
            const WithoutGil nogil;
            engine.get().replace(finished.batch, row, {number, object}, index);
          },
          nb::arg("batch"), nb::arg("row"), nb::arg("number"), nb::arg("object"), nb::arg("index"),
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

void add_decode_loop(nb::module_& m) {
  m.def(
      "decode_loop",
      [](const std::vector<nb::bytes>& images, const Column<uint64_t>& indices,
         const TransformSpec& transform, uint64_t seed, uint64_t epoch, size_t threads,
         const std::string& decode) {
        const DecodeMode mode = decode_mode_named(decode);
        std::vector<std::span<const uint8_t>> spans;
        for (const nb::bytes& image : images) {
          spans.emplace_back(static_cast<const uint8_t*>(image.data()), image.size());
        }
        WithoutGil nogil;
        run_decode_loop(spans, {indices.data(), indices.size()}, transform, mode, seed, epoch, threads);
      },
      nb::kw_only(), nb::arg("images"), nb::arg("indices"), nb::arg("transform"), nb::arg("seed"),
      nb::arg("epoch"), nb::arg("threads"), nb::arg("decode") = "exact",
      "Decode and resize what the engine would for these indices, and do nothing else.");
}

}  // namespace

void register_engine(nb::module_& m) {
  add_finished_batch(m);
  add_engine(m);
  add_decode_loop(m);
}

}  // namespace stoker::bind
