// Binds core/sources/record_set.h and core/sources/record_scan.h.
#include "core/sources/record_set.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "bind/remote_places.h"
#include "core/base/errors.h"
#include "core/sources/record_scan.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

using Extents = nb::ndarray<const uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(RecordExtent) == 2 * sizeof(uint64_t), "rows of an index are copied as they are");

// How many records are read before Ctrl-C is looked for.
constexpr size_t kPieceRecords = 4096;

// One value for each record; `fill(first, out)` runs without the GIL.
template <typename T, typename Fill>
nb::ndarray<nb::numpy, T, nb::ndim<1>> each_record(const RecordSet& records, const Fill& fill) {
  std::vector<T> values(records.size());
  for (size_t first = 0; first < values.size(); first += kPieceRecords) {
    {
      WithoutGil nogil;
      fill(first, std::span(values).subspan(first, std::min(kPieceRecords, values.size() - first)));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return give(std::move(values));
}

std::vector<RecordExtent> rows_of(const Extents& extents) {
  std::vector<RecordExtent> rows(extents.shape(0));
  if (!rows.empty()) std::memcpy(rows.data(), extents.data(), rows.size() * sizeof(RecordExtent));
  return rows;
}

}  // namespace

void register_record_set(nb::module_& m) {
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
          "Tell where the records of a listed shard lie.")
      .def(
          "set_remote",
          [](RecordSet& set, std::shared_ptr<RemoteReader> reader, int64_t first) {
            set.set_remote({std::move(reader), first});
          },
          "reader"_a, "first"_a, "The shards are remote files, numbered from `first` on.")
      .def(
          "remote_places",
          [](const RecordSet& set, const Numbers& numbers) {
            return remote_places(numbers.size(),
                                 [&](size_t i) { return set.remote_place(numbers.data()[i]); });
          },
          "numbers"_a, nb::sig(REMOTE_PLACES_SIGNATURE),
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
            return place(where);
          },
          "index"_a, "The shard's name, the number of the record in it, and its offset in bytes.")
      .def(
          "count_values",
          [](const RecordSet& set, const std::string& key, size_t threads,
             const std::shared_ptr<RemoteReader>& ahead) {
            return each_record<uint32_t>(set, [&](uint64_t first, std::span<uint32_t> out) {
              count_values(set, key, first, threads, ahead.get(), out);
            });
          },
          "key"_a, "threads"_a, "ahead"_a = nb::none(),
          "How many values each record has under a key, 0 where it is absent: uint32 (N,).")
      .def(
          "labels",
          [](const RecordSet& set, const std::string& label_key, bool one_hot, int64_t label_base,
             size_t threads, const std::shared_ptr<RemoteReader>& ahead) {
            const LabelKeys keys{label_key, one_hot ? LabelEncoding::kOneHot : LabelEncoding::kId,
                                 label_base};
            return each_record<int64_t>(set, [&](uint64_t first, std::span<int64_t> out) {
              read_labels(set, keys, first, threads, ahead.get(), out);
            });
          },
          "label_key"_a, "one_hot"_a, "label_base"_a, "threads"_a, "ahead"_a = nb::none(),
          "The class of each record, -1 where there is none: int64 (N,).");
}

}  // namespace stoker::bind
