// Binds core/sources.
#include <fcntl.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/remote_spans.h"
#include "core/base/errors.h"
#include "core/base/name_digest.h"
#include "core/sources/cached_source.h"
#include "core/sources/concatenation.h"
#include "core/sources/file_set.h"
#include "core/sources/memory_cache.h"
#include "core/sources/node_cache.h"
#include "core/sources/record_scan.h"
#include "core/sources/record_set.h"
#include "core/sources/record_source.h"
#include "core/sources/sample_source.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

LabelEncoding label_encoding(const std::string& name) {
  if (name == "id") return LabelEncoding::kId;
  if (name == "one-hot") return LabelEncoding::kOneHot;
  throw Error(ErrorCode::kBadArgument, "Unknown label encoding " + name + "; use id or one-hot");
}

ImageEncoding image_encoding(const std::string& name) {
  if (name == "file") return ImageEncoding::kFile;
  if (name == "raw") return ImageEncoding::kRaw;
  throw Error(ErrorCode::kBadArgument, "Unknown image encoding " + name + "; use jpeg or raw");
}

void add_record_keys(nb::module_& m) {
  nb::class_<RecordKeys>(m, "RecordKeys", "Where records hold what; an empty key is one they do not have.")
      .def(
          "__init__",
          [](RecordKeys* keys, const std::string& image_key, const std::string& label_key,
             const std::string& source_key, const std::string& labels, int64_t label_base,
             const std::string& images, const std::string& height_key, const std::string& width_key,
             const std::string& order_key, const std::string& box_prefix) {
            new (keys) RecordKeys{.image = image_key,
                                  .label = {label_key, label_encoding(labels), label_base},
                                  .source = source_key,
                                  .encoding = image_encoding(images),
                                  .height = height_key,
                                  .width = width_key,
                                  .order = order_key,
                                  .box_prefix = box_prefix};
          },
          nb::kw_only(), "image_key"_a, "label_key"_a = "", "source_key"_a = "", "label_encoding"_a = "id",
          "label_base"_a = 0, "image_encoding"_a = "file", "height_key"_a = "", "width_key"_a = "",
          "order_key"_a = "", "box_prefix"_a = "");
}

using Part = std::pair<std::shared_ptr<SampleSource>, int64_t>;

using Extents = nb::ndarray<const uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(RecordExtent) == 2 * sizeof(uint64_t), "rows of an index are copied as they are");

// How many records are read before Ctrl-C is looked for.
constexpr size_t kPieceRecords = 4096;

// One value for each record, or for those with some numbers; `fill(numbers, out)` runs without the GIL.
template <typename T, typename Fill>
nb::ndarray<nb::numpy, T, nb::ndim<1>> each_record(const RecordSet& records,
                                                   const std::optional<Column<uint64_t>>& numbers,
                                                   const Fill& fill) {
  std::vector<T> values;  // grows with what was read: the number of records is only what a list claims
  const uint64_t count = numbers ? numbers->size() : records.size();
  for (size_t first = 0; first < count; first += kPieceRecords) {
    {
      WithoutGil nogil;
      const size_t here = std::min<uint64_t>(kPieceRecords, count - first);
      values.resize(first + here);
      const RecordNumbers these =
          numbers ? RecordNumbers(std::span(numbers->data() + first, here)) : RecordNumbers(first);
      fill(these, std::span(values).last(here));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return give(std::move(values));
}

std::vector<RecordExtent> rows_of(const Extents& extents) {
  std::vector<RecordExtent> rows(extents.shape(0));
  if (!rows.empty())
    std::memcpy(static_cast<void*>(rows.data()), extents.data(), rows.size() * sizeof(RecordExtent));
  return rows;
}

using Corners = nb::ndarray<const float, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(ObjectBox) == 4 * sizeof(float), "rows of boxes are copied as they are");

template <typename T>
std::vector<T> copy(const Column<T>& column) {
  return {column.data(), column.data() + column.size()};
}

// Another descriptor for the same open file, so that the caller's stays its own.
int duplicate(int descriptor) {
  const int copied = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copied < 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  return copied;
}

using FieldsMaker = nb::typed<nb::callable, nb::bytes(uint64_t, nb::bytes, nb::typed<nb::list, std::string>)>;

// The error of the core for what a maker of fields has raised. Needs the GIL.
Error fields_error(const nb::python_error& raised) {
  const nb::object errors = nb::module_::import_("stoker.errors");
  const std::string what = words_of(raised.value());
  if (raised.matches(errors.attr("StorageError"))) return {ErrorCode::kStorage, what};
  if (raised.matches(errors.attr("ExampleError"))) return {ErrorCode::kBadExample, what};
  if (raised.matches(errors.attr("ImageTooLargeError"))) return {ErrorCode::kImageTooLarge, what};
  if (raised.matches(errors.attr("ImageError"))) return {ErrorCode::kBadImage, what};
  int number = EIO;
  if (raised.matches(PyExc_OSError) && nb::try_cast(raised.value().attr("errno"), number)) {
    return {ErrorCode::kIo, words_of(raised.value().attr("strerror")), {}, number};
  }
  const std::string name = nb::str(raised.type().attr("__name__")).c_str();
  return {ErrorCode::kCallback, "what gives the fields of samples raised " + name + ": " + what};
}

std::vector<uint8_t> call_maker(const nb::callable& make, uint64_t number, std::span<const uint8_t> image,
                                const FieldSpec& spec) {
  const WithGil gil;
  try {
    nb::list keys;
    for (const FieldColumn& column : spec.columns) keys.append(text(column.key));
    for (const FieldPlane& plane : spec.planes) keys.append(text(plane.key));
    const auto file = spec.planes.empty() ? nb::bytes("", 0) : nb::bytes(image.data(), image.size());
    const auto bytes = nb::cast<nb::bytes>(make(number, file, keys));
    const auto* first = reinterpret_cast<const uint8_t*>(bytes.c_str());
    return {first, first + bytes.size()};
  } catch (const nb::python_error& raised) {
    if (raised.matches(PyExc_MemoryError)) throw std::bad_alloc();
    throw fields_error(raised);
  } catch (const nb::cast_error&) {
    throw Error(ErrorCode::kCallback, "what gives the fields of samples did not return bytes");
  }
}

void add_cache_counts(nb::module_& m) {
  nb::class_<CacheCounts>(m, "CacheCounts", "What a cache has done so far.")
      .def_ro("hits", &CacheCounts::hits)
      .def_ro("misses", &CacheCounts::misses)
      .def_ro("errors", &CacheCounts::errors)
      .def_ro("bytes", &CacheCounts::bytes)
      .def_ro("full", &CacheCounts::full);
}

void add_sample_source(nb::module_& m) {
  add_record_keys(m);
  nb::class_<SampleSource>(m, "SampleSource", "Images with their labels and boxes, by number.")
      .def("__len__", &SampleSource::size);
  nb::class_<RecordSource, SampleSource>(m, "RecordSource", "The samples that records of shards hold.")
      .def(
          "__init__",
          [](RecordSource* source, std::shared_ptr<RecordSet> records, RecordKeys keys, bool check) {
            new (source) RecordSource(std::move(records), std::move(keys),
                                      check ? PayloadCheck::kOn : PayloadCheck::kOff);
          },
          "records"_a, "keys"_a, "check"_a = true, "With `check`, the checksum of every record is verified.");
  nb::class_<Concatenation, SampleSource>(m, "Concatenation", "Several sources as one, end to end.")
      .def(
          "__init__",
          [](Concatenation* concatenation, const std::vector<Part>& parts) {
            std::vector<SourcePart> all;
            for (const auto& [source, offset] : parts) all.push_back({source, offset});
            new (concatenation) Concatenation(std::move(all));
          },
          "parts"_a, "Each part is a source and what is added to its labels.");
}

void add_record_set(nb::module_& m) {
  nb::class_<RecordSet>(m, "RecordSet", "Random access to the records of many shards.")
      .def(
          "__init__",
          [](RecordSet* set, std::optional<size_t> max_open, uint64_t index_bytes) {
            new (set) RecordSet(max_open.value_or(most_open_files()), index_bytes);
          },
          "max_open"_a = nb::none(), "index_bytes"_a = kIndexBytes,
          "At most `max_open` shards are open at a time (left out: half of what the process may open), and "
          "`index_bytes` of indexes kept.")
      .def(
          "add",
          [](RecordSet& set, nb::handle path, const Extents& extents, nb::handle name) {
            set.add(system_path(path), rows_of(extents), system_path(name));
          },
          "path"_a, "extents"_a, "name"_a = "",
          nb::sig("def add(self, path: str, extents: numpy.typing.NDArray[numpy.uint64], name: str = '') -> "
                  "None"),
          "Append a shard; rows are (offset, size) of whole frames, in bytes. Messages call it `name`.")
      .def(
          "add_listed",
          [](RecordSet& set, nb::handle path, nb::handle index, uint64_t records, uint64_t bytes) {
            set.add_listed({system_path(path), system_path(index), records, bytes});
          },
          "path"_a, "index"_a, "records"_a, "size_bytes"_a,
          nb::sig("def add_listed(self, path: str, index: str, records: int, size_bytes: int) -> None"),
          "Append a shard whose index is read when it is needed for the first time.")
      .def(
          "open_listed",
          [](RecordSet& set, size_t threads) {
            const WithoutGil nogil;
            return set.open_listed(threads);
          },
          "threads"_a,
          "Look whether the listed shards are as listed, and read their indexes unless they are many; the "
          "numbers of those that are not, and need set_extents.")
      .def(
          "set_extents",
          [](RecordSet& set, size_t shard, const Extents& extents) {
            set.set_extents(shard, rows_of(extents));
          },
          "shard"_a, "extents"_a,
          nb::sig("def set_extents(self, shard: int, extents: numpy.typing.NDArray[numpy.uint64]) -> None"),
          "Set where the records of a listed shard lie.")
      .def(
          "set_remote",
          [](RecordSet& set, std::shared_ptr<RemoteReader> reader, int64_t first) {
            set.set_remote({std::move(reader), first});
          },
          "reader"_a, "first"_a, "The shards are remote files, numbered from `first` on.")
      .def(
          "remote_spans",
          [](const RecordSet& set, const Numbers& numbers) {
            return remote_spans(numbers.size(), [&](size_t i) { return set.remote_span(numbers.data()[i]); });
          },
          "numbers"_a, nb::sig(REMOTE_SPANS_SIGNATURE),
          "(file, offset, length) of the frames of records, if shards are remote; file -1 otherwise.")
      .def("__len__", &RecordSet::size)
      .def(
          "read",
          [](const RecordSet& set, uint64_t index) {
            SourceScratch scratch;
            std::span<const uint8_t> payload;
            {
              WithoutGil nogil;
              payload = set.read(index, PayloadCheck::kOn, scratch);
            }
            return nb::bytes(payload.data(), payload.size());
          },
          "index"_a, "The payload of one record, its checksum verified.")
      .def(
          "where",
          [](const RecordSet& set, uint64_t index) {
            Where where;
            {
              WithoutGil nogil;  // it may have to read an index
              where = set.where(index);
            }
            return location_of(where);
          },
          "index"_a, "The shard's name, the number of the record in it, and its offset in bytes.")
      .def(
          "count_values",
          [](const RecordSet& set, const std::string& key, size_t threads,
             const std::shared_ptr<RemoteReader>& ahead) {
            return each_record<uint32_t>(set, {}, [&](RecordNumbers numbers, std::span<uint32_t> out) {
              count_values(set, key, numbers, threads, ahead.get(), out);
            });
          },
          "key"_a, "threads"_a, "ahead"_a = nb::none(),
          "How many values each record has under a key, 0 where it is absent: uint32 (N,).")
      .def(
          "labels",
          [](const RecordSet& set, const std::string& label_key, bool one_hot, int64_t label_base,
             size_t threads, const std::shared_ptr<RemoteReader>& ahead,
             const std::optional<Column<uint64_t>>& numbers) {
            const LabelKeys keys{label_key, one_hot ? LabelEncoding::kOneHot : LabelEncoding::kId,
                                 label_base};
            return each_record<int64_t>(set, numbers, [&](RecordNumbers these, std::span<int64_t> out) {
              read_labels(set, keys, these, threads, ahead.get(), out);
            });
          },
          "label_key"_a, "one_hot"_a, "label_base"_a, "threads"_a, "ahead"_a = nb::none(),
          "numbers"_a = nb::none(),
          nb::sig("def labels(self, label_key: str, one_hot: bool, label_base: int, threads: int, "
                  "ahead: RemoteReader | None = None, numbers: numpy.typing.NDArray[numpy.uint64] | None = "
                  "None) -> numpy.typing.NDArray[numpy.int64]"),
          "The class of each record, or of those with these numbers; -1 where there is none: int64 (N,).")
      .def(
          "name_digests",
          [](const RecordSet& set, const std::string& key, size_t threads,
             const std::shared_ptr<RemoteReader>& ahead, const std::optional<Column<uint64_t>>& numbers) {
            return each_record<uint64_t>(set, numbers, [&](RecordNumbers these, std::span<uint64_t> out) {
              digest_names(set, key, these, threads, ahead.get(), out);
            });
          },
          "key"_a, "threads"_a, "ahead"_a = nb::none(), "numbers"_a = nb::none(),
          nb::sig("def name_digests(self, key: str, threads: int, ahead: RemoteReader | None = None, "
                  "numbers: numpy.typing.NDArray[numpy.uint64] | None = None) -> "
                  "numpy.typing.NDArray[numpy.uint64]"),
          "name_digest() of the text that each record, or those with these numbers, has under a key; of its "
          "number in decimal where there is none: uint64 (N,).");
}

void add_file_set(nb::module_& m) {
  nb::class_<FileSet, SampleSource>(m, "FileSet",
                                    "Random access to images that are files, or lie in archives.")
      .def(
          "__init__",
          [](FileSet* set, nb::handle base, const nb::bytes& names, const Column<int64_t>& starts,
             const Column<int64_t>& labels, const Column<int64_t>& sizes, const nb::list& archives,
             const Column<int32_t>& archive_of, const Column<int64_t>& offsets) {
            FileList list{.base = system_path(base),
                          .names = std::string(names.c_str(), names.size()),
                          .starts = copy(starts),
                          .labels = copy(labels),
                          .sizes = copy(sizes),
                          .archives = {},
                          .archive_of = copy(archive_of),
                          .offsets = copy(offsets)};
            for (const nb::handle archive : archives) list.archives.push_back(system_path(archive));
            new (set) FileSet(std::move(list));
          },
          "base"_a, "names"_a, "starts"_a, "labels"_a, "sizes"_a, "archives"_a, "archive_of"_a, "offsets"_a,
          nb::sig("def __init__(self, base: str, names: bytes, starts: numpy.typing.NDArray[numpy.int64], "
                  "labels: numpy.typing.NDArray[numpy.int64], sizes: numpy.typing.NDArray[numpy.int64], "
                  "archives: list[str], archive_of: numpy.typing.NDArray[numpy.int32], "
                  "offsets: numpy.typing.NDArray[numpy.int64]) -> None"),
          "Name i is names[starts[i]:starts[i + 1]], below `base` unless it begins with '/'; archive_of is "
          "-1 for a file of its own.")
      .def(
          "set_boxes",
          [](FileSet& set, const Column<int64_t>& starts, const Corners& boxes,
             const std::optional<Column<int64_t>>& labels, std::map<size_t, std::string> damaged) {
            std::vector<ObjectBox> rows(boxes.shape(0));
            if (!rows.empty())
              std::memcpy(static_cast<void*>(rows.data()), boxes.data(), rows.size() * sizeof(ObjectBox));
            set.set_boxes(copy(starts), std::move(rows), labels ? copy(*labels) : std::vector<int64_t>{},
                          std::move(damaged));
          },
          "starts"_a, "boxes"_a, "labels"_a = nb::none(), "damaged"_a = nb::dict(),
          "Set the objects: those of image i are rows starts[i]:starts[i + 1], each xmin, ymin, xmax, ymax; "
          "without `labels` they have the label of their image. `damaged` says what is wrong with those of "
          "some images, which is then an ExampleError wherever they are wanted.")
      .def(
          "set_fields",
          [](FileSet& set, FieldsMaker make) {
            set.set_fields([held = hold(std::move(make))](uint64_t number, std::span<const uint8_t> image,
                                                          const FieldSpec& spec) {
              return call_maker(*held, number, image, spec);
            });
          },
          "make"_a,
          "`make(number, image, keys)` gives the features of one sample, a tf.train.Example, in any thread; "
          "`image` is its file where a key is that of an image, and empty otherwise. It may raise "
          "ExampleError, ImageError and OSError, which are errors of that sample.")
      .def(
          "set_remote",
          [](FileSet& set, std::shared_ptr<RemoteReader> reader, int64_t first) {
            set.set_remote({std::move(reader), first});
          },
          "reader"_a, "first"_a,
          "Archives and files are remote, numbered from `first` on: the archives, then one for each image.")
      .def(
          "read",
          [](const FileSet& set, uint64_t index) {
            SourceScratch scratch;
            std::span<const uint8_t> bytes;
            {
              WithoutGil nogil;
              bytes = set.fetch(index, scratch);
            }
            return nb::bytes(bytes.data(), bytes.size());
          },
          "index"_a, "The bytes of one image file.")
      .def(
          "where", [](const FileSet& set, uint64_t index) { return location_of(set.where(index)); },
          "index"_a, nb::sig("def where(self, index: int) -> tuple[str, int, int]"),
          "The path of the file or of its archive, -1, and the offset in the archive in bytes.");
}

void add_caches(nb::module_& m) {
  add_cache_counts(m);
  nb::class_<SampleCache>(m, "SampleCache", "Keeps the bytes of samples; used by any number of threads.")
      .def("counts", &SampleCache::counts, nb::call_guard<WithoutGil>());
  nb::class_<MemoryCache, SampleCache>(m, "MemoryCache", "Samples of one source in memory.")
      .def(nb::init<uint64_t>(), "budget"_a, "What is held never takes more than `budget` bytes.");
  nb::class_<NodeCacheFile, SampleCache>(m, "NodeCacheFile", "Samples of one source in a file.")
      .def(
          "__init__",
          [](NodeCacheFile* cache, int file, int counter, uint64_t budget, const Column<uint64_t>& sizes) {
            const std::vector<uint64_t> each(sizes.data(), sizes.data() + sizes.size());
            FileDescriptor own_file(duplicate(file));
            const int own_counter = duplicate(counter);
            new (cache) NodeCacheFile(own_file.release(), own_counter, budget, each);
          },
          "file"_a, "counter"_a, "budget"_a, "sizes"_a,
          "`file` and `counter` are descriptors, which stay the caller's; no other code may lock `counter` "
          "through them. `sizes` are the bytes of each sample.")
      .def_prop_ro("file_bytes", &NodeCacheFile::file_bytes, "How long the file has to be.")
      .def_prop_ro("problem", &NodeCacheFile::problem,
                   "What the system refused first; empty: nothing so far.");
  nb::class_<CachedSource, SampleSource>(m, "CachedSource", "A source behind a cache.")
      .def(
          "__init__",
          [](CachedSource* cached, std::shared_ptr<SampleSource> source, std::shared_ptr<SampleCache> cache) {
            new (cached) CachedSource(std::move(source), std::move(cache));
          },
          "source"_a, "cache"_a, "`source` must check what it reads, since what it gives is kept.")
      .def(
          "read",
          [](const CachedSource& source, uint64_t number) {
            SourceScratch scratch;
            std::span<const uint8_t> bytes;
            {
              WithoutGil nogil;
              bytes = source.fetch(number, scratch);
            }
            return nb::bytes(bytes.data(), bytes.size());
          },
          "number"_a, "The bytes that hold one sample.");
}

}  // namespace

void register_sources(nb::module_& m) {
  m.def(
      "name_digest", [](const ByteView& name) { return name_digest(bytes_of(name)); }, "name"_a,
      "A number that stands for a name: FNV-1a of 64 bits.");
  add_sample_source(m);
  add_record_set(m);
  add_file_set(m);
  add_caches(m);
}

}  // namespace stoker::bind
