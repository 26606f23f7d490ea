// Binds core/engine.
#include "core/engine/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
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

#include "bench/decode_loop.h"
#include "bind/bind.h"
#include "bind/remote_spans.h"
#include "core/base/errors.h"
#include "core/base/process.h"
#include "core/clocks/trace_log.h"

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
    throw Error(ErrorCode::kClosed,
                "This loader was made before a fork, and threads do not survive one; make the loader in the "
                "process that uses it");
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
  PixelMode mode;
  FieldSpec fields;
};

using ConvertedPixels = std::pair<nb::ndarray<nb::numpy, nb::ro, nb::ndim<3>, nb::c_contig>, int>;
using Converter = nb::typed<nb::callable, nb::object(nb::bytes)>;

// The error of the core for what a converter has raised. Needs the GIL.
Error converter_error(const nb::python_error& raised) {
  const std::string what = words_of(raised.value());
  const nb::object errors = nb::module_::import_("stoker.errors");
  if (raised.matches(errors.attr("ImageTooLargeError"))) return {ErrorCode::kImageTooLarge, what};
  if (raised.matches(errors.attr("ImageError"))) return {ErrorCode::kBadImage, what};
  const std::string name = nb::str(raised.type().attr("__name__")).c_str();
  return {ErrorCode::kCallback, "the converter of images in other formats raised " + name + ": " + what};
}

[[noreturn]] void refuse_converted(PixelMode mode) {
  throw Error(ErrorCode::kCallback, std::string("the converter of images in other formats did not return ") +
                                        (mode == PixelMode::kI16 ? "uint16" : "uint8") + " (height, width, " +
                                        std::to_string(channels_of(mode)) + ") and an orientation");
}

ConvertedImage call_converter(const nb::callable& convert, PixelMode mode, std::span<const uint8_t> file) {
  const WithGil gil;
  try {
    const auto [array, orientation] = nb::cast<ConvertedPixels>(convert(nb::bytes(file.data(), file.size())));
    const bool deep = mode == PixelMode::kI16;
    const bool fits = array.dtype() == (deep ? nb::dtype<uint16_t>() : nb::dtype<uint8_t>());
    if (!fits || array.shape(2) != channels_of(mode)) refuse_converted(mode);
    const auto* bytes = static_cast<const uint8_t*>(array.data());
    return {.pixels = {bytes, bytes + array.nbytes()},
            .size = extent_of(array.shape(0), array.shape(1)),
            .orientation = Orientation(orientation)};
  } catch (const nb::python_error& raised) {
    if (raised.matches(PyExc_MemoryError)) throw std::bad_alloc();
    throw converter_error(raised);
  } catch (const nb::cast_error&) {
    refuse_converted(mode);
  }
}

ConvertImage converter(std::optional<Converter> convert, PixelMode mode) {
  if (!convert) return {};
  return [held = hold(*std::move(convert)), mode](std::span<const uint8_t> file) {
    return call_converter(*held, mode, file);
  };
}

nb::dlpack::dtype numpy_type(PixelType type) {
  switch (type) {
    case PixelType::kUint8:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::UInt), 8, 1};
    case PixelType::kUint16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::UInt), 16, 1};
    case PixelType::kFloat16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case PixelType::kFloat32:
      break;
  }
  return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 32, 1};
}

// An array, with these dimensions, of memory that numpy then holds with others.
nb::object array_of(std::shared_ptr<uint8_t[]> memory, std::initializer_list<size_t> shape,
                    nb::dlpack::dtype type) {
  auto held = std::make_unique<std::shared_ptr<uint8_t[]>>(std::move(memory));
  uint8_t* values = held->get();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<uint8_t[]>*>(p); });
  held.release();
  return nb::cast(nb::ndarray<nb::numpy>(values, shape.size(), shape.begin(), owner, nullptr, type));
}

nb::object images_of(const FinishedBatch& finished, const std::shared_ptr<uint8_t[]>& pixels,
                     size_t transform) {
  const Extent out = finished.transforms[transform].out();
  const auto height = static_cast<size_t>(out.height), width = static_cast<size_t>(out.width);
  const size_t count = finished.batch.indices.size();
  const bool planes = finished.format.layout == PixelLayout::kNchw;
  const size_t channels = channels_of(finished.mode);
  const nb::dlpack::dtype type = numpy_type(finished.format.type);
  if (planes) return array_of(pixels, {count, channels, height, width}, type);
  return array_of(pixels, {count, height, width, channels}, type);
}

nb::object masks_of(const FinishedBatch& finished, const std::shared_ptr<uint8_t[]>& pixels, size_t transform,
                    unsigned bits) {
  const Extent out = finished.transforms[transform].out();
  const auto height = static_cast<size_t>(out.height), width = static_cast<size_t>(out.width);
  return array_of(pixels, {finished.batch.indices.size(), height, width},
                  numpy_type(bits > 8 ? PixelType::kUint16 : PixelType::kUint8));
}

// Of each plane, of each transform.
nb::list planes_of(const FinishedBatch& finished) {
  nb::list all;
  for (size_t plane = 0; plane < finished.batch.planes.size(); ++plane) {
    const FieldPlane& field = finished.fields.planes[plane];
    nb::list images;
    for (size_t transform = 0; transform < finished.transforms.size(); ++transform) {
      const auto& pixels = finished.batch.planes[plane][transform];
      images.append(field.is_mask() ? masks_of(finished, pixels, transform, field.mask_bits)
                                    : images_of(finished, pixels, transform));
    }
    all.append(images);
  }
  return all;
}

nb::dlpack::dtype numpy_type(FeatureKind kind) {
  if (kind == FeatureKind::kFloat) return nb::dtype<float>();
  if (kind == FeatureKind::kInt64) return nb::dtype<int64_t>();
  return nb::dtype<uint8_t>();
}

nb::object object_of(std::span<const uint8_t> value, ColumnForm form) {
  const auto* const first = reinterpret_cast<const char*>(value.data());
  const auto size = static_cast<Py_ssize_t>(value.size());
  PyObject* const object = form == ColumnForm::kText ? PyUnicode_DecodeUTF8(first, size, nullptr)
                                                     : PyBytes_FromStringAndSize(first, size);
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// A list of the object of each sample.
nb::object objects_of(const BatchColumn& column, ColumnForm form) {
  const auto list = nb::steal(PyList_New(static_cast<Py_ssize_t>(column.samples())));
  if (!list.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < column.samples(); ++i) {
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), object_of(column.of(i), form).release().ptr());
  }
  return list;
}

// values (T,) and offsets (B + 1,): those of sample i are values[offsets[i]:offsets[i + 1]].
nb::object values_of(const BatchColumn& column, const FieldColumn& field) {
  GatheredColumn gathered;
  {
    const WithoutGil nogil;
    gathered = gather(column, field.value_bytes());
  }
  const auto count = static_cast<size_t>(gathered.offsets.back());
  std::shared_ptr<uint8_t[]> values(std::move(gathered.values));
  return nb::make_tuple(array_of(std::move(values), {count}, numpy_type(field.kind)),
                        give(std::move(gathered.offsets)));
}

nb::list columns_of(const FinishedBatch& finished) {
  nb::list columns;
  for (size_t i = 0; i < finished.batch.columns.size(); ++i) {
    const BatchColumn& column = finished.batch.columns[i];
    const FieldColumn& field = finished.fields.columns[i];
    columns.append(field.form == ColumnForm::kValues ? values_of(column, field)
                                                     : objects_of(column, field.form));
  }
  return columns;
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
    images.append(images_of(finished, batch.images[transform], transform));
  for (const auto& samples : batch.boxes) boxes.append(boxes_of(samples));
  const nb::list columns = columns_of(finished), planes = planes_of(finished);
  return nb::make_tuple(images, give(std::move(batch.labels)), give(std::move(batch.indices)),
                        give(std::move(batch.seeds)), boxes, columns, planes);
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
  nb::dict counts, stages;
  for (size_t i = 0; i < kStages; ++i) {
    stages[kStageNames[i]] = nb::make_tuple(all.stages.of[i].samples, all.stages.of[i].nanoseconds);
  }
  counts["stages"] = stages;
  counts["bytes_read"] = all.stages.bytes_read;
  counts["threads"] = all.threads;
  counts["busy_ns"] = all.workers.busy_ns;
  counts["idle_ns"] = all.workers.idle_ns;
  counts["cpu_ns"] = all.workers.cpu_ns;
  counts["batches"] = all.consumer.batches;
  counts["samples"] = all.consumer.samples;
  counts["ready"] = all.consumer.ready;
  counts["wait_ns"] = all.consumer.wait_ns;
  counts["handover_ns"] = all.consumer.handover_ns;
  counts["consume_ns"] = all.consumer.consume_ns;
  return counts;
}

nb::tuple take_trace(Engine& engine) {
  const TraceLog::Taken taken = engine.get().trace().take();
  const size_t bytes = taken.events.size() * sizeof(TraceEvent);
  return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(taken.events.data()), bytes), taken.lost);
}

// How long a wait may keep Ctrl-C unnoticed.
constexpr std::chrono::milliseconds kPollTimeout{50};

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
  request.samples.reserve(numbers.size());
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
  const EngineSpec& spec = loads.spec();
  FinishedBatch finished{{}, spec.transforms, spec.format, spec.mode, spec.fields};
  loads.consumer().asked(loads.ready());
  for (;;) {
    std::optional<Batch> batch;
    {
      WithoutGil nogil;
      batch = loads.next(kPollTimeout);
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

FeatureKind feature_kind(const std::string& name) {
  for (const FeatureKind kind : {FeatureKind::kBytes, FeatureKind::kFloat, FeatureKind::kInt64}) {
    if (name == kind_name(kind)) return kind;
  }
  throw Error(ErrorCode::kBadArgument, "Unknown kind of values " + name + "; use bytes, float or int64");
}

ColumnForm column_form(const std::string& name) {
  if (name == "values") return ColumnForm::kValues;
  if (name == "bytes") return ColumnForm::kBytes;
  if (name == "str") return ColumnForm::kText;
  throw Error(ErrorCode::kBadArgument, "Unknown form of a column " + name + "; use values, bytes or str");
}

void add_fields(nb::module_& m) {
  nb::class_<FieldColumn>(m, "FieldColumn", "A feature of records whose values batches have.")
      .def(
          "__init__",
          [](FieldColumn* column, const std::string& key, const std::string& kind, const std::string& form,
             bool text, bool fixed, size_t group) {
            const FieldColumn spec{key, feature_kind(kind), column_form(form), text, fixed, group};
            check_fields({{spec}, {}});
            new (column) FieldColumn(spec);
          },
          nb::arg("key"), nb::arg("kind"), nb::kw_only(), nb::arg("form") = "values", nb::arg("text") = false,
          nb::arg("fixed") = false, nb::arg("group") = 1,
          "`form`: what batches have of it, its values end to end, or a list of one `bytes` or `str` a "
          "sample. "
          "Every record has `group` values if they are `fixed`, otherwise a multiple of that; of kind bytes "
          "one, whose bytes are counted. `text`: bytes that are UTF-8, as those of `str` must be.");
  nb::class_<FieldPlane>(m, "FieldPlane", "A further image file of records, as large as the first one.")
      .def(
          "__init__",
          [](FieldPlane* plane, const std::string& key, unsigned mask_bits) {
            const FieldPlane spec{key, mask_bits};
            check_fields({{}, {spec}});
            new (plane) FieldPlane(spec);
          },
          nb::arg("key"), nb::arg("mask_bits") = 0,
          "`mask_bits`: 8 or 16 of a mask, a greyscale PNG; 0 of an image, which is shown as the first one.");
}

void add_finished_batch(nb::module_& m) {
  nb::class_<FinishedBatch>(m, "FinishedBatch", "A batch that all threads are done with.")
      .def_prop_ro("failures", &failures_of, nb::sig("def failures(self) -> list[tuple[int, Exception]]"),
                   "Which samples could not be loaded, in batch order, and why.")
      .def("take", &take, nb::lock_self(),
           "Hand over, once: the images of each transform, (B, H, W, C) or (B, C, H, W), labels (B,), "
           "indices (B,), seeds (B,), of each transform the boxes: corners (4 T,), labels (T,), "
           "objects (T,), offsets (B + 1,); of each column of the fields values (T,), offsets (B + 1,), or a "
           "list of B objects; and of each plane of theirs, of each transform, images, or of masks (B, H, "
           "W).");
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
             std::shared_ptr<RemoteReader> ahead, std::optional<Converter> convert, const std::string& mode,
             std::vector<FieldColumn> columns, std::vector<FieldPlane> planes, bool turns) {
            const PixelMode pixels = pixel_mode_named(mode);
            new (engine) Engine(source, EngineSpec{std::move(transforms), format, pixels,
                                                   BoxRule{boxes.has_value(), boxes.value_or(0.0)},
                                                   FieldSpec{std::move(columns), std::move(planes)},
                                                   decode_mode_named(decode), seed, max_pixels, turns,
                                                   batch_size, threads, spare_buffers, std::move(decoded),
                                                   std::move(ahead), converter(std::move(convert), pixels)});
          },
          nb::kw_only(), nb::arg("source"), nb::arg("transforms"), nb::arg("seed"), nb::arg("max_pixels"),
          nb::arg("batch_size"), nb::arg("threads"), nb::arg("spare_buffers"),
          nb::arg("format") = PixelFormat{}, nb::arg("decode") = "exact", nb::arg("boxes") = nb::none(),
          nb::arg("decoded") = nb::none(), nb::arg("ahead") = nb::none(), nb::arg("convert") = nb::none(),
          nb::arg("mode") = "RGB", nb::arg("columns") = std::vector<FieldColumn>{},
          nb::arg("planes") = std::vector<FieldPlane>{}, nb::arg("turns") = false,
          "`boxes`: the share of a box's area that a transform must show to keep it; None for no boxes at "
          "all. "
          "`decoded` keeps whole images as pixels. `ahead` fetches remote samples by a schedule. "
          "`convert(bytes)` gives the pixels of an image in another format, (height, width, channels) of the "
          "mode, uint8 or for I;16 uint16, and their EXIF orientation; it is called by any thread. `mode` is "
          "RGB, L, RGBA or I;16, of "
          "which "
          "batches have 3, 1, 4 or 1 channels C. `columns` and `planes` are what batches have of the "
          "records' fields. `turns`: whether images, with boxes and masks, are turned by their EXIF "
          "orientation.")
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
          "remote_spans",
          [](Engine& engine, const Numbers& numbers, std::optional<Column<int32_t>> objects) {
            check_as_many(objects, numbers.size());
            const BatchEngine& loads = engine.get();
            return remote_spans(numbers.size(), [&](size_t i) {
              return loads.remote_span({numbers.data()[i], objects ? objects->data()[i] : kWholeImage});
            });
          },
          nb::arg("numbers"), nb::arg("objects") = nb::none(),
          nb::sig(
              "def remote_spans(self, numbers: numpy.typing.NDArray[numpy.uint64], objects: "
              "numpy.typing.NDArray[numpy.int32] | None = None) -> tuple[numpy.typing.NDArray[numpy.int64], "
              "numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
          "(file, offset, length) of what loading samples will take from remote storage; file -1: nothing.")
      .def(
          "where", [](Engine& engine, uint64_t number) { return location_of(engine.get().where(number)); },
          nb::arg("number"), nb::sig("def where(self, number: int) -> tuple[str, int, int]"),
          "(path, record, offset) of a sample of the source, for messages.")
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
         const std::string& decode, const std::string& mode) {
        const DecodeMode how = decode_mode_named(decode);
        const PixelMode pixels = pixel_mode_named(mode);
        std::vector<std::span<const uint8_t>> spans;
        for (const nb::bytes& image : images) {
          spans.emplace_back(static_cast<const uint8_t*>(image.data()), image.size());
        }
        WithoutGil nogil;
        run_decode_loop(spans, {indices.data(), indices.size()}, transform, how, pixels, seed, epoch,
                        threads);
      },
      nb::kw_only(), nb::arg("images"), nb::arg("indices"), nb::arg("transform"), nb::arg("seed"),
      nb::arg("epoch"), nb::arg("threads"), nb::arg("decode") = "exact", nb::arg("mode") = "RGB",
      "Decode and resize what the engine would for these indices, and do nothing else.");
}

}  // namespace

void register_engine(nb::module_& m) {
  add_fields(m);
  add_finished_batch(m);
  add_engine(m);
  add_decode_loop(m);
}

}  // namespace stoker::bind
