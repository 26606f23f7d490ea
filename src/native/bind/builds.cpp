// Binds core/builds.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/given_features.h"
#include "core/base/errors.h"
#include "core/builds/record_builder.h"
#include "core/resize/resample_plan.h"
#include "core/threads/per_thread.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

// How long a build may take to notice that it is to stop, beside the time of one image.
constexpr std::chrono::milliseconds kLimit{50};

// The builder converts at most 4 MiB of files at a time.
constexpr size_t kBufferBytes = size_t{5} << 20;
// Records wait in few bytes where they are short, so a few buffers are in use at a time.
constexpr size_t kSpareBuffers = 4;

StoredSizeMode stored_size_mode(const std::string& name) {
  if (name == "short") return StoredSizeMode::kShort;
  if (name == "long") return StoredSizeMode::kLong;
  if (name == "max") return StoredSizeMode::kMax;
  if (name == "exact") return StoredSizeMode::kExact;
  if (name == "square") return StoredSizeMode::kSquare;
  throw Error(ErrorCode::kBadArgument, "Unknown resize " + name);
}

StoredSize stored_size(const std::string& mode, int64_t width, int64_t height) {
  constexpr int64_t kMost = kMostJpegSide;
  if (width < 1 || height < 1 || width > kMost || height > kMost) {
    throw Error(ErrorCode::kBadArgument, "A stored size of " + std::to_string(width) + " x " +
                                             std::to_string(height) + " pixels; each side must be 1.." +
                                             std::to_string(kMost));
  }
  return {stored_size_mode(mode), width, height};
}

std::pair<int64_t, int64_t> target(const std::string& mode, std::pair<int64_t, int64_t> size,
                                   std::pair<int64_t, int64_t> image) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto [width, height] = image;
  if (width < 1 || height < 1 || width > kMost || height > kMost) {
    throw Error(ErrorCode::kBadArgument,
                "An image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels");
  }
  const PixelSize resized = stored_size(mode, size.first, size.second).target({width, height});
  return {resized.width, resized.height};
}

RecordSlot slot_named(const std::string& name) {
  if (name == "image") return RecordSlot::kImage;
  if (name == "filename") return RecordSlot::kFilename;
  if (name == "width") return RecordSlot::kWidth;
  if (name == "height") return RecordSlot::kHeight;
  throw Error(ErrorCode::kBadArgument, "Unknown slot " + name);
}

using Slots = std::map<std::string, std::string>;

RecordTemplate make_template(const nb::dict& features, const Slots& slots) {
  RecordTemplate layout;
  const GivenFeatures given(features);
  for (const NamedValues& feature : given.values()) layout.add(feature);
  for (const auto& [key, slot] : slots) layout.add(key, slot_named(slot));
  layout.fill({});  // throws now what would throw for every record
  return layout;
}

nb::bytes reencode(const JpegStoring& storing, const ByteView& data, Box part, int width, int height) {
  std::vector<uint8_t> bytes;
  {
    WithoutGil nogil;
    ReencodeSpec spec = storing.reencode;
    spec.part = rect_of(part);
    spec.size = {width, height};
    static PerThread<Reencoder> reencoders;  // threads come and go slowly, and their memory is worth keeping
    bytes = reencoders.get().run(bytes_of(data), spec);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

// Of all threads, since what one makes another frees.
const std::shared_ptr<BufferPool>& buffers() {
  static const auto pool = std::make_shared<BufferPool>(kBufferBytes, kSpareBuffers);
  return pool;
}

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

Bytes give_shared(std::shared_ptr<uint8_t[]> bytes, size_t size) {
  auto held = std::make_unique<std::shared_ptr<uint8_t[]>>(std::move(bytes));
  uint8_t* const data = held->get();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<uint8_t[]>*>(p); });
  held.release();
  return Bytes(data, {size}, owner);
}

// Path, bytes as far as known, template.
using File = std::tuple<nb::bytes, uint64_t, nb::object>;

nb::tuple build_records(const std::vector<File>& files, const JpegStoring& storing) {
  std::vector<FileToStore> wanted;  // borrows the templates
  for (const auto& [path, size, record] : files) {
    if (!nb::isinstance<RecordTemplate>(record)) throw nb::type_error("a file needs a RecordTemplate");
    wanted.push_back({{path.c_str(), path.size()}, size, nb::cast<const RecordTemplate*>(record)});
  }
  FramedRecords records;
  {
    WithoutGil nogil;
    static PerThread<RecordBuilder>
        builders;  // threads come and go slowly, and their memory is worth keeping
    records = builders.get(buffers()).run(wanted, storing, kLimit);
  }
  nb::list sizes;
  for (const uint64_t size : records.sizes) sizes.append(size);
  return nb::make_tuple(give_shared(std::move(records.bytes), records.size), std::move(sizes), records.crc,
                        records.kept);
}

}  // namespace

void register_builds(nb::module_& m) {
  m.def("stored_size", &target, "mode"_a, "size"_a, "image"_a,
        "The (width, height) that an image of so many pixels is stored in, as `stoker.recipe.StoredSize` "
        "says.");

  nb::class_<RecordTemplate>(
      m, "RecordTemplate", "Records that differ in image, file name and size. Immutable; safe in any thread.")
      .def(
          "__init__",
          [](RecordTemplate* self, const nb::dict& features, const Slots& slots) {
            new (self) RecordTemplate(make_template(features, slots));
          },
          "features"_a, "slots"_a,
          nb::sig("def __init__(self, features: stoker.types.Features, slots: dict[str, str]) -> None"),
          "`features` are the same in all records; `slots` are those that hold `image`, `filename`, `width` "
          "or "
          "`height`, by name.")
      .def_prop_ro(
          "size_bytes", [](const RecordTemplate& layout) { return layout.fill({}).size(); },
          "Bytes of a record beside the values of its slots.");

  nb::class_<JpegStoring>(m, "JpegStoring", "What a recipe does to JPEGs. Immutable; safe in any thread.")
      .def(
          "__init__",
          [](JpegStoring* storing, std::optional<std::pair<std::string, std::pair<int64_t, int64_t>>> size,
             const std::string& filter, int quality, const std::string& subsampling, bool restart,
             bool optimize, const std::string& decode, bool turns, uint64_t max_pixels) {
            JpegStoring spec;
            if (size) spec.size = stored_size(size->first, size->second.first, size->second.second);
            spec.reencode.filter = filter_named(filter);
            spec.reencode.encode = encode_spec(quality, subsampling, restart, optimize);
            spec.reencode.decode = decode_mode_named(decode);
            spec.reencode.max_pixels = max_pixels;
            spec.keeps_small = !restart;
            spec.turns = turns;
            new (storing) JpegStoring(spec);
          },
          nb::kw_only(), "size"_a = nb::none(), "filter"_a = "bicubic", "quality"_a = 90,
          "subsampling"_a = "4:2:0", "restart"_a = false, "optimize"_a = true, "decode"_a = "exact",
          "turns"_a = false, "max_pixels"_a = kDefaultMaxPixels)
      .def(
          "reencode", &reencode, "data"_a, "part"_a, "width"_a, "height"_a,
          "The part (left, top, right, bottom) of a JPEG as a JPEG of width x height; with decode exact, the "
          "bytes of decode_image, resize and encode_jpeg.");

  m.def(
      "build_records", &build_records, "files"_a, "storing"_a,
      nb::sig("def build_records(files: list[tuple[bytes, int, RecordTemplate]], storing: JpegStoring) -> "
              "tuple[numpy.typing.NDArray[numpy.uint8], list[int], int, int]"),
      "Read, check, convert and frame the first of some (path, size in bytes as far as known, template), up "
      "to one that is not a plain JPEG, for about 50 ms: the frames end to end, the bytes of each, the "
      "CRC-32C of all, and how many keep the bytes of their file.");
}

}  // namespace stoker::bind
