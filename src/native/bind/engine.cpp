// Binds core/engine.h.
#include "core/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/variant.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bind/bind.h"
#include "core/errors.h"
#include "core/file_set.h"
#include "core/record_source.h"

namespace stoker::bind {
namespace {

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Converter = nb::typed<nb::callable, nb::bytes(nb::bytes)>;
using Source = std::variant<std::shared_ptr<RecordSet>, std::shared_ptr<FileSet>>;

// How long a wait may keep Ctrl-C unnoticed.
constexpr std::chrono::milliseconds kPatience{50};

// Python lets go of an engine with the GIL held, which a worker in the middle of a conversion waits for.
struct Engine : BatchEngine {
  using BatchEngine::BatchEngine;
  ~Engine() {
    nb::gil_scoped_release nogil;
    close();
  }
};

// The error of the core for what a converter has raised. Needs the GIL.
Error converter_error(const nb::python_error& raised) {
  const std::string what = nb::str(raised.value()).c_str();
  const nb::object errors = nb::module_::import_("stoker.errors");
  if (raised.matches(errors.attr("ImageTooLargeError"))) return {ErrorCode::kImageTooLarge, what};
  if (raised.matches(errors.attr("ImageError"))) return {ErrorCode::kBadImage, what};
  const std::string name = nb::str(raised.type().attr("__name__")).c_str();
  return {ErrorCode::kCallback, "the converter of images that are no JPEG raised " + name + ": " + what};
}

std::vector<uint8_t> call_converter(const nb::callable& convert, std::span<const uint8_t> image) {
  const nb::gil_scoped_acquire gil;
  try {
    const nb::bytes made = nb::cast<nb::bytes>(convert(nb::bytes(image.data(), image.size())));
    const auto* bytes = static_cast<const uint8_t*>(made.data());
    return {bytes, bytes + made.size()};
  } catch (const nb::python_error& raised) {
    throw converter_error(raised);
  } catch (const nb::cast_error&) {
    throw Error(ErrorCode::kCallback, "the converter of images that are no JPEG returned no bytes");
  }
}

// The callable is shared, so that copies of the function need no GIL. Letting go of it does.
ConvertImage converter(std::optional<Converter> convert) {
  if (!convert) return {};
  const auto let_go = [](nb::callable* callable) {
    const nb::gil_scoped_acquire gil;
    delete callable;
  };
  const std::shared_ptr<nb::callable> held(new nb::callable(*std::move(convert)), let_go);
  return [held](std::span<const uint8_t> image) { return call_converter(*held, image); };
}

std::shared_ptr<const SampleSource> sample_source(const Source& source, const std::optional<RecordKeys>& keys,
                                                  bool check) {
  if (const auto* files = std::get_if<std::shared_ptr<FileSet>>(&source)) return *files;
  if (!keys) throw Error(ErrorCode::kBadArgument, "Records need keys= that say what they hold");
  return std::make_shared<RecordSource>(std::get<std::shared_ptr<RecordSet>>(source), *keys,
                                        check ? PayloadCheck::kOn : PayloadCheck::kOff);
}

template <typename T>
std::vector<T> copy(const std::optional<Column<T>>& column) {
  if (!column) return {};
  return {column->data(), column->data() + column->size()};
}

void submit(Engine& engine, const Column<uint64_t>& keys, uint64_t epoch,
            const std::optional<Column<int32_t>>& objects, const std::optional<Column<uint64_t>>& numbers) {
  BatchRequest request{copy<uint64_t>(keys), copy(objects), copy(numbers), epoch};
  const nb::gil_scoped_release nogil;
  engine.submit(std::move(request));
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

nb::tuple next_batch(Engine& engine) {
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
  nb::class_<Engine>(m, "BatchEngine", "Decodes samples into batches on native threads.")
      .def(
          "__init__",
          [](Engine* engine, const Source& source, const ViewSpec& view, uint64_t seed, uint64_t max_pixels,
             size_t batch_size, size_t threads, size_t spare_buffers, const std::optional<RecordKeys>& keys,
             bool check, std::optional<Converter> convert) {
            new (engine) Engine(sample_source(source, keys, check),
                                EngineSpec{view, seed, max_pixels, batch_size, threads, spare_buffers,
                                           converter(std::move(convert))});
          },
          nb::kw_only(), nb::arg("source"), nb::arg("view"), nb::arg("seed"), nb::arg("max_pixels"),
          nb::arg("batch_size"), nb::arg("threads"), nb::arg("spare_buffers"), nb::arg("keys") = nb::none(),
          nb::arg("check") = true, nb::arg("convert") = nb::none(),
          "`convert(bytes) -> bytes` makes a JPEG of an image that is none; it is called by any thread.")
      .def("submit", &submit, nb::arg("keys"), nb::arg("epoch"), nb::arg("objects") = nb::none(),
           nb::arg("numbers") = nb::none(),
           "Queue one batch of sample numbers; never blocks. `objects`: which box of each, -1 for the whole "
           "image. `numbers`: what is reported as keys and what random choices depend on.")
      .def(
          "next", &next_batch,
          "Wait for the oldest queued batch: images (B, H, W, 3) uint8, labels (B,) int64, keys (B,) uint64.")
      .def("drop_pending", &Engine::drop_pending, nb::call_guard<nb::gil_scoped_release>(),
           "Forget every queued batch.")
      .def("close", &Engine::close, nb::call_guard<nb::gil_scoped_release>(),
           "Stop the threads; samples being decoded are finished first.");
}

}  // namespace stoker::bind
